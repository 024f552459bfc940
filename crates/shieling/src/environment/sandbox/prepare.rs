//! The plan of a jail and what is to be looked after in it, made of what is asked for. Starts nothing.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use shieling_jail::plan::{self, Isolation, Plan};

use super::guard::Guard;
use super::hidden::HiddenFiles;
use super::outside::{self, Outlet};
use super::restrictions::UNHIDDEN;
use super::stage::Stage;
use super::{Network, Restrictions, SandboxError, etc, foreign, homes, place, view};

/// What is to be looked after in a jail.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) plan: Plan,
    pub(super) hidden: Vec<HiddenFiles>,
    pub(super) guard: Option<Guard>,
    pub(super) stage: Option<Arc<Stage>>,
}

/// Prepares a jail.
///
/// # Errors
/// [`SandboxError`].
pub(super) fn prepare(restrictions: &Restrictions, outlet: Option<&Outlet>) -> Result<Prepared, SandboxError> {
    let full = restrictions.isolation == Isolation::Full;
    if !full && restrictions.hidden.is_some() {
        return Err(SandboxError::Unsupported(UNHIDDEN));
    }
    let homes = restrictions
        .staging
        .as_ref()
        .map(|_| homes::known(restrictions.home.as_deref()));
    let stage = Stage::prepare(restrictions, &homes.unwrap_or_default())?;
    let staged = stage.as_ref().map(|stage| stage.entry(restrictions.programs.is_none()));
    let mut view = view::view(restrictions, staged)?;
    if let Some(stage) = &stage {
        stage.shows(&view.entries);
    }
    // Where they are shown; elsewhere there is nothing to hide.
    let own = restrictions.own.iter();
    if full {
        // Nor can the directories above be moved away: we come to it by its path.
        let workspace = &restrictions.workspace;
        let above = own.clone().filter(|own| place::below(own, workspace));
        let above = above.flat_map(|own| {
            own.ancestors()
                .skip(1)
                .take_while(|above| place::below(above, workspace))
        });
        let above: BTreeSet<&Path> = above.filter(|above| !view.homes.has_closed(above)).collect();
        if !restrictions.readonly {
            view.entries.extend(above.into_iter().map(|above| plan::Entry::Again {
                target: above.to_path_buf(),
                writable: true,
                executable: restrictions.programs.is_none(),
            }));
        }
        view.entries
            .extend(own.cloned().map(|target| plan::Entry::Hide { target }));
    } else if own.clone().any(|path| path.starts_with(&restrictions.workspace)) {
        return Err(SandboxError::Unsupported(
            "Shieling's own files lie in the workspace, and this isolation cannot hide them",
        ));
    }
    let mut hidden = HiddenFiles::of_all(restrictions, &view.homes.closed);
    for hidden in &mut hidden {
        let found = hidden.refresh()?;
        // One is enough to see that hiding works at all.
        view.probes.extend(found.first().cloned().map(plan::Probe::Hidden));
        view.entries
            .extend(found.into_iter().map(|target| plan::Entry::Hide { target }));
    }
    if let Some(outlet) = outlet {
        outside::show(outlet, &mut view.entries);
    }
    let plan = Plan {
        isolation: restrictions.isolation,
        network: match restrictions.network {
            Network::None => plan::Network::None,
            Network::Loopback => plan::Network::Loopback,
            Network::Host => plan::Network::Host,
        },
        gateway: outlet.map(Outlet::plan),
        hostname: etc::HOSTNAME.to_owned(),
        foreign: foreign::of(restrictions, &view.entries)?,
        view: view.entries,
        executable: view.executable,
        limits: restrictions.limits,
        probes: view.probes,
        killed_first: true,
        once: restrictions.once,
    };
    Ok(Prepared {
        plan,
        hidden,
        guard: view.guard,
        stage,
    })
}
