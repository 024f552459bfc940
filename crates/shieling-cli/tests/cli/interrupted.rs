//! A signal while the environment starts: the command is never started.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::Stdio;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use shieling_remote::agent::Program;
use shieling_testkit::prerequisite;

use crate::support::Shieling;

/// How long the end may take after the signal. Making a container may take far longer.
const ENDING: Duration = Duration::from_secs(15);

/// Answers as an engine does until a container is to be made, and then no more.
fn serve(stream: UnixStream, asked: &Sender<()>) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let (mut first, mut length) = (String::new(), 0);
    reader.read_line(&mut first).ok()?;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    if first.contains("/containers/create") {
        asked.send(()).ok()?;
        // Until the other side gives it up.
        let _ = reader.read(&mut [0]);
        return None;
    }
    let arch = std::env::consts::ARCH;
    let (status, answer) = match &*first {
        path if path.contains("/_ping") => ("200 OK", "OK".to_owned()),
        path if path.contains("/version") => ("200 OK", format!("{{\"Arch\":\"{arch}\"}}")),
        path if path.contains("/images/") => (
            "200 OK",
            format!("{{\"Id\":\"i\",\"Architecture\":\"{arch}\",\"Config\":{{}}}}"),
        ),
        path if path.contains("/containers/json") => ("200 OK", "[]".to_owned()),
        _ => ("404 Not Found", "{\"message\":\"there is none\"}".to_owned()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nApi-Version: 1.41\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{answer}",
        answer.len()
    );
    (&stream).write_all(head.as_bytes()).ok()
}

#[test]
fn a_signal_while_a_container_is_made_ends_it_and_the_command_is_never_started() {
    if let Err(error) = Program::carried() {
        prerequisite::skip(error);
        return;
    }
    for (signal, exit) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        for copied in [&["--workspace-copy", "both"][..], &[]] {
            let place = tempfile::tempdir().unwrap();
            let socket = place.path().join("engine");
            let listener = UnixListener::bind(&socket).unwrap();
            let (asks, asked) = channel();
            std::thread::spawn(move || {
                for stream in listener.incoming().flatten() {
                    let asks = asks.clone();
                    std::thread::spawn(move || serve(stream, &asks));
                }
            });
            let shieling = Shieling::in_workspace()
                .variable("DOCKER_HOST", &format!("unix://{}", socket.display()))
                .args([
                    "exec",
                    "--env",
                    "container",
                    "--image",
                    "x",
                    "--pull",
                    "never",
                    "--no-config",
                ])
                .args(copied.iter().copied())
                .args(["--", "touch trace"]);
            let mut child = shieling
                .command()
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            if asked.recv_timeout(Duration::from_secs(60)).is_err() {
                let _ = child.kill();
                panic!("no container was asked for: {:?}", child.wait_with_output());
            }
            let begun = Instant::now();
            let id = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
            kill_process(id, signal).unwrap();
            while child.try_wait().unwrap().is_none() {
                if begun.elapsed() > ENDING {
                    let _ = child.kill();
                    panic!("it goes on after {signal:?}: {:?}", child.wait_with_output());
                }
                std::thread::sleep(Duration::from_millis(10));
            }
            let output = child.wait_with_output().unwrap();
            assert_eq!(output.status.code(), Some(exit), "{output:?}");
            assert!(!shieling.workspace().join("trace").exists());
        }
    }
}
