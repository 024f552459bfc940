//! Audit sinks that record or fail.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use shieling::audit::{Record, RecordKind, Sink};

/// A sink that keeps every record in memory.
#[derive(Debug, Default)]
pub struct RecordingSink {
    records: Mutex<Vec<Record>>,
}

impl RecordingSink {
    /// Creates a sink without records.
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Returns the records so far, in order.
    pub fn records(&self) -> Vec<Record> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the kinds of the records, in order.
    pub fn kinds(&self) -> Vec<RecordKind> {
        self.records().iter().map(|record| record.kind).collect()
    }
}

impl Sink for RecordingSink {
    fn append(&self, record: &Record) -> io::Result<()> {
        self.records
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(record.clone());
        Ok(())
    }
}

/// A sink that fails for records of one kind.
#[derive(Debug)]
pub struct FailingSink(pub RecordKind);

impl Sink for FailingSink {
    fn append(&self, record: &Record) -> io::Result<()> {
        if record.kind == self.0 {
            Err(io::Error::other("the disk is full"))
        } else {
            Ok(())
        }
    }
}
