//! Explains a failure by the network that there is not: what programs say when they look for a host, or
//! connect to one, where nothing outside can be reached. Looks at texts alone; the kernel tells nobody
//! which of its refusals a program has met.

use std::path::Path;

use crate::environment::Network;
use crate::outcome::{Hint, HintKind, LAST_LINES, Outcome, Status, end_of};

/// How many hosts that could not be reached are named.
const HOSTS_TOLD: usize = 3;

/// What is said where a name is looked up or an address is tried that is not there, in lower case.
const SAID: [&str; 19] = [
    "could not resolve host",
    "couldn't resolve host",
    "could not resolve proxy",
    "temporary failure in name resolution",
    "temporary failure resolving",
    "name or service not known",
    "no address associated with hostname",
    "failed to lookup address information",
    "nodename nor servname provided",
    "unable to resolve host address",
    "unknownhostexception",
    "unknown host",
    "enotfound",
    "eai_again",
    "network is unreachable",
    "enetunreach",
    "network unreachable",
    "no such host",
    "getaddrinfo failed",
];

/// What else is said of hosts, beside a host that is not this one.
const WITH_A_HOST: [&str; 4] = [
    "connection refused",
    "dial tcp: lookup ",
    "dial udp",
    "failed to connect",
];

/// What explains the failure of a command, or of a part of it, where this is all of the network; nothing if it
/// says nothing of the kind.
pub(super) fn hint(network: Network, by_name: bool, outcome: &Outcome) -> Option<Hint> {
    let lines = match (outcome.status, outcome.exit_code) {
        (Status::Exited, Some(0)) => LAST_LINES,
        (Status::Exited | Status::TimedOut, _) => usize::MAX,
        _ => return None,
    };
    let unreached = unreached(outcome);
    if unreached.is_some() {
        return unreached;
    }
    // What was refused by name is told by name.
    if network == Network::Host || outcome.was_refused_a_host() {
        return None;
    }
    let said = [&outcome.stderr, &outcome.stdout]
        .iter()
        .any(|text| tells(text, lines, network));
    said.then(|| Hint {
        kind: HintKind::Network,
        path: None,
        because: match network {
            Network::Loopback if by_name => "only the hosts that were allowed by name can be found and reached",
            Network::Loopback => {
                "the sandbox has a loopback of its own and no way out of it, so hosts outside can \
                                  be neither found nor reached"
            }
            Network::None | Network::Host => "the sandbox has no network",
        }
        .to_owned(),
        instead: "work with what is here, or a person can open hosts by name with `--allow-host NAME`, or start with \
                  `--network host`"
            .to_owned(),
    })
}

/// What explains that hosts could not be reached although they are allowed. One that was reached at another time is
/// no reason of a success: a command may have waited for it.
fn unreached(outcome: &Outcome) -> Option<Hint> {
    let failed = outcome.exit_code != Some(0);
    let connections = &outcome.network.as_ref()?.connections;
    let told: Vec<String> = connections
        .iter()
        .filter(|one| failed || one.bytes_in == 0)
        .filter_map(|one| {
            Some(format!(
                "`{}:{}` is allowed, but {}",
                one.host,
                one.port,
                one.unreached()?
            ))
        })
        .take(HOSTS_TOLD)
        .collect();
    (!told.is_empty()).then(|| Hint {
        kind: HintKind::Network,
        path: None,
        because: told.join("; "),
        instead: "check the name and the port, and that the host can be reached without the sandbox, too".to_owned(),
    })
}

fn tells(text: &str, lines: usize, network: Network) -> bool {
    let tail = end_of(text).to_ascii_lowercase();
    tail.lines().rev().take(lines).any(|line| {
        SAID.iter().any(|said| has_words(line, said))
            || WITH_A_HOST.iter().any(|said| line.contains(said)) && names_another_host(line)
            // What Landlock answers where nothing may be connected to.
            || network == Network::None && line.contains("connect") && line.contains("permission denied")
    })
}

/// Whether a line has these words, and not as the end of another: `FileNotFoundError` is no `ENOTFOUND`.
fn has_words(line: &str, words: &str) -> bool {
    line.match_indices(words).any(|(start, _)| {
        let before = line[..start].chars().next_back();
        !before.is_some_and(char::is_alphanumeric)
    })
}

/// Whether a line names something that looks like a host elsewhere: a server of the command's own that is not
/// up yet is on this machine.
fn names_another_host(line: &str) -> bool {
    let words = line.split(|sign: char| !(sign.is_ascii_alphanumeric() || ".-:[]".contains(sign)));
    words.filter_map(host_of).any(|host| {
        let own = host == "localhost" || host.starts_with("127.") || host == "::1" || host == "0.0.0.0";
        !own
    })
}

/// A word as a host: a name with a dot whose last part is letters, or an address of four numbers.
fn host_of(word: &str) -> Option<&str> {
    let word = word.trim_matches(|sign: char| ".:-[]".contains(sign));
    let host = word.split_once(':').map_or(word, |(host, _)| host);
    let parts: Vec<&str> = host.split('.').collect();
    let number = |part: &&str| part.parse::<u8>().is_ok();
    let letters = |part: &&str| part.len() >= 2 && part.bytes().all(|byte| byte.is_ascii_alphabetic());
    let address = parts.len() == 4 && parts.iter().all(number);
    // `main.rs:12: connection refused` names a file.
    let file = Path::new(host).extension().is_some_and(|extension| {
        let known = [
            "rs", "py", "js", "ts", "go", "c", "h", "cc", "java", "rb", "sh", "log", "so", "php", "pl",
        ];
        extension.to_str().is_some_and(|extension| known.contains(&extension))
    });
    let name = parts.len() >= 2 && parts.last().is_some_and(letters) && !file;
    (address || name).then_some(host)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::{NetworkConnection, NetworkSummary};

    fn said(status: Status, code: Option<i32>, stderr: &str) -> Outcome {
        Outcome {
            exit_code: code,
            stderr: stderr.to_owned(),
            ..Outcome::blank(status, "/w", "sandbox")
        }
    }

    #[test]
    fn what_programs_say_without_a_network_is_explained() {
        for text in [
            "curl: (6) Could not resolve host: example.org",
            "fatal: unable to access 'https://example.org/': Could not resolve host: example.org",
            "npm error code EAI_AGAIN\nnpm error syscall getaddrinfo",
            "npm error code ENOTFOUND",
            "Failed to establish a new connection: [Errno -3] Temporary failure in name resolution",
            "W: Failed to fetch http://deb.example.org/dists  Temporary failure resolving 'deb.example.org'",
            "error: failed to download from `https://index.example.org/config.json`\n  [6] Could not resolve hostname \
             (Could not resolve host: index.example.org)",
            "Could not transfer artifact: example.org: Temporary failure in name resolution: Unknown host example.org",
            "dial tcp: lookup proxy.example.org on [::1]:53: read: connection refused",
            "connect to 192.0.2.7 port 80 failed: Network is unreachable",
            "ssh: connect to host db.example.org port 22: Connection refused",
        ] {
            let failed = said(Status::Exited, Some(1), text);
            let hint = hint(Network::Loopback, false, &failed).unwrap_or_else(|| panic!("{text}"));
            assert!(hint.instead.contains("--network host"), "{hint:?}");
            assert!(super::hint(Network::None, false, &said(Status::TimedOut, Some(124), text)).is_some());
            assert!(super::hint(Network::Host, false, &failed).is_none());
            // `… 2>&1 | tail`, which succeeds; and a log that was read, in the middle of which it stands.
            let piped = said(Status::Exited, Some(0), text);
            assert!(super::hint(Network::Loopback, false, &piped).is_some(), "{text}");
            let read = said(
                Status::Exited,
                Some(0),
                &format!("{text}\n{}", "a line\n".repeat(LAST_LINES)),
            );
            assert!(super::hint(Network::Loopback, false, &read).is_none(), "{text}");
        }
    }

    #[test]
    fn an_allowed_host_that_is_not_reached_is_told_as_that() {
        let connection = |host: &str, bytes_in, error: &str| NetworkConnection {
            host: host.to_owned(),
            port: 443,
            bytes_in,
            bytes_out: 0,
            count: 1,
            error: Some(error.to_owned()),
        };
        let told = |code, connections: Vec<NetworkConnection>| {
            let mut outcome = said(
                Status::Exited,
                Some(code),
                "curl: (6) Could not resolve host: b.example.org",
            );
            outcome.network = Some(NetworkSummary {
                connections,
                ..NetworkSummary::default()
            });
            hint(Network::Loopback, true, &outcome).map(|hint| hint.because)
        };
        let no_address = connection("a.example.org", 0, "it has no address: no such name");
        let refused = connection("b.example.org", 9, "it cannot be reached: Connection refused");
        let reset = connection("c.example.org", 9, "Connection reset by peer");
        let of_a = "`a.example.org:443` is allowed, but it has no address: no such name".to_owned();
        let of_b = "`b.example.org:443` is allowed, but it cannot be reached: Connection refused";
        assert_eq!(
            told(1, vec![no_address.clone(), refused.clone(), reset.clone()]),
            Some(format!("{of_a}; {of_b}"))
        );
        assert_eq!(told(0, vec![no_address, refused.clone()]), Some(of_a));
        // What was reached after all, or broke off, is not what the words are about.
        let by_name = "only the hosts that were allowed by name can be found and reached";
        assert_eq!(told(0, vec![refused]).as_deref(), Some(by_name));
        assert_eq!(told(1, vec![reset]).as_deref(), Some(by_name));
    }

    #[test]
    fn where_nothing_may_be_connected_to_the_kernel_says_another_word() {
        let text = "connect to 127.0.0.1 port 80 failed: Permission denied";
        assert!(hint(Network::None, false, &said(Status::Exited, Some(1), text)).is_some());
        assert!(hint(Network::Loopback, false, &said(Status::Exited, Some(1), text)).is_none());
    }

    #[test]
    fn a_server_of_ones_own_that_is_not_up_is_no_matter_of_the_network() {
        for text in [
            "curl: (7) Failed to connect to localhost port 3000: Connection refused",
            "connect ECONNREFUSED 127.0.0.1:5432",
            "psql: error: connection to server at \"127.0.0.1\", port 5432 failed: Connection refused",
            "main.rs:12: connection refused",
            "FileNotFoundError: [Errno 2] No such file or directory: 'x'",
            "test server.test.js: connection refused",
            "assertion failed",
            "FileNotFoundError: [Errno 2] No such file or directory: 'note'",
            "",
        ] {
            assert_eq!(
                hint(Network::Loopback, false, &said(Status::Exited, Some(1), text)),
                None,
                "{text}"
            );
        }
    }

    #[test]
    fn only_the_end_of_a_long_output_is_looked_at() {
        let long = format!("Could not resolve host: x\n{}", "é\n".repeat(crate::outcome::LOOKED_AT));
        assert_eq!(hint(Network::None, false, &said(Status::Exited, Some(1), &long)), None);
    }
}
