"""What accumulates over time: a share in an ordinary run, all of it with ``SHIELING_TESTS=full``."""

from __future__ import annotations

import asyncio
import os
import random
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from conftest import Mark, until

from shieling import AsyncShieling, Shieling

FULL = os.environ.get("SHIELING_TESTS") == "full"
TASKS = 50
SOAK_SECONDS = 600.0 if FULL else 10.0
CANCELLATIONS = 1_000 if FULL else 200


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def memory_kib() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    raise AssertionError("the kernel tells no VmRSS")


def children() -> set[str]:
    """The processes whose parent is this one."""
    found = set()
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == os.getpid() and fields[0] != "Z":
            found.add(status.parent.name)
    return found


@pytest.mark.timeout(SOAK_SECONDS + 120)
def test_fifty_tasks_leak_nothing(place: dict[str, Any], mark: Mark) -> None:
    end = 0.0

    async def one(shieling: AsyncShieling, number: int, rounds: int | None) -> int:
        done = 0
        chance = random.Random(number)
        session = shieling.session(f"s{number}") if number % 5 == 0 else None
        while (done < rounds) if rounds is not None else (time.monotonic() < end):
            kind = chance.randrange(6)
            if session is not None:
                await session.run("x=$((x + 1)); echo $x")
            elif kind == 0:
                assert (await shieling.run(f"{mark.sleep} | cat", timeout=0.05)).status == "timed_out"
            elif kind == 1:
                task = asyncio.create_task(shieling.run(mark.sleep))
                await asyncio.sleep(chance.random() * 0.05)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
            elif kind == 2:
                async with await shieling.start("cat") as process:
                    await process.write("a line\n")
                    assert await process.stdout.readline(timeout=60) == b"a line\n"
            elif kind == 3:
                await (await shieling.background("echo a job")).wait()
            elif kind == 4:
                assert (await shieling.run("head -c 200000 /dev/zero")).truncated
            else:
                assert (await shieling.run(f"echo {number}")).stdout == f"{number}\n"
            done += 1
        return done

    async def all_of_them(rounds: int | None) -> int:
        # The sandbox's own bound is 512 processes.
        bounds = {"pids": 2_000} if place["environment"] == "sandbox" else {}
        async with AsyncShieling(**place, **bounds) as shieling:
            return sum(await asyncio.gather(*(one(shieling, number, rounds) for number in range(TASKS))))

    # The first rounds fill what is made once: threads of executors, buffers, the allocator's arenas. The longer the test,
    # the more rarely do so many of its tasks do the same at once as never before.
    asyncio.run(all_of_them(100 if FULL else 2))
    until(lambda: threading.active_count() == 1, "the threads of the first rounds")
    mark.gone()
    before = (descriptors(), memory_kib(), children())
    end = time.monotonic() + SOAK_SECONDS
    done = asyncio.run(all_of_them(None))
    assert done > TASKS
    mark.gone()
    until(lambda: threading.active_count() == 1, "the threads to be gone")
    until(lambda: descriptors() <= before[0] + 2, f"{descriptors()} descriptors to become {before[0]}")
    until(lambda: not children() - before[2], "the children to be gone")
    assert memory_kib() - before[1] < 24 * 1024, f"{before[1]} KiB became {memory_kib()} KiB in {done} calls"


@pytest.mark.timeout(600)
def test_cancellations_at_random_moments_leave_nothing_behind(place: dict[str, Any], mark: Mark) -> None:
    chance = random.Random(11)

    async def work() -> None:
        async with AsyncShieling(**place) as shieling:
            session = shieling.session()

            async def talked_to() -> None:
                async with await shieling.start(f"{mark.sleep} & cat") as process:
                    await process.write("x\n")
                    await process.stdout.readline(timeout=60)
                    await asyncio.sleep(600)

            async def job() -> None:
                job = await shieling.background(mark.sleep)
                try:
                    await asyncio.sleep(600)
                finally:
                    await asyncio.shield(job.kill())

            makers = [
                lambda: shieling.run(f"{mark.sleep} | cat"),
                lambda: session.run(mark.sleep),
                lambda: shieling.run("true"),
                talked_to,
                job,
                lambda: shieling.read_file("missing"),
            ]
            for number in range(CANCELLATIONS):
                task = asyncio.ensure_future(makers[number % len(makers)]())
                await asyncio.sleep(chance.random() * 0.03)
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
            assert (await session.run("echo still here", timeout=60)).stdout == "still here\n"
            assert (await shieling.run("echo still here", timeout=60)).stdout == "still here\n"

    before = descriptors()
    asyncio.run(work())
    mark.gone()
    until(lambda: threading.active_count() == 1, "the threads to be gone")
    until(lambda: descriptors() <= before + 4, f"{descriptors()} descriptors to become {before}")


def test_threads_share_one_environment(place: dict[str, Any]) -> None:
    wrong: list[str] = []
    with Shieling(**place) as shieling:

        def work(number: int) -> None:
            session = shieling.session(f"t{number}")
            for turn in range(10):
                session.run(f"n={number}-{turn}")
                seen = session.run("echo $n").stdout + shieling.run(f"echo {number}").stdout
                if seen != f"{number}-{turn}\n{number}\n":
                    wrong.append(seen)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(100)
        assert not any(thread.is_alive() for thread in threads)
    assert wrong == []
