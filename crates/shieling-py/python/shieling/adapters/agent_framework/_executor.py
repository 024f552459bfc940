"""Commands in processes of their own."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ... import AsyncShieling
from .._execution import Execution, time_limit
from ._resolve import is_bash, is_powershell
from ._session import check_cap, check_directory, check_program, guarded, result_of, variables_of
from ._types import ShellResult

# PowerShell of Windows prints in the console's code page otherwise.
_POWERSHELL_UTF8 = (
    "$OutputEncoding = [Console]::OutputEncoding = [System.Text.UTF8Encoding]::new($false); "
)


class _ThisHost:
    """Where the commands of all tools run that ask for nothing else: nothing of one outlives its call.

    What a command has without `env` of its own is taken from this process when the package is opened, so
    it is opened anew where that has changed.
    """

    def __init__(self) -> None:
        self._opened: tuple[dict[str, str], Execution] | None = None

    def asynchronous(self) -> Any:  # a checker may know the package under two names
        variables = dict(os.environ)
        opened = self._opened
        if opened is None or opened[0] != variables:
            execution = Execution("local", {"workspace": "/", "allow_home": True}, None)
            opened = self._opened = (variables, execution)
        return opened[1].asynchronous()


_THIS_HOST = _ThisHost()


async def run_stateless(
    argv: Sequence[str],
    command: str,
    *,
    workdir: str | None,
    env: Mapping[str, str] | None,
    timeout: float | None,
    max_output_bytes: int,
    shieling: AsyncShieling | None = None,
) -> ShellResult:
    """Runs `command` in a process of its own, by the shell `argv`, with no standard input.

    A shell that a signal ended has the negative number of the signal as its exit code.

    Args:
        argv: The shell, up to its option for a command.
        command: The command.
        workdir: Its directory. Default: the current one in `local`, elsewhere the environment's.
        env: Its variables. Default: those of this process in `local`, elsewhere the environment's.
        timeout: Seconds; `None` for no limit.
        max_output_bytes: Bytes kept of each stream.
        shieling: Where it runs. Default: on this host, without rules.
    """
    check_cap(max_output_bytes)
    where: Any = shieling or _THIS_HOST.asynchronous()
    local = where.environment == "local"
    if where.environment != "memory":
        check_directory(workdir)
    if local:
        check_program(argv[0], env)
    if is_powershell(argv):
        command = _POWERSHELL_UTF8 + command
    plain = is_bash(argv) and list(argv[1:]) == ["-c"]
    outcome = await guarded(
        where.run(
            command if plain else [*argv, command],
            timeout=time_limit(timeout),
            cwd=os.getcwd() if workdir is None and local else workdir,
            env=variables_of(env, where.environment, {}),
            max_output=max_output_bytes,
        )
    )
    result = await result_of(where, outcome, max_output_bytes, max_output_bytes, strip=False)
    if outcome.status == "signalled" and outcome.signal is not None:
        return replace(result, exit_code=-outcome.signal)
    return result
