//! The syntax tree, walked from left to right.

use std::collections::BTreeSet;
use std::rc::Rc;

use super::launch::MAX_NAMES;
use super::run::{Launch, Run};
use super::source::{Place, Source};
use super::{Input, Reader};
use crate::descriptor::descriptor;
use crate::program;
use crate::reading::{Action, Base, Doubt, Invocation, Kind, PIPE, Via};
use crate::screen::Unreadable;
use crate::span::Span;
use crate::syntax::tree::{
    AndOrList, Assignment, AssignmentValue, CaseItem, Command, CompoundCommand, CompoundList, FunctionDefinition, Item,
    OnlyBash, Pipeline, Range, Redirect, RedirectKind, Separator, SimpleCommand, Target, Test,
};
use crate::syntax::{self, tree};
use crate::variables::{Attached, Influence, OPTIONAL_LOCKS, Variables, influence};
use crate::word::{Atom, Fields, Hidden, Known, Word};

impl Reader<'_> {
    /// Parses a text and follows every command in it.
    pub(super) fn text(&mut self, text: &str, place: Place) -> Result<(), Unreadable> {
        // In a text of its own an alias is looked for anew.
        let aliases = std::mem::take(&mut self.aliases);
        let result = self.whole_text(text, place);
        self.aliases = aliases;
        result
    }

    fn whole_text(&mut self, text: &str, place: Place) -> Result<(), Unreadable> {
        self.reads(text)?;
        let program = self.parsed(text).map_err(|error| Unreadable {
            span: place.span(error.at, (error.at + 1).min(text.len())),
            because: "it does not parse as bash".to_owned(),
        })?;
        if self.plain_sh
            && let Some(OnlyBash { at, construct }) = program.only_bash
        {
            self.doubt(
                Doubt::Launch,
                construct,
                format!(
                    "`sh` may be another shell than bash, which reads `{construct}` otherwise; write it as POSIX has \
                     it, or start `bash` instead"
                ),
                place.span(at, (at + construct.len()).min(text.len())),
                None,
            );
        }
        let source = Source {
            text,
            place,
            documents: &program.documents,
        };
        self.defined.lines |= text.contains('\n');
        for part in &program.list.0 {
            self.defined.line = self.defined.undo.len();
            if self.may_abort() {
                self.defined.may_give_up();
            }
            self.part(part, source)?;
        }
        Ok(())
    }

    /// The tree of a text, which is parsed once however often it is walked.
    pub(super) fn parsed(&mut self, text: &str) -> syntax::Result<Rc<tree::Program>> {
        if let Some(program) = self.parsed.get(text) {
            return Ok(Rc::clone(program));
        }
        let program = Rc::new(syntax::parse(text)?);
        self.parsed.insert(text.into(), Rc::clone(&program));
        Ok(program)
    }

    fn list(&mut self, list: &CompoundList, source: Source<'_>) -> Result<(), Unreadable> {
        list.0.iter().try_for_each(|part| self.part(part, source))
    }

    fn part(&mut self, (and_or, separator): &(AndOrList, Separator), source: Source<'_>) -> Result<(), Unreadable> {
        match separator {
            Separator::Sequence => self.and_or(and_or, source),
            Separator::Async => self.scope(|reader| reader.and_or(and_or, source)),
        }
    }

    fn and_or(&mut self, and_or: &AndOrList, source: Source<'_>) -> Result<(), Unreadable> {
        // In a directory that is changed to, what follows runs only if that went well.
        let inner = self
            .here
            .as_ref()
            .filter(|_| and_or.all_and)
            .and_then(|here| Some(joined_path(here, &self.entered(&and_or.first)?)));
        self.pipeline(&and_or.first, source)?;
        let stays = self.here.is_some();
        let outer = self.has_entered;
        if let Some(inner) = inner {
            self.here = Some(inner);
            self.has_entered = true;
        }
        self.scope(|reader| {
            and_or.additional.iter().try_for_each(|next| match and_or.all_and {
                true => reader.pipeline(next, source),
                // One behind `||` runs where the one before it did not go well, or did not run.
                false => reader.scope(|reader| reader.pipeline(next, source)),
            })
        })?;
        self.has_entered = outer;
        if !stays {
            self.here = None;
        }
        Ok(())
    }

    /// The directory that a pipeline changes to, if it is no more than a `cd` to one that is known.
    fn entered(&self, pipeline: &Pipeline) -> Option<String> {
        let [Command::Simple(simple)] = pipeline.seq.as_slice() else {
            return None;
        };
        let [Item::Word(directory)] = simple.suffix.as_slice() else {
            return None;
        };
        let name = simple
            .name
            .as_ref()
            .filter(|_| simple.prefix.is_empty() && !pipeline.marked)?;
        let known = self.variables.values("CDPATH").is_none()
            && !self.variables.can_be_anything()
            && !self.variables.functions.contains("cd")
            && !self.found.functions.contains("cd");
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./".contains(&byte);
        (known
            && name.value == "cd"
            && !directory.value.starts_with('-')
            && !directory.value.split('/').any(|part| part == "..")
            && directory.value.bytes().all(plain))
        .then(|| directory.value.clone())
    }

    /// Asks about `!(` where a command begins.
    pub(super) fn doubt_pattern(&mut self, span: Span) {
        let because = "under `extglob`, `!(` begins a pattern, and the names that it matches are run; write `! (`";
        self.doubt(Doubt::Launch, "!(", because, span, None);
    }

    fn pipeline(&mut self, pipeline: &Pipeline, source: Source<'_>) -> Result<(), Unreadable> {
        self.node()?;
        if let Some(range) = pipeline.pattern {
            // It may be switched on further down, and this run again.
            self.looked_up = true;
            if self.variables.extglob || self.found.extglob {
                self.doubt_pattern(source.span(range));
            }
        }
        if let [only] = pipeline.seq.as_slice() {
            return self.command(only, source);
        }
        self.scope(|reader| reader.stages(pipeline, source))
    }

    fn stages(&mut self, pipeline: &Pipeline, source: Source<'_>) -> Result<(), Unreadable> {
        let mut outer = self.input.clone();
        for (stage, command) in pipeline.seq.iter().enumerate() {
            let uses_input = self.uses_input;
            self.uses_input &= stage == 0;
            let (first, effects, texts) = (
                self.reading.commands.len(),
                self.reading.effects.len(),
                self.texts_given,
            );
            self.command(command, source)?;
            match stage {
                0 => outer = self.input.clone(),
                _ => self.uses_input = uses_input || self.shares_input,
            }
            if stage + 1 < pipeline.seq.len() {
                self.input = match self.output_of(command, first, effects) {
                    Input::Unknown if self.may_print_texts(first, effects, texts) => Input::Altered,
                    output => output,
                };
            }
        }
        self.input = outer;
        self.leaves_input();
        Ok(())
    }

    fn command(&mut self, command: &Command, source: Source<'_>) -> Result<(), Unreadable> {
        match command {
            Command::Simple(simple) => {
                self.node()?;
                let outer = self.input.clone();
                let redirects = std::mem::replace(&mut self.redirects_input, false);
                let result = self.simple(simple, source);
                self.redirects_input = redirects;
                self.fed_with = std::mem::replace(&mut self.input, outer);
                self.leaves_input();
                result
            }
            Command::Compound(compound, redirects) => {
                let outer = self.input.clone();
                let around = std::mem::replace(&mut self.redirects_input, false);
                self.redirects(redirects, source)?;
                let redirects_input = std::mem::replace(&mut self.redirects_input, around);
                let uses_input = self.uses_input;
                self.uses_input &= !redirects_input;
                self.behind(!redirects.is_empty(), |reader| reader.compound(compound, source))?;
                if redirects_input {
                    self.input = outer;
                    self.uses_input = uses_input || self.shares_input;
                }
                self.leaves_input();
                Ok(())
            }
            Command::Function(function) => self.function(function, source),
        }
    }

    fn compound(&mut self, compound: &CompoundCommand, source: Source<'_>) -> Result<(), Unreadable> {
        self.node()?;
        match compound {
            CompoundCommand::BraceGroup(list) => self.list(list, source),
            other @ (CompoundCommand::If { .. } | CompoundCommand::Case { .. } | CompoundCommand::Arithmetic(_)) => {
                self.compound_inner(other, source)
            }
            other => self.scope(|reader| reader.compound_inner(other, source)),
        }
    }

    fn compound_inner(&mut self, compound: &CompoundCommand, source: Source<'_>) -> Result<(), Unreadable> {
        if matches!(
            compound,
            CompoundCommand::ArithmeticFor { .. } | CompoundCommand::While { .. } | CompoundCommand::Coprocess { .. }
        ) {
            // What an earlier round changes to, a later one starts from.
            self.here = None;
        }
        match compound {
            CompoundCommand::Arithmetic(expression) => {
                self.arithmetic(&expression.value, source.place.inner(expression.range.start))?;
                self.given_a_number(&expression.value);
                Ok(())
            }
            CompoundCommand::ArithmeticFor { expressions, body } => {
                self.arithmetic(&expressions.value, source.place.inner(expressions.range.start))?;
                self.given_a_number(expressions.value.split(';').next().unwrap_or_default());
                self.again_and_again(|reader| reader.list(body, source))
            }
            CompoundCommand::BraceGroup(list) => self.list(list, source),
            CompoundCommand::Subshell(list) => {
                let splits = self.splits_for_good;
                let result = self.list(list, source);
                self.splits_for_good = splits;
                result
            }
            CompoundCommand::For {
                variable,
                values,
                body,
                range,
            } => self.for_loop(variable, values.as_deref(), body, *range, source),
            CompoundCommand::Case { value, items } => {
                self.words(value, source)?;
                let mut branches = Vec::new();
                for item in items {
                    for pattern in &item.patterns {
                        self.words(pattern, source)?;
                    }
                    branches.push(self.branch(|reader| reader.list(&item.list, source))?);
                }
                let others = |item: &CaseItem| item.patterns.iter().any(|pattern| pattern.value == "*");
                if items.iter().any(others) {
                    self.one_of(branches);
                }
                Ok(())
            }
            CompoundCommand::If { condition, then, elses } => {
                self.list(condition, source)?;
                let mut branches = vec![self.branch(|reader| reader.list(then, source))?];
                for (condition, body) in elses {
                    if let Some(condition) = condition {
                        self.scope(|reader| reader.list(condition, source))?;
                    }
                    branches.push(self.branch(|reader| reader.list(body, source))?);
                }
                if elses.last().is_some_and(|(condition, _)| condition.is_none()) {
                    self.one_of(branches);
                }
                Ok(())
            }
            CompoundCommand::While { condition, until, body } => {
                // The body runs where a command that is all of the condition went well.
                let ends_loop = !until && is_one_command(condition);
                self.again_and_again(|reader| {
                    let outer = std::mem::replace(&mut reader.ends_loop, ends_loop);
                    let result = reader.list(condition, source);
                    reader.ends_loop = outer;
                    result?;
                    reader.list(body, source)
                })
            }
            CompoundCommand::Coprocess { name, body, range } => {
                let name = name.as_deref().unwrap_or("COPROC").to_owned();
                self.gives_descriptor(&name, source.span(*range))?;
                // Later commands write to it.
                let outer = std::mem::replace(&mut self.input, Input::Altered);
                let result = self.command(body, source);
                self.input = outer;
                result
            }
            CompoundCommand::Test { test, range } => {
                self.whole(|reader| reader.test(test, source, source.span(*range)))
            }
        }
    }

    /// What each of these parts gives a value has one, since one of them has run.
    fn one_of(&mut self, branches: Vec<BTreeSet<String>>) {
        let all = branches.into_iter().reduce(|all, branch| &all & &branch);
        all.into_iter().flatten().for_each(|name| self.defined.assigned(&name));
    }

    fn for_loop(
        &mut self,
        variable: &str,
        values: Option<&[tree::Word]>,
        body: &CompoundList,
        range: Range,
        source: Source<'_>,
    ) -> Result<(), Unreadable> {
        let span = source.span(range);
        let mut words = Vec::new();
        for word in values.unwrap_or_default() {
            words.extend(self.words(word, source)?);
        }
        // The list is made before the first round. What an earlier one changes to, a later one starts from.
        self.here = None;
        if values.is_none() {
            words.push(Word::unknown(Fields::Any, "\"$@\"", span));
        }
        let at = Span::new(span.start, span.end.min(span.start + 7 + variable.len()));
        // The list may be empty, and `select` takes what is typed.
        self.found.assign("REPLY", vec![Atom::Hidden(Hidden::Anything)]);
        for word in words {
            self.globbed(&word, None);
            self.assign(variable, element(&word), at)?;
        }
        if source.text[range.start..].starts_with("select") {
            self.uses_input = true;
            self.leaves_input();
            // The answer may be none of the list.
            self.assign(variable, Vec::new(), span)?;
        } else {
            self.defined.assigned(variable);
        }
        self.again_and_again(|reader| reader.list(body, source))
    }

    /// Follows what runs in rounds. If it takes from the standard input, a later round is not given what the first one is.
    fn again_and_again(&mut self, round: impl Fn(&mut Self) -> Result<(), Unreadable>) -> Result<(), Unreadable> {
        let (commands, effects) = (self.reading.commands.len(), self.reading.effects.len());
        let before = self.input.clone();
        round(self)?;
        if self.input == before {
            return Ok(());
        }
        self.reading.commands.truncate(commands);
        self.reading.effects.truncate(effects);
        round(self)
    }

    /// What a command leaves of the standard input that others share with it.
    fn leaves_input(&mut self) {
        if self.uses_input {
            self.input = match self.input {
                Input::Text(_) | Input::Altered => Input::Altered,
                _ => Input::Unknown,
            };
        }
    }

    fn function(&mut self, function: &FunctionDefinition, source: Source<'_>) -> Result<(), Unreadable> {
        self.looked_up = true;
        self.found.functions.insert(function.name.clone());
        let body = source.text.get(function.range.start..function.range.end);
        // A here-document may stand behind it.
        let is_whole = |body: &&str| {
            let last = body.rsplit('\n').next().unwrap_or_default();
            !last.replace("<<<", "").contains("<<")
        };
        let kept = body
            .filter(is_whole)
            .is_some_and(|body| self.found.definitions.function(&function.name, body));
        self.keeps_definition(kept, Some(&function.name), source.span(function.range));
        if self.variables.definitions.has_alias(&function.name) {
            let span = source.span(function.range);
            let because = "an alias has this name and may be put in its place, so that a function of another name is \
                           defined; choose another name";
            self.doubt(Doubt::Launch, function.name.as_str(), because, span, None);
        }
        if function.name == "command_not_found_handle" {
            let span = source.span(function.range);
            let because = "it is called for every command that is not found, with all of its words";
            self.doubt(Doubt::Launch, function.name.as_str(), because, span, None);
        }
        // Where it is called is not followed.
        self.here = None;
        let outer = std::mem::replace(&mut self.input, Input::Unknown);
        self.redirects(&function.redirects, source)?;
        let within = std::mem::replace(&mut self.in_function, true);
        // What is local where it is defined is not there where it is called.
        let around = within.then(|| {
            let anew = self.defined.of_earlier_texts();
            std::mem::replace(&mut self.defined, anew)
        });
        let uses_input = std::mem::replace(&mut self.uses_input, false);
        let result = self.scope(|reader| reader.compound(&function.body, source));
        let functions = match std::mem::replace(&mut self.uses_input, uses_input) {
            true => &mut self.functions_with_input,
            false => &mut self.functions_without_input,
        };
        functions.insert(function.name.clone());
        if let Some(around) = around {
            self.defined = around;
        }
        self.in_function = within;
        self.input = outer;
        self.defined.function(&function.name);
        result
    }

    /// Asks about a definition that is not kept, since later texts may run it, and does not count on its name.
    pub(super) fn keeps_definition(&mut self, kept: bool, name: Option<&str>, span: Span) {
        if !kept {
            if name.is_some() {
                self.found.undefine(name);
            }
            let object = self.written(span);
            let because = "it is not kept for the commands that run it later: there are too many definitions, or its \
                           here-document stands behind it";
            self.doubt(Doubt::Launch, object, because, span, None);
        }
    }

    /// Follows what earlier texts defined and this one runs: functions that it calls, and traps, if it assigns or defines
    /// anything.
    pub(super) fn earlier_definitions(&mut self, before: &Variables) -> Result<(), Unreadable> {
        let mut walked = BTreeSet::new();
        self.earlier_functions(before, &mut walked)?;
        if self.found != *before {
            let whole = Span::new(0, self.whole.len());
            for trap in before.definitions.traps() {
                self.in_trap(&Word::text(trap, whole), None)?;
            }
        }
        self.earlier_functions(before, &mut walked)
    }

    fn earlier_functions(&mut self, before: &Variables, walked: &mut BTreeSet<String>) -> Result<(), Unreadable> {
        while let Some((name, span)) = self.called.pop() {
            if !walked.insert(name.clone()) {
                continue;
            }
            for body in before.definitions.bodies(&name) {
                let text = format!("{name}() {body}");
                let defined = self.defined.of_earlier_texts();
                self.other_shell(false, |reader| {
                    reader.in_function = true;
                    reader.defined = defined;
                    reader.deeper(|reader| reader.text(&text, Place::Within(span)))
                })?;
            }
        }
        Ok(())
    }

    /// Follows the text of a trap. When it runs, nothing need be as it is here.
    pub(super) fn in_trap(&mut self, text: &Word, by: Option<usize>) -> Result<(), Unreadable> {
        self.other_shell(self.plain_sh, |reader| {
            // It may run within a function.
            reader.in_function = true;
            reader.own_text(text, by)
        })
    }

    fn test(&mut self, test: &Test, source: Source<'_>, span: Span) -> Result<(), Unreadable> {
        self.node()?;
        match test {
            Test::Both(left, right) => {
                self.test(left, source, span)?;
                self.test(right, source, span)
            }
            Test::Not(inner) => self.test(inner, source, span),
            Test::Unary(operator, word) => {
                let words = self.words(word, source)?;
                match operator.as_deref() {
                    Some("-v" | "-R") => words.iter().try_for_each(|word| self.evaluated_word(word, span)),
                    None | Some("-n" | "-o" | "-t" | "-z") => Ok(()),
                    Some(_) => {
                        for word in words {
                            let (object, at) = (word.shown(), word.span);
                            self.effect(Action::Names(word), object, at, None, Via::Operand);
                        }
                        Ok(())
                    }
                }
            }
            Test::Binary(operator, left, right) => {
                if operator == "=~" {
                    self.matches(&right.value);
                }
                for word in [left, right] {
                    self.test_word(word, source)?;
                    if matches!(operator.as_str(), "-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge") {
                        self.arithmetic_operand(word, source.place.inner(word.range.start))?;
                    }
                }
                Ok(())
            }
        }
    }

    /// A word of a comparison: a pattern or a regular expression may hold what no other word does.
    fn test_word(&mut self, word: &tree::Word, source: Source<'_>) -> Result<(), Unreadable> {
        let span = source.span(word.range);
        let place = source.place.inner(word.range.start);
        if self.tree_word(word, place, span).is_err() {
            self.body(&word.value, Place::Within(span), span)?;
        }
        Ok(())
    }

    fn simple(&mut self, simple: &SimpleCommand, source: Source<'_>) -> Result<(), Unreadable> {
        let mut argv = Vec::new();
        let (mut assigned, mut declared) = (Vec::new(), Vec::new());
        let mut span: Option<Span> = None;
        let all = simple
            .prefix
            .iter()
            .map(|item| (item, true))
            .chain(simple.suffix.iter().map(|item| (item, false)));
        let split = simple.prefix.len();
        for (number, (item, leading)) in all.enumerate() {
            if number == split {
                self.command_name(simple, source, &mut argv, &mut span)?;
            }
            let stands = match item {
                Item::Redirect(redirect) => {
                    self.redirect(redirect, source)?;
                    continue;
                }
                Item::Word(word) => {
                    self.add_words(word, source, &mut argv)?;
                    word.range
                }
                Item::Assignment(assignment) => {
                    if leading {
                        assigned.push(assignment);
                    } else {
                        declared.push(assignment);
                        let at = source.span(assignment.word.range);
                        match &assignment.value {
                            AssignmentValue::Scalar(_) => argv.extend(
                                self.whole(|reader| reader.tree_word(&assignment.word, Place::Within(at), at))?,
                            ),
                            AssignmentValue::Array(_) => {
                                argv.push(Word::unknown(Fields::One, assignment.word.value.clone(), at))
                            }
                        }
                    }
                    assignment.word.range
                }
                Item::ProcessSubstitution(list, range) => {
                    let input = match source.text[range.start..].starts_with('>') {
                        true => Input::Altered,
                        false => Input::Unknown,
                    };
                    self.process_substitution(list, input, source)?;
                    argv.push(pipe_name(source.span(*range)));
                    *range
                }
            };
            let stands = source.span(stands);
            span = Some(span.map_or(stands, |all: Span| all.to(stands)));
        }
        if simple.suffix.is_empty() {
            self.command_name(simple, source, &mut argv, &mut span)?;
        }
        // With a command behind them they hold for that command alone.
        let splits = self.splits_for_good;
        for assignment in &assigned {
            self.assignment(assignment, source)?;
        }
        if argv.is_empty() {
            self.given_values(&assigned);
        } else {
            self.splits_for_good = splits;
        }
        let (Some(span), Some(first)) = (span, argv.first()) else {
            return Ok(());
        };
        let mut items = simple.prefix.iter().chain(&simple.suffix);
        let redirected = items.any(|item| matches!(item, Item::Redirect(_)));
        if super::launch::declares(first) {
            let names = declared.iter().map(|assignment| &assignment.name);
            self.declared_first = names
                .filter(|name| self.found.values(name).is_none())
                .cloned()
                .collect();
            let makes_integers = |word: &Word| match word.known() {
                Some(text) => text.starts_with('-') && text.contains('i'),
                None => !word.written.contains('=') && word.is_dashed() != Known::No,
            };
            if argv.iter().any(makes_integers) {
                // Their elements are evaluated as they are given.
                let names = declared.iter().map(|assignment| assignment.name.clone());
                self.found.integers.extend(names);
                self.looked_up = true;
            }
            declared
                .iter()
                .try_for_each(|assignment| self.assignment(assignment, source))?;
            let name = first.known().unwrap_or_default();
            if !redirected && self.declares_for_certain(&name, &argv[1..]) {
                self.given_values(&declared);
            }
        }
        let first = self.commands();
        let launch = Launch {
            argv,
            span,
            functions: true,
            more: false,
        };
        let uses_input = self.uses_input;
        self.uses_input &= !self.redirects_input;
        let is_empty =
            |value: &AssignmentValue| matches!(value, AssignmentValue::Scalar(word) if word.value.is_empty());
        self.keeps_ends = assigned.iter().any(|one| one.name == "IFS" && is_empty(&one.value));
        self.behind(redirected, |reader| reader.launch(launch))?;
        if self.redirects_input {
            // What `exec` redirects stays so.
            let is_exec = |command: &Invocation| command.program().as_deref() == Some("exec");
            self.uses_input = uses_input || self.shares_input || self.reading.commands[first..].iter().any(is_exec);
        }
        self.declared_first.clear();
        // Builtins run in the shell itself (`IFS= read`); those that run others (`eval`) record them as well.
        if self.reading.commands[first..]
            .iter()
            .any(|command| command.kind != Kind::Builtin)
        {
            for assignment in &assigned {
                self.exported(&assignment.name, source.span(assignment.word.range));
            }
        }
        Ok(())
    }

    /// Records that these have a value from here on. Another element of an array is not what its name alone expands to.
    fn given_values(&mut self, assignments: &[&Assignment]) {
        for assignment in assignments.iter().filter(|assignment| assignment.subscript.is_none()) {
            self.defined.assigned(&assignment.name);
        }
    }

    /// The name of a command, between its assignments and its arguments.
    fn command_name(
        &mut self,
        simple: &SimpleCommand,
        source: Source<'_>,
        argv: &mut Vec<Word>,
        span: &mut Option<Span>,
    ) -> Result<(), Unreadable> {
        let Some(name) = &simple.name else { return Ok(()) };
        let stands = source.span(name.range);
        *span = Some(span.map_or(stands, |all| all.to(stands)));
        self.add_words(name, source, argv)?;
        Ok(())
    }

    fn assignment(&mut self, assignment: &Assignment, source: Source<'_>) -> Result<(), Unreadable> {
        let span = source.span(assignment.word.range);
        if let Some(subscript) = &assignment.subscript {
            self.subscript(&assignment.name, subscript, span)?;
        }
        match &assignment.value {
            AssignmentValue::Scalar(word) => {
                // The value of an assignment does not split, whatever is in it.
                let place = source.place.inner(word.range.start);
                let words = self.whole(|reader| reader.tree_word(word, place, span))?;
                let value = match <[Word; 1]>::try_from(words) {
                    Ok([word]) if word.fields != Fields::Glob => word.atoms.to_vec(),
                    // Braces and wildcards stay as they are written, and what they match comes later.
                    _ => vec![Atom::Hidden(Hidden::Anything)],
                };
                let value = if assignment.append {
                    vec![Atom::Hidden(appended(&value))]
                } else {
                    value
                };
                self.assign(&assignment.name, value, span)
            }
            AssignmentValue::Array(elements) => {
                self.found.assign(&assignment.name, Vec::new());
                let mut list = (!assignment.append).then(Vec::new);
                for (subscript, value) in elements {
                    if let Some(subscript) = subscript {
                        self.subscript(&assignment.name, subscript, span)?;
                        list = None;
                    }
                    for word in self.words(value, source)? {
                        list = list.filter(|_| word.fields == Fields::One).map(|mut list| {
                            list.push(word.atoms.to_vec());
                            list
                        });
                        self.assign(&assignment.name, element(&word), span)?;
                    }
                }
                if let Some(list) = list {
                    self.found.assign_list(&assignment.name, list);
                }
                Ok(())
            }
        }
    }

    /// Records that a variable is given a value, and follows what that makes run.
    pub(super) fn assign(&mut self, name: &str, value: Vec<Atom>, span: Span) -> Result<(), Unreadable> {
        if matches!(name, "GLOBIGNORE" | "BASHOPTS") {
            // Setting it makes, or can make, wildcards match leading dots.
            self.reading.dotglob = true;
        }
        if name == "DIRSTACK" {
            self.doubt(Doubt::Launch, name, "it says where `popd` and `pushd` lead", span, None);
        }
        self.looked_up |= !self.found.integers.is_empty();
        if crate::variables::is_readonly(name) {
            self.defined.may_give_up();
        }
        // A call of a function fails where there are too many.
        self.found.may_abort |= name == "FUNCNEST";
        if crate::variables::is_integer(name)
            || self.variables.integers.contains(name)
            || self.found.integers.contains(name)
        {
            // Giving it a value evaluates that as arithmetic.
            self.evaluated_atoms(&value, span)?;
        }
        if name == OPTIONAL_LOCKS && crate::word::known(&value).as_deref() != Some("0") {
            self.lets_git_refresh(span);
        }
        if let Some(program) = crate::variables::options_of(name)
            && let Some(starts) = program::started_by_options(program, &value)
        {
            for command in starts.commands {
                self.shell_text(&Word::text(command, span), None)?;
            }
            if let Some(option) = starts.option {
                let because = format!("`{name}` gives later commands `{option}`, which starts or loads what it names");
                self.doubt(Doubt::Launch, self.written(span), because, span, None);
            }
        }
        if crate::variables::is_written(name) {
            let file = Word {
                atoms: value.as_slice().into(),
                fields: Fields::One,
                span,
                written: self.written(span).into(),
            };
            self.effect(Action::Writes(file), self.written(span), span, None, Via::Assignment);
        }
        if crate::variables::names_a_file(name) {
            self.named_in_list(&value, span);
        }
        match influence(name, &value) {
            Influence::None | Influence::Unknown => {}
            Influence::Path if crate::variables::searches_the_system(&self.written(span)) => {}
            kind @ (Influence::Search | Influence::Path | Influence::Code | Influence::Loading) => {
                let doubt = match kind {
                    Influence::Loading => Doubt::Loading,
                    _ => Doubt::Variable,
                };
                let action = Action::Doubt(doubt, format!("`{name}` changes what later commands run"));
                self.effect(action, self.written(span), span, None, Via::Assignment);
                let set = crate::word::known(&value).as_deref() != Some("");
                if kind == Influence::Code && set {
                    let because = format!("`{name}` has later commands run code that it names");
                    self.doubt(Doubt::Launch, self.written(span), because, span, None);
                }
                if kind == Influence::Loading || kind == Influence::Path {
                    self.named_in_list(&value, span);
                }
            }
            Influence::Configuration => {
                let written = self.written(span);
                self.doubt(
                    Doubt::Launch,
                    written,
                    format!("`{name}` brings code or settings that run commands"),
                    span,
                    None,
                );
            }
            Influence::Prompt => {
                self.prompt(&value, span)?;
                if crate::word::known(&value).is_some_and(|text| text.contains("$(") || text.contains('`')) {
                    let because = "later commands run what is substituted in it, with what they define";
                    self.doubt(Doubt::Launch, self.written(span), because, span, None);
                }
            }
            Influence::Command => {
                let written = self.written(span);
                self.effect(
                    Action::Doubt(Doubt::Delegate, format!("`{name}` names a command that others start")),
                    written,
                    span,
                    None,
                    Via::Assignment,
                );
                let word = Word {
                    atoms: value.as_slice().into(),
                    fields: Fields::One,
                    span,
                    written: self.written(span).into(),
                };
                // These are given a text by what starts them, and not what the text feeds.
                let given = matches!(name, "SHELL" | "CONFIG_SHELL" | "PERL" | "PYTHON");
                let outer = self.input.clone();
                if given {
                    self.input = Input::Text(Vec::new());
                }
                // Without an editor of their own, the steps of a rebase are given to that of messages.
                let of_messages = matches!(name, "GIT_EDITOR" | "EDITOR" | "VISUAL") && self.whole.contains("rebase");
                if name == "GIT_SEQUENCE_EDITOR" || of_messages {
                    program::editor_of_steps(&word, self);
                }
                if word.known().as_deref() != Some("") {
                    self.shell_text(&word, None)?;
                }
                self.input = outer;
            }
        }
        self.splits_for_good |= name == "IFS";
        self.found.assign(name, value);
        Ok(())
    }

    /// Records that a variable is passed to programs.
    pub(crate) fn exported(&mut self, name: &str, span: Span) {
        if influence(name, &[]) == Influence::Unknown {
            let because = format!("`{name}` may change what programs do");
            let action = Action::Doubt(Doubt::Environment, because);
            self.effect(action, self.written(span), span, None, Via::Assignment);
        }
    }

    /// Records that every variable that is assigned from now on is passed to programs.
    pub(super) fn exports_all(&mut self, run: &Run) {
        let because = "variables that are assigned later may change what programs do".to_owned();
        let (action, object) = (Action::Doubt(Doubt::Environment, because), self.written(run.span));
        self.effect(action, object, run.span, Some(run.index), Via::Option);
    }

    /// Records that git may refresh its index again where it only looks.
    pub(super) fn lets_git_refresh(&mut self, span: Span) {
        let index = "the index of the repository, which `git status` refreshes unless GIT_OPTIONAL_LOCKS is 0";
        let object = self.written(span);
        self.effect(Action::Changes(index.to_owned()), object, span, None, Via::Assignment);
    }

    /// After a command whose environment was emptied, or lost `GIT_OPTIONAL_LOCKS`: whether git is started there.
    pub(crate) fn lost_environment(&mut self, first: usize, span: Span) {
        let git = |command: &Invocation| {
            command.program().as_deref() == Some("git")
                && !command
                    .argv
                    .iter()
                    .any(|word| word.known().as_deref() == Some("--no-optional-locks"))
        };
        if self.reading.commands.iter().skip(first).any(git) {
            self.lets_git_refresh(span);
        }
    }

    /// Records that a variable, or all of them, are taken out of what a program is given.
    pub(crate) fn unset_for_child(&mut self, name: Option<&str>) {
        // The others are nothing wherever they are not set.
        self.found.assign(name.unwrap_or("HOME"), Vec::new());
    }

    /// The paths that the value of a variable names: of a list, as far as it is known, and behind `=`.
    fn named_in_list(&mut self, value: &[Atom], span: Span) {
        let texts = value.iter().filter_map(|atom| match atom {
            Atom::Text(text) => Some(text.as_str()),
            _ => None,
        });
        let parts = texts.flat_map(|text| text.split([':', '=', ',', ' ']));
        for part in parts.filter(|part| !part.is_empty()) {
            let word = Word::text(part, span);
            self.effect(Action::Mentions(word), part, span, None, Via::Assignment);
        }
    }

    fn process_substitution(
        &mut self,
        list: &CompoundList,
        input: Input,
        source: Source<'_>,
    ) -> Result<(), Unreadable> {
        let outer = std::mem::replace(&mut self.input, input);
        let result = self.scope(|reader| reader.list(list, source));
        self.input = outer;
        result
    }

    /// Records that a variable is given the number of a descriptor.
    fn gives_descriptor(&mut self, name: &str, span: Span) -> Result<(), Unreadable> {
        let computed = self.found.is_computed(name);
        self.assign(name, vec![Atom::Hidden(Hidden::Number)], span)?;
        if !computed {
            self.found.given_descriptor(name);
        }
        Ok(())
    }

    /// Whether a word names an open descriptor: `1`, `2-`, `-`. A negative number is the name of a file.
    fn is_descriptor(&self, word: &Word) -> bool {
        if let Some(text) = word.known() {
            let number = text.strip_suffix('-').unwrap_or(&text);
            return number.bytes().all(|byte| byte.is_ascii_digit());
        }
        let written = word.written.trim_matches('"');
        let is_given = |name: &str| {
            let name = name.trim_start_matches('{');
            let end = name.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
            let name = &name[..end.unwrap_or(name.len())];
            crate::syntax::is_name(name) && !self.variables.is_computed(name) && !self.found.is_computed(name)
        };
        // There may be no such element, so that nothing is opened.
        let is_number = |one: &Word| matches!(&*one.atoms, [] | [Atom::Hidden(Hidden::Number)]);
        let alternatives = word.alternatives(MAX_NAMES);
        alternatives.is_some_and(|all| all.iter().all(is_number))
            && (matches!(written, "$#" | "$?" | "$$" | "$!") || written.strip_prefix('$').is_some_and(is_given))
    }

    fn redirects(&mut self, redirects: &[Redirect], source: Source<'_>) -> Result<(), Unreadable> {
        redirects
            .iter()
            .try_for_each(|redirect| self.redirect(redirect, source))
    }

    fn redirect(&mut self, redirect: &Redirect, source: Source<'_>) -> Result<(), Unreadable> {
        self.node()?;
        if let Some((name, subscript)) = &redirect.variable {
            let span = match &redirect.target {
                Target::Word(word) => source.span(word.range),
                Target::ProcessSubstitution(_) | Target::Document { .. } => source.place.span(0, 0),
            };
            if let Some(subscript) = subscript {
                self.subscript(name, subscript, span)?;
            }
            self.gives_descriptor(name, span)?;
        }
        let (writes, reads) = match redirect.kind {
            RedirectKind::Read
            | RedirectKind::DuplicateInput
            | RedirectKind::HereString
            | RedirectKind::HereDocument => (false, true),
            RedirectKind::Write | RedirectKind::DuplicateOutput => (true, false),
            RedirectKind::ReadAndWrite => (true, true),
        };
        let standard_input = reads && redirect.variable.is_none() && redirect.descriptor.unwrap_or(0) == 0;
        if standard_input || redirect.descriptor == Some(0) {
            self.redirects_input = true;
            self.input = Input::Unknown;
        }
        match &redirect.target {
            Target::Document { number, expands } => {
                let Some(document) = source.documents.get(*number) else {
                    return Ok(());
                };
                let span = source.span(document.range);
                let atoms = if *expands {
                    self.body(&document.text, Place::Within(span), span)?
                } else {
                    vec![Atom::Text(document.text.clone())]
                };
                self.feed(standard_input, atoms, span);
            }
            Target::Word(word) if redirect.kind == RedirectKind::HereString => {
                let words = self.words(word, source)?;
                let atoms = match <[Word; 1]>::try_from(words) {
                    Ok([word]) => word.atoms.to_vec(),
                    Err(_) => vec![Atom::Hidden(Hidden::Anything)],
                };
                self.feed(standard_input, atoms, source.span(word.range));
            }
            Target::Word(word) => {
                let duplicates = matches!(
                    redirect.kind,
                    RedirectKind::DuplicateInput | RedirectKind::DuplicateOutput
                );
                for word in self.words(word, source)? {
                    let closes = word.known().as_deref() == Some("-");
                    self.shares_input |= match redirect.kind {
                        RedirectKind::DuplicateInput => !closes,
                        _ => reads && program::may_name_input(&word),
                    };
                    if standard_input {
                        let copied = duplicates || word.known().is_none_or(|path| descriptor(&path).is_some());
                        self.input = match copied {
                            true if self.texts_given > 0 => Input::Altered,
                            true if duplicates => Input::Unknown,
                            _ => Input::File(word.clone()),
                        };
                    }
                    let descriptor = redirect.descriptor.unwrap_or(u32::from(!reads));
                    let copies = duplicates && self.is_descriptor(&word);
                    if copies {
                        let number = word.known().and_then(|text| text.trim_end_matches('-').parse().ok());
                        if !closes {
                            self.found
                                .attach(descriptor, number.map_or(Attached::Any, Attached::Descriptor));
                        }
                    } else if duplicates && word.known().is_none() {
                        self.found.attach(descriptor, Attached::Any);
                    } else if !writes {
                        self.found.attach(descriptor, Attached::File(word.clone()));
                    }
                    if !copies {
                        self.opened(word, writes);
                    }
                }
            }
            Target::ProcessSubstitution(list) => {
                let (texts, first, effects) = (
                    self.texts_given,
                    self.reading.commands.len(),
                    self.reading.effects.len(),
                );
                let input = if reads { Input::Unknown } else { Input::Altered };
                self.process_substitution(list, input, source)?;
                if standard_input {
                    let traps = self.variables.traps_between || self.found.traps_between;
                    let stages = super::file_names::stages(list).filter(|_| !traps);
                    self.input = match stages.and_then(|stages| self.names_of_pipeline(first, effects, stages)) {
                        Some(names) => Input::Names(names),
                        None if self.texts_given > texts => Input::Altered,
                        None => Input::Unknown,
                    };
                }
            }
        }
        Ok(())
    }

    fn feed(&mut self, standard_input: bool, atoms: Vec<Atom>, span: Span) {
        self.texts_given += 1;
        if standard_input {
            let word = Word {
                atoms: atoms.into(),
                fields: Fields::One,
                span,
                written: self.written(span).into(),
            };
            self.input = Input::Text(vec![word]);
        }
    }

    /// A file that a redirection opens.
    fn opened(&mut self, word: Word, writes: bool) {
        let (object, span) = (word.shown(), word.span);
        if let Some(path) = word.known()
            && (path.starts_with("/dev/tcp/") || path.starts_with("/dev/udp/"))
        {
            self.effect(Action::Network(path.to_string()), object, span, None, Via::Redirection);
            return;
        }
        let action = if writes {
            Action::Writes(word)
        } else {
            Action::Reads(word)
        };
        self.effect(action, object, span, None, Via::Redirection);
    }

    /// Records that relative paths may start in another directory from here on.
    pub(super) fn base(&mut self, base: Base) {
        self.here = None;
        if self.reading.bases.contains(&base) {
            return;
        }
        let full = self.reading.bases.len() >= 12;
        self.reading.bases.push(if full { Base::Unknown } else { base });
        self.reading.bases.dedup();
    }

    /// Whether the directory in which commands stand may have a blank in its name, because the text changes to it.
    pub(super) fn stands_among_blanks(&self) -> bool {
        self.reading.bases.iter().any(|base| match base {
            Base::At(path) => path.contains(char::is_whitespace),
            Base::Unknown => true,
        })
    }

    /// Wildcards name files whatever is done with the names.
    pub(super) fn globbed(&mut self, word: &Word, by: Option<usize>) {
        if word.fields == Fields::Glob || word.fields.is_any() && word.holds_wildcards() {
            self.effect_on(Action::Names, word, by, Via::Operand);
        }
    }

    /// What the command text says at this place.
    pub(super) fn written(&self, span: Span) -> String {
        self.whole.get(span.start..span.end).unwrap_or_default().to_owned()
    }
}

/// A directory as it is named from another.
fn joined_path(from: &str, to: &str) -> String {
    if from.is_empty() || to.starts_with('/') {
        to.to_owned()
    } else {
        format!("{from}/{to}")
    }
}

/// What a process substitution becomes: the name of a pipe.
fn pipe_name(span: Span) -> Word {
    Word {
        written: "<(…)".into(),
        ..Word::text(PIPE, span)
    }
}

/// Whether a list is one simple command, which tells by its end how it went.
fn is_one_command(list: &CompoundList) -> bool {
    matches!(
        list.0.as_slice(),
        [(and_or, Separator::Sequence)]
            if and_or.additional.is_empty()
                && !and_or.first.marked
                && matches!(and_or.first.seq.as_slice(), [Command::Simple(_)])
    )
}

/// One element of a list of words, as the value of a variable.
fn element(word: &Word) -> Vec<Atom> {
    match word.fields {
        Fields::One => word.atoms.to_vec(),
        // File names: what is known of them stays known.
        Fields::Glob => word.atoms.to_vec(),
        Fields::Any | Fields::Spread => match &*word.atoms {
            [Atom::Hidden(Hidden::Number | Hidden::Name | Hidden::Commit) | Atom::OneOf(_)] => word.atoms.to_vec(),
            names if word.is_found_below() => names.to_vec(),
            _ => vec![Atom::Hidden(Hidden::Anything)],
        },
    }
}

/// What is known of a value to which something was appended.
fn appended(value: &[Atom]) -> Hidden {
    match value {
        [Atom::Hidden(Hidden::Number)] => Hidden::Number,
        [Atom::Text(text)] if text.bytes().all(|byte| byte.is_ascii_digit()) => Hidden::Number,
        _ => Hidden::Anything,
    }
}
