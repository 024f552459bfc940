"""The tool that runs shell commands on this host, or in the sandbox."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from ... import AsyncShieling
from . import _framework
from ._executor import run_stateless
from ._framework import FeatureIndex, mark_feature_used
from ._lock import LoopsLock
from ._policy import ShellPolicy, ShellRequest
from ._resolve import is_powershell, resolve_shell
from ._session import (
    BashSession,
    ShellSession,
    check_cap,
    check_program,
    open_shieling,
    variables_of,
)
from ._types import (
    ShellCommandError,
    ShellExecutionError,
    ShellMode,
    ShellResult,
    parse_shell_result,
    shell_result_to_text,
)

if TYPE_CHECKING:
    from typing_extensions import Self

logger = logging.getLogger(__name__)

_MAKING_LOCKS = threading.Lock()

ApprovalMode = Literal["always_require", "never_require"]

_PERSISTENT_DESCRIPTION = (
    "Execute a single shell command on the local machine and return its stdout, stderr, and exit "
    "code. Commands run in a persistent session so `cd` and environment variables from previous "
    "calls are preserved. Approval is required by default."
)
_STATELESS_DESCRIPTION = (
    "Execute a single shell command on the local machine and return its stdout, stderr, and exit "
    "code. Each command runs in a fresh subprocess, so `cd` and environment variables do not "
    "persist between calls. Approval is required by default."
)


def _default_description(mode: ShellMode) -> str:
    return _PERSISTENT_DESCRIPTION if mode == "persistent" else _STATELESS_DESCRIPTION


def _quote_posix(value: str) -> str:
    """Returns `value` in the single quotes of a POSIX shell."""
    return "'" + value.replace("'", "'\\''") + "'"


def _quote_powershell(value: str) -> str:
    """Returns `value` in the single quotes of PowerShell."""
    return "'" + value.replace("'", "''") + "'"


def check_mode(mode: str) -> None:
    """Raises `ValueError` for a mode that does not exist."""
    if mode not in ("persistent", "stateless"):
        raise ValueError(f"mode must be 'persistent' or 'stateless', got {mode!r}")


def judge(
    policy: Any, command: str, workdir: str | None, on_command: Callable[[str], None] | None
) -> None:
    """Asks the policy and tells the audit hook of a command that may run.

    Raises `ShellCommandError` with the policy's reason. An exception of the hook is logged.
    """
    decision = policy.evaluate(ShellRequest(command=command, workdir=workdir))
    if decision.decision == "deny":
        raise ShellCommandError(f"Command rejected by policy: {decision.reason}")
    if on_command is not None:
        try:
            on_command(command)
        except Exception:
            logger.exception("on_command hook raised")


def make_function(
    run: Callable[[str], Any], *, name: str, description: str, approval_mode: ApprovalMode
) -> Any:
    """Returns a `FunctionTool` of kind `shell` that calls `run` and gives its result as text."""
    framework = _framework.require("as_function()")

    async def _run_shell(command: str) -> str:
        try:
            result = await run(command)
        except ShellCommandError as error:
            return str(error)
        except ShellExecutionError as error:
            return f"The command did not run: {error}"
        return shell_result_to_text(result)

    _run_shell.__doc__ = description
    return framework.tool(
        func=_run_shell,
        name=name,
        description=description,
        approval_mode=approval_mode,
        kind=_framework.SHELL_KIND,
        result_parser=parse_shell_result,
    )


class ShellToolBase:
    """What the tools share: how a command reaches its shell, and how an agent reaches the tool."""

    _mode: ShellMode
    _workdir: str | None
    _policy: ShellPolicy
    _timeout: float | None
    _approval_mode: ApprovalMode
    _on_command: Callable[[str], None] | None
    _session: ShellSession | None

    async def start(self) -> None:
        raise NotImplementedError

    async def close(self) -> None:
        raise NotImplementedError

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self.close()

    async def run(self, command: str, *, timeout: float | None = None) -> ShellResult:
        """Runs `command` and returns its result. Asks the policy, and nobody for approval.

        Args:
            command: The command.
            timeout: Seconds; `None` means those of the tool. What still runs then is ended, in a
                container too.

        Raises:
            ShellCommandError: The policy rejects the command.
            ShellExecutionError: It could not be run.
            DockerNotAvailableError: The tool's container does not start.
        """
        self._mark_used()
        judge(self._policy, command, self._workdir, self._on_command)
        limit = self._timeout if timeout is None else timeout
        if limit is not None and limit <= 0:
            # No time to run is a timeout, and no error of the caller's.
            return ShellResult("", "", 124, 0, timed_out=True)
        if self._mode == "stateless":
            return await self._run_stateless(command, timeout=limit)
        if self._session is None or self._session_ended():
            await self.start()
        session = self._session
        if session is None:
            # Closed meanwhile, or `start` was replaced.
            raise ShellExecutionError(f"{type(self).__name__} session failed to start")
        return await self._run_in(session, command, limit)

    def _mark_used(self) -> None:
        """Counts the use of the tool, by the name in the module of its class, which may be replaced there."""
        raise NotImplementedError

    def _session_ended(self) -> bool:
        """Returns whether the tool has to be started again for its next command."""
        return False

    async def _run_in(
        self, session: ShellSession, command: str, timeout: float | None
    ) -> ShellResult:
        return await session.run(command, timeout=timeout)

    async def _run_stateless(self, command: str, *, timeout: float | None) -> ShellResult:
        raise NotImplementedError

    def _description(self) -> str:
        """Returns what a model is told of the tool by default."""
        raise NotImplementedError

    def as_function(self, *, name: str = "run_shell", description: str | None = None) -> Any:
        """Returns a `FunctionTool` of kind `shell` that runs commands by this tool.

        Approval rules of the framework can go by the tool's name: give it one that no rule for
        another tool approves. Raises `ImportError` without the framework.
        """
        return make_function(
            lambda command: self.run(command),
            name=name,
            description=description or self._description(),
            approval_mode=self._approval_mode,
        )


class LocalShellTool(ShellToolBase):
    """Runs shell commands for an agent; an async context manager.

    A persistent tool keeps one shell and belongs to one conversation. What a command leaves running
    in the background ends with `close()`, or with the timeout of the command that started it.

    Args:
        mode: `persistent` keeps one shell; `stateless` runs each command in a process of its own.
        shell: The shell, as words. Default: `AGENT_FRAMEWORK_SHELL`, then the platform's.
        workdir: The directory of the commands. Default: the current directory.
        confine_workdir: Whether each command of a persistent shell starts in `workdir`, if one is
            given. It is no confinement; `environment="sandbox"` is.
        env: Variables of the commands, laid over those of this process.
        clean_env: Whether commands get `env` and a short list alone: PATH, HOME, LANG, LC_*, USER,
            LOGNAME, SHELL and TZ of this process, and its variables for the system's certificates;
            TERM=dumb, PAGER=cat and GIT_PAGER=cat, since nobody is there to turn pages. `env` goes
            before them.
        policy: What `evaluate` is called on before each command. Default: everything is allowed.
        timeout: Seconds of one command; `None` for no limit.
        max_output_bytes: Bytes kept of each stream, beginning and end. The keyword `max_output` of
            `shieling` has no part in it.
        approval_mode: Whether the framework asks a person before each call.
        acknowledge_unsafe: Has to be set for `never_require`.
        on_command: Called with each command that may run, before it does.
        environment: `local` runs commands on this host, `sandbox` in a sandbox of this host whose
            only writable directory is `workdir`, `memory` in a bash with files of its own, without
            any process.
        shieling: Further keywords of `shieling.Shieling`: `deny`, `ignore`, `network`, `memory`,
            `pids` and others.
    """

    def __init__(
        self,
        *,
        mode: ShellMode = "persistent",
        shell: str | Sequence[str] | None = None,
        workdir: str | os.PathLike[str] | None = None,
        confine_workdir: bool = True,
        env: Mapping[str, str] | None = None,
        clean_env: bool = False,
        policy: ShellPolicy | None = None,
        timeout: float | None = 30.0,
        max_output_bytes: int = 64 * 1024,
        approval_mode: ApprovalMode = "always_require",
        acknowledge_unsafe: bool = False,
        on_command: Callable[[str], None] | None = None,
        environment: str = "local",
        shieling: Mapping[str, Any] | None = None,
    ) -> None:
        check_mode(mode)
        if approval_mode == "never_require" and not acknowledge_unsafe:
            raise ValueError(
                "Setting approval_mode='never_require' disables the only built-in security "
                "boundary of LocalShellTool. If you understand the risk (arbitrary commands run on "
                "the host with the agent's privileges; ShellPolicy is a UX pre-filter, not a "
                "defense), pass acknowledge_unsafe=True. For untrusted input prefer a sandboxed "
                "executor (environment='sandbox', or DockerShellTool)."
            )
        self._mode: ShellMode = mode
        self._shell_override = shell
        self._workdir = os.fspath(workdir) if workdir is not None else None
        self._confine_workdir = confine_workdir
        self._policy = policy or ShellPolicy()
        self._timeout = timeout
        self._max_output_bytes = max_output_bytes
        self._approval_mode: ApprovalMode = approval_mode
        self._on_command = on_command
        self._environment = environment
        self._options = dict(shieling or {})
        self._env: dict[str, str] | None = None
        if clean_env:
            self._env = dict(env or {})
        elif env is not None:
            # A sandbox gets nothing of this process unasked.
            self._env = {**(os.environ if environment == "local" else {}), **dict(env)}
        self._interactive_argv = resolve_shell(shell, interactive=True)
        self._stateless_argv = resolve_shell(shell, interactive=False)
        self._session: ShellSession | None = None
        self._shieling: AsyncShieling | None = None
        self._session_lock: LoopsLock | None = None

    def _get_session_lock(self) -> LoopsLock:
        with _MAKING_LOCKS:
            if self._session_lock is None:
                self._session_lock = LoopsLock()
            return self._session_lock

    async def start(self) -> None:
        """Starts the persistent shell's environment; does nothing in `stateless` mode."""
        if self._mode != "persistent":
            return
        async with self._get_session_lock():
            if self._session is None:
                session = ShellSession(
                    self._interactive_argv,
                    workdir=self._workdir,
                    env=self._env,
                    max_output_bytes=self._max_output_bytes,
                    **self._elsewhere(),
                )
                if self._environment == "local":
                    check_program(self._interactive_argv[0], self._env)
                self._session = session
            await self._session.start()

    async def close(self) -> None:
        """Ends the shell and everything that commands left running. May be called again."""
        async with self._get_session_lock():
            shieling, self._shieling = self._shieling, None
            try:
                if self._session is not None:
                    await self._session.close()
            finally:
                # Not before: a call that came meanwhile would start another shell, which nobody closes.
                self._session = None
            if shieling is not None:
                await shieling.close()

    def _elsewhere(self) -> dict[str, Any]:
        """Returns the keywords of a session that does not simply run on this host."""
        if self._environment == "local" and not self._options:
            return {}
        return {"environment": self._environment, "options": self._options}

    def _mark_used(self) -> None:
        mark_feature_used(FeatureIndex.TOOLS_SHELL)

    async def _run_in(
        self, session: ShellSession, command: str, timeout: float | None
    ) -> ShellResult:
        if isinstance(session, BashSession):
            anchor = self._workdir if self._confine_workdir else None
            return await session.run(command, timeout=timeout, anchor=anchor)
        return await session.run(self._maybe_reanchor(command), timeout=timeout)

    async def _run_stateless(self, command: str, *, timeout: float | None) -> ShellResult:
        elsewhere: dict[str, Any] = {}
        env: Mapping[str, str] | None = self._env
        if self._elsewhere():
            check_cap(self._max_output_bytes)
            env = variables_of(self._env, self._environment, self._options)
            elsewhere["shieling"] = await self._open()
        return await run_stateless(
            self._stateless_argv,
            command,
            workdir=self._workdir,
            env=env,
            timeout=timeout,
            max_output_bytes=self._max_output_bytes,
            **elsewhere,
        )

    async def _open(self) -> AsyncShieling:
        async with self._get_session_lock():
            if self._shieling is None:
                self._shieling = open_shieling(
                    self._environment, workdir=self._workdir, options=self._options
                )
            return self._shieling

    def _description(self) -> str:
        return _default_description(self._mode)

    def _maybe_reanchor(self, command: str) -> str:
        """Returns `command` with a change to `workdir` in front, where that is wanted."""
        if not self._confine_workdir or self._workdir is None:
            return command
        if is_powershell(self._interactive_argv):
            return f"Set-Location -LiteralPath {_quote_powershell(self._workdir)}\n{command}"
        return f"cd -- {_quote_posix(self._workdir)}\n{command}"
