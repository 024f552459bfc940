//! Directories that a command closes: the owner can open them again, so they are judged before that.

use std::os::unix::fs::chown;

use std::os::fd::AsFd as _;

use rustix::fs::{Gid, Mode, OFlags, Uid};

use super::*;

/// Does something as the ordinary user whose the place is, also where the tests run as root, who is never shut out.
fn as_owner(place: &Place, act: impl FnOnce() + Send) {
    if !rustix::process::geteuid().is_root() {
        return act();
    }
    fn give(path: &Path, id: u32) {
        std::os::unix::fs::lchown(path, Some(id), Some(id)).expect("root may");
        if fs::symlink_metadata(path).expect("there").is_dir() {
            for entry in fs::read_dir(path).expect("there") {
                give(&entry.expect("there").path(), id);
            }
        }
    }
    let id = 65_534;
    give(&place.path(), id);
    std::thread::scope(|scope| {
        let done = scope.spawn(|| {
            // Of this thread alone, and of what it starts.
            rustix::thread::set_thread_groups(&[]).expect("root may");
            let (user, group) = (Uid::from_raw(id), Gid::from_raw(id));
            rustix::thread::set_thread_res_gid(group, group, group).expect("root may");
            rustix::thread::set_thread_res_uid(user, user, user).expect("root may");
            act();
        });
        if let Err(panic) = done.join() {
            std::panic::resume_unwind(panic);
        }
    });
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("there").mode() & 0o7777
}

#[test]
fn a_directory_that_a_command_closes_is_judged_and_closed_again() {
    let all: &[&str] = &["000", "100", "200", "311", "400", "600"];
    for (closed, file, all) in [
        (".git/hooks", ".git/hooks/post-checkout", all),
        (".git", ".git/hooks/post-checkout", &["000", "400"]),
        ("n", "n/.vscode/tasks.json", &["000"]),
        ("n/.vscode", "n/.vscode/tasks.json", &["000"]),
        ("", ".git/hooks/post-checkout", &["000"]),
    ] {
        for bits in all {
            let place = Place::with(REPOSITORY);
            as_owner(&place, || {
                let mut watch = place.watch();
                place.run(&format!(
                    r#"mkdir -p n/.vscode; echo '{{"tasks":[{{"runOptions":{{"runOn":"folderOpen"}}}}]}}' >{file}
                    chmod 755 {file}; chmod {bits} ./{closed}"#
                ));
                let back = Back::of(&mut watch);
                assert_eq!(back.paths(), [file], "{closed} {bits}");
                assert!(watch.take_unread().is_empty(), "{closed} {bits}");
                let kept = u32::from_str_radix(bits, 8).expect("octal");
                assert_eq!(mode(&place.file(closed)), kept, "{closed} {bits}");
                // Nothing is told twice, and what the user opens has nothing in it.
                assert_eq!(Back::of(&mut watch).paths(), [""; 0], "{closed} {bits}");
                fs::set_permissions(place.file(closed), fs::Permissions::from_mode(0o755)).expect("ours");
                assert_eq!(place.read(file), "nothing", "{closed} {bits}");
                watch.accept();
                assert_eq!(Back::of(&mut watch).paths(), [""; 0], "{closed} {bits}");
                place.run("git status");
            });
        }
    }
}

#[test]
fn a_setting_in_a_closed_repository_is_taken_out_of_its_file() {
    let place = Place::with(REPOSITORY);
    as_owner(&place, || {
        let before = place.read(".git/config");
        let mut watch = place.watch();
        place.run("printf '[core]\\nfsmonitor=/x\\n' >>.git/config; chmod 000 .git");
        assert_eq!(Back::of(&mut watch).paths(), [".git/config"]);
        place.run("chmod 755 .git; git status");
        assert_eq!(place.read(".git/config"), before);
    });
}

#[test]
fn a_repository_that_a_command_makes_and_closes_is_judged_as_one_that_is_open() {
    for bits in ["000", "200"] {
        let place = Place::with(REPOSITORY);
        as_owner(&place, || {
            let mut watch = place.watch();
            place.run(&format!(
                "git init -q new; echo x >new/.git/hooks/pre-push; chmod {bits} new/.git; chmod {bits} new"
            ));
            assert_eq!(Back::of(&mut watch).paths(), ["new/.git/hooks/pre-push"]);
            place.run("chmod 755 new; chmod 755 new/.git; cd new; git status");
        });
    }
}

#[test]
fn what_the_user_has_closed_before_is_the_users() {
    let place = Place::with(&format!(
        "{REPOSITORY}\necho theirs >.git/hooks/pre-commit; chmod 000 .git"
    ));
    as_owner(&place, || {
        for watch in [Place::watch, Place::watch_beside] {
            let mut watch = watch(&place);
            place.run("echo x >a");
            assert_eq!(Back::of(&mut watch).paths(), [""; 0]);
            assert_eq!(mode(&place.file(".git")), 0);
            assert!(watch.take_unread().is_empty());
            // Nobody has seen what was in it before, so that it is told and not judged.
            place.run("chmod 755 .git; echo x >.git/hooks/pre-push; chmod 000 .git");
            assert_eq!(Back::of(&mut watch).paths(), [""; 0]);
            assert_eq!(watch.take_unread(), BTreeSet::from([PathBuf::from(".git")]));
            assert_eq!(Back::of(&mut watch).paths(), [""; 0]);
            assert!(watch.take_unread().is_empty(), "it is told once");
            // What the user opens between two commands is the user's.
            place.run("chmod 755 .git; rm .git/hooks/pre-push");
            watch.accept();
            assert_eq!(Back::of(&mut watch).paths(), [""; 0]);
            // From then on it is known.
            place.run("echo x >.git/hooks/pre-push; chmod 000 .git");
            assert_eq!(Back::of(&mut watch).paths(), [".git/hooks/pre-push"]);
        }
        place.run("chmod 755 .git");
        assert_eq!(place.read(".git/hooks/pre-commit"), "theirs\n");
    });
}

#[test]
fn a_mode_that_somebody_sets_while_a_directory_is_open_stays() {
    let place = Place::with("mkdir n; chmod 000 n");
    as_owner(&place, || {
        let directory = fs::File::open(place.file("")).expect("there");
        let closed = rustix::fs::openat(&directory, "n", OFlags::PATH | OFlags::DIRECTORY, Mode::empty());
        let closed = closed.expect("there");
        for (set, kept) in [(None, 0), (Some(0o700), 0o700), (Some(0o750), 0o750)] {
            fs::set_permissions(place.file("n"), fs::Permissions::from_mode(0o0)).expect("ours");
            let widened = crate::closed::Widened::new(closed.as_fd(), |_, _| true).expect("ours");
            assert_eq!(mode(&place.file("n")), 0o700);
            if let Some(set) = set {
                wait_for_a_later_stamp(&place.file("n"));
                fs::set_permissions(place.file("n"), fs::Permissions::from_mode(set)).expect("ours");
            }
            drop(widened);
            assert_eq!(mode(&place.file("n")), kept, "{set:?}");
        }
    });
}

/// Waits until the clock of stamps has gone on.
fn wait_for_a_later_stamp(path: &Path) {
    let of = |path: &Path| {
        fs::metadata(path)
            .map(|stat| (stat.ctime(), stat.ctime_nsec()))
            .expect("there")
    };
    let aside = path.with_extension("stamp");
    let before = of(path);
    loop {
        fs::write(&aside, "").expect("written");
        if of(&aside) > before {
            break;
        }
    }
    fs::remove_file(&aside).expect("removed");
}

#[test]
fn while_commands_run_a_closed_directory_stays_closed_and_looking_ends() {
    let place = Place::with(REPOSITORY);
    as_owner(&place, || {
        let mut watch = place.watch();
        place.run("echo x >.git/hooks/pre-push; chmod 000 .git/hooks");
        let changed = || fs::metadata(place.file(".git/hooks")).expect("there").ctime_nsec();
        let before = changed();
        assert_eq!(Back::at(&mut watch, When::Running).paths(), [""; 0]);
        assert_eq!(changed(), before, "it was touched");
        assert_eq!(Back::at(&mut watch, When::Outcome).paths(), [".git/hooks/pre-push"]);
        // One that git enters is opened at once, and that does not ring for the next look.
        place.run("chmod 755 .git/hooks; echo x >.git/hooks/pre-push; chmod 311 .git/hooks");
        assert_eq!(Back::at(&mut watch, When::Running).paths(), [".git/hooks/pre-push"]);
        let _ = Back::at(&mut watch, When::Running);
        let before = changed();
        for _ in 0..3 {
            assert_eq!(Back::at(&mut watch, When::Running).paths(), [""; 0]);
        }
        assert_eq!(changed(), before, "it looks because it looked");
    });
}

#[test]
fn a_closed_directory_that_is_exchanged_for_a_link_leads_nowhere() {
    let place = Place::with(REPOSITORY);
    as_owner(&place, || {
        let outside = place.path().join("outside");
        fs::create_dir(&outside).expect("made");
        fs::write(outside.join("pre-push"), "theirs").expect("written");
        fs::set_permissions(&outside, fs::Permissions::from_mode(0o000)).expect("ours");
        let mut watch = place.watch();
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let (hooks, aside) = (place.file(".git/hooks"), place.file(".git/aside"));
                while !is_over.load(Ordering::Acquire) {
                    let _ = fs::rename(&hooks, &aside);
                    let _ = symlink(&outside, &hooks);
                    let _ = fs::remove_file(&hooks);
                    let _ = fs::rename(&aside, &hooks);
                    let _ = fs::set_permissions(&hooks, fs::Permissions::from_mode(0o000));
                }
            });
            for _ in 0..100 {
                let _ = watch.settle(When::Outcome, true, &mut |_, _| true);
                assert_eq!(mode(&outside), 0, "it was opened");
            }
            is_over.store(true, Ordering::Release);
        });
        assert_eq!(mode(&place.file(".git/hooks")), 0, "it stays as the command closed it");
        fs::set_permissions(&outside, fs::Permissions::from_mode(0o700)).expect("ours");
        assert_eq!(fs::read_to_string(outside.join("pre-push")).expect("there"), "theirs");
    });
}

#[test]
fn what_cannot_be_opened_is_told_and_not_taken_for_the_users() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: needs root, to have a directory of another user");
        return;
    }
    let place = Place::with(REPOSITORY);
    // One thread is root, and the other is the owner.
    let (sender, receiver) = std::sync::mpsc::channel::<()>();
    let (ready, is_ready) = std::sync::mpsc::channel::<()>();
    std::thread::scope(|scope| {
        let place = &place;
        scope.spawn(move || {
            is_ready.recv().expect("the owner looks");
            place.run("mkdir -p foreign/.vscode; echo x >foreign/.vscode/tasks.json");
            chown(place.file("foreign"), Some(0), Some(0)).expect("root may");
            fs::set_permissions(place.file("foreign"), fs::Permissions::from_mode(0o700)).expect("ours");
            sender.send(()).expect("the owner waits");
        });
        as_owner(place, move || {
            let mut watch = place.watch();
            ready.send(()).expect("root waits");
            receiver.recv().expect("root has made it");
            assert_eq!(Back::of(&mut watch).paths(), [""; 0]);
            assert_eq!(watch.take_unread(), BTreeSet::from([PathBuf::from("foreign")]));
            assert_eq!(Back::of(&mut watch).paths(), [""; 0]);
            assert!(watch.take_unread().is_empty(), "it is told once");
        });
    });
}

#[test]
fn a_repository_at_a_path_that_is_too_long_for_the_kernel_is_judged() {
    let place = Place::with(REPOSITORY);
    as_owner(&place, || {
        let mut watch = place.watch();
        place.run(
            "name=$(printf %0200d 0); git init -q $name; echo x >$name/.git/hooks/pre-push
            for n in $(seq 24); do mkdir above; mv $name above; mv above $name; done
            name=$(printf %0200d | tr 0 1); mkdir $name
            for n in $(seq 100); do mkdir above; mv $name above; mv above $name; done",
        );
        let back = Back::of(&mut watch);
        let taken: Vec<_> = back.paths();
        assert_eq!(taken.len(), 1);
        assert!(taken[0].len() > 4096 && taken[0].ends_with(".git/hooks/pre-push"));
        let unread = watch.take_unread();
        assert_eq!(unread.len(), 1, "what is longer still is told");
        place.run("mv 0*/0*/0*/0*/0*/0*/0* short; test -z \"$(find short -name pre-push)\"");
        // `rm` goes down by descriptors.
        place.run("rm -r 0* 1* short");
    });
}

#[test]
fn a_closed_directory_in_one_that_was_listed_while_commands_ran_is_judged_before_the_outcome() {
    let place = Place::with(REPOSITORY);
    as_owner(&place, || {
        let mut watch = place.watch();
        place.run("mkdir -p new/closed; echo x >new/closed/.envrc; chmod 000 new/closed");
        wait_for_a_later_stamp(&place.file("new"));
        assert_eq!(Back::at(&mut watch, When::Running).paths(), [""; 0]);
        assert_eq!(Back::at(&mut watch, When::Outcome).paths(), ["new/closed/.envrc"]);
        place.run("chmod 755 new/closed");
    });
}
