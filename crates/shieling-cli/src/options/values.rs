//! The values of options, each read once at the edge and trusted afterwards.
//!
//! Every type reads the same text on the command line ([`FromStr`]) and in `shieling.toml`
//! ([`Deserialize`]), so that an option and its key cannot drift apart.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use clap::ValueEnum;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use shieling::network::{HostRule, SecretError, SecretSpec};
use shieling::units::{ByteCount, parse_duration};
use shieling_remote::ssh::Destination;

/// Where commands run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum EnvironmentName {
    /// Linux namespaces, Landlock and seccomp around a process of this host
    Sandbox,
    /// This host, unconfined; only the policy and the person asked stand in between
    Local,
    /// Files and a bash in memory; no process is started
    Memory,
    /// A container of Docker or Podman
    Container,
    /// Another machine, over the user's own ssh
    #[value(skip)]
    #[serde(skip)]
    Ssh,
}

impl EnvironmentName {
    /// The name as options and outcomes write it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Sandbox => "sandbox",
            Self::Local => "local",
            Self::Memory => "memory",
            Self::Container => "container",
            Self::Ssh => "ssh",
        }
    }

    /// Whether a command can have a terminal in it.
    pub(crate) fn has_terminals(self) -> bool {
        match self {
            Self::Sandbox | Self::Local | Self::Container | Self::Ssh => true,
            Self::Memory => false,
        }
    }
}

impl fmt::Display for EnvironmentName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Where commands run, and on which machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Chosen {
    /// By its name, on this machine.
    Here(EnvironmentName),
    /// On another one.
    Ssh(Destination),
}

impl Chosen {
    /// What it is called.
    pub(crate) fn name(&self) -> EnvironmentName {
        match self {
            Self::Here(name) => *name,
            Self::Ssh(_) => EnvironmentName::Ssh,
        }
    }
}

impl From<EnvironmentName> for Chosen {
    fn from(name: EnvironmentName) -> Self {
        Self::Here(name)
    }
}

impl FromStr for Chosen {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.starts_with("ssh:") {
            let destination = text.parse::<Destination>();
            return destination.map(Self::Ssh).map_err(|error| error.to_string());
        }
        <EnvironmentName as ValueEnum>::from_str(text, false)
            .map(Self::Here)
            .map_err(|_| {
                "there are `sandbox`, `local`, `memory`, `container`, and `ssh://[USER@]HOST[:PORT][/DIR]`".to_owned()
            })
    }
}

impl fmt::Display for Chosen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Here(name) => name.fmt(f),
            Self::Ssh(destination) => destination.fmt(f),
        }
    }
}

/// How much stands between a command and this host, in falling strictness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Isolation {
    /// Namespaces, Landlock and a filter of system calls
    Full,
    /// A guard-rail, not a boundary: Landlock and a filter of system calls, without namespaces
    Landlock,
}

/// Who is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Approval {
    /// Before every command
    Always,
    /// Where the verdict is "ask"
    Policy,
    /// Nobody; an "ask" is then refused
    Never,
}

/// What of the network can be reached, in falling strictness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Network {
    /// Nothing, not even a loopback
    None,
    /// A loopback of its own: servers work in there, and nothing of this host is reachable
    Loopback,
    /// All that this host can reach
    Host,
}

impl Network {
    /// The name as options write it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Loopback => "loopback",
            Self::Host => "host",
        }
    }
}

/// Which container engine is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Engine {
    /// Docker if it answers, and otherwise Podman
    Auto,
    /// Docker
    Docker,
    /// Podman
    Podman,
}

/// When an image is pulled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Pull {
    /// If the engine does not have it
    Auto,
    /// Never
    Never,
    /// Before each container
    Always,
}

/// How closed a container is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Preset {
    /// As closed as commands can be without knowing of it
    Hardened,
    /// As the engine makes it
    Plain,
}

/// How a workspace is copied into a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum WorkspaceCopy {
    /// What commands change goes with the container
    In,
    /// What commands change is moved into the workspace at the end
    Both,
}

/// Who commands of a container run as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ContainerUser {
    /// By numbers.
    Id(u32, u32),
    /// The owner of the workspace.
    Keep,
}

impl FromStr for ContainerUser {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "keep" {
            return Ok(Self::Keep);
        }
        let number = |text: &str| text.parse::<u32>().ok().filter(|id| *id != u32::MAX);
        let (user, group) = text.split_once(':').unwrap_or((text, text));
        match (number(user), number(group)) {
            (Some(user), Some(group)) => Ok(Self::Id(user, group)),
            _ => Err("it is the number of a user, UID:GID, or `keep`".to_owned()),
        }
    }
}

impl fmt::Display for ContainerUser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Id(user, group) => write!(f, "{user}:{group}"),
            Self::Keep => f.write_str("keep"),
        }
    }
}

/// A file or directory of this host in a container: `SRC:DST[:ro]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mounted {
    /// The path on this host.
    pub(crate) source: std::path::PathBuf,
    /// The path in the container, absolute.
    pub(crate) target: std::path::PathBuf,
    /// Whether it cannot be written.
    pub(crate) readonly: bool,
}

impl FromStr for Mounted {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let form = || "a volume is written `SRC:DST` or `SRC:DST:ro`".to_owned();
        let parts: Vec<&str> = text.split(':').collect();
        let (source, target, readonly) = match parts[..] {
            [source, target] | [source, target, "rw"] => (source, target, false),
            [source, target, "ro"] => (source, target, true),
            _ => return Err(form()),
        };
        if source.is_empty() || text.contains('\0') {
            return Err(form());
        }
        let target = std::path::PathBuf::from(target);
        is_below_root(&target)?;
        Ok(Self {
            source: source.into(),
            target,
            readonly,
        })
    }
}

/// Refuses what is no absolute path of a container, below its root and without steps back.
pub(crate) fn is_below_root(path: &std::path::Path) -> Result<(), String> {
    use std::path::Component;
    let plain = |part| matches!(part, Component::RootDir | Component::Normal(_));
    if path.is_absolute() && path.parent().is_some() && path.components().all(plain) {
        return Ok(());
    }
    Err("the path in the container has to be absolute, below `/`, and without `..`".to_owned())
}

impl fmt::Display for Mounted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let readonly = if self.readonly { ":ro" } else { "" };
        write!(f, "{}:{}{readonly}", self.source.display(), self.target.display())
    }
}

/// What becomes of the home of commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Home {
    /// Empty at first, and gone with the sandbox
    Private,
    /// Kept for the next sandbox of this workspace, in the state directory
    Persistent,
}

/// Where changes to the workspace go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Changes {
    /// Into the workspace, at once
    #[default]
    Direct,
    /// Into a private layer, and after each command, judged, into the workspace
    Commit,
    /// Into a private layer, and into the workspace once a person has seen the diff and agreed
    Review,
    /// Into a private layer, which is removed at the end
    Discard,
}

/// How much faster something is played.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Speed(f64);

impl Speed {
    /// The factor: from 0.01 to 1,000.
    pub(crate) fn get(self) -> f64 {
        self.0
    }
}

impl FromStr for Speed {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse() {
            Ok(factor) if (0.01..=1_000.0).contains(&factor) => Ok(Self(factor)),
            Ok(_) | Err(_) => Err("a speed is a number from 0.01 to 1000".to_owned()),
        }
    }
}

/// A time limit above zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Timeout(Duration);

impl Timeout {
    /// The limit for so many seconds.
    #[cfg(test)]
    pub(crate) const fn seconds(seconds: u64) -> Self {
        Self(Duration::from_secs(seconds))
    }

    /// The duration, never zero.
    pub(crate) fn get(self) -> Duration {
        self.0
    }
}

impl FromStr for Timeout {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let duration = parse_duration(text).map_err(|error| error.to_string())?;
        if duration.is_zero() {
            return Err("a timeout of 0 leaves no time to run; give at least `1ms`".to_owned());
        }
        Ok(Self(duration))
    }
}

impl fmt::Display for Timeout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}s", self.0.as_secs_f64())
    }
}

/// A size limit above zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Size(ByteCount);

impl Size {
    /// The number of bytes, never zero.
    pub(crate) fn get(self) -> ByteCount {
        self.0
    }
}

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let size: ByteCount = text
            .parse()
            .map_err(|error: shieling::units::UnitError| error.to_string())?;
        if size.get() == 0 {
            return Err("a limit of 0 leaves nothing; leave the option out, or give at least `1`".to_owned());
        }
        Ok(Self(size))
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.get())
    }
}

/// A number of processors such as `1.5`: as small a share as the kernel can give, up to more than a host has.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub(crate) struct Cpus(f64);

impl Cpus {
    const LEAST: f64 = 0.001;
    const MOST: f64 = 10_000.0;

    /// In thousandths of a processor, at least one.
    pub(crate) fn thousandths(self) -> u64 {
        (self.0 * 1_000.0).round() as u64
    }
}

impl FromStr for Cpus {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.trim().parse::<f64>() {
            Ok(count) if (Self::LEAST..=Self::MOST).contains(&count) => Ok(Self(count)),
            Ok(_) | Err(_) => Err(format!(
                "`{text}` is not a number of processors from {} to {}, such as `0.5` or `2`",
                Self::LEAST,
                Self::MOST
            )),
        }
    }
}

impl fmt::Display for Cpus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// A number of processes: at least the shell itself, and at most as many as Linux can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Pids(u32);

impl Pids {
    /// Some remain for the sandbox's own.
    const MOST: u32 = 4_000_000;

    /// The number, never zero.
    pub(crate) fn get(self) -> u32 {
        self.0
    }
}

impl FromStr for Pids {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.trim().parse::<u32>() {
            Ok(count) if (1..=Self::MOST).contains(&count) => Ok(Self(count)),
            Ok(_) | Err(_) => Err(format!(
                "`{text}` is not a number of processes from 1 to {}, such as `512`",
                Self::MOST
            )),
        }
    }
}

impl fmt::Display for Pids {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// So many starts within so many seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Window {
    /// How many may start.
    pub(crate) starts: u32,
    /// Within how many seconds.
    pub(crate) seconds: u32,
}

impl Window {
    /// Whether this window lets nothing through that `other` would stop.
    fn is_within(self, other: Self) -> bool {
        self.starts <= other.starts && self.seconds >= other.seconds
    }
}

impl FromStr for Window {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (starts, seconds) = text.trim().split_once('/').ok_or(())?;
        let number = |text: &str| text.trim().parse::<u32>().ok().filter(|n| *n > 0).ok_or(());
        Ok(Self {
            starts: number(starts)?,
            seconds: number(seconds)?,
        })
    }
}

/// How many commands may start: a burst, and a sustained rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rate {
    /// The short window.
    pub(crate) burst: Window,
    /// The long window.
    pub(crate) sustained: Window,
}

impl Rate {
    /// Whether this rate lets nothing through that `other` would stop.
    pub(crate) fn is_within(self, other: Self) -> bool {
        self.burst.is_within(other.burst) && self.sustained.is_within(other.sustained)
    }
}

impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let error = || {
            format!("`{text}` is not BURST/SECONDS,SUSTAINED/SECONDS, such as `3/10,10/60`; every number is above 0")
        };
        let (burst, sustained) = text.split_once(',').ok_or_else(error)?;
        Ok(Self {
            burst: burst.parse().map_err(|()| error())?,
            sustained: sustained.parse().map_err(|()| error())?,
        })
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { burst, sustained } = self;
        write!(
            f,
            "{}/{},{}/{}",
            burst.starts, burst.seconds, sustained.starts, sustained.seconds
        )
    }
}

/// The name of an environment variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct VariableName(String);

impl VariableName {
    /// The name.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for VariableName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut letters = text.chars();
        let first = letters.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
        if first && letters.all(|c| c.is_ascii_alphanumeric() || c == '_') {
            return Ok(Self(text.to_owned()));
        }
        // The text may be a secret that lost its `NAME=`, so it is not repeated.
        Err("this is not the name of a variable: letters, digits and `_`, not starting with a digit".to_owned())
    }
}

impl fmt::Display for VariableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// `NAME=VALUE`. The value may be a secret, so `Debug` leaves it out.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Assignment {
    /// The variable.
    pub(crate) name: VariableName,
    /// Its value.
    pub(crate) value: String,
}

impl fmt::Debug for Assignment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}=…", self.name)
    }
}

impl FromStr for Assignment {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, value) = text.split_once('=').ok_or("a variable is set as `NAME=VALUE`")?;
        if value.contains('\0') {
            return Err("the value holds a NUL byte, which no program can be given".to_owned());
        }
        Ok(Self {
            name: name.parse()?,
            value: value.to_owned(),
        })
    }
}

impl fmt::Display for Assignment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.name, self.value)
    }
}

/// A preset, or a policy file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PolicyName {
    /// A name without `/` and `.` is a preset, whatever files there are.
    Preset(String),
    /// Anything else is a file.
    File(std::path::PathBuf),
}

impl FromStr for PolicyName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("the name of a policy is empty; give a preset such as `readonly`, or a file".to_owned());
        }
        Ok(if text.contains(['/', '.']) {
            Self::File(text.into())
        } else {
            Self::Preset(text.to_owned())
        })
    }
}

impl fmt::Display for PolicyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Preset(name) => f.write_str(name),
            Self::File(path) => write!(f, "{}", path.display()),
        }
    }
}

/// An entry of an allow or deny list: words, such as `git log`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Prefix(String);

impl Prefix {
    /// The words as they were written.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Prefix {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.trim().is_empty() {
            return Err("an empty entry would name every command or none; give words such as `git log`".to_owned());
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What `--allow-host` takes: a host with its port, or a set of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AllowedHost {
    text: String,
    rules: Vec<HostRule>,
}

impl AllowedHost {
    /// The hosts.
    pub(crate) fn rules(&self) -> &[HostRule] {
        &self.rules
    }
}

impl FromStr for AllowedHost {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let rules = HostRule::expand(text).map_err(|fault| match fault.instead() {
            Some(instead) => format!("{fault}; {instead}"),
            None => fault.to_string(),
        })?;
        Ok(Self {
            text: text.to_owned(),
            rules,
        })
    }
}

impl fmt::Display for AllowedHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// What `--secret` takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NamedSecret {
    text: String,
    spec: SecretSpec,
}

impl NamedSecret {
    /// What it says.
    pub(crate) fn spec(&self) -> &SecretSpec {
        &self.spec
    }
}

impl FromStr for NamedSecret {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let spec = text.parse().map_err(|fault: SecretError| fault.to_string())?;
        Ok(Self {
            text: text.to_owned(),
            spec,
        })
    }
}

impl fmt::Display for NamedSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Reads text, or a bare number, through [`FromStr`], and writes what reads back as the same.
macro_rules! as_text {
    ($($kind:ty => $expected:literal),* $(,)?) => {$(
        impl Serialize for $kind {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $kind {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Visitor;

                impl de::Visitor<'_> for Visitor {
                    type Value = $kind;

                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str($expected)
                    }

                    fn visit_str<E: de::Error>(self, text: &str) -> Result<$kind, E> {
                        text.parse().map_err(E::custom)
                    }

                    fn visit_i64<E: de::Error>(self, number: i64) -> Result<$kind, E> {
                        self.visit_str(&number.to_string())
                    }

                    fn visit_u64<E: de::Error>(self, number: u64) -> Result<$kind, E> {
                        self.visit_str(&number.to_string())
                    }

                    fn visit_f64<E: de::Error>(self, number: f64) -> Result<$kind, E> {
                        self.visit_str(&number.to_string())
                    }
                }

                deserializer.deserialize_any(Visitor)
            }
        }
    )*};
}

as_text! {
    Chosen => "the name of an environment, or \"ssh://HOST\"",
    Timeout => "a duration such as \"30s\"",
    Size => "a size such as \"64KiB\"",
    Cpus => "a number of processors such as 1.5",
    Pids => "a number of processes such as 512",
    Rate => "a rate such as \"3/10,10/60\"",
    VariableName => "the name of a variable",
    Assignment => "\"NAME=VALUE\"",
    PolicyName => "a preset or a file",
    Prefix => "the first words of a command",
    AllowedHost => "a host such as \"pypi.org\", or a set such as \"@python\"",
    NamedSecret => "\"VAR@HOST\" or \"VAR@HOST=SOURCE\"",
    ContainerUser => "UID, UID:GID or \"keep\"",
    Mounted => "\"SRC:DST\" or \"SRC:DST:ro\"",
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip<T: FromStr + fmt::Display + PartialEq + fmt::Debug>(text: &str)
    where
        T::Err: fmt::Debug,
    {
        let value: T = text.parse().unwrap();
        assert_eq!(value.to_string().parse::<T>().unwrap(), value, "{text}");
    }

    #[test]
    fn what_is_written_reads_back_as_the_same() {
        for text in ["30s", "2m", "500ms", "1.5s", "0.1ms", "1h"] {
            round_trip::<Timeout>(text);
        }
        round_trip::<Chosen>("sandbox");
        round_trip::<Chosen>("ssh://me@box:2222/srv/a%20b");
        round_trip::<Size>("64KiB");
        round_trip::<Cpus>("1.5");
        round_trip::<Pids>("512");
        round_trip::<Rate>("3/10,10/60");
        round_trip::<Assignment>("A=b=c d");
        round_trip::<PolicyName>("readonly");
        round_trip::<ContainerUser>("1000:100");
        round_trip::<ContainerUser>("keep");
        round_trip::<Mounted>("/a b:/c:ro");
        round_trip::<PolicyName>("./readonly");
    }

    #[test]
    fn limits_of_nothing_are_refused() {
        assert!("0".parse::<Timeout>().is_err());
        assert!("0ms".parse::<Timeout>().is_err());
        assert!("0".parse::<Size>().is_err());
        assert!("0".parse::<Pids>().is_err());
        for text in ["0", "-1", "nan", "inf", "", "0.0001", "1e300"] {
            assert!(text.parse::<Cpus>().is_err(), "{text}");
        }
        for (text, fits) in [
            ("1", true),
            ("4000000", true),
            ("4000001", false),
            ("4294967296", false),
        ] {
            assert_eq!(text.parse::<Pids>().is_ok(), fits, "{text}");
        }
        for text in ["0/10,10/60", "3/0,10/60", "3/10", "3,10", "a/b,c/d", "3/10,10/60,1/1"] {
            assert!(text.parse::<Rate>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_volume_has_a_source_an_absolute_target_and_perhaps_ro() {
        for (text, shown) in [
            ("/a:/b", Some("/a:/b")),
            ("/a:/b:rw", Some("/a:/b")),
            ("a:/b/c:ro", Some("a:/b/c:ro")),
            ("/a", None),
            (":/b", None),
            ("/a:b", None),
            ("/a:/", None),
            ("/a:/b/../c", None),
            ("/a:/b:exec", None),
            ("/a:/b:ro:ro", None),
        ] {
            let read = text.parse::<Mounted>().ok().map(|volume| volume.to_string());
            assert_eq!(read.as_deref(), shown, "{text}");
        }
        for (text, user) in [
            ("5", Some("5:5")),
            ("5:6", Some("5:6")),
            ("-1", None),
            ("me", None),
            ("4294967295", None),
        ] {
            let read = text.parse::<ContainerUser>().ok().map(|user| user.to_string());
            assert_eq!(read.as_deref(), user, "{text}");
        }
    }

    #[test]
    fn a_malformed_variable_is_refused_without_repeating_it() {
        for text in ["hunter2", "=v", "1A=v", "A B=v", "é=v", "A=v\0w"] {
            let error = text.parse::<Assignment>().unwrap_err();
            assert!(!error.contains("hunter2"), "{error}");
        }
        assert_eq!(
            format!("{:?}", "TOKEN=hunter2".parse::<Assignment>().unwrap()),
            "TOKEN=…"
        );
    }

    #[test]
    fn a_preset_is_a_name_and_a_file_is_a_path() {
        assert_eq!("readonly".parse(), Ok(PolicyName::Preset("readonly".to_owned())));
        assert_eq!("readonly.toml".parse(), Ok(PolicyName::File("readonly.toml".into())));
        assert_eq!("./readonly".parse(), Ok(PolicyName::File("./readonly".into())));
    }

    #[test]
    fn a_rate_is_stricter_only_in_both_windows() {
        let rate = |text: &str| text.parse::<Rate>().unwrap();
        assert!(rate("2/10,10/60").is_within(rate("3/10,10/60")));
        assert!(rate("3/20,10/60").is_within(rate("3/10,10/60")));
        assert!(!rate("2/10,11/60").is_within(rate("3/10,10/60")));
        assert!(!rate("3/9,10/60").is_within(rate("3/10,10/60")));
    }
}
