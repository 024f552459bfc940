//! Memory: place.

use std::fs;
use std::os::unix::fs::symlink;

use shieling_memory::Memory;

use super::support::{WORKSPACE, memory, printed, run, secrets};

#[tokio::test]
async fn a_folder_beneath_is_read_and_never_changed_and_nothing_outside_of_it_is_seen() {
    let folder = tempfile::tempdir().expect("a folder");
    let outside = tempfile::tempdir().expect("another");
    fs::write(outside.path().join("secret"), "OUTSIDE").expect("written");
    let at = |name: &str| folder.path().join(name);
    fs::create_dir_all(at("src/deep")).expect("made");
    fs::write(at("src/a.txt"), "from the host\n").expect("written");
    fs::write(at(".env"), "TOKEN").expect("written");
    symlink(outside.path().join("secret"), at("leak")).expect("a link");
    symlink(outside.path(), at("out")).expect("a link");
    symlink("src/a.txt", at("link")).expect("a link");
    rustix::fs::mkfifoat(rustix::fs::CWD, at("pipe"), rustix::fs::Mode::RWXU).expect("a pipe");

    let memory = Memory::builder(WORKSPACE)
        .enforcing(secrets())
        .overlay(folder.path())
        .build()
        .expect("a memory");
    assert_eq!(
        printed(&memory, "cat link src/a.txt; ls -A; [ -e pipe ] || echo no pipe").await,
        "from the host\nfrom the host\nleak\nlink\nout\nsrc\nno pipe\n"
    );
    for text in [
        "cat leak",
        "cat out/secret",
        "cat .env",
        "grep -r OUTSIDE .",
        "ls out",
        "cat out/../.env",
    ] {
        let ran = run(&memory, text).await;
        let said = format!("{}{}", ran.stdout.text(), ran.stderr.text());
        assert!(!said.contains("OUTSIDE") && !said.contains("TOKEN"), "{text}: {said}");
    }
    printed(
        &memory,
        "echo changed >> src/a.txt; rm -r src/deep; mkdir new; echo n > new/f; chmod 600 link",
    )
    .await;
    assert_eq!(
        printed(&memory, "cat src/a.txt new/f").await,
        "from the host\nchanged\nn\n"
    );
    assert_eq!(fs::read_to_string(at("src/a.txt")).expect("there"), "from the host\n");
    assert!(at("src/deep").is_dir() && !at("new").exists());

    // A directory is swapped for a link while it is read.
    fs::remove_dir(at("src/deep")).expect("empty");
    fs::rename(at("src"), at("old")).expect("renamed");
    symlink(outside.path(), at("src")).expect("a link");
    fs::write(outside.path().join("b.txt"), "OUTSIDE").expect("written");
    let fork = Memory::builder(WORKSPACE)
        .overlay(folder.path())
        .build()
        .expect("a memory");
    assert_ne!(run(&fork, "cat src/b.txt").await.stdout.text(), "OUTSIDE");
}

#[tokio::test]
async fn the_workspace_is_taken_out_as_tar_and_into_a_folder_and_never_outside_of_it() {
    let memory = memory();
    printed(&memory, "mkdir -p d/e; printf '\\0\\377' > d/bin; echo x > d/e/x; chmod 755 d/e/x; ln -s d/e/x l; ln -s /etc/passwd abs; : > empty").await;
    let archive = memory.export_tar().expect("an archive");
    let mut names = Vec::new();
    for entry in tar::Archive::new(&archive[..]).entries().expect("an archive") {
        let entry = entry.expect("an entry");
        names.push(
            entry
                .path()
                .expect("a path")
                .to_string_lossy()
                .trim_end_matches('/')
                .to_owned(),
        );
    }
    assert_eq!(names, ["abs", "d", "d/bin", "d/e", "d/e/x", "empty", "l"]);

    let folder = tempfile::tempdir().expect("a folder");
    let outside = tempfile::tempdir().expect("another");
    fs::write(folder.path().join("stays"), "s").expect("written");
    fs::write(outside.path().join("x"), "outside").expect("written");
    symlink(outside.path().join("x"), folder.path().join("empty")).expect("a link");
    memory.export_to(folder.path()).expect("taken out");
    let at = |name: &str| folder.path().join(name);
    assert_eq!(fs::read(at("d/bin")).expect("there"), [0, 255]);
    assert_eq!(fs::read(at("l")).expect("there"), b"x\n");
    assert_eq!(
        (
            fs::read(at("empty")).expect("there"),
            fs::read(at("stays")).expect("there")
        ),
        (vec![], b"s".to_vec())
    );
    assert_eq!(fs::read(outside.path().join("x")).expect("there"), b"outside");

    // A directory that is a link is not gone through.
    let trap = tempfile::tempdir().expect("a folder");
    symlink(outside.path(), trap.path().join("d")).expect("a link");
    memory.export_to(trap.path()).expect_err("it would lead out");
    assert!(!outside.path().join("bin").exists());
}
