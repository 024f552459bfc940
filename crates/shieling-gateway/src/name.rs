//! Host names, checked once and compared as bytes afterwards.
//!
//! Does not resolve names. A name of any other spelling than the canonical one (ASCII, lower case, no trailing dot)
//! exists only before [`HostName::parse`].

use std::fmt;
use std::sync::Arc;

/// The name under which a sandbox reaches this machine's own loopback.
pub const HOST_INTERNAL: &str = "host.internal";

/// The longest name in bytes, without a trailing dot (RFC 1035).
const NAME_BYTES_MAX: usize = 253;

/// The longest label in bytes.
const LABEL_BYTES_MAX: usize = 63;

/// A host name in canonical form: ASCII, lower case, without a trailing dot. International names are in their
/// ASCII form (`xn--…`).
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HostName(Arc<str>);

/// The reasons why a text is not a host name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// The name or one of its labels is empty.
    #[error("a host name has no empty part")]
    Empty,
    /// The name is longer than 253 bytes, or a label longer than 63.
    #[error("a host name has at most 253 bytes, and 63 in each part")]
    TooLong,
    /// A character that no host name contains.
    #[error("a host name does not contain {0:?}")]
    Character(char),
    /// A label begins or ends with a hyphen.
    #[error("a part of a host name does not begin or end with a hyphen")]
    Hyphen,
    /// The last label is a number, so that some programs would read the name as an IPv4 address.
    #[error("a name that ends in a number is read as an IPv4 address by some programs")]
    Number,
    /// The name is not valid under IDNA (UTS 46).
    #[error("the international name is not valid under IDNA")]
    International,
    /// A label mixes Latin letters with Greek, Cyrillic, Armenian or Cherokee ones, as look-alike names do.
    #[error("a part of the name mixes Latin letters with letters that look like them")]
    MixedScripts,
}

impl HostName {
    /// Checks a host name and brings it into canonical form.
    ///
    /// # Errors
    /// If the text is not a host name, or one that different programs read differently.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        let refused =
            |c: &char| c.is_control() || c.is_whitespace() || (c.is_ascii() && !is_host_byte(*c as u8) && *c != '.');
        if let Some(character) = text.chars().find(refused) {
            return Err(NameError::Character(character));
        }
        let relative = text.strip_suffix('.').unwrap_or(text);
        let international = !relative.is_ascii()
            || relative
                .split('.')
                .any(|label| label.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("xn--")));
        if !international {
            return Self::from_ascii(relative);
        }
        let (unicode, valid) = idna::domain_to_unicode(relative);
        if valid.is_err() {
            return Err(NameError::International);
        }
        if unicode.split('.').any(mixes_scripts) {
            return Err(NameError::MixedScripts);
        }
        let ascii = idna::domain_to_ascii_strict(relative).map_err(|_| NameError::International)?;
        Self::from_ascii(&ascii)
    }

    /// Checks a name that consists of ASCII.
    fn from_ascii(text: &str) -> Result<Self, NameError> {
        if text.len() > NAME_BYTES_MAX {
            return Err(NameError::TooLong);
        }
        let mut last = "";
        for label in text.split('.') {
            if label.is_empty() {
                return Err(NameError::Empty);
            }
            if label.len() > LABEL_BYTES_MAX {
                return Err(NameError::TooLong);
            }
            if let Some(byte) = label.bytes().find(|byte| !is_host_byte(*byte)) {
                return Err(NameError::Character(byte as char));
            }
            if label.starts_with('-') || label.ends_with('-') {
                return Err(NameError::Hyphen);
            }
            last = label;
        }
        if is_number(last) {
            return Err(NameError::Number);
        }
        Ok(Self(text.to_ascii_lowercase().into()))
    }

    /// `host.internal`, which means this machine's loopback.
    pub(crate) fn internal() -> Self {
        Self(HOST_INTERNAL.into())
    }

    /// The name in canonical form.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the name is a proper subdomain of `parent`, at any depth. A name is not under itself.
    #[must_use]
    pub fn is_under(&self, parent: &Self) -> bool {
        self.0
            .strip_suffix(&*parent.0)
            .is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whether a label may contain the byte. Underscores are not in RFC 952, but stand in the names of containers and
/// services.
fn is_host_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_'
}

/// Whether a last label makes a name an IPv4 address in the eyes of `inet_aton` or a browser.
fn is_number(label: &str) -> bool {
    let hexadecimal = label.strip_prefix("0x").or_else(|| label.strip_prefix("0X"));
    match hexadecimal {
        Some(digits) => digits.bytes().all(|byte| byte.is_ascii_hexdigit()),
        None => label.bytes().all(|byte| byte.is_ascii_digit()),
    }
}

/// Whether a label contains Latin letters and letters of a script that has letters of the same shape.
fn mixes_scripts(label: &str) -> bool {
    let alike = |c: char| matches!(c, '\u{370}'..='\u{3ff}' | '\u{400}'..='\u{58f}' | '\u{13a0}'..='\u{13ff}' | '\u{1f00}'..='\u{1fff}');
    label.chars().any(|c| c.is_ascii_alphabetic()) && label.chars().any(alike)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parsed(text: &str) -> String {
        HostName::parse(text).expect(text).to_string()
    }

    #[test]
    fn case_and_one_trailing_dot_are_normalised() {
        assert_eq!(parsed("PyPI.org"), "pypi.org");
        assert_eq!(parsed("pypi.org."), "pypi.org");
        assert_eq!(parsed("my_db"), "my_db");
        assert_eq!(HostName::parse("pypi.org.."), Err(NameError::Empty));
        assert_eq!(HostName::parse("."), Err(NameError::Empty));
        assert_eq!(HostName::parse(""), Err(NameError::Empty));
        assert_eq!(HostName::parse(".pypi.org"), Err(NameError::Empty));
    }

    #[test]
    fn other_spellings_of_ipv4_addresses_are_not_names() {
        for text in [
            "127.1",
            "0x7f.0.0.1",
            "0x7f000001",
            "2130706433",
            "0177.0.0.1",
            "1.2.3.4",
            "a.0x",
            "a.1",
            "a.0X1F",
        ] {
            assert_eq!(HostName::parse(text), Err(NameError::Number), "{text}");
        }
        assert_eq!(parsed("1.2.3.4.example"), "1.2.3.4.example");
        assert_eq!(parsed("0xg"), "0xg");
    }

    #[test]
    fn control_bytes_and_delimiters_are_refused() {
        for text in [
            "pypi.org\0",
            "pypi\0.org",
            "pypi.org\n",
            "pypi.org\r\nX",
            "a b",
            "a/b",
            "a@b",
            "a:b",
            "a%2eb",
            "a\\b",
            "a?b",
            "a#b",
            "*.b",
            "[a]",
        ] {
            assert!(
                matches!(HostName::parse(text), Err(NameError::Character(_))),
                "{text:?}"
            );
        }
    }

    #[test]
    fn international_names_have_one_ascii_form_and_look_alikes_are_refused() {
        assert_eq!(parsed("bücher.example"), "xn--bcher-kva.example");
        assert_eq!(parsed("BÜCHER.example"), "xn--bcher-kva.example");
        assert_eq!(parsed("xn--bcher-kva.example"), "xn--bcher-kva.example");
        // The i is Cyrillic.
        assert_eq!(HostName::parse("pyp\u{456}.org"), Err(NameError::MixedScripts));
        assert_eq!(HostName::parse("xn--pyp-9ed.org"), HostName::parse("pyp\u{456}.org"));
        // Wide letters stand for plain ones, and then they are plain ones.
        assert_eq!(parsed("ｐｙｐｉ.org"), "pypi.org");
        assert_eq!(parsed("pypi。org"), "pypi.org");
        assert_eq!(HostName::parse("１２７.1"), Err(NameError::Number));
        assert_eq!(HostName::parse("xn--\u{1}"), Err(NameError::Character('\u{1}')));
        assert_eq!(HostName::parse("xn--99999999999"), Err(NameError::International));
    }

    #[test]
    fn a_name_is_under_its_parents_and_not_under_itself() {
        let name = |text| HostName::parse(text).unwrap();
        assert!(name("a.example.org").is_under(&name("example.org")));
        assert!(name("b.a.example.org").is_under(&name("example.org")));
        assert!(!name("example.org").is_under(&name("example.org")));
        assert!(!name("badexample.org").is_under(&name("example.org")));
    }

    proptest! {
        #[test]
        fn what_parses_is_canonical_and_parses_to_itself(text in "\\PC{0,40}") {
            if let Ok(name) = HostName::parse(&text) {
                prop_assert!(name.as_str().bytes().all(|byte| is_host_byte(byte) && !byte.is_ascii_uppercase() || byte == b'.'));
                prop_assert_eq!(HostName::parse(name.as_str()), Ok(name.clone()));
                prop_assert!(name.as_str().parse::<std::net::IpAddr>().is_err());
            }
        }
    }
}
