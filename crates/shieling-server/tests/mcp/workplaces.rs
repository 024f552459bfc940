//! Who works where, and when it is closed: what the rules of `Workplaces` say.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

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
