use proptest::prelude::*;

use super::*;

fn emulator(rows: u16, columns: u16) -> Emulator {
    Emulator::new(TerminalSize { rows, columns })
}

fn shown(text: &str) -> Screen {
    let mut emulator = emulator(5, 20);
    emulator.output(text.as_bytes());
    emulator.screen()
}

#[test]
fn a_screen_shows_what_stands_on_it() {
    for (written, text, cursor) in [
        ("", "", (0, 0)),
        ("one\r\ntwo  \r\n", "one\ntwo", (2, 0)),
        (" 10%\r 50%\r100%", "100%", (0, 4)),
        ("Password: ", "Password:", (0, 10)),
        ("\x1b[3;5Hhere\x1b[1;1H", "\n\n    here", (0, 0)),
        ("a\x1b[31;1mred\x1b[mb", "aredb", (0, 5)),
        ("日本語", "日本語", (0, 6)),
        ("e\u{301}x", "e\u{301}x", (0, 2)),
        ("gone\x1b[2J\x1b[Hnew", "new", (0, 3)),
        ("12345678901234567890", "12345678901234567890", (0, 19)),
        ("12345678901234567890x", "12345678901234567890\nx", (1, 1)),
        ("a\r\nb\r\nc\r\nd\r\ne\r\nf", "b\nc\nd\ne\nf", (4, 1)),
    ] {
        let screen = shown(written);
        assert_eq!(
            (screen.text.as_str(), screen.cursor),
            (text, Some(cursor)),
            "{written:?}"
        );
    }
}

#[test]
fn characters_and_sequences_may_come_in_pieces() {
    let text = "é日\x1b[2;3Hx\x1b]2;title\x07\x1b[65535b\x1b[6n";
    let mut whole = emulator(5, 20);
    whole.output(text.as_bytes());
    let mut pieces = emulator(5, 20);
    for byte in text.bytes() {
        pieces.output(&[byte]);
    }
    assert_eq!(whole.screen(), pieces.screen());
    assert_eq!(whole.replies(), pieces.replies());
}

#[test]
fn a_full_screen_program_gives_the_screen_back() {
    let mut emulator = emulator(5, 20);
    emulator.output(b"$ vi\r\n\x1b[?1049h\x1b[?25l\x1b[?1h\x1b=\x1b[2J\x1b[Hfile");
    let inside = emulator.screen();
    assert_eq!(
        (inside.text.as_str(), inside.alternate, inside.cursor),
        ("file", true, None)
    );
    assert!(emulator.mode().cursor && emulator.mode().keypad);
    emulator.output(b"\x1b[?1049l\x1b[?25h\x1b[?1l\x1b>$ ");
    let outside = emulator.screen();
    assert_eq!((outside.text.as_str(), outside.alternate), ("$ vi\n$", false));
    assert_eq!(outside.cursor, Some((1, 2)));
    assert!(!emulator.mode().cursor && !emulator.mode().keypad);
}

#[test]
fn a_title_is_short_and_has_no_controls() {
    assert_eq!(shown("\x1b]0;build\x07").title, "build");
    assert_eq!(shown("\x1b]2;a\u{9b}31mb\u{85}c\x1b\\").title, "a31mbc");
    let long = shown(&format!("\x1b]2;{}\x07", "é".repeat(400))).title;
    assert_eq!(long.chars().count(), 200);
    assert_eq!(shown("\x1b]2;never closed").title, "");
}

#[test]
fn what_programs_wait_for_is_answered_once() {
    for (question, answer) in [
        ("\x1b[6n", "\x1b[1;1R"),
        ("ab\r\nc\x1b[6n", "\x1b[2;2R"),
        ("12345678901234567890\x1b[6n", "\x1b[1;20R"),
        ("\x1b[?6n", "\x1b[?1;1;1R"),
        ("\x1b[5n", "\x1b[0n"),
        ("\x1b[c", "\x1b[?1;2c"),
        ("\x1b[0c", "\x1b[?1;2c"),
        ("\x1b[>c", "\x1b[>0;0;0c"),
        ("\x1b[?2026$p", "\x1b[?2026;0$y"),
        ("\x1b[18t", "\x1b[8;5;20t"),
        ("\x1b]10;?\x07", "\x1b]10;rgb:e5e5/e5e5/e5e5\x1b\\"),
        ("\x1b]11;?\x1b\\", "\x1b]11;rgb:0000/0000/0000\x1b\\"),
        // Answers with text of the asker's choice would be typed into whatever runs.
        ("\x1b]2;rm -rf /\x07\x1b[21t", ""),
        ("\x1b]52;c;?\x07", ""),
        ("\x1bP$qm\x1b\\", ""),
        ("\x05", ""),
        ("plain", ""),
    ] {
        let mut emulator = emulator(5, 20);
        emulator.output(question.as_bytes());
        assert_eq!(String::from_utf8_lossy(&emulator.replies()), answer, "{question:?}");
        assert!(emulator.replies().is_empty(), "{question:?}");
    }
}

#[test]
fn answers_that_nobody_takes_do_not_heap_up() {
    let mut emulator = emulator(5, 20);
    emulator.output("\x1b[6n".repeat(10_000).as_bytes());
    let replies = emulator.replies();
    assert!(
        replies.len() <= REPLIES && replies.len() > REPLIES - 20,
        "{}",
        replies.len()
    );
}

#[test]
fn a_repetition_fills_no_more_than_a_line() {
    assert_eq!(shown("x\x1b[4b").text, "xxxxx");
    assert_eq!(shown("x\x1b[19by").text, format!("{}\ny", "x".repeat(20)));
    assert_eq!(shown("x\x1b[65535by").text, format!("{}\nxy", "x".repeat(20)));
    assert_eq!(shown("x\x1b[6553\x075;2by").text, format!("{}\nxy", "x".repeat(20)));
    assert_eq!(shown("x\x1b[99999999999999999999b").text.len(), 22);
    // Neither letters nor other sequences are touched.
    assert_eq!(shown("\x1b[31mb\x1b[1;4Hb").text, "b  b");
}

#[test]
fn a_screen_changes_its_size_and_never_leaves_its_bounds() {
    let mut emulator = emulator(5, 20);
    emulator.output(b"one\r\ntwo");
    emulator.resize(TerminalSize { rows: 10, columns: 40 });
    assert_eq!(emulator.screen().text, "one\ntwo");
    assert_eq!(emulator.screen().size, TerminalSize { rows: 10, columns: 40 });
    for (asked, got) in [((0, 0), (1, 1)), ((u16::MAX, u16::MAX), (500, 1_000)), ((1, 7), (1, 7))] {
        emulator.resize(TerminalSize {
            rows: asked.0,
            columns: asked.1,
        });
        emulator.output("日本\r\nx".as_bytes());
        let size = emulator.screen().size;
        assert_eq!((size.rows, size.columns), got);
    }
}

/// Something that a hostile program does.
#[derive(Debug, Clone)]
enum Act {
    Write(Vec<u8>),
    Resize(u16, u16),
}

fn act() -> impl Strategy<Value = Act> {
    let sequence = (
        "(|\\?|>|!)",
        proptest::collection::vec(prop_oneof![0_u32..30, Just(65_535), Just(99_999)], 0..4),
        "(| |\\$)[@-~]",
    )
        .prop_map(|(private, parameters, last)| {
            let parameters: Vec<String> = parameters.iter().map(u32::to_string).collect();
            format!("\x1b[{private}{}{last}", parameters.join(";")).into_bytes()
        });
    let text = prop_oneof![
        Just("日本語\u{fe0f}\u{200d}👩‍👩‍👧e\u{301}".to_owned()),
        Just("❤\u{fe0f}".to_owned()),
        Just("\x1b[?1049h".to_owned()),
        Just("\x1b[?1049l".to_owned()),
        Just("\x1b[?47h\x1b[?6h\x1b7".to_owned()),
        Just("\x1b8\x1bM\x1bc".to_owned()),
        Just("\x1b[?47l\x1b[?6l\x1b8".to_owned()),
        "[a-z\\r\\n\\t\\x08]{0,40}",
        "\\PC{0,20}",
    ]
    .prop_map(String::into_bytes);
    prop_oneof![
        4 => sequence.prop_map(Act::Write),
        4 => text.prop_map(Act::Write),
        2 => proptest::collection::vec(any::<u8>(), 0..100).prop_map(Act::Write),
        2 => (0_u16..12, 0_u16..12).prop_map(|(rows, columns)| Act::Resize(rows, columns)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(shieling_testkit::extent::rounds(300, 2_000)))]

    #[test]
    fn no_program_breaks_its_screen(acts in proptest::collection::vec(act(), 1..40)) {
        let mut emulator = emulator(4, 9);
        for act in &acts {
            match act {
                Act::Write(bytes) => emulator.output(bytes),
                Act::Resize(rows, columns) => emulator.resize(TerminalSize { rows: *rows, columns: *columns }),
            }
            let screen = emulator.screen();
            prop_assert!(screen.text.lines().count() <= usize::from(screen.size.rows));
            prop_assert!(screen.title.chars().count() <= TITLE);
            prop_assert!(!screen.text.chars().any(|c| c.is_control() && c != '\n'));
            if let Some((row, column)) = screen.cursor {
                prop_assert!(row < screen.size.rows && column < screen.size.columns);
            }
            prop_assert!(emulator.replies().len() <= REPLIES);
        }
    }
}
