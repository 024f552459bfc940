"""The process of a session, with the part of `subprocess.Popen` that the toolkit's callers use."""

from __future__ import annotations

import contextlib
import subprocess
from typing import Any

from ... import ClosedError, InputClosedError, Job, JobError, Outcome
from .._execution import exit_status

_GONE = -9


class SessionInput:
    """The standard input of a session's process."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self.closed = False

    def write(self, text: str) -> int:
        """Sends `text`, and returns the number of its characters.

        Raises `ValueError` after `close`, and `InputClosedError`, which is a `BrokenPipeError`, if
        the process reads nothing.
        """
        if self.closed:
            raise ValueError("write to closed file")
        try:
            self._job.write(text)
        except JobError as error:
            if error.code in ("ended", "no_input", "closed"):
                raise InputClosedError(str(error)) from error
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


class SessionProcess:
    """The process of a session.

    `job` is the `shieling.Job` behind it. `pid` is not known: the command runs under a supervisor.
    `stdout` and `stderr` are `None`, since the session takes the output.
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

    def _take(self, outcome: Outcome) -> int | None:
        if outcome.status != "running":
            ended: Any = outcome  # a checker may know the package under two names
            self.returncode = exit_status(ended)
        return self.returncode

    def poll(self) -> int | None:
        """Returns the exit code, minus the signal's number if one ended it; `None` while it runs."""
        if self.returncode is None:
            try:
                self._take(self.job.outcome())
            except ClosedError:
                # It ended with the environment.
                self.returncode = _GONE
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Waits for the end and returns the exit code.

        Raises `subprocess.TimeoutExpired` if it runs for longer than `timeout` seconds.
        """
        if self.returncode is None:
            try:
                self._take(self.job.wait(None if timeout is None else max(timeout, 0)))
            except ClosedError:
                self.returncode = _GONE
        if self.returncode is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0)
        return self.returncode

    def terminate(self) -> None:
        """Ends it with all its processes: SIGTERM, and SIGKILL half a second later."""
        if self.returncode is None:
            with contextlib.suppress(ClosedError):
                outcome = self.job.kill()
                self.survivors = outcome.survivors
                self._take(outcome)

    kill = terminate
