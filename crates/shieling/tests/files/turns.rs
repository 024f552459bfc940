//! How many work at once, and who waits for whom.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use shieling::Shieling;
use shieling::approval::{Answer, AnswerFuture, Approver, Mode, Question, Scope};
use shieling::environment::{
    Capabilities, Environment, FileError, Files, Later, Links, Local, Node, Shell, WriteTarget,
};
use shieling::files::{GlobRequest, WriteRequest};
use shieling::outcome::Confinement;
use shieling::policy::{Policy, RuleFile};
use shieling::process::{Process, SpawnError, Streams};
use shieling_testkit::Workspace;
use tokio::task::JoinSet;

use crate::place::text;

/// Longer than anything here takes on a busy machine.
const LONG: Duration = Duration::from_secs(60);

/// A gate at which whatever is called `slow…` waits until it is opened.
#[derive(Default)]
struct Gate {
    state: Mutex<State>,
    moved: Condvar,
}

#[derive(Default)]
struct State {
    open: bool,
    waiting: usize,
    most: usize,
}

impl Gate {
    fn pass(&self) {
        let mut state = self.state.lock().expect("nobody panics with it");
        state.waiting += 1;
        state.most = state.most.max(state.waiting);
        self.moved.notify_all();
        while !state.open {
            state = self.moved.wait(state).expect("nobody panics with it");
        }
        state.waiting -= 1;
    }

    fn open(&self) {
        self.state.lock().expect("nobody panics with it").open = true;
        self.moved.notify_all();
    }

    /// Waits until so many wait; how many that were at most until then.
    async fn reached(self: &Arc<Self>, number: usize) -> usize {
        let gate = Arc::clone(self);
        let waited = tokio::task::spawn_blocking(move || {
            let state = gate.state.lock().expect("nobody panics with it");
            let reached = gate
                .moved
                .wait_timeout_while(state, LONG, |state| state.waiting < number);
            let (state, timeout) = reached.expect("nobody panics with it");
            assert!(!timeout.timed_out(), "only {} came to the gate", state.waiting);
            state.most
        });
        waited.await.expect("it is reached")
    }

    fn most(&self) -> usize {
        self.state.lock().expect("nobody panics with it").most
    }
}

/// Also if a test fails: its threads would wait for ever.
struct Opens(Arc<Gate>);

impl Drop for Opens {
    fn drop(&mut self) {
        self.0.open();
    }
}

/// This host, with the gate before its files.
struct Gated {
    good: Local,
    gate: Arc<Gate>,
}

struct GatedFiles {
    good: Arc<dyn Files>,
    gate: Arc<Gate>,
}

impl GatedFiles {
    fn pass(&self, path: &Path) {
        let name = path.file_name().unwrap_or_default();
        if name.to_string_lossy().starts_with("slow") {
            self.gate.pass();
        }
    }
}

impl Files for GatedFiles {
    fn node(&self, path: &Path, links: Links) -> Result<Box<dyn Node>, FileError> {
        self.pass(path);
        self.good.node(path, links)
    }

    fn write_target(&self, path: &Path, links: Links) -> Result<Box<dyn WriteTarget>, FileError> {
        self.good.write_target(path, links)
    }
}

impl Environment for Gated {
    fn name(&self) -> &str {
        "gated"
    }

    fn capabilities(&self) -> Capabilities {
        self.good.capabilities()
    }

    fn confinement(&self) -> Confinement {
        self.good.confinement()
    }

    fn spawn(
        &self,
        command: shieling::approval::Approved<shieling::request::Command>,
        streams: Streams,
    ) -> Later<'_, Result<Process, SpawnError>> {
        self.good.spawn(command, streams)
    }

    fn files(&self) -> Later<'_, Result<Arc<dyn Files>, SpawnError>> {
        Box::pin(async move {
            let good = self.good.files().await?;
            let gate = Arc::clone(&self.gate);
            Ok(Arc::new(GatedFiles { good, gate }) as Arc<dyn Files>)
        })
    }

    fn close(&self) -> Later<'_, ()> {
        self.good.close()
    }
}

fn gated(workspace: &Workspace) -> (Arc<Shieling>, Arc<Gate>, Opens) {
    let gate = Arc::<Gate>::default();
    let shell = Shell::find(None).expect("there is a shell on every host that runs tests");
    let environment = Arc::new(Gated {
        good: Local::new(shell).with_workspace(workspace.root()),
        gate: Arc::clone(&gate),
    });
    let shieling = Shieling::builder(environment, Policy::open(), workspace.root()).approval(Mode::OnAsk);
    (
        Arc::new(shieling.build().expect("it serves no other policy")),
        Arc::clone(&gate),
        Opens(gate),
    )
}

async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(LONG, what)
        .await
        .expect("nothing keeps it waiting")
}

#[tokio::test(flavor = "multi_thread")]
async fn of_64_reads_at_once_eight_work_and_all_are_done() {
    let workspace = Workspace::new();
    for number in 0..64 {
        workspace.write(&format!("slow{number}"), &format!("content {number}\n"));
    }
    let (shieling, gate, _opens) = gated(&workspace);
    let mut reads = JoinSet::new();
    for number in 0..64 {
        let shieling = Arc::clone(&shieling);
        reads.spawn(async move { (number, text(&shieling, &format!("slow{number}")).await) });
    }
    assert_eq!(gate.reached(8).await, 8);
    gate.open();
    let read: BTreeMap<_, _> = soon(reads.join_all()).await.into_iter().collect();
    assert_eq!(gate.most(), 8);
    for number in 0..64 {
        assert_eq!(read[&number].as_deref().expect("read"), format!("content {number}\n"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_nobody_waits_for_any_more_gives_its_turn_back() {
    let workspace = Workspace::new().with("slow", "slow\n").with("fast", "fast\n");
    let (shieling, gate, _opens) = gated(&workspace);
    let mut reads = JoinSet::new();
    for _ in 0..40 {
        let shieling = Arc::clone(&shieling);
        reads.spawn(async move { text(&shieling, "slow").await });
    }
    gate.reached(8).await;
    // Some of them work, and some wait for their turn.
    reads.shutdown().await;
    gate.open();
    for _ in 0..20 {
        assert_eq!(soon(text(&shieling, "fast")).await.expect("read"), "fast\n");
    }
    let all = (0..8).map(|_| text(&shieling, "slow"));
    for read in soon(futures_of(all)).await {
        assert_eq!(read.expect("read"), "slow\n");
    }
    assert_eq!(gate.most(), 8);
}

/// All of them, at once.
async fn futures_of<T>(all: impl Iterator<Item = impl Future<Output = T>>) -> Vec<T> {
    let mut all: Vec<_> = all.map(Box::pin).collect();
    let mut done: Vec<Option<T>> = all.iter().map(|_| None).collect();
    std::future::poll_fn(|context| {
        for (future, done) in all.iter_mut().zip(&mut done) {
            if done.is_none()
                && let std::task::Poll::Ready(value) = future.as_mut().poll(context)
            {
                *done = Some(value);
            }
        }
        match done.iter().all(Option::is_some) {
            true => std::task::Poll::Ready(()),
            false => std::task::Poll::Pending,
        }
    })
    .await;
    done.into_iter().flatten().collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn no_read_and_no_write_waits_for_a_search() {
    let workspace = Workspace::new().with("slow/file", "x\n").with("fast", "fast\n");
    let (shieling, gate, _opens) = gated(&workspace);
    let mut searches = JoinSet::new();
    for _ in 0..20 {
        let shieling = Arc::clone(&shieling);
        let ask = GlobRequest {
            path: "slow".into(),
            ..GlobRequest::new("**")
        };
        searches.spawn(async move { shieling.glob(ask).await });
    }
    assert_eq!(gate.reached(4).await, 4);
    for round in 0..10 {
        let content = format!("round {round}\n");
        soon(shieling.write_file(WriteRequest::new("fast", content.as_str())))
            .await
            .expect("written");
        assert_eq!(soon(text(&shieling, "fast")).await.expect("read"), content);
    }
    gate.open();
    for found in soon(searches.join_all()).await {
        assert_eq!(found.expect("found").paths, [Path::new("file")]);
    }
    assert_eq!(gate.most(), 4);
}

/// Somebody who takes their time.
struct Thinking {
    asked: AtomicUsize,
    answers: tokio::sync::Semaphore,
}

impl Approver for Thinking {
    fn ask<'a>(&'a self, _: &'a Question) -> AnswerFuture<'a> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move {
            self.answers.acquire().await.expect("never closed").forget();
            Answer::Yes(Scope::Once)
        })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn somebody_who_is_being_asked_keeps_no_call_waiting() {
    const PENDING: usize = 20;
    let workspace = Workspace::new().with("free", "old\n");
    let rules = "[[rule]]\ndecision = \"ask\"\nwrites = \"asked/**\"\n";
    let policy = Policy::open().with_rules(RuleFile::parse("policy.toml", rules).expect("rules"));
    let approver = Arc::new(Thinking {
        asked: AtomicUsize::new(0),
        answers: tokio::sync::Semaphore::new(0),
    });
    let shieling = crate::place::In::Local
        .builder(&workspace, policy)
        .approver(approver.clone())
        .answer_timeout(LONG * 2)
        .build()
        .expect("it serves no other policy");
    let shieling = Arc::new(shieling);
    let mut pending = JoinSet::new();
    for number in 0..PENDING {
        let shieling = Arc::clone(&shieling);
        pending.spawn(async move {
            shieling
                .write_file(WriteRequest::new(format!("asked/{number}"), "x\n"))
                .await
        });
    }
    soon(async {
        while approver.asked.load(Ordering::Relaxed) == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    for round in 0..10 {
        let content = format!("round {round}\n");
        soon(shieling.write_file(WriteRequest::new("free", content.as_str())))
            .await
            .expect("written");
        assert_eq!(soon(text(&shieling, "free")).await.expect("read"), content);
    }
    assert!(!workspace.path("asked").exists(), "nobody has said yes");
    approver.answers.add_permits(PENDING);
    for written in soon(pending.join_all()).await {
        written.expect("yes");
    }
    for number in 0..PENDING {
        assert!(workspace.path(&format!("asked/{number}")).exists());
    }
}
