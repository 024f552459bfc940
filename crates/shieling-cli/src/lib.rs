//! The `shieling` command: options in, the library called, and what came of it worded.
//!
//! Reading order: `options`, `config`, `plan`, then `run` for the library and one module
//! for each way of using it. `words` holds the sentences and `escape` makes strangers' text
//! safe to show. It is a library so that the Python package has the same command, and opens environments from
//! the same options ([`embed`]).

pub mod embed;
mod options;
mod config;
mod defaults;
mod state;
mod bash;
mod runtime;
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
mod network;
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
mod changes;
mod policy;
mod log;
mod replay;
mod doctor;
mod quote;
mod signals;
mod words;
mod print;
mod escape;

use std::ffi::OsString;
use std::io::{self, Write};

use clap::CommandFactory as _;

use options::{Cli, Subcommands};
use print::told;
use words::{FAILED, Failure};

/// Does what these words ask for, of which the first is the program's own name, and gives the exit status.
///
/// It takes over the signals SIGINT, SIGTERM, SIGHUP and SIGQUIT where it runs something.
pub fn main(words: &[OsString]) -> u8 {
    start_ahead(words);
    let cli = match options::parse(words) {
        Ok(cli) => cli,
        Err(error) => {
            let (status, wrong) = options::answer(words.get(1..).unwrap_or_default(), error);
            if let Some((wrong, environment)) = wrong {
                // Nobody is left to tell if even this cannot be written.
                let _ = exec::print_failure(wrong, environment.as_ref());
            }
            return status;
        }
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
        Subcommands::Changes(options) => changes::changes(options),
        Subcommands::Undo { id } => changes::undo(id),
        Subcommands::Log(options) => log::log(options),
        Subcommands::Completions(options) => completions(options.shell),
    };
    done.unwrap_or_else(|failure| {
        // Nobody is left to tell if even this cannot be written.
        let _ = writeln!(io::stderr().lock(), "{failure}");
        FAILED
    })
}

/// Prepares a command of this process, where its arguments ask for one: a copy of the process stands ready to make its
/// sandbox before the first option is read. A wrong guess costs time and nothing else.
///
/// It is for the beginning of `main`. Without it, a command takes a millisecond longer to start.
pub fn begin() {
    let mut bytes = [0_u8; 4096];
    let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::CLOEXEC;
    let read = rustix::fs::open(c"/proc/self/cmdline", flags, rustix::fs::Mode::empty())
        .and_then(|file| rustix::io::read(&file, &mut bytes));
    let text = bytes.get(..read.unwrap_or(0)).unwrap_or_default();
    let words = text
        .split(|&byte| byte == 0)
        .map(|word| std::str::from_utf8(word).unwrap_or_default());
    let starts = starts(words);
    // The copy shall not know what is to be done.
    bytes.fill(0);
    std::hint::black_box(&bytes);
    if let Some(sandbox) = starts {
        shieling::process::copy_ahead(sandbox);
    }
}

/// Has the program that makes sandboxes start beside the reading of options and files, where a command will need
/// it and [`begin`] was not called. A wrong guess costs time and nothing else.
fn start_ahead(words: &[OsString]) {
    if let Some(sandbox) = starts(words.iter().map(|word| word.to_str().unwrap_or_default()))
        && !shieling::process::has_copy()
    {
        // Whoever needs it first waits for it; if there is no thread for it, they start it.
        let thread = std::thread::Builder::new().spawn(move || shieling::process::start_ahead(sandbox));
        drop(thread);
    }
}

/// Whether these words, of which the first is the program's name, start a command by the program that makes sandboxes;
/// and whether in a sandbox with namespaces and a network of its own.
fn starts<'a>(words: impl Iterator<Item = &'a str>) -> Option<bool> {
    let mut words = words.skip(1).take_while(|word| *word != "--");
    if !matches!(words.next()?, "exec" | "shell") {
        return None;
    }
    let mut sandbox = true;
    for word in words {
        match word {
            "-h" | "--help" | "memory" | "--env=memory" | "container" | "--env=container" => return None,
            _ if word.starts_with("ssh://") || word.starts_with("--env=ssh://") => return None,
            "local" | "--env=local" | "host" | "--network=host" | "landlock" | "--isolation=landlock" => {
                sandbox = false
            }
            _ => {}
        }
    }
    Some(sandbox)
}

fn completions(shell: clap_complete::Shell) -> Result<u8, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "shieling", &mut script);
    told(io::stdout().lock().write_all(&script))?;
    Ok(0)
}
