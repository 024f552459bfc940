//! `shieling why`: a verdict drawn into the command it is about. Runs nothing.

use std::fmt::{self, Write as _};
use std::io::{self, IsTerminal as _};

use miette::{
    Diagnostic, GraphicalReportHandler, GraphicalTheme, LabeledSpan, SourceCode, ThemeCharacters, ThemeStyles,
};
use serde::Serialize;
use shieling::policy::{Decision, EffectKind, Verdict};

use crate::escape::{self, Escaped};
use crate::options::{Chosen, Why};
use crate::plan::{Plan, Purpose};
use crate::quote;
use crate::run::{self, Library};
use crate::words::{self, Failure};

/// A longer command is not drawn, only talked about.
const LONGEST_DRAWING: usize = 4 * 1024;

/// A verdict as one object.
#[derive(Debug, Serialize)]
struct Judged<'a> {
    #[serde(flatten)]
    verdict: &'a Verdict,
    /// The environment that it was judged for.
    environment: String,
    /// What holds for `exec`, where nobody named an environment and its default is another one.
    exec: Option<ByExec>,
}

/// The decision on the same command in the environment in which `exec` runs it.
#[derive(Debug, Serialize)]
struct ByExec {
    environment: String,
    decision: Decision,
}

/// Judges the command and says with which status to exit.
pub(crate) fn why(options: &Why) -> Result<u8, Failure> {
    let plan = run::plan(&options.source, Purpose::Judge)?;
    let library = Library::on_paper(&plan)?;
    let command = library.command(&plan, &quote::command_text(&options.command))?;
    let verdict = library.judge(&command);
    // A second opinion: where it cannot be had, the first one stands.
    let exec = by_exec(options, &plan).unwrap_or_default();
    if options.json {
        crate::print::print_json(&Judged {
            verdict: &verdict,
            environment: plan.env.to_string(),
            exec,
        })?;
    } else {
        let mut text = explain(command.text(), &verdict, Look::of_stdout());
        if verdict.is_unreadable() {
            let said = "where bash cannot read it either, nothing is asked: it gives bash's error, and runs nothing";
            line(&mut text, "exec", said);
        }
        if let Some(ByExec { environment, decision }) = exec {
            let decision = words::decision(decision);
            line(
                &mut text,
                "judged",
                &format!(
                    "for `--env {}`; for `--env {environment}`, where `exec` runs it: {decision}",
                    plan.env
                ),
            );
        }
        crate::print::write_all(io::stdout().lock(), &text)?;
    }
    Ok(status(verdict.decision))
}

/// What holds for `exec`, which has another default.
fn by_exec(options: &Why, plan: &Plan) -> Result<Option<ByExec>, Failure> {
    if plan.env_named {
        return Ok(None);
    }
    let mut source = options.source.clone();
    let default = Purpose::Exec.default_environment();
    source.settings.env = Some(Chosen::Here(default));
    let plan = run::plan(&source, Purpose::Judge)?;
    let library = Library::on_paper(&plan)?;
    let command = library.command(&plan, &quote::command_text(&options.command))?;
    Ok(Some(ByExec {
        environment: default.to_string(),
        decision: library.judge(&command).decision,
    }))
}

fn status(decision: Decision) -> u8 {
    match decision {
        Decision::Allow => 0,
        Decision::Ask => 3,
        Decision::Deny => 4,
    }
}

/// How the drawing may look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Look {
    /// Colours, for a terminal.
    Coloured,
    /// Lines only, for a pipe or under `NO_COLOR`.
    Plain,
}

impl Look {
    fn of_stdout() -> Self {
        let unwanted = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        if io::stdout().is_terminal() && !unwanted("NO_COLOR") && !dumb {
            Self::Coloured
        } else {
            Self::Plain
        }
    }
}

/// The verdict in one line, the command with its parts marked, then what would be allowed instead
/// and what the command would do.
fn explain(text: &str, verdict: &Verdict, look: Look) -> String {
    let mut page = format!("{}: {}\n", words::decision(verdict.decision), headline(text, verdict));
    let mut reasons: Vec<_> = verdict.reasons.iter().collect();
    // The strictest first, since it is the one that decides.
    reasons.sort_by_key(|reason| (std::cmp::Reverse(reason.decision), reason.span));
    if text.len() <= LONGEST_DRAWING && reasons.iter().any(|reason| reason.span.is_some()) {
        page.push_str(&drawing(text, verdict, look));
    }
    for reason in &reasons {
        line(&mut page, words::decision(reason.decision), &words::sentence(reason));
        line(&mut page, "rule", &escape::line(&reason.rule));
        if let Some(instead) = &reason.instead {
            line(&mut page, "instead", &escape::line(instead));
        }
    }
    for effect in &verdict.effects {
        line(
            &mut page,
            effect_word(effect.kind),
            &escape::headline(&effect.object, 200),
        );
    }
    page
}

fn headline(text: &str, verdict: &Verdict) -> String {
    let shown = escape::headline(text, 100);
    let strictest = verdict
        .reasons
        .iter()
        .filter(|reason| reason.decision == verdict.decision)
        .count();
    match (verdict.decision, strictest) {
        (Decision::Allow, _) => format!("`{shown}` may run"),
        (Decision::Ask, 1) => format!("`{shown}` needs a yes, for 1 reason"),
        (Decision::Ask, count) => format!("`{shown}` needs a yes, for {count} reasons"),
        (Decision::Deny, 1) => format!("`{shown}` may not run, for 1 reason"),
        (Decision::Deny, count) => format!("`{shown}` may not run, for {count} reasons"),
    }
}

fn line(page: &mut String, label: &str, text: &str) {
    page.push_str(&format!("{label:<8} {text}\n"));
}

fn effect_word(kind: EffectKind) -> &'static str {
    match kind {
        EffectKind::Reads => "reads",
        EffectKind::Writes => "writes",
        EffectKind::Runs => "runs",
        EffectKind::Network => "network",
        EffectKind::Unknown => "unknown",
    }
}

fn drawing(text: &str, verdict: &Verdict, look: Look) -> String {
    let escaped = Escaped::new(text);
    let labels = verdict.reasons.iter().filter_map(|reason| {
        let span = escaped.span(reason.span?);
        Some(LabeledSpan::new(
            Some(escape::line(&reason.rule)),
            span.start,
            span.end - span.start,
        ))
    });
    let picture = Picture {
        labels: labels.collect(),
        text: escaped.text.clone(),
    };
    let styles = match look {
        Look::Coloured => ThemeStyles::ansi(),
        Look::Plain => ThemeStyles::none(),
    };
    let theme = GraphicalTheme {
        characters: ThemeCharacters::unicode(),
        styles,
    };
    let mut drawn = String::new();
    let done = GraphicalReportHandler::new_themed(theme)
        .with_width(100)
        .with_context_lines(usize::MAX >> 1)
        .without_cause_chain()
        .render_report(&mut drawn, &picture);
    match done {
        // The first line would hold a headline, which stands above already.
        Ok(()) => drawn
            .lines()
            .filter(|line| !line.trim().is_empty())
            .skip(1)
            .fold(String::new(), |mut page, line| {
                // Writing to a string cannot fail.
                let _ = writeln!(page, "{}", line.trim_end());
                page
            }),
        // Without the picture all of it is still told in words.
        Err(_) => String::new(),
    }
}

/// The command and its marks, in the form that miette draws.
#[derive(Debug)]
struct Picture {
    text: String,
    labels: Vec<LabeledSpan>,
}

impl fmt::Display for Picture {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ok(())
    }
}

impl std::error::Error for Picture {}

impl Diagnostic for Picture {
    fn source_code(&self) -> Option<&dyn SourceCode> {
        Some(&self.text)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        Some(Box::new(self.labels.iter().cloned()))
    }
}

#[cfg(test)]
mod tests {
    use shieling::policy::{EffectSeen, Reason, Span};

    use super::*;

    fn reason(text: &str, part: &str, decision: Decision, rule: &str, because: &str) -> Reason {
        let start = text.find(part).unwrap();
        Reason {
            decision,
            rule: rule.to_owned(),
            object: part.to_owned(),
            span: Some(Span::new(start, start + part.len())),
            because: because.to_owned(),
            instead: None,
        }
    }

    fn verdict(decision: Decision, reasons: Vec<Reason>) -> Verdict {
        Verdict {
            decision,
            reasons,
            commands: Vec::new(),
            effects: Vec::new(),
        }
    }

    #[test]
    fn an_allowed_command_is_one_line_and_its_effects() {
        let mut allowed = verdict(Decision::Allow, Vec::new());
        allowed.effects = vec![EffectSeen {
            kind: EffectKind::Reads,
            object: "notes.txt".to_owned(),
            span: Span::new(4, 13),
        }];
        insta::assert_snapshot!(explain("cat notes.txt", &allowed, Look::Plain), @r"
        allow: `cat notes.txt` may run
        reads    notes.txt
        ");
    }

    #[test]
    fn the_offending_parts_are_marked() {
        let text = "cd src && git push --force | tee log";
        let mut push = reason(
            text,
            "git push --force",
            Decision::Deny,
            "team.toml:14 no-force",
            "rewrites a shared branch",
        );
        push.instead = Some("git push --force-with-lease".to_owned());
        let tee = reason(text, "tee log", Decision::Ask, "readonly", "writes log");
        let page = explain(text, &verdict(Decision::Deny, vec![tee, push]), Look::Plain);
        insta::assert_snapshot!(page);
    }

    #[test]
    fn marks_stay_under_their_part_when_hidden_characters_become_visible() {
        let text = "echo é\u{202e}\u{1b}[2K; rm x\nls";
        let page = explain(
            text,
            &verdict(
                Decision::Deny,
                vec![reason(text, "rm x", Decision::Deny, "readonly", "removes x")],
            ),
            Look::Plain,
        );
        assert!(!page.contains(['\u{202e}', '\u{1b}']), "{page:?}");
        insta::assert_snapshot!(page);
    }

    #[test]
    fn a_long_command_is_told_about_and_not_drawn() {
        let text = format!("rm {}", "x".repeat(LONGEST_DRAWING));
        let page = explain(
            &text,
            &verdict(
                Decision::Deny,
                vec![reason(&text, "rm", Decision::Deny, "readonly", "removes")],
            ),
            Look::Plain,
        );
        assert!(page.len() < 400, "{page}");
    }
}
