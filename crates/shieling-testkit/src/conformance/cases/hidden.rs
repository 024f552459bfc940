//! Paths that are ignored do not exist, for commands where that is declared, and for file tools always.

use shieling::environment::{Ability, FileError};
use shieling::files::{FilesError, Glob, GlobAsk, GrepAsk};

use crate::conformance::case::{Case, Check, Need, check, reads, writes};
use crate::conformance::expect::{holds, is_typed, refused, same};
use crate::conformance::files::lines_of;

const IGNORED: &[&str] = &[".env*", "secret/", "*.pem"];

const TREE: &[(&str, &str)] = &[
    (".env", "KEY=hunter\n"),
    ("secret/deep/f", "hunter\n"),
    ("d/k.pem", "hunter\n"),
    ("d/open", "open\n"),
    ("move.sh", "mv x d/later.pem\n"),
    (
        "look.sh",
        "cat .env secret/deep/f d/k.pem; ls -A . secret d; echo x > .env.new\n",
    ),
    ("link.sh", "ln -s .env l; ln -s secret/deep s\n"),
];

fn hiding(case: Case) -> Case {
    case.ignoring(IGNORED).files(TREE)
}

fn in_commands(name: &'static str, what: Check) -> Case {
    hiding(check(name, what)).needs([Need::Hides])
}

fn is_missing(error: &FilesError) -> bool {
    matches!(
        error,
        FilesError::File(FileError::NotFound(_)) | FilesError::Refused { .. }
    )
}

pub(crate) fn cases() -> Vec<Case> {
    vec![
        in_commands("a command that walks the tree finds nothing of what is hidden", |at| {
            Box::pin(async move {
                // A name may still be told, by an entry with nothing behind it.
                let outcome = at.run("grep -r hunter . ; cat d/*").await;
                same("what is found", outcome.stdout, "open\n")
            })
        })
        .programs(&["grep", "cat"]),
        in_commands("a program that names what is hidden does not find it", |at| {
            Box::pin(async move {
                let outcome = at.run("sh look.sh").await;
                holds("no `hunter`", !outcome.stdout.contains("hunter"), &outcome.stdout)
            })
        })
        .programs(&["cat", "ls"]),
        in_commands(
            "what appears later and is to be hidden is hidden from the next command",
            |at| {
                Box::pin(async move {
                    let made = at.run("printf hunter2 > x; sh move.sh; cat d/later.*").await;
                    // By the same command it may be seen still, or never.
                    let seen = ["hunter2", ""].contains(&made.stdout.as_str());
                    holds("at first", seen, &made.stdout)?;
                    same(
                        "what is found",
                        at.run("grep -r hunter2 d; cat d/later.*").await.stdout,
                        "",
                    )
                })
            },
        )
        .programs(&["grep", "cat", "mv"]),
        hiding(check(
            "a text that names what is hidden is refused, and says why",
            |at| {
                Box::pin(async move {
                    let outcome = at.run("cat .env").await;
                    let because = outcome.denial.as_ref().is_some_and(|denial| !denial.reasons.is_empty());
                    same("what it says", outcome.stdout.as_str(), "")?;
                    holds("a refusal with reasons", because, &format!("{outcome:?}"))
                })
            },
        )),
        hiding(reads("what is hidden is not read", |at| {
            Box::pin(async move {
                for path in [
                    ".env",
                    "secret/deep/f",
                    "d/k.pem",
                    "d/../.env",
                    "./secret/../.env",
                    "secret/../secret/deep/f",
                ] {
                    refused(&format!("`{path}` is missing"), at.read(path).await, is_missing)?;
                    refused(&format!("`{path}` is not looked at"), at.stat(path).await, is_missing)?;
                }
                same("what is not hidden", at.text("d/open").await?, "open\n")
            })
        })),
        hiding(reads("what is hidden is not listed or found", |at| {
            Box::pin(async move {
                same(
                    "entries",
                    at.names(".").await?,
                    ["d", "link.sh", "look.sh", "move.sh"].map(str::to_owned).to_vec(),
                )?;
                same("entries of `d`", at.names("d").await?, vec!["open".to_owned()])?;
                refused("`secret`", at.list("secret").await, is_missing)?;
                let of = Glob {
                    ignored: true,
                    dotted: true,
                };
                let found = at
                    .glob_as(GlobAsk {
                        of,
                        ..GlobAsk::new("**/*")
                    })
                    .await?;
                let secret = found
                    .paths
                    .iter()
                    .any(|path| path.starts_with("secret") || path.ends_with("k.pem") || path.starts_with(".env"));
                holds("nothing hidden", !secret, &format!("{:?}", found.paths))
            })
        })),
        hiding(reads("what is hidden is not searched", |at| {
            Box::pin(async move {
                let of = Glob {
                    ignored: true,
                    dotted: true,
                };
                let found = at
                    .grep_as(GrepAsk {
                        of: of.clone(),
                        ..GrepAsk::new("hunter")
                    })
                    .await?;
                same("lines", lines_of(&found), Vec::<String>::new())?;
                for path in [".env", "secret", "d/k.pem"] {
                    let found = at
                        .grep_as(GrepAsk {
                            path: path.into(),
                            of: of.clone(),
                            ..GrepAsk::new("hunter")
                        })
                        .await;
                    refused(&format!("`{path}` is missing"), found, is_missing)?;
                }
                Ok(())
            })
        })),
        hiding(writes("what is hidden is neither written, removed nor moved", |at| {
            Box::pin(async move {
                for path in [".env", "secret/deep/f", "secret/new", "d/new.pem"] {
                    let written = at.write(path, "x").await;
                    refused(&format!("`{path}` is not written"), written, is_typed)?;
                    let deleted = at.delete(path, true).await;
                    refused(&format!("`{path}` is not removed"), deleted, is_typed)?;
                    let edited = at.edit(path, "hunter", "x").await;
                    refused(&format!("`{path}` is not edited"), edited, is_typed)?;
                    let moved = at.rename(path, "out", false).await;
                    refused(&format!("`{path}` is not moved"), moved, is_typed)?;
                    let moved = at.rename("d/open", path, true).await;
                    refused(&format!("nothing is moved to `{path}`"), moved, is_typed)?;
                }
                same("what is not hidden", at.text("d/open").await?, "open\n")
            })
        })),
        hiding(reads("a link to what is hidden leads nowhere", |at| {
            Box::pin(async move {
                at.run("sh link.sh").await;
                for path in ["l", "s/f"] {
                    refused(&format!("`{path}` is missing"), at.read(path).await, is_missing)?;
                }
                let of = Glob {
                    ignored: true,
                    dotted: true,
                };
                let found = at
                    .grep_as(GrepAsk {
                        of,
                        ..GrepAsk::new("hunter")
                    })
                    .await?;
                same("lines", lines_of(&found), Vec::<String>::new())
            })
        }))
        .needs([Need::Can(Ability::Commands)])
        .programs(&["ln"]),
        hiding(writes("removing a directory leaves what is hidden in it", |at| {
            Box::pin(async move {
                let deleted = at.delete("d", true).await;
                refused("refused", deleted, is_typed)?;
                same("what is not hidden", at.text("d/open").await?, "open\n")
            })
        })),
    ]
}
