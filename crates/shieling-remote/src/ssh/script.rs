//! What runs on the far side before the agent program does: a few lines for any POSIX `sh`, which a login shell of any
//! kind is told to run. They use `uname`, `mkdir`, `ls`, `head`, `sha256sum`, `chmod`, `mv`, `rm`, and `find` if there is one.

use std::env::consts::ARCH;

use crate::agent::Setup;

/// The one line that the login shell reads: no quotation mark, backslash, `!` or line break is in the script, which
/// shells would read in different ways between single quotes.
pub(super) fn command(digest: &str, size: usize, setup: &Setup) -> String {
    let [option, hex] = setup.plain_arguments();
    let script = SCRIPT.trim().replace('\n', " ");
    format!("exec /bin/sh -c '{script}' sh {digest} {size} {ARCH} {option} {hex}")
}

/// `$1` is the digest, `$2` the size, `$3` the processor; what follows is for the agent program.
///
/// Files of ours are private. Commands have the login's own mask, as in a login.
///
/// What arrives is kept under another name until it is whole and its digest is right. What is there under the right
/// name is checked each time, since a full disk or a crash may have left anything.
const SCRIPT: &str = r#"
u=$(umask); umask 077;
g=$1; n=$2; a=$3; shift 3;
say() { echo "shieling $g $1"; };
no() { say "$1"; exit 90; };
for p in uname sha256sum head; do command -v $p >/dev/null 2>&1 || no tools; done;
case "$(uname -s -m)" in "Linux $a") ;; *) no machine;; esac;
c=${XDG_CACHE_HOME:-$HOME/.cache}; case "$c" in /*) ;; *) no home;; esac;
d=$c/shieling; f=$d/agent-$g;
if test -e "$d"; then
test -d "$d" && test -O "$d" || no private;
case "$(ls -ld "$d")" in d????-??-*) ;; *) no private;; esac;
fi;
right() { s=$(sha256sum < "$1") && test "${s%% *}" = "$g"; };
if test -f "$f" && right "$f"; then :; else
mkdir -p "$d" || no store;
t=$d/.agent-$g.$$; rm -f "$t"; set -C;
clean() { rm -f "$t"; }; trap clean 0; trap "exit 90" 1 2 13 15;
: > "$t" || no store; set +C;
say upload;
head -c "$n" > "$t" || no store;
right "$t" || no digest;
chmod 700 "$t" && mv -f "$t" "$f" || no store;
trap - 0;
find "$d" -name "*agent-*" -mtime +30 -exec rm -f {} + 2>/dev/null;
fi;
trap - 1 2 13 15;
say start;
umask "$u";
exec "$f" "$@"
"#;

/// What the script says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    /// Send the program.
    Upload,
    /// It starts now.
    Start,
    /// It is for another system or processor.
    Machine,
    /// There is no home.
    Home,
    /// `sha256sum` or `head` is missing.
    Tools,
    /// Where it is kept, others could exchange it.
    Private,
    /// It cannot be stored.
    Store,
    /// What arrived has another digest.
    Digest,
}

impl Answer {
    /// The script's word in a line, if it is one. A login shell's own words may stand before it.
    pub(super) fn read(line: &[u8], digest: &str) -> Option<Self> {
        let line = String::from_utf8_lossy(line);
        let (_, word) = line.rsplit_once(&format!("shieling {digest} "))?;
        Some(match word.trim_end() {
            "upload" => Self::Upload,
            "start" => Self::Start,
            "machine" => Self::Machine,
            "home" => Self::Home,
            "tools" => Self::Tools,
            "private" => Self::Private,
            "store" => Self::Store,
            "digest" => Self::Digest,
            _ => return None,
        })
    }

    /// What it means for a person, and what can be done.
    pub(super) fn words(self, to: &str) -> (String, String) {
        let (what, instead) = match self {
            Self::Upload | Self::Start => ("has said something out of turn", "use the same shieling again"),
            Self::Machine => (
                "runs no Linux on the processor of this machine, for which the agent program is made",
                "use a machine that does",
            ),
            Self::Home => (
                "gives this user no absolute HOME or XDG_CACHE_HOME to keep the agent program in",
                "set one of them there",
            ),
            Self::Tools => (
                "has no `uname`, `sha256sum` or `head` on the PATH that its login shell sets, by which the agent program is \
                 checked and stored",
                "install coreutils or busybox there, or see what its start-up files do to PATH",
            ),
            Self::Private => (
                "has $XDG_CACHE_HOME/shieling or ~/.cache/shieling as something in which others could exchange the agent \
                 program: it is no directory, belongs to another user, or can be written by others",
                "see what it is, and remove it or have `chmod 700` done to it there",
            ),
            Self::Store => (
                "cannot store the agent program in $XDG_CACHE_HOME/shieling or ~/.cache/shieling",
                "make room there, or set XDG_CACHE_HOME there to a directory that can be written",
            ),
            Self::Digest => (
                "did not get the agent program as it was sent: its digest is another one, so it was not started",
                "try again; if it happens again, something on the way or on that disk changes data",
            ),
        };
        (format!("{to} {what}"), instead.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_login_shell_reads_the_command_as_one_line() {
        let command = command("0123abcd", 42, &Setup::default());
        let (_, script) = command.split_once('\'').expect("it is quoted");
        let (script, _) = script.rsplit_once('\'').expect("it is quoted");
        assert!(!script.contains(['\'', '!', '\n']), "{script}");
        // In fish a backslash escapes these two between single quotes, and nothing else.
        assert!(!script.contains("\\\\") && !script.contains("\\'"), "{script}");
    }

    #[test]
    fn words_of_the_login_shell_are_no_answers() {
        let read = |line: &str| Answer::read(line.as_bytes(), "ab");
        assert_eq!(read("shieling ab start"), Some(Answer::Start));
        assert_eq!(read("welcome!shieling ab upload\r"), Some(Answer::Upload));
        for line in ["", "start", "shieling start", "shieling cd start", "shieling ab go"] {
            assert_eq!(read(line), None, "{line}");
        }
    }
}
