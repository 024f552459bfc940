//! A session: a shell that keeps its directory and its variables from one command to the next, and a server that
//! outlives the call which started it.
//!
//! ```sh
//! cargo run -p shieling --example session
//! ```
#![allow(clippy::print_stdout, reason = "an example shows what it gets")]

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use shieling::Shieling;
use shieling::approval::Mode;
use shieling::environment::{Local, Shell};
use shieling::policy::Policy;
use shieling::request::Command;
use shieling::session::{JobRequest, WaitFor};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let workspace = folder.path().canonicalize()?;
    let local = Arc::new(Local::new(Shell::find(None)?));
    let shieling = Shieling::builder(local, Policy::open(), &workspace)
        .approval(Mode::OnAsk)
        .build()?;

    let request = |text: &str| Command::new(text, &workspace).map(JobRequest::new);
    shieling.shell(request("mkdir src && cd src && level=2")?).await;
    let outcome = shieling.shell(request("echo \"${PWD##*/} $level\"")?).await;
    print!("{}", outcome.stdout);
    assert_eq!(outcome.stdout, "src 2\n", "{outcome:?}");

    let server = JobRequest {
        background: true,
        id: Some("server".parse()?),
        ..request("echo ready; sleep 60")?
    };
    let job = server.id.clone().expect("it was named above");
    shieling.shell(server).await;
    let ready = WaitFor::Pattern("ready".to_owned());
    let (is_ready, _) = shieling.wait_for(&job, ready, Duration::from_secs(10)).await?;
    assert!(is_ready);
    let ended = shieling.kill(&job).await?;
    println!("{job}: {:?}", ended.outcome.status);

    shieling.close().await;
    Ok(())
}
