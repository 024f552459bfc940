//! Toolchains: what is shown of the places that the caller's `PATH` names, so that what a command
//! finds by name also finds what it needs, and no credentials.
#![expect(
    clippy::disallowed_methods,
    reason = "what stands on the caller's PATH is looked up here"
)]

use std::fs;
use std::path::{Path, PathBuf};

use shieling_jail::plan::Entry;

use super::Restrictions;
use super::place::{self, below, is_clean, shown};

/// The variables by which toolchains say that they stand elsewhere than usual.
pub(super) fn variables() -> impl Iterator<Item = &'static str> {
    TABLE.iter().flat_map(|row| row.variables.iter().copied())
}

/// A toolchain that is known, found by a directory of it on `PATH`.
struct Toolchain {
    /// Variables that say where it stands.
    variables: &'static [&'static str],
    /// Where it usually stands: relative to the home, or absolute.
    places: &'static [&'static str],
    /// What of it is shown; an empty name is all of it.
    shows: &'static [&'static str],
    /// What is hidden again, below it or below the parent of the directory on `PATH`.
    without: &'static [&'static str],
    /// What it comes with, by the usual place.
    with: &'static [&'static str],
}

const fn row(
    variables: &'static [&'static str],
    places: &'static [&'static str],
    shows: &'static [&'static str],
) -> Toolchain {
    Toolchain {
        variables,
        places,
        shows,
        without: &[],
        with: &[],
    }
}

const WHOLE: &[&str] = &[""];
/// A package registry's token for all of an installation.
const NPMRC: &[&str] = &["etc/npmrc"];

/// Earlier rows are asked first, so the narrower place stands above the wider.
const TABLE: &[Toolchain] = &[
    Toolchain {
        with: &[".rustup"],
        // `credentials*` hold tokens, `config*` may: see `cargo_config`.
        ..row(&["CARGO_HOME"], &[".cargo"], &["bin", "registry", "git"])
    },
    // Without `update-hashes`, rustup wants to make it at every start.
    row(
        &["RUSTUP_HOME"],
        &[".rustup"],
        &["toolchains", "settings.toml", "update-hashes"],
    ),
    row(&["PYENV_ROOT"], &[".pyenv"], WHOLE),
    Toolchain {
        without: NPMRC,
        ..row(&["NVM_DIR"], &[".nvm", ".config/nvm"], WHOLE)
    },
    Toolchain {
        without: NPMRC,
        ..row(&["FNM_DIR"], &[".local/share/fnm", ".fnm"], WHOLE)
    },
    row(&["VOLTA_HOME"], &[".volta"], WHOLE),
    row(&["BUN_INSTALL"], &[".bun"], &["bin", "install/global"]),
    row(&["DENO_INSTALL", "DENO_INSTALL_ROOT"], &[".deno"], WHOLE),
    row(&["GOPATH"], &["go"], &["bin", "pkg/mod"]),
    row(&["GOROOT"], &[".go", "sdk"], WHOLE),
    row(&["RBENV_ROOT"], &[".rbenv"], WHOLE),
    row(&["ASDF_DATA_DIR", "ASDF_DIR"], &[".asdf"], WHOLE),
    row(&["MISE_DATA_DIR"], &[".local/share/mise"], WHOLE),
    row(&["SDKMAN_DIR"], &[".sdkman"], &["bin", "candidates", "libexec", "etc"]),
    row(&["GHCUP_INSTALL_BASE_PREFIX"], &[".ghcup"], WHOLE),
    row(&["CABAL_DIR"], &[".cabal"], &["bin", "packages", "store"]),
    row(&["OPAMROOT"], &[".opam"], WHOLE),
    row(
        &["JULIAUP_DEPOT_PATH"],
        &[".juliaup", ".julia"],
        &["bin", "juliaup", "packages", "registries"],
    ),
    Toolchain {
        // Settings of an installation may name a channel with its token.
        without: &[".condarc"],
        ..row(
            &["CONDA_ROOT", "MAMBA_ROOT_PREFIX"],
            &[
                "miniconda3",
                "anaconda3",
                "miniforge3",
                "mambaforge",
                "micromamba",
                ".local/share/mamba",
                "/opt/conda",
                "/opt/miniconda3",
            ],
            WHOLE,
        )
    },
    row(
        &[],
        &[".nix-profile", ".local/state/nix/profile", "/nix/var/nix/profiles"],
        WHOLE,
    ),
    row(
        &["HOMEBREW_PREFIX"],
        &["/home/linuxbrew/.linuxbrew", ".linuxbrew"],
        &[
            "bin",
            "sbin",
            "lib",
            "include",
            "share",
            "opt",
            "Cellar",
            "etc/ca-certificates",
            "etc/openssl@3",
        ],
    ),
    Toolchain {
        without: NPMRC,
        ..row(&["NPM_CONFIG_PREFIX"], &[".npm-global", ".npm-packages"], WHOLE)
    },
    row(&["PNPM_HOME"], &[".local/share/pnpm"], WHOLE),
    row(&[], &[".yarn", ".config/yarn/global"], &["bin", "node_modules"]),
    // Programs of snaps are started by a service of the host, which cannot be reached.
    row(&[], &["/snap"], &[]),
    // `share/uv/credentials` stays out, and so do other programs' data.
    row(
        &[],
        &[".local"],
        &[
            "bin",
            "lib",
            "share/uv/python",
            "share/uv/tools",
            "share/pypoetry/venv",
            "share/pipx/venvs",
            "pipx/venvs",
        ],
    ),
];

/// Never shown as a whole, and never their children: other people's homes, and whatever was mounted.
const CROWDED: &[&str] = &["/home", "/mnt", "/media", "/run/user", "/var"];
/// Never shown as a whole.
const WIDE: &[&str] = &["/opt", "/root", "/srv", "/tmp", "/var/tmp"];

/// Where projects usually have their virtual environment of Python.
const ENVIRONMENTS: [&str; 3] = [".venv", "venv", "env"];

/// How many tools of one installer are looked at.
const TOOLS: usize = 128;

/// The directories of the caller's `PATH` that can be shown at all, each once, in order.
pub(super) fn path(restrictions: &Restrictions) -> Vec<PathBuf> {
    let mut directories: Vec<PathBuf> = Vec::new();
    for directory in restrictions.path.split(':').map(Path::new) {
        // Without a trailing slash, which a comparison of paths does not see and a bind does.
        let directory: PathBuf = directory.components().collect();
        if is_clean(&directory) && !directories.contains(&directory) {
            directories.push(directory);
        }
    }
    directories
}

/// Whether this is the system's, which is shown anyway.
pub(super) fn is_system(path: &Path) -> bool {
    shieling_gate::SYSTEM.iter().any(|system| path.starts_with(system))
}

/// What is shown of the toolchains on `PATH`, by toolchain.
pub(super) fn entries(restrictions: &Restrictions) -> Vec<Vec<Entry>> {
    let mut shown_already: Vec<PathBuf> = Vec::new();
    let mut groups = Vec::new();
    // A project's virtual environment is used by its path, too.
    let environments = ENVIRONMENTS.map(|name| restrictions.workspace.join(name).join("bin"));
    let environments = environments.into_iter().filter(|directory| directory.is_dir());
    for directory in path(restrictions).into_iter().chain(environments) {
        if is_system(&directory) {
            continue;
        }
        // On a Windows host's drives each look takes milliseconds, and nothing there can be started.
        if directory
            .strip_prefix("/mnt")
            .is_ok_and(|rest| rest.iter().next().is_some_and(|drive| drive.len() == 1))
        {
            continue;
        }
        let mine = directory.starts_with(&restrictions.workspace);
        let real = if mine {
            // A virtual environment's interpreter. The workspace says which, so only a known
            // toolchain is shown for it, and nothing by the general rule.
            fs::canonicalize(directory.join("python"))
                .ok()
                .and_then(|python| python.parent().map(Path::to_path_buf))
        } else {
            fs::canonicalize(&directory).ok()
        };
        let mut places: Vec<PathBuf> = real.into_iter().filter(|real| !is_system(real)).collect();
        let interpreters = match mine {
            true => Vec::new(),
            false => interpreters(&directory),
        };
        if !mine && !places.contains(&directory) {
            places.insert(0, directory);
        }
        let places = places.into_iter().map(|place| (place, !mine));
        // What a link leads to is shown only where it is a known toolchain.
        for (place, generally) in places.chain(interpreters.into_iter().map(|place| (place, false))) {
            let group = of(&place, restrictions, generally);
            let new: Vec<Entry> = group
                .into_iter()
                .filter(|entry| !shown_already.contains(&entry.target().to_path_buf()))
                .collect();
            shown_already.extend(new.iter().map(|entry| entry.target().to_path_buf()));
            if !new.is_empty() {
                groups.push(new);
            }
        }
    }
    groups
}

/// Where the interpreters stand with which the programs of a directory were installed: that of a virtual environment of
/// which it is the `bin`, and those of the tools beside it that pipx, uv and poetry keep in environments of their own.
fn interpreters(directory: &Path) -> Vec<PathBuf> {
    let Some(root) = directory.parent() else {
        return Vec::new();
    };
    let tools = ["share/pipx/venvs", "pipx/venvs", "share/uv/tools"]
        .into_iter()
        .filter_map(|place| fs::read_dir(root.join(place)).ok())
        .flat_map(|found| found.take(TOOLS).flatten())
        .map(|tool| tool.path());
    [root.to_path_buf(), root.join("share/pypoetry/venv")]
        .into_iter()
        .chain(tools)
        .filter(|environment| environment.join("pyvenv.cfg").exists())
        .filter_map(|environment| fs::canonicalize(environment.join("bin/python")).ok())
        .filter_map(|python| python.parent().map(Path::to_path_buf))
        .filter(|place| !is_system(place))
        .collect()
}

/// What is shown for one directory.
fn of(directory: &Path, restrictions: &Restrictions, generally: bool) -> Vec<Entry> {
    for row in TABLE {
        for root in roots(row, restrictions) {
            if directory.starts_with(&root) && may_be_shown(&root, restrictions) {
                return known(row, &root, directory, restrictions);
            }
        }
    }
    if !generally {
        return Vec::new();
    }
    let environment = virtual_environment(directory, restrictions);
    if !environment.is_empty() {
        return environment;
    }
    general(directory, restrictions)
        .map(|path| shown(path, true))
        .into_iter()
        .collect()
}

/// What belongs to the virtual environment of Python whose `bin` this is; nothing if it is none. Its directory may hold
/// more, a whole project even.
fn virtual_environment(directory: &Path, restrictions: &Restrictions) -> Vec<Entry> {
    let root = directory.parent().filter(|root| {
        directory.ends_with("bin")
            && may_be_shown(root, restrictions)
            && fs::symlink_metadata(root.join("pyvenv.cfg")).is_ok_and(|found| found.is_file())
    });
    let parts = ["bin", "include", "lib", "lib64", "share", "pyvenv.cfg"];
    parts
        .iter()
        .filter_map(|part| Some(root?.join(part)))
        // `lib64` is often a link to `lib`.
        .filter(|path| fs::symlink_metadata(path).is_ok_and(|found| !found.is_symlink()))
        .map(|path| shown(path, true))
        .collect()
}

fn known(row: &Toolchain, root: &Path, directory: &Path, restrictions: &Restrictions) -> Vec<Entry> {
    let mut entries: Vec<Entry> = row.shows.iter().map(|part| shown(join(root, part), true)).collect();
    if row.places.contains(&".cargo") {
        entries.extend(cargo_config(root).map(|path| shown(path, false)));
    }
    let prefixes = [Some(root), directory.parent()];
    for secret in row.without {
        entries.extend(
            prefixes
                .iter()
                .flatten()
                .map(|prefix| prefix.join(secret))
                .filter(|path| path.exists())
                .map(|target| Entry::Hide { target }),
        );
    }
    for other in row
        .with
        .iter()
        .filter_map(|place| TABLE.iter().find(|row| row.places.contains(place)))
    {
        if let Some(root) = roots(other, restrictions).find(|root| may_be_shown(root, restrictions)) {
            entries.extend(known(other, &root, &root, restrictions));
        }
    }
    entries
}

fn join(root: &Path, part: &str) -> PathBuf {
    if part.is_empty() {
        root.to_path_buf()
    } else {
        root.join(part)
    }
}

fn roots<'a>(row: &'a Toolchain, restrictions: &'a Restrictions) -> impl Iterator<Item = PathBuf> + 'a {
    let named = row
        .variables
        .iter()
        .filter_map(|name| restrictions.roots.get(*name).cloned());
    let usual = row
        .places
        .iter()
        .filter_map(|place| match (place.starts_with('/'), &restrictions.home) {
            (true, _) => Some(PathBuf::from(place)),
            (false, Some(home)) => Some(home.join(place)),
            (false, None) => None,
        });
    named.chain(usual).filter(|root| is_clean(root))
}

/// Cargo's settings, if there are some and no word in them may be a secret's.
fn cargo_config(root: &Path) -> Option<PathBuf> {
    let path = ["config.toml", "config"]
        .iter()
        .map(|name| root.join(name))
        .find(|path| path.exists())?;
    let text = fs::read_to_string(&path).ok()?.to_ascii_lowercase();
    let suspicious = ["token", "secret", "password", "credential", "authorization", "@"];
    (!suspicious.iter().any(|word| text.contains(word))).then_some(path)
}

/// A directory that no row knows: with the rest of its installation if it is outside of the home and
/// called `bin` or `sbin`, and otherwise alone.
fn general(directory: &Path, restrictions: &Restrictions) -> Option<PathBuf> {
    let inside_home = restrictions
        .home
        .as_deref()
        .is_some_and(|home| directory.starts_with(home));
    let is_bin = directory
        .file_name()
        .is_some_and(|name| name == "bin" || name == "sbin");
    let whole = directory
        .parent()
        .filter(|parent| is_bin && !inside_home && may_be_shown(parent, restrictions));
    whole
        .or_else(|| Some(directory).filter(|directory| may_be_shown(directory, restrictions)))
        .map(Path::to_path_buf)
}

fn may_be_shown(path: &Path, restrictions: &Restrictions) -> bool {
    let contains = |other: Option<&Path>| other.is_some_and(|other| other.starts_with(path));
    let crowded = CROWDED.iter().any(|place| {
        let place = Path::new(place);
        path == place || path.parent() == Some(place)
    });
    !crowded
        && !WIDE.contains(&path.to_str().unwrap_or("/"))
        && place::swallows(path).is_none()
        && !below(path, "/etc")
        && !contains(restrictions.home.as_deref())
        && !contains(Some(&restrictions.workspace))
}

#[cfg(test)]
mod tests;
