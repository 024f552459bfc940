//! Languages of programs' own, by the functions that open and start something.

use crate::reader::{Reader, Run};
use crate::reading::{Action, Doubt, Via};
use crate::word::{Fields, Word};

/// What functions of a program's own language open and start.
pub(super) fn language(word: &Word, keys: bool, run: &Run, reader: &mut Reader<'_>) {
    let Some(program) = run.program else { return };
    let by = Some(run.index);
    let Some(text) = word.known() else {
        // Modules are named at the beginning alone.
        let of_modules = program
            .opens
            .iter()
            .all(|name| matches!(name.as_str(), "import" | "include"));
        let begins_otherwise = word
            .prefix()
            .trim_start()
            .starts_with(['.', '[', '{', '(', '$', '@', '"']);
        if !program.opens.is_empty() && !(of_modules && begins_otherwise) {
            // Whatever is put in could be one of them.
            let path = Word::unknown(Fields::Any, word.written.clone(), word.span);
            reader.effect(Action::Reads(path), word.shown(), word.span, by, Via::Operand);
        }
        return;
    };
    let called = |names: &[String]| {
        let lower = text.to_ascii_lowercase();
        let part = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
        let mut found = Vec::new();
        for name in names {
            for (at, _) in lower.match_indices(name.as_str()) {
                let end = at + name.len();
                let bytes = lower.as_bytes();
                let before = at.checked_sub(1).and_then(|before| bytes.get(before));
                let inner = bytes[at].is_ascii_alphanumeric();
                // A key of that name.
                let key = keys && (matches!(before, Some(b'.' | b'$' | b'"' | b'\'')) || bytes.get(end) == Some(&b':'));
                let within = inner && part(before) || bytes[end - 1].is_ascii_alphanumeric() && part(bytes.get(end));
                if !within && !key {
                    found.push(end);
                }
            }
        }
        found
    };
    for end in called(&program.opens) {
        let path = match literal(&text[end..]).or_else(|| setting_of_filter(&text[..end], &text[end..])) {
            Some(path) => Word {
                atoms: crate::word::found(path).into(),
                ..word.clone()
            },
            None => Word::unknown(Fields::Any, word.written.clone(), word.span),
        };
        reader.effect(Action::Reads(path), word.shown(), word.span, by, Via::Operand);
    }
    if let Some(end) = called(&program.loads).first() {
        let because = format!("`{}` loads or starts what is not in the text", text[..*end].trim());
        reader.doubt(Doubt::Launch, word.shown(), because, word.span, by);
    }
}

/// What stands behind `name=` without quotes, up to the next setting or filter.
fn setting_of_filter<'a>(name: &str, text: &'a str) -> Option<&'a str> {
    let end = text.find([':', ',', ';', '[', ']']).unwrap_or(text.len());
    let value = &text[..end];
    (name.ends_with('=') && !value.is_empty() && !value.contains(['\\', '$', '\'', '"'])).then_some(value)
}

/// The only argument, in quotes, that stands at the beginning of a text.
fn literal(text: &str) -> Option<&str> {
    let text = text.trim_start_matches(|character: char| character.is_whitespace() || character == '(');
    let quote = text
        .chars()
        .next()
        .filter(|character| matches!(character, '"' | '\''))?;
    let (path, rest) = text[1..].split_once(quote)?;
    let rest = rest.trim_start();
    // jq's `import "a" as $a {search: "directory"}`, in which comments may stand.
    let elsewhere = rest.split(';').next().is_some_and(|end| end.contains('{')) || rest.contains('#');
    let ends =
        rest.is_empty() || rest.starts_with([')', ';', ',', '|', 'a', 'A']) && !rest.starts_with("||") && !elsewhere;
    (ends && !path.contains(['\\', '$', '#'])).then_some(path)
}
