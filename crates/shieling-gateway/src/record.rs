//! What happened: connections and refusals, bounded, with a cursor so that each command's outcome takes its own.
//!
//! Keeps no secret: paths of requests are recorded as the sandbox sent them, without query.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant, SystemTime};

use crate::rule::Protocol;

/// A position in the record. The one from before a command gives, in [`Gateway::report`](crate::Gateway::report),
/// what happened during the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cursor {
    /// The number of the next event.
    event: u64,
    /// How many connections had ended, and how many refusals there had been.
    ended: u64,
    denied: u64,
}

/// A request that was seen, on port 80 or on the way to a host that has a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Request {
    /// The method.
    pub method: String,
    /// The path without query, at most 256 bytes.
    pub path: String,
    /// The status of the response, once there is one.
    pub status: Option<u16>,
}

/// How a connection ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum End {
    /// It is open.
    Open,
    /// Both sides closed it.
    Closed,
    /// One side reset it, or it failed.
    Failed(String),
    /// The name has no address outside.
    Unresolved(String),
    /// Nothing answered at the addresses of the name, or at the proxy.
    Unreachable(String),
    /// The connection was refused; there is a [`Denied`] for it.
    Refused,
    /// No byte within [`Limits::idle`](crate::Limits::idle).
    Idle,
    /// [`Limits::bytes`](crate::Limits::bytes) are used up.
    ByteLimit,
}

/// A connection that was made or tried.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Connection {
    /// The name, or the address where a rule names one.
    pub host: String,
    /// The port.
    pub port: u16,
    /// The protocol.
    pub protocol: Protocol,
    /// The address outside; `None` if there was none, or a proxy resolved the name.
    pub address: Option<SocketAddr>,
    /// Bytes from the host to the sandbox.
    pub bytes_in: u64,
    /// Bytes from the sandbox to the host.
    pub bytes_out: u64,
    /// When the sandbox opened it.
    pub began: SystemTime,
    /// How long it lasted, or has lasted so far.
    pub duration: Duration,
    /// How it ended.
    pub end: End,
    /// The first requests, where HTTP was seen.
    pub requests: Vec<Request>,
    /// How many requests there were.
    pub requests_total: u64,
}

/// An attempt that was refused. The same one again counts up instead of adding an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Denied {
    /// The name or address.
    pub host: String,
    /// The port; `None` if the name was only looked up.
    pub port: Option<u16>,
    /// The reason.
    pub because: String,
    /// What to do instead, where that is known: the option that would allow it.
    pub instead: Option<String>,
    /// How often it was tried.
    pub count: u64,
}

/// What happened since a [`Cursor`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// Connections that began or ended since, in the order in which they began.
    pub connections: Vec<Connection>,
    /// Attempts that were refused since.
    pub denied: Vec<Denied>,
    /// Connections and refusals that the bound of the record left out.
    pub left_out: u64,
    /// The position after this report.
    pub cursor: Cursor,
}

/// Is told of each connection and refusal as it ends, for an audit log. Called on the gateway's tasks: must not block.
pub trait Observer: Send + Sync {
    /// A connection ended.
    fn connection(&self, connection: &Connection);
    /// An attempt was refused. Called for the first of several equal ones in a row.
    fn denied(&self, denied: &Denied);
}

/// The longest path of a request that is recorded, in bytes.
const PATH_BYTES_MAX: usize = 256;

/// New refusals that are recorded at once, and in a second after that. Further ones are only counted.
const DENIED_BURST: f64 = 1000.0;
const DENIED_RATE: f64 = 10.0;

/// The record of one gateway.
pub(crate) struct Recorder {
    records_max: usize,
    requests_max: usize,
    bytes_max: u64,
    bytes: AtomicU64,
    observer: Option<Arc<dyn Observer>>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    next_event: u64,
    /// Connections that ended, with the events of their beginning and end. The oldest end first.
    ended: VecDeque<(u64, u64, Connection)>,
    ended_total: u64,
    open: HashMap<u64, Weak<Live>>,
    /// Refusals with the last event of each.
    denied: VecDeque<(u64, Denied)>,
    denied_total: u64,
    /// How many new refusals may be recorded now, and when that was counted.
    denied_room: f64,
    denied_counted: Option<Instant>,
    /// The event of the newest cursor. A refusal from before is not counted up, so that each report has its own.
    newest_cursor: u64,
}

impl State {
    /// Takes the room for a new refusal. A program that makes up names must not fill an audit log.
    fn take_denied_room(&mut self, now: Instant) -> bool {
        let room = match self.denied_counted {
            Some(last) => self.denied_room + now.saturating_duration_since(last).as_secs_f64() * DENIED_RATE,
            None => DENIED_BURST,
        };
        self.denied_counted = Some(now);
        self.denied_room = room.min(DENIED_BURST);
        let taken = self.denied_room >= 1.0;
        self.denied_room -= f64::from(u8::from(taken));
        taken
    }

    fn event(&mut self) -> u64 {
        self.next_event += 1;
        self.next_event - 1
    }
}

impl Recorder {
    pub(crate) fn new(
        records_max: usize,
        requests_max: usize,
        bytes_max: Option<u64>,
        observer: Option<Arc<dyn Observer>>,
    ) -> Arc<Self> {
        Arc::new(Self {
            records_max,
            requests_max,
            bytes_max: bytes_max.unwrap_or(u64::MAX),
            bytes: AtomicU64::new(0),
            observer,
            state: Mutex::default(),
        })
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().expect("no panic while held")
    }

    /// Records the beginning of a connection.
    pub(crate) fn begin(self: &Arc<Self>, host: String, port: u16, protocol: Protocol) -> Arc<Live> {
        let mut state = self.state();
        let event = state.event();
        let live = Arc::new(Live {
            recorder: Arc::clone(self),
            event,
            port,
            protocol,
            began: SystemTime::now(),
            instant: Instant::now(),
            bytes_in: AtomicU64::new(0),
            bytes_out: AtomicU64::new(0),
            detail: Mutex::new(Detail {
                host,
                address: None,
                requests: Vec::new(),
                requests_total: 0,
                failure: None,
            }),
            ended: AtomicBool::new(false),
        });
        state.open.insert(event, Arc::downgrade(&live));
        live
    }

    /// Records a refusal.
    pub(crate) fn denied(&self, denied: Denied) {
        let mut state = self.state();
        let event = state.event();
        let newest_cursor = state.newest_cursor;
        let same = state.denied.iter_mut().find(|(last, known)| {
            *last >= newest_cursor
                && known.host == denied.host
                && known.port == denied.port
                && known.because == denied.because
        });
        if let Some((last, known)) = same {
            *last = event;
            known.count += 1;
            return;
        }
        state.denied_total += 1;
        if !state.take_denied_room(Instant::now()) {
            return;
        }
        if state.denied.len() >= self.records_max {
            state.denied.pop_front();
        }
        state.denied.push_back((event, denied.clone()));
        drop(state);
        if let Some(observer) = &self.observer {
            observer.denied(&denied);
        }
    }

    /// Whether the bytes of all connections are used up.
    pub(crate) fn exhausted(&self) -> bool {
        self.bytes.load(Ordering::Relaxed) >= self.bytes_max
    }

    pub(crate) fn cursor(&self) -> Cursor {
        let mut state = self.state();
        state.newest_cursor = state.next_event;
        Cursor {
            event: state.next_event,
            ended: state.ended_total,
            denied: state.denied_total,
        }
    }

    pub(crate) fn report(&self, since: Cursor) -> Report {
        let mut state = self.state();
        // Upgraded handles are dropped after the lock is released: the last one takes the lock to record its end.
        let open: Vec<Arc<Live>> = state.open.values().filter_map(Weak::upgrade).collect();
        let mut connections: Vec<(u64, Connection)> = Vec::new();
        let mut kept = 0;
        for (began, ended, connection) in &state.ended {
            kept += u64::from(*ended >= since.event);
            if *ended >= since.event {
                connections.push((*began, connection.clone()));
            }
        }
        let denied: Vec<Denied> = state
            .denied
            .iter()
            .filter(|(last, _)| *last >= since.event)
            .map(|(_, denied)| denied.clone())
            .collect();
        let new_denied = state.denied_total - since.denied;
        let left_out = (state.ended_total - since.ended - kept) + new_denied.saturating_sub(denied.len() as u64);
        state.newest_cursor = state.next_event;
        let cursor = Cursor {
            event: state.next_event,
            ended: state.ended_total,
            denied: state.denied_total,
        };
        drop(state);
        connections.extend(
            open.iter()
                .filter(|live| live.event >= since.event)
                .map(|live| (live.event, live.snapshot(live.failure().unwrap_or(End::Open)))),
        );
        connections.sort_by_key(|(began, _)| *began);
        let connections = connections.into_iter().map(|(_, connection)| connection).collect();
        Report {
            connections,
            denied,
            left_out,
            cursor,
        }
    }
}

/// The record of an open connection. The end is recorded by [`Live::finish`], or as a failure when the last handle
/// is dropped.
pub(crate) struct Live {
    recorder: Arc<Recorder>,
    event: u64,
    port: u16,
    protocol: Protocol,
    began: SystemTime,
    instant: Instant,
    bytes_in: AtomicU64,
    bytes_out: AtomicU64,
    detail: Mutex<Detail>,
    ended: AtomicBool,
}

struct Detail {
    host: String,
    address: Option<SocketAddr>,
    requests: Vec<Request>,
    requests_total: u64,
    failure: Option<End>,
}

impl Live {
    fn detail(&self) -> std::sync::MutexGuard<'_, Detail> {
        self.detail.lock().expect("no panic while held")
    }

    /// Sets the name that TLS or HTTP asked for, where it is another allowed one.
    pub(crate) fn set_host(&self, host: &str) {
        host.clone_into(&mut self.detail().host);
    }

    pub(crate) fn set_address(&self, address: Option<SocketAddr>) {
        self.detail().address = address;
    }

    /// Sets why the host is not reached, while the client still has its answer to read: it may end, and be told of, before
    /// the connection does.
    pub(crate) fn set_failure(&self, failure: Option<End>) {
        self.detail().failure = failure;
    }

    /// Why the host is not reached.
    pub(crate) fn failure(&self) -> Option<End> {
        self.detail().failure.clone()
    }

    /// Counts bytes from the host to the sandbox. Returns whether there may be more.
    pub(crate) fn count_in(&self, bytes: u64) -> bool {
        self.bytes_in.fetch_add(bytes, Ordering::Relaxed);
        self.recorder.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes <= self.recorder.bytes_max
    }

    /// Counts bytes from the sandbox to the host. Returns whether there may be more.
    pub(crate) fn count_out(&self, bytes: u64) -> bool {
        self.bytes_out.fetch_add(bytes, Ordering::Relaxed);
        self.recorder.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes <= self.recorder.bytes_max
    }

    /// All bytes so far, in both directions.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes_in.load(Ordering::Relaxed) + self.bytes_out.load(Ordering::Relaxed)
    }

    /// Records a request. The number is for [`Live::response`].
    pub(crate) fn request(&self, method: &str, path: &str) -> usize {
        let mut detail = self.detail();
        detail.requests_total += 1;
        if detail.requests.len() < self.recorder.requests_max {
            let end = path.floor_char_boundary(PATH_BYTES_MAX);
            detail.requests.push(Request {
                method: method.to_owned(),
                path: path[..end].to_owned(),
                status: None,
            });
        }
        usize::try_from(detail.requests_total - 1).unwrap_or(usize::MAX)
    }

    /// Records the status of the response to a request.
    pub(crate) fn response(&self, request: usize, status: u16) {
        if let Some(request) = self.detail().requests.get_mut(request) {
            request.status = Some(status);
        }
    }

    fn snapshot(&self, end: End) -> Connection {
        let detail = self.detail();
        Connection {
            host: detail.host.clone(),
            port: self.port,
            protocol: self.protocol,
            address: detail.address,
            bytes_in: self.bytes_in.load(Ordering::Relaxed),
            bytes_out: self.bytes_out.load(Ordering::Relaxed),
            began: self.began,
            duration: self.instant.elapsed(),
            end,
            requests: detail.requests.clone(),
            requests_total: detail.requests_total,
        }
    }

    /// Records the end. Only the first call counts.
    pub(crate) fn finish(&self, end: End) {
        if self.ended.swap(true, Ordering::Relaxed) {
            return;
        }
        let connection = self.snapshot(end);
        let mut state = self.recorder.state();
        state.open.remove(&self.event);
        let event = state.event();
        state.ended_total += 1;
        if state.ended.len() >= self.recorder.records_max {
            state.ended.pop_front();
        }
        state.ended.push_back((self.event, event, connection.clone()));
        drop(state);
        if let Some(observer) = &self.recorder.observer {
            observer.connection(&connection);
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.finish(End::Failed("the gateway ended".to_owned()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(host: &str) -> Denied {
        Denied {
            host: host.to_owned(),
            port: Some(443),
            because: "x".to_owned(),
            instead: None,
            count: 1,
        }
    }

    fn begin(recorder: &Arc<Recorder>, host: &str) -> Arc<Live> {
        recorder.begin(host.to_owned(), 443, Protocol::Tcp)
    }

    #[test]
    fn why_a_host_is_not_reached_is_told_while_the_client_reads_its_answer() {
        let recorder = Recorder::new(10, 10, None, None);
        let cursor = recorder.cursor();
        let live = begin(&recorder, "nowhere");
        let end = |recorder: &Arc<Recorder>| recorder.report(cursor).connections[0].end.clone();
        assert_eq!(end(&recorder), End::Open);
        live.set_failure(Some(End::Unresolved("no address".to_owned())));
        assert_eq!(end(&recorder), End::Unresolved("no address".to_owned()));
        live.set_failure(None);
        assert_eq!(end(&recorder), End::Open, "it answers after all");
    }

    #[test]
    fn each_report_has_what_happened_since_its_cursor() {
        let recorder = Recorder::new(10, 10, None, None);
        begin(&recorder, "before").finish(End::Closed);
        recorder.denied(refusal("evil"));
        let long = begin(&recorder, "long");
        let cursor = recorder.cursor();
        recorder.denied(refusal("evil"));
        recorder.denied(refusal("evil"));
        let during = begin(&recorder, "during");
        assert!(during.count_in(10) && during.count_out(3));
        let report = recorder.report(cursor);
        let hosts = |report: &Report| {
            report
                .connections
                .iter()
                .map(|connection| connection.host.clone())
                .collect::<Vec<_>>()
        };
        assert_eq!(hosts(&report), ["during"]);
        assert_eq!(
            (report.connections[0].bytes_in, report.connections[0].bytes_out),
            (10, 3)
        );
        assert_eq!(report.connections[0].end, End::Open);
        assert_eq!(
            report.denied,
            [Denied {
                count: 2,
                ..refusal("evil")
            }]
        );
        assert_eq!(report.left_out, 0);
        long.finish(End::Closed);
        drop(during);
        let next = recorder.report(report.cursor);
        assert_eq!(hosts(&next), ["long", "during"]);
        assert!(matches!(next.connections[1].end, End::Failed(_)));
        assert!(next.denied.is_empty());
    }

    #[test]
    fn what_the_bound_leaves_out_is_counted() {
        let recorder = Recorder::new(3, 2, None, None);
        let cursor = recorder.cursor();
        for number in 0..5 {
            begin(&recorder, &format!("h{number}")).finish(End::Closed);
            recorder.denied(refusal(&format!("d{number}")));
        }
        let report = recorder.report(cursor);
        assert_eq!(
            (report.connections.len(), report.denied.len(), report.left_out),
            (3, 3, 4)
        );
        let live = begin(&recorder, "http");
        for number in 0..5 {
            let request = live.request("GET", &"/é".repeat(200));
            live.response(request, 200 + number);
        }
        live.finish(End::Closed);
        let connection = recorder.report(report.cursor).connections.pop().unwrap();
        assert_eq!((connection.requests.len(), connection.requests_total), (2, 5));
        assert_eq!(connection.requests[1].status, Some(201));
        assert!(connection.requests[0].path.len() <= PATH_BYTES_MAX);
    }

    #[test]
    fn made_up_names_do_not_fill_an_audit_log() {
        #[derive(Default)]
        struct Log(AtomicU64);
        impl Observer for Log {
            fn connection(&self, _: &Connection) {}
            fn denied(&self, _: &Denied) {
                self.0.fetch_add(1, Ordering::Relaxed);
            }
        }
        let log = Arc::new(Log::default());
        let recorder = Recorder::new(10, 2, None, Some(log.clone()));
        let cursor = recorder.cursor();
        for number in 0..5000 {
            recorder.denied(refusal(&number.to_string()));
        }
        assert!((1000..1100).contains(&log.0.load(Ordering::Relaxed)));
        assert_eq!(recorder.report(cursor).left_out, 4990);
    }

    #[test]
    fn the_bound_of_bytes_is_over_all_connections() {
        let recorder = Recorder::new(3, 2, Some(100), None);
        let (a, b) = (begin(&recorder, "a"), begin(&recorder, "b"));
        assert!(a.count_in(60) && b.count_out(40));
        assert!(recorder.exhausted());
        assert!(!a.count_in(1));
    }
}
