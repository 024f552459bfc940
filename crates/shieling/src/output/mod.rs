//! Bounded capture of command output: in memory, in files, and as plain text. Knows nothing of processes.

mod capture;
mod plain;
mod ring;
mod spill;
mod stream;

pub use capture::{Capture, Captured, Tee};
pub(crate) use capture::{partial_character, whole_characters};
pub use plain::plain_text;
pub(crate) use ring::Ring;
pub(crate) use spill::private_directory;
pub use spill::{Chunk, OutputId, ReadSpillError, SpillTo, Spilled, read_spilled};
pub use stream::Stream;

/// Formats a count with separators: `123,456`.
fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    #[test]
    fn counts_are_grouped_by_thousands() {
        for (count, text) in [(0, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(super::grouped(count), text);
        }
    }
}
