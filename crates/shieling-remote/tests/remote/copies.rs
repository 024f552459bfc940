//! Directories that are copied over a link.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use shieling_remote::{CopyErrorKind, CopyOptions, Timing};
use tempfile::tempdir;

use super::support::{behind, copying, memory};

/// Bytes that differ from place to place.
fn content(length: usize) -> Vec<u8> {
    (0..length)
        .map(|at| (at.wrapping_mul(2_654_435_761) >> 16) as u8)
        .collect()
}

fn names(at: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(at)
        .expect("a directory")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tree_goes_in_and_comes_out_as_it_was() {
    let (remote, _far) = copying(Timing::default()).await;
    let (from, to, back) = (tempdir().unwrap(), tempdir().unwrap(), tempdir().unwrap());
    let large = content(5_000_000);
    fs::create_dir_all(from.path().join("a/b")).unwrap();
    fs::write(from.path().join("a/b/large"), &large).unwrap();
    symlink("b/large", from.path().join("a/link")).unwrap();
    for number in 0..500 {
        fs::write(from.path().join(format!("a/{number}")), number.to_string()).unwrap();
    }
    let options = CopyOptions::default();
    let inside = to.path().join("new");
    let copied = remote.copy_in(from.path(), &inside, options).await.unwrap();
    assert_eq!((copied.files, copied.directories, copied.links), (501, 2, 1));
    let copied = remote.copy_out(&inside, back.path(), options).await.unwrap();
    assert_eq!((copied.files, copied.directories, copied.links), (501, 2, 1));
    assert!(fs::read(back.path().join("a/link")).unwrap() == large);
    assert_eq!(fs::read_to_string(back.path().join("a/499")).unwrap(), "499");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_stops_a_copy_at_either_end_is_told() {
    let (remote, _far) = copying(Timing::default()).await;
    let (from, to) = (tempdir().unwrap(), tempdir().unwrap());
    // Much more than is on its way at once, behind what stops it.
    fs::write(from.path().join("a"), "a").unwrap();
    fs::write(from.path().join("b"), content(20_000_000)).unwrap();
    fs::create_dir(to.path().join("a")).unwrap();
    let options = CopyOptions::default();
    let into = remote.copy_in(from.path(), to.path(), options).await.unwrap_err();
    let out = remote.copy_out(from.path(), to.path(), options).await.unwrap_err();
    for error in [into, out] {
        assert_eq!((error.kind, error.path), (CopyErrorKind::InTheWay, PathBuf::from("a")));
    }
    let missing = from.path().join("missing");
    let into = remote.copy_in(&missing, to.path(), options).await.unwrap_err();
    let out = remote.copy_out(&missing, to.path(), options).await.unwrap_err();
    for error in [into, out] {
        assert_eq!((error.kind, error.path), (CopyErrorKind::Open, missing.clone()));
    }
    // The link is as good as before.
    let elsewhere = tempdir().unwrap();
    remote.copy_in(from.path(), elsewhere.path(), options).await.unwrap();
    assert_eq!(names(elsewhere.path()), ["a", "b"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_side_that_copies_nothing_says_so() {
    let (remote, _far) = behind(memory(), Timing::default()).await;
    let (here, options) = (tempdir().unwrap(), CopyOptions::default());
    let into = remote.copy_in(here.path(), Path::new("/work"), options).await;
    let out = remote.copy_out(Path::new("/work"), here.path(), options).await;
    for done in [into, out] {
        assert_eq!(done.unwrap_err().kind, CopyErrorKind::Unsupported);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_what_changed_since_comes_out_and_what_is_gone_is_told() {
    let (remote, _far) = copying(Timing::default()).await;
    let (from, to, back) = (tempdir().unwrap(), tempdir().unwrap(), tempdir().unwrap());
    let at = |name: &str| from.path().join(name);
    fs::create_dir_all(at("kept/deep")).unwrap();
    fs::create_dir_all(at("closed")).unwrap();
    fs::create_dir_all(at("removed/d")).unwrap();
    for name in [
        "kept/deep/same",
        "kept/changed",
        "closed/x",
        "removed/d/x",
        "moved",
        "forged",
        "mode",
    ] {
        fs::write(at(name), name).unwrap();
    }
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sees = Arc::clone(&seen);
    let options = CopyOptions::default();
    let take = Box::new(move |path: &Path, _: &_| sees.lock().unwrap().push(path.to_owned()));
    let (base, copied) = remote
        .copy_base_in(from.path(), to.path(), options, None, take)
        .await
        .unwrap();
    assert_eq!(copied.files, 7);
    let mut sorted = seen.lock().unwrap().clone();
    assert_eq!(sorted.len(), 12);
    sorted.sort();
    assert_eq!(*seen.lock().unwrap(), sorted);

    let there = |name: &str| to.path().join(name);
    fs::write(there("kept/changed"), "other").unwrap();
    fs::write(there("kept/new"), "new").unwrap();
    fs::remove_dir_all(there("removed")).unwrap();
    fs::rename(there("moved"), there("now here")).unwrap();
    fs::set_permissions(there("mode"), fs::Permissions::from_mode(0o700)).unwrap();
    // The same size, and the time that it had.
    let was = fs::metadata(there("forged")).unwrap().modified().unwrap();
    let mut file = fs::OpenOptions::new().write(true).open(there("forged")).unwrap();
    file.write_all(b"FORGED").unwrap();
    file.set_modified(was).unwrap();
    let root = rustix::process::geteuid().is_root();
    fs::set_permissions(there("closed"), fs::Permissions::from_mode(0o000)).unwrap();

    let gone = Arc::new(Mutex::new(Vec::new()));
    let goes = Arc::clone(&gone);
    let take = move |path: &Path| {
        goes.lock().unwrap().push(path.to_owned());
        Ok(())
    };
    let copied = remote
        .copy_changes_out(&base, to.path(), back.path(), options, take)
        .await
        .unwrap();
    fs::set_permissions(there("closed"), fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(copied.files, 5);
    let told: Vec<_> = gone
        .lock()
        .unwrap()
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    assert_eq!(told, ["moved", "removed", "removed/d", "removed/d/x"]);
    assert_eq!(names(&back.path().join("kept")), ["changed", "new"]);
    let mut expected = vec!["closed", "forged", "kept", "mode", "now here"];
    if !root {
        // Nobody but root knows what is in it: it is left out, and nothing in it counts as gone.
        assert_eq!(copied.skipped_total, 1);
        expected.retain(|name| *name != "closed");
    }
    assert_eq!(names(back.path()), expected);
    assert_eq!(fs::read(back.path().join("forged")).unwrap(), b"FORGED");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_that_is_given_up_or_cut_leaves_whole_files_alone() {
    let from = tempdir().unwrap();
    let (length, many) = (300_000, 40);
    for number in 0..many {
        fs::write(from.path().join(format!("{number:02}")), content(length)).unwrap();
    }
    let whole = |at: &Path| {
        for name in names(at) {
            assert_eq!(fs::metadata(at.join(&name)).unwrap().len(), length as u64, "{name}");
        }
    };
    let options = CopyOptions::default();
    for round in 0..24_u64 {
        let (remote, far) = copying(Timing::default()).await;
        let to = tempdir().unwrap();
        let moment = Duration::from_micros(500 + 900 * round);
        let copy = async {
            match round % 2 {
                0 => remote.copy_in(from.path(), to.path(), options).await,
                _ => remote.copy_out(from.path(), to.path(), options).await,
            }
        };
        if round % 4 < 2 {
            let done = tokio::time::timeout(moment, copy).await;
            if done.is_err() {
                // The link carries the next one.
                let other = tempdir().unwrap();
                remote.copy_in(from.path(), other.path(), options).await.unwrap();
                assert_eq!(names(other.path()).len(), many);
            }
        } else {
            let cut = async {
                tokio::time::sleep(moment).await;
                far.cut();
            };
            let (done, ()) = tokio::join!(copy, cut);
            if let Err(error) = done {
                assert_eq!(error.kind, CopyErrorKind::Lost, "{error}");
            }
        }
        drop(remote);
        drop(far);
        whole(to.path());
    }
}
