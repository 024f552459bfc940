//! What the tests share: an environment behind a stream whose far side has a thread of its own.

use std::collections::BTreeMap;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use shieling::Shieling;
use shieling::approval::Mode;
use shieling::environment::{Environment, Local, Shell};
use shieling::policy::Policy;
use shieling::request::Command;
use shieling_memory::Memory;
use shieling_remote::{LinkError, Remote, Served, Surroundings, Timing};
use shieling_testkit::{Marker, leftovers};

/// The far side. Dropping it cuts the link and waits for its end.
pub(crate) struct Far {
    stream: UnixStream,
    thread: Option<JoinHandle<LinkError>>,
}

impl Far {
    /// Cuts the link at this moment.
    pub(crate) fn cut(&self) {
        // It may be cut already.
        let _ = self.stream.shutdown(Shutdown::Both);
    }

    /// Why the far side ended, once it has.
    pub(crate) fn end(mut self) -> LinkError {
        self.thread
            .take()
            .expect("it is waited for once")
            .join()
            .expect("no panic")
    }
}

impl Drop for Far {
    fn drop(&mut self) {
        self.cut();
        if let Some(thread) = self.thread.take() {
            // A panic there is one here, unless this is one.
            let ended = thread.join();
            assert!(ended.is_ok() || std::thread::panicking(), "the far side panicked");
        }
    }
}

/// Serves an environment over a stream, on a thread of its own.
pub(crate) fn served(environment: Arc<dyn Environment>, timing: Timing) -> (UnixStream, Far) {
    let (near, far) = UnixStream::pair().expect("a pair");
    (near, served_over(environment, far, timing))
}

pub(crate) fn served_over(environment: Arc<dyn Environment>, far: UnixStream, timing: Timing) -> Far {
    served_with(environment, far, timing, false)
}

fn served_with(environment: Arc<dyn Environment>, far: UnixStream, timing: Timing, copies: bool) -> Far {
    let stream = far.try_clone().expect("a copy");
    let thread = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .expect("a runtime");
        let why = runtime.block_on(async move {
            far.set_nonblocking(true).expect("ours");
            let (reader, writer) = tokio::net::UnixStream::from_std(far).expect("ours").into_split();
            let served = Served {
                environment,
                surroundings: Surroundings::default(),
                kills: None,
                copies,
            };
            served.serve(reader, writer, timing).await
        });
        runtime.shutdown_timeout(Duration::from_secs(5));
        why
    });
    Far {
        stream,
        thread: Some(thread),
    }
}

/// The near side over a stream.
pub(crate) async fn connect(near: UnixStream, timing: Timing) -> Result<Remote, LinkError> {
    let transport = async move {
        near.set_nonblocking(true)?;
        Ok(tokio::net::UnixStream::from_std(near)?.into_split())
    };
    Remote::connect(transport, timing).await
}

/// An environment behind a stream.
pub(crate) async fn behind(environment: Arc<dyn Environment>, timing: Timing) -> (Remote, Far) {
    let (near, far) = served(environment, timing);
    (connect(near, timing).await.expect("a link"), far)
}

/// The files of this host behind a stream, for copies.
pub(crate) async fn copying(timing: Timing) -> (Remote, Far) {
    let (near, far) = UnixStream::pair().expect("a pair");
    let far = served_with(local(Path::new("/")), far, timing, true);
    (connect(near, timing).await.expect("a link"), far)
}

pub(crate) fn local(workspace: &Path) -> Arc<dyn Environment> {
    let shell = Shell::find(None).expect("there is a shell on every host that runs tests");
    Arc::new(Local::new(shell).with_workspace(workspace))
}

pub(crate) fn memory() -> Arc<dyn Environment> {
    Arc::new(Memory::builder("/work").build().expect("a memory"))
}

/// A façade over it that lets everything through.
pub(crate) fn facade(remote: Remote, workspace: impl AsRef<Path>) -> Shieling {
    Shieling::builder(Arc::new(remote), Policy::open(), workspace.as_ref())
        .approval(Mode::OnAsk)
        .build()
        .expect("it serves no other policy")
}

/// A command with an ordinary PATH.
pub(crate) fn command(text: &str, cwd: &Path) -> Command {
    let variables = BTreeMap::from([("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned())]);
    Command::new(text, cwd)
        .expect("a good command")
        .with_variables(variables)
        .with_deadline(Duration::from_secs(60))
        .expect("more than zero")
}

/// The command, whose processes carry a mark.
pub(crate) fn marked(command: Command, marker: &Marker) -> Command {
    let mut variables = command.variables().clone();
    variables.extend([marker.variable()]);
    command.with_variables(variables)
}

/// Waits until nothing carries the mark.
pub(crate) fn nothing_left(marker: &Marker) {
    let until = Instant::now() + Duration::from_secs(5);
    loop {
        let left = leftovers(marker);
        if left.is_empty() {
            return;
        }
        assert!(Instant::now() < until, "left: {left:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Waits for what must not take long.
pub(crate) async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(Duration::from_secs(30), future).await {
        Ok(value) => value,
        Err(_) => panic!("it hangs: {what}"),
    }
}
