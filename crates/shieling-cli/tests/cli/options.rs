//! What is wrong in the options ends with 125, says so, and starts nothing.

use crate::support::Shieling;

/// The arguments after `exec`, with a command that would leave a trace.
fn exec(options: &[&str]) -> Shieling {
    Shieling::in_workspace()
        .args(["exec"])
        .args(options.iter().copied())
        .args(["--", "touch trace"])
}

#[test]
fn a_wrong_option_is_125_and_names_itself() {
    for (options, named) in [
        (&["--env", "moon"][..], "'moon' for '--env"),
        (&["--frobnicate"], "'--frobnicate'"),
        (&["--timeout", "0"], "a timeout of 0"),
        (&["--timeout", "soon"], "`soon` is not a duration"),
        (&["--max-output", "0"], "a limit of 0"),
        (&["--max-output", "much"], "`much` is not a size"),
        (&["--memory", "-1"], "'-1'"),
        (
            &["--memory", "5"],
            "`--memory 5B` is too little for a command in `sandbox`; nothing was started\nbecause  the shell alone \
             takes about 1 MiB; at least 4MiB are needed\ninstead  allow more with `--memory 4MiB`",
        ),
        (&["--memory", "4095KiB"], "at least 4MiB"),
        (&["--env", "memory", "--memory", "5"], "at least 256KiB"),
        (
            &["--env", "container", "--image", "x", "--memory", "5MiB"],
            "at least 6MiB",
        ),
        (&["--pids", "4000001"], "from 1 to 4000000"),
        (&["--cpus", "0.0001"], "from 0.001 to 10000"),
        (&["--pids", "0"], "`0` is not a number of processes"),
        (&["--cpus", "nan"], "`nan` is not a number of processors"),
        (&["--rate", "3"], "`3` is not BURST/SECONDS"),
        (&["--set-env", "A"], "NAME=VALUE"),
        (&["--pass-env", "1A"], "not the name of a variable"),
        (&["--approval", "maybe"], "'maybe' for '--approval"),
        (&["--network", "some"], "'some' for '--network"),
        (&["--allow", ""], "an empty entry"),
        (&["--policy", ""], "the name of a policy is empty"),
        (&["--workspace", "absent"], "the workspace `absent`"),
    ] {
        let shieling = exec(options);
        let ran = shieling.run();
        assert_eq!((ran.exit, ran.stdout.as_str()), (Some(125), ""), "{options:?}");
        assert!(
            ran.stderr.starts_with("error: ") && ran.stderr.contains(named),
            "{options:?}: {}",
            ran.stderr
        );
        assert!(!shieling.workspace().join("trace").exists(), "{options:?}");
    }
}

#[test]
fn a_wrong_option_is_an_object_too_where_one_was_asked_for() {
    for (options, told) in [
        (&["--json", "--no-such"][..], "unexpected argument '--no-such' found"),
        (&["--frobnicate", "--json"], "unexpected argument '--frobnicate' found"),
        (
            &["--json", "--timeout", "0"],
            "invalid value '0' for '--timeout <DURATION>': a timeout of 0",
        ),
        (&["--json", "--set-env", "hunter2"], "NAME=VALUE"),
    ] {
        let ran = exec(options).run();
        assert_eq!(ran.exit, Some(125), "{ran}");
        assert!(ran.stderr.starts_with("error: "), "{ran}");
        let object = ran.outcome();
        let error = object["error"].as_str().expect("a text");
        assert!(error.contains(told) && !error.contains("hunter2"), "{error}");
        assert_eq!(
            (&object["status"], &object["environment"]),
            (&"failed".into(), &"sandbox".into())
        );
    }
    let ran = Shieling::in_workspace().args(["exec", "--json"]).run();
    assert!(
        ran.stdout.contains("required arguments were not provided: <COMMAND>"),
        "{ran}"
    );
}

#[test]
fn a_secret_in_a_malformed_option_is_not_repeated() {
    for options in [
        ["--set-env", "hunter2"],
        ["--set-env", "hun-ter2=x"],
        ["--pass-env", "hunter2=x"],
    ] {
        let ran = exec(&options).run();
        assert_eq!(ran.exit, Some(125));
        assert!(!ran.stderr.contains("ter2"), "{}", ran.stderr);
    }
}

#[test]
fn what_this_version_cannot_honour_is_refused_and_says_the_way_on() {
    let mut page = String::new();
    for options in [
        &["--env", "container"][..],
        &["--env", "container", "--image", "x", "--home", "private"],
        &["--image", "x"],
        &["--env", "memory", "--pids", "9"],
        &["--env", "local", "--memory", "1GiB"],
        &["--env", "local", "--pids", "9"],
        &["--env", "local", "--cpus", "1.5"],
        &["--env", "local", "--read", "/opt"],
        &["--env", "local", "--isolation", "full"],
        &["--env", "local", "--network", "none"],
        &["--env", "local", "--network", "loopback"],
        &["--env", "local", "--approval", "never"],
    ] {
        let shieling = exec(options);
        let ran = shieling.run();
        assert_eq!((ran.exit, ran.stdout.as_str()), (Some(125), ""), "{options:?}");
        assert!(!shieling.workspace().join("trace").exists(), "{options:?}");
        page.push_str(&format!("$ shieling exec {}\n{}\n", options.join(" "), ran.stderr));
    }
    insta::assert_snapshot!(page);
}

#[test]
#[cfg(feature = "container")]
fn what_says_how_a_container_is_made_is_refused_for_one_that_is_there() {
    for (option, key) in [
        (&["--network", "none"][..], "network"),
        (&["--network", "loopback"], "network"),
        (&["--engine-network", "bridge"], "engine-network"),
        (&["--preset", "hardened"], "preset"),
        (&["--workspace", "/tmp"], "workspace"),
        (&["--no-mount"], "no-mount"),
        (&["--workspace-copy", "in"], "workspace-copy"),
        (&["--pull", "always"], "pull"),
        (&["--volume", "/opt:/opt"], "volume"),
        (&["--user", "keep"], "user keep"),
        (&["--memory", "1GiB"], "memory"),
        (&["--pids", "9"], "pids"),
        (&["--cpus", "1.5"], "cpus"),
        (&["--unlimited"], "unlimited"),
        (&["--runtime", "runc"], "runtime"),
        (&["--writable"], "writable"),
        (&["--privileged"], "privileged"),
        (&["--cap-add", "NET_RAW"], "cap-add"),
    ] {
        let ran = exec(&[&["--env", "container", "--container", "no-such"][..], option].concat()).run();
        assert_eq!((ran.exit, ran.stdout.as_str()), (Some(125), ""), "{option:?}");
        let told = format!("`--{key}` has no effect with `--container`; nothing was started");
        assert!(ran.stderr.contains(&told), "{option:?}: {ran}");
    }
}

#[test]
#[cfg(feature = "container")]
fn what_does_not_go_with_a_copy_of_the_workspace_is_refused_by_its_name() {
    let image = ["--env", "container", "--image", "no-such", "--pull", "never"];
    let shieling = exec(&[&image[..], &["--workspace-copy", "both", "--readonly"]].concat());
    let ran = shieling.run();
    assert_eq!(ran.exit, Some(125), "{ran}");
    assert!(
        ran.stderr
            .contains("`--readonly` does not go with `--workspace-copy`; nothing was started"),
        "{ran}"
    );
    // The command line refuses these two by itself.
    for option in ["--writable", "--no-mount"] {
        let ran = exec(&[&image[..], &["--workspace-copy", "in", option]].concat()).run();
        assert_eq!(ran.exit, Some(125), "{ran}");
        assert!(
            ran.stderr.contains(option) && ran.stderr.contains("--workspace-copy"),
            "{ran}"
        );
    }
    // Files are laid over each other later.
    for (text, key) in [("writable = true", "writable"), ("no-mount = true", "no-mount")] {
        let ran = exec(&[&image[..], &["--workspace-copy", "in"]].concat())
            .user_config(text)
            .run();
        assert_eq!(ran.exit, Some(125), "{ran}");
        assert!(
            ran.stderr
                .contains(&format!("`--{key}` does not go with `--workspace-copy` (set in")),
            "{ran}"
        );
    }
    for env in ["sandbox", "local", "memory"] {
        let ran = exec(&["--env", env, "--workspace-copy", "in"]).run();
        let told = format!("`--workspace-copy` cannot be enforced in `{env}`; nothing was started");
        assert!(ran.exit == Some(125) && ran.stderr.contains(&told), "{ran}");
    }
    let ran = exec(&[&image[..], &["--workspace-copy", "out"]].concat()).run();
    assert!(ran.exit == Some(125) && ran.stderr.contains("in, both"), "{ran}");
}

/// Before any engine is asked: none is reached here.
#[test]
#[cfg(feature = "container")]
fn a_workspace_that_holds_the_state_directory_or_a_home_is_not_copied() {
    for how in ["in", "both"] {
        for (variable, word) in [("XDG_STATE_HOME", "are stored in"), ("HOME", "home")] {
            let shieling = exec(&["--env", "container", "--image", "x", "--workspace-copy", how]);
            let inside = shieling.workspace().join("inside");
            std::fs::create_dir(&inside).unwrap();
            let ran = shieling
                .variable(variable, inside.to_str().unwrap())
                .variable("DOCKER_HOST", "unix:///nonexistent/engine")
                .run();
            assert_eq!(ran.exit, Some(125), "{ran}");
            assert!(
                ran.stderr.contains("cannot be copied") && ran.stderr.contains(word),
                "{variable} {ran}"
            );
        }
    }
}

#[test]
fn without_a_command_nothing_can_be_done() {
    for args in [
        &["exec"][..],
        &["exec", "--"],
        &["why"],
        &[],
        &["serve"],
        &["frobnicate"],
    ] {
        assert_eq!(
            Shieling::in_workspace().args(args.iter().copied()).run().exit,
            Some(125),
            "{args:?}"
        );
    }
}

#[test]
fn why_refuses_wrong_options_with_125_too() {
    for options in [["--policy", ""], ["--timeout", "0"], ["--env", "moon"]] {
        assert_eq!(
            Shieling::in_workspace()
                .args(["why"])
                .args(options)
                .args(["ls"])
                .run()
                .exit,
            Some(125),
            "{options:?}"
        );
    }
}

#[test]
fn doctor_says_what_is_not_there() {
    let ran = Shieling::in_workspace().args(["doctor", "--json"]).run();
    // 0 or 1, as the sandbox works here or not; a panic would be 101.
    assert!(matches!(ran.exit, Some(0 | 1)), "{ran}");
    assert!(
        ran.stdout
            .contains(r#"{"layer":"memory","state":"ok","detail":"commands run in it"#),
        "{ran}"
    );
}

#[test]
fn the_shell_comes_from_the_option_or_the_variable_and_must_be_there() {
    let ran = exec(&["--env", "local"]).variable("SHIELING_SHELL", "./evil").run();
    assert_eq!(ran.exit, Some(125));
    assert!(
        ran.stderr
            .starts_with("error: the shell `./evil` is not an absolute path"),
        "{}",
        ran.stderr
    );
}
