//! What a tool's file says, judged: each new value must be one that is known to run nothing.

use std::collections::BTreeSet;

use crate::git_keys::is_ordinary;
use crate::outline::{self, Leaf};
use crate::text::{is_plain_name, is_version, shown};

/// How the content of a file is judged. Keys are names separated by `/`, in which `*` stands for any characters, and `+` for a plain name; `**` at the
/// end for one or more further names. After `=` stands what the value has to be: `word`, `version`, `address`, `inside` (a
/// path in the workspace), `flags` (of rustc), `arguments` (of cargo), `literal` (a text that is no template), or this
/// text.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Check {
    /// A JSON file whose values have these keys.
    Json(&'static [&'static str]),
    /// A TOML file whose values have these keys.
    Toml(&'static [&'static str]),
    /// A file of lines of keys, this separator and values, with these keys.
    Lines(char, &'static [&'static str]),
    /// A YAML file in block style whose outermost keys are these, whatever lies below them.
    Blocks(&'static [&'static str]),
    /// A JSON file of tasks, none of which runs when the folder is opened.
    Tasks,
    /// A text that has none of these in it, in any case; they are in lower case.
    Lacks(&'static [&'static str]),
    /// An XML file with one element and nothing in it.
    EmptyXml,
    /// Lines of a tool's name and versions.
    ToolVersions,
    /// Lines of versions.
    Versions,
    /// A toolchain of rustup's: a name, or TOML without `path`.
    Toolchain,
    /// A toolchain of elan's: a name, of the project that makes Lean.
    LeanToolchain,
    /// A path that leads into the workspace.
    Pointer,
}

/// What is wrong with a content.
#[derive(Debug)]
pub(crate) struct Wrong {
    pub(crate) why: String,
    /// Whether it can be read: it may be half written otherwise.
    pub(crate) is_readable: bool,
    /// The content without it, if it can be taken out.
    pub(crate) rest: Option<Vec<u8>>,
}

impl Wrong {
    fn unreadable() -> Self {
        Self {
            why: "what it says cannot be read".to_owned(),
            is_readable: false,
            rest: None,
        }
    }
}

impl From<String> for Wrong {
    fn from(why: String) -> Self {
        Self {
            why,
            is_readable: true,
            rest: None,
        }
    }
}

/// Where a path leads, which a file names.
pub(crate) type Leads<'a> = &'a dyn Fn(&str) -> bool;

impl Check {
    /// Whether it is judged by where all of it leads.
    pub(crate) fn is_pointer(self) -> bool {
        matches!(self, Self::Pointer)
    }

    /// What is wrong with a content; nothing if it passes. What was there before passes.
    pub(crate) fn holds(self, before: Option<&[u8]>, after: &[u8], leads_inside: Leads<'_>) -> Option<Wrong> {
        if before == Some(after) {
            return None;
        }
        let Some(text) = outline::plain_text(after) else {
            return Some(Wrong::unreadable());
        };
        match self {
            Self::Json(keys) => judge(outline::of_json, keys, before, after, leads_inside),
            Self::Toml(keys) => judge(outline::of_toml, keys, before, after, leads_inside),
            Self::Lines(separator, keys) => {
                let read = |text: &[u8]| outline::of_lines(text, separator);
                let mut wrong = judge(read, keys, before, after, leads_inside)?;
                let was = before.unwrap_or_default();
                let known: BTreeSet<Leaf> = read(was).unwrap_or_default().into_iter().collect();
                let is_held = |leaf: &Leaf| !is_fine(leaf, &known, keys, leads_inside);
                wrong.rest = outline::lines_without(was, after, separator, &is_held);
                Some(wrong)
            }
            Self::Blocks(keys) => judge(outline::of_blocks, keys, before, after, leads_inside),
            Self::Tasks => {
                let Some(leaves) = outline::of_json(after) else {
                    return Some(Wrong::unreadable());
                };
                let opens = |leaf: &&Leaf| leaf.keys.last().is_some_and(|key| key.eq_ignore_ascii_case("runOn"));
                leaves
                    .iter()
                    .find(opens)
                    .filter(|leaf| leaf.value != "default")
                    .map(|_| "a task of it runs when the folder is opened".to_owned().into())
            }
            Self::Lacks(words) => {
                // In another encoding it could say something else.
                let text = text.to_ascii_lowercase().replacen("encoding=\"utf-8\"", "", 1);
                let word = words.iter().find(|word| text.contains(**word))?;
                Some(format!("`{word}` stands in it").into())
            }
            Self::EmptyXml => (!is_empty_xml(text)).then(|| "something stands in it".to_owned().into()),
            Self::ToolVersions => held_line(text, |line| {
                let mut words = line.split_whitespace();
                words.next().is_some_and(is_plain_name) && words.all(is_version)
            }),
            Self::Versions => held_line(text, |line| match line.split_once('=') {
                Some((name, version)) if is_plain_name(name) => is_version(version),
                _ => is_version(line),
            }),
            Self::Toolchain => {
                if !text.contains('[') && !text.contains('=') {
                    return held_line(text, is_plain_name);
                }
                let keys: &[&str] = &[
                    "toolchain/channel=word",
                    "toolchain/components",
                    "toolchain/targets",
                    "toolchain/profile",
                ];
                judge(outline::of_toml, keys, before, after, leads_inside)
            }
            Self::LeanToolchain => held_line(text, |line| {
                let (origin, channel) = line.rsplit_once(':').unwrap_or(("leanprover/lean4", line));
                ["leanprover/lean4", "leanprover/lean4-nightly"].contains(&origin) && is_plain_name(channel)
            }),
            Self::Pointer => {
                let target = text.trim_end();
                (!leads_inside(target)).then(|| Wrong {
                    why: format!("it leads to `{}`", shown(target.as_bytes())),
                    is_readable: !target.is_empty(),
                    rest: None,
                })
            }
        }
    }
}

fn judge(
    read: impl Fn(&[u8]) -> Option<Vec<Leaf>>,
    keys: &[&str],
    before: Option<&[u8]>,
    after: &[u8],
    leads_inside: Leads<'_>,
) -> Option<Wrong> {
    let Some(leaves) = read(after) else {
        return Some(Wrong::unreadable());
    };
    let before: BTreeSet<Leaf> = before.and_then(read).unwrap_or_default().into_iter().collect();
    let held = leaves.iter().find(|leaf| !is_fine(leaf, &before, keys, leads_inside))?;
    if held.keys.is_empty() {
        return Some("it is a value alone, and not an object with settings".to_owned().into());
    }
    let held = shown(held.keys.join("/").as_bytes());
    Some(format!("`{held}` is not known to be harmless").into())
}

fn is_fine(leaf: &Leaf, before: &BTreeSet<Leaf>, keys: &[&str], leads_inside: Leads<'_>) -> bool {
    // An empty file.
    leaf.keys.is_empty() && leaf.value == "{}"
        || before.contains(leaf)
        || keys.iter().any(|key| allows(key, leaf, leads_inside))
}

fn allows(key: &str, leaf: &Leaf, leads_inside: Leads<'_>) -> bool {
    let (key, value) = key
        .split_once('=')
        .map_or((key, None), |(key, value)| (key, Some(value)));
    let mut names = leaf.keys.iter();
    for part in key.split('/') {
        if part == "**" {
            if names.next().is_none() {
                return false;
            }
            names = [].iter();
            break;
        }
        let is_name = |name: &String| {
            if part == "+" {
                is_plain_name(name)
            } else {
                fits(part, name)
            }
        };
        if !names.next().is_some_and(is_name) {
            return false;
        }
    }
    if names.next().is_some() {
        return false;
    }
    let is = leaf.value.as_str();
    match value {
        None => true,
        Some("word") => is_plain_name(is),
        Some("version") => is_version(is),
        Some("address") => is_ordinary(is) && !is.contains(|char: char| char.is_whitespace() || char == '$'),
        Some("inside") => leads_inside(is),
        // Of cargo, which takes settings from them too.
        Some("arguments") => !is
            .split_whitespace()
            .any(|word| word.starts_with("--config") || word.starts_with("-Z")),
        Some("literal") => !["{{", "{%", "{#"].iter().any(|mark| is.contains(mark)),
        Some("flags") => is.split_whitespace().all(is_harmless_flag),
        Some(text) => is == text,
    }
}

/// Whether a name fits a pattern, in which each `*` stands for any characters.
pub(crate) fn fits(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| name.strip_prefix(first)) else {
        return false;
    };
    let Some(last) = parts.next_back() else {
        return rest.is_empty();
    };
    for part in parts {
        match rest.split_once(part) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// Whether a text is one XML element without anything in it, with plain attributes.
fn is_empty_xml(text: &str) -> bool {
    let plain = |char: char| char.is_ascii_alphanumeric() || char.is_ascii_whitespace() || "=\"'.-_".contains(char);
    let text = text.trim();
    let text = match text.strip_prefix("<?xml ").map(|rest| rest.split_once("?>")) {
        Some(Some((declared, rest))) if declared.chars().all(plain) => rest.trim(),
        Some(_) => return false,
        None => text,
    };
    let Some(inside) = text.strip_prefix('<').and_then(|text| text.strip_suffix('>')) else {
        return false;
    };
    let tag = match inside.strip_suffix('/') {
        Some(tag) => tag,
        None => {
            let Some((tag, end)) = inside.split_once('>') else {
                return false;
            };
            let name = tag.split_ascii_whitespace().next().unwrap_or_default();
            let Some(end) = end.trim_start().strip_prefix("</") else {
                return false;
            };
            if name != end.trim_end() {
                return false;
            }
            tag
        }
    };
    tag.starts_with(|char: char| char.is_ascii_alphabetic()) && tag.chars().all(plain)
}

/// The first line that is neither empty, a comment, nor fine.
fn held_line(text: &str, is_fine: impl Fn(&str) -> bool) -> Option<Wrong> {
    let mut lines = text
        .lines()
        .map(|line| line.split('#').next().unwrap_or_default().trim());
    let held = lines.find(|line| !line.is_empty() && !is_fine(line))?;
    Some(format!("`{}` is no plain version", shown(held.as_bytes())).into())
}

/// Whether an option of rustc's runs nothing and writes nowhere.
fn is_harmless_flag(word: &str) -> bool {
    const CODEGEN: &[&str] = &[
        "target-cpu=",
        "target-feature=",
        "opt-level=",
        "debuginfo=",
        "codegen-units=",
        "panic=",
        "relocation-model=",
        "strip=",
        "lto=",
        "force-frame-pointers",
        "prefer-dynamic",
        "overflow-checks",
        "debug-assertions",
        "link-arg=-fuse-ld=lld",
        "link-arg=-fuse-ld=mold",
        "link-arg=-fuse-ld=gold",
        "link-arg=-fuse-ld=bfd",
    ];
    const OPTIONS: &[&str] = &["-C", "-D", "-W", "-A", "-F", "--cfg"];
    let is_lint = |word: &str| {
        word.chars()
            .all(|char| char.is_ascii_alphanumeric() || "_-:".contains(char))
    };
    let is_codegen = |word: &str| {
        let exact = word.starts_with("link-arg=");
        !word.contains('/')
            && CODEGEN
                .iter()
                .any(|known| if exact { word == *known } else { word.starts_with(known) })
    };
    OPTIONS.contains(&word)
        || is_codegen(word.strip_prefix("-C").unwrap_or(word))
        || ["-D", "-W", "-A", "-F"]
            .iter()
            .any(|lead| word.strip_prefix(lead).is_some_and(is_lint))
        || word.strip_prefix("--cfg=").is_some_and(is_lint)
        || !word.starts_with('-') && is_lint(word)
}
