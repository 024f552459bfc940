//! Workspaces with a sandbox, and servers on this host's loopback.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use shieling::approval::Mode;
use shieling::environment::{Restrictions, Sandbox, Shell};
use shieling::network::HostRule;
use shieling::outcome::{NetworkDenied, Outcome, Status};
use shieling::policy::Policy;
use shieling::request::Command;
use shieling::session::{JobRequest, TerminalSize};
use shieling::{Builder, Shieling};

pub(crate) const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// How long a command may take, however busy the machine is.
const LONGEST: Duration = Duration::from_secs(60);

/// Answers requests with one line each, and keeps what it was sent.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) received: Arc<Mutex<Vec<String>>>,
}

impl Server {
    pub(crate) fn start() -> Self {
        Self::at(Ipv4Addr::LOCALHOST.into())
    }

    /// At an address of this host.
    pub(crate) fn at(address: IpAddr) -> Self {
        let listener = TcpListener::bind((address, 0)).expect("a port of this host");
        let address = listener.local_addr().expect("it is bound");
        let received: Arc<Mutex<Vec<String>>> = Arc::default();
        let keep = Arc::clone(&received);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let keep = Arc::clone(&keep);
                std::thread::spawn(move || answer(stream, &keep));
            }
        });
        Self { address, received }
    }

    /// As `--allow-host` takes it.
    pub(crate) fn host(&self) -> String {
        format!("host.internal:{}", self.address.port())
    }

    pub(crate) fn received(&self) -> Vec<String> {
        self.received.lock().expect("only pushed to").clone()
    }
}

fn answer(mut stream: TcpStream, keep: &Mutex<Vec<String>>) {
    stream.set_read_timeout(Some(LONGEST)).expect("a socket has timeouts");
    let mut head = Vec::new();
    let mut bytes = [0; 4096];
    loop {
        while let Some(end) = head.windows(4).position(|window| window == b"\r\n\r\n") {
            let rest = head.split_off(end + 4);
            keep.lock()
                .expect("only pushed to")
                .push(String::from_utf8_lossy(&head).into_owned());
            let answered =
                stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\ncontent-type: text/plain\r\n\r\nserved");
            if answered.is_err() {
                return;
            }
            head = rest;
        }
        match stream.read(&mut bytes) {
            Ok(0) | Err(_) => return,
            Ok(count) => head.extend_from_slice(&bytes[..count]),
        }
    }
}

/// A workspace, and a sandbox with what is opened.
pub(crate) struct Place {
    pub(crate) workspace: tempfile::TempDir,
    pub(crate) shieling: Shieling,
    sandbox: Arc<Sandbox>,
    runtime: tokio::runtime::Runtime,
}

impl Place {
    /// With these hosts.
    pub(crate) fn open(hosts: &[&str]) -> Self {
        Self::built(hosts, |builder| builder.approval(Mode::Never))
    }

    pub(crate) fn built(hosts: &[&str], build: impl FnOnce(Builder) -> Builder) -> Self {
        Self::reading(&[], hosts, build)
    }

    /// With these places of the host in the view, too.
    pub(crate) fn reading(read: &[&Path], hosts: &[&str], build: impl FnOnce(Builder) -> Builder) -> Self {
        let workspace = tempfile::tempdir().expect("a temporary directory");
        let root = workspace.path().canonicalize().expect("it is there");
        let mut restrictions = Restrictions::new(&root, "/bin/bash");
        restrictions.path = PATH.to_owned();
        restrictions.read = read.iter().map(|path| path.to_path_buf()).collect();
        let shell = Shell::find(None).expect("there is a shell");
        let sandbox = Arc::new(Sandbox::new(restrictions, shell));
        let mut builder = Shieling::builder(Arc::clone(&sandbox) as _, Policy::open(), root);
        for host in hosts {
            for rule in HostRule::expand(host).expect("a host of ours is well formed") {
                builder = builder.allow_host(rule);
            }
        }
        let shieling = build(builder).build().expect("a sandbox opens its network");
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .expect("a runtime");
        Self {
            workspace,
            shieling,
            sandbox,
            runtime,
        }
    }

    pub(crate) fn run(&self, text: &str) -> Outcome {
        self.runtime.block_on(self.shieling.run(self.command(text), None))
    }

    fn command(&self, text: &str) -> Command {
        let root = self.workspace.path().canonicalize().expect("it is there");
        let variables = [("PATH", PATH), ("LC_ALL", "C.UTF-8"), ("HOME", "/tmp")];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        Command::new(text, root)
            .expect("a command")
            .with_variables(BTreeMap::from(variables))
            .with_deadline(LONGEST)
            .expect("some time")
    }

    /// Runs a text on a terminal of its own.
    pub(crate) fn on_terminal(&self, text: &str) -> Outcome {
        let request = JobRequest::new(self.command(text)).with_terminal(TerminalSize::default());
        self.runtime.block_on(self.shieling.run_job(request))
    }

    /// Begins to start the sandbox, as the command line does.
    pub(crate) fn start_ahead(&self) {
        let _within = self.runtime.enter();
        self.sandbox.start_ahead();
    }

    /// Ends the sandbox. The next command is run in another one.
    pub(crate) fn end(&self) {
        self.runtime.block_on(self.shieling.environment().close());
    }

    /// Runs a text that has to end with 0, and gives what it printed.
    pub(crate) fn prints(&self, text: &str) -> String {
        let outcome = self.run(text);
        assert_eq!(
            (outcome.status, outcome.exit_code),
            (Status::Exited, Some(0)),
            "{text}: {outcome:?}"
        );
        outcome.stdout.trim().to_owned()
    }

    /// Runs a text that has to fail soon, and gives what was refused.
    pub(crate) fn fails(&self, text: &str) -> Vec<NetworkDenied> {
        let outcome = self.run(text);
        assert!(outcome.exit_code != Some(0), "{text}: {outcome:?}");
        assert!(
            outcome.took() < Duration::from_secs(15),
            "no time-out is waited for: {outcome:?}"
        );
        outcome.network.expect("the network was opened").denied
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.runtime.block_on(self.shieling.environment().close());
    }
}

/// Whether a program that a test is about is on this host.
pub(crate) fn has(program: &str) -> bool {
    shieling_testkit::prerequisite::has(&[program])
}
