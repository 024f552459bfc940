//! Which of bashkit's commands there are in memory: bash's own builtins, and programs that behave as
//! those of a usual system do. Left out is what only bashkit has (`assert`, `semver`, `json`), what
//! needs what is not there (a network, a terminal, processes of a host), and what would answer wrongly.

use std::collections::HashMap;
use std::sync::LazyLock;

use self::Work::{Other, Plain};

/// What a command works on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    /// Only on files and streams, as long as it is bashkit's: see [`super::plain`].
    Plain,
    /// It runs others, sets variables or looks at them; or nobody has looked whether it does.
    Other,
}

/// A command.
type Row = (&'static str, Work);

/// What bash has in itself. These are always there.
pub(super) const BUILTINS: &[Row] = &[
    (".", Other),
    (":", Plain),
    ("[", Other),
    ("alias", Other),
    ("bg", Other),
    ("break", Other),
    ("builtin", Other),
    ("caller", Other),
    ("cd", Other),
    ("command", Other),
    ("compgen", Other),
    ("complete", Other),
    ("compopt", Other),
    ("continue", Other),
    ("declare", Other),
    ("dirs", Other),
    ("disown", Other),
    ("echo", Plain),
    ("enable", Other),
    ("eval", Other),
    ("exec", Other),
    ("exit", Other),
    ("export", Other),
    ("false", Plain),
    ("fg", Other),
    ("getopts", Other),
    ("hash", Other),
    ("help", Other),
    ("jobs", Other),
    ("kill", Other),
    ("let", Other),
    ("local", Other),
    ("mapfile", Other),
    ("popd", Other),
    ("printf", Other),
    ("pushd", Other),
    ("pwd", Plain),
    ("read", Other),
    ("readarray", Other),
    ("readonly", Other),
    ("return", Other),
    ("set", Other),
    ("shift", Other),
    ("shopt", Other),
    ("source", Other),
    ("test", Other),
    ("times", Other),
    ("trap", Other),
    ("true", Plain),
    ("type", Other),
    ("typeset", Other),
    ("ulimit", Other),
    ("umask", Other),
    ("unalias", Other),
    ("unset", Other),
    ("wait", Other),
];

/// The programs.
pub(super) const PROGRAMS: &[Row] = &[
    ("awk", Other),
    ("b2sum", Plain),
    ("base32", Plain),
    ("base64", Plain),
    ("basename", Plain),
    ("bash", Other),
    ("bunzip2", Other),
    ("bzcat", Other),
    ("bzip2", Other),
    ("cat", Plain),
    ("chmod", Other),
    ("cksum", Plain),
    ("cmp", Plain),
    ("column", Plain),
    ("comm", Plain),
    ("cp", Plain),
    ("cut", Plain),
    ("date", Plain),
    ("dd", Other),
    ("df", Other),
    ("diff", Plain),
    ("dirname", Plain),
    ("du", Plain),
    ("egrep", Plain),
    ("env", Other),
    ("envsubst", Other),
    ("expand", Plain),
    ("expr", Plain),
    ("factor", Plain),
    ("fgrep", Plain),
    ("file", Plain),
    ("find", Other),
    ("fmt", Plain),
    ("fold", Plain),
    ("gawk", Other),
    ("grep", Plain),
    ("gunzip", Other),
    ("gzip", Other),
    ("head", Plain),
    ("hexdump", Plain),
    ("id", Other),
    ("install", Other),
    ("join", Plain),
    ("ln", Plain),
    ("ls", Plain),
    ("md5sum", Plain),
    ("mkdir", Plain),
    ("mktemp", Other),
    ("mv", Plain),
    ("nice", Other),
    ("nl", Plain),
    ("nohup", Other),
    ("nproc", Other),
    ("numfmt", Other),
    ("od", Plain),
    ("paste", Plain),
    ("patch", Other),
    ("printenv", Other),
    ("readlink", Plain),
    ("realpath", Plain),
    ("rev", Plain),
    ("rg", Plain),
    ("rm", Plain),
    ("rmdir", Plain),
    ("sed", Plain),
    ("seq", Plain),
    ("sh", Other),
    ("sha1sum", Plain),
    ("sha224sum", Plain),
    ("sha256sum", Plain),
    ("sha384sum", Plain),
    ("sha512sum", Plain),
    ("shuf", Other),
    ("sleep", Other),
    ("sort", Plain),
    ("split", Other),
    ("stat", Plain),
    ("strings", Plain),
    ("sum", Plain),
    ("tac", Plain),
    ("tail", Plain),
    ("tar", Other),
    ("tee", Plain),
    ("timeout", Other),
    ("touch", Plain),
    ("tr", Plain),
    ("tree", Plain),
    ("truncate", Plain),
    ("tsort", Plain),
    ("uname", Other),
    ("unexpand", Plain),
    ("uniq", Plain),
    ("unlink", Plain),
    ("unzip", Other),
    ("wc", Plain),
    ("which", Other),
    ("whoami", Other),
    ("xargs", Other),
    ("xxd", Plain),
    ("yes", Other),
    ("zip", Other),
];

/// Whether there is a command of this name, where only `allowed` programs are.
pub(super) fn there(name: &str, allowed: Option<&[String]>) -> bool {
    known(name).is_some_and(|(is_builtin, _)| is_builtin || may(name, allowed))
}

/// Whether a command of this name only works on files and streams.
pub(super) fn is_plain(name: &str) -> bool {
    known(name).is_some_and(|(_, work)| work == Plain)
}

/// Whether a command is bash's own, and what it works on.
fn known(name: &str) -> Option<(bool, Work)> {
    // Asked for each of bashkit's commands whenever a bash is made.
    static NAMES: LazyLock<HashMap<&str, (bool, Work)>> = LazyLock::new(|| {
        let builtins = BUILTINS.iter().map(|&(name, work)| (name, (true, work)));
        let programs = PROGRAMS.iter().map(|&(name, work)| (name, (false, work)));
        builtins.chain(programs).collect()
    });
    NAMES.get(name).copied()
}

/// Whether a program of this name may be there.
pub(super) fn may(name: &str, allowed: Option<&[String]>) -> bool {
    allowed.is_none_or(|allowed| allowed.iter().any(|entry| entry == name))
}

#[cfg(test)]
mod tests {
    use super::{BUILTINS, PROGRAMS, there};

    #[test]
    fn each_name_is_found() {
        let only = ["cat".to_owned()];
        for (name, _) in BUILTINS {
            assert!(there(name, Some(&only)), "{name}");
        }
        for (name, _) in PROGRAMS {
            assert!(there(name, None), "{name}");
            assert_eq!(there(name, Some(&only)), *name == "cat", "{name}");
        }
        for name in ["", "aaaa", "zzzz", "semver", "curl"] {
            assert!(!there(name, None), "{name}");
        }
    }
}
