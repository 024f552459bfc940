//! What does not work says why, and what to do; nothing partial is ever executed.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use shieling_remote::agent::{Program, Setup, Wanted};
use shieling_remote::ssh::Ssh;
use shieling_remote::transport::{ConnectError, TransportError};
use shieling_remote::{Remote, Timing};

use shieling_testkit::ssh::{Changes, Login, Server};

use super::server::{is_there, over_ssh};
use crate::support::{command, facade};

/// Served unconfined in the home.
fn local() -> Setup {
    Setup {
        environment: Wanted::Local,
        ..Setup::default()
    }
}

/// What is refused, and what is to be done.
async fn refused(ssh: Ssh) -> (String, String) {
    let begun = Instant::now();
    let error = Remote::over(Arc::new(ssh), Timing::default())
        .await
        .expect_err("it is refused");
    assert!(begun.elapsed() < Duration::from_secs(40), "{error}");
    match error {
        ConnectError::Transport(TransportError::Refused { what, instead }) => (what, instead.unwrap_or_default()),
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn tells((what, instead): &(String, String), expected: &str, cure: &str) {
    assert!(what.contains(expected), "{what}");
    assert!(instead.contains(cure), "{instead}");
}

/// The agent programs that are stored below a home, and what is left of others.
fn stored(home: &Path) -> Vec<String> {
    let names = std::fs::read_dir(home.join(".cache/shieling")).into_iter().flatten();
    names
        .map(|entry| entry.expect("ours").file_name().to_string_lossy().into_owned())
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_key_that_is_not_known_is_never_accepted_and_nothing_is_asked() {
    if !is_there() {
        return;
    }
    let server = Server::start();
    server.write_client_settings("");
    for options in [
        &[][..],
        &["-o", "StrictHostKeyChecking=no"],
        &["-o", "StrictHostKeyChecking=accept-new"],
    ] {
        let refused = refused(over_ssh(&server, Login::Root, local(), options)).await;
        tells(&refused, "cannot be reached", "compare the key");
    }
    assert_eq!(std::fs::read_to_string(server.at("known")).expect("it is there"), "");
    let other = std::fs::read_to_string(server.at("key.pub")).expect("it is there");
    server.write_client_settings(&format!("[127.0.0.1]:{} {other}", server.port()));
    let refused = refused(over_ssh(&server, Login::Root, local(), &[])).await;
    tells(&refused, "IDENTIFICATION HAS CHANGED", "find out why");
    assert!(stored(&server.home(Login::Root)).is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_without_a_key_a_port_without_a_server_and_a_missing_client_are_told_apart() {
    if !is_there() {
        return;
    }
    let server = Server::start();
    let ssh = |destination: &str| {
        let ssh = Ssh::new(destination.parse().expect("a destination"), local()).expect("looked for before");
        ssh.with_options(["-F".to_owned(), server.at("ssh_config").display().to_string()])
    };
    let stranger = refused(ssh("ssh://no-such-user@far")).await;
    tells(&stranger, "Permission denied", "ssh-add");
    let closed = std::net::TcpListener::bind("127.0.0.1:0")
        .expect("a port")
        .local_addr()
        .expect("bound")
        .port();
    let nobody = refused(ssh(&format!("ssh://root@127.0.0.1:{closed}"))).await;
    tells(&nobody, "Connection refused", "see whether");
    let missing = ssh("ssh://far").with_client("/no/such/ssh");
    let error = Remote::over(Arc::new(missing), Timing::default())
        .await
        .expect_err("it is not there");
    assert!(
        matches!(error, ConnectError::Transport(TransportError::NotStarted { .. })),
        "{error:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_program_is_sent_once_and_sent_again_where_it_was_damaged() {
    if !is_there() {
        return;
    }
    let server = Server::start();
    let home = server.home(Login::User);
    let name = format!("agent-{}", Program::carried().expect("looked for before").digest());
    let run = async || {
        let ssh = over_ssh(&server, Login::User, local(), &[]);
        let remote = Remote::over(Arc::new(ssh), Timing::default())
            .await
            .expect("it is reached");
        assert_eq!(remote.surroundings().workspace, home);
        let shieling = facade(remote, &home);
        let outcome = shieling.run(command("id -un", &home), None).await;
        assert_eq!(outcome.stdout, "shieling-far\n", "{outcome:?}");
        shieling.environment().close().await;
    };
    run().await;
    assert_eq!(stored(&home), std::slice::from_ref(&name));
    let path = home.join(".cache/shieling").join(&name);
    let mode = |path: &Path| std::fs::metadata(path).expect("it is there").permissions().mode() & 0o7777;
    assert_eq!((mode(&path), mode(path.parent().expect("above"))), (0o700, 0o700));
    let before = std::fs::metadata(&path)
        .expect("it is there")
        .modified()
        .expect("a time");
    run().await;
    assert_eq!(
        std::fs::metadata(&path)
            .expect("it is there")
            .modified()
            .expect("a time"),
        before
    );
    // A crash of that machine may leave anything.
    let content = std::fs::read(&path).expect("it is there");
    std::fs::remove_file(&path).expect("ours");
    std::fs::write(&path, &content[..content.len() / 2]).expect("room");
    run().await;
    assert_eq!(std::fs::read(&path).expect("it is there"), content);
    assert_eq!(stored(&home), [name]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_arrives_with_another_digest_is_not_executed_and_not_kept() {
    if !is_there() {
        return;
    }
    let server = Server::start();
    let program = Program::carried()
        .expect("looked for before")
        .with_digest("0".repeat(64));
    let refused = refused(over_ssh(&server, Login::Root, local(), &[]).with_program(program)).await;
    tells(
        &refused,
        "its digest is another one, so it was not started",
        "try again",
    );
    assert!(stored(&server.home(Login::Root)).is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_is_told_and_nothing_half_written_stays() {
    if !is_there() {
        return;
    }
    let server = Server::with(Changes {
        before: "mkdir -p /run/full; mount -t tmpfs -o size=256k none /run/full",
        settings: "SetEnv XDG_CACHE_HOME=/run/full\n".to_owned(),
    });
    let refused = refused(over_ssh(&server, Login::Root, local(), &[])).await;
    tells(&refused, "No space left on device", "make room");
    // Seen by whoever comes next.
    let settings = server.at("ssh_config");
    let listed = std::process::Command::new("ssh")
        .arg("-F")
        .arg(settings)
        .args(["root@far", "ls -A /run/full/shieling"])
        .output()
        .expect("ssh is there");
    assert_eq!(String::from_utf8_lossy(&listed.stdout), "", "{listed:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn words_of_the_login_shell_are_no_words_of_the_protocol() {
    if !is_there() {
        return;
    }
    let server = Server::start();
    let home = server.home(Login::Root);
    std::fs::write(
        home.join(".bashrc"),
        "echo welcome; echo -n 'shieling x start '; head -c 3000 /dev/zero\n",
    )
    .expect("room");
    let ssh = over_ssh(&server, Login::Root, local(), &[]);
    let remote = Remote::over(Arc::new(ssh), Timing::default())
        .await
        .expect("it is reached");
    let outcome = facade(remote, &home).run(command("echo good", &home), None).await;
    assert_eq!(outcome.stdout, "good\n");
    std::fs::write(home.join(".bashrc"), "head -c 200000 /dev/zero\n").expect("room");
    let noisy = refused(over_ssh(&server, Login::Root, local(), &[])).await;
    tells(&noisy, "prints more than", "start-up files");
    std::fs::write(home.join(".bashrc"), "echo not available; exit 1\n").expect("room");
    let ended = refused(over_ssh(&server, Login::Root, local(), &[])).await;
    tells(&ended, "(status 1): not available", "prints nothing");
    std::fs::write(home.join(".bashrc"), "exit 3\n").expect("room");
    let ended = refused(over_ssh(&server, Login::Root, local(), &[])).await;
    tells(&ended, "ended before it began (status 3)", "prints nothing");
    std::fs::write(home.join(".bashrc"), "export PATH=/none\n").expect("room");
    let pathless = refused(over_ssh(&server, Login::Root, local(), &[])).await;
    tells(&pathless, "has no `uname`, `sha256sum` or `head`", "PATH");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_workspace_that_is_not_there_and_a_shell_that_is_not_bash_are_told() {
    if !is_there() {
        return;
    }
    let server = Server::start();
    let nowhere = Setup {
        workspace: Some("/no/such/directory".into()),
        ..local()
    };
    let ssh = over_ssh(&server, Login::Root, nowhere, &[]);
    let error = Remote::over(Arc::new(ssh), Timing::default())
        .await
        .expect_err("it is refused");
    let ConnectError::Link { said, .. } = &error else {
        panic!("{error:?}")
    };
    assert!(
        said.contains("the workspace `/no/such/directory` cannot be opened"),
        "{said}"
    );
    let home = server.home(Login::Root);
    let plain = Setup {
        shell: Some("/bin/dash".into()),
        ..local()
    };
    let ssh = over_ssh(&server, Login::Root, plain, &[]);
    let remote = Remote::over(Arc::new(ssh), Timing::default())
        .await
        .expect("it is reached");
    assert_eq!(remote.surroundings().shell, Path::new("/bin/dash"));
    let shieling = facade(remote, &home);
    let outcome = shieling.run(command("echo $0", &home), None).await;
    assert_eq!(outcome.stdout, "dash\n", "{outcome:?}");
    let session = shieling_session(&shieling, &home).await;
    assert!(
        session.error.as_deref().is_some_and(|why| why.contains("bash")),
        "{session:?}"
    );
}

async fn shieling_session(shieling: &shieling::Shieling, home: &Path) -> shieling::outcome::Outcome {
    let session = shieling.session("one".parse().expect("a name"));
    session.run(command("echo hello", home)).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_in_a_workspace_takes_its_sandbox_away() {
    if !is_there() {
        return;
    }
    let server = Server::start();
    let workspace = server.home(Login::User).join("w");
    let hooks = workspace.join(".git/hooks");
    std::fs::create_dir_all(&hooks).expect("room");
    for closed in [&hooks, &workspace.join(".git")] {
        std::fs::set_permissions(closed, std::fs::Permissions::from_mode(0o700)).expect("ours");
    }
    // As a session of that user leaves it in a workspace of root's.
    Server::give(Login::User, &workspace.join(".git"));
    let setup = || Setup {
        workspace: Some(workspace.clone()),
        ..Setup::default()
    };
    assert_eq!(setup().environment, Wanted::Auto);
    // Root has no power over the files of others in a namespace of its own.
    let ssh = over_ssh(&server, Login::Root, setup(), &[]);
    let said = match Remote::over(Arc::new(ssh), Timing::default()).await {
        Err(ConnectError::Link { said, .. }) => said,
        Err(error) => panic!("{error:?}"),
        Ok(remote) => panic!("unconfined: {:?}", remote.surroundings().unconfined),
    };
    assert!(said.contains(".git/hooks`: Permission denied"), "{said}");
    assert!(said.contains("instead: log in as the owner"), "{said}");
    Server::give(Login::User, &workspace);
    let ssh = over_ssh(&server, Login::User, setup(), &[]);
    let remote = Remote::over(Arc::new(ssh), Timing::default())
        .await
        .expect("its owner is let in");
    assert_eq!(remote.surroundings().unconfined, None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commands_and_file_tools_have_the_mask_of_the_login() {
    if !is_there() {
        return;
    }
    let server = Server::start();
    let workspace = server.home(Login::User).join("w");
    std::fs::create_dir(&workspace).expect("room");
    Server::give(Login::User, &workspace);
    for environment in [Wanted::Local, Wanted::Sandbox] {
        let setup = Setup {
            environment,
            workspace: Some(workspace.clone()),
            ..Setup::default()
        };
        let ssh = over_ssh(&server, Login::User, setup, &[]);
        let remote = Remote::over(Arc::new(ssh), Timing::default())
            .await
            .expect("it is reached");
        let shieling = facade(remote, &workspace);
        let text = "umask; echo >made; mkdir directory; stat -c %a made directory; rm -r made directory";
        let outcome = shieling.run(command(text, &workspace), None).await;
        assert_eq!(outcome.stdout, "0022\n644\n755\n", "{outcome:?}");
        shieling.environment().close().await;
    }
    let stored = server.home(Login::User).join(".cache/shieling");
    let mode = std::fs::metadata(stored).expect("it was sent").permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_directory_in_which_others_could_exchange_the_program_is_not_used() {
    if !is_there() {
        return;
    }
    let server = Server::start();
    let cache = server.home(Login::User).join(".cache");
    let ours = cache.join("shieling");
    std::fs::create_dir_all(&ours).expect("room");
    Server::give(Login::User, &cache);
    let set = |mode| std::fs::set_permissions(&ours, std::fs::Permissions::from_mode(mode)).expect("ours");
    let reach = || over_ssh(&server, Login::User, local(), &[]);
    for mode in [0o777, 0o1777, 0o770, 0o702] {
        set(mode);
        let refused = refused(reach()).await;
        tells(&refused, "others could exchange the agent program", "chmod 700");
        assert!(stored(&server.home(Login::User)).is_empty(), "{mode:o}");
    }
    set(0o755);
    Remote::over(Arc::new(reach()), Timing::default())
        .await
        .expect("nobody else can write it");
    // Also not where the program is there already.
    set(0o777);
    tells(&refused(reach()).await, "others could exchange", "chmod 700");
    set(0o700);
    std::os::unix::fs::chown(&ours, Some(0), Some(0)).expect("root may");
    tells(&refused(reach()).await, "belongs to another user", "remove it");
}

/// Settings by which the server is reached by way of itself under another name, whose key is looked up elsewhere.
fn with_jump(server: &Server, checking: &str, known: &Path) {
    let settings = std::fs::read_to_string(server.client_settings()).expect("made by it");
    let jump = format!(
        "Host jump\n HostName 127.0.0.1\n Port {}\n User root\n StrictHostKeyChecking {checking}\n UserKnownHostsFile {}\n\
         Host far\n ProxyJump jump\n{settings}",
        server.port(),
        known.display()
    );
    std::fs::write(server.client_settings(), jump).expect("room");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_of_a_host_on_the_way_is_not_accepted_either() {
    if !is_there() {
        return;
    }
    let server = Server::start();
    let known = server.at("known-jump");
    let plain = std::fs::read_to_string(server.client_settings()).expect("made by it");
    for checking in ["accept-new", "no", "off"] {
        std::fs::write(server.client_settings(), &plain).expect("room");
        std::fs::write(&known, "").expect("room");
        with_jump(&server, checking, &known);
        let refused = refused(over_ssh(&server, Login::Root, local(), &[])).await;
        tells(
            &refused,
            "by way of `jump`, whose key would be accepted unseen",
            "StrictHostKeyChecking yes",
        );
        assert_eq!(std::fs::read_to_string(&known).expect("it is there"), "", "{checking}");
    }
    for checking in ["ask", "yes"] {
        std::fs::write(server.client_settings(), &plain).expect("room");
        with_jump(&server, checking, &known);
        let begun = Instant::now();
        let refused = refused(over_ssh(&server, Login::Root, local(), &[])).await;
        tells(&refused, "Host key verification failed", "in a terminal once");
        assert!(
            begun.elapsed() < Duration::from_secs(10),
            "{checking}: {:?}",
            begun.elapsed()
        );
        assert_eq!(std::fs::read_to_string(&known).expect("it is there"), "", "{checking}");
    }
    // One that is known is gone through.
    std::fs::copy(server.at("known"), &known).expect("room");
    Remote::over(
        Arc::new(over_ssh(&server, Login::Root, local(), &[])),
        Timing::default(),
    )
    .await
    .expect("both are known");
}
