"""Shells that stay from command to command, and what they share with commands in processes of their own.

`BashSession` has a control channel apart from the streams: what a command prints, reads or sets
cannot end, block or forge a result. `PipedSession` speaks to any other shell over its standard
streams, and to a shell in a container through the command line of its runtime.
"""

from __future__ import annotations

import asyncio
import errno
import os
import re
import secrets
import shutil
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from ... import AsyncProcess, AsyncSession, AsyncShieling, AsyncStream, ClosedError, Outcome, ShielingError
from ..._options import is_utf8
from .._execution import NO_LIMIT_SECONDS, approval_options, given_variables, held_back, time_limit
from ._killtree import ProcessEntry, interrupt_group, parse_entry
from ._lock import LoopsLock
from ._resolve import is_bash, is_powershell
from ._truncate import around_marker, truncate_head_tail, truncate_text_head_tail
from ._types import ShellCommandError, ShellExecutionError, ShellResult, result_of_streams

if TYPE_CHECKING:
    from typing_extensions import Self

_NOT_RUNNING = "ShellSession is not running; call start() first"
# A shell that is closed has so many seconds to end.
_SHUTDOWN_GRACE = 2.0
_CHUNK_BYTES = 64 * 1024
_PLAIN_OPTIONS = frozenset({"--noprofile", "--norc"})
_REFUSED = ("denied", "needs_approval", "rate_limited")


def open_shieling(
    environment: str, *, workdir: str | None, options: Mapping[str, Any]
) -> AsyncShieling:
    """Opens the environment of one tool; nothing starts.

    Commands bring their variables and the bound of their output. `options` are further keywords of
    `AsyncShieling` and go before what is derived here. Raises `FileNotFoundError` if `workdir` does
    not exist and `NotADirectoryError` if it is no directory.
    """
    if environment != "memory":
        check_directory(workdir)
    keywords: dict[str, Any] = {
        "workspace": workdir,
        # Approval is the framework's part: a tool is asked about before it is called.
        **approval_options(options),
    }
    if environment == "local":
        keywords["allow_home"] = True
    return AsyncShieling(environment, **{**keywords, **options})


def check_directory(workdir: str | None) -> None:
    """Raises what a process that starts in `workdir` would, if it is no directory."""
    if workdir is not None and not os.path.isdir(workdir):
        code = errno.ENOTDIR if os.path.exists(workdir) else errno.ENOENT
        raise OSError(code, os.strerror(code), workdir)


def variables_of(
    env: Mapping[str, str] | None, environment: str, options: Mapping[str, Any]
) -> dict[str, str]:
    """Returns the variables of a command: `env`, and for `None` in `local` those of this process now.

    What `options` say of a variable goes first. Raises `TypeError` and `ValueError` for variables
    that no process can have.
    """
    if env is None:
        env = os.environ if environment == "local" and options.get("inherit_env", True) else {}
    elsewhere: dict[str, str] = dict(options.get("env") or ())
    return {
        name: value
        for name, value in given_variables(env).items()
        # This process may have some that are no text. They stay behind, and do not stop the others.
        if name not in elsewhere and (is_utf8(name + value) or os.environ.get(name) != value)
    }


def check_program(program: str, env: Mapping[str, str] | None) -> None:
    """Raises `FileNotFoundError` if `program` does not exist on this host.

    The package runs an argument vector by a shell, which would report it as exit code 127.
    """
    path = (os.environ if env is None else env).get("PATH")
    if shutil.which(program, path=path) is None and not os.path.exists(program):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), program)


def check_cap(cap: int) -> None:
    """Raises `ValueError` for a bound of the output that is not positive."""
    truncate_head_tail(b"", cap)


def kept_of_text(cap: int) -> int:
    """Returns how many bytes of a stream are kept whose text is cut, not its bytes.

    A byte that is no UTF-8 counts three there, so that the text can be too long and the bytes not.
    """
    return 2 * cap + 8


# What the package puts between the head and the tail that it keeps of a stream.
_LEFT_OUT = re.compile(rb"\n\[\.\.\. [\d,]+ bytes left out \.\.\.\]\n")
_BLOCK = 64 * 1024


class _Stream:
    """One stream of an outcome: as much as the package has kept of it."""

    def __init__(self, shieling: AsyncShieling, outcome: Outcome, name: Literal["stdout", "stderr"]) -> None:
        self._shieling = shieling
        self._name: Literal["stdout", "stderr"] = name
        self._output_id = outcome.output_id
        self.text: str = getattr(outcome, name)
        self.size: int = getattr(outcome, f"{name}_bytes")

    async def _bytes(self, start: int, end: int) -> bytes | None:
        """Returns these bytes; `None` if they are not stored."""
        data = b""
        while self._output_id is not None and start + len(data) < end:
            at = start + len(data)
            page = await self._shieling.output(
                self._output_id, stream=self._name, cursor=at, limit=end - at
            )
            if not page.data:
                break
            data += page.data
        return data if len(data) == end - start else None

    async def cut(self, cap: int, kept: int, *, strip: bool) -> tuple[str, bool]:
        """Returns what `cap` leaves of the stream, and whether bytes were left out.

        `kept` is the number of bytes up to which the outcome has all of it. `strip` removes line
        ends at its end.
        """
        if self.size <= kept:
            text = self.text.rstrip("\r\n") if strip else self.text
            return (text, False) if kept == cap else truncate_text_head_tail(text, cap)
        size = await self._stripped() if strip else self.size
        whole = await self._bytes(0, size) if size <= cap else None
        if whole is not None:
            return whole.decode("utf-8", errors="replace"), False
        head = await self._bytes(0, cap // 2)
        tail = await self._bytes(size - (cap - cap // 2), size)
        if head is None or tail is None:
            # Only the first of it is stored, or nothing.
            first, *_, last = _LEFT_OUT.split(self.text.encode("utf-8", errors="replace"))
            last = last.rstrip(b"\r\n") if strip else last
            head, tail = first[: cap // 2], last[-(cap - cap // 2) :]
        return around_marker(head, tail, size - cap), True

    async def _stripped(self) -> int:
        """Returns the size without the line ends at the end, as far as that is stored."""
        size = self.size
        while size:
            block = await self._bytes(max(0, size - _BLOCK), size)
            if block is None:
                break
            left = len(block.rstrip(b"\r\n"))
            size -= len(block) - left
            if left:
                return size
        return size if size == 0 else self.size - (len(self.text) - len(self.text.rstrip("\r\n")))


async def result_of(
    shieling: AsyncShieling, outcome: Outcome, cap: int, kept: int, *, strip: bool
) -> ShellResult:
    """Returns the result of an outcome; `strip` removes line ends at the end of stdout.

    Raises `ShellCommandError` for a refusal and `ShellExecutionError` for what could not be run.
    """
    if outcome.status in _REFUSED:
        reason = outcome.denial.message() if outcome.denial is not None else outcome.status
        raise ShellCommandError(f"Command rejected by policy: {reason}")
    if outcome.status == "failed":
        raise ShellExecutionError(outcome.error or "the command could not be started")
    stdout = await _Stream(shieling, outcome, "stdout").cut(cap, kept, strip=strip)
    errors, cut = await _Stream(shieling, outcome, "stderr").cut(cap, kept, strip=False)
    if outcome.exit_code is None and outcome.error:
        errors = f"{errors.rstrip()}\n{outcome.error}".lstrip()
    if taken_back := held_back(outcome):
        errors = f"{errors.rstrip()}\n{taken_back}".lstrip()
    return result_of_streams(
        stdout,
        (errors, cut),
        exit_code=exit_code_of(outcome),
        duration_ms=outcome.duration_ms,
        timed_out=outcome.status == "timed_out",
        restarted=outcome.session_restarted,
    )


def exit_code_of(outcome: Outcome) -> int:
    if outcome.exit_code is not None:
        return outcome.exit_code
    return 137 if outcome.status == "out_of_memory" else -1


async def guarded(call: Any) -> Any:
    """Awaits a call of the package and turns its exceptions into the adapter's."""
    try:
        return await call
    except ClosedError as error:
        raise ShellExecutionError(_NOT_RUNNING) from error
    except ShielingError as error:
        raise ShellExecutionError(str(error)) from error


class ShellSession:
    """A shell that stays from command to command; an async context manager.

    Bash without further options is a `BashSession`, any other shell a `PipedSession`. Commands take
    turns.
    """

    def __new__(cls, *args: Any, **keywords: Any) -> Self:
        chosen: Any = cls
        if cls is ShellSession:
            argv: Sequence[str] = args[0] if args else keywords["argv"]
            plain = is_bash(argv) and _PLAIN_OPTIONS.issuperset(argv[1:])
            chosen = BashSession if plain else PipedSession
        session: Self = object.__new__(chosen)
        return session

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
        self._killed_generation = 0
        self._closing = 0
        self._run_lock = LoopsLock()

    def _first_options(self) -> dict[str, Any]:
        """Returns options of the environment that go before the caller's.

        Raises `ShellExecutionError` for a shell that this session cannot keep.
        """
        return {}

    def _variables(self) -> dict[str, str]:
        return variables_of(self._env, self._environment, self._options)

    def _opened(self) -> AsyncShieling:
        """Returns the environment, which the first call opens."""
        if self._shieling is None:
            self._shieling = open_shieling(
                self._environment, workdir=self._workdir, options=self._options
            )
        return self._shieling

    async def start(self) -> None:
        """Opens the environment, and starts the shell or has it start with the first command."""
        await self._start()

    async def _start(self) -> None:
        raise NotImplementedError

    async def _stop(self) -> None:
        """Ends what runs in the environment and would not end with it."""

    async def close(self) -> None:
        """Ends the shell with everything that it started. Calls that wait for it fail.

        A command that runs has two seconds to end, as its result is wanted; then its call fails.
        """
        self._close_generation += 1
        self._closing += 1
        try:
            await self._close()
        finally:
            self._closing -= 1
            # Calls that came meanwhile would start the shell again.
            self._close_generation += 1

    async def _close(self) -> None:
        try:
            await asyncio.wait_for(self._run_lock.__aenter__(), _SHUTDOWN_GRACE)
        except asyncio.TimeoutError:
            self._killed_generation = self._close_generation
            await self._end()
            return
        try:
            await self._end()
        finally:
            await self._run_lock.__aexit__()

    async def _end(self) -> None:
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
            if generation != self._close_generation or self._closing:
                raise ShellExecutionError(_NOT_RUNNING)
            await self.start()
            result = await self._run_locked(command, timeout, anchor)
            if self._killed_generation > generation:
                raise ShellExecutionError("the shell was closed while the command ran")
            return result

    async def _run_locked(
        self, command: str, timeout: float | None, anchor: str | None
    ) -> ShellResult:
        raise NotImplementedError


class BashSession(ShellSession):
    """A bash whose directory, variables, functions and options stay from command to command.

    A timeout or a cancellation ends what the command started and keeps the shell's state. A command
    that ends the shell gets its exit code and output as usual, with `session_restarted`; the next
    one runs in a fresh shell.
    """

    _shell: AsyncSession | None = None

    def _first_options(self) -> dict[str, Any]:
        # In `memory` the bash is the package's own.
        own_shell = self._environment != "memory" and os.path.isabs(self._argv[0])
        return {"shell": self._argv[0]} if own_shell else {}

    async def _start(self) -> None:
        if self._shell is None:
            variables = self._variables()
            self._shell = self._opened().session("main", env=variables)

    async def _stop(self) -> None:
        self._shell = None

    async def _run_locked(
        self, command: str, timeout: float | None, anchor: str | None
    ) -> ShellResult:
        shieling, shell = self._opened(), self._shell
        assert shell is not None
        if anchor is not None:
            await self._return_to(shell, anchor, timeout)
        cap = self._max_output_bytes
        outcome = await guarded(
            shell.run(command, timeout=time_limit(timeout), max_output=kept_of_text(cap))
        )
        # As the original: what a timeout cuts off keeps its line ends, and its bytes are counted.
        ended = outcome.status != "timed_out"
        return await result_of(
            shieling, outcome, cap, kept_of_text(cap) if ended else cap, strip=ended
        )

    async def _return_to(self, shell: AsyncSession, anchor: str, timeout: float | None) -> None:
        there = self._environment == "memory" or os.path.isdir(anchor)
        if shell.cwd == os.path.abspath(anchor) and there:
            return
        outcome = await guarded(shell.run(["cd", "--", anchor], timeout=time_limit(timeout)))
        if not outcome.ok:
            raise ShellExecutionError(
                f"the working directory {anchor!r} cannot be entered: "
                f"{outcome.stderr.strip() or outcome.error or outcome.status}; the command did not run"
            )


class Kept:
    """What is kept of a stream while it is read: `limit` bytes of its beginning, and as many or more of its end."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.data = bytearray()
        self.total = 0

    def clear(self) -> None:
        self.data.clear()
        self.total = 0

    def append(self, chunk: bytes) -> None:
        self.data += chunk
        self.total += len(chunk)
        excess = len(self.data) - 2 * self._limit
        if excess > self._limit:
            # The middle goes; the head stays, and a tail in which a sentinel still lies whole.
            del self.data[self._limit : self._limit + excess]

    def cut_off(self, at: int) -> None:
        """Forgets the end of the data, from `at` on."""
        self.total -= len(self.data) - at
        del self.data[at:]

    def cut(self, cap: int, *, strip: bool = False, as_text: bool = False) -> tuple[str, bool]:
        """Returns what `cap` leaves of the stream, and whether bytes were left out.

        `strip` removes line ends at its end. With `as_text` the bytes of the text count.
        """
        data = bytes(self.data)
        whole = self.total == len(data)
        if strip:
            data = data.rstrip(b"\r\n")
        total = self.total - (len(self.data) - len(data))
        if whole and as_text:
            return truncate_text_head_tail(data.decode("utf-8", errors="replace"), cap)
        if whole:
            return truncate_head_tail(data, cap)
        return around_marker(data[: cap // 2], data[len(data) - (cap - cap // 2) :], total - cap), True


async def communicate(process: asyncio.subprocess.Process, stdout: Kept, stderr: Kept) -> None:
    """Reads the output of `process` as its `communicate` does, which would keep all of it."""

    async def drain(stream: asyncio.StreamReader, kept: Kept) -> None:
        while chunk := await stream.read(_CHUNK_BYTES):
            kept.append(chunk)

    out, err = getattr(process, "stdout", None), getattr(process, "stderr", None)
    if isinstance(out, asyncio.StreamReader) and isinstance(err, asyncio.StreamReader):
        await asyncio.gather(drain(out, stdout), drain(err, stderr))
        await process.wait()
        return
    # What stands in for a process, as in tests of a caller, has no more than that method.
    for data, kept in zip(await process.communicate(), (stdout, stderr)):
        kept.append(data or b"")


class _Reply:
    """A stream of a shell that stays, of which each command has the bytes since it began."""

    def __init__(self, stream: AsyncStream, limit: int) -> None:
        self._stream = stream
        self.kept = Kept(limit)

    async def until(self, sentinel: bytes) -> bytes | None:
        """Reads up to the line of `sentinel`; returns the rest of that line, or `None` at the end."""
        data = self.kept.data
        while True:
            at = data.find(sentinel)
            end = data.find(b"\n", at + len(sentinel)) if at >= 0 else -1
            if end >= 0:
                rest = bytes(data[at + len(sentinel) : end])
                self.kept.cut_off(at)
                return rest
            chunk = await self._stream.read()
            if not chunk:
                return None
            self.kept.append(chunk)


class PipedSession(ShellSession):
    """A POSIX shell that reads commands from its standard input.

    Commands are passed to `eval` as one quoted word and read nothing, so that comments, open quotes
    and programs that read do not disturb the conversation. At a cancellation and when a command ends
    the shell, the shell is replaced; the result says so with `session_restarted`. So it is at a timeout,
    unless the shell is on this host and goes on within two seconds of a SIGINT, as it does with a trap for
    it: then the command's exit code is that of the interrupted command.
    Subclasses run a shell elsewhere and say how to stop what it started there.
    """

    _is_here = True
    """Whether the shell is a process of this host where the environment is `local`."""

    _proc: AsyncProcess | None = None
    _leader: ProcessEntry | None = None
    _stdout: _Reply | None = None
    _stderr: _Reply | None = None

    def _first_options(self) -> dict[str, Any]:
        if is_powershell(self._argv):
            raise ShellExecutionError(
                "PowerShell has no persistent mode here; use mode='stateless', or a POSIX shell"
            )
        return {}

    @property
    def ended(self) -> bool:
        """Whether the shell has to be started, for the first time or again."""
        return self._proc is None or self._proc.returncode is not None

    async def _start(self) -> None:
        if self._proc is not None:
            return
        process = await guarded(
            self._opened().start(self._argv, timeout=NO_LIMIT_SECONDS, env=self._variables())
        )
        limit = max(self._max_output_bytes, 64 * 1024)
        self._proc = process
        self._leader = None
        self._stdout = _Reply(process.stdout, limit)
        self._stderr = _Reply(process.stderr, limit)
        # The sentinels go to copies of the first streams, wherever a command sends its own.
        await guarded(process.write("exec 8>&1 9>&2\n"))

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
        stdout.kept.clear()
        stderr.kept.clear()
        exit_code, timed_out, alive = -1, False, True
        conversation = asyncio.ensure_future(
            self._converse(process, stdout, stderr, command, sentinel)
        )
        try:
            await asyncio.wait({conversation}, timeout=timeout)
            if not conversation.done():
                timed_out = True
                if self._leader is not None and interrupt_group(self._leader):
                    await asyncio.wait({conversation}, timeout=_SHUTDOWN_GRACE)
            if conversation.done():
                exit_code, alive = conversation.result()
            if timed_out and not (conversation.done() and alive):
                exit_code, alive = 124, False
        except asyncio.CancelledError:
            conversation.cancel()
            await self._stop()
            raise
        conversation.cancel()
        await asyncio.wait({conversation})
        if not alive:
            await self._stop()
        cap = self._max_output_bytes
        # As in `BashSession`.
        ended = alive or not timed_out
        return result_of_streams(
            stdout.kept.cut(cap, strip=ended, as_text=ended),
            stderr.kept.cut(cap, as_text=ended),
            exit_code=exit_code,
            duration_ms=(time.monotonic() - started) * 1000,
            timed_out=timed_out,
            restarted=not alive,
        )

    async def _converse(
        self, process: AsyncProcess, stdout: _Reply, stderr: _Reply, command: str, sentinel: str
    ) -> tuple[int, bool]:
        """Returns the exit code, and whether the shell still runs."""
        try:
            if self._leader is None and self._is_here and self._environment == "local":
                await self._ask_who(process, stdout, sentinel)
            await process.write(self._build_script(command, sentinel))
        except ShielingError:
            pass  # The shell has ended; its streams tell the rest.
        mark = f"\n{sentinel}".encode()
        rest, _ = await asyncio.gather(stdout.until(mark), stderr.until(mark))
        if rest is not None:
            return _parse_rc(rest + b"\n"), True
        outcome = await guarded(process.wait())
        return exit_code_of(outcome), False

    async def _ask_who(self, process: AsyncProcess, stdout: _Reply, sentinel: str) -> None:
        """Has the shell tell which process it is, for what is to be interrupted at a timeout."""
        await process.write(
            "{ read -r __af_rc </proc/$$/stat; } 2>/dev/null; "
            f"command printf '\\n{sentinel}_%s\\n' \"$__af_rc\" >&8; unset __af_rc\n"
        )
        answer = await stdout.until(f"\n{sentinel}_".encode())
        stdout.kept.clear()
        self._leader = None if answer is None else parse_entry(answer.decode(errors="replace"))

    def _build_script(self, command: str, sentinel: str) -> str:
        """Returns the input for one command: the command, then a line with its exit code.

        `command eval` keeps a shell alive whose syntax error would end it; `||` keeps `set -e` from
        ending it. The line on standard error tells that this stream is complete too.
        """
        return (
            f"__af_rc=0; command eval {_quote(command)} </dev/null || __af_rc=$?; "
            f"command printf '\\n{sentinel}_%s\\n' \"$__af_rc\" >&8; "
            f"command printf '\\n{sentinel}\\n' >&9\n"
        )

    async def _stop(self) -> None:
        process, self._proc = self._proc, None
        self._leader = None
        if process is not None:
            await process.kill()


def _quote(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


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
