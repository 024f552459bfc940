//! `/etc`: a list of what is shown of it. Everything else of it is absent, since to root it holds keys
//! and password hashes, and to anyone the settings of this host's services.
#![expect(
    clippy::disallowed_methods,
    reason = "which of the listed files this host has is looked up here"
)]

use std::fmt::Write as _;
use std::fs;
use std::io::{self, Read as _};
use std::path::Path;

use shieling_jail::plan::Entry;

use super::place::{self, shown};
use super::{Restrictions, caches, git_settings};
use crate::environment::Network;

/// What is shown, if it is there: by name, or by how it begins where the row ends with `*`.
///
/// Left out on purpose: `profile`, `profile.d` and `bash.bashrc`, which on many hosts set `PATH` back
/// and so take a login shell's toolchains away; `wgetrc`, which may hold credentials.
const SHOWN: &[&str] = &[
    "ImageMagick*",
    "R",
    "alternatives",
    "bash_completion",
    "bash_completion.d",
    "crypto-policies",
    "debian_version",
    "dpkg",
    "fonts",
    "gai.conf",
    "groff",
    "host.conf",
    "inputrc",
    "java*",
    "ld-musl*",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "localtime",
    "less",
    "locale.alias",
    "locale.conf",
    "lsb-release",
    "magic",
    "magic.mime",
    "man_db.conf",
    "manpath.config",
    "maven",
    "mime.types",
    "mke2fs.conf",
    "mtab",
    "nanorc",
    "networks",
    "os-release",
    "papersize",
    "perl",
    "php*",
    "postgresql-common",
    "protocols",
    "python*",
    "redhat-release",
    "rpc",
    "services",
    "terminfo",
    "timezone",
    "vim",
    "xattr.conf",
];

/// Longer files are shown, and shorter ones copied, since that takes no mount.
const COPIED: u64 = 16 << 10;

/// What is shown of directories that also hold private keys.
const PARTLY: &[(&str, &[&str])] = &[
    ("ca-certificates", &["extracted"]),
    ("pki", &["ca-trust", "tls/certs", "tls/cert.pem", "tls/openssl.cnf"]),
    ("ssl", &["certs", "cert.pem", "openssl.cnf"]),
];

/// What is shown of settings of apt's, unless a credential stands in it; never `auth.conf`, which is made of them.
const APT: &[&str] = &[
    "apt.conf",
    "apt.conf.d",
    "keyrings",
    "preferences",
    "preferences.d",
    "sources.list",
    "sources.list.d",
    "trusted.gpg",
    "trusted.gpg.d",
];

/// Settings of package managers, shown unless a credential stands in them.
const MANAGERS: &[&str] = &["gemrc", "npmrc", "pip.conf"];

/// Of the host's own account files and names, where files keep their places.
const IN_PLACE: &[&str] = &["group", "hostname", "hosts", "nsswitch.conf", "passwd", "resolv.conf"];

/// Where nothing outside can be reached, a look-up ends at once where the answer that nobody listens is seen,
/// and after a second elsewhere; without this file it takes many.
const NO_RESOLVER: &str = "nameserver 127.0.0.1\noptions timeout:1 attempts:1\n";

/// The patterns of what is hidden, for git.
const GIT_EXCLUDES: &str = "gitignore-hidden";

/// Settings by which apt tries nothing again, for where nothing outside can be reached.
pub(super) const APT_ONCE: &str = "apt-once.conf";

/// `/etc` as it is seen in a file system of its own.
pub(super) fn entries(restrictions: &Restrictions, home: &Path) -> io::Result<Vec<Entry>> {
    let mut entries: Vec<Entry> = listed(&[])?.into_iter().map(copied).collect();
    let settings = Path::new("/etc/maven/settings.xml");
    if settings.exists() && !caches::maven_settings(settings) {
        entries.push(Entry::Hide {
            target: settings.to_path_buf(),
        });
    }
    let mut file = |name: &str, content: String| {
        entries.push(Entry::File {
            target: Path::new("/etc").join(name),
            content: content.into_bytes(),
        });
    };
    let (user, group) = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
    let (passwd, groups) = accounts(place::user(restrictions), user, group, home, &restrictions.shell);
    file("passwd", passwd);
    file("group", groups);
    let mut hosts = format!("127.0.0.1\tlocalhost {HOSTNAME}\n::1\tlocalhost ip6-localhost ip6-loopback\n");
    if restrictions.network == Network::Host
        && let Ok(also) = fs::read_to_string("/etc/hosts")
    {
        // Names that only this host knows are needed to reach what it reaches.
        hosts.push_str(&also);
    }
    file("hosts", hosts);
    file("hostname", format!("{HOSTNAME}\n"));
    file(
        "nsswitch.conf",
        "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\n".to_owned(),
    );
    let mut git = git_settings::harmless(restrictions.home.as_deref()).unwrap_or_default();
    if let Some(hidden) = &restrictions.hidden {
        // The name of a hidden file is listed, and what lies over it is a link, which `git add -A` would commit.
        git.push_str(&format!("[core]\n\texcludesFile = /etc/{GIT_EXCLUDES}\n"));
        file(GIT_EXCLUDES, git_settings::excluding(hidden.patterns()));
    }
    if !git.is_empty() {
        file("gitconfig", git);
    }
    if restrictions.network != Network::Host {
        file(APT_ONCE, "Acquire::Retries \"0\";\n".to_owned());
        file("resolv.conf", NO_RESOLVER.to_owned());
    } else if let Ok(resolver) = fs::read_to_string("/etc/resolv.conf") {
        file("resolv.conf", resolver);
    }
    Ok(entries)
}

/// `/etc` where files keep their places: the same list, and the host's own names.
pub(super) fn in_place() -> io::Result<Vec<Entry>> {
    let settings = Path::new("/etc/maven/settings.xml");
    let hides = settings.exists() && !caches::maven_settings(settings);
    Ok(listed(IN_PLACE)?
        .into_iter()
        // Nothing in it could be hidden.
        .filter(|entry| !hides || entry.target() != Path::new("/etc/maven"))
        .map(|entry| match entry {
            Entry::Link { target, .. } => shown(target, false),
            entry => entry,
        })
        .collect())
}

/// What `uname -n` should say, so that it agrees with `/etc/hosts`.
pub(super) const HOSTNAME: &str = "shieling";

fn listed(also: &[&str]) -> io::Result<Vec<Entry>> {
    let mut entries = Vec::new();
    for found in fs::read_dir("/etc")? {
        let found = found?;
        let Ok(name) = found.file_name().into_string() else {
            continue;
        };
        if let Some((_, parts)) = PARTLY.iter().find(|(directory, _)| *directory == name) {
            entries.extend(
                parts
                    .iter()
                    .map(|part| found.path().join(part))
                    .filter(|path| path.exists())
                    .map(|path| shown(path, false)),
            );
        } else if name == "apt" {
            let parts = APT.iter().map(|part| found.path().join(part));
            entries.extend(
                parts
                    .filter(|path| path.exists() && caches::no_credential(path))
                    .map(|path| shown(path, false)),
            );
        } else if MANAGERS.contains(&name.as_str()) {
            if caches::no_credential(&found.path()) {
                entries.push(shown(found.path(), false));
            }
        } else if is_shown(&name) || also.contains(&name.as_str()) {
            // As the link it is where its text means the same inside: time zones are told by it.
            let to = found
                .file_type()?
                .is_symlink()
                .then(|| fs::read_link(found.path()))
                .and_then(Result::ok);
            entries.push(match to.filter(|to| is_inside(to)) {
                Some(to) => Entry::Link {
                    target: found.path(),
                    to,
                },
                None => shown(found.path(), false),
            });
        }
    }
    entries.sort_by(|a, b| a.target().cmp(b.target()));
    Ok(entries)
}

fn is_shown(name: &str) -> bool {
    SHOWN.iter().any(|row| match row.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => *row == name,
    })
}

fn is_inside(to: &Path) -> bool {
    ["/usr", "../usr", "/proc", "../proc"]
        .iter()
        .any(|start| to.starts_with(start))
        && to
            .components()
            .filter(|part| *part == std::path::Component::ParentDir)
            .count()
            <= 1
}

fn accounts(user: &str, uid: u32, gid: u32, home: &Path, shell: &Path) -> (String, String) {
    // A line is a line and a field is a field, whatever a path holds.
    let field = |path: &Path| path.to_string_lossy().replace([':', '\n'], "?");
    let (home, shell) = (field(home), field(shell));
    let mut passwd = String::new();
    let mut group = String::new();
    let mut account = |name: &str, uid: u32, gid: u32, home: &str, shell: &str| {
        writeln!(passwd, "{name}:x:{uid}:{gid}:{name}:{home}:{shell}").expect("a string takes text");
    };
    if uid == 0 {
        account("root", 0, 0, &home, &shell);
    } else {
        account("root", 0, 0, "/root", "/usr/sbin/nologin");
        account(
            if user == "root" || user == "nobody" {
                "user"
            } else {
                user
            },
            uid,
            gid,
            &home,
            &shell,
        );
    }
    account("nobody", 65534, 65534, "/nonexistent", "/usr/sbin/nologin");
    group.push_str("root:x:0:\n");
    if gid != 0 && gid != 65534 {
        writeln!(group, "{}:x:{gid}:", if user == "root" { "user" } else { user }).expect("a string takes text");
    }
    group.push_str("tty:x:5:\nnogroup:x:65534:\n");
    (passwd, group)
}

/// A short file by what is in it.
fn copied(entry: Entry) -> Entry {
    let Entry::Bind { source, target, .. } = &entry else {
        return entry;
    };
    let length = match fs::symlink_metadata(source) {
        Ok(found) if found.is_file() && found.len() <= COPIED => found.len(),
        _ => return entry,
    };
    match read(source, usize::try_from(length).unwrap_or(0)) {
        Ok(content) => Entry::File {
            target: target.clone(),
            content,
        },
        Err(_) => entry,
    }
}

/// Reads a file of this length: with one call, since some thirty are read before each start.
fn read(path: &Path, length: usize) -> io::Result<Vec<u8>> {
    let mut content = vec![0; length + 1];
    let read = fs::File::open(path)?.read(&mut content)?;
    if read != length {
        return fs::read(path);
    }
    content.truncate(length);
    Ok(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_hashes_and_services_of_the_host_are_not_shown() {
        let shown = entries(&Restrictions::new("/w", "/bin/sh"), Path::new("/home/u")).expect("there is an /etc");
        for entry in &shown {
            let target = entry.target().to_str().expect("plain names");
            for secret in ["shadow", "sudoers", "ssh", "private", "auth.conf", "profile"] {
                assert!(!target.contains(secret), "{target}");
            }
            if ["/etc/passwd", "/etc/group", "/etc/hosts", "/etc/resolv.conf"].contains(&target) {
                assert!(matches!(entry, Entry::File { .. }), "{target} is our own");
            }
        }
        let mounts = shown.iter().filter(|entry| matches!(entry, Entry::Bind { .. })).count();
        assert!(mounts <= 30, "each costs start-up time: {mounts}");
        assert!(is_shown("java-17-openjdk") && is_shown("localtime") && !is_shown("localtimes"));
        assert!(
            is_inside(Path::new("../usr/lib/os-release"))
                && !is_inside(Path::new("/run/x"))
                && !is_inside(Path::new("/usr/../../root"))
        );
    }

    #[test]
    fn the_caller_has_an_account_and_cannot_forge_another() {
        let (passwd, group) = accounts("u", 1000, 1000, Path::new("/home/u\nx:0:0"), Path::new("/bin/bash"));
        assert_eq!(
            passwd,
            "root:x:0:0:root:/root:/usr/sbin/nologin\nu:x:1000:1000:u:/home/u?x?0?0:/bin/bash\n\
             nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
        );
        assert_eq!(group, "root:x:0:\nu:x:1000:\ntty:x:5:\nnogroup:x:65534:\n");
        let (passwd, _) = accounts("root", 0, 0, Path::new("/root"), Path::new("/bin/bash"));
        assert!(passwd.starts_with("root:x:0:0:root:/root:/bin/bash\n"));
    }
}
