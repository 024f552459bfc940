//! A shell that is talked to: a text that is nothing but `bash` reads its commands from standard input, one
//! after the other, and each runs as soon as it is there. What they read comes from the same input.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use bashkit::ExecOptions;

use super::live::Live;
use super::outlet::Outlet;
use super::run::{Ran, unwanted};
use super::{Engine, Kit, parsed};

/// Whether a text is nothing but a shell that reads its commands.
pub(super) fn is_shell(text: &str) -> bool {
    let mut words = text.split_whitespace().peekable();
    words.next_if_eq(&"exec");
    let shell = words
        .next()
        .map(|word| word.rsplit_once('/').map_or(word, |(_, name)| name));
    matches!(shell, Some("bash" | "sh")) && words.all(|word| matches!(word, "-s" | "--norc" | "--noprofile"))
}

/// Whether lines are whole commands, and no further line can belong to them.
fn is_whole(lines: &str) -> bool {
    let text = lines.trim_end_matches('\n');
    let backslashes = text.len() - text.trim_end_matches('\\').len();
    if backslashes % 2 == 1 {
        return false;
    }
    match parsed(lines) {
        // Bashkit takes what is to follow an operator for nothing. What cannot be closed is a line of a
        // here-document.
        Ok(_) => !ends_in_operator(text) && parsed(&format!("{lines})\n")).is_err(),
        Err(error) => {
            let said = error.to_string();
            !["unexpected end", "unexpected EOF", "unterminated"]
                .iter()
                .any(|end| said.contains(end))
        }
    }
}

fn ends_in_operator(text: &str) -> bool {
    let line = text.lines().next_back().unwrap_or_default().trim();
    let operator = line.ends_with("&&") || line.ends_with('|');
    operator && !line.ends_with("\\|") && !line.starts_with('#')
}

/// The longest command, in bytes. It is read anew with each of its lines.
const LONGEST: usize = 256 << 10;

/// The next commands, and whether they are the last.
async fn next(live: &Live) -> io::Result<(String, bool)> {
    let mut lines = String::new();
    loop {
        let line = live.line().await?;
        let last = line.last() != Some(&b'\n');
        lines.push_str(&String::from_utf8_lossy(&line));
        if lines.len() > LONGEST {
            return Err(io::Error::other("a command of more than 256 KiB"));
        }
        // However fast lines come, whoever does not want it any more is heard.
        tokio::task::yield_now().await;
        if last || is_whole(&lines) {
            return Ok((lines, last));
        }
    }
}

impl Engine {
    /// Runs what comes until the input is at its end, or a command ends the shell.
    pub(super) async fn converse(
        &mut self,
        live: &Live,
        stdout: &mut Outlet,
        stderr: &mut Outlet,
        token: &Arc<AtomicBool>,
        kit: &Kit,
    ) -> io::Result<Ran> {
        self.stay().await;
        let mut before = 0;
        loop {
            let (commands, last) = tokio::select! {
                commands = next(live) => commands?,
                () = unwanted(token) => return Ok(Ran::broken_off()),
            };
            // Its lines are counted from the first that came.
            let text = format!("{}{commands}", "\n".repeat(before));
            before += commands.matches('\n').count();
            let ran = self.once(&text, ExecOptions::new(), stdout, stderr, token, kit).await;
            // Bash reads nothing behind what it cannot read.
            let misread = parsed(&commands).is_err();
            if last || misread || ran.exited || ran.broken_off || ran.failed() && self.errexit() {
                return Ok(ran);
            }
            self.settle(ran);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{is_shell, is_whole};

    #[test]
    fn a_text_that_is_only_a_shell_is_one_and_others_are_not() {
        for text in ["bash", " sh \n", "exec bash", "/bin/bash --norc -s"] {
            assert!(is_shell(text), "{text}");
        }
        for text in [
            "",
            "bash x",
            "bash -c x",
            "bash; true",
            "exec",
            "echo x | bash",
            "bash < f",
            "dash",
        ] {
            assert!(!is_shell(text), "{text}");
        }
    }

    #[test]
    fn lines_are_whole_once_no_further_line_belongs_to_them() {
        for lines in [
            "echo a\n",
            "\n",
            "# it's\n",
            "if x; then y; fi\n",
            "cat <<E\na\nE\n",
            "fi\n",
            "echo 'a\nb'\n",
            "x=1\n",
        ] {
            assert!(is_whole(lines), "{lines:?}");
        }
        for lines in [
            "if x\n",
            "for i in 1 2; do\n",
            "echo 'a\n",
            "echo \"a\n",
            "f() {\n",
            "echo a |\n",
            "a &&\n",
            "echo a \\\n",
            "cat <<E\n",
            "cat <<E\na\n",
            "x=$(\n",
            "case a in\n",
            "( a\n",
        ] {
            assert!(!is_whole(lines), "{lines:?}");
        }
    }
}
