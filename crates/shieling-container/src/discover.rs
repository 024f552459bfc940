//! Where engines listen, by the rules of their own clients. What the user named stands alone: nothing else is tried in
//! its place.
#![expect(
    clippy::disallowed_methods,
    reason = "the engines' own settings say where they listen"
)]

use std::path::{Path, PathBuf};

use serde_json::Value;
use shieling::request::Digest;

use crate::client::{Endpoint, Engine};
use crate::error::ContainerError;

/// Which engine is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Choice {
    /// Docker if it answers, and otherwise Podman.
    #[default]
    Auto,
    /// Docker.
    Docker,
    /// Podman.
    Podman,
}

/// What of the caller's surroundings says where engines listen. Each is the variable of that name.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    /// `DOCKER_HOST`
    pub docker_host: Option<String>,
    /// `DOCKER_CONTEXT`
    pub docker_context: Option<String>,
    /// `DOCKER_CONFIG`
    pub docker_config: Option<PathBuf>,
    /// `CONTAINER_HOST`
    pub container_host: Option<String>,
    /// `XDG_RUNTIME_DIR`
    pub runtime_directory: Option<PathBuf>,
    /// `HOME`
    pub home: Option<PathBuf>,
}

/// An address that is to be tried.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Candidate {
    /// Who says so.
    by: String,
    address: Result<Endpoint, String>,
    wanted: Wanted,
}

/// What is expected there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Docker,
    Podman,
    Any,
}

/// Finds an engine that answers. Each address has 5 seconds.
///
/// # Errors
/// [`ContainerError::NoEngine`] with everything that was tried.
/// # Cancel safety
/// Cancel safe.
pub async fn discover(choice: Choice, surroundings: &Surroundings) -> Result<Engine, ContainerError> {
    let mut tried = Vec::new();
    for candidate in candidates(choice, surroundings) {
        let (by, wanted) = (candidate.by, candidate.wanted);
        let endpoint = match candidate.address {
            Ok(endpoint) => endpoint,
            Err(why) => {
                tried.push(format!("{by}: {why}"));
                continue;
            }
        };
        match Engine::at(endpoint.clone()).await {
            Ok(engine) if wanted == Wanted::Docker && engine.is_podman() => {
                tried.push(format!("{by} `{endpoint}`: it is Podman, and not Docker"));
            }
            Ok(engine) if wanted == Wanted::Podman && !engine.is_podman() => {
                tried.push(format!("{by} `{endpoint}`: it is not Podman"));
            }
            Ok(engine) => return Ok(engine),
            Err(error) => tried.push(format!("{by} {error}")),
        }
    }
    Err(ContainerError::NoEngine { tried })
}

/// The sockets at which engines are expected, whichever is chosen.
pub(crate) fn sockets(surroundings: &Surroundings) -> Vec<PathBuf> {
    let unnamed = Surroundings {
        docker_host: None,
        docker_context: None,
        container_host: None,
        ..surroundings.clone()
    };
    let all = [surroundings, &unnamed].into_iter().flat_map(|surroundings| {
        [Choice::Docker, Choice::Podman]
            .into_iter()
            .flat_map(|choice| candidates(choice, surroundings))
    });
    all.filter_map(|candidate| match candidate.address {
        Ok(Endpoint::Unix(path)) => Some(path),
        Ok(Endpoint::Tcp(_)) | Err(_) => None,
    })
    .collect()
}

fn candidates(choice: Choice, surroundings: &Surroundings) -> Vec<Candidate> {
    let wanted = match choice {
        Choice::Auto => Wanted::Any,
        Choice::Docker => Wanted::Docker,
        Choice::Podman => Wanted::Podman,
    };
    let named = |variable: &str, value: &str| Candidate {
        by: variable.to_owned(),
        address: Endpoint::parse(value).map_err(|why| format!("`{}`: {why}", value.escape_debug())),
        wanted,
    };
    let socket = |path: PathBuf, by: &str, wanted| Candidate {
        by: by.to_owned(),
        address: Ok(Endpoint::Unix(path)),
        wanted,
    };
    if let Some(host) = &surroundings.container_host
        && choice == Choice::Podman
    {
        return vec![named("CONTAINER_HOST", host)];
    }
    if let Some(host) = &surroundings.docker_host {
        return vec![named("DOCKER_HOST", host)];
    }
    let mut all = Vec::new();
    if choice != Choice::Podman {
        if let Some(candidate) = context(surroundings, wanted) {
            return vec![candidate];
        }
        all.push(socket("/var/run/docker.sock".into(), "docker", wanted));
        if let Some(directory) = &surroundings.runtime_directory {
            all.push(socket(directory.join("docker.sock"), "rootless docker", wanted));
        }
        if let Some(home) = &surroundings.home {
            all.push(socket(home.join(".docker/run/docker.sock"), "docker desktop", wanted));
        }
    }
    if choice != Choice::Docker {
        if let Some(host) = &surroundings.container_host {
            all.push(named("CONTAINER_HOST", host));
        }
        if let Some(directory) = &surroundings.runtime_directory {
            all.push(socket(directory.join("podman/podman.sock"), "rootless podman", wanted));
        }
        all.push(socket("/run/podman/podman.sock".into(), "podman", wanted));
    }
    all
}

/// The context that Docker's client would use, if it is not the default one.
fn context(surroundings: &Surroundings, wanted: Wanted) -> Option<Candidate> {
    let directory = match (&surroundings.docker_config, &surroundings.home) {
        (Some(directory), _) => directory.clone(),
        (None, Some(home)) => home.join(".docker"),
        (None, None) => return None,
    };
    let name = match &surroundings.docker_context {
        Some(name) => name.clone(),
        None => json(&directory.join("config.json"))?["currentContext"]
            .as_str()?
            .to_owned(),
    };
    if name.is_empty() || name == "default" {
        return None;
    }
    let digest = Digest::of(name.as_bytes()).to_string();
    let meta = json(&directory.join("contexts/meta").join(digest).join("meta.json"));
    let host = meta
        .as_ref()
        .and_then(|meta| meta["Endpoints"]["docker"]["Host"].as_str());
    Some(Candidate {
        by: format!("the docker context `{}`", name.escape_debug()),
        address: match host {
            Some(host) => Endpoint::parse(host).map_err(|why| format!("`{}`: {why}", host.escape_debug())),
            None => Err("there is no such context".to_owned()),
        },
        wanted,
    })
}

fn json(path: &Path) -> Option<Value> {
    serde_json::from_slice(&std::fs::read(path).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(choice: Choice, surroundings: &Surroundings) -> Vec<String> {
        candidates(choice, surroundings)
            .into_iter()
            .map(|candidate| match candidate.address {
                Ok(endpoint) => endpoint.to_string(),
                Err(why) => why,
            })
            .collect()
    }

    #[test]
    fn what_the_user_named_stands_alone() {
        let named = Surroundings {
            docker_host: Some("unix:///d.sock".to_owned()),
            container_host: Some("unix:///p.sock".to_owned()),
            runtime_directory: Some("/run/user/7".into()),
            ..Surroundings::default()
        };
        assert_eq!(shown(Choice::Auto, &named), ["unix:///d.sock"]);
        assert_eq!(shown(Choice::Docker, &named), ["unix:///d.sock"]);
        assert_eq!(shown(Choice::Podman, &named), ["unix:///p.sock"]);
        let over_ssh = Surroundings {
            docker_host: Some("ssh://elsewhere".to_owned()),
            ..named
        };
        assert!(shown(Choice::Auto, &over_ssh)[0].contains("forward its socket"));
    }

    #[test]
    fn rootless_sockets_are_those_of_the_user() {
        let of = Surroundings {
            runtime_directory: Some("/run/user/7".into()),
            home: Some("/nowhere/u".into()),
            ..Surroundings::default()
        };
        let docker = [
            "unix:///var/run/docker.sock",
            "unix:///run/user/7/docker.sock",
            "unix:///nowhere/u/.docker/run/docker.sock",
        ];
        let podman = [
            "unix:///run/user/7/podman/podman.sock",
            "unix:///run/podman/podman.sock",
        ];
        assert_eq!(shown(Choice::Docker, &of), docker);
        assert_eq!(shown(Choice::Podman, &of), podman);
        assert_eq!(shown(Choice::Auto, &of), [docker.as_slice(), &podman].concat());
    }

    #[test]
    fn the_context_of_dockers_client_counts() {
        let place = tempfile::tempdir().unwrap();
        let config = place.path().join(".docker");
        let meta = config.join("contexts/meta").join(Digest::of(b"mine").to_string());
        std::fs::create_dir_all(&meta).unwrap();
        std::fs::write(config.join("config.json"), r#"{"currentContext": "mine"}"#).unwrap();
        let text = r#"{"Name": "mine", "Endpoints": {"docker": {"Host": "unix:///ctx.sock"}}}"#;
        std::fs::write(meta.join("meta.json"), text).unwrap();
        let mut of = Surroundings {
            home: Some(place.path().to_owned()),
            ..Surroundings::default()
        };
        assert_eq!(shown(Choice::Docker, &of), ["unix:///ctx.sock"]);
        of.docker_context = Some("other".to_owned());
        assert_eq!(shown(Choice::Auto, &of), ["there is no such context"]);
        of.docker_context = Some("default".to_owned());
        assert_eq!(shown(Choice::Docker, &of)[0], "unix:///var/run/docker.sock");
    }

    #[tokio::test]
    async fn an_engine_that_hangs_is_named_after_a_bounded_time() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("s");
        let _listens = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let of = Surroundings {
            docker_host: Some(format!("unix://{}", path.display())),
            ..Surroundings::default()
        };
        let begun = std::time::Instant::now();
        let error = discover(Choice::Auto, &of).await.unwrap_err();
        assert!(begun.elapsed().as_secs() < 8, "{:?}", begun.elapsed());
        assert!(error.to_string().contains("has not answered"), "{error}");
        assert!(error.to_string().contains("DOCKER_HOST"), "{error}");
    }
}
