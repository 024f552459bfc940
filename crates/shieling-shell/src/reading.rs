//! The result of reading a shell text: its commands and their effects, each with its span.

use std::collections::BTreeSet;

use crate::carried::CarriedState;
use crate::span::Span;
use crate::word::Word;

/// Why a command cannot be judged for certain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Doubt {
    /// The text does not tell which command runs.
    Launch,
    /// A program runs code that the text does not show.
    Program,
    /// A build tool, a test runner or a package manager runs code of the project.
    Project,
    /// A program is given an argument that its table does not list.
    Argument,
    /// A program is given an option that can run or change something.
    Setting,
    /// A variable is set that changes what later commands run.
    Variable,
    /// A variable is set that changes what interpreters and build tools load.
    Loading,
    /// A variable names a command that other programs start. The command itself was followed.
    Delegate,
    /// A variable is passed to programs, and its effect on them is not known.
    Environment,
}

/// Stands in messages for an argument that comes from data.
pub const MORE: &str = "…";

/// An action of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Reads a path.
    Reads(Word),
    /// Only names a path.
    Names(Word),
    /// Writes, makes, removes or changes a path.
    Writes(Word),
    /// Moves a path or links to it, which gives its content another name.
    Renames(Word),
    /// Reads a directory as a whole.
    Walks(Walk),
    /// Changes something in several parts.
    InParts(Parts),
    /// Reads something of git's store, by revision syntax.
    Revision(Word),
    /// Changes something that is not a path: processes, the clock, the repository.
    Changes(String),
    /// Runs a file as code.
    RunsFile(Word),
    /// Holds code in another language.
    Code(Word),
    /// Passes a word to a program whose table does not describe each argument. The word, or a part of it, may be a
    /// path.
    Mentions(Word),
    /// Receives a word that could expand to an option; true if an option of the program can start another program.
    MaybeOption(Word, bool),
    /// Connects to the network.
    Network(String),
    /// An action that cannot be determined, with the reason.
    Doubt(Doubt, String),
}

/// A change in several steps. If a later step fails, the earlier ones remain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parts {
    /// What is changed.
    pub of: PartsOf,
    /// The working directory of the command, if it is certain.
    pub here: Option<String>,
}

/// The object of a change in several steps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PartsOf {
    /// A path that is removed or moved, with everything below it.
    Tree(Word),
    /// A repository and then its settings. Holds the command that changes no settings.
    Settings(String),
}

/// A directory that a command reads recursively, and the entries that it selects there.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Walk {
    /// The directory as the text names it; `None` for the working directory.
    pub root: Option<Word>,
    /// Whether the root may be a revision instead, in which case the whole working directory is read.
    pub or_revision: bool,
    /// Files that match one of these are read; all files if it is empty.
    pub only: Vec<Pick>,
    /// Entries that match one of these are skipped.
    pub except: Vec<Pick>,
    /// Whether names that start with a dot are skipped.
    pub undotted: bool,
    /// Whether dotted names and entries listed in `.gitignore` and similar files are skipped.
    pub ignoring: bool,
    /// Whether only files tracked by git are read.
    pub tracked: bool,
    /// Whether the names of directories that it finds are passed to a command that may list or read them.
    pub gives_directories: bool,
    /// Where the names that it finds are split before they are used.
    pub splits: Splits,
    /// Whether it prints names only and no content.
    pub names: bool,
    /// The greatest depth, if it is limited.
    pub depth: Option<usize>,
    /// The working directory of the command, if it is certain.
    pub here: Option<String>,
    /// Whether it is recursive only if a wildcard matches a name that is an option.
    pub if_dashed: bool,
}

/// Directories whose file names a text splits into words where it expands them, or hands to programs that could take
/// them for options.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct NamesIn {
    /// The directory: absolute, or relative to where the text starts; empty for that one.
    pub directory: String,
    /// Whether the names in the directories below it are used as well.
    pub deep: bool,
    /// Directories whose contents are not: their names, or behind `./` their paths from there.
    pub without: BTreeSet<String>,
    /// Whether only the names are used that git tracks.
    pub tracked: bool,
}

/// What is known of the file names that a text uses ([`Reading::names_used`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FileNames {
    /// Nothing: they may hold blanks, and begin with a dash.
    #[default]
    Any,
    /// None of them holds a character that the shell or `xargs` splits at, takes off or expands, and none begins with a
    /// dash.
    Plain,
}

impl FileNames {
    /// Returns whether a name is [`FileNames::Plain`].
    pub fn is_plain(name: &str) -> bool {
        let special = |character: char| {
            character.is_whitespace() || character.is_control() || "\'\"\\*?[]$`~!(){}|&;<>".contains(character)
        };
        !name.starts_with('-') && !name.contains(special)
    }
}

/// Where a list of names is split.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Splits {
    /// Nowhere: no name contains the separator.
    #[default]
    Nowhere,
    /// At the ends of lines.
    Lines,
    /// At ends of lines and blanks; quotes and backslashes are special.
    Blanks,
}

/// A pattern by which a recursive command selects entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pick {
    /// The pattern, in which `*`, `?` and `[…]` are wildcards.
    pub pattern: String,
    /// Whether it is matched against the path from the root, where wildcards match slashes. Otherwise it is matched
    /// against the name.
    pub path: bool,
    /// What it chooses among.
    pub kind: PickKind,
}

/// The entries that a pattern applies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PickKind {
    /// Entries that are not directories.
    Files,
    /// Directories with their content.
    Trees,
    /// Files and directories, without the content of the directories.
    Entries,
    /// Files and directories with their content.
    All,
}

/// The syntax through which a command does something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Via {
    /// An operand, or the program by itself.
    Operand,
    /// An option.
    Option,
    /// A redirection of the shell.
    Redirection,
    /// An assignment.
    Assignment,
}

/// An action with its object and its span.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Effect {
    /// What is done.
    pub action: Action,
    /// What it is done to, as messages show it.
    pub object: String,
    /// Where the text says so.
    pub span: Span,
    /// The index of its command in [`Reading::commands`]; `None` for the shell itself.
    pub by: Option<usize>,
    /// By which way.
    pub via: Via,
}

/// The kind of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A program, found on the path or by its path.
    Program,
    /// A builtin of the shell.
    Builtin,
    /// A function that the text certainly defines before.
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
    /// Whether it reads nothing from a directory among its operands.
    pub files: bool,
    /// Whether the arguments that are not in the text are names that an earlier program found.
    pub fed: bool,
}

impl Invocation {
    /// Returns its words as messages show them.
    pub fn shown(&self) -> String {
        self.argv.iter().map(Word::shown).collect::<Vec<_>>().join(" ")
    }

    /// Returns the name of the program without its directories, if the text tells it.
    pub fn program(&self) -> Option<String> {
        self.argv.first()?.program_name()
    }
}

/// A directory that relative paths of the text may start from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Base {
    /// A known directory: absolute, or relative to where the text starts.
    At(String),
    /// A directory that the text does not tell.
    Unknown,
}

/// The commands and effects of one shell text.
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
    /// The file names that are split into words or may be options: were they known to be [`FileNames::Plain`], more
    /// could be told of the text.
    pub names_used: BTreeSet<NamesIn>,
    /// Whether they are known to be that.
    pub names_are_plain: bool,
    /// The shell state after the text, for texts that run later in the same shell.
    pub left: CarriedState,
}

/// Stands for the name of a pipe, as no file is called.
pub const PIPE: &str = "/dev/fd/pipe";
