//! A container of our own: made, attached to and started, in this order, so that nothing of its streams is missed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use shieling::environment::Later;
use shieling::request::Digest;
use shieling_remote::transport::{Connection, Guard, Said};

use super::inner::{Inner, in_background};
use crate::attach::Output;
use crate::client::{Engine, escaped};
use crate::error::{ContainerError, EngineError, meant};
use crate::owner::{self, Owner, short};
use crate::spec::Wanted;

/// How often it is looked for a container that may still be made, and how long in between.
const ATTEMPTS: usize = 20;
const PAUSE: Duration = Duration::from_millis(500);

/// Makes and starts it.
pub(super) async fn connect(inner: &Arc<Inner>, made: impl FnOnce(String)) -> Result<Connection, ContainerError> {
    let engine = &inner.engine;
    let owner = Owner::this();
    let agent = inner.agent.path()?;
    let arguments = inner.setup().arguments();
    let wanted = Wanted {
        options: &inner.options,
        image: &inner.image,
        mounts: &inner.mounts,
        user: inner.user.as_deref(),
        agent: &agent,
        arguments: arguments
            .iter()
            .map(|word| word.to_string_lossy().into_owned())
            .collect(),
        owner: owner.as_ref().map(Owner::label),
        readonly: inner.readonly(),
        keep_id: inner.keep_id(),
        gives_memory: !inner.engine.is_podman(),
    };
    let body = wanted.body();
    let name = unique(owner.as_ref());
    // Before it is asked for: whoever gives up meanwhile does not know whether it was made.
    let mut guard = Made {
        engine: engine.clone(),
        id: name.clone(),
        is_certain: false,
        is_over: false,
    };
    let path = format!("/containers/create?name={}", escaped(&name));
    let create = engine.post(&path, Some(&body), "to make a container", engine.slow());
    // What an earlier process left is no reason to wait long, nor to fail.
    let sweep = async {
        if let Some(owner) = &owner {
            inner.tell_stuck(owner::sweep(engine, owner, engine.quick()).await);
        }
    };
    let (created, ()) = tokio::join!(create, sweep);
    let created = match created {
        Ok(created) => created,
        Err(error) => {
            guard.is_over = matches!(error, EngineError::Refused { .. } | EngineError::Unreachable { .. });
            let is_unknown = !guard.is_over;
            return Err(may_be_left(meant(error), is_unknown.then_some(name)));
        }
    };
    let id = created["Id"].as_str().unwrap_or_default().to_owned();
    guard.id.clone_from(&id);
    guard.is_certain = true;
    made(id.clone());
    let name = escaped(&id);
    let streams = engine
        .hijack(
            &format!("/containers/{name}/attach?stream=1&stdin=1&stdout=1&stderr=1"),
            None,
            "to attach to a container",
        )
        .await;
    let started = match streams {
        Ok(streams) => engine
            .post(
                &format!("/containers/{name}/start"),
                None,
                "to start a container",
                engine.slow(),
            )
            .await
            .map(|_| streams),
        Err(error) => Err(error),
    };
    match started {
        Ok(streams) => {
            let (reader, writer) = tokio::io::split(streams);
            let said = Said::default();
            Ok(Connection::new(Output::new(reader, said.clone()), writer)
                .with_guard(guard)
                .with_said(said))
        }
        // It is not asked again while somebody waits.
        Err(error @ EngineError::Silent { .. }) => Err(may_be_left(refused(error, inner), Some(short(&id)))),
        Err(error) => {
            guard.is_over = true;
            let left = owner::remove(engine, &id).await.is_err();
            Err(may_be_left(refused(error, inner), left.then(|| short(&id))))
        }
    }
}

/// Why a start failed, with the container that may be left of it.
pub(super) fn may_be_left(error: ContainerError, container: Option<String>) -> ContainerError {
    match container {
        None => error,
        Some(container) => ContainerError::MayBeLeft {
            error: Box::new(error),
            container,
        },
    }
}

/// A start that was refused, as what it means.
fn refused(error: EngineError, inner: &Inner) -> ContainerError {
    if let EngineError::Refused { message, .. } = &error {
        let runtime = inner.options.runtime.as_deref();
        if let Some(runtime) = runtime.filter(|_| message.to_lowercase().contains("runtime")) {
            return ContainerError::Options {
                what: format!(
                    "the engine cannot start the runtime `{}`: {message}",
                    runtime.escape_debug()
                ),
                instead: "use a runtime that the engine knows, or leave `--runtime` out".to_owned(),
            };
        }
    }
    meant(error)
}

/// A name that no other container has.
fn unique(owner: Option<&Owner>) -> String {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let number = LAST.fetch_add(1, Ordering::Relaxed);
    let label = owner.map(Owner::label).unwrap_or_default();
    let digest = Digest::of(label.as_bytes()).to_string();
    let digest = digest.get(..12).unwrap_or_default();
    format!("shieling-{digest}-{}-{number}", std::process::id())
}

/// Removes the container at the end.
struct Made {
    engine: Engine,
    id: String,
    /// Whether it was made, and not only asked for.
    is_certain: bool,
    is_over: bool,
}

impl Guard for Made {
    fn end(mut self: Box<Self>) -> Later<'static, ()> {
        Box::pin(async move {
            // One that cannot be removed is removed by the next that starts.
            let _ = owner::remove(&self.engine, &self.id).await;
            self.is_over = true;
        })
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        // A start that was given up.
        remove_later(&self.engine, &self.id, self.is_certain);
    }
}

/// Removes a container in the background, also one that may not be made yet, and where the engine does not answer now.
pub(super) fn remove_later(engine: &Engine, id: &str, is_certain: bool) {
    let (engine, id) = (engine.clone(), id.to_owned());
    in_background(async move {
        for _ in 0..ATTEMPTS {
            match owner::removed(&engine, &id).await {
                // It was asked to make it, and may do so once it goes on.
                Ok(false) if !is_certain => {}
                Err(error) if owner::is_passing(&error) => {}
                Ok(_) | Err(_) => return,
            }
            tokio::time::sleep(PAUSE).await;
        }
    });
}
