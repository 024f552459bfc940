//! Whose a container is: labels that name the process which made it, so that what a killed one left is removed by the
//! next, and nothing else is.
#![expect(clippy::disallowed_methods, reason = "who this process is stands in /proc")]

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::client::{Engine, escaped};
use crate::error::EngineError;

/// How long to wait before a refused removal is tried again, for the first time and at most.
const ENDING: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// How many containers of earlier processes are removed at the same time.
const AT_ONCE: usize = 8;
/// What Podman says of a container that ends by itself at this moment.
const IMPROPER: &str = "container state improper";

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

/// An id as engines show it.
pub(crate) fn short(id: &str) -> String {
    id.chars().take(12).collect()
}

/// A container of an earlier process that was not removed.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Stuck {
    pub(crate) id: String,
    pub(crate) why: String,
}

/// Removes the containers whose owners have ended, and gives those that were not removed within `most`. Each is tried
/// once, and a failure with one affects no other one.
pub(crate) async fn sweep(engine: &Engine, this: &Owner, most: Duration) -> Result<Vec<Stuck>, EngineError> {
    let until = Instant::now() + most;
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
    let turns = Arc::new(Semaphore::new(AT_ONCE));
    let mut removing = JoinSet::new();
    for id in orphans {
        let (engine, id, turns) = (engine.clone(), id.to_owned(), Arc::clone(&turns));
        removing.spawn(async move {
            let deleted = async {
                let _turn = turns.acquire().await;
                delete(&engine, &id, most).await
            };
            let why = match tokio::time::timeout_at(until.into(), deleted).await {
                // Another process may remove it at the same time.
                Ok(Ok(()) | Err(EngineError::Refused { status: 404 | 409, .. })) => return None,
                Ok(Err(error)) => error.to_string(),
                Err(_) => format!("there was no time for it within {} s", most.as_secs_f64()),
            };
            Some(Stuck { id, why })
        });
    }
    let mut stuck: Vec<_> = removing.join_all().await.into_iter().flatten().collect();
    stuck.sort();
    Ok(stuck)
}

/// Removes a container with everything that runs in it. One that is gone, or going, is no error.
pub(crate) async fn remove(engine: &Engine, id: &str) -> Result<(), EngineError> {
    removed(engine, id).await.map(drop)
}

/// As [`remove`], and whether there was one. A refusal that may be over soon is followed by another attempt, for as long
/// as removing a container may take.
pub(crate) async fn removed(engine: &Engine, id: &str) -> Result<bool, EngineError> {
    let begun = Instant::now();
    let mut pause = ENDING;
    let mut most = engine.removing();
    loop {
        match attempt(engine, id, most).await {
            Err(error @ EngineError::Refused { .. }) if is_passing(&error) => {
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
                most = engine.removing().saturating_sub(begun.elapsed());
                if most < pause {
                    return Err(error);
                }
            }
            done => return done,
        }
    }
}

/// Whether a removal that failed like this can succeed later.
pub(crate) fn is_passing(error: &EngineError) -> bool {
    match error {
        // The engine may start again at this moment.
        EngineError::Silent { .. } | EngineError::Unreachable { .. } | EngineError::Foreign { .. } => true,
        // 409: its state does not allow it now. 500 and above: the engine failed, as where a mount is still in use;
        // Podman says so also of a container that ends by itself at this moment.
        EngineError::Refused { status, .. } => matches!(status, 409 | 429 | 500..),
    }
}

/// Removes a container, or waits until it is removed if that is in progress.
async fn attempt(engine: &Engine, id: &str, most: Duration) -> Result<bool, EngineError> {
    const WAITING: &str = "to wait for the end of a container";
    let until = Instant::now() + most;
    match delete(engine, id, most).await {
        Ok(()) => Ok(true),
        Err(EngineError::Refused { status: 404, .. }) => Ok(false),
        Err(EngineError::Refused {
            status: 409, message, ..
        }) if !message.contains(IMPROPER) => {
            let path = format!("/containers/{}/wait?condition=removed", escaped(id));
            let most = until.saturating_duration_since(Instant::now());
            match engine.post(&path, None, WAITING, most).await {
                // Docker ends the wait also when the removal failed.
                Ok(ended) => match ended["Error"]["Message"].as_str() {
                    Some(message) if !message.is_empty() => Err(EngineError::Refused {
                        what: "to remove a container",
                        status: 500,
                        message: message.to_owned(),
                    }),
                    Some(_) | None => Ok(true),
                },
                Err(EngineError::Refused { status: 404, .. }) => Ok(true),
                Err(error) => Err(error),
            }
        }
        Err(error) => Err(error),
    }
}

async fn delete(engine: &Engine, id: &str, most: Duration) -> Result<(), EngineError> {
    let path = format!("/containers/{}?force=true&v=true", escaped(id));
    engine.delete(&path, "to remove a container", most).await
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::os::unix::net::UnixListener;
    use std::sync::mpsc;

    use super::*;
    use crate::client::Endpoint;

    const REFUSED: &str = "500 Internal Server Error";
    const BUSY: &str = r#"{"message": "the device is busy"}"#;

    /// An engine that gives these answers to requests other than the first, as a request's line selects them; and the
    /// lines.
    async fn fake(
        mut answer: impl FnMut(&str) -> (&'static str, String) + Send + 'static,
    ) -> (Engine, mpsc::Receiver<String>, tempfile::TempDir) {
        let place = tempfile::tempdir().unwrap();
        let socket = place.path().join("s");
        let listener = UnixListener::bind(&socket).unwrap();
        let (asked, requests) = mpsc::channel();
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let mut lines = BufReader::new(stream.try_clone().unwrap())
                    .lines()
                    .map_while(Result::ok);
                let line = lines.next().unwrap_or_default();
                lines.find(String::is_empty);
                let (status, body) = match line.contains("/_ping") {
                    true => ("200 OK", "OK".to_owned()),
                    false => answer(&line),
                };
                let length = body.len();
                // The other end may have gone.
                let _ = write!(
                    stream,
                    "HTTP/1.1 {status}\r\nApi-Version: 1.41\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
                );
                let _ = asked.send(line);
            }
        });
        let endpoint = Endpoint::parse(&format!("unix://{}", socket.display())).unwrap();
        let engine = Engine::at(endpoint).await.unwrap();
        (engine.within(Duration::from_secs(6)), requests, place)
    }

    #[tokio::test]
    async fn an_orphan_that_cannot_be_removed_is_told_and_keeps_no_other_one() {
        let this = Owner::this().unwrap();
        let dead = Owner {
            started: this.started + 1,
            ..this.clone()
        };
        let label = dead.label();
        let ids = ["stuck", "other", "going", "gone", "third"];
        let (engine, requests, _place) = fake(move |line| {
            let is = |part: &str| line.contains(part);
            if is("/containers/json") {
                let all = ids.map(|id| serde_json::json!({ "Id": id, "Labels": { LABEL: label } }));
                ("200 OK", Value::from(all.to_vec()).to_string())
            } else if is("/stuck") {
                (REFUSED, BUSY.to_owned())
            } else if is("/going") {
                (
                    "409 Conflict",
                    r#"{"message": "removal is already in progress"}"#.to_owned(),
                )
            } else if is("/gone") {
                ("404 Not Found", r#"{"message": "no such container"}"#.to_owned())
            } else {
                ("204 No Content", String::new())
            }
        })
        .await;
        let stuck = sweep(&engine, &this, engine.quick()).await.unwrap();
        assert_eq!(stuck.len(), 1, "{stuck:?}");
        assert_eq!(stuck[0].id, "stuck");
        assert!(stuck[0].why.contains("the device is busy"), "{stuck:?}");
        let asked: Vec<String> = requests.try_iter().collect();
        for id in ids {
            let path = format!("DELETE /v1.40/containers/{id}?");
            let times = asked.iter().filter(|line| line.contains(&path)).count();
            assert_eq!(times, 1, "{id}: {asked:?}");
        }
    }

    #[tokio::test]
    async fn a_removal_that_is_refused_for_now_is_tried_again() {
        let mut answers = vec![
            // Docker ends a wait also where the removal failed.
            (
                "DELETE",
                "409 Conflict",
                r#"{"message": "removal of container c is already in progress"}"#,
            ),
            (
                "/wait",
                "200 OK",
                r#"{"StatusCode": 137, "Error": {"Message": "the device is busy"}}"#,
            ),
            ("DELETE", REFUSED, BUSY),
            ("DELETE", "409 Conflict", r#"{"message": "container state improper"}"#),
            ("DELETE", "204 No Content", ""),
        ]
        .into_iter();
        let (engine, requests, _place) = fake(move |line| match answers.next() {
            Some((part, status, body)) if line.contains(part) => (status, body.to_owned()),
            other => panic!("{line}: {other:?}"),
        })
        .await;
        assert_eq!(removed(&engine, "c").await, Ok(true));
        // The first asked whether it is an engine.
        assert_eq!(requests.try_iter().count(), 6);
    }

    #[tokio::test]
    async fn a_removal_that_is_always_refused_ends_with_the_refusal() {
        let (engine, _requests, _place) = fake(|_| (REFUSED, BUSY.to_owned())).await;
        let begun = Instant::now();
        let error = removed(&engine, "c").await.unwrap_err();
        assert!(error.to_string().contains("the device is busy"), "{error}");
        assert!(begun.elapsed() < engine.removing(), "{:?}", begun.elapsed());

        let forbidden = r#"{"message": "not yours"}"#;
        let (engine, requests, _place) = fake(move |_| ("403 Forbidden", forbidden.to_owned())).await;
        removed(&engine, "c").await.unwrap_err();
        assert_eq!(requests.try_iter().count(), 2, "what no time changes is asked once");
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
