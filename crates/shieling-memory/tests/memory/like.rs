//! Programs with their options: as the real ones in `sandbox`, or refused.
//!
//! Every line of [`ALIKE`] gives the same output, status and files in both, and something on standard
//! error in both or in neither. Every line of [`REFUSED`] is refused in memory: with another status than
//! 0, and a message.

use std::collections::BTreeSet;

use shieling::process::End;
use shieling_testkit::{extent, prerequisite};

use super::same::{Left, Real, left_in};
use super::support::{memory, run};

/// What is there before each command.
const SEED: &str = r#"printf 'banana 3 x\napple 10 y\ncherry 2 z\napple 1 w\nDate 7 v\n' > fruit.txt
printf 'a,b,c\n1,2,3\n4,,6\n' > t.csv
printf 'one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\nten\neleven\ntwelve\n' > n.txt
mkdir -p d/e; printf 'deep\n' > d/e/f.txt; printf 'hi there\n' > d/g.md; ln -s fruit.txt link
printf 'x\ty\tz\n  lead\n\n\nend' > ws.txt; printf 'b\na\nc\na\n' > s1; printf 'a\nc\nd\n' > s2; chmod 755 s2
"#;

const ALIKE: &str = include_str!("like/alike.txt");
const REFUSED: &str = include_str!("like/refused.txt");

/// Programs that are not part of every Debian: lines that need them are skipped where they are missing.
const OPTIONAL: [&str; 5] = ["bzip2", "column", "hexdump", "ps", "xxd"];

/// The names of files that are not the same. What is packed holds its maker's name.
fn differing<'a>(here: &'a Left, there: &'a Left) -> BTreeSet<&'a String> {
    let packed = |name: &str| [".tar", ".tgz", ".tbz", ".gz"].iter().any(|end| name.ends_with(end));
    let same = |name: &String| match (here.get(name), there.get(name)) {
        (Some(ours), Some(theirs)) => ours.0 == theirs.0 && (packed(name) || ours.1 == theirs.1),
        (None, _) | (_, None) => false,
    };
    here.keys().chain(there.keys()).filter(|name| !same(name)).collect()
}

fn lines(table: &'static str) -> impl Iterator<Item = &'static str> {
    table
        .lines()
        .filter(|line| !line.trim().is_empty() && !line.starts_with("##"))
}

#[tokio::test]
async fn programs_do_what_the_real_ones_do() {
    let Some(real) = Real::new().await else { return };
    let mut wrong = Vec::new();
    let mut compared = 0;
    let program = |line: &&str| line.split_whitespace().next().unwrap_or_default().to_owned();
    for line in extent::share(lines(ALIKE).collect(), 4, program) {
        // In the words of the line, or started by `tar`.
        let uses = |program: &str| {
            line.split_whitespace().any(|word| word == program) || (program == "bzip2" && line.contains("tar cj"))
        };
        let needed: Vec<&str> = OPTIONAL.into_iter().filter(|program| uses(program)).collect();
        if !prerequisite::has(&needed) {
            continue;
        }
        let text = format!("{SEED}{line}");
        let (theirs, there) = real.run(&text).await;
        let memory = memory();
        let ours = run(&memory, &text).await;
        let here = left_in(&memory);
        let noisy = ours.stderr.total() > 0;
        if ours.end != theirs.end
            || ours.stdout.text() != theirs.stdout.text()
            || noisy != (theirs.stderr.total() > 0)
            || !differing(&here, &there).is_empty()
        {
            wrong.push(format!(
                "{line}\n  {:?} {:?} {:?}\n  {:?} {:?} {:?}\n  {:?}",
                theirs.end,
                theirs.stdout.text(),
                theirs.stderr.text(),
                ours.end,
                ours.stdout.text(),
                ours.stderr.text(),
                differing(&here, &there),
            ));
        }
        compared += 1;
    }
    assert!(
        wrong.is_empty(),
        "{} of {compared} differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert!(compared > 100, "{compared}");
}

#[tokio::test]
async fn what_a_program_cannot_do_in_memory_it_refuses() {
    for line in lines(REFUSED) {
        let ran = run(&memory(), &format!("{SEED}{line}")).await;
        assert!(matches!(ran.end, End::Exited(code) if code != 0), "{line}: {ran:?}");
        assert_ne!(ran.stderr.text(), "", "{line}");
        assert_eq!(ran.stdout.text(), "", "{line}");
    }
}
