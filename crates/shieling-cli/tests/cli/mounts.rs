//! Staged workspaces over what is mounted: nested mounts, file systems in memory, and those without attributes. Each is staged
//! as any other, or refused by name before anything runs. In mount namespaces of the tests' own, which only root can make.

use std::process::{Command, Output};

use shieling_testkit::prerequisite;

use crate::afterwards::shieling;
use crate::attacks::Place;

const MODES: [&str; 3] = ["commit", "review", "discard"];

/// Moves all of a place onto this kind of file system.
fn onto(kind: &str) -> String {
    format!(
        "kept=$(mktemp -d); cp -a \"$T/.\" \"$kept\"; mount -t {kind} {kind} \"$T\"; cp -a \"$kept/.\" \"$T\"; rm -rf \"$kept\"; \
         chown --reference=\"$T/work\" \"$T\"; chmod 755 \"$T\""
    )
}

/// Runs a command of an agent's, where this script has mounted something. `then` is run after it, in the workspace.
fn among(place: &Place, mode: &str, mount: &str, command: &str, then: &str) -> Output {
    let mut inner = shieling(place, "exec", mode);
    inner.args(["--", command]);
    let script = format!("set -e; {mount}; cd \"$T/work\"; set +e; \"$@\"; code=$?; {then}; exit $code");
    let mut outer = Command::new("unshare");
    outer
        .args(["--mount", "--propagation", "private", "sh", "-c", &script, "sh"])
        .arg(inner.get_program())
        .args(inner.get_args())
        .env_clear()
        .env("T", place.path());
    for (name, value) in inner.get_envs() {
        if let Some(value) = value {
            outer.env(name, value);
        }
    }
    outer.output().expect("unshare is there")
}

fn said(output: &Output) -> String {
    let [stdout, stderr] = [&output.stdout, &output.stderr].map(|stream| String::from_utf8_lossy(stream).into_owned());
    format!("{}\n{stdout}\n{stderr}", output.status)
}

fn in_each_mode(judge: impl Fn(&Place, &str)) {
    // Mounting needs root, and each is tried as an ordinary user as well.
    if !rustix::process::geteuid().is_root() || !prerequisite::has(&["unshare", "setpriv"]) {
        return;
    }
    for make in [Place::new, Place::of_user] {
        for mode in MODES {
            judge(&make(), mode);
        }
    }
}

/// That a command is refused, with these words, and has not run.
fn is_refused(place: &Place, mode: &str, mount: &str, words: &[&str]) {
    let output = among(
        place,
        mode,
        mount,
        "echo ran; touch made",
        "test ! -e made || echo made",
    );
    let said = said(&output);
    assert!(
        !output.status.success() && !said.contains("ran\n") && !said.contains("made\n"),
        "{mode}: {said}"
    );
    for word in words {
        assert!(said.contains(word), "{mode}: `{word}` is not in: {said}");
    }
}

#[test]
fn what_is_mounted_in_a_workspace_refuses_to_stage_it_and_is_named() {
    in_each_mode(|place, mode| {
        let mount = "mkdir 'nested mount'; mount -t tmpfs tmpfs 'nested mount'";
        let mount = format!("cd \"$T/work\"; {mount}");
        is_refused(
            place,
            mode,
            &mount,
            &["nested mount` is mounted in the workspace", "--changes direct"],
        );
        let mount = "cd \"$T/work\"; mount --bind src nested";
        is_refused(
            place,
            mode,
            mount,
            &["work/nested` is mounted in the workspace", &format!("--changes {mode}")],
        );
    });
}

#[test]
fn a_workspace_in_another_mount_than_the_state_directory_is_refused_by_name() {
    in_each_mode(|place, mode| {
        let mount = "kept=$(mktemp -d); cp -a \"$T/work/.\" \"$kept\"; mount -t tmpfs tmpfs \"$T/work\"; cp -a \"$kept/.\" \
                     \"$T/work\"; rm -rf \"$kept\"; chown --reference=\"$T/home\" \"$T/work\"";
        is_refused(place, mode, mount, &["are not in the same mount"]);
    });
}

#[test]
fn a_file_system_without_attributes_is_refused_by_name() {
    in_each_mode(|place, mode| {
        is_refused(place, mode, &onto("ramfs"), &["attributes"]);
    });
}

#[test]
fn a_workspace_in_memory_is_staged_as_any_other() {
    in_each_mode(|place, mode| {
        // What a layer needs attributes for: a directory that is removed and made again.
        let command = "rm -r src; mkdir src; echo new >src/new; rm a; echo more >>lib/a; ln -s src link";
        let then =
            "echo \"after: $(ls src | tr '\\n' ' ')$(test -e a || echo gone) $(tail -1 lib/a) $(readlink link)\"";
        let output = among(place, mode, &onto("tmpfs"), command, then);
        let said = said(&output);
        let expected = match mode {
            "commit" => "after: new gone more src",
            _ => "after: deep  3 ",
        };
        assert!(output.status.success() && said.contains(expected), "{mode}: {said}");
    });
}
