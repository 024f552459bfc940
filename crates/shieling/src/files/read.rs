//! Reads lines of text, an image, or a whole file.
//!
//! A file is read in pieces of 1 MiB, up to the size that it had when it was opened. A file of at most 64 MiB is read
//! to its end, so that its lines can be counted and its state is a digest; a larger one only as far as the requested
//! lines.

use super::encoding::{Encoding, HEAD, Head, first_strange};
use super::hash::{DIGESTED, Digest};
use super::lines::{Kept, Lines, Range};
use super::resolve::CHUNK;
use super::{Context, FileContent, FileHash, FilesError, ReadRequest, ReadResponse, image};
use crate::environment::{Content, Links, Meta};
use crate::units::ByteCount;

/// The largest text in one response.
const MOST_TEXT: ByteCount = ByteCount::mib(16);

/// The part of a file in which requested lines are searched for.
const FARTHEST: ByteCount = ByteCount::mib(8 << 10);

/// Reads lines of text, an image, or a whole file.
///
/// # Errors
/// [`FilesError::Argument`], [`FilesError::BeyondEnd`], [`FilesError::TooLarge`] for lines beyond the first 8 GiB, a
/// refusal by the access check, and errors of the environment.
pub(crate) fn read(context: Context<'_>, request: &ReadRequest) -> Result<ReadResponse, FilesError> {
    let bad = |argument, why: String| Err(FilesError::Argument { argument, why });
    if request.limit == 0 {
        return bad(
            "limit",
            "0 lines would show nothing: leave it out, or ask for at least 1".to_owned(),
        );
    }
    if request.max_bytes.get() < 4 || request.max_bytes > MOST_TEXT {
        return bad("max_bytes", format!("it must be between 4 bytes and {MOST_TEXT}"));
    }
    let node = context.reach(&request.path, Links::Follow)?;
    let mut file = node.open()?;
    let meta = file.meta()?;
    let mut head = vec![0; HEAD];
    let filled = file.read_at(0, &mut head)?;
    head.truncate(filled);

    let mut open = Open {
        request,
        file: file.as_mut(),
        meta: &meta,
        first: None,
    };
    let (size, hash, seen) = match (image::mime(&head), Head::of(&head)) {
        _ if request.whole.is_some() => open.whole(node.path())?,
        (Some(mime), _) => open.image(mime)?,
        (None, Head::Binary) => {
            let (size, hash) = open.digest()?;
            (
                size,
                hash,
                FileContent::Binary {
                    format: image::format(&head).map(str::to_owned),
                    why: None,
                },
            )
        }
        (None, Head::Known(encoding)) => open.text(node.path(), Some(encoding))?,
        (None, Head::Unlabelled) => open.text(node.path(), None)?,
    };
    if let Some(content) = open.first {
        context.cache.insert(&hash, &content);
    }
    Ok(ReadResponse {
        path: node.path().to_path_buf(),
        size,
        hash,
        content: seen,
    })
}

/// An open file.
struct Open<'a> {
    request: &'a ReadRequest,
    file: &'a mut dyn Content,
    meta: &'a Meta,
    /// The whole content, if it is a single piece.
    first: Option<Vec<u8>>,
}

impl Open<'_> {
    /// Reads the file piece by piece, up to its size at the time it was opened, until `each` returns `false`. Returns
    /// the number of bytes read, and whether the end was reached.
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

    /// Returns the size and the state of a file whose content is not returned.
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

    fn whole(&mut self, path: &std::path::Path) -> Result<(u64, FileHash, FileContent), FilesError> {
        let most = self.request.whole.map_or(0, ByteCount::get).min(DIGESTED);
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
        Ok((size, hash, FileContent::Whole { bytes }))
    }

    fn image(&mut self, mime: &'static str) -> Result<(u64, FileHash, FileContent), FilesError> {
        let size = self.meta.size;
        let why = match self.request.max_image {
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
                FileContent::Binary {
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
        if let Some(why) = image::damage(mime, &bytes) {
            let content = FileContent::Binary {
                format: Some(mime.to_owned()),
                why: Some(why.to_owned()),
            };
            return Ok((size, hash, content));
        }
        Ok((
            size,
            hash,
            FileContent::Image {
                mime: mime.to_owned(),
                bytes,
            },
        ))
    }

    fn text(
        &mut self,
        path: &std::path::Path,
        known: Option<Encoding>,
    ) -> Result<(u64, FileHash, FileContent), FilesError> {
        let ends = known.unwrap_or(Encoding::UTF_8);
        // UTF-16 takes twice the bytes of the same text in UTF-8. What is too much is removed later.
        let room = self.request.max_bytes.as_usize() * ends.width() + 16;
        let range = Range {
            first: self.request.offset,
            limit: self.request.limit,
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
                strange = first_strange(piece).map(|at| passed + at as u64);
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
            && self.request.offset > 0
            && self.request.offset >= lines
        {
            return Err(FilesError::BeyondEnd {
                path: path.to_path_buf(),
                offset: self.request.offset,
                lines,
            });
        }
        let encoding = match (known, strange) {
            (Some(encoding), _) => encoding,
            (None, None) => Encoding::UTF_8,
            (None, Some(at)) => Encoding::of_text_from(&mut *self.file, at, self.meta.size)?,
        };
        let (size, hash) = if small {
            (size, digest.hash())
        } else {
            (self.meta.size, FileHash::of_stamp(self.meta.stamp))
        };
        Ok((size, hash, self.shown(encoding, &kept, total)))
    }

    /// Decodes as many of the lines as fit.
    fn shown(&self, encoding: Encoding, kept: &Kept, total: Option<u64>) -> FileContent {
        let most = self.request.max_bytes.as_usize();
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
        let next = self.request.offset + lines;
        let more = total.is_none_or(|total| next < total);
        let mut name = encoding.name();
        if lossy {
            name.push_str("-lossy");
        }
        FileContent::Text {
            text,
            offset: self.request.offset,
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
