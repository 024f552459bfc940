//! A limit on the size of files in an outcome. The façade knows the limit of a command; that it was met shows in the
//! signal of the program, or in its words.

use crate::environment::{Environment, LimitCounts};
use crate::outcome::{LimitHit, LimitedResource, Outcome, end_of};
use crate::units::ByteCount;

/// The signal of a write beyond the limit.
const SIGXFSZ: i32 = 25;

/// What bash says of a program that died of it.
const DIED: &str = "File size limit exceeded";

/// What programs say that ignore the signal.
const SAID: [&str; 2] = ["File too large", "EFBIG"];

/// Has the environment add what it can tell to an outcome, and adds that the limit on file sizes was met.
pub(super) fn tell(
    environment: &dyn Environment,
    outcome: &mut Outcome,
    before: &LimitCounts,
    largest: Option<ByteCount>,
) {
    environment.tell(outcome, before);
    if let Some(bound) = largest
        && was_met(outcome)
    {
        outcome.limits_hit.push(LimitHit {
            limit: LimitedResource::FileSize,
            bound: bound.get(),
            peak: None,
            times: None,
            killed: Vec::new(),
            instead: format!("--file-size {}", option(bound.get().saturating_mul(2))),
        });
    }
}

fn was_met(outcome: &Outcome) -> bool {
    let by_signal = outcome.signal == Some(SIGXFSZ) || outcome.exit_code == Some(128 + SIGXFSZ);
    let says = |said: &[&str]| {
        [&outcome.stderr, &outcome.stdout].into_iter().any(|text| {
            let tail = end_of(text);
            said.iter().any(|said| tail.contains(said))
        })
    };
    // What went well may print these words of something else. Where both streams are one, as on a terminal, what failed
    // says it on standard output.
    by_signal || says(&[DIED]) || outcome.exit_code != Some(0) && says(&SAID)
}

/// A size as an option takes it, exactly.
fn option(bytes: u64) -> String {
    match bytes {
        bytes if bytes % (1 << 20) == 0 => format!("{}MiB", bytes >> 20),
        bytes if bytes % (1 << 10) == 0 => format!("{}KiB", bytes >> 10),
        bytes => bytes.to_string(),
    }
}
