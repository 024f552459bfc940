"""Approvers: every answer, those that raise, and those that never answer."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from conftest import Mark, need_sandbox, until

from shieling import AsyncShieling, DeniedError, No, Question, Shieling, Yes

ASKING: dict[str, Any] = {"environment": "memory", "approval": "always", "workspace": "/work"}


def test_the_approver_sees_what_would_run() -> None:
    asked: list[Question] = []

    def approver(question: Question) -> bool:
        asked.append(question)
        return True

    with Shieling(**ASKING, approver=approver) as shieling:
        assert shieling.run("echo hello | cat", env={"ONE": "1"}).stdout == "hello\n"
        shieling.write_file("a.txt", "one\n")
    command, change = asked
    assert command.kind == "command" and command.text == "echo hello | cat" and "ONE" in command.variables
    assert [seen.argv for seen in command.verdict.commands] == [("echo", "hello"), ("cat",)]
    assert command.environment == "memory" and command.cwd == "/work" and command.session is None
    assert change.kind == "files" and change.change is not None


@pytest.mark.parametrize(
    ("answer", "status", "because"),
    [
        (True, "exited", None),
        (Yes(), "exited", None),
        (False, "denied", None),
        (No("not today"), "denied", "not today"),
        (None, "needs_approval", None),
    ],
)
def test_every_answer(answer: Any, status: str, because: str | None) -> None:
    with Shieling(**ASKING, approver=lambda question: answer) as shieling:
        outcome = shieling.run("true")
        assert outcome.status == status or (status == "denied" and outcome.status == "needs_approval")
        if status != "exited":
            assert outcome.denial is not None and outcome.denial.layer == "approval"
        if because is not None:
            assert because in outcome.denial.message()  # type: ignore[union-attr]


@pytest.mark.parametrize("answer", ["yes", 1, 0, object(), Yes("nonsense"), Yes("exact", uses=0)])  # type: ignore[arg-type]
def test_what_is_no_answer_starts_nothing(answer: Any) -> None:
    with Shieling(**ASKING, approver=lambda question: answer) as shieling:
        with pytest.raises((TypeError, ValueError)):
            shieling.run("echo x > ran")
        assert not shieling.exists("ran")


def test_without_an_approver_nothing_that_wants_a_yes_starts() -> None:
    with Shieling(**ASKING) as shieling:
        assert shieling.run("true").status == "needs_approval"
        with pytest.raises(DeniedError):
            shieling.write_file("a", "b")


def test_a_yes_can_go_further() -> None:
    asked: list[str] = []

    def approver(question: Question) -> Yes:
        asked.append(question.text)
        return Yes("prefix", prefix=("echo",), uses=3, seconds=600)

    with Shieling(**ASKING, approver=approver) as shieling:
        for word in ["one", "two", "three"]:
            assert shieling.run(f"echo {word}").ok
        assert asked == ["echo one"]
        assert shieling.run("echo four").ok and asked == ["echo one", "echo four"]
        shieling.revoke_approvals()
        assert shieling.run("echo five").ok and asked[-1] == "echo five"


class Broken(Exception):
    pass


def test_what_an_approver_raises_is_raised_by_the_call_and_nothing_starts() -> None:
    def approver(question: Question) -> bool:
        raise Broken("a bug")

    with Shieling(**ASKING, approver=approver) as shieling:
        with pytest.raises(Broken, match="a bug"):
            shieling.run("echo x > ran")
        with pytest.raises(Broken):
            shieling.session().run("echo x > ran")
        with pytest.raises(Broken):
            shieling.write_file("ran", "x")
        assert not shieling.exists("ran")

    async def work() -> None:
        async def asynchronous(question: Question) -> bool:
            await asyncio.sleep(0)
            raise Broken("another")

        for broken in (approver, asynchronous):
            async with AsyncShieling(**ASKING, approver=broken) as shieling:
                with pytest.raises(Broken):
                    await shieling.run("echo x > ran")
                assert not await shieling.exists("ran")

    asyncio.run(work())


def test_an_approver_that_never_answers_is_not_waited_for() -> None:
    released = threading.Event()

    def approver(question: Question) -> bool:
        released.wait()
        return True

    try:
        with Shieling(**ASKING, approver=approver, approval_timeout=0.3) as shieling:
            outcome = shieling.run("echo x > ran")
            assert outcome.status == "needs_approval" and not shieling.exists("ran")

        async def work() -> None:
            for never in (approver, forever):
                async with AsyncShieling(**ASKING, approver=never, approval_timeout=0.3) as shieling:
                    assert (await shieling.run("true")).status == "needs_approval"
            assert len(asyncio.all_tasks()) == 1

        async def forever(question: Question) -> bool:
            await asyncio.Event().wait()
            return True

        asyncio.run(work())
    finally:
        released.set()


def test_a_cancelled_call_takes_its_question_back() -> None:
    cancelled: list[bool] = []

    async def approver(question: Question) -> bool:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(True)
            raise
        return True

    async def work() -> None:
        async with AsyncShieling(**ASKING, approver=approver) as shieling:
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(shieling.run("true"), 0.3)
            await asyncio.sleep(0)
            assert cancelled == [True] and len(asyncio.all_tasks()) == 1

    asyncio.run(work())


def test_an_asynchronous_approver_runs_in_the_loop_of_its_caller() -> None:
    loops: list[Any] = []
    variable = contextvars.ContextVar("variable", default="none")
    seen: list[str] = []

    async def approver(question: Question) -> bool:
        loops.append(asyncio.get_running_loop())
        seen.append(variable.get())
        return True

    shieling = AsyncShieling(**ASKING, approver=approver)

    async def work(number: int) -> None:
        variable.set(str(number))
        assert (await shieling.run("true")).ok
        assert loops[-1] is asyncio.get_running_loop()

    asyncio.run(work(1))
    asyncio.run(work(2))
    assert seen == ["1", "2"]
    asyncio.run(shieling.close())


def test_an_asynchronous_approver_serves_a_blocking_call_and_another_way_round() -> None:
    async def asynchronous(question: Question) -> bool:
        await asyncio.sleep(0.01)
        return True

    with Shieling(**ASKING, approver=asynchronous) as shieling:
        assert shieling.run("true").ok

    async def work() -> None:
        ticks = 0

        def blocking(question: Question) -> bool:
            time.sleep(0.3)
            return True

        async def tick() -> None:
            nonlocal ticks
            while True:
                await asyncio.sleep(0.01)
                ticks += 1

        async with AsyncShieling(**ASKING, approver=blocking) as shieling:
            ticking = asyncio.create_task(tick())
            assert (await shieling.run("true")).ok
            ticking.cancel()
            assert ticks >= 3

    asyncio.run(work())


def test_an_approver_may_use_the_environment_that_asks() -> None:
    shieling: Shieling

    def approver(question: Question) -> bool:
        return question.text == "inner" or shieling.why(question.text).decision == "allow"

    with Shieling(**ASKING, approver=approver) as shieling:
        assert shieling.run("true").ok


def test_several_calls_ask_at_once() -> None:
    together = threading.Barrier(4, timeout=30)

    def approver(question: Question) -> bool:
        together.wait()
        return True

    with Shieling(**ASKING, approver=approver) as shieling:
        found: list[bool] = []
        threads = [threading.Thread(target=lambda: found.append(shieling.run("true").ok)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == [True] * 4


def test_typing_into_a_job_asks(place: dict[str, Any], mark: Mark) -> None:
    answers = {"start": True, "typed": False}
    asked: list[str] = []

    def approver(question: Question) -> bool:
        asked.append(question.text)
        return answers["start"] if len(asked) == 1 else answers["typed"]

    with Shieling(**{**place, "approval": "always"}, approver=approver) as shieling:
        job = shieling.background("cat")
        with pytest.raises(DeniedError):
            job.write("rm -rf /", enter=True)
        until(lambda: len(asked) == 2, "the second question")
        job.kill()


def connect(port: int) -> str:
    return f"curl -sS -m 20 -o /dev/null http://unknown.example.invalid:{port}/"


def test_an_approver_is_asked_about_connections(tmp_path: Path) -> None:
    need_sandbox()
    texts: list[str] = []

    def approver(question: Question) -> bool:
        assert question.kind == "network"
        texts.append(question.text)
        return False

    place: dict[str, Any] = {"workspace": tmp_path, "allow_hosts": ["known.example.invalid"]}
    with Shieling(**place, approver=approver) as shieling:
        network = shieling.run(connect(80)).network
        assert network is not None and "the answer was no" in network.denied[0].because
        shieling.background(connect(443)).wait()
        assert shieling.session().run("true").ok
    assert texts == ["connect unknown.example.invalid:80", "connect unknown.example.invalid:443"]


def test_an_asynchronous_approver_is_asked_about_connections_in_the_loop_of_the_last_call(tmp_path: Path) -> None:
    need_sandbox()
    loops: list[Any] = []

    async def approver(question: Question) -> bool:
        loops.append(asyncio.get_running_loop())
        await asyncio.sleep(0)
        return False

    async def work() -> None:
        place: dict[str, Any] = {"workspace": tmp_path, "allow_hosts": ["known.example.invalid"]}
        async with AsyncShieling(**place, approver=approver) as shieling:
            assert (await shieling.run("true")).ok
            job = await shieling.background(connect(80))
            while not loops:
                await asyncio.sleep(0.01)
            assert loops == [asyncio.get_running_loop()]
            network = (await job.wait()).network
            assert network is not None and "the answer was no" in network.denied[0].because

    asyncio.run(work())


def test_what_an_approver_raises_about_a_connection_is_told_and_refuses_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need_sandbox()
    told: list[Any] = []
    monkeypatch.setattr(threading, "excepthook", lambda arguments: told.append(arguments.exc_type))

    def approver(question: Question) -> bool:
        raise Broken("a bug")

    place: dict[str, Any] = {"workspace": tmp_path, "allow_hosts": ["known.example.invalid"]}
    with Shieling(**place, approver=approver) as shieling:
        network = shieling.run(connect(80)).network
    assert network is not None and "the approver failed with Broken" in network.denied[0].because
    assert told == [Broken]


def test_who_is_asked_about_connections_keeps_nothing_open(tmp_path: Path, mark: Mark) -> None:
    need_sandbox()
    threads = threading.active_count()

    class Agent:
        def __init__(self) -> None:
            self.shieling = Shieling(workspace=tmp_path, allow_hosts=["known.example.invalid"], approver=self.ask)

        def ask(self, question: Question) -> bool:
            return False

    agent = Agent()
    agent.shieling.background(mark.sleep)
    mark.started(1)
    del agent
    gc.collect()
    mark.gone()
    until(lambda: threading.active_count() == threads, "the thread that listens to be gone")
