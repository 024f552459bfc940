"""The installed package: its command, its size, how fast it is imported, and that nothing has to be on PATH."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import Mark, need_sandbox, script

import shieling

MODULE = [sys.executable, "-m", "shieling"]


def commands() -> list[list[str]]:
    beside = Path(sys.executable).with_name("shieling")
    return [MODULE, [str(beside)]] if beside.exists() else [MODULE]


@pytest.fixture(params=commands(), ids=lambda words: "module" if words == MODULE else "command")
def command(request: pytest.FixtureRequest) -> list[str]:
    return list(request.param)


def run(words: list[str], *more: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*words, *more], capture_output=True, text=True, timeout=60, **options)


def test_the_command_exits_as_its_command_did(command: list[str], tmp_path: Path) -> None:
    execute = ["exec", "--env", "local", "--approval", "policy", "--workspace", str(tmp_path)]
    assert run(command, *execute, "echo out; echo err >&2; exit 7").returncode == 7
    done = run(command, *execute, "echo out; echo err >&2")
    assert (done.stdout, done.stderr) == ("out\n", "err\n")
    assert run(command, *execute, "kill -9 $$").returncode == 137
    assert run(command, *execute, "--timeout", "300ms", "sleep 600").returncode == 124
    assert run(command, *execute, "--deny", "rm", "rm x").returncode == 126
    assert run(command, "exec", "--no-such-option").returncode == 125
    assert run(command, *execute, "cat", input="given").stdout == "given"
    assert run(command, "--version").stdout == f"shieling {shieling.__version__}\n"


def test_the_command_ends_its_tree_when_a_signal_ends_it(command: list[str], tmp_path: Path, mark: Mark) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        words = [*command, "exec", "--env", "local", "--approval", "policy", "--workspace", str(tmp_path), mark.sleep]
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL)
        mark.started()
        process.send_signal(number)
        assert process.wait(60) == 128 + number
        mark.gone()


def test_everything_it_needs_is_in_the_package(tmp_path: Path) -> None:
    need_sandbox()
    # No PATH, no home, no variable at all; and a sandboxed session needs the jail's program and bash's builtin.
    text = """
        import sys
        from shieling import Shieling
        with Shieling("sandbox", workspace=sys.argv[1]) as shieling:
            session = shieling.session()
            session.run("x=1")
            print(session.run("echo $x").stdout.strip(), shieling.run("echo y").stdout.strip())
        """
    paths = os.pathsep.join(path for path in sys.path if path)
    done = script(text, str(tmp_path), env={"PYTHONPATH": paths})
    assert done.stdout == "1 y\n", done.stderr


def test_the_doctor_answers() -> None:
    done = run(MODULE, "doctor", "--json")
    assert done.returncode in (0, 1) and '"layers"' in done.stdout


def test_importing_brings_no_event_loop() -> None:
    done = script("import sys, shieling; print([name for name in ('asyncio', 'inspect', 'dataclasses') if name in sys.modules])")
    assert done.stdout == "[]\n", done.stderr


def test_the_mcp_server_ends_with_its_client(tmp_path: Path) -> None:
    words = [*MODULE, "mcp", "--env", "local", "--approval", "policy", "--workspace", str(tmp_path)]
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path.parent / "state")}
    assert run(words, input="", env=environment).returncode == 0
