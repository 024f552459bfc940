//! One connection from the sandbox, from its acceptance to its end.
//!
//! ```text
//! admitted? ─► port 443, or a secret's: name of TLS ─► secret? ─► HTTP, with the secret
//!    │              │                                    └──────► relay
//!    │              ├► port 80 ─► HTTP, each request checked
//!    └► refused     └► other ports, addresses, host.internal ─► relay
//! ```

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::counted::Prefixed;
use crate::hello::{self, Hello};
use crate::http;
use crate::name::HostName;
use crate::outside::{OpenError, Target};
use crate::record::{End, Live};
use crate::relay::relay;
use crate::rule::Protocol;
use crate::scope::Scope;
use crate::shared::Shared;

/// The port on which TLS is expected.
const TLS_PORT: u16 = 443;

/// The port on which HTTP is expected.
const HTTP_PORT: u16 = 80;

/// A fatal alert of TLS: `unrecognized_name`. Clients show it, where a reset would look like a broken network.
const ALERT: [u8; 7] = [21, 3, 3, 0, 2, 2, 112];

/// How long a client is given to read an alert.
const ALERT_WAIT: Duration = Duration::from_secs(1);

/// Serves one connection.
pub(crate) async fn serve(shared: Arc<Shared>, stream: TcpStream, local: SocketAddr) {
    let target = shared.target(local.ip());
    let port = local.port();
    if !shared.admit(&target, Protocol::Tcp, port).await {
        let _ = stream.set_zero_linger();
        return;
    }
    let _ = stream.set_nodelay(true);
    let live = shared.recorder.begin(target.to_string(), port, Protocol::Tcp);
    let end = match target {
        Target::Name(name) if port == TLS_PORT || shared.vault.has(&name, port) => {
            tls(&shared, &live, stream, name, port).await
        }
        Target::Name(name) if port == HTTP_PORT => {
            let (scope, _guard) = Scope::new(shared.scope.runtime());
            let stream = Prefixed {
                prefix: Vec::new(),
                stream,
            };
            // The future is large, and other connections do not need its room.
            Box::pin(http::plain(
                Arc::clone(&shared),
                Arc::clone(&live),
                stream,
                name,
                port,
                scope,
            ))
            .await
        }
        target => pass(&shared, &live, stream, &target, port, Vec::new()).await,
    };
    live.finish(end);
}

/// Serves a connection on which TLS is expected.
async fn tls(shared: &Arc<Shared>, live: &Arc<Live>, mut stream: TcpStream, name: HostName, port: u16) -> End {
    let mut first = Vec::new();
    let seen = match timeout(shared.limits.greeting, greeting(&mut stream, &mut first)).await {
        Ok(seen) => seen,
        Err(_) => {
            let _ = stream.set_zero_linger();
            return End::Failed("no ClientHello in time".to_owned());
        }
    };
    let deny = |because: String| shared.deny(name.to_string(), Some(port), because, None);
    match seen {
        // SSH carries no name, so that it reaches the host of the address alone.
        Hello::Ssh => return pass(shared, live, stream, &Target::Name(name), port, first).await,
        Hello::Name(asked) if asked == name || shared.allows(&asked, port) => {
            live.set_host(asked.as_str());
            if !shared.vault.has(&asked, port) {
                return pass(shared, live, stream, &Target::Name(asked), port, first).await;
            }
            let (scope, _guard) = Scope::new(shared.scope.runtime());
            let stream = Prefixed { prefix: first, stream };
            return Box::pin(http::secure(
                Arc::clone(shared),
                Arc::clone(live),
                stream,
                asked,
                port,
                scope,
            ))
            .await;
        }
        Hello::Name(asked) => {
            let because = format!("a connection to `{name}` asks for `{asked}` (SNI)");
            shared.deny_other(&asked, port, because);
        }
        Hello::Incomplete => return End::Closed,
        Hello::NoName => deny(format!("a TLS connection to `{name}:{port}` names no host (SNI)")),
        Hello::Encrypted => deny(format!(
            "a TLS connection to `{name}:{port}` hides its host (Encrypted Client Hello); switch that off in the program"
        )),
        Hello::Other => deny(format!("a connection to `{name}:{port}` is not TLS")),
    }
    alert(stream).await;
    End::Refused
}

/// Reads until it is clear what the client speaks.
async fn greeting(stream: &mut TcpStream, first: &mut Vec<u8>) -> Hello {
    loop {
        match hello::read(first) {
            Hello::Incomplete => {}
            seen => return seen,
        }
        match stream.read_buf(first).await {
            Ok(0) | Err(_) => return Hello::Incomplete,
            Ok(_) => {}
        }
    }
}

/// Tells a client of TLS that it is refused.
async fn alert(mut stream: TcpStream) {
    let telling = async {
        stream.write_all(&ALERT).await?;
        stream.shutdown().await?;
        // Closing while the client's bytes are unread would reset, and take the alert away.
        tokio::io::copy(&mut stream, &mut tokio::io::sink()).await
    };
    let _ = timeout(ALERT_WAIT, telling).await;
}

/// Connects to a target and passes bytes on, beginning with those that were read already.
async fn pass(shared: &Arc<Shared>, live: &Live, inside: TcpStream, target: &Target, port: u16, first: Vec<u8>) -> End {
    let end = match Box::pin(shared.outside.open(target, port, &shared.permit, false)).await {
        Ok(opened) => {
            live.set_address(opened.address);
            let mut outside = opened.stream;
            if !first.is_empty() {
                if let Err(error) = outside.write_all(&first).await {
                    return End::Failed(error.to_string());
                }
                live.count_out(first.len() as u64);
                drop(first);
            }
            return relay(&shared.pipes, &inside, &outside, live, shared.limits.idle).await;
        }
        Err(OpenError::Unresolved(text)) => End::Unresolved(text),
        Err(OpenError::Unreachable(text)) => End::Unreachable(text),
        Err(OpenError::Refused { because, instead }) => {
            shared.deny(target.to_string(), Some(port), because, instead);
            End::Refused
        }
    };
    // As near to a refused connection as one that was accepted can come.
    let _ = inside.set_zero_linger();
    end
}
