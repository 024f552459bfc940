//! The server's instructions for the prompt of a model: where commands run, and how to work there. They are generated
//! before the environment starts, and so contain no versions of programs; a tool returns those.

use std::collections::BTreeSet;

use shieling::describe::{Description, EnvironmentInfo};
use shieling::environment::Ability;

use crate::tools::Tool;
use crate::toolset::{Offered, Toolset};

/// Returns the instructions for an environment with these facts and abilities.
#[must_use]
pub fn instructions(basis: EnvironmentInfo, toolset: &Toolset, abilities: &BTreeSet<Ability>) -> String {
    let offered = toolset.offered(abilities);
    let mut lines = vec![format!(
        "Commands run in the environment `{}` ({}), in {}; network: {}.",
        basis.environment,
        basis.os,
        basis.cwd.display(),
        basis.network
    )];
    let described = Description::new(basis, Vec::new(), Vec::new());
    lines.extend(described.advice.iter().map(|advice| format!("- {advice}")));
    if offered.name_of(Tool::Shell).is_some() && !abilities.contains(&Ability::Sessions) {
        lines.push(
            "- There are no sessions: each command begins in the workspace, and nothing of it but files is there for the next."
                .to_owned(),
        );
    }
    lines.extend(files(&offered).map(|advice| format!("- {advice}")));
    if let Some(name) = offered.name_of(Tool::Environment) {
        lines.push(format!(
            "- `{name}` tells more: limits, policies, and which programs are there."
        ));
    }
    lines.join("\n")
}

/// Describes the file tools.
fn files(offered: &Offered) -> Option<String> {
    let named = |tools: &[Tool]| {
        let names: Vec<String> = tools
            .iter()
            .filter_map(|tool| offered.name_of(*tool))
            .map(|name| format!("`{name}`"))
            .collect();
        (!names.is_empty()).then(|| names.join(", "))
    };
    let looks = named(&[Tool::ReadFile, Tool::Ls, Tool::Glob, Tool::Grep]);
    let changes = named(&[Tool::EditFile, Tool::WriteFile, Tool::ApplyPatch]);
    match (looks, changes) {
        (None, None) => None,
        (Some(looks), None) => Some(format!("Files are looked at with {looks}: they see what commands see.")),
        (None, Some(changes)) => Some(format!("Files are changed with {changes}: whole, or not at all.")),
        (Some(looks), Some(changes)) => Some(format!(
            "Files are looked at with {looks}, which see what commands see, and changed with {changes}, whole or not at all."
        )),
    }
}
