//! Reads what `strace -f -y -o FILE` wrote: which programs started, and what was changed or tried to.

use std::collections::BTreeMap;

/// One finished system call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) process: u32,
    pub(crate) name: String,
    pub(crate) arguments: Vec<String>,
    pub(crate) result: String,
}

/// What a trace shows.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Trace {
    /// The paths of the programs that were started.
    pub(crate) started: Vec<String>,
    /// Every attempt to change something, as strace shows it. Failed ones count: what failed here,
    /// for want of a file or a right, works elsewhere.
    pub(crate) changes: Vec<String>,
    /// Whether the first process is seen to end, so that nothing after it is missing.
    pub(crate) complete: bool,
}

/// Objects that may be written: they keep nothing. A trailing `*` is any ending.
const KEEPS_NOTHING: &[(&str, &str)] = &[
    ("/dev/null", "keeps nothing"),
    ("/dev/zero", "keeps nothing"),
    ("/dev/full", "keeps nothing"),
    ("/dev/tty", "the terminal"),
    ("/dev/stdout", "a stream that is open already"),
    ("/dev/stderr", "a stream that is open already"),
    ("/dev/fd/*", "a stream that is open already"),
    ("/proc/self/fd/*", "a stream that is open already"),
    (
        "/tmp/tac*",
        "tac keeps a pipe's text here, to read it backwards, and removes it",
    ),
    (
        "/tmp/sh-thd.*",
        "bash keeps a here-document here that is too long for a pipe, and removes it",
    ),
];

/// Calls that change something whenever they are made.
const CHANGES: &[&str] = &[
    "creat",
    "unlink",
    "unlinkat",
    "rename",
    "renameat",
    "renameat2",
    "mkdir",
    "mkdirat",
    "rmdir",
    "symlink",
    "symlinkat",
    "link",
    "linkat",
    "truncate",
    "ftruncate",
    "chmod",
    "fchmod",
    "fchmodat",
    "fchmodat2",
    "chown",
    "fchown",
    "lchown",
    "fchownat",
    "utime",
    "utimes",
    "utimensat",
    "futimesat",
    "mknod",
    "mknodat",
    "setxattr",
    "lsetxattr",
    "fsetxattr",
    "removexattr",
    "lremovexattr",
    "fremovexattr",
    "kill",
    "tkill",
    "tgkill",
    "pidfd_send_signal",
    "settimeofday",
    "clock_settime",
    "adjtimex",
    "clock_adjtime",
    "sethostname",
    "setdomainname",
    "mount",
    "umount2",
    "pivot_root",
    "reboot",
    "swapon",
    "swapoff",
];

/// Calls that open, or talk; their arguments decide.
const DEPENDS: &[&str] = &["open", "openat", "openat2", "connect", "bind", "sendto"];

/// The list of calls to trace.
pub(crate) fn traced() -> String {
    // `?` lets strace pass over a call that this machine does not have.
    let calls: Vec<String> = ["execve", "execveat"]
        .iter()
        .chain(CHANGES)
        .chain(DEPENDS)
        .map(|call| format!("?{call}"))
        .collect();
    calls.join(",")
}

impl Trace {
    pub(crate) fn parse(text: &str) -> Self {
        let mut trace = Self::default();
        let first = text.lines().next().and_then(process);
        for line in text.lines() {
            trace.complete |= process(line) == first && (line.contains("+++ exited") || line.contains("+++ killed"));
        }
        for call in calls(text) {
            match call.name.as_str() {
                "execve" | "execveat" if call.result == "0" => {
                    trace
                        .started
                        .extend(call.arguments.iter().find_map(|argument| unquote(argument)));
                }
                "execve" | "execveat" => {}
                _ if changes(&call) => trace.changes.push(format!(
                    "{}({}) = {}",
                    call.name,
                    call.arguments.join(", "),
                    call.result
                )),
                _ => {}
            }
        }
        trace
    }
}

/// Whether this call changes something, or tries to.
fn changes(call: &Call) -> bool {
    let flags = |wanted: &[&str]| {
        call.arguments
            .iter()
            .any(|argument| wanted.iter().any(|flag| argument.contains(flag)))
    };
    match call.name.as_str() {
        "open" | "openat" | "openat2" => {
            flags(&["O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC", "O_APPEND"]) && !keeps_nothing(call)
        }
        "connect" | "bind" | "sendto" => flags(&["AF_INET", "AF_PACKET"]),
        // Signal 0 only asks, and a process may signal itself: `abort` does.
        "kill" | "tkill" | "tgkill" => {
            call.arguments.last().is_some_and(|signal| signal != "0")
                && call
                    .arguments
                    .first()
                    .is_none_or(|target| *target != call.process.to_string())
        }
        name => CHANGES.contains(&name) && !keeps_nothing(call),
    }
}

/// Whether every path of the call is one that keeps nothing.
fn keeps_nothing(call: &Call) -> bool {
    let mut paths = call
        .arguments
        .iter()
        .filter_map(|argument| unquote(argument).or_else(|| of_descriptor(argument)))
        .peekable();
    let harmless = |path: &str| {
        KEEPS_NOTHING.iter().any(|(known, _)| match known.strip_suffix('*') {
            Some(start) => path.starts_with(start),
            None => path == *known,
        })
    };
    paths.peek().is_some() && paths.all(|path| harmless(&path))
}

/// The path in `3</path>`; none for the directory that a relative path starts from (`AT_FDCWD</work>`).
fn of_descriptor(argument: &str) -> Option<String> {
    let (number, rest) = argument.split_once('<')?;
    number.parse::<u32>().ok()?;
    // A file that has no name any more is told with the one that it had.
    let rest = rest.strip_suffix("(deleted)").unwrap_or(rest);
    rest.strip_suffix('>').map(str::to_owned)
}

fn process(line: &str) -> Option<u32> {
    line.split_whitespace().next()?.parse().ok()
}

/// All finished calls, those put together that strace shows in two parts.
fn calls(text: &str) -> Vec<Call> {
    let mut open: BTreeMap<u32, String> = BTreeMap::new();
    let mut calls = Vec::new();
    for line in text.lines() {
        let Some(process) = process(line) else { continue };
        let rest = line
            .trim_start()
            .trim_start_matches(|c: char| c.is_ascii_digit())
            .trim_start();
        let whole = if let Some(start) = rest.strip_suffix("<unfinished ...>") {
            open.insert(process, start.trim_end().to_owned());
            continue;
        } else if let Some(resumed) = rest.strip_prefix("<... ") {
            let end = resumed.split_once(" resumed>").map_or("", |(_, end)| end);
            format!("{}{end}", open.remove(&process).unwrap_or_default())
        } else {
            rest.to_owned()
        };
        calls.extend(call(process, &whole));
    }
    // A call that never came back, because its process was killed in it, was made all the same.
    for (process, start) in open {
        calls.extend(call(process, &format!("{start}) = ?")));
    }
    calls
}

/// One call: `name(arguments) = result …`.
fn call(process: u32, text: &str) -> Option<Call> {
    let (name, rest) = text.split_once('(')?;
    if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
        return None;
    }
    let mut arguments = vec![String::new()];
    let (mut depth, mut quoted, mut escaped) = (0_usize, false, false);
    for (at, character) in rest.char_indices() {
        let argument = arguments.last_mut().expect("it starts with one and only grows");
        if quoted {
            argument.push(character);
            (quoted, escaped) = (escaped || character != '"', !escaped && character == '\\');
            continue;
        }
        match character {
            '"' => quoted = true,
            '(' | '[' | '{' => depth += 1,
            ')' if depth == 0 => {
                let result = rest[at + 1..]
                    .trim_start()
                    .strip_prefix('=')?
                    .split_whitespace()
                    .next()?
                    .to_owned();
                let arguments = arguments.iter().map(|argument| argument.trim().to_owned()).collect();
                return Some(Call {
                    process,
                    name: name.to_owned(),
                    arguments,
                    result,
                });
            }
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                arguments.push(String::new());
                continue;
            }
            _ => {}
        }
        argument.push(character);
    }
    None
}

/// The text of a C string literal, with the escapes that strace uses.
fn unquote(argument: &str) -> Option<String> {
    let inside = argument.strip_prefix('"')?.trim_end_matches('.').strip_suffix('"')?;
    let bytes = inside.as_bytes();
    let (mut text, mut at) = (Vec::new(), 0);
    while let Some(&byte) = bytes.get(at) {
        at += 1;
        if byte != b'\\' {
            text.push(byte);
            continue;
        }
        let escape = *bytes.get(at)?;
        at += 1;
        text.push(match escape {
            b'n' => b'\n',
            b't' => b'\t',
            b'r' => b'\r',
            b'v' => 0x0b,
            b'f' => 0x0c,
            b'0'..=b'7' => {
                let mut value = u32::from(escape - b'0');
                for _ in 0..2 {
                    match bytes.get(at) {
                        Some(digit @ b'0'..=b'7') => (value, at) = (value * 8 + u32::from(digit - b'0'), at + 1),
                        _ => break,
                    }
                }
                u8::try_from(value).ok()?
            }
            other => other,
        });
    }
    Some(String::from_utf8_lossy(&text).into_owned())
}

#[test]
fn a_trace_is_read_as_strace_writes_it() {
    let trace = Trace::parse(concat!(
        "10 execve(\"/usr/bin/bash\", [\"bash\", \"-c\", \"x) = 0\"], 0x7ffd /* 9 vars */) = 0\n",
        "10 openat(AT_FDCWD</work>, \"a.txt\", O_RDONLY) = 3</work/a.txt>\n",
        "10 openat(AT_FDCWD</work>, \"/dev/null\", O_WRONLY|O_CREAT|O_TRUNC, 0666) = 3</dev/null>\n",
        "10 openat(AT_FDCWD</work>, \"can\\141ry\", O_WRONLY|O_CREAT, 0666 <unfinished ...>\n",
        "11 execve(\"/bin/nope\", [\"nope\"], 0x1 /* 0 vars */) = -1 ENOENT (No such file or directory)\n",
        "10 <... openat resumed>) = 3</work/canary>\n",
        "11 --- SIGCHLD {si_signo=SIGCHLD, si_code=CLD_EXITED} ---\n",
        "11 unlinkat(AT_FDCWD</work>, \"gone\", 0) = -1 ENOENT (No such file or directory)\n",
        "11 kill(11, SIGABRT) = 0\n",
        "11 kill(12, 0) = 0\n",
        "11 kill(12, SIGTERM) = 0\n",
        "11 +++ exited with 0 +++\n",
        "12 rename(\"a\", \"b\" <unfinished ...>\n",
        "10 +++ exited with 0 +++\n",
    ));
    assert_eq!(trace.started, ["/usr/bin/bash"]);
    assert_eq!(
        trace.changes,
        [
            "openat(AT_FDCWD</work>, \"can\\141ry\", O_WRONLY|O_CREAT, 0666) = 3</work/canary>",
            "unlinkat(AT_FDCWD</work>, \"gone\", 0) = -1",
            "kill(12, SIGTERM) = 0",
            "rename(\"a\", \"b\") = ?",
        ]
    );
    assert!(trace.complete);
    assert!(!Trace::parse("10 execve(\"/usr/bin/bash\", [\"bash\"], 0x1 /* 0 vars */) = 0\n").complete);
}

#[test]
fn a_path_that_only_looks_harmless_is_not() {
    let changes = |call: &str| !Trace::parse(&format!("1 {call}\n")).changes.is_empty();
    assert!(!changes("openat(AT_FDCWD</work>, \"/dev/fd/63\", O_WRONLY) = 4"));
    assert!(!changes("ftruncate(1</dev/null>, 0) = -1 EINVAL (Invalid argument)"));
    assert!(changes("openat(AT_FDCWD</work>, \"/dev/nullx\", O_WRONLY|O_CREAT) = 4"));
    assert!(changes("openat(AT_FDCWD</work>, \"./dev/null\", O_WRONLY|O_CREAT) = 4"));
    assert!(changes("rename(\"/dev/null\", \"canary\") = 0"));
    assert!(changes("ftruncate(3</work/canary>, 0) = 0"));
    assert!(!changes("ftruncate(4</tmp/tacyAyEPX>(deleted), 0) = 0"));
    assert!(changes("ftruncate(3</work/canary>(deleted), 0) = 0"));
    assert!(changes(
        "connect(3<TCP:[1]>, {sa_family=AF_INET, sin_port=htons(80)}, 16) = -1 ENETUNREACH (x)"
    ));
    assert!(!changes(
        "connect(3<UNIX:[1]>, {sa_family=AF_UNIX, sun_path=\"/var/run/nscd/socket\"}, 110) = -1 ENOENT (x)"
    ));
}
