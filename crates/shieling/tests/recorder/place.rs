//! A place where any script is harmless, and everything it does is written down.
//!
//! New user, mount, pid and network namespaces; a root of its own in memory that holds `/usr` read-only,
//! a few files of `/etc`, `/dev/null` and the like, and a copy of the workspace; no capability; a time
//! limit after which all of it is killed. Nothing else of this machine exists there.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use shieling_testkit::scripts::WORKSPACE;

use crate::trace::{Trace, traced};

/// Seconds for one script; then the namespace dies as a whole.
const SECONDS: &str = "5";

/// Runs in the new namespaces as their root: builds the new root, then gives everything up.
///
/// git is told not to refresh its index while it only looks: `git status` does so unless
/// GIT_OPTIONAL_LOCKS is 0, and `git diff` unless diff.autoRefreshIndex is false (measured, git 2.47).
/// An environment under readonly has to set the same.
///
/// `$1` the script, `$2` the calls to trace, `$3` the folder with `root`, `work` and `trace`.
const BUILD: &str = r#"
set -eu
root=$3/root
mount -t tmpfs -o size=64m,mode=755 none "$root"
mkdir -p "$root"/{usr,etc,dev,proc,tmp,trace,work,home}
chmod 1777 "$root/tmp"
read_only() {
    mount -o remount,bind,ro "$1" 2>/dev/null || mount -o remount,bind,ro,nosuid "$1" 2>/dev/null ||
        mount -o remount,bind,ro,nosuid,nodev "$1"
}
mount --rbind /usr "$root/usr"
read_only "$root/usr"
for link in bin sbin lib lib32 lib64; do
    if [ -L "/$link" ]; then cp -a "/$link" "$root/$link"
    elif [ -d "/$link" ]; then mkdir "$root/$link"; mount --rbind "/$link" "$root/$link"; read_only "$root/$link"; fi
done
for file in passwd group nsswitch.conf ld.so.cache os-release alternatives magic; do
    [ -e "/etc/$file" ] && cp -a "/etc/$file" "$root/etc/" || true
done
for device in null zero full random urandom; do
    : > "$root/dev/$device"
    mount --bind "/dev/$device" "$root/dev/$device"
done
ln -s /proc/self/fd "$root/dev/fd"
ln -s /proc/self/fd/0 "$root/dev/stdin"
ln -s /proc/self/fd/1 "$root/dev/stdout"
ln -s /proc/self/fd/2 "$root/dev/stderr"
mount -t proc proc "$root/proc"
mount --bind "$3/trace" "$root/trace"
cp -a "$3/work/." "$root/work/"
ulimit -f 65536 -t 3
exec chroot "$root" setpriv --bounding-set=-all --inh-caps=-all --no-new-privs \
    env -i -C /work PATH=/usr/local/bin:/usr/bin:/bin HOME=/home LC_ALL=C.UTF-8 TERM=dumb \
    GIT_PAGER=cat PAGER=cat \
    GIT_OPTIONAL_LOCKS=0 GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=diff.autoRefreshIndex GIT_CONFIG_VALUE_0=false \
    strace -f -y -s 4096 -e signal=none -e "trace=$2" -o /trace/log bash --noprofile --norc -c "$1"
"#;

/// The place: a folder with the workspace that every script gets a copy of.
pub(crate) struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    /// Makes the place and proves that it records.
    ///
    /// # Errors
    /// The feature that is missing on this machine.
    pub(crate) fn new() -> Result<Self, String> {
        let folder = tempfile::Builder::new()
            .prefix("recorder")
            .tempdir()
            .map_err(|error| error.to_string())?;
        for name in ["root", "work", "trace"] {
            fs::create_dir(folder.path().join(name)).map_err(|error| error.to_string())?;
        }
        workspace(&folder.path().join("work"))?;
        let place = Self { folder };
        let proof = place.run("cat a.txt < /dev/null")?;
        if !proof.trace.started.iter().any(|program| program.ends_with("/cat")) {
            return Err(format!("strace in namespaces does not record: {}", proof.stderr));
        }
        Ok(place)
    }

    /// Runs one script and reads what was recorded.
    pub(crate) fn run(&self, script: &str) -> Result<Recorded, String> {
        let log = self.folder.path().join("trace/log");
        drop(fs::remove_file(&log));
        let output = Command::new("timeout")
            .args([
                "-s",
                "KILL",
                SECONDS,
                "unshare",
                "--user",
                "--map-root-user",
                "--mount",
                "--pid",
                "--net",
                "--ipc",
                "--uts",
            ])
            .args([
                "--fork",
                "--kill-child",
                "bash",
                "--noprofile",
                "--norc",
                "-c",
                BUILD,
                "build",
                script,
                &traced(),
            ])
            .arg(self.folder.path())
            .stdin(Stdio::null())
            .output()
            .map_err(|error| format!("cannot start timeout: {error}"))?;
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        let log = fs::read(&log).map_err(|_| format!("nothing was recorded: {}", stderr.trim()))?;
        Ok(Recorded {
            trace: Trace::parse(&String::from_utf8_lossy(&log)),
            stderr,
        })
    }
}

/// What one script did.
pub(crate) struct Recorded {
    pub(crate) trace: Trace,
    pub(crate) stderr: String,
}

/// Fills `folder` with the files that scripts expect, and makes it a repository with two commits.
fn workspace(folder: &Path) -> Result<(), String> {
    for (name, text) in WORKSPACE {
        let path = folder.join(name);
        match name.strip_suffix('/') {
            Some(_) => fs::create_dir(path),
            None => fs::write(path, text),
        }
        .map_err(|error| format!("cannot make {name}: {error}"))?;
    }
    let setup = "chmod +x run.sh && tar -cf x.tar a.txt && gzip -kc a.txt > x.gz && git init -q -b main . \
        && git config user.name t && git config user.email t@example.invalid && git add . && git commit -qm one \
        && echo more >> b.txt && git commit -qam two";
    let made: Output = Command::new("bash")
        .args(["--noprofile", "--norc", "-c", setup])
        .current_dir(folder)
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("HOME", folder.parent().unwrap_or(folder))
        .output()
        .map_err(|error| format!("cannot start bash: {error}"))?;
    if made.status.success() {
        Ok(())
    } else {
        Err(format!(
            "cannot make a repository: {}",
            String::from_utf8_lossy(&made.stderr)
        ))
    }
}
