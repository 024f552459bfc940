//! Secrets that commands use and never see.

use std::sync::Arc;

use shieling::approval::Mode;
use shieling::network::{Roots, Secret, SecretSpec};

use crate::outside::{Ends, Leads, make_certificate, own_address};
use crate::place::{Place, has};

const VALUE: &str = "ghp_r8Qx2LmN7vYt5KpW3sZd9JfB";

fn with_secret() -> Place {
    Place::built(&[], |builder| {
        let spec: SecretSpec = "API_TOKEN@api.example.org"
            .parse()
            .expect("a secret of ours is well formed");
        let secret = Secret::new(spec, VALUE).expect("a value of ours is long enough");
        builder.approval(Mode::Never).roots(Roots::Host).secret(secret)
    })
}

#[test]
fn the_variable_holds_a_placeholder_of_the_same_look() {
    let place = with_secret();
    let printed = place.prints("printf %s \"$API_TOKEN\"");
    assert_eq!(printed.len(), VALUE.len());
    assert_ne!(printed, VALUE);
    assert_eq!(
        place.prints("printf %s \"$API_TOKEN\""),
        printed,
        "as long as the sandbox lasts"
    );
    // It is in no place that a command can look at.
    let found = place.run(&format!(
        "grep -rlF {} /proc/*/environ /etc /tmp . 2>/dev/null",
        &VALUE[4..20]
    ));
    assert_eq!(found.stdout, "", "{found:?}");
}

#[test]
fn what_a_command_prints_of_it_is_the_placeholder() {
    let place = with_secret();
    let placeholder = place.prints("printf %s \"$API_TOKEN\"");
    // A file of the workspace may hold it.
    std::fs::write(place.workspace.path().join("env"), VALUE).expect("our own file");
    let outcome = place.run("cat env; cat env >&2; base64 -w0 env");
    for said in [&outcome.stdout, &outcome.stderr] {
        assert!(!said.contains(VALUE) && said.contains(&placeholder), "{outcome:?}");
    }
    let (half, rest) = VALUE.split_at(9);
    let halves = place.prints(&format!("printf %s {half}; sleep 0.2; printf %s {rest}"));
    assert_eq!(halves, placeholder, "in two parts");
}

#[test]
fn what_a_terminal_shows_of_it_is_the_placeholder() {
    let place = with_secret();
    let placeholder = place.prints("printf %s \"$API_TOKEN\"");
    std::fs::write(place.workspace.path().join("env"), VALUE).expect("our own file");
    let letters: String = VALUE
        .chars()
        .map(|letter| format!("printf {letter}; sleep 0.02; "))
        .collect();
    let (half, rest) = VALUE.split_at(9);
    for text in [
        "cat env".to_owned(),
        "cat env >&2; cat env > /dev/tty".to_owned(),
        format!("printf %s {half}; sleep 0.2; printf %s {rest}; echo"),
        letters,
    ] {
        let outcome = place.on_terminal(&text);
        assert!(
            !outcome.stdout.contains(VALUE) && outcome.stdout.contains(&placeholder),
            "{text}: {outcome:?}"
        );
    }
    // What only begins like a secret is shown, at the end at the latest.
    let outcome = place.on_terminal(&format!("printf {}", &VALUE[..6]));
    assert_eq!(outcome.stdout, &VALUE[..6], "{outcome:?}");
}

#[test]
fn programs_trust_the_authority_of_the_gateway() {
    let place = with_secret();
    for variable in [
        "SSL_CERT_FILE",
        "REQUESTS_CA_BUNDLE",
        "GIT_SSL_CAINFO",
        "CARGO_HTTP_CAINFO",
        "NODE_EXTRA_CA_CERTS",
    ] {
        let printed = place.prints(&format!("grep -c 'BEGIN CERTIFICATE' \"${variable}\""));
        assert_ne!(printed, "0", "{variable}");
    }
    let bundle = std::path::Path::new("/etc/ssl/certs/ca-certificates.crt");
    if bundle.exists() {
        // The system's own has one more.
        assert_eq!(
            place.prints("cmp /etc/ssl/certs/ca-certificates.crt \"$SSL_CERT_FILE\" && echo same"),
            "same"
        );
        let own = std::fs::read_to_string(bundle).expect("it is public");
        let inside: usize = place
            .prints("grep -c 'BEGIN CERT' \"$SSL_CERT_FILE\"")
            .parse()
            .expect("a number");
        assert!(inside > own.matches("BEGIN CERT").count() / 2, "{inside}");
    }
    if has("openssl") {
        let printed =
            place.prints("openssl x509 -in \"$NODE_EXTRA_CA_CERTS\" -noout -text | grep -A2 'Name Constraints'");
        assert!(printed.contains("Name Constraints"), "{printed}");
    }
    if has("keytool") && std::path::Path::new("/etc/ssl/certs/java/cacerts").exists() {
        let printed = place
            .prints("keytool -list -keystore /etc/ssl/certs/java/cacerts -storepass changeit 2>/dev/null | head -5");
        assert!(printed.contains("entries"), "{printed}");
    }
}

/// A server over TLS whose certificate is its own, which says what it got as `Authorization`.
const SERVER: &str = "
import http.server, ssl, sys
class H(http.server.BaseHTTPRequestHandler):
    protocol_version = \"HTTP/1.1\"
    def do_GET(self):
        said = self.headers.get(\"Authorization\", \"-\").encode()
        open(\"got\", \"ab\").write(said + b\" \" + self.path.encode() + b\"\\n\")
        if self.path == \"/trailer\":
            self.wfile.write(b\"HTTP/1.1 200 \" + said + b\"\\r\\nTransfer-Encoding: chunked\\r\\nTrailer: echo\\r\\n\\r\\n2\\r\\nhi\\r\\n0\\r\\necho: \" + said + b\"\\r\\n\\r\\n\")
            return
        if self.path == \"/websocket\":
            extensions = self.headers.get(\"Sec-WebSocket-Extensions\", \"-\").encode()
            self.wfile.write(b\"HTTP/1.1 101 Switching Protocols\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\n\\r\\n\")
            self.wfile.write(b\"<\" + said + b\">\" + extensions + b\" ghp_r\"); self.wfile.flush(); self.rfile.read(1)
            self.wfile.write(b\" \" + said[:16]); self.wfile.flush(); self.rfile.read(1)
            self.wfile.write(said[16:] + b\" end\"); self.close_connection = True
            return
        self.send_response(200); self.send_header(\"content-length\", str(len(said))); self.end_headers(); self.wfile.write(said)
    def log_message(self, *a): pass
s = http.server.ThreadingHTTPServer((sys.argv[1], 0), H)
c = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER); c.load_cert_chain(\"cert.pem\", \"key.pem\")
s.socket = c.wrap_socket(s.socket, server_side=True)
print(s.server_address[1], flush=True)
s.serve_forever()
";

/// A client that asks for a WebSocket, and prints all that it gets. It answers once the beginning of a secret has come.
const WEBSOCKET: &str = "
import os, socket, ssl, sys
s = ssl.create_default_context().wrap_socket(socket.create_connection((sys.argv[1], int(sys.argv[2]))), server_hostname=sys.argv[1])
s.sendall((\"GET /websocket HTTP/1.1\\r\\nHost: %s:%s\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\nSec-WebSocket-Extensions: permessage-deflate\\r\\nAuthorization: Bearer %s\\r\\n\\r\\n\" % (sys.argv[1], sys.argv[2], os.environ[\"API_TOKEN\"])).encode())
got = b\"\"
for end in (b\" ghp_r\", b\" Bearer ghp_r8Qx2\"):
    while not got.endswith(end): got += s.recv(1000) or exit(got)
    s.sendall(b\"x\")
while more := s.recv(1000): got += more
print(got.decode())
";

#[test]
fn the_host_of_a_secret_gets_the_value_and_every_client_trusts_the_way() {
    if !has("openssl") || !has("python3") || !has("curl") {
        return;
    }
    let Some(own) = own_address() else { return };
    let folder = tempfile::tempdir().expect("a temporary directory");
    make_certificate(folder.path());
    let mut server = std::process::Command::new("python3")
        .args(["-c", SERVER, &own.to_string()])
        .current_dir(folder.path())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .map(Ends)
        .expect("python3 is there");
    let port = server.first_line();
    let roots = std::fs::read_to_string(folder.path().join("cert.pem")).expect("it was made");
    let place = Place::built(
        &[&format!("other.example.org:{port}"), &format!("{own}:{port}")],
        |builder| {
            let spec = format!("API_TOKEN@api.example.org:{port}")
                .parse()
                .expect("well formed");
            let secret = Secret::new(spec, VALUE).expect("long enough");
            let builder = builder.approval(Mode::Never).resolver(Arc::new(Leads(own)));
            builder.roots(Roots::Pem(roots)).secret(secret)
        },
    );
    let url = format!("https://api.example.org:{port}");
    let header = "Authorization: Bearer $API_TOKEN";
    let mut clients = vec![
        ("curl", format!("curl -sS -H \"{header}\" {url}/curl")),
        ("wget", format!("wget -qO- --header \"{header}\" {url}/wget")),
        (
            "python3",
            format!(
                "python3 -c 'import os, urllib.request as r; print(r.urlopen(r.Request(\"{url}/python\", \
                 headers={{\"Authorization\": \"Bearer \" + os.environ[\"API_TOKEN\"]}})).read().decode())'"
            ),
        ),
        (
            "node",
            format!(
                "node -e 'fetch(\"{url}/node\", {{headers: {{Authorization: \"Bearer \" + process.env.API_TOKEN}}}})\
                 .then(r => r.text()).then(console.log)'"
            ),
        ),
    ];
    if std::path::Path::new("/etc/ssl/certs/java/cacerts").exists() {
        clients.push((
            "java",
            format!(
                "cat > T.java <<'X'\nclass T {{ public static void main(String[] a) throws Exception {{ \
                 var c = new java.net.URL(\"{url}/java\").openConnection(); \
                 c.setRequestProperty(\"Authorization\", \"Bearer \" + System.getenv(\"API_TOKEN\")); \
                 System.out.println(new String(c.getInputStream().readAllBytes())); }} }}\nX\njava T.java"
            ),
        ));
    }
    place.start_ahead();
    let placeholder = place.prints("printf %s \"$API_TOKEN\"");
    let mut asked = Vec::new();
    for (program, text) in clients {
        if has(program) {
            // What the server echoes comes back as the placeholder.
            assert_eq!(place.prints(&text), format!("Bearer {placeholder}"), "{program}");
            asked.push(program);
        }
    }
    // To another host, over TLS that nobody opens, it is the placeholder that goes.
    let other = format!("curl -sS -k -H \"{header}\" https://other.example.org:{port}/other");
    assert_eq!(place.prints(&other), format!("Bearer {placeholder}"));
    let got_other = format!("Bearer {placeholder} /other");
    // Nor does it come back by other ways than a body.
    let trailer = place.prints(&format!("curl -sS -D - -H TE:trailers -H \"{header}\" {url}/trailer"));
    assert!(trailer.contains(&format!("echo: Bearer {placeholder}")), "{trailer}");
    assert!(!trailer.contains(VALUE), "{trailer}");
    let websocket = place.prints(&format!("python3 -c '{WEBSOCKET}' api.example.org {port}"));
    assert!(
        websocket.contains("Connection: Upgrade\r\n") || websocket.contains("Connection: Upgrade\n"),
        "{websocket}"
    );
    // The beginning of a secret is not held back for ever, and what comes after it is none of it.
    let frames = format!(
        "<Bearer {placeholder}>- ghp_r Bearer {}{} end",
        &VALUE[..9],
        &placeholder[9..]
    );
    assert!(websocket.ends_with(&frames), "{websocket}");
    // Another sandbox has another authority, and the one of this is worth nothing there. Its key is in neither.
    let by_authority = |file: &str, path: &str| format!("curl -sS --cacert {file} -H \"{header}\" {url}/{path}");
    place.prints("cp \"$NODE_EXTRA_CA_CERTS\" old.pem");
    let own = place.prints(&by_authority("old.pem", "own"));
    assert_eq!(own, format!("Bearer {placeholder}"));
    place.end();
    let stale = place.run(&by_authority("old.pem", "stale"));
    assert_eq!(stale.exit_code, Some(60), "{stale:?}");
    let keys = place.run("grep -rl 'PRIVATE KEY' \"$(dirname \"$NODE_EXTRA_CA_CERTS\")\" old.pem");
    assert_eq!((keys.exit_code, keys.stdout.as_str()), (Some(1), ""), "{keys:?}");
    let next = place.prints(&format!("curl -sS -H \"{header}\" {url}/next"));
    assert!(next.starts_with("Bearer ghp_") && !next.contains(VALUE), "{next}");
    asked.extend(["trailer", "websocket", "own", "next"]);
    // In the path of a request, and in its body, it stays what it is.
    let placeholder = place.prints("printf %s \"$API_TOKEN\"");
    place.prints(&format!("curl -sS {url}/path-$API_TOKEN"));
    drop(server);
    let got = std::fs::read_to_string(folder.path().join("got")).expect("it was asked");
    let with_value = got
        .lines()
        .filter(|line| line.starts_with(&format!("Bearer {VALUE} ")))
        .count();
    assert_eq!(with_value, asked.len(), "{got}");
    assert!(got.contains(&got_other), "{got}");
    assert!(got.contains(&format!("- /path-{placeholder}")), "{got}");
}

#[test]
fn a_secret_opens_its_host_and_no_other() {
    let place = with_secret();
    assert_ne!(place.prints("getent hosts api.example.org"), "");
    let denied = place.fails("getent hosts example.org");
    assert!(denied.iter().any(|denied| denied.host == "example.org"), "{denied:?}");
}
