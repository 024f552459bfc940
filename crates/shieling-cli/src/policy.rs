//! `shieling policy`: check a policy file before it guards anything, and show the presets.

use std::io;
use std::path::Path;

use crate::escape;
use crate::options::Policy;
use crate::run::{self, Example};
use crate::words::{FAILED, Failure};

/// Checks or shows.
pub(crate) fn policy(options: &Policy) -> Result<u8, Failure> {
    match options {
        Policy::Check { file, json } => check(file, *json),
        Policy::Show { preset } => {
            crate::print::write_all(io::stdout().lock(), &run::preset(preset)?)?;
            Ok(0)
        }
    }
}

fn check(file: &Path, json: bool) -> Result<u8, Failure> {
    let examples = run::check_policy(file)?;
    let holds = examples.iter().all(|example| example.holds);
    if json {
        crate::print::print_json(&serde_json::json!({ "holds": holds, "examples": examples }))?;
    } else {
        crate::print::write_all(io::stdout().lock(), &report(&examples))?;
    }
    Ok(if holds { 0 } else { FAILED })
}

fn report(examples: &[Example]) -> String {
    let mut page = String::new();
    for example in examples {
        let sign = if example.holds { "ok" } else { "FAILS" };
        let relation = if example.matches { "matches" } else { "does not match" };
        let (rule, command) = (escape::line(&example.rule), escape::headline(&example.command, 200));
        page.push_str(&format!("{sign:<8} {rule} {relation} `{command}`\n"));
    }
    let failing = examples.iter().filter(|example| !example.holds).count();
    page.push_str(&match (examples.len(), failing) {
        (0, _) => "the policy loads; it has no examples\n".to_owned(),
        (1, 0) => "the policy loads and its example holds\n".to_owned(),
        (count, 0) => format!("the policy loads and its {count} examples hold\n"),
        (count, failing) => format!("{failing} of {count} examples do not hold\n"),
    });
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_example_is_shown_with_its_result() {
        let example = |command: &str, matches, holds| Example {
            rule: "no-force-push".to_owned(),
            command: command.to_owned(),
            matches,
            holds,
        };
        let examples = [
            example("git push -f", true, true),
            example("git push \u{1b}[1m", false, false),
        ];
        insta::assert_snapshot!(report(&examples), @r"
        ok       no-force-push matches `git push -f`
        FAILS    no-force-push does not match `git push \x1b[1m`
        1 of 2 examples do not hold
        ");
    }
}
