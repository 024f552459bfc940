//! Plain texts: those whose meaning is fully determined by the words of their commands.
//!
//! A grant for `cargo test` is meant for that program with any arguments, but not for `cargo test > ~/.bashrc`,
//! `PATH=. cargo test` or `for PATH in .; do cargo test; done`, whose commands begin with the same words. A prefix
//! therefore covers only texts without expansions, redirections to files, assignments and keywords. The check prefers
//! to ask: it also rejects a quoted `>`.

/// The words that begin or continue compound commands in bash.
const KEYWORDS: [&str; 19] = [
    "if", "then", "elif", "else", "fi", "for", "while", "until", "do", "done", "case", "esac", "in", "select",
    "function", "time", "coproc", "[[", "]]",
];

/// The characters that end a word.
const BOUNDARY: [char; 6] = [' ', '\t', '\n', ';', '|', '&'];

/// Returns whether a text consists only of words joined by `&&`, `||`, `;`, `|`, `&` and newlines.
pub(super) fn is_plain(text: &str) -> bool {
    !text.contains(['$', '`', '(', ')', '{', '}', '\r'])
        // A continued line joins what looks like two words.
        && !text.contains("\\\n")
        && text.match_indices(['<', '>']).all(|(at, sign)| is_harmless(sign, &text[at + 1..]))
        && text.split(BOUNDARY).all(|word| !KEYWORDS.contains(&word) && !is_assignment(word))
}

/// Returns whether a redirection goes to `/dev/null` or to another stream. `rest` follows the sign.
fn is_harmless(sign: &str, rest: &str) -> bool {
    let targets: &[&str] = if sign == ">" {
        &["&1", "&2", "/dev/null"]
    } else {
        &["/dev/null"]
    };
    let target = rest.trim_start_matches([' ', '\t']);
    targets.iter().any(|known| {
        target
            .strip_prefix(known)
            .is_some_and(|end| end.is_empty() || end.starts_with(BOUNDARY))
    })
}

/// Returns whether a word could be an assignment: `a=1`, `a+=1`, `a[0]=1`.
fn is_assignment(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && word.split_once('=').is_some_and(|(name, _)| {
            let name = name.strip_suffix('+').unwrap_or(name);
            name.contains('[') || name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        })
}

/// Returns whether every shell takes a word literally. Unknown words are shown as they are written, so other words
/// could be equal in appearance only.
pub(super) fn is_plain_word(word: &str) -> bool {
    !word.is_empty()
        && word
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "_./:=@%+,-".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_joined_by_operators_are_plain() {
        for text in [
            "cargo test",
            "cargo test --lib 'a b' \"c\" d\\ e",
            "cargo test 2>&1 | cargo fmt >/dev/null && cargo build 2> /dev/null; cargo doc </dev/null",
            "cargo test -- --exact *::tests?",
            "cargo test &",
            "cargo test --jobs=2",
        ] {
            assert!(is_plain(text), "{text}");
        }
    }

    #[test]
    fn everything_that_can_change_what_the_words_do_is_not_plain() {
        for text in [
            "cargo test > out",
            "cargo test >> /dev/null.txt",
            "cargo test >/dev/nullx",
            "cargo test >&12",
            "cargo test >|/dev/null",
            "cargo test <<< x",
            "cargo test < in",
            "cargo test <(x)",
            "PATH=. cargo test",
            "PATH+=:. cargo test",
            "a[0]=1 cargo test",
            "true;IFS=x cargo test",
            "PA\\\nTH=. cargo test",
            "PATH\\\n=. cargo test",
            "for PATH in .; do cargo test; done",
            "if cargo test; then cargo test; fi",
            "cargo test $X",
            "cargo test `x`",
            "{ cargo test; }",
            "(cargo test)",
            "cargo() { x; }",
            "time cargo test",
            "[[ a ]]",
        ] {
            assert!(!is_plain(text), "{text}");
        }
    }

    #[test]
    fn a_granted_word_means_itself() {
        for word in ["cargo", "./run.sh", "--jobs=2", "a_b", "g++"] {
            assert!(is_plain_word(word), "{word}");
        }
        for word in ["", "$x", "a*", "a b", "'a'", "~", "a?", "{a,b}", "[a]", "\\u{1b}", "é"] {
            assert!(!is_plain_word(word), "{word}");
        }
    }
}
