//! The caches of package managers: which of the user's are shown, so that builds work without a network.
//!
//! Each is read as it is, under a private layer that takes what is written: nothing of it changes, and it
//! is gone with the sandbox. Shown is the part that holds packages, and never the directory above it, in
//! which credentials lie (`~/.npmrc`, `~/.cargo/credentials.toml`, `~/.m2/settings.xml`, `pip.conf`).
#![expect(clippy::disallowed_methods, reason = "which caches the user has is looked up here")]

use std::fs;
use std::path::{Path, PathBuf};

use shieling_jail::plan::Entry;

use super::place::{self, below, is_clean, leads_through};
use super::{Restrictions, toolchain};

/// A package manager's caches.
struct Cache {
    /// A variable that says where its directory stands, if it is not at its usual place.
    variable: &'static str,
    /// Where that usually stands, relative to the home.
    usual: &'static str,
    /// The parts of it that hold packages; an empty name is all of it.
    parts: &'static [&'static str],
    /// What of these may name accounts of the user, and is private and empty instead.
    without: &'static [&'static str],
}

const fn row(variable: &'static str, usual: &'static str, parts: &'static [&'static str]) -> Cache {
    Cache {
        variable,
        usual,
        parts,
        without: &[],
    }
}

const WHOLE: &[&str] = &[""];

const TABLE: &[Cache] = &[
    row("CARGO_HOME", ".cargo", &["registry", "git"]),
    row("npm_config_cache", ".npm", &["_cacache"]),
    row("PIP_CACHE_DIR", ".cache/pip", WHOLE),
    row("UV_CACHE_DIR", ".cache/uv", WHOLE),
    row("YARN_CACHE_FOLDER", ".cache/yarn", WHOLE),
    row("", ".yarn/berry", &["cache"]),
    row("", ".cache/pnpm", WHOLE),
    row("", ".local/share/pnpm", &["store"]),
    Cache {
        // The settings of a repository from which a module came hold the address of its server.
        without: &["pkg/mod/cache/vcs"],
        ..row("GOPATH", "go", &["pkg/mod"])
    },
    row("GOCACHE", ".cache/go-build", WHOLE),
    row("", ".m2", &["repository", "wrapper"]),
    row("GRADLE_USER_HOME", ".gradle", &["caches", "wrapper/dists"]),
];

/// The variables by which caches say that they stand elsewhere than usual.
pub fn variables() -> impl Iterator<Item = &'static str> {
    TABLE.iter().map(|row| row.variable).filter(|name| !name.is_empty())
}

/// What is shown of the user's caches. None that has to do with one of these directories, in which commands
/// write, or that such a directory decides about by a link.
pub(super) fn entries(restrictions: &Restrictions, writable: &[PathBuf]) -> Vec<Entry> {
    let Some(home) = &restrictions.home else {
        return Vec::new();
    };
    let mut entries = Vec::new();
    for row in TABLE {
        let named = restrictions.roots.get(row.variable);
        let base = named.cloned().unwrap_or_else(|| home.join(row.usual));
        for part in row.parts {
            let target = if part.is_empty() { base.clone() } else { base.join(part) };
            let Some(source) = source(&target, restrictions, writable) else {
                continue;
            };
            let sizes = restrictions.sizes;
            let executable = restrictions.programs.is_none();
            for without in row.without.iter().map(|without| base.join(without)) {
                let inside = without.strip_prefix(&target).ok().map(|rest| source.join(rest));
                if inside.is_some_and(|inside| inside.is_dir()) {
                    entries.push(Entry::Temporary {
                        target: without,
                        bytes: sizes.home,
                        files: sizes.files,
                        mode: 0o700,
                        executable,
                    });
                }
            }
            entries.push(Entry::Layered {
                source,
                target,
                bytes: sizes.home,
                files: sizes.files,
                executable,
            });
        }
    }
    entries
}

/// Where a cache really is, if it may be shown. A link to another place is followed only where the last name
/// stays: so one to a directory of keys shows nothing.
fn source(target: &Path, restrictions: &Restrictions, writable: &[PathBuf]) -> Option<PathBuf> {
    let real = fs::canonicalize(target).ok()?;
    let apart = |path: &Path| {
        !writable
            .iter()
            .any(|root| root.starts_with(path) || path.starts_with(root) || leads_through(path, root))
    };
    let fine = is_clean(target)
        && real.is_dir()
        && real.file_name() == target.file_name()
        && [target, &real].into_iter().all(|path| {
            apart(path)
                && place::swallows(path).is_none()
                && !toolchain::is_system(path)
                && !below(path, "/etc")
                && !restrictions
                    .own
                    .iter()
                    .any(|own| own.starts_with(path) || path.starts_with(own))
                && !restrictions.home.as_ref().is_some_and(|home| home.starts_with(path))
        });
    fine.then_some(real)
}

/// A `settings.xml` of Maven's in which no credential stands.
pub(super) fn maven_settings(path: &Path) -> bool {
    let Ok(text) = fs::read_to_string(path) else {
        return false;
    };
    let mut bare = String::new();
    let mut rest = text.as_str();
    while let Some((before, comment)) = rest.split_once("<!--") {
        bare.push_str(before);
        rest = comment.split_once("-->").map_or("", |(_, after)| after);
    }
    bare.push_str(rest);
    let bare = bare.to_ascii_lowercase();
    let words = [
        "password",
        "passphrase",
        "privatekey",
        "token",
        "secret",
        "authorization",
        "httpheaders",
        "@",
    ];
    !words.iter().any(|word| bare.contains(word))
}

/// A file of settings, or a directory with nothing but such files, in which no credential stands: neither an address
/// with a name before its host, nor a word for one. What cannot be read is taken to have one.
pub(super) fn no_credential(path: &Path) -> bool {
    match fs::read_dir(path) {
        Ok(entries) => entries
            .map(|entry| entry.map(|entry| entry.path()))
            .all(|path| path.is_ok_and(|path| path.is_file() && tells_no_credential(&path))),
        Err(_) => tells_no_credential(path),
    }
}

/// The same of a file.
fn tells_no_credential(path: &Path) -> bool {
    // Keys are no text, and public.
    if path.extension().is_some_and(|end| end == "gpg" || end == "asc") {
        return fs::File::open(path).is_ok();
    }
    let Ok(text) = fs::read(path) else { return false };
    let text = String::from_utf8_lossy(&text).to_ascii_lowercase();
    let named = text.split("://").skip(1).any(|rest| {
        rest.split(|c: char| c == '/' || c.is_whitespace())
            .next()
            .is_some_and(|host| host.contains('@'))
    });
    let words = [
        "password",
        "passwd",
        "login",
        "token",
        "secret",
        "authorization",
        "sslkey",
        "api_key",
        "_auth",
    ];
    !named && !words.iter().any(|word| text.contains(word))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn place() -> (tempfile::TempDir, PathBuf, Restrictions) {
        let place = tempfile::tempdir().expect("a directory");
        let home = place.path().canonicalize().expect("it is there").join("home");
        fs::create_dir_all(home.join("ws")).expect("made");
        let mut restrictions = Restrictions::new(home.join("ws"), "/bin/sh");
        restrictions.home = Some(home.clone());
        (place, home, restrictions)
    }

    fn shown(restrictions: &Restrictions) -> Vec<PathBuf> {
        let entries = entries(restrictions, std::slice::from_ref(&restrictions.workspace));
        entries.iter().map(|entry| entry.target().to_path_buf()).collect()
    }

    #[test]
    fn packages_are_shown_and_what_lies_beside_them_is_not() {
        let (_place, home, restrictions) = place();
        for directory in [
            ".npm/_cacache",
            ".npm/_logs",
            ".cargo/registry",
            ".m2/repository",
            "go/pkg/mod/cache/vcs",
        ] {
            fs::create_dir_all(home.join(directory)).expect("made");
        }
        let expected = [
            ".cargo/registry",
            ".npm/_cacache",
            "go/pkg/mod/cache/vcs",
            "go/pkg/mod",
            ".m2/repository",
        ];
        assert_eq!(shown(&restrictions), expected.map(|path| home.join(path)));
    }

    #[test]
    fn a_link_shows_the_cache_that_it_names_and_nothing_else() {
        let (_place, home, restrictions) = place();
        for directory in [".ssh", "disk/pip", ".npm", ".cache", "ws/uv"] {
            fs::create_dir_all(home.join(directory)).expect("made");
        }
        symlink(home.join(".ssh"), home.join(".npm/_cacache")).expect("linked");
        symlink(home.join("disk/pip"), home.join(".cache/pip")).expect("linked");
        symlink(home.join("ws/uv"), home.join(".cache/uv")).expect("linked");
        let entries = entries(&restrictions, std::slice::from_ref(&restrictions.workspace));
        let [Entry::Layered { source, target, .. }] = entries.as_slice() else {
            panic!("{entries:?}")
        };
        assert_eq!((source, target), (&home.join("disk/pip"), &home.join(".cache/pip")));
    }

    #[test]
    fn a_cache_that_is_or_holds_the_workspace_is_the_workspace() {
        let (_place, home, mut restrictions) = place();
        fs::create_dir_all(home.join(".cache/pip/x")).expect("made");
        for workspace in [".cache/pip", ".cache/pip/x", ".cache"] {
            restrictions.workspace = home.join(workspace);
            assert!(shown(&restrictions).is_empty(), "{workspace}");
        }
    }

    #[test]
    fn settings_of_maven_with_a_password_are_known_and_an_example_in_a_comment_is_none() {
        let (_place, home, _) = place();
        let path = home.join("settings.xml");
        for (text, fine) in [
            ("<settings><!-- <password>x</password> --><mirrors/></settings>", true),
            ("<settings><!-- --><password>x</password></settings>", false),
            ("<a><!-- <b>", true),
            ("<url>https://u:p@h</url>", false),
        ] {
            fs::write(&path, text).expect("written");
            assert_eq!(maven_settings(&path), fine, "{text}");
        }
    }

    #[test]
    fn settings_with_a_credential_are_known_by_it_wherever_it_stands() {
        let place = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = place.path().join(name);
            fs::write(&path, text).unwrap();
            path
        };
        for text in [
            "",
            "deb [signed-by=/usr/share/keyrings/x.gpg] https://example.org/debian bookworm main # me@example.org\n",
            "URIs: http://example.org/debian/@home\nSuites: bookworm\n",
            "APT::Periodic::Enable \"0\";\n",
        ] {
            assert!(no_credential(&file("plain", text)), "{text}");
        }
        for text in [
            "deb https://me:word@example.org/debian bookworm main",
            "# deb HTTPS://me@example.org bookworm",
            "Acquire::http::Proxy \"http://me:word@proxy:3128\";",
            "Acquire::https::SslKey \"/etc/key\";",
            "machine example.org login me password word",
        ] {
            assert!(!no_credential(&file("told", text)), "{text}");
        }
        assert!(!no_credential(place.path()), "one of the files has one");
        fs::remove_file(place.path().join("told")).unwrap();
        assert!(no_credential(place.path()));
        fs::create_dir(place.path().join("below")).unwrap();
        assert!(!no_credential(place.path()), "nobody looked below");
        assert!(!no_credential(&place.path().join("absent")));
    }
}
