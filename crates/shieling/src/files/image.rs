//! Recognises file formats by their first bytes. File names are not considered.

use memchr::{memchr, memmem};

/// Returns the MIME type, if the file is an image of a type that models accept.
pub(super) fn mime(head: &[u8]) -> Option<&'static str> {
    // A text may begin with `GIF89a` or `RIFF`, but does not continue with bytes that are not text.
    let no_text = || memchr(0, head).is_some() || std::str::from_utf8(head).is_err_and(|e| e.error_len().is_some());
    if head.starts_with(b"\x89PNG\r\n\x1a\n") {
        Some("image/png")
    } else if head.starts_with(b"\xff\xd8\xff") {
        Some("image/jpeg")
    } else if (head.starts_with(b"GIF87a") || head.starts_with(b"GIF89a")) && no_text() {
        Some("image/gif")
    } else if head.starts_with(b"RIFF") && head.get(8..15) == Some(b"WEBPVP8") && no_text() {
        Some("image/webp")
    } else {
        None
    }
}

/// Returns what is wrong with an image of a type that [`mime`] returned, as far as its structure shows: a client that
/// gets a broken image may fail as a whole. The pixels are not decoded.
pub(super) fn damage(mime: &str, bytes: &[u8]) -> Option<&'static str> {
    let is_whole = match mime {
        "image/png" => png(bytes),
        "image/jpeg" => jpeg(bytes),
        "image/gif" => gif(bytes),
        _ => webp(bytes),
    };
    match is_whole {
        Some(true) => None,
        Some(false) => Some("it is damaged: its header gives no size in pixels"),
        None => Some("it is damaged: it ends early, or is not built as such an image"),
    }
}

/// Returns two bytes as a number, the higher one first.
fn short(bytes: &[u8], at: usize) -> Option<usize> {
    Some(usize::from(*bytes.get(at)?) << 8 | usize::from(*bytes.get(at + 1)?))
}

/// Returns four bytes as a number, the highest one first.
fn long(bytes: &[u8], at: usize) -> Option<usize> {
    Some(short(bytes, at)? << 16 | short(bytes, at + 2)?)
}

/// Returns whether a PNG has a size; `None` if it does not consist of chunks up to its end, with pixels among them.
fn png(bytes: &[u8]) -> Option<bool> {
    let mut at = 8;
    let mut has_pixels = false;
    loop {
        let (length, kind) = (long(bytes, at)?, bytes.get(at + 4..at + 8)?);
        let is_first = at == 8;
        at += 12 + length;
        if at > bytes.len() || is_first != (kind == b"IHDR") || (is_first && length != 13) {
            return None;
        }
        match kind {
            b"IDAT" => has_pixels = true,
            b"IEND" => break,
            _ => {}
        }
    }
    has_pixels.then_some(long(bytes, 16)? > 0 && long(bytes, 20)? > 0)
}

/// Returns whether a JPEG has a size; `None` if it does not consist of segments up to its pixels, or has no end.
fn jpeg(bytes: &[u8]) -> Option<bool> {
    let mut at = 2;
    let mut has_size = None;
    loop {
        // A marker may be preceded by any number of fill bytes.
        while bytes.get(at..at + 2)? == b"\xff\xff" {
            at += 1;
        }
        let (0xff, marker) = (*bytes.get(at)?, *bytes.get(at + 1)?) else {
            return None;
        };
        let length = short(bytes, at + 2)?;
        match marker {
            0xc4 | 0xc8 | 0xcc => {}
            // The height may be 0: it is then given behind the pixels.
            0xc0..=0xcf => has_size = Some(short(bytes, at + 7)? > 0),
            0xda => break,
            _ => {}
        }
        at += 2 + length;
    }
    memmem::rfind(bytes.get(at..)?, b"\xff\xd9")?;
    has_size
}

/// Returns whether a GIF has a size; `None` if it ends before its first picture.
fn gif(bytes: &[u8]) -> Option<bool> {
    let size = bytes.get(6..10)?;
    bytes.get(13..24)?;
    Some(size[..2] != [0, 0] && size[2..] != [0, 0])
}

/// Returns whether a WebP has a size; `None` if it is shorter than it says. All forms of it have a size.
fn webp(bytes: &[u8]) -> Option<bool> {
    let length = u32::from_le_bytes(bytes.get(4..8)?.try_into().ok()?);
    (bytes.len() >= 30 && bytes.len() as u64 >= u64::from(length) + 8).then_some(true)
}

/// Returns the likely format of a file that is not text.
pub(super) fn format(head: &[u8]) -> Option<&'static str> {
    const MAGIC: &[(usize, &[u8], &str)] = &[
        (0, b"\x7fELF", "ELF program or library"),
        (0, b"MZ", "Windows program"),
        (0, b"\xfe\xed\xfa\xce", "Mach-O program"),
        (0, b"\xfe\xed\xfa\xcf", "Mach-O program"),
        (0, b"\xce\xfa\xed\xfe", "Mach-O program"),
        (0, b"\xcf\xfa\xed\xfe", "Mach-O program"),
        (0, b"\xca\xfe\xba\xbe", "Java class or universal Mach-O program"),
        (0, b"\0asm", "WebAssembly module"),
        (0, b"PK\x03\x04", "zip archive (also docx, xlsx, jar, whl)"),
        (0, b"PK\x05\x06", "empty zip archive"),
        (0, b"\x1f\x8b", "gzip"),
        (0, b"BZh", "bzip2"),
        (0, b"\xfd7zXZ\0", "xz"),
        (0, b"\x28\xb5\x2f\xfd", "zstd"),
        (0, b"7z\xbc\xaf\x27\x1c", "7-Zip archive"),
        (0, b"Rar!\x1a\x07", "RAR archive"),
        (257, b"ustar", "tar archive"),
        (0, b"!<arch>\n", "static library or Debian package"),
        (0, b"%PDF-", "PDF"),
        (0, b"SQLite format 3\0", "SQLite database"),
        (0, b"OggS", "Ogg audio or video"),
        (0, b"ID3", "MP3 audio"),
        (0, b"fLaC", "FLAC audio"),
        (4, b"ftyp", "MP4 or another ISO medium"),
        (0, b"\x1a\x45\xdf\xa3", "Matroska or WebM video"),
        (8, b"WAVE", "WAV audio"),
        (8, b"AVI ", "AVI video"),
        (0, b"BM", "BMP image"),
        (0, b"II*\0", "TIFF image"),
        (0, b"MM\0*", "TIFF image"),
        (0, b"\0\0\x01\0", "icon"),
        (0, b"wOFF", "WOFF font"),
        (0, b"wOF2", "WOFF2 font"),
        (0, b"\0\x01\0\0", "TrueType font"),
        (0, b"OTTO", "OpenType font"),
        (0, b"PAR1", "Parquet"),
        (0, b"\x93NUMPY", "NumPy array"),
        (0, b"\x89HDF\r\n\x1a\n", "HDF5"),
        (0, b"DIRC", "git index"),
        (0, b"PACK", "git pack"),
        (0, b"\xff\xfe\0\0", "UTF-32 text"),
        (0, b"\0\0\xfe\xff", "UTF-32 text"),
    ];
    let found = MAGIC
        .iter()
        .find(|(at, magic, _)| head.get(*at..).is_some_and(|rest| rest.starts_with(magic)));
    found.map(|(_, _, name)| *name)
}
