//! A workspace, a store beside it, and overlays that are mounted in namespaces of their own.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use shieling_changes::{ChangeSet, Choice, Committed, Limits, Mode, Store, Surroundings};

pub(crate) struct Place {
    _directory: tempfile::TempDir,
    pub(crate) root: PathBuf,
    pub(crate) workspace: PathBuf,
    pub(crate) store: Store,
}

impl Place {
    pub(crate) fn new(setup: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        let workspace = root.join("workspace");
        fs::create_dir(&workspace).unwrap();
        sh(&workspace, setup);
        let store = Store::open(&root.join("store"), Limits::default()).unwrap();
        Self {
            _directory: directory,
            root,
            workspace,
            store,
        }
    }

    /// Runs a script over the workspace, in an overlay.
    pub(crate) fn stage(&self, script: &str) -> ChangeSet {
        let mut set = self.store.create(&self.workspace, Mode::Review).unwrap();
        set.begin(script).unwrap();
        self.run_in(&set, script);
        set.close().unwrap();
        set
    }

    pub(crate) fn run_in(&self, set: &ChangeSet, script: &str) {
        let view = self.root.join("view");
        let _ = fs::create_dir(&view);
        overlay(&self.workspace, &set.upper(), &set.work(), &view, script);
    }

    pub(crate) fn commit(&self, set: &mut ChangeSet) -> Committed {
        self.commit_with(set, &Choice::default())
    }

    pub(crate) fn commit_with(&self, set: &mut ChangeSet, choice: &Choice) -> Committed {
        self.store.commit(set, choice, &Surroundings::default(), None).unwrap()
    }

    pub(crate) fn tree(&self) -> Tree {
        tree(&self.workspace)
    }
}

pub(crate) fn sh(directory: &Path, script: &str) {
    let output = Command::new("bash")
        .args(["-c", script])
        .current_dir(directory)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{script}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// A bash that mounts an overlay which only it sees, stands in it and runs this text.
pub(crate) fn in_overlay(lower: &Path, upper: &Path, work: &Path, view: &Path, text: &str) -> Command {
    let text = format!(
        "mount -t overlay overlay -o userxattr,lowerdir='{}',upperdir='{}',workdir='{}' '{}' || exit 99\n\
         cd '{}' || exit 99\n{text}",
        lower.display(),
        upper.display(),
        work.display(),
        view.display(),
        view.display(),
    );
    let mut command = Command::new("unshare");
    command.args([
        "--user",
        "--map-current-user",
        "--keep-caps",
        "--mount",
        "bash",
        "-c",
        &text,
    ]);
    command
}

/// Runs a script in an overlay. Its own failure is no failure here.
pub(crate) fn overlay(lower: &Path, upper: &Path, work: &Path, view: &Path, script: &str) {
    let text = "setpriv --bounding-set -all bash -c \"$SCRIPT\"; exit 0";
    let output = in_overlay(lower, upper, work, view, text)
        .env("SCRIPT", script)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// What is at a path: kind and mode, content, and the first of its names.
pub(crate) type Tree = BTreeMap<Vec<u8>, (String, Vec<u8>, Vec<u8>)>;

pub(crate) fn tree(root: &Path) -> Tree {
    let mut found = Tree::new();
    let mut names: HashMap<u64, Vec<u8>> = HashMap::new();
    let mut directories = vec![PathBuf::new()];
    // Directories that were closed to their owner.
    let mut closed = Vec::new();
    while let Some(directory) = directories.pop() {
        let here = root.join(&directory);
        let mode = fs::metadata(&here).unwrap().permissions();
        if is_closed(mode.mode()) {
            fs::set_permissions(&here, fs::Permissions::from_mode(0o700)).unwrap();
            closed.push((here.clone(), mode));
        }
        let mut entries: Vec<_> = fs::read_dir(&here)
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        entries.sort();
        for name in entries {
            let path = directory.join(&name);
            let data = fs::symlink_metadata(root.join(&path)).unwrap();
            let (content, mode) = if data.is_symlink() {
                (
                    fs::read_link(root.join(&path)).unwrap().as_os_str().as_bytes().to_vec(),
                    0,
                )
            } else if data.is_file() {
                (read(&root.join(&path)), data.mode() & 0o7777)
            } else {
                if data.is_dir() {
                    directories.push(path.clone());
                }
                (Vec::new(), data.mode() & 0o7777)
            };
            let kind = match (data.is_dir(), data.is_file(), data.is_symlink()) {
                (true, ..) => "directory",
                (_, true, _) => "file",
                (.., true) => "link",
                _ => "other",
            };
            let kind = format!("{kind} {mode:o}");
            let name = path.as_os_str().as_bytes().to_vec();
            let first = match data.is_file() && data.nlink() > 1 {
                true => names.entry(data.ino()).or_insert_with(|| name.clone()).clone(),
                false => name.clone(),
            };
            found.insert(name, (kind, content, first));
        }
    }
    for (path, mode) in closed.into_iter().rev() {
        fs::set_permissions(path, mode).unwrap();
    }
    found
}

/// Whether a directory has to be opened before [`tree`] can look into it. That changes its `ctime`, so that it counts as
/// changed by the user.
fn is_closed(mode: u32) -> bool {
    mode & 0o500 != 0o500 && !rustix::process::geteuid().is_root()
}

/// Whether [`tree`] changes nothing of what this says.
pub(crate) fn is_all_open(tree: &Tree) -> bool {
    let modes = tree.values().filter_map(|(kind, ..)| kind.strip_prefix("directory "));
    let mut modes = modes.map(|mode| u32::from_str_radix(mode, 8).unwrap());
    modes.all(|mode| !is_closed(mode))
}

/// The content of a file that may be closed to its owner.
fn read(path: &Path) -> Vec<u8> {
    fs::read(path).unwrap_or_else(|_| {
        let mode = fs::metadata(path).unwrap().permissions();
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
        let content = fs::read(path).unwrap();
        fs::set_permissions(path, mode).unwrap();
        content
    })
}

pub(crate) fn os(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}

/// The paths at which two trees differ, for messages.
pub(crate) fn difference(one: &Tree, other: &Tree) -> String {
    let mut text = String::new();
    let paths: std::collections::BTreeSet<_> = one.keys().chain(other.keys()).collect();
    for path in paths {
        let (left, right) = (one.get(path), other.get(path));
        if left != right {
            let cut = |side: Option<&(String, Vec<u8>, Vec<u8>)>| {
                side.map(|(kind, content, first)| {
                    let shown: String = String::from_utf8_lossy(content).chars().take(20).collect();
                    format!(
                        "{kind} {shown:?} ({} bytes) {:?}",
                        content.len(),
                        String::from_utf8_lossy(first)
                    )
                })
            };
            text.push_str(&format!(
                "{}: {:?} / {:?}\n",
                String::from_utf8_lossy(path),
                cut(left),
                cut(right)
            ));
        }
    }
    text
}
