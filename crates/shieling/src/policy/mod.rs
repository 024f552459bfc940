//! The policy: pure judgement of a request, with its reasons.
//!
//! No I/O, no async, no clock: the same request and facts always get the same verdict, so that it
//! can be replayed from the record.
//!
//! A [`Policy`] is made of parts, each with one of the four meanings of the contract (readonly,
//! allow list, deny list, ignore list) or with the rules of a file. The strictest reason of all of
//! them wins. The reading of shell text behind it carries no trust: a confining environment makes
//! harmless whatever it lets through.
//!
//! ```
//! use shieling::policy::{Decision, Facts, Policy};
//! use shieling::request::Command;
//!
//! let policy = Policy::open().with_readonly();
//! let facts = Facts::new("/work".as_ref(), "/work".as_ref());
//! let command = Command::new("git log --oneline | head -5", "/work")?;
//! assert_eq!(policy.judge(&command, &facts).decision, Decision::Allow);
//! let command = Command::new("git log > log.txt", "/work")?;
//! assert_eq!(policy.judge(&command, &facts).decision, Decision::Deny);
//! # Ok::<(), shieling::request::CommandError>(())
//! ```

mod changes;
mod connects;
mod entry;
mod facts;
mod file;
mod meaning;
mod preset;
mod rule;
mod verdict;

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use sha2::{Digest as _, Sha256};

#[cfg(feature = "gateway")]
pub use connects::ConnectRule;
pub use entry::EntryError;
use entry::tokens;
pub use facts::Facts;
pub use meaning::paths::PatternError;
pub use preset::{PRESETS, UnknownPreset, preset_settings};
pub use rule::{ExampleResult, RuleError, RuleFile};
pub use shieling_shell::{Span, quoted};
pub(crate) use verdict::IGNORE;
pub use verdict::{CommandSeen, Decision, EffectKind, EffectSeen, Reason, Verdict};

use crate::enforcement::Enforced;
use crate::request::{Command, Digest};
use meaning::{Finding, allow, deny, ignore, paths, readonly};
use shieling_shell::{
    Action, Doubt, Effect, FileNames, Invocation, Kind, NamesIn, PartsOf, Reading, Unreadable, Via, Word, escaped,
    program,
};
pub(crate) use shieling_shell::{Atom, Base, CarriedState, DefinedNames, HOME, Pick, PickKind, Splits, Walk};

/// One part of a policy.
#[derive(Debug, Clone)]
enum Part {
    Readonly,
    Allow(Vec<Vec<String>>),
    Deny(Vec<deny::Entry>),
    Ignore(paths::Hidden),
    Rules(RuleFile),
}

/// A text that was read once, for all that is asked about it.
#[derive(Debug)]
pub(crate) struct Text<'a> {
    text: &'a str,
    reading: Result<Reading, Unreadable>,
}

impl<'a> Text<'a> {
    /// Reads a text that runs in a shell in which others ran before.
    pub(crate) fn read(text: &'a str, facts: &Facts) -> Self {
        let read = |names| shieling_shell::read_after(text, &facts.left, names);
        let plain = facts
            .plain_names
            .then(|| read(FileNames::Plain))
            .filter(|reading| reading.as_ref().is_ok_and(keeps_names_plain));
        Self {
            text,
            reading: plain.unwrap_or_else(|| read(FileNames::Any)),
        }
    }

    /// Where the file names are that it uses, if more could be told of it were they known to be plain.
    pub(crate) fn names_used(&self) -> Option<&BTreeSet<NamesIn>> {
        let reading = self.reading.as_ref().ok()?;
        (reading.bases.is_empty() && !reading.names_used.is_empty()).then_some(&reading.names_used)
    }
}

/// Whether what is known of the file names where a text starts holds for all of it: it changes to no other directory,
/// and makes no file whose name could be another kind of name.
fn keeps_names_plain(reading: &Reading) -> bool {
    let keeps = |effect: &Effect| match &effect.action {
        Action::Writes(_) | Action::Changes(_) => makes_plain_names(reading, effect),
        Action::RunsFile(_) | Action::Network(_) | Action::InParts(_) => false,
        Action::Doubt(doubt, _) => matches!(doubt, Doubt::Environment),
        Action::Reads(_)
        | Action::Names(_)
        | Action::Renames(_)
        | Action::Walks(_)
        | Action::Revision(_)
        | Action::Code(_)
        | Action::Mentions(_)
        | Action::MaybeOption(..) => true,
    };
    reading.bases.is_empty() && reading.effects.iter().all(keeps)
}

/// Whether the names of what an effect makes are plain: they stand in the text, or are made of names that are.
fn makes_plain_names(reading: &Reading, effect: &Effect) -> bool {
    let looked_up = |word: &Word| {
        let directory = word.prefix().rfind('/').map_or("", |at| &word.prefix()[..=at]);
        reading.names_used.iter().any(|used| used.directory == directory)
    };
    let plain = |word: &Word| {
        let text = |text: &str| text.trim_start_matches('-').split('/').all(FileNames::is_plain);
        word.is_found_below()
            || !word.fields.is_any()
                && word.atoms.iter().all(|atom| match atom {
                    Atom::Text(part) => text(part),
                    Atom::One | Atom::Star => looked_up(word),
                    Atom::Found | Atom::Hidden(_) | Atom::Here | Atom::OneOf(_) => false,
                })
    };
    let word = match &effect.action {
        Action::Writes(word) => Some(word),
        _ => None,
    };
    let Some(by) = effect.by.filter(|_| effect.via != Via::Redirection) else {
        return word.is_some_and(plain);
    };
    // What a copy is called says the word that names the original, or the directory that it is in.
    let copies_more = |other: &Effect| other.by == Some(by) && matches!(other.action, Action::Walks(_));
    let command = &reading.commands[by];
    program::names_what_it_changes(command)
        && command.argv.iter().skip(1).all(plain)
        && (command.fed || !reading.effects.iter().any(copies_more))
}

/// What may run: any number of parts, of which the strictest wins.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    parts: Vec<Part>,
}

/// A directory that a text reads as a whole.
#[derive(Debug)]
pub(crate) struct Walked {
    pub(crate) walk: Walk,
    /// Where it may start, relative to the workspace or absolute; the workspace itself is among them.
    pub(crate) bases: Vec<Base>,
    /// Whether it looks at what git tracks in this workspace alone, as it is tracked before the text runs.
    pub(crate) tracked: bool,
    /// Whether nothing else in the text can bring anything about before, or leads elsewhere.
    pub(crate) sole: bool,
    /// Whether it is given names that are split, and the text makes files whose names could be split otherwise.
    pub(crate) splits_new_names: bool,
    pub(crate) object: String,
    pub(crate) span: Span,
}

/// A change that a text makes in several parts.
#[derive(Debug)]
pub(crate) struct InParts {
    pub(crate) of: InPartsOf,
    /// In which directory, relative to where the text starts.
    pub(crate) here: std::path::PathBuf,
    pub(crate) object: String,
    pub(crate) span: Span,
}

/// What is changed in several parts.
#[derive(Debug)]
pub(crate) enum InPartsOf {
    /// This path is removed or moved, with what lies below it.
    Path(String),
    /// What a pattern of the shell matches in this directory.
    Names { directory: String, pattern: String },
    /// A repository, and after that its settings. With what does without the second.
    Settings(String),
}

/// What this word names, if that can be looked up.
fn tree(word: &Word) -> Option<InPartsOf> {
    if let Some(path) = word.known() {
        return (!path.starts_with(HOME)).then(|| InPartsOf::Path(path.into_owned()));
    }
    let pattern = program::pattern_of(word)?;
    let (directory, pattern) = pattern.rsplit_once('/').unwrap_or(("", &pattern));
    let plain = !directory.contains(['*', '?', '[']) && !directory.starts_with(HOME) && !pattern.contains(['[', '\\']);
    plain.then(|| InPartsOf::Names {
        directory: directory.to_owned(),
        pattern: pattern.to_owned(),
    })
}

impl Policy {
    /// The policy that allows every text that can be read.
    pub fn open() -> Self {
        Self::default()
    }

    /// The policy, and nothing may change.
    #[must_use]
    pub fn with_readonly(mut self) -> Self {
        self.parts.push(Part::Readonly);
        self
    }

    /// The policy, and only commands that start with one of these prefixes may run.
    ///
    /// A prefix is words after quote removal: `git log` does not allow `git -c x log`. An empty list
    /// changes nothing.
    ///
    /// # Errors
    /// [`EntryError`] for an entry without a word, or with shell syntax in it.
    pub fn with_allow<S: AsRef<str>>(mut self, entries: &[S]) -> Result<Self, EntryError> {
        let entries = tokens(entries)?;
        if !entries.is_empty() {
            self.parts.push(Part::Allow(entries));
        }
        Ok(self)
    }

    /// The policy, and commands that these entries name may not run, however they are spelled.
    ///
    /// # Errors
    /// [`EntryError`] for an entry without a word, or with shell syntax in it.
    pub fn with_deny<S: AsRef<str>>(mut self, entries: &[S]) -> Result<Self, EntryError> {
        let entries: Vec<_> = tokens(entries)?.into_iter().map(deny::Entry::new).collect();
        if !entries.is_empty() {
            self.parts.push(Part::Deny(entries));
        }
        Ok(self)
    }

    /// The policy, and paths that these patterns match are hidden; they mean what they mean in a
    /// `.gitignore`, whatever the case of letters.
    ///
    /// # Errors
    /// [`PatternError`] for a pattern that cannot be read.
    pub fn with_ignore<S: AsRef<str>>(mut self, patterns: &[S]) -> Result<Self, PatternError> {
        let lines: Vec<String> = patterns.iter().map(|line| line.as_ref().to_owned()).collect();
        if !lines.is_empty() {
            self.parts.push(Part::Ignore(paths::Hidden::new(&lines)?));
        }
        Ok(self)
    }

    /// The policy, and what this preset says: one of [`PRESETS`].
    ///
    /// # Errors
    /// [`UnknownPreset`], which lists the known ones.
    pub fn with_preset(self, name: &str) -> Result<Self, UnknownPreset> {
        match name {
            "open" => Ok(self),
            "readonly" => Ok(self.with_readonly()),
            "gaia" => self
                .with_readonly()
                .with_allow(preset::GAIA)
                .map_err(|_| UnknownPreset(name.to_owned())),
            other => Err(UnknownPreset(other.to_owned())),
        }
    }

    /// The policy, and the rules of a file.
    #[must_use]
    pub fn with_rules(mut self, rules: RuleFile) -> Self {
        self.parts.push(Part::Rules(rules));
        self
    }

    /// What its rules say of connections to hosts, for environments with a gateway.
    #[cfg(feature = "gateway")]
    pub fn connects(&self) -> Vec<ConnectRule> {
        let files = self.parts.iter().filter_map(|part| match part {
            Part::Rules(rules) => Some(rules.connects()),
            _ => None,
        });
        files.flatten().collect()
    }

    /// What its rules hold back of the changes in a staged workspace.
    pub fn changes(&self) -> Vec<shieling_changes::Rule> {
        let files = self.parts.iter().filter_map(|part| match part {
            Part::Rules(rules) => Some(rules.changes()),
            _ => None,
        });
        files.flatten().collect()
    }

    /// The patterns of hidden paths, for environments that can hide them.
    pub fn hidden(&self) -> Vec<String> {
        self.ignored().flatten().cloned().collect()
    }

    /// The patterns of each list of hidden paths: what one of them hides, no other shows again.
    pub(crate) fn ignored(&self) -> impl Iterator<Item = &[String]> {
        self.parts.iter().filter_map(|part| match part {
            Part::Ignore(hidden) => Some(hidden.lines()),
            Part::Readonly | Part::Allow(_) | Part::Deny(_) | Part::Rules(_) => None,
        })
    }

    /// Whether a path, relative to the workspace, is hidden.
    pub fn hides(&self, relative: &str) -> bool {
        self.parts
            .iter()
            .any(|part| matches!(part, Part::Ignore(hidden) if hidden.hides(relative)))
    }

    /// Whether an entry of the workspace, of which it is known whether it is a directory, is hidden.
    pub fn hides_entry(&self, relative: &Path, is_directory: bool) -> bool {
        self.parts
            .iter()
            .any(|part| matches!(part, Part::Ignore(hidden) if hidden.hides_entry(relative, is_directory)))
    }

    /// Whether nothing in a directory of the workspace can be anything but hidden, so that an environment
    /// hides the directory as a whole, and with it the names in it.
    pub fn hides_all_in(&self, relative: &Path) -> bool {
        self.parts
            .iter()
            .any(|part| matches!(part, Part::Ignore(hidden) if hidden.hides_all_in(relative)))
    }

    /// The programs that allow lists leave, by the first words of their entries; nothing if there is
    /// no allow list. Of several lists, what all of them name.
    pub fn programs(&self) -> Option<Vec<String>> {
        let lists = self.parts.iter().filter_map(|part| match part {
            Part::Allow(entries) => Some(entries.iter().filter_map(|words| words.first()).cloned().collect()),
            Part::Readonly | Part::Deny(_) | Part::Ignore(_) | Part::Rules(_) => None,
        });
        lists.reduce(|mut all: Vec<String>, list: Vec<String>| {
            all.retain(|name| list.contains(name));
            all
        })
    }

    /// Whether nothing may change.
    pub fn is_readonly(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Readonly))
    }

    /// Whether an environment that enforces this much enforces all that the policy says. Nothing
    /// enforces deny lists and rules: they are about texts.
    pub fn is_enforced_by(&self, enforced: Enforced) -> bool {
        self.parts.iter().all(|part| match part {
            Part::Readonly => enforced.readonly,
            Part::Allow(_) => enforced.programs,
            Part::Ignore(_) => enforced.hidden,
            Part::Deny(_) | Part::Rules(_) => false,
        })
    }

    /// Judges a command: pure, and the same for the same facts.
    pub fn judge(&self, command: &Command, facts: &Facts) -> Verdict {
        self.judge_text(command.text(), facts)
    }

    /// Judges a text that is no request yet, such as one that is only to be explained.
    pub fn judge_text(&self, text: &str, facts: &Facts) -> Verdict {
        self.judge_read(&Text::read(text, facts), facts)
    }

    /// Judges a text that was read before.
    pub(crate) fn judge_read(&self, text: &Text<'_>, facts: &Facts) -> Verdict {
        let reading = match &text.reading {
            Ok(reading) => reading,
            Err(unreadable) => return unreadable_verdict(text.text, unreadable),
        };
        let mut reasons: Vec<Reason> = Vec::new();
        // By their spans, of which a long text has many.
        let mut places: HashMap<Option<Span>, Vec<usize>> = HashMap::new();
        for part in &self.parts {
            for (rule, finding) in judge_part(part, reading, facts) {
                let reason = reason(rule, finding);
                let same = places.entry(reason.span).or_default();
                if !same.iter().any(|place| reasons[*place] == reason) {
                    same.push(reasons.len());
                    reasons.push(reason);
                }
            }
        }
        of_reasons(
            reasons,
            reading.commands.iter().map(command_seen).collect(),
            reading.effects.iter().filter_map(effect_seen).collect(),
        )
    }

    /// The directories that a text reads as a whole, each with what is known of the directories that its
    /// path starts from.
    pub(crate) fn walks(text: &Text<'_>, facts: &Facts) -> Vec<Walked> {
        let Ok(reading) = &text.reading else {
            return Vec::new();
        };
        let bases = ignore::bases(reading, facts);
        let undashed = facts.dashed_names == Some(false) && reading.bases.is_empty();
        let many = reading.commands.len() > 1;
        let only_reads = reading.effects.iter().all(|effect| {
            matches!(
                effect.action,
                Action::Reads(_) | Action::Names(_) | Action::Walks(_) | Action::Revision(_)
            )
        });
        // Of the commands of git, what they change; of others, what could start git.
        let tracks_anew = |effect: &&Effect| {
            let by = effect
                .by
                .and_then(|by| reading.commands.get(by))
                .and_then(Invocation::program);
            match &effect.action {
                Action::Writes(_) | Action::Changes(_) => by.as_deref() == Some("git"),
                Action::Doubt(Doubt::Launch | Doubt::Program | Doubt::Project | Doubt::Variable, _)
                | Action::RunsFile(_) => true,
                _ => false,
            }
        };
        let tracked_anew: Vec<&Effect> = reading.effects.iter().filter(tracks_anew).collect();
        // What a command of git shows, it shows before it changes it.
        let by_another = |walk: &Effect| {
            let own = |effect: &Effect| matches!(effect.action, Action::Writes(_) | Action::Changes(_));
            tracked_anew.iter().any(|effect| effect.by != walk.by || !own(effect))
        };
        let of_git = |effect: &Effect| {
            let by = effect.by.and_then(|by| reading.commands.get(by));
            by.and_then(Invocation::program).as_deref() == Some("git")
        };
        // Whether a name that is not there now can be a file alone: redirections make it, and nothing else writes there.
        let is_made = |walk: &Effect, root: &str| {
            let mut writes = reading.effects.iter().filter_map(|effect| match &effect.action {
                Action::Writes(word) if effect.by != walk.by => Some((word, effect.via)),
                _ => None,
            });
            let mut made = false;
            writes.all(|(word, via)| match word.known() {
                Some(path) if path == root => {
                    made = true;
                    via == Via::Redirection
                }
                Some(_) => true,
                None => false,
            }) && made
        };
        let makes_names = |walk: &Effect| {
            reading.effects.iter().any(|effect| {
                let makes = match effect.action {
                    Action::Writes(_) => !makes_plain_names(reading, effect),
                    // A directory brings all the names in it along.
                    Action::Renames(_) => true,
                    _ => false,
                };
                makes && effect.by != walk.by
            })
        };
        let walks = reading.effects.iter().filter_map(|effect| {
            let mut sole = (!many || only_reads) && reading.bases.is_empty();
            let walk = match &effect.action {
                // The names that git lists are no files that it reads.
                Action::Walks(walk) if walk.names && of_git(effect) => return None,
                Action::Walks(walk) if walk.if_dashed && undashed => return None,
                Action::Walks(walk) => walk.clone(),
                // What comes after it could read below the new name.
                Action::Renames(word) if many => {
                    sole = word.known().is_some_and(|root| is_made(effect, &root));
                    Walk {
                        root: Some(word.clone()),
                        ..Walk::default()
                    }
                }
                _ => return None,
            };
            Some(Walked {
                splits_new_names: walk.splits != Splits::Nowhere && makes_names(effect),
                tracked: walk.tracked && !walk.or_revision && !by_another(effect) && walk.here.is_some(),
                walk,
                bases: bases.clone(),
                sole,
                object: named(&effect.object),
                span: effect.span,
            })
        });
        walks.collect()
    }

    /// What a text changes in several parts, where it is known for certain in which directory.
    pub(crate) fn in_parts(text: &Text<'_>) -> Vec<InParts> {
        let Ok(reading) = &text.reading else {
            return Vec::new();
        };
        let mut found = Vec::new();
        for effect in &reading.effects {
            let Action::InParts(parts) = &effect.action else {
                continue;
            };
            let command = effect.by.and_then(|by| reading.commands.get(by));
            let (Some(here), Some(beyond)) = (&parts.here, command.and_then(program::elsewhere)) else {
                continue;
            };
            let of = match &parts.of {
                PartsOf::Settings(instead) => Some(InPartsOf::Settings(instead.clone())),
                PartsOf::Tree(word) => tree(word),
            };
            let Some(of) = of else { continue };
            found.push(InParts {
                of,
                here: std::path::Path::new(here).join(beyond),
                object: named(&effect.object),
                span: effect.span,
            });
        }
        found
    }

    /// A digest of everything that the policy says.
    pub fn digest(&self) -> Digest {
        let mut hasher = Sha256::new();
        for part in &self.parts {
            let said = match part {
                Part::Readonly => "readonly".to_owned(),
                Part::Allow(entries) => format!("allow {entries:?}"),
                Part::Deny(entries) => format!(
                    "deny {:?}",
                    entries.iter().map(|entry| &entry.tokens).collect::<Vec<_>>()
                ),
                Part::Ignore(hidden) => format!("ignore {:?}", hidden.lines()),
                Part::Rules(rules) => format!("rules {:?}", rules.source()),
            };
            hasher.update((said.len() as u64).to_le_bytes());
            hasher.update(said);
        }
        Digest(hasher.finalize().into())
    }
}

/// What a part says, with what the environment enforces by itself left out.
fn judge_part(part: &Part, reading: &Reading, facts: &Facts) -> Vec<(String, Finding)> {
    let named = |name: &str, findings: Vec<Finding>, enforced: bool| -> Vec<(String, Finding)> {
        findings
            .into_iter()
            // What is known to break the policy is refused all the same: told early is told better.
            .filter(|finding| !(enforced && finding.decision == Decision::Ask))
            .map(|finding| (name.to_owned(), finding))
            .collect()
    };
    match part {
        Part::Readonly => named(
            "readonly",
            [readonly::judge(reading, facts), shadowed(reading, facts)].concat(),
            facts.enforced.readonly,
        ),
        Part::Allow(entries) => named("allow", allow::judge(reading, entries), facts.enforced.programs),
        Part::Deny(entries) => named("deny", deny::judge(reading, entries, facts), false),
        Part::Ignore(hidden) => named(
            IGNORE,
            [ignore::judge(reading, hidden, facts), shadowed(reading, facts)].concat(),
            facts.enforced.hidden,
        ),
        Part::Rules(rules) => rules.judge(reading, facts),
    }
}

/// Commands whose programs the workspace brings: what a table says of their names does not hold.
fn shadowed(reading: &Reading, facts: &Facts) -> Vec<Finding> {
    reading
        .commands
        .iter()
        .filter(|command| command.kind == Kind::Program)
        .filter_map(|command| {
            let first = command.argv.first()?;
            let name = first.known()?;
            facts.shadowed.contains(name.as_ref()).then(|| {
                let because = "the workspace puts a program of this name on the path";
                Finding::new(Decision::Ask, name.clone(), first.span, because)
                    .instead("name the system's program by its path")
            })
        })
        .collect()
}

/// The verdict of these reasons: the strictest first, then as they stand in the text.
fn of_reasons(mut reasons: Vec<Reason>, commands: Vec<CommandSeen>, effects: Vec<EffectSeen>) -> Verdict {
    reasons.sort_by_key(|reason| (std::cmp::Reverse(reason.decision), reason.span));
    let strictest = reasons.iter().map(|reason| reason.decision).max();
    Verdict {
        decision: strictest.unwrap_or(Decision::Allow),
        reasons,
        commands,
        effects,
    }
}

fn reason(rule: String, finding: Finding) -> Reason {
    Reason {
        decision: finding.decision,
        rule,
        object: named(&finding.object),
        span: finding.span,
        because: finding.because,
        instead: finding.instead,
    }
}

fn unreadable_verdict(text: &str, unreadable: &Unreadable) -> Verdict {
    let object = text.get(unreadable.span.start..unreadable.span.end).unwrap_or_default();
    let object: String = named(object).chars().take(120).collect();
    Verdict {
        decision: Decision::Ask,
        reasons: vec![Reason {
            decision: Decision::Ask,
            rule: verdict::UNREADABLE.to_owned(),
            object,
            span: Some(unreadable.span),
            because: unreadable.because.clone(),
            instead: Some("write it more simply".to_owned()),
        }],
        commands: Vec::new(),
        effects: Vec::new(),
    }
}

fn command_seen(command: &Invocation) -> CommandSeen {
    CommandSeen {
        argv: command.argv.iter().map(|word| escaped(&word.shown())).collect(),
        span: command.span,
    }
}

fn effect_seen(effect: &Effect) -> Option<EffectSeen> {
    let kind = match &effect.action {
        Action::Reads(_) | Action::Revision(_) => EffectKind::Reads,
        Action::Names(_)
        | Action::Renames(_)
        | Action::Walks(_)
        | Action::InParts(_)
        | Action::Code(_)
        | Action::Mentions(_) => {
            return None;
        }
        Action::Writes(_) | Action::Changes(_) => EffectKind::Writes,
        Action::RunsFile(_) => EffectKind::Runs,
        Action::Network(_) => EffectKind::Network,
        Action::MaybeOption(..) | Action::Doubt(..) => EffectKind::Unknown,
    };
    Some(EffectSeen {
        kind,
        object: named(&effect.object),
        span: effect.span,
    })
}

/// What a reading calls something, for people: the home, which a reading does not know, is `~`.
fn named(object: &str) -> String {
    escaped(&object.replace(HOME, "~"))
}
