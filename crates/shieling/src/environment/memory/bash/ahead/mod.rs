//! What a text would do otherwise in memory than in bash, without a word, and that can be seen before it
//! runs: it is refused then, and it is said what to write instead.
//!
//! - Commands in a group, a loop, a subshell or a function that share one input, see [`flow`].
//! - Names that are readonly and would be assigned all the same, see [`fixed`].
//! - Streams that change places, see [`swap`].
//!
//! It goes through the tree that bashkit will run, and through a function a few times at most. What is only
//! known as a text runs (a program's name or words from a variable, a script in a file) is taken for what
//! reads nothing. Texts made for `eval` and `bash -c` are seen as they are called.

mod compound;
mod fixed;
mod flow;
mod simple;
mod swap;
#[cfg(test)]
mod tests;

use std::cell::OnceCell;
use std::collections::HashMap;

use bashkit::parser::{
    Assignment, AssignmentValue, Command, CommandList, ListOperator, Redirect, RedirectKind, Word, WordPart,
};
use bashkit::{Bash, ShellState};

use self::fixed::Fixed;
use self::flow::{Flow, Loop};
use super::parsed;

/// How deeply texts within texts are looked into.
const NESTED: usize = 16;

/// Why a text may not run.
pub(super) struct Refused(String);

type Seen = Result<(), Refused>;

/// Where a text is going to run.
pub(super) struct Place<'a> {
    /// What its shell has from texts before, if it is one for many.
    shell: Option<&'a Bash>,
    state: OnceCell<ShellState>,
    /// Whether bashkit holds its input, which is not given piece by piece.
    fed: bool,
}

impl<'a> Place<'a> {
    pub(super) fn new(shell: Option<&'a Bash>, fed: bool) -> Self {
        Self {
            shell,
            state: OnceCell::new(),
            fed,
        }
    }

    /// Asked for seldom, as it is a copy of all of it.
    fn state(&self) -> Option<&ShellState> {
        let shell = self.shell?;
        Some(self.state.get_or_init(|| shell.shell_state()))
    }
}

/// Why a text cannot run, if it cannot.
pub(super) fn first(text: &str, place: &Place<'_>) -> Option<String> {
    // What cannot be read is told by whoever runs it.
    let script = parsed(text).ok()?;
    let mut walk = Walk::new(place, 0);
    walk.input = place.fed.then(Flow::fresh);
    walk.list(&script.commands).err().map(|refused| refused.0)
}

/// Why what a call is given as a text cannot run, if it cannot.
pub(super) fn of_call(name: &str, args: &[String]) -> Option<String> {
    let place = Place::new(None, false);
    first(&simple::text_of(name, args)?, &place)
}

/// One way through a tree, in the order in which it runs.
struct Walk<'n> {
    place: &'n Place<'n>,
    functions: HashMap<&'n str, &'n Command>,
    /// How functions were found when they were last called, with an input of bashkit's and without.
    called: HashMap<(&'n str, bool), Called>,
    /// Which functions are being gone through.
    running: Vec<&'n str>,
    fixed: Fixed,
    /// The input that the commands here share, unless it is the text's, which every command can share.
    input: Option<Flow>,
    /// Where the input stands when the shell or function that is gone through is left.
    left: Option<Flow>,
    loops: Vec<Loop>,
    nested: usize,
}

/// What is known of a function, as long as nothing else has become readonly.
#[derive(Clone, Copy)]
struct Called {
    fixed: usize,
    reads: bool,
    times: u8,
}

impl<'n> Walk<'n> {
    fn new(place: &'n Place<'n>, nested: usize) -> Self {
        Self {
            place,
            functions: HashMap::new(),
            called: HashMap::new(),
            running: Vec::new(),
            fixed: Fixed::default(),
            input: None,
            left: None,
            loops: Vec::new(),
            nested,
        }
    }

    fn list(&mut self, commands: &'n [Command]) -> Seen {
        commands.iter().try_for_each(|command| self.one(command))
    }

    fn one(&mut self, command: &'n Command) -> Seen {
        match command {
            Command::Simple(simple) => self.simple(simple),
            Command::Pipeline(pipeline) => match pipeline.commands.split_first() {
                Some((only, [])) => self.one(only),
                Some((head, stages)) => {
                    self.forked(|walk| walk.one(head))?;
                    stages
                        .iter()
                        .try_for_each(|stage| self.fed(|walk| walk.shell(|walk| walk.one(stage))).map(|_| ()))
                }
                None => Ok(()),
            },
            Command::List(list) => self.chain(list),
            Command::Compound(compound, redirects) => {
                self.redirects(redirects)?;
                if is_fed(redirects) {
                    self.fed(|walk| walk.compound(compound)).map(|_| ())
                } else {
                    self.compound(compound)
                }
            }
            Command::Function(function) => {
                self.functions.insert(&function.name, &function.body);
                self.called.remove(&(function.name.as_str(), true));
                self.called.remove(&(function.name.as_str(), false));
                Ok(())
            }
        }
    }

    /// Commands between `&&`, `||`, `;` and `&`: what is behind an operator may not run.
    fn chain(&mut self, list: &'n CommandList) -> Seen {
        let mut commands = vec![(None, &*list.first)];
        for (operator, command) in &list.rest {
            match operator {
                ListOperator::And | ListOperator::Or => commands.push((Some(*operator), command)),
                ListOperator::Semicolon => self.and_or(&std::mem::replace(&mut commands, vec![(None, command)]))?,
                ListOperator::Background => {
                    let job = std::mem::replace(&mut commands, vec![(None, command)]);
                    self.forked(|walk| walk.and_or(&job))?;
                }
            }
        }
        self.and_or(&commands)
    }

    fn and_or(&mut self, commands: &[(Option<ListOperator>, &'n Command)]) -> Seen {
        let (mut succeeded, mut failed) = (self.input.clone(), self.input.clone());
        for (operator, command) in commands {
            self.input = match operator {
                Some(ListOperator::Or) => failed.clone(),
                Some(ListOperator::And | ListOperator::Semicolon | ListOperator::Background) | None => {
                    succeeded.clone()
                }
            };
            let before = self.input.clone();
            self.one(command)?;
            // A program that fails after it has read is a rare one, but for those that look for something.
            let unread = if simple::seldom_fails(command) {
                before
            } else {
                self.input.clone()
            };
            match operator {
                None => (succeeded, failed) = (self.input.take(), unread),
                Some(ListOperator::Or) => {
                    succeeded = Flow::either(succeeded, self.input.take());
                    failed = unread;
                }
                Some(ListOperator::And | ListOperator::Semicolon | ListOperator::Background) => {
                    succeeded = self.input.take();
                    failed = Flow::either(failed, unread);
                }
            }
        }
        self.input = Flow::either(succeeded, failed);
        Ok(())
    }

    /// What has an input of its own; whether it certainly reads of it.
    fn fed(&mut self, run: impl FnOnce(&mut Self) -> Seen) -> Result<bool, Refused> {
        let outer = self.input.replace(Flow::fresh());
        let left = self.left.take();
        let loops = std::mem::take(&mut self.loops);
        let seen = run(self);
        self.loops = loops;
        let inner = Flow::either(self.input.take(), std::mem::replace(&mut self.left, left));
        self.input = outer;
        seen.map(|()| inner.is_some_and(|inner| inner.reads))
    }

    /// A shell of its own with the same input, which it takes from: what becomes readonly in it ends with it.
    fn shell(&mut self, run: impl FnOnce(&mut Self) -> Seen) -> Seen {
        let fixed = self.fixed.mark();
        self.leavable(run)?;
        self.fixed.back_to(fixed);
        Ok(())
    }

    /// What `exit` and `return` leave, and no more than that.
    fn leavable(&mut self, run: impl FnOnce(&mut Self) -> Seen) -> Seen {
        let left = self.left.take();
        let loops = std::mem::take(&mut self.loops);
        run(self)?;
        self.loops = loops;
        let inner = std::mem::replace(&mut self.left, left);
        self.input = Flow::either(self.input.take(), inner);
        Ok(())
    }

    /// A shell of its own with a copy of the input: whatever is read there is still there for those behind.
    fn forked(&mut self, run: impl FnOnce(&mut Self) -> Seen) -> Seen {
        let before = self.input.clone();
        if let Some(flow) = &mut self.input {
            flow.reads = false;
        }
        self.shell(run)?;
        let copy = std::mem::replace(&mut self.input, before);
        match copy.filter(|copy| copy.reads) {
            Some(copy) => self.takes(&copy.reader().unwrap_or_default()),
            None => Ok(()),
        }
    }

    /// What a command has read that gets all of the input and leaves all of it.
    fn takes(&mut self, name: &str) -> Seen {
        self.input.as_mut().map_or(Ok(()), |flow| flow.takes(name))
    }

    /// What `read` has read.
    fn takes_line(&mut self, name: &str) -> Seen {
        self.input.as_mut().map_or(Ok(()), |flow| flow.takes_line(name))
    }

    fn redirects(&mut self, redirects: &'n [Redirect]) -> Seen {
        if let Some(swap) = swap::first(redirects) {
            let why = format!("it would lose output at `{swap}`, which has two streams change places");
            return Err(Refused(why));
        }
        redirects.iter().try_for_each(|redirect| self.word(&redirect.target))
    }

    fn words(&mut self, words: &'n [Word]) -> Seen {
        words.iter().try_for_each(|word| self.word(word))
    }

    fn word(&mut self, word: &'n Word) -> Seen {
        for part in &word.parts {
            match part {
                WordPart::CommandSubstitution(commands) => self.shell(|walk| walk.list(commands))?,
                WordPart::ProcessSubstitution { commands, is_input } => {
                    if *is_input {
                        self.forked(|walk| walk.list(commands))?;
                    } else {
                        self.fed(|walk| walk.shell(|walk| walk.list(commands)))?;
                    }
                }
                WordPart::CompoundAssignment { elements, .. } => self.words(elements)?,
                part => self.assigned_in(part)?,
            }
        }
        Ok(())
    }

    fn assignment(&mut self, assignment: &'n Assignment) -> Seen {
        if let Some(index) = &assignment.index {
            self.arithmetic(index)?;
        }
        match &assignment.value {
            AssignmentValue::Scalar(word) => self.word(word),
            AssignmentValue::Array(words) => self.words(words),
        }
    }
}

/// Whether the input of a command is its own.
fn is_fed(redirects: &[Redirect]) -> bool {
    redirects.iter().any(|redirect| {
        let into = match redirect.kind {
            RedirectKind::Input
            | RedirectKind::HereDoc
            | RedirectKind::HereDocStrip
            | RedirectKind::HereString
            | RedirectKind::ReadWrite => true,
            // `<&0` is the same once more.
            RedirectKind::DupInput => simple::literal(&redirect.target) != Some("0"),
            RedirectKind::Output
            | RedirectKind::Clobber
            | RedirectKind::Append
            | RedirectKind::DupOutput
            | RedirectKind::OutputBoth => false,
        };
        into && redirect.fd.unwrap_or(0) == 0 && redirect.fd_var.is_none()
    })
}
