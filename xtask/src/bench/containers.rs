//! Containers: a command in one that runs against `local`, a session's command, and a cold start against the engine's
//! own client. Not measured, and said, where no engine answers or it lacks the image.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command as Program, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::ensure;
use shieling::Shieling;
use shieling::approval::Mode;
use shieling::environment::{Environment, Local, Shell};
use shieling::policy::Policy;
use shieling::request::Command;
use shieling::session::SessionName;
use shieling_container::{Choice, Container, Options, Pull, Run, Surroundings};

use super::measure::{Plan, Row, interleaved};
use super::scratch::Scratch;
use super::target::{Target, table};

/// The image, with a bash, unless `SHIELING_BENCH_IMAGE` names another one.
const IMAGE: &str = "debian:12";

/// The tables, or why there are none. `program` is the command line.
pub(crate) fn run(program: &Path) -> anyhow::Result<String> {
    let image = std::env::var("SHIELING_BENCH_IMAGE").unwrap_or_else(|_| IMAGE.to_owned());
    let scratch = Scratch::new("containers")?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?;
    let text = |name| std::env::var(name).ok();
    let surroundings = Surroundings {
        docker_host: text("DOCKER_HOST"),
        container_host: text("CONTAINER_HOST"),
        runtime_directory: text("XDG_RUNTIME_DIR").map(Into::into),
        home: text("HOME").map(Into::into),
        ..Surroundings::default()
    };
    let mut options = Options::image(&image);
    options.run = Run::Image {
        image: image.clone(),
        pull: Pull::Never,
    };
    let opened = async {
        let container = Container::open(options, Choice::Auto, &surroundings, scratch.path(), None).await?;
        container.start().await.map(|()| container)
    };
    let container = match runtime.block_on(opened) {
        Ok(container) => Arc::new(container),
        Err(error) => return Ok(format!("Not measured: {error}.\n")),
    };
    let variables = container.variables();
    let inside = library(Arc::clone(&container) as Arc<_>, "/workspace")?;
    let outside = library(Arc::new(Local::new(Shell::find(None)?).with_workspace("/tmp")), "/tmp")?;
    let ran = |library: &Arc<Shieling>, cwd: &'static str, session: bool| {
        let (library, variables, runtime) = (Arc::clone(library), variables.clone(), &runtime);
        move || {
            let command = command(cwd, variables.clone())?;
            let begun = Instant::now();
            let outcome = match session {
                true => runtime.block_on(library.session(SessionName::default()).run(command)),
                false => runtime.block_on(library.run(command, None)),
            };
            let took = begun.elapsed();
            ensure!(outcome.exit_code == Some(0), "{outcome:?}");
            Ok(took)
        }
    };
    let ms = Duration::from_millis;
    let warm = measured(
        vec![
            (
                Row::new("`Shieling::run` in `local`: `true`", ran(&outside, "/tmp", false)),
                Target::None,
            ),
            (
                Row::new("the same in a running container", ran(&inside, "/workspace", false)),
                Target::Over(ms(3)),
            ),
            (
                Row::new("a command of a session in it", ran(&inside, "/workspace", true)),
                Target::InAll(Duration::from_micros(500)),
            ),
        ],
        Plan {
            rounds: 6,
            calls_a_round: 40,
        },
    )?;
    runtime.block_on(container.close());
    let client = container.engine().name();
    let cold = [
        (
            client,
            vec![
                "run",
                "--rm",
                "--network",
                "none",
                "--log-driver",
                "none",
                &image,
                "/bin/true",
            ],
        ),
        (
            &program.to_string_lossy(),
            vec![
                "exec",
                "--env",
                "container",
                "--pull",
                "never",
                "--no-mount",
                "--image",
                &image,
                "/bin/true",
            ],
        ),
    ];
    let [theirs, ours] = cold.map(|(program, words)| {
        let program = program.to_owned();
        move || {
            let begun = Instant::now();
            let ended = Program::new(&program).args(&words).stdin(Stdio::null()).output()?;
            let took = begun.elapsed();
            ensure!(
                ended.status.success(),
                "{program}: {}",
                String::from_utf8_lossy(&ended.stderr)
            );
            Ok(took)
        }
    });
    let cold = measured(
        vec![
            (
                Row::new(format!("`{client} run --rm IMAGE /bin/true`"), theirs),
                Target::None,
            ),
            (
                Row::new("`shieling exec --env container --image IMAGE /bin/true`", ours),
                Target::Ratio(1.1),
            ),
        ],
        Plan {
            rounds: 5,
            calls_a_round: 3,
        },
    )?;
    Ok(format!(
        "Engine: {client} at `{}`, image `{image}`.\n\n{warm}\nCold, to the end of both:\n\n{cold}",
        container.engine().endpoint()
    ))
}

fn measured(rows: Vec<(Row<'_>, Target)>, plan: Plan) -> anyhow::Result<String> {
    let (rows, targets): (Vec<_>, Vec<_>) = rows.into_iter().unzip();
    Ok(table(
        &interleaved(rows, plan)?.into_iter().zip(targets).collect::<Vec<_>>(),
    ))
}

fn library(environment: Arc<dyn Environment>, workspace: &str) -> anyhow::Result<Arc<Shieling>> {
    let builder = Shieling::builder(environment, Policy::open(), workspace).approval(Mode::OnAsk);
    Ok(Arc::new(builder.build()?))
}

fn command(cwd: &str, variables: BTreeMap<String, String>) -> anyhow::Result<Command> {
    Ok(Command::new("true", cwd)?.with_variables(variables))
}
