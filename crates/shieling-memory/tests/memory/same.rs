//! The same results as in `sandbox`, where a real bash and the usual programs run.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use shieling::environment::{Environment as _, Network, Restrictions, Sandbox, Shell};
use shieling::process::{End, Finished, Limits, Streams, run_to_end};
use shieling::request::Command;
use shieling_testkit::random::Random;
use shieling_testkit::subset;
use shieling_testkit::{approved, extent, prerequisite};

use super::support::{VARIABLES, memory, run};

/// How many scripts are compared.
fn scripts() -> u64 {
    extent::rounds(60, 300)
}

/// What a script leaves behind: by name, its mode and its content, or where a link leads.
pub(crate) type Left = BTreeMap<String, (u32, Vec<u8>)>;

/// A sandbox, and the directory that it may write to.
pub(crate) struct Real {
    folder: tempfile::TempDir,
    sandbox: Sandbox,
}

impl Real {
    /// Nothing where there can be none, which is said.
    pub(crate) async fn new() -> Option<Self> {
        let folder = tempfile::tempdir().expect("a folder");
        let shell = match Shell::find(None) {
            Ok(shell) => shell,
            Err(why) => return Self::missing(&why.to_string()),
        };
        let mut restrictions = Restrictions::new(folder.path().canonicalize().expect("it is there"), shell.program());
        restrictions.path = "/usr/bin:/bin".to_owned();
        restrictions.network = Network::None;
        let sandbox = Sandbox::new(restrictions, shell);
        let real = Self { folder, sandbox };
        match real.spawned("true", real.folder.path()).await {
            Ok(_) => Some(real),
            Err(why) => Self::missing(&why),
        }
    }

    fn missing(why: &str) -> Option<Self> {
        prerequisite::skip(format_args!("there is no sandbox to compare with: {why}"));
        None
    }

    async fn spawned(&self, text: &str, cwd: &Path) -> Result<Finished, String> {
        let variables = VARIABLES.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let command = Command::new(text, cwd)
            .expect("a good command")
            .with_variables(variables.into())
            .with_deadline(Duration::from_secs(60))
            .expect("more than zero");
        let limits = Limits::of(&command);
        let process = self.sandbox.spawn(approved(command), Streams::Output).await;
        let process = process.map_err(|why| why.to_string())?;
        Ok(run_to_end(process, &limits, None, None).await)
    }

    /// Runs a text in an empty directory, and says what it left there.
    pub(crate) async fn run(&self, text: &str) -> (Finished, Left) {
        let cwd = self.folder.path().join("w");
        std::fs::create_dir(&cwd).expect("it is not there");
        let ran = self.spawned(text, &cwd).await.expect("it starts");
        let mut left = Left::new();
        gather(&cwd, Path::new(""), &mut left);
        std::fs::remove_dir_all(&cwd).expect("it can be removed");
        (ran, left)
    }
}

fn gather(root: &Path, below: &Path, left: &mut Left) {
    for entry in std::fs::read_dir(root.join(below)).expect("a directory") {
        let entry = entry.expect("an entry");
        let path = below.join(entry.file_name());
        let meta = entry.metadata().expect("it is there");
        let content = if meta.is_dir() {
            gather(root, &path, left);
            Vec::new()
        } else if meta.is_symlink() {
            let target = std::fs::read_link(entry.path()).expect("a link");
            target.to_string_lossy().into_owned().into_bytes()
        } else {
            std::fs::read(entry.path()).expect("readable")
        };
        left.insert(
            path.to_string_lossy().into_owned(),
            (meta.permissions().mode() & 0o7777, content),
        );
    }
}

/// What is in the workspace of a memory.
pub(crate) fn left_in(memory: &shieling_memory::Memory) -> Left {
    let archive = memory.export_tar().expect("an archive");
    let mut left = Left::new();
    for entry in tar::Archive::new(&archive[..]).entries().expect("an archive") {
        let mut entry = entry.expect("an entry");
        let path = entry
            .path()
            .expect("a path")
            .to_string_lossy()
            .trim_end_matches('/')
            .to_owned();
        let mode = entry.header().mode().expect("a mode");
        let mut content = Vec::new();
        match entry.link_name().expect("a name") {
            Some(target) => content = target.to_string_lossy().into_owned().into_bytes(),
            None => {
                std::io::Read::read_to_end(&mut entry, &mut content).expect("readable");
            }
        }
        left.insert(path, (mode, content));
    }
    left
}

#[tokio::test]
async fn sandbox_and_memory_give_the_same_output_status_and_files_on_many_scripts() {
    let Some(real) = Real::new().await else { return };
    let mut files = 0;
    for seed in 0..scripts() {
        let text = subset::script(&mut Random::new(seed));
        let (theirs, there) = real.run(&text).await;
        let memory = memory();
        let ours = run(&memory, &text).await;
        let told = || format!("seed {seed}:\n{text}\n{}\n{}", theirs.stderr.text(), ours.stderr.text());
        assert!(matches!(theirs.end, End::Exited(_)), "{:?} {}", theirs.end, told());
        assert_eq!(ours.end, theirs.end, "{}", told());
        assert_eq!(ours.stdout.text(), theirs.stdout.text(), "{}", told());
        assert_eq!(ours.stderr.total() > 0, theirs.stderr.total() > 0, "{}", told());
        let here = left_in(&memory);
        assert_eq!(here, there, "{}", told());
        files += here.len();
    }
    assert!(files > 20, "{} scripts left {files} files to compare", scripts());
}
