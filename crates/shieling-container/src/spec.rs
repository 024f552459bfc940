//! What an engine is asked to make, as its interface has it.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::isolation::Mount;
use crate::options::{NOBODY, Options, Reach};
use crate::owner::LABEL;

/// Where the agent program is in a container of our own.
pub(crate) const AGENT: &str = "/.shieling/agent";

/// What is known of an image.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Image {
    /// Its id.
    pub(crate) id: String,
    /// Its variables.
    pub(crate) variables: Vec<(String, String)>,
    /// Its user; empty for root.
    pub(crate) user: String,
    /// Whether the container that has it reaches no network; of one that runs already.
    pub(crate) is_closed: bool,
}

impl Image {
    /// The variables of a configuration, of an image or of a container.
    pub(crate) fn variables(config: &Value) -> Vec<(String, String)> {
        let all = config["Env"].as_array().into_iter().flatten();
        all.filter_map(|entry| entry.as_str()?.split_once('='))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect()
    }
}

/// Who commands run as, as engines write it; nothing for the image's own.
pub(crate) fn user(options: &Options, owner: Option<(u32, u32)>) -> Option<String> {
    use crate::options::User;
    match options.user {
        Some(User::Id { uid, gid }) => Some(format!("{uid}:{gid}")),
        Some(User::Keep) => owner.map(|(uid, gid)| format!("{uid}:{gid}")),
        None if options.is_own() && options.preset == crate::options::Preset::Hardened => {
            Some(format!("{NOBODY}:{NOBODY}"))
        }
        None => None,
    }
}

/// What goes into the request that makes a container.
pub(crate) struct Wanted<'a> {
    pub(crate) options: &'a Options,
    pub(crate) image: &'a Image,
    pub(crate) mounts: &'a [Mount],
    pub(crate) user: Option<&'a str>,
    /// The agent program on this host.
    pub(crate) agent: &'a Path,
    pub(crate) arguments: Vec<String>,
    pub(crate) owner: Option<String>,
    /// Whether nothing of the host may be written.
    pub(crate) readonly: bool,
    /// Whether the engine maps the user that has its socket onto a user inside.
    pub(crate) keep_id: bool,
    /// Whether the engine takes an owner for a directory in memory, as Docker does.
    pub(crate) gives_memory: bool,
}

impl Wanted<'_> {
    /// The body of the request.
    pub(crate) fn body(&self) -> Value {
        let options = self.options;
        let mut labels = Map::new();
        labels.insert("dev.shieling".to_owned(), json!(env!("CARGO_PKG_VERSION")));
        if let Some(owner) = &self.owner {
            labels.insert(LABEL.to_owned(), json!(owner));
        }
        let mut body = json!({
            "Image": self.image.id,
            "Entrypoint": [AGENT],
            "Cmd": self.arguments,
            "AttachStdin": true,
            "AttachStdout": true,
            "AttachStderr": true,
            "OpenStdin": true,
            // With the one connection the input ends, and with it the agent, also if we are killed.
            "StdinOnce": true,
            "Tty": false,
            "WorkingDir": "/",
            "Healthcheck": { "Test": ["NONE"] },
            "StopSignal": "SIGTERM",
            "Labels": labels,
            "HostConfig": self.host(),
        });
        if let Some(user) = self.user {
            body["User"] = json!(user);
        }
        if options.is_hardened() {
            // Nothing else can be written.
            body["Env"] = json!(["HOME=/tmp"]);
        }
        body
    }

    fn host(&self) -> Value {
        let options = self.options;
        let bind = |source: &Path, target: &Path, readonly: bool| {
            json!({
                "Type": "bind",
                "Source": source,
                "Target": target,
                "ReadOnly": readonly,
                // A read-only mount would leave what is mounted below it as it is.
                "BindOptions": { "NonRecursive": true, "Propagation": "rprivate" },
            })
        };
        let mut mounts: Vec<Value> = self
            .mounts
            .iter()
            .map(|mount| bind(&mount.source, &mount.target, mount.readonly || self.readonly))
            .collect();
        mounts.push(bind(self.agent, Path::new(AGENT), true));
        let mut tmpfs = Map::new();
        let mode = |size: Option<u64>| {
            let size = size.map_or_else(String::new, |size| format!(",size={size}"));
            json!(format!("rw,nosuid,nodev,exec,mode=1777{size}"))
        };
        if options.is_hardened() {
            tmpfs.insert("/tmp".to_owned(), mode(Some(options.tmp)));
        }
        if options.mounted_workspace().is_none() {
            let mut asked = mode(options.workspace_size());
            // The runtime gives it the mode of a directory that the image may have there.
            let owner = self.user.filter(|_| self.gives_memory && !self.keep_id);
            if let (Some((user, group)), Some(text)) = (owner.and_then(|user| user.split_once(':')), asked.as_str()) {
                asked = json!(format!("{text},uid={user},gid={group}"));
            }
            tmpfs.insert(self::text(&options.workdir), asked);
        }
        let mut host = json!({
            "AutoRemove": true,
            "Mounts": mounts,
            "Tmpfs": tmpfs,
            "NetworkMode": match &options.network {
                Reach::None => "none",
                Reach::Host => "host",
                Reach::Named(name) => name,
            },
            // Every frame of the protocol would be logged otherwise.
            "LogConfig": { "Type": "none", "Config": {} },
            "RestartPolicy": { "Name": "no" },
            "Init": false,
            "Privileged": options.privileged,
        });
        if options.is_hardened() {
            host["ReadonlyRootfs"] = json!(true);
            host["CapDrop"] = json!(["ALL"]);
            host["SecurityOpt"] = json!(["no-new-privileges"]);
        }
        if !options.capabilities.is_empty() {
            host["CapAdd"] = json!(options.capabilities);
        }
        if !options.devices.is_empty() {
            let device =
                |path: &PathBuf| json!({ "PathOnHost": path, "PathInContainer": path, "CgroupPermissions": "rwm" });
            host["Devices"] = options.devices.iter().map(device).collect();
        }
        if let Some(memory) = options.memory_limit() {
            host["Memory"] = json!(memory);
            // No swap besides.
            host["MemorySwap"] = json!(memory);
        }
        if let Some(pids) = options.pids_limit() {
            host["PidsLimit"] = json!(pids);
        }
        if let Some(thousandths) = options.cpu_thousandths {
            host["NanoCpus"] = json!(u64::from(thousandths) * 1_000_000);
        }
        if let Some(runtime) = &options.runtime {
            host["Runtime"] = json!(runtime);
        }
        if self.keep_id {
            host["UsernsMode"] = json!("keep-id");
        }
        host
    }
}

/// A path as text.
pub(crate) fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::{Preset, User};

    fn body(options: &Options) -> Value {
        let image = Image::default();
        let user = user(options, Some((1000, 1001)));
        Wanted {
            options,
            image: &image,
            mounts: &[],
            user: user.as_deref(),
            agent: Path::new("/agent"),
            arguments: Vec::new(),
            owner: None,
            readonly: false,
            keep_id: false,
            gives_memory: true,
        }
        .body()
    }

    #[test]
    fn what_is_asked_by_default_is_hardened() {
        let body = body(&Options::image("x"));
        let host = &body["HostConfig"];
        assert_eq!(body["User"], "65534:65534");
        assert_eq!(host["ReadonlyRootfs"], true);
        assert_eq!(host["CapDrop"], json!(["ALL"]));
        assert_eq!(host["SecurityOpt"], json!(["no-new-privileges"]));
        assert_eq!(host["NetworkMode"], "none");
        assert_eq!(
            (&host["Memory"], &host["MemorySwap"]),
            (&json!(536_870_912), &json!(536_870_912))
        );
        assert_eq!(host["PidsLimit"], 256);
        assert!(host["Tmpfs"]["/tmp"].as_str().unwrap().contains("size=67108864"));
    }

    #[test]
    fn a_workspace_that_is_copied_has_room_in_memory_and_is_not_mounted() {
        let mut options = Options::image("x");
        options.workspace = Some("/home/user/project".into());
        options.workspace_copy = Some(crate::options::WorkspaceCopy::In);
        let of = |options: &Options| body(options)["HostConfig"]["Tmpfs"]["/workspace"].clone();
        let nobody = "uid=65534,gid=65534";
        assert_eq!(
            of(&options),
            format!("rw,nosuid,nodev,exec,mode=1777,size=402653184,{nobody}")
        );
        options.unlimited = true;
        assert_eq!(of(&options), format!("rw,nosuid,nodev,exec,mode=1777,{nobody}"));
        options.workspace_copy = None;
        assert!(of(&options).is_null());
    }

    #[test]
    fn users_and_presets_say_who_commands_run_as() {
        let mut options = Options::image("x");
        options.user = Some(User::Keep);
        assert_eq!(body(&options)["User"], "1000:1001");
        options.user = Some(User::Id { uid: 5, gid: 6 });
        assert_eq!(body(&options)["User"], "5:6");
        options.user = None;
        options.preset = Preset::Plain;
        let plain = body(&options);
        assert!(plain["User"].is_null() && plain["HostConfig"]["Memory"].is_null());
        assert_eq!(plain["HostConfig"]["NetworkMode"], "none");
        options.memory = Some(1 << 30);
        assert_eq!(body(&options)["HostConfig"]["Memory"], 1_u64 << 30);
    }
}
