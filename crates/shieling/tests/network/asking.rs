//! Whoever is asked about hosts that no rule names.

use std::sync::{Arc, Mutex};

use shieling::approval::{Answer, Approver, ApproverFn, Mode, Question, Scope};
use shieling::audit::{RecordKind, SinkFn};
use shieling::request::RequestKind;
use shieling::units::ByteCount;

use crate::place::{Place, Server, has};

type Asked = Arc<Mutex<Vec<String>>>;

/// What was recorded: the kinds of records, and of connections the host, the port and whether it was refused.
type Records = Arc<Mutex<Vec<(RecordKind, Option<String>)>>>;

/// Questions that were asked, and who answers them so.
fn answering(answer: Answer) -> (Arc<dyn Approver>, Asked) {
    let asked = Asked::default();
    let keep = Arc::clone(&asked);
    let approver = ApproverFn(move |question: &Question| {
        assert_eq!(question.kind, RequestKind::Network);
        keep.lock().expect("only pushed to").push(question.text.clone());
        answer.clone()
    });
    (Arc::new(approver), asked)
}

const TWICE: &str = "for i in 1 2; do curl -sS -m 20 http://unknown.example.invalid/; done; true";

#[test]
fn the_first_connection_to_another_host_waits_for_an_answer() {
    let server = Server::start();
    if !has("curl") {
        return;
    }
    let most = ByteCount::bytes(8);
    for (answer, questions, refusal, always) in [
        (
            Answer::No("not that one".to_owned()),
            1,
            Some("the answer was no to `unknown.example.invalid:80`: not that one"),
            0,
        ),
        (
            Answer::Nobody,
            1,
            Some("nobody is there to allow `unknown.example.invalid:80`"),
            0,
        ),
        (
            Answer::TooLong { most },
            1,
            Some("the question about `unknown.example.invalid:80` is too long to be shown whole"),
            0,
        ),
        (Answer::Yes(Scope::Once), 2, None, 0),
        (Answer::Yes(Scope::Always), 1, None, 1),
    ] {
        let (approver, asked) = answering(answer.clone());
        let place = Place::built(&[&server.host()], |builder| {
            builder.approval(Mode::OnAsk).approver(approver)
        });
        let network = place.run(TWICE).network.expect("the network was opened");
        let asked = asked.lock().expect("only pushed to").clone();
        assert_eq!(asked.len(), questions, "{answer:?}: {asked:?}");
        assert_eq!(asked[0], "connect unknown.example.invalid:80");
        assert_eq!(
            network
                .denied
                .iter()
                .find(|denied| denied.host == "unknown.example.invalid")
                .map(|denied| denied.because.as_str()),
            refusal,
            "{answer:?}: {network:?}"
        );
        assert_eq!(network.always.len(), always, "{answer:?}: {network:?}");
        // It was tried, and has no address.
        assert_eq!(
            network.connections.iter().any(|connection| connection.error.is_some()),
            refusal.is_none(),
            "{answer:?}: {network:?}"
        );
    }
}

#[test]
fn nobody_is_asked_where_asking_is_off() {
    let server = Server::start();
    let (approver, asked) = answering(Answer::Yes(Scope::Once));
    let place = Place::built(&[&server.host()], |builder| {
        builder.approval(Mode::Never).approver(approver)
    });
    if !has("curl") {
        return;
    }
    place.fails("curl -sS http://unknown.example.invalid/");
    assert!(asked.lock().expect("only pushed to").is_empty());
}

#[test]
fn connections_and_refusals_are_recorded() {
    let server = Server::start();
    let records = Records::default();
    let keep = Arc::clone(&records);
    let sink = SinkFn(move |record: &shieling::audit::Record| {
        let connection = record.connection.as_ref();
        let connection = connection.map(|one| format!("{}:{:?} {}", one.host, one.port, one.refused.is_some()));
        keep.lock().expect("only pushed to").push((record.kind, connection));
        Ok(())
    });
    let place = Place::built(&[&server.host()], |builder| {
        builder.approval(Mode::Never).audit(Arc::new(sink))
    });
    if !has("curl") {
        return;
    }
    place.run(&format!(
        "curl -sS http://{}/; curl -sS http://other.example.org/",
        server.host()
    ));
    // Their ends are recorded when the sandbox has ended, at the latest.
    place.end();
    let records = records.lock().expect("only pushed to").clone();
    let of_connections: Vec<_> = records
        .iter()
        .filter(|(kind, _)| *kind == RecordKind::Connection)
        .filter_map(|(_, connection)| connection.as_deref())
        .collect();
    let port = server.address.port();
    assert!(
        of_connections.contains(&format!("host.internal:Some({port}) false").as_str()),
        "{records:?}"
    );
    assert!(of_connections.contains(&"other.example.org:None true"), "{records:?}");
}
