//! Names of keys, and the bytes that a terminal sends for them. The encoding depends on nothing but the [`KeyMode`] that
//! the program has set.
//!
//! Names are case insensitive, in the notations that people and models use: `C-c`, `ctrl+c`, `^C`, `<Enter>`,
//! `ArrowUp`. A key without an encoding is refused rather than guessed, since a program may do anything on a wrong
//! one.

use super::JobError;

/// The names of all keys, for error messages.
const KNOWN: &str = "Enter, Tab, Escape, Space, Backspace, Delete, Insert, Home, End, PageUp, PageDown, Up, \
                     Down, Left, Right, F1 to F12, KP0 to KP9 and KPEnter, with C- (Ctrl), M- (Alt) and S- \
                     (Shift) before them, such as `C-c`, `M-x`, `S-Tab`, `C-Left`";

/// The longest name that an error message contains, in characters.
const SHOWN: usize = 40;

/// The terminal modes that change the encoding of keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct KeyMode {
    /// Whether the program has a terminal. Without one, Enter is a line feed.
    pub(crate) terminal: bool,
    /// Cursor keys are encoded as application keys (DECCKM).
    pub(crate) cursor: bool,
    /// Keys of the keypad are encoded as application keys (DECKPAM).
    pub(crate) keypad: bool,
}

/// Encodes keys, one after the other.
///
/// # Errors
/// [`JobError::UnknownKey`] for the first unknown name. Nothing should be written then.
pub(crate) fn bytes(names: &[String], mode: KeyMode) -> Result<Vec<u8>, JobError> {
    let mut all = Vec::new();
    for name in names {
        let Some(bytes) = encode_named(name, mode) else {
            let shown = name.chars().take(SHOWN).flat_map(char::escape_debug);
            return Err(JobError::UnknownKey {
                key: shown.collect(),
                known: KNOWN,
            });
        };
        all.extend(bytes);
    }
    Ok(all)
}

/// Returns the number of bytes of text that keys produce, and the names of the keys that produce none. Names of the
/// others would reveal what was typed, such as a password.
pub(crate) fn described(names: &[String]) -> (usize, Vec<&str>) {
    let (mut bytes, mut named) = (0, Vec::new());
    for name in names {
        match parsed(name) {
            Some((Key::Character(character), held)) if !held.control => {
                bytes += character.len_utf8();
            }
            Some((Key::Keypad(label, _), _)) if label != '\r' => bytes += 1,
            Some(_) => named.push(name.as_str()),
            // An unknown name, of which nothing is typed. It may be anything, so it is not repeated.
            None => {}
        }
    }
    (bytes, named)
}

/// The modifiers of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Modifiers {
    control: bool,
    alt: bool,
    shift: bool,
}

impl Modifiers {
    /// Returns the number that terminals use in sequences; 1 means no modifier.
    fn number(self) -> u8 {
        1 + u8::from(self.shift) + 2 * u8::from(self.alt) + 4 * u8::from(self.control)
    }
}

/// A key without modifiers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Key {
    Character(char),
    Enter,
    Tab,
    Escape,
    Backspace,
    /// A cursor key, by the last letter of its sequence.
    Cursor(char),
    /// F1 to F4, by the last letter of the sequence.
    Function(char),
    /// Another function key, by its number.
    Numbered(u8),
    /// A key of the keypad: its character, and its letter as an application key.
    Keypad(char, char),
}

fn encode_named(name: &str, mode: KeyMode) -> Option<Vec<u8>> {
    let (key, held) = parsed(name)?;
    encoded(key, held, mode)
}

/// Parses the name of a key with its modifiers.
fn parsed(name: &str) -> Option<(Key, Modifiers)> {
    if let Some(character) = single(name) {
        return Some((Key::Character(character), Modifiers::default()));
    }
    let inside = name.strip_prefix('<').and_then(|rest| rest.strip_suffix('>'));
    let mut rest = inside.filter(|inside| !inside.is_empty()).unwrap_or(name);
    let mut held = Modifiers::default();
    if let Some(character) = rest.strip_prefix('^').and_then(single) {
        held.control = true;
        return Some((Key::Character(character), held));
    }
    while let Some((modifier, key)) = rest.split_once(['-', '+']) {
        match modifier.to_ascii_lowercase().as_str() {
            _ if key.is_empty() => break,
            "c" | "ctrl" | "control" => held.control = true,
            "m" | "a" | "alt" | "meta" | "option" => held.alt = true,
            "s" | "shift" => held.shift = true,
            _ => break,
        }
        rest = key;
    }
    let key = match single(rest) {
        Some(character) => Key::Character(character),
        None => match parse_name(rest)? {
            // The name itself includes Shift.
            (key, true) => {
                held.shift = true;
                key
            }
            (key, false) => key,
        },
    };
    Some((key, held))
}

/// Returns the only character of a text.
fn single(text: &str) -> Option<char> {
    let mut characters = text.chars();
    characters.next().filter(|_| characters.next().is_none())
}

/// Returns the key of a name, and whether the name implies Shift.
fn parse_name(name: &str) -> Option<(Key, bool)> {
    let name: String = name
        .chars()
        .filter(|c| !matches!(c, '_' | '-' | ' '))
        .map(|c| c.to_ascii_lowercase())
        .collect();
    let key = match name.as_str() {
        "enter" | "return" | "cr" | "ret" => Key::Enter,
        "tab" => Key::Tab,
        "btab" | "backtab" => return Some((Key::Tab, true)),
        "escape" | "esc" => Key::Escape,
        "space" | "spc" | "spacebar" => Key::Character(' '),
        "backspace" | "bspace" | "bs" => Key::Backspace,
        "up" | "arrowup" | "uparrow" => Key::Cursor('A'),
        "down" | "arrowdown" | "downarrow" => Key::Cursor('B'),
        "right" | "arrowright" | "rightarrow" => Key::Cursor('C'),
        "left" | "arrowleft" | "leftarrow" => Key::Cursor('D'),
        "end" => Key::Cursor('F'),
        "home" => Key::Cursor('H'),
        "insert" | "ins" | "ic" => Key::Numbered(2),
        "delete" | "del" | "dc" => Key::Numbered(3),
        "pageup" | "pgup" | "ppage" | "prior" => Key::Numbered(5),
        "pagedown" | "pgdn" | "pgdown" | "npage" | "next" => Key::Numbered(6),
        "f1" => Key::Function('P'),
        "f2" => Key::Function('Q'),
        "f3" => Key::Function('R'),
        "f4" => Key::Function('S'),
        "f5" => Key::Numbered(15),
        "f6" => Key::Numbered(17),
        "f7" => Key::Numbered(18),
        "f8" => Key::Numbered(19),
        "f9" => Key::Numbered(20),
        "f10" => Key::Numbered(21),
        "f11" => Key::Numbered(23),
        "f12" => Key::Numbered(24),
        "kpenter" => Key::Keypad('\r', 'M'),
        _ => {
            let digit = name.strip_prefix("kp").and_then(single)?;
            let letter = "pqrstuvwxy".chars().nth(usize::try_from(digit.to_digit(10)?).ok()?)?;
            Key::Keypad(digit, letter)
        }
    };
    Some((key, false))
}

/// Encodes a key; `None` if terminals have no encoding for it.
fn encoded(key: Key, held: Modifiers, mode: KeyMode) -> Option<Vec<u8>> {
    let number = held.number();
    let text = match key {
        Key::Character(character) => return typed(character, held),
        Key::Enter if mode.terminal => "\r".to_owned(),
        Key::Enter => "\n".to_owned(),
        Key::Tab if held.shift => "\x1b[Z".to_owned(),
        Key::Tab => "\t".to_owned(),
        Key::Escape => "\x1b".to_owned(),
        Key::Backspace if held.control => "\x08".to_owned(),
        Key::Backspace => "\x7f".to_owned(),
        Key::Cursor(last) if number > 1 => return Some(format!("\x1b[1;{number}{last}").into_bytes()),
        Key::Cursor(last) if mode.cursor => format!("\x1bO{last}"),
        Key::Cursor(last) => format!("\x1b[{last}"),
        Key::Function(last) if number > 1 => return Some(format!("\x1b[1;{number}{last}").into_bytes()),
        Key::Function(last) => format!("\x1bO{last}"),
        Key::Numbered(which) if number > 1 => return Some(format!("\x1b[{which};{number}~").into_bytes()),
        Key::Numbered(which) => format!("\x1b[{which}~"),
        Key::Keypad(_, letter) if mode.keypad => format!("\x1bO{letter}"),
        Key::Keypad('\r', _) if !mode.terminal => "\n".to_owned(),
        Key::Keypad(label, _) => label.to_string(),
    };
    Some(with_alt(text.into_bytes(), held))
}

/// Encodes a character with modifiers.
fn typed(character: char, held: Modifiers) -> Option<Vec<u8>> {
    if !held.control {
        let shifted = if held.shift {
            character.to_uppercase().to_string()
        } else {
            character.to_string()
        };
        return Some(with_alt(shifted.into_bytes(), held));
    }
    let byte = match character.to_ascii_lowercase() {
        letter @ 'a'..='z' => u8::try_from(letter).ok()? - b'a' + 1,
        ' ' | '@' | '2' => 0x00,
        '[' | '3' => 0x1b,
        '\\' | '4' => 0x1c,
        ']' | '5' => 0x1d,
        '^' | '6' => 0x1e,
        '_' | '/' | '-' | '7' => 0x1f,
        '?' | '8' => 0x7f,
        _ => return None,
    };
    Some(with_alt(vec![byte], held))
}

fn with_alt(mut bytes: Vec<u8>, held: Modifiers) -> Vec<u8> {
    if held.alt {
        bytes.insert(0, 0x1b);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: KeyMode = KeyMode {
        terminal: true,
        cursor: false,
        keypad: false,
    };

    fn sent(name: &str, mode: KeyMode) -> String {
        let bytes = bytes(&[name.to_owned()], mode).unwrap_or_else(|error| panic!("{name}: {error}"));
        String::from_utf8(bytes).expect("keys are text")
    }

    #[test]
    fn every_key_has_its_bytes_in_every_spelling() {
        for (names, expected) in [
            ("a", "a"),
            ("A", "A"),
            ("-", "-"),
            ("+", "+"),
            ("<", "<"),
            ("^", "^"),
            ("é", "é"),
            ("C-a c-a C-A ctrl+a Ctrl-A CTRL-a control+a ^A ^a <C-a> <c-a>", "\x01"),
            ("C-c ctrl+c Ctrl-C ^C <C-c> Control-C", "\x03"),
            ("C-z ^Z", "\x1a"),
            ("C-m", "\r"),
            ("C-space C-Space ctrl+space C-@ ^@", "\0"),
            ("C-[ ^[ Escape escape Esc ESC <Esc> <ESC>", "\x1b"),
            ("C-\\ ^\\ C-4", "\x1c"),
            ("C-]", "\x1d"),
            ("C-^ ^^", "\x1e"),
            ("C-_ C-/ C--", "\x1f"),
            ("C-? ^? Backspace BSpace BS bs", "\x7f"),
            ("C-Backspace", "\x08"),
            ("M-x A-x Alt+x alt-x Meta-x option+x <M-x>", "\x1bx"),
            ("M-X A-S-x", "\x1bX"),
            ("C-M-c M-C-c ctrl+alt+c", "\x1b\x03"),
            ("M-Enter", "\x1b\r"),
            ("M--", "\x1b-"),
            ("S-a shift+a", "A"),
            ("Enter enter ENTER <Enter> <CR> Return CR", "\r"),
            ("Tab tab <Tab>", "\t"),
            ("S-Tab shift+tab BTab Back-Tab btab", "\x1b[Z"),
            ("Space SPC spacebar", " "),
            ("Delete Del DEL dc", "\x1b[3~"),
            ("Insert Ins", "\x1b[2~"),
            ("C-Delete", "\x1b[3;5~"),
            ("Home", "\x1b[H"),
            ("End", "\x1b[F"),
            ("PageUp PgUp page_up page-up PPage Prior", "\x1b[5~"),
            ("PageDown PgDn PgDown NPage Page_Down", "\x1b[6~"),
            ("Up ArrowUp arrow_up up-arrow <Up>", "\x1b[A"),
            ("Down ArrowDown", "\x1b[B"),
            ("Right ArrowRight", "\x1b[C"),
            ("Left ArrowLeft", "\x1b[D"),
            ("S-Up", "\x1b[1;2A"),
            ("M-Up", "\x1b[1;3A"),
            ("C-Up ctrl+up Ctrl+ArrowUp", "\x1b[1;5A"),
            ("C-S-Left S-C-Left", "\x1b[1;6D"),
            ("C-M-S-Home", "\x1b[1;8H"),
            ("F1 f1 <F1>", "\x1bOP"),
            ("F4", "\x1bOS"),
            ("S-F1", "\x1b[1;2P"),
            ("F5", "\x1b[15~"),
            ("C-F5", "\x1b[15;5~"),
            ("F6", "\x1b[17~"),
            ("F10", "\x1b[21~"),
            ("F11", "\x1b[23~"),
            ("F12", "\x1b[24~"),
            ("KP5", "5"),
            ("KPEnter KP_Enter", "\r"),
        ] {
            for name in names.split(' ') {
                assert_eq!(sent(name, PLAIN), expected, "{name}");
            }
        }
        assert_eq!(sent(" ", PLAIN), " ");
        assert_eq!(sent("Page Up", PLAIN), "\x1b[5~");
    }

    #[test]
    fn a_program_gets_its_keys_in_the_mode_that_it_asked_for() {
        let application = KeyMode {
            cursor: true,
            keypad: true,
            ..PLAIN
        };
        for (name, expected) in [
            ("Up", "\x1bOA"),
            ("Home", "\x1bOH"),
            ("C-Up", "\x1b[1;5A"),
            ("PageUp", "\x1b[5~"),
            ("KP0", "\x1bOp"),
            ("KP9", "\x1bOy"),
            ("KPEnter", "\x1bOM"),
            ("Enter", "\r"),
        ] {
            assert_eq!(sent(name, application), expected, "{name}");
        }
        assert_eq!(sent("Enter", KeyMode::default()), "\n");
        assert_eq!(sent("KPEnter", KeyMode::default()), "\n");
    }

    #[test]
    fn keys_follow_each_other() {
        let names = ["Escape", ":", "q", "!", "Enter"].map(str::to_owned);
        assert_eq!(bytes(&names, PLAIN), Ok(b"\x1b:q!\r".to_vec()));
        assert_eq!(bytes(&[], PLAIN), Ok(Vec::new()));
    }

    #[test]
    fn what_is_no_key_is_refused_with_those_there_are() {
        let long = "x".repeat(10_000);
        for name in [
            "", "enter!", "F0", "F13", "ctrl", "C-", "C-é", "C-1", "C-C-", "hello", "a-", "--", "++", "<>", "KP",
            "KP10", "KP-", "C-Entre", "\u{1b}[A", "^ab", "super+x", &long,
        ] {
            let error = bytes(&["Enter".to_owned(), name.to_owned()], PLAIN).expect_err(name);
            let text = error.to_string();
            assert!(
                text.contains("PageUp") && !text.contains('\u{1b}') && text.len() < 500,
                "{text}"
            );
        }
    }
}
