//! A case: its name, its needs, the environment that it requires, and its checks.

use std::path::PathBuf;

use shieling::Builder;
use shieling::environment::{Ability, JailLimits, Later, Network};
use shieling::policy::Policy;

use super::Requirements;
use super::context::Context;

pub(crate) use super::report::Checked;
pub(crate) use super::step::{Need, Step, run, shell, shell_in};

/// A check in code.
pub(crate) type Check = for<'a> fn(&'a Context) -> Later<'a, Checked>;

/// What a case does.
pub(crate) enum Procedure {
    /// Runs commands in order.
    Steps(Vec<Step>),
    /// Runs code.
    Code(Check),
}

/// A case.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) needs: Vec<Need>,
    pub(crate) requirements: Requirements,
    /// Further configuration of the façade.
    pub(crate) builder: fn(Builder) -> Builder,
    pub(crate) trial: Procedure,
}

impl Case {
    fn new(name: &'static str, needs: Vec<Need>, trial: Procedure) -> Self {
        Self {
            name,
            needs,
            requirements: Requirements::none(),
            builder: |builder| builder,
            trial,
        }
    }

    /// Adds needs.
    pub(crate) fn needs(mut self, more: impl IntoIterator<Item = Need>) -> Self {
        self.needs.extend(more);
        self
    }

    /// Adds needed programs.
    pub(crate) fn programs(self, names: &[&'static str]) -> Self {
        let needs: Vec<_> = names.iter().map(|name| Need::Program(name)).collect();
        self.needs(needs)
    }

    /// Adds an initial file.
    pub(crate) fn file(mut self, path: &str, content: impl Into<Vec<u8>>) -> Self {
        self.requirements.files.insert(PathBuf::from(path), content.into());
        self
    }

    /// Adds initial files.
    pub(crate) fn files(self, files: &[(&str, &str)]) -> Self {
        files
            .iter()
            .fold(self, |case, (path, content)| case.file(path, *content))
    }

    /// Sets the policy.
    pub(crate) fn under(mut self, policy: Policy) -> Self {
        self.requirements.policy = policy;
        self
    }

    /// Makes the environment read-only.
    pub(crate) fn readonly(self) -> Self {
        self.under(Policy::open().with_readonly())
    }

    /// Hides these paths.
    pub(crate) fn ignoring(self, patterns: &[&str]) -> Self {
        self.under(
            Policy::open()
                .with_ignore(patterns)
                .expect("patterns of ours can be read"),
        )
    }

    /// Sets limits that its commands share.
    pub(crate) fn limited(mut self, limits: JailLimits) -> Self {
        self.requirements.limits = limits;
        self
    }

    /// Sets the network.
    pub(crate) fn network(mut self, network: Network) -> Self {
        self.requirements.network = Some(network);
        self
    }

    /// Configures the façade.
    pub(crate) fn built(mut self, builder: fn(Builder) -> Builder) -> Self {
        self.builder = builder;
        self
    }
}

/// Creates a case of commands.
pub(crate) fn case(name: &'static str, steps: impl IntoIterator<Item = Step>) -> Case {
    let steps: Vec<Step> = steps.into_iter().collect();
    let mut needs = vec![Need::Can(Ability::Commands)];
    if steps.iter().any(|step| step.session.is_some()) {
        needs.push(Need::Can(Ability::Sessions));
    }
    Case::new(name, needs, Procedure::Steps(steps))
}

/// Creates a case of code that runs commands.
pub(crate) fn check(name: &'static str, check: Check) -> Case {
    Case::new(name, vec![Need::Can(Ability::Commands)], Procedure::Code(check))
}

/// Creates a case of code without needs.
pub(crate) fn look(name: &'static str, check: Check) -> Case {
    Case::new(name, Vec::new(), Procedure::Code(check))
}

/// Creates a case that reads files.
pub(crate) fn reads(name: &'static str, check: Check) -> Case {
    Case::new(name, vec![Need::Can(Ability::ReadFiles)], Procedure::Code(check))
}

/// Creates a case that writes files and reads them again.
pub(crate) fn writes(name: &'static str, check: Check) -> Case {
    let needs = vec![Need::Can(Ability::ReadFiles), Need::Can(Ability::WriteFiles)];
    Case::new(name, needs, Procedure::Code(check))
}
