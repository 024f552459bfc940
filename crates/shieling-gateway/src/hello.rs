//! The first message of TLS, read for the name that it carries.
//!
//! Reads bytes that a hostile program wrote, and answers with the name only if there is exactly one reading.

use crate::name::HostName;

/// The longest ClientHello that is read, in bytes, with the headers of its records.
pub(crate) const HELLO_BYTES_MAX: usize = 32 * 1024;

/// What the bytes so far are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Hello {
    /// The beginning of a ClientHello, or nothing yet.
    Incomplete,
    /// A ClientHello for this name.
    Name(HostName),
    /// A ClientHello that names no host.
    NoName,
    /// A ClientHello with an encrypted second one inside, whose name cannot be seen. A server could serve that one.
    Encrypted,
    /// The beginning of SSH, which carries no name.
    Ssh,
    /// Neither TLS nor SSH, or malformed in a way that two programs could read differently.
    Other,
}

/// Reads the bytes that a client sent first.
pub(crate) fn read(bytes: &[u8]) -> Hello {
    const SSH: &[u8] = b"SSH-2.0-";
    let seen = bytes.len().min(SSH.len());
    if bytes[..seen] == SSH[..seen] {
        return if seen == SSH.len() {
            Hello::Ssh
        } else {
            Hello::Incomplete
        };
    }
    let mut message = Vec::new();
    let mut rest = bytes;
    loop {
        // Record: type, version, length. A hello may be spread over several records.
        if rest.first().is_some_and(|kind| *kind != 22) || rest.get(1).is_some_and(|major| *major != 3) {
            return Hello::Other;
        }
        let [_, _, _, high, low, after @ ..] = rest else { break };
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        if length == 0 || length > 1 << 14 {
            return Hello::Other;
        }
        message.extend_from_slice(&after[..length.min(after.len())]);
        if message.first().is_some_and(|kind| *kind != 1) {
            return Hello::Other;
        }
        if let [_, a, b, c, body @ ..] = message.as_slice() {
            let length = u32::from_be_bytes([0, *a, *b, *c]) as usize;
            if length > HELLO_BYTES_MAX {
                return Hello::Other;
            }
            if body.len() >= length {
                // A second message behind the hello would be read by the server alone.
                return if body.len() == length {
                    client_hello(body).unwrap_or(Hello::Other)
                } else {
                    Hello::Other
                };
            }
        }
        match after.get(length..) {
            Some(next) => rest = next,
            None => break,
        }
    }
    if bytes.len() >= HELLO_BYTES_MAX {
        Hello::Other
    } else {
        Hello::Incomplete
    }
}

/// A reader of length-prefixed fields.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    /// A field behind its length, which takes this many bytes.
    fn field(&mut self, length_bytes: usize) -> Option<&'a [u8]> {
        let length = self
            .bytes(length_bytes)?
            .iter()
            .fold(0, |length, byte| (length << 8) | usize::from(*byte));
        self.bytes(length)
    }

    fn number(&mut self) -> Option<u16> {
        Some(u16::from_be_bytes(self.bytes(2)?.try_into().ok()?))
    }
}

/// Reads the body of a ClientHello (RFC 8446, 4.1.2).
fn client_hello(body: &[u8]) -> Option<Hello> {
    const SERVER_NAME: u16 = 0;
    const ENCRYPTED_CLIENT_HELLO: u16 = 0xfe0d;
    let mut hello = Fields(body);
    hello.bytes(2 + 32)?; // version, random
    hello.field(1)?; // session
    hello.field(2)?; // cipher suites
    hello.field(1)?; // compression
    if hello.0.is_empty() {
        return Some(Hello::NoName);
    }
    let mut extensions = Fields(hello.field(2)?);
    if !hello.0.is_empty() {
        return None;
    }
    let mut name = None;
    let mut encrypted = false;
    while !extensions.0.is_empty() {
        let kind = extensions.number()?;
        let content = extensions.field(2)?;
        match kind {
            SERVER_NAME if name.is_some() => return None,
            SERVER_NAME => name = Some(server_name(content)?),
            ENCRYPTED_CLIENT_HELLO => encrypted = true,
            _ => {}
        }
    }
    Some(match name {
        _ if encrypted => Hello::Encrypted,
        Some(name) => Hello::Name(name),
        None => Hello::NoName,
    })
}

/// Reads the extension that names the server (RFC 6066, 3): a list of exactly one host name.
fn server_name(content: &[u8]) -> Option<HostName> {
    let mut outer = Fields(content);
    let mut list = Fields(outer.field(2)?);
    let kind = list.bytes(1)?;
    let name = list.field(2)?;
    if kind != [0] || !list.0.is_empty() || !outer.0.is_empty() {
        return None;
    }
    let text = std::str::from_utf8(name).ok().filter(|text| text.is_ascii())?;
    HostName::parse(text).ok()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;

    /// A ClientHello as rustls sends it.
    fn hello(name: &str) -> Vec<u8> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(rustls::RootCertStore::empty())
            .with_no_client_auth();
        let name = rustls::pki_types::ServerName::try_from(name.to_owned()).unwrap();
        let mut connection = rustls::ClientConnection::new(Arc::new(config), name).unwrap();
        let mut bytes = Vec::new();
        connection.write_tls(&mut bytes).unwrap();
        bytes
    }

    /// A ClientHello of these extensions.
    fn with_extensions(extensions: &[(u16, Vec<u8>)]) -> Vec<u8> {
        let mut list = Vec::new();
        for (kind, content) in extensions {
            list.extend(kind.to_be_bytes());
            list.extend(u16::try_from(content.len()).unwrap().to_be_bytes());
            list.extend(content);
        }
        let mut body = vec![3, 3];
        body.extend([0; 32]);
        body.extend([0, 0, 2, 0x13, 1, 1, 0]);
        body.extend(u16::try_from(list.len()).unwrap().to_be_bytes());
        body.extend(list);
        let length = u32::try_from(body.len()).unwrap().to_be_bytes();
        let mut message = vec![1, length[1], length[2], length[3]];
        message.extend(body);
        in_records(&message, message.len())
    }

    fn in_records(message: &[u8], each: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        for part in message.chunks(each) {
            bytes.extend([22, 3, 1]);
            bytes.extend(u16::try_from(part.len()).unwrap().to_be_bytes());
            bytes.extend(part);
        }
        bytes
    }

    fn names(list: &[&[u8]]) -> Vec<u8> {
        let mut inner = Vec::new();
        for name in list {
            inner.push(0);
            inner.extend(u16::try_from(name.len()).unwrap().to_be_bytes());
            inner.extend(*name);
        }
        let mut content = u16::try_from(inner.len()).unwrap().to_be_bytes().to_vec();
        content.extend(inner);
        content
    }

    fn name(text: &str) -> Hello {
        Hello::Name(HostName::parse(text).unwrap())
    }

    #[test]
    fn the_name_is_read_however_the_bytes_are_split() {
        let bytes = hello("pypi.org");
        for end in 0..bytes.len() {
            assert_eq!(read(&bytes[..end]), Hello::Incomplete, "{end} bytes");
        }
        assert_eq!(read(&bytes), name("pypi.org"));
        for each in [1, 7, 100] {
            assert_eq!(
                read(&in_records(&bytes[5..], each)),
                name("pypi.org"),
                "records of {each} bytes"
            );
        }
    }

    #[test]
    fn two_names_or_an_odd_one_are_refused() {
        assert_eq!(read(&with_extensions(&[(0, names(&[b"Pypi.org."]))])), name("pypi.org"));
        assert_eq!(
            read(&with_extensions(&[(0, names(&[b"pypi.org", b"evil.org"]))])),
            Hello::Other
        );
        assert_eq!(
            read(&with_extensions(&[
                (0, names(&[b"pypi.org"])),
                (0, names(&[b"evil.org"]))
            ])),
            Hello::Other
        );
        for odd in [
            &b"pypi.org\0.evil.org"[..],
            b"127.0.0.1",
            b"0x7f.1",
            b"pypi.org..",
            "pyp\u{456}.org".as_bytes(),
            b"",
            b"\xff",
        ] {
            assert_eq!(read(&with_extensions(&[(0, names(&[odd]))])), Hello::Other, "{odd:?}");
        }
        assert_eq!(read(&with_extensions(&[])), Hello::NoName);
    }

    #[test]
    fn an_encrypted_hello_is_told_from_a_plain_one() {
        let extensions = [(0, names(&[b"pypi.org"])), (0xfe0d, vec![0; 40])];
        assert_eq!(read(&with_extensions(&extensions)), Hello::Encrypted);
    }

    #[test]
    fn what_is_not_tls_is_known_from_its_first_bytes() {
        assert_eq!(read(b"SSH-2.0-OpenSSH_9.9\r\n"), Hello::Ssh);
        assert_eq!(read(b"SSH-"), Hello::Incomplete);
        assert_eq!(read(b"GET / HTTP/1.1\r\n"), Hello::Other);
        assert_eq!(read(b"\x16\x02"), Hello::Other);
        assert_eq!(read(b"\x16\x03\x01\x00\x00"), Hello::Other);
        assert_eq!(read(b"\x16\x03\x01\x00\x05\x02"), Hello::Other, "a ServerHello");
        assert_eq!(read(b"\x16\x03\x01\x00\x05\x01\xff\xff\xff"), Hello::Other, "16 MB");
    }

    #[test]
    fn a_message_behind_the_hello_is_refused() {
        let mut message = hello("pypi.org")[5..].to_vec();
        message.extend([20, 0, 0, 0]);
        assert_eq!(read(&in_records(&message, message.len())), Hello::Other);
    }

    #[test]
    fn a_hello_that_never_ends_is_given_up() {
        let mut bytes = Vec::new();
        while bytes.len() < HELLO_BYTES_MAX {
            bytes.extend([22, 3, 1, 0, 1]);
            bytes.push(if bytes.len() == 5 { 1 } else { 0 });
        }
        assert_eq!(read(&bytes), Hello::Other);
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400), tls in any::<bool>()) {
            let mut bytes = bytes;
            if tls && bytes.len() > 9 {
                let length = bytes.len() - 5;
                bytes[..5].copy_from_slice(&[22, 3, 1, u8::try_from(length >> 8).unwrap(), u8::try_from(length & 255).unwrap()]);
                let length = length - 4;
                bytes[5..9].copy_from_slice(&[1, 0, u8::try_from(length >> 8).unwrap(), u8::try_from(length & 255).unwrap()]);
            }
            read(&bytes);
        }

        #[test]
        fn one_changed_byte_gives_no_other_name(at in 0_usize..400, to in any::<u8>()) {
            let mut bytes = hello("pypi.org");
            let at = at % bytes.len();
            bytes[at] = to;
            if let Hello::Name(found) = read(&bytes) {
                let changed = found.as_str().bytes().zip("pypi.org".bytes()).filter(|(a, b)| a != b).count();
                prop_assert!(changed <= 1 && found.as_str().len() <= 8);
            }
        }
    }
}
