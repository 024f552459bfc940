//! What policies mean in a container.

use std::sync::Arc;

use shieling::environment::Environment as _;
use shieling::outcome::Status;
use shieling::policy::Policy;
use shieling_container::Volume;

use super::support::{BUSYBOX, Kind, command, engine, facade, read, turn, workspace};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readonly_holds_for_everything_that_is_mounted_and_asks_about_less() {
    let _turn = turn().await;
    let Some(engine) = engine(Kind::Docker) else { return };
    let (work, more) = (workspace(), workspace());
    std::fs::write(
        work.path().join("script"),
        "echo ran; echo x > made; echo x > /more/made\n",
    )
    .unwrap();
    let mut options = engine.options(BUSYBOX);
    options.workspace = Some(work.path().to_owned());
    options.writable = true;
    options.volumes.push(Volume {
        source: more.path().to_owned(),
        target: "/more".into(),
        readonly: false,
    });
    let container = Arc::new(engine.open(options).await.unwrap());
    let library = facade(&container, Policy::open().with_readonly());
    // What cannot be decided by reading is contained and not asked about.
    let outcome = library.run(command(&container, "sh script"), None).await;
    assert_eq!(
        (outcome.status, outcome.stdout.as_str()),
        (Status::Exited, "ran\n"),
        "{outcome:?}"
    );
    assert_eq!(
        outcome.stderr.matches("Read-only file system").count(),
        2,
        "{outcome:?}"
    );
    // What is known to break it is refused early.
    let outcome = library.run(command(&container, "touch made"), None).await;
    assert_eq!(outcome.status, Status::Denied, "{outcome:?}");
    assert_eq!((read(&work, "made"), read(&more, "made")), (None, None));
    container.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hidden_files_and_lists_of_programs_are_not_passed_over() {
    let _turn = turn().await;
    let Some(engine) = engine(Kind::Docker) else { return };
    let work = workspace();
    std::fs::write(work.path().join(".env"), "secret\n").unwrap();
    std::fs::write(work.path().join("script"), "cat .env; ls\n").unwrap();
    let mut options = engine.options(BUSYBOX);
    options.workspace = Some(work.path().to_owned());
    for (policy, texts) in [
        (
            Policy::open().with_ignore(&[".env".to_owned()]).unwrap(),
            ["cat .env", "sh script"],
        ),
        (
            Policy::open().with_allow(&["cat".to_owned()]).unwrap(),
            ["ls", "sh script"],
        ),
    ] {
        let container = Arc::new(engine.open(options.clone()).await.unwrap());
        let library = facade(&container, policy);
        for text in texts {
            let outcome = library.run(command(&container, text), None).await;
            let refused = matches!(outcome.status, Status::Denied | Status::NeedsApproval);
            assert!(refused && !outcome.stdout.contains("secret"), "{text}: {outcome:?}");
        }
        container.close().await;
    }
}
