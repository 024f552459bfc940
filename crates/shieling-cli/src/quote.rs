//! Several arguments as one shell text: each word quoted so that every POSIX shell reads back
//! exactly that word.

use std::borrow::Cow;

use shieling::policy::quoted;

/// The words joined by blanks. A single argument is shell text already and stays as it is.
pub(crate) fn command_text(arguments: &[String]) -> Cow<'_, str> {
    match arguments {
        [text] => Cow::Borrowed(text),
        words => Cow::Owned(words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(words: &[&str]) -> String {
        command_text(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>()).into_owned()
    }

    #[test]
    fn one_argument_is_shell_text() {
        assert_eq!(joined(&["echo $HOME | wc -c"]), "echo $HOME | wc -c");
    }

    #[test]
    fn several_arguments_are_words() {
        for (words, text) in [
            (&["git", "log", "--oneline"][..], "git log --oneline"),
            (&["echo", ""], "echo ''"),
            (&["echo", "a b", "$HOME", "*"], "echo 'a b' '$HOME' '*'"),
            (&["echo", "it's"], r"echo 'it'\''s'"),
            (&["echo", "a\nb", "~", "#x", "!!"], "echo 'a\nb' '~' '#x' '!!'"),
            (&["A=1", "ls"], "'A=1' ls"),
            (&["if", "x"], "'if' x"),
            (&["echo", "é"], "echo 'é'"),
            (&["%1", "x"], "'%1' x"),
        ] {
            assert_eq!(joined(words), text);
        }
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "bash itself is the judge of what it reads")]
    fn bash_reads_back_every_word() {
        let words = [
            "",
            " ",
            "'",
            "''",
            "\"",
            "\\",
            "\\'",
            "$(id)",
            "`id`",
            "a\nb",
            "\t",
            "*",
            "~",
            "{a,b}",
            "é\u{202e}",
            "-n",
        ];
        let text = joined(&[&["printf", "%s\\0"][..], &words].concat());
        let output = std::process::Command::new("bash").args(["-c", &text]).output().unwrap();
        let expected: String = words.iter().map(|word| format!("{word}\0")).collect();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
    }
}
