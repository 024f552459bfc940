//! What is written: files, disks, output.

use std::fs;
use std::sync::Arc;

use shieling::Shieling;
use shieling::approval::Mode;
use shieling::policy::Policy;
use shieling::units::ByteCount;
use shieling_jail::plan::Limits;

use super::{MIB, during, limited};
use crate::support::{Checked, Field, check, line};

pub(super) fn file_size(field: &Field<'_>) -> Checked {
    let place = field.place().start()?;
    let shieling = Shieling::builder(Arc::clone(&place.sandbox) as _, Policy::open(), place.work())
        .approval(Mode::Never)
        .build()
        .expect("it serves no other policy");
    let run = |text: &str| -> Checked<_> {
        let command = place.command(text)?.with_file_size(Some(ByteCount::bytes(MIB)));
        Ok(field.runtime.block_on(shieling.run(command, None)))
    };
    for text in [
        "exec head -c 5M /dev/zero > large",
        "exec truncate -s 5M large",
        "exec dd if=/dev/zero of=large bs=1 count=1 seek=5M",
        "ulimit -f unlimited; exec head -c 5M /dev/zero > large",
        "trap '' XFSZ; head -c 5M /dev/zero > large",
        "exec head -c 5M /dev/zero > /tmp/large",
        "exec fallocate -l 5M large",
    ] {
        field.attempted();
        let outcome = run(text)?;
        check(outcome.exit_code != Some(0), || {
            format!("`{text}` was not refused: {}", line(&outcome))
        })?;
        let size = fs::metadata(place.work().join("large")).map_or(0, |found| found.len());
        check(size <= MIB, || format!("ESCAPED: `{text}` wrote {size} bytes"))?;
        let _ = fs::remove_file(place.work().join("large"));
    }
    let outcome = run("head -c 1M /dev/zero > small && head -c 3M /dev/zero | cat > /dev/null")?;
    check(outcome.exit_code == Some(0), || line(&outcome))?;
    field.worked();
    Ok(())
}

pub(super) fn open_files(field: &Field<'_>) -> Checked {
    field.needs("python3")?;
    let place = limited(
        field,
        Limits {
            open_files: Some(100),
            ..Limits::default()
        },
    )
    .start()?;
    place.refused_with(
        "python3 -c 'f = [open(\"/dev/null\") for _ in range(200)]'",
        &["Too many open files"],
    )?;
    place.refused("ulimit -n 200")?;
    place.refused("ulimit -Hn unlimited")?;
    place
        .works("python3 -c 'f = [open(\"/dev/null\") for _ in range(80)]'")
        .map(drop)
}

pub(super) fn disk(field: &Field<'_>) -> Checked {
    let place = field
        .place()
        .with(|asked| {
            asked.sizes.tmp = 32 * MIB;
            asked.sizes.home = 16 * MIB;
            asked.sizes.shm = 8 * MIB;
            asked.sizes.run = 4 * MIB;
        })
        .start()?;
    let free = |path: &str| rustix::fs::statvfs(path).map(|found| found.f_bavail * found.f_frsize);
    let before = free("/tmp")?;
    for (directory, mib) in [
        ("/tmp", 32),
        ("$HOME", 16),
        ("/dev/shm", 8),
        ("/run", 4),
        ("/var/tmp", 32),
    ] {
        place.refused_with(
            &format!("dd if=/dev/zero of={directory}/fill bs=1M count=200"),
            &["No space left", "Permission denied", "Read-only"],
        )?;
        place.refused_with(
            &format!("fallocate -l 300M {directory}/reserved"),
            &["No space left", "Permission denied"],
        )?;
        let size = place.run(&format!(
            "cat {directory}/fill 2> /dev/null | wc -c; rm -f {directory}/fill {directory}/reserved"
        ))?;
        let size: u64 = size.stdout.trim().parse().unwrap_or(u64::MAX);
        check(size <= mib * MIB, || format!("ESCAPED: {size} bytes in {directory}"))?;
    }
    place.works("dd if=/dev/zero of=/tmp/modest bs=1M count=20 2> /dev/null && rm /tmp/modest")?;
    // Elsewhere nothing can be written to at all.
    for directory in [
        "/", "/usr", "/etc", "/var", "/dev", "/proc", "/sys", "/home", "/opt", "/mnt",
    ] {
        place.refused(&format!("dd if=/dev/zero of={directory}/fill bs=1M count=1"))?;
    }
    place.close();
    let after = free("/tmp")?;
    // Other programs write to it meanwhile.
    check(after + 200 * MIB > before, || {
        format!("the host's disk lost {} MiB", (before - after) / MIB)
    })
}

pub(super) fn inodes(field: &Field<'_>) -> Checked {
    let place = field.place().with(|asked| asked.sizes.files = 2_000).start()?;
    for directory in ["/tmp", "$HOME"] {
        place.refused_with(
            &format!("mkdir -p {directory}/many && cd {directory}/many && for i in $(seq 40); do touch $(seq $((i * 100)) $((i * 100 + 99))) || exit 1; done"),
            &["No space left"],
        )?;
        let count = place.works(&format!("ls {directory}/many | wc -l; rm -r {directory}/many"))?;
        check(count.trim().parse::<u32>().is_ok_and(|count| count <= 2_000), || {
            format!("ESCAPED: {count} files")
        })?;
        place.works(&format!("mkdir {directory}/few && touch {directory}/few/$$"))?;
    }
    Ok(())
}

pub(super) fn flood(field: &Field<'_>) -> Checked {
    let place = field.place().start()?;
    let shieling = Shieling::builder(Arc::clone(&place.sandbox) as _, Policy::open(), place.work())
        .approval(Mode::Never)
        .build()
        .expect("it serves no other policy");
    for (text, stdout, stderr) in [
        ("head -c 200M /dev/zero; echo end", 200 * MIB + 4, 0),
        (
            "head -c 100M /dev/zero | tr '\\0' x >&2; head -c 100M /dev/zero; echo end",
            100 * MIB + 4,
            100 * MIB,
        ),
        (
            "yes 'a line that is not short' | head -c 200M; echo end",
            200 * MIB + 4,
            0,
        ),
    ] {
        field.attempted();
        let before = resident()?;
        let command = place.command(text)?.with_output_kept(ByteCount::bytes(MIB))?;
        let (outcome, peak) = during(
            || resident().unwrap_or(u64::MAX),
            || field.runtime.block_on(shieling.run(command, None)),
        );
        check(outcome.exit_code == Some(0), || {
            format!("`{text}`: {:?}", outcome.status)
        })?;
        check(
            outcome.stdout.len() as u64 <= MIB + 4096 && outcome.stderr.len() as u64 <= MIB + 4096,
            || format!("{} and {} bytes were kept", outcome.stdout.len(), outcome.stderr.len()),
        )?;
        check(
            outcome.stdout_bytes == stdout && outcome.stderr_bytes == stderr && outcome.truncated,
            || format!("`{text}`: {} and {} bytes", outcome.stdout_bytes, outcome.stderr_bytes),
        )?;
        check(outcome.stdout.trim_end().ends_with("end"), || {
            "the tail was lost".to_owned()
        })?;
        check(peak < before + 64 * MIB, || {
            format!("{} MiB more were used", (peak - before) / MIB)
        })?;
    }
    let outcome = place.works("echo modest")?;
    check(outcome == "modest\n", || outcome.clone())
}

/// What this process has in memory.
pub(super) fn resident() -> Checked<u64> {
    let text = fs::read_to_string("/proc/self/statm")?;
    let pages: u64 = text.split(' ').nth(1).and_then(|pages| pages.parse().ok()).unwrap_or(0);
    Ok(pages * rustix::param::page_size() as u64)
}
