//! File tools stay within their bounds, whatever paths and links say.

use std::path::PathBuf;

use shieling::environment::{Ability, FileError, Kind};
use shieling::files::{FilesError, GlobRequest, GrepRequest, Include};

use crate::conformance::CheckFailure;
use crate::conformance::case::{Case, Check, Checked, Need, check, writes};
use crate::conformance::context::Context;
use crate::conformance::expect::{holds, is_typed, refused, same};
use crate::conformance::files::lines_of;

/// The content outside of the workspace, which must not be visible.
const CANARY: &str = "canary 8c1f\n";

/// Creates a case with a canary outside, and links to it in the workspace (`file`, `dir`, `dir/canary`). Nothing
/// outside may have changed at its end.
fn confined(name: &'static str, what: Check) -> Case {
    writes(name, what)
        .needs([Need::Can(Ability::Commands), Need::OutsideDirectory])
        .programs(&["ln"])
}

/// Creates the canary and the links.
async fn planted(context: &Context) -> Result<PathBuf, CheckFailure> {
    let outside = context.outside()?;
    outside.put("canary", CANARY.as_bytes())?;
    let path = outside.path().to_path_buf();
    context
        .says(&format!("ln -s '{0}/canary' file; ln -s '{0}' dir", path.display()))
        .await?;
    Ok(path)
}

/// Checks that nothing outside has changed.
fn untouched(context: &Context) -> Checked {
    let outside = context.outside()?;
    same("what lies outside", outside.names()?, vec!["canary".to_owned()])?;
    same("the canary", outside.get("canary")?.as_deref(), Some(CANARY.as_bytes()))
}

/// Checks that a path was refused as unreachable.
fn is_out_of_reach(error: &FilesError) -> bool {
    matches!(
        error,
        FilesError::File(
            FileError::NotFound(_)
                | FileError::Unsupported(_)
                | FileError::Outside { .. }
                | FileError::Permission(_)
                | FileError::ReadOnly(_)
                | FileError::Fixed(_)
        ) | FilesError::Refused { .. }
    )
}

/// Other spellings of the canary's path.
fn spellings(context: &Context, outside: &std::path::Path) -> Vec<PathBuf> {
    let up = "../".repeat(context.workspace().components().count() + 2);
    let below = outside.strip_prefix("/").unwrap_or(outside);
    vec![
        outside.join("canary"),
        format!("{up}{}/canary", below.display()).into(),
        format!("d/{up}{}/canary", below.display()).into(),
        context.path(&format!("{up}{}/canary", below.display())),
        format!("/proc/self/root{}/canary", outside.display()).into(),
        format!("/{}/canary", outside.display()).into(),
        "file".into(),
        "dir/canary".into(),
        "d/../dir/canary".into(),
    ]
}

pub(crate) fn cases() -> Vec<Case> {
    vec![
        confined("nothing outside is read, however its path is written", |context| {
            Box::pin(async move {
                let outside = planted(context).await?;
                for path in spellings(context, &outside) {
                    refused(&format!("`{}` is out of reach", path.display()), context.read(&path).await, is_out_of_reach)?;
                }
                untouched(context)
            })
        })
        .file("d/f", ""),
        confined("nothing outside is written, however its path is written", |context| {
            Box::pin(async move {
                let outside = planted(context).await?;
                for path in spellings(context, &outside) {
                    // If the environment has a directory of this name itself, that one is written.
                    let _ = context.write(&path, "changed").await;
                    untouched(context)?;
                }
                untouched(context)
            })
        })
        .file("d/f", ""),
        confined("nothing outside is edited or patched", |context| {
            Box::pin(async move {
                planted(context).await?;
                refused("an edit through a link", context.edit("file", "canary", "x").await, is_out_of_reach)?;
                refused("an edit through a linked directory", context.edit("dir/canary", "canary", "x").await, is_out_of_reach)?;
                for path in ["file", "dir/canary", "../canary", "dir/new"] {
                    let patch = format!("--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-canary 8c1f\n+x\n");
                    let patched = context.patch(&patch).await;
                    refused(&format!("`{path}` is not patched"), patched, is_typed)?;
                    let patch = format!("--- /dev/null\n+++ b/dir/{}\n@@ -0,0 +1 @@\n+x\n", path.replace('/', "-"));
                    // As above.
                    let _ = context.patch(&patch).await;
                    untouched(context)?;
                }
                untouched(context)
            })
        }),
        confined("no directory is made outside", |context| {
            Box::pin(async move {
                planted(context).await?;
                for path in ["dir/new", "dir/a/b/new", "dir/../new/f"] {
                    // As above.
                    let _ = context.write(path, "x").await;
                    untouched(context)?;
                }
                untouched(context)
            })
        }),
        confined("a link that leads out to nothing is not filled", |context| {
            Box::pin(async move {
                let outside = planted(context).await?;
                context.says(&format!("ln -s '{}/born' born", outside.display())).await?;
                // As above.
                let _ = context.write("born", "x").await;
                untouched(context)
            })
        }),
        confined("nothing outside is removed", |context| {
            Box::pin(async move {
                let outside = planted(context).await?;
                for path in [outside.join("canary"), "dir/canary".into(), outside.clone()] {
                    let deleted = context.delete(&path, true).await;
                    refused(&format!("`{}` is out of reach", path.display()), deleted, is_out_of_reach)?;
                }
                context.delete("dir", true).await?;
                context.delete("file", true).await?;
                untouched(context)
            })
        }),
        confined("nothing is moved out, and nothing in", |context| {
            Box::pin(async move {
                let outside = planted(context).await?;
                for from in [outside.join("canary"), "dir/canary".into()] {
                    refused(&format!("`{}` is out of reach", from.display()), context.rename(&from, "in", false).await, is_out_of_reach)?;
                }
                for to in [PathBuf::from("dir"), "dir/f".into(), outside.join("f"), outside.join("canary")] {
                    // As above; the directory is put back, wherever it is now.
                    let _ = context.rename("f", &to, true).await;
                    context.write("f", "mine").await?;
                    untouched(context)?;
                }
                same("the file", context.text("f").await?, "mine")?;
                untouched(context)
            })
        })
        .file("f", "mine"),
        confined("a linked directory is not listed", |context| {
            Box::pin(async move {
                let outside = planted(context).await?;
                for path in [PathBuf::from("dir"), outside.clone(), "dir/.".into(), "dir/../".into()] {
                    let listed = context.list(&path).await;
                    let clean = listed.as_ref().map_or(true, |listed| {
                        !listed.entries.iter().any(|entry| entry.path.ends_with("canary"))
                    });
                    holds(&format!("no canary in `{}`", path.display()), clean, &format!("{listed:?}"))?;
                }
                refused("`dir`", context.list("dir").await, is_out_of_reach)
            })
        }),
        confined("a link that leads out is listed as a link, without what it leads to", |context| {
            Box::pin(async move {
                planted(context).await?;
                let listed = context.list(".").await?;
                let links = ["file", "dir"];
                for entry in listed.entries.iter().filter(|entry| links.iter().any(|link| entry.path.ends_with(link))) {
                    same("a link that leads nowhere", (entry.kind, entry.dangling), (Kind::Link, true))?;
                    let size = entry.size.filter(|size| *size == CANARY.len() as u64);
                    same("the canary's size", size, None)?;
                }
                same("names", context.names(".").await?, ["dir", "f", "file"].map(str::to_owned).to_vec())
            })
        })
        .file("f", ""),
        confined("looking at a link that leads out tells of the link", |context| {
            Box::pin(async move {
                planted(context).await?;
                let info = context.stat("file").await?;
                same("what it is", (info.kind, info.dangling, info.hash), (Kind::Link, true, None))?;
                refused("what lies behind it", context.stat("dir/canary").await, is_out_of_reach)
            })
        }),
        confined("a search does not leave the workspace", |context| {
            Box::pin(async move {
                let outside = planted(context).await?;
                let all = Include { ignored: true, dotfiles: true };
                let found = context.grep_as(GrepRequest { include: all.clone(), ..GrepRequest::new("canary") }).await?;
                same("lines", lines_of(&found), Vec::<String>::new())?;
                for path in [PathBuf::from("file"), "dir".into(), "dir/canary".into(), outside.clone(), "..".into()] {
                    let found = context.grep_as(GrepRequest { path: path.clone(), include: all.clone(), ..GrepRequest::new("canary") }).await;
                    let clean = found.as_ref().map_or(true, |found| found.hits.is_empty());
                    holds(&format!("nothing in `{}`", path.display()), clean, &format!("{found:?}"))?;
                }
                untouched(context)
            })
        }),
        confined("a pattern does not leave the workspace", |context| {
            Box::pin(async move {
                let outside = planted(context).await?;
                let patterns = ["../*".to_owned(), "../**/canary".to_owned(), "dir/*".to_owned(), "**/canary".to_owned(), format!("{}/*", outside.display()), "{..,x}/*/canary".to_owned(), "/etc/*".to_owned()];
                for pattern in patterns {
                    let include = Include { ignored: true, dotfiles: true };
                    let found = context.glob_as(GlobRequest { include, ..GlobRequest::new(&pattern) }).await;
                    let clean = found.as_ref().map_or(true, |found| {
                        !found.paths.iter().any(|path| path.ends_with("canary") || path.is_absolute() || path.starts_with(".."))
                    });
                    holds(&format!("`{pattern}` finds nothing outside"), clean, &format!("{found:?}"))?;
                }
                Ok(())
            })
        }),
        confined("a path that is swapped for a link while it is used leads nowhere", |context| {
            Box::pin(async move {
                let outside = planted(context).await?;
                let text = format!(
                    "while :; do mkdir d 2>/dev/null; echo mine > d/canary; rm -rf d; ln -s '{}' d; rm -f d; done 2>/dev/null",
                    outside.display()
                );
                let shieling = std::sync::Arc::clone(&context.shieling);
                let command = context.within(&text, 15_000);
                let swapping = tokio::spawn(async move { shieling.run(command, None).await });
                let mut seen = Ok(());
                for round in 0..150 {
                    // Nothing is swapped any more: a slow link takes longer for all rounds than a case has.
                    if round >= 10 && swapping.is_finished() {
                        break;
                    }
                    if let Ok(text) = context.text("d/canary").await {
                        seen = seen.and(holds("not the canary", text != CANARY, &format!("round {round}")));
                    }
                    let written = context.write("d/canary", "overwritten").await;
                    let removed = context.delete("d/canary", false).await;
                    // Whether each operation succeeded depends on timing; where it took effect does not.
                    drop((written, removed));
                    seen = seen.and(untouched(context));
                }
                swapping.abort();
                let _ = swapping.await;
                seen
            })
        })
        .programs(&["mkdir", "rm"]),
        check("`..` beyond the root is the root, and no way out", |context| {
            Box::pin(async move {
                let up = "../".repeat(40);
                for path in [format!("{up}etc/shadow"), "/../../etc/shadow".to_owned(), format!("/proc/1/root/{up}etc/shadow")] {
                    let read = context.read(&path).await;
                    let held = read.as_ref().map_or(true, |read| read.path.starts_with(context.workspace()));
                    holds(&format!("`{path}` is not read"), held, &format!("{read:?}"))?;
                }
                Ok(())
            })
        })
        .needs([Need::Can(Ability::ReadFiles)]),
    ]
}
