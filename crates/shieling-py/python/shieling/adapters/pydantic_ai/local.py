"""Commands and files of one directory: on this host, or in a sandbox."""

from __future__ import annotations

import asyncio
import errno
import importlib
import os
import signal
import stat
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ..._errors import InputClosedError
from .._execution import (
    NO_LIMIT_SECONDS,
    Execution,
    HostVariables,
    approval_options,
    exit_status,
    given_variables,
    held_back,
    held_back_write,
    host_variables,
    is_judged_as_written,
    kept_bytes,
    printed,
    read_once,
    time_limit,
)
from ._base import (
    IMAGE_EXTENSIONS,
    MAX_OUTPUT_CHARS,
    EnvToolName,
    ExecutionEnvironment,
    ExecutionProcess,
    ExecutionResult,
    FileInfo,
    GrepMode,
    apply_edit,
    format_lines,
    glob_match,
)
from ._matching import search

if TYPE_CHECKING:
    from typing_extensions import Self

    from shieling import AsyncProcess

__all__ = ["LocalEnvironment", "LocalEnvironmentProcess"]

_LARGEST_FILE = 64 * 1024 * 1024
_CHUNK = 8192
# A pattern of `Shieling` that ends with a slash finds directories, and another one what is none.
_DIRECTORIES = "**/"
# Entries of one answer of `Shieling`; more are asked for page by page.
_PAGE = 10_000
_TIMED_OUT = "[Command timed out]"

# One pipe for both streams, so that their order is that in which they were written.
_MERGE = "exec 2>&1; "

T = TypeVar("T")


def _input_closed() -> type[InputClosedError]:
    """The error of writing to a process that reads no more: where anyio is installed, anyio's as well."""
    try:
        anyio: Any = importlib.import_module("anyio")
    except ImportError:
        return InputClosedError
    return type("InputClosedError", (InputClosedError, anyio.BrokenResourceError), {})


class LocalEnvironmentProcess(ExecutionProcess):
    """A process that is talked to. Killing it ends everything that it has started."""

    def __init__(self, process: AsyncProcess, owner: object = None) -> None:
        self._proc = process
        # What the process was started in ends it when nobody holds it any more.
        self._owner = owner
        self._rest = {"stdout": bytearray(), "stderr": bytearray()}
        self._killed: int | None = None

    async def send(self, data: bytes) -> None:
        """Write to standard input.

        Raises:
            BrokenPipeError: The process reads no more. With anyio installed, the error is its `BrokenResourceError` too.
            RuntimeError: It has no standard input.
        """
        self._stream("stdin")
        try:
            await self._proc.write(data)
        except InputClosedError as error:
            raise _input_closed()(str(error), error.written) from None

    def _stream(self, name: str) -> Any:
        """The stream of this name. What stands in for a process, as in tests of a caller, may be without it."""
        stream = getattr(self._proc, name, ...)
        if stream is None:
            raise RuntimeError(f"Process {name} is not available.")
        return stream

    async def _next(self, name: str, timeout: float | None) -> bytes:
        rest = self._rest[name]
        if not rest:
            if self._killed is not None:
                return b""
            rest += await self._stream(name).read(None if timeout is None else max(timeout, 0))
        data = bytes(rest[:_CHUNK])
        del rest[:_CHUNK]
        return data

    async def recv(self, timeout: float | None = None) -> bytes:
        """The next bytes of standard output; ``b""`` at its end."""
        return await self._next("stdout", timeout)

    async def recv_stderr(self, timeout: float | None = None) -> bytes:
        """The next bytes of standard error; ``b""`` at its end."""
        return await self._next("stderr", timeout)

    async def close_stdin(self) -> None:
        """Close standard input: the process reads an end of file."""
        await self._proc.close_stdin()

    @property
    def returncode(self) -> int | None:
        """The exit code, minus the signal's number if one ended it; ``None`` while it runs."""
        if self._killed is not None:
            return self._killed
        signal = self._proc.signal
        return self._proc.returncode if signal is None else -signal

    async def wait(self, timeout: float | None = None) -> int:
        """Wait for the end. Output that was not read can be read afterwards."""

        async def ended() -> int:
            pause = 0.002
            # The process object's own `wait` would drain what `recv` is to return later.
            while (code := self.returncode) is None:
                await asyncio.sleep(pause)
                pause = min(pause * 2, 0.05)
            return code

        try:
            return await asyncio.wait_for(ended(), timeout)
        except asyncio.TimeoutError:
            raise TimeoutError(f"the process still runs after {timeout} s") from None

    async def kill(self) -> None:
        """End the process and everything that it has started. Of one that has ended nothing changes."""
        if self._killed is None:
            running = self._proc.returncode is None
            outcome = await self._proc.kill()
            # As the original, which sends SIGKILL at once; here SIGTERM goes before it.
            self._killed = -signal.SIGKILL if running else exit_status(outcome)


# Under the original's name.
_LocalEnvironmentProcess = LocalEnvironmentProcess


class LocalEnvironment(ExecutionEnvironment):
    """Runs commands in a directory of this host, and reads and writes the files below it.

    The methods for files stay below the directory; links are followed and may not lead out. Commands of
    ``environment="local"`` can reach whatever this process can; those of ``environment="sandbox"`` cannot. The methods
    for tools have no docstrings of their own: the toolset would show those to the model.

    Args:
        root_dir: The directory. Entering the environment creates it.
        env_vars: Variables of every command.
        inherit_env: Whether commands also get the variables of this process. Without it, commands in ``local`` have the
            given variables and those that bash sets by itself; not even ``PATH``.
        environment: ``local`` (this host, as the original), ``sandbox`` or ``memory``.
        host_env: Which variables of this process `inherit_env` means; with ``filtered``, those that look like
            credentials are left out. Default: ``filtered`` in ``local``, ``none`` elsewhere.
        shieling: More options of :class:`shieling.Shieling`: ``deny``, ``ignore``, ``policy``, ``memory``, ``pids``,
            ``network``, ``approver``, ``audit``.

    >>> import asyncio
    >>> env = LocalEnvironment()
    >>> asyncio.run(env.shell("echo hello")).output
    'hello\\n'
    """

    def __init__(
        self,
        root_dir: str | Path = ".",
        *,
        env_vars: dict[str, str] | None = None,
        inherit_env: bool = True,
        environment: str = "local",
        host_env: HostVariables | None = None,
        shieling: Mapping[str, Any] | None = None,
    ) -> None:
        self._root_dir = Path(root_dir).resolve()
        self._env_vars = env_vars or {}
        self._inherit_env = inherit_env
        self._environment = environment
        self._host_env: HostVariables = host_env or ("filtered" if environment == "local" else "none")
        self._bounds = read_once(shieling)
        self._execution = Execution(environment, {"workspace": self._root_dir}, self._bounds)
        # Where a policy may hide or protect files, and where commands cannot be trusted with links, the file methods
        # go through `Shieling`, which knows both.
        policy = ("policy", "ignore", "readonly", "require_write_approval")
        self._base_names: tuple[str, ...] | None = None
        self._merged = not is_judged_as_written(self._bounds)
        self._guarded = environment != "local" or any(self._bounds.get(name) for name in policy)

    @property
    def capabilities(self) -> frozenset[EnvToolName]:
        """All seven tools."""
        return frozenset(("ls", "shell", "read_file", "write_file", "edit_file", "glob", "grep"))

    async def __aenter__(self) -> Self:
        if self._environment != "memory":
            self._root_dir.mkdir(parents=True, exist_ok=True)
        return self

    async def __aexit__(self, *_args: Any) -> None:
        # Stays usable, as the original does: several runs may have entered it, and no command outlives its call.
        return None

    async def aclose(self) -> None:
        """End what still runs, and give back what the environment holds."""
        await self._execution.aclose()

    def _build_env(self, env: Mapping[str, str] | None) -> dict[str, str] | None:
        """The variables of a command; ``None`` if they are those of this process alone."""
        if self._inherit_env and not self._env_vars and not env:
            return None
        return self._variables(env)

    def _variables(self, env: Mapping[str, str] | None) -> dict[str, str]:
        host = host_variables(self._host_env) if self._inherit_env else {}
        return {**host, **given_variables({**self._env_vars, **(env or {})})}

    async def _given(self, env: Mapping[str, str] | None) -> dict[str, str | None]:
        """The variables of a command, and ``None`` for each that `Shieling` would give it unasked."""
        if self._inherit_env or self._environment != "local" or self._bounds.get("inherit_env"):
            return dict(self._variables(env))
        if self._base_names is None:
            self._base_names = await asyncio.to_thread(_base_variables)
        kept: Mapping[str, str] = dict(self._bounds.get("env") or {})
        return {**{name: None for name in self._base_names if name not in kept}, **self._variables(env)}

    def _resolve_path(self, path: str) -> Path:
        # `Path.resolve` raises a `RuntimeError` for a link that leads in a circle, up to Python 3.12.
        resolved = Path(os.path.realpath(self._root_dir / path))
        if not resolved.is_relative_to(self._root_dir):
            raise _outside(path)
        return resolved

    def _canonical(self, path: str) -> str:
        """The path relative to the root, with links followed; as it is given where the files are in memory."""
        return path if self._environment == "memory" else self._relative(self._resolve_path(path))

    def _relative(self, path: Path) -> str:
        return str(path.relative_to(self._root_dir))

    def _directory(self) -> None:
        if self._environment != "memory" and not self._root_dir.is_dir():
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(self._root_dir))

    async def shell(
        self, command: str, *, timeout: float | None = 120, env: dict[str, str] | None = None
    ) -> ExecutionResult:
        _check_timeout(timeout)
        self._directory()
        from shieling import ShielingError

        if not command.strip():
            return ExecutionResult(output="", exit_code=0)
        try:
            outcome = await self._execution.asynchronous().run(
                # What says where a NUL is counts from the command's begin.
                f"{_MERGE}{command}" if self._merged and "\0" not in command else command,
                timeout=time_limit(timeout),
                env=await self._given(env),
                max_output=kept_bytes(MAX_OUTPUT_CHARS),
            )
        except ShielingError as error:
            return ExecutionResult(output=f"Command not started: {error}", exit_code=126)
        if outcome.denial is not None:
            return ExecutionResult(output=f"Command not allowed: {outcome.denial.message()}", exit_code=126)
        if outcome.status in ("failed", "lost"):
            return ExecutionResult(output=f"Command not started: {outcome.error}", exit_code=126)
        # Only what bash cannot read leaves something here then: its message, which quotes the line.
        stderr = outcome.stderr.replace(f"`{_MERGE}", "`") if self._merged else outcome.stderr
        streams = [(outcome.stdout, outcome.stdout_bytes), (stderr, outcome.stderr_bytes)]
        text = printed(streams, MAX_OUTPUT_CHARS, truncated=outcome.truncated)
        if outcome.status == "timed_out":
            partial = f"{text.text}\n" if text.text and not text.text.endswith("\n") else text.text
            return ExecutionResult(output=f"{partial}{_TIMED_OUT}", exit_code=-1, truncated=text.cut)
        taken_back = held_back(outcome)
        told = f"{text.text}\n" if taken_back and text.text and not text.text.endswith("\n") else text.text
        return ExecutionResult(output=f"{told}{taken_back}", exit_code=exit_status(outcome), truncated=text.cut)

    async def create_process(self, command: str, *, env: dict[str, str] | None = None) -> ExecutionProcess:
        """Start a process that is talked to.

        Raises:
            shieling.DeniedError: The policy refuses it.
        """
        self._directory()
        process = await self._execution.asynchronous().start(
            ":" if isinstance(command, str) and not command.strip() else command, timeout=NO_LIMIT_SECONDS, env=await self._given(env)
        )
        return LocalEnvironmentProcess(process, self._execution)

    async def read_file(self, path: str, *, offset: int = 0, limit: int = 2000) -> str | bytes:
        data = await self._bytes(path)
        if Path(path).suffix.lower() in IMAGE_EXTENSIONS:
            return data
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError:
            return data
        return format_lines(text, offset, limit)

    async def _bytes(self, path: str) -> bytes:
        if self._guarded:
            data: bytes = await self._file(path, lambda: self._execution.asynchronous().read_bytes(path))
            return data
        return await asyncio.to_thread(_read, self._resolve_path(path), path)

    async def _file(self, path: str, call: Callable[[], Any], *, writes: bool = False) -> Any:
        """Run a method for files of `Shieling`, with the errors of the original."""
        from shieling import DeniedError, FileError

        full = self._root_dir / path
        if self._environment != "memory":
            # A sandbox shows some of the host's files besides the root's.
            full = self._resolve_path(path)
            if not self._root_dir.is_dir():
                if not writes:
                    raise FileNotFoundError(f"File not found: {path}")
                self._root_dir.mkdir(parents=True)
        try:
            return await call()
        except DeniedError as error:
            raise PermissionError(str(error)) from None
        except FileError as error:
            raise {
                "not_found": FileNotFoundError(f"File not found: {path}"),
                "link_loop": OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(full))
                if writes
                else FileNotFoundError(f"File not found: {path}"),
                "is_directory": IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(full))
                if writes
                else FileNotFoundError(f"'{path}' is a directory, not a file."),
                "not_a_directory": NotADirectoryError(f"Not a directory: {path}")
                if writes
                else FileNotFoundError(f"File not found: {path}"),
                "outside": _outside(path),
            }.get(error.code) or OSError(str(error)) from None

    async def write_file(self, path: str, content: str | bytes) -> None:
        if self._guarded:
            written = await self._file(
                path, lambda: self._execution.asynchronous().write_file(path, content), writes=True
            )
            if (taken_back := held_back_write(written.note)) is not None:
                raise PermissionError(taken_back)
            return
        data = content.encode("utf-8") if isinstance(content, str) else content
        await asyncio.to_thread(_write, self._resolve_path(path), data)

    async def replace_str(self, path: str, old: str, new: str, *, replace_all: bool = False) -> int:
        if not self._guarded and not self._resolve_path(path).is_file():
            raise FileNotFoundError(f"File not found: {path}")
        try:
            data = await self._bytes(path)
        except FileNotFoundError:
            raise FileNotFoundError(f"File not found: {path}") from None
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError:
            raise ValueError(f"{path} is not a text file in UTF-8, so there is no text to replace in it.") from None
        if "\n" in old and "\r\n" in text and old not in text:
            # What `read_file` shows of CR LF is a line end like any other; the file keeps its own.
            old, new = (one.replace("\r\n", "\n").replace("\n", "\r\n") for one in (old, new))
        text, count = apply_edit(text, old, new, path, replace_all=replace_all)
        await self.write_file(path, text.encode("utf-8"))
        return count

    async def ls(self, path: str = ".") -> list[FileInfo]:
        if not self._guarded:
            return await asyncio.to_thread(self._list, path)
        where = self._canonical(path)
        try:
            pages = await self._pages(
                where, lambda after: self._execution.asynchronous().ls(where, limit=_PAGE, after=after)
            )
        except FileNotFoundError:
            raise NotADirectoryError(f"Not a directory: {path}") from None
        prefix = self._prefix(where)
        entries: list[FileInfo] = []
        for entry in (entry for page in pages for entry in page.entries):
            is_dir = entry.kind == "directory"
            if entry.kind == "link" and not entry.dangling and self._environment != "memory":
                is_dir = (self._root_dir / where / entry.path).is_dir()
            entries.append(FileInfo(entry.path, f"{prefix}{entry.path}", is_dir, None if is_dir else entry.size))
        return entries

    def _list(self, path: str) -> list[FileInfo]:
        directory = self._resolve_path(path)
        if not directory.is_dir():
            raise NotADirectoryError(f"Not a directory: {path}")
        entries: list[FileInfo] = []
        for entry in sorted(directory.iterdir()):
            try:
                found = entry.stat()
                is_dir = stat.S_ISDIR(found.st_mode)
                size = None if is_dir else found.st_size
            except OSError:
                # A link that leads nowhere, or in a circle, is there all the same.
                is_dir, size = False, None
            if entry.is_symlink() and not Path(os.path.realpath(entry)).is_relative_to(self._root_dir):
                size = None
            entries.append(FileInfo(entry.name, self._relative(entry), is_dir, size))
        return entries

    async def glob(self, pattern: str, *, path: str = ".") -> list[str]:
        in_memory = self._environment == "memory"
        directory = self._root_dir if in_memory else self._resolve_path(path)
        prefix = self._prefix(path)
        if os.path.isabs(pattern) or os.path.normpath(f"{prefix}{pattern}").split("/")[0] == "..":
            raise _outside(pattern)
        if in_memory:
            names = [*await self._names(path), *await self._names(path, _DIRECTORIES)]
            return sorted(name for name in names if glob_match(name[len(prefix) :], pattern))
        found = await asyncio.to_thread(lambda: [(one, self._place(one)) for one in sorted(directory.glob(pattern))])
        placed = [(one, place) for one, place in found if place is not None]
        if self._guarded:
            # Of what is there, what `Shieling` shows. `..` and links lead to other directories of the root.
            inside = all(place.is_relative_to(directory) for _, place in placed)
            below = self._relative(directory) if inside else "."
            shown = {*await self._names(below), *await self._names(below, _DIRECTORIES), below}
            placed = [(one, place) for one, place in placed if self._relative(place) in shown]
        return [self._relative(one) for one, _ in placed]

    async def _names(self, path: str, pattern: str = "**/*") -> list[str]:
        """All files below a directory, or directories, relative to the root; none if it is not there."""
        def find(after: str | None) -> Any:
            glob = self._execution.asynchronous().glob
            return glob(pattern, path=path, ignored=True, dotted=True, limit=_PAGE, after=after)

        try:
            pages = await self._pages(path, find)
        except (FileNotFoundError, NotADirectoryError):
            return []
        prefix = self._prefix(path)
        return [f"{prefix}{name.rstrip('/')}" for page in pages for name in page.paths]

    async def _pages(self, path: str, call: Callable[[str | None], Any]) -> list[Any]:
        """All pages of an answer."""
        pages: list[Any] = []
        after: str | None = None
        while not pages or after is not None:
            pages.append(await self._file(path, partial(call, after)))
            after = pages[-1].next
        return pages

    def _prefix(self, path: str) -> str:
        """What stands before names in a directory, so that they are relative to the root."""
        path = os.path.normpath(path)
        if os.path.isabs(path):
            path = os.path.relpath(path if self._environment == "memory" else os.path.realpath(path), self._root_dir)
        return "" if path == "." else f"{path}/"

    def _place(self, path: Path) -> Path | None:
        """Where a path stands, with the links before its name followed; ``None`` if that is not below the root."""
        parent, name = os.path.split(path)
        place = Path(os.path.realpath(path) if name == ".." else os.path.join(os.path.realpath(parent), name))
        return place if place.is_relative_to(self._root_dir) else None

    async def grep(
        self,
        pattern: str,
        *,
        path: str | None = None,
        glob_pattern: str | None = None,
        output_mode: GrepMode = "content",
    ) -> str:
        """Search file contents using a regex pattern (Python `re` module syntax)."""
        if glob_pattern and (os.path.isabs(glob_pattern) or ".." in Path(glob_pattern).parts):
            raise _outside(glob_pattern)
        if self._guarded:
            return await self._guarded_grep(pattern, self._canonical(path or "."), glob_pattern, output_mode)
        target = self._resolve_path(path or ".")

        def run() -> str:
            explicit = target.is_file()
            files = [target] if explicit else sorted(target.rglob(glob_pattern or "*"))
            named: list[tuple[str, str | None, str | None]] = []
            for file in files:
                hidden = any(part.startswith(".") for part in file.relative_to(self._root_dir).parts)
                if (explicit or not hidden) and file.is_file() and file.resolve().is_relative_to(self._root_dir):
                    named.append((self._relative(file), str(file), None))
            return search(pattern, output_mode, named)

        return await asyncio.to_thread(run)

    async def _guarded_grep(self, pattern: str, path: str, glob_pattern: str | None, mode: GrepMode) -> str:
        try:
            data: bytes | None = await self._bytes(path)
        except FileNotFoundError:
            data = None
        texts: list[tuple[str, str | None, str | None]] = []
        if data is not None:
            # A hidden file, too, if it is named.
            if b"\0" not in data[:_CHUNK]:
                texts.append((os.path.normpath(path), None, data.decode("utf-8", errors="replace")))
        else:
            start = len(self._prefix(path))
            for name in await self._names(path):
                if any(part.startswith(".") for part in name.split("/")):
                    continue
                if glob_pattern and not glob_match(name[start:], f"**/{glob_pattern}"):
                    continue
                try:
                    data = await self._bytes(name)
                except OSError:
                    continue
                if b"\0" not in data[:_CHUNK]:
                    texts.append((name, None, data.decode("utf-8", errors="replace")))
        return await asyncio.to_thread(search, pattern, mode, texts)


def _base_variables() -> tuple[str, ...]:
    """The names of the variables that every command on this host gets."""
    from shieling import Shieling

    with Shieling("local", workspace="/", **approval_options({})) as shieling:
        return tuple(shieling.run("compgen -e").stdout.split())


def _outside(path: str) -> PermissionError:
    return PermissionError(f"Path {path!r} resolves outside the environment root.")


def _check_timeout(timeout: float | None) -> None:
    if timeout is not None and not timeout > 0:
        raise ValueError(f"timeout must be positive or None, got {timeout}")


def _read(path: Path, named: str) -> bytes:
    if path.is_dir():
        raise FileNotFoundError(f"'{named}' is a directory, not a file.")
    if not path.is_file():
        raise FileNotFoundError(f"File not found: {named}")
    size = path.stat().st_size
    if size > _LARGEST_FILE:
        raise ValueError(
            f"{named} has {size} bytes, and at most {_LARGEST_FILE} are read; use a command for a part of it."
        )
    return path.read_bytes()


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
