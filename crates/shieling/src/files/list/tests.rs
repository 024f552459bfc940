#![expect(clippy::disallowed_methods, reason = "the tests make the files that are listed")]

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;

use proptest::prelude::*;

use super::super::test_workspace::TestWorkspace;
use super::super::{FileHash, FileInfo, FilesError, ListRequest, ListResponse, StatRequest, stat};
use super::list;
use crate::environment::{FileError, Kind};

fn names(listed: &ListResponse) -> Vec<String> {
    listed
        .entries
        .iter()
        .map(|entry| entry.path.display().to_string())
        .collect()
}

fn named<'a>(listed: &'a ListResponse, name: &str) -> &'a FileInfo {
    listed
        .entries
        .iter()
        .find(|entry| entry.path.as_os_str() == name)
        .unwrap()
}

fn look(trial: &TestWorkspace, path: &str) -> Result<FileInfo, FilesError> {
    stat(trial.context(), &StatRequest { path: path.into() })
}

#[test]
fn a_directory_is_listed_by_the_bytes_of_its_names_with_what_each_is() {
    let trial = TestWorkspace::with(&[("b", "12345"), ("B", ""), ("a/x", "x"), (".dot", ""), ("é", "")]);
    trial.fifo("pipe");
    let listed = list(trial.context(), &ListRequest::new(".")).unwrap();
    assert_eq!(listed.path, trial.workspace());
    assert_eq!(names(&listed), [".dot", "B", "a", "b", "pipe", "é"]);
    let file = named(&listed, "b");
    assert_eq!((file.kind, file.size), (Kind::File, Some(5)));
    assert!(file.mode.len() == 4 && file.mode.starts_with("06"), "{}", file.mode);
    assert!(file.modified.starts_with("20"), "{}", file.modified);
    assert_eq!(
        (named(&listed, "a").kind, named(&listed, "a").size),
        (Kind::Directory, None)
    );
    assert_eq!(
        (named(&listed, "pipe").kind, named(&listed, "pipe").size),
        (Kind::Fifo, None)
    );
}

#[test]
fn a_link_tells_where_it_leads_as_it_is_written_and_nothing_of_what_is_there() {
    let trial = TestWorkspace::with(&[("file", "1"), ("secret/key", "hunter2"), ("forbidden", "1")]);
    trial.directory("d");
    for (name, target, dangling) in [
        ("to-file", "file", false),
        ("to-directory", "d", false),
        ("nowhere", "missing", true),
        ("loop", "loop", true),
        ("to-etc", "/etc", true),
        ("to-passwd", "/etc/passwd", true),
        ("up", "..", true),
        ("to-secret", "secret/key", true),
        ("to-forbidden", "forbidden", true),
    ] {
        trial.link(name, target);
        let listed = list(trial.context(), &ListRequest::new(".")).unwrap();
        let entry = named(&listed, name);
        assert_eq!(entry.target.as_deref(), Some(target.as_ref()), "{name}");
        assert_eq!(
            (entry.kind, entry.size, entry.dangling),
            (Kind::Link, None, dangling),
            "{name}"
        );
    }
}

#[test]
fn what_is_hidden_is_not_there_by_any_name() {
    let trial = TestWorkspace::with(&[("secret/key", "hunter2"), ("a/secret", "x"), ("a/b", "x")]);
    trial.link("way", "secret");
    trial.link("a/up", "..");
    assert_eq!(
        names(&list(trial.context(), &ListRequest::new(".")).unwrap()),
        ["a", "way"]
    );
    assert_eq!(
        names(&list(trial.context(), &ListRequest::new("a")).unwrap()),
        ["b", "up"]
    );
    for path in [
        "secret",
        "secret/key",
        "way",
        "a/up/secret",
        "a/secret",
        "no",
        "way/key",
    ] {
        let error = list(trial.context(), &ListRequest::new(path)).unwrap_err();
        assert!(
            matches!(error, FilesError::File(FileError::NotFound(_))),
            "{path}: {error}"
        );
    }
    for path in ["secret", "secret/key", "a/secret", "way/key"] {
        let error = look(&trial, path).unwrap_err();
        assert!(
            matches!(error, FilesError::File(FileError::NotFound(_))),
            "{path}: {error}"
        );
    }
}

#[test]
fn only_what_is_in_the_workspace_is_listed() {
    let trial = TestWorkspace::with(&[("a", "x")]);
    trial.link("out", "/etc");
    for path in ["/etc", "..", "out", "../..", "out/.."] {
        let error = list(trial.context(), &ListRequest::new(path)).unwrap_err();
        assert!(
            matches!(error, FilesError::File(FileError::Outside { .. })),
            "{path}: {error}"
        );
    }
    let error = list(trial.context(), &ListRequest::new("a")).unwrap_err();
    assert!(
        matches!(error, FilesError::File(FileError::NotADirectory(_))),
        "{error}"
    );
    trial.link("in", ".");
    assert_eq!(
        names(&list(trial.context(), &ListRequest::new("in")).unwrap()),
        ["a", "in", "out"]
    );
}

#[test]
fn a_link_is_looked_at_where_it_leads_and_one_that_leads_nowhere_for_itself() {
    let trial = TestWorkspace::with(&[("file", "12"), ("secret/key", "hunter2")]);
    trial.link("good", "file");
    trial.link("nowhere", "missing");
    trial.link("out", "/etc/passwd");
    trial.link("to-secret", "secret/key");
    let good = look(&trial, "good").unwrap();
    assert_eq!(
        (&*good.path, good.kind, good.size),
        (&*trial.workspace().join("file"), Kind::File, Some(2))
    );
    assert_eq!(good.hash, Some(FileHash::of(b"12")));
    for name in ["nowhere", "out", "to-secret"] {
        let info = look(&trial, name).unwrap();
        assert_eq!(
            (info.kind, info.size, info.dangling),
            (Kind::Link, None, true),
            "{name}"
        );
        assert_eq!(info.path, trial.workspace().join(name));
    }
}

#[test]
fn a_limit_of_nothing_or_of_everything_is_refused_with_one_that_would_do() {
    let trial = TestWorkspace::new();
    for limit in [0, 10_001, u64::MAX] {
        let error = list(
            trial.context(),
            &ListRequest {
                limit,
                ..ListRequest::new(".")
            },
        )
        .unwrap_err();
        assert_eq!(
            error.to_string(),
            format!(
                "limit: {limit} is not possible: from 1 to 10000 can be had at once, and `next` says where to go on"
            )
        );
    }
}

#[test]
fn pages_of_a_thousand_give_each_of_2500_entries_once() {
    let trial = TestWorkspace::new();
    for number in 0..2_500 {
        trial.put(format!("f{number}"), "");
    }
    trial.put("secret", "");
    let (all, pages) = paged(&trial, 1_000);
    assert_eq!((all.len(), pages), (2_500, 3));
    let (all, pages) = paged(&trial, 2_500);
    assert_eq!((all.len(), pages), (2_500, 1), "nothing follows, and nothing says so");
}

/// All names, in the order in which pages give them, and the number of pages.
fn paged(trial: &TestWorkspace, limit: u64) -> (Vec<OsString>, usize) {
    let mut next = ListRequest {
        limit,
        ..ListRequest::new(".")
    };
    let (mut all, mut pages) = (Vec::new(), 0);
    loop {
        let listed = list(trial.context(), &next).unwrap();
        assert!(listed.entries.len() as u64 <= limit);
        pages += 1;
        all.extend(listed.entries.into_iter().map(|entry| entry.path.into_os_string()));
        match listed.next {
            Some(after) => next.after = Some(after),
            None => return (all, pages),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(shieling_testkit::extent::rounds(24, 60)))]
    #[test]
    fn pages_of_any_size_give_any_names_once_and_in_order(
        names in proptest::collection::btree_set(proptest::collection::vec(1_u8.., 1..6), 0..20),
        limit in 1_u64..8,
    ) {
        let trial = TestWorkspace::new();
        let legal = |name: &Vec<u8>| !name.contains(&b'/') && name != b"." && name != b"..";
        let names: Vec<OsString> = names.into_iter().filter(legal).map(OsString::from_vec).collect();
        for name in &names {
            trial.put(name, "");
        }
        prop_assert_eq!(paged(&trial, limit).0, names);
    }
}

#[test]
fn an_entry_that_vanishes_while_it_is_listed_is_left_out() {
    let trial = TestWorkspace::with(&[("stays", "x")]);
    let coming = trial.workspace().join("comes");
    std::thread::scope(|scope| {
        let worker = scope.spawn(|| {
            for _ in 0..2_000 {
                std::fs::write(&coming, "x").unwrap();
                std::fs::remove_file(&coming).unwrap();
            }
        });
        while !worker.is_finished() {
            let listed = list(trial.context(), &ListRequest::new(".")).unwrap();
            assert!(names(&listed).contains(&"stays".to_owned()));
        }
    });
}
