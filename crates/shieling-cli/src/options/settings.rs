//! The options that every way of running shares, each defined once.
//!
//! One struct is at the same time the command line's option group and the schema of
//! `shieling.toml`: the key is the option's long name. Nothing has its default here, since layers
//! are laid over each other first; defaults are filled in by [`crate::plan`].

use std::path::PathBuf;

use clap::Args;
use serde::{Deserialize, Serialize};

use super::values::{
    AllowedHost, Approval, Assignment, Changes, Chosen, ContainerUser, Cpus, Engine, Home, Isolation, Mounted,
    NamedSecret, Network, Pids, PolicyName, Prefix, Preset, Pull, Rate, Size, Timeout, VariableName, WorkspaceCopy,
};

/// What can be set on the command line and in `shieling.toml` alike.
#[derive(Debug, Clone, Default, PartialEq, Args, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub(crate) struct Settings {
    /// Where the command runs [default: sandbox; `why`: local]
    ///
    /// `sandbox`: confined by the kernel of this host. `local`: this host, unconfined; only the policy and the person
    /// asked stand in between. `memory`: files and a bash in memory, empty at first; the workspace's path is only a name
    /// in it. `container`: a container of Docker or Podman, with `--image` or `--container`; the workspace is mounted at
    /// /workspace. `ssh://[USER@]HOST[:PORT][/DIR]`: another machine, over your own `ssh` with its settings and keys: in a
    /// sandbox there where that machine can have one, otherwise unconfined there, and you are asked. DIR is the
    /// workspace there (`/~/DIR` for one in the home).
    #[arg(long, value_name = "NAME|ssh://HOST", help_heading = "Place")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) env: Option<Chosen>,

    /// How much stands between a command and this host [default: full]
    ///
    /// `landlock` is for hosts without user namespaces, and is a guard-rail, not a boundary: it catches
    /// mistakes, and is not to stand alone before code that means harm. It keeps files outside the
    /// workspace from being changed and most of them from being read, and filters system calls.
    /// The command sees this host's processes, without being able to signal or read them; it can change
    /// .git/hooks and the like, and run what `--allow` does not name; with `--network host` it reaches
    /// the services of this host. Nothing can be hidden (`--ignore` is refused), and there are no limits
    /// on memory and processes but those that you give. It has no /tmp but a directory of its own
    /// in TMPDIR, no /dev/shm, no local sockets but pairs, and no terminals but the one that it is
    /// given. `sandbox` only.
    #[arg(long, value_name = "TIER", help_heading = "Place")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) isolation: Option<Isolation>,

    /// The bash that reads the command: an absolute path, or a name to find on PATH
    ///
    /// SHIELING_SHELL says the same; the option wins. [default: bash]
    #[arg(long, value_name = "PATH", help_heading = "Place")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) shell: Option<PathBuf>,

    /// Judge by this policy; repeatable, the strictest verdict wins [default: open]
    ///
    /// A name without `/` and `.` is a preset, anything else is a TOML file:
    /// `--policy readonly --policy ./team.toml`. `shieling policy show PRESET` prints a preset,
    /// `shieling policy check FILE` runs the examples in a file.
    #[arg(long, value_name = "PRESET|FILE", help_heading = "Policy")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) policy: Vec<PolicyName>,

    /// Nothing may change: files, repository state, processes, clock, network
    #[arg(long, help_heading = "Policy")]
    #[serde(skip_serializing_if = "is_false")]
    pub(crate) readonly: bool,

    /// Only commands that start with these words may run; repeatable [default: all]
    ///
    /// `--allow 'git log' --allow ls` lets `git log -3 | ls` run, and neither `git -c x log` nor
    /// `lsblk`. Every command that the text can launch must match an entry, at any depth. An entry
    /// grants no write redirection. On the command line this replaces the list of `shieling.toml`.
    #[arg(long, value_name = "PREFIX", help_heading = "Policy")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) allow: Vec<Prefix>,

    /// Commands that start with these words may not run; repeatable
    ///
    /// Matched is what really runs: `--deny 'git push'` also stops `/usr/bin/git -C x push`.
    #[arg(long, value_name = "PREFIX", help_heading = "Policy")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) deny: Vec<Prefix>,

    /// Hide these paths, written as in .gitignore; repeatable
    ///
    /// `--ignore .env --ignore 'secrets/'`. A leading `!` shows again what an earlier one hid.
    #[arg(long, value_name = "GLOB", help_heading = "Policy")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) ignore: Vec<String>,

    /// Who is asked, on the terminal, before a command starts [default: policy; local: always]
    #[arg(long, value_name = "WHEN", help_heading = "Approval")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) approval: Option<Approval>,

    /// Say yes to what is refused without this: `--env local --approval never`, and what undoes a container's isolation
    ///
    /// In the former nothing confines the command and nobody is asked: it can do all that you can. The latter are
    /// `--privileged`, `--device`, `--cap-add`, `--network host` and volumes such as an engine's socket.
    #[arg(long, help_heading = "Approval")]
    #[serde(skip_serializing_if = "is_false")]
    pub(crate) acknowledge_unsafe: bool,

    /// What of the network can be reached [default: loopback; local: host; container: none]
    ///
    /// In `container`, `none` and `loopback` are the same, and `host` needs `--acknowledge-unsafe`.
    #[arg(long, value_name = "REACH", help_heading = "Reach")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) network: Option<Network>,

    /// Open the network to this host, by name; repeatable, `sandbox` only
    ///
    /// `pypi.org`, `*.example.org` (not example.org itself), `10.0.0.5:5432`, `10.0.0.0/8:443`, `udp:ntp.example.org:123`,
    /// and `host.internal:5432` for a service on this machine's own loopback. Ports 443 and 80 if none is given. `@python`,
    /// `@npm`, `@rust`, `@debian` and `@github` are known sets. Every program can use it, without proxy variables, and TLS
    /// is left alone. All other names do not exist, and what was refused stands in the outcome. If somebody can be asked,
    /// the first connection to another host waits for a yes. HTTPS_PROXY and NO_PROXY of yours are used outside.
    #[arg(long, value_name = "NAME[:PORT]", help_heading = "Reach")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) allow_host: Vec<AllowedHost>,

    /// A secret that commands use and never see: `VAR@HOST[=SOURCE]`; repeatable, `sandbox` only
    ///
    /// VAR holds a placeholder, which is replaced in the headers of requests to HOST alone; HOST is open to commands then.
    /// SOURCE is `env:NAME`, `file:PATH` or `cmd:COMMAND`, and read outside. [default: your own VAR]
    #[arg(long, value_name = "VAR@HOST[=SOURCE]", help_heading = "Reach")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) secret: Vec<NamedSecret>,

    /// One more path that may be read; repeatable, `sandbox` only
    ///
    /// [default: the system's directories and the toolchains on PATH]
    #[arg(long, value_name = "PATH", help_heading = "Reach")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) read: Vec<PathBuf>,

    /// One more file or directory that may be written, under the workspace's rules; repeatable, `sandbox` only
    ///
    /// What is protected and hidden in the workspace is so in it as well, and `--readonly` holds for it. For
    /// a workspace that is a directory of a repository, `--write` of the repository's top lets git find it.
    /// It has to be there. The system's directories, a home, what is on PATH and what runs by itself are
    /// refused.
    #[arg(long, value_name = "PATH", help_heading = "Reach")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) write: Vec<PathBuf>,

    /// What becomes of the home of commands, `sandbox` only [default: private]
    ///
    /// `private`: it is empty at first, and gone with the sandbox. `persistent`: it is kept in
    /// $XDG_STATE_HOME/shieling/homes (or ~/.local/state/...), one for each workspace, and is the home of
    /// every later sandbox there; start-up files that commands leave in it run in their shells, and in none
    /// of yours. Sandboxes that run at once share it. Remove its directory to begin anew.
    #[arg(long, value_name = "HOME", help_heading = "Reach")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) home: Option<Home>,

    /// The image of the container that commands run in, `container` only
    ///
    /// By default the container is closed: user 65534, a read-only root, no capabilities, no new privileges,
    /// the engine's filter of system calls, no network, 512 MiB, 256 processes, a /tmp of 64 MiB, and the
    /// workspace read-only at /workspace. It is made at the first command and removed at the end.
    #[arg(long, value_name = "NAME", help_heading = "Container")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) image: Option<String>,

    /// The container engine [default: auto]
    ///
    /// `auto` is Docker if it answers, and otherwise Podman. DOCKER_HOST, Docker's contexts, CONTAINER_HOST and
    /// the sockets of rootless engines count as they do for the engines' own clients.
    #[arg(long, value_name = "ENGINE", help_heading = "Container")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) engine: Option<Engine>,

    /// When the image is pulled [default: auto]
    ///
    /// `auto`: if the engine does not have it. Progress is told on stderr.
    #[arg(long, value_name = "WHEN", help_heading = "Container")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pull: Option<Pull>,

    /// Run commands in this container, which runs already
    ///
    /// Our program is copied in and executed, and nothing of it is left there. How closed that container is was
    /// decided by whoever made it: no option for that is accepted.
    #[arg(long, value_name = "NAME", help_heading = "Container", conflicts_with = "image")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) container: Option<String>,

    /// Mount a file or directory of this host: `SRC:DST` or `SRC:DST:ro`; repeatable
    ///
    /// An engine's socket, also by a directory above it or through a link, devices, /proc and / are refused
    /// without `--acknowledge-unsafe`.
    #[arg(long, value_name = "SRC:DST[:ro]", help_heading = "Container")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) volume: Vec<Mounted>,

    /// Who commands run as: `UID[:GID]`, or `keep` for the owner of the workspace [default: 65534:65534]
    #[arg(long, value_name = "UID[:GID]|keep", help_heading = "Container")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) user: Option<ContainerUser>,

    /// Let commands write the mounted workspace
    ///
    /// Its user has to be able to: `--user keep`. Otherwise nothing starts, and that is said.
    #[arg(long, help_heading = "Container")]
    #[serde(skip_serializing_if = "is_false")]
    pub(crate) writable: bool,

    /// The OCI runtime, such as `runsc` or `kata`, by the name that the engine has for it
    #[arg(long, value_name = "NAME", help_heading = "Container")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) runtime: Option<String>,

    /// How closed the container is where nothing else is said [default: hardened]
    ///
    /// `plain` is what the engine does by itself: the image's user, a root that can be written, the engine's
    /// capabilities, no limits. It has no network all the same, and the workspace is read-only.
    #[arg(long, value_name = "PRESET", help_heading = "Container")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) preset: Option<Preset>,

    /// Leave out the default limits on memory and processes
    ///
    /// For engines that cannot limit, such as rootless ones on control groups of version 1: a limit that an
    /// engine ignores is an error.
    #[arg(long, help_heading = "Container")]
    #[serde(skip_serializing_if = "is_false")]
    pub(crate) unlimited: bool,

    /// Connect the container to this network of the engine's, such as `bridge` [default: none]
    #[arg(long, value_name = "NAME", help_heading = "Container", conflicts_with = "network")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) engine_network: Option<String>,

    /// The directory of the container that is worked in [default: /workspace]
    #[arg(long, value_name = "PATH", help_heading = "Container")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) workdir: Option<PathBuf>,

    /// Copy the workspace into memory of the container instead of mounting it [default: it is mounted]
    ///
    /// Commands can write the copy, whoever they run as. `in`: what they change goes with the container. `both`: it is
    /// judged and moved into the workspace at the end, all or nothing, and can be undone with `shieling undo`. Changes
    /// that would run code as you are held back; if you changed the same files meanwhile, nothing is moved, and the
    /// changes wait for `shieling changes`. The copy holds three quarters of `--memory` at most. Links are copied as
    /// links, holes stay holes, hard links become files of their own; sockets, pipes, devices, what you cannot read and
    /// what is mounted in the workspace are left out, and so is what `--ignore` hides. A workspace that is or holds a
    /// home or the state directory is refused.
    #[arg(long, value_name = "HOW", value_enum, help_heading = "Container", conflicts_with_all = ["writable", "no_mount"])]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) workspace_copy: Option<WorkspaceCopy>,

    /// Run each command in a new container, which is removed after it [default: one container has all commands]
    ///
    /// The limits are those of each. What lasts from one command to the next is in the mounted workspace and in
    /// volumes alone. There are no sessions; files are reached where the workspace is mounted.
    #[arg(long, help_heading = "Container")]
    #[serde(skip_serializing_if = "is_false")]
    pub(crate) per_command: bool,

    /// Mount no workspace: an empty directory in memory is worked in
    #[arg(long, help_heading = "Container", conflicts_with = "writable")]
    #[serde(skip_serializing_if = "is_false")]
    pub(crate) no_mount: bool,

    /// Make a privileged container; needs `--acknowledge-unsafe`
    #[arg(long, help_heading = "Container")]
    #[serde(skip_serializing_if = "is_false")]
    pub(crate) privileged: bool,

    /// Give the container a device of this host; needs `--acknowledge-unsafe`; repeatable
    #[arg(long, value_name = "PATH", help_heading = "Container")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) device: Vec<PathBuf>,

    /// Give the container a capability; needs `--acknowledge-unsafe`; repeatable
    #[arg(long, value_name = "CAP", help_heading = "Container")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) cap_add: Vec<String>,

    /// Set a variable of the command's environment; repeatable
    ///
    /// That environment is built from a short list of harmless variables, never inherited.
    #[arg(long, value_name = "K=V", help_heading = "Reach")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) set_env: Vec<Assignment>,

    /// Pass a variable of yours on to the command; repeatable
    #[arg(long, value_name = "NAME", help_heading = "Reach")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) pass_env: Vec<VariableName>,

    /// Where changes to the workspace go [default: direct]
    ///
    /// `direct` is the workspace itself, at once. Otherwise they go into a private layer over it, which all commands
    /// see: `commit` judges them and moves them into the workspace after each command, all or nothing; `review` asks a
    /// person with the diff, and keeps them for `shieling changes` if nobody answers; `discard` removes them at the
    /// end. In `sandbox` alone.
    #[arg(long, value_name = "MODE", value_enum, help_heading = "Reach")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) changes: Option<Changes>,

    /// Let commands change .git/hooks, .git/config and the like in the workspace
    ///
    /// These are files from which later commands of yours would run code: hooks and settings of
    /// git, of editors, of shells, of build tools. Without this, `sandbox` takes back after each command what
    /// would run code, keeps it, and says so.
    #[arg(long, help_heading = "Reach")]
    #[serde(skip_serializing_if = "is_false")]
    pub(crate) open_protected: bool,

    /// Let the workspace be a home directory, hold one, or be a part of one such as ~/.dotfiles
    ///
    /// Without this it is refused in `sandbox`, with `--readonly` too. With it nothing can be made, replaced or
    /// removed at the home's top, and every name that begins with a dot is read-only with all below it, but for
    /// caches and checkouts (~/.cache, ~/.npm, ~/.cargo/registry, ~/.m2/repository, ~/.local/src, …). ~/bin and
    /// other directories of the PATH are read-only too. Projects in it work as usual, and everything in it
    /// can be read, keys too. A part such as ~/.ssh or ~/.config, from which something starts by itself, needs
    /// `--open-protected` as well. Refused with `--isolation landlock`, which cannot hold this, unless `--readonly`.
    #[arg(long, help_heading = "Reach")]
    #[serde(skip_serializing_if = "is_false")]
    pub(crate) allow_home: bool,

    /// End the command after this time: `500ms`, `30s`, `2m`, `1h` [default: 60s; exec: 10m]
    ///
    /// A bare number is seconds, and 0 is refused. All of the command's processes get SIGTERM, and
    /// SIGKILL half a second later.
    #[arg(long, value_name = "DURATION", help_heading = "Limits")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) timeout: Option<Timeout>,

    /// Keep this many bytes of each output stream, head and tail [default: 64KiB; plain exec: all]
    ///
    /// Sizes are `4096`, `64KiB`, `10MB` (1,000,000 bytes each) or `4GiB`.
    #[arg(long, value_name = "SIZE", help_heading = "Limits")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) max_output: Option<Size>,

    /// Memory of all its processes together [default: sandbox: 4GiB, memory: 256MiB, container: 512MiB]
    ///
    /// A limit that the environment cannot enforce is refused, not ignored; so are `--pids`,
    /// `--cpus` and `--file-size`. `local` can enforce `--file-size` only. In `memory` it is how much the
    /// files hold, and the variables and buffers of each command. At least 4MiB in `sandbox`, 6MiB in `container`
    /// and 256KiB in `memory`.
    #[arg(long, value_name = "SIZE", help_heading = "Limits")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) memory: Option<Size>,

    /// Processes and threads that may exist at once [default: sandbox: 512, container: 256]
    #[arg(long, value_name = "N", help_heading = "Limits")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pids: Option<Pids>,

    /// Processors' worth of time, such as `1.5` [default: no limit]
    #[arg(long, value_name = "F", help_heading = "Limits")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cpus: Option<Cpus>,

    /// The largest file it may write [default: no limit]
    #[arg(long, value_name = "SIZE", help_heading = "Limits")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) file_size: Option<Size>,

    /// How many commands may start: a burst and a sustained rate, such as `3/10,10/60` [default: off]
    ///
    /// The example lets 3 start within 10 seconds and 10 within 60.
    #[arg(long, value_name = "BURST/SECONDS,SUSTAINED/SECONDS", help_heading = "Limits")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rate: Option<Rate>,

    /// Append who asked what and what happened to this file, as hash-chained JSON lines [default: off]
    ///
    /// If it cannot be written, nothing starts. `shieling log verify FILE` checks the chain.
    #[arg(long, value_name = "FILE", help_heading = "Record")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) audit: Option<PathBuf>,

    /// Record what commands print, with its timing, for `shieling log replay`
    ///
    /// One recording for each session, job and single command, in
    /// $XDG_STATE_HOME/shieling/recordings (or ~/.local/state/...): 16 MiB each at most, 256 MiB in all,
    /// of which the oldest go. What is typed is not recorded, only how much. A command that cannot be
    /// recorded does not start.
    #[arg(long, help_heading = "Record")]
    #[serde(skip_serializing_if = "is_false")]
    pub(crate) record: bool,

    /// Only these tools are offered. The options for it, and for what follows, are those of a server.
    #[arg(skip)]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) include_tool: Vec<String>,

    /// These tools are not offered.
    #[arg(skip)]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) exclude_tool: Vec<String>,

    /// Images are told of as binary files.
    #[arg(skip)]
    #[serde(skip_serializing_if = "is_false")]
    pub(crate) no_images: bool,

    /// The largest image that is given as one.
    #[arg(skip)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) max_image_bytes: Option<Size>,

    /// How often the same failing call is tried; 0: as often as it is made.
    #[arg(skip)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) max_repeats: Option<u32>,

    /// Every command is asked about.
    #[arg(skip)]
    #[serde(skip_serializing_if = "is_false")]
    pub(crate) require_shell_approval: bool,

    /// Every change that a tool for files makes is asked about.
    #[arg(skip)]
    #[serde(skip_serializing_if = "is_false")]
    pub(crate) require_write_approval: bool,
}

fn is_false(flag: &bool) -> bool {
    !flag
}
