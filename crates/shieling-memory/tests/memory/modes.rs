//! Modes of new files, and names that are no plain words.

use shieling::process::End;

use super::same::Real;
use super::support::{memory, printed, run};

/// What new files are like: the same in a real bash.
const MODES: &[&str] = &[
    "umask; umask -S; umask -p; : > f; mkdir d; touch t; stat -c '%a %n' f d t",
    "printf x > new; chmod +x new; stat -c %a new; chmod 600 new; echo x > new; stat -c %a new",
    "mkdir -m 700 p; mkdir -pm 711 q/r; stat -c '%a %n' p q q/r",
    "echo x > a; chmod 666 a; cp a b; cp -p a c; mkdir -p x/y; cp a x; mv a x/y; stat -c '%a %n' x x/y x/a x/y/a b c",
    "install -d z; echo x | tee t > /dev/null; stat -c '%a %n' z t",
];

#[tokio::test]
async fn new_files_get_the_modes_that_they_get_in_a_real_bash() {
    let Some(real) = Real::new().await else { return };
    for text in MODES {
        let (theirs, _) = real.run(text).await;
        let ours = run(&memory(), text).await;
        assert_eq!(
            (ours.end, ours.stdout.text()),
            (theirs.end, theirs.stdout.text()),
            "{text}\n{}\n{}",
            ours.stderr.text(),
            theirs.stderr.text()
        );
    }
}

#[tokio::test]
async fn another_mask_is_refused_in_words() {
    for text in [
        "umask 077",
        "umask 077; echo secret > f",
        "(umask u=rwx,go=; : > f)",
        "umask -S 027",
    ] {
        let memory = memory();
        let ran = run(&memory, &format!("set -e; {text}")).await;
        assert!(matches!(ran.end, End::Exited(code) if code != 0), "{text}: {ran:?}");
        assert!(ran.stderr.text().contains("the mask 0022 only"), "{text}: {ran:?}");
        assert!(memory.read("f").is_err(), "{text}");
    }
}

#[tokio::test]
async fn names_that_are_no_plain_words_are_for_the_file_tools_and_refused_to_commands() {
    let memory = memory();
    for name in ["a\nb", "tab\there", "\u{1b}[31m", "\u{202e}txt", "del\u{7f}"] {
        memory.write(name, b"tools\n").expect("written");
        assert_eq!(memory.read(name).expect("there"), b"tools\n");
        memory.write("name", name.as_bytes()).expect("written");
        for command in ["cat \"$n\"", "echo x > \"$n\"", "wc -l \"$n\""] {
            let ran = run(&memory, &format!("n=$(cat name); {command}")).await;
            assert!(
                matches!(ran.end, End::Exited(code) if code != 0),
                "{name:?} {command}: {ran:?}"
            );
            assert_eq!(ran.stdout.text(), "", "{name:?} {command}");
        }
        assert_eq!(memory.read(name).expect("there"), b"tools\n");
    }
    assert_eq!(printed(&memory, "echo é > é; cat é").await, "é\n");
}
