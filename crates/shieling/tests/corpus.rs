//! The first layer, judged against corpora that were written without sight of its code.
//!
//! Each file in `corpus/` is a list of shell texts with what the contract says of them:
//!
//! ```text
//! # a comment
//! @policy --allow ls --allow 'git log'    the policy of the cases below, as options of `shieling why`
//!                                         (a word without a dash in front is a preset: `@policy gaia`)
//! @class quoting                          a name for the report; `unparsable` cases are never wrapped
//! must_allow: git log -n 5 | ls           benign: the verdict is allow
//! must_deny: rm -rf x                     an attack: the verdict is ask or deny, never a silent allow
//! denied: rm -rf x                        an attack that the contract says is deny
//! must_allow$: ls\n\u{e9}                 the same with \n \r \t \0 \\ \' \" \xHH \u{HEX} decoded
//! must_allow<<END                         several lines, as they stand, up to a line that is END
//! ```
//!
//! Cases are judged as `--env local`, which enforces nothing, so that the reading of the text alone
//! decides. The targets: no silent allow, 99 in 100 benign texts allowed overall and 97 in each
//! file, and the same verdict for a text however it is wrapped in syntax that means nothing.
#![expect(clippy::disallowed_methods, reason = "the corpora are read here, and bash is asked")]

use std::collections::{BTreeMap, HashMap};
use std::fmt::{self, Write as _};
use std::path::{Path, PathBuf};

use shieling::policy::{Decision, Facts, Policy, Verdict};
use shieling_testkit::random::Random;

const FILES: [(&str, usize); 5] = [
    ("readonly", 350),
    ("allow", 200),
    ("deny", 200),
    ("ignore", 200),
    ("screen", 40),
];

/// What the contract says of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expected {
    Allowed,
    NeverSilent,
    Denied,
}

impl Expected {
    fn is_met_by(self, decision: Decision) -> bool {
        match self {
            Self::Allowed => decision == Decision::Allow,
            Self::NeverSilent => decision != Decision::Allow,
            Self::Denied => decision == Decision::Deny,
        }
    }

    fn is_benign(self) -> bool {
        self == Self::Allowed
    }
}

/// One text under one policy.
#[derive(Debug, Clone)]
struct Case {
    file: &'static str,
    line: usize,
    class: String,
    policy: Vec<String>,
    expected: Expected,
    text: String,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            file,
            line,
            class,
            policy,
            text,
            ..
        } = self;
        write!(f, "{file}.cases:{line} [{class}] {} -- {text:?}", policy.join(" "))
    }
}

/// Reads a corpus file; anything that is not a case, a heading or a comment is an error.
fn parse(file: &'static str, content: &str) -> Result<Vec<Case>, String> {
    let mut cases = Vec::new();
    let mut policy = None;
    let mut class = String::from("unnamed");
    let mut lines = content.lines().enumerate().map(|(at, line)| (at + 1, line));
    while let Some((number, line)) = lines.next() {
        let place = |what: &str| format!("{file}.cases:{number}: {what}: {line}");
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(options) = line.strip_prefix("@policy") {
            policy = Some(options_of(options).map_err(|error| place(&error))?);
            continue;
        }
        if let Some(name) = line.strip_prefix("@class ") {
            name.trim().clone_into(&mut class);
            continue;
        }
        let (head, rest) = line
            .find([':', '<'])
            .map(|at| line.split_at(at))
            .ok_or_else(|| place("neither a case nor a heading"))?;
        let expected = match head.trim_end_matches('$') {
            "must_allow" => Expected::Allowed,
            "must_deny" => Expected::NeverSilent,
            "denied" => Expected::Denied,
            _ => return Err(place("unknown expectation")),
        };
        let mut text = if rest == "<<END" {
            let mut body = Vec::new();
            loop {
                match lines.next() {
                    Some((_, "END")) => break body.join("\n"),
                    Some((_, line)) => body.push(line),
                    None => return Err(place("no END after")),
                }
            }
        } else {
            rest.strip_prefix(": ")
                .ok_or_else(|| place("no `: ` after"))?
                .to_owned()
        };
        if head.ends_with('$') {
            text = unescape(&text).map_err(|error| place(&error))?;
        }
        cases.push(Case {
            file,
            line: number,
            class: class.clone(),
            policy: policy.clone().ok_or_else(|| place("a case before any @policy"))?,
            expected,
            text,
        });
    }
    Ok(cases)
}

/// Splits options as a shell would, for the little quoting that the files use.
fn options_of(text: &str) -> Result<Vec<String>, String> {
    let mut options: Vec<String> = Vec::new();
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    for character in text.trim().chars() {
        match (quote, character) {
            (Some(end), c) if c == end => quote = None,
            (None, '\'' | '"') => {
                quote = Some(character);
                word.get_or_insert_default();
            }
            (None, ' ') => options.extend(word.take()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    if quote.is_some() {
        return Err("an open quote".into());
    }
    options.extend(word);
    let is_preset = |word: &String| !word.starts_with('-');
    if !options.is_empty() && options.iter().all(is_preset) {
        options = options
            .into_iter()
            .flat_map(|preset| ["--policy".into(), preset])
            .collect();
    }
    Ok(options)
}

/// Decodes the escapes of `…$:` lines.
fn unescape(text: &str) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = text.chars();
    while let Some(character) = rest.next() {
        if character != '\\' {
            out.push(character);
            continue;
        }
        let escaped = rest.next().ok_or("a lone backslash at the end")?;
        let hex = |digits: String| {
            u32::from_str_radix(&digits, 16)
                .ok()
                .and_then(char::from_u32)
                .ok_or(format!("no such character: {digits}"))
        };
        out.push(match escaped {
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            '0' => '\0',
            '\\' | '\'' | '"' => escaped,
            'x' => hex(rest.by_ref().take(2).collect())?,
            'u' => {
                if rest.next() != Some('{') {
                    return Err("\\u without {".into());
                }
                hex(rest.by_ref().take_while(|c| *c != '}').collect())?
            }
            other => return Err(format!("unknown escape \\{other}")),
        });
    }
    Ok(out)
}

/// The same text in syntax that changes nothing of what it does, each with the wrapping's name.
fn wrapped(case: &Case) -> Vec<(&'static str, String)> {
    // What does not parse, or is refused for its bytes, need not parse inside of something else.
    if case.file == "screen" || case.class == "unparsable" {
        return Vec::new();
    }
    let text = &case.text;
    let one_line = !text.contains('\n');
    let mut forms = vec![
        ("( )", format!("(\n{text}\n)")),
        ("{ }", format!("{{\n{text}\n}}")),
        ("if", format!("if true; then\n{text}\nfi")),
        ("outer blanks", format!(" \t \n  {text}\n \t\n")),
        (
            "trailing comment",
            // On a line of its own where it would join a here-document, a comment or an escape.
            if one_line && !text.ends_with('\\') && !text.contains("#") {
                format!("{text}  # done; it's all")
            } else {
                format!("{text}\n# done; it's all")
            },
        ),
    ];
    // Outside of quotes a blank more is nothing; texts with any quoting are left as they are.
    if one_line && !text.contains(['\'', '"', '\\', '`', '#']) && !text.contains("<<") {
        forms.push(("inner blanks", text.replace(' ', " \t ")));
    }
    forms
}

/// All cases of all files.
fn corpus() -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let mut cases = Vec::new();
    for (file, _) in FILES {
        let path: PathBuf = folder.join(format!("{file}.cases"));
        let content =
            std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()));
        cases.extend(parse(file, &content).unwrap_or_else(|error| panic!("{error}")));
    }
    cases
}

#[test]
fn the_corpora_are_wide_and_say_nothing_twice() {
    let cases = corpus();
    let mut first_seen: HashMap<(&[String], &str), &Case> = HashMap::new();
    let mut twice = String::new();
    for case in &cases {
        if let Some(first) = first_seen.insert((&case.policy, &case.text), case) {
            let _ = writeln!(twice, "{case}\n  stands already at line {}", first.line);
        }
    }
    assert!(twice.is_empty(), "{twice}");
    for (file, at_least) in FILES {
        let benign = cases
            .iter()
            .filter(|c| c.file == file && c.expected.is_benign())
            .count();
        let attacks = cases
            .iter()
            .filter(|c| c.file == file && !c.expected.is_benign())
            .count();
        assert!(
            benign + attacks >= at_least,
            "{file}: only {benign} benign, {attacks} attacks"
        );
    }
}

#[test]
fn a_corpus_line_reads_as_its_format_says() {
    let content = "# c\n@policy --deny 'git push' --ignore a\n@class x\nmust_allow$: a\\u{e9}\\n\\x1b\\0\n\
                   must_deny<<END\nb\n\nEN D\nEND\ndenied: c: d\n@policy gaia\nmust_allow: e\n";
    let cases = parse("screen", content).expect("it is well formed");
    let texts: Vec<&str> = cases.iter().map(|case| case.text.as_str()).collect();
    assert_eq!(texts, ["aé\n\x1b\0", "b\n\nEN D", "c: d", "e"]);
    assert_eq!(cases[0].policy, ["--deny", "git push", "--ignore", "a"]);
    assert_eq!(cases[3].policy, ["--policy", "gaia"]);
    assert_eq!(cases[2].expected, Expected::Denied);
    assert!(parse("screen", "@policy\nmust_alow: x").is_err());
}

/// What went wrong for one text, for the report.
struct Misses {
    silent_allows: Vec<String>,
    too_weak: Vec<String>,
    refused: Vec<String>,
    disagreements: Vec<String>,
}

#[test]
fn the_first_layer_meets_its_targets_on_the_corpora() {
    let cases = corpus();
    let mut counts: BTreeMap<(&str, &str), [usize; 4]> = BTreeMap::new();
    let mut misses = Misses {
        silent_allows: Vec::new(),
        too_weak: Vec::new(),
        refused: Vec::new(),
        disagreements: Vec::new(),
    };
    for case in &cases {
        let verdict = judge(&case.policy, &case.text);
        let met = case.expected.is_met_by(verdict.decision);
        let count = counts.entry((case.file, &case.class)).or_default();
        count[if case.expected.is_benign() { 0 } else { 2 }] += 1;
        if !met {
            count[if case.expected.is_benign() { 1 } else { 3 }] += 1;
            match (case.expected, verdict.decision) {
                (Expected::Allowed, _) => misses.refused.push(explained(case, &verdict)),
                (_, Decision::Allow) => misses.silent_allows.push(case.to_string()),
                _ => misses.too_weak.push(explained(case, &verdict)),
            }
        }
        for (form, text) in wrapped(case) {
            let other = judge(&case.policy, &text);
            if other.decision != verdict.decision {
                misses.disagreements.push(format!(
                    "{case}\n      {:?} as it stands, {:?} as {form}: {text:?}{}",
                    verdict.decision,
                    other.decision,
                    reasons(&other),
                ));
            }
        }
    }
    let (report, all_met) = report(&cases, &counts, &misses);
    assert!(all_met, "{report}");
}

fn explained(case: &Case, verdict: &Verdict) -> String {
    format!("{case}\n      {:?}{}", verdict.decision, reasons(verdict))
}

fn reasons(verdict: &Verdict) -> String {
    verdict.reasons.iter().fold(String::new(), |mut all, reason| {
        let _ = write!(all, "\n      {}: `{}`: {}", reason.rule, reason.object, reason.because);
        all
    })
}

/// The whole account, the worst last where a terminal shows it, and whether every target is met.
fn report(cases: &[Case], counts: &BTreeMap<(&str, &str), [usize; 4]>, misses: &Misses) -> (String, bool) {
    let mut out = String::from("\n");
    let mut all_met = misses.silent_allows.is_empty() && misses.too_weak.is_empty() && misses.disagreements.is_empty();
    for (title, list) in [
        (
            "disagreements between a text and its wrapped forms",
            &misses.disagreements,
        ),
        ("benign texts refused", &misses.refused),
        ("asked about what the contract denies", &misses.too_weak),
        ("SILENT ALLOWS", &misses.silent_allows),
    ] {
        let _ = writeln!(out, "{title}: {}", list.len());
        for line in list {
            let _ = writeln!(out, "    {line}");
        }
    }
    let _ = writeln!(
        out,
        "\n{:<34}{:>16}{:>16}",
        "file, class", "benign refused", "attacks missed"
    );
    for ((file, class), [benign, refused, attacks, missed]) in counts {
        let name = format!("{file} {class}");
        let benign = format!("{refused}/{benign}");
        let attacks = format!("{missed}/{attacks}");
        let _ = writeln!(out, "{name:<34}{benign:>16}{attacks:>16}");
    }
    let mut total = (0, 0);
    for (file, _) in FILES {
        let (mut benign, mut refused) = (0, 0);
        for ((_, _), count) in counts.iter().filter(|((of, _), _)| *of == file) {
            benign += count[0];
            refused += count[1];
        }
        total = (total.0 + benign, total.1 + refused);
        // At least 97 in 100, in whole numbers.
        let met = (benign - refused) * 100 >= benign * 97;
        all_met &= met;
        let _ = writeln!(
            out,
            "{file:<10} benign allowed {} of {benign}{}",
            benign - refused,
            if met { "" } else { "   BELOW 97 %" },
        );
    }
    let (benign, refused) = total;
    let met = (benign - refused) * 100 >= benign * 99;
    all_met &= met;
    let _ = writeln!(
        out,
        "all        benign allowed {} of {benign}{}; {} cases",
        benign - refused,
        if met { "" } else { "   BELOW 99 %" },
        cases.len(),
    );
    (out, all_met)
}

// ---------------------------------------------------------------------------------------------
// How a text is judged: in a workspace of which nothing is known but its name, enforcing nothing.

fn judge(policy_options: &[String], text: &str) -> Verdict {
    let mut lists: BTreeMap<&str, Vec<&String>> = BTreeMap::new();
    let mut policy = Policy::open();
    let mut options = policy_options.iter();
    while let Some(option) = options.next() {
        match option.as_str() {
            "--readonly" => policy = policy.with_readonly(),
            "--policy" => {
                let name = options.next().expect("a preset's name follows");
                policy = policy.with_preset(name).expect("the preset exists");
            }
            list => lists
                .entry(list)
                .or_default()
                .push(options.next().expect("a value follows")),
        }
    }
    for (list, values) in lists {
        policy = match list {
            "--allow" => policy.with_allow(&values).expect("the entries name commands"),
            "--deny" => policy.with_deny(&values).expect("the entries name commands"),
            "--ignore" => policy.with_ignore(&values).expect("the patterns can be read"),
            other => panic!("`{other}` is no option of a policy"),
        };
    }
    let facts = Facts::new("/work/repository".as_ref(), "/work/repository".as_ref()).with_home(Some("/home/user"));
    policy.judge_text(text, &facts)
}

// ---------------------------------------------------------------------------------------------
// Whatever we read, bash reads: a text that we take for something that bash would refuse is a text
// that we misread.

/// Marks and words of the grammar that are put into texts, or cut out of them.
const FRAGMENTS: &[&str] = &[
    "(",
    ")",
    "{",
    "}",
    "[[",
    "]]",
    "((",
    "))",
    "$(",
    "`",
    "\"",
    "'",
    "\\",
    "\n",
    ";",
    "&",
    "|",
    "&&",
    "||",
    "<",
    ">",
    ">>",
    "<<E\n",
    "<<<",
    "<(",
    "case x in",
    "esac",
    "a)",
    ";;",
    "if",
    "then",
    "fi",
    "for i in",
    "do",
    "done",
    "while",
    "function f",
    "f()",
    "!",
    "time",
    "coproc",
    "#",
    "${x",
    "$((",
    "{a,b}",
    "[",
    "=",
    "a=(",
    "|&",
    "&>",
    "2>&1",
];

fn mutated(text: &str, random: &mut Random) -> String {
    let mut text = text.to_owned();
    for _ in 0..=random.below(3) {
        let at = random.below(text.len() + 1);
        let Some((head, tail)) = text.split_at_checked(at) else {
            continue;
        };
        text = if random.once_in(4) {
            format!("{head}{}", tail.chars().skip(2).collect::<String>())
        } else {
            format!("{head} {}{tail}", random.pick(FRAGMENTS))
        };
    }
    text
}

#[test]
fn what_is_read_is_what_bash_reads() {
    let facts = Facts::new("/work/repository".as_ref(), "/work/repository".as_ref());
    let open = Policy::open();
    let mut random = Random::new(20_261_121);
    let (mut read, mut refused) = (0, Vec::new());
    for case in corpus().iter().filter(|case| !case.text.contains('\0')) {
        let text = mutated(&case.text, &mut random);
        for text in [&case.text, &text] {
            if open.judge_text(text, &facts).decision != Decision::Allow {
                continue;
            }
            read += 1;
            let bash = std::process::Command::new("bash")
                .args(["--noprofile", "--norc", "-n", "-c", "--", text])
                .output()
                .expect("bash is there");
            if !bash.status.success() {
                refused.push(format!("{text:?}: {}", String::from_utf8_lossy(&bash.stderr)));
            }
        }
    }
    assert!(read > 5_000, "only {read} texts were read");
    assert!(
        refused.is_empty(),
        "{} of {read}:\n{}",
        refused.len(),
        refused.join("\n")
    );
}
