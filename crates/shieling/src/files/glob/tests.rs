#![expect(clippy::disallowed_methods, reason = "the tests make the files that are found")]

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;
use std::sync::atomic::AtomicBool;

use proptest::prelude::*;
use shieling_testkit::extent;

use super::super::test_workspace::TestWorkspace;
use super::super::{FilesError, GlobRequest, Include};
use crate::environment::FileError;

#[test]
fn a_pattern_finds_what_it_says_and_nothing_else() {
    let trial = TestWorkspace::with(&[
        ("a.rs", ""),
        ("src/b.rs", ""),
        ("src/deep/c.rs", ""),
        ("src/deep/d.txt", ""),
        ("src-old/e.rs", ""),
        ("README.md", ""),
        ("[x]/f.rs", ""),
        (".hidden/g.rs", ""),
        ("src/.h.rs", ""),
    ]);
    let rs = ["[x]/f.rs", "a.rs", "src-old/e.rs", "src/b.rs", "src/deep/c.rs"];
    let cases: &[(&str, &[&str])] = &[
        ("*.rs", &rs),
        ("**/*.rs", &rs),
        ("./*.rs", &rs),
        ("src/*.rs", &["src/b.rs"]),
        ("./src//*.rs", &["src/b.rs"]),
        ("src/**", &["src/b.rs", "src/deep/c.rs", "src/deep/d.txt"]),
        ("src/**/*.rs", &["src/b.rs", "src/deep/c.rs"]),
        ("*/*/*", &["src/deep/c.rs", "src/deep/d.txt"]),
        ("**/deep/*", &["src/deep/c.rs", "src/deep/d.txt"]),
        ("{a,b}.rs", &["a.rs", "src/b.rs"]),
        ("src/{deep/c,b}.rs", &["src/b.rs", "src/deep/c.rs"]),
        ("src/deep/[cd].*", &["src/deep/c.rs", "src/deep/d.txt"]),
        ("src/deep/[!c].*", &["src/deep/d.txt"]),
        (
            "?.rs",
            &["[x]/f.rs", "a.rs", "src-old/e.rs", "src/b.rs", "src/deep/c.rs"],
        ),
        ("[[]x]/*", &["[x]/f.rs"]),
        (r"\[x\]/*", &["[x]/f.rs"]),
        ("readme.md", &[]),
        ("src", &[]),
        ("**/", &["[x]/", "src-old/", "src/", "src/deep/"]),
        ("deep/", &["src/deep/"]),
        ("src/*/", &["src/deep/"]),
        (".*.rs", &["src/.h.rs"]),
        (".hidden/*", &[".hidden/g.rs"]),
        ("**/.h*", &["src/.h.rs"]),
        ("nothing/*", &[]),
    ];
    for (pattern, expected) in cases {
        assert_eq!(trial.paths(pattern), *expected, "{pattern}");
    }
    let absolute = format!("{}/src/*.rs", trial.workspace().display());
    assert_eq!(trial.paths(&absolute), ["src/b.rs"]);
    let below = GlobRequest {
        path: "src".into(),
        ..GlobRequest::new("*.rs")
    };
    assert_eq!(
        trial.find(&below).unwrap().paths,
        ["b.rs".as_ref(), "deep/c.rs".as_ref() as &std::path::Path]
    );
}

#[test]
fn a_pattern_that_leads_elsewhere_or_is_broken_is_refused_with_what_would_be_right() {
    let trial = TestWorkspace::with(&[("a", "")]);
    fs::write(trial.outside().join("beside"), "").unwrap();
    for (pattern, says) in [
        ("../*", "leads up with `..`"),
        ("a/../../*", "leads up with `..`"),
        ("{..,a}/*", "leads up with `..`"),
        ("/etc/*", "is absolute"),
        ("/*", "is absolute"),
        ("", "it is empty; `**/*` finds every file"),
        ("./", "it is empty"),
        ("src/[ab", "at character 5 of `src/[ab`"),
        ("größe/{a,b", "at character 7 of"),
        ("a}b", "at character 2 of"),
        ("[z-a]", "at character 2 of"),
        ("a\\", "at character 2 of"),
    ] {
        let error = trial.find(&GlobRequest::new(pattern)).unwrap_err();
        assert!(
            matches!(
                error,
                FilesError::Argument {
                    argument: "pattern",
                    ..
                }
            ),
            "{pattern}: {error}"
        );
        assert!(error.to_string().contains(says), "{pattern}: {error}");
    }
    let long = "a".repeat(5_000);
    assert!(
        trial
            .find(&GlobRequest::new(&long))
            .unwrap_err()
            .to_string()
            .contains("too long")
    );
    assert!(
        trial
            .find(&GlobRequest {
                limit: 0,
                ..GlobRequest::new("*")
            })
            .is_err()
    );
    for after in ["/etc", "../x", "", "%"] {
        let error = trial
            .find(&GlobRequest {
                after: Some(after.to_owned()),
                ..GlobRequest::new("*")
            })
            .unwrap_err();
        assert!(
            matches!(error, FilesError::Argument { argument: "after", .. }),
            "{after}: {error}"
        );
    }
}

#[test]
fn patterns_that_would_blow_up_are_read_or_refused_and_never_waited_for() {
    let trial = TestWorkspace::with(&[("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab", "")]);
    for pattern in [
        "*a".repeat(100),
        "{a,b}".repeat(500),
        format!("{}a{}", "{".repeat(1_000), "}".repeat(1_000)),
        "**/".repeat(1_000) + "x",
        "[".repeat(2_000),
    ] {
        let error = trial
            .find(&GlobRequest::new(&pattern))
            .err()
            .map(|error| error.to_string());
        assert!(error.as_ref().is_none_or(|error| error.len() < 400), "{error:?}");
        drop(trial.find(&GlobRequest::new("*")));
    }
}

#[test]
fn links_are_found_and_not_entered() {
    let trial = TestWorkspace::with(&[("d/f", "x"), ("secret/key", "x")]);
    trial.link("to-directory", "d");
    trial.link("to-etc", "/etc");
    trial.link("up", "..");
    trial.link("self", ".");
    trial.link("to-secret", "secret");
    assert_eq!(
        trial.paths("**"),
        ["d/f", "self", "to-directory", "to-etc", "to-secret", "up"]
    );
    assert_eq!(trial.paths("to-etc/*"), [] as [&str; 0]);
    assert_eq!(trial.paths("to-secret/*"), [] as [&str; 0]);
    let through = GlobRequest {
        path: "to-directory".into(),
        ..GlobRequest::new("*")
    };
    assert_eq!(trial.find(&through).unwrap().paths, ["f".as_ref() as &std::path::Path]);
    for path in ["to-etc", "up", "to-secret", "d/f"] {
        assert!(matches!(
            trial.find(&GlobRequest {
                path: path.into(),
                ..GlobRequest::new("*")
            }),
            Err(FilesError::File(
                FileError::Outside { .. } | FileError::NotFound(_) | FileError::NotADirectory(_)
            ))
        ));
    }
}

#[test]
fn ignore_files_leave_out_what_git_and_other_tools_would() {
    let trial = TestWorkspace::with(&[
        (".git/info/exclude", "excluded\n"),
        (".git/config", ""),
        (
            ".gitignore",
            "\u{feff}target/\n/root-only\n*.log\n!keep.log\n# comment\n\\#hash\nsub/anchored\n\r\nspaces   \n[broken\n",
        ),
        (".ignore", "private\n!shown.log\n"),
        ("target/x", ""),
        ("nested/target/x", ""),
        ("file/target", ""),
        ("root-only", ""),
        ("nested/root-only", ""),
        ("a.log", ""),
        ("keep.log", ""),
        ("shown.log", ""),
        ("#hash", ""),
        ("sub/anchored", ""),
        ("nested/sub/anchored", ""),
        ("spaces", ""),
        ("excluded", ""),
        ("nested/excluded", ""),
        ("private", ""),
        ("inner/.gitignore", "!a.log\nlocal\n"),
        ("inner/a.log", ""),
        ("inner/local", ""),
        ("inner/local2", ""),
        ("braces/.gitignore", "{a,b}\n"),
        ("braces/a", ""),
        ("braces/{a,b}", ""),
        ("other-repository/.git/HEAD", ""),
        ("other-repository/b.log", ""),
        ("other-repository/private", ""),
        ("other-repository/excluded", ""),
    ]);
    assert_eq!(
        trial.paths("**"),
        [
            "braces/a",
            "file/target",
            "inner/a.log",
            "inner/local2",
            "keep.log",
            "nested/root-only",
            "nested/sub/anchored",
            "other-repository/b.log",
            "other-repository/excluded",
            "shown.log",
        ]
    );
    let everything = GlobRequest {
        include: Include {
            ignored: true,
            dotfiles: true,
        },
        ..GlobRequest::new("**")
    };
    let everything = trial.find(&everything).unwrap().paths;
    assert!(
        !everything.iter().any(|path| path.starts_with(".git")),
        "{everything:?}"
    );
    assert_eq!(everything.len(), 27);
    let below = GlobRequest {
        path: "nested".into(),
        ..GlobRequest::new("**")
    };
    let below = trial.find(&below).unwrap().paths;
    assert_eq!(
        below,
        ["root-only".as_ref(), "sub/anchored".as_ref() as &std::path::Path],
        "the rules above hold"
    );
    let asked_for = GlobRequest {
        path: "target".into(),
        ..GlobRequest::new("**")
    };
    assert_eq!(
        trial.find(&asked_for).unwrap().paths.len(),
        1,
        "what is asked for itself is looked at"
    );
}

#[test]
fn an_ignore_file_that_is_none_ignores_nothing_and_holds_nobody_up() {
    let trial = TestWorkspace::with(&[
        ("fifo/a", ""),
        ("link/a", ""),
        ("huge/a", ""),
        ("binary/a", ""),
        ("dir/.gitignore/x", ""),
        ("dir/a", ""),
        ("secret/rules", "a\n"),
    ]);
    trial.fifo("fifo/.gitignore");
    fs::write(trial.outside().join("rules"), "a\n").unwrap();
    trial.link("link/.gitignore", trial.outside().join("rules"));
    trial.link("link/.ignore", "../secret/rules");
    trial.put("huge/.gitignore", "a\n".repeat(1 << 20));
    trial.put(
        "deep/.gitignore",
        "{".repeat(100_000) + "\n" + &"a{".repeat(10_000) + "\n" + &"*".repeat(100_000) + "\nb\n",
    );
    trial.put("deep/a", "");
    trial.put("deep/b", "");
    trial.put("binary/.gitignore", b"\xff\xfe\0\x01a\n\xc3(\n");
    let found = trial.find(&GlobRequest::new("**")).unwrap();
    let paths: Vec<_> = found.paths.iter().map(|path| path.display().to_string()).collect();
    assert_eq!(paths, ["binary/a", "deep/a", "dir/a", "fifo/a", "huge/a", "link/a"]);
    assert_eq!(found.unreadable, 1, "the huge one could not be honoured");
}

#[test]
fn what_is_hidden_is_neither_found_nor_counted_and_what_is_forbidden_is_counted() {
    let trial = TestWorkspace::with(&[("a/secret/x", ""), ("secret", ""), ("b/forbidden/y", ""), ("c", "")]);
    let found = trial.find(&GlobRequest::new("**")).unwrap();
    assert_eq!(found.paths, ["c".as_ref() as &std::path::Path]);
    assert_eq!(found.unreadable, 1);
}

#[test]
fn names_that_are_no_text_or_hold_line_ends_are_found_and_gone_on_after() {
    use std::os::unix::ffi::OsStringExt as _;
    let trial = TestWorkspace::new();
    let names: Vec<std::ffi::OsString> = [&b"a\nb"[..], b"a\xff", b"b%41", b"c d"]
        .iter()
        .map(|name| std::ffi::OsString::from_vec(name.to_vec()))
        .collect();
    for name in &names {
        trial.put(name, "");
    }
    assert_eq!(paged(&trial, &GlobRequest::new("*"), 1), names);
    let told = serde_json::to_value(trial.find(&GlobRequest::new("*")).unwrap()).unwrap();
    assert_eq!(
        told["paths"][1], "a\u{fffd}",
        "a name that is no text does not keep the others from being told"
    );
}

fn paged(trial: &TestWorkspace, first: &GlobRequest, limit: u64) -> Vec<std::ffi::OsString> {
    let mut next = GlobRequest { limit, ..first.clone() };
    let mut all = Vec::new();
    loop {
        let found = trial.find(&next).unwrap();
        assert!(found.paths.len() as u64 <= limit);
        all.extend(found.paths.into_iter().map(std::path::PathBuf::into_os_string));
        match found.next {
            Some(after) => next.after = Some(after),
            None => return all,
        }
    }
}

/// Trees of few names, among them such as sort between a directory and what is in it.
fn trees() -> impl Strategy<Value = BTreeSet<String>> {
    let name = prop_oneof!["[ab]{1,2}", "a[-.0]", "[ab]%"];
    let path = proptest::collection::vec(name, 1..4).prop_map(|names| names.join("/"));
    proptest::collection::btree_set(path, 0..25)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(extent::rounds(24, 80)))]
    #[test]
    fn pages_of_any_size_give_each_path_once_sorted_by_bytes(tree in trees(), limit in 1_u64..6, directories in any::<bool>()) {
        let trial = TestWorkspace::new();
        let made: BTreeSet<String> = tree.into_iter().filter(|path| make(&trial, path)).collect();
        let expected: BTreeSet<String> = if directories {
            made.iter().flat_map(|path| path.match_indices('/').map(|(at, _)| path[..=at].to_owned())).collect()
        } else {
            made
        };
        let pattern = if directories { "**/" } else { "**" };
        let found: Vec<String> = paged(&trial, &GlobRequest::new(pattern), limit).into_iter().map(|path| path.into_string().unwrap()).collect();
        prop_assert_eq!(found, expected.into_iter().collect::<Vec<_>>());
    }

    #[test]
    fn what_git_ignores_is_left_out_and_nothing_else(
        tree in trees(),
        rules in proptest::collection::vec("!?/?([ab*]{1,2}|\\*\\*)(/[ab*]{1,2})?/?", 0..6),
        inner in proptest::collection::vec("!?/?[ab*]{1,2}/?", 0..3),
    ) {
        let trial = TestWorkspace::new();
        let git = |arguments: &[&str]| {
            let mut git = Command::new("git");
            git.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
            git.env("GIT_CONFIG_NOSYSTEM", "1").env("HOME", trial.outside());
            git.current_dir(trial.workspace()).args(arguments).output()
        };
        let Ok(made) = git(&["init", "-q"]) else {
            assert!(std::env::var_os("CI").is_none(), "git is missing");
            eprintln!("not compared: git is missing");
            return Ok(());
        };
        prop_assert!(made.status.success());
        fs::write(trial.workspace().join(".git/info/exclude"), "").unwrap();
        for path in tree {
            make(&trial, &path);
        }
        trial.put(".gitignore", rules.join("\n"));
        if trial.workspace().join("a").is_dir() {
            trial.put("a/.gitignore", inner.join("\n"));
        }
        let listed = git(&["ls-files", "-z", "--others", "--exclude-standard"]).unwrap();
        let expected: BTreeSet<String> = String::from_utf8(listed.stdout)
            .unwrap()
            .split_terminator('\0')
            .filter(|path| !path.ends_with(".gitignore"))
            .map(str::to_owned)
            .collect();
        let found: BTreeSet<String> = trial.paths("**").into_iter().collect();
        prop_assert_eq!(found, expected, "{:?} {:?}", rules, inner);
    }
}

/// Makes a file, unless one stands where a directory is needed, or the other way round.
fn make(trial: &TestWorkspace, path: &str) -> bool {
    let path = trial.workspace().join(path);
    fs::create_dir_all(path.parent().unwrap()).is_ok() && !path.is_dir() && fs::write(path, "").is_ok()
}

#[test]
fn a_tree_of_thousands_of_levels_is_walked_with_few_handles_and_no_deep_stack() {
    let trial = TestWorkspace::new();
    let depth = extent::rounds(1_500, 5_000);
    deep(&trial, depth);
    // A file beside each directory, so that each level has something left when it is returned to.
    let before = fs::read_dir("/proc/self/fd").unwrap().count();
    let found = std::thread::scope(|scope| {
        let small = std::thread::Builder::new().stack_size(256 << 10);
        let walk = small.spawn_scoped(scope, || {
            trial
                .find(&GlobRequest {
                    limit: 10_000,
                    ..GlobRequest::new("z")
                })
                .unwrap()
        });
        let mut most = 0;
        let walk = walk.unwrap();
        while !walk.is_finished() {
            most = most.max(fs::read_dir("/proc/self/fd").unwrap().count());
            std::thread::yield_now();
        }
        assert!(most < before + 400, "{most} descriptors, {before} before");
        walk.join().unwrap()
    });
    assert_eq!((found.paths.len(), found.unreadable), (depth, 0));
    remove_deep(&trial);
}

/// Directories `d` in each other, each with a file `z` that sorts behind it.
fn deep(trial: &TestWorkspace, depth: usize) {
    use rustix::fs::{Mode, OFlags, mkdirat, open, openat};
    let mut directory = open(trial.workspace(), OFlags::PATH, Mode::empty()).unwrap();
    for _ in 0..depth {
        drop(openat(&directory, "z", OFlags::CREATE | OFlags::WRONLY, Mode::RWXU).unwrap());
        mkdirat(&directory, "d", Mode::RWXU).unwrap();
        directory = openat(&directory, "d", OFlags::PATH, Mode::empty()).unwrap();
    }
}

/// A path to the deepest would be too long for the usual removal.
fn remove_deep(trial: &TestWorkspace) {
    assert!(
        Command::new("rm")
            .arg("-rf")
            .arg(trial.workspace())
            .status()
            .unwrap()
            .success()
    );
}

#[test]
fn a_search_that_nobody_waits_for_ends() {
    let trial = TestWorkspace::with(&[("a", "")]);
    let found = super::find(trial.context(), &GlobRequest::new("*"), &AtomicBool::new(true));
    assert!(found.is_err());
}
