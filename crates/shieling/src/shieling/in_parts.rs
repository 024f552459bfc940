//! What would end half-way: a change in several parts, of which the environment makes the first possible and
//! not the last. A directory is removed entry by entry until one cannot be removed; git renames a branch and then
//! fails at the settings. Such a text is refused before it begins. Scripts are not read, and what they leave
//! half-done is told afterwards ([`Environment::tell`]).
#![expect(
    clippy::disallowed_methods,
    reason = "whether the paths that a text names exist is looked up here"
)]

use std::fs;
use std::path::{Path, PathBuf};

use crate::environment::Environment;
use crate::policy::{Decision, EffectKind, InParts, InPartsOf, Policy, Reason, Text, Verdict};
use crate::request::Command;

/// The rule of these reasons.
const RULE: &str = "protected";

/// Why the environment refuses a text that would leave something half-done.
pub(super) fn reasons(
    environment: &dyn Environment,
    text: &Text<'_>,
    verdict: &Verdict,
    command: &Command,
) -> Vec<Reason> {
    // Whatever is removed is written.
    if !verdict.effects.iter().any(|effect| effect.kind == EffectKind::Writes) {
        return Vec::new();
    }
    Policy::in_parts(text)
        .into_iter()
        .filter_map(|parts| reason(environment, &parts, command.cwd()))
        .collect()
}

fn reason(environment: &dyn Environment, parts: &InParts, start: &Path) -> Option<Reason> {
    let here = fs::canonicalize(start.join(&parts.here)).ok()?;
    let (because, instead) = match &parts.of {
        InPartsOf::Settings(instead) => {
            let settings = environment.kept_settings(&here)?;
            let because = format!(
                "it changes the repository and then its settings, and `{}` is protected: it would stop half-way",
                shown(&settings, start)
            );
            (because, Some(instead.as_str()).filter(|instead| !instead.is_empty()))
        }
        InPartsOf::Path(path) => (
            in_tree(environment.kept_below(&named(&here, path)?).first()?, start),
            None,
        ),
        InPartsOf::Names { directory, pattern } => {
            let directory = fs::canonicalize(here.join(directory)).ok()?;
            let kept = environment.kept_below(&directory);
            let kept = kept.iter().find(|kept| is_matched(kept, &directory, pattern))?;
            (in_tree(kept, start), None)
        }
    };
    let person = "a person can do it outside of the sandbox, or start with `--open-protected`";
    Some(Reason {
        decision: Decision::Deny,
        rule: RULE.to_owned(),
        object: parts.object.clone(),
        span: Some(parts.span),
        because,
        instead: Some(instead.map_or_else(|| person.to_owned(), |instead| format!("{instead}; {person}"))),
    })
}

fn in_tree(kept: &Path, start: &Path) -> String {
    let kept = shown(kept, start);
    format!("`{kept}` in it is protected (tools of the user run code from it), so only a part would go")
}

/// A path as the text would name it.
fn shown(path: &Path, start: &Path) -> String {
    let start = fs::canonicalize(start).unwrap_or_else(|_| start.to_path_buf());
    path.strip_prefix(start).unwrap_or(path).display().to_string()
}

/// What a path names, if it is a directory and no link: a link is removed by itself.
fn named(here: &Path, path: &str) -> Option<PathBuf> {
    let path = here.join(path.trim_end_matches('/'));
    let is_directory = fs::symlink_metadata(&path).is_ok_and(|found| found.is_dir());
    is_directory.then(|| fs::canonicalize(path).ok()).flatten()
}

/// Whether the entry of a directory in which a kept path lies is matched by a pattern, as shells match names:
/// without those that start with a dot. An entry that is itself kept is no matter: it stays whole.
fn is_matched(kept: &Path, directory: &Path, pattern: &str) -> bool {
    let Ok(below) = kept.strip_prefix(directory) else {
        return false;
    };
    let mut parts = below.components();
    let Some(name) = parts.next().and_then(|first| first.as_os_str().to_str()) else {
        return false;
    };
    let dotted = name.starts_with('.') && !pattern.starts_with('.');
    let pattern: Vec<char> = pattern.chars().collect();
    let name: Vec<char> = name.chars().collect();
    parts.next().is_some() && !dotted && super::hidden::wild(&pattern, &name)
}
