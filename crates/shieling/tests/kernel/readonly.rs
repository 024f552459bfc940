//! Under readonly nothing changes: whatever a text does, the workspace is the same afterwards, to the
//! times of its files, and so is all around it.

use std::collections::BTreeMap;
use std::sync::Mutex;

use shieling::policy::Policy;

use crate::host::{Host, working_in};
use crate::place::{Place, Template, project, project_history};
use crate::run::Cell;
use crate::share::{attacks, every, share, side_by_side};
use crate::snapshot::Snapshot;

/// Variables that texts expand.
pub(crate) const VARIABLES: [(&str, &str); 6] = [
    ("OUT", "out"),
    ("cmd", "touch pwned"),
    ("SUB", "branch new"),
    ("OPTS", "--output=pwned"),
    ("V", "PATH=."),
    ("EVIL", "!touch pwned"),
];

pub(crate) fn template() -> Template {
    Template::new(&project(), &project_history(), |_| ())
}

/// What a text did.
enum Did {
    Nothing {
        ended_itself: bool,
    },
    Changed(String),
    /// It is no command: nothing can be given it to run.
    NotRun(String),
}

#[test]
fn no_attack_under_readonly_changes_anything() {
    let cases = share(attacks("readonly"), every(10, 40));
    let template = template();
    let outside = tempfile::tempdir().expect("a temporary directory");
    let host = Mutex::new(Host::new(&cases, outside.path()));
    let left = Mutex::new(Vec::new());
    let start = || {
        let place = Place::of(&template);
        let before = Snapshot::of(&place.base());
        let cell = Cell::new(&place, &VARIABLES, &Policy::open().with_readonly());
        (place, cell, before)
    };
    let results = side_by_side(
        &cases,
        start,
        |(place, cell, before), case| {
            let ran = match cell.run(&case.text) {
                Ok(ran) => ran,
                Err(why) => return Did::NotRun(format!("{case}: {why}")),
            };
            let now = Snapshot::of(&place.base());
            let mut changes = before.difference(&now);
            changes.extend(host.lock().expect("nobody panics with it").changes());
            if ran.survivors > 0 {
                changes.push(format!("{} processes survived", ran.survivors));
            }
            // So that the next text is not blamed for it.
            *before = now;
            if changes.is_empty() {
                Did::Nothing {
                    ended_itself: ran.ended_itself,
                }
            } else {
                Did::Changed(format!("{case}\n    {}", changes.join("\n    ")))
            }
        },
        |(place, cell, before)| {
            let processes = cell.close();
            let mut changes = before.difference(&Snapshot::of(&place.base()));
            changes.extend(working_in(&place.base()));
            changes.extend(processes.iter().map(|pid| format!("process {pid} is left")));
            left.lock().expect("nobody panics with it").extend(changes);
        },
    );
    let (mut contained, mut broken_off, mut escaped, mut not_run) = (0, 0, Vec::new(), Vec::new());
    for did in results {
        match did {
            Did::Nothing { ended_itself } => {
                contained += 1;
                broken_off += usize::from(!ended_itself);
            }
            Did::Changed(what) => escaped.push(what),
            Did::NotRun(why) => not_run.push(why),
        }
    }
    eprintln!(
        "readonly: {} attacks, {contained} contained ({broken_off} of them ended by a limit), {} escaped, {} are no command",
        cases.len(),
        escaped.len(),
        not_run.len()
    );
    assert!(escaped.is_empty(), "{}", escaped.join("\n"));
    assert_eq!(not_run, Vec::<String>::new());
    let left = left.into_inner().expect("nobody panics with it");
    assert!(left.is_empty(), "after the end: {}", left.join("\n"));
}

#[test]
fn and_none_does_as_an_ordinary_user() {
    shieling_testkit::again_as_user(&["--exact", "readonly::no_attack_under_readonly_changes_anything"]);
}

/// Texts that act by nothing that a workspace shows, by class: those that do not parse, above all.
#[test]
fn without_readonly_the_same_attacks_change_the_workspace() {
    let cases = share(attacks("readonly"), every(24, 24));
    let template = template();
    let results = side_by_side(
        &cases,
        || Place::of(&template),
        |place, case| {
            place.reset_to(&template);
            let before = Snapshot::of(&place.workspace());
            let cell = Cell::new(place, &VARIABLES, &Policy::open());
            let ran = cell.run(&case.text);
            let changed = Snapshot::of(&place.workspace()) != before;
            drop(cell.close());
            (case.clone(), changed && ran.is_ok())
        },
        drop,
    );
    let mut classes: BTreeMap<&str, [usize; 2]> = BTreeMap::new();
    let mut idle = Vec::new();
    for (case, acted) in &results {
        let count = classes.entry(&case.class).or_default();
        count[0] += 1;
        count[1] += usize::from(*acted);
        if !acted {
            idle.push(case.to_string());
        }
    }
    let acted = results.len() - idle.len();
    eprintln!(
        "without readonly: {acted} of {} act, by class (all, acted): {classes:?}",
        results.len()
    );
    if std::env::var_os("SHIELING_KERNEL_IDLE").is_some() {
        eprintln!("{}", idle.join("\n"));
    }
    // Not all programs of the corpus are installed everywhere.
    assert!(acted * 100 >= results.len() * 50, "too few act:\n{}", idle.join("\n"));
}
