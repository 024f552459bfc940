//! The arguments of the file tools.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `read_file`
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub(crate) struct ReadFile {
    /// The file, absolute or from the workspace.
    #[schemars(length(min = 1, max = 4_096))]
    pub(crate) path: String,
    /// The first line to show, counted from 0.
    #[serde(default)]
    #[schemars(range(max = 1_000_000_000_000_u64))]
    pub(crate) offset: u64,
    /// How many lines to show.
    #[serde(default = "lines")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub(crate) limit: u64,
}

fn lines() -> u64 {
    2_000
}

/// `write_file`
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub(crate) struct WriteFile {
    /// The file, absolute or from the workspace. Directories that are missing are made.
    #[schemars(length(min = 1, max = 4_096))]
    pub(crate) path: String,
    /// All that the file is to hold.
    #[schemars(length(max = 8_388_608))]
    pub(crate) content: String,
    /// How the content is written down: as text, or, for bytes that are none, in base64.
    #[serde(default)]
    pub(crate) encoding: Encoding,
    /// The `hash` that a read gave: refuse if the file has changed since.
    #[schemars(length(min = 1, max = 200))]
    pub(crate) hash: Option<String>,
    /// Refuse if there is something already.
    #[serde(default)]
    pub(crate) create_only: bool,
}

/// How content is written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum Encoding {
    #[default]
    Text,
    Base64,
}

/// `edit_file`
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub(crate) struct EditFile {
    /// The file, absolute or from the workspace.
    #[schemars(length(min = 1, max = 4_096))]
    pub(crate) path: String,
    /// The text to replace, exactly as it stands in the file, without line numbers. With a few lines around it, it occurs only once.
    #[schemars(length(max = 8_388_608))]
    pub(crate) old: String,
    /// The text to put there instead.
    #[schemars(length(max = 8_388_608))]
    pub(crate) new: String,
    /// Replace each occurrence, however many there are.
    #[serde(default)]
    pub(crate) replace_all: bool,
    /// The `hash` that a read gave: refuse if the file has changed since.
    #[schemars(length(min = 1, max = 200))]
    pub(crate) hash: Option<String>,
}

/// `apply_patch`
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub(crate) struct ApplyPatch {
    /// The patch: a unified diff with paths from the workspace, or a text that begins with `*** Begin Patch`.
    #[schemars(length(min = 1, max = 8_388_608))]
    pub(crate) patch: String,
    /// Take back what a unified diff has done.
    #[serde(default)]
    pub(crate) reverse: bool,
}

/// `ls`
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub(crate) struct Ls {
    /// The directory, absolute or from the workspace.
    #[serde(default = "here")]
    #[schemars(length(min = 1, max = 4_096))]
    pub(crate) path: String,
    /// How many entries to show.
    #[serde(default = "entries")]
    #[schemars(range(min = 1, max = 10_000))]
    pub(crate) limit: u64,
    /// Go on after this name, as the list before it says.
    #[schemars(length(min = 1, max = 4_096))]
    pub(crate) after: Option<String>,
}

fn here() -> String {
    ".".to_owned()
}

fn entries() -> u64 {
    1_000
}

/// `glob`
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub(crate) struct Glob {
    /// What the paths look like: `**/*.rs`, `src/*.{c,h}`. Without a slash it is looked for in every directory.
    #[schemars(length(min = 1, max = 4_096))]
    pub(crate) pattern: String,
    /// Where to look.
    #[serde(default = "here")]
    #[schemars(length(min = 1, max = 4_096))]
    pub(crate) path: String,
    /// Also what begins with a dot.
    #[serde(default)]
    pub(crate) hidden: bool,
    /// Also what .gitignore and its like leave out.
    #[serde(default)]
    pub(crate) ignored: bool,
    /// How many paths to show.
    #[serde(default = "entries")]
    #[schemars(range(min = 1, max = 10_000))]
    pub(crate) limit: u64,
    /// Go on after this path, as the list before it says.
    #[schemars(length(min = 1, max = 4_096))]
    pub(crate) after: Option<String>,
}

/// `grep`
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub(crate) struct Grep {
    /// A regular expression, as ripgrep has them: no look-around, no back-references.
    #[schemars(length(min = 1, max = 65_536))]
    pub(crate) pattern: String,
    /// A file, or a directory with all below it.
    #[serde(default = "here")]
    #[schemars(length(min = 1, max = 4_096))]
    pub(crate) path: String,
    /// Only files that match: `*.rs`, `src/**/*.{ts,tsx}`; with `!` in front, only those that do not.
    #[schemars(length(min = 1, max = 4_096))]
    pub(crate) glob: Option<String>,
    /// Only files of this kind.
    #[serde(rename = "type")]
    pub(crate) of: Option<FileType>,
    /// What to show: the lines that match, the files that have one, or how many lines match in each.
    #[serde(default)]
    pub(crate) mode: Mode,
    /// So many lines around each match [default: 0].
    #[schemars(range(max = 100))]
    pub(crate) context: Option<u64>,
    /// So many lines before each match [default: `context`].
    #[schemars(range(max = 100))]
    pub(crate) before: Option<u64>,
    /// So many lines after each match [default: `context`].
    #[schemars(range(max = 100))]
    pub(crate) after: Option<u64>,
    /// Whatever the case of letters.
    #[serde(default)]
    pub(crate) ignore_case: bool,
    /// Take the pattern as it stands, not as a regular expression.
    #[serde(default)]
    pub(crate) literal: bool,
    /// Let a match go over several lines.
    #[serde(default)]
    pub(crate) multiline: bool,
    /// Also what begins with a dot.
    #[serde(default)]
    pub(crate) hidden: bool,
    /// Also what .gitignore and its like leave out.
    #[serde(default)]
    pub(crate) ignored: bool,
    /// Show the numbers of lines.
    #[serde(default = "yes")]
    pub(crate) line_numbers: bool,
    /// How many matching lines, or files, to show.
    #[serde(default = "matches")]
    #[schemars(range(min = 1, max = 10_000))]
    pub(crate) limit: u64,
    /// Go on where the search before it has stopped, as it says.
    #[schemars(length(min = 1, max = 8_192))]
    pub(crate) cursor: Option<String>,
}

fn yes() -> bool {
    true
}

fn matches() -> u64 {
    200
}

/// What a search shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum Mode {
    #[default]
    Content,
    Files,
    Count,
}

/// A kind of files, by the names that ripgrep has for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum FileType {
    C,
    Cpp,
    Cs,
    Css,
    Go,
    Html,
    Java,
    Js,
    Json,
    Kotlin,
    Lua,
    WorkplaceFactory,
    Md,
    Php,
    Py,
    Ruby,
    Rust,
    Sh,
    Sql,
    Swift,
    Toml,
    Ts,
    Txt,
    Xml,
    Yaml,
}

impl FileType {
    /// Returns the globs for the names of such files.
    pub(crate) fn globs(self) -> &'static [&'static str] {
        match self {
            Self::C => &["*.[chH]", "*.[ch].in"],
            Self::Cpp => &["*.{C,H,cc,cpp,cxx,hh,hpp,hxx,inl}"],
            Self::Cs => &["*.cs"],
            Self::Css => &["*.{css,scss}"],
            Self::Go => &["*.go"],
            Self::Html => &["*.{htm,html,ejs}"],
            Self::Java => &["*.{java,jsp,jspx,properties}"],
            Self::Js => &["*.{js,jsx,mjs,cjs,vue}"],
            Self::Json => &["*.{json,jsonl,sarif}", "composer.lock"],
            Self::Kotlin => &["*.{kt,kts}"],
            Self::Lua => &["*.lua"],
            Self::WorkplaceFactory => &["[Mm]akefile*", "GNUmakefile*", "*.{mk,mak}"],
            Self::Md => &["*.{md,markdown,mdown,mdx,mkd,mkdn}"],
            Self::Php => &["*.{php,php3,php4,php5,php7,php8,pht,phtml}"],
            Self::Py => &["*.{py,pyi}"],
            Self::Ruby => &["*.{rb,rbw,gemspec}", "Gemfile", "Rakefile", "config.ru"],
            Self::Rust => &["*.rs"],
            Self::Sh => &[
                "*.{sh,bash,zsh,ksh,csh,tcsh}",
                ".{bash,zsh}rc",
                ".profile",
                ".bash_profile",
            ],
            Self::Sql => &["*.{sql,psql}"],
            Self::Swift => &["*.swift"],
            Self::Toml => &["*.toml", "Cargo.lock"],
            Self::Ts => &["*.{ts,tsx,mts,cts}"],
            Self::Txt => &["*.txt"],
            Self::Xml => &["*.{xml,xsd,xsl,xslt,rng,sch,dtd}"],
            Self::Yaml => &["*.{yaml,yml}"],
        }
    }
}

/// `stat`
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub(crate) struct Stat {
    /// What to look at, absolute or from the workspace.
    #[schemars(length(min = 1, max = 4_096))]
    pub(crate) path: String,
}

/// `delete_file`
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub(crate) struct DeleteFile {
    /// What to remove, absolute or from the workspace. Of a link, the link itself.
    #[schemars(length(min = 1, max = 4_096))]
    pub(crate) path: String,
    /// Also a directory that is not empty, with all that is in it.
    #[serde(default)]
    pub(crate) recursive: bool,
}

/// `move_file`
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub(crate) struct MoveFile {
    /// What to move, absolute or from the workspace.
    #[schemars(length(min = 1, max = 4_096))]
    pub(crate) from: String,
    /// Where to. A directory that is there gets it inside.
    #[schemars(length(min = 1, max = 4_096))]
    pub(crate) to: String,
    /// Replace a file that is there.
    #[serde(default)]
    pub(crate) replace: bool,
}
