//! Package managers and git against mirrors of a few packages: over HTTP, over TLS that passes untouched, and with a
//! secret that they use and never see.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use shieling::approval::Mode;
use shieling::network::{Roots, Secret};
use shieling_testkit::prerequisite;

use crate::outside::{Ends, Leads, go_client, make_certificate, own_address};
use crate::place::{Place, has};

/// What the parts of a mirror below `/private` are for.
const VALUE: &str = "npm_8sKd03JxQvR6tYw2ZpLm94Hc";

/// See `mirror.py`.
struct Mirror {
    folder: tempfile::TempDir,
    port: String,
    _server: Ends,
}

impl Mirror {
    /// At this address, with TLS if it is not loopback.
    fn start(address: std::net::IpAddr) -> Option<Self> {
        if !prerequisite::has(&["python3", "git", "dpkg-deb"]) {
            return None;
        }
        let folder = tempfile::tempdir().expect("a temporary directory");
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/network/mirror.py");
        // The place of the sources may be one that only its owner reads.
        let script = std::fs::read_to_string(script).unwrap_or_else(|_| include_str!("mirror.py").to_owned());
        let mut command = Command::new("python3");
        command.args(["-c", &script, &address.to_string()]);
        if !address.is_loopback() {
            if !has("openssl") {
                return None;
            }
            make_certificate(folder.path());
            command.arg("tls");
        }
        let mut server = command
            .current_dir(folder.path())
            .env("VALUE", VALUE)
            .env("HOME", folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map(Ends)
            .expect("python3 is there");
        let port = server.first_line();
        assert!(!port.is_empty(), "the mirror was made");
        Some(Self {
            folder,
            port,
            _server: server,
        })
    }

    /// The certificate of its server.
    fn certificate(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("cert.pem")).expect("it was made")
    }

    /// What it was asked: a path and an `Authorization` in each line.
    fn got(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("got")).expect("it was asked")
    }
}

/// Cargo itself: what stands on `PATH` may be rustup's, which does not run without its home.
pub(crate) fn cargo() -> Option<PathBuf> {
    let cargo = std::env::var_os("CARGO").map(PathBuf::from);
    cargo.filter(|cargo| std::fs::File::open(cargo).is_ok())
}

/// What a client says about itself to a mirror.
enum Credentials {
    None,
    /// The placeholder in the variable `API_TOKEN`, in the way of each client.
    Token,
}

/// Has each client that is there fetch its package, and returns those that did.
fn fetch_all(place: &Place, scheme: &str, host: &str, credentials: &Credentials) -> Vec<&'static str> {
    let secret = matches!(credentials, Credentials::Token);
    let path = if secret { "/private" } else { "" };
    let (plain, known) = match credentials {
        Credentials::None => (format!("{scheme}://{host}"), format!("{scheme}://{host}")),
        Credentials::Token => (
            format!("{scheme}://{host}{path}"),
            format!("{scheme}://me:$API_TOKEN@{host}{path}"),
        ),
    };
    let name = host.split(':').next().unwrap_or_default();
    let cargo = cargo().map(|cargo| cargo.display().to_string()).unwrap_or_default();
    let pip = format!(
        "pip3 install -q --disable-pip-version-check --no-cache-dir --target got \
         --trusted-host {} --index-url \"{known}/simple\" tiny && PYTHONPATH=got python3 -c 'import tiny; print(tiny.word)'",
        // Over TLS nothing is trusted but what the certificate says.
        if scheme == "https" { "nobody.invalid" } else { name }
    );
    let npm = format!(
        "{}npm install --silent --no-audit --no-fund --cache $PWD/cache --registry {plain}/npm/ tiny && \
         node -p 'require(\"tiny\")'",
        if secret {
            format!("echo \"//{host}{path}/npm/:_authToken=$API_TOKEN\" > .npmrc; ")
        } else {
            String::new()
        }
    );
    let vendor = format!(
        "mkdir src .cargo && echo > src/lib.rs && printf '[package]\\nname = \"x\"\\nversion = \"0.1.0\"\\n\
         edition = \"2021\"\\n[dependencies]\\ntiny = {{ version = \"1\", registry = \"mirror\" }}\\n' > Cargo.toml && \
         printf '[registries.mirror]\\nindex = \"sparse+{plain}/cargo/\"\\n[registry]\\n\
         global-credential-providers = [\"cargo:token\"]\\n' > .cargo/config.toml && \
         {}CARGO_HOME=$PWD/home {cargo} vendor -q > printed && cat vendor/tiny/src/lib.rs",
        if secret {
            "CARGO_REGISTRIES_MIRROR_TOKEN=\"Bearer $API_TOKEN\" "
        } else {
            ""
        }
    );
    let apt = format!(
        "mkdir -p s/lists/partial c/archives/partial && echo 'deb [trusted=yes] {plain}/apt ./' > list && \
         echo \"machine {scheme}://{host} login me password $API_TOKEN\" > auth && \
         o=\"-qq -o Dir::State=$PWD/s -o Dir::State::lists=$PWD/s/lists -o Dir::State::status=/dev/null \
         -o Dir::Cache=$PWD/c -o APT::Sandbox::User=root -o Dir::Etc::SourceList=$PWD/list \
         -o Dir::Etc::SourceParts=/dev/null -o Dir::Etc::netrc=$PWD/auth\" && \
         apt-get $o update && apt-get $o download tiny && dpkg-deb -x tiny*.deb x && cat x/usr/share/tiny/word"
    );
    let git = format!(
        "git clone -q \"{known}/git/tiny.git\" . && echo pushed > new && git add new && \
         git -c user.name=a -c user.email=a@b commit -qm next && git push -q origin HEAD:refs/heads/other && cat word"
    );
    let header = format!(
        "git -c http.extraHeader=\"Authorization: Bearer $API_TOKEN\" clone -q {plain}/git/tiny.git . && cat word"
    );
    let requests = format!(
        "/usr/bin/python3 -c 'import os, requests; print(requests.get(\"{plain}/word\", headers={{\"Authorization\": \
         \"Bearer \" + os.environ.get(\"API_TOKEN\", \"\")}}).text)'"
    );
    let mut clients = vec![
        ("pip3", pip, "from pip"),
        ("npm", npm, "from npm"),
        ("apt-get", apt, "from apt"),
        ("git", git, "from git"),
    ];
    if secret {
        clients.push(("git header", header, "from git"));
    }
    match cargo.is_empty() {
        true => prerequisite::skip("cargo, in the variable CARGO"),
        false => clients.push(("cargo", vendor, "// from cargo")),
    }
    if has_requests() {
        clients.push(("requests", requests, "from the mirror"));
    }
    if let Some(program) = go_client() {
        std::fs::copy(program, place.workspace.path().join("get")).expect("our own file");
        let get = format!("../get {plain}/word \"Bearer $API_TOKEN\"");
        clients.push(("go", get, "from the mirror"));
    }
    let mut fetched = Vec::new();
    for (number, (client, text, expected)) in clients.into_iter().enumerate() {
        let program = client.split(' ').next().unwrap_or(client);
        if !matches!(program, "cargo" | "requests" | "go") && !has(program) {
            continue;
        }
        let printed = place.prints(&format!("mkdir in{number} && cd in{number} && {text}"));
        assert_eq!(printed.lines().next_back(), Some(expected), "{client}: {printed}");
        fetched.push(client);
    }
    fetched
}

/// Whether Debian's Python has the module.
fn has_requests() -> bool {
    let there = Command::new("/usr/bin/python3")
        .args(["-c", "import requests"])
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if !there {
        prerequisite::skip("python3-requests");
    }
    there
}

/// A place that cargo is in.
fn place(hosts: &[&str], build: impl FnOnce(shieling::Builder) -> shieling::Builder) -> Place {
    let cargo = cargo();
    let read: Vec<&Path> = cargo.iter().map(PathBuf::as_path).collect();
    Place::reading(&read, hosts, |builder| build(builder.approval(Mode::Never)))
}

#[test]
fn package_managers_and_git_use_mirrors_over_http() {
    let Some(mirror) = Mirror::start([127, 0, 0, 1].into()) else {
        return;
    };
    let host = format!("host.internal:{}", mirror.port);
    let place = place(&[&host], |builder| builder);
    let fetched = fetch_all(&place, "http", &host, &Credentials::None);
    assert!(fetched.contains(&"git"), "{fetched:?}");
    // What git pushed is there.
    let pushed = Command::new("git")
        .args(["-C", "git/tiny.git", "show", "other:new"])
        .current_dir(mirror.folder.path())
        .output()
        .expect("git is there");
    assert_eq!(String::from_utf8_lossy(&pushed.stdout), "pushed\n", "{pushed:?}");
}

#[test]
fn tls_to_a_mirror_passes_untouched_with_its_own_authority() {
    let Some(own) = own_address() else { return };
    let Some(mirror) = Mirror::start(own) else { return };
    let port = &mirror.port;
    let hosts = [format!("api.example.org:{port}"), format!("{own}:{port}")];
    let place = place(&hosts.each_ref().map(String::as_str), |builder| {
        builder.resolver(Arc::new(Leads(own)))
    });
    std::fs::write(place.workspace.path().join("ca.pem"), mirror.certificate()).expect("our own file");
    let base = format!("https://api.example.org:{port}");
    let trusting = "export GIT_SSL_CAINFO=$PWD/ca.pem PIP_CERT=$PWD/ca.pem CARGO_HTTP_CAINFO=$PWD/ca.pem; ";
    let clone = format!("git clone -q {base}/git/tiny.git there && cat there/word && rm -r there");
    let pip = format!(
        "pip3 download -q --disable-pip-version-check --no-cache-dir --index-url {base}/simple tiny && ls *.whl"
    );
    assert_eq!(place.prints(&format!("{trusting}{clone}")), "from git");
    if has("pip3") {
        assert_eq!(place.prints(&format!("{trusting}{pip}")), "tiny-1.0-py3-none-any.whl");
    }
    // Nobody stands in between, and who does not trust that authority is told so by the program itself.
    let outcome = place.run(&clone);
    assert!(outcome.exit_code != Some(0), "{outcome:?}");
    assert!(outcome.stderr.contains("certificate"), "{outcome:?}");
    // A name that is not opened is none, at once, whatever its certificate says.
    let denied = place.fails(&format!("{trusting}{}", clone.replace("api.", "other.")));
    assert!(
        denied.iter().any(|denied| denied.host == "other.example.org"),
        "{denied:?}"
    );
}

#[test]
fn package_managers_and_git_use_a_secret_that_they_do_not_see() {
    let Some(own) = own_address() else { return };
    let Some(mirror) = Mirror::start(own) else { return };
    let port = &mirror.port;
    let place = place(&[&format!("{own}:{port}")], |builder| {
        let spec = format!("API_TOKEN@api.example.org:{port}")
            .parse()
            .expect("well formed");
        let secret = Secret::new(spec, VALUE).expect("long enough");
        let roots = Roots::Pem(mirror.certificate());
        builder.resolver(Arc::new(Leads(own))).roots(roots).secret(secret)
    });
    let host = format!("api.example.org:{port}");
    let fetched = fetch_all(&place, "https", &host, &Credentials::Token);
    assert!(fetched.contains(&"git header"), "{fetched:?}");
    let got = mirror.got();
    let placeholder = place.prints("printf %s \"$API_TOKEN\"");
    assert!(!got.contains(&placeholder), "{got}");
    // What they leave in their files has the placeholder, and never the secret.
    let found = Command::new("grep")
        .args(["-rlF", VALUE])
        .arg(place.workspace.path())
        .output()
        .expect("grep is there");
    assert_eq!(String::from_utf8_lossy(&found.stdout), "");
    let kept = place.prints("cat in*/.npmrc in*/.git/config | grep -cF \"$API_TOKEN\"");
    assert_ne!(kept, "0");
}
