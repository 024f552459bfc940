//! Helper programs in C, compiled once: each makes one call and says its errno, so that a refusal can
//! be told from a chance.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Their sources: the name of the program, and its text.
const SOURCES: &[(&str, &str)] = &[
    ("files", include_str!("../programs/files.c")),
    ("calls", include_str!("../programs/calls.c")),
    ("reach", include_str!("../programs/reach.c")),
    ("eat", include_str!("../programs/eat.c")),
    ("ran", include_str!("../programs/ran.c")),
    ("races", include_str!("../programs/races.c")),
];

/// Where they are.
pub(crate) struct Tools {
    /// The directory, which every sandbox may read. `$TOOLS` in every command.
    pub(crate) directory: PathBuf,
}

impl Tools {
    /// Compiles them, or says why they are not there.
    pub(super) fn build(directory: &Path) -> Result<Self, String> {
        std::fs::create_dir_all(directory).map_err(|error| error.to_string())?;
        for (name, text) in SOURCES {
            let source = directory.join(format!("{name}.c"));
            std::fs::write(&source, text).map_err(|error| error.to_string())?;
            let done = Command::new("gcc")
                .args(["-O1", "-Wall", "-pthread", "-o"])
                .arg(directory.join(name))
                .arg(&source)
                .output()
                .map_err(|error| format!("`gcc`: {error}"))?;
            if !done.status.success() {
                return Err(format!("{name}.c: {}", String::from_utf8_lossy(&done.stderr)));
            }
        }
        Ok(Self {
            directory: directory.to_path_buf(),
        })
    }
}
