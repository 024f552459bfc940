//! Equal calls have equal results.

use shieling::files::{GlobRequest, GrepRequest, ListRequest};
use shieling::outcome::Outcome;

use crate::conformance::case::{Case, check, reads, writes};
use crate::conformance::expect::same;
use crate::conformance::files::lines_of;

/// Returns an outcome without its duration.
fn timeless(outcome: Outcome) -> Outcome {
    Outcome {
        duration_ms: 0.0,
        ..outcome
    }
}

fn forest(case: Case) -> Case {
    (0..300).fold(case, |case, number| {
        case.file(
            &format!("d{}/e{}/f{number}.x", number % 7, number % 11),
            format!("line {number}\nneedle\n"),
        )
    })
}

pub(crate) fn cases() -> Vec<Case> {
    vec![
        check("the same command twice has the same outcome", |context| {
            Box::pin(async move {
                for text in [
                    "echo *; cat f; exit 3",
                    "cat missing",
                    "if then",
                    "conformance-missing",
                    "seq 1 100000",
                ] {
                    let (first, again) = (context.run(text).await, context.run(text).await);
                    same(&format!("`{text}`"), timeless(again), timeless(first))?;
                }
                Ok(())
            })
        })
        .files(&[("f", "text\n"), ("g", "")]),
        check("the same refusal twice is the same", |context| {
            Box::pin(async move {
                let (first, again) = (context.run("rm f").await, context.run("rm f").await);
                same("`rm f`", timeless(again), timeless(first))
            })
        })
        .readonly()
        .file("f", ""),
        reads("the same read twice has the same answer", |context| {
            Box::pin(async move {
                same("a read", context.read("f").await?, context.read("f").await?)?;
                same("a look", context.stat("f").await?, context.stat("f").await?)
            })
        })
        .file("f", "text\n"),
        writes("the state of a file is that of its content alone", |context| {
            Box::pin(async move {
                let one = context.write("d/a", "same\n").await?.hash;
                same("of another file", &context.write("b", "same\n").await?.hash, &one)?;
                let other = context.write("b", "different\n").await?.hash;
                same("of another content", other == one, false)?;
                same("of what it was before", context.write("b", "same\n").await?.hash, one)
            })
        }),
        forest(reads("many files are found in the same order each time", |context| {
            Box::pin(async move {
                let first = context.glob_as(GlobRequest::new("**/*.x")).await?;
                same("how many", first.paths.len(), 300)?;
                let mut sorted = first.paths.clone();
                sorted.sort();
                same("sorted by path", &first.paths, &sorted)?;
                for _ in 0..3 {
                    same(
                        "again",
                        context.glob_as(GlobRequest::new("**/*.x")).await?.paths,
                        first.paths.clone(),
                    )?;
                }
                Ok(())
            })
        })),
        forest(reads("many lines are found in the same order each time", |context| {
            Box::pin(async move {
                let ask = || GrepRequest {
                    limit: 40,
                    ..GrepRequest::new("needle")
                };
                let first = context.grep_as(ask()).await?;
                same("how many", first.hits.len(), 40)?;
                let mut sorted: Vec<_> = first.hits.iter().map(|hit| hit.path.clone()).collect();
                sorted.sort();
                same(
                    "sorted by path",
                    first.hits.iter().map(|hit| hit.path.clone()).collect::<Vec<_>>(),
                    sorted,
                )?;
                for _ in 0..3 {
                    let again = context.grep_as(ask()).await?;
                    same(
                        "again",
                        (lines_of(&again), again.next),
                        (lines_of(&first), first.next.clone()),
                    )?;
                }
                Ok(())
            })
        })),
        writes(
            "a list does not depend on the order in which files were made",
            |context| {
                Box::pin(async move {
                    for name in ["z", "a", "m", "10", "9", "Z"] {
                        context.write(name, "").await?;
                    }
                    same(
                        "names",
                        context.names(".").await?,
                        ["10", "9", "Z", "a", "m", "z"].map(str::to_owned).to_vec(),
                    )?;
                    let ask = ListRequest {
                        path: ".".into(),
                        limit: 2,
                        after: Some("9".to_owned()),
                    };
                    let part: Vec<_> = context
                        .list_as(ask)
                        .await?
                        .entries
                        .into_iter()
                        .map(|entry| entry.path)
                        .collect();
                    same("after `9`", part, ["Z", "a"].map(std::path::PathBuf::from).to_vec())
                })
            },
        ),
    ]
}
