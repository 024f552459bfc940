//! Which questions about changes were asked: a person is not asked about the same change twice.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::request::Digest;

/// How many changes are remembered that were asked about. The oldest is forgotten, and would be asked about again.
const REMEMBERED: usize = 1024;

/// Which questions were asked.
#[derive(Debug)]
pub(super) struct Questions {
    /// Whether a person is asked about what was held back.
    pub(super) is_on_about_held_back: bool,
    asked: Mutex<VecDeque<Digest>>,
}

impl Questions {
    pub(super) fn new(is_on_about_held_back: bool) -> Self {
        Self {
            is_on_about_held_back,
            asked: Mutex::default(),
        }
    }

    /// Whether this was asked.
    pub(super) fn was_asked(&self, question: Digest) -> bool {
        self.lock().contains(&question)
    }

    /// Whether this is to be asked, for the first time. From now on it counts as asked.
    pub(super) fn is_new(&self, question: Digest) -> bool {
        let mut asked = self.lock();
        if asked.contains(&question) {
            return false;
        }
        if asked.len() == REMEMBERED {
            asked.pop_front();
        }
        asked.push_back(question);
        true
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Digest>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_question_is_asked_once_and_what_is_remembered_is_bounded() {
        let questions = Questions::new(true);
        let number = |number: usize| Digest::of(&number.to_le_bytes());
        assert!(questions.is_new(number(0)) && !questions.is_new(number(0)));
        for one in 1..=REMEMBERED {
            assert!(questions.is_new(number(one)));
        }
        assert!(questions.is_new(number(0)), "forgotten");
    }
}
