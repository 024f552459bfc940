//! Readonly: nothing may change, be it files, repository, processes, clock or network.

use shieling_shell::{Action, Base, Doubt, Fields, Invocation, Reading, Via};

use super::paths::is_harmless_device;
use super::{Finding, not_an_option};
use crate::policy::facts::Facts;
use crate::policy::verdict::Decision::{Ask, Deny};

pub(in crate::policy) fn judge(reading: &Reading, facts: &Facts) -> Vec<Finding> {
    let mut findings = Vec::new();
    let plain = |path: &str| path.trim_start_matches("./").trim_end_matches('/').to_owned();
    let led = reading.bases.iter().any(|base| match base {
        Base::At(directory) => facts.repositories.contains(&plain(directory)),
        Base::Unknown => false,
    });
    if led || facts.repositories.contains(".") {
        let git = |command: &&Invocation| {
            command
                .program()
                .is_some_and(|name| name == "git" || name.starts_with("git-"))
        };
        findings.extend(reading.commands.iter().filter(git).map(|command| {
            let because = "it works in a repository below the workspace's own, whose settings can run programs";
            Finding::new(Ask, command.shown(), command.span, because)
        }));
    }
    for effect in &reading.effects {
        let (object, span) = (effect.object.clone(), effect.span);
        let finding = match &effect.action {
            Action::Reads(_)
            | Action::Names(_)
            | Action::Renames(_)
            | Action::Walks(_)
            | Action::InParts(_)
            | Action::Revision(_)
            | Action::Code(_)
            | Action::Mentions(_) => {
                continue;
            }
            Action::Writes(word) if is_harmless_device(word) => continue,
            Action::Writes(word) if word.known().is_some() => {
                let finding = Finding::new(Deny, object, span, "it writes, and nothing may change here");
                // What `cp` and `tar` write to is what they are for.
                match effect.via {
                    Via::Operand => finding,
                    _ => finding.instead("print the result instead of writing it"),
                }
            }
            Action::Writes(_) => Finding::new(Ask, object, span, "it may write to a file that the text does not name"),
            Action::Changes(what) => {
                let changes = match *what == object {
                    true => "the command sets or changes it".to_owned(),
                    false => format!("it changes {what}"),
                };
                Finding::new(Deny, object, span, format!("{changes}, and nothing may change here"))
            }
            Action::Network(_) => Finding::new(
                Deny,
                object,
                span,
                "it talks to the network, which readonly does not let it",
            ),
            Action::RunsFile(_) => Finding::new(Ask, object, span, "it runs a program whose effects are not known")
                .instead("read the file instead of running it"),
            // What is known of names is known of the directory where the text starts.
            Action::MaybeOption(word, _)
                if (word.fields == Fields::Glob || reading.names_are_plain && word.is_of_names())
                    && facts.dashed_names == Some(false)
                    && reading.bases.is_empty() =>
            {
                continue;
            }
            Action::MaybeOption(word, _) => Finding::new(
                Ask,
                object,
                span,
                "it could turn out to be an option that writes or runs something",
            )
            .instead(not_an_option(word)),
            Action::Doubt(Doubt::Delegate, _) => continue,
            Action::Doubt(
                Doubt::Launch
                | Doubt::Program
                | Doubt::Project
                | Doubt::Argument
                | Doubt::Setting
                | Doubt::Variable
                | Doubt::Loading
                | Doubt::Environment,
                because,
            ) => Finding::new(Ask, object, span, because.clone()),
        };
        findings.push(finding);
    }
    findings
}
