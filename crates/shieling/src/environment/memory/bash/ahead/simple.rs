//! One call: what it reads of the input that it shares.

use bashkit::parser::{Command, SimpleCommand, Word, WordPart};

use super::flow::Flow;
use super::{Called, NESTED, Seen, Walk, is_fed};
use crate::environment::memory::bash::live::{unable, wants};
use crate::environment::memory::bash::parsed;

/// How often a function is gone through anew, in each kind of place.
const TIMES: u8 = 4;

pub(super) use unable::literal;

/// The words behind a name, `$` for what is only known as the text runs.
struct Args {
    texts: Vec<String>,
    /// Whether each stands for one word.
    sure: bool,
}

impl Args {
    fn of(words: &[Word]) -> Self {
        let mut texts: Vec<String> = Vec::with_capacity(words.len());
        let mut sure = true;
        for word in words {
            let text = literal(word).unwrap_or("$");
            // The value of an option is one word, quoted or not.
            let value = texts.last().is_some_and(|before| before.starts_with('-'));
            sure &= literal(word).is_some() || is_one(word, value);
            texts.push(declaration(word).unwrap_or(text).to_owned());
        }
        Self { texts, sure }
    }

    fn are_literal(&self) -> bool {
        !self.texts.iter().any(|text| text == "$")
    }
}

/// The name in a word such as `a=$b` or `a=(…)`, with what is behind it cut off.
fn declaration(word: &Word) -> Option<&str> {
    match word.parts.first()? {
        WordPart::Literal(text) if word.parts.len() > 1 => Some(&text[..=text.find('=')?]),
        WordPart::CompoundAssignment { name, .. } => Some(name),
        _ => None,
    }
}

fn is_one(word: &Word, value: bool) -> bool {
    let several = word.parts.iter().any(|part| match part {
        WordPart::Variable(name) => name == "@" || name == "*",
        WordPart::ArrayAccess { index, .. } => index == "@" || index == "*",
        WordPart::Substring { name, .. } | WordPart::ParameterExpansion { name, .. } => name.contains(['@', '*']),
        _ => false,
    });
    !several && (word.quoted || value)
}

/// What a call is given as a text, if it is.
pub(super) fn text_of(name: &str, args: &[String]) -> Option<String> {
    match name {
        "eval" => Some(args.join(" ")),
        "bash" | "sh" => {
            let flag = |arg: &String| arg.starts_with('-') && !arg.starts_with("--") && arg.contains('c');
            args.get(args.iter().position(flag)? + 1).cloned()
        }
        _ => None,
    }
}

/// Whether a command is one call of a program that fails only if it cannot read.
pub(super) fn seldom_fails(command: &Command) -> bool {
    let Command::Simple(simple) = command else { return false };
    let searching = [
        "grep", "egrep", "fgrep", "cmp", "awk", "gawk", "sed", "xargs", "patch", "tar", "bc",
    ];
    literal(&simple.name).is_some_and(|name| wants::reads(name, &[]) && !searching.contains(&name))
}

impl<'n> Walk<'n> {
    pub(super) fn in_function(&self) -> bool {
        !self.running.is_empty()
    }

    pub(super) fn simple(&mut self, simple: &'n SimpleCommand) -> Seen {
        simple
            .assignments
            .iter()
            .try_for_each(|assignment| self.assignment(assignment))?;
        self.word(&simple.name)?;
        self.words(&simple.args)?;
        self.redirects(&simple.redirects)?;
        let Some(name) = literal(&simple.name) else {
            return Ok(());
        };
        let fed = is_fed(&simple.redirects);
        if name == "exec" && simple.args.is_empty() {
            if fed {
                self.input = Some(Flow::fresh());
            }
            return Ok(());
        }
        let args = Args::of(&simple.args);
        if fed {
            self.fed(|walk| walk.called(name, &args)).map(|_| ())
        } else {
            self.called(name, &args)
        }
    }

    fn called(&mut self, name: &'n str, args: &Args) -> Seen {
        let earlier = || self.place.state().and_then(|state| state.functions.get(name));
        let body = self.functions.get(name).copied();
        match body.or_else(|| earlier().map(|function| &*function.body)) {
            Some(body) => self.function(name, body),
            None => self.call(name, &args.texts, args, false),
        }
    }

    /// A call of what is no function; behind another program such as `env` if it is `wrapped`.
    fn call(&mut self, name: &str, texts: &[String], args: &Args, wrapped: bool) -> Seen {
        if let Some(text) = text_of(name, texts) {
            return if args.are_literal() {
                self.text(name, &text)
            } else {
                Ok(())
            };
        }
        let other = |letter: &str| texts.iter().any(|text| text.starts_with(letter));
        match name {
            "exit" | "return" => {
                let gone = self.input.as_mut().map(Flow::leave);
                self.left = Flow::either(self.left.take(), gone);
                Ok(())
            }
            "break" | "continue" => {
                let levels = texts.first().and_then(|levels| levels.parse().ok()).unwrap_or(1);
                let at = self.loops.len().saturating_sub(levels);
                let Some(around) = self.loops.get_mut(at) else {
                    return Ok(());
                };
                let gone = self.input.as_mut().map(Flow::leave);
                let way = if name == "break" {
                    &mut around.broken
                } else {
                    &mut around.continued
                };
                *way = Flow::either(way.take(), gone);
                Ok(())
            }
            "read" if other("-u") => Ok(()),
            "read" if wrapped => self.takes(name),
            "read" => self.takes_line(name),
            "mapfile" | "readarray" => {
                if let Some(name) = texts.last().filter(|last| !last.starts_with('-')) {
                    self.assigned(name, "`mapfile`")?;
                }
                if other("-u") { Ok(()) } else { self.takes(name) }
            }
            "getopts" => texts.get(1).map_or(Ok(()), |name| self.assigned(name, "`getopts`")),
            "let" => texts.iter().try_for_each(|text| self.arithmetic(text)),
            "readonly" | "declare" | "typeset" | "local" => {
                self.declared(name, texts);
                Ok(())
            }
            "bash" | "sh" if unable::reads_commands(texts) => self.takes(name),
            "command" | "builtin" | "exec" | "nohup" | "env" | "timeout" | "nice" => {
                if let Some(at) = inner(name, texts) {
                    self.call(&texts[at], &texts[at + 1..], args, true)?;
                }
                Ok(())
            }
            _ if args.sure && wants::reads(name, texts) => self.takes(name),
            _ => Ok(()),
        }
    }

    /// A function gets a copy of the input, and whatever it reads is still there for those behind it.
    fn function(&mut self, name: &'n str, body: &'n Command) -> Seen {
        if self.running.contains(&name) || self.running.len() > NESTED {
            return Ok(());
        }
        let fed = self.input.is_some();
        let mark = self.fixed.mark();
        let known = self.called.get(&(name, fed)).copied();
        let reads = match known.filter(|known| known.fixed == mark || known.times >= TIMES) {
            Some(known) => known.reads,
            None => {
                self.running.push(name);
                let reads = if fed {
                    self.fed(|walk| walk.one(body))?
                } else {
                    self.leavable(|walk| walk.one(body))?;
                    false
                };
                self.running.pop();
                self.fixed.leave_function(mark);
                let called = Called {
                    fixed: mark,
                    reads,
                    times: known.map_or(1, |known| known.times + 1),
                };
                self.called.insert((name, fed), called);
                reads
            }
        };
        if reads { self.takes(name) } else { Ok(()) }
    }

    /// A text that is given to `eval` or a shell, which get a copy of the input as functions do.
    fn text(&mut self, name: &str, text: &str) -> Seen {
        if self.nested >= NESTED {
            return Ok(());
        }
        // What cannot be read is told by whoever runs it.
        let Ok(script) = parsed(text) else { return Ok(()) };
        let same = name == "eval";
        let mut inner = Walk::new(self.place, self.nested + 1);
        if same {
            inner.functions = self.functions.clone();
            inner.called = self.called.clone();
            inner.fixed = std::mem::take(&mut self.fixed);
        }
        inner.input = self.input.is_some().then(Flow::fresh);
        inner.list(&script.commands)?;
        let end = Flow::either(inner.input.take(), inner.left.take());
        if same {
            self.fixed = inner.fixed;
        }
        match end {
            Some(end) if end.reads => self.takes(name),
            Some(_) | None => Ok(()),
        }
    }
}

/// Where the program stands in the words of another one that runs it.
fn inner(name: &str, texts: &[String]) -> Option<usize> {
    let valued: &[&str] = match name {
        "env" => &["-u", "-C"],
        "nice" => &["-n"],
        "exec" => &["-a"],
        "command" if texts.first().is_some_and(|first| first == "-v" || first == "-V") => return None,
        _ => &[],
    };
    let mut at = 0;
    loop {
        let text = texts.get(at)?;
        let assignment = name == "env" && text.contains('=');
        match text.as_str() {
            "--" => {
                at += 1;
                break;
            }
            option if valued.contains(&option) => at += 2,
            option if option.starts_with('-') || assignment => at += 1,
            _ => break,
        }
    }
    at += usize::from(name == "timeout");
    (at < texts.len()).then_some(at)
}
