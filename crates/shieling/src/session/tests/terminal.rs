//! Jobs on terminals, as far as no screen is needed.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::support::start_on_terminal;
use crate::outcome::Status;
use crate::output::Stream;
use crate::session::human::TakeOver as _;
use crate::session::screen::Emulator;
use crate::session::watcher::Watchers;
use crate::session::{JobError, JobInput, Screen, TerminalSize, Watcher};

const LONG: Duration = Duration::from_secs(10);

/// Remembers all that it sees.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Vec<String>>>);

impl Seen {
    fn add(&self, what: String) {
        self.0.lock().expect("nobody panics").push(what);
    }
}

impl Watcher for Seen {
    fn output(&mut self, stream: Stream, bytes: &[u8]) {
        self.add(format!("{stream:?} {}", String::from_utf8_lossy(bytes)));
    }

    fn input(&mut self, bytes: &[u8]) {
        self.add(format!("typed {}", String::from_utf8_lossy(bytes)));
    }

    fn mark(&mut self, label: &str) {
        self.add(format!("mark {label}"));
    }

    fn resize(&mut self, size: TerminalSize) {
        self.add(format!("{}x{}", size.columns, size.rows));
    }

    fn screen(&self) -> Option<Screen> {
        Some(Screen {
            size: TerminalSize::default(),
            text: "what a person sees".to_owned(),
            cursor: None,
            alternate: false,
            title: String::new(),
        })
    }

    fn keys(&self, names: &[String]) -> Result<Vec<u8>, JobError> {
        Ok(names
            .iter()
            .flat_map(|name| {
                if name == "C-c" {
                    vec![3]
                } else {
                    name.clone().into_bytes()
                }
            })
            .collect())
    }
}

#[tokio::test]
async fn a_terminal_is_read_written_sized_and_watched() {
    let seen = Seen::default();
    let text = "stty size; read -r x; echo \"<$x>\"; stty size; sleep 1000";
    let job = start_on_terminal(text, |setup| setup.watcher = Some(Box::new(seen.clone()))).await;
    job.next().await;
    job.resize(TerminalSize { rows: 10, columns: 33 })
        .expect("it has a terminal");
    let answer = job.line("hi", LONG).await.outcome.stdout;
    // The terminal echoes, and ends lines as terminals do.
    assert!(answer.contains("hi\r\n<hi>\r\n10 33\r\n"), "{answer:?}");
    let ask = crate::session::ViewRequest {
        screen: true,
        ..job.ask()
    };
    let view = job.view(&ask).await.expect("a view");
    assert_eq!(
        view.screen.map(|screen| screen.text).as_deref(),
        Some("what a person sees")
    );
    job.mark("approval");
    let keys = JobInput {
        keys: vec!["C-c".to_owned()],
        ..JobInput::default()
    };
    let view = job.write(&keys, LONG).await.expect("it is typed");
    assert_eq!((view.outcome.status, view.outcome.signal), (Status::Signalled, Some(2)));
    let seen = seen.0.lock().expect("nobody panics").clone();
    for what in ["typed hi", "typed \r", "33x10", "mark approval", "typed \u{3}"] {
        assert!(seen.iter().any(|each| each == what), "{what:?} in {seen:?}");
    }
    assert!(seen.iter().any(|each| each.starts_with("Stdout ")));
}

#[tokio::test]
async fn the_end_of_a_terminal_job_loses_no_output() {
    for _ in 0..20 {
        let job = start_on_terminal("seq 1 2000; exit 5", |_| ()).await;
        let outcome = job.ended().await;
        assert_eq!(outcome.exit_code, Some(5));
        assert!(
            outcome.stdout.ends_with("1999\r\n2000\r\n"),
            "{:?}",
            outcome.stdout.len()
        );
        assert_eq!(
            job.resize(TerminalSize::default())
                .expect_err("it has ended")
                .to_string(),
            "job `j1` has ended (exited); its output can still be viewed"
        );
    }
}

fn watched() -> Option<Box<dyn Watcher>> {
    Some(Box::new(Watchers::new(
        Some(Emulator::new(TerminalSize::default())),
        None,
    )))
}

#[tokio::test]
async fn a_program_that_asks_its_terminal_is_answered() {
    let text = "stty raw -echo; printf '\\033[6n'; IFS= read -r -d R x; stty sane; printf '%q\\n' \"$x\"; sleep 1000";
    let job = start_on_terminal(text, |setup| setup.watcher = watched()).await;
    let found = job.wait_for_pattern("E.*1;1'", LONG).await.expect("a pattern");
    let view = job.look(None, false);
    assert!(found, "{:?}", view.outcome.stdout);
    job.kill().await;
}

#[tokio::test]
async fn a_person_takes_the_keyboard_and_gives_it_back() {
    let text = "while read -r x; do echo \"<$x>\"; stty size; done";
    let job = start_on_terminal(text, |setup| setup.watcher = watched()).await;
    let mut person = job.attach().expect("it has a terminal");
    assert_eq!(person.size(), TerminalSize::default());
    let error = job.attach().expect_err("somebody has it");
    assert!(matches!(error, JobError::PersonHolds { .. }), "{error}");
    let line = |text: &str| JobInput {
        text: text.to_owned(),
        enter: true,
        ..JobInput::default()
    };
    let error = job.write(&line("agent"), LONG).await.expect_err("a person has it");
    assert!(matches!(error, JobError::PersonHolds { .. }), "{error}");
    assert!(person.resize(TerminalSize { rows: 7, columns: 70 }));
    assert!(person.write(b"person\r"));
    let found = job.wait_for_pattern("<person>\r\n7 70", LONG).await.expect("a pattern");
    let view = job.look(None, false);
    assert!(found, "{:?}", view.outcome.stdout);
    let shown = tokio::time::timeout(LONG, person.next()).await.expect("it is shown");
    assert!(shown.is_some());
    drop(person);
    let view = job.write(&line("agent"), LONG).await.expect("it was given back");
    assert!(view.outcome.stdout.contains("<agent>"), "{:?}", view.outcome.stdout);
    job.kill().await;
    assert!(matches!(job.attach(), Err(JobError::Ended { .. })));
}
