//! The files of a memory, as tools and commands see them.

use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use proptest::prelude::*;
use shieling::environment::{Environment as _, Expect, FileError, Files, Kind, Links};
use shieling::units::ByteCount;
use shieling_memory::Memory;

use super::support::{WORKSPACE, memory, printed, run};

async fn view(memory: &Memory) -> Arc<dyn Files> {
    memory.files().await.expect("it has files")
}

fn bytes(files: &dyn Files, path: &str) -> Result<Vec<u8>, FileError> {
    let mut content = files.node(Path::new(path), Links::Follow)?.open()?;
    let mut into = vec![0; 1 << 16];
    let read = content.read_at(0, &mut into)?;
    into.truncate(read);
    Ok(into)
}

#[tokio::test]
async fn tools_and_commands_see_the_same_files() {
    let memory = memory();
    let files = view(&memory).await;
    let write_target = files
        .write_target(Path::new("/work/a/b/new.sh"), Links::Follow)
        .expect("a write target");
    assert!(write_target.current().expect("looked").is_none());
    write_target
        .replace(b"echo made\n", true, Expect::Nothing)
        .expect("written");
    assert_eq!(
        printed(&memory, "a/b/new.sh; stat -c %a a/b/new.sh; ln -s a/b l; cat l/new.sh").await,
        "made\n755\necho made\n"
    );
    let node = files.node(Path::new("/work/l/new.sh"), Links::Follow).expect("there");
    assert_eq!(
        (node.path(), node.meta().expect("there").kind),
        (Path::new("/work/a/b/new.sh"), Kind::File)
    );
    assert_eq!(
        files
            .node(Path::new("/work/l"), Links::Keep)
            .expect("there")
            .target()
            .expect("a link"),
        Path::new("a/b")
    );
    assert_eq!(bytes(&*files, "/work/l/new.sh").expect("there"), b"echo made\n");
    let mut names: Vec<_> = files
        .node(Path::new("/work"), Links::Follow)
        .expect("there")
        .entries()
        .expect("a directory")
        .into_iter()
        .map(|entry| entry.name)
        .collect();
    names.sort();
    assert_eq!(names, ["a", "l"]);
}

#[tokio::test]
async fn a_write_with_an_old_state_is_refused_and_changes_nothing() {
    let memory = memory();
    memory.write("f", b"one").expect("room");
    let files = view(&memory).await;
    let write_target = files
        .write_target(Path::new("/work/f"), Links::Follow)
        .expect("a write target");
    let old = write_target
        .current()
        .expect("looked")
        .expect("there")
        .meta()
        .expect("there")
        .stamp;
    assert!(matches!(
        write_target.replace(b"x", false, Expect::Nothing),
        Err(FileError::Changed(_))
    ));
    // The same length, within the same tick.
    assert_eq!(run(&memory, "printf two > f").await.stderr.text(), "");
    assert!(matches!(
        write_target.replace(b"x", false, Expect::Stamp(old)),
        Err(FileError::Changed(_))
    ));
    let new = write_target
        .current()
        .expect("looked")
        .expect("there")
        .meta()
        .expect("there")
        .stamp;
    write_target
        .replace(b"three", false, Expect::Stamp(new))
        .expect("as it was seen");
    assert_eq!(memory.read("f").expect("there"), b"three");
}

#[tokio::test]
async fn a_handle_reads_what_it_was_made_for_and_changes_nothing_elsewhere() {
    let memory = memory();
    memory.write("d/f", b"first").expect("room");
    let files = view(&memory).await;
    let (node, write_target) = (
        files.node(Path::new("/work/d/f"), Links::Follow),
        files.write_target(Path::new("/work/d/f"), Links::Follow),
    );
    let (node, write_target) = (node.expect("there"), write_target.expect("a write target"));
    printed(&memory, "mv d e; mkdir d; echo other > d/f; ln -s /etc/passwd l").await;
    let mut into = [0; 8];
    let read = node
        .open()
        .expect("it is still there")
        .read_at(0, &mut into)
        .expect("read");
    assert_eq!(&into[..read], b"first");
    let was = node.meta().expect("still there");
    let beside = files
        .write_target(Path::new("/work/beside"), Links::Keep)
        .expect("a write target");
    let changes = || {
        [
            write_target.replace(b"x", false, Expect::Any),
            write_target.restore(b"x", &was, Expect::Any),
            write_target.set_mode(0o777),
            write_target.remove(true),
            write_target.rename(&*beside, true),
            beside.rename(&*write_target, true),
            write_target.current().map(|_| ()),
        ]
    };
    // Where the directory is now, where another one is, where only a link leads to it, and nowhere.
    for then in ["echo > beside", "rm -r d; ln -s e d", "rm -r d", "rm -r e"] {
        printed(&memory, then).await;
        for (number, changed) in changes().into_iter().enumerate() {
            let refused = matches!(&changed, Err(FileError::Changed(path)) if path == Path::new("/work/d/f"));
            assert!(refused, "{then}: {number}: {changed:?}");
        }
        if then == "echo > beside" {
            assert_eq!(memory.read("d/f").expect("there"), b"other\n");
        }
        if then != "rm -r e" {
            assert_eq!(memory.read("e/f").expect("there"), b"first", "{then}");
        }
    }
    assert!(matches!(node.meta(), Err(FileError::NotFound(_))));
}

#[tokio::test]
async fn a_directory_that_is_back_is_written_to_and_what_is_put_back_has_its_mode_and_time() {
    let memory = memory();
    memory.write("d/f", b"first").expect("room");
    printed(&memory, "chmod 640 d/f; touch -d @1000000000 d/f").await;
    let files = view(&memory).await;
    let write_target = files
        .write_target(Path::new("/work/d/f"), Links::Follow)
        .expect("a write target");
    let was = write_target
        .current()
        .expect("looked")
        .expect("there")
        .meta()
        .expect("there");
    printed(&memory, "mv d e; mv e d; rm d/f").await;
    write_target.restore(b"first", &was, Expect::Nothing).expect("put back");
    assert_eq!(
        printed(&memory, "stat -c '%a %Y' d/f; cat d/f").await,
        "640 1000000000\nfirst"
    );
    write_target.set_mode(0o4755).expect("given");
    assert_eq!(printed(&memory, "stat -c %a d/f").await, "755\n");
}

#[tokio::test]
async fn wrong_paths_are_told_apart() {
    let memory = memory();
    memory.write("f", b"x").expect("room");
    printed(
        &memory,
        "mkdir d; echo > d/x; ln -s loop loop; ln -s nowhere dangling; ln -s ../../../../work/f up",
    )
    .await;
    let files = view(&memory).await;
    let node = |path: &str| {
        files
            .node(Path::new(path), Links::Follow)
            .err()
            .map(|error| error.to_string())
    };
    let cases = [
        ("/work/none", Some("there is no `/work/none`")),
        ("/work/f/x", Some("`/work/f/x` is not a directory")),
        ("/work/loop", Some("the links at `/work/loop` lead in a circle")),
        ("/work/dangling", Some("there is no `/work/dangling`")),
        ("work/f", Some("`work/f` cannot be a path: it is not absolute")),
        ("/work/up", None),
        ("/../work/./d/../f", None),
    ];
    for (path, expected) in cases {
        assert_eq!(node(path).as_deref(), expected, "{path}");
    }
    let write_target = |path: &str| {
        files
            .write_target(Path::new(path), Links::Follow)
            .expect("a write target")
    };
    assert!(matches!(
        write_target("/work/d").remove(false),
        Err(FileError::NotEmpty(_))
    ));
    assert!(matches!(write_target("/work").remove(true), Err(FileError::Fixed(_))));
    assert!(matches!(
        write_target("/work/d").replace(b"", false, Expect::Any),
        Err(FileError::IsDirectory(_))
    ));
    assert!(matches!(
        write_target("/work/f").rename(&*write_target("/work/d"), true),
        Err(FileError::Exists(_))
    ));
    assert!(matches!(
        write_target(&format!("/work/{}", "n".repeat(256))).replace(b"", false, Expect::Any),
        Err(FileError::BadPath { .. })
    ));
    assert!(
        files
            .node(Path::new("/work"), Links::Follow)
            .expect("there")
            .child(OsStr::new("none"))
            .is_err()
    );
}

#[tokio::test]
async fn room_is_bounded_and_a_write_that_does_not_fit_changes_nothing() {
    let memory = Memory::builder(WORKSPACE)
        .memory(ByteCount::kib(64))
        .files(12)
        .build()
        .expect("a memory");
    memory.write("keep", &[b'k'; 40_000]).expect("it fits");
    let ran = run(&memory, "cat keep > more; echo $?; cat keep >> keep; ls").await;
    assert!(
        ran.stderr.text().contains("No space left on device"),
        "{}",
        ran.stderr.text()
    );
    assert_eq!(memory.read("keep").expect("there").len(), 40_000);
    assert!(matches!(memory.write("big", &[0; 60_000]), Err(FileError::Full { .. })));
    memory.write("keep", b"small").expect("what it takes is given back");
    let ran = run(&memory, "for i in 1 2 3 4 5 6 7 8 9; do : > n$i; done").await;
    assert!(
        ran.stderr.text().contains("No space left on device"),
        "{}",
        ran.stderr.text()
    );
    let limited = super::support::command("yes | head -c 3000 > big; wc -c < big");
    let limited = limited.with_file_size(Some(ByteCount::kib(1)));
    let ran = super::support::run_command(&self::memory(), limited, shieling::process::Streams::Output).await;
    assert!(
        ran.stderr.text().contains("File too large"),
        "{} {}",
        ran.stdout.text(),
        ran.stderr.text()
    );
}

#[tokio::test]
async fn snapshots_forks_and_times() {
    let memory = Memory::builder(WORKSPACE)
        .time(UNIX_EPOCH + Duration::from_secs(1_000_000_000))
        .seed((0..10_000).map(|n| (format!("d{}/f{n}", n % 100), vec![b'x'; 10])))
        .build()
        .expect("a memory");
    assert_eq!(
        printed(&memory, "date -u +%s; : > t; stat -c %Y t").await,
        "1000000000\n1000000000\n"
    );
    let before = memory.snapshot();
    let fork = memory.fork();
    printed(&memory, "rm -r d1; echo changed > d2/f2; echo new > new").await;
    printed(&fork, "echo forked > new").await;
    assert_eq!(fork.read("d2/f2").expect("as it was"), [b'x'; 10]);
    assert_eq!(memory.read("new").expect("its own"), b"new\n");
    memory.restore(&before);
    assert_eq!(
        printed(&memory, "cat d2/f2; ls d1 | wc -l; ls new 2>/dev/null || echo none").await,
        "xxxxxxxxxx100\nnone\n"
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_is_read(content in proptest::collection::vec(any::<u8>(), 0..5_000)) {
        let memory = memory();
        memory.write("f", &content).expect("it fits");
        prop_assert_eq!(memory.read("f").expect("there"), content);
    }
}
