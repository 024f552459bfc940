//! A call blocks no other: what reads or searches long does so where the other tasks of the same thread
//! go on.

use std::os::unix::fs::FileExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use shieling::files::{FileAsk, Glob, GrepAsk, GrepMode, ReadAsk, StatAsk};
use shieling_testkit::Workspace;

use crate::place::{In, edit, write};

/// A big file of lines that end nowhere near each other, with holes, which are read as any byte.
fn big(workspace: &Workspace, name: &str, size: u64) {
    workspace.write(name, "first\n");
    let file = std::fs::OpenOptions::new()
        .write(true)
        .open(workspace.path(name))
        .expect("it was just made");
    file.write_all_at(b"\nlast\n", size - 6).expect("room for a hole");
}

/// A sentence in a file of plain text.
fn plain(workspace: &Workspace, name: &str, size: usize) {
    workspace.write(name, &"forty characters of a line of plain text\n".repeat(size / 41));
}

#[tokio::test(flavor = "current_thread")]
async fn others_on_the_same_thread_go_on_while_files_are_at_work() {
    let workspace = Workspace::new();
    plain(&workspace, "plain", 64 << 20);
    big(&workspace, "holes", 1 << 30);
    for number in 0..2_000 {
        workspace.write(&format!("tree/{}/{number}", number % 40), "a line to search in\n");
    }
    let shieling = Arc::new(In::Local.open(&workspace));
    let grep = |path: &str| {
        FileAsk::Grep(GrepAsk {
            pattern: "(a+)+$x".to_owned(),
            path: path.into(),
            literal: false,
            ignore_case: true,
            multiline: false,
            globs: Vec::new(),
            of: Glob::default(),
            before: 0,
            after_lines: 0,
            mode: GrepMode::Content,
            limit: 10,
            cursor: None,
        })
    };
    let asks = [
        FileAsk::Read(ReadAsk {
            offset: 1_000_000,
            ..ReadAsk::new("plain")
        }),
        FileAsk::Read(ReadAsk {
            offset: 1,
            ..ReadAsk::new("holes")
        }),
        FileAsk::Stat(StatAsk { path: "plain".into() }),
        FileAsk::Edit(edit("plain", "is not there", "x")),
        FileAsk::Write(write("new", &"x".repeat(64 << 20))),
        grep("tree"),
        grep("plain"),
    ];
    for ask in asks {
        let label = format!("{ask:?}").chars().take(60).collect::<String>();
        let turns = Arc::new(AtomicU64::new(0));
        let other = {
            let turns = Arc::clone(&turns);
            tokio::spawn(async move {
                loop {
                    turns.fetch_add(1, Ordering::Relaxed);
                    tokio::task::yield_now().await;
                }
            })
        };
        tokio::task::yield_now().await;
        let before = turns.load(Ordering::Relaxed);
        // Held up for as long as the operation runs, the other task would have its turn only where
        // this one waits, a handful of times.
        let _ = shieling.file(ask).await;
        let had = turns.load(Ordering::Relaxed) - before;
        other.abort();
        assert!(had > 200, "{label}: {had} turns");
    }
}
