use proptest::prelude::*;
use shieling_testkit::extent;

use crate::environment::{FileError, Kind};
use crate::files::fake_files::{FakeWorkspace, make};
use crate::files::{FileContent, FilesError, ReadRequest, ReadResponse, WriteRequest, plan_write, read};
use crate::units::ByteCount;

fn world(content: &[u8]) -> FakeWorkspace {
    FakeWorkspace::with(&[("f", content)])
}

fn whole(world: &FakeWorkspace) -> ReadResponse {
    read(world.context(), &ReadRequest::new("f")).unwrap()
}

fn lines(world: &FakeWorkspace, offset: u64, limit: u64) -> Result<ReadResponse, FilesError> {
    read(
        world.context(),
        &ReadRequest {
            offset,
            limit,
            ..ReadRequest::new("f")
        },
    )
}

fn text(read: &ReadResponse) -> (&str, u64, Option<u64>, Option<u64>) {
    match &read.content {
        FileContent::Text {
            text,
            lines,
            total_lines,
            next_offset,
            ..
        } => (text, *lines, *total_lines, *next_offset),
        other => panic!("no text: {other:?}"),
    }
}

fn encoding(read: &ReadResponse) -> &str {
    match &read.content {
        FileContent::Text { encoding, .. } => encoding,
        other => panic!("no text: {other:?}"),
    }
}

#[test]
fn lines_end_at_a_line_feed_and_nowhere_else() {
    for strange in ["\x0c", "\u{2028}", "\u{2029}", "\x0b", "\u{85}", "\r", "\x1c"] {
        let content = format!("a{strange}b\nc\n");
        assert_eq!(
            text(&whole(&world(content.as_bytes()))),
            (content.as_str(), 2, Some(2), None),
            "{strange:?}"
        );
    }
}

#[test]
fn an_empty_file_has_no_lines() {
    let world = world(b"");
    assert_eq!(text(&whole(&world)), ("", 0, Some(0), None));
    assert_eq!(whole(&world).numbered(), "… the file is empty\n");
}

#[test]
fn a_file_of_one_line_end_has_one_empty_line() {
    let world = world(b"\n");
    assert_eq!(text(&whole(&world)), ("\n", 1, Some(1), None));
    assert_eq!(whole(&world).numbered(), "     1\t\n");
}

#[test]
fn an_offset_beyond_the_end_says_how_many_lines_there_are() {
    let world = world(b"a\nb\nc");
    for offset in [3, 4, u64::MAX] {
        let error = lines(&world, offset, 1).unwrap_err();
        assert!(matches!(error, FilesError::BeyondEnd { lines: 3, .. }), "{error}");
    }
    assert_eq!(text(&lines(&world, 2, 1).unwrap()), ("c", 1, Some(3), None));
}

#[test]
fn a_limit_of_nothing_is_refused() {
    let error = lines(&world(b"a\n"), 0, 0).unwrap_err();
    assert!(
        matches!(error, FilesError::Argument { argument: "limit", .. }),
        "{error}"
    );
}

#[test]
fn whoever_follows_the_footer_sees_each_line_once() {
    let content: String = (0..25).map(|n| format!("line {n}\n")).collect();
    for (limit, max) in [(1, 1024), (7, 1024), (100, 20), (3, 9), (2, 4)] {
        let world = world(content.as_bytes());
        let (mut offset, mut steps, mut seen) = (0, 0, Vec::new());
        loop {
            let max_bytes = ByteCount::bytes(max);
            let request = ReadRequest {
                offset,
                limit,
                max_bytes,
                ..ReadRequest::new("f")
            };
            let read = read(world.context(), &request).unwrap();
            let (_, count, _, next) = text(&read);
            seen.extend(offset..offset + count);
            steps += 1;
            assert!(steps < 100, "a loop");
            match next {
                Some(next) => {
                    assert!(
                        read.numbered().contains(&format!("read on with offset={next}\n")),
                        "{}",
                        read.numbered()
                    );
                    offset = next;
                }
                None => break,
            }
        }
        assert_eq!(seen, (0..25).collect::<Vec<_>>(), "{limit} {max}");
    }
}

#[test]
fn lines_are_numbered_from_one_and_keep_their_carriage_returns() {
    let read = lines(&world(b"a\r\nb\r\nc\r\nd"), 1, 2).unwrap();
    assert_eq!(
        read.numbered(),
        "     2\tb\r\n     3\tc\r\n… 1 more line; read on with offset=3\n"
    );
    let read = lines(&world(b"a\r\nb"), 1, 2).unwrap();
    assert_eq!(read.numbered(), "     2\tb\n… no line end after the last line\n");
}

#[test]
fn a_long_line_is_cut_and_says_by_how_much() {
    let mut content = vec![b'x'; 5_000];
    content.extend_from_slice("é\nnext\n".as_bytes());
    let world = world(&content);
    let max_bytes = ByteCount::bytes(1_000);
    let cut = read(
        world.context(),
        &ReadRequest {
            max_bytes,
            ..ReadRequest::new("f")
        },
    )
    .unwrap();
    let FileContent::Text {
        text,
        cut_bytes,
        next_offset,
        ..
    } = &cut.content
    else {
        panic!()
    };
    assert!(text.len() <= 1_000 && text.len() > 900, "{}", text.len());
    assert_eq!(text.len() as u64 + cut_bytes, 5_003);
    assert_eq!(*next_offset, Some(1));
    assert!(cut.numbered().contains("… line 1 is cut: "), "{}", cut.numbered());
}

#[test]
fn a_long_line_behind_others_is_left_to_the_next_read() {
    let content = [b"a\n".as_slice(), &[b'x'; 3_000], b"\nb\n"].concat();
    let max_bytes = ByteCount::bytes(1_000);
    let read = read(
        world(&content).context(),
        &ReadRequest {
            max_bytes,
            ..ReadRequest::new("f")
        },
    )
    .unwrap();
    assert_eq!(text(&read), ("a\n", 1, Some(3), Some(1)));
}

#[test]
fn a_range_of_a_gigabyte_is_read_in_small_pieces() {
    let world = FakeWorkspace::default();
    world
        .files
        .put_large("f", 1 << 30, |at| if at % 64 == 63 { b'\n' } else { b'x' });
    let far = extent::rounds(200_000, 2_000_000);
    let read = lines(&world, far, 3).unwrap();
    let line = "x".repeat(63) + "\n";
    assert_eq!(text(&read), (line.repeat(3).as_str(), 3, None, Some(far + 3)));
    assert!(world.files.widest() <= 1 << 20, "{}", world.files.widest());
    assert!(read.hash.0.starts_with("stat-"), "{:?}", read.hash);
    assert!(
        read.numbered()
            .ends_with(&format!("… more lines; read on with offset={}\n", far + 3))
    );
}

#[test]
fn a_line_of_many_megabytes_is_cut_to_its_beginning() {
    let world = FakeWorkspace::default();
    let size: u64 = extent::rounds(20, 100) << 20;
    world.files.put_large("f", size, |_| b'x');
    let read = whole(&world);
    let FileContent::Text {
        text,
        cut_bytes,
        total_lines,
        next_offset,
        ..
    } = read.content
    else {
        panic!()
    };
    assert!(text.len() <= 64 << 10);
    assert_eq!(text.len() as u64 + cut_bytes, size);
    assert_eq!((total_lines, next_offset), (Some(1), None));
    assert!(world.files.widest() <= 1 << 20);
}

#[test]
fn a_file_that_grows_while_it_is_read_ends_where_it_ended() {
    let world = world(b"one\ntwo\n");
    world.files.at_read(|content| content.extend_from_slice(b"more\n"));
    let read = whole(&world);
    assert_eq!(text(&read), ("one\ntwo\n", 2, Some(2), None));
    assert_eq!(read.size, 8);
}

#[test]
fn a_file_that_shrinks_while_it_is_read_is_what_is_left() {
    let world = world(b"one\ntwo\nthree\n");
    world.files.at_read(|content| content.truncate(4));
    let read = whole(&world);
    assert_eq!(text(&read), ("one\n", 1, Some(1), None));
    assert_eq!(read.size, 4);
}

/// The smallest images of each type: of one pixel.
fn images() -> [(&'static str, Vec<u8>); 4] {
    let png = b"\x89PNG\x0d\x0a\x1a\x0a\0\0\0\x0dIHDR\0\0\0\x01\0\0\0\x01\x08\0\0\0\0:~\x9bU\
        \0\0\0\x0aIDATx\xdach\0\0\0\x82\0\x81\xdaE\x08;\0\0\0\0IEND\xaeB`\x82";
    let jpeg = b"\xff\xd8\xff\xe0\0\x04JF\xff\xff\xc0\0\x0b\x08\0\x01\0\x01\x01\x01\x11\0\xff\xda\0\x08\x01\x01\0\0\x3f\0\x7f\xff\xd9";
    let gif = b"GIF89a\x01\0\x01\0\x80\0\0\0\0\0\xff\xff\xff,\0\0\0\0\x01\0\x01\0\0\x02\x02D\x01\0;";
    let webp = b"RIFF\x1a\0\0\0WEBPVP8L\x0d\0\0\0\x2f\0\0\0\x10\x07\x10\x11\x11\x88\x88\xfe\x07\0";
    [
        ("image/png", png.to_vec()),
        ("image/jpeg", jpeg.to_vec()),
        ("image/gif", gif.to_vec()),
        ("image/webp", webp.to_vec()),
    ]
}

#[test]
fn a_broken_image_is_a_file_that_is_not_text_and_says_that_it_is_damaged() {
    for (mime, image) in images() {
        // The first bytes that tell the type are there, also as far as they tell it from text.
        for length in [16, image.len() / 2, image.len() - 8] {
            if mime == "image/gif" && length > 24 {
                continue;
            }
            let read = whole(&world(&image[..length]));
            let FileContent::Binary {
                format: Some(format),
                why: Some(why),
            } = &read.content
            else {
                panic!("{mime}, {length}: {:?}", read.content)
            };
            assert_eq!(format, mime);
            assert!(why.starts_with("it is damaged"), "{why}");
        }
    }
    for magic in [&b"\x89PNG\r\n\x1a\n"[..], b"\xff\xd8\xff", b"\xff\xd8\xff\xff\xff"] {
        assert!(
            matches!(whole(&world(magic)).content, FileContent::Binary { .. }),
            "{magic:?}"
        );
    }
    let [(_, mut png), (_, mut jpeg), (_, mut gif), _] = images();
    png[19] = 0;
    jpeg[17] = 0;
    gif[6] = 0;
    for content in [png, jpeg, gif] {
        let FileContent::Binary { why: Some(why), .. } = whole(&world(&content)).content else {
            panic!("{content:?}")
        };
        assert!(why.ends_with("no size in pixels"), "{why}");
    }
}

#[test]
fn images_are_known_by_their_content() {
    for (mime, content) in images() {
        let read = whole(&world(&content));
        let FileContent::Image { mime: is, bytes } = read.content else {
            panic!("{mime}: {:?}", read.content)
        };
        assert_eq!((is.as_str(), bytes.as_slice()), (mime, content.as_slice()));
    }
    let named = FakeWorkspace::with(&[("f", b"I am no image, whatever.png says\n")]);
    assert!(matches!(whole(&named).content, FileContent::Text { .. }));
    assert!(matches!(
        whole(&world(b"GIF89a is a format\n")).content,
        FileContent::Text { .. }
    ));
}

#[test]
fn an_image_that_is_not_shown_says_why() {
    let world = world(&[b"\x89PNG\r\n\x1a\n".as_slice(), &[0; 100]].concat());
    for (max_image, expected) in [(None, "not shown here"), (Some(ByteCount::bytes(20)), "at most 20 B")] {
        let read = read(
            world.context(),
            &ReadRequest {
                max_image,
                ..ReadRequest::new("f")
            },
        )
        .unwrap();
        let FileContent::Binary { why: Some(why), .. } = &read.content else {
            panic!("{:?}", read.content)
        };
        assert!(why.contains(expected), "{why}");
        assert!(read.numbered().contains(expected));
    }
}

#[test]
fn what_is_no_text_is_told_by_name() {
    let formats: [(&[u8], Option<&str>); 5] = [
        (b"\x7fELF\x02\x01\0", Some("ELF")),
        (b"PK\x03\x04\x14\0", Some("zip")),
        (b"SQLite format 3\0", Some("SQLite")),
        (b"\x1f\x8b\x08\0", Some("gzip")),
        (b"abc\0def", None),
    ];
    for (content, expected) in formats {
        let read = whole(&world(content));
        let FileContent::Binary { format, .. } = &read.content else {
            panic!("{:?}", read.content)
        };
        assert_eq!(format.is_some(), expected.is_some());
        assert!(expected.is_none_or(|name| format.as_deref().is_some_and(|format| format.contains(name))));
        assert!(read.numbered().starts_with("… no text: "));
    }
}

#[test]
fn encodings_are_found_by_the_bytes() {
    let utf16 = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    let big = |text: &str| text.encode_utf16().flat_map(u16::to_be_bytes).collect::<Vec<u8>>();
    let japanese = "これは日本語の文章です。ファイルを読みます。\n二行目です。\n";
    let (sjis, _, _) = encoding_rs::SHIFT_JIS.encode(japanese);
    let french = "Le café était fermé, à côté de la forêt où l'été s'achève.\n";
    let (latin, _, _) = encoding_rs::WINDOWS_1252.encode(french);
    let cases: [(Vec<u8>, &str, &str); 8] = [
        (b"plain\n".to_vec(), "utf-8", "plain\n"),
        ("é\n".into(), "utf-8", "é\n"),
        ("\u{feff}é\n".into(), "utf-8-bom", "é\n"),
        (utf16("\u{feff}hé\nb\n"), "utf-16le", "hé\nb\n"),
        (big("\u{feff}hé\nb\n"), "utf-16be", "hé\nb\n"),
        (utf16("plain\ntext\n"), "utf-16le", "plain\ntext\n"),
        (sjis.into_owned(), "shift_jis", japanese),
        (latin.into_owned(), "windows-1252", french),
    ];
    for (content, name, expected) in cases {
        let read = whole(&world(&content));
        assert_eq!(encoding(&read), name, "{expected}");
        assert_eq!(text(&read).0, expected, "{name}");
        assert_eq!(text(&read).2, Some(expected.matches('\n').count() as u64), "{name}");
    }
}

#[test]
fn a_few_accents_are_latin_and_said_to_be_a_guess() {
    for expected in [
        "naïve\n",
        "François\n",
        "10 µm\n",
        "£ 5\n",
        "niño\n",
        "¡Hola! ¿Qué?\n",
        "© 2020 Foo\n",
        "20°C\n",
        "déjà vu\n",
        "Smørrebrød\n",
        "it’s\n",
        "Straße, Müller, naïve, café\nand so on\n",
        &"naïve\n".repeat(20),
        &"£ 5, 10 µm\n".repeat(20),
    ] {
        let (content, _, _) = encoding_rs::WINDOWS_1252.encode(expected);
        let read = whole(&world(&content));
        assert_eq!((encoding(&read), text(&read).0), ("windows-1252", expected));
        assert!(
            read.numbered().ends_with("… the encoding is guessed: windows-1252\n"),
            "{}",
            read.numbered()
        );
    }
    for (encoding, expected) in [
        (encoding_rs::WINDOWS_1251, "Привет, мир\n"),
        (encoding_rs::SHIFT_JIS, "テスト、日本語\n"),
        (encoding_rs::SHIFT_JIS, "テスト\n"),
        (encoding_rs::EUC_KR, "안녕하세요 세계\n"),
    ] {
        let (content, _, _) = encoding.encode(expected);
        assert_eq!(text(&whole(&world(&content))).0, expected);
    }
}

#[test]
fn a_character_that_holds_the_byte_of_a_line_end_is_no_line_end() {
    // U+0A0A and U+0A41 have a byte 0x0A in UTF-16.
    let content: Vec<u8> = "\u{feff}\u{0a0a}\u{0a41}\u{410a}\nb"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    assert_eq!(
        text(&whole(&world(&content))),
        ("\u{0a0a}\u{0a41}\u{410a}\nb", 2, Some(2), None)
    );
}

#[test]
fn a_few_broken_bytes_make_no_other_encoding_of_a_text() {
    let content = ["ééééé ünï\n".as_bytes(), b"\xff\xfe\n"].concat();
    let read = whole(&world(&content));
    assert_eq!(encoding(&read), "utf-8-lossy");
    assert_eq!(text(&read).0, "ééééé ünï\n\u{fffd}\u{fffd}\n");
    assert!(read.numbered().contains("bytes that are no text"));
}

#[test]
fn pipes_devices_and_directories_are_refused() {
    let world = FakeWorkspace::default();
    for kind in [Kind::Fifo, Kind::Socket, Kind::Device] {
        world.files.other("f", kind);
        let error = read(world.context(), &ReadRequest::new("f")).unwrap_err();
        assert!(matches!(error, FilesError::File(FileError::Special { .. })), "{error}");
    }
    world.files.directory("d");
    let error = read(world.context(), &ReadRequest::new("d")).unwrap_err();
    assert!(matches!(error, FilesError::File(FileError::IsDirectory(_))), "{error}");
}

#[test]
fn what_is_hidden_and_what_is_missing_get_the_same_answer() {
    let world = FakeWorkspace::with(&[(".env", b"secret"), ("d/x", b"x")]);
    world.files.link("link", ".env");
    world.files.link("way", "/w/.env");
    for name in [
        ".env",
        ".env/deep",
        "link",
        "way",
        "way/deep",
        "d/../.env",
        "missing",
        "missing/deep",
    ] {
        let error = read(world.context(), &ReadRequest::new(name)).unwrap_err();
        assert_eq!(error.to_string(), format!("there is no `{name}`"));
    }
}

#[test]
fn what_may_not_be_read_is_not_opened() {
    let world = FakeWorkspace::with(&[("forbidden", b"secret")]);
    world.files.link("link", "forbidden");
    for name in ["forbidden", "link"] {
        let error = read(world.context(), &ReadRequest::new(name)).unwrap_err();
        assert!(matches!(error, FilesError::File(FileError::Permission(_))), "{error}");
    }
    assert_eq!(world.files.widest(), 0);
}

proptest! {
    #[test]
    fn what_was_written_is_what_is_read(content: Vec<u8>, text in "(\\PC|[\\n\\r\\t ]){0,300}", limit in 1_u64..9) {
        for content in [content, text.into_bytes()] {
            let world = FakeWorkspace::default();
            let request = WriteRequest { path: "d/f".into(), content: content.clone(), expect: None, create_only: false };
            make(plan_write(world.context(), &request)).unwrap();
            prop_assert_eq!(world.files.content("d/f").unwrap(), content.clone());
            let mut joined = String::new();
            let mut offset = 0;
            loop {
                let request = ReadRequest { offset, limit, ..ReadRequest::new("d/f") };
                match read(world.context(), &request).unwrap().content {
                    FileContent::Text { text, next_offset, encoding, .. } => {
                        joined.push_str(&text);
                        if let Some(next) = next_offset {
                            prop_assert!(next > offset);
                            offset = next;
                            continue;
                        }
                        if let ("utf-8", Ok(expected)) = (encoding.as_str(), std::str::from_utf8(&content)) {
                            prop_assert_eq!(&joined, expected);
                        } else if encoding == "utf-8-bom" {
                            prop_assert_eq!(format!("\u{feff}{joined}").into_bytes(), content.clone());
                        }
                    }
                    FileContent::Image { bytes, .. } | FileContent::Whole { bytes } => prop_assert_eq!(bytes, content.clone()),
                    FileContent::Binary { .. } => prop_assert!(content.contains(&0)),
                }
                break;
            }
        }
    }
}

#[test]
fn the_whole_of_a_file_is_given_as_it_is_up_to_a_bound() {
    for content in [&b""[..], b"a\r\nb", b"\0\xff", b"\x89PNG\r\n\x1a\n"] {
        let request = |most| ReadRequest {
            whole: Some(ByteCount::bytes(most)),
            ..ReadRequest::new("f")
        };
        let size = content.len() as u64;
        let got = read(world(content).context(), &request(size)).unwrap();
        assert!(
            matches!(&got.content, FileContent::Whole { bytes } if bytes == content),
            "{got:?}"
        );
        assert_eq!((got.size, &got.hash), (size, &whole(&world(content)).hash));
        if size > 0 {
            let error = read(world(content).context(), &request(size - 1)).unwrap_err();
            assert!(matches!(error, FilesError::TooLarge { .. }), "{error:?}");
        }
    }
}
