//! The network by name through the user's own proxy: `HTTPS_PROXY` with credentials, a whole session of an agent that is
//! asked about a host, and what of all that is written down.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use serde_json::json;
use shieling_testkit::prerequisite;

use crate::mcp::Server;
use crate::support::{Shieling, again_as_user};

/// The secret, which only its host may get.
const VALUE: &str = "glpat-Qm27VxLd94TbRk0sWc5h";

/// The password of the proxy, which no command may get.
const PASSWORD: &str = "pr0xy-Tz83kQ";

/// `me:` and [`PASSWORD`], as `Proxy-Authorization` has it.
const CREDENTIALS: &str = "Basic bWU6cHIweHktVHo4M2tR";

/// A proxy that wants credentials, takes every host to one TLS server, and answers requests in absolute form itself.
struct Proxy {
    url: String,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Proxy {
    fn start(tls: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("it is bound").port();
        let heads: Arc<Mutex<Vec<String>>> = Arc::default();
        let keep = Arc::clone(&heads);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let keep = Arc::clone(&keep);
                std::thread::spawn(move || serve(stream, tls, &keep));
            }
        });
        Self {
            url: format!("http://me:{PASSWORD}@127.0.0.1:{port}"),
            heads,
        }
    }

    /// The first lines of the requests that came with the credentials, and of the others.
    fn asked(&self) -> Vec<String> {
        let heads = self.heads.lock().expect("only pushed to");
        let line = |head: &String| {
            let known = head.contains(CREDENTIALS);
            let line = head.lines().next().unwrap_or_default().to_owned();
            if known { line } else { format!("unknown: {line}") }
        };
        heads.iter().map(line).collect()
    }
}

fn serve(mut stream: TcpStream, tls: u16, keep: &Mutex<Vec<String>>) {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        if !matches!(stream.read(&mut byte), Ok(1)) {
            return;
        }
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let known = head.contains(CREDENTIALS);
    let connect = head.starts_with("CONNECT ");
    keep.lock().expect("only pushed to").push(head);
    let answer: &[u8] = match (known, connect) {
        (false, _) => b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n",
        (true, false) => b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\nconnection: close\r\n\r\nplain\n",
        (true, true) => b"HTTP/1.1 200 Connected\r\n\r\n",
    };
    let _ = stream.write_all(answer);
    if known && connect {
        let server = TcpStream::connect(("127.0.0.1", tls)).expect("the server is there");
        let (mut from, mut to) = (
            stream.try_clone().expect("a socket"),
            server.try_clone().expect("a socket"),
        );
        let out = std::thread::spawn(move || {
            let _ = std::io::copy(&mut from, &mut to);
            let _ = to.shutdown(std::net::Shutdown::Write);
        });
        let (mut from, mut to) = (server, stream);
        let _ = std::io::copy(&mut from, &mut to);
        let _ = to.shutdown(std::net::Shutdown::Write);
        let _ = out.join();
    }
}

/// A server over TLS that answers with the host and the `Authorization` of each request, and keeps them in a file.
const SERVER: &str = "
import http.server, ssl
class H(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def do_GET(self):
        said = (self.headers['Host'] + ' ' + self.headers.get('Authorization', '-') + '\\n').encode()
        open('got', 'ab').write(said)
        self.send_response(200); self.send_header('content-length', str(len(said))); self.end_headers(); self.wfile.write(said)
    def log_message(self, *a): pass
s = http.server.ThreadingHTTPServer(('127.0.0.1', 0), H)
c = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER); c.load_cert_chain('cert.pem', 'key.pem')
s.socket = c.wrap_socket(s.socket, server_side=True)
print(s.server_address[1], flush=True)
s.serve_forever()
";

/// A server in a process of its own, which ends with this.
struct Ends(Child);

impl Drop for Ends {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What is outside: a server over TLS behind a proxy, and the certificate that its clients have to trust.
struct Outside {
    folder: tempfile::TempDir,
    proxy: Proxy,
    certificate: String,
    _server: Ends,
}

impl Outside {
    fn start() -> Option<Self> {
        if !prerequisite::has(&["openssl", "python3", "curl"]) {
            return None;
        }
        let folder = tempfile::tempdir().expect("a temporary directory");
        let made = Command::new("openssl")
            .args("req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=t -keyout key.pem -out cert.pem".split(' '))
            .args(["-addext", "basicConstraints=critical,CA:FALSE", "-addext"])
            .arg("subjectAltName=DNS:api.example.org,DNS:mirror.example.org")
            .current_dir(folder.path())
            .output()
            .expect("openssl is there");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let mut server = Command::new("python3")
            .args(["-c", SERVER])
            .current_dir(folder.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map(Ends)
            .expect("python3 is there");
        let mut line = String::new();
        BufReader::new(server.0.stdout.take().expect("piped"))
            .read_line(&mut line)
            .expect("it tells its port");
        let port = line.trim().parse().expect("a port");
        let certificate = folder.path().join("cert.pem").display().to_string();
        Some(Self {
            proxy: Proxy::start(port),
            folder,
            certificate,
            _server: server,
        })
    }

    /// A command line whose user has that proxy, and trusts the server's certificate.
    fn shieling(&self, args: &[&str]) -> Shieling {
        let certificate = std::fs::read_to_string(&self.certificate).expect("it was made");
        Shieling::in_workspace()
            .args(args.iter().copied())
            .variable("HTTPS_PROXY", &self.proxy.url)
            .variable("SSL_CERT_FILE", &self.certificate)
            .variable("API_TOKEN", VALUE)
            .file("server.pem", &certificate)
    }

    /// What the server got.
    fn got(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("got")).unwrap_or_default()
    }
}

/// The files of a test's place in which a text stands.
fn files_with(shieling: &Shieling, text: &str) -> String {
    let place = shieling.workspace();
    let found = Command::new("grep")
        .args(["-rlF", text])
        .arg(place.parent().expect("it lies in its place"))
        .output()
        .expect("grep is there");
    String::from_utf8_lossy(&found.stdout).into_owned()
}

/// Looks for a text where a command can look, without having it in its own text.
fn search(text: &str) -> String {
    let (first, rest) = text.split_at(9);
    format!(
        "n={first}; n+={rest}; env | grep -cF \"$n\"; \
         grep -lF \"$n\" /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null; \
         grep -rlF \"$n\" /etc /tmp /run /home . 2>/dev/null; true"
    )
}

#[test]
fn an_ordinary_user_has_the_same_network() {
    again_as_user(&["network::", "network_session::"]);
}

#[test]
fn a_session_is_asked_about_a_host_goes_on_and_the_secret_is_nowhere() {
    let Some(outside) = Outside::start() else { return };
    let options = [
        "mcp",
        "--secret",
        "API_TOKEN@api.example.org",
        "--record",
        "--audit",
        "../log.jsonl",
    ];
    let mut server = Server::start(outside.shieling(&options), json!({"elicitation": {}}));
    server.decision = "session";
    let call = |server: &mut Server, command: &str| {
        let (text, outcome) = server.shell(json!({"command": command, "session": "agent"}));
        assert_eq!(outcome["exit_code"], 0, "{command}: {text} {outcome}");
        (text, outcome)
    };
    let mut transcript = String::new();
    // It needs a host that nobody named, and goes on in the same command once a person has said yes.
    let fetch = "before=1; curl -sS --cacert server.pem https://mirror.example.org/package && echo \"went on $before\"";
    let (text, outcome) = call(&mut server, fetch);
    assert!(
        text.contains("mirror.example.org -") && text.contains("went on 1"),
        "{text}"
    );
    assert_eq!(outcome["network"]["denied"], json!([]), "{outcome}");
    assert_eq!(
        outcome["network"]["connections"][0]["host"], "mirror.example.org",
        "{outcome}"
    );
    transcript.push_str(&format!("{text}{outcome}"));
    let asked = server.asked.join("\n");
    assert_eq!(server.asked.len(), 1, "{asked}");
    assert!(
        asked.contains("May a command do this?") && asked.contains("connect mirror.example.org:443"),
        "{asked}"
    );
    // The answer stands for the session, whose state is still there, and the secret goes to its own host alone.
    let use_secret = "curl -sS --cacert server.pem https://mirror.example.org/again -H \"Authorization: Bearer $API_TOKEN\"; \
                      curl -sS https://api.example.org/ -H \"Authorization: Bearer $API_TOKEN\"; echo \"still $before\"";
    let (text, outcome) = call(&mut server, use_secret);
    assert!(text.contains("still 1"), "{text} {outcome}");
    let echoed: Vec<&str> = text.lines().filter(|line| line.contains(" Bearer glpat-")).collect();
    assert_eq!(echoed.len(), 2, "{text}");
    transcript.push_str(&format!("{text}{outcome}"));
    // Another name is another question; what a person refuses is an answer, and no end of the session.
    server.decision = "no";
    let (text, outcome) = call(
        &mut server,
        "curl -sS https://other.example.org/ 2>&1; echo \"still $before\"",
    );
    assert!(
        text.contains("still 1") && text.contains("network: `other.example.org:443` was refused"),
        "{text} {outcome}"
    );
    transcript.push_str(&format!("{text}{outcome}"));
    // Nowhere in the sandbox.
    let (text, outcome) = call(&mut server, &search(VALUE));
    assert_eq!(outcome["stdout"], "0\n", "{text}");
    let (text, outcome) = call(&mut server, &search(PASSWORD));
    assert_eq!(outcome["stdout"], "0\n", "{text}");
    let asked = server.asked.join("\n");
    assert_eq!(server.asked.len(), 2, "{asked}");
    let (shieling, exit, rest, told) = server.end();
    assert_eq!((exit, rest.as_str()), (Some(0), ""), "{told}");

    // The server got it, once.
    let got = outside.got();
    let with_value: Vec<&str> = got.lines().filter(|line| line.contains(VALUE)).collect();
    assert_eq!(with_value, [format!("api.example.org Bearer {VALUE}")], "{got}");
    assert_eq!(
        outside.proxy.asked(),
        [
            "CONNECT mirror.example.org:443 HTTP/1.1",
            "CONNECT mirror.example.org:443 HTTP/1.1",
            "CONNECT api.example.org:443 HTTP/1.1"
        ]
    );
    // Neither the model, nor the person, nor the log, nor a recording, nor anything else in the place has either.
    for text in [VALUE, PASSWORD, "bWU6cHIweHktVHo4M2tR"] {
        assert!(!transcript.contains(text), "{transcript}");
        assert!(!asked.contains(text) && !told.contains(text), "{asked} {told}");
        assert_eq!(files_with(&shieling, text), "", "{text}");
    }
    let state = shieling.workspace().join("../state/shieling");
    assert!(
        !files_with(&shieling, "went on").is_empty() && state.join("recordings").exists(),
        "it was recorded"
    );
    // The log says who was let through and why, each connection, and what was refused.
    let log = std::fs::read_to_string(shieling.workspace().join("../log.jsonl")).expect("it was written");
    let records: Vec<serde_json::Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let connections: Vec<&serde_json::Value> = records
        .iter()
        .map(|record| &record["connection"])
        .filter(|connection| connection.is_object())
        .collect();
    let of = |host: &str| connections.iter().filter(|one| one["host"] == host).count();
    assert_eq!(
        (of("mirror.example.org"), of("api.example.org"), of("other.example.org")),
        (2, 1, 1),
        "{log}"
    );
    let secret = connections.iter().find(|one| one["host"] == "api.example.org");
    let secret = secret.expect("counted above");
    assert_eq!(
        secret["requests"],
        json!([{"method": "GET", "path": "/", "status": 200}]),
        "{log}"
    );
    assert!(
        secret["bytes_in"].as_u64() > Some(0) && secret["bytes_out"].as_u64() > Some(0),
        "{log}"
    );
    let verified = shieling.again(["log", "verify", "../log.jsonl"]);
    assert_eq!(verified.exit, Some(0), "{verified}");
}

#[test]
fn the_line_that_always_prints_opens_the_host_to_a_new_start() {
    let Some(outside) = Outside::start() else { return };
    let fetch = "curl -sS --cacert server.pem https://mirror.example.org/";
    let mut server = Server::start(
        outside.shieling(&["mcp", "--allow-host", "example.org"]),
        json!({"elicitation": {}}),
    );
    server.decision = "always";
    let (text, outcome) = server.shell(json!({"command": fetch}));
    assert_eq!(
        (outcome["exit_code"].as_i64(), server.asked.len()),
        (Some(0), 1),
        "{text}"
    );
    let line = text.split('`').find(|part| part.starts_with("allow-host = ["));
    let line = line.unwrap_or_else(|| panic!("{text}"));
    drop(server);
    for (config, opened) in [(line, true), ("", false)] {
        let ran = outside.shieling(&["exec", fetch]).user_config(config).run();
        assert_eq!(ran.exit == Some(0), opened, "{config}: {ran}");
        assert_eq!(ran.stdout.contains("mirror.example.org -"), opened, "{config}: {ran}");
    }
    // The host that was named, and no other one.
    let other = fetch.replace("mirror", "other");
    let ran = outside.shieling(&["exec", &other]).user_config(line).run();
    assert!(ran.exit != Some(0) && ran.stderr.contains("refused"), "{ran}");
}

#[test]
fn the_users_proxy_is_read_outside_and_its_credentials_stay_there() {
    let Some(outside) = Outside::start() else { return };
    let get = "env | grep -i proxy; curl -sS http://plain.example.org/; \
               curl -sS --cacert server.pem https://mirror.example.org/";
    let hosts = [
        "--allow-host",
        "plain.example.org",
        "--allow-host",
        "mirror.example.org",
    ];
    let exec = |variables: &[(&str, &str)]| {
        let args = [&["exec", "--json", "--audit", "../log.jsonl"][..], &hosts, &[get]].concat();
        let certificate = std::fs::read_to_string(&outside.certificate).expect("it was made");
        let shieling = Shieling::in_workspace().args(args).file("server.pem", &certificate);
        let with = |shieling: Shieling, (name, value): &(&str, &str)| shieling.variable(name, value);
        let shieling = variables.iter().fold(shieling, with);
        let ran = shieling.run();
        assert_eq!(files_with(&shieling, PASSWORD), "", "{ran}");
        assert!(!format!("{ran}").contains(PASSWORD), "{ran}");
        let log = std::fs::read_to_string(shieling.workspace().join("../log.jsonl"));
        (ran, log.unwrap_or_default())
    };
    let url = outside.proxy.url.as_str();
    for name in ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"] {
        let before = outside.proxy.asked().len();
        let (ran, log) = exec(&[(name, url)]);
        // On port 80 the log has methods and paths, too.
        assert!(
            log.contains("\"host\":\"plain.example.org\"")
                && log.contains("\"requests\":[{\"method\":\"GET\",\"path\":\"/\",\"status\":200}]"),
            "{log}"
        );
        let printed = ran.outcome()["stdout"].as_str().unwrap_or_default().to_owned();
        assert_eq!(printed, "plain\nmirror.example.org -\n", "{name}: {ran}");
        assert_eq!(
            outside.proxy.asked()[before..],
            [
                "GET http://plain.example.org/ HTTP/1.1",
                "CONNECT mirror.example.org:443 HTTP/1.1"
            ],
            "{name}"
        );
    }
    // What goes around the proxy does not come to it.
    let before = outside.proxy.asked().len();
    let (ran, _) = exec(&[("HTTPS_PROXY", url), ("NO_PROXY", "localhost,.example.org")]);
    assert_ne!(ran.outcome()["exit_code"], 0, "{ran}");
    assert_eq!(outside.proxy.asked().len(), before, "{ran}");
    // A proxy that knows other credentials is told as that.
    let wrong = url.replace(PASSWORD, "another");
    let (ran, _) = exec(&[("HTTPS_PROXY", &wrong)]);
    let outcome = ran.outcome();
    assert!(
        outcome["hints"].to_string().contains("407") && outcome["exit_code"] != 0,
        "{ran}"
    );
    // One that cannot be one is refused before anything starts, without its value.
    for value in [
        format!("socks5://me:{PASSWORD}@127.0.0.1:1"),
        format!("http://me:{PASSWORD}@"),
    ] {
        let (ran, _) = exec(&[("HTTPS_PROXY", &value)]);
        assert_eq!(
            (ran.exit, ran.outcome()["status"].as_str()),
            (Some(125), Some("failed")),
            "{ran}"
        );
        assert!(ran.stderr.contains("HTTPS_PROXY names no proxy"), "{ran}");
    }
}
