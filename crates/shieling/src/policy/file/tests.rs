use std::collections::HashSet;
use std::path::PathBuf;

use super::*;
use crate::policy::{Decision, RuleFile};
use crate::request::{Access, Operation};

fn touching(access: Access, path: &str) -> FileOp {
    let operation = if access.changes() {
        Operation::WriteFile
    } else {
        Operation::ReadFile
    };
    FileOp::new(operation, "/work", &[], vec![(access, PathBuf::from(path))])
}

fn rules(text: &str) -> Policy {
    Policy::open().with_rules(RuleFile::parse("policy.toml", text).expect("rules"))
}

#[test]
fn each_meaning_says_of_reading_and_of_changing_what_the_table_says() {
    let readonly = || Policy::open().with_readonly();
    let allow = || Policy::open().with_allow(&["ls"]).expect("an entry");
    let deny = || Policy::open().with_deny(&["rm"]).expect("an entry");
    let ignore = || Policy::open().with_ignore(&[".env", "keys/"]).expect("patterns");
    let cases = [
        (Policy::open(), "/work/a", Allow, Allow),
        (readonly(), "/work/a", Allow, Deny),
        (readonly(), "/etc/passwd", Allow, Deny),
        (allow(), "/work/a", Allow, Ask),
        (deny(), "/work/a", Allow, Allow),
        (ignore(), "/work/a", Allow, Allow),
        (ignore(), "/work/.env", Deny, Deny),
        (ignore(), "/work/deep/.ENV", Deny, Deny),
        (ignore(), "/work/keys/a", Deny, Deny),
        (ignore(), "/work/keys", Allow, Deny), // as long as nobody knows whether it is the directory
        (ignore(), "/elsewhere/.env", Allow, Allow),
        (ignore(), "/workspace/.env", Allow, Allow),
        (allow().with_readonly(), "/work/a", Allow, Deny),
    ];
    for (policy, path, reading, changing) in cases {
        for (access, expected) in [
            (Access::Read, reading),
            (Access::Write, changing),
            (Access::Remove, changing),
        ] {
            let verdict = policy.judge_file(&touching(access, path));
            assert_eq!(verdict.decision, expected, "{access:?} {path}: {:?}", verdict.reasons);
        }
    }
}

#[test]
fn a_pattern_of_directories_hides_no_file_of_that_name() {
    let policy = Policy::open()
        .with_ignore(&["target/", "both", "!both/", "/top/"])
        .expect("patterns");
    // As a file, as a directory, and with neither known.
    let cases = [
        ("target", Allow, Deny, Deny),
        ("deep/Target", Allow, Deny, Deny),
        ("target/file", Deny, Deny, Deny),
        ("target/a/b", Deny, Deny, Deny),
        ("targets", Allow, Allow, Allow),
        ("top", Allow, Deny, Deny),
        ("deep/top", Allow, Allow, Allow),
    ];
    for (name, file, directory, unknown) in cases {
        for access in [Access::Write, Access::Remove] {
            let path = Path::new("/work").join(name);
            let op = touching(access, path.to_str().expect("a text"));
            let decided = |op: &FileOp| policy.judge_file(op).decision;
            assert_eq!(decided(&op), unknown, "{access:?} {name}");
            let known = op.clone().with_directories(&HashSet::new());
            assert_eq!(decided(&known), file, "{access:?} {name}: a file");
            let directories = op.clone().with_directories(&HashSet::from([path]));
            assert_eq!(decided(&directories), directory, "{access:?} {name}: a directory");
            use crate::request::Request as _;
            assert!(known.digest() != directories.digest() && known.digest() != op.digest());
        }
    }
}

#[test]
fn rules_are_about_what_is_read_and_what_is_changed_and_default_about_changes() {
    let text = r#"
        default = "ask"
        [[rule]]
        id = "drafts"
        decision = "allow"
        writes = "drafts/**"
        [[rule]]
        decision = "deny"
        writes = ["*.lock", "drafts/final"]
        because = "a tool writes it"
        instead = "run the tool"
        [[rule]]
        decision = "ask"
        reads = "customers/"
    "#;
    let policy = rules(text);
    let cases = [
        (Access::Write, "/work/a", Decision::Ask),
        (Access::Read, "/work/a", Decision::Allow),
        (Access::Write, "/work/drafts/a", Decision::Allow),
        (Access::Write, "/work/drafts/final", Decision::Deny),
        (Access::Remove, "/work/sub/Cargo.LOCK", Decision::Deny),
        (Access::Read, "/work/Cargo.lock", Decision::Allow),
        (Access::Read, "/work/customers/list", Decision::Ask),
        (Access::Read, "/customers/list", Decision::Allow),
        (Access::Write, "/tmp/x", Decision::Ask),
    ];
    for (access, path, expected) in cases {
        let verdict = policy.judge_file(&touching(access, path));
        assert_eq!(verdict.decision, expected, "{access:?} {path}: {:?}", verdict.reasons);
    }
    let verdict = policy.judge_file(&touching(Access::Write, "/work/Cargo.lock"));
    let reason = &verdict.reasons[0];
    assert_eq!(
        (
            reason.rule.as_str(),
            reason.object.as_str(),
            reason.because.as_str(),
            reason.instead.as_deref()
        ),
        (
            "policy.toml:7 (rule 2)",
            "Cargo.lock",
            "a tool writes it",
            Some("run the tool")
        )
    );
    assert!(policy.has_rules_of_reading() && !Policy::open().with_readonly().has_rules_of_reading());
}

#[test]
fn a_verdict_names_each_path_once_and_where_the_text_has_it() {
    let paths = vec![
        (Access::Remove, "/work/a".into()),
        (Access::Write, "/work/b\u{1b}".into()),
    ];
    let op = FileOp::new(Operation::MoveFile, "/work", &[], paths);
    let verdict = Policy::open().with_readonly().judge_file(&op);
    let seen: Vec<_> = verdict
        .effects
        .iter()
        .map(|effect| {
            (
                effect.kind,
                effect.object.as_str(),
                op.text().get(effect.span.start..effect.span.end),
            )
        })
        .collect();
    let (a, b) = ("a", r#""b\u{1b}""#);
    assert_eq!(
        seen,
        [(EffectKind::Writes, a, Some(a)), (EffectKind::Writes, b, Some(b))]
    );
    assert_eq!(verdict.reasons.len(), 2);
    assert!(verdict.commands.is_empty());
}
