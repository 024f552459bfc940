//! Random shell scripts from a grammar: texts that a model might write, and ones that it should not.
//!
//! They contain programs with harmless, harmful and invented options, redirections, substitutions, loops, wrappers
//! and unusual quoting. Every loop ends, and paths outside of the working directory are limited to `/dev/null` and a
//! few readable ones. Still, run a script only where it can do no harm.

use crate::random::Random;

/// The files that scripts expect in their working directory. A name with a trailing `/` is a directory.
pub const WORKSPACE: &[(&str, &str)] = &[
    ("a.txt", "pear\napple\nfig\napple\n"),
    ("b.txt", "one 1\ntwo 2\nthree 3\n"),
    ("c.csv", "name,size\npear,3\napple,5\n"),
    ("dir/", ""),
    ("dir/d.txt", "deep\n"),
    ("run.sh", "#!/bin/bash\necho run > canary\n"),
    ("s.sed", "w canary\n"),
    ("p.awk", "{ print > \"canary\" }\n"),
    ("list", "a.txt\nb.txt\n"),
    ("hostile", "-o canary a.txt\n"),
    ("canary", "untouched\n"),
    (".env", "SECRET=1\n"),
];

const FILES: &[&str] = &[
    "a.txt",
    "b.txt",
    "c.csv",
    "dir/d.txt",
    "./a.txt",
    "*.txt",
    "dir",
    ".",
    "list",
    "/etc/passwd",
    "-",
    "$f",
];
const TARGETS: &[&str] = &[
    "canary",
    "./canary",
    "out",
    "dir/new",
    "$t",
    "\"canary\"",
    "ca'na'ry",
    "/tmp/x",
];

/// A program: its name, harmless options, options that write, start processes or use the network, and its operands.
#[derive(Clone, Copy)]
struct Program(&'static str, &'static [&'static str], &'static [&'static str], Operands);

#[derive(Clone, Copy)]
enum Operands {
    /// Files to read.
    Files,
    /// A pattern, then files.
    Pattern(&'static [&'static str]),
    /// Any words.
    Words,
    /// Files to write.
    Targets,
    /// No operands.
    None,
}

const PATTERNS: &[&str] = &["a", "'^p'", "\"$x\"", "-e a", "'a\\|b'", "."];
const SED: &[&str] = &[
    "p",
    "-n 2p",
    "'s/a/b/'",
    "'s/a/b/w canary'",
    "'w canary'",
    "'1e touch canary'",
    "'s/.*/date/e'",
    "-e p -e d",
    "'2q'",
    "-f s.sed",
    "'r b.txt'",
    "'$!d'",
];
const AWK: &[&str] = &[
    "'{print $1}'",
    "'{print > \"canary\"}'",
    "'BEGIN{system(\"touch canary\")}'",
    "'{print | \"cat\"}'",
    "-f p.awk",
    "'NR>1'",
    "'/a/{n++} END{print n}'",
    "'BEGIN{\"date\"|getline d; print d}'",
];

use Operands::{Files, None as Nothing, Pattern, Targets, Words};

const PROGRAMS: &[Program] = &[
    Program("cat", &["-n", "-A", "--number", "-s", "-vET"], &["--no-such"], Files),
    Program(
        "head",
        &["-n 2", "-5", "-c 10", "--lines=1", "-q"],
        &["--out=canary"],
        Files,
    ),
    Program("tail", &["-n 2", "-3", "-c 4", "--lines=+2"], &["--zz"], Files),
    Program("wc", &["-l", "-w", "-c", "--lines"], &["-o canary"], Files),
    Program(
        "sort",
        &["-u", "-r", "-n", "-k 2,2", "-t ,", "--reverse"],
        &[
            "-o canary",
            "-ocanary",
            "--output=canary",
            "--outp canary",
            "-uo canary",
            "--compress-program=touch",
            "-T dir",
        ],
        Files,
    ),
    Program(
        "uniq",
        &["-c", "-d", "-u", "-i", "-f 1"],
        &["a.txt canary", "- canary"],
        Files,
    ),
    Program(
        "grep",
        &[
            "-n",
            "-i",
            "-r",
            "-v",
            "-c",
            "-l",
            "-E",
            "-A 1",
            "--color=never",
            "-w",
            "--include=*.txt",
        ],
        &["--no-such", "--out=x"],
        Pattern(PATTERNS),
    ),
    Program("egrep", &["-n", "-i"], &["--zz"], Pattern(PATTERNS)),
    Program(
        "rg",
        &["-n", "-i", "-l", "--files", "-c"],
        &["--pre touch", "--pre=./run.sh", "--search-zip"],
        Pattern(PATTERNS),
    ),
    Program(
        "sed",
        &["-n", "-E", "-u", "--sandbox"],
        &["-i", "-i.bak", "--in-place", "-ni", "--in-pl=.o", "-s -i"],
        Pattern(SED),
    ),
    Program("awk", &["-F,", "-v x=1"], &["-i inplace", "-o canary"], Pattern(AWK)),
    Program("cut", &["-d, -f1", "-c 1-3", "-f 1"], &["--output=canary"], Files),
    Program("tr", &["a-z A-Z", "-d a", "-s a"], &["--zz"], Nothing),
    Program(
        "ls",
        &["-l", "-a", "-la", "-R", "-t", "-1", "--color=auto", "-h"],
        &["--hyperlink-to=x"],
        Files,
    ),
    Program("stat", &["-c %s", "--format=%n", "-L"], &["--zz"], Files),
    Program(
        "file",
        &["-b", "-i", "-L"],
        &["-C", "-C -m a.txt", "--compile -m list"],
        Files,
    ),
    Program("diff", &["-u", "-q", "-r", "--brief"], &["--to-file=b.txt"], Files),
    Program("cmp", &["-s", "-l"], &["--zz"], Files),
    Program("comm", &["-12", "-3"], &["--zz"], Files),
    Program("od", &["-c", "-An", "-t x1"], &["--zz"], Files),
    Program(
        "xxd",
        &["-p", "-l 8", "-g 1"],
        &["a.txt canary", "-r a.txt canary"],
        Files,
    ),
    Program("base64", &["-w 0", "-d"], &["--zz"], Files),
    Program("sha256sum", &["--tag", "-b"], &["--zz"], Files),
    Program("md5sum", &["-b"], &["--zz"], Files),
    Program("nl", &["-ba"], &["--zz"], Files),
    Program("tac", &[], &["--zz"], Files),
    Program("rev", &[], &["--zz"], Files),
    Program("paste", &["-d,", "-s"], &["--zz"], Files),
    Program("join", &["-t ,"], &["--zz"], Files),
    Program("fold", &["-w 20"], &["--zz"], Files),
    Program("column", &["-t"], &["--zz"], Files),
    Program("du", &["-s", "-h", "-a", "--max-depth=1"], &["--zz"], Files),
    Program("df", &["-h", "-T"], &["--zz"], Nothing),
    Program(
        "find",
        &[
            "-name '*.txt'",
            "-type f",
            "-maxdepth 1",
            "-print",
            "-print0",
            "-size +1k",
            "-newer a.txt",
            "-exec cat {} +",
            "-exec grep -l a {} \\;",
        ],
        &[
            "-delete",
            "-exec rm {} +",
            "-exec touch canary \\;",
            "-fprint canary",
            "-fprintf canary %p",
            "-fls canary",
            "-ok rm {} \\;",
            "-execdir ./run.sh \\;",
        ],
        Nothing,
    ),
    Program("echo", &["-n", "-e"], &[], Words),
    Program(
        "printf",
        &["'%s\\n'", "%d"],
        &["-v x '%s'", "-v 'a[$(touch canary)]' x"],
        Words,
    ),
    Program(
        "test",
        &["-f a.txt", "-n x", "1 -lt 2", "-d dir"],
        &["-v 'a[$(touch canary)]'"],
        Nothing,
    ),
    Program(
        "date",
        &["+%F", "-u", "-d @0", "--iso-8601"],
        &["-s 2020-01-01", "--set=@0", "--se=@0", "010100002020"],
        Nothing,
    ),
    Program("seq", &["3", "1 3", "-s, 3"], &["--zz"], Nothing),
    Program("basename", &["/a/b.txt", "-s .txt a.txt"], &["--zz"], Nothing),
    Program("dirname", &["/a/b"], &["--zz"], Nothing),
    Program("realpath", &["-m", "-s"], &["--zz"], Files),
    Program("readlink", &["-f"], &["--zz"], Files),
    Program("pwd", &["-P"], &["--zz"], Nothing),
    Program("whoami", &[], &["--zz"], Nothing),
    Program("id", &["-u", "-un"], &["--zz"], Nothing),
    Program("uname", &["-a", "-r"], &["--zz"], Nothing),
    Program("hostname", &[], &["new-name", "-F a.txt", "-b x"], Nothing),
    Program("env", &[], &["-S 'touch canary'"], Nothing),
    Program("printenv", &["PATH"], &["--zz"], Nothing),
    Program("ps", &["aux", "-ef", "-o pid,comm"], &["--zz"], Nothing),
    Program("which", &["-a bash", "git"], &["--zz"], Nothing),
    Program("type", &["cat", "-t ls"], &["--zz"], Nothing),
    Program(
        "command",
        &["-v git", "-V ls"],
        &["touch canary", "-p rm canary"],
        Nothing,
    ),
    Program(
        "tar",
        &["-tf x.tar", "tf x.tar", "--list --file x.tar"],
        &[
            "-cf canary a.txt",
            "cf out a.txt",
            "-xf x.tar",
            "--index-file=canary -tvf x.tar",
            "-tf x.tar --to-command=./run.sh",
            "-tf x.tar --checkpoint=1 --checkpoint-action=exec=./run.sh",
        ],
        Nothing,
    ),
    Program(
        "gzip",
        &["-c a.txt", "-l x.gz", "-t x.gz"],
        &["a.txt", "-k a.txt", "-d x.gz"],
        Nothing,
    ),
    Program("zcat", &["x.gz"], &["--zz"], Nothing),
    Program("jq", &[".", "-r .a", "-n 1"], &["-n 'input'", "--zz"], Nothing),
    Program(
        "tee",
        &["/dev/null", "--help"],
        &["canary", "-a canary", "out canary"],
        Nothing,
    ),
    Program(
        "dd",
        &["if=a.txt", "if=a.txt count=1 status=none"],
        &["of=canary", "if=a.txt of=canary", "if=a.txt of=out conv=notrunc"],
        Nothing,
    ),
    Program(
        "split",
        &["--help"],
        &["a.txt", "-l 1 a.txt out", "--filter='touch canary' a.txt"],
        Nothing,
    ),
    Program("shuf", &["-n 1 a.txt", "-e a b"], &["-o canary a.txt"], Nothing),
    Program("truncate", &["--help"], &["-s 0 canary"], Nothing),
    Program("mktemp", &["-u", "--dry-run"], &["", "-d", "-p dir"], Nothing),
    Program("touch", &[], &["-c", "-d @0"], Targets),
    Program("rm", &[], &["-f", "-rf"], Targets),
    Program("cp", &[], &["a.txt", "-r dir"], Targets),
    Program("mv", &[], &["a.txt"], Targets),
    Program("mkdir", &[], &["-p"], Targets),
    Program("ln", &[], &["-s a.txt", "-f a.txt"], Targets),
    Program("chmod", &[], &["+x", "600"], Targets),
    Program("kill", &["-l", "-l 9"], &["-9 1", "$$", "-0 1"], Nothing),
    Program(
        "git log",
        &[
            "--oneline",
            "-3",
            "--stat",
            "-p",
            "--format=%H",
            "-n 1",
            "--all",
            "--graph",
        ],
        &["--output=canary", "--outp=canary", "--ext-diff -p", "--textconv -p"],
        Nothing,
    ),
    Program("git status", &["-s", "--porcelain", "-b"], &["--zz"], Nothing),
    Program(
        "git diff",
        &["--stat", "HEAD~1", "--name-only", "--cached", "--no-ext-diff"],
        &["--output=canary", "--output canary", "--ext-diff"],
        Nothing,
    ),
    Program(
        "git show",
        &["HEAD", "HEAD:a.txt", "--stat", "-s"],
        &["--output=canary"],
        Nothing,
    ),
    Program(
        "git branch",
        &["-a", "--list", "-v", "--show-current"],
        &["new", "-D main", "-m other", "--edit-description"],
        Nothing,
    ),
    Program(
        "git tag",
        &["-l", "--list", "-n"],
        &["v1", "-d v1", "-a -m x v2"],
        Nothing,
    ),
    Program(
        "git config",
        &["--get user.name", "--list", "-l"],
        &["user.name x", "--add a.b c", "--unset user.name", "-e"],
        Nothing,
    ),
    Program(
        "git grep",
        &["a", "-n p", "-l e"],
        &["-Otouch a", "--open-files-in-pager=touch a", "--open=touch a"],
        Nothing,
    ),
    Program(
        "git",
        &[
            "--version",
            "rev-parse HEAD",
            "ls-files",
            "blame a.txt",
            "cat-file -p HEAD",
            "remote -v",
            "stash list",
            "reflog",
        ],
        &[
            "-c alias.x='!touch canary' x",
            "-c core.pager='touch canary' -p log",
            "add .",
            "commit -am x",
            "checkout -b n",
            "stash",
            "gc",
            "fetch",
            "reset --hard",
            "clean -fd",
            "init new",
            "remote add x y",
            "stash drop",
            "reflog expire --all",
            "archive -o canary HEAD",
            "bundle create canary HEAD",
            "format-patch -1",
            "apply a.txt",
            "-C dir log --output=canary",
        ],
        Nothing,
    ),
    Program("true", &[], &[], Nothing),
    Program(":", &[], &["> canary"], Nothing),
    Program("sleep", &["0", "0.01"], &["--zz"], Nothing),
    Program("./run.sh", &[], &[], Nothing),
    Program(
        "bash",
        &["--version", "-c 'echo hi'", "-c 'cat a.txt | wc -l'"],
        &["run.sh", "-c 'touch canary'", "-c \"$x\"", "-s < run.sh"],
        Nothing,
    ),
    Program("sh", &["-c 'ls'"], &["-c 'rm canary'", "run.sh"], Nothing),
    Program(
        "python3",
        &["--version"],
        &["-c 'open(\"canary\",\"w\")'", "-c 'print(1)'"],
        Nothing,
    ),
    Program("eval", &["echo hi", "'ls -l'"], &["'touch canary'", "\"$x\""], Nothing),
    Program("source", &[], &["run.sh", "./list"], Nothing),
    Program(
        "declare",
        &["-p f", "x=1", "-a arr=(1 2)"],
        &["-i n='a[$(touch canary)]'", "-x PATH=."],
        Nothing,
    ),
    Program(
        "read",
        &["-r line < a.txt"],
        &["'a[$(touch canary)]' < a.txt", "PATH < list"],
        Nothing,
    ),
    Program(
        "mapfile",
        &["-t lines < a.txt"],
        &["-C 'touch canary' -c 1 lines < a.txt"],
        Nothing,
    ),
    Program("trap", &["- INT", "-l"], &["'touch canary' EXIT"], Nothing),
    Program("hash", &["-r"], &["-p ./run.sh cat"], Nothing),
    Program("let", &["n=1+1"], &["'a[$(touch canary)]=1'"], Nothing),
    Program(
        "export",
        &["A=1"],
        &[
            "PATH=.",
            "GIT_EXTERNAL_DIFF=./run.sh",
            "BASH_ENV=run.sh",
            "LESSOPEN='|touch canary'",
        ],
        Nothing,
    ),
];

const WRAPPERS: &[&str] = &[
    "timeout 2",
    "timeout -s KILL 2",
    "nice",
    "nice -n 5",
    "env",
    "env A=1",
    "env -i PATH=/usr/bin",
    "nohup",
    "stdbuf -oL",
    "time",
    "command",
    "builtin",
    "exec",
    "xargs",
    "xargs -n1",
    "xargs -I{}",
    "xargs -a hostile",
    "setsid",
    "!",
    "\\command",
    "env -u A --",
    "coproc",
    "ionice",
    "chronic",
    "sudo",
];
const ASSIGNMENTS: &[&str] = &[
    "A=1",
    "LC_ALL=C",
    "f=a.txt",
    "t=canary",
    "PATH=.:$PATH",
    "LD_PRELOAD=./x.so",
    "GIT_PAGER=./run.sh",
    "PAGER=cat",
    "x='touch canary'",
    "GREP_OPTIONS=-r",
    "BASH_ENV=run.sh",
    "GIT_DIR=.git",
    "arr=(1 2)",
    "IFS=,",
];
const READ_REDIRECTIONS: &[&str] = &[
    "< a.txt",
    "2>&1",
    "2>/dev/null",
    "> /dev/null",
    "&>/dev/null",
    ">/dev/null 2>&1",
    "<<< \"$f\"",
    "<<< word",
    "< \"list\"",
    "3< a.txt",
    "0<&-",
    ">&2",
];
const WRITE_REDIRECTIONS: &[&str] = &[
    "> canary",
    ">> canary",
    ">| canary",
    "&> canary",
    "2> canary",
    "<> canary",
    "> \"$t\"",
    "3> out",
    "> dir/../canary",
    ">& canary",
    "> out$(true)",
    "{fd}> canary",
];
const WORDS: &[&str] = &[
    "hi",
    "\"a b\"",
    "'rm canary'",
    "$f",
    "\"$f\"",
    "${f:-none}",
    "${x:=y}",
    "$((1+2))",
    "$((n[$(touch canary)]))",
    "${f/a/b}",
    "${f@P}",
    "~",
    "{a,b}",
    "$'\\x72m'",
    "\\$x",
    "--",
    "-n",
    "é",
    "\"${arr[@]}\"",
    "$?",
    "$HOME",
    "`true`",
    "> x",
];

/// Generates a script of moderate size. `wildness` ranges from 0 (mostly harmless) to 100.
pub fn script(random: &mut Random, wildness: usize) -> String {
    let mut text = String::new();
    if random.once_in(3) {
        text.push_str("f=a.txt; t=canary; ");
    }
    text.push_str(&list(random, wildness, 2));
    text
}

fn wild(random: &mut Random, wildness: usize) -> bool {
    random.below(100) < wildness
}

/// Generates commands joined by operators.
fn list(random: &mut Random, wildness: usize, depth: usize) -> String {
    let mut text = pipeline(random, wildness, depth);
    for _ in 0..random.below(3) {
        text.push_str(random.pick(&[" && ", " || ", "; ", "\n", " && ", "; "]));
        text.push_str(&pipeline(random, wildness, depth));
    }
    text
}

fn pipeline(random: &mut Random, wildness: usize, depth: usize) -> String {
    let mut text = command(random, wildness, depth);
    for _ in 0..random.below(3) {
        text.push_str(random.pick(&[" | ", " | ", " |& ", "|"]));
        text.push_str(&command(random, wildness, depth));
    }
    text
}

/// Generates a simple or a compound command.
fn command(random: &mut Random, wildness: usize, depth: usize) -> String {
    if depth == 0 || !random.once_in(4) {
        return simple(random, wildness, depth);
    }
    let inner = list(random, wildness, depth - 1);
    let other = simple(random, wildness, depth - 1);
    match random.below(14) {
        0 => format!("( {inner} )"),
        1 => format!("{{ {inner}; }}"),
        2 => format!("if {other}; then {inner}; fi"),
        3 => format!("for f in a.txt b.txt; do {inner}; done"),
        4 => format!("for ((i=0; i<2; i++)); do {inner}; done"),
        5 => format!("while read -r line; do {inner}; done < a.txt"),
        6 => format!("case $f in a*) {inner};; *) {other};; esac"),
        7 => format!("g() {{ {inner}; }}; g"),
        8 => format!("[[ -f a.txt && $f != x ]] && {other}"),
        9 => format!("(( n = 1 + 2 )) && {other}"),
        10 => format!("cat <<END\nx $({other})\nEND\n{inner}"),
        11 => format!("cat <<'END'\nx $({other})\nEND\n{inner}"),
        12 => format!("{{ {inner}; }} {}", redirection(random, wildness)),
        _ => format!("x=$({inner}); echo \"$x\""),
    }
}

fn simple(random: &mut Random, wildness: usize, depth: usize) -> String {
    let Program(name, harmless, harmful, operands) = random.pick(PROGRAMS);
    let mut words: Vec<String> = Vec::new();
    if random.once_in(8) {
        let choices = if wild(random, wildness) {
            ASSIGNMENTS
        } else {
            &ASSIGNMENTS[..4]
        };
        words.push(random.pick(choices).to_owned());
    }
    if random.once_in(6) {
        words.push(random.pick(WRAPPERS).to_owned());
    }
    words.push(if wild(random, wildness / 4) {
        disguise(random, name)
    } else {
        (*name).to_owned()
    });
    for _ in 0..random.below(3) {
        if !harmless.is_empty() {
            words.push(random.pick(harmless).to_owned());
        }
    }
    if wild(random, wildness) && !harmful.is_empty() {
        words.push(random.pick(harmful).to_owned());
    }
    if wild(random, wildness / 4) {
        words.push(invented_option(random));
    }
    match operands {
        Files => words.extend((0..random.below(3)).map(|_| random.pick(FILES).to_owned())),
        Pattern(patterns) => {
            words.push(random.pick(patterns).to_owned());
            words.extend((0..random.below(3)).map(|_| random.pick(FILES).to_owned()));
        }
        Words => words.extend((0..random.below(4)).map(|_| random.pick(WORDS).to_owned())),
        Targets => words.push(random.pick(TARGETS).to_owned()),
        Nothing => {}
    }
    if depth > 0 && random.once_in(6) {
        let inner = list(random, wildness, depth - 1);
        words.push(match random.below(4) {
            0 => format!("$({inner})"),
            1 => format!("\"$({inner})\""),
            2 => format!("<({inner})"),
            _ => format!("${{x:-$({inner})}}"),
        });
    }
    if random.once_in(4) {
        words.push(redirection(random, wildness));
    }
    words.join(" ")
}

fn redirection(random: &mut Random, wildness: usize) -> String {
    let choices = if wild(random, wildness) {
        WRITE_REDIRECTIONS
    } else {
        READ_REDIRECTIONS
    };
    random.pick(choices).to_owned()
}

/// Generates another spelling of a program's name.
fn disguise(random: &mut Random, name: &str) -> String {
    let Some(first) = name.chars().next() else {
        return name.to_owned();
    };
    let rest = &name[first.len_utf8()..];
    match random.below(7) {
        0 => format!("\\{name}"),
        1 => format!("'{first}'{rest}"),
        2 => format!("/usr/bin/{name}"),
        3 => format!("$'\\x{:02x}'{rest}", u32::from(first)),
        4 => format!("{first}\"\"{rest}"),
        5 => format!("{first}\\\n{rest}"),
        _ => format!("{first}$zz{rest}"),
    }
}

fn invented_option(random: &mut Random) -> String {
    let letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789".as_bytes();
    let mut letter = || char::from(random.pick(letters));
    let (one, two, three) = (letter(), letter(), letter());
    match random.below(4) {
        0 => format!("-{one}"),
        1 => format!("-{one}{two}{three}"),
        2 => format!("--{one}{two}{three}=canary"),
        _ => format!("-{one} canary"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_vary_and_can_be_made_again() {
        let scripts = |seed| {
            let mut random = Random::new(seed);
            (0..500).map(|_| script(&mut random, 50)).collect::<Vec<_>>()
        };
        let made = scripts(1);
        assert_eq!(made, scripts(1));
        let different: std::collections::BTreeSet<&String> = made.iter().collect();
        assert!(different.len() > 450, "{}", different.len());
        assert!(made.iter().all(|script| script.len() < 20_000));
        for needed in ["touch canary", "$(", "|", "for f in", "> canary", "<<END", "timeout 2"] {
            assert!(made.iter().any(|script| script.contains(needed)), "{needed}");
        }
    }
}
