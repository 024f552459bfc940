//! The few programs whose arguments follow no table.

use super::apply::{apply_role, may_get_options, record};
use super::parse::{parse, parse_leading};
use super::start::launch;
use super::table::{Program, Role};
use crate::reader::{Launch, Reader, Run};
use crate::reading::{Action, Doubt, MORE, Splits, Via};
use crate::screen::Unreadable;
use crate::word::{Atom, Fields, Hidden, Word, spaced};

/// Applies the function of this name; false if the table says the rest.
pub(crate) fn special(
    name: &str,
    program: &'static Program,
    run: &Run,
    reader: &mut Reader<'_>,
) -> Result<bool, Unreadable> {
    match name {
        "find" => super::find_program::find(run, reader).map(|()| true),
        "dd" => Ok(dd(run, reader)),
        "test" => Ok(test(run, reader)),
        "tar" => tar(program, run, reader).map(|()| true),
        "package" => package(program, run, reader).map(|()| true),
        "xargs" => xargs(program, run, reader).map(|()| true),
        "parallel" => parallel(program, run, reader),
        "compressor" => compressor(program, &["-t", "--test", "-l", "--list"], run, reader).map(|()| true),
        "lz4" => compressor(program, &["-t", "--test", "--list"], run, reader).map(|()| true),
        "less" => less(program, run, reader).map(|()| true),
        "watch" => watch(program, run, reader).map(|()| true),
        "flock" => flock(program, run, reader).map(|()| true),
        "sysctl" => Ok(sysctl(run, reader)),
        "ip" => ip(run, reader).map(|()| true),
        "interpreter" => interpreter(program, run, reader).map(|()| true),
        "ssh" => ssh(program, run, reader).map(|()| true),
        "fd" => fd(program, run, reader).map(|()| true),
        "tree" => Ok(tree(run, reader)),
        "cargo-fmt" => cargo_fmt(program, run, reader),
        "compiler" => Ok(compiler(program, run, reader)),
        "submodule-foreach" => foreach(run, reader).map(|()| true),
        "for-each-repo" => for_each_repo(program, run, reader).map(|()| true),
        _ => {
            let because = format!("how `{}` reads its arguments is not known", run.name);
            reader.doubt(Doubt::Setting, run.name.clone(), because, run.span, Some(run.index));
            Ok(true)
        }
    }
}

/// `dd if=… of=…`: operands are settings.
fn dd(run: &Run, reader: &mut Reader<'_>) -> bool {
    if run.more {
        may_get_options(run, false, reader);
    }
    for word in &run.args {
        let (object, by) = (word.shown(), Some(run.index));
        let setting = word.prefix().split_once('=').map(|(name, _)| name);
        if word.fields != Fields::One && word.known().is_none() {
            // As several words it is several settings.
            reader.effect(
                Action::MaybeOption(word.clone(), false),
                object.clone(),
                word.span,
                by,
                Via::Operand,
            );
        }
        let action = match setting {
            Some("if") => Action::Reads(word.after(3)),
            Some("of") => Action::Writes(word.after(3)),
            Some(
                "bs" | "ibs" | "obs" | "cbs" | "count" | "skip" | "seek" | "iseek" | "oseek" | "conv" | "iflag"
                | "oflag" | "status",
            ) => continue,
            _ if matches!(word.known().as_deref(), Some("--help" | "--version")) => return true,
            Some(_) | None => Action::Doubt(Doubt::Argument, "`dd` is not known to have this setting".to_owned()),
        };
        reader.effect(action, object, word.span, by, Via::Operand);
    }
    true
}

/// `cargo fmt`: a check that is asked of rustfmt, behind `--`, is one of its own.
fn cargo_fmt(program: &'static Program, run: &Run, reader: &mut Reader<'_>) -> Result<bool, Unreadable> {
    let Some(at) = run.args.iter().position(|word| word.known().as_deref() == Some("--")) else {
        return Ok(false);
    };
    let (own, of_rustfmt) = (&run.args[..at], &run.args[at + 1..]);
    let shows = |word: &Word| {
        word.known().is_some_and(|text| {
            matches!(
                &*text,
                "--check" | "-l" | "--files-with-diff" | "-q" | "--quiet" | "-v" | "--verbose"
            ) || text.starts_with("--color=")
        })
    };
    if !of_rustfmt.iter().all(shows) {
        return Ok(false);
    }
    let checks = of_rustfmt
        .iter()
        .filter(|word| word.known().as_deref() == Some("--check"));
    let inner = Run {
        args: own.iter().chain(checks.take(1)).cloned().collect(),
        ..run.clone()
    };
    let found = parse(program, &inner.args);
    record(program, &inner, found, reader)?;
    Ok(true)
}

/// The linker reads files that its options name, and quotes from them what it does not understand.
fn linker_options(found: &super::parse::Arguments, run: &Run, reader: &mut Reader<'_>) {
    for given in &found.options {
        let of_linker = given.is_one_of(&["-Wl,", "-Xlinker"]);
        let Some(text) = given.value.as_ref().filter(|_| of_linker).and_then(Word::known) else {
            continue;
        };
        for part in text.split([',', '=']) {
            // Options with an attached value: scripts, symbol files and libraries.
            let joined = part
                .strip_prefix('-')
                .and_then(|rest| rest.strip_prefix(['c', 'R', 'T', 'l']));
            let path = match joined {
                Some(value) => value.trim_start_matches(':'),
                None if part.starts_with('-') => continue,
                None => part.trim_start_matches('@'),
            };
            if !path.is_empty() {
                let path = Word::text(path, given.word.span);
                reader.effect(
                    Action::Reads(path),
                    given.word.shown(),
                    given.word.span,
                    Some(run.index),
                    Via::Option,
                );
            }
        }
    }
}

/// A compiler that only looks: more options, other than those, may come from `@FILE`, and `cpp` writes its second operand.
fn compiler(program: &'static Program, run: &Run, reader: &mut Reader<'_>) -> bool {
    let found = parse(program, &run.args);
    let only_looks = found.has(&["-E", "-fsyntax-only", "-M", "-MM"]);
    let by = Some(run.index);
    linker_options(&found, run, reader);
    if !only_looks {
        return false;
    }
    for word in &found.operands {
        if word.prefix().is_empty() || word.prefix().starts_with('@') {
            let because = "more options may come from a file that is named behind `@`; name the sources one by one";
            let action = Action::Doubt(Doubt::Setting, because.to_owned());
            reader.effect(action, word.shown(), word.span, by, Via::Operand);
        }
    }
    // Of a module, Fortran writes a file even then.
    let of_fortran = |word: &Word| {
        let extension = word
            .known()
            .and_then(|name| Some(name.rsplit_once('.')?.1.to_ascii_lowercase()));
        extension.is_some_and(|extension| {
            matches!(
                extension.as_str(),
                "f" | "for" | "ftn" | "fpp" | "f90" | "f95" | "f03" | "f08" | "f18"
            )
        })
    };
    let of_c = |word: &Word| {
        word.known().is_some_and(|language| {
            ["c", "c++", "cpp-output", "objective-c", "assembler"].contains(&&*language)
                || language.starts_with("c-")
                || language.starts_with("c++-")
        })
    };
    let named = found
        .options
        .iter()
        .filter(|given| given.choice.spellings.iter().any(|spelling| spelling == "-x"));
    let is_c = named.filter_map(|given| given.value.as_ref()).all(of_c);
    if run.name == "gfortran" || !is_c || found.operands.iter().any(of_fortran) {
        let action = Action::Writes(Word::text(".", run.span));
        reader.effect(
            action,
            "the files of Fortran's modules".to_owned(),
            run.span,
            by,
            Via::Operand,
        );
    }
    if run.name == "cpp" {
        for word in found.operands.iter().skip(1) {
            reader.effect_on(Action::Writes, word, by, Via::Operand);
        }
    }
    false
}

/// `test` and `[`: they only look, at the files that their operators name.
fn test(run: &Run, reader: &mut Reader<'_>) -> bool {
    for pair in run.args.windows(2) {
        let file = matches!(
            pair[0].known().as_deref(),
            Some(
                "-a" | "-b"
                    | "-c"
                    | "-d"
                    | "-e"
                    | "-f"
                    | "-g"
                    | "-h"
                    | "-k"
                    | "-p"
                    | "-r"
                    | "-s"
                    | "-u"
                    | "-w"
                    | "-x"
                    | "-G"
                    | "-L"
                    | "-N"
                    | "-O"
                    | "-S"
            )
        );
        if file {
            reader.effect(
                Action::Names(pair[1].clone()),
                pair[1].shown(),
                pair[1].span,
                Some(run.index),
                Via::Operand,
            );
        }
    }
    true
}

/// `tar`: what its archive and its operands are depends on the mode.
fn tar(program: &'static Program, run: &Run, reader: &mut Reader<'_>) -> Result<(), Unreadable> {
    let mut found = parse(program, &run.args);
    let is = |choice: &super::table::Choice, names: &[&str]| {
        choice.spellings.iter().any(|own| names.contains(&own.as_str()))
    };
    let given = |names: &[&str]| found.options.iter().any(|given| is(given.choice, names));
    let by = Some(run.index);
    let creates = given(&[
        "-c",
        "--create",
        "-r",
        "--append",
        "-u",
        "--update",
        "-A",
        "--catenate",
        "--concatenate",
        "--delete",
    ]);
    let extracts = given(&["-x", "--extract", "--get"]) && !given(&["-O", "--to-stdout"]);
    let reads = given(&["-t", "--list", "-d", "--diff", "--compare"]) || given(&["-x", "--extract", "--get"]);
    if !creates
        && !reads
        && !found.options.is_empty()
        && !given(&["--help", "--version", "-?", "--usage", "--show-defaults"])
    {
        reader.doubt(
            Doubt::Argument,
            run.name.clone(),
            "no mode of `tar` is given for certain",
            run.span,
            by,
        );
    }
    // A bundle of letters without a dash takes its values from the words behind it, in order.
    if let Some(first) = run.args.first().and_then(Word::known)
        && !first.starts_with('-')
        && first.chars().filter(|flag| "fbCFgHIKNTVX".contains(*flag)).count() > 1
    {
        reader.doubt(
            Doubt::Argument,
            run.name.clone(),
            "several values follow one bundle of letters",
            run.span,
            by,
        );
    }
    let (archives, options): (Vec<_>, Vec<_>) = found
        .options
        .into_iter()
        .partition(|given| is(given.choice, &["-f", "--file"]));
    for archive in archives {
        let Some(value) = archive.value else { continue };
        if value.known().as_deref() == Some("-") {
            continue;
        }
        if value.known().is_none_or(|name| name.contains(':')) && value.prefix().contains(':') {
            reader.effect(
                Action::Network(value.shown()),
                value.shown(),
                value.span,
                by,
                Via::Option,
            );
        }
        let action = if creates {
            Action::Writes(value.clone())
        } else {
            Action::Reads(value.clone())
        };
        reader.effect(action, value.shown(), value.span, by, Via::Option);
    }
    found.options = options;
    let operands = std::mem::take(&mut found.operands);
    for given in found.options.iter().filter(|given| is(given.choice, &["-C"])) {
        if let Some(value) = &given.value {
            reader.is_told_to_work_in(value, run);
        }
    }
    if creates {
        let named = super::parse::Arguments {
            operands: from_one_directory(&found, &operands).unwrap_or_else(|| operands.clone()),
            ..found.clone()
        };
        super::walks::record(program, &program.operands, &named, run, reader);
    }
    let removes = found.options.iter().any(|given| is(given.choice, &["--remove-files"]));
    for word in &operands {
        apply_role(
            if removes {
                Role::Write
            } else if creates {
                Role::Read
            } else {
                Role::Path
            },
            word,
            run,
            reader,
        )?;
    }
    if found
        .options
        .iter()
        .any(|given| is(given.choice, &["-T", "--files-from"]))
    {
        let because = "a list of files for `tar` may hold options that run commands".to_owned();
        reader.effect(
            Action::Doubt(Doubt::Setting, because),
            run.name.clone(),
            run.span,
            by,
            Via::Option,
        );
    }
    if extracts {
        let into = Word::text(".", run.span);
        reader.effect(Action::Writes(into), "extracted files", run.span, by, Via::Operand);
    }
    record(program, run, found, reader)
}

/// The operands of a `tar` as they are named from where it is started, if one `-C` in front of them all says where
/// they are looked for.
fn from_one_directory(found: &super::parse::Arguments, operands: &[Word]) -> Option<Vec<Word>> {
    let mut changes = found
        .options
        .iter()
        .filter(|given| given.choice.spellings.iter().any(|own| own == "-C"));
    let (only, None) = (changes.next()?, changes.next()) else {
        return None;
    };
    let directory = only.value.as_ref()?;
    let from = directory
        .known()
        .filter(|from| !from.is_empty() && !from.starts_with(['-', '~']))?;
    let below = |word: &Word| {
        let path = word.known().filter(|_| word.span.start > directory.span.start)?;
        Some(match path.starts_with('/') || word.holds_here() {
            true => word.clone(),
            false => Word::text(format!("{from}/{path}"), word.span),
        })
    };
    operands.iter().map(below).collect()
}

/// `xargs`: it puts data behind, or into, a command.
fn xargs(program: &'static Program, run: &Run, reader: &mut Reader<'_>) -> Result<(), Unreadable> {
    let mut found = parse(program, &run.args);
    let mut replace = None;
    for given in &found.options {
        if given.is_one_of(&["-I", "-i", "--replace"]) {
            replace = Some(
                given
                    .value
                    .as_ref()
                    .map_or(Some("{}".to_owned()), |value| value.known().map(String::from)),
            );
        }
    }
    let (nul, other) = (
        found.has(&["-0", "--null"]),
        found.has(&["-d", "--delimiter", "-a", "--arg-file", "-E", "-e"]),
    );
    let mut argv = std::mem::take(&mut found.operands);
    let fed = match replace.is_none() && !other && found.strange.is_empty() {
        true => reader.takes_names(run.index, run.span, |by_nul| match nul && by_nul {
            true => Splits::Nowhere,
            false => Splits::Blanks,
        }),
        false => None,
    };
    let understood = found.strange.is_empty();
    record(program, run, found, reader)?;
    let more = match replace {
        None => true,
        Some(None) => {
            argv.first()
                .cloned()
                .iter()
                .for_each(|word| reader.unknown_launch(word, run));
            true
        }
        Some(Some(mark)) => {
            // A whole line, without the blanks at its beginning, and with quotes and backslashes taken off.
            let names = match nul || other || !understood {
                true => None,
                false => reader.plain_names(run.index, run.span),
            };
            let data = names.unwrap_or_else(|| vec![Atom::Hidden(Hidden::Anything)]);
            for word in &mut argv {
                fill_in(word, &mark, &data);
            }
            false
        }
    };
    if argv.is_empty() {
        return Ok(());
    }
    let span = argv.iter().fold(argv[0].span, |all, word| all.to(word.span));
    reader.launch_fed(
        Launch {
            argv,
            span,
            functions: false,
            more: more || run.more,
        },
        fed,
    )
}

/// `parallel COMMAND ::: ARGUMENT…`; false where the arguments come from its input. With files of arguments, or marks
/// for parts of them, what it starts is not known.
fn parallel(program: &'static Program, run: &Run, reader: &mut Reader<'_>) -> Result<bool, Unreadable> {
    let mut found = parse(program, &run.args);
    let mark = |word: &Word| word.known().is_some_and(|text| text.starts_with(":::"));
    let Some(at) = found.operands.iter().position(mark) else {
        let semaphore = |word: &Word| word.known().as_deref() == Some("--semaphore");
        if (run.name == "sem" || run.args.iter().any(semaphore)) && !found.operands.is_empty() {
            // Without any input, it runs the words that it is given, put together, with a shell.
            let argv = std::mem::take(&mut found.operands);
            record(program, run, found, reader)?;
            return match joined_text(&argv) {
                Some(text) => reader.shell_text(&text, Some(run.index)).map(|()| true),
                None => Ok(true),
            };
        }
        // Its input brings the arguments.
        let mut argv = std::mem::take(&mut found.operands);
        record(program, run, found, reader)?;
        let Some(first) = argv.first().cloned() else {
            return Ok(true);
        };
        let mut is_marked = false;
        for word in &mut argv {
            is_marked |= fill_in(word, "{}", &[Atom::Hidden(Hidden::Anything)]);
        }
        let span = argv.iter().fold(first.span, |all, word| all.to(word.span));
        return reader
            .launch(Launch {
                argv,
                span,
                functions: false,
                more: !is_marked || run.more,
            })
            .map(|()| true);
    };
    let given = found.operands.split_off(at);
    let mut argv = std::mem::take(&mut found.operands);
    let plain = |word: &Word| {
        word.known()
            // Joined with spaces and given to a shell as it stands.
            .is_some_and(|text| {
                text.bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"_./=:,@%+-".contains(&byte))
            })
    };
    let understood = found.strange.is_empty() && found.doubtful.is_empty();
    let only = given.iter().filter(|word| mark(word)).count() == 1 && given[0].known().as_deref() == Some(":::");
    let known = given[1..].iter().map(Word::known).collect::<Option<Vec<_>>>();
    let marked = |word: &Word| word.known().as_deref() == Some("{}");
    let readable = argv.iter().all(|word| plain(word) || marked(word)) && !argv.is_empty();
    let Some(known) = known.filter(|known| only && understood && readable && known.len() <= 24 && !run.more) else {
        reader.unknown_launch(&given[0], run);
        return Ok(false);
    };
    let each = Atom::OneOf(known.iter().map(|text| vec![Atom::Text(text.to_string())]).collect());
    let names = argv.iter().any(marked);
    let one = Word {
        atoms: [each].into(),
        ..Word::unknown(Fields::One, MORE, run.span)
    };
    for word in argv.iter_mut().filter(|word| marked(word)) {
        *word = one.clone();
    }
    if !names {
        argv.push(one);
    }
    record(program, run, found, reader)?;
    launch(&argv, run, reader)?;
    Ok(true)
}

/// `npx TOOL`: it runs a package, which reads the directories that the tool of that name reads.
fn package(program: &'static Program, run: &Run, reader: &mut Reader<'_>) -> Result<(), Unreadable> {
    let found = parse(program, &run.args);
    let operands = found.operands.clone();
    record(program, run, found, reader)?;
    let Some((first, rest)) = operands.split_first() else {
        return Ok(());
    };
    let name = first.known().unwrap_or_default();
    let name = name.split_once('@').map_or(name.as_ref(), |(name, _)| name);
    if let Some(tool) = super::table::find(name) {
        super::walks::record(tool, &tool.operands, &parse(tool, rest), run, reader);
    }
    Ok(())
}

/// Puts data where a word holds a mark, also where others of its parts are not known; false if it holds none.
fn fill_in(word: &mut Word, mark: &str, data: &[Atom]) -> bool {
    let filled = with_data(&word.atoms, mark, data);
    let is_marked = filled != *word.atoms;
    if is_marked {
        word.written = word.shown().into();
        word.atoms = filled.into();
    }
    is_marked
}

fn with_data(atoms: &[Atom], mark: &str, data: &[Atom]) -> Vec<Atom> {
    let mut filled = Vec::new();
    for atom in atoms {
        match atom {
            Atom::Text(text) => {
                for (index, part) in text.split(mark).enumerate() {
                    if index > 0 {
                        filled.extend_from_slice(data);
                    }
                    if !part.is_empty() {
                        filled.push(Atom::Text(part.to_owned()));
                    }
                }
            }
            Atom::OneOf(choices) => {
                let choices = choices.iter().map(|choice| with_data(choice, mark, data));
                filled.push(Atom::OneOf(choices.collect()));
            }
            other => filled.push(other.clone()),
        }
    }
    filled
}

/// Options of Python behind which `-m` names a module all the same.
const MODULES_FOLLOW: [&str; 8] = ["-B", "-I", "-O", "-OO", "-P", "-q", "-s", "-u"];

/// Those with which `-m` does not look for the module in the current directory first.
const MODULES_SAFE: [&str; 2] = ["-I", "-P"];

/// Whether a word is options of one letter.
fn is_short(text: &str) -> bool {
    text.starts_with('-') && !text.starts_with("--")
}

/// Modules of Python that run what they are fed.
const READS_CODE: [&str; 9] = [
    "asyncio", "bpython", "code", "idlelib", "IPython", "pdb", "ptpython", "sqlite3", "xonsh",
];

/// An interpreter of another language: its code is in an option, a file, or its input.
fn interpreter(program: &'static Program, run: &Run, reader: &mut Reader<'_>) -> Result<(), Unreadable> {
    let prints = |text: &str| matches!(text, "--version" | "-V" | "-v" | "--help" | "-h");
    // tclsh would run a file of that name.
    if run.args.len() == 1
        && !run.more
        && !run.name.starts_with("tclsh")
        && run.args[0].known().is_some_and(|text| prints(&text))
    {
        return Ok(());
    }
    // A module that is a program of its own: a test runner, a checker, a package manager.
    if let Some(at) = run.args.iter().position(|word| word.known().as_deref() == Some("-m"))
        && run.args[..at]
            .iter()
            .all(|word| word.known().is_some_and(|text| MODULES_FOLLOW.contains(&text.as_ref())))
        && let Some(name) = run.args.get(at + 1).and_then(Word::known)
        && let Some(module) =
            super::table::find(&name).filter(|found| found.is_for_projects && !found.is_interpreter(&name))
    {
        let safe = run.args[..at]
            .iter()
            .any(|word| word.known().is_some_and(|text| MODULES_SAFE.contains(&text.as_ref())));
        if !safe {
            let because = format!("`-m` runs a `{name}` of the current directory, if there is one");
            reader.doubt(Doubt::Project, name.to_string(), because, run.span, Some(run.index));
        }
        let run = Run {
            name: name.into_owned(),
            program: Some(module),
            args: run.args[at + 2..].to_vec(),
            ..run.clone()
        };
        return super::apply::apply(module, &run, reader);
    }
    // Some check a file and run nothing of it (`php -l`), others have subcommands (`bun test`).
    let found = parse(program, &run.args);
    let checks = found
        .options
        .iter()
        .any(|given| given.choice.brings.contains(&super::table::Bring::Harmless));
    if checks && found.strange.is_empty() && found.doubtful.is_empty() && !run.more
        || super::parse::find_sub(program, &found.operands).is_some()
    {
        return match program.subs.is_empty() {
            true => record(program, run, found, reader),
            false => super::apply::subcommand(program, run, found, reader),
        };
    }
    let because = format!("`{}` runs code, and what that does is not read here", run.name);
    reader.doubt(Doubt::Program, run.name.clone(), because, run.span, Some(run.index));
    let mut inline = false;
    for (at, word) in run.args.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|at| run.args[at].known());
        // `-c`, `-e`, `-ne`, `-pe`, `-r`, `--eval`: what follows, or is attached, is code.
        let asks = |text: &str| {
            matches!(text, "--eval" | "--print" | "eval") || is_short(text) && text.ends_with(['c', 'e', 'E', 'r', 'p'])
        };
        let follows = before.as_deref().is_some_and(asks);
        let looks = word
            .known()
            .is_some_and(|text| text.contains([' ', '(', ';', '\n', '`', '"', '\'']));
        if follows || looks {
            inline = true;
            super::code::code(word, run, reader)?;
        }
        // To `-n`, `-p` and `<>` such a name is a command.
        if run.name.starts_with("perl") {
            let text = word.known().unwrap_or_default().into_owned();
            let pipe = text.trim().strip_suffix('|').or_else(|| text.trim().strip_prefix('|'));
            if let Some(command) = pipe.filter(|_| at > 0 && !follows) {
                reader.shell_text(&Word::text(command, word.span), Some(run.index))?;
            }
        }
        // Some modules run what they are fed, and others a file or module, which can be that.
        let fed = |word: &Word| {
            super::code::is_standard_input(word) || word.known().is_none_or(|name| READS_CODE.contains(&&*name))
        };
        let module = before
            .as_deref()
            .is_some_and(|option| is_short(option) && option.ends_with('m'));
        let attached = word.known().is_some_and(|text| {
            is_short(&text) && text.split_once('m').is_some_and(|(_, name)| READS_CODE.contains(&name))
        });
        if attached || module && run.args[at..].iter().any(fed) {
            return reader.code_from_input(run);
        }
        // With `-i` these go on with what they are fed; to others it is to change files in place.
        let goes_on = ["python", "pypy", "node", "lua", "julia"]
            .iter()
            .any(|name| run.name.starts_with(name));
        let option = |text: &str| text == "--interactive" || is_short(text) && text.contains('i');
        if goes_on && !inline && word.known().is_some_and(|text| option(&text)) {
            reader.code_from_input(run)?;
        }
        // In an address of this kind the code is spelled in another way.
        if word.known().is_some_and(|text| text.contains("data:")) {
            reader.unknown_launch(word, run);
        }
        inline |= word.known().as_deref() == Some("-m");
    }
    if inline {
        return Ok(());
    }
    let found = parse(program, &run.args);
    let file = found.operands.iter().find(|word| {
        word.known().as_deref() != Some("-") && !matches!(word.known().as_deref(), Some("run" | "test" | "install"))
    });
    match file {
        Some(file) if super::code::is_standard_input(file) => reader.code_from_input(run),
        Some(file) => {
            super::code::file(file, run, reader);
            if file.fields.is_any() {
                reader.unknown_launch(file, run);
            }
            Ok(())
        }
        None => {
            let stops = |given: &super::parse::Given| {
                given
                    .choice
                    .brings
                    .iter()
                    .any(|bring| matches!(bring, super::table::Bring::Stops { .. }))
            };
            // These run files that they find.
            let finds = |word: &Word| matches!(word.known().as_deref(), Some("--test" | "--run"));
            match run.more || !(found.options.iter().any(stops) || run.args.iter().any(finds)) {
                true => reader.code_from_input(run),
                false => Ok(()),
            }
        }
    }
}

/// Programs that compress: of several modes the last one counts.
fn compressor(program: &'static Program, reads: &[&str], run: &Run, reader: &mut Reader<'_>) -> Result<(), Unreadable> {
    let mut found = parse(program, &run.args);
    let is = |choice: &super::table::Choice, names: &[&str]| {
        choice.spellings.iter().any(|own| names.contains(&own.as_str()))
    };
    let mode = found.options.iter().rev().find_map(|given| {
        if is(given.choice, reads) {
            Some(true)
        } else {
            is(
                given.choice,
                &["-d", "--decompress", "--uncompress", "-z", "--compress"],
            )
            .then_some(false)
        }
    });
    let to_output = found
        .options
        .iter()
        .any(|given| is(given.choice, &["-c", "--stdout", "--to-stdout"]));
    super::walks::record(program, &program.operands, &found, run, reader);
    let operands = std::mem::take(&mut found.operands);
    record(program, run, found, reader)?;
    let role = if mode == Some(true) || to_output {
        Role::Read
    } else {
        Role::Write
    };
    operands.iter().try_for_each(|word| apply_role(role, word, run, reader))
}

/// `ip`: showing is harmless, everything else configures the network.
fn ip(run: &Run, reader: &mut Reader<'_>) -> Result<(), Unreadable> {
    if run.more {
        may_get_options(run, true, reader);
    }
    let by = Some(run.index);
    let words: Vec<_> = run
        .args
        .iter()
        .map(|word| word.known().map(|text| text.into_owned()))
        .collect();
    let Some(words) = words.into_iter().collect::<Option<Vec<String>>>() else {
        reader.doubt(
            Doubt::Launch,
            run.name.clone(),
            "not all of what `ip` is to do is in the text",
            run.span,
            by,
        );
        return Ok(());
    };
    let mut rest = words.iter().map(String::as_str).peekable();
    let mut every_namespace = false;
    while let Some(option) = rest.next_if(|word| word.starts_with('-')) {
        match option {
            "-n" | "-netns" | "-f" | "-family" | "-l" | "-loops" | "-rc" | "-rcvbuf" => {
                rest.next();
            }
            "-a" | "-all" => every_namespace = true,
            "-4" | "-6" | "-0" | "-B" | "-M" | "-s" | "-stats" | "-d" | "-details" | "-o" | "-oneline" | "-r"
            | "-resolve" | "-t" | "-timestamp" | "-ts" | "-tshort" | "-h" | "-human" | "-iec" | "-br" | "-brief"
            | "-j" | "-json" | "-p" | "-pretty" | "-c" | "-color" | "-color=always" | "-color=auto"
            | "-color=never" | "-N" | "-Numeric" | "-V" | "-Version" | "-echo" | "-help" => {}
            // `ip` takes the beginning of an option for all of it.
            _ => reader.effect(
                Action::Doubt(
                    Doubt::Setting,
                    "`ip` may read what to do from a file by this option".to_owned(),
                ),
                option,
                run.span,
                by,
                Via::Option,
            ),
        }
    }
    let left = run.args.len() - rest.clone().count();
    let begins =
        |whole: &str, word: Option<&&str>| word.is_some_and(|word| !word.is_empty() && whole.starts_with(*word));
    let (object, command) = (rest.next(), rest.next());
    let starts =
        ["netns", "vrf"].iter().any(|whole| begins(whole, object.as_ref())) && begins("exec", command.as_ref());
    if starts {
        // Behind `-all` no name of a namespace stands.
        let at = left + 2 + usize::from(!every_namespace);
        return launch(&run.args[at.min(run.args.len())..], run, reader);
    }
    let shows = command.is_none_or(|command| {
        matches!(
            command,
            "sh" | "show" | "ls" | "lst" | "list" | "get" | "help" | "dev" | "up" | "to" | "table" | "vrf"
        )
    });
    // `ip link s` sets; elsewhere it shows.
    let shows = shows
        || (command == Some("s")
            && object.is_some_and(|object| {
                matches!(
                    object,
                    "a" | "addr" | "address" | "r" | "route" | "n" | "neigh" | "rule"
                )
            }));
    if !shows && object != Some("monitor") {
        reader.effect(
            Action::Changes("the network's configuration".to_owned()),
            run.name.clone(),
            run.span,
            by,
            Via::Operand,
        );
    }
    Ok(())
}

/// `fd`: what follows `-x` or `-X` is a command, up to a `;`.
fn fd(program: &'static Program, run: &Run, reader: &mut Reader<'_>) -> Result<(), Unreadable> {
    let starts = |word: &Word| {
        word.known()
            .is_some_and(|text| text.starts_with("--exec") || is_short(&text) && text.contains(['x', 'X']))
    };
    let Some(at) = run.args.iter().position(starts) else {
        return record(program, run, parse(program, &run.args), reader);
    };
    let word = &run.args[at];
    let text = word.known().unwrap_or_default().into_owned();
    let mut argv: Vec<Word> = Vec::new();
    // A command attached to the option: `-xrm`, `--exec=rm`.
    let attached = if text.starts_with("--") {
        text.find('=')
    } else {
        text.find(['x', 'X'])
    };
    if let Some(attached) = attached.filter(|attached| attached + 1 < text.len()) {
        argv.push(word.after(attached + 1));
    }
    let rest = &run.args[at + 1..];
    let length = rest
        .iter()
        .position(|word| word.known().as_deref() == Some(";"))
        .unwrap_or(rest.len());
    argv.extend(
        rest[..length]
            .iter()
            .map(|word| match word.known().filter(|text| text.contains('{')) {
                Some(_) => Word {
                    atoms: [Atom::Hidden(Hidden::Anything)].into(),
                    ..word.clone()
                },
                None => word.clone(),
            }),
    );
    let mut others = run.args[..at].to_vec();
    others.extend(rest.get(length + 1..).unwrap_or_default().iter().cloned());
    let before = reader.effects();
    record(program, run, parse(program, &others), reader)?;
    let fed = reader.gives_names(before);
    let Some(span) = argv.iter().map(|word| word.span).reduce(|all, span| all.to(span)) else {
        return Ok(());
    };
    // A name at the end is one more argument; elsewhere it stands for anything.
    if argv.len() > 1 && argv.last().is_some_and(|word| &*word.written == "{}") {
        argv.pop();
    }
    reader.launch_fed(
        Launch {
            argv,
            span,
            functions: false,
            more: true,
        },
        fed,
    )
}

/// `tree`: a cluster of letters takes its values from the words behind it, in order.
fn tree(run: &Run, reader: &mut Reader<'_>) -> bool {
    for word in &run.args {
        let values = word
            .known()
            .filter(|text| is_short(text))
            .map_or(0, |text| text.chars().filter(|flag| "LPIoTH".contains(*flag)).count());
        if values > 1 {
            let because = "several values follow one cluster of letters".to_owned();
            reader.doubt_option(Doubt::Setting, word, because, Some(run.index));
        }
    }
    false
}

/// `git submodule foreach`: its operands are shell text.
fn foreach(run: &Run, reader: &mut Reader<'_>) -> Result<(), Unreadable> {
    let options = run
        .args
        .iter()
        .take_while(|word| matches!(word.known().as_deref(), Some("--recursive" | "-q" | "--quiet")))
        .count();
    match joined_text(&run.args[options..]) {
        Some(text) => {
            // It runs in each submodule.
            reader.works_below();
            reader.shell_text(&text, Some(run.index))
        }
        None => Ok(()),
    }
}

/// `git for-each-repo`: what follows its options is run by git, in repositories that a setting names.
fn for_each_repo(program: &'static Program, run: &Run, reader: &mut Reader<'_>) -> Result<(), Unreadable> {
    let mut found = parse_leading(program, &run.args);
    let mut argv = vec![Word::text("git", run.span)];
    argv.append(&mut found.operands);
    record(program, run, found, reader)?;
    launch(&argv, run, reader)
}

/// `ssh`: what stands behind the host is put together and read by the shell there.
fn ssh(program: &'static Program, run: &Run, reader: &mut Reader<'_>) -> Result<(), Unreadable> {
    let mut found = parse(program, &run.args);
    let words = found.operands.split_off(found.operands.len().min(1));
    record(program, run, found, reader)?;
    match joined_text(&words) {
        Some(text) => reader.shell_text_fed(&text, Some(run.index)),
        None => Ok(()),
    }
}

/// Words put together with blanks, if there are any.
fn joined_text(words: &[Word]) -> Option<Word> {
    let first = words.first()?;
    Some(spaced(
        words,
        words.iter().fold(first.span, |all, word| all.to(word.span)),
    ))
}

/// `less`: what starts with `+` is a command of its own, and clusters have rules of their own.
fn less(program: &'static Program, run: &Run, reader: &mut Reader<'_>) -> Result<(), Unreadable> {
    let mut args = Vec::new();
    for word in &run.args {
        let text = word.known();
        match text.as_deref() {
            Some(text) if text.starts_with('+') => {
                let command = text.trim_start_matches('+');
                // What stands behind a line end, or behind a command of one letter, is the next command.
                let searches = command.starts_with(['/', '?']) && !command.contains(['\n', '\r']);
                let number = command.trim_start_matches(|letter: char| letter.is_ascii_digit());
                let harmless = searches || matches!(number, "" | "G" | "F" | "g" | "p" | "%");
                if !harmless {
                    let because = format!("`{}` runs this when it starts", run.name);
                    reader.doubt_option(Doubt::Setting, word, because, Some(run.index));
                }
            }
            Some(text) if ["-+", "-!", "--+", "--!"].iter().any(|reset| text.starts_with(reset)) => {}
            Some(text)
                if text.starts_with('-')
                    && !text.starts_with("--")
                    && text.contains(['o', 'O', 'k', 'T', '$'])
                    && text[1..].contains(['b', 'h', 'j', 'x', 'y', 'z', '#', 'p', 'P', 't', 'D']) =>
            {
                let because = "where a value ends and the next option starts is not certain".to_owned();
                reader.doubt_option(Doubt::Setting, word, because, Some(run.index));
            }
            Some(_) | None => args.push(word.clone()),
        }
    }
    record(program, run, parse(program, &args), reader)
}

/// `watch`: its operands are shell text, or with `-x` a command.
fn watch(program: &'static Program, run: &Run, reader: &mut Reader<'_>) -> Result<(), Unreadable> {
    let mut found = parse(program, &run.args);
    let words = std::mem::take(&mut found.operands);
    let exec = found.has(&["-x", "--exec"]);
    record(program, run, found, reader)?;
    if exec {
        return launch(&words, run, reader);
    }
    match joined_text(&words) {
        Some(text) => reader.shell_text(&text, Some(run.index)),
        None => Ok(()),
    }
}

/// `flock`: a lock file, and behind it a command or `-c` and shell text.
fn flock(program: &'static Program, run: &Run, reader: &mut Reader<'_>) -> Result<(), Unreadable> {
    let mut found = parse(program, &run.args);
    let words = std::mem::take(&mut found.operands);
    record(program, run, found, reader)?;
    let Some((lock, rest)) = words.split_first() else {
        return Ok(());
    };
    if rest.is_empty()
        && lock
            .known()
            .is_some_and(|text| text.bytes().all(|byte| byte.is_ascii_digit()))
    {
        return Ok(());
    }
    super::apply::may_bring_a_command(lock, run, reader);
    apply_role(Role::Write, lock, run, reader)?;
    match rest.first().and_then(Word::known).as_deref() {
        Some("-c" | "--command") => rest
            .get(1)
            .map_or(Ok(()), |text| reader.shell_text(text, Some(run.index))),
        _ => launch(rest, run, reader),
    }
}

/// `sysctl`: `NAME=VALUE` sets, anything else shows.
fn sysctl(run: &Run, reader: &mut Reader<'_>) -> bool {
    if run.more {
        may_get_options(run, false, reader);
    }
    for word in &run.args {
        let sets = match word.known() {
            Some(text) if text.starts_with("--") => !matches!(
                text.as_ref(),
                "--all"
                    | "--binary"
                    | "--deprecated"
                    | "--ignore"
                    | "--names"
                    | "--values"
                    | "--quiet"
                    | "--help"
                    | "--version"
                    | "--dry-run"
            ),
            Some(text) if text.starts_with('-') => text.contains(['w', 'p', 'f', 'S']),
            Some(text) => text.contains('='),
            None => true,
        };
        if sets {
            reader.effect(
                Action::Changes("the kernel's settings".to_owned()),
                word.shown(),
                word.span,
                Some(run.index),
                Via::Operand,
            );
        }
    }
    true
}
