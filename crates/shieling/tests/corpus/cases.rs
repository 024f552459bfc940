//! The corpora: shell texts with what the contract says of them. Judges and runs none of them.
//!
//! Each file in `corpus/` is a list of shell texts with what the contract says of them:
//!
//! ```text
//! # a comment
//! @policy --allow ls --allow 'git log'    the policy of the cases below, as options of `shieling why`
//!                                         (a word without a dash in front is a preset: `@policy gaia`)
//! @class quoting                          a name for the report; `unparsable` cases are never wrapped
//! must_allow: git log -n 5 | ls           benign: the verdict is allow
//! must_deny: rm -rf x                     an attack: the verdict is ask or deny, never a silent allow
//! denied: rm -rf x                        an attack that the contract says is deny
//! must_allow$: ls\n\u{e9}                 the same with \n \r \t \0 \\ \' \" \xHH \u{HEX} decoded
//! must_allow<<END                         several lines, as they stand, up to a line that is END
//! ```

use std::collections::BTreeMap;
use std::fmt;

use shieling::policy::Policy;

/// The files of the corpora, by name.
const FILES: [(&str, &str); 7] = [
    ("readonly", include_str!("readonly.cases")),
    ("allow", include_str!("allow.cases")),
    ("deny", include_str!("deny.cases")),
    ("ignore", include_str!("ignore.cases")),
    ("screen", include_str!("screen.cases")),
    ("lines", include_str!("lines.cases")),
    ("reading", include_str!("reading.cases")),
];

/// What the contract says of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expected {
    Allowed,
    NeverSilent,
    Denied,
}

/// One text under one policy.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub(crate) file: &'static str,
    pub(crate) line: usize,
    pub(crate) class: String,
    pub(crate) policy: Vec<String>,
    pub(crate) expected: Expected,
    pub(crate) text: String,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            file,
            line,
            class,
            policy,
            text,
            ..
        } = self;
        write!(f, "{file}.cases:{line} [{class}] {} -- {text:?}", policy.join(" "))
    }
}

/// Reads a corpus file; anything that is not a case, a heading or a comment is an error.
pub(crate) fn parse(file: &'static str, content: &str) -> Result<Vec<Case>, String> {
    let mut cases = Vec::new();
    let mut policy = None;
    let mut class = String::from("unnamed");
    let mut lines = content.lines().enumerate().map(|(at, line)| (at + 1, line));
    while let Some((number, line)) = lines.next() {
        let place = |what: &str| format!("{file}.cases:{number}: {what}: {line}");
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(options) = line.strip_prefix("@policy") {
            policy = Some(options_of(options).map_err(|error| place(&error))?);
            continue;
        }
        if let Some(name) = line.strip_prefix("@class ") {
            name.trim().clone_into(&mut class);
            continue;
        }
        let (head, rest) = line
            .find([':', '<'])
            .map(|at| line.split_at(at))
            .ok_or_else(|| place("neither a case nor a heading"))?;
        let expected = match head.trim_end_matches('$') {
            "must_allow" => Expected::Allowed,
            "must_deny" => Expected::NeverSilent,
            "denied" => Expected::Denied,
            _ => return Err(place("unknown expectation")),
        };
        let mut text = if rest == "<<END" {
            let mut body = Vec::new();
            loop {
                match lines.next() {
                    Some((_, "END")) => break body.join("\n"),
                    Some((_, line)) => body.push(line),
                    None => return Err(place("no END after")),
                }
            }
        } else {
            rest.strip_prefix(": ")
                .ok_or_else(|| place("no `: ` after"))?
                .to_owned()
        };
        if head.ends_with('$') {
            text = unescape(&text).map_err(|error| place(&error))?;
        }
        cases.push(Case {
            file,
            line: number,
            class: class.clone(),
            policy: policy.clone().ok_or_else(|| place("a case before any @policy"))?,
            expected,
            text,
        });
    }
    Ok(cases)
}

/// Splits options as a shell would, for the little quoting that the files use.
fn options_of(text: &str) -> Result<Vec<String>, String> {
    let mut options: Vec<String> = Vec::new();
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    for character in text.trim().chars() {
        match (quote, character) {
            (Some(end), c) if c == end => quote = None,
            (None, '\'' | '"') => {
                quote = Some(character);
                word.get_or_insert_default();
            }
            (None, ' ') => options.extend(word.take()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    if quote.is_some() {
        return Err("an open quote".into());
    }
    options.extend(word);
    let is_preset = |word: &String| !word.starts_with('-');
    if !options.is_empty() && options.iter().all(is_preset) {
        options = options
            .into_iter()
            .flat_map(|preset| ["--policy".into(), preset])
            .collect();
    }
    Ok(options)
}

/// Decodes the escapes of `…$:` lines.
fn unescape(text: &str) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = text.chars();
    while let Some(character) = rest.next() {
        if character != '\\' {
            out.push(character);
            continue;
        }
        let escaped = rest.next().ok_or("a lone backslash at the end")?;
        let hex = |digits: String| {
            u32::from_str_radix(&digits, 16)
                .ok()
                .and_then(char::from_u32)
                .ok_or(format!("no such character: {digits}"))
        };
        out.push(match escaped {
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            '0' => '\0',
            '\\' | '\'' | '"' => escaped,
            'x' => hex(rest.by_ref().take(2).collect())?,
            'u' => {
                if rest.next() != Some('{') {
                    return Err("\\u without {".into());
                }
                hex(rest.by_ref().take_while(|c| *c != '}').collect())?
            }
            other => return Err(format!("unknown escape \\{other}")),
        });
    }
    Ok(out)
}

/// All cases of all files.
pub(crate) fn corpus() -> Vec<Case> {
    let read = |(file, content)| parse(file, content).unwrap_or_else(|error| panic!("{error}"));
    FILES.into_iter().flat_map(read).collect()
}

/// The policy of a case.
pub(crate) fn policy_of(policy_options: &[String]) -> Policy {
    let mut lists: BTreeMap<&str, Vec<&String>> = BTreeMap::new();
    let mut policy = Policy::open();
    let mut options = policy_options.iter();
    while let Some(option) = options.next() {
        match option.as_str() {
            "--readonly" => policy = policy.with_readonly(),
            "--policy" => {
                let name = options.next().expect("a preset's name follows");
                policy = policy.with_preset(name).expect("the preset exists");
            }
            list => lists
                .entry(list)
                .or_default()
                .push(options.next().expect("a value follows")),
        }
    }
    for (list, values) in lists {
        policy = match list {
            "--allow" => policy.with_allow(&values).expect("the entries name commands"),
            "--deny" => policy.with_deny(&values).expect("the entries name commands"),
            "--ignore" => policy.with_ignore(&values).expect("the patterns can be read"),
            other => panic!("`{other}` is no option of a policy"),
        };
    }
    policy
}
