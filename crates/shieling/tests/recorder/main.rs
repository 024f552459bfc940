//! What readonly lets through is run under a recorder, and must change nothing.
//!
//! The policy says what a script does from its text; strace says what it did. Scripts come from the
//! grammar in `shieling_testkit::scripts` and run in a [`place`] where they can do no harm.
//!
//! How many scripts there are, and which, is for `shieling_testkit::extent` to say. Needs strace,
//! util-linux and user namespaces: without them it is skipped with the reason, and fails where `CI=true`.
#![expect(clippy::disallowed_methods, reason = "the recorder starts strace and reads its log")]

mod place;
mod property;
mod trace;

use place::Place;

/// The place, or the reason why this machine has none.
fn place() -> Option<Place> {
    match Place::new() {
        Ok(place) => Some(place),
        Err(missing) => {
            shieling_testkit::prerequisite::skip(missing);
            None
        }
    }
}

/// What readonly says of a text, in a workspace of which nothing is known.
fn verdict(text: &str) -> shieling::policy::Verdict {
    let facts = shieling::policy::Facts::new("/work".as_ref(), "/work".as_ref());
    shieling::policy::Policy::open()
        .with_readonly()
        .judge_text(text, &facts)
}

/// Without these controls, a recorder that sees nothing would prove everything.
#[test]
fn the_recorder_sees_what_changes_something() {
    let Some(place) = place() else { return };
    for script in [
        "echo x > canary",
        "touch canary",
        "rm canary",
        "rm -f not-there",
        "mkdir dir",
        "cp a.txt out",
        "sed -i s/a/b/ a.txt",
        "sort -o canary a.txt",
        "sort a.txt | sort -ocanary",
        "find . -name canary -delete",
        "uniq a.txt canary",
        "awk 'BEGIN{print > \"canary\"}'",
        "git branch new",
        "git commit --allow-empty -m x",
        "cat <(touch canary)",
        "echo $(rm canary)",
        "true & touch canary",
        "chmod +x a.txt",
        "ln -s a.txt new",
        "truncate -s 0 canary",
        "touch /usr/new",
        "touch /etc/passwd",
        "kill -9 1",
        "sleep 5 & kill $!",
        "exec 3<>/dev/tcp/127.0.0.1/80",
        "setsid sh -c 'touch canary'",
    ] {
        let recorded = place.run(script).expect("the place has proved to record");
        assert!(!recorded.trace.changes.is_empty(), "{script}: {}", recorded.stderr);
    }
}

#[test]
fn the_recorder_is_silent_about_what_only_reads() {
    let Some(place) = place() else { return };
    for script in [
        "cat a.txt | sort | uniq -c",
        "ls -laR . > /dev/null 2>&1",
        "grep -rn a . | head -1",
        "git log --oneline | head -5",
        "git status -sb; git diff HEAD~1; git show HEAD:a.txt; git branch -a",
        "find . -type f -exec cat {} +",
        "cat <<END\nhere\nEND",
        "cat <(ls) <<< word",
        "x=$(wc -l < a.txt); echo $((x + 1))",
        "for f in *.txt; do head -1 \"$f\"; done",
        "ps aux; id; uname -a; date; df -h",
        "timeout 5 cat a.txt; nice cat a.txt; env A=1 cat a.txt; ls | xargs cat",
        "tar -tf x.tar; zcat x.gz; gzip -l x.gz",
    ] {
        let recorded = place.run(script).expect("the place has proved to record");
        assert_eq!(
            recorded.trace.changes,
            Vec::<String>::new(),
            "{script}: {}",
            recorded.stderr
        );
        assert!(recorded.trace.complete, "{script}: {}", recorded.stderr);
    }
}

#[test]
fn a_script_that_never_ends_is_ended_and_recorded() {
    let Some(place) = place() else { return };
    let recorded = place
        .run("touch canary; while :; do :; done")
        .expect("the place has proved to record");
    assert!(!recorded.trace.changes.is_empty());
}
