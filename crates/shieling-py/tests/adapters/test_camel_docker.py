"""`TerminalToolkit` of the adapter for CAMEL, attached to a container of a Docker daemon.

Needs the package `docker`, as the original does; it is installed beside CAMEL.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import until
from docker_engine import engine  # noqa: F401

from shieling.adapters.camel import TerminalToolkit

pytest.importorskip("docker")


@pytest.fixture
def box(engine: str) -> Iterator[str]:  # noqa: F811
    name = f"shieling-box-{time.monotonic_ns()}"
    words = ["docker", "run", "-d", "--init", "--name", name, "--network", "none", engine, "sleep", "9000"]
    subprocess.run(words, check=True, capture_output=True)
    yield name
    subprocess.run(["docker", "rm", "-f", name], check=True, capture_output=True)


@pytest.fixture
def toolkit(box: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TerminalToolkit]:
    monkeypatch.chdir(tmp_path)
    logs = str(tmp_path / "logs")
    with TerminalToolkit(session_logs_dir=logs, use_docker_backend=True, docker_container_name=box) as toolkit:
        yield toolkit


def inside(box: str, command: str) -> str:
    done = subprocess.run(["docker", "exec", box, "sh", "-c", command], capture_output=True, text=True)
    return done.stdout


def test_a_container_is_used_by_its_name(toolkit: TerminalToolkit, box: str) -> None:
    assert toolkit.shell_exec("a", "pwd; echo err >&2; false") == "/workspace\nerr\n[exit code 1]"
    assert toolkit._docker_exec("echo x") == (0, b"x\n")
    answer = toolkit.shell_write_content_to_file("text", "notes/a.txt")
    assert answer == "Content successfully written to 'notes/a.txt' in Docker container."
    assert toolkit.shell_exec("a", "cat notes/a.txt") == "text"
    with pytest.raises(RuntimeError, match="Container 'no-such-box' not found."):
        TerminalToolkit(use_docker_backend=True, docker_container_name="no-such-box")


def test_c24_a_kill_ends_the_processes_of_the_container(toolkit: TerminalToolkit, box: str) -> None:
    running = "ps -o args | grep -c '^[s]leep 72'"
    toolkit.shell_exec("s", "echo up; (sleep 7201; true) & sleep 7202", block=False)
    until(lambda: inside(box, running).strip() == "2", "the session's processes")
    assert "terminated" in toolkit.shell_kill_process("s")
    until(lambda: inside(box, running).strip() == "0", "the session's processes to be gone")
    # One that was converted at its timeout as well.
    answer = toolkit.shell_exec("t", "echo first; sleep 7203", timeout=1)
    assert "Process continues in background as session 't'" in answer
    assert "first" in toolkit.shell_view("t")
    assert "terminated" in toolkit.shell_kill_process("t")
    until(lambda: inside(box, running).strip() == "0", "the converted command to be gone")


def test_a_session_of_the_container_is_written_to(toolkit: TerminalToolkit) -> None:
    toolkit.shell_exec("s", "read x; echo got $x; read y; echo then $y", block=False)
    assert "got 1" in toolkit.shell_write_to_process("s", "1")
    assert "then 2" in toolkit.shell_write_to_process("s", "2")
