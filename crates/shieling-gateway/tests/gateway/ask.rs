//! Hosts that somebody is asked about.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use hickory_proto::op::ResponseCode;
use hickory_proto::rr::RecordType;
use shieling_gateway::{Answer, Asker, Attempt, BoxFuture, Decision, GatewayConfig, Limits, Rule};

use crate::gateway::fixture::{Fixture, address, config, is_refused, query};
use crate::gateway::servers::{self, itself};

/// Answers with the given answers, one after another, and never after the last.
struct Person {
    answers: Mutex<Vec<Answer>>,
    asked: Mutex<Vec<Attempt>>,
}

impl Asker for Person {
    fn ask(&self, attempt: Attempt) -> BoxFuture<'_, Answer> {
        self.asked.lock().unwrap().push(attempt);
        let answer = self.answers.lock().unwrap().pop();
        Box::pin(async move {
            match answer {
                Some(answer) => {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    answer
                }
                None => std::future::pending().await,
            }
        })
    }
}

async fn fixture(answers: &[Answer]) -> (Fixture, Arc<Person>) {
    let answers = answers.iter().rev().cloned().collect();
    let person = Arc::new(Person {
        answers: Mutex::new(answers),
        asked: Mutex::default(),
    });
    let limits = Limits {
        answer_wait: Duration::from_millis(300),
        unknown_names: 3,
        ..Limits::default()
    };
    let fixture = Fixture::with(GatewayConfig {
        asker: Some(person.clone()),
        limits,
        ..config(&["known.example"])
    });
    fixture.table.set("new.example", "93.184.0.10");
    servers::http("93.184.0.10:80", itself).await;
    (fixture, person)
}

const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: new.example\r\n\r\n";

space_tests! {
    async fn the_first_connection_waits_for_a_yes_that_stands_for_the_session() {
        let (fixture, person) = fixture(&[Answer::Session]).await;
        address("new.example").await;
        assert!(person.asked.lock().unwrap().is_empty(), "a lookup asks nobody");
        assert!(fixture.table.asked().is_empty(), "and nothing of it leaves");
        for _ in 0..2 {
            let answer = fixture.exchange("new.example", 80, GET).await;
            assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        }
        let asked = person.asked.lock().unwrap().clone();
        assert_eq!(asked.len(), 1);
        assert_eq!((asked[0].host.as_str(), asked[0].port, asked[0].rule.to_string()), ("new.example", 80, "new.example".to_owned()));
        assert!(fixture.report().denied.is_empty());
    }

    async fn a_rule_that_asks_tells_its_reason_and_one_that_refuses_asks_nobody() {
        let person = Arc::new(Person { answers: Mutex::new(vec![Answer::Once]), asked: Mutex::default() });
        let mut config = config(&["*.example"]);
        let rule = |host: &str, decision| Rule { decision, because: Some("it costs money".to_owned()), ..Rule::allow(host.parse().unwrap()) };
        config.rules.extend([rule("paid.example", Decision::Ask), rule("bad.example:80", Decision::Deny)]);
        let fixture = Fixture::with(GatewayConfig { asker: Some(person.clone()), ..config });
        fixture.table.set("paid.example", "93.184.0.10");
        servers::http("93.184.0.10:80", itself).await;
        let answer = fixture.exchange("paid.example", 80, b"GET / HTTP/1.1\r\nHost: paid.example\r\n\r\n").await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        assert_eq!(person.asked.lock().unwrap()[0].because.as_deref(), Some("it costs money"));
        assert!(is_refused((address("bad.example").await, 80).into()).await);
        assert_eq!(fixture.denied("bad.example", Some(80)).await, "it costs money");
        assert_eq!(person.asked.lock().unwrap().len(), 1);
    }

    async fn once_is_for_one_connection_and_no_refuses() {
        let (fixture, person) = fixture(&[Answer::Once, Answer::No("it costs money".to_owned())]).await;
        assert!(fixture.exchange("new.example", 80, GET).await.starts_with("HTTP/1.1 200"));
        assert_eq!(fixture.exchange("new.example", 80, GET).await, "");
        assert!(is_refused((address("new.example").await, 80).into()).await);
        assert_eq!(person.asked.lock().unwrap().len(), 2);
        assert_eq!(fixture.denied("new.example", Some(80)).await, "the answer was no to `new.example:80`: it costs money");
        assert_eq!(fixture.table.asked().len(), 1);
    }

    async fn what_is_no_answer_of_a_person_is_not_told_as_one() {
        let (fixture, _) = fixture(&[Answer::Nobody, Answer::NoAnswer, Answer::TooLong]).await;
        for (host, because) in [
            ("a.example", "nobody is there to allow `a.example:80`"),
            ("b.example", "no answer came in time about `b.example:80`"),
            ("c.example", "the question about `c.example:80` is too long to be shown whole"),
        ] {
            assert_eq!(fixture.exchange(host, 80, GET).await, "");
            assert_eq!(fixture.denied(host, Some(80)).await, because);
        }
        assert!(fixture.report().denied.iter().all(|denied| denied.instead.is_some()));
    }

    async fn no_answer_is_a_refusal_after_a_bounded_wait() {
        let (fixture, _) = fixture(&[]).await;
        let began = std::time::Instant::now();
        assert_eq!(fixture.exchange("new.example", 80, GET).await, "");
        assert!(began.elapsed() < Duration::from_secs(20));
        let report = fixture.reported(|report| !report.denied.is_empty()).await;
        assert!(report.denied[0].because.contains("no answer came in time"));
        assert_eq!(report.denied[0].instead.as_deref(), Some("`--allow-host new.example`"));
    }

    async fn unknown_names_are_bounded_and_known_ones_still_have_room() {
        let (_fixture, _) = fixture(&[]).await;
        let mut given = 0;
        for number in 0..10 {
            given += query(&format!("n{number}.example"), RecordType::A).await.answers.len();
        }
        assert_eq!(given, 3);
        assert_eq!(query("n9.example", RecordType::A).await.metadata.response_code, ResponseCode::ServFail);
        address("known.example").await;
        // A name that is not to be asked about.
        assert_eq!(query("host.internal", RecordType::A).await.metadata.response_code, ResponseCode::NXDomain);
    }
}
