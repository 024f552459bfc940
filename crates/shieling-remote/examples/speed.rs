//! What the protocol adds to a command of a session and to a large output, over a pair of sockets. Run with
//! `--release`; both ways take turns, and times are medians.
#![allow(clippy::print_stdout, reason = "a measurement prints")]

use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use shieling::Shieling;
use shieling::approval::Mode;
use shieling::environment::{Environment, Local, Shell};
use shieling::policy::Policy;
use shieling::request::Command;
use shieling::session::JobRequest;
use shieling_remote::{Remote, Timing, serve};

const FLOOD: u64 = 500_000_000;

fn command(text: &str) -> Command {
    let path = [("PATH".to_owned(), "/usr/bin:/bin".to_owned())].into();
    Command::new(text, "/tmp").expect("a good command").with_variables(path)
}

fn facade(environment: Arc<dyn Environment>) -> Shieling {
    Shieling::builder(environment, Policy::open(), "/tmp")
        .approval(Mode::OnAsk)
        .build()
        .expect("it serves no other policy")
}

fn local() -> Local {
    Local::new(Shell::find(None).expect("there is a shell")).with_workspace("/tmp")
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let (near, far) = UnixStream::pair().expect("a pair");
    let far = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        runtime.block_on(async {
            far.set_nonblocking(true).expect("ours");
            let (reader, writer) = tokio::net::UnixStream::from_std(far).expect("ours").into_split();
            serve(Arc::new(local()), reader, writer, Timing::default()).await
        })
    });
    let transport = async move {
        near.set_nonblocking(true)?;
        Ok(tokio::net::UnixStream::from_std(near)?.into_split())
    };
    let remote = Remote::connect(transport, Timing::default()).await.expect("a link");
    let ways = [facade(Arc::new(local())), facade(Arc::new(remote.of_this_host()))];

    let mut times = [Vec::new(), Vec::new()];
    for round in 0..500 {
        for (shieling, times) in ways.iter().zip(&mut times) {
            let begun = Instant::now();
            let outcome = shieling.shell(JobRequest::new(command("true"))).await;
            assert_eq!(outcome.exit_code, Some(0), "{outcome:?}");
            if round > 20 {
                times.push(begun.elapsed());
            }
        }
    }
    let [direct, behind] = times.map(median);
    println!(
        "a command of a session: {direct:?}, behind a stream {behind:?}, added {:?}",
        behind.saturating_sub(direct)
    );

    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..5 {
        for (shieling, times) in ways.iter().zip(&mut times) {
            let begun = Instant::now();
            let outcome = shieling.run(command(&format!("head -c {FLOOD} /dev/zero")), None).await;
            assert_eq!(outcome.stdout_bytes, FLOOD, "{outcome:?}");
            times.push(begun.elapsed());
        }
    }
    let [direct, behind] = times.map(|times| FLOOD as f64 / median(times).as_secs_f64() / 1e6);
    println!("output: {direct:.0} MB/s, behind a stream {behind:.0} MB/s");
    drop(ways);
    far.join().expect("no panic");
}
