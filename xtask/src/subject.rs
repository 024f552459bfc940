//! What is measured and fuzzed: the only place in xtask that calls the library.
//!
//! A subject that does not exist yet is absent here, and its rows say so; none is imitated.

mod place;

use std::sync::Arc;

use shieling::Shieling;
use shieling::approval::Mode;
use shieling::environment::{Local, Shell};
use shieling::policy::{Decision, Facts, Policy, RuleFile};
use shieling::request::Command;

pub(crate) use place::{Caller, Library, Place};

/// Judges one text under one policy.
pub(crate) type Judge = Box<dyn Fn(&str) -> Decision + Send + Sync>;

/// Runs `true` once through the library, from request to outcome.
pub(crate) type OneShot = Box<dyn FnMut() -> anyhow::Result<()>>;

/// Every policy that is measured and fuzzed, by name: readonly, an allow list, a deny list, an ignore
/// list and a policy file of rules.
pub(crate) fn judges() -> Vec<(&'static str, Judge)> {
    const RULES: &str = r#"
[[rule]]
id = "no-force-push"
decision = "deny"
command = ["git push --force", "rm -rf"]

[[rule]]
id = "keys"
decision = "ask"
reads = ["*.pem", "secrets/"]
"#;
    let rules = RuleFile::parse("bench.toml", RULES).expect("the rules can be read");
    let policies = [
        ("readonly", Policy::open().with_readonly()),
        (
            "allow",
            Policy::open()
                .with_allow(&["git log", "grep", "ls", "cat"])
                .expect("the entries name commands"),
        ),
        (
            "deny",
            Policy::open()
                .with_deny(&["rm", "git push", "curl"])
                .expect("the entries name commands"),
        ),
        (
            "ignore",
            Policy::open()
                .with_ignore(&[".env", "*.key", "secrets/"])
                .expect("the patterns can be read"),
        ),
        ("rules", Policy::open().with_rules(rules)),
    ];
    policies
        .into_iter()
        .map(|(name, policy)| {
            let facts = Facts::new("/work/repository".as_ref(), "/work/repository".as_ref());
            let judge: Judge = Box::new(move |text| {
                let verdict = policy.judge_text(text, &facts);
                // The library answers "ask" where its reading panics; here that is what is looked for.
                assert!(
                    !verdict
                        .reasons
                        .iter()
                        .any(|reason| reason.because.contains("the parser failed")),
                    "reading it panicked"
                );
                verdict.decision
            });
            (name, judge)
        })
        .collect()
}

/// A library call that runs `true` in `local`: judged, approved by the policy, run, and told.
pub(crate) fn one_shot() -> Option<OneShot> {
    let shell = Shell::find(None).ok()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .ok()?;
    let shieling = Shieling::builder(Arc::new(Local::new(shell)), Policy::open(), "/")
        .approval(Mode::OnAsk)
        .build()
        .ok()?;
    Some(Box::new(move || {
        let command = Command::new("true", "/")?;
        let outcome = runtime.block_on(shieling.run(command, None));
        anyhow::ensure!(outcome.exit_code == Some(0), "it did not run: {outcome:?}");
        Ok(())
    }))
}
