//! Which programs read their standard input, and whether one call of them does. Whoever would wait for
//! input that it does not want would never end.

/// How a program finds out what to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// It reads its input, whatever its operands are.
    Always,
    /// It reads the files that it is given, after so many other operands, and its input without any.
    Files(usize),
    /// It reads its input in the place of a file `-` only.
    Dash,
    /// It reads its input if it has no operands.
    Bare,
    /// As `grep` and `sed`: the first operand is a file too if one of these options stands.
    Pattern(&'static str),
    Awk,
    Dd,
    Tar,
}

/// One program: its name, those of its letters and long options that have a value, and its way.
struct Row(&'static str, &'static str, &'static [&'static str], Way);

const ROWS: &[Row] = &[
    Row("awk", "Fvfei", &["--field-separator", "--assign", "--file"], Way::Awk),
    Row("b2sum", "l", &["--length"], Way::Files(0)),
    Row("base32", "w", &["--wrap"], Way::Files(0)),
    Row("base64", "w", &["--wrap"], Way::Files(0)),
    Row("bc", "", &[], Way::Always),
    Row("bunzip2", "", &[], Way::Files(0)),
    Row("bzcat", "", &[], Way::Files(0)),
    Row("bzip2", "", &[], Way::Files(0)),
    Row("cat", "", &[], Way::Files(0)),
    Row("cksum", "al", &["--algorithm", "--length"], Way::Files(0)),
    Row("cmp", "in", &["--ignore-initial", "--bytes"], Way::Dash),
    Row(
        "column",
        "csoNRHE",
        &["--separator", "--output-separator", "--output-width"],
        Way::Files(0),
    ),
    Row("comm", "", &["--output-delimiter"], Way::Dash),
    Row(
        "cut",
        "bcdf",
        &[
            "--bytes",
            "--characters",
            "--delimiter",
            "--fields",
            "--output-delimiter",
        ],
        Way::Files(0),
    ),
    Row("dd", "", &[], Way::Dd),
    Row(
        "diff",
        "UCWILDF",
        &["--unified", "--context", "--label", "--width", "--exclude"],
        Way::Dash,
    ),
    Row("egrep", GREP, GREP_LONG, Way::Pattern("ef")),
    Row("envsubst", "", &[], Way::Always),
    Row("expand", "t", &["--tabs"], Way::Files(0)),
    Row("factor", "", &[], Way::Bare),
    Row("fgrep", GREP, GREP_LONG, Way::Pattern("ef")),
    Row("fmt", "wgp", &["--width", "--goal", "--prefix"], Way::Files(0)),
    Row("fold", "w", &["--width"], Way::Files(0)),
    Row("gawk", "Fvfei", &["--field-separator", "--assign", "--file"], Way::Awk),
    Row("grep", GREP, GREP_LONG, Way::Pattern("ef")),
    Row("gunzip", "S", &["--suffix"], Way::Files(0)),
    Row("gzip", "S", &["--suffix"], Way::Files(0)),
    Row("head", "nc", &["--lines", "--bytes"], Way::Files(0)),
    Row("hexdump", "nsef", &["--length", "--skip"], Way::Files(0)),
    Row("join", "12aejotv", &[], Way::Dash),
    Row("md5sum", "", &[], Way::Files(0)),
    Row("nl", "bdfhilnsvw", &[], Way::Files(0)),
    Row(
        "numfmt",
        "d",
        &[
            "--delimiter",
            "--field",
            "--format",
            "--from",
            "--to",
            "--padding",
            "--suffix",
        ],
        Way::Bare,
    ),
    Row("od", "AjNStw", &[], Way::Files(0)),
    Row("paste", "d", &["--delimiters"], Way::Files(0)),
    Row(
        "patch",
        "pidoBzFDrYV",
        &["--strip", "--input", "--directory", "--output"],
        Way::Always,
    ),
    Row("rev", "", &[], Way::Files(0)),
    Row(
        "sed",
        "efl",
        &["--expression", "--file", "--line-length"],
        Way::Pattern("ef"),
    ),
    Row("sha1sum", "", &[], Way::Files(0)),
    Row("sha224sum", "", &[], Way::Files(0)),
    Row("sha256sum", "", &[], Way::Files(0)),
    Row("sha384sum", "", &[], Way::Files(0)),
    Row("sha512sum", "", &[], Way::Files(0)),
    Row(
        "shuf",
        "ion",
        &["--input-range", "--head-count", "--output", "--random-source"],
        Way::Files(0),
    ),
    Row(
        "sort",
        "koStT",
        &["--key", "--output", "--field-separator", "--buffer-size", "--parallel"],
        Way::Files(0),
    ),
    Row(
        "split",
        "abCnlt",
        &["--lines", "--bytes", "--number", "--suffix-length"],
        Way::Files(0),
    ),
    Row("strings", "ent", &["--bytes", "--radix"], Way::Files(0)),
    Row("sum", "", &[], Way::Files(0)),
    Row("tac", "s", &["--separator"], Way::Files(0)),
    Row(
        "tail",
        "ncs",
        &["--lines", "--bytes", "--sleep-interval"],
        Way::Files(0),
    ),
    Row("tar", "", &[], Way::Tar),
    Row("tee", "", &[], Way::Always),
    Row("tr", "", &[], Way::Always),
    Row("tsort", "", &[], Way::Files(0)),
    Row("unexpand", "t", &["--tabs"], Way::Files(0)),
    Row(
        "uniq",
        "fsw",
        &["--skip-fields", "--skip-chars", "--check-chars"],
        Way::Files(0),
    ),
    Row("wc", "", &[], Way::Files(0)),
    Row(
        "xargs",
        "aEIiLlnPsd",
        &["--arg-file", "--delimiter", "--max-args", "--max-procs"],
        Way::Always,
    ),
    Row("xxd", "cglosn", &[], Way::Files(0)),
];

const GREP: &str = "efmABCdD";
const GREP_LONG: &[&str] = &[
    "--regexp",
    "--file",
    "--max-count",
    "--after-context",
    "--before-context",
    "--context",
    "--include",
    "--exclude",
    "--exclude-dir",
    "--label",
];

/// The programs that may read their standard input.
pub(super) fn programs() -> impl Iterator<Item = &'static str> {
    ROWS.iter().map(|row| row.0)
}

/// Whether a call reads its standard input. Where that cannot be told, it does.
pub(in crate::environment::memory::bash) fn reads(name: &str, args: &[String]) -> bool {
    let Some(row) = ROWS.iter().find(|row| row.0 == name) else {
        return false;
    };
    if args.iter().any(|arg| arg == "--help" || arg == "--version") {
        return false;
    }
    let call = Call::of(row, args);
    let here = call.operands.iter().any(|operand| is_input(operand));
    match row.3 {
        Way::Always => {
            !(name == "patch" && (call.has("i") || call.long("--input") || call.operands.len() > 1))
                && !(name == "xargs" && (call.has("a") || call.long("--arg-file")))
        }
        Way::Files(before) => {
            let elsewhere = name == "shuf" && (call.has("ei") || call.long("--echo") || call.long("--input-range"))
                || name == "sort" && call.long("--files0-from")
                || name == "wc" && call.long("--files0-from");
            let only_first = matches!(name, "uniq" | "split" | "xxd");
            let first = call.operands.first();
            match first {
                _ if elsewhere => false,
                Some(first) if only_first => is_input(first),
                _ => here || call.operands.len() <= before,
            }
        }
        Way::Dash => here || name == "cmp" && call.operands.len() == 1,
        Way::Bare => call.operands.is_empty(),
        Way::Pattern(named) => {
            let named = call.has(named) || call.long("--regexp") || call.long("--file") || call.long("--expression");
            let files = call.operands.len().saturating_sub(usize::from(!named));
            let walks = name != "sed" && (call.has("rR") || call.long("--recursive"));
            let pattern_is_input = call.value("-f").is_some_and(is_input) || call.value("--file").is_some_and(is_input);
            let operands = call.operands.iter().skip(usize::from(!named));
            pattern_is_input || operands.clone().any(|operand| is_input(operand)) || files == 0 && !walks
        }
        Way::Awk => {
            let from_file = call.has("f") || call.long("--file");
            let mut operands = call.operands.iter().copied();
            let program = if from_file { None } else { operands.next() };
            let mut files = operands.filter(|operand| !is_assignment(operand)).peekable();
            let reads_records = program.is_none_or(|program| !only_begins(program));
            reads_records && (files.peek().is_none() || files.any(is_input))
        }
        Way::Dd => !args
            .iter()
            .any(|arg| arg.strip_prefix("if=").is_some_and(|from| !is_input(from))),
        Way::Tar => tar_reads(args),
    }
}

/// The arguments of one call, taken apart.
struct Call<'a> {
    operands: Vec<&'a str>,
    options: Vec<(&'a str, Option<&'a str>)>,
    letters: String,
}

impl<'a> Call<'a> {
    fn of(row: &Row, args: &'a [String]) -> Self {
        let mut call = Self {
            operands: Vec::new(),
            options: Vec::new(),
            letters: String::new(),
        };
        let mut args = args.iter().map(String::as_str);
        while let Some(arg) = args.next() {
            match arg.strip_prefix('-') {
                Some("-") => call.operands.extend(args.by_ref()),
                Some(long) if long.starts_with('-') => match arg.split_once('=') {
                    Some((option, value)) => call.options.push((option, Some(value))),
                    None if row.2.contains(&arg) => call.options.push((arg, args.next())),
                    None => call.options.push((arg, None)),
                },
                Some(cluster) if !cluster.is_empty() => call.cluster(row, cluster, &mut args),
                Some(_) | None => call.operands.push(arg),
            }
        }
        call
    }

    fn cluster(&mut self, row: &Row, cluster: &'a str, args: &mut impl Iterator<Item = &'a str>) {
        for (at, letter) in cluster.char_indices() {
            self.letters.push(letter);
            if row.1.contains(letter) {
                let here = &cluster[at + letter.len_utf8()..];
                let value = if here.is_empty() { args.next() } else { Some(here) };
                if letter == 'f' {
                    self.options.push(("-f", value));
                }
                return;
            }
        }
    }

    fn has(&self, letters: &str) -> bool {
        self.letters.contains(|letter| letters.contains(letter))
    }

    fn long(&self, option: &str) -> bool {
        self.options.iter().any(|(name, _)| *name == option)
    }

    fn value(&self, option: &str) -> Option<&'a str> {
        let found = self.options.iter().find(|(name, _)| *name == option);
        found.and_then(|(_, value)| *value)
    }
}

fn is_input(operand: &str) -> bool {
    matches!(operand, "-" | "/dev/stdin" | "/dev/fd/0" | "/proc/self/fd/0")
}

/// Whether `awk` takes an operand for a variable.
fn is_assignment(operand: &str) -> bool {
    let named = |name: &str| {
        let mut letters = name.chars();
        letters
            .next()
            .is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
            && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
    };
    operand.split_once('=').is_some_and(|(name, _)| named(name))
}

/// Whether an `awk` program has nothing but `BEGIN`, and so reads nothing.
fn only_begins(program: &str) -> bool {
    if program.contains("getline") {
        return false;
    }
    let mut rest = program.trim();
    while let Some(body) = rest.strip_prefix("BEGIN") {
        let Some(after) = body.trim_start().strip_prefix('{').and_then(beyond_block) else {
            return false;
        };
        rest = after.trim_start_matches([' ', '\t', '\n', ';']);
    }
    rest.is_empty()
}

/// What is behind a block whose first brace has been taken.
fn beyond_block(text: &str) -> Option<&str> {
    let mut depth = 1;
    let mut quoted = false;
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' => drop(letters.next()),
            '"' => quoted = !quoted,
            '{' if !quoted => depth += 1,
            '}' if !quoted => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return text.get(at + 1..);
        }
    }
    None
}

/// Whether `tar` reads an archive from its input.
fn tar_reads(args: &[String]) -> bool {
    let mut mode = args
        .first()
        .map(|first| first.trim_start_matches('-'))
        .unwrap_or_default();
    if args.first().is_some_and(|first| first.starts_with("--")) {
        mode = "";
    }
    let long = |names: &[&str]| args.iter().any(|arg| names.contains(&arg.as_str()));
    let makes = mode.contains(['c', 'r', 'u']) || long(&["--create", "--append", "--update"]);
    let file = args.iter().position(|arg| {
        let letters = arg.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
        letters.is_some_and(|letters| letters.ends_with('f')) || arg == "--file"
    });
    let bundled = mode.contains('f').then_some(0);
    let named = file.or(bundled).and_then(|at| args.get(at + 1));
    let long_named = args.iter().find_map(|arg| arg.strip_prefix("--file="));
    !makes && named.map(String::as_str).or(long_named).is_none_or(|name| name == "-")
}

#[cfg(test)]
mod tests {
    use super::reads;

    #[test]
    fn a_call_reads_its_input_where_it_has_nothing_else_to_read() {
        let reading = [
            "cat",
            "cat -n",
            "cat a -",
            "cat -- -",
            "cat /dev/stdin",
            "grep x",
            "grep -e x",
            "grep -f - a",
            "grep -c x -",
            "sed s/a/b/",
            "sed -n -e p",
            "sort -k 2",
            "sort -t: -k2",
            "head -n 1",
            "head -3",
            "wc -l",
            "cut -d : -f 1",
            "awk {print}",
            "awk -F : {print}",
            "awk {print} x=1",
            "awk -f prog",
            "tee log",
            "tr a b",
            "xargs rm",
            "dd of=x",
            "tar xf -",
            "tar tzf -",
            "tar -x",
            "comm - b",
            "cmp a",
            "paste - -",
            "diff a -",
            "uniq -c",
            "uniq - out",
            "uniq",
            "patch -p1",
            "patch a",
            "factor",
            "tail -n +2",
            "awk BEGIN{getline;print}",
            "split -l 2 - x",
            "bc -l",
            "shuf -n 1",
            "od -c",
            "sed -e p /dev/stdin",
        ];
        let not = [
            "cat a",
            "cat --help",
            "grep x a",
            "grep -r x",
            "grep -rn x .",
            "grep -e x a",
            "grep -f p a",
            "sed -i s/a/b/ f",
            "sed -n p f",
            "sed -e p f",
            "sort -o out a",
            "head -n 1 a",
            "head -n 1 -- a",
            "wc -l a",
            "awk BEGIN{print}",
            "awk {print} f",
            "awk {print} x=1 f",
            "dd if=a of=b",
            "tar cf - d",
            "tar xf a.tar",
            "tar -xzf a.tgz",
            "tar -C d -xf a.tar",
            "tar czf a.tgz d",
            "comm a b",
            "cmp a b",
            "diff -u a b",
            "uniq a",
            "uniq a -",
            "patch -i p",
            "patch a p",
            "patch -p1 --input=p",
            "factor 12",
            "xargs -a list rm",
            "shuf -e a b",
            "shuf -i 1-3",
            "echo",
            "ls",
            "rg x",
            "split a",
            "base64 -w 0 a",
            "wc --files0-from=x",
            "awk BEGIN{a=\"{\"}",
        ];
        let cases = reading
            .map(|text| (text, true))
            .into_iter()
            .chain(not.map(|text| (text, false)));
        for (text, expected) in cases {
            let words: Vec<String> = text.split(' ').map(str::to_owned).collect();
            assert_eq!(reads(&words[0], &words[1..]), expected, "{text}");
        }
    }
}
