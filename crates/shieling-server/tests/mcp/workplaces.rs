//! Who works where, and when it is closed: what the rules of `Workplaces` say.

use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Poll;

use serde_json::json;
use shieling_server::{Dialect, EnterError, Server, Source, Workplaces};

use crate::client::{Client, text};
use crate::fake::Fake;

fn closed(fake: &Fake) -> usize {
    fake.closed.load(Ordering::SeqCst)
}

fn shared(fake: &Arc<Fake>) -> Workplaces {
    Workplaces::new(Source::Shared(Arc::new(fake.workplace())))
}

/// A factory, and what it has made.
fn factory() -> (Workplaces, Arc<Mutex<Vec<Arc<Fake>>>>) {
    let made: Arc<Mutex<Vec<Arc<Fake>>>> = Arc::default();
    let seen = made.clone();
    let workplaces = Workplaces::new(Source::Factory(Box::new(move || {
        let fake = Arc::new(Fake::new());
        seen.lock().expect("not poisoned").push(fake.clone());
        Ok(fake.workplace())
    })));
    (workplaces, made)
}

#[tokio::test]
async fn two_runs_share_and_the_last_one_closes() {
    let fake = Arc::new(Fake::new());
    let workplaces = shared(&fake);
    let (one, two) = (
        workplaces.enter().expect("it is open"),
        workplaces.enter().expect("it is open"),
    );
    assert!(Arc::ptr_eq(one.workplace(), two.workplace()));
    one.leave().await;
    assert_eq!(closed(&fake), 0, "the other goes on");
    let three = workplaces.enter().expect("somebody is inside");
    two.leave().await;
    assert_eq!(closed(&fake), 0);
    three.leave().await;
    assert_eq!(closed(&fake), 1);
    assert_eq!(workplaces.enter().err(), Some(EnterError::Closed));
    assert_eq!(closed(&fake), 1, "once");
}

#[tokio::test]
async fn a_run_that_is_dropped_has_left() {
    let fake = Arc::new(Fake::new());
    let workplaces = shared(&fake);
    let one = workplaces.enter().expect("it is open");
    drop(workplaces.enter().expect("it is open"));
    one.leave().await;
    assert_eq!(closed(&fake), 1, "nobody is counted twice");
    let workplaces = shared(&fake);
    let core = Arc::downgrade(workplaces.enter().expect("it is open").workplace());
    assert!(core.upgrade().is_none(), "the last one has let it go");
    assert_eq!(workplaces.enter().err(), Some(EnterError::Closed));
}

#[tokio::test]
async fn a_factory_gives_each_run_its_own() {
    let (workplaces, made) = factory();
    let (one, two) = (
        workplaces.enter().expect("it is made"),
        workplaces.enter().expect("it is made"),
    );
    assert!(!Arc::ptr_eq(one.workplace(), two.workplace()));
    one.leave().await;
    {
        let made = made.lock().expect("not poisoned");
        assert_eq!((made.len(), closed(&made[0]), closed(&made[1])), (2, 1, 0));
    }
    two.leave().await;
    workplaces.enter().expect("there are always more").leave().await;
    assert_eq!(made.lock().expect("not poisoned").len(), 3);
    let broken = Workplaces::new(Source::Factory(Box::new(|| Err("no disk".to_owned()))));
    let error = broken.enter().expect_err("it makes none");
    assert_eq!(error.to_string(), "no workplace could be made: no disk");
}

#[tokio::test]
async fn an_override_beats_both_and_holds_only_inside() {
    let (fake, other, inner) = (Arc::new(Fake::new()), Arc::new(Fake::new()), Arc::new(Fake::new()));
    let instead = Arc::new(other.workplace());
    let (by_factory, made) = factory();
    for workplaces in [shared(&fake), by_factory] {
        workplaces
            .under(instead.clone(), async {
                let entered = workplaces.enter().expect("it is lent");
                assert!(Arc::ptr_eq(entered.workplace(), &instead));
                entered.leave().await;
                let innermost = Arc::new(inner.workplace());
                let run = async { Arc::ptr_eq(workplaces.enter().expect("it is lent").workplace(), &innermost) };
                assert!(workplaces.under(innermost.clone(), run).await);
                assert!(Arc::ptr_eq(
                    workplaces.enter().expect("it is lent").workplace(),
                    &instead
                ));
            })
            .await;
        let entered = workplaces.enter().expect("it is open");
        assert!(!Arc::ptr_eq(entered.workplace(), &instead));
        entered.leave().await;
    }
    assert_eq!(
        (closed(&other), closed(&inner), closed(&fake)),
        (0, 0, 1),
        "who lends, closes"
    );
    assert_eq!(made.lock().expect("not poisoned").len(), 1);
}

#[tokio::test]
async fn an_override_works_without_any_other_and_for_these_workplaces_only() {
    let (none, others) = (Workplaces::none(), Workplaces::none());
    let error = none.enter().expect_err("there is none");
    assert_eq!(error, EnterError::Nothing);
    assert!(error.to_string().contains("a factory, or an override"), "{error}");
    let fake = Arc::new(Fake::new());
    none.under(Arc::new(fake.workplace()), async {
        none.enter().expect("it is lent").leave().await;
        assert_eq!(others.enter().err(), Some(EnterError::Nothing));
    })
    .await;
    assert_eq!(closed(&fake), 0);
}

#[tokio::test]
async fn an_override_of_one_task_is_none_of_another() {
    let none = Workplaces::none();
    let fake = Arc::new(Fake::new());
    let seen = Arc::new(AtomicUsize::new(0));
    none.under(Arc::new(fake.workplace()), async {
        let (elsewhere, seen) = (none.clone(), seen.clone());
        let task = tokio::spawn(async move {
            if elsewhere.enter().is_err() {
                seen.fetch_add(1, Ordering::SeqCst);
            }
        });
        task.await.expect("no panic");
    })
    .await;
    assert_eq!(seen.load(Ordering::SeqCst), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_many_who_come_and_go_at_the_same_time_all_share_one_and_the_last_closes_it_once() {
    let fake = Arc::new(Fake::new());
    let workplaces = shared(&fake);
    let first = workplaces.enter().expect("it is open");
    let all_inside = Arc::new(tokio::sync::Barrier::new(33));
    let runs: Vec<_> = (0..32_usize)
        .map(|number| {
            let (workplaces, all_inside, fake) = (workplaces.clone(), all_inside.clone(), fake.clone());
            let place = first.workplace().clone();
            tokio::spawn(async move {
                let entered = workplaces.enter().expect("somebody is inside");
                assert!(Arc::ptr_eq(entered.workplace(), &place));
                all_inside.wait().await;
                assert_eq!(closed(&fake), 0, "others are inside");
                all_inside.wait().await;
                if number % 2 == 0 {
                    entered.leave().await;
                }
            })
        })
        .collect();
    all_inside.wait().await;
    all_inside.wait().await;
    for run in runs {
        run.await.expect("no panic");
    }
    assert_eq!(closed(&fake), 0, "the first is still inside");
    first.leave().await;
    assert_eq!(closed(&fake), 1);
    assert_eq!(workplaces.enter().err(), Some(EnterError::Closed));
}

#[tokio::test]
async fn a_factory_that_fails_or_panics_once_is_asked_again_by_the_next_run() {
    let tries = Arc::new(AtomicUsize::new(0));
    let seen = tries.clone();
    let workplaces = Workplaces::new(Source::Factory(Box::new(move || {
        match seen.fetch_add(1, Ordering::SeqCst) {
            0 => Err("no disk".to_owned()),
            1 => panic!("this factory is broken"),
            _ => Ok(Arc::new(Fake::new()).workplace()),
        }
    })));
    let server = Server::new(workplaces.clone(), Dialect::default(), "");
    let refused = Client::of(server.clone()).server.await.expect("no panic");
    let error = refused.expect_err("there is nothing to work in").to_string();
    assert_eq!(error, "no workplace could be made: no disk");
    assert!(
        Client::of(server.clone())
            .server
            .await
            .is_err_and(|error| error.is_panic())
    );
    let mut client = Client::of(server).welcome(json!({})).await;
    assert_eq!(text(&client.call("shell", json!({"command": "ls"})).await), "ls\n");
    client.leave().await.expect("it ends well");
    assert_eq!(tries.load(Ordering::SeqCst), 3);
}

/// What a future comes to, also if it panics.
async fn caught<T>(run: impl Future<Output = T>) -> Result<T, ()> {
    let mut run = Box::pin(run);
    poll_fn(
        move |cx| match catch_unwind(AssertUnwindSafe(|| run.as_mut().poll(cx))) {
            Ok(polled) => polled.map(Ok),
            Err(_) => Poll::Ready(Err(())),
        },
    )
    .await
}

#[tokio::test]
async fn an_override_is_over_however_its_run_ends() {
    let fake = Arc::new(Fake::new());
    let (none, instead) = (Workplaces::none(), Arc::new(fake.workplace()));
    let is_over = || none.enter().err() == Some(EnterError::Nothing);

    let failing = async {
        let _inside = none.enter().expect("it is lent");
        Err::<(), &str>("it went wrong")
    };
    assert!(none.under(instead.clone(), failing).await.is_err() && is_over());

    let panicking = async {
        let _inside = none.enter().expect("it is lent");
        tokio::task::yield_now().await;
        panic!("a run that panics");
    };
    assert_eq!(caught(none.under(instead.clone(), panicking)).await, Err::<(), ()>(()));
    assert!(is_over(), "after a panic");

    let endless = async {
        let _inside = none.enter().expect("it is lent");
        std::future::pending::<()>().await;
    };
    tokio::select! {
        biased;
        () = none.under(instead.clone(), endless) => unreachable!("it does not end"),
        () = tokio::task::yield_now() => {}
    }
    assert!(is_over(), "after it was cancelled");
    assert_eq!(closed(&fake), 0, "whoever lends it closes it");
}

#[tokio::test]
async fn two_calls_of_one_task_each_have_their_own_override() {
    let none = Workplaces::none();
    let call = async |fake: &Arc<Fake>| {
        let instead = Arc::new(fake.workplace());
        let run = async {
            for _ in 0..10 {
                let entered = none.enter().expect("it is lent");
                assert!(Arc::ptr_eq(entered.workplace(), &instead));
                tokio::task::yield_now().await;
                entered.leave().await;
            }
        };
        none.under(instead.clone(), run).await;
    };
    let (one, two) = (Arc::new(Fake::new()), Arc::new(Fake::new()));
    tokio::join!(call(&one), call(&two));
    assert_eq!(none.enter().err(), Some(EnterError::Nothing));
}

#[tokio::test]
async fn one_client_of_a_shared_workplace_leaves_and_the_other_goes_on() {
    let fake = Arc::new(Fake::new());
    let server = Server::new(shared(&fake), Dialect::default(), "");
    let one = Client::of(server.clone()).welcome(json!({})).await;
    let mut two = Client::of(server.clone()).welcome(json!({})).await;
    one.leave().await.expect("it ends well");
    assert_eq!(closed(&fake), 0);
    assert_eq!(text(&two.call("shell", json!({"command": "ls"})).await), "ls\n");
    two.leave().await.expect("it ends well");
    assert_eq!(closed(&fake), 1);
    let late = Client::of(server);
    let error = late.server.await.expect("no panic").expect_err("it is closed");
    assert!(
        error.to_string().contains("was closed when the last run left it"),
        "{error}"
    );
}
