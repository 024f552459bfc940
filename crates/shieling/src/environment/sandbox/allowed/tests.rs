use super::*;
use std::os::unix::fs::symlink;

/// A directory of programs, a workspace beside it, and what is found with that as `PATH`.
struct Host {
    _directory: tempfile::TempDir,
    bin: PathBuf,
    workspace: PathBuf,
}

impl Host {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let root = directory.path().canonicalize().expect("it is there");
        let (bin, workspace) = (root.join("tool/bin"), root.join("work"));
        for path in [&bin, &workspace] {
            fs::create_dir_all(path).expect("made");
        }
        Self {
            _directory: directory,
            bin,
            workspace,
        }
    }

    fn program(&self, path: &Path, text: &str) {
        fs::write(path, text).expect("written");
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("set");
    }

    fn find(&self, programs: &[&str]) -> Allowed {
        let mut restrictions = Restrictions::new(&self.workspace, "/bin/sh");
        restrictions.path = format!(
            "{}:{}:/usr/bin:/bin",
            self.workspace.join("bin").display(),
            self.bin.display()
        );
        find(
            &programs.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>(),
            &restrictions,
        )
    }

    fn executable(&self, programs: &[&str]) -> Vec<String> {
        let found = self.find(programs).executable;
        let root = self.workspace.parent().expect("a parent");
        found
            .iter()
            .filter_map(|path| path.strip_prefix(root).ok())
            .map(|path| path.display().to_string())
            .collect()
    }
}

#[test]
fn a_name_is_the_program_and_nothing_beside_it() {
    let host = Host::new();
    for name in ["one", "two"] {
        host.program(&host.bin.join(name), "data");
    }
    fs::write(host.bin.join("plain"), "data").expect("written");
    assert_eq!(host.executable(&["one"]), ["tool/bin/one"]);
    assert_eq!(
        host.executable(&["plain", "absent", "", "..", "."]),
        Vec::<String>::new()
    );
}

#[test]
fn a_script_brings_its_interpreters_along_through_env_too() {
    let host = Host::new();
    let interpreter = host.bin.join("first");
    host.program(&interpreter, "#!/usr/bin/env -S X=1 second -u\n");
    host.program(&host.bin.join("second"), "data");
    host.program(&host.bin.join("other"), "data");
    host.program(&host.bin.join("script"), &format!("#! {} -x\n", interpreter.display()));
    assert_eq!(
        host.executable(&["script"]),
        ["tool/bin/first", "tool/bin/script", "tool/bin/second"]
    );
    let env = fs::canonicalize("/usr/bin/env").expect("env is there");
    assert!(host.find(&["script"]).executable.contains(&env));
    assert!(!host.find(&["other"]).executable.contains(&env));
}

#[test]
fn links_are_noted_one_by_one_and_end_at_the_program() {
    let host = Host::new();
    let real = host.bin.parent().expect("a parent").join("lib");
    fs::create_dir(&real).expect("made");
    host.program(&real.join("program-1"), "data");
    symlink("alias", host.bin.join("name")).expect("linked");
    symlink("../lib/program-1", host.bin.join("alias")).expect("linked");
    symlink("loop", host.bin.join("loop")).expect("linked");
    let found = host.find(&["name", "loop"]);
    assert_eq!(found.names[&host.bin.join("name")], Name::Link("alias".into()));
    assert_eq!(
        found.names[&host.bin.join("alias")],
        Name::Link("../lib/program-1".into())
    );
    assert_eq!(found.names[&real.join("program-1")], Name::File);
    assert!(found.executable.contains(&real.join("program-1")));
}

#[test]
fn what_stands_in_the_workspace_is_allowed_by_its_path_alone() {
    let host = Host::new();
    fs::create_dir(host.workspace.join("bin")).expect("made");
    host.program(&host.workspace.join("bin/tool"), "data");
    host.program(&host.workspace.join("x.sh"), "data");
    symlink(host.workspace.join("x.sh"), host.bin.join("sneaky")).expect("linked");
    assert_eq!(host.executable(&["tool", "sneaky"]), Vec::<String>::new());
    let found = host.find(&["./x.sh", "bin/tool"]);
    assert_eq!(
        found.in_workspace,
        [host.workspace.join("bin/tool"), host.workspace.join("x.sh")]
    );
}

#[test]
fn the_workspace_does_not_say_what_is_shown_of_the_rest() {
    let host = Host::new();
    let key = host.bin.parent().expect("a parent").join("key");
    host.program(&key, "data");
    symlink(&key, host.workspace.join("link")).expect("linked");
    symlink(key.parent().expect("a parent"), host.workspace.join("directory")).expect("linked");
    symlink(host.workspace.join("link"), host.bin.join("there-and-back")).expect("linked");
    host.program(&host.workspace.join("script"), &format!("#!{}\n", key.display()));
    host.program(&host.workspace.join("up"), "#!/usr/../etc/passwd\n");
    let found = host.find(&["./link", "directory/key", "there-and-back", "./script", "./up"]);
    assert!(!found.names.contains_key(&key), "{found:?}");
    assert!(!found.executable.contains(&key));
    assert!(!found.names.contains_key(Path::new("/etc/passwd")));

    // What the caller's PATH has may be named.
    host.program(&host.bin.join("first"), "data");
    let text = format!("#!{}\n", host.bin.join("first").display());
    host.program(&host.workspace.join("fine"), &text);
    assert_eq!(host.executable(&["./fine"]), ["tool/bin/first", "work/fine"]);
}

#[test]
fn the_shell_and_its_loader_are_always_there() {
    let host = Host::new();
    let found = host.find(&[]);
    assert!(
        found
            .executable
            .contains(&fs::canonicalize("/bin/sh").expect("a shell"))
    );
    let head = fs::read("/bin/sh").expect("read");
    let loader = loader(&head[..4096]).expect("a shell of this host is linked dynamically");
    assert!(
        found
            .executable
            .contains(&fs::canonicalize(loader).expect("it is there"))
    );
}

#[test]
fn a_broken_binary_names_no_loader() {
    let head = fs::read("/bin/sh").expect("read");
    for end in [0, 5, 6, 20, 60, 64, 100] {
        assert_eq!(loader(&head[..end]), None, "{end}");
    }
    let mut wild = head[..4096].to_vec();
    wild[32..40].fill(0xff);
    assert_eq!(loader(&wild), None);
    wild[54..58].fill(0xff);
    assert_eq!(loader(&wild), None);
}

#[test]
fn a_script_that_chooses_a_version_is_replaced_by_the_program_of_that_version() {
    let host = Host::new();
    let root = host.workspace.parent().expect("a parent").join("pyenv");
    for version in ["1", "2"] {
        fs::create_dir_all(root.join("versions").join(version).join("bin")).expect("made");
        host.program(&root.join("versions").join(version).join("bin/python"), "data");
    }
    fs::create_dir(root.join("shims")).expect("made");
    host.program(&root.join("shims/python"), "#!/usr/bin/env bash\n");
    fs::write(root.join("version"), "2\n").expect("written");
    let find = || {
        let mut restrictions = Restrictions::new(&host.workspace, "/bin/sh");
        restrictions.path = root.join("shims").display().to_string();
        restrictions.roots.insert("PYENV_ROOT".into(), root.clone());
        find(&["python".to_owned()], &restrictions)
    };
    let program = |version: &str| root.join("versions").join(version).join("bin/python");
    assert_eq!(find().names[&root.join("shims/python")], Name::Link(program("2")));
    assert!(find().executable.contains(&program("2")) && !find().executable.contains(&program("1")));
    fs::write(host.workspace.join(".python-version"), "../../work 1").expect("written");
    assert!(find().executable.contains(&program("1")) && !find().executable.contains(&program("2")));
    fs::write(host.workspace.join(".python-version"), "system").expect("written");
    assert!(!find().needs(&root));
}

#[test]
fn rustups_proxies_bring_the_programs_of_each_toolchain_and_end() {
    let host = Host::new();
    let root = host.workspace.parent().expect("a parent").join("rustup");
    let toolchain = root.join("toolchains/t/bin");
    fs::create_dir_all(&toolchain).expect("made");
    for name in ["tool", "other"] {
        host.program(&toolchain.join(name), "data");
        symlink("rustup", host.bin.join(name)).expect("linked");
    }
    host.program(&host.bin.join("rustup"), "data");
    fs::create_dir_all(root.join("toolchains/loop/bin")).expect("made");
    symlink(host.bin.join("rustup"), root.join("toolchains/loop/bin/tool")).expect("linked");
    let mut restrictions = Restrictions::new(&host.workspace, "/bin/sh");
    restrictions.path = host.bin.display().to_string();
    restrictions.roots.insert("RUSTUP_HOME".into(), root);
    let found = find(&["tool".to_owned()], &restrictions).executable;
    assert!(found.contains(&toolchain.join("tool")) && found.contains(&host.bin.join("rustup")));
    assert!(!found.contains(&toolchain.join("other")));
}

#[test]
fn gits_own_programs_come_with_git() {
    let host = Host::new();
    let core = host.bin.parent().expect("a parent").join("libexec/git-core");
    fs::create_dir_all(&core).expect("made");
    host.program(&host.bin.join("git"), "data");
    assert!(host.find(&["git"]).directories.contains(&core));
    assert!(host.find(&["ls"]).directories.is_empty());
}
