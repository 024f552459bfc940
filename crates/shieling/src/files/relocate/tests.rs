use crate::environment::FileError;
use crate::files::fake_files::{FakeWorkspace, make};
use crate::files::{FileInfo, FileResponse, FilesError, MoveRequest, plan_move};

fn request(from: &str, to: &str, replace: bool) -> MoveRequest {
    MoveRequest {
        replace,
        ..MoveRequest::new(from, to)
    }
}

fn relocate(world: &FakeWorkspace, from: &str, to: &str, replace: bool) -> Result<FileInfo, FilesError> {
    match make(plan_move(world.context(), &request(from, to, replace)))? {
        FileResponse::Info(info) => Ok(info),
        other => panic!("{other:?}"),
    }
}

fn names(world: &FakeWorkspace) -> Vec<String> {
    world.files.all().into_iter().map(|(name, _)| name).collect()
}

#[test]
fn a_file_moves_to_a_name_and_into_a_directory() {
    let world = FakeWorkspace::with(&[("f", b"abc"), ("d/x", b"x")]);
    assert_eq!(
        relocate(&world, "f", "new/g", false).unwrap().path,
        std::path::Path::new("/w/new/g")
    );
    assert_eq!(
        relocate(&world, "new/g", "d", false).unwrap().path,
        std::path::Path::new("/w/d/g")
    );
    assert_eq!(names(&world), ["d/g", "d/x"]);
}

#[test]
fn only_a_file_is_replaced_and_only_if_that_is_meant() {
    let world = FakeWorkspace::with(&[
        ("a", b"a"),
        ("b", b"b"),
        ("d/a", b"old"),
        ("e/x", b"x"),
        ("into/e/y", b"y"),
    ]);
    assert!(matches!(
        relocate(&world, "a", "b", false),
        Err(FilesError::File(FileError::Exists(_)))
    ));
    assert!(matches!(
        relocate(&world, "a", "d", false),
        Err(FilesError::File(FileError::Exists(_)))
    ));
    assert!(matches!(
        relocate(&world, "e", "b", true),
        Err(FilesError::File(FileError::Exists(_)))
    ));
    assert!(matches!(
        relocate(&world, "e", "into", true),
        Err(FilesError::File(FileError::Exists(_)))
    ));
    relocate(&world, "a", "b", true).unwrap();
    assert_eq!(world.files.content("b").unwrap(), b"a");
}

#[test]
fn nothing_moves_onto_or_into_itself() {
    let world = FakeWorkspace::with(&[("f", b"abc"), ("d/x", b"x")]);
    for (from, to) in [("f", "f"), ("f", "./f"), ("d", "d/e"), ("d", "d"), ("d/x", "d")] {
        assert!(
            matches!(
                relocate(&world, from, to, true),
                Err(FilesError::Argument { argument: "to", .. })
            ),
            "{from} {to}"
        );
    }
}

#[test]
fn a_move_gives_nothing_away_that_may_not_be_seen() {
    let world = FakeWorkspace::with(&[("d/.env", b"secret"), ("e/forbidden", b"secret"), ("f", b"x")]);
    for (from, to) in [
        ("d", "g"),
        ("e", "g"),
        ("e/forbidden", "g"),
        (".env", "g"),
        ("f", ".env"),
        ("d/.env", "g"),
    ] {
        assert!(relocate(&world, from, to, true).is_err(), "{from} {to}");
    }
    assert_eq!(names(&world), ["d/.env", "e/forbidden", "f"]);
}

#[test]
fn a_link_moves_itself() {
    let world = FakeWorkspace::with(&[("f", b"abc")]);
    world.files.link("link", "f");
    relocate(&world, "link", "other", false).unwrap();
    assert_eq!(names(&world), ["f"]);
    assert!(matches!(
        relocate(&world, "link", "x", false),
        Err(FilesError::File(FileError::NotFound(_)))
    ));
}

#[test]
fn what_has_changed_since_it_was_judged_stays() {
    let world = FakeWorkspace::with(&[("f", b"abc"), ("g", b"g")]);
    for changed in ["f", "g"] {
        let planned = plan_move(world.context(), &request("f", "g", true)).unwrap();
        world.files.put(changed, b"other");
        assert!(matches!((planned.make)(), Err(FilesError::File(FileError::Changed(_)))));
    }
    assert_eq!(names(&world), ["f", "g"]);
}
