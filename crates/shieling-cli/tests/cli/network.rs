//! The network by name, from the options to what is seen of it.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use serde_json::{Value, json};

use crate::mcp::Server;
use crate::support::Shieling;

const VALUE: &str = "glpat-Zx81kQmV07yTbN4cRw2e";

/// A server on this machine's loopback that answers each connection, and its port.
fn serve() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("it is bound").port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut bytes = [0; 1024];
            let _ = stream.read(&mut bytes);
            let _ = stream.write_all(b"HTTP/1.0 200 OK\r\n\r\nserved");
        }
    });
    port
}

fn exec(options: &[&str], command: &str) -> Shieling {
    let options = options.iter().map(|&option| option.to_owned());
    let rest = ["--".to_owned(), command.to_owned()];
    Shieling::in_workspace()
        .args(["exec".to_owned()])
        .args(options.chain(rest))
}

#[test]
fn a_host_is_opened_by_option_and_by_the_users_file() {
    let host = format!("host.internal:{}", serve());
    let get = format!(
        "exec 3<> /dev/tcp/{}; echo >&3; cat <&3 | tail -c 6",
        host.replace(':', "/")
    );
    let by_option = exec(&["--allow-host", &host], &get).run();
    assert_eq!(
        (by_option.exit, by_option.stdout.as_str()),
        (Some(0), "served"),
        "{by_option}"
    );
    let by_file = exec(&[], &get).user_config(&format!("allow-host = [\"{host}\"]")).run();
    assert_eq!(
        (by_file.exit, by_file.stdout.as_str()),
        (Some(0), "served"),
        "{by_file}"
    );
    let by_workspace = exec(&[], &get)
        .file("shieling.toml", &format!("allow-host = [\"{host}\"]"))
        .run();
    assert_eq!(by_workspace.exit, Some(125), "{by_workspace}");
    assert!(
        by_workspace.stderr.contains("it opens the network to a host"),
        "{by_workspace}"
    );
}

#[test]
fn a_rule_of_a_policy_file_decides_about_hosts() {
    let host = format!("host.internal:{}", serve());
    let get = format!(
        "exec 3<> /dev/tcp/{}; echo >&3; cat <&3 | tail -c 6",
        host.replace(':', "/")
    );
    let rule = |decision: &str| {
        format!("[[rule]]\nid = \"own\"\ndecision = \"{decision}\"\nconnects = \"{host}\"\nbecause = \"so it is\"\n")
    };
    let allowed = exec(&["--policy", "./net.toml"], &get)
        .file("net.toml", &rule("allow"))
        .run();
    assert_eq!(
        (allowed.exit, allowed.stdout.as_str()),
        (Some(0), "served"),
        "{allowed}"
    );
    // The strictest decides.
    let options = ["--policy", "./net.toml", "--allow-host", &host];
    let denied = exec(&options, &get).file("net.toml", &rule("deny")).run();
    assert!(
        denied.stdout.is_empty() && denied.stderr.contains("so it is"),
        "{denied}"
    );
}

#[test]
fn what_is_refused_is_told_with_its_cure() {
    let ran = exec(&["--allow-host", "example.org"], "getent hosts other.example.org").run();
    assert_eq!(ran.exit, Some(2), "{ran}");
    assert!(
        ran.stderr.contains("refused  `other.example.org`")
            && ran.stderr.contains("instead  `--allow-host other.example.org`"),
        "{ran}"
    );
    let json = exec(
        &["--json", "--allow-host", "example.org"],
        "getent hosts other.example.org",
    )
    .run();
    let outcome = json.outcome();
    assert_eq!(outcome["network"]["denied"][0]["host"], "other.example.org", "{json}");
    assert_eq!(outcome["network"]["connections"], json!([]), "{json}");
    // Without the option nothing is told of a network that was not used.
    let json = exec(&["--json"], "true").run();
    let outcome = json.outcome();
    assert_eq!(outcome["network"], Value::Null, "{json}");
}

#[test]
fn where_hosts_cannot_be_opened_nothing_starts() {
    for (options, why) in [
        (
            &["--env", "local"][..],
            "this environment reaches all that this host reaches",
        ),
        (&["--env", "memory"], "there is no network in memory"),
        (&["--env", "container", "--image", "x"], "containers have no gateway"),
        (&["--isolation", "landlock"], "needs a network namespace"),
        (&["--network", "host"], "everything can be reached already"),
        (&["--network", "none"], "not even a loopback"),
    ] {
        for opened in [["--allow-host", "example.org"], ["--secret", "TOKEN@example.org"]] {
            let ran = exec(&[options, &opened].concat(), "echo started")
                .variable("TOKEN", VALUE)
                .run();
            assert_eq!(
                (ran.exit, ran.stdout.as_str()),
                (Some(125), ""),
                "{options:?} {opened:?}: {ran}"
            );
            assert!(
                ran.stderr.contains(why) && ran.stderr.contains(opened[0]),
                "{options:?}: {ran}"
            );
        }
    }
    for (host, why) in [
        ("https://example.org/", "this is a URL"),
        ("*", "`*` stands only for"),
        ("localhost", "host.internal"),
        ("127.0.0.1:80", "host.internal"),
        ("0x7f.1", "four decimal numbers"),
        ("@nowhere", "@python"),
        ("example.org:0", "a port is a number"),
    ] {
        let ran = exec(&["--allow-host", host], "echo started").run();
        assert_eq!((ran.exit, ran.stdout.as_str()), (Some(125), ""), "{host}: {ran}");
        assert!(ran.stderr.contains(why), "{host}: {ran}");
    }
}

#[test]
fn a_secret_comes_from_a_variable_a_file_or_a_command_and_is_never_seen() {
    let print = "printf %s \"$TOKEN\"; printf %s \"$TOKEN\" | base64 -w0; env | grep -c glpat-Zx81k; true";
    for source in ["", "=env:MINE", "=file:token", "=cmd:cat token; echo"] {
        let secret = format!("TOKEN@api.example.org{source}");
        let options = ["--json", "--secret", &secret, "--record", "--audit", "../log.jsonl"];
        let shieling = exec(&options, print)
            .variable("TOKEN", VALUE)
            .variable("MINE", VALUE)
            .file("token", &format!("{VALUE}\n"));
        let ran = shieling.run();
        let outcome = ran.outcome();
        let said = outcome["stdout"].as_str().expect("a text");
        assert!(said.ends_with("0\n") && said.len() > VALUE.len(), "{source}: {ran}");
        assert!(!format!("{ran}").contains(VALUE), "{source}: {ran}");
        // Nor in the record, the log, or anything else but what the test has put there.
        let found = std::process::Command::new("grep")
            .args(["-rlF", VALUE])
            .arg(shieling.workspace().parent().expect("it lies in its place"))
            .output()
            .expect("grep is there");
        let found = String::from_utf8_lossy(&found.stdout).into_owned();
        assert!(
            found.lines().all(|line| line.ends_with("/work/token")),
            "{source}: {found}"
        );
    }
    for (source, why) in [
        ("=env:NOT_THERE", "the variable NOT_THERE is not set"),
        ("=file:absent", "there is no such file"),
        ("=cmd:exit 3", "its command ended with 3"),
        ("=env:SHORT", "between 8 bytes"),
    ] {
        let ran = exec(&["--secret", &format!("TOKEN@api.example.org{source}")], "echo started")
            .variable("SHORT", "abc")
            .run();
        assert_eq!((ran.exit, ran.stdout.as_str()), (Some(125), ""), "{source}: {ran}");
        assert!(ran.stderr.contains(why) || source.contains("SHORT"), "{source}: {ran}");
    }
}

#[test]
fn five_hundred_connections_are_served_with_the_usual_limit_of_descriptors() {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    if limit.maximum.is_some_and(|maximum| maximum < 8 * 500) {
        return shieling_testkit::prerequisite::skip("4000 descriptors (`ulimit -Hn`)");
    }
    if !shieling_testkit::prerequisite::has(&["python3"]) {
        return;
    }
    let host = format!("host.internal:{}", serve());
    let port = &host["host.internal:".len()..];
    let script = format!(
        "import resource, socket\nall = [socket.create_connection(('host.internal', {port})) for _ in range(500)]\n\
         for one in all: one.sendall(b'x')\nserved = 0\nfor one in all:\n  text = b''\n  while more := one.recv(99): text += more\n  \
         served += text.endswith(b'served')\nprint(served, resource.getrlimit(resource.RLIMIT_NOFILE)[0])\n"
    );
    let command = |args: &[&str]| {
        let shieling = Shieling::in_workspace().file("many.py", &script);
        let plain = shieling.command_of(args.iter().map(|&arg| arg.to_owned()));
        let mut command = std::process::Command::new("sh");
        command.args(["-c", "ulimit -Sn 1024; exec \"$@\"", "sh"]);
        command.arg(plain.get_program()).args(plain.get_args());
        command.env_clear().current_dir(shieling.workspace());
        command.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
        (shieling, command)
    };
    let (shieling, mut exec) = command(&["exec", "--allow-host", &host, "--", "python3 many.py"]);
    let ran = shieling.ran(&exec.output().expect("sh is there"));
    // The command's own limit is the one with which it was started.
    assert_eq!(ran.stdout, "500 1024\n", "{ran}");
    let (shieling, mcp) = command(&["mcp", "--allow-host", &host]);
    let mut server = Server::start_by(shieling, mcp, json!({}));
    let (text, outcome) = server.shell(json!({"command": "python3 many.py"}));
    assert_eq!(outcome["stdout"], "500 1024\n", "{text}");
}

#[test]
fn a_model_is_told_what_can_be_reached() {
    let options = [
        "describe",
        "--allow-host",
        "@python",
        "--allow-host",
        "db.example.org:5432",
    ];
    let ran = Shieling::in_workspace().args(options).run();
    assert!(
        ran.stdout
            .contains("Network      loopback, and `@python`, `db.example.org:5432`"),
        "{ran}"
    );
    assert!(ran.stdout.contains("The network is open to `@python`"), "{ran}");
}

/// A session over MCP, whose person says yes to each host, and what its calls gave.
fn served(options: &[&str], can: Value, command: &str) -> (Server, String, Value) {
    let options = options.iter().map(|&option| option.to_owned());
    let shieling = Shieling::in_workspace().args(["mcp".to_owned()]).args(options);
    let mut server = Server::start(shieling, can);
    let (text, outcome) = server.shell(json!({"command": command}));
    (server, text, outcome)
}

#[test]
fn the_person_behind_a_client_is_asked_about_a_host_and_the_command_goes_on() {
    let command = "exec 3<> /dev/tcp/unknown.example.invalid/80; \
                   printf 'GET / HTTP/1.0\\r\\nHost: unknown.example.invalid\\r\\n\\r\\n' >&3; cat <&3; true";
    let opened = ["--allow-host", "example.org"];
    let (server, text, outcome) = served(&opened, json!({"elicitation": {}}), command);
    let asked = server.asked.join("\n");
    assert_eq!(server.asked.len(), 1, "{asked} {text} {outcome}");
    assert!(
        asked.contains("May a command do this?") && asked.contains("connect unknown.example.invalid:80"),
        "{asked}"
    );
    assert_eq!(outcome["network"]["denied"], json!([]), "{text} {outcome}");
    assert_eq!(
        outcome["network"]["connections"][0]["host"], "unknown.example.invalid",
        "{text} {outcome}"
    );
    // With nobody to ask it is refused, and the model reads how a person can open it.
    let (_, text, _) = served(&opened, json!({}), command);
    assert!(
        text.contains("network: `unknown.example.invalid:80` was refused")
            && text.contains("--allow-host unknown.example.invalid"),
        "{text}"
    );
}

/// Installs from the registries that this machine reaches; a download of a few megabytes, so only on demand.
#[test]
fn packages_come_from_real_registries() {
    if std::env::var_os("SHIELING_TEST_REGISTRIES").is_none() {
        eprintln!("skipped: it runs where SHIELING_TEST_REGISTRIES is set");
        return;
    }
    // Where a resolver gives them addresses that are not public, these have to be named.
    let names = [
        "pypi.org",
        "files.pythonhosted.org",
        "registry.npmjs.org",
        "index.crates.io",
        "deb.debian.org",
    ];
    let mut addresses: Vec<String> = names
        .iter()
        .filter_map(|name| std::net::ToSocketAddrs::to_socket_addrs(&(*name, 443)).ok())
        .flatten()
        .filter(std::net::SocketAddr::is_ipv4)
        .map(|address| address.ip().to_string())
        .collect();
    addresses.sort();
    addresses.dedup();
    let named: Vec<&str> = addresses
        .iter()
        .flat_map(|address| ["--allow-host", address.as_str()])
        .collect();
    let apt = "mkdir -p a/lists/partial a/cache/archives/partial; apt-get -o Dir::State=$PWD/a -o Dir::State::status=/dev/null \
               -o Dir::Cache=$PWD/a/cache -o APT::Sandbox::User=root -o Dir::State::lists=$PWD/a/lists update 2>&1";
    let cargo = "printf '[package]\\nname=\"x\"\\nversion=\"0.1.0\"\\nedition=\"2021\"\\n[dependencies]\\nitoa=\"1\"\\n' > Cargo.toml; \
                 mkdir src; echo > src/lib.rs; CARGO_HOME=/tmp/cargo cargo fetch 2>&1";
    let pip = "python3 -m venv v && v/bin/pip install --no-cache-dir six 2>&1";
    let npm = "npm init -y > /dev/null; npm install --cache /tmp/npm is-odd 2>&1";
    // A sandbox finds cargo and its toolchains by these, since the home of this test has none.
    let home = std::env::var("HOME").unwrap_or_default();
    let toolchain = [("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup")]
        .map(|(name, usual)| (name, std::env::var(name).unwrap_or_else(|_| format!("{home}/{usual}"))));
    let exec = |options: &[&str], text: &str| {
        let [cargo, rustup] = &toolchain;
        exec(options, text)
            .variable(cargo.0, &cargo.1)
            .variable(rustup.0, &rustup.1)
    };
    for (program, set, text, missing) in [
        ("python3", "@python", pip, "pypi.org"),
        ("npm", "@npm", npm, "registry.npmjs.org"),
        ("cargo", "@rust", cargo, "index.crates.io"),
        ("apt-get", "@debian", apt, "deb.debian.org"),
    ] {
        let ran = exec(&[&["--allow-host", set][..], &named].concat(), text).run();
        assert_eq!(ran.exit, Some(0), "{program}: {ran}");
        let began = std::time::Instant::now();
        let ran = exec(&[&["--json", "--allow-host", "example.org"][..], &named].concat(), text).run();
        assert!(began.elapsed().as_secs() < 30, "{program}: no time-out is waited for");
        assert!(
            ran.stdout.contains(&format!("--allow-host {missing}")),
            "{program}: {ran}"
        );
    }
}
