//! What a gateway reports, as outcomes tell it.

use shieling_gateway::{Connection, Denied, End, Report};

use crate::outcome::{NetworkConnection, NetworkDenied, NetworkSummary};

/// The largest number of hosts that an outcome lists of each kind.
const LISTED: usize = 64;

/// A report as an outcome has it: connections to the same host and port are one entry.
pub(crate) fn summary(report: &Report) -> NetworkSummary {
    let mut summary = NetworkSummary {
        omitted: report.left_out,
        ..NetworkSummary::default()
    };
    for connection in &report.connections {
        // It stands among the refusals.
        if connection.end == End::Refused {
            continue;
        }
        let one = self::connection(connection);
        let listed = summary.connections.len();
        let mut known = summary.connections.iter_mut();
        match known.find(|known| known.host == one.host && known.port == one.port) {
            Some(known) => {
                known.count += 1;
                known.bytes_in += one.bytes_in;
                known.bytes_out += one.bytes_out;
                known.error = one.error.or(known.error.take());
            }
            None if listed < LISTED => summary.connections.push(one),
            None => summary.omitted += 1,
        }
    }
    for refused in &report.denied {
        match summary.denied.len() < LISTED {
            true => summary.denied.push(denied(refused)),
            false => summary.omitted += 1,
        }
    }
    summary
}

/// One connection.
fn connection(connection: &Connection) -> NetworkConnection {
    NetworkConnection {
        host: connection.host.clone(),
        port: connection.port,
        bytes_in: connection.bytes_in,
        bytes_out: connection.bytes_out,
        count: 1,
        error: failure(&connection.end),
    }
}

/// Why a connection failed, if it did.
pub(crate) fn failure(end: &End) -> Option<String> {
    match end {
        End::Failed(why) => Some(why.clone()),
        End::Unresolved(why) => Some(format!("{}: {why}", NetworkConnection::NO_ADDRESS)),
        End::Unreachable(why) => Some(format!("{}: {why}", NetworkConnection::UNREACHABLE)),
        End::Idle => Some("nothing was sent for too long".to_owned()),
        End::ByteLimit => Some("the limit of bytes was reached".to_owned()),
        End::Open | End::Closed | End::Refused => None,
        // A kind that this version does not know.
        _ => Some("it ended in another way".to_owned()),
    }
}

/// One refusal.
fn denied(denied: &Denied) -> NetworkDenied {
    NetworkDenied {
        host: denied.host.clone(),
        port: denied.port,
        because: denied.because.clone(),
        instead: denied.instead.clone(),
        count: denied.count,
    }
}
