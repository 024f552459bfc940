//! What is outside of a sandbox: an address of this host, names that lead to it, servers in processes of their own.

use std::io::{BufRead as _, BufReader};
use std::net::{IpAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::OnceLock;

use shieling::network::{BoxFuture, HostName, Resolver};

use crate::place::{PATH, has};

/// An IPv4 address of this host besides loopback, to which a name may lead where a rule names the address as well.
/// Without one the test is skipped.
#[track_caller]
pub(crate) fn own_address() -> Option<IpAddr> {
    // No packet is sent to find it.
    let socket = UdpSocket::bind("0.0.0.0:0").expect("a socket");
    let own = socket.connect("192.0.2.1:9").and_then(|()| socket.local_addr());
    let own = own
        .ok()
        .map(|own| own.ip())
        .filter(|own| !own.is_loopback() && !own.is_unspecified());
    if own.is_none() {
        shieling_testkit::prerequisite::skip("an address besides loopback");
    }
    own
}

/// Leads every name to one address.
pub(crate) struct Leads(pub(crate) IpAddr);

impl Resolver for Leads {
    fn resolve<'a>(&'a self, _: &'a HostName) -> BoxFuture<'a, std::io::Result<Vec<IpAddr>>> {
        Box::pin(std::future::ready(Ok(vec![self.0])))
    }
}

/// A process that ends with the test, however that ends.
pub(crate) struct Ends(pub(crate) Child);

impl Ends {
    /// The first line that it prints, which is piped.
    pub(crate) fn first_line(&mut self) -> String {
        let mut line = String::new();
        BufReader::new(self.0.stdout.take().expect("piped"))
            .read_line(&mut line)
            .expect("it prints a line");
        line.trim().to_owned()
    }
}

impl Drop for Ends {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Makes `cert.pem` and `key.pem` in a directory, for `api.example.org` and `other.example.org`.
pub(crate) fn make_certificate(folder: &Path) {
    let made = Command::new("openssl")
        .args("req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=t -keyout key.pem -out cert.pem -addext basicConstraints=critical,CA:FALSE -addext".split(' '))
        .arg("subjectAltName=DNS:api.example.org,DNS:other.example.org")
        .current_dir(folder)
        .output()
        .expect("openssl is there");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}

/// The variable with the path of [`go_client`] for an ordinary user.
pub(crate) const GO_CLIENT: &str = "SHIELING_TEST_GO_CLIENT";

/// A program of Go that gets a URL with an `Authorization`, made once. Without C, its resolver is Go's own.
pub(crate) fn go_client() -> Option<&'static Path> {
    static MADE: OnceLock<Option<(tempfile::TempDir, PathBuf)>> = OnceLock::new();
    let made = MADE.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a directory");
        if let Some(made) = std::env::var_os(GO_CLIENT) {
            return Some((folder, made.into()));
        }
        if !has("go") {
            return None;
        }
        // What Go has made of its own library stays, where cargo's files are.
        let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("go");
        let cache = match std::fs::create_dir_all(&cache) {
            Ok(()) => cache,
            Err(_) => folder.path().join("cache"),
        };
        let source = folder.path().join("get.go");
        std::fs::write(
            &source,
            "package main\nimport (\"fmt\"; \"io\"; \"net/http\"; \"os\")\nfunc main() {\n\
             \tq, err := http.NewRequest(\"GET\", os.Args[1], nil)\n\tif err != nil { panic(err) }\n\
             \tq.Header.Set(\"Authorization\", os.Args[2])\n\tr, err := http.DefaultClient.Do(q)\n\
             \tif err != nil { panic(err) }\n\tb, _ := io.ReadAll(r.Body)\n\tfmt.Print(string(b))\n}\n",
        )
        .expect("our own file");
        let program = folder.path().join("get");
        let built = Command::new("go")
            .args(["build", "-o"])
            .args([&program, &source])
            .env_clear()
            .env("PATH", PATH)
            .env("HOME", folder.path())
            .env("GOCACHE", &cache)
            .env("CGO_ENABLED", "0")
            .env("GOTOOLCHAIN", "local")
            .current_dir(folder.path())
            .output()
            .expect("go is there");
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        Some((folder, program))
    });
    made.as_ref().map(|(_, program)| program.as_path())
}
