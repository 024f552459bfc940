//! What is read from a shell text: its commands, and what they do, each with its place in the text.

use crate::carried::Left;
use crate::span::Span;
use crate::word::Word;

/// What is not certain about a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Doubt {
    /// What is launched cannot be read from the text at all.
    Launch,
    /// A program runs code that the text does not show.
    Program,
    /// A build tool, a test runner or a package manager runs what the project says.
    Project,
    /// A program was given an argument that it is not known to take.
    Argument,
    /// A program was given an option that is known to be able to run or change something.
    Setting,
    /// A variable is set that changes what later commands run.
    Variable,
    /// A variable is set that changes what interpreters and build tools load.
    Loading,
    /// A variable is set to a command, which was followed, that others start.
    Delegate,
}

/// How an argument is shown that comes from data.
pub const MORE: &str = "…";

/// One thing that a command does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Deed {
    /// Reads a path.
    Reads(Word),
    /// Only names a path.
    Names(Word),
    /// Writes, makes, removes or changes a path.
    Writes(Word),
    /// Gives the content of a path another name: moves it, or links to it.
    Renames(Word),
    /// Reads a directory as a whole.
    Walks(Walk),
    /// Changes something in several parts.
    InParts(Parts),
    /// Reads something of git's store, by revision syntax.
    Revision(Word),
    /// Changes something that is not a path: processes, the clock, the repository.
    Changes(String),
    /// Runs a file of code.
    RunsFile(Word),
    /// Holds code in another language.
    Code(Word),
    /// Gives a word to a program of which it is not described in detail what it does with it: the word, or a part
    /// of it, may be a path.
    Mentions(Word),
    /// Is given a word that could be an option; true if one of its options could start something.
    MaybeOption(Word, bool),
    /// Talks to the network.
    Network(String),
    /// Something that cannot be told, and why.
    Doubt(Doubt, String),
}

/// A change in several parts: where a later one fails, the earlier ones are made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parts {
    /// What is changed.
    pub of: PartsOf,
    /// In which directory the command stands for certain, if that is known.
    pub here: Option<String>,
}

/// What is changed in parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PartsOf {
    /// A path is removed or moved, with what lies below it.
    Tree(Word),
    /// A repository, and after that its settings. With what does without the second.
    Settings(String),
}

/// A directory that a command reads as a whole, and what it looks at there.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Walk {
    /// The directory, as the text names it; nothing for the one where the command stands.
    pub root: Option<Word>,
    /// Whether the root may be a revision, and then all that is there is meant.
    pub or_revision: bool,
    /// It looks at files of which one of these matches; at all if there are none.
    pub only: Vec<Pick>,
    /// It leaves out what one of these matches.
    pub except: Vec<Pick>,
    /// Whether it skips names that start with a dot.
    pub undotted: bool,
    /// Whether it skips those, and what `.gitignore` and the like name.
    pub ignoring: bool,
    /// Whether it looks at what git tracks alone.
    pub tracked: bool,
    /// Whether a directory that it finds may be listed or read by what is given its name.
    pub gives_directories: bool,
    /// At what the names that it finds are split before they are used, if at anything.
    pub splits: Splits,
    /// Whether it shows names alone. Those stay listed, but for what is in a directory that is hidden.
    pub names: bool,
    /// How deep it goes, if not to the bottom.
    pub depth: Option<usize>,
    /// In which directory the command stands for certain, if that is known.
    pub here: Option<String>,
    /// Whether it walks only if a name that a wildcard matches is an option.
    pub if_dashed: bool,
}

/// Where a list of names is split.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Splits {
    /// Nowhere: no name holds what separates them.
    #[default]
    Nowhere,
    /// At the ends of lines.
    Lines,
    /// At blanks too, quotes and backslashes having a meaning.
    Blanks,
}

/// A pattern by which a command that walks chooses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pick {
    /// The pattern, in which `*`, `?` and `[…]` are wildcards.
    pub pattern: String,
    /// Whether it is matched against the path from the root on, in which wildcards match slashes; otherwise
    /// against the name.
    pub path: bool,
    /// What it chooses among.
    pub kind: PickKind,
}

/// What a pattern is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PickKind {
    /// Entries that are no directories.
    Files,
    /// Directories, with what is in them.
    Trees,
    /// Entries of both kinds, each by itself.
    Entries,
    /// Entries of both kinds, with what is in them.
    All,
}

/// By which way a command does something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Via {
    /// Through an operand, or by what the program is.
    Operand,
    /// Through an option.
    Option,
    /// Through a redirection of the shell.
    Redirection,
    /// Through an assignment.
    Assignment,
}

/// A deed, with where the text says so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Effect {
    /// What is done.
    pub deed: Deed,
    /// What it is done to, as messages show it.
    pub object: String,
    /// Where the text says so.
    pub span: Span,
    /// The command that does it, as an index into [`Reading::commands`].
    pub by: Option<usize>,
    /// By which way.
    pub via: Via,
}

/// What kind of command an invocation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A program, found on the path or by its path.
    Program,
    /// A builtin of the shell.
    Builtin,
    /// A function that the text defines before, for certain.
    Function,
}

/// A command that the text can launch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invocation {
    /// The name and the arguments.
    pub argv: Vec<Word>,
    /// Where the text says so.
    pub span: Span,
    /// What kind of command it is.
    pub kind: Kind,
    /// Whether further arguments follow that are not in the text (`xargs`).
    pub more: bool,
    /// Whether it reads nothing of a directory that is named to it.
    pub files: bool,
    /// Whether what is not in the text are names that a program before it found.
    pub fed: bool,
}

impl Invocation {
    /// Its words as messages show them.
    pub fn shown(&self) -> String {
        self.argv.iter().map(Word::shown).collect::<Vec<_>>().join(" ")
    }

    /// The name of the program without its directories, where it can be known.
    pub fn program(&self) -> Option<String> {
        self.argv.first()?.program_name()
    }
}

/// A directory that relative paths of the text may start from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Base {
    /// This one, relative to where the command starts, or absolute.
    At(String),
    /// One that the text does not tell.
    Unknown,
}

/// Everything that was read from one command text.
#[derive(Debug, Clone, Default)]
pub struct Reading {
    /// The commands that the text can launch.
    pub commands: Vec<Invocation>,
    /// What those commands, and the shell itself, do.
    pub effects: Vec<Effect>,
    /// Where relative paths may start, besides the working directory itself.
    pub bases: Vec<Base>,
    /// Whether `*` also matches names that start with a dot.
    pub dotglob: bool,
    /// What it can leave behind in its shell, with what it has found there.
    pub left: Left,
}

/// Stands for the home directory, wherever it is: an absolute path that no text can hold.
pub const HOME: &str = "/\u{1}home";

/// Stands for the name of a pipe, as no file is called.
pub const PIPE: &str = "/dev/fd/pipe";
