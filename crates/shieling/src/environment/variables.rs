//! The environment of a child: built from a short safe list, never inherited. Pure.

use std::collections::BTreeMap;
use std::ffi::OsString;

/// What every child gets of its caller's variables, besides `LC_*`. None of them holds a secret.
const SAFE: [&str; 8] = ["PATH", "HOME", "LANG", "TERM", "USER", "LOGNAME", "TZ", "SHELL"];

/// Where a network has an authority of its own, programs find its certificate by these. Passed where they name the
/// system's own places, which are public and which a sandbox shows: a file that is not there is worse than none.
const CERTIFICATES: [&str; 8] = [
    "CARGO_HTTP_CAINFO",
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "NODE_EXTRA_CA_CERTS",
    "PIP_CERT",
    "REQUESTS_CA_BUNDLE",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
];

/// Below which certificates are the system's own.
const CERTIFICATES_OF_THE_SYSTEM: [&str; 4] = [
    "/etc/pki/ca-trust/",
    "/etc/pki/tls/certs/",
    "/etc/ssl/certs/",
    "/usr/share/",
];

/// Where programs are looked for if the caller has no `PATH`.
const USUAL_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// What a child's environment is built from.
///
/// It holds, in this order of precedence: what is `set`; what is `pass`ed by name; `PATH`, `HOME`,
/// `LANG`, `LC_*`, `TERM`, `USER`, `LOGNAME`, `TZ` and `SHELL` of the caller, and the variables that name a file of the
/// system's certificates (`SSL_CERT_FILE` and its like); a `PATH` if there is none yet. Without a terminal, `TERM` is `dumb`, and `PAGER` and `GIT_PAGER` are `cat`, since a
/// pager would wait for keys that nobody presses; setting or passing them wins over that.
#[derive(Debug, Clone, Copy)]
pub struct Variables<'a> {
    /// More names of the caller's to take over. One that the caller has not is left out.
    pub pass: &'a [String],
    /// More variables, with their values.
    pub set: &'a [(String, String)],
    /// Whether the child will have a terminal.
    pub terminal: bool,
}

/// A variable that no child can be given.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum VariableError {
    /// The name is empty or holds `=` or NUL.
    #[error("`{}` cannot be the name of a variable", .0.escape_debug())]
    Name(String),
    /// The value holds a NUL. It is not shown, since it may be a secret.
    #[error("the value of `{0}` holds a NUL byte")]
    Nul(String),
    /// The caller's value is not UTF-8. It is not shown, since it may be a secret.
    #[error("the value of `{0}` is not UTF-8; set it explicitly")]
    NotUtf8(String),
}

impl Variables<'_> {
    /// Builds the environment from the caller's own.
    ///
    /// # Errors
    /// A name or value that no child can be given. A safe variable of the caller that is not UTF-8
    /// is left out without one.
    pub fn build(
        &self,
        caller: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Result<BTreeMap<String, String>, VariableError> {
        let mut built = BTreeMap::new();
        if !self.terminal {
            for (name, value) in [("PAGER", "cat"), ("GIT_PAGER", "cat")] {
                built.insert(name.to_owned(), value.to_owned());
            }
        }
        for name in self.pass {
            check_name(name)?;
        }
        for (name, value) in caller {
            let Ok(name) = name.into_string() else { continue };
            let passed = self.pass.contains(&name);
            let safe = SAFE.contains(&name.as_str()) || name.starts_with("LC_");
            let certificate = CERTIFICATES.contains(&name.as_str()) && value.to_str().is_some_and(is_of_the_system);
            if !passed && !safe && !certificate {
                continue;
            }
            match value.into_string() {
                Ok(value) => {
                    let value = if name == "TERM" && !self.terminal && !passed {
                        "dumb".to_owned()
                    } else {
                        value
                    };
                    built.insert(name, value);
                }
                Err(_) if passed => return Err(VariableError::NotUtf8(name)),
                Err(_) => {}
            }
        }
        if !self.terminal {
            built.entry("TERM".to_owned()).or_insert_with(|| "dumb".to_owned());
        }
        built.entry("PATH".to_owned()).or_insert_with(|| USUAL_PATH.to_owned());
        for (name, value) in self.set {
            check_name(name)?;
            if value.contains('\0') {
                return Err(VariableError::Nul(name.clone()));
            }
            built.insert(name.clone(), value.clone());
        }
        Ok(built)
    }
}

/// Whether all these paths, divided by colons, are of the system's certificates.
fn is_of_the_system(paths: &str) -> bool {
    paths.split(':').all(|path| {
        // With or without a slash at its end, a directory is below itself.
        let path = format!("{path}/");
        CERTIFICATES_OF_THE_SYSTEM.iter().any(|place| path.starts_with(place)) && !path.contains("/../")
    })
}

fn check_name(name: &str) -> Result<(), VariableError> {
    if name.is_empty() || name.contains(['=', '\0']) {
        Err(VariableError::Name(name.to_owned()))
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt as _;

    use super::*;

    fn caller(pairs: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
        pairs.iter().map(|(name, value)| (name.into(), value.into())).collect()
    }

    fn built(pass: &[&str], set: &[(&str, &str)], terminal: bool, from: &[(&str, &str)]) -> Vec<String> {
        let pass: Vec<String> = pass.iter().map(|&name| name.to_owned()).collect();
        let set: Vec<_> = set
            .iter()
            .map(|&(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        let variables = Variables {
            pass: &pass,
            set: &set,
            terminal,
        };
        let built = variables.build(caller(from)).expect("nothing here is refused");
        built
            .into_iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect()
    }

    #[test]
    fn secrets_of_the_caller_stay_with_the_caller() {
        let from = [
            ("AWS_SECRET_ACCESS_KEY", "s"),
            ("GITHUB_TOKEN", "s"),
            ("BASH_ENV", "/x"),
            ("LD_PRELOAD", "/x"),
            ("PATH", "/bin"),
            ("LC_ALL", "C"),
            ("HOME", "/h"),
        ];
        assert_eq!(built(&[], &[], true, &from), ["HOME=/h", "LC_ALL=C", "PATH=/bin"]);
        assert_eq!(
            built(&["GITHUB_TOKEN", "ABSENT"], &[], true, &from),
            ["GITHUB_TOKEN=s", "HOME=/h", "LC_ALL=C", "PATH=/bin"]
        );
    }

    #[test]
    fn certificates_of_the_system_are_found_and_no_others() {
        let from = [
            ("PATH", "/bin"),
            ("SSL_CERT_FILE", "/etc/ssl/certs/ca-certificates.crt"),
            ("SSL_CERT_DIR", "/etc/ssl/certs:/usr/share/ca-certificates"),
            ("PIP_CERT", "/home/me/ca.pem"),
            ("CURL_CA_BUNDLE", "/etc/ssl/certs/../private/key.pem"),
            ("GIT_SSL_CAINFO", "/etc/ssl/certs:/home/me"),
            ("NODE_EXTRA_CA_CERTS", ""),
            ("SSL_CLIENT_KEY", "/etc/ssl/certs/key"),
        ];
        assert_eq!(
            built(&[], &[], true, &from),
            [
                "PATH=/bin",
                "SSL_CERT_DIR=/etc/ssl/certs:/usr/share/ca-certificates",
                "SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt"
            ]
        );
    }

    #[test]
    fn what_is_set_wins_over_everything() {
        let from = [("TERM", "xterm"), ("PATH", "/bin")];
        assert_eq!(
            built(&[], &[], false, &from),
            ["GIT_PAGER=cat", "PAGER=cat", "PATH=/bin", "TERM=dumb"]
        );
        assert_eq!(
            built(&["TERM"], &[("PAGER", "less"), ("PATH", "")], false, &from),
            ["GIT_PAGER=cat", "PAGER=less", "PATH=", "TERM=xterm"]
        );
        assert_eq!(built(&[], &[], true, &[]), [format!("PATH={USUAL_PATH}")]);
    }

    #[test]
    fn what_no_child_can_be_given_is_refused_without_its_value() {
        let set = |name: &str, value: &str| {
            let set = [(name.to_owned(), value.to_owned())];
            Variables {
                pass: &[],
                set: &set,
                terminal: false,
            }
            .build([])
        };
        assert_eq!(set("A=B", "x"), Err(VariableError::Name("A=B".into())));
        assert_eq!(set("", "x"), Err(VariableError::Name(String::new())));
        assert_eq!(set("A", "se\0cret"), Err(VariableError::Nul("A".into())));
        let odd = || {
            [
                ("ODD".into(), OsString::from_vec(vec![0xff])),
                ("HOME".into(), OsString::from_vec(vec![0xff])),
            ]
        };
        let pass = ["ODD".to_owned()];
        assert_eq!(
            Variables {
                pass: &pass,
                set: &[],
                terminal: false
            }
            .build(odd()),
            Err(VariableError::NotUtf8("ODD".into()))
        );
        assert!(
            Variables {
                pass: &[],
                set: &[],
                terminal: false
            }
            .build(odd())
            .is_ok_and(|built| !built.contains_key("HOME"))
        );
    }
}
