//! Plain texts: pipes and lists of programs with literal arguments, whose only effects are on files.
//!
//! A bash that has run only such texts is equivalent to a new one for the next of them, and is kept, since creating
//! one takes longer than running a short text. A text that could tell the difference (`$SECONDS` counts from the
//! creation of a bash, `hash` lists earlier calls, `test -v` sees `PIPESTATUS`) is not plain, and gets a new bash.

use std::collections::BTreeMap;
use std::path::Path;

use bashkit::parser::{Command, ListOperator, Redirect, RedirectKind, SimpleCommand, Word, WordPart};

use super::engine::{BashConfig, Engine, PlainUse};
use super::parsing::{is_deep, parsed};
use super::precheck::literal;
use super::run::Ran;
use super::{braces, programs};
use shieling::process::MainEnd;

/// The number of texts after which a bash is replaced, to bound what it accumulates, such as a history of 1 MiB.
const TEXTS: u32 = 1_000;

/// With less memory, the names that a bash remembers would matter.
const LEAST: u64 = 16 << 20;

/// The longest plain text, in bytes. Parsing a longer one twice takes as long as creating a bash.
const LONGEST: usize = 4 << 10;

/// Substrings that no plain text contains, as a quick check.
const NEVER: [&str; 4] = ["`", "$(", "${", "$'"];

/// Returns whether a text is plain, given the available programs.
fn is_plain(text: &str, there: impl Fn(&str) -> bool) -> bool {
    let may_be = text.len() <= LONGEST && !NEVER.iter().any(|sign| text.contains(sign));
    may_be
        && braces::refusal(text).is_none()
        && !is_deep(text)
        && parsed(text).is_ok_and(|script| script.commands.iter().all(|command| is_plain_command(command, &there)))
}

fn is_plain_command(command: &Command, there: &impl Fn(&str) -> bool) -> bool {
    match command {
        Command::Simple(simple) => is_plain_call(simple, there),
        Command::Pipeline(pipeline) => pipeline.commands.iter().all(|command| is_plain_command(command, there)),
        Command::List(list) => {
            let waited_for = list
                .rest
                .iter()
                .all(|(operator, _)| *operator != ListOperator::Background);
            let mut commands = std::iter::once(&*list.first).chain(list.rest.iter().map(|(_, command)| command));
            waited_for && commands.all(|command| is_plain_command(command, there))
        }
        Command::Compound(..) | Command::Function(_) => false,
    }
}

fn is_plain_call(call: &SimpleCommand, there: &impl Fn(&str) -> bool) -> bool {
    literal(&call.name).is_some_and(|name| programs::is_plain(name) && there(name))
        && call.assignments.is_empty()
        && call.args.iter().all(is_written_out)
        && call.redirects.iter().all(is_plain_redirect)
}

fn is_written_out(word: &Word) -> bool {
    word.parts.iter().all(|part| matches!(part, WordPart::Literal(_)))
}

// Streams other than the three standard ones could be kept, or swapped (see [`super::ahead`]).
fn is_plain_redirect(redirect: &Redirect) -> bool {
    let usual = redirect.fd_var.is_none() && redirect.fd.is_none_or(|fd| (0..=2).contains(&fd));
    usual
        && match redirect.kind {
            RedirectKind::Output
            | RedirectKind::Clobber
            | RedirectKind::Append
            | RedirectKind::OutputBoth
            | RedirectKind::Input
            | RedirectKind::HereDoc
            | RedirectKind::HereDocStrip
            | RedirectKind::HereString => is_written_out(&redirect.target),
            RedirectKind::DupOutput => matches!(literal(&redirect.target), Some("1" | "2")),
            RedirectKind::DupInput | RedirectKind::ReadWrite => false,
        }
}

impl BashConfig {
    /// Returns a bash for one text without input, in this directory and with these variables.
    pub(crate) fn bash_for(&self, text: &str, cwd: &Path, variables: &BTreeMap<String, String>) -> Engine {
        // An unknown command is looked up in the files, and may be a script.
        let there = |name: &str| self.programs.contains_key(name) || programs::there(name, self.allowed.as_deref());
        if self.memory < LEAST || !is_plain(text, there) {
            return self.bash(cwd, variables);
        }
        let is_same = |made: &PlainUse| made.cwd == cwd && made.variables == *variables;
        let spare = self
            .spare
            .lock()
            .take_if(|spare| spare.plain.as_ref().is_some_and(is_same));
        spare.unwrap_or_else(|| Engine {
            plain: Some(PlainUse {
                cwd: cwd.to_path_buf(),
                variables: variables.clone(),
                texts: 0,
            }),
            ..self.bash(cwd, variables)
        })
    }

    /// Keeps a bash for the next plain text, if it was for one and that has run to its end.
    pub(crate) fn keep(&self, mut engine: Engine, ran: Ran) {
        let Some(made) = &mut engine.plain else { return };
        made.texts += 1;
        let ended = matches!(ran.end, MainEnd::Exited(_)) && !ran.exited && !ran.broken_off && !ran.syntax_check;
        if ended && made.texts < TEXTS {
            let before = self.spare.lock().replace(engine);
            // Outside of the lock, since dropping one takes long.
            drop(before);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::Path;

    use super::super::{precheck, programs};
    use super::{LONGEST, PlainUse, TEXTS};
    use crate::Memory;
    use crate::bash::Ran;
    use shieling::environment::Enforcement;
    use shieling::process::MainEnd;

    fn is_plain(text: &str) -> bool {
        super::is_plain(text, |name| programs::there(name, None))
    }

    #[test]
    fn what_only_works_on_files_is_plain() {
        for text in [
            "echo hi | tr a-z A-Z",
            "cat 'a b' \"c d\" *.txt ~/x > out 2>&1; ls -l | head -n 3 && rm -r out || true",
            "! grep -q x f",
            "cat <<'E' >> f\n$x y\nE\n",
            "sort < f &> g",
            "wc -l <<< word",
            "mkdir -p {a,b}/c # as it is",
        ] {
            assert!(is_plain(text), "{text}");
            // They are run without being looked through.
            assert_eq!(precheck::check(text, [], false).refused, None, "{text}");
        }
    }

    #[test]
    fn what_leaves_something_in_a_shell_or_looks_at_it_is_not_plain() {
        for text in [
            "x=1",
            "x=1 cat f",
            "echo $x",
            "echo \"$SECONDS\"",
            "echo ${x:=1}",
            "echo $((x = 1))",
            "echo $(true)",
            "echo `true`",
            "cat <(cat f)",
            "cat f >(cat)",
            "cat <<E\n$x\nE\n",
            "cat <<< $x",
            "cat < $x",
            "cat f &",
            "cat f &\nls",
            "cat f & ls",
            "ls | cat &",
            "true | { x=1; }",
            "(cat f)",
            "if true; then ls; fi",
            "f() { :; }",
            "time ls",
            "cd /",
            "ls; cd /; ls",
            "ls && export x",
            "printf -v x 1",
            "read x < f",
            "hash",
            "[ -v PIPESTATUS ]",
            "test a = b",
            "env",
            "find . -exec true ';'",
            "xargs cd < f",
            "timeout 1 bash -c 'x=1'",
            "awk 'BEGIN { system(\"x\") }'",
            "eval ls",
            ". f",
            "bash f",
            "exec ls",
            "exit 3",
            "> f",
            "echo a 3> f",
            "echo a >&3",
            "echo a 2>&-",
            "echo a 3>&1 1>&2 2>&3",
            "echo a {fd}> f",
            "cat <&3",
            "cat <> f",
            "$x",
            "/usr/bin/cat f",
            "cat 'f",
        ] {
            assert!(!is_plain(text), "{text}");
        }
        let long = |length| format!("echo {}", "a".repeat(length - 5));
        assert!(is_plain(&long(LONGEST)) && !is_plain(&long(LONGEST + 1)));
    }

    #[test]
    fn a_bash_is_kept_for_the_same_place_and_only_if_its_text_ran_to_its_end() {
        let memory = Memory::builder("/work").build().expect("a memory");
        let config = &memory.inner.config;
        let (none, some) = (BTreeMap::new(), BTreeMap::from([("A".to_owned(), "b".to_owned())]));
        let [work, other] = ["/work", "/"].map(Path::new);
        let texts = |engine: &super::Engine| engine.plain.as_ref().map(|made: &PlainUse| made.texts);
        let ended = Ran::exited(1);

        config.keep(config.bash_for("ls", work, &none), ended);
        assert_eq!(texts(&config.bash_for("ls $x", work, &none)), None);
        let engine = config.bash_for("ls", work, &none);
        assert_eq!(texts(&engine), Some(1));
        config.keep(engine, ended);
        assert_eq!(texts(&config.bash_for("ls", other, &none)), Some(0));
        config.keep(config.bash_for("ls", work, &none), ended);
        assert_eq!(texts(&config.bash_for("ls", work, &some)), Some(0));
        config.keep(config.bash_for("ls", other, &none), ended);
        assert_eq!(texts(&config.bash_for("ls", other, &none)), Some(1));
        let signalled = Ran {
            end: MainEnd::Signalled(13),
            ..ended
        };
        let exited = Ran { exited: true, ..ended };
        let syntax_check = Ran {
            syntax_check: true,
            ..ended
        };
        for no_end in [Ran::broken_off(), signalled, exited, syntax_check] {
            config.keep(config.bash_for("ls", work, &none), no_end);
            assert_eq!(texts(&config.bash_for("ls", work, &none)), Some(0), "{no_end:?}");
        }
        let mut old = config.bash_for("ls", work, &none);
        old.plain.as_mut().expect("it is for plain texts").texts = TEXTS - 1;
        config.keep(old, ended);
        assert_eq!(texts(&config.bash_for("ls", work, &none)), Some(0));
        config.keep(config.bash_for("ls", work, &none), ended);
        config.spare.clear();
        assert_eq!(texts(&config.bash_for("ls", work, &none)), Some(0));
        config.keep(config.bash_for("x=1", work, &none), ended);
        assert_eq!(texts(&config.bash_for("ls", work, &none)), Some(0));
    }

    #[test]
    fn a_program_that_is_not_allowed_is_not_plain_and_little_memory_keeps_nothing() {
        let builder = || Memory::builder("/work");
        let [cat, little] = [
            builder().enforcing(Enforcement {
                programs: Some(vec!["cat".to_owned()]),
                ..Enforcement::default()
            }),
            builder().memory(shieling::units::ByteCount::mib(1)),
        ];
        let [cat, little] = [cat, little].map(|builder| builder.build().expect("a memory"));
        let is_for_plain = |memory: &Memory, text| {
            let engine = memory.inner.config.bash_for(text, Path::new("/work"), &BTreeMap::new());
            engine.plain.is_some()
        };
        assert!(is_for_plain(&cat, "cat f"));
        assert!(!is_for_plain(&cat, "sort f"));
        assert!(!is_for_plain(&little, "cat f"));
    }
}
