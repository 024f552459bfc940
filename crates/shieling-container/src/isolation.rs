//! What would undo a container's isolation: looked for before anything starts, by where paths lead and not by how
//! they are written.
#![expect(
    clippy::disallowed_methods,
    reason = "what is to be mounted is looked at where it stands"
)]

use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use shieling::environment::check_copied;

use crate::error::ContainerError;
use crate::options::{Options, Reach, WorkspaceCopy};

/// Where engines and what they stand on listen by default, besides the sockets that discovery knows.
const SOCKETS: [&str; 11] = [
    "/run/docker.sock",
    "/run/docker/containerd/containerd.sock",
    "/run/docker/containerd/containerd.sock.ttrpc",
    "/run/docker/metrics.sock",
    "/run/containerd/containerd.sock.ttrpc",
    "/run/podman/podman.sock",
    "/run/containerd/containerd.sock",
    "/run/crio/crio.sock",
    "/run/dbus/system_bus_socket",
    "/run/systemd/private",
    "/run/snapd.socket",
];

/// The names that engines, and what they stand on, give their sockets wherever their directories are.
const SOCKET_NAMES: [&str; 7] = [
    "docker.sock",
    "podman.sock",
    "containerd.sock",
    "containerd.sock.ttrpc",
    "containerd-debug.sock",
    "crio.sock",
    "buildkitd.sock",
];
/// How deep, and among how many entries, sockets are looked for by these names.
const SOCKET_DEPTH: usize = 3;
const SOCKET_ENTRIES: usize = 10_000;

/// The directory of a container in which the agent program is.
const OF_US: &str = "/.shieling";

/// Directories of the host whose content is more than files.
const OF_THE_KERNEL: [&str; 3] = ["/proc", "/sys", "/dev"];

/// A mount, with its source as it is on the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mount {
    pub(crate) source: PathBuf,
    pub(crate) target: PathBuf,
    pub(crate) readonly: bool,
}

/// The mounts that are asked for, by the real paths of their sources, the workspace first.
///
/// # Errors
/// What is not there, and what would undo isolation without having been acknowledged. `sockets` are those at which
/// engines are known to listen.
pub(crate) fn mounts(options: &Options, sockets: &[PathBuf]) -> Result<Vec<Mount>, ContainerError> {
    if options.is_own() {
        are_free(options)?;
    }
    if options.workspace_copy.is_some() {
        can_be_copied(options)?;
    }
    let mut mounts = Vec::new();
    if let Some(workspace) = options.mounted_workspace() {
        mounts.push(Mount {
            source: real(workspace)?,
            target: options.workdir.clone(),
            readonly: !options.writable,
        });
    }
    for volume in &options.volumes {
        mounts.push(Mount {
            source: real(&volume.source)?,
            target: volume.target.clone(),
            readonly: volume.readonly,
        });
    }
    if options.acknowledge_unsafe {
        return Ok(mounts);
    }
    let refuse = |what: String, because: &str| {
        Err(ContainerError::Unsafe {
            what,
            because: because.to_owned(),
        })
    };
    if options.privileged {
        return refuse(
            "`--privileged`".to_owned(),
            "it gives every capability and device of this host",
        );
    }
    if let Some(device) = options.devices.first() {
        return refuse(
            format!("`--device {}`", device.display()),
            "a device of this host is reached past its files",
        );
    }
    if let Some(capability) = options.capabilities.first() {
        return refuse(
            format!("`--cap-add {}`", capability.escape_debug()),
            "a capability lets a command do what the container is there to keep it from",
        );
    }
    match &options.network {
        Reach::Host => {
            return refuse(
                "`--network host`".to_owned(),
                "the container would share the network of this host, with everything that listens on it",
            );
        }
        // Names of modes, not of networks.
        Reach::Named(name) if name == "host" || name.contains(':') => {
            return refuse(
                format!("`--engine-network {}`", name.escape_debug()),
                "the container would share the network of this host or of another container",
            );
        }
        Reach::Named(_) | Reach::None => {}
    }
    let real_sockets: Vec<PathBuf> = SOCKETS
        .iter()
        .map(PathBuf::from)
        .chain(sockets.iter().cloned())
        .chain(of_users())
        .flat_map(|socket| [std::fs::canonicalize(&socket).ok(), Some(socket)])
        .flatten()
        .collect();
    for mount in &mounts {
        if let Some(because) = opens(&mount.source, &real_sockets) {
            return refuse(format!("mounting `{}`", mount.source.display()), &because);
        }
    }
    Ok(mounts)
}

/// Refuses what does not go with a workspace that is copied.
fn can_be_copied(options: &Options) -> Result<(), ContainerError> {
    let refuse = |what: &str, instead: &str| {
        Err(ContainerError::Options {
            what: what.to_owned(),
            instead: instead.to_owned(),
        })
    };
    match &options.workspace {
        _ if !options.is_own() => refuse(
            "`workspace_copy` says how a container is made, and this one is there already",
            "leave `workspace_copy` out, or have a container made of an image",
        ),
        None => refuse(
            "`workspace_copy` copies a workspace, and there is none",
            "leave `workspace_copy` out, or name a workspace",
        ),
        Some(_) if options.writable => refuse(
            "`writable` is about a workspace that is mounted, and `workspace_copy` mounts none",
            "leave one of them out: a copy can be written",
        ),
        Some(_) if options.per_command && matches!(options.workspace_copy, Some(WorkspaceCopy::Both { .. })) => refuse(
            "`per_command` gives each command a copy of its own, and what several copies bring back is no one change",
            "let what commands change go with their containers (`workspace_copy` `in`), or leave `per_command` out",
        ),
        Some(workspace) if !real(workspace)?.is_dir() => Err(ContainerError::Path {
            path: workspace.clone(),
            why: "it is no directory, and only a directory is copied".to_owned(),
        }),
        Some(_) => Ok(()),
    }
}

/// Refuses a workspace that is copied and is or holds a home, or what is stored outside of the container and trusted
/// there. `user_home` is the home where the options name none, `state` holds the agent program.
///
/// # Errors
/// [`ContainerError::Options`].
pub(crate) fn holds_nothing_of_ours(
    options: &Options,
    user_home: Option<&Path>,
    state: &Path,
) -> Result<(), ContainerError> {
    let (Some(how), Some(workspace)) = (&options.workspace_copy, &options.workspace) else {
        return Ok(());
    };
    let state = real_or_will_be(state);
    let mut stored = vec![("programs and records", state.as_path())];
    let mut home = user_home;
    let sets;
    if let WorkspaceCopy::Both {
        sets: given, home: own, ..
    } = how
    {
        sets = real_or_will_be(given);
        home = own.as_deref().or(user_home);
        stored.insert(0, ("change sets", &sets));
    }
    check_copied(&real(workspace)?, home, &stored).map_err(|unsuitable| ContainerError::Options {
        what: format!("this workspace cannot be copied into a container: {unsuitable}"),
        instead: unsuitable.instead().to_owned(),
    })
}

/// A path without links, of which the end may not be there yet.
pub(crate) fn real_or_will_be(path: &Path) -> PathBuf {
    let real = path.ancestors().find_map(|above| {
        let real = std::fs::canonicalize(above).ok()?;
        Some(real.join(path.strip_prefix(above).ok()?))
    });
    real.unwrap_or_else(|| path.to_owned())
}

/// Refuses places in the container that something else has: engines pass over one of the two, or say it in words of
/// their own.
fn are_free(options: &Options) -> Result<(), ContainerError> {
    let workdir = (
        "--workdir",
        format!("`--workdir {}`", options.workdir.display()),
        &options.workdir,
    );
    let volumes = options.volumes.iter().map(|volume| {
        let given = format!("`--volume {}:{}`", volume.source.display(), volume.target.display());
        ("--volume", given, &volume.target)
    });
    let mut taken: Vec<(PathBuf, String)> = Vec::new();
    if options.is_hardened() {
        let memory = "the container's private directory in memory, unless it is made with `--preset plain`";
        taken.push(("/tmp".into(), memory.to_owned()));
    }
    taken.push(("/etc".into(), "where the engine puts files of its own".to_owned()));
    for (option, given, target) in std::iter::once(workdir).chain(volumes) {
        // Without a step that means nothing, as engines take it.
        let target: PathBuf = target.components().collect();
        let refuse = |why: &str| {
            Err(ContainerError::Options {
                what: format!("{given} cannot hold: `{}` is {why}", target.display()),
                instead: format!("give `{option}` another path in the container"),
            })
        };
        if target.starts_with(OF_US) {
            return refuse("where the agent program is");
        }
        // A device or a file of shared memory may be what the container is there for.
        let of_the_kernel = target.starts_with("/proc") || target.starts_with("/sys") || target == Path::new("/dev");
        if of_the_kernel {
            return refuse("the kernel's own");
        }
        if let Some((_, why)) = taken.iter().find(|(place, _)| *place == target) {
            return refuse(why);
        }
        let why = match option {
            "--workdir" => "the directory that is worked in".to_owned(),
            _ => format!("taken by {given}"),
        };
        taken.push((target, why));
    }
    Ok(())
}

/// The sockets of engines that run for single users.
fn of_users() -> Vec<PathBuf> {
    let Ok(users) = std::fs::read_dir("/run/user") else {
        return Vec::new();
    };
    users
        .flatten()
        .flat_map(|user| {
            ["docker.sock", "podman/podman.sock", "bus", "systemd/private"].map(|name| user.path().join(name))
        })
        .collect()
}

/// Why a source would undo isolation, if it would.
fn opens(source: &Path, sockets: &[PathBuf]) -> Option<String> {
    let kind = std::fs::symlink_metadata(source).ok()?.file_type();
    if kind.is_socket() {
        return Some("it is a socket: what listens there acts outside of the container".to_owned());
    }
    if kind.is_block_device() || kind.is_char_device() {
        return Some("it is a device of this host".to_owned());
    }
    if source == Path::new("/") {
        return Some("it is the root of this host".to_owned());
    }
    if let Some(kernel) = OF_THE_KERNEL.iter().find(|kernel| source.starts_with(kernel)) {
        return Some(format!("`{kernel}` is a way into the kernel of this host"));
    }
    let known = sockets
        .iter()
        .find(|socket| socket.starts_with(source) && std::fs::symlink_metadata(socket).is_ok());
    let held = known.cloned().or_else(|| socket_below(source))?;
    Some(format!(
        "`{}` is in it: whoever reaches an engine can do anything on this host, also through a read-only mount",
        held.display()
    ))
}

/// A socket below a directory that has the name of an engine's, nearest first and within the bounds above.
fn socket_below(source: &Path) -> Option<PathBuf> {
    let mut left = SOCKET_ENTRIES;
    let mut level = vec![source.to_owned()];
    for _ in 0..=SOCKET_DEPTH {
        let mut below = Vec::new();
        // What cannot be read is not known to hold one.
        for entry in level
            .iter()
            .filter_map(|path| std::fs::read_dir(path).ok())
            .flatten()
            .flatten()
        {
            left = left.checked_sub(1)?;
            let Ok(kind) = entry.file_type() else { continue };
            let name = entry.file_name();
            if kind.is_socket() && SOCKET_NAMES.iter().any(|known| name == *known) {
                return Some(entry.path());
            }
            if kind.is_dir() {
                below.push(entry.path());
            }
        }
        level = below;
    }
    None
}

/// The user and the group that the workspace belongs to.
pub(crate) fn owner(options: &Options) -> Result<(u32, u32), ContainerError> {
    use std::os::unix::fs::MetadataExt as _;
    let Some(workspace) = &options.workspace else {
        return Err(ContainerError::Options {
            what: "`--user keep` is the owner of the workspace, and no workspace is mounted".to_owned(),
            instead: "give `--user UID:GID`".to_owned(),
        });
    };
    let meta = std::fs::metadata(real(workspace)?).map_err(|error| ContainerError::Path {
        path: workspace.clone(),
        why: error.to_string(),
    })?;
    Ok((meta.uid(), meta.gid()))
}

/// A path without links.
pub(crate) fn real(path: &Path) -> Result<PathBuf, ContainerError> {
    std::fs::canonicalize(path).map_err(|error| ContainerError::Path {
        path: path.to_owned(),
        why: match error.kind() {
            std::io::ErrorKind::NotFound => "there is no such file or directory".to_owned(),
            _ => error.to_string(),
        },
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    use super::*;
    use crate::options::Volume;

    #[test]
    fn a_socket_is_found_through_links_and_directories_above_it() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("run/engine")).unwrap();
        std::fs::create_dir(root.join("plain")).unwrap();
        let socket = root.join("run/engine/e.sock");
        let _listens = UnixListener::bind(&socket).unwrap();
        symlink(&socket, root.join("plain/link.sock")).unwrap();
        symlink(root.join("run"), root.join("there")).unwrap();
        symlink(root.join("run"), root.join("another")).unwrap();
        // As an engine is known by a name of its own.
        let known = [root.join("another/engine/e.sock")];
        for (source, refused) in [
            ("run/engine/e.sock", true),
            ("plain/link.sock", true),
            ("run/engine", true),
            ("run", true),
            ("there", true),
            ("there/engine", true),
            ("", true),
            // A link to it leads nowhere inside.
            ("plain", false),
        ] {
            let mut options = Options::image("x");
            options.volumes = vec![Volume {
                source: root.join(source),
                target: "/v".into(),
                readonly: true,
            }];
            let found = mounts(&options, &known);
            let expected = matches!(found, Err(ContainerError::Unsafe { .. }));
            assert_eq!(expected, refused, "{source}: {found:?}");
            options.volumes.clear();
            options.workspace = Some(root.join(source));
            let found = mounts(&options, &known);
            assert_eq!(matches!(found, Err(ContainerError::Unsafe { .. })), refused, "{source}");
            options.acknowledge_unsafe = true;
            assert!(mounts(&options, &known).is_ok(), "{source}");
        }
    }

    #[test]
    fn an_engines_socket_is_known_by_its_name_where_no_list_has_it() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("exec/containerd/deep/er")).unwrap();
        std::fs::create_dir_all(root.join("plain/a/b/c/d")).unwrap();
        let listens = [
            "exec/containerd/containerd.sock",
            "plain/a/application.sock",
            // Beyond the bound.
            "plain/a/b/c/d/docker.sock",
        ]
        .map(|socket| UnixListener::bind(root.join(socket)).unwrap());
        std::fs::write(root.join("plain/docker.sock"), "a file").unwrap();
        for (source, refused) in [("exec", true), ("exec/containerd", true), ("", true), ("plain", false)] {
            let mut options = Options::image("x");
            options.volumes = vec![Volume {
                source: root.join(source),
                target: "/x".into(),
                readonly: true,
            }];
            let found = mounts(&options, &[]);
            let expected = matches!(found, Err(ContainerError::Unsafe { .. }));
            assert_eq!(expected, refused, "{source}: {found:?}");
        }
        drop(listens);
    }

    #[test]
    fn a_place_in_the_container_that_is_taken_is_refused_by_its_name() {
        let volume = |target: &str| Volume {
            source: "/opt".into(),
            target: target.into(),
            readonly: false,
        };
        let told = |change: &dyn Fn(&mut Options)| {
            let mut options = Options::image("x");
            options.acknowledge_unsafe = true;
            change(&mut options);
            match mounts(&options, &[]) {
                Err(ContainerError::Options { what, .. }) => what,
                other => format!("{other:?}"),
            }
        };
        for (target, why) in [
            ("/tmp", "the container's private directory in memory"),
            ("/tmp/", "the container's private directory in memory"),
            ("/.shieling", "where the agent program is"),
            ("/.shieling/x", "where the agent program is"),
            ("/workspace", "the directory that is worked in"),
            ("/proc", "the kernel's own"),
            ("/sys/fs", "the kernel's own"),
            ("/etc", "where the engine puts files of its own"),
        ] {
            let what = told(&|options| options.volumes = vec![volume(target)]);
            assert!(
                what.contains(&format!("`--volume /opt:{target}` cannot hold")),
                "{what}"
            );
            assert!(what.contains(why), "{what}");
        }
        let twice = told(&|options| options.volumes = vec![volume("/a"), volume("/b"), volume("/a")]);
        assert!(twice.contains("`/a` is taken by `--volume /opt:/a`"), "{twice}");
        let moved = told(&|options| options.workdir = "/tmp".into());
        assert!(moved.contains("`--workdir /tmp` cannot hold"), "{moved}");
        let moved = told(&|options| options.workdir = "/etc".into());
        assert!(moved.contains("`--workdir /etc` cannot hold"), "{moved}");
        for fits in [
            &["/tmp/x"][..],
            &["/workspace/x"],
            &["/etc/x"],
            &["/dev/shm"],
            &["/a", "/a/b"],
        ] {
            let mut options = Options::image("x");
            options.volumes = fits.iter().map(|target| volume(target)).collect();
            assert!(mounts(&options, &[]).is_ok(), "{fits:?}");
        }
        // What is in an image as it is may be covered.
        let mut plain = Options::image("x");
        plain.preset = crate::options::Preset::Plain;
        plain.volumes = vec![volume("/tmp")];
        assert!(mounts(&plain, &[]).is_ok());
    }

    #[test]
    fn a_copy_that_cannot_hold_is_refused_by_its_name() {
        let place = tempfile::tempdir().unwrap();
        std::fs::write(place.path().join("file"), "").unwrap();
        let told = |change: &dyn Fn(&mut Options)| {
            let mut options = Options::image("x");
            options.workspace = Some(place.path().to_owned());
            options.workspace_copy = Some(crate::options::WorkspaceCopy::In);
            change(&mut options);
            mounts(&options, &[]).map_err(|error| error.to_string())
        };
        assert_eq!(told(&|_| ()), Ok(Vec::new()));
        let refused = |change: &dyn Fn(&mut Options)| told(change).expect_err("it cannot hold");
        assert!(refused(&|options| options.writable = true).contains("`writable`"));
        assert!(refused(&|options| options.workspace = None).contains("there is none"));
        assert!(refused(&|options| options.workspace = Some(place.path().join("file"))).contains("no directory"));
        let attached = |options: &mut Options| options.run = Options::attached("x").run;
        assert!(refused(&attached).contains("there already"));
    }

    #[test]
    fn what_undoes_isolation_is_acknowledged_or_refused() {
        let all: [fn(&mut Options); 8] = [
            |options| options.privileged = true,
            |options| options.devices = vec!["/dev/null".into()],
            |options| options.capabilities = vec!["SYS_ADMIN".to_owned()],
            |options| options.network = Reach::Host,
            |options| options.network = Reach::Named("host".to_owned()),
            |options| options.network = Reach::Named("container:x".to_owned()),
            |options| options.workspace = Some("/".into()),
            |options| options.workspace = Some("/proc/self".into()),
        ];
        for change in all {
            let mut options = Options::image("x");
            change(&mut options);
            let refused = mounts(&options, &[]);
            assert!(matches!(refused, Err(ContainerError::Unsafe { .. })), "{options:?}");
            options.acknowledge_unsafe = true;
            assert!(mounts(&options, &[]).is_ok(), "{options:?}");
        }
        let mut bridged = Options::image("x");
        bridged.network = Reach::Named("bridge".to_owned());
        assert!(mounts(&bridged, &[]).is_ok());
    }
}
