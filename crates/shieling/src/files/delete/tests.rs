use crate::environment::{FileError, Kind};
use crate::files::fake_files::{FakeWorkspace, make};
use crate::files::{Access, DeleteRequest, FileInfo, FileResponse, FilesError, plan_delete};

fn delete(world: &FakeWorkspace, path: &str, recursive: bool) -> Result<FileInfo, FilesError> {
    match make(plan_delete(
        world.context(),
        &DeleteRequest {
            path: path.into(),
            recursive,
        },
    ))? {
        FileResponse::Info(info) => Ok(info),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_file_is_removed_and_told() {
    let world = FakeWorkspace::with(&[("f", b"abc")]);
    let info = delete(&world, "f", false).unwrap();
    assert_eq!((info.kind, info.size), (Kind::File, Some(3)));
    assert_eq!(world.files.content("f"), None);
    assert!(matches!(
        delete(&world, "f", false),
        Err(FilesError::File(FileError::NotFound(_)))
    ));
}

#[test]
fn a_directory_goes_with_all_that_is_in_it_only_if_that_is_meant() {
    let world = FakeWorkspace::with(&[("d/e/x", b"1"), ("d/y", b"2")]);
    assert!(matches!(
        delete(&world, "d", false),
        Err(FilesError::File(FileError::NotEmpty(_)))
    ));
    let planned = plan_delete(
        world.context(),
        &DeleteRequest {
            path: "d".into(),
            recursive: true,
        },
    )
    .unwrap();
    let mut paths: Vec<_> = planned
        .paths
        .iter()
        .map(|(access, path)| (*access, path.to_str().unwrap()))
        .collect();
    paths.sort_unstable();
    let all = [
        (Access::Remove, "/w/d"),
        (Access::Remove, "/w/d/e"),
        (Access::Remove, "/w/d/e/x"),
        (Access::Remove, "/w/d/y"),
    ];
    assert_eq!(paths, all);
    (planned.make)().unwrap();
    assert_eq!(world.files.all(), []);
}

#[test]
fn a_directory_with_something_hidden_in_it_stays() {
    let world = FakeWorkspace::with(&[("d/.env", b"secret")]);
    let error = delete(&world, "d", true).unwrap_err();
    assert!(!error.to_string().contains(".env"), "{error}");
    assert!(world.files.content("d/.env").is_some());
}

#[test]
fn a_link_is_removed_and_not_what_it_leads_to() {
    let world = FakeWorkspace::with(&[("f", b"abc")]);
    world.files.link("link", "f");
    world.files.link("out", "/etc");
    for link in ["link", "out"] {
        assert_eq!(delete(&world, link, true).unwrap().kind, Kind::Link);
    }
    assert!(world.files.content("f").is_some());
}

#[test]
fn what_has_changed_since_it_was_judged_stays() {
    let world = FakeWorkspace::with(&[("f", b"abc")]);
    let planned = plan_delete(
        world.context(),
        &DeleteRequest {
            path: "f".into(),
            recursive: false,
        },
    )
    .unwrap();
    world.files.put("f", b"other");
    assert!(matches!((planned.make)(), Err(FilesError::File(FileError::Changed(_)))));
    assert!(world.files.content("f").is_some());
}

#[test]
fn a_directory_in_which_anything_is_other_than_what_was_judged_stays() {
    type Change = fn(&FakeWorkspace);
    let cases: [(&str, Change); 3] = [
        ("one more", |world| {
            world.files.put("d/e/more", b"new");
        }),
        ("another content", |world| {
            world.files.put("d/e/x", b"other");
        }),
        ("one hidden", |world| {
            world.files.put("d/e/.env", b"secret");
        }),
    ];
    for (case, change) in cases {
        let world = FakeWorkspace::with(&[("d/e/x", b"1"), ("d/y", b"2")]);
        let planned = plan_delete(
            world.context(),
            &DeleteRequest {
                path: "d".into(),
                recursive: true,
            },
        )
        .unwrap();
        change(&world);
        let made = (planned.make)();
        assert!(
            matches!(made, Err(FilesError::File(FileError::Changed(_)))),
            "{case}: {made:?}"
        );
        assert!(world.files.content("d/y").is_some(), "{case}");
    }
}
