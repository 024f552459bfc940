//! A container that runs already and is somebody else's: the agent program is copied in, executed, and removed as it
//! starts. Nothing of the container is changed, and nothing is left in it.

use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use serde_json::{Value, json};
use shieling_remote::transport::{Connection, Said};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::image;
use super::inner::{Inner, in_background};
use crate::attach::Output;
use crate::client::{Engine, escaped};
use crate::error::{ContainerError, EngineError, meant};
use crate::options::{Options, Preset, Reach};
use crate::spec::Image;

/// How long to wait between two looks at a program that starts.
const LOOKING: Duration = Duration::from_millis(5);

/// What a container is like into which the agent goes.
pub(super) async fn look(engine: &Engine, container: &str, options: &Options) -> Result<Image, ContainerError> {
    for (given, option) in [
        (!options.volumes.is_empty(), "--volume"),
        (options.memory.is_some(), "--memory"),
        (options.pids.is_some(), "--pids"),
        (options.cpu_thousandths.is_some(), "--cpus"),
        (options.runtime.is_some(), "--runtime"),
        (options.writable, "--writable"),
        (options.workspace.is_some(), "--workspace"),
        (options.unlimited, "--unlimited"),
        (options.per_command, "--per-command"),
        (options.preset == Preset::Plain, "--preset"),
        (options.privileged, "--privileged"),
        (!options.devices.is_empty(), "--device"),
        (!options.capabilities.is_empty(), "--cap-add"),
        (options.network == Reach::Host, "--network"),
        (matches!(options.network, Reach::Named(_)), "--engine-network"),
    ] {
        if given {
            return Err(ContainerError::Options {
                what: format!("`{option}` says how a container is made, and `--container` takes one that is there"),
                instead: format!("leave `{option}` out, or use `--image`"),
            });
        }
    }
    let found = match inspect(engine, container).await {
        Err(ContainerError::Engine(EngineError::Refused { status: 404, .. })) => {
            return Err(ContainerError::NotRunning {
                container: container.to_owned(),
                why: format!("is not known to {}", engine.name()),
            });
        }
        other => other?,
    };
    runs(container, &found)?;
    let used = found["Image"].as_str().unwrap_or_default();
    let of = engine
        .get(&format!("/images/{}/json", escaped(used)), "for an image")
        .await;
    if let Ok(of) = of {
        image::fits(engine, used, &of).await?;
    }
    Ok(Image {
        id: used.to_owned(),
        variables: Image::variables(&found["Config"]),
        user: found["Config"]["User"].as_str().unwrap_or_default().to_owned(),
        is_closed: found["HostConfig"]["NetworkMode"] == "none",
    })
}

async fn inspect(engine: &Engine, container: &str) -> Result<Value, ContainerError> {
    let path = format!("/containers/{}/json", escaped(container));
    engine.get(&path, "to inspect a container").await.map_err(meant)
}

fn runs(container: &str, found: &Value) -> Result<(), ContainerError> {
    let state = &found["State"];
    let why = if state["Paused"] == true {
        "is paused".to_owned()
    } else if state["Running"] == true {
        return Ok(());
    } else {
        format!("does not run; it is {}", state["Status"].as_str().unwrap_or("stopped"))
    };
    Err(ContainerError::NotRunning {
        container: container.to_owned(),
        why,
    })
}

/// Copies the agent in and executes it. `looked` is given what the engine tells of the container.
pub(super) async fn connect(
    inner: &Arc<Inner>,
    container: &str,
    looked: impl FnOnce(Value),
) -> Result<Connection, ContainerError> {
    let engine = &inner.engine;
    let found = inspect(engine, container).await?;
    runs(container, &found)?;
    // By its id: another one may get the name.
    let id = escaped(found["Id"].as_str().unwrap_or(container));
    looked(found);
    let directory = format!(".shieling-{}-{}", std::process::id(), unique());
    let mut failed = Vec::new();
    for place in ["", "/tmp", "/var/tmp", "/run", "/dev/shm"] {
        let left = Left {
            engine: engine.clone(),
            id: id.clone(),
            path: format!("{place}/{directory}/agent"),
            is_over: false,
        };
        // The archive goes past what is mounted in the container, and says nothing of it; a shell there does not.
        let copied = if failed.is_empty() {
            let at = if place.is_empty() { "/" } else { place };
            let path = format!("/containers/{id}/archive?path={}", escaped(at));
            engine
                .put(
                    &path,
                    archive(&directory, inner.agent.bytes()),
                    "to copy a file into a container",
                )
                .await
                .map_err(Failed::from)
        } else {
            pour(engine, &id, &left.path, inner.agent.bytes()).await
        };
        let started = match copied {
            Ok(()) => execute(inner, &id, left).await,
            // Dropped, it is removed in the background.
            Err(Failed::Engine(error)) => Err(Failed::Engine(error)),
            Err(Failed::Place(why)) => {
                // A part of it may be there, and would take the memory of the container.
                let mut left = left;
                left.is_over = true;
                remove_by_shell(engine, &id, &left.path).await;
                Err(Failed::Place(why))
            }
        };
        match started {
            Ok(connection) => return Ok(connection),
            Err(Failed::Place(why)) => failed.push(why),
            Err(Failed::Engine(error)) => {
                return Err(ContainerError::ProgramMayBeLeft {
                    error,
                    container: container.to_owned(),
                    directory: format!("{place}/{directory}"),
                });
            }
        }
    }
    Err(ContainerError::Agent {
        why: format!(
            "no place in the container `{container}` takes a program and lets it be executed: {}",
            failed.join("; ")
        ),
    })
}

/// Why the agent does not run in one place of the container.
enum Failed {
    /// That place does not take it; another one may.
    Place(String),
    /// The engine does not answer, whatever the place.
    Engine(EngineError),
}

impl From<EngineError> for Failed {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::Silent { .. } => Self::Engine(error),
            _ => Self::Place(error.to_string()),
        }
    }
}

/// A number that nobody in the container can know before its directory is made.
fn unique() -> u64 {
    std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), std::process::id())
}

/// An archive of a directory with the agent program in it, readable for everyone.
fn archive(directory: &str, program: &[u8]) -> Bytes {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let now = now.map_or(0, |now| now.as_secs());
    let mut bytes = Vec::with_capacity(program.len() + 4096);
    for (name, kind, content) in [
        (format!("{directory}/"), b'5', &[][..]),
        (format!("{directory}/agent"), b'0', program),
    ] {
        let mut header = [0_u8; 512];
        let mut put = |at: usize, text: &str| header[at..at + text.len()].copy_from_slice(text.as_bytes());
        put(0, &name);
        put(100, "0000755\0");
        put(108, "0000000\0");
        put(116, "0000000\0");
        put(124, &format!("{:011o}\0", content.len()));
        // By its age a later start knows what this one has left.
        put(136, &format!("{now:011o}\0"));
        put(148, "        ");
        put(257, "ustar\x0000");
        header[156] = kind;
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        bytes.extend(header);
        bytes.extend(content);
        bytes.resize(bytes.len().next_multiple_of(512), 0);
    }
    bytes.resize(bytes.len() + 1024, 0);
    bytes.into()
}

/// What an execution in the container is asked to be.
fn exec(command: &[String], user: Option<&str>) -> Value {
    let mut body = json!({
        "AttachStdin": true,
        "AttachStdout": true,
        "AttachStderr": true,
        "Tty": false,
        "Cmd": command,
    });
    if let Some(user) = user {
        body["User"] = json!(user);
    }
    body
}

/// Begins an execution, and gives its number and its streams.
async fn begin(
    engine: &Engine,
    id: &str,
    command: &[String],
    user: Option<&str>,
) -> Result<(String, crate::client::Hijacked), EngineError> {
    let body = exec(command, user);
    let made = engine
        .post(
            &format!("/containers/{id}/exec"),
            Some(&body),
            "to execute a program",
            engine.quick(),
        )
        .await?;
    let number = escaped(made["Id"].as_str().unwrap_or_default());
    let detached = json!({ "Detach": false, "Tty": false });
    let streams = engine
        .hijack(
            &format!("/exec/{number}/start"),
            Some(&detached),
            "to execute a program",
        )
        .await?;
    Ok((number, streams))
}

/// Writes the agent program through a shell in the container: as its first user, like the archive.
async fn pour(engine: &Engine, id: &str, path: &str, program: &[u8]) -> Result<(), Failed> {
    let script = "d=${1%/*}; umask 022; mkdir \"$d\" && cat > \"$1\" && chmod 755 \"$1\"".to_owned();
    let words = [
        "/bin/sh".to_owned(),
        "-c".to_owned(),
        script,
        "sh".to_owned(),
        path.to_owned(),
    ];
    let (number, streams) = begin(engine, id, &words, Some("0")).await?;
    let (reader, mut writer) = tokio::io::split(streams);
    let said = Said::default();
    let (mut output, mut nothing) = (Output::new(reader, said.clone()), Vec::new());
    let poured = async {
        let writing = async {
            writer.write_all(program).await?;
            writer.shutdown().await
        };
        let mut reading = pin!(output.read_to_end(&mut nothing));
        // A shell that cannot write there ends before it has read anything, and nothing takes the rest.
        tokio::select! {
            read = &mut reading => read.map(drop),
            written = writing => {
                written?;
                reading.await.map(drop)
            }
        }
    };
    match tokio::time::timeout(engine.quick(), poured).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => return Err(Failed::Place(format!("{path}: {error}; {}", said.text()))),
        Err(_) => return Err(Failed::Place(format!("{path}: nothing took the program"))),
    }
    let ended = engine
        .get(&format!("/exec/{number}/json"), "to inspect a program that it executes")
        .await;
    match ended {
        Ok(ended) if ended["ExitCode"] == 0 => Ok(()),
        Ok(_) => Err(Failed::Place(format!("{path}: {}", said.text()))),
        Err(error) => Err(error.into()),
    }
}

/// Executes the agent where it was put.
async fn execute(inner: &Arc<Inner>, id: &str, mut left: Left) -> Result<Connection, Failed> {
    let mut setup = inner.setup();
    setup.remove_itself = true;
    let words = setup.arguments();
    let command: Vec<String> = std::iter::once(left.path.clone())
        .chain(words.iter().map(|word| word.to_string_lossy().into_owned()))
        .collect();
    let begun = begin(&inner.engine, id, &command, inner.user.as_deref()).await;
    let (number, streams) = match begun {
        Ok(begun) => begun,
        Err(error) => {
            let failed = Failed::from(error);
            if matches!(failed, Failed::Place(_)) {
                left.remove().await;
            }
            return Err(failed);
        }
    };
    if !runs_now(&inner.engine, &number).await? {
        left.remove().await;
        return Err(Failed::Place(format!("`{}` cannot be executed", left.path)));
    }
    if inner.is_root() {
        // It has removed its file as it started.
        left.is_over = true;
    } else {
        // Its user may not: the file belongs to the first user.
        left.remove().await;
    }
    let (reader, writer) = tokio::io::split(streams);
    let said = Said::default();
    Ok(Connection::new(Output::new(reader, said.clone()), writer).with_said(said))
}

/// Whether a program was executed. The streams are there before that is known, and what the engine says of a failure
/// comes on them.
async fn runs_now(engine: &Engine, number: &str) -> Result<bool, EngineError> {
    let begun = Instant::now();
    while begun.elapsed() < engine.quick() {
        let looked = engine
            .get(&format!("/exec/{number}/json"), "to inspect a program that it executes")
            .await;
        let state = match looked {
            Ok(state) => state,
            Err(error @ EngineError::Silent { .. }) => return Err(error),
            // One that has ended already; its streams tell.
            Err(_) => return Ok(true),
        };
        if state["Running"] == true && state["Pid"].as_u64().is_some_and(|pid| pid != 0) {
            return Ok(true);
        }
        if state["Running"] == false && state["ExitCode"].is_i64() {
            return Ok(!matches!(state["ExitCode"].as_i64(), Some(126 | 127)));
        }
        tokio::time::sleep(LOOKING).await;
    }
    Ok(true)
}

/// What is left in the container if a start is given up: the file of the agent.
struct Left {
    engine: Engine,
    id: String,
    path: String,
    is_over: bool,
}

impl Left {
    async fn remove(&mut self) {
        self.is_over = true;
        remove(&self.engine, &self.id, &self.path).await;
    }
}

/// Removes the file of the agent, as the first user of the container.
async fn remove(engine: &Engine, id: &str, path: &str) {
    // The agent needs no program of the container's. Where it cannot be executed, a shell has put it there.
    let itself = [path, "--env", "local", "--remove-itself"].map(str::to_owned);
    if !ended_well(engine, id, &itself).await {
        remove_by_shell(engine, id, path).await;
    }
}

/// Removes the file of the agent by the container's shell, if its directory is the first user's: in `/tmp` another user
/// may have made one of its name.
async fn remove_by_shell(engine: &Engine, id: &str, path: &str) {
    let script = "d=${1%/*}; test -O \"$d\" && ! test -L \"$d\" && rm -f \"$1\"; rmdir \"$d\"";
    let words = ["/bin/sh", "-c", script, "sh", path].map(str::to_owned);
    let _ = ended_well(engine, id, &words).await;
}

/// Executes a program without input as the first user of the container, and whether it ended with status 0.
async fn ended_well(engine: &Engine, id: &str, words: &[String]) -> bool {
    let Ok((number, streams)) = begin(engine, id, words, Some("0")).await else {
        return false;
    };
    let (reader, mut writer) = tokio::io::split(streams);
    // The agent ends with its input.
    let _ = writer.shutdown().await;
    let ended = async { Output::new(reader, Said::default()).read_to_end(&mut Vec::new()).await };
    let _ = tokio::time::timeout(engine.quick(), ended).await;
    let ended = engine
        .get(&format!("/exec/{number}/json"), "to inspect a program that it executes")
        .await;
    ended.is_ok_and(|ended| ended["ExitCode"] == 0)
}

impl Drop for Left {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        let (engine, id, path) = (self.engine.clone(), self.id.clone(), self.path.clone());
        in_background(async move { remove(&engine, &id, &path).await });
    }
}
