//! Links that are put in the way while an operation is at work: whatever it does, it does to what is in
//! the workspace.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use shieling::files::{EditRequest, FileRequest, WriteRequest};
use shieling::policy::Policy;
use shieling_testkit::{Workspace, extent};

use crate::place::{BOTH, In};

/// How often each is tried.
fn rounds() -> usize {
    extent::rounds(600, 10_000)
}

/// The same for what is hidden, which is found and refused on the same way.
fn hidden_rounds() -> usize {
    extent::rounds(200, 2_000)
}

const SECRET: &str = "SECRET and inside\n";

/// Puts another thing at two paths, again and again, until it is dropped: a file or a link to a secret, a
/// directory or a link to the secret's.
struct Swapping {
    end: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<u64>>,
}

impl Swapping {
    fn begin(root: &Path, secret: PathBuf) -> Self {
        let (end, root) = (Arc::new(AtomicBool::new(false)), root.to_owned());
        let ended = Arc::clone(&end);
        let thread = std::thread::spawn(move || {
            let (spare, spare_directory) = (root.join("spare"), root.join("spare_directory"));
            let (file, directory) = (root.join("file"), root.join("directory"));
            let mut swaps = 0;
            while !ended.load(Ordering::Relaxed) {
                fs::write(&spare, "inside\n").expect("writable");
                fs::rename(&spare, &file).expect("a file in place of a link");
                // What a link stood for is made again; what an operation left is removed.
                let _ = fs::remove_file(&directory);
                fs::create_dir_all(&directory).expect("writable");
                let _ = fs::write(directory.join("secret"), "inside\n");
                symlink(&secret, &spare).expect("a new link");
                fs::rename(&spare, &file).expect("a link in place of a file");
                let _ = fs::remove_dir_all(&spare_directory);
                let _ = fs::rename(&directory, &spare_directory);
                let _ = symlink(secret.parent().expect("it is in a directory"), &directory);
                swaps += 1;
            }
            swaps
        });
        Self {
            end,
            thread: Some(thread),
        }
    }

    fn end(&mut self) -> u64 {
        self.end.store(true, Ordering::Relaxed);
        let thread = self.thread.take();
        thread.map_or(0, |thread| thread.join().expect("it only swaps"))
    }
}

impl Drop for Swapping {
    fn drop(&mut self) {
        self.end.store(true, Ordering::Relaxed);
    }
}

/// So many rounds against a secret, of which each operation must leave every byte, and give none.
async fn attack(here: In, policy: Policy, secret_at: Option<&str>, kind: &str) {
    let (workspace, outside) = (Workspace::new().with("file", "inside\n"), Workspace::new());
    let secret = match secret_at {
        Some(hidden) => workspace.path(hidden),
        None => outside.path("secret"),
    };
    fs::create_dir_all(secret.parent().expect("it is in a directory")).expect("writable");
    fs::write(&secret, SECRET).expect("writable");
    let before = fs::metadata(&secret)
        .expect("it is there")
        .modified()
        .expect("it has a time");
    let shieling = here
        .builder(&workspace, policy)
        .build()
        .expect("it serves no other policy");
    let mut swapping = Swapping::begin(workspace.root(), secret.clone());
    let rounds = secret_at.map_or_else(rounds, |_| hidden_rounds());
    let mut done = 0_usize;
    for round in 0..rounds {
        let path = if round % 2 == 0 { "file" } else { "directory/secret" };
        let ask = match kind {
            "read" => FileRequest::Read(shieling::files::ReadRequest::new(path)),
            "write" => FileRequest::Write(WriteRequest::new(path, "written\n")),
            _ => FileRequest::Edit(EditRequest::new(path, "inside", "edited")),
        };
        let answer = shieling.file(ask).await;
        done += usize::from(answer.is_ok());
        assert!(
            !format!("{answer:?}").contains("SECRET"),
            "{here:?} {kind} round {round}: {answer:?}"
        );
    }
    let swaps = swapping.end();
    let label = format!("{here:?} {kind}: {done} of {rounds} done, {swaps} swaps");
    assert_eq!(fs::read_to_string(&secret).expect("it is there"), SECRET, "{label}");
    let after = fs::metadata(&secret)
        .expect("it is there")
        .modified()
        .expect("it has a time");
    assert_eq!(before, after, "{label}");
    let beside: Vec<_> = fs::read_dir(secret.parent().expect("it is in a directory"))
        .expect("ours")
        .flatten()
        .collect();
    if secret_at.is_none() {
        assert_eq!(beside.len(), 1, "nothing was made beside it: {label}: {beside:?}");
    }
    assert!(done > 0 && swaps > 0, "there was a race: {label}");
}

#[tokio::test(flavor = "multi_thread")]
async fn reading_through_swapped_links_gives_no_byte_from_outside() {
    for here in BOTH {
        attack(here, Policy::open(), None, "read").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn writing_through_swapped_links_changes_no_byte_outside() {
    for here in BOTH {
        attack(here, Policy::open(), None, "write").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn editing_through_swapped_links_changes_and_shows_no_byte_outside() {
    for here in BOTH {
        attack(here, Policy::open(), None, "edit").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn swapped_links_to_a_hidden_file_give_nothing_of_it() {
    let hiding = || Policy::open().with_ignore(&["vault/"]).expect("a pattern");
    for here in BOTH {
        for kind in ["read", "write", "edit"] {
            attack(here, hiding(), Some("vault/secret"), kind).await;
        }
    }
}
