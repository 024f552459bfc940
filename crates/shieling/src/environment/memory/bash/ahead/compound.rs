//! Loops, branches and groups.

use bashkit::parser::{CaseCommand, CaseTerminator, Command, CompoundCommand, IfCommand};

use super::flow::{Flow, Loop};
use super::{Seen, Walk};

impl<'n> Walk<'n> {
    pub(super) fn compound(&mut self, compound: &'n CompoundCommand) -> Seen {
        match compound {
            CompoundCommand::If(this) => self.branches(this),
            CompoundCommand::For(this) => {
                self.words(this.words.as_deref().unwrap_or_default())?;
                self.assigned(&this.variable, "`for`")?;
                self.repeated(None, &this.body)
            }
            CompoundCommand::ArithmeticFor(this) => {
                for expression in [&this.init, &this.condition, &this.step] {
                    self.arithmetic(expression)?;
                }
                self.repeated(None, &this.body)
            }
            CompoundCommand::While(this) => self.repeated(Some(&this.condition), &this.body),
            CompoundCommand::Until(this) => self.repeated(Some(&this.condition), &this.body),
            CompoundCommand::Case(this) => self.cases(this),
            CompoundCommand::Select(this) => {
                self.words(&this.words)?;
                self.assigned(&this.variable, "`select`")?;
                self.takes_line("select")?;
                self.repeated(None, &this.body)
            }
            CompoundCommand::Subshell(commands) => self.shell(|walk| walk.list(commands)),
            CompoundCommand::BraceGroup(commands) => self.list(commands),
            CompoundCommand::Arithmetic(expression) => self.arithmetic(expression),
            CompoundCommand::Time(this) => this.command.as_deref().map_or(Ok(()), |command| self.one(command)),
            CompoundCommand::Conditional(words) => self.words(words),
            CompoundCommand::Coproc(this) => self.fed(|walk| walk.shell(|walk| walk.one(&this.body))).map(|_| ()),
        }
    }

    fn branches(&mut self, this: &'n IfCommand) -> Seen {
        self.list(&this.condition)?;
        let mut not = self.input.clone();
        self.list(&this.then_branch)?;
        let mut ends = self.input.take();
        for (condition, then) in &this.elif_branches {
            self.input = not;
            self.list(condition)?;
            not = self.input.clone();
            self.list(then)?;
            ends = Flow::either(ends, self.input.take());
        }
        self.input = not;
        if let Some(commands) = &this.else_branch {
            self.list(commands)?;
        }
        self.input = Flow::either(ends, self.input.take());
        Ok(())
    }

    fn cases(&mut self, this: &'n CaseCommand) -> Seen {
        self.word(&this.word)?;
        let begin = self.input.clone();
        // One of them may be none.
        let mut ends = begin.clone();
        let mut falls = None;
        for case in &this.cases {
            self.words(&case.patterns)?;
            self.input = Flow::either(begin.clone(), falls.take());
            self.list(&case.commands)?;
            ends = Flow::either(ends, self.input.clone());
            falls = match case.terminator {
                CaseTerminator::Break => None,
                CaseTerminator::FallThrough | CaseTerminator::Continue => self.input.clone(),
            };
        }
        self.input = ends;
        Ok(())
    }

    /// A loop, which has a condition or words.
    fn repeated(&mut self, condition: Option<&'n [Command]>, body: &'n [Command]) -> Seen {
        let before = self.input.clone();
        self.loops.push(Loop::default());
        self.list(condition.unwrap_or_default())?;
        let first = self.input.clone();
        self.list(body)?;
        let left = self.loops.pop().unwrap_or_default();
        let end = Flow::either(self.input.take(), left.continued);
        Flow::may_loop(before.as_ref(), end.as_ref())?;
        // Without a condition it ends behind its body, or does nothing at all.
        let ended = if condition.is_some() {
            first
        } else {
            Flow::either(first, end)
        };
        self.input = if condition.is_some_and(endless) {
            left.broken.or_else(|| {
                ended.map(|mut ended| {
                    ended.leave();
                    ended
                })
            })
        } else {
            Flow::either(ended, left.broken)
        };
        Ok(())
    }
}

/// Whether a condition is one that only a command in its loop ends.
fn endless(condition: &[Command]) -> bool {
    matches!(condition, [Command::Simple(simple)]
        if matches!(super::simple::literal(&simple.name), Some(":" | "true")))
}
