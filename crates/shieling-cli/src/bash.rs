//! The bash that runs commands.

use std::path::{Path, PathBuf};

use shieling::environment::Shell;

use crate::config::files;
use crate::words::Failure;

/// Where bash is, unless somebody chose a shell.
const USUAL: [&str; 2] = ["/bin/bash", "/usr/bin/bash"];

/// The shell that was chosen, or bash; another shell would read the text in another way than the
/// policy does.
pub(crate) fn find(chosen: Option<&Path>) -> Result<Shell, Failure> {
    let found = match chosen {
        Some(shell) => Shell::find(Some(shell)),
        None => {
            let on_path = std::env::var_os("PATH").and_then(|path| files::on_path(Path::new("bash"), &path));
            Shell::first_of(USUAL.iter().map(PathBuf::from).chain(on_path).collect())
        }
    };
    let found = found.map_err(|error| Failure::new(error.to_string()))?;
    if !found.is_bash() {
        return Err(Failure::new(format!(
            "the shell `{}` is not bash; the policy reads every command as bash does, and another shell would run \
             another text: name a bash with `--shell` or SHIELING_SHELL",
            found.program().display()
        )));
    }
    Ok(found)
}
