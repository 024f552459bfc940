"""What the tests share: environments to run in, marks by which processes are found, and waiting for a state."""

from __future__ import annotations

import functools
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from shieling import Shieling

LOCAL: dict[str, Any] = {"approval": "policy"}


def pytest_configure() -> None:
    # A shell without job control starts what it leaves in the background with SIGINT ignored, and so would be all that the
    # tests start, which interrupt some of it.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@functools.cache
def sandbox_works() -> str | None:
    """Why commands cannot run in a sandbox here; nothing if they can."""
    with tempfile.TemporaryDirectory() as workspace, Shieling("sandbox", workspace=workspace) as shieling:
        outcome = shieling.run("true")
        return None if outcome.ok else outcome.error or outcome.status


def need_sandbox() -> None:
    missing = sandbox_works()
    if missing is not None:
        if os.environ.get("CI") == "true":
            pytest.fail(f"no sandbox can be made here: {missing}")
        pytest.skip(f"no sandbox can be made here: {missing}")


@pytest.fixture(params=["local", "sandbox"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, Any]:
    """Keywords of an environment in which processes run."""
    if request.param == "sandbox":
        need_sandbox()
        return {"environment": "sandbox", "workspace": tmp_path}
    return {"environment": "local", "workspace": tmp_path, **LOCAL}


@pytest.fixture
def here(place: dict[str, Any]) -> Iterator[Shieling]:
    """An environment in which processes run."""
    with Shieling(**place) as shieling:
        yield shieling


@pytest.fixture
def memory() -> Iterator[Shieling]:
    """An environment in memory."""
    with Shieling("memory", workspace="/work") as shieling:
        yield shieling


class Mark:
    """A sleep that no other test has, and whether it still sleeps."""

    def __init__(self) -> None:
        self.seconds = f"{600 + uuid.uuid4().int % 1_000_000}.{uuid.uuid4().int % 1_000_000:06}"
        self.sleep = f"sleep {self.seconds}"

    def count(self) -> int:
        """How many processes of it there are on this host."""
        found = 0
        for directory in Path("/proc").iterdir():
            if directory.name.isdigit():
                try:
                    words = (directory / "cmdline").read_bytes().split(b"\0")
                except OSError:
                    continue
                found += words[:1] != [b""] and self.seconds.encode() in words[1:2]
        return found

    def started(self, at_least: int = 1) -> None:
        until(lambda: self.count() >= at_least, f"`{self.sleep}` to run")

    def gone(self) -> None:
        until(lambda: self.count() == 0, f"`{self.sleep}` to be gone")


@pytest.fixture
def mark() -> Iterator[Mark]:
    mark = Mark()
    yield mark
    mark.gone()


def until(is_so: Callable[[], bool], what: str, seconds: float = 30.0) -> None:
    """Wait for a state."""
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end, f"waited {seconds} s for {what}"
        time.sleep(0.01)


def script(text: str, *words: str, timeout: float = 60.0, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a program in a Python of its own."""
    text = textwrap.dedent(text)
    return subprocess.run(
        [sys.executable, "-c", text, *words], capture_output=True, text=True, timeout=timeout, **options
    )
