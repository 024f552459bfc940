use crate::environment::FileError;
use crate::files::fake_files::{FakeWorkspace, make};
use crate::files::{
    Access, FileHash, FileResponse, FilesError, ReadRequest, WriteRequest, WriteResponse, plan_write, read,
};

fn request(content: &[u8]) -> WriteRequest {
    WriteRequest::new("f", content)
}

fn write(world: &FakeWorkspace, request: &WriteRequest) -> Result<WriteResponse, FilesError> {
    match make(plan_write(world.context(), request))? {
        FileResponse::Write(written) => Ok(written),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_write_makes_a_file_and_its_directories() {
    let world = FakeWorkspace::default();
    let written = write(
        &world,
        &WriteRequest {
            path: "a/b/c".into(),
            ..request(b"\xff\0\r\n")
        },
    )
    .unwrap();
    assert!(written.created);
    assert_eq!((written.size, written.diff), (4, None));
    assert_eq!(world.files.content("a/b/c").unwrap(), b"\xff\0\r\n");
}

#[test]
fn a_write_over_a_file_tells_what_changed() {
    let world = FakeWorkspace::with(&[("f", b"a\nb\nc\n")]);
    let written = write(&world, &request(b"a\nB\nc\n")).unwrap();
    assert!(!written.created);
    assert_eq!(
        written.diff.unwrap(),
        "--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n"
    );
}

#[test]
fn no_file_is_made_where_only_a_directory_can_be_meant() {
    let world = FakeWorkspace::with(&[("f", b"a\n")]);
    for path in ["new/", "a/new/", "new/.", "new//"] {
        let path = path.into();
        let refused = write(&world, &WriteRequest { path, ..request(b"b") });
        assert!(
            matches!(refused, Err(FilesError::File(FileError::BadPath { .. }))),
            "{refused:?}"
        );
    }
    assert_eq!(world.files.content("new"), None);
}

#[test]
fn nothing_is_written_before_the_plan_is_made() {
    let world = FakeWorkspace::with(&[("f", b"a\n")]);
    let planned = plan_write(world.context(), &request(b"b\n")).unwrap();
    assert_eq!(planned.paths, [(Access::Write, "/w/f".into())]);
    assert!(planned.preview.contains("-a\n+b\n"), "{}", planned.preview);
    assert_eq!(world.files.content("f").unwrap(), b"a\n");
}

#[test]
fn what_changes_between_plan_and_make_is_not_overwritten() {
    let world = FakeWorkspace::with(&[("f", b"a\n")]);
    let planned = plan_write(world.context(), &request(b"b\n")).unwrap();
    world.files.put("f", b"theirs\n");
    let error = (planned.make)().unwrap_err();
    assert!(matches!(error, FilesError::File(FileError::Changed(_))), "{error}");
    assert_eq!(world.files.content("f").unwrap(), b"theirs\n");

    let world = FakeWorkspace::default();
    let planned = plan_write(world.context(), &request(b"b\n")).unwrap();
    world.files.put("f", b"theirs\n");
    let error = (planned.make)().unwrap_err();
    assert!(matches!(error, FilesError::File(FileError::Changed(_))), "{error}");
}

#[test]
fn a_stale_write_is_refused_with_what_has_changed() {
    let world = FakeWorkspace::with(&[("f", b"one\ntwo\n")]);
    let seen = read(world.context(), &ReadRequest::new("f")).unwrap().hash;
    world.files.put("f", b"one\n2\n");
    let error = write(
        &world,
        &WriteRequest {
            expect: Some(seen.clone()),
            ..request(b"mine")
        },
    )
    .unwrap_err();
    let FilesError::Stale { now, diff, .. } = error else {
        panic!("{error}")
    };
    assert_eq!(now, FileHash::of(b"one\n2\n"));
    assert_eq!(diff.unwrap(), "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n");
    assert!(
        write(
            &world,
            &WriteRequest {
                expect: Some(now),
                ..request(b"mine")
            }
        )
        .is_ok()
    );

    let unknown = |hash: &str| {
        let request = WriteRequest {
            expect: Some(FileHash(hash.to_owned())),
            ..request(b"")
        };
        write(&world, &request).unwrap_err()
    };
    let error = unknown(&"0".repeat(32));
    assert!(matches!(error, FilesError::Stale { diff: None, .. }), "{error}");
    // A model that shortens it is told so, and not that the file has changed.
    for none in [
        "x",
        &"0".repeat(12),
        &"0".repeat(64),
        "sha256:00000000000000000000000000000000",
        &"A".repeat(32),
    ] {
        let error = unknown(none);
        assert!(
            matches!(error, FilesError::Argument { argument: "hash", .. }),
            "{none}: {error}"
        );
    }
}

#[test]
fn the_state_that_a_write_gives_is_the_one_that_the_next_read_gives() {
    let world = FakeWorkspace::default();
    let written = write(&world, &request(b"a\n")).unwrap();
    assert_eq!(
        read(world.context(), &ReadRequest::new("f")).unwrap().hash,
        written.hash
    );
    assert_eq!(written.hash.0.len(), 32);
}

#[test]
fn a_write_that_must_create_refuses_what_is_there() {
    let world = FakeWorkspace::with(&[("f", b"a\n")]);
    world.files.directory("d");
    for path in ["f", "d"] {
        let error = write(
            &world,
            &WriteRequest {
                create_only: true,
                path: path.into(),
                ..request(b"")
            },
        )
        .unwrap_err();
        assert!(matches!(error, FilesError::File(FileError::Exists(_))), "{error}");
    }
    assert!(
        write(
            &world,
            &WriteRequest {
                create_only: true,
                path: "new".into(),
                ..request(b"")
            }
        )
        .unwrap()
        .created
    );
}

#[test]
fn links_are_followed_inside_and_refused_outside() {
    let world = FakeWorkspace::with(&[("target", b"a\n")]);
    world.files.link("link", "target");
    world.files.put("/etc/passwd", b"theirs");
    world.files.link("out", "/etc/passwd");
    world.files.link("dangling", "nowhere");
    let written = write(
        &world,
        &WriteRequest {
            path: "link".into(),
            ..request(b"b\n")
        },
    )
    .unwrap();
    assert_eq!(written.path, std::path::Path::new("/w/target"));
    assert_eq!(world.files.content("target").unwrap(), b"b\n");
    let error = write(
        &world,
        &WriteRequest {
            path: "out".into(),
            ..request(b"b\n")
        },
    )
    .unwrap_err();
    assert!(matches!(error, FilesError::File(FileError::Outside { .. })), "{error}");
    let error = write(
        &world,
        &WriteRequest {
            path: "dangling".into(),
            ..request(b"b\n")
        },
    )
    .unwrap_err();
    assert!(matches!(error, FilesError::Argument { .. }), "{error}");
}

#[test]
fn a_hidden_place_is_not_there_to_be_written() {
    let world = FakeWorkspace::with(&[(".env", b"secret")]);
    world.files.link("link", ".env");
    for path in [".env", "link", "sub/.env"] {
        let error = write(
            &world,
            &WriteRequest {
                path: path.into(),
                ..request(b"x")
            },
        )
        .unwrap_err();
        assert_eq!(error.to_string(), format!("there is no `{path}`"));
    }
    assert_eq!(world.files.content(".env").unwrap(), b"secret");
}

#[test]
fn a_diff_is_cut_at_a_line_and_says_so() {
    let old: String = (0..20_000).map(|n| format!("old {n}\n")).collect();
    let new: String = (0..20_000).map(|n| format!("new {n}\n")).collect();
    let world = FakeWorkspace::with(&[("f", old.as_bytes())]);
    let diff = write(&world, &request(new.as_bytes())).unwrap().diff.unwrap();
    assert!(diff.len() < 33 << 10, "{}", diff.len());
    assert!(diff.ends_with("\n… the diff is cut here, at 32 KiB\n"));
    let last = diff.lines().rev().nth(1).unwrap();
    assert!(old.contains(&format!("{}\n", &last[1..])), "{last}");
}

#[test]
fn what_is_no_text_has_no_diff() {
    let world = FakeWorkspace::with(&[("f", b"a\0b")]);
    assert_eq!(write(&world, &request(b"a\0c")).unwrap().diff, None);
}
