//! What the tables tell of a command that was read, asked one question at a time.

use std::path::PathBuf;

use super::facts::is_interpreter;
use super::history::names_a_commit;
use super::parse::{Arguments, Given, find_sub, parse};
use super::table::{Bring, Program, Role, Value, find};
use crate::reader::is_shell;
use crate::reading::{Action, Base, Effect, Invocation, Kind, Reading, Via};
use crate::span::Span;
use crate::word::{Atom, Fields, Hidden, Word};

/// Whether it is not described what a program does with its operands, so that it may start them.
pub fn is_opaque(name: &str) -> bool {
    find(name).is_none_or(|program| program.is_opaque(name))
}

impl Program {
    pub(super) fn is_opaque(&self, name: &str) -> bool {
        let roles = &self.operands;
        self.subs.is_empty()
            && !self.builtin
            // Of packages it is not described what they start.
            && self.special.as_deref().is_none_or(|special| special == "package")
            // What a script is given is the script's own matter.
            && (self.always.iter().any(|bring| matches!(bring, Bring::Runs(_) | Bring::Unknown(_)))
                && !self.is_interpreter(name)
                || roles
                    .head
                    .iter()
                    .chain(&roles.rest)
                    .chain(&roles.tail)
                    .any(|role| matches!(role, Role::Unknown | Role::Query)))
    }
}

/// Whether a command starts no program but one that runs what the project says, or a script that is judged by itself.
pub fn is_of_the_project(command: &Invocation) -> bool {
    let own = |name: &str| find(name).is_some_and(|program| program.is_for_projects) || is_interpreter(name);
    command.kind != Kind::Program || command.program().is_some_and(|name| own(&name))
}

/// Whether a program has subcommands of which some start what they are given (`npm exec`, `cargo watch`).
pub fn starts_others(name: &str) -> bool {
    find(name).is_some_and(|program| program.is_for_projects && !program.subs.is_empty())
}

/// Whether a program is described as one that runs what the project says, and is given data.
pub fn runs_the_project(name: &str) -> bool {
    find(name).is_some_and(|program| {
        let operands = &program.operands;
        let mut roles = operands.head.iter().chain(&operands.rest).chain(&operands.tail);
        program.always.iter().any(|bring| matches!(bring, Bring::Runs(_))) && !roles.any(|role| *role == Role::Unknown)
    })
}

/// What starts or loads what is not its own, of these options of a program, or of `program subcommand`.
pub(crate) struct Starts {
    /// Commands that they name.
    pub(crate) commands: Vec<String>,
    /// The first that loads or runs something else.
    pub(crate) option: Option<String>,
}

/// Reads the value of a variable with options for a program.
pub(crate) fn started_by_options(program: &str, options: &[Atom]) -> Option<Starts> {
    let (name, rest) = program.split_once(' ').unwrap_or((program, ""));
    let mut program = find(name)?;
    if !rest.is_empty() {
        program = find_sub(program, &[Word::text(rest, Span::default())])?.program;
    }
    // What is not known of the value is what was there before, or what a configured program prints.
    let known = options.iter().map(|atom| match atom {
        Atom::Text(text) => text.as_str(),
        Atom::One | Atom::Star | Atom::Found | Atom::Hidden(_) | Atom::Here | Atom::OneOf(_) => " ",
    });
    let found = parse(program, &unquoted(&known.collect::<String>()));
    let mut starts = Starts {
        commands: Vec::new(),
        option: None,
    };
    for given in &found.options {
        let value = given.value.as_ref().and_then(Word::known);
        let loads = |text: &str| program.loads.iter().any(|name| text.contains(name.as_str()));
        match (given.choice.value, &value) {
            (Value::Required(Role::Launch | Role::Shell) | Value::Optional(Role::Launch | Role::Shell), Some(text)) => {
                starts.commands.push(text.replace(',', " "));
            }
            _ if given.choice.launches() || value.as_deref().is_some_and(loads) => {
                starts.option.get_or_insert_with(|| given.word.shown());
            }
            _ => {}
        }
    }
    Some(starts)
}

/// A text split at blanks, but for those in quotes.
fn unquoted(text: &str) -> Vec<Word> {
    let (mut words, mut word, mut quote) = (Vec::new(), String::new(), None);
    for character in text.chars().chain([' ']) {
        match quote {
            Some(open) if character == open => quote = None,
            None if matches!(character, '\'' | '"') => quote = Some(character),
            None if character.is_whitespace() => {
                if !word.is_empty() {
                    words.push(Word::text(std::mem::take(&mut word), Span::default()));
                }
            }
            _ => word.push(character),
        }
    }
    words
}

/// Whether whatever a command changes is named on its line, or fed to it as the name of a file that was found.
pub fn names_what_it_changes(command: &Invocation) -> bool {
    (!command.more || command.fed)
        && command
            .program()
            .and_then(|name| find(&name))
            .is_some_and(|program| match &program.named {
                Some(unless) => !parse(program, &command.argv[1..]).has(unless),
                None => program.builtin,
            })
}

/// Where a command works, relative to where it is started, if its arguments say so plainly: git has an option for
/// that. Nothing if it may be elsewhere.
pub fn elsewhere(command: &Invocation) -> Option<String> {
    let words: Vec<_> = command.argv.iter().map(Word::known).collect();
    match words.as_slice() {
        [Some(git), rest @ ..] if git == "git" || git.ends_with("/git") => {
            let mut rest = rest;
            let mut place = PathBuf::new();
            loop {
                rest = match rest {
                    [Some(option), Some(directory), rest @ ..] if option == "-C" => {
                        place.push(&**directory);
                        rest
                    }
                    [Some(option), Some(_), rest @ ..] if option == "-c" => rest,
                    [Some(option), rest @ ..] if option == "--no-pager" || option == "-P" => rest,
                    [Some(first), ..] if !first.starts_with('-') => return place.into_os_string().into_string().ok(),
                    _ => return None,
                };
            }
        }
        _ => Some(String::new()),
    }
}

/// What a command prints.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Printed {
    /// Text of this kind.
    Text(Hidden),
    /// Numbers, each on a line of its own.
    Numbers,
    /// The path of the directory in which it stands.
    WorkingDirectory,
    /// The path of a file or a directory that it has made below `$TMPDIR`.
    NewFile,
    /// Names of files that were found, each of which is one word made of this.
    Names(Vec<Atom>),
}

impl Printed {
    /// Whatever it is.
    pub(crate) const ANYTHING: Self = Self::Text(Hidden::Anything);
}

/// What a command prints, where its table tells.
pub(crate) fn prints(command: &Invocation) -> Printed {
    let tells = || {
        if command.kind == Kind::Function || command.more {
            return None;
        }
        let name = command.argv.first()?.known()?;
        let name = name.rsplit('/').next()?;
        let mut program = find(name)?;
        let mut found = parse(program, &command.argv[1..]);
        if let Some(printed) = prints_by_use(name, &found) {
            return Some(printed);
        }
        if !program.subs.is_empty() {
            if !found.strange.is_empty() {
                return None;
            }
            (program, found) = subcommand(program, &found)?;
        }
        let understood = found.strange.is_empty() && found.doubtful.is_empty();
        program.prints.filter(|_| understood).map(Printed::Text)
    };
    tells().unwrap_or(Printed::ANYTHING)
}

/// The subcommand that a program's arguments name, if it has any, and the arguments of that.
fn subcommand(program: &'static Program, found: &Arguments) -> Option<(&'static Program, Arguments)> {
    let sub = find_sub(program, &found.operands).filter(|_| !program.subs.is_empty())?;
    Some((sub.program, parse(sub.program, &found.operands[sub.words..])))
}

/// The arguments of a command that prints the names of files which it found, and nothing else, unless an operand turns out
/// to be an option.
pub(crate) fn prints_names_alone(command: &Invocation) -> Option<Arguments> {
    let mut program = find(&command.program()?)?;
    let mut found = parse(program, &command.argv[1..]);
    if !program.subs.is_empty() {
        // They may lead elsewhere.
        if !found.options.is_empty() || !found.strange.is_empty() {
            return None;
        }
        (program, found) = subcommand(program, &found)?;
    }
    let when = program.names_alone.as_ref()?;
    let is_input = |word: &Word| word.known().as_deref() == Some("-");
    let is_allowed = |given: &Given| when.only.as_ref().is_none_or(|only| given.is_one_of(only));
    let does = found.strange.is_empty()
        && (when.with.is_empty() || found.has(&when.with))
        && !found.has(&when.unless)
        && found.options.iter().all(is_allowed)
        && !found.operands.iter().any(is_input);
    does.then_some(found)
}

/// Whether a command may read its standard input. Whatever the project's own code does, it does anyway, and a shell tells
/// by itself. Its effects are among those since so many. With `unknown`, a word that is not known can name it.
pub(crate) fn may_read_input(reading: &Reading, index: usize, effects: usize, unknown: bool) -> bool {
    let command = &reading.commands[index];
    let Some(name) = command.program() else { return true };
    if command.kind != Kind::Program || is_shell(&name) {
        return matches!(name.as_str(), "mapfile" | "readarray");
    }
    let names_input = |word: &Word| match word.known() {
        // `find -ok` asks.
        Some(text) => {
            ["=-", "@-", "stdin"].iter().any(|part| text.contains(part))
                || text.ends_with('-') && text != "--"
                || text.starts_with("-ok")
        }
        None => unknown && matches!(word.atoms.first(), Some(Atom::Hidden(Hidden::Anything)) | None),
    };
    let among_descriptors = |base: &Base| match base {
        Base::At(path) => may_be_descriptors(path),
        Base::Unknown => true,
    };
    let words = &command.argv[1..];
    if let [only] = words
        && matches!(only.known().as_deref(), Some("--version" | "--help"))
    {
        return false;
    }
    if command.more
        || words.iter().any(|word| names_input(word) || may_name_input(word))
        || reading.bases.iter().any(among_descriptors)
    {
        return true;
    }
    let is_given_files = |effect: &Effect| {
        let counts = match &effect.action {
            Action::Reads(word)
            | Action::Names(word)
            | Action::Writes(word)
            | Action::Renames(word)
            | Action::RunsFile(word) => !may_vanish(word, unknown),
            Action::Walks(_) | Action::Revision(_) | Action::Doubt(..) => true,
            _ => false,
        };
        counts && effect.by == Some(index) && effect.via == Via::Operand
    };
    let is_without_files = || !reading.effects[effects..].iter().any(is_given_files);
    let Some(program) = find(&name) else {
        return is_without_files();
    };
    let found = parse(program, &command.argv[1..]);
    let (sub, found) = subcommand(program, &found).unwrap_or((program, found));
    match sub.no_input.as_ref().or(program.no_input.as_ref()) {
        Some((with, unless)) if with.is_empty() || found.has(with) => found.has(unless),
        _ => program.reads_input || is_without_files(),
    }
}

/// Whether a word may come to nothing, so that a program is given no file: an expansion of no value, a wildcard that
/// matches nothing under `nullglob`. Names that were found are there.
fn may_vanish(word: &Word, unknown: bool) -> bool {
    fn is_found(atom: &Atom) -> bool {
        match atom {
            Atom::One | Atom::Star | Atom::Found | Atom::Hidden(Hidden::Below | Hidden::PlainBelow) => true,
            Atom::OneOf(choices) => choices.iter().flatten().any(is_found),
            _ => false,
        }
    }
    match word.fields {
        Fields::Glob => true,
        _ => unknown && word.written.starts_with(['$', '`', '{']) && !word.atoms.iter().any(is_found),
    }
}

/// Whether a word may name an open descriptor: `/dev/stdin`, `/proc/$$/fd/0`, `/dev/f*/0`.
pub(crate) fn may_name_input(word: &Word) -> bool {
    word.atoms.iter().any(|atom| match atom {
        Atom::Text(text) => may_be_descriptors(text),
        Atom::OneOf(choices) => choices.iter().flatten().any(|atom| match atom {
            Atom::Text(text) => may_be_descriptors(text),
            _ => false,
        }),
        _ => false,
    })
}

fn may_be_descriptors(path: &str) -> bool {
    let is_root = |at: usize| !path[..at].ends_with(|letter: char| letter.is_alphanumeric() || "_-".contains(letter));
    let names = |root: &str| path.match_indices(root).any(|(at, _)| is_root(at));
    let harmless = ["/dev/null", "/dev/zero", "/dev/urandom", "/dev/tty", "/dev/full"];
    !harmless.contains(&path) && (names("/dev") || names("/proc"))
}

/// Whether a command prints its input as it is.
pub(crate) fn passes_on(command: &Invocation) -> bool {
    let is_plain = command
        .argv
        .iter()
        .skip(1)
        .all(|word| word.known().as_deref() == Some("-"));
    let program = command.program().filter(|_| !command.more).and_then(|name| find(&name));
    is_plain && program.is_some_and(|program| program.passes_on)
}

/// Whether a command prints some lines of its input, each as it is: whether they end with NUL instead. Nothing if it does
/// anything else.
pub(crate) fn keeps_lines(command: &Invocation) -> Option<bool> {
    let program = find(&command.program().filter(|_| !command.more)?)?;
    let found = parse(program, &command.argv[1..]);
    let allowed = program.lines.as_ref()?;
    let patterns = program
        .operands
        .head
        .iter()
        .filter(|role| **role == Role::Pattern)
        .count();
    let understood = found.strange.is_empty() && found.doubtful.is_empty() && found.plus.is_empty();
    let keeps = found.options.iter().all(|given| given.is_one_of(allowed));
    (understood && keeps && found.operands.len() == patterns)
        .then(|| found.has(&["-z", "--zero-terminated", "--null-data"]))
}

/// Whether a command, without the options that it is given here, would only read.
pub fn reads_by_itself(command: &Invocation) -> bool {
    let plain = |program: &Program| {
        let roles = &program.operands;
        program.special.as_deref() != Some("dd")
            && program.always.is_empty()
            && roles
                .head
                .iter()
                .chain(&roles.rest)
                .chain(&roles.tail)
                .all(|role| role.is_harmless() || matches!(role, Role::Sed | Role::Awk))
    };
    let Some(program) = command.program().and_then(|name| find(&name)) else {
        return false;
    };
    if program.subs.is_empty() {
        return plain(program);
    }
    let found = parse(program, &command.argv[1..]);
    find_sub(program, &found.operands).is_some_and(|sub| plain(sub.program))
}

/// What those commands print whose output depends on how they are used.
fn prints_by_use(name: &str, found: &Arguments) -> Option<Printed> {
    let flag = |names: &[&str]| found.has(names);
    // All of its options are among these.
    let only = |names: &[&str]| found.options.iter().all(|given| given.is_one_of(names));
    if found
        .options
        .iter()
        .flat_map(|given| &given.choice.brings)
        .any(|bring| matches!(bring, Bring::Stops { .. }))
    {
        return Some(Printed::ANYTHING);
    }
    let words: Vec<_> = found.operands.iter().filter_map(Word::known).collect();
    let plain = found.strange.is_empty() && found.doubtful.is_empty() && words.len() == found.operands.len();
    if !plain {
        return Some(Printed::ANYTHING);
    }
    let class = match name {
        // With names of files behind the numbers, the names come along.
        "wc" if words.is_empty()
            && found.options.len() <= 1
            && only(&[
                "-l",
                "--lines",
                "-w",
                "--words",
                "-c",
                "--bytes",
                "-m",
                "--chars",
                "-L",
                "--max-line-length",
            ]) =>
        {
            Hidden::Number
        }
        "wc" => Hidden::Anything,
        "grep" | "egrep" | "fgrep" | "rg" => {
            let counts = name != "rg"
                && flag(&["-c", "--count"])
                && words.len() <= 2
                && only(&[
                    "-c",
                    "--count",
                    "-i",
                    "--ignore-case",
                    "-v",
                    "--invert-match",
                    "-w",
                    "--word-regexp",
                    "-x",
                    "--line-regexp",
                    "-E",
                    "--extended-regexp",
                    "-F",
                    "--fixed-strings",
                    "-G",
                    "--basic-regexp",
                    "-P",
                    "--perl-regexp",
                    "-s",
                    "--no-messages",
                    "-h",
                    "--no-filename",
                    "-a",
                    "--text",
                ]);
            if counts { Hidden::Number } else { Hidden::Anything }
        }
        "date" => {
            let [format] = found.plus.as_slice() else {
                return Some(Printed::ANYTHING);
            };
            // Any time but the present one can be before the year 0, or before 1970, with a minus.
            let is_now = !flag(&["-d", "--date", "-f", "--file", "-r", "--reference", "-s", "--set"]);
            match format.known() {
                Some(format)
                    if [
                        "+%s", "+%Y", "+%m", "+%d", "+%H", "+%M", "+%S", "+%Y%m%d", "+%s%N", "+%j", "+%u", "+%w",
                        "+%N", "+%y",
                    ]
                    .contains(&format.as_ref()) =>
                {
                    Hidden::Number
                }
                Some(format) if is_of_digits(&format[1..]) && (is_now || !begins_with_a_year(&format[1..])) => {
                    // `%D` has slashes.
                    if format.contains(['.', '/', 'D']) {
                        Hidden::Name
                    } else {
                        Hidden::Letters
                    }
                }
                Some(_) | None => Hidden::Anything,
            }
        }
        // It prints a line for each user.
        "id" if words.len() > 1 => Hidden::Anything,
        "id" if flag(&["-u", "--user", "-g", "--group"]) => {
            match (
                only(&["-u", "--user", "-g", "--group", "-r", "--real"]),
                flag(&["-n", "--name"]),
            ) {
                (true, _) => Hidden::Number,
                (false, true) if !flag(&["-G", "--groups", "-z", "--zero"]) => Hidden::Name,
                (false, _) => Hidden::Anything,
            }
        }
        "nproc" if only(&["--all", "--ignore"]) => Hidden::Number,
        // Of one file: a time, a size, a number of what belongs to it.
        "stat" if words.len() == 1 && only(&["-c", "--format", "-L", "--dereference"]) => {
            let formats = found.options.iter().filter_map(|given| given.value.as_ref());
            let mut formats = formats.map(|format| format.known().unwrap_or_default());
            let is_number = |format: &str| {
                let code = format.strip_prefix('%').unwrap_or_default();
                code.len() == 1 && "XYZWsbBohiugd".contains(code)
            };
            match (formats.next(), formats.next()) {
                (Some(format), None) if is_number(&format) => Hidden::Number,
                _ => Hidden::Anything,
            }
        }
        "seq"
            if words
                .iter()
                .all(|word| word.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-'))
                && found.options.is_empty() =>
        {
            return Some(Printed::Numbers);
        }
        "pwd" if words.is_empty() => return Some(Printed::WorkingDirectory),
        "mktemp" if words.is_empty() && only(&["-d", "--directory", "-q", "--quiet"]) => {
            return Some(Printed::NewFile);
        }
        "uname" | "arch" | "whoami" | "hostname" | "tty" if words.is_empty() => Hidden::Name,
        "git" => prints_of_git(found, &words)?,
        _ => return None,
    };
    Some(Printed::Text(class))
}

/// Whether a format of `date` makes digits, and letters and marks between them: no blank, no dash at its beginning.
fn is_of_digits(format: &str) -> bool {
    let mut characters = format.chars();
    let mut first = true;
    while let Some(character) = characters.next() {
        let plain = match character {
            '%' => {
                let next = characters.next();
                let next = if next == Some('-') { characters.next() } else { next };
                next.is_some_and(|code| "YmdHMSFTDRjuwNsyGgVCIUW".contains(code))
            }
            mark => mark.is_ascii_alphanumeric() || !first && "-_.:/,+@".contains(mark),
        };
        if !plain {
            return false;
        }
        first = false;
    }
    !first
}

/// Whether the first that a format of `date` prints can be negative.
fn begins_with_a_year(format: &str) -> bool {
    let code = format.strip_prefix('%').map(|code| code.trim_start_matches('-'));
    code.is_some_and(|code| code.starts_with(['s', 'Y', 'G', 'C', 'F', 'g', 'y']))
}

fn prints_of_git(found: &Arguments, words: &[std::borrow::Cow<'_, str>]) -> Option<Hidden> {
    let (sub, rest) = words.split_first()?;
    if found.options.iter().any(|given| !given.choice.is_harmless()) {
        return None;
    }
    // Behind `--` stand paths.
    let has = |option: &str| rest.iter().take_while(|word| *word != "--").any(|word| word == option);
    let plain = |word: &str| {
        word.bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"@{}^~/._:-".contains(&byte))
    };
    if !rest.iter().all(|word| plain(word)) && !matches!(sub.as_ref(), "log" | "rev-list") {
        return None;
    }
    let dashed = |allowed: &[&str]| {
        rest.iter()
            .all(|word| !word.starts_with('-') || allowed.contains(&word.as_ref()))
    };
    Some(match sub.as_ref() {
        "rev-list"
            if has("--count") && dashed(&["--count", "--all", "--no-merges", "--merges", "--first-parent", "--"]) =>
        {
            Hidden::Number
        }
        "rev-parse"
            if dashed(&["--short", "--verify", "-q", "--quiet"]) && rest.iter().all(|word| names_a_commit(word)) =>
        {
            Hidden::Commit
        }
        // The name of a branch or a tag may begin with a dash: these print hashes, full names and directories alone.
        "rev-parse" if dashed(&["--short", "--verify", "-q", "--quiet", "--symbolic-full-name"]) => Hidden::Name,
        "rev-parse" if dashed(&["--show-toplevel", "--git-dir", "--absolute-git-dir"]) => Hidden::Path,
        "merge-base" if dashed(&["--fork-point", "-a", "--all", "--octopus"]) => Hidden::Commit,
        "describe" if has("--all") && dashed(&["--tags", "--always", "--dirty", "--abbrev=0", "--long", "--all"]) => {
            Hidden::Name
        }
        "symbolic-ref" if dashed(&["-q"]) => Hidden::Name,
        "branch" if rest == ["--show-current"] => Hidden::Ref,
        "describe" if dashed(&["--tags", "--always", "--dirty", "--abbrev=0", "--long"]) => Hidden::Ref,
        "symbolic-ref" if dashed(&["--short", "-q"]) => Hidden::Ref,
        "rev-parse" if dashed(&["--short", "--abbrev-ref", "--verify", "-q", "--quiet"]) => Hidden::Ref,
        "hash-object" if dashed(&[]) => Hidden::Name,
        "log" | "rev-list"
            if (sub == "rev-list"
                || has("--format=%h")
                || has("--format=%H")
                || has("--pretty=%h")
                || has("--pretty=%H"))
                && rest.iter().all(|word| {
                    !word.starts_with('-')
                        || matches!(
                            word.as_ref(),
                            "--format=%h"
                                | "--format=%H"
                                | "--pretty=%h"
                                | "--pretty=%H"
                                | "-n"
                                | "--reverse"
                                | "--all"
                                | "--no-merges"
                                | "--merges"
                                | "--first-parent"
                                | "--"
                        )
                        || word[1..].bytes().all(|byte| byte.is_ascii_digit())
                        || ["--since=", "--until=", "--author=", "-n"]
                            .iter()
                            .any(|start| word.starts_with(start))
                }) =>
        {
            Hidden::Commit
        }
        _ => return None,
    })
}
