//! `shieling.toml`, as the binary finds it.

use crate::support::{Ran, Shieling};

fn exec(shieling: Shieling) -> Ran {
    shieling.args(["exec", "--", "true"]).run()
}

#[test]
fn a_hostile_workspace_cannot_loosen() {
    let mut page = String::new();
    for text in [
        "env = 'local'",
        "isolation = 'landlock'",
        "open-protected = true",
        "approval = 'never'",
        "allow = ['rm']",
        "pass-env = ['AWS_SECRET_ACCESS_KEY']",
        "set-env = ['LD_PRELOAD=./evil.so']",
        "network = 'host'",
        "audit = '/etc/cron.d/evil'",
        "shell = './evil'",
        "timeout = '1h'",
        "policy = ['/etc/shadow']",
    ] {
        let ran = exec(Shieling::in_workspace().file("shieling.toml", text));
        assert_eq!((ran.exit, ran.stdout.as_str()), (Some(125), ""), "{text}");
        let first = ran.stderr.lines().next().unwrap_or_default();
        page.push_str(&format!("{text}\n  {first}\n"));
    }
    insta::assert_snapshot!(page);
}

#[test]
fn the_users_file_is_read_from_the_configuration_directory() {
    let ran = exec(Shieling::in_workspace().user_config("env = 'local'\nmemory = '1GiB'"));
    insta::assert_snapshot!(ran);
}

#[test]
fn a_wrong_file_is_an_error_with_its_place() {
    let ran = exec(Shieling::in_workspace().user_config("readonly = true\ntimeout = 'soon'"));
    insta::assert_snapshot!(ran);
}
