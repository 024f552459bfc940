//! Commands in addition to those of bashkit: programs as Rust functions, and replacements for commands of bashkit
//! that behave differently from bash.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bashkit::{Builtin, BuiltinContext, CommandResolver, ExecResult, async_trait};

use super::resume::Resume;
use crate::program::{Program, ProgramCall};

/// A program of the caller.
pub(super) struct CustomProgram {
    pub(super) name: String,
    pub(super) program: Arc<dyn Program>,
}

#[async_trait]
impl Builtin for CustomProgram {
    async fn execute(&self, ctx: BuiltinContext<'_>) -> bashkit::Result<ExecResult> {
        let argv = std::iter::once(self.name.clone()).chain(ctx.args.iter().cloned());
        let call = ProgramCall {
            argv: argv.collect(),
            cwd: ctx.cwd.clone(),
            variables: ctx
                .env
                .iter()
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect::<BTreeMap<_, _>>(),
            input: ctx.stdin.map(|input| input.as_bytes().to_vec()).unwrap_or_default(),
        };
        let answer = self.program.call(call).await;
        Ok(ExecResult {
            stdout: answer.stdout.into(),
            stderr: answer.stderr.into(),
            exit_code: answer.exit_code & 0xff,
            ..ExecResult::default()
        })
    }
}

/// The handler of unknown commands.
pub(super) struct Unknown {
    pub(super) handler: Option<Arc<dyn Program>>,
    /// The last unknown command.
    pub(super) last: Arc<Mutex<Option<String>>>,
    pub(super) resume: Resume,
}

impl CommandResolver for Unknown {
    fn resolve(&self, name: &str) -> Option<Arc<dyn Builtin>> {
        if let Some(command) = self.resume.command(name) {
            return Some(command);
        }
        if let Some(program) = &self.handler {
            return Some(Arc::new(CustomProgram {
                name: name.to_owned(),
                program: Arc::clone(program),
            }));
        }
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(name.to_owned());
        None
    }
}

/// `sleep` without a limit: bashkit's sleeps for at most a minute, silently.
pub(super) struct Sleep;

#[async_trait]
impl Builtin for Sleep {
    async fn execute(&self, ctx: BuiltinContext<'_>) -> bashkit::Result<ExecResult> {
        let operands: Vec<&str> = match ctx.args {
            [first, rest @ ..] if first == "--" => rest.iter().map(String::as_str).collect(),
            args => args.iter().map(String::as_str).collect(),
        };
        let refused = |what: String| {
            let help = "Try 'sleep --help' for more information.";
            Ok(ExecResult::err(format!("sleep: {what}\n{help}\n"), 1))
        };
        if operands.is_empty() {
            return refused("missing operand".to_owned());
        }
        let mut total = Duration::ZERO;
        for operand in operands {
            match interval(operand) {
                Some(time) => total = total.saturating_add(time),
                None => return refused(format!("invalid time interval '{operand}'")),
            }
        }
        tokio::time::sleep(total).await;
        Ok(ExecResult::ok(""))
    }
}

/// Parses a number with a unit, as `sleep` does.
fn interval(text: &str) -> Option<Duration> {
    let (number, seconds) = match text.as_bytes().last()? {
        b's' => (&text[..text.len() - 1], 1.0),
        b'm' => (&text[..text.len() - 1], 60.0),
        b'h' => (&text[..text.len() - 1], 3_600.0),
        b'd' => (&text[..text.len() - 1], 86_400.0),
        _ => (text, 1.0),
    };
    match number {
        "inf" | "infinity" => return Some(Duration::MAX),
        _ if !number.starts_with(|first: char| first.is_ascii_digit() || first == '.') => return None,
        _ => {}
    }
    let number: f64 = number.parse().ok()?;
    Some(Duration::try_from_secs_f64(number * seconds).unwrap_or(Duration::MAX))
}
