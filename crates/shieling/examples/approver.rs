//! An approver: it is asked about what a rule of the policy sends to it, sees the whole command and why it is asked,
//! and answers.
//!
//! ```sh
//! cargo run -p shieling --example approver
//! ```
#![allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "an example shows what it gets, in a directory of its own"
)]

use std::error::Error;
use std::sync::Arc;

use shieling::Shieling;
use shieling::approval::{Answer, ApproverFn, Mode, Question, Scope};
use shieling::environment::{Local, Shell};
use shieling::outcome::Status;
use shieling::policy::Policy;
use shieling::request::Command;

/// Approves one text, and nothing else: what only begins like it may go on with anything. A person would be asked here.
fn approve(question: &Question) -> Answer {
    for reason in &question.verdict.reasons {
        println!("asked about `{}`: {}", question.text.escape_debug(), reason.because);
    }
    if question.text == "git commit --message wip" {
        Answer::Yes(Scope::Once)
    } else {
        Answer::No("only this commit is approved here".to_owned())
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let workspace = folder.path().canonicalize()?;
    let local = Arc::new(Local::new(Shell::find(None)?));
    let shieling = Shieling::builder(local, Policy::open(), &workspace)
        .approval(Mode::Always)
        .approver(Arc::new(ApproverFn(approve)))
        .build()?;

    let refused = shieling.run(Command::new("git push --force", &workspace)?, None).await;
    assert_eq!(refused.status, Status::Denied, "{refused:?}");
    let denial = refused.denial.expect("a refusal says why");
    for reason in denial.reasons {
        println!("denied: {}", reason.because);
    }

    // It runs, and fails, since there is no repository.
    let approved = shieling
        .run(Command::new("git commit --message wip", &workspace)?, None)
        .await;
    assert_eq!(approved.status, Status::Exited, "{approved:?}");

    shieling.close().await;
    Ok(())
}
