//! A command in a sandbox: it sees a workspace and the system's programs, and neither the rest of the host nor a
//! network.
//!
//! ```sh
//! cargo run -p shieling --example sandbox
//! ```
#![allow(clippy::print_stdout, reason = "an example shows what it gets")]

use std::error::Error;
use std::sync::Arc;

use shieling::Shieling;
use shieling::environment::{Restrictions, Sandbox, Shell};
use shieling::outcome::Status;
use shieling::policy::Policy;
use shieling::request::Command;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let workspace = folder.path().canonicalize()?;
    let shell = Shell::find(None)?;
    let sandbox = Sandbox::new(Restrictions::new(&workspace, shell.program()), shell);
    let shieling = Shieling::builder(Arc::new(sandbox), Policy::open(), &workspace).build()?;

    let command = Command::new("echo hello > greeting; ls /home; cat greeting", &workspace)?;
    let outcome = shieling.run(command, None).await;
    println!(
        "{:?}, enforced: {}",
        outcome.status,
        outcome.confinement.enforced.join(", ")
    );
    print!("{}", outcome.stdout);
    assert_eq!(outcome.status, Status::Exited, "{outcome:?}");
    assert_eq!(outcome.stdout, "hello\n", "{outcome:?}");

    shieling.close().await;
    Ok(())
}
