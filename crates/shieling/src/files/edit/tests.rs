use proptest::prelude::*;
use shieling_testkit::extent;

use crate::environment::FileError;
use crate::files::fake_files::{FakeWorkspace, make};
use crate::files::{Candidate, EditRequest, EditResponse, FileResponse, FilesError, ReadRequest, plan_edit, read};

fn request(old: &str, new: &str) -> EditRequest {
    EditRequest::new("f", old, new)
}

fn edit(world: &FakeWorkspace, request: &EditRequest) -> Result<EditResponse, FilesError> {
    match make(plan_edit(world.context(), request))? {
        FileResponse::Edit(edited) => Ok(edited),
        other => panic!("{other:?}"),
    }
}

fn edited(content: &[u8], old: &str, new: &str) -> Vec<u8> {
    let world = FakeWorkspace::with(&[("f", content)]);
    edit(&world, &request(old, new)).unwrap_or_else(|error| panic!("{old:?}: {error}"));
    world.files.content("f").unwrap()
}

fn nearest(content: &str, old: &str) -> Vec<Candidate> {
    match edit(&FakeWorkspace::with(&[("f", content.as_bytes())]), &request(old, "new")).unwrap_err() {
        FilesError::NoMatch { nearest, .. } => nearest,
        other => panic!("{other}"),
    }
}

#[test]
fn an_edit_keeps_every_byte_beside_it() {
    let cases: [(&[u8], &str, &str, &[u8]); 9] = [
        (b"a\r\nb\r\n", "b", "x\ny", b"a\r\nx\r\ny\r\n"),
        (b"a\r\nb\r\nc\nd", "a\nb", "x\ny", b"x\r\ny\r\nc\nd"),
        (b"a\r\nb\nc\n", "b\nc", "x\ny", b"a\r\nx\ny\n"),
        (b"\xef\xbb\xbfa\n", "a", "b", b"\xef\xbb\xbfb\n"),
        (b"\xef\xbb\xbfa\xef\xbb\xbf\n", "\u{feff}", "b", b"\xef\xbb\xbfab\n"),
        (b"no end", "end", "END", b"no END"),
        (b"\xfe\xfd\xfcabc\xff ok\n", "abc", "x", b"\xfe\xfd\xfcx\xff ok\n"),
        (b"a\x0cb\x0bc\rd\n", "b", "B", b"a\x0cB\x0bc\rd\n"),
        (b"a\r\nb", "b", "b\nc", b"a\r\nb\r\nc"),
    ];
    for (content, old, new, expected) in cases {
        assert_eq!(
            edited(content, old, new),
            expected,
            "{:?}",
            String::from_utf8_lossy(content)
        );
    }
}

#[test]
fn an_explicit_carriage_return_means_itself() {
    assert_eq!(edited(b"a\r\nb\n", "a\r\nb", "x\r\ny"), b"x\r\ny\n");
    let world = FakeWorkspace::with(&[("f", b"a\nb\n")]);
    let FilesError::NoMatch { nearest, .. } = edit(&world, &request("a\r\nb", "x")).unwrap_err() else {
        panic!()
    };
    assert!(
        nearest[0].differs.as_ref().unwrap().contains("line ends"),
        "{nearest:?}"
    );
}

#[test]
fn line_ends_of_either_kind_are_found_and_each_keeps_its_own() {
    let world = FakeWorkspace::with(&[("f", b"a\nb\n-\na\r\nb\r\n")]);
    let error = edit(&world, &request("a\nb\n", "x\n")).unwrap_err();
    assert!(
        matches!(&error, FilesError::Ambiguous { count: 2, lines, .. } if *lines == [1, 4]),
        "{error:?}"
    );
    let edited = edit(
        &world,
        &EditRequest {
            replace_all: true,
            ..request("a\nb\n", "x\ny\n")
        },
    )
    .unwrap();
    assert_eq!(edited.replacements, 2);
    assert_eq!(world.files.content("f").unwrap(), b"x\ny\n-\nx\r\ny\r\n");
}

#[test]
fn an_edit_writes_a_file_back_in_its_own_encoding() {
    let utf16 = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    assert_eq!(
        edited(&utf16("\u{feff}aé\r\nb\r\n"), "é\nb", "ü\nc"),
        utf16("\u{feff}aü\r\nc\r\n")
    );
    let french = "Le café était fermé, à côté de la forêt où l'été s'achève.\n";
    let latin = |text: &str| encoding_rs::WINDOWS_1252.encode(text).0.into_owned();
    assert_eq!(
        edited(&latin(french), "été", "hiver"),
        latin(&french.replacen(" l'été", " l'hiver", 1))
    );
    let world = FakeWorkspace::with(&[("f", &latin(french))]);
    let error = edit(&world, &request("fermé", "閉")).unwrap_err();
    assert!(error.to_string().contains("windows-1252, which has no `閉`"), "{error}");
}

#[test]
fn an_edit_adds_no_character_whose_bytes_would_follow_from_a_guess() {
    let world = FakeWorkspace::with(&[("f", b"na\xefve \xa3 5\nq\n")]);
    let error = edit(&world, &request("q", "é")).unwrap_err();
    let told = error.to_string();
    assert!(
        matches!(error, FilesError::Argument { argument: "new", .. }) && told.contains("is a guess from little text"),
        "{told}"
    );
    assert!(told.contains("`é`") && told.contains("windows-1252"), "{told}");
    // A character that the file contains has the bytes that it has there.
    edit(&world, &request("q", "£ ïq")).unwrap();
    edit(&world, &request(" 5", " 6")).unwrap();
    assert_eq!(world.files.content("f").unwrap(), b"na\xefve \xa3 6\n\xa3 \xefq\n");
    // Signs of a few kinds alone say nothing of the encoding, however many they are.
    let world = FakeWorkspace::with(&[("f", &b"\xa3 5, \xe9\n".repeat(30))]);
    assert!(edit(&world, &request("5", "ā")).is_err());
}

#[test]
fn the_second_half_of_a_character_is_not_found() {
    // In Shift_JIS the second byte of ソ is that of a backslash.
    let text = "これは日本語の文章です。ソースコードを表示します。\n";
    let (content, _, _) = encoding_rs::SHIFT_JIS.encode(text);
    let world = FakeWorkspace::with(&[("f", &content)]);
    assert!(matches!(
        edit(&world, &request("\\", "/")).unwrap_err(),
        FilesError::NoMatch { .. }
    ));
    edit(&world, &request("ソース", "リソース")).unwrap();
    let (expected, _, _) = encoding_rs::SHIFT_JIS.encode("これは日本語の文章です。リソースコードを表示します。\n");
    assert_eq!(world.files.content("f").unwrap(), expected.into_owned());
    // U+4100 U+0041 has the bytes of U+0041 in its midst.
    let utf16: Vec<u8> = "\u{feff}\u{4100}\u{0042}x"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    let world = FakeWorkspace::with(&[("f", &utf16)]);
    assert!(matches!(
        edit(&world, &request("A", "B")).unwrap_err(),
        FilesError::NoMatch { .. }
    ));
}

#[test]
fn a_text_that_is_there_several_times_is_told_with_its_lines() {
    let world = FakeWorkspace::with(&[("f", b"x\ny\nx\nxx\n")]);
    let error = edit(&world, &request("x", "z")).unwrap_err();
    assert!(
        matches!(&error, FilesError::Ambiguous { count: 4, lines, .. } if *lines == [1, 3, 4, 4]),
        "{error:?}"
    );
    assert_eq!(
        edit(
            &world,
            &EditRequest {
                replace_all: true,
                ..request("x", "z")
            }
        )
        .unwrap()
        .replacements,
        4
    );
    assert_eq!(world.files.content("f").unwrap(), b"z\ny\nz\nzz\n");
}

#[test]
fn a_text_that_overlaps_itself_is_there_twice_or_replaced_once() {
    let world = FakeWorkspace::with(&[("f", b"aaa")]);
    assert!(matches!(
        edit(&world, &request("aa", "b")).unwrap_err(),
        FilesError::Ambiguous { count: 2, .. }
    ));
    assert_eq!(
        edit(
            &world,
            &EditRequest {
                replace_all: true,
                ..request("aa", "b")
            }
        )
        .unwrap()
        .replacements,
        1
    );
    assert_eq!(world.files.content("f").unwrap(), b"ba");
}

#[test]
fn arguments_that_make_no_sense_say_what_would() {
    let world = FakeWorkspace::with(&[("f", b"a\n"), ("empty", b"")]);
    let cases = [
        ("f", "", "x", "write the whole file"),
        ("new", "", "x", "write it"),
        ("f", "a", "a", "nothing would change"),
        ("empty", "", "x", "write the whole file"),
    ];
    for (path, old, new, expected) in cases {
        let error = edit(
            &world,
            &EditRequest {
                path: path.into(),
                ..request(old, new)
            },
        )
        .unwrap_err();
        assert!(matches!(error, FilesError::Argument { .. }), "{error}");
        assert!(error.to_string().contains(expected), "{error}");
    }
    let error = edit(
        &world,
        &EditRequest {
            path: "new".into(),
            ..request("a", "b")
        },
    )
    .unwrap_err();
    assert!(matches!(error, FilesError::File(FileError::NotFound(_))), "{error}");
}

#[test]
fn what_is_no_text_is_not_edited() {
    let world = FakeWorkspace::with(&[("f", b"abc\0def")]);
    assert!(matches!(
        edit(&world, &request("abc", "x")).unwrap_err(),
        FilesError::NotText { .. }
    ));
}

#[test]
fn a_stale_edit_is_refused_with_what_has_changed() {
    let world = FakeWorkspace::with(&[("f", b"one\ntwo\n")]);
    let seen = read(world.context(), &ReadRequest::new("f")).unwrap().hash;
    world.files.put("f", b"one\ntwo\nthree\n");
    let error = edit(
        &world,
        &EditRequest {
            expect: Some(seen),
            ..request("one", "1")
        },
    )
    .unwrap_err();
    assert!(
        matches!(&error, FilesError::Stale { diff: Some(diff), .. } if diff.contains("+three")),
        "{error:?}"
    );
    assert_eq!(world.files.content("f").unwrap(), b"one\ntwo\nthree\n");
}

#[test]
fn what_changes_between_plan_and_make_is_not_overwritten() {
    let world = FakeWorkspace::with(&[("f", b"a\n")]);
    let planned = plan_edit(world.context(), &request("a", "b")).unwrap();
    world.files.put("f", b"a\n");
    assert!(matches!(
        (planned.make)().unwrap_err(),
        FilesError::File(FileError::Changed(_))
    ));
}

#[test]
fn the_diff_of_an_edit_shows_what_is_around_it() {
    let content: String = (1..=20).map(|n| format!("{n}\n")).collect();
    let world = FakeWorkspace::with(&[("f", content.as_bytes())]);
    let edited = edit(&world, &request("10\n11", "ten")).unwrap();
    let expected = "--- a/f\n+++ b/f\n@@ -7,8 +7,7 @@\n 7\n 8\n 9\n-10\n-11\n+ten\n 12\n 13\n 14\n";
    assert_eq!(edited.diff, expected);
    let edited = edit(
        &world,
        &EditRequest {
            replace_all: true,
            ..request("1", "one\n1")
        },
    )
    .unwrap();
    assert!(
        edited
            .diff
            .starts_with("--- a/f\n+++ b/f\n@@ -1,3 +1,4 @@\n+one\n 1\n 2\n 3\n@@ -8,12 +9,20 @@\n 8\n"),
        "{}",
        edited.diff
    );
}

#[test]
fn the_nearest_place_says_what_differs() {
    let content = "fn main() {\n\tlet total = sum(\"a\");\n\tprintln!(\"{total}\");\n}\nfn other() {}\n";
    let cases = [
        (
            "    let total = sum(\"a\");\n    println!(\"{total}\");",
            2,
            "only the indentation differs: the file has tabs",
        ),
        ("let total = sum('a');", 2, "only the quotes differ"),
        ("let Total = sum(\"a\");", 2, "only upper and lower case differ"),
        ("let total  =  sum(\"a\");", 2, "only blanks and line ends differ"),
        ("fn other() {}  ", 5, "only blanks at the ends of lines differ"),
        ("let total = sum(\\\"a\\\");", 2, "escapes"),
        ("fn main() {\\n\tlet total", 1, "escapes"),
        (
            "     2\t\tlet total = sum(\"a\");\n     3\t\tprintln!",
            2,
            "line numbers",
        ),
        ("let total = sum(“a”);", 2, "only the quotes differ"),
        ("fn main() {\r\n\tlet total", 1, "line ends differ"),
    ];
    for (old, line, differs) in cases {
        let nearest = nearest(content, old);
        let first = nearest.first().unwrap_or_else(|| panic!("nothing near {old:?}"));
        assert_eq!(first.line, line, "{old:?} {nearest:?}");
        assert!(
            first.differs.as_ref().is_some_and(|said| said.contains(differs)),
            "{old:?} {nearest:?}"
        );
    }
}

#[test]
fn a_text_with_a_wrong_word_is_found_by_what_is_right_in_it() {
    let content = "use a;\n\nfn count(items: &[Item]) -> usize {\n    let mut sum = 0;\n    for item in items {\n        sum += item.size;\n    }\n    sum\n}\n";
    let found = nearest(content, "    for item in items {\n        sum += item.weight;\n    }\n");
    assert_eq!(found[0].line, 5, "{found:?}");
    assert_eq!(found[0].differs.as_deref(), Some("line 2 of its 3 lines differs"));
    assert!(found[0].text.contains("item.size"));
    assert_eq!(nearest(content, "nothing of the kind, at all, ever: 12345 67890"), []);
    assert_eq!(nearest("", "x"), []);
    assert_eq!(nearest("abc", "  \n "), []);
}

#[test]
fn a_large_file_is_edited_at_once() {
    // Of 50 MB, in the full tests.
    let lines = extent::rounds(50_000, 1_000_000);
    for end in ["\n", "\r\n"] {
        let mut content = format!("    some line of a file that is not small at all{end}").repeat(lines);
        content.insert_str(25 * lines, &format!("the one{end}that is sought{end}"));
        let world = FakeWorkspace::with(&[("f", content.as_bytes())]);
        let started = std::time::Instant::now();
        edit(&world, &request("the one\nthat is sought\n", "another\n")).unwrap();
        println!("{} bytes, {end:?}: {:?}", content.len(), started.elapsed());
        assert!(started.elapsed() < std::time::Duration::from_secs(60));
        let started = std::time::Instant::now();
        let error = edit(&world, &request("the one\nthat is sougth\n", "another\n")).unwrap_err();
        println!("nothing found: {:?}, {error}", started.elapsed());
    }
}

#[test]
fn the_nearest_place_in_a_large_file_is_found_in_bounded_time() {
    let last = extent::rounds(80_000, 400_000) - 1;
    let mut content: String = (0..=last)
        .map(|n| format!("    let value_{n} = compute({n}, \"some text\");\n"))
        .collect();
    content.push_str(&"x".repeat(5 << 20));
    let started = std::time::Instant::now();
    let found = nearest(
        &content,
        &format!("let value_{last} = computed({last}, \"some texts\");\n}}\n}}\n"),
    );
    assert!(started.elapsed() < std::time::Duration::from_secs(60));
    assert_eq!(found.len(), 3, "{found:?}");
}

proptest! {
    #[test]
    fn an_edit_keeps_all_bytes_outside_the_match(
        before in prop::collection::vec(prop_oneof![1_u8..=255, Just(b'\r'), Just(b'\n')], 0..60),
        behind in prop::collection::vec(prop_oneof![1_u8..=255, Just(b'\r'), Just(b'\n')], 0..60),
        new in "[a-z]{0,8}",
    ) {
        let mark = b"<<the mark, which is long enough to keep this a text>>";
        let content = [before.as_slice(), mark, &behind].concat();
        let world = FakeWorkspace::with(&[("f", &content)]);
        match edit(&world, &request(std::str::from_utf8(mark).unwrap(), &new)) {
            Ok(edited) => {
                prop_assert_eq!(edited.replacements, 1);
                let expected = [before.as_slice(), new.as_bytes(), &behind].concat();
                prop_assert_eq!(world.files.content("f").unwrap(), expected);
            }
            // Bytes in front may make it UTF-16, in which the mark is something else.
            Err(_) => {
                let utf16 = content.starts_with(b"\xff\xfe") || content.starts_with(b"\xfe\xff");
                // A first byte may take the mark's first one into its own character.
                let taken = before.last().is_some_and(|byte| *byte > 0x80);
                prop_assert!(utf16 || taken);
                prop_assert_eq!(world.files.content("f").unwrap(), content);
            }
        }
    }
}
