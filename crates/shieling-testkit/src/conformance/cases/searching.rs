//! Finding files, and searching in them.

use std::time::{Duration, Instant};

use shieling::files::{FilesError, GlobRequest, GrepMode, GrepRequest, Include};

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
        reads("files are found by a pattern, sorted", |context| {
            Box::pin(async move {
                same(
                    "`**/*.rs`",
                    context.glob("**/*.rs").await?,
                    owned(&["a.rs", "b/c.rs", "b/d/e.rs"]),
                )?;
                same("`b/*.rs`", context.glob("b/*.rs").await?, owned(&["b/c.rs"]))?;
                same(
                    "`*.txt` at any depth",
                    context.glob("*.txt").await?,
                    owned(&["b/f.txt"]),
                )?;
                same("`*.none`", context.glob("*.none").await?, Vec::<String>::new())
            })
        })
        .files(TREE),
        reads(
            "what is ignored or begins with a dot is found only if that is wanted",
            |context| {
                Box::pin(async move {
                    let include = Include {
                        ignored: true,
                        dotfiles: true,
                    };
                    let found = context
                        .glob_as(GlobRequest {
                            include,
                            ..GlobRequest::new("**/*.rs")
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
        reads("many files are found in parts", |context| {
            Box::pin(async move {
                let (mut paths, mut after) = (Vec::new(), None);
                loop {
                    let ask = GlobRequest {
                        limit: 2,
                        after: after.take(),
                        ..GlobRequest::new("**/*.rs")
                    };
                    let found = context.glob_as(ask).await?;
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
        reads("a pattern that cannot be read is refused", |context| {
            Box::pin(async move {
                let typed = |error: &FilesError| matches!(error, FilesError::Argument { .. });
                refused(
                    "`Argument` for a glob",
                    context.glob_as(GlobRequest::new("a[")).await,
                    typed,
                )?;
                refused(
                    "`Argument` for an expression",
                    context.grep_as(GrepRequest::new("(")).await,
                    typed,
                )
            })
        })
        .files(TREE),
        reads("lines are found with their files and numbers, sorted", |context| {
            Box::pin(async move {
                let expected = owned(&[
                    "a.rs:1:fn a() {}",
                    "b/c.rs:1:fn c() {}",
                    "b/c.rs:2:fn d() {}",
                    "b/f.txt:1:fn in text",
                ]);
                same("`^fn`", context.grep("^fn").await?, expected)?;
                same("`nowhere`", context.grep("nowhere").await?, Vec::<String>::new())
            })
        })
        .files(TREE),
        reads(
            "a search may be literal, whatever the case, in some files only",
            |context| {
                Box::pin(async move {
                    let ask = GrepRequest {
                        literal: true,
                        ignore_case: true,
                        globs: owned(&["*.rs"]),
                        ..GrepRequest::new("C() {")
                    };
                    same(
                        "one line",
                        lines_of(&context.grep_as(ask).await?),
                        owned(&["b/c.rs:1:fn c() {}"]),
                    )
                })
            },
        )
        .files(TREE),
        reads("a search may tell files, or how many lines match in each", |context| {
            Box::pin(async move {
                let files = context
                    .grep_as(GrepRequest {
                        mode: GrepMode::Files,
                        ..GrepRequest::new("fn")
                    })
                    .await?;
                let paths: Vec<_> = files.hits.iter().map(|hit| shown(&hit.path)).collect();
                same("files", paths, owned(&["a.rs", "b/c.rs", "b/f.txt"]))?;
                let counts = context
                    .grep_as(GrepRequest {
                        mode: GrepMode::Count,
                        ..GrepRequest::new("fn")
                    })
                    .await?;
                let counts: Vec<_> = counts.hits.iter().map(|hit| hit.count).collect();
                same("counts", counts, vec![Some(1), Some(2), Some(1)])
            })
        })
        .files(TREE),
        reads("lines beside a match are told to be no match", |context| {
            Box::pin(async move {
                let found = context
                    .grep_as(GrepRequest {
                        before: 1,
                        after_lines: 1,
                        ..GrepRequest::new("3")
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
        reads("many lines are found in parts", |context| {
            Box::pin(async move {
                let (mut lines, mut cursor) = (Vec::new(), None);
                for _ in 0..50 {
                    let ask = GrepRequest {
                        limit: 7,
                        cursor: cursor.take(),
                        ..GrepRequest::new("line")
                    };
                    let found = context.grep_as(ask).await?;
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
        reads("an expression takes time in proportion to the text", |context| {
            Box::pin(async move {
                let begun = Instant::now();
                same("nothing", context.grep("(a+)+$").await?.len(), 0)?;
                same("nothing", context.grep("(a|aa)+b").await?.len(), 0)?;
                holds(
                    "seconds",
                    begun.elapsed() < Duration::from_secs(20),
                    &format!("{:?}", begun.elapsed()),
                )
            })
        })
        .file("f", format!("{}!\n", "a".repeat(50_000))),
        reads("files that are no text are counted and left out", |context| {
            Box::pin(async move {
                let found = context.grep_as(GrepRequest::new("needle")).await?;
                same(
                    "lines and binary files",
                    (lines_of(&found), found.binary),
                    (owned(&["t:1:needle"]), 1),
                )
            })
        })
        .file("b", b"\0\0needle\n".to_vec())
        .file("t", "needle\n"),
        reads("a match may go over several lines, if that is wanted", |context| {
            Box::pin(async move {
                same("alone", context.grep("a\\nb").await.map_or(0, |lines| lines.len()), 0)?;
                let found = context
                    .grep_as(GrepRequest {
                        multiline: true,
                        ..GrepRequest::new("a\\nb")
                    })
                    .await?;
                same("the first line", found.hits.first().and_then(|hit| hit.line), Some(2))
            })
        })
        .file("f", "x\na\nb\nc\n"),
        reads("a search of a file is a search of that file", |context| {
            Box::pin(async move {
                let found = context
                    .grep_as(GrepRequest {
                        path: "b/c.rs".into(),
                        ..GrepRequest::new("fn")
                    })
                    .await?;
                same("lines", found.hits.len(), 2)?;
                let below = context
                    .glob_as(GlobRequest {
                        path: "b".into(),
                        ..GlobRequest::new("*.rs")
                    })
                    .await?;
                let paths: Vec<_> = below.paths.iter().map(|path| shown(path)).collect();
                same("below `b`, relative to it", paths, owned(&["c.rs", "d/e.rs"]))
            })
        })
        .files(TREE),
        reads("what is not there cannot be searched", |context| {
            Box::pin(async move {
                let typed = |error: &FilesError| {
                    matches!(error, FilesError::File(shieling::environment::FileError::NotFound(_)))
                };
                let missing = GrepRequest {
                    path: "missing".into(),
                    ..GrepRequest::new("x")
                };
                refused("`NotFound` for a search", context.grep_as(missing).await, typed)?;
                let missing = GlobRequest {
                    path: "missing".into(),
                    ..GlobRequest::new("*")
                };
                refused("`NotFound` for a glob", context.glob_as(missing).await, typed)
            })
        }),
        reads("a circle of links is walked once", |context| {
            Box::pin(async move {
                context.says("ln -s .. d/up; ln -s . here").await?;
                same("files", context.glob("**/*.x").await?, owned(&["d/f.x"]))?;
                same("lines", context.grep("once").await?, owned(&["d/f.x:1:once"]))
            })
        })
        .needs([crate::conformance::case::Need::Can(
            shieling::environment::Ability::Commands,
        )])
        .programs(&["ln"])
        .file("d/f.x", "once\n"),
    ]
}
