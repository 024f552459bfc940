//! Real programs on a terminal, driven by keys and seen through its screen.

use std::collections::BTreeMap;
use std::time::Duration;

use shieling_testkit::prerequisite;
use tokio::time::timeout;

use crate::environment::Shell;
use crate::output::Stream;
use crate::process::{Jail, MainEnd, Process, Streams};
use crate::request::Command;
use crate::session::screen::Emulator;
use crate::session::terminal::Terminal;
use crate::session::watcher::{Watcher as _, Watchers};
use crate::session::{Pty, Screen, TerminalSize};

/// How long a program may take until it shows what is waited for.
const TIMEOUT: Duration = Duration::from_secs(20);

/// A program on a terminal.
struct Driven {
    terminal: Terminal,
    watched: Watchers,
    process: Process,
    _jail: Jail,
}

impl Driven {
    async fn start(text: &str) -> Self {
        let variables = [
            ("PATH", "/usr/local/bin:/usr/bin:/bin"),
            ("TERM", "xterm-256color"),
            ("LC_ALL", "C.UTF-8"),
            ("HOME", "/nowhere"),
        ];
        let variables: BTreeMap<String, String> = variables
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into();
        let command = Command::new(text, "/tmp").expect("a good command");
        let plan = Shell::find(None)
            .expect("there is a shell")
            .plan(&command.with_variables(variables));
        let jail = Jail::unconfined().await.expect("one can be made");
        let pair = Pty::open(TerminalSize::default()).expect("there are terminals");
        let process = jail.spawn(&plan, Streams::Terminal(pair.theirs)).await;
        Self {
            terminal: Terminal::new(pair.ours).expect("it can be watched"),
            watched: Watchers::new(Some(Emulator::new(TerminalSize::default())), None),
            process: process.expect("it starts"),
            _jail: jail,
        }
    }

    fn screen(&self) -> Screen {
        self.watched.screen().expect("it has a terminal")
    }

    /// Reads once; false at the end.
    async fn read(&mut self) -> bool {
        let mut buffer = vec![0; 16 * 1024];
        let count = self.terminal.read(&mut buffer).await.expect("it can be read");
        self.watched.output(Stream::Stdout, &buffer[..count]);
        let replies = self.watched.replies();
        self.write(&replies).await;
        count > 0
    }

    async fn write(&self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let count = timeout(TIMEOUT, self.terminal.write(bytes)).await;
            bytes = &bytes[count.expect("it reads").expect("it can be written")..];
        }
    }

    /// Waits until the screen shows this.
    async fn until(&mut self, what: &str, shown: impl Fn(&Screen) -> bool) -> Screen {
        let waited = timeout(TIMEOUT, async { while !shown(&self.screen()) && self.read().await {} });
        let in_time = waited.await.is_ok();
        let screen = self.screen();
        assert!(in_time && shown(&screen), "waited for {what}: {screen:#?}");
        screen
    }

    async fn until_text(&mut self, text: &str) -> Screen {
        self.until(text, |screen| screen.text.contains(text)).await
    }

    /// Waits for the line in which the cursor stands to be this.
    async fn until_line(&mut self, line: &str) -> Screen {
        self.until(line, |screen| {
            let row = screen.cursor.map_or(0, |(row, _)| usize::from(row));
            screen.text.lines().nth(row) == Some(line)
        })
        .await
    }

    async fn press(&mut self, keys: &[&str]) {
        let names: Vec<String> = keys.iter().map(|&key| key.to_owned()).collect();
        let bytes = self.watched.keys(&names).expect("these are keys");
        self.write(&bytes).await;
    }

    async fn enter(&mut self, text: &str) {
        self.write(text.as_bytes()).await;
        self.press(&["Enter"]).await;
    }

    /// Its end, once all was shown.
    async fn end(mut self) -> (Screen, MainEnd) {
        let ended = timeout(TIMEOUT, async {
            while self.read().await {}
            self.process.wait().await
        });
        let (end, _) = ended.await.expect("it ends in time").expect("it is known how");
        (self.screen(), end)
    }
}

#[tokio::test]
async fn a_password_is_asked_for_before_a_line_ends_and_is_not_shown() {
    let mut shell = Driven::start("read -r -s -p 'Password: ' it; echo; echo \"${#it} characters\"").await;
    let asked = shell.until_line("Password:").await;
    assert_eq!(asked.cursor, Some((0, 10)));
    assert!(!shell.terminal.echoes());
    shell.enter("hunter2").await;
    let (screen, end) = shell.end().await;
    assert_eq!(screen.text, "Password:\n7 characters");
    assert_eq!(end, MainEnd::Exited(0));
}

#[tokio::test]
async fn a_progress_bar_stands_where_it_stood_last() {
    let bar = "for i in 10 50 100; do printf '\\r[%3d%%] %s' $i \"$(printf '%*s' $((i / 10)) '' | tr ' ' '#')\"; done";
    let (screen, _) = Driven::start(bar).await.end().await;
    assert_eq!(screen.text, "[100%] ##########");
}

#[tokio::test]
async fn vi_is_told_what_it_asks_and_writes_what_was_typed() {
    if !prerequisite::has(&["vim.tiny"]) {
        return;
    }
    let place = tempfile::tempdir().expect("a temporary directory can be made");
    let file = place.path().join("notes.txt");
    let mut vi = Driven::start(&format!("vim.tiny -u NONE -N -n {}", file.display())).await;
    let empty = vi
        .until("vi's empty lines", |screen| screen.text.contains("\n~\n~"))
        .await;
    assert!(empty.alternate, "{empty:#?}");
    vi.press(&["i"]).await;
    vi.write("hällo 日本\rsecond".as_bytes()).await;
    let typed = vi.until("the cursor", |screen| screen.cursor == Some((1, 6))).await;
    assert!(typed.text.starts_with("hällo 日本\nsecond\n~"), "{typed:#?}");
    // Through the lines and back, with keys that have other bytes in vi than in a shell.
    vi.press(&["Up", "Home", "Delete", "Down", "End", "!", "Escape"]).await;
    vi.until_text("second!").await;
    vi.press(&[":", "w", "q", "Enter"]).await;
    let (screen, end) = vi.end().await;
    assert_eq!(end, MainEnd::Exited(0));
    assert!(!screen.alternate, "{screen:#?}");
    let read = rustix::fs::open(&file, rustix::fs::OFlags::RDONLY, rustix::fs::Mode::empty()).expect("it was written");
    let mut text = [0; 64];
    let count = rustix::io::read(&read, &mut text).expect("it can be read");
    assert_eq!(String::from_utf8_lossy(&text[..count]), "ällo 日本\nsecond!\n");
}

#[tokio::test]
async fn less_moves_by_keys_in_the_mode_that_it_asked_for() {
    if !prerequisite::has(&["less"]) {
        return;
    }
    let mut less = Driven::start("seq 1 200 | less").await;
    let first = less
        .until("the first page", |screen| screen.text.contains("\n23\n:"))
        .await;
    assert!(first.alternate && first.text.starts_with("1\n2\n"), "{first:#?}");
    less.press(&["Space"]).await;
    less.until("the next page", |screen| screen.text.starts_with("24\n"))
        .await;
    less.press(&["Down", "Down"]).await;
    less.until("two lines more", |screen| screen.text.starts_with("26\n"))
        .await;
    less.press(&["Up"]).await;
    less.until("one line less", |screen| screen.text.starts_with("25\n"))
        .await;
    less.press(&["PageUp", "G"]).await;
    less.until_text("\n200\n").await;
    less.press(&["/", "1", "2", "3", "Enter", "g"]).await;
    less.until("the beginning", |screen| screen.text.starts_with("1\n2\n"))
        .await;
    less.press(&["q"]).await;
    let (screen, end) = less.end().await;
    assert_eq!((screen.alternate, end), (false, MainEnd::Exited(0)));
}

#[tokio::test]
async fn top_is_seen_and_quits() {
    if !prerequisite::has(&["top"]) {
        return;
    }
    let mut top = Driven::start("top -d 1").await;
    let screen = top.until("processes", |screen| screen.text.contains("COMMAND")).await;
    assert!(
        screen.text.contains("load average") && screen.text.contains("PID"),
        "{screen:#?}"
    );
    top.press(&["q"]).await;
    assert_eq!(top.end().await.1, MainEnd::Exited(0));
}

#[tokio::test]
async fn python_reads_lines_remembers_them_and_is_interrupted() {
    if !prerequisite::has(&["python3"]) {
        return;
    }
    let mut python = Driven::start("exec /usr/bin/python3 -q").await;
    python.until_line(">>>").await;
    python.enter("6 * 7").await;
    python.until_text("\n42\n").await;
    python.press(&["Up", "Backspace", "8", "Enter"]).await;
    python.until_text("\n48\n").await;
    // Bytecode without an end, not `time.sleep`: Python looks for signals between instructions, and one that
    // comes after the last look and before the system call is seen when the sleep is over.
    python.enter("all(1 for _ in iter(int, 1))").await;
    python
        .until("the line to be taken", |screen| {
            screen.cursor.is_some_and(|(_, column)| column == 0) && screen.text.ends_with("iter(int, 1))")
        })
        .await;
    python.press(&["C-c"]).await;
    python.until_text("KeyboardInterrupt").await;
    python.until_line(">>>").await;
    python.press(&["C-d"]).await;
    // Versions differ in how they end after an interrupt: by themselves, or as if by it.
    let (_, end) = python.end().await;
    assert!(matches!(end, MainEnd::Exited(0) | MainEnd::Signalled(2)), "{end:?}");
}

#[tokio::test]
async fn control_keys_interrupt_and_end_input() {
    let mut shell = Driven::start("trap 'echo stopped' INT; echo ready; cat; echo \"cat: $?\"").await;
    shell.until_text("ready").await;
    shell.enter("line").await;
    shell.until_text("line\nline").await;
    shell.press(&["ctrl+d"]).await;
    shell.until_text("cat: 0").await;
    let (screen, _) = shell.end().await;
    assert_eq!(screen.text, "ready\nline\nline\ncat: 0");

    // A child that bash has forked and that has not yet become `sleep` loses the key: each round is short.
    let mut shell = Driven::start("trap 'echo stopped; exit 3' INT; echo ready; while :; do sleep 0.1; done").await;
    shell.until_text("ready").await;
    shell.press(&["^C"]).await;
    let (screen, end) = shell.end().await;
    assert_eq!((screen.text.as_str(), end), ("ready\n^Cstopped", MainEnd::Exited(3)));
}

#[tokio::test]
async fn a_program_learns_its_size_and_where_its_cursor_is() {
    let text = "stty size; stty -echo; trap 'stty size; exit' WINCH; printf 'ab\\e[6n'; read -r -d R at; echo \"${at#*[}\"; \
                while :; do sleep 0.05; done";
    let mut shell = Driven::start(text).await;
    let screen = shell.until_text("ab2;3").await;
    assert_eq!(screen.text, "24 80\nab2;3");
    let size = TerminalSize { rows: 30, columns: 100 };
    shell.terminal.resize(size).expect("it is a size");
    shell.watched.resize(size);
    let (screen, end) = shell.end().await;
    assert_eq!((screen.size, end), (size, MainEnd::Exited(0)));
    assert_eq!(screen.text, "24 80\nab2;3\n30 100");
}
