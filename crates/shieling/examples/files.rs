//! Files of a workspace: written, read and edited under the policy, and only in the state in which they were read.
//!
//! ```sh
//! cargo run -p shieling --example files
//! ```
#![allow(clippy::print_stdout, reason = "an example shows what it gets")]

use std::error::Error;
use std::sync::Arc;

use shieling::Shieling;
use shieling::approval::Mode;
use shieling::environment::{Local, Shell};
use shieling::files::{EditRequest, GrepRequest, ReadRequest, WriteRequest};
use shieling::policy::Policy;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let workspace = folder.path().canonicalize()?;
    let local = Local::new(Shell::find(None)?).with_workspace(&workspace);
    let policy = Policy::open().with_ignore(&[".env"])?;
    let shieling = Shieling::builder(Arc::new(local), policy, &workspace)
        .approval(Mode::OnAsk)
        .build()?;

    shieling
        .write_file(WriteRequest::new("src/main.rs", "fn main() {}\n"))
        .await?;
    let read = shieling.read_file(ReadRequest::new("src/main.rs")).await?;
    let edit = EditRequest {
        // Refused if the file has changed since.
        expect: Some(read.hash),
        ..EditRequest::new("src/main.rs", "{}", "{ println!(\"hello\"); }")
    };
    print!("{}", shieling.edit_file(edit).await?.diff);

    let found = shieling.grep(GrepRequest::new("hello")).await?;
    assert_eq!(found.hits.len(), 1, "{found:?}");

    // What the policy hides does not exist for an operation.
    let hidden = shieling.read_file(ReadRequest::new(".env")).await;
    println!("{}", hidden.expect_err("the policy hides it"));

    shieling.close().await;
    Ok(())
}
