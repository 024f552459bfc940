//! What files of settings say, compared with the git of this machine, and every word of a value that can be a file.
#![allow(clippy::disallowed_methods, reason = "tests write files and run git")]

use std::fs;
use std::process::Command;

use shieling_gate::settings::{Setting, parse};
use shieling_testkit::prerequisite;
use shieling_testkit::random::Random;

/// How many random files are compared with what git makes of them.
const FILES: usize = 400;

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn shown(file: &str) -> Vec<(String, Option<String>)> {
    let settings = parse(file.as_bytes()).into_iter();
    settings
        .map(|setting| (text(&setting.name), setting.value.as_deref().map(text)))
        .collect()
}

#[test]
fn values_are_read_with_quotes_comments_escapes_and_continued_lines() {
    for (file, name, value) in [
        (
            "[include]\n\tpath = ../inc2 ; comment\n",
            "include.path",
            Some("../inc2"),
        ),
        ("[core]\n\thooksPath = \\\n  evil\n", "core.hookspath", Some("evil")),
        ("[Core]hooksPath=\"a # b\" # c", "core.hookspath", Some("a # b")),
        (
            "[a \"B \\\" c\"]\r\n d = e\\\\f\\tg  \r\n",
            "a.B \" c.d",
            Some("e\\f\tg"),
        ),
        ("[a.B]\n d", "a.b.d", None),
        ("[a]\n d =\n", "a.d", Some("")),
        ("\u{feff}[a] d = x\"  y \"z", "a.d", Some("x  y z")),
        ("[a]\n d = x\0y\n", "a.d", Some("x")),
    ] {
        let expected = [(name.to_owned(), value.map(str::to_owned))];
        assert_eq!(shown(file), expected, "{file:?}");
    }
}

#[test]
fn what_follows_a_line_that_git_cannot_read_is_read_all_the_same() {
    let found = shown("[a]\n b = 1\n !\n c = \"x\n d = \\q\n [e\n f = 2\n");
    assert_eq!(found.first(), Some(&("a.b".to_owned(), Some("1".to_owned()))));
    assert!(
        found
            .iter()
            .any(|(name, value)| name.ends_with('f') && value.as_deref() == Some("2")),
        "{found:?}"
    );
}

#[test]
fn every_word_that_can_be_a_file_is_told_and_a_program_of_the_path_is_not() {
    for (value, told) in [
        ("'tools/smudge' %f", &["tools/smudge"][..]),
        ("!bash tools/y.sh", &["tools/y.sh"]),
        ("sh tools/tc", &["tools/tc"]),
        ("sh tc", &["tc"]),
        ("tools/with\\ space -x", &["tools/with space"]),
        (
            "!f() { . ./lib.sh;tools/a|\"tools/b c\"; }; f",
            &["./lib.sh", "tools/a", "tools/b c"],
        ),
        ("store --file=creds/x", &["creds/x"]),
        ("ssh -Fconf/ssh", &["conf/ssh"]),
        ("!\"$(git rev-parse --show-toplevel)\"/tools/x", &["tools/x"]),
        ("!$GIT_DIR/../tools/x", &["tools/x", "../tools/x"]),
        ("ext::sh -c tools/z", &["tools/z"]),
    ] {
        let setting = Setting {
            name: b"filter.x.clean".to_vec(),
            value: Some(value.as_bytes().to_vec()),
        };
        let words = setting.words();
        for told in told {
            assert!(words.contains(std::path::Path::new(told)), "{value}: {words:?}");
        }
    }
    for (name, value) in [
        ("filter.x.clean", "cat"),
        ("branch.b.remote", "plain"),
        ("branch.b.merge", "refs/heads/b"),
        ("remote.o.fetch", "+refs/heads/b:refs/remotes/o/b"),
        ("user.name", "A README"),
    ] {
        let setting = Setting {
            name: name.into(),
            value: Some(value.into()),
        };
        assert!(setting.words().is_empty(), "{name} = {value}: {:?}", setting.words());
    }
}

/// What git makes of a file; nothing if it cannot read it.
fn of_git(path: &std::path::Path) -> Option<Vec<(String, Option<String>)>> {
    let done = Command::new("git")
        .args(["config", "-z", "--list", "-f"])
        .arg(path)
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .output()
        .expect("git is there");
    let entries = done.stdout.split(|byte| *byte == 0).filter(|entry| !entry.is_empty());
    let entries = entries.map(|entry| match entry.iter().position(|byte| *byte == b'\n') {
        Some(at) => (text(&entry[..at]), Some(text(&entry[at + 1..]))),
        None => (text(entry), None),
    });
    done.status.success().then(|| entries.collect())
}

#[test]
fn random_files_are_read_as_git_reads_them() {
    const PARTS: [&str; 38] = [
        "[core]",
        "[a \"b\"]",
        "[a.B \"C d\"]",
        "[x",
        "]",
        "key",
        "hooksPath",
        "k-2",
        " = ",
        "=",
        " ",
        "\t",
        "\n",
        "\n",
        "\n",
        "\r\n",
        "\r",
        "\"",
        "\\",
        "\\\n",
        "\\n",
        "\\t",
        "\\b",
        "\\\"",
        "\\\\",
        "\\x",
        ";",
        "#",
        "x",
        "é",
        "/",
        "!",
        "'",
        "\n[s]\n",
        "\nname = value",
        "\n\tpath = \"",
        "\" ; c\n",
        "\u{feff}",
    ];
    if !prerequisite::has(&["git"]) {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("config");
    let mut random = Random::new(7);
    let mut valid = 0;
    for _ in 0..FILES {
        // Half of them begin as files do, so that many can be read.
        let mut file = if random.once_in(2) { "[s]\n\tone = " } else { "" }.to_owned();
        for _ in 0..random.below(14) {
            file.push_str(PARTS[random.below(PARTS.len())]);
        }
        fs::write(&path, &file).expect("written");
        let Some(expected) = of_git(&path) else { continue };
        valid += 1;
        // Before 2.46 git makes a space of each white space that stands outside of quotes.
        let plain = |found: Vec<(String, Option<String>)>| -> Vec<_> {
            let plain = |value: String| value.replace(['\t', '\r'], " ");
            found
                .into_iter()
                .map(|(name, value)| (name, value.map(plain)))
                .collect()
        };
        assert_eq!(plain(shown(&file)), plain(expected), "{file:?}");
    }
    assert!(valid > FILES / 8, "{valid} of the files can be read at all");
}
