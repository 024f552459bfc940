use super::*;

fn call(name: &str) -> Digest {
    Digest::of(name.as_bytes())
}

fn failed(again: Retry) -> CallResult {
    CallResult {
        again,
        ..CallResult::failure("no")
    }
}

fn good() -> CallResult {
    CallResult::new("yes".to_owned(), &json!({}), false)
}

/// A model that calls, and the time.
struct Model {
    repeats: Repeats,
    now: Instant,
}

impl Model {
    fn new(most: u32) -> Self {
        Self {
            repeats: Repeats::new(most),
            now: Instant::now(),
        }
    }

    /// What a call gives it that would give `given`, and whether it was tried.
    fn calls(&self, tool: Tool, name: &str, mut given: CallResult) -> (CallResult, bool) {
        if let Some(refused) = self.repeats.refused(call(name), self.now) {
            return (refused, false);
        }
        self.repeats.note(tool, call(name), &mut given, self.now);
        (given, true)
    }

    /// Whether an edit was tried that would fail until something changes.
    fn edits(&self, name: &str) -> bool {
        self.calls(Tool::EditFile, name, failed(Retry::NeedsChange)).1
    }
}

#[test]
fn the_fifth_failure_is_the_last_and_the_third_is_told() {
    let model = Model::new(5);
    for time in 1..=5 {
        let (given, tried) = model.calls(Tool::EditFile, "a", failed(Retry::NeedsChange));
        assert!(tried, "{time}");
        let told = given.structured.expect("it has facts")["failed_in_a_row"].clone();
        let expected = if time < 3 { json!(null) } else { json!(time) };
        assert_eq!(told, expected);
        assert_eq!(
            given.text.contains(&format!("{time} times in a row")),
            time >= 3,
            "{time}"
        );
    }
    let mut said = String::new();
    for _ in 0..3 {
        let (given, tried) = model.calls(Tool::EditFile, "a", failed(Retry::NeedsChange));
        let facts = given.structured.expect("it has facts");
        assert!(!tried && given.error);
        assert_eq!(
            (&facts["code"], &facts["status"], &facts["denial"]["retry_after_ms"]),
            (&json!("repeated"), &json!("denied"), &json!(60_000))
        );
        assert_eq!(
            (&facts["failed_in_a_row"], &facts["last"]),
            (&json!(5), &json!({"error": "no"}))
        );
        said = given.text;
    }
    insta::assert_snapshot!(said, @r"
    not done: the same call has failed too often, and was not tried again
    because  this very call has failed 5 times, and no call has changed anything since
    rule     repeats (deny)
    instead  change what is in its way, or ask for something else
    retry    in 60 s
    at last it said:
    no
    ");
}

#[test]
fn another_call_is_tried_whatever_became_of_this_one() {
    let model = Model::new(1);
    assert!(model.edits("a") && !model.edits("a"));
    assert!(model.edits("b"));
    assert!(!model.edits("a"), "and helps nothing by itself");
}

#[test]
fn what_changes_something_lets_it_be_tried_again_and_what_looks_does_not() {
    for (tool, helps) in [
        (Tool::Shell, true),
        (Tool::ShellWrite, true),
        (Tool::ShellKill, true),
        (Tool::ShellView, true),
        (Tool::ShellWait, true),
        (Tool::AskHuman, true),
        (Tool::WriteFile, true),
        (Tool::EditFile, true),
        (Tool::ApplyPatch, true),
        (Tool::DeleteFile, true),
        (Tool::MoveFile, true),
        (Tool::ReadFile, false),
        (Tool::Ls, false),
        (Tool::Glob, false),
        (Tool::Grep, false),
        (Tool::Stat, false),
        (Tool::ShellList, false),
        (Tool::ShellOutput, false),
        (Tool::Environment, false),
    ] {
        let model = Model::new(2);
        model.calls(tool, "other", good());
        assert!(model.edits("a") && model.edits("a") && !model.edits("a"));
        model.calls(tool, "other", failed(Retry::MaySucceed));
        assert!(!model.edits("a"), "{tool:?}: it changed nothing");
        model.calls(tool, "other", good());
        assert_eq!(model.edits("a"), helps, "{tool:?}");
        if helps {
            assert!(
                model.edits("a") && !model.edits("a"),
                "{tool:?}: the bound is as before"
            );
        }
    }
}

#[test]
fn a_look_that_shows_something_new_lets_it_be_tried_again_and_the_same_look_does_not() {
    let model = Model::new(2);
    let shows = |text: &str| CallResult::new(text.to_owned(), &json!({}), false);
    for text in ["a file", "a file that a person has changed"] {
        assert!(model.edits("a") && model.edits("a") && !model.edits("a"), "{text}");
        model.calls(Tool::ReadFile, "look", shows(text));
        assert!(model.edits("a"), "{text}");
        model.calls(Tool::ReadFile, "look", shows(text));
        assert!(model.edits("a") && !model.edits("a"), "{text}");
        model.calls(Tool::Shell, "other", good());
    }
    for number in 0..MOST * 2 {
        model.calls(Tool::Grep, &number.to_string(), shows("found"));
    }
    assert_eq!(model.repeats.known.lock().expect("not poisoned").looked.len(), MOST);
}

#[test]
fn after_a_minute_it_is_tried_once_more_since_others_change_things_as_well() {
    let mut model = Model::new(2);
    assert!(model.edits("a") && model.edits("a") && !model.edits("a"));
    model.now += PAUSE - Duration::from_millis(1);
    let (given, tried) = model.calls(Tool::EditFile, "a", good());
    let retry = given.structured.expect("it has facts")["denial"]["retry_after_ms"].clone();
    assert_eq!((tried, retry), (false, json!(1)));
    model.now += Duration::from_millis(1);
    assert!(model.edits("a") && !model.edits("a"));
    model.now += PAUSE;
    let (given, tried) = model.calls(Tool::EditFile, "a", good());
    assert!(tried && !given.error);
    assert!(
        model.edits("a") && model.edits("a") && !model.edits("a"),
        "a success begins anew"
    );
}

#[test]
fn what_may_succeed_by_itself_is_told_and_never_refused() {
    let model = Model::new(2);
    for time in 1..=100 {
        let (given, tried) = model.calls(Tool::ReadFile, "a", failed(Retry::MaySucceed));
        assert!(tried, "{time}");
        assert_eq!(given.text.contains("in a row"), time >= 2, "{time}");
    }
}

#[test]
fn what_could_have_succeeded_in_between_does_not_count() {
    let model = Model::new(2);
    for _ in 0..5 {
        model.calls(Tool::EditFile, "a", failed(Retry::MaySucceed));
    }
    assert!(model.edits("a") && model.edits("a") && !model.edits("a"));
}

#[test]
fn what_is_wrong_in_itself_stays_refused_whatever_changes() {
    let mut model = Model::new(2);
    let wrong = |model: &Model| model.calls(Tool::ReadFile, "a", failed(Retry::Fails));
    assert!(wrong(&model).1 && wrong(&model).1);
    model.calls(Tool::Shell, "other", good());
    model.now += PAUSE;
    let (given, tried) = wrong(&model);
    let facts = given.structured.expect("it has facts");
    assert_eq!((tried, &facts["denial"]["retry_after_ms"]), (false, &json!(null)));
    assert!(given.text.contains("correct its arguments"), "{}", given.text);
}

#[test]
fn an_outcome_stays_one() {
    let model = Model::new(1);
    let denied = || CallResult {
        again: Retry::NeedsChange,
        ..CallResult::new(
            "no".to_owned(),
            &json!({"status": "needs_approval", "exit_code": null, "cwd": "/w"}),
            true,
        )
    };
    model.calls(Tool::Shell, "a", denied());
    let (given, _) = model.calls(Tool::Shell, "a", denied());
    let facts = given.structured.expect("it has facts");
    assert_eq!(
        (&facts["status"], &facts["cwd"], &facts["denial"]["layer"]),
        (&json!("needs_approval"), &json!("/w"), &json!("rate"))
    );
}

#[test]
fn what_only_came_too_soon_is_no_failure_and_0_is_never() {
    let model = Model::new(1);
    let early = || CallResult::new("wait".to_owned(), &json!({"status": "rate_limited"}), true);
    for _ in 0..3 {
        let (given, tried) = model.calls(Tool::Shell, "a", early());
        assert_eq!((given.text.as_str(), tried), ("wait", true));
    }
    let model = Model::new(0);
    for _ in 0..10 {
        let (given, tried) = model.calls(Tool::EditFile, "a", failed(Retry::Fails));
        assert_eq!((given.text.as_str(), tried), ("no", true));
    }
}

#[test]
fn the_number_of_calls_that_are_remembered_is_bounded() {
    let model = Model::new(1);
    assert!(model.edits("a") && !model.edits("a"));
    for number in 0..MOST {
        assert!(model.edits(&format!("b{number}")));
    }
    assert_eq!(model.repeats.known.lock().expect("not poisoned").failing.len(), MOST);
    assert!(model.edits("a"), "forgotten");
}
