//! Pending questions to stateless clients: the request state that a client returns with an answer, and what the
//! answer applies to.
//!
//! The request state is 256 random bits; what it stands for is stored here. It can therefore be neither forged nor
//! read, applies to one call with the same arguments and to one subject, is consumed by the first try, and expires on
//! the monotonic clock. A sealed state would have to be stored as well, to be accepted only once.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::rand::{GetRandomFlags, getrandom};
use shieling::request::Digest;

/// The lifetime of a question.
const LASTS: Duration = Duration::from_secs(10 * 60);

/// The largest number of pending questions. Beyond it the oldest is dropped, and asked again.
const MOST: usize = 256;

/// The pending questions.
#[derive(Debug, Default)]
pub(crate) struct PendingStates {
    held: Mutex<VecDeque<PendingState>>,
}

#[derive(Debug)]
struct PendingState {
    /// The digest of the state, so that comparisons take constant time.
    state: Digest,
    /// The digest of the call.
    call: Digest,
    /// The digest of the subject.
    subject: Digest,
    until: Instant,
}

/// A state that does not belong to this call, or no longer does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the answer cannot be used: its request state is unknown, was used already, is too old or belongs to another call; nothing was started. Call again without it"
)]
pub(crate) struct Refused;

impl PendingStates {
    /// Creates a state for a question about `subject` during `call`. Returns `None` if the system provides no random
    /// bits.
    pub(crate) fn issue(&self, call: Digest, subject: Digest, now: Instant) -> Option<String> {
        let mut bits = [0_u8; 32];
        let filled = getrandom(&mut bits[..], GetRandomFlags::empty()).ok()?;
        if filled != bits.len() {
            return None;
        }
        let state = format!("shieling1.{}", Digest(bits));
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.retain(|one| now < one.until);
        if held.len() == MOST {
            held.pop_front();
        }
        held.push_back(PendingState {
            state: Digest::of(state.as_bytes()),
            call,
            subject,
            until: now + LASTS,
        });
        Some(state)
    }

    /// Consumes a state. Returns the subject, if the state was created for this call.
    pub(crate) fn redeem(&self, state: &str, call: Digest, now: Instant) -> Result<Digest, Refused> {
        let state = Digest::of(state.as_bytes());
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let at = held.iter().position(|one| one.state == state).ok_or(Refused)?;
        let one = held.remove(at).ok_or(Refused)?;
        if one.call == call && now < one.until {
            Ok(one.subject)
        } else {
            Err(Refused)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALL: Digest = Digest([1; 32]);
    const OTHER: Digest = Digest([2; 32]);
    const SUBJECT: Digest = Digest([3; 32]);

    #[test]
    fn a_state_holds_once_for_its_own_call_and_time() {
        let (states, now) = (PendingStates::default(), Instant::now());
        let issue = || states.issue(CALL, SUBJECT, now).expect("the system has random bits");
        let state = issue();
        assert_eq!(states.redeem(&state, CALL, now), Ok(SUBJECT));
        assert_eq!(states.redeem(&state, CALL, now), Err(Refused), "used already");

        let state = issue();
        assert_eq!(states.redeem(&state, OTHER, now), Err(Refused), "another call");
        assert_eq!(states.redeem(&state, CALL, now), Err(Refused), "used up by that");

        let state = issue();
        assert_eq!(states.redeem(&state, CALL, now + LASTS), Err(Refused), "too old");

        let tampered = format!("{}0", &issue()[..73]);
        assert!(
            states.redeem(&tampered, CALL, now).is_err() || issue() != tampered,
            "forged"
        );
        assert_eq!(states.redeem("", CALL, now), Err(Refused));
    }

    #[test]
    fn the_number_of_questions_that_are_out_is_bounded() {
        let (states, now) = (PendingStates::default(), Instant::now());
        let issue = || states.issue(CALL, SUBJECT, now).expect("the system has random bits");
        let first = issue();
        for _ in 0..MOST {
            issue();
        }
        assert_eq!(states.held.lock().expect("not poisoned").len(), MOST);
        assert_eq!(states.redeem(&first, CALL, now), Err(Refused), "forgotten");
    }
}
