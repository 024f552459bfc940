//! Images: whether they are there, pulled with progress, and for these processors.

use std::sync::Arc;

use serde_json::Value;

use crate::client::{Engine, escaped};
use crate::error::{ContainerError, EngineError, meant};
use crate::options::Pull;
use crate::spec::Image;

/// Told of what takes long: an image that is pulled.
pub type Progress = Arc<dyn Fn(&str) + Send + Sync>;

/// The image of this name.
pub(super) async fn find(
    engine: &Engine,
    name: &str,
    pull: Pull,
    progress: Option<Progress>,
) -> Result<Image, ContainerError> {
    if name.is_empty() || name.starts_with('-') || name.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Err(ContainerError::Options {
            what: format!("`{}` is no name of an image", name.escape_debug()),
            instead: "give `--image NAME`, such as `--image debian:12`".to_owned(),
        });
    }
    let here = if pull == Pull::Always {
        None
    } else {
        look(engine, name).await?
    };
    let image = match (here, pull) {
        (Some(image), _) => image,
        (None, Pull::Never) => {
            return Err(ContainerError::NoImage {
                image: name.to_owned(),
                why: format!("{} does not have it, and it is not to be pulled", engine.name()),
            });
        }
        (None, Pull::Auto | Pull::Always) => {
            fetch(engine, name, progress).await?;
            look(engine, name).await?.ok_or_else(|| ContainerError::NoImage {
                image: name.to_owned(),
                why: "it was pulled, and is not there".to_owned(),
            })?
        }
    };
    fits(engine, name, &image).await?;
    Ok(Image {
        id: image["Id"].as_str().unwrap_or(name).to_owned(),
        variables: Image::variables(&image["Config"]),
        user: image["Config"]["User"].as_str().unwrap_or_default().to_owned(),
        is_closed: false,
    })
}

/// Refuses an image that is for other processors than the engine's.
pub(super) async fn fits(engine: &Engine, name: &str, image: &Value) -> Result<(), ContainerError> {
    let (needs, has) = (
        architecture(engine).await?,
        known(image["Architecture"].as_str().unwrap_or_default()),
    );
    // An import without a word about it is taken for what the engine is.
    if has.is_empty() || has == needs {
        return Ok(());
    }
    Err(ContainerError::Architecture {
        image: name.to_owned(),
        has,
        needs,
    })
}

async fn look(engine: &Engine, name: &str) -> Result<Option<Value>, ContainerError> {
    match engine
        .get(&format!("/images/{}/json", escaped(name)), "for an image")
        .await
    {
        Ok(image) => Ok(Some(image)),
        Err(EngineError::Refused { status: 404, .. }) => Ok(None),
        Err(error) => Err(meant(error)),
    }
}

async fn fetch(engine: &Engine, name: &str, progress: Option<Progress>) -> Result<(), ContainerError> {
    let missing = |why: String| ContainerError::NoImage {
        image: name.to_owned(),
        why,
    };
    // Without a tag all of them would come.
    let last = name.rsplit('/').next().unwrap_or(name);
    let tagged = if last.contains([':', '@']) {
        name.to_owned()
    } else {
        format!("{name}:latest")
    };
    if let Some(tell) = &progress {
        tell(&format!("pulling `{tagged}` into {}", engine.name()));
    }
    let mut failed = None;
    let mut said = String::new();
    let pulled = engine
        .lines(
            &format!("/images/create?fromImage={}", escaped(&tagged)),
            "to pull an image",
            // Between two layers it may say nothing for long.
            engine.slow() * 3 / 2,
            |line| {
                if let Some(error) = line["error"].as_str() {
                    failed = Some(error.to_owned());
                }
                // Layers tell of every piece; only what changes is passed on.
                if let (Some(status), None) = (line["status"].as_str(), line["progressDetail"]["current"].as_u64()) {
                    let told = format!(
                        "{}{status}",
                        line["id"].as_str().map_or(String::new(), |id| format!("{id}: "))
                    );
                    if told != said
                        && let Some(tell) = &progress
                    {
                        tell(&told);
                    }
                    said = told;
                }
            },
        )
        .await;
    match pulled {
        Err(EngineError::Refused { message, .. }) => Err(of_words(message, missing)),
        Err(error) => Err(error.into()),
        Ok(()) => failed.map_or(Ok(()), |error| Err(of_words(error, missing))),
    }
}

fn of_words(words: String, missing: impl FnOnce(String) -> ContainerError) -> ContainerError {
    if words.contains("no space left on device") {
        return ContainerError::DiskFull { message: words };
    }
    missing(format!("it cannot be pulled: {words}"))
}

/// The processors of the engine, as images name them.
pub(super) async fn architecture(engine: &Engine) -> Result<String, ContainerError> {
    let version = engine.get("/version", "for its version").await?;
    Ok(known(version["Arch"].as_str().unwrap_or_default()))
}

/// The processors of this program, and so of the agent.
pub(super) fn of_this_program() -> String {
    known(std::env::consts::ARCH)
}

/// One name for each architecture.
fn known(name: &str) -> String {
    match name {
        "x86_64" | "x86-64" => "amd64",
        "aarch64" | "arm64/v8" => "arm64",
        other => other,
    }
    .to_owned()
}
