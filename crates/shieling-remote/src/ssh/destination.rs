//! Where to: `ssh://[USER@]HOST[:PORT][/DIR]`.

use std::fmt;

/// A machine, as its URL says it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Destination {
    user: Option<String>,
    host: String,
    port: Option<u16>,
    directory: Option<String>,
}

/// A text that is no destination.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is no `ssh://[USER@]HOST[:PORT][/DIR]`: {why}", .text.escape_debug())]
pub struct DestinationError {
    /// The text.
    pub text: String,
    /// What is wrong with it.
    pub why: &'static str,
}

impl Destination {
    /// The user there; the client's own choice if there is none.
    pub fn user(&self) -> Option<&str> {
        self.user.as_deref()
    }

    /// The host, or its name in the user's settings.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port; the client's own choice if there is none.
    pub fn port(&self) -> Option<u16> {
        self.port
    }

    /// The directory there: absolute, or relative to the home.
    pub fn directory(&self) -> Option<&str> {
        self.directory.as_deref()
    }

    /// The command that a person tries it with: `ssh`, the port if one is named, the user and the host.
    #[must_use]
    pub fn command(&self) -> String {
        let mut command = "ssh ".to_owned();
        if let Some(port) = self.port {
            command.push_str(&format!("-p {port} "));
        }
        if let Some(user) = &self.user {
            command.push_str(&format!("{user}@"));
        }
        command.push_str(&self.host);
        command
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ssh://")?;
        if let Some(user) = &self.user {
            write!(f, "{user}@")?;
        }
        match self.host.contains(':') {
            true => write!(f, "[{}]", self.host)?,
            false => f.write_str(&self.host)?,
        }
        if let Some(port) = self.port {
            write!(f, ":{port}")?;
        }
        match &self.directory {
            Some(directory) if directory.is_empty() => f.write_str("/~"),
            Some(directory) if directory.starts_with('/') => f.write_str(directory),
            Some(directory) => write!(f, "/~/{directory}"),
            None => Ok(()),
        }
    }
}

impl std::str::FromStr for Destination {
    type Err = DestinationError;

    /// `%` and two hexadecimal digits stand for a byte, in the user and in the directory. `/~/DIR` is a directory in
    /// the home.
    fn from_str(text: &str) -> Result<Self, DestinationError> {
        let wrong = |why| DestinationError {
            text: text.to_owned(),
            why,
        };
        let rest = text
            .strip_prefix("ssh://")
            .ok_or_else(|| wrong("it does not begin so"))?;
        let (place, directory) = match rest.find('/') {
            Some(at) => rest.split_at(at),
            None => (rest, ""),
        };
        let (user, place) = match place.rsplit_once('@') {
            Some((user, place)) => (Some(user), place),
            None => (None, place),
        };
        let user = match user {
            Some(user) => Some(decoded(user).ok_or_else(|| wrong("its user cannot be read"))?),
            None => None,
        };
        let good = |word: &str| {
            !word.is_empty()
                && !word.starts_with('-')
                && !word.contains(|sign: char| sign.is_whitespace() || sign.is_control())
        };
        if user.as_deref().is_some_and(|user| !good(user) || user.contains(':')) {
            return Err(wrong("this can be no user (a password cannot be given)"));
        }
        let (host, port) = match place.strip_prefix('[') {
            Some(place) => {
                let (host, port) = place.split_once(']').ok_or_else(|| wrong("its address has no end"))?;
                match port.strip_prefix(':') {
                    Some(port) => (host, Some(port)),
                    None if port.is_empty() => (host, None),
                    None => return Err(wrong("something stands behind its address")),
                }
            }
            None => match place.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (place, None),
            },
        };
        if !good(host)
            || host.contains([
                '@', '[', ']', '?', '#', '%', '\\', '"', '\'', '`', '$', ';', '&', '|', '<', '>', '(', ')',
            ])
        {
            return Err(wrong("this can be no host"));
        }
        let port = match port {
            Some(port) => match port.parse::<u16>() {
                Ok(number) if number > 0 && port.bytes().all(|byte| byte.is_ascii_digit()) => Some(number),
                _ => return Err(wrong("this can be no port")),
            },
            None => None,
        };
        let directory = match directory {
            "" => None,
            directory => {
                let directory = decoded(directory).ok_or_else(|| wrong("its directory cannot be read"))?;
                if directory.contains('\0') {
                    return Err(wrong("its directory holds a NUL byte"));
                }
                Some(match directory.strip_prefix("/~") {
                    Some("" | "/") => String::new(),
                    Some(rest) if rest.starts_with('/') => rest.trim_start_matches('/').to_owned(),
                    _ => directory,
                })
            }
        };
        Ok(Self {
            user,
            host: host.to_owned(),
            port,
            directory,
        })
    }
}

/// A text whose bytes may be written as `%` and two hexadecimal digits.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        rest = behind;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let (digits, behind) = behind.split_at_checked(2)?;
        let digits = std::str::from_utf8(digits)
            .ok()
            .filter(|digits| !digits.starts_with('+'))?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = behind;
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_destination_is_read_and_shown_again() {
        for (text, user, host, port, directory) in [
            ("ssh://box", None, "box", None, None),
            (
                "ssh://me@box:2222/srv/app",
                Some("me"),
                "box",
                Some(2222),
                Some("/srv/app"),
            ),
            ("ssh://box/~/app", None, "box", None, Some("app")),
            ("ssh://box/~", None, "box", None, Some("")),
            ("ssh://[::1]:22/", None, "::1", Some(22), Some("/")),
            ("ssh://me@10.0.0.1", Some("me"), "10.0.0.1", None, None),
        ] {
            let read: Destination = text.parse().expect(text);
            assert_eq!(
                (read.user(), read.host(), read.port(), read.directory()),
                (user, host, port, directory),
                "{text}"
            );
            assert_eq!(read.to_string(), text);
        }
        let spaced: Destination = "ssh://box/a%20b%2f".parse().expect("good");
        assert_eq!(spaced.directory(), Some("/a b/"));
    }

    #[test]
    fn what_the_client_would_read_as_an_option_or_a_shell_as_more_is_no_destination() {
        for text in [
            "box",
            "ssh://",
            "ssh://-oProxyCommand=id",
            "ssh://-l@box",
            "ssh://a b",
            "ssh://me:secret@box",
            "ssh://box:0",
            "ssh://box:+22",
            "ssh://box:65536",
            "ssh://box:",
            "ssh://[::1",
            "ssh://[::1]x",
            "ssh://box$(id)",
            "ssh://box;id",
            "ssh://box/%0",
            "ssh://box/%00",
            "ssh://box/%ff",
            "ssh://@box",
            "http://box",
        ] {
            assert!(text.parse::<Destination>().is_err(), "{text}");
        }
    }
}
