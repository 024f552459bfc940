//! Deny list: everything passes but the commands that an entry names, however they are spelled.

use std::borrow::Cow;
use std::collections::BTreeSet;

use shieling_shell::{Action, Atom, Doubt, Effect, Fields, Invocation, Known, Reading, Span, Via, Word, is_shell};

use super::Finding;
use crate::policy::facts::Facts;
use crate::policy::verdict::Decision::{Ask, Deny};
use shieling_shell::program::{self, Normal, normal};

/// An entry, taken apart once.
#[derive(Debug, Clone)]
pub(in crate::policy) struct Entry {
    pub(in crate::policy) tokens: Vec<String>,
    /// As messages call it.
    named: String,
    normal: Normal,
}

impl Entry {
    pub(in crate::policy) fn new(tokens: Vec<String>) -> Self {
        let words: Vec<Word> = tokens
            .iter()
            .skip(1)
            .map(|token| Word::text(token.clone(), Span::default()))
            .collect();
        let program = tokens
            .first()
            .map(|name| name.rsplit('/').next().unwrap_or_default().to_owned())
            .unwrap_or_default();
        let normal = normal(&program, &words, false);
        let named = tokens.join(" ");
        Self { tokens, named, normal }
    }

    /// The program's name, without the directory that it is in.
    fn program(&self) -> Option<&str> {
        self.tokens.first()?.rsplit('/').next()
    }

    /// Where a program of this name, which may start what it is given, is given this entry's command.
    fn started_by(&self, name: &str, command: &Invocation) -> Option<Span> {
        let program = self.program()?;
        (1..command.argv.len()).find_map(|at| {
            let word = &command.argv[at];
            let is_program = |text: &str| text.rsplit(['/', '#']).next() == Some(program);
            let Some(text) = word.known() else {
                let is_element = |one: &[Atom]| matches!(one, [Atom::Text(text)] if is_program(text));
                let elements = match &*word.atoms {
                    [Atom::OneOf(elements)] if word.fields == Fields::Spread => elements.as_slice(),
                    _ => &[],
                };
                return elements.iter().any(|one| is_element(one)).then_some(word.span);
            };
            let starts = is_program(&text);
            let given = command.argv[at - 1]
                .known()
                .is_some_and(|option| matches!(option.as_ref(), "-c" | "-e" | "-x" | "--command" | "--exec"));
            let inner = holds_command(&text, program, given);
            // A project's program is given names as data, unless it is told to run them.
            let handed = !(program::runs_the_project(name) || program::starts_others(name))
                || command.argv[1..at].iter().filter_map(Word::known).any(|word| {
                    matches!(
                        word.as_ref(),
                        "exec" | "run" | "x" | "cmd" | "devenv" | "dlx" | "--" | "--run" | "--command" | "--args"
                    )
                });
            let matched = starts
                && handed
                && normal(program, &command.argv[at + 1..], command.more).is(&self.normal) != Known::No;
            (matched || inner).then_some(word.span)
        })
    }

    /// Whether a command, taken apart, is what this entry names.
    pub(in crate::policy) fn matches(&self, command: Option<&Normal>) -> Known {
        command.map_or(Known::Maybe, |command| command.is(&self.normal))
    }
}

/// Takes a command apart, if its program is known.
pub(in crate::policy) fn taken_apart(command: &Invocation) -> Option<Normal> {
    let program = command.program()?;
    Some(normal(&program, &command.argv[1..], command.more))
}

/// The name of a command that may start what it is given as arguments, as wrappers do: that is not described.
fn may_start_arguments(command: &Invocation) -> Option<String> {
    let name = command.argv.first()?.known()?;
    let starts =
        !name.contains('/') && (program::is_opaque(&name) || program::starts_others(&name)) && !is_shell(&name);
    starts.then(|| name.into_owned())
}

/// Whether a text for another program holds the name of this one where a command could start: at its
/// beginning, behind what separates commands or marks one, or anywhere if it is `given` as one.
fn holds_command(text: &str, program: &str, given: bool) -> bool {
    const STARTERS: &[&str] = &[
        "spawn",
        "shell",
        "exec",
        "system",
        "run",
        "shell-command",
        "script",
        "exec:",
        "system:",
    ];
    let mut starts = text.contains(char::is_whitespace) || text.contains(['=', ':', '!']);
    let mut word = String::new();
    for character in text.chars().chain([' ']) {
        let separates = ";&|()`!=:'\"\n{".contains(character);
        if !separates && !character.is_whitespace() {
            word.push(character);
            continue;
        }
        if !word.is_empty() {
            if (starts || given) && word.rsplit('/').next() == Some(program) {
                return true;
            }
            // `.shell` of sqlite, `\\!` of others, `:!` of editors.
            let name = word.trim_start_matches(['.', '\\', ':']).to_lowercase();
            starts = STARTERS.contains(&name.as_str());
            word.clear();
        }
        starts |= separates;
    }
    false
}

/// Whether a command brings no name about but those of its own words: `cp -r src/. .` makes others.
fn makes_what_it_names(command: &Invocation) -> bool {
    let Some(name) = command.program() else { return false };
    let words = &command.argv[1..];
    let dashed = |word: &Word| word.known().is_none_or(|path| path.contains("/-"));
    match name.as_str() {
        "touch" | "mkdir" | "tee" | "rm" | "rmdir" | "unlink" | "chmod" | "chown" | "chgrp" | "truncate" | "sed"
        | "dd" => true,
        "cp" | "mv" | "ln" | "install" => !words.iter().any(|word| {
            let whole = word
                .known()
                .is_some_and(|text| text.starts_with('-') && text.contains(['r', 'R', 'a']) || text.ends_with("/."));
            whole || dashed(word)
        }),
        _ => false,
    }
}

/// Which commands could make names that begin with a dash: `None` stands for what is no command's own doing.
fn makers(reading: &Reading) -> BTreeSet<Option<usize>> {
    let makes = |effect: &&Effect| match &effect.action {
        Action::Writes(word) => {
            let names_it = effect.via == Via::Redirection
                || effect
                    .by
                    .and_then(|by| reading.commands.get(by))
                    .is_some_and(makes_what_it_names);
            !names_it
                || word
                    .known()
                    .is_none_or(|path| path.split('/').any(|part| part.starts_with('-')))
        }
        Action::Changes(_) | Action::RunsFile(_) | Action::Network(_) | Action::Doubt(..) => true,
        Action::Reads(_)
        | Action::Names(_)
        | Action::Renames(_)
        | Action::Walks(_)
        | Action::InParts(_)
        | Action::Revision(_)
        | Action::Code(_)
        | Action::Mentions(_)
        | Action::MaybeOption(..) => false,
    };
    // A command's own changes come after its words are made.
    let by = |effect: &Effect| match &effect.action {
        Action::Writes(_) | Action::Changes(_) => effect.by,
        _ => None,
    };
    reading.effects.iter().filter(makes).map(by).collect()
}

/// A command in whose wildcards no name is taken for an option, if there are no such names where it stands.
fn undashed<'a>(
    reading: &'a Reading,
    at: usize,
    facts: &Facts,
    makers: &BTreeSet<Option<usize>>,
) -> Cow<'a, Invocation> {
    let mut command = Cow::Borrowed(&reading.commands[at]);
    let could_be = |word: &Word| word.fields == Fields::Glob && word.is_dashed() == Known::Maybe;
    let made = makers.iter().any(|maker| *maker != Some(at));
    if facts.dashed_names == Some(false)
        && reading.bases.is_empty()
        && !made
        && command.argv.iter().skip(1).any(could_be)
    {
        for word in command.to_mut().argv.iter_mut().skip(1).filter(|word| could_be(word)) {
            word.atoms = std::iter::once(Atom::Text("./".to_owned()))
                .chain(word.atoms.iter().cloned())
                .collect();
        }
    }
    command
}

/// Denied programs that a text asks the path of, where it runs a file that could be a copy of one.
fn copies(reading: &Reading, entries: &[Entry]) -> Vec<Finding> {
    let runs = |effect: &Effect| matches!(effect.action, Action::RunsFile(_));
    if !reading.effects.iter().any(runs) {
        return Vec::new();
    }
    let asks = |command: &&Invocation| {
        command
            .program()
            .is_some_and(|name| matches!(name.as_str(), "which" | "type" | "command" | "whereis" | "hash"))
    };
    let named = |command: &Invocation| {
        let words: Vec<String> = command.argv[1..]
            .iter()
            .filter_map(Word::known)
            .map(String::from)
            .collect();
        entries
            .iter()
            .filter_map(|entry| entry.tokens.first())
            .find(|token| words.iter().any(|word| Some(word.as_str()) == token.rsplit('/').next()))
    };
    let finding = |command: &Invocation| {
        let because = format!(
            "it asks where `{}` is, which a rule names, and runs a file that could be that",
            named(command)?
        );
        Some(Finding::new(Ask, command.shown(), command.span, because))
    };
    reading.commands.iter().filter(asks).filter_map(finding).collect()
}

pub(in crate::policy) fn judge(reading: &Reading, entries: &[Entry], facts: &Facts) -> Vec<Finding> {
    let mut findings = Vec::new();
    if entries.is_empty() {
        return findings;
    }
    let makers = makers(reading);
    for at in 0..reading.commands.len() {
        let command = &*undashed(reading, at, facts, &makers);
        let program = command.program();
        let taken_apart = taken_apart(command);
        let wrapper = may_start_arguments(command);
        for entry in entries {
            let named = &entry.named;
            match entry.matches(taken_apart.as_ref()) {
                Known::Yes => findings.push(Finding::new(
                    Deny,
                    command.shown(),
                    command.span,
                    format!("`{named}` is denied"),
                )),
                // A name that is not known at all has a doubt of its own.
                Known::Maybe if program.is_some() => {
                    findings.push(Finding::new(
                        Ask,
                        command.shown(),
                        command.span,
                        format!("it could turn out to be `{named}`, which is denied"),
                    ));
                }
                Known::Maybe | Known::No => {
                    if let Some(word) = wrapper.as_deref().and_then(|name| entry.started_by(name, command)) {
                        let because =
                            format!("what this program does is not known, and it is given `{named}`, which is denied");
                        findings.push(Finding::new(Ask, command.shown(), word, because));
                    }
                }
            }
        }
    }
    findings.extend(copies(reading, entries));
    for effect in &reading.effects {
        match &effect.action {
            // A denied program under another name.
            Action::Reads(word)
                if effect
                    .by
                    .and_then(|by| reading.commands.get(by))
                    .is_some_and(program::names_what_it_changes) =>
            {
                let denied = entries.iter().find(|entry| {
                    let program = entry.program();
                    word.known().is_some_and(|path| {
                        path.starts_with('/') && path.contains("bin/") && path.rsplit('/').next() == program
                    })
                });
                if let Some(entry) = denied {
                    let because = format!("it gives `{}`, which is denied, another name", entry.named);
                    findings.push(Finding::new(Ask, effect.object.clone(), effect.span, because));
                }
            }
            // What a program that may start things is fed, in the text itself.
            Action::Code(word) => {
                let Some(text) = word.known() else { continue };
                let by = effect.by.and_then(|by| reading.commands.get(by));
                if by.and_then(may_start_arguments).is_none() {
                    continue;
                }
                let holds = |entry: &&Entry| entry.program().is_some_and(|name| holds_command(&text, name, false));
                if let Some(entry) = entries.iter().find(holds) {
                    let named = &entry.named;
                    let because =
                        format!("what this program does is not known, and it is fed `{named}`, which is denied");
                    findings.push(Finding::new(Ask, effect.object.clone(), effect.span, because));
                }
            }
            Action::Doubt(Doubt::Launch | Doubt::Setting, because) => {
                findings.push(Finding::new(Ask, effect.object.clone(), effect.span, because.clone()))
            }
            Action::Reads(_)
            | Action::Names(_)
            | Action::Renames(_)
            | Action::Walks(_)
            | Action::InParts(_)
            | Action::Writes(_)
            | Action::Revision(_)
            | Action::Changes(_)
            | Action::RunsFile(_)
            | Action::Mentions(_)
            | Action::MaybeOption(..)
            | Action::Network(_)
            | Action::Doubt(
                Doubt::Program
                | Doubt::Project
                | Doubt::Argument
                | Doubt::Variable
                | Doubt::Loading
                | Doubt::Delegate
                | Doubt::Environment,
                _,
            ) => {}
        }
    }
    findings
}
