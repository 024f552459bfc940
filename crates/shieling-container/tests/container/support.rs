//! Containers of the engines in `engines`, and what runs in them.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use shieling::Shieling;
use shieling::approval::Mode;
use shieling::outcome::Outcome;
use shieling::policy::Policy;
use shieling::request::Command;
use shieling_container::{Choice, Container, ContainerError, Options, Pull, Run, Surroundings, Volume};
use tempfile::TempDir;

pub(crate) use super::engines::*;

impl Engine {
    pub(crate) fn surroundings(&self) -> Surroundings {
        Surroundings {
            docker_host: Some(format!("unix://{}", self.socket.display())),
            ..Surroundings::default()
        }
    }

    /// Opens a container with these options.
    pub(crate) async fn open(&self, options: Options) -> Result<Container, ContainerError> {
        let state = state();
        Container::open(options, Choice::Auto, &self.surroundings(), &state, None).await
    }

    /// Options of this image that this engine can hold: one that ignores limits goes without.
    pub(crate) fn options(&self, image: &str) -> Options {
        let mut options = Options::image(image);
        options.run = Run::Image {
            image: image.to_owned(),
            pull: Pull::Never,
        };
        options.unlimited = self.kind == Kind::Rootless && !has_groups_of_second_version();
        if image == TOOLS {
            options.volumes.push(Volume {
                source: "/usr".into(),
                target: "/usr".into(),
                readonly: true,
            });
        }
        options
    }
}

/// The state directory of all tests.
pub(crate) fn state() -> PathBuf {
    static PLACE: OnceLock<TempDir> = OnceLock::new();
    let place = PLACE.get_or_init(|| {
        let place = tempfile::tempdir().expect("a directory");
        fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).unwrap();
        place
    });
    place.path().to_owned()
}

/// A directory to work in that every user can write.
pub(crate) fn workspace() -> TempDir {
    let place = tempfile::tempdir().expect("a directory");
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o777)).unwrap();
    place
}

/// The library over a container, with this policy.
pub(crate) fn facade(container: &Arc<Container>, policy: Policy) -> Shieling {
    let workspace = container.workspace().to_owned();
    Shieling::builder(Arc::clone(container) as Arc<_>, policy, workspace)
        .approval(Mode::OnAsk)
        .build()
        .expect("it serves no other policy")
}

pub(crate) fn command(container: &Container, text: &str) -> Command {
    Command::new(text, container.workspace())
        .expect("a good command")
        .with_variables(container.variables())
}

/// Runs a text in a container under an open policy.
pub(crate) async fn run(container: &Arc<Container>, text: &str) -> Outcome {
    facade(container, Policy::open())
        .run(command(container, text), None)
        .await
}

/// Waits until something holds, or fails with what it is.
pub(crate) async fn until(what: &str, holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// The variables of a case of the conformance suite.
pub(crate) fn variables() -> BTreeMap<String, String> {
    [("PATH".to_owned(), "/usr/bin:/bin".to_owned())].into()
}

/// Reads a file of a workspace.
pub(crate) fn read(workspace: &TempDir, name: &str) -> Option<String> {
    fs::read_to_string(Path::join(workspace.path(), name)).ok()
}
