use proptest::prelude::*;

use crate::environment::FileError;
use crate::files::diff::{Names, of_texts};
use crate::files::fake_files::{FakeWorkspace, make};
use crate::files::test_workspace::TestWorkspace;
use crate::files::{Access, FileResponse, FilesError, PatchRequest, PatchResponse, plan_patch};

fn patch(world: &FakeWorkspace, patch: &str) -> Result<PatchResponse, FilesError> {
    applied(world, &PatchRequest::new(patch))
}

fn applied(world: &FakeWorkspace, request: &PatchRequest) -> Result<PatchResponse, FilesError> {
    match make(plan_patch(world.context(), request))? {
        FileResponse::Patch(patched) => Ok(patched),
        other => panic!("{other:?}"),
    }
}

fn content(world: &FakeWorkspace, name: &str) -> String {
    String::from_utf8(world.files.content(name).unwrap_or_else(|| panic!("no {name}"))).unwrap()
}

const GIT: &str = "\
From 1234 Mon Sep 17 00:00:00 2001
Subject: a change
---
diff --git a/src/main.rs b/src/main.rs
index 83db48f..bf269f4 100644
--- a/src/main.rs
+++ b/src/main.rs
@@ -1,3 +1,4 @@ fn main
 fn main() {
-    old();
+    new();
+    newer();
 }
@@ -6,2 +7,2 @@
 two
-three
+THREE
diff --git a/new file.txt b/new file.txt
new file mode 100755
index 0000000..1234567
--- /dev/null
+++ b/new file.txt\t
@@ -0,0 +1,2 @@
+#!/bin/sh
+echo
diff --git a/gone b/gone
deleted file mode 100644
--- a/gone
+++ /dev/null
@@ -1 +0,0 @@
-gone
diff --git a/old name b/new name
similarity index 100%
rename from old name
rename to new name
diff --git a/empty b/empty
new file mode 100644
index 0000000..e69de29
-- 
2.39.0
";

fn git_world() -> FakeWorkspace {
    FakeWorkspace::with(&[
        ("src/main.rs", b"fn main() {\n    old();\n}\n\none\ntwo\nthree\n"),
        ("gone", b"gone\n"),
        ("old name", b"kept"),
    ])
}

#[test]
fn a_patch_of_git_changes_makes_removes_and_moves() {
    let world = git_world();
    let planned = plan_patch(world.context(), &PatchRequest::new(GIT)).unwrap();
    assert!(
        planned.paths.contains(&(Access::Remove, "/w/gone".into())),
        "{:?}",
        planned.paths
    );
    assert!(
        planned.paths.contains(&(Access::Write, "/w/new name".into())),
        "{:?}",
        planned.paths
    );
    assert!(
        planned.paths.contains(&(Access::Remove, "/w/old name".into())),
        "{:?}",
        planned.paths
    );
    assert_eq!(world.files.all(), git_world().files.all());
    let FileResponse::Patch(patched) = (planned.make)().unwrap() else {
        panic!()
    };
    assert_eq!(
        content(&world, "src/main.rs"),
        "fn main() {\n    new();\n    newer();\n}\n\none\ntwo\nTHREE\n"
    );
    assert_eq!(content(&world, "new file.txt"), "#!/bin/sh\necho\n");
    assert_eq!(world.files.mode("new file.txt"), Some(0o755));
    assert_eq!(content(&world, "new name"), "kept");
    assert_eq!(content(&world, "empty"), "");
    assert_eq!(world.files.all().len(), 4);
    let told: Vec<_> = patched
        .files
        .iter()
        .map(|file| (file.change, file.added, file.removed))
        .collect();
    assert_eq!(
        told,
        [
            ("changed", 3, 2),
            ("added", 2, 0),
            ("removed", 0, 1),
            ("moved", 0, 0),
            ("added", 0, 0)
        ]
    );
    let back = PatchRequest {
        reverse: true,
        ..PatchRequest::new(GIT)
    };
    applied(&world, &back).unwrap();
    assert_eq!(world.files.all(), git_world().files.all());
}

#[test]
fn names_may_have_no_sides_be_quoted_or_have_a_time() {
    let cases = [
        ("x.txt", "--- x.txt\n+++ x.txt\n@@ -1 +1 @@\n-a\n+b\n"),
        (
            "x.txt",
            "--- x.txt\t2020-01-01 00:00:00\n+++ x.txt\t2021-01-01 00:00:00\n@@ -1 +1 @@\n-a\n+b\n",
        ),
        ("a/x", "diff --git a/x a/x\n--- a/x\n+++ a/x\n@@ -1 +1 @@\n-a\n+b\n"),
        (
            "tab\tü",
            "--- \"a/tab\\t\\303\\274\"\n+++ \"b/tab\\t\\303\\274\"\n@@ -1 +1 @@\n-a\n+b\n",
        ),
        (
            "x y",
            "diff --git a/x y b/x y\n--- a/x y\t\n+++ b/x y\t\n@@ -1 +1 @@\n-a\n+b\n",
        ),
        ("/w/deep/x", "--- /w/deep/x\n+++ /w/deep/x\n@@ -1 +1 @@\n-a\n+b\n"),
    ];
    for (name, text) in cases {
        let world = FakeWorkspace::with(&[(name, b"a\n")]);
        patch(&world, text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(content(&world, name), "b\n");
    }
}

#[test]
fn a_hunk_with_a_wrong_number_is_put_where_its_lines_are_once() {
    let world = FakeWorkspace::with(&[("f", b"1\n2\n3\nx\n5\n6\nx\n8\n")]);
    patch(
        &world,
        "--- a/f\n+++ b/f\n@@ -90,2 +90,2 @@\n 3\n-x\n+y\n@@ -95,2 +95,2 @@\n-x\n+z\n 8\n",
    )
    .unwrap();
    assert_eq!(content(&world, "f"), "1\n2\n3\ny\n5\n6\nz\n8\n");
    let world = FakeWorkspace::with(&[("f", b"x\n1\nx\n2\nx\n")]);
    let error = patch(&world, "--- a/f\n+++ b/f\n@@ -90 +90 @@\n-x\n+y\n").unwrap_err();
    assert!(
        matches!(&error, FilesError::Misfit { hunk: 1, why, .. } if why.contains("1, 3, 5")),
        "{error}"
    );
    patch(&world, "--- a/f\n+++ b/f\n@@ -3 +3 @@\n-x\n+y\n").unwrap();
    assert_eq!(content(&world, "f"), "x\n1\ny\n2\nx\n");
}

#[test]
fn nothing_in_a_hunk_is_forgiven() {
    let world = FakeWorkspace::with(&[("f", b"\tone\n  two\nthree \nlast")]);
    let cases = [
        "@@ -1 +1 @@\n-    one\n+x\n",
        "@@ -2 +2 @@\n-two\n+x\n",
        "@@ -3 +3 @@\n-three\n+x\n",
        "@@ -4 +4 @@\n-last\n+x\n",
        "@@ -2 +2 @@\n-  TWO\n+x\n",
    ];
    for hunk in cases {
        let error = patch(&world, &format!("--- a/f\n+++ b/f\n{hunk}")).unwrap_err();
        assert!(matches!(error, FilesError::Misfit { .. }), "{hunk}: {error}");
    }
    let FilesError::Misfit { nearest, .. } =
        patch(&world, "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-    one\n+x\n").unwrap_err()
    else {
        panic!()
    };
    assert!(
        nearest[0].differs.as_ref().unwrap().contains("indentation"),
        "{nearest:?}"
    );
    let error = patch(&world, "--- a/f\n+++ b/f\n@@ -4 +4 @@\n-last\n+x\n").unwrap_err();
    assert!(error.to_string().contains("No newline"), "{error}");
    patch(
        &world,
        "--- a/f\n+++ b/f\n@@ -4 +4 @@\n-last\n\\ No newline at end of file\n+x\n",
    )
    .unwrap();
    assert_eq!(content(&world, "f"), "\tone\n  two\nthree \nx\n");
}

#[test]
fn line_ends_of_a_file_are_kept() {
    let text = "--- a/f\n+++ b/f\n@@ -1,2 +1,3 @@\n a\n-b\n+x\n+y\n";
    let world = FakeWorkspace::with(&[("f", b"a\r\nb\r\nc\n")]);
    patch(&world, text).unwrap();
    assert_eq!(world.files.content("f").unwrap(), b"a\r\nx\r\ny\r\nc\n");
    applied(
        &world,
        &PatchRequest {
            reverse: true,
            ..PatchRequest::new(text)
        },
    )
    .unwrap();
    assert_eq!(world.files.content("f").unwrap(), b"a\r\nb\r\nc\n");

    let exact = "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n a\r\n-b\r\n+x\n";
    patch(&world, exact).unwrap();
    assert_eq!(world.files.content("f").unwrap(), b"a\r\nx\nc\n");

    let sent = "--- a/f\r\n+++ b/f\r\n@@ -2 +2 @@\r\n-x\r\n+z\r\n";
    patch(&world, sent).unwrap();
    assert_eq!(world.files.content("f").unwrap(), b"a\r\nz\nc\n");
}

#[test]
fn a_mark_and_an_encoding_are_kept() {
    let utf16 = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    let text = "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+ü\n";
    for (was, is) in [
        (utf16("\u{feff}a\r\n"), utf16("\u{feff}ü\r\n")),
        ("\u{feff}a\n".into(), "\u{feff}ü\n".into()),
    ] {
        let world = FakeWorkspace::with(&[("f", &was)]);
        patch(&world, text).unwrap();
        assert_eq!(world.files.content("f").unwrap(), is);
    }
    let world = FakeWorkspace::with(&[("f", "\u{feff}a\n".as_bytes())]);
    patch(&world, "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-\u{feff}a\n+a\n").unwrap();
    assert_eq!(content(&world, "f"), "a\n");
    let world = FakeWorkspace::with(&[("f", b"a\0b\n")]);
    assert!(matches!(patch(&world, text).unwrap_err(), FilesError::NotText { .. }));
}

#[test]
fn a_patch_adds_no_character_whose_bytes_would_follow_from_a_guess() {
    let world = FakeWorkspace::with(&[("f", b"na\xefve\nq\n")]);
    let change = |new: &str| format!("--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n naïve\n-q\n+{new}\n");
    for (new, why) in [("é", "is a guess from little text"), ("閉", "which has no `閉`")] {
        let error = patch(&world, &change(new)).unwrap_err();
        assert!(error.to_string().contains(why), "{error}");
    }
    patch(&world, &change("ï!")).unwrap();
    assert_eq!(world.files.content("f").unwrap(), b"na\xefve\n\xef!\n");
}

#[test]
fn lines_that_are_there_are_not_said_to_differ() {
    let world = FakeWorkspace::with(&[("f", b"a\nb")]);
    let error = patch(&world, "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n").unwrap_err();
    let FilesError::Misfit { why, nearest, .. } = error else {
        panic!("{error}")
    };
    assert!(why.contains("the last line of the file has no line end"), "{why}");
    assert!(nearest.iter().all(|place| place.differs.is_none()), "{nearest:?}");
}

#[test]
fn what_cannot_be_read_says_at_which_line() {
    let cases = [
        ("", 1, "no file is named"),
        ("just text\n", 1, "no file is named"),
        ("@@ -1 +1 @@\n-a\n+b\n", 1, "of no file"),
        ("--- a/f\n+++ b/f\n", 2, "missing"),
        ("--- a/f\n+++ b/f\n@@ nonsense @@\n", 3, "@@ -line"),
        ("--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n-a\n+b\n", 5, "ends within a hunk"),
        ("--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n+c\n", 6, "fewer lines"),
        ("--- a/f\n+++ b/f\n@@ -1,1 +1,1 @@\n-a\n-b\n", 5, "more lines"),
        ("--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n-a\nb\n", 5, "begins with"),
        ("--- a/f\n+++ b/g\n@@ -1 +1 @@\n-a\n+b\n", 1, "two names"),
        (
            "diff --git a/f b/f\nBinary files a/f and b/f differ\n",
            2,
            "`f` is no text",
        ),
        (
            "diff --git a/f b/f\nindex 1..2\nGIT binary patch\n",
            3,
            "`f` is no text",
        ),
        ("diff --git a/l b/l\nnew file mode 120000\n", 2, "links"),
        ("diff --git a/l b/l\nsimilarity index 100%\ncopy from l\n", 3, "copies"),
        (
            "--- /dev/null\n+++ /dev/null\n@@ -1 +1 @@\n-a\n+b\n",
            1,
            "no file is named",
        ),
        ("--- \"a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n", 1, "quotes"),
        ("*** Begin Patch\n", 1, "End Patch"),
        ("*** Begin Patch\n*** End Patch\n", 2, "changes nothing"),
        (
            "*** Begin Patch\n*** Update File: f\n*** End Patch\n",
            2,
            "nothing of it changes",
        ),
        (
            "*** Begin Patch\n*** Update File: f\n@@\nx\n*** End Patch\n",
            4,
            "begins with",
        ),
        ("*** Begin Patch\n*** Rename File: f\n*** End Patch\n", 2, "expected"),
        (
            "*** Begin Patch\n*** Add File: \n+x\n*** End Patch\n",
            2,
            "no file is named",
        ),
        (
            "*** Begin Patch\n*** Add File: f\n+x\n*** End Patch\nmore\n",
            5,
            "nothing may follow",
        ),
    ];
    let world = FakeWorkspace::with(&[("f", b"a\n")]);
    for (text, at, expected) in cases {
        match patch(&world, text).unwrap_err() {
            FilesError::BadPatch { line, why } => {
                assert_eq!(line, at, "{text:?}: {why}");
                assert!(why.contains(expected), "{text:?}: {why}");
            }
            other => panic!("{text:?}: {other}"),
        }
    }
}

#[test]
fn a_patch_changes_all_of_its_files_or_none() {
    let text = "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n--- a/g\n+++ b/g\n@@ -1 +1 @@\n-not there\n+x\n";
    let world = FakeWorkspace::with(&[("f", b"a\n"), ("g", b"g\n")]);
    let error = patch(&world, text).unwrap_err();
    assert!(
        matches!(&error, FilesError::Misfit { path, .. } if path.ends_with("g")),
        "{error}"
    );
    assert_eq!(content(&world, "f"), "a\n");
}

#[test]
fn what_was_done_before_a_step_that_fails_is_undone() {
    for broken in ["src/main.rs", "gone", "new name", "new file.txt", "empty"] {
        let world = git_world();
        let planned = plan_patch(world.context(), &PatchRequest::new(GIT)).unwrap();
        world.files.break_at(broken);
        let error = (planned.make)().unwrap_err();
        assert!(
            matches!(error, FilesError::File(FileError::Full { .. })),
            "{broken}: {error}"
        );
        assert_eq!(world.files.all(), git_world().files.all(), "{broken}");
    }
}

#[test]
fn what_cannot_be_undone_is_told() {
    let world = FakeWorkspace::with(&[("f", b"a\n"), ("g", b"g\n")]);
    let text = "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n--- a/g\n+++ b/g\n@@ -1 +1 @@\n-g\n+h\n";
    let planned = plan_patch(world.context(), &PatchRequest::new(text)).unwrap();
    world.files.break_at("g");
    world.files.break_later("f");
    let error = (planned.make)().unwrap_err();
    assert!(
        matches!(&error, FilesError::Fault(said) if said.contains("`/w/f` could not be put back")),
        "{error}"
    );
}

#[test]
fn a_file_that_changed_since_the_patch_was_judged_keeps_its_change() {
    for changed in ["src/main.rs", "gone", "old name"] {
        let world = git_world();
        let planned = plan_patch(world.context(), &PatchRequest::new(GIT)).unwrap();
        world.files.put(changed, b"theirs");
        let before = world.files.all();
        let error = (planned.make)().unwrap_err();
        assert!(
            matches!(error, FilesError::File(FileError::Changed(_))),
            "{changed}: {error}"
        );
        assert_eq!(world.files.all(), before, "{changed}");
    }
}

#[test]
fn sections_of_one_file_build_on_each_other() {
    let world = FakeWorkspace::with(&[("f", b"a\n")]);
    let text = "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-b\n+c\ndiff --git a/f b/g\nrename from f\nrename to g\n--- a/f\n+++ b/g\n@@ -1 +1,2 @@\n c\n+d\n";
    patch(&world, text).unwrap();
    assert_eq!(world.files.all(), [("g".to_owned(), b"c\nd\n".to_vec())]);
    applied(
        &world,
        &PatchRequest {
            reverse: true,
            ..PatchRequest::new(text)
        },
    )
    .unwrap();
    assert_eq!(world.files.all(), [("f".to_owned(), b"a\n".to_vec())]);
}

#[test]
fn files_may_move_into_each_others_places() {
    let world = FakeWorkspace::with(&[("a", b"1\n"), ("b", b"2\n")]);
    let rename = |from: &str, to: &str| format!("diff --git a/{from} b/{to}\nrename from {from}\nrename to {to}\n");
    patch(&world, &[rename("b", "c"), rename("a", "b")].concat()).unwrap();
    assert_eq!(
        world.files.all(),
        [("b".to_owned(), b"1\n".to_vec()), ("c".to_owned(), b"2\n".to_vec())]
    );
    let circle = [rename("b", "t"), rename("c", "b"), rename("t", "c")].concat();
    let error = patch(&world, &circle).unwrap_err();
    assert!(error.to_string().contains("in a circle"), "{error}");
    let gone = "--- a/b\n+++ /dev/null\n@@ -1 +0,0 @@\n-1\n";
    patch(&world, &[gone, &rename("c", "b")].concat()).unwrap();
    assert_eq!(world.files.all(), [("b".to_owned(), b"2\n".to_vec())]);
}

#[test]
fn what_is_there_is_not_made_and_what_is_removed_must_be_told_whole() {
    let world = FakeWorkspace::with(&[("f", b"a\nb\n")]);
    let error = patch(&world, "--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+x\n").unwrap_err();
    assert!(matches!(error, FilesError::File(FileError::Exists(_))), "{error}");
    let error = patch(&world, "--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n").unwrap_err();
    assert!(
        error.to_string().contains("more than what the patch removes"),
        "{error}"
    );
    let error = patch(&world, "--- a/no\n+++ b/no\n@@ -1 +1 @@\n-a\n+b\n").unwrap_err();
    assert!(matches!(error, FilesError::File(FileError::NotFound(_))), "{error}");
}

#[test]
fn the_bit_that_lets_a_file_run_is_set_and_taken() {
    let world = FakeWorkspace::default();
    world.files.put_mode("f", b"a\n", 0o640);
    let text = "diff --git a/f b/f\nold mode 100644\nnew mode 100755\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n";
    patch(&world, text).unwrap();
    // Whoever may read it may run it, and nobody else.
    assert_eq!(world.files.mode("f").unwrap(), 0o750);
    applied(
        &world,
        &PatchRequest {
            reverse: true,
            ..PatchRequest::new(text)
        },
    )
    .unwrap();
    assert_eq!(
        (world.files.mode("f").unwrap(), content(&world, "f")),
        (0o640, "a\n".to_owned())
    );
}

#[test]
fn a_patch_reaches_nothing_outside_and_nothing_hidden() {
    let world = FakeWorkspace::with(&[(".env", b"secret\n"), ("forbidden", b"secret\n")]);
    world.files.put("/etc/passwd", b"root\n");
    world.files.link("link", "/etc/passwd");
    for name in [
        "../etc/passwd",
        "/etc/passwd",
        "link",
        "../../etc/new",
        ".env",
        "forbidden",
    ] {
        let text = format!("*** Begin Patch\n*** Update File: {name}\n@@\n-secret\n+x\n*** End Patch\n");
        let error = patch(&world, &text).unwrap_err();
        assert!(matches!(error, FilesError::File(_)), "{name}: {error}");
        assert!(!matches!(error, FilesError::Misfit { .. }));
    }
    assert_eq!(content(&world, "/etc/passwd"), "root\n");
}

#[test]
fn an_envelope_changes_makes_removes_and_moves() {
    let world = FakeWorkspace::with(&[
        ("f", b"class A\n  def x\n    1\nclass B\n  def x\n    1\nend"),
        ("g", b"g\n"),
        ("h", b"1\n2"),
    ]);
    let text = "*** Begin Patch\n*** Update File: f\n@@ class B\n@@ def x\n-    1\n+    2\n@@\n-end\n+END\n*** End of File\n*** Add File: d/new\n+one\n+\n*** Delete File: g\n*** Update File: h\n*** Move to: i\n@@\n 2\n+3\n*** End Patch\n";
    let patched = patch(&world, text).unwrap();
    assert_eq!(
        content(&world, "f"),
        "class A\n  def x\n    1\nclass B\n  def x\n    2\nEND"
    );
    assert_eq!(content(&world, "d/new"), "one\n\n");
    assert_eq!(content(&world, "i"), "1\n2\n3");
    assert_eq!(world.files.all().len(), 3);
    let told: Vec<_> = patched.files.iter().map(|file| file.change).collect();
    assert_eq!(told, ["changed", "added", "removed", "moved"]);
    let error = applied(
        &world,
        &PatchRequest {
            reverse: true,
            ..PatchRequest::new(text)
        },
    )
    .unwrap_err();
    assert!(
        matches!(
            error,
            FilesError::Argument {
                argument: "reverse",
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn an_envelope_that_leaves_a_doubt_says_where() {
    let world = FakeWorkspace::with(&[("f", b"x\n1\nx\n2\n")]);
    let update = |hunk: &str| format!("*** Begin Patch\n*** Update File: f\n{hunk}*** End Patch");
    for (hunk, expected) in [
        ("@@\n-x\n+y\n", "1, 3"),
        ("@@ x\n-1\n+y\n", "1, 3"),
        ("@@ no\n-x\n+y\n", "no line is `no`"),
        ("@@\n-x\n+y\n*** End of File\n", "end of the file"),
        ("@@ 2\n-1\n+y\n", "behind its"),
    ] {
        let error = patch(&world, &update(hunk)).unwrap_err();
        assert!(
            matches!(&error, FilesError::Misfit { .. }) && error.to_string().contains(expected),
            "{hunk}: {error}"
        );
    }
    patch(&world, &update("@@ 1\n-x\n+y\n")).unwrap();
    assert_eq!(content(&world, "f"), "x\n1\ny\n2\n");
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the test looks at its own files")]
fn what_is_undone_has_its_permissions_its_time_and_its_link_again() {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;
    use std::time::{Duration, UNIX_EPOCH};

    let trial = TestWorkspace::new();
    let files = [
        ("edited", 0o640),
        ("run", 0o705),
        ("removed", 0o600),
        ("linked", 0o664),
        ("gone", 0o751),
    ];
    let time = UNIX_EPOCH + Duration::new(1_000_000_000, 123_456_789);
    for (name, mode) in files {
        trial.put(name, format!("{name}\n"));
        let path = trial.workspace().join(name);
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        fs::File::open(&path).unwrap().set_modified(time).unwrap();
    }
    trial.link("link", "linked");
    trial.put("last", "last\n");
    let change = |name: &str| {
        format!(
            "--- a/{name}\n+++ b/{name}\n@@ -1 +1 @@\n-{}\n+new\n",
            name.replace("link", "linked")
        )
    };
    let remove = |name: &str| format!("--- a/{name}\n+++ /dev/null\n@@ -1 +0,0 @@\n-{name}\n");
    let bits = "diff --git a/run b/run\nold mode 100755\nnew mode 100644\n".to_owned();
    let moved = "diff --git a/gone b/moved\nsimilarity index 100%\nrename from gone\nrename to moved\n";
    let added = "--- /dev/null\n+++ b/new/file\n@@ -0,0 +1 @@\n+new\n";
    let patch = [
        change("edited"),
        bits,
        change("run"),
        change("link"),
        remove("removed"),
        remove("last"),
    ];
    let patch = [moved, added]
        .map(str::to_owned)
        .into_iter()
        .chain(patch)
        .collect::<String>();
    let planned = plan_patch(trial.context(), &PatchRequest::new(&patch)).unwrap();
    // The last step finds that it is too late.
    trial.put("last", "another\n");
    let error = (planned.make)().unwrap_err();
    assert!(matches!(error, FilesError::File(FileError::Changed(_))), "{error}");
    for (name, mode) in files {
        let path = trial.workspace().join(name);
        let meta = fs::metadata(&path).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), format!("{name}\n"));
        assert_eq!(meta.permissions().mode() & 0o7777, mode, "{name}");
        assert_eq!(meta.modified().unwrap(), time, "{name}");
    }
    assert_eq!(
        fs::read_link(trial.workspace().join("link")).unwrap().as_os_str(),
        "linked"
    );
    let mut names: Vec<_> = fs::read_dir(trial.workspace())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    names.sort();
    assert_eq!(names, ["edited", "gone", "last", "link", "linked", "removed", "run"]);
}

fn text() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        "[ab]{0,2}",
        Just("-- x".to_owned()),
        Just("++ x".to_owned()),
        Just("é\u{2028}\x0c".to_owned())
    ];
    let end = prop_oneof![4 => Just("\n"), 1 => Just("\r\n")];
    (prop::collection::vec((line, end), 0..40), "[ab]{0,2}")
        .prop_map(|(lines, last)| lines.into_iter().map(|(line, end)| line + end).collect::<String>() + &last)
}

proptest! {
    #[test]
    fn our_own_diff_turns_one_text_into_the_other_and_back(old in text(), new in text()) {
        prop_assume!(old != new);
        let world = FakeWorkspace::with(&[("f", old.as_bytes())]);
        let names = Names::same("/w".as_ref(), "/w/f".as_ref());
        let diff = of_texts(&names, &old, &new).text;
        let forth = patch(&world, &diff);
        prop_assert!(forth.is_ok(), "{forth:?}\n{diff}");
        prop_assert_eq!(content(&world, "f"), new);
        applied(&world, &PatchRequest { reverse: true, ..PatchRequest::new(&diff) }).unwrap();
        prop_assert_eq!(content(&world, "f"), old);
    }

    #[test]
    fn nothing_that_is_called_a_patch_breaks_anything(text in "((---|\\+\\+\\+|@@|diff --git|\\*\\*\\*|a/f|b/f|-1,1|[ +\\-\\\\]|\\PC|\n)){0,40}") {
        let world = FakeWorkspace::with(&[("f", b"a\n")]);
        let _ = patch(&world, &text);
        let _ = patch(&world, &format!("*** Begin Patch\n*** Update File: f\n{text}\n*** End Patch"));
    }
}
