//! What to do about a missing approval.

use crate::approval::Unanswered;

pub(super) fn remedy(unanswered: Option<Unanswered>, environment: &str) -> String {
    let asked_less = if environment == "local" {
        "start the server with `--env sandbox`, where commands are contained and only what the policy cannot decide is asked, or with `--approval policy`"
    } else {
        "start the server with a policy that decides it (`--allow PREFIX`, or a rule in `--policy FILE`), or without `--approval always`"
    };
    match unanswered {
        None => format!(
            "use a command that the policy allows by itself; or {asked_less}, and with a client that can ask a person (MCP elicitation)"
        ),
        Some(Unanswered::NoWay) => {
            format!(
                "this client cannot ask a person: have one wait at `shieling attach` in a terminal, use a client that has \
                 MCP elicitation, or {asked_less}"
            )
        }
        Some(Unanswered::Dismissed) => {
            "the person closed the question without an answer: tell them what you need, and try again when they agree"
                .to_owned()
        }
        Some(Unanswered::Unreadable) => {
            "the client's answer was none of those offered, so it counts as none: try again, or use another client"
                .to_owned()
        }
        Some(Unanswered::Failed(why)) => {
            format!("the client did not put the question ({why}): try again, or {asked_less}")
        }
    }
}
