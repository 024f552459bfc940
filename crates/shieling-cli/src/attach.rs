//! `shieling attach`: a person in another terminal steps into a server that runs, whose own streams
//! belong to its protocol. Looks at a job, takes its keyboard, answers what an agent asks.

mod desk;
mod door;
mod visit;
mod wire;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use shieling::output::plain_text;
use shieling::session::{Human as _, HumanReply};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

pub(crate) use desk::Desk;
pub(crate) use door::Door;

use crate::escape::{self, Escaped};
use crate::options::Attach;
use crate::person::Person;
use crate::run::{self, SIGINT, SIGTERM};
use crate::words::Failure;
use visit::{Server, servers};
use wire::{Ask, Question, Say};

/// Where the sockets of servers are.
fn doors(state: &Path) -> PathBuf {
    state.join("attach")
}

/// Attaches, until the person has seen enough.
pub(crate) fn attach(options: &Attach) -> Result<u8, Failure> {
    let state = run::state_directory()
        .ok_or_else(|| Failure::new("no server can be found: neither XDG_STATE_HOME nor HOME is set"))?;
    let runtime = run::serving()?;
    let done = runtime.block_on(async {
        let no_signals = |error: io::Error| Failure::new(format!("signals cannot be received: {error}"));
        let mut interrupt = signal(SignalKind::interrupt()).map_err(no_signals)?;
        let mut terminate = signal(SignalKind::terminate()).map_err(no_signals)?;
        tokio::select! {
            done = attached(options, &state) => done,
            _ = interrupt.recv() => Ok(128 + SIGINT),
            _ = terminate.recv() => Ok(128 + SIGTERM),
        }
    });
    // A question on the terminal may still wait for its answer, which nobody needs any more.
    runtime.shutdown_background();
    done
}

async fn attached(options: &Attach, state: &Path) -> Result<u8, Failure> {
    let mut found = Vec::new();
    for server in servers(state) {
        let asked = options.server.as_ref().is_none_or(|pid| *pid == server.pid);
        if asked && let Some(lines) = server.list().await {
            found.push((server, lines));
        }
    }
    if found.is_empty() {
        return Err(Failure::new("no server runs that you could step into").with(
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
        return answer(found.into_iter().map(|(server, _)| server).collect()).await;
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
        return look(&server, job).await;
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
    crate::write_all(io::stdout().lock(), text)
}

/// Prints what a job writes.
async fn look(server: &Server, job: &str) -> Result<u8, Failure> {
    let gone = |error: io::Error| Failure::new(format!("the server {} went away: {error}", server.pid));
    let mut connection = server.about(&Ask::Look(job.to_owned())).await.map_err(gone)?;
    loop {
        match connection.next().await.map_err(gone)? {
            Some(Say::Output(text)) => page(&Escaped::new(&plain_text(&text).replace("\r\n", "\n")).text)?,
            Some(Say::Ended(how)) => {
                crate::write_all(io::stderr().lock(), &format!("{}\n", escape::line(&how)))?;
                return Ok(0);
            }
            Some(Say::Refused(why)) => return Err(Failure::new(escape::line(&why))),
            Some(_) | None => return Err(Failure::new(format!("the server {} went away", server.pid))),
        }
    }
}

/// What comes from a server.
enum News {
    Asked(usize, Question),
    Withdrawn(usize, u64),
}

/// Answers what is asked, one question after the other, until all servers are gone.
async fn answer(servers: Vec<Server>) -> Result<u8, Failure> {
    let Some(person) = Person::find() else { return Ok(0) };
    page("waiting for questions; Ctrl-C ends it\n")?;
    let (tell, mut told) = mpsc::channel(64);
    let mut tasks = JoinSet::new();
    let mut writers = Vec::new();
    for (index, server) in servers.iter().enumerate() {
        let connection = server.about(&Ask::Wait).await;
        let Ok(visit::Connection { mut read, write }) = connection else {
            writers.push(None);
            continue;
        };
        writers.push(Some(write));
        let tell = tell.clone();
        tasks.spawn(async move {
            while let Ok(Some(said)) = wire::read::<Say>(&mut read).await {
                let news = match said {
                    Say::Question(question) => News::Asked(index, question),
                    Say::Withdrawn(number) => News::Withdrawn(index, number),
                    _ => return,
                };
                if tell.send(news).await.is_err() {
                    return;
                }
            }
        });
    }
    drop(tell);
    let taken = Arc::new(Mutex::new(JoinSet::new()));
    let mut open: Vec<(usize, Question)> = Vec::new();
    loop {
        if open.is_empty() {
            match told.recv().await {
                Some(News::Asked(server, question)) => open.push((server, question)),
                Some(News::Withdrawn(..)) => {}
                None => break,
            }
            continue;
        }
        let (server, question) = open.remove(0);
        let number = question.number;
        let asking = person.ask(servers[server].question(question, &taken));
        let mut asking = std::pin::pin!(asking);
        let reply = loop {
            tokio::select! {
                reply = &mut asking => break Some(reply),
                news = told.recv() => match news {
                    Some(News::Asked(server, question)) => open.push((server, question)),
                    Some(News::Withdrawn(from, gone)) if (from, gone) == (server, number) => break None,
                    Some(News::Withdrawn(from, gone)) => open.retain(|(server, question)| (*server, question.number) != (from, gone)),
                    None => break None,
                },
            }
        };
        match reply {
            None => page("\nthe question was taken back\n")?,
            Some(HumanReply::Nobody) => break,
            Some(reply) => {
                let ask = Ask::Answer {
                    question: number,
                    reply: reply.into(),
                };
                // Only an answer that is in the socket is reported as given: a person who ends this program right
                // after reading "answered" must not take the answer along.
                let sent = match &mut writers[server] {
                    Some(writer) => wire::send(writer, &ask).await.is_ok(),
                    None => false,
                };
                page(if sent {
                    "answered\n"
                } else {
                    "the server is gone; the answer was not sent\n"
                })?;
            }
        }
    }
    page("nobody asks any more\n")?;
    Ok(0)
}
