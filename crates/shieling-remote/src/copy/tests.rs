//! Copies without a link: what a tree becomes, and what hostile records come to.

use std::fs;
use std::io::Cursor;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, PermissionsExt as _, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use proptest::prelude::*;
use rustix::fs::{CWD, Mode};
use tempfile::{TempDir, tempdir};

use super::pack::{All, Source, end};
use super::record::Record;
use super::unpack::{TEMPORARY, Target};
use super::{Copied, CopyError, CopyErrorKind, CopyOptions};

fn packed(from: &Path) -> Vec<u8> {
    let mut stream = Vec::new();
    Source::open(from).unwrap().pack(&mut stream, &mut All).unwrap();
    end(&mut stream).unwrap();
    stream
}

fn unpack_with(stream: &[u8], to: &Path, options: CopyOptions) -> Result<Copied, CopyError> {
    let target = Target::open(to, options).unwrap();
    target.unpack(&mut Cursor::new(stream)).map(|(copied, _)| copied)
}

fn unpack(stream: &[u8], to: &Path) -> Result<Copied, CopyError> {
    unpack_with(stream, to, CopyOptions::default())
}

fn copy(from: &Path) -> (TempDir, Copied) {
    let to = tempdir().unwrap();
    let copied = unpack(&packed(from), to.path()).unwrap();
    (to, copied)
}

fn written(records: &[(Record, &[u8])]) -> Vec<u8> {
    let mut stream = Vec::new();
    for (record, bytes) in records {
        record.write(&mut stream).unwrap();
        stream.extend_from_slice(bytes);
    }
    stream
}

fn file(name: &str) -> Record {
    Record::File {
        name: name.as_bytes().to_vec(),
    }
}

fn directory(name: &str) -> Record {
    Record::Directory {
        name: name.as_bytes().to_vec(),
    }
}

fn data(offset: u64, length: u32) -> Record {
    Record::Data { offset, length }
}

const UP: Record = Record::Up {
    mode: 0o755,
    modified: (0, 0),
};

fn complete(size: u64) -> Record {
    Record::Complete {
        size,
        mode: 0o644,
        modified: (0, 0),
    }
}

/// All that is in a directory, by names.
fn listed(at: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(at)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn a_tree_arrives_with_its_modes_times_links_and_names() {
    let from = tempdir().unwrap();
    let at = |name: &str| from.path().join(name);
    fs::create_dir_all(at("a/b")).unwrap();
    fs::write(at("a/b/run"), "#!/bin/sh\n").unwrap();
    fs::set_permissions(at("a/b/run"), fs::Permissions::from_mode(0o6755)).unwrap();
    fs::write(at("empty"), "").unwrap();
    fs::set_permissions(at("empty"), fs::Permissions::from_mode(0o400)).unwrap();
    let odd = std::ffi::OsStr::from_bytes(b"odd-\xff\n");
    fs::write(from.path().join(odd), "odd").unwrap();
    symlink("/nowhere/at all", at("a/link")).unwrap();
    symlink("..", at("a/up")).unwrap();
    fs::hard_link(at("empty"), at("other name")).unwrap();
    let time = SystemTime::UNIX_EPOCH + Duration::new(1_000_000_000, 123_456_789);
    fs::File::open(at("a/b/run")).unwrap().set_modified(time).unwrap();
    fs::set_permissions(at("a/b"), fs::Permissions::from_mode(0o550)).unwrap();
    fs::File::open(at("a/b")).unwrap().set_modified(time).unwrap();

    let (to, copied) = copy(from.path());
    let there = |name: &str| to.path().join(name);
    assert_eq!((copied.files, copied.directories, copied.links), (4, 2, 2));
    assert_eq!((copied.bytes, copied.skipped_total), (13, 0));
    let mode = |name: &str| fs::symlink_metadata(there(name)).unwrap().mode() & 0o7777;
    assert_eq!((mode("a/b/run"), mode("empty"), mode("a/b")), (0o755, 0o400, 0o550));
    for name in ["a/b/run", "a/b"] {
        assert_eq!(fs::metadata(there(name)).unwrap().modified().unwrap(), time, "{name}");
    }
    assert_eq!(fs::read(to.path().join(odd)).unwrap(), b"odd");
    assert_eq!(fs::read_link(there("a/link")).unwrap(), Path::new("/nowhere/at all"));
    assert_eq!(fs::read_link(there("a/up")).unwrap(), Path::new(".."));
    assert_eq!(fs::metadata(there("other name")).unwrap().nlink(), 1);

    let kept = CopyOptions {
        keep_set_id: true,
        ..CopyOptions::default()
    };
    let to = tempdir().unwrap();
    unpack_with(&packed(from.path()), to.path(), kept).unwrap();
    assert_eq!(fs::metadata(to.path().join("a/b/run")).unwrap().mode() & 0o7777, 0o6755);
}

#[test]
fn holes_stay_holes() {
    let from = tempdir().unwrap();
    let sparse = fs::File::create(from.path().join("sparse")).unwrap();
    sparse.set_len(64 << 20).unwrap();
    sparse.write_all_at(b"begin", 1 << 20).unwrap();
    sparse.write_all_at(b"end", 48 << 20).unwrap();
    let hole = fs::File::create(from.path().join("hole")).unwrap();
    hole.set_len(256 << 20).unwrap();
    let stream = packed(from.path());
    assert!(stream.len() < 1 << 20, "{}", stream.len());
    let to = tempdir().unwrap();
    unpack(&stream, to.path()).unwrap();
    let found = fs::metadata(to.path().join("sparse")).unwrap();
    assert_eq!(found.len(), 64 << 20);
    assert!(found.blocks() * 512 < 1 << 20, "{}", found.blocks());
    assert_eq!(fs::metadata(to.path().join("hole")).unwrap().len(), 256 << 20);
    let copy = fs::File::open(to.path().join("sparse")).unwrap();
    let mut read = [0; 6];
    copy.read_exact_at(&mut read, (1 << 20) - 1).unwrap();
    assert_eq!(&read, b"\0begin");
}

#[test]
fn what_is_no_file_is_left_out_and_told() {
    let from = tempdir().unwrap();
    fs::create_dir(from.path().join("d")).unwrap();
    let _socket = UnixListener::bind(from.path().join("d/socket")).unwrap();
    rustix::fs::mkfifoat(CWD, from.path().join("pipe"), Mode::RUSR).unwrap();
    fs::write(from.path().join("x"), "x").unwrap();
    let (to, copied) = copy(from.path());
    let told: Vec<_> = copied
        .skipped
        .iter()
        .map(|skipped| (skipped.path.to_str().unwrap(), &*skipped.because))
        .collect();
    assert_eq!(told, [("d/socket", "it is a socket"), ("pipe", "it is a named pipe")]);
    assert_eq!(listed(to.path()), ["d", "x"]);
}

#[test]
fn what_nests_too_deep_is_left_out_and_told() {
    let from = tempdir().unwrap();
    let mut at = Source::open(from.path()).unwrap().into_directory();
    for _ in 0..300 {
        rustix::fs::mkdirat(&at, "d", Mode::RWXU).unwrap();
        let flags = rustix::fs::OFlags::DIRECTORY | rustix::fs::OFlags::RDONLY;
        at = rustix::fs::openat(&at, "d", flags, Mode::empty()).unwrap();
    }
    let (_to, copied) = copy(from.path());
    assert_eq!((copied.directories, copied.skipped_total), (255, 1));
    assert!(copied.skipped[0].because.contains("deeper than 256"), "{copied:?}");
}

#[test]
fn files_and_links_are_replaced_and_directories_filled() {
    let from = tempdir().unwrap();
    fs::create_dir(from.path().join("d")).unwrap();
    fs::write(from.path().join("d/new"), "new").unwrap();
    fs::write(from.path().join("file"), "new").unwrap();
    symlink("new", from.path().join("link")).unwrap();
    let to = tempdir().unwrap();
    let outside = tempdir().unwrap();
    fs::write(outside.path().join("kept"), "kept").unwrap();
    fs::create_dir(to.path().join("d")).unwrap();
    fs::set_permissions(to.path().join("d"), fs::Permissions::from_mode(0o711)).unwrap();
    fs::write(to.path().join("d/old"), "old").unwrap();
    symlink(outside.path().join("kept"), to.path().join("file")).unwrap();
    fs::write(to.path().join("link"), "old").unwrap();
    unpack(&packed(from.path()), to.path()).unwrap();
    assert_eq!(listed(&to.path().join("d")), ["new", "old"]);
    assert_eq!(fs::metadata(to.path().join("d")).unwrap().mode() & 0o7777, 0o711);
    assert!(fs::symlink_metadata(to.path().join("file")).unwrap().is_file());
    assert_eq!(fs::read(to.path().join("file")).unwrap(), b"new");
    assert_eq!(fs::read(outside.path().join("kept")).unwrap(), b"kept");
    assert_eq!(fs::read_link(to.path().join("link")).unwrap(), Path::new("new"));
}

#[test]
fn hostile_records_make_nothing_outside_and_are_named() {
    let outside = tempdir().unwrap();
    let out = outside.path().to_str().unwrap();
    let link = |name: &str, target: &str| Record::Link {
        name: name.as_bytes().to_vec(),
        target: target.as_bytes().to_vec(),
        modified: (0, 0),
    };
    let long = "x".repeat(256);
    let whole = |name: &str| {
        written(&[
            (file(name), b""),
            (data(0, 1), b"x"),
            (complete(1), b""),
            (Record::End, b""),
        ])
    };
    let streams: Vec<(&str, Vec<u8>, CopyErrorKind)> = vec![
        ("up", whole("../x"), CopyErrorKind::Stream),
        ("dots", whole(".."), CopyErrorKind::Stream),
        ("dot", whole("."), CopyErrorKind::Stream),
        ("nothing", whole(""), CopyErrorKind::Stream),
        ("absolute", whole(&format!("{out}/x")), CopyErrorKind::Stream),
        ("nul", whole("a\0b"), CopyErrorKind::Stream),
        ("long", whole(&long), CopyErrorKind::Stream),
        (
            "directory up",
            written(&[(directory(".."), b"")]),
            CopyErrorKind::Stream,
        ),
        ("way up", written(&[(UP, b"")]), CopyErrorKind::Stream),
        (
            "through a link",
            written(&[
                (link("l", out), b""),
                (directory("l"), b""),
                (file("x"), b""),
                (complete(0), b""),
            ]),
            CopyErrorKind::InTheWay,
        ),
        (
            "a link to nowhere",
            written(&[(link("l", ""), b"")]),
            CopyErrorKind::Stream,
        ),
        ("no file", written(&[(data(0, 1), b"x")]), CopyErrorKind::Stream),
        (
            "back",
            written(&[(file("f"), b""), (data(5, 1), b"x"), (data(0, 1), b"x")]),
            CopyErrorKind::Stream,
        ),
        (
            "overflow",
            written(&[(file("f"), b""), (data(u64::MAX, 2), b"xx")]),
            CopyErrorKind::Stream,
        ),
        (
            "too large a piece",
            written(&[(file("f"), b""), (data(0, u32::MAX), b"")]),
            CopyErrorKind::Stream,
        ),
        (
            "shorter than it is",
            written(&[(file("f"), b""), (data(0, 2), b"xx"), (complete(1), b"")]),
            CopyErrorKind::Stream,
        ),
        (
            "within a file",
            written(&[(file("f"), b""), (file("g"), b"")]),
            CopyErrorKind::Stream,
        ),
        (
            "within a directory",
            written(&[(directory("d"), b""), (Record::End, b"")]),
            CopyErrorKind::Stream,
        ),
        (
            "gone",
            written(&[(Record::Gone { path: b"x".to_vec() }, b"")]),
            CopyErrorKind::Stream,
        ),
        ("a long record", u32::MAX.to_le_bytes().to_vec(), CopyErrorKind::Stream),
        (
            "no record",
            [4_u32.to_le_bytes(), [0xff; 4]].concat(),
            CopyErrorKind::Stream,
        ),
        ("nothing at all", Vec::new(), CopyErrorKind::Lost),
        (
            "over a directory",
            {
                let mut stream = written(&[(directory("d"), b""), (UP, b"")]);
                stream.extend(whole("d"));
                stream
            },
            CopyErrorKind::InTheWay,
        ),
    ];
    for (what, stream, kind) in streams {
        let to = tempdir().unwrap();
        let error = unpack(&stream, to.path()).expect_err(what);
        assert_eq!(error.kind, kind, "{what}: {error}");
        let left = listed(to.path());
        let complete = ["l", "d"].map(str::to_owned);
        assert!(left.iter().all(|name| complete.contains(name)), "{what}: {left:?}");
        assert_eq!(listed(outside.path()), Vec::<String>::new(), "{what}");
    }
}

#[test]
fn too_much_is_refused_by_its_bound() {
    let from = tempdir().unwrap();
    for name in ["a", "b", "c"] {
        fs::write(from.path().join(name), [0x55; 1000]).unwrap();
    }
    let stream = packed(from.path());
    let with = |max_entries, max_bytes| {
        let to = tempdir().unwrap();
        let options = CopyOptions {
            max_entries,
            max_bytes,
            ..CopyOptions::default()
        };
        let done = unpack_with(&stream, to.path(), options);
        (done.map(|copied| copied.files), listed(to.path()).len())
    };
    assert_eq!(with(3, 3000), (Ok(3), 3));
    for (entries, bytes, words) in [(2, 3000, "more than 2 entries"), (3, 2999, "more than 2999 bytes")] {
        let (done, left) = with(entries, bytes);
        let error = done.unwrap_err();
        assert_eq!((error.kind, left), (CopyErrorKind::Limit, 2));
        assert!(error.to_string().contains(words), "{error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// A stream that ends anywhere has made whole files, or none.
    #[test]
    fn a_stream_that_is_cut_leaves_no_incomplete_file(at in 0_f64..1.0) {
        let from = tempdir().unwrap();
        fs::create_dir(from.path().join("d")).unwrap();
        for name in ["a", "d/b", "z"] {
            fs::write(from.path().join(name), [0x77; 3000]).unwrap();
        }
        let stream = packed(from.path());
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "a place in it")]
        let cut = (stream.len() as f64 * at) as usize;
        let to = tempdir().unwrap();
        let error = unpack(&stream[..cut], to.path()).unwrap_err();
        prop_assert_eq!(error.kind, CopyErrorKind::Lost);
        for name in ["a", "d/b", "z"] {
            if let Ok(content) = fs::read(to.path().join(name)) {
                prop_assert_eq!(content.len(), 3000);
            }
        }
        prop_assert!(listed(to.path()).iter().all(|name| !name.starts_with(TEMPORARY)));
    }

    /// Whatever arrives is refused, or is a copy; nothing panics, and nothing is made beside the destination.
    #[test]
    fn any_bytes_do_no_harm(bytes in proptest::collection::vec(any::<u8>(), 0..400), flips in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..4)) {
        let place = tempdir().unwrap();
        let to = place.path().join("to");
        let _ = unpack(&bytes, &to);
        let from = tempdir().unwrap();
        fs::create_dir(from.path().join("d")).unwrap();
        fs::write(from.path().join("d/b"), "content").unwrap();
        symlink("x", from.path().join("l")).unwrap();
        let mut stream = packed(from.path());
        for (at, byte) in flips {
            let at = at.index(stream.len());
            stream[at] = byte;
        }
        let _ = unpack(&stream, &to);
        prop_assert_eq!(listed(place.path()), ["to"]);
    }
}

#[test]
fn records_of_which_nothing_is_made_are_bounded_as_well() {
    let options = || CopyOptions {
        max_entries: 3,
        ..CopyOptions::default()
    };
    let skipped = || Record::Skipped {
        name: b"x".to_vec(),
        because: "a pipe".to_owned(),
    };
    let abandoned = || Record::Abandoned {
        because: "gone".to_owned(),
    };
    let endless: [Vec<(Record, &[u8])>; 2] = [
        (0..4).map(|_| (skipped(), &[][..])).collect(),
        (0..4)
            .flat_map(|_| [(file("a"), &[][..]), (abandoned(), &[][..])])
            .collect(),
    ];
    for records in endless {
        let to = tempdir().unwrap();
        let error = unpack_with(&written(&records), to.path(), options()).unwrap_err();
        assert_eq!(error.kind, CopyErrorKind::Limit, "{error}");
    }
    let empty = written(&[(file("a"), &[]), (data(0, 0), &[])]);
    let error = unpack(&empty, tempdir().unwrap().path()).unwrap_err();
    assert!(error.to_string().contains("cannot be there"), "{error}");
}

/// A file of a few bytes can say that it has any size, and what reads it later reads all of that.
#[test]
fn holes_do_not_make_a_copy_larger_than_its_bound() {
    let complete = |size| Record::Complete {
        size,
        mode: 0o644,
        modified: (0, 0),
    };
    let options = CopyOptions {
        max_apparent_bytes: 1 << 20,
        ..CopyOptions::default()
    };
    let streams = [
        vec![(file("a"), &[][..]), (complete((1 << 20) + 1), &[])],
        vec![(file("a"), &[]), (data(1 << 20, 1), b"x")],
        // Each of them is small.
        vec![
            (file("b"), &[]),
            (complete(1 << 19), &[]),
            (file("a"), &[]),
            (complete((1 << 19) + 1), &[]),
        ],
        vec![
            (file("b"), &[]),
            (complete(1 << 19), &[]),
            (file("a"), &[]),
            (complete(u64::MAX), &[]),
        ],
    ];
    for records in streams {
        let to = tempdir().unwrap();
        let error = unpack_with(&written(&records), to.path(), options).unwrap_err();
        assert_eq!(error.kind, CopyErrorKind::Limit, "{error}");
        assert!(
            error
                .to_string()
                .contains("with its holes, `a` makes it more than 1048576 bytes"),
            "{error}"
        );
        assert!(!listed(to.path()).contains(&"a".to_owned()));
    }
    let fits = written(&[(file("a"), &[]), (complete(1 << 20), &[]), (Record::End, &[])]);
    let to = tempdir().unwrap();
    assert_eq!(unpack_with(&fits, to.path(), options).unwrap().files, 1);
    assert_eq!(fs::metadata(to.path().join("a")).unwrap().len(), 1 << 20);
}

/// It replaced a directory at the other side, so that what was in that is gone there.
#[test]
fn nothing_is_gone_below_a_file_that_is_left_out() {
    let gone = |path: &[u8]| Record::Gone { path: path.to_vec() };
    let stream = written(&[
        (file("large"), b""),
        (complete(1 << 30), b""),
        (gone(b"large/x"), b""),
        (gone(b"large/x/y"), b""),
        (gone(b"larger"), b""),
        (gone(b"other/large"), b""),
        (Record::End, b""),
    ]);
    let to = tempdir().unwrap();
    let options = CopyOptions {
        max_apparent_bytes: 1 << 20,
        ..CopyOptions::default()
    };
    let all = Arc::new(Mutex::new(Vec::new()));
    let takes = Arc::clone(&all);
    let take = move |path: &Path| {
        takes.lock().unwrap().push(path.to_owned());
        Ok(())
    };
    let target = Target::open(to.path(), options).unwrap();
    let target = target.with_gone(Box::new(take)).leaving_out();
    let (copied, _) = target.unpack(&mut Cursor::new(&stream)).unwrap();
    assert_eq!(copied.skipped[0].path, Path::new("large"), "{copied:?}");
    assert_eq!(*all.lock().unwrap(), [Path::new("larger"), Path::new("other/large")]);
}

#[test]
fn a_file_that_the_system_refuses_is_left_out_where_that_is_wanted_and_the_next_is_made() {
    let complete = |size| Record::Complete {
        size,
        mode: 0o600,
        modified: (0, 0),
    };
    let data = Record::Data { offset: 0, length: 4 };
    let stream = written(&[
        (file("large"), b""),
        (data, b"some"),
        // Longer than any file.
        (complete(1 << 63), b""),
        (file("next"), b""),
        (Record::Data { offset: 0, length: 4 }, b"more"),
        (complete(4), b""),
        (Record::End, b""),
    ]);
    let to = tempdir().unwrap();
    let options = CopyOptions {
        max_apparent_bytes: u64::MAX,
        ..CopyOptions::default()
    };
    let error = unpack_with(&stream, to.path(), options).unwrap_err();
    assert_eq!(error.path, Path::new("large"));
    assert_eq!(fs::read_dir(to.path()).unwrap().count(), 0);
    let target = Target::open(to.path(), options).unwrap().leaving_out();
    let (copied, _) = target.unpack(&mut Cursor::new(&stream)).unwrap();
    assert_eq!((copied.files, copied.skipped_total), (1, 1), "{copied:?}");
    assert_eq!(copied.skipped[0].path, Path::new("large"));
    assert!(copied.skipped[0].because.contains("cannot be made here"), "{copied:?}");
    assert_eq!(fs::read_to_string(to.path().join("next")).unwrap(), "more");
    assert_eq!(fs::read_dir(to.path()).unwrap().count(), 1);
}
