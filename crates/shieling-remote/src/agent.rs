//! The agent program `shieling-agent`: how it is started, and, with the feature `agent`, the program itself.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::PathBuf;

use shieling::environment::{Isolation, JailLimits, Network};

/// Which environment the agent serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Wanted {
    /// A sandbox where the place can have one, otherwise unconfined.
    #[default]
    Auto,
    /// A sandbox, or nothing.
    Sandbox,
    /// Unconfined: the place itself is the boundary, or there is none.
    Local,
}

/// What the agent program is told as it starts, as its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setup {
    /// What it serves. `--env auto|sandbox|local`; `auto` by default.
    pub environment: Wanted,
    /// The directory that is worked in, absolute, or relative to the home of the far side, which it is by default.
    /// `--workspace DIR`
    pub workspace: Option<PathBuf>,
    /// The shell that runs commands, absolute; bash or else sh by default. `--shell PROGRAM`
    pub shell: Option<PathBuf>,
    /// Where the programs that it carries are put if the kernel does not execute what is in memory: a directory that
    /// can be written and from which programs can be executed. `--programs DIR`
    pub programs: Option<PathBuf>,
    /// What a sandbox reaches of the network. `--network none|loopback|host`; `loopback` by default.
    pub network: Network,
    /// How a sandbox is isolated. `--isolation full|landlock`; `full` by default.
    pub isolation: Isolation,
    /// The limits of a sandbox. `--memory BYTES`, `--pids N`, `--cpus THOUSANDTHS`
    pub limits: JailLimits,
    /// More that can be read in a sandbox. `--read PATH`, repeatable.
    pub read: Vec<PathBuf>,
    /// More that can be written in a sandbox. `--write PATH`, repeatable.
    pub write: Vec<PathBuf>,
    /// Whether protected paths can be changed in a sandbox. `--open-protected`
    pub open_protected: bool,
    /// Whether the workspace may be a home. `--allow-home`
    pub allow_home: bool,
    /// Files whose content is told as it starts, 64 KiB of each at most: what its place says of its limits.
    /// `--show PATH`, repeatable.
    pub show: Vec<PathBuf>,
    /// Directories of which is told whether they cannot be written. `--try-write PATH`, repeatable.
    pub try_write: Vec<PathBuf>,
    /// Whether an end by the kernel's kill for memory is told as that, by the counts of the control group that the place
    /// shows as its own: of a container. `--watch-memory`
    pub watch_memory: bool,
    /// Whether directories of the place can be copied in and out over the protocol. `--copies`
    pub copies: bool,
    /// Whether the file of the program, and its directory if that is then empty, are removed as it starts, as far as
    /// that is allowed. `--remove-itself`
    pub remove_itself: bool,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            environment: Wanted::Auto,
            workspace: None,
            shell: None,
            programs: None,
            network: Network::Loopback,
            isolation: Isolation::Full,
            limits: JailLimits::default(),
            read: Vec::new(),
            write: Vec::new(),
            open_protected: false,
            allow_home: false,
            show: Vec::new(),
            try_write: Vec::new(),
            watch_memory: false,
            copies: false,
            remove_itself: false,
        }
    }
}

/// Arguments that the agent program does not take.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SetupError {
    /// There is no such option.
    #[error("there is no option `{0}`")]
    Unknown(String),
    /// An option has no value, or not this one.
    #[error("`{option}` does not take `{value}`")]
    Value {
        /// The option.
        option: String,
        /// What was given.
        value: String,
    },
}

/// The option whose value holds all the others, divided by NUL, in hexadecimal: for a way through shells.
const HEX: &str = "--hex";

impl Setup {
    /// The arguments of the program that say this.
    #[must_use]
    pub fn arguments(&self) -> Vec<OsString> {
        let mut words: Vec<OsString> = Vec::new();
        let mut say = |option: &str, value: &OsStr| words.extend([OsString::from(option), value.to_owned()]);
        say("--env", OsStr::new(name(&ENVIRONMENTS, self.environment)));
        for (option, path) in [
            ("--workspace", &self.workspace),
            ("--shell", &self.shell),
            ("--programs", &self.programs),
        ] {
            if let Some(path) = path {
                say(option, path.as_os_str());
            }
        }
        say("--network", OsStr::new(name(&NETWORKS, self.network)));
        say("--isolation", OsStr::new(name(&ISOLATIONS, self.isolation)));
        for (option, number) in [
            ("--memory", self.limits.memory),
            ("--pids", self.limits.pids),
            ("--cpus", self.limits.cpu_thousandths),
            ("--open-files", self.limits.open_files),
        ] {
            if let Some(number) = number {
                say(option, OsStr::new(&number.to_string()));
            }
        }
        for (option, paths) in [
            ("--read", &self.read),
            ("--write", &self.write),
            ("--show", &self.show),
            ("--try-write", &self.try_write),
        ] {
            for path in paths {
                say(option, path.as_os_str());
            }
        }
        for (option, given) in [
            ("--open-protected", self.open_protected),
            ("--allow-home", self.allow_home),
            ("--watch-memory", self.watch_memory),
            ("--copies", self.copies),
            ("--remove-itself", self.remove_itself),
        ] {
            if given {
                words.push(option.into());
            }
        }
        words
    }

    /// The same as two words of letters, digits and dashes, which no shell reads otherwise.
    #[must_use]
    pub fn plain_arguments(&self) -> [String; 2] {
        let words = self.arguments();
        let bytes = words.join(OsStr::new("\0")).into_vec();
        let hex = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        [HEX.to_owned(), hex]
    }

    /// What these arguments, without the program's name, say.
    ///
    /// # Errors
    /// [`SetupError`]: the first argument that is not taken.
    pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Self, SetupError> {
        let mut setup = Self::default();
        let mut words = arguments.into_iter().collect::<Vec<_>>();
        if let [option, hex] = &words[..]
            && option == HEX
        {
            words = unhex(hex).ok_or_else(|| wrong(HEX, hex))?;
        }
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            let option = word.to_string_lossy().into_owned();
            match option.as_str() {
                "--open-protected" => {
                    setup.open_protected = true;
                    continue;
                }
                "--allow-home" => {
                    setup.allow_home = true;
                    continue;
                }
                "--watch-memory" => {
                    setup.watch_memory = true;
                    continue;
                }
                "--copies" => {
                    setup.copies = true;
                    continue;
                }
                "--remove-itself" => {
                    setup.remove_itself = true;
                    continue;
                }
                "--env" | "--workspace" | "--shell" | "--programs" | "--network" | "--isolation" | "--memory"
                | "--pids" | "--cpus" | "--open-files" | "--read" | "--write" | "--show" | "--try-write" => {}
                _ => return Err(SetupError::Unknown(option)),
            }
            let value = words.next().ok_or_else(|| wrong(&option, OsStr::new("")))?;
            let number = || {
                let number = value.to_str().and_then(|text| text.parse::<u64>().ok());
                number.map(Some).ok_or_else(|| wrong(&option, &value))
            };
            match option.as_str() {
                "--env" => setup.environment = named(&ENVIRONMENTS, &option, &value)?,
                "--network" => setup.network = named(&NETWORKS, &option, &value)?,
                "--isolation" => setup.isolation = named(&ISOLATIONS, &option, &value)?,
                "--memory" => setup.limits.memory = number()?,
                "--pids" => setup.limits.pids = number()?,
                "--cpus" => setup.limits.cpu_thousandths = number()?,
                "--open-files" => setup.limits.open_files = number()?,
                "--workspace" => setup.workspace = Some(value.into()),
                "--shell" => setup.shell = Some(value.into()),
                "--programs" => setup.programs = Some(value.into()),
                "--read" => setup.read.push(value.into()),
                "--show" => setup.show.push(value.into()),
                "--try-write" => setup.try_write.push(value.into()),
                _ => setup.write.push(value.into()),
            }
        }
        Ok(setup)
    }
}

const ENVIRONMENTS: [(&str, Wanted); 3] = [
    ("auto", Wanted::Auto),
    ("sandbox", Wanted::Sandbox),
    ("local", Wanted::Local),
];
const NETWORKS: [(&str, Network); 3] = [
    ("none", Network::None),
    ("loopback", Network::Loopback),
    ("host", Network::Host),
];
const ISOLATIONS: [(&str, Isolation); 2] = [("full", Isolation::Full), ("landlock", Isolation::Landlock)];

fn name<T: PartialEq>(names: &[(&'static str, T)], wanted: T) -> &'static str {
    names
        .iter()
        .find(|(_, value)| *value == wanted)
        .map_or("", |(name, _)| name)
}

fn named<T: Copy>(names: &[(&str, T)], option: &str, value: &OsStr) -> Result<T, SetupError> {
    let found = names.iter().find(|(name, _)| value == *name);
    found.map(|(_, value)| *value).ok_or_else(|| wrong(option, value))
}

fn wrong(option: &str, value: &OsStr) -> SetupError {
    SetupError::Value {
        option: option.to_owned(),
        value: value.to_string_lossy().into_owned(),
    }
}

fn unhex(hex: &OsStr) -> Option<Vec<OsString>> {
    let hex = hex.as_bytes();
    if !hex.len().is_multiple_of(2) {
        return None;
    }
    let bytes = hex.chunks_exact(2).map(|pair| {
        let text = std::str::from_utf8(pair).ok()?;
        u8::from_str_radix(text, 16).ok()
    });
    let bytes = bytes.collect::<Option<Vec<u8>>>()?;
    let words = bytes.split(|byte| *byte == 0);
    Some(words.map(|word| OsString::from_vec(word.to_vec())).collect())
}

/// The agent program of this version: one static file for the architecture that this is built for.
#[cfg(feature = "agent")]
#[derive(Debug, Clone)]
pub struct Program {
    #[cfg(agent_beside)]
    bytes: std::sync::Arc<[u8]>,
    digest: String,
}

/// The carried program, unpacked when it is to be sent.
#[cfg(all(feature = "agent", not(agent_beside)))]
static CARRIED: std::sync::LazyLock<Vec<u8>> = std::sync::LazyLock::new(|| {
    let packed = include_bytes!(concat!(env!("OUT_DIR"), "/shieling-agent.zst"));
    zstd::bulk::decompress(packed, size()).expect("it was packed by the same library")
});

#[cfg(all(feature = "agent", not(agent_beside)))]
fn size() -> usize {
    env!("SHIELING_AGENT_BYTES").parse().expect("build.rs writes a number")
}

/// The agent program is not there. Only a build without optimisation can lack it.
#[cfg(feature = "agent")]
#[derive(Debug, thiserror::Error)]
#[error(
    "this build does not carry the agent program, and `{}` cannot be read ({source}): make it with `cargo xtask agent`, \
     or build with `--release`", path.display()
)]
pub struct NoProgram {
    /// Where it was looked for.
    pub path: PathBuf,
    /// What the system said.
    pub source: std::io::Error,
}

#[cfg(feature = "agent")]
impl Program {
    /// The program that this build carries. A build without optimisation carries none, and reads what `cargo xtask
    /// agent` has made.
    ///
    /// # Errors
    /// [`NoProgram`]: it was not made.
    pub fn carried() -> Result<Self, NoProgram> {
        #[cfg(agent_beside)]
        return beside();
        #[cfg(not(agent_beside))]
        Ok(Self {
            digest: env!("SHIELING_AGENT_SHA256").to_owned(),
        })
    }

    /// What the file holds. The first call takes some 10 ms: it is carried compressed.
    pub fn bytes(&self) -> &[u8] {
        #[cfg(agent_beside)]
        return &self.bytes;
        #[cfg(not(agent_beside))]
        &CARRIED
    }

    /// The length of the file in bytes.
    pub fn size(&self) -> usize {
        #[cfg(agent_beside)]
        return self.bytes.len();
        #[cfg(not(agent_beside))]
        size()
    }

    /// The SHA-256 of the file, in hexadecimal.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// The same program under another digest, to see that it is refused.
    #[doc(hidden)]
    #[must_use]
    pub fn with_digest(mut self, digest: impl Into<String>) -> Self {
        self.digest = digest.into();
        self
    }
}

/// What `cargo xtask agent` has made: the program, and its digest beside it.
#[cfg(agent_beside)]
#[allow(
    clippy::disallowed_methods,
    reason = "the program of a build for development stands beside it"
)]
fn beside() -> Result<Program, NoProgram> {
    let path = PathBuf::from(env!("SHIELING_AGENT_BESIDE"));
    let read = || {
        let digest = std::fs::read_to_string(path.with_extension("sha256"))?;
        Ok(Program {
            bytes: std::fs::read(&path)?.into(),
            digest: digest.trim().to_owned(),
        })
    };
    read().map_err(|source| NoProgram {
        path: path.clone(),
        source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_to_the_program_is_what_it_reads() {
        let setup = Setup {
            environment: Wanted::Sandbox,
            workspace: Some("/work space/ä'\"".into()),
            shell: Some("/bin/bash".into()),
            programs: Some("/run".into()),
            network: Network::None,
            isolation: Isolation::Landlock,
            limits: JailLimits {
                memory: Some(1 << 30),
                pids: Some(7),
                cpu_thousandths: Some(1_500),
                open_files: Some(64),
            },
            read: vec!["/a".into(), OsString::from_vec(vec![b'/', 0xff]).into()],
            write: vec!["/b".into()],
            open_protected: true,
            allow_home: true,
            show: vec!["/proc/self/status".into()],
            try_write: vec!["/c".into()],
            watch_memory: true,
            copies: true,
            remove_itself: true,
        };
        for setup in [setup, Setup::default()] {
            assert_eq!(Setup::parse(setup.arguments()), Ok(setup.clone()));
            let plain = setup.plain_arguments();
            assert!(
                plain
                    .iter()
                    .all(|word| word.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-'))
            );
            assert_eq!(Setup::parse(plain.map(OsString::from)), Ok(setup));
        }
    }

    #[test]
    fn what_the_program_does_not_take_is_named() {
        let parse = |words: &[&str]| Setup::parse(words.iter().map(OsString::from));
        assert_eq!(parse(&["--envy", "local"]), Err(SetupError::Unknown("--envy".into())));
        for (words, option, value) in [
            (&["--env", "docker"][..], "--env", "docker"),
            (&["--memory", "-1"], "--memory", "-1"),
            (&["--workspace"], "--workspace", ""),
            (&["--hex", "2g"], "--hex", "2g"),
            (&["--hex", "123"], "--hex", "123"),
        ] {
            let (option, value) = (option.to_owned(), value.to_owned());
            assert_eq!(parse(words), Err(SetupError::Value { option, value }), "{words:?}");
        }
    }
}
