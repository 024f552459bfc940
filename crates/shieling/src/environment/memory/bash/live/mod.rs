//! Standard input that arrives while a text runs. Bashkit takes all of an input before a text begins, so
//! that it is given none: whatever reads the text's own standard input gets it from here instead.
//!
//! ```text
//!              ┌► read, mapfile: what is theirs, and the rest stays
//! descriptor ─►│
//!              └► cat, grep, sort, …: piece by piece, in a bash of their own
//! ```
//!
//! Bashkit says of an input only whether there is one: where there is none, it is the text's. Only a
//! command that streams cannot tell it from an empty pipe, see [`feed`].

mod feed;
mod input;
mod read;
mod record;
pub(super) mod unable;
pub(super) mod wants;

use std::collections::{HashMap, HashSet};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bashkit::{Builtin, BuiltinContext, BuiltinRegistry, ExecResult, async_trait};

use self::feed::Fed;
use self::input::Input;
use self::read::Taker;
use self::record::Record;
use super::disk::Disk;
use super::{Kit, programs};

/// The builtins that take a part of the input.
const TAKERS: [&str; 3] = ["read", "mapfile", "readarray"];
/// The name of [`Status`], which nobody types.
pub(super) const STATUS: &str = "shieling:status";
/// The variable of a shell in which a pipe may have been taken. Bashkit keeps names of this kind to itself.
const MARK: &str = "_ARRAY_READ_shieling";

/// The input of one text.
pub(super) struct Live {
    kit: Kit,
    input: Input,
    disk: Arc<Disk>,
    marks: AtomicU64,
    pipes: Mutex<HashSet<u64>>,
}

impl Live {
    /// Has what reads standard input read this. For the one text of a bash, within a runtime with I/O.
    pub(super) fn install(kit: &Kit, disk: &Arc<Disk>, input: OwnedFd, registry: &BuiltinRegistry) -> Arc<Self> {
        let most = usize::try_from(kit.memory).unwrap_or(usize::MAX);
        let live = Arc::new(Self {
            kit: kit.with_tree(Arc::clone(&kit.tree)),
            input: Input::new(input, most),
            disk: Arc::clone(disk),
            marks: AtomicU64::new(0),
            pipes: Mutex::default(),
        });
        for name in TAKERS {
            let live = Arc::clone(&live);
            registry.insert(name, Arc::new(Taker { name, live }));
        }
        let allowed = kit.allowed.as_deref();
        let own = |name: &str| kit.programs.contains_key(name);
        for name in wants::programs().filter(|name| programs::may(name, allowed) && !own(name)) {
            let live = Arc::clone(&live);
            registry.insert(name, Arc::new(Fed { name, live }));
        }
        live
    }

    /// The next line with its end; at the end of the input what is left.
    pub(super) async fn line(&self) -> io::Result<Vec<u8>> {
        self.input.record(&Record::line()).await
    }

    /// Marks the shell that has these variables: it may take a pipe.
    fn mark(&self, variables: &mut HashMap<String, String>) -> u64 {
        let mark = self.marks.fetch_add(1, Ordering::Relaxed);
        variables.insert(MARK.to_owned(), mark.to_string());
        mark
    }

    fn took_a_pipe(&self, mark: u64) {
        self.pipes().insert(mark);
    }

    /// Whether the input of the shell that has these variables was a pipe, which somebody has taken.
    fn has_taken_a_pipe(&self, variables: &HashMap<String, String>) -> bool {
        let mark = variables.get(MARK).and_then(|mark| mark.parse().ok());
        mark.is_some_and(|mark: u64| self.pipes().contains(&mark))
    }

    fn pipes(&self) -> std::sync::MutexGuard<'_, HashSet<u64>> {
        self.pipes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends with the status that it is given.
pub(super) struct Status;

#[async_trait]
impl Builtin for Status {
    async fn execute(&self, ctx: BuiltinContext<'_>) -> bashkit::Result<ExecResult> {
        Ok(status(ctx.args))
    }
}

fn status(args: &[String]) -> ExecResult {
    let code = args.first().and_then(|code| code.parse().ok());
    ExecResult::with_code(String::new(), code.unwrap_or(1))
}

/// An error as a program tells it, without its number.
fn told(error: &io::Error) -> String {
    let told = error.to_string();
    match told.split_once(" (os error") {
        Some((words, _)) => words.to_owned(),
        None => told,
    }
}
