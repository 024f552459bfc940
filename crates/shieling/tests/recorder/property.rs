//! The property itself: no script that readonly allows changes anything, or starts what it does not name.

use std::collections::BTreeSet;

use shieling_testkit::extent;
use shieling_testkit::random::Random;
use shieling_testkit::scripts::script;

use crate::place;

/// What readonly says of a script.
struct Judged {
    allowed: bool,
    /// The names of the programs that it can launch, without directories.
    programs: BTreeSet<String>,
}

/// The one call into the library.
fn judge(text: &str) -> Judged {
    let verdict = crate::verdict(text);
    Judged {
        allowed: verdict.decision == shieling::policy::Decision::Allow,
        programs: verdict
            .commands
            .iter()
            .filter_map(|command| command.argv.first())
            .map(|name| base(name).to_owned())
            .collect(),
    }
}

/// Programs that start others as a part of what they are: on Debian these are shell scripts.
const HELPERS: &[(&str, &[&str])] = &[
    ("egrep", &["grep"]),
    ("fgrep", &["grep"]),
    ("zcat", &["gzip"]),
    ("zgrep", &["grep", "gzip", "sed", "zcat"]),
    ("git", &["git"]),
    // They start commands through the shell, whose text the policy reads.
    ("awk", &["sh"]),
    ("gawk", &["sh"]),
    ("mawk", &["sh"]),
];

fn base(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[test]
fn what_readonly_allows_changes_nothing_and_starts_only_what_it_names() {
    let Some(place) = place() else { return };
    let (cases, seed) = (extent::rounds(60, 600), extent::seed());
    let mut random = Random::new(seed);
    let (mut made, mut ran, mut wrong) = (0_u64, 0_u64, Vec::new());
    // The bound on what is made keeps a policy that allows nothing from running for ever.
    while ran < cases && made < cases * 200 {
        made += 1;
        let wildness = [2, 10, 40][random.below(3)];
        let text = script(&mut random, wildness);
        let judged = judge(&text);
        if !judged.allowed {
            continue;
        }
        ran += 1;
        let recorded = place.run(&text).expect("the place has proved to record");
        let named = |started: &str| {
            started == "bash"
                || judged.programs.contains(started)
                || HELPERS
                    .iter()
                    .any(|(name, helpers)| judged.programs.contains(*name) && helpers.contains(&started))
        };
        let unnamed: Vec<&str> = recorded
            .trace
            .started
            .iter()
            .map(|path| base(path))
            .filter(|name| !named(name))
            .collect();
        if !recorded.trace.changes.is_empty() || !unnamed.is_empty() {
            wrong.push(format!(
                "{text}\n  changes {:?}\n  starts unnamed {unnamed:?}",
                recorded.trace.changes
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {ran} (seed {seed}):\n\n{}",
        wrong.len(),
        wrong.join("\n\n")
    );
    assert!(
        ran == cases,
        "only {ran} of {made} scripts were allowed: too few to say anything (seed {seed})"
    );
}
