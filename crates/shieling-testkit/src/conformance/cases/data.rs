//! Large and binary output.

use shieling::units::ByteCount;

use crate::conformance::case::{Case, case, check, run};
use crate::conformance::expect::{DescribeError as _, holds, same};

/// The default bound of each stream.
const KEPT: u64 = 64 * 1024;

pub(crate) fn cases() -> Vec<Case> {
    vec![
        case("each of 256 values of a byte is counted once", [
            run("for i in 0 1 2 3; do for j in 0 1 2 3 4 5 6 7; do for k in 0 1 2 3 4 5 6 7; do printf \"\\\\$i$j$k\"; done; done; done")
                .noisy()
                .bytes(256, 0),
        ]),
        check("output that fits is whole", |context| {
            Box::pin(async move {
                let text = "i=0; while [ $i -lt 1024 ]; do printf workspace; printf workspace >&2; i=$((i+1)); done";
                let outcome = context.run(text).await;
                let whole = "workspace".repeat(1024);
                same("truncated", outcome.truncated, false)?;
                holds("stdout whole", outcome.stdout == whole, &outcome.described())?;
                holds("stderr whole", outcome.stderr == whole, &outcome.described())
            })
        }),
        check("output as long as is kept is whole, and one byte more is not", |context| {
            Box::pin(async move {
                for (length, truncated) in [(KEPT, false), (KEPT + 1, true)] {
                    let outcome = context.run(&format!("head -c {length} big")).await;
                    same("bytes", outcome.stdout_bytes, length)?;
                    same(&format!("truncated at {length}"), outcome.truncated, truncated)?;
                }
                Ok(())
            })
        })
        .programs(&["head"])
        .file("big", "x".repeat(1_000_000)),
        check("of more output than is kept, the first and the last stay, and the rest is counted", |context| {
            Box::pin(async move {
                let outcome = context.run("seq 1 200000").await;
                let (first, last) = (outcome.stdout.starts_with("1\n2\n3\n"), outcome.stdout.ends_with("199999\n200000\n"));
                holds("first and last lines", first && last, &outcome.described())?;
                same("bytes", outcome.stdout_bytes, 1_288_895)?;
                same("truncated", outcome.truncated, true)?;
                let most = usize::try_from(KEPT).unwrap_or(usize::MAX) + 1_000;
                holds("not much more than is kept", outcome.stdout.len() < most, &outcome.stdout.len().to_string())
            })
        })
        .programs(&["seq"]),
        check("how much is kept can be chosen", |context| {
            Box::pin(async move {
                let command = context.command("seq 1 10000; echo e >&2");
                let command = command.with_output_kept(ByteCount::bytes(100)).expect("more than zero");
                let outcome = context.shieling.run(command, None).await;
                same("truncated", outcome.truncated, true)?;
                same("stderr", outcome.stderr.as_str(), "e\n")?;
                holds("little", outcome.stdout.len() < 400, &outcome.stdout)
            })
        })
        .programs(&["seq"]),
        check("64 MiB are counted and not remembered", |context| {
            Box::pin(async move {
                let outcome = context.run("head -c 67108864 /dev/zero").await;
                same("bytes", outcome.stdout_bytes, 64 << 20)?;
                same("the end", outcome.exit_code, Some(0))?;
                holds("little kept", outcome.stdout.len() < 200_000, &outcome.stdout.len().to_string())
            })
        })
        .programs(&["head"])
        .needs([crate::conformance::case::Need::Can(shieling::environment::Ability::Processes)]),
        check("much on both streams at once is no deadlock", |context| {
            Box::pin(async move {
                let text = "cat big >&2; cat big; cat big >&2";
                let outcome = context.run(text).await;
                same("bytes", (outcome.stdout_bytes, outcome.stderr_bytes), (1_000_000, 2_000_000))
            })
        })
        .programs(&["cat"])
        .file("big", "x".repeat(1_000_000)),
        check("a line of a megabyte is one line", |context| {
            Box::pin(async move {
                let outcome = context.run("cat big | wc -lc").await;
                let counts: Vec<_> = outcome.stdout.split_whitespace().collect();
                same("lines and bytes", counts, vec!["0", "1000000"])
            })
        })
        .programs(&["cat", "wc"])
        .file("big", "x".repeat(1_000_000)),
        check("a large file passes through a command unchanged", |context| {
            Box::pin(async move {
                let said = context.says("cat big > copy; cmp big copy && wc -c < copy").await?;
                same("its size", said.trim(), "3000000")
            })
        })
        .programs(&["cat", "cmp", "wc"])
        .file("big", (0..3_000_000_u32).map(|context| context.to_le_bytes()[context as usize % 3]).collect::<Vec<u8>>()),
        check("a document of 300 KB in the text is read whole", |context| {
            Box::pin(async move {
                let document = "0123456789abcde\n".repeat(20_000);
                let said = context.says(&format!("wc -c <<'END'\n{document}END")).await?;
                same("its size", said.trim(), "320000")
            })
        })
        .programs(&["wc"]),
    ]
}
