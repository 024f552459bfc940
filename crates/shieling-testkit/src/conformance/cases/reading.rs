//! Reading files.

use shieling::environment::FileError;
use shieling::files::{FileContent, FilesError, ReadRequest};
use shieling::units::ByteCount;

use crate::conformance::case::{Case, Need, reads, writes};
use crate::conformance::expect::{holds, refused, same};
use crate::conformance::files::text_of;

/// The smallest image: one pixel.
const PIXEL: &[u8] = b"\x89PNG\x0d\x0a\x1a\x0a\0\0\0\x0dIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89\
    \0\0\0\x0bIDATx\xdac\xf8\x0f\x04\0\x09\xfb\x03\xfdh\xfa\x1c\xcc\0\0\0\0IEND\xaeB`\x82";

fn lines(path: &str, offset: u64, limit: u64) -> ReadRequest {
    ReadRequest {
        offset,
        limit,
        ..ReadRequest::new(path)
    }
}

pub(crate) fn cases() -> Vec<Case> {
    vec![
        reads("a file is read as it is", |context| {
            Box::pin(async move {
                let read = context.read("f").await?;
                same("its size", read.size, 10)?;
                same("its path", &read.path, &context.path("f"))?;
                same("its text", text_of(read)?, "one\ntwo\nü")
            })
        })
        .file("f", "one\ntwo\nü"),
        reads("a path may be relative or absolute", |context| {
            Box::pin(async move {
                for path in [context.path("d/f"), "d/f".into(), "./d/./f".into(), "d/../d/f".into()] {
                    same(&path.display().to_string(), context.text(&path).await?, "x")?;
                }
                Ok(())
            })
        })
        .file("d/f", "x"),
        reads("a line ends at a line feed and nowhere else", |context| {
            Box::pin(async move {
                let FileContent::Text {
                    text,
                    lines,
                    total_lines,
                    ..
                } = context.read("f").await?.content
                else {
                    return same("text", false, true);
                };
                same("its lines", (lines, total_lines), (4, Some(4)))?;
                same("its text", text, "a\u{c}b\nc\u{2028}d\re\nf\u{85}g\n\u{b}h\n")
            })
        })
        .file("f", "a\u{c}b\nc\u{2028}d\re\nf\u{85}g\n\u{b}h\n"),
        reads("reading keeps the ends of lines", |context| {
            Box::pin(async move { same("its text", context.text("f").await?, "a\r\nb\n\r\nc\r") })
        })
        .file("f", "a\r\nb\n\r\nc\r"),
        reads(
            "lines are counted from 0 and read from where they are asked for",
            |context| {
                Box::pin(async move {
                    let FileContent::Text {
                        text,
                        offset,
                        lines: count,
                        total_lines,
                        next_offset,
                        ..
                    } = context.read_as(lines("f", 1, 2)).await?.content
                    else {
                        return same("text", false, true);
                    };
                    same("its text", text, "1\n2\n")?;
                    same(
                        "where",
                        (offset, count, total_lines, next_offset),
                        (1, 2, Some(4), Some(3)),
                    )
                })
            },
        )
        .file("f", "0\n1\n2\n3\n"),
        reads(
            "reading on from where a read stopped gives the whole file once",
            |context| {
                Box::pin(async move {
                    let (mut whole, mut from) = (String::new(), Some(0));
                    while let Some(offset) = from {
                        let FileContent::Text { text, next_offset, .. } =
                            context.read_as(lines("f", offset, 3)).await?.content
                        else {
                            return same("text", false, true);
                        };
                        holds(
                            "it goes on",
                            next_offset.is_none_or(|next| next > offset),
                            &format!("{next_offset:?}"),
                        )?;
                        whole.push_str(&text);
                        from = next_offset;
                    }
                    same(
                        "the whole",
                        whole,
                        (0..20).map(|line| format!("line {line}\n")).collect::<String>(),
                    )
                })
            },
        )
        .file("f", (0..20).map(|line| format!("line {line}\n")).collect::<String>()),
        reads("a file without a line has none", |context| {
            Box::pin(async move {
                let FileContent::Text {
                    text,
                    lines,
                    total_lines,
                    next_offset,
                    ..
                } = context.read("f").await?.content
                else {
                    return same("text", false, true);
                };
                same(
                    "nothing",
                    (text.as_str(), lines, total_lines, next_offset),
                    ("", 0, Some(0), None),
                )
            })
        })
        .file("f", ""),
        reads("a line beyond the end is refused, with how many there are", |context| {
            Box::pin(async move {
                let beyond = context.read_as(lines("f", 5, 10)).await;
                refused("`BeyondEnd` of 2 lines", beyond, |error| {
                    matches!(
                        error,
                        FilesError::BeyondEnd {
                            offset: 5,
                            lines: 2,
                            ..
                        }
                    )
                })
            })
        })
        .file("f", "a\nb\n"),
        reads("no lines at all are refused", |context| {
            Box::pin(async move {
                let none = context.read_as(lines("f", 0, 0)).await;
                refused("`Argument`", none, |error| matches!(error, FilesError::Argument { .. }))
            })
        })
        .file("f", "a\n"),
        reads("more bytes than are wanted are left out, and told", |context| {
            Box::pin(async move {
                let ask = ReadRequest {
                    max_bytes: ByteCount::bytes(1_000),
                    ..ReadRequest::new("f")
                };
                let FileContent::Text { text, next_offset, .. } = context.read_as(ask).await?.content else {
                    return same("text", false, true);
                };
                holds("1,000 bytes at most", text.len() <= 1_000, &text.len().to_string())?;
                holds(
                    "whole lines",
                    text.ends_with('\n') && !text.is_empty(),
                    &format!("{text:?}"),
                )?;
                same("where it goes on", next_offset, Some(text.lines().count() as u64))
            })
        })
        .file("f", "0123456789\n".repeat(1_000)),
        reads("a line that is too long is cut at a character, and told", |context| {
            Box::pin(async move {
                let ask = ReadRequest {
                    max_bytes: ByteCount::bytes(1_001),
                    ..ReadRequest::new("f")
                };
                let FileContent::Text { text, cut_bytes, .. } = context.read_as(ask).await?.content else {
                    return same("text", false, true);
                };
                holds("something is cut", cut_bytes > 0, &cut_bytes.to_string())?;
                holds(
                    "whole characters",
                    text.chars().all(|c| c == 'ü' || c == '\n'),
                    &format!("{text:?}"),
                )
            })
        })
        .file("f", format!("{}\nnext\n", "ü".repeat(5_000))),
        reads("a file of bytes that are no text is told to be that", |context| {
            Box::pin(async move {
                let seen = context.read("f").await?.content;
                holds(
                    "`Binary`",
                    matches!(seen, FileContent::Binary { .. }),
                    &format!("{seen:?}"),
                )
            })
        })
        .file("f", b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\xff\xfe\0\0".to_vec()),
        reads("a byte-order mark is no part of the text", |context| {
            Box::pin(async move {
                let FileContent::Text { text, encoding, .. } = context.read("f").await?.content else {
                    return same("text", false, true);
                };
                same(
                    "text and encoding",
                    (text.as_str(), encoding.as_str()),
                    ("x\n", "utf-8-bom"),
                )
            })
        })
        .file("f", "\u{feff}x\n"),
        reads("UTF-16 is read as the text that it is", |context| {
            Box::pin(async move {
                let FileContent::Text { text, encoding, .. } = context.read("f").await?.content else {
                    return same("text", false, true);
                };
                same(
                    "text and encoding",
                    (text.as_str(), encoding.as_str()),
                    ("aü\nb", "utf-16le"),
                )
            })
        })
        .file("f", b"\xff\xfea\0\xfc\0\n\0b\0".to_vec()),
        reads("a picture is one by its content, whatever its name", |context| {
            Box::pin(async move {
                for path in ["picture.txt", "picture.png"] {
                    let FileContent::Image { mime, bytes } = context.read(path).await?.content else {
                        return same("an image", false, true);
                    };
                    same("what it is", (mime.as_str(), bytes == PIXEL), ("image/png", true))?;
                }
                same(
                    "a text that is called a picture",
                    context.text("text.png").await?,
                    "text\n",
                )
            })
        })
        .file("picture.txt", PIXEL)
        .file("picture.png", PIXEL)
        .file("text.png", "text\n"),
        reads("a picture that is not wanted, or too large, is no picture", |context| {
            Box::pin(async move {
                for max_image in [None, Some(ByteCount::bytes(10))] {
                    let seen = context
                        .read_as(ReadRequest {
                            max_image,
                            ..ReadRequest::new("f")
                        })
                        .await?
                        .content;
                    holds(
                        "`Binary`",
                        matches!(seen, FileContent::Binary { .. }),
                        &format!("{seen:?}"),
                    )?;
                }
                Ok(())
            })
        })
        .file("f", PIXEL),
        reads("a file that is not there is told", |context| {
            Box::pin(async move {
                for path in ["missing", "d/missing", "missing/f"] {
                    let read = context.read(path).await;
                    refused("`NotFound`", read, |error| {
                        matches!(error, FilesError::File(FileError::NotFound(_)))
                    })?;
                }
                Ok(())
            })
        })
        .file("d/f", ""),
        reads("a directory is no file", |context| {
            Box::pin(async move {
                let read = context.read("d").await;
                refused("`IsDirectory`", read, |error| {
                    matches!(error, FilesError::File(FileError::IsDirectory(_)))
                })
            })
        })
        .file("d/f", ""),
        reads("a file is no directory", |context| {
            Box::pin(async move {
                let read = context.read("f/g").await;
                refused("`NotADirectory`", read, |error| {
                    matches!(error, FilesError::File(FileError::NotADirectory(_)))
                })
            })
        })
        .file("f", ""),
        reads("a pipe is refused, and nobody waits for its writer", |context| {
            Box::pin(async move {
                context.says("mkfifo p").await?;
                let read = context.read("p").await;
                refused("`Special`", read, |error| {
                    matches!(error, FilesError::File(FileError::Special { .. }))
                })
            })
        })
        .needs([Need::Can(shieling::environment::Ability::Commands)])
        .programs(&["mkfifo"]),
        reads("a file that may not be read is refused as that", |context| {
            Box::pin(async move {
                context.says("chmod 000 f").await?;
                let allowed = context.run("cat f").await.exit_code == Some(0);
                let read = context.read("f").await;
                // A privileged user may read it.
                let good = match &read {
                    Ok(_) => allowed,
                    Err(error) => !allowed && matches!(error, FilesError::File(FileError::Permission(_))),
                };
                holds(
                    "`Permission`, unless a command may read it",
                    good,
                    &format!("{allowed} {read:?}"),
                )
            })
        })
        .needs([Need::Can(shieling::environment::Ability::Commands)])
        .programs(&["chmod", "cat"])
        .file("f", "x"),
        reads("links in a circle are told", |context| {
            Box::pin(async move {
                context.says("ln -s a b; ln -s b a").await?;
                let read = context.read("a").await;
                refused("`LinkLoop`", read, |error| {
                    matches!(error, FilesError::File(FileError::LinkLoop(_)))
                })
            })
        })
        .needs([Need::Can(shieling::environment::Ability::Commands)])
        .programs(&["ln"]),
        reads(
            "a link within the workspace is followed, and the file's own path told",
            |context| {
                Box::pin(async move {
                    context.says("ln -s d/f link; ln -s d e").await?;
                    for path in ["link", "e/f"] {
                        let read = context.read(path).await?;
                        same("its path", &read.path, &context.path("d/f"))?;
                        same("its text", text_of(read)?, "x\n")?;
                    }
                    Ok(())
                })
            },
        )
        .needs([Need::Can(shieling::environment::Ability::Commands)])
        .programs(&["ln"])
        .file("d/f", "x\n"),
        reads("lines in the middle of a large file are found", |context| {
            Box::pin(async move {
                let FileContent::Text { text, .. } = context.read_as(lines("f", 150_000, 2)).await?.content else {
                    return same("text", false, true);
                };
                same("its text", text, "line 150000\nline 150001\n")
            })
        })
        .file(
            "f",
            (0..200_000).map(|line| format!("line {line}\n")).collect::<String>(),
        ),
        writes("what a command wrote is what is read", |context| {
            Box::pin(async move {
                context.says("printf 'by a command\\n' > f").await?;
                same("its text", context.text("f").await?, "by a command\n")
            })
        })
        .needs([Need::Can(shieling::environment::Ability::Commands)]),
    ]
}
