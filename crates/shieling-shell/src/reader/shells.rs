//! Shells as programs: the text that they are given to run, and where it comes from.

use super::run::Run;
use super::source::Place;
use super::{Input, Reader};
use crate::reading::{Deed, Doubt, Via};
use crate::screen::Unreadable;
use crate::span::Span;
use crate::word::{Fields, Known, Word};

/// How many readings of one text are followed.
const MAX_TEXTS: usize = 8;

impl Reader<'_> {
    /// A shell: its text, its file, or its input.
    pub(super) fn shell(&mut self, run: &Run) -> Result<(), Unreadable> {
        let mut args = run.args.iter();
        let (mut text_follows, mut from_input, mut interactive) = (false, false, false);
        let mut operand = None;
        if run.name == "zsh" {
            // Its wildcards and names can run code in ways that bash does not have.
            self.doubt(
                Doubt::Program,
                &run.name,
                "`zsh` reads words in ways of its own",
                run.span,
                Some(run.index),
            );
        }
        while let Some(word) = args.next() {
            let Some(option) = word.known() else {
                if word.is_dashed() != Known::No || word.fields != Fields::One {
                    self.unknown_text(word, run);
                }
                operand = Some(word);
                break;
            };
            match option.as_ref() {
                "--" | "-" => {
                    operand = args.next();
                    break;
                }
                "--help" | "--version" => return Ok(()),
                "--rcfile" | "--init-file" => {
                    if let Some(file) = args.next() {
                        self.shell_file(file, run)?;
                    }
                }
                option if option.starts_with("--") => {}
                // It only looks whether the text parses.
                option if option.starts_with('-') && option.contains('n') && run.name != "zsh" => {
                    // Where it does not, the line that is wrong is shown.
                    for file in args {
                        let (object, by) = (file.shown(), Some(run.index));
                        self.effect(Deed::Reads(file.clone()), object, file.span, by, Via::Operand);
                    }
                    return Ok(());
                }
                option if option.starts_with(['-', '+']) => {
                    if option.starts_with('-') && option.contains('i') {
                        let because = "an interactive shell runs its start-up files and writes its history".to_owned();
                        self.doubt(Doubt::Program, option, because, word.span, Some(run.index));
                        interactive = true;
                    }
                    text_follows |= option.starts_with('-') && option.contains('c');
                    from_input |= option.starts_with('-') && option.contains('s');
                    // `-o NAME` and `-O NAME`, also at the end of a cluster.
                    for _ in option.chars().filter(|flag| matches!(flag, 'o' | 'O')) {
                        args.next();
                    }
                }
                _ => {
                    operand = Some(word);
                    break;
                }
            }
        }
        match operand {
            // There, an alias stands for a command from the next line on.
            Some(text) if text_follows && interactive && text.known().is_none_or(|text| text.contains("alias")) => {
                self.unknown_text(&text.clone(), run);
                Ok(())
            }
            Some(text) if text_follows => self.shell_text(&text.clone(), Some(run.index)),
            Some(file) if !from_input => self.shell_file(&file.clone(), run),
            Some(_) | None if text_follows || run.more => {
                self.doubt(
                    Doubt::Launch,
                    self.written(run.span),
                    format!("`{}` is given its text from data", run.name),
                    run.span,
                    Some(run.index),
                );
                Ok(())
            }
            Some(_) | None => self.shell_input(run),
        }
    }

    /// A shell that reads its commands from standard input.
    pub(crate) fn shell_input(&mut self, run: &Run) -> Result<(), Unreadable> {
        match self.present_input() {
            Input::Text(words) => words.iter().try_for_each(|word| self.shell_text(word, Some(run.index))),
            Input::File(file) => self.shell_file(&file, run),
            // Also where nothing is attached yet: somebody may write to it later.
            Input::Nothing | Input::Names(..) | Input::Unknown => {
                let object = self.written(run.span);
                self.doubt(
                    Doubt::Launch,
                    object,
                    format!("`{}` runs whatever it is fed, which cannot be read here", run.name),
                    run.span,
                    Some(run.index),
                );
                Ok(())
            }
        }
    }

    /// A file of shell text.
    pub(super) fn shell_file(&mut self, file: &Word, run: &Run) -> Result<(), Unreadable> {
        let known = file.known();
        let descriptor = known.as_deref().is_none_or(|path| {
            path.starts_with("/dev/fd/") || path.starts_with("/proc/") || matches!(path, "/dev/stdin" | "/dev/tty")
        });
        match known.as_deref() {
            Some("/dev/stdin" | "/dev/fd/0" | "/proc/self/fd/0") => self.shell_input(run),
            Some("/dev/null") => Ok(()),
            _ if descriptor => {
                self.unknown_text(file, run);
                Ok(())
            }
            _ => {
                self.effect(
                    Deed::RunsFile(file.clone()),
                    file.shown(),
                    file.span,
                    Some(run.index),
                    Via::Operand,
                );
                Ok(())
            }
        }
    }

    /// Text that a shell runs, perhaps not fully known.
    pub(crate) fn shell_text(&mut self, text: &Word, by: Option<usize>) -> Result<(), Unreadable> {
        let alternatives = text.alternatives(MAX_TEXTS).unwrap_or_default();
        let all_known = !alternatives.is_empty() && alternatives.iter().all(|one| one.known().is_some());
        if !all_known {
            self.doubt(
                Doubt::Launch,
                if text.written.is_empty() {
                    self.written(text.span)
                } else {
                    text.written.to_string()
                },
                "a shell runs this text, and not all of it can be read here",
                text.span,
                by,
            );
        }
        for one in &alternatives {
            let Some(known) = one.known() else { continue };
            if known.trim().is_empty() {
                continue;
            }
            let known = known.into_owned();
            let place = self.place_of(&known, text.span);
            // When it runs is not followed.
            self.here = None;
            let outer = self.input.clone();
            let result = self.deeper(|reader| reader.scope(|reader| reader.text(&known, place)));
            self.input = outer;
            result?;
        }
        Ok(())
    }

    /// Where a text that was quoted stands, so that what is in it can be pointed at.
    fn place_of(&self, text: &str, span: Span) -> Place {
        let written = self.written(span);
        match written.find(text) {
            Some(at) => Place::From(span.start + at),
            None => Place::Within(span),
        }
    }
}
