//! The secrets of one gateway with their placeholders, and their replacement in headers.
//!
//! A value is put only into headers of requests to the secret's host, never into a URL or a body.

use std::collections::HashMap;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD};
use http::header::{AUTHORIZATION, PROXY_AUTHORIZATION};
use http::{HeaderMap, HeaderValue};
use memchr::memmem;
use ring::rand::{SecureRandom, SystemRandom};

use crate::name::HostName;
use crate::redact::Redactor;
use crate::rule::Host;
use crate::secret::Secret;

/// The port of a secret whose host is named without one.
const TLS_PORT: u16 = 443;

/// Beginnings of well-known tokens, which programs look at. They are kept in placeholders. The longest first.
const PREFIXES: &[&str] = &[
    "pypi-AgEIcHlwaS5vcmc",
    "sk-ant-api03-",
    "github_pat_",
    "sk-proj-",
    "sk-ant-",
    "glpat-",
    "dop_v1_",
    "xoxb-",
    "xoxp-",
    "AKIA",
    "gho_",
    "ghp_",
    "ghr_",
    "ghs_",
    "ghu_",
    "npm_",
    "hf_",
    "sk-",
    "eyJ",
];

/// Reads base64 of programs that leave the padding out, as servers do.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// How many characters of a placeholder are random at least.
const RANDOM_MIN: usize = 8;

/// Two secrets of the same variable have different values.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Conflict(pub(crate) String);

/// The secrets of one gateway.
pub(crate) struct Vault {
    entries: Vec<Entry>,
}

struct Entry {
    secret: Secret,
    placeholder: String,
}

impl Vault {
    /// Makes a placeholder for each variable.
    ///
    /// # Errors
    /// If a variable has two values.
    pub(crate) fn new(secrets: Vec<Secret>) -> Result<Self, Conflict> {
        let mut placeholders: HashMap<String, (String, String)> = HashMap::new();
        let mut entries = Vec::new();
        for secret in secrets {
            let variable = &secret.spec().variable;
            let (value, placeholder) = placeholders
                .entry(variable.clone())
                .or_insert_with(|| (secret.value().to_owned(), placeholder(secret.value())));
            if value != secret.value() {
                return Err(Conflict(variable.clone()));
            }
            let placeholder = placeholder.clone();
            entries.push(Entry { secret, placeholder });
        }
        Ok(Self { entries })
    }

    /// The variables with their placeholders.
    pub(crate) fn variables(&self) -> Vec<(String, String)> {
        let mut variables: Vec<(String, String)> = Vec::new();
        for entry in &self.entries {
            let variable = (entry.secret.spec().variable.clone(), entry.placeholder.clone());
            if !variables.contains(&variable) {
                variables.push(variable);
            }
        }
        variables
    }

    /// Removes the values from texts.
    pub(crate) fn redactor(&self) -> Redactor {
        Redactor::new(
            self.entries
                .iter()
                .map(|entry| (entry.secret.value(), entry.placeholder.as_str())),
        )
    }

    /// The secrets that a host gets.
    fn for_host(&self, name: &HostName, port: u16) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(move |entry| {
            let host = &entry.secret.spec().host;
            host.means_name(name) && host.port().unwrap_or(TLS_PORT) == port
        })
    }

    /// Whether a host gets any secret.
    pub(crate) fn has(&self, name: &HostName, port: u16) -> bool {
        self.for_host(name, port).next().is_some()
    }

    /// The hosts of all secrets.
    pub(crate) fn hosts(&self) -> impl Iterator<Item = &Host> {
        self.entries.iter().map(|entry| entry.secret.spec().host.host())
    }

    /// Replaces the placeholders in the headers of a request to a host. Returns whether there were any.
    pub(crate) fn fill(&self, name: &HostName, port: u16, headers: &mut HeaderMap) -> bool {
        let mut filled = false;
        for (header, value) in headers.iter_mut() {
            for entry in self.for_host(name, port) {
                let mut replaced = replace(value.as_bytes(), &entry.placeholder, entry.secret.value());
                if replaced.is_none() && (header == AUTHORIZATION || header == PROXY_AUTHORIZATION) {
                    replaced = replace_basic(value.as_bytes(), &entry.placeholder, entry.secret.value());
                }
                if let Some(mut replaced) = replaced.and_then(|bytes| HeaderValue::from_bytes(&bytes).ok()) {
                    // Keeps the value out of the HPACK table and of debug output.
                    replaced.set_sensitive(true);
                    *value = replaced;
                    filled = true;
                }
            }
        }
        filled
    }
}

/// Replaces all occurrences; `None` if there are none.
fn replace(text: &[u8], from: &str, to: &str) -> Option<Vec<u8>> {
    let mut replaced = Vec::new();
    let mut rest = 0;
    for at in memmem::find_iter(text, from) {
        replaced.extend_from_slice(&text[rest..at]);
        replaced.extend_from_slice(to.as_bytes());
        rest = at + from.len();
    }
    (rest > 0).then(|| {
        replaced.extend_from_slice(&text[rest..]);
        replaced
    })
}

/// Replaces within the base64 text of `Basic` credentials.
fn replace_basic(header: &[u8], from: &str, to: &str) -> Option<Vec<u8>> {
    let (scheme, encoded) = header.split_at_checked("Basic ".len())?;
    if !scheme.eq_ignore_ascii_case(b"Basic ") {
        return None;
    }
    let plain = replace(&LENIENT.decode(encoded.trim_ascii()).ok()?, from, to)?;
    Some(format!("Basic {}", STANDARD.encode(plain)).into_bytes())
}

/// A random text of the same look and length: a well-known beginning and all punctuation are kept.
fn placeholder(value: &str) -> String {
    let letters = |text: &str| text.bytes().filter(u8::is_ascii_alphanumeric).count();
    let known = PREFIXES.iter().find(|prefix| value.starts_with(**prefix));
    let prefix = known
        .filter(|prefix| letters(&value[prefix.len()..]) >= RANDOM_MIN)
        .map_or(0, |prefix| prefix.len());
    let rest = &value[prefix..];
    let hexadecimal = rest.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    // A value of punctuation alone must not be its own placeholder.
    let keep_punctuation = letters(rest) >= RANDOM_MIN;
    let alphabet: &[u8] = match hexadecimal {
        true => b"0123456789abcdef",
        false => b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
    };
    let random = SystemRandom::new();
    let mut text = value[..prefix].to_owned();
    for byte in rest.bytes() {
        if keep_punctuation && !byte.is_ascii_alphanumeric() {
            text.push(byte as char);
            continue;
        }
        // Bytes past the last whole multiple are drawn again, so that each character is as likely.
        let drawn = loop {
            let mut byte = [0];
            random.fill(&mut byte).expect("the kernel gives random bytes");
            if usize::from(byte[0]) < 256 - 256 % alphabet.len() {
                break usize::from(byte[0]) % alphabet.len();
            }
        };
        text.push(alphabet[drawn] as char);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(spec: &str, value: &str) -> Secret {
        Secret::new(spec.parse().unwrap(), value).unwrap()
    }

    fn name(text: &str) -> HostName {
        HostName::parse(text).unwrap()
    }

    fn filled(vault: &Vault, host: &str, header: &'static str, value: &str) -> String {
        let mut headers = HeaderMap::new();
        headers.insert(header, value.parse().unwrap());
        vault.fill(&name(host), 443, &mut headers);
        headers[header].to_str().unwrap().to_owned()
    }

    const VALUE: &str = "ghp_0123456789abcdefABCDEF0123456789abcd";

    #[test]
    fn a_placeholder_looks_like_the_secret_and_is_another_one() {
        for value in [
            VALUE,
            "0123456789abcdef",
            "sk-ant-api03-abcdefgh-ij_klmno",
            "--------",
            "hunter2!",
            "pass word/12345678",
        ] {
            let text = placeholder(value);
            assert_eq!(text.len(), value.len());
            assert_ne!(text, value);
            assert_ne!(text, placeholder(value));
        }
        assert!(placeholder(VALUE).starts_with("ghp_"));
        assert!(placeholder("sk-ant-api03-abcdefgh-ij").starts_with("sk-ant-api03-"));
        assert!(
            placeholder("0123456789abcdef")
                .bytes()
                .all(|byte| byte.is_ascii_hexdigit())
        );
        assert_eq!(
            placeholder("abcd1234/abcd+1234==")
                .split(|c: char| c.is_alphanumeric())
                .collect::<String>(),
            "/+=="
        );
    }

    #[test]
    fn the_value_is_put_into_headers_for_its_host_alone() {
        let vault = Vault::new(vec![secret("TOKEN@api.github.com", VALUE)]).unwrap();
        let placeholder = vault.variables()[0].1.clone();
        let bearer = format!("Bearer {placeholder}");
        assert_eq!(
            filled(&vault, "api.github.com", "authorization", &bearer),
            format!("Bearer {VALUE}")
        );
        assert_eq!(
            filled(
                &vault,
                "api.github.com",
                "x-twice",
                &format!("{placeholder},{placeholder}")
            ),
            format!("{VALUE},{VALUE}")
        );
        for other in ["github.com", "evil.api.github.com", "evil.org"] {
            assert_eq!(filled(&vault, other, "authorization", &bearer), bearer);
        }
        let mut headers = HeaderMap::new();
        headers.insert("authorization", bearer.parse().unwrap());
        assert!(
            !vault.fill(&name("api.github.com"), 80, &mut headers),
            "not over plain HTTP"
        );
        let basic = format!("Basic {}", STANDARD.encode(format!("user:{placeholder}")));
        let expected = format!("Basic {}", STANDARD.encode(format!("user:{VALUE}")));
        assert_eq!(filled(&vault, "api.github.com", "authorization", &basic), expected);
        assert_eq!(
            filled(&vault, "api.github.com", "authorization", basic.trim_end_matches('=')),
            expected
        );
        assert_eq!(filled(&vault, "api.github.com", "x-other", &basic), basic);
        assert_eq!(
            filled(&vault, "api.github.com", "authorization", "Basic %%%"),
            "Basic %%%"
        );
    }

    #[test]
    fn one_variable_for_two_hosts_has_one_placeholder_and_one_value() {
        let two = vec![secret("T@a.example", VALUE), secret("T@*.b.example", VALUE)];
        let vault = Vault::new(two).unwrap();
        assert_eq!(vault.variables().len(), 1);
        assert!(vault.has(&name("a.example"), 443) && vault.has(&name("x.b.example"), 443));
        assert!(!vault.has(&name("b.example"), 443) && !vault.has(&name("a.example"), 8443));
        let two = vec![secret("T@a.example", VALUE), secret("T@b.example", "another value")];
        assert_eq!(Vault::new(two).err(), Some(Conflict("T".to_owned())));
    }
}
