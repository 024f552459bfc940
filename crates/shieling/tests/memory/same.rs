//! The same results as in a real bash.

use std::process::{Command, Stdio};

use shieling::process::End;
use shieling_testkit::random::Random;
use shieling_testkit::subset;

use super::support::{memory, run};

const SCRIPTS: u64 = 300;

#[tokio::test]
async fn a_real_bash_and_memory_give_the_same_output_and_status_on_300_scripts() {
    let bash = Command::new("/bin/bash").arg("--version").output();
    if bash.is_err() {
        assert!(std::env::var_os("CI").is_none(), "no /bin/bash to compare with");
        eprintln!("skipped: there is no /bin/bash to compare with");
        return;
    }
    let mut compared = 0;
    for seed in 0..SCRIPTS {
        let text = subset::script(&mut Random::new(seed));
        let folder = tempfile::tempdir().expect("a folder");
        let real = Command::new("/bin/bash")
            .args(["--noprofile", "--norc", "-c", &text])
            .current_dir(folder.path())
            .env_clear()
            .envs([("PATH", "/usr/bin:/bin"), ("HOME", "/home/user"), ("LC_ALL", "C.UTF-8")])
            .stdin(Stdio::null())
            .output()
            .expect("bash runs");
        let ours = run(&memory(), &text).await;
        let code = real.status.code().expect("it exits");
        assert_eq!(
            ours.stdout.text(),
            String::from_utf8_lossy(&real.stdout),
            "seed {seed}:\n{text}\n{}",
            ours.stderr.text()
        );
        assert_eq!(
            ours.end,
            End::Exited(code),
            "seed {seed}:\n{text}\n{}",
            ours.stderr.text()
        );
        compared += 1;
    }
    assert_eq!(compared, SCRIPTS);
}
