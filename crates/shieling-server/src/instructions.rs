//! What a client puts into its model's prompt about this server: where commands run, and how to work
//! there. Made before anything starts, so that it names no versions; a tool tells those.

use shieling::describe::{Basis, Description};

use crate::dialect::Dialect;
use crate::tools::Tool;

/// The instructions for an environment of which this much is known.
pub fn instructions(basis: Basis, dialect: Dialect) -> String {
    let mut lines = vec![format!(
        "Commands run in the environment `{}` ({}), in {}; network: {}.",
        basis.environment,
        basis.os,
        basis.cwd.display(),
        basis.network
    )];
    let described = Description::new(basis, Vec::new(), Vec::new());
    lines.extend(described.advice.iter().map(|advice| format!("- {advice}")));
    if let Some(name) = dialect.name_of(Tool::Environment) {
        lines.push(format!(
            "- `{name}` tells more: limits, policies, and which programs are there."
        ));
    }
    lines.join("\n")
}
