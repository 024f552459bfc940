//! The first layer, judged against corpora that were written without sight of its code.
//!
//! What they look like stands in `corpus/cases.rs`.
//!
//! Cases are judged as `--env local`, which enforces nothing, so that the reading of the text alone
//! decides. The targets: no silent allow, 99 in 100 benign texts allowed overall and 97 in each
//! file, and the same verdict for a text however it is wrapped in syntax that means nothing.
#![expect(clippy::disallowed_methods, reason = "bash is asked")]

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write as _;
use std::sync::Arc;

use shieling::Shieling;
use shieling::environment::{Local, Shell};
use shieling::policy::{Decision, Facts, Policy, Verdict};
use shieling::request::Command;
use shieling_shell::program::Example;
use shieling_testkit::Workspace;
use shieling_testkit::extent;
use shieling_testkit::random::Random;

#[path = "corpus/cases.rs"]
mod cases;

use cases::{Case, Expected, corpus, parse, policy_of};

/// How many cases each file has at least.
const FILES: [(&str, usize); 7] = [
    ("readonly", 350),
    ("allow", 200),
    ("deny", 200),
    ("ignore", 200),
    ("screen", 40),
    ("lines", 700),
    ("reading", 100),
];

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
    let again: HashSet<(&str, usize)> = extent::share(cases.iter().collect(), 5, class)
        .into_iter()
        .map(|case| (case.file, case.line))
        .collect();
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
        if !again.contains(&(case.file, case.line)) {
            continue;
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

/// What a share of the cases has something of.
fn class(case: &&Case) -> (&'static str, String) {
    (case.file, case.class.clone())
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
    let facts = Facts::new("/work/repository".as_ref(), "/work/repository".as_ref()).with_home(Some("/home/user"));
    policy_of(policy_options).judge_text(text, &facts)
}

// ---------------------------------------------------------------------------------------------
// In a workspace that is there, what it holds is looked up: what provably meets no hidden path is allowed.

/// The texts of `workspace.cases`, which are judged in [`workspace`].
const IN_WORKSPACE: &str = include_str!("corpus/workspace.cases");

/// A small project with an ordinary repository, in which some files are likely to be hidden.
fn workspace() -> Workspace {
    Workspace::new()
        .with(".env", "hidden")
        .with("secrets/key", "hidden")
        .with("secrets/sub/k", "hidden")
        .with("README.md", "read me\n")
        .with("Makefile", "all:\n")
        .with("package.json", "{}\n")
        .with("src/main.rs", "fn main() {}\n")
        .with("src/a.py", "pass\n")
        .with("docs/a.md", "text\n")
        .with("docs/server.pem", "hidden")
        .with("config/prod.yml", "hidden")
        .with("config/dev.yml", "a: 1\n")
        .with("node_modules/.cache/x", "hidden")
        .with("build/b.txt", "")
        .with("scripts/x.sh", "")
        .with("a.o", "")
        .with("bare/HEAD", "ref: refs/heads/main\n")
        .with("bare/objects/x", "")
        .with("bare/refs/x", "")
        .with(".git/HEAD", "ref: refs/heads/main\n")
}

#[test]
fn what_provably_meets_no_hidden_path_is_allowed_and_what_is_asked_about_names_one() {
    let cases = parse("workspace", IN_WORKSPACE).unwrap_or_else(|error| panic!("{error}"));
    let workspace = workspace();
    let mut wrong = String::new();
    for case in &cases {
        let shell = Shell::find(None).expect("there is a shell on every host that runs tests");
        let shieling = Shieling::builder(Arc::new(Local::new(shell)), policy_of(&case.policy), workspace.root())
            .build()
            .expect("it serves no other policy");
        let judge = |text: &str| {
            let command = Command::new(text, workspace.root()).expect("a command");
            shieling.judge(&command)
        };
        let verdict = judge(&case.text);
        if !case.expected.is_met_by(verdict.decision) {
            let _ = writeln!(wrong, "{}", explained(case, &verdict));
        }
        let by_environment = verdict
            .reasons
            .iter()
            .filter(|reason| reason.rule.starts_with("environment"));
        for reason in by_environment {
            if ![".env", "secrets", ".pem", "prod.yml", ".cache"]
                .iter()
                .any(|hidden| reason.because.contains(hidden))
            {
                let _ = writeln!(wrong, "{case}\n      names no hidden path: {}", reason.because);
            }
        }
        for (form, text) in wrapped(case) {
            let other = judge(&text);
            if other.decision < verdict.decision {
                let _ = writeln!(wrong, "{case}\n      {:?} as {form}", other.decision);
            }
        }
    }
    assert!(wrong.is_empty(), "of {} cases:\n{wrong}", cases.len());
}

// ---------------------------------------------------------------------------------------------
// Whatever we read, bash reads: a text that we take for something that bash would refuse is a text
// that we syntax_check.

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
    let (mut texts, mut read, mut refused) = (0, 0, Vec::new());
    let cases = corpus();
    let cases = cases.iter().filter(|case| !case.text.contains('\0'));
    for case in extent::share(cases.collect(), 5, class) {
        let text = mutated(&case.text, &mut random);
        for text in [&case.text, &text] {
            texts += 1;
            if open.judge_text(text, &facts).decision != Decision::Allow {
                continue;
            }
            read += 1;
            let bash = |options: &[&str]| {
                std::process::Command::new("bash")
                    .args(["--noprofile", "--norc"])
                    .args(options)
                    .args(["-n", "-c", "--", text])
                    .output()
                    .expect("bash is there")
            };
            let mut bash_read = bash(&[]);
            if !bash_read.status.success() {
                // What an earlier line of the text, or an earlier command of the session, may have switched on.
                bash_read = bash(&["-O", "extglob"]);
            }
            if !bash_read.status.success() {
                refused.push(format!("{text:?}: {}", String::from_utf8_lossy(&bash_read.stderr)));
            }
        }
    }
    assert!(read * 2 > texts, "only {read} of {texts} texts were read");
    assert!(
        refused.is_empty(),
        "{} of {read}:\n{}",
        refused.len(),
        refused.join("\n")
    );
}

#[test]
fn every_example_of_the_tables_of_programs_is_judged_as_it_states() {
    let facts = Facts::new("/work/repository".as_ref(), "/work/repository".as_ref());
    let policy = Policy::open().with_readonly();
    let mut wrong = Vec::new();
    let mut examples = 0_usize;
    for Example {
        table,
        verdict: stated,
        command,
    } in shieling_shell::program::examples()
    {
        examples += 1;
        let verdict = policy.judge_text(command, &facts);
        let judged = match verdict.decision {
            Decision::Allow => "allow",
            Decision::Ask => "ask",
            Decision::Deny => "deny",
        };
        if judged != stated {
            let why: Vec<_> = verdict
                .reasons
                .iter()
                .map(|reason| format!("`{}`: {}", reason.object, reason.because))
                .collect();
            wrong.push(format!(
                "{table}: `{command}` is stated to be {stated}, and is {judged}: {}",
                why.join("; ")
            ));
        }
    }
    assert!(examples > 3_000, "only {examples} examples");
    assert!(wrong.is_empty(), "{} of {examples}:\n{}", wrong.len(), wrong.join("\n"));
}
