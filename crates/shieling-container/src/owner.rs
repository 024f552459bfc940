//! Whose a container is: labels that name the process which made it, so that what a killed one left is removed by the
//! next, and nothing else is.
#![expect(clippy::disallowed_methods, reason = "who this process is stands in /proc")]

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::task::JoinSet;

use crate::client::{Engine, escaped};
use crate::error::EngineError;

/// How long to wait for a container that ends by itself before its removal is tried again.
const ENDING: Duration = Duration::from_millis(50);

/// The label that names the owner.
pub(crate) const LABEL: &str = "dev.shieling.owner";

/// A process, so that no other one is taken for it, on another host, after a restart or under a number that is
/// used again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Owner {
    boot: String,
    namespace: String,
    user: u32,
    pid: u32,
    started: u64,
}

impl Owner {
    /// This process. Nothing if `/proc` does not say.
    pub(crate) fn this() -> Option<Self> {
        let pid = std::process::id();
        Some(Self {
            boot: boot()?,
            namespace: namespace()?,
            user: rustix::process::getuid().as_raw(),
            pid,
            started: started(pid)?,
        })
    }

    /// As a label's value.
    pub(crate) fn label(&self) -> String {
        format!(
            "{} {} {} {} {}",
            self.boot, self.namespace, self.user, self.pid, self.started
        )
    }

    fn read(label: &str) -> Option<Self> {
        let mut parts = label.split(' ');
        let owner = Self {
            boot: parts.next()?.to_owned(),
            namespace: parts.next()?.to_owned(),
            user: parts.next()?.parse().ok()?,
            pid: parts.next()?.parse().ok()?,
            started: parts.next()?.parse().ok()?,
        };
        parts.next().is_none().then_some(owner)
    }

    /// Whether it is known to have ended, and belonged to the user of `this`.
    fn is_gone(&self, this: &Self) -> bool {
        // Of processes elsewhere nothing is known.
        self.boot == this.boot
            && self.namespace == this.namespace
            && self.user == this.user
            && started(self.pid) != Some(self.started)
    }
}

fn boot() -> Option<String> {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(id.trim().to_owned())
}

fn namespace() -> Option<String> {
    let link = std::fs::read_link("/proc/self/ns/pid").ok()?;
    link.to_str().map(str::to_owned)
}

/// When a process started, in ticks since the boot. Nothing if there is none, or only what was not waited for.
fn started(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat")).ok()?;
    // The name before may hold anything.
    let rest = stat.rsplit_once(") ")?.1;
    let mut fields = rest.split(' ');
    if matches!(fields.next()?, "Z" | "X") {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

/// Removes the containers whose owners have ended, all at once, and gives how many there were. One that cannot be removed
/// keeps no other one; of the failures the first is told.
pub(crate) async fn sweep(engine: &Engine, this: &Owner) -> Result<usize, EngineError> {
    let filters = escaped(&serde_json::json!({ "label": [LABEL] }).to_string());
    let all = engine
        .get(
            &format!("/containers/json?all=true&filters={filters}"),
            "to list containers",
        )
        .await?;
    let orphans = all.as_array().into_iter().flatten().filter_map(|container: &Value| {
        let owner = Owner::read(container["Labels"][LABEL].as_str()?)?;
        owner.is_gone(this).then(|| container["Id"].as_str()).flatten()
    });
    let mut removing = JoinSet::new();
    for id in orphans {
        let (engine, id) = (engine.clone(), id.to_owned());
        removing.spawn(async move { remove(&engine, &id).await });
    }
    let (mut removed, mut failed) = (0, None);
    while let Some(done) = removing.join_next().await {
        match done {
            Ok(Ok(())) => removed += 1,
            Ok(Err(error)) => failed = failed.or(Some(error)),
            // It is there again at the next start.
            Err(_) => {}
        }
    }
    failed.map_or(Ok(removed), Err)
}

/// Removes a container with everything that runs in it. One that is gone, or going, is no error.
pub(crate) async fn remove(engine: &Engine, id: &str) -> Result<(), EngineError> {
    removed(engine, id).await.map(drop)
}

/// As [`remove`], and whether there was one.
pub(crate) async fn removed(engine: &Engine, id: &str) -> Result<bool, EngineError> {
    let id = escaped(id);
    let path = format!("/containers/{id}?force=true&v=true");
    let begun = Instant::now();
    let deleted = loop {
        match engine.delete(&path, "to remove a container").await {
            // Podman says so of one that ends by itself at this moment.
            Err(EngineError::Refused { message, .. })
                if message.contains("container state improper") && begun.elapsed() < engine.removing() =>
            {
                tokio::time::sleep(ENDING).await;
            }
            deleted => break deleted,
        }
    };
    match deleted {
        Err(EngineError::Refused { status: 404, .. }) => Ok(false),
        // Somebody else removes it; it is waited for.
        Err(EngineError::Refused { status: 409, .. }) => {
            let waited = engine
                .post(
                    &format!("/containers/{id}/wait?condition=removed"),
                    None,
                    "to wait for the end of a container",
                    engine.removing(),
                )
                .await;
            match waited {
                Ok(_) | Err(EngineError::Refused { status: 404, .. }) => Ok(true),
                Err(error) => Err(error),
            }
        }
        Ok(()) => Ok(true),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::os::unix::net::UnixListener;
    use std::sync::mpsc;

    use super::*;
    use crate::client::Endpoint;

    /// An engine that has two orphans, and refuses to remove the first; and the requests to it.
    fn fake(at: &Path, orphan: &str) -> mpsc::Receiver<String> {
        let listener = UnixListener::bind(at).unwrap();
        let list = serde_json::json!([
            { "Id": "stuck", "Labels": { LABEL: orphan } },
            { "Id": "other", "Labels": { LABEL: orphan } },
        ]);
        let (asked, requests) = mpsc::channel();
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let mut lines = BufReader::new(stream.try_clone().unwrap())
                    .lines()
                    .map_while(Result::ok);
                let line = lines.next().unwrap_or_default();
                lines.find(String::is_empty);
                let (status, body) = match &*line {
                    line if line.contains("/containers/json") => ("200 OK", list.to_string()),
                    line if line.starts_with("DELETE") && line.contains("/containers/stuck?") => {
                        ("500 Internal Server Error", r#"{"message": "it is stuck"}"#.to_owned())
                    }
                    line if line.starts_with("DELETE") => ("204 No Content", String::new()),
                    _ => ("200 OK", "OK".to_owned()),
                };
                let _ = asked.send(line);
                let length = body.len();
                let _ = write!(
                    stream,
                    "HTTP/1.1 {status}\r\nApi-Version: 1.41\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
                );
            }
        });
        requests
    }

    #[tokio::test]
    async fn an_orphan_that_cannot_be_removed_keeps_no_other_one() {
        let place = tempfile::tempdir().unwrap();
        let socket = place.path().join("s");
        let this = Owner::this().unwrap();
        let dead = Owner {
            started: this.started + 1,
            ..this.clone()
        };
        let requests = fake(&socket, &dead.label());
        let endpoint = Endpoint::parse(&format!("unix://{}", socket.display())).unwrap();
        let engine = Engine::at(endpoint).await.unwrap();
        let error = sweep(&engine, &this).await.expect_err("one is stuck");
        assert!(error.to_string().contains("it is stuck"), "{error}");
        let asked: Vec<String> = requests.try_iter().collect();
        for id in ["stuck", "other"] {
            assert!(
                asked
                    .iter()
                    .any(|line| line.starts_with("DELETE") && line.contains(&format!("/{id}?"))),
                "{asked:?}"
            );
        }
    }

    #[test]
    fn a_label_names_one_process_and_tells_when_it_is_gone() {
        let this = Owner::this().unwrap();
        assert_eq!(Owner::read(&this.label()), Some(this.clone()));
        assert!(!this.is_gone(&this));
        let later = Owner {
            started: this.started + 1,
            ..this.clone()
        };
        assert!(later.is_gone(&this), "the number is another process's by now");
        for elsewhere in [
            Owner {
                boot: "x".to_owned(),
                ..later.clone()
            },
            Owner {
                namespace: "x".to_owned(),
                ..later.clone()
            },
            Owner {
                user: this.user + 1,
                ..later
            },
        ] {
            assert!(!elsewhere.is_gone(&this), "{elsewhere:?}");
        }
        for wrong in ["", "a b 0 1", "a b 0 1 2 3", "a b c d e"] {
            assert_eq!(Owner::read(wrong), None, "{wrong}");
        }
    }
}
