//! The command line: what can be asked of `shieling`, and its help.
//!
//! Anything wrong in it ends with status 125, since 2 could be the command's own status.

mod settings;
mod values;

use std::path::PathBuf;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, Parser, Subcommand};

pub(crate) use settings::Settings;
pub(crate) use values::{
    Approval, Assignment, EnvironmentName, Network, PolicyName, Prefix, Rate, Size, Timeout, VariableName,
};

/// The place where AI agents work: every command is judged, contained, bounded, recorded and
/// reported truthfully.
#[derive(Debug, Parser)]
#[command(
    name = "shieling",
    version,
    disable_help_subcommand = true,
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
    /// Judge a command and explain; runs nothing
    #[command(after_long_help = WHY_HELP)]
    Why(Box<Why>),
    /// Print the environment as a model would be told of it
    Describe(Box<Describe>),
    /// Show which layers this host and this version can enforce
    #[command(after_help = "Exits 0 if commands can run at all, and 1 otherwise.")]
    Doctor(Doctor),
    /// Check policy files and show presets
    #[command(subcommand)]
    Policy(Policy),
    /// Read the audit log and stored output
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
  125                 when shieling itself failed; nothing was started

Examples:
  shieling exec --env local --approval policy 'cargo test 2>&1 | tail -5'
  shieling exec --env local --readonly --timeout 10s -- git log --oneline
  shieling exec --env local --json --max-output 16KiB -- make";

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

    /// One argument is shell text; several are the words of one command
    ///
    /// What follows the first word belongs to the command: `shieling exec git log --oneline`.
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
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
    /// Put `--` before words that start with `-`: `shieling why -- git log --oneline`.
    #[arg(required = true, value_name = "COMMAND")]
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
}

/// `shieling completions`
#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// The shell
    pub(crate) shell: clap_complete::Shell,
}

/// Prints clap's answer, help included, and says with which status to exit.
pub(crate) fn answer(mut error: clap::Error) -> u8 {
    if error.kind() == ErrorKind::ValueValidation && names_a_variable(&error) {
        // What was written may be a secret; what is wrong with it is told without it.
        error.insert(ContextKind::InvalidValue, ContextValue::String("…".to_owned()));
    }
    // Nobody is left to tell if even this cannot be written.
    let _ = error.print();
    if error.use_stderr() { crate::words::FAILED } else { 0 }
}

fn names_a_variable(error: &clap::Error) -> bool {
    match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(option)) => option.starts_with("--set-env") || option.starts_with("--pass-env"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

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
    fn why_takes_options_on_both_sides() {
        let cli = Cli::try_parse_from(["shieling", "why", "--readonly", "git push", "--json"]).unwrap();
        let Subcommands::Why(why) = cli.command else {
            panic!("not why")
        };
        assert!(why.json && why.source.settings.readonly);
        assert_eq!(why.command, ["git push"]);
    }
}
