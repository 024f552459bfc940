//! The reduced isolation: a guard-rail without namespaces, which still leads to nothing of the user's
//! other programs.

use std::os::unix::net::UnixListener;
use std::path::Path;

use shieling::environment::{Environment as _, Network};
use shieling_jail::plan::Isolation;

use super::support::{Case, Checked, Field, Place, case, check};

pub(crate) const CASES: &[Case] = &[
    case(
        "without namespaces, sockets of the host's services cannot be reached",
        sockets,
    ),
    case(
        "without namespaces, no terminal, memory or queue of the host is in reach",
        devices,
    ),
    case(
        "without namespaces, temporary files have a directory that goes with the sandbox",
        temporary,
    ),
    case("it says that it is no boundary", said),
];

fn reduced<'a>(field: &'a Field<'_>, network: Network) -> Checked<Place<'a>> {
    field
        .place()
        .with(|asked| {
            asked.isolation = Isolation::Landlock;
            asked.network = network;
        })
        .start()
}

fn sockets(field: &Field<'_>) -> Checked {
    field.needs("python3")?;
    for network in [Network::None, Network::Host] {
        let place = reduced(field, network)?;
        // In the workspace, where Landlock has nothing against it.
        let _service = UnixListener::bind(place.work().join("service"))?;
        for kind in ["SOCK_STREAM", "SOCK_DGRAM", "SOCK_SEQPACKET"] {
            place.refused_with(
                &format!(
                    "python3 -c 'import socket; socket.socket(socket.AF_UNIX, socket.{kind}).connect(\"service\")'"
                ),
                &["Operation not permitted"],
            )?;
        }
        place.works(
            "python3 -c 'import socket; a, b = socket.socketpair(); a.send(b\"x\"); assert b.recv(1) == b\"x\"'",
        )?;
    }
    Ok(())
}

fn devices(field: &Field<'_>) -> Checked {
    let place = reduced(field, Network::Host)?;
    let other = rustix::pty::openpt(rustix::pty::OpenptFlags::RDWR | rustix::pty::OpenptFlags::NOCTTY)?;
    rustix::pty::unlockpt(&other)?;
    let name = rustix::pty::ptsname(&other, Vec::new())?;
    let name = name.to_string_lossy();
    for text in [
        format!("echo x > {name}"),
        format!("cat < {name}"),
        "cat < /dev/ptmx".to_owned(),
        "ls /dev/pts".to_owned(),
        "ls /dev/shm".to_owned(),
        "echo x > /dev/shm/shieling-escape".to_owned(),
    ] {
        place.refused_with(&text, &["Permission denied"])?;
    }
    place.refused_with("echo x > /dev/tty", &["No such device or address"])?;
    if field.needs("ipcmk").is_ok() {
        for kind in ["-M 4096", "-S 1", "-Q"] {
            place.refused_with(&format!("ipcmk {kind}"), &["Operation not permitted"])?;
        }
    }
    place
        .works("echo x > /dev/null && [ $(head -c 5 /dev/zero | wc -c) = 5 ] && echo out > /dev/stderr")
        .map(drop)
}

fn temporary(field: &Field<'_>) -> Checked {
    let place = reduced(field, Network::None)?;
    place.refused_with("echo x > /tmp/shieling-escape", &["Permission denied"])?;
    place.refused_with("ls /tmp", &["Permission denied"])?;
    place.works("f=$(mktemp) && [ \"${f%/*}\" = \"$TMPDIR\" ] && mkdir -p $TMPDIR/a/b && chmod 0 $TMPDIR/a")?;
    let directory = place.works("printf %s $TMPDIR; [ $(stat -c %a $TMPDIR) = 700 ]")?;
    let directory = Path::new(&directory);
    check(directory.starts_with("/tmp") && directory.is_dir(), || {
        format!("`{}` is not there", directory.display())
    })?;
    field.runtime.block_on(place.sandbox.close());
    field.attempted();
    check(!directory.exists(), || format!("`{}` is left", directory.display()))
}

fn said(field: &Field<'_>) -> Checked {
    let place = reduced(field, Network::None)?;
    let confinement = field.runtime.block_on(place.sandbox.start())?;
    field.attempted();
    check(
        confinement.missing.first().is_some_and(|name| name == "boundary"),
        || format!("{confinement:?}"),
    )
}
