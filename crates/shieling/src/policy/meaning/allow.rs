//! Allow list: only the commands that an entry names may be launched, at any depth.

use shieling_shell::{Action, Doubt, Invocation, Kind, Reading, Span, Via, program};

use super::paths::is_harmless_device;
use super::{Finding, not_an_option};
use crate::policy::verdict::Decision::{Ask, Deny};

/// Builtins that only steer the shell itself; they launch nothing and print nothing.
const STEERING: &[&str] = &[
    ":",
    "[",
    "break",
    "cd",
    "continue",
    "declare",
    "dirs",
    "exit",
    "export",
    "false",
    "getopts",
    "let",
    "local",
    "mapfile",
    "popd",
    "pushd",
    "read",
    "readarray",
    "readonly",
    "return",
    "set",
    "shift",
    "shopt",
    "test",
    "times",
    "true",
    "typeset",
    "umask",
    "unset",
    "wait",
];

pub(in crate::policy) fn judge(reading: &Reading, entries: &[Vec<String>]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let allowed = allowed(entries);
    for command in &reading.commands {
        if matched(command, entries).is_some() || steers(command) {
            continue;
        }
        let shown = command.shown();
        findings.push(match command.program() {
            Some(_) => Finding::new(
                Deny,
                shown,
                command.span,
                "no entry of the allow list names this command",
            )
            .instead(allowed.clone()),
            None => Finding::new(
                Ask,
                shown,
                command.span,
                "which command this is cannot be read from the text",
            ),
        });
    }
    for effect in &reading.effects {
        let by = effect.by.and_then(|index| reading.commands.get(index));
        let (object, span) = (effect.object.clone(), effect.span);
        let granted = || {
            by.and_then(|command| matched(command, entries))
                .is_some_and(|end| span.end <= end.end)
        };
        match &effect.action {
            Action::Writes(word) if effect.via == Via::Redirection && !is_harmless_device(word) => {
                findings.push(Finding::new(
                    Deny,
                    object,
                    span,
                    "no entry of an allow list grants a redirection that writes",
                ));
            }
            Action::Network(_) if effect.via == Via::Redirection => {
                findings.push(Finding::new(
                    Deny,
                    object,
                    span,
                    "no entry of an allow list grants a connection of the shell's own",
                ));
            }
            Action::Writes(word) if !is_harmless_device(word) && otherwise_reads(by) && !granted() => {
                findings.push(Finding::new(
                    Ask,
                    object,
                    span,
                    "it makes a program write that an entry was likely to mean for reading",
                ));
            }
            Action::Doubt(Doubt::Program | Doubt::Project | Doubt::Setting, because)
                if effect.via == Via::Option && !granted() =>
            {
                findings.push(Finding::new(Ask, object, span, because.clone()));
            }
            Action::MaybeOption(word, true) => {
                findings.push(
                    Finding::new(
                        Ask,
                        object,
                        span,
                        "it could turn out to be an option that starts another program",
                    )
                    .instead(not_an_option(word)),
                );
            }
            Action::Doubt(Doubt::Launch | Doubt::Environment, because) => {
                findings.push(Finding::new(Ask, object, span, because.clone()))
            }
            Action::Doubt(Doubt::Variable | Doubt::Loading | Doubt::Delegate, because) => {
                findings.push(Finding::new(
                    Deny,
                    object,
                    span,
                    format!("{because}, which no entry grants"),
                ));
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
            | Action::Code(_)
            | Action::Mentions(_)
            | Action::MaybeOption(..)
            | Action::Network(_)
            | Action::Doubt(Doubt::Program | Doubt::Project | Doubt::Argument | Doubt::Setting, _) => {}
        }
    }
    findings
}

/// The stretch of the command that an entry names, if one does.
fn matched(command: &Invocation, entries: &[Vec<String>]) -> Option<Span> {
    entries.iter().find_map(|entry| {
        let words = command.argv.get(..entry.len())?;
        let same = words
            .iter()
            .zip(entry)
            .all(|(word, token)| word.known().as_deref() == Some(token.as_str()));
        same.then(|| {
            words
                .last()
                .map(|word| command.span.to(word.span))
                .map(|span| Span::new(span.start, words[entry.len() - 1].span.end))
        })
        .flatten()
    })
}

fn steers(command: &Invocation) -> bool {
    match command.kind {
        Kind::Function => true,
        Kind::Builtin => command.program().is_some_and(|name| STEERING.contains(&name.as_str())),
        Kind::Program => false,
    }
}

/// Whether the program writes only through what it was told here: plain, it reads.
fn otherwise_reads(command: Option<&Invocation>) -> bool {
    command.is_some_and(program::reads_by_itself)
}

fn allowed(entries: &[Vec<String>]) -> String {
    let named: Vec<String> = entries
        .iter()
        .take(8)
        .map(|entry| format!("`{}`", entry.join(" ")))
        .collect();
    let more = if entries.len() > named.len() {
        format!(" and {} more", entries.len() - named.len())
    } else {
        String::new()
    };
    format!("allowed are {}{more}", named.join(", "))
}
