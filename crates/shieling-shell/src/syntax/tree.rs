//! The tree: what the grammar makes of a text. Words stay as they are written; their pieces are read
//! when they are needed.

use std::cell::OnceCell;
use std::rc::Rc;

/// A stretch of the text, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Range {
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// A whole text.
#[derive(Debug, Clone)]
pub(crate) struct Program {
    pub(crate) list: CompoundList,
    /// The bodies of its here-documents, in order.
    pub(crate) documents: Vec<Document>,
    /// The first construct that a plain `sh` reads otherwise than bash does.
    pub(crate) only_bash: Option<OnlyBash>,
}

/// A construct that a plain `sh` (dash, ash) reads otherwise than bash does.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OnlyBash {
    /// The byte at which it begins.
    pub(crate) at: usize,
    /// How it is written.
    pub(crate) construct: &'static str,
}

/// The body of a here-document.
#[derive(Debug, Clone, Default)]
pub(crate) struct Document {
    pub(crate) text: String,
    pub(crate) range: Range,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Separator {
    /// `&`
    Async,
    /// `;` or a line end
    Sequence,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct CompoundList(pub(crate) Vec<(AndOrList, Separator)>);

impl CompoundList {
    /// The stages of a list that is one pipeline of simple commands, each with a name.
    pub(crate) fn simple_stages(&self) -> Option<Vec<&SimpleCommand>> {
        let [(list, Separator::Sequence)] = self.0.as_slice() else {
            return None;
        };
        let stages = list.first.seq.iter().map(|command| match command {
            Command::Simple(simple) => Some(simple).filter(|simple| simple.name.is_some()),
            Command::Compound(..) | Command::Function(_) => None,
        });
        let stages = stages.collect::<Option<Vec<_>>>()?;
        list.additional.is_empty().then_some(stages)
    }
}

#[derive(Debug, Clone)]
pub(crate) struct AndOrList {
    pub(crate) first: Pipeline,
    /// What `&&` and `||` add.
    pub(crate) additional: Vec<Pipeline>,
    /// Whether it is `&&` alone that adds.
    pub(crate) all_and: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Pipeline {
    pub(crate) seq: Vec<Command>,
    /// Whether `!` or `time` stands before it.
    pub(crate) marked: bool,
    /// Where it begins with `!(`, which under `extglob` is a pattern and no subshell.
    pub(crate) pattern: Option<Range>,
}

#[derive(Debug, Clone)]
pub(crate) enum Command {
    Simple(SimpleCommand),
    Compound(CompoundCommand, Vec<Redirect>),
    Function(FunctionDefinition),
}

#[derive(Debug, Clone)]
pub(crate) enum CompoundCommand {
    Arithmetic(Word),
    ArithmeticFor {
        expressions: Word,
        body: CompoundList,
    },
    BraceGroup(CompoundList),
    Subshell(CompoundList),
    For {
        variable: String,
        values: Option<Vec<Word>>,
        body: CompoundList,
        range: Range,
    },
    Case {
        value: Word,
        items: Vec<CaseItem>,
    },
    If {
        condition: CompoundList,
        then: CompoundList,
        elses: Vec<(Option<CompoundList>, CompoundList)>,
    },
    /// `while` and `until`
    While {
        condition: CompoundList,
        until: bool,
        body: CompoundList,
    },
    Coprocess {
        name: Option<String>,
        body: Box<Command>,
        range: Range,
    },
    Test {
        test: Test,
        range: Range,
    },
}

#[derive(Debug, Clone)]
pub(crate) struct CaseItem {
    pub(crate) patterns: Vec<Word>,
    pub(crate) list: CompoundList,
}

#[derive(Debug, Clone)]
pub(crate) struct FunctionDefinition {
    pub(crate) name: String,
    pub(crate) body: Box<CompoundCommand>,
    pub(crate) redirects: Vec<Redirect>,
    /// Its body and redirections.
    pub(crate) range: Range,
}

/// An expression of `[[ … ]]`.
#[derive(Debug, Clone)]
pub(crate) enum Test {
    Both(Box<Test>, Box<Test>),
    Not(Box<Test>),
    /// An operator such as `-f`, or none for a word alone.
    Unary(Option<String>, Word),
    Binary(String, Word, Word),
}

#[derive(Debug, Clone, Default)]
pub(crate) struct SimpleCommand {
    pub(crate) prefix: Vec<Item>,
    pub(crate) name: Option<Word>,
    pub(crate) suffix: Vec<Item>,
}

impl SimpleCommand {
    /// Adds what stands before the name, or behind it if there is one already.
    pub(super) fn push(&mut self, item: Item) {
        match self.name {
            None => self.prefix.push(item),
            Some(_) => self.suffix.push(item),
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) enum Item {
    Redirect(Redirect),
    Word(Word),
    Assignment(Assignment),
    ProcessSubstitution(CompoundList, Range),
}

#[derive(Debug, Clone)]
pub(crate) struct Assignment {
    pub(crate) name: String,
    /// The subscript, as it is written.
    pub(crate) subscript: Option<String>,
    pub(crate) value: AssignmentValue,
    pub(crate) append: bool,
    /// The whole assignment as it is written.
    pub(crate) word: Word,
}

#[derive(Debug, Clone)]
pub(crate) enum AssignmentValue {
    Scalar(Word),
    /// Each with its subscript, if one is written.
    Array(Vec<(Option<String>, Word)>),
}

#[derive(Debug, Clone)]
pub(crate) struct Redirect {
    pub(crate) descriptor: Option<u32>,
    /// The variable that is given the number of the descriptor (`{name}<file`), perhaps with a subscript.
    pub(crate) variable: Option<(String, Option<String>)>,
    pub(crate) kind: RedirectKind,
    pub(crate) target: Target,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RedirectKind {
    Read,
    /// `>`, `>>`, `>|`, `&>` and `&>>`
    Write,
    ReadAndWrite,
    DuplicateInput,
    DuplicateOutput,
    HereString,
    HereDocument,
}

#[derive(Debug, Clone)]
pub(crate) enum Target {
    Word(Word),
    ProcessSubstitution(CompoundList),
    /// Which of the documents, and whether its body is expanded.
    Document {
        number: usize,
        expands: bool,
    },
}

/// A word as it is written.
#[derive(Debug, Clone)]
pub(crate) struct Word {
    pub(crate) value: String,
    pub(crate) range: Range,
    /// Its pieces, once they were parsed: the tree is walked several times. Nothing if they cannot be.
    pub(crate) pieces: OnceCell<Option<Rc<[Piece]>>>,
}

impl Word {
    pub(crate) fn new(value: &str, range: Range) -> Self {
        Self {
            value: value.to_owned(),
            range,
            pieces: OnceCell::new(),
        }
    }
}

/// A piece of a word, with where it stands in the word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) kind: PieceKind,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PieceKind {
    Text(String),
    SingleQuoted(String),
    /// `$'…'`, not yet decoded.
    AnsiC(String),
    DoubleQuoted(Vec<Piece>),
    /// `$"…"`
    Translated(Vec<Piece>),
    Tilde(Tilde),
    Parameter(Box<Expansion>),
    /// What stands inside `$(…)`.
    Substitution(String),
    /// What stands inside backquotes, not yet unescaped.
    Backquoted(String),
    /// The character behind a backslash.
    Escaped(char),
    /// What stands inside `$((…))` or `$[…]`.
    Arithmetic(String),
    /// What stands inside `@(…)`, `!(…)` and their kind, which match names of files under `extglob`.
    Extended {
        text: String,
        /// Whether it may match a leading dot: one of its alternatives, or what stands behind it, may begin with one.
        dot: bool,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tilde {
    Home,
    /// `~+`
    Here,
    /// `~-`
    Before,
    /// Somebody's home, or a directory of the stack.
    Other,
}

/// A parameter of the shell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Parameter {
    Positional(u32),
    /// `@`, `*`, `#`, `?`, `-`, `$`, `!`, `0`
    Special(char),
    Named(String),
    Element {
        name: String,
        subscript: String,
    },
    /// `a[@]` and `a[*]`; true for `@`, which makes several words even in quotes.
    All {
        name: String,
        separate: bool,
    },
}

/// `${…}`, or `$x` for short.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Expansion {
    pub(crate) parameter: Parameter,
    /// `${!x}`: the value names the parameter that is meant.
    pub(crate) indirect: bool,
    pub(crate) operation: Operation,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Operation {
    Value,
    Length,
    /// `${x:-word}`
    Default(String),
    /// `${x:=word}`
    Assign(String),
    /// `${x:?word}`
    Error(String),
    /// `${x:+word}`
    Alternative(String),
    /// `${x:offset:length}`
    Substring(String),
    /// `${x%pattern}`, `${x%%pattern}`
    WithoutSuffix(String),
    /// `${x#pattern}`, `${x/pattern/replacement}`, `${x^pattern}` and the like: what is in them expands.
    Changed(String),
    /// `${x@P}`
    Prompt,
    /// `${x@Q}` and the other letters
    Transformed,
    /// `${!prefix*}`, `${!prefix@}`
    Names,
    /// `${!a[@]}`
    Keys,
}
