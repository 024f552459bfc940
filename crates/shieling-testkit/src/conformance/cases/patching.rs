//! Changing several files at once, or none.

use shieling::files::FilesError;

use crate::conformance::case::{Case, writes};
use crate::conformance::expect::{holds, refused, same};

const CHANGE: &str = "--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n--- /dev/null\n+++ b/new/g\n@@ -0,0 +1,2 @@\n+g\n+h\n--- a/old\n+++ /dev/null\n@@ -1 +0,0 @@\n-old\n";

pub(crate) fn cases() -> Vec<Case> {
    vec![
        writes("a patch changes, adds and removes files", |at| {
            Box::pin(async move {
                let patched = at.patch(CHANGE).await?;
                let changes: Vec<_> = patched.files.iter().map(|file| (file.change, file.added, file.removed)).collect();
                same("changes", changes, vec![("changed", 1, 1), ("added", 2, 0), ("removed", 0, 1)])?;
                same("f", at.text("f").await?, "one\n2\nthree\n")?;
                same("new/g", at.text("new/g").await?, "g\nh\n")?;
                same("what is there", at.names(".").await?, ["f", "new"].map(str::to_owned).to_vec())
            })
        })
        .files(&[("f", "one\ntwo\nthree\n"), ("old", "old\n")]),
        writes("a patch and its reverse change nothing", |at| {
            Box::pin(async move {
                at.patch(CHANGE).await?;
                at.patch_as(CHANGE, true).await?;
                same("f", at.text("f").await?, "one\ntwo\nthree\n")?;
                same("old", at.text("old").await?, "old\n")?;
                holds("new/g is gone", at.read("new/g").await.is_err(), "it is there")
            })
        })
        .files(&[("f", "one\ntwo\nthree\n"), ("old", "old\n")]),
        writes("a patch that does not fit one file changes none", |at| {
            Box::pin(async move {
                let patched = at.patch(CHANGE).await;
                let told = |error: &FilesError| matches!(error, FilesError::Misfit { path, .. } if path.ends_with("old"));
                refused("`Misfit` of `old`", patched, told)?;
                same("f", at.text("f").await?, "one\ntwo\nthree\n")?;
                same("what is there", at.names(".").await?, ["f", "old"].map(str::to_owned).to_vec())
            })
        })
        .files(&[("f", "one\ntwo\nthree\n"), ("old", "something else\n")]),
        writes("a patch of the other form is understood", |at| {
            Box::pin(async move {
                let patch = "*** Begin Patch\n*** Update File: f\n@@\n one\n-two\n+2\n*** Add File: g\n+new\n*** Delete File: old\n*** End Patch\n";
                same("files", at.patch(patch).await?.files.len(), 3)?;
                same("f", at.text("f").await?, "one\n2\nthree\n")?;
                same("what is there", at.names(".").await?, ["f", "g"].map(str::to_owned).to_vec())
            })
        })
        .files(&[("f", "one\ntwo\nthree\n"), ("old", "old\n")]),
        writes("a patch that cannot be read is refused, with its line", |at| {
            Box::pin(async move {
                let bad = ["nonsense\n", "", "--- a/f\n+++ b/f\n@@ nonsense @@\n-x\n", "*** Begin Patch\n*** Update File: f\n"];
                for patch in bad {
                    refused("`BadPatch`", at.patch(patch).await, |error| matches!(error, FilesError::BadPatch { .. }))?;
                }
                same("f", at.text("f").await?, "x\n")
            })
        })
        .file("f", "x\n"),
        writes("a patch keeps the ends of lines", |at| {
            Box::pin(async move {
                at.patch("--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n").await?;
                same("f", at.text("f").await?, "a\r\nc\r\n")
            })
        })
        .file("f", "a\r\nb\r\n"),
    ]
}
