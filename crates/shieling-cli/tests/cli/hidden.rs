//! Hidden files that somebody outside replaces while commands run: hidden again without a further command.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use shieling_testkit::prerequisite;

use crate::afterwards::shieling;
use crate::attacks::Place;
use crate::mcp::Server;
use crate::support::Shieling;

/// Says again and again which of the hidden files it can open.
const LOOKS: &str = "n=0; while :; do n=$((n+1)); seen=; for f in .env keys/a conf/b.env; do \
    if cat $f >/dev/null 2>&1; then seen=\"$seen $f\"; fi; done; echo \"$n:$seen\"; sleep 0.005; done";

struct Job {
    server: Server,
    job: Value,
}

impl Job {
    fn start(place: &Place, mode: &[&str]) -> Self {
        let work = place.path().join("work");
        for (directory, file) in [("", ".env"), ("keys", "a"), ("conf", "b.env")] {
            fs::create_dir_all(work.join(directory)).expect("made");
            fs::write(work.join(directory).join(file), "secret 1\n").expect("written");
        }
        place.own();
        let mut command = shieling(place, "mcp", mode[0]);
        command.args(&mode[1..]);
        for pattern in [".env", "keys/**", "conf/*.env"] {
            command.args(["--ignore", pattern]);
        }
        let mut server = Server::start_by(Shieling::in_workspace(), command, json!({}));
        let (_, job) = server.shell(json!({"command": LOOKS, "background": true}));
        Self {
            server,
            job: job["job"].clone(),
        }
    }

    /// What it said last: which look that was, and what it could open.
    fn last(&mut self) -> (u64, String) {
        loop {
            let asked = json!({"job": self.job, "wait_ms": 1_000});
            let (text, view) = self.server.tool("shell_view", asked);
            assert_eq!(view["status"], "running", "{text}");
            let said = view["stdout"].as_str().unwrap_or_default();
            let whole = said.rsplit_once('\n').map_or("", |(whole, _)| whole);
            if let Some((number, seen)) = whole.lines().next_back().and_then(|line| line.split_once(':')) {
                return (number.parse().expect("a number"), seen.to_owned());
            }
        }
    }

    /// Waits until it opens none of them, at two looks that were begun after this call.
    fn is_blind(&mut self, what: &str) {
        let began = Instant::now();
        let (from, _) = self.last();
        let mut blind = 0;
        while blind < 2 {
            let (number, seen) = self.last();
            blind = if number > from + 1 && seen.is_empty() {
                blind + 1
            } else {
                0
            };
            assert!(
                began.elapsed() < Duration::from_secs(20),
                "{what}: it still opens{seen}"
            );
        }
    }
}

/// What it is called, and what the user does.
type Way<'w> = (&'static str, Box<dyn Fn() + 'w>);

/// The user's ways to make a hidden name that of another file.
fn ways(work: &Path) -> Vec<Way<'_>> {
    let write = |path: &Path| fs::write(path, "secret 2\n").expect("written");
    vec![
        (
            "an editor saves",
            Box::new(move || {
                write(&work.join(".env~"));
                fs::rename(work.join(".env~"), work.join(".env")).expect("renamed");
            }),
        ),
        (
            "removed and made",
            Box::new(move || {
                fs::remove_file(work.join(".env")).expect("removed");
                write(&work.join(".env"));
            }),
        ),
        (
            "a hidden directory is another",
            Box::new(move || {
                fs::rename(work.join("keys"), work.join("src/keys")).expect("moved");
                fs::create_dir(work.join("keys")).expect("made");
                write(&work.join("keys/a"));
            }),
        ),
        (
            "a directory above is another",
            Box::new(move || {
                fs::create_dir(work.join("conf~")).expect("made");
                write(&work.join("conf~/b.env"));
                fs::rename(work.join("conf"), work.join("src/conf")).expect("moved");
                fs::rename(work.join("conf~"), work.join("conf")).expect("moved");
            }),
        ),
        (
            "a directory above is removed, and made again bit by bit",
            Box::new(move || {
                fs::remove_dir_all(work.join("conf")).expect("removed");
                fs::create_dir(work.join("conf")).expect("made");
                // Long after it was looked at.
                std::thread::sleep(Duration::from_millis(100));
                write(&work.join("conf/b.env"));
            }),
        ),
        (
            "its name is removed and given back",
            Box::new(move || {
                fs::hard_link(work.join(".env"), work.join("src/kept")).expect("linked");
                fs::remove_file(work.join(".env")).expect("removed");
                fs::rename(work.join("src/kept"), work.join(".env")).expect("renamed");
            }),
        ),
        (
            "its name is given back in a directory that is away meanwhile",
            Box::new(move || {
                let away = work.join("src/away");
                fs::rename(work.join("conf"), &away).expect("moved");
                fs::hard_link(away.join("b.env"), away.join("kept")).expect("linked");
                fs::remove_file(away.join("b.env")).expect("removed");
                fs::rename(away.join("kept"), away.join("b.env")).expect("renamed");
                fs::rename(&away, work.join("conf")).expect("moved");
            }),
        ),
        (
            "the new one is replaced as well",
            Box::new(move || {
                for _ in 0..20 {
                    write(&work.join("conf/b~"));
                    fs::rename(work.join("conf/b~"), work.join("conf/b.env")).expect("renamed");
                }
            }),
        ),
    ]
}

fn is_hidden_again(make: impl Fn() -> Place) {
    for mode in [&["direct"][..], &["direct", "--readonly"], &["commit"]] {
        let place = make();
        let mut job = Job::start(&place, mode);
        job.is_blind("at first");
        let work = place.path().join("work");
        for (what, act) in ways(&work) {
            act();
            place.own();
            job.is_blind(&format!("{mode:?}: {what}"));
        }
        // The sandbox serves on, and its next command sees none either.
        let (text, _) = job
            .server
            .shell(json!({"command": "cat .env keys/a conf/b.env; echo over"}));
        assert!(text.contains("over") && !text.contains("secret"), "{mode:?}: {text}");
        job.server.tool("shell_kill", json!({"job": job.job}));
        job.server.end();
    }
}

#[test]
fn a_hidden_file_that_the_user_replaces_is_hidden_again_while_a_job_runs() {
    is_hidden_again(Place::new);
}

#[test]
fn a_hidden_file_that_an_ordinary_user_replaces_is_hidden_again_while_a_job_runs() {
    // Without root, the test above is theirs.
    if rustix::process::geteuid().is_root() && prerequisite::has(&["setpriv"]) {
        is_hidden_again(Place::of_user);
    }
}
