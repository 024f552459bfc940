//! A session: a shell that keeps its directory and its variables from one command to the next, and a server that
//! outlives the call which started it.
//!
//! ```sh
//! cargo run -p shieling --example session
//! ```
#![allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "an example shows what it gets, in a directory of its own"
)]

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use shieling::Shieling;
use shieling::approval::Mode;
use shieling::environment::{Local, Shell};
use shieling::policy::Policy;
use shieling::request::Command;
use shieling::session::{JobId, JobRequest, WaitFor};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let workspace = folder.path().canonicalize()?;
    let local = Arc::new(Local::new(Shell::find(None)?));
    let shieling = Shieling::builder(local, Policy::open(), &workspace)
        .approval(Mode::OnAsk)
        .build()?;

    let command = |text: &str| Command::new(text, &workspace);
    let session = shieling.session("main".parse()?);
    session.run(command("mkdir src && cd src && level=2")?).await;
    let outcome = session.run(command("echo \"${PWD##*/} $level\"")?).await;
    print!("{}", outcome.stdout);
    assert_eq!(outcome.stdout, "src 2\n", "{outcome:?}");

    let job: JobId = "server".parse()?;
    let server = JobRequest::new(command("echo ready; sleep 60")?).with_id(job.clone());
    session.start(server).await;
    let ready = WaitFor::Pattern("ready".to_owned());
    let (is_ready, _) = shieling.wait_for(&job, ready, Duration::from_secs(10)).await?;
    assert!(is_ready);
    let ended = shieling.kill(&job).await?;
    println!("{job}: {:?}", ended.outcome.status);

    shieling.close().await;
    Ok(())
}
