//! The same question has the same answer.

use shieling::files::{GlobAsk, GrepAsk, ListAsk};
use shieling::outcome::Outcome;

use crate::conformance::case::{Case, check, reads, writes};
use crate::conformance::expect::same;
use crate::conformance::files::lines_of;

/// All but how long it took.
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
        check("the same command twice has the same outcome", |at| {
            Box::pin(async move {
                for text in [
                    "echo *; cat f; exit 3",
                    "cat missing",
                    "if then",
                    "conformance-missing",
                    "seq 1 100000",
                ] {
                    let (first, again) = (at.run(text).await, at.run(text).await);
                    same(&format!("`{text}`"), timeless(again), timeless(first))?;
                }
                Ok(())
            })
        })
        .files(&[("f", "text\n"), ("g", "")]),
        check("the same refusal twice is the same", |at| {
            Box::pin(async move {
                let (first, again) = (at.run("rm f").await, at.run("rm f").await);
                same("`rm f`", timeless(again), timeless(first))
            })
        })
        .readonly()
        .file("f", ""),
        reads("the same read twice has the same answer", |at| {
            Box::pin(async move {
                same("a read", at.read("f").await?, at.read("f").await?)?;
                same("a look", at.stat("f").await?, at.stat("f").await?)
            })
        })
        .file("f", "text\n"),
        writes("the state of a file is that of its content alone", |at| {
            Box::pin(async move {
                let one = at.write("d/a", "same\n").await?.hash;
                same("of another file", &at.write("b", "same\n").await?.hash, &one)?;
                let other = at.write("b", "different\n").await?.hash;
                same("of another content", other == one, false)?;
                same("of what it was before", at.write("b", "same\n").await?.hash, one)
            })
        }),
        forest(reads("many files are found in the same order each time", |at| {
            Box::pin(async move {
                let first = at.glob_as(GlobAsk::new("**/*.x")).await?;
                same("how many", first.paths.len(), 300)?;
                let mut sorted = first.paths.clone();
                sorted.sort();
                same("sorted by path", &first.paths, &sorted)?;
                for _ in 0..3 {
                    same(
                        "again",
                        at.glob_as(GlobAsk::new("**/*.x")).await?.paths,
                        first.paths.clone(),
                    )?;
                }
                Ok(())
            })
        })),
        forest(reads("many lines are found in the same order each time", |at| {
            Box::pin(async move {
                let ask = || GrepAsk {
                    limit: 40,
                    ..GrepAsk::new("needle")
                };
                let first = at.grep_as(ask()).await?;
                same("how many", first.hits.len(), 40)?;
                let mut sorted: Vec<_> = first.hits.iter().map(|hit| hit.path.clone()).collect();
                sorted.sort();
                same(
                    "sorted by path",
                    first.hits.iter().map(|hit| hit.path.clone()).collect::<Vec<_>>(),
                    sorted,
                )?;
                for _ in 0..3 {
                    let again = at.grep_as(ask()).await?;
                    same(
                        "again",
                        (lines_of(&again), again.next),
                        (lines_of(&first), first.next.clone()),
                    )?;
                }
                Ok(())
            })
        })),
        writes("a list does not depend on the order in which files were made", |at| {
            Box::pin(async move {
                for name in ["z", "a", "m", "10", "9", "Z"] {
                    at.write(name, "").await?;
                }
                same(
                    "names",
                    at.names(".").await?,
                    ["10", "9", "Z", "a", "m", "z"].map(str::to_owned).to_vec(),
                )?;
                let ask = ListAsk {
                    path: ".".into(),
                    limit: 2,
                    after: Some("9".to_owned()),
                };
                let part: Vec<_> = at
                    .list_as(ask)
                    .await?
                    .entries
                    .into_iter()
                    .map(|entry| entry.path)
                    .collect();
                same("after `9`", part, ["Z", "a"].map(std::path::PathBuf::from).to_vec())
            })
        }),
    ]
}
