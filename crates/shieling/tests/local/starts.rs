//! What starts, and what is said if it does not.

use std::os::unix::fs::PermissionsExt as _;

use shieling::environment::{Enforced, Environment as _, Local};
use shieling::policy::Policy;
use shieling::process::{End, Plan, SpawnError};
use shieling::request::{Command, CommandError};

use super::support::{command, own_children, run, run_command, shell, start};

async fn refused(plan: &Plan) -> SpawnError {
    let error = start(plan).await.expect_err("it cannot start");
    assert!(
        !own_children().iter().any(|&pid| is_supervisor_zombie(pid)),
        "its supervisor was reaped"
    );
    error
}

fn is_supervisor_zombie(pid: u32) -> bool {
    // Other tests' supervisors may be on their last microseconds; a zombie that stays is ours.
    for _ in 0..200 {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        if !stat.contains(") Z ") {
            return false;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    true
}

#[tokio::test]
async fn a_directory_that_is_gone_is_named() {
    let directory = tempfile::tempdir().expect("a directory can be made");
    let path = directory.path().to_path_buf();
    drop(directory);
    let command = Command::new("true", &path).expect("a good command");
    let error = refused(&shell().plan(&command)).await;
    assert!(
        matches!(&error, SpawnError::Directory { path: named, source } if *named == path && source.kind() == std::io::ErrorKind::NotFound),
        "{error:?}"
    );
    assert_eq!(
        error.to_string(),
        format!("cannot enter the working directory `{}`", path.display())
    );
}

#[tokio::test]
async fn a_file_is_no_directory() {
    let command = Command::new("true", "/etc/passwd").expect("a good command");
    let error = refused(&shell().plan(&command)).await;
    assert!(
        matches!(&error, SpawnError::Directory { source, .. } if source.kind() == std::io::ErrorKind::NotADirectory),
        "{error:?}"
    );
}

#[tokio::test]
async fn a_program_that_cannot_start_is_named() {
    let error = refused(&Plan::new("/no/such/program", ["program"], "/")).await;
    assert!(
        matches!(&error, SpawnError::Missing { program } if program.ends_with("program")),
        "{error:?}"
    );
    let error = refused(&Plan::new("/etc/passwd", ["passwd"], "/")).await;
    assert!(matches!(error, SpawnError::NotExecutable { .. }), "{error:?}");
    let error = refused(&Plan::new("/etc", ["etc"], "/")).await;
    assert!(matches!(error, SpawnError::NotExecutable { .. }), "{error:?}");

    let directory = tempfile::tempdir().expect("a directory can be made");
    let script = directory.path().join("script");
    std::fs::write(&script, "no first line").expect("it can be written");
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).expect("it is ours");
    let error = refused(&Plan::new(&script, ["script"], "/")).await;
    assert!(matches!(error, SpawnError::NotExecutable { .. }), "{error:?}");
}

#[tokio::test]
async fn too_large_an_environment_is_told_in_bytes() {
    let variables = (0..40).map(|n| (format!("BIG{n}"), "x".repeat(100_000))).collect();
    let error = refused(&shell().plan(&command("true").with_variables(variables))).await;
    assert!(
        matches!(error, SpawnError::TooBig { bytes: 4_000_000.., .. }),
        "{error:?}"
    );
}

#[tokio::test]
async fn a_nul_is_refused_wherever_it_is() {
    assert_eq!(Command::new("echo \0", "/tmp"), Err(CommandError::Nul { at: 5 }));
    let variables = [("A".to_owned(), "\0".to_owned())].into();
    assert!(matches!(
        refused(&shell().plan(&command("true").with_variables(variables))).await,
        SpawnError::Nul { .. }
    ));
}

#[tokio::test]
async fn a_command_of_any_allowed_length_runs_as_a_short_one_does() {
    for length in [90_000, 102_000, 110_000, 131_072, 200_000, 1_000_000] {
        let body = "echo \"$0 $# $LINENO\"\nread x; echo \"$?\"\nf() { return 4; }; f; echo \"$?\"\nfalse; exit 7\n";
        let text = format!("{body}#{}", "x".repeat(length - body.len() - 1));
        assert_eq!(text.len(), length);
        let finished = run(&text).await;
        assert_eq!(finished.stdout.text(), "bash 0 1\n1\n4\n", "{length}");
        assert_eq!(finished.end, End::Exited(7), "{length}");
    }
}

#[tokio::test]
async fn a_long_command_reaches_a_plain_shell_too() {
    let sh = shieling::environment::Shell::find(Some("/bin/sh".as_ref())).expect("every host has one");
    let text = format!("echo \"$0\"; ls /proc/self/fd | wc -l; exit 7 #{}", "x".repeat(200_000));
    let (process, _jail) = start(&sh.plan(&command(&text))).await.expect("it starts");
    let limits = shieling::process::Limits::of(&command(&text));
    let finished = shieling::process::run_to_end(process, &limits, None, None).await;
    assert_eq!(finished.stdout.text(), "sh\n4\n");
    assert_eq!(finished.end, End::Exited(7));
}

#[tokio::test]
async fn a_command_stands_in_its_directory() {
    let directory = tempfile::tempdir().expect("a directory can be made");
    let finished = run_command(&Command::new("pwd -P", directory.path()).expect("a good command")).await;
    let expected = directory.path().canonicalize().expect("it is there");
    assert_eq!(
        finished.stdout.text().trim_end(),
        expected.to_str().expect("a plain name")
    );
}

#[test]
fn this_host_says_that_it_confines_nothing() {
    let local = Local::new(shell());
    assert_eq!(local.name(), "local");
    let asked = shieling::enforcement_of(&Policy::open().with_readonly(), "/".as_ref());
    assert_eq!(local.enforce(&asked), Ok(Enforced::default()));
    assert!(local.confinement().enforced.is_empty());
}
