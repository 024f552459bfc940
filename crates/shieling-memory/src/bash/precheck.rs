//! Checks a text before it runs, for features in which bashkit would silently differ from bash. Such a text is
//! refused, with advice.
//!
//! - Commands that share an input, in a group, a loop, a subshell or a function. Bashkit gives every program all of
//!   the input that is left, and does not consume it; only `read` consumes what it reads, in the shell that reads it.
//!   Any number of `read` may therefore come first and one program last, outside of loops.
//! - Names that are readonly somewhere in the text and assigned by arithmetic or a loop. Bashkit ignores readonly
//!   there.
//! - Replacements in which bashkit loses backslashes or quotes, or takes `&` for itself.
//! - Streams that are swapped (`3>&1 1>&2 2>&3`). Bashkit loses the output.
//!
//! The check walks the tree that bashkit will run once, and knows less than bash: uncertain effects of a branch, a
//! loop or a function count as certain. What is only known at run time (a program's name or arguments from a
//! variable, a script in a file) is assumed to read nothing. Texts for `eval` and `bash -c` are checked when they are
//! called.

use std::collections::{HashMap, HashSet};

use bashkit::parser::{
    Assignment, AssignmentValue, Command, CompoundCommand, ListOperator, ParameterOp, Redirect, RedirectKind,
    SimpleCommand, Word, WordPart,
};

use super::parsing::{self, parsed};
use super::{braces, programs};

/// The depth to which calls of functions are followed.
const NESTED: usize = 32;
/// The names that are readonly in every shell.
const ALWAYS: [&str; 6] = ["BASHOPTS", "BASH_VERSINFO", "EUID", "PPID", "SHELLOPTS", "UID"];

type Checked = Result<(), String>;

/// The result of the check.
#[derive(Debug, Default)]
pub(super) struct Precheck {
    /// Why the text is refused, if it is.
    pub(super) refused: Option<String>,
    /// Whether some branch reads standard input.
    pub(super) reads: bool,
    /// Whether it calls something unknown that may read standard input.
    pub(super) unsure: bool,
}

/// Checks a text, for a shell with these readonly names, whose input may be empty.
pub(super) fn check(text: &str, readonly: impl IntoIterator<Item = String>, fed: bool) -> Precheck {
    let high = || {
        has_high_bytes(text).then(|| {
            "`$'\\xff'` is a character in memory, and no byte: write the character itself, or use `printf`".to_owned()
        })
    };
    let deep = || parsing::is_deep(text).then(|| "it contains `time` more than 1,000 times".to_owned());
    if let Some(refused) = braces::refusal(text).or_else(deep).or_else(high) {
        return Precheck {
            refused: Some(refused),
            ..Precheck::default()
        };
    }
    // The interpreter reports a text that cannot be parsed.
    let Ok(script) = parsed(text) else {
        return Precheck::default();
    };
    let mut walk = Walk {
        input: fed.then(Scope::default),
        text,
        ..Walk::default()
    };
    walk.readonly.extend(readonly);
    // Names first, since they apply to the body of a function wherever it is defined.
    walk.naming = true;
    let named = walk.list(&script.commands);
    (walk.naming, walk.functions) = (false, HashMap::new());
    let seen = named.and_then(|()| walk.list(&script.commands));
    let scope = walk.input.unwrap_or_default();
    Precheck {
        refused: seen.err(),
        reads: scope.lines > 0,
        unsure: walk.unsure,
    }
}

/// Returns whether a text has a byte above 127 in `$'…'`.
fn has_high_bytes(text: &str) -> bool {
    let is_high_hex = |digits: &str| {
        let mut digits = digits.chars().take_while(char::is_ascii_hexdigit);
        digits.next().is_some_and(|first| first > '7') && digits.next().is_some()
    };
    text.split("$'").skip(1).any(|quoted| {
        let mut letters = quoted.chars();
        while let Some(letter) = letters.next() {
            match letter {
                '\'' => return false,
                '\\' => match letters.next() {
                    // One digit is a control character.
                    Some('x') if is_high_hex(letters.as_str()) => return true,
                    Some('2' | '3')
                        if letters
                            .as_str()
                            .chars()
                            .take(2)
                            .filter(|c| ('0'..='7').contains(c))
                            .count()
                            == 2 =>
                    {
                        return true;
                    }
                    _ => {}
                },
                _ => {}
            }
        }
        false
    })
}

/// Returns why a text that is passed to a call is refused, if it is.
pub(super) fn of_call(name: &str, args: &[String]) -> Option<String> {
    // A text that only contains the name of an alias is not checked for what it stands for.
    if name == "alias"
        && args
            .iter()
            .any(|arg| arg.split(|c: char| !c.is_alphanumeric()).any(|word| word == "time"))
    {
        return Some("`memory` has no aliases that contain `time`: use a function".to_owned());
    }
    check(&text_of(name, args)?, [], false).refused
}

fn text_of(name: &str, args: &[String]) -> Option<String> {
    match name {
        "eval" => Some(args.join(" ")),
        "trap" => args.iter().find(|arg| *arg != "--").cloned(),
        "bash" | "sh" => {
            let flag = |arg: &String| arg.starts_with('-') && !arg.starts_with("--") && arg.contains('c');
            args.get(args.iter().position(flag)? + 1).cloned()
        }
        _ => None,
    }
}

/// How much of a shared input was consumed.
#[derive(Debug, Default, Clone)]
struct Scope {
    /// The number of reads.
    lines: usize,
    /// The program that has read all of it, without consuming it.
    taken: Option<String>,
    /// The number of loops around the current command.
    loops: usize,
}

/// A walk through the tree.
#[derive(Default)]
struct Walk<'n> {
    text: &'n str,
    functions: HashMap<&'n str, &'n Command>,
    /// Whether functions read their input, for those that were called.
    called: HashMap<(&'n str, bool), bool>,
    running: Vec<&'n str>,
    readonly: HashSet<String>,
    /// Whether only readonly names are checked.
    naming: bool,
    /// The shared input, if it is not empty.
    input: Option<Scope>,
    /// Whether something unknown is called that may read the text's input.
    unsure: bool,
}

impl<'n> Walk<'n> {
    fn list(&mut self, commands: &'n [Command]) -> Checked {
        commands.iter().try_for_each(|command| self.one(command))
    }

    fn one(&mut self, command: &'n Command) -> Checked {
        match command {
            Command::Simple(simple) => self.simple(simple),
            Command::Pipeline(pipeline) => {
                let (head, stages) = pipeline.commands.split_first().unzip();
                let fed = &pipeline.commands[..pipeline.commands.len().saturating_sub(1)];
                if fed.iter().any(lists_files) {
                    return Err("`tar xv` lists files on standard error in memory: use `tar tf`".to_owned());
                }
                match head {
                    Some(head) if pipeline.commands.len() > 1 => self.forked(std::slice::from_ref(head))?,
                    Some(head) => self.one(head)?,
                    None => {}
                }
                let stages = stages.unwrap_or_default();
                stages
                    .iter()
                    .try_for_each(|stage| self.fed(|walk| walk.one(stage)).map(drop))
            }
            Command::List(list) => {
                let operators = list.rest.iter().map(|(operator, _)| Some(*operator)).chain([None]);
                let commands = std::iter::once(&*list.first).chain(list.rest.iter().map(|(_, command)| command));
                commands.zip(operators).try_for_each(|(command, next)| {
                    let before = self.input.clone();
                    self.one(command)?;
                    let took = |scope: &Option<Scope>| scope.as_ref().map(|scope| (scope.lines, scope.taken.clone()));
                    if next == Some(ListOperator::Background) && took(&before) != took(&self.input) {
                        return Err(
                            "what runs in the background reads the input that it shares with others in memory: \
                                    give it one of its own, as `< FILE` or `< /dev/null`"
                                .to_owned(),
                        );
                    }
                    Ok(())
                })
            }
            Command::Compound(compound, redirects) => {
                self.redirects(redirects)?;
                self.with(redirects, |walk| walk.compound(compound))
            }
            Command::Function(function) => {
                self.functions.insert(&function.name, &function.body);
                self.called.retain(|(name, _), _| *name != function.name);
                if self.naming { self.one(&function.body) } else { Ok(()) }
            }
        }
    }

    fn compound(&mut self, compound: &'n CompoundCommand) -> Checked {
        match compound {
            CompoundCommand::If(this) => {
                self.list(&this.condition)?;
                let mut not = self.input.clone();
                self.list(&this.then_branch)?;
                let mut ends = vec![self.input.take()];
                for (condition, then) in &this.elif_branches {
                    self.input = not;
                    self.list(condition)?;
                    not = self.input.clone();
                    self.list(then)?;
                    ends.push(self.input.take());
                }
                self.input = not;
                self.list(this.else_branch.as_deref().unwrap_or_default())?;
                self.join(ends);
                Ok(())
            }
            CompoundCommand::Case(this) => {
                self.word(&this.word)?;
                let (begin, mut ends) = (self.input.clone(), Vec::new());
                for case in &this.cases {
                    self.words(&case.patterns)?;
                    self.input = begin.clone();
                    self.list(&case.commands)?;
                    ends.push(self.input.take());
                }
                self.input = begin;
                self.join(ends);
                Ok(())
            }
            CompoundCommand::For(this) => {
                self.words(this.words.as_deref().unwrap_or_default())?;
                self.assigned(&this.variable, "`for`")?;
                self.repeated(&[], &this.body)
            }
            CompoundCommand::ArithmeticFor(this) => {
                for expression in [&this.init, &this.condition, &this.step] {
                    self.arithmetic(expression)?;
                }
                self.repeated(&[], &this.body)
            }
            CompoundCommand::While(this) => self.repeated(&this.condition, &this.body),
            CompoundCommand::Until(this) => self.repeated(&this.condition, &this.body),
            CompoundCommand::Select(this) => {
                self.words(&this.words)?;
                self.assigned(&this.variable, "`select`")?;
                self.takes_line("select")?;
                self.repeated(&[], &this.body)
            }
            CompoundCommand::Subshell(commands) | CompoundCommand::BraceGroup(commands) => self.list(commands),
            CompoundCommand::Arithmetic(expression) => self.arithmetic(expression),
            CompoundCommand::Time(this) => this.command.as_deref().map_or(Ok(()), |command| self.one(command)),
            CompoundCommand::Conditional(words) => {
                conditional(words)?;
                self.words(words)
            }
            CompoundCommand::Coproc(this) => self.fed(|walk| walk.one(&this.body)).map(drop),
        }
    }

    /// Joins the states of two branches.
    fn join(&mut self, ends: Vec<Option<Scope>>) {
        let Some(here) = &mut self.input else { return };
        for end in ends.into_iter().flatten() {
            here.lines = here.lines.max(end.lines);
            here.taken = here.taken.take().or(end.taken);
        }
    }

    fn repeated(&mut self, condition: &'n [Command], body: &'n [Command]) -> Checked {
        let deeper = |walk: &mut Self, by: isize| {
            if let Some(scope) = &mut walk.input {
                scope.loops = scope.loops.saturating_add_signed(by);
            }
        };
        deeper(self, 1);
        self.list(condition)?;
        self.list(body)?;
        deeper(self, -1);
        Ok(())
    }

    /// Walks a command with an input of its own. Returns whether it may read it.
    fn fed(&mut self, run: impl FnOnce(&mut Self) -> Checked) -> Result<bool, String> {
        let outer = self.input.replace(Scope::default());
        let seen = run(self);
        let inner = std::mem::replace(&mut self.input, outer).unwrap_or_default();
        seen.map(|()| inner.lines > 0)
    }

    /// Walks a subshell, which has a copy of the input: what it reads is still there for the following commands.
    fn forked(&mut self, commands: &'n [Command]) -> Checked {
        let before = self.input.as_ref().map_or(0, |scope| scope.lines);
        self.list(commands)?;
        if let Some(scope) = self.input.as_mut().filter(|scope| scope.lines > before) {
            scope.taken.get_or_insert_with(|| "read".to_owned());
        }
        Ok(())
    }

    fn with(&mut self, redirects: &[Redirect], run: impl FnOnce(&mut Self) -> Checked) -> Checked {
        if !is_fed(redirects) {
            return run(self);
        }
        let unsure = self.unsure;
        self.fed(run)?;
        self.unsure = unsure;
        Ok(())
    }

    /// Records a program, which receives all of the input and consumes none.
    fn takes(&mut self, name: &str) -> Checked {
        self.takes_line(name)?;
        match self.input.as_mut().filter(|_| !self.naming) {
            Some(scope) if scope.loops > 0 => Err(format!(
                "`{name}` in a loop would get the same input each time, as in memory only `read` leaves the rest to \
                 others: give it an input of its own, as `< FILE` or `< /dev/null`, or use `sandbox`"
            )),
            Some(scope) => {
                scope.taken = Some(name.to_owned());
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn takes_line(&mut self, name: &str) -> Checked {
        let Some(scope) = self.input.as_mut().filter(|_| !self.naming) else {
            return Ok(());
        };
        if let Some(before) = &scope.taken {
            return Err(format!(
                "`{name}` would get again what `{before}` has read, as both share one input, of which in memory only \
                 `read` leaves the rest to others: take lines with `read` and then the rest with one program, or give \
                 each an input of its own, as `< FILE`, or use `sandbox`"
            ));
        }
        scope.lines += 1;
        Ok(())
    }

    fn simple(&mut self, simple: &'n SimpleCommand) -> Checked {
        simple
            .assignments
            .iter()
            .try_for_each(|assignment| self.assignment(assignment))?;
        self.word(&simple.name)?;
        self.words(&simple.args)?;
        self.redirects(&simple.redirects)?;
        let Some(name) = literal(&simple.name) else {
            self.unsure = true;
            return Ok(());
        };
        // Assignments alone read nothing.
        if name.is_empty() {
            return Ok(());
        }
        if name == "exec" && simple.args.is_empty() && is_fed(&simple.redirects) {
            self.input = Some(Scope::default());
            return Ok(());
        }
        let args: Vec<String> = simple.args.iter().map(|arg| written(arg).to_owned()).collect();
        self.with(&simple.redirects, |walk| walk.called(name, &args))
    }

    fn called(&mut self, name: &'n str, args: &[String]) -> Checked {
        match self.functions.get(name).copied() {
            Some(body) => self.function(name, body),
            None => self.call(name, args),
        }
    }

    /// Walks a call of a function, which has a copy of the input: what it reads is still there for the following
    /// commands.
    fn function(&mut self, name: &'n str, body: &'n Command) -> Checked {
        if self.naming || self.running.contains(&name) || self.running.len() > NESTED {
            return Ok(());
        }
        let fed = self.input.is_some();
        let reads = match self.called.get(&(name, fed)) {
            Some(reads) => *reads,
            None => {
                self.running.push(name);
                let reads = if fed {
                    self.fed(|walk| walk.one(body))?
                } else {
                    self.one(body).map(|()| false)?
                };
                self.running.pop();
                self.called.insert((name, fed), reads);
                reads
            }
        };
        if reads { self.takes(name) } else { Ok(()) }
    }

    fn call(&mut self, name: &str, args: &[String]) -> Checked {
        let other = |letter: &str| args.iter().any(|arg| arg.starts_with(letter));
        if let Some(text) = text_of(name, args).filter(|_| name != "trap") {
            if self.naming {
                return Ok(());
            }
            let inner = check(&text, self.readonly.iter().cloned(), self.input.is_some());
            self.unsure |= inner.unsure || text.contains('$');
            return match inner.refused {
                Some(why) => Err(why),
                None if inner.reads => self.takes(name),
                None => Ok(()),
            };
        }
        match name {
            "read" if !other("-u") => self.takes_line(name),
            "mapfile" | "readarray" => {
                if let Some(name) = args.last().filter(|last| !last.starts_with('-')) {
                    self.assigned(name, "`mapfile`")?;
                }
                if other("-u") { Ok(()) } else { self.takes(name) }
            }
            "getopts" => args.get(1).map_or(Ok(()), |name| self.assigned(name, "`getopts`")),
            "let" => args.iter().try_for_each(|text| self.arithmetic(text)),
            "readonly" | "declare" | "typeset" | "local" => {
                self.declared(name, args);
                Ok(())
            }
            "bash" | "sh" if args.iter().all(|arg| arg.starts_with('-') && arg != "--version") => self.takes(name),
            "bash" | "sh" | "." | "source" | "xargs" | "find" => {
                self.unsure = true;
                match programs::reads(name, args) {
                    Some(true) => self.takes(name),
                    Some(false) | None => Ok(()),
                }
            }
            "command" | "builtin" | "exec" | "nohup" | "env" | "timeout" | "nice" if !other("-v") && !other("-V") => {
                let own = |arg: &String| {
                    arg.starts_with('-') || arg.contains('=') || arg.starts_with(|c: char| c.is_ascii_digit())
                };
                let at = args.iter().position(|arg| !own(arg)).unwrap_or(args.len());
                match args[at..].split_first() {
                    // A builtin that another program calls consumes nothing of the shell's input.
                    Some((inner, _)) if inner == "read" => self.takes(name),
                    Some((inner, rest)) => self.call(inner, rest),
                    None => Ok(()),
                }
            }
            _ => match programs::reads(name, args) {
                Some(true) => self.takes(name),
                Some(false) => Ok(()),
                None => {
                    self.unsure = true;
                    Ok(())
                }
            },
        }
    }

    /// Records the names that a declaration makes readonly.
    fn declared(&mut self, name: &str, args: &[String]) {
        let options = || args.iter().filter(|arg| arg.starts_with('-'));
        let flag = |letter| options().any(|option| option.contains(letter));
        if !flag('f') && !flag('p') && (name == "readonly" || flag('r')) {
            let names = args.iter().filter(|arg| !arg.starts_with(['-', '+']));
            let names = names.map(|arg| arg[..arg.find(['=', '+', '[']).unwrap_or(arg.len())].to_owned());
            self.readonly.extend(names);
        }
    }

    /// Records an assignment, and what makes it.
    fn assigned(&self, name: &str, by: &str) -> Checked {
        if !self.naming && (ALWAYS.contains(&name) || self.readonly.contains(name)) {
            return Err(format!(
                "`{name}` is readonly, and {by} would pass over that in memory, where bash fails: use another name"
            ));
        }
        Ok(())
    }

    fn arithmetic(&self, text: &str) -> Checked {
        let mut rest = text.replace("<<=", "=").replace(">>=", "=");
        for compares in ["==", "!=", "<=", ">="] {
            rest = rest.replace(compares, " ");
        }
        if !["=", "++", "--"].iter().any(|assigns| rest.contains(assigns)) {
            return Ok(());
        }
        let mut names = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
        names.try_for_each(|name| self.assigned(name, "arithmetic"))
    }

    fn redirects(&mut self, redirects: &'n [Redirect]) -> Checked {
        if let Some(swap) = swapped(redirects) {
            return Err(format!(
                "it would lose output at `{swap}`, which has two streams change places"
            ));
        }
        redirects.iter().try_for_each(|redirect| self.word(&redirect.target))
    }

    fn words(&mut self, words: &'n [Word]) -> Checked {
        words.iter().try_for_each(|word| self.word(word))
    }

    fn word(&mut self, word: &'n Word) -> Checked {
        word.parts.iter().try_for_each(|part| match part {
            WordPart::CommandSubstitution(commands) => self.list(commands),
            WordPart::ParameterExpansion { name, operator, .. } => {
                let is_quoted = word.quoted || word.part_quoted.iter().any(|quoted| *quoted);
                replaces(name, operator, is_quoted.then_some(self.text))
            }
            WordPart::ProcessSubstitution {
                commands,
                is_input: true,
            } => self.forked(commands),
            WordPart::ProcessSubstitution { commands, .. } => self.fed(|walk| walk.list(commands)).map(drop),
            WordPart::CompoundAssignment { elements, .. } => self.words(elements),
            WordPart::ArithmeticExpansion(text) | WordPart::ArrayAccess { index: text, .. } => self.arithmetic(text),
            WordPart::Substring { offset, length, .. } => {
                self.arithmetic(offset)?;
                self.arithmetic(length.as_deref().unwrap_or_default())
            }
            _ => Ok(()),
        })
    }

    fn assignment(&mut self, assignment: &'n Assignment) -> Checked {
        self.arithmetic(assignment.index.as_deref().unwrap_or_default())?;
        match &assignment.value {
            AssignmentValue::Scalar(word) => self.word(word),
            AssignmentValue::Array(words) => self.words(words),
        }
    }
}

/// Refuses conditions that are always true in bashkit.
fn conditional(words: &[Word]) -> Checked {
    let mut before = None;
    for word in words.iter().map(|word| literal(word).filter(|_| !word.quoted)) {
        let begins = matches!(before, None | Some("!" | "(" | "&&" | "||"));
        match word {
            Some(test @ ("-o" | "-R")) if begins => {
                return Err(format!(
                    "`[[ {test} … ]]` is always true in memory: use `[ {test} … ]` or `$-`"
                ));
            }
            Some("-ef") => return Err("`-ef` compares names in memory: use `realpath`".to_owned()),
            _ => before = word.or(Some("")),
        }
    }
    Ok(())
}

/// Returns whether a command is a `tar` that lists files while it unpacks them.
fn lists_files(command: &Command) -> bool {
    let Command::Simple(simple) = command else { return false };
    let first = simple.args.first().and_then(literal).unwrap_or_default();
    literal(&simple.name) == Some("tar") && first.contains('v') && first.contains('x') && !first.starts_with("--")
}

/// Refuses an expansion that changes a value (`${name/…}`) where bashkit would do it wrongly: in quotes it reads `\\`
/// as `\` too early, which its tree no longer shows, so the text is searched for it.
fn replaces(name: &str, operator: &ParameterOp, quoted_in: Option<&str>) -> Checked {
    let (pattern, replacement, is_global) = match operator {
        ParameterOp::ReplaceFirst { pattern, replacement } => (pattern.as_str(), replacement.as_str(), false),
        ParameterOp::ReplaceAll { pattern, replacement } => (pattern.as_str(), replacement.as_str(), true),
        ParameterOp::RemovePrefixShort
        | ParameterOp::RemovePrefixLong
        | ParameterOp::RemoveSuffixShort
        | ParameterOp::RemoveSuffixLong => ("", "", false),
        _ => return Ok(()),
    };
    if stands_for_match(replacement) {
        return Err(format!(
            "`&` in `${{{name}/…/…}}` is the match in bash, and itself in memory: write `\\&` for itself, or use `sed`"
        ));
    }
    if is_global && pattern.starts_with(['#', '%']) {
        let sign = &pattern[..1];
        return Err(format!(
            "`${{{name}//{sign}…}}` is anchored in memory, and not in bash: write `\\{sign}`"
        ));
    }
    let opening = format!("${{{name}");
    let is_lost = |text: &str| text.split(&opening).skip(1).any(loses_backslashes);
    if quoted_in.is_some_and(is_lost) {
        return Err(format!(
            "memory would lose `\\\\`, or a quote in quotes, in `\"${{{name}…}}\"`: assign it without quotes, as \
             `x=${{{name}…}}`, which splits nothing"
        ));
    }
    Ok(())
}

/// Returns whether a replacement contains a `&` that is neither quoted nor escaped.
fn stands_for_match(replacement: &str) -> bool {
    let (mut letters, mut quote) = (replacement.chars(), None);
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => drop(letters.next()),
            '"' | '\'' if quote == Some(letter) => quote = None,
            '"' | '\'' if quote.is_none() => quote = Some(letter),
            // What is in a substitution is not looked at.
            '$' if letters.as_str().starts_with(['(', '{']) => return false,
            '&' if quote.is_none() => return true,
            _ => {}
        }
    }
    false
}

/// Returns whether the rest of a `${name` that changes a value has a doubled backslash, or a quote in quotes.
fn loses_backslashes(rest: &str) -> bool {
    // A subscript is not part of it.
    let rest = match rest.strip_prefix('[') {
        Some(subscript) => subscript.split_once(']').map_or("", |(_, rest)| rest),
        None => rest,
    };
    if !rest.starts_with(['/', '#', '%']) {
        return false;
    }
    let (mut letters, mut depth) = (rest.chars(), 1);
    while let Some(letter) = letters.next() {
        match letter {
            '\\' if letters.as_str().starts_with('\\') => return true,
            '\\' => drop(letters.next()),
            '\'' if letters.as_str().starts_with("\"'") => return true,
            '$' if letters.as_str().starts_with('{') => depth += 1,
            '}' => {
                depth -= 1;
                if depth == 0 {
                    return false;
                }
            }
            _ => {}
        }
    }
    false
}

/// Returns a word, if it is constant.
pub(super) fn literal(word: &Word) -> Option<&str> {
    match word.parts.as_slice() {
        [WordPart::Literal(text)] => Some(text),
        _ => None,
    }
}

/// Returns the constant part of a word, with `$` for the rest; for a declaration, the name.
fn written(word: &Word) -> &str {
    match word.parts.first() {
        Some(WordPart::Literal(text)) if word.parts.len() == 1 => text,
        Some(WordPart::Literal(text)) => text.find('=').map_or("$", |end| &text[..=end]),
        Some(WordPart::CompoundAssignment { name, .. }) => name,
        _ => "$",
    }
}

/// Returns whether a command redirects its input.
fn is_fed(redirects: &[Redirect]) -> bool {
    redirects.iter().any(|redirect| {
        let into = match redirect.kind {
            RedirectKind::Input
            | RedirectKind::HereDoc
            | RedirectKind::HereDocStrip
            | RedirectKind::HereString
            | RedirectKind::ReadWrite => true,
            // `<&0` is the same input.
            RedirectKind::DupInput => literal(&redirect.target) != Some("0"),
            _ => false,
        };
        into && redirect.fd.unwrap_or(0) == 0 && redirect.fd_var.is_none()
    })
}

/// Returns the redirections of a command that swap streams: one that is saved in a descriptor above 2, and one that
/// is later redirected to it.
fn swapped(redirects: &[Redirect]) -> Option<String> {
    let copied = |redirect: &Redirect| {
        let usual = match redirect.kind {
            RedirectKind::DupOutput => 1,
            RedirectKind::DupInput => 0,
            _ => return None,
        };
        let target = literal(&redirect.target)?;
        // `3>&1-` moves the descriptor.
        let from: i32 = target.strip_suffix('-').unwrap_or(target).parse().ok()?;
        Some((redirect.fd.unwrap_or(usual), from))
    };
    let copies: Vec<(i32, i32)> = redirects.iter().filter_map(copied).collect();
    copies.iter().enumerate().find_map(|(at, &(kept, stream))| {
        let (led, into) = copies[at + 1..].iter().find(|(led, into)| *led <= 2 && *into == kept)?;
        (kept > 2 && stream <= 2).then(|| format!("{kept}>&{stream} … {led}>&{into}"))
    })
}
