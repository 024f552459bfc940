"""Sessions, jobs, and programs that are talked to."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest
from conftest import Mark, until

from shieling import ArgumentError, DeniedError, InputClosedError, JobError, Shieling, View


def test_a_view_is_a_value(here: Shieling) -> None:
    job = here.background("echo out; cat", tty=True)
    view = job.view(wait_for="quiet", wait=20, screen=True)
    assert view.screen is not None and "out" in view.screen.text
    assert View.from_dict(view.to_dict()) == view
    job.kill()


def test_a_restart_ends_what_the_session_runs(here: Shieling, tmp_path: Path) -> None:
    session = here.session(cwd=tmp_path)
    ended: list[str] = []
    running = threading.Thread(target=lambda: ended.append(session.run("echo >begun; sleep 600").status))
    running.start()
    until((tmp_path / "begun").exists, "the command")
    session.restart()
    running.join(20)
    assert ended and ended[0] != "exited"
    assert session.run("echo anew").stdout == "anew\n"


def test_a_session_keeps_its_state(here: Shieling, tmp_path: Path) -> None:
    session = here.session("build", cwd=tmp_path, env={"START": "1"})
    session.run("mkdir d; cd d; x=1; f() { echo from f; }; export y=2")
    outcome = session.run("pwd; echo $x $y $START; f")
    assert outcome.stdout.split("\n")[:3] == [str(tmp_path / "d"), "1 2 1", "from f"]
    assert outcome.session == "build" and outcome.cwd == session.cwd == str(tmp_path / "d")
    assert [info.session for info in here.sessions()] == ["build"]
    outcome = session.run("exit 7")
    assert outcome.exit_code == 7 and outcome.session_restarted
    assert session.run("echo ${x-none} $y").stdout == "none 2\n"
    session.restart()
    assert session.run("echo ${y-none}; pwd").stdout.split() == ["none", str(tmp_path)]
    assert session.close() and not session.close()


def test_a_timeout_keeps_the_session(here: Shieling, mark: Mark) -> None:
    session = here.session()
    session.run("x=1")
    outcome = session.run(f"{mark.sleep}; echo not reached", timeout=0.5)
    assert outcome.status == "timed_out" and "not reached" not in outcome.stdout and mark.count() == 0
    assert session.run("echo $x").stdout == "1\n"


def test_a_name_that_no_session_can_have(here: Shieling) -> None:
    for name in ["", "a b", "../x", "é" * 3, "x" * 100]:
        with pytest.raises(ArgumentError):
            here.session(name)
    for name in [5, None, b"main"]:
        with pytest.raises(ArgumentError, match="^the name of a session is a string, and this is"):
            here.session(name)  # type: ignore[arg-type]


def test_a_job_is_looked_at_written_to_and_ended(here: Shieling) -> None:
    job = here.background("read line; echo got $line; cat")
    view = job.write("hello", enter=True, wait=10)
    assert view.outcome.stdout == "got hello\n"
    again = job.view()
    assert again.outcome.stdout == "" and job.view(cursor=0).outcome.stdout == "got hello\n"
    matched, _ = job.wait_for(pattern="got h.llo", timeout=10)
    assert matched
    with pytest.raises(ArgumentError):
        job.wait_for()
    assert job.outcome().status == "running" and job.wait(0.05).status == "running"
    assert job.kill().survivors == 0
    with pytest.raises(JobError) as raised:
        job.write("x")
    assert raised.value.code == "ended"
    with pytest.raises(JobError) as raised:
        here.job("j99")
    assert raised.value.code == "unknown"


def test_what_a_job_prints_at_once_is_in_its_first_view(here: Shieling) -> None:
    for number in range(100):
        job = here.background(f"echo {number}; cat")
        assert job.view(wait=10).outcome.stdout == f"{number}\n"
        job.kill()


def test_a_job_on_a_terminal(here: Shieling, mark: Mark) -> None:
    job = here.background(f"stty size; read -r line; stty size; exec {mark.sleep}", tty=(30, 90))
    matched, _ = job.wait_for(pattern="30 90", timeout=20)
    assert matched
    job.resize(40, 100)
    job.write("x", enter=True)
    matched, _ = job.wait_for(pattern="40 100", timeout=20)
    assert matched
    screen = job.view(screen=True).screen
    assert screen is not None and (screen.rows, screen.columns) == (40, 100) and "30 90" in screen.text
    # Until then bash decides what becomes of the key.
    mark.started()
    job.write(keys=["C-c"])
    assert job.wait(20).status in ("signalled", "exited")
    with pytest.raises(JobError) as raised:
        job.resize(24, 80)
    assert raised.value.code == "ended"


def test_a_refused_job_is_raised(place: dict[str, Any]) -> None:
    with Shieling(**place, deny=["sleep"]) as shieling:
        with pytest.raises(DeniedError) as raised:
            shieling.background("sleep 5")
        assert raised.value.outcome is not None and raised.value.outcome.status == "denied"
        with pytest.raises(DeniedError):
            shieling.start("sleep 5")


def test_a_call_with_the_name_of_a_job_starts_nothing(here: Shieling, mark: Mark) -> None:
    first = here.background(mark.sleep, id="one")
    mark.started()
    assert here.background(mark.sleep, id="one").id == first.id and mark.count() == 1
    first.kill()


def test_a_program_is_talked_to(here: Shieling) -> None:
    with here.start("while read -r line; do echo \"<$line>\"; echo \"err $line\" >&2; done; exit 3") as process:
        for word in ["one", "two", "three"]:
            process.write(word + "\n")
            assert process.stdout.readline(timeout=20) == f"<{word}>\n".encode()
            assert process.stderr.readline(timeout=20) == f"err {word}\n".encode()
        with pytest.raises(TimeoutError):
            process.stdout.read(timeout=0.05)
        assert process.returncode is None
        process.close_stdin()
        process.close_stdin()
        with pytest.raises(InputClosedError):
            process.write("more")
        assert process.stdout.read() == b"" and list(process.stderr) == []
        outcome = process.wait()
        assert outcome.exit_code == 3 == process.returncode and outcome.stdout_bytes == 20


def test_a_line_in_parts_stays_for_the_next_read(here: Shieling, tmp_path: Path) -> None:
    with here.start("printf abc; read -r _; echo def") as process:
        with pytest.raises(TimeoutError):
            process.stdout.readline(timeout=0.5)
        process.write("\n")
        assert process.stdout.readline(timeout=20) == b"abcdef\n"


def test_a_large_exchange_does_not_hang(here: Shieling) -> None:
    data = bytes(range(256)) * 8_000
    with here.start("cat") as process:

        def send() -> None:
            process.write(data)
            process.close_stdin()

        thread = threading.Thread(target=send)
        thread.start()
        assert process.stdout.read_all(timeout=30) == data
        thread.join()


def test_leaving_the_block_ends_the_program(here: Shieling, mark: Mark) -> None:
    with here.start(f"{mark.sleep} & {mark.sleep}"):
        mark.started(2)
    assert mark.count() == 0
    process = here.start(mark.sleep)
    mark.started()
    del process
    mark.gone()


def test_a_session_s_commands_wait_for_their_turn(here: Shieling) -> None:
    session = here.session()
    found: list[str] = []
    threads = [
        threading.Thread(target=lambda: found.append(session.run("n=$((n+1)); sleep 0.05; echo $n").stdout.strip()))
        for _ in range(5)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == ["1", "2", "3", "4", "5"]


def test_jobs_are_told_of(here: Shieling, mark: Mark) -> None:
    job = here.session("s").background(mark.sleep)
    until(lambda: mark.count() == 1, "the job")
    info = next(info for info in here.jobs() if info.job == job.id)
    assert info.status == "running" and mark.sleep in info.command
    started = time.monotonic()
    assert job.kill().survivors == 0 and time.monotonic() - started < 30
