//! Recognises file formats by their first bytes. File names are not considered.

use memchr::memchr;

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
