//! Sockets of a jail's network, made on the gateway's order while the jail runs.

use std::io;
use std::net::{TcpListener, UdpSocket};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Weak};

use shieling_gateway::{BoxFuture, Endpoint, Listener, Listeners, Protocol};
use shieling_jail::plan;
use tokio::sync::watch;

use crate::process::Jail;

/// Has a jail bind sockets, once it runs.
pub(super) struct JailSockets(pub(super) watch::Receiver<Option<Weak<Jail>>>);

impl JailSockets {
    async fn jail(&self) -> io::Result<Arc<Jail>> {
        let gone = || io::Error::new(io::ErrorKind::NotConnected, "the sandbox has ended");
        let mut jail = self.0.clone();
        let jail = jail.wait_for(Option::is_some).await.map_err(|_| gone())?.clone();
        jail.and_then(|jail| jail.upgrade()).ok_or_else(gone)
    }
}

impl Listeners for JailSockets {
    fn listen<'a>(&'a self, endpoints: &'a [Endpoint]) -> BoxFuture<'a, io::Result<Vec<Listener>>> {
        Box::pin(async move {
            let planned: Vec<_> = endpoints.iter().copied().map(planned).collect();
            let jail = self.jail().await?;
            let sockets = jail.listen(&planned).await.map_err(io::Error::other)?;
            Ok(sockets
                .into_iter()
                .zip(endpoints)
                .map(|(socket, endpoint)| listener(socket, endpoint.protocol))
                .collect())
        })
    }
}

/// An endpoint as a jail is told of it.
pub(super) fn planned(endpoint: Endpoint) -> plan::Endpoint {
    match endpoint.protocol {
        Protocol::Tcp => plan::Endpoint::Tcp(endpoint.address),
        Protocol::Udp => plan::Endpoint::Udp(endpoint.address),
    }
}

fn listener(socket: OwnedFd, protocol: Protocol) -> Listener {
    match protocol {
        Protocol::Tcp => Listener::Tcp(TcpListener::from(socket)),
        Protocol::Udp => Listener::Udp(UdpSocket::from(socket)),
    }
}
