//! The syntax tree, walked from left to right.

use std::io::Cursor;

use brush_parser::ast::{self, CommandPrefixOrSuffixItem as Item, CompoundCommand, IoFileRedirectKind, IoFileRedirectTarget, IoRedirect};
use brush_parser::{Parser, ParserOptions, SourceSpan};

use super::launch::Launch;
use super::source::{Place, Source};
use super::variables::{Influence, influence};
use super::{Base, Deed, Doubt, Input, MAX_PARSED, Reader, Unreadable, Via};
use crate::policy::verdict::Span;
use crate::policy::word::{Atom, Fields, Hidden, Word};

/// How bash parses a command that it is given with `-c`.
pub(super) fn options() -> ParserOptions {
    ParserOptions { enable_extended_globbing: false, ..ParserOptions::default() }
}

impl Reader<'_> {
    /// Parses a text and follows every command in it.
    pub(super) fn text(&mut self, text: &str, place: Place) -> Result<(), Unreadable> {
        self.parsed += text.len();
        if self.parsed > MAX_PARSED {
            return Err(Unreadable::whole(self.whole, "it holds too much text within text"));
        }
        let source = Source::new(text, place);
        let program = Parser::new(Cursor::new(text.as_bytes()), &options())
            .parse_program()
            .map_err(|error| Unreadable { span: failure(&error, &source), because: "it does not parse as bash".to_owned() })?;
        for list in &program.complete_commands {
            self.list(list, &source)?;
        }
        Ok(())
    }

    fn list(&mut self, list: &ast::CompoundList, source: &Source) -> Result<(), Unreadable> {
        for ast::CompoundListItem(and_or, separator) in &list.0 {
            match separator {
                ast::SeparatorOperator::Sequence => self.and_or(and_or, source)?,
                ast::SeparatorOperator::Async => self.scope(|reader| reader.and_or(and_or, source))?,
            }
        }
        Ok(())
    }

    fn and_or(&mut self, and_or: &ast::AndOrList, source: &Source) -> Result<(), Unreadable> {
        self.pipeline(&and_or.first, source)?;
        self.scope(|reader| {
            and_or.additional.iter().try_for_each(|next| {
                let (ast::AndOr::And(pipeline) | ast::AndOr::Or(pipeline)) = next;
                reader.pipeline(pipeline, source)
            })
        })
    }

    fn pipeline(&mut self, pipeline: &ast::Pipeline, source: &Source) -> Result<(), Unreadable> {
        self.node()?;
        if let [only] = pipeline.seq.as_slice() {
            return self.command(only, source);
        }
        self.scope(|reader| reader.stages(pipeline, source))
    }

    fn stages(&mut self, pipeline: &ast::Pipeline, source: &Source) -> Result<(), Unreadable> {
        let outer = self.input.clone();
        for (stage, command) in pipeline.seq.iter().enumerate() {
            let first = self.reading.commands.len();
            self.command(command, source)?;
            if stage + 1 < pipeline.seq.len() {
                self.input = self.output_of(command, first);
            }
        }
        self.input = outer;
        Ok(())
    }

    /// What the next stage of a pipeline reads.
    fn output_of(&self, command: &ast::Command, first: usize) -> Input {
        let ast::Command::Simple(simple) = command else { return Input::Unknown };
        let redirected = simple.suffix.iter().flat_map(|suffix| &suffix.0).any(|item| matches!(item, Item::IoRedirect(_)));
        // Substitutions come before the command whose words they are in.
        match self.reading.commands.get(first..) {
            Some([only]) if !redirected => super::launch::printed_text(only).map_or(Input::Unknown, |texts| Input::Text(texts)),
            _ => Input::Unknown,
        }
    }

    fn command(&mut self, command: &ast::Command, source: &Source) -> Result<(), Unreadable> {
        match command {
            ast::Command::Simple(simple) => self.simple(simple, source),
            ast::Command::Compound(compound, redirects) => {
                let outer = self.input.clone();
                self.redirects(redirects.as_ref(), source)?;
                self.compound(compound, source)?;
                self.input = outer;
                Ok(())
            }
            ast::Command::Function(function) => self.function(function, source),
            ast::Command::ExtendedTest(test, redirects) => {
                let outer = self.input.clone();
                self.redirects(redirects.as_ref(), source)?;
                self.input = outer;
                let span = source.span(&test.loc);
                self.extended_test(&test.expr, source, span)
            }
        }
    }

    fn compound(&mut self, compound: &CompoundCommand, source: &Source) -> Result<(), Unreadable> {
        self.node()?;
        match compound {
            CompoundCommand::BraceGroup(group) => self.list(&group.list, source),
            other => self.scope(|reader| reader.compound_inner(other, source)),
        }
    }

    fn compound_inner(&mut self, compound: &CompoundCommand, source: &Source) -> Result<(), Unreadable> {
        match compound {
            CompoundCommand::Arithmetic(command) => self.arithmetic(&command.expr.value, Place::Within(source.span(&command.loc))),
            CompoundCommand::ArithmeticForClause(command) => {
                let span = source.span(&command.loc);
                for part in [&command.initializer, &command.condition, &command.updater].into_iter().flatten() {
                    self.arithmetic(&part.value, Place::Within(span))?;
                }
                self.list(&command.body.list, source)
            }
            CompoundCommand::BraceGroup(group) => self.list(&group.list, source),
            CompoundCommand::Subshell(group) => self.list(&group.list, source),
            CompoundCommand::ForClause(command) => {
                let span = source.span(&command.loc);
                let mut values = Vec::new();
                for word in command.values.iter().flatten() {
                    values.extend(self.words(word, source, span)?);
                }
                if command.values.is_none() {
                    values.push(Word::unknown(Fields::Any, "\"$@\"", span));
                }
                let name_span = Span::new(span.start, span.end.min(span.start + 4 + command.variable_name.len()));
                for value in values {
                    self.globbed(&value, None);
                    self.assign(&command.variable_name, element(&value), name_span)?;
                }
                self.list(&command.body.list, source)
            }
            CompoundCommand::CaseClause(command) => {
                let span = source.span(&command.loc);
                self.words(&command.value, source, span)?;
                for item in &command.cases {
                    for pattern in &item.patterns {
                        self.words(pattern, source, span)?;
                    }
                    if let Some(list) = &item.cmd {
                        self.scope(|reader| reader.list(list, source))?;
                    }
                }
                Ok(())
            }
            CompoundCommand::IfClause(command) => {
                self.list(&command.condition, source)?;
                self.scope(|reader| reader.list(&command.then, source))?;
                for part in command.elses.iter().flatten() {
                    if let Some(condition) = &part.condition {
                        self.scope(|reader| reader.list(condition, source))?;
                    }
                    self.scope(|reader| reader.list(&part.body, source))?;
                }
                Ok(())
            }
            CompoundCommand::WhileClause(command) | CompoundCommand::UntilClause(command) => {
                self.list(&command.0, source)?;
                self.list(&command.1.list, source)
            }
            CompoundCommand::Coprocess(command) => {
                let name = command.name.as_ref().map_or("COPROC", |name| name.value.as_str()).to_owned();
                self.assign(&name, vec![Atom::Hidden(Hidden::Number)], source.span(&command.loc))?;
                let outer = std::mem::replace(&mut self.input, Input::Unknown);
                let result = self.command(&command.body, source);
                self.input = outer;
                result
            }
        }
    }

    fn function(&mut self, function: &ast::FunctionDefinition, source: &Source) -> Result<(), Unreadable> {
        let name = function.fname.value.clone();
        self.looked_up = true;
        self.found.functions.insert(name.clone());
        let outer = std::mem::replace(&mut self.input, Input::Unknown);
        let ast::FunctionBody(body, redirects) = &function.body;
        self.redirects(redirects.as_ref(), source)?;
        let result = self.scope(|reader| reader.compound(body, source));
        self.input = outer;
        self.defined.functions.insert(name);
        result
    }

    fn extended_test(&mut self, test: &ast::ExtendedTestExpr, source: &Source, span: Span) -> Result<(), Unreadable> {
        use ast::BinaryPredicate as B;
        use ast::ExtendedTestExpr as T;
        self.node()?;
        match test {
            T::And(left, right) | T::Or(left, right) => {
                self.extended_test(left, source, span)?;
                self.extended_test(right, source, span)
            }
            T::Not(inner) | T::Parenthesized(inner) => self.extended_test(inner, source, span),
            T::UnaryTest(predicate, word) => {
                self.test_word(word, source, span)?;
                if names_a_file(predicate) {
                    for word in self.words(word, source, span)? {
                        let object = word.shown();
                        self.effect(Deed::Names(word), object, span, None, Via::Operand);
                    }
                }
                if matches!(predicate, ast::UnaryPredicate::ShellVariableIsSetAndAssigned | ast::UnaryPredicate::ShellVariableIsSetAndNameRef) {
                    for word in self.words(word, source, span)? {
                        self.evaluated_word(&word, span)?;
                    }
                }
                Ok(())
            }
            T::BinaryTest(predicate, left, right) => {
                let arithmetic = match predicate {
                    B::ArithmeticEqualTo
                    | B::ArithmeticNotEqualTo
                    | B::ArithmeticLessThan
                    | B::ArithmeticLessThanOrEqualTo
                    | B::ArithmeticGreaterThan
                    | B::ArithmeticGreaterThanOrEqualTo => true,
                    B::FilesReferToSameDeviceAndInodeNumbers
                    | B::LeftFileIsNewerOrExistsWhenRightDoesNot
                    | B::LeftFileIsOlderOrDoesNotExistWhenRightDoes
                    | B::StringExactlyMatchesPattern
                    | B::StringDoesNotExactlyMatchPattern
                    | B::StringMatchesRegex
                    | B::StringExactlyMatchesString
                    | B::StringDoesNotExactlyMatchString
                    | B::StringContainsSubstring
                    | B::LeftSortsBeforeRight
                    | B::LeftSortsAfterRight => false,
                };
                for word in [left, right] {
                    self.test_word(word, source, span)?;
                    if arithmetic {
                        self.arithmetic(&word.value, Place::Within(span))?;
                    }
                }
                Ok(())
            }
        }
    }

    fn test_word(&mut self, word: &ast::Word, source: &Source, span: Span) -> Result<(), Unreadable> {
        // A regular expression may hold braces and brackets that are no word's.
        let at = word.loc.as_ref().map_or(span, |loc: &SourceSpan| source.span(loc));
        if self.words_of(&word.value, Place::Within(at), at).is_err() {
            self.body(&word.value, Place::Within(at), at)?;
        }
        Ok(())
    }

    fn simple(&mut self, simple: &ast::SimpleCommand, source: &Source) -> Result<(), Unreadable> {
        self.node()?;
        let outer = self.input.clone();
        let result = self.simple_inner(simple, source);
        self.input = outer;
        result
    }

    fn simple_inner(&mut self, simple: &ast::SimpleCommand, source: &Source) -> Result<(), Unreadable> {
        let mut argv = Vec::new();
        let mut assigned = Vec::new();
        let mut span: Option<Span> = None;
        let mut grow = |part: Span| span = Some(span.map_or(part, |all: Span| all.to(part)));
        let prefix = simple.prefix.iter().flat_map(|prefix| &prefix.0);
        let suffix = simple.suffix.iter().flat_map(|suffix| &suffix.0);
        let name = simple.word_or_name.as_ref();
        for item in prefix {
            match item {
                Item::IoRedirect(redirect) => self.redirect(redirect, source)?,
                Item::Word(word) => argv.extend(self.words(word, source, source.whole())?),
                Item::AssignmentWord(assignment, _) => {
                    grow(source.span(&assignment.loc));
                    assigned.push(assignment);
                }
                Item::ProcessSubstitution(_, command) => {
                    let at = source.span(&command.loc);
                    self.process_substitution(command, source)?;
                    argv.push(pipe_name(at));
                }
            }
        }
        if let Some(name) = name {
            if let Some(loc) = &name.loc {
                grow(source.span(loc));
            }
            argv.extend(self.words(name, source, source.whole())?);
        }
        let mut declared = Vec::new();
        for item in suffix {
            match item {
                Item::IoRedirect(redirect) => self.redirect(redirect, source)?,
                Item::Word(word) => {
                    if let Some(loc) = &word.loc {
                        grow(source.span(loc));
                    }
                    argv.extend(self.words(word, source, source.whole())?);
                }
                Item::AssignmentWord(assignment, word) => {
                    let at = source.span(&assignment.loc);
                    grow(at);
                    declared.push(assignment);
                    match &assignment.value {
                        ast::AssignmentValue::Scalar(_) => argv.extend(self.words_of(&word.value, Place::Within(at), at)?),
                        ast::AssignmentValue::Array(_) => argv.push(Word::unknown(Fields::One, word.value.clone(), at)),
                    }
                }
                Item::ProcessSubstitution(_, command) => {
                    let at = source.span(&command.loc);
                    grow(at);
                    self.process_substitution(command, source)?;
                    argv.push(pipe_name(at));
                }
            }
        }
        for assignment in &assigned {
            self.assignment(assignment, source)?;
        }
        let Some(span) = span else { return Ok(()) };
        if argv.is_empty() {
            return Ok(());
        }
        if super::launch::declares(&argv[0]) {
            declared.iter().try_for_each(|assignment| self.assignment(assignment, source))?;
        }
        self.launch(Launch { argv, span, functions: true, more: false })
    }

    fn assignment(&mut self, assignment: &ast::Assignment, source: &Source) -> Result<(), Unreadable> {
        let span = source.span(&assignment.loc);
        let name = match &assignment.name {
            ast::AssignmentName::VariableName(name) => name.clone(),
            ast::AssignmentName::ArrayElementName(name, index) => {
                self.subscript(name, index, span)?;
                name.clone()
            }
        };
        match &assignment.value {
            ast::AssignmentValue::Scalar(word) => {
                // The value of an assignment does not split, whatever is in it.
                let words = self.words_of(&word.value, value_place(assignment, word, source), span)?;
                let value = match <[Word; 1]>::try_from(words) {
                    Ok([word]) if word.fields != Fields::Glob => word.atoms,
                    _ if assignment.append => vec![Atom::Hidden(Hidden::Anything)],
                    // Braces and wildcards stay as they are written, and what they match comes later.
                    _ => vec![Atom::Hidden(Hidden::Anything)],
                };
                let value = if assignment.append { vec![Atom::Hidden(appended(&value))] } else { value };
                self.assign(&name, value, span)
            }
            ast::AssignmentValue::Array(elements) => {
                self.found.assign(&name, Vec::new());
                for (index, value) in elements {
                    if let Some(index) = index {
                        self.arithmetic(&index.value, Place::Within(span))?;
                    }
                    for word in self.words(value, source, span)? {
                        let value = element(&word);
                        self.assign(&name, value, span)?;
                    }
                }
                Ok(())
            }
        }
    }

    /// Records that a variable is given a value, and follows what that makes run.
    pub(super) fn assign(&mut self, name: &str, value: Vec<Atom>, span: Span) -> Result<(), Unreadable> {
        if name == "GLOBIGNORE" {
            // Setting it makes wildcards match leading dots.
            self.reading.dotglob = true;
        }
        match influence(name, &value) {
            Influence::None => {}
            Influence::Search => {
                let written = self.written(span);
                self.effect(
                    Deed::Doubt(Doubt::Variable, format!("`{name}` changes what later commands run")),
                    written,
                    span,
                    None,
                    Via::Assignment,
                );
            }
            Influence::Configuration => {
                let written = self.written(span);
                self.doubt(Doubt::Launch, written, format!("`{name}` configures git, which can make it run commands"), span, None);
            }
            Influence::Prompt => self.prompt(&value, span)?,
            Influence::Command => {
                let written = self.written(span);
                self.effect(
                    Deed::Doubt(Doubt::Delegate, format!("`{name}` names a command that others start")),
                    written,
                    span,
                    None,
                    Via::Assignment,
                );
                let word = Word { atoms: value.clone(), fields: Fields::One, span, written: self.written(span) };
                if word.known().as_deref() != Some("") {
                    self.shell_text(&word, None)?;
                }
            }
        }
        self.found.assign(name, value);
        Ok(())
    }

    fn process_substitution(&mut self, command: &ast::SubshellCommand, source: &Source) -> Result<(), Unreadable> {
        let outer = std::mem::replace(&mut self.input, Input::Unknown);
        let result = self.scope(|reader| reader.list(&command.list, source));
        self.input = outer;
        result
    }

    fn redirects(&mut self, redirects: Option<&ast::RedirectList>, source: &Source) -> Result<(), Unreadable> {
        redirects.iter().flat_map(|list| &list.0).try_for_each(|redirect| self.redirect(redirect, source))
    }

    fn redirect(&mut self, redirect: &IoRedirect, source: &Source) -> Result<(), Unreadable> {
        self.node()?;
        match redirect {
            IoRedirect::File(descriptor, kind, target) => self.file_redirect(*descriptor, kind, target, source),
            IoRedirect::HereDocument(descriptor, document) => {
                let span = document.doc.loc.as_ref().map_or(source.whole(), |loc| source.span(loc));
                let atoms = if document.requires_expansion {
                    self.body(&document.doc.value, Place::Within(span), span)?
                } else {
                    vec![Atom::Text(document.doc.value.clone())]
                };
                self.feed(*descriptor, atoms, span);
                Ok(())
            }
            IoRedirect::HereString(descriptor, word) => {
                let span = word.loc.as_ref().map_or(source.whole(), |loc| source.span(loc));
                let words = self.words(word, source, span)?;
                let atoms = match <[Word; 1]>::try_from(words) {
                    Ok([word]) => word.atoms,
                    Err(_) => vec![Atom::Hidden(Hidden::Anything)],
                };
                self.feed(*descriptor, atoms, span);
                Ok(())
            }
            IoRedirect::OutputAndError(word, _) => {
                for word in self.words(word, source, source.whole())? {
                    self.opened(word, true);
                }
                Ok(())
            }
        }
    }

    fn feed(&mut self, descriptor: Option<i32>, atoms: Vec<Atom>, span: Span) {
        if descriptor.unwrap_or(0) == 0 {
            let word = Word { atoms, fields: Fields::One, span, written: self.written(span) };
            self.input = Input::Text(vec![word]);
        }
    }

    fn file_redirect(
        &mut self,
        descriptor: Option<i32>,
        kind: &IoFileRedirectKind,
        target: &IoFileRedirectTarget,
        source: &Source,
    ) -> Result<(), Unreadable> {
        use IoFileRedirectKind as K;
        let (writes, reads_input) = match kind {
            K::Read => (false, descriptor.unwrap_or(0) == 0),
            K::ReadAndWrite => (true, descriptor.unwrap_or(0) == 0),
            K::DuplicateInput => (false, descriptor.unwrap_or(0) == 0),
            K::Write | K::Append | K::Clobber | K::DuplicateOutput => (true, false),
        };
        match target {
            IoFileRedirectTarget::Filename(word) => {
                for word in self.words(word, source, source.whole())? {
                    if reads_input {
                        self.input = Input::File(word.clone());
                    }
                    self.opened(word, writes);
                }
            }
            IoFileRedirectTarget::Fd(_) => {
                if reads_input {
                    self.input = Input::Unknown;
                }
            }
            IoFileRedirectTarget::ProcessSubstitution(_, command) => {
                self.process_substitution(command, source)?;
                if reads_input {
                    self.input = Input::Unknown;
                }
            }
            IoFileRedirectTarget::Duplicate(word) => {
                for word in self.words(word, source, source.whole())? {
                    let descriptor = word.known().is_some_and(|text| {
                        let text = text.strip_suffix('-').unwrap_or(&text);
                        text.bytes().all(|byte| byte.is_ascii_digit())
                    }) || matches!(word.atoms.as_slice(), [Atom::Hidden(Hidden::Number)]);
                    if reads_input {
                        self.input = Input::Unknown;
                    }
                    if !descriptor {
                        self.opened(word, writes);
                    }
                }
            }
        }
        Ok(())
    }

    /// A file that a redirection opens.
    fn opened(&mut self, word: Word, writes: bool) {
        let (object, span) = (word.shown(), word.span);
        if let Some(path) = word.known()
            && (path.starts_with("/dev/tcp/") || path.starts_with("/dev/udp/"))
        {
            self.effect(Deed::Network(path.to_string()), object, span, None, Via::Redirection);
            return;
        }
        let deed = if writes { Deed::Writes(word) } else { Deed::Reads(word) };
        self.effect(deed, object, span, None, Via::Redirection);
    }

    /// Records that relative paths may start in another directory from here on.
    pub(super) fn base(&mut self, base: Base) {
        if self.reading.bases.contains(&base) {
            return;
        }
        let full = self.reading.bases.len() >= 12;
        self.reading.bases.push(if full { Base::Unknown } else { base });
        self.reading.bases.dedup();
    }

    /// Wildcards name files whatever is done with the names.
    pub(super) fn globbed(&mut self, word: &Word, by: Option<usize>) {
        if word.fields == Fields::Glob {
            self.effect(Deed::Names(word.clone()), word.shown(), word.span, by, Via::Operand);
        }
    }

    /// What the command text says at this place.
    pub(super) fn written(&self, span: Span) -> String {
        self.whole.get(span.start..span.end).unwrap_or_default().to_owned()
    }
}

/// What a process substitution becomes: the name of a pipe.
fn pipe_name(span: Span) -> Word {
    Word { written: "<(…)".to_owned(), ..Word::text("/dev/fd/63", span) }
}

/// Whether a test looks at a file by its name.
fn names_a_file(predicate: &ast::UnaryPredicate) -> bool {
    use ast::UnaryPredicate as U;
    match predicate {
        U::FdIsOpenTerminal
        | U::ShellOptionEnabled
        | U::ShellVariableIsSetAndAssigned
        | U::ShellVariableIsSetAndNameRef
        | U::StringHasZeroLength
        | U::StringHasNonZeroLength => false,
        U::FileExists
        | U::FileExistsAndIsBlockSpecialFile
        | U::FileExistsAndIsCharSpecialFile
        | U::FileExistsAndIsDir
        | U::FileExistsAndIsRegularFile
        | U::FileExistsAndIsSetgid
        | U::FileExistsAndIsSymlink
        | U::FileExistsAndHasStickyBit
        | U::FileExistsAndIsFifo
        | U::FileExistsAndIsReadable
        | U::FileExistsAndIsNotZeroLength
        | U::FileExistsAndIsSetuid
        | U::FileExistsAndIsWritable
        | U::FileExistsAndIsExecutable
        | U::FileExistsAndOwnedByEffectiveGroupId
        | U::FileExistsAndModifiedSinceLastRead
        | U::FileExistsAndOwnedByEffectiveUserId
        | U::FileExistsAndIsSocket => true,
    }
}

/// One element of a list of words, as the value of a variable.
fn element(word: &Word) -> Vec<Atom> {
    match word.fields {
        Fields::One => word.atoms.clone(),
        // File names: what is known of them stays known.
        Fields::Glob => word.atoms.clone(),
        Fields::Any => match word.atoms.as_slice() {
            [Atom::Hidden(Hidden::Number | Hidden::Name) | Atom::OneOf(_)] => word.atoms.clone(),
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

/// Where the value of an assignment starts.
fn value_place(assignment: &ast::Assignment, word: &ast::Word, source: &Source) -> Place {
    match &word.loc {
        Some(loc) => source.place.inner(source.range(loc).0),
        None => Place::Within(source.span(&assignment.loc)),
    }
}

/// Where the parser gave up.
fn failure(error: &brush_parser::ParseError, source: &Source) -> Span {
    use brush_parser::ParseError;
    let at = match error {
        ParseError::ParsingNear(position) => Some(position),
        ParseError::Tokenizing { position, .. } => position.as_ref(),
        ParseError::ParsingAtEndOfInput => None,
    };
    at.map_or(source.whole(), |position| source.character(position.index))
}
