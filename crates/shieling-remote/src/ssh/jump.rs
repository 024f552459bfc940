//! The hosts by way of which a machine is reached (`ProxyJump`): the client starts another one for each, which gets none
//! of our options. What it would do is read from its own settings.

use std::ffi::OsString;
use std::fmt;

/// How many jumps are looked at. The client itself makes no loop.
const MOST: usize = 16;

/// A host on the way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Hop {
    pub(super) user: Option<String>,
    pub(super) host: String,
    pub(super) port: Option<u16>,
}

impl Hop {
    /// Reads `[ssh://][USER@]HOST[:PORT]`.
    fn read(text: &str) -> Self {
        let text = text.strip_prefix("ssh://").unwrap_or(text).trim_end_matches('/');
        let (user, rest) = match text.rsplit_once('@') {
            Some((user, rest)) => (Some(user.to_owned()), rest),
            None => (None, text),
        };
        let port = |text: &str| text.strip_prefix(':')?.parse().ok();
        let (host, port) = match rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((host, after)) => (host, port(after)),
            None => match rest.split_once(':') {
                // An address of IPv6 without brackets has no port.
                Some((host, after)) if !after.contains(':') => (host, after.parse().ok()),
                Some(_) | None => (rest, None),
            },
        };
        Self {
            user,
            host: host.to_owned(),
            port,
        }
    }

    /// The words that name it for the client, behind these options.
    pub(super) fn arguments(&self, options: &[OsString]) -> Vec<OsString> {
        let mut words = options.to_vec();
        if let Some(port) = self.port {
            words.extend(["-p".into(), port.to_string().into()]);
        }
        if let Some(user) = &self.user {
            words.extend(["-l".into(), user.into()]);
        }
        words.extend(["--".into(), OsString::from(&self.host)]);
        words
    }
}

impl fmt::Display for Hop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.host)
    }
}

/// A host on the way whose key may be accepted without having been seen.
#[derive(Debug)]
pub(super) struct Trusting {
    pub(super) hop: Hop,
    /// The setting that does it, and its value.
    pub(super) setting: &'static str,
    pub(super) value: String,
    /// The value to give it.
    pub(super) instead: &'static str,
}

/// The settings by which a key is accepted, with the values by which none is that was not seen, the best one first. With
/// `ask` the answer is no: nobody is asked.
const SETTINGS: [(&str, &[&str]); 3] = [
    ("StrictHostKeyChecking", &["yes", "true", "ask"]),
    ("VerifyHostKeyDNS", &["no", "false", "ask"]),
    ("NoHostAuthenticationForLocalhost", &["no", "false"]),
];

/// The first host on the way to `to` whose key may be accepted without having been seen. `settings` tells what the client
/// would do for a host.
pub(super) fn trusting(to: &Hop, settings: impl Fn(&Hop) -> Option<String>) -> Option<Trusting> {
    let mut waiting = hops(&settings(to)?);
    let mut seen = Vec::new();
    while let Some(hop) = waiting.pop() {
        if seen.contains(&hop) {
            continue;
        }
        // What cannot be read, or not within bounds, is not known to be safe.
        let text = settings(&hop).filter(|_| seen.len() < MOST).unwrap_or_default();
        for (setting, safe) in SETTINGS {
            let value = match value(&text, &setting.to_ascii_lowercase()) {
                Some(value) if safe.contains(&value) => continue,
                Some(value) => value,
                None if setting == "StrictHostKeyChecking" => "(unknown)",
                // An older client has no such setting.
                None => continue,
            };
            let (value, instead) = (value.to_owned(), safe[0]);
            return Some(Trusting {
                hop,
                setting,
                value,
                instead,
            });
        }
        waiting.extend(hops(&text));
        seen.push(hop);
    }
    None
}

/// The hosts that the settings name.
fn hops(settings: &str) -> Vec<Hop> {
    let named = value(settings, "proxyjump").filter(|named| *named != "none");
    named.map_or_else(Vec::new, |named| named.split(',').map(Hop::read).collect())
}

fn value<'a>(settings: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = settings.lines();
    lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' ').map(str::trim))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hop(user: Option<&str>, host: &str, port: Option<u16>) -> Hop {
        Hop {
            user: user.map(str::to_owned),
            host: host.to_owned(),
            port,
        }
    }

    #[test]
    fn hosts_on_the_way_are_read_as_the_client_writes_them() {
        for (text, expected) in [
            ("a", hop(None, "a", None)),
            ("u@a:22", hop(Some("u"), "a", Some(22))),
            ("ssh://u@a:22/", hop(Some("u"), "a", Some(22))),
            ("[::1]:22", hop(None, "::1", Some(22))),
            ("u@[::1]", hop(Some("u"), "::1", None)),
            ("::1", hop(None, "::1", None)),
        ] {
            assert_eq!(Hop::read(text), expected, "{text}");
        }
    }

    #[test]
    fn a_host_on_the_way_that_takes_any_key_is_found_also_behind_another() {
        let settings = |hop: &Hop| {
            let (jump, checking) = match hop.host.as_str() {
                "direct" => ("", "true"),
                "one" => ("strict", "true"),
                "two" => ("strict,asks", "true"),
                "deep" => ("through", "true"),
                "through" => ("new", "true"),
                "circle" => ("circle", "true"),
                "blind" => ("nowhere", "true"),
                "asks" => ("", "ask"),
                "new" => ("", "accept-new"),
                "strict" => ("none", "true"),
                _ => return None,
            };
            Some(format!("port 22\nproxyjump {jump}\nstricthostkeychecking {checking}\n").replace("proxyjump \n", ""))
        };
        let found = |host: &str| trusting(&hop(None, host, None), settings).map(|found| (found.hop.host, found.value));
        for host in ["direct", "one", "two", "circle", "unknown"] {
            assert_eq!(found(host), None, "{host}");
        }
        assert_eq!(found("deep"), Some(("new".to_owned(), "accept-new".to_owned())));
        assert_eq!(found("blind"), Some(("nowhere".to_owned(), "(unknown)".to_owned())));
    }
}
