//! Random scripts, the same for the same numbers.

use std::fmt::Write as _;

/// Numbers that depend on the seed alone.
pub(crate) struct Numbers(u64);

impl Numbers {
    /// Those of one round of a test.
    pub(crate) fn of(seed: u64, round: u64) -> Self {
        let mut numbers = Self((seed * 1_000_003 + round) | 1 << 40);
        for _ in 0..20 {
            numbers.below(2);
        }
        numbers
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }

    fn path(&mut self) -> String {
        let mut path = String::new();
        for depth in 0..=self.below(3) {
            if depth > 0 {
                path.push('/');
            }
            path.push(char::from(b'a' + u8::try_from(self.below(4)).expect("it is small")));
        }
        path
    }

    fn line(&mut self) -> String {
        let (one, mut other, number) = (self.path(), self.path(), self.below(1000));
        // What comes of copying a directory into itself depends on the order in which it is listed.
        if other.starts_with(&one) {
            other = "e".to_owned();
        }
        match self.below(14) {
            0 | 1 => format!("echo {number} > {one}"),
            2 => format!("echo {number} >> {one}"),
            3 => format!("mkdir -p {one}"),
            4 => format!("rm -rf {one}"),
            5 => format!("mv -T {one} {other}"),
            6 => format!("ln -sfn {other} {one}"),
            // To a name of its own: in an overlay each name of a file that gets another one has its own inode number, so that
            // `cp` and `mv` of one over the other do not notice that they are one file.
            7 => format!(
                "ln -fT -P {one} {}",
                ["w", "x", "y", "z"][usize::try_from(number % 4).expect("it is small")]
            ),
            8 => format!(
                "chmod {} {one}",
                ["600", "644", "700", "755"][usize::try_from(number % 4).expect("it is small")]
            ),
            // A copy into itself, by way of a link, ends where the order of the names has it end.
            9 => format!(
                "case $(realpath -m {other})/ in \"$(realpath -m {one})\"/*) ;; \
                 *) cp -rT --no-preserve=timestamps {one} {other} ;; esac"
            ),
            10 => format!("rm -rf {one}; mkdir {one}; echo {number} > {one}/a"),
            11 => format!("rmdir {one}"),
            12 => format!("truncate -s {number} {one}"),
            _ => format!("mkdir -p {one} && touch {one}/b {one}/c"),
        }
    }

    pub(crate) fn script(&mut self, lines: u64) -> String {
        let mut script = String::new();
        for _ in 0..lines {
            let _ = writeln!(script, "{{ {}; }} 2>/dev/null", self.line());
        }
        script.push_str("true\n");
        script
    }

    /// A line that leaves something which is held back, as a rule, or is of the same kind and is not.
    fn tool_line(&mut self) -> String {
        let (path, number) = (self.path(), self.below(1000));
        match self.below(12) {
            0 => format!(
                "printf '#!/bin/sh\\necho {number}\\n' > .git/hooks/pre-commit; chmod 755 .git/hooks/pre-commit"
            ),
            1 => "ln -s ../../a .git/hooks/post-commit".to_owned(),
            2 => format!("git config core.fsmonitor ./x{number}"),
            3 => format!("git config user.name u{number}; git config branch.x{number}.remote o"),
            4 => format!("mkdir -p {path} && echo x{number} > {path}/.envrc"),
            5 => format!(
                "mkdir -p .vscode; echo '{{\"tasks\":[{{\"command\":\"x{number}\",\"runOptions\":{{\"runOn\":\"folderOpen\"}}}}]}}' \
                 > .vscode/tasks.json"
            ),
            6 => "mkdir -p .vscode; echo '{\"editor.tabSize\": 2}' > .vscode/settings.json".to_owned(),
            // Under a name that no line writes to: that would wait for a reader.
            7 => format!("mkfifo {path}/p || mkfifo p"),
            // A link that leads out: nothing is there, since a later line writes through it, in `direct` on this machine.
            8 => format!("ln -sfn /nonexistent/of-a-test/{number} {path}"),
            9 => format!("git init -q {path}; git -C {path} config core.pager x{number}"),
            10 => format!("echo save-exact=true > .npmrc; test {number} -gt 500 || echo script-shell=x >> .npmrc"),
            _ => format!("rm -rf .vscode .npmrc .git/hooks; mkdir -p {path}"),
        }
    }

    /// As [`Self::script`], of which about one line in four is about settings of tools.
    pub(crate) fn script_with_tools(&mut self, lines: u64) -> String {
        let mut script = String::new();
        for _ in 0..lines {
            let line = match self.below(4) {
                0 => self.tool_line(),
                _ => self.line(),
            };
            let _ = writeln!(script, "{{ {line}; }} 2>/dev/null");
        }
        script.push_str("true\n");
        script
    }
}
