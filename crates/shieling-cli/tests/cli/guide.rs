//! The guide's transcripts, run as they stand: each section in an empty directory with an empty home.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use shieling_testkit::prerequisite;

/// A command of the guide, and what it says that it prints.
struct Shown {
    line: usize,
    command: String,
    prints: Vec<String>,
}

/// The commands of each section.
fn sections(guide: &str) -> Vec<(String, Vec<Shown>)> {
    let mut sections: Vec<(String, Vec<Shown>)> = Vec::new();
    let mut inside = false;
    for (number, line) in guide.lines().enumerate() {
        match line {
            "```console" => inside = true,
            _ if line.starts_with("```") => inside = false,
            _ if inside => {
                let (_, shown) = sections.last_mut().expect("a section before the first command");
                if let Some(command) = line.strip_prefix("$ ") {
                    shown.push(Shown {
                        line: number + 1,
                        command: command.to_owned(),
                        prints: Vec::new(),
                    });
                } else {
                    let last = shown.last_mut().expect("a command before what it prints");
                    match line.strip_prefix("> ").filter(|_| last.prints.is_empty()) {
                        Some(more) => last.command.push_str(&format!("\n{more}")),
                        None => last.prints.push(line.to_owned()),
                    }
                }
            }
            _ => {
                if let Some(title) = line.strip_prefix("## ") {
                    sections.push((title.to_owned(), Vec::new()));
                }
            }
        }
    }
    sections
}

/// Whether a line is as it is said to be: `[..]` is any text.
fn is_line(said: &str, line: &str) -> bool {
    let mut parts = said.split("[..]");
    let Some(mut rest) = parts.next().and_then(|first| line.strip_prefix(first)) else {
        return false;
    };
    let mut last = None;
    for part in parts {
        if let Some(at) = last
            .replace(part)
            .map(|before: &str| rest.find(before).map(|at| at + before.len()))
        {
            let Some(at) = at else { return false };
            rest = &rest[at..];
        }
    }
    match last {
        Some(last) => rest.ends_with(last),
        None => rest.is_empty(),
    }
}

/// Whether the lines of the two streams, each in its order, are as they are said to be: `...` is any number of lines.
/// What came first of two streams is known to nobody who reads both.
fn are_lines(said: &[String], out: &[&str], errors: &[&str]) -> bool {
    let Some((first, rest)) = said.split_first() else {
        return out.is_empty() && errors.is_empty();
    };
    let any = first == "...";
    let after = if any { said } else { rest };
    let is_next = |lines: &[&str]| lines.first().is_some_and(|line| any || is_line(first, line));
    any && are_lines(rest, out, errors)
        || is_next(out) && are_lines(after, &out[1..], errors)
        || is_next(errors) && are_lines(after, out, &errors[1..])
}

/// Where a section's commands run.
struct Section {
    place: tempfile::TempDir,
    stands: PathBuf,
}

impl Section {
    fn new() -> Self {
        let place = tempfile::tempdir().expect("a temporary directory can be made");
        let real = place.path().canonicalize().expect("it is there");
        for directory in ["work", "home"] {
            fs::create_dir(real.join(directory)).expect("a directory can be made");
        }
        Self {
            stands: real.join("work"),
            place,
        }
    }

    /// What a person would see on the two streams, and where they would stand then.
    fn see(&mut self, command: &str) -> [String; 2] {
        let program = Path::new(env!("CARGO_BIN_EXE_shieling"));
        let programs = program.parent().expect("it stands in a directory").display();
        let stands = self.place.path().join("stands");
        let text = format!("{command}\npwd >{}\n", stands.display());
        let output = Command::new("bash")
            .args(["-c", &text])
            .current_dir(&self.stands)
            .env_clear()
            .env("PATH", format!("{programs}:/usr/local/bin:/usr/bin:/bin"))
            .env("HOME", self.place.path().join("home"))
            .env("LANG", "C.UTF-8")
            .stdin(std::process::Stdio::null())
            .output()
            .expect("bash is there");
        self.stands = fs::read_to_string(&stands)
            .expect("bash came to its end")
            .trim_end()
            .into();
        [output.stdout, output.stderr].map(|printed| String::from_utf8(printed).expect("text"))
    }
}

#[test]
fn the_transcripts_of_the_guide_are_what_is_seen() {
    if !prerequisite::has(&["python3", "git"]) {
        return;
    }
    let guide =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide.md")).expect("it is there");
    assert!(guide.lines().count() <= 200, "it is to be short");
    let mut wrong = String::new();
    let mut seen = 0;
    for (title, shown) in sections(&guide) {
        let mut section = Section::new();
        for Shown { line, command, prints } in shown {
            let printed = section.see(&command);
            let [out, errors] = printed.each_ref().map(|text| text.lines().collect::<Vec<_>>());
            seen += 1;
            if !are_lines(&prints, &out, &errors) {
                writeln!(wrong, "line {line} ({title}): $ {command}\n{out:#?}\n{errors:#?}")
                    .expect("a string takes it");
            }
        }
    }
    assert!(wrong.is_empty(), "not as in the guide:\n{wrong}");
    assert!(seen > 20, "the guide's commands were not found");
}

#[test]
fn a_line_that_is_not_as_the_guide_says_is_noticed() {
    for (said, line, same) in [
        ("a", "a", true),
        ("a", "ab", false),
        ("a[..]", "ab", true),
        ("[..]b", "ab", true),
        ("[..]b", "ba", false),
        ("a[..]c[..]e", "abcde", true),
        ("a[..]x[..]e", "abcde", false),
    ] {
        assert_eq!(is_line(said, line), same, "{said} {line}");
    }
    let lines = |text: &str| text.split(' ').map(ToOwned::to_owned).collect::<Vec<_>>();
    for (said, out, errors, same) in [
        ("a ... c", "a b b c", "", true),
        ("... c", "c", "", true),
        ("a b c", "a c", "b", true),
        ("a b c", "b", "a c", true),
        ("a ... c", "a b", "", false),
        ("a", "a b", "", false),
        ("a", "a", "b", false),
        ("a b c", "c a", "b", false),
    ] {
        let of = |text: &'static str| text.split_terminator(' ').collect::<Vec<_>>();
        assert_eq!(
            are_lines(&lines(said), &of(out), &of(errors)),
            same,
            "{said}: {out}, {errors}"
        );
    }
}
