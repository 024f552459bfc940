//! Writing to the streams of the process: a reader that goes away is no error.

use std::io::{self, Write};

use crate::words::Failure;

/// Prints a value as one line of JSON.
pub(crate) fn print_json(value: &impl serde::Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string(value).map_err(|error| Failure::new(format!("no JSON could be made: {error}")))?;
    write_all(io::stdout().lock(), &format!("{text}\n"))
}

/// Writes it all. A reader that went away has had what it wanted.
pub(crate) fn write_all(mut to: impl Write, text: &str) -> Result<(), Failure> {
    told(to.write_all(text.as_bytes()).and_then(|()| to.flush())).map(drop)
}

/// Whether somebody still reads.
pub(crate) fn told(written: io::Result<()>) -> Result<bool, Failure> {
    match written {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(Failure::new(format!("the output cannot be written: {error}"))),
    }
}
