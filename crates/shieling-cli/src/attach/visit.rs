//! The other side of the door: one server, as a person's terminal reaches it.

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

use super::wire::{self, Ask, Bytes, Question, Say};
use crate::words::Failure;

/// A server that runs.
#[derive(Debug, Clone)]
pub(super) struct Server {
    path: PathBuf,
    /// Its number, as its socket's name has it.
    pub(super) pid: String,
}

/// A connection about one subject.
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

    /// Begins a subject.
    ///
    /// # Errors
    /// Nobody is there.
    pub(super) async fn about(&self, ask: &Ask) -> io::Result<Connection> {
        let (read, write) = UnixStream::connect(&self.path).await?.into_split();
        let mut connection = Connection {
            read: BufReader::new(read),
            write,
        };
        wire::send(&mut connection.write, ask).await?;
        Ok(connection)
    }

    /// What there is; none if nobody is there, or it does not let us in.
    pub(super) async fn list(&self) -> Option<Vec<String>> {
        let mut connection = self.about(&Ask::List).await.ok()?;
        match connection.next().await {
            Ok(Some(Say::Listed(lines))) => Some(lines),
            Ok(_) | Err(_) => None,
        }
    }

    /// Takes the keyboard of a job. The tasks carry what is typed and shown.
    pub(super) async fn take(&self, job: &str, tasks: &mut JoinSet<()>) -> Result<Attachment, Failure> {
        let gone = |error: io::Error| Failure::new(format!("the server {} went away: {error}", self.pid));
        let mut connection = self.about(&Ask::Take(job.to_owned())).await.map_err(gone)?;
        match connection.next().await.map_err(gone)? {
            Some(Say::Taken(window)) => Ok(connection.carry(window.into(), tasks)),
            Some(Say::Refused(why)) => Err(Failure::new(crate::escape::line(&why))),
            Some(_) | None => Err(Failure::new(format!("the server {} let nobody in", self.pid))),
        }
    }

    /// The question, with a way to the job's keyboard. That way holds its tasks.
    pub(super) fn question(&self, question: Question, taken: &Arc<Mutex<JoinSet<()>>>) -> HumanQuestion {
        let job: Option<JobId> = question.job.as_deref().and_then(|job| job.parse().ok());
        let way = job.clone().filter(|_| question.terminal).map(|job| {
            let way: Arc<dyn TakeOver> = Arc::new(Remote {
                server: self.clone(),
                job,
                tasks: Arc::clone(taken),
            });
            way
        });
        HumanQuestion {
            prompt: question.prompt,
            job,
            screen: question.screen.map(|picture| Screen {
                size: picture.window.into(),
                text: picture.text,
                cursor: None,
                alternate: false,
                title: picture.title,
            }),
            terminal: way,
        }
    }
}

impl Connection {
    /// What is said next; none if nothing more is.
    pub(super) async fn next(&mut self) -> io::Result<Option<Say>> {
        wire::read(&mut self.read).await
    }

    /// Carries between a terminal that was taken and whoever has it. It ends with either.
    fn carry(self, size: TerminalSize, tasks: &mut JoinSet<()>) -> Attachment {
        let (attachment, shown, deeds) = Attachment::for_testing(size);
        tasks.spawn(carry(self, shown, deeds));
        attachment
    }
}

async fn carry(connection: Connection, shown: mpsc::Sender<ScreenUpdate>, mut deeds: mpsc::Receiver<InputEvent>) {
    let Connection { mut read, mut write } = connection;
    let showing = async {
        while let Ok(Some(said)) = wire::read::<Say>(&mut read).await {
            let sent = match said {
                Say::Anew(Bytes(bytes)) => shown.send(ScreenUpdate::Reset(bytes)).await,
                Say::More(Bytes(bytes)) => shown.send(ScreenUpdate::Append(bytes)).await,
                _ => return,
            };
            if sent.is_err() {
                return;
            }
        }
    };
    let typing = async {
        while let Some(deed) = deeds.recv().await {
            let ask = match deed {
                InputEvent::Type(keys) => Ask::Typed(Bytes(keys)),
                InputEvent::Resize(size) => Ask::Resized(size.into()),
                // The server sees by itself what was missed.
                InputEvent::Refresh => continue,
            };
            if wire::send(&mut write, &ask).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = showing => {}
        () = typing => {}
    }
}

/// The way to a keyboard at a server.
struct Remote {
    server: Server,
    job: JobId,
    tasks: Arc<Mutex<JoinSet<()>>>,
}

impl TakeOver for Remote {
    fn attach(&self) -> Result<Attachment, JobError> {
        let job = self.job.to_string();
        let mut tasks = self.tasks.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let taking = self.server.take(&job, &mut tasks);
        // It answers at once, or is gone: nothing else is done on this thread meanwhile.
        tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(taking))
            .map_err(|_| JobError::PersonHolds { job: self.job.clone() })
    }
}

/// The servers that seem to run.
pub(super) fn servers(state: &Path) -> Vec<Server> {
    let paths = crate::config::files::sockets(&super::doors(state));
    paths.into_iter().map(Server::at).collect()
}
