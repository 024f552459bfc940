//! Settings are read as git reads them: random files, compared with the git of this machine.
#![allow(clippy::disallowed_methods, reason = "tests write files and run git")]

use std::fs;
use std::process::Command;

use shieling_testkit::prerequisite;
use shieling_testkit::random::Random;

use shieling_gate::settings::parse;

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
