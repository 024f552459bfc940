#![expect(clippy::disallowed_methods, reason = "tests place the files that they read")]

use std::fs;

use super::*;
use crate::options::{Approval, Timeout};

/// A workspace and a user, in a place of their own.
struct Place {
    root: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("work")).unwrap();
        fs::create_dir_all(root.path().join("config/shieling")).unwrap();
        Self { root }
    }

    fn workspace(self, text: &str) -> Self {
        fs::write(self.root.path().join("work/shieling.toml"), text).unwrap();
        self
    }

    fn user(self, text: &str) -> Self {
        fs::write(self.root.path().join("config/shieling/shieling.toml"), text).unwrap();
        self
    }

    fn load(&self, change: impl FnOnce(&mut Source)) -> Result<Loaded, String> {
        let mut source = Source {
            workspace: None,
            trust_workspace_config: false,
            no_config: false,
            settings: Settings::default(),
        };
        change(&mut source);
        let surroundings = Surroundings {
            config_home: Some(self.root.path().join("config")),
            home: None,
            shell: None,
            path: Some("/no/such/place:relative:/bin".into()),
            cwd: self.root.path().join("work"),
        };
        let root = self.root.path().to_string_lossy().into_owned();
        load(&source, &surroundings, EnvironmentName::Sandbox)
            .map_err(|failure| failure.to_string().replace(&root, "[ROOT]"))
    }

    fn settings(&self) -> Settings {
        self.load(|_| ()).unwrap().settings
    }

    fn error(&self) -> String {
        self.load(|_| ()).unwrap_err()
    }
}

#[test]
fn without_files_only_the_command_line_speaks() {
    let place = Place::new();
    assert_eq!(place.settings(), Settings::default());
    let loaded = place
        .load(|source| source.settings.env = Some(EnvironmentName::Local.into()))
        .unwrap();
    assert_eq!(loaded.settings.env, Some(EnvironmentName::Local.into()));
    assert_eq!(loaded.file_of("env"), None);
}

#[test]
fn single_values_come_from_the_layer_above_and_lists_add_up() {
    let place = Place::new()
        .user("timeout = '5m'\nenv = 'local'\ndeny = ['git push']\nignore = ['.env']")
        .workspace("timeout = '30s'\ndeny = ['cargo publish']");
    let loaded = place
        .load(|source| {
            source.settings.deny = vec!["rm".parse().unwrap()];
            source.settings.env = Some(EnvironmentName::Memory.into());
        })
        .unwrap();
    assert_eq!(loaded.settings.env, Some(EnvironmentName::Memory.into()));
    assert_eq!(loaded.settings.timeout, Some(Timeout::seconds(30)));
    let deny: Vec<&str> = loaded.settings.deny.iter().map(|prefix| prefix.as_str()).collect();
    assert_eq!(deny, ["git push", "cargo publish", "rm"]);
    assert_eq!(loaded.settings.ignore, [".env"]);
    assert!(loaded.file_of("timeout").unwrap().ends_with("work/shieling.toml"));
}

#[test]
fn an_allow_list_of_the_command_line_replaces_the_users() {
    let place = Place::new().user("allow = ['rm', 'ls']");
    assert_eq!(place.settings().allow.len(), 2);
    let loaded = place
        .load(|source| source.settings.allow = vec!["git log".parse().unwrap()])
        .unwrap();
    assert_eq!(loaded.settings.allow, ["git log".parse().unwrap()]);
}

#[test]
fn a_workspace_that_loosens_is_named_with_its_place_and_the_way_on() {
    let place = Place::new().workspace("readonly = true\n\nenv = \"local\"\n");
    insta::assert_snapshot!(place.error(), @r"
    error: [ROOT]/work/shieling.toml:3: `env` may not be set here: it chooses what confines the command
    rule     the workspace is untrusted, so a shieling.toml inside it may only tighten
    instead  set it in [ROOT]/config/shieling/shieling.toml or on the command line, or give --trust-workspace-config if that file is yours
    ");
}

#[test]
fn a_workspace_may_loosen_once_it_is_trusted() {
    let place = Place::new().workspace("env = 'local'\napproval = 'never'\nset-env = ['A=1']\ntimeout = '5m'");
    place.load(|_| ()).unwrap_err();
    let loaded = place.load(|source| source.trust_workspace_config = true).unwrap();
    assert_eq!(loaded.settings.approval, Some(Approval::Never));
    assert_eq!(loaded.settings.timeout, Some(Timeout::seconds(300)));
}

#[test]
fn a_workspace_is_not_looked_at_if_no_file_is_wanted() {
    let place = Place::new().workspace("env = 'local'").user("nonsense");
    assert_eq!(
        place.load(|source| source.no_config = true).unwrap().settings,
        Settings::default()
    );
}

#[test]
fn the_command_line_cannot_be_used_to_measure_the_workspace() {
    // What the user says here and now wins over the workspace, in both directions.
    let place = Place::new().workspace("approval = 'always'\ntimeout = '1s'");
    let loaded = place
        .load(|source| {
            source.settings.approval = Some(Approval::Policy);
            source.settings.timeout = Some(Timeout::seconds(90));
        })
        .unwrap();
    assert_eq!(loaded.settings.approval, Some(Approval::Policy));
    assert_eq!(loaded.settings.timeout, Some(Timeout::seconds(90)));
}

#[test]
fn a_users_file_inside_the_workspace_is_the_workspaces_word() {
    let place = Place::new().user("env = 'local'\napproval = 'never'");
    let error = place
        .load(|source| source.workspace = Some(place.root.path().to_owned()))
        .unwrap_err();
    assert!(
        error.contains("config/shieling/shieling.toml:1: `env` may not be set here"),
        "{error}"
    );
    assert!(
        error.contains("instead  set it on the command line, or give --trust-workspace-config"),
        "{error}"
    );
    // In a workspace elsewhere it is the user's.
    assert_eq!(place.settings().approval, Some(Approval::Never));
}

#[test]
fn a_users_file_that_is_a_link_into_the_workspace_is_the_workspaces_word() {
    let place = Place::new();
    let root = place.root.path();
    fs::write(root.join("work/mine.toml"), "env = 'local'").unwrap();
    std::os::unix::fs::symlink(root.join("work/mine.toml"), root.join("config/shieling/shieling.toml")).unwrap();
    assert!(place.error().contains("`env` may not be set here"));
}

#[test]
fn a_linked_file_in_a_workspace_is_not_read() {
    let place = Place::new();
    fs::write(place.root.path().join("secret"), "TOKEN hunter2").unwrap();
    std::os::unix::fs::symlink("../secret", place.root.path().join("work/shieling.toml")).unwrap();
    let error = place.error();
    assert!(error.contains("symbolic link") && !error.contains("hunter2"), "{error}");
}

#[test]
fn paths_mean_what_they_meant_to_whoever_wrote_them() {
    let place = Place::new().user("policy = ['team.toml', 'readonly']\naudit = 'log.jsonl'");
    let loaded = place
        .load(|source| source.settings.policy = vec!["./mine.toml".parse().unwrap()])
        .unwrap();
    let root = place.root.path();
    assert_eq!(
        loaded.settings.policy,
        [
            PolicyName::File(root.join("config/shieling/team.toml")),
            PolicyName::Preset("readonly".to_owned()),
            PolicyName::File(root.join("work/./mine.toml")),
        ]
    );
    assert_eq!(loaded.settings.audit, Some(root.join("config/shieling/log.jsonl")));
}

#[test]
fn errors_name_file_line_column_and_key() {
    for (text, expected) in [
        (
            "readonly = true\ntimeout = '0'",
            ":2:11: `timeout`: a timeout of 0 leaves no time to run",
        ),
        (
            "readonly = 'yes'",
            ":1:12: `readonly`: invalid type: string \"yes\", expected a boolean",
        ),
        ("# x\nfoo = 1", ":2:1: there is no key `foo`"),
        (
            "deny = 'git push'",
            ":1:8: `deny`: invalid type: string \"git push\", expected a sequence",
        ),
        ("memory = '4 bananas'", ":1:10: `memory`: `4 bananas` is not a size"),
        ("env = 'moon'", ":1:7: `env`: there are `sandbox`, `local`"),
        ("readonly = ", ":1:12: "),
    ] {
        let error = Place::new().workspace(text).error();
        assert!(
            error.contains(&format!("work/shieling.toml{expected}")),
            "{text}: {error}"
        );
    }
}

#[test]
fn an_error_does_not_let_a_file_act_on_the_terminal() {
    for text in [
        r#"env = "\u001b[2J\u202e""#,
        "\"\\u001b[2J\" = 1",
        "policy = ['\u{202e}.toml']",
        "deny = \"\\u009b31m\"",
    ] {
        let error = Place::new().workspace(text).error();
        assert!(!error.contains(['\u{1b}', '\u{9b}', '\u{202e}']), "{text}: {error:?}");
    }
}

#[test]
fn an_error_does_not_repeat_what_may_be_a_secret() {
    for text in [
        "set-env = 'TOKEN=hunter2'",
        "set-env = ['hunter2']",
        "set-env = [{ TOKEN = 'hunter2' }]",
    ] {
        let error = Place::new().user(text).error();
        assert!(
            error.contains("set-env") && !error.contains("hunter2"),
            "{text}: {error}"
        );
    }
}

#[test]
fn a_workspace_that_is_none_is_refused() {
    let place = Place::new();
    let error = place
        .load(|source| source.workspace = Some("absent".into()))
        .unwrap_err();
    insta::assert_snapshot!(error, @r"
    error: the workspace `absent` cannot be used: there is no such file or directory
    instead  give an existing directory with `--workspace DIR`
    ");
}

#[test]
fn a_shell_is_a_name_on_path_or_an_absolute_path() {
    let place = Place::new();
    let shell = |text: &str| {
        place
            .load(|source| source.settings.shell = Some(text.into()))
            .map(|loaded| loaded.settings.shell)
    };
    assert_eq!(shell("bash"), Ok(Some("/bin/bash".into())));
    assert_eq!(shell("/bin/sh"), Ok(Some("/bin/sh".into())));
    for text in [
        "./bash",
        "bin/bash",
        "no-such-shell",
        "/etc/passwd",
        "/no/such/shell",
        "..",
        "/bin",
    ] {
        assert!(shell(text).is_err(), "{text}");
    }
}
