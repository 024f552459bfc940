//! The jail's side of a gateway: networks that are local to it, and sockets that are bound in them and handed to the
//! host. Nothing of it stays open here, and no command is ever given one.
//!
//! What is not local has no route: the kernel says so at once, to IPv4 and IPv6.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd as _, OwnedFd};

use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use shieling_jail::message::{Layer, SOCKETS, SOCKETS_MOST};
use shieling_jail::plan::{Endpoint, Gateway};

use crate::refusal::{Step, While as _};
use crate::socket;

/// Connections that wait for the host. The kernel bounds it further (`net.core.somaxconn`).
const BACKLOG: i32 = 1024;

/// The loopback interface, which is the first of a network.
const LOOPBACK: u32 = 1;

/// Makes the routes and the sockets of a plan, and sends the sockets to the host.
pub(crate) fn open(gateway: &Gateway, control: &OwnedFd) -> Step {
    let routing = || "making a network local".to_owned();
    let kernel = rustix::net::socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)
        .or_refuse(Layer::Network, routing)?;
    for (network, bits) in &gateway.routes {
        add_route(&kernel, *network, *bits).or_refuse(Layer::Network, || format!("making {network}/{bits} local"))?;
    }
    for endpoints in gateway.sockets.chunks(SOCKETS_MOST) {
        let sockets = bind(endpoints)?;
        let sockets: Vec<_> = sockets.iter().map(OwnedFd::as_fd).collect();
        socket::send(control, SOCKETS, &sockets)
            .or_refuse(Layer::Network, || "handing sockets to the host".to_owned())?;
    }
    Ok(())
}

/// Sockets that are bound here, in this order; those for connections listen.
pub(crate) fn bind(endpoints: &[Endpoint]) -> Step<Vec<OwnedFd>> {
    let one = |endpoint: &Endpoint| {
        let (address, kind) = match endpoint {
            Endpoint::Tcp(address) => (address, SocketType::STREAM),
            Endpoint::Udp(address) => (address, SocketType::DGRAM),
        };
        bound(address, kind).or_refuse(Layer::Network, || format!("binding {address} in the sandbox's network"))
    };
    endpoints.iter().map(one).collect()
}

fn bound(address: &SocketAddr, kind: SocketType) -> Result<OwnedFd, Errno> {
    let family = match address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(family, kind, flags, None)?;
    rustix::net::bind(&socket, address)?;
    if kind == SocketType::STREAM {
        rustix::net::listen(&socket, BACKLOG)?;
    }
    Ok(socket)
}

/// Has every address of a network be one of this jail's own, as `ip route add local NETWORK dev lo` does.
fn add_route(kernel: &OwnedFd, network: IpAddr, bits: u8) -> Result<(), Errno> {
    rustix::net::send(kernel, &route(network, bits), SendFlags::empty())?;
    let mut answer = [0_u8; 1024];
    let (count, _) = rustix::net::recv(kernel, &mut answer[..], RecvFlags::empty())?;
    // A header of 16 bytes, which says `NLMSG_ERROR`, and the error: 0 for none.
    let (Some(kind), Some(error)) = (answer.get(4..6), answer.get(16..20)) else {
        return Err(Errno::PROTO);
    };
    if count < 20 || kind != 2_u16.to_ne_bytes() {
        return Err(Errno::PROTO);
    }
    let error = i32::from_ne_bytes(error.try_into().map_err(|_| Errno::PROTO)?);
    match error {
        0 => Ok(()),
        // It stands already: two rules name the same network.
        error if -error == Errno::EXIST.raw_os_error() => Ok(()),
        error => Err(Errno::from_raw_os_error(-error)),
    }
}

/// The request for a local route, from `linux/rtnetlink.h`.
fn route(network: IpAddr, bits: u8) -> Vec<u8> {
    const NEW_ROUTE: u16 = 24;
    const REQUEST_CREATE_EXCLUSIVELY_ACKNOWLEDGE: u16 = 0x1 | 0x400 | 0x200 | 0x4;
    const LOCAL_TABLE: u8 = 255;
    const BY_BOOT: u8 = 3;
    const SCOPE_HOST: u8 = 254;
    const LOCAL: u8 = 2;
    const DESTINATION: u16 = 1;
    const INTERFACE: u16 = 4;
    let (family, scope, address) = match network {
        IpAddr::V4(address) => (2, SCOPE_HOST, address.octets().to_vec()),
        // IPv6 has no such scope for routes.
        IpAddr::V6(address) => (10, 0, address.octets().to_vec()),
    };
    let mut message = vec![0; 4];
    message.extend(NEW_ROUTE.to_ne_bytes());
    message.extend(REQUEST_CREATE_EXCLUSIVELY_ACKNOWLEDGE.to_ne_bytes());
    // The number of the request, and of its sender, of which there is one each.
    message.extend([0; 8]);
    message.extend([family, bits, 0, 0, LOCAL_TABLE, BY_BOOT, scope, LOCAL]);
    message.extend([0; 4]);
    let mut attribute = |kind: u16, value: &[u8]| {
        let length = u16::try_from(4 + value.len()).unwrap_or(u16::MAX);
        message.extend(length.to_ne_bytes());
        message.extend(kind.to_ne_bytes());
        message.extend(value);
    };
    attribute(DESTINATION, &address);
    attribute(INTERFACE, &LOOPBACK.to_ne_bytes());
    let length = u32::try_from(message.len()).unwrap_or(u32::MAX);
    message[..4].copy_from_slice(&length.to_ne_bytes());
    message
}
