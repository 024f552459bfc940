//! The table of commands in memory: builtins of bash, and programs, each with its use of standard input and its
//! unsupported options. It omits commands that only bashkit has (`assert`, `json`), those that need something missing
//! (a network, a terminal, processes of a host), and those that would give wrong results: these are refused with a
//! message before they run.

use std::collections::HashMap;
use std::sync::LazyLock;

use self::Input::{Always, Awk, Bare, Dash, Dd, Files, First, Never, Pattern, Tar};

/// The builtins of bash, which always exist. Those with a `+` only work on files and streams.
const BUILTINS: &str = ". :+ [ alias bg break builtin caller cd command compgen complete compopt continue declare \
    dirs disown echo+ enable eval exec exit export false+ fg getopts hash help jobs kill let local mapfile popd \
    printf pushd pwd+ read readarray readonly return set shift shopt source test times trap true+ type typeset \
    ulimit umask unalias unset wait";

/// Programs that never read standard input, and support all of their usual options.
const OTHERS: &str = "basename+ bash cp+ date+ df dirname+ du+ env expr+ file+ find id install ls+ mkdir+ mktemp \
    mv+ nice nohup nproc printenv readlink+ realpath+ rg+ rm+ rmdir+ seq+ sh sleep touch+ tree+ truncate+ uname unlink+ \
    unzip which whoami yes zip";

/// When a program reads standard input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Input {
    Never,
    /// Always.
    Always,
    /// If there is no file operand.
    Files,
    /// If there is no first operand; other operands are outputs.
    First,
    /// For a file operand `-` only.
    Dash,
    /// If there are no operands.
    Bare,
    /// As `grep` and `sed`: like `Files`, where the first operand is a file only if an option contains the pattern.
    Pattern,
    Awk,
    Dd,
    Tar,
}

/// A program: its name (with a `+` if it only works on files and streams), its use of standard input, its short and
/// long options that have values, and its unsupported options: short ones, then long ones.
struct Row(&'static str, Input, &'static str, &'static str, &'static str);

const GREP: &str = "efmABCdD";
const GREP_LONG: &str = "regexp file max-count after-context before-context context include exclude exclude-dir label";
const SUMS: &str = "b binary tag";

#[rustfmt::skip]
const ROWS: &[Row] = &[
    Row("awk", Awk, "Fvfei", "field-separator assign file", ""),
    Row("b2sum+", Files, "l", "length", SUMS),
    Row("base32+", Files, "w", "wrap", ""),
    Row("base64+", Files, "w", "wrap", ""),
    Row("bunzip2", Files, "", "", ""),
    Row("bzcat", Files, "", "", ""),
    Row("bzip2", Files, "", "", ""),
    Row("cat+", Files, "", "", ""),
    Row("chmod", Never, "", "reference", ""),
    Row("cksum+", Files, "al", "algorithm length", ""),
    Row("cmp+", Dash, "in", "ignore-initial bytes", "n bytes"),
    Row("column+", Files, "csoNRHE", "separator output-separator output-width", ""),
    Row("comm+", Dash, "", "output-delimiter", ""),
    Row("cut+", Files, "bcdf", "bytes characters delimiter fields output-delimiter", ""),
    Row("dd", Dd, "", "", ""),
    Row("diff+", Dash, "UCWILDF", "unified context label width exclude", "rwiByc recursive ignore-all-space ignore-case ignore-blank-lines side-by-side"),
    Row("egrep+", Pattern, GREP, GREP_LONG, ""),
    Row("envsubst", Always, "", "", ""),
    Row("expand+", Files, "t", "tabs", ""),
    Row("factor+", Bare, "", "", ""),
    Row("fgrep+", Pattern, GREP, GREP_LONG, ""),
    Row("fmt+", Files, "wgp", "width goal prefix", ""),
    Row("fold+", Files, "w", "width", ""),
    Row("gawk", Awk, "Fvfei", "field-separator assign file", ""),
    Row("grep+", Pattern, GREP, GREP_LONG, ""),
    Row("gunzip", Files, "S", "suffix", ""),
    Row("gzip", Files, "S", "suffix", ""),
    Row("head+", Files, "nc", "lines bytes", ""),
    Row("hexdump+", Files, "nsef", "length skip", ""),
    Row("join+", Dash, "12aejotv", "", ""),
    Row("ln+", Never, "tS", "target-directory suffix", ""),
    Row("md5sum+", Files, "", "", SUMS),
    Row("nl+", Files, "bdfhilnsvw", "", ""),
    Row("numfmt", Bare, "d", "delimiter field format from to padding suffix", ""),
    Row("od+", Files, "AjNStw", "", ""),
    Row("paste+", Files, "d", "delimiters", ""),
    Row("patch", Always, "pidoBzFDrYV", "strip input directory output", ""),
    Row("rev+", Files, "", "", ""),
    Row("sed+", Pattern, "efl", "expression file line-length", ""),
    Row("sha1sum+", Files, "", "", SUMS),
    Row("sha224sum+", Files, "", "", SUMS),
    Row("sha256sum+", Files, "", "", SUMS),
    Row("sha384sum+", Files, "", "", SUMS),
    Row("sha512sum+", Files, "", "", SUMS),
    Row("shuf", Files, "ion", "input-range head-count output random-source", ""),
    Row("sort+", Files, "koStT", "key output field-separator buffer-size parallel", ""),
    Row("split", First, "abCnlt", "lines bytes number suffix-length", ""),
    Row("stat+", Never, "c", "format printf", "ft printf file-system terse"),
    Row("strings+", Files, "ent", "bytes radix", ""),
    Row("sum+", Files, "", "", ""),
    Row("tac+", Files, "s", "separator", ""),
    Row("tail+", Files, "ncs", "lines bytes sleep-interval", "fF follow"),
    Row("tar", Tar, "", "", ""),
    Row("tee+", Always, "", "", ""),
    Row("timeout", Never, "ks", "kill-after signal", "ks kill-after signal"),
    Row("tr+", Always, "", "", ""),
    Row("tsort+", Files, "", "", ""),
    Row("unexpand+", Files, "t", "tabs", ""),
    Row("uniq+", First, "fsw", "skip-fields skip-chars check-chars", ""),
    Row("wc+", Files, "", "", ""),
    Row("xargs", Always, "aEIiLlnPsd", "arg-file delimiter max-args max-procs", ""),
    Row("xxd+", First, "cglosn", "", "ibu"),
];

/// A known command.
#[derive(Clone, Copy)]
struct Known {
    is_builtin: bool,
    is_plain: bool,
    row: Option<&'static Row>,
}

/// Indexes the table, which is searched for each of bashkit's commands whenever a bash is created.
static NAMES: LazyLock<HashMap<&str, Known>> = LazyLock::new(|| {
    let known = |written: &'static str, is_builtin, row| {
        let name = written.trim_end_matches('+');
        let is_plain = name != written;
        let known = Known {
            is_builtin,
            is_plain,
            row,
        };
        (name, known)
    };
    let builtins = BUILTINS.split_whitespace().map(|name| known(name, true, None));
    let others = OTHERS.split_whitespace().map(|name| known(name, false, None));
    let rows = ROWS.iter().map(|row| known(row.0, false, Some(row)));
    builtins.chain(others).chain(rows).collect()
});

/// Returns the names of all programs, sorted.
pub(super) fn programs() -> Vec<&'static str> {
    let programs = NAMES.iter().filter(|(_, known)| !known.is_builtin);
    let mut names: Vec<&str> = programs.map(|(name, _)| *name).collect();
    names.sort_unstable();
    names
}

/// Returns whether a command exists, if only `allowed` programs do.
pub(super) fn there(name: &str, allowed: Option<&[String]>) -> bool {
    NAMES
        .get(name)
        .is_some_and(|known| known.is_builtin || may(name, allowed))
}

/// Returns whether a program may have this name.
pub(super) fn may(name: &str, allowed: Option<&[String]>) -> bool {
    allowed.is_none_or(|allowed| allowed.iter().any(|entry| entry == name))
}

/// Returns whether a command only works on files and streams.
pub(super) fn is_plain(name: &str) -> bool {
    NAMES.get(name).is_some_and(|known| known.is_plain)
}

/// Returns whether a call reads standard input; `None` if the command does not exist.
pub(super) fn reads(name: &str, args: &[String]) -> Option<bool> {
    let Some(row) = NAMES.get(name)?.row else {
        return Some(false);
    };
    if args.iter().any(|arg| arg == "--help" || arg == "--version") {
        return Some(false);
    }
    let call = Call::of(row, args);
    let named = |operands: &[&str]| operands.iter().any(|operand| is_input(operand));
    Some(match row.1 {
        Never => false,
        Always => !(call.has("i input") && name == "patch" || call.has("a arg-file") && name == "xargs"),
        Files => {
            let elsewhere = name == "shuf" && call.has("ei echo input-range") || call.has("files0-from");
            !elsewhere && (call.operands.is_empty() || named(&call.operands))
        }
        First => call.operands.first().is_none_or(|first| is_input(first)),
        Dash => named(&call.operands) || name == "cmp" && call.operands.len() == 1,
        Bare => call.operands.is_empty(),
        Pattern => {
            let walks = name != "sed" && call.has("rR recursive dereference-recursive");
            let by_option = usize::from(!call.has("ef regexp file expression"));
            let files = call.operands.get(by_option..).unwrap_or_default();
            let patterns = call
                .values
                .iter()
                .any(|(option, value)| option.starts_with('f') && is_input(value));
            named(files) || patterns || files.is_empty() && !walks
        }
        Awk => {
            let program = if call.has("f file") {
                None
            } else {
                call.operands.first()
            };
            let files = call.operands.get(usize::from(program.is_some())..).unwrap_or_default();
            let mut files = files.iter().filter(|file| !file.contains('=')).peekable();
            let begins = program.is_some_and(|program| only_begins(program));
            !begins && (files.peek().is_none() || files.any(|file| is_input(file)))
        }
        Dd => !args.iter().any(|arg| arg.starts_with("if=")),
        // Without a known file operand, or if it may not create an archive, it reads.
        Tar => {
            let first = args
                .first()
                .map(|first| first.trim_start_matches('-'))
                .unwrap_or_default();
            let makes = first.contains(['c', 'r', 'u']) || args.iter().any(|arg| arg == "--create");
            !makes && (args.iter().any(|arg| arg == "-") || !args.iter().any(|arg| arg.contains('f')))
        }
    })
}

/// The parsed arguments of a call.
struct Call<'a> {
    operands: Vec<&'a str>,
    letters: String,
    long: Vec<&'a str>,
    /// The options, by short or long name, with their values.
    values: Vec<(&'a str, &'a str)>,
}

impl<'a> Call<'a> {
    fn of(row: &Row, args: &'a [String]) -> Self {
        let mut call = Self {
            operands: Vec::new(),
            letters: String::new(),
            long: Vec::new(),
            values: Vec::new(),
        };
        let mut args = args.iter().map(String::as_str);
        while let Some(arg) = args.next() {
            if arg == "--" {
                call.operands.extend(args);
                break;
            }
            if let Some(long) = arg.strip_prefix("--") {
                let (name, value) = long
                    .split_once('=')
                    .map_or((long, None), |(name, value)| (name, Some(value)));
                let valued = value.is_none() && row.3.split(' ').any(|valued| valued == name);
                call.long.push(name);
                let value = if valued { args.next() } else { value };
                call.values.extend(value.map(|value| (name, value)));
                continue;
            }
            let Some(cluster) = arg.strip_prefix('-').filter(|cluster| !cluster.is_empty()) else {
                call.operands.push(arg);
                continue;
            };
            for (at, letter) in cluster.char_indices() {
                call.letters.push(letter);
                if row.2.contains(letter) {
                    let here = &cluster[at + letter.len_utf8()..];
                    let value = if here.is_empty() { args.next() } else { Some(here) };
                    let option = &cluster[at..at + letter.len_utf8()];
                    call.values.extend(value.map(|value| (option, value)));
                    break;
                }
            }
        }
        call
    }

    /// Returns the first of these options that was given: short ones, then long ones, which may be abbreviated. The
    /// first word contains only short options unless it could be a long one.
    fn first(&self, options: &str) -> Option<String> {
        options
            .split(' ')
            .filter(|option| !option.is_empty())
            .enumerate()
            .find_map(|(at, option)| {
                let is_long = at > 0 || option.contains('-') || option.len() > 9;
                if !is_long && let Some(letter) = option.chars().find(|letter| self.letters.contains(*letter)) {
                    return Some(format!("-{letter}"));
                }
                let cut = |given: &&str| given.len() > 1 && option.starts_with(*given);
                (is_long && self.long.iter().any(cut)).then(|| format!("--{option}"))
            })
    }

    fn has(&self, options: &str) -> bool {
        self.first(options).is_some()
    }
}

fn is_input(operand: &str) -> bool {
    matches!(operand, "-" | "/dev/stdin" | "/dev/fd/0" | "/proc/self/fd/0")
}

/// Returns whether an `awk` program is a single `BEGIN` block, which reads nothing.
fn only_begins(program: &str) -> bool {
    let body = program.trim().strip_prefix("BEGIN").map(str::trim_start);
    let Some(body) = body.filter(|_| !program.contains("getline")) else {
        return false;
    };
    let mut depth = 0;
    let closes = body.char_indices().find(|(_, letter)| {
        depth += i32::from(*letter == '{') - i32::from(*letter == '}');
        depth == 0
    });
    body.starts_with('{') && closes.is_some_and(|(at, _)| at + 1 == body.len())
}

/// The largest number of operators in an expression. Bashkit evaluates them recursively, without a bound.
const OPERATORS: usize = 500;

/// Returns whether a word may be a part of an expression of `test`, `find` or `expr` that contains others.
fn is_operator(word: &str) -> bool {
    matches!(word, "(" | ")" | "!" | "," | "+" | "*" | "/" | "%" | "|" | "&" | ":")
        || word.starts_with(['-', '<', '>', '='])
}

/// Returns whether an `awk` program has a loop without a body: bashkit looks for an interruption at statements only.
/// Whether a `while` ends a `do` is guessed.
fn spins(program: &str) -> bool {
    let lines = program
        .lines()
        .map(|line| line.split_once(" #").map_or(line, |(code, _)| code));
    let code: String = lines.collect::<Vec<_>>().join("\n").replace("\\\n", " ");
    let is_word = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let is_empty = |body: &str| {
        let body = body.trim_start();
        let block = body
            .strip_prefix('{')
            .map(|inner| inner.trim_start_matches([';', ' ', '\t', '\n']));
        body.starts_with(';') || block.is_some_and(|inner| inner.starts_with('}'))
    };
    let has_do = code.split(|letter| !is_word(letter)).any(|word| word == "do");
    ["while", "for", "do"].into_iter().any(|word| {
        code.match_indices(word).any(|(at, _)| {
            let (before, after) = (&code[..at], &code[at + word.len()..]);
            if before.ends_with(is_word) || after.starts_with(is_word) {
                return false;
            }
            if word == "do" {
                return is_empty(after);
            }
            let ends_do = word == "while" && has_do && before.trim_end().ends_with(['}', ';']);
            // A step (`for (;; i++)`) is a statement.
            let closed = closing(after).filter(|(inner, _)| word == "while" || inner.trim_end().ends_with(';'));
            !ends_do && closed.is_some_and(|(_, body)| is_empty(body))
        })
    })
}

/// Returns whether an `awk` program has a `substr` that begins at a constant below 1.
fn before_start(program: &str) -> bool {
    program.split("substr(").skip(1).any(|call| {
        let begin = call.split(',').nth(1).unwrap_or_default().trim_start();
        begin.starts_with('-') || begin.split(')').next().is_some_and(|begin| begin.trim() == "0")
    })
}

/// Splits a text that begins with a parenthesis into its inside and the rest.
fn closing(text: &str) -> Option<(&str, &str)> {
    let inner = text.trim_start().strip_prefix('(')?;
    let mut depth = 1;
    let closes = inner.char_indices().find(|(_, letter)| {
        depth += i32::from(*letter == '(') - i32::from(*letter == ')');
        depth == 0
    });
    closes.map(|(at, _)| (&inner[..at], &inner[at + 1..]))
}

/// Returns why a program may not run with these arguments, if the result would be wrong.
pub(super) fn refusal(name: &str, args: &[String]) -> Option<String> {
    let cannot = |what: &str| Some(format!("`memory` cannot do `{name} {what}`; `sandbox` can"));
    if name == "umask"
        && args
            .iter()
            .any(|arg| !matches!(arg.as_str(), "-S" | "-p" | "-pS" | "-Sp"))
    {
        return Some("`memory` has the mask 0022 only: use `chmod`, or `sandbox`".to_owned());
    }
    if matches!(name, "test" | "[" | "find" | "expr") && args.iter().filter(|arg| is_operator(arg)).count() > OPERATORS
    {
        return Some(format!(
            "`{name}` has more than {OPERATORS} operators and tests, which `memory` does not have: split it"
        ));
    }
    if matches!(name, "awk" | "gawk") && args.iter().any(|arg| spins(arg)) {
        return Some(format!(
            "`{name}` has a loop without a body, which `memory` could not interrupt: write a statement into it"
        ));
    }
    let hex = |found: fn(&str) -> bool| args.iter().any(|arg| arg.split("\\x").skip(1).any(found));
    if matches!(name, "awk" | "gawk" | "sed")
        && hex(|byte| byte.starts_with(|c: char| c.is_ascii_hexdigit() && c > '7'))
    {
        return Some(format!(
            "`memory` cannot do `{name}` with bytes as `\\xff`: write the character itself"
        ));
    }
    if matches!(name, "awk" | "gawk") && args.iter().any(|arg| before_start(arg)) {
        return Some("`memory` counts `substr` from below 1 wrongly: begin at 1".to_owned());
    }
    let exports = |arg: &String| arg.starts_with('-') && arg.contains('f') && (name == "export" || arg.contains('x'));
    if matches!(name, "export" | "declare" | "typeset") && args.iter().any(exports) {
        return Some(
            "`memory` does not export functions to `bash -c` and scripts: source a file that defines them".to_owned(),
        );
    }
    if matches!(name, "test" | "[") && args.iter().any(|arg| arg == "-ef") {
        return Some("`-ef` compares names in `memory`: use `realpath`".to_owned());
    }
    // Bashkit drops it.
    let is_zero = |byte: &str| {
        let rest = byte.strip_prefix('0');
        rest.is_some_and(|rest| rest.starts_with('0') || !rest.starts_with(|c: char| c.is_ascii_hexdigit()))
    };
    if name == "printf" && hex(is_zero) {
        return Some("`memory` cannot do `printf '\\x00'`: write `\\000`".to_owned());
    }
    let row = NAMES.get(name)?.row?;
    // The words after the first operand of `timeout` belong to another program.
    let own = args.iter().position(|arg| name == "timeout" && !arg.starts_with('-'));
    let args = &args[..own.unwrap_or(args.len())];
    let call = Call::of(row, args);
    if let Some(option) = call.first(row.4) {
        return cannot(&option);
    }
    match name {
        "grep" | "egrep" | "fgrep" => {
            let colored = args
                .iter()
                .any(|arg| matches!(arg.as_str(), "--color=always" | "--colour=always"));
            colored.then(|| cannot("--color=always")).flatten()
        }
        // It would create a copy, or a link of another kind.
        "ln" if !call.operands.is_empty() && !call.has("s symbolic") => {
            Some("`memory` has no hard links: use `ln -s` or `cp`".to_owned())
        }
        "tail"
            if args
                .first()
                .is_some_and(|first| first.starts_with('+') && first.len() > 1) =>
        {
            cannot(&args[0])
        }
        "tr" if call.operands.iter().any(|set| repeats(set)) => cannot("[x*n]"),
        "cut" => {
            let zero = |list: &str| list.split([',', '-']).any(|bound| bound == "0");
            let wrong = call.values.iter().find(|(option, value)| match *option {
                "d" | "delimiter" => value.chars().count() > 1,
                "output-delimiter" => false,
                _ => zero(value),
            });
            wrong.and_then(|(option, value)| cannot(&format!("-{option} {value}")))
        }
        "xxd" if call.has("r revert") => cannot("-r, which loses bytes that are not UTF-8; `base64 -d` does not"),
        "tar" if call.has("O to-stdout") || args.first().is_some_and(|first| first.contains('O')) => cannot("-O"),
        "split" => {
            let attached = args.iter().find(|arg| {
                let value = arg
                    .strip_prefix('-')
                    .and_then(|rest| rest.strip_prefix(['l', 'b', 'n', 'a']));
                value.is_some_and(|value| value.starts_with(|c: char| c.is_ascii_digit()))
            });
            attached.and_then(|arg| cannot(&format!("{arg}`, but `split {} {}", &arg[..2], &arg[2..])))
        }
        // As in `xxd` itself.
        "xxd" => {
            let wide = |value: &str| value.parse().is_ok_and(|columns: u64| columns > 256);
            let columns = call.values.iter().find(|(option, value)| *option == "c" && wide(value));
            columns.and_then(|(_, value)| cannot(&format!("-c {value}")))
        }
        "stat" => {
            let format = call.values.iter().find(|(option, _)| matches!(*option, "c" | "format"));
            let mut fields = format.map_or("%?", |(_, format)| format).split('%').skip(1);
            let known = |field: &str| field.starts_with(['a', 'A', 'd', 'F', 'i', 'n', 'N', 's', 'Y']);
            let other = fields.find(|field| !known(field));
            other.and_then(|_| cannot("with other fields than %a %A %d %F %i %n %N %s %Y of -c"))
        }
        _ => None,
    }
}

/// Returns whether a set of `tr` contains `[x*n]`.
fn repeats(set: &str) -> bool {
    set.split("*").skip(1).any(|rest| {
        rest.trim_start_matches(|digit: char| digit.is_ascii_digit())
            .starts_with(']')
            && set.contains('[')
    })
}

#[cfg(test)]
mod tests {
    use super::{NAMES, programs, reads, refusal, there};

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn each_name_is_found() {
        let only = ["cat".to_owned()];
        for (name, known) in NAMES.iter() {
            assert!(there(name, None), "{name}");
            assert_eq!(there(name, Some(&only)), known.is_builtin || *name == "cat", "{name}");
        }
        for name in ["", "aaaa", "zzzz", "semver", "curl", "cat+"] {
            assert!(!there(name, None), "{name}");
        }
        assert!(programs().len() > 80);
    }

    #[test]
    fn a_call_reads_its_input_where_it_has_nothing_else_to_read() {
        let reading = "cat;cat -n;cat a -;cat -- -;cat /dev/stdin;grep x;grep -e x;grep -f - a;grep -c x -;sed s/a/b/;\
            sed -n -e p;sort -k 2;sort -t: -k2;head -n 1;head -3;wc -l;cut -d : -f 1;awk {print};awk -F : {print};\
            awk {print} x=1;awk -f prog;tee log;tr a b;xargs rm;dd of=x;tar xf -;tar tzf -;tar -x;comm - b;cmp a;\
            paste - -;diff a -;uniq -c;uniq - out;uniq;patch -p1;patch a;factor;tail -n +2;awk BEGIN{getline;print};\
            split -l 2 - x;shuf -n 1;od -c;sed -e p /dev/stdin;awk BEGIN{x}{y}";
        // What is split at `;` above is no `awk` program of one word.
        for text in reading
            .split(';')
            .map(str::trim)
            .filter(|text| !text.starts_with("print}"))
        {
            let words = words(text);
            assert_eq!(reads(&words[0], &words[1..]), Some(true), "{text}");
        }
        let not = "cat a;cat --help;grep x a;grep -r x;grep -rn x .;grep -e x a;grep -f p a;sed -i s/a/b/ f;sed -n p f;\
            sed -e p f;sort -o out a;head -n 1 a;head -n 1 -- a;wc -l a;awk BEGIN{print};awk {print} f;\
            awk {print} x=1 f;dd if=a of=b;tar cf - d;tar xf a.tar;tar -xzf a.tgz;tar czf a.tgz d;comm a b;cmp a b;\
            diff -u a b;uniq a;uniq a -;patch -i p;patch -p1 --input=p;factor 12;xargs -a list rm;shuf -e a b;\
            shuf -i 1-3;echo;ls;rg x;split a;base64 -w 0 a;wc --files0-from=x";
        for text in not.split(';').map(str::trim) {
            let words = words(text);
            assert_eq!(reads(&words[0], &words[1..]), Some(false), "{text}");
        }
        assert_eq!(reads("nosuch", &[]), None);
    }

    #[test]
    fn a_loop_of_awk_without_a_body_is_refused() {
        for program in [
            "BEGIN{while(1);}",
            "BEGIN { while ( (1) ) ; }",
            "BEGIN{for(;;);}",
            "BEGIN{for(;;){}}",
            "BEGIN{for(;i++<9;) { ; }}",
            "BEGIN{do ; while(1)}",
            "BEGIN{do{}while(1)}",
            "BEGIN{while(1) # on and on\n;}",
            "BEGIN{x=1; while(1)\n{\n}}",
            "BEGIN{do x++; while(x<9); if (1) while(1);}",
        ] {
            assert!(refusal("awk", &[program.to_owned()]).is_some(), "{program}");
        }
        for program in [
            "{print}",
            "BEGIN{while(i<9) i++}",
            "BEGIN{while(i<9){i++};}",
            "BEGIN{for(i=0;i<9;i++);}",
            "BEGIN{for(k in a);}",
            "BEGIN{do{i++}while(i<9);print i}",
            "BEGIN{do i++; while(i<9);}",
            "BEGIN{meanwhile(1);}",
            "/while(1);/{print}",
        ] {
            let refused = refusal("awk", &[program.to_owned()]);
            // A pattern that looks like a loop is refused too.
            assert_eq!(refused.is_some(), program.starts_with('/'), "{program}");
        }
    }

    #[test]
    fn what_would_be_wrong_is_refused_and_its_neighbours_are_not() {
        let cases = [
            ("sha256sum -b f", true),
            ("sha256sum --tag f", true),
            ("sha256sum -c f", false),
            ("sha256sum -- -b", false),
            ("grep --color=always x", true),
            ("grep --color=auto x", false),
            ("cut -f0 f", true),
            ("cut -f 1,0 f", true),
            ("cut -f10 f", false),
            ("cut -d ab -f1 f", true),
            ("cut -d: -f1,3 f", false),
            ("cut -d, -f1,3 --output-delimiter=::", false),
            ("tr [a*3] x", true),
            ("tr [:lower:] [:upper:]", false),
            ("ln a b", true),
            ("ln -s a b", false),
            ("ln -sf a b", false),
            ("timeout -s KILL 1 x", true),
            ("timeout 1 x -s", false),
            ("tail +3 f", true),
            ("tail -n +3 f", false),
            ("stat f", true),
            ("stat -c %a f", false),
            ("stat -c %5a f", true),
            ("stat --printf=%s f", true),
            ("umask 077", true),
            ("umask -S", false),
            ("split -l2 f", true),
            ("split -l 2 f", false),
            ("diff -r a b", true),
            ("diff -u a b", false),
            ("tail -f f", true),
            ("tail -n 1 f", false),
            ("cmp -n2 a b", true),
            ("xxd -b f", true),
            ("export -f f", true),
            ("declare -fx f", true),
            ("declare -f f", false),
            ("test a -ef b", true),
            ("awk {print(substr($0,-1,3))}", true),
            ("awk {print(substr($0,0))}", true),
            ("awk {print(substr($0,1,3))}", false),
            ("printf \\x00", true),
            ("printf a\\x0", true),
            ("printf %b \\x00", true),
            ("printf \\x0a\\x41\\000", false),
            ("sed s/\\xc3/e/", true),
            ("sed s/\\x41/e/", false),
            ("xxd -c 257 f", true),
            ("xxd -c 256 f", false),
            (&format!("find .{}", " !".repeat(501)), true),
            (&format!("find .{}", " -name a -o".repeat(200)), false),
            (&format!("test a{}", " -a b".repeat(501)), true),
            (&format!("test a{}", " b".repeat(501)), false),
        ];
        for (text, refused) in cases {
            let words = words(text);
            let why = refusal(&words[0], &words[1..]);
            assert_eq!(why.is_some(), refused, "{text}: {why:?}");
        }
    }
}
