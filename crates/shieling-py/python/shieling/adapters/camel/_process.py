"""The process of a session, with the part of `subprocess.Popen` that the toolkit's callers use."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from typing import Any

from ... import ClosedError, InputClosedError, Job, JobError, Outcome
from ..._options import is_utf8
from .._execution import exit_status

# The environment has ended it.
_GONE = -9
# It has ended, and its exit code is forgotten. The child watchers of asyncio say the same.
_UNKNOWN = 255
# A job takes 1 MiB of input at once. A character has at most 4 bytes.
_MOST_BYTES = 1024 * 1024
_PART_CHARACTERS = _MOST_BYTES // 4


class SessionInput:
    """The standard input of a session's process."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self.closed = False

    def write(self, text: str) -> int:
        """Sends `text`, and returns the number of its characters.

        More than 1 MiB is sent in parts. Raises `ValueError` after `close`, and `InputClosedError`,
        which is a `BrokenPipeError`, if the process takes no input any more. Where a pipe would
        block, it raises `JobError` with the code `full` after two seconds.
        """
        if self.closed:
            raise ValueError("write to closed file")
        left = len(text)
        for part in _parts(text):
            left -= len(part)
            try:
                self._job.write(part)
            except ClosedError as error:
                raise InputClosedError(str(error)) from error
            except JobError as error:
                if error.code in ("ended", "no_input", "closed", "unknown"):
                    raise InputClosedError(str(error)) from error
                if error.code == "full" and left:
                    words = f"{error}, nor the {left} characters after them"
                    raise JobError(words, error.code) from error
                raise
        return len(text)

    def flush(self) -> None:
        """Does nothing: what is written is sent at once."""

    def close(self) -> None:
        """Lets the process find the end of its input."""
        if not self.closed:
            self.closed = True
            with contextlib.suppress(JobError, ClosedError):
                self._job.write(keys=["C-d"])


def _parts(text: str) -> Iterator[str]:
    # What is no text, or cannot be sent, is refused as a whole.
    whole = not isinstance(text, str) or len(text) <= _PART_CHARACTERS or not is_utf8(text)
    if whole or len(text.encode()) <= _MOST_BYTES:
        yield text
        return
    for start in range(0, len(text), _PART_CHARACTERS):
        yield text[start : start + _PART_CHARACTERS]


class SessionProcess:
    """The process of a session.

    Of `subprocess.Popen` it has `args`, `stdin`, `returncode`, `poll`, `wait`, `terminate`, `kill`,
    `send_signal` with SIGTERM and SIGKILL, and `communicate`. `job` is the `shieling.Job` behind
    it. `pid` is not known: the command runs under a supervisor. `stdout` and `stderr` are `None`,
    since the session takes the output.
    """

    pid: int | None = None
    stdout = None
    stderr = None

    def __init__(self, job: Job, args: str) -> None:
        self.job = job
        self.args = args
        self.stdin = SessionInput(job)
        self.returncode: int | None = None
        self.survivors = 0
        """How many processes could not be ended."""
        self._lock = threading.Lock()

    def take(self, outcome: Outcome) -> None:
        """Keeps how it ended: an environment forgets old jobs."""
        if outcome.status != "running":
            ended: Any = outcome  # a checker may know the package under two names
            self._end(exit_status(ended))

    def _end(self, code: int) -> None:
        with self._lock:
            if self.returncode is None:
                self.returncode = code

    def _ask(self, call: Callable[[], Outcome]) -> Outcome | None:
        """Takes the outcome that `call` returns. If there is none, the process has ended."""
        try:
            outcome = call()
        except ClosedError:
            self._end(_GONE)
        except JobError as error:
            if error.code not in ("unknown", "closed"):
                raise
            self._end(_UNKNOWN if error.code == "unknown" else _GONE)
        else:
            self.take(outcome)
            return outcome
        return None

    def poll(self) -> int | None:
        """Returns the exit code, minus the signal's number if one ended it; `None` while it runs.

        It is 255 if the process ended so long ago that the environment has forgotten how.
        """
        if self.returncode is None:
            self._ask(self.job.outcome)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Waits for the end and returns the exit code.

        Raises `subprocess.TimeoutExpired` if it runs for longer than `timeout` seconds.
        """
        if self.returncode is None:
            self._ask(lambda: self.job.wait(None if timeout is None else max(timeout, 0)))
        if self.returncode is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0)
        return self.returncode

    def terminate(self) -> None:
        """Ends it with all its processes: SIGTERM, and SIGKILL half a second later."""
        if self.returncode is None:
            outcome = self._ask(self.job.kill)
            if outcome is not None:
                self.survivors = outcome.survivors

    kill = terminate

    def send_signal(self, sig: int) -> None:
        """Ends it, as `terminate` does, for SIGTERM and SIGKILL; does nothing if it has ended.

        Raises `ValueError` for any other signal: none can be sent.
        """
        if sig in (signal.SIGTERM, signal.SIGKILL):
            self.terminate()
        elif self.poll() is None:
            raise ValueError(
                f"signal {int(sig)} cannot be sent to a session: only SIGTERM and SIGKILL can"
            )

    def communicate(
        self, input: str | None = None, timeout: float | None = None
    ) -> tuple[None, None]:
        """Sends `input`, closes the standard input and waits for the end.

        Returns no output, like a `Popen` without pipes for it: `shell_view` has it. Raises
        `subprocess.TimeoutExpired` as `wait` does.
        """
        if not self.stdin.closed:
            with contextlib.suppress(BrokenPipeError):
                if input:
                    self.stdin.write(input)
            self.stdin.close()
        self.wait(timeout)
        return None, None
