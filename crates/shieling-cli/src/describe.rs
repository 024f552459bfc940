//! `shieling describe`: the environment as a model would be told of it.

use std::io;

use crate::options::Describe;
use crate::plan::Purpose;
use crate::run::{self, Library};
use crate::words::Failure;

/// Prints the description.
pub(crate) fn describe(options: &Describe) -> Result<u8, Failure> {
    let plan = run::plan(&options.source, Purpose::Describe)?;
    let (text, data) = Library::open(&plan, None)?.describe()?;
    if options.json {
        crate::print_json(&data)?;
    } else {
        crate::write_all(io::stdout().lock(), &format!("{}\n", text.trim_end()))?;
    }
    Ok(0)
}
