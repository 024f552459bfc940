//! A command's arguments to what the command does.

use std::borrow::Cow;

use super::git_settings::{git_config, git_format, git_setting};
use super::language::language;
use super::parse::{Arguments, FoundSub, find_sub, parse};
use super::start::{launch, launch_text};
use super::table::{Bring, Operands, Program, Role, Value};
use super::walks::leaves_out_name;
use super::{awk, sed};
use crate::reader::{Reader, Run};
use crate::reading::{Action, Doubt, MORE, PIPE, PartsOf, Via, Walk};
use crate::screen::Unreadable;
use crate::variables::OPTIONAL_LOCKS;
use crate::word::{Atom, Fields, Hidden, Word};

type Result<T = ()> = std::result::Result<T, Unreadable>;

/// Records what a known program does with these arguments.
pub(crate) fn apply(program: &'static Program, run: &Run, reader: &mut Reader<'_>) -> Result {
    reader.stands_where_it_is();
    let result = apply_here(program, run, reader);
    if run.name == "git" {
        // Its `-C` is its own; the shell stays where it is.
        reader.stands_where_it_was();
    }
    result
}

fn apply_here(program: &'static Program, run: &Run, reader: &mut Reader<'_>) -> Result {
    if program.fed {
        reader.code_that_is_fed(run)?;
    }
    let talks = |bring: &Bring| matches!(bring, Bring::Network(_) | Bring::Runs(_) | Bring::Unknown(_));
    if program.always.iter().any(talks) || !program.opens.is_empty() || program.is_opaque(&run.name) {
        reader.names_that_are_fed(run);
    }
    let special = match program.is_interpreter(&run.name) {
        true => Some("interpreter"),
        false => program.special.as_deref(),
    };
    if let Some(name) = special
        && (reader.programs().special)(name, program, run, reader)?
    {
        return Ok(());
    }
    let starts_unknown = |bring: &Bring| matches!(bring, Bring::Runs(_) | Bring::Unknown(_));
    if program.has_unknown_operands && program.always.iter().any(starts_unknown) {
        run.args.iter().for_each(|word| may_bring_a_command(word, run, reader));
    }
    let found = parse(program, &run.args);
    if program.assignments {
        let assigned = found.operands.iter().take_while(|word| word.prefix().contains('='));
        assigned.for_each(|word| may_bring_a_command(word, run, reader));
    }
    if !program.subs.is_empty() {
        return subcommand(program, run, found, reader);
    }
    record(program, run, found, reader)
}

/// The subcommand with its name and its arguments; options between the two words of its name are recorded.
fn resolve(
    program: &'static Program,
    operands: &[Word],
    run: &Run,
    reader: &mut Reader<'_>,
) -> Result<Option<(FoundSub, Vec<Word>)>> {
    let Some(sub) = find_sub(program, operands) else {
        return Ok(None);
    };
    let rest = &operands[sub.words..];
    if let Some((second, found)) = second_word(program, &sub, rest) {
        record_options(sub.program, run, &found, reader)?;
        let rest = found.operands[second.words..].to_vec();
        return Ok(Some((second, rest)));
    }
    let rest = rest.to_vec();
    Ok(Some((sub, rest)))
}

/// The rest of a subcommand's name behind options (`docker compose -f x.yml down`), with those options.
pub(super) fn second_word(program: &'static Program, sub: &FoundSub, rest: &[Word]) -> Option<(FoundSub, Arguments)> {
    let mut names = program.subs.iter().flat_map(|other| &other.names);
    let goes_on = |name: &str| name.strip_prefix(&*sub.name).is_some_and(|rest| rest.starts_with(' '));
    if !names.any(|name| goes_on(name)) {
        return None;
    }
    let found = super::parse::parse_leading(sub.program, rest);
    let known: Vec<_> = found.operands.iter().take(2).map_while(Word::known).collect();
    let second = (1..=known.len()).rev().find_map(|count| {
        let full = format!("{} {}", sub.name, known[..count].join(" "));
        FoundSub::named(program, full, count)
    })?;
    Some((second, found))
}

pub(super) fn subcommand(program: &'static Program, run: &Run, found: Arguments, reader: &mut Reader<'_>) -> Result {
    let operands = found.operands.clone();
    let stops = record_options(program, run, &found, reader)?;
    if stops {
        return Ok(());
    }
    let brings: Vec<&Bring> = found.options.iter().flat_map(|given| &given.choice.brings).collect();
    let Some(first) = operands.first() else {
        bring_always(program, run, &brings, reader);
        if run.more {
            may_get_options(run, true, reader);
        }
        return Ok(());
    };
    let Some((sub, rest)) = resolve(program, &operands, run, reader)? else {
        bring_always(program, run, &brings, reader);
        let because = format!("what `{} {}` does is not known", run.name, first.shown());
        // An unknown subcommand of git is an alias, which is what the repository says it is.
        let doubt = if first.known().is_some() && run.name != "git" {
            Doubt::Program
        } else {
            Doubt::Launch
        };
        reader.doubt(doubt, first.shown(), because, first.span, Some(run.index));
        return Ok(());
    };
    let inner = Run {
        args: rest,
        name: format!("{} {}", run.name, sub.name),
        ..run.clone()
    };
    if let Some(name) = &sub.program.special
        && (reader.programs().special)(name, sub.program, &inner, reader)?
    {
        return Ok(());
    }
    let found = parse(sub.program, &inner.args);
    record(sub.program, &inner, found, reader)
}

/// Records what options and operands do.
pub(super) fn record(program: &'static Program, run: &Run, mut found: Arguments, reader: &mut Reader<'_>) -> Result {
    if record_options(program, run, &found, reader)? {
        return Ok(());
    }
    let brings: Vec<&Bring> = found.options.iter().flat_map(|given| &given.choice.brings).collect();
    bring_always(program, run, &brings, reader);
    // Of several options that say what the operands are, one that lets them do more wins.
    let said = brings.iter().filter_map(|bring| match bring {
        Bring::Operands(operands) => Some((bring.is_harmless(), operands)),
        _ => None,
    });
    let operands = said
        .min_by_key(|(harmless, _)| *harmless)
        .map(|(_, operands)| operands.clone());
    let mut roles = operands.unwrap_or_else(|| program.operands.clone());
    if brings.contains(&&Bring::Pattern) {
        roles
            .head
            .retain(|role| !matches!(role, Role::Pattern | Role::Expression));
        roles.head.retain(|role| !matches!(role, Role::Sed | Role::Awk));
    }
    let in_place = matches!(run.name.as_str(), "sed" | "gsed") && found.has(&["-i"]);
    if in_place && roles.rest == Some(Role::Read) {
        roles.rest = Some(Role::Write);
    }
    let first = reader.commands();
    let mut looks_alone = false;
    if program.assignments {
        while let Some(word) = found.operands.first().cloned() {
            let alternatives = reader.alternatives(std::slice::from_ref(&word));
            if !alternatives.iter().any(|word| assigns(word).is_some()) {
                break;
            }
            for word in &alternatives {
                match assigns(word) {
                    Some(at) => {
                        looks_alone |= word.known().as_deref() == Some("GIT_OPTIONAL_LOCKS=0");
                        reader.assign_for_child(&word.prefix()[..at], &word.after(at + 1), word.span)?;
                    }
                    None => reader.unknown_launch(word, run),
                }
            }
            found.operands.remove(0);
        }
    }
    if !matches!(program.special.as_deref(), Some("tar" | "compressor" | "lz4")) {
        super::walks::record(program, &roles, &found, run, reader);
    }
    if starts_a_shell(program, &roles, &found) {
        reader.shell_input(run)?;
    }
    let taken_out = if program.assignments {
        taken_out(&found)
    } else {
        Vec::new()
    };
    for name in &taken_out {
        reader.unset_for_child(name.as_deref());
    }
    record_operands(&roles, &found.operands, run, reader)?;
    let any_or_locks = |name: &Option<String>| name.as_deref().is_none_or(|name| name == OPTIONAL_LOCKS);
    if !looks_alone && taken_out.iter().any(any_or_locks) {
        reader.lost_environment(first, run.span);
    }
    Ok(())
}

/// The variables that options of `env` take out of the environment, `None` for any.
fn taken_out(found: &Arguments) -> Vec<Option<String>> {
    let names = found.options.iter().filter_map(|given| {
        let named = given.value.as_ref().and_then(Word::known);
        match (
            given.is_one_of(&["-i", "--ignore-environment"]),
            given.is_one_of(&["-u", "--unset"]),
        ) {
            (true, _) => Some(None),
            (false, true) => Some(named.map(Cow::into_owned)),
            (false, false) => None,
        }
    });
    names.collect()
}

/// Whether this call starts a shell that reads what this program is fed.
fn starts_a_shell(program: &Program, roles: &Operands, found: &Arguments) -> bool {
    let Some(shell) = &program.shell else { return false };
    if !shell.unless.is_empty() {
        return !found.has(&shell.unless);
    }
    // What is described as no more than unknown starts its operands.
    let starts = |role: &Role| matches!(role, Role::Command | Role::Code | Role::Shell | Role::Unknown);
    let operand = |at: usize| roles.head.get(at).or(roles.rest.as_ref());
    let values = found.options.iter().filter_map(|given| match given.choice.value {
        Value::Required(role) | Value::Optional(role) => given.value.is_some().then_some(role),
        Value::None => None,
    });
    let has_command = (0..found.operands.len()).filter_map(operand).any(starts)
        || values.into_iter().any(|role| starts(&role) && role != Role::Unknown);
    !has_command && (shell.with.is_empty() || found.has(&shell.with))
}

/// Where the `=` stands in a word that `env` and its like take for `NAME=value`: any with one.
pub(super) fn assigns(word: &Word) -> Option<usize> {
    let at = word.prefix().find('=')?;
    (at > 0).then_some(at)
}

/// Records options; true if one of them makes the program print and end.
pub(super) fn record_options(
    program: &'static Program,
    run: &Run,
    found: &Arguments,
    reader: &mut Reader<'_>,
) -> Result<bool> {
    let mut harmless = true;
    // Many programs do not look for options behind their first operand.
    let first = found.operands.iter().map(|word| word.span.start).min();
    for given in &found.options {
        // `--help` behind an option that already acts does not take that back.
        let stops = first.is_none_or(|first| first >= given.word.span.start)
            && given.choice.brings.iter().any(|bring| match bring {
                Bring::Stops { alone } => !alone || run.args.len() == 1 && !run.more,
                _ => false,
            });
        if harmless && found.strange.is_empty() && stops {
            return Ok(true);
        }
        harmless &= given.choice.is_harmless();
        let span = given
            .value
            .as_ref()
            .map_or(given.word.span, |value| given.word.span.to(value.span));
        for bring in &given.choice.brings {
            bring_about(bring, given.word.shown(), span, run, Via::Option, reader);
        }
        if let (Value::Optional(Role::Unknown | Role::Launch | Role::Shell | Role::Code), None) =
            (given.choice.value, &given.value)
        {
            let because = format!("what `{}` does with this option is not known", run.name);
            reader.doubt_option(Doubt::Setting, &given.word, because, Some(run.index));
        }
        if let (Value::Required(role) | Value::Optional(role), Some(value)) = (given.choice.value, &given.value) {
            if given
                .choice
                .spellings
                .iter()
                .any(|own| matches!(own.as_str(), "-C" | "--directory" | "--chdir"))
                && changes_directory(&run.name)
            {
                reader.is_told_to_work_in(value, run);
            }
            let before = reader.effects();
            apply_role(role, value, run, reader)?;
            reader.via_option(before);
        }
    }
    for word in &found.strange {
        let because = format!("`{}` is not known to have this option", run.name);
        reader.doubt_option(Doubt::Argument, word, because, Some(run.index));
        // Whatever the option is, what is attached to it may be a path.
        let mark = if word.prefix().starts_with('@') { 1 } else { 2 };
        let attached = word.prefix().find('=').map_or(mark, |at| at + 1);
        if word.prefix().len() > attached {
            let path = word.after(attached);
            reader.effect(
                Action::Names(path.clone()),
                path.shown(),
                word.span,
                Some(run.index),
                Via::Option,
            );
        }
    }
    let launches = program.has_launching_options;
    if program.has_risky_options || program.has_acting_operands {
        let starts = launches || program.has_launching_operands;
        for word in &found.split {
            may_be_option(word, starts, run, reader);
        }
        // Where an option or an assignment stands before the command, the rest of its words are the command.
        let begins =
            |word: &&Word| word.fields == Fields::Spread || program.has_launching_operands && !word.prefix().is_empty();
        // Others start what an option names alone: further words are their options where one of them begins as one.
        let brings =
            |word: &&Word| word.fields == Fields::Spread || program.has_launching_operands || run.name == "git";
        let split = found.split.iter().filter(brings);
        for word in split.chain(found.doubtful.iter().filter(begins)).filter(|_| starts) {
            may_bring_a_command(word, run, reader);
        }
    }
    if program.has_risky_options {
        for word in &found.doubtful {
            may_be_option(word, launches, run, reader);
        }
        // What follows an option that lacks its value is that.
        let lacks =
            |given: &super::parse::Given| matches!(given.choice.value, Value::Required(_)) && given.value.is_none();
        if run.more && (!reader.is_fed_no_options() || found.options.iter().any(lacks)) {
            may_get_options(run, launches, reader);
        }
    }
    Ok(false)
}

/// Records that a word, or a part of it, can turn out to be an option.
pub(super) fn may_be_option(word: &Word, launches: bool, run: &Run, reader: &mut Reader<'_>) {
    reader.effect(
        Action::MaybeOption(word.clone(), launches),
        word.shown(),
        word.span,
        Some(run.index),
        Via::Option,
    );
}

/// Records that a word can bring a command that the program starts, if it may be several. One that is as the shell was
/// started with it is trusted.
pub(super) fn may_bring_a_command(word: &Word, run: &Run, reader: &mut Reader<'_>) {
    if !word.may_be_several() || reader.is_ambient(word) {
        return;
    }
    let because = format!(
        "as several words it can bring a command that `{}` starts; put it in double quotes, or write the words out",
        run.name
    );
    let action = Action::Doubt(Doubt::Launch, because);
    reader.effect(action, word.shown(), word.span, Some(run.index), Via::Operand);
}

/// Records that words which are not in the text can follow, and change what the program does.
pub(super) fn may_get_options(run: &Run, launches: bool, reader: &mut Reader<'_>) {
    let word = Word::unknown(Fields::Any, "…", run.span);
    reader.effect(
        Action::MaybeOption(word, launches),
        run.name.clone(),
        run.span,
        Some(run.index),
        Via::Option,
    );
}

fn bring_always(program: &Program, run: &Run, brings: &[&Bring], reader: &mut Reader<'_>) {
    let harmless = brings.contains(&&Bring::Harmless);
    let no_network = brings.contains(&&Bring::NoNetwork);
    for bring in &program.always {
        let dropped = harmless || (no_network && matches!(bring, Bring::Network(_)));
        if !dropped {
            bring_about(bring, run.name.clone(), run.span, run, Via::Operand, reader);
        }
    }
}

/// The path of an address, with a wildcard from where the program reads escapes, braces and ranges in it.
fn spelled_by_the_program(path: Word) -> Word {
    let mut atoms = Vec::new();
    for atom in &*path.atoms {
        match atom {
            Atom::Text(text) => match text.find(['%', '{', '[']) {
                Some(at) => {
                    atoms.extend([Atom::Text(text[..at].to_owned()), Atom::Star]);
                    break;
                }
                None => atoms.push(atom.clone()),
            },
            _ => atoms.push(atom.clone()),
        }
    }
    Word {
        atoms: atoms.into(),
        ..path
    }
}

/// The program of a command, without the name of its subcommand.
fn program_of(run: &Run) -> &str {
    run.name.split(' ').next().unwrap_or_default()
}

fn bring_about(bring: &Bring, object: String, span: crate::span::Span, run: &Run, via: Via, reader: &mut Reader<'_>) {
    let action = match bring {
        Bring::Writes(what) => Action::Changes(what.clone()),
        Bring::Runs(what) => {
            // What is made as it is run shows nothing of itself.
            for word in run.args.iter().filter(|word| word.known().as_deref() == Some(PIPE)) {
                reader.unknown_launch(word, run);
            }
            let project = run.program.is_some_and(|program| program.is_for_projects);
            if project {
                // What it runs is the project's; what it is told to read is the text's.
                for word in run.args.iter().filter(|word| word.known().is_some()) {
                    reader.effect_on(Action::Code, word, Some(run.index), via);
                }
            }
            let doubt = if project { Doubt::Project } else { Doubt::Program };
            Action::Doubt(doubt, format!("it runs {what}"))
        }
        Bring::Network(what) => Action::Network(if what.is_empty() {
            run.name.clone()
        } else {
            what.clone()
        }),
        Bring::Renames => Action::Renames(Word::text(".", span)),
        Bring::Settings(instead) => {
            let of = PartsOf::Settings(instead.clone());
            return reader.in_parts(of, object, span, Some(run.index));
        }
        Bring::Reads(what) => Action::Reads(Word::unknown(Fields::Any, what.clone(), span)),
        Bring::Unknown(why) => Action::Doubt(
            if via == Via::Option {
                Doubt::Setting
            } else {
                Doubt::Argument
            },
            why.clone(),
        ),
        Bring::Pattern | Bring::Operands(_) | Bring::Stops { .. } | Bring::Harmless | Bring::NoNetwork => return,
    };
    reader.effect(action, object, span, Some(run.index), via);
}

/// Gives each operand its role, or its possible roles where earlier ones may be many.
pub(super) fn record_operands(roles: &Operands, operands: &[Word], run: &Run, reader: &mut Reader<'_>) -> Result {
    let mut unsure = false;
    let tail_from = operands.len().saturating_sub(roles.tail.len()).max(roles.head.len());
    for (at, word) in operands.iter().enumerate() {
        let role = roles.head.get(at).copied().or_else(|| {
            if at >= tail_from && !roles.tail.is_empty() {
                roles.tail.get(at - tail_from).copied()
            } else {
                roles.rest
            }
        });
        if role == Some(Role::Command) {
            return launch(&operands[at..], run, reader);
        }
        let many = word.fields != Fields::One;
        // Of a list that ends otherwise, an only operand can be both.
        let only = operands.len() == 1 && roles.rest.is_some() && roles.head.is_empty();
        if (unsure || many || only) && !roles.tail.is_empty() | roles.head[at.min(roles.head.len())..].len().gt(&0) {
            unsure = true;
            let mut possible: Vec<Role> = roles
                .head
                .iter()
                .skip(at)
                .chain(&roles.rest)
                .chain(&roles.tail)
                .copied()
                .collect();
            possible.dedup();
            for role in possible {
                if role != Role::Command {
                    apply_role(role, word, run, reader)?;
                } else {
                    reader.unknown_launch(word, run);
                }
            }
            continue;
        }
        match role {
            Some(Role::Setting) => {
                setting(word, operands.get(at + 1), run, reader)?;
                apply_role(Role::Text, word, run, reader)?;
            }
            // A pathspec that only leaves files out; what is left is looked at as a walk.
            Some(Role::Rev | Role::Read) if roles.pathspecs && leaves_out_name(word) => {}
            Some(role) => apply_role(role, word, run, reader)?,
            None => apply_role(Role::Unknown, word, run, reader)?,
        }
    }
    if run.more {
        // Further operands come from data: each could have any role that is left.
        let left = roles
            .head
            .iter()
            .skip(operands.len())
            .chain(&roles.rest)
            .chain(&roles.tail);
        for role in left.copied().collect::<Vec<_>>() {
            let word = Word::unknown(Fields::Any, MORE, run.span);
            if role == Role::Command {
                reader.unknown_launch(&word, run)
            } else {
                apply_role(role, &word, run, reader)?
            }
        }
    }
    Ok(())
}

/// What the names of settings end with whose value is a program that others start.
const PROGRAMS: [&str; 14] = [
    "browser", "command", "cmd", "editor", "git", "helper", "launcher", "linker", "pager", "program", "runner",
    "shell", "viewer", "wrapper",
];

/// A setting that is given a value: where that is a program, it is launched.
fn setting(name: &Word, next: Option<&Word>, run: &Run, reader: &mut Reader<'_>) -> Result {
    let (key, value) = match (name.prefix().split_once('='), next) {
        (Some((key, _)), _) => (key.to_owned(), name.after(key.len() + 1)),
        (None, Some(value)) => (name.prefix().to_owned(), value.clone()),
        (None, None) => return Ok(()),
    };
    if program_of(run) == "git" {
        return git_setting(&key, &value, run, reader);
    }
    let last = key.rsplit(['.', '-', '_', ':']).next().unwrap_or_default();
    match PROGRAMS.contains(&last.to_ascii_lowercase().as_str()) {
        true => launch_text(&value, run, reader),
        false => Ok(()),
    }
}

/// Whether what is not known of a word could make an address of it.
fn may_be_an_address(word: &Word) -> bool {
    let known = word.prefix();
    let scheme = known.split(':').next().unwrap_or_default();
    let begins = scheme
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"+-".contains(&byte));
    let unknown = |atom: &crate::word::Atom| match atom {
        crate::word::Atom::Hidden(hidden) => !matches!(hidden, crate::word::Hidden::Number),
        crate::word::Atom::OneOf(choices) => choices
            .iter()
            .flatten()
            .any(|atom| !matches!(atom, crate::word::Atom::Text(_))),
        _ => false,
    };
    begins && word.atoms.iter().any(unknown)
}

/// Records what a word in this role means.
pub(super) fn apply_role(role: Role, word: &Word, run: &Run, reader: &mut Reader<'_>) -> Result {
    let by = Some(run.index);
    let is_rough = run.program.is_some_and(|program| program.is_rough);
    let data = matches!(
        role,
        Role::Text
            | Role::Pattern
            | Role::Except
            | Role::ExceptDirs
            | Role::LeftOut
            | Role::LeftOutEach
            | Role::Ending
            | Role::Kind
            | Role::Depth
    );
    if data && !is_rough && !word.prefix().starts_with('@') {
        return Ok(());
    }
    let (object, span) = (word.shown(), word.span);
    if word.prefix().starts_with('@') && !matches!(role, Role::At | Role::Header) {
        // Many programs read further arguments from such a file.
        reader.effect(Action::Names(word.after(1)), object.clone(), span, by, Via::Operand);
    }
    let may_be_a_path = matches!(
        role,
        Role::Text | Role::Host | Role::State | Role::Unknown | Role::Read | Role::At | Role::Header
    );
    if may_be_a_path && word.known().is_some() && is_rough {
        reader.effect(Action::Mentions(word.clone()), object.clone(), span, by, Via::Operand);
    }
    let action = match role {
        Role::Text
        | Role::Pattern
        | Role::Except
        | Role::ExceptDirs
        | Role::LeftOut
        | Role::LeftOutEach
        | Role::Ending
        | Role::Kind
        | Role::Depth => return Ok(()),
        Role::Picked if word.prefix().starts_with('!') => return Ok(()),
        Role::Moved | Role::Linked => {
            reader.effect(Action::Renames(word.clone()), object.clone(), span, by, Via::Operand);
            if role == Role::Linked {
                // A symbolic link is read from where it lies, and not from here.
                for inner in inner_paths(word) {
                    reader.effect(Action::Renames(inner), object.clone(), span, by, Via::Option);
                }
            }
            if role == Role::Moved {
                reader.in_parts(PartsOf::Tree(word.clone()), object.clone(), span, by);
                Action::Writes(word.clone())
            } else {
                Action::Reads(word.clone())
            }
        }
        Role::Mounted => {
            let text = word.prefix();
            let source = match ["source=", "src="]
                .iter()
                .find_map(|key| Some(text.find(key)? + key.len()))
            {
                Some(at) => Word::text(text[at..].split(',').next().unwrap_or_default(), span),
                None => match text.find(':') {
                    Some(at) => Word::text(&text[..at], span),
                    None => word.clone(),
                },
            };
            let walk = Walk {
                root: Some(source.clone()),
                ..Walk::default()
            };
            reader.walks(walk, run);
            Action::Reads(source)
        }
        Role::Repository => {
            if !matches!(word.known().as_deref(), Some(".git" | "./.git")) {
                let because = "the text chooses a repository, whose settings can run programs";
                reader.effect(
                    Action::Doubt(Doubt::Program, because.to_owned()),
                    object.clone(),
                    span,
                    by,
                    Via::Option,
                );
            }
            Action::Names(word.clone())
        }
        Role::Removed => {
            reader.in_parts(PartsOf::Tree(word.clone()), object.clone(), span, by);
            Action::Writes(word.clone())
        }
        Role::Read if run.name.contains("awk") && word.prefix().starts_with("/inet") => Action::Network(object.clone()),
        Role::Read => {
            // An expression where a file could stand, as behind `yq eval`.
            if word.prefix().contains('(') {
                language(word, true, run, reader);
            }
            Action::Reads(word.clone())
        }
        Role::Piped if word.prefix().starts_with(['|', '!']) => {
            reader.shell_text(&word.after(1), by)?;
            Action::Writes(word.clone())
        }
        Role::Write | Role::Piped => Action::Writes(word.clone()),
        Role::Path => Action::Names(word.clone()),
        Role::Rev => Action::Revision(word.clone()),
        Role::Command => return launch(std::slice::from_ref(word), run, reader),
        Role::State => {
            reader.effect(Action::Names(word.clone()), object.clone(), span, by, Via::Operand);
            Action::Changes(object.clone())
        }
        Role::Glob | Role::Only | Role::Picked => return found_names(word, run, reader),
        Role::List => {
            let further = Word::unknown(Fields::Any, format!("the files that `{object}` names"), span);
            reader.effect(Action::Reads(further), object.clone(), span, by, Via::Operand);
            Action::Reads(word.clone())
        }
        Role::At => match word.prefix().find(['@', '<']) {
            Some(at) => {
                let path = word.after(at + 1);
                // curl takes quotes around the path off, and settings of the part follow it.
                let bare = path.known().and_then(|text| {
                    let inner = text.strip_prefix('"')?;
                    Some(Word::text(inner.split(['"', '\\']).next().unwrap_or_default(), span))
                });
                Action::Reads(bare.unwrap_or(path))
            }
            None if word.known().is_some() => return Ok(()),
            None => Action::Reads(word.clone()),
        },
        // A file is named at its beginning alone, whatever variable follows in it.
        Role::Header => match word.prefix().strip_prefix('@') {
            Some(_) => Action::Reads(word.after(1)),
            None if word.known().is_some() || word.prefix().contains(':') => return Ok(()),
            None => Action::Reads(word.clone()),
        },
        Role::Launch => return launch_text(word, run, reader),
        Role::Shell => {
            language(word, false, run, reader);
            return reader.shell_text(word, by);
        }
        Role::Code => return super::code::code(word, run, reader),
        Role::Sed => return sed::sed(word, run, reader),
        Role::Awk => return awk::awk(word, run, reader),
        Role::Var => return reader.named(word, vec![crate::word::Atom::Hidden(Hidden::Anything)]),
        Role::Host => {
            if let Some(at) = ["ext::", "fd::"]
                .iter()
                .find(|scheme| word.prefix().starts_with(**scheme))
                .map(|scheme| scheme.len())
            {
                // git's transport that is any command.
                launch_text(&word.after(at), run, reader)?;
            }
            if word.prefix().starts_with(['.', '/']) {
                // A repository here, of which a copy is made.
                reader.effect(Action::Renames(word.clone()), object.clone(), span, by, Via::Operand);
            }
            if word.prefix().starts_with("file://") {
                let read = spelled_by_the_program(word.after("file://".len()));
                reader.effect(Action::Reads(read), object.clone(), span, by, Via::Operand);
            }
            Action::Network(object.clone())
        }
        Role::Query => {
            language(word, false, run, reader);
            Action::Code(word.clone())
        }
        Role::Expression => {
            language(word, true, run, reader);
            return Ok(());
        }
        Role::ReadUrl if word.prefix().contains("://") => Action::Network(object.clone()),
        Role::ReadUrl if may_be_an_address(word) => {
            let because = "it could be an address, which is fetched; write `./` before the name of a file";
            reader.doubt(Doubt::Argument, object.clone(), because, span, by);
            Action::Reads(word.clone())
        }
        Role::Below | Role::Besides | Role::ReadUrl => Action::Reads(word.clone()),
        Role::Setting => return setting(word, None, run, reader),
        Role::GitConfig => return git_config(word, run, reader),
        Role::GitFormat => {
            git_format(word, run, reader);
            return Ok(());
        }
        Role::Unknown => {
            language(word, false, run, reader);
            // Whatever it is, it may be a path, or a text with paths in it.
            reader.effect(Action::Code(word.clone()), object.clone(), span, by, Via::Operand);
            reader.effect(Action::Names(word.clone()), object.clone(), span, by, Via::Operand);
            Action::Doubt(
                Doubt::Argument,
                format!("what `{}` does with this argument is not known", run.name),
            )
        }
    };
    reader.effect(action, object, span, by, Via::Operand);
    Ok(())
}

/// What a relative path names from directories that its beginning leads to.
fn inner_paths(word: &Word) -> Vec<Word> {
    let Some(text) = word.known().filter(|text| !text.starts_with('/')) else {
        return Vec::new();
    };
    let inner = text
        .match_indices('/')
        .map(|(at, _)| text[at + 1..].trim_start_matches('/'));
    inner
        .filter(|path| !path.is_empty())
        .map(|path| Word::text(path, word.span))
        .collect()
}

/// Whether `-C` makes this program work in another directory.
fn changes_directory(name: &str) -> bool {
    matches!(
        name,
        "git"
            | "make"
            | "gmake"
            | "tar"
            | "env"
            | "ninja"
            | "cargo"
            | "pnpm"
            | "yarn"
            | "npm"
            | "uv"
            | "meson"
            | "go"
            | "bsdtar"
    )
}

/// A pattern that the program matches against names that it finds by itself.
pub(super) fn found_names(word: &Word, run: &Run, reader: &mut Reader<'_>) -> Result {
    // Walking through everything passes; a pattern that is meant for hidden names does not. What it
    // is meant for shows with its wildcards filled in.
    if let Some(text) = word.known().filter(|text| !text.starts_with('!')) {
        for filler in ["", "x"] {
            let named = Word::text(text.replace(['*', '?'], filler), word.span);
            reader.effect(
                Action::Names(named),
                word.shown(),
                word.span,
                Some(run.index),
                Via::Operand,
            );
        }
    }
    Ok(())
}
