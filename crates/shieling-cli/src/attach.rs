//! `shieling attach`: a person in another terminal works with a running server, whose own streams carry its
//! protocol. Shows the output of a job, takes its keyboard, answers the questions of agents.

mod client;
mod protocol;
mod question_queue;
mod server;

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};

use shieling::output::plain_text;
use shieling::session::{Human as _, HumanReply};
use tokio::signal::unix::SignalKind;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

pub(crate) use question_queue::{QuestionQueue, QueueApprover};
pub(crate) use server::AttachServer;

use crate::escape::{self, Escaped};
use crate::options::Attach;
use crate::person::Person;
use crate::run;
use crate::signals::{SIGINT, SIGTERM, taken};
use crate::state;
use crate::words::Failure;
use client::{Connection, Server, servers};
use protocol::{ClientMessage, Question, ServerMessage};

/// Runs `shieling attach`. Returns its exit status.
pub(crate) fn attach(options: &Attach) -> Result<u8, Failure> {
    let state = state::directory()
        .ok_or_else(|| Failure::new("no server can be found: neither XDG_STATE_HOME nor HOME is set"))?;
    let runtime = run::serving()?;
    let done = runtime.block_on(async {
        let mut interrupt = taken(SignalKind::interrupt())?;
        let mut terminate = taken(SignalKind::terminate())?;
        tokio::select! {
            done = run_attached(options, &state) => done,
            _ = interrupt.recv() => Ok(128 + SIGINT),
            _ = terminate.recv() => Ok(128 + SIGTERM),
        }
    });
    // A thread may still wait for a line from the terminal, which is not needed any more.
    runtime.shutdown_background();
    done
}

async fn run_attached(options: &Attach, state: &Path) -> Result<u8, Failure> {
    let mut found = Vec::new();
    for server in servers(state) {
        let asked = options.server.as_ref().is_none_or(|pid| *pid == server.pid);
        if asked && let Some(lines) = server.list().await {
            found.push((server, lines));
        }
    }
    if found.is_empty() {
        return Err(Failure::new("no server of yours is running").with(
            "instead",
            "start one with `shieling mcp`, as this user, with this state directory",
        ));
    }
    let Some(job) = &options.job else {
        for (server, lines) in &found {
            page(&format!("server {}\n", escape::line(&server.pid)))?;
            for line in lines {
                page(&format!("  {}\n", escape::line(line)))?;
            }
        }
        return answer_questions(found.into_iter().map(|(server, _)| server).collect()).await;
    };
    let has = |lines: &[String]| {
        lines
            .iter()
            .any(|line| line.split_whitespace().take(2).eq(["job", job.as_str()]))
    };
    let mut having = found.into_iter().filter(|(_, lines)| has(lines));
    let Some((server, lines)) = having.next() else {
        return Err(Failure::new(format!("there is no job `{}`", escape::line(job)))
            .with("instead", "`shieling attach` lists those that there are"));
    };
    if let Some((other, _)) = having.next() {
        let pids = format!("servers {} and {}", server.pid, other.pid);
        return Err(
            Failure::new(format!("there is a job `{}` in the {pids}", escape::line(job)))
                .with("instead", format!("choose one with `--server {}`", server.pid)),
        );
    }
    let terminal = lines.iter().any(|line| {
        line.split_whitespace().take(2).eq(["job", job.as_str()])
            && line
                .split(": ")
                .next()
                .is_some_and(|facts| facts.contains("on a terminal"))
    });
    if options.look || !terminal {
        return print_output(&server, job).await;
    }
    let Some(person) = Person::find() else {
        return Err(Failure::new("the keyboard of a job can only be taken at a terminal")
            .with("instead", "look on with `--look`"));
    };
    let mut tasks = JoinSet::new();
    let attachment = server.take(job, &mut tasks).await?;
    person
        .take(attachment)
        .await
        .map_err(|error| Failure::new(format!("the terminal cannot be used: {error}")))?;
    page(&format!("job {} is the agent's again\n", escape::line(job)))?;
    Ok(0)
}

fn page(text: &str) -> Result<(), Failure> {
    crate::print::write_all(io::stdout().lock(), text)
}

/// Prints the output of a job until it ends.
async fn print_output(server: &Server, job: &str) -> Result<u8, Failure> {
    let gone = |error: io::Error| Failure::new(format!("the server {} has exited: {error}", server.pid));
    let mut connection = server
        .connect(&ClientMessage::Look(job.to_owned()))
        .await
        .map_err(gone)?;
    loop {
        match connection.next().await.map_err(gone)? {
            Some(ServerMessage::Output(text)) => page(&Escaped::new(&plain_text(&text).replace("\r\n", "\n")).text)?,
            Some(ServerMessage::Ended(how)) => {
                crate::print::write_all(io::stderr().lock(), &format!("{}\n", escape::line(&how)))?;
                return Ok(0);
            }
            Some(ServerMessage::Refused(why)) => return Err(Failure::new(escape::line(&why))),
            Some(_) | None => return Err(Failure::new(format!("the server {} has exited", server.pid))),
        }
    }
}

/// A change of the open questions of the server with this index.
enum QuestionEvent {
    Asked(usize, Question),
    Withdrawn(usize, u64),
}

/// Puts the questions of these servers to the person, one after another, until all servers have exited.
async fn answer_questions(servers: Vec<Server>) -> Result<u8, Failure> {
    let Some(person) = Person::find() else { return Ok(0) };
    page("waiting for questions; Ctrl-C ends it\n")?;
    let (sender, mut events) = mpsc::channel(64);
    let mut tasks = JoinSet::new();
    let mut writers = Vec::new();
    for (index, server) in servers.iter().enumerate() {
        let connection = server.connect(&ClientMessage::Wait).await;
        let Ok(Connection { mut read, write }) = connection else {
            writers.push(None);
            continue;
        };
        writers.push(Some(write));
        let sender = sender.clone();
        tasks.spawn(async move {
            while let Ok(Some(message)) = protocol::read::<ServerMessage>(&mut read).await {
                let event = match message {
                    ServerMessage::Question(question) => QuestionEvent::Asked(index, question),
                    ServerMessage::Withdrawn(number) => QuestionEvent::Withdrawn(index, number),
                    _ => return,
                };
                if sender.send(event).await.is_err() {
                    return;
                }
            }
        });
    }
    drop(sender);
    let keyboard_tasks = Arc::new(Mutex::new(JoinSet::new()));
    let mut open: Vec<(usize, Question)> = Vec::new();
    loop {
        if open.is_empty() {
            match events.recv().await {
                Some(QuestionEvent::Asked(server, question)) => open.push((server, question)),
                Some(QuestionEvent::Withdrawn(..)) => {}
                None => break,
            }
            continue;
        }
        let (server, question) = open.remove(0);
        let number = question.number;
        let asking = async {
            match &question.approval {
                Some(approval) => person.approve(&approval.shown, approval.host).await,
                None => person.ask(servers[server].question(question, &keyboard_tasks)).await,
            }
        };
        let mut asking = std::pin::pin!(asking);
        let reply = loop {
            tokio::select! {
                reply = &mut asking => break Some(reply),
                event = events.recv() => match event {
                    Some(QuestionEvent::Asked(server, question)) => open.push((server, question)),
                    Some(QuestionEvent::Withdrawn(from, withdrawn)) if (from, withdrawn) == (server, number) => break None,
                    Some(QuestionEvent::Withdrawn(from, withdrawn)) => {
                        open.retain(|(server, question)| (*server, question.number) != (from, withdrawn));
                    },
                    None => break None,
                },
            }
        };
        match reply {
            None => page("\nthe question was withdrawn\n")?,
            Some(HumanReply::Nobody) => break,
            Some(reply) => {
                let message = ClientMessage::Answer {
                    question: number,
                    reply: reply.into(),
                };
                // Only an answer that is in the socket is reported as given: a person who ends this program right
                // after reading "answered" must not take the answer along.
                let sent = match &mut writers[server] {
                    Some(writer) => protocol::send(writer, &message).await.is_ok(),
                    None => false,
                };
                page(if sent {
                    "answered\n"
                } else {
                    "the server has exited; the answer was not sent\n"
                })?;
            }
        }
    }
    page("all servers have exited\n")?;
    Ok(0)
}
