//! Follows one command: what it is, and what it launches in turn.

use super::expand::plain;
use super::run::{Launch, Run, is_shell};
use super::{Defined, Input, Reader};
use crate::descriptor::descriptor;
use crate::program;
use crate::reading::{Action, Base, Doubt, Invocation, Kind, Via};
use crate::screen::Unreadable;
use crate::syntax::is_name;
use crate::word::{Atom, Fields, Hidden, Known, Word, between_blanks};

/// Directories whose programs are the system's own: a name with this path is that program.
const SYSTEM: &[&str] = &[
    "/bin/",
    "/sbin/",
    "/usr/bin/",
    "/usr/sbin/",
    "/usr/local/bin/",
    "/usr/local/sbin/",
];

/// How many readings of one command name are followed.
pub(super) const MAX_NAMES: usize = 16;

/// Whether this command's arguments are assignments.
pub(super) fn declares(name: &Word) -> bool {
    matches!(
        name.known().as_deref(),
        Some("declare" | "typeset" | "local" | "export" | "readonly")
    )
}

/// Programs that start what their input, a directory or a text of their own tells them.
fn starts_what_it_is_told(run: &Run) -> bool {
    let told = |wanted: &[&str]| {
        run.args
            .iter()
            .filter_map(Word::known)
            .any(|word| wanted.iter().any(|start| word.starts_with(start)))
    };
    match run.name.as_str() {
        "parallel" | "env_parallel" | "parset" => !told(&[":::"]),
        "newgrp" => true,
        "sg" | "run-parts" | "at" | "batch" => !told(&["-l", "-c", "-V", "-d", "-r"]),
        // Without a file, and where the file is its input.
        "crontab" => {
            let input = |word: &Word| {
                word.known()
                    .is_none_or(|text| text == "-" || descriptor(&text).is_some())
            };
            let of_user = run.args.len() == 2 && told(&["-u"]);
            run.args.is_empty() || of_user || run.args.iter().any(input)
        }
        "make" | "gmake" => {
            // `-f -`, `-sf-`, `--file=/dev/stdin`: the makefile is what it is fed.
            let fed = |path: &str| path == "-" || descriptor(path).is_some();
            let in_option = |text: &str| match text.strip_prefix("--") {
                Some(long) => long.split_once('=').is_some_and(|(_, path)| fed(path)),
                None => text.starts_with('-') && text.split_once('f').is_some_and(|(_, path)| fed(path)),
            };
            let takes_file = |text: &str| match text.strip_prefix("--") {
                Some(long) => "file".starts_with(long) || "makefile".starts_with(long),
                None => text.starts_with('-') && text.ends_with('f'),
            };
            told(&["--eval", "SHELL=", "MAKEFILES=", "MAKEFLAGS=", "GNUMAKEFLAGS="])
                || run.args.iter().filter_map(Word::known).any(|word| in_option(&word))
                || run.args.windows(2).any(|pair| {
                    pair[0].known().is_some_and(|option| takes_file(&option))
                        && pair[1].known().is_some_and(|path| fed(&path))
                })
        }
        "dc" | "ed" | "red" | "ex" => run.args.iter().filter_map(Word::known).any(|word| word.contains('!')),
        _ => false,
    }
}

impl Reader<'_> {
    /// Follows a command: records it, and whatever it launches.
    pub(crate) fn launch(&mut self, launch: Launch) -> Result<(), Unreadable> {
        self.node()?;
        let Some(first) = launch.argv.first() else {
            return Ok(());
        };
        match first.fields {
            // A name from an expansion that may be empty or several words.
            Fields::Any | Fields::Spread | Fields::Glob => return self.launch_unknown(launch),
            Fields::One => {}
        }
        let Some(names) = first.alternatives(MAX_NAMES) else {
            return self.launch_unknown(launch);
        };
        if names.len() > 1 {
            for name in names {
                let mut argv = launch.argv.clone();
                argv[0] = name;
                self.launch(Launch { argv, ..launch.clone() })?;
            }
            return Ok(());
        }
        let Some(name) = first.program_name() else {
            return self.launch_unknown(launch);
        };
        if name.is_empty() {
            return self.launch_unknown(launch);
        }
        if let Some(hidden) = first.written.chars().find(|c| crate::screen::invisible(*c)) {
            let because = format!(
                "the name of the command holds the invisible character {}",
                hidden.escape_unicode()
            );
            return Err(Unreadable {
                span: first.span,
                because,
            });
        }
        self.without_words_that_vanish(&launch, &name)?;
        self.aliased(&launch, &name)?;
        let pathed = first.atoms.len() > 1 || first.prefix().contains('/');
        let system = first.known().is_some_and(|path| {
            SYSTEM
                .iter()
                .any(|directory| path.strip_prefix(directory) == Some(name.as_str()))
        });
        let function = launch.functions && !pathed && self.is_defined(&name, first);
        let entry = program::find(&name);
        let kind = if function {
            Kind::Function
        } else if !pathed && entry.is_some_and(|entry| entry.builtin) {
            Kind::Builtin
        } else {
            Kind::Program
        };
        let (index, effects) = (self.reading.commands.len(), self.reading.effects.len());
        self.texts_given += usize::from(matches!(name.as_str(), "echo" | "printf" | "yes") && launch.argv.len() > 1);
        self.reading.commands.push(Invocation {
            argv: launch.argv.clone(),
            span: launch.span,
            kind,
            more: launch.more,
            files: false,
            fed: self.fed.is_some(),
        });
        for word in &launch.argv[1..] {
            self.globbed(word, Some(index));
        }
        if launch.functions
            && !pathed
            && (self.variables.functions.contains(&name) || self.found.functions.contains(&name))
        {
            self.positional(&launch.argv[1..]);
            self.called.push((name.clone(), launch.span));
            let leaves = self.functions_without_input.contains(&name) && !self.functions_with_input.contains(&name);
            self.uses_input |= !leaves;
        }
        if function {
            if self.runs_input_in_function && matches!(self.input, Input::Text(_) | Input::Altered) {
                let because = format!("a function may run what `{name}` is fed, and its body is not read with that");
                self.doubt(Doubt::Launch, name, because, launch.span, Some(index));
            }
            return Ok(());
        }
        let result = self.follow(&launch, (name, index), entry, (pathed, system));
        if !self.uses_input {
            let may_read = |unknown: bool| program::may_read_input(&self.reading, index, effects, unknown);
            self.uses_input = may_read(!self.is_first_walk);
            // What is not known yet may be known to the next walk.
            self.needs_another_walk |= self.is_first_walk && !self.uses_input && may_read(true);
        }
        // Also what has another input than these words name.
        self.shares_input |= self.reading.commands[index].argv[1..]
            .iter()
            .any(program::may_name_input);
        result
    }

    /// Follows what a program or builtin does.
    fn follow(
        &mut self,
        launch: &Launch,
        (name, index): (String, usize),
        entry: Option<&'static program::Program>,
        (pathed, system): (bool, bool),
    ) -> Result<(), Unreadable> {
        let first = &launch.argv[0];
        if pathed && !system {
            // A program of the workspace may have any name; still follow it as what it is called,
            // for whoever gives a known program by its full path.
            self.effect_on(Action::RunsFile, first, Some(index), Via::Operand);
        }
        let run = Run {
            index,
            name: name.clone(),
            program: entry,
            span: launch.span,
            more: launch.more,
            args: launch.argv[1..].to_vec(),
        };
        if !pathed && self.builtin(&run)? {
            return Ok(());
        }
        if name.starts_with("ld-linux") || name.starts_with("ld.so") {
            // The loader runs the program that it is given.
            return self.launch_rest(run.args.clone(), &run, false);
        }
        if starts_what_it_is_told(&run) {
            self.unknown_text(first, &run);
        }
        if is_shell(&name) {
            return self.shell(&run);
        }
        if entry.is_none_or(|entry| entry.takes_anything()) {
            self.shells_among(&run)?;
        }
        match entry {
            Some(entry) => (self.programs.apply)(entry, &run, self),
            None if pathed => Ok(()),
            None => {
                self.names_that_are_fed(&run);
                let object = name.clone();
                self.doubt(
                    Doubt::Program,
                    object,
                    format!("what `{name}` does is not known"),
                    first.span,
                    Some(index),
                );
                Ok(())
            }
        }
    }

    /// Follows a command as what aliases of its name make of it, where a shell expands them.
    fn aliased(&mut self, launch: &Launch, name: &str) -> Result<(), Unreadable> {
        let values: Vec<_> = self.variables.definitions.values(name).map(str::to_owned).collect();
        if values.is_empty() || self.aliases.iter().any(|followed| followed == name) {
            return Ok(());
        }
        let first = &launch.argv[0];
        self.aliases.push(name.to_owned());
        for value in values {
            let words: Vec<_> = between_blanks(&value).collect();
            // An assignment before a command, or a blank at the end, behind which the next word is looked for too.
            let is_plain = value.bytes().all(|byte| byte == b' ' || plain(byte))
                && !value.ends_with(' ')
                && words.first().is_some_and(|first| !first.contains('='));
            if is_plain {
                let words = words.iter().map(|word| Word::text(*word, first.span));
                let argv = words.chain(launch.argv[1..].iter().cloned()).collect();
                self.launch_deeper(Launch { argv, ..launch.clone() })?;
            } else {
                let because = "an alias of this name stands for more than plain words; write out what it stands for";
                self.doubt(Doubt::Launch, first.shown(), because, first.span, None);
            }
        }
        self.aliases.pop();
        Ok(())
    }

    fn launch_unknown(&mut self, launch: Launch) -> Result<(), Unreadable> {
        let Some(first) = launch.argv.first().cloned() else {
            return Ok(());
        };
        let index = self.reading.commands.len();
        self.reading.commands.push(Invocation {
            argv: launch.argv,
            span: launch.span,
            kind: Kind::Program,
            more: launch.more,
            files: false,
            fed: self.fed.is_some(),
        });
        self.doubt(
            Doubt::Launch,
            first.shown(),
            "which command this is cannot be read from the text",
            first.span,
            Some(index),
        );
        Ok(())
    }

    /// Follows a shell among the words of a program of which it is not known what it does with them, where it has options or
    /// stands last: a wrapper starts it, and gives it what is fed.
    fn shells_among(&mut self, run: &Run) -> Result<(), Unreadable> {
        let starts = |at: &usize| {
            let name = run.args[*at].known();
            name.is_some_and(|name| is_shell(name.rsplit('/').next().unwrap_or_default()))
                && run.args.get(at + 1).is_none_or(|next| next.is_dashed() == Known::Yes)
        };
        match (0..run.args.len()).find(starts) {
            Some(at) => self.launch_rest(run.args[at..].to_vec(), run, false),
            None => Ok(()),
        }
    }

    /// Launches the rest of a builtin's arguments as a command.
    pub(super) fn launch_rest(&mut self, argv: Vec<Word>, run: &Run, functions: bool) -> Result<(), Unreadable> {
        let Some(first) = argv.first() else {
            if run.more {
                // The command comes from data.
                self.unknown_text(&Word::unknown(Fields::Any, "…", run.span), run);
            }
            return Ok(());
        };
        let span = argv.iter().fold(first.span, |all, word| all.to(word.span));
        self.deeper(|reader| {
            reader.launch(Launch {
                argv,
                span,
                functions,
                more: run.more,
            })
        })
    }

    /// Follows a command once more without the words that may be none: an option before one takes the next word then.
    fn without_words_that_vanish(&mut self, launch: &Launch, name: &str) -> Result<(), Unreadable> {
        if self.varying || matches!(name, "test" | "[") {
            return Ok(());
        }
        let nullglob = self.variables.nullglob || self.found.nullglob;
        let last = launch.argv.len() - 1;
        let vanishing: Vec<usize> = (1..last).filter(|at| launch.argv[*at].may_vanish(nullglob)).collect();
        if vanishing.is_empty() {
            return Ok(());
        }
        self.varying = true;
        let all = (vanishing.len() > 1).then(|| vanishing.clone());
        let mut variants = vanishing.into_iter().map(|at| vec![at]).chain(all);
        let result = variants.try_for_each(|without| {
            let kept = launch.argv.iter().enumerate().filter(|(at, _)| !without.contains(at));
            let argv = kept.map(|(_, word)| word.clone()).collect();
            self.launch(Launch { argv, ..launch.clone() })
        });
        self.varying = false;
        result
    }

    /// Whether a word is the value of one variable that is as the shell was started with it: nothing that runs here has
    /// given it that.
    pub(crate) fn is_ambient(&mut self, word: &Word) -> bool {
        let is_plain = |text: &str| text.bytes().all(plain);
        let Some((before, expansion)) = word.written.split_once('$') else {
            return false;
        };
        let (name, rest) = match expansion.strip_prefix('{') {
            Some(inner) => match inner.split_once('}') {
                Some((inner, rest)) => {
                    let (name, default) = inner.split_once('-').unwrap_or((inner, ""));
                    if !is_plain(default) {
                        return false;
                    }
                    (name.strip_suffix(':').unwrap_or(name), rest)
                }
                None => return false,
            },
            None => {
                let end = expansion.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
                expansion.split_at(end.unwrap_or(expansion.len()))
            }
        };
        let is_parameter = matches!(name.as_bytes(), [b'1'..=b'9']) && !self.in_function;
        is_plain(before)
            && is_plain(rest)
            && (is_name(name) || is_parameter)
            && !crate::variables::set_by_the_shell(name)
            && self.lookup(name).is_none()
    }

    /// Whether a function or an alias is certain to run for this command, and nothing in the text takes it away.
    fn is_defined(&self, name: &str, first: &Word) -> bool {
        let Defined { earlier, functions, .. } = &self.defined;
        let is_function = functions.contains(name) || earlier.functions.contains(name);
        // Where it is quoted, or comes out of an expansion, no alias is looked for.
        // Nor for the name that one stands for, which is a program.
        let is_alias = || {
            earlier.aliases.contains(name)
                && !self.aliases.iter().any(|followed| followed == name)
                && *first.written == *name
                && self.written(first.span) == name
        };
        (is_function || is_alias()) && self.keeps(name)
    }

    /// Whether nothing in the text takes away a function or array of this name.
    pub(super) fn keeps(&self, name: &str) -> bool {
        self.variables.keep(name) && self.found.keep(name)
    }

    /// Whether any assignment may be refused.
    pub(super) fn may_abort(&self) -> bool {
        self.variables.may_abort || self.found.may_abort
    }

    /// A directory in which the options of a command tell it to work (`git -C`, `make -C`).
    pub(crate) fn is_told_to_work_in(&mut self, word: &Word, run: &Run) {
        self.works_in(word);
        self.displaced = Some(run.index);
    }

    /// A directory in which a program works.
    pub(crate) fn works_in(&mut self, word: &Word) {
        self.changes_directory(std::slice::from_ref(word));
    }

    /// Commands that stand in directories below this one which the text does not name (`git submodule foreach`).
    pub(crate) fn works_below(&mut self) {
        // At most four directories down; from deeper ones, `..` is not followed up to here.
        for directory in ["*", "*/*", "*/*/*", "*/*/*/*"] {
            self.base(Base::At(directory.to_owned()));
        }
    }

    pub(super) fn unknown_text(&mut self, word: &Word, run: &Run) {
        self.doubt(
            Doubt::Launch,
            word.shown(),
            format!("`{}` is given text that cannot be read here", run.name),
            word.span,
            Some(run.index),
        );
    }

    /// The arguments of a command, which are a function's parameters if it is one.
    pub(super) fn positional(&mut self, args: &[Word]) {
        let mut certain = true;
        for (at, word) in args.iter().enumerate().take(9) {
            certain &= word.fields == Fields::One;
            let value = if certain {
                word.atoms.to_vec()
            } else {
                vec![Atom::Hidden(Hidden::Anything)]
            };
            self.found.assign(&(at + 1).to_string(), value);
        }
    }

    /// From here on, a parameter can be any.
    pub(super) fn forget_positional(&mut self) {
        for number in 1..=9 {
            self.found
                .assign(&number.to_string(), vec![Atom::Hidden(Hidden::Anything)]);
        }
    }

    /// What a command that launches nothing else reads, when a shell stands here.
    pub(super) fn present_input(&self) -> Input {
        self.input.clone()
    }
}
