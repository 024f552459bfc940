//! Modes of new files, and names that are no plain words.

use shieling::environment::Environment as _;
use shieling::process::End;

use super::same::Real;
use super::support::{finished, memory, printed, run, shell};

/// What `umask` and new files are like: the same in a real bash.
const MASKS: &[&str] = &[
    "umask; umask -S; umask -p; umask -pS",
    "umask 077; : > f; mkdir d; stat -c '%a %n' f d; umask",
    "umask u=rwx,g=rx,o=; touch t; echo x | tee e; cp t c; stat -c '%a %n' t e c",
    "umask -S 027; umask -S g+w; umask go-rwx; umask",
    "umask 0; touch f; mkdir d; cat > g <<< x; stat -c '%a %n' f d g",
    "(umask 077; echo x > a; mkdir p); echo y > b; stat -c '%a %n' a b p; umask",
    "(umask 077; (umask 0; : > a); : > b); : > c; stat -c '%a %n' a b c",
    "(umask 077; umask 027; : > a); : > b; stat -c '%a %n' a b",
    "(umask 077; trap 'echo bye' EXIT; : > a); : > b; stat -c '%a %n' a b",
    "(umask 077; trap 'echo bye' EXIT; trap - EXIT; : > a); : > b; stat -c '%a %n' a b",
    "(umask 077; : > a; exit 3); echo $?; : > b; stat -c '%a %n' a b",
    "(umask 077; set -e; : > a; false; echo no); echo $?; : > b; stat -c '%a %n' a b",
    "x=$(umask 077; : > a; umask); : > b; echo $x; stat -c '%a %n' a b",
    "f() { umask 077; : > $1; }; (f a); : > b; f c; : > d; stat -c '%a %n' a b c d",
    "umask 027; for i in 1 2; do : > f$i; done; mkdir -p x/y; cp f1 x; mv f2 x/y; install -d z; stat -c '%a %n' x x/y x/f1 x/y/f2",
    "umask 077; printf x > new; chmod +x new; stat -c %a new",
    "umask 8; echo $?; umask 1777; echo $?; umask q=r; echo $?; umask -x; echo $?; umask",
    "trap 'umask' EXIT; umask 077",
    "umask 077; echo a > f; echo b > f; chmod 666 f; echo c > f; stat -c %a f",
    "umask 077; bash -c 'umask; mkdir d; : > f'; stat -c '%a %n' d f",
    "mkdir -m 700 p; mkdir -pm 711 q/r; stat -c '%a %n' p q q/r",
];

#[tokio::test]
async fn new_files_get_the_modes_that_they_get_in_a_real_bash() {
    let Some(real) = Real::new().await else { return };
    for text in MASKS {
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
async fn a_mask_belongs_to_its_shell_and_one_that_a_subshell_cannot_put_back_is_refused() {
    let memory = memory();
    let mut one = shell(&memory).await;
    let mut other = shell(&memory).await;
    let deadline = std::time::Duration::from_secs(30);
    for (is_one, text, out) in [
        (true, "umask 077", ""),
        (false, "umask; : > b; stat -c %a b", "0022\n644\n"),
        (true, "umask; : > a; stat -c %a a", "0077\n600\n"),
        (true, "(umask 0; : > c); { umask 0; } | cat", ""),
        (true, "umask; : > d; stat -c %a d", "0077\n600\n"),
    ] {
        let shell = if is_one { &mut one } else { &mut other };
        let ran = finished(shell.run(text).await.expect("it runs"), deadline).await;
        assert_eq!((ran.end, ran.stdout.text().as_str()), (End::Exited(0), out), "{text}");
    }
    // One that is broken off in the middle of a subshell.
    let sleeping = one.run("(umask 0; sleep 99)").await.expect("it runs");
    let ran = finished(sleeping, std::time::Duration::from_millis(300)).await;
    assert_eq!(ran.end, End::TimedOut);
    let ran = finished(one.run("umask; : > e; stat -c %a e").await.expect("it runs"), deadline).await;
    assert_eq!(ran.stdout.text(), "0077\n600\n");

    let refused = run(&memory, "trap 'echo end' EXIT; (umask 077; : > f) || exit 5; exit 0").await;
    assert_eq!(refused.stdout.text(), "end\n");
    assert!(refused.stderr.text().contains("a trap on EXIT"), "{refused:?}");
    assert_eq!(memory.name(), "memory");
}

#[tokio::test]
async fn names_can_be_any_text_for_programs_that_work_on_files() {
    let memory = memory();
    for name in [
        "a\nb",
        "tab\there",
        "\u{1b}[31m",
        "👨\u{200d}👩.txt",
        "\u{202e}txt",
        "del\u{7f}",
        "é",
    ] {
        memory.write("name", name.as_bytes()).expect("written");
        let text = "n=$(cat name); rm name; mkdir q; cd q; touch \"$n\"; for f in *; do [ \"$f\" = \"$n\" ] && echo same; done; \
                    echo x | tee \"$n\" > /dev/null; cp \"$n\" c; mv \"$n\" m; mv m \"$n\"; cat \"$n\" c; \
                    [ -f \"$n\" ] && test -s \"$n\" && echo there; mkdir -p \"d$n/e\"; mv \"$n\" \"d$n\"; ls -R | wc -l; \
                    find . -type f | wc -l; rm -r \"d$n\" && ls; cd ..; rm -r q";
        let said = printed(&memory, text).await;
        assert!(
            said.starts_with("same\nx\nx\nthere\n") && said.ends_with("c\n"),
            "{name:?}: {said}"
        );
    }
    memory.write("from\ttools", b"tools\n").expect("written");
    assert_eq!(printed(&memory, "ls -b; cat from*tools").await, "from\\ttools\ntools\n");
    let refused = run(&memory, "wc -l $'from\\ttools'").await;
    assert_ne!(refused.end, End::Exited(0));
    assert!(refused.stderr.text().contains("unsafe character"), "{refused:?}");
    let refused = run(&memory, "echo x > $'a\\nb'").await;
    assert_eq!(refused.end, End::Exited(1));
}
