//! An OpenSSH server on loopback for one test, and the client's settings for it: keys, port and known hosts of its own.
//!
//! It stands in a mount namespace of its own, in which an ordinary user is added; nothing of the host is changed. It is
//! ended by its number.
#![expect(
    clippy::disallowed_methods,
    reason = "a server is started here, and its files are placed"
)]

use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::prerequisite;

/// The ordinary user, who is there in the server's namespace alone.
const USER: &str = "shieling-far";
const USER_NUMBER: u32 = 47_112;

/// Who logs in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Login {
    /// Root.
    Root,
    /// An ordinary user.
    User,
}

impl Login {
    /// The name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Root => "root",
            Self::User => USER,
        }
    }
}

/// A server, with a directory of its own. Dropping it ends it.
#[derive(Debug)]
pub struct Server {
    folder: tempfile::TempDir,
    server: Child,
    port: u16,
}

/// What differs from the usual server.
#[derive(Debug, Default)]
pub struct Changes {
    /// Lines of shell, run in the server's namespace before it starts; `$1` is its directory.
    pub before: &'static str,
    /// More lines of its settings.
    pub settings: String,
}

/// Whether there is what a server takes. If not, [`prerequisite::skip`] has said what is missing.
///
/// # Panics
/// As [`prerequisite::skip`].
#[must_use]
#[track_caller]
pub fn is_there() -> bool {
    if !std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0) {
        prerequisite::skip("an SSH server with an ordinary user needs root");
        return false;
    }
    prerequisite::has(&["sshd", "ssh", "ssh-keygen", "unshare", "mount"])
}

fn run(program: &str, arguments: &[&str]) {
    let done = Command::new(program).args(arguments).output().expect(program);
    assert!(
        done.status.success(),
        "{program}: {}",
        String::from_utf8_lossy(&done.stderr)
    );
}

impl Server {
    /// Starts one.
    ///
    /// # Panics
    /// If it does not start, as do the others where something of the host is not as it has to be.
    #[must_use]
    pub fn start() -> Self {
        Self::with(Changes::default())
    }

    /// Starts one that differs.
    ///
    /// # Panics
    /// If it does not start.
    #[must_use]
    pub fn with(changes: Changes) -> Self {
        let folder = tempfile::tempdir().expect("a directory");
        let root = folder.path().canonicalize().expect("ours");
        // The ordinary user goes through it.
        std::fs::set_permissions(&root, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("ours");
        let at = |name: &str| root.join(name).display().to_string();
        for key in ["host", "key"] {
            run("ssh-keygen", &["-q", "-t", "ed25519", "-N", "", "-f", &at(key)]);
        }
        std::fs::copy(at("key.pub"), at("authorized")).expect("room");
        std::fs::set_permissions(at("authorized"), std::os::unix::fs::PermissionsExt::from_mode(0o644)).expect("ours");
        for home in ["home-root", "home-user"] {
            std::fs::create_dir(at(home)).expect("room");
        }
        chown(at("home-user"), Some(USER_NUMBER), Some(USER_NUMBER)).expect("root may");
        let passwd = std::fs::read_to_string("/etc/passwd").expect("it is there");
        let mut lines: Vec<String> = passwd
            .lines()
            .filter(|line| !line.starts_with("root:") && !line.starts_with("sshd:"))
            .map(str::to_owned)
            .collect();
        lines.push(format!("root:*:0:0::{}:/bin/bash", at("home-root")));
        lines.push("sshd:*:47113:65534::/:/usr/sbin/nologin".to_owned());
        lines.push(format!(
            "{USER}:*:{USER_NUMBER}:{USER_NUMBER}::{}:/bin/bash",
            at("home-user")
        ));
        std::fs::write(at("passwd"), lines.join("\n") + "\n").expect("room");
        let port = TcpListener::bind("127.0.0.1:0")
            .expect("a port")
            .local_addr()
            .expect("bound")
            .port();
        let settings = format!(
            "Port {port}\nListenAddress 127.0.0.1\nHostKey {}\nAuthorizedKeysFile {}\nUsePAM no\nStrictModes no\n\
             PidFile none\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin yes\n\
             MaxSessions 1000\nMaxStartups 1000\nLogLevel ERROR\n{}",
            at("host"),
            at("authorized"),
            changes.settings
        );
        std::fs::write(at("sshd_config"), settings).expect("room");
        let script = format!(
            "set -e; mount --bind \"$1/passwd\" /etc/passwd; mount -t tmpfs none /run; mkdir /run/sshd; {}\n\
             exec /usr/sbin/sshd -D -e -f \"$1/sshd_config\"",
            changes.before
        );
        let log = std::fs::File::create(at("log")).expect("room");
        let server = Command::new("unshare")
            .args(["--mount", "sh", "-c", &script, "sh"])
            .arg(&root)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("unshare is there");
        let this = Self { folder, server, port };
        this.write_client_settings(&format!(
            "[127.0.0.1]:{port} {}",
            std::fs::read_to_string(this.at("host.pub")).expect("made above")
        ));
        let until = Instant::now() + Duration::from_secs(20);
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(Instant::now() < until, "no server: {}", this.log());
            std::thread::sleep(Duration::from_millis(10));
        }
        this
    }

    /// Writes the client's settings, with these known hosts.
    ///
    /// # Panics
    /// If there is no room.
    pub fn write_client_settings(&self, known: &str) {
        std::fs::write(self.at("known"), known).expect("room");
        let settings = format!(
            "Host far\n HostName 127.0.0.1\n Port {}\nHost *\n IdentityFile {}\n IdentitiesOnly yes\n IdentityAgent none\n \
             UserKnownHostsFile {}\n GlobalKnownHostsFile /dev/null\n ConnectTimeout 20\n",
            self.port,
            self.at("key").display(),
            self.at("known").display()
        );
        std::fs::write(self.at("ssh_config"), settings).expect("room");
    }

    /// The client's settings, in which the host is called `far`.
    #[must_use]
    pub fn client_settings(&self) -> PathBuf {
        self.at("ssh_config")
    }

    /// The port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// A path in its directory.
    ///
    /// # Panics
    /// If its directory is gone.
    #[must_use]
    pub fn at(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().expect("ours").join(name)
    }

    /// What it has said.
    #[must_use]
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.at("log")).unwrap_or_default()
    }

    /// The home of who logs in.
    #[must_use]
    pub fn home(&self, login: Login) -> PathBuf {
        self.at(match login {
            Login::Root => "home-root",
            Login::User => "home-user",
        })
    }

    /// The client's options for a connection that all share, so that each costs little.
    #[must_use]
    pub fn shared(&self) -> [String; 6] {
        let path = format!("ControlPath={}/%r", self.at("").display());
        [
            "-o".into(),
            "ControlMaster=auto".into(),
            "-o".into(),
            path,
            "-o".into(),
            "ControlPersist=30".into(),
        ]
    }

    /// Gives a directory, and all in it, to who logs in.
    ///
    /// # Panics
    /// If that is not allowed.
    pub fn give(login: Login, directory: &Path) {
        if login == Login::User {
            run(
                "chown",
                &[
                    "-R",
                    &format!("{USER_NUMBER}:{USER_NUMBER}"),
                    &directory.display().to_string(),
                ],
            );
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Clients that share a connection wait for nothing else.
        for login in ["root", USER] {
            let control = self.at(login);
            if control.exists() {
                let path = format!("ControlPath={}", control.display());
                let _ = Command::new("ssh").args(["-o", &path, "-O", "exit", "far"]).output();
            }
        }
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}
