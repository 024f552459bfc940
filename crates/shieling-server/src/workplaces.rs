//! Selects the workplace of a run: a shared one, one of its own, or a temporary override.
//!
//! ```text
//! enter ─┬► an override is in force ──────────► that one; its owner closes it
//!        ├► shared ──► count + 1 ──► leave ──► count − 1 ──► 0: closed for good
//!        ├► factory ─► a new one ──► leave ──► closed
//!        └► nothing ─► an error
//! ```
//!
//! Rules for concurrent runs:
//!
//! - Runs that share a workplace see each other's files, sessions and jobs. When one leaves, the others continue; the
//!   last one closes the workplace. It cannot be entered again, since a closed library starts nothing.
//! - A factory creates one workplace per run. Nothing is shared, and each is closed by its run.
//! - An override applies to what is awaited within [`under`](Workplaces::under), in the same task, and to these
//!   workplaces only. It takes precedence over both others, and also applies where there is neither. The innermost
//!   override applies.
//! - Dropping a run without leaving counts as leaving. If it was the last, what still runs is ended with the
//!   workplace, without a grace period.

use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use crate::core::Workplace;

/// Creates a workplace. The error explains in lines why it cannot.
pub type WorkplaceFactory = Box<dyn Fn() -> Result<Workplace, String> + Send + Sync>;

/// Where workplaces come from.
#[non_exhaustive]
pub enum Source {
    /// All runs share this one.
    Shared(Arc<Workplace>),
    /// Each run gets a new one.
    Factory(WorkplaceFactory),
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shared(workplace) => f.debug_tuple("Shared").field(workplace).finish(),
            Self::Factory(_) => f.write_str("Factory"),
        }
    }
}

/// A workplace could not be entered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EnterError {
    /// There is none.
    #[error("there is no workplace: give one to share, a factory, or an override for this call")]
    Nothing,
    /// It is closed.
    #[error("the shared workplace was closed when the last run left it: give another one")]
    Closed,
    /// The factory failed.
    #[error("no workplace could be made: {0}")]
    Unmade(String),
}

/// The workplaces of a set of tools. Clones share them.
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
pub struct Workplaces(Arc<Inner>);

enum Inner {
    Nothing,
    Shared(Mutex<Shared>),
    Factory(WorkplaceFactory),
}

/// A shared workplace.
struct Shared {
    /// `None` after it was closed.
    workplace: Option<Arc<Workplace>>,
    inside: usize,
}

tokio::task_local! {
    /// The overrides, innermost last.
    static INSTEAD: Vec<(Workplaces, Arc<Workplace>)>;
}

impl Workplaces {
    /// Creates workplaces from a source.
    pub fn new(source: Source) -> Self {
        Self(Arc::new(match source {
            Source::Shared(workplace) => Inner::Shared(Mutex::new(Shared {
                workplace: Some(workplace),
                inside: 0,
            })),
            Source::Factory(make) => Inner::Factory(make),
        }))
    }

    /// Creates workplaces without a source, which only overrides provide.
    #[must_use]
    pub fn none() -> Self {
        Self(Arc::new(Inner::Nothing))
    }

    /// Enters a workplace for a run.
    ///
    /// # Errors
    /// [`EnterError`] if there is none, it is closed, or the factory fails.
    pub fn enter(&self) -> Result<EnteredWorkplace, EnterError> {
        let instead = INSTEAD.try_with(|all| all.iter().rfind(|(of, _)| Arc::ptr_eq(&of.0, &self.0)).cloned());
        if let Ok(Some((_, workplace))) = instead {
            return Ok(EnteredWorkplace {
                workplace,
                stay: OnLeave::Lent,
            });
        }
        match &*self.0 {
            Inner::Nothing => Err(EnterError::Nothing),
            Inner::Shared(shared) => {
                let mut shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
                let workplace = shared.workplace.clone().ok_or(EnterError::Closed)?;
                shared.inside += 1;
                Ok(EnteredWorkplace {
                    workplace,
                    stay: OnLeave::Counted(self.clone()),
                })
            }
            Inner::Factory(make) => Ok(EnteredWorkplace {
                workplace: Arc::new(make().map_err(EnterError::Unmade)?),
                stay: OnLeave::Own,
            }),
        }
    }

    /// Runs a future in which entering returns this workplace instead. It is neither started nor closed here.
    ///
    /// # Cancel safety
    /// That of the future.
    pub async fn under<F: Future>(&self, workplace: Arc<Workplace>, run: F) -> F::Output {
        let mut all = INSTEAD.try_with(Clone::clone).unwrap_or_default();
        all.push((self.clone(), workplace));
        INSTEAD.scope(all, run).await
    }

    /// Counts a run that leaves. Returns whether it was the last.
    fn out(&self) -> bool {
        let Inner::Shared(shared) = &*self.0 else { return false };
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
            Inner::Nothing => "Workplaces(nothing)",
            Inner::Shared(_) => "Workplaces(shared)",
            Inner::Factory(_) => "Workplaces(factory)",
        })
    }
}

impl From<Workplace> for Workplaces {
    /// Creates a shared workplace.
    fn from(workplace: Workplace) -> Self {
        Self::new(Source::Shared(Arc::new(workplace)))
    }
}

/// A run inside a workplace.
#[derive(Debug)]
#[must_use]
pub struct EnteredWorkplace {
    workplace: Arc<Workplace>,
    stay: OnLeave,
}

/// What happens when the run leaves.
#[derive(Debug)]
enum OnLeave {
    /// Nothing: the workplace has another owner, or the run has left already.
    Lent,
    /// The last run closes it.
    Counted(Workplaces),
    /// This run closes it.
    Own,
}

impl EnteredWorkplace {
    /// Returns the workplace.
    pub fn workplace(&self) -> &Arc<Workplace> {
        &self.workplace
    }

    /// Leaves the workplace. The last run closes it: ends every session and job, and releases the environment.
    ///
    /// # Cancel safety
    /// Dropping the future interrupts the closing. The workplace can no longer be entered, and what still runs ends
    /// with it.
    pub async fn leave(mut self) {
        let last = match std::mem::replace(&mut self.stay, OnLeave::Lent) {
            OnLeave::Lent => false,
            OnLeave::Counted(shared) => shared.out(),
            OnLeave::Own => true,
        };
        if last {
            self.workplace.core.close().await;
        }
    }
}

impl Drop for EnteredWorkplace {
    fn drop(&mut self) {
        if let OnLeave::Counted(shared) = &self.stay {
            shared.out();
        }
    }
}
