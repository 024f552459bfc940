//! The user's own proxy, through which the gateway connects outside.
//!
//! Parses a proxy's URL and decides which hosts go around it. The caller reads it from where it is configured.

use std::fmt;
use std::net::IpAddr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ipnet::IpNet;

use crate::redact::Redactor;

/// What stands before the credentials in a header.
const BASIC: &str = "Basic ";

/// The shortest form of the credentials that is removed from texts, in bytes. A shorter one occurs by chance.
const REDACTED_BYTES_MIN: usize = 8;

/// An HTTP proxy: `http://[USER[:PASSWORD]@]HOST[:PORT]`. Its password is not printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Proxy {
    /// The host as it stands in the URL, without brackets.
    pub(crate) host: String,
    pub(crate) port: u16,
    /// The value of `Proxy-Authorization`.
    pub(crate) authorization: Option<String>,
}

/// The reasons why a text is not the URL of a proxy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProxyError {
    /// The scheme is not `http`.
    #[error("the gateway speaks to proxies over `http://` only")]
    Scheme,
    /// Host or port are missing or not well-formed.
    #[error("a proxy is named as http://[USER[:PASSWORD]@]HOST[:PORT]")]
    Host,
    /// The user or password contains control characters or a broken percent-encoding.
    #[error("the user or the password of the proxy is not well-formed")]
    Credentials,
}

impl Proxy {
    /// Parses the URL of a proxy, as `HTTPS_PROXY` has it. Without a port: 80. A text without a scheme is taken as
    /// `HOST[:PORT]`, as curl does.
    ///
    /// # Errors
    /// If the text is not such a URL.
    pub fn parse(url: &str) -> Result<Self, ProxyError> {
        let rest = match url.split_once("://") {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => rest,
            Some(_) => return Err(ProxyError::Scheme),
            None => url,
        };
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let (credentials, place) = match authority.rsplit_once('@') {
            Some((credentials, place)) => (Some(credentials), place),
            None => (None, authority),
        };
        let (host, port) = match place.strip_prefix('[') {
            Some(bracketed) => {
                let (host, after) = bracketed.split_once(']').ok_or(ProxyError::Host)?;
                host.parse::<std::net::Ipv6Addr>().map_err(|_| ProxyError::Host)?;
                match after {
                    "" => (host, None),
                    _ => (host, Some(after.strip_prefix(':').ok_or(ProxyError::Host)?)),
                }
            }
            None => match place.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (place, None),
            },
        };
        let well_formed = |c: char| !c.is_control() && !c.is_whitespace() && c.is_ascii();
        if host.is_empty() || !host.chars().all(well_formed) {
            return Err(ProxyError::Host);
        }
        let port = match port {
            Some(port) => port.parse().ok().filter(|port| *port != 0).ok_or(ProxyError::Host)?,
            None => 80,
        };
        let authorization = credentials.map(authorization).transpose()?;
        Ok(Self {
            host: host.to_owned(),
            port,
            authorization,
        })
    }

    /// Removes the credentials from texts.
    pub(crate) fn redactor(&self) -> Redactor {
        let basic = self
            .authorization
            .as_deref()
            .and_then(|value| value.strip_prefix(BASIC));
        let plain = basic.and_then(|basic| String::from_utf8(STANDARD.decode(basic).ok()?).ok());
        let long_enough = |text: &&str| text.len() >= REDACTED_BYTES_MIN;
        let texts: Vec<&str> = plain.as_deref().into_iter().chain(basic).filter(long_enough).collect();
        let hidden: Vec<String> = texts.iter().map(|text| "x".repeat(text.len())).collect();
        Redactor::new(texts.into_iter().zip(hidden.iter().map(String::as_str)))
    }
}

/// The header for `USER[:PASSWORD]`, which may be percent-encoded.
fn authorization(credentials: &str) -> Result<String, ProxyError> {
    let (user, password) = credentials.split_once(':').unwrap_or((credentials, ""));
    let mut plain = decode(user)?;
    if plain.contains(&b':') {
        return Err(ProxyError::Credentials);
    }
    plain.push(b':');
    plain.extend(decode(password)?);
    Ok(format!("{BASIC}{}", STANDARD.encode(plain)))
}

/// Undoes percent-encoding.
fn decode(text: &str) -> Result<Vec<u8>, ProxyError> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        let (decoded, after) = match (byte, after) {
            (b'%', [high, low, after @ ..]) => {
                let digit = |byte: &u8| (*byte as char).to_digit(16).ok_or(ProxyError::Credentials);
                let value = digit(high)? * 16 + digit(low)?;
                (u8::try_from(value).map_err(|_| ProxyError::Credentials)?, after)
            }
            (b'%', _) => return Err(ProxyError::Credentials),
            _ => (*byte, after),
        };
        if decoded.is_ascii_control() {
            return Err(ProxyError::Credentials);
        }
        bytes.push(decoded);
        rest = after;
    }
    Ok(bytes)
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let authorization = if self.authorization.is_some() {
            ", with credentials"
        } else {
            ""
        };
        write!(f, "Proxy({}:{}{authorization})", self.host, self.port)
    }
}

/// Hosts that are reached without the proxy, as `NO_PROXY` has them: `*`, names with their subdomains, addresses and
/// ranges, separated by commas.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NoProxy {
    everything: bool,
    /// Lower case, without a leading dot.
    names: Vec<String>,
    networks: Vec<IpNet>,
}

impl NoProxy {
    /// Parses the list. An entry that is neither a name nor an address matches nothing.
    #[must_use]
    pub fn parse(list: &str) -> Self {
        let mut no_proxy = Self::default();
        for entry in list.split([',', ' ']).map(str::trim).filter(|entry| !entry.is_empty()) {
            let address = entry.trim_start_matches('[').trim_end_matches(']');
            if entry == "*" {
                no_proxy.everything = true;
            } else if let Ok(net) = address.parse::<IpNet>() {
                no_proxy.networks.push(net);
            } else if let Ok(address) = address.parse::<IpAddr>() {
                no_proxy.networks.push(address.into());
            } else {
                let name = entry
                    .trim_start_matches("*.")
                    .trim_start_matches('.')
                    .trim_end_matches('.');
                no_proxy.names.push(name.to_ascii_lowercase());
            }
        }
        no_proxy
    }

    /// Whether a name is reached without the proxy.
    pub(crate) fn has_name(&self, name: &str) -> bool {
        let under = |parent: &String| {
            name.strip_suffix(parent.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        };
        self.everything || self.names.iter().any(under)
    }

    /// Whether an address is reached without the proxy.
    pub(crate) fn has_address(&self, address: IpAddr) -> bool {
        self.everything || self.networks.iter().any(|net| net.contains(&address))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_text_panics_and_no_header_is_broken(url in "(http://)?[a-z:@%/\\[\\]0-9]{0,30}|\\PC{0,30}") {
            NoProxy::parse(&url).has_name("a.org");
            if let Ok(proxy) = Proxy::parse(&url) {
                prop_assert!(proxy.port != 0 && !proxy.host.is_empty());
                prop_assert!(proxy.authorization.is_none_or(|value| value.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ')));
            }
        }
    }

    #[test]
    fn the_url_of_a_proxy_is_read_with_its_credentials_and_never_shows_them() {
        let proxy = Proxy::parse("http://alice:s%40fe%3A@proxy.corp:3128/").unwrap();
        assert_eq!((proxy.host.as_str(), proxy.port), ("proxy.corp", 3128));
        assert_eq!(proxy.authorization.as_deref(), Some("Basic YWxpY2U6c0BmZTo="));
        assert_eq!(format!("{proxy:?}"), "Proxy(proxy.corp:3128, with credentials)");
        assert_eq!(Proxy::parse("http://proxy").unwrap().port, 80);
        assert_eq!(Proxy::parse("proxy:8080").unwrap().port, 8080);
        assert_eq!(Proxy::parse("http://[fd00::1]:8080").unwrap().host, "fd00::1");
        assert_eq!(Proxy::parse("socks5://proxy"), Err(ProxyError::Scheme));
        assert_eq!(Proxy::parse("https://proxy"), Err(ProxyError::Scheme));
        assert_eq!(Proxy::parse("http://a:b%0d%0aX@proxy"), Err(ProxyError::Credentials));
        assert_eq!(Proxy::parse("http://a%3ab:c@proxy"), Err(ProxyError::Credentials));
        assert_eq!(Proxy::parse("http://pro\r\nxy"), Err(ProxyError::Host));
        assert_eq!(Proxy::parse("http://proxy:0"), Err(ProxyError::Host));
        assert_eq!(Proxy::parse(""), Err(ProxyError::Host));
    }

    #[test]
    fn exceptions_are_names_with_subdomains_and_ranges() {
        let list = NoProxy::parse("corp.example, .local,10.0.0.0/8,[fd00::1] ");
        assert!(list.has_name("corp.example") && list.has_name("a.corp.example") && list.has_name("db.local"));
        assert!(!list.has_name("notcorp.example") && !list.has_name("example"));
        assert!(list.has_address("10.1.1.1".parse().unwrap()) && list.has_address("fd00::1".parse().unwrap()));
        assert!(!list.has_address("11.1.1.1".parse().unwrap()));
        assert!(NoProxy::parse("*").has_name("anything"));
        assert!(!NoProxy::parse("").has_name("anything"));
    }
}
