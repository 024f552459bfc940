//! Secrets that never enter the sandbox: what the user wrote, the value, and the placeholder that stands for it.
//!
//! Reads no variable and no file: the caller reads the [`SecretSource`] and hands the value over.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use crate::rule::{Host, HostRule, Protocol, RuleError};
use crate::trust;

/// The shortest value in bytes. A shorter one would occur in other texts by chance.
const VALUE_BYTES_MIN: usize = 8;

/// The longest value in bytes.
const VALUE_BYTES_MAX: usize = 8192;

/// Where a secret's value is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretSource {
    /// A variable of the caller's environment. The default, with the name of the sandbox's variable.
    Variable(String),
    /// A file.
    File(PathBuf),
    /// The output of a command.
    Command(String),
}

/// A secret as a user names it: `VAR@HOST[:PORT][=SOURCE]`, where `SOURCE` is `env:NAME`, `file:PATH` or `cmd:TEXT`.
///
/// ```
/// use shieling_gateway::{SecretSource, SecretSpec};
///
/// let spec: SecretSpec = "GITHUB_TOKEN@api.github.com=env:MY_TOKEN".parse()?;
/// assert_eq!(spec.source, SecretSource::Variable("MY_TOKEN".into()));
/// # Ok::<(), shieling_gateway::SecretError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretSpec {
    /// The variable whose value is the placeholder, inside of the sandbox.
    pub variable: String,
    /// The host that gets the value: a name or `*.NAME`. Without a port: 443 over TLS, and no other.
    pub host: HostRule,
    /// Where the value is read.
    pub source: SecretSource,
}

/// The reasons why a secret is not usable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SecretError {
    /// The text has no `@`.
    #[error("a secret is named as VAR@HOST[=SOURCE]")]
    Form,
    /// The variable's name is empty or has characters other than letters, digits and `_`.
    #[error("a variable's name has letters, digits and `_`, and does not begin with a digit")]
    Variable,
    /// Programs read the variable for something else, or the gateway sets it itself.
    #[error("programs read this variable for something else; name another one")]
    Reserved,
    /// The host is not well-formed.
    #[error("{0}")]
    Host(#[from] RuleError),
    /// The host is an address, a range, `host.internal` or UDP: no TLS certificate can be checked for it.
    #[error("a secret goes over TLS to a host that has a name")]
    NotAName,
    /// The source has another form than `env:NAME`, `file:PATH` or `cmd:TEXT`.
    #[error("the source of a secret is env:NAME, file:PATH or cmd:TEXT")]
    Source,
    /// The value is shorter than 8 bytes or longer than 8 KiB.
    #[error("the value of a secret has between {VALUE_BYTES_MIN} and {VALUE_BYTES_MAX} bytes")]
    Length,
    /// The value has characters that no header of a request can carry.
    #[error("the value of a secret consists of printable ASCII characters")]
    Characters,
}

impl FromStr for SecretSpec {
    type Err = SecretError;

    fn from_str(text: &str) -> Result<Self, SecretError> {
        let (variable, rest) = text.split_once('@').ok_or(SecretError::Form)?;
        if !is_variable(variable) {
            return Err(SecretError::Variable);
        }
        if is_reserved(variable) {
            return Err(SecretError::Reserved);
        }
        let (host, source) = match rest.split_once('=') {
            Some((host, source)) => (host, parse_source(source)?),
            None => (rest, SecretSource::Variable(variable.to_owned())),
        };
        let host: HostRule = host.parse()?;
        match host.host() {
            Host::Name(_) | Host::Under(_) if host.protocol() == Protocol::Tcp => {}
            _ => return Err(SecretError::NotAName),
        }
        Ok(Self {
            variable: variable.to_owned(),
            host,
            source,
        })
    }
}

/// Parses `env:NAME`, `file:PATH` or `cmd:TEXT`.
fn parse_source(text: &str) -> Result<SecretSource, SecretError> {
    let (kind, rest) = text.split_once(':').ok_or(SecretError::Source)?;
    match kind {
        "env" if is_variable(rest) => Ok(SecretSource::Variable(rest.to_owned())),
        "file" if !rest.is_empty() => Ok(SecretSource::File(rest.into())),
        "cmd" if !rest.trim().is_empty() => Ok(SecretSource::Command(rest.to_owned())),
        _ => Err(SecretError::Source),
    }
}

/// Whether a text is a name of an environment variable.
fn is_variable(text: &str) -> bool {
    let well_formed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    text.bytes().all(well_formed) && text.bytes().next().is_some_and(|first| !first.is_ascii_digit())
}

/// Whether a placeholder as the value of a variable would break programs: what shells, the dynamic linker and clients of
/// HTTP read, and the certificates that the gateway sets.
fn is_reserved(variable: &str) -> bool {
    const SHELL: [&str; 14] = [
        "BASH_ENV", "ENV", "HOME", "IFS", "LANG", "LANGUAGE", "LOGNAME", "PATH", "PWD", "SHELL", "TERM", "TMPDIR",
        "TZ", "USER",
    ];
    // By their names: `LD_ACCESS_TOKEN` is a secret of LaunchDarkly.
    const LINKER: [&str; 15] = [
        "LD_AUDIT",
        "LD_BIND_NOT",
        "LD_BIND_NOW",
        "LD_DEBUG",
        "LD_DEBUG_OUTPUT",
        "LD_DYNAMIC_WEAK",
        "LD_LIBRARY_PATH",
        "LD_ORIGIN_PATH",
        "LD_PRELOAD",
        "LD_PROFILE",
        "LD_PROFILE_OUTPUT",
        "LD_SHOW_AUXV",
        "LD_TRACE_LOADED_OBJECTS",
        "LD_VERBOSE",
        "LD_WARN",
    ];
    const LOCALE: [&str; 13] = [
        "LC_ADDRESS",
        "LC_ALL",
        "LC_COLLATE",
        "LC_CTYPE",
        "LC_IDENTIFICATION",
        "LC_MEASUREMENT",
        "LC_MESSAGES",
        "LC_MONETARY",
        "LC_NAME",
        "LC_NUMERIC",
        "LC_PAPER",
        "LC_TELEPHONE",
        "LC_TIME",
    ];
    const PROXY: [&str; 5] = ["ALL_PROXY", "FTP_PROXY", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY"];
    // In lower case, too.
    let proxy = PROXY.iter().any(|name| name.eq_ignore_ascii_case(variable));
    proxy
        || SHELL.contains(&variable)
        || LINKER.contains(&variable)
        || LOCALE.contains(&variable)
        || trust::sets(variable)
}

/// A secret with its value, which cannot be printed.
#[derive(Clone)]
pub struct Secret {
    spec: SecretSpec,
    value: String,
}

impl Secret {
    /// A secret of this value. White space around it, as the end of a file's line, is removed.
    ///
    /// # Errors
    /// If the value cannot stand in a header of a request, or is too short to be told from other text.
    pub fn new(spec: SecretSpec, value: &str) -> Result<Self, SecretError> {
        let value = value.trim();
        if !(VALUE_BYTES_MIN..=VALUE_BYTES_MAX).contains(&value.len()) {
            return Err(SecretError::Length);
        }
        if !value.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
            return Err(SecretError::Characters);
        }
        Ok(Self {
            spec,
            value: value.to_owned(),
        })
    }

    /// What the user named.
    #[must_use]
    pub fn spec(&self) -> &SecretSpec {
        &self.spec
    }

    /// The value.
    pub(crate) fn value(&self) -> &str {
        &self.value
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secret({}@{})", self.spec.variable, self.spec.host)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_text_panics(text in "[A-Z]{0,3}@[a-z.:*=]{0,20}(=(env|file|cmd):.{0,5})?|\\PC{0,30}") {
            if let Ok(spec) = text.parse::<SecretSpec>() {
                prop_assert!(is_variable(&spec.variable));
            }
        }
    }

    #[test]
    fn a_secret_is_read_with_its_host_and_source() {
        let parsed = |text: &str| {
            text.parse::<SecretSpec>()
                .map(|spec| (spec.variable, spec.host.to_string(), spec.source))
        };
        let own = |host: &str, source| Ok(("TOKEN".to_owned(), host.to_owned(), source));
        let variable = |name: &str| SecretSource::Variable(name.to_owned());
        assert_eq!(parsed("TOKEN@api.github.com"), own("api.github.com", variable("TOKEN")));
        assert_eq!(
            parsed("TOKEN@*.corp.example:8443=env:MY"),
            own("*.corp.example:8443", variable("MY"))
        );
        assert_eq!(
            parsed("TOKEN@a.org=file:/run/a=b@c"),
            own("a.org", SecretSource::File("/run/a=b@c".into()))
        );
        assert_eq!(
            parsed("TOKEN@a.org=cmd:gh auth token"),
            own("a.org", SecretSource::Command("gh auth token".into()))
        );
        assert_eq!(parsed("TOKEN"), Err(SecretError::Form));
        assert_eq!(parsed("1T@a.org"), Err(SecretError::Variable));
        assert_eq!(parsed("T-X@a.org"), Err(SecretError::Variable));
        assert_eq!(parsed("@a.org"), Err(SecretError::Variable));
        for variable in ["PATH", "LD_PRELOAD", "LC_ALL", "HTTPS_PROXY", "https_proxy", "no_proxy"] {
            assert_eq!(
                parsed(&format!("{variable}@a.org")),
                Err(SecretError::Reserved),
                "{variable}"
            );
        }
        assert!(parsed("PROXY_TOKEN@a.org").is_ok());
        for host in ["10.0.0.1", "[2606:4700::1]", "host.internal:443", "udp:a.org:53"] {
            assert_eq!(parsed(&format!("T@{host}")), Err(SecretError::NotAName), "{host}");
        }
        for source in ["env:", "env:A B", "file:", "cmd: ", "http:x", "x", ""] {
            assert_eq!(
                parsed(&format!("T@a.org={source}")),
                Err(SecretError::Source),
                "{source}"
            );
        }
    }

    #[test]
    fn a_value_that_no_header_carries_is_refused_and_none_is_printed() {
        let spec: SecretSpec = "T@a.org".parse().unwrap();
        let secret = Secret::new(spec.clone(), " secret-value\n").unwrap();
        assert_eq!(secret.value(), "secret-value");
        assert_eq!(format!("{secret:?}"), "Secret(T@a.org)");
        let refused = |value: &str| Secret::new(spec.clone(), value).err();
        assert_eq!(refused("short"), Some(SecretError::Length));
        assert_eq!(refused(&"x".repeat(9000)), Some(SecretError::Length));
        assert_eq!(refused("secret\r\nX-Evil: 1"), Some(SecretError::Characters));
        assert_eq!(refused("secret\0value"), Some(SecretError::Characters));
        assert_eq!(refused("sécret-value"), Some(SecretError::Characters));
    }
}
