//! Ignored paths do not exist: for commands if that is declared, and for file tools always.

use shieling::environment::{Ability, FileError};
use shieling::files::{FilesError, GlobRequest, GrepRequest, Include};

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
        in_commands(
            "a command that walks the tree finds nothing of what is hidden",
            |context| {
                Box::pin(async move {
                    // The name may still be listed, by an entry without content.
                    let outcome = context.run("grep -r hunter . ; cat d/*").await;
                    same("what is found", outcome.stdout, "open\n")
                })
            },
        )
        .programs(&["grep", "cat"]),
        in_commands("a program that names what is hidden does not find it", |context| {
            Box::pin(async move {
                let outcome = context.run("sh look.sh").await;
                holds("no `hunter`", !outcome.stdout.contains("hunter"), &outcome.stdout)
            })
        })
        .programs(&["cat", "ls"]),
        in_commands(
            "what appears later and is to be hidden is hidden from the next command",
            |context| {
                Box::pin(async move {
                    let made = context.run("printf hunter2 > x; sh move.sh; cat d/later.*").await;
                    // The same command may still see it, or never.
                    let seen = ["hunter2", ""].contains(&made.stdout.as_str());
                    holds("at first", seen, &made.stdout)?;
                    same(
                        "what is found",
                        context.run("grep -r hunter2 d; cat d/later.*").await.stdout,
                        "",
                    )
                })
            },
        )
        .programs(&["grep", "cat", "mv"]),
        hiding(check(
            "a text that names what is hidden is refused, and says why",
            |context| {
                Box::pin(async move {
                    let outcome = context.run("cat .env").await;
                    let because = outcome.denial.as_ref().is_some_and(|denial| !denial.reasons.is_empty());
                    same("what it says", outcome.stdout.as_str(), "")?;
                    holds("a refusal with reasons", because, &format!("{outcome:?}"))
                })
            },
        )),
        hiding(reads("what is hidden is not read", |context| {
            Box::pin(async move {
                for path in [
                    ".env",
                    "secret/deep/f",
                    "d/k.pem",
                    "d/../.env",
                    "./secret/../.env",
                    "secret/../secret/deep/f",
                ] {
                    refused(&format!("`{path}` is missing"), context.read(path).await, is_missing)?;
                    refused(
                        &format!("`{path}` is not looked at"),
                        context.stat(path).await,
                        is_missing,
                    )?;
                }
                same("what is not hidden", context.text("d/open").await?, "open\n")
            })
        })),
        hiding(reads("what is hidden is not listed or found", |context| {
            Box::pin(async move {
                same(
                    "entries",
                    context.names(".").await?,
                    ["d", "link.sh", "look.sh", "move.sh"].map(str::to_owned).to_vec(),
                )?;
                same("entries of `d`", context.names("d").await?, vec!["open".to_owned()])?;
                refused("`secret`", context.list("secret").await, is_missing)?;
                let include = Include {
                    ignored: true,
                    dotfiles: true,
                };
                let found = context
                    .glob_as(GlobRequest {
                        include,
                        ..GlobRequest::new("**/*")
                    })
                    .await?;
                let secret = found
                    .paths
                    .iter()
                    .any(|path| path.starts_with("secret") || path.ends_with("k.pem") || path.starts_with(".env"));
                holds("nothing hidden", !secret, &format!("{:?}", found.paths))
            })
        })),
        hiding(reads("what is hidden is not searched", |context| {
            Box::pin(async move {
                let include = Include {
                    ignored: true,
                    dotfiles: true,
                };
                let found = context
                    .grep_as(GrepRequest {
                        include: include.clone(),
                        ..GrepRequest::new("hunter")
                    })
                    .await?;
                same("lines", lines_of(&found), Vec::<String>::new())?;
                for path in [".env", "secret", "d/k.pem"] {
                    let found = context
                        .grep_as(GrepRequest {
                            path: path.into(),
                            include: include.clone(),
                            ..GrepRequest::new("hunter")
                        })
                        .await;
                    refused(&format!("`{path}` is missing"), found, is_missing)?;
                }
                Ok(())
            })
        })),
        hiding(writes(
            "what is hidden is neither written, removed nor moved",
            |context| {
                Box::pin(async move {
                    for path in [".env", "secret/deep/f", "secret/new", "d/new.pem"] {
                        let written = context.write(path, "x").await;
                        refused(&format!("`{path}` is not written"), written, is_typed)?;
                        let deleted = context.delete(path, true).await;
                        refused(&format!("`{path}` is not removed"), deleted, is_typed)?;
                        let edited = context.edit(path, "hunter", "x").await;
                        refused(&format!("`{path}` is not edited"), edited, is_typed)?;
                        let moved = context.rename(path, "out", false).await;
                        refused(&format!("`{path}` is not moved"), moved, is_typed)?;
                        let moved = context.rename("d/open", path, true).await;
                        refused(&format!("nothing is moved to `{path}`"), moved, is_typed)?;
                    }
                    same("what is not hidden", context.text("d/open").await?, "open\n")
                })
            },
        )),
        hiding(reads("a link to what is hidden leads nowhere", |context| {
            Box::pin(async move {
                context.run("sh link.sh").await;
                for path in ["l", "s/f"] {
                    refused(&format!("`{path}` is missing"), context.read(path).await, is_missing)?;
                }
                let include = Include {
                    ignored: true,
                    dotfiles: true,
                };
                let found = context
                    .grep_as(GrepRequest {
                        include,
                        ..GrepRequest::new("hunter")
                    })
                    .await?;
                same("lines", lines_of(&found), Vec::<String>::new())
            })
        }))
        .needs([Need::Can(Ability::Commands)])
        .programs(&["ln"]),
        hiding(writes("removing a directory leaves what is hidden in it", |context| {
            Box::pin(async move {
                let deleted = context.delete("d", true).await;
                refused("refused", deleted, is_typed)?;
                same("what is not hidden", context.text("d/open").await?, "open\n")
            })
        })),
    ]
}
