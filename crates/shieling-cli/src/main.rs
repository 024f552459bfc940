//! The program `shieling`.

use std::ffi::OsString;
use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().collect();
    ExitCode::from(shieling_cli::main(&words))
}
