//! Under a list of allowed programs no other is executed. A run leaves a mark: programs that texts try to
//! start say so in the workspace or in what they print, and most others change a file.
//!
//! What shows here is an effect, and who had it cannot be told from outside: an allowed program and the
//! shell write files too, since the workspace is writable. Those texts are listed, exactly. A forbidden
//! program that only reads and whose output goes nowhere would not be seen; that none can be started is
//! seen by asking for each.

use std::collections::BTreeSet;
use std::path::PathBuf;

use shieling::policy::Policy;
use shieling_testkit::extent;

use crate::cases::{Case, policy_of};
use crate::place::{Place, Template};
use crate::readonly::{VARIABLES, template};
use crate::run::Cell;
use crate::share::{attacks, every, line, listed, share, side_by_side};
use crate::snapshot::Snapshot;

/// The texts that the shell and allowed programs carry out by themselves.
const BY_ALLOWED: &str = include_str!("by_allowed.txt");

/// What a text did: files that are new, other or gone, and a mark in what it wrote.
fn effects(place: &Place, template: &Template, case: &Case, policy: &Policy) -> Result<BTreeSet<PathBuf>, String> {
    place.reset_to(template);
    let before = Snapshot::of(&place.workspace());
    let cell = Cell::new(place, &VARIABLES, policy);
    let ran = cell.run(&case.text)?;
    let left = cell.close();
    let after = Snapshot::of(&place.workspace());
    let all = before.0.keys().chain(after.0.keys());
    let what = |path: &PathBuf, at: &Snapshot| at.0.get(path).map(|entry| (entry.mode, entry.content.clone()));
    let mut effects: BTreeSet<PathBuf> = all
        .filter(|path| what(path, &before) != what(path, &after))
        // Which git, where it is allowed, writes anew whenever the clock says that it should.
        .filter(|path| !path.ends_with(".git/index"))
        .cloned()
        .collect();
    if String::from_utf8_lossy(&ran.output).contains("uid=0") {
        effects.insert("printed".into());
    }
    if ran.survivors > 0 || !left.is_empty() {
        effects.insert("survivors".into());
    }
    Ok(effects)
}

#[test]
fn no_program_beside_the_allowed_ones_leaves_a_mark() {
    let cases = share(attacks("allow"), every(10, 40));
    let template = template();
    let open = Policy::open();
    let results = side_by_side(
        &cases,
        || Place::of(&template),
        |place, case| {
            let under = effects(place, &template, case, &policy_of(&case.policy));
            // Of all of them, every third is enough to see that they would act.
            let without = (!extent::is_full() || case.line % 3 == 0).then(|| effects(place, &template, case, &open));
            (case.clone(), under, without)
        },
        drop,
    );
    let mut by_allowed = BTreeSet::new();
    let (mut marks, mut not_run, mut without) = (Vec::new(), Vec::new(), (0, 0));
    for (case, under, open) in &results {
        match under {
            Err(why) => not_run.push(format!("{case}: {why}")),
            Ok(effects) if effects.is_empty() => {}
            Ok(effects) => {
                let name = |effect: &PathBuf| effect.to_string_lossy().starts_with("ran-") || effect == "printed";
                if effects.iter().any(name) {
                    marks.push(format!("{case}: {effects:?}"));
                }
                by_allowed.insert(line(&case.text));
            }
        }
        if let Some(effects) = open {
            without.0 += 1;
            without.1 += usize::from(effects.as_ref().is_ok_and(|effects| !effects.is_empty()));
        }
    }
    eprintln!(
        "allow: {} attacks, {} without effect, {} by what is allowed, {} marks of others; without the list {} of {} act",
        cases.len(),
        cases.len() - by_allowed.len() - not_run.len(),
        by_allowed.len(),
        marks.len(),
        without.1,
        without.0,
    );
    if std::env::var_os("SHIELING_KERNEL_IDLE").is_some() {
        for (case, under, _) in &results {
            eprintln!("{case}: {under:?}");
        }
    }
    assert!(marks.is_empty(), "{}", marks.join("\n"));
    assert_eq!(not_run, Vec::<String>::new());
    // Half of all; a share of a few may have fewer.
    let least = extent::rounds(25, 50);
    assert!(without.1 * 100 >= without.0 * least, "too few act without the list");
    let listed = listed(BY_ALLOWED);
    let run: BTreeSet<String> = cases.iter().map(|case| line(&case.text)).collect();
    // In one direction: a host that lacks a tool has fewer effects.
    let new: Vec<_> = by_allowed.difference(&listed).collect();
    assert!(
        new.is_empty(),
        "these have an effect, and are not listed in by_allowed.txt: {new:#?}"
    );
    let idle = listed
        .intersection(&run)
        .filter(|text| !by_allowed.contains(*text))
        .count();
    eprintln!("allow: {idle} listed texts have no effect here");
}

#[test]
fn and_none_does_as_an_ordinary_user() {
    shieling_testkit::again_as_user(&["--exact", "allow::no_program_beside_the_allowed_ones_leaves_a_mark"]);
}

/// Programs that some text of the corpus tries to start, or that would do for those.
const TRIED: [&str; 34] = [
    "id", "rm", "touch", "tee", "chmod", "cp", "mv", "ln", "mkdir", "python3", "perl", "node", "npm", "curl", "wget",
    "nice", "nohup", "timeout", "env", "xargs", "patch", "lsblk", "lsof", "busybox", "script", "setsid", "sudo",
    "find", "awk", "make", "gcc", "ssh", "strace", "dd",
];

/// Interpreters that an allowed program is run by, and cannot do without.
const NEEDED: [(&str, &[&str]); 4] = [
    ("cargo", &["gcc"]),
    ("npm", &["node", "env"]),
    ("pip", &["python3"]),
    ("rustc", &["gcc"]),
];

/// Lists what can be executed, with builtins alone.
const LIST: &str = r#"
shopt -s nullglob
for p in /usr/bin/* /usr/sbin/* /usr/local/bin/* /usr/local/sbin/* /bin/* /sbin/* /usr/games/* "$TOOLS"/*; do
    [ -x "$p" ] && printf '%s\n' "$p"
done
"#;

#[test]
fn programs_beside_the_allowed_ones_are_not_there() {
    let template = template();
    let place = Place::of(&template);
    let tools = place.tools().display().to_string();
    let mut policies: BTreeSet<Vec<String>> = attacks("allow").into_iter().map(|case| case.policy).collect();
    policies.insert(Vec::new());
    for options in policies {
        let policy = policy_of(&options);
        let cell = Cell::new(&place, &[("TOOLS", &tools)], &policy);
        let ran = cell.run(LIST).expect("it starts");
        drop(cell.close());
        let output = String::from_utf8_lossy(&ran.output).into_owned();
        let names: BTreeSet<&str> = output.lines().filter_map(|line| line.rsplit('/').next()).collect();
        let there: Vec<&str> = TRIED.into_iter().filter(|name| names.contains(name)).collect();
        let allowed = policy.programs().map(|mut allowed| {
            let needed = NEEDED
                .iter()
                .filter(|(program, _)| allowed.iter().any(|name| name == program));
            let needed: Vec<String> = needed
                .flat_map(|(_, needed)| needed.iter().map(|&name| name.to_owned()))
                .collect();
            allowed.extend(needed);
            allowed
        });
        eprintln!("{options:?}: {} names, of those that are tried {there:?}", names.len());
        match allowed {
            None => assert!(there.len() > 20, "without a list they are there"),
            Some(allowed) => {
                let more: Vec<_> = there
                    .iter()
                    .filter(|name| !allowed.iter().any(|program| program == *name))
                    .collect();
                assert!(more.is_empty(), "{options:?}: {more:?} can be executed");
            }
        }
    }
}
