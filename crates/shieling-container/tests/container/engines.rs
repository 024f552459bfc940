//! Engines of the test program's own, with all they keep in one directory. Each is started by the first test that needs
//! it, and ended by a process beside it once this program has ended, however that was.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command as Program, Stdio};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use shieling::request::Digest;
use shieling_testkit::prerequisite;

/// The user whose rootless Podman is tested: one of this program's own, since its end removes it.
fn user_name() -> String {
    format!("shieling-{}", std::process::id())
}

/// How long an engine may take to answer.
const STARTING: Duration = Duration::from_secs(30);
/// How long a container may be half removed.
const HALF_REMOVED: Duration = Duration::from_secs(5);

/// An image with busybox and nothing else, whose entrypoint and health check would fail.
pub(crate) const BUSYBOX: &str = "localhost/shieling-test:busybox";
/// An image in which this host's programs work once its `/usr` is mounted.
pub(crate) const TOOLS: &str = "localhost/shieling-test:tools";
/// An image without any program.
pub(crate) const EMPTY: &str = "localhost/shieling-test:empty";
/// An image for other processors.
pub(crate) const FOREIGN: &str = "localhost/shieling-test:foreign";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Docker,
    Podman,
    Rootless,
}

impl Kind {
    pub(crate) const ALL: [Self; 3] = [Self::Docker, Self::Podman, Self::Rootless];
}

/// An engine that runs.
pub(crate) struct Engine {
    pub(crate) kind: Kind,
    pub(crate) socket: PathBuf,
    pub(crate) place: PathBuf,
    // Its input is open as long as this program runs.
    _beside: Child,
}

/// One test after the other, since each looks at what there is in an engine.
pub(crate) async fn turn() -> tokio::sync::MutexGuard<'static, ()> {
    static TURN: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
    TURN.lock().await
}

/// The engine of this kind, started with the first call. Nothing, and a word about it, if it cannot be had here.
pub(crate) fn engine(kind: Kind) -> Option<&'static Engine> {
    static ENGINES: [OnceLock<Option<Engine>>; 3] = [const { OnceLock::new() }; 3];
    // One after the other: they would slow each other down.
    static TURN: Mutex<()> = Mutex::new(());
    let needs: &[&str] = match kind {
        Kind::Docker => &["dockerd", "runc", "busybox"],
        Kind::Podman => &["podman", "runc", "busybox"],
        Kind::Rootless => &["podman", "runc", "busybox", "newuidmap", "useradd", "setpriv"],
    };
    if !prerequisite::has(needs) {
        return None;
    }
    if !rustix::process::geteuid().is_root() {
        prerequisite::skip("engines are started by root");
        return None;
    }
    let _turn = TURN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    ENGINES[kind as usize].get_or_init(|| Some(start(kind))).as_ref()
}

/// The number of that user, or of its group.
pub(crate) fn number(what: &str) -> u32 {
    let id = Program::new("id").args([what, &user_name()]).output().unwrap();
    String::from_utf8_lossy(&id.stdout).trim().parse::<u32>().unwrap()
}

const CONFIGURATION: &str = "\
[containers]
default_ulimits = [\"nofile=16384:16384\", \"nproc=32768:32768\"]
[engine]
cgroup_manager = \"cgroupfs\"
runtime = \"runc\"
events_logger = \"file\"
";

fn start(kind: Kind) -> Engine {
    let place = tempfile::Builder::new()
        .prefix("engine.")
        .tempdir()
        .expect("a directory")
        .keep();
    fs::set_permissions(&place, fs::Permissions::from_mode(0o755)).unwrap();
    let at = place.display();
    fs::write(place.join("containers.conf"), CONFIGURATION).unwrap();
    fs::write(place.join("storage.conf"), "[storage]\ndriver = \"overlay\"\n").unwrap();
    let mut as_user = String::new();
    let mut after = String::new();
    if kind == Kind::Rootless {
        let begun = Instant::now();
        loop {
            let made = Program::new("useradd").args(["-m", &user_name()]).output().unwrap();
            // 9: it is there from a run that was killed.
            if made.status.success() || made.status.code() == Some(9) {
                break;
            }
            // Another one changes the users at this moment.
            assert!(begun.elapsed() < STARTING, "{made:?}");
            std::thread::sleep(Duration::from_millis(100));
        }
        // Its group has another number where that of the user was taken.
        let (id, group) = (number("-u"), number("-g"));
        let runtime = PathBuf::from(format!("/run/user/{id}"));
        fs::create_dir_all(&runtime).unwrap();
        fs::set_permissions(&runtime, fs::Permissions::from_mode(0o700)).unwrap();
        for path in [&place, &runtime] {
            chown(path, Some(id), Some(group)).unwrap();
        }
        as_user = format!(
            "setpriv --reuid={id} --regid={group} --init-groups env HOME={at} XDG_RUNTIME_DIR={} \
             CONTAINERS_STORAGE_CONF={at}/storage.conf ",
            runtime.display()
        );
        // What pauses between its containers, and what it has mounted.
        after = format!(
            "for p in /proc/[0-9]*; do [ \"$(stat -c %u $p 2>/dev/null)\" = {id} ] && kill -9 ${{p#/proc/}}; done 2>/dev/null; \
             sleep 0.2; for i in $(seq 50); do userdel -rf {user} 2>/dev/null; id {user} >/dev/null 2>&1 || break; sleep 0.1; done; rm -rf {};",
            runtime.display(),
            user = user_name(),
        );
    }
    let daemon = match kind {
        Kind::Docker => format!(
            "dockerd --data-root {at}/data --exec-root {at}/exec --pidfile {at}/pid -H unix://{at}/s --storage-driver \
             overlay2 --bridge=none --iptables=false --ip6tables=false --ip-forward=false --ip-masq=false \
             --userland-proxy=false --exec-opt native.cgroupdriver=cgroupfs --shutdown-timeout 1 --log-level warn"
        ),
        Kind::Podman => format!(
            "podman --root {at}/root --runroot {at}/run --tmpdir {at}/tmp system service --time=0 unix://{at}/s"
        ),
        Kind::Rootless => format!("{as_user} podman system service --time=0 unix://{at}/s"),
    };
    let script = format!(
        "cd {at}; export CONTAINERS_CONF={at}/containers.conf; {daemon} >{at}/log 2>&1 </dev/null & pid=$!; \
         while read line; do :; done; kill -TERM $pid; for i in $(seq 30); do kill -0 $pid 2>/dev/null || break; \
         sleep 0.5; done; kill -9 $pid 2>/dev/null; {after} cd /; \
         grep \" {at}/\" /proc/self/mounts | cut -d' ' -f2 | sort -r | while read m; do umount -l \"$m\"; done; rm -rf {at}"
    );
    let beside = Program::new("setsid")
        .args(["sh", "-c", &script])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("sh is there");
    let engine = Engine {
        kind,
        socket: place.join("s"),
        place,
        _beside: beside,
    };
    let begun = Instant::now();
    while engine
        .try_api("GET", "/_ping", None)
        .is_none_or(|(status, _)| status != 200)
    {
        assert!(
            begun.elapsed() < STARTING,
            "{kind:?} does not answer: {}",
            fs::read_to_string(engine.place.join("log")).unwrap_or_default()
        );
        std::thread::sleep(Duration::from_millis(50));
    }
    for image in [BUSYBOX, TOOLS, EMPTY, FOREIGN] {
        let (status, said) = engine.api("POST", "/images/load", Some(("application/x-tar", &packed(image))));
        assert_eq!(status, 200, "{said}");
    }
    engine
}

impl Engine {
    fn try_api(&self, method: &str, path: &str, body: Option<(&str, &[u8])>) -> Option<(u16, String)> {
        let mut stream = UnixStream::connect(&self.socket).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(60))).ok()?;
        let path = if path == "/_ping" {
            path.to_owned()
        } else {
            format!("/v1.40{path}")
        };
        let (kind, bytes) = body.unwrap_or(("application/json", b""));
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: e\r\nConnection: close\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n",
            bytes.len()
        );
        stream.write_all(head.as_bytes()).ok()?;
        stream.write_all(bytes).ok()?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).ok()?;
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let (head, body) = answer.split_once("\r\n\r\n")?;
        let status = head.split(' ').nth(1)?.parse().ok()?;
        let chunked = head.to_lowercase().contains("transfer-encoding: chunked");
        Some((status, if chunked { unchunked(body) } else { body.to_owned() }))
    }

    pub(crate) fn api(&self, method: &str, path: &str, body: Option<(&str, &[u8])>) -> (u16, String) {
        self.try_api(method, path, body).expect("the engine answers")
    }

    pub(crate) fn json(&self, method: &str, path: &str, body: Option<&Value>) -> Value {
        let text = body.map(Value::to_string);
        let body = text.as_ref().map(|text| ("application/json", text.as_bytes()));
        let (status, said) = self.api(method, path, body);
        assert!(status < 400, "{method} {path}: {status} {said}");
        serde_json::from_str(&said).unwrap_or(Value::Null)
    }

    /// The containers that there are, by their ids, of those that were made by us.
    pub(crate) fn containers(&self) -> Vec<String> {
        let all = self.listed();
        let ids = all
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|one| one["Id"].as_str());
        ids.map(str::to_owned).collect()
    }

    /// The list of our containers. Podman does not answer while one of them is half removed: its record is there, its
    /// files are not. One that stays so is removed here, since every later test would fail by it.
    fn listed(&self) -> Value {
        let path = "/containers/json?all=true&filters=%7B%22label%22%3A%5B%22dev.shieling%22%5D%7D";
        let begun = Instant::now();
        loop {
            let (status, said) = self.api("GET", path, None);
            if status < 400 {
                return serde_json::from_str(&said).expect("a list");
            }
            let half_removed = said
                .split_once("getting container from store \\\"")
                .and_then(|(_, rest)| rest.split('\\').next());
            let Some(id) = half_removed.filter(|_| begun.elapsed() < STARTING) else {
                panic!("GET {path}: {status} {said}");
            };
            if begun.elapsed() > HALF_REMOVED {
                let told = format!("{id} stays half removed, and is removed once more\n");
                let _ = std::io::stderr().write_all(told.as_bytes());
                self.remove(id);
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Starts a container of its own, that waits, and gives its id.
    pub(crate) fn waiting(&self, image: &str, change: impl FnOnce(&mut Value)) -> String {
        let mut body = json!({
            "Image": image,
            "Entrypoint": ["/bin/busybox", "sleep", "600"],
            "Healthcheck": { "Test": ["NONE"] },
            "HostConfig": { "NetworkMode": "none" },
        });
        change(&mut body);
        let made = self.json("POST", "/containers/create", Some(&body));
        let id = made["Id"].as_str().unwrap().to_owned();
        let (status, said) = self.api("POST", &format!("/containers/{id}/start"), None);
        assert_eq!(status, 204, "{said}");
        id
    }

    pub(crate) fn remove(&self, id: &str) {
        self.api("DELETE", &format!("/containers/{id}?force=true"), None);
    }

    /// The names of the processes in a container.
    pub(crate) fn processes(&self, id: &str) -> Vec<String> {
        // One that is gone has none.
        let (_, said) = self.api("GET", &format!("/containers/{id}/json"), None);
        let state: Value = serde_json::from_str(&said).unwrap_or(Value::Null);
        let first = state["State"]["Pid"].as_u64().unwrap_or(0);
        let namespace = |pid: &str| fs::read_link(format!("/proc/{pid}/ns/pid")).ok();
        let theirs = namespace(&first.to_string());
        let all = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.file_name());
        let all = all.filter_map(|name| name.to_str().map(str::to_owned));
        let all = all.filter(|pid| pid.parse::<u32>().is_ok() && theirs.is_some() && namespace(pid) == theirs);
        all.filter_map(|pid| fs::read(format!("/proc/{pid}/cmdline")).ok())
            .map(|words| String::from_utf8_lossy(&words).replace('\0', " ").trim().to_owned())
            .collect()
    }
}

impl Engine {
    /// The user of this host that is the default user of containers.
    pub(crate) fn nobody(&self) -> u32 {
        const NOBODY: u32 = 65534;
        if self.kind != Kind::Rootless {
            return NOBODY;
        }
        let all = fs::read_to_string("/etc/subuid").unwrap();
        let first = all
            .lines()
            .find_map(|line| line.strip_prefix(&user_name())?.strip_prefix(':')?.split(':').next());
        // The first user inside is that of the engine itself.
        first.and_then(|first| first.parse::<u32>().ok()).unwrap() + NOBODY - 1
    }

    /// Gives a directory, with all that is in it, to that user.
    pub(crate) fn give(&self, path: &Path) {
        let owner = format!("{0}:{0}", self.nobody());
        let given = Program::new("chown").args(["-R", &owner]).arg(path).status().unwrap();
        assert!(given.success());
    }
}

/// Whether control groups of version 2 have the controllers, which rootless engines need.
pub(crate) fn has_groups_of_second_version() -> bool {
    fs::read_to_string("/sys/fs/cgroup/cgroup.controllers").is_ok_and(|all| all.contains("memory"))
}

fn unchunked(mut body: &str) -> String {
    let mut whole = String::new();
    while let Some((length, rest)) = body.split_once("\r\n") {
        let Ok(length) = usize::from_str_radix(length.trim(), 16) else {
            break;
        };
        if length == 0 || rest.len() < length {
            break;
        }
        whole.push_str(&rest[..length]);
        body = rest[length..].trim_start_matches("\r\n");
    }
    whole
}

type Files<'a> = Vec<(&'a str, Entry<'a>)>;

enum Entry<'a> {
    Directory(u32),
    Link(&'a str),
    File(Vec<u8>),
}

/// An image as engines load it.
pub(crate) fn packed(image: &str) -> Vec<u8> {
    use Entry::{Directory, File, Link};
    let busybox = || {
        File(
            fs::read("/bin/busybox")
                .or_else(|_| fs::read("/usr/bin/busybox"))
                .unwrap(),
        )
    };
    let passwd = || File(b"root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n".to_vec());
    let files: Files<'_> = match image {
        EMPTY => vec![("empty", Directory(0o755))],
        TOOLS => vec![
            ("usr", Directory(0o755)),
            ("bin", Link("usr/bin")),
            ("sbin", Link("usr/sbin")),
            ("lib", Link("usr/lib")),
            ("lib64", Link("usr/lib64")),
            ("tmp", Directory(0o1777)),
            ("var", Directory(0o755)),
            ("var/tmp", Directory(0o1777)),
            ("root", Directory(0o755)),
            ("etc", Directory(0o755)),
            ("etc/passwd", passwd()),
            ("etc/group", File(b"root:x:0:\nnogroup:x:65534:\n".to_vec())),
            ("etc/alternatives", Link("/usr/alternatives")),
        ],
        _ => {
            let mut files = vec![
                ("bin", Directory(0o755)),
                ("tmp", Directory(0o1777)),
                ("etc", Directory(0o755)),
                ("root", Directory(0o755)),
                ("etc/passwd", passwd()),
                ("etc/os-release", File(b"PRETTY_NAME=\"a box of programs\"\n".to_vec())),
                ("bin/busybox", busybox()),
            ];
            for applet in [
                "sh", "cat", "echo", "id", "ls", "sleep", "touch", "grep", "true", "ps", "dd", "kill", "env",
            ] {
                let path: &'static str = Box::leak(format!("bin/{applet}").into_boxed_str());
                files.push((path, Link("busybox")));
            }
            files
        }
    };
    let layer = archive(files);
    let path = if image == TOOLS {
        "/usr/local/bin:/usr/bin:/bin"
    } else {
        "/bin"
    };
    let configuration = json!({
        "architecture": if (image == FOREIGN) == cfg!(target_arch = "x86_64") { "arm64" } else { "amd64" },
        "os": "linux",
        "config": {
            "Env": [format!("PATH={path}"), "OF_THE_IMAGE=yes"],
            "Entrypoint": ["/bin/false"],
            "Healthcheck": { "Test": ["CMD", "/bin/false"], "Interval": 1_000_000_000 },
        },
        "rootfs": { "type": "layers", "diff_ids": [format!("sha256:{}", Digest::of(&layer))] },
        "history": [{ "created_by": "a test" }],
    });
    let manifest = json!([{ "Config": "config.json", "RepoTags": [image], "Layers": ["layer.tar"] }]);
    archive(vec![
        ("config.json", File(configuration.to_string().into_bytes())),
        ("layer.tar", File(layer)),
        ("manifest.json", File(manifest.to_string().into_bytes())),
    ])
}

fn archive(files: Files<'_>) -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    for (path, entry) in files {
        let mut header = tar::Header::new_gnu();
        let content = match entry {
            Entry::Directory(mode) => {
                header.set_entry_type(tar::EntryType::Directory);
                header.set_mode(mode);
                Vec::new()
            }
            Entry::Link(to) => {
                header.set_entry_type(tar::EntryType::Symlink);
                header.set_link_name(to).unwrap();
                Vec::new()
            }
            Entry::File(content) => {
                header.set_mode(0o755);
                content
            }
        };
        header.set_size(content.len() as u64);
        archive.append_data(&mut header, path, &content[..]).unwrap();
    }
    archive.into_inner().unwrap()
}
