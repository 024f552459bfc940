//! Builtins of bash that run text, set variables or change what later words mean.

use super::Reader;
use super::launch::MAX_NAMES;
use super::run::Run;
use crate::reading::{Base, Doubt};
use crate::screen::Unreadable;
use crate::syntax::is_name;
use crate::variables::{Influence, OPTIONAL_LOCKS, influence};
use crate::word::{Atom, Fields, Hidden, Known, Word, spaced};

/// Variables that bash makes itself, as arrays or otherwise, besides those of which the names begin with `BASH`.
const OWN_ARRAYS: &[&str] = &[
    "COMP_WORDS",
    "COMPREPLY",
    "COPROC",
    "DIRSTACK",
    "EPOCHREALTIME",
    "EPOCHSECONDS",
    "FUNCNAME",
    "GROUPS",
    "HISTCMD",
    "LINENO",
    "MAPFILE",
    "PIPESTATUS",
    "RANDOM",
    "READLINE_LINE",
    "REPLY",
    "SECONDS",
    "SRANDOM",
];

/// What stands between two operands of `test`. What is before it is an operand, whatever it looks like.
const COMPARISONS: &[&str] = &[
    "=", "==", "!=", "<", ">", "=~", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-nt", "-ot", "-ef",
];

/// Words that begin, divide or end compound commands, unless an alias stands for them.
const RESERVED: &[&str] = &[
    "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for", "function", "if", "in", "select", "then",
    "time", "until", "while",
];

/// The names that a builtin assigns, and its options with their values.
type NamesAndValues = (Vec<Word>, Vec<(char, Word)>);

impl Reader<'_> {
    /// Reads what a builtin of bash does. Returns true if its tables have nothing to add.
    pub(super) fn builtin(&mut self, run: &Run) -> Result<bool, Unreadable> {
        let args = &run.args;
        match run.name.as_str() {
            "eval" => {
                let words: Vec<Word> = args
                    .iter()
                    .skip_while(|word| word.known().as_deref() == Some("--"))
                    .cloned()
                    .collect();
                if !words.is_empty() {
                    self.own_text(&spaced(&words, run.span), Some(run.index))?;
                }
                Ok(true)
            }
            "." | "source" => {
                if let Some(at) = args.iter().position(|word| word.known().as_deref() != Some("--")) {
                    self.positional(&args[at + 1..]);
                    self.shell_file(&args[at], run)?;
                }
                Ok(true)
            }
            "exec" => self.exec_builtin(run),
            "command" => self.command_builtin(run),
            "builtin" => {
                self.launch_rest(args.clone(), run, false)?;
                Ok(true)
            }
            "jobs" if args.first().and_then(Word::known).as_deref() == Some("-x") => {
                self.launch_rest(args[1..].to_vec(), run, true)?;
                Ok(true)
            }
            "trap" => self.trap_builtin(run),
            "alias" => self.alias_builtin(run),
            "declare" | "typeset" | "local" | "export" | "readonly" => {
                self.declaration(run)?;
                Ok(true)
            }
            "read" => self.read_builtin(run),
            "mapfile" | "readarray" => self.mapfile_builtin(run),
            "getopts" => {
                let options = usize::from(args.first().and_then(Word::known).as_deref() == Some("--"));
                if let Some(name) = args.get(1 + options) {
                    self.named(&name.clone(), vec![Atom::Hidden(Hidden::Anything)])?;
                }
                Ok(true)
            }
            "printf" => self.printf_builtin(run),
            "shift" => {
                self.forget_positional();
                Ok(false)
            }
            "set" => self.set_builtin(run),
            "unset" => self.unset_builtin(run),
            "unalias" => {
                for word in args {
                    let name = word.known();
                    self.found
                        .undefine(name.as_deref().filter(|name| !name.starts_with('-')));
                }
                Ok(false)
            }
            "let" => {
                for word in args {
                    self.evaluated_expression(&word.clone())?;
                }
                Ok(true)
            }
            "test" | "[" => {
                self.tested(args)?;
                Ok(false)
            }
            "cd" | "pushd" => {
                self.changes_directory(args);
                Ok(false)
            }
            "popd" if self.has_past => {
                self.base(Base::Unknown);
                Ok(false)
            }
            "hash" => self.hash_builtin(run),
            "enable" => {
                if args.iter().any(|word| {
                    word.known()
                        .is_none_or(|text| text.starts_with('-') && text.contains(['f', 'n']))
                }) {
                    self.doubt_command(run, "it changes what a builtin's name runs");
                }
                Ok(false)
            }
            "complete" | "compgen" => self.complete_builtin(run),
            "bind"
                if args
                    .iter()
                    .any(|word| word.known().is_none_or(|text| text.contains('x'))) =>
            {
                self.doubt_command(run, "it binds a key to a command");
                Ok(true)
            }
            // `-s` runs one, whatever stands beside it.
            "fc" if args
                .first()
                .and_then(Word::known)
                .is_some_and(|text| text.starts_with("-l"))
                && args
                    .iter()
                    .all(|word| word.known().is_some_and(|text| lists_history(&text))) =>
            {
                Ok(true)
            }
            "fc" => {
                self.doubt_command(run, "it runs commands of the history");
                Ok(true)
            }
            "shopt" => {
                for word in args {
                    self.shell_option(word, run);
                }
                Ok(false)
            }
            "wait" => self.wait_builtin(run),
            _ => Ok(false),
        }
    }

    /// The command that takes the shell's place.
    fn exec_builtin(&mut self, run: &Run) -> Result<bool, Unreadable> {
        let args = &run.args;
        let rest = self.after_options(args, "a", run);
        let first = self.reading.commands.len();
        let options = args.len() - rest.len();
        self.launch_rest(rest, run, false)?;
        let empties = |word: &Word| {
            word.known()
                .is_some_and(|text| text.starts_with('-') && text.contains('c'))
        };
        if args[..options].iter().any(empties) {
            self.unset_for_child(None);
            self.lost_environment(first, run.span);
        }
        Ok(true)
    }

    /// The command behind `command`, unless it only asks what a name means.
    fn command_builtin(&mut self, run: &Run) -> Result<bool, Unreadable> {
        let args = &run.args;
        let query = args
            .iter()
            .map_while(Word::known)
            .take_while(|word| word.starts_with('-'))
            .any(|word| word.contains(['v', 'V']));
        if !query {
            let rest = self.after_options(args, "", run);
            self.launch_rest(rest, run, false)?;
        }
        Ok(true)
    }

    /// The text that a trap runs.
    fn trap_builtin(&mut self, run: &Run) -> Result<bool, Unreadable> {
        let args = &run.args;
        match args.iter().find(|word| word.known().as_deref() != Some("--")) {
            Some(text) if matches!(text.known().as_deref(), Some("-" | "" | "-p" | "-l" | "-lp" | "-P")) => {}
            Some(text) => {
                // A later command of the session may switch on what makes a pattern of it.
                if text.known().is_some_and(|text| text.contains("!(")) {
                    self.doubt_pattern(text.span);
                }
                // Others do not run within substitutions, or only at a signal.
                let between = |word: &Word| {
                    word.known().is_none_or(|name| {
                        let name = name.to_ascii_uppercase();
                        ["DEBUG", "ERR", "RETURN"].contains(&name.trim_start_matches("SIG"))
                            || name.parse::<u8>().is_ok_and(|number| number > 60)
                    })
                };
                if args.iter().any(between) {
                    (self.found.traps_between, self.looked_up) = (true, true);
                }
                for one in text.alternatives(MAX_NAMES).unwrap_or_default() {
                    if let Some(known) = one.known() {
                        let kept = self.found.definitions.trap(&known);
                        self.keeps_definition(kept, None, text.span);
                    }
                }
                self.in_trap(text, Some(run.index))?;
            }
            None => {}
        }
        Ok(true)
    }

    /// The texts of aliases.
    fn alias_builtin(&mut self, run: &Run) -> Result<bool, Unreadable> {
        let args = &run.args;
        for word in args {
            match word.prefix().find('=') {
                Some(at) => {
                    let value = word.after(at + 1);
                    self.own_text(&value, Some(run.index))?;
                    if self.plain_sh {
                        let because = "in a shell other than bash an alias takes effect in a script too; \
                                       write the command out, or define a function";
                        self.doubt(Doubt::Launch, word.shown(), because, word.span, Some(run.index));
                    }
                    self.looked_up = true;
                    // It is put before the text that follows, and would swallow part of that.
                    let swallows = |text: &str| text.contains('#') || text.contains("<<") || text.ends_with('\\');
                    let name = &word.prefix()[..at];
                    let is_plain = name
                        .bytes()
                        .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
                    match value.known() {
                        Some(text) if !swallows(&text) && is_plain && !RESERVED.contains(&name) => {
                            let kept = self.found.definitions.alias(name, &text);
                            self.keeps_definition(kept, Some(name), word.span);
                        }
                        Some(_) | None => self.unknown_text(word, run),
                    }
                }
                None if word.known().is_some() => {}
                None => self.unknown_text(word, run),
            }
        }
        Ok(true)
    }

    /// The variables that `read` sets.
    fn read_builtin(&mut self, run: &Run) -> Result<bool, Unreadable> {
        let (names, _) = self.options_and_names(run, "adinNptu", &["a"])?;
        let value = match names.as_slice() {
            [_] => self.line_of_names(run),
            _ => None,
        };
        // What is left of a text, or of a list of names, need not be one.
        self.uses_input |= value.is_none();
        self.shares_input |= run
            .args
            .iter()
            .any(|word| word.prefix().starts_with('-') && word.prefix().contains('u'));
        for name in names {
            let value = value.clone().unwrap_or_else(|| vec![Atom::Hidden(Hidden::Anything)]);
            self.named(&name, value)?;
            // At the end of what it reads it leaves it empty, which ends a loop.
            if self.ends_loop {
                self.defined.assigned(&name.shown());
            }
        }
        self.found.assign("REPLY", vec![Atom::Hidden(Hidden::Anything)]);
        Ok(true)
    }

    /// The array that `mapfile` sets, with what it runs meanwhile.
    fn mapfile_builtin(&mut self, run: &Run) -> Result<bool, Unreadable> {
        let (names, values) = self.options_and_names(run, "dnOsuCc", &[])?;
        for (option, value) in values {
            match option {
                'C' => self.text_with_more(&value, run)?,
                'n' | 'O' | 's' | 'c' | 'u' => self.evaluated_expression(&value)?,
                _ => {}
            }
        }
        for name in names {
            self.named(&name, vec![Atom::Hidden(Hidden::Anything)])?;
        }
        Ok(true)
    }

    /// The variables that `printf -v`, or `%n`, sets.
    fn printf_builtin(&mut self, run: &Run) -> Result<bool, Unreadable> {
        let args = &run.args;
        if let Some(at) = args.iter().position(|word| word.prefix().starts_with("-v"))
            && at == 0
        {
            let name = if args[0].known().as_deref() == Some("-v") {
                args.get(1).cloned()
            } else {
                Some(args[0].after(2))
            };
            if let Some(name) = name {
                self.named(&name, vec![Atom::Hidden(Hidden::Anything)])?;
            }
        } else if let Some(word) = args.first()
            && may_be_option_v(word)
            && (args.len() > 1 || word.may_be_several())
        {
            // The format itself is not known: it could be `-v`, and then a name follows.
            self.unknown_text(&word.clone(), run);
        }
        self.counted(args)?;
        Ok(true)
    }

    /// Options of the shell, and its positional parameters.
    fn set_builtin(&mut self, run: &Run) -> Result<bool, Unreadable> {
        let args = &run.args;
        let options = || args.iter().take_while(|word| word.known().as_deref() != Some("--"));
        let exports = |word: &Word| {
            word.known()
                .is_some_and(|text| text == "allexport" || text.starts_with('-') && text.contains('a'))
        };
        if options().any(exports) {
            self.exports_all(run);
        }
        let hazard = options().any(|word| match word.known() {
            Some(text) => {
                // Those of one letter: for `histexpand`, by which `!` brings back what was only data, and others.
                rereads_words(&text)
                    || text.starts_with('-') && text.contains(['k', 'H'])
                    || text.starts_with('+') && text.contains('B')
            }
            None => word.is_dashed() != Known::No || word.fields.is_any() || word.may_begin_with('+'),
        });
        if hazard {
            self.doubt_command(run, "it changes what the words of later commands mean");
        }
        if !args.iter().all(|word| {
            word.known()
                .is_some_and(|text| text.len() > 1 && text.starts_with(['-', '+']) && text != "--")
        }) {
            self.forget_positional();
        }
        Ok(false)
    }

    /// The variables and functions that go.
    fn unset_builtin(&mut self, run: &Run) -> Result<bool, Unreadable> {
        let args = &run.args;
        for word in &self.alternatives(args) {
            let name = word.known();
            let array = name.as_deref().and_then(|name| name.split('[').next());
            self.found.undefine(array.filter(|name| *name != "BASH_ALIASES"));
            if name.is_some_and(|text| is_name(&text)) {
                let name = word.shown();
                self.assign(&name, Vec::new(), word.span)?;
            } else if word.is_dashed() != Known::Yes {
                self.evaluated_word(&word.clone(), word.span)?;
            }
        }
        Ok(true)
    }

    /// The program that a name is to run from now on.
    fn hash_builtin(&mut self, run: &Run) -> Result<bool, Unreadable> {
        let args = &run.args;
        if let Some(at) = args.iter().position(|word| match word.known() {
            Some(text) => text.starts_with('-') && text.contains('p'),
            None => word.is_dashed() != Known::No,
        }) {
            self.launch_rest(args[at + 1..].iter().take(1).cloned().collect(), run, false)?;
            self.doubt_command(run, "it makes a name run another program");
        }
        Ok(false)
    }

    /// The texts and functions that a completion runs.
    fn complete_builtin(&mut self, run: &Run) -> Result<bool, Unreadable> {
        let (_, values) = self.options_and_names(run, "oAGWPSXFC", &[])?;
        for (option, value) in values {
            match option {
                'C' => self.text_with_more(&value, run)?,
                'W' => self.prompt(&value.atoms, value.span)?,
                'F' => self.launch_rest(vec![value], run, true)?,
                _ => {}
            }
        }
        Ok(false)
    }

    /// The variable that `wait -p` sets.
    fn wait_builtin(&mut self, run: &Run) -> Result<bool, Unreadable> {
        let (_, values) = self.options_and_names(run, "p", &[])?;
        for (_, name) in values {
            self.named(&name, vec![Atom::Hidden(Hidden::Number)])?;
            // Without a job there is no number.
            self.named(&name, Vec::new())?;
        }
        Ok(false)
    }

    /// An option of the shell that is set by its name.
    pub(super) fn shell_option(&mut self, word: &Word, run: &Run) {
        match word.known().as_deref() {
            Some("dotglob") => {
                self.reading.dotglob = true;
                self.found.dotglob = true;
            }
            Some("extglob") => self.found.extglob = true,
            Some("nullglob") => (self.found.nullglob, self.looked_up) = (true, true),
            Some("failglob") => (self.found.may_abort, self.looked_up) = (true, true),
            Some("expand_aliases") => {
                self.found.undefine(None);
                self.doubt_command(run, "it changes what the words of later commands mean");
            }
            Some("globskipdots") => {
                self.doubt_command(run, "with it, or without, wildcards that begin with a dot match `..`");
            }
            Some("allexport") => self.exports_all(run),
            Some(name) if !rereads_words(name) => {}
            Some(_) | None => self.doubt_command(run, "it changes what the words of later commands mean"),
        }
    }

    /// The variables that `printf` gives the number of what it printed so far: `%n`.
    fn counted(&mut self, args: &[Word]) -> Result<(), Unreadable> {
        for (at, format) in args.iter().enumerate().take(4) {
            let (text, known) = match format.known() {
                Some(text) => (text.into_owned(), true),
                None => (String::new(), false),
            };
            let counts = text.match_indices('%').any(|(at, _)| {
                let rest = text[at + 1..].trim_start_matches(|c: char| "-+ #0123456789.*'hlLjzt".contains(c));
                rest.starts_with('n')
            });
            // Which word is the format depends on the options before it.
            for word in &args[at + 1..] {
                let influences = || {
                    word.known().is_some_and(|name| {
                        !matches!(influence(&name, &[]), Influence::None | Influence::Unknown) || name.contains('[')
                    })
                };
                if counts || !known && influences() {
                    self.named(word, vec![Atom::Hidden(Hidden::Number)])?;
                }
            }
            if known && !text.starts_with('-') {
                break;
            }
        }
        Ok(())
    }

    /// The arguments behind a builtin's options; `valued` are those with a value.
    fn after_options(&mut self, args: &[Word], valued: &str, run: &Run) -> Vec<Word> {
        let mut at = 0;
        while let Some(word) = args.get(at) {
            let Some(text) = word.known() else {
                if word.is_dashed() != Known::No {
                    self.unknown_text(word, run);
                }
                break;
            };
            if text == "--" {
                at += 1;
                break;
            }
            if !text.starts_with('-') || text == "-" {
                break;
            }
            // What follows such a letter in the same word is its value.
            let value_follows = text.find(|flag| valued.contains(flag)) == Some(text.len() - 1);
            let value = args.get(at + 1).filter(|value| value_follows && value.may_be_several());
            if let Some(value) = value {
                self.unknown_text(value, run);
            }
            at += 1 + usize::from(value_follows);
        }
        args.get(at..).unwrap_or_default().to_vec()
    }

    /// The options with values, and the names, of a builtin that assigns variables.
    fn options_and_names(&mut self, run: &Run, valued: &str, names_too: &[&str]) -> Result<NamesAndValues, Unreadable> {
        let (mut names, mut values) = (Vec::new(), Vec::new());
        let mut args = run.args.iter();
        let mut options = true;
        while let Some(word) = args.next() {
            let text = word.known();
            match text.as_deref() {
                Some("--") if options => options = false,
                Some(text) if options && text.len() > 1 && text.starts_with('-') => {
                    let Some(at) = text[1..].find(|flag| valued.contains(flag)) else {
                        continue;
                    };
                    let flag = text[1 + at..].chars().next().unwrap_or_default();
                    let attached = 1 + at + flag.len_utf8();
                    let value = if attached < text.len() {
                        Some(word.after(attached))
                    } else {
                        args.next().cloned()
                    };
                    let Some(value) = value else { continue };
                    if value.may_be_several() && !self.is_ambient(&value) {
                        let because = "as several words it can name variables, whose subscripts are evaluated; put it in \
                                       double quotes";
                        self.doubt(Doubt::Launch, value.shown(), because, value.span, Some(run.index));
                    }
                    if names_too.contains(&flag.to_string().as_str()) {
                        names.push(value);
                    } else {
                        values.push((flag, value));
                    }
                }
                Some(_) => {
                    options = false;
                    names.push(word.clone());
                }
                None => names.push(word.clone()),
            }
        }
        Ok((names, values))
    }

    /// A text that a builtin runs with words behind it that the text does not show.
    fn text_with_more(&mut self, text: &Word, run: &Run) -> Result<(), Unreadable> {
        self.own_text(text, Some(run.index))?;
        self.unknown_text(text, run);
        Ok(())
    }

    /// The operands of `test` and `[`: with `-v` a name, whose subscript is evaluated.
    fn tested(&mut self, args: &[Word]) -> Result<(), Unreadable> {
        for (at, word) in args.iter().enumerate() {
            let names =
                word.fields == Fields::Glob && word.atoms.iter().all(|atom| matches!(atom, Atom::Star | Atom::One));
            if (word.may_be_several() || names) && !self.is_ambient(word) {
                let because = "without quotes it may become several words, such as `-v NAME[…]`, whose subscript can run \
                               commands; put it in double quotes";
                self.doubt(Doubt::Launch, word.shown(), because, word.span, None);
                continue;
            }
            let Some(next) = args.get(at + 1) else { continue };
            let compared = next.known().is_some_and(|text| COMPARISONS.contains(&&*text));
            if matches!(word.known().as_deref(), Some("-v" | "-R")) || !compared && may_be_option_v(word) {
                self.evaluated_word(&next.clone(), next.span)?;
            }
        }
        Ok(())
    }

    fn declaration(&mut self, run: &Run) -> Result<(), Unreadable> {
        let (mut integer, mut reference, mut prints, mut associative) = (false, false, false, false);
        let (mut array, mut not_exported) = (false, false);
        let mut exported = run.name == "export";
        self.found.may_abort |= run.name == "readonly";
        let names_keys = self.declares_for_certain(&run.name, &run.args);
        for word in &self.alternatives(&run.args) {
            let text = word.known();
            exported |= match text.as_deref() {
                Some(text) => text.starts_with('-') && text.contains('x'),
                // The value of an assignment does not split here.
                None => !word.prefix().contains('=') && word.is_dashed() != Known::No,
            };
            not_exported |= text.as_deref().is_some_and(|text| match text.strip_prefix('+') {
                Some(flags) => flags.contains('x'),
                None => run.name == "export" && text.starts_with('-') && text.contains('n'),
            });
            if let Some(flags) = text.as_deref().and_then(|text| text.strip_prefix('-')) {
                integer |= flags.contains('i');
                array |= flags.contains(['a', 'A']);
                self.found.may_abort |= flags.contains('r');
                if flags.contains(['l', 'u', 'c']) || (flags.contains('n') && run.name != "export") {
                    let because =
                        "its values are not what is assigned: letters change, or it stands for another variable";
                    self.doubt_command(run, because);
                }
                if flags.contains('f') && (run.name == "export" || flags.contains('x')) {
                    let because = "the function that it passes on is not read with what another shell has";
                    self.doubt_command(run, because);
                }
                associative |= flags.contains('A');
                self.found.any_associative |= flags.contains('A');
                reference |= flags.contains('n') && run.name != "export";
                prints |= flags.contains(['p', 'f', 'F']);
                continue;
            }
            if text.as_deref().is_some_and(|text| text.starts_with('+')) || prints {
                continue;
            }
            if integer {
                let name = word.prefix().split(['=', '[', '+']).next().unwrap_or_default();
                self.found.integers.insert(name.to_owned());
                self.looked_up = true;
            }
            let name = declared_name(word);
            // Declared first: an earlier use would have made it another kind.
            let first = self.found.values(name).is_none() || self.declared_first.iter().any(|first| first == name);
            if associative && names_keys && first {
                self.defined.associative(name);
            } else if run.name != "export" {
                self.found.undefine(is_name(name).then_some(name));
            }
            match word.prefix().find('=') {
                Some(at) => {
                    let name = Word::text(word.prefix()[..at].trim_end_matches('+'), word.span);
                    let value = word.after(at + 1);
                    if integer {
                        self.evaluated_expression(&value)?;
                    }
                    if value.prefix().starts_with('(') || (array && value.known().is_none()) {
                        // A quoted list is read once more as a list.
                        self.list_value(&name.shown(), &value, run)?;
                    }
                    if reference {
                        self.doubt(
                            Doubt::Launch,
                            word.shown(),
                            "a name reference makes one variable stand for another",
                            word.span,
                            Some(run.index),
                        );
                    }
                    let value = match word.prefix()[..at].ends_with('+') {
                        true => vec![Atom::Hidden(Hidden::Anything)],
                        false => value.atoms.to_vec(),
                    };
                    self.named(&name, value)?;
                    if exported && !not_exported {
                        self.exported(&name.shown(), word.span);
                    }
                }
                None => match text {
                    Some(name) if is_name(&name) => {
                        // Also without a value, which it can be given later.
                        if exported && !not_exported {
                            self.exported(&name, word.span);
                        }
                        // In a function it is another variable, without a value.
                        let another = run.name != "export" && run.name != "readonly";
                        if matches!(&*name, "PATH" | OPTIONAL_LOCKS) && (another || not_exported) {
                            self.assign(&name, Vec::new(), word.span)?;
                        } else if another && self.in_function {
                            self.found.assign(&name, Vec::new());
                        }
                        // Exported or declared, its value stays as it is; an inherited one may be meant.
                        if run.name == "export" && self.found.values(&name).is_none() {
                            continue;
                        }
                        if integer || reference {
                            let name = name.into_owned();
                            self.evaluated(&name, word.span)?;
                        }
                    }
                    // An array's value was followed where it is written.
                    Some(_) => self.evaluated_word(word, word.span)?,
                    None if word
                        .written
                        .split_once("=(")
                        .is_some_and(|(name, _)| is_name(name.trim_end_matches('+'))) => {}
                    None => self.evaluated_word(word, word.span)?,
                },
            }
        }
        Ok(())
    }

    /// Whether a declaration declares all that it names, as arrays that have names for keys with `-A`: nothing in it can
    /// fail.
    pub(super) fn declares_for_certain(&self, name: &str, args: &[Word]) -> bool {
        let declares =
            matches!(name, "declare" | "typeset" | "export" | "readonly") || name == "local" && self.in_function;
        let own = self.variables.functions.contains(name) || self.found.functions.contains(name);
        let plain = |word: &Word| match word.known() {
            Some(text) if text.starts_with(['-', '+']) => text
                .strip_prefix('-')
                .is_some_and(|flags| flags.chars().all(|flag| "Agirx".contains(flag))),
            _ => {
                let name = declared_name(word);
                is_name(name) && !name.starts_with("BASH") && !OWN_ARRAYS.contains(&name)
            }
        };
        declares && !own && !self.may_abort() && args.iter().all(plain)
    }

    /// A value that declares a list although it was quoted: its elements expand.
    fn list_value(&mut self, name: &str, value: &Word, run: &Run) -> Result<(), Unreadable> {
        match crate::word::known(&value.atoms) {
            Some(text) => {
                let name = if is_name(name) { name } else { "_" };
                let text = format!("{name}={text}");
                self.deeper(|reader| reader.text(&text, super::source::Place::Within(value.span)))
            }
            None => {
                self.unknown_text(value, run);
                Ok(())
            }
        }
    }

    fn is_not_assigned(&self, name: &str) -> bool {
        let all = [&self.found, &self.variables];
        all.iter()
            .all(|one| one.values(name).is_none() && !one.can_be_anything())
    }

    pub(super) fn changes_directory(&mut self, args: &[Word]) {
        let target = args
            .iter()
            .find(|word| word.known().is_none_or(|text| !text.starts_with('-') || text == "-"));
        let base = match target {
            None => Base::At(crate::variables::HOME.to_owned()),
            Some(word) => match word.known() {
                // A directory that is named plainly is looked for in all of these.
                Some(text)
                    if self.found.values("CDPATH").is_some() | self.variables.values("CDPATH").is_some()
                        && !text.starts_with(['/', '.']) =>
                {
                    Base::Unknown
                }
                Some(text) if text != "-" => Base::At(text.into_owned()),
                // The text has changed the directory before: back is where it was then.
                Some(_) if self.has_entered && self.is_not_assigned("OLDPWD") => {
                    self.here = None;
                    return;
                }
                _ => Base::Unknown,
            },
        };
        self.base(base);
    }
}

/// The name that an argument of a declaration begins with.
fn declared_name(word: &Word) -> &str {
    word.prefix().split('=').next().unwrap_or_default()
}

/// Whether a word of which not all is known could be `-v`, or begin with it.
fn may_be_option_v(word: &Word) -> bool {
    let prefix = word.prefix();
    let fits = "-v".starts_with(prefix) || prefix.starts_with("-v");
    fits && word.known().is_none() && word.is_dashed() != Known::No
}

/// Whether a word of `fc -l` is an option that lists, or names what is listed.
fn lists_history(word: &str) -> bool {
    let Some(option) = word.strip_prefix('-') else {
        return true;
    };
    option.bytes().all(|byte| b"lnr".contains(&byte)) || option.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether an option of the shell, by its name, changes what the words of later commands mean.
fn rereads_words(option: &str) -> bool {
    matches!(
        option,
        "braceexpand" | "extdebug" | "cdable_vars" | "keyword" | "posix" | "histexpand" | "xpg_echo"
    )
}
