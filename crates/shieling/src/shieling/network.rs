//! The façade's part of a network that is opened by name: who is asked about a host, and how connections are recorded.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::entry::run_id;
use crate::approval::{Answer as Said, ApprovalContext, Approver, Question, Scope};
use crate::audit::{ConnectionRecord, Record, RecordKind, RequestRecord, Sink};
use crate::network::{self, Answer, Asker, Attempt, BoxFuture, Connection, Denied, Observer, Rule};
use crate::policy::{ConnectRule, Decision, Reason, Verdict};
use crate::request::{Connect, Digest};

/// The rule of reasons about hosts that no rule of the policy names.
const RULE: &str = "network";

/// What of the façade an attempt is judged and recorded with.
#[derive(Clone)]
pub(super) struct Case {
    pub(super) environment: String,
    pub(super) workspace: std::path::PathBuf,
    pub(super) policy: Digest,
}

/// Asks the approver about hosts.
pub(super) struct ByApprover {
    pub(super) approver: Arc<dyn Approver>,
    pub(super) case: Case,
    pub(super) answer_timeout: Duration,
}

impl Asker for ByApprover {
    fn ask(&self, attempt: Attempt) -> BoxFuture<'_, Answer> {
        Box::pin(async move {
            let request = Connect::new(&attempt.host, Some(attempt.port), &self.case.workspace);
            let because = attempt.because.clone();
            let verdict = Verdict {
                decision: Decision::Ask,
                reasons: vec![Reason {
                    decision: Decision::Ask,
                    rule: RULE.to_owned(),
                    object: format!("{}:{}", attempt.host, attempt.port),
                    span: None,
                    because: because.unwrap_or_else(|| "a command connects to it, and no rule allows it".to_owned()),
                    instead: Some(format!("`--allow-host {}` allows it from the start", attempt.rule)),
                }],
                commands: Vec::new(),
                effects: Vec::new(),
            };
            let case = ApprovalContext {
                verdict: &verdict,
                policy: self.case.policy,
                environment: &self.case.environment,
                session: None,
            };
            let question = Question::new(&request, &case, Vec::new());
            match tokio::time::timeout(self.answer_timeout, self.approver.ask(&question)).await {
                Ok(Said::Yes(Scope::Once)) => Answer::Once,
                Ok(Said::Yes(Scope::Always)) => Answer::Always,
                Ok(Said::Yes(Scope::Exact(_) | Scope::Prefix(..) | Scope::Session(_))) => Answer::Session,
                Ok(Said::No(reason)) => Answer::No(reason),
                Ok(Said::Nobody) => Answer::Nobody,
                Ok(Said::TooLong { .. }) => Answer::TooLong,
                Err(_) => Answer::NoAnswer,
            }
        })
    }
}

/// Records connections.
pub(super) struct Recording {
    pub(super) sink: Arc<dyn Sink>,
    pub(super) case: Case,
    pub(super) born: Instant,
    pub(super) number: AtomicU64,
}

impl Recording {
    fn append(&self, connection: ConnectionRecord) {
        let request = Connect::new(&connection.host, connection.port, &self.case.workspace);
        // Its numbers begin where no run of a command comes.
        let number = u64::MAX - self.number.fetch_add(1, Ordering::Relaxed);
        let since = self.born.elapsed().as_secs_f64() * 1_000.0;
        let environment = &self.case.environment;
        let kind = RecordKind::Connection;
        let mut record = Record::new(kind, run_id(number), since, &request, environment, self.case.policy);
        record.connection = Some(connection);
        // The connection is over. A log that takes no record any more lets no further command start.
        let _ = self.sink.append(&record);
    }
}

impl Observer for Recording {
    fn connection(&self, connection: &Connection) {
        if connection.end == network::End::Refused {
            return;
        }
        let requests = connection.requests.iter().map(|request| RequestRecord {
            method: request.method.clone(),
            path: request.path.clone(),
            status: request.status,
        });
        self.append(ConnectionRecord {
            host: connection.host.clone(),
            port: Some(connection.port),
            address: connection.address.map(|address| address.to_string()),
            bytes_in: connection.bytes_in,
            bytes_out: connection.bytes_out,
            duration_ms: u64::try_from(connection.duration.as_millis()).unwrap_or(u64::MAX),
            error: network::failure(&connection.end),
            refused: None,
            requests: requests.collect(),
            requests_total: connection.requests_total,
        });
    }

    fn denied(&self, denied: &Denied) {
        self.append(ConnectionRecord {
            host: denied.host.clone(),
            port: denied.port,
            address: None,
            bytes_in: 0,
            bytes_out: 0,
            duration_ms: 0,
            error: None,
            refused: Some(denied.because.clone()),
            requests: Vec::new(),
            requests_total: 0,
        });
    }
}

/// The rules of a policy, as the gateway takes them.
pub(super) fn rules(policy: &[ConnectRule]) -> Vec<Rule> {
    let each = |rule: &ConnectRule| {
        let (decision, because, instead) = (rule.decision, rule.because.clone(), rule.instead.clone());
        let because = because.unwrap_or_else(|| format!("the rule {} says so", rule.name));
        rule.hosts.clone().into_iter().map(move |host| Rule {
            host,
            decision: match decision {
                Decision::Allow => network::Decision::Allow,
                Decision::Ask => network::Decision::Ask,
                Decision::Deny => network::Decision::Deny,
            },
            because: Some(because.clone()),
            instead: instead.clone(),
        })
    };
    policy.iter().flat_map(each).collect()
}
