//! Listing, querying, removing and moving files.

use shieling::environment::{Ability, FileError, Kind};
use shieling::files::{FilesError, ListRequest};

use crate::conformance::case::{Case, Need, reads, writes};
use crate::conformance::expect::{holds, is_typed, refused, same};
use crate::conformance::files::shown;

const COMMANDS: Need = Need::Can(Ability::Commands);

fn is_missing(error: &FilesError) -> bool {
    matches!(error, FilesError::File(FileError::NotFound(_)))
}

fn is_there(error: &FilesError) -> bool {
    matches!(error, FilesError::File(FileError::Exists(_)))
}

pub(crate) fn cases() -> Vec<Case> {
    vec![
        reads(
            "a directory is listed by the bytes of its names, with what each is",
            |context| {
                Box::pin(async move {
                    let listed = context.list(".").await?;
                    let seen: Vec<_> = listed
                        .entries
                        .iter()
                        .filter(|entry| !shown(&entry.path).starts_with('.') || entry.path.ends_with(".dot"))
                        .map(|entry| (shown(&entry.path), entry.kind, entry.size))
                        .collect();
                    let expected = [
                        (".dot", Kind::File, Some(1)),
                        ("B", Kind::File, Some(2)),
                        ("a", Kind::File, Some(0)),
                        ("d", Kind::Directory, None),
                        ("ü", Kind::File, Some(3)),
                    ];
                    same(
                        "entries",
                        seen,
                        expected
                            .map(|(name, kind, size)| (name.to_owned(), kind, size))
                            .to_vec(),
                    )?;
                    same(
                        "its path and what is next",
                        (listed.path.as_path(), listed.next),
                        (context.workspace(), None),
                    )
                })
            },
        )
        .files(&[("a", ""), ("B", "12"), ("d/f", ""), (".dot", "1"), ("ü", "123")]),
        reads("a long directory is listed in parts", |context| {
            Box::pin(async move {
                let (mut names, mut after) = (Vec::new(), None);
                loop {
                    let ask = ListRequest {
                        path: ".".into(),
                        limit: 4,
                        after: after.take(),
                    };
                    let listed = context.list_as(ask).await?;
                    holds(
                        "4 at most",
                        listed.entries.len() <= 4,
                        &listed.entries.len().to_string(),
                    )?;
                    names.extend(
                        listed
                            .entries
                            .iter()
                            .map(|entry| shown(&entry.path))
                            .filter(|name| !name.starts_with('.')),
                    );
                    match listed.next {
                        Some(next) => after = Some(next),
                        None => break,
                    }
                }
                same(
                    "all of it",
                    names,
                    (0..10).map(|number| format!("f{number}")).collect::<Vec<_>>(),
                )
            })
        })
        .files(&[
            ("f0", ""),
            ("f1", ""),
            ("f2", ""),
            ("f3", ""),
            ("f4", ""),
            ("f5", ""),
            ("f6", ""),
            ("f7", ""),
            ("f8", ""),
            ("f9", ""),
        ]),
        reads("an empty directory has nothing in it", |context| {
            Box::pin(async move { same("entries", context.names(".").await?, Vec::<String>::new()) })
        }),
        reads("a file cannot be listed", |context| {
            Box::pin(async move {
                let listed = context.list("f").await;
                refused("`NotADirectory`", listed, |error| {
                    matches!(error, FilesError::File(FileError::NotADirectory(_)))
                })?;
                refused("`NotFound`", context.list("missing").await, is_missing)
            })
        })
        .file("f", ""),
        reads("links are listed as links, also those that lead nowhere", |context| {
            Box::pin(async move {
                context.says("ln -s f good; ln -s missing bad; ln -s loop loop").await?;
                let listed = context.list(".").await?;
                let links: Vec<_> = listed
                    .entries
                    .iter()
                    .filter(|entry| entry.kind == Kind::Link)
                    .map(|entry| (shown(&entry.path), entry.dangling))
                    .collect();
                same(
                    "links",
                    links,
                    [("bad", true), ("good", false), ("loop", true)]
                        .map(|(name, dangling)| (name.to_owned(), dangling))
                        .to_vec(),
                )
            })
        })
        .needs([COMMANDS])
        .programs(&["ln"])
        .file("f", ""),
        reads("a file is looked at without being read", |context| {
            Box::pin(async move {
                let info = context.stat("d/f").await?;
                same(
                    "what it is",
                    (info.kind, info.size, &info.path),
                    (Kind::File, Some(5), &context.path("d/f")),
                )?;
                same("its state", info.hash, Some(context.read("d/f").await?.hash))?;
                same("a directory", context.stat("d").await?.kind, Kind::Directory)?;
                refused("`NotFound`", context.stat("missing").await, is_missing)
            })
        })
        .file("d/f", "12345"),
        writes("a file is removed, and is gone", |context| {
            Box::pin(async move {
                context.delete("f", false).await?;
                same("what is there", context.names(".").await?, vec!["g".to_owned()])?;
                refused("`NotFound`", context.delete("f", false).await, is_missing)
            })
        })
        .files(&[("f", ""), ("g", "")]),
        writes(
            "a directory with something in it is removed only if that is wanted",
            |context| {
                Box::pin(async move {
                    let deleted = context.delete("d", false).await;
                    refused("`NotEmpty`", deleted, |error| {
                        matches!(error, FilesError::File(FileError::NotEmpty(_)))
                    })?;
                    same("what is in it", context.text("d/e/f").await?, "kept")?;
                    context.delete("d", true).await?;
                    same("what is there", context.names(".").await?, Vec::<String>::new())
                })
            },
        )
        .file("d/e/f", "kept"),
        writes("the workspace is not removed, nor what it stands in", |context| {
            Box::pin(async move {
                let above = context
                    .workspace()
                    .parent()
                    .unwrap_or(context.workspace())
                    .to_path_buf();
                for path in [
                    ".".into(),
                    context.workspace().to_path_buf(),
                    "d/..".into(),
                    above,
                    "/".into(),
                    "..".into(),
                ] {
                    let deleted = context.delete(&path, true).await;
                    refused(&format!("`{}` stays", path.display()), deleted, is_typed)?;
                }
                same("a file in it", context.text("d/f").await?, "kept")
            })
        })
        .file("d/f", "kept"),
        writes("a link is removed, and what it leads to stays", |context| {
            Box::pin(async move {
                context.says("ln -s d e; ln -s d/f g").await?;
                context.delete("e", true).await?;
                context.delete("g", false).await?;
                same(
                    "what is there",
                    (context.names(".").await?, context.text("d/f").await?),
                    (vec!["d".to_owned()], "kept".to_owned()),
                )
            })
        })
        .needs([COMMANDS])
        .programs(&["ln"])
        .file("d/f", "kept"),
        writes("a file is moved, with what is in it", |context| {
            Box::pin(async move {
                let info = context.rename("f", "g", false).await?;
                same("where it is", &info.path, &context.path("g"))?;
                same("its text", context.text("g").await?, "text")?;
                same("what is there", context.names(".").await?, vec!["g".to_owned()])
            })
        })
        .file("f", "text"),
        writes("a directory is moved as a whole", |context| {
            Box::pin(async move {
                context.rename("d", "e", false).await?;
                same("its file", context.text("e/x/f").await?, "text")?;
                same("what is there", context.names(".").await?, vec!["e".to_owned()])
            })
        })
        .file("d/x/f", "text"),
        writes("a file is moved into a directory that is there", |context| {
            Box::pin(async move {
                let info = context.rename("f", "d", false).await?;
                same("where it is", &info.path, &context.path("d/f"))?;
                same("its text", context.text("d/f").await?, "text")
            })
        })
        .files(&[("f", "text"), ("d/g", "")]),
        writes("a file that is there is replaced only if that is wanted", |context| {
            Box::pin(async move {
                refused("`Exists`", context.rename("f", "g", false).await, is_there)?;
                same(
                    "both",
                    (context.text("f").await?, context.text("g").await?),
                    ("f".to_owned(), "g".to_owned()),
                )?;
                context.rename("f", "g", true).await?;
                same(
                    "one",
                    (context.names(".").await?, context.text("g").await?),
                    (vec!["g".to_owned()], "f".to_owned()),
                )
            })
        })
        .files(&[("f", "f"), ("g", "g")]),
        writes("a directory is not moved into itself", |context| {
            Box::pin(async move {
                let moved = context.rename("d", "d/e", false).await;
                refused("refused", moved, is_typed)?;
                refused("`NotFound`", context.rename("missing", "x", false).await, is_missing)?;
                same("its file", context.text("d/f").await?, "text")
            })
        })
        .file("d/f", "text"),
    ]
}
