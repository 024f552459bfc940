//! What holds of any content, through the façade and down to the disk.

use std::fs;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use shieling::Shieling;
use shieling::files::{EditRequest, FileContent, FileHash, PatchRequest, ReadRequest, StatRequest, WriteRequest};
use shieling_testkit::{Workspace, extent};
use tokio::runtime::Runtime;

use crate::place::{BOTH, In};

/// How often each is tried in each environment.
fn cases() -> u32 {
    extent::rounds(64, 256)
}

/// An environment with one file, which is read and written past it.
struct Place {
    workspace: Workspace,
    shieling: Shieling,
    runtime: Runtime,
}

impl Place {
    fn new(here: In) -> Self {
        let workspace = Workspace::new();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        Self {
            shieling: here.open(&workspace),
            workspace,
            runtime: runtime.expect("a runtime"),
        }
    }

    fn bytes(&self) -> Vec<u8> {
        fs::read(self.workspace.path("f")).expect("it is there")
    }

    /// The answer to a write, which must go well.
    fn write(&self, content: &[u8]) -> shieling::files::WriteResponse {
        let written = self.shieling.write_file(WriteRequest::new("f", content));
        let written = self.runtime.block_on(written);
        written.expect("any content can be written")
    }

    /// All lines of a text with the encoding that they were said to have; nothing if it is none, or has a
    /// line that is longer than what is shown of one.
    fn lines(&self, limit: u64) -> Option<(String, String)> {
        let (mut all, mut offset) = (String::new(), 0);
        loop {
            let ask = ReadRequest {
                offset,
                limit,
                ..ReadRequest::new("f")
            };
            let read = self
                .runtime
                .block_on(self.shieling.read_file(ask))
                .expect("it is there");
            match read.content {
                FileContent::Text {
                    text,
                    next_offset,
                    encoding,
                    cut_bytes,
                    ..
                } => {
                    if cut_bytes > 0 {
                        return None;
                    }
                    all.push_str(&text);
                    match next_offset {
                        Some(next) => offset = next,
                        None => return Some((all, encoding)),
                    }
                }
                FileContent::Image { .. } | FileContent::Whole { .. } | FileContent::Binary { .. } => return None,
            }
        }
    }

    fn hash(&self) -> FileHash {
        let stat = self
            .runtime
            .block_on(self.shieling.stat(StatRequest { path: "f".into() }));
        stat.expect("it is there").hash.expect("a file that may be read")
    }

    fn patch(&self, patch: &str, reverse: bool) -> Result<(), TestCaseError> {
        let patch = PatchRequest {
            reverse,
            ..PatchRequest::new(patch)
        };
        let patched = self.runtime.block_on(self.shieling.apply_patch(patch.clone()));
        prop_assert!(patched.is_ok(), "{patched:?}\n{}", patch.patch);
        Ok(())
    }
}

/// How a text becomes bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Coded {
    Plain,
    Marked,
    Little,
    Big,
}

impl Coded {
    fn bytes(self, text: &str) -> Vec<u8> {
        let wide = |to: fn(u16) -> [u8; 2]| text.encode_utf16().flat_map(to).collect::<Vec<u8>>();
        match self {
            Self::Plain => text.as_bytes().to_vec(),
            Self::Marked => [b"\xef\xbb\xbf", text.as_bytes()].concat(),
            Self::Little => [b"\xff\xfe".to_vec(), wide(u16::to_le_bytes)].concat(),
            Self::Big => [b"\xfe\xff".to_vec(), wide(u16::to_be_bytes)].concat(),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Plain => "utf-8",
            Self::Marked => "utf-8-bom",
            Self::Little => "utf-16le",
            Self::Big => "utf-16be",
        }
    }
}

fn coded() -> impl Strategy<Value = Coded> {
    prop_oneof![
        2 => Just(Coded::Plain),
        1 => Just(Coded::Marked),
        1 => Just(Coded::Little),
        1 => Just(Coded::Big),
    ]
}

/// Lines with all that has ever been taken for a line end, or lost: ended by `\n`, by `\r\n`, by both in
/// turn; the last one by nothing, now and then; or no lines at all.
fn text() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        3 => "[ab ]{0,3}",
        1 => Just("\u{c}\u{b}\u{85}\u{2028}\u{2029}".to_owned()),
        1 => Just("lone\rreturn".to_owned()),
        1 => Just("-- a".to_owned()),
        1 => Just("++ b".to_owned()),
        1 => Just("@@ -1 +1 @@".to_owned()),
        1 => Just("\\ No newline at end of file".to_owned()),
        1 => Just("𝄞é\u{301}\t \u{feff}x".to_owned()),
    ];
    let ends = prop_oneof![
        2 => Just(vec!["\n"]),
        2 => Just(vec!["\r\n"]),
        1 => Just(vec!["\n", "\r\n"]),
    ];
    let last = prop_oneof![1 => Just(String::new()), 1 => "[ab]{1,2}"];
    (prop::collection::vec(line, 0..12), ends, last).prop_map(|(lines, ends, last)| {
        let ended = lines.iter().zip(ends.iter().cycle());
        ended.map(|(line, end)| format!("{line}{end}")).collect::<String>() + &last
    })
}

/// Bytes of every kind.
fn content() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        Just(Vec::new()),
        prop::collection::vec(any::<u8>(), 0..300),
        prop::collection::vec(
            prop_oneof![Just(0_u8), Just(b'\n'), Just(b'\r'), Just(b'a'), Just(0xff_u8)],
            0..40
        ),
        prop::collection::vec(any::<u8>(), 70_000..70_010),
        (coded(), text()).prop_map(|(coded, text)| coded.bytes(&text)),
        (coded(), text(), any::<u8>()).prop_map(|(coded, text, last)| {
            let mut bytes = coded.bytes(&text);
            bytes.push(last);
            bytes
        }),
    ]
}

/// In each environment, one case after the other.
fn everywhere<S: Strategy>(values: impl Fn() -> S, holds: impl Fn(&Place, S::Value) -> Result<(), TestCaseError>) {
    for here in BOTH {
        let place = Place::new(here);
        let config = Config {
            cases: cases(),
            failure_persistence: None,
            ..Config::default()
        };
        let result = TestRunner::new(config).run(&values(), |value| holds(&place, value));
        if let Err(error) = result {
            panic!("{here:?}: {error}");
        }
    }
}

#[test]
fn what_is_written_is_there_byte_for_byte_and_is_what_is_read() {
    everywhere(
        || (content(), content(), 1_u64..9),
        |place, (one, other, limit)| {
            // A new file, and one that is replaced.
            for content in [one, other] {
                let written = place.write(&content);
                prop_assert_eq!(&place.bytes(), &content);
                prop_assert_eq!(written.size, content.len() as u64);
                prop_assert_eq!(&written.hash, &place.hash());
                if let Some((text, encoding)) = place.lines(limit) {
                    let coded = [Coded::Plain, Coded::Marked, Coded::Little, Coded::Big];
                    let coded = coded.into_iter().find(|coded| coded.name() == encoding);
                    // What is not text in its encoding cannot be told as text without loss.
                    if let Some(coded) = coded.filter(|_| !text.contains('\u{fffd}')) {
                        let told = coded.bytes(&text);
                        // One that has no mark, and was known by what is in it.
                        let is_wide = matches!(coded, Coded::Little | Coded::Big);
                        let mark = if is_wide && !content.starts_with(&told[..2]) {
                            2
                        } else {
                            0
                        };
                        prop_assert_eq!(&told[mark..], content.as_slice(), "{}", encoding);
                    }
                }
            }
            fs::remove_file(place.workspace.path("f")).expect("it is there");
            Ok(())
        },
    );
}

#[test]
fn every_text_is_read_as_it_is() {
    everywhere(
        || (coded(), text(), 1_u64..9),
        |place, (coded, text, limit)| {
            // Without a mark, nothing says that it is not plain.
            prop_assume!(!text.is_empty() && !text.starts_with('\u{feff}'));
            place.write(&coded.bytes(&text));
            let read = place.lines(limit);
            prop_assert_eq!(read, Some((text, coded.name().to_owned())));
            Ok(())
        },
    );
}

#[test]
fn an_edit_keeps_every_byte_outside_of_what_it_replaces() {
    let values = || {
        (
            coded(),
            text(),
            any::<prop::sample::Index>(),
            1_usize..6,
            "[xyz]{0,4}",
            any::<bool>(),
        )
    };
    everywhere(values, |place, (coded, text, start, length, new, all)| {
        let characters: Vec<(usize, char)> = text.char_indices().collect();
        prop_assume!(!characters.is_empty() && !text.starts_with('\u{feff}'));
        let from = start.index(characters.len());
        let until = characters.get(from + length).map_or(text.len(), |(at, _)| *at);
        let old = &text[characters[from].0..until];
        // What a line end in it stands for is another property's business.
        prop_assume!(!old.contains('\n') && old != new);
        let content = coded.bytes(&text);
        place.write(&content);
        let mut ask = EditRequest::new("f", old, &new);
        ask.replace_all = all;
        let before = place.hash();
        ask.expect = Some(before);
        let edited = place.runtime.block_on(place.shieling.edit_file(ask));
        let times = text.matches(old).count();
        let overlaps = (1..=old.len()).any(|shift| {
            let at = text.find(old).expect("it is from there") + shift;
            text.get(at..).is_some_and(|rest| rest.starts_with(old))
        });
        match edited {
            Ok(edited) => {
                prop_assert!(all || times == 1);
                prop_assert_eq!(edited.replacements, times as u64);
                prop_assert_eq!(place.bytes(), coded.bytes(&text.replace(old, &new)));
                prop_assert_eq!(edited.hash, place.hash());
            }
            Err(error) => {
                prop_assert!(!all && (times > 1 || overlaps), "{}", error);
                prop_assert_eq!(place.bytes(), content);
            }
        }
        Ok(())
    });
}

#[test]
fn an_edit_over_line_ends_keeps_them_and_every_byte_around() {
    let values = || (coded(), text(), text(), any::<bool>(), "[xyz]{1,4}\n[xyz]{0,4}");
    everywhere(values, |place, (coded, before, behind, returns, new)| {
        prop_assume!(!before.starts_with('\u{feff}'));
        let end = if returns { "\r\n" } else { "\n" };
        let marked = format!("<<one{end}two>>{end}");
        let content = coded.bytes(&format!("{before}{marked}{behind}"));
        place.write(&content);
        let asked = EditRequest::new("f", "<<one\ntwo>>\n", format!("{new}\n"));
        let edited = place.runtime.block_on(place.shieling.edit_file(asked));
        prop_assert!(edited.is_ok(), "{edited:?}");
        let new = format!("{new}\n").replace('\n', end);
        prop_assert_eq!(place.bytes(), coded.bytes(&format!("{before}{new}{behind}")));
        Ok(())
    });
}

#[test]
fn a_patch_and_its_reverse_leave_every_byte_as_it_was() {
    everywhere(
        || (coded(), text(), text()),
        |place, (coded, old, new)| {
            // A mark in the text itself could not be told from that of the file.
            prop_assume!(old != new && !old.starts_with('\u{feff}') && !new.starts_with('\u{feff}'));
            let (was, becomes) = (coded.bytes(&old), coded.bytes(&new));
            place.write(&was);
            let diff = place.write(&becomes).diff;
            prop_assert!(diff.is_some(), "{old:?} {new:?}");
            let diff = diff.unwrap_or_default();
            place.write(&was);
            place.patch(&diff, false)?;
            prop_assert_eq!(place.bytes(), becomes, "{}", diff);
            place.patch(&diff, true)?;
            prop_assert_eq!(place.bytes(), was, "{}", diff);
            Ok(())
        },
    );
}
