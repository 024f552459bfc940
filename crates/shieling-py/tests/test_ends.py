"""Interrupts, forks, the interpreter's exit and a killed interpreter: nothing hangs, and nothing is left behind."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from conftest import Mark, script, until

from shieling import ClosedError, Shieling


def started(place: dict[str, Any], text: str, *words: str) -> subprocess.Popen[str]:
    """A Python that runs this, with a `shieling` that is open.

    It takes Ctrl-C as at a terminal: what runs in the background of a shell inherits that SIGINT is ignored.
    """
    options = {name: str(value) for name, value in place.items()}
    prelude = f"""
        from shieling import *
        import sys, threading, time, os, asyncio, signal
        signal.signal(signal.SIGINT, signal.default_int_handler)
        options = {options!r}
    """
    text = textwrap.dedent(prelude) + textwrap.dedent(text)
    return subprocess.Popen(
        [sys.executable, "-c", text, *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize(
    "call",
    [
        "shieling.run(sys.argv[1] + ' & ' + sys.argv[1])",
        "shieling.session().run(sys.argv[1] + ' & ' + sys.argv[1])",
        "shieling.start(sys.argv[1] + ' & ' + sys.argv[1]).wait()",
        "shieling.background(sys.argv[1] + ' & ' + sys.argv[1]).wait()",
        "asyncio.run(AsyncShieling(**options).run(sys.argv[1] + ' & ' + sys.argv[1]))",
    ],
)
def test_ctrl_c_ends_the_tree(place: dict[str, Any], mark: Mark, call: str) -> None:
    process = started(
        place,
        f"""
        shieling = Shieling(**options)
        try:
            {call}
        except KeyboardInterrupt:
            print("interrupted")
        shieling.close()
        """,
        mark.sleep,
    )
    mark.started(2)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert (out, process.returncode) == ("interrupted\n", 0), err
    mark.gone()


def test_a_handler_that_raises_breaks_the_call_off(here: Shieling, mark: Mark) -> None:
    class Alarm(Exception):
        pass

    def handler(number: int, frame: Any) -> None:
        raise Alarm

    before = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.5)
        with pytest.raises(Alarm):
            here.run(mark.sleep)
        mark.gone()
        assert here.run("echo fine").stdout == "fine\n"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize(
    "end", ["", "sys.exit(3)", "raise RuntimeError('x')", "os._exit(3)", "os.kill(os.getpid(), 9)", "os.abort()"]
)
def test_an_interpreter_that_ends_with_running_jobs_leaves_nothing(
    place: dict[str, Any], mark: Mark, end: str
) -> None:
    process = started(
        place,
        f"""
        shieling = Shieling(**options)
        command = sys.argv[1]
        shieling.background(command)
        shieling.session("s").background(command)
        process = shieling.start(command)
        threading.Thread(target=lambda: shieling.run(command), daemon=True).start()
        while len(shieling.jobs()) < 2:
            time.sleep(0.01)
        print("started", flush=True)
        {end}
        """,
        mark.sleep,
    )
    out, err = process.communicate(timeout=60)
    assert "started" in out, err
    if end == "":
        assert process.returncode == 0, err
    mark.gone()


def test_a_loop_of_a_daemon_thread_does_not_hold_the_exit(place: dict[str, Any], mark: Mark, tmp_path: Path) -> None:
    process = started(
        place,
        """
        shieling = AsyncShieling(**options)
        loop = asyncio.new_event_loop()
        threading.Thread(target=loop.run_forever, daemon=True).start()
        for _ in range(3):
            asyncio.run_coroutine_threadsafe(shieling.run(sys.argv[1]), loop)
        sys.stdout.write("waiting\\n")
        sys.stdout.flush()
        while not os.path.exists(sys.argv[2]):
            time.sleep(0.01)
        """,
        mark.sleep,
        str(tmp_path / "go"),
    )
    mark.started(3)
    (tmp_path / "go").touch()
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    mark.gone()


def test_use_at_exit_is_refused_and_does_not_hang() -> None:
    done = script(
        """
        import atexit
        def late():
            try:
                shieling.run("true")
            except Exception as error:
                print(type(error).__name__)
            shieling.close()
        atexit.register(late)
        from shieling import Shieling
        shieling = Shieling("memory")
        shieling.run("true")
        """
    )
    assert (done.stdout, done.returncode) == ("ClosedError\n", 0), done.stderr


def forked(shieling: Shieling, results: Any) -> None:
    try:
        shieling.run("true")
    except ClosedError as error:
        results.put(("inherited", str(error)))
    try:
        shieling.session().run("true")
    except ClosedError:
        results.put(("session", ""))
    with Shieling("memory") as own:
        results.put(("memory", own.run("echo own").stdout))
    with Shieling("local", approval="policy") as own:
        results.put(("local", own.run("echo own").stdout))


def test_a_fork_after_use_is_refused_clearly_and_a_new_one_works_there(here: Shieling, mark: Mark) -> None:
    job = here.background(mark.sleep)
    mark.started()
    process = here.start("cat")
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    child = context.Process(target=forked, args=(here, results))
    child.start()
    found = dict(results.get(timeout=60) for _ in range(4))
    child.join(30)
    assert child.exitcode == 0
    assert "forked" in found["inherited"] and found["memory"] == found["local"] == "own\n" and "session" in found
    # The child's end has touched nothing of ours.
    assert mark.count() == 1 and job.outcome().status == "running"
    process.write("still here\n")
    assert process.stdout.readline(timeout=20) == b"still here\n"
    assert here.run("echo fine").stdout == "fine\n"
    job.kill()
    process.kill()


def test_a_fork_that_exits_by_the_long_way_touches_nothing(here: Shieling, mark: Mark) -> None:
    job = here.background(mark.sleep)
    mark.started()
    child = os.fork()
    if child == 0:
        # As `sys.exit` in a child would: everything is collected and every handler runs.
        try:
            import atexit
            import gc

            del job
            gc.collect()
            atexit._run_exitfuncs()
        finally:
            os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert mark.count() == 1 and job.outcome().status == "running"
    job.kill()


def test_forks_during_work_do_not_hang(memory: Shieling) -> None:
    stop = threading.Event()

    def busy() -> None:
        while not stop.is_set():
            assert memory.run("true").ok

    threads = [threading.Thread(target=busy) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(20):
            child = os.fork()
            if child == 0:
                status = 1
                try:
                    with Shieling("memory") as own:
                        status = 0 if own.run("echo x").stdout == "x\n" else 2
                finally:
                    os._exit(status)
            end = time.monotonic() + 30
            while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0):
                if time.monotonic() > end:
                    os.kill(child, signal.SIGKILL)
                    os.waitpid(child, 0)
                    pytest.fail("a forked process hangs")
                time.sleep(0.01)
            assert ended[1] == 0
    finally:
        stop.set()
        for thread in threads:
            thread.join()


@pytest.mark.parametrize("text", ["yes", "while :; do echo x; sleep 0.01; done", "while :; do :; done"])
def test_ctrl_c_reaches_a_call_whose_command_is_noisy(here: Shieling, text: str) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.4)
    try:
        with pytest.raises(KeyboardInterrupt):
            here.run(text, timeout=60)
    finally:
        signal.signal(signal.SIGALRM, before)


def test_a_signals_handler_can_use_the_session_that_waits(here: Shieling) -> None:
    session = here.session()
    found: list[str] = []
    before = signal.signal(signal.SIGALRM, lambda *_: found.append(session.run("echo inner").stdout))
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    try:
        assert session.run("sleep 1; echo outer", timeout=60).stdout == "outer\n"
    finally:
        signal.signal(signal.SIGALRM, before)
    assert found == ["inner\n"]


def test_a_call_goes_on_while_python_does_something_else(here: Shieling) -> None:
    import ctypes

    def hold() -> None:
        time.sleep(0.2)
        ctypes.PyDLL(None).usleep(1_500_000)  # with the interpreter's lock

    thread = threading.Thread(target=hold)
    thread.start()
    outcome = here.run("sleep 20", timeout=0.5)
    thread.join()
    assert outcome.status == "timed_out" and outcome.duration_ms < 1_400, outcome


def test_a_thread_with_a_small_stack_can_call(here: Shieling) -> None:
    found: list[str] = []
    before = threading.stack_size(256 * 1024)
    try:
        thread = threading.Thread(target=lambda: found.append(here.run("( " * 90 + "echo hi" + " )" * 90).status))
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join()
    assert len(found) == 1


def test_a_fork_by_a_signals_handler_during_a_call_leaves_the_call_to_the_parent(place: dict[str, Any]) -> None:
    process = started(
        place,
        """
        shieling = Shieling(**options)
        children = []
        signal.signal(signal.SIGALRM, lambda *_: children.append(os.fork()))
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        try:
            outcome = shieling.run("until [ -e forked ]; do sleep 0.02; done; echo done")
        except ClosedError as error:
            assert children == [0] and "forked" in str(error), error
            open(os.path.join(options["workspace"], "forked"), "w").close()
            os._exit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(children[0], 0)[1]) == 7
        print(outcome.status, outcome.stdout.strip())
        """,
    )
    out, error = process.communicate(timeout=60)
    assert (out, error) == ("exited done\n", ""), error


def test_a_killed_parent_leaves_nothing_though_its_fork_lives(place: dict[str, Any], mark: Mark) -> None:
    process = started(
        place,
        """
        shieling = Shieling(**options)
        shieling.background(sys.argv[1])
        child = os.fork()
        if child == 0:
            os.close(1); os.close(2)
            time.sleep(60)
            os._exit(0)
        print(child, flush=True)
        time.sleep(60)
        """,
        mark.sleep,
    )
    assert process.stdout is not None
    child = int(process.stdout.readline())
    try:
        mark.started()
        process.kill()
        process.wait()
        mark.gone()
    finally:
        os.kill(child, signal.SIGKILL)
        process.stdout.close()


def spawned(results: Any) -> None:
    with Shieling("memory") as own:
        results.put(own.run("echo spawned").stdout)


def test_spawn_works() -> None:
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    child = context.Process(target=spawned, args=(results,))
    child.start()
    assert results.get(timeout=60) == "spawned\n"
    child.join(30)
    assert child.exitcode == 0


def test_a_process_pool_of_forks_can_have_its_own(memory: Shieling) -> None:
    assert memory.run("true").ok
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map(in_pool, range(4)) == ["0\n", "1\n", "2\n", "3\n"]


def in_pool(number: int) -> str:
    with Shieling("memory") as own:
        return own.run(f"echo {number}").stdout


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_nothing_accumulates(place: dict[str, Any], mark: Mark) -> None:
    def once() -> None:
        with Shieling(**place) as shieling:
            shieling.run("true")
            shieling.session().run("true")
            with shieling.start("cat") as process:
                process.write("x")
            shieling.background("true").wait()

    once()
    until(lambda: threading.active_count() == 1, "the threads of the first round")
    before = descriptors()
    for _ in range(8):
        once()
    until(lambda: descriptors() <= before + 2, f"{descriptors()} descriptors to become {before}")
