"""From arguments to calls of the native module, and from what comes of them to typed objects and exceptions."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import timedelta

from . import _native
from ._errors import (
    ArgumentError,
    ClosedError,
    DeniedError,
    FileError,
    InputClosedError,
    JobError,
    NotStartedError,
)
from ._options import duration_ms, size_bytes, text_list, with_plain_errors
from ._records import (
    Denial,
    Description,
    Edited,
    FileInfo,
    FileRead,
    Found,
    Grepped,
    JobInfo,
    Listed,
    Outcome,
    OutputPage,
    Patched,
    PatchedFile,
    SessionInfo,
    Verdict,
    View,
    Written,
)
from ._typing import Any, NoReturn

Path = str | os.PathLike[str]
Duration = float | timedelta | str
Own = tuple[str | None, list[tuple[str, str | None]], int | None, int | None]


def taken(call: _native.Call) -> Any:
    """What came of a call that is over.

    Raises:
        ShielingError: There is nothing of it.
    """
    kind, data = call.take()
    if kind in _FAULTS:
        _raise(kind, data)
    return data


_FAULTS = {
    "cancelled",
    "argument",
    "missing",
    "not_started",
    "refused",
    "file_error",
    "job_error",
    "input_closed",
    "timed_out",
}


def _raise(kind: str, data: Any) -> NoReturn:
    if kind == "argument":
        raise ArgumentError(str(data).removeprefix("error: "))
    if kind == "missing":
        raise NotStartedError(str(data).removeprefix("error: "))
    if kind == "not_started":
        found = Outcome.from_dict(data)
        found.check()
        raise NotStartedError(found.error or f"nothing was started; the command ended as `{found.status}`", found)
    if kind == "refused":
        denial = Denial.from_dict(data)
        raise DeniedError(denial.message(), denial)
    if kind == "file_error":
        code, words, details = data
        raise FileError(words, code, details)
    if kind == "job_error":
        code, words = data
        raise JobError(words, code)
    if kind == "input_closed":
        words, written = data
        raise InputClosedError(words, written)
    if kind == "timed_out":
        raise TimeoutError("nothing came in time")
    raise ClosedError("the call was broken off: the `Shieling` or the interpreter is being closed")


def _text(command: str | Sequence[Path]) -> str:
    if isinstance(command, str):
        return command
    if isinstance(command, (bytes, bytearray)) or not isinstance(command, Sequence):
        raise ArgumentError(f"a command is a string or a sequence of strings, and this is {type(command).__name__}")
    words = [path(word, "a word of a command") for word in command]
    if not words:
        raise ArgumentError("the command is empty")
    return shell_text(words)


# What bash takes for more than the name of a program where it stands first and unquoted.
_RESERVED = frozenset(
    "! [[ { } case coproc do done elif else esac fi for function if in select then time until while".split()
)


def shell_text(words: Sequence[str]) -> str:
    """These words as shell text, of which the first is the name of a command and nothing else."""
    import shlex

    first = words[0]
    quoted = [shlex.quote(word) for word in words]
    if quoted[0] == first and (first in _RESERVED or "=" in first):
        quoted[0] = f"'{first}'"
    return " ".join(quoted)


def _own(
    timeout: Duration | None, cwd: Path | None, env: Mapping[str, str | None] | None, max_output: int | str | None
) -> Own:
    return (
        None if cwd is None else path(cwd, "`cwd`"),
        _variables(env) if env is not None else [],
        None if timeout is None else duration_ms(timeout),
        None if max_output is None else size_bytes(max_output, "max_output"),
    )


def _variables(env: Mapping[str, str | None]) -> list[tuple[str, str | None]]:
    if not isinstance(env, Mapping):
        raise ArgumentError(f"`env` is a mapping of names to values, and this is {type(env).__name__}")
    for name, value in env.items():
        if not isinstance(name, str) or not (value is None or isinstance(value, str)):
            raise ArgumentError(
                f"`env` holds {name!r}: {value!r}, and names and values have to be strings; `None` removes a variable"
            )
    return list(env.items())


def path(value: Path, what: str = "a path") -> str:
    """A path as text, or a word."""
    try:
        text = os.fspath(value)
    except TypeError:
        text = None
    if not isinstance(text, str):
        raise ArgumentError(f"{what} is a string, and this is {type(value).__name__}")
    return text


def content(value: str | bytes) -> bytes:
    """What is written, as bytes."""
    if isinstance(value, str):
        try:
            return value.encode()
        except UnicodeEncodeError as error:
            raise ArgumentError(f"the content cannot be written as UTF-8: {error}; give bytes") from None
    if not isinstance(value, (bytes, bytearray, memoryview)):
        # Of a number, `bytes` would make so many NULs.
        raise ArgumentError(f"a content is a string or bytes, and this is {type(value).__name__}")
    return bytes(value)


def run(
    core: _native.Core,
    command: str | Sequence[Path],
    timeout: Duration | None,
    cwd: Path | None,
    env: Mapping[str, str | None] | None,
    stdin: str | bytes | None,
    on_timeout: str,
    max_output: int | str | None,
) -> _native.Call:
    own = _own(timeout, cwd, env, max_output)
    if _goes_on(on_timeout):
        if stdin is not None:
            raise ArgumentError("`stdin` and `on_timeout='background'` do not go together; use `background` and `write`")
        return core.shell(_text(command), own, None, True, False, None, None)
    return core.run(_text(command), own, None if stdin is None else content(stdin))


def _goes_on(on_timeout: str) -> bool:
    if on_timeout not in ("kill", "background"):
        raise ArgumentError(f"`on_timeout` is {on_timeout!r}, and can be `kill` or `background`")
    return on_timeout == "background"


def start(
    core: _native.Core,
    command: str | Sequence[Path],
    timeout: Duration | None,
    cwd: Path | None,
    env: Mapping[str, str | None] | None,
    max_output: int | str | None,
) -> _native.Call:
    return core.start(_text(command), _own(timeout, cwd, env, max_output))


def background(
    core: _native.Core,
    command: str | Sequence[Path],
    session: str | None,
    tty: tuple[int, int] | bool,
    timeout: Duration | None,
    cwd: Path | None,
    env: Mapping[str, str | None] | None,
    max_output: int | str | None,
    id: str | None,
) -> _native.Call:
    size = (24, 80) if tty is True else (tty or None)
    return core.shell(_text(command), _own(timeout, cwd, env, max_output), session, True, True, size, id)


def session_run(
    core: _native.Core,
    name: str,
    command: str | Sequence[Path],
    timeout: Duration | None,
    cwd: Path | None,
    env: Mapping[str, str | None] | None,
    on_timeout: str,
    max_output: int | str | None,
) -> _native.Call:
    own = _own(timeout, cwd, env, max_output)
    return core.shell(_text(command), own, name, _goes_on(on_timeout), False, None, None)


def session_name(core: _native.Core, name: str) -> str:
    if not isinstance(name, str):
        raise ArgumentError(f"the name of a session is a string, and this is {type(name).__name__}")
    if not core.check_session(name):
        raise ArgumentError(f"no session can have the name {name!r}: letters, digits, `-`, `_` and `.`, 64 at most")
    return name


def session_cwd(core: _native.Core, name: str, start: Path | None) -> str:
    for found in core.list()["sessions"]:
        if found["session"] == name:
            return str(found["cwd"])
    return os.path.normpath(os.path.join(core.workspace, start)) if start is not None else str(core.workspace)


def check_open(core: _native.Core) -> None:
    """Raise `ClosedError` for a `Shieling` that was closed: nothing would run in it."""
    if core.closed:
        raise ClosedError("this `Shieling` was closed, and cannot be entered again; make a new one")


def sessions(core: _native.Core) -> tuple[SessionInfo, ...]:
    return tuple(SessionInfo.from_dict(one) for one in core.list()["sessions"])


def jobs(core: _native.Core) -> tuple[JobInfo, ...]:
    return tuple(JobInfo.from_dict(one) for one in core.list()["jobs"])


def known_job(core: _native.Core, id: str) -> str:
    known = [one["job"] for one in core.list()["jobs"]]
    if id not in known:
        if core.closed:
            raise ClosedError("this `Shieling` was closed, and has no jobs any more")
        names = ", ".join(f"`{one}`" for one in known)
        raise JobError(f"there is no job `{id}`; there are {names or 'no jobs'}", "unknown")
    return id


def job_of(data: Any) -> str:
    return str(data["job"])


def view(
    core: _native.Core,
    id: str,
    cursor: int | None,
    wait_for: str,
    wait: Duration,
    screen: bool,
    keep_unseen: bool,
) -> _native.Call:
    return core.view(id, cursor, wait_for, duration_ms(wait, "wait"), screen, keep_unseen)


def job_write(
    core: _native.Core, id: str, text: str, keys: Sequence[str], enter: bool, wait: Duration
) -> _native.Call:
    return core.job_write(id, text, text_list(keys, "keys"), enter, duration_ms(wait, "wait"))


def job_wait(core: _native.Core, id: str, timeout: Duration | None) -> _native.Call:
    return core.job_wait(id, None if timeout is None else duration_ms(timeout))


def job_wait_for(
    core: _native.Core, id: str, pattern: str | None, port: int | None, timeout: Duration
) -> _native.Call:
    return core.job_wait_for(id, pattern, port, duration_ms(timeout))


def job_resize(core: _native.Core, id: str, rows: int, columns: int) -> None:
    found = core.job_resize(id, rows, columns)
    if found is not None:
        code, words = found
        raise JobError(words, code)


def output(core: _native.Core, output_id: str, stream: str, cursor: int, limit: int) -> _native.Call:
    if stream not in ("stdout", "stderr"):
        raise ArgumentError(f"`stream` is {stream!r}, and can be `stdout` or `stderr`")
    call: _native.Call = with_plain_errors(_native.output)(output_id, stream == "stderr", cursor, limit)
    return call


def why(core: _native.Core, command: str | Sequence[Path], cwd: Path | None) -> _native.Call:
    return core.why(_text(command), _own(None, cwd, None, None))


def describe(core: _native.Core, tools: Sequence[str] | None) -> _native.Call:
    return core.describe(None if tools is None else text_list(tools, "tools"))


def grep(
    core: _native.Core,
    pattern: str,
    where: Path,
    flags: tuple[bool, bool, bool, bool, bool],
    globs: Sequence[str],
    before: int,
    after: int,
    mode: str,
    limit: int,
    cursor: str | None,
) -> _native.Call:
    return core.grep(pattern, path(where), flags, text_list(globs, "globs"), before, after, mode, limit, cursor)


def receive(native: _native.Process, is_stderr: bool, timeout: Duration | None) -> _native.Call:
    return native.receive(is_stderr, None if timeout is None else duration_ms(timeout))


def returncode(native: _native.Process) -> int | None:
    return native.returncode


def signal(native: _native.Process) -> int | None:
    return native.signal


def received(data: bytes) -> bytes:
    return data


def flag(data: bool) -> bool:
    return data


def outcome(data: Any) -> Outcome:
    return Outcome.from_dict(data)


def started(data: _native.Process) -> _native.Process:
    return data


def verdict(data: Any) -> Verdict:
    return Verdict.from_dict(data)


def description(data: tuple[str, dict[str, Any]]) -> Description:
    text, found = data
    return Description(text, found)


def output_page(data: tuple[bytes, int | None]) -> OutputPage:
    return OutputPage(*data)


def viewed(data: Any) -> View:
    return View.from_dict(data)


def waited_for(data: tuple[bool, Any]) -> tuple[bool, View]:
    came, view = data
    return came, viewed(view)


def file_read(data: Any) -> FileRead:
    return FileRead.from_dict(data)


def file_bytes(data: Any) -> bytes:
    return bytes(data["data"])


def written(data: Any) -> Written:
    return Written.from_dict(data)


def edited(data: Any) -> Edited:
    return Edited.from_dict(data)


def patched(data: Any) -> Patched:
    files = tuple(PatchedFile.from_dict({**one, "moved_from": one["from"]}) for one in data["files"])
    return Patched(files, data.get("note"))


def listed(data: Any) -> Listed:
    return Listed.from_dict(data)


def found(data: Any) -> Found:
    return Found.from_dict(data)


def grepped(data: Any) -> Grepped:
    return Grepped.from_dict(data)


def file_info(data: Any) -> FileInfo:
    return FileInfo.from_dict(data)
