//! Under readonly, nothing changes.

use std::sync::Arc;

use shieling::approval::NoApprover;
use shieling::environment::{Ability, FileError};
use shieling::files::FilesError;
use shieling::outcome::Status;

use crate::conformance::case::{Case, Need, check, reads};
use crate::conformance::expect::{DescribeError as _, holds, refused, same};

const TREE: &[(&str, &str)] = &[
    ("f", "kept\n"),
    ("d/g", "kept\n"),
    (
        "change.sh",
        "echo x > f; rm -f d/g; mkdir new; mv d e; chmod 777 f; ln -s f l; :> new2\n",
    ),
];

fn readonly(case: Case) -> Case {
    case.readonly().files(TREE)
}

fn is_readonly(error: &FilesError) -> bool {
    matches!(
        error,
        FilesError::Refused { .. } | FilesError::File(FileError::ReadOnly(_))
    )
}

pub(crate) fn cases() -> Vec<Case> {
    vec![
        readonly(check("a command that only reads runs", |context| {
            Box::pin(async move {
                same(
                    "what it says",
                    context.says("cat f; ls").await?,
                    "kept\nchange.sh\nd\nf\n",
                )
            })
        }))
        .programs(&["cat", "ls"]),
        readonly(check(
            "a command that is known to change something is refused, with the reason",
            |context| {
                Box::pin(async move {
                    for text in [
                        "echo x > f",
                        "touch new",
                        "rm f",
                        "mv f g",
                        "mkdir new",
                        "chmod 777 f",
                        "cat f | tee new",
                    ] {
                        let outcome = context.run(text).await;
                        let because = outcome.denial.as_ref().is_some_and(|denial| !denial.reasons.is_empty());
                        holds(
                            &format!("`{text}` is denied"),
                            outcome.status == Status::Denied && because,
                            &outcome.described(),
                        )?;
                    }
                    same(
                        "what is there",
                        context.says("cat f d/g; ls").await?,
                        "kept\nkept\nchange.sh\nd\nf\n",
                    )
                })
            },
        ))
        .programs(&["cat", "ls"]),
        readonly(check(
            "a program that changes something changes nothing, where that is declared",
            |context| {
                Box::pin(async move {
                    context.run("sh change.sh").await;
                    same(
                        "what is there",
                        context.says("cat f d/g; ls").await?,
                        "kept\nkept\nchange.sh\nd\nf\n",
                    )
                })
            },
        ))
        .needs([Need::EnforcesReadonly])
        .programs(&["cat", "ls"]),
        readonly(check(
            "a program whose doings nobody knows is contained, or asked about",
            |context| {
                Box::pin(async move {
                    let outcome = context.run("sh change.sh").await;
                    let good = context.shieling.enforced().readonly || outcome.status == Status::NeedsApproval;
                    holds("`needs_approval`, or contained", good, &outcome.described())?;
                    same(
                        "what is there",
                        context.says("cat f d/g; ls").await?,
                        "kept\nkept\nchange.sh\nd\nf\n",
                    )
                })
            },
        ))
        .built(|builder| builder.approver(Arc::new(NoApprover)))
        .programs(&["cat", "ls"]),
        readonly(check(
            "sessions change nothing either, where that is declared",
            |context| {
                Box::pin(async move {
                    context.shell("x=1; sh change.sh; . ./change.sh").await;
                    same("the session", context.shell("echo $x").await.stdout, "1\n")?;
                    same(
                        "what is there",
                        context.says("cat f d/g; ls").await?,
                        "kept\nkept\nchange.sh\nd\nf\n",
                    )
                })
            },
        ))
        .needs([Need::EnforcesReadonly, Need::Can(Ability::Sessions)])
        .programs(&["cat", "ls"]),
        readonly(reads("file tools read", |context| {
            Box::pin(async move {
                same("a text", context.text("d/g").await?, "kept\n")?;
                same(
                    "names",
                    context.names(".").await?,
                    ["change.sh", "d", "f"].map(str::to_owned).to_vec(),
                )?;
                same("a search", context.grep("kept").await?.len(), 2)
            })
        })),
        readonly(reads(
            "file tools that change something are refused in a typed way",
            |context| {
                Box::pin(async move {
                    refused("a write", context.write("f", "x").await, is_readonly)?;
                    refused("a new file", context.write("new/f", "x").await, is_readonly)?;
                    refused("an edit", context.edit("f", "kept", "x").await, is_readonly)?;
                    refused(
                        "a patch",
                        context.patch("--- a/f\n+++ b/f\n@@ -1 +1 @@\n-kept\n+x\n").await,
                        is_readonly,
                    )?;
                    refused("a removal", context.delete("f", false).await, is_readonly)?;
                    refused("a move", context.rename("f", "g", false).await, is_readonly)?;
                    same(
                        "what is there",
                        context.names(".").await?,
                        ["change.sh", "d", "f"].map(str::to_owned).to_vec(),
                    )?;
                    same("the file", context.text("f").await?, "kept\n")
                })
            },
        )),
        check(
            "nothing outside of an allow list is executed, where that is declared",
            |context| {
                Box::pin(async move {
                    let outcome = context.run("sh run.sh").await;
                    holds("no `allowed`", !outcome.stdout.contains("f.txt"), &outcome.described())?;
                    same("another program", context.run("uname").await.status, Status::Denied)
                })
            },
        )
        .needs([Need::EnforcesAllow])
        .under(shieling::policy::Policy::open().with_allow(&["sh"]).expect("a name"))
        .files(&[("run.sh", "/usr/bin/ls; /bin/ls; ls\n"), ("f.txt", "")]),
    ]
}
