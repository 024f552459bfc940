//! Describes the difference between a text and a similar part of a file in a few words.

use std::borrow::Cow;

/// Returns other readings of a text: with its escapes decoded, without the line numbers that reads show, and both.
pub(super) fn variants(sought: &str) -> Vec<Cow<'_, str>> {
    let mut variants = vec![Cow::Borrowed(sought)];
    let bare = unnumbered(sought);
    if let Some(plain) = unescaped(sought) {
        variants.push(Cow::Owned(plain));
    }
    if let Some(bare) = bare {
        variants.extend(unescaped(&bare).map(Cow::Owned));
        variants.push(Cow::Owned(bare));
    }
    variants
}

/// Returns the text without the number and the tab before each line, if every line has them.
fn unnumbered(text: &str) -> Option<String> {
    let bare = |line: &str| -> Option<String> {
        let rest = line.trim_start_matches(' ');
        let after = rest.trim_start_matches(|c: char| c.is_ascii_digit());
        let after_number = if after.len() < rest.len() { after } else { return None };
        let rest = ["\t", "→", "|", ":"]
            .iter()
            .find_map(|mark| after_number.strip_prefix(mark))?;
        Some(rest.to_owned())
    };
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        out.push_str(&bare(line)?);
    }
    (!out.is_empty()).then_some(out)
}

/// Returns the text with `\n`, `\t`, `\"` and similar escapes decoded, if it contains any.
fn unescaped(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    let mut any = false;
    while let Some(c) = chars.next() {
        let plain = match (c, chars.peek()) {
            ('\\', Some('n')) => '\n',
            ('\\', Some('t')) => '\t',
            ('\\', Some('r')) => '\r',
            ('\\', Some(quote @ ('"' | '\'' | '`' | '\\'))) => *quote,
            _ => {
                out.push(c);
                continue;
            }
        };
        chars.next();
        any = true;
        out.push(plain);
    }
    any.then_some(out)
}

/// Transforms a text so that a kind of difference disappears.
type View = fn(&str) -> String;

const VIEWS: &[(&str, View)] = &[
    (
        "the line ends differ: \\r is at the end of lines on one side only",
        |text| text.replace('\r', ""),
    ),
    ("only blanks at the ends of lines differ", |text| {
        each_line(text, str::trim_end)
    }),
    ("only the indentation differs", |text| each_line(text, str::trim_start)),
    ("only blanks and line ends differ", |text| {
        text.chars().filter(|c| !c.is_whitespace()).collect()
    }),
    ("only the quotes differ", |text| text.chars().map(quote).collect()),
    ("only upper and lower case differ", str::to_lowercase),
];

fn each_line(text: &str, trim: fn(&str) -> &str) -> String {
    text.split('\n').map(trim).collect::<Vec<_>>().join("\n")
}

fn quote(c: char) -> char {
    match c {
        '\'' | '`' | '´' | '‘' | '’' | '‚' | '‛' | '“' | '”' | '„' | '«' | '»' => '"',
        c => c,
    }
}

/// Describes how a part of a file differs from a text that it contains except for blanks, quotes, case, escapes or
/// line numbers.
pub(super) fn said(window: &str, sought: &str) -> Option<String> {
    // Nothing differs: a hunk of a patch may fail because of what is around it, such as a missing last line end.
    if window.contains(sought) {
        return None;
    }
    let within = |view: View, text: &str| view(window).contains(&view(text));
    if let Some(bare) = unnumbered(sought)
        && (window.contains(&bare) || said_simply(window, &bare).is_some())
    {
        return Some("the line numbers that a read shows are no part of the file".to_owned());
    }
    if let Some(plain) = unescaped(sought)
        && (window.contains(&plain) || said_simply(window, &plain).is_some())
        && said_simply(window, sought).is_none()
    {
        return Some("escapes such as \\n or \\\" are written out: give the characters themselves".to_owned());
    }
    if let Some(said) = said_simply(window, sought) {
        let (tabs, spaces) = (indented_with(window, '\t'), indented_with(sought, ' '));
        let other = indented_with(window, ' ') && indented_with(sought, '\t');
        return Some(match said {
            "only the indentation differs" if tabs && spaces => format!("{said}: the file has tabs"),
            "only the indentation differs" if other => format!("{said}: the file has spaces"),
            said => said.to_owned(),
        });
    }
    within(
        |text| {
            text.chars()
                .filter(|c| !c.is_whitespace())
                .map(quote)
                .collect::<String>()
                .to_lowercase()
        },
        sought,
    )
    .then(|| "several of blanks, quotes and case differ".to_owned())
}

/// Returns the first transformation under which the text is contained.
fn said_simply(window: &str, sought: &str) -> Option<&'static str> {
    VIEWS
        .iter()
        .find(|(_, view)| view(window).contains(&view(sought)))
        .map(|(said, _)| *said)
}

fn indented_with(text: &str, blank: char) -> bool {
    text.split('\n').any(|line| line.starts_with(blank))
}

/// Describes which lines of a part differ from those of a text.
pub(super) fn lines(window: &str, sought: &[&str]) -> Option<String> {
    let bare = |line: &str| line.trim_end_matches(['\n', '\r']).to_owned();
    let mut there = window.split_inclusive('\n').map(bare);
    let differing: Vec<usize> = (1..)
        .zip(sought)
        .filter(|(_, line)| there.next() != Some(bare(line)))
        .map(|(number, _)| number)
        .collect();
    let all = sought.len();
    match differing.as_slice() {
        [] => None,
        _ if all == 1 => None,
        [one] => Some(format!("line {one} of its {all} lines differs")),
        several => Some(format!(
            "{} of its {all} lines differ, the first is line {}",
            several.len(),
            several[0]
        )),
    }
}
