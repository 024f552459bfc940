//! Base64 as defined in RFC 4648, section 4, for images and file contents.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Encodes bytes, with padding.
pub(crate) fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let byte = |index: usize| u32::from(three.get(index).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for index in 0..4 {
            if index <= three.len() {
                let six = bits >> (18 - 6 * index) & 63;
                text.push(char::from(ALPHABET[six as usize]));
            } else {
                text.push('=');
            }
        }
    }
    text
}

/// Decodes a text. Line breaks and blanks are ignored, and the padding may be missing.
///
/// # Errors
/// What is wrong with the text, in a few words.
pub(crate) fn decode(text: &str) -> Result<Vec<u8>, String> {
    let significant = text.trim_end_matches(|c: char| c == '=' || c.is_ascii_whitespace());
    let mut bytes = Vec::with_capacity(significant.len() / 4 * 3 + 2);
    let (mut bits, mut count) = (0_u32, 0_u32);
    for (index, character) in significant.char_indices() {
        if character.is_ascii_whitespace() {
            continue;
        }
        let six = value(character)
            .ok_or_else(|| format!("`{}` at byte {index} is no character of it", character.escape_debug()))?;
        bits = bits << 6 | six;
        count += 1;
        if count == 4 {
            bytes.extend_from_slice(&bits.to_be_bytes()[1..]);
            (bits, count) = (0, 0);
        }
    }
    // The unused bits of the last character must be 0, so that each value has only one encoding.
    match count {
        0 => {}
        2 if bits & 15 == 0 => bytes.extend_from_slice(&(bits >> 4).to_be_bytes()[3..]),
        3 if bits & 3 == 0 => bytes.extend_from_slice(&(bits >> 2).to_be_bytes()[2..]),
        _ => return Err("its end is missing".to_owned()),
    }
    Ok(bytes)
}

fn value(character: char) -> Option<u32> {
    let place = match character {
        'A'..='Z' => u32::from(character) - u32::from('A'),
        'a'..='z' => u32::from(character) - u32::from('a') + 26,
        '0'..='9' => u32::from(character) - u32::from('0') + 52,
        '+' => 62,
        '/' => 63,
        _ => return None,
    };
    Some(place)
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
