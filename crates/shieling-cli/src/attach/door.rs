//! The socket of a running server, at which a person in another terminal knocks. Lets in the user whose
//! server it is, and no process under a supervisor of Shieling: an agent that answered its own questions
//! would ask nobody.

use std::convert::Infallible;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use shieling::Shieling;
use shieling::session::{Attachment, JobId, JobInfo, ScreenUpdate, Until, ViewRequest};
use tokio::io::{AsyncBufRead, AsyncWrite, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::desk::Desk;
use super::wire::{self, Ask, Bytes, Say};
use crate::config::files;
use crate::escape;

/// The most connections at a time.
const AT_ONCE: usize = 32;

/// How long one look waits before it looks whether anybody still looks.
const LOOK: std::time::Duration = std::time::Duration::from_millis(500);

/// The door of this process, open until it is dropped.
#[derive(Debug)]
pub(crate) struct Door {
    listener: UnixListener,
    path: PathBuf,
}

impl Door {
    /// Opens one under the state directory, after the doors of servers that are gone were taken away.
    ///
    /// # Errors
    /// It cannot be made.
    pub(crate) fn open(state: &Path) -> io::Result<Self> {
        let directory = super::doors(state);
        files::private(&directory)?;
        for path in files::sockets(&directory) {
            // Nobody listens there any more, and nobody ever will: names are made once.
            if std::os::unix::net::UnixStream::connect(&path)
                .is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
            {
                files::remove_socket(&path);
            }
        }
        let mut random = [0; 8];
        rustix::rand::getrandom(&mut random[..], rustix::rand::GetRandomFlags::empty())?;
        let name = format!("{}-{:016x}.sock", std::process::id(), u64::from_ne_bytes(random));
        let path = directory.join(name);
        Ok(Self {
            listener: UnixListener::bind(&path)?,
            path,
        })
    }

    /// Lets people in until it is dropped.
    pub(crate) async fn serve(&self, shieling: Arc<Shieling>, desk: Desk) {
        let mut visits = JoinSet::new();
        loop {
            tokio::select! {
                Some(_) = visits.join_next() => {}
                visitor = self.listener.accept() => {
                    let Ok((visitor, _)) = visitor else {
                        // Too many open files, for example: not for ever.
                        tokio::time::sleep(LOOK).await;
                        continue;
                    };
                    if visits.len() < AT_ONCE && may_enter(&visitor) {
                        let (shieling, desk) = (Arc::clone(&shieling), desk.clone());
                        // Whatever goes wrong with a visitor, the visit ends.
                        visits.spawn(async move { drop(visit(visitor, &shieling, &desk).await) });
                    }
                }
            }
        }
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        files::remove_socket(&self.path);
    }
}

/// Whether it is this user, and no command that runs under a Shieling.
fn may_enter(visitor: &UnixStream) -> bool {
    let Ok(peer) = visitor.peer_cred() else { return false };
    let Some(pid) = peer.pid().and_then(rustix::process::Pid::from_raw) else {
        return false;
    };
    peer.uid() == rustix::process::geteuid().as_raw() && !files::is_supervised(pid)
}

async fn visit(visitor: UnixStream, shieling: &Shieling, desk: &Desk) -> io::Result<()> {
    let (read, mut write) = visitor.into_split();
    let mut read = BufReader::new(read);
    match wire::read(&mut read).await? {
        Some(Ask::List) => wire::send(&mut write, &Say::Listed(listed(shieling))).await,
        Some(Ask::Wait) => wait(&mut read, &mut write, desk).await,
        Some(Ask::Take(job)) => {
            match job_of(&job).and_then(|job| shieling.attach(&job).map_err(|error| error.to_string())) {
                Ok(attachment) => taken(&mut read, &mut write, attachment).await,
                Err(why) => wire::send(&mut write, &Say::Refused(why)).await,
            }
        }
        Some(Ask::Look(job)) => look(&mut write, shieling, &job).await,
        Some(Ask::Answer { .. } | Ask::Typed(_) | Ask::Resized(_)) | None => Ok(()),
    }
}

fn job_of(name: &str) -> Result<JobId, String> {
    name.parse()
        .map_err(|error: shieling::session::IdError| error.to_string())
}

/// What there is, in lines.
fn listed(shieling: &Shieling) -> Vec<String> {
    let all = shieling.list();
    let mut lines = Vec::new();
    for session in &all.sessions {
        let busy = session
            .job
            .as_ref()
            .map_or_else(|| "idle".to_owned(), |job| format!("busy with job {job}"));
        let cwd = escape::headline(&session.cwd.to_string_lossy(), 100);
        lines.push(format!("session {:<12} {busy}, in {cwd}", session.session.to_string()));
    }
    lines.extend(all.jobs.iter().map(job_line));
    lines
}

fn job_line(job: &JobInfo) -> String {
    let code = job.exit_code.map(|code| format!(" {code}")).unwrap_or_default();
    let terminal = if job.terminal { ", on a terminal" } else { "" };
    let person = if job.person { ", a person has its keyboard" } else { "" };
    let command = escape::headline(&job.command, 60);
    format!(
        "job     {:<12} {}{code}{terminal}{person}: {command}",
        job.job.to_string(),
        job.status.name()
    )
}

/// Tells a person what is asked, and takes their answers, until they go.
async fn wait(
    read: &mut (impl AsyncBufRead + Unpin),
    write: &mut (impl AsyncWrite + Unpin),
    desk: &Desk,
) -> io::Result<()> {
    let mut sitting = desk.sit();
    let mut told: Vec<u64> = Vec::new();
    let (asks, mut asked) = mpsc::channel(1);
    let telling = async {
        loop {
            let open = desk.open();
            for gone in told.extract_if(.., |number| open.iter().all(|question| question.number != *number)) {
                wire::send(write, &Say::Withdrawn(gone)).await?;
            }
            for question in open {
                if !told.contains(&question.number) {
                    told.push(question.number);
                    wire::send(write, &Say::Question(question)).await?;
                }
            }
            tokio::select! {
                () = sitting.changed() => {}
                ask = asked.recv() => match ask {
                    Some(Ask::Answer { question, reply }) => sitting.answer(question, reply.into()),
                    Some(_) | None => return io::Result::Ok(()),
                },
            }
        }
    };
    tokio::select! {
        ended = telling => ended,
        never = hear(read, asks) => match never {},
    }
}

/// Passes on what is asked, each line whole. The last that was asked is heard before the end is.
async fn hear(read: &mut (impl AsyncBufRead + Unpin), asks: mpsc::Sender<Ask>) -> Infallible {
    while let Ok(Some(ask)) = wire::read::<Ask>(read).await {
        if asks.send(ask).await.is_err() {
            break;
        }
    }
    drop(asks);
    std::future::pending().await
}

/// The keyboard in a person's hands, until they give it back by going.
async fn taken(
    read: &mut (impl AsyncBufRead + Unpin),
    write: &mut (impl AsyncWrite + Unpin),
    mut attachment: Attachment,
) -> io::Result<()> {
    wire::send(write, &Say::Taken(attachment.size().into())).await?;
    let (asks, mut asked) = mpsc::channel(16);
    let showing = async {
        loop {
            tokio::select! {
                shown = attachment.next() => match shown {
                    Some(ScreenUpdate::Reset(bytes)) => wire::send(write, &Say::Anew(Bytes(bytes))).await?,
                    Some(ScreenUpdate::Append(bytes)) => wire::send(write, &Say::More(Bytes(bytes))).await?,
                    None => return wire::send(write, &Say::Ended("it is over".to_owned())).await,
                },
                ask = asked.recv() => match ask {
                    // Keys that a program does not read are lost, as on any terminal.
                    Some(Ask::Typed(Bytes(keys))) => drop(attachment.write(&keys)),
                    Some(Ask::Resized(window)) => drop(attachment.resize(window.into())),
                    Some(_) | None => return io::Result::Ok(()),
                },
            }
        }
    };
    tokio::select! {
        ended = showing => ended,
        never = hear(read, asks) => match never {},
    }
}

/// Shows what a job writes, from the first byte that is kept on, until it is over.
async fn look(write: &mut (impl AsyncWrite + Unpin), shieling: &Shieling, job: &str) -> io::Result<()> {
    let job = match job_of(job) {
        Ok(job) => job,
        Err(why) => return wire::send(write, &Say::Refused(why)).await,
    };
    let mut cursor = 0;
    loop {
        let ask = ViewRequest {
            cursor: Some(cursor),
            wait: LOOK,
            until: Until::Output,
            ..ViewRequest::new(job.clone())
        };
        let view = match shieling.peek(ask).await {
            Ok(view) => view,
            Err(why) => return wire::send(write, &Say::Refused(why.to_string())).await,
        };
        if view.missed_bytes > 0 {
            let missed = format!("\n[{} bytes are not kept any more]\n", view.missed_bytes);
            wire::send(write, &Say::Output(missed)).await?;
        }
        let over = view.cursor == cursor && view.outcome.status != shieling::outcome::Status::Running;
        // Also when there is nothing: so it is seen that nobody looks any more.
        wire::send(write, &Say::Output(view.outcome.stdout + &view.outcome.stderr)).await?;
        cursor = view.cursor;
        if over {
            return wire::send(write, &Say::Ended(format!("job {job}: {}", view.outcome.status.name()))).await;
        }
    }
}
