//! Detects the encoding of a text file by its bytes alone, and finds its line ends.
//!
//! Changes no byte. An edit encodes the text to find and the replacement, and leaves the rest of the file as it is.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};
use memchr::{memchr, memchr_iter, memmem, memrchr};

use crate::environment::{Content, FileError};

/// The number of bytes that are examined to distinguish text from other formats.
pub(super) const HEAD: usize = 8 << 10;

/// The number of bytes from the first one outside of ASCII that are examined to detect a legacy encoding.
pub(super) const SAMPLE: usize = 64 << 10;

/// An encoding, and the length of its byte-order mark at the beginning of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Encoding {
    of: &'static encoding_rs::Encoding,
    mark: usize,
}

/// What the first bytes of a file reveal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Head {
    /// Text in this encoding.
    Known(Encoding),
    /// Text whose encoding depends on the first bytes outside of ASCII ([`Encoding::of_sample`]). Its line ends are
    /// those of UTF-8.
    Unlabelled,
    /// Not text.
    Binary,
}

impl Head {
    /// Examines the first [`HEAD`] bytes.
    pub(super) fn of(head: &[u8]) -> Self {
        let utf16 = |of, mark| Self::Known(Encoding { of, mark });
        if head.starts_with(b"\xff\xfe\0\0") {
            return Self::Binary;
        }
        if head.starts_with(b"\xff\xfe") {
            return utf16(UTF_16LE, 2);
        }
        if head.starts_with(b"\xfe\xff") {
            return utf16(UTF_16BE, 2);
        }
        if memchr(0, head).is_some() {
            return match unmarked_utf16(head) {
                Some(of) => utf16(of, 0),
                None => Self::Binary,
            };
        }
        if head.starts_with(b"\xef\xbb\xbf") {
            return Self::Known(Encoding { of: UTF_8, mark: 3 });
        }
        Self::Unlabelled
    }
}

/// Detects UTF-16 without a mark: more than half of the units have a zero byte, always on the same side, and the text
/// contains no control characters.
fn unmarked_utf16(head: &[u8]) -> Option<&'static encoding_rs::Encoding> {
    if head.len() % 2 == 1 {
        return None;
    }
    let zeros = |side: usize| head.iter().skip(side).step_by(2).filter(|byte| **byte == 0).count();
    let of = match (zeros(0), zeros(1)) {
        (0, low) if low > head.len() / 4 => UTF_16LE,
        (high, 0) if high > head.len() / 4 => UTF_16BE,
        (_, _) => return None,
    };
    let (text, broken) = of.decode_without_bom_handling(head);
    // The head may end within a surrogate pair.
    let text = if broken && head.len() == HEAD {
        text.trim_end_matches('\u{fffd}')
    } else {
        &text
    };
    let plain = |c: char| !c.is_control() || matches!(c, '\t' | '\n' | '\r' | '\x0b' | '\x0c' | '\x1b');
    text.chars().all(|c| plain(c) && c != '\u{fffd}').then_some(of)
}

/// Returns the position of the first byte outside of ASCII.
pub(super) fn first_strange(bytes: &[u8]) -> Option<usize> {
    if bytes.is_ascii() {
        return None;
    }
    bytes.iter().position(|byte| !byte.is_ascii())
}

/// Returns whether a text has too few bytes outside of ASCII, or too few kinds of them, to tell encodings apart, and
/// nothing that speaks against windows-1252: each of them stands alone, as accents and signs such as `£` do, and is a
/// character in it. A detector takes `10 µm` for Chinese, and `naïve` for Baltic text.
fn is_sparse(sample: &[u8]) -> bool {
    const FEW: usize = 8;
    const KINDS: usize = 4;
    let is_undefined = |byte: &u8| matches!(byte, 0x81 | 0x8d | 0x8f | 0x90 | 0x9d);
    // Two katakana of Shift_JIS or more, which are a byte of these and an ASCII one each; windows-1252 has rare marks there.
    let pairs = sample.windows(2).filter(|pair| !pair[0].is_ascii());
    let is_katakana = |pair: &[u8]| matches!(pair, [0x82 | 0x83, 0x40..=0x7e]);
    if pairs.clone().count() >= 2 && pairs.clone().all(is_katakana) {
        return false;
    }
    if sample.iter().any(is_undefined) || sample.windows(2).any(|pair| !pair[0].is_ascii() && !pair[1].is_ascii()) {
        return false;
    }
    let strange = || sample.iter().filter(|byte| !byte.is_ascii());
    strange().take(FEW).count() < FEW || strange().collect::<HashSet<_>>().len() < KINDS
}

/// Returns whether a text has enough different characters outside of ASCII for the guess of its encoding to be
/// reliable, and decodes without errors.
fn is_enough(text: &str) -> bool {
    const CHARACTERS: usize = 20;
    const KINDS: usize = 5;
    let strange = || text.chars().filter(|c| !c.is_ascii());
    strange().take(CHARACTERS).count() == CHARACTERS
        && strange().collect::<HashSet<char>>().len() >= KINDS
        && !text.contains(char::REPLACEMENT_CHARACTER)
}

impl Encoding {
    /// UTF-8 without a mark.
    pub(super) const UTF_8: Self = Self { of: UTF_8, mark: 0 };

    /// Detects the encoding of an unlabelled text by up to [`SAMPLE`] bytes from the first one outside of ASCII. The
    /// result is UTF-8 unless more of the sample is invalid UTF-8 than valid: a few broken bytes do not indicate
    /// another encoding. Any other result is a guess ([`Self::is_guess`]).
    pub(super) fn of_sample(sample: &[u8]) -> Self {
        if std::str::from_utf8(sample).is_ok() {
            return Self::UTF_8;
        }
        let (mut valid, mut broken) = (0_usize, 0_usize);
        let mut chunks = sample.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            valid += chunk.valid().chars().filter(|c| !c.is_ascii()).count();
            let cut = sample.len() == SAMPLE && chunks.peek().is_none();
            broken += usize::from(!chunk.invalid().is_empty() && !cut);
        }
        if broken <= valid {
            return Self::UTF_8;
        }
        if is_sparse(sample) {
            return Self {
                of: WINDOWS_1252,
                mark: 0,
            };
        }
        let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
        detector.feed(sample, true);
        Self {
            of: detector.guess(None, Utf8Detection::Deny),
            mark: 0,
        }
    }

    /// Returns whether the encoding was guessed by the frequency of its characters. No byte-order mark and no rule of
    /// validity names it.
    pub(super) fn is_guess(self) -> bool {
        !self.is_utf8() && !self.is_wide()
    }

    /// Returns the first character of `new` whose bytes are uncertain: the encoding is a guess from little text, and
    /// the content does not contain the character yet. A character that it contains is written with the bytes that
    /// were shown as it, which is right even if the guess is wrong.
    pub(super) fn uncertain(self, content: &[u8], new: &str) -> Option<char> {
        if !self.is_guess() || new.is_ascii() {
            return None;
        }
        let text = self.decode(content);
        if is_enough(&text) {
            return None;
        }
        let known: HashSet<char> = text.chars().filter(|c| !c.is_ascii()).collect();
        new.chars().find(|c| !c.is_ascii() && !known.contains(c))
    }

    /// Detects the encoding of a text of `size` bytes whose first byte outside of ASCII is at `at`.
    pub(super) fn of_text_from(content: &mut dyn Content, at: u64, size: u64) -> Result<Self, FileError> {
        let left = usize::try_from(size - at).unwrap_or(SAMPLE);
        let mut sample = vec![0; SAMPLE.min(left)];
        let filled = content.read_at(at, &mut sample)?;
        Ok(Self::of_sample(&sample[..filled]))
    }

    /// Detects the encoding of a whole content; `None` if it is not text.
    pub(super) fn of(content: &[u8]) -> Option<Self> {
        match Head::of(&content[..content.len().min(HEAD)]) {
            Head::Known(encoding) => Some(encoding),
            Head::Binary => None,
            Head::Unlabelled => {
                let Some(first) = first_strange(content) else {
                    return Some(Self::UTF_8);
                };
                Some(Self::of_sample(&content[first..content.len().min(first + SAMPLE)]))
            }
        }
    }

    /// Returns the name that read responses contain.
    pub(super) fn name(self) -> String {
        let name = self.of.name().to_ascii_lowercase();
        if self.is_utf8() && self.mark > 0 {
            format!("{name}-bom")
        } else {
            name
        }
    }

    /// Returns whether the text is UTF-8.
    pub(super) fn is_utf8(self) -> bool {
        self.of == UTF_8
    }

    /// Returns whether a unit has two bytes.
    pub(super) fn is_wide(self) -> bool {
        self.of == UTF_16LE || self.of == UTF_16BE
    }

    /// Returns the length of the byte-order mark at the beginning of the file.
    pub(super) fn mark(self) -> usize {
        self.mark
    }

    /// Decodes bytes. Invalid ones become U+FFFD.
    pub(super) fn decode(self, bytes: &[u8]) -> Cow<'_, str> {
        self.of.decode_without_bom_handling(bytes).0
    }

    /// Decodes as much text as fits into `room` bytes of UTF-8. Returns it with the number of bytes that were
    /// decoded, and whether any of them were invalid.
    pub(super) fn decode_within(self, bytes: &[u8], room: usize) -> (String, usize, bool) {
        let mut text = vec![0; room.min(bytes.len().saturating_mul(3))];
        let mut decoder = self.of.new_decoder_without_bom_handling();
        let (_, read, written, broken) = decoder.decode_to_utf8(bytes, &mut text, true);
        text.truncate(written);
        (String::from_utf8(text).expect("a decoder writes UTF-8"), read, broken)
    }

    /// Creates a decoder for a text in pieces.
    pub(super) fn decoder(self) -> encoding_rs::Decoder {
        self.of.new_decoder_without_bom_handling()
    }

    /// Encodes a text.
    ///
    /// # Errors
    /// The first character that this encoding cannot represent.
    pub(super) fn encode(self, text: &str) -> Result<Vec<u8>, char> {
        if self.is_utf8() {
            return Ok(text.as_bytes().to_vec());
        }
        if self.of == UTF_16LE {
            return Ok(text.encode_utf16().flat_map(u16::to_le_bytes).collect());
        }
        if self.of == UTF_16BE {
            return Ok(text.encode_utf16().flat_map(u16::to_be_bytes).collect());
        }
        let lacks = |c: &char| self.of.encode(c.encode_utf8(&mut [0; 4])).2;
        match self.of.encode(text) {
            (bytes, _, false) => Ok(bytes.into_owned()),
            (_, _, true) => Err(text.chars().find(lacks).unwrap_or(char::REPLACEMENT_CHARACTER)),
        }
    }

    /// Returns whether a range of bytes begins and ends at character boundaries.
    pub(super) fn is_aligned(self, content: &[u8], at: Range<usize>) -> bool {
        if self.is_wide() {
            return at.start.is_multiple_of(2);
        }
        if self.is_utf8() || self.of.is_single_byte() {
            return true;
        }
        // In these encodings the byte of a line end is never part of a longer character.
        let line = memrchr(b'\n', &content[..at.start]).map_or(0, |end| end + 1);
        let (before, found) = (&content[line..at.start], &content[at.clone()]);
        let apart = [self.decode(before), self.decode(found)].concat();
        self.decode(&content[line..at.end]) == apart
    }

    /// Returns the end of the line with the byte at `from`, including its line end; `None` at the end of the text.
    pub(super) fn line_end(self, bytes: &[u8], from: usize) -> Option<usize> {
        if !self.is_wide() {
            return memchr(b'\n', &bytes[from..]).map(|at| from + at + 1);
        }
        memchr_iter(b'\n', &bytes[from..]).find_map(|at| self.wide_end(bytes, from + at))
    }

    /// Returns the start of the line with the byte before `at`; `at` itself if a line starts there.
    pub(super) fn line_start(self, bytes: &[u8], at: usize) -> usize {
        if !self.is_wide() {
            return memrchr(b'\n', &bytes[..at]).map_or(0, |end| end + 1);
        }
        let found = memchr::memrchr_iter(b'\n', &bytes[..at]);
        found
            .filter_map(|end| self.wide_end(bytes, end))
            .find(|end| *end <= at)
            .unwrap_or(0)
    }

    /// Returns the number of line ends in these bytes.
    pub(super) fn count_ends(self, bytes: &[u8]) -> u64 {
        if !self.is_wide() {
            return memchr_iter(b'\n', bytes).count() as u64;
        }
        memchr_iter(b'\n', bytes)
            .filter(|at| self.wide_end(bytes, *at).is_some())
            .count() as u64
    }

    /// Returns the end of the unit with the byte `\n` at `at`, if the unit is a line end.
    fn wide_end(self, bytes: &[u8], at: usize) -> Option<usize> {
        let low_first = self.of == UTF_16LE;
        let even = at.is_multiple_of(2);
        if low_first && even && bytes.get(at + 1) == Some(&0) {
            Some(at + 2)
        } else if !low_first && !even && bytes[at - 1] == 0 {
            Some(at + 1)
        } else {
            None
        }
    }

    /// Returns the positions of `\r\n`.
    pub(super) fn carriage_returns(self, bytes: &[u8]) -> impl Iterator<Item = usize> {
        let sought: &[u8] = match (self.is_wide(), self.of == UTF_16LE) {
            (false, _) => b"\r\n",
            (true, true) => b"\r\0\n\0",
            (true, false) => b"\0\r\0\n",
        };
        memmem::find_iter(bytes, sought).filter(move |at| !self.is_wide() || at.is_multiple_of(2))
    }

    /// Returns the length of a carriage return in bytes.
    pub(super) fn width(self) -> usize {
        if self.is_wide() { 2 } else { 1 }
    }
}
