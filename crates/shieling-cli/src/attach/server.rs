//! The server's end of `shieling attach`: a socket on which a person in another terminal connects.
//!
//! Accepts connections from the user who owns the server, and from no process that runs under a supervisor of
//! Shieling: otherwise an agent could answer its own questions.

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

use super::protocol::{self, Bytes, ClientMessage, Question, ServerMessage};
use super::question_queue::QuestionQueue;
use crate::config::files;
use crate::escape;

/// The largest number of connections at a time; further ones are closed at once.
const MAX_CONNECTIONS: usize = 32;

/// How long one view waits for output before it checks that the person is still connected.
const VIEW_WAIT: std::time::Duration = std::time::Duration::from_millis(500);

/// The socket of this process. Removed when dropped.
#[derive(Debug)]
pub(crate) struct AttachServer {
    listener: UnixListener,
    path: PathBuf,
}

impl AttachServer {
    /// Binds a socket under the state directory, and removes the sockets of servers that have exited.
    ///
    /// # Errors
    /// If the directory or the socket cannot be made.
    pub(crate) fn open(state: &Path) -> io::Result<Self> {
        let directory = super::protocol::socket_directory(state);
        files::private(&directory)?;
        for path in files::sockets(&directory) {
            // Its server has exited, and the name is never used again: it contains a random number.
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

    /// Serves connections until the future is dropped.
    pub(crate) async fn serve(&self, shieling: Arc<Shieling>, queue: QuestionQueue) {
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                Some(_) = connections.join_next() => {}
                accepted = self.listener.accept() => {
                    let Ok((stream, _)) = accepted else {
                        // Out of descriptors, for example, which may pass.
                        tokio::time::sleep(VIEW_WAIT).await;
                        continue;
                    };
                    if connections.len() < MAX_CONNECTIONS && is_permitted(&stream) {
                        let (shieling, queue) = (Arc::clone(&shieling), queue.clone());
                        // An error ends this connection and nothing else.
                        connections.spawn(async move { drop(serve_connection(stream, &shieling, &queue).await) });
                    }
                }
            }
        }
    }
}

impl Drop for AttachServer {
    fn drop(&mut self) {
        files::remove_socket(&self.path);
    }
}

/// Whether the peer is this user, and not a command that runs under Shieling.
fn is_permitted(stream: &UnixStream) -> bool {
    let Ok(peer) = stream.peer_cred() else { return false };
    let Some(pid) = peer.pid().and_then(rustix::process::Pid::from_raw) else {
        return false;
    };
    peer.uid() == rustix::process::geteuid().as_raw() && !files::is_supervised(pid)
}

async fn serve_connection(stream: UnixStream, shieling: &Shieling, queue: &QuestionQueue) -> io::Result<()> {
    let (read, mut write) = stream.into_split();
    let mut read = BufReader::new(read);
    match protocol::read(&mut read).await? {
        Some(ClientMessage::List) => protocol::send(&mut write, &ServerMessage::Listed(list_lines(shieling))).await,
        Some(ClientMessage::Wait) => send_questions(&mut read, &mut write, queue).await,
        Some(ClientMessage::Take(job)) => {
            match job_of(&job).and_then(|job| shieling.attach(&job).map_err(|error| error.to_string())) {
                Ok(attachment) => serve_keyboard(&mut read, &mut write, attachment).await,
                Err(why) => protocol::send(&mut write, &ServerMessage::Refused(why)).await,
            }
        }
        Some(ClientMessage::Look(job)) => send_output(&mut write, shieling, &job).await,
        Some(ClientMessage::Answer { .. } | ClientMessage::Typed(_) | ClientMessage::Resized(_)) | None => Ok(()),
    }
}

fn job_of(name: &str) -> Result<JobId, String> {
    name.parse()
        .map_err(|error: shieling::session::IdError| error.to_string())
}

/// The sessions and jobs, one per line.
fn list_lines(shieling: &Shieling) -> Vec<String> {
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

/// Sends the open questions and takes answers, until the person disconnects.
async fn send_questions(
    read: &mut (impl AsyncBufRead + Unpin),
    write: &mut (impl AsyncWrite + Unpin),
    queue: &QuestionQueue,
) -> io::Result<()> {
    let mut person = queue.connect();
    let mut sent: Vec<u64> = Vec::new();
    let (messages, mut received) = mpsc::channel(1);
    let exchange = async {
        let mut writable = true;
        loop {
            // A person who has disconnected may have answered before: their messages are read to the end.
            if writable {
                writable = send_changes(write, &queue.open(), &mut sent).await.is_ok();
            }
            tokio::select! {
                () = person.changed() => {}
                message = received.recv() => match message {
                    Some(ClientMessage::Answer { question, reply }) => person.answer(question, reply.into()),
                    Some(_) | None => return io::Result::Ok(()),
                },
            }
        }
    };
    tokio::select! {
        ended = exchange => ended,
        never = forward(read, messages) => match never {},
    }
}

/// Sends the questions that were withdrawn and those that are new since the last call.
async fn send_changes(write: &mut (impl AsyncWrite + Unpin), open: &[Question], sent: &mut Vec<u64>) -> io::Result<()> {
    for withdrawn in sent.extract_if(.., |number| open.iter().all(|question| question.number != *number)) {
        protocol::send(write, &ServerMessage::Withdrawn(withdrawn)).await?;
    }
    for question in open {
        if !sent.contains(&question.number) {
            sent.push(question.number);
            protocol::send(write, &ServerMessage::Question(question.clone())).await?;
        }
    }
    Ok(())
}

/// Forwards the messages of a connection, and closes the channel at its end. Never completes: the receiver decides
/// when the connection is over, after the last message.
async fn forward(read: &mut (impl AsyncBufRead + Unpin), messages: mpsc::Sender<ClientMessage>) -> Infallible {
    while let Ok(Some(message)) = protocol::read::<ClientMessage>(read).await {
        if messages.send(message).await.is_err() {
            break;
        }
    }
    drop(messages);
    std::future::pending().await
}

/// Carries keys and screen between a person and a job, until either side ends.
async fn serve_keyboard(
    read: &mut (impl AsyncBufRead + Unpin),
    write: &mut (impl AsyncWrite + Unpin),
    mut attachment: Attachment,
) -> io::Result<()> {
    protocol::send(write, &ServerMessage::Taken(attachment.size().into())).await?;
    let (messages, mut received) = mpsc::channel(16);
    let exchange = async {
        loop {
            tokio::select! {
                shown = attachment.next() => match shown {
                    Some(ScreenUpdate::Reset(bytes)) => protocol::send(write, &ServerMessage::Anew(Bytes(bytes))).await?,
                    Some(ScreenUpdate::Append(bytes)) => protocol::send(write, &ServerMessage::More(Bytes(bytes))).await?,
                    None => return protocol::send(write, &ServerMessage::Ended("the job has ended".to_owned())).await,
                },
                message = received.recv() => match message {
                    // Keys that a program does not read are lost, as on any terminal.
                    Some(ClientMessage::Typed(Bytes(keys))) => drop(attachment.write(&keys)),
                    Some(ClientMessage::Resized(window)) => drop(attachment.resize(window.into())),
                    Some(_) | None => return io::Result::Ok(()),
                },
            }
        }
    };
    tokio::select! {
        ended = exchange => ended,
        never = forward(read, messages) => match never {},
    }
}

/// Sends the output of a job from the first kept byte on, until the job has ended.
async fn send_output(write: &mut (impl AsyncWrite + Unpin), shieling: &Shieling, job: &str) -> io::Result<()> {
    let job = match job_of(job) {
        Ok(job) => job,
        Err(why) => return protocol::send(write, &ServerMessage::Refused(why)).await,
    };
    let mut cursor = 0;
    loop {
        let request = ViewRequest {
            cursor: Some(cursor),
            wait: VIEW_WAIT,
            until: Until::Output,
            ..ViewRequest::new(job.clone())
        };
        let view = match shieling.peek(request).await {
            Ok(view) => view,
            Err(why) => return protocol::send(write, &ServerMessage::Refused(why.to_string())).await,
        };
        if view.missed_bytes > 0 {
            let missed = format!("\n[{} bytes are no longer kept]\n", view.missed_bytes);
            protocol::send(write, &ServerMessage::Output(missed)).await?;
        }
        let ended = view.cursor == cursor && view.outcome.status != shieling::outcome::Status::Running;
        // Sent even if empty: a write is how a closed connection is noticed.
        protocol::send(
            write,
            &ServerMessage::Output(view.outcome.stdout + &view.outcome.stderr),
        )
        .await?;
        cursor = view.cursor;
        if ended {
            return protocol::send(
                write,
                &ServerMessage::Ended(format!("job {job}: {}", view.outcome.status.name())),
            )
            .await;
        }
    }
}

#[cfg(test)]
mod tests {
    use shieling::session::{Human as _, HumanQuestion, HumanReply};

    use super::*;

    #[tokio::test]
    async fn an_answer_counts_although_its_sender_left_before_anything_more_could_be_sent() {
        let queue = QuestionQueue::default();
        // A pipe whose reader is gone refuses every write.
        let (mut write, gone) = tokio::io::duplex(64);
        drop(gone);
        let (mut person, read) = tokio::io::duplex(1024);
        let mut read = BufReader::new(read);
        let waiting = send_questions(&mut read, &mut write, &queue);
        let asking = queue.ask(HumanQuestion {
            prompt: "which?".to_owned(),
            job: None,
            screen: None,
            terminal: None,
        });
        let answering = async {
            let mut watching = queue.connect();
            while queue.open().is_empty() {
                watching.changed().await;
            }
            let ask = ClientMessage::Answer {
                question: queue.open()[0].number,
                reply: protocol::Reply::Answer("blue".to_owned()),
            };
            protocol::send(&mut person, &ask).await.expect("the buffer has room");
            drop((watching, person));
        };
        let (waited, reply, ()) = tokio::join!(waiting, asking, answering);
        waited.expect("a person who leaves is no failure");
        assert_eq!(reply, HumanReply::Answer("blue".to_owned()));
    }
}
