//! File tools stay in what they are for, whatever a path or a link says.

use std::path::PathBuf;

use shieling::environment::{Ability, FileError, Kind};
use shieling::files::{FilesError, Glob, GlobAsk, GrepAsk};

use crate::conformance::Wrong;
use crate::conformance::at::At;
use crate::conformance::case::{Case, Check, Checked, Need, check, writes};
use crate::conformance::expect::{holds, is_typed, refused, same};
use crate::conformance::files::lines_of;

/// What lies outside, and is nowhere to be seen.
const CANARY: &str = "canary 8c1f\n";

/// A case with a canary outside, links to it in the workspace (`file`, `dir`, `dir/canary`), and nothing
/// changed outside at its end.
fn confined(name: &'static str, what: Check) -> Case {
    writes(name, what)
        .needs([Need::Can(Ability::Commands), Need::Outside])
        .programs(&["ln"])
}

/// Puts the canary there, and links to it.
async fn planted(at: &At) -> Result<PathBuf, Wrong> {
    let outside = at.outside()?;
    outside.put("canary", CANARY.as_bytes())?;
    let path = outside.path().to_path_buf();
    at.says(&format!("ln -s '{0}/canary' file; ln -s '{0}' dir", path.display()))
        .await?;
    Ok(path)
}

/// Outside, all is as it was.
fn untouched(at: &At) -> Checked {
    let outside = at.outside()?;
    same("what lies outside", outside.names()?, vec!["canary".to_owned()])?;
    same("the canary", outside.get("canary")?.as_deref(), Some(CANARY.as_bytes()))
}

/// Refused as a place that cannot be reached.
fn is_out_of_reach(error: &FilesError) -> bool {
    matches!(
        error,
        FilesError::File(
            FileError::NotFound(_)
                | FileError::Unsupported(_)
                | FileError::Outside { .. }
                | FileError::Permission(_)
                | FileError::ReadOnly(_)
        ) | FilesError::Refused { .. }
    )
}

/// Other ways to write the path of the canary.
fn spellings(at: &At, outside: &std::path::Path) -> Vec<PathBuf> {
    let up = "../".repeat(at.workspace().components().count() + 2);
    let below = outside.strip_prefix("/").unwrap_or(outside);
    vec![
        outside.join("canary"),
        format!("{up}{}/canary", below.display()).into(),
        format!("d/{up}{}/canary", below.display()).into(),
        at.path(&format!("{up}{}/canary", below.display())),
        format!("/proc/self/root{}/canary", outside.display()).into(),
        format!("/{}/canary", outside.display()).into(),
        "file".into(),
        "dir/canary".into(),
        "d/../dir/canary".into(),
    ]
}

pub(crate) fn cases() -> Vec<Case> {
    vec![
        confined("nothing outside is read, however its path is written", |at| {
            Box::pin(async move {
                let outside = planted(at).await?;
                for path in spellings(at, &outside) {
                    refused(&format!("`{}` is out of reach", path.display()), at.read(&path).await, is_out_of_reach)?;
                }
                untouched(at)
            })
        })
        .file("d/f", ""),
        confined("nothing outside is written, however its path is written", |at| {
            Box::pin(async move {
                let outside = planted(at).await?;
                for path in spellings(at, &outside) {
                    // Where the place has a directory of that name of its own, that is what is written.
                    let _ = at.write(&path, "changed").await;
                    untouched(at)?;
                }
                untouched(at)
            })
        })
        .file("d/f", ""),
        confined("nothing outside is edited or patched", |at| {
            Box::pin(async move {
                planted(at).await?;
                refused("an edit through a link", at.edit("file", "canary", "x").await, is_out_of_reach)?;
                refused("an edit through a linked directory", at.edit("dir/canary", "canary", "x").await, is_out_of_reach)?;
                for path in ["file", "dir/canary", "../canary", "dir/new"] {
                    let patch = format!("--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-canary 8c1f\n+x\n");
                    let patched = at.patch(&patch).await;
                    refused(&format!("`{path}` is not patched"), patched, is_typed)?;
                    let patch = format!("--- /dev/null\n+++ b/dir/{}\n@@ -0,0 +1 @@\n+x\n", path.replace('/', "-"));
                    // As above.
                    let _ = at.patch(&patch).await;
                    untouched(at)?;
                }
                untouched(at)
            })
        }),
        confined("no directory is made outside", |at| {
            Box::pin(async move {
                planted(at).await?;
                for path in ["dir/new", "dir/a/b/new", "dir/../new/f"] {
                    // As above.
                    let _ = at.write(path, "x").await;
                    untouched(at)?;
                }
                untouched(at)
            })
        }),
        confined("a link that leads out to nothing is not filled", |at| {
            Box::pin(async move {
                let outside = planted(at).await?;
                at.says(&format!("ln -s '{}/born' born", outside.display())).await?;
                // As above.
                let _ = at.write("born", "x").await;
                untouched(at)
            })
        }),
        confined("nothing outside is removed", |at| {
            Box::pin(async move {
                let outside = planted(at).await?;
                for path in [outside.join("canary"), "dir/canary".into(), outside.clone()] {
                    let deleted = at.delete(&path, true).await;
                    refused(&format!("`{}` is out of reach", path.display()), deleted, is_out_of_reach)?;
                }
                at.delete("dir", true).await?;
                at.delete("file", true).await?;
                untouched(at)
            })
        }),
        confined("nothing is moved out, and nothing in", |at| {
            Box::pin(async move {
                let outside = planted(at).await?;
                for from in [outside.join("canary"), "dir/canary".into()] {
                    refused(&format!("`{}` is out of reach", from.display()), at.rename(&from, "in", false).await, is_out_of_reach)?;
                }
                for to in [PathBuf::from("dir"), "dir/f".into(), outside.join("f"), outside.join("canary")] {
                    // As above; it is put back, wherever it is now.
                    let _ = at.rename("f", &to, true).await;
                    at.write("f", "mine").await?;
                    untouched(at)?;
                }
                same("the file", at.text("f").await?, "mine")?;
                untouched(at)
            })
        })
        .file("f", "mine"),
        confined("a linked directory is not listed", |at| {
            Box::pin(async move {
                let outside = planted(at).await?;
                for path in [PathBuf::from("dir"), outside.clone(), "dir/.".into(), "dir/../".into()] {
                    let listed = at.list(&path).await;
                    let clean = listed.as_ref().map_or(true, |listed| {
                        !listed.entries.iter().any(|entry| entry.path.ends_with("canary"))
                    });
                    holds(&format!("no canary in `{}`", path.display()), clean, &format!("{listed:?}"))?;
                }
                refused("`dir`", at.list("dir").await, is_out_of_reach)
            })
        }),
        confined("a link that leads out is listed as a link, without what it leads to", |at| {
            Box::pin(async move {
                planted(at).await?;
                let listed = at.list(".").await?;
                let links = ["file", "dir"];
                for entry in listed.entries.iter().filter(|entry| links.iter().any(|link| entry.path.ends_with(link))) {
                    same("a link that leads nowhere", (entry.kind, entry.dangling), (Kind::Link, true))?;
                    let size = entry.size.filter(|size| *size == CANARY.len() as u64);
                    same("the canary's size", size, None)?;
                }
                same("names", at.names(".").await?, ["dir", "f", "file"].map(str::to_owned).to_vec())
            })
        })
        .file("f", ""),
        confined("looking at a link that leads out tells of the link", |at| {
            Box::pin(async move {
                planted(at).await?;
                let info = at.stat("file").await?;
                same("what it is", (info.kind, info.dangling, info.hash), (Kind::Link, true, None))?;
                refused("what lies behind it", at.stat("dir/canary").await, is_out_of_reach)
            })
        }),
        confined("a search does not leave the workspace", |at| {
            Box::pin(async move {
                let outside = planted(at).await?;
                let all = Glob { ignored: true, dotted: true };
                let found = at.grep_as(GrepAsk { of: all.clone(), ..GrepAsk::new("canary") }).await?;
                same("lines", lines_of(&found), Vec::<String>::new())?;
                for path in [PathBuf::from("file"), "dir".into(), "dir/canary".into(), outside.clone(), "..".into()] {
                    let found = at.grep_as(GrepAsk { path: path.clone(), of: all.clone(), ..GrepAsk::new("canary") }).await;
                    let clean = found.as_ref().map_or(true, |found| found.hits.is_empty());
                    holds(&format!("nothing in `{}`", path.display()), clean, &format!("{found:?}"))?;
                }
                untouched(at)
            })
        }),
        confined("a pattern does not leave the workspace", |at| {
            Box::pin(async move {
                let outside = planted(at).await?;
                let patterns = ["../*".to_owned(), "../**/canary".to_owned(), "dir/*".to_owned(), "**/canary".to_owned(), format!("{}/*", outside.display()), "{..,x}/*/canary".to_owned(), "/etc/*".to_owned()];
                for pattern in patterns {
                    let of = Glob { ignored: true, dotted: true };
                    let found = at.glob_as(GlobAsk { of, ..GlobAsk::new(&pattern) }).await;
                    let clean = found.as_ref().map_or(true, |found| {
                        !found.paths.iter().any(|path| path.ends_with("canary") || path.is_absolute() || path.starts_with(".."))
                    });
                    holds(&format!("`{pattern}` finds nothing outside"), clean, &format!("{found:?}"))?;
                }
                Ok(())
            })
        }),
        confined("a path that is swapped for a link while it is used leads nowhere", |at| {
            Box::pin(async move {
                let outside = planted(at).await?;
                let text = format!(
                    "while :; do mkdir d 2>/dev/null; echo mine > d/canary; rm -rf d; ln -s '{}' d; rm -f d; done 2>/dev/null",
                    outside.display()
                );
                let shieling = std::sync::Arc::clone(&at.shieling);
                let command = at.within(&text, 15_000);
                let swapping = tokio::spawn(async move { shieling.run(command, None).await });
                let mut seen = Ok(());
                for round in 0..150 {
                    if let Ok(text) = at.text("d/canary").await {
                        seen = seen.and(holds("not the canary", text != CANARY, &format!("round {round}")));
                    }
                    let written = at.write("d/canary", "overwritten").await;
                    let removed = at.delete("d/canary", false).await;
                    // Whether each was done is chance; where is not.
                    drop((written, removed));
                    seen = seen.and(untouched(at));
                }
                swapping.abort();
                let _ = swapping.await;
                seen
            })
        })
        .programs(&["mkdir", "rm"]),
        check("`..` beyond the root is the root, and no way out", |at| {
            Box::pin(async move {
                let up = "../".repeat(40);
                for path in [format!("{up}etc/shadow"), "/../../etc/shadow".to_owned(), format!("/proc/1/root/{up}etc/shadow")] {
                    let read = at.read(&path).await;
                    let held = read.as_ref().map_or(true, |read| read.path.starts_with(at.workspace()));
                    holds(&format!("`{path}` is not read"), held, &format!("{read:?}"))?;
                }
                Ok(())
            })
        })
        .needs([Need::Can(Ability::ReadFiles)]),
    ]
}
