//! Commands, and their environment.

use shieling::environment::Ability;
use shieling::outcome::Status;
use shieling::request::Command;

use crate::conformance::case::{Case, Need, case, check, run};
use crate::conformance::expect::{DescribeError as _, holds, same};

pub(crate) fn cases() -> Vec<Case> {
    vec![
        case(
            "what a command writes is its output",
            [run("echo hello").out("hello\n")],
        ),
        case(
            "a command starts in the workspace, whose path has no link in it",
            [run("pwd -P").out("{W}\n").cwd("")],
        ),
        case(
            "a command starts in the directory that it is given",
            [run("pwd -P; cat here")
                .out("{W}/a/b\nyes")
                .starting_in("a/b")
                .cwd("a/b")],
        )
        .file("a/b/here", "yes"),
        check(
            "a directory that is not there is told, and nothing runs elsewhere",
            |context| {
                Box::pin(async move {
                    let variables = context.command("true").variables().clone();
                    let command = Command::new("echo no > ran", context.path("missing"))
                        .expect("an absolute path")
                        .with_variables(variables);
                    let outcome = context.shieling.run(command, None).await;
                    let told = outcome.status == Status::Failed && outcome.error.is_some();
                    holds("`failed`, with an error", told, &outcome.described())?;
                    same("what is in the workspace", context.says("ls").await?, "")
                })
            },
        ),
        check("a command has the variables that it is given", |context| {
            Box::pin(async move {
                let mut variables = context.command("true").variables().clone();
                variables.insert("CONFORMANCE".to_owned(), "a value, ü \"$x\"\n".to_owned());
                let command = context.command("printf %s \"$CONFORMANCE\"").with_variables(variables);
                let outcome = context.shieling.run(command, None).await;
                same("its value", outcome.stdout, "a value, ü \"$x\"\n")
            })
        }),
        check("a command has no variable that it is not given", |context| {
            Box::pin(async move {
                let said = context.says("env").await?;
                let given = context.command("true").variables().clone();
                let own = ["PWD", "OLDPWD", "SHLVL", "_"];
                let added = context.shieling.environment().added_variables();
                let foreign: Vec<_> = said
                    .lines()
                    .filter_map(|line| line.split_once('=').map(|(name, _)| name))
                    .filter(|name| !given.contains_key(*name) && !own.contains(name))
                    .filter(|name| added.iter().all(|(added, _)| added != name))
                    .collect();
                same("variables besides those that are given", foreign, Vec::<&str>::new())
            })
        })
        .programs(&["env"]),
        case(
            "each word is what it is after quotes",
            [
                run(r#"printf '[%s]' ' literal $() `quoted`; && ' "a'b" 'c"d' \* "$(echo 'x  y')" '' "#)
                    .out("[ literal $() `quoted`; && ][a'b][c\"d][*][x  y][]"),
            ],
        ),
        case(
            "all lines of a text run",
            [run("echo 1\necho 2\n\n# three\necho 4").out("1\n2\n4\n")],
        ),
        case("a line that is continued is one", [run("echo a \\\n  b").out("a b\n")]),
        case(
            "a pipeline joins streams",
            [run("printf 'b\\na\\n' | sort | tr a-z A-Z").out("A\nB\n")],
        )
        .programs(&["sort", "tr"]),
        case(
            "a document in the text is read as input",
            [run("x=1; cat <<END\n$x $(echo 2)\nEND\ncat <<'END'\n$x\nEND").out("1 2\n$x\n")],
        )
        .programs(&["cat"]),
        case(
            "redirections write and read files",
            [run("echo a > f; echo b >> f; cat < f; echo c > f; cat f").out("a\nb\nc\n")],
        )
        .programs(&["cat"]),
        case(
            "loops, conditions, functions and arithmetic work",
            [run(
                "f() { echo \"$1-$(( $2 * 2 ))\"; }; for i in 1 2; do if [ $i = 2 ]; then f x $i; fi; done; \
                  case abc in a*) echo case;; esac; n=3; while [ $n -gt 1 ]; do n=$((n-1)); done; echo $n",
            )
            .out("x-4\ncase\n1\n")],
        ),
        case(
            "patterns of names are sorted",
            [run("echo *.t").out("1.t 10.t 2.t a.t b.t\n")],
        )
        .files(&[
            ("b.t", ""),
            ("a.t", ""),
            ("10.t", ""),
            ("2.t", ""),
            ("1.t", ""),
            (".h.t", ""),
        ]),
        case(
            "a text that begins with a dash is no option",
            [run("-c true").code(127).noisy()],
        ),
        check("a text of 200 KiB runs", |context| {
            Box::pin(async move {
                let text = format!(": {}; echo end", "x".repeat(200 * 1024));
                same("its output", context.says(&text).await?, "end\n")
            })
        }),
        case(
            "nothing of a command is left for the next",
            [
                run("x=1; export y=2; cd /; f() { :; }; set -f"),
                run("echo \"${x-unset} ${y-unset}\"; pwd -P").out("unset unset\n{W}\n"),
            ],
        ),
        check("commands and later commands see the same files", |context| {
            Box::pin(async move {
                context.says("mkdir -p d/e && echo 1 > d/e/f").await?;
                same("the file", context.says("cat d/e/f; rm -r d; ls").await?, "1\n")
            })
        })
        .programs(&["mkdir", "cat", "rm", "ls"]),
        check("a command tells the environment that it ran in", |context| {
            Box::pin(async move {
                let outcome = context.run("true").await;
                same(
                    "the name",
                    outcome.environment.as_str(),
                    context.shieling.environment().name(),
                )?;
                same(
                    "the confinement",
                    outcome.confinement,
                    context.shieling.environment().confinement(),
                )
            })
        }),
        check(
            "a command that runs long enough is told to have taken that long",
            |context| {
                Box::pin(async move {
                    let took = context.run("sleep 0.3").await.duration_ms;
                    holds("300 ms at least", took >= 300.0, &format!("{took} ms"))
                })
            },
        )
        .programs(&["sleep"]),
        case(
            "a program of the workspace runs",
            [run("chmod +x p; ./p a").out("ran a\n")],
        )
        .needs([Need::Can(Ability::Processes)])
        .file("p", "#!/bin/sh\necho ran \"$1\"\n"),
    ]
}
