//! The client's end of `shieling attach`: connections to one running server.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use shieling::session::{
    Attachment, HumanQuestion, InputEvent, JobError, JobId, Screen, ScreenUpdate, TakeOver, TerminalSize,
};
use tokio::io::BufReader;
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::protocol::{self, Bytes, ClientMessage, Question, ServerMessage};
use crate::words::Failure;

/// A running server.
#[derive(Debug, Clone)]
pub(super) struct Server {
    path: PathBuf,
    /// The process id, taken from the name of the socket.
    pub(super) pid: String,
}

/// A connection to a server, about one subject.
pub(super) struct Connection {
    pub(super) read: BufReader<OwnedReadHalf>,
    pub(super) write: OwnedWriteHalf,
}

impl Server {
    pub(super) fn at(path: PathBuf) -> Self {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let pid = name.split('-').next().unwrap_or_default().to_owned();
        Self { path, pid }
    }

    /// Connects and sends the first message, which states the subject.
    ///
    /// # Errors
    /// If the server has exited.
    pub(super) async fn connect(&self, first: &ClientMessage) -> io::Result<Connection> {
        let (read, write) = UnixStream::connect(&self.path).await?.into_split();
        let mut connection = Connection {
            read: BufReader::new(read),
            write,
        };
        protocol::send(&mut connection.write, first).await?;
        Ok(connection)
    }

    /// Lists sessions and jobs; `None` if the server has exited or refuses the connection.
    pub(super) async fn list(&self) -> Option<Vec<String>> {
        let mut connection = self.connect(&ClientMessage::List).await.ok()?;
        match connection.next().await {
            Ok(Some(ServerMessage::Listed(lines))) => Some(lines),
            Ok(_) | Err(_) => None,
        }
    }

    /// Takes the keyboard of a job. `tasks` receives the task that carries keys and screen.
    pub(super) async fn take(&self, job: &str, tasks: &mut JoinSet<()>) -> Result<Attachment, Failure> {
        let gone = |error: io::Error| Failure::new(format!("the server {} has exited: {error}", self.pid));
        let mut connection = self.connect(&ClientMessage::Take(job.to_owned())).await.map_err(gone)?;
        match connection.next().await.map_err(gone)? {
            Some(ServerMessage::Taken(window)) => Ok(connection.carry(window.into(), tasks)),
            Some(ServerMessage::Refused(why)) => Err(Failure::new(crate::escape::line(&why))),
            Some(_) | None => Err(Failure::new(format!("the server {} refused the connection", self.pid))),
        }
    }

    /// Makes the question to show, with a way to take the job's keyboard. `keyboard_tasks` receives the tasks that
    /// taking it starts.
    pub(super) fn question(&self, question: Question, keyboard_tasks: &Arc<Mutex<JoinSet<()>>>) -> HumanQuestion {
        let job: Option<JobId> = question.job.as_deref().and_then(|job| job.parse().ok());
        let terminal = job.clone().filter(|_| question.terminal).map(|job| {
            let terminal: Arc<dyn TakeOver> = Arc::new(RemoteKeyboard {
                server: self.clone(),
                job,
                tasks: Arc::clone(keyboard_tasks),
            });
            terminal
        });
        HumanQuestion {
            prompt: question.prompt,
            job,
            screen: question.screen.map(|screen| Screen {
                size: screen.window.into(),
                text: screen.text,
                cursor: None,
                alternate: false,
                title: screen.title,
            }),
            terminal,
        }
    }
}

impl Connection {
    /// Reads the next message; `None` at the end of the connection.
    pub(super) async fn next(&mut self) -> io::Result<Option<ServerMessage>> {
        protocol::read(&mut self.read).await
    }

    /// Starts the task that carries keys and screen. Ends when either side closes.
    fn carry(self, size: TerminalSize, tasks: &mut JoinSet<()>) -> Attachment {
        let (attachment, shown, events) = Attachment::for_testing(size);
        tasks.spawn(carry(self, shown, events));
        attachment
    }
}

async fn carry(connection: Connection, shown: mpsc::Sender<ScreenUpdate>, mut events: mpsc::Receiver<InputEvent>) {
    let Connection { mut read, mut write } = connection;
    let showing = async {
        while let Ok(Some(said)) = protocol::read::<ServerMessage>(&mut read).await {
            let sent = match said {
                ServerMessage::Anew(Bytes(bytes)) => shown.send(ScreenUpdate::Reset(bytes)).await,
                ServerMessage::More(Bytes(bytes)) => shown.send(ScreenUpdate::Append(bytes)).await,
                _ => return,
            };
            if sent.is_err() {
                return;
            }
        }
    };
    let typing = async {
        while let Some(event) = events.recv().await {
            let message = match event {
                InputEvent::Type(keys) => ClientMessage::Typed(Bytes(keys)),
                InputEvent::Resize(size) => ClientMessage::Resized(size.into()),
                // The server itself sends the whole screen where output was missed.
                InputEvent::Refresh => continue,
            };
            if protocol::send(&mut write, &message).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = showing => {}
        () = typing => {}
    }
}

/// Takes the keyboard of a job of a server.
struct RemoteKeyboard {
    server: Server,
    job: JobId,
    tasks: Arc<Mutex<JoinSet<()>>>,
}

impl TakeOver for RemoteKeyboard {
    fn attach(&self) -> Result<Attachment, JobError> {
        let job = self.job.to_string();
        let mut tasks = self.tasks.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let taking = self.server.take(&job, &mut tasks);
        // The server answers at once or has exited, so blocking this thread is short.
        tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(taking))
            .map_err(|_| JobError::PersonHolds { job: self.job.clone() })
    }
}

/// The servers that have a socket; some may have exited.
pub(super) fn servers(state: &Path) -> Vec<Server> {
    let paths = crate::config::files::sockets(&super::protocol::socket_directory(state));
    paths.into_iter().map(Server::at).collect()
}
