//! Lists, pipelines and commands.

use super::Result;
use super::lexer::Parser;
use super::tree::{
    AndOrList, Assignment, AssignmentValue, CaseItem, Command, CompoundCommand, CompoundList, FunctionDefinition, Item,
    Pipeline, Range, Redirect, RedirectKind, Separator, SimpleCommand, Target, Word,
};

/// The least number that bash gives to a descriptor whose number a variable holds.
const FIRST_OF_VARIABLES: u32 = 10;

/// Words that end a list when they stand where a command could start.
const ENDING: &[&str] = &["then", "do", "done", "fi", "esac", "elif", "else", "}", "in", "]]"];

impl Parser<'_> {
    /// A list of commands, up to what cannot be one; with `required`, of at least one.
    pub(super) fn list(&mut self, required: bool) -> Result<CompoundList> {
        let mut list = CompoundList::default();
        loop {
            self.newlines()?;
            if self.list_ends() {
                break;
            }
            let and_or = self.and_or()?;
            self.blanks();
            let separator = if self.starts("&") && !self.starts("&&") {
                self.at += 1;
                Separator::Async
            } else if self.starts(";") && !self.starts(";;") && !self.starts(";&") {
                self.at += 1;
                Separator::Sequence
            } else if self.newline()? {
                Separator::Sequence
            } else {
                list.0.push((and_or, Separator::Sequence));
                break;
            };
            list.0.push((and_or, separator));
        }
        // `$()` and `<()` may be empty, other groups may not.
        if required && list.0.is_empty() && self.peek() != Some(b')') {
            self.error()
        } else {
            Ok(list)
        }
    }

    /// A list that must hold a command.
    fn full_list(&mut self) -> Result<CompoundList> {
        let list = self.list(true)?;
        if list.0.is_empty() { self.error() } else { Ok(list) }
    }

    fn list_ends(&self) -> bool {
        match self.peek() {
            None | Some(b')') => true,
            Some(b';') => self.starts(";;") || self.starts(";&"),
            Some(_) => ENDING.contains(&self.keyword()),
        }
    }

    fn and_or(&mut self) -> Result<AndOrList> {
        let first = self.pipeline()?;
        let mut additional = Vec::new();
        let mut all_and = true;
        loop {
            self.blanks();
            if !self.take("&&") {
                if !self.take("||") {
                    return Ok(AndOrList {
                        first,
                        additional,
                        all_and,
                    });
                }
                all_and = false;
            }
            self.newlines()?;
            additional.push(self.pipeline()?);
        }
    }

    fn pipeline(&mut self) -> Result<Pipeline> {
        let mut marked = false;
        let mut pattern = None;
        loop {
            self.blanks();
            let start = self.at;
            if self.reserved("!") {
                marked = true;
                if self.peek() == Some(b'(') {
                    pattern = Some(Range {
                        start,
                        end: self.at + 1,
                    });
                }
            } else if self.reserved("time") {
                marked = true;
                self.blanks();
                if self.reserved("-p") {
                    self.blanks();
                }
                self.reserved("--");
            } else {
                break;
            }
        }
        // `!` and `time` may stand alone.
        if marked && matches!(self.peek(), None | Some(b'\n' | b';')) {
            return Ok(Pipeline {
                seq: Vec::new(),
                marked,
                pattern,
            });
        }
        let mut seq = vec![self.command()?];
        loop {
            self.blanks();
            let stands = self.at;
            if self.starts("||") || !self.take("|") {
                return Ok(Pipeline { seq, marked, pattern });
            }
            if self.take("&") {
                self.only_bash(stands, "|&");
            }
            self.newlines()?;
            seq.push(self.command()?);
        }
    }

    pub(super) fn command(&mut self) -> Result<Command> {
        self.deeper(Self::command_here)
    }

    fn command_here(&mut self) -> Result<Command> {
        self.blanks();
        let keyword = self.keyword();
        if keyword == "function" {
            self.only_bash(self.at, "function");
            self.at += keyword.len();
            return self.function();
        }
        // `!` belongs to a whole pipeline, not to a later stage of it.
        if ENDING.contains(&keyword) || keyword == "!" {
            return self.error();
        }
        match self.compound(keyword)? {
            Some(compound) => {
                let mut redirects = Vec::new();
                loop {
                    self.blanks();
                    match self.redirect()? {
                        Some(redirect) => redirects.push(redirect),
                        None => return Ok(Command::Compound(compound, redirects)),
                    }
                }
            }
            None => self.simple(),
        }
    }

    /// A compound command, if one starts here.
    fn compound(&mut self, keyword: &str) -> Result<Option<CompoundCommand>> {
        let start = self.at;
        let range = |parser: &Self| Range { start, end: parser.at };
        let mut take = || self.at += keyword.len();
        Ok(Some(match keyword {
            "{" => {
                take();
                let list = self.full_list()?;
                self.expect("}")?;
                CompoundCommand::BraceGroup(list)
            }
            "if" => {
                take();
                let condition = self.full_list()?;
                self.expect("then")?;
                let then = self.full_list()?;
                let mut elses = Vec::new();
                loop {
                    self.blanks();
                    if self.reserved("elif") {
                        let condition = self.full_list()?;
                        self.expect("then")?;
                        elses.push((Some(condition), self.full_list()?));
                    } else {
                        if self.reserved("else") {
                            elses.push((None, self.full_list()?));
                        }
                        self.expect("fi")?;
                        break;
                    }
                }
                CompoundCommand::If { condition, then, elses }
            }
            "while" | "until" => {
                let until = keyword == "until";
                take();
                let condition = self.full_list()?;
                CompoundCommand::While {
                    condition,
                    until,
                    body: self.do_group(false)?,
                }
            }
            "for" | "select" => {
                take();
                self.blanks();
                if keyword == "for" && self.starts("((") {
                    self.only_bash(self.at, "((…))");
                    let inner = self.at + 2;
                    if !self.arithmetic_ahead(2)? {
                        return self.error();
                    }
                    let range = Range {
                        start: inner,
                        end: self.at - 2,
                    };
                    let expressions = Word::new(&self.text[inner..self.at - 2], range);
                    if expressions.value.matches(';').count() != 2 {
                        return self.error();
                    }
                    self.blanks();
                    self.take(";");
                    CompoundCommand::ArithmeticFor {
                        expressions,
                        body: self.do_group(true)?,
                    }
                } else {
                    let variable = self.word()?.value;
                    if !is_name(&variable) {
                        return self.error();
                    }
                    let values = self.for_words()?;
                    CompoundCommand::For {
                        variable,
                        values,
                        body: self.do_group(true)?,
                        range: range(self),
                    }
                }
            }
            "case" => {
                take();
                self.case()?
            }
            "[[" => {
                take();
                let test = self.condition()?;
                // A command of that name, to a plain `sh`, which ends where any other command does.
                if self.text[start..self.at].contains(['<', '>', '(', ')', '|', '&', ';', '#', '\n']) {
                    self.only_bash(start, "[[…]]");
                }
                CompoundCommand::Test {
                    test,
                    range: range(self),
                }
            }
            "coproc" => {
                take();
                self.coprocess(start)?
            }
            _ if self.peek() == Some(b'(') => {
                if self.starts("((") && self.arithmetic_ahead(2)? {
                    self.only_bash(start, "((…))");
                    let inner = Range {
                        start: start + 2,
                        end: self.at - 2,
                    };
                    let expression = Word::new(&self.text[inner.start..inner.end], inner);
                    CompoundCommand::Arithmetic(expression)
                } else {
                    self.at += 1;
                    if self.is_continued_to('(') {
                        return self.error();
                    }
                    let list = self.full_list()?;
                    self.blanks();
                    if !self.take(")") {
                        return self.error();
                    }
                    CompoundCommand::Subshell(list)
                }
            }
            _ => return Ok(None),
        }))
    }

    /// The words of `for` and `select`, with what separates them from the body.
    fn for_words(&mut self) -> Result<Option<Vec<Word>>> {
        self.newlines()?;
        if !self.reserved("in") {
            self.blanks();
            if self.take(";") {
                self.newlines()?;
            }
            return Ok(None);
        }
        let mut words = Vec::new();
        loop {
            self.blanks();
            if self.take(";") || self.newline()? {
                return Ok(Some(words));
            }
            words.push(self.word()?);
        }
    }

    fn do_group(&mut self, braces: bool) -> Result<CompoundList> {
        self.newlines()?;
        if braces && self.reserved("{") {
            let list = self.full_list()?;
            self.expect("}")?;
            return Ok(list);
        }
        self.expect("do")?;
        let list = self.full_list()?;
        self.expect("done")?;
        Ok(list)
    }

    fn case(&mut self) -> Result<CompoundCommand> {
        self.blanks();
        let value = self.word()?;
        self.newlines()?;
        self.expect("in")?;
        let mut items = Vec::new();
        loop {
            self.newlines()?;
            if self.reserved("esac") {
                return Ok(CompoundCommand::Case { value, items });
            }
            self.take("(");
            let mut patterns = Vec::new();
            loop {
                self.blanks();
                patterns.push(self.word()?);
                self.blanks();
                if self.take(")") {
                    break;
                }
                if self.starts("||") || !self.take("|") {
                    return self.error();
                }
            }
            let list = self.list(false)?;
            items.push(CaseItem { patterns, list });
            self.newlines()?;
            if !(self.take(";;&") || self.take(";;") || self.take(";&")) {
                self.expect("esac")?;
                return Ok(CompoundCommand::Case { value, items });
            }
        }
    }

    fn coprocess(&mut self, start: usize) -> Result<CompoundCommand> {
        self.blanks();
        let before = self.at;
        let keyword = self.plain_word(usize::MAX);
        let mut name = None;
        if is_name(keyword) && !is_compound(keyword) {
            // A name belongs to a compound command only.
            self.at += keyword.len();
            self.blanks();
            if is_compound(self.keyword()) || self.peek() == Some(b'(') && self.ahead(1) != Some(b')') {
                name = Some(keyword.to_owned());
            } else {
                self.at = before;
            }
        }
        let body = match self.command()? {
            Command::Function(_) | Command::Compound(CompoundCommand::Coprocess { .. }, _) => return self.error(),
            body => Box::new(body),
        };
        Ok(CompoundCommand::Coprocess {
            name,
            body,
            range: Range { start, end: self.at },
        })
    }

    /// `function name [()] body`, from behind the word `function`.
    fn function(&mut self) -> Result<Command> {
        self.blanks();
        let name = self.word()?.value;
        if name.contains('(') {
            // Without `extglob`, the parenthesis of `f@(…)` begins the body.
            return self.error();
        }
        self.blanks();
        if self.take("(") {
            self.blanks();
            if !self.take(")") {
                return self.error();
            }
        }
        self.function_body(name)
    }

    fn function_body(&mut self, name: String) -> Result<Command> {
        self.newlines()?;
        let keyword = self.keyword();
        if keyword == "coproc" {
            return self.error();
        }
        let start = self.at;
        let Some(body) = self.compound(keyword)? else {
            return self.error();
        };
        if name.contains(['$', '`', '\'', '"', '\\']) {
            return self.error();
        }
        let mut redirects = Vec::new();
        loop {
            self.blanks();
            match self.redirect()? {
                Some(redirect) => redirects.push(redirect),
                None => {
                    return Ok(Command::Function(FunctionDefinition {
                        name,
                        body: Box::new(body),
                        redirects,
                        range: Range { start, end: self.at },
                    }));
                }
            }
        }
    }

    fn simple(&mut self) -> Result<Command> {
        let mut command = SimpleCommand::default();
        let mut redirected = false;
        let start = self.at;
        loop {
            self.blanks();
            if let Some(redirect) = self.redirect()? {
                redirected |= command.name.is_some();
                command.push(Item::Redirect(redirect));
                continue;
            }
            if self.starts("<(") || self.starts(">(") {
                command.push(self.process_substitution()?);
                continue;
            }
            match self.peek() {
                None | Some(b'\n' | b';' | b'&' | b'|' | b')') => break,
                Some(b'(') => {
                    // Only right behind a first plain word: the definition of a function.
                    let Some(name) = command
                        .name
                        .take()
                        .filter(|_| command.prefix.is_empty() && command.suffix.is_empty())
                    else {
                        return self.error();
                    };
                    self.at += 1;
                    self.blanks();
                    if !self.take(")") {
                        return self.error();
                    }
                    return self.function_body(name.value);
                }
                Some(_) => {}
            }
            let declares = command.name.as_ref().is_some_and(|name| {
                matches!(
                    name.value.as_str(),
                    "declare" | "typeset" | "local" | "export" | "readonly" | "eval" | "alias"
                )
            });
            if (command.name.is_none() || (declares && !redirected))
                && let Some(assignment) = self.assignment()?
            {
                command.push(Item::Assignment(assignment));
                continue;
            }
            let word = self.word()?;
            if command.name.is_none() {
                command.name = Some(word)
            } else {
                command.suffix.push(Item::Word(word))
            }
        }
        if self.at == start || (command.name.is_none() && command.prefix.is_empty()) {
            return self.error();
        }
        Ok(Command::Simple(command))
    }

    fn process_substitution(&mut self) -> Result<Item> {
        let start = self.at;
        self.only_bash(start, "<(…)");
        self.at += 2;
        let list = self.substitution()?;
        let range = Range { start, end: self.at };
        // Text right behind it would be a part of the same word.
        if !matches!(
            self.peek(),
            None | Some(b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b')' | b'<' | b'>')
        ) {
            return self.error();
        }
        Ok(Item::ProcessSubstitution(list, range))
    }

    /// `name=value`, `name+=value`, `name[subscript]=value`, `name=(…)`; nothing is taken otherwise.
    fn assignment(&mut self) -> Result<Option<Assignment>> {
        let start = self.at;
        let rest = &self.text[self.at..];
        let length = name_length(rest);
        let name = &rest[..length];
        if !is_name(name) {
            return Ok(None);
        }
        self.at += length;
        let mut subscript = None;
        if self.peek() == Some(b'[') {
            let from = self.at + 1;
            self.at += 1;
            // bash looks for the closing bracket here whatever follows it.
            self.bracketed(b'[', b']')?;
            subscript = Some(self.text[from..self.at - 1].to_owned());
        }
        let append = self.take("+=");
        if !append && !self.take("=") {
            self.at = start;
            return Ok(None);
        }
        let value = if self.peek() == Some(b'(') && subscript.is_none() {
            self.at += 1;
            AssignmentValue::Array(self.deeper(Self::elements)?)
        } else {
            let from = self.at;
            self.word_end()?;
            AssignmentValue::Scalar(self.word_from(from))
        };
        Ok(Some(Assignment {
            name: name.to_owned(),
            subscript,
            value,
            append,
            word: self.word_from(start),
        }))
    }

    /// The elements of an array, up to its closing bracket.
    fn elements(&mut self) -> Result<Vec<(Option<String>, Word)>> {
        let mut elements = Vec::new();
        loop {
            self.newlines()?;
            if self.take(")") {
                return Ok(elements);
            }
            let start = self.at;
            let mut subscript = None;
            if self.peek() == Some(b'[') {
                self.at += 1;
                self.bracketed(b'[', b']')?;
                if self.starts("=") || self.starts("+=") {
                    subscript = Some(self.text[start + 1..self.at - 1].to_owned());
                    if !self.take("+=") {
                        self.take("=");
                    }
                } else {
                    self.at = start;
                }
            }
            let from = self.at;
            if subscript.is_some() {
                self.word_end()?;
            } else {
                self.word()?;
            }
            elements.push((subscript, self.word_from(from)));
        }
    }

    /// Whether a number stands here that belongs to a redirection right behind it.
    fn number_of_redirection(&self) -> bool {
        let digits = self.text[self.at..].bytes().take_while(u8::is_ascii_digit).count();
        digits > 0 && matches!(self.ahead(digits), Some(b'<' | b'>'))
    }

    /// `{name}` or `{name[subscript]}` right before a redirection; nothing is taken otherwise.
    fn variable_of_redirection(&mut self) -> Option<(String, Option<String>)> {
        let start = self.at;
        self.at += 1;
        let rest = &self.text[self.at..];
        let length = name_length(rest);
        let name = &rest[..length];
        self.at += length;
        let mut subscript = None;
        let mut closed = is_name(name);
        if closed && self.take("[") {
            let from = self.at;
            closed = self.bracketed(b'[', b']').is_ok();
            subscript = closed.then(|| self.text[from..self.at - 1].to_owned());
            // Unquoted, these end the word.
            let ends = |text: &String| {
                text.contains([' ', '\t', '\n', '(', ')', '|', '&', ';', '<', '>'])
                    && !text.contains(['"', '\'', '\\', '$', '`'])
            };
            closed &= !subscript.as_ref().is_some_and(ends);
        }
        if closed && self.take("}") && matches!(self.peek(), Some(b'<' | b'>')) {
            return Some((name.to_owned(), subscript));
        }
        self.at = start;
        None
    }

    /// A redirection, if one starts here.
    fn redirect(&mut self) -> Result<Option<Redirect>> {
        if !matches!(self.peek(), Some(b'<' | b'>' | b'&' | b'{' | b'0'..=b'9')) {
            return Ok(None);
        }
        let start = self.at;
        let digits = self.text[self.at..].bytes().take_while(u8::is_ascii_digit).count();
        let mut descriptor = None;
        let mut variable = None;
        if digits > 0 && matches!(self.ahead(digits), Some(b'<' | b'>')) {
            let Ok(number) = self.text[start..start + digits].parse() else {
                return self.error();
            };
            if digits > 1 {
                self.only_bash(start, "a descriptor of two digits");
            }
            self.at += digits;
            descriptor = Some(number);
        } else if self.peek() == Some(b'{') {
            variable = self.variable_of_redirection();
            if variable.is_some() {
                self.only_bash(start, "{name}> or {name}<");
                descriptor = Some(FIRST_OF_VARIABLES);
            }
        }
        if self.starts("<(") || self.starts(">(") {
            return if descriptor.is_some() { self.error() } else { Ok(None) };
        }
        const OPERATORS: &[(&str, RedirectKind)] = &[
            ("&>>", RedirectKind::Write),
            ("&>", RedirectKind::Write),
            ("<<<", RedirectKind::HereString),
            ("<<-", RedirectKind::HereDocument),
            ("<<", RedirectKind::HereDocument),
            ("<&", RedirectKind::DuplicateInput),
            ("<>", RedirectKind::ReadAndWrite),
            ("<", RedirectKind::Read),
            (">>", RedirectKind::Write),
            (">&", RedirectKind::DuplicateOutput),
            (">|", RedirectKind::Write),
            (">", RedirectKind::Write),
        ];
        let Some((operator, kind)) = OPERATORS.iter().find(|(operator, _)| self.starts(operator)) else {
            return Ok(None);
        };
        if operator.starts_with('&') && descriptor.is_some() {
            return self.error();
        }
        if operator.starts_with('&') {
            self.only_bash(self.at, "&>");
        }
        self.at += operator.len();
        self.blanks();
        let target = if *kind == RedirectKind::HereDocument && !self.number_of_redirection() {
            let (number, expands) = self.announce(*operator == "<<-")?;
            Target::Document { number, expands }
        } else {
            if self.number_of_redirection() {
                // The number belongs to the next redirection, and this one has no target.
                return self.error();
            }
            if self.starts("<(") || self.starts(">(") {
                match self.process_substitution()? {
                    Item::ProcessSubstitution(list, _) => Target::ProcessSubstitution(list),
                    Item::Redirect(_) | Item::Word(_) | Item::Assignment(_) => return self.error(),
                }
            } else {
                Target::Word(self.word()?)
            }
        };
        Ok(Some(Redirect {
            descriptor,
            variable,
            kind: *kind,
            target,
        }))
    }
}

/// How many bytes at the beginning of a text can be part of a variable's name.
pub(super) fn name_length(text: &str) -> usize {
    let mut bytes = text.bytes();
    bytes
        .position(|byte| !byte.is_ascii_alphanumeric() && byte != b'_')
        .unwrap_or(text.len())
}

/// Whether a word is a variable's name.
pub(crate) fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn is_compound(keyword: &str) -> bool {
    matches!(
        keyword,
        "{" | "if" | "while" | "until" | "for" | "select" | "case" | "[["
    )
}
