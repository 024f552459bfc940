//! Parses texts with bashkit, under bounds of our own.

use std::time::Duration;

use bashkit::ExecutionLimits;
use bashkit::parser::{Parser, Script};

/// A deadline that is never reached: callers apply their own.
const EVER: Duration = Duration::from_secs(30 * 365 * 86_400);

/// The largest number of iterations of a text's loops, and of those of a call of `awk`.
const LOOPS: usize = 100_000_000;

/// The largest number of `time` in a text. Bashkit counts the depth of every other command.
const TIMES: usize = 1_000;

/// Returns whether a text may contain so many nested `time` that parsing it overflows the stack.
pub(super) fn is_deep(text: &str) -> bool {
    // A word may be continued on the next line.
    let words = text.replace("\\\n", "");
    let words = words.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    words.filter(|word| *word == "time").nth(TIMES).is_some()
}

/// Parses a text as bashkit does.
pub(super) fn parsed(text: &str) -> bashkit::Result<Script> {
    let limits = limits(0);
    Parser::with_limits(text, limits.max_ast_depth, limits.max_parser_operations).parse()
}

/// Removes bashkit's bounds that the deadline replaces; those that protect its stack and its memory stay.
pub(super) fn limits(memory: u64) -> ExecutionLimits {
    let mut limits = ExecutionLimits::new();
    limits.max_work_units = u64::MAX;
    limits.max_aggregate_input_bytes = u64::MAX;
    limits.max_live_intermediate_bytes = memory;
    limits.max_commands = usize::MAX;
    // Loops of `awk` look for an interruption at their statements only, and may have none.
    limits.max_loop_iterations = LOOPS;
    limits.max_total_loop_iterations = LOOPS;
    limits.timeout = EVER;
    limits.parser_timeout = EVER;
    limits.max_parser_operations = 100_000_000;
    limits.max_stdout_bytes = usize::try_from(memory).unwrap_or(usize::MAX);
    limits.max_stderr_bytes = limits.max_stdout_bytes;
    limits.max_word_split_fields = 10_000_000;
    limits.max_word_split_bytes = limits.max_stdout_bytes;
    limits
}
