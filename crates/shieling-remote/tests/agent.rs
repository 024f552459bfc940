//! The agent program as it is sent, in places of its own: as process 1, without a shell, with none but busybox, where
//! the kernel executes nothing in memory.
#![allow(
    clippy::disallowed_methods,
    reason = "places are built here, and the program is started in them"
)]

use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use shieling::Shieling;
use shieling::approval::Mode;
use shieling::outcome::{Outcome, Status};
use shieling::policy::Policy;
use shieling_remote::agent::Program;
use shieling_remote::{Remote, Timing};
use shieling_testkit::prerequisite;

/// An agent in a process namespace of its own, whose process 1 it is, and its environment here.
struct Place {
    shieling: Shieling,
    workspace: &'static str,
    agent: Child,
    _folder: tempfile::TempDir,
}

/// Whether there is what a place takes.
#[track_caller]
fn is_there() -> bool {
    if let Err(error) = Program::carried() {
        prerequisite::skip(error);
        return false;
    }
    if !rustix::process::geteuid().is_root() {
        prerequisite::skip("a process namespace with a root of its own needs root");
        return false;
    }
    prerequisite::has(&["unshare", "busybox", "mount", "chroot"])
}

impl Place {
    /// `prepare` is run by a shell outside, with the directory that will be the place's root as `$1`, and `words` are
    /// what the agent program is told besides.
    async fn start(prepare: &str, words: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a directory");
        let root = folder.path();
        let program = root.join("agent");
        std::fs::write(&program, Program::carried().expect("looked for before").bytes()).expect("room");
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).expect("ours");
        let (near, far) = UnixStream::pair().expect("a pair");
        let far = std::os::fd::OwnedFd::from(far);
        let script = format!(
            "set -e; mkdir -p \"$1/proc\" \"$1/dev\" \"$1/w\"; mount --rbind /dev \"$1/dev\"; {prepare}; mount -t proc none \"$1/proc\"; \
             root=$1; shift; exec env -i PATH=/bin /usr/sbin/chroot \"$root\" /agent --workspace /w \"$@\""
        );
        let agent = Command::new("unshare")
            .args(["--pid", "--fork", "--kill-child", "--mount", "sh", "-c", &script, "sh"])
            .arg(root)
            .args(words)
            .stdin(far.try_clone().expect("a copy"))
            .stdout(far)
            .stderr(Stdio::inherit())
            .spawn()
            .expect("unshare is there");
        let transport = async move {
            near.set_nonblocking(true)?;
            Ok(tokio::net::UnixStream::from_std(near)?.into_split())
        };
        let remote = Remote::connect(transport, Timing::default()).await.expect("it answers");
        let workspace = "/w";
        let builder = Shieling::builder(Arc::new(remote), Policy::open(), workspace);
        Self {
            shieling: builder
                .approval(Mode::OnAsk)
                .build()
                .expect("it serves no other policy"),
            workspace,
            agent,
            _folder: folder,
        }
    }

    fn command(&self, text: &str) -> shieling::request::Command {
        let path = [("PATH".to_owned(), "/bin:/usr/bin".to_owned())].into();
        let command = shieling::request::Command::new(text, self.workspace).expect("a good command");
        command.with_variables(path)
    }

    async fn run(&self, text: &str) -> Outcome {
        self.shieling.run(self.command(text), None).await
    }

    async fn session(&self, text: &str) -> Outcome {
        let session = self.shieling.session("one".parse().expect("a name"));
        session.run(self.command(text)).await
    }

    /// Ends the link, and waits for the agent's own end, which is that of its namespace.
    fn end(self) {
        let Self {
            shieling, mut agent, ..
        } = self;
        drop(shieling);
        let until = Instant::now() + Duration::from_secs(10);
        let status = loop {
            if let Some(status) = agent.try_wait().expect("it is ours") {
                break status;
            }
            assert!(Instant::now() < until, "it runs on");
            std::thread::sleep(Duration::from_millis(10));
        };
        assert!(status.success(), "{status}");
    }
}

/// What a place has of this host.
const HOST: &str =
    "for d in bin usr lib lib64 etc tmp; do [ -e /$d ] && mkdir -p \"$1/$d\" && mount --rbind /$d \"$1/$d\"; done";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn as_process_1_it_reaps_and_its_end_is_that_of_the_place() {
    if !is_there() {
        return;
    }
    let place = Place::start(HOST, &["--env", "local"]).await;
    let first = place.run("readlink /proc/1/exe").await;
    assert_eq!(first.stdout, "/agent\n", "{first:?}");
    // What a supervisor leaves that is killed by its own command has no parent but process 1.
    let killed = place.run("(sleep 0.3; exit 3) & kill -9 $PPID; sleep 0.1").await;
    assert!(matches!(killed.status, Status::Lost), "{killed:?}");
    let text = "for i in $(seq 100); do z=$(ps -eo ppid=,stat= | awk '$1 == 1 && $2 ~ /Z/' | wc -l); \
                [ $z = 0 ] && [ $i -gt 20 ] && break; sleep 0.05; done; echo $z";
    let zombies = place.run(text).await;
    assert_eq!(zombies.stdout, "0\n", "{zombies:?}");
    let session = place.session("cd /tmp; x=1").await;
    assert_eq!(session.status, Status::Exited, "{session:?}");
    let session = place.session("pwd; echo $x").await;
    assert_eq!(session.stdout, "/tmp\n1\n", "{session:?}");
    place.end();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_shell_programs_run_with_their_arguments() {
    if !is_there() {
        return;
    }
    let prepare =
        "mkdir \"$1/bin\"; cp \"$(command -v busybox)\" \"$1/bin/echo\"; cp \"$(command -v busybox)\" \"$1/bin/cat\"";
    let place = Place::start(prepare, &["--env", "local"]).await;
    let ran = place.run("echo 'a  b' \"c\" $((1)) ").await;
    assert_eq!(ran.status, Status::Failed, "{ran:?}");
    assert!(
        ran.error
            .as_deref()
            .is_some_and(|why| why.contains("there is no shell here")),
        "{ran:?}"
    );
    let ran = place.run("echo 'a  b' \"c\"").await;
    assert_eq!(
        (ran.status, ran.stdout.as_str()),
        (Status::Exited, "a  b c\n"),
        "{ran:?}"
    );
    let missing = place.run("ls").await;
    assert!(
        missing
            .error
            .as_deref()
            .is_some_and(|why| why.contains("there is no program `ls`")),
        "{missing:?}"
    );
    let session = place.session("echo hello").await;
    assert!(
        session
            .error
            .as_deref()
            .is_some_and(|why| why.contains("no shell here")),
        "{session:?}"
    );
    place.end();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_busybox_alone_commands_run_by_its_sh_and_sessions_say_what_they_take() {
    if !is_there() {
        return;
    }
    let prepare = "mkdir \"$1/bin\"; cp \"$(command -v busybox)\" \"$1/bin/sh\"; for p in ls cat sleep; do ln \"$1/bin/sh\" \"$1/bin/$p\"; done";
    let place = Place::start(prepare, &["--env", "local"]).await;
    let ran = place.run("for i in 1 2; do echo $i; done | cat; exit 5").await;
    assert_eq!((ran.exit_code, ran.stdout.as_str()), (Some(5), "1\n2\n"), "{ran:?}");
    let late = place.shieling.run(
        place
            .command("sleep 100 & sleep 100")
            .with_deadline(Duration::from_millis(300))
            .expect("more than zero"),
        None,
    );
    let late = late.await;
    assert_eq!((late.status, late.survivors), (Status::TimedOut, 0), "{late:?}");
    let session = place.session("echo hello").await;
    let why = session.error.as_deref().unwrap_or_default();
    assert!(
        why.contains("it takes bash, and the shell here is `/bin/sh`"),
        "{session:?}"
    );
    place.end();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_nothing_in_memory_is_executed_a_directory_for_programs_does() {
    if !is_there() {
        return;
    }
    if !Path::new("/proc/sys/vm/memfd_noexec").exists() {
        prerequisite::skip("this kernel executes whatever is in memory");
        return;
    }
    // Of this process namespace alone.
    let prepare = format!("{HOST}; mount -t proc none /proc; echo 2 >/proc/sys/vm/memfd_noexec; mkdir \"$1/programs\"");
    let place = Place::start(&prepare, &["--env", "local"]).await;
    let refused = place.run("echo started").await;
    assert_eq!(
        (refused.status, refused.stdout.as_str()),
        (Status::Failed, ""),
        "{refused:?}"
    );
    place.end();
    let place = Place::start(&prepare, &["--env", "local", "--programs", "/programs"]).await;
    let ran = place.run("echo started; ls -A /programs").await;
    assert_eq!(ran.stdout, "started\n", "{ran:?}");
    let session = place.session("cd /tmp").await;
    assert_eq!(session.status, Status::Exited, "{session:?}");
    let session = place.session("pwd").await;
    assert_eq!(session.stdout, "/tmp\n", "{session:?}");
    place.end();
}
