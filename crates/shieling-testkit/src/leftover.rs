//! Counting what a command left behind, by a mark that its processes carry.
//!
//! Not by parent or group: those are what a process leaves by `setsid` and double forks.
#![expect(clippy::disallowed_methods, reason = "processes are counted in /proc")]

use std::fs;
use std::sync::atomic::{AtomicU32, Ordering};

/// The variable that carries the mark.
const VARIABLE: &str = "SHIELING_TEST_MARK";

/// A mark that no other test has. Put it into the environment of a command, or into its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Marker(String);

impl Marker {
    /// A new one.
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        Self(format!("shieling-test-{}-{next}-", std::process::id()))
    }

    /// The name and value of a variable that marks a process and all that it starts.
    pub fn variable(&self) -> (String, String) {
        (VARIABLE.to_owned(), self.0.clone())
    }

    /// The mark, to be used as an argument.
    pub fn text(&self) -> &str {
        &self.0
    }
}

impl Default for Marker {
    fn default() -> Self {
        Self::new()
    }
}

/// The processes, other than this one, that carry the mark in their arguments or environment.
/// Zombies have neither and are not counted.
///
/// # Platform notes
/// Linux; reads `/proc`. A process of another user hides its environment and is found by its
/// arguments only.
pub fn leftovers(marker: &Marker) -> Vec<u32> {
    let carries = |pid: u32, file: &str| {
        fs::read(format!("/proc/{pid}/{file}")).is_ok_and(|bytes| {
            bytes
                .windows(marker.0.len())
                .any(|window| window == marker.0.as_bytes())
        })
    };
    fs::read_dir("/proc")
        .expect("Linux with /proc")
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|pid| *pid != std::process::id())
        .filter(|pid| carries(*pid, "cmdline") || carries(*pid, "environ"))
        .collect()
}
