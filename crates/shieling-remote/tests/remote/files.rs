//! Files behind a stream.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use shieling::environment::{Environment as _, Expect, FileError, Links};
use shieling_remote::Timing;

use super::support::{behind, local, soon};

#[tokio::test]
async fn binary_large_and_oddly_named_files_are_read_written_listed_and_moved() {
    let folder = tempfile::tempdir().expect("a directory");
    let root = folder.path().canonicalize().expect("ours");
    let (remote, _far) = behind(local(&root), Timing::default()).await;
    let files = remote.files().await.expect("it has files");
    // The handles block, and so does this test's only thread.
    for length in [0, 1, 256 * 1024, 256 * 1024 + 1, 20_000_000] {
        let content: Vec<u8> = (0..length).map(|at| (at % 253) as u8).collect();
        let path = root.join(OsStr::from_bytes(b"odd \xff\nname"));
        let write_target = files.write_target(&path, Links::Follow).expect("a write target");
        write_target
            .replace(&content, false, Expect::Any)
            .expect("it is written");
        assert!(std::fs::read(&path).expect("it is there") == content, "{length}");
        let node = files.node(&path, Links::Follow).expect("it is there");
        assert_eq!(node.path(), path);
        let mut open = node.open().expect("a file");
        let mut read = vec![0; length + 10];
        assert_eq!(open.read_at(0, &mut read).expect("it is read"), length);
        assert!(read[..length] == content);
        assert_eq!(open.read_at(length as u64 + 5, &mut read).expect("beyond the end"), 0);
        let before = node.meta().expect("known").stamp;
        let wrong = write_target.replace(b"x", false, Expect::Nothing);
        assert!(matches!(wrong, Err(FileError::Changed(_))), "{wrong:?}");
        write_target
            .replace(b"x", true, Expect::Stamp(before))
            .expect("as it was");
        let moved = files
            .write_target(&root.join("moved"), Links::Follow)
            .expect("a write target");
        write_target.rename(&*moved, true).expect("it is moved");
        let top = files.node(&root, Links::Follow).expect("a directory");
        let names: Vec<_> = top
            .entries()
            .expect("a directory")
            .into_iter()
            .map(|entry| entry.name)
            .collect();
        assert_eq!(names, ["moved"]);
        moved.remove(false).expect("ours");
        assert!(moved.current().expect("known").is_none());
    }
    let outside = files.node(Path::new("/etc/passwd"), Links::Follow).err();
    let said = outside.expect("it is outside").to_string();
    assert_eq!(said, "`/etc/passwd` is outside the workspace");
}

#[tokio::test]
async fn a_directory_of_thirty_thousand_names_is_listed_whole() {
    let folder = tempfile::tempdir().expect("a directory");
    let root = folder.path().canonicalize().expect("ours");
    for number in 0..30_000 {
        std::fs::write(root.join(format!("a rather long name of a file, the {number}th")), "").expect("room");
    }
    let (remote, _far) = behind(local(&root), Timing::default()).await;
    let files = remote.files().await.expect("it has files");
    let top = files.node(&root, Links::Follow).expect("a directory");
    assert_eq!(top.entries().expect("a directory").len(), 30_000);
}

#[tokio::test]
async fn a_link_that_is_cut_is_an_error_of_files_and_no_wait() {
    let folder = tempfile::tempdir().expect("a directory");
    let root = folder.path().canonicalize().expect("ours");
    let (remote, far) = behind(local(&root), Timing::default()).await;
    let files = remote.files().await.expect("it has files");
    let top = files.node(&root, Links::Follow).expect("a directory");
    far.cut();
    let error = top.entries().expect_err("the link is cut");
    assert!(matches!(error, FileError::Io { doing: "reach", .. }), "{error:?}");
}

#[tokio::test]
async fn a_change_over_a_link_that_is_over_says_that_nothing_was_done() {
    let folder = tempfile::tempdir().expect("a directory");
    let root = folder.path().canonicalize().expect("ours");
    let (remote, far) = behind(local(&root), Timing::default()).await;
    let files = remote.files().await.expect("it has files");
    let target = files
        .write_target(&root.join("f"), Links::Follow)
        .expect("a write target");
    drop(far);
    // The link may not have been heard to end yet.
    soon("the end", async {
        while remote.end().is_none() {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    })
    .await;
    for content in [&b"short"[..], &vec![0; 20_000_000]] {
        let FileError::Io { source, .. } = target
            .replace(content, false, Expect::Any)
            .expect_err("there is no link")
        else {
            panic!("another error");
        };
        assert!(source.to_string().ends_with("; nothing was done"), "{source}");
    }
    assert!(!root.join("f").exists());
}
