//! Braces that bashkit would leave as they are, or expand in part, since they make many words. That
//! would be a wrong result, so they are looked for before a text runs. A long range is written anew as
//! several shorter ones (`{1..20000}` as `{{1..10000},{10001..20000}}`); what is too long even so is
//! refused.

use std::borrow::Cow;

use bashkit::{Builtin, BuiltinContext, ExecResult, async_trait};

use super::run::UNABLE;

/// How many elements of one range bashkit expands.
const LONGEST: u64 = 10_000;
/// How many words bashkit makes of one. It counts each of them once for each brace that it opens.
const MOST: u64 = 90_000;
/// How many bytes these have.
const MOST_BYTES: u64 = 8 << 20;
/// How long a word with braces may be, in bytes, and how many of them may stand in each other: each level
/// of a word is read once more for the one around it.
const LONGEST_WORD: usize = 64 << 10;
const DEEPEST: u32 = 50;

/// What has quoted text be run that is not looked at once more before it is.
const RUNS_TEXT: [&str; 2] = ["source", "alias"];

/// A text that is expanded as bash would expand it.
///
/// # Errors
/// The word that makes too many. Where it is not sure what is quoted, quotes count for nothing: such a
/// range is refused without need.
pub(super) fn expandable(text: &str) -> Result<Cow<'_, str>, &str> {
    if !text.contains('{') {
        return Ok(Cow::Borrowed(text));
    }
    let mut words = text.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
    let mut trusted = !words.any(|word| RUNS_TEXT.contains(&word));
    let mut written = String::new();
    let (mut from, mut at) = (0, 0);
    // Where a word begins, and what of it is not quoted.
    let (mut begin, mut bare) = (0, String::new());
    while let Some(letter) = text[at..].chars().next() {
        match if trusted { quoted(text, at) } else { Some(0) } {
            None => {
                trusted = false;
                continue;
            }
            Some(0) => {}
            Some(length) => {
                at += length;
                continue;
            }
        }
        let range = if letter == '{' { range_at(text, at) } else { None };
        match range {
            Some(range) if !trusted => return Err(range),
            Some(range) => {
                written.push_str(&text[from..at]);
                written.push_str(&split(&range[1..range.len() - 1]).ok_or(range)?);
                bare.push_str(range);
                at += range.len();
                from = at;
                continue;
            }
            None => {}
        }
        if " \t\n;&|()<>".contains(letter) {
            admit(&bare).ok_or(&text[begin..at])?;
            bare.clear();
            begin = at + letter.len_utf8();
        } else {
            bare.push(letter);
        }
        at += letter.len_utf8();
    }
    admit(&bare).ok_or(&text[begin..])?;
    if from == 0 {
        return Ok(Cow::Borrowed(text));
    }
    written.push_str(&text[from..]);
    Ok(Cow::Owned(written))
}

/// Why a text with such a word is not run.
pub(super) fn refusal(word: &str) -> String {
    let shown: String = word.chars().take(80).collect();
    format!("`{shown}` makes more words than memory expands, or may be quoted; use `seq`")
}

/// Has text that is about to be run be expandable: what `eval`, `trap`, `bash -c` and `sh -c` are given.
pub(super) fn look_into(program: &str, args: &mut Vec<String>) {
    let at = match program {
        "eval" if !args.is_empty() => {
            *args = vec![args.join(" ")];
            0
        }
        "trap" => usize::from(args.first().is_some_and(|arg| arg == "--")),
        "bash" | "sh" => {
            let flag = |arg: &String| arg.starts_with('-') && !arg.starts_with("--") && arg.contains('c');
            match args.iter().position(flag) {
                Some(at) => at + 1,
                None => return,
            }
        }
        _ => return,
    };
    let Some(text) = args.get_mut(at) else { return };
    match expandable(text) {
        Ok(Cow::Borrowed(_)) => {}
        Ok(Cow::Owned(other)) => *text = other,
        Err(word) => *text = format!("{REFUSE} '{}'", word.replace('\'', "'\\''")),
    }
}

/// The builtin that stands where a text would have been.
pub(super) const REFUSE: &str = "__shieling_refuse";

pub(super) struct Refuse;

#[async_trait]
impl Builtin for Refuse {
    async fn execute(&self, ctx: BuiltinContext<'_>) -> bashkit::Result<ExecResult> {
        let word = ctx.args.first().map_or("", String::as_str);
        Ok(ExecResult::err(format!("bash: {}\n", refusal(word)), UNABLE))
    }
}

/// Whether all words that one makes are made.
fn admit(word: &str) -> Option<()> {
    if !word.contains('{') {
        return Some(());
    }
    if word.len() > LONGEST_WORD || depth(word) > DEEPEST {
        return None;
    }
    let opened = word.matches('{').count() as u64;
    // A long range is opened once more.
    let long = word.match_indices('{').any(|(at, _)| range_at(word, at).is_some());
    let counted = count(word).saturating_mul(opened + u64::from(long));
    let bytes = counted.saturating_mul(word.len() as u64);
    (counted <= MOST && (counted < 1_000 || bytes <= MOST_BYTES)).then_some(())
}

/// How many words one makes at most.
fn count(word: &str) -> u64 {
    let mut all = 1_u64;
    let mut rest = word;
    while let Some(at) = rest.find('{') {
        let Some(length) = closing(&rest[at..]) else { break };
        let inner = &rest[at + 1..at + length];
        let parts = parts(inner);
        let group = match elements(inner) {
            Some(elements) => elements,
            None if parts.len() > 1 => parts
                .into_iter()
                .fold(0_u64, |sum, part| sum.saturating_add(count(part))),
            None => count(inner),
        };
        all = all.saturating_mul(group.max(1));
        rest = &rest[at + length + 1..];
    }
    all
}

/// How many braces are open at once at most.
fn depth(word: &str) -> u32 {
    let (mut open, mut most) = (0_u32, 0);
    for letter in word.bytes() {
        match letter {
            b'{' => open += 1,
            b'}' => open = open.saturating_sub(1),
            _ => {}
        }
        most = most.max(open);
    }
    most
}

/// How far it is from a brace to the one that closes it.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0_u32;
    for (at, letter) in text.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

/// What stands between the commas.
fn parts(inner: &str) -> Vec<&str> {
    let mut depth = 0_i32;
    let between = inner.split(|letter| {
        depth += i32::from(letter == '{') - i32::from(letter == '}');
        letter == ',' && depth == 0
    });
    between.collect()
}

/// A long range as several shorter ones, if it is not too long.
fn split(inner: &str) -> Option<String> {
    let mut bounds = inner.split("..");
    let (first, last) = (bounds.next()?, bounds.next()?);
    let padded = |text: &str| {
        let digits = text.trim_start_matches(['-', '+']);
        digits.len() > 1 && digits.starts_with('0')
    };
    let width = if padded(first) || padded(last) {
        first.len().max(last.len())
    } else {
        0
    };
    let (first, last): (i64, i64) = (first.parse().ok()?, last.parse().ok()?);
    let step = match bounds.next() {
        Some(step) => i64::try_from(step.parse::<i64>().ok()?.unsigned_abs().max(1)).ok()?,
        None => 1,
    };
    let count = elements(inner).filter(|count| *count <= MOST / 2)?;
    let direction = if first <= last { step } else { -step };
    let mut pieces = Vec::new();
    let mut done = 0;
    while done < count {
        let length = LONGEST.min(count - done);
        let element = |at: u64| {
            i64::try_from(at)
                .ok()
                .and_then(|at| first.checked_add(at.checked_mul(direction)?))
        };
        let (from, to) = (element(done)?, element(done + length - 1)?);
        // A range of one is none.
        pieces.push(match length {
            1 => format!("{from:0width$}"),
            _ => format!("{{{from:0width$}..{to:0width$}..{step}}}"),
        });
        done += length;
    }
    Some(format!("{{{}}}", pieces.join(",")))
}

/// How long what is quoted, or a comment, is that begins here; nothing if that cannot be told without
/// reading the text as bash does.
fn quoted(text: &str, at: usize) -> Option<usize> {
    let bytes = &text.as_bytes()[at..];
    let before = at.checked_sub(1).map(|before| text.as_bytes()[before]);
    let apart = before.is_none_or(|before| b" \t\n;&|(".contains(&before));
    match bytes {
        [b'\\', _, ..] => Some(2),
        [b'\'', ..] if before == Some(b'$') => None,
        [b'\'', rest @ ..] => Some(rest.iter().position(|&byte| byte == b'\'')? + 2),
        [b'"', rest @ ..] => {
            let mut inner = rest.iter().enumerate();
            while let Some((place, byte)) = inner.next() {
                match byte {
                    b'"' => return Some(place + 2),
                    b'\\' => drop(inner.next()),
                    b'$' | b'`' => return None,
                    _ => {}
                }
            }
            None
        }
        [b'`', ..] | [b'<', b'<', ..] => None,
        [b'#', rest @ ..] if apart => Some(rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len()) + 1),
        _ => Some(0),
    }
}

/// The range that begins here, if it is longer than what is expanded.
fn range_at(text: &str, at: usize) -> Option<&str> {
    let rest = text.as_bytes().get(at + 1..)?;
    // No further than a range goes: this is asked at each brace.
    let length = rest.iter().position(|byte| !b"0123456789+-.".contains(byte))?;
    let inner = text.get(at + 1..at + 1 + length).filter(|_| rest[length] == b'}')?;
    (elements(inner)? > LONGEST).then(|| &text[at..at + inner.len() + 2])
}

fn elements(inner: &str) -> Option<u64> {
    let mut parts = inner.split("..");
    let first: i64 = parts.next()?.parse().ok()?;
    let last: i64 = parts.next()?.parse().ok()?;
    let step = match parts.next() {
        Some(step) => step.parse::<i64>().ok()?.unsigned_abs().max(1),
        None => 1,
    };
    (parts.next().is_none()).then(|| (first.abs_diff(last) / step).saturating_add(1))
}

#[cfg(test)]
mod tests {
    use super::expandable;

    #[test]
    fn a_range_that_would_not_be_expanded_is_written_anew_or_refused() {
        let same = |text: &'static str| (text, Ok(text));
        let cases = [
            ("echo {1..20000}", Ok("echo {{1..10000..1},{10001..20000..1}}")),
            ("a{00001..10001}b", Ok("a{{00001..10000..1},10001}b")),
            (
                "f() { echo {20000..1}; }",
                Ok("f() { echo {{20000..10001..1},{10000..1..1}}; }"),
            ),
            ("echo {-9..29991..3}", Ok("echo {{-9..29988..3},29991}")),
            same("echo {1..10000} ${x} {a..z} {1..20000..2}"),
            ("echo {1..45001}", Err("{1..45001}")),
            (
                "echo {-9223372036854775808..9223372036854775807}",
                Err("{-9223372036854775808..9223372036854775807}"),
            ),
            ("echo x{1..400}{1..400}y z", Err("x{1..400}{1..400}y")),
            ("echo {1..400}'{'{1..400}", Err("{1..400}'{'{1..400}")),
            ("echo {{1..300},{1..300}}{1..300}", Err("{{1..300},{1..300}}{1..300}")),
            ("echo {1..300}{1..300}", Err("{1..300}{1..300}")),
            same("echo {1..200}{1..200}"),
            same("{ echo {1..3}{1..4}; }"),
            same("echo {1..99999"),
            same("echo '{1..20000}' \"{1..20000}\" \\{1..20000}"),
            ("# don't {1..20000}\necho {1..90001}", Err("{1..90001}")),
            ("echo 'it is' {1..90001} 'é'", Err("{1..90001}")),
            ("echo \"$(echo \"a\" {1..20000})\" \"b\"", Err("{1..20000}")),
            ("echo \"$x\" {1..20000} \"y\"", Err("{1..20000}")),
            ("cat <<E\nit's\nE\necho {1..20000} 'x'", Err("{1..20000}")),
            ("echo $'it\\'s' {1..20000} 'x'", Err("{1..20000}")),
            ("alias a='echo {1..20000}'", Err("{1..20000}")),
            ("echo a#'{1..20000}' it's {1..20000}", Err("{1..20000}")),
        ];
        for (text, expected) in cases {
            assert_eq!(expandable(text).as_deref(), expected.as_deref(), "{text}");
        }
    }

    #[test]
    fn braces_however_deep_and_long_are_looked_at_soon() {
        let deep = format!("echo {}{}", "{".repeat(1_000_000), "}".repeat(1_000_000));
        assert!(expandable(&deep).is_err());
        let wide = format!("echo {}", "{}".repeat(500_000));
        assert!(expandable(&wide).is_err());
        assert!(expandable("echo {{{{{{{{{{a,b}}}}}}}}}}").is_ok());
    }
}
