//! Braces that bashkit would not expand, or only in part, because they yield too many words. Texts with them are
//! refused, whether the braces are quoted or not: quoted text rarely has this form.

/// The largest number of elements of a range, and of words, that bashkit expands.
const MOST: u64 = 10_000;

/// Returns why a text with such braces is refused, if it contains any.
pub(super) fn refusal(text: &str) -> Option<String> {
    let mut words = text.split([' ', '\t', '\n', ';', '&', '|', '(', ')', '<', '>']);
    let word = words.find(|word| word.contains('{') && count(word) > MOST)?;
    let shown: String = word.chars().take(80).collect();
    Some(format!(
        "`{shown}` makes more than 10,000 words, which memory does not expand; use `seq` or a loop"
    ))
}

/// Returns the largest number of words that a word expands to: the product over its pairs of braces of the number of
/// elements or alternatives.
fn count(word: &str) -> u64 {
    let (mut all, mut depth, mut rest) = (1_u64, 0_u32, word);
    let mut alternatives: Vec<u64> = Vec::new();
    while let Some(at) = rest.find(['{', '}', ',']) {
        let (letter, after) = (rest.as_bytes()[at], &rest[at + 1..]);
        match letter {
            b'{' => {
                depth += 1;
                let inner = after.split('}').next().unwrap_or_default();
                alternatives.push(range(inner).unwrap_or(1));
            }
            b'}' if depth > 0 => {
                depth -= 1;
                all = all.saturating_mul(alternatives.pop().unwrap_or(1));
            }
            b',' => {
                if let Some(last) = alternatives.last_mut() {
                    *last = last.saturating_add(1);
                }
            }
            _ => {}
        }
        rest = after;
    }
    all
}

/// Returns the number of elements of `a..b..step`, of numbers or letters.
fn range(text: &str) -> Option<u64> {
    let letter = |text: &str| match text.as_bytes() {
        [letter] if letter.is_ascii_alphabetic() => Some(i128::from(*letter)),
        _ => None,
    };
    let bound = |text: &str| text.parse::<i128>().ok().or_else(|| letter(text));
    let mut parts = text.splitn(3, "..");
    let (first, last) = (bound(parts.next()?)?, bound(parts.next()?)?);
    let step = parts.next().and_then(|step| step.parse::<i128>().ok()).unwrap_or(1);
    let count = (first.abs_diff(last) / step.unsigned_abs().max(1)).saturating_add(1);
    Some(u64::try_from(count).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::{count, refusal};

    #[test]
    fn braces_make_as_many_words_as_they_have_alternatives() {
        let cases = [
            ("x", 1),
            ("{a,b}", 2),
            ("{a,b}{c,d,e}", 6),
            ("{1..10}", 10),
            ("{10..1..3}", 4),
            ("{1..100}{1..100}", 10_000),
            ("{{1..3},x}", 6),
            ("${x}", 1),
            ("}{", 1),
            ("{1..99999999999999999999999999}", u64::MAX),
            ("{é..ü}", 1),
            ("{a..z}", 26),
            ("{a..z}{A..Z..2}", 338),
            ("{a..zz}", 1),
        ];
        for (word, expected) in cases {
            assert_eq!(count(word), expected, "{word}");
        }
        assert!(refusal("for i in {1..10001}; do :; done").is_some());
        assert!(refusal("printf '%s\\n' {a..z}{a..z}{a..z}{a..z}").is_some());
        assert_eq!(refusal("for i in {1..10000}; do :; done; awk '{ print $1 }'"), None);
    }
}
