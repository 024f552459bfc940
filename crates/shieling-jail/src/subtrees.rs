//! Ending a part of a job: one command of a shell that stays. One after another, in the order in which
//! they were asked for; ending the whole job comes first.

use std::collections::VecDeque;

use rustix::process::{Pid, Signal};
use shieling_jail::message::{Order, Report};

use crate::sys;
use crate::tree::{self, KILL_BUDGET_MS, KILL_PAUSE_MS, Part, REFUSED_ROUNDS, STOPPING_ROUND, Tree, Walk, now_ms};

/// How many parts may wait to be ended. A host has at most one for each command of a session that left
/// something behind.
const MOST: usize = 512;
/// How long a shell that was told to leave a command is waited for, once nothing of that command is left. It may have
/// been about to start a process when it was told, and does so before it obeys.
const LEAVING_MS: u64 = 300;
/// The kernel tells the start of a process in hundredths of a second on every architecture.
const TICK_MS: u64 = 10;

/// How many looks in a row find nothing before it is over, once something was ended: what changes its number all the time,
/// by a copy of itself that goes on, can be missed by one.
const QUIET: u32 = 4;

/// The parts that are to be ended.
#[derive(Debug, Default)]
pub(crate) struct Subtrees {
    waiting: VecDeque<Order>,
    current: Option<Ending>,
}

#[derive(Debug)]
struct Ending {
    number: u64,
    part: Part,
    /// When SIGKILL begins.
    ask_until: u64,
    /// When it is given up.
    until: u64,
    next: u64,
    refused: u32,
    found: u32,
    rounds: u32,
    quiet: u32,
    /// The shell, if it was told to leave its command, and until when it is waited for.
    leaving: Option<(Pid, Option<u64>)>,
}

impl Subtrees {
    /// Takes an order in. More than fit are not taken: the host ends the whole job then.
    pub(crate) fn take(&mut self, order: Order) {
        if self.waiting.len() < MOST {
            self.waiting.push_back(order);
        }
    }

    /// When there is something to do.
    pub(crate) fn due(&self) -> Option<u64> {
        match &self.current {
            Some(ending) => Some(ending.next),
            None => (!self.waiting.is_empty()).then_some(0),
        }
    }

    pub(crate) fn is_due(&self, now: u64) -> bool {
        self.due().is_some_and(|due| due <= now)
    }

    /// Does what is due. What is to be told, once a part is ended.
    pub(crate) fn advance(&mut self, now: u64, tree: &mut Tree, main: Option<Pid>) -> Option<Report> {
        let walk = match &mut self.current {
            None => {
                let ending = self.current.insert(Ending::begin(self.waiting.pop_front()?, now, main));
                let until = ending.ask_until;
                let mut walk = tree.of(Some(ending.part)).ask(|| now_ms() < until);
                ending.found = walk.others;
                if now_ms() >= until {
                    // It may have looked at some only, and without a grace at none.
                    walk = tree.of(Some(ending.part)).kill();
                    ending.found = ending.found.max(walk.others);
                }
                walk
            }
            Some(ending) if now < ending.ask_until => tree.of(Some(ending.part)).look(),
            Some(ending) => {
                ending.rounds += 1;
                let tree = tree.of(Some(ending.part));
                if ending.rounds > STOPPING_ROUND {
                    tree.freeze();
                }
                let walk = tree.kill();
                ending.found = ending.found.max(walk.others);
                walk
            }
        };
        let walk = if walk.alive == 0 {
            // The kernel may leave a child out of a list that changes while it is read.
            tree.of(self.current.as_ref().map(|ending| ending.part)).look()
        } else {
            walk
        };
        let ending = self.current.as_mut()?;
        let survivors = ending.left(now, walk)?;
        let report = Report::PartEnded {
            number: ending.number,
            ended: ending.found,
            survivors,
        };
        self.current = None;
        Some(report)
    }
}

impl Ending {
    fn begin(order: Order, now: u64, main: Option<Pid>) -> Self {
        let mut leaving = None;
        let (number, part, grace_ms) = match order {
            Order::EndPart {
                number,
                signal,
                since_ms,
                until_ms,
                grace_ms,
            } => {
                if let Some(main) = main.filter(|_| signal != 0) {
                    // Before what it waits for ends: it is to see both, and not to go on in between.
                    sys::signal(main, signal);
                    // If it has stopped itself, it sees it now.
                    sys::signal(main, Signal::CONT.as_raw());
                    leaving = Some((main, None));
                }
                let part = Part {
                    since: since_ms / TICK_MS,
                    until: until_ms / TICK_MS,
                };
                (number, part, grace_ms)
            }
            // Never taken in; nothing is part of it.
            Order::Stop { .. } => (0, Part { since: 1, until: 0 }, 0),
        };
        Self {
            number,
            part,
            ask_until: now.saturating_add(grace_ms),
            until: now.saturating_add(grace_ms).saturating_add(KILL_BUDGET_MS),
            next: now,
            refused: 0,
            found: 0,
            rounds: 0,
            quiet: 0,
            leaving,
        }
    }

    /// When to look again, since the shell may have started something of the command that it was told to leave: until
    /// it was seen asleep before a look, waiting for a process that the look finds, or for the next command.
    fn look_again(&mut self, now: u64) -> Option<u64> {
        let (shell, until) = self.leaving.as_mut()?;
        let shell = *shell;
        if now >= *until.get_or_insert(now + LEAVING_MS) {
            return None;
        }
        if tree::is_busy(shell) {
            return Some(now + 1);
        }
        self.leaving = None;
        Some(now)
    }

    /// How many are left for good, once that is known.
    fn left(&mut self, now: u64, walk: Walk) -> Option<u32> {
        if walk.alive == 0 {
            match self.look_again(now) {
                Some(again) => self.next = again,
                None if self.found > 0 && self.quiet < QUIET && now < self.until => {
                    self.quiet += 1;
                    self.next = now + KILL_PAUSE_MS;
                }
                None => return Some(0),
            }
            return None;
        }
        self.quiet = 0;
        self.refused = if walk.is_refused() { self.refused + 1 } else { 0 };
        if now >= self.until || self.refused > REFUSED_ROUNDS {
            return Some(walk.alive);
        }
        self.next = now + KILL_PAUSE_MS;
        None
    }
}
