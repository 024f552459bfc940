//! Prints what a call of `:` costs in microseconds, as a median. The Python package is compared with it, by
//! `crates/shieling-py/bench.py`.

#![expect(clippy::print_stdout, reason = "it is its purpose")]

use std::sync::Arc;
use std::time::Instant;

use shieling::Shieling;
use shieling::approval::Mode;
use shieling::policy::Policy;
use shieling::request::Command;
use shieling_memory::Memory;

const CALLS: usize = 1_200;
const WORKSPACE: &str = "/workspace";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let runtime = tokio::runtime::Runtime::new()?;
    let _within = runtime.enter();
    let memory = Arc::new(Memory::builder(WORKSPACE).build()?);
    let shieling = Shieling::builder(memory, Policy::open(), WORKSPACE)
        .approval(Mode::OnAsk)
        .build()?;
    let mut calls = Vec::with_capacity(CALLS);
    for _ in 0..CALLS {
        let command = Command::new(":", WORKSPACE)?;
        let start = Instant::now();
        let outcome = runtime.block_on(shieling.run(command, None));
        calls.push(start.elapsed());
        assert_eq!(outcome.exit_code, Some(0), "{outcome:?}");
    }
    calls.sort_unstable();
    println!("{:.1}", calls[CALLS / 2].as_secs_f64() * 1e6);
    runtime.block_on(shieling.close());
    Ok(())
}
