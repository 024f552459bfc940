//! The arguments of the tools. A model reads the doc comments, and [`check`](super::check) enforces the bounds: the
//! schema is what is enforced.

mod files;

use schemars::JsonSchema;
use serde::Deserialize;

pub(crate) use files::{
    ApplyPatch, DeleteFile, EditFile, Encoding, Glob, Grep, Ls, Mode, MoveFile, ReadFile, Stat, WriteFile,
};

/// `shell`
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub(crate) struct Shell {
    /// Bash text to run.
    #[schemars(length(max = 262_144))]
    pub(crate) command: String,
    /// The persistent shell to run it in; a new name starts a new one, and several run in parallel. "" runs it in a fresh process, of which nothing stays.
    #[schemars(length(max = 64), default = "main_session")]
    pub(crate) session: Option<String>,
    /// How long to wait for its end, in milliseconds [default: the server's --timeout].
    #[schemars(range(min = 1, max = 3_600_000))]
    pub(crate) timeout_ms: Option<u64>,
    /// What happens then: it goes on as a background job, or it is ended.
    #[serde(default)]
    pub(crate) on_timeout: OnTimeout,
    /// Return at once; it goes on as a job that can be viewed, written to and killed. It is a process of its own, which starts in the session's directory with its exported variables; what it changes of them does not come back.
    #[serde(default)]
    pub(crate) background: bool,
    /// Give it a terminal, for programs that need one: editors, pagers, REPLs, password prompts. It is a process of its own, as with `background`, and goes on as a job once it has printed nothing for 5 s, unless `timeout_ms` is given.
    #[serde(default)]
    pub(crate) tty: bool,
    /// What it is for, in a few words, for the person who may be asked about it.
    #[schemars(length(max = 1_000))]
    pub(crate) description: Option<String>,
    /// Where to run it, absolute or from the workspace; only with session "".
    #[schemars(length(min = 1, max = 4_096))]
    pub(crate) cwd: Option<String>,
    /// A name for its job. A call with the name of a job that exists starts nothing and tells how that job is, so that a call can be repeated.
    #[schemars(length(min = 1, max = 64))]
    pub(crate) job: Option<String>,
    /// The terminal's lines.
    #[serde(default = "rows")]
    #[schemars(range(min = 1, max = 500))]
    pub(crate) rows: u16,
    /// The terminal's characters in a line.
    #[serde(default = "columns")]
    #[schemars(range(min = 1, max = 1_000))]
    pub(crate) columns: u16,
    /// How much to keep of each output stream, in bytes, head and tail; never more than the server's --max-output.
    #[schemars(range(min = 1, max = 1_073_741_824))]
    pub(crate) max_output_bytes: Option<u64>,
}

/// The session of calls that name none.
pub(crate) const MAIN_SESSION: &str = "main";

fn main_session() -> Option<String> {
    Some(MAIN_SESSION.to_owned())
}

fn rows() -> u16 {
    24
}

fn columns() -> u16 {
    80
}

/// What happens to a command whose time is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, serde::Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum OnTimeout {
    #[default]
    Background,
    Kill,
}

/// `shell_view`
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub(crate) struct ShellView {
    /// The job.
    #[schemars(length(min = 1, max = 64))]
    pub(crate) job: String,
    /// Show output from this byte on instead of what is new since the last view.
    pub(crate) cursor: Option<u64>,
    /// How long to wait for it, in milliseconds.
    #[serde(default)]
    #[schemars(range(max = 600_000))]
    pub(crate) wait_ms: u64,
    /// What to wait for: any new output, output that has come to rest, or the job's end. Its end ends each wait.
    #[serde(default)]
    pub(crate) until: Until,
    /// Show the screen as a person would see it; for jobs with a terminal.
    #[serde(default)]
    pub(crate) screen: bool,
    /// Give its terminal this many lines first.
    #[schemars(range(min = 1, max = 500))]
    pub(crate) rows: Option<u16>,
    /// Give its terminal this many characters in a line first.
    #[schemars(range(min = 1, max = 1_000))]
    pub(crate) columns: Option<u16>,
    /// Show only lines that match this regular expression.
    #[schemars(length(min = 1, max = 1_000))]
    pub(crate) filter: Option<String>,
    /// How much to show of each output stream, in bytes, head and tail.
    #[schemars(range(min = 1, max = 1_073_741_824))]
    pub(crate) max_output_bytes: Option<u64>,
}

/// What a view waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, serde::Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum Until {
    #[default]
    Output,
    Quiet,
    Exit,
}

/// `shell_write`
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub(crate) struct ShellWrite {
    /// The job: one started with `background` or `tty`.
    #[schemars(length(min = 1, max = 64))]
    pub(crate) job: String,
    /// Text to type.
    #[schemars(length(max = 1_048_576))]
    pub(crate) text: Option<String>,
    /// Whether to press Enter at the end [default: true with text, false with keys alone].
    pub(crate) enter: Option<bool>,
    /// Keys to press after the text, such as "C-c", "Up", "Escape", "F1".
    #[serde(default)]
    #[schemars(length(max = 100), inner(length(min = 1, max = 32)))]
    pub(crate) keys: Vec<String>,
    /// How long to wait for output that follows, in milliseconds.
    #[serde(default = "half_a_second")]
    #[schemars(range(max = 600_000))]
    pub(crate) wait_ms: u64,
    /// How much to show of each output stream, in bytes, head and tail.
    #[schemars(range(min = 1, max = 1_073_741_824))]
    pub(crate) max_output_bytes: Option<u64>,
}

fn half_a_second() -> u64 {
    500
}

/// `shell_wait`
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub(crate) struct ShellWait {
    /// The job.
    #[schemars(length(min = 1, max = 64))]
    pub(crate) job: String,
    /// Wait for output that matches this regular expression.
    #[schemars(length(min = 1, max = 1_000))]
    pub(crate) pattern: Option<String>,
    /// Wait until this TCP port of the loopback device takes connections. Only where commands share the host's network; elsewhere wait for a pattern.
    #[schemars(range(min = 1, max = 65_535))]
    pub(crate) port: Option<u16>,
    /// How long at most, in milliseconds.
    #[serde(default = "half_a_minute")]
    #[schemars(range(min = 1, max = 600_000))]
    pub(crate) timeout_ms: u64,
}

fn half_a_minute() -> u64 {
    30_000
}

/// `shell_kill`
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub(crate) struct ShellKill {
    /// The job.
    #[schemars(length(min = 1, max = 64))]
    pub(crate) job: String,
}

/// A tool that takes nothing.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub(crate) struct Nothing {}

/// `ask_human`
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub(crate) struct AskHuman {
    /// What to ask, with all that the person needs to know to answer.
    #[schemars(length(min = 1, max = 16_384))]
    pub(crate) prompt: String,
    /// The job that it is about: the person sees its screen, and may take its keyboard.
    #[schemars(length(min = 1, max = 64))]
    pub(crate) job: Option<String>,
}

/// `shell_output`
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub(crate) struct ShellOutput {
    /// The `output_id` of an outcome whose output was cut.
    #[schemars(length(min = 1, max = 64))]
    pub(crate) output_id: String,
    /// Which stream.
    #[serde(default)]
    pub(crate) stream: Stream,
    /// The first byte to show.
    #[serde(default)]
    pub(crate) cursor: u64,
    /// How much, in bytes.
    #[serde(default = "chunk")]
    #[schemars(range(min = 1, max = 262_144))]
    pub(crate) limit: u64,
}

fn chunk() -> u64 {
    32_768
}

/// An output stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, serde::Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum Stream {
    #[default]
    Stdout,
    Stderr,
}
