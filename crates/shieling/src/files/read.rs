//! Reading: lines of a text, an image, or the truth about something else.
//!
//! A file is read from its beginning in pieces of 1 MiB, up to the size that it had when it was opened.
//! One of at most 64 MiB is read to its end, so that its lines are counted and its bytes digested;
//! a larger one as far as the lines go that were asked for.

use super::encoding::{Encoding, HEAD, Head, SAMPLE};
use super::hash::{DIGESTED, Digest};
use super::lines::{Kept, Lines, Range};
use super::reach::CHUNK;
use super::{Context, FileHash, FileRead, FilesError, ReadAsk, Seen, image};
use crate::environment::{Content, Links, Meta};
use crate::units::ByteCount;

/// The most text that is given at once.
const MOST_TEXT: ByteCount = ByteCount::mib(16);

/// How far a file is searched for the lines that were asked for.
const FARTHEST: ByteCount = ByteCount::mib(8 << 10);

/// Reads lines of a text, or an image.
///
/// # Errors
/// [`FilesError::Argument`], [`FilesError::BeyondEnd`], [`FilesError::TooLarge`] for lines beyond the
/// first 8 GiB, what the gate says, and what the files say.
pub(crate) fn read(context: Context<'_>, ask: &ReadAsk) -> Result<FileRead, FilesError> {
    let bad = |argument, why: String| Err(FilesError::Argument { argument, why });
    if ask.limit == 0 {
        return bad(
            "limit",
            "0 lines would show nothing: leave it out, or ask for at least 1".to_owned(),
        );
    }
    if ask.max_bytes.get() < 4 || ask.max_bytes > MOST_TEXT {
        return bad("max_bytes", format!("it must be between 4 bytes and {MOST_TEXT}"));
    }
    let node = context.reach(&ask.path, Links::Follow)?;
    let mut file = node.open()?;
    let meta = file.meta()?;
    let mut head = vec![0; HEAD];
    let filled = file.read_at(0, &mut head)?;
    head.truncate(filled);

    let mut open = Open {
        ask,
        file: file.as_mut(),
        meta: &meta,
        first: None,
    };
    let (size, hash, seen) = match (image::mime(&head), Head::of(&head)) {
        _ if ask.whole.is_some() => open.whole(node.path())?,
        (Some(mime), _) => open.image(mime)?,
        (None, Head::Binary) => {
            let (size, hash) = open.digest()?;
            (
                size,
                hash,
                Seen::Binary {
                    format: image::format(&head).map(str::to_owned),
                    why: None,
                },
            )
        }
        (None, Head::Known(encoding)) => open.text(node.path(), Some(encoding))?,
        (None, Head::Unlabelled) => open.text(node.path(), None)?,
    };
    if let Some(content) = open.first {
        context.remembered.keep(&hash, &content);
    }
    Ok(FileRead {
        path: node.path().to_path_buf(),
        size,
        hash,
        seen,
    })
}

/// A file that is being read.
struct Open<'a> {
    ask: &'a ReadAsk,
    file: &'a mut dyn Content,
    meta: &'a Meta,
    /// The whole content, if it is one piece.
    first: Option<Vec<u8>>,
}

impl Open<'_> {
    /// Passes the file by, piece by piece, up to the size that it had when it was opened, until `each` says
    /// no. Gives how far it came, and whether that was the end.
    fn pass(&mut self, mut each: impl FnMut(&[u8]) -> bool) -> Result<(u64, bool), FilesError> {
        let bound = self.meta.size;
        let mut piece = vec![0; CHUNK.min(usize::try_from(bound).unwrap_or(CHUNK))];
        let mut at = 0;
        while at < bound {
            let room = piece.len().min(usize::try_from(bound - at).unwrap_or(CHUNK));
            let filled = self.file.read_at(at, &mut piece[..room])?;
            if filled == 0 {
                return Ok((at, true));
            }
            at += filled as u64;
            if !each(&piece[..filled]) {
                return Ok((at, at == bound));
            }
        }
        if at <= CHUNK as u64 {
            piece.truncate(usize::try_from(at).unwrap_or(0));
            self.first = Some(piece);
        }
        Ok((at, true))
    }

    /// The size and the state of something that is not shown.
    fn digest(&mut self) -> Result<(u64, FileHash), FilesError> {
        if self.meta.size > DIGESTED {
            return Ok((self.meta.size, FileHash::of_stamp(self.meta.stamp)));
        }
        let mut digest = Digest::new();
        let (size, _) = self.pass(|piece| {
            digest.feed(piece);
            true
        })?;
        Ok((size, digest.hash()))
    }

    fn whole(&mut self, path: &std::path::Path) -> Result<(u64, FileHash, Seen), FilesError> {
        let most = self.ask.whole.map_or(0, ByteCount::get).min(DIGESTED);
        if self.meta.size > most {
            return Err(FilesError::TooLarge {
                path: path.to_path_buf(),
                size: self.meta.size,
                limit: most,
                done: "read",
            });
        }
        let mut bytes = Vec::new();
        let (size, _) = self.pass(|piece| {
            bytes.extend_from_slice(piece);
            true
        })?;
        let hash = FileHash::of(&bytes);
        Ok((size, hash, Seen::Whole { bytes }))
    }

    fn image(&mut self, mime: &'static str) -> Result<(u64, FileHash, Seen), FilesError> {
        let size = self.meta.size;
        let why = match self.ask.max_image {
            None => Some("images are not shown here".to_owned()),
            Some(most) if size > most.get() => Some(format!(
                "it has {}, and images of at most {most} are shown",
                ByteCount::bytes(size)
            )),
            Some(_) => None,
        };
        if why.is_some() {
            let (size, hash) = self.digest()?;
            return Ok((
                size,
                hash,
                Seen::Binary {
                    format: Some(mime.to_owned()),
                    why,
                },
            ));
        }
        let mut bytes = Vec::new();
        let (size, _) = self.pass(|piece| {
            bytes.extend_from_slice(piece);
            true
        })?;
        let hash = if size > DIGESTED {
            FileHash::of_stamp(self.meta.stamp)
        } else {
            FileHash::of(&bytes)
        };
        Ok((
            size,
            hash,
            Seen::Image {
                mime: mime.to_owned(),
                bytes,
            },
        ))
    }

    fn text(&mut self, path: &std::path::Path, known: Option<Encoding>) -> Result<(u64, FileHash, Seen), FilesError> {
        let ends = known.unwrap_or(Encoding::UTF_8);
        // Twice as many bytes of UTF-16 are as many of UTF-8. What is too much is left out later.
        let room = self.ask.max_bytes.as_usize() * ends.width() + 16;
        let range = Range {
            first: self.ask.offset,
            limit: self.ask.limit,
            room,
        };
        let mut lines = Lines::new(ends, range);
        let mut digest = Digest::new();
        let small = self.meta.size <= DIGESTED;
        let (mut passed, mut strange, mut too_far) = (0_u64, None, false);
        let (size, ended) = self.pass(|piece| {
            if small {
                digest.feed(piece);
            }
            if strange.is_none() {
                strange = piece
                    .iter()
                    .position(|byte| !byte.is_ascii())
                    .map(|at| passed + at as u64);
            }
            lines.feed(if passed == 0 {
                &piece[ends.mark().min(piece.len())..]
            } else {
                piece
            });
            passed += piece.len() as u64;
            too_far = passed > FARTHEST.get() && !lines.is_satisfied();
            small || !(too_far || lines.is_satisfied())
        })?;
        if too_far && !ended {
            return Err(FilesError::TooLarge {
                path: path.to_path_buf(),
                size: self.meta.size,
                limit: FARTHEST.get(),
                done: "searched for a line",
            });
        }
        let kept = lines.finish();
        let total = ended.then_some(kept.lines);
        if let Some(lines) = total
            && self.ask.offset > 0
            && self.ask.offset >= lines
        {
            return Err(FilesError::BeyondEnd {
                path: path.to_path_buf(),
                offset: self.ask.offset,
                lines,
            });
        }
        let encoding = match (known, strange) {
            (Some(encoding), _) => encoding,
            (None, None) => Encoding::UTF_8,
            (None, Some(at)) => self.sample(at)?,
        };
        let (size, hash) = if small {
            (size, digest.hash())
        } else {
            (self.meta.size, FileHash::of_stamp(self.meta.stamp))
        };
        Ok((size, hash, self.shown(encoding, &kept, total)))
    }

    /// The encoding of a text whose first byte that is not ASCII is at `at`.
    fn sample(&mut self, at: u64) -> Result<Encoding, FilesError> {
        let left = usize::try_from(self.meta.size - at).unwrap_or(SAMPLE);
        let mut sample = vec![0; SAMPLE.min(left)];
        let filled = self.file.read_at(at, &mut sample)?;
        Ok(Encoding::of_sample(&sample[..filled]))
    }

    /// The lines as text, as many as have room.
    fn shown(&self, encoding: Encoding, kept: &Kept, total: Option<u64>) -> Seen {
        let most = self.ask.max_bytes.as_usize();
        let mut text = String::new();
        let (mut lines, mut cut_bytes, mut lossy, mut start) = (0, 0, false, 0);
        for end in &kept.ends {
            let line = &kept.bytes[start..*end];
            let (more, read, broken) = encoding.decode_within(line, most - text.len());
            let whole = read == line.len() && kept.cut == 0;
            if !whole && lines > 0 {
                break;
            }
            cut_bytes = (line.len() - read) as u64 + kept.cut;
            text.push_str(&more);
            lossy |= broken;
            lines += 1;
            start = *end;
            if !whole {
                break;
            }
        }
        let next = self.ask.offset + lines;
        let more = total.is_none_or(|total| next < total);
        let mut name = encoding.name();
        if lossy {
            name.push_str("-lossy");
        }
        Seen::Text {
            text,
            offset: self.ask.offset,
            lines,
            total_lines: total,
            next_offset: more.then_some(next),
            encoding: name,
            cut_bytes,
        }
    }
}

#[cfg(test)]
mod tests;
