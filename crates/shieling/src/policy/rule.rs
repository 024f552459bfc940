//! Policy files: rules in TOML, each with its own examples, which are checked when it is loaded.

mod path;

use std::ops::Range;

use serde::Deserialize;
use toml::Spanned;

use shieling_shell::program::Normal;
use shieling_shell::{Action, Atom, Base, Doubt, Known, Reading, Word};

use super::changes::{self, ChangeRule, Changed};
#[cfg(feature = "gateway")]
use super::connects::ConnectRule;
use super::connects::Hosts;
use super::facts::Facts;
use super::meaning::paths::{Hidden, Starts};
use super::meaning::{Finding, allow, deny};
use super::verdict::Decision;
use crate::units::ByteCount;

/// The rules of one policy file.
#[derive(Debug, Clone)]
pub struct RuleFile {
    name: String,
    source: String,
    default: Decision,
    rules: Vec<Rule>,
}

#[derive(Debug, Clone)]
struct Rule {
    id: String,
    line: usize,
    decision: Decision,
    commands: Vec<deny::Entry>,
    reads: Option<Hidden>,
    writes: Option<Hidden>,
    connects: Option<Hosts>,
    changed: Option<Changed>,
    because: Option<String>,
    instead: Option<String>,
    matches: Vec<Spanned<String>>,
    not_matches: Vec<Spanned<String>>,
}

/// What is wrong with a policy file, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {problem}")]
pub struct RuleError {
    /// The file, as it was named.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The place in the file, in bytes.
    pub span: Range<usize>,
    /// What is wrong.
    pub problem: String,
}

/// One example of a rule, as it was checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExampleResult {
    /// The rule.
    pub rule: String,
    /// The example.
    pub command: String,
    /// Whether the rule is said to match it.
    pub should_match: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    default: Option<Spanned<Answer>>,
    #[serde(default)]
    rule: Vec<Spanned<Entry>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    id: Option<Spanned<String>>,
    decision: Spanned<Answer>,
    #[serde(default)]
    command: Option<Spanned<OneOrMany>>,
    #[serde(default)]
    reads: Option<Spanned<OneOrMany>>,
    #[serde(default)]
    writes: Option<Spanned<OneOrMany>>,
    #[serde(default)]
    connects: Option<Spanned<OneOrMany>>,
    #[serde(default)]
    changes: Option<Spanned<OneOrMany>>,
    #[serde(default)]
    adds: Option<Spanned<OneOrMany>>,
    #[serde(default)]
    deletes: Option<Spanned<OneOrMany>>,
    max_files: Option<u64>,
    max_bytes: Option<Spanned<String>>,
    because: Option<String>,
    instead: Option<String>,
    #[serde(default, rename = "match")]
    matches: Vec<Spanned<String>>,
    #[serde(default)]
    not_match: Vec<Spanned<String>>,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum Answer {
    Allow,
    Ask,
    Deny,
}

impl From<Answer> for Decision {
    fn from(answer: Answer) -> Self {
        match answer {
            Answer::Allow => Self::Allow,
            Answer::Ask => Self::Ask,
            Answer::Deny => Self::Deny,
        }
    }
}

/// A string, or a list of them.
struct OneOrMany(Vec<String>);

impl<'de> Deserialize<'de> for OneOrMany {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = OneOrMany;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a string or a list of strings")
            }
            fn visit_str<E>(self, text: &str) -> Result<OneOrMany, E> {
                Ok(OneOrMany(vec![text.to_owned()]))
            }
            fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut list: A) -> Result<OneOrMany, A::Error> {
                let mut all = Vec::new();
                while let Some(text) = list.next_element()? {
                    all.push(text);
                }
                Ok(OneOrMany(all))
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

impl RuleFile {
    /// Reads a policy file and runs the examples in it.
    ///
    /// `name` is how messages call the file. The text is TOML: `default = "allow"` (or `ask`, `deny`)
    /// for what no rule matches, and `[[rule]]` tables with `decision`, `command` (a prefix of words,
    /// or a list of them), `reads` and `writes` (patterns as in `.gitignore`), `connects` (hosts, as `--allow-host`
    /// takes them), `changes`, `adds` and `deletes` (patterns of what changed in a staged workspace, with `max_files` and
    /// `max_bytes`), `because`, `instead`, `match` and `not_match`. A rule is about texts and files, about hosts, or about
    /// what changed.
    ///
    /// # Errors
    /// [`RuleError`] names the line: TOML that cannot be read, an unknown key, a rule that matches
    /// nothing, a pattern or prefix that means nothing, and an example that fails.
    pub fn parse(name: &str, source: &str) -> Result<Self, RuleError> {
        let error = |span: Range<usize>, problem: String| RuleError {
            file: name.to_owned(),
            line: line_of(source, span.start),
            span,
            problem,
        };
        let file: File =
            toml::from_str(source).map_err(|fault| error(fault.span().unwrap_or(0..0), fault.message().to_owned()))?;
        let mut rules: Vec<Rule> = Vec::new();
        for (number, entry) in file.rule.into_iter().enumerate() {
            let (span, entry) = (entry.span(), entry.into_inner());
            let id = entry
                .id
                .as_ref()
                .map_or_else(|| format!("rule {}", number + 1), |id| id.get_ref().clone());
            if let Some(other) = rules.iter().find(|other| other.id == id) {
                return Err(error(
                    span,
                    format!("the rule `{id}` stands also in line {}", other.line),
                ));
            }
            let of_texts = entry.command.is_some() || entry.reads.is_some() || entry.writes.is_some();
            let has_paths = entry.changes.is_some() || entry.adds.is_some() || entry.deletes.is_some();
            let is_bounded = entry.max_files.is_some() || entry.max_bytes.is_some();
            let of_changes = has_paths || is_bounded;
            let kinds = [of_texts, entry.connects.is_some(), of_changes];
            match kinds.into_iter().filter(|is| *is).count() {
                0 => {
                    return Err(error(
                        span,
                        format!(
                            "the rule `{id}` matches nothing: give it `command`, `reads`, `writes`, `connects`, `changes`, \
                             `adds`, `deletes`, `max_files` or `max_bytes`"
                        ),
                    ));
                }
                1 => {}
                _ => {
                    return Err(error(
                        span,
                        format!(
                            "the rule `{id}` is about more than one of commands, hosts and what they changed: make it \
                             two rules"
                        ),
                    ));
                }
            }
            let decision: Decision = (*entry.decision.get_ref()).into();
            if is_bounded && decision == Decision::Allow {
                return Err(error(
                    entry.decision.span(),
                    format!("the rule `{id}` allows up to a bound: say what is beyond it with `deny` or `ask`"),
                ));
            }
            let connects = match entry.connects {
                None => None,
                Some(list) => {
                    let at = list.span();
                    Some(Hosts::parse(&list.into_inner().0).map_err(|fault| error(at, fault))?)
                }
            };
            let commands = match entry.command {
                None => Vec::new(),
                Some(list) => {
                    let at = list.span();
                    super::entry::tokens(&list.into_inner().0)
                        .map_err(|fault| error(at, fault.to_string()))?
                        .into_iter()
                        .map(deny::Entry::new)
                        .collect()
                }
            };
            let globs = |list: Option<Spanned<OneOrMany>>| -> Result<Option<Hidden>, RuleError> {
                let Some(list) = list else { return Ok(None) };
                let at = list.span();
                Hidden::new(&list.into_inner().0)
                    .map(Some)
                    .map_err(|fault| error(at, fault.to_string()))
            };
            let max_bytes = entry.max_bytes.map(|text| {
                let at = text.span();
                let parsed = text.into_inner().parse::<ByteCount>();
                parsed.map_err(|fault| error(at, format!("`max_bytes`: {fault}")))
            });
            for list in [&entry.changes, &entry.adds, &entry.deletes].into_iter().flatten() {
                let patterns = &list.get_ref().0;
                let wrong = |pattern: &&String| {
                    let pattern = pattern.trim_start_matches('!');
                    pattern.split('/').any(|part| part == "." || part == "..")
                };
                if let Some(wrong) = patterns.iter().find(wrong) {
                    let problem =
                        format!("`{wrong}` matches nothing: write it relative to the workspace, without `.` and `..`");
                    return Err(error(list.span(), problem));
                }
                if patterns.is_empty() {
                    return Err(error(list.span(), "an empty list matches nothing".to_owned()));
                }
            }
            let changed = match of_changes {
                false => None,
                true => Some(Changed {
                    changes: globs(entry.changes)?,
                    adds: globs(entry.adds)?,
                    deletes: globs(entry.deletes)?,
                    max_files: entry.max_files,
                    max_bytes: max_bytes.transpose()?.map(ByteCount::get),
                }),
            };
            rules.push(Rule {
                line: line_of(source, span.start),
                decision,
                commands,
                reads: globs(entry.reads)?,
                writes: globs(entry.writes)?,
                connects,
                changed,
                because: entry.because,
                instead: entry.instead,
                matches: entry.matches,
                not_matches: entry.not_match,
                id,
            });
        }
        let file = Self {
            name: name.to_owned(),
            source: source.to_owned(),
            default: file
                .default
                .map_or(Decision::Allow, |default| default.into_inner().into()),
            rules,
        };
        file.check_examples()?;
        Ok(file)
    }

    /// The examples of all rules; all of them hold, or the file would not have been read.
    pub fn examples(&self) -> Vec<ExampleResult> {
        let all = |rule: &Rule, examples: &[Spanned<String>], should_match| -> Vec<ExampleResult> {
            examples
                .iter()
                .map(|example| ExampleResult {
                    rule: rule.id.clone(),
                    command: example.get_ref().clone(),
                    should_match,
                })
                .collect()
        };
        self.rules
            .iter()
            .flat_map(|rule| [all(rule, &rule.matches, true), all(rule, &rule.not_matches, false)].concat())
            .collect()
    }

    /// How many rules there are.
    pub fn rules(&self) -> usize {
        self.rules.len()
    }

    /// What the rules say of connections to hosts.
    #[cfg(feature = "gateway")]
    pub(super) fn connects(&self) -> Vec<ConnectRule> {
        let each = |rule: &Rule| {
            Some(ConnectRule {
                name: format!("{}:{} ({})", self.name, rule.line, rule.id),
                hosts: rule.connects.as_ref()?.0.clone(),
                decision: rule.decision,
                because: rule.because.clone(),
                instead: rule.instead.clone(),
            })
        };
        self.rules.iter().filter_map(each).collect()
    }

    /// What the rules hold back of the changes in a staged workspace.
    pub(super) fn changes(&self) -> Vec<shieling_changes::Rule> {
        let of_changes = self
            .rules
            .iter()
            .filter_map(|rule| Some((rule, rule.changed.as_ref()?)));
        let rules: Vec<_> = of_changes
            .map(|(rule, changed)| ChangeRule {
                name: format!("{}:{} ({})", self.name, rule.line, rule.id),
                changed,
                decision: rule.decision,
                because: rule.because(),
                instead: rule.instead.as_deref(),
            })
            .collect();
        changes::compiled(&self.name, self.default, &rules)
    }

    /// The text of the file.
    pub(super) fn source(&self) -> &str {
        &self.source
    }

    fn check_examples(&self) -> Result<(), RuleError> {
        let facts = Facts::new("/workspace".as_ref(), "/workspace".as_ref());
        for rule in &self.rules {
            for (examples, should_match) in [(&rule.matches, true), (&rule.not_matches, false)] {
                for example in examples {
                    let by_itself = match (&rule.connects, &rule.changed) {
                        (Some(hosts), _) => Some(hosts.mean(example.get_ref(), rule.decision)),
                        (None, Some(changed)) => Some(changed.means(example.get_ref())),
                        (None, None) => None,
                    };
                    if let Some(matched) = by_itself {
                        let problem = match matched {
                            Ok(matched) if matched == should_match => continue,
                            Ok(_) => {
                                let said = if should_match { "match" } else { "not match" };
                                format!(
                                    "the rule `{}` should {said} its example `{}`",
                                    rule.id,
                                    example.get_ref()
                                )
                            }
                            Err(why) => format!("the example `{}` of rule `{}`: {why}", example.get_ref(), rule.id),
                        };
                        return Err(RuleError {
                            file: self.name.clone(),
                            line: line_of(&self.source, example.span().start),
                            span: example.span(),
                            problem,
                        });
                    }
                    let error = |problem: String| RuleError {
                        file: self.name.clone(),
                        line: line_of(&self.source, example.span().start),
                        span: example.span(),
                        problem,
                    };
                    let reading = shieling_shell::read(example.get_ref()).map_err(|fault| {
                        error(format!(
                            "the example `{}` of rule `{}` cannot be read: {}",
                            example.get_ref(),
                            rule.id,
                            fault.because
                        ))
                    })?;
                    let commands = taken_apart(&reading);
                    let matched = !rule.findings(&reading, &commands, &facts, true).is_empty();
                    if matched != should_match {
                        let (said, is) = if should_match {
                            ("match", "does not")
                        } else {
                            ("not match", "does")
                        };
                        return Err(error(format!(
                            "the rule `{}` should {said} its example `{}`, and {is}",
                            rule.id,
                            example.get_ref()
                        )));
                    }
                }
            }
        }
        Ok(())
    }

    /// What the rules say of a text.
    pub(super) fn judge(&self, reading: &Reading, facts: &Facts) -> Vec<(String, Finding)> {
        let mut all = Vec::new();
        // Once for all rules.
        let commands = taken_apart(reading);
        for rule in self.rules.iter().filter(|rule| rule.decision != Decision::Allow) {
            let named = format!("{}:{} ({})", self.name, rule.line, rule.id);
            all.extend(
                rule.findings(reading, &commands, facts, false)
                    .into_iter()
                    .map(|finding| (named.clone(), finding)),
            );
        }
        let denies = self
            .rules
            .iter()
            .any(|rule| rule.decision != Decision::Allow && !rule.commands.is_empty());
        if denies {
            // What cannot be read could be any command of a rule.
            for effect in &reading.effects {
                if let Action::Doubt(Doubt::Launch | Doubt::Setting, because) = &effect.action {
                    all.push((
                        self.name.clone(),
                        Finding::new(Decision::Ask, effect.object.clone(), effect.span, because.clone()),
                    ));
                }
            }
        }
        if self.default != Decision::Allow {
            all.extend(self.by_default(reading, &commands));
        }
        all
    }

    /// Where nothing is allowed by default, the rules that allow are an allow list.
    fn by_default(&self, reading: &Reading, commands: &[Option<Normal>]) -> Vec<(String, Finding)> {
        let entries: Vec<Vec<String>> = self
            .rules
            .iter()
            .filter(|rule| rule.decision == Decision::Allow)
            .flat_map(|rule| rule.commands.iter().map(|entry| entry.tokens.clone()))
            .collect();
        // Commands that another rule speaks about have their answer.
        let spoken = |finding: &Finding| {
            self.rules
                .iter()
                .filter(|rule| rule.decision != Decision::Allow)
                .any(|rule| {
                    reading.commands.iter().zip(commands).any(|(command, taken)| {
                        finding.span == Some(command.span)
                            && rule
                                .commands
                                .iter()
                                .any(|entry| entry.matches(taken.as_ref()) == Known::Yes)
                    })
                })
        };
        allow::judge(reading, &entries)
            .into_iter()
            .filter(|finding| !spoken(finding))
            .map(|mut finding| {
                finding.decision = finding.decision.min(self.default).max(Decision::Ask);
                (format!("{} (default)", self.name), finding)
            })
            .collect()
    }
}

impl Rule {
    fn because(&self) -> String {
        self.because.clone().unwrap_or_else(|| match self.decision {
            Decision::Allow => "a rule allows it".to_owned(),
            Decision::Ask => "a rule asks about it".to_owned(),
            Decision::Deny => "a rule denies it".to_owned(),
        })
    }

    /// What this rule matches; with `surely`, only what it matches for certain.
    fn findings(&self, reading: &Reading, commands: &[Option<Normal>], facts: &Facts, surely: bool) -> Vec<Finding> {
        let because = self.because();
        let finding = |known: Known, object: &dyn Fn() -> String, span| {
            let decision = match known {
                Known::Yes => self.decision,
                Known::Maybe if surely => return None,
                Known::Maybe => self.decision.min(Decision::Ask),
                Known::No => return None,
            };
            Some(Finding {
                decision,
                object: object(),
                span: Some(span),
                because: because.clone(),
                instead: self.instead.clone(),
            })
        };
        let mut findings = Vec::new();
        for (command, taken) in reading.commands.iter().zip(commands) {
            let Some(taken) = taken else { continue };
            for entry in &self.commands {
                findings.extend(finding(entry.matches(Some(taken)), &|| command.shown(), command.span));
            }
        }
        if self.reads.is_none() && self.writes.is_none() {
            return findings;
        }
        let mut bases: Vec<Base> = reading.bases.clone();
        if !facts.start.is_empty() {
            bases.push(Base::At(facts.start.clone()));
        }
        let starts = Starts::new(bases);
        for effect in &reading.effects {
            let (globs, word) = match &effect.action {
                Action::Reads(word) | Action::Revision(word) | Action::RunsFile(word) => (&self.reads, word),
                Action::Writes(word) => (&self.writes, word),
                Action::Names(_)
                | Action::Renames(_)
                | Action::Walks(_)
                | Action::InParts(_)
                | Action::Changes(_)
                | Action::Code(_)
                | Action::Mentions(_)
                | Action::MaybeOption(..)
                | Action::Network(_)
                | Action::Doubt(..) => continue,
            };
            let below = globs
                .as_ref()
                .filter(|_| matches!(effect.action, Action::Writes(_)))
                .map(|globs| {
                    // What is written into a directory lies below it.
                    let below = Atom::Text("/x".to_owned());
                    let inner = Word {
                        atoms: word.atoms.iter().cloned().chain([below]).collect(),
                        ..word.clone()
                    };
                    globs.named(&inner, &starts, reading.dotglob, facts, false)
                });
            let object = || effect.object.clone();
            if let (Some(Known::Yes), false) = (below, surely) {
                findings.extend(finding(Known::Maybe, &object, effect.span));
            }
            if let Some(globs) = globs {
                findings.extend(finding(
                    globs.named(word, &starts, reading.dotglob, facts, false),
                    &object,
                    effect.span,
                ));
            }
        }
        findings
    }
}

/// The commands of a text, each taken apart.
fn taken_apart(reading: &Reading) -> Vec<Option<Normal>> {
    reading.commands.iter().map(deny::taken_apart).collect()
}

fn line_of(source: &str, at: usize) -> usize {
    source
        .get(..at)
        .unwrap_or_default()
        .bytes()
        .filter(|byte| *byte == b'\n')
        .count()
        + 1
}
