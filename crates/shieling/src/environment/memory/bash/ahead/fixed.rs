//! Names that are readonly: bashkit passes over an assignment to one in arithmetic, in `for`, `select`,
//! `mapfile` and `getopts`, and goes on with success, where bash fails.

use std::collections::HashSet;

use bashkit::parser::WordPart;

use super::{Refused, Seen, Walk};

/// What is readonly in every shell.
const ALWAYS: [&str; 6] = ["BASHOPTS", "BASH_VERSINFO", "EUID", "PPID", "SHELLOPTS", "UID"];
/// The attribute of a variable that is readonly, as bashkit keeps it.
const READONLY: u8 = 1;

/// What a text has made readonly.
#[derive(Debug, Default, Clone)]
pub(super) struct Fixed {
    names: HashSet<String>,
    /// In the order in which they became so, and whether a function's end undoes it.
    order: Vec<(String, bool)>,
}

impl Fixed {
    pub(super) fn add(&mut self, name: &str, local: bool) {
        if self.names.insert(name.to_owned()) {
            self.order.push((name.to_owned(), local));
        }
    }

    pub(super) fn mark(&self) -> usize {
        self.order.len()
    }

    /// Forgets what has become readonly since.
    pub(super) fn back_to(&mut self, mark: usize) {
        for (name, _) in self.order.drain(mark.min(self.order.len())..) {
            self.names.remove(&name);
        }
    }

    /// The same for what is a function's own.
    pub(super) fn leave_function(&mut self, mark: usize) {
        let since = self.order.split_off(mark.min(self.order.len()));
        for (name, local) in since {
            if local {
                self.names.remove(&name);
            } else {
                self.order.push((name, false));
            }
        }
    }
}

impl Walk<'_> {
    /// A name that is assigned, by what.
    pub(super) fn assigned(&mut self, name: &str, by: &str) -> Seen {
        let earlier = || {
            let state = self.place.state();
            let attributes = state.and_then(|state| state.var_attrs.get(name));
            attributes.is_some_and(|attributes| attributes & READONLY != 0)
        };
        if ALWAYS.contains(&name) || self.fixed.names.contains(name) || earlier() {
            return Err(Refused(format!(
                "`{name}` is readonly, and {by} would pass over that, where bash fails: use another name"
            )));
        }
        Ok(())
    }

    pub(super) fn arithmetic(&mut self, text: &str) -> Seen {
        assigned(text)
            .into_iter()
            .try_for_each(|name| self.assigned(name, "arithmetic"))
    }

    pub(super) fn assigned_in(&mut self, part: &WordPart) -> Seen {
        match part {
            WordPart::ArithmeticExpansion(text) | WordPart::ArrayAccess { index: text, .. } => self.arithmetic(text),
            WordPart::Substring { offset, length, .. } => {
                self.arithmetic(offset)?;
                self.arithmetic(length.as_deref().unwrap_or_default())
            }
            _ => Ok(()),
        }
    }

    /// What a declaration makes readonly.
    pub(super) fn declared(&mut self, name: &str, args: &[String]) {
        let flag = |letter: char| {
            let mut options = args.iter().take_while(|arg| arg.starts_with('-'));
            options.any(|arg| arg.contains(letter))
        };
        if flag('f') || flag('p') || name != "readonly" && !flag('r') {
            return;
        }
        let local = name != "readonly" && !flag('g') && self.in_function();
        for arg in args.iter().filter(|arg| !arg.starts_with(['-', '+'])) {
            let end = arg.find(['=', '+', '[']).unwrap_or(arg.len());
            if is_name(&arg[..end]) {
                self.fixed.add(&arg[..end], local);
            }
        }
    }
}

fn is_name(text: &str) -> bool {
    let of_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    text.chars().all(of_name) && !text.is_empty() && !text.starts_with(|first: char| first.is_ascii_digit())
}

/// The names that arithmetic assigns to.
fn assigned(text: &str) -> Vec<&str> {
    let bytes = text.as_bytes();
    let of_name = |at: usize| {
        bytes
            .get(at)
            .is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
    };
    let mut found = Vec::new();
    // The name before each subscript that is open.
    let mut open = Vec::new();
    let mut step = false;
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let start = at;
        at += 1;
        if of_name(start) {
            while of_name(at) || !byte.is_ascii_alphabetic() && bytes.get(at) == Some(&b'#') {
                at += 1;
            }
            let name = &text[start..at];
            let expanded = start > 0 && matches!(bytes[start - 1], b'$' | b'{' | b'#' | b'!');
            if byte.is_ascii_digit() || expanded && !text[..start].ends_with(['!', '#']) {
                step = false;
                continue;
            }
            if step || assigns(&text[at..]) {
                found.push(name);
            }
            let subscript = text[at..].trim_start().starts_with('[');
            if subscript {
                open.push(name);
                at += text[at..].find('[').map_or(0, |bracket| bracket + 1);
            }
            step = false;
        } else if text[start..].starts_with("++") || text[start..].starts_with("--") {
            at += 1;
            step = true;
        } else if byte == b']' {
            step = false;
            if let Some(name) = open.pop().filter(|_| assigns(&text[at..])) {
                found.push(name);
            }
        } else if !byte.is_ascii_whitespace() {
            step = false;
        }
        while !text.is_char_boundary(at) {
            at += 1;
        }
    }
    found
}

/// Whether what is behind a name assigns to it.
fn assigns(rest: &str) -> bool {
    let rest = rest.trim_start();
    let operators = [
        "++", "--", "<<=", ">>=", "**=", "+=", "-=", "*=", "/=", "%=", "&=", "^=", "|=",
    ];
    operators.iter().any(|operator| rest.starts_with(operator)) || rest.starts_with('=') && !rest.starts_with("==")
}

#[cfg(test)]
mod tests {
    use super::assigned;

    #[test]
    fn arithmetic_assigns_to_what_is_before_an_assignment_or_a_step() {
        let cases: &[(&str, &[&str])] = &[
            ("a = 1", &["a"]),
            ("a == 1 && b != 2 || c <= d >= e", &[]),
            ("a += b, c <<= 2, d ^= 1", &["a", "c", "d"]),
            ("a++ + ++b - --c", &["a", "b", "c"]),
            ("r[i]=2", &["r"]),
            ("r[s[0]++]=r[i=1]", &["s", "r", "i"]),
            ("x ? y = 1 : z", &["y"]),
            ("0x1f + 16#ff + $a + ${b}", &[]),
            ("$((a=1))", &["a"]),
            ("é a=1", &["a"]),
            ("a=", &["a"]),
            ("!a = 1", &["a"]),
            ("", &[]),
        ];
        for (text, expected) in cases {
            assert_eq!(assigned(text), *expected, "{text}");
        }
    }
}
