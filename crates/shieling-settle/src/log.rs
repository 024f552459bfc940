//! What the host tells the program: a file in memory that the host appends to, and that the program reads once, when the
//! host is gone.
//!
//! ```text
//! from, to │ … │ entry │ entry │ …        what counts lies between `from` and `to`, which are written last, in one call
//! ```
//!
//! So nothing is ever waited for, and a host that is killed in the middle of an entry has not written it.

use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use rustix::fs::{FallocateFlags, MemfdFlags};
use rustix::io::Errno;

/// What the host writes to the pipe once all is settled.
pub const OVER: u8 = b'.';

/// The length of `from` and `to`.
const HEADER: u64 = 16;

/// How many bytes of entries there are at most before they are written anew, besides four times those that there were then.
const LARGE: u64 = 64 << 20;

const HOST: u32 = 1;
const COMMAND: u32 = 2;
const SETTLED: u32 = 3;
const TREE: u32 = 4;
const WHOLE_TREE: u32 = 5;
const ROOT: u32 = 6;

/// One thing that is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// What is told first.
    Beginning(Beginning),
    /// What began to run.
    Command(String),
    /// Whether nothing runs and all was judged, so that what changes is the user's.
    Settled(bool),
    /// The plan of the tree of this number, as the watch gives it.
    Root(u32, Vec<u8>),
    /// What the watch of a tree hands over, and whether that is everything.
    Tree(u32, Vec<u8>, bool),
}

/// What is told first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Beginning {
    /// The number of the host.
    pub host: i32,
    /// The number of the process that ends once nothing of the sandbox runs.
    pub monitor: i32,
    /// The directory of the store.
    pub store: PathBuf,
}

/// The host's end.
#[derive(Debug)]
pub struct Log {
    file: OwnedFd,
    from: u64,
    to: u64,
    /// How much there was after it was written anew.
    fresh: u64,
}

impl Log {
    /// An empty one.
    ///
    /// # Errors
    /// No more descriptors or memory.
    pub fn new() -> Result<Self, Errno> {
        let file = rustix::fs::memfd_create("settle", MemfdFlags::CLOEXEC)?;
        rustix::fs::ftruncate(&file, HEADER)?;
        Ok(Self {
            file,
            from: HEADER,
            to: HEADER,
            fresh: 0,
        })
    }

    /// The file, for the program.
    pub fn file(&self) -> &OwnedFd {
        &self.file
    }

    /// Whether it should be written anew.
    pub fn is_large(&self) -> bool {
        self.to - self.from > LARGE + 4 * self.fresh
    }

    /// Adds these, all or none; `anew` in the place of those before, and of the beginning.
    ///
    /// # Errors
    /// No more memory.
    pub fn write(&mut self, entries: &[Entry], anew: bool) -> Result<(), Errno> {
        let mut bytes = Vec::new();
        for entry in entries {
            encode(&mut bytes, entry);
        }
        let mut at = self.to;
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            let written = rustix::io::pwrite(&self.file, rest, at)?;
            rest = rest.get(written..).unwrap_or_default();
            at += written as u64;
        }
        let from = if anew { self.to } else { self.from };
        let mut header = [0; 16];
        header[..8].copy_from_slice(&from.to_ne_bytes());
        header[8..].copy_from_slice(&at.to_ne_bytes());
        rustix::io::pwrite(&self.file, &header, 0)?;
        (self.from, self.to) = (from, at);
        if anew {
            self.fresh = at - from;
            let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            let _ = rustix::fs::fallocate(&self.file, flags, HEADER, from - HEADER);
        }
        Ok(())
    }
}

fn encode(bytes: &mut Vec<u8>, entry: &Entry) {
    let mut add = |kind: u32, number: u32, parts: &[&[u8]]| {
        bytes.extend_from_slice(&kind.to_ne_bytes());
        bytes.extend_from_slice(&number.to_ne_bytes());
        let length: usize = parts.iter().map(|part| part.len()).sum();
        bytes.extend_from_slice(&(length as u64).to_ne_bytes());
        parts.iter().for_each(|part| bytes.extend_from_slice(part));
    };
    match entry {
        Entry::Beginning(beginning) => add(
            HOST,
            0,
            &[
                &beginning.host.to_ne_bytes(),
                &beginning.monitor.to_ne_bytes(),
                beginning.store.as_os_str().as_bytes(),
            ],
        ),
        Entry::Command(text) => add(COMMAND, 0, &[text.as_bytes()]),
        Entry::Settled(is_settled) => add(SETTLED, u32::from(*is_settled), &[]),
        Entry::Root(number, root) => add(ROOT, *number, &[root]),
        Entry::Tree(number, part, false) => add(TREE, *number, &[part]),
        Entry::Tree(number, part, true) => add(WHOLE_TREE, *number, &[part]),
    }
}

/// What stands in a log. What cannot be read ends it.
///
/// # Errors
/// If it cannot be read at all.
pub fn read(log: impl AsFd) -> Result<Vec<Entry>, Errno> {
    let mut header = [0; 16];
    read_all(&log, &mut header, 0)?;
    let number = |bytes: &[u8]| bytes.first_chunk().map_or(0, |bytes| u64::from_ne_bytes(*bytes));
    let (from, to) = (number(&header), number(header.get(8..).unwrap_or_default()));
    let length = to.checked_sub(from).and_then(|length| usize::try_from(length).ok());
    let mut bytes = vec![0; length.ok_or(Errno::INVAL)?];
    read_all(&log, &mut bytes, from)?;
    let mut rest = bytes.as_slice();
    let mut entries = Vec::new();
    while let Some((entry, after)) = decode(rest) {
        entries.extend(entry);
        rest = after;
    }
    Ok(entries)
}

fn decode(bytes: &[u8]) -> Option<(Option<Entry>, &[u8])> {
    let (kind, rest) = bytes.split_first_chunk()?;
    let (number, rest) = rest.split_first_chunk()?;
    let (length, rest) = rest.split_first_chunk()?;
    let length = usize::try_from(u64::from_ne_bytes(*length)).ok()?;
    let (part, rest) = rest.split_at_checked(length)?;
    let number = u32::from_ne_bytes(*number);
    let entry = match u32::from_ne_bytes(*kind) {
        HOST => {
            let (host, part) = part.split_first_chunk()?;
            let (monitor, store) = part.split_first_chunk()?;
            Some(Entry::Beginning(Beginning {
                host: i32::from_ne_bytes(*host),
                monitor: i32::from_ne_bytes(*monitor),
                store: PathBuf::from(OsStr::from_bytes(store)),
            }))
        }
        COMMAND => Some(Entry::Command(String::from_utf8_lossy(part).into_owned())),
        SETTLED => Some(Entry::Settled(number != 0)),
        ROOT => Some(Entry::Root(number, part.to_vec())),
        TREE => Some(Entry::Tree(number, part.to_vec(), false)),
        WHOLE_TREE => Some(Entry::Tree(number, part.to_vec(), true)),
        _ => None,
    };
    Some((entry, rest))
}

fn read_all(log: impl AsFd, mut bytes: &mut [u8], mut at: u64) -> Result<(), Errno> {
    while !bytes.is_empty() {
        match rustix::io::pread(&log, &mut *bytes, at)? {
            0 => return Err(Errno::INVAL),
            length => {
                bytes = bytes.get_mut(length..).unwrap_or_default();
                at += length as u64;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn beginning() -> Entry {
        Entry::Beginning(Beginning {
            host: 7,
            monitor: 8,
            store: PathBuf::from("/store"),
        })
    }

    #[test]
    fn what_was_written_is_read_and_what_was_written_anew_stands_alone() {
        let mut log = Log::new().expect("made");
        let first = [beginning(), Entry::Settled(true), Entry::Root(1, b"root".to_vec())];
        log.write(&first, false).expect("written");
        let second = [Entry::Command("make".to_owned()), Entry::Tree(1, b"all".to_vec(), true)];
        log.write(&second, false).expect("written");
        assert_eq!(read(log.file()).expect("read"), [&first[..], &second[..]].concat());
        let anew = [Entry::Tree(0, vec![1; 1000], true), Entry::Tree(0, Vec::new(), false)];
        log.write(&anew, true).expect("written");
        log.write(&[Entry::Settled(false)], false).expect("written");
        assert_eq!(
            read(log.file()).expect("read"),
            [&anew[..], &[Entry::Settled(false)]].concat()
        );
    }
}
