//! The description of an environment for a model: its location, its tools, its limits.
//!
//! This module contains only data and wording. The facts about the environment come in as an [`EnvironmentInfo`], and
//! a [`Probe`] asks each tool for its version, in the environment like any other command. A tool that is missing,
//! broken or hanging is left out, and never makes the description fail.
//!
//! The output of a probe comes from a program that may be part of the workspace, and a model reads it. It is
//! therefore cut to one short line without control characters.

use std::fmt;
use std::future::poll_fn;
use std::path::PathBuf;
use std::pin::Pin;
use std::str::FromStr;
use std::task::Poll;
use std::time::Duration;

use serde::Serialize;

use crate::outcome::{Confinement, WritablePaths};
use crate::path;
use crate::units::ByteCount;

/// The tools that are probed by default.
pub const DEFAULT_TOOLS: [&str; 10] = [
    "git", "python3", "python", "node", "docker", "gcc", "make", "cargo", "rg", "jq",
];

/// The longest version line, in characters.
const VERSION_CHARACTERS: usize = 100;

/// The name of a program to probe, without characters that are special to a shell.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct ToolName(String);

/// A text that is not a [`ToolName`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{}` is not the name of a tool: 1 to 64 of the characters A-Z a-z 0-9 . _ + -, the first a letter or digit",
    .0.escape_default()
)]
pub struct ToolNameError(String);

impl ToolName {
    /// Returns the name, by which the program is searched on the `PATH`.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns [`DEFAULT_TOOLS`].
    pub fn defaults() -> Vec<Self> {
        DEFAULT_TOOLS.iter().map(|name| Self((*name).to_owned())).collect()
    }
}

impl FromStr for ToolName {
    type Err = ToolNameError;

    fn from_str(text: &str) -> Result<Self, ToolNameError> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._+-".contains(&byte);
        let starts_well = text.starts_with(|first: char| first.is_ascii_alphanumeric());
        if starts_well && text.len() <= 64 && text.bytes().all(allowed) {
            Ok(Self(text.to_owned()))
        } else {
            Err(ToolNameError(text.to_owned()))
        }
    }
}

impl fmt::Display for ToolName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Asks tools for their version, inside the environment that is described.
pub trait Probe {
    /// Returns the output of `TOOL --version`, see [`version_of`]; `None` if the tool is missing.
    ///
    /// # Cancel safety
    /// The future is dropped at the time limit, and must then end what it started.
    fn version(&self, tool: &ToolName) -> impl Future<Output = Option<String>> + Send;
}

/// The bounds of probing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProbeLimits {
    /// The time limit for each tool (default: 2 s).
    pub each: Duration,
    /// The time limit for all tools (default: 6 s). Tools that were not probed by then count as absent.
    pub total: Duration,
    /// The number of tools that are probed in parallel (default: 4).
    pub at_once: usize,
}

impl Default for ProbeLimits {
    fn default() -> Self {
        Self {
            each: Duration::from_secs(2),
            total: Duration::from_secs(6),
            at_once: 4,
        }
    }
}

/// When an approver is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ApprovalSetting {
    /// About every command.
    Always,
    /// Where the policy cannot decide.
    Policy,
    /// Never: what the policy cannot decide is refused.
    Never,
}

/// What is kept from one command to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Persistence {
    /// Only files: each command has a new shell.
    Files,
    /// Also the directory, variables and functions, in a session.
    Session,
}

/// The shell that runs the commands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ShellInfo {
    /// Its path.
    #[serde(serialize_with = "path::one")]
    pub path: PathBuf,
    /// Its version, such as `5.2.15`.
    pub version: String,
}

/// The limits of each command. Limits that are not set are absent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CommandLimits {
    /// The deadline, in milliseconds.
    #[serde(rename = "timeout_ms", serialize_with = "milliseconds")]
    pub timeout: Duration,
    /// The amount that is kept of each output stream, in bytes.
    #[serde(rename = "output_bytes")]
    pub output: ByteCount,
    /// The memory of all processes of the command together, in bytes.
    #[serde(rename = "memory_bytes")]
    pub memory: Option<ByteCount>,
    /// The number of processes.
    pub pids: Option<u64>,
    /// The largest file that it may write, in bytes.
    #[serde(rename = "file_size_bytes")]
    pub file_size: Option<ByteCount>,
    /// The rate limit in words, such as `3 commands in 10 s and 10 in 60 s`.
    pub rate: Option<String>,
}

fn milliseconds<S: serde::Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
}

/// A policy in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PolicyInForce {
    /// Its name, such as `readonly`, or the file that it came from.
    pub name: String,
    /// Its meaning, in half a sentence.
    pub means: String,
    /// What a model should do instead of what it refuses, if there is advice.
    pub instead: Option<String>,
}

/// The facts about an environment, without its tools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EnvironmentInfo {
    /// The name of the environment: `local`, `sandbox`, …
    pub environment: String,
    /// The name of the operating system, see [`os_name`].
    pub os: String,
    /// The kernel version and the architecture, such as `Linux 6.1.0 x86_64`.
    pub kernel: String,
    /// The shell that runs the commands.
    pub shell: ShellInfo,
    /// The initial working directory.
    #[serde(serialize_with = "path::one")]
    pub cwd: PathBuf,
    /// The network that commands can reach: `none`, `loopback` or `host`.
    pub network: String,
    /// The hosts that are open by name besides, as `--allow-host` takes them.
    pub hosts: Vec<String>,
    /// The limits of each command.
    pub limits: CommandLimits,
    /// The policies in force. The strictest verdict applies.
    pub policies: Vec<PolicyInForce>,
    /// When an approver is asked.
    pub asking: ApprovalSetting,
    /// What is kept from one command to the next.
    pub persistence: Persistence,
    /// What the environment enforces.
    pub confinement: Confinement,
    /// Which paths can be written, and which of them last, if the environment distinguishes them.
    pub places: Option<WritablePaths>,
}

/// A tool that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ToolVersion {
    /// Its name.
    pub name: ToolName,
    /// Its version.
    pub version: String,
}

/// The whole description. [`fmt::Display`] formats it for a model, [`Serialize`] for a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Description {
    /// The facts about the environment.
    #[serde(flatten)]
    pub basis: EnvironmentInfo,
    /// The tools that were found, in the order of the request.
    pub tools: Vec<ToolVersion>,
    /// The tools that were not found.
    pub absent: Vec<ToolName>,
    /// Advice for a model, one sentence each, for its system prompt.
    pub advice: Vec<String>,
}

impl Description {
    /// Creates a description from its parts.
    pub fn new(basis: EnvironmentInfo, tools: Vec<ToolVersion>, absent: Vec<ToolName>) -> Self {
        let advice = advice(&basis);
        Self {
            basis,
            tools,
            absent,
            advice,
        }
    }

    /// Probes the tools, and creates a description.
    ///
    /// Takes at most [`ProbeLimits::total`], whatever the tools do.
    ///
    /// # Cancel safety
    /// Dropping the future drops the probes in progress.
    pub async fn probe<P: Probe + Sync>(
        basis: EnvironmentInfo,
        tools: &[ToolName],
        probe: &P,
        limits: ProbeLimits,
    ) -> Self {
        let mut found = Vec::new();
        let mut absent = Vec::new();
        for (name, version) in tools.iter().zip(versions(tools, probe, limits).await) {
            match version.as_deref().and_then(one_line) {
                Some(version) => found.push(ToolVersion {
                    name: name.clone(),
                    version,
                }),
                None => absent.push(name.clone()),
            }
        }
        Self::new(basis, found, absent)
    }
}

/// A probe in progress: the index of the tool, and its version.
type PendingProbe<'a> = Pin<Box<dyn Future<Output = (usize, Option<String>)> + Send + 'a>>;

/// Probes all tools, a few in parallel. A tool that does not answer in time has no version.
async fn versions<P: Probe + Sync>(tools: &[ToolName], probe: &P, limits: ProbeLimits) -> Vec<Option<String>> {
    let mut versions: Vec<Option<String>> = vec![None; tools.len()];
    let mut waiting = tools.iter().enumerate();
    let mut pending: Vec<PendingProbe<'_>> = Vec::new();
    let all = poll_fn(|context| {
        loop {
            while pending.len() < limits.at_once.max(1)
                && let Some((index, tool)) = waiting.next()
            {
                let answer = tokio::time::timeout(limits.each, probe.version(tool));
                pending.push(Box::pin(async move { (index, answer.await.ok().flatten()) }));
            }
            let before = pending.len();
            pending.retain_mut(|answer| match answer.as_mut().poll(context) {
                Poll::Ready((index, version)) => {
                    versions[index] = version;
                    false
                }
                Poll::Pending => true,
            });
            if pending.is_empty() && waiting.len() == 0 {
                return Poll::Ready(());
            }
            // Nothing completed, so every pending probe will wake this task. Otherwise there is room for more.
            if pending.len() == before {
                return Poll::Pending;
            }
        }
    });
    // Answers that arrived in time count, so the timeout is not an error.
    let _in_time = tokio::time::timeout(limits.total, all).await;
    drop(pending);
    versions
}

/// Returns the version in the output of `TOOL --version`: the first line of standard output, or else of standard
/// error; `None` if it failed or printed nothing.
pub fn version_of(exit_code: Option<i32>, stdout: &str, stderr: &str) -> Option<String> {
    (exit_code == Some(0))
        .then(|| one_line(stdout).or_else(|| one_line(stderr)))
        .flatten()
}

/// Returns the first line that is not blank, shortened and without control characters.
fn one_line(text: &str) -> Option<String> {
    // A bidirectional control could change how the line reads, in a terminal or a prompt.
    let hidden = |c: char| {
        c.is_control()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
    };
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    let clean: String = line.chars().filter(|c| !hidden(*c)).take(VERSION_CHARACTERS).collect();
    let clean = clean.trim();
    (!clean.is_empty()).then(|| clean.to_owned())
}

/// Returns the name of the operating system from its `os-release` file.
pub fn os_name(os_release: &str) -> Option<String> {
    let value = |key: &str| {
        let line = os_release
            .lines()
            .find_map(|line| line.strip_prefix(key)?.strip_prefix('='))?;
        one_line(line.trim().trim_matches(['"', '\'']))
    };
    value("PRETTY_NAME").or_else(|| value("NAME"))
}

/// Formats a duration: `60 s`, `1.5 s`, `500 ms`.
fn format_duration(duration: Duration) -> String {
    match duration.as_millis() {
        ms if ms % 1_000 == 0 => format!("{} s", ms / 1_000),
        ms if ms > 1_000 => format!("{:.1} s", duration.as_secs_f64()),
        ms => format!("{ms} ms"),
    }
}

/// Returns the advice for a model. It is short, since every line is part of each of its prompts.
fn advice(basis: &EnvironmentInfo) -> Vec<String> {
    let mut advice = vec![match basis.persistence {
        Persistence::Files => format!(
            "Each command runs in a fresh bash in {}. Only files last: join steps with `&&`, and name paths from there.",
            basis.cwd.display()
        ),
        Persistence::Session => format!(
            "Commands of a session share one bash, which starts in {}: directory, variables and functions last, also past a timeout.",
            basis.cwd.display()
        ),
    }];
    advice.extend(basis.places.iter().flat_map(of_places));
    let time = format_duration(basis.limits.timeout);
    advice.push(match basis.persistence {
        Persistence::Files => format!(
            "A command may take {time}. Then it is ended with everything it started, and what it printed until then is kept."
        ),
        Persistence::Session => format!(
            "A command is waited for {time}, or as long as a call says. What is not done then goes on as a job, or is ended with everything it started."
        ),
    });
    advice.push(format!(
        "Of each output stream {} are kept, half from its start and half from its end, around a line that says what is missing. Narrow long output with `head`, `tail` or `grep`.",
        basis.limits.output
    ));
    advice.push(match basis.persistence {
        Persistence::Files => "There is no input and no terminal: give programs what they would ask for as options, such as `-y` or `--no-edit`.",
        Persistence::Session => "A command has no input and no terminal unless a call gives it one: give programs what they would ask for as options, such as `-y` or `--no-edit`.",
    }.to_owned());
    advice.extend(basis.policies.iter().filter_map(|policy| policy.instead.clone()));
    advice.push(match basis.asking {
        ApprovalSetting::Always => {
            "A person is asked before every command: few and clear ones get an answer sooner.".to_owned()
        }
        ApprovalSetting::Policy => {
            "What the policy cannot decide is put to a person; plain commands with known options need no asking."
                .to_owned()
        }
        ApprovalSetting::Never => {
            "What the policy cannot decide is refused: use plain commands with known options.".to_owned()
        }
    });
    advice.push(
        "A refusal names its rule and what is allowed instead. It is the answer: other spellings of the same thing are refused too."
            .to_owned(),
    );
    match basis.network.as_str() {
        "none" => advice.push("There is no network: work with what is here.".to_owned()),
        "loopback" if !basis.hosts.is_empty() => {
            let hosts = hosts(&basis.hosts);
            advice.push(format!(
                "The network is open to {hosts}, for every program, without proxy variables. Other hosts do not exist: \
                 what was refused, and what would allow it, is told with the outcome. 127.0.0.1 is this environment's own."
            ));
        }
        "loopback" => advice.push(
            "The network is a loopback of its own: servers work on 127.0.0.1 and ::1, nothing outside can be reached, \
             and nothing can be downloaded. A person can open hosts with `--allow-host NAME`, or start with `--network host`."
                .to_owned(),
        ),
        _ => {}
    }
    advice
}

/// The hosts in a line, as many as a reader takes in.
fn hosts(all: &[String]) -> String {
    const SHOWN: usize = 24;
    let shown: Vec<String> = all.iter().take(SHOWN).map(|host| format!("`{host}`")).collect();
    match all.len().saturating_sub(SHOWN) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

fn list(paths: &[PathBuf]) -> String {
    let names: Vec<_> = paths.iter().map(|path| path.display().to_string()).collect();
    names.join(", ")
}

/// Describes which changes last.
fn of_places(places: &WritablePaths) -> Vec<String> {
    let private = match places.private.as_slice() {
        [] => String::new(),
        private => format!(" Private, and gone with the environment: {}.", list(private)),
    };
    let mut advice = vec![match places.lasting.as_slice() {
        [] => format!("Nothing that is written lasts.{private} Everything else is read-only."),
        lasting => format!(
            "What is written below {} lasts.{private} Everything else is read-only.",
            list(lasting)
        ),
    }];
    if let Some((home, _)) = &places.kept_home {
        advice.push(format!(
            "The home {} is kept for later work in this directory.",
            home.display()
        ));
    }
    match (places.caches.as_slice(), places.caches_are_readonly) {
        ([], _) => {}
        (caches, false) => advice.push(format!(
            "Packages in the caches of the user can be used without a network ({}); what is written there is private.",
            list(caches)
        )),
        (caches, true) => advice.push(format!(
            "Packages in the caches of the user can be used without a network ({}), read-only.",
            list(caches)
        )),
    }
    advice.extend(places.notes.iter().cloned());
    advice
}

impl fmt::Display for Description {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let EnvironmentInfo {
            environment,
            os,
            kernel,
            shell,
            cwd,
            network,
            hosts: open,
            limits,
            policies,
            confinement,
            places,
            ..
        } = &self.basis;
        writeln!(f, "Environment  {environment}: {os}, {kernel}")?;
        writeln!(f, "Shell        bash {} at {}", shell.version, shell.path.display())?;
        writeln!(f, "Directory    {}", cwd.display())?;
        match open.as_slice() {
            [] => writeln!(f, "Network      {network}")?,
            open => writeln!(f, "Network      {network}, and {}", hosts(open))?,
        }
        writeln!(f, "Confinement  {}", confined(confinement))?;
        writeln!(f, "Limits       {}", bounds(limits))?;
        if let Some(places) = places {
            let kept = places.kept_home.iter();
            let kept = kept.map(|(home, at)| format!("{} (kept in {})", home.display(), at.display()));
            let lasting: Vec<String> = places
                .lasting
                .iter()
                .map(|path| path.display().to_string())
                .chain(kept)
                .collect();
            match lasting.as_slice() {
                [] => writeln!(f, "Lasts        nothing")?,
                lasting => writeln!(f, "Lasts        {}", lasting.join(", "))?,
            }
            if !places.private.is_empty() {
                writeln!(f, "Private      {}", list(&places.private))?;
            }
            if !places.caches.is_empty() {
                let how = if places.caches_are_readonly {
                    "read-only"
                } else {
                    "written privately"
                };
                writeln!(f, "Caches       {}: {how}", list(&places.caches))?;
            }
        }
        for (index, PolicyInForce { name, means, .. }) in policies.iter().enumerate() {
            writeln!(f, "{:<12} {name}: {means}", if index == 0 { "Policies" } else { "" })?;
        }
        for (index, ToolVersion { name, version }) in self.tools.iter().enumerate() {
            writeln!(
                f,
                "{:<12} {:<9} {version}",
                if index == 0 { "Tools" } else { "" },
                name.as_str()
            )?;
        }
        if !self.absent.is_empty() {
            let names: Vec<&str> = self.absent.iter().map(ToolName::as_str).collect();
            writeln!(f, "Not found    {}", names.join(", "))?;
        }
        writeln!(f, "\nHow to work here:")?;
        self.advice.iter().try_for_each(|line| writeln!(f, "- {line}"))
    }
}

fn confined(confinement: &Confinement) -> String {
    let enforced = match confinement.enforced.as_slice() {
        [] => "none: commands run with all rights of the user who started this".to_owned(),
        layers => layers.join(", "),
    };
    match confinement.missing.as_slice() {
        [] => enforced,
        layers => format!("{enforced}; missing: {}", layers.join(", ")),
    }
}

fn bounds(limits: &CommandLimits) -> String {
    let CommandLimits {
        timeout,
        output,
        memory,
        pids,
        file_size,
        rate,
    } = limits;
    let mut parts = vec![
        format!("{} a command", format_duration(*timeout)),
        format!("{output} kept of each output stream"),
    ];
    parts.extend(memory.map(|memory| format!("{memory} of memory")));
    parts.extend(pids.map(|pids| format!("{pids} processes")));
    parts.extend(file_size.map(|size| format!("files of up to {size}")));
    parts.extend(rate.iter().map(|rate| format!("at most {rate}")));
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::future::pending;

    use super::*;

    fn basis() -> EnvironmentInfo {
        EnvironmentInfo {
            environment: "local".to_owned(),
            os: "Debian GNU/Linux 12 (bookworm)".to_owned(),
            kernel: "Linux 6.1.0 x86_64".to_owned(),
            shell: ShellInfo {
                path: "/usr/bin/bash".into(),
                version: "5.2.15".to_owned(),
            },
            cwd: "/work/app".into(),
            network: "host".to_owned(),
            hosts: Vec::new(),
            limits: CommandLimits {
                timeout: Duration::from_secs(60),
                output: ByteCount::kib(64),
                memory: None,
                pids: None,
                file_size: None,
                rate: None,
            },
            policies: vec![PolicyInForce {
                name: "readonly".to_owned(),
                means: "nothing may change".to_owned(),
                instead: Some(
                    "Look with `cat`, `ls`, `rg`, `git log`; nothing may be written, not even a temporary file."
                        .to_owned(),
                ),
            }],
            asking: ApprovalSetting::Policy,
            persistence: Persistence::Files,
            confinement: Confinement::default(),
            places: None,
        }
    }

    /// Tools that answer at once, and others that never do.
    struct Shelf(BTreeMap<&'static str, Answer>);

    #[derive(Clone)]
    enum Answer {
        Version(&'static str),
        Never,
    }

    impl Probe for Shelf {
        async fn version(&self, tool: &ToolName) -> Option<String> {
            match self.0.get(tool.as_str())? {
                Answer::Version(version) => Some((*version).to_owned()),
                Answer::Never => pending().await,
            }
        }
    }

    fn describe(
        basis: EnvironmentInfo,
        tools: &[&str],
        shelf: &[(&'static str, Answer)],
        limits: ProbeLimits,
    ) -> Description {
        let tools: Vec<ToolName> = tools.iter().map(|tool| tool.parse().unwrap()).collect();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap();
        runtime.block_on(Description::probe(
            basis,
            &tools,
            &Shelf(shelf.iter().cloned().collect()),
            limits,
        ))
    }

    fn plain() -> Description {
        let shelf = [
            ("git", Answer::Version("git version 2.47.1")),
            ("python3", Answer::Version("Python 3.11.7")),
        ];
        describe(basis(), &["git", "python3", "docker"], &shelf, ProbeLimits::default())
    }

    #[test]
    fn a_model_reads_this() {
        insta::assert_snapshot!("text", plain());
    }

    #[test]
    fn a_program_reads_this() {
        insta::assert_snapshot!("json", serde_json::to_string_pretty(&plain()).unwrap());
    }

    #[test]
    fn what_is_limited_and_enforced_is_said() {
        let mut basis = basis();
        basis.environment = "sandbox".to_owned();
        basis.network = "none".to_owned();
        basis.asking = ApprovalSetting::Never;
        basis.persistence = Persistence::Session;
        basis.policies = Vec::new();
        basis.places = Some(WritablePaths {
            lasting: vec!["/work/app".into(), "/work/lib".into()],
            private: vec!["/tmp".into()],
            caches: vec!["/home/u/.npm/_cacache".into()],
            caches_are_readonly: false,
            kept_home: Some(("/home/u".into(), "/state/homes/app".into())),
            notes: vec!["The kept home holds 3 MiB.".to_owned()],
        });
        basis.confinement = Confinement {
            enforced: vec!["mount".to_owned(), "pid".to_owned()],
            missing: vec!["landlock".to_owned()],
        };
        basis.limits = CommandLimits {
            timeout: Duration::from_millis(1_500),
            output: ByteCount::mib(1),
            memory: Some(ByteCount::mib(4_096)),
            pids: Some(512),
            file_size: Some(ByteCount::mib(10)),
            rate: Some("3 commands in 10 s and 10 in 60 s".to_owned()),
        };
        insta::assert_snapshot!("limited", Description::new(basis, Vec::new(), Vec::new()));
    }

    #[test]
    fn a_hanging_tool_is_absent_and_holds_up_nobody() {
        let limits = ProbeLimits {
            each: Duration::from_millis(20),
            total: Duration::from_secs(5),
            at_once: 1,
        };
        let shelf = [("hangs", Answer::Never), ("git", Answer::Version("2"))];
        let described = describe(basis(), &["hangs", "git"], &shelf, limits);
        assert_eq!(
            described
                .tools
                .iter()
                .map(|tool| tool.name.as_str())
                .collect::<Vec<_>>(),
            ["git"]
        );
        assert_eq!(
            described.absent.iter().map(ToolName::as_str).collect::<Vec<_>>(),
            ["hangs"]
        );
    }

    #[test]
    fn the_whole_probing_has_a_bound_and_what_was_answered_counts() {
        let limits = ProbeLimits {
            each: Duration::from_secs(3_600),
            total: Duration::from_millis(20),
            at_once: 2,
        };
        let shelf = [
            ("git", Answer::Version("2")),
            ("a", Answer::Never),
            ("b", Answer::Never),
            ("jq", Answer::Version("1")),
        ];
        let described = describe(basis(), &["git", "a", "b", "jq"], &shelf, limits);
        assert_eq!(
            described
                .tools
                .iter()
                .map(|tool| tool.name.as_str())
                .collect::<Vec<_>>(),
            ["git"]
        );
        assert_eq!(described.absent.len(), 3);
    }

    #[test]
    fn a_version_is_the_first_line_of_a_success() {
        let cases = [
            ((Some(0), "git version 2\nmore", ""), Some("git version 2")),
            ((Some(0), "\n \n", "Python 2.7\n"), Some("Python 2.7")),
            ((Some(1), "git version 2", ""), None),
            ((None, "git version 2", ""), None),
            ((Some(0), "", ""), None),
            ((Some(0), "1.0\u{1b}[31m\u{202e}x\u{7}", ""), Some("1.0[31mx")),
        ];
        for ((code, stdout, stderr), expected) in cases {
            assert_eq!(version_of(code, stdout, stderr).as_deref(), expected, "{stdout:?}");
        }
        assert_eq!(
            version_of(Some(0), &"x".repeat(10_000), "").map(|line| line.len()),
            Some(VERSION_CHARACTERS)
        );
    }

    #[test]
    fn a_tool_name_means_nothing_to_a_shell() {
        for name in ["git", "g++", "python3.11", "x_y-z", "7z"] {
            assert!(name.parse::<ToolName>().is_ok(), "{name}");
        }
        for name in [
            "",
            "-x",
            "..",
            ".",
            "a b",
            "a;b",
            "$x",
            "a/b",
            "é",
            "a\n",
            &"x".repeat(65),
        ] {
            assert!(name.parse::<ToolName>().is_err(), "{name}");
        }
        assert!(
            ToolName::defaults()
                .iter()
                .all(|tool| tool.as_str().parse::<ToolName>().is_ok())
        );
    }

    #[test]
    fn an_operating_system_names_itself() {
        assert_eq!(
            os_name("NAME=\"Debian\"\nPRETTY_NAME=\"Debian 12\"\n").as_deref(),
            Some("Debian 12")
        );
        assert_eq!(os_name("NAME=Alpine\n").as_deref(), Some("Alpine"));
        assert_eq!(os_name("# nothing\n"), None);
    }
}
