"""The sandbox, environment, adapter and tool of AG2 1.x: an argv goes in, an output and an exit code come out."""

from __future__ import annotations

import asyncio
import atexit
import os
import re
import shutil
import tempfile
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, TypeVar

from ..._convert import shell_text
from .._execution import (
    Execution,
    HostVariables,
    exit_status,
    given_variables,
    has_rules,
    held_back_write,
    host_variables,
    kept_bytes,
    seconds_of,
    through_env,
)
from ._filter import SANDBOX_READONLY_COMMANDS, check_ignore, contains_shell_operator, matches_argv, split_command
from ._framework import (
    ExecResult,
    SandboxBase,
    SandboxFactory,
    ShellToolBase,
    SingletonFactory,
    WorkdirAware,
    context_tool,
)
from ._policy import Filtered, Filters, search_path
from ._shell import shown, within

if TYPE_CHECKING:
    from ._framework import Sandbox

__all__ = ["LocalEnvironment", "LocalSandbox", "SandboxShellTool", "ShellAdapter"]

_CLOSED = "LocalSandbox has been closed."
# The kernel takes no single word of an argv that is longer than 128 KiB.
_LONGEST_WORD = 120_000
_READ_BY_BASH = re.compile(
    r"(?:BASH.*|SHELLOPTS|POSIXLY_CORRECT|IFS|PS4|PPID|U?EUID|UID|RANDOM|SRANDOM|SECONDS|LINENO|OLDPWD|OPT(?:IND|ERR|ARG)"
    r"|PWD|HISTCMD|FUNCNEST|DIRSTACK|GROUPS|EPOCH.*)\Z"
)


T = TypeVar("T")


def _result_of(call: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine to its end: here, or in a thread where this one already runs an event loop, which waits."""
    if not _in_a_loop():
        return asyncio.run(call)
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, call).result()


def _in_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _program(argv: Sequence[str], host: dict[str, str], given: dict[str, str]) -> tuple[str, dict[str, str]]:
    """Shell text that becomes this program, never a builtin, and the variables of that shell."""
    variables = {**host, **given}
    # With these bash would do something before that, or change them; the program gets them from `env`.
    names = [name for name in variables if _READ_BY_BASH.match(name) and (name in given or name.startswith("BASH"))]
    own = {name: variables.pop(name) for name in names}
    return shell_text(["exec", "--", *(through_env(argv, own) if own else argv)]), variables


def _not_found(stderr: str, program: str, code: int, workdir: Path) -> ExecResult | None:
    """What AG2 answers for a program that there is not, if that is what the shell has said of it."""
    lines = stderr.splitlines()
    if len(lines) not in (1, 2):
        return None
    path = re.match(r"bash: line 1: (/.*): ", lines[0])
    here = os.path.normpath(os.path.join(workdir, program))
    of_path = path is not None and "/" in program and path.group(1) == here
    by_env = re.match(rf"/usr/bin/(?:env|nice): ['\u2018]{re.escape(program)}['\u2019]: ", lines[0])
    if not (of_path or by_env or lines[-1].startswith(f"bash: line 1: exec: {program}: ")):
        return None
    # A name without a directory is looked for in `PATH` alone, where bash falls back to what is here.
    unfound = "/" not in program and lines[-1].endswith((": cannot execute: Is a directory", ": Is a directory"))
    if unfound or lines[-1].endswith((": not found", ": No such file or directory", ": required file not found")):
        return ExecResult(f"Command not found: [Errno 2] No such file or directory: {program!r}", 127)
    return ExecResult(f"Command not started: {lines[0].rpartition(': ')[2]}: {program!r}", 126) if code == 126 else None


class LocalSandbox(SandboxBase):
    """Runs each argv as processes of their own in one directory, which is made at the first use.

    The words are a program and its arguments; builtins of a shell are none. With rules in `shieling` (``policy``,
    ``allow``, ``deny``, ``ignore``, ``readonly``, ``approval`` or an approver), which the methods for files obey as well,
    and in ``memory``, the words are given as they are to bash, which has builtins such as ``echo``.

    Args:
        path: The working directory. ``None``: a temporary directory ``ag2_sandbox_*``.
        cleanup: Whether the directory is removed by `aclose`, or when the process exits. Default: only a temporary one.
        timeout: Seconds for each command; more than 0.
        max_output: Characters that are returned of each command's output.
        env_vars: Variables that every command gets, laid over those of this process.
        languages: What `supported_languages` answers.
        environment: ``local`` (this host, as in AG2), ``sandbox`` or ``memory``.
        host_env: Which variables of this process commands get. Default: ``filtered`` in ``local``, ``none`` elsewhere.
        shieling: More options of :class:`shieling.Shieling`: ``policy``, ``approver``, ``memory``, ``pids``, ``network``.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        cleanup: bool | None = None,
        timeout: float = 60,
        max_output: int = 100_000,
        env_vars: dict[str, str] | None = None,
        languages: tuple[Any, ...] = ("python", "bash"),
        environment: str = "local",
        host_env: HostVariables | None = None,
        shieling: Mapping[str, Any] | None = None,
    ) -> None:
        timeout = seconds_of(timeout)
        if timeout <= 0:
            raise ValueError("`timeout` must be > 0 seconds.")
        self._path = os.fspath(path) if path is not None else None
        self._cleanup_workdir = cleanup if cleanup is not None else path is None
        self._host_workdir: Path | None = None
        self._workdir: PurePosixPath | None = None
        self._atexit_registered = False
        self._default_timeout = timeout
        self._max_output = max_output
        self._env_vars = dict(env_vars or {})
        self._languages = tuple(languages)
        self._closed = False
        self._environment = environment
        self._host_env: HostVariables = host_env or ("filtered" if environment == "local" else "none")
        self._bounds = shieling
        self._has_rules = has_rules(shieling or {})
        self._execution: Execution | None = None

    def _ensure_workdir(self) -> Path:
        if self._host_workdir is None:
            if self._path is None:
                found = Path(tempfile.mkdtemp(prefix="ag2_sandbox_"))
            else:
                found = Path(self._path).resolve()
                found.mkdir(parents=True, exist_ok=True)
            self._host_workdir = found
            self._workdir = PurePosixPath(found.as_posix())
            self._execution = Execution(self._environment, {"workspace": found.resolve()}, self._bounds)
            if self._cleanup_workdir:
                atexit.register(self._atexit_cleanup)
                self._atexit_registered = True
        return self._host_workdir

    @property
    def workdir(self) -> PurePosixPath:
        """The working directory, as commands see it."""
        self._ensure_workdir()
        assert self._workdir is not None
        return self._workdir

    @property
    def host_workdir(self) -> Path:
        """The working directory on this host."""
        return self._ensure_workdir()

    @property
    def supported_languages(self) -> tuple[Any, ...]:
        """The languages that were given to the constructor."""
        return self._languages

    def exec_sync(
        self, argv: list[str], *, env: dict[str, str] | None = None, timeout: float | None = None
    ) -> ExecResult:
        """As `exec`, for a caller that is no coroutine. AG2 0.13 and 0.14 have it."""
        return _result_of(self.exec(argv, env=env, timeout=timeout))

    async def exec(
        self, argv: list[str], *, env: dict[str, str] | None = None, timeout: float | None = None
    ) -> ExecResult:
        """Run an argv, and return its trimmed output and its exit code.

        Args:
            argv: The program and its arguments. An empty list gives exit code 2.
            env: Variables laid over those of the sandbox.
            timeout: Seconds. Default: those of the sandbox. The exit code is 124 when they are over, and what was
                printed until then is kept.
        """
        if self._closed:
            raise RuntimeError(_CLOSED)
        if not argv:
            return ExecResult(output="", exit_code=2)
        from shieling import ShielingError

        workdir = self._ensure_workdir()
        execution = self._execution
        assert execution is not None
        seconds = self._default_timeout if timeout is None else seconds_of(timeout)
        timed_out = f"Command timed out after {seconds}s"
        if seconds <= 0:
            return ExecResult(output=timed_out, exit_code=124)
        if not workdir.is_dir() and self._environment != "memory":
            return ExecResult(output=f"Working directory not found: {workdir}", exit_code=126)
        host = host_variables(self._host_env)
        own = given_variables({**self._env_vars, **(env or {})})
        variables = {**host, **own}
        # As `subprocess` takes them: bytes and paths too, and a text for a program without arguments.
        given: Any = argv
        words: list[Any] = [given] if isinstance(given, (str, bytes, os.PathLike)) else given
        argv = [os.fsdecode(word) for word in words]
        command: str | list[str] = list(argv)
        if len(argv) == 3 and argv[0] in ("sh", "bash") and argv[1] == "-c" and len(os.fsencode(argv[2])) > _LONGEST_WORD:
            command = argv[2]
        elif self._environment != "memory" and not self._has_rules:
            command, variables = _program(argv, host, own)
        try:
            outcome = await execution.asynchronous().run(
                command,
                timeout=seconds,
                env=variables,
                max_output=kept_bytes(self._max_output),
            )
        except ShielingError as error:
            return ExecResult(output=f"Command not started: {error}", exit_code=126)
        if outcome.denial is not None:
            return ExecResult(output=f"Command not allowed: {outcome.denial.message()}", exit_code=126)
        if outcome.status in ("failed", "lost"):
            return ExecResult(output=f"Command not started: {outcome.error}", exit_code=126)
        text = shown(outcome, self._max_output)
        if outcome.status == "timed_out":
            return ExecResult(output=f"{text}\n{timed_out}" if text else timed_out, exit_code=124)
        code = exit_status(outcome)
        if code in (126, 127) and not outcome.stdout:
            missing = _not_found(outcome.stderr, argv[0], code, workdir)
            if missing is not None:
                return missing
        return ExecResult(output=text, exit_code=code)

    def _inside(self, path: PurePosixPath) -> Path:
        if path.is_absolute():
            raise ValueError(f"Absolute paths are not allowed in put_file/get_file: {path}")
        workdir = self._ensure_workdir().resolve()
        resolved = workdir.joinpath(*path.parts).resolve()
        if not resolved.is_relative_to(workdir):
            raise ValueError(f"Path escapes sandbox workdir: {path}")
        return resolved

    async def put_file(self, path: PurePosixPath, content: bytes) -> None:
        """Write a file below the working directory, and the directories above it.

        Raises:
            ValueError: The path is absolute, or leads out of the working directory.
            DeniedError: The rules in `shieling` refuse it.
            FileError: Outside of ``local``, or with rules, it cannot be written.
            PermissionError: A sandbox has taken the file back.
        """
        if self._closed:
            raise RuntimeError(_CLOSED)
        target = self._inside(path)
        assert self._execution is not None
        if self._environment != "local" or self._has_rules:
            # Commands in there may change links while this is written.
            written = await self._execution.asynchronous().write_file(str(path), content)
            if (taken_back := held_back_write(written.note)) is not None:
                raise PermissionError(taken_back)
            return
        await asyncio.to_thread(target.parent.mkdir, parents=True, exist_ok=True)
        await asyncio.to_thread(target.write_bytes, content)

    async def remove_file(self, path: PurePosixPath) -> None:
        """Remove a file below the working directory; one that is not there is no error.

        Raises:
            ValueError: The path is absolute, or leads out of the working directory.
            DeniedError: The rules in `shieling` refuse it.
            FileError: Outside of ``local``, or with rules, it cannot be removed.
        """
        if self._closed:
            raise RuntimeError(_CLOSED)
        target = self._inside(path)
        assert self._execution is not None
        if self._environment != "local" or self._has_rules:
            from shieling import FileError

            try:
                await self._execution.asynchronous().delete(str(path))
            except FileError as error:
                if error.code != "not_found":
                    raise
            return
        await asyncio.to_thread(target.unlink, missing_ok=True)

    async def aclose(self) -> None:
        """End what still runs, and remove a temporary directory. May be called again."""
        if self._closed:
            return
        self._closed = True
        if self._execution is not None:
            await self._execution.aclose()
        if self._atexit_registered:
            atexit.unregister(self._atexit_cleanup)
            self._atexit_registered = False
        self._atexit_cleanup()
        self._cleanup_workdir = False

    def _atexit_cleanup(self) -> None:
        if self._cleanup_workdir and self._host_workdir is not None:
            shutil.rmtree(self._host_workdir, ignore_errors=True)


class LocalEnvironment(SingletonFactory):
    """The environment of `SandboxShellTool`: one `LocalSandbox`, usable without being entered.

    Takes the arguments of `LocalSandbox`.

    >>> LocalEnvironment(timeout=0)
    Traceback (most recent call last):
    ValueError: `timeout` must be > 0 seconds.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        cleanup: bool | None = None,
        timeout: float = 60,
        max_output: int = 100_000,
        env_vars: dict[str, str] | None = None,
        languages: tuple[Any, ...] = ("python", "bash"),
        environment: str = "local",
        host_env: HostVariables | None = None,
        shieling: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(
            LocalSandbox(
                path,
                cleanup=cleanup,
                timeout=timeout,
                max_output=max_output,
                env_vars=env_vars,
                languages=languages,
                environment=environment,
                host_env=host_env,
                shieling=shieling,
            )
        )

    async def aclose(self) -> None:
        """Close the sandbox. May be called again."""
        await self.sandbox.aclose()


class ShellAdapter(Filtered):
    """Runs shell commands in any AG2 sandbox, after its filters.

    With a filter a command runs as the words that were judged, without a shell; without one, by ``sh -c``. Every
    command that the words can launch is judged as well: ``git -c alias.x='!rm f' x`` and ``env rm f`` are, too.

    Args:
        sandbox: A sandbox, or a factory that is opened for each command.
        allowed: Only commands that start with these words may run.
        blocked: Commands that start with these words may not run.
        ignore: Patterns of paths that are hidden. Nothing outside the working directory is reached then.
        readonly: Whether only commands that change nothing may run. An `allowed` list goes before it.
        env: Variables for each command.
        timeout: Seconds for each command. Default: those of the sandbox.
        shell: Whether a command that passes the filters is read by a shell, with pipes, globs and variables. The
            filters then judge all of the text.
    """

    def __init__(
        self,
        sandbox: Sandbox | SandboxFactory,
        *,
        allowed: list[str] | None = None,
        blocked: list[str] | None = None,
        ignore: list[str] | None = None,
        readonly: bool = False,
        env: dict[str, str] | None = None,
        timeout: float | None = None,
        shell: bool = False,
    ) -> None:
        self._factory: SandboxFactory = sandbox if isinstance(sandbox, SandboxFactory) else SingletonFactory(sandbox)
        self._filters = Filters(allowed, blocked, ignore, readonly, SANDBOX_READONLY_COMMANDS)
        self._env = env
        self._timeout = timeout
        self._shell = shell
        self._judge: tuple[str, Execution] | None = None

    @property
    def workdir(self) -> Path | PurePosixPath:
        """The working directory: a `Path` where it is on this host, otherwise the sandbox's own."""
        if not isinstance(self._factory, SingletonFactory):
            factory: object = self._factory
            return factory.workdir if isinstance(factory, WorkdirAware) else PurePosixPath("/workspace")
        sandbox = self._factory.sandbox
        return sandbox.workdir if sandbox.host_workdir is None else sandbox.host_workdir

    @property
    def restricted(self) -> bool:
        """Whether a filter is set."""
        return self._filters.restricted

    def _refusal(self, command: str, argv: list[str]) -> str | None:
        if self._shell:
            return self._judged(command, None)
        if self._allowed is not None and not any(matches_argv(entry, argv) for entry in self._allowed):
            return f"Command not allowed: {command!r}"
        if contains_shell_operator(command):
            return f"Command not allowed (shell syntax is not available in restricted mode): {command!r}"
        if argv:
            named = [PurePosixPath(argv[0]).name, *argv[1:]]
            if any(matches_argv(entry, words) for entry in self._blocked or () for words in (argv, named)):
                return f"Command not allowed: {command!r}"
        if self._ignore is not None:
            here = self.workdir
            denied = check_ignore(command, here, list(self._ignore))
            # On this host, what leads out of the directory is judged below by what the command reads and writes: as a
            # mere word, such as the pattern in `grep -e /x a.txt`, a path is harmless.
            if denied is not None and (not isinstance(here, Path) or within(denied, here.resolve())):
                return denied
        return self._judged(command, argv) if argv else None

    def _judged(self, command: str, argv: list[str] | None) -> str | None:
        here = self.workdir
        host = isinstance(here, Path)
        root = Path(here if host else tempfile.gettempdir()).resolve()
        filters = self._filters.options()
        key = repr(filters)
        if self._judge is None or self._judge[0] != key:
            self._judge = key, Execution("local", {"workspace": root, **filters}, None)
        return self._filters.denial(self._judge[1], command, root, argv, elsewhere=not host, path=self._path())

    def _path(self) -> str | None:
        """The ``PATH`` of commands, if it is known which they get."""
        sandbox = self._factory.sandbox if isinstance(self._factory, SingletonFactory) else None
        if not isinstance(sandbox, LocalSandbox):
            return None
        return search_path(sandbox._env_vars, self._env)

    def run_sync(self, command: str, *, context: Any = None) -> str:
        """As `run`, for a caller that is no coroutine. AG2 0.13 and 0.14 have it.

        Raises `RuntimeError` in a thread that runs an event loop, unless the sandbox is a `LocalSandbox`: another one may
        need that loop.
        """
        sandbox = self._factory.sandbox if isinstance(self._factory, SingletonFactory) else None
        if _in_a_loop() and not isinstance(sandbox, LocalSandbox):
            raise RuntimeError(
                f"{type(self).__name__}.run_sync() cannot be invoked from inside an active event loop. Drive the "
                "underlying SandboxFactory directly from async callers."
            )
        return _result_of(self.run(command, context=context))

    async def run(self, command: str, *, context: Any = None) -> str:
        """Run a command, and return its output, or the reason why it did not run."""
        argv = ["sh", "-c", command]
        if self.restricted:
            words = split_command(command)
            if words is None and not self._shell:
                return f"Command not allowed (unbalanced quotes): {command!r}"
            denied = await asyncio.to_thread(self._refusal, command, words or [])
            if denied is not None:
                return denied
            if self._shell:
                argv = ["bash", "-c", command]
            else:
                argv = words or []
        async with self._factory.open(context) as sandbox:
            result = await sandbox.exec(argv, env=self._env, timeout=self._timeout)
        if result.exit_code == 0:
            return str(result.output)
        code = f"[exit code: {result.exit_code}]"
        return f"{result.output}\n{code}" if result.output else code


class SandboxShellTool(ShellToolBase):
    """Gives an agent of AG2 1.x one tool that runs shell commands.

    Args:
        environment: Where commands run: a factory, a sandbox, or a `ShellAdapter`, which has its filters already.
            Default: `LocalEnvironment`.
        allowed: See `ShellAdapter`, as for the other filters.
        blocked: See `ShellAdapter`.
        ignore: See `ShellAdapter`.
        readonly: See `ShellAdapter`.
        name: The tool's name.
        description: The tool's description; ``{workdir}`` stands for the working directory. Default: one that tells
            whether there is a shell.
        middleware: AG2's middleware for the tool.
        shell: See `ShellAdapter`.
    """

    def __init__(
        self,
        environment: SandboxFactory | Sandbox | ShellAdapter | None = None,
        *,
        allowed: list[str] | None = None,
        blocked: list[str] | None = None,
        ignore: list[str] | None = None,
        readonly: bool = False,
        name: str = "run_shell_command",
        description: str | None = None,
        middleware: Iterable[Any] = (),
        shell: bool = False,
    ) -> None:
        if isinstance(environment, ShellAdapter):
            if any(filter is not None for filter in (allowed, blocked, ignore)) or readonly or shell:
                raise ValueError(
                    "Filter arguments (allowed/blocked/ignore/readonly/shell) are not allowed when passing a pre-built "
                    "ShellAdapter — configure them on the adapter instead."
                )
            adapter = environment
        else:
            adapter = ShellAdapter(
                LocalEnvironment() if environment is None else environment,
                allowed=allowed,
                blocked=blocked,
                ignore=ignore,
                readonly=readonly,
                shell=shell,
            )
        if description is None:
            if adapter.restricted and not adapter._shell:
                description = (
                    "Execute a command in the working directory: {workdir}. It runs without a shell, "
                    "so pipes, redirects, chaining, globs and variables are not available."
                )
            else:
                description = "Execute a shell command in the working directory: {workdir}"

        async def run(command: str, context: Any) -> str:
            return await adapter.run(command, context=context)

        self._adapter = adapter
        self._workdir = adapter.workdir
        self._tool = context_tool(run, name, description.format(workdir=adapter.workdir), middleware)
        self.name = name

    @property
    def workdir(self) -> Path | PurePosixPath:
        """The working directory of the environment."""
        return self._workdir
