#![expect(clippy::disallowed_methods, reason = "the tests make the files that are searched")]

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use proptest::prelude::*;
use shieling_testkit::extent;

use super::super::test_workspace::{TestWorkspace, search as request, written};
use super::super::{FilesError, GrepMode, GrepRequest, GrepResponse, Include};
use crate::environment::FileError;

#[test]
fn lines_files_and_counts_are_given_in_the_order_of_their_paths() {
    let trial = TestWorkspace::with(&[
        ("b", "one\ntwo\none two\n"),
        ("a/x", "two"),
        ("a-b", "one\n"),
        ("c", "none\n"),
    ]);
    assert_eq!(
        trial.hits(&request("one")),
        ["a-b:1:one", "b:1:one", "b:3:one two", "c:1:none"]
    );
    let files = GrepRequest {
        mode: GrepMode::Files,
        ..request("two")
    };
    assert_eq!(trial.hits(&files), ["a/x", "b"]);
    let counts = GrepRequest {
        mode: GrepMode::Count,
        ..request("o")
    };
    assert_eq!(trial.hits(&counts), ["a-b:1", "a/x:1", "b:3", "c:1"]);
    let one = GrepRequest {
        path: "a/x".into(),
        ..request("t.o$")
    };
    assert_eq!(trial.hits(&one), ["x:1:two"]);
    let grepped = trial.grep(&request("one")).unwrap();
    assert_eq!((grepped.searched, grepped.binary, grepped.unreadable), (4, 0, 0));
}

#[test]
fn what_a_pattern_means_is_what_the_options_say() {
    let trial = TestWorkspace::with(&[("f", "a.c\nABC\nabc\r\n\n(x)\nab\ncd\n")]);
    let cases: &[(GrepRequest, &[&str])] = &[
        (request("a.c"), &["f:1:a.c", "f:3:abc"]),
        (
            GrepRequest {
                literal: true,
                ..request("a.c")
            },
            &["f:1:a.c"],
        ),
        (
            GrepRequest {
                literal: true,
                ..request("(x)")
            },
            &["f:5:(x)"],
        ),
        (
            GrepRequest {
                ignore_case: true,
                ..request("^abc$")
            },
            &["f:2:ABC", "f:3:abc"],
        ),
        (request("c$"), &["f:1:a.c", "f:3:abc"]),
        (request("^$"), &["f:4:"]),
        (request("b\\s*$"), &["f:6:ab"]),
        (
            GrepRequest {
                multiline: true,
                ..request("b\ncd")
            },
            &["f:6:ab\ncd"],
        ),
        (
            GrepRequest {
                multiline: true,
                ..request("x.*d")
            },
            &["f:5:(x)\nab\ncd"],
        ),
        (
            GrepRequest {
                multiline: true,
                ..request("^a[^b]")
            },
            &["f:1:a.c"],
        ),
        (
            GrepRequest {
                multiline: true,
                ..request("^$")
            },
            &["f:4:"],
        ),
    ];
    for (request, expected) in cases {
        assert_eq!(trial.hits(request), *expected, "{request:?}");
    }
    for pattern in ["", "x*", "^", "$", "\\b|", "(?:)"] {
        for multiline in [false, true] {
            let hits = trial.hits(&GrepRequest {
                multiline,
                ..request(pattern)
            });
            assert_eq!(hits.len(), 7, "{pattern:?} {multiline}: {hits:?}");
        }
    }
}

#[test]
fn a_pattern_that_is_none_is_refused_with_what_would_be_one() {
    let trial = TestWorkspace::with(&[("f", "x")]);
    for (pattern, says) in [
        ("a(?=b)", "look-around is not supported"),
        ("(?<!a)b", "look-around is not supported"),
        (r"(a)\1", "back-references are not supported"),
        ("a\\nb", "set `multiline`"),
        ("a\nb", "set `multiline`"),
        ("(", "set `literal`"),
        ("interface{}", "set `literal`"),
        ("*", "set `literal`"),
        ("\\w{2000}{2000}", "too much memory"),
    ] {
        let error = trial.grep(&request(pattern)).unwrap_err();
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
        assert!(!error.to_string().contains('\n'), "{pattern}: {error}");
    }
    let nested = format!("{}a{}", "(".repeat(20_000), ")".repeat(20_000));
    for pattern in [nested, "a".repeat(100_000), "(a|".repeat(90) + "b" + &")".repeat(90)] {
        drop(trial.grep(&request(&pattern)));
    }
    for wrong in [
        GrepRequest {
            limit: 0,
            ..request("x")
        },
        GrepRequest {
            limit: 10_001,
            ..request("x")
        },
        GrepRequest {
            before: 101,
            ..request("x")
        },
        GrepRequest {
            after_lines: u64::MAX,
            ..request("x")
        },
        GrepRequest {
            globs: vec!["[".to_owned()],
            ..request("x")
        },
        GrepRequest {
            globs: vec!["../*".to_owned()],
            ..request("x")
        },
        GrepRequest {
            globs: vec![String::new()],
            ..request("x")
        },
        GrepRequest {
            globs: vec!["!".to_owned()],
            ..request("x")
        },
        GrepRequest {
            globs: vec!["x".to_owned(); 101],
            ..request("x")
        },
        GrepRequest {
            cursor: Some(String::new()),
            ..request("x")
        },
        GrepRequest {
            cursor: Some("f".to_owned()),
            ..request("x")
        },
        GrepRequest {
            cursor: Some("1:/etc/passwd".to_owned()),
            ..request("x")
        },
        GrepRequest {
            cursor: Some("-1:f".to_owned()),
            ..request("x")
        },
    ] {
        let error = trial.grep(&wrong).unwrap_err();
        assert!(matches!(error, FilesError::Argument { .. }), "{wrong:?}: {error}");
    }
}

#[test]
fn a_pattern_that_stalls_other_engines_takes_time_in_proportion_to_the_text() {
    let trial = TestWorkspace::new();
    trial.put("f", format!("{}!\n", "a".repeat(100_000)).repeat(20));
    let started = Instant::now();
    for pattern in ["(a+)+$", "(a|a)*b", "(a*)*c", "(.*)(.*)(.*)(.*)(.*)[^a!\\s]"] {
        for multiline in [false, true] {
            assert_eq!(
                trial.hits(&GrepRequest {
                    multiline,
                    ..request(pattern)
                }),
                [] as [&str; 0],
                "{pattern}"
            );
        }
    }
    // Seconds in a build without optimizations; years where it is exponential.
    assert!(started.elapsed() < Duration::from_secs(120), "{:?}", started.elapsed());
}

#[test]
fn a_pattern_over_lines_that_looks_through_the_rest_at_each_match_is_given_up() {
    let trial = TestWorkspace::new();
    trial.put("f", "A\n".repeat(extent::rounds(1 << 20, 4 << 20)));
    let slow = GrepRequest {
        multiline: true,
        mode: GrepMode::Count,
        ..request("(?:[A\\n]*x)|A")
    };
    let grepped = trial.grep(&slow).unwrap();
    assert_eq!(grepped.unreadable, 1);
}

#[test]
fn lines_beside_a_match_are_given_once() {
    let trial = TestWorkspace::with(&[("f", "1\n2 x\n3\n4\n5 x\n6 x\n7\n8\n9\n")]);
    for multiline in [false, true] {
        let around = |before, after_lines| {
            trial.hits(&GrepRequest {
                before,
                after_lines,
                multiline,
                ..request("x")
            })
        };
        assert_eq!(around(1, 0), ["f-1-1", "f:2:2 x", "f-4-4", "f:5:5 x", "f:6:6 x"]);
        assert_eq!(around(0, 1), ["f:2:2 x", "f-3-3", "f:5:5 x", "f:6:6 x", "f-7-7"]);
        let all = [
            "f-1-1", "f:2:2 x", "f-3-3", "f-4-4", "f:5:5 x", "f:6:6 x", "f-7-7", "f-8-8",
        ];
        assert_eq!(around(2, 2), all);
        assert_eq!(around(100, 100).len(), 9);
    }
}

#[test]
fn a_search_finds_what_a_read_shows_in_other_encodings() {
    let trial = TestWorkspace::new();
    let japanese = "これは日本語の文章です。ファイルを読みます。\n";
    trial.put("latin", b"caf\xe9 needle\nna\xefve\n");
    trial.put("sjis", &encoding_rs::SHIFT_JIS.encode(japanese).0);
    trial.put(
        "unmarked",
        "größe\nplain text\n"
            .encode_utf16()
            .flat_map(u16::to_le_bytes)
            .collect::<Vec<u8>>(),
    );
    // The first bytes that are not ASCII: at the beginning, around the end of the first read, and far behind it.
    let ascii = "x needle 123456\n".repeat((1 << 16) - 2);
    for (name, before, after) in [
        ("large1", String::new(), ascii.repeat(2)),
        ("large2", ascii.clone(), ascii.repeat(2)),
        ("large3", ascii.repeat(3), "x\n".repeat(100_000)),
    ] {
        trial.put(name, [before.as_bytes(), b"caf\xe9 there\n", after.as_bytes()].concat());
    }
    for multiline in [false, true] {
        let found = |pattern: &str| {
            trial.hits(&GrepRequest {
                multiline,
                ..request(pattern)
            })
        };
        assert_eq!(found("日本語"), [format!("sjis:1:{}", japanese.trim_end())]);
        assert_eq!(found("^naïve$"), ["latin:2:naïve"]);
        assert_eq!(found("größe"), ["unmarked:1:größe"]);
        let line = (1 << 16) - 1;
        assert_eq!(
            found("^caf. there$"),
            [
                "large1:1:café there".to_owned(),
                format!("large2:{line}:café there"),
                format!("large3:{}:café there", 3 * (line - 1) + 1),
            ]
        );
    }
}

#[test]
fn files_that_are_no_text_are_counted_and_other_encodings_are_read() {
    let trial = TestWorkspace::new();
    let utf16 = |mark: &[u8], unit: fn(u16) -> [u8; 2]| {
        let mut bytes = mark.to_vec();
        bytes.extend("größe\r\nneedle ✓\n".encode_utf16().flat_map(unit));
        bytes
    };
    trial.put("le", utf16(b"\xff\xfe", u16::to_le_bytes));
    trial.put("be", utf16(b"\xfe\xff", u16::to_be_bytes));
    trial.put("bom", b"\xef\xbb\xbfneedle first");
    trial.put("latin", b"caf\xe9 needle\n");
    trial.put("binary", b"needle\n\0");
    trial.put("utf32", b"\xff\xfe\0\0n\0\0\0");
    trial.put("late", [&b"x".repeat(1 << 19)[..], b"\n\0needle"].concat());
    let expected = [
        "be:2:needle ✓",
        "bom:1:needle first",
        "latin:1:café needle",
        "le:2:needle ✓",
    ];
    for multiline in [false, true] {
        let grepped = trial
            .grep(&GrepRequest {
                multiline,
                ..request("needle")
            })
            .unwrap();
        assert_eq!(written(&grepped), expected);
        assert_eq!((grepped.searched, grepped.binary, grepped.unreadable), (4, 3, 0));
    }
    assert_eq!(trial.hits(&request("^needle f")), ["bom:1:needle first"]);
    let one = GrepRequest {
        path: "binary".into(),
        ..request("needle")
    };
    assert_eq!(trial.grep(&one).unwrap().binary, 1);
}

#[test]
fn a_large_file_is_searched_to_its_end_with_bounded_lines() {
    let trial = TestWorkspace::new();
    let line = format!("{}\n", "y".repeat(99));
    trial.put("large", line.repeat(60_000) + "needle\n" + &line + "needle");
    assert_eq!(
        trial.hits(&request("needle")),
        ["large:60001:needle", "large:60003:needle"]
    );
    assert_eq!(
        trial
            .hits(&GrepRequest {
                multiline: true,
                ..request("needle\ny")
            })
            .len(),
        1
    );
    // A line that no answer has room for.
    trial.put("endless", "z".repeat(40 << 20) + "needle");
    let grepped = trial.grep(&request("needle")).unwrap();
    assert_eq!((written(&grepped).len(), grepped.unreadable), (2, 1));
    let error = trial
        .grep(&GrepRequest {
            path: "endless".into(),
            multiline: true,
            ..request("z")
        })
        .unwrap_err();
    assert!(matches!(error, FilesError::TooLarge { .. }), "{error}");
}

#[test]
fn a_file_that_grows_faster_than_it_is_read_is_searched_up_to_the_size_it_had() {
    let trial = TestWorkspace::with(&[("log", "x\n")]);
    let path = trial.workspace().join("log");
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            use std::io::Write as _;
            let mut log = fs::OpenOptions::new().append(true).open(&path).unwrap();
            let mut left = 200 << 20;
            while left > 0 && !over.load(Ordering::Relaxed) {
                left -= log.write(&[b'x'; 1 << 16]).unwrap();
            }
        });
        for _ in 0..extent::rounds(5, 20) {
            trial
                .grep(&GrepRequest {
                    mode: GrepMode::Count,
                    ..request("x")
                })
                .unwrap();
        }
        over.store(true, Ordering::Relaxed);
    });
}

#[test]
fn globs_choose_files_and_bring_back_nothing_that_is_ignored() {
    let trial = TestWorkspace::with(&[
        (".gitignore", "*.log\n"),
        ("a.rs", "x"),
        ("src/b.rs", "x"),
        ("src/c.ts", "x"),
        ("src/d.log", "x"),
        ("tests/e.rs", "x"),
        (".hidden", "x"),
    ]);
    let chosen = |globs: &[&str]| {
        let globs = globs.iter().map(|glob| (*glob).to_owned()).collect();
        trial.hits(&GrepRequest {
            globs,
            mode: GrepMode::Files,
            ..request("x")
        })
    };
    assert_eq!(chosen(&["*.rs"]), ["a.rs", "src/b.rs", "tests/e.rs"]);
    assert_eq!(chosen(&["*.{rs,ts}", "!tests/"]), ["a.rs", "src/b.rs", "src/c.ts"]);
    assert_eq!(chosen(&["!*.rs"]), ["src/c.ts"]);
    assert_eq!(chosen(&["/*.rs"]), ["a.rs"]);
    assert_eq!(chosen(&["src/**"]), ["src/b.rs", "src/c.ts"]);
    assert_eq!(chosen(&["*.log"]), [] as [&str; 0]);
    let absolute = format!("{}/src/*.rs", trial.workspace().display());
    assert_eq!(chosen(&[&absolute]), ["src/b.rs"]);
    let all = GrepRequest {
        include: Include {
            ignored: true,
            dotfiles: true,
        },
        mode: GrepMode::Files,
        ..request("x")
    };
    assert_eq!(
        trial.hits(&all),
        [".hidden", "a.rs", "src/b.rs", "src/c.ts", "src/d.log", "tests/e.rs"]
    );
}

#[test]
fn nothing_hidden_or_outside_is_searched_by_any_way() {
    let trial = TestWorkspace::with(&[
        ("secret/key", "hunter2"),
        ("a/secret", "hunter2"),
        ("forbidden", "hunter2"),
        ("ok", "hunter2"),
        (".git/config", "hunter2"),
    ]);
    fs::write(trial.outside().join("out"), "hunter2").unwrap();
    trial.link("link", "secret/key");
    trial.link("directory", "secret");
    trial.link("outside", trial.outside().join("out"));
    trial.link("up", "..");
    trial.fifo("pipe");
    let all = GrepRequest {
        include: Include {
            ignored: true,
            dotfiles: true,
        },
        ..request("hunter2")
    };
    let grepped = trial.grep(&all).unwrap();
    assert_eq!(written(&grepped), ["ok:1:hunter2"]);
    assert_eq!(
        (grepped.searched, grepped.binary, grepped.unreadable),
        (1, 0, 1),
        "the forbidden one is told of"
    );
    for path in ["secret", "secret/key", "link", "directory", "a/secret"] {
        let error = trial
            .grep(&GrepRequest {
                path: path.into(),
                ..request("hunter2")
            })
            .unwrap_err();
        assert!(
            matches!(error, FilesError::File(FileError::NotFound(_))),
            "{path}: {error}"
        );
    }
    for path in ["outside", "up", "/etc/passwd", "../out"] {
        let error = trial
            .grep(&GrepRequest {
                path: path.into(),
                ..request(".")
            })
            .unwrap_err();
        assert!(
            matches!(error, FilesError::File(FileError::Outside { .. })),
            "{path}: {error}"
        );
    }
    let error = trial
        .grep(&GrepRequest {
            path: "pipe".into(),
            ..request(".")
        })
        .unwrap_err();
    assert!(matches!(error, FilesError::File(FileError::Special { .. })), "{error}");
    let error = trial
        .grep(&GrepRequest {
            path: "forbidden".into(),
            ..request(".")
        })
        .unwrap_err();
    assert!(matches!(error, FilesError::File(FileError::Permission(_))), "{error}");
}

#[test]
fn a_directory_that_is_swapped_for_a_link_while_it_is_searched_gains_nothing() {
    let trial = TestWorkspace::with(&[("a/f", "mine"), ("b/c/g", "mine")]);
    let outside = trial.outside().join("outside");
    fs::create_dir_all(outside.join("c")).unwrap();
    for name in ["f", "g", "c/g"] {
        fs::write(outside.join(name), "theirs").unwrap();
    }
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let place = |name: &str| trial.workspace().join(name);
            while !over.load(Ordering::Relaxed) {
                for (name, target) in [
                    ("a", outside.clone()),
                    ("b/c", outside.clone()),
                    ("a/f", outside.join("f")),
                ] {
                    let aside = trial.outside().join("aside");
                    if fs::rename(place(name), &aside).is_ok() {
                        drop(symlink(target, place(name)));
                        drop(fs::remove_file(place(name)));
                        drop(fs::rename(&aside, place(name)));
                    }
                }
            }
        });
        for round in 0..extent::rounds(200, 2_000) {
            let grepped = trial.grep(&request(".*")).unwrap();
            let theirs = grepped.hits.iter().any(|hit| hit.text.as_deref() == Some("theirs"));
            assert!(!theirs, "round {round}: {grepped:?}");
            let direct = trial.grep(&GrepRequest {
                path: "a/f".into(),
                ..request("theirs")
            });
            assert!(
                direct.is_err() || direct.is_ok_and(|grepped| grepped.hits.is_empty()),
                "round {round}"
            );
        }
        over.store(true, Ordering::Relaxed);
    });
}

#[test]
fn the_answer_of_eight_threads_is_the_answer_of_one_and_its_pages_are_it() {
    let trial = TestWorkspace::new();
    for number in 0..3_000_u32 {
        let lines = (0..number % 7).map(|line| format!("{} {line}\n", if line % 3 == 0 { "hit" } else { "miss" }));
        trial.put(
            format!("d{}/e{}/f{number}", number % 13, number % 5),
            lines.collect::<String>(),
        );
    }
    trial.put(
        "d0/e0/slow",
        "miss\n".repeat(extent::rounds(1 << 18, 1 << 20)) + "hit\n",
    );
    for mode in [GrepMode::Content, GrepMode::Files, GrepMode::Count] {
        let first = GrepRequest {
            mode,
            limit: 10_000,
            ..request("hit")
        };
        let whole = trial.grep(&first).unwrap();
        assert_eq!(whole.next, None);
        assert!(
            whole
                .hits
                .is_sorted_by_key(|hit| (hit.path.clone().into_os_string(), hit.line))
        );
        assert_eq!(whole.searched, 3_001);
        for _ in 0..3 {
            assert_eq!(trial.grep(&first).unwrap(), whole);
        }
        for limit in extent::share(vec![333, 1_000, 97], 3, |_| ()) {
            let short = GrepRequest { limit, ..first.clone() };
            let page = trial.grep(&short).unwrap();
            for _ in 0..extent::rounds(2, 5) {
                assert_eq!(trial.grep(&short).unwrap(), page, "the figures, too");
            }
            assert_eq!(paged(&trial, &short), whole.hits, "{limit}");
        }
    }
}

/// Every hit, in the order in which pages give them.
fn paged(trial: &TestWorkspace, first: &GrepRequest) -> Vec<super::super::Hit> {
    let (mut all, mut next) = (Vec::new(), first.clone());
    loop {
        let GrepResponse { hits, next: cursor, .. } = trial.grep(&next).unwrap();
        let matched = hits.iter().filter(|hit| hit.matched).count() as u64;
        assert!(
            matched <= first.limit && (cursor.is_none() || matched == first.limit),
            "{matched}"
        );
        all.extend(hits);
        match cursor {
            Some(cursor) => next.cursor = Some(cursor),
            None => return all,
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(extent::rounds(24, 80)))]
    #[test]
    fn pages_of_any_size_give_each_line_once_with_what_stands_beside_it(
        files in proptest::collection::btree_map("[ab]{1,2}|a/[ab%]|a-", "([xy]?\r?\n){0,12}[xy]?", 0..8),
        before in 0_u64..4,
        after_lines in 0_u64..4,
        limit in 1_u64..5,
        multiline in any::<bool>(),
    ) {
        let trial = TestWorkspace::new();
        let mut expected = Vec::new();
        for (name, content) in &files {
            if name == "a" {
                continue;
            }
            trial.put(name, content);
            expected.extend(naive(name, content, before as usize, after_lines as usize));
        }
        expected.sort_by(|one, other| one.0.cmp(&other.0).then(one.1.cmp(&other.1)));
        let first = GrepRequest { before, after_lines, multiline, limit, ..request("x") };
        let found: Vec<_> = paged(&trial, &first)
            .into_iter()
            .map(|hit| (hit.path.display().to_string(), hit.line.unwrap(), hit.text.unwrap(), hit.matched))
            .collect();
        prop_assert_eq!(found, expected);
    }
}

/// The lines with an `x`, and those beside them, found as simply as can be.
fn naive(name: &str, content: &str, before: usize, after: usize) -> Vec<(String, u64, String, bool)> {
    let lines: Vec<&str> = content
        .split_terminator('\n')
        .map(|line| line.strip_suffix('\r').unwrap_or(line))
        .collect();
    let matches = |at: usize| lines[at].contains('x');
    let given = |at: &usize| {
        let (from, to) = (at.saturating_sub(after), (at + before + 1).min(lines.len()));
        (from..to).any(matches)
    };
    let line = |at: usize| (name.to_owned(), at as u64 + 1, lines[at].to_owned(), matches(at));
    (0..lines.len()).filter(given).map(line).collect()
}

#[test]
fn an_answer_ends_once_it_has_enough_text_and_goes_on_where_it_ended() {
    let trial = TestWorkspace::new();
    let line = "é".repeat(1_000) + "\n";
    for number in 0..10 {
        trial.put(format!("f{number}"), line.repeat(500));
    }
    let first = GrepRequest {
        limit: 10_000,
        before: 3,
        ..request("é")
    };
    let page = trial.grep(&first).unwrap();
    assert!(page.next.is_some() && page.hits.len() < 2_200, "{}", page.hits.len());
    let (mut all, mut next) = (page.hits.len(), page.next);
    while let Some(cursor) = next {
        let page = trial
            .grep(&GrepRequest {
                cursor: Some(cursor),
                ..first.clone()
            })
            .unwrap();
        all += page.hits.len();
        next = page.next;
    }
    assert_eq!(all, 5_000);
}

#[test]
fn a_search_that_nobody_waits_for_ends_soon() {
    let trial = TestWorkspace::new();
    trial.put("large", "y".repeat(64).repeat(1 << 20).as_bytes());
    let stopped = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let search = scope.spawn(|| {
            super::grep(
                trial.context(),
                &GrepRequest {
                    path: "large".into(),
                    ..request("q.*z")
                },
                &stopped,
            )
        });
        stopped.store(true, Ordering::Relaxed);
        let answer = search.join().unwrap();
        assert!(answer.is_err() || answer.is_ok_and(|grepped| grepped.hits.is_empty()));
    });
    assert!(super::grep(trial.context(), &request("y"), &stopped).is_err());
}

#[test]
fn an_empty_directory_and_empty_files_are_searched_and_hold_nothing() {
    let trial = TestWorkspace::with(&[("empty", "")]);
    trial.directory("d");
    let grepped = trial.grep(&request("")).unwrap();
    assert_eq!((grepped.hits.len(), grepped.searched), (0, 1));
    let grepped = trial
        .grep(&GrepRequest {
            path: "d".into(),
            ..request("")
        })
        .unwrap();
    assert_eq!((grepped.hits.len(), grepped.searched), (0, 0));
}
