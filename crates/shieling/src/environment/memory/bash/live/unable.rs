//! What would read the text's own input and get another one: this is looked for before. A function that is
//! called, and a text that is made as the text runs, are not looked into.

use bashkit::parser::{
    Command, CommandList, CompoundCommand, ListOperator, Redirect, RedirectKind, SimpleCommand, Word, WordPart,
};

use super::{TAKERS, wants};
use crate::environment::memory::bash::parsed;

/// Where the input of a command comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fed {
    /// From the text's own.
    ByText,
    /// As a job in the background: bash gives it none.
    ByNothing,
    /// From a pipe, a file or a here-document.
    Otherwise,
}

/// Why a text cannot run, if it cannot.
pub(in crate::environment::memory::bash) fn first(text: &str) -> Option<String> {
    // What cannot be read is told by whoever runs it.
    let script = parsed(text).ok()?;
    all(&script.commands, Fed::ByText)
}

fn all(commands: &[Command], fed: Fed) -> Option<String> {
    commands.iter().find_map(|command| one(command, fed))
}

fn one(command: &Command, fed: Fed) -> Option<String> {
    match command {
        Command::Simple(simple) => plain(simple, fed.with(&simple.redirects)),
        Command::Pipeline(pipeline) => {
            let (head, tail) = pipeline.commands.split_first()?;
            let piped = || tail.iter().find_map(|command| one(command, Fed::Otherwise));
            one(head, fed).or_else(piped)
        }
        Command::List(list) => listed(list, fed),
        Command::Compound(compound, redirects) => compounded(compound, fed.with(redirects)),
        Command::Function(_) => None,
    }
}

impl Fed {
    fn with(self, redirects: &[Redirect]) -> Self {
        let input = |redirect: &Redirect| {
            let into = matches!(
                redirect.kind,
                RedirectKind::Input
                    | RedirectKind::HereDoc
                    | RedirectKind::HereDocStrip
                    | RedirectKind::HereString
                    | RedirectKind::DupInput
                    | RedirectKind::ReadWrite
            );
            into && redirect.fd.unwrap_or(0) == 0
        };
        if redirects.iter().any(input) {
            Self::Otherwise
        } else {
            self
        }
    }
}

/// The parts of a list: those before `&` are jobs in the background.
fn listed(list: &CommandList, fed: Fed) -> Option<String> {
    let mut chain = vec![&*list.first];
    let within = |chain: &[&Command], fed| chain.iter().find_map(|command| one(command, fed));
    for (operator, command) in &list.rest {
        let found = match operator {
            ListOperator::And | ListOperator::Or => None,
            ListOperator::Semicolon => within(&std::mem::take(&mut chain), fed),
            ListOperator::Background => {
                let fed = if fed == Fed::ByText { Fed::ByNothing } else { fed };
                within(&std::mem::take(&mut chain), fed)
            }
        };
        if found.is_some() {
            return found;
        }
        chain.push(command);
    }
    within(&chain, fed)
}

fn compounded(compound: &CompoundCommand, fed: Fed) -> Option<String> {
    match compound {
        CompoundCommand::If(this) => {
            let elifs = || {
                this.elif_branches
                    .iter()
                    .find_map(|(on, then)| all(on, fed).or_else(|| all(then, fed)))
            };
            all(&this.condition, fed)
                .or_else(|| all(&this.then_branch, fed))
                .or_else(elifs)
                .or_else(|| this.else_branch.as_ref().and_then(|commands| all(commands, fed)))
        }
        CompoundCommand::For(this) => all(&this.body, fed),
        CompoundCommand::ArithmeticFor(this) => all(&this.body, fed),
        CompoundCommand::While(this) => all(&this.condition, fed).or_else(|| all(&this.body, fed)),
        CompoundCommand::Until(this) => all(&this.condition, fed).or_else(|| all(&this.body, fed)),
        CompoundCommand::Case(this) => this.cases.iter().find_map(|case| all(&case.commands, fed)),
        CompoundCommand::Select(this) if fed != Fed::ByText => all(&this.body, fed),
        CompoundCommand::Select(_) => Some("`select` cannot read what arrives at the text; use `read`".to_owned()),
        CompoundCommand::Subshell(commands) | CompoundCommand::BraceGroup(commands) => all(commands, fed),
        CompoundCommand::Time(this) => this.command.as_deref().and_then(|command| one(command, fed)),
        // What is behind `coproc` has a pipe.
        CompoundCommand::Arithmetic(_) | CompoundCommand::Conditional(_) | CompoundCommand::Coproc(_) => None,
    }
}

fn plain(simple: &SimpleCommand, fed: Fed) -> Option<String> {
    let name = literal(&simple.name)?;
    // What is only known as it runs is a word that stands for no option.
    let args: Vec<String> = simple
        .args
        .iter()
        .map(|arg| literal(arg).unwrap_or("$").to_owned())
        .collect();
    match fed {
        Fed::Otherwise => None,
        Fed::ByText => (matches!(name, "bash" | "sh") && reads_commands(&args)).then(|| {
            format!("`{name}` cannot read its commands from what arrives at the text, unless it is all of the text")
        }),
        Fed::ByNothing => (TAKERS.contains(&name) || wants::reads(name, &args))
            .then(|| format!("`{name}` in the background would take what arrives at the text; give it `< /dev/null`")),
    }
}

/// Whether a shell with these arguments reads its commands from its input.
pub(in crate::environment::memory::bash) fn reads_commands(args: &[String]) -> bool {
    let told = |arg: &String| matches!(arg.as_str(), "--version" | "--help" | "$");
    let commands = |arg: &String| arg.starts_with('-') && !arg.starts_with("--") && arg.contains('c');
    !args.iter().any(|arg| told(arg) || commands(arg)) && args.iter().all(|arg| arg.starts_with('-'))
}

/// A word that is known before.
pub(in crate::environment::memory::bash) fn literal(word: &Word) -> Option<&str> {
    match word.parts.as_slice() {
        [WordPart::Literal(text)] => Some(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::first;

    #[test]
    fn what_would_get_another_input_is_found_and_nothing_else_is() {
        let found = [
            "select x in a b; do echo $x; done",
            "echo; if true; then sh; fi",
            "bash -s; true",
            "cat & wait",
            "true && grep x & read y",
            "{ read x; } &",
            "while read l; do echo $l; done & wait",
            "sleep 1 & cat | sort &",
        ];
        for text in found {
            assert!(first(text).is_some(), "{text}");
        }
        let not = [
            "select x in a b; do echo $x; done < f",
            "echo 'echo a' | bash; bash < f; bash <<< 'echo a'; bash -c 'cat'; sh x.sh; bash --version; bash $f",
            "cat < /dev/null & wait",
            "cat f & grep x f & grep x \"$f\" & read x < f & wait",
            "echo a | cat & wait",
            "while read l; do echo $l; done < f & wait",
            "sleep 1 & cat",
            "make & read x",
            "f() { cat; }; read x; cat; if",
        ];
        for text in not {
            assert_eq!(first(text), None, "{text}");
        }
    }
}
