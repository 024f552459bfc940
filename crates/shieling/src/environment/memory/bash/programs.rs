//! Which of bashkit's commands there are in memory: bash's own builtins, and programs that behave as
//! those of a usual system do. Left out is what only bashkit has (`assert`, `semver`, `json`), what
//! needs what is not there (a network, a terminal, processes of a host), and what would answer wrongly.

use std::collections::HashSet;
use std::sync::LazyLock;

/// What bash has in itself. These are always there.
pub(super) const BUILTINS: &[&str] = &[
    ".",
    ":",
    "[",
    "alias",
    "bg",
    "break",
    "builtin",
    "caller",
    "cd",
    "command",
    "compgen",
    "complete",
    "compopt",
    "continue",
    "declare",
    "dirs",
    "disown",
    "echo",
    "enable",
    "eval",
    "exec",
    "exit",
    "export",
    "false",
    "fg",
    "getopts",
    "hash",
    "help",
    "jobs",
    "kill",
    "let",
    "local",
    "mapfile",
    "popd",
    "printf",
    "pushd",
    "pwd",
    "read",
    "readarray",
    "readonly",
    "return",
    "set",
    "shift",
    "shopt",
    "source",
    "test",
    "times",
    "trap",
    "true",
    "type",
    "typeset",
    "ulimit",
    "umask",
    "unalias",
    "unset",
    "wait",
];

/// The programs.
pub(super) const PROGRAMS: &[&str] = &[
    "awk",
    "b2sum",
    "base32",
    "base64",
    "basename",
    "bash",
    "bunzip2",
    "bzcat",
    "bzip2",
    "cat",
    "chmod",
    "cksum",
    "cmp",
    "column",
    "comm",
    "cp",
    "cut",
    "date",
    "dd",
    "df",
    "diff",
    "dirname",
    "du",
    "egrep",
    "env",
    "envsubst",
    "expand",
    "expr",
    "factor",
    "fgrep",
    "file",
    "find",
    "fmt",
    "fold",
    "gawk",
    "grep",
    "gunzip",
    "gzip",
    "head",
    "hexdump",
    "id",
    "install",
    "join",
    "ln",
    "ls",
    "md5sum",
    "mkdir",
    "mktemp",
    "mv",
    "nice",
    "nl",
    "nohup",
    "nproc",
    "numfmt",
    "od",
    "paste",
    "patch",
    "printenv",
    "readlink",
    "realpath",
    "rev",
    "rg",
    "rm",
    "rmdir",
    "sed",
    "seq",
    "sh",
    "sha1sum",
    "sha224sum",
    "sha256sum",
    "sha384sum",
    "sha512sum",
    "shuf",
    "sleep",
    "sort",
    "split",
    "stat",
    "strings",
    "sum",
    "tac",
    "tail",
    "tar",
    "tee",
    "timeout",
    "touch",
    "tr",
    "tree",
    "truncate",
    "tsort",
    "uname",
    "unexpand",
    "uniq",
    "unlink",
    "unzip",
    "wc",
    "which",
    "whoami",
    "xargs",
    "xxd",
    "yes",
    "zip",
];

/// Whether there is a command of this name, where only `allowed` programs are.
pub(super) fn there(name: &str, allowed: Option<&[String]>) -> bool {
    // Asked for each of bashkit's commands whenever a bash is made.
    static NAMES: LazyLock<(HashSet<&str>, HashSet<&str>)> = LazyLock::new(|| {
        let set = |names: &[&'static str]| names.iter().copied().collect();
        (set(BUILTINS), set(PROGRAMS))
    });
    let (builtins, programs) = &*NAMES;
    builtins.contains(name) || programs.contains(name) && may(name, allowed)
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
        for name in BUILTINS {
            assert!(there(name, Some(&only)), "{name}");
        }
        for name in PROGRAMS {
            assert!(there(name, None), "{name}");
            assert_eq!(there(name, Some(&only)), *name == "cat", "{name}");
        }
        for name in ["", "aaaa", "zzzz", "semver", "curl"] {
            assert!(!there(name, None), "{name}");
        }
    }
}
