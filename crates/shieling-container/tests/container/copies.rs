//! Directories that are copied into containers and out of them.

use std::fs;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command as Program, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use shieling::changes::{Limits, Store};
use shieling::environment::Environment as _;
use shieling::outcome::{ChangeState, Status};
use shieling::policy::Policy;
use shieling_container::{
    Choice, Container, ContainerError, CopyErrorKind, CopyOptions, Options, Preset, Surroundings, User, Volume,
    WorkspaceCopy,
};
use tempfile::tempdir;

use super::support::{BUSYBOX, EMPTY, Engine, Kind, TOOLS, command, engine, facade, run, state, turn, until};

/// A tree with something of each kind.
fn tree() -> tempfile::TempDir {
    let place = tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    fs::create_dir_all(at("a/b")).unwrap();
    fs::write(at("a/b/run"), "#!/bin/sh\necho ran\n").unwrap();
    fs::set_permissions(at("a/b/run"), fs::Permissions::from_mode(0o4750)).unwrap();
    fs::write(at("secret"), "of its owner").unwrap();
    fs::set_permissions(at("secret"), fs::Permissions::from_mode(0o600)).unwrap();
    symlink("b/run", at("a/link")).unwrap();
    symlink("/etc/shadow", at("out")).unwrap();
    let sparse = fs::File::create(at("sparse")).unwrap();
    sparse.set_len(300 << 20).unwrap();
    sparse.write_all_at(b"end", 200 << 20).unwrap();
    place
}

fn copying(engine: &Engine, image: &str, workspace: &Path) -> Options {
    let mut options = engine.options(image);
    options.workspace = Some(workspace.to_owned());
    options.workspace_copy = Some(WorkspaceCopy::In);
    options
}

/// Bytes of memory that this process has had at most since this was set back.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

fn set_back_peak() -> u64 {
    fs::write("/proc/self/clear_refs", "5").unwrap();
    peak()
}

/// The most memory that the agent of a container has had.
fn peak_of_agent(engine: &Engine, id: &str) -> u64 {
    let found = engine.json("GET", &format!("/containers/{id}/json"), None);
    let first = found["State"]["Pid"].as_u64().unwrap();
    let status = fs::read_to_string(format!("/proc/{first}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_workspace_is_copied_into_memory_and_stays_as_it_is_here() {
    let _turn = turn().await;
    for kind in Kind::ALL {
        let Some(engine) = engine(kind) else { continue };
        let place = tree();
        rustix::fs::mkfifoat(rustix::fs::CWD, place.path().join("pipe"), rustix::fs::Mode::RUSR).unwrap();
        let told = Arc::new(Mutex::new(Vec::new()));
        let tells = Arc::clone(&told);
        let progress: shieling_container::Progress =
            Arc::new(move |line: &str| tells.lock().unwrap().push(line.to_owned()));
        let options = copying(engine, BUSYBOX, place.path());
        let container = Container::open(options, Choice::Auto, &engine.surroundings(), &state(), Some(progress)).await;
        let container = Arc::new(container.unwrap());
        let outcome = run(&container, "id -u; a/link && cat secret && ls -ln . a/b; ls -ls sparse").await;
        assert_eq!(outcome.exit_code, Some(0), "{kind:?}: {outcome:?}");
        let mut lines = outcome.stdout.lines();
        let mut next = || lines.next().unwrap_or_default().to_owned();
        assert_eq!([next(), next()], ["65534", "ran"], "{kind:?}: {outcome:?}");
        assert!(next().starts_with("of its owner"), "{kind:?}: {outcome:?}");
        let listed = &outcome.stdout;
        // Its modes, without the set-id bit, and its owner is the user there.
        assert!(listed.contains("-rwxr-x---    1 65534    65534"), "{kind:?}: {listed}");
        assert!(listed.contains("out -> /etc/shadow"), "{kind:?}: {listed}");
        let blocks: u64 = listed
            .lines()
            .last()
            .unwrap()
            .split_whitespace()
            .next()
            .unwrap()
            .parse()
            .unwrap();
        assert!(blocks < 64, "{kind:?}: {listed}");
        assert_eq!(
            *told.lock().unwrap(),
            ["left out of the copy of the workspace: `pipe`: it is a named pipe"]
        );
        // What commands change is theirs.
        let outcome = run(&container, "echo changed > secret && rm -f a/link && ls -a").await;
        assert_eq!(outcome.exit_code, Some(0), "{kind:?}: {outcome:?}");
        assert!(!outcome.stdout.contains(".shieling"), "{outcome:?}");
        assert!(
            container
                .unprotected_paths(&[Path::new("/workspace/.git/hooks")], container.workspace())
                .is_empty()
        );
        container.close().await;
        assert_eq!(fs::read_to_string(place.path().join("secret")).unwrap(), "of its owner");
        assert!(place.path().join("a/link").exists());
        assert_eq!(engine.containers(), Vec::<String>::new(), "{kind:?}");
    }
}

/// Engines' own archives need neither a shell nor `tar` of the image, and go past what is mounted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn directories_are_copied_into_memory_of_an_image_without_a_program_and_out() {
    let _turn = turn().await;
    for kind in Kind::ALL {
        let Some(engine) = engine(kind) else { continue };
        let (place, back) = (tree(), tempdir().unwrap());
        let container = engine.open(engine.options(EMPTY)).await.unwrap();
        let options = CopyOptions::default();
        for to in ["in", "/tmp/in"] {
            let copied = container.copy_in(place.path(), Path::new(to), options).await.unwrap();
            assert_eq!((copied.files, copied.directories, copied.links), (3, 2, 2), "{kind:?}");
            let out = back.path().join(to.replace('/', "-"));
            let copied = container.copy_out(Path::new(to), &out, options).await.unwrap();
            assert_eq!((copied.files, copied.directories, copied.links), (3, 2, 2), "{kind:?}");
            let found = |name: &str| fs::symlink_metadata(out.join(name)).unwrap();
            assert_eq!(found("a/b/run").mode() & 0o7777, 0o750);
            assert_eq!(found("secret").uid(), rustix::process::geteuid().as_raw());
            assert_eq!(
                found("secret").modified().unwrap(),
                fs::metadata(place.path().join("secret")).unwrap().modified().unwrap()
            );
            assert_eq!(fs::read_link(out.join("out")).unwrap(), Path::new("/etc/shadow"));
            assert_eq!(found("sparse").len(), 300 << 20);
            assert!(found("sparse").blocks() < 64, "{kind:?}: {}", found("sparse").blocks());
        }
        // A root that cannot be written, and a place that is too small, say so.
        let refused = container.copy_in(place.path(), Path::new("/etc/in"), options).await;
        let Err(ContainerError::Copy { error, .. }) = refused else {
            panic!("{refused:?}")
        };
        assert_eq!(error.kind, CopyErrorKind::Open, "{kind:?}: {error}");
        fs::write(place.path().join("large"), vec![1; 80 << 20]).unwrap();
        let refused = container.copy_in(place.path(), Path::new("/tmp/in"), options).await;
        let Err(ContainerError::Copy { error, .. }) = refused else {
            panic!("{refused:?}")
        };
        assert_eq!(
            (error.kind, error.path),
            (CopyErrorKind::Full, PathBuf::from("large")),
            "{kind:?}"
        );
        let again = back.path().join("again");
        container.copy_out(Path::new("/tmp/in"), &again, options).await.unwrap();
        let names = fs::read_dir(&again).unwrap().map(|entry| entry.unwrap().file_name());
        let names: std::collections::BTreeSet<_> = names.collect();
        assert_eq!(
            names,
            ["a", "out", "secret", "sparse"].map(Into::into).into(),
            "{kind:?}"
        );
        container.close().await;
    }
}

/// Links that commands put in the way lead nowhere outside, whichever way it goes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_commands_leave_for_a_copy_leads_out_of_nothing() {
    let _turn = turn().await;
    let Some(engine) = engine(Kind::Docker) else { return };
    let outside = tempdir().unwrap();
    fs::write(outside.path().join("x"), "of the user").unwrap();
    let container = Arc::new(engine.open(engine.options(TOOLS)).await.unwrap());
    let text = format!(
        "mkdir d && ln -s {0} link && ln -s {0}/x d/x && ln -s / root && touch $'odd\\xff\\n' && mkfifo pipe && \
         mknod null c 1 3 2>/dev/null; (umask 777; mkdir closed); echo \"$(head -c 250 /dev/zero | tr '\\0' n)\" > long",
        outside.path().display()
    );
    let outcome = run(&container, &text).await;
    assert_eq!(outcome.exit_code, Some(0), "{outcome:?}");
    let to = tempdir().unwrap();
    // What was there before leads out as well.
    symlink(outside.path(), to.path().join("d")).unwrap();
    let refused = container
        .copy_out(Path::new("."), to.path(), CopyOptions::default())
        .await;
    let Err(ContainerError::Copy { error, .. }) = refused else {
        panic!("{refused:?}")
    };
    assert_eq!((error.kind, error.path), (CopyErrorKind::InTheWay, PathBuf::from("d")));
    fs::remove_file(to.path().join("d")).unwrap();
    let copied = container
        .copy_out(Path::new("."), to.path(), CopyOptions::default())
        .await
        .unwrap();
    assert_eq!((copied.files, copied.links), (2, 3), "{copied:?}");
    let skipped: Vec<_> = copied
        .skipped
        .iter()
        .map(|skipped| skipped.path.to_str().unwrap())
        .collect();
    assert_eq!(skipped, ["closed", "pipe"]);
    assert_eq!(fs::read_link(to.path().join("d/x")).unwrap(), outside.path().join("x"));
    // And back in over them: the links there are replaced, and not followed.
    fs::remove_file(to.path().join("d/x")).unwrap();
    fs::write(to.path().join("d/x"), "a file").unwrap();
    container
        .copy_in(to.path(), Path::new("."), CopyOptions::default())
        .await
        .unwrap();
    let outcome = run(&container, "test ! -L d/x && cat d/x").await;
    assert_eq!(outcome.stdout, "a file", "{outcome:?}");
    assert_eq!(fs::read_to_string(outside.path().join("x")).unwrap(), "of the user");
    container.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_workspace_that_does_not_fit_is_told_before_anything_runs() {
    let _turn = turn().await;
    let Some(engine) = engine(Kind::Docker) else { return };
    let place = tempdir().unwrap();
    fs::write(place.path().join("large"), vec![1; 100 << 20]).unwrap();
    let mut options = copying(engine, BUSYBOX, place.path());
    options.memory = Some(96 << 20);
    let container = engine.open(options).await.unwrap();
    let error = container.start().await.unwrap_err();
    let ContainerError::Copy { error: copy, .. } = &error else {
        panic!("{error}")
    };
    assert_eq!(copy.kind, CopyErrorKind::Full, "{error}");
    assert!(error.instead().unwrap().contains("--memory"), "{error}");
    assert_eq!(engine.containers(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hundreds_of_megabytes_are_copied_in_little_memory_and_not_much_slower_than_by_the_engine() {
    let _turn = turn().await;
    let Some(engine) = engine(Kind::Docker) else { return };
    const LENGTH: usize = 200 << 20;
    let place = tempdir().unwrap();
    let content: Vec<u8> = (0..LENGTH / 8)
        .flat_map(|at: usize| at.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes())
        .collect();
    fs::write(place.path().join("large"), &content).unwrap();
    drop(content);
    let mut options = engine.options(BUSYBOX);
    // The engine's own copy does not reach what is in memory: both write to the container's root.
    options.preset = Preset::Plain;
    let container = engine.open(options).await.unwrap();
    container.start().await.unwrap();
    let id = container.id().unwrap();
    let agent_before = peak_of_agent(engine, &id);
    let ours_before = set_back_peak();
    let back = tempdir().unwrap();
    let begun = Instant::now();
    container
        .copy_in(place.path(), Path::new("/ours"), CopyOptions::default())
        .await
        .unwrap();
    let took_in = begun.elapsed();
    let begun = Instant::now();
    container
        .copy_out(Path::new("/ours"), &back.path().join("ours"), CopyOptions::default())
        .await
        .unwrap();
    let took_out = begun.elapsed();
    let ours = peak().saturating_sub(ours_before);
    let agent = peak_of_agent(engine, &id).saturating_sub(agent_before);
    let same = Program::new("cmp")
        .arg(place.path().join("large"))
        .arg(back.path().join("ours/large"))
        .status();
    assert!(same.unwrap().success());
    let docker = |from: String, to: String| {
        let begun = Instant::now();
        let done = Program::new("docker")
            .args(["-H", &format!("unix://{}", engine.socket.display()), "cp", &from, &to])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        done.is_ok_and(|status| status.success()).then(|| begun.elapsed())
    };
    let their_in = docker(place.path().display().to_string(), format!("{id}:/theirs"));
    let their_out = docker(
        format!("{id}:/theirs"),
        back.path().join("theirs").display().to_string(),
    );
    eprintln!(
        "200 MiB in {took_in:?}, out {took_out:?}; docker cp in {their_in:?}, out {their_out:?}; \
         more memory: here {} KiB, agent {} KiB",
        ours >> 10,
        agent >> 10
    );
    for more in [ours, agent] {
        assert!(more < 16 << 20, "{more} bytes");
    }
    container.close().await;
}

/// Set in the process that is killed.
const KILLED: &str = "SHIELING_TEST_KILLED_WHILE_COPYING";
/// Where it finds the agent program, and where it copies from and to.
const STATE: &str = "SHIELING_TEST_STATE";
const PLACE: &str = "SHIELING_TEST_PLACE";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_is_killed_while_it_copies_leaves_no_incomplete_file() {
    if let Some(socket) = std::env::var_os(KILLED) {
        let mut options = Options::image(BUSYBOX);
        options.unlimited = true;
        let surroundings = Surroundings {
            docker_host: Some(format!("unix://{}", socket.to_string_lossy())),
            ..Surroundings::default()
        };
        let place = PathBuf::from(std::env::var_os(PLACE).unwrap());
        let state = PathBuf::from(std::env::var_os(STATE).unwrap());
        let container = Container::open(options, Choice::Auto, &surroundings, &state, None)
            .await
            .unwrap();
        let options = CopyOptions::default();
        container
            .copy_in(&place.join("from"), Path::new("/tmp"), options)
            .await
            .unwrap();
        loop {
            container
                .copy_out(Path::new("/tmp"), &place.join("to"), options)
                .await
                .unwrap();
        }
    }
    let _turn = turn().await;
    let Some(engine) = engine(Kind::Docker) else { return };
    const LENGTH: u64 = 1_500_000;
    for round in 0..4 {
        let place = tempdir().unwrap();
        let (from, to) = (place.path().join("from"), place.path().join("to"));
        fs::create_dir(&from).unwrap();
        for number in 0..20 {
            fs::write(
                from.join(number.to_string()),
                vec![number; usize::try_from(LENGTH).unwrap()],
            )
            .unwrap();
        }
        let name = "container::copies::a_process_that_is_killed_while_it_copies_leaves_no_incomplete_file";
        let mut child = Program::new(std::env::current_exe().unwrap())
            .args(["--exact", name, "--nocapture"])
            .env(KILLED, &engine.socket)
            .env(STATE, state())
            .env(PLACE, place.path())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let wanted = to.join((round * 5).to_string());
        until("it copies out", || wanted.exists()).await;
        child.kill().unwrap();
        child.wait().unwrap();
        for entry in fs::read_dir(&to).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name();
            let is_temporary = name.to_string_lossy().starts_with(".shieling-copy-");
            assert!(is_temporary || entry.metadata().unwrap().len() == LENGTH, "{name:?}");
        }
        until("its container is gone", || engine.containers().is_empty()).await;
    }
}

/// A workspace whose change sets are kept beside it, and a container that works on a copy of it.
async fn both(engine: &'static Engine, place: &Path, change: impl FnOnce(&mut Options)) -> Arc<Container> {
    let mut options = copying(engine, TOOLS, &place.join("work"));
    options.workspace_copy = Some(WorkspaceCopy::Both {
        sets: place.join("sets"),
        home: None,
        fixed: vec![place.join("work/shieling.toml")],
    });
    change(&mut options);
    Arc::new(engine.open(options).await.unwrap())
}

fn project() -> (tempfile::TempDir, PathBuf) {
    let place = tempdir().unwrap();
    let root = place.path().canonicalize().unwrap();
    let work = root.join("work");
    fs::create_dir_all(work.join(".git/hooks")).unwrap();
    fs::create_dir_all(work.join("old/deep")).unwrap();
    for (name, content) in [
        ("a", "one\n"),
        ("b", "two\n"),
        ("old/deep/x", "x"),
        ("shieling.toml", "timeout = \"5s\"\n"),
    ] {
        fs::write(work.join(name), content).unwrap();
    }
    fs::set_permissions(work.join("old"), fs::Permissions::from_mode(0o2755)).unwrap();
    (place, root)
}

const WORK: &str =
    "echo changed >a && chmod 600 a && rm -r old && mkdir new && echo new >new/file && ln -s file new/link";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_changes_in_a_copy_comes_back_when_it_is_closed() {
    let _turn = turn().await;
    for kind in Kind::ALL {
        let Some(engine) = engine(kind) else { continue };
        let (_place, root) = project();
        let work = root.join("work");
        let was = fs::metadata(work.join("b")).unwrap();
        let container = both(engine, &root, |_| ()).await;
        let outcome = run(&container, WORK).await;
        assert_eq!(outcome.exit_code, Some(0), "{kind:?}: {outcome:?}");
        assert!(outcome.changes.is_none(), "{outcome:?}");
        assert_eq!(fs::read_to_string(work.join("a")).unwrap(), "one\n");
        container.close().await;
        let (changes, error) = container.settled_at_close().expect("something came back");
        assert_eq!(
            (error, changes.state),
            (None, ChangeState::Committed),
            "{kind:?}: {changes:?}"
        );
        let totals = changes.totals.unwrap();
        assert_eq!(
            (totals.added, totals.modified, totals.deleted),
            (3, 1, 3),
            "{kind:?}: {changes:?}"
        );
        assert_eq!(fs::read_to_string(work.join("a")).unwrap(), "changed\n");
        let now = fs::metadata(work.join("a")).unwrap();
        assert_eq!(
            (now.mode() & 0o7777, now.uid()),
            (0o600, rustix::process::geteuid().as_raw())
        );
        assert_eq!(fs::read_link(work.join("new/link")).unwrap(), Path::new("file"));
        assert!(!work.join("old").exists());
        // What did not change was not touched.
        let same = fs::metadata(work.join("b")).unwrap();
        assert_eq!(
            (same.ino(), same.ctime(), same.ctime_nsec()),
            (was.ino(), was.ctime(), was.ctime_nsec())
        );
        assert!(container.settled_at_close().is_none());
        let store = Store::open(&root.join("sets"), Limits::default()).unwrap();
        let mut set = store.get(&changes.id.unwrap()).unwrap();
        store
            .undo(&mut set, &shieling::changes::Surroundings::default())
            .unwrap();
        assert_eq!(fs::read_to_string(work.join("a")).unwrap(), "one\n");
        assert_eq!(fs::metadata(work.join("old")).unwrap().mode() & 0o7777, 0o2755);
        assert_eq!(engine.containers(), Vec::<String>::new(), "{kind:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_user_changed_meanwhile_is_never_overwritten() {
    let _turn = turn().await;
    let Some(engine) = engine(Kind::Docker) else { return };
    let (_place, root) = project();
    let work = root.join("work");
    let container = both(engine, &root, |_| ()).await;
    let outcome = run(&container, WORK).await;
    assert_eq!(outcome.exit_code, Some(0), "{outcome:?}");
    fs::write(work.join("a"), "mine\n").unwrap();
    fs::write(work.join("old/deep/mine"), "mine\n").unwrap();
    container.close().await;
    let (changes, error) = container.settled_at_close().expect("it is told");
    assert_eq!((error, changes.state), (None, ChangeState::Conflict), "{changes:?}");
    let conflicts: Vec<_> = changes
        .conflicts
        .iter()
        .map(|conflict| conflict.path.to_str().unwrap())
        .collect();
    assert_eq!(conflicts, ["a", "old/deep/mine"]);
    // Nothing of it is in the workspace, and all of it is kept.
    assert_eq!(fs::read_to_string(work.join("a")).unwrap(), "mine\n");
    assert!(work.join("old/deep/x").exists() && !work.join("new").exists());
    let store = Store::open(&root.join("sets"), Limits::default()).unwrap();
    let mut set = store.get(&changes.id.unwrap()).unwrap();
    let choice = shieling::changes::Choice {
        overwrite: true,
        ..shieling::changes::Choice::default()
    };
    let surroundings = shieling::changes::Surroundings::default();
    store.commit(&mut set, &choice, &surroundings, None).unwrap();
    assert_eq!(fs::read_to_string(work.join("a")).unwrap(), "changed\n");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_would_run_as_the_user_does_not_come_back_by_itself() {
    let _turn = turn().await;
    let Some(engine) = engine(Kind::Docker) else { return };
    let (_place, root) = project();
    let work = root.join("work");
    let container = both(engine, &root, |_| ()).await;
    let text = "echo fine >fine; printf '#!/bin/sh\\n' >.git/hooks/pre-commit; chmod +x .git/hooks/pre-commit; \
                echo 'allow = [\"x\"]' >shieling.toml";
    let outcome = run(&container, text).await;
    assert_eq!(outcome.exit_code, Some(0), "{outcome:?}");
    container.close().await;
    let (changes, error) = container.settled_at_close().expect("it is told");
    assert_eq!(error, None);
    let held: Vec<_> = changes
        .held_back
        .iter()
        .map(|held| held.path.to_str().unwrap())
        .collect();
    assert_eq!(held, [".git/hooks/pre-commit", "shieling.toml"], "{changes:?}");
    assert!(work.join("fine").exists() && !work.join(".git/hooks/pre-commit").exists());
    assert!(
        fs::read_to_string(work.join("shieling.toml"))
            .unwrap()
            .contains("timeout")
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_comes_back_where_nothing_changed_or_may_change_and_what_is_lost_is_told() {
    let _turn = turn().await;
    let Some(engine) = engine(Kind::Docker) else { return };
    let (_place, root) = project();
    let work = root.join("work");
    let sets = || {
        Store::open(&root.join("sets"), Limits::default())
            .unwrap()
            .list()
            .unwrap()
            .len()
    };
    let container = both(engine, &root, |_| ()).await;
    let outcome = run(&container, "cat a; touch -r b c; rm c").await;
    assert_eq!(outcome.exit_code, Some(0), "{outcome:?}");
    container.close().await;
    assert!(container.settled_at_close().is_none());
    assert_eq!(sets(), 0);

    let container = both(engine, &root, |_| ()).await;
    // What cannot be read at the end is not known to be gone, and that is told.
    let outcome = run(&container, "chmod 0 old; mkfifo pipe").await;
    assert_eq!(outcome.exit_code, Some(0), "{outcome:?}");
    container.close().await;
    assert!(work.join("old/deep/x").exists());
    let (changes, error) = container.settled_at_close().expect("it is told");
    assert_eq!(
        (error, changes.state, &changes.id),
        (None, ChangeState::Committed, &None)
    );
    let held: Vec<_> = changes
        .held_back
        .iter()
        .map(|held| held.path.to_str().unwrap())
        .collect();
    assert_eq!(
        (held, changes.totals.unwrap().held_back, sets()),
        (vec!["old", "pipe"], 2, 0)
    );

    let container = both(engine, &root, |_| ()).await;
    // The copy is the container's own.
    let outcome = facade(&container, Policy::open().with_readonly())
        .run(command(&container, "sh -c 'echo no >a'"), None)
        .await;
    assert_ne!(outcome.status, Status::Failed, "{outcome:?}");
    container.close().await;
    assert!(container.settled_at_close().is_none());
    assert_eq!(
        (fs::read_to_string(work.join("a")).unwrap().as_str(), sets()),
        ("one\n", 0)
    );

    let container = both(engine, &root, |_| ()).await;
    run(&container, "echo lost >a").await;
    engine.remove(&container.id().unwrap());
    until("the link is gone", || container.id().is_none()).await;
    container.close().await;
    let (changes, error) = container.settled_at_close().expect("it is told");
    assert!(error.unwrap().contains("the container has ended"), "{changes:?}");
    assert_eq!((changes.state, changes.id), (ChangeState::Discarded, None));
    assert_eq!(
        (fs::read_to_string(work.join("a")).unwrap().as_str(), sets()),
        ("one\n", 0)
    );
}

/// A command that makes a file of two tebibytes out of nothing.
const HOLES: &str = "truncate -s 2T large && echo fine >fine && ls -s large";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_of_holes_does_not_come_out_larger_than_its_bound() {
    let _turn = turn().await;
    let Some(engine) = engine(Kind::Docker) else { return };
    let (_place, root) = project();
    let container = both(engine, &root, |_| ()).await;
    let outcome = run(&container, HOLES).await;
    assert_eq!(
        (outcome.exit_code, outcome.stdout.as_str()),
        (Some(0), "0 large\n"),
        "{outcome:?}"
    );
    // Of a directory that such a file replaces nothing is gone.
    let outcome = run(&container, "rm -r old && truncate -s 2T old").await;
    assert_eq!(outcome.exit_code, Some(0), "{outcome:?}");
    let to = tempdir().unwrap();
    let refused = container
        .copy_out(Path::new("."), to.path(), CopyOptions::default())
        .await;
    let Err(ContainerError::Copy { error, .. }) = refused else {
        panic!("{refused:?}")
    };
    assert_eq!(
        (error.kind, error.path.as_path()),
        (CopyErrorKind::Limit, Path::new("large")),
        "{error}"
    );
    assert!(!to.path().join("large").exists());
    container.close().await;
    let (changes, error) = container.settled_at_close().expect("it is told");
    assert_eq!((error, changes.state), (None, ChangeState::Committed), "{changes:?}");
    let held: Vec<_> = changes.held_back.iter().map(|held| &*held.path).collect();
    assert_eq!(held, [Path::new("large"), Path::new("old")], "{changes:?}");
    let work = root.join("work");
    assert!(!work.join("large").exists() && work.join("fine").exists());
    assert_eq!(fs::read_to_string(work.join("old/deep/x")).unwrap(), "x");
}

/// What lies under it cannot be read, and is neither unchanged nor gone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_part_of_the_copy_over_which_something_is_mounted_is_held_back() {
    let _turn = turn().await;
    let Some(engine) = engine(Kind::Docker) else { return };
    let (_place, root) = project();
    let work = root.join("work");
    let container = both(engine, &root, |options| {
        options.capabilities = vec!["SYS_ADMIN".to_owned()];
        options.acknowledge_unsafe = true;
        options.user = Some(User::Id { uid: 0, gid: 0 });
    })
    .await;
    let text = "echo changed >old/deep/x && mount -t tmpfs none old && echo other >old/y && echo fine >fine";
    let outcome = run(&container, text).await;
    assert_eq!(outcome.exit_code, Some(0), "{outcome:?}");
    container.close().await;
    let (changes, error) = container.settled_at_close().expect("it is told");
    assert_eq!((error, changes.state), (None, ChangeState::Committed), "{changes:?}");
    let held: Vec<_> = changes.held_back.iter().map(|held| &*held.path).collect();
    assert_eq!(held, [Path::new("old")], "{changes:?}");
    assert!(changes.held_back[0].because.contains("mounted"), "{changes:?}");
    assert_eq!(fs::read_to_string(work.join("old/deep/x")).unwrap(), "x");
    assert!(work.join("fine").exists() && !work.join("old/y").exists());
}

/// What a copy has made may not let its own user write: of the container's, that is no first user.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn directories_that_cannot_be_written_are_filled_again_and_stay_as_they_are() {
    let _turn = turn().await;
    for kind in [Kind::Docker, Kind::Rootless] {
        let Some(engine) = engine(kind) else { continue };
        let place = tempdir().unwrap();
        let closed = place.path().join("closed/deep");
        fs::create_dir_all(&closed).unwrap();
        for directory in [&closed, &place.path().join("closed")] {
            fs::write(directory.join("x"), "one").unwrap();
            fs::set_permissions(directory, fs::Permissions::from_mode(0o555)).unwrap();
        }
        let container = Arc::new(engine.open(engine.options(BUSYBOX)).await.unwrap());
        let options = CopyOptions::default();
        let copied = container.copy_in(place.path(), Path::new("to"), options).await.unwrap();
        assert_eq!((copied.files, copied.directories), (2, 2));
        fs::write(closed.join("x"), "two").unwrap();
        fs::write(closed.join("y"), "new").unwrap();
        let copied = container.copy_in(place.path(), Path::new("to"), options).await.unwrap();
        assert_eq!((copied.files, copied.directories), (3, 2), "{kind:?}");
        let outcome = run(
            &container,
            "id -u; cd to/closed; cat deep/x deep/y; ls -ld . deep; touch deep/z",
        )
        .await;
        assert!(outcome.stdout.starts_with("65534\ntwonew"), "{kind:?}: {outcome:?}");
        assert_eq!(outcome.stdout.matches("dr-xr-xr-x").count(), 2, "{kind:?}: {outcome:?}");
        assert!(outcome.stderr.contains("Permission denied"), "{kind:?}: {outcome:?}");
        // A copy that stops in it closes it again.
        fs::write(closed.join("large"), vec![1; 80 << 20]).unwrap();
        let refused = container.copy_in(place.path(), Path::new("to"), options).await;
        assert!(
            matches!(refused, Err(ContainerError::Copy { .. })),
            "{kind:?}: {refused:?}"
        );
        let outcome = run(&container, "ls -ld to/closed to/closed/deep").await;
        assert_eq!(outcome.stdout.matches("dr-xr-xr-x").count(), 2, "{kind:?}: {outcome:?}");
        container.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_close_that_is_given_up_leaves_the_workspace_whole() {
    let _turn = turn().await;
    let Some(engine) = engine(Kind::Docker) else { return };
    let mut seen = Vec::new();
    for after_ms in [0, 5, 40, 150, 400, 60_000] {
        let (_place, root) = project();
        let work = root.join("work");
        let container = both(engine, &root, |_| ()).await;
        let text = "for i in 0 1 2 3 4 5 6 7 8 9; do head -c 8M /dev/urandom >new$i; done; rm -r old; echo changed >a";
        let outcome = run(&container, text).await;
        assert_eq!(outcome.exit_code, Some(0), "{outcome:?}");
        let given_up = tokio::time::timeout(std::time::Duration::from_millis(after_ms), container.close()).await;
        drop(container);
        until("its container is gone", || engine.containers().is_empty()).await;
        // What was begun in the workspace goes on to its end.
        let state = || {
            let new = (0..10).filter(|i| work.join(format!("new{i}")).exists()).count();
            let is_old = fs::read_to_string(work.join("a")).unwrap() == "one\n";
            (new, work.join("old/deep/x").exists(), is_old)
        };
        until("the workspace is whole", || {
            [(0, true, true), (10, false, false)].contains(&state())
        })
        .await;
        for i in 0..10 {
            if let Ok(found) = fs::metadata(work.join(format!("new{i}"))) {
                assert_eq!(found.len(), 8 << 20, "new{i}");
            }
        }
        seen.push((given_up.is_err(), state().0));
    }
    assert_eq!((seen[0], seen[5]), ((true, 0), (false, 10)), "{seen:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_that_is_full_says_so_to_the_command_that_fills_it() {
    let _turn = turn().await;
    for kind in [Kind::Docker, Kind::Podman] {
        let Some(engine) = engine(kind) else { continue };
        let place = tempdir().unwrap();
        fs::write(place.path().join("note"), "of the user").unwrap();
        let mut options = copying(engine, BUSYBOX, place.path());
        options.memory = Some(64 << 20);
        let container = Arc::new(engine.open(options).await.unwrap());
        // Three quarters of the memory.
        let outcome = run(&container, "dd if=/dev/zero of=large bs=1M count=60; echo $?; cat note").await;
        assert!(
            outcome.stderr.contains("No space left on device"),
            "{kind:?}: {outcome:?}"
        );
        assert_eq!(
            (outcome.status, outcome.stdout.as_str()),
            (Status::Exited, "1\nof the user"),
            "{kind:?}: {outcome:?}"
        );
        let outcome = run(&container, "rm large && echo room >again && cat again").await;
        assert_eq!(outcome.stdout, "room\n", "{kind:?}: {outcome:?}");
        container.close().await;
    }
}

/// Otherwise commands forge change sets, which are trusted later.
#[tokio::test]
async fn a_workspace_that_holds_change_sets_the_agent_program_or_a_home_is_not_copied() {
    let (_place, root) = project();
    let work = root.join("work");
    symlink(&work, root.join("link")).unwrap();
    let both = |sets: PathBuf, home: Option<PathBuf>| WorkspaceCopy::Both {
        sets,
        home,
        fixed: Vec::new(),
    };
    let (apart, state_apart) = (root.join("sets"), root.join("state"));
    let cases = [
        (
            both(work.join("state/changes"), None),
            state_apart.clone(),
            "change sets",
        ),
        // Neither a link nor that it is not there yet hides it.
        (
            both(root.join("link/state/changes"), None),
            state_apart.clone(),
            "change sets",
        ),
        (both(root.clone(), None), state_apart.clone(), "change sets"),
        (both(apart.clone(), Some(work.clone())), state_apart.clone(), "the home"),
        (both(apart.clone(), Some(work.join("old"))), state_apart, "the home"),
        (both(apart, None), work.join("state"), "programs"),
        (WorkspaceCopy::In, root.join("link/state"), "programs"),
    ];
    for (how, state, word) in cases {
        let mut options = Options::image(BUSYBOX);
        options.workspace = Some(work.clone());
        options.workspace_copy = Some(how.clone());
        // No engine is asked before.
        let nowhere = Surroundings {
            docker_host: Some("unix:///nonexistent/engine".to_owned()),
            ..Surroundings::default()
        };
        let error = Container::open(options, Choice::Auto, &nowhere, &state, None)
            .await
            .unwrap_err();
        assert!(error.to_string().contains(word), "{how:?}: {error}");
        assert!(error.instead().is_some(), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_file_that_cannot_be_made_here_is_held_back_and_the_rest_comes_back() {
    let _turn = turn().await;
    let Some(engine) = engine(Kind::Docker) else { return };
    let (_place, root) = project();
    let work = root.join("work");
    let container = both(engine, &root, |_| ()).await;
    // Less than the memory of the container can have, more than most file systems.
    let outcome = run(
        &container,
        "truncate -s 9000000000000000000 large && echo keep >keep && rm a",
    )
    .await;
    assert_eq!(outcome.exit_code, Some(0), "{outcome:?}");
    container.close().await;
    let (changes, error) = container.settled_at_close().expect("it is told");
    assert_eq!((error, changes.state), (None, ChangeState::Committed), "{changes:?}");
    assert_eq!(changes.held_back[0].path, Path::new("large"), "{changes:?}");
    assert!(work.join("keep").exists() && !work.join("a").exists() && !work.join("large").exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_committed_is_kept_and_named() {
    let _turn = turn().await;
    let Some(engine) = engine(Kind::Docker) else { return };
    let (_place, root) = project();
    let container = both(engine, &root, |_| ()).await;
    let outcome = run(&container, WORK).await;
    assert_eq!(outcome.exit_code, Some(0), "{outcome:?}");
    fs::rename(root.join("work"), root.join("moved")).unwrap();
    container.close().await;
    let (changes, error) = container.settled_at_close().expect("it is told");
    let (id, error) = (changes.id.expect("it is kept"), error.expect("it is told"));
    assert_eq!(changes.state, ChangeState::Waiting);
    assert!(error.contains(&format!("shieling changes show {id}")), "{error}");
    let store = Store::open(&root.join("sets"), Limits::default()).unwrap();
    assert!(store.get(&id).unwrap().upper().join("new/file").exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_call_after_a_container_has_died_with_its_copy_says_so_and_does_nothing() {
    let _turn = turn().await;
    let Some(engine) = engine(Kind::Docker) else { return };
    for both_ways in [true, false] {
        let (_place, root) = project();
        let work = root.join("work");
        let container = both(engine, &root, |options| {
            if !both_ways {
                options.workspace_copy = Some(WorkspaceCopy::In);
            }
        })
        .await;
        for files in [false, true] {
            run(&container, "echo lost >a").await;
            engine.remove(&container.id().unwrap());
            until("the link is gone", || container.id().is_none()).await;
            if files {
                let Err(error) = container.files().await else {
                    panic!("nothing is told")
                };
                assert!(error.to_string().contains("copy of the workspace"), "{error}");
                assert!(container.files().await.is_ok());
            } else {
                let outcome = run(&container, "echo again >>b").await;
                let error = outcome.error.clone().unwrap_or_default();
                assert!(error.contains("copy of the workspace"), "{outcome:?}");
                assert_eq!(outcome.status, Status::Failed, "{outcome:?}");
            }
            // From here on it is a new copy.
            let outcome = run(&container, "cat a b").await;
            assert_eq!(outcome.stdout, "one\ntwo\n", "{outcome:?}");
        }
        run(&container, "echo kept >kept").await;
        container.close().await;
        match both_ways {
            true => {
                let (changes, error) = container.settled_at_close().expect("it is told");
                assert_eq!(changes.state, ChangeState::Committed);
                assert!(error.unwrap().contains("earlier container"), "{changes:?}");
                assert!(work.join("kept").exists());
            }
            false => assert!(!work.join("kept").exists()),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_whose_container_dies_is_told_once_what_is_lost_with_it() {
    let _turn = turn().await;
    let Some(engine) = engine(Kind::Docker) else { return };
    let (_place, root) = project();
    let container = both(engine, &root, |_| ()).await;
    container.start().await.unwrap();
    let id = container.id().unwrap();
    let running = run(&container, "echo lost >a; sleep 600");
    let removing = async {
        until("it sleeps", || {
            engine.processes(&id).iter().any(|words| words.contains("sleep 600"))
        })
        .await;
        engine.remove(&id);
    };
    let (outcome, ()) = tokio::join!(running, removing);
    assert_eq!(outcome.status, Status::Lost, "{outcome:?}");
    assert!(outcome.error.unwrap().contains("copy of the workspace is lost"));
    let outcome = run(&container, "cat a").await;
    assert_eq!(outcome.stdout, "one\n", "{outcome:?}");
    container.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_hidden_is_not_in_the_container_and_nothing_takes_its_place() {
    let _turn = turn().await;
    let Some(engine) = engine(Kind::Docker) else { return };
    let (_place, root) = project();
    let work = root.join("work");
    fs::write(work.join(".env"), "secret\n").unwrap();
    fs::create_dir_all(work.join("old/keys")).unwrap();
    fs::write(work.join("old/keys/k"), "secret\n").unwrap();
    // Other names of what is hidden.
    fs::hard_link(work.join("old/keys/k"), work.join("linked")).unwrap();
    fs::write(work.join("target"), "secret\n").unwrap();
    symlink("../../target", work.join("old/keys/to")).unwrap();
    let policy = || {
        Policy::open()
            .with_ignore(&[".env".to_owned(), "keys/".to_owned()])
            .unwrap()
    };
    // It is there for those who do not hide it.
    let container = both(engine, &root, |_| ()).await;
    let outcome = run(&container, "cat .env old/keys/k").await;
    assert_eq!(outcome.stdout, "secret\nsecret\n", "{outcome:?}");
    container.close().await;

    fs::write(work.join("script"), "cat .env linked target; ls -a . old; echo theirs >.env; rm -rf old; mkdir new; echo theirs >new/.env; mkdir keys; echo >keys/k; echo done >done\n").unwrap();
    let container = both(engine, &root, |_| ()).await;
    let library = facade(&container, policy());
    // What cannot be decided by reading is contained, and so not asked about.
    let outcome = library.run(command(&container, "sh script"), None).await;
    assert_eq!(outcome.status, Status::Exited, "{outcome:?}");
    assert!(!outcome.stdout.contains("secret") && !outcome.stdout.contains(".env") && !outcome.stdout.contains("keys"));
    container.close().await;
    let (changes, error) = container.settled_at_close().expect("it is told");
    assert_eq!((error, changes.state), (None, ChangeState::Committed), "{changes:?}");
    let held: Vec<_> = changes
        .held_back
        .iter()
        .map(|held| held.path.to_str().unwrap())
        .collect();
    for path in [".env", "new/.env", "keys"] {
        assert!(held.contains(&path), "{held:?}");
    }
    for path in [".env", "old/keys/k", "linked", "target"] {
        assert_eq!(fs::read_to_string(work.join(path)).unwrap(), "secret\n", "{path}");
    }
    assert!(work.join("done").exists() && !work.join("old/deep").exists());
    assert!(!work.join("new/.env").exists() && !work.join("keys").exists());
    // What is left of it is judged in the same way later.
    let store = Store::open(&root.join("sets"), Limits::default()).unwrap();
    let waits = store.list().unwrap().into_iter().find(|set| set.held_back > 0);
    let set = store.get(&waits.expect("a rest").id).unwrap();
    let around = shieling::changes::Surroundings {
        hidden: shieling::hidden_of(&set).unwrap(),
        ..shieling::changes::Surroundings::default()
    };
    let later = store.apply(set, &Default::default(), &around).unwrap();
    assert!(later.id.is_none() && later.judged.held_back > 0, "{later:?}");
    assert!(!work.join("new/.env").exists() && !work.join("keys").exists());

    let container = both(engine, &root, |options| {
        options.workspace_copy = Some(WorkspaceCopy::In);
    })
    .await;
    let library = facade(&container, policy());
    let outcome = library.run(command(&container, "sh script"), None).await;
    assert!(
        outcome.status == Status::Exited && !outcome.stdout.contains("secret"),
        "{outcome:?}"
    );
    container.close().await;

    // A volume may show what is hidden, so that reading alone decides.
    let container = both(engine, &root, |options| {
        options.volumes.push(Volume {
            source: work.join("old"),
            target: "/old".into(),
            readonly: true,
        });
    })
    .await;
    let library = facade(&container, policy());
    let outcome = library.run(command(&container, "sh script"), None).await;
    assert_eq!(outcome.status, Status::NeedsApproval, "{outcome:?}");
    container.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn volumes_below_the_work_directory_are_neither_filled_from_the_workspace_nor_emptied_into_it() {
    let _turn = turn().await;
    let Some(engine) = engine(Kind::Docker) else { return };
    for readonly in [false, true] {
        let (_place, root) = project();
        let (work, volume) = (root.join("work"), root.join("volume"));
        fs::create_dir_all(work.join("v/deep")).unwrap();
        fs::create_dir(&volume).unwrap();
        for (path, text) in [
            (work.join("v/x"), "mine"),
            (work.join("v/deep/z"), "mine"),
            (volume.join("x"), "volume"),
            (volume.join("y"), "volume"),
        ] {
            fs::write(path, text).unwrap();
        }
        fs::write(root.join("one"), "volume").unwrap();
        fs::set_permissions(&volume, fs::Permissions::from_mode(0o777)).unwrap();
        let container = both(engine, &root, |options| {
            for (source, target) in [(volume.clone(), "/workspace/v"), (root.join("one"), "/workspace/b")] {
                options.volumes.push(Volume {
                    source,
                    target: target.into(),
                    readonly,
                });
            }
        })
        .await;
        let outcome = run(&container, "cat v/x v/y b; echo new >v/new; echo new >new").await;
        assert_eq!(outcome.stdout, "volumevolumevolume", "{outcome:?}");
        container.close().await;
        let (changes, error) = container.settled_at_close().expect("it is told");
        assert_eq!((error, changes.state), (None, ChangeState::Committed), "{changes:?}");
        let totals = changes.totals.unwrap();
        assert_eq!(
            (totals.added, totals.modified, totals.deleted, totals.held_back),
            (1, 0, 0, 0),
            "{changes:?}"
        );
        assert!(work.join("new").exists() && !work.join("v/y").exists() && !work.join("v/new").exists());
        assert_eq!(fs::read_to_string(work.join("v/x")).unwrap(), "mine");
        assert_eq!(fs::read_to_string(work.join("b")).unwrap(), "two\n");
        assert_eq!(fs::read_to_string(volume.join("x")).unwrap(), "volume");
        assert_eq!(
            (volume.join("new").exists(), volume.join("deep").exists()),
            (!readonly, false)
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_can_be_written_where_the_image_has_a_directory_of_root() {
    let _turn = turn().await;
    for kind in Kind::ALL {
        let Some(engine) = engine(kind) else { continue };
        let (_place, root) = project();
        let container = both(engine, &root, |options| options.workdir = "/root".into()).await;
        match container.start().await {
            Ok(()) => {
                let outcome = run(&container, "echo new >new && cat a").await;
                assert_eq!(outcome.stdout, "one\n", "{kind:?}: {outcome:?}");
                container.close().await;
                assert!(root.join("work/new").exists());
            }
            Err(error) => {
                assert_ne!(kind, Kind::Docker, "{error}");
                assert!(
                    error.instead().unwrap_or_default().contains("--workdir"),
                    "{kind:?}: {error}"
                );
            }
        }
    }
}
