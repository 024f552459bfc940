//! Reads bash text without running it: which commands it can launch, and what they do.
//!
//! [`read`] parses a text as bash does, expands its words as far as the text tells their values, and follows
//! everything that launches something: substitutions, pipelines, wrappers (`env`, `xargs`, `find -exec`), shells,
//! traps, `eval`. What known programs do with their arguments stands in tables ([`program`]). The result is a
//! [`Reading`]: the commands, and their effects, each with its [`Span`] in the text.
//!
//! ```
//! use shieling_shell::{Action, read};
//!
//! let reading = read("cd src && grep -r needle . | sort > ../todo.txt")?;
//! let commands: Vec<String> = reading.commands.iter().map(|command| command.shown()).collect();
//! assert_eq!(commands, ["cd src", "grep -r needle .", "sort"]);
//! assert!(reading.effects.iter().any(|effect| {
//!     matches!(&effect.action, Action::Writes(path) if path.known().as_deref() == Some("../todo.txt"))
//! }));
//! # Ok::<(), shieling_shell::Unreadable>(())
//! ```
//!
//! The crate does no I/O, holds no policy and has no clock: the same text always gives the same reading. A reading
//! errs on the side of finding too much, and reports what it cannot follow as a [`Doubt`]. It is no sandbox: a program
//! can do more than its table says, so the caller must confine the text when running it.

#![forbid(unsafe_code)]

mod carried;
mod definitions;
mod descriptor;
pub mod program;
mod quote;
mod read;
mod reader;
mod reading;
mod screen;
mod span;
mod syntax;
mod variables;
mod word;

pub use carried::{CarriedState, DefinedNames};
pub use quote::{quoted, quoted_name};
pub use read::{read, read_after};
pub use reader::is_shell;
pub use reading::{
    Action, Base, Doubt, Effect, FileNames, Invocation, Kind, MORE, NamesIn, PIPE, Parts, PartsOf, Pick, PickKind,
    Reading, Splits, Via, Walk,
};
pub use screen::{Unreadable, escaped};
pub use span::Span;
pub use variables::HOME;
pub use word::{Atom, Fields, Hidden, Known, Word, begins_a_path, found};
