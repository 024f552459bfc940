"""`ShellEnvironmentProvider` and the result type of the adapter for Microsoft's agent framework."""

from __future__ import annotations

import asyncio
import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from environments import environment, sandbox  # noqa: F401

from shieling.adapters.agent_framework import (
    LocalShellTool,
    ShellCommandError,
    ShellEnvironmentProvider,
    ShellEnvironmentProviderOptions,
    ShellEnvironmentSnapshot,
    ShellExecutionError,
    ShellFamily,
    ShellResult,
    default_instructions_formatter,
)


class Executor:
    """Answers probes from a function and remembers them."""

    def __init__(self, answer: Callable[[str], ShellResult]) -> None:
        self.answer = answer
        self.commands: list[str] = []
        self.timeouts: list[float | None] = []
        self.starts = 0

    async def start(self) -> None:
        self.starts += 1

    async def close(self) -> None: ...

    async def run(self, command: str, *, timeout: float | None = None) -> ShellResult:
        self.commands.append(command)
        self.timeouts.append(timeout)
        await asyncio.sleep(0)
        return self.answer(command)


def answers(command: str) -> ShellResult:
    if "echo" in command:
        return ShellResult("VERSION=5.2.15\nCWD=/work\n", "", 0, 1)
    return ShellResult(f"{command.split()[0]} 1.0\nmore", "", 0, 1)


class Context:
    def __init__(self) -> None:
        self.instructions: list[tuple[str, str]] = []

    def extend_instructions(self, source: str, text: str) -> None:
        self.instructions.append((source, text))


def before_run(provider: ShellEnvironmentProvider) -> Context:
    context = Context()
    asyncio.run(provider.before_run(agent=None, session=None, context=context, state={}))
    return context


def test_the_first_run_probes_and_later_ones_do_not() -> None:
    executor = Executor(answers)
    provider = ShellEnvironmentProvider(executor)  # type: ignore[arg-type]
    assert provider.current_snapshot is None
    ((source, text),) = before_run(provider).instructions
    assert source == "shell_environment" == provider.source_id
    assert text.startswith("## Shell environment\nYou are operating a POSIX shell 5.2.15 session on ")
    assert "Working directory: /work" in text
    assert "Available CLIs: git (git 1.0), node (node 1.0), python (python 1.0), docker (docker 1.0)" in text
    assert "echo" in executor.commands[0]
    assert executor.commands[1:] == ["git --version", "node --version", "python --version", "docker --version"]
    assert set(executor.timeouts) == {5.0}
    before_run(provider)
    assert len(executor.commands) == 5 and executor.starts == 1


def test_refresh_probes_again() -> None:
    executor = Executor(answers)
    provider = ShellEnvironmentProvider(
        executor, ShellEnvironmentProviderOptions(probe_tools=("git",)), source_id="mine"  # type: ignore[arg-type]
    )
    first = asyncio.run(provider.refresh())
    executor.answer = lambda command: ShellResult("VERSION=unknown\nCWD=\n", "", 0, 1)
    second = asyncio.run(provider.refresh())
    assert (first.shell_version, first.tool_versions) == ("5.2.15", {"git": "git 1.0"})
    assert (second.shell_version, second.working_directory) == (None, "")
    assert provider.current_snapshot is second
    assert provider.source_id == "mine"


def test_versions_come_from_stderr_too_and_failures_are_gaps() -> None:
    def answer(command: str) -> ShellResult:
        if command.startswith("java"):
            return ShellResult("", "\n  java 21\n", 0, 1)
        if command.startswith("gone"):
            return ShellResult("", "not found", 127, 1)
        if command.startswith("denied"):
            raise ShellCommandError("no")
        if command.startswith("slow"):
            raise asyncio.TimeoutError
        if command.startswith("broken"):
            raise ShellExecutionError("broken")
        return answers(command)

    tools = ("java", "gone", "denied", "slow", "broken", "GIT", "git", "a b", "x;id", "")
    provider = ShellEnvironmentProvider(
        Executor(answer), ShellEnvironmentProviderOptions(probe_tools=tools)  # type: ignore[arg-type]
    )
    snapshot = asyncio.run(provider.refresh())
    assert snapshot.tool_versions == {
        **{"java": "java 21", "gone": None, "denied": None, "slow": None, "broken": None},
        **{"GIT": "GIT 1.0", "a b": None, "x;id": None, "": None},
    }
    executor: Any = provider._executor
    assert not any(";id" in command or "a b" in command for command in executor.commands)


def test_other_exceptions_go_through_and_the_next_run_probes_again() -> None:
    def broken(command: str) -> ShellResult:
        raise KeyError("bug")

    executor = Executor(broken)
    provider = ShellEnvironmentProvider(executor)  # type: ignore[arg-type]
    with pytest.raises(KeyError):
        before_run(provider)
    assert provider.current_snapshot is None
    executor.answer = answers
    assert before_run(provider).instructions


def test_simultaneous_first_runs_share_one_probe() -> None:
    executor = Executor(answers)

    async def go() -> None:
        provider = ShellEnvironmentProvider(executor)  # type: ignore[arg-type]
        await asyncio.gather(
            *(
                provider.before_run(agent=None, session=None, context=Context(), state={})
                for _ in range(5)
            )
        )

    asyncio.run(go())
    assert len(executor.commands) == 5


def test_the_formatter_can_be_another() -> None:
    options = ShellEnvironmentProviderOptions(
        probe_tools=(), override_family=ShellFamily.POWERSHELL, instructions_formatter=repr
    )
    executor = Executor(lambda _: ShellResult("VERSION=7.4\r\nCWD=C:\\x\r\n", "", 0, 1))
    provider = ShellEnvironmentProvider(executor, options)  # type: ignore[arg-type]
    ((_, text),) = before_run(provider).instructions
    assert "version='7.4'" in text
    assert "Write-Output" in executor.commands[0]


def test_the_default_text() -> None:
    snapshot = ShellEnvironmentSnapshot(
        ShellFamily.POWERSHELL, "Windows-11", None, "", {"git": "git 2", "node": None, "docker": None}
    )
    text = default_instructions_formatter(snapshot)
    assert "You are operating a PowerShell session on Windows-11." in text
    assert text.endswith("Available CLIs: git (git 2)\nNot installed: node, docker")
    assert "Working directory" not in text


def test_a_real_shell_is_probed(environment: str, tmp_path: Path) -> None:
    async def go() -> ShellEnvironmentSnapshot:
        async with LocalShellTool(environment=environment, workdir=tmp_path) as tool:
            options = ShellEnvironmentProviderOptions(probe_tools=("bash", "no-such-tool"))
            return await ShellEnvironmentProvider(tool, options).refresh()

    snapshot = asyncio.run(go())
    assert snapshot.shell_version and snapshot.shell_version[0].isdigit()
    assert snapshot.working_directory == str(tmp_path)
    assert snapshot.os_description == platform.platform()
    assert "bash" in (snapshot.tool_versions["bash"] or "")
    assert snapshot.tool_versions["no-such-tool"] is None


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (ShellResult("out", "", 0, 1), "out\nexit_code: 0"),
        (ShellResult("", "err", 2, 1), "stderr: err\nexit_code: 2"),
        (
            ShellResult("out", "err", 124, 1, True, True),
            "out\nstderr: err\n[output truncated]\n[command timed out]\nexit_code: 124",
        ),
        (ShellResult("", "", 0, 1), "exit_code: 0"),
    ],
)
def test_the_text_of_a_result(result: ShellResult, text: str) -> None:
    assert result.format_for_model() == text
