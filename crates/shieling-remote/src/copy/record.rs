//! The records of a copy: `length: u32 │ postcard`, and behind a [`Record::Data`] its bytes.

use std::io::{self, Read, Write};

use serde::{Deserialize, Serialize};

use super::CopyError;

/// The longest record: a path of 256 names fits.
const LONGEST: usize = 128 * 1024;
/// The most bytes of a file behind one record.
pub(super) const PIECE: usize = 128 * 1024;

/// A time of a file: seconds since 1970, and nanoseconds.
pub(super) type Time = (i64, u32);

/// One step of a copy. Names are of the directory that is open then: the destination first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Record {
    /// Make a directory, unless it is there, and open it.
    Directory { name: Vec<u8> },
    /// The open directory is complete: give it these, if it was made, and go back to the one above.
    Up { mode: u32, modified: Time },
    /// A regular file begins.
    File { name: Vec<u8> },
    /// So many bytes of the file follow, which belong at this offset. Offsets never go back.
    Data { offset: u64, length: u32 },
    /// The file is complete and has this size; what was not sent of it is a hole.
    Complete { size: u64, mode: u32, modified: Time },
    /// The file could not be read to its end.
    Abandoned { because: String },
    /// A symbolic link.
    Link {
        name: Vec<u8>,
        target: Vec<u8>,
        modified: Time,
    },
    /// An entry of the open directory, or the directory itself if the name is empty, is left out.
    Skipped { name: Vec<u8>, because: String },
    /// A path, relative to the destination, that was copied to the source before and is not there any more.
    Gone { path: Vec<u8> },
    /// There is no more.
    End,
}

impl Record {
    pub(super) fn write(&self, to: &mut impl Write) -> io::Result<()> {
        let bytes = postcard::to_extend(self, vec![0; 4]).map_err(io::Error::other)?;
        if bytes.len() > LONGEST {
            return Err(io::Error::other("a record that is too long"));
        }
        let mut bytes = bytes;
        let length = u32::try_from(bytes.len() - 4).unwrap_or(u32::MAX).to_le_bytes();
        if let Some(head) = bytes.get_mut(..4) {
            head.copy_from_slice(&length);
        }
        to.write_all(&bytes)
    }

    /// Reads the next record into `buffer`, which grows to the longest record at most.
    pub(super) fn read(from: &mut impl Read, buffer: &mut Vec<u8>) -> Result<Self, CopyError> {
        let mut length = [0; 4];
        from.read_exact(&mut length).map_err(|error| cut(&error))?;
        let length = u32::from_le_bytes(length) as usize;
        if length > LONGEST {
            return Err(CopyError::stream(format!(
                "a record of {length} bytes, of at most {LONGEST}"
            )));
        }
        buffer.resize(length, 0);
        from.read_exact(buffer).map_err(|error| cut(&error))?;
        match postcard::take_from_bytes(buffer) {
            Ok((record, [])) => Ok(record),
            Ok(_) => Err(CopyError::stream("a record with more behind it")),
            Err(error) => Err(CopyError::stream(format!("a record that cannot be read ({error})"))),
        }
    }
}

/// A stream that came to its end before the copy did.
pub(super) fn cut(error: &io::Error) -> CopyError {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => CopyError::lost("the stream ended before the copy did"),
        _ => CopyError::lost(error),
    }
}
