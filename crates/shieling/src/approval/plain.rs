//! Texts plain enough that their commands' words are all there is to them.
//!
//! A grant for `cargo test` is meant for that program with any arguments. It is not meant for
//! `cargo test > ~/.bashrc`, `PATH=. cargo test` or `for PATH in .; do cargo test; done`, in which
//! each command begins with the granted words just as well. So a prefix covers texts without
//! expansions, redirections to files, assignments and keywords only. This errs on the side of
//! asking: a quoted `>` is refused too.

/// What bash takes for the beginning or part of a compound command.
const KEYWORDS: [&str; 19] = [
    "if", "then", "elif", "else", "fi", "for", "while", "until", "do", "done", "case", "esac", "in", "select",
    "function", "time", "coproc", "[[", "]]",
];

/// Where a word ends.
const BOUNDARY: [char; 6] = [' ', '\t', '\n', ';', '|', '&'];

/// Whether a text is words joined by `&&`, `||`, `;`, `|`, `&` and newlines, and nothing else.
pub(super) fn is_plain(text: &str) -> bool {
    !text.contains(['$', '`', '(', ')', '{', '}', '\r'])
        // A continued line joins what would look like two words.
        && !text.contains("\\\n")
        && text.match_indices(['<', '>']).all(|(at, sign)| is_harmless(sign, &text[at + 1..]))
        && text.split(BOUNDARY).all(|word| !KEYWORDS.contains(&word) && !is_assignment(word))
}

/// Whether a redirection goes to `/dev/null` or to another stream. `rest` follows the sign.
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

/// Whether a word as it is written could assign a variable: `a=1`, `a+=1`, `a[0]=1`.
fn is_assignment(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && word.split_once('=').is_some_and(|(name, _)| {
            let name = name.strip_suffix('+').unwrap_or(name);
            name.contains('[') || name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        })
}

/// Whether a word means itself to every shell. A word that cannot be known is shown as it is
/// written, so that anything else might be equal by its looks alone.
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
