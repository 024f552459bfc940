"""Shells that stay from command to command, and commands in processes of their own.

`ShellSession` is bash with a control channel apart from the streams: what a command prints, reads
or sets cannot end, block or forge a result. `PipedSession` speaks to any other shell over its
standard streams, and to a shell in a container through the command line of its runtime.
"""

from __future__ import annotations

import asyncio
import errno
import os
import secrets
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ... import AsyncProcess, AsyncShieling, AsyncStream, ClosedError, Outcome, ShielingError
from .._execution import NO_LIMIT_SECONDS, approval_options, given_variables, time_limit
from ._lock import LoopsLock
from ._resolve import is_bash, is_powershell
from ._truncate import truncate_head_tail, truncate_text_head_tail
from ._types import ShellCommandError, ShellExecutionError, ShellResult, with_restart

if TYPE_CHECKING:
    from typing_extensions import Self

_NOT_RUNNING = "ShellSession is not running; call start() first"
# PowerShell of Windows prints in the console's code page otherwise.
_POWERSHELL_UTF8 = (
    "$OutputEncoding = [Console]::OutputEncoding = [System.Text.UTF8Encoding]::new($false); "
)
_REFUSED = ("denied", "needs_approval", "rate_limited")


def open_shieling(
    environment: str,
    *,
    workdir: str | None,
    env: Mapping[str, str] | None,
    max_output_bytes: int,
    options: Mapping[str, Any],
) -> AsyncShieling:
    """Opens the environment of one tool; nothing starts.

    `env=None` inherits the variables of this process in `local`; `options` are further keywords of
    `AsyncShieling` and go before what is derived here. Raises `FileNotFoundError` if `workdir` does
    not exist and `NotADirectoryError` if it is no directory; `TypeError` and `ValueError` for
    variables that no process can have.
    """
    if workdir is not None and environment != "memory" and not os.path.isdir(workdir):
        code = errno.ENOTDIR if os.path.exists(workdir) else errno.ENOENT
        raise OSError(code, os.strerror(code), workdir)
    keywords: dict[str, Any] = {
        "workspace": workdir,
        "max_output": _kept_bytes(max_output_bytes),
        "inherit_env": env is None and environment == "local",
        "env": None if env is None else given_variables(env),
        # Approval is the framework's part: a tool is asked about before it is called.
        **approval_options(options),
    }
    if environment == "local":
        keywords["allow_home"] = True
    return AsyncShieling(environment, **{**keywords, **options})


def check_program(program: str, env: Mapping[str, str] | None) -> None:
    """Raises `FileNotFoundError` if `program` does not exist on this host.

    The package runs an argument vector by a shell, which would report it as exit code 127.
    """
    path = (os.environ if env is None else env).get("PATH")
    if shutil.which(program, path=path) is None and not os.path.exists(program):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), program)


def _kept_bytes(cap: int) -> int:
    # Head and tail are cut again to the caller's shares; half of this is at least either of them.
    return 2 * cap + 8


def check_cap(cap: int) -> None:
    """Raises `ValueError` for a bound of the output that is not positive."""
    truncate_head_tail(b"", cap)


def _cut(text: str, total: int, truncated: bool, cap: int) -> tuple[str, bool]:
    """Returns a stream of an outcome cut to `cap` bytes; `total` is what was written in all."""
    if not truncated or total <= _kept_bytes(cap):
        return truncate_text_head_tail(text, cap)
    data = text.encode("utf-8", errors="replace")
    # What lies between head and tail is the package's own marker and goes with the cut.
    head = data[: cap // 2].decode("utf-8", errors="replace")
    tail = data[len(data) - (cap - cap // 2) :].decode("utf-8", errors="replace")
    return f"{head}\n[... truncated {total - cap} bytes ...]\n{tail}", True


def result_of(outcome: Outcome, cap: int, *, strip: bool) -> ShellResult:
    """Returns the result of an outcome; `strip` removes line ends at the end of stdout.

    Raises `ShellCommandError` for a refusal and `ShellExecutionError` for what could not be run.
    """
    if outcome.status in _REFUSED:
        reason = outcome.denial.message() if outcome.denial is not None else outcome.status
        raise ShellCommandError(f"Command rejected by policy: {reason}")
    if outcome.status == "failed":
        raise ShellExecutionError(outcome.error or "the command could not be started")
    stdout, stdout_bytes = outcome.stdout, outcome.stdout_bytes
    if strip:
        stdout = stdout.rstrip("\r\n")
        stdout_bytes -= len(outcome.stdout) - len(stdout)
    stdout, cut_stdout = _cut(stdout, stdout_bytes, outcome.truncated, cap)
    stderr, cut_stderr = _cut(outcome.stderr, outcome.stderr_bytes, outcome.truncated, cap)
    if outcome.exit_code is None and outcome.error:
        stderr = f"{stderr.rstrip()}\n{outcome.error}".lstrip()
    result = ShellResult(
        stdout=stdout,
        stderr=stderr,
        exit_code=_exit_code(outcome),
        duration_ms=int(outcome.duration_ms),
        truncated=cut_stdout or cut_stderr,
        timed_out=outcome.status == "timed_out",
    )
    return with_restart(result, outcome.session_restarted)


def _exit_code(outcome: Outcome) -> int:
    if outcome.exit_code is not None:
        return outcome.exit_code
    return 137 if outcome.status == "out_of_memory" else -1


async def run_stateless(
    shieling: AsyncShieling,
    argv: Sequence[str],
    command: str,
    *,
    env: Mapping[str, str | None] | None,
    timeout: float | None,
    max_output_bytes: int,
) -> ShellResult:
    """Runs `command` in a process of its own, by the shell `argv`, with no standard input.

    `env` is laid over the environment's variables. A shell that a signal ended has the negative
    number of the signal as its exit code.
    """
    check_cap(max_output_bytes)
    if is_powershell(argv):
        command = _POWERSHELL_UTF8 + command
    plain = is_bash(argv) and list(argv[1:]) == ["-c"]
    outcome = await _guarded(
        shieling.run(
            command if plain else [*argv, command], timeout=time_limit(timeout), env=env or None
        )
    )
    result = result_of(outcome, max_output_bytes, strip=False)
    if outcome.status == "signalled" and outcome.signal is not None:
        return replace(result, exit_code=-outcome.signal)
    return result


async def _guarded(call: Any) -> Any:
    """Awaits a call of the package and turns its exceptions into the adapter's."""
    try:
        return await call
    except ClosedError as error:
        raise ShellExecutionError(_NOT_RUNNING) from error
    except ShielingError as error:
        raise ShellExecutionError(str(error)) from error


class _Session:
    """What the sessions share: their parameters, their environment, and that commands take turns."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        workdir: str | None = None,
        env: Mapping[str, str] | None = None,
        max_output_bytes: int = 64 * 1024,
        environment: str = "local",
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self._argv = list(argv)
        self._workdir = workdir
        self._env = env
        self._max_output_bytes = max_output_bytes
        self._environment = environment
        self._options = {**self._first_options(), **(options or {})}
        self._shieling: AsyncShieling | None = None
        self._close_generation = 0
        self._run_lock = LoopsLock()

    def _first_options(self) -> dict[str, Any]:
        """Returns options of the environment that go before the caller's.

        Raises `ShellExecutionError` for a shell that this session cannot keep.
        """
        return {}

    def _opened(self) -> AsyncShieling:
        """Returns the environment, which the first call opens."""
        if self._shieling is None:
            self._shieling = open_shieling(
                self._environment,
                workdir=self._workdir,
                env=self._env,
                max_output_bytes=self._max_output_bytes,
                options=self._options,
            )
        return self._shieling

    async def start(self) -> None:
        """Opens the environment."""
        self._opened()

    async def _stop(self) -> None:
        """Ends what runs in the environment and would not end with it."""

    async def close(self) -> None:
        """Ends the shell with everything that it started. Calls that wait for it fail."""
        self._close_generation += 1
        await self._stop()
        shieling, self._shieling = self._shieling, None
        if shieling is not None:
            await shieling.close()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self.close()

    def _check(self, command: str) -> None:
        """Raises for a command that no shell is started for."""
        check_cap(self._max_output_bytes)

    async def run(
        self, command: str, *, timeout: float | None, anchor: str | None = None
    ) -> ShellResult:
        """Runs `command`, in the directory `anchor` if one is given, and returns its result."""
        self._check(command)
        generation = self._close_generation
        async with self._run_lock:
            if generation != self._close_generation:
                raise ShellExecutionError(_NOT_RUNNING)
            await self.start()
            return await self._run_locked(command, timeout, anchor)

    async def _run_locked(
        self, command: str, timeout: float | None, anchor: str | None
    ) -> ShellResult:
        raise NotImplementedError


class ShellSession(_Session):
    """A bash whose directory, variables, functions and options stay from command to command.

    Commands run one after another. A timeout or a cancellation ends what the command started and
    keeps the shell's state. A command that ends the shell gets its exit code and output as usual,
    with `session_restarted`; the next one runs in a fresh shell.
    """

    def _first_options(self) -> dict[str, Any]:
        # In `memory` the bash is the package's own.
        own_shell = self._environment != "memory" and os.path.isabs(self._argv[0])
        return {"shell": self._argv[0]} if own_shell else {}

    async def _run_locked(
        self, command: str, timeout: float | None, anchor: str | None
    ) -> ShellResult:
        session = self._opened().session("main")
        if anchor is not None:
            await self._return_to(session, anchor, timeout)
        outcome = await _guarded(session.run(command, timeout=time_limit(timeout)))
        # As the original: what a timeout cuts off keeps its line ends.
        return result_of(outcome, self._max_output_bytes, strip=outcome.status != "timed_out")

    async def _return_to(self, session: Any, anchor: str, timeout: float | None) -> None:
        there = self._environment == "memory" or os.path.isdir(anchor)
        if session.cwd == os.path.abspath(anchor) and there:
            return
        outcome = await _guarded(session.run(["cd", "--", anchor], timeout=time_limit(timeout)))
        if not outcome.ok:
            raise ShellExecutionError(
                f"the working directory {anchor!r} cannot be entered: "
                f"{outcome.stderr.strip() or outcome.error or outcome.status}; the command did not run"
            )


class _Tail:
    """The bytes of a stream since a command began, of which at most `limit` are kept."""

    def __init__(self, stream: AsyncStream, limit: int) -> None:
        self._stream = stream
        self._limit = limit
        self.data = bytearray()
        self.total = 0
        self.ended = False

    def begin(self) -> None:
        self.data.clear()
        self.total = 0

    async def until(self, sentinel: bytes) -> bytes | None:
        """Reads up to the line of `sentinel`; returns the rest of that line, or `None` at the end."""
        while True:
            at = self.data.find(sentinel)
            end = self.data.find(b"\n", at + len(sentinel)) if at >= 0 else -1
            if end >= 0:
                rest = bytes(self.data[at + len(sentinel) : end])
                self.total -= len(self.data) - at
                del self.data[at:]
                return rest
            chunk = await self._stream.read()
            if not chunk:
                self.ended = True
                return None
            self._append(chunk)

    def _append(self, chunk: bytes) -> None:
        self.data += chunk
        self.total += len(chunk)
        excess = len(self.data) - 2 * self._limit
        if excess > self._limit:
            # The middle goes; the head stays, and a tail in which a sentinel still lies whole.
            del self.data[self._limit : self._limit + excess]

    def text(self, cap: int, *, strip: bool) -> tuple[str, bool]:
        data = bytes(self.data)
        total = self.total
        if strip:
            stripped = data.rstrip(b"\r\n")
            total -= len(data) - len(stripped)
            data = stripped
        if total <= len(data):
            return truncate_head_tail(data, cap)
        head, tail = data[: cap // 2], data[len(data) - (cap - cap // 2) :]
        return (
            f"{head.decode('utf-8', errors='replace')}"
            f"\n[... truncated {total - cap} bytes ...]\n"
            f"{tail.decode('utf-8', errors='replace')}",
            True,
        )


class PipedSession(_Session):
    """A POSIX shell that reads commands from its standard input.

    Commands are passed to `eval` as one quoted word and read nothing, so that comments, open quotes
    and programs that read do not disturb the conversation. At a timeout, at a cancellation and when
    a command ends the shell, the shell is replaced; the result says so with `session_restarted`.
    Subclasses run a shell elsewhere and say how to stop what it started there.
    """

    _proc: AsyncProcess | None = None
    _stdout: _Tail | None = None
    _stderr: _Tail | None = None

    def _first_options(self) -> dict[str, Any]:
        if is_powershell(self._argv):
            raise ShellExecutionError(
                "PowerShell has no persistent mode here; use mode='stateless', or a POSIX shell"
            )
        return {}

    @property
    def ended(self) -> bool:
        """Whether the shell has to be started, for the first time or again."""
        return self._proc is None

    async def start(self) -> None:
        """Starts the shell if it does not run."""
        if self._proc is not None:
            return
        process = await _guarded(self._opened().start(self._argv, timeout=NO_LIMIT_SECONDS))
        limit = max(self._max_output_bytes, 64 * 1024)
        self._proc = process
        self._stdout = _Tail(process.stdout, limit)
        self._stderr = _Tail(process.stderr, limit)
        # The sentinels go to copies of the first streams, wherever a command sends its own.
        await _guarded(process.write("exec 8>&1 9>&2\n"))

    def _check(self, command: str) -> None:
        super()._check(command)
        if "\0" in command:
            raise ShellExecutionError("the command holds a NUL character, which no shell can read")

    async def _run_locked(
        self, command: str, timeout: float | None, anchor: str | None
    ) -> ShellResult:
        # A directory to return to is part of the command here.
        process, stdout, stderr = self._proc, self._stdout, self._stderr
        assert process is not None and stdout is not None and stderr is not None
        sentinel = f"__shieling_{secrets.token_hex(16)}"
        started = time.monotonic()
        stdout.begin()
        stderr.begin()
        exit_code, timed_out, alive = -1, False, True
        try:
            exit_code, alive = await asyncio.wait_for(
                self._converse(process, stdout, stderr, command, sentinel), timeout
            )
        except asyncio.TimeoutError:
            exit_code, timed_out, alive = 124, True, False
        except asyncio.CancelledError:
            await self._stop()
            raise
        if not alive:
            await self._stop()
        cap = self._max_output_bytes
        text, cut_stdout = stdout.text(cap, strip=not timed_out)
        errors, cut_stderr = stderr.text(cap, strip=False)
        result = ShellResult(
            stdout=text,
            stderr=errors,
            exit_code=exit_code,
            duration_ms=int((time.monotonic() - started) * 1000),
            truncated=cut_stdout or cut_stderr,
            timed_out=timed_out,
        )
        return with_restart(result, not alive)

    async def _converse(
        self, process: AsyncProcess, stdout: _Tail, stderr: _Tail, command: str, sentinel: str
    ) -> tuple[int, bool]:
        """Returns the exit code, and whether the shell still runs."""
        try:
            await process.write(_script(command, sentinel))
        except ShielingError:
            pass  # The shell has ended; its streams tell the rest.
        mark = f"\n{sentinel}".encode()
        rest, _ = await asyncio.gather(stdout.until(mark), stderr.until(mark))
        if rest is not None:
            return _parse_rc(rest + b"\n"), True
        outcome = await _guarded(process.wait())
        return _exit_code(outcome), False

    async def _stop(self) -> None:
        process, self._proc = self._proc, None
        if process is not None:
            await process.kill()


def session_class(argv: Sequence[str]) -> type[ShellSession] | type[PipedSession]:
    """Returns what keeps a shell: bash without further options has the better one."""
    flags = {"--noprofile", "--norc"}
    return ShellSession if is_bash(argv) and flags.issuperset(argv[1:]) else PipedSession


def _quote(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _script(command: str, sentinel: str) -> str:
    """Returns the input for one command: the command, then a line with its exit code.

    `command eval` keeps a shell alive whose syntax error would end it; `||` keeps `set -e` from
    ending it. The line on standard error tells that this stream is complete too.
    """
    return (
        f"__af_rc=0; command eval {_quote(command)} </dev/null || __af_rc=$?; "
        f"command printf '\\n{sentinel}_%s\\n' \"$__af_rc\" >&8; "
        f"command printf '\\n{sentinel}\\n' >&9\n"
    )


def _parse_rc(after: bytes) -> int:
    """Returns the number after the underscore that follows a sentinel; -1 if there is none."""
    digits = after[1:].split(b"\n", 1)[0].split(b"\r", 1)[0]
    if not after.startswith(b"_"):
        return -1
    end = 0
    while end < len(digits) and (48 <= digits[end] <= 57 or digits[end : end + 1] == b"-"):
        end += 1
    try:
        return int(digits[:end])
    except ValueError:
        return -1
