//! Stores the whole output of a command in files, up to a bound. It is read by an id that cannot be guessed. Output
//! that fits into memory is not written.
//!
//! There is one file per stream, `<id>.stdout` and `<id>.stderr`, in a directory of the caller's choice that is
//! private to its owner. The oldest files are removed when all together exceed their bound.
#![allow(
    clippy::disallowed_methods,
    reason = "this is the one place where output touches files"
)]

use std::fmt;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::{Stream, grouped};
use crate::units::ByteCount;

const STREAMS: [Stream; 2] = [Stream::Stdout, Stream::Stderr];

/// Where whole outputs are stored, and how much space they may take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpillTo {
    /// The directory. It is created with mode 0700 if it does not exist.
    pub directory: PathBuf,
    /// The largest output of one command, both streams together (default: 64 MiB).
    pub per_command: ByteCount,
    /// The largest size of all files in the directory, beyond which the oldest are removed (default: 512 MiB).
    pub in_all: ByteCount,
}

impl SpillTo {
    /// Stores outputs in this directory, with the default bounds.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self {
            directory: directory.into(),
            per_command: ByteCount::mib(64),
            in_all: ByteCount::mib(512),
        }
    }
}

/// The id of a command's whole output: 80 random bits in hexadecimal.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct OutputId(String);

impl OutputId {
    const DIGITS: usize = 20;

    fn random() -> io::Result<Self> {
        let mut bytes = [0_u8; Self::DIGITS / 2];
        File::open("/dev/urandom")?.read_exact(&mut bytes)?;
        Ok(Self(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    fn file(&self, directory: &Path, stream: Stream) -> PathBuf {
        directory.join(format!("{}.{}", self.0, extension(stream)))
    }
}

impl fmt::Display for OutputId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for OutputId {
    type Err = ReadSpillError;

    fn from_str(text: &str) -> Result<Self, ReadSpillError> {
        let valid = text.len() == Self::DIGITS && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        if valid {
            Ok(Self(text.to_owned()))
        } else {
            Err(ReadSpillError::NotAnId)
        }
    }
}

fn extension(stream: Stream) -> &'static str {
    match stream {
        Stream::Stdout => "stdout",
        Stream::Stderr => "stderr",
    }
}

/// The location of a command's whole output.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Spilled {
    /// The id of the output, if it could be stored.
    pub id: Option<OutputId>,
    /// Why it was not stored, or ends before the bound, such as a full disk.
    pub error: Option<String>,
}

/// Writes the output of one command.
#[derive(Debug)]
pub(super) struct Spiller {
    id: Option<OutputId>,
    files: Option<[File; 2]>,
    written: [u64; 2],
    /// Whether a stream's file was cut off. It is then complete.
    cut: [bool; 2],
    left: u64,
    error: Option<io::Error>,
}

impl Spiller {
    /// Creates the files. A failure is reported at the end, since it must not fail the command.
    pub(super) fn create(to: &SpillTo) -> Self {
        let mut spiller = Self {
            id: None,
            files: None,
            written: [0; 2],
            cut: [false; 2],
            left: to.per_command.get(),
            error: None,
        };
        match create(to) {
            Ok((id, files)) => {
                spiller.id = Some(id);
                spiller.files = Some(files);
            }
            Err(error) => spiller.error = Some(error),
        }
        spiller
    }

    /// Returns the id of the output, if the files could be created.
    pub(super) fn id(&self) -> Option<&OutputId> {
        self.id.as_ref()
    }

    pub(super) fn write(&mut self, stream: Stream, bytes: &[u8]) {
        let at = stream as usize;
        let Some(files) = &mut self.files else { return };
        if self.cut[at] || bytes.is_empty() {
            return;
        }
        let count = bytes.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
        match files[at].write_all(&bytes[..count]) {
            Ok(()) => {
                self.written[at] += count as u64;
                self.left -= count as u64;
                self.cut[at] = count < bytes.len();
            }
            Err(error) => {
                self.cut[at] = true;
                self.error = Some(error);
            }
        }
    }

    /// Writes into each file that was cut off where it ends and how much output there was.
    pub(super) fn finish(mut self, totals: [u64; 2]) -> Spilled {
        if let Some(files) = &mut self.files {
            for stream in STREAMS {
                let at = stream as usize;
                if self.cut[at] {
                    let (kept, total) = (grouped(self.written[at]), grouped(totals[at]));
                    let line = format!("\n[... kept up to here: {kept} of {total} bytes ...]\n");
                    if let Err(error) = files[at].write_all(line.as_bytes()) {
                        self.error.get_or_insert(error);
                    }
                }
            }
        }
        Spilled {
            id: self.id,
            error: self.error.map(|error| error.to_string()),
        }
    }
}

fn create(to: &SpillTo) -> io::Result<(OutputId, [File; 2])> {
    private_directory(&to.directory, "whole outputs")?;
    rotate(&to.directory, to.in_all.get().saturating_sub(to.per_command.get()));
    let id = OutputId::random()?;
    let open = |stream| {
        OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(id.file(&to.directory, stream))
    };
    let files = [open(Stream::Stdout)?, open(Stream::Stderr)?];
    Ok((id, files))
}

/// Creates a directory that is private to its owner, or checks that it is. `what` names its purpose in errors.
pub(crate) fn private_directory(directory: &Path, what: &str) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    let found = fs::symlink_metadata(directory)?;
    if !found.is_dir() || found.uid() != rustix::process::geteuid().as_raw() {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!("the directory for {what} belongs to somebody else, or is a link"),
        ));
    }
    if found.mode() & 0o077 != 0 {
        fs::set_permissions(directory, fs::Permissions::from_mode(0o700))?;
    }
    Ok(())
}

/// Removes the oldest outputs until the rest takes at most `bound` bytes. Files that cannot be removed stay; the next
/// call tries again.
fn rotate(directory: &Path, bound: u64) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    let mut found: Vec<_> = entries
        .flatten()
        .filter(|entry| is_output(&entry.file_name().to_string_lossy()))
        .filter_map(|entry| Some((entry.metadata().ok()?, entry.path())))
        .map(|(metadata, path)| (metadata.modified().ok(), metadata.len(), path))
        .collect();
    let mut total: u64 = found.iter().map(|(_, length, _)| length).sum();
    found.sort();
    for (_, length, path) in found {
        if total <= bound {
            break;
        }
        if fs::remove_file(path).is_ok() {
            total -= length;
        }
    }
}

/// Returns whether a file name is that of an output.
fn is_output(name: &str) -> bool {
    name.split_once('.').is_some_and(|(id, end)| {
        id.parse::<OutputId>().is_ok() && STREAMS.iter().any(|&stream| extension(stream) == end)
    })
}

/// A whole output cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadSpillError {
    /// The id is malformed.
    #[error("that is not the id of an output: 20 hexadecimal digits")]
    NotAnId,
    /// There is no output with this id, or it was removed.
    #[error("there is no output {0}; older ones are removed when newer ones need their place")]
    Unknown(OutputId),
    /// The output exists but cannot be read.
    #[error("cannot read output {id}")]
    Unreadable {
        /// The id.
        id: OutputId,
        /// The error of the system.
        source: io::Error,
    },
}

/// A part of a whole output.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Chunk {
    /// The bytes from the cursor on.
    pub bytes: Vec<u8>,
    /// The cursor of the next part, in bytes from the beginning.
    pub next_cursor: u64,
    /// Whether this is the last part; so far, if the command still runs.
    pub end: bool,
}

/// Reads at most `max` bytes (at most 4 MiB) of a stream's whole output from `cursor` on.
///
/// # Errors
/// If the id is malformed, the output does not exist, or the system reports an error.
pub fn read_spilled(
    directory: &Path,
    id: &str,
    stream: Stream,
    cursor: u64,
    max: ByteCount,
) -> Result<Chunk, ReadSpillError> {
    let id: OutputId = id.parse()?;
    let read = || -> io::Result<Chunk> {
        // Does not follow a link, though no other user should be able to place one.
        let no_follow = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
        let mut file = OpenOptions::new()
            .read(true)
            .custom_flags(no_follow)
            .open(id.file(directory, stream))?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(cursor.min(length)))?;
        let mut bytes = Vec::new();
        file.take(max.get().min(4 << 20)).read_to_end(&mut bytes)?;
        let next_cursor = cursor.min(length) + bytes.len() as u64;
        Ok(Chunk {
            bytes,
            next_cursor,
            end: next_cursor >= length,
        })
    };
    read().map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => ReadSpillError::Unknown(id),
        _ => ReadSpillError::Unreadable { id, source },
    })
}

#[cfg(test)]
mod tests {
    use super::super::Capture;
    use super::*;

    fn place() -> (tempfile::TempDir, SpillTo) {
        let outside = tempfile::tempdir().expect("a temporary directory can be made");
        let to = SpillTo::new(outside.path().join("outputs"));
        (outside, to)
    }

    fn all(to: &SpillTo, id: &OutputId, stream: Stream) -> Vec<u8> {
        let (mut bytes, mut cursor) = (Vec::new(), 0);
        loop {
            let chunk =
                read_spilled(&to.directory, &id.to_string(), stream, cursor, ByteCount::bytes(7)).expect("it is there");
            bytes.extend(chunk.bytes);
            cursor = chunk.next_cursor;
            if chunk.end {
                return bytes;
            }
        }
    }

    #[test]
    fn nothing_is_written_for_output_that_fits() {
        let (_outside, to) = place();
        let mut capture = Capture::new(ByteCount::bytes(10), Some(&to));
        capture.push(Stream::Stdout, b"0123456789");
        assert_eq!(capture.finish().2, None);
        assert!(!to.directory.exists());
    }

    #[test]
    fn both_streams_are_whole_once_one_is_too_long() {
        let (_outside, to) = place();
        let mut capture = Capture::new(ByteCount::bytes(10), Some(&to));
        capture.push(Stream::Stderr, b"warning");
        capture.push(Stream::Stdout, b"01234567");
        capture.push(Stream::Stdout, b"89abc");
        capture.push(Stream::Stderr, b"!");
        let id = capture
            .finish()
            .2
            .and_then(|spilled| spilled.id)
            .expect("it was too long");
        assert_eq!(all(&to, &id, Stream::Stdout), b"0123456789abc");
        assert_eq!(all(&to, &id, Stream::Stderr), b"warning!");
        let mode = |path: &Path| fs::metadata(path).expect("it is there").mode() & 0o777;
        assert_eq!(mode(&to.directory), 0o700);
        assert_eq!(mode(&id.file(&to.directory, Stream::Stdout)), 0o600);
    }

    #[test]
    fn a_whole_output_beyond_its_bound_says_where_it_stops() {
        let (_outside, mut to) = place();
        to.per_command = ByteCount::bytes(12);
        let mut capture = Capture::new(ByteCount::bytes(4), Some(&to));
        capture.push(Stream::Stdout, b"0123456789");
        capture.push(Stream::Stdout, b"0123456789");
        let id = capture
            .finish()
            .2
            .and_then(|spilled| spilled.id)
            .expect("it was too long");
        assert_eq!(
            all(&to, &id, Stream::Stdout),
            b"012345678901\n[... kept up to here: 12 of 20 bytes ...]\n"
        );
    }

    #[test]
    fn the_oldest_outputs_go_first() {
        let (_outside, mut to) = place();
        to.per_command = ByteCount::bytes(100);
        to.in_all = ByteCount::bytes(150);
        let spill = || {
            let mut capture = Capture::new(ByteCount::bytes(4), Some(&to));
            capture.push(Stream::Stdout, &[b'x'; 40]);
            capture
                .finish()
                .2
                .and_then(|spilled| spilled.id)
                .expect("it was too long")
        };
        let ids = [spill(), spill(), spill(), spill()];
        let there: Vec<_> = ids
            .iter()
            .map(|id| id.file(&to.directory, Stream::Stdout).exists())
            .collect();
        assert!(!there[0], "{there:?}");
        assert!(there[3], "{there:?}");
    }

    #[test]
    fn a_key_is_never_a_path() {
        let (outside, to) = place();
        fs::write(outside.path().join("secret.stdout"), "secret").expect("it can be written");
        for key in [
            "../secret",
            "",
            "0123456789abcdef012/",
            "0123456789ABCDEF0123",
            "..",
            "/etc/passwd",
        ] {
            let read = read_spilled(&to.directory, key, Stream::Stdout, 0, ByteCount::kib(1));
            assert!(matches!(read, Err(ReadSpillError::NotAnId)), "{key}");
        }
        let read = read_spilled(
            &to.directory,
            "0123456789abcdef0123",
            Stream::Stdout,
            0,
            ByteCount::kib(1),
        );
        assert!(matches!(read, Err(ReadSpillError::Unknown(_))));
    }

    #[test]
    fn a_place_that_cannot_be_written_to_is_told_and_loses_nothing_else() {
        let to = SpillTo::new("/proc/nowhere");
        let mut capture = Capture::new(ByteCount::bytes(4), Some(&to));
        capture.push(Stream::Stdout, b"0123456789");
        let (stdout, _, spilled) = capture.finish();
        assert_eq!(stdout.total(), 10);
        let spilled = spilled.expect("it was tried");
        assert!(spilled.id.is_none() && spilled.error.is_some());
    }
}
