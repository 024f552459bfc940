//! The tree: what the grammar makes of a text. Words stay as they are written; their pieces are read
//! when they are needed.

/// A stretch of the text, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in super::super) struct Range {
    pub(in super::super) start: usize,
    pub(in super::super) end: usize,
}

/// A whole text.
#[derive(Debug, Clone)]
pub(in super::super) struct Program {
    pub(in super::super) list: CompoundList,
    /// The bodies of its here-documents, in order.
    pub(in super::super) documents: Vec<Document>,
}

/// The body of a here-document.
#[derive(Debug, Clone, Default)]
pub(in super::super) struct Document {
    pub(in super::super) text: String,
    pub(in super::super) range: Range,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Separator {
    /// `&`
    Async,
    /// `;` or a line end
    Sequence,
}

#[derive(Debug, Clone, Default)]
pub(in super::super) struct CompoundList(pub(in super::super) Vec<(AndOrList, Separator)>);

#[derive(Debug, Clone)]
pub(in super::super) struct AndOrList {
    pub(in super::super) first: Pipeline,
    /// What `&&` and `||` add.
    pub(in super::super) additional: Vec<Pipeline>,
    /// Whether it is `&&` alone that adds.
    pub(in super::super) all_and: bool,
}

#[derive(Debug, Clone)]
pub(in super::super) struct Pipeline {
    pub(in super::super) seq: Vec<Command>,
    /// Whether `!` or `time` stands before it.
    pub(in super::super) marked: bool,
}

#[derive(Debug, Clone)]
pub(in super::super) enum Command {
    Simple(SimpleCommand),
    Compound(CompoundCommand, Vec<Redirect>),
    Function(FunctionDefinition),
}

#[derive(Debug, Clone)]
pub(in super::super) enum CompoundCommand {
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
pub(in super::super) struct CaseItem {
    pub(in super::super) patterns: Vec<Word>,
    pub(in super::super) list: CompoundList,
}

#[derive(Debug, Clone)]
pub(in super::super) struct FunctionDefinition {
    pub(in super::super) name: String,
    pub(in super::super) body: Box<CompoundCommand>,
    pub(in super::super) redirects: Vec<Redirect>,
}

/// An expression of `[[ … ]]`.
#[derive(Debug, Clone)]
pub(in super::super) enum Test {
    Both(Box<Test>, Box<Test>),
    Not(Box<Test>),
    /// An operator such as `-f`, or none for a word alone.
    Unary(Option<String>, Word),
    Binary(String, Word, Word),
}

#[derive(Debug, Clone, Default)]
pub(in super::super) struct SimpleCommand {
    pub(in super::super) prefix: Vec<Item>,
    pub(in super::super) name: Option<Word>,
    pub(in super::super) suffix: Vec<Item>,
}

#[derive(Debug, Clone)]
pub(in super::super) enum Item {
    Redirect(Redirect),
    Word(Word),
    Assignment(Assignment),
    ProcessSubstitution(CompoundList, Range),
}

#[derive(Debug, Clone)]
pub(in super::super) struct Assignment {
    pub(in super::super) name: String,
    /// The subscript, as it is written.
    pub(in super::super) subscript: Option<String>,
    pub(in super::super) value: AssignmentValue,
    pub(in super::super) append: bool,
    /// The whole assignment as it is written.
    pub(in super::super) word: Word,
}

#[derive(Debug, Clone)]
pub(in super::super) enum AssignmentValue {
    Scalar(Word),
    /// Each with its subscript, if one is written.
    Array(Vec<(Option<String>, Word)>),
}

#[derive(Debug, Clone)]
pub(in super::super) struct Redirect {
    pub(in super::super) descriptor: Option<u32>,
    pub(in super::super) kind: RedirectKind,
    pub(in super::super) target: Target,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum RedirectKind {
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
pub(in super::super) enum Target {
    Word(Word),
    ProcessSubstitution(CompoundList),
    /// Which of the documents, and whether its body is expanded.
    Document {
        number: usize,
        expands: bool,
    },
}

/// A word as it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct Word {
    pub(in super::super) value: String,
    pub(in super::super) range: Range,
}

/// A piece of a word, with where it stands in the word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct Piece {
    pub(in super::super) kind: PieceKind,
    pub(in super::super) start: usize,
    pub(in super::super) end: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) enum PieceKind {
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
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Tilde {
    Home,
    Here,
    /// Somebody's home, or a directory of the stack.
    Other,
}

/// A parameter of the shell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) enum Parameter {
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
pub(in super::super) struct Expansion {
    pub(in super::super) parameter: Parameter,
    /// `${!x}`: the value names the parameter that is meant.
    pub(in super::super) indirect: bool,
    pub(in super::super) operation: Operation,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) enum Operation {
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
