//! A workspace with an outside beside it that must not be reached, and the files of an environment.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use shieling::environment::{Environment, FileError, Files, Links, Local, Restrictions, Sandbox, Shell};
use shieling::process::{Limits, Streams, run_to_end};
use shieling::request::Command;
use shieling_testkit::approved;

/// What stands outside, and must never be read or written.
pub(crate) const CANARY: &str = "the canary sings";

/// Which environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum In {
    Local,
    Sandbox,
}

pub(crate) const BOTH: [In; 2] = [In::Local, In::Sandbox];

/// A workspace, `work`, an `outside` with a `canary`, and the environment.
pub(crate) struct Place {
    directory: tempfile::TempDir,
    root: PathBuf,
    runtime: tokio::runtime::Runtime,
    environment: Arc<dyn Environment>,
}

impl Place {
    /// One that `prepare` has filled before the environment starts, with what `restrict` asks of a
    /// sandbox.
    pub(crate) fn with(which: In, prepare: impl FnOnce(&Path), restrict: impl FnOnce(&mut Restrictions)) -> Self {
        // Not in `/tmp`, which stays writable where files keep their places.
        let directory = tempfile::tempdir_in("/var/tmp").expect("a temporary directory");
        let root = directory.path().canonicalize().expect("it was just made");
        let work = root.join("work");
        fs::create_dir_all(&work).expect("ours");
        fs::create_dir_all(root.join("outside/directory")).expect("ours");
        for name in ["outside/canary", "outside/directory/canary"] {
            fs::write(root.join(name), CANARY).expect("ours");
        }
        prepare(&work);
        let shell = Shell::find(None).expect("there is a shell on every host that runs tests");
        let environment: Arc<dyn Environment> = match which {
            In::Local => Arc::new(Local::new(shell).with_workspace(&work)),
            In::Sandbox => {
                let mut restrictions = Restrictions::new(&work, shell.program());
                restrictions.path = "/usr/local/bin:/usr/bin:/bin".to_owned();
                // Names that are kept taken would be more than a test has put there.
                restrictions.open_protected = true;
                restrict(&mut restrictions);
                Arc::new(Sandbox::new(restrictions, shell))
            }
        };
        Self {
            directory,
            root,
            runtime: tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime"),
            environment,
        }
    }

    pub(crate) fn new(which: In) -> Self {
        Self::with(which, |_| {}, |_| {})
    }

    /// The files, as they are seen now.
    pub(crate) fn files(&self) -> Arc<dyn Files> {
        match self.runtime.block_on(self.environment.files()) {
            Ok(files) => files,
            Err(error) => panic!(
                "{error}: {:?}",
                std::error::Error::source(&error).map(ToString::to_string)
            ),
        }
    }

    /// Ends the environment; the next use starts it again.
    pub(crate) fn close(&self) {
        self.runtime.block_on(self.environment.close());
    }

    /// Runs a text in the environment; what it wrote, and whether it went well.
    pub(crate) fn run(&self, text: &str) -> (String, bool) {
        let variables = [("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned())];
        let command = Command::new(text, self.work()).expect("a text");
        let command = command.with_variables(variables.into());
        let limits = Limits::of(&command);
        self.runtime.block_on(async {
            let process = self.environment.spawn(approved(command), Streams::Output).await;
            let finished = run_to_end(process.expect("it starts"), &limits, None, None).await;
            let text = format!("{}{}", finished.stdout.text(), finished.stderr.text());
            (text, finished.end == shieling::process::End::Exited(0))
        })
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.root.join("work")
    }

    /// A path in the workspace.
    pub(crate) fn path(&self, name: impl AsRef<OsStr>) -> PathBuf {
        self.work().join(Path::new(name.as_ref()))
    }

    pub(crate) fn outside(&self, name: &str) -> PathBuf {
        self.root.join("outside").join(name)
    }

    /// All that a file holds, as the environment's files give it.
    pub(crate) fn read(&self, path: impl AsRef<Path>) -> Result<Vec<u8>, FileError> {
        read(&*self.files(), path.as_ref())
    }

    /// Nothing outside has changed, and nothing was added.
    pub(crate) fn check_outside(&self) {
        for name in ["canary", "directory/canary"] {
            let found = fs::read_to_string(self.outside(name)).expect("the canary is there");
            assert_eq!(found, CANARY, "{name}");
        }
        let names = |path: &str| fs::read_dir(self.outside(path)).expect("it is there").count();
        assert_eq!(
            (names(""), names("directory")),
            (2, 1),
            "something was added or removed"
        );
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.runtime.block_on(self.environment.close());
        // Whatever a test has locked.
        let _ = std::process::Command::new("chmod")
            .args(["-R", "u+rwx"])
            .arg(self.directory.path())
            .output();
    }
}

/// All that a file holds.
pub(crate) fn read(files: &dyn Files, path: &Path) -> Result<Vec<u8>, FileError> {
    let mut content = files.node(path, Links::Follow)?.open()?;
    let mut bytes = vec![0; 64 * 1024];
    let count = content.read_at(0, &mut bytes)?;
    bytes.truncate(count);
    Ok(bytes)
}

pub(crate) fn link(target: impl AsRef<Path>, at: impl AsRef<Path>) {
    std::os::unix::fs::symlink(target, at).expect("ours");
}

pub(crate) fn mode(path: impl AsRef<Path>, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("ours");
}

/// A name that is no UTF-8.
pub(crate) fn odd() -> &'static OsStr {
    OsStr::from_bytes(b"odd\xff\n\x1bname")
}
