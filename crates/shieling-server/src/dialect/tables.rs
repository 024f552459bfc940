//! The tables of the dialects.

mod files;

use super::tool::{Argument, Conversion, DialectTool, Fixed, Style, may, must};
use crate::tools::Tool;

/// The table of a dialect.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) name: &'static str,
    pub(crate) style: Style,
    /// The tools for commands, and those for files. Empty if all tools have our names.
    pub(crate) tools: &'static [&'static [DialectTool]],
}

/// All dialects, the default first.
pub(crate) const DIALECTS: &[Table] = &[
    Table {
        name: "default",
        style: Style::Default,
        tools: &[],
    },
    Table {
        name: "codex",
        style: Style::Codex,
        tools: &[CODEX, &files::CODEX],
    },
    Table {
        name: "claude",
        style: Style::Claude,
        tools: &[CLAUDE, &files::CLAUDE],
    },
    Table {
        name: "camel",
        style: Style::Camel,
        tools: &[CAMEL, &files::CAMEL],
    },
    Table {
        name: "pydantic",
        style: Style::Pydantic,
        tools: &[PYDANTIC, &files::PYDANTIC],
    },
];

const FRESH: (&str, Fixed) = ("session", Fixed::Text(""));
const COMMAND: Argument = must("command", "command");
const TOKENS: Argument = Argument {
    how: Conversion::Tokens,
    description: "How much of the output to show, in tokens of about four bytes.",
    ..may("max_output_tokens", "max_output_bytes")
};

/// Each command is a process of its own, which continues after the call has yielded.
const CODEX: &[DialectTool] = &[
    DialectTool {
        name: "exec_command",
        tool: Tool::Shell,
        description: "Runs a command in a fresh bash, returning its output, or a session ID for what goes on after the yield time.",
        takes: Some(&[
            must("cmd", "command"),
            Argument {
                description: "The directory to run it in, absolute or from the workspace.",
                ..may("workdir", "cwd")
            },
            Argument {
                description: "Give it a terminal, for programs that need one, and for writing to it: editors, pagers, REPLs, password prompts.",
                ..may("tty", "tty")
            },
            Argument {
                default: Some(Fixed::Number(10_000)),
                description: "How long to wait for output before yielding, in milliseconds.",
                ..may("yield_time_ms", "timeout_ms")
            },
            TOKENS,
            may("justification", "description"),
        ]),
        fixed: &[FRESH],
    },
    DialectTool {
        name: "write_stdin",
        tool: Tool::ShellWrite,
        description: "Writes characters to a running session that has a terminal, and returns recent output. Without characters it only waits for output.",
        takes: Some(&[
            Argument {
                how: Conversion::Number,
                description: "The session ID that exec_command gave.",
                ..must("session_id", "job")
            },
            Argument {
                default: Some(Fixed::Text("")),
                description: "Characters to write; empty to poll.",
                ..may("chars", "text")
            },
            Argument {
                default: Some(Fixed::Number(250)),
                description: "How long to wait for output before yielding, in milliseconds.",
                ..may("yield_time_ms", "wait_ms")
            },
            TOKENS,
        ]),
        fixed: &[("enter", Fixed::Truth(false))],
    },
];

const CLAUDE: &[DialectTool] = &[
    DialectTool {
        name: "Bash",
        tool: Tool::Shell,
        description: "Executes a bash command in a persistent shell session, whose directory, variables and functions last from call to call.",
        takes: Some(&[
            COMMAND,
            Argument {
                default: Some(Fixed::Number(120_000)),
                description: "Timeout in milliseconds. The command is ended then; the session stays.",
                ..may("timeout", "timeout_ms")
            },
            may("description", "description"),
            Argument {
                description: "Run it in the background. Its output is read with BashOutput.",
                ..may("run_in_background", "background")
            },
        ]),
        fixed: &[("on_timeout", Fixed::Text("kill"))],
    },
    DialectTool {
        name: "BashOutput",
        tool: Tool::ShellView,
        description: "Retrieves output from a running or completed background shell: only what is new since the last check.",
        takes: Some(&[
            Argument {
                description: "The ID of the background shell.",
                ..must("bash_id", "job")
            },
            may("filter", "filter"),
        ]),
        fixed: &[],
    },
    DialectTool {
        name: "KillShell",
        tool: Tool::ShellKill,
        description: "Kills a running background shell by its ID, with every process that it started.",
        takes: Some(&[Argument {
            description: "The ID of the background shell.",
            ..must("shell_id", "job")
        }]),
        fixed: &[],
    },
];

const ID: Argument = Argument {
    how: Conversion::Alias,
    description: "A name of your choice for the terminal session of this command.",
    ..must("id", "job")
};

/// Each command is a process of its own, under a name that the caller chooses.
const CAMEL: &[DialectTool] = &[
    DialectTool {
        name: "shell_exec",
        tool: Tool::Shell,
        description: "Executes a shell command in a process of its own. Blocking, it returns the whole output; what is not done within the timeout goes on in the background. Non-blocking, it starts a session for interactive or long-running commands.",
        takes: Some(&[
            ID,
            COMMAND,
            Argument {
                how: Conversion::Not,
                default: Some(Fixed::Truth(true)),
                description: "Whether to wait for its end.",
                ..may("block", "background")
            },
            Argument {
                how: Conversion::Seconds,
                default: Some(Fixed::Number(20)),
                description: "How long to wait, in seconds; then it goes on in the background.",
                ..may("timeout", "timeout_ms")
            },
        ]),
        fixed: &[FRESH],
    },
    DialectTool {
        name: "shell_view",
        tool: Tool::ShellView,
        description: "Shows new output of a session since the last view. Does not wait.",
        takes: Some(&[ID]),
        fixed: &[],
    },
    DialectTool {
        name: "shell_write_to_process",
        tool: Tool::ShellWrite,
        description: "Sends a line of input to a session that runs in the background, and shows the output that followed.",
        takes: Some(&[
            ID,
            Argument {
                description: "The text to write to the process; Enter is pressed after it.",
                ..must("command", "text")
            },
        ]),
        fixed: &[("enter", Fixed::Truth(true))],
    },
    DialectTool {
        name: "shell_kill_process",
        tool: Tool::ShellKill,
        description: "Ends a session with every process that it started.",
        takes: Some(&[ID]),
        fixed: &[],
    },
    DialectTool {
        name: "shell_ask_user_for_help",
        tool: Tool::AskHuman,
        description: "Asks the human user for help with a session, or for an answer. Says so at once if nobody is there.",
        takes: Some(&[ID, must("prompt", "prompt")]),
        fixed: &[],
    },
];

const PYDANTIC: &[DialectTool] = &[DialectTool {
    name: "shell",
    tool: Tool::Shell,
    description: "Executes a shell command in a process of its own, and returns its output and exit code.",
    takes: Some(&[
        COMMAND,
        Argument {
            how: Conversion::Seconds,
            default: Some(Fixed::Number(120)),
            description: "Timeout in seconds. The command is ended then.",
            ..may("timeout", "timeout_ms")
        },
    ]),
    fixed: &[FRESH, ("on_timeout", Fixed::Text("kill"))],
}];
