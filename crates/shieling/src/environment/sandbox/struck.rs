//! Which limits were reached between two looks, as facts for an outcome. Names the option that allows more.

use crate::environment::LimitCounts;
use crate::outcome::{KILLED_TOLD, KilledProcess, LAST_LINES, LimitHit, LimitedResource, Outcome, end_of};

/// What programs say where a process or thread was refused them, in lower case; `fork` alone may be a word.
const REFUSED: [&str; 8] = [
    "fork: retry",
    "fork: resource temporarily unavailable",
    "cannot fork",
    "can't fork",
    "can't start new thread",
    "unable to create native thread",
    "pthread_create failed",
    "failed to create new os thread",
];

/// How programs word the refusal itself, and what of it says that a process or thread was meant, in lower case.
const NONE_LEFT: [&str; 4] = [
    "resource temporarily unavailable",
    "eagain",
    "os error 11",
    "code: 11, kind: wouldblock",
];
const STARTING: [&str; 6] = ["fork", "spawn", "thread", "clone", "new process", "what():"];

/// The limits that were reached between `before` and `now`, told with a command that has this outcome.
pub(super) fn hits(outcome: &Outcome, before: &LimitCounts, now: &LimitCounts) -> Vec<LimitHit> {
    let Some(counts) = &now.of else {
        return Vec::new();
    };
    // A jail that was made meanwhile began at nothing.
    let same = before.of.as_ref().is_some_and(|of| std::sync::Arc::ptr_eq(of, counts));
    let before = if same { before.struck } else { Default::default() };
    let mut hits = Vec::new();
    let kills = now.struck.kills.saturating_sub(before.kills);
    if kills > 0
        && let Some(bound) = counts.limits.memory
    {
        let killed = counts.killed(before, now.struck);
        let seen = killed.iter().map(|one| one.all).max();
        let from = killed.len().saturating_sub(KILLED_TOLD);
        let told = killed.iter().skip(from).map(|one| KilledProcess {
            pid: one.number,
            name: name(&one.name),
            bytes: one.bytes,
        });
        hits.push(LimitHit {
            limit: LimitedResource::Memory,
            bound,
            peak: counts.peak().or(seen),
            times: Some(kills),
            killed: told.collect(),
            instead: format!("--memory {}", size(bound.saturating_mul(2))),
        });
    }
    let refusals = now.struck.refusals.saturating_sub(before.refusals);
    let told = counts.tasks_uncounted && (tells(&outcome.stderr, usize::MAX) || tells(&outcome.stdout, LAST_LINES));
    if (refusals > 0 || told)
        && let Some(bound) = counts.limits.pids
    {
        hits.push(LimitHit {
            limit: LimitedResource::Pids,
            bound,
            peak: None,
            times: (refusals > 0).then_some(refusals),
            killed: Vec::new(),
            instead: format!("--pids {}", bound.saturating_mul(2)),
        });
    }
    hits
}

/// Whether these last lines say that a process or thread was refused. The only trace of it where the limit is a
/// resource limit.
fn tells(said: &str, lines: usize) -> bool {
    let tail = end_of(said).to_ascii_lowercase();
    let has = |line: &str, words: &[&str]| words.iter().any(|word| line.contains(word));
    tail.lines().rev().take(lines).any(|line| {
        has(line, &REFUSED)
            || has(line, &NONE_LEFT) && has(line, &STARTING)
            // Python names the call only in what stands above.
            || line.starts_with("blockingioerror: [errno 11]") && has(&tail, &["fork_exec", "os.fork"])
    })
}

/// A name as text: it is whatever the program has called itself.
fn name(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    let text = String::from_utf8_lossy(bytes.get(..end).unwrap_or_default());
    text.chars()
        .map(|sign| if sign.is_control() { '?' } else { sign })
        .collect()
}

/// A size as an option takes it.
fn size(bytes: u64) -> String {
    const MIB: u64 = 1 << 20;
    match bytes.div_ceil(MIB) {
        mebibytes if mebibytes % 1024 == 0 => format!("{}GiB", mebibytes / 1024),
        mebibytes => format!("{mebibytes}MiB"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_what_the_kernel_kept_of_it_and_forges_nothing() {
        assert_eq!(name(b"python3\0\0\0"), "python3");
        assert_eq!(name(b"a\nb\x1b[2J\xff"), "a?b?[2J\u{fffd}");
        assert_eq!(name(b""), "");
    }

    #[test]
    fn what_programs_say_when_they_may_not_start_another_is_known() {
        for said in [
            "bash: fork: retry: Resource temporarily unavailable",
            "bash: fork: Resource temporarily unavailable",
            "RuntimeError: can't start new thread",
            "java.lang.OutOfMemoryError: unable to create native thread: possibly out of memory",
            "make: vfork: Resource temporarily unavailable",
            "Error: spawn sleep EAGAIN",
            "  what():  Resource temporarily unavailable",
            "libgomp: Thread creation failed: Resource temporarily unavailable",
            "failed to spawn thread: Os { code: 11, kind: WouldBlock, message: \"Resource temporarily unavailable\" }",
            "    self.pid = _fork_exec(\nBlockingIOError: [Errno 11] Resource temporarily unavailable",
        ] {
            assert!(tells(&format!("first\n{said}\nlast"), usize::MAX), "{said}");
            assert!(!tells(&format!("{said}\n{}", "\n".repeat(20)), LAST_LINES), "{said}");
        }
        for other in [
            "fork me on a page",
            "Resource temporarily unavailable",
            "BlockingIOError: [Errno 11] Resource temporarily unavailable",
            "",
        ] {
            assert!(!tells(other, usize::MAX), "{other}");
        }
    }

    #[test]
    fn a_size_is_written_as_the_option_takes_it() {
        assert_eq!(size(2 << 30), "2GiB");
        assert_eq!(size(512 << 20), "512MiB");
        assert_eq!(size(200_000_000), "191MiB");
    }
}
