//! Sessions.

use std::sync::Arc;

use shieling::environment::Ability;
use shieling::session::SessionName;

use crate::conformance::CheckFailure;
use crate::conformance::case::{Case, Need, case, check, run, shell, shell_in};
use crate::conformance::expect::same;

pub(crate) fn cases() -> Vec<Case> {
    let sessions = |case: Case| case.needs([Need::Can(Ability::Sessions)]);
    vec![
        case("variables stay", [
            shell("x=1; export Y='a b'; z=(p q)"),
            shell("echo \"$x $Y ${z[1]}\"").out("1 a b q\n"),
        ]),
        case("functions and options stay", [
            shell("f() { echo \"f $1\"; }; set -o noclobber"),
            shell("f x; echo a > new; echo b > new").out("f x\n").any_code().err_has("new"),
        ]),
        case("the directory stays, and is told", [
            shell("cd d/e").cwd("d/e"),
            shell("pwd -P").out("{W}/d/e\n").cwd("d/e"),
            shell("cd ../..").cwd(""),
        ])
        .file("d/e/f", ""),
        case("the mask of new files stays", [shell("umask 077"), shell("touch f; stat -c %a f").out("600\n")])
            .programs(&["stat", "touch"]),
        case("the last code is there for the next command", [shell("(exit 5)").code(5), shell("echo $?").out("5\n")]),
        case("an exit ends the shell, and the next one stands where it stood", [
            shell("cd d; export E=kept; plain=lost; exit 3").code(3).restarted(),
            shell("echo \"$E ${plain-none}\"; pwd -P").out("kept none\n{W}/d\n"),
        ])
        .file("d/f", ""),
        case("a failure does not end the shell", [
            shell("x=kept"),
            shell("false").code(1),
            shell("conformance-missing").code(127).noisy(),
            shell("set -e; false; echo no").code(1).noisy(),
            shell("set +e; echo $x").out("kept\n"),
        ]),
        case("a text that cannot be read does not end the shell", [
            shell("x=kept"),
            shell("if then; fi (").code(2).noisy(),
            shell("echo $x").out("kept\n"),
        ]),
        case("sessions are apart", [
            shell_in("a", "x=a; cd d"),
            shell_in("b", "echo ${x-none}; pwd -P").out("none\n{W}\n"),
            shell_in("a", "echo $x; pwd -P").out("a\n{W}/d\n"),
        ])
        .file("d/f", ""),
        case("a process of its own knows nothing of a session", [
            shell("x=1; cd d"),
            run("echo ${x-none}; pwd -P").out("none\n{W}\n"),
        ])
        .file("d/f", ""),
        sessions(check("sessions run side by side", |context| {
            Box::pin(async move {
                // Each waits for all others, so running them one after the other would take forever.
                let text = |number: usize| format!(": > begun{number}; while [ \"$(echo begun*)\" != 'begun0 begun1 begun2 begun3' ]; do sleep 0.02; done; echo {number}");
                let calls: Vec<_> = (0..4)
                    .map(|number| {
                        let call = context.call(&text(number));
                        let name = format!("s{number}").parse().expect("a good name");
                        let shieling = Arc::clone(&context.shieling);
                        tokio::spawn(async move { shieling.session(name).run(call).await })
                    })
                    .collect();
                for (number, call) in calls.into_iter().enumerate() {
                    let outcome = call.await.map_err(|error| CheckFailure::new("no panic", error.to_string()))?;
                    same("what it says", outcome.stdout, format!("{number}\n"))?;
                }
                Ok(())
            })
        }))
        .programs(&["sleep"]),
        sessions(check("calls of one session take turns", |context| {
            Box::pin(async move {
                context.shell("n=0").await;
                let calls: Vec<_> = (0..5)
                    .map(|_| {
                        let call = context.call("n=$((n+1)); sleep 0.05; echo $n");
                        let shieling = Arc::clone(&context.shieling);
                        tokio::spawn(async move { shieling.session(SessionName::default()).run(call).await.stdout })
                    })
                    .collect();
                let mut said = Vec::new();
                for call in calls {
                    said.push(call.await.map_err(|error| CheckFailure::new("no panic", error.to_string()))?);
                }
                said.sort();
                same("what they say", said, ["1\n", "2\n", "3\n", "4\n", "5\n"].map(str::to_owned).to_vec())
            })
        }))
        .programs(&["sleep"]),
        sessions(check("a session that is ended begins anew", |context| {
            Box::pin(async move {
                context.shell("x=1; cd /").await;
                same("there was one", context.session().close(), true)?;
                same("there is none", context.session().close(), false)?;
                let next = context.shell("echo ${x-none}; pwd -P").await.stdout;
                same("the next", next, format!("none\n{}\n", context.workspace().display()))
            })
        })),
        sessions(check("sessions are listed by name, with where they stand", |context| {
            Box::pin(async move {
                for name in ["b", "a", "c"] {
                    let session = context.shieling.session(name.parse().expect("a good name"));
                    session.run(context.call("cd d")).await;
                }
                let listed = context.shieling.list().sessions;
                let names: Vec<_> = listed.iter().map(|session| session.session.to_string()).collect();
                same("names", names, ["a", "b", "c"].map(str::to_owned).to_vec())?;
                let here = listed.iter().all(|session| session.cwd == context.path("d") && session.commands == 1);
                same("each stands in `d` after one command", here, true)
            })
        }))
        .file("d/f", ""),
        case("what is printed later is no output of a later command", [
            shell("(sleep 0.3; echo late) & echo now").out("now\n").noisy(),
            shell("sleep 0.6; echo next").out("next\n"),
        ])
        .programs(&["sleep"]),
        case("redefined builtins forge nothing", [
            shell("echo() { builtin echo forged; }; trap 'builtin echo trapped' EXIT; exec 5>&1"),
            shell("true; false").code(1),
            shell("unset -f echo; echo real; exec 5>&-").out("real\n"),
        ])
        .needs([Need::Can(Ability::Processes)]),
        case("a directory that is removed does not end the session", [
            shell("mkdir gone; cd gone; rmdir ../gone").noisy(),
            shell("echo ok").out("ok\n").noisy(),
            shell("cd {W} 2>/dev/null; cd ..; cd -").noisy().any_code(),
        ])
        .programs(&["mkdir", "rmdir"]),
        sessions(check("a call that waits too long for its turn is refused, and says for what", |context| {
            Box::pin(async move {
                let mut long = context.call("sleep 5");
                long.command = context.within("sleep 5", 10_000);
                let shieling = Arc::clone(&context.shieling);
                let busy = tokio::spawn(async move { shieling.session(SessionName::default()).run(long).await });
                context.until("the session is busy", || {
                    context.shieling.list().sessions.iter().any(|session| session.job.is_some())
                })
                .await?;
                let mut short = context.call("echo no");
                short.command = context.within("echo no", 300);
                let refused = context.session().run(short).await;
                let layer = refused.denial.map(|denial| denial.layer);
                busy.abort();
                drop(busy.await);
                same("the layer that refuses", layer, Some(shieling::outcome::Layer::Environment))?;
                same("and afterwards", context.shell("echo yes").await.stdout, "yes\n")
            })
        }))
        .programs(&["sleep"]),
    ]
}
