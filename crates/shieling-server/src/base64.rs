//! Base64 as defined in RFC 4648, section 4, for images and file contents.

use ::base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use ::base64::{DecodeError, Engine as _};

/// Encodes bytes, with padding.
pub(crate) fn encode(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// Decodes a text. Line breaks and blanks are ignored, and the padding may be missing.
///
/// # Errors
/// What is wrong with the text, in a few words.
pub(crate) fn decode(text: &str) -> Result<Vec<u8>, String> {
    let significant = text.trim_end_matches(|c: char| c == '=' || c.is_ascii_whitespace());
    let characters = || significant.char_indices().filter(|(_, c)| !c.is_ascii_whitespace());
    let compact: String = characters().map(|(_, c)| c).collect();
    STANDARD_NO_PAD.decode(compact).map_err(|error| match error {
        // All characters before it are ASCII, so its byte is its number.
        DecodeError::InvalidByte(at, _) => match characters().nth(at) {
            Some((index, character)) => {
                format!("`{}` at byte {index} is no character of it", character.escape_debug())
            }
            None => "a character of it is invalid".to_owned(),
        },
        DecodeError::InvalidLength(_) | DecodeError::InvalidLastSymbol { .. } | DecodeError::InvalidPadding => {
            "its end is missing".to_owned()
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back_as_they_were() {
        // The examples of the standard.
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(encode(bytes.as_bytes()), text);
            assert_eq!(decode(text).as_deref(), Ok(bytes.as_bytes()));
        }
        let all: Vec<u8> = (0..=255).collect();
        for length in 0..all.len() {
            assert_eq!(decode(&encode(&all[..length])), Ok(all[..length].to_vec()));
        }
    }

    #[test]
    fn line_breaks_and_missing_padding_are_read_and_nothing_else_is() {
        assert_eq!(decode("Zm9v\r\nYmE\n"), Ok(b"fooba".to_vec()));
        for wrong in ["Z", "Zm9vY", "Zm9v!", "Zm=9v", "_-==", "Zh", "ä"] {
            assert!(decode(wrong).is_err(), "{wrong}");
        }
    }
}
