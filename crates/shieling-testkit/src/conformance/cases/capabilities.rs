//! Declared capabilities work, and others are refused in a typed way.

use std::net::TcpListener;

use shieling::environment::{Ability, Enforced, JailLimits, Limit, Network};
use shieling::files::ReadRequest;
use shieling::outcome::{Outcome, Status};
use shieling::process::{SpawnError, Streams};
use shieling::session::TerminalSize;

use crate::approved;
use crate::conformance::case::{Case, Checked, Need, check, look};
use crate::conformance::context::Context;
use crate::conformance::expect::{DescribeError as _, holds, same};
use crate::conformance::{CheckFailure, Requirements, Unmet};

/// Checks that an operation works if it is declared, and is refused with a reason if not (`failed` or `denied`).
fn as_declared(context: &Context, ability: Ability, outcome: &Outcome) -> Checked {
    if context.can(ability) {
        let works = matches!(outcome.status, Status::Exited | Status::Running);
        return holds(
            &format!("{ability:?} is declared, and works"),
            works,
            &outcome.described(),
        );
    }
    let told = match outcome.status {
        Status::Failed => outcome.error.is_some(),
        Status::Denied => outcome.denial.is_some(),
        _ => false,
    };
    holds(
        &format!("{ability:?} is not declared, and is refused"),
        told,
        &outcome.described(),
    )
}

/// Checks whether an environment with this requirement is refused.
async fn is_refused(context: &Context, what: &str, requirements: Requirements) -> Checked {
    match context.factory.make(&requirements).await {
        Err(Unmet::Refused(_)) => Ok(()),
        Err(Unmet::Fault(why)) => Err(CheckFailure::new(format!("{what} is refused"), why)),
        Ok(place) => {
            place.environment.close().await;
            Err(CheckFailure::new(format!("{what} is refused"), "a place was made"))
        }
    }
}

/// Returns a command that connects to a port of this host.
async fn connects(context: &Context) -> Result<bool, CheckFailure> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    listener.set_nonblocking(true)?;
    let port = listener.local_addr()?.port();
    context
        .shieling
        .run(
            context.within(&format!("exec 3<>/dev/tcp/127.0.0.1/{port} && echo hi >&3"), 5_000),
            None,
        )
        .await;
    Ok(listener.accept().is_ok())
}

pub(crate) fn cases() -> Vec<Case> {
    vec![
        look("commands are as declared", |context| {
            Box::pin(async move { as_declared(context, Ability::Commands, &context.run("echo hi").await) })
        }),
        look("sessions are as declared", |context| {
            Box::pin(async move { as_declared(context, Ability::Sessions, &context.shell("echo hi").await) })
        }),
        look("jobs are as declared", |context| {
            Box::pin(async move {
                let outcome = context.shieling.start_job(context.call("echo hi")).await;
                as_declared(context, Ability::Jobs, &outcome)
            })
        }),
        look("terminals are as declared", |context| {
            Box::pin(async move {
                let call = context
                    .call("test -t 1 && echo hi")
                    .with_terminal(TerminalSize::default());
                let outcome = context.shieling.run_job(call).await;
                as_declared(context, Ability::Terminals, &outcome)?;
                holds(
                    "a terminal, if it works",
                    outcome.status != Status::Exited || outcome.stdout.contains("hi"),
                    &outcome.described(),
                )
            })
        }),
        look("input is as declared", |context| {
            Box::pin(async move {
                let started = context
                    .place()
                    .environment
                    .spawn(approved(context.command("cat")), Streams::Input)
                    .await;
                match (started, context.can(Ability::Input)) {
                    (Ok(mut process), true) => holds("an input", process.take_input().is_some(), "none"),
                    (Err(_), false) => Ok(()),
                    (Ok(_), false) => Err(CheckFailure::new("a refusal", "a process with an input")),
                    (Err(error), true) => Err(CheckFailure::new("a process with an input", format!("{error:?}"))),
                }
            })
        }),
        look("reading files is as declared", |context| {
            Box::pin(async move {
                let read = context.read_as(ReadRequest::new("f")).await;
                let seen = format!("{read:?}");
                holds(
                    "a file if that is declared, and a refusal if not",
                    read.is_ok() == context.can(Ability::ReadFiles),
                    &seen,
                )
            })
        })
        .file("f", "text\n"),
        look("writing files is as declared", |context| {
            Box::pin(async move {
                let written = context.write("f", "x").await;
                let seen = format!("{written:?}");
                holds(
                    "a file if that is declared, and a refusal if not",
                    written.is_ok() == context.can(Ability::WriteFiles),
                    &seen,
                )
            })
        }),
        look("an environment says what it can the same way each time", |context| {
            Box::pin(async move {
                let environment = context.shieling.environment();
                holds("it has a name", !environment.name().is_empty(), environment.name())?;
                let before = environment.capabilities();
                context.run("true").await;
                same("capabilities", environment.capabilities(), before)
            })
        }),
        look("what depends on something that is missing is not declared", |context| {
            Box::pin(async move {
                let needs = [
                    (Ability::Sessions, Ability::Commands),
                    (Ability::Jobs, Ability::Commands),
                    (Ability::Input, Ability::Commands),
                    (Ability::Terminals, Ability::Commands),
                    (Ability::WriteFiles, Ability::ReadFiles),
                ];
                let wrong: Vec<_> = needs
                    .into_iter()
                    .filter(|(one, other)| context.can(*one) && !context.can(*other))
                    .collect();
                same("one without the other", wrong, Vec::new())
            })
        }),
        look("limits that are not declared are refused", |context| {
            Box::pin(async move {
                let with = |limits| Requirements {
                    limits,
                    ..Requirements::none()
                };
                let none = JailLimits::default();
                let limits = [
                    (
                        Limit::Memory,
                        JailLimits {
                            memory: Some(1 << 30),
                            ..none
                        },
                    ),
                    (
                        Limit::Pids,
                        JailLimits {
                            pids: Some(100),
                            ..none
                        },
                    ),
                    (
                        Limit::Cpus,
                        JailLimits {
                            cpu_thousandths: Some(1_000),
                            ..none
                        },
                    ),
                ];
                for (limit, limits) in limits {
                    if !context.can.limits.contains(&limit) {
                        is_refused(context, &format!("{limit:?}"), with(limits)).await?;
                    }
                }
                Ok(())
            })
        }),
        check(
            "a size of files that cannot be limited is refused, not ignored",
            |context| {
                Box::pin(async move {
                    let command = context
                        .command("echo hi")
                        .with_file_size(Some(shieling::units::ByteCount::mib(1)));
                    let outcome = context.shieling.run(command, None).await;
                    let declared = context.can.limits.contains(&Limit::FileSize);
                    same("whether it ran", outcome.status == Status::Exited, declared)
                })
            },
        ),
        look("networks that are not declared are refused", |context| {
            Box::pin(async move {
                for network in [Network::None, Network::Loopback, Network::Host] {
                    if !context.can.networks.contains(&network) {
                        let requirements = Requirements {
                            network: Some(network),
                            ..Requirements::none()
                        };
                        is_refused(context, &format!("{network:?}"), requirements).await?;
                    }
                }
                Ok(())
            })
        }),
        check("without a network nothing of this host is reached", |context| {
            Box::pin(async move { same("a connection", connects(context).await?, false) })
        })
        .network(Network::None)
        .needs([Need::Gives(Network::None)]),
        check(
            "with a loopback device of its own nothing of this host is reached",
            |context| Box::pin(async move { same("a connection", connects(context).await?, false) }),
        )
        .network(Network::Loopback)
        .needs([Need::Gives(Network::Loopback)]),
        check("with the network of this host it is reached", |context| {
            Box::pin(async move { same("a connection", connects(context).await?, true) })
        })
        .network(Network::Host)
        .needs([Need::Gives(Network::Host)]),
        check(
            "what is enforced is told, and nothing is both enforced and missing",
            |context| {
                Box::pin(async move {
                    let told = context.run("true").await.confinement;
                    let both: Vec<_> = told
                        .enforced
                        .iter()
                        .filter(|layer| told.missing.contains(layer))
                        .collect();
                    same("both", both, Vec::<&String>::new())?;
                    let holds_something = context.shieling.enforced() != Enforced::default();
                    holds(
                        "something, if something is declared",
                        !holds_something || !told.enforced.is_empty(),
                        &format!("{told:?}"),
                    )
                })
            },
        ),
        check("a process of this host has a number of this host", |context| {
            Box::pin(async move {
                let mut process = context
                    .place()
                    .environment
                    .spawn(approved(context.command("sleep 50")), Streams::Output)
                    .await
                    .map_err(|error| CheckFailure::new("a process", format!("{error:?}")))?;
                let marked = context.left();
                let number = process.pid();
                let ended = process.stop(std::time::Duration::ZERO).await;
                holds(
                    "one of those that there are",
                    number.is_none_or(|number| marked.contains(&number)),
                    &format!("{number:?} {marked:?}"),
                )?;
                same("survivors", ended.map(|ended| ended.survivors), Ok(0))
            })
        })
        .needs([Need::Can(Ability::Processes)]),
        look("an environment without sessions says so itself", |context| {
            Box::pin(async move {
                let opened = context
                    .place()
                    .environment
                    .open_shell(&approved(context.command("true")))
                    .await;
                match (opened, context.can(Ability::Sessions)) {
                    (Ok(_), true) | (Err(SpawnError::Session { .. }), false) => Ok(()),
                    (Ok(_), false) => Err(CheckFailure::new("`Session`", "a shell")),
                    (Err(error), _) => Err(CheckFailure::new(
                        "a shell if that is declared, `Session` if not",
                        format!("{error:?}"),
                    )),
                }
            })
        }),
    ]
}
