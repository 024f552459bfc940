//! Commits while commands go on in the same overlay.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::fd::AsFd as _;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use shieling_changes::{Action, ChangeSet, Choice, Mode, Shadows, Surroundings};

use crate::support::{Place, in_overlay, sh};

/// A shell in an overlay that stays mounted.
struct Inside {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    view: fs::File,
}

impl Inside {
    fn new(place: &Place, set: &ChangeSet) -> Self {
        let view = place.root.join("view");
        let _ = fs::create_dir(&view);
        let text = "echo $$ && VIEW=$PWD exec bash";
        let mut child = in_overlay(&place.workspace, &set.upper(), &set.work(), &view, text)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = child.stdin.take().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        let pid: u32 = line.trim().parse().unwrap();
        let view = fs::File::open(format!("/proc/{pid}/cwd")).unwrap();
        Self {
            child,
            input,
            output,
            view,
        }
    }

    fn run(&mut self, script: &str) -> String {
        writeln!(self.input, "{{ {script}\n}} 2>&1; echo __end__").unwrap();
        let mut text = String::new();
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).unwrap() > 0, "{text}");
            if line == "__end__\n" {
                return text;
            }
            text.push_str(&line);
        }
    }

    /// As the sandbox's server does it before each command.
    fn forget_names(&mut self) {
        assert_eq!(self.run("mount -o remount \"$VIEW\""), "");
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct Live {
    place: Place,
    set: ChangeSet,
    shadows: Shadows,
    inside: Inside,
}

impl Live {
    fn new(setup: &str) -> Self {
        let place = Place::new(setup);
        let set = place.store.create(&place.workspace, Mode::Commit).unwrap();
        let inside = Inside::new(&place, &set);
        Self {
            place,
            set,
            shadows: Shadows::default(),
            inside,
        }
    }

    fn command(&mut self, script: &str) -> String {
        self.shadows.refresh(&self.set, self.inside.view.as_fd()).unwrap();
        self.inside.forget_names();
        self.set.begin(script).unwrap();
        let output = self.inside.run(script);
        let done = self.commit();
        assert_eq!(done.judged.conflicting, 0, "{script}: {:?}", done.judged.conflicts);
        output
    }

    fn commit(&mut self) -> shieling_changes::Committed {
        let around = Surroundings::default();
        let shadows = Some(&mut self.shadows);
        self.place
            .store
            .commit(&mut self.set, &Choice::default(), &around, shadows)
            .unwrap()
    }

    fn user(&self, script: &str) {
        std::thread::sleep(std::time::Duration::from_millis(12));
        sh(&self.place.workspace, script);
    }

    fn read(&self, path: impl AsRef<Path>) -> String {
        fs::read_to_string(self.place.workspace.join(path)).unwrap()
    }
}

#[test]
fn what_a_job_removes_between_the_copy_and_the_commit_is_gone_from_the_workspace_too() {
    let mut live = Live::new("mkdir kept");
    live.inside.run(
        "echo x > lock; mkdir -p d/e kept/new; echo x > d/e/f; echo x > kept/new/f; echo x > kept/g; ln -s lock l",
    );
    assert_eq!(live.commit().judged.conflicting, 0);
    // The kernel leaves no mark, since nothing was there yet in the workspace.
    let upper = live.set.upper();
    fs::rename(upper.join("d"), upper.join("moved")).unwrap();
    fs::remove_dir_all(upper.join("kept/new")).unwrap();
    for name in ["lock", "l", "kept/g"] {
        fs::remove_file(upper.join(name)).unwrap();
    }
    live.inside.forget_names();
    // What somebody else made or changed since stays.
    live.user("echo user > d/users; echo user > kept/g");
    live.shadows.withdraw(&live.set, live.inside.view.as_fd()).unwrap();
    assert_eq!(live.commit().judged.conflicting, 0);
    let has = |path: &str| fs::symlink_metadata(live.place.workspace.join(path)).is_ok();
    for gone in ["lock", "l", "d/e", "kept/new"] {
        assert!(!has(gone), "{gone}");
    }
    assert_eq!(live.read("moved/e/f"), "x\n");
    assert_eq!(
        (live.read("kept/g"), live.read("d/users")),
        ("user\n".into(), "user\n".into())
    );
    assert_eq!(live.command("cat kept/g; ls d; echo x > lock"), "user\nusers\n");
    assert_eq!(live.read("lock"), "x\n");
}

#[test]
fn a_session_goes_on_in_its_directory_and_sees_what_the_user_does() {
    let mut live = Live::new("mkdir src; echo 1 > src/old; echo 1 > top");
    assert_eq!(
        live.command("mkdir -p new/deep; cd new/deep; echo 1 > made; echo 2 > ../../src/old"),
        ""
    );
    assert_eq!(
        (live.read("new/deep/made"), live.read("src/old")),
        ("1\n".into(), "2\n".into())
    );
    // The user: a file that was committed, one that no command touched, new ones in old and new directories.
    live.user("echo user > new/deep/made; echo user > top; touch new/deep/users; rm src/old; touch src/added");
    assert_eq!(live.command("cat made ../../top; ls ../../src"), "user\nuser\nadded\n");
    assert_eq!(
        live.command("ls; echo agent >> users; echo agent >> made"),
        "made\nusers\n"
    );
    assert_eq!(
        (live.read("new/deep/users"), live.read("new/deep/made")),
        ("agent\n".into(), "user\nagent\n".into())
    );
    // What a command deletes is deleted, and what the user makes again comes back.
    assert_eq!(live.command("rm users; rm -r ../../src"), "");
    assert!(!live.place.workspace.join("new/deep/users").exists() && !live.place.workspace.join("src").exists());
    live.user("mkdir src; echo again > src/old; echo again > new/deep/users");
    assert_eq!(live.command("cat users ../../src/old"), "again\nagain\n");
    live.user("rm -r new");
    live.command("cd /; true");
    assert!(
        !live.place.workspace.join("new").exists(),
        "nothing brings back what the user deleted"
    );
}

#[test]
fn a_running_job_s_changes_are_committed_and_it_sees_later_edits() {
    let mut live = Live::new("echo 1 > config; mkdir log");
    live.command("(exec 7>>log/file; while :; do cat config >&7; sleep 0.02; done) & echo 2 > config");
    for n in 3..6 {
        live.command(&format!(
            "echo {n} > config; until grep -q {n} log/file; do sleep 0.01; done"
        ));
        assert!(live.read("log/file").contains(&n.to_string()));
    }
    live.user("echo user > config");
    live.command("until grep -q user log/file; do sleep 0.01; done; kill %1; wait");
    let log = live.read("log/file");
    assert!(log.contains("user"), "{log}");
    live.command("true");
    assert_eq!(live.read("config"), "user\n");
}

#[test]
fn what_both_changed_waits_and_other_commits_go_on() {
    let mut live = Live::new("echo 1 > a; echo 1 > b");
    live.command("echo 2 > a");
    live.set.begin("long").unwrap();
    live.inside.run("echo 3 > a");
    live.user("echo user > a");
    let done = live.commit();
    assert_eq!((done.id, done.judged.conflicting), (None, 1));
    assert_eq!(live.read("a"), "user\n");
}

#[test]
fn an_edit_that_was_merged_while_a_person_was_asked_is_seen_by_later_commands() {
    let mut live = Live::new("printf '%s\\n' {1..20} > t");
    live.set.begin("edit").unwrap();
    live.inside.run("sed -i s/^3$/three/ t");
    let mut frozen = live
        .place
        .store
        .freeze(&live.set, Some(&live.shadows))
        .unwrap()
        .unwrap();
    live.user("sed -i s/^18$/E/ t");
    let around = Surroundings::default();
    let done = live
        .place
        .store
        .commit(&mut frozen.set, &Choice::default(), &around, None)
        .unwrap();
    assert_eq!(done.judged.merged, 1);
    live.place
        .store
        .thaw(frozen, &done.judged, &mut live.set, &mut live.shadows)
        .unwrap();
    assert_eq!(live.command("sed -n 3p t; sed -n 18p t; echo again >> t"), "three\nE\n");
    let text = live.read("t");
    assert!(
        text.contains("three\n") && text.contains("E\n") && text.ends_with("again\n"),
        "{text}"
    );
}

#[test]
fn a_mode_that_a_command_sets_is_committed_whatever_was_made_in_the_directory() {
    use std::os::unix::fs::PermissionsExt as _;
    let mut live = Live::new("mkdir d; chmod 755 d");
    let mode = |live: &Live| {
        fs::metadata(live.place.workspace.join("d"))
            .unwrap()
            .permissions()
            .mode()
            & 0o777
    };
    live.command("touch d/agent");
    live.user("touch d/user");
    live.command("chmod 711 d");
    assert_eq!(mode(&live), 0o711);
    live.user("chmod 700 d");
    live.command("touch d/more");
    assert_eq!(mode(&live), 0o700, "the user's stays");
    live.command("touch d/again");
    assert_eq!(mode(&live), 0o700, "also with a later command");
}

#[test]
fn what_was_deleted_after_a_commit_and_not_committed_is_all_that_the_set_still_deletes() {
    let mut live = Live::new("");
    live.command("mkdir -p n/d n/e; touch n/1 n/2 n/d/1 n/d/2 n/e/1");
    live.inside.run("rm n/1 n/d/2; rm -r n/e; echo new > n/new");
    let Live {
        place: _place,
        mut set,
        shadows,
        inside,
    } = live;
    drop(inside);
    set.close().unwrap();
    shadows.remove_committed(&set).unwrap();
    let mut left = Vec::new();
    set.for_each(&mut |change| {
        left.push((change.action, change.path.display().to_string()));
        Ok(())
    })
    .unwrap();
    let expected = [
        (Action::Deleted, "n/1"),
        (Action::Deleted, "n/d/2"),
        (Action::Deleted, "n/e"),
        (Action::Deleted, "n/e/1"),
        (Action::Added, "n/new"),
    ];
    assert_eq!(left, expected.map(|(action, path)| (action, path.to_owned())));
}

#[test]
fn a_file_of_the_user_s_that_is_nearly_all_holes_is_seen_at_once() {
    let mut live = Live::new("");
    live.command("printf 'something that was longer' > f");
    live.user("truncate -s 0 f; truncate -s 1T f; echo end >> f");
    assert_eq!(
        live.command("head -c 4 f | tr '\\0' 0; tail -c 4 f; stat -c %s f"),
        "0000end\n1099511627780\n"
    );
    live.user("echo short > f");
    assert_eq!(live.command("cat f"), "short\n");
}
