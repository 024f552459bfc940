//! The command line: what can be asked of `shieling`, and its help.
//!
//! Anything wrong in it ends with status 125, since 2 could be the command's own status.

mod settings;
mod tools;
mod values;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, CommandFactory as _, Parser, Subcommand};

pub(crate) use settings::Settings;
pub(crate) use tools::Tools;
pub(crate) use values::{
    AllowedHost, Approval, Assignment, Changes, Chosen, ContainerUser, Cpus, Engine, EnvironmentName, Home, Isolation,
    Mounted, NamedSecret, Network, Pids, PolicyName, Prefix, Preset, Pull, Rate, Size, Speed, Timeout, VariableName,
    WorkspaceCopy, is_below_root,
};

/// The place where AI agents work: every command is judged, contained, bounded, recorded and
/// reported truthfully.
#[derive(Debug, Parser)]
#[command(
    name = "shieling",
    version,
    max_term_width = 100,
    after_help = "Options can also stand in `shieling.toml`: yours in $XDG_CONFIG_HOME/shieling/ (or \
                  ~/.config/shieling/), and one in the workspace, which may only tighten. \
                  `shieling COMMAND --help` tells more."
)]
pub(crate) struct Cli {
    /// What is asked.
    #[command(subcommand)]
    pub(crate) command: Subcommands,
}

/// The ways to use Shieling.
#[derive(Debug, Subcommand)]
pub(crate) enum Subcommands {
    /// Run one command and exit as it did
    #[command(after_long_help = EXEC_HELP)]
    Exec(Box<Exec>),
    /// Open an interactive shell for yourself, where commands would run
    ///
    /// You see what a command sees, and nothing more can be changed. Nobody reads what you type: what
    /// holds is what the kernel enforces. So `--readonly`, `--ignore` and `--allow` hold in `sandbox`,
    /// by a view of files of its own, and are refused in `local`; what only a reading of each command
    /// could enforce is refused everywhere: `--deny`, policy files, `--approval always`, `--rate`.
    /// `--timeout` ends the whole shell, and counts only if it is given on the command line.
    #[command(after_long_help = SHELL_HELP)]
    Shell(Box<Shell>),
    /// Serve an agent over MCP, on standard input and output
    ///
    /// An agent's client starts this, and gives its model the tools: persistent sessions, jobs, terminals,
    /// and files, which are read, searched, edited and patched as commands see them. Where a person has to be asked, the client is given the question (MCP elicitation). Every
    /// command is recorded, in a file for each workspace in $XDG_STATE_HOME/shieling/audit (or ~/.local/state/...), unless
    /// `--audit` names another file.
    #[command(after_long_help = MCP_HELP)]
    Mcp(Box<Mcp>),
    /// Step into a server that an agent works with, from a terminal of your own
    ///
    /// Without JOB it lists the sessions and jobs of your servers (`shieling mcp`), and waits for questions that
    /// an agent has for a person, and for approvals that a client cannot ask for, to answer them. With JOB it takes that job's keyboard, if it has a
    /// terminal: what the agent types meanwhile is refused, and Ctrl-] gives the keyboard back. A job
    /// without a terminal is looked at. What is shown is drawn or escaped, never copied.
    #[command(after_long_help = ATTACH_HELP)]
    Attach(Attach),
    /// Judge a command and explain; runs nothing
    #[command(after_long_help = WHY_HELP)]
    Why(Box<Why>),
    /// Print the environment as a model would be told of it
    Describe(Box<Describe>),
    /// Try which layers this host and this version can enforce
    #[command(after_long_help = DOCTOR_HELP)]
    Doctor(Doctor),
    /// Check policy files and show presets
    #[command(subcommand)]
    Policy(Policy),
    /// Look at staged change sets, apply them, discard them
    ///
    /// A set is what commands changed under `--changes commit`, `review` or `discard`, as far as it did not go into
    /// the workspace, or can be undone. Sets are kept in the state directory, the last 50 committed ones among them.
    #[command(subcommand)]
    Changes(ChangeSets),
    /// Take a committed change set back out of the workspace
    ///
    /// All of it or nothing: if something changed since in the same places, nothing is undone. Its changes then wait
    /// again, and can be applied again.
    Undo {
        /// The set's id, which the outcome named
        id: String,
    },
    /// Read the audit log, stored output and recordings
    #[command(subcommand)]
    Log(Log),
    /// Print completions for a shell, to be sourced
    #[command(after_help = "Example: shieling completions bash > ~/.local/share/bash-completion/completions/shieling")]
    Completions(Completions),
}

const EXEC_HELP: &str = "\
Exit status:
  the command's own   when it ended by itself
  128+N               when signal N ended it
  124                 when its time was over
  126                 when it was denied, or needed an approval that nobody gave
  125                 when shieling itself failed: nothing was started, or the command
                      succeeded and its changes could not be committed (`--changes commit`)
SIGTERM, SIGINT, SIGHUP and SIGQUIT to shieling: all of the command's processes get SIGTERM, and
after 5 s SIGKILL; at once with the second signal.

Examples:
  shieling exec 'cargo test 2>&1 | tail -5'
  shieling exec --readonly --timeout 10s -- git log --oneline
  shieling exec --json --network host --memory 1GiB -- make check
  shieling exec --env local --approval always -- docker ps";

const SHELL_HELP: &str = "\
Exit status:
  that of the shell; 125 when shieling itself failed: nothing was started, or the shell ended
  with 0 and its changes could not be committed (`--changes commit`)

Examples:
  shieling shell
  shieling shell --readonly --ignore .env
  shieling shell --env local";

const MCP_HELP: &str = "\
It ends when its client goes away, with every session and job.

Exit status:
  0      the client went away
  128+N  signal N ended it
  125    something is wrong in the options or in a policy file, or it could not be served

Examples:
  shieling mcp --print-config claude-code
  shieling mcp --workspace ~/src/app --readonly
  shieling mcp --dialect codex --network host
  shieling mcp --dialect claude --exclude-tool Bash --require-write-approval";

const MCP_TIMEOUT: &str = "\
Wait this long for a command: `500ms`, `30s`, `2m`, `1h` [default: 60s]

What is not done then goes on as a job, which the agent can look at and end, unless its call says to \
end it. A call may name another time. A bare number is seconds, and 0 is refused.";

const MCP_AUDIT: &str = "\
Append who asked what and what happened to this file, as hash-chained JSON lines \
[default: a file for each workspace, audit/mcp-NAME-DIGEST.jsonl in the state directory]";

const MCP_AUDIT_LONG: &str = "\
Append who asked what and what happened to this file, as hash-chained JSON lines [default: \
$XDG_STATE_HOME/shieling/audit/mcp-NAME-DIGEST.jsonl, or ~/.local/state/..., a file for each workspace]

A server always records. If it cannot, nothing starts. `shieling log verify FILE` checks the chain. The default \
log is rotated at 16 MiB, and four older files are kept beside it, as .1 to .4; a FILE of yours is never rotated \
and takes 1 GiB.";

const ATTACH_HELP: &str = "\
A server lets in the user that it runs as, and no command that runs under Shieling.

Exit status:
  0    you have seen enough
  125  there is no such server or job, or its keyboard is somebody else's

Examples:
  shieling attach
  shieling attach j3
  shieling attach --look j3";

const DOCTOR_HELP: &str = "\
Starts sandboxes, and commands in them, and shows what holds as seen from inside.

Exit status:
  0    commands run in the default environment, `sandbox`, with all of its layers
  1    they do not; what is missing is shown, with what of this host may be the cause, and its fix

With --json, one object, to which fields may be added:
  version, works (as the exit status says)
  layers   a list of {layer, state, detail}; state is `ok`, `missing`, or `unknown` where no sandbox
           came to it. The layers are: policy, bash, sandbox (the default tier), its parts by the
           names that `confinement` has for them (user, pid, ipc, uts, cgroup, network, mount,
           landlock, landlock.tcp, landlock.scope, seccomp, capabilities), limit.memory, limit.pids,
           limit.cpu, sandbox.landlock (the lesser tier), local, ssh, memory, container
  causes   a list of {cause, because, fix}, looked up and not tried
  host     what was looked up";

const WHY_HELP: &str = "\
Exit status:
  0    allow
  3    ask
  4    deny
  125  something is wrong in the options or in a policy file

Examples:
  shieling why --readonly 'git log | tee notes.txt'
  shieling why --json --deny 'git push' 'git -C sub push --force'";

/// Where the options come from.
#[derive(Debug, Clone, Args)]
pub(crate) struct Source {
    /// The working directory and only writable place [default: current directory]
    #[arg(long, value_name = "DIR", help_heading = "Place")]
    pub(crate) workspace: Option<PathBuf>,

    /// Let the workspace's shieling.toml loosen as well as tighten
    ///
    /// A workspace is untrusted: its shieling.toml may add policies, deny and ignore entries and
    /// lower limits. Everything else in it is an error, unless you wrote that file and say so here.
    #[arg(long, help_heading = "Configuration")]
    pub(crate) trust_workspace_config: bool,

    /// Read no shieling.toml at all
    #[arg(long, help_heading = "Configuration", conflicts_with = "trust_workspace_config")]
    pub(crate) no_config: bool,

    /// What the command line sets.
    #[command(flatten)]
    pub(crate) settings: Settings,
}

/// `shieling exec`
#[derive(Debug, Args)]
pub(crate) struct Exec {
    /// Where the options come from.
    #[command(flatten)]
    pub(crate) source: Source,

    /// Print one outcome object on stdout instead of the streams
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,

    /// Give the command an end of file instead of our standard input
    ///
    /// For loops that read a list: `while read name; do shieling exec --no-stdin ...; done`.
    #[arg(long, help_heading = "Output")]
    pub(crate) no_stdin: bool,

    /// One argument is shell text; several are the words of one command
    ///
    /// What follows the first word belongs to the command: `shieling exec git log --oneline`.
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

/// `shieling shell`
#[derive(Debug, Args)]
pub(crate) struct Shell {
    /// Where the options come from.
    #[command(flatten)]
    pub(crate) source: Source,
}

/// `shieling mcp`, in which some of the shared options mean something of its own.
#[derive(Debug, Args)]
#[command(
    mut_arg("approval", |arg| arg.help(
        "Who is asked, through the agent's client or else at `shieling attach`, before a command starts [default: policy; local: always]",
    )),
    mut_arg("timeout", |arg| arg
        .help("Wait this long for a command: `500ms`, `30s`, `2m`, `1h` [default: 60s]")
        .long_help(MCP_TIMEOUT)),
    mut_arg("audit", |arg| arg.help(MCP_AUDIT).long_help(MCP_AUDIT_LONG))
)]
pub(crate) struct Mcp {
    /// Where the options come from.
    #[command(flatten)]
    pub(crate) source: Source,

    /// The names that its tools have
    #[arg(long, value_name = "NAME", default_value = "default", help_heading = "Protocol",
          value_parser = clap::builder::PossibleValuesParser::new(shieling_server::Dialect::names()))]
    pub(crate) dialect: String,

    /// Which tools it offers.
    #[command(flatten)]
    pub(crate) tools: Tools,

    /// Print how a client is told of this server, and serve nothing
    #[arg(long, value_name = "CLIENT", help_heading = "Protocol",
          value_parser = clap::builder::PossibleValuesParser::new(crate::clients::names()))]
    pub(crate) print_config: Option<String>,
}

/// `shieling why`
#[derive(Debug, Args)]
pub(crate) struct Why {
    /// Where the options come from.
    #[command(flatten)]
    pub(crate) source: Source,

    /// Print the verdict as one JSON object
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,

    /// One argument is shell text; several are the words of one command
    ///
    /// What follows the first word belongs to the command: `shieling why git log --oneline`.
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

/// `shieling describe`
#[derive(Debug, Args)]
pub(crate) struct Describe {
    /// Where the options come from.
    #[command(flatten)]
    pub(crate) source: Source,

    /// Print the description as one JSON object
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}

/// `shieling attach`
#[derive(Debug, Args)]
pub(crate) struct Attach {
    /// The job to look at, or to take the keyboard of
    #[arg(value_name = "JOB")]
    pub(crate) job: Option<String>,

    /// Only look, also at a job with a terminal
    #[arg(long, requires = "job")]
    pub(crate) look: bool,

    /// The server, if more than one of yours has such a job: the number of its process
    #[arg(long, value_name = "PID")]
    pub(crate) server: Option<String>,
}

/// `shieling doctor`
#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Print the findings as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// `shieling policy`
#[derive(Debug, Subcommand)]
pub(crate) enum Policy {
    /// Load a policy and run the examples in it
    ///
    /// Exits 0 if it loads and every example holds, and 125 otherwise.
    Check {
        /// The policy file, TOML
        file: PathBuf,
        /// Print the findings as one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Print a preset as TOML
    Show {
        /// The preset's name
        preset: String,
    },
}

/// `shieling changes`
#[derive(Debug, Subcommand)]
pub(crate) enum ChangeSets {
    /// List the sets, the newest first
    List {
        /// Print one JSON object for each
        #[arg(long)]
        json: bool,
    },
    /// Show what a set changes, and why something in it was held back
    Show {
        /// The set's id
        id: String,
        /// Only these paths, relative to the workspace; repeatable
        #[arg(long, value_name = "PATH")]
        only: Vec<PathBuf>,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Move a set, or a part of it, into its workspace
    ///
    /// All of it or nothing. What is held back stays in the set, and if the workspace changed in the same places and
    /// the texts cannot be merged, nothing is applied; exits with 1 then.
    Apply {
        /// The set's id
        id: String,
        /// Only these paths, relative to the workspace, and what lies below them; repeatable
        #[arg(long, value_name = "PATH")]
        only: Vec<PathBuf>,
        /// Apply what was held back too
        #[arg(long)]
        accept_held_back: bool,
        /// Take the set's version where the workspace changed as well; `shieling undo` brings the other back
        #[arg(long)]
        overwrite: bool,
    },
    /// Remove a set; its changes are gone, or can no longer be undone
    Discard {
        /// The set's id
        id: String,
    },
}

/// `shieling log`
#[derive(Debug, Subcommand)]
pub(crate) enum Log {
    /// Print the records of an audit file
    Show {
        /// The audit file, JSON lines
        file: PathBuf,
        /// Print the records as they stand in the file
        #[arg(long)]
        json: bool,
        /// Print only the last N records
        #[arg(short = 'n', value_name = "N")]
        last: Option<usize>,
    },
    /// Check the hash chain of an audit file
    ///
    /// Exits 0 if the chain is whole, and 1 with the first broken line otherwise. The chain alone
    /// cannot tell that its last records were cut off, or that all of it was written anew: note the
    /// head that is printed, and give it with `--head` the next time.
    Verify {
        /// The audit file, JSON lines
        file: PathBuf,
        /// The head that an earlier check printed
        #[arg(long, value_name = "NUMBER:DIGEST")]
        head: Option<String>,
    },
    /// Print the whole output of a command whose outcome left some out
    ///
    /// `--cursor` starts at that byte; where it ended is told on stderr, to go on from there.
    Output {
        /// The `output_id` of the outcome
        id: String,
        /// Which stream
        #[arg(long, value_name = "NAME", default_value = "stdout", value_parser = ["stdout", "stderr"])]
        stream: String,
        /// The first byte to print
        #[arg(long, value_name = "BYTE", default_value_t = 0)]
        cursor: u64,
        /// Print at most this much [default: all]
        #[arg(long, value_name = "SIZE")]
        limit: Option<Size>,
    },
    /// Play a recording on the terminal, with its timing
    ///
    /// What it shows is drawn, never copied: a recording can do nothing to your terminal. Ctrl-C ends
    /// it. Where standard output is no terminal, its text is printed.
    Replay(Replay),
}

/// `shieling log replay`
#[derive(Debug, Args)]
pub(crate) struct Replay {
    /// A file in asciicast v2, or the id of a recording [default: lists them, newest first]
    #[arg(value_name = "FILE|ID")]
    pub(crate) recording: Option<PathBuf>,
    /// How much faster than it was: `2`, `0.5`
    #[arg(long, value_name = "N", default_value = "1", requires = "recording")]
    pub(crate) speed: Speed,
    /// Shorten pauses to this, before they are played faster [default: what the recording says]
    #[arg(long, value_name = "DURATION", requires = "recording", value_parser = shieling::units::parse_duration)]
    pub(crate) idle: Option<std::time::Duration>,
    /// Show what happened besides: commands, approvals, that somebody typed
    #[arg(long, requires = "recording")]
    pub(crate) marks: bool,
    /// Print its text at once, without what moved it about the screen
    #[arg(long, requires = "recording", conflicts_with_all = ["speed", "idle"])]
    pub(crate) as_text: bool,
}

/// `shieling completions`
#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// The shell
    pub(crate) shell: clap_complete::Shell,
}

/// Reads the words of the command line, of which the first is the program's name.
///
/// Options of `why` may also follow a whole text: `why 'git push' --json`.
pub(crate) fn parse(words: &[OsString]) -> Result<Cli, clap::Error> {
    let cli = Cli::try_parse_from(words)?;
    if let Subcommands::Why(why) = &cli.command
        && let [text, rest @ ..] = &why.command[..]
        && !rest.is_empty()
        && text.contains(char::is_whitespace)
        && let Some((before, _)) = words.split_at_checked(words.len().saturating_sub(why.command.len()))
        && before.last().is_some_and(|last| last != "--")
    {
        let last = ["--".into(), OsString::from(text)];
        let rest = rest.iter().map(OsString::from);
        let moved = Cli::try_parse_from(before.iter().cloned().chain(rest).chain(last)).ok();
        // Only if all that follows is options: else it belongs to a program whose path has a blank.
        let has_the_text_alone =
            |cli: &Cli| matches!(&cli.command, Subcommands::Why(why) if why.command == [text.clone()]);
        return Ok(moved.filter(has_the_text_alone).unwrap_or(cli));
    }
    Ok(cli)
}

/// Prints clap's answer to these words, which follow the program's name, help included. Says with which status to exit,
/// and what is wrong if `exec --json` asks for an object that holds it.
pub(crate) fn answer(words: &[OsString], mut error: clap::Error) -> (u8, Option<(String, Option<Chosen>)>) {
    if error.kind() == ErrorKind::ValueValidation && names_a_variable(&error) {
        // What was written may be a secret; what is wrong with it is told without it.
        error.insert(ContextKind::InvalidValue, ContextValue::String("…".to_owned()));
    }
    // Nobody is left to tell if even this cannot be written.
    let _ = error.print();
    match error.use_stderr() {
        false => (0, None),
        true => {
            let wanted = wants_an_object(words);
            (
                crate::words::FAILED,
                wanted.map(|environment| (summary(&error), environment)),
            )
        }
    }
}

/// What is wrong, without clap's advice.
fn summary(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let first = text.split("\n\n").next().unwrap_or_default();
    let first = first.strip_prefix("error: ").unwrap_or(first);
    first.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether these words ask `exec` for an object, before the first word of the command and as far as they can be read;
/// then with the environment that they name.
fn wants_an_object(words: &[OsString]) -> Option<Option<Chosen>> {
    let mut words = words.iter().map(|word| word.to_string_lossy());
    if words.next().as_deref() != Some("exec") {
        return None;
    }
    let cli = Cli::command();
    let takes_value = |name: &str| {
        let exec = cli.find_subcommand("exec");
        let mut arguments = exec.into_iter().flat_map(clap::Command::get_arguments);
        arguments.any(|arg| arg.get_long() == Some(name) && arg.get_action().takes_values())
    };
    let (mut wanted, mut environment) = (false, None);
    while let Some(word) = words.next() {
        match word.strip_prefix("--") {
            Some("json") => wanted = true,
            Some("") => break,
            Some("env") => environment = words.next().and_then(|value| value.parse().ok()),
            Some(name) if takes_value(name) => drop(words.next()),
            Some(name) => {
                if let Some(value) = name.strip_prefix("env=") {
                    environment = value.parse().ok();
                }
            }
            None if word.starts_with('-') => {}
            None => break,
        }
    }
    wanted.then_some(environment)
}

fn names_a_variable(error: &clap::Error) -> bool {
    match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(option)) => option.starts_with("--set-env") || option.starts_with("--pass-env"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_of_the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn options_after_the_first_word_belong_to_the_command() {
        let cli = Cli::try_parse_from(["shieling", "exec", "--json", "git", "log", "--json", "-n", "1"]).unwrap();
        let Subcommands::Exec(exec) = cli.command else {
            panic!("not exec")
        };
        assert!(exec.json);
        assert_eq!(exec.command, ["git", "log", "--json", "-n", "1"]);
    }

    #[test]
    fn a_misspelt_option_is_not_taken_for_a_command() {
        assert!(Cli::try_parse_from(["shieling", "exec", "--timout", "3s", "ls"]).is_err());
    }

    #[test]
    fn why_takes_words_as_exec_does() {
        let words = ["shieling", "why", "--readonly", "git", "log", "--json", "--oneline"];
        let Subcommands::Why(why) = Cli::try_parse_from(words).unwrap().command else {
            panic!("not why")
        };
        assert!(!why.json && why.source.settings.readonly);
        assert_eq!(why.command, ["git", "log", "--json", "--oneline"]);
    }

    #[test]
    fn why_takes_options_behind_a_whole_text() {
        let read = |words: &[&str]| {
            let words: Vec<OsString> = ["shieling", "why"].iter().chain(words).map(OsString::from).collect();
            match parse(&words).unwrap().command {
                Subcommands::Why(why) => (why.command, why.json, why.source.settings.readonly),
                _ => panic!("not why"),
            }
        };
        let text = vec!["git push".to_owned()];
        assert_eq!(read(&["--readonly", "git push", "--json"]), (text.clone(), true, true));
        assert_eq!(read(&["git push", "--json", "--readonly"]), (text, true, true));
        for words in [
            &["git", "push", "--json"][..],
            &["/a b/run", "--no-such"],
            &["/a b/run", "x"],
            &["/a b/run", "--", "x"],
            &["/a b/run", "--env", "sandbox", "x"],
        ] {
            assert_eq!(
                read(words),
                (words.iter().map(|&word| word.to_owned()).collect(), false, false)
            );
        }
        assert!(!read(&["--", "/a b/run", "--json"]).1);
    }

    #[test]
    fn an_object_is_wanted_where_an_option_before_the_command_says_so() {
        for (words, wanted) in [
            ("exec --json --no-such", true),
            ("exec --no-such --json", true),
            ("exec --env moon --json -- ls", true),
            ("exec --timeout=soon --json ls", true),
            ("exec --timout 3s ls --json", false),
            ("exec --env moon ls --json", false),
            ("exec --no-such -- ls --json", false),
            ("exec --env", false),
            ("why --json --no-such", false),
            ("--json", false),
        ] {
            let words: Vec<OsString> = words.split(' ').map(OsString::from).collect();
            assert_eq!(wants_an_object(&words).is_some(), wanted, "{words:?}");
        }
        for words in [
            "exec --env local --json --timeout 0",
            "exec --json --no-such --env=local ls",
        ] {
            let words: Vec<OsString> = words.split(' ').map(OsString::from).collect();
            let environment = wants_an_object(&words).flatten().expect("it is named");
            assert_eq!(environment.name().as_str(), "local", "{words:?}");
        }
    }
}
