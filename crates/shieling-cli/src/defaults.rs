//! What holds where nobody says something else.

use crate::options::{Approval, EnvironmentName, Isolation, Network, Settings, Size, Timeout};

/// Who is asked where nobody says.
pub(crate) fn approval(env: EnvironmentName) -> Approval {
    match env {
        EnvironmentName::Local => Approval::Always,
        // Where another machine has a sandbox.
        EnvironmentName::Ssh => Approval::Policy,
        EnvironmentName::Sandbox | EnvironmentName::Memory | EnvironmentName::Container => Approval::Policy,
    }
}

/// What of the network can be reached where nobody says. A loopback of its own takes a network namespace.
pub(crate) fn network(env: EnvironmentName, isolation: Isolation) -> Network {
    match (env, isolation) {
        (EnvironmentName::Local, _) => Network::Host,
        (EnvironmentName::Sandbox | EnvironmentName::Ssh, Isolation::Full) => Network::Loopback,
        (EnvironmentName::Sandbox | EnvironmentName::Ssh, Isolation::Landlock) => Network::None,
        (EnvironmentName::Memory | EnvironmentName::Container, _) => Network::None,
    }
}

/// The limits where nobody sets one. Without namespaces memory and processes cannot be limited on
/// every host, so there they are only where somebody asks for it.
pub(crate) fn settings(env: EnvironmentName, isolation: Isolation) -> Settings {
    let value = "a default of ours is well formed";
    let sandbox = matches!(env, EnvironmentName::Sandbox | EnvironmentName::Ssh) && isolation == Isolation::Full;
    Settings {
        timeout: Some("60s".parse::<Timeout>().expect(value)),
        max_output: Some("64KiB".parse::<Size>().expect(value)),
        max_image_bytes: Some("10MiB".parse::<Size>().expect(value)),
        max_repeats: Some(5),
        memory: match env {
            EnvironmentName::Memory => Some("256MiB".parse().expect(value)),
            EnvironmentName::Container => Some("512MiB".parse().expect(value)),
            EnvironmentName::Local | EnvironmentName::Sandbox | EnvironmentName::Ssh => {
                sandbox.then(|| "4GiB".parse().expect(value))
            }
        },
        pids: match env {
            EnvironmentName::Container => Some("256".parse().expect(value)),
            EnvironmentName::Local | EnvironmentName::Sandbox | EnvironmentName::Memory | EnvironmentName::Ssh => {
                sandbox.then(|| "512".parse().expect(value))
            }
        },
        ..Settings::default()
    }
}
