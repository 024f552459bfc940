//! Runs cases in parallel, each in an environment of its own.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use shieling::environment::Capabilities;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::case::{Case, Checked, Need, Procedure, case};
use super::cases;
use super::context::Context;
use super::{CaseReport, CaseResult, CheckFailure, EnvironmentFactory, Report, Unmet};

/// The suite, or a part of it.
#[derive(Debug, Clone)]
#[must_use]
pub struct Suite {
    only: Vec<String>,
    at_once: usize,
    timeout: Duration,
}

impl Default for Suite {
    fn default() -> Self {
        Self {
            only: Vec::new(),
            at_once: 6,
            timeout: Duration::from_secs(60),
        }
    }
}

/// Facts about an environment that are known before a case runs.
struct Known {
    can: Capabilities,
    programs: BTreeSet<&'static str>,
}

impl Suite {
    /// Creates a suite of all cases, of which six run in parallel, with a minute for each.
    pub fn new() -> Self {
        Self::default()
    }

    /// Selects cases whose group or name contains this text. Repeated calls add cases.
    pub fn only(mut self, text: impl Into<String>) -> Self {
        self.only.push(text.into());
        self
    }

    /// Sets the number of parallel cases (at least 1). Most of them are waiting most of the time.
    pub fn at_once(mut self, cases: usize) -> Self {
        self.at_once = cases.max(1);
        self
    }

    /// Sets the timeout of a case, and the timeout for events to at most 20 s. A case that exceeds it has failed.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Returns the groups and the names of all cases, in order.
    pub fn names() -> Vec<(&'static str, &'static str)> {
        cases::all().map(|(group, case)| (group, case.name)).collect()
    }

    fn wants(&self, group: &str, case: &Case) -> bool {
        let held = |text: &String| group.contains(text.as_str()) || case.name.contains(text.as_str());
        self.only.is_empty() || self.only.iter().any(held)
    }

    /// Runs the suite.
    ///
    /// # Cancel safety
    /// Dropping the future drops the façades of the running cases, which ends their processes.
    ///
    /// # Panics
    /// Outside of a tokio runtime with I/O and timers.
    pub async fn run(&self, factory: Arc<dyn EnvironmentFactory>) -> Report {
        let begun = Instant::now();
        let chosen = cases::all().filter(|(group, case)| self.wants(group, case));
        let known = match known(&factory, self.timeout).await {
            Ok(known) => Arc::new(known),
            Err(wrong) => {
                let line = |(group, case): (_, Case)| CaseReport {
                    group,
                    name: case.name,
                    came: CaseResult::Failed(wrong.clone()),
                    took: Duration::ZERO,
                };
                return Report {
                    environment: factory.name(),
                    lines: chosen.map(line).collect(),
                    took: begun.elapsed(),
                };
            }
        };
        let room = Arc::new(Semaphore::new(self.at_once));
        let (mut tasks, mut places, mut lines) = (JoinSet::new(), HashMap::new(), Vec::new());
        for (context, (group, case)) in chosen.enumerate() {
            lines.push(CaseReport {
                group,
                name: case.name,
                came: CaseResult::Failed(CheckFailure::new("an end", "none")),
                took: Duration::ZERO,
            });
            let (factory, known, room, timeout) = (
                Arc::clone(&factory),
                Arc::clone(&known),
                Arc::clone(&room),
                self.timeout,
            );
            let task = tasks.spawn(async move {
                let _turn = room.acquire_owned().await;
                let begun = Instant::now();
                (attempt(&case, factory, &known, timeout).await, begun.elapsed())
            });
            places.insert(task.id(), context);
        }
        while let Some(done) = tasks.join_next_with_id().await {
            let (id, came, took) = match done {
                Ok((id, (came, took))) => (id, came, took),
                Err(error) => {
                    let wrong = CheckFailure::new("no panic", error.to_string());
                    (error.id(), CaseResult::Failed(wrong), Duration::ZERO)
                }
            };
            let line = &mut lines[places[&id]];
            (line.came, line.took) = (came, took);
        }
        Report {
            environment: factory.name(),
            lines,
            took: begun.elapsed(),
        }
    }
}

/// Probes an environment without requirements: its abilities, and which of the needed programs it has.
async fn known(factory: &Arc<dyn EnvironmentFactory>, timeout: Duration) -> Result<Known, CheckFailure> {
    let looking = case("which programs there are", []);
    let place = factory.make(&looking.requirements).await;
    let place = place.map_err(|unmet| CheckFailure::new("a place without any wish", format!("{unmet:?}")))?;
    let context = Context::new(
        Arc::clone(factory),
        place,
        &looking.requirements,
        looking.builder,
        timeout,
    )
    .map_err(|unmet| CheckFailure::new("a place without any wish", format!("{unmet:?}")))?;
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
    let able = looking.needs.iter().all(|need| context.meets(*need));
    let said = if able {
        context.run(&text).await.stdout
    } else {
        String::new()
    };
    let known = Known {
        can: context.can.clone(),
        programs: wanted
            .into_iter()
            .filter(|name| said.lines().any(|line| line == *name))
            .collect(),
    };
    context.close().await.map(|()| known)
}

/// Returns why a case cannot run, as far as it is known beforehand.
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
        // Depends on how the environment is created.
        Need::Hides | Need::EnforcesReadonly | Need::EnforcesAllow | Need::OutsideDirectory => None,
    })
}

async fn attempt(case: &Case, factory: Arc<dyn EnvironmentFactory>, known: &Known, timeout: Duration) -> CaseResult {
    if let Some(why) = missing(case, known) {
        return CaseResult::Skipped(why);
    }
    let made = factory.make(&case.requirements).await;
    let context = match made.and_then(|place| Context::new(factory, place, &case.requirements, case.builder, timeout)) {
        Ok(context) => context,
        Err(Unmet::Refused(why)) if !declares(case) => return CaseResult::Skipped(why),
        Err(unmet) => return CaseResult::Failed(CheckFailure::new("a place as it is declared", format!("{unmet:?}"))),
    };
    let unmet = case.needs.iter().find(|need| !context.meets(**need));
    let came = match unmet {
        Some(need) => CaseResult::Skipped(format!("it does not have {need:?}")),
        None => match tokio::time::timeout(timeout, trial(case, &context)).await {
            Ok(Ok(())) => CaseResult::Passed,
            Ok(Err(wrong)) => CaseResult::Failed(wrong),
            Err(_) => CaseResult::Failed(CheckFailure::new(
                "an answer",
                format!("none within {} s", timeout.as_secs()),
            )),
        },
    };
    match (came, context.close().await) {
        (CaseResult::Failed(wrong), _) => CaseResult::Failed(wrong),
        (CaseResult::Passed | CaseResult::Skipped(_), Err(wrong)) => CaseResult::Failed(wrong),
        (came, Ok(())) => came,
    }
}

/// Returns whether the environment declares a requirement of a case as supported, and so may not refuse it.
fn declares(case: &Case) -> bool {
    let declared = |need: &Need| matches!(need, Need::Limits(_) | Need::Gives(_));
    case.needs.iter().any(declared) || case.requirements.policy.digest() == shieling::policy::Policy::open().digest()
}

async fn trial(case: &Case, context: &Context) -> Checked {
    match &case.trial {
        Procedure::Steps(steps) => {
            for step in steps {
                context.step(step).await?;
            }
            Ok(())
        }
        Procedure::Code(check) => check(context).await,
    }
}
