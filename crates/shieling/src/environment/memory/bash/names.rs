//! Names of files that bashkit takes for a danger and refuses before it asks for them: those with
//! control characters, with marks that turn text around, and with letters that nobody sees (which are
//! in many an emoji). Files in memory have them all the same.
//!
//! Before a program that only works on files is run, such characters in what it is given become others,
//! of an area that is nobody's, and the files take them back. Programs that print what they are given
//! would print the others, so that they get names as they are, which bashkit refuses.

use std::borrow::Cow;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

/// Programs that print nothing of what they are given, unless it is wrong.
const SILENT: &[&str] = &[
    "cat", "ln", "rmdir", "sort", "tee", "touch", "truncate", "unlink", "test", "[",
];

/// Whether bashkit refuses it in a name.
fn refused(letter: char) -> bool {
    let unseen =
        matches!(letter, '\u{180e}' | '\u{200b}'..='\u{200d}' | '\u{2060}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}');
    let turning = matches!(letter, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{206f}');
    letter.is_control() || unseen || turning || TAGS.contains(&u32::from(letter))
}

/// Letters that make a flag of what is before them.
const TAGS: RangeInclusive<u32> = 0xe_0000..=0xe_007f;
/// Where the others stand instead: the last plane for private use, where nobody puts anything.
const SHIFT: u32 = 0x10_0000;
/// Where tags stand, in a part of that plane that is left free.
const TAGS_SHIFT: u32 = 0x10_f000 - 0xe_0000;

/// What stands in the place of a letter.
fn stand_in(letter: char) -> char {
    let code = u32::from(letter);
    let shift = if TAGS.contains(&code) { TAGS_SHIFT } else { SHIFT };
    match refused(letter) {
        true => char::from_u32(code + shift).unwrap_or(letter),
        false => letter,
    }
}

/// The letter that another one stands for, if it does.
fn stood_for(letter: char) -> Option<char> {
    let own = |shift| u32::from(letter).checked_sub(shift).and_then(char::from_u32);
    let found = [SHIFT, TAGS_SHIFT].into_iter().filter_map(own);
    found.into_iter().find(|own| refused(*own) && stand_in(*own) == letter)
}

/// A path by its true name.
pub(super) fn real(path: &Path) -> Cow<'_, Path> {
    match path.to_str() {
        Some(text) if text.chars().any(|letter| stood_for(letter).is_some()) => {
            let text: String = text.chars().map(|letter| stood_for(letter).unwrap_or(letter)).collect();
            Cow::Owned(PathBuf::from(text))
        }
        Some(_) | None => Cow::Borrowed(path),
    }
}

/// Writes names so that bashkit takes them.
pub(super) fn passable(program: &str, args: &mut [String]) {
    if !SILENT.contains(&program) {
        return;
    }
    let test = matches!(program, "test" | "[");
    let between = |arg: Option<&String>| arg.is_some_and(|arg| matches!(arg.as_str(), "-nt" | "-ot" | "-ef"));
    let of_file = |arg: Option<&String>| {
        arg.is_some_and(|arg| arg.len() == 2 && arg.starts_with('-') && !matches!(arg.as_str(), "-n" | "-z"))
    };
    for at in 0..args.len() {
        let before = at.checked_sub(1).and_then(|before| args.get(before));
        let passes = !test || of_file(before) || between(before) || between(args.get(at + 1));
        if passes && args[at].chars().any(refused) {
            args[at] = args[at].chars().map(stand_in).collect();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{passable, real};

    #[test]
    fn names_get_past_and_come_back() {
        for name in [
            "a\nb",
            "\u{1b}[0m",
            "👨\u{200d}👩.txt",
            "\u{feff}",
            "\u{85}",
            "🏴\u{e0067}\u{e007f}",
            "plain",
            "\u{10ffff}",
        ] {
            let mut args = [name.to_owned()];
            passable("touch", &mut args);
            assert!(!args[0].chars().any(super::refused), "{name:?}");
            assert_eq!(real(Path::new(&args[0])).as_os_str(), name, "{name:?}");
        }
        let given = ["a\nb", "=", "a\nb", "-a", "-e", "a\nb"].map(str::to_owned);
        let mut args = given.clone();
        passable("test", &mut args);
        assert_eq!(args[..5], given[..5]);
        assert_ne!(args[5], given[5]);
        let mut args = ["a\nb", "-nt", "c\nd"].map(str::to_owned);
        passable("[", &mut args);
        assert!(!args.concat().contains('\n'));
        let mut args = given.clone();
        passable("grep", &mut args);
        assert_eq!(args, given);
    }
}
