//! What a hostile repository and a clumsy model try: each ends soon, in an answer or a typed error.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use shieling::environment::FileError;
use shieling::files::{
    EditRequest, FileContent, FileRequest, FilesError, GlobRequest, GrepRequest, ListRequest, MoveRequest,
    PatchRequest, ReadRequest, StatRequest,
};
use shieling_testkit::{Workspace, extent};

use crate::place::{BOTH, In, adding, changes, content, delete};

/// No longer than that, in seconds, on a busy machine.
const SOON: u64 = 300;

fn grep(pattern: &str) -> GrepRequest {
    GrepRequest {
        limit: 10,
        ..GrepRequest::new(pattern)
    }
}

fn list(path: &str, limit: u64, after: Option<&str>) -> ListRequest {
    ListRequest {
        limit,
        after: after.map(str::to_owned),
        ..ListRequest::new(path)
    }
}

fn glob(pattern: &str, limit: u64, after: Option<&str>) -> GlobRequest {
    GlobRequest {
        limit,
        after: after.map(str::to_owned),
        ..GlobRequest::new(pattern)
    }
}

#[tokio::test]
async fn paths_that_are_none_are_errors_in_every_operation() {
    let long = "x".repeat(100_000);
    let deep = "d/".repeat(50_000);
    let up = "../".repeat(30_000) + "etc/passwd";
    for here in BOTH {
        let workspace = Workspace::new().with("a", "old\n");
        let shieling = here.open(&workspace);
        for path in [
            "nul\0inside",
            "a/../../../nowhere/at/all",
            "a/b",
            &long,
            &deep,
            &up,
            "\0",
        ] {
            let label: String = path.chars().take(30).collect();
            let mut asks = changes(path);
            asks.extend([
                FileRequest::Read(ReadRequest::new(path)),
                FileRequest::Stat(StatRequest::new(path)),
                FileRequest::List(list(path, 10, None)),
                FileRequest::Move(MoveRequest::new("a", format!("{path}/x"))),
            ]);
            for ask in asks {
                let kind: String = format!("{ask:?}").chars().take(12).collect();
                let answer = shieling.file(ask).await;
                assert!(answer.is_err(), "{here:?} {kind} {label}: it was done");
            }
        }
        assert_eq!(content(&workspace, "a"), "old\n", "{here:?}");
    }
}

#[tokio::test]
async fn limits_that_are_none_are_told() {
    let workspace = Workspace::new().with("a", "old\n");
    let shieling = In::Local.open(&workspace);
    for limit in [0, 1 << 63, u64::MAX] {
        let refused = [
            shieling.file(FileRequest::List(list(".", limit, None))).await,
            shieling.file(FileRequest::Glob(glob("*", limit, None))).await,
            shieling
                .file(FileRequest::Grep(GrepRequest { limit, ..grep("x") }))
                .await,
        ];
        for refused in refused {
            assert!(
                matches!(refused, Err(FilesError::Argument { argument: "limit", .. })),
                "{refused:?}"
            );
        }
    }
    for context in [1 << 63, u64::MAX] {
        let asks = [
            GrepRequest {
                before: context,
                ..grep("x")
            },
            GrepRequest {
                after_lines: context,
                ..grep("x")
            },
        ];
        for ask in asks {
            assert!(matches!(shieling.grep(ask).await, Err(FilesError::Argument { .. })));
        }
    }
    let far = |offset, limit| ReadRequest {
        offset,
        limit,
        ..ReadRequest::new("a")
    };
    let whole = shieling
        .read_file(far(0, u64::MAX))
        .await
        .expect("no more than there is");
    assert!(
        matches!(
            whole.content,
            FileContent::Text {
                lines: 1,
                next_offset: None,
                ..
            }
        ),
        "{whole:?}"
    );
    for offset in [1 << 63, u64::MAX] {
        let beyond = shieling.read_file(far(offset, u64::MAX)).await;
        assert!(
            matches!(beyond, Err(FilesError::BeyondEnd { lines: 1, .. })),
            "{beyond:?}"
        );
    }
}

#[tokio::test]
async fn forged_cursors_lead_nowhere_else() {
    let outside = Workspace::new().with("secret", "SECRET\n");
    let workspace = Workspace::new().with("a", "SECRE\n").with("b/c", "SECRE\n");
    symlink(outside.root(), workspace.path("out")).expect("a new link");
    let shieling = In::Local.open(&workspace);
    let up = format!(
        "../{}/secret",
        outside.root().file_name().expect("named").to_string_lossy()
    );
    let forged = [
        "",
        "/",
        "/etc/passwd",
        "..",
        "../..",
        &up,
        "out/secret",
        "a/../b",
        "%00",
        "%2e%2e/x",
        "%ZZ",
        "b//c",
        "zzz/zzz",
        "a\0b",
        &"%".repeat(1 << 20),
        &"x/".repeat(1 << 20),
    ];
    for cursor in forged {
        let label: String = cursor.chars().take(30).collect();
        for cursor in [
            cursor.to_owned(),
            format!("18446744073709551615:{cursor}"),
            format!("-1:{cursor}"),
        ] {
            let found = shieling
                .grep(GrepRequest {
                    cursor: Some(cursor.clone()),
                    ..grep("SECRE")
                })
                .await;
            assert!(!format!("{found:?}").contains("SECRET"), "{label}: {found:?}");
            let found = shieling.glob(glob("**", 10, Some(&cursor))).await;
            assert!(found.is_err() || !format!("{found:?}").contains("secret"), "{label}");
            let listed = shieling.list_files(list(".", 10, Some(&cursor))).await;
            assert!(
                listed.is_err() || !format!("{:?}", listed.expect("not an error").entries).contains("secret"),
                "{label}"
            );
        }
    }
}

#[tokio::test]
async fn patterns_that_would_take_for_ever_do_not() {
    let workspace = Workspace::new()
        .with("a", &"a".repeat(1 << 20))
        .with(&("d/".repeat(40) + "x"), "x\n")
        .with("many/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "x\n");
    let shieling = In::Local.open(&workspace);
    let begun = Instant::now();
    let patterns = [
        "(a+)+$".to_owned(),
        "(a|a)*b".to_owned(),
        "(?:a{1000}){1000}".to_owned(),
        "((((((((a{10}){10}){10}){10}){10}){10}){10}){10}){10}".to_owned(),
        "(".repeat(50_000),
        "a?".repeat(20_000) + "b",
        r"\w{5000}".to_owned(),
        "x".repeat(100_000),
    ];
    for pattern in patterns {
        // Answered or refused, it ends.
        let _ = shieling.grep(grep(&pattern)).await;
    }
    let globs = [
        "**/".repeat(1_000) + "x",
        "*a".repeat(1_000) + "b",
        "{a,b}".repeat(500),
        "{".repeat(2_000),
        format!("{{{}}}", "a,".repeat(1_000_000)),
        "[a-".repeat(1_000),
        "[!\u{10ffff}-a]".to_owned(),
        "?".repeat(4_096),
    ];
    for pattern in globs {
        let _ = shieling.glob(glob(&pattern, 10, None)).await;
        let asked = GrepRequest {
            globs: vec![pattern; extent::rounds(10, 50)],
            ..grep("a")
        };
        let _ = shieling.grep(asked).await;
    }
    assert!(begun.elapsed().as_secs() < SOON, "{:?}", begun.elapsed());
}

#[tokio::test]
async fn a_patch_may_name_a_file_twice_by_any_name() {
    for here in BOTH {
        let workspace = Workspace::new().with("a", "1\n2\n3\n").with("d/x", "x\n");
        symlink("d", workspace.path("l")).expect("a new link");
        let shieling = here.open(&workspace);
        let twice = "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-1\n+one\n--- a/./a\n+++ b/./a\n@@ -3 +3 @@\n-3\n+three\n";
        let patched = shieling.apply_patch(PatchRequest::new(twice.to_owned())).await;
        assert!(patched.is_ok(), "{here:?}: {patched:?}");
        assert_eq!(content(&workspace, "a"), "one\n2\nthree\n", "{here:?}");
        // The second half does not fit what the first half makes: neither is done.
        let apart = "--- a/d/x\n+++ b/d/x\n@@ -1 +1 @@\n-x\n+y\n--- a/l/x\n+++ b/l/x\n@@ -1 +1 @@\n-x\n+z\n";
        let patched = shieling.apply_patch(PatchRequest::new(apart.to_owned())).await;
        assert!(
            matches!(patched, Err(FilesError::Misfit { .. })),
            "{here:?}: {patched:?}"
        );
        assert_eq!(content(&workspace, "d/x"), "x\n", "{here:?}");
        let both = format!("{}{}", adding("new").patch, adding("./new").patch);
        let added = shieling.apply_patch(PatchRequest::new(both)).await;
        assert!(added.is_err() && !workspace.path("new").exists(), "{here:?}: {added:?}");
    }
}

#[tokio::test]
async fn huge_patches_end() {
    let lines = extent::rounds(50_000, 200_000);
    let workspace = Workspace::new().with("a", &"a\n".repeat(lines));
    let shieling = In::Local.open(&workspace);
    let begun = Instant::now();
    let hunk = format!("@@ -1,{0} +1,{0} @@\n{1}-b\n+c\n", 5_001, " a\n".repeat(5_000));
    let patches = [
        // Each place nearly fits.
        format!("--- a/a\n+++ b/a\n{}", hunk.repeat(extent::rounds(4, 50))),
        // Very many files, of which each would be held.
        (0..5_000)
            .map(|number| adding(&format!("many/{number}")).patch)
            .collect(),
        "x".repeat(17 << 20),
        "@@ -1 +1 @@\n".repeat(extent::rounds(1 << 16, 1 << 20)),
        format!("--- a/a\n+++ b/a\n@@ -{0},{0} +{0},{0} @@\n-a\n+b\n", u64::MAX),
        format!(
            "*** Begin Patch\n*** Update File: a\n{}*** End Patch\n",
            "@@ a\n".repeat(extent::rounds(5_000, 100_000))
        ),
    ];
    for text in patches {
        let label: String = text.chars().take(40).collect();
        let patched = shieling.apply_patch(PatchRequest::new(text)).await;
        assert!(patched.is_err(), "{label}");
    }
    assert!(!workspace.path("many").exists());
    assert_eq!(
        fs::metadata(workspace.path("a")).expect("it is there").len(),
        2 * lines as u64
    );
    assert!(begun.elapsed().as_secs() < SOON, "{:?}", begun.elapsed());
}

#[tokio::test]
async fn edits_of_a_large_file_that_repeats_itself_end_and_are_bounded() {
    let workspace = Workspace::new();
    let megabytes = extent::rounds(16, 50);
    workspace.write_bytes("a", &vec![b'a'; megabytes << 20]);
    let shieling = In::Local.open(&workspace);
    let begun = Instant::now();
    let nearly = "a".repeat(1 << 20) + "b";
    let missing = shieling.edit_file(EditRequest::new("a", &nearly, "x")).await;
    assert!(matches!(missing, Err(FilesError::NoMatch { .. })), "it is nowhere");
    let mut everywhere = EditRequest::new("a", "a", "b");
    let ambiguous = shieling.edit_file(everywhere.clone()).await;
    assert!(matches!(ambiguous, Err(FilesError::Argument { argument: "old", .. })));
    everywhere.replace_all = true;
    let too_many = shieling.edit_file(everywhere).await;
    assert!(matches!(too_many, Err(FilesError::Argument { argument: "old", .. })));
    // Hundreds of places, of which each would become ten megabytes.
    let mut grown = EditRequest::new("a", "a".repeat(50 << 10), "b".repeat(10 << 20));
    grown.replace_all = true;
    let too_large = shieling.edit_file(grown).await;
    assert!(matches!(too_large, Err(FilesError::TooLarge { .. })));
    assert_eq!(
        fs::metadata(workspace.path("a")).expect("it is there").len(),
        (megabytes as u64) << 20
    );
    assert!(begun.elapsed().as_secs() < SOON, "{:?}", begun.elapsed());
}

#[tokio::test]
async fn files_that_are_mostly_holes_are_not_read_to_their_end() {
    let workspace = Workspace::new().with("text", "first\nsecond\n").with("nothing", "");
    for name in ["text", "nothing"] {
        let file = fs::OpenOptions::new()
            .write(true)
            .open(workspace.path(name))
            .expect("ours");
        file.set_len(1 << 40).expect("a hole");
    }
    let shieling = In::Local.open(&workspace);
    let begun = Instant::now();
    for name in ["text", "nothing"] {
        let read = shieling
            .read_file(ReadRequest {
                limit: 2,
                ..ReadRequest::new(name)
            })
            .await;
        assert!(read.is_ok_and(|read| read.size == 1 << 40), "{name}");
        let info = shieling.stat(StatRequest::new(name)).await.expect("it is there");
        assert!(info.hash.is_some_and(|hash| hash.0.starts_with("stat-")), "{name}");
        let edited = shieling.edit_file(EditRequest::new(name, "first", "x")).await;
        assert!(matches!(edited, Err(FilesError::TooLarge { .. })), "{name}: {edited:?}");
    }
    let _ = shieling.grep(grep("second")).await.expect("a search");
    shieling.delete_file(delete("text", false)).await.expect("removed");
    assert!(begun.elapsed().as_secs() < SOON, "{:?}", begun.elapsed());
}

#[tokio::test]
async fn a_directory_of_very_many_files_is_listed_moved_and_removed() {
    let many = extent::rounds(11_000, 20_000);
    for here in BOTH {
        let workspace = Workspace::new();
        fs::create_dir(workspace.path("many")).expect("ours");
        for number in 0..many {
            fs::File::create(workspace.path(&format!("many/{number:05}"))).expect("ours");
        }
        let shieling = here.open(&workspace);
        let (mut seen, mut after) = (0, None);
        loop {
            let page = shieling
                .list_files(list("many", 10_000, after.as_deref()))
                .await
                .expect("a page");
            seen += page.entries.len() as u64;
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(seen, many, "{here:?}");
        // With fewer descriptors than files.
        shieling
            .move_file(MoveRequest::new("many", "moved"))
            .await
            .expect("moved");
        shieling.delete_file(delete("moved", true)).await.expect("removed");
        assert!(
            !workspace.path("many").exists() && !workspace.path("moved").exists(),
            "{here:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_that_is_swapped_while_it_is_removed_takes_nothing_outside_along() {
    for here in BOTH {
        let outside = Workspace::new().with("d/kept", "KEPT\n").with("kept", "KEPT\n");
        let workspace = Workspace::new();
        let shieling = here.open(&workspace);
        let end = Arc::new(AtomicBool::new(false));
        let swapping = {
            let (end, root, target) = (Arc::clone(&end), workspace.root().to_owned(), outside.root().to_owned());
            std::thread::spawn(move || {
                let (inner, aside) = (root.join("top/d"), root.join("aside"));
                while !end.load(Ordering::Relaxed) {
                    let _ = fs::create_dir_all(&inner);
                    let _ = fs::write(inner.join("kept"), "inside");
                    let _ = fs::rename(&inner, &aside);
                    let _ = symlink(&target, &inner);
                    let _ = fs::remove_file(&inner);
                    let _ = fs::rename(&aside, &inner);
                    let _ = fs::remove_dir_all(&aside);
                }
            })
        };
        let mut done = 0;
        for _ in 0..500 {
            done += u32::from(shieling.delete_file(delete("top", true)).await.is_ok());
        }
        end.store(true, Ordering::Relaxed);
        swapping.join().expect("it only swaps");
        assert_eq!(content(&outside, "d/kept"), "KEPT\n", "{here:?}, {done} done");
        assert_eq!(content(&outside, "kept"), "KEPT\n", "{here:?}, {done} done");
    }
}

#[tokio::test]
async fn what_reads_for_ever_is_no_file() {
    let workspace = Workspace::new();
    for (name, to) in [
        ("zero", "/dev/zero"),
        ("self", "/proc/self/mem"),
        ("loop", "loop"),
        ("up", ".."),
    ] {
        symlink(to, workspace.path(name)).expect("a new link");
    }
    for here in BOTH {
        let shieling = here.open(&workspace);
        for path in ["zero", "self", "loop", "loop/x", "up"] {
            let read = shieling.read_file(ReadRequest::new(path)).await;
            assert!(
                matches!(&read, Err(FilesError::File(error)) if !matches!(error, FileError::Io { .. })),
                "{here:?} {path}: {read:?}"
            );
        }
        let paths: Vec<PathBuf> = shieling.glob(glob("**", 100, None)).await.expect("a search").paths;
        assert!(paths.len() <= 4, "no link is entered: {paths:?}");
    }
}
