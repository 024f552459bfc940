//! Programs that know nothing of a gateway: they resolve names and connect, as they do anywhere.

use std::process::Command;

use shieling_gateway::{GatewayConfig, Roots, Secret, TrustPaths};
use shieling_testkit::prerequisite;

use crate::gateway::fixture::{Fixture, config};
use crate::gateway::servers::{self, Ca, itself};

const VALUE: &str = "ghp_R3alS3cr3tWithoutSigns0123456789abcd";

/// Runs a program with the variables of a gateway, and returns what it prints. `None` if it is not installed.
async fn run(fixture: &Fixture, program: &str, arguments: &[&str], ca: &Ca) -> Option<String> {
    std::fs::write("/mnt/ca.pem", &ca.pem).unwrap();
    let mut command = Command::new(program);
    command
        .args(arguments)
        .env("SSL_CERT_FILE", "/mnt/ca.pem")
        .env("REQUESTS_CA_BUNDLE", "/mnt/ca.pem")
        .env("CURL_CA_BUNDLE", "/mnt/ca.pem");
    for name in ["http_proxy", "https_proxy", "all_proxy", "no_proxy"] {
        command.env_remove(name).env_remove(name.to_uppercase());
    }
    if let Some(trust) = fixture.gateway.trust() {
        let paths = TrustPaths {
            authority: "/mnt/authority.pem".into(),
            bundle: "/mnt/bundle.pem".into(),
            java_store: "/mnt/java".into(),
        };
        std::fs::write(&paths.authority, trust.authority_pem()).unwrap();
        std::fs::write(&paths.bundle, trust.bundle_pem()).unwrap();
        std::fs::write(&paths.java_store, trust.java_store()).unwrap();
        command.envs(trust.variables(&paths));
        // Node has a list of its own for public hosts; the test's authority is not in it.
        command.env("NODE_EXTRA_CA_CERTS", &paths.bundle);
    }
    command.envs(fixture.gateway.variables());
    let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap();
    let output = match output {
        Ok(output) => output,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            prerequisite::skip(program);
            return None;
        }
        Err(error) => panic!("{error}"),
    };
    Some(format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    ))
}

/// A gateway to `good.example`, over HTTP and HTTPS, and with `token`, to `api.example` over HTTP/2.
async fn world(token: bool) -> (Fixture, Ca) {
    let ca = Ca::new();
    let mut config = GatewayConfig {
        roots: Roots::Pem(ca.pem.clone()),
        ..config(&["good.example", "api.example"])
    };
    if token {
        config.secrets = vec![Secret::new("TOKEN@api.example".parse().unwrap(), VALUE).unwrap()];
    }
    let fixture = Fixture::with(config);
    fixture.table.set("good.example", "93.184.0.10");
    fixture.table.set("api.example", "93.184.0.11");
    servers::http("93.184.0.10:80", itself).await;
    servers::https("93.184.0.10:443", ca.acceptor(&["good.example"], &["http/1.1"]), itself).await;
    servers::http2("93.184.0.11:443", ca.acceptor(&["api.example"], &["h2"])).await;
    (fixture, ca)
}

/// A server that ends with its test.
struct Server(std::process::Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

const PYTHON: &str = "
import os, socket, ssl, urllib.request, urllib.error
for url in ('http://good.example/p', 'https://good.example/p'):
    print(url, urllib.request.urlopen(url, timeout=10).status)
with socket.create_connection(('good.example', 443), 10) as raw:
    try:
        ssl.create_default_context().wrap_socket(raw, server_hostname='evil.example')
    except ssl.SSLError as error:
        print('sni', error.reason)
try:
    socket.getaddrinfo('evil.example', 443)
except socket.gaierror as error:
    print('evil', error.errno == socket.EAI_NONAME)
print(socket.gethostbyaddr(socket.gethostbyname('good.example'))[0])
";

const NODE: &str = "
const main = async () => {
  for (const url of ['http://good.example/n', 'https://good.example/n'])
    console.log(url, (await fetch(url)).status);
  const answer = await fetch('https://good.example/', { headers: { authorization: process.env.TOKEN ?? 'none' } });
  console.log((await answer.text()).includes('GET /'));
  await fetch('https://evil.example/').catch(error => console.log('evil', error.cause.code));
};
main();
";

space_tests! {
    async fn curl_reaches_what_is_allowed_over_both_and_nothing_else() {
        let (fixture, ca) = world(false).await;
        for url in ["http://good.example/x", "https://good.example/x"] {
            let Some(text) = run(&fixture, "curl", &["-sS", "-m", "10", url], &ca).await else { return };
            assert!(text.starts_with("GET /x HTTP/1.1"), "{text}");
        }
        let text = run(&fixture, "curl", &["-sS", "-m", "10", "https://evil.example/"], &ca).await.unwrap();
        assert!(text.contains("Could not resolve host"), "{text}");
        let text = run(&fixture, "curl", &["-sS", "-m", "10", "--connect-to", "evil.example:443:good.example:443", "https://evil.example/"], &ca).await.unwrap();
        assert!(text.contains("unrecognized name"), "{text}");
        let text = run(&fixture, "curl", &["-sS", "-m", "10", "-H", "Host: evil.example", "http://good.example/"], &ca).await.unwrap();
        assert!(text.contains("shieling: a connection to `good.example` carries a request for `evil.example`"), "{text}");
        let text = run(&fixture, "curl", &["-sS", "-m", "10", "-x", "http://good.example:80", "http://evil.example/"], &ca).await.unwrap();
        assert!(text.contains("absolute form"), "{text}");
        let text = run(&fixture, "curl", &["-sS", "-m", "10", "-p", "-x", "http://good.example:80", "https://evil.example/"], &ca).await.unwrap();
        assert!(text.contains("405"), "{text}");
    }

    async fn curl_uses_a_secret_over_http2_that_it_never_sees() {
        if !prerequisite::has(&["curl"]) {
            return;
        }
        let (fixture, ca) = world(true).await;
        let fetch = "curl -sS -m 10 -w '%{http_version}\\n' -H \"Authorization: Bearer $TOKEN\" https://api.example/user; echo $TOKEN; env; cat /mnt/*";
        let Some(text) = run(&fixture, "sh", &["-c", fetch], &ca).await else { return };
        let placeholder = fixture.gateway.variables()[0].1.clone();
        assert!(text.contains(&format!("authorization: Bearer {placeholder}")), "{text}");
        assert!(text.lines().any(|line| line == "2") && !text.contains("R3alS3cr3t"), "{text}");
        // A host without a secret keeps its own certificate.
        let text = run(&fixture, "curl", &["-sS", "-m", "10", "https://good.example/"], &ca).await.unwrap();
        assert!(text.starts_with("GET /"), "{text}");
    }

    async fn the_answers_of_a_real_server_are_those_of_a_direct_connection() {
        let (fixture, ca) = {
            let fixture = Fixture::new(&["good.example"]);
            fixture.table.set("good.example", "93.184.0.10");
            (fixture, Ca::new())
        };
        std::fs::write("/mnt/file", vec![b'x'; 3_000_000]).unwrap();
        std::fs::write("/mnt/empty", "").unwrap();
        let server = "import http.server as h\nclass S(h.SimpleHTTPRequestHandler):\n protocol_version='HTTP/1.1'\n def do_POST(s):\n  b=s.rfile.read(int(s.headers['Content-Length']))\n  s.send_response(201)\n  s.send_header('Transfer-Encoding','chunked')\n  s.end_headers()\n  s.wfile.write(b'%x\\r\\n%s\\r\\n0\\r\\n\\r\\n'%(len(b),b))\n def log_message(*a): pass\nh.ThreadingHTTPServer(('93.184.0.10',80),S).serve_forever()";
        let Ok(server) = Command::new("python3").args(["-c", server]).current_dir("/mnt").spawn() else {
            return prerequisite::skip("python3");
        };
        let mut server = Server(server);
        for _ in 0..500 {
            if tokio::net::TcpStream::connect("93.184.0.10:80").await.is_ok() {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        assert!(server.0.try_wait().unwrap().is_none());
        let body = "b".repeat(5000);
        let cases: &[&[&str]] = &[
            &["http://good.example/file"],
            &["-I", "http://good.example/file"],
            &["-0", "http://good.example/file"],
            &["http://good.example/empty", "http://good.example/missing", "http://good.example/file"],
            &["-H", "If-Modified-Since: Fri, 01 Jan 2100 00:00:00 GMT", "http://good.example/file"],
            &["-H", "Expect: 100-continue", "-d", &body, "http://good.example/"],
            &["-X", "OPTIONS", "http://good.example/"],
            &["-L", "http://good.example/missing/../"],
        ];
        for case in cases {
            let mut texts = Vec::new();
            for direct in [false, true] {
                let mut arguments = vec!["-sS", "-i", "-m", "10"];
                if direct {
                    arguments.extend(["--connect-to", "::93.184.0.10:"]);
                }
                arguments.extend_from_slice(case);
                let Some(text) = run(&fixture, "curl", &arguments, &ca).await else { return };
                // The interim response is the gateway's own, a client of HTTP/1.0 is answered in it, Date is of the
                // second, and `Connection` and the order of headers are of each connection.
                let own = ["Date: ", "HTTP/1.1 100", "Connection: "];
                let lines = text.lines().filter(|line| !own.iter().any(|start| line.starts_with(start)));
                let lines = lines.filter(|line| !line.is_empty()).map(|line| line.replace("HTTP/1.0", "HTTP/1.1"));
                let mut lines: Vec<String> = lines.collect();
                lines.sort();
                texts.push(lines);
            }
            let short = |lines: &Vec<String>| lines.iter().map(|line| line.chars().take(80).collect::<String>()).collect::<Vec<_>>();
            assert!(texts[0] == texts[1], "{case:?}: {:#?} directly {:#?}", short(&texts[0]), short(&texts[1]));
        }
    }

    async fn java_reads_the_store_of_certificates() {
        let (fixture, ca) = world(true).await;
        let list = ["-list", "-keystore", "/mnt/java", "-storepass", "changeit"];
        let Some(text) = run(&fixture, "keytool", &list, &ca).await else { return };
        assert!(text.contains("contains 2 entries") && text.matches("trustedCertEntry").count() == 2, "{text}");
        let text = run(&fixture, "keytool", &["-list", "-keystore", "/mnt/java", "-storepass", "another"], &ca).await.unwrap();
        assert!(text.contains("password was incorrect"), "{text}");
    }

    async fn wget_follows_a_host_that_is_allowed() {
        let (fixture, ca) = world(false).await;
        let arguments = ["-qO-", "-T", "10", "-t", "1", "--ca-certificate", "/mnt/ca.pem", "http://good.example/w", "https://good.example/w"];
        let Some(text) = run(&fixture, "wget", &arguments, &ca).await else { return };
        assert_eq!(text.matches("GET /w HTTP/1.1").count(), 2, "{text}");
        let text = run(&fixture, "wget", &["-T", "10", "-t", "1", "https://evil.example/"], &ca).await.unwrap();
        assert!(text.contains("unable to resolve host address"), "{text}");
    }

    async fn python_resolves_connects_and_is_refused_as_anywhere() {
        let (fixture, ca) = world(false).await;
        let Some(text) = run(&fixture, "python3", &["-c", PYTHON], &ca).await else { return };
        for line in ["http://good.example/p 200", "https://good.example/p 200", "sni TLSV1_UNRECOGNIZED_NAME", "evil True", "good.example"] {
            assert!(text.contains(line), "{line}: {text}");
        }
    }

    async fn node_resolves_connects_and_is_refused_as_anywhere() {
        let (fixture, ca) = world(true).await;
        let Some(text) = run(&fixture, "node", &["-e", NODE], &ca).await else { return };
        for line in ["http://good.example/n 200", "https://good.example/n 200", "true", "evil ENOTFOUND"] {
            assert!(text.contains(line), "{line}: {text}");
        }
    }
}
