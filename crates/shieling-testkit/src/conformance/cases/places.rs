//! What is where: listing, looking, removing, moving.

use shieling::environment::{Ability, FileError, Kind};
use shieling::files::{FilesError, ListAsk};

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
            |at| {
                Box::pin(async move {
                    let listed = at.list(".").await?;
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
                        (at.workspace(), None),
                    )
                })
            },
        )
        .files(&[("a", ""), ("B", "12"), ("d/f", ""), (".dot", "1"), ("ü", "123")]),
        reads("a long directory is listed in parts", |at| {
            Box::pin(async move {
                let (mut names, mut after) = (Vec::new(), None);
                loop {
                    let ask = ListAsk {
                        path: ".".into(),
                        limit: 4,
                        after: after.take(),
                    };
                    let listed = at.list_as(ask).await?;
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
        reads("an empty directory has nothing in it", |at| {
            Box::pin(async move { same("entries", at.names(".").await?, Vec::<String>::new()) })
        }),
        reads("a file cannot be listed", |at| {
            Box::pin(async move {
                let listed = at.list("f").await;
                refused("`NotADirectory`", listed, |error| {
                    matches!(error, FilesError::File(FileError::NotADirectory(_)))
                })?;
                refused("`NotFound`", at.list("missing").await, is_missing)
            })
        })
        .file("f", ""),
        reads("links are listed as links, also those that lead nowhere", |at| {
            Box::pin(async move {
                at.says("ln -s f good; ln -s missing bad; ln -s loop loop").await?;
                let listed = at.list(".").await?;
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
        reads("a file is looked at without being read", |at| {
            Box::pin(async move {
                let info = at.stat("d/f").await?;
                same(
                    "what it is",
                    (info.kind, info.size, &info.path),
                    (Kind::File, Some(5), &at.path("d/f")),
                )?;
                same("its state", info.hash, Some(at.read("d/f").await?.hash))?;
                same("a directory", at.stat("d").await?.kind, Kind::Directory)?;
                refused("`NotFound`", at.stat("missing").await, is_missing)
            })
        })
        .file("d/f", "12345"),
        writes("a file is removed, and is gone", |at| {
            Box::pin(async move {
                at.delete("f", false).await?;
                same("what is there", at.names(".").await?, vec!["g".to_owned()])?;
                refused("`NotFound`", at.delete("f", false).await, is_missing)
            })
        })
        .files(&[("f", ""), ("g", "")]),
        writes(
            "a directory with something in it is removed only if that is wanted",
            |at| {
                Box::pin(async move {
                    let deleted = at.delete("d", false).await;
                    refused("`NotEmpty`", deleted, |error| {
                        matches!(error, FilesError::File(FileError::NotEmpty(_)))
                    })?;
                    same("what is in it", at.text("d/e/f").await?, "kept")?;
                    at.delete("d", true).await?;
                    same("what is there", at.names(".").await?, Vec::<String>::new())
                })
            },
        )
        .file("d/e/f", "kept"),
        writes("the workspace is not removed, nor what it stands in", |at| {
            Box::pin(async move {
                let above = at.workspace().parent().unwrap_or(at.workspace()).to_path_buf();
                for path in [
                    ".".into(),
                    at.workspace().to_path_buf(),
                    "d/..".into(),
                    above,
                    "/".into(),
                    "..".into(),
                ] {
                    let deleted = at.delete(&path, true).await;
                    refused(&format!("`{}` stays", path.display()), deleted, is_typed)?;
                }
                same("a file in it", at.text("d/f").await?, "kept")
            })
        })
        .file("d/f", "kept"),
        writes("a link is removed, and what it leads to stays", |at| {
            Box::pin(async move {
                at.says("ln -s d e; ln -s d/f g").await?;
                at.delete("e", true).await?;
                at.delete("g", false).await?;
                same(
                    "what is there",
                    (at.names(".").await?, at.text("d/f").await?),
                    (vec!["d".to_owned()], "kept".to_owned()),
                )
            })
        })
        .needs([COMMANDS])
        .programs(&["ln"])
        .file("d/f", "kept"),
        writes("a file is moved, with what is in it", |at| {
            Box::pin(async move {
                let info = at.rename("f", "g", false).await?;
                same("where it is", &info.path, &at.path("g"))?;
                same("its text", at.text("g").await?, "text")?;
                same("what is there", at.names(".").await?, vec!["g".to_owned()])
            })
        })
        .file("f", "text"),
        writes("a directory is moved as a whole", |at| {
            Box::pin(async move {
                at.rename("d", "e", false).await?;
                same("its file", at.text("e/x/f").await?, "text")?;
                same("what is there", at.names(".").await?, vec!["e".to_owned()])
            })
        })
        .file("d/x/f", "text"),
        writes("a file is moved into a directory that is there", |at| {
            Box::pin(async move {
                let info = at.rename("f", "d", false).await?;
                same("where it is", &info.path, &at.path("d/f"))?;
                same("its text", at.text("d/f").await?, "text")
            })
        })
        .files(&[("f", "text"), ("d/g", "")]),
        writes("a file that is there is replaced only if that is wanted", |at| {
            Box::pin(async move {
                refused("`Exists`", at.rename("f", "g", false).await, is_there)?;
                same(
                    "both",
                    (at.text("f").await?, at.text("g").await?),
                    ("f".to_owned(), "g".to_owned()),
                )?;
                at.rename("f", "g", true).await?;
                same(
                    "one",
                    (at.names(".").await?, at.text("g").await?),
                    (vec!["g".to_owned()], "f".to_owned()),
                )
            })
        })
        .files(&[("f", "f"), ("g", "g")]),
        writes("a directory is not moved into itself", |at| {
            Box::pin(async move {
                let moved = at.rename("d", "d/e", false).await;
                refused("refused", moved, is_typed)?;
                refused("`NotFound`", at.rename("missing", "x", false).await, is_missing)?;
                same("its file", at.text("d/f").await?, "text")
            })
        })
        .file("d/f", "text"),
    ]
}
