//! After each attack the user's tools: what was held back is put back, and nothing runs. That it would run without the gate
//! is seen as well, where the tools of this machine can show it.

use std::path::PathBuf;

use shieling_testkit::prerequisite;

use crate::attacks::{Attack, CONTROLS, Place, Shown, attacks, each, share, tell_missing_tools};
use crate::tree::{self, Snapshot};

/// The user's home when this attack is used.
fn home_of(place: &Place, attack: &Attack) -> PathBuf {
    let is_home = matches!(attack.shown, Shown::By(command) if command.starts_with("HOME=$W"));
    place.path().join(if is_home { "work" } else { "home" })
}

/// Fails with what was wrong, of so many.
fn none(wrong: &[String], of: usize) {
    assert!(wrong.is_empty(), "{} of {of}\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn nothing_that_an_attack_leaves_behind_runs_in_the_hands_of_the_user() {
    tell_missing_tools();
    let attacks = share(attacks(), 23);
    let wrong = each(&attacks, |attack| {
        let place = Place::new();
        let root = place.path().join("work");
        let was = Snapshot::of(&root);
        let (_, said) = place.run("work", "set +e", &attack.script);
        let reverted = tree::revert(&root, Some(&home_of(&place, attack)), &was, &[]);
        place.forget();
        if reverted == 0 {
            return Some(format!("nothing was held back ({said})"));
        }
        place.use_all_tools(attack).then(|| "it ran".to_owned())
    });
    none(&wrong, attacks.len());
}

#[test]
fn without_the_gate_it_runs() {
    let seen = attacks()
        .into_iter()
        .filter(|attack| attack.shown != Shown::Unseen)
        .collect();
    let attacks = share(seen, 19);
    let wrong = each(&attacks, |attack| {
        let needed = match attack.shown {
            Shown::By(command) => ["vim", "gdb", "npm", "hg ", "cargo", "python3", "perl"]
                .into_iter()
                .find(|tool| command.contains(tool)),
            Shown::Git(_) | Shown::Unseen => None,
        };
        if let Some(tool) = needed.map(str::trim)
            && !Place::empty().run(".", "", &format!("command -v {tool}")).0
        {
            prerequisite::skip(format!("{}: `{tool}` is not installed", attack.name));
            return None;
        }
        let place = Place::new();
        let (_, said) = place.run("work", "set +e", &attack.script);
        place.forget();
        (!place.use_tools(attack)).then(|| format!("it did not run ({said})"))
    });
    none(&wrong, attacks.len());
}

#[test]
fn ordinary_work_passes_in_the_same_workspace() {
    for control in share(CONTROLS.to_vec(), 7) {
        let place = Place::new();
        let root = place.path().join("work");
        let was = Snapshot::of(&root);
        let (done, said) = place.run("work", "set -e", control);
        assert!(done, "{control}: {said}");
        let held = tree::held(&root, Some(&place.path().join("home")), &was, &[]);
        let held: Vec<_> = held.iter().map(|(path, held)| (path, &held.because)).collect();
        assert!(held.is_empty(), "{control}\n{held:#?}");
    }
}
