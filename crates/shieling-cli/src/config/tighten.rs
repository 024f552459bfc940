//! What the workspace's own `shieling.toml` may say.
//!
//! A workspace is untrusted: it may be a repository that somebody sent, and the agent can write to
//! it, so one command could prepare what the next one may do. Its file therefore may make things
//! stricter and never looser:
//!
//! | key | in an untrusted workspace |
//! |---|---|
//! | `policy` | adds; presets, and files inside the workspace |
//! | `readonly`, `deny`, `ignore`, `exclude-tool`, `no-images`, `require-…-approval` | add (an `ignore` entry with `!` shows again, so it is refused) |
//! | `approval`, `network`, `isolation` | only a stricter value than the one without it |
//! | `timeout`, `max-output`, `max-image-bytes`, `max-repeats`, `memory`, `pids`, `cpus`, `file-size`, `rate` | only a lower value |
//! | `allow`, `include-tool` | refused: an entry grants |
//! | `allow-host`, `secret` | refused: they open the network, and use what is the user's |
//! | `env`, `shell`, `read`, `write`, `home`, `set-env`, `pass-env` | refused: they choose what runs, what it sees and what it changes |
//! | `image`, `container`, `volume`, `user`, `writable` and the other options of containers | refused: the same |
//! | `open-protected` | refused: it opens what runs code later |
//! | `allow-home` | refused: it opens a home |
//! | `audit`, `record`, `acknowledge-unsafe` | refused: they write outside, and speak for the user |
//!
//! A refused key is an error that names it, not a key passed over: whoever wrote it expects it to
//! hold. The same goes for a user's file that lies inside the workspace.

use std::path::Path;

use super::files;
use crate::options::{Approval, Isolation, Network, PolicyName, Settings};

/// A key that would loosen, and why.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Loosening {
    /// The key.
    pub(super) key: &'static str,
    /// Why that would loosen, as a fact.
    pub(super) because: String,
}

/// What holds without the workspace's file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Base<'a> {
    /// What the user's file set.
    pub(super) settings: &'a Settings,
    /// Who would be asked.
    pub(super) approval: Approval,
    /// What of the network could be reached.
    pub(super) network: Network,
    /// The limits that hold where nobody set one.
    pub(super) defaults: &'a Settings,
}

/// Checks that `file` only tightens what `base` holds.
///
/// Paths in `file` are absolute already.
pub(super) fn check(file: &Settings, base: Base<'_>, workspace: &Path) -> Result<(), Loosening> {
    // Taken apart without `..`, so that a new option does not compile until it is decided here.
    let Settings {
        env,
        isolation,
        open_protected,
        allow_home,
        shell,
        policy,
        readonly: _,
        allow,
        deny: _,
        ignore,
        approval,
        acknowledge_unsafe,
        network,
        allow_host,
        secret,
        read,
        write,
        home,
        changes,
        set_env,
        pass_env,
        timeout,
        max_output,
        memory,
        pids,
        cpus,
        file_size,
        rate,
        audit,
        record,
        include_tool,
        exclude_tool: _,
        no_images: _,
        max_image_bytes,
        max_repeats,
        require_shell_approval: _,
        require_write_approval: _,
        image,
        engine,
        pull,
        container,
        volume,
        user,
        writable,
        runtime,
        preset,
        unlimited,
        engine_network,
        workdir,
        workspace_copy,
        per_command,
        no_mount,
        privileged,
        device,
        cap_add,
    } = file;
    let refuse = |key: &'static str, because: &str| {
        Err(Loosening {
            key,
            because: because.to_owned(),
        })
    };

    if env.is_some() {
        return refuse("env", "it chooses what confines the command");
    }
    if isolation.is_some_and(|isolation| isolation > base.settings.isolation.unwrap_or(Isolation::Full)) {
        return refuse("isolation", "less would stand between a command and this host");
    }
    if *open_protected {
        return refuse(
            "open-protected",
            "it lets commands change files from which later commands of the user would run code",
        );
    }
    if *allow_home {
        return refuse("allow-home", "it lets commands work in a home and read what is in it");
    }
    if shell.is_some() {
        return refuse("shell", "it chooses the program that reads every command");
    }
    if !allow.is_empty() {
        return refuse(
            "allow",
            "an allow entry grants; `deny`, `readonly` and `policy` only restrict",
        );
    }
    if !include_tool.is_empty() {
        return refuse(
            "include-tool",
            "an entry offers a tool; `exclude-tool` only takes one away",
        );
    }
    if *acknowledge_unsafe {
        return refuse("acknowledge-unsafe", "only the user can acknowledge that");
    }
    if !allow_host.is_empty() {
        return refuse("allow-host", "it opens the network to a host");
    }
    if !secret.is_empty() {
        return refuse("secret", "it sends a secret of the user's to a host");
    }
    if !read.is_empty() {
        return refuse("read", "it opens more paths for reading");
    }
    if !write.is_empty() {
        return refuse("write", "it opens more paths for writing");
    }
    if home.is_some() {
        return refuse("home", "it chooses what lasts in the user's directory");
    }
    if changes.is_some() {
        return refuse("changes", "it chooses what becomes of the work that is done here");
    }
    if !set_env.is_empty() {
        return refuse("set-env", "a variable can change what a command runs");
    }
    if !pass_env.is_empty() {
        return refuse("pass-env", "it would hand the user's variables to the command");
    }
    for (key, given) in [
        ("image", image.is_some()),
        ("engine", engine.is_some()),
        ("pull", pull.is_some()),
        ("container", container.is_some()),
        ("volume", !volume.is_empty()),
        ("user", user.is_some()),
        ("writable", *writable),
        ("runtime", runtime.is_some()),
        ("preset", preset.is_some()),
        ("unlimited", *unlimited),
        ("engine-network", engine_network.is_some()),
        ("workdir", workdir.is_some()),
        ("workspace-copy", workspace_copy.is_some()),
        ("per-command", *per_command),
        ("no-mount", *no_mount),
        ("privileged", *privileged),
        ("device", !device.is_empty()),
        ("cap-add", !cap_add.is_empty()),
    ] {
        if given {
            return refuse(
                key,
                "it chooses what container commands run in, and what of this host is in it",
            );
        }
    }
    if *record {
        return refuse("record", "it writes to the user's directory");
    }
    if audit.is_some() {
        return refuse("audit", "it chooses a file that shieling writes to");
    }
    if ignore.iter().any(|glob| glob.trim_start().starts_with('!')) {
        return refuse("ignore", "an entry with `!` shows what another entry hides");
    }
    for name in policy {
        let PolicyName::File(path) = name else { continue };
        // Through links too: an error in a policy shows lines of it.
        if !files::canonical(path).is_ok_and(|path| path.starts_with(workspace)) {
            return refuse("policy", "it names a file that is not in the workspace");
        }
    }
    if let Some(approval) = approval
        && strictness(*approval) < strictness(base.approval)
    {
        return refuse("approval", "fewer commands would be asked about");
    }
    if network.is_some_and(|network| network > base.network) {
        return refuse("network", "more of the network could be reached");
    }

    lower("timeout", *timeout, base.settings.timeout.or(base.defaults.timeout))?;
    lower(
        "max-output",
        *max_output,
        base.settings.max_output.or(base.defaults.max_output),
    )?;
    lower(
        "max-image-bytes",
        *max_image_bytes,
        base.settings.max_image_bytes.or(base.defaults.max_image_bytes),
    )?;
    // 0 is without end.
    let bound = |most: Option<u32>| most.map(|most| if most == 0 { u32::MAX } else { most });
    lower(
        "max-repeats",
        bound(*max_repeats),
        bound(base.settings.max_repeats.or(base.defaults.max_repeats)),
    )?;
    lower("memory", *memory, base.settings.memory.or(base.defaults.memory))?;
    lower("pids", *pids, base.settings.pids.or(base.defaults.pids))?;
    lower("cpus", *cpus, base.settings.cpus.or(base.defaults.cpus))?;
    lower(
        "file-size",
        *file_size,
        base.settings.file_size.or(base.defaults.file_size),
    )?;
    if let (Some(rate), Some(base)) = (rate, base.settings.rate.or(base.defaults.rate))
        && !rate.is_within(base)
    {
        return Err(Loosening {
            key: "rate",
            because: format!("the rate without it is {base}"),
        });
    }
    Ok(())
}

/// `never` lets through what no rule asks about, without a look; `always` shows everything.
fn strictness(approval: Approval) -> u8 {
    match approval {
        Approval::Never => 0,
        Approval::Policy => 1,
        Approval::Always => 2,
    }
}

fn lower<T: PartialOrd + std::fmt::Display>(
    key: &'static str,
    new: Option<T>,
    base: Option<T>,
) -> Result<(), Loosening> {
    match (new, base) {
        (Some(new), Some(base)) if new > base => Err(Loosening {
            key,
            because: format!("the limit without it is {base}"),
        }),
        (Some(_) | None, Some(_) | None) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::defaults;

    #[expect(clippy::disallowed_methods, reason = "tests place the files that they read")]
    fn checked(text: &str, user: &str, approval: Approval, network: Network) -> Result<(), &'static str> {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        std::fs::write(root.join("mine.toml"), "").unwrap();
        std::os::unix::fs::symlink("/etc/passwd", root.join("link.toml")).unwrap();
        let mut file: Settings = toml::from_str(text).unwrap();
        for name in &mut file.policy {
            if let PolicyName::File(path) = name {
                *path = root.join(&*path);
            }
        }
        let user: Settings = toml::from_str(user).unwrap();
        let defaults = defaults::settings(crate::options::EnvironmentName::Sandbox, Isolation::Full);
        let base = Base {
            settings: &user,
            approval,
            network,
            defaults: &defaults,
        };
        check(&file, base, &root).map_err(|loosening| loosening.key)
    }

    #[test]
    fn what_tightens_passes() {
        for text in [
            "",
            "readonly = true",
            "deny = ['git push']\nignore = ['.env', 'secrets/']",
            "policy = ['readonly', 'mine.toml']",
            "approval = 'always'",
            "approval = 'policy'",
            "network = 'none'",
            "isolation = 'full'",
            "timeout = '10s'\nmax-output = '1KiB'\nmemory = '1GiB'\npids = 10\ncpus = 0.5\nfile-size = '1MiB'",
            "rate = '3/10,10/60'",
            "exclude-tool = ['shell']\nno-images = true\nmax-image-bytes = '1MiB'\nmax-repeats = 2",
            "require-shell-approval = true\nrequire-write-approval = true",
        ] {
            assert_eq!(checked(text, "", Approval::Policy, Network::None), Ok(()), "{text}");
        }
    }

    #[test]
    fn what_loosens_is_named() {
        for (text, key) in [
            ("env = 'local'", "env"),
            ("env = 'sandbox'", "env"),
            ("isolation = 'landlock'", "isolation"),
            ("open-protected = true", "open-protected"),
            ("allow-home = true", "allow-home"),
            ("shell = '/tmp/sh'", "shell"),
            ("policy = ['../open.toml']", "policy"),
            ("policy = ['/etc/passwd']", "policy"),
            ("policy = ['link.toml']", "policy"),
            ("policy = ['absent.toml']", "policy"),
            ("allow = ['rm']", "allow"),
            ("include-tool = ['shell']", "include-tool"),
            ("max-image-bytes = '11MiB'", "max-image-bytes"),
            ("max-repeats = 6", "max-repeats"),
            ("max-repeats = 0", "max-repeats"),
            ("ignore = ['.env', '!.env']", "ignore"),
            ("approval = 'never'", "approval"),
            ("acknowledge-unsafe = true", "acknowledge-unsafe"),
            ("network = 'loopback'", "network"),
            ("network = 'host'", "network"),
            ("allow-host = ['pypi.org']", "allow-host"),
            ("secret = ['TOKEN@api.example.org']", "secret"),
            ("read = ['/']", "read"),
            ("write = ['/srv']", "write"),
            ("home = 'persistent'", "home"),
            ("home = 'private'", "home"),
            ("changes = 'discard'", "changes"),
            ("set-env = ['PATH=/tmp']", "set-env"),
            ("pass-env = ['TOKEN']", "pass-env"),
            ("timeout = '61s'", "timeout"),
            ("max-output = '65KiB'", "max-output"),
            ("memory = '5GiB'", "memory"),
            ("pids = 513", "pids"),
            ("audit = 'x'", "audit"),
            ("record = true", "record"),
            ("image = 'x'", "image"),
            ("volume = ['/:/host']", "volume"),
            ("user = '0:0'", "user"),
            ("writable = true", "writable"),
            ("workspace-copy = 'both'", "workspace-copy"),
            ("per-command = true", "per-command"),
            ("unlimited = true", "unlimited"),
            ("privileged = true", "privileged"),
        ] {
            assert_eq!(checked(text, "", Approval::Policy, Network::None), Err(key), "{text}");
        }
    }

    #[test]
    fn the_measure_is_what_the_user_set() {
        let user = "isolation = 'landlock'\ntimeout = '5m'\ncpus = 2\nrate = '3/10,10/60'\nfile-size = '1MiB'\nmax-repeats = 0";
        for (text, expected) in [
            ("isolation = 'landlock'", Ok(())),
            ("timeout = '4m'", Ok(())),
            ("timeout = '6m'", Err("timeout")),
            ("cpus = 3", Err("cpus")),
            ("rate = '2/10,10/60'", Ok(())),
            ("rate = '2/10,20/60'", Err("rate")),
            ("file-size = '2MiB'", Err("file-size")),
            ("max-repeats = 9", Ok(())),
            ("approval = 'policy'", Err("approval")),
            ("network = 'loopback'", Ok(())),
        ] {
            assert_eq!(checked(text, user, Approval::Always, Network::Host), expected, "{text}");
        }
    }
}
