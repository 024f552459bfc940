//! What every case uses: a field with places in it, and how a case fails.

mod place;
pub(crate) mod suite;
mod tools;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use shieling_testkit::prerequisite;

pub(crate) use place::{KEYS, LONGEST, Making, Place, line};
pub(crate) use tools::Tools;

/// One or more attempts that a sentence tells of.
pub(crate) struct Case {
    /// The sentence.
    pub(crate) name: &'static str,
    /// Does it.
    pub(crate) body: fn(&Field) -> Checked,
    /// What else may run meanwhile.
    beside: Beside,
}

/// What else may run beside a case in the same process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Beside {
    /// Every other case that does not say otherwise.
    All,
    /// No other of this kind: each keeps the processors or the memory busy.
    Light,
    /// Nothing: it changes this process, or measures it.
    Nothing,
}

/// A case that runs beside others.
pub(crate) const fn case(name: &'static str, body: fn(&Field) -> Checked) -> Case {
    Case {
        name,
        body,
        beside: Beside::All,
    }
}

/// A case that keeps the processors or the memory busy: one such case runs at a time.
pub(crate) const fn heavy(name: &'static str, body: fn(&Field) -> Checked) -> Case {
    Case {
        name,
        body,
        beside: Beside::Light,
    }
}

/// A case that changes this process, or measures it.
pub(crate) const fn alone(name: &'static str, body: fn(&Field) -> Checked) -> Case {
    Case {
        name,
        body,
        beside: Beside::Nothing,
    }
}

/// What a case gives.
pub(crate) type Checked<T = ()> = Result<T, Fail>;

/// Why a case did not pass. No error type itself, so that every error can become one.
#[derive(Debug)]
pub(crate) enum Fail {
    /// Something is missing here.
    Skip(String),
    /// It does not hold.
    Wrong(String),
    /// Something that was looked at from outside, such as a process, ended meanwhile. Nothing was seen.
    Vanished(String),
}

impl<E: std::error::Error + 'static> From<E> for Fail {
    fn from(error: E) -> Self {
        let looked_for: Option<&std::io::Error> = (&error as &dyn std::error::Error).downcast_ref();
        let vanished = looked_for.is_some_and(|error| {
            error.kind() == std::io::ErrorKind::NotFound || error.raw_os_error() == Some(libc::ESRCH)
        });
        let mut text = error.to_string();
        let mut cause = error.source();
        while let Some(deeper) = cause {
            text = format!("{text}: {deeper}");
            cause = deeper.source();
        }
        if vanished {
            Self::Vanished(text)
        } else {
            Self::Wrong(text)
        }
    }
}

/// It does not hold.
pub(crate) fn wrong<T>(what: impl fmt::Display) -> Checked<T> {
    Err(Fail::Wrong(what.to_string()))
}

/// Something is missing here.
pub(crate) fn skip<T>(what: impl fmt::Display) -> Checked<T> {
    Err(Fail::Skip(what.to_string()))
}

/// It must be so.
pub(crate) fn check(holds: bool, otherwise: impl FnOnce() -> String) -> Checked {
    if holds { Ok(()) } else { wrong(otherwise()) }
}

/// How often something that is slow, or does not get to what it tries, is done again.
const TRIES: usize = 3;

/// Does something again while it takes longer than this, a few times at most: on a busy machine any one run may be slow,
/// and not all are. Gives what the last run gave.
pub(crate) fn within<T>(longest: Duration, mut act: impl FnMut() -> Checked<T>) -> Checked<T> {
    let mut took = Duration::ZERO;
    for _ in 0..TRIES {
        let began = Instant::now();
        let given = act()?;
        took = began.elapsed();
        if took < longest {
            return Ok(given);
        }
    }
    wrong(format!("it took {took:?}, and longer than {longest:?} each time"))
}

/// Does something again while it does not get to what it tries, a few times at most. Gives what the last run gave.
pub(crate) fn until<T>(tried: impl Fn(&T) -> bool, mut act: impl FnMut() -> Checked<T>) -> Checked<T> {
    let mut given = act()?;
    for _ in 1..TRIES {
        if tried(&given) {
            break;
        }
        given = act()?;
    }
    Ok(given)
}

/// What one case works with.
pub(crate) struct Field<'a> {
    /// Where its places are made.
    pub(crate) base: &'a Path,
    /// The helper programs.
    pub(crate) tools: &'a Tools,
    /// What runs sandboxes.
    pub(crate) runtime: &'a tokio::runtime::Runtime,
    /// What has to be looked at after it.
    watched: Mutex<Vec<place::Watched>>,
    /// The directories of its places.
    made: Mutex<Vec<PathBuf>>,
    attempts: AtomicUsize,
    controls: AtomicUsize,
}

impl<'a> Field<'a> {
    fn new(base: &'a Path, tools: &'a Tools, runtime: &'a tokio::runtime::Runtime) -> Self {
        Self {
            base,
            tools,
            runtime,
            watched: Mutex::default(),
            made: Mutex::default(),
            attempts: AtomicUsize::new(0),
            controls: AtomicUsize::new(0),
        }
    }

    /// Begins a place of its own.
    pub(crate) fn place(&self) -> Making<'_> {
        Making::new(self)
    }

    /// Counts an attempt that was made by other means than [`Place::refused`].
    pub(crate) fn attempted(&self) {
        self.attempts.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a control that was made by other means than [`Place::works`].
    pub(crate) fn worked(&self) {
        self.controls.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether this runs as root.
    pub(crate) fn is_root(&self) -> bool {
        rustix::process::geteuid().is_root()
    }

    /// Skips unless the program is installed.
    pub(crate) fn needs(&self, program: &str) -> Checked {
        match prerequisite::is_installed(program) {
            true => Ok(()),
            false => skip(format!("`{program}` is not installed")),
        }
    }
}
