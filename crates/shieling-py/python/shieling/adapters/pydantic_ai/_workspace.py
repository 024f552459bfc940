"""A backend for `pydantic_ai.workspaces`: commands and files of one directory, on this host or in a sandbox."""

from __future__ import annotations

import asyncio
import errno
import importlib
import os
import re
import shutil
import stat as stat_module
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ..._convert import shell_text
from ..._errors import DeniedError, FileError
from .._execution import Execution, given_variables, has_rules, held_back, held_back_write, through_env, time_limit

if TYPE_CHECKING:
    from typing_extensions import Self

    from shieling import AsyncSession, AsyncShieling, FileInfo, Outcome

__all__ = ["ShielingWorkspaceBackend"]

_protocol: Any = None
_bases: tuple[Any, ...] = ()
try:
    _protocol = importlib.import_module("pydantic_ai.workspaces.protocol")
    _bases = (
        _protocol.WorkspaceBackend,
        _protocol.SupportsCommands,
        _protocol.SupportsFilesystem,
        _protocol.SupportsRealpath,
    )
except ImportError:
    pass

_INHERITED = ("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE")
_MOST_OUTPUT = 10 * 1024 * 1024
_PREVIEW = 64 * 1024
# The kernel takes no word or variable of this many bytes.
_LONGEST_WORD = 128 * 1024
_NOT_STARTED = (
    *(errno.ENOENT, errno.EACCES, errno.ELOOP, errno.ENAMETOOLONG, errno.ENOTDIR, errno.E2BIG, errno.ETXTBSY),
    *(errno.ENOEXEC, errno.EIO, errno.ELIBBAD, errno.EINVAL),
)
_LARGEST_FILE = 512 * 1024 * 1024

T = TypeVar("T")


class _Shells:
    """The shells of one process that run nothing just now."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.idle: list[AsyncSession] = []


class ShielingWorkspaceBackend(*_bases):  # type: ignore[misc]
    """Runs the commands of a `Workspace` in a directory, and works with files.

    Commands that a command detaches (``setsid``, ``&``) go on when it has ended, as the protocol wants it. They end
    with `aclose`, or with this process: none is left behind. A command that is out of time or cancelled ends with
    everything that it has started.

    In a sandbox the methods for files stay below the directory, as commands do; in ``local`` they reach any path.

    In ``local`` a command has the variables that are named here, and no others. As many shells stay until `aclose` as
    commands have run at once.

    With rules (``policy``, ``allow``, ``deny``, ``ignore``, ``readonly``, ``approval`` or an approver, and what requires
    approval), and with a text of 128 KiB, a command runs as it was given and in bash: what it detaches ends with it then,
    and it has the variables that all commands of `Shieling` have. The methods for files are those of `Shieling` then,
    which obey the rules and stay below the directory; `make_dir` is the command ``mkdir -p``.

    Args:
        working_dir: Where commands start. It has to exist.
        env: Variables of every command, besides ``PATH``, ``HOME`` and those of the locale.
        environment: ``local`` (this host) or ``sandbox``.
        shieling: More options of :class:`shieling.Shieling`: ``deny``, ``policy``, ``memory``, ``pids``, ``network``.

    Raises:
        ModuleNotFoundError: pydantic-ai is not installed, or has no workspaces.
    """

    def __init__(
        self,
        working_dir: str | Path,
        *,
        env: Mapping[str, str] | None = None,
        environment: str = "local",
        shieling: Mapping[str, Any] | None = None,
    ) -> None:
        if _protocol is None:
            raise ModuleNotFoundError("pydantic-ai with `pydantic_ai.workspaces` is not installed; it came in 2.6x")
        if environment not in ("local", "sandbox"):
            raise ValueError(f"`environment` is {environment!r}, and has to be `local` or `sandbox`")
        given = Path(working_dir).expanduser()
        self._working_dir = given if given.is_absolute() else Path.cwd() / given
        self._resolved: Path | None = None
        self._ref = _protocol.WorkspaceRef(provider="local", id=os.path.normpath(self._working_dir))
        inherited = _INHERITED if environment == "local" else ()
        self._env = {name: os.environ[name] for name in inherited if name in os.environ} | dict(env or {})
        self._environment = environment
        self._shieling = shieling
        if "output_limit" in (shieling or {}):
            raise ValueError("`output_limit` is the protocol's here, 10 MiB")
        self._has_rules = has_rules(shieling or {})
        self._execution: Execution | None = None
        self._shells = _Shells()
        self._file_locks: dict[str, tuple[asyncio.Lock, int]] = {}

    def __getstate__(self) -> dict[str, Any]:
        # A copy works in the same directory, with shells of its own.
        return {**vars(self), "_execution": None, "_shells": _Shells(), "_file_locks": {}}

    @property
    def ref(self) -> Any:
        """The directory's name, there from the start."""
        return self._ref

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_args: Any) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """End everything that commands have left running. The backend stays usable."""
        self._shells = _Shells()
        if self._execution is not None:
            await self._execution.aclose()

    def _alive(self) -> Path:
        root = self._resolved or self._working_dir.resolve()
        if not root.is_dir():
            raise _protocol.WorkspaceUnavailableError(f"local workspace directory {self._working_dir} does not exist")
        self._resolved = root
        return root

    async def working_dir(self) -> str:
        """The directory, with links followed."""
        return str(await asyncio.to_thread(self._alive))

    async def _open(self) -> Execution:
        root = await asyncio.to_thread(self._alive)
        if self._execution is None:
            self._execution = Execution(
                self._environment, {"workspace": root, "output_limit": _MOST_OUTPUT}, self._shieling
            )
        return self._execution

    # Commands

    async def run(
        self,
        command: str | Sequence[str],
        *,
        shell: bool = False,
        env: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> Any:
        """Run a command with its input at the end of file.

        Args:
            command: With `shell` a text for ``/bin/sh``; otherwise a program and its arguments.
            shell: Whether `command` is a text.
            env: Variables laid over those of the backend.
            timeout: Seconds. Default: no limit.

        Raises:
            TypeError: A string without `shell`, words with it, or a variable that is no string.
            ValueError: `timeout` is not a positive number of seconds, or no variable can have such a name.
            WorkspaceTimeoutError: It ran out of time. The error has the output until then.
            WorkspaceOutputLimitError: It printed more than 10 MiB to both streams together, and was ended.
            OSError: The system cannot start such a program: a word or variable of 128 KiB, a path through a file.
            WorkspaceUnavailableError: The directory is not there (any more).
        """
        _protocol.validate_timeout(timeout)
        words = _words(command, shell)
        variables = given_variables({**self._env, **(env or {})})
        root = await asyncio.to_thread(self._alive)
        if words[0] == "":
            return _protocol.CommandResult(exit_code=126, stdout="", stderr=": Permission denied\n")
        too_long = any(len(os.fsencode(word)) >= _LONGEST_WORD for word in words)
        assigned = (f"{name}={value}" for name, value in variables.items())
        if too_long and not shell or any(len(os.fsencode(one)) >= _LONGEST_WORD for one in assigned):
            raise OSError(errno.E2BIG, os.strerror(errno.E2BIG), words[0])
        execution = await self._open()
        limit = time_limit(None if timeout is None else float(timeout))
        try:
            if self._has_rules or too_long:
                text = command if isinstance(command, str) else shell_text(words)
                text = text if text.strip() else ":"
                outcome = await execution.asynchronous().run(
                    text, cwd=root, env=variables, timeout=limit, max_output=2 * _MOST_OUTPUT
                )
            else:
                outcome = await self._in_session(execution, root, words, variables, limit)
        finally:
            await asyncio.to_thread(self._alive)
        return self._result(outcome, words, timeout)

    async def _in_session(
        self, execution: Execution, root: Path, words: list[str], variables: Mapping[str, str], limit: float
    ) -> Outcome:
        """Run a program below a shell that stays: what it detaches then has somewhere to go on."""
        shieling = execution.asynchronous()
        shells = self._shells = self._shells if self._shells.pid == os.getpid() else _Shells()
        session = shells.idle.pop() if shells.idle else shieling.session(f"workspace-{uuid.uuid4().hex}")
        # A sandbox has a `PATH` and a `HOME` of its own.
        clean = self._environment == "local"
        program = shell_text(["/usr/bin/setsid", *through_env(words, variables, *(["-i"] if clean else []))])
        locale = "LC_ALL=C " if clean else ""
        # The shell's own words about a killed program go nowhere; the program has standard error as descriptor 3 for it.
        text = f"{{ ( cd -- {shell_text([str(root)])} || exit 126; {locale}exec {program} 2>&3 3>&- ); }} 3>&2 2>/dev/null"
        try:
            return await session.run(text, timeout=limit, max_output=2 * _MOST_OUTPUT)
        finally:
            # Where a command was given up, the next one in this shell waits for its end.
            shells.idle.append(session)

    def _result(self, outcome: Outcome, words: list[str], timeout: float | None) -> Any:
        if outcome.status == "timed_out":
            raise _protocol.WorkspaceTimeoutError(
                f"command timed out after {timeout:g}s and was killed", stdout=outcome.stdout, stderr=outcome.stderr
            ) from TimeoutError()
        if outcome.status == "output_limit" or outcome.stdout_bytes + outcome.stderr_bytes > _MOST_OUTPUT:
            raise _protocol.WorkspaceOutputLimitError(
                "local workspace output exceeded 10 MiB safety limit; redirect the command's output to a file and "
                "read part of it instead",
                limit=_MOST_OUTPUT,
                stdout=outcome.stdout[:_PREVIEW],
                stderr=outcome.stderr[:_PREVIEW],
            )
        if outcome.denial is not None:
            stderr = f"not allowed: {outcome.denial.message()}\n"
            return _protocol.CommandResult(exit_code=126, stdout="", stderr=stderr)
        if outcome.status in ("failed", "lost"):
            raise _protocol.WorkspaceUnavailableError(outcome.error or f"the command ended as `{outcome.status}`")
        code = outcome.exit_code if outcome.exit_code is not None else 1
        stderr = _without_env(outcome.stderr, words[0]) if code in (126, 127) and not outcome.stdout else outcome.stderr
        return _protocol.CommandResult(exit_code=code, stdout=outcome.stdout, stderr=stderr + held_back(outcome))

    # Files

    @staticmethod
    def _path(path: str) -> Path:
        target = Path(path)
        if not target.is_absolute():
            raise ValueError(f"path must be absolute, got {path!r}")
        return target

    def _reachable(self, path: str) -> Path:
        """The path, unless it leads out of the directory that a sandbox's commands are confined to."""
        if self._environment != "local":
            return self._inside(path)
        self._alive()
        return self._path(path)

    def _inside(self, path: str) -> Path:
        """The path, unless it leads out of the directory."""
        root, target = self._alive(), self._path(path)
        if not Path(os.path.realpath(target)).is_relative_to(root):
            raise PermissionError(f"{path!r} is outside the workspace, `{root}`")
        return target

    async def _call(self, path: str, work: Callable[[Path], T]) -> T:
        def call() -> T:
            return work(self._reachable(path))

        return await asyncio.to_thread(call)

    @asynccontextmanager
    async def _locked(self, path: str) -> AsyncGenerator[None, None]:
        """One reader or writer of a file at a time; another name of the file waits as well."""
        key = await asyncio.to_thread(os.path.realpath, path)
        lock, users = self._file_locks.get(key, (asyncio.Lock(), 0))
        self._file_locks[key] = (lock, users + 1)
        try:
            async with lock:
                yield
        finally:
            lock, users = self._file_locks[key]
            if users == 1:
                del self._file_locks[key]
            else:
                self._file_locks[key] = (lock, users - 1)

    def _check_new_directory(self, path: str) -> None:
        target = self._inside(path)
        if target.exists() and not target.is_dir():
            raise FileExistsError(path)
        if any(parent.exists() and not parent.is_dir() for parent in target.parents):
            raise NotADirectoryError(path)

    async def _confined(self, path: str) -> AsyncShieling:
        """What reaches files as commands are confined to."""
        self._path(path)
        if self._environment != "local":
            await asyncio.to_thread(self._reachable, path)
        return (await self._open()).asynchronous()

    @staticmethod
    def _entry(name: str, path: str, found: FileInfo) -> Any:
        is_dir = found.kind == "directory"
        return _protocol.FileEntry(name=name, path=path, is_dir=is_dir, size=None if is_dir else found.size)

    async def _list_by_rules(self, path: str) -> list[Any]:
        shieling = await self._confined(path)
        entries: list[Any] = []
        after: str | None = None
        while True:
            listed = await _builtin_errors(path, shieling.ls(path, after=after))
            for found in listed.entries:
                where = os.path.join(path, found.path)
                if found.kind == "link" and not found.dangling:
                    try:
                        found = await shieling.stat(where)
                    except FileError:
                        pass
                entries.append(self._entry(os.path.basename(where), where, found))
            if listed.next is None:
                return entries
            after = listed.next

    async def read_bytes(self, path: str) -> bytes:
        """Read a file. A FIFO or device is refused, and a directory is `IsADirectoryError`."""
        async with self._locked(path):
            if self._environment == "local" and not self._has_rules:
                return await self._call(path, lambda target: _read(target, path))
            return await _builtin_errors(path, (await self._confined(path)).read_bytes(path))

    async def write_bytes(self, path: str, data: bytes) -> None:
        """Write a file and the directories above it; through a link, to where it leads."""
        async with self._locked(path):
            if self._environment == "local" and not self._has_rules:
                await self._call(path, lambda target: _write(target, path, data))
                return
            written = await _builtin_errors(path, (await self._confined(path)).write_file(path, data))
            if (taken_back := held_back_write(written.note)) is not None:
                raise PermissionError(f"{path}: {taken_back}")

    async def stat(self, path: str) -> Any:
        """What is known of a file or directory."""
        if self._has_rules:
            found = await _builtin_errors(path, (await self._confined(path)).stat(path))
            return self._entry(Path(path).name, path, found)

        def work(target: Path) -> Any:
            found = target.stat()
            is_dir = stat_module.S_ISDIR(found.st_mode)
            size = None if is_dir else found.st_size
            return _protocol.FileEntry(name=target.name, path=path, is_dir=is_dir, size=size)

        return await self._call(path, work)

    async def list_dir(self, path: str) -> Sequence[Any]:
        """The entries of a directory, sorted by name."""
        if self._has_rules:
            return await self._list_by_rules(path)

        def work(target: Path) -> list[Any]:
            entries: list[Any] = []
            for child in sorted(target.iterdir()):
                try:
                    found = child.stat()
                    is_dir = stat_module.S_ISDIR(found.st_mode)
                    size = None if is_dir else found.st_size
                except OSError:
                    is_dir, size = False, None
                entries.append(_protocol.FileEntry(name=child.name, path=str(child), is_dir=is_dir, size=size))
            return entries

        return await self._call(path, work)

    async def make_dir(self, path: str) -> None:
        """Make a directory and those above it."""
        if self._has_rules:
            await asyncio.to_thread(self._check_new_directory, path)
            made = await self.run(["mkdir", "-p", "--", path])
            if made.exit_code:
                kind = PermissionError if made.stderr.startswith("not allowed: ") else OSError
                raise kind(f"{path}: {made.stderr.strip()}")
            return
        await self._call(path, lambda target: target.mkdir(parents=True, exist_ok=True))

    async def remove(self, path: str) -> None:
        """Remove a file, a link, or a directory with its contents; never the working directory or one above it."""

        def check() -> Path:
            root, target = self._alive(), self._path(path)
            if not target.is_symlink() and target.resolve() in (root, *root.parents):
                raise ValueError("cannot remove the workspace root or its ancestor")
            return target

        if self._has_rules:
            await asyncio.to_thread(check)
            shieling = (await self._open()).asynchronous()
            await _builtin_errors(path, shieling.delete(path, recursive=True))
            return

        def work() -> None:
            target = check()
            # A link is removed itself, wherever it leads.
            self._reachable(str(target.parent))
            if target.is_dir() and not target.is_symlink():
                shutil.rmtree(target)
            else:
                target.unlink()

        await asyncio.to_thread(work)

    async def exists(self, path: str) -> bool:
        """Whether there is a file or directory."""
        if self._has_rules:
            return await (await self._confined(path)).exists(path)
        return await self._call(path, lambda target: target.exists())

    async def realpath(self, path: str) -> str:
        """The path with links followed."""

        def work() -> str:
            self._alive()
            return os.path.realpath(self._path(path))

        return await asyncio.to_thread(work)


def _words(command: str | Sequence[str], shell: bool) -> list[str]:
    """The program and its arguments.

    Raises:
        TypeError: The command has another form than `shell` says.
        ValueError: There is a NUL in it.
    """
    if isinstance(command, str):
        if not shell:
            raise TypeError("a string command requires shell=True; pass an argv sequence otherwise")
        words = ["/bin/sh", "-c", command]
    else:
        if shell:
            raise TypeError("an argv sequence cannot be combined with shell=True; pass a single command string")
        words = [os.fsdecode(word) for word in command]
        if not words:
            raise TypeError("an argv sequence begins with a program, and this one is empty")
    if any("\0" in word for word in words):
        raise ValueError("embedded null byte")
    return words


def _without_env(stderr: str, program: str) -> str:
    """What a command printed; where that is `env` saying that there is no such program, in the original's words.

    Raises:
        OSError: The program could not be started for another reason.
    """
    # As GNU's `env` quotes a name in the locale C.
    escaped = "".join(
        chr(byte) if 32 <= byte < 127 else f"\\{byte:03o}" for byte in re.sub(rb"([\\'])", rb"\\\1", os.fsencode(program))
    )
    named = rf"(?:/usr/bin/)?(?:env|nice): (?:['\u2018]{re.escape(escaped)}['\u2019]|can't execute '{re.escape(program)}'): "
    # It has advice on a name with spaces in it.
    found = re.fullmatch(rf"{named}(.*)\n(?:(?:/usr/bin/)?env: use -.*\n)?", stderr)
    number = next((one for one in _NOT_STARTED if found and found.group(1) == os.strerror(one)), None)
    if number is None:
        return stderr
    if number in (errno.ENOENT, errno.EACCES):
        told = "command not found" if number == errno.ENOENT else "Permission denied"
        return f"{program}: {told}\n"
    raise OSError(number, os.strerror(number), program)


async def _builtin_errors(path: str, call: Awaitable[T]) -> T:
    """Await a method for files of `Shieling`, with the errors of the protocol."""
    try:
        return await call
    except DeniedError as error:
        raise PermissionError(f"{path}: {error}") from None
    except FileError as error:
        kinds: dict[str, type[OSError]] = {
            "not_found": FileNotFoundError,
            "is_directory": IsADirectoryError,
            "not_a_directory": NotADirectoryError,
            "permission": PermissionError,
            "outside": PermissionError,
            "read_only": PermissionError,
            "hidden": PermissionError,
            "fixed": PermissionError,
        }
        raise kinds.get(error.code, OSError)(f"{path}: {error}") from None


def _read(target: Path, path: str) -> bytes:
    # Without O_NONBLOCK, opening a FIFO waits for somebody who writes.
    descriptor = os.open(target, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        found = os.fstat(descriptor)
        if stat_module.S_ISDIR(found.st_mode):
            raise IsADirectoryError(path)
        if not stat_module.S_ISREG(found.st_mode):
            raise OSError(f"not a regular file: {path!r}")
        if found.st_size > _LARGEST_FILE:
            raise OSError(f"{path!r} has {found.st_size} bytes, and at most {_LARGEST_FILE} are read at once")
        with open(descriptor, "rb", closefd=False) as file:
            return file.read()
    finally:
        os.close(descriptor)


def _write(target: Path, path: str, data: bytes) -> None:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:
        raise NotADirectoryError(path) from error
    if target.exists() and not target.is_dir() and not target.is_file():
        raise OSError(f"not a regular file: {path!r}")
    target.write_bytes(data)
