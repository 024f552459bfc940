//! What is declared is true: what is declared works, and what is not is refused in a typed way.

use std::net::TcpListener;

use shieling::environment::{Ability, Enforced, JailLimits, Limit, Network};
use shieling::files::ReadAsk;
use shieling::outcome::{Outcome, Status};
use shieling::process::{SpawnError, Streams};
use shieling::session::{Call, Size};

use crate::approved;
use crate::conformance::at::At;
use crate::conformance::case::{Case, Checked, Need, check, look};
use crate::conformance::expect::{Tells as _, holds, same};
use crate::conformance::{Unmet, Wishes, Wrong};

/// It works if that is declared, and is refused if not: `failed` or `denied`, and says why.
fn as_declared(at: &At, ability: Ability, outcome: &Outcome) -> Checked {
    if at.can(ability) {
        let works = matches!(outcome.status, Status::Exited | Status::Running);
        return holds(&format!("{ability:?} is declared, and works"), works, &outcome.tells());
    }
    let told = match outcome.status {
        Status::Failed => outcome.error.is_some(),
        Status::Denied => outcome.denial.is_some(),
        _ => false,
    };
    holds(
        &format!("{ability:?} is not declared, and is refused"),
        told,
        &outcome.tells(),
    )
}

/// Whether a place with this wish is refused.
async fn is_refused(at: &At, what: &str, wishes: Wishes) -> Checked {
    match at.maker.make(&wishes).await {
        Err(Unmet::Refused(_)) => Ok(()),
        Err(Unmet::Fault(why)) => Err(Wrong::new(format!("{what} is refused"), why)),
        Ok(place) => {
            place.environment.close().await;
            Err(Wrong::new(format!("{what} is refused"), "a place was made"))
        }
    }
}

/// A command that connects to a port of this host.
async fn connects(at: &At) -> Result<bool, Wrong> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    listener.set_nonblocking(true)?;
    let port = listener.local_addr()?.port();
    at.shieling
        .run(
            at.within(&format!("exec 3<>/dev/tcp/127.0.0.1/{port} && echo hi >&3"), 5_000),
            None,
        )
        .await;
    Ok(listener.accept().is_ok())
}

pub(crate) fn cases() -> Vec<Case> {
    vec![
        look("commands are as declared", |at| {
            Box::pin(async move { as_declared(at, Ability::Commands, &at.run("echo hi").await) })
        }),
        look("sessions are as declared", |at| {
            Box::pin(async move { as_declared(at, Ability::Sessions, &at.shell("echo hi").await) })
        }),
        look("jobs are as declared", |at| {
            Box::pin(async move {
                let call = Call {
                    background: true,
                    session: None,
                    ..at.call("echo hi")
                };
                as_declared(at, Ability::Jobs, &at.shieling.shell(call).await)
            })
        }),
        look("terminals are as declared", |at| {
            Box::pin(async move {
                let call = Call {
                    terminal: Some(Size::default()),
                    session: None,
                    ..at.call("test -t 1 && echo hi")
                };
                let outcome = at.shieling.shell(call).await;
                as_declared(at, Ability::Terminals, &outcome)?;
                holds(
                    "a terminal, if it works",
                    outcome.status != Status::Exited || outcome.stdout.contains("hi"),
                    &outcome.tells(),
                )
            })
        }),
        look("input is as declared", |at| {
            Box::pin(async move {
                let started = at
                    .place()
                    .environment
                    .spawn(approved(at.command("cat")), Streams::Input)
                    .await;
                match (started, at.can(Ability::Input)) {
                    (Ok(mut process), true) => holds("an input", process.take_input().is_some(), "none"),
                    (Err(_), false) => Ok(()),
                    (Ok(_), false) => Err(Wrong::new("a refusal", "a process with an input")),
                    (Err(error), true) => Err(Wrong::new("a process with an input", format!("{error:?}"))),
                }
            })
        }),
        look("reading files is as declared", |at| {
            Box::pin(async move {
                let read = at.read_as(ReadAsk::new("f")).await;
                let seen = format!("{read:?}");
                holds(
                    "a file if that is declared, and a refusal if not",
                    read.is_ok() == at.can(Ability::ReadFiles),
                    &seen,
                )
            })
        })
        .file("f", "text\n"),
        look("writing files is as declared", |at| {
            Box::pin(async move {
                let written = at.write("f", "x").await;
                let seen = format!("{written:?}");
                holds(
                    "a file if that is declared, and a refusal if not",
                    written.is_ok() == at.can(Ability::WriteFiles),
                    &seen,
                )
            })
        }),
        look("an environment says what it can the same way each time", |at| {
            Box::pin(async move {
                let environment = at.shieling.environment();
                holds("it has a name", !environment.name().is_empty(), environment.name())?;
                let before = environment.capabilities();
                at.run("true").await;
                same("capabilities", environment.capabilities(), before)
            })
        }),
        look("what depends on something that is missing is not declared", |at| {
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
                    .filter(|(one, other)| at.can(*one) && !at.can(*other))
                    .collect();
                same("one without the other", wrong, Vec::new())
            })
        }),
        look("limits that are not declared are refused", |at| {
            Box::pin(async move {
                let with = |limits| Wishes {
                    limits,
                    ..Wishes::none()
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
                    if !at.can.limits.contains(&limit) {
                        is_refused(at, &format!("{limit:?}"), with(limits)).await?;
                    }
                }
                Ok(())
            })
        }),
        check("a size of files that cannot be limited is refused, not ignored", |at| {
            Box::pin(async move {
                let command = at
                    .command("echo hi")
                    .with_file_size(Some(shieling::units::ByteCount::mib(1)));
                let outcome = at.shieling.run(command, None).await;
                let declared = at.can.limits.contains(&Limit::FileSize);
                same("whether it ran", outcome.status == Status::Exited, declared)
            })
        }),
        look("networks that are not declared are refused", |at| {
            Box::pin(async move {
                for network in [Network::None, Network::Loopback, Network::Host] {
                    if !at.can.networks.contains(&network) {
                        let wishes = Wishes {
                            network: Some(network),
                            ..Wishes::none()
                        };
                        is_refused(at, &format!("{network:?}"), wishes).await?;
                    }
                }
                Ok(())
            })
        }),
        check("without a network nothing of this host is reached", |at| {
            Box::pin(async move { same("a connection", connects(at).await?, false) })
        })
        .network(Network::None)
        .needs([Need::Gives(Network::None)]),
        check(
            "with a loopback device of its own nothing of this host is reached",
            |at| Box::pin(async move { same("a connection", connects(at).await?, false) }),
        )
        .network(Network::Loopback)
        .needs([Need::Gives(Network::Loopback)]),
        check("with the network of this host it is reached", |at| {
            Box::pin(async move { same("a connection", connects(at).await?, true) })
        })
        .network(Network::Host)
        .needs([Need::Gives(Network::Host)]),
        check(
            "what is enforced is told, and nothing is both enforced and missing",
            |at| {
                Box::pin(async move {
                    let told = at.run("true").await.confinement;
                    let both: Vec<_> = told
                        .enforced
                        .iter()
                        .filter(|layer| told.missing.contains(layer))
                        .collect();
                    same("both", both, Vec::<&String>::new())?;
                    let holds_something = at.shieling.enforced() != Enforced::default();
                    holds(
                        "something, if something is declared",
                        !holds_something || !told.enforced.is_empty(),
                        &format!("{told:?}"),
                    )
                })
            },
        ),
        check("a process of this host has a number of this host", |at| {
            Box::pin(async move {
                let mut process = at
                    .place()
                    .environment
                    .spawn(approved(at.command("sleep 50")), Streams::Output)
                    .await
                    .map_err(|error| Wrong::new("a process", format!("{error:?}")))?;
                let marked = at.left();
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
        look("an environment without sessions says so itself", |at| {
            Box::pin(async move {
                let opened = at.place().environment.open_shell(&approved(at.command("true"))).await;
                match (opened, at.can(Ability::Sessions)) {
                    (Ok(_), true) | (Err(SpawnError::Session { .. }), false) => Ok(()),
                    (Ok(_), false) => Err(Wrong::new("`Session`", "a shell")),
                    (Err(error), _) => Err(Wrong::new(
                        "a shell if that is declared, `Session` if not",
                        format!("{error:?}"),
                    )),
                }
            })
        }),
    ]
}
