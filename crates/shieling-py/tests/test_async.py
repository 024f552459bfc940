"""The same in asyncio: several loops, cancellation, and nothing left behind."""

from __future__ import annotations

import asyncio
import random
import threading
from pathlib import Path
from typing import Any

import pytest
from conftest import Mark

from shieling import AsyncShieling, ClosedError, DeniedError, Shieling


def test_commands_run_side_by_side(place: dict[str, Any]) -> None:
    async def work() -> list[str]:
        async with AsyncShieling(**place) as shieling:
            outcomes = await asyncio.gather(*(shieling.run(f"sleep 0.2; echo {number}") for number in range(10)))
            return [outcome.stdout.strip() for outcome in outcomes]

    assert asyncio.run(work()) == [str(number) for number in range(10)]


def test_commands_of_one_session_run_in_the_order_of_their_calls(place: dict[str, Any]) -> None:
    async def work() -> list[int]:
        async with AsyncShieling(**place) as shieling:
            session = shieling.session()
            outcomes = await asyncio.gather(*(session.run("n=$((n+1)); echo $n") for _ in range(20)))
            return [int(outcome.stdout) for outcome in outcomes]

    assert asyncio.run(work()) == list(range(1, 21))


def test_the_loop_goes_on_meanwhile(place: dict[str, Any]) -> None:
    async def work() -> int:
        async with AsyncShieling(**place) as shieling:
            ticks = 0

            async def tick() -> None:
                nonlocal ticks
                while True:
                    await asyncio.sleep(0.01)
                    ticks += 1

            ticking = asyncio.create_task(tick())
            await shieling.run("sleep 600", timeout=1.0)
            ticking.cancel()
            return ticks

    assert asyncio.run(work()) > 5


def test_cancelling_ends_the_tree(place: dict[str, Any], mark: Mark) -> None:
    async def work() -> None:
        async with AsyncShieling(**place) as shieling:
            running = asyncio.create_task(shieling.run(f"{mark.sleep} & setsid {mark.sleep} & {mark.sleep}"))
            await asyncio.to_thread(mark.started, 3)
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
            await asyncio.to_thread(mark.gone)
            assert (await shieling.run("echo fine")).stdout == "fine\n"
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(shieling.run(mark.sleep), 0.3)
            await asyncio.to_thread(mark.gone)

    asyncio.run(work())


def test_cancelling_a_session_s_command_keeps_the_session(place: dict[str, Any], mark: Mark) -> None:
    async def work() -> None:
        async with AsyncShieling(**place) as shieling:
            session = shieling.session()
            await session.run("x=1")
            running = asyncio.create_task(session.run(mark.sleep))
            await asyncio.to_thread(mark.started)
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
            assert (await session.run("echo $x")).stdout == "1\n"
            await asyncio.to_thread(mark.gone)

    asyncio.run(work())


def test_cancellations_at_random_moments_leave_nothing(place: dict[str, Any], mark: Mark) -> None:
    async def work() -> None:
        chance = random.Random(7)
        async with AsyncShieling(**place) as shieling:
            session = shieling.session()
            for number in range(60):
                work = session.run(mark.sleep) if number % 3 == 0 else shieling.run(f"{mark.sleep} | cat")
                task = asyncio.create_task(work)
                await asyncio.sleep(chance.random() * 0.06)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
            await asyncio.to_thread(mark.gone)
            assert (await session.run("echo still here")).stdout == "still here\n"
            assert (await shieling.run("echo still here")).stdout == "still here\n"

    asyncio.run(work())


def test_one_environment_serves_several_loops_at_once(place: dict[str, Any]) -> None:
    shieling = AsyncShieling(**place)
    found: list[str] = []

    async def work(number: int) -> None:
        outcomes = await asyncio.gather(*(shieling.run(f"echo {number}") for _ in range(3)))
        found.extend(outcome.stdout.strip() for outcome in outcomes)

    threads = [threading.Thread(target=lambda number=number: asyncio.run(work(number))) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # And one more, after those have ended.
    asyncio.run(work(4))
    assert sorted(found) == sorted(str(number) for number in range(5) for _ in range(3))
    asyncio.run(shieling.close())


def test_a_loop_that_ends_with_work_under_way_ends_that_work(place: dict[str, Any], mark: Mark) -> None:
    shieling = AsyncShieling(**place)

    async def leave() -> None:
        task = asyncio.create_task(shieling.run(mark.sleep))
        await asyncio.to_thread(mark.started)
        assert not task.done()

    asyncio.run(leave())
    mark.gone()
    asyncio.run(shieling.close())


def test_a_loop_that_is_dropped_in_the_middle_leaves_no_process(place: dict[str, Any], mark: Mark) -> None:
    shieling = AsyncShieling(**place)
    loop = asyncio.new_event_loop()
    # It tells of a task that it never ended, which is what happens here.
    loop.set_exception_handler(lambda loop, context: None)
    task = loop.create_task(shieling.run(mark.sleep))
    loop.run_until_complete(loop.run_in_executor(None, mark.started))
    loop.close()
    del task
    asyncio.run(shieling.close())
    mark.gone()


def test_a_cancelled_start_leaves_nothing(place: dict[str, Any], mark: Mark) -> None:
    async def work() -> None:
        async with AsyncShieling(**place) as shieling:
            for wait in (0.0, 0.001, 0.005, 0.02, 0.1):
                task = asyncio.create_task(shieling.start(mark.sleep))
                await asyncio.sleep(wait)
                task.cancel()
                try:
                    process = await task
                except asyncio.CancelledError:
                    continue
                await process.kill()
            await asyncio.to_thread(mark.gone)

    asyncio.run(work())


def test_a_program_is_talked_to_in_both_directions_at_once(place: dict[str, Any]) -> None:
    async def work() -> None:
        async with AsyncShieling(**place) as shieling, await shieling.start("cat") as process:

            async def send() -> None:
                for number in range(500):
                    await process.write(f"{number}\n")
                await process.close_stdin()

            sending = asyncio.create_task(send())
            lines = [line async for line in process.stdout]
            await sending
            assert lines == [f"{number}\n".encode() for number in range(500)]
            assert (await process.wait()).ok

    asyncio.run(work())


def test_jobs_and_files_and_refusals(place: dict[str, Any], tmp_path: Path) -> None:
    async def work() -> None:
        async with AsyncShieling(**place, deny=["rm"]) as shieling:
            await shieling.write_file("a.txt", "one\n")
            assert (await shieling.read_file("a.txt")).text == "one\n"
            job = await shieling.background("echo ready; sleep 600")
            matched, _ = await job.wait_for(pattern="ready", timeout=20)
            assert matched and (await job.kill()).survivors == 0
            with pytest.raises(DeniedError):
                (await shieling.run("rm x")).check()
            assert (await shieling.why("rm x")).decision == "deny"
            async with shieling.session("s") as session:
                assert (await session.run("echo $((1 + 1))")).stdout == "2\n"
            assert shieling.sessions() == ()
        with pytest.raises(ClosedError):
            await shieling.run("true")

    asyncio.run(work())


def test_a_blocking_environment_works_inside_a_loop(memory: Shieling) -> None:
    async def work() -> str:
        return memory.run("echo hello").stdout

    assert asyncio.run(work()) == "hello\n"


def test_another_kind_of_loop() -> None:
    uvloop = pytest.importorskip("uvloop")

    async def work() -> str:
        async with AsyncShieling("memory") as shieling:
            return (await shieling.run("echo hello")).stdout

    loop = uvloop.new_event_loop()
    try:
        assert loop.run_until_complete(work()) == "hello\n"
    finally:
        loop.close()


NUMBERS = range(1, 1001)
COUNTING = "for ((i = 1; i <= 1000; i++)); do echo $i; sleep 0.0005; done"


@pytest.mark.parametrize("what", ["line", "bytes", "view"])
def test_what_arrives_while_its_reader_is_cancelled_stays_for_the_next(place: dict[str, Any], what: str) -> None:
    async def work() -> list[int]:
        read = b""
        async with AsyncShieling(**place) as shieling:
            process = await shieling.start(COUNTING) if what != "view" else None
            job = await shieling.background(COUNTING) if what == "view" else None

            async def some() -> tuple[bytes, bool]:
                if job is not None:
                    view = await job.view(wait=20)
                    return view.outcome.stdout.encode(), view.outcome.status != "running"
                assert process is not None
                data = await (process.stdout.readline() if what == "line" else process.stdout.read())
                return data, not data

            over = False
            while not over:
                try:
                    data, over = await asyncio.wait_for(some(), random.uniform(0.0002, 0.002))
                except asyncio.TimeoutError:
                    continue
                read += data
        return [int(number) for number in read.split()]

    assert asyncio.run(work()) == list(NUMBERS)


def test_no_reader_gets_two_lines_at_once(place: dict[str, Any]) -> None:
    async def work() -> list[bytes]:
        async with AsyncShieling(**place) as shieling, await shieling.start("seq 200") as process:
            return await asyncio.gather(*(process.stdout.readline() for _ in range(205)))

    lines = [line for line in asyncio.run(work()) if line]
    assert len(set(lines)) == len(lines) and all(line.strip().isdigit() for line in lines)
