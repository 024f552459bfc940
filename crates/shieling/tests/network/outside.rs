//! What is outside of a sandbox: an address of this host, names that lead to it, servers in processes of their own.

use std::io::{BufRead as _, BufReader};
use std::net::{IpAddr, UdpSocket};
use std::path::Path;
use std::process::{Child, Command};

use shieling::network::{BoxFuture, HostName, Resolver};

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
