//! What a policy means to a kernel: what an environment is asked to enforce, so that it makes harmless what the
//! reading of a text has let through.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::changes::{ChangeSet, Matcher};
use crate::enforcement::{Enforcement, Hidden};
use crate::environment::HiddenPaths;
use crate::policy::{PatternError, Policy};

/// Everything of a policy that has a meaning below texts: *readonly* is a read-only workspace, *ignored* files
/// do not exist, *allow-listed* programs are the only ones to execute.
///
/// Deny lists, rule files and presets of them have none: what they deny is denied by reading. The builder of
/// [`Shieling`](super::Shieling) hands this to its environment by itself.
#[must_use]
pub fn enforcement_of(policy: &Policy, workspace: &Path) -> Enforcement {
    let hidden = (!policy.hidden().is_empty()).then(|| Arc::new(Ignored::new(policy)) as Arc<dyn Hidden>);
    Enforcement {
        workspace: workspace.to_owned(),
        readonly: policy.is_readonly(),
        hidden,
        programs: policy.programs(),
    }
}

/// What did not exist for the commands that made a change set, for the
/// [`Surroundings`](crate::changes::Surroundings) of whoever judges it later. `None` if all of the workspace did, or if
/// what was hidden was not made of patterns; the set then refuses to be judged without it.
///
/// # Errors
/// [`PatternError`]: another version of this library stored patterns that this one cannot read.
pub fn hidden_of(set: &ChangeSet) -> Result<Option<Arc<dyn Matcher>>, PatternError> {
    let patterns = set.hidden_patterns().unwrap_or_default();
    let mut policy = Policy::open();
    for list in patterns.split(|pattern| pattern == NEXT_LIST) {
        policy = policy.with_ignore(list)?;
    }
    let is_hiding = !policy.hidden().is_empty();
    Ok(is_hiding.then(|| HiddenPaths::matcher(Arc::new(Ignored::new(&policy)))))
}

/// Stands behind each list in what is compared and stored. No pattern can be it: a path has no such byte.
const NEXT_LIST: &str = "\0";

/// What a policy hides, and which names of directories that depends on.
struct Ignored {
    policy: Policy,
    patterns: Vec<String>,
    /// Of its patterns those that hide below any directory (`name`, `**/a/name`), and the exceptions from them
    /// by a name alone (`!name`). What these hide of the end of a path is hidden whatever stands before it.
    anywhere: Policy,
    /// The last names of exceptions by a place (`!a/name`), which could be brought about for such a name.
    excepted: Policy,
    has_exceptions: bool,
    /// Whether a pattern names a directory at all.
    names_directories: bool,
}

impl Ignored {
    fn new(policy: &Policy) -> Self {
        let (mut anywhere, mut excepted, mut names_directories) = (Vec::new(), Vec::new(), false);
        for line in policy.ignored().flatten() {
            if line.starts_with('#') {
                continue;
            }
            let (exception, pattern) = match line.strip_prefix('!') {
                Some(pattern) => (true, pattern),
                None => (false, line.as_str()),
            };
            let pattern = pattern.trim_end().trim_end_matches('/');
            let last = pattern.rsplit('/').next().unwrap_or_default();
            let by_name = last.len() == pattern.len();
            names_directories |= !by_name;
            if exception && !by_name {
                excepted.push(last.to_owned());
            } else if by_name || pattern.starts_with("**/") {
                anywhere.push(line.clone());
            }
        }
        let list = |lines: &[String]| Policy::open().with_ignore(lines);
        // Parts of patterns that were accepted; should one be none by itself, nothing is hidden anywhere and
        // every name is excepted, so that every directory is needed.
        let everything = || list(&["*".to_owned()]).unwrap_or_else(|_| Policy::open());
        Self {
            policy: policy.clone(),
            patterns: policy
                .ignored()
                .flat_map(|list| list.iter().map(String::as_str).chain([NEXT_LIST]))
                .map(ToOwned::to_owned)
                .collect(),
            anywhere: list(&anywhere).unwrap_or_else(|_| Policy::open()),
            has_exceptions: !excepted.is_empty(),
            excepted: list(&excepted).unwrap_or_else(|_| everything()),
            names_directories,
        }
    }
}

fn hides(policy: &Policy, relative: &Path, is_directory: bool) -> bool {
    policy.hides_entry(relative, is_directory) || is_directory && policy.hides_all_in(relative)
}

impl Hidden for Ignored {
    fn hides(&self, relative: &Path, is_directory: bool) -> bool {
        hides(&self.policy, relative, is_directory)
    }

    fn patterns(&self) -> &[String] {
        &self.patterns
    }

    fn needs_above(&self, relative: &Path, is_directory: bool) -> usize {
        let names: Vec<&OsStr> = relative.iter().collect();
        let all = names.len().saturating_sub(1);
        if !self.names_directories {
            return 0;
        }
        // A directory stands for everything in it, of which an exception could be anything.
        let could_be_excepted = self.has_exceptions
            && (is_directory
                || names
                    .last()
                    .is_some_and(|name| self.excepted.hides_entry(Path::new(name), true)));
        if could_be_excepted {
            return all;
        }
        let end = |above: usize| names[all - above..].iter().collect::<PathBuf>();
        (0..all)
            .find(|above| hides(&self.anywhere, &end(*above), is_directory))
            .unwrap_or(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_directories_that_a_pattern_needs_are_needed() {
        let directory = true;
        for (lines, path, is_directory, expected) in [
            (&[".env"][..], "a/b/.env", false, 0),
            (&["secrets/"], "a/secrets", directory, 0),
            (&["**/secrets/**"], "a/b/secrets", directory, 0),
            (&["**/.env"], "a/b/.env", false, 0),
            (&["config/keys/**"], "config/keys", directory, 1),
            (&["a/b/prod.env"], "a/b/prod.env", false, 2),
            (&["/prod.env"], "prod.env", false, 0),
            (&["*/prod.env"], "a/prod.env", false, 1),
            (&["[!x]/prod.env"], "a/prod.env", false, 1),
            (&["**/x/y"], "a/b/x/y", false, 1),
            (&["**/x/y"], "A/B/X/Y", false, 1),
            (&["**/a/**/y"], "p/a/b/y", false, 2),
            (&["**/x/*", "!keep"], "a/x/y", false, 1),
            // Another pattern hides it by its name alone.
            (&["a/.env", ".env"], "a/.env", false, 0),
            (&["a/b/c", "*.pem"], "q/k.pem", false, 0),
            // What an exception could be brought about for.
            (&["*.pem", "!pub/*.pem"], "a/b/k.pem", false, 2),
            (&["*.pem", "!pub/**"], "a/b/k.pem", false, 2),
            (&[".env", "config/*", "!config/keep"], "a/b/.env", false, 0),
            (&["secrets/", "!a/secrets/keep"], "b/c/secrets", directory, 2),
            (&["*.pem", "!keep.pem"], "a/b/k.pem", false, 0),
            // Hidden for another reason than its name.
            (&["*.pem"], "a/b/closed", directory, 0),
            (&["a/b/c"], "a/b/closed", directory, 2),
        ] {
            let policy = Policy::open().with_ignore(lines).expect("patterns");
            let needed = Ignored::new(&policy).needs_above(Path::new(path), is_directory);
            assert_eq!(needed, expected, "{lines:?} {path}");
        }
    }
}
