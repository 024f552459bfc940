//! Writing whole files.

use shieling::environment::{Ability, FileError};
use shieling::files::{FilesError, WriteRequest};

use crate::conformance::case::{Case, Need, writes};
use crate::conformance::expect::{holds, is_typed, refused, same};

const COMMANDS: Need = Need::Can(Ability::Commands);

pub(crate) fn cases() -> Vec<Case> {
    vec![
        writes("what is written is what is read", |context| {
            Box::pin(async move {
                let written = context.write("f", "a\nü\r\n").await?;
                same(
                    "new, of this size, here",
                    (written.created, written.size, &written.path),
                    (true, 6, &context.path("f")),
                )?;
                let read = context.read("f").await?;
                same("its state", &read.hash, &written.hash)?;
                same("its text", context.text("f").await?, "a\nü\r\n")
            })
        }),
        writes("a file that is there is replaced, and the change shown", |context| {
            Box::pin(async move {
                let written = context.write("f", "one\n2\nthree\n").await?;
                same("not new", written.created, false)?;
                let diff = written.diff.unwrap_or_default();
                holds("`-two` and `+2`", diff.contains("-two") && diff.contains("+2"), &diff)?;
                same("its text", context.text("f").await?, "one\n2\nthree\n")
            })
        })
        .file("f", "one\ntwo\nthree\n"),
        writes("directories that are missing are made", |context| {
            Box::pin(async move {
                context.write("a/b/c/f", "deep").await?;
                same("its text", context.text("a/b/c/f").await?, "deep")
            })
        }),
        writes("any bytes can be written, and are what commands see", |context| {
            Box::pin(async move {
                let bytes: Vec<u8> = (0..=255).collect();
                same("its size", context.write("f", &bytes).await?.size, 256)?;
                let said = context.says("od -An -v -tx1 f | tr -d ' \\n'").await?;
                same(
                    "what a command sees",
                    said,
                    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>(),
                )
            })
        })
        .needs([COMMANDS])
        .programs(&["od", "tr"]),
        writes("8 MiB are written and are there", |context| {
            Box::pin(async move {
                let bytes: Vec<u8> = (0..8 << 20)
                    .map(|context: u32| context.to_le_bytes()[1] ^ 0x5a)
                    .collect();
                same("its size", context.write("big", &bytes).await?.size, 8 << 20)?;
                same("as it is read", context.read("big").await?.size, 8 << 20)?;
                same(
                    "its state",
                    context.read("big").await?.hash,
                    context.write("big2", &bytes).await?.hash,
                )
            })
        }),
        writes("nothing can be written, too", |context| {
            Box::pin(async move {
                same("its size", context.write("f", "").await?.size, 0)?;
                same("its text", context.text("f").await?, "")
            })
        })
        .file("f", "something\n"),
        writes("a file that must be new is not replaced", |context| {
            Box::pin(async move {
                let ask = |path| WriteRequest {
                    create_only: true,
                    ..WriteRequest::new(path, "new")
                };
                let written = context.write_as(ask("f")).await;
                refused("`Exists`", written, |error| {
                    matches!(error, FilesError::File(FileError::Exists(_)))
                })?;
                same("its text", context.text("f").await?, "old")?;
                same("another is new", context.write_as(ask("g")).await?.created, true)
            })
        })
        .file("f", "old"),
        writes("a write with an old state is refused, and changes nothing", |context| {
            Box::pin(async move {
                let read = context.read("f").await?.hash;
                context.write("f", "somebody else\n").await?;
                let stale = context
                    .write_as(WriteRequest {
                        expect: Some(read),
                        ..WriteRequest::new("f", "mine\n")
                    })
                    .await;
                refused("`Stale`", stale, |error| matches!(error, FilesError::Stale { .. }))?;
                same("its text", context.text("f").await?, "somebody else\n")
            })
        })
        .file("f", "old\n"),
        writes("a write with the present state is done", |context| {
            Box::pin(async move {
                let expect = Some(context.read("f").await?.hash);
                context
                    .write_as(WriteRequest {
                        expect,
                        ..WriteRequest::new("f", "mine\n")
                    })
                    .await?;
                same("its text", context.text("f").await?, "mine\n")
            })
        })
        .file("f", "old\n"),
        writes("a directory is not replaced by a file", |context| {
            Box::pin(async move {
                for path in ["d", "."] {
                    let written = context.write(path, "x").await;
                    refused("`IsDirectory`", written, |error| {
                        matches!(error, FilesError::File(FileError::IsDirectory(_)))
                    })?;
                }
                same("what is in it", context.text("d/f").await?, "kept")
            })
        })
        .file("d/f", "kept"),
        writes("a file is no directory to write in", |context| {
            Box::pin(async move {
                for path in ["f/g", "f/g/h"] {
                    let written = context.write(path, "x").await;
                    refused("`NotADirectory`", written, |error| {
                        matches!(error, FilesError::File(FileError::NotADirectory(_)))
                    })?;
                }
                same("the file", context.text("f").await?, "kept")
            })
        })
        .file("f", "kept"),
        writes("a pipe is not written, and nobody waits for its reader", |context| {
            Box::pin(async move {
                context.says("mkfifo p").await?;
                let written = context.write("p", "x").await;
                refused("`Special`", written, |error| {
                    matches!(error, FilesError::File(FileError::Special { .. }))
                })
            })
        })
        .needs([COMMANDS])
        .programs(&["mkfifo"]),
        writes(
            "a write through a link changes the file, and the link stays",
            |context| {
                Box::pin(async move {
                    context.says("ln -s d/f link").await?;
                    context.write("link", "new").await?;
                    same("the file", context.text("d/f").await?, "new")?;
                    same("the link", context.says("readlink link").await?, "d/f\n")
                })
            },
        )
        .needs([COMMANDS])
        .programs(&["ln", "readlink"])
        .file("d/f", "old"),
        writes("a file keeps its permissions", |context| {
            Box::pin(async move {
                context.says("chmod 751 f").await?;
                context.write("f", "new").await?;
                same("its mode", context.says("stat -c %a f").await?, "751\n")
            })
        })
        .needs([COMMANDS])
        .programs(&["chmod", "stat"])
        .file("f", "old"),
        writes("a name with a NUL is refused", |context| {
            Box::pin(async move {
                let written = context.write("a\0b", "x").await;
                let typed = |error: &FilesError| {
                    matches!(
                        error,
                        FilesError::File(FileError::BadPath { .. }) | FilesError::Argument { .. }
                    )
                };
                refused("`BadPath` or `Argument`", written, typed)
            })
        }),
        writes("nothing is left beside what was written", |context| {
            Box::pin(async move {
                context.write("f", "1").await?;
                context.write("f", "2").await?;
                let many = "x".repeat(300);
                let written = context.write(&many, "x").await;
                refused("a name that is too long is refused", written, is_typed)?;
                same("what is there", context.names(".").await?, vec!["f".to_owned()])
            })
        }),
    ]
}
