"""Commands in processes of their own."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ... import AsyncShieling
from .._execution import Execution, time_limit
from ._killtree import kill_process_tree
from ._resolve import is_bash, is_powershell
from ._session import (
    Kept,
    check_cap,
    check_directory,
    check_program,
    communicate,
    guarded,
    result_of,
    variables_of,
)
from ._types import ShellResult, result_of_streams

# PowerShell of Windows prints in the console's code page otherwise.
_POWERSHELL_UTF8 = (
    "$OutputEncoding = [Console]::OutputEncoding = [System.Text.UTF8Encoding]::new($false); "
)

_CREATE_PROCESS = asyncio.create_subprocess_exec
_SECONDS_TO_DRAIN = 2.0


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
    if shieling is None and asyncio.create_subprocess_exec is not _CREATE_PROCESS:
        # Whoever has replaced it, as tests and tracers do, wants to see or to be the process.
        return await _run_by_asyncio(
            argv,
            command,
            workdir=workdir,
            env=env,
            timeout=timeout,
            max_output_bytes=max_output_bytes,
        )
    where: Any = shieling or _THIS_HOST.asynchronous()
    local = where.environment == "local"
    if where.environment != "memory":
        check_directory(workdir)
    if local:
        check_program(argv[0], env)
    command = _for_shell(argv, command)
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


def _for_shell(argv: Sequence[str], command: str) -> str:
    return _POWERSHELL_UTF8 + command if is_powershell(argv) else command


def _popen_kwargs_for_group() -> dict[str, Any]:
    """Returns what `create_subprocess_exec` takes for a process group of its own on this platform."""
    if sys.platform == "win32":
        return {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}
    return {"start_new_session": True}


async def _run_by_asyncio(
    argv: Sequence[str],
    command: str,
    *,
    workdir: str | None,
    env: Mapping[str, str] | None,
    timeout: float | None,
    max_output_bytes: int,
) -> ShellResult:
    """As `run_stateless` on this host, in a process of `asyncio.create_subprocess_exec`."""
    started = time.monotonic()
    process = await asyncio.create_subprocess_exec(
        *argv,
        _for_shell(argv, command),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd=workdir,
        env=None if env is None else dict(env),
        **_popen_kwargs_for_group(),
    )
    stdout, stderr = Kept(max_output_bytes), Kept(max_output_bytes)
    timed_out = False
    try:
        await asyncio.wait_for(communicate(process, stdout, stderr), timeout)
    except asyncio.TimeoutError:
        timed_out = True
        await kill_process_tree(process)
        with contextlib.suppress(Exception):
            # What has left the tree may hold the streams.
            await asyncio.wait_for(communicate(process, stdout, stderr), _SECONDS_TO_DRAIN)
    except BaseException:
        await asyncio.shield(kill_process_tree(process))
        raise
    return result_of_streams(
        stdout.cut(max_output_bytes),
        stderr.cut(max_output_bytes),
        exit_code=-1 if process.returncode is None else process.returncode,
        duration_ms=(time.monotonic() - started) * 1000,
        timed_out=timed_out,
    )
