"""The shell environment and tool of AG2 0.12: a text goes in, a text comes out."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from .._execution import (
    Execution,
    HostVariables,
    exit_status,
    given_variables,
    held_back,
    host_variables,
    kept_bytes,
    printed,
    seconds_of,
    time_limit,
)
from ._filter import SHELL_READONLY_COMMANDS, check_ignore, matches
from ._framework import ShellToolBase, function_tool
from ._policy import Filtered, Filters, search_path

if TYPE_CHECKING:
    from shieling import Approver, Outcome

__all__ = ["LocalShellEnvironment", "LocalShellTool", "ShellEnvironment"]

_STDERR_SHOWN = 2_000


@runtime_checkable
class ShellEnvironment(Protocol):
    """Where the shell tool runs its commands."""

    @property
    def workdir(self) -> Path: ...

    def run(self, command: str) -> str: ...


class LocalShellEnvironment(Filtered, ShellEnvironment):
    """Runs shell commands, each in a process of its own, and returns what they print.

    Args:
        path: The working directory; it is created. ``None``: a temporary directory ``ag2_shell_*``.
        cleanup: Whether the directory is removed when the process exits. Default: only a temporary one.
        allowed: Only commands that start with one of these may run.
        blocked: Commands that start with one of these may not run.
        ignore: Patterns of paths that are hidden. Nothing outside the working directory is reached then.
        readonly: Whether only commands that change nothing may run. An `allowed` list goes before it.
        env: Variables laid over those of this process.
        timeout: Seconds for each command, a number or the text of one; ``None`` for no limit.
        max_output: Characters that are returned of each command's output.
        environment: ``local`` (this host, as in AG2), ``sandbox`` or ``memory``.
        host_env: Which variables of this process commands get; with ``filtered``, those that look like credentials
            are left out. Default: ``filtered`` in ``local``, ``none`` elsewhere.
        approver: Who is asked about what the filters cannot decide. Default: nobody, and it is refused.
        shieling: More options of :class:`shieling.Shieling`: ``policy``, ``memory``, ``pids``, ``network``, ``audit``.

    >>> env = LocalShellEnvironment(allowed=["git", "ls"])
    >>> env.run("ls; rm -rf x").partition("\\n")[0]
    "Command not allowed: 'ls; rm -rf x'"
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        cleanup: bool | None = None,
        allowed: list[str] | None = None,
        blocked: list[str] | None = None,
        ignore: list[str] | None = None,
        readonly: bool = False,
        env: dict[str, str] | None = None,
        timeout: float | None = 60,
        max_output: int = 100_000,
        environment: str = "local",
        host_env: HostVariables | None = None,
        approver: Approver | None = None,
        shieling: Mapping[str, Any] | None = None,
    ) -> None:
        self._timeout = None if timeout is None else seconds_of(timeout)
        if path is None:
            self._workdir = Path(tempfile.mkdtemp(prefix="ag2_shell_"))
        else:
            self._workdir = Path(path).resolve()
            self._workdir.mkdir(parents=True, exist_ok=True)
        if cleanup if cleanup is not None else path is None:
            atexit.register(shutil.rmtree, str(self._workdir), ignore_errors=True)
        self._filters = Filters(allowed, blocked, ignore, readonly, SHELL_READONLY_COMMANDS)
        self._env = env
        self._max_output = max_output
        self._environment = environment
        self._host_env: HostVariables = host_env or ("filtered" if environment == "local" else "none")
        self._approver = approver
        self._bounds = shieling
        self._opened: tuple[str, Execution, Execution] | None = None

    def _executions(self) -> tuple[Execution, Execution]:
        """What judges a command, and what runs it: others when the filters have changed."""
        filters = self._filters.options()
        key = repr(filters)
        if self._opened is None or self._opened[0] != key:
            options = {"workspace": self._workdir.resolve(), "approver": self._approver}
            judge = Execution(self._environment, {**options, **filters}, self._bounds)
            # In `local` the filters are judged here, and what passed runs as it stands: a runner that is allowed by
            # name, such as `uv run`, may run anything.
            judged = self._filters.restricted and self._environment == "local" and self._approver is None
            runner = Execution(self._environment, options, self._bounds) if judged else judge
            self._opened = key, judge, runner
        return self._opened[1:]

    @classmethod
    def ensure_env(cls, env: ShellEnvironment | str | os.PathLike[str] | None) -> ShellEnvironment:
        """Return `env`, or an environment in that directory, or in a temporary one for ``None``."""
        return env if isinstance(env, ShellEnvironment) else cls(env)

    @property
    def workdir(self) -> Path:
        """The working directory."""
        return self._workdir

    def run(self, command: str) -> str:
        """Run a command and return its output.

        Returns:
            The trimmed output, and ``[exit code: N]`` below it unless that is 0; or the reason why it did not run.
        """
        denied = self._denial(command)
        if denied is not None:
            return denied
        return run_text(
            self._executions()[1],
            command,
            self._host_env,
            self._env,
            self._timeout,
            self._max_output,
            self._filters,
            self._workdir,
        )

    def _denial(self, command: str) -> str | None:
        if not self._filters.restricted:
            return None
        listed = self._allowed is None or any(matches(entry, command) for entry in self._allowed)
        # Under `readonly` alone, a loop of listed commands runs as well.
        if not listed and (not self._filters.readonly or not command.strip()):
            return f"Command not allowed: {command!r}"
        if not command.strip():
            return None
        here = self._workdir.resolve()
        denied = self._filters.denial(self._executions()[0], command, here, path=search_path(self._env))
        if denied is None and self._ignore is not None:
            # A hidden file that a command only names. What is outside is judged by what the command reads and writes.
            named = check_ignore(command, here, list(self._ignore))
            return named if named is not None and within(named, here) else None
        if denied is None or denied.startswith("Access denied"):
            return denied
        # AG2's own words alone, where it would refuse as well; callers compare them.
        blocked = any(matches(pattern, command) for pattern in self._blocked or ())
        return denied if listed and not blocked else f"Command not allowed: {command!r}"


def within(denied: str, root: Path) -> bool:
    """Tell whether the path that `check_ignore` refuses is in a directory."""
    return Path(denied.removeprefix("Access denied: ")).is_relative_to(root)


def run_text(
    execution: Execution,
    command: str,
    host_env: HostVariables,
    env: Mapping[str, str] | None,
    timeout: float | None,
    max_output: int,
    filters: Filters,
    workdir: Path,
) -> str:
    """Run a shell text, and give its output in AG2's form."""
    from shieling import ShielingError

    if not command.strip():
        return ""
    if not workdir.is_dir() and execution.environment != "memory":
        return f"Working directory not found: {workdir}\n[exit code: 126]"
    timed_out = f"Command timed out after {timeout}s\n[exit code: 124]"
    if timeout is not None and timeout <= 0:
        return timed_out
    variables = {**host_variables(host_env), **given_variables(env)}
    try:
        outcome = execution.blocking().run(
            command,
            timeout=time_limit(timeout),
            env=variables,
            max_output=kept_bytes(max_output),
        )
    except ShielingError as error:
        return f"Command not started: {error}\n[exit code: 126]"
    if outcome.denial is not None:
        return f"Command not allowed: {command!r}\n{outcome.denial.message()}"
    if outcome.status in ("failed", "lost"):
        return f"Command not started: {outcome.error}\n[exit code: 126]"
    text = shown(outcome, max_output)
    if outcome.status == "timed_out":
        return f"{text}\n{timed_out}" if text else timed_out
    code = exit_status(outcome)
    if code == 0:
        return text
    return f"{text}\n[exit code: {code}]" if text else f"[exit code: {code}]"


def shown(outcome: Outcome, limit: int) -> str:
    """What a command has printed, and what a sandbox has taken back of its changes."""
    return "\n".join(filter(None, (_printed(outcome, limit), held_back(outcome).rstrip("\n"))))


def _printed(outcome: Outcome, limit: int) -> str:
    """The first `limit` characters of standard output and error, and the end of standard error where that is cut off."""
    streams = [(outcome.stdout, outcome.stdout_bytes), (outcome.stderr, outcome.stderr_bytes)]
    output = printed(streams, limit, truncated=outcome.truncated, strip=True, newlines=True)
    if not output.cut:
        return output.text
    text = f"{output.text}\n[truncated: showing first {limit} of {output.total} chars]"
    errors = outcome.stderr.strip()
    if errors and outcome.stdout.strip() and not output.text.endswith(errors):
        text += f"\n[end of standard error]\n{errors[-_STDERR_SHOWN:]}"
    return text


class LocalShellTool(ShellToolBase):
    """Gives an AG2 agent one tool that runs shell commands.

    Args:
        environment: Where commands run; or the path of a working directory; or ``None`` for a temporary one.
        name: The tool's name.
        description: The tool's description; ``{workdir}`` stands for the working directory.
        middleware: AG2's middleware for the tool.

    >>> tool = LocalShellTool()
    >>> tool.name
    'run_shell_command'
    """

    def __init__(
        self,
        environment: ShellEnvironment | str | os.PathLike[str] | None = None,
        name: str = "run_shell_command",
        *,
        description: str = "Execute a shell command in the working directory: {workdir}",
        middleware: Iterable[Any] = (),
    ) -> None:
        env = LocalShellEnvironment.ensure_env(environment) if environment else LocalShellEnvironment()
        self._workdir = env.workdir
        self.name = name
        # AG2 takes the parameters and the return type from the function's signature.
        run: Callable[[str], str] = env.run
        self._tool = function_tool(run, name, description.format(workdir=env.workdir), middleware)

    @property
    def workdir(self) -> Path:
        """The working directory of the environment."""
        return self._workdir

    def set_provider(self, provider: Any) -> None:
        """Take the provider of dependencies that AG2 0.12 hands to its tools."""
