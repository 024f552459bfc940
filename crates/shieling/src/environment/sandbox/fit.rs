//! Variables that have programs notice what a sandbox is: that nothing outside can be reached, how much
//! memory there is, where toolchains stand, and, to root, that there are no other users. Each only where the caller has not set it.
//!
//! Without them a package manager tries for minutes what cannot come, a runtime takes the host's memory for
//! its own, and `tar` fails to give files to users that do not exist here. Refuses variables that a program
//! announces on its streams (`JAVA_TOOL_OPTIONS`): output is the command's own.

use std::path::Path;

use shieling_jail::plan::{Entry, Isolation};

use super::place::is_clean;
use super::{Restrictions, etc, toolchain};
use crate::environment::Network;

/// Where Python's packages come from.
const PYTHON: &[&str] = &["pypi.org", "files.pythonhosted.org"];

/// Nobody asks for newer versions of themselves: a home that is new each time would have them ask, and tell, each time.
const NO_NOTICES: [(&str, &str); 2] = [
    ("NPM_CONFIG_UPDATE_NOTIFIER", "false"),
    ("PIP_DISABLE_PIP_VERSION_CHECK", "1"),
];

/// Nothing is tried again that no second try could reach: unless the hosts, the first of each, can be reached.
const NO_WAY_OUT: [(&[&str], &str, &str); 10] = [
    (&["rubygems.org"], "BUNDLE_RETRY", "0"),
    (&["index.crates.io", "static.crates.io"], "CARGO_NET_RETRY", "0"),
    (&["conda.anaconda.org"], "CONDA_REMOTE_MAX_RETRIES", "0"),
    (&["registry.npmjs.org"], "NPM_CONFIG_FETCH_RETRIES", "0"),
    // With none, it does not say what failed.
    (PYTHON, "PIP_RETRIES", "1"),
    (PYTHON, "POETRY_REQUESTS_MAX_RETRIES", "0"),
    (&["static.rust-lang.org"], "RUSTUP_MAX_RETRIES", "0"),
    (PYTHON, "UV_HTTP_RETRIES", "0"),
    (&["registry.yarnpkg.com"], "YARN_HTTP_RETRY", "0"),
    (&["registry.yarnpkg.com"], "YARN_NETWORK_TIMEOUT", "5000"),
];

/// By which programs of a toolchain find the rest of it, where it is not at its usual place in the home.
const TOOLCHAINS: [&str; 12] = [
    "ASDF_DATA_DIR",
    "ASDF_DIR",
    "CARGO_HOME",
    "GOPATH",
    "GOROOT",
    "MISE_DATA_DIR",
    "NVM_DIR",
    "PYENV_ROOT",
    "RBENV_ROOT",
    "RUSTUP_HOME",
    "SDKMAN_DIR",
    "VOLTA_HOME",
];

/// What a runtime leaves of the memory to everything else that is in it.
const HEAP_SHARE: u64 = 2;

/// The variables of a sandbox that holds these limits and reaches these hosts by name.
pub(super) fn variables(
    restrictions: &Restrictions,
    root: bool,
    reaches: impl Fn(&str) -> bool,
) -> Vec<(&'static str, String)> {
    let mut fitted: Vec<(&'static str, String)> = Vec::new();
    if restrictions.network != Network::Host {
        let no_way = NO_WAY_OUT
            .iter()
            .filter(|(hosts, ..)| !hosts.iter().all(|host| reaches(host)));
        fitted.extend(NO_NOTICES.map(|(name, value)| (name, value.to_owned())));
        fitted.extend(no_way.map(|&(_, name, value)| (name, value.to_owned())));
        if restrictions.isolation == Isolation::Full && !reaches("deb.debian.org") {
            fitted.push(("APT_CONFIG", format!("/etc/{}", etc::APT_ONCE)));
        }
    }
    if restrictions.isolation == Isolation::Landlock {
        // The user's own file cannot be read there, at which git would give up; it is not shown, since it can hold passwords.
        fitted.push(("GIT_CONFIG_GLOBAL", "/dev/null".to_owned()));
    }
    if let Some(bytes) = restrictions.limits.memory {
        const MIB: u64 = 1 << 20;
        // Each bounds a heap, and not a process: there may be several, and each needs more than its heap.
        let heap = (bytes / MIB / HEAP_SHARE).max(16);
        fitted.push(("GOMEMLIMIT", format!("{heap}MiB")));
        fitted.push(("NODE_OPTIONS", format!("--max-old-space-size={heap}")));
        for launcher in ["ANT_OPTS", "GRADLE_OPTS", "MAVEN_OPTS", "SBT_OPTS"] {
            fitted.push((launcher, format!("-Xmx{heap}m")));
        }
    }
    if let Some(thousandths) = restrictions.limits.cpu_thousandths {
        let processors = thousandths.div_ceil(1000).max(1).to_string();
        // `nproc` asks the first.
        for name in ["OMP_NUM_THREADS", "GOMAXPROCS", "PYTHON_CPU_COUNT", "CARGO_BUILD_JOBS"] {
            fitted.push((name, processors.clone()));
        }
    }
    if root && restrictions.isolation != Isolation::None {
        // As root it would give each file to the user in the archive, whom there is not.
        fitted.push(("TAR_OPTIONS", "--no-same-owner".to_owned()));
    }
    fitted.extend(toolchains(restrictions));
    fitted
}

/// Where the toolchains stand that the caller's variables name, if they are shown there.
fn toolchains(restrictions: &Restrictions) -> Vec<(&'static str, String)> {
    let named: Vec<_> = TOOLCHAINS
        .into_iter()
        .filter_map(|name| Some((name, restrictions.roots.get(name).filter(|root| is_clean(root))?)))
        .collect();
    if named.is_empty() {
        return Vec::new();
    }
    let shown = toolchain::entries(restrictions).concat();
    let is_shown = |root: &Path| {
        let mut targets = shown.iter().map(Entry::target);
        toolchain::is_system(root) || targets.any(|target| target.starts_with(root) || root.starts_with(target))
    };
    named
        .into_iter()
        .filter(|(_, root)| is_shown(root))
        .filter_map(|(name, root)| Some((name, root.to_str()?.to_owned())))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(change: impl FnOnce(&mut Restrictions), root: bool) -> Vec<String> {
        let mut restrictions = Restrictions::new("/w", "/bin/sh");
        change(&mut restrictions);
        let all = variables(&restrictions, root, |name| PYTHON.contains(&name)).into_iter();
        all.map(|(name, value)| format!("{name}={value}")).collect()
    }

    #[test]
    fn with_the_hosts_network_and_no_limits_nothing_is_set() {
        let all = of(|asked| asked.network = Network::Host, false);
        assert!(all.is_empty(), "{all:?}");
    }

    #[test]
    fn what_cannot_be_reached_is_tried_once() {
        for network in [Network::None, Network::Loopback] {
            let all = of(|asked| asked.network = network, false);
            for one in ["NPM_CONFIG_FETCH_RETRIES=0", "APT_CONFIG=/etc/apt-once.conf"] {
                assert!(all.contains(&one.to_owned()), "{one}: {all:?}");
            }
            assert!(
                !all.iter().any(|one| one.starts_with("PIP_RETRIES")),
                "its host is reached: {all:?}"
            );
            let quiet = "PIP_DISABLE_PIP_VERSION_CHECK=1".to_owned();
            assert!(all.contains(&quiet), "though its host is reached: {all:?}");
            assert!(!all.iter().any(|one| one.starts_with("TAR")), "{all:?}");
        }
    }

    #[test]
    fn git_reads_no_file_that_the_landlock_tier_does_not_show() {
        let all = of(|asked| asked.isolation = Isolation::Landlock, false);
        assert!(all.contains(&"GIT_CONFIG_GLOBAL=/dev/null".to_owned()), "{all:?}");
        assert!(
            !all.iter().any(|one| one.starts_with("APT")),
            "nothing is made in its /etc: {all:?}"
        );
    }

    #[test]
    fn toolchains_are_named_where_they_are_shown() {
        let all = of(
            |asked| {
                asked.path = "/data/cargo/bin:/usr/bin".to_owned();
                for (name, root) in [
                    ("CARGO_HOME", "/data/cargo"),
                    ("RUSTUP_HOME", "/usr/local/rustup"),
                    ("PYENV_ROOT", "/data/pyenv"),
                    ("HOMEBREW_PREFIX", "/usr/local"),
                ] {
                    asked.roots.insert(name.to_owned(), root.into());
                }
            },
            false,
        );
        let is_of_these = |one: &&String| one.contains("=/") && !one.starts_with("APT");
        let told: Vec<_> = all.iter().filter(is_of_these).collect();
        assert_eq!(
            told,
            ["CARGO_HOME=/data/cargo", "RUSTUP_HOME=/usr/local/rustup"],
            "the rest is not shown, or needs no variable"
        );
    }

    #[test]
    fn runtimes_are_told_of_the_limits() {
        let limited = |asked: &mut Restrictions| {
            asked.limits.memory = Some(1 << 30);
            asked.limits.cpu_thousandths = Some(1_500);
        };
        let all = of(limited, true);
        for one in [
            "GOMEMLIMIT=512MiB",
            "NODE_OPTIONS=--max-old-space-size=512",
            "MAVEN_OPTS=-Xmx512m",
            "OMP_NUM_THREADS=2",
            "TAR_OPTIONS=--no-same-owner",
        ] {
            assert!(all.contains(&one.to_owned()), "{one}: {all:?}");
        }
    }
}
