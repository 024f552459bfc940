//! Replacing text in files.

use shieling::environment::{Ability, FileError};
use shieling::files::{EditRequest, FilesError};

use crate::conformance::case::{Case, Need, writes};
use crate::conformance::expect::{holds, refused, same};

pub(crate) fn cases() -> Vec<Case> {
    vec![
        writes("an edit replaces what stands there once, and shows the change", |context| {
            Box::pin(async move {
                let edited = context.edit("f", "two", "2").await?;
                same("replacements", edited.replacements, 1)?;
                holds("`-two` and `+2`", edited.diff.contains("-two") && edited.diff.contains("+2"), &edited.diff)?;
                same("its text", context.text("f").await?, "one\n2\nthree\n")?;
                same("its state", edited.hash, context.read("f").await?.hash)
            })
        })
        .file("f", "one\ntwo\nthree\n"),
        writes("what stands there more than once is refused, with its lines", |context| {
            Box::pin(async move {
                let edited = context.edit("f", "x", "y").await;
                let told = |error: &FilesError| matches!(error, FilesError::Ambiguous { count: 3, lines, .. } if *lines == [1, 3, 3]);
                refused("`Ambiguous`, 3 times in lines 1, 3 and 3", edited, told)?;
                same("its text", context.text("f").await?, "x\n\nx x\n")
            })
        })
        .file("f", "x\n\nx x\n"),
        writes("each occurrence is replaced, if that is wanted", |context| {
            Box::pin(async move {
                let edited = context.edit_as(EditRequest { replace_all: true, ..EditRequest::new("f", "x", "xx") }).await?;
                same("replacements", edited.replacements, 3)?;
                same("its text", context.text("f").await?, "xx\n\nxx xx\n")
            })
        })
        .file("f", "x\n\nx x\n"),
        writes("text that is not there is refused, with what is most like it", |context| {
            Box::pin(async move {
                let edited = context.edit("f", "fn main() {\n  run();\n}", "").await;
                let told = |error: &FilesError| matches!(error, FilesError::NoMatch { nearest, .. } if nearest.first().is_some_and(|first| first.line == 3));
                refused("`NoMatch`, nearest in line 3", edited, told)
            })
        })
        .file("f", "use a;\n\nfn main() {\n    run();\n}\n"),
        writes("an edit of nothing is refused", |context| {
            Box::pin(async move {
                let edited = context.edit("f", "", "x").await;
                refused("`Argument`", edited, |error| matches!(error, FilesError::Argument { .. }))?;
                same("its text", context.text("f").await?, "text\n")
            })
        })
        .file("f", "text\n"),
        writes("an edit that changes nothing is refused", |context| {
            Box::pin(async move {
                let edited = context.edit("f", "text", "text").await;
                refused("`Argument`", edited, |error| matches!(error, FilesError::Argument { .. }))
            })
        })
        .file("f", "text\n"),
        writes("a file keeps the ends of its lines", |context| {
            Box::pin(async move {
                context.edit("f", "b\nc", "B\nC\nD").await?;
                same("its text", context.text("f").await?, "a\r\nB\r\nC\r\nD\r\nd\r\n")
            })
        })
        .file("f", "a\r\nb\r\nc\r\nd\r\n"),
        writes("a file keeps its byte-order mark, and its missing last line feed", |context| {
            Box::pin(async move {
                context.edit("f", "b", "c").await?;
                let size = context.read("f").await?.size;
                same("its size and text", (size, context.text("f").await?), (6, "a\nc".to_owned()))
            })
        })
        .file("f", "\u{feff}a\nb"),
        writes("a file keeps its encoding", |context| {
            Box::pin(async move {
                context.edit("f", "b", "ü€").await?;
                same("its text", context.text("f").await?, "a\nü€")?;
                same("its size", context.read("f").await?.size, 10)
            })
        })
        .file("f", b"\xff\xfea\0\n\0b\0".to_vec()),
        writes("a file keeps its permissions as it is edited", |context| {
            Box::pin(async move {
                context.says("chmod 755 f").await?;
                context.edit("f", "old", "new").await?;
                same("its mode", context.says("stat -c %a f; cat f").await?, "755\nnew")
            })
        })
        .needs([Need::Can(Ability::Commands)])
        .programs(&["chmod", "stat", "cat"])
        .file("f", "old"),
        writes("patterns mean themselves", |context| {
            Box::pin(async move {
                context.edit("f", "a.*(b)$", "\\1 $& {0}").await?;
                same("its text", context.text("f").await?, "axxb\n\\1 $& {0}\n")
            })
        })
        .file("f", "axxb\na.*(b)$\n"),
        writes("a file of bytes is not edited as text", |context| {
            Box::pin(async move {
                let edited = context.edit("f", "ELF", "elf").await;
                refused("`NotText`", edited, |error| matches!(error, FilesError::NotText { .. }))
            })
        })
        .file("f", b"\x7fELF\0\0\0\xff\xfe\0\x01\x02\x03".to_vec()),
        writes("an edit with an old state is refused, and changes nothing", |context| {
            Box::pin(async move {
                let expect = Some(context.read("f").await?.hash);
                context.write("f", "a b\n").await?;
                let stale = context.edit_as(EditRequest { expect, ..EditRequest::new("f", "a", "c") }).await;
                refused("`Stale`", stale, |error| matches!(error, FilesError::Stale { .. }))?;
                same("its text", context.text("f").await?, "a b\n")
            })
        })
        .file("f", "a\n"),
        writes("a file that is not there is not edited into being", |context| {
            Box::pin(async move {
                let edited = context.edit("missing", "a", "b").await;
                refused("`NotFound`", edited, |error| matches!(error, FilesError::File(FileError::NotFound(_))))?;
                same("what is there", context.names(".").await?, Vec::<String>::new())
            })
        }),
    ]
}
