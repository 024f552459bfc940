//! A ring buffer that keeps the last bytes.

/// Keeps the last `limit` bytes that were pushed. Bytes that would be overwritten at once are not copied.
#[derive(Debug, Clone)]
pub(crate) struct Ring {
    bytes: Vec<u8>,
    limit: usize,
    /// The position of the oldest byte, once the buffer is full.
    start: usize,
}

impl Ring {
    /// Creates a buffer of this size.
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            bytes: Vec::new(),
            limit,
            start: 0,
        }
    }

    /// Returns the size of the buffer.
    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// Returns the number of bytes in the buffer.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Appends bytes, and overwrites the oldest ones.
    pub(crate) fn push(&mut self, new: &[u8]) {
        if new.len() >= self.limit {
            self.bytes.clear();
            self.bytes.extend_from_slice(&new[new.len() - self.limit..]);
            self.start = 0;
            return;
        }
        let (fits, over) = new.split_at(new.len().min(self.limit - self.bytes.len()));
        if self.bytes.capacity() - self.bytes.len() < fits.len() {
            // Grows as a vector does, but not beyond the limit.
            let room = (self.bytes.capacity() * 2).clamp(self.bytes.len() + fits.len(), self.limit);
            self.bytes.reserve_exact(room - self.bytes.len());
        }
        self.bytes.extend_from_slice(fits);
        let (until_end, wrapped) = over.split_at(over.len().min(self.limit - self.start));
        self.bytes[self.start..self.start + until_end.len()].copy_from_slice(until_end);
        self.bytes[..wrapped.len()].copy_from_slice(wrapped);
        self.start = (self.start + over.len()) % self.limit;
    }

    /// Returns the bytes in two parts, oldest first.
    pub(crate) fn parts(&self) -> (&[u8], &[u8]) {
        let (newer, older) = self.bytes.split_at(self.start);
        (older, newer)
    }

    /// Returns the bytes after the first `skip`, at most `most`, in two parts.
    pub(crate) fn range(&self, skip: usize, most: usize) -> (&[u8], &[u8]) {
        let (first, second) = self.parts();
        let (left, rest) = (
            skip.min(first.len()),
            skip.saturating_sub(first.len()).min(second.len()),
        );
        let first = &first[left..];
        let first = &first[..first.len().min(most)];
        let second = &second[rest..];
        (first, &second[..second.len().min(most - first.len())])
    }
}
