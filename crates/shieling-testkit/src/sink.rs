//! Audit sinks that remember, or fail.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use shieling::audit::{Kind, Record, Sink};

/// A sink that keeps every record in memory.
#[derive(Debug, Default)]
pub struct Recording {
    records: Mutex<Vec<Record>>,
}

impl Recording {
    /// An empty one.
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// What was recorded so far, in order.
    pub fn records(&self) -> Vec<Record> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The kinds of what was recorded, in order.
    pub fn kinds(&self) -> Vec<Kind> {
        self.records().iter().map(|record| record.kind).collect()
    }
}

impl Sink for Recording {
    fn append(&self, record: &Record) -> io::Result<()> {
        self.records
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(record.clone());
        Ok(())
    }
}

/// A sink that refuses records of one kind and takes all others.
#[derive(Debug)]
pub struct Broken(pub Kind);

impl Sink for Broken {
    fn append(&self, record: &Record) -> io::Result<()> {
        if record.kind == self.0 {
            Err(io::Error::other("the disk is full"))
        } else {
            Ok(())
        }
    }
}
