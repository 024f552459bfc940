//! Changing several files at once, or none.

use shieling::files::FilesError;

use crate::conformance::case::{Case, writes};
use crate::conformance::expect::{holds, refused, same};

const CHANGE: &str = "--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n--- /dev/null\n+++ b/new/g\n@@ -0,0 +1,2 @@\n+g\n+h\n--- a/old\n+++ /dev/null\n@@ -1 +0,0 @@\n-old\n";

pub(crate) fn cases() -> Vec<Case> {
    vec![
        writes("a patch changes, adds and removes files", |context| {
            Box::pin(async move {
                let patched = context.patch(CHANGE).await?;
                let changes: Vec<_> = patched.files.iter().map(|file| (file.change, file.added, file.removed)).collect();
                same("changes", changes, vec![("changed", 1, 1), ("added", 2, 0), ("removed", 0, 1)])?;
                same("f", context.text("f").await?, "one\n2\nthree\n")?;
                same("new/g", context.text("new/g").await?, "g\nh\n")?;
                same("what is there", context.names(".").await?, ["f", "new"].map(str::to_owned).to_vec())
            })
        })
        .files(&[("f", "one\ntwo\nthree\n"), ("old", "old\n")]),
        writes("a patch and its reverse change nothing", |context| {
            Box::pin(async move {
                context.patch(CHANGE).await?;
                context.patch_as(CHANGE, true).await?;
                same("f", context.text("f").await?, "one\ntwo\nthree\n")?;
                same("old", context.text("old").await?, "old\n")?;
                holds("new/g is gone", context.read("new/g").await.is_err(), "it is there")
            })
        })
        .files(&[("f", "one\ntwo\nthree\n"), ("old", "old\n")]),
        writes("a patch that does not fit one file changes none", |context| {
            Box::pin(async move {
                let patched = context.patch(CHANGE).await;
                let told = |error: &FilesError| matches!(error, FilesError::Misfit { path, .. } if path.ends_with("old"));
                refused("`Misfit` of `old`", patched, told)?;
                same("f", context.text("f").await?, "one\ntwo\nthree\n")?;
                same("what is there", context.names(".").await?, ["f", "old"].map(str::to_owned).to_vec())
            })
        })
        .files(&[("f", "one\ntwo\nthree\n"), ("old", "something else\n")]),
        writes("a patch of the other form is understood", |context| {
            Box::pin(async move {
                let patch = "*** Begin Patch\n*** Update File: f\n@@\n one\n-two\n+2\n*** Add File: g\n+new\n*** Delete File: old\n*** End Patch\n";
                same("files", context.patch(patch).await?.files.len(), 3)?;
                same("f", context.text("f").await?, "one\n2\nthree\n")?;
                same("what is there", context.names(".").await?, ["f", "g"].map(str::to_owned).to_vec())
            })
        })
        .files(&[("f", "one\ntwo\nthree\n"), ("old", "old\n")]),
        writes("a patch that cannot be read is refused, with its line", |context| {
            Box::pin(async move {
                let bad = ["nonsense\n", "", "--- a/f\n+++ b/f\n@@ nonsense @@\n-x\n", "*** Begin Patch\n*** Update File: f\n"];
                for patch in bad {
                    refused("`BadPatch`", context.patch(patch).await, |error| matches!(error, FilesError::BadPatch { .. }))?;
                }
                same("f", context.text("f").await?, "x\n")
            })
        })
        .file("f", "x\n"),
        writes("a patch keeps the ends of lines", |context| {
            Box::pin(async move {
                context.patch("--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n").await?;
                same("f", context.text("f").await?, "a\r\nc\r\n")
            })
        })
        .file("f", "a\r\nb\r\n"),
    ]
}
