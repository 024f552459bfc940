//! What host and shell tell each other, over a socket that keeps messages apart.
//!
//! ```text
//! host                              shell
//! key                      ──────►
//! number, text; 1, 2       ──────►  runs it
//! number                   ──────►  given up: does not begin it, if it has not
//!                          ◄──────  variables, in pieces, if they changed
//!                          ◄──────  done: number, status, directory
//! …
//!                          ◄──────  leaving: directory            at its exit, or before an `exec`
//! ```

/// The name of the builtin.
pub const NAME: &str = "shieling";
/// The descriptor under which bash finds the builtin's file.
pub const LIBRARY: i32 = 3;
/// The signal that has the shell break off what it runs. Nothing else is known to use it, and a
/// command that ignores it is ended with its shell.
pub const BREAK_OFF: i32 = 59;

/// The length of the key, in bytes.
pub const KEY: usize = 16;
/// The longest text that travels in a message, in bytes; a longer one is a file in memory.
pub const LONGEST_TEXT: usize = 32 * 1024;
/// The longest piece of variables, in bytes.
pub const LONGEST_PIECE: usize = 32 * 1024;
/// The bytes before a text: its number, and whether it is in a file.
pub const ORDER: usize = 16;
/// The bytes before what a report carries.
pub const REPORT: usize = 40;

/// An order's beginning: the number of the command and, if its text is in the file that comes as the
/// third descriptor, that file's length without its closing NUL.
pub fn order(number: u64, in_file: u64) -> [u8; ORDER] {
    let mut bytes = [0; ORDER];
    put(&mut bytes, 0, &number.to_le_bytes());
    put(&mut bytes, 8, &in_file.to_le_bytes());
    bytes
}

/// Reads [`order`].
pub fn read_order(bytes: &[u8]) -> Option<(u64, u64)> {
    Some((number(bytes, 0)?, number(bytes, 8)?))
}

/// The length of the message that a command was given up.
pub const GIVEN_UP: usize = 8;

/// That the command of this number was given up. The signal [`BREAK_OFF`] that follows is lost if the command
/// has not begun; this is not, and it is there before the signal is.
pub fn given_up(number: u64) -> [u8; GIVEN_UP] {
    number.to_le_bytes()
}

/// Reads [`given_up`]; nothing if the message is something else.
pub fn read_given_up(bytes: &[u8]) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.try_into().ok()?))
}

/// What a report says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The first piece of the exported variables, `NAME=value` and NUL each.
    FirstVariables,
    /// A further piece of them.
    MoreVariables,
    /// The command is over. Carries the directory.
    Done,
    /// The shell leaves: it exits, or becomes another program. Carries the directory.
    Leaving,
}

/// Whether a command was broken off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BrokenOff {
    /// It came to its own end.
    No,
    /// It was told to end before it did.
    Yes,
    /// The DEBUG trap was removed: it was running when the command was told to end, or it lets no command
    /// run. It would have kept every further command from running, `trap - DEBUG` included.
    DebugTrapRemoved {
        /// Whether the command was told to end.
        told: bool,
    },
}

impl BrokenOff {
    /// Whether it was told to end.
    pub fn was_told(self) -> bool {
        match self {
            Self::No => false,
            Self::Yes => true,
            Self::DebugTrapRemoved { told } => told,
        }
    }
}

/// A report's beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Report {
    /// The key.
    pub key: [u8; KEY],
    /// What it says.
    pub kind: Kind,
    /// Whether the command was broken off.
    pub broken_off: BrokenOff,
    /// The command's number.
    pub number: u64,
    /// Its status.
    pub status: i32,
}

impl Report {
    /// As bytes.
    pub fn encode(&self) -> [u8; REPORT] {
        let mut bytes = [0; REPORT];
        put(&mut bytes, 0, &self.key);
        put(&mut bytes, 16, &self.number.to_le_bytes());
        put(&mut bytes, 24, &self.status.to_le_bytes());
        let kind = match self.kind {
            Kind::FirstVariables => 1,
            Kind::MoreVariables => 2,
            Kind::Done => 3,
            Kind::Leaving => 4,
        };
        let broken_off = match self.broken_off {
            BrokenOff::No => 0,
            BrokenOff::Yes => 1,
            BrokenOff::DebugTrapRemoved { told: false } => 2,
            BrokenOff::DebugTrapRemoved { told: true } => 3,
        };
        put(&mut bytes, 28, &[kind, broken_off]);
        bytes
    }

    /// From bytes, with what it carries; nothing if they are something else.
    pub fn decode(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let kind = match bytes.get(28)? {
            1 => Kind::FirstVariables,
            2 => Kind::MoreVariables,
            3 => Kind::Done,
            4 => Kind::Leaving,
            _ => return None,
        };
        let broken_off = match bytes.get(29)? {
            0 => BrokenOff::No,
            1 => BrokenOff::Yes,
            2 => BrokenOff::DebugTrapRemoved { told: false },
            3 => BrokenOff::DebugTrapRemoved { told: true },
            _ => return None,
        };
        let report = Self {
            key: bytes.get(..KEY)?.try_into().ok()?,
            kind,
            broken_off,
            number: number(bytes, 16)?,
            status: i32::from_le_bytes(bytes.get(24..28)?.try_into().ok()?),
        };
        Some((report, bytes.get(REPORT..)?))
    }
}

fn put(to: &mut [u8], at: usize, from: &[u8]) {
    if let Some(place) = to.get_mut(at..at + from.len()) {
        place.copy_from_slice(from);
    }
}

fn number(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_is_decoded_and_nothing_else() {
        for (kind, broken_off) in [
            (Kind::FirstVariables, BrokenOff::No),
            (Kind::MoreVariables, BrokenOff::Yes),
            (Kind::Done, BrokenOff::DebugTrapRemoved { told: true }),
            (Kind::Leaving, BrokenOff::DebugTrapRemoved { told: false }),
        ] {
            let report = Report {
                key: [7; KEY],
                kind,
                broken_off,
                number: u64::MAX - 1,
                status: -1,
            };
            let bytes = [&report.encode()[..], b"/work"].concat();
            assert_eq!(Report::decode(&bytes), Some((report, &b"/work"[..])));
        }
        assert_eq!(Report::decode(&[0; REPORT]), None);
        assert_eq!(Report::decode(b"short"), None);
        assert_eq!(read_order(&order(3, 9)), Some((3, 9)));
        assert_eq!(read_given_up(&given_up(3)), Some(3));
        assert_eq!(read_given_up(&order(3, 9)), None);
        assert_eq!(read_order(&given_up(3)), None);
    }
}
