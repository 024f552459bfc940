//! Finding files, and searching in them.

use std::time::{Duration, Instant};

use shieling::files::{FilesError, Glob, GlobAsk, GrepAsk, GrepMode};

use crate::conformance::case::{Case, reads};
use crate::conformance::expect::{holds, refused, same};
use crate::conformance::files::{lines_of, shown};

const TREE: &[(&str, &str)] = &[
    ("a.rs", "fn a() {}\n"),
    ("b/c.rs", "fn c() {}\nfn d() {}\n"),
    ("b/d/e.rs", "// nothing\n"),
    ("b/f.txt", "fn in text\n"),
    (".hidden/g.rs", "fn g() {}\n"),
    (".git/config", "fn git\n"),
    ("target/h.rs", "fn h() {}\n"),
    (".gitignore", "target/\n"),
];

fn owned(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|&text| text.to_owned()).collect()
}

pub(crate) fn cases() -> Vec<Case> {
    vec![
        reads("files are found by a pattern, sorted", |at| {
            Box::pin(async move {
                same(
                    "`**/*.rs`",
                    at.glob("**/*.rs").await?,
                    owned(&["a.rs", "b/c.rs", "b/d/e.rs"]),
                )?;
                same("`b/*.rs`", at.glob("b/*.rs").await?, owned(&["b/c.rs"]))?;
                same("`*.txt` at any depth", at.glob("*.txt").await?, owned(&["b/f.txt"]))?;
                same("`*.none`", at.glob("*.none").await?, Vec::<String>::new())
            })
        })
        .files(TREE),
        reads(
            "what is ignored or begins with a dot is found only if that is wanted",
            |at| {
                Box::pin(async move {
                    let of = Glob {
                        ignored: true,
                        dotted: true,
                    };
                    let found = at
                        .glob_as(GlobAsk {
                            of,
                            ..GlobAsk::new("**/*.rs")
                        })
                        .await?;
                    let paths: Vec<_> = found.paths.iter().map(|path| shown(path)).collect();
                    same(
                        "all",
                        paths,
                        owned(&[".hidden/g.rs", "a.rs", "b/c.rs", "b/d/e.rs", "target/h.rs"]),
                    )
                })
            },
        )
        .files(TREE),
        reads("many files are found in parts", |at| {
            Box::pin(async move {
                let (mut paths, mut after) = (Vec::new(), None);
                loop {
                    let ask = GlobAsk {
                        limit: 2,
                        after: after.take(),
                        ..GlobAsk::new("**/*.rs")
                    };
                    let found = at.glob_as(ask).await?;
                    paths.extend(found.paths.iter().map(|path| shown(path)));
                    match found.next {
                        Some(next) => after = Some(next),
                        None => break,
                    }
                }
                same("all of them", paths, owned(&["a.rs", "b/c.rs", "b/d/e.rs"]))
            })
        })
        .files(TREE),
        reads("a pattern that cannot be read is refused", |at| {
            Box::pin(async move {
                let typed = |error: &FilesError| matches!(error, FilesError::Argument { .. });
                refused("`Argument` for a glob", at.glob_as(GlobAsk::new("a[")).await, typed)?;
                refused(
                    "`Argument` for an expression",
                    at.grep_as(GrepAsk::new("(")).await,
                    typed,
                )
            })
        })
        .files(TREE),
        reads("lines are found with their files and numbers, sorted", |at| {
            Box::pin(async move {
                let expected = owned(&[
                    "a.rs:1:fn a() {}",
                    "b/c.rs:1:fn c() {}",
                    "b/c.rs:2:fn d() {}",
                    "b/f.txt:1:fn in text",
                ]);
                same("`^fn`", at.grep("^fn").await?, expected)?;
                same("`nowhere`", at.grep("nowhere").await?, Vec::<String>::new())
            })
        })
        .files(TREE),
        reads("a search may be literal, whatever the case, in some files only", |at| {
            Box::pin(async move {
                let ask = GrepAsk {
                    literal: true,
                    ignore_case: true,
                    globs: owned(&["*.rs"]),
                    ..GrepAsk::new("C() {")
                };
                same(
                    "one line",
                    lines_of(&at.grep_as(ask).await?),
                    owned(&["b/c.rs:1:fn c() {}"]),
                )
            })
        })
        .files(TREE),
        reads("a search may tell files, or how many lines match in each", |at| {
            Box::pin(async move {
                let files = at
                    .grep_as(GrepAsk {
                        mode: GrepMode::Files,
                        ..GrepAsk::new("fn")
                    })
                    .await?;
                let paths: Vec<_> = files.hits.iter().map(|hit| shown(&hit.path)).collect();
                same("files", paths, owned(&["a.rs", "b/c.rs", "b/f.txt"]))?;
                let counts = at
                    .grep_as(GrepAsk {
                        mode: GrepMode::Count,
                        ..GrepAsk::new("fn")
                    })
                    .await?;
                let counts: Vec<_> = counts.hits.iter().map(|hit| hit.count).collect();
                same("counts", counts, vec![Some(1), Some(2), Some(1)])
            })
        })
        .files(TREE),
        reads("lines beside a match are told to be no match", |at| {
            Box::pin(async move {
                let found = at
                    .grep_as(GrepAsk {
                        before: 1,
                        after_lines: 1,
                        ..GrepAsk::new("3")
                    })
                    .await?;
                let lines: Vec<_> = found.hits.iter().map(|hit| (hit.line, hit.matched)).collect();
                same(
                    "lines",
                    lines,
                    vec![(Some(2), false), (Some(3), true), (Some(4), false)],
                )
            })
        })
        .file("f", "1\n2\n3\n4\n5\n"),
        reads("many lines are found in parts", |at| {
            Box::pin(async move {
                let (mut lines, mut cursor) = (Vec::new(), None);
                for _ in 0..50 {
                    let ask = GrepAsk {
                        limit: 7,
                        cursor: cursor.take(),
                        ..GrepAsk::new("line")
                    };
                    let found = at.grep_as(ask).await?;
                    lines.extend(found.hits.iter().map(|hit| (shown(&hit.path), hit.line.unwrap_or(0))));
                    match found.next {
                        Some(next) => cursor = Some(next),
                        None => break,
                    }
                }
                let expected = ["a", "b"]
                    .into_iter()
                    .flat_map(|file| (1..=20).map(move |line| (file.to_owned(), line)));
                same("all of them, once", lines, expected.collect::<Vec<_>>())
            })
        })
        .file("a", "line\n".repeat(20))
        .file("b", "line\n".repeat(20)),
        reads("an expression takes time in proportion to the text", |at| {
            Box::pin(async move {
                let begun = Instant::now();
                same("nothing", at.grep("(a+)+$").await?.len(), 0)?;
                same("nothing", at.grep("(a|aa)+b").await?.len(), 0)?;
                holds(
                    "seconds",
                    begun.elapsed() < Duration::from_secs(20),
                    &format!("{:?}", begun.elapsed()),
                )
            })
        })
        .file("f", format!("{}!\n", "a".repeat(50_000))),
        reads("files that are no text are counted and left out", |at| {
            Box::pin(async move {
                let found = at.grep_as(GrepAsk::new("needle")).await?;
                same(
                    "lines and binary files",
                    (lines_of(&found), found.binary),
                    (owned(&["t:1:needle"]), 1),
                )
            })
        })
        .file("b", b"\0\0needle\n".to_vec())
        .file("t", "needle\n"),
        reads("a match may go over several lines, if that is wanted", |at| {
            Box::pin(async move {
                same("alone", at.grep("a\\nb").await.map_or(0, |lines| lines.len()), 0)?;
                let found = at
                    .grep_as(GrepAsk {
                        multiline: true,
                        ..GrepAsk::new("a\\nb")
                    })
                    .await?;
                same("the first line", found.hits.first().and_then(|hit| hit.line), Some(2))
            })
        })
        .file("f", "x\na\nb\nc\n"),
        reads("a search of a file is a search of that file", |at| {
            Box::pin(async move {
                let found = at
                    .grep_as(GrepAsk {
                        path: "b/c.rs".into(),
                        ..GrepAsk::new("fn")
                    })
                    .await?;
                same("lines", found.hits.len(), 2)?;
                let below = at
                    .glob_as(GlobAsk {
                        path: "b".into(),
                        ..GlobAsk::new("*.rs")
                    })
                    .await?;
                let paths: Vec<_> = below.paths.iter().map(|path| shown(path)).collect();
                same("below `b`, relative to it", paths, owned(&["c.rs", "d/e.rs"]))
            })
        })
        .files(TREE),
        reads("what is not there cannot be searched", |at| {
            Box::pin(async move {
                let typed = |error: &FilesError| {
                    matches!(error, FilesError::File(shieling::environment::FileError::NotFound(_)))
                };
                let missing = GrepAsk {
                    path: "missing".into(),
                    ..GrepAsk::new("x")
                };
                refused("`NotFound` for a search", at.grep_as(missing).await, typed)?;
                let missing = GlobAsk {
                    path: "missing".into(),
                    ..GlobAsk::new("*")
                };
                refused("`NotFound` for a glob", at.glob_as(missing).await, typed)
            })
        }),
        reads("a circle of links is walked once", |at| {
            Box::pin(async move {
                at.says("ln -s .. d/up; ln -s . here").await?;
                same("files", at.glob("**/*.x").await?, owned(&["d/f.x"]))?;
                same("lines", at.grep("once").await?, owned(&["d/f.x:1:once"]))
            })
        })
        .needs([crate::conformance::case::Need::Can(
            shieling::environment::Ability::Commands,
        )])
        .programs(&["ln"])
        .file("d/f.x", "once\n"),
    ]
}
