//! Who has read of an input that several commands share.
//!
//! Bashkit gives each program all of what is left, and takes it from nobody; only `read` takes what it
//! reads, in the shell that reads it. So any number of `read` may come first and one program at the end.
//!
//! ```text
//! nothing ──read──► lines ──program, function──► all ──anybody──► refused
//!    └───────────────────program, function───────►┘
//! ```

use super::Refused;

/// How far an input has been read.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Taken {
    /// Nobody comes here.
    Gone,
    Nothing,
    Lines,
    /// By this program, which has left all of it.
    All(String),
}

/// An input at one place of a text.
#[derive(Debug, Clone)]
pub(super) struct Flow {
    taken: Taken,
    /// Whether something has been read on every way that leads here.
    pub(super) reads: bool,
}

impl Flow {
    pub(super) fn fresh() -> Self {
        Self {
            taken: Taken::Nothing,
            reads: false,
        }
    }

    /// Where two ways meet.
    pub(super) fn either(one: Option<Self>, other: Option<Self>) -> Option<Self> {
        match (one, other) {
            (Some(one), Some(other)) if one.taken == Taken::Gone => Some(other),
            (Some(one), Some(other)) if other.taken == Taken::Gone => Some(one),
            (Some(one), Some(other)) => Some(Self {
                reads: one.reads && other.reads,
                taken: one.taken.max(other.taken),
            }),
            (one, other) => one.or(other),
        }
    }

    /// Goes on elsewhere.
    pub(super) fn leave(&mut self) -> Self {
        let gone = Self {
            taken: Taken::Gone,
            reads: false,
        };
        std::mem::replace(self, gone)
    }

    /// Who has read last.
    pub(super) fn reader(&self) -> Option<String> {
        match &self.taken {
            Taken::All(name) => Some(name.clone()),
            Taken::Lines => Some("read".to_owned()),
            Taken::Gone | Taken::Nothing => None,
        }
    }

    pub(super) fn takes(&mut self, name: &str) -> Result<(), Refused> {
        self.shared_with(name)?;
        if self.taken != Taken::Gone {
            self.taken = Taken::All(name.to_owned());
            self.reads = true;
        }
        Ok(())
    }

    pub(super) fn takes_line(&mut self, name: &str) -> Result<(), Refused> {
        self.shared_with(name)?;
        if self.taken != Taken::Gone {
            self.taken = Taken::Lines;
            self.reads = true;
        }
        Ok(())
    }

    fn shared_with(&self, name: &str) -> Result<(), Refused> {
        match &self.taken {
            Taken::All(before) => Err(Refused(format!(
                "`{name}` would get again what `{before}` has read, as both share one input, of which in memory \
                 only `read` leaves the rest to others: take lines with `read` and then the rest with one program, \
                 or give each an input of its own, as `< FILE`"
            ))),
            Taken::Gone | Taken::Nothing | Taken::Lines => Ok(()),
        }
    }

    /// Whether a loop that was entered here may begin again there.
    pub(super) fn may_loop(before: Option<&Self>, end: Option<&Self>) -> Result<(), Refused> {
        match (before.map(|flow| &flow.taken), end.map(|flow| &flow.taken)) {
            (Some(Taken::Gone | Taken::Nothing | Taken::Lines), Some(Taken::All(name))) => Err(Refused(format!(
                "`{name}` in a loop would get the same input each time, as in memory only `read` leaves the rest to \
                 others: read it before the loop, or give `{name}` an input of its own, as `< FILE` or `< /dev/null`"
            ))),
            _ => Ok(()),
        }
    }
}

/// Where the input stands when a loop is left, and when it is gone on with, by a command in it.
#[derive(Debug, Default)]
pub(super) struct Loop {
    pub(super) broken: Option<Flow>,
    pub(super) continued: Option<Flow>,
}
