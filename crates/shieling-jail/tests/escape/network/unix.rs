//! Unix sockets, which need no network: by their paths and by names that lie nowhere.

use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};

use shieling::environment::Network;

use super::python;
use crate::outside::{Background, Mark};
use crate::support::{Checked, Field, check};

pub(super) fn abstract_sockets(field: &Field<'_>) -> Checked {
    field.needs("python3")?;
    for network in [Network::None, Network::Loopback, Network::Host] {
        let name = format!("escape-{}", Mark::new());
        let server = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name)?)?;
        server.set_nonblocking(true)?;
        let place = field.place().with(|asked| asked.network = network).start()?;
        for kind in ["SOCK_STREAM", "SOCK_DGRAM", "SOCK_SEQPACKET"] {
            place.refused_with(
                &python(&format!(
                    "socket.socket(socket.AF_UNIX, socket.{kind}).connect(b\"\\0{name}\")"
                )),
                &["Operation not permitted", "Connection refused"],
            )?;
        }
        place.refused(&python(&format!(
            "socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b\"x\", b\"\\0{name}\")"
        )))?;
        let came = server.accept();
        check(came.is_err(), || {
            format!("ESCAPED: somebody connected with {network:?}")
        })?;
        // The control: outside, by this very user, it is there.
        let outside = std::process::Command::new("python3")
            .args([
                "-c",
                &format!("import socket; socket.socket(socket.AF_UNIX).connect(b'\\0{name}')"),
            ])
            .status()?;
        check(outside.success(), || "outside it cannot be reached either".to_owned())?;
        field.worked();
    }
    Ok(())
}

pub(super) fn path_sockets(field: &Field<'_>) -> Checked {
    field.needs("python3")?;
    // As services have them: in their user's files, and in `/run`.
    let making = field.place();
    let path = making.root.join("outside/service");
    let server = UnixListener::bind(&path)?;
    server.set_nonblocking(true)?;
    let place = making.with(|asked| asked.network = Network::Host).start()?;
    let path = path.display();
    place.refused_with(
        &python(&format!("socket.socket(socket.AF_UNIX).connect(\"{path}\")")),
        &["No such file"],
    )?;
    place.refused(&format!("curl -sS -m 2 --unix-socket {path} http://x/"))?;
    for service in [
        "/run/docker.sock",
        "/var/run/docker.sock",
        "/run/dbus/system_bus_socket",
        "/run/systemd/private",
        "/run/containerd/containerd.sock",
        "/run/podman/podman.sock",
        "/run/udev/control",
        "/run/systemd/journal/socket",
        "/dev/log",
        "/tmp/.X11-unix/X0",
        "/run/user/0/bus",
    ] {
        place.refused_with(
            &python(&format!("socket.socket(socket.AF_UNIX).connect(\"{service}\")")),
            &["No such file"],
        )?;
    }
    check(server.accept().is_err(), || "ESCAPED: somebody connected".to_owned())
}

pub(super) fn each_other(field: &Field<'_>) -> Checked {
    field.needs("python3")?;
    for network in [Network::Loopback, Network::Host] {
        let one = field.place().with(|asked| asked.network = network).start()?;
        let other = field.place().with(|asked| asked.network = network).start()?;
        let mark = Mark::new();
        let name = format!("between-{mark}");
        let serving = Background::start(
            field,
            &one,
            &format!(
                "{} & exec sleep {mark}",
                python(&format!(
                    "s = socket.socket(socket.AF_UNIX)\ns.bind(b\"\\0{name}\")\ns.listen()\nt = socket.socket()\nt.bind((\"127.0.0.7\", 5005)) if \"{network:?}\" == \"Loopback\" else 0\nt.listen()\nopen(\"/tmp/there\", \"w\").write(\"x\")\nwhile True: s.accept()"
                ))
            ),
        )?;
        mark.wait_for(1)?;
        one.works("for i in $(seq 200); do [ -e /tmp/there ] && exit 0; sleep 0.02; done; exit 1")?;
        for place in [&other, &one] {
            // Another command of the same sandbox does not reach it either.
            place.refused_with(
                &python(&format!("socket.socket(socket.AF_UNIX).connect(b\"\\0{name}\")")),
                &["Operation not permitted", "Connection refused"],
            )?;
        }
        other.refused("[ -e /tmp/there ]")?;
        if network == Network::Loopback {
            other.refused(&python("socket.create_connection((\"127.0.0.7\", 5005), 2)"))?;
            one.works(&python("socket.create_connection((\"127.0.0.7\", 5005), 2)"))?;
        }
        serving.drop_it();
    }
    Ok(())
}
