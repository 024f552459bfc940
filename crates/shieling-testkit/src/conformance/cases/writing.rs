//! Writing whole files.

use shieling::environment::{Ability, FileError};
use shieling::files::{FilesError, WriteAsk};

use crate::conformance::case::{Case, Need, writes};
use crate::conformance::expect::{holds, is_typed, refused, same};

const COMMANDS: Need = Need::Can(Ability::Commands);

pub(crate) fn cases() -> Vec<Case> {
    vec![
        writes("what is written is what is read", |at| {
            Box::pin(async move {
                let written = at.write("f", "a\nü\r\n").await?;
                same(
                    "new, of this size, here",
                    (written.created, written.size, &written.path),
                    (true, 6, &at.path("f")),
                )?;
                let read = at.read("f").await?;
                same("its state", &read.hash, &written.hash)?;
                same("its text", at.text("f").await?, "a\nü\r\n")
            })
        }),
        writes("a file that is there is replaced, and the change shown", |at| {
            Box::pin(async move {
                let written = at.write("f", "one\n2\nthree\n").await?;
                same("not new", written.created, false)?;
                let diff = written.diff.unwrap_or_default();
                holds("`-two` and `+2`", diff.contains("-two") && diff.contains("+2"), &diff)?;
                same("its text", at.text("f").await?, "one\n2\nthree\n")
            })
        })
        .file("f", "one\ntwo\nthree\n"),
        writes("directories that are missing are made", |at| {
            Box::pin(async move {
                at.write("a/b/c/f", "deep").await?;
                same("its text", at.text("a/b/c/f").await?, "deep")
            })
        }),
        writes("any bytes can be written, and are what commands see", |at| {
            Box::pin(async move {
                let bytes: Vec<u8> = (0..=255).collect();
                same("its size", at.write("f", &bytes).await?.size, 256)?;
                let said = at.says("od -An -v -tx1 f | tr -d ' \\n'").await?;
                same(
                    "what a command sees",
                    said,
                    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>(),
                )
            })
        })
        .needs([COMMANDS])
        .programs(&["od", "tr"]),
        writes("8 MiB are written and are there", |at| {
            Box::pin(async move {
                let bytes: Vec<u8> = (0..8 << 20).map(|at: u32| at.to_le_bytes()[1] ^ 0x5a).collect();
                same("its size", at.write("big", &bytes).await?.size, 8 << 20)?;
                same("as it is read", at.read("big").await?.size, 8 << 20)?;
                same(
                    "its state",
                    at.read("big").await?.hash,
                    at.write("big2", &bytes).await?.hash,
                )
            })
        }),
        writes("nothing can be written, too", |at| {
            Box::pin(async move {
                same("its size", at.write("f", "").await?.size, 0)?;
                same("its text", at.text("f").await?, "")
            })
        })
        .file("f", "something\n"),
        writes("a file that must be new is not replaced", |at| {
            Box::pin(async move {
                let ask = |path| WriteAsk {
                    create_only: true,
                    ..WriteAsk::new(path, "new")
                };
                let written = at.write_as(ask("f")).await;
                refused("`Exists`", written, |error| {
                    matches!(error, FilesError::File(FileError::Exists(_)))
                })?;
                same("its text", at.text("f").await?, "old")?;
                same("another is new", at.write_as(ask("g")).await?.created, true)
            })
        })
        .file("f", "old"),
        writes("a write with an old state is refused, and changes nothing", |at| {
            Box::pin(async move {
                let read = at.read("f").await?.hash;
                at.write("f", "somebody else\n").await?;
                let stale = at
                    .write_as(WriteAsk {
                        expect: Some(read),
                        ..WriteAsk::new("f", "mine\n")
                    })
                    .await;
                refused("`Stale`", stale, |error| matches!(error, FilesError::Stale { .. }))?;
                same("its text", at.text("f").await?, "somebody else\n")
            })
        })
        .file("f", "old\n"),
        writes("a write with the present state is done", |at| {
            Box::pin(async move {
                let expect = Some(at.read("f").await?.hash);
                at.write_as(WriteAsk {
                    expect,
                    ..WriteAsk::new("f", "mine\n")
                })
                .await?;
                same("its text", at.text("f").await?, "mine\n")
            })
        })
        .file("f", "old\n"),
        writes("a directory is not replaced by a file", |at| {
            Box::pin(async move {
                for path in ["d", "."] {
                    let written = at.write(path, "x").await;
                    refused("`IsDirectory`", written, |error| {
                        matches!(error, FilesError::File(FileError::IsDirectory(_)))
                    })?;
                }
                same("what is in it", at.text("d/f").await?, "kept")
            })
        })
        .file("d/f", "kept"),
        writes("a file is no directory to write in", |at| {
            Box::pin(async move {
                for path in ["f/g", "f/g/h"] {
                    let written = at.write(path, "x").await;
                    refused("`NotADirectory`", written, |error| {
                        matches!(error, FilesError::File(FileError::NotADirectory(_)))
                    })?;
                }
                same("the file", at.text("f").await?, "kept")
            })
        })
        .file("f", "kept"),
        writes("a pipe is not written, and nobody waits for its reader", |at| {
            Box::pin(async move {
                at.says("mkfifo p").await?;
                let written = at.write("p", "x").await;
                refused("`Special`", written, |error| {
                    matches!(error, FilesError::File(FileError::Special { .. }))
                })
            })
        })
        .needs([COMMANDS])
        .programs(&["mkfifo"]),
        writes("a write through a link changes the file, and the link stays", |at| {
            Box::pin(async move {
                at.says("ln -s d/f link").await?;
                at.write("link", "new").await?;
                same("the file", at.text("d/f").await?, "new")?;
                same("the link", at.says("readlink link").await?, "d/f\n")
            })
        })
        .needs([COMMANDS])
        .programs(&["ln", "readlink"])
        .file("d/f", "old"),
        writes("a file keeps its permissions", |at| {
            Box::pin(async move {
                at.says("chmod 751 f").await?;
                at.write("f", "new").await?;
                same("its mode", at.says("stat -c %a f").await?, "751\n")
            })
        })
        .needs([COMMANDS])
        .programs(&["chmod", "stat"])
        .file("f", "old"),
        writes("a name with a NUL is refused", |at| {
            Box::pin(async move {
                let written = at.write("a\0b", "x").await;
                let typed = |error: &FilesError| {
                    matches!(
                        error,
                        FilesError::File(FileError::BadPath { .. }) | FilesError::Argument { .. }
                    )
                };
                refused("`BadPath` or `Argument`", written, typed)
            })
        }),
        writes("nothing is left beside what was written", |at| {
            Box::pin(async move {
                at.write("f", "1").await?;
                at.write("f", "2").await?;
                let many = "x".repeat(300);
                let written = at.write(&many, "x").await;
                refused("a name that is too long is refused", written, is_typed)?;
                same("what is there", at.names(".").await?, vec!["f".to_owned()])
            })
        }),
    ]
}
