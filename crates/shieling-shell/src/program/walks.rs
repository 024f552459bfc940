//! Which directories a command reads as a whole, and which names it looks at in them.
//!
//! Errs on the side of more: an option that is not understood narrows nothing.

use super::parse::Arguments;
use super::table::{Operands, Program, Role, Value, Walks};
use crate::reader::{Reader, Run};
use crate::reading::{Action, PIPE, Pick, PickKind, Via, Walk};
use crate::word::{Atom, Fields, Word};

/// Names of files by the language that programs call them by. Source: `rg --type-list`; a type that is
/// not here narrows nothing.
const KINDS: &[(&str, &[&str])] = &[
    ("c", &["*.c", "*.h", "*.cats", "*.[chH].in"]),
    ("cpp", &["*.[cChH]*", "*.inl", "*.ipp", "*.tpp"]),
    ("css", &["*.css", "*.scss"]),
    ("go", &["*.go"]),
    ("html", &["*.htm", "*.html", "*.ejs"]),
    ("java", &["*.java", "*.jsp*", "*.properties"]),
    ("js", &["*.js", "*.jsx", "*.vue", "*.cjs", "*.mjs"]),
    ("json", &["*.json", "composer.lock", "*.sarif"]),
    ("kotlin", &["*.kt", "*.kts"]),
    ("lua", &["*.lua"]),
    (
        "markdown",
        &["*.markdown", "*.md", "*.mdown", "*.mdwn", "*.mkd", "*.mkdn", "*.mdx"],
    ),
    (
        "md",
        &["*.markdown", "*.md", "*.mdown", "*.mdwn", "*.mkd", "*.mkdn", "*.mdx"],
    ),
    ("php", &["*.php*"]),
    ("py", &["*.py", "*.pyi"]),
    ("python", &["*.py", "*.pyi"]),
    (
        "ruby",
        &[
            "*.rb",
            "*.rbw",
            "*.gemspec",
            "*file",
            "*.ru",
            "*.rake",
            "config.ru",
            ".irbrc",
        ],
    ),
    ("rust", &["*.rs"]),
    ("sql", &["*.sql", "*.psql"]),
    ("swift", &["*.swift"]),
    ("toml", &["*.toml", "*.lock"]),
    ("ts", &["*.ts", "*.tsx", "*.cts", "*.mts"]),
    ("typescript", &["*.ts", "*.tsx", "*.cts", "*.mts"]),
    ("yaml", &["*.yaml", "*.yml"]),
];

/// Whether names with this ending are those of programs in some language.
pub fn is_of_programs(ending: &str) -> bool {
    LANGUAGES.contains(&ending)
}

/// The endings of files that hold programs, and nothing that is likely to be hidden.
const LANGUAGES: [&str; 24] = [
    "c", "cc", "cpp", "cs", "css", "go", "h", "hpp", "html", "java", "js", "jsx", "kt", "lua", "md", "php", "py", "rb",
    "rs", "scss", "sh", "swift", "ts", "tsx",
];

/// How long a command is that is shown whole where it reads a directory, in bytes.
const LONGEST_SHOWN: usize = 512;

/// Records the directories that this command reads as a whole, if it does.
pub(super) fn record(
    program: &'static Program,
    roles: &Operands,
    found: &Arguments,
    run: &Run,
    reader: &mut Reader<'_>,
) {
    let given = |wanted: &[String]| found.has(wanted);
    let plainly = |walks: &Walks| walks.with.is_empty() || !walks.unless.is_empty();
    let walks_here = |walks: &&Walks| given(&walks.with) || plainly(walks) && !given(&walks.unless);
    let by_options = program.walks.as_ref().filter(walks_here).is_some();
    // Names that wildcards match are known where the directory is.
    let dashed = found.doubtful.iter().all(Word::is_of_names);
    // What was found below a directory is no option.
    let strange = run.more && !reader.is_fed() || !dashed || !found.strange.is_empty();
    let files = program.files.as_ref().filter(|_| !strange);
    if files.is_some_and(|with| if with.is_empty() { !by_options } else { given(with) }) {
        reader.reads_files_alone(run);
    }
    // With such an option it looks into no directory, however else it is called.
    if files.is_some_and(|with| given(with)) {
        return;
    }
    let Some(walks) = &program.walks else { return };
    // What is not known of a word could be any option.
    let unsure = strange || !found.doubtful.is_empty();
    if !(unsure || by_options) {
        return;
    }
    let unless = |spellings: &Option<Vec<String>>| !unsure && spellings.as_ref().is_some_and(|unless| !given(unless));
    let mut walk = Walk {
        ignoring: unless(&walks.ignoring_unless),
        // In front of paths may stand revisions.
        tracked: unless(&walks.tracked_unless) && found.before_dashes.is_none_or(|before| before <= roles.head.len()),
        undotted: !unsure && walks.undotted_unless.as_ref().is_some_and(|unless| !given(unless)),
        names: walks
            .lists
            .as_ref()
            .is_some_and(|with| with.is_empty() || !unsure && given(with)),
        ..Walk::default()
    };
    let mut narrow = !unsure && !given(&walks.whole_with);
    let first = found.operands.first().map_or(usize::MAX, |word| word.span.start);
    for given in &found.options {
        if walks.ordered && given.word.span.start > first {
            continue;
        }
        if let (Value::Required(role) | Value::Optional(role), Some(value)) = (given.choice.value, &given.value) {
            narrow &= picks(role, value, &mut walk);
        }
    }
    if !narrow {
        walk.only.clear();
        walk.except.clear();
        walk.depth = None;
    }
    for root in roots(roles, found) {
        let mut walk = Walk {
            if_dashed: !strange && !by_options,
            root: root.as_ref().map(|(word, _)| word.clone()),
            or_revision: root.as_ref().is_some_and(|(_, or_revision)| *or_revision),
            ..walk.clone()
        };
        pathspec(&mut walk);
        reader.walks(walk, run);
    }
}

/// The operands that can be directories; one that is nothing if there are none. With each, whether it may
/// as well be a revision.
fn roots(roles: &Operands, found: &Arguments) -> Vec<Option<(Word, bool)>> {
    let tail_from = found
        .operands
        .len()
        .saturating_sub(roles.tail.len())
        .max(roles.head.len());
    let role = |at: usize| match roles.head.get(at) {
        Some(role) => Some(*role),
        None if at >= tail_from && !roles.tail.is_empty() => roles.tail.get(at - tail_from).copied(),
        None => roles.rest,
    };
    // What it makes of what it reads is not read.
    let reads = roles
        .head
        .iter()
        .chain(&roles.rest)
        .chain(&roles.tail)
        .any(|role| *role != Role::Write);
    let values = |wanted: Role| {
        found.options.iter().filter_map(move |given| match given.choice.value {
            Value::Required(role) if role == wanted => given.value.clone(),
            _ => None,
        })
    };
    let below: Vec<_> = values(Role::Below).map(|word| Some((word, false))).collect();
    if !below.is_empty() {
        return below;
    }
    let spread = found.operands.iter().any(|word| word.fields != Fields::One);
    let mut named: Vec<_> = found
        .operands
        .iter()
        .enumerate()
        .filter(|(at, _)| {
            let read = role(*at) != Some(Role::Write) || !reads;
            spread
                || read
                    && !matches!(
                        role(*at),
                        Some(Role::Text | Role::Pattern | Role::Expression | Role::Sed | Role::Awk)
                    )
        })
        .map(|(at, word)| (at, word.clone(), role(at) == Some(Role::Rev)))
        .chain(values(Role::Besides).map(|word| (usize::MAX, word, false)))
        .collect();
    // A pipe is no directory.
    let some = !named.is_empty();
    named.retain(|(_, word, _)| !matches!(word.known().as_deref(), Some("-" | PIPE)));
    if some && named.is_empty() {
        return Vec::new();
    }
    // Behind `--` stand paths alone, and before it revisions.
    if let Some(before) = found.before_dashes
        && named.iter().any(|(at, _, revision)| *at >= before && *revision)
    {
        named.retain(|(at, ..)| *at >= before);
        named.iter_mut().for_each(|(_, _, or_revision)| *or_revision = false);
    }
    // These only take something away from the others.
    named.retain(|(_, word, _)| !(roles.pathspecs && leaves_out_name(word)));
    let (excluded, mut roots): (Vec<_>, Vec<_>) = named
        .into_iter()
        .map(|(_, word, or_revision)| (word, or_revision))
        .partition(|(word, or_revision)| !*or_revision && word.prefix().starts_with([':', '!']));
    // What git leaves out of everything is not followed.
    if !excluded.is_empty() {
        roots.clear();
    }
    if roots.is_empty() {
        return vec![None];
    }
    roots.into_iter().map(Some).collect()
}

/// Whether a word is a pathspec of git that only leaves files out; behind a `..` it could be any path where git takes it
/// literally.
pub(super) fn leaves_out(word: &Word) -> bool {
    let text = match word.known() {
        Some(text) if word.fields == Fields::One => text,
        Some(_) | None => return false,
    };
    [":!", ":^", ":(exclude)"].iter().any(|magic| text.starts_with(magic)) && text.split('/').all(|part| part != "..")
}

/// The same of a name without directories: taken literally, it is a file that is named like this, and no link leads
/// anywhere else.
pub(super) fn leaves_out_name(word: &Word) -> bool {
    leaves_out(word) && !word.prefix().contains('/')
}

/// A root with wildcards of the program's own, as git takes: names below the current directory.
fn pathspec(walk: &mut Walk) {
    let Some(text) = walk.root.as_ref().and_then(Word::known) else {
        return;
    };
    if !text.contains(['*', '?', '[', '\\']) {
        return;
    }
    let pattern = Pick {
        pattern: text.into_owned(),
        path: true,
        kind: PickKind::Files,
    };
    walk.root = None;
    if !walk.or_revision && walk.only.is_empty() {
        walk.only.push(pattern);
    }
}

/// Takes an option that narrows a walk; false if what it leaves cannot be told.
fn picks(role: Role, value: &Word, walk: &mut Walk) -> bool {
    let name = |pattern: &str, kind| Pick {
        pattern: pattern.to_owned(),
        path: false,
        kind,
    };
    // A wildcard that is not quoted stays as it is, unless there are files of such a name.
    let text = value.known().map(std::borrow::Cow::into_owned).or_else(|| {
        matches!(role, Role::Only | Role::Picked)
            .then(|| pattern_of(value))
            .flatten()
    });
    match (role, text.as_deref()) {
        // A pattern with directories in it is more than a name: it leaves out nothing, and chooses anything.
        (Role::Only | Role::Picked | Role::Ending | Role::Kind | Role::Depth, None) => {
            walk.undotted = false;
            walk.ignoring = false;
            return false;
        }
        (Role::Depth, Some(text)) => match text.parse() {
            Ok(depth) => walk.depth = Some(depth),
            Err(_) => return false,
        },
        (Role::Except, Some(text)) if !text.contains('/') => walk.except.push(name(text, PickKind::Files)),
        // In rsync, such a pattern includes what later ones exclude.
        (Role::LeftOut | Role::LeftOutEach, Some(text)) if text.starts_with(['!', '+', '-']) => return false,
        (Role::LeftOut, Some(text)) if !text.contains('/') => walk.except.push(name(text, PickKind::All)),
        (Role::LeftOutEach, Some(text)) => {
            let parts = text.split('|').filter(|part| !part.contains('/'));
            walk.except.extend(parts.map(|part| name(part, PickKind::All)));
        }
        (Role::ExceptDirs, Some(text)) if !text.trim_end_matches('/').contains('/') => {
            walk.except.push(name(text.trim_end_matches('/'), PickKind::Trees));
        }
        (Role::Picked, Some(text)) if text.starts_with('!') => {
            let text = &text[1..];
            match text.strip_suffix("/**").or_else(|| text.strip_suffix('/')) {
                Some(tree) if !tree.contains('/') => walk.except.push(name(tree, PickKind::Trees)),
                None if !text.contains('/') => walk.except.push(name(text, PickKind::All)),
                Some(_) | None => {}
            }
        }
        // If the first pattern excludes, grep reads what matches none of them.
        (Role::Only, Some(_)) if walk.except.iter().any(|pick| pick.kind != PickKind::Trees) => return false,
        (Role::Only | Role::Picked, Some(text)) => {
            // Of two patterns that match, the later one counts.
            walk.except.retain(|_| role == Role::Only);
            // What is chosen is looked at although it starts with a dot.
            walk.undotted = false;
            walk.ignoring = false;
            let text = text.strip_prefix("**/").unwrap_or(text);
            if text.contains(['/', '{']) {
                return false;
            }
            walk.only.push(name(text, PickKind::Files));
        }
        (Role::Ending, Some(text)) => {
            let ending = format!("*.{}", text.trim_start_matches('.'));
            walk.only.push(name(&ending, PickKind::Entries));
        }
        (Role::Kind, Some(text)) => {
            walk.undotted = false;
            walk.ignoring = false;
            let Some((_, patterns)) = KINDS.iter().find(|(kind, _)| *kind == text) else {
                return false;
            };
            walk.only
                .extend(patterns.iter().map(|pattern| name(pattern, PickKind::Files)));
        }
        _ => {}
    }
    true
}

/// A word of wildcards as the pattern that it is if nothing has such a name.
pub fn pattern_of(word: &Word) -> Option<String> {
    let atom = |atom: &Atom| match atom {
        Atom::Text(text) => Some(text.clone()),
        Atom::One => Some("?".to_owned()),
        Atom::Star => Some("*".to_owned()),
        Atom::Found | Atom::Hidden(_) | Atom::Here | Atom::OneOf(_) => None,
    };
    word.atoms.iter().map(atom).collect()
}

impl Reader<'_> {
    /// Records that a command reads a directory as a whole.
    pub(super) fn walks(&mut self, walk: Walk, run: &Run) {
        let mut walk = Walk {
            here: self.certainly_here(),
            ..walk
        };
        // `$PWD` is where the shell stands, and the program is told to stand elsewhere.
        if self.displaced == Some(run.index)
            && let Some(root) = walk.root.as_mut().filter(|root| root.holds_here())
        {
            *root = Word::unknown(Fields::One, root.written.clone(), root.span);
        }
        // Once for each directory, of which a long command may name many.
        let object = match run.span.end - run.span.start > LONGEST_SHOWN {
            true => run.name.clone(),
            false => self.shown(run),
        };
        self.effect(Action::Walks(walk), object, run.span, Some(run.index), Via::Operand);
    }
}
