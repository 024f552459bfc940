//! What commands of a real sandbox leave and is held back: put to the client's person, who accepts it or does not.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use shieling::Shieling;
use shieling::changes::{Choice, Limits, Mode, Store};
use shieling::describe::ToolName;
use shieling::environment::{Restrictions, Sandbox, Shell, Staging};
use shieling::policy::Policy;
use shieling::request::Command;
use shieling_server::{Dialect, Elicitation, Server, Workplace};

use crate::client::{Client, text, with_forms};
use crate::fake::told;

const PATH: &str = "/usr/local/bin:/usr/bin:/bin";
const LONG: Duration = Duration::from_secs(60);

/// A hook, and settings from which an editor runs something. Each is whole when it appears: an empty file passes, and would be what
/// is put back.
const TWO: &str = "printf '#!/bin/sh\\necho hook\\n' > hook; chmod +x hook; mv hook .git/hooks/post-commit; \
    mkdir -p .vscode; printf '{\"tasks\": [{\"label\": \"x\", \"command\": \"x\", \"runOptions\": {\"runOn\": \"folderOpen\"}}]}' \
    > tasks; mv tasks .vscode/tasks.json; echo done";
const HOOK: &str = ".git/hooks/post-commit";
const TASKS: &str = ".vscode/tasks.json";

/// A workspace with a repository, and a sandbox over it.
struct Place {
    root: tempfile::TempDir,
    shieling: Arc<Shieling>,
}

impl Place {
    fn new(mode: Mode, patience: Duration) -> Self {
        Self::with(mode, patience, Policy::open())
    }

    fn with(mode: Mode, patience: Duration, policy: Policy) -> Self {
        let root = tempfile::tempdir().expect("a temporary directory");
        let work = root.path().canonicalize().expect("it is there").join("work");
        for directory in [".git/hooks", ".git/objects", ".git/refs/heads"] {
            fs::create_dir_all(work.join(directory)).expect("a directory");
        }
        fs::write(work.join(".git/HEAD"), "ref: refs/heads/main\n").expect("a file");
        fs::write(work.join(".git/config"), "[core]\n\tbare = false\n").expect("a file");
        fs::write(work.join("flag"), "stay\n").expect("a file");
        let mut restrictions = Restrictions::new(&work, "/bin/bash");
        restrictions.path = PATH.to_owned();
        let store = work.with_file_name("sets");
        match mode {
            Mode::Direct => restrictions.held_back = Some(store),
            mode => restrictions.staging = Some(Staging::new(mode, store)),
        }
        let shell = Shell::find(None).expect("there is a shell");
        let sandbox = Arc::new(Sandbox::new(restrictions, shell));
        let shieling = Shieling::builder(sandbox, policy, work)
            .approver(Arc::new(Elicitation))
            .answer_timeout(patience)
            .ask_about_held_back(true)
            .build()
            .expect("a sandbox is bound to a policy");
        Self {
            root,
            shieling: Arc::new(shieling),
        }
    }

    fn work(&self) -> PathBuf {
        self.root.path().canonicalize().expect("it is there").join("work")
    }

    fn sets(&self) -> PathBuf {
        self.work().with_file_name("sets")
    }

    fn server(&self) -> Server {
        let variables = [("PATH", PATH), ("LC_ALL", "C.UTF-8"), ("HOME", "/tmp")];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let template = Command::new("true", self.work())
            .expect("a command")
            .with_variables(BTreeMap::from(variables))
            .with_deadline(LONG)
            .expect("some time");
        let workplace = Workplace {
            core: self.shieling.clone(),
            template,
            told: Box::new(|| Box::pin(async { told() })),
            tools: ToolName::defaults(),
            prepare: Box::new(|| Box::pin(async { Ok(()) })),
        };
        Server::new(
            workplace,
            Dialect::named("default").expect("there is such a dialect"),
            "Work well.",
        )
    }

    async fn client(&self, can: Value) -> Client {
        Client::of(self.server()).welcome(can).await
    }

    fn read(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.work().join(path)).ok()
    }
}

/// The messages of the questions that were asked since this was last called.
fn questions(client: &mut Client) -> Vec<String> {
    let heard = std::mem::take(&mut client.heard);
    let asked = heard.iter().filter(|one| one["method"] == "elicitation/create");
    let messages = asked.map(|one| one["params"]["message"].as_str().expect("a text").to_owned());
    messages.collect()
}

fn decision(yes: bool) -> Value {
    json!({"action": "accept", "content": {"decision": if yes { "yes" } else { "no" }}})
}

fn message(asked: &Value) -> &str {
    asked["params"]["message"].as_str().unwrap_or_default()
}

fn until(what: &str, is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < LONG, "{what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn paths(list: &Value) -> Vec<&str> {
    let list = list.as_array().expect("a list");
    list.iter().map(|one| one["path"].as_str().expect("a path")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_is_asked_about_with_its_reason_and_diff_and_only_what_gets_a_yes_is_accepted() {
    for mode in [Mode::Direct, Mode::Commit] {
        let place = Place::new(mode, LONG);
        let mut client = place.client(with_forms()).await;
        client.person = Box::new(|asked| Some(decision(message(asked).contains("echo hook"))));
        let result = client.call("shell", json!({"command": TWO})).await;
        let asked = questions(&mut client);
        assert_eq!(asked.len(), 2, "{mode:?}: {asked:#?}");
        let hook = asked.iter().find(|one| one.contains(HOOK)).expect("of the hook");
        assert!(
            hook.starts_with("A command made this, and it was held back.")
                && hook.contains("    | +echo hook")
                && hook.contains(&format!("since   `{HOOK}`: ")),
            "{hook}"
        );
        let changes = &result["structuredContent"]["changes"];
        assert_eq!(paths(&changes["accepted"]), [HOOK], "{mode:?}: {changes:#}");
        assert_eq!(paths(&changes["held_back"]), [TASKS], "{mode:?}: {changes:#}");
        assert_eq!(changes["held_back"][0]["answer"], "refused", "{changes:#}");
        let told = text(&result);
        assert!(
            told.contains(&format!("[accepted: `{HOOK}` was held back")) && told.contains("said no"),
            "{told}"
        );
        assert_eq!(place.read(HOOK).as_deref(), Some("#!/bin/sh\necho hook\n"), "{mode:?}");
        assert_eq!(place.read(TASKS), None, "{mode:?}");
        // It can be taken back from outside, and put there again.
        let store = Store::open(&place.sets(), Limits::default()).expect("a store");
        let id = changes["accepted"][0]["id"].as_str().expect("an id");
        let mut set = store.get(id).expect("it is kept");
        store.undo(&mut set, &Default::default()).expect("undone");
        assert_eq!(place.read(HOOK), None, "{mode:?}");
        let again = Choice {
            accept_held_back: true,
            ..Choice::default()
        };
        store.apply(set, &again, &Default::default()).expect("applied");
        // What was accepted stays, also while commands run, and what was refused is not asked about again.
        for command in ["sleep 0.1; cat .git/hooks/post-commit", TWO] {
            let result = client.call("shell", json!({"command": command})).await;
            assert_eq!(questions(&mut client), [""; 0], "{mode:?}: {command}");
            let held = &result["structuredContent"]["changes"]["held_back"];
            assert!(
                held.is_null() || paths(held).iter().all(|path| *path == TASKS),
                "{mode:?}: {result:#}"
            );
            assert!(place.read(HOOK).is_some() && place.read(TASKS).is_none(), "{mode:?}");
        }
        client.leave().await.expect("served");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_refused_is_asked_about_again_once_it_is_something_else_however_little_of_it() {
    for mode in [Mode::Direct, Mode::Commit] {
        let place = Place::new(mode, LONG);
        let mut client = place.client(with_forms()).await;
        client.person = Box::new(|_| Some(decision(false)));
        client.call("shell", json!({"command": TWO})).await;
        assert_eq!(questions(&mut client).len(), 2, "{mode:?}");
        for (command, asked) in [
            // What is held back stays so, and is looked at with each.
            ("sleep 0.1; echo 1 > one", 0),
            ("sleep 0.1; echo 2 > two", 0),
            (
                "printf '#!/bin/sh\\necho hoax\\n' > .git/hooks/post-commit; chmod +x .git/hooks/post-commit",
                1,
            ),
            ("sleep 0.1", 0),
            ("sleep 0.1", 0),
            (
                "echo 'echo more' >> .git/hooks/post-commit; chmod +x .git/hooks/post-commit",
                1,
            ),
            ("sleep 0.1", 0),
        ] {
            let result = client.call("shell", json!({"command": command})).await;
            let questions = questions(&mut client);
            assert_eq!(questions.len(), asked, "{mode:?}: {command}: {questions:?} {result:#}");
        }
        // A yes holds for what is there now, and not for what was remembered.
        client.person = Box::new(|_| Some(decision(true)));
        let last = "printf '#!/bin/sh\\necho last\\n' > .git/hooks/post-commit; chmod +x .git/hooks/post-commit";
        client.call("shell", json!({"command": last})).await;
        assert_eq!(place.read(HOOK).as_deref(), Some("#!/bin/sh\necho last\n"), "{mode:?}");
        client.leave().await.expect("served");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_accepted_while_a_job_runs_stays_and_what_the_job_makes_of_it_does_not() {
    let place = Place::new(Mode::Direct, LONG);
    let mut client = place.client(with_forms()).await;
    client.person = Box::new(|asked| Some(decision(message(asked).contains("echo hook"))));
    let job =
        "until grep -q go flag; do sleep 0.01; done; echo echo worse >> .git/hooks/post-commit; touch worse; sleep 60";
    let job = client.call("shell", json!({"command": job, "background": true})).await;
    client.call("shell", json!({"command": TWO, "session": "other"})).await;
    // Several looks of the judge go by.
    client
        .call(
            "shell",
            json!({"command": "for n in 1 2 3 4 5; do sleep 0.05; touch .git/n$n; done", "session": "other"}),
        )
        .await;
    assert_eq!(place.read(HOOK).as_deref(), Some("#!/bin/sh\necho hook\n"));
    fs::write(place.work().join("flag"), "go\n").expect("a file");
    until("the job goes on", || place.read("worse").is_some());
    until("it is taken back", || {
        place.read(HOOK).as_deref() == Some("#!/bin/sh\necho hook\n")
    });
    let job = job["structuredContent"]["job"].as_str().expect("a job");
    client.call("shell_kill", json!({"job": job})).await;
    client.leave().await.expect("served");
}

/// Calls about a job, each of which is made once the job has done its work: name, arguments, and whether the job runs on.
fn calls_about_a_job() -> [(&'static str, Value, bool); 4] {
    [
        ("shell_wait", json!({}), false),
        ("shell_view", json!({"until": "exit", "wait_ms": 60_000}), false),
        ("shell_write", json!({"wait_ms": 60_000}), false),
        ("shell_kill", json!({}), true),
    ]
}

/// Starts a command in the background, waits for its word `done`, and calls the tool about it. Gives that call's result and
/// the arguments that name the job.
async fn about_a_job(client: &mut Client, command: &str, call: (&str, Value, bool)) -> (Value, Value) {
    let (tool, mut arguments, runs_on) = call;
    let command = match runs_on {
        true => format!("{command}; sleep 1000"),
        false => command.to_owned(),
    };
    let job = client
        .call("shell", json!({"command": command, "background": true}))
        .await;
    let job = job["structuredContent"]["job"].clone();
    if runs_on {
        client.call("shell_wait", json!({"job": job, "pattern": "done"})).await;
        assert_eq!(questions(client), [""; 0], "{tool}: the job runs on");
    }
    arguments["job"] = job.clone();
    let mut result = client.call(tool, arguments.clone()).await;
    // Some return with the output that there is, before the end.
    while result["structuredContent"]["status"] == "running" {
        result = client.call(tool, arguments.clone()).await;
    }
    (result, json!({"job": job}))
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_held_back_of_a_job_that_ended_in_the_background_is_asked_about_at_the_next_call_about_it() {
    for mode in [Mode::Direct, Mode::Commit] {
        for call in calls_about_a_job() {
            let tool = call.0;
            let place = Place::new(mode, LONG);
            let mut client = place.client(with_forms()).await;
            client.person = Box::new(|asked| Some(decision(message(asked).contains("echo hook"))));
            let (result, job) = about_a_job(&mut client, TWO, call).await;
            assert_eq!(questions(&mut client).len(), 2, "{mode:?} {tool}: {result:#}");
            for again in [false, true] {
                let result = match again {
                    true => client.call("shell_view", job.clone()).await,
                    false => result.clone(),
                };
                let changes = &result["structuredContent"]["changes"];
                assert_eq!(paths(&changes["accepted"]), [HOOK], "{mode:?} {tool}: {changes:#}");
                assert_eq!(paths(&changes["held_back"]), [TASKS], "{mode:?} {tool}: {changes:#}");
                assert_eq!(changes["held_back"][0]["answer"], "refused", "{changes:#}");
                assert_eq!(questions(&mut client), [""; 0], "{mode:?} {tool}");
            }
            assert_eq!(place.read(HOOK).as_deref(), Some("#!/bin/sh\necho hook\n"), "{mode:?}");
            assert_eq!(place.read(TASKS), None, "{mode:?} {tool}");
            client.leave().await.expect("served");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_of_a_job_that_ended_in_the_background_is_asked_about_at_the_next_call_about_it() {
    for call in calls_about_a_job() {
        let tool = call.0;
        let place = Place::new(Mode::Review, LONG);
        let mut client = place.client(with_forms()).await;
        client.person = Box::new(|_| Some(decision(true)));
        let (result, job) = about_a_job(&mut client, "echo new > new; echo done", call).await;
        let asked = questions(&mut client);
        assert!(
            asked.len() == 1 && asked[0].contains("+new"),
            "{tool}: {asked:?} {result:#}"
        );
        let result = client.call("shell_view", job).await;
        assert_eq!(
            result["structuredContent"]["changes"]["state"], "committed",
            "{tool}: {result:#}"
        );
        assert_eq!(questions(&mut client), [""; 0], "{tool}");
        assert_eq!(place.read("new").as_deref(), Some("new\n"), "{tool}");
        client.leave().await.expect("served");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn staged_changes_that_a_person_refused_are_asked_about_again_once_they_have_changed() {
    let place = Place::new(Mode::Review, LONG);
    let mut client = place.client(with_forms()).await;
    client.person = Box::new(|_| Some(decision(false)));
    for (command, asked) in [
        ("echo 1 > new", 1),
        ("cat new", 0),
        ("true", 0),
        ("echo 2 >> new", 1),
        ("true", 0),
    ] {
        let (changes, told, count) = changes_of(&mut client, command).await;
        assert_eq!(count, asked, "{command}: {told}");
        assert_eq!(
            (&changes["state"], &changes["answer"]),
            (&json!("waiting"), &json!("refused")),
            "{command}: {changes:#}"
        );
        let id = changes["id"].as_str().expect("they are stored");
        assert!(
            told.contains("the user was asked, and said no") && told.contains(&format!("shieling changes apply {id}")),
            "{command}: {told}"
        );
    }
    let result = client
        .call("write_file", json!({"path": "new", "content": "1\n2\n"}))
        .await;
    assert_eq!(questions(&mut client), [""; 0], "they are the same");
    assert!(text(&result).contains("said no"), "{result:#}");
    client.person = Box::new(|_| Some(decision(true)));
    let (changes, told, count) = changes_of(&mut client, "echo 3 >> new").await;
    assert_eq!(
        (count, &changes["state"], &changes["answer"]),
        (1, &json!("committed"), &Value::Null),
        "{told}"
    );
    assert_eq!(place.read("new").as_deref(), Some("1\n2\n3\n"));
    client.leave().await.expect("served");
}

/// Runs a command, and gives what became of its changes, what the model reads, and how often the person was asked.
async fn changes_of(client: &mut Client, command: &str) -> (Value, String, usize) {
    let result = client.call("shell", json!({"command": command})).await;
    let changes = result["structuredContent"]["changes"].clone();
    (changes, text(&result).to_owned(), questions(client).len())
}

#[tokio::test(flavor = "multi_thread")]
async fn staged_changes_about_which_nobody_answered_are_asked_about_again() {
    let place = Place::new(Mode::Review, Duration::from_millis(300));
    let mut client = place.client(with_forms()).await;
    client.person = Box::new(|_| None);
    for command in ["echo 1 > new", "true"] {
        let (changes, told, count) = changes_of(&mut client, command).await;
        assert_eq!(
            (count, &changes["answer"]),
            (1, &json!("unanswered")),
            "{command}: {told}"
        );
    }
    client.leave().await.expect("served");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_job_left_is_asked_about_by_the_first_client_that_can_ask() {
    let place = Place::new(Mode::Review, LONG);
    let mut silent = place.client(json!({})).await;
    let call = ("shell_wait", json!({}), false);
    let (result, job) = about_a_job(&mut silent, "echo new > new; echo done", call).await;
    assert_eq!(result["structuredContent"]["changes"]["state"], "waiting", "{result:#}");
    let mut client = place.client(with_forms()).await;
    client.person = Box::new(|_| Some(decision(true)));
    let result = client.call("shell_view", job).await;
    assert_eq!(questions(&mut client).len(), 1, "{result:#}");
    assert_eq!(
        result["structuredContent"]["changes"]["state"], "committed",
        "{result:#}"
    );
    assert_eq!(place.read("new").as_deref(), Some("new\n"));
    client.leave().await.expect("served");
    silent.leave().await.expect("served");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_that_nobody_answers_ends_in_time_and_the_next_is_not_asked() {
    for mode in [Mode::Direct, Mode::Commit] {
        let place = Place::new(mode, Duration::from_millis(300));
        let mut client = place.client(with_forms()).await;
        let began = Instant::now();
        let result = client.call("shell", json!({"command": TWO})).await;
        assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
        assert_eq!(questions(&mut client).len(), 1, "{mode:?}");
        let changes = &result["structuredContent"]["changes"];
        let answers: Vec<&Value> = changes["held_back"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|held| &held["answer"])
            .collect();
        // Each may be kept in a set of its own, and the sets are asked about by their ids.
        let unanswered = answers.iter().filter(|answer| ***answer == json!("unanswered")).count();
        assert_eq!((unanswered, answers.len()), (1, 2), "{mode:?}: {changes:#}");
        assert!(text(&result).contains("shieling changes apply"), "{result:#}");
        assert!(place.read(HOOK).is_none() && place.read(TASKS).is_none());
        client.leave().await.expect("served");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_cannot_ask_gets_the_id_and_the_remedy() {
    for mode in [Mode::Direct, Mode::Commit] {
        for stateless in [false, true] {
            let place = Place::new(mode, LONG);
            let mut client = match stateless {
                false => place.client(json!({})).await,
                // It could be asked between two calls, and the command would run twice.
                true => Client::stateless_of(place.server(), &with_forms()),
            };
            let command = format!("echo once >> runs; {TWO}");
            let result = client.call("shell", json!({"command": command})).await;
            assert_eq!(questions(&mut client), [""; 0]);
            let changes = &result["structuredContent"]["changes"];
            let held = changes["held_back"].as_array().expect("a list");
            assert_eq!((held.len(), paths(&changes["accepted"]).len()), (2, 0), "{changes:#}");
            for held in held {
                let id = held["id"].as_str().expect("an id");
                let remedy = format!("shieling changes apply {id} --accept-held-back --only ");
                assert!(
                    held["instead"]
                        .as_str()
                        .is_some_and(|instead| instead.contains(&remedy)),
                    "{held:#}"
                );
                assert_eq!(held["answer"], Value::Null, "{held:#}");
            }
            assert_eq!(place.read("runs").as_deref(), Some("once\n"), "{mode:?}");
            assert!(place.read(HOOK).is_none() && place.read(TASKS).is_none());
            client.leave().await.expect("served");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_yes_to_what_the_user_has_changed_meanwhile_is_refused() {
    for mode in [Mode::Direct, Mode::Commit] {
        let place = Place::new(mode, LONG);
        let mut client = place.client(with_forms()).await;
        let hook = place.work().join(HOOK);
        client.person = Box::new(move |_| {
            fs::write(&hook, "mine\n").expect("a file");
            Some(decision(true))
        });
        let command = TWO.split("; mkdir").next().expect("the hook alone");
        let result = client.call("shell", json!({"command": command})).await;
        let changes = &result["structuredContent"]["changes"];
        assert_eq!(changes["held_back"][0]["answer"], "changed", "{mode:?}: {changes:#}");
        assert_eq!(paths(&changes["accepted"]).len(), 0, "{changes:#}");
        assert!(text(&result).contains("nothing was accepted"), "{result:#}");
        assert_eq!(place.read(HOOK).as_deref(), Some("mine\n"), "{mode:?}");
        client.leave().await.expect("served");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_yes_to_what_a_job_has_made_something_else_of_is_refused() {
    let place = Place::new(Mode::Commit, LONG);
    let mut client = place.client(with_forms()).await;
    let job = "until grep -q go flag; do sleep 0.01; done; echo echo worse >> .git/hooks/post-commit; sleep 60";
    let job = client.call("shell", json!({"command": job, "background": true})).await;
    let (flag, sets) = (place.work().join("flag"), place.sets());
    client.person = Box::new(move |_| {
        fs::write(&flag, "go\n").expect("a file");
        let is_worse =
            |set: &Path| fs::read_to_string(set.join("upper").join(HOOK)).is_ok_and(|hook| hook.contains("worse"));
        until("the job changes it", || {
            let all = fs::read_dir(&sets).expect("a directory");
            all.flatten().any(|set| is_worse(&set.path()))
        });
        Some(decision(true))
    });
    let command = TWO.split("; mkdir").next().expect("the hook alone");
    let result = client
        .call("shell", json!({"command": command, "session": "other"}))
        .await;
    let changes = &result["structuredContent"]["changes"];
    assert_eq!(changes["held_back"][0]["answer"], "changed", "{changes:#}");
    assert_eq!(place.read(HOOK), None);
    let job = job["structuredContent"]["job"].as_str().expect("a job");
    client.call("shell_kill", json!({"job": job})).await;
    client.leave().await.expect("served");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_yes_to_a_set_that_was_thrown_away_meanwhile_is_refused() {
    let place = Place::new(Mode::Direct, LONG);
    let mut client = place.client(with_forms()).await;
    let sets = place.sets();
    client.person = Box::new(move |_| {
        let store = Store::open(&sets, Limits::default()).expect("a store");
        for set in store.list().expect("a list") {
            let set = store.get(&set.id).expect("it is there");
            store.discard(set).expect("discarded");
        }
        Some(decision(true))
    });
    let result = client.call("shell", json!({"command": TWO})).await;
    let held = &result["structuredContent"]["changes"]["held_back"];
    // Each may be kept in a set of its own; of the other one nothing can be shown any more.
    let mut answers = held.as_array().expect("a list").iter().map(|held| &held["answer"]);
    assert!(answers.any(|answer| answer == "changed"), "{held:#}");
    assert!(place.read(HOOK).is_none() && place.read(TASKS).is_none());
    client.leave().await.expect("served");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_or_content_with_control_characters_cannot_be_taken_for_words_of_ours() {
    let forged = "$'a\\n\\nMay this command run?\\e[2K\\r\\xff'";
    for mode in [Mode::Direct, Mode::Commit] {
        let place = Place::new(mode, LONG);
        let mut client = place.client(with_forms()).await;
        client.person = Box::new(|_| Some(decision(true)));
        let command = format!("printf '\\e[1A\\r\\nMay this be done?\\n' > {forged}; ls");
        let result = client.call("shell", json!({"command": command})).await;
        let asked = questions(&mut client);
        assert_eq!(asked.len(), 1, "{mode:?}: {asked:?} {result:#}");
        let message = &asked[0];
        assert!(!message.contains(|c: char| c.is_control() && c != '\n'), "{message:?}");
        let forging = message.lines().skip(1).filter(|line| line.starts_with("May this"));
        assert_eq!(forging.count(), 0, "{message}");
        let changes = &result["structuredContent"]["changes"];
        assert_eq!(
            (paths(&changes["accepted"]).len(), paths(&changes["held_back"]).len()),
            (1, 0),
            "{changes:#}"
        );
        let names = fs::read_dir(place.work()).expect("a directory").flatten();
        let names: Vec<_> = names.map(|entry| entry.file_name()).collect();
        assert!(
            names
                .iter()
                .any(|name| name.as_encoded_bytes().ends_with(b"\x1b[2K\r\xff")),
            "{mode:?}: {names:?}"
        );
        client.leave().await.expect("served");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_is_asked_about_what_cannot_be_shown_whole() {
    for mode in [Mode::Direct, Mode::Commit] {
        let place = Place::new(mode, LONG);
        let mut client = place.client(with_forms()).await;
        client.person = Box::new(|_| Some(decision(true)));
        let command = "(echo '#!/bin/sh'; for n in {1..20000}; do echo \": $n\"; done) > /tmp/long; chmod +x /tmp/long; \
            mv /tmp/long .git/hooks/post-commit";
        let result = client.call("shell", json!({"command": command})).await;
        assert_eq!(questions(&mut client), [""; 0], "{mode:?}");
        assert!(text(&result).contains("shieling changes apply"), "{result:#}");
        assert_eq!(place.read(HOOK), None, "{mode:?}");
        client.leave().await.expect("served");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_for_files_asks_as_a_command_does() {
    let place = Place::new(Mode::Direct, LONG);
    let mut client = place.client(with_forms()).await;
    client.person = Box::new(|_| Some(decision(true)));
    let settings = "{\"tasks\": [{\"command\": \"x\", \"runOptions\": {\"runOn\": \"folderOpen\"}}]}";
    let result = client
        .call("write_file", json!({"path": TASKS, "content": settings}))
        .await;
    assert_eq!(questions(&mut client).len(), 1, "{result:#}");
    assert!(text(&result).contains("has let it into the workspace"), "{result:#}");
    assert_eq!(place.read(TASKS).as_deref(), Some(settings));
    client.leave().await.expect("served");
}
