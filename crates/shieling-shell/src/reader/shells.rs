//! Shells as programs: the text that they are given to run, and where it comes from.

use super::run::Run;
use super::source::Place;
use super::{Input, Reader};
use crate::descriptor::{Descriptor, descriptor};
use crate::reading::{Action, Doubt, Via};
use crate::screen::Unreadable;
use crate::span::Span;
use crate::word::{Fields, Known, Word};

/// How many readings of one text are followed.
const MAX_TEXTS: usize = 8;

impl Reader<'_> {
    /// A shell: its text, its file, or its input.
    pub(super) fn shell(&mut self, run: &Run) -> Result<(), Unreadable> {
        let plain_sh = !matches!(run.name.as_str(), "bash" | "rbash");
        self.other_shell(plain_sh, |reader| reader.shell_here(run))
    }

    /// What another shell reads, which knows nothing of what was defined in this one.
    pub(super) fn other_shell(
        &mut self,
        plain_sh: bool,
        inner: impl FnOnce(&mut Self) -> Result<(), Unreadable>,
    ) -> Result<(), Unreadable> {
        let plain_sh = std::mem::replace(&mut self.plain_sh, plain_sh);
        let in_function = std::mem::replace(&mut self.in_function, false);
        let defined = std::mem::take(&mut self.defined);
        let result = inner(self);
        (self.plain_sh, self.in_function, self.defined) = (plain_sh, in_function, defined);
        result
    }

    fn shell_here(&mut self, run: &Run) -> Result<(), Unreadable> {
        let mut args = run.args.iter();
        let (mut text_follows, mut from_input, mut interactive, mut only_parses) = (false, false, false, false);
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
                if word.is_dashed() != Known::No || word.fields != Fields::One || word.prefix().starts_with('+') {
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
                "--posix" => self.shell_option(&Word::text("posix", word.span), run),
                option if option.starts_with("--") => {}
                option if option.starts_with(['-', '+']) => {
                    let sets = option.starts_with('-');
                    if !sets && option.contains('B') {
                        self.shell_option(&Word::text("braceexpand", word.span), run);
                    }
                    if sets && option.contains('i') {
                        let because = "an interactive shell runs its start-up files and writes its history".to_owned();
                        self.doubt(Doubt::Program, option, because, word.span, Some(run.index));
                        interactive = true;
                    }
                    if sets && option.contains(['k', 'H']) {
                        let because = "it changes what the words of later commands mean";
                        self.doubt(Doubt::Launch, option, because, word.span, Some(run.index));
                    }
                    if sets && option.contains('a') {
                        self.exports_all(run);
                    }
                    text_follows |= sets && option.contains('c');
                    from_input |= sets && option.contains('s');
                    // The last one counts. With `-n` it only looks whether the text parses.
                    if option.contains('n') {
                        only_parses = sets;
                    }
                    // `-o NAME` and `-O NAME`, also at the end of a cluster.
                    for _ in option.chars().filter(|flag| matches!(flag, 'o' | 'O')) {
                        let Some(name) = args.next() else { break };
                        match name.known().as_deref() {
                            Some("noexec") => only_parses = sets,
                            None => self.unknown_text(name, run),
                            Some("globskipdots" | "braceexpand") => self.shell_option(name, run),
                            Some(_) if sets => self.shell_option(name, run),
                            Some(_) => {}
                        }
                    }
                }
                _ => {
                    operand = Some(word);
                    break;
                }
            }
        }
        let mut parameters: Vec<Word> = args.cloned().collect();
        if run.more {
            self.forget_positional();
        } else if text_follows {
            // Behind the text stands the name of the shell.
            self.positional(parameters.get(1..).unwrap_or_default());
        } else {
            parameters.splice(..0, operand.filter(|_| from_input).cloned());
            self.positional(&parameters);
        }
        if only_parses && !interactive && run.name != "zsh" && !run.more {
            // Where it does not, the line that is wrong is shown.
            if let Some(file) = operand.filter(|_| !text_follows) {
                let by = Some(run.index);
                self.effect_on(Action::Reads, file, by, Via::Operand);
            }
            return Ok(());
        }
        match operand {
            // There, an alias stands for a command from the next line on.
            Some(text) if text_follows && interactive && text.known().is_none_or(|text| text.contains("alias")) => {
                self.unknown_text(&text.clone(), run);
                Ok(())
            }
            Some(text) if text_follows => self.own_text(&text.clone(), Some(run.index)),
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
            Some(_) | None => self.input_of_shell(run),
        }
    }

    /// A shell that a program starts, which is `sh` or the user's own, and reads its commands from standard input.
    pub(crate) fn shell_input(&mut self, run: &Run) -> Result<(), Unreadable> {
        self.other_shell(true, |reader| reader.input_of_shell(run))
    }

    /// A shell that reads its commands from standard input.
    fn input_of_shell(&mut self, run: &Run) -> Result<(), Unreadable> {
        let input = self.present_input();
        if let Input::Text(words) = input {
            // It reads the text as it goes, from where its commands read, too.
            self.uses_input = false;
            self.input = Input::Altered;
            words.iter().try_for_each(|word| self.own_text(word, Some(run.index)))?;
            self.input = Input::Text(words);
            if self.uses_input {
                let because = format!("`{}` reads its commands from where one of them may read, too", run.name);
                self.doubt_command(run, because);
            }
            self.uses_input = true;
            return Ok(());
        }
        self.uses_input = true;
        match input {
            Input::File(file) => self.shell_file(&file, run),
            // Also where nothing is attached yet: somebody may write to it later.
            Input::Nothing | Input::Names(_) | Input::Text(_) | Input::Altered | Input::Unknown => {
                self.runs_what_it_is_fed(run);
                Ok(())
            }
        }
    }

    /// A file of shell text.
    pub(super) fn shell_file(&mut self, file: &Word, run: &Run) -> Result<(), Unreadable> {
        let known = file.known();
        let descriptor = known.as_deref().and_then(descriptor);
        let unknown = descriptor.is_some()
            || known
                .as_deref()
                .is_none_or(|path| path.starts_with("/proc/") || path == "/dev/tty");
        match known.as_deref() {
            _ if descriptor == Some(Descriptor::Number(0)) => self.input_of_shell(run),
            Some("/dev/null") => Ok(()),
            _ if unknown => {
                self.unknown_text(file, run);
                Ok(())
            }
            _ => {
                self.effect_on(Action::RunsFile, file, Some(run.index), Via::Operand);
                Ok(())
            }
        }
    }

    /// Text that a program has a shell run, perhaps not fully known: that shell is `sh`, or the user's own.
    pub(crate) fn shell_text(&mut self, text: &Word, by: Option<usize>) -> Result<(), Unreadable> {
        self.other_shell(true, |reader| reader.own_text(text, by))
    }

    /// Text that the present shell runs, perhaps not fully known.
    pub(super) fn own_text(&mut self, text: &Word, by: Option<usize>) -> Result<(), Unreadable> {
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
