//! Questions that are out with a stateless client: what it gives back with the answer, and what that
//! answer is good for.
//!
//! The state that a client carries is 256 random bits, and what they stand for stays here. So it can
//! neither be forged nor read, it holds for one call with the same arguments and for one question about
//! the same thing, it is used up by the first try, and its time is the monotonic clock's. A sealed
//! state would have to be remembered as well, to be used only once.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::rand::{GetRandomFlags, getrandom};
use shieling::request::Digest;

/// How long an answer is waited for.
const LASTS: Duration = Duration::from_secs(10 * 60);

/// How many questions can be out at a time. Beyond it the oldest is forgotten, and asked again.
const MOST: usize = 256;

/// The questions that are out.
#[derive(Debug, Default)]
pub(crate) struct States {
    held: Mutex<VecDeque<Held>>,
}

#[derive(Debug)]
struct Held {
    /// The digest of the state, so that comparing takes the same time for each.
    state: Digest,
    /// The digest of the call that it belongs to.
    call: Digest,
    /// The digest of what was asked about.
    subject: Digest,
    until: Instant,
}

/// A state that does not belong to this call, or not any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the answer cannot be used: its request state is unknown, was used already, is too old or belongs to another call; nothing was started. Call again without it"
)]
pub(crate) struct Refused;

impl States {
    /// A state for a question about `subject` in the course of `call`; nothing if the system gives no
    /// random bits.
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
        held.push_back(Held {
            state: Digest::of(state.as_bytes()),
            call,
            subject,
            until: now + LASTS,
        });
        Some(state)
    }

    /// What was asked about, if the state was issued for this call. Whatever comes of it, the state is
    /// used up.
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
        let (states, now) = (States::default(), Instant::now());
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
        let (states, now) = (States::default(), Instant::now());
        let issue = || states.issue(CALL, SUBJECT, now).expect("the system has random bits");
        let first = issue();
        for _ in 0..MOST {
            issue();
        }
        assert_eq!(states.held.lock().expect("not poisoned").len(), MOST);
        assert_eq!(states.redeem(&first, CALL, now), Err(Refused), "forgotten");
    }
}
