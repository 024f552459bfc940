//! `find`: an expression whose actions can run, remove and write.

use crate::reader::{Reader, Run};
use crate::reading::{Action, Doubt, Pick, PickKind, Via, Walk};
use crate::screen::Unreadable;
use crate::word::{Atom, Fields, Hidden, Known, Word, found, joined};

/// How many words a test takes behind it. Source: find(1) of findutils 4.9.
const TESTS: &[(&str, usize)] = &[
    ("-H", 0),
    ("-L", 0),
    ("-P", 0),
    ("-D", 1),
    ("-a", 0),
    ("-and", 0),
    ("-o", 0),
    ("-or", 0),
    ("-not", 0),
    ("-daystart", 0),
    ("-depth", 0),
    ("-d", 0),
    ("-follow", 0),
    ("-ignore_readdir_race", 0),
    ("-maxdepth", 1),
    ("-mindepth", 1),
    ("-mount", 0),
    ("-noignore_readdir_race", 0),
    ("-noleaf", 0),
    ("-nowarn", 0),
    ("-regextype", 1),
    ("-warn", 0),
    ("-xdev", 0),
    ("-amin", 1),
    ("-anewer", 1),
    ("-atime", 1),
    ("-cmin", 1),
    ("-cnewer", 1),
    ("-context", 1),
    ("-ctime", 1),
    ("-empty", 0),
    ("-executable", 0),
    ("-false", 0),
    ("-fstype", 1),
    ("-gid", 1),
    ("-group", 1),
    ("-ilname", 1),
    ("-iname", 1),
    ("-inum", 1),
    ("-ipath", 1),
    ("-iregex", 1),
    ("-iwholename", 1),
    ("-links", 1),
    ("-lname", 1),
    ("-mmin", 1),
    ("-mtime", 1),
    ("-name", 1),
    ("-newer", 1),
    ("-newerXY", 1),
    ("-nogroup", 0),
    ("-nouser", 0),
    ("-path", 1),
    ("-perm", 1),
    ("-readable", 0),
    ("-regex", 1),
    ("-samefile", 1),
    ("-size", 1),
    ("-true", 0),
    ("-type", 1),
    ("-uid", 1),
    ("-used", 1),
    ("-user", 1),
    ("-wholename", 1),
    ("-writable", 0),
    ("-xtype", 1),
    ("-ls", 0),
    ("-print", 0),
    ("-print0", 0),
    ("-printf", 1),
    ("-prune", 0),
    ("-quit", 0),
    ("-help", 0),
    ("--help", 0),
    ("-version", 0),
    ("--version", 0),
    ("-files0-from", 1),
];

/// The primaries that act on a file; the others test it.
const ACTIONS: &[&str] = &[
    "-delete", "-exec", "-execdir", "-fls", "-fprint", "-fprint0", "-fprintf", "-ls", "-ok", "-okdir", "-print",
    "-print0", "-printf", "-quit",
];

/// The tests that compare a whole path.
const PATH_TESTS: &[&str] = &["-ipath", "-iwholename", "-path", "-wholename"];

/// Records that a word can bring a command to run, if it may be several of which one is not known, or begins one.
fn may_bring_an_action(word: &Word, run: &Run, reader: &mut Reader<'_>) {
    let runs = |text: &str| text.starts_with("-exec") || text.starts_with("-ok");
    let tests = |one: &Vec<Atom>| match one.as_slice() {
        [] => true,
        [Atom::Text(text)] => !runs(text),
        _ => false,
    };
    let only_tests = matches!(&*word.atoms, [Atom::OneOf(elements)] if elements.iter().all(tests));
    if !only_tests {
        super::apply::may_bring_a_command(word, run, reader);
    }
}

/// Records what a `find` does.
pub(super) fn find(run: &Run, reader: &mut Reader<'_>) -> Result<(), Unreadable> {
    let by = Some(run.index);
    let args = &run.args;
    let mut at = 0;
    let mut started = false;
    let mut roots = Vec::new();
    let alternatives = args.iter().any(|word| {
        word.known()
            .is_none_or(|text| matches!(text.as_ref(), "-o" | "-or" | "," | "("))
    });
    let mut pattern = None;
    let mut negated = false;
    let narrowed = expression(args).filter(|_| !run.more).unwrap_or_default();
    // What it starts is given the files that it finds.
    let acts = args.iter().any(|word| {
        word.known()
            .is_none_or(|text| text.starts_with("-exec") || text.starts_with("-ok"))
    });
    let left_out = |names: &Word| {
        names
            .known()
            .is_some_and(|names| narrowed.1.iter().any(|pick| pick.pattern == names))
    };
    while let Some(word) = args.get(at) {
        at += 1;
        let Some(text) = word.known() else {
            if !started && word.is_dashed() == Known::No {
                roots.push(word.clone());
                reader.effect_on(Action::Reads, word, by, Via::Operand);
            } else {
                super::apply::may_be_option(word, true, run, reader);
                may_bring_an_action(word, run, reader);
            }
            continue;
        };
        match text.as_ref() {
            "(" | ")" | "," => started = true,
            "!" | "-not" => {
                started = true;
                negated = true;
                continue;
            }
            "-delete" => {
                started = true;
                for root in or_here(&roots, word) {
                    reader.effect(Action::Writes(root), text.to_string(), word.span, by, Via::Option);
                }
            }
            "-fprint" | "-fprint0" | "-fls" | "-fprintf" => {
                started = true;
                if let Some(file) = args.get(at) {
                    reader.effect(
                        Action::Writes(file.clone()),
                        file.shown(),
                        word.span.to(file.span),
                        by,
                        Via::Option,
                    );
                }
                at += if text == "-fprintf" { 2 } else { 1 };
            }
            "-exec" | "-execdir" | "-ok" | "-okdir" => {
                started = true;
                let rest = &args[at..];
                // A plus ends it behind braces alone.
                let is_end = |at: &usize| match rest[*at].known().as_deref() {
                    Some(";") => true,
                    Some("+") => *at > 0 && rest[*at - 1].known().is_none_or(|before| before == "{}"),
                    Some(_) | None => false,
                };
                let length = (0..rest.len()).find(is_end).unwrap_or(rest.len());
                // Names of files stand in for the braces: they start as the roots do.
                let mut argv: Vec<Word> = rest[..length]
                    .iter()
                    .map(|word| with_names(word, &roots, &text, pattern.as_deref().filter(|_| !alternatives)))
                    .collect();
                // Several names are what one is, but for programs that take their operands apart.
                if rest.get(length).and_then(Word::known).as_deref() == Some("+") {
                    argv.extend(argv.last().cloned());
                }
                if text.ends_with("dir") {
                    // It stands in the directory of what it found: where the path starts, beside it or below it.
                    for root in or_here(&roots, word) {
                        reader.works_in(&root);
                        reader.works_in(&beside(&root));
                    }
                    reader.works_in(&Word::unknown(Fields::One, "…", word.span));
                }
                super::start::launch(&argv, run, reader)?;
                at += length + 1;
            }
            test if test.starts_with('-') => {
                started = true;
                let newer = test.starts_with("-newer").then_some(1);
                let arity = TESTS
                    .iter()
                    .find(|(name, _)| *name == test)
                    .map(|(_, arity)| *arity)
                    .or(newer);
                // Before the first path, optimisation levels look like tests.
                let arity = arity.or_else(|| test.starts_with("-O").then_some(0));
                match arity {
                    Some(arity) => {
                        if matches!(test, "-newer" | "-samefile" | "-anewer" | "-cnewer" | "-files0-from")
                            && let Some(file) = args.get(at)
                        {
                            reader.effect_on(Action::Reads, file, by, Via::Option);
                        }
                        if matches!(
                            test,
                            "-name" | "-iname" | "-path" | "-ipath" | "-wholename" | "-iwholename"
                        ) && let Some(names) = args.get(at)
                            && !negated
                            && !left_out(names)
                        {
                            super::apply::found_names(names, run, reader)?;
                            if test.ends_with("name") && !test.ends_with("wholename") {
                                pattern = names.known().map(String::from);
                            }
                        }
                        for value in args[at..].iter().take(arity) {
                            // As several words, the others are tests or actions.
                            if value.fields.is_any() && value.is_dashed() == Known::Maybe {
                                super::apply::may_be_option(value, true, run, reader);
                            }
                            may_bring_an_action(value, run, reader);
                        }
                        at += arity;
                        if matches!(test, "-H" | "-L" | "-P" | "-D") {
                            started = false;
                        }
                    }
                    None => {
                        let because = "`find` is not known to have this test".to_owned();
                        reader.doubt_option(Doubt::Argument, word, because, by);
                    }
                }
            }
            _ => {
                roots.push(word.clone());
                reader.effect_on(Action::Reads, word, by, Via::Operand);
            }
        }
        negated = false;
    }
    let (only, except, depth) = narrowed;
    for root in or_none(&roots) {
        let walk = Walk {
            root,
            only: only.clone(),
            except: except.clone(),
            depth,
            names: !acts,
            gives_directories: acts,
            ..Walk::default()
        };
        reader.walks(walk, run);
    }
    if run.more {
        super::apply::may_get_options(run, true, reader);
    }
    Ok(())
}

fn or_none(roots: &[Word]) -> Vec<Option<Word>> {
    if roots.is_empty() {
        vec![None]
    } else {
        roots.iter().cloned().map(Some).collect()
    }
}

/// What an expression looks at, what it leaves out, and how deep it goes; nothing if it is of a shape
/// that is not followed: several alternatives other than `-prune -o`, or groups.
fn expression(args: &[Word]) -> Option<(Vec<Pick>, Vec<Pick>, Option<usize>)> {
    let texts: Vec<_> = args.iter().map(Word::known).collect::<Option<_>>()?;
    let start = texts
        .iter()
        .position(|text| {
            text.starts_with('-') && !matches!(text.as_ref(), "-H" | "-L" | "-P") || text == "!" || text == "("
        })
        .unwrap_or(texts.len());
    // Paths are compared as they are written: with `$PWD` on one side alone, they never fit.
    let absolute: Vec<_> = args[..start].iter().map(Word::holds_here).collect();
    let all_absolute = absolute.first().is_some_and(|first| *first);
    let patterns = args[start..].windows(2).filter(|pair| {
        let test = pair[0].known();
        test.is_some_and(|test| PATH_TESTS.contains(&test.as_ref())) && !pair[1].prefix().starts_with('*')
    });
    let mut mixed = absolute.into_iter().chain(patterns.map(|pair| pair[1].holds_here()));
    if mixed.any(|here| here != all_absolute) {
        return None;
    }
    let mut rest: &[std::borrow::Cow<'_, str>] = &texts[start..];
    let (mut only, mut except, mut depth) = (Vec::new(), Vec::new(), None);
    // -depth disables -prune, and -delete implies -depth.
    let upwards = texts
        .iter()
        .any(|text| matches!(text.as_ref(), "-d" | "-delete" | "-depth"));
    if upwards && texts.iter().any(|text| text == "-prune") {
        return None;
    }
    // What is pruned stands in front: `-path ./a -prune -o …`, or a group of such tests.
    while let Some(end) = rest.iter().position(|text| matches!(text.as_ref(), "-o" | "-or")) {
        let (branch, next) = (&rest[..end], &rest[end + 1..]);
        match pruned(branch) {
            Some(picks) => {
                except.extend(picks);
                rest = next;
            }
            None => {
                // The alternatives of a group.
                let close = rest.iter().position(|text| text == ")").filter(|close| *close > end)?;
                let after = rest.get(close + 1..)?;
                (rest.first().is_some_and(|text| text == "(") && after.first().is_some_and(|text| text == "-prune"))
                    .then_some(())?;
                matches!(after.get(1).map(AsRef::as_ref), Some("-o" | "-or")).then_some(())?;
                for test in rest[1..close].split(|text| matches!(text.as_ref(), "-o" | "-or")) {
                    except.extend(tested(test)?);
                }
                rest = &after[2..];
            }
        }
    }
    let mut at = 0;
    let mut negated = false;
    // Tests behind an action do not restrict it.
    let mut acts = false;
    while let Some(text) = rest.get(at) {
        at += 1;
        if matches!(text.as_ref(), "!" | "-not") {
            negated = !negated;
            continue;
        }
        let arity = match text.as_ref() {
            "(" | ")" | "," => return None,
            "-exec" | "-execdir" | "-ok" | "-okdir" => {
                1 + rest[at..].iter().position(|word| matches!(word.as_ref(), ";" | "+"))?
            }
            "-fprint" | "-fprint0" | "-fls" => 1,
            "-fprintf" => 2,
            "-delete" => 0,
            test if test.starts_with("-newer") => 1,
            test => TESTS.iter().find(|(name, _)| *name == test).map(|(_, arity)| *arity)?,
        };
        if let Some(pattern) = rest.get(at) {
            let entry = |path| Pick {
                pattern: pattern.clone().into_owned(),
                path,
                kind: PickKind::Entries,
            };
            match text.as_ref() {
                "-maxdepth" => depth = Some(pattern.parse().ok()?),
                _ if acts => {}
                "-name" if negated => except.push(entry(false)),
                "-path" | "-wholename" if negated => except.push(entry(true)),
                // Each of several tests must hold, so that one of them is enough.
                "-name" | "-iname" if !negated && only.is_empty() => only.push(entry(false)),
                test if PATH_TESTS.contains(&test) && !negated && only.is_empty() => only.push(entry(true)),
                _ => {}
            }
        }
        acts |= ACTIONS.contains(&text.as_ref());
        at += arity;
        negated = false;
    }
    Some((only, except, depth))
}

/// What a branch of an expression keeps from being walked, if it does no more than that.
fn pruned(branch: &[std::borrow::Cow<'_, str>]) -> Option<Vec<Pick>> {
    let (last, tests) = branch.split_last()?;
    (last == "-prune").then_some(())?;
    let tests = match tests {
        [first, inner @ .., end] if first == "(" && end == ")" => inner,
        tests => tests,
    };
    tested(tests)
}

/// The directories that a test of names means: `-path X`, `-type d -name X`.
fn tested(tests: &[std::borrow::Cow<'_, str>]) -> Option<Vec<Pick>> {
    let (kind, tests) = match tests {
        [kind, directory, rest @ ..] if kind == "-type" && directory == "d" => (PickKind::Trees, rest),
        tests => (PickKind::All, tests),
    };
    let [test, pattern] = tests else { return None };
    let path = match test.as_ref() {
        "-path" | "-wholename" => true,
        "-name" => false,
        _ => return None,
    };
    Some(vec![Pick {
        pattern: pattern.clone().into_owned(),
        path,
        kind,
    }])
}

fn or_here(roots: &[Word], word: &Word) -> Vec<Word> {
    if roots.is_empty() {
        vec![Word::text(".", word.span)]
    } else {
        roots.to_vec()
    }
}

/// The directory in which a start of the search stands.
fn beside(root: &Word) -> Word {
    let mut atoms = root.atoms.to_vec();
    atoms.push(Atom::Text("/..".to_owned()));
    Word {
        atoms: joined(atoms).into(),
        ..root.clone()
    }
}

/// Any path from one of these directories on; of a name that is known, what stands before it.
fn below(roots: &[Word], before: bool) -> Option<Vec<Atom>> {
    let mut known: Vec<Vec<Atom>> = roots
        .iter()
        .map(|root| Some(vec![Atom::Text(root.known()?.into_owned())]))
        .collect::<Option<_>>()?;
    let root = match known.len() {
        0 => vec![Atom::Text(".".to_owned())],
        1 => known.remove(0),
        _ => vec![Atom::OneOf(known)],
    };
    let slash = || Atom::Text("/".to_owned());
    let ends = match before {
        true => vec![vec![slash()], vec![slash(), Atom::Hidden(Hidden::Below), slash()]],
        false => vec![Vec::new(), vec![slash(), Atom::Hidden(Hidden::Below)]],
    };
    Some([root, vec![Atom::OneOf(ends)]].concat())
}

/// A word of `-exec` with the found names put in for `{}`.
fn with_names(word: &Word, roots: &[Word], action: &str, pattern: Option<&str>) -> Word {
    let Some(text) = word.known().filter(|text| text.contains("{}")) else {
        return word.clone();
    };
    // `-execdir` names files `./name`; the others as the roots are written, `.` if there is none.
    let dashed = !action.ends_with("dir") && roots.iter().any(|root| root.is_dashed() != Known::No);
    // With a test of their names, the last part of the path is known; directories above it are
    // what a recursive command walks through.
    let name = match pattern {
        Some(pattern) if !dashed => {
            // A start may have that name itself.
            let inside = below(roots, text == "{}").filter(|_| !action.ends_with("dir"));
            match inside {
                Some(inside) if text == "{}" => [inside, found(pattern)].concat(),
                // Up from what is found lies what is beside it.
                Some(inside) if text.contains('/') => inside,
                Some(_) | None => [vec![Atom::Text("./".to_owned())], found(pattern)].concat(),
            }
        }
        Some(_) | None if dashed => vec![Atom::Hidden(Hidden::Anything)],
        Some(_) | None => match below(roots, false).filter(|_| !action.ends_with("dir")) {
            Some(below) => below,
            None => vec![Atom::Hidden(Hidden::Name)],
        },
    };
    let mut atoms = Vec::new();
    for (index, part) in text.split("{}").enumerate() {
        if index > 0 {
            atoms.extend(name.clone());
        }
        if !part.is_empty() {
            atoms.push(Atom::Text(part.to_owned()));
        }
    }
    Word {
        atoms: joined(atoms).into(),
        fields: Fields::One,
        span: word.span,
        written: (*text).into(),
    }
}
