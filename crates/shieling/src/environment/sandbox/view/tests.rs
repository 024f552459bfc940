use super::*;

/// A directory of one's own, below `/var/tmp` or `/tmp` as the test says.
struct Place(
    #[expect(dead_code, reason = "removes the directory when it is dropped")] tempfile::TempDir,
    PathBuf,
);

fn place_in(directory: &str) -> Place {
    let own = tempfile::tempdir_in(directory).expect("a directory");
    let path = own.path().canonicalize().expect("it is there");
    Place(own, path)
}

fn asked(workspace: &Path) -> Restrictions {
    let mut restrictions = Restrictions::new(workspace, "/bin/sh");
    restrictions.home = Some("/home/nobody-here".into());
    restrictions.user_name = Some("u".into());
    restrictions.path = "/usr/local/bin:/usr/bin:/bin".into();
    restrictions
}

/// What is seen at a path in the end: the last entry at it or above it.
fn seen<'a>(view: &'a View, path: &Path) -> Option<&'a Entry> {
    let shows = |entry: &&Entry| {
        !matches!(entry, Entry::Protect { .. } | Entry::Hide { .. }) && path.starts_with(entry.target())
    };
    view.entries.iter().rfind(shows)
}

fn is_private(view: &View, path: &Path) -> bool {
    matches!(seen(view, path), Some(Entry::Temporary { .. }))
}

/// A directory of ours that only leads to the workspace.
fn is_nothing(view: &View, path: &Path) -> bool {
    matches!(seen(view, path), Some(Entry::Directory { .. }))
}

/// The host's own file at this very path: `Some(writable)`.
fn is_real(view: &View, path: &Path) -> Option<bool> {
    match seen(view, path) {
        Some(Entry::Bind {
            source,
            target,
            writable,
            ..
        }) if source == target => Some(*writable),
        _ => None,
    }
}

#[track_caller]
fn made(restrictions: &Restrictions) -> View {
    view(restrictions, None).expect("it can be made")
}

#[test]
fn the_workspace_is_writable_and_its_neighbours_are_absent() {
    for directory in ["/tmp", "/var/tmp"] {
        let place = place_in(directory);
        let workspace = place.1.join("work");
        fs::create_dir(&workspace).expect("made");
        let view = made(&asked(&workspace));
        assert_eq!(is_real(&view, &workspace.join("x")), Some(true));
        // What was written beside it would be gone without a word.
        assert!(is_nothing(&view, &place.1.join("neighbour")), "{directory}");
        assert!(is_private(&view, Path::new("/tmp/x")));
        assert_eq!(is_real(&view, Path::new("/usr/lib")), Some(false));
        for absent in [
            "/root/.ssh",
            "/home/other",
            "/var/log",
            "/opt",
            "/srv",
            "/boot",
            "/mnt",
            "/etc/shadow",
            "/sys/kernel",
        ] {
            assert!(seen(&view, Path::new(absent)).is_none(), "{absent}");
        }
        assert!(view.executable.is_none());

        let mut restrictions = asked(&workspace);
        restrictions.readonly = true;
        let view = made(&restrictions);
        assert_eq!(is_real(&view, &workspace.join("x")), Some(false));
        assert!(view.probes.contains(&Probe::NoWrite(workspace.clone())));
        assert!(
            !view
                .entries
                .iter()
                .any(|entry| matches!(entry, Entry::Protect { .. } | Entry::Bind { writable: true, .. }))
        );
    }
}

#[test]
fn every_place_is_absolute_and_nothing_lies_under_what_comes_later() {
    let place = place_in("/var/tmp");
    let mut restrictions = asked(&place.1);
    for programs in [
        None,
        Some(vec!["git".to_owned(), "cc".to_owned(), "python3".to_owned()]),
    ] {
        restrictions.programs = programs;
        let view = made(&restrictions);
        for (at, entry) in view.entries.iter().enumerate() {
            assert!(is_clean(entry.target()), "{entry:?}");
            let later = view.entries[at + 1..]
                .iter()
                .find(|later| below(entry.target(), later.target()));
            assert_eq!(later, None, "{entry:?}");
        }
        assert!(!view.entries.contains(&shown("/bin/sh", true)), "it is in `/usr`");
        // Files and links take no mount.
        let mounts = |entry: &&Entry| !matches!(entry, Entry::File { .. } | Entry::Link { .. });
        let many = view.entries.iter().filter(mounts).count();
        assert!(
            restrictions.programs.is_some() || many < 45,
            "each costs start-up time: {many}"
        );
    }
}

#[test]
fn var_tmp_is_tmp_unless_something_is_put_into_it() {
    let link = |view: &View| {
        view.entries
            .iter()
            .any(|entry| matches!(entry, Entry::Link { target, .. } if target == Path::new("/var/tmp")))
    };
    assert!(link(&made(&asked(&place_in("/tmp").1))));
    let place = place_in("/var/tmp");
    let view = made(&asked(&place.1));
    assert!(!link(&view) && is_private(&view, Path::new("/var/tmp/x")));
    let other = place_in("/tmp");
    let mut restrictions = asked(&other.1);
    restrictions.read.push(place.1.clone());
    assert!(!link(&made(&restrictions)));
}

#[test]
fn the_home_is_private_around_the_workspace_and_real_within_it() {
    let place = place_in("/var/tmp");
    let (home, other) = (place.1.join("home"), place.1.join("other"));
    let inside = home.join("code/project");
    for path in [&inside, &other] {
        fs::create_dir_all(path).expect("made");
    }
    for (workspace, home_is_private) in [(&other, true), (&inside, true), (&home, false), (&place.1, false)] {
        let mut restrictions = asked(workspace);
        restrictions.home = Some(home.clone());
        restrictions.allow_home = true;
        restrictions.open_protected = true;
        let view = made(&restrictions);
        assert_eq!(
            is_private(&view, &home.join(".bashrc")),
            home_is_private,
            "{}",
            workspace.display()
        );
        assert_eq!(is_real(&view, &workspace.join("x")), Some(true));
    }
}

#[test]
fn what_is_to_be_read_is_read_only_and_leaves_workspace_and_home_as_they_are() {
    let place = place_in("/var/tmp");
    let (workspace, home, data) = (place.1.join("work"), place.1.join("home"), place.1.join("data"));
    for path in [&workspace, &home, &data] {
        fs::create_dir(path).expect("made");
    }
    let with = |read: &Path| {
        let mut restrictions = asked(&workspace);
        restrictions.home = Some(home.clone());
        restrictions.read.push(read.to_path_buf());
        made(&restrictions)
    };
    let beside = with(&data);
    assert_eq!(is_real(&beside, &data.join("x")), Some(false));
    assert!(is_private(&beside, &place.1.join("neighbour")));
    let above = with(&place.1);
    assert_eq!(is_real(&above, &data.join("x")), Some(false));
    assert_eq!(
        is_real(&above, &workspace.join("x")),
        Some(true),
        "an ancestor does not make it read-only"
    );
    assert!(is_private(&above, &home.join("x")));
    assert_eq!(
        is_real(&with(&home), &home.join("x")),
        Some(false),
        "the home itself was asked for"
    );
    fs::create_dir(workspace.join("sub")).expect("made");
    assert_eq!(
        is_real(&with(&workspace.join("sub")), &workspace.join("sub/x")),
        Some(true)
    );
}

#[test]
fn what_is_read_as_a_whole_has_no_links_and_files_of_ours_in_it() {
    let place = place_in("/tmp");
    let mut restrictions = asked(&place.1);
    restrictions.read = vec!["/etc".into(), "/var".into()];
    let view = made(&restrictions);
    let ours = |entry: &&Entry| {
        matches!(entry, Entry::Link { .. } | Entry::File { .. })
            && restrictions.read.iter().any(|read| below(entry.target(), read))
    };
    assert_eq!(view.entries.iter().find(ours), None);
    assert!(
        is_private(&view, Path::new("/var/tmp/x")),
        "and what is private stays so"
    );
}

#[test]
fn a_shell_that_stands_apart_is_shown_alone() {
    let (place, other) = (place_in("/var/tmp"), place_in("/var/tmp"));
    let mut restrictions = asked(&place.1);
    restrictions.shell = other.1.join("sh");
    let view = made(&restrictions);
    assert_eq!(is_real(&view, &restrictions.shell), Some(false));
    assert!(is_private(&view, &other.1.join("neighbour")));
}

#[test]
fn the_workspace_is_seen_at_its_own_place_alone() {
    let place = place_in("/var/tmp");
    let workspace = place.1.join("work");
    fs::create_dir_all(workspace.join("bin")).expect("made");
    let link = |name: &str, to: &str| {
        std::os::unix::fs::symlink(to, place.1.join(name)).expect("linked");
        place.1.join(name)
    };
    let (again, above, bin) = (link("again", "work"), link("above", "."), link("bin", "work/bin"));
    let mut restrictions = asked(&workspace);
    restrictions.path = bin.display().to_string();
    restrictions.read = vec![again.clone()];
    let view = made(&restrictions);
    let entry = seen(&view, &again);
    assert!(
        matches!(entry, Some(Entry::Link { to, .. }) if *to == workspace),
        "{entry:?}"
    );
    assert!(!view.entries.iter().any(|entry| entry.target() == bin));
    assert_eq!(is_real(&view, &workspace.join("x")), Some(true));

    restrictions.read = vec![above.clone()];
    let view = made(&restrictions);
    assert!(
        !view.entries.iter().any(|entry| entry.target() == above),
        "it is in what is shown"
    );
    assert_eq!(is_real(&view, &place.1), Some(false));
    assert_eq!(is_real(&view, &workspace), Some(true));
}

#[test]
fn what_cannot_be_shown_is_refused_by_name() {
    let place = place_in("/var/tmp");
    std::os::unix::fs::symlink("/", place.1.join("root")).expect("linked");
    let link = place.1.join("root");
    for (read, part) in [
        (Path::new("/"), "the whole host"),
        (&link, "the whole host"),
        (Path::new("/proc/1"), "of its own"),
        (Path::new("/dev"), "of its own"),
        (Path::new("/no/such/file"), "`--read /no/such/file`"),
        (Path::new("relative"), "absolute"),
        (Path::new("/tmp/../root"), "absolute"),
    ] {
        let mut restrictions = asked(&place.1);
        restrictions.read.push(read.to_path_buf());
        let error = view(&restrictions, None).expect_err("refused").to_string();
        assert!(error.contains(part), "{error}");
    }
    for (workspace, part) in [
        ("/", "would lie over"),
        ("/usr", "would lie over"),
        ("/etc", "would lie over"),
        ("/proc/self", "would lie over"),
        ("/var", "would lie over"),
        ("/no/such", "not a directory"),
        ("relative", "not a directory"),
    ] {
        let error = view(&asked(Path::new(workspace)), None).expect_err("refused").to_string();
        assert!(error.contains(part), "{error}");
    }
    let error = view(&asked(&place.1.join("root/tmp")), None).expect_err("a link on the way");
    assert!(matches!(error, ViewError::NoWorkspace { .. }));
}

#[test]
fn the_git_directory_of_a_linked_tree_is_bound_with_its_hooks_protected() {
    let place = place_in("/var/tmp");
    let (main, tree) = (place.1.join("main"), place.1.join("tree"));
    let git = main.join(".git/worktrees/tree");
    for path in [&main.join(".git/objects"), &main.join(".git/hooks/x"), &git, &tree] {
        fs::create_dir_all(path).expect("made");
    }
    for (path, text) in [
        (main.join(".git/HEAD"), "ref: refs/heads/main".to_owned()),
        (main.join(".git/config"), String::new()),
        (git.join("gitdir"), tree.join(".git").display().to_string()),
        (git.join("commondir"), "../..".to_owned()),
        (tree.join(".git"), format!("gitdir: {}", git.display())),
    ] {
        fs::write(path, text).expect("written");
    }
    let mut restrictions = asked(&tree);
    let unnamed = made(&restrictions);
    assert!(
        is_nothing(&unnamed, &main.join(".git/objects/x")),
        "the workspace's own files name nothing that is shown"
    );
    restrictions.repository = repository::linked_repository(&tree);
    let view = made(&restrictions);
    assert_eq!(is_real(&view, &main.join(".git/objects/x")), Some(true));
    assert!(is_nothing(&view, &main.join("file")), "its working tree is not shown");
    for path in [
        main.join(".git/hooks"),
        main.join(".git/config"),
        tree.join(".git"),
        git.join("commondir"),
    ] {
        let protected = Entry::Protect { target: path };
        assert!(view.entries.contains(&protected), "{protected:?}");
    }
    restrictions.readonly = true;
    assert_eq!(is_real(&made(&restrictions), &main.join(".git/objects/x")), Some(false));
}

#[test]
fn nothing_is_shown_by_a_link_that_lies_in_the_workspace() {
    let place = place_in("/var/tmp");
    let (work, tools) = (place.1.join("work"), place.1.join("tools"));
    for path in [&work, &tools] {
        fs::create_dir_all(path).expect("made");
    }
    std::os::unix::fs::symlink(&tools, work.join("link")).expect("linked");
    std::os::unix::fs::symlink(work.join("link"), place.1.join("by-link")).expect("linked");
    for path in [work.join("link"), place.1.join("by-link")] {
        let mut restrictions = asked(&work);
        restrictions.read = vec![path.clone()];
        let refused = view(&restrictions, None).expect_err("a command can have laid it");
        assert!(matches!(refused, ViewError::ReadsThroughWorkspace { .. }), "{refused}");
        let mut restrictions = asked(&work);
        restrictions.path = path.display().to_string();
        let shown = made(&restrictions);
        assert!(is_nothing(&shown, &place.1.join("by-link/x")));
    }
    let mut restrictions = asked(&work);
    restrictions.read = vec![tools];
    assert!(view(&restrictions, None).is_ok(), "itself it can be named");
}

#[test]
fn a_repository_that_is_none_is_refused() {
    let place = place_in("/var/tmp");
    let mut restrictions = asked(&place.1);
    for path in ["/etc", "/nowhere", "/"] {
        restrictions.repository = Some(path.into());
        let refused = view(&restrictions, None).expect_err("it is none");
        assert!(matches!(refused, ViewError::NotARepository { .. }), "{refused}");
    }
}

#[test]
fn protected_paths_are_opened_when_asked() {
    let place = place_in("/var/tmp");
    fs::create_dir_all(place.1.join(".git/hooks")).expect("made");
    let protects = |open| {
        let mut restrictions = asked(&place.1);
        restrictions.open_protected = open;
        made(&restrictions)
            .entries
            .iter()
            .any(|entry| matches!(entry, Entry::Protect { .. }))
    };
    assert!(protects(false) && !protects(true));
}

#[test]
fn under_an_allow_list_only_its_programs_are_there_to_be_executed() {
    let place = place_in("/var/tmp");
    let script = place.1.join("x.sh");
    fs::write(&script, "#!/bin/sh\n").expect("written");
    fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("set");
    let mut restrictions = asked(&place.1);
    restrictions.programs = Some(vec![
        "ls".into(),
        "awk".into(),
        "./x.sh".into(),
        "no-such-program".into(),
    ]);
    let view = made(&restrictions);

    let executable = view.executable.as_ref().expect("a list");
    let real = |path: &str| fs::canonicalize(path).expect("it is there");
    for allowed in [real("/bin/ls"), real("/bin/sh"), real("/usr/bin/awk"), script.clone()] {
        assert!(executable.contains(&allowed), "{}", allowed.display());
        let shown = seen(&view, &allowed);
        let runs = matches!(
            shown,
            Some(Entry::Bind { executable: true, .. } | Entry::Again { executable: true, .. })
        );
        assert!(runs, "{shown:?}");
    }
    for absent in ["/usr/bin/cat", "/usr/bin/env", "/usr/sbin/nologin"] {
        assert!(!executable.contains(&real(absent)));
        let shown = seen(&view, &real(absent));
        assert!(matches!(shown, Some(Entry::Directory { .. })), "{absent}: {shown:?}");
    }
    let shown = seen(&view, &script);
    assert!(
        matches!(shown, Some(Entry::Again { writable: false, .. })),
        "who writes it could run anything: {shown:?}"
    );
    for entry in &view.entries {
        let (path, runs) = match entry {
            Entry::Bind { target, executable, .. } | Entry::Temporary { target, executable, .. } => {
                (target, *executable)
            }
            _ => continue,
        };
        let of_the_system = toolchain::is_system(path) || path == &script;
        assert!(!runs || of_the_system, "{}", path.display());
    }
    assert!(matches!(
        seen(&view, Path::new("/usr/share/x")),
        Some(Entry::Bind { executable: false, .. })
    ));
}

#[test]
fn where_files_keep_their_places_no_real_home_is_opened() {
    let place = place_in("/var/tmp");
    let mut restrictions = asked(&place.1);
    restrictions.isolation = Isolation::Landlock;
    restrictions.home = Some("/root".into());
    let view = made(&restrictions);
    assert!(seen(&view, Path::new("/root/.ssh")).is_none());
    assert!(seen(&view, Path::new("/dev/sda")).is_none() && is_real(&view, Path::new("/dev/null")) == Some(true));
    assert!(
        view.entries
            .iter()
            .all(|entry| matches!(entry, Entry::Bind { .. } | Entry::Temporary { .. } | Entry::Link { .. }))
    );
    assert_eq!(is_real(&view, Path::new("/etc/passwd")), Some(false));
}

#[test]
fn the_probes_follow_the_network() {
    let place = place_in("/var/tmp");
    for (network, no_connect) in [(Network::None, true), (Network::Loopback, true), (Network::Host, false)] {
        let mut restrictions = asked(&place.1);
        restrictions.network = network;
        let view = made(&restrictions);
        assert_eq!(view.probes.contains(&Probe::NoConnect), no_connect);
        assert!(
            view.probes.contains(&Probe::NoWrite("/usr".into())) && view.probes.contains(&Probe::Write("/tmp".into()))
        );
        // The host's, or one that answers at once that there is nobody to ask.
        assert!(seen(&view, Path::new("/etc/resolv.conf")).is_some());
    }
}

#[test]
fn a_home_as_workspace_is_refused_unless_it_is_asked_for_and_a_project_in_it_is_not() {
    let place = place_in("/var/tmp");
    let (home, link) = (place.1.join("home"), place.1.join("link"));
    fs::create_dir_all(home.join("project")).expect("made");
    std::os::unix::fs::symlink(&home, &link).expect("linked");
    for named in [&home, &link] {
        for (workspace, says) in [(&home, "is a home directory"), (&place.1, "holds the home directory")] {
            let mut restrictions = asked(workspace);
            restrictions.home = Some(named.clone());
            let refused = view(&restrictions, None).expect_err("it is a home").to_string();
            assert!(refused.contains(says) && refused.contains("--allow-home"), "{refused}");
            restrictions.allow_home = true;
            let held = made(&restrictions);
            assert!(held.probes.contains(&Probe::NoWrite(home.clone())));
            restrictions.isolation = Isolation::Landlock;
            let refused = view(&restrictions, None).expect_err("nothing can be held").to_string();
            assert!(refused.contains("--isolation landlock"), "{refused}");
            restrictions.readonly = true;
            made(&restrictions);
            restrictions.isolation = Isolation::Full;
            made(&restrictions);
            restrictions.allow_home = false;
            let refused = view(&restrictions, None).expect_err("keys could be read").to_string();
            assert!(refused.contains("--allow-home"), "{refused}");
        }
        let mut restrictions = asked(&home.join("project"));
        restrictions.home = Some(named.clone());
        made(&restrictions);
    }
}

#[test]
fn the_home_of_a_user_of_this_host_is_one_whatever_the_callers_is() {
    let users = fs::read_to_string("/etc/passwd").expect("every host has users");
    if !users
        .lines()
        .any(|line| line.starts_with("root:") && line.contains(":/root:/bin/"))
        || !Path::new("/root").is_dir()
    {
        return;
    }
    for home in [None, Some("/nonexistent".into())] {
        let mut restrictions = asked(Path::new("/root"));
        restrictions.home = home;
        assert!(matches!(
            view(&restrictions, None),
            Err(ViewError::WorkspaceIsHome { .. })
        ));
    }
}

#[test]
fn a_part_of_a_home_is_refused_with_what_opens_it() {
    let place = place_in("/var/tmp");
    let home = place.1.join("home");
    for name in [".ssh", ".config/nvim", ".dotfiles", ".cache/x", ".local/src/x"] {
        fs::create_dir_all(home.join(name)).expect("made");
    }
    for (name, cure) in [
        (".ssh", "`--allow-home --open-protected`"),
        (".config", "`--allow-home --open-protected`"),
        (".config/nvim", "`--allow-home --open-protected`"),
        (".dotfiles", "`--allow-home`"),
    ] {
        let mut restrictions = asked(&home.join(name));
        restrictions.home = Some(home.clone());
        let refusal = |restrictions: &Restrictions| view(restrictions, None).expect_err("it is a part").to_string();
        let refused = refusal(&restrictions);
        assert!(refused.contains(cure) && refused.contains(name), "{refused}");
        restrictions.isolation = Isolation::Landlock;
        assert!(refusal(&restrictions).contains("--isolation landlock"));
        restrictions.isolation = Isolation::Full;
        restrictions.readonly = true;
        let refused = refusal(&restrictions);
        assert!(refused.contains("`--allow-home`"), "keys could be read: {refused}");
        restrictions.allow_home = true;
        made(&restrictions);
        restrictions.readonly = false;
        if cure.contains("--open-protected") {
            assert!(refusal(&restrictions).contains(cure));
            restrictions.open_protected = true;
        }
        made(&restrictions);
    }
    for name in [".cache/x", ".local/src/x"] {
        let mut restrictions = asked(&home.join(name));
        restrictions.home = Some(home.clone());
        made(&restrictions);
    }
}
