//! The program `shieling`.

use std::ffi::OsString;
use std::process::ExitCode;

fn main() -> ExitCode {
    // Before anything is read, and before there is a second thread.
    shieling_cli::begin();
    let words: Vec<OsString> = std::env::args_os().collect();
    ExitCode::from(shieling_cli::main(&words))
}
