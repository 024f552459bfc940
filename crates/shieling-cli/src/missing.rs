//! A sandbox that could not be started, in words: which layer, what the kernel said, what of this host
//! may explain it, and the ways on. Weakens nothing by itself.

use shieling::environment::SandboxError;
use shieling::outcome::with_causes;
use shieling::process::{JailError, JailLayer as Layer, JailRefusal};

use crate::host::Host;
use crate::options::EnvironmentName;
use crate::plan;
use crate::words::Failure;

/// What it means that a layer failed, for a person.
pub(crate) fn meaning(layer: Layer) -> &'static str {
    match layer {
        Layer::Start => "its own program could not start",
        Layer::User => "namespaces cannot be made",
        Layer::Mount => "its view of files cannot be built",
        Layer::Pid => "its pid namespace cannot be set up",
        Layer::Network => "its network cannot be set up",
        Layer::Other => "its name cannot be set",
        Layer::Landlock => "Landlock is missing",
        Layer::Seccomp => "system calls cannot be filtered",
        Layer::Capabilities => "capabilities cannot be given up",
        Layer::Limits => "a limit cannot be set",
        Layer::Probe => "a probe from inside failed",
    }
}

/// The name of a layer for programs, as `confinement` has it where it has one.
pub(crate) fn name(layer: Layer) -> &'static str {
    match layer {
        Layer::Start => "start",
        Layer::User => "user",
        Layer::Mount => "mount",
        Layer::Pid => "pid",
        Layer::Network => "network",
        Layer::Other => "ipc",
        Layer::Landlock => "landlock",
        Layer::Seccomp => "seccomp",
        Layer::Capabilities => "capabilities",
        Layer::Limits => "limits",
        Layer::Probe => "probe",
    }
}

/// The layer that is missing, if that is what kept the sandbox from starting.
pub(crate) fn refusal(error: &SandboxError) -> Option<&JailRefusal> {
    match error {
        SandboxError::Jail(JailError::Refused(refusal)) => Some(refusal),
        _ => None,
    }
}

/// Why nothing was started. `landlock` is whether the lesser tier was tried and works.
pub(crate) fn explain(error: &SandboxError, host: &Host, landlock: bool) -> Failure {
    let Some(refused) = refusal(error) else {
        return Failure::new(format!("{}; nothing was started", with_causes(error)));
    };
    let mut failure = Failure::new(format!(
        "the sandbox cannot be started here: {}; nothing was started",
        meaning(refused.layer)
    ))
    .with("layer", format!("{}: {}", name(refused.layer), with_causes(error)))
    .with(
        "rule",
        "a command is never run with less confinement than was asked for",
    );
    for cause in host.causes(refused) {
        failure = failure.with("because", cause.because).with("fix", cause.fix);
    }
    let mut ways = Vec::new();
    if landlock {
        ways.push(
            "`--isolation landlock` works here, and is a guard-rail, not a boundary; `shieling exec --help` says what \
             it lacks",
        );
    }
    if plan::is_available(EnvironmentName::Container) {
        ways.push("`--env container`, where Docker or Podman runs");
    }
    if refused.layer != Layer::Limits {
        ways.push("`--env local`, where nothing confines a command and a person is asked about every one");
    }
    for way in ways {
        failure = failure.with("instead", way);
    }
    failure.with("more", "`shieling doctor` tries every layer")
}
