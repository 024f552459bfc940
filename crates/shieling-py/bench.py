"""What the package costs: a table of Markdown for BENCHMARKS.md, with the wheel that is installed.

    cargo xtask python --release --no-tests
    cargo build --release -p shieling-memory --example call_cost
    pip install WHEEL && python bench.py WHEEL target/release/examples/call_cost

Compare ratios: calls take turns, figures are medians on the monotonic clock.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from shieling import Shieling
from shieling.adapters.agent_framework import LocalShellTool
from shieling.adapters.camel import TerminalToolkit

LOCAL = {"approval": "never", "acknowledge_unsafe": True}


def medians(calls: list[tuple[Callable[[], object], int]], rounds: int = 12) -> list[float]:
    """The median of each call in seconds; `calls` have the number of times a round."""
    found: list[list[float]] = [[] for _ in calls]
    for call, _ in calls:
        call()
    for _ in range(rounds):
        for times, (call, number) in zip(found, calls):
            for _ in range(number):
                start = time.perf_counter()
                call()
                times.append(time.perf_counter() - start)
    return [statistics.median(times) for times in found]


def shown(seconds: float) -> str:
    return f"{seconds * 1e6:.1f} µs" if seconds < 1e-3 else f"{seconds * 1e3:.2f} ms"


def in_process(*words: str) -> str:
    return subprocess.run([sys.executable, *words], check=True, capture_output=True, text=True).stdout


IMPORT = "import time; s = time.perf_counter(); import shieling; print(time.perf_counter() - s)"
FLOOD = """
import sys
from shieling import Shieling
def peak():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM:"))
with Shieling("local", workspace=sys.argv[1], approval="never", acknowledge_unsafe=True) as shieling:
    shieling.run("true")
    before = peak()
    outcome = shieling.run("head -c 200000000 /dev/zero")
    assert outcome.stdout_bytes == 200_000_000 and outcome.truncated
    print(peak() - before, outcome.duration_ms)
"""


def main() -> None:
    rows: list[tuple[str, str, str, bool]] = []

    def row(name: str, figure: str, target: str, met: bool) -> None:
        rows.append((name, figure, target, met))

    if len(sys.argv) > 1:
        size = os.path.getsize(sys.argv[1]) / 1e6
        row("wheel", f"{size:.1f} MB", "≤ 15 MB", size <= 15)
    imports = statistics.median(float(in_process("-c", IMPORT)) for _ in range(15))
    row("`import shieling`", shown(imports), "≤ 30 ms", imports <= 0.030)

    with tempfile.TemporaryDirectory() as place:
        with Shieling("memory") as memory, Shieling("local", workspace=place, **LOCAL) as local:
            session = local.session()
            whole, call, plain, bash = medians(
                [
                    (lambda: local.run("true"), 10),
                    (lambda: session.run(":"), 100),
                    (lambda: subprocess.run("true", shell=True, capture_output=True, check=False), 10),
                    (lambda: subprocess.run(["bash", "-c", "true"], capture_output=True, start_new_session=True), 10),
                ]
            )
            if len(sys.argv) > 2:
                # Takes turns with the same call from Rust, as often: the first calls are slow in both.
                rust, python = [], []
                for _ in range(5):
                    rust.append(float(subprocess.run(sys.argv[2], check=True, capture_output=True, text=True).stdout) / 1e6)
                    python += medians([(lambda: memory.run(":"), 1_200)], rounds=1)
                added = statistics.median(python) - statistics.median(rust)
                row(f"`memory`: a call of `:`, less the same from Rust ({shown(statistics.median(rust))})", shown(added), "≤ 60 µs", added <= 60e-6)
        row("`local`: a call of `true`", shown(whole), f"`subprocess.run(shell=True)` (dash): {shown(plain)}", whole <= plain)
        row("the same", shown(whole), f"`subprocess.run(['bash', …])` in a session of its own: {shown(bash)}", whole <= bash)
        row("session: a call of `:`", shown(call), "≤ 0.5 ms (Microsoft's 50 ms / 100)", call <= 0.0005)

        os.chdir(place)
        ready: list[float] = []
        for number in range(15):
            start = time.perf_counter()
            toolkit = TerminalToolkit(working_directory=f"{place}/t{number}")
            ready.append(time.perf_counter() - start)
            toolkit.cleanup()
        row("`TerminalToolkit()` ready", shown(statistics.median(ready)), "≤ 50 ms", statistics.median(ready) <= 0.05)

        import asyncio

        async def microsoft() -> float:
            async with LocalShellTool(workdir=place) as tool:
                times = []
                for _ in range(200):
                    start = time.perf_counter()
                    await tool.run(":")
                    times.append(time.perf_counter() - start)
                return statistics.median(times)

        adapter = asyncio.run(microsoft())
        row("`LocalShellTool`, persistent: `:`", shown(adapter), "≤ 0.5 ms", adapter <= 0.0005)
        grown, took = in_process("-c", FLOOD, place).split()
        row(
            "200 MB of output",
            f"{int(grown) / 1024:.1f} MiB of memory, {float(took):.0f} ms",
            "≤ 40 MB",
            int(grown) * 1024 <= 40e6,
        )
    print("| what | figure | target | met |\n|-|-|-|-|")
    for name, figure, target, met in rows:
        print(f"| {name} | {figure} | {target} | {'yes' if met else '**no**'} |")


if __name__ == "__main__":
    sys.path = [one for one in sys.path if Path(one or ".").resolve() != Path(__file__).parent]
    main()
