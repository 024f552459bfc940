//! A case: what is called, and what is expected of it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use shieling::approval::{Answer, AnswerFuture, Approver, Mode, Question, Scope};
use shieling::environment::{Environment, Local, Restrictions, Sandbox, Shell};
use shieling::outcome::{Outcome, Status};
use shieling::policy::Policy;
use shieling::request::Command;
use shieling::session::{JobRequest, OnTimeout, SessionName};
use shieling::{SessionHandle, Shieling};
use shieling_testkit::Marker;

/// No call takes so long beyond its time, however busy the machine is: what does hangs.
const BEYOND: Duration = Duration::from_secs(30);
/// How long a step may run that does not say.
const DEADLINE: Duration = Duration::from_secs(30);

/// Where commands run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum In {
    Local,
    Sandbox,
}

/// A script of calls in one session.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) steps: Vec<Step>,
    /// Where it is run.
    pub(crate) places: &'static [In],
    /// What of the state it changes by itself: the first words of lines of the probe.
    pub(crate) changes: &'static [&'static str],
    /// The sandbox's memory.
    pub(crate) memory: Option<u64>,
    /// Where it stands afterwards, if not where it was prepared.
    pub(crate) stands: Option<&'static str>,
}

/// A case with these steps.
pub(crate) fn case(name: &'static str, steps: impl IntoIterator<Item = Step>) -> Case {
    Case {
        name,
        steps: steps.into_iter().collect(),
        places: &[In::Local, In::Sandbox],
        changes: &[],
        memory: None,
        stands: None,
    }
}

impl Case {
    /// Only where its processes have numbers of their own, or limits.
    pub(crate) fn sandboxed(mut self) -> Self {
        self.places = &[In::Sandbox];
        self
    }

    pub(crate) fn changing(mut self, lines: &'static [&'static str]) -> Self {
        self.changes = lines;
        self
    }

    pub(crate) fn memory(mut self, bytes: u64) -> Self {
        self.memory = Some(bytes);
        self.sandboxed()
    }

    pub(crate) fn standing(mut self, at: &'static str) -> Self {
        self.stands = Some(at);
        self
    }
}

/// What is expected of a stream.
#[derive(Debug, Clone)]
pub(crate) enum Text {
    Is(Cow<'static, str>),
    Has(Vec<&'static str>),
    Any,
}

/// One call. Expected, unless told: it exits with 0, without output, and the shell stays.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    pub(crate) text: Cow<'static, str>,
    pub(crate) deadline: Duration,
    pub(crate) status: Status,
    pub(crate) code: Option<i32>,
    pub(crate) stdout: Text,
    pub(crate) stderr: Text,
    /// None if either is right.
    pub(crate) restarted: Option<bool>,
    pub(crate) cwd: Option<&'static str>,
    pub(crate) bytes: Option<u64>,
    pub(crate) on_timeout: OnTimeout,
    /// What the error has in it, if that is looked at.
    pub(crate) error: Option<&'static str>,
    /// Whether the text makes a file [`THERE`] once it is where its time is to end.
    pub(crate) is_seen: bool,
}

/// In the workspace: `$TOP/there`.
const THERE: &str = "there";
/// How often a text gets more time that was not seen to be there.
const AGAIN: u32 = 3;

/// A call of this text.
pub(crate) fn run(text: impl Into<Cow<'static, str>>) -> Step {
    Step {
        text: text.into(),
        deadline: DEADLINE,
        status: Status::Exited,
        code: Some(0),
        stdout: Text::Is("".into()),
        stderr: Text::Is("".into()),
        restarted: Some(false),
        cwd: None,
        bytes: None,
        on_timeout: OnTimeout::Kill,
        error: None,
        is_seen: false,
    }
}

impl Step {
    pub(crate) fn error(mut self, text: &'static str) -> Self {
        self.error = Some(text);
        self
    }

    pub(crate) fn out(mut self, text: impl Into<Cow<'static, str>>) -> Self {
        self.stdout = Text::Is(text.into());
        self
    }

    pub(crate) fn has(mut self, text: &'static str) -> Self {
        self.stdout = Text::Has(vec![text]);
        self
    }

    pub(crate) fn err(mut self, text: &'static str) -> Self {
        self.stderr = Text::Has(vec![text]);
        self
    }

    pub(crate) fn err_is(mut self, text: impl Into<Cow<'static, str>>) -> Self {
        self.stderr = Text::Is(text.into());
        self
    }

    pub(crate) fn noisy(mut self) -> Self {
        (self.stdout, self.stderr) = (Text::Any, Text::Any);
        self
    }

    pub(crate) fn code(mut self, code: i32) -> Self {
        self.code = Some(code);
        self
    }

    /// Its code is not what the case is about.
    pub(crate) fn any_code(mut self) -> Self {
        self.code = None;
        self
    }

    pub(crate) fn signalled(mut self, signal: i32) -> Self {
        self.status = Status::Signalled;
        self.code = Some(128 + signal);
        self.restarted()
    }

    /// Its time is so short that it does not come to its end.
    pub(crate) fn times_out(mut self, milliseconds: u64) -> Self {
        self.deadline = Duration::from_millis(milliseconds);
        self.status = Status::TimedOut;
        self.code = Some(124);
        self
    }

    /// It makes `$TOP/there` where its time is to end; if it did not come so far, it is run again, with more.
    pub(crate) fn seen(mut self) -> Self {
        self.is_seen = true;
        self
    }

    pub(crate) fn within(mut self, milliseconds: u64) -> Self {
        self.deadline = Duration::from_millis(milliseconds);
        self
    }

    pub(crate) fn status(mut self, status: Status) -> Self {
        self.status = status;
        self.code = None;
        self
    }

    pub(crate) fn restarted(mut self) -> Self {
        self.restarted = Some(true);
        self
    }

    pub(crate) fn perhaps_restarted(mut self) -> Self {
        self.restarted = None;
        self
    }

    pub(crate) fn cwd(mut self, cwd: &'static str) -> Self {
        self.cwd = Some(cwd);
        self
    }

    pub(crate) fn bytes(mut self, bytes: u64) -> Self {
        self.bytes = Some(bytes);
        self
    }
}

/// A person who agrees to everything, such as to a text that is no bash.
struct Yes;

impl Approver for Yes {
    fn ask<'a>(&'a self, _question: &'a Question) -> AnswerFuture<'a> {
        Box::pin(async { Answer::Yes(Scope::Once) })
    }
}

/// A workspace of its own, and a façade over it.
pub(crate) struct Place {
    pub(crate) shieling: Arc<Shieling>,
    pub(crate) environment: Arc<dyn Environment>,
    pub(crate) workspace: PathBuf,
    pub(crate) marker: Marker,
    _folder: tempfile::TempDir,
}

impl Place {
    pub(crate) fn new(place: In, memory: Option<u64>) -> Self {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let workspace = folder.path().canonicalize().expect("it is there").join("w");
        std::fs::create_dir(&workspace).expect("our own directory");
        let shell = Shell::find(None).expect("there is a shell on every host that runs tests");
        let environment: Arc<dyn Environment> = match place {
            In::Local => Arc::new(Local::new(shell)),
            In::Sandbox => {
                let mut restrictions = Restrictions::new(&workspace, shell.program());
                restrictions.path = "/usr/bin:/bin".to_owned();
                restrictions.limits.memory = memory.or(Some(1 << 30));
                restrictions.limits.pids = Some(128);
                Arc::new(Sandbox::new(restrictions, shell))
            }
        };
        let shieling = Shieling::builder(Arc::clone(&environment), Policy::open(), &workspace)
            .approver(Arc::new(Yes))
            .approval(Mode::OnAsk);
        Self {
            shieling: Arc::new(shieling.build().expect("it serves no other policy")),
            environment,
            workspace,
            marker: Marker::new(),
            _folder: folder,
        }
    }

    pub(crate) fn command(&self, text: &str) -> Command {
        let own = [
            ("PATH", "/usr/bin:/bin".to_owned()),
            ("TOP", self.workspace.display().to_string()),
            ("LC_ALL", "C.UTF-8".to_owned()),
        ];
        let variables: BTreeMap<_, _> = own
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .chain([self.marker.variable()])
            .collect();
        Command::new(text, &self.workspace)
            .expect("a good command")
            .with_variables(variables)
            .with_grace(Duration::from_millis(100))
    }

    pub(crate) fn call(&self, text: &str, deadline: Duration) -> JobRequest {
        let command = self.command(text).with_deadline(deadline).expect("more than zero");
        JobRequest::new(command).with_on_timeout(OnTimeout::Kill)
    }

    /// The session `main`.
    pub(crate) fn session(&self) -> SessionHandle<'_> {
        self.shieling.session(SessionName::default())
    }

    /// Runs a text in the session `main`, to its end.
    pub(crate) async fn shell(&self, text: &str) -> Outcome {
        self.session().run(self.call(text, DEADLINE)).await
    }

    /// Ends everything; nothing of it may be left.
    pub(crate) async fn close(self) -> Result<(), String> {
        self.shieling.close().await;
        let until = Instant::now() + BEYOND;
        loop {
            let left = shieling_testkit::leftovers(&self.marker);
            if left.is_empty() {
                return Ok(());
            }
            if Instant::now() > until {
                let names: Vec<_> = left
                    .iter()
                    .map(|pid| std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default())
                    .collect();
                return Err(format!("left after the end: {left:?} {names:?}"));
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// What is wrong with what a step came to.
pub(crate) async fn step(place: &Place, step: &Step) -> Result<Outcome, String> {
    let filled = |text: &str| text.replace("{W}", &place.workspace.display().to_string());
    let begun = Instant::now();
    let mut tries = 0;
    let outcome = loop {
        let deadline = step.deadline * 4_u32.pow(tries);
        let call = place.call(&step.text, deadline).with_on_timeout(step.on_timeout);
        let outcome = tokio::time::timeout(deadline + BEYOND, place.session().run(call))
            .await
            .map_err(|_| format!("{:?}: no answer after {:?}", step.text, begun.elapsed()))?;
        tries += 1;
        if !step.is_seen || std::fs::remove_file(place.workspace.join(THERE)).is_ok() || tries > AGAIN {
            break outcome;
        }
    };
    let took = begun.elapsed();
    let mut wrong = Vec::new();
    if outcome.status != step.status || (step.code.is_some() && outcome.exit_code != step.code) {
        wrong.push(format!("is not {:?} {:?}", step.status, step.code));
    }
    for (name, want, got) in [
        ("stdout", &step.stdout, &outcome.stdout),
        ("stderr", &step.stderr, &outcome.stderr),
    ] {
        let good = match want {
            Text::Is(text) => *got == filled(text),
            Text::Has(texts) => texts.iter().all(|text| got.contains(&filled(text))),
            Text::Any => true,
        };
        if !good {
            wrong.push(format!("{name} is not {want:?}"));
        }
    }
    if step
        .restarted
        .is_some_and(|restarted| restarted != outcome.session_restarted)
    {
        wrong.push(format!("session_restarted is not {:?}", step.restarted));
    }
    if let Some(cwd) = step.cwd.filter(|cwd| outcome.cwd.as_os_str() != filled(cwd).as_str()) {
        wrong.push(format!("cwd is not {cwd}"));
    }
    if step.bytes.is_some_and(|bytes| bytes != outcome.stdout_bytes) {
        wrong.push(format!("{} bytes", outcome.stdout_bytes));
    }
    if let Some(text) = step
        .error
        .filter(|text| !outcome.error.as_deref().unwrap_or_default().contains(text))
    {
        wrong.push(format!("error is not {text:?}"));
    }
    if outcome.survivors > 0 {
        wrong.push(format!("{} survivors", outcome.survivors));
    }
    if wrong.is_empty() {
        return Ok(outcome);
    }
    let shown = |text: &str| text.chars().take(400).collect::<String>();
    Err(format!(
        "{:?}: {}; it is {:?} {:?} out {:?} err {:?} restarted {} cwd {} after {took:?} {:?} {:?}",
        shown(&step.text),
        wrong.join(", "),
        outcome.status,
        outcome.exit_code,
        shown(&outcome.stdout),
        shown(&outcome.stderr),
        outcome.session_restarted,
        outcome.cwd.display(),
        outcome.error,
        outcome.denial,
    ))
}

/// What each session is made to be before its case.
const PREPARE: &str = "mkdir sub && cd sub && mark=lives shell=$$ && export TOLD=exported && umask 027
marked() { REPLY=function; }; shopt -s expand_aliases nocaseglob; alias marking=marked; trap 'REPLY=trapped' USR1";

/// And what it is to say of itself after it.
const PROBE: &str = "\\builtin echo \"shell $(($$ - shell)) $mark\"; \\builtin echo \"told $TOLD\"
\\builtin umask; \\builtin trap -p USR1; \\builtin declare -F marked; \\builtin alias marking
\\builtin shopt nocaseglob; \\builtin pwd";

const STATE: &[(&str, &str)] = &[
    ("shell", "shell 0 lives"),
    ("told", "told exported"),
    ("umask", "0027"),
    ("trap", "trap -- 'REPLY=trapped' SIGUSR1"),
    ("function", "marked"),
    ("alias", "alias marking='marked'"),
    ("option", "nocaseglob     \ton"),
    ("pwd", ""),
];

/// Runs a case at a place.
pub(crate) async fn attempt(case: &Case, at: In) -> Result<(), String> {
    let place = Place::new(at, case.memory);
    let done = steps(case, &place).await;
    let closed = place.close().await;
    done.and(closed)
}

async fn steps(case: &Case, place: &Place) -> Result<(), String> {
    step(place, &run(PREPARE)).await?;
    let mut restarted = false;
    for each in &case.steps {
        restarted |= step(place, each).await?.session_restarted;
    }
    let stands = case.stands.unwrap_or("{W}/sub");
    let mut probe = run(PROBE).cwd(stands);
    probe.stdout = Text::Any;
    if restarted || !case.changes.is_empty() {
        (probe.stderr, probe.code) = (Text::Any, None);
    }
    let outcome = step(place, &probe).await?;
    let lines: Vec<&str> = outcome.stdout.lines().collect();
    let stands = stands.replace("{W}", &place.workspace.display().to_string());
    for (name, line) in STATE {
        let line = if *name == "pwd" { stands.as_str() } else { line };
        let stays = !restarted || ["told", "pwd"].contains(name);
        if stays && !case.changes.contains(name) && !lines.contains(&line) {
            return Err(format!(
                "the probe has no {line:?}: {:?} {:?}",
                outcome.stdout, outcome.stderr
            ));
        }
    }
    let known = |line: &&str| {
        line.starts_with("shell ")
            || line.starts_with("umask")
            || line.starts_with("nocaseglob")
            || line.starts_with("0")
    };
    let foreign = lines
        .iter()
        .find(|line| !STATE.iter().any(|(_, own)| own == *line) && **line != stands && !known(line));
    match foreign {
        Some(line) if case.changes.is_empty() => Err(format!("the probe holds {line:?}")),
        _ => Ok(()),
    }
}

/// Tests run beside each other, and none beside one that counts what this process has open.
static OTHERS: tokio::sync::RwLock<()> = tokio::sync::RwLock::const_new(());

pub(crate) async fn beside() -> tokio::sync::RwLockReadGuard<'static, ()> {
    OTHERS.read().await
}

pub(crate) async fn alone() -> tokio::sync::RwLockWriteGuard<'static, ()> {
    OTHERS.write().await
}
