//! A command in the form in which deny rules compare it: wrappers, paths, option order, clusters
//! and abbreviations no longer matter.

use super::apply::second_word;

use super::parse::{Arguments, FoundSub, find_sub, meant, parse};
use super::table::{Choice, Program, Role, Value, find};
use crate::word::{Atom, Fields, Known, Word};

/// A command taken apart.
#[derive(Debug, Clone)]
pub struct Normal {
    program: String,
    sub: Option<FoundSub>,
    options: Vec<(&'static Choice, Option<Word>)>,
    operands: Vec<Word>,
    /// Options that no table knows, as they are written.
    strange: Vec<Word>,
    /// Whether something in it could turn out to be any option or operand.
    unsure: bool,
}

/// The arguments of a `git` that pushes by another name, as those of `git push`.
fn pushes(program: &str, args: &[Word]) -> Option<Vec<Word>> {
    let found = parse((program == "git").then(|| find(program))??, args);
    let first = found.operands.first()?;
    let at = args.iter().position(|word| word == first)?;
    let mut args = args.to_vec();
    match first.known()?.as_ref() {
        "send-pack" | "http-push" => args[at] = Word::text("push", first.span),
        "subtree" | "lfs" if found.operands.get(1)?.known()? == "push" => {
            args.remove(at);
        }
        _ => return None,
    }
    Some(args)
}

/// Arguments behind a subcommand that the program's name holds.
fn behind(sub: &str, args: &[Word]) -> Vec<Word> {
    let sub = Word::text(sub, args.first().map(|word| word.span).unwrap_or_default());
    [std::slice::from_ref(&sub), args].concat()
}

/// The arguments of a `kill` whose signal is named otherwise than by `-NUMBER`, with it.
fn by_number(program: &str, args: &[Word]) -> Option<Vec<Word>> {
    if !matches!(program, "kill" | "pkill" | "killall" | "skill") {
        return None;
    }
    let number = |name: &str| {
        let name = name.to_ascii_uppercase();
        let name = name.strip_prefix("SIG").unwrap_or(&name);
        let at = SIGNALS.iter().position(|own| *own == name);
        at.map(|at| at + 1).or_else(|| name.parse().ok())
    };
    args.iter().enumerate().find_map(|(at, word)| {
        let text = word.known()?;
        let (signal, words) = match &*text {
            "-s" | "-n" | "--signal" => (args.get(at + 1)?.known()?.into_owned(), 2),
            text if text.starts_with("--signal=") => (text["--signal=".len()..].to_owned(), 1),
            text if text.starts_with("-s") || text.starts_with("-n") => (text[2..].to_owned(), 1),
            text => (text.strip_prefix('-')?.to_owned(), 1),
        };
        let named = format!("-{}", number(&signal)?);
        if words == 1 && named == *text {
            return None;
        }
        let mut args = args.to_vec();
        args.splice(at..at + words, [Word::text(named, word.span)]);
        Some(args)
    })
}

/// The names of signals, from number 1 on.
const SIGNALS: [&str; 31] = [
    "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2", "PIPE", "ALRM", "TERM",
    "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "XCPU", "XFSZ", "VTALRM", "PROF", "WINCH", "IO",
    "PWR", "SYS",
];

/// Takes a command apart.
pub fn normal(program: &str, args: &[Word], more: bool) -> Normal {
    // The same program by another name, or as a module.
    if program != "pip"
        && program.starts_with("pip")
        && program[3..].bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
    {
        return normal("pip", args, more);
    }
    if program.starts_with("python")
        && let Some(at) = args.iter().position(|word| {
            word.known()
                .is_some_and(|text| text.starts_with('-') && !text.starts_with("--") && text.contains('m'))
        })
    {
        let attached = args[at]
            .known()
            .and_then(|text| text.split_once('m').map(|(_, module)| module.to_owned()))
            .unwrap_or_default();
        let (module, rest) = if attached.is_empty() {
            (
                args.get(at + 1).and_then(Word::known).map(std::borrow::Cow::into_owned),
                at + 2,
            )
        } else {
            (Some(attached), at + 1)
        };
        if module.as_deref() == Some("pip") {
            return normal("pip", args.get(rest..).unwrap_or_default(), more);
        }
    }
    if matches!(program, "docker" | "podman") && args.first().and_then(Word::known).as_deref() == Some("container") {
        return normal(program, &args[1..], more);
    }
    // Each command of git is a program of its own too, and hub is git with more of them.
    if let Some(sub) = program.strip_prefix("git-").filter(|sub| !sub.is_empty()) {
        return normal("git", &behind(sub, args), more);
    }
    if program == "hub" {
        return normal("git", args, more);
    }
    if program == "docker-compose" || program == "podman-compose" {
        return normal(program.trim_end_matches("-compose"), &behind("compose", args), more);
    }
    if let Some(args) = by_number(program, args) {
        return normal(program, &args, more);
    }
    if let Some(args) = pushes(program, args) {
        return normal(program, &args, more);
    }
    let table = find(program);
    let mut normal = Normal {
        program: program.to_owned(),
        sub: None,
        options: Vec::new(),
        operands: Vec::new(),
        strange: Vec::new(),
        unsure: more,
    };
    let Some(table) = table.filter(|table| !table.options_none) else {
        for word in args {
            match word.is_dashed() {
                Known::Yes => normal.strange.push(word.clone()),
                Known::No => normal.operands.push(word.clone()),
                Known::Maybe => {
                    normal.unsure = true;
                    normal.operands.push(word.clone());
                }
            }
            normal.unsure |= word.fields.is_any();
        }
        return normal;
    };
    let found = parse(table, args);
    if table.subs.is_empty() {
        normal.take(found);
        return normal;
    }
    let operands = found.operands.clone();
    normal.take(Arguments {
        operands: Vec::new(),
        ..found
    });
    match find_sub(table, &operands) {
        Some(sub) => {
            let rest = &operands[sub.words..];
            match second_word(table, &sub, rest) {
                Some((second, found)) => {
                    let (program, rest) = (second.program, found.operands[second.words..].to_vec());
                    normal.sub = Some(second);
                    normal.take(Arguments {
                        operands: Vec::new(),
                        ..found
                    });
                    normal.take(parse(program, &rest));
                }
                None => {
                    let program = sub.program;
                    normal.sub = Some(sub);
                    normal.take(parse(program, rest));
                }
            }
        }
        None => {
            normal.unsure |= operands.first().is_some_and(|word| word.known().is_none());
            normal.operands = operands;
        }
    }
    normal
}

impl Normal {
    fn take(&mut self, found: Arguments) {
        let sub = self.sub.as_ref().map(|sub| sub.program);
        let program = sub.or(find(&self.program));
        // As an option, the only word leaves nothing to be removed.
        let only = match (&*found.operands, &*found.doubtful) {
            ([operand], [word]) => operand.fields == Fields::One && operand == word && program.is_some_and(removes),
            _ => false,
        };
        self.unsure |= !only && found.doubtful.iter().any(|word| can_be_option(program, word))
            || found.strange.iter().any(|word| word.known().is_none());
        self.options
            .extend(found.options.into_iter().map(|given| (given.choice, given.value)));
        self.unsure |= found.operands.iter().any(|word| word.fields.is_any());
        self.operands.extend(found.operands);
        self.strange.extend(found.strange);
        // git's own way to say `--force` inside an operand.
        if self.program == "git"
            && let Some(sub) = self.sub.as_ref().filter(|sub| sub.name == "push")
            && self.operands.iter().any(|word| word.prefix().starts_with('+'))
            && let Some(force) = sub
                .program
                .options
                .iter()
                .find(|choice| choice.spellings.iter().any(|own| own == "--force"))
        {
            self.options.push((force, None));
        }
    }

    /// Whether one subcommand of its program is the other, or begins with its name: `remote add` is a `remote`.
    fn is_sub(&self, own: &str, wanted: &str) -> bool {
        let same = |program| meant(program, own).unwrap_or(own) == meant(program, wanted).unwrap_or(wanted);
        own.strip_prefix(wanted)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
            || find(&self.program).is_some_and(same)
    }

    /// Whether this command is the one that `rule` describes, whatever else it says.
    pub fn is(&self, rule: &Normal) -> Known {
        if self.program != rule.program {
            return Known::No;
        }
        let mut answer = Known::Yes;
        let mut need = |met: Known| {
            answer = match (answer, met) {
                (Known::No, _) | (_, Known::No) => Known::No,
                (Known::Maybe, _) | (_, Known::Maybe) => Known::Maybe,
                (Known::Yes, Known::Yes) => Known::Yes,
            };
        };
        let otherwise = if self.unsure { Known::Maybe } else { Known::No };
        if let Some(sub) = &rule.sub {
            need(match &self.sub {
                Some(own) if self.is_sub(&own.name, &sub.name) => Known::Yes,
                Some(_) => Known::No,
                None => otherwise,
            });
        }
        for (choice, value) in &rule.options {
            let given = self.options.iter().any(|(own, own_value)| {
                (std::ptr::eq(*own, *choice) || alike(own, choice))
                    && value
                        .as_ref()
                        .is_none_or(|value| own_value.as_ref().is_some_and(|own| own.known() == value.known()))
            });
            need(if given { Known::Yes } else { otherwise });
        }
        for word in &rule.strange {
            let wanted = word.shown();
            let given = self.strange.iter().any(|own| spells(&own.shown(), &wanted));
            need(if given { Known::Yes } else { otherwise });
        }
        // Its operands, in their order, from the first one on.
        for (at, wanted) in rule.operands.iter().enumerate() {
            need(match self.operands.get(at) {
                Some(own) => match own.known() {
                    Some(text) if Some(text.as_ref()) == wanted.known().as_deref() => Known::Yes,
                    // A mode in octal, with as many zeros before it.
                    Some(text)
                        if self.program == "chmod"
                            && wanted.known().is_some_and(|wanted| {
                                wanted.trim_start_matches('0') == text.trim_start_matches('0')
                            }) =>
                    {
                        Known::Yes
                    }
                    Some(_) if self.unsure && self.operands[..at].iter().any(|word| word.fields != Fields::One) => {
                        Known::Maybe
                    }
                    Some(_) => Known::No,
                    None => Known::Maybe,
                },
                None => otherwise,
            });
        }
        answer
    }
}

/// Whether it removes what it is given, and nothing without an operand.
fn removes(program: &'static Program) -> bool {
    program.operands.rest == Some(Role::Removed)
}

/// Whether a word that may start with a dash can be an option that matters: names of files that end, say, with
/// `.o` spell none where no option is called so and none takes a value.
fn can_be_option(program: Option<&'static Program>, word: &Word) -> bool {
    let Some(program) = program.filter(|_| word.fields == Fields::Glob) else {
        return true;
    };
    let letter = |wanted: char| {
        program
            .options
            .iter()
            .flat_map(|choice| &choice.spellings)
            .any(|own| own.contains(wanted))
    };
    let takes_values = program
        .options
        .iter()
        .any(|choice| choice.value != Value::None && !(choice.is_harmless() && choice.spellings[0].starts_with("--")));
    takes_values
        || word.atoms.iter().all(|atom| match atom {
            Atom::Text(text) => text.chars().all(letter),
            Atom::One | Atom::Star => true,
            Atom::Found | Atom::Hidden(_) | Atom::Here | Atom::OneOf(_) => true,
        })
}

/// Whether two plain flags are the short and the long spelling of one another, where the table
/// lists them apart: `-r`, `-R` and `--recursive`. To find too much is to deny too much, no more.
fn alike(left: &Choice, right: &Choice) -> bool {
    let letter = |choice: &Choice| match choice.spellings.as_slice() {
        [only] if choice.value == Value::None => only
            .trim_start_matches('-')
            .chars()
            .next()
            .map(|first| first.to_ascii_lowercase()),
        _ => None,
    };
    letter(left).is_some() && letter(left) == letter(right)
}

/// Whether an option of an unknown program is this one: attached values and clusters included.
fn spells(own: &str, wanted: &str) -> bool {
    if own == wanted || own.strip_prefix(wanted).is_some_and(|rest| rest.starts_with('=')) {
        return true;
    }
    let short = |text: &str| text.len() > 1 && text.starts_with('-') && !text.starts_with("--");
    short(own) && short(wanted) && wanted[1..].chars().all(|flag| own[1..].contains(flag))
}
