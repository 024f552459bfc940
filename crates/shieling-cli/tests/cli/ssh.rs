//! `--env ssh://…` against a server on loopback, by the `ssh` that is first on `PATH`.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use shieling_remote::agent::Program;
use shieling_testkit::prerequisite;
use shieling_testkit::ssh::{Changes, Login, Server, is_there};

use crate::support::{Ran, Shieling};

/// A server, and an `ssh` that knows it.
struct Far {
    server: Server,
    workspace: PathBuf,
    path: String,
}

impl Far {
    fn start() -> Option<Self> {
        Self::with(Changes::default())
    }

    fn with(changes: Changes) -> Option<Self> {
        if let Err(error) = Program::carried() {
            prerequisite::skip(error);
            return None;
        }
        if !is_there() {
            return None;
        }
        let server = Server::with(changes);
        let (workspace, programs) = (server.at("project"), server.at("bin"));
        for directory in [&workspace, &programs] {
            std::fs::create_dir(directory).expect("room");
        }
        std::fs::write(workspace.join("note"), "hello\n").expect("room");
        Server::give(Login::User, &workspace);
        let client = programs.join("ssh");
        let text = format!(
            "#!/bin/sh\nexec /usr/bin/ssh -F {} \"$@\"\n",
            server.client_settings().display()
        );
        std::fs::write(&client, text).expect("room");
        std::fs::set_permissions(&client, std::fs::Permissions::from_mode(0o755)).expect("ours");
        let path = format!("{}:{}", programs.display(), std::env::var("PATH").expect("it is set"));
        Some(Self {
            server,
            workspace,
            path,
        })
    }

    /// The environment of the ordinary user, in the workspace.
    fn env(&self) -> String {
        format!("ssh://{}@far{}", Login::User.name(), self.workspace.display())
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        Shieling::in_workspace()
            .variable("PATH", &self.path)
            .args(arguments)
            .run()
    }
}

#[test]
fn a_command_runs_over_there_in_a_sandbox_and_its_outcome_is_told_as_here() {
    let Some(far) = Far::start() else { return };
    let env = far.env();
    let text = "id -un; pwd; cat note; echo more >>note; exit 7";
    let ran = far.run(&["exec", "--env", &env, text]);
    assert_eq!(ran.exit, Some(7), "{ran}");
    let workspace = far.workspace.display();
    assert_eq!(
        ran.stdout,
        format!("{}\n{workspace}\nhello\n", Login::User.name()),
        "{ran}"
    );
    assert_eq!(
        std::fs::read_to_string(far.workspace.join("note")).expect("it is there"),
        "hello\nmore\n"
    );

    let outcome = far.run(&["exec", "--env", &env, "--json", "touch /etc/x"]).outcome();
    assert_eq!(outcome["environment"], "ssh");
    let enforced = outcome["confinement"]["enforced"].to_string();
    assert!(
        enforced.contains("landlock") && enforced.contains("seccomp"),
        "{enforced}"
    );
    assert_eq!(outcome["hints"][0]["kind"], "read_only", "{outcome}");

    // What a policy means is enforced there, also where reading decides nothing.
    let script = "python3 -c 'open(\"note\", \"w\")' || cat note";
    let readonly = far.run(&["exec", "--env", &env, "--readonly", script]);
    assert!(
        readonly.stderr.contains("Read-only file system") && readonly.stdout.ends_with("hello\nmore\n"),
        "{readonly}"
    );
    let hidden = far.run(&[
        "exec",
        "--env",
        &env,
        "--ignore",
        "note",
        "cat *; python3 -c 'open(\"no\"+\"te\")'",
    ]);
    assert!(
        hidden.stdout.is_empty() && hidden.stderr.contains("No such file"),
        "{hidden}"
    );

    let limited = far.run(&[
        "exec",
        "--env",
        &env,
        "--memory",
        "64MiB",
        "python3 -c 'x = \"a\" * 200000000'",
    ]);
    assert_eq!(limited.exit, Some(137), "{limited}");
    assert!(
        limited.stderr.contains("the limit of 64 MiB was reached, and python3"),
        "{limited}"
    );
}

#[test]
fn variables_are_those_of_the_other_machine_but_for_what_is_passed_on() {
    let Some(far) = Far::start() else { return };
    let arguments = [
        "exec",
        "--env",
        &far.env(),
        "--set-env",
        "A=b",
        "--pass-env",
        "TOKEN",
        "echo $A $TOKEN $USER $OTHER",
    ];
    let ran = Shieling::in_workspace()
        .variable("PATH", &far.path)
        .variable("TOKEN", "t")
        .variable("OTHER", "o")
        .args(arguments)
        .run();
    assert_eq!(ran.stdout, format!("b t {}\n", Login::User.name()), "{ran}");
}

#[test]
fn a_machine_without_a_sandbox_is_unconfined_says_so_and_asks() {
    // Where a part of /proc is covered, as in many containers, no namespace can have a /proc of its own.
    let changes = Changes {
        before: "mkdir /run/none; mount --bind /run/none /proc/sys/user",
        settings: String::new(),
    };
    let Some(far) = Far::with(changes) else { return };
    let env = far.env();
    let asked = far.run(&["exec", "--env", &env, "echo started"]);
    assert_eq!((asked.exit, asked.stdout.as_str()), (Some(126), ""), "{asked}");
    assert!(asked.stderr.contains("nothing would confine it there"), "{asked}");
    let noted = far.run(&["exec", "--env", &env, "--approval", "policy", "cat note"]);
    assert!(
        noted.stderr.starts_with("note: commands run unconfined on `ssh://"),
        "{noted}"
    );
    let described = far.run(&["describe", "--env", &env]);
    let told = "Commands and files are on another machine, unconfined, since it can have no sandbox: ";
    assert!(described.stdout.contains(told), "{described}");
    for (arguments, what) in [
        (&["--memory", "1GiB"][..], "`--memory` cannot be enforced in"),
        (&["--network", "none"], "`--network` cannot be enforced in"),
        (&["--read", "/etc"], "`--read` cannot be enforced in"),
        (&["--approval", "never"], "was not acknowledged"),
    ] {
        let ran = far.run(&[&["exec", "--env", &env][..], arguments, &["echo started"]].concat());
        assert_eq!((ran.exit, ran.stdout.as_str()), (Some(125), ""), "{ran}");
        assert!(
            ran.stderr.contains(what) && ran.stderr.contains("can have no sandbox"),
            "{what}: {ran}"
        );
    }
    let outcome = far
        .run(&["exec", "--env", &env, "--approval", "policy", "--json", "cat note"])
        .outcome();
    assert_eq!(
        (&outcome["stdout"], &outcome["environment"]),
        (&"hello\n".into(), &"ssh".into())
    );
    let confinement = serde_json::json!({ "enforced": [], "missing": ["sandbox"] });
    assert_eq!(outcome["confinement"], confinement);
    // Only reading stands there, so what cannot be read is not let through.
    let unread = far.run(&[
        "exec",
        "--env",
        &env,
        "--approval",
        "policy",
        "--readonly",
        "python3 -c 'print(1)'",
    ]);
    assert_eq!((unread.exit, unread.stdout.as_str()), (Some(126), ""), "{unread}");
}

#[test]
fn what_cannot_be_had_over_there_is_refused_by_name_before_anything_starts() {
    let Some(far) = Far::start() else { return };
    let env = far.env();
    for (arguments, what) in [
        (&["--home", "persistent"][..], "`--home` cannot be enforced in"),
        (&["--workspace", "/elsewhere"], "the workspace is given twice"),
        (&["--read", "relative"], "`relative` means nothing on another machine"),
        (&["--shell", "/bin/dash"], "there is no bash on ssh://"),
        (&["--shell", "/no/such/shell"], "no shell to run commands with"),
        (
            &["--isolation", "landlock", "--network", "loopback"],
            "`--network` cannot be enforced in",
        ),
    ] {
        let ran = far.run(&[&["exec", "--env", &env][..], arguments, &["echo started"]].concat());
        assert_eq!((ran.exit, ran.stdout.as_str()), (Some(125), ""), "{ran}");
        assert!(ran.stderr.contains(what), "{what}: {ran}");
    }
    let nowhere = far.run(&["exec", "--env", &format!("{env}/nowhere"), "true"]);
    assert!(
        nowhere.exit == Some(125) && nowhere.stderr.contains("cannot be opened"),
        "{nowhere}"
    );
    let outcome = far
        .run(&["exec", "--env", &format!("{env}/nowhere"), "--json", "true"])
        .outcome();
    assert_eq!(
        outcome["cwd"],
        format!("{}/nowhere", far.workspace.display()),
        "{outcome}"
    );
    let wrong = far.run(&["exec", "--env", "ssh://-oProxyCommand=id", "true"]);
    assert!(
        wrong.exit == Some(125) && wrong.stderr.contains("this can be no host"),
        "{wrong}"
    );
    far.server.write_client_settings("");
    let unknown = far.run(&["exec", "--env", &env, "true"]);
    assert_eq!(unknown.exit, Some(125), "{unknown}");
    assert!(
        unknown
            .stderr
            .contains("compare the key that it shows before you say yes"),
        "{unknown}"
    );
}

#[test]
fn it_is_described_judged_and_configured() {
    let Some(far) = Far::start() else { return };
    let env = far.env();
    let described = far.run(&["describe", "--env", &env]);
    assert_eq!(described.exit, Some(0), "{described}");
    for told in [
        "Environment  ssh: ",
        "Commands and files are on another machine, in its environment `sandbox`.",
    ] {
        assert!(described.stdout.contains(told), "{described}");
    }
    // Judged without it: nothing is enforced as far as is known, and nobody is reached.
    let why = far.run(&["why", "--env", "ssh://nowhere.invalid/x", "--readonly", "python3 x.py"]);
    assert_eq!(why.exit, Some(3), "{why}");
    let configured = Shieling::in_workspace()
        .variable("PATH", &far.path)
        .user_config(&format!("env = \"{env}\"\n"))
        .args(["exec", "cat note"])
        .run();
    assert_eq!(configured.stdout, "hello\n", "{configured}");
    // A workspace does not choose a machine.
    let tempted = Shieling::in_workspace()
        .variable("PATH", &far.path)
        .file("shieling.toml", &format!("env = \"{env}\"\n"))
        .args(["exec", "cat note"])
        .run();
    assert!(
        tempted.exit == Some(125) && tempted.stderr.contains("`env` may not be set here"),
        "{tempted}"
    );
}
