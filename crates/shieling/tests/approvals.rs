//! Approvals: what was said yes to is what starts, once, or as often as was said.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use shieling::approval::{
    Answer, ApprovalContext, Approvals, Approved, Approver, ApproverFn, Basis, GrantLimits, Mode, NoApprover, Question,
    Refused, Scope,
};
use shieling::policy::{Decision, Facts, Policy, Verdict};
use shieling::request::{Command, Digest};
use shieling::units::ByteCount;
use shieling_testkit::{FakeClock, ScriptedApprover};

type Files = Vec<(PathBuf, Digest)>;

/// One case, of which a test changes what it is about.
#[derive(Clone)]
struct Attempt {
    text: String,
    cwd: &'static str,
    variables: Vec<(&'static str, &'static str)>,
    environment: &'static str,
    policy: Policy,
    session: Option<&'static str>,
    files: Files,
}

fn attempt(text: &str) -> Attempt {
    Attempt {
        text: text.to_owned(),
        cwd: "/work",
        variables: vec![("PATH", "/usr/bin")],
        environment: "local",
        policy: Policy::open().with_readonly(),
        session: None,
        files: Files::new(),
    }
}

impl Attempt {
    fn command(&self) -> Command {
        let variables = self
            .variables
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        Command::new(&self.text, self.cwd)
            .expect("a command")
            .with_variables(variables)
    }

    fn verdict(&self) -> Verdict {
        self.policy
            .judge(&self.command(), &Facts::new("/work".as_ref(), self.cwd.as_ref()))
    }

    async fn make(&self, approvals: &Approvals) -> Result<Approved<Command>, Refused> {
        let verdict = self.verdict();
        let (policy, environment, session) = (self.policy.digest(), self.environment, self.session);
        let case = ApprovalContext {
            verdict: &verdict,
            policy,
            environment,
            session,
        };
        approvals.approve(self.command(), &case, |_| self.files.clone()).await
    }

    /// Whether it starts on a grant, without anybody being asked.
    async fn is_covered(&self, approvals: &Approvals) -> bool {
        matches!(self.make(approvals).await, Ok(approved) if approved.basis() == Basis::Grant)
    }
}

fn approvals(mode: Mode, approver: Arc<dyn Approver>) -> (Approvals, Arc<FakeClock>) {
    let clock = FakeClock::new();
    (Approvals::new(mode, approver, clock.clone()), clock)
}

/// Where one yes was given to this attempt and nobody is there any more.
async fn after_yes(to: &Attempt, scope: Scope) -> (Approvals, Arc<FakeClock>) {
    let (approvals, clock) = approvals(Mode::Always, ScriptedApprover::new([Answer::Yes(scope)]));
    let approved = to.make(&approvals).await.expect("the answer is yes");
    assert_eq!(approved.basis(), Basis::Answer);
    (approvals, clock)
}

fn limits(uses: u32, seconds: u64) -> GrantLimits {
    GrantLimits {
        uses: NonZeroU32::new(uses).expect("more than 0"),
        lasts: Duration::from_secs(seconds),
    }
}

fn prefix(words: &str) -> Scope {
    Scope::Prefix(words.split(' ').map(str::to_owned).collect(), GrantLimits::default())
}

#[tokio::test]
async fn the_mode_says_which_verdicts_are_asked_about_and_a_denied_one_never_is() {
    use Decision::{Allow, Ask, Deny};
    let cases = [
        (Mode::Always, Allow, 1, Ok(Basis::Answer)),
        (Mode::Always, Ask, 1, Ok(Basis::Answer)),
        (Mode::Always, Deny, 0, Err(Refused::Denied)),
        (Mode::OnAsk, Allow, 0, Ok(Basis::Policy)),
        (Mode::OnAsk, Ask, 1, Ok(Basis::Answer)),
        (Mode::OnAsk, Deny, 0, Err(Refused::Denied)),
        (Mode::Never, Allow, 0, Ok(Basis::Policy)),
        (Mode::Never, Ask, 0, Err(Refused::NobodyToAsk)),
        (Mode::Never, Deny, 0, Err(Refused::Denied)),
    ];
    for (mode, decision, questions, expected) in cases {
        let text = match decision {
            Allow => "ls",
            Ask => "make",
            Deny => "rm x",
        };
        assert_eq!(attempt(text).verdict().decision, decision, "{text}");
        let approver = ScriptedApprover::new([Answer::Yes(Scope::Once)]);
        let (approvals, _) = approvals(mode, approver.clone());
        let answer = attempt(text).make(&approvals).await;
        assert_eq!(
            answer.map(|approved| approved.basis()),
            expected,
            "{mode:?} {decision:?}"
        );
        assert_eq!(approver.asked().len(), questions, "{mode:?} {decision:?}");
    }
}

#[tokio::test]
async fn a_question_tells_all_that_a_yes_is_bound_to() {
    let approver = ScriptedApprover::new([]);
    let (approvals, _) = approvals(Mode::OnAsk, approver.clone());
    let make = Attempt {
        session: Some("main"),
        files: vec![("/work/Makefile".into(), Digest::of(b"all:"))],
        ..attempt("make")
    };
    assert_eq!(make.make(&approvals).await.map(drop), Err(Refused::Unanswered));
    let [question]: [Question; 1] = approver.asked().try_into().expect("one question");
    assert_eq!(question.text, "make");
    assert_eq!(question.cwd, PathBuf::from("/work"));
    assert_eq!(question.variables, ["PATH"], "names, not values");
    assert_eq!(question.environment, "local");
    assert_eq!(question.session.as_deref(), Some("main"));
    assert_eq!(question.verdict, make.verdict());
    assert_eq!(question.policy_digest, make.policy.digest());
    assert_eq!(question.command_digest, make.command().digest());
    assert_eq!((question.files, question.changed), (make.files, vec![]));
}

#[tokio::test]
async fn a_no_is_passed_on_with_its_words_and_nobody_is_no_yes() {
    let answers = [Answer::No("use the staging database".to_owned()), Answer::Nobody];
    let (approvals, _) = approvals(Mode::OnAsk, ScriptedApprover::new(answers));
    let refused = attempt("make").make(&approvals).await.expect_err("no");
    assert_eq!(refused.to_string(), "the approver said no: use the staging database");
    assert_eq!(
        attempt("make").make(&approvals).await.map(drop),
        Err(Refused::Unanswered)
    );
}

#[tokio::test]
async fn what_an_approver_cannot_show_is_no_no_and_is_not_kept_for_later() {
    let most = ByteCount::kib(8);
    let answers = [Answer::TooLong { most }, Answer::Yes(Scope::Once)];
    let (approvals, _) = approvals(Mode::OnAsk, ScriptedApprover::new(answers));
    let refused = attempt("make").make(&approvals).await.expect_err("nobody was asked");
    assert_eq!(refused, Refused::TooLong { most });
    assert_eq!(
        refused.to_string(),
        "it is too long to be shown whole (more than 8 KiB), and nobody is asked about what they cannot see"
    );
    assert!(attempt("make").make(&approvals).await.is_ok());
}

#[tokio::test]
async fn an_approver_who_never_answers_is_not_waited_for_for_ever() {
    struct Silent;
    impl Approver for Silent {
        fn ask<'a>(&'a self, _: &'a Question) -> shieling::approval::AnswerFuture<'a> {
            Box::pin(std::future::pending())
        }
    }
    let approvals = approvals(Mode::OnAsk, Arc::new(Silent))
        .0
        .with_timeout(Duration::from_millis(10));
    assert_eq!(
        attempt("make").make(&approvals).await.map(drop),
        Err(Refused::Unanswered)
    );
}

#[tokio::test]
async fn a_yes_without_more_is_for_one_start() {
    let (approvals, _) = after_yes(&attempt("make"), Scope::Once).await;
    assert!(!attempt("make").is_covered(&approvals).await);
}

#[tokio::test]
async fn an_exact_grant_covers_the_same_command_and_none_that_differs_in_anything() {
    let make = Attempt {
        files: vec![("/work/Makefile".into(), Digest::of(b"1"))],
        ..attempt("make")
    };
    let (approvals, _) = after_yes(&make, Scope::Exact(GrantLimits::default())).await;
    let others = [
        (
            "text",
            Attempt {
                text: "make ".to_owned(),
                ..make.clone()
            },
        ),
        (
            "directory",
            Attempt {
                cwd: "/work/sub",
                ..make.clone()
            },
        ),
        (
            "a variable's value",
            Attempt {
                variables: vec![("PATH", "/work")],
                ..make.clone()
            },
        ),
        (
            "another variable",
            Attempt {
                variables: vec![("PATH", "/usr/bin"), ("X", "")],
                ..make.clone()
            },
        ),
        (
            "environment",
            Attempt {
                environment: "sandbox",
                ..make.clone()
            },
        ),
        (
            "policy",
            Attempt {
                policy: Policy::open(),
                ..make.clone()
            },
        ),
        (
            "a file's content",
            Attempt {
                files: vec![("/work/Makefile".into(), Digest::of(b"2"))],
                ..make.clone()
            },
        ),
        (
            "a file more",
            Attempt {
                files: [make.files.clone(), vec![("/x".into(), Digest::of(b""))]].concat(),
                ..make.clone()
            },
        ),
        (
            "a file less",
            Attempt {
                files: vec![],
                ..make.clone()
            },
        ),
    ];
    for (what, other) in others {
        assert!(!other.is_covered(&approvals).await, "{what}");
    }
    assert!(make.is_covered(&approvals).await);
    assert!(
        Attempt {
            session: Some("other"),
            ..make
        }
        .is_covered(&approvals)
        .await,
        "the session is not part of it"
    );
}

#[tokio::test]
async fn a_grant_ends_after_its_uses_and_after_its_time() {
    let make = attempt("make");
    let (approvals, clock) = after_yes(&make, Scope::Exact(limits(3, 60))).await;
    assert!(make.is_covered(&approvals).await, "the second of three");
    clock.advance(Duration::from_millis(59_999));
    assert!(make.is_covered(&approvals).await, "the third, just in time");
    assert!(!make.is_covered(&approvals).await, "used up");

    let (approvals, clock) = after_yes(&make, Scope::Exact(limits(3, 60))).await;
    clock.advance(Duration::from_secs(60));
    assert!(!make.is_covered(&approvals).await, "too late");

    let (approvals, clock) = after_yes(
        &make,
        Scope::Exact(GrantLimits {
            lasts: Duration::MAX,
            ..limits(3, 1)
        }),
    )
    .await;
    clock.advance(Duration::from_secs(365 * 86_400));
    assert!(make.is_covered(&approvals).await, "a time beyond the clock is no panic");
}

#[tokio::test]
async fn a_prefix_covers_commands_that_begin_with_it_and_nothing_that_hides_behind_it() {
    let cases = [
        ("cargo test", true),
        ("cargo test --lib 'a b'", true),
        ("cd sub && cargo test", false),
        ("cargo test && cargo test --doc 2>&1", true),
        ("cargo build", false),
        ("cargo", false),
        ("cargo testing", false),
        ("cargo -q test", false),
        ("cargo test > out", false),
        ("cargo test | tee out", false),
        ("cargo test; rm x", false),
        ("cargo test $(rm x)", false),
        ("PATH=. cargo test", false),
        ("for PATH in .; do cargo test; done", false),
        ("timeout 5 cargo test", false),
        ("./cargo test", false),
        ("cargo() { :; }; cargo test", false),
    ];
    for (text, expected) in cases {
        let (approvals, _) = after_yes(&attempt("cargo test --all"), prefix("cargo test")).await;
        assert_eq!(
            attempt(text).is_covered(&approvals).await,
            expected,
            "{text}: {:?}",
            attempt(text).verdict()
        );
    }
}

#[tokio::test]
async fn a_prefix_does_not_cover_a_reason_that_nobody_has_read() {
    let policy = Policy::open().with_ignore(&[".env", "*.key"]).expect("patterns");
    let base = |text: &str| Attempt {
        policy: policy.clone(),
        ..attempt(text)
    };
    let asked = base("cat .e*");
    assert_eq!(asked.verdict().decision, Decision::Ask, "{:?}", asked.verdict());
    let (approvals, _) = after_yes(&base("cat a"), prefix("cat")).await;
    assert!(base("cat b").is_covered(&approvals).await);
    assert!(!asked.is_covered(&approvals).await, "another rule");
    let (approvals, _) = after_yes(&asked, prefix("cat")).await;
    assert!(base("cat b .e*").is_covered(&approvals).await, "the same reason again");
    assert!(
        !base("cat *.ke?").is_covered(&approvals).await,
        "the same rule about another object"
    );
}

#[tokio::test]
async fn a_prefix_holds_in_its_place_and_for_the_files_that_were_seen() {
    let script = |content: &str| vec![("/work/x.sh".into(), Digest::of(content.as_bytes()))];
    let first = Attempt {
        files: script("1"),
        ..attempt("./x.sh one")
    };
    let second = Attempt {
        text: "./x.sh two".to_owned(),
        ..first.clone()
    };
    let (approvals, _) = after_yes(&first, prefix("./x.sh")).await;
    assert!(second.is_covered(&approvals).await);
    for (what, other) in [
        (
            "changed file",
            Attempt {
                files: script("2"),
                ..second.clone()
            },
        ),
        (
            "directory",
            Attempt {
                cwd: "/work/sub",
                ..second.clone()
            },
        ),
        (
            "variables",
            Attempt {
                variables: vec![],
                ..second.clone()
            },
        ),
        (
            "environment",
            Attempt {
                environment: "sandbox",
                ..second.clone()
            },
        ),
        (
            "policy",
            Attempt {
                policy: Policy::open(),
                ..second.clone()
            },
        ),
    ] {
        assert!(!other.is_covered(&approvals).await, "{what}");
    }
}

#[tokio::test]
async fn a_prefix_that_does_not_fit_its_own_question_is_a_yes_for_one_start() {
    for words in ["cargo", "mak", "make all", "m*", "$x"] {
        let (approvals, _) = after_yes(&attempt("make"), prefix(words)).await;
        assert!(!attempt("make").is_covered(&approvals).await, "{words}");
    }
    let none = Scope::Prefix(Vec::new(), GrantLimits::default());
    let (approvals, _) = after_yes(&attempt("make"), none).await;
    assert!(!attempt("make").is_covered(&approvals).await);
}

#[tokio::test]
async fn a_session_grant_covers_the_program_and_the_rule_that_were_shown_and_nothing_else() {
    let script = |content: &str| vec![("/work/x.sh".into(), Digest::of(content.as_bytes()))];
    let shown = Attempt {
        session: Some("main"),
        files: script("1"),
        policy: Policy::open().with_readonly().with_ignore(&[".env"]).expect("patterns"),
        ..attempt("cat a && make all")
    };
    let text = |text: &str| Attempt {
        text: text.to_owned(),
        ..shown.clone()
    };
    let (approvals, _) = after_yes(&shown, Scope::Session(GrantLimits::default())).await;
    for covered in ["make", "make other", "cat b; make -C sub", "cat c"] {
        assert!(text(covered).is_covered(&approvals).await, "{covered}");
    }
    for (what, other) in [
        ("another program", text("python3 x.py")),
        ("an extra program", text("make; python3 x.py")),
        ("an extra program in a pipe", text("make | sh")),
        ("an extra program in a substitution", text("make $(python3 x.py)")),
        ("the program at another place", text("./make")),
        ("a program by another", text("timeout 5 make")),
        ("a function of that name", text("make() { python3 x.py; }; make")),
        ("a redirection", text("make > ~/.bashrc")),
        ("a variable before it", text("PATH=. make")),
        ("another rule about the same program", text("cat .e*")),
        (
            "another session",
            Attempt {
                session: Some("other"),
                ..text("make")
            },
        ),
        (
            "no session",
            Attempt {
                session: None,
                ..text("make")
            },
        ),
        (
            "another directory",
            Attempt {
                cwd: "/work/sub",
                ..text("make")
            },
        ),
        (
            "other variables",
            Attempt {
                variables: vec![("PATH", "/work/bin")],
                ..text("make")
            },
        ),
        (
            "another environment",
            Attempt {
                environment: "sandbox",
                ..text("make")
            },
        ),
        (
            "another policy",
            Attempt {
                policy: Policy::open(),
                ..text("make")
            },
        ),
        (
            "a script that has changed",
            Attempt {
                files: script("2"),
                ..text("make")
            },
        ),
    ] {
        assert!(!other.is_covered(&approvals).await, "{what}");
    }
    assert_eq!(text("rm x").make(&approvals).await.map(drop), Err(Refused::Denied));
    // What bash keeps of its own about where it stands is no other place.
    let told = vec![
        ("PATH", "/usr/bin"),
        ("PWD", "/work"),
        ("OLDPWD", "/work/sub"),
        ("SHLVL", "1"),
    ];
    assert!(
        Attempt {
            variables: told,
            ..text("make")
        }
        .is_covered(&approvals)
        .await
    );
}

#[tokio::test]
async fn a_session_grant_that_can_be_bound_to_no_program_is_a_yes_for_one_start() {
    for shown in ["make $X", "$MAKE all", "make > out", "for x in a; do make; done", "X=1"] {
        let shown = Attempt {
            session: Some("main"),
            policy: Policy::open(),
            ..attempt(shown)
        };
        let (approvals, _) = after_yes(&shown, Scope::Session(GrantLimits::default())).await;
        assert!(!shown.is_covered(&approvals).await, "{:?}", shown.text);
    }
}

#[tokio::test]
async fn a_file_that_changes_between_the_yes_and_the_start_is_asked_about_again() {
    let looks = AtomicUsize::new(0);
    // As it was, changed while the question was open, and then as it stays.
    let files = |_: &Command| -> Files {
        let look = looks.fetch_add(1, Ordering::Relaxed).min(1);
        vec![("/work/x.sh".into(), Digest::of(&[u8::try_from(look).expect("0 or 1")]))]
    };
    let approver = ScriptedApprover::new([Answer::Yes(Scope::Once), Answer::Yes(Scope::Once)]);
    let (approvals, _) = approvals(Mode::OnAsk, approver.clone());
    let bash = attempt("bash x.sh");
    let verdict = bash.verdict();
    let case = ApprovalContext {
        verdict: &verdict,
        policy: bash.policy.digest(),
        environment: "local",
        session: None,
    };
    let approved = approvals
        .approve(bash.command(), &case, files)
        .await
        .expect("the second yes holds");
    assert_eq!(approved.files()[0].1, Digest::of(&[1]));
    let asked = approver.asked();
    assert_eq!(asked.len(), 2);
    assert_eq!(asked[0].changed, Vec::<PathBuf>::new());
    assert_eq!(asked[1].changed, [PathBuf::from("/work/x.sh")]);
    assert_eq!(asked[1].files[0].1, Digest::of(&[1]));
}

#[tokio::test]
async fn a_no_to_the_changed_file_is_a_no() {
    let looks = AtomicUsize::new(0);
    let files = |_: &Command| {
        vec![(
            "/x".into(),
            Digest::of(&looks.fetch_add(1, Ordering::Relaxed).to_le_bytes()),
        )]
    };
    let answers = [
        Answer::Yes(Scope::Exact(GrantLimits::default())),
        Answer::No(String::new()),
    ];
    let (approvals, _) = approvals(Mode::OnAsk, ScriptedApprover::new(answers));
    let bash = attempt("bash x.sh");
    let verdict = bash.verdict();
    let case = ApprovalContext {
        verdict: &verdict,
        policy: bash.policy.digest(),
        environment: "local",
        session: None,
    };
    let refused = approvals.approve(bash.command(), &case, files).await.expect_err("no");
    assert_eq!(refused.to_string(), "the approver said no");
    assert!(!bash.is_covered(&approvals).await, "the first yes left nothing behind");
}

#[tokio::test]
async fn a_file_that_changes_at_every_question_is_refused_in_the_end() {
    let looks = AtomicUsize::new(0);
    let files = |_: &Command| {
        vec![(
            "/x".into(),
            Digest::of(&looks.fetch_add(1, Ordering::Relaxed).to_le_bytes()),
        )]
    };
    let (approvals, _) = approvals(
        Mode::OnAsk,
        Arc::new(ApproverFn(|_: &Question| Answer::Yes(Scope::Once))),
    );
    let bash = attempt("bash x.sh");
    let verdict = bash.verdict();
    let case = ApprovalContext {
        verdict: &verdict,
        policy: bash.policy.digest(),
        environment: "local",
        session: None,
    };
    let refused = approvals
        .approve(bash.command(), &case, files)
        .await
        .expect_err("never the same twice");
    assert_eq!(
        refused,
        Refused::KeepsChanging {
            files: vec!["/x".into()]
        }
    );
}

#[test]
fn a_grant_for_one_start_is_used_by_exactly_one_of_sixteen() {
    let runtime = || {
        tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .expect("a runtime")
    };
    for _ in 0..20 {
        let approver = ScriptedApprover::new([]);
        let (approvals, _) = approvals(Mode::OnAsk, approver.clone());
        runtime().block_on(async { attempt("make").make(&approvals).await.expect_err("nobody is there") });
        approvals.grant(&approver.asked()[0], Scope::Once);
        let started = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..16 {
                scope.spawn(|| {
                    if runtime().block_on(attempt("make").make(&approvals)).is_ok() {
                        started.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
        });
        assert_eq!(started.into_inner(), 1);
    }
}

#[tokio::test]
async fn the_narrowest_grant_is_used_first() {
    let approver = ScriptedApprover::new([]);
    let (approvals, _) = approvals(Mode::OnAsk, approver.clone());
    attempt("make").make(&approvals).await.expect_err("nobody is there");
    let question = &approver.asked()[0];
    let wide = approvals.grant(question, Scope::Session(limits(1, 60)));
    let narrow = approvals.grant(question, Scope::Once);
    for expected in [narrow, wide] {
        assert_eq!(
            attempt("make").make(&approvals).await.expect("covered").grant(),
            expected
        );
    }
}

#[tokio::test]
async fn a_grant_that_was_taken_back_covers_nothing() {
    let approver = ScriptedApprover::new([]);
    let (approvals, _) = approvals(Mode::OnAsk, approver.clone());
    attempt("make").make(&approvals).await.expect_err("nobody is there");
    let question = &approver.asked()[0];
    let grant = approvals.grant(question, Scope::Exact(GrantLimits::default()));
    assert!(attempt("make").is_covered(&approvals).await);
    assert!(approvals.revoke(grant));
    assert!(!approvals.revoke(grant));
    assert!(!attempt("make").is_covered(&approvals).await);
    approvals.grant(question, Scope::Session(GrantLimits::default()));
    approvals.revoke_all();
    assert!(!attempt("make").is_covered(&approvals).await);
}

#[tokio::test]
async fn an_earlier_grant_holds_where_nobody_is_to_be_asked() {
    let asker = ScriptedApprover::new([]);
    let (asking, _) = approvals(Mode::OnAsk, asker.clone());
    attempt("make").make(&asking).await.expect_err("nobody is there");
    let (never, _) = approvals(Mode::Never, Arc::new(NoApprover));
    never.grant(&asker.asked()[0], Scope::Once);
    assert!(attempt("make").is_covered(&never).await);
    assert_eq!(attempt("make").make(&never).await.map(drop), Err(Refused::NobodyToAsk));
}
