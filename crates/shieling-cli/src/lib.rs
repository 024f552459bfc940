//! The `shieling` command: options in, the library called, and what came of it worded.
//!
//! Reading order: `options`, `config`, `plan`, then `run` for the library and one module
//! for each way of using it. `words` holds the sentences and `escape` makes strangers' text
//! safe to show. It is a library so that the Python package has the same command, and opens environments from
//! the same options ([`embed`]).

pub mod embed;
mod options;
mod config;
mod far;
mod plan;
mod run;
mod setup;
mod sandbox;
#[cfg(feature = "container")]
mod container;
mod repository;
mod host;
mod missing;
mod approver;
mod person;
mod stream;
mod output;
mod input;
mod exec;
mod pty;
mod shell;
mod why;
mod describe;
mod mcp;
mod attach;
mod clients;
mod policy;
mod log;
mod replay;
mod doctor;
mod quote;
mod words;
mod escape;

use std::ffi::OsString;
use std::io::{self, Write};

use clap::{CommandFactory as _, Parser as _};

use options::{Cli, Subcommands};
use words::{FAILED, Failure};

/// Does what these words ask for, of which the first is the program's own name, and gives the exit status.
///
/// It takes over the signals SIGINT, SIGTERM and SIGHUP where it runs something.
pub fn main(words: &[OsString]) -> u8 {
    start_ahead(words);
    let cli = match Cli::try_parse_from(words) {
        Ok(cli) => cli,
        Err(error) => return options::answer(error),
    };
    let done = match &cli.command {
        Subcommands::Exec(options) => exec::exec(options),
        Subcommands::Shell(options) => shell::shell(options),
        Subcommands::Why(options) => why::why(options),
        Subcommands::Describe(options) => describe::describe(options),
        Subcommands::Mcp(options) => mcp::mcp(options, words),
        Subcommands::Attach(options) => attach::attach(options),
        Subcommands::Doctor(options) => doctor::doctor(options),
        Subcommands::Policy(options) => policy::policy(options),
        Subcommands::Log(options) => log::log(options),
        Subcommands::Completions(options) => completions(options.shell),
    };
    done.unwrap_or_else(|failure| {
        // Nobody is left to tell if even this cannot be written.
        let _ = writeln!(io::stderr().lock(), "{failure}");
        FAILED
    })
}

/// Has the program that makes sandboxes start beside the reading of options and files, where a command will need
/// it. A wrong guess costs time and nothing else.
fn start_ahead(words: &[OsString]) {
    let words = words.iter().skip(1).take_while(|word| *word != "--");
    let words: Vec<&str> = words.filter_map(|word| word.to_str()).collect();
    let starts = words.first().is_some_and(|first| matches!(*first, "exec" | "shell"));
    let needless = ["-h", "--help", "memory", "--env=memory", "container", "--env=container"];
    let far = |word: &&str| word.starts_with("ssh://") || word.starts_with("--env=ssh://");
    if starts && !words.iter().any(|word| needless.contains(word) || far(word)) {
        // Whoever needs it first waits for it; if there is no thread for it, they start it.
        let elsewhere = [
            "local",
            "--env=local",
            "host",
            "--network=host",
            "landlock",
            "--isolation=landlock",
        ];
        let sandbox = !words.iter().any(|word| elsewhere.contains(word));
        let thread = std::thread::Builder::new().spawn(move || shieling::process::start_ahead(sandbox));
        drop(thread);
    }
}

fn completions(shell: clap_complete::Shell) -> Result<u8, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "shieling", &mut script);
    told(io::stdout().lock().write_all(&script))?;
    Ok(0)
}

/// Prints a value as one line of JSON.
fn print_json(value: &impl serde::Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string(value).map_err(|error| Failure::new(format!("no JSON could be made: {error}")))?;
    write_all(io::stdout().lock(), &format!("{text}\n"))
}

/// Writes it all. A reader that went away has had what it wanted.
fn write_all(mut to: impl Write, text: &str) -> Result<(), Failure> {
    told(to.write_all(text.as_bytes()).and_then(|()| to.flush())).map(drop)
}

/// Whether somebody still reads.
fn told(written: io::Result<()>) -> Result<bool, Failure> {
    match written {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(Failure::new(format!("the output cannot be written: {error}"))),
    }
}
