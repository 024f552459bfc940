//! Walks the syntax tree and collects the commands that the text can launch, with their effects.
//!
//! It follows everything that launches something: substitutions, wrappers, shells, traps, `eval`, arithmetic.
//! The result is a [`Reading`], which errs on the side of finding too much.

mod arithmetic;
mod builtins;
mod expand;
mod file_names;
mod launch;
mod names;
mod printed;
mod run;
mod shells;
mod source;
mod walk;

use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use crate::carried::{CarriedState, DefinedNames};
use crate::descriptor::{Descriptor, descriptor};
use crate::program::Program as Described;
use crate::reading::{Action, Doubt, Effect, FileNames, Invocation, Parts, PartsOf, Reading, Via};
use crate::screen::Unreadable;
use crate::span::Span;
use crate::syntax::tree::Program;
use crate::variables::Variables;
use crate::word::Word;
use run::FoundNames;
pub use run::is_shell;
pub(crate) use run::{Fed, Launch, Run};
use source::Place;

/// How many parts (commands, words, pieces of words) a text may have, which bounds how long it is read: about
/// 16,000 commands.
const MAX_NODES: usize = 96 * 1024;
/// How deeply texts within the text (substitutions, `sh -c`, `eval`) may nest.
const MAX_DEPTH: usize = 100;
/// How much text may be read in all, in bytes, since what stands inside others is read once more.
const MAX_PARSED: usize = 1024 * 1024;
/// How much is read of the values of variables in all, in bytes and pieces. Beyond it any of them can have any value.
const MAX_EXPANDED: usize = 1024 * 1024;
/// How often the text is walked until the values of its variables are settled.
const MAX_PASSES: usize = 4;

/// The source of a command's standard input.
#[derive(Debug, Clone, PartialEq)]
enum Input {
    /// An empty input.
    Nothing,
    /// One of these texts.
    Text(Vec<Word>),
    /// A file.
    File(Word),
    /// Names of files that a program found.
    Names(FoundNames),
    /// Text of which a part stands in the text, changed by what it went through.
    Altered,
    /// Data that the text does not show.
    Unknown,
}

/// Walks the text until the values that its variables can have no longer change.
pub(crate) fn read_to_fixpoint(
    programs: Programs,
    text: &str,
    before: &CarriedState,
    names: FileNames,
) -> Result<Reading, Unreadable> {
    let mut variables = before.variables().clone();
    let mut parsed = Parsed::new();
    let mut functions_with_input = BTreeSet::new();
    for pass in 0..MAX_PASSES {
        let mut reader = Reader::new(programs, text, variables, before, parsed);
        reader.functions_with_input.clone_from(&functions_with_input);
        // Where an earlier text of the shell took names from is not known.
        reader.names_are_plain = names == FileNames::Plain && !before.variables().hold_names();
        reader.is_first_walk = pass == 0;
        reader.text(text, Place::From(0))?;
        reader.earlier_definitions(before.variables())?;
        let Reader {
            mut reading,
            found,
            looked_up,
            needs_another_walk,
            functions_with_input: with_input,
            variables: known,
            splits_for_good,
            parsed: trees,
            ..
        } = reader;
        // Whatever calls one of them was perhaps read before its definition.
        let knows_functions = with_input == functions_with_input;
        functions_with_input = with_input;
        if knows_functions && !needs_another_walk && (!looked_up || known.cover(&found)) {
            opened_anew(&mut reading, &found);
            reading.left = CarriedState::by(found, splits_for_good);
            return Ok(reading);
        }
        (variables, parsed) = (found, trees);
        if pass + 2 == MAX_PASSES {
            variables.forget_values();
        }
    }
    Err(Unreadable::whole(
        text,
        "its variables depend on each other too deeply to be followed",
    ))
}

/// Records that a file is written where a descriptor is opened anew by its name (`/dev/stderr`): whoever opened the file
/// for reading alone, it is opened for writing now.
fn opened_anew(reading: &mut Reading, found: &Variables) {
    let mut written = Vec::new();
    for effect in &reading.effects {
        let Action::Writes(word) = &effect.action else { continue };
        let Some(path) = word.known().filter(|path| path.starts_with('/')) else {
            continue;
        };
        let files = match descriptor(&path) {
            Some(Descriptor::Number(number)) => found.files_of(number),
            Some(Descriptor::Unknown) | None => Vec::new(),
        };
        written.extend(files.into_iter().map(|file| Effect {
            action: Action::Writes(Word {
                span: effect.span,
                ..file.clone()
            }),
            object: file.shown(),
            ..effect.clone()
        }));
    }
    written.dedup();
    reading.effects.extend(written);
}

/// What reads the arguments of known programs. They hold texts of the shell themselves (`sh -c`, `find -exec`), which the
/// reader reads: so it is given them, and they are given it.
#[derive(Clone, Copy)]
pub(crate) struct Programs {
    /// Reads a command of a program.
    pub(crate) apply: fn(&'static Described, &Run, &mut Reader<'_>) -> Result<(), Unreadable>,
    /// Reads a command whose arguments follow no table, by the name of their function; false if the table says the rest.
    pub(crate) special: fn(&str, &'static Described, &Run, &mut Reader<'_>) -> Result<bool, Unreadable>,
    /// Reads code of a program's own language.
    pub(crate) code: fn(&Word, &Run, &mut Reader<'_>) -> Result<(), Unreadable>,
}

/// The state of one walk over a text.
pub(crate) struct Reader<'a> {
    whole: &'a str,
    programs: Programs,
    reading: Reading,
    /// The variables as the last walk found them: what expansions use.
    variables: Variables,
    /// The variables as this walk finds them.
    found: Variables,
    /// Whether any expansion asked for a variable that the text assigns.
    looked_up: bool,
    /// The command whose options say in which directory it works.
    pub(crate) displaced: Option<usize>,
    /// In which directory the command stands that is being walked, relative to where the text starts, as
    /// long as that is certain.
    here: Option<String>,
    /// Whether the text has certainly changed the directory, so that `cd -` leads to one in which it was.
    has_entered: bool,
    /// The same, when the present command began.
    began: Option<String>,
    /// Whether others ran before in the same shell.
    has_past: bool,
    /// The functions that may be called, and where.
    called: Vec<(String, Span)>,
    /// The aliases that are being followed.
    aliases: Vec<String>,
    /// Whether words stay split otherwise once the text has ended.
    splits_for_good: bool,
    /// What is defined for certain when later commands run.
    defined: Defined,
    /// What the present command declares, of what had no value before it.
    declared_first: Vec<String>,
    /// Whether a command is followed once more without a word that may be none.
    varying: bool,
    /// Whether a command is the whole condition of a `while`.
    ends_loop: bool,
    /// Whether the body of a function is being walked.
    in_function: bool,
    input: Input,
    /// What the last simple command was fed.
    fed_with: Input,
    /// Whether the body of a function holds a program that runs what it is fed.
    runs_input_in_function: bool,
    /// Whether the command that is read has its standard input from a redirection of its own.
    redirects_input: bool,
    /// Whether something that ran may have read from the standard input of what is read, or put another in its place.
    uses_input: bool,
    /// Whether nothing is known of the text's variables yet, and whether that made a difference.
    is_first_walk: bool,
    /// Whether `IFS` is empty for the command that is read, so that `read` keeps a line as it is.
    keeps_ends: bool,
    needs_another_walk: bool,
    /// Whether a descriptor was duplicated for reading, or opened by its name, so that what has an input of its own may read
    /// that of others.
    shares_input: bool,
    /// Functions of the text that leave the standard input as it is, and those of which a definition does not.
    functions_without_input: BTreeSet<String>,
    functions_with_input: BTreeSet<String>,
    /// Whether the present text is read by a shell that may not be bash.
    plain_sh: bool,
    /// Whether words stay whole where they stand: in an assignment and in `[[ … ]]`.
    whole_words: bool,
    /// Whether names of files, of which blanks are part, were expanded again so that they split.
    split_names: bool,
    /// How many texts that stand in the text were printed or fed to something so far.
    texts_given: usize,
    /// Whether the file names that the text uses are known to be plain.
    names_are_plain: bool,
    /// What is launched here is given these names that were found.
    fed: Option<Fed>,
    depth: usize,
    /// The variables that are being followed into each other as arithmetic.
    evaluating: Vec<String>,
    /// Where a value was evaluated last that is not known.
    evaluated_unknown: Option<Span>,
    /// How much was read of the values of variables, in bytes and pieces.
    expanded: usize,
    nodes: usize,
    /// How much text was read, in bytes.
    bytes_read: usize,
    /// The trees of the texts that were parsed.
    parsed: Parsed,
}

/// Trees by their texts.
type Parsed = HashMap<Box<str>, Rc<Program>>;

/// What has been defined for certain where the walk stands: it is lost again at the end of the part
/// of the text that defines it, if that part does not run for certain or runs in another shell.
///
/// What is lost is undone step by step: a copy for each part would cost as much as all that is defined.
#[derive(Debug, Default)]
struct Defined {
    /// The functions and aliases of earlier texts, where this shell runs what is read.
    earlier: DefinedNames,
    functions: BTreeSet<String>,
    /// Arrays that have names for keys.
    associative: BTreeSet<String>,
    /// Variables that have been given a value, and are not as this shell found them.
    assigned: BTreeSet<String>,
    /// What brings back how things stood, the last step first.
    undo: Vec<Undo>,
    /// Whether there is a further line that runs if one is given up, as after an error in an expansion.
    lines: bool,
    /// How many steps there were when the present line began.
    line: usize,
    /// Whether the rest of a line may have been given up: nothing is certain from there on.
    given_up: bool,
}

#[derive(Debug)]
enum Undo {
    Function(String),
    Associative(String),
    Assigned(String),
}

impl Defined {
    /// The same where nothing of this text is certain.
    fn of_earlier_texts(&self) -> Self {
        Self {
            earlier: self.earlier.clone(),
            ..Self::default()
        }
    }

    fn function(&mut self, name: &str) {
        if !self.given_up && self.functions.insert(name.to_owned()) {
            self.undo.push(Undo::Function(name.to_owned()));
        }
    }

    fn associative(&mut self, name: &str) {
        if !self.given_up && self.associative.insert(name.to_owned()) {
            self.undo.push(Undo::Associative(name.to_owned()));
        }
    }

    fn assigned(&mut self, name: &str) {
        if !self.given_up && self.assigned.insert(name.to_owned()) {
            self.undo.push(Undo::Assigned(name.to_owned()));
        }
    }

    /// The variables that have been given a value since there were so many steps.
    fn assigned_since(&self, steps: usize) -> BTreeSet<String> {
        let assigned = self.undo[steps.min(self.undo.len())..]
            .iter()
            .filter_map(|step| match step {
                Undo::Assigned(name) => Some(name.clone()),
                Undo::Function(_) | Undo::Associative(_) => None,
            });
        assigned.collect()
    }

    /// Something may fail so that bash goes on with the next line.
    fn may_give_up(&mut self) {
        if self.lines && !self.given_up {
            self.back_to(self.line);
            self.given_up = true;
        }
    }

    /// Brings back what was defined when there were so many steps.
    fn back_to(&mut self, steps: usize) {
        while self.undo.len() > steps
            && let Some(step) = self.undo.pop()
        {
            match step {
                Undo::Function(name) => {
                    self.functions.remove(&name);
                }
                Undo::Associative(name) => {
                    self.associative.remove(&name);
                }
                Undo::Assigned(name) => {
                    self.assigned.remove(&name);
                }
            }
        }
    }
}

impl<'a> Reader<'a> {
    fn new(programs: Programs, whole: &'a str, variables: Variables, before: &CarriedState, parsed: Parsed) -> Self {
        Self {
            whole,
            programs,
            reading: Reading {
                dotglob: variables.dotglob,
                ..Reading::default()
            },
            variables,
            found: before.variables().clone(),
            looked_up: false,
            displaced: None,
            here: Some(String::new()),
            has_entered: false,
            began: Some(String::new()),
            has_past: *before != CarriedState::default(),
            called: Vec::new(),
            aliases: Vec::new(),
            splits_for_good: before.variables().splits_otherwise,
            defined: Defined {
                earlier: before.defined().clone(),
                ..Defined::default()
            },
            declared_first: Vec::new(),
            varying: false,
            ends_loop: false,
            in_function: false,
            input: Input::Nothing,
            fed_with: Input::Nothing,
            runs_input_in_function: false,
            redirects_input: false,
            uses_input: false,
            is_first_walk: false,
            keeps_ends: false,
            needs_another_walk: false,
            shares_input: false,
            functions_without_input: BTreeSet::new(),
            functions_with_input: BTreeSet::new(),
            plain_sh: false,
            whole_words: false,
            split_names: false,
            texts_given: 0,
            names_are_plain: false,
            fed: None,
            depth: 0,
            evaluating: Vec::new(),
            evaluated_unknown: None,
            expanded: 0,
            nodes: 0,
            bytes_read: 0,
            parsed,
        }
    }

    pub(crate) fn programs(&self) -> Programs {
        self.programs
    }

    /// Counts one more part of the text against its limit.
    fn node(&mut self) -> Result<(), Unreadable> {
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            return Err(Unreadable::whole(
                self.whole,
                format!("it has more than {MAX_NODES} parts"),
            ));
        }
        Ok(())
    }

    /// Counts so much text against the limit of what is read in all.
    fn reads(&mut self, text: &str) -> Result<(), Unreadable> {
        self.bytes_read += text.len();
        if self.bytes_read > MAX_PARSED {
            return Err(Unreadable::whole(self.whole, "it holds too much text within text"));
        }
        Ok(())
    }

    /// Goes one level deeper, for texts within the text.
    fn deeper<T>(&mut self, inner: impl FnOnce(&mut Self) -> Result<T, Unreadable>) -> Result<T, Unreadable> {
        if self.depth >= MAX_DEPTH {
            return Err(Unreadable::whole(
                self.whole,
                format!("it is nested more than {MAX_DEPTH} levels deep"),
            ));
        }
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }

    /// Reads words that stay whole.
    fn whole<T>(&mut self, inner: impl FnOnce(&mut Self) -> Result<T, Unreadable>) -> Result<T, Unreadable> {
        let outer = std::mem::replace(&mut self.whole_words, true);
        let result = inner(self);
        self.whole_words = outer;
        result
    }

    /// Walks a part of the text of which nothing is certain for what follows it.
    fn scope<T>(&mut self, inner: impl FnOnce(&mut Self) -> Result<T, Unreadable>) -> Result<T, Unreadable> {
        let steps = self.defined.undo.len();
        let result = inner(self);
        self.defined.back_to(steps);
        result
    }

    /// Walks what has redirections or none: one can fail, and then nothing of it runs.
    fn behind<T>(
        &mut self,
        redirections: bool,
        inner: impl FnOnce(&mut Self) -> Result<T, Unreadable>,
    ) -> Result<T, Unreadable> {
        match redirections {
            true => self.scope(inner),
            false => inner(self),
        }
    }

    /// Walks one of several parts, of which one runs. Gives the variables that it gives a value.
    fn branch(
        &mut self,
        inner: impl FnOnce(&mut Self) -> Result<(), Unreadable>,
    ) -> Result<BTreeSet<String>, Unreadable> {
        let steps = self.defined.undo.len();
        let result = inner(self);
        let assigned = self.defined.assigned_since(steps);
        self.defined.back_to(steps);
        result.map(|()| assigned)
    }

    /// Records what a command does.
    pub(crate) fn effect(
        &mut self,
        action: Action,
        object: impl Into<String>,
        span: Span,
        by: Option<usize>,
        via: Via,
    ) {
        self.reading.effects.push(Effect {
            action,
            object: object.into(),
            span,
            by,
            via,
        });
    }

    /// Records what is done to what a word names.
    pub(crate) fn effect_on(&mut self, action: fn(Word) -> Action, word: &Word, by: Option<usize>, via: Via) {
        self.effect(action(word.clone()), word.shown(), word.span, by, via);
    }

    /// Records that an option is not known to be harmless, and why.
    pub(crate) fn doubt_option(&mut self, doubt: Doubt, word: &Word, because: impl Into<String>, by: Option<usize>) {
        let action = Action::Doubt(doubt, because.into());
        self.effect(action, word.shown(), word.span, by, Via::Option);
    }

    /// Records what is not known to be harmless, and why.
    pub(crate) fn doubt(
        &mut self,
        doubt: Doubt,
        object: impl Into<String>,
        because: impl Into<String>,
        span: Span,
        by: Option<usize>,
    ) {
        self.effect(Action::Doubt(doubt, because.into()), object, span, by, Via::Operand);
    }

    /// Records a command that may launch anything.
    fn doubt_command(&mut self, run: &Run, because: impl Into<String>) {
        self.doubt(
            Doubt::Launch,
            self.written(run.span),
            because,
            run.span,
            Some(run.index),
        );
    }
}

/// What the descriptions of programs tell the reader.
impl Reader<'_> {
    /// How many effects are recorded, to tell later which ones an option added.
    pub(crate) fn effects(&self) -> usize {
        self.reading.effects.len()
    }

    /// How many commands are recorded, to tell later which ones another launched.
    pub(crate) fn commands(&self) -> usize {
        self.reading.commands.len()
    }

    /// In which directory the present command stands, if that is certain.
    pub(crate) fn certainly_here(&self) -> Option<String> {
        self.here.clone()
    }

    /// Remembers where a command begins.
    pub(crate) fn stands_where_it_is(&mut self) {
        self.began.clone_from(&self.here);
    }

    /// After a command, none of whose options changes where the shell stands.
    pub(crate) fn stands_where_it_was(&mut self) {
        self.here.clone_from(&self.began);
    }

    /// Records a change in several parts.
    pub(crate) fn in_parts(&mut self, of: PartsOf, object: String, span: Span, by: Option<usize>) {
        let here = self.began.clone();
        self.effect(Action::InParts(Parts { of, here }), object, span, by, Via::Operand);
    }

    /// Records that a command reads nothing of directories that are named to it.
    pub(crate) fn reads_files_alone(&mut self, run: &Run) {
        if let Some(command) = self.reading.commands.get_mut(run.index) {
            command.files = true;
        }
    }

    /// The words of a command as messages show them.
    pub(crate) fn shown(&self, run: &Run) -> String {
        self.reading
            .commands
            .get(run.index)
            .map_or_else(|| run.name.clone(), Invocation::shown)
    }

    /// Marks the effects since `before` as brought about by an option.
    pub(crate) fn via_option(&mut self, before: usize) {
        for effect in self.reading.effects.iter_mut().skip(before) {
            effect.via = Via::Option;
            if let Action::Doubt(doubt @ Doubt::Argument, _) = &mut effect.action {
                *doubt = Doubt::Setting;
            }
        }
    }

    /// A word that decides what is launched, and cannot be read.
    pub(crate) fn unknown_launch(&mut self, word: &Word, run: &Run) {
        self.unknown_text(word, run);
    }

    /// Text that a shell runs which another program feeds.
    pub(crate) fn shell_text_fed(&mut self, text: &Word, by: Option<usize>) -> Result<(), Unreadable> {
        let outer = std::mem::replace(&mut self.input, Input::Unknown);
        let result = self.shell_text(text, by);
        self.input = outer;
        result
    }

    /// Whether this command looks through directories since so many effects; what it finds there is then read.
    pub(crate) fn gives_names(&mut self, since: usize) -> Option<Fed> {
        let mut found = false;
        for effect in self.reading.effects.iter_mut().skip(since) {
            if let Action::Walks(walk) = &mut effect.action {
                walk.names = false;
                walk.gives_directories = true;
                found = true;
            }
        }
        found.then_some(Fed { no_options: false })
    }

    /// Whether what comes from data are names that were found.
    pub(crate) fn is_fed(&self) -> bool {
        self.fed.is_some()
    }

    /// Whether what comes from data are names, and none of them can be an option.
    pub(crate) fn is_fed_no_options(&self) -> bool {
        self.fed.is_some_and(|fed| fed.no_options)
    }

    /// Launches a command that is given names that were found, if `fed`.
    pub(crate) fn launch_fed(&mut self, launch: Launch, fed: Option<Fed>) -> Result<(), Unreadable> {
        let outer = std::mem::replace(&mut self.fed, fed);
        let result = self.launch_deeper(launch);
        self.fed = outer;
        result
    }

    /// Launches a command one level deeper.
    pub(crate) fn launch_deeper(&mut self, launch: Launch) -> Result<(), Unreadable> {
        self.deeper(|reader| reader.launch(launch))
    }

    /// A variable that is set for one program (`env NAME=value program`).
    pub(crate) fn assign_for_child(&mut self, name: &str, value: &Word, span: Span) -> Result<(), Unreadable> {
        // A shell that the program starts sees it too.
        self.assign(name, value.atoms.to_vec(), span)?;
        self.exported(name, span);
        Ok(())
    }

    /// Records a text that is fed to a program: what names a path in it is looked for.
    pub(crate) fn names_that_are_fed(&mut self, run: &Run) {
        if let Input::Text(words) = self.present_input() {
            for word in words {
                let (object, span) = (word.shown(), word.span);
                self.effect(Action::Code(word), object, span, Some(run.index), Via::Operand);
            }
        }
    }

    /// Code in the text itself that is fed to a program.
    pub(crate) fn code_that_is_fed(&mut self, run: &Run) -> Result<(), Unreadable> {
        let code = self.programs.code;
        self.runs_input_in_function |= self.in_function;
        match self.present_input() {
            Input::Text(words) => words.iter().try_for_each(|word| code(word, run, self)),
            Input::Altered => {
                self.runs_what_it_is_fed(run);
                Ok(())
            }
            Input::Nothing | Input::File(_) | Input::Names(_) | Input::Unknown => Ok(()),
        }
    }

    /// Code of another language that comes on standard input.
    pub(crate) fn code_from_input(&mut self, run: &Run) -> Result<(), Unreadable> {
        self.input_read_by(self.programs.code, run)
    }

    /// Code that a command is fed, read by what knows its language.
    pub(crate) fn input_read_by(
        &mut self,
        code: fn(&Word, &Run, &mut Reader<'_>) -> Result<(), Unreadable>,
        run: &Run,
    ) -> Result<(), Unreadable> {
        match self.present_input() {
            Input::Text(words) => words.iter().try_for_each(|word| code(word, run, self)),
            Input::File(file) => {
                self.effect_on(Action::RunsFile, &file, Some(run.index), Via::Operand);
                Ok(())
            }
            Input::Nothing | Input::Names(_) | Input::Altered | Input::Unknown => {
                self.runs_what_it_is_fed(run);
                Ok(())
            }
        }
    }

    fn runs_what_it_is_fed(&mut self, run: &Run) {
        let because = format!("`{}` runs whatever it is fed, which cannot be read here", run.name);
        self.doubt_command(run, because);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::{PROGRAMS, read};

    #[test]
    fn nesting_within_the_limit_is_read_and_beyond_it_is_not() {
        for (open, inner, close) in [
            ("( ", "ls", " )"),
            ("{ ", "ls;", " };"),
            ("if true; then ", "ls;", " fi;"),
            ("while true; do ", "ls;", " done;"),
            ("case x in a) ", "ls", " ;; esac"),
            ("echo $(", "ls", ")"),
            ("echo \"$(", "ls", ")\""),
            ("echo ${x:-", "y", "}"),
            ("echo \"${x:-", "y", "}\""),
            ("f() { ", "ls;", " };"),
            ("echo <(", "ls", ")"),
            ("echo $((1+", "1", "))"),
            ("[[ ( ", "a", " ) ]]"),
        ] {
            let nested = |depth: usize| format!("{}{inner}{}", open.repeat(depth), close.repeat(depth));
            if open != "[[ ( " && !open.starts_with("echo") {
                assert!(read(&nested(40)).is_ok(), "{open}");
            }
            // Whatever the answer, there is one: no overflow, no panic, and soon.
            for depth in [10, 95, 99, 101, 500, 10_000] {
                if let Err(unreadable) = read(&nested(depth)) {
                    assert_ne!(unreadable.because, "the parser failed on it", "{open}");
                }
            }
            assert!(read(&nested(10_000)).is_err(), "{open}");
            // Nor where what was opened is never closed.
            assert!(read(&open.repeat(99)).is_err(), "{open}");
        }
    }

    #[test]
    fn a_text_may_end_anywhere() {
        let whole = "a=(b [1]=c) f() { case $x in (a|b) echo \"$(ls `cat`)\" ${x:-\\} $'\\x' <<E;; esac; }; [[ a =~ (b) ]] && ((1)) \\\nx é\\";
        for (end, _) in whole.char_indices().chain([(whole.len(), ' ')]) {
            if let Err(unreadable) = read(&whole[..end]) {
                assert_ne!(unreadable.because, "the parser failed on it", "{}", &whole[..end]);
            }
        }
    }

    /// Patterns of which long texts are made, `#` for a number that counts up.
    const REPEATED: &[&str] = &[
        "a#=b; ",
        "a=$a$b; b=$a; ",
        "export a#=$b; ",
        "cd d#; cat a; ",
        "cd d# && cat a; ",
        "pushd d; ls *; ",
        "f#() { ls; }; f# a; ",
        "(g#() { :; }); f#() { :; }; ",
        "f() { cat $1; }; f a#; ",
        "unset -f x#; f#() { :; }; ",
        "cat <<E#\nabc $a\nE#\n",
        "bash <<'E'\ncat a; cd b\nE\n",
        "echo $(cat a# $(ls b)); ",
        "echo `cat a#`; ",
        "cat *a#? d/*; ",
        "cat {a,b}{c,#}; ",
        "cat a# | grep x | sort; ",
        "find . -name 'a#' | xargs cat; ",
        "find d# -exec cat {} +; ",
        "case $a# in a*) ls;; b) cat x;; esac; ",
        "a=(b c# *); cat ${a[@]}; ",
        "alias a#='ls -l'; a# b; ",
        "source f#.sh; ",
        "git log -p -- a#; ",
        "if [ -f a# ]; then cat a#; fi; ",
        "for i in a# b; do cat $i; done; ",
        "while read -r l; do echo $l; done < a#; ",
        "((x=#+y)); y=$z; ",
        "[[ $a# == b* ]] && cat x; ",
        "cat ${a#:-b} ${c#d}; ",
        "eval 'cat a#'; ",
        "sh -c 'cd d#; cat a'; ",
        "grep -r x d#; ",
    ];

    /// What reading costs: its parts, the text and the values that it reads, and what it records.
    fn cost(text: &str) -> usize {
        let before = CarriedState::default();
        let mut reader = Reader::new(PROGRAMS, text, before.variables().clone(), &before, Parsed::new());
        reader.text(text, Place::From(0)).expect("it can be read");
        let words = reader.reading.commands.iter().flat_map(|command| &command.argv);
        let words: usize = words.map(|word| word.written.len()).sum();
        let effects = &reader.reading.effects;
        let objects: usize = effects.iter().map(|effect| 32 + effect.object.len()).sum();
        reader.nodes + reader.bytes_read + reader.expanded + words + objects
    }

    #[test]
    fn what_reading_costs_grows_with_the_text_and_no_faster() {
        let wrapped = |open: &str, unit: &str, close: &str, count: usize| {
            let numbers = (100..100 + count).map(|number| unit.replace('#', &number.to_string()));
            format!("{open}{}{close}", numbers.collect::<String>())
        };
        let listed = [
            ("grep -r x ", "d# ", ""),
            ("cat ", "a# ", ""),
            ("a=$z; echo $((1", "+a", "))"),
            ("x='", "x", "'; cat $x"),
        ];
        let all = REPEATED.iter().map(|unit| ("", *unit, "")).chain(listed);
        for (open, unit, close) in all {
            let (short, long) = (
                cost(&wrapped(open, unit, close, 200)),
                cost(&wrapped(open, unit, close, 800)),
            );
            assert!(
                long <= 5 * short,
                "{open}{unit}{close}: {short}, four times as long {long}"
            );
        }
    }

    #[test]
    fn values_of_variables_are_read_within_a_bound() {
        let large = format!("x='{}'; {}", "x".repeat(60_000), "cat $x; ".repeat(5_000));
        let reading = read(&large).expect("it can be read");
        let known = reading
            .commands
            .iter()
            .filter(|command| command.argv[1].known().is_some());
        assert!(known.count() < 40);
    }

    #[test]
    fn five_thousand_lines_are_read_and_far_more_commands_are_not() {
        assert!(read(&"x=$((x+1)); echo line >> log\n".repeat(5_000)).is_ok());
        let unreadable = read(&"ls; ".repeat(60_000)).expect_err("it has too many parts");
        assert!(unreadable.because.contains("parts"), "{}", unreadable.because);
    }

    #[test]
    fn long_texts_are_not_read() {
        assert!(read(&"ls;".repeat(100_000)).is_err());
        assert!(read(&"a ".repeat(150_000)).is_err());
        assert!(read(&format!("echo {}", "{a,b}".repeat(10_000))).is_ok());
        assert!(read(&format!("echo {}", "{1..1}".repeat(10_000))).is_ok());
    }
}
