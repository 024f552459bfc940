//! A command's arguments, told apart into options and operands as the program itself would.

use super::table::{Choice, Program, Value};
use crate::word::{Fields, Known, Word};

/// An option as it was given.
#[derive(Debug, Clone)]
pub(crate) struct Given {
    pub(crate) choice: &'static Choice,
    pub(crate) value: Option<Word>,
    /// The word that it stands in.
    pub(crate) word: Word,
}

/// The arguments of one command.
#[derive(Debug, Clone, Default)]
pub(crate) struct Arguments {
    pub(crate) options: Vec<Given>,
    pub(crate) operands: Vec<Word>,
    /// Options that the program is not known to have.
    pub(crate) strange: Vec<Word>,
    /// Operands that could turn out to be options.
    pub(crate) doubtful: Vec<Word>,
    /// Values of options that could turn out to be several words, or none.
    pub(crate) split: Vec<Word>,
    /// Words that begin with a plus and are neither options nor operands.
    pub(crate) plus: Vec<Word>,
    /// Words before `--`, which separates revisions from paths in git.
    pub(crate) before_dashes: Option<usize>,
}

impl Given {
    /// Whether it is one of these options, however it is spelled.
    pub(crate) fn is_one_of(&self, spellings: &[impl AsRef<str>]) -> bool {
        let mut own = self.choice.spellings.iter();
        own.any(|own| spellings.iter().any(|wanted| wanted.as_ref() == own))
    }
}

impl Arguments {
    /// Whether one of these options is given, however it is spelled.
    pub(crate) fn has(&self, spellings: &[impl AsRef<str>]) -> bool {
        self.options.iter().any(|given| given.is_one_of(spellings))
    }
}

/// The toolchains of rustup that are there as a rule. Any other may be installed first, or be a directory.
const CHANNELS: [&str; 3] = ["stable", "beta", "nightly"];

/// Reads the arguments of a program, or of a subcommand.
pub(crate) fn parse(program: &'static Program, args: &[Word]) -> Arguments {
    read(program, args, program.options_first || !program.subs.is_empty())
}

/// The same, where the first operand ends the options.
pub(crate) fn parse_leading(program: &'static Program, args: &[Word]) -> Arguments {
    read(program, args, true)
}

fn read(program: &'static Program, args: &[Word], first_operand_ends: bool) -> Arguments {
    let mut found = Arguments::default();
    if program.options_none {
        found.operands = args.to_vec();
        return found;
    }
    let mut at = 0;
    while let Some(word) = args.get(at) {
        at += 1;
        let text = word.known();
        if text.as_deref() == Some("--") {
            found.before_dashes = Some(found.operands.len());
            found.operands.extend(args[at..].iter().cloned());
            break;
        }
        // Any letters may be options there.
        if program.bare && at == 1 && text.is_none() && !word.prefix().starts_with('-') {
            found.strange.push(word.clone());
            continue;
        }
        let bare = program.bare
            && at == 1
            && text
                .as_deref()
                .is_some_and(|text| !text.starts_with(['-', '@']) && !text.is_empty());
        let dashed = match word.is_dashed() {
            Known::Yes => text.as_deref() != Some("-"),
            Known::Maybe => {
                found.doubtful.push(word.clone());
                // Whatever its end brings, it begins as an option.
                word.prefix().len() > 1 && word.prefix().starts_with('-')
            }
            Known::No => program.plus && word.prefix().starts_with('+') || bare,
        };
        if !dashed && program.responses && word.may_begin_with('@') {
            // What such a file holds are arguments that nobody sees here.
            if word.prefix().starts_with('@') {
                found.strange.push(word.clone());
                continue;
            }
            found.doubtful.push(word.clone());
        }
        if !dashed {
            if first_operand_ends {
                found.operands.extend(args[at - 1..].iter().cloned());
                break;
            }
            found.operands.push(word.clone());
            continue;
        }
        let mut rest = None;
        let mut next = || {
            let value = args.get(at).cloned();
            at += 1;
            // The words behind its first one would be options or operands.
            rest = value
                .as_ref()
                .filter(|value| {
                    value.may_be_several() || value.fields != Fields::One && value.is_dashed() == Known::Maybe
                })
                .cloned();
            value
        };
        if word.prefix().starts_with("--") || program.single_dash {
            long(program, word, &mut next, &mut found);
        } else if word.prefix().starts_with('+') && program.plus {
            // An option in its own right, and harmless; otherwise its spellings are listed.
            if program.toolchain && word.known().is_none_or(|text| !CHANNELS.contains(&&text[1..])) {
                found.strange.push(word.clone());
            } else if let Some(choice) = exactly(program, word.prefix()) {
                let value = matches!(choice.value, Value::Required(_)).then(&mut next).flatten();
                found.options.push(Given {
                    choice,
                    value,
                    word: word.clone(),
                });
            } else {
                found.plus.push(word.clone());
            }
        } else {
            cluster(program, word, usize::from(!bare), &mut next, &mut found);
        }
        found.split.extend(rest);
        if word.may_be_several() {
            found.split.push(word.clone());
        }
    }
    found
}

fn exactly(program: &'static Program, spelling: &str) -> Option<&'static Choice> {
    program
        .options
        .iter()
        .find(|choice| choice.spellings.iter().any(|known| known == spelling))
}

/// The option that this spelling means, abbreviations included.
fn by_name(program: &'static Program, spelling: &str) -> Option<&'static Choice> {
    if let Some(choice) = exactly(program, spelling) {
        return Some(choice);
    }
    if program.exact || spelling.len() < 3 {
        return None;
    }
    let mut candidates = program
        .options
        .iter()
        .filter(|choice| choice.spellings.iter().any(|known| known.starts_with(spelling)));
    let first = candidates.next()?;
    // Of several, none is meant by those who abbreviate; but never take the harmless one.
    candidates.next().is_none().then_some(first)
}

/// `--name`, `--name=value`, `--name value`, and with one dash where the program spells so.
fn long(program: &'static Program, word: &Word, next: &mut dyn FnMut() -> Option<Word>, found: &mut Arguments) {
    let prefix = word.prefix();
    let (name, attached) = match prefix.find('=') {
        Some(at) => (&prefix[..at], Some(word.after(at + 1))),
        None => match word.known() {
            Some(_) => (prefix, None),
            // A name that is not fully known.
            None => return found.strange.push(word.clone()),
        },
    };
    // Some single-dash programs take a numeric option, some options contain the `=` themselves.
    let choice = by_name(program, name).or_else(|| {
        (program.single_dash && name.starts_with("--"))
            .then(|| by_name(program, &name[1..]))
            .flatten()
    });
    let Some(choice) = choice else {
        let joined = program
            .joined
            .iter()
            .find(|spelling| prefix.starts_with(spelling.as_str()));
        if let Some((spelling, choice)) = joined.and_then(|spelling| Some((spelling, exactly(program, spelling)?))) {
            found.options.push(Given {
                choice,
                value: Some(word.after(spelling.len())),
                word: word.clone(),
            });
            return;
        }
        if !is_number(program, prefix, word) {
            found.strange.push(word.clone());
        }
        return;
    };
    let value = match (choice.value, attached) {
        (Value::None, None) | (Value::Optional(_), None) => None,
        (Value::None | Value::Required(_) | Value::Optional(_), Some(value)) => Some(value),
        // Without the value that it wants the program ends with an error, or uses its default.
        (Value::Required(_), None) => next(),
    };
    found.options.push(Given {
        choice,
        value,
        word: word.clone(),
    });
}

/// `-abc`, `-ovalue`, `-o value`.
fn cluster(
    program: &'static Program,
    word: &Word,
    start: usize,
    next: &mut dyn FnMut() -> Option<Word>,
    found: &mut Arguments,
) {
    let prefix = word.prefix().to_owned();
    let whole = word.known().is_some();
    if is_number(program, &prefix, word) {
        return;
    }
    // Some options of one dash have long names all the same.
    if whole && let Some(choice) = exactly(program, &prefix).filter(|_| prefix.len() > 2) {
        let value = match choice.value {
            Value::Required(_) => next(),
            Value::None | Value::Optional(_) => None,
        };
        found.options.push(Given {
            choice,
            value,
            word: word.clone(),
        });
        return;
    }
    let mut at = start;
    while let Some(flag) = prefix[at..].chars().next() {
        at += flag.len_utf8();
        let Some(choice) = exactly(program, &format!("-{flag}")) else {
            if program.digits && flag.is_ascii_digit() {
                continue;
            }
            return found.strange.push(word.clone());
        };
        let rest_known = at < prefix.len();
        let value = match choice.value {
            Value::None => None,
            Value::Optional(_) => (rest_known || !whole).then(|| word.after(at)),
            Value::Required(_) if rest_known || !whole => Some(word.after(at)),
            Value::Required(_) => next(),
        };
        let ends = value.is_some();
        found.options.push(Given {
            choice,
            value,
            word: word.clone(),
        });
        if ends {
            return;
        }
    }
    if !whole {
        // What follows in the same word is not in the text, and would be further options.
        found.strange.push(Word {
            fields: Fields::One,
            ..word.clone()
        });
    }
}

fn is_number(program: &Program, prefix: &str, word: &Word) -> bool {
    program.digits
        && prefix.len() > 1
        && prefix[1..].bytes().all(|byte| byte.is_ascii_digit())
        && word.known().is_some()
}

/// The subcommand that another name or an abbreviation stands for.
pub(super) fn meant<'a>(program: &'a Program, name: &str) -> Option<&'a str> {
    let same = |name: &str| {
        let mut same = program.same.iter();
        same.find(|(other, _)| other == name).map(|(_, own)| own.as_str())
    };
    if let Some(own) = same(name) {
        return Some(own);
    }
    if !program.abbreviates || name.is_empty() {
        return None;
    }
    let subs = program.subs.iter().flat_map(|sub| sub.names.iter().copied());
    let others = program.same.iter().map(|(other, _)| other.as_str());
    let mut found = subs
        .chain(others)
        .filter(|whole| whole.starts_with(name) && !whole.contains(' '))
        .map(|whole| same(whole).unwrap_or(whole));
    let first = found.next()?;
    found.all(|other| other == first).then_some(first)
}

/// A subcommand that a command line names.
#[derive(Debug, Clone)]
pub(super) struct FoundSub {
    /// What is known of it, and of those that share its block.
    pub(super) program: &'static Program,
    /// Its own name, whether that or another one is written.
    pub(super) name: String,
    /// How many operands are its name.
    pub(super) words: usize,
}

impl FoundSub {
    /// The subcommand that is called exactly so.
    pub(super) fn named(program: &'static Program, name: String, words: usize) -> Option<Self> {
        let sub = program.subs.iter().find(|sub| sub.names.contains(&name.as_str()))?;
        Some(Self {
            program: sub.program(),
            name,
            words,
        })
    }
}

/// The subcommand that these operands name.
pub(super) fn find_sub(program: &'static Program, operands: &[Word]) -> Option<FoundSub> {
    let known: Vec<_> = operands.iter().take(3).map_while(Word::known).collect();
    let exactly = (1..=known.len()).rev().find_map(|count| {
        let name = known[..count].join(" ");
        FoundSub::named(program, name.clone(), count)
            .or_else(|| FoundSub::named(program, meant(program, &name)?.to_owned(), count))
    });
    exactly.or_else(|| {
        let name = known.first()?.to_string();
        let other = FoundSub::named(program, "*".to_owned(), 1)?;
        Some(FoundSub { name, ..other })
    })
}
