//! Running cases, a few at a time, each in a place of its own.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use shieling::environment::Capabilities;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::at::At;
use super::case::{Case, Checked, Need, Trial, case};
use super::cases;
use super::{Came, Line, Maker, Report, Unmet, Wrong};

/// The suite, or a part of it.
#[derive(Debug, Clone)]
#[must_use]
pub struct Suite {
    only: Vec<String>,
    at_once: usize,
    patience: Duration,
}

impl Default for Suite {
    fn default() -> Self {
        Self {
            only: Vec::new(),
            at_once: 6,
            patience: Duration::from_secs(60),
        }
    }
}

/// What is known of an environment before a case is tried.
struct Known {
    can: Capabilities,
    programs: BTreeSet<&'static str>,
}

impl Suite {
    /// All of it, six cases at once, each with a minute of time.
    pub fn new() -> Self {
        Self::default()
    }

    /// Only cases whose group or name holds this text, or the text of another call.
    pub fn only(mut self, text: impl Into<String>) -> Self {
        self.only.push(text.into());
        self
    }

    /// With so many cases at once (at least 1). Most of them wait most of the time.
    pub fn at_once(mut self, cases: usize) -> Self {
        self.at_once = cases.max(1);
        self
    }

    /// With so much time for each case, and at most 20 s for what it waits for. One that has no answer by
    /// then has failed.
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// The groups and names of all cases, in their order.
    pub fn names() -> Vec<(&'static str, &'static str)> {
        cases::all().map(|(group, case)| (group, case.name)).collect()
    }

    fn wants(&self, group: &str, case: &Case) -> bool {
        let held = |text: &String| group.contains(text.as_str()) || case.name.contains(text.as_str());
        self.only.is_empty() || self.only.iter().any(held)
    }

    /// Runs it.
    ///
    /// # Cancel safety
    /// Dropping the future drops the façades of the cases that run, which ends what they started.
    ///
    /// # Panics
    /// Outside a tokio runtime with I/O and timers.
    pub async fn run(&self, maker: Arc<dyn Maker>) -> Report {
        let begun = Instant::now();
        let chosen = cases::all().filter(|(group, case)| self.wants(group, case));
        let known = match known(&maker, self.patience).await {
            Ok(known) => Arc::new(known),
            Err(wrong) => {
                let line = |(group, case): (_, Case)| Line {
                    group,
                    name: case.name,
                    came: Came::Failed(wrong.clone()),
                    took: Duration::ZERO,
                };
                return Report {
                    environment: maker.name(),
                    lines: chosen.map(line).collect(),
                    took: begun.elapsed(),
                };
            }
        };
        let room = Arc::new(Semaphore::new(self.at_once));
        let (mut tasks, mut places, mut lines) = (JoinSet::new(), HashMap::new(), Vec::new());
        for (at, (group, case)) in chosen.enumerate() {
            lines.push(Line {
                group,
                name: case.name,
                came: Came::Failed(Wrong::new("an end", "none")),
                took: Duration::ZERO,
            });
            let (maker, known, room, patience) =
                (Arc::clone(&maker), Arc::clone(&known), Arc::clone(&room), self.patience);
            let task = tasks.spawn(async move {
                let _turn = room.acquire_owned().await;
                let begun = Instant::now();
                (attempt(&case, maker, &known, patience).await, begun.elapsed())
            });
            places.insert(task.id(), at);
        }
        while let Some(done) = tasks.join_next_with_id().await {
            let (id, came, took) = match done {
                Ok((id, (came, took))) => (id, came, took),
                Err(error) => {
                    let wrong = Wrong::new("no panic", error.to_string());
                    (error.id(), Came::Failed(wrong), Duration::ZERO)
                }
            };
            let line = &mut lines[places[&id]];
            (line.came, line.took) = (came, took);
        }
        Report {
            environment: maker.name(),
            lines,
            took: begun.elapsed(),
        }
    }
}

/// What a place without any wish can do, and which of the programs that cases need it knows.
async fn known(maker: &Arc<dyn Maker>, patience: Duration) -> Result<Known, Wrong> {
    let looking = case("which programs there are", []);
    let place = maker.make(&looking.wishes).await;
    let place = place.map_err(|unmet| Wrong::new("a place without any wish", format!("{unmet:?}")))?;
    let at = At::new(Arc::clone(maker), place, &looking, patience)
        .map_err(|unmet| Wrong::new("a place without any wish", format!("{unmet:?}")))?;
    let wanted: BTreeSet<_> = cases::all()
        .flat_map(|(_, case)| case.needs)
        .filter_map(|need| match need {
            Need::Program(name) => Some(name),
            _ => None,
        })
        .collect();
    let names: Vec<_> = wanted.iter().copied().collect();
    let text = format!(
        "for p in {}; do command -v \"$p\" >/dev/null 2>&1 && echo \"$p\"; done; :",
        names.join(" ")
    );
    let able = looking.needs.iter().all(|need| at.meets(*need));
    let said = if able {
        at.run(&text).await.stdout
    } else {
        String::new()
    };
    let known = Known {
        can: at.can.clone(),
        programs: wanted
            .into_iter()
            .filter(|name| said.lines().any(|line| line == *name))
            .collect(),
    };
    at.close().await.map(|()| known)
}

/// Why a case cannot be tried, as far as that is known before its place is made.
fn missing(case: &Case, known: &Known) -> Option<String> {
    case.needs.iter().find_map(|need| match need {
        Need::Can(ability) => {
            (!known.can.abilities.contains(ability)).then(|| format!("it does not declare {ability:?}"))
        }
        Need::Limits(limit) => {
            (!known.can.limits.contains(limit)).then(|| format!("it does not declare to limit {limit:?}"))
        }
        Need::Gives(network) => {
            (!known.can.networks.contains(network)).then(|| format!("it does not declare the network {network:?}"))
        }
        Need::Program(name) => (!known.programs.contains(name)).then(|| format!("it has no `{name}`")),
        // Depend on how it is made.
        Need::Hides | Need::EnforcesReadonly | Need::EnforcesAllow | Need::Outside => None,
    })
}

async fn attempt(case: &Case, maker: Arc<dyn Maker>, known: &Known, patience: Duration) -> Came {
    if let Some(why) = missing(case, known) {
        return Came::Skipped(why);
    }
    let made = maker.make(&case.wishes).await;
    let at = match made.and_then(|place| At::new(maker, place, case, patience)) {
        Ok(at) => at,
        Err(Unmet::Refused(why)) if !declares(case) => return Came::Skipped(why),
        Err(unmet) => return Came::Failed(Wrong::new("a place as it is declared", format!("{unmet:?}"))),
    };
    let unmet = case.needs.iter().find(|need| !at.meets(**need));
    let came = match unmet {
        Some(need) => Came::Skipped(format!("it does not have {need:?}")),
        None => match tokio::time::timeout(patience, trial(case, &at)).await {
            Ok(Ok(())) => Came::Passed,
            Ok(Err(wrong)) => Came::Failed(wrong),
            Err(_) => Came::Failed(Wrong::new("an answer", format!("none within {} s", patience.as_secs()))),
        },
    };
    match (came, at.close().await) {
        (Came::Failed(wrong), _) => Came::Failed(wrong),
        (Came::Passed | Came::Skipped(_), Err(wrong)) => Came::Failed(wrong),
        (came, Ok(())) => came,
    }
}

/// Whether what a case wishes was declared by the environment: then it may not be refused.
fn declares(case: &Case) -> bool {
    let declared = |need: &Need| matches!(need, Need::Limits(_) | Need::Gives(_));
    case.needs.iter().any(declared) || case.wishes.policy.digest() == shieling::policy::Policy::open().digest()
}

async fn trial(case: &Case, at: &At) -> Checked {
    match &case.trial {
        Trial::Steps(steps) => {
            for step in steps {
                at.step(step).await?;
            }
            Ok(())
        }
        Trial::Code(check) => check(at).await,
    }
}
