//! What `steps.toml` says, read once. Refuses what it does not know.

use std::path::Path;

use anyhow::{Context as _, bail};
use serde::Deserialize;

use super::account::Account;

/// All of it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Steps {
    #[serde(rename = "source")]
    pub(super) sources: Vec<Source>,
    #[serde(rename = "project")]
    pub(super) projects: Vec<Project>,
}

/// What is fetched once.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Source {
    pub(super) name: String,
    #[serde(default)]
    pub(super) needs: Vec<String>,
    pub(super) fetch: String,
}

/// A workspace, and what is done in it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Project {
    pub(super) name: String,
    /// Directories of sources, each with `:DIRECTORY` where it is not to be copied to the top, which may be in the home
    /// (`:~/DIRECTORY`).
    #[serde(default)]
    pub(super) sources: Vec<String>,
    #[serde(default)]
    pub(super) needs: Vec<String>,
    /// Directories of sources that the home has a link to, each with `:PATH` in the home.
    #[serde(default)]
    pub(super) caches: Vec<String>,
    #[serde(default)]
    pub(super) users: Users,
    #[serde(default)]
    pub(super) options: Vec<String>,
    /// Whether all of it is done once more inside where changes are staged and committed after each step.
    #[serde(default)]
    pub(super) staged: bool,
    #[serde(default)]
    pub(super) prepare: String,
    #[serde(rename = "step")]
    pub(super) steps: Vec<Step>,
}

/// One text.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Step {
    pub(super) name: String,
    #[serde(default)]
    pub(super) needs: Vec<String>,
    #[serde(default)]
    pub(super) users: Users,
    pub(super) run: String,
    #[serde(default)]
    pub(super) exit: i32,
    #[serde(default)]
    pub(super) compare: Compare,
    #[serde(default)]
    pub(super) mask: Vec<String>,
    pub(super) differs: Option<Differs>,
    /// The same where changes are staged.
    pub(super) staged: Option<Differs>,
}

/// Where and why inside is not as outside.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Differs {
    #[serde(default)]
    pub(super) users: Users,
    /// The exit status inside.
    #[serde(default)]
    pub(super) exit: i32,
    pub(super) because: String,
}

/// Who does something.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Users {
    #[default]
    Both,
    Root,
    User,
}

impl Users {
    pub(super) fn has(self, account: Account) -> bool {
        match self {
            Self::Both => true,
            Self::Root => account == Account::Root,
            Self::User => account != Account::Root,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Both => "both",
            Self::Root => "root",
            Self::User => "an ordinary user",
        }
    }
}

/// What is compared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Compare {
    /// The exit status and the standard output.
    #[default]
    Output,
    /// The exit status.
    Exit,
}

impl Steps {
    pub(super) fn read() -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(crate::workspace::root().join("xtask/src/realwork/steps.toml"))?;
        let steps: Self = toml::from_str(&text).context("steps.toml")?;
        let mut names = std::collections::BTreeSet::new();
        for step in steps.projects.iter().flat_map(|project| &project.steps) {
            if !names.insert(&step.name) {
                bail!("two steps are called `{}`", step.name);
            }
            step.masked("")?;
        }
        for project in steps.projects.iter().filter(|project| !project.staged) {
            if let Some(step) = project.steps.iter().find(|step| step.staged.is_some()) {
                bail!("the step `{}` is never done where changes are staged", step.name);
            }
        }
        Ok(steps)
    }

    /// The projects with these names, or all where none is named.
    pub(super) fn chosen<'a>(&'a self, names: &'a [String]) -> impl Iterator<Item = &'a Project> {
        self.projects
            .iter()
            .filter(|project| names.is_empty() || names.contains(&project.name))
    }
}

impl Project {
    /// The directories of sources that it has: copies and caches.
    fn directories(&self) -> impl Iterator<Item = &str> {
        let named = self.sources.iter().chain(&self.caches);
        named.map(|named| named.split(':').next().unwrap_or_default())
    }

    /// Whether something of this source is in it.
    pub(super) fn uses(&self, source: &str) -> bool {
        self.directories()
            .any(|directory| Path::new(directory).starts_with(source))
    }

    /// What of its programs, files and sources is not here.
    pub(super) fn missing(&self, sources: &Path) -> Vec<String> {
        let programs = self.needs.iter().chain(self.steps.iter().flat_map(|step| &step.needs));
        let mut missing = missing(programs);
        for directory in self.directories() {
            if !sources.join(directory).exists() {
                missing.push(format!("the source `{directory}`"));
            }
        }
        missing
    }
}

/// What of these programs and files is not here.
pub(super) fn missing<'a>(needs: impl Iterator<Item = &'a String>) -> Vec<String> {
    let is_there = |need: &str| match need.starts_with('/') {
        true => Path::new(need).exists(),
        false => {
            let path = std::env::var_os("PATH").unwrap_or_default();
            std::env::split_paths(&path).any(|directory| directory.join(need).exists())
        }
    };
    needs
        .filter(|need| !is_there(need))
        .map(|need| format!("`{need}`"))
        .collect()
}

impl Step {
    /// An output, without what differs from run to run.
    pub(super) fn masked(&self, output: &str) -> anyhow::Result<String> {
        let mut output = output.to_owned();
        for mask in &self.mask {
            let mask = regex::Regex::new(mask).with_context(|| format!("the mask of `{}`", self.name))?;
            output = mask.replace_all(&output, "…").into_owned();
        }
        Ok(output)
    }
}
