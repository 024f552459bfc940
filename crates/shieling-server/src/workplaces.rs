//! Which workplace a run works in: one that all share, one of its own, or another one just this once.
//!
//! ```text
//! enter ─┬► an override is in force ──────────► that one; whoever made it closes it
//!        ├► shared ──► count + 1 ──► leave ──► count − 1 ──► 0: closed, for good
//!        ├► factory ─► a new one ──► leave ──► closed
//!        └► nothing ─► an error that says so
//! ```
//!
//! Rules for runs at the same time:
//!
//! - Runs that share a workplace see each other's files, sessions and jobs. When one leaves, the
//!   others go on; the last one closes it, and nobody can enter it after that, since what is closed
//!   starts nothing any more.
//! - A factory gives each run its own. Nothing is shared, and each is closed by its run.
//! - An override holds for what is awaited inside of [`under`](Workplaces::under), on the same task, and
//!   for these workplaces only. It beats both others, also where there is neither. The innermost holds.
//! - A run that is dropped instead of left has left, too; where it was the last, what still runs ends
//!   with the workplace itself, without the grace that closing gives.

use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use crate::core::Workplace;

/// Makes a workplace. An error says why it cannot, in lines.
pub type Make = Box<dyn Fn() -> Result<Workplace, String> + Send + Sync>;

/// Where workplaces come from.
#[non_exhaustive]
pub enum Source {
    /// All runs work in this one.
    Shared(Arc<Workplace>),
    /// Each run gets one of its own.
    Factory(Make),
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shared(workplace) => f.debug_tuple("Shared").field(workplace).finish(),
            Self::Factory(_) => f.write_str("Factory"),
        }
    }
}

/// Why no workplace could be entered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EnterError {
    /// There is none.
    #[error("there is no workplace: give one to share, a factory, or an override for this call")]
    Nothing,
    /// It is closed.
    #[error("the shared workplace was closed when the last run left it: give another one")]
    Closed,
    /// The factory made none.
    #[error("no workplace could be made: {0}")]
    Unmade(String),
}

/// The workplaces of a set of tools. Cheap to clone; the clones are the same.
///
/// ```
/// use std::sync::Arc;
///
/// use shieling_server::{EnterError, Source, Workplace, Workplaces};
///
/// # async fn example(one: Workplace, another: Workplace, make: fn() -> Result<Workplace, String>)
/// # -> Result<(), EnterError> {
/// // Two runs share one.
/// let shared = Workplaces::from(one);
/// let (first, second) = (shared.enter()?, shared.enter()?);
/// assert!(Arc::ptr_eq(first.workplace(), second.workplace()));
/// first.leave().await;
///
/// // For one call, or one test, it is another: whatever is awaited in here enters that.
/// let another = Arc::new(another);
/// let call = async { shared.enter().is_ok_and(|entered| Arc::ptr_eq(entered.workplace(), &another)) };
/// assert!(shared.under(another.clone(), call).await);
///
/// // The last one closes it.
/// second.leave().await;
/// assert_eq!(shared.enter().err(), Some(EnterError::Closed));
///
/// // Each run has its own.
/// let own = Workplaces::new(Source::Factory(Box::new(make)));
/// own.enter()?.leave().await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Workplaces(Arc<Held>);

enum Held {
    Nothing,
    Shared(Mutex<Shared>),
    Factory(Make),
}

/// One that is shared.
struct Shared {
    /// None once it is closed.
    workplace: Option<Arc<Workplace>>,
    inside: usize,
}

tokio::task_local! {
    /// What is worked in instead, the innermost last.
    static INSTEAD: Vec<(Workplaces, Arc<Workplace>)>;
}

impl Workplaces {
    /// Those of a source.
    pub fn new(source: Source) -> Self {
        Self(Arc::new(match source {
            Source::Shared(workplace) => Held::Shared(Mutex::new(Shared {
                workplace: Some(workplace),
                inside: 0,
            })),
            Source::Factory(make) => Held::Factory(make),
        }))
    }

    /// None but those of overrides.
    #[must_use]
    pub fn none() -> Self {
        Self(Arc::new(Held::Nothing))
    }

    /// Enters one, for a run.
    ///
    /// # Errors
    /// [`EnterError`].
    pub fn enter(&self) -> Result<Entered, EnterError> {
        let instead = INSTEAD.try_with(|all| all.iter().rfind(|(of, _)| Arc::ptr_eq(&of.0, &self.0)).cloned());
        if let Ok(Some((_, workplace))) = instead {
            return Ok(Entered {
                workplace,
                stay: Stay::Lent,
            });
        }
        match &*self.0 {
            Held::Nothing => Err(EnterError::Nothing),
            Held::Shared(shared) => {
                let mut shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
                let workplace = shared.workplace.clone().ok_or(EnterError::Closed)?;
                shared.inside += 1;
                Ok(Entered {
                    workplace,
                    stay: Stay::Counted(self.clone()),
                })
            }
            Held::Factory(make) => Ok(Entered {
                workplace: Arc::new(make().map_err(EnterError::Unmade)?),
                stay: Stay::Own,
            }),
        }
    }

    /// Runs something that enters this workplace instead, whatever there is otherwise. It is neither
    /// started nor closed here.
    ///
    /// # Cancel safety
    /// As what runs.
    pub async fn under<F: Future>(&self, workplace: Arc<Workplace>, run: F) -> F::Output {
        let mut all = INSTEAD.try_with(Clone::clone).unwrap_or_default();
        all.push((self.clone(), workplace));
        INSTEAD.scope(all, run).await
    }

    /// One fewer is inside; whether that was the last.
    fn out(&self) -> bool {
        let Held::Shared(shared) = &*self.0 else { return false };
        let mut shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
        shared.inside = shared.inside.saturating_sub(1);
        if shared.inside > 0 {
            return false;
        }
        shared.workplace.take().is_some()
    }
}

impl fmt::Debug for Workplaces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &*self.0 {
            Held::Nothing => "Workplaces(nothing)",
            Held::Shared(_) => "Workplaces(shared)",
            Held::Factory(_) => "Workplaces(factory)",
        })
    }
}

impl From<Workplace> for Workplaces {
    /// One that all share.
    fn from(workplace: Workplace) -> Self {
        Self::new(Source::Shared(Arc::new(workplace)))
    }
}

/// A workplace that a run is in.
#[derive(Debug)]
#[must_use]
pub struct Entered {
    workplace: Arc<Workplace>,
    stay: Stay,
}

/// What leaving means.
#[derive(Debug)]
enum Stay {
    /// Somebody else's; or left already.
    Lent,
    /// Shared with others.
    Counted(Workplaces),
    /// Nobody else's.
    Own,
}

impl Entered {
    /// It.
    pub fn workplace(&self) -> &Arc<Workplace> {
        &self.workplace
    }

    /// Leaves it, and closes it if nobody is left inside: ends every session and job, and gives back
    /// what the environment holds.
    ///
    /// # Cancel safety
    /// Dropping the future breaks the closing off; nobody can enter any more, and what still runs ends
    /// with the workplace.
    pub async fn leave(mut self) {
        let last = match std::mem::replace(&mut self.stay, Stay::Lent) {
            Stay::Lent => false,
            Stay::Counted(shared) => shared.out(),
            Stay::Own => true,
        };
        if last {
            self.workplace.core.close().await;
        }
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        if let Stay::Counted(shared) = &self.stay {
            shared.out();
        }
    }
}
