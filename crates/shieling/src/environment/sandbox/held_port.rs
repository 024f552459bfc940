//! Explains why a server of the command's own cannot listen on all addresses at a port of an opened host.
//!
//! The gateway listens at this port on the address that the host has in the sandbox. The kernel lets no second socket
//! listen on `0.0.0.0` or `::` at a port at which one listens already, whatever the address of that one. On a single
//! address, such as `127.0.0.1`, it does. Looks at texts alone, as `no_network` does.

use crate::outcome::{Hint, HintKind, Outcome, end_of};

/// What programs say of an address that cannot be bound, in lower case.
const SAID: [&str; 3] = ["address already in use", "eaddrinuse", "address in use"];

/// Explains an output by the ports that the gateway holds; nothing if it says nothing of one of them.
pub(super) fn hint(held: &[u16], outcome: &Outcome) -> Option<Hint> {
    let port = [&outcome.stderr, &outcome.stdout]
        .iter()
        .find_map(|text| refused(text, held))?;
    Some(Hint {
        kind: HintKind::Network,
        path: None,
        because: format!(
            "an allowed host is reached by port {port}, which the sandbox holds for it, so that no server can have this \
             port on all addresses (`0.0.0.0`, `::`)"
        ),
        instead: format!("have the server listen on `127.0.0.1:{port}`, or on another port"),
    })
}

/// The port of a line that says that an address is in use. Many programs do not say which: then it is the only one that
/// is held, if the line has no other.
fn refused(text: &str, held: &[u16]) -> Option<u16> {
    let says_so = |line: &&str| {
        let lower = line.to_ascii_lowercase();
        SAID.iter().any(|said| lower.contains(said))
    };
    let line = end_of(text).lines().find(says_so)?;
    // A port follows a colon; `Errno 98` is none.
    let of_address = |part: &str| {
        part.split(|sign: char| !sign.is_ascii_digit())
            .next()?
            .parse::<u16>()
            .ok()
    };
    let is_held = |port: &u16| held.contains(port);
    let numbers = line.split(|sign: char| !sign.is_ascii_digit());
    let named = numbers.filter_map(|number| number.parse().ok()).find(is_held);
    match held {
        [only] if line.split(':').skip(1).find_map(of_address).is_none() => named.or(Some(*only)),
        _ => named,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Status;

    fn explained(held: &[u16], stderr: &str) -> Option<String> {
        let outcome = Outcome {
            exit_code: Some(1),
            stderr: stderr.to_owned(),
            ..Outcome::blank(Status::Exited, "/w", "sandbox")
        };
        hint(held, &outcome).map(|hint| hint.instead)
    }

    #[test]
    fn a_port_that_is_held_is_named() {
        for said in [
            "OSError: [Errno 98] Address already in use",
            "Error: listen EADDRINUSE: address already in use 0.0.0.0:8000",
            "listen tcp 0.0.0.0:8000: bind: address already in use",
        ] {
            let instead = explained(&[8000], said).expect(said);
            assert!(instead.contains("127.0.0.1:8000"), "{instead}");
            assert_eq!(explained(&[], said), None);
        }
        let node = "Error: listen EADDRINUSE: address already in use :::9000";
        assert!(explained(&[8000, 9000], node).is_some_and(|instead| instead.contains("127.0.0.1:9000")));
        assert_eq!(explained(&[8000, 9001], node), None, "it is another one's");
        assert_eq!(explained(&[8000], node), None, "it is another one's");
        let before = "serving 8000 files\nError: listen EADDRINUSE: address already in use :::9000";
        assert_eq!(explained(&[8000], before), None, "it is another one's");
        assert_eq!(explained(&[8000], "listening on 8000"), None);
    }
}
