//! Counts the processes that a command left behind, by a marker that they carry.
//!
//! Parents and process groups do not identify them, since `setsid` and double forks change both.
#![expect(clippy::disallowed_methods, reason = "processes are counted in /proc")]

use std::fs;
use std::sync::atomic::{AtomicU32, Ordering};

/// The variable that contains the marker.
const VARIABLE: &str = "SHIELING_TEST_MARK";

/// A unique marker. Put it into the environment or the text of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Marker(String);

impl Marker {
    /// Creates a marker.
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        Self(format!("shieling-test-{}-{next}-", std::process::id()))
    }

    /// Returns the name and the value of a variable that marks a process and its descendants.
    pub fn variable(&self) -> (String, String) {
        (VARIABLE.to_owned(), self.0.clone())
    }

    /// Returns the marker as an argument.
    pub fn text(&self) -> &str {
        &self.0
    }
}

impl Default for Marker {
    fn default() -> Self {
        Self::new()
    }
}

/// Returns the processes, other than this one, with the marker in their arguments or environment. Zombies have
/// neither and are not counted.
///
/// # Platform notes
/// Linux only; reads `/proc`. The environment of another user's process is hidden, so it is only found by its
/// arguments.
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
