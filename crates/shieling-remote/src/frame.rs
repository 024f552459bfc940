//! What goes over the stream: a preamble once, then frames. See `docs/protocol.md`.
//!
//! ```text
//! length: u32 │ kind: u8 │ call: u32 │ body: `length` bytes        (little endian)
//! ```

/// The first bytes of each side.
const MAGIC: [u8; 8] = *b"shieling";
/// The version of everything that follows the preamble. It counts up with each change of a message.
pub(crate) const VERSION: u32 = 4;
/// How long the preamble is: the magic bytes and the version.
pub(crate) const PREAMBLE: usize = 12;
/// How long the header of a frame is.
pub(crate) const HEADER: usize = 9;
/// The most bytes of a stream in one frame.
pub(crate) const PIECE: usize = 64 * 1024;
/// How much of an input may be on its way.
pub(crate) const INPUT: usize = 256 * 1024;
/// The longest message: a command text of 1 MiB with all of its variables fits.
pub(crate) const LONGEST: usize = 4 * 1024 * 1024;

const BEAT: u8 = 0x00;
const MESSAGE: u8 = 0x01;
const DATA: u8 = 0x10;
const END: u8 = 0x20;
const CREDIT: u8 = 0x30;
const CLOSED: u8 = 0x40;

/// One of the streams of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Channel {
    /// What is written to a program, or typed.
    Input = 0,
    /// What it prints, also on a terminal.
    Output = 1,
    /// What it prints as errors.
    Errors = 2,
}

/// What a frame is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A sign of life.
    Beat,
    /// A message.
    Message,
    /// Bytes of a stream.
    Data(Channel),
    /// The end of a stream.
    End(Channel),
    /// So many bytes more may be sent of a stream.
    Credit(Channel),
    /// Nobody reads a stream any more.
    Closed(Channel),
}

impl Kind {
    fn code(self) -> u8 {
        match self {
            Self::Beat => BEAT,
            Self::Message => MESSAGE,
            Self::Data(channel) => DATA | channel as u8,
            Self::End(channel) => END | channel as u8,
            Self::Credit(channel) => CREDIT | channel as u8,
            Self::Closed(channel) => CLOSED | channel as u8,
        }
    }

    fn of(code: u8) -> Option<Self> {
        let channel = match code & 0x0f {
            0 => Channel::Input,
            1 => Channel::Output,
            2 => Channel::Errors,
            _ => return None,
        };
        match code & 0xf0 {
            DATA => Some(Self::Data(channel)),
            END => Some(Self::End(channel)),
            CREDIT => Some(Self::Credit(channel)),
            CLOSED => Some(Self::Closed(channel)),
            _ if code == BEAT => Some(Self::Beat),
            _ if code == MESSAGE => Some(Self::Message),
            _ => None,
        }
    }

    /// The bodies that it may have, by their lengths.
    fn lengths(self) -> std::ops::RangeInclusive<usize> {
        match self {
            Self::Beat | Self::End(_) | Self::Closed(_) => 0..=0,
            Self::Message => 1..=LONGEST,
            Self::Data(_) => 1..=PIECE,
            Self::Credit(_) => 4..=4,
        }
    }
}

/// The header of a frame that has arrived, with a length that its kind may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) kind: Kind,
    pub(crate) call: u32,
    pub(crate) length: usize,
}

impl Header {
    /// Reads a header, or says what is wrong with it.
    pub(crate) fn read(bytes: [u8; HEADER]) -> Result<Self, String> {
        let [a, b, c, d, code, e, f, g, h] = bytes;
        let length = u32::from_le_bytes([a, b, c, d]) as usize;
        let kind = Kind::of(code).ok_or_else(|| format!("a frame of the unknown kind {code:#04x}"))?;
        if !kind.lengths().contains(&length) {
            return Err(format!("a frame of kind {code:#04x} with {length} bytes"));
        }
        Ok(Self {
            kind,
            call: u32::from_le_bytes([e, f, g, h]),
            length,
        })
    }
}

/// A frame that has arrived.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) kind: Kind,
    pub(crate) call: u32,
    pub(crate) body: Vec<u8>,
}

/// The header's place in a frame whose body is yet to come.
pub(crate) fn room(body: usize) -> Vec<u8> {
    let mut frame = Vec::with_capacity(HEADER + body);
    frame.resize(HEADER, 0);
    frame
}

/// A frame whose body stands behind the room for its header.
pub(crate) fn seal(mut frame: Vec<u8>, kind: Kind, call: u32) -> Vec<u8> {
    let length = u32::try_from(frame.len().saturating_sub(HEADER)).unwrap_or(u32::MAX);
    if let Some(header) = frame.get_mut(..HEADER) {
        header[..4].copy_from_slice(&length.to_le_bytes());
        header[4] = kind.code();
        header[5..].copy_from_slice(&call.to_le_bytes());
    }
    frame
}

/// A frame with this body.
pub(crate) fn frame(kind: Kind, call: u32, body: &[u8]) -> Vec<u8> {
    let mut frame = room(body.len());
    frame.extend_from_slice(body);
    seal(frame, kind, call)
}

/// What each side says first.
pub(crate) fn preamble() -> [u8; PREAMBLE] {
    let mut bytes = [0; PREAMBLE];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..].copy_from_slice(&VERSION.to_le_bytes());
    bytes
}

/// The version of the other side, or nothing if it does not speak this protocol at all.
pub(crate) fn version(preamble: &[u8; PREAMBLE]) -> Option<u32> {
    let [magic @ .., a, b, c, d] = preamble;
    (*magic == MAGIC).then(|| u32::from_le_bytes([*a, *b, *c, *d]))
}
