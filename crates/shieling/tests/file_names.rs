//! Lists of file names that one command prints and another reads: what is known of the names where the text runs decides.
#![expect(clippy::disallowed_methods, reason = "files are made as a user makes them")]

use std::path::Path;
use std::process::Command as Process;
use std::sync::Arc;

use shieling::Shieling;
use shieling::environment::{Local, Shell};
use shieling::policy::{Decision, Policy};
use shieling::request::Command;
use shieling_testkit::Workspace;

/// Texts that hand names of files below `src` on, through blanks, quotes, or as words that begin an argument.
const SPLIT: [&str; 15] = [
    "find src | xargs head -1",
    "find src -name '*b*' | sort | xargs head -1",
    "find src | grep -v target | xargs sed -n 1p",
    "for f in $(find src); do head -1 \"$f\"; done",
    "for f in $(find src -type f | sort | head -5); do head -1 $f; done",
    "head -1 $(find src)",
    "for f in src/*; do head -1 $f; done",
    "for f in src/*; do sed -n 1p $f; done",
    "rg -l x src | xargs head -1",
    "grep -rl x src | xargs rg y",
    "head -1 $(rg -l x src)",
    "find src | while read f; do head -1 $f; done",
    "ls src/* | xargs head -1",
    "head -1 $(ls -t src/* | tail -3)",
    "for f in $(ls src); do sed -n 1p src/$f; done",
];

/// Texts that do the same with names where the text starts.
const HERE: [&str; 12] = [
    "for f in *; do sed -n 1p $f; done",
    "for f in *; do sed -n 1p \"$f\"; done",
    "rg -l x | xargs rg y",
    "for f in $(git ls-files); do sed -n 1p $f; done",
    "git ls-files | xargs sed -n 1p",
    "sed -n 1p $(git ls-files)",
    "sed -n 1p $(rg -l x)",
    "git ls-files | while read f; do sed -n 1p $f; done",
    "git grep -l x | xargs sed -n 1p",
    "ls | xargs sed -n 1p",
    "ls -t *.txt | head -1 | xargs sed -n 1p",
    "sed -n 1p $(ls)",
];

fn decides(policy: &Policy, root: &Path, text: &str) -> Decision {
    let shell = Shell::find(None).expect("there is a shell on every host that runs tests");
    let shieling = Shieling::builder(Arc::new(Local::new(shell)), policy.clone(), root)
        .build()
        .expect("it serves no other policy");
    shieling.judge(&Command::new(text, root).expect("a command")).decision
}

fn git(root: &Path, arguments: &[&str]) {
    let ended = Process::new("git").args(arguments).current_dir(root).status();
    assert!(ended.expect("git is there").success(), "{arguments:?}");
}

fn readonly() -> Policy {
    Policy::open().with_readonly()
}

fn ignore() -> Policy {
    Policy::open().with_ignore(&[".env"]).expect("a pattern")
}

#[test]
fn plain_names_are_handed_on_without_a_question() {
    let workspace = Workspace::new()
        .with(".env", "hidden")
        .with("src/b.txt", "x\n")
        .with("src/deep/b-c_d.rs", "x\n")
        .with("a.txt", "x\n");
    for policy in [readonly(), ignore()] {
        for text in SPLIT.iter().chain(&HERE) {
            // What git tracks is not known without a list.
            if !text.contains("git") && !text.contains("rg -l x |") && !text.contains("rg -l x)") {
                assert_eq!(decides(&policy, workspace.root(), text), Decision::Allow, "{text}");
            }
        }
    }
}

#[test]
fn names_that_split_or_expand_are_asked_about() {
    for name in [
        "b .env c",
        "b\t.env",
        "b\n.env",
        "b\n-x",
        "'b .env'",
        "b\\ .env",
        "b --pre=x",
        "a b/c.txt",
    ] {
        let workspace = Workspace::new()
            .with(".env", "hidden")
            .with(&format!("src/{name}"), "x\n");
        for text in SPLIT {
            assert_ne!(
                decides(&ignore(), workspace.root(), text),
                Decision::Allow,
                "{name:?}: {text}"
            );
        }
        // No option of `head` writes or starts anything.
        for text in SPLIT.iter().filter(|text| !text.contains("head -1")) {
            assert_ne!(
                decides(&readonly(), workspace.root(), text),
                Decision::Allow,
                "{name:?}: {text}"
            );
        }
    }
    for name in ["b*", "?env", "[.]env"] {
        let workspace = Workspace::new()
            .with(".env", "hidden")
            .with(&format!("src/{name}"), "x\n");
        for text in ["for f in src/*; do head -1 $f; done", "head -1 $(find src)"] {
            assert_ne!(
                decides(&ignore(), workspace.root(), text),
                Decision::Allow,
                "{name:?}: {text}"
            );
        }
    }
}

#[test]
fn names_that_begin_with_a_dash_are_asked_about_where_they_begin_an_argument() {
    let workspace = Workspace::new().with("--pre=x", "x\n").with("a.txt", "x\n");
    let git = |arguments: &[&str]| git(workspace.root(), arguments);
    git(&["init", "-q"]);
    git(&["add", "."]);
    for text in HERE {
        assert_ne!(decides(&readonly(), workspace.root(), text), Decision::Allow, "{text}");
    }
    // It stays in git's list where the file is gone.
    std::fs::remove_file(workspace.root().join("--pre=x")).expect("it is there");
    for text in HERE.iter().filter(|text| text.contains("git ls-files")) {
        assert_ne!(decides(&readonly(), workspace.root(), text), Decision::Allow, "{text}");
    }
    git(&["rm", "-q", "--cached", "--", "--pre=x"]);
    for text in HERE {
        assert_eq!(decides(&readonly(), workspace.root(), text), Decision::Allow, "{text}");
    }
}

#[test]
fn what_a_text_makes_or_where_it_goes_first_is_not_what_was_looked_up() {
    let workspace = Workspace::new()
        .with(".env", "hidden")
        .with("src/b.txt", "x\n")
        .with("other/c .env", "x\n");
    for text in [
        "touch 'src/a .env'; for f in src/*; do head -1 $f; done",
        "x='a .env'; echo > \"src/$x\"; head -1 $(find src)",
        "cp other/* src; find src | xargs head -1",
        "cd other; for f in src/*; do head -1 $f; done",
        "for d in src other; do (cd $d; head -1 $(find .)); done",
        "./x; head -1 $(find src)",
        "IFS=t; for f in src/*; do head -1 $f; done",
        "ln -s other/* src; find src | xargs head -1",
        "mv other src; find src | xargs head -1",
        "mv -t src other; grep -rl x src | xargs sed -n 1p",
        "SIMPLE_BACKUP_SUFFIX=' .env' cp -b src/b.txt src/c.txt; for f in src/*; do head -1 $f; done",
        "SIMPLE_BACKUP_SUFFIX=' .env' mv --backup src/b.txt src/c.txt; find src | xargs head -1",
    ] {
        assert_ne!(decides(&ignore(), workspace.root(), text), Decision::Allow, "{text}");
    }
    for text in [
        "for f in src/*; do head -1 $f >> out.txt; done",
        "for f in src/*; do cp $f $f.bak; done",
    ] {
        assert_eq!(decides(&ignore(), workspace.root(), text), Decision::Allow, "{text}");
    }
}

#[test]
fn what_read_cuts_off_a_name_is_part_of_it() {
    let workspace = Workspace::new()
        .with(".env", "hidden")
        .with(".env~", "x\n")
        .with("src/.env ", "x\n")
        .with("src/b.txt", "x\n");
    for text in [
        "find . -name '*~' | while IFS='~' read -r f; do cat \"$f\"; done",
        "IFS='~'; find . -name '*~' | while read -r f; do cat \"$f\"; done",
        "find . -name '*~' -print0 | while IFS='~' read -r -d '' f; do cat \"$f\"; done",
        "while IFS='~' read -r f; do cat \"$f\"; done < <(find . -name '*~')",
        "find src | while read -r f; do cat \"$f\"; done",
    ] {
        assert_ne!(decides(&ignore(), workspace.root(), text), Decision::Allow, "{text}");
    }
    let text = "find src -type f | while IFS= read -r f; do cat \"$f\"; done";
    assert_eq!(decides(&ignore(), workspace.root(), text), Decision::Allow, "{text}");
}

#[test]
fn names_are_looked_for_where_the_text_puts_them() {
    let workspace = Workspace::new()
        .with("keys/secret", "hidden")
        .with("keys/other", "x\n")
        .with("src/secret.rs", "x\n")
        .with("a.txt", "x\n");
    let policy = Policy::open().with_ignore(&["secret"]).expect("a pattern");
    for text in [
        "ls keys | xargs -I{} cat keys/{}",
        "ls | xargs -I{} cat {}/secret",
        "ls | xargs -I{} cat {}/s*",
        "for d in */; do ls $d | xargs -I{} cat $d{}; done",
        "for d in */; do echo secret | xargs -I{} cat $d{}; done",
        "for d in k* src; do echo secret | parallel cat $d/{}; done",
        "for d in $(ls); do cat $d/secret; done",
        "ls -d */ | xargs grep -r x",
        "cd keys && for f in $(ls); do cat $f; done",
        "ls -A | xargs cat",
        "ls -R | xargs cat",
        "(cd keys; ls) | xargs cat",
    ] {
        assert_ne!(decides(&policy, workspace.root(), text), Decision::Allow, "{text}");
    }
    for text in ["ls | xargs cat", "ls a* | xargs cat", "cat $(ls -t | head -1)"] {
        assert_eq!(decides(&policy, workspace.root(), text), Decision::Allow, "{text}");
    }
}

#[test]
fn names_in_a_list_that_a_search_skips_hidden_files_for_are_looked_at_too() {
    let workspace = Workspace::new()
        .with(".env", "hidden")
        .with(".gitignore", ".env\n")
        .with("src/a .env b", "x\n");
    git(workspace.root(), &["init", "-q"]);
    git(workspace.root(), &["add", "."]);
    for text in [
        "rg -l x src | xargs cat",
        "git ls-files | xargs cat",
        "git ls-files -z | xargs cat",
    ] {
        assert_ne!(decides(&ignore(), workspace.root(), text), Decision::Allow, "{text}");
    }
    assert_eq!(
        decides(&ignore(), workspace.root(), "git ls-files -z | xargs -0 cat"),
        Decision::Allow
    );
}

#[test]
fn names_in_directories_that_a_search_leaves_out_do_not_count() {
    let workspace = Workspace::new()
        .with("src/b.rs", "x\n")
        .with("target/a b.rs", "x\n")
        .with("deep/node_modules/--pre=x/c.rs", "x\n");
    let root = workspace.root();
    for text in [
        "find . -name '*.rs' -not -path './target/*' -not -path '*/node_modules/*' | xargs sed -n 1p",
        "find . \\( -path ./target -o -name node_modules \\) -prune -o -name '*.rs' -print | xargs sed -n 1p",
        "for f in $(find . -name '*.rs' ! -path './target/*' ! -path './deep/*'); do sed -n 1p $f; done",
    ] {
        assert_eq!(decides(&readonly(), root, text), Decision::Allow, "{text}");
    }
    for text in [
        "find . -name '*.rs' | xargs sed -n 1p",
        "find . -name '*.rs' -not -path './target/*' | xargs sed -n 1p",
        "find . -name '*.rs' -not -path './targe*/*' -not -path '*/node_modules/*' | xargs sed -n 1p",
        "find . -name '*.rs' -not -name target -not -path '*/node_modules/*' | xargs sed -n 1p",
        "find src . -name '*.rs' -not -path 'src/*' -not -path '*/node_modules/*' | xargs sed -n 1p",
    ] {
        assert_ne!(decides(&readonly(), root, text), Decision::Allow, "{text}");
    }
}

#[test]
fn what_git_does_not_track_is_on_no_list_of_it() {
    let workspace = Workspace::new().with("src/b.rs", "x\n");
    let root = workspace.root();
    let text = "git ls-files | xargs sed -n 1p";
    assert_ne!(decides(&readonly(), root, text), Decision::Allow);
    git(root, &["init", "-q"]);
    git(root, &["add", "."]);
    std::fs::write(root.join("not tracked"), "x").expect("written");
    assert_eq!(decides(&readonly(), root, text), Decision::Allow);
    // Of a linked tree the list is elsewhere.
    std::fs::rename(root.join(".git"), root.join("store")).expect("moved");
    std::fs::write(root.join(".git"), "gitdir: store").expect("written");
    assert_ne!(decides(&readonly(), root, text), Decision::Allow);
}

#[test]
fn a_wildcard_behind_a_link_leads_into_a_hidden_directory() {
    let workspace = Workspace::new()
        .with("secrets/key", "hidden")
        .with("src/deep/a.txt", "x\n");
    let root = workspace.root();
    std::os::unix::fs::symlink("../secrets", root.join("src/link")).expect("linked");
    let policy = Policy::open().with_ignore(&["secrets/**"]).expect("a pattern");
    for text in ["cat src/link/*", "cat src/*/*", "cat src/l*/k*"] {
        assert_ne!(decides(&policy, root, text), Decision::Allow, "{text}");
    }
    for text in ["cat src/deep/*", "cat src/d*/*", "ls src", "rm src/link"] {
        assert_eq!(decides(&policy, root, text), Decision::Allow, "{text}");
    }
}
