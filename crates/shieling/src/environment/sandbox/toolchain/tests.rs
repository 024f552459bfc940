use super::*;

fn targets(path: &str, change: impl FnOnce(&mut Restrictions)) -> Vec<String> {
    let mut restrictions = Restrictions::new("/home/u/work/project", "/bin/sh");
    restrictions.home = Some("/home/u".into());
    restrictions.path = path.to_owned();
    change(&mut restrictions);
    let entries = entries(&restrictions).concat();
    entries
        .iter()
        .map(|entry| entry.target().display().to_string())
        .collect()
}

#[test]
fn each_directory_of_the_path_shows_its_toolchain_and_no_more() {
    for (path, expected) in [
        ("/home/u/.pyenv/shims:/home/u/.pyenv/bin", vec!["/home/u/.pyenv"]),
        ("/home/u/go/bin", vec!["/home/u/go/bin", "/home/u/go/pkg/mod"]),
        ("/opt/tool/bin", vec!["/opt/tool"]),
        ("/opt/tool/bin/", vec!["/opt/tool"]),
        ("/opt/tool", vec!["/opt/tool"]),
        ("/opt/bin", vec!["/opt/bin"]),
        ("/home/u/bin", vec!["/home/u/bin"]),
        ("/home/u/things/x/bin", vec!["/home/u/things/x/bin"]),
        ("/home/other/bin", vec!["/home/other/bin"]),
        ("/usr/bin:/bin:/usr/local/go/bin", vec![]),
        ("/snap/bin", vec![]),
        ("/home/u/work/project/node_modules/.bin", vec![]),
        (
            "/:/home:/home/u:/opt:/mnt:/mnt/disk:/home/u/work:/home/other:/var/x:/tmp:/etc/bin:/proc/self",
            vec![],
        ),
        ("/mnt/c/Windows/System32", vec![]),
        ("relative/bin::../bin:/opt/x/../../root/bin", vec![]),
    ] {
        assert_eq!(targets(path, |_| {}), expected, "{path}");
    }
}

#[test]
fn cargo_comes_with_rustup_and_without_credentials() {
    let shown = targets("/home/u/.cargo/bin", |_| {});
    assert_eq!(
        shown[..3],
        ["bin", "registry", "git"].map(|name| format!("/home/u/.cargo/{name}"))
    );
    assert_eq!(
        shown[3..],
        ["toolchains", "settings.toml", "update-hashes"].map(|name| format!("/home/u/.rustup/{name}"))
    );
    let moved = targets("/data/cargo/bin", |restrictions| {
        restrictions.roots.insert("CARGO_HOME".into(), "/data/cargo".into());
        restrictions.roots.insert("RUSTUP_HOME".into(), "/data/rustup".into());
    });
    assert_eq!(moved[0], "/data/cargo/bin");
    assert_eq!(moved[3], "/data/rustup/toolchains");
    let hostile = targets("/home/u/.cargo/bin", |restrictions| {
        restrictions.roots.insert("CARGO_HOME".into(), "/".into());
    });
    assert_eq!(
        hostile[0], "/home/u/.cargo/bin",
        "a root that contains the home is no root"
    );
}

#[test]
fn cargo_settings_are_shown_unless_a_word_in_them_may_be_a_secrets() {
    let root = tempfile::tempdir().expect("a directory");
    assert_eq!(cargo_config(root.path()), None);
    let path = root.path().join("config.toml");
    for (text, fine) in [
        ("[build]\njobs = 2\n", true),
        ("[registries.x]\nToken = \"t\"\n", false),
        ("[http]\nproxy = \"u:p@host\"\n", false),
    ] {
        fs::write(&path, text).expect("written");
        assert_eq!(cargo_config(root.path()).is_some(), fine, "{text}");
    }
}

#[test]
fn a_registrys_token_in_an_installation_that_is_shown_whole_is_hidden_again() {
    let home = tempfile::tempdir().expect("a directory");
    let home = home.path().canonicalize().expect("it is there");
    let version = home.join(".nvm/versions/node/v20");
    fs::create_dir_all(version.join("etc")).expect("made");
    fs::write(version.join("etc/npmrc"), "token").expect("written");
    let mut restrictions = Restrictions::new("/w", "/bin/sh");
    restrictions.path = version.join("bin").display().to_string();
    restrictions.home = Some(home.clone());
    assert_eq!(
        entries(&restrictions).concat(),
        [
            shown(home.join(".nvm"), true),
            Entry::Hide {
                target: version.join("etc/npmrc")
            }
        ]
    );
}

#[test]
fn links_on_the_path_are_followed_to_the_toolchain_that_they_lead_to() {
    let home = tempfile::tempdir().expect("a directory");
    let home = home.path().canonicalize().expect("it is there");
    let workspace = home.join("work");
    fs::create_dir_all(home.join(".local/share/uv/python/x/bin")).expect("made");
    fs::create_dir_all(home.join("private")).expect("made");
    for name in ["good", "bad"] {
        fs::create_dir_all(workspace.join(name)).expect("made");
    }
    let python = home.join(".local/share/uv/python/x/bin/python");
    fs::write(&python, "").expect("written");
    fs::write(home.join("private/python"), "").expect("written");
    std::os::unix::fs::symlink(&python, workspace.join("good/python")).expect("linked");
    std::os::unix::fs::symlink(home.join("private/python"), workspace.join("bad/python")).expect("linked");
    let shown = |name: &str| {
        let mut restrictions = Restrictions::new(&workspace, "/bin/sh");
        restrictions.home = Some(home.clone());
        restrictions.path = workspace.join(name).display().to_string();
        entries(&restrictions)
            .concat()
            .iter()
            .map(|entry| entry.target().to_path_buf())
            .collect::<Vec<_>>()
    };
    assert!(shown("good").contains(&home.join(".local/share/uv/python")));
    assert_eq!(
        shown("bad"),
        Vec::<PathBuf>::new(),
        "the workspace does not say what is shown"
    );
}

#[test]
fn a_virtual_environment_of_the_workspace_brings_a_known_toolchain_and_nothing_else() {
    use std::os::unix::fs::symlink;
    let place = tempfile::tempdir().expect("a directory");
    let home = place.path().canonicalize().expect("it is there");
    let workspace = home.join("project");
    fs::create_dir_all(workspace.join(".venv/bin")).expect("made");
    for (place, is_shown) in [
        (".local/share/uv/python/3.12/bin/python3.12", true),
        ("secret/bin/python", false),
    ] {
        let python = home.join(place);
        fs::create_dir_all(python.parent().expect("above")).expect("made");
        fs::write(&python, "").expect("written");
        let link = workspace.join(".venv/bin/python");
        let _ = fs::remove_file(&link);
        symlink(&python, &link).expect("made");
        let shown = targets("/usr/bin", |restrictions| {
            restrictions.home = Some(home.clone());
            restrictions.workspace = workspace.clone();
        });
        assert_eq!(
            shown.iter().any(|path| python.starts_with(path)),
            is_shown,
            "{place}: {shown:?}"
        );
    }
}

#[test]
fn a_tool_in_a_virtual_environment_comes_with_the_toolchain_that_runs_it() {
    use std::os::unix::fs::symlink;
    let place = tempfile::tempdir().expect("a directory");
    let home = place.path().canonicalize().expect("it is there");
    let python = home.join(".pyenv/versions/3.11/bin/python");
    let secret = home.join("secret/bin/python");
    for file in [&python, &secret] {
        fs::create_dir_all(file.parent().expect("above")).expect("made");
        fs::write(file, "").expect("written");
    }
    for (environment, bin, leads_to, is_shown) in [
        ("tools", "tools/bin", &python, true),
        (".local/share/pipx/venvs/poetry", ".local/bin", &python, true),
        ("others", "others/bin", &secret, false),
    ] {
        let bin = home.join(bin);
        let environment = home.join(environment);
        fs::create_dir_all(environment.join("bin")).expect("made");
        let shows = || {
            let shown = targets(&bin.to_string_lossy(), |restrictions| {
                restrictions.home = Some(home.clone());
            });
            shown.iter().any(|path| leads_to.starts_with(path))
        };
        symlink(leads_to, environment.join("bin/python")).expect("made");
        assert!(!shows(), "{bin:?} is no virtual environment");
        fs::write(environment.join("pyvenv.cfg"), "").expect("written");
        assert_eq!(shows(), is_shown, "{bin:?}");
    }
}

#[test]
fn a_virtual_environment_is_shown_with_its_packages_and_not_with_what_else_lies_there() {
    let place = tempfile::tempdir().expect("a directory");
    let home = place.path().canonicalize().expect("it is there");
    let environment = home.join("project");
    for part in ["bin", "lib/python3/site-packages", "src"] {
        fs::create_dir_all(environment.join(part)).expect("made");
    }
    fs::write(environment.join(".env"), "SECRET=1").expect("written");
    std::os::unix::fs::symlink("lib", environment.join("lib64")).expect("linked");
    let shown = || {
        targets(&environment.join("bin").to_string_lossy(), |restrictions| {
            restrictions.home = Some(home.clone());
        })
    };
    let named = |parts: &[&str]| {
        parts
            .iter()
            .map(|part| format!("{}/{part}", environment.display()))
            .collect::<Vec<_>>()
    };
    assert_eq!(shown(), named(&["bin"]));
    fs::write(environment.join("pyvenv.cfg"), "home = /usr/bin").expect("written");
    assert_eq!(shown(), named(&["bin", "lib", "pyvenv.cfg"]));
}
