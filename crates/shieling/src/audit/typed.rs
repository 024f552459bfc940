//! What a record says of something typed into a job: how much, never what.
//!
//! What reads it is not known, and whether a terminal shows what is typed says nothing for sure, so that
//! each text may be a password. Reasons and files are left out as well, since they quote it.

use std::fmt;

use serde::Serialize;

use super::{Judged, Record, Refusal};
use crate::policy::Reason;
use crate::request::Digest;

/// The largest number of keys that a record names; the rest is counted.
pub const MAX_KEYS: usize = 64;

/// Something that was typed into a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Typed {
    /// The job.
    pub job: String,
    /// How many bytes of text, keys that are characters included.
    pub bytes: u64,
    /// The names of the first [`MAX_KEYS`] other keys, after the text.
    pub keys: Vec<String>,
    /// How many more there were.
    pub keys_omitted: usize,
}

impl fmt::Display for Typed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.bytes == 1 { "" } else { "s" };
        write!(f, "typed {} byte{plural} into job {}", self.bytes, self.job)?;
        if !self.keys.is_empty() {
            write!(f, ", then {}", self.keys.join(" "))?;
        }
        if self.keys_omitted > 0 {
            write!(f, " and {} more", self.keys_omitted)?;
        }
        Ok(())
    }
}

impl Record {
    /// Has the record report that `text` was typed, without the text.
    pub(crate) fn set_typed(&mut self, text: &str, typed: Typed) {
        self.command_digest = Digest::of(format!("{}\n{text}", self.run).as_bytes());
        self.command = typed.to_string();
        self.typed = Some(typed);
    }

    /// Removes what may quote the text that was typed, if that is what the record reports.
    pub(crate) fn unquote(&mut self) {
        let Some(typed) = &self.typed else { return };
        let object = format!("job {}", typed.job);
        let judged = self.verdict.as_mut().map(|Judged { reasons, .. }| reasons);
        let refused = self.denial.as_mut().map(|Refusal { reasons, .. }| reasons);
        for Reason {
            object: of,
            span,
            because,
            instead,
            decision: _,
            rule: _,
        } in judged.into_iter().chain(refused).flatten()
        {
            of.clone_from(&object);
            *span = None;
            "what was typed is not repeated here".clone_into(because);
            *instead = None;
        }
        if let Some(grant) = &mut self.grant {
            grant.files.clear();
        }
    }
}
