//! The library's part that is not merged yet, as far as `run.rs` and `approver.rs` need it.
//!
//! Nothing in here does anything but say so. To be deleted on merge.
#![allow(dead_code, reason = "these stand for the library's own types until it is merged")]

use std::collections::BTreeMap;
use std::path::Path;

use shieling::outcome::Outcome;
use shieling::policy::Verdict;
use shieling::request::Command;

use crate::approver::{Question, Terminal};
use crate::plan::Plan;
use crate::run::Chain;

pub(crate) struct NotMerged;

#[derive(Clone, Copy)]
pub(crate) enum Stream {
    Stdout,
    Stderr,
}

pub(crate) trait Tee: Send {
    fn bytes(&mut self, stream: Stream, bytes: &[u8]);
}

pub(crate) struct Shieling;

impl Shieling {
    pub(crate) fn build(plan: &Plan, approver: Option<Terminal>, _state: Option<&Path>) -> Result<Self, NotMerged> {
        // All that the library has to be told.
        let _place = (plan.env, &plan.workspace, &plan.shell, &plan.audit);
        let _rules = (&plan.policies, plan.readonly, &plan.ignore, plan.approval);
        let _limits = plan.rate.map(|rate| rate.to_string());
        let _lists = plan.allow.iter().chain(&plan.deny).map(crate::options::Prefix::as_str);
        let _ask = approver.map(|terminal| move |question: &Question<'_>| terminal.ask(question));
        Err(NotMerged)
    }

    pub(crate) fn judge(&self, _: &Command) -> Result<Verdict, NotMerged> {
        Err(NotMerged)
    }

    #[expect(clippy::unused_async, reason = "the library's is async")]
    pub(crate) async fn run(&self, _: Command, _: Option<Box<dyn Tee>>) -> Result<Outcome, NotMerged> {
        Err(NotMerged)
    }

    pub(crate) fn describe(&self) -> Result<(String, serde_json::Value), NotMerged> {
        Err(NotMerged)
    }
}

pub(crate) fn variables(
    _: std::env::VarsOs,
    _: &[String],
    _: &[(String, String)],
) -> Result<BTreeMap<String, String>, NotMerged> {
    Err(NotMerged)
}

pub(crate) fn check_policy(_: &Path, _: &str) -> Result<Vec<crate::run::Example>, NotMerged> {
    Err(NotMerged)
}

pub(crate) fn preset(_: &str) -> Result<String, NotMerged> {
    Err(NotMerged)
}

pub(crate) fn verify(_: &Path, _: Option<&str>) -> Result<Chain, NotMerged> {
    let _either = [
        Chain::Whole { records: 0, head: None },
        Chain::Broken {
            line: 0,
            why: String::new(),
        },
    ];
    Err(NotMerged)
}

pub(crate) fn read_spilled(_: &Path, _: &str, _: Stream, _: u64, _: u64) -> Result<crate::run::Piece, NotMerged> {
    Err(NotMerged)
}
