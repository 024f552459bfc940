"""The adapter beside its original, where that is installed: the same calls give the same answers."""

from __future__ import annotations

import asyncio
import dataclasses
import inspect
import re
import time
from pathlib import Path
from typing import Any

import pytest

from shieling.adapters import agent_framework as ours
from shieling.adapters.agent_framework import _docker, _resolve, _tool, _truncate

original = pytest.importorskip(
    "agent_framework_tools.shell", reason="agent-framework-tools is not installed"
)

PAIR = (original, ours)


def test_every_public_name_is_there() -> None:
    assert set(original.__all__) <= set(ours.__all__)


@pytest.mark.parametrize("name", ["LocalShellTool", "DockerShellTool", "ShellEnvironmentProvider", "ShellPolicy"])
def test_the_constructors_take_the_same(name: str) -> None:
    theirs = inspect.signature(getattr(original, name).__init__).parameters
    mine = inspect.signature(getattr(ours, name).__init__).parameters
    for parameter in theirs.values():
        assert mine[parameter.name].kind == parameter.kind
        if not callable(parameter.default):
            assert mine[parameter.name].default == parameter.default
    public = [key for key in vars(getattr(original, name)) if not key.startswith("_")]
    for key in public:
        assert hasattr(getattr(ours, name), key)


@pytest.mark.parametrize("name", ["ShellResult", "ShellRequest", "ShellDecision", "ShellEnvironmentSnapshot", "ShellEnvironmentProviderOptions"])
def test_the_records_have_the_same_fields_first(name: str) -> None:
    theirs = [field.name for field in dataclasses.fields(getattr(original, name))]
    mine = [field.name for field in dataclasses.fields(getattr(ours, name))]
    assert mine[: len(theirs)] == theirs


@pytest.mark.parametrize("name", ["LocalShellTool", "DockerShellTool"])
def test_the_instances_have_the_same_attributes(name: str) -> None:
    theirs, mine = (vars(getattr(package, name)()) for package in PAIR)
    assert set(theirs) <= set(mine)
    for key, value in theirs.items():
        if isinstance(value, (str, int, float, bool, list, tuple, type(None))) and key != "_container_name":
            assert mine[key] == value, key


COMMANDS = [
    *("echo hi", "printf 'no newline'", "printf 'a\\n\\n\\n'", "echo err >&2", "(exit 7)", "false"),
    *("true", "echo a; echo b >&2; (exit 2)", "printf 'a\\377b'", "echo 'multi\nline'", "no-such-command-here"),
    *("for i in 1 2 3; do echo $i; done", "cat <<E\nhere\nE", "X=1; echo $X", "cd /tmp; pwd"),
    *("echo ü", "printf 'x%.0s' {1..250}", "sh -c 'kill -9 $$'", "echo $((6*7))", "ls /nope-not-here"),
]


@pytest.mark.parametrize("mode", ["persistent", "stateless"])
def test_commands_have_the_same_results(mode: Any, tmp_path: Path) -> None:
    async def go(package: Any) -> list[Any]:
        async with package.LocalShellTool(
            mode=mode, workdir=tmp_path, max_output_bytes=100
        ) as tool:
            found = []
            for command in COMMANDS:
                result = await tool.run(command)
                # bash tells the line of its input where it met an error, and process numbers.
                stderr = re.sub(r"^/bin/|(line|:) +\d+", "", result.stderr)
                found.append((command, result.stdout, stderr, result.exit_code, result.truncated))
            return found

    theirs, mine = (asyncio.run(go(package)) for package in PAIR)
    for their, my in zip(theirs, mine):
        assert my == their


@pytest.mark.parametrize("mode", ["persistent", "stateless"])
def test_a_timeout_looks_the_same(mode: Any, tmp_path: Path) -> None:
    async def go(package: Any) -> Any:
        async with package.LocalShellTool(mode=mode, workdir=tmp_path) as tool:
            return await tool.run("echo part; sleep 20", timeout=0.5)

    theirs, mine = (asyncio.run(go(package)) for package in PAIR)
    assert mine.timed_out and theirs.timed_out
    assert mine.stdout == "part\n"
    assert theirs.stdout in ("part\n", "")  # a killed stateless command loses its output there


def test_a_persistent_call_has_no_fixed_wait(tmp_path: Path) -> None:
    async def go(package: Any) -> float:
        async with package.LocalShellTool(workdir=tmp_path) as tool:
            await tool.run("true")
            started = time.monotonic()
            for _ in range(10):
                await tool.run("true")
            return time.monotonic() - started

    theirs, mine = (asyncio.run(go(package)) for package in PAIR)
    assert mine < theirs


@pytest.mark.parametrize(
    ("keywords", "command"),
    [
        ({}, "rm -rf /"),
        ({}, " "),
        ({"denylist": [r"\brm\b"]}, "rm x"),
        ({"denylist": [r"\brm\b"]}, "ls"),
        ({"denylist": ["RM"]}, "rm x"),
        ({"allowlist": []}, "ls"),
        ({"allowlist": [r"^ls\b"]}, "ls -la"),
        ({"allowlist": [r"^ls\b"]}, "id"),
        ({"allowlist": [r"^git (log|status)\b"]}, "git log --oneline | cat"),
        ({"allowlist": [r"^echo\b"], "denylist": ["x"]}, "echo x"),
    ],
)
def test_the_policy_decides_the_same(keywords: Any, command: str) -> None:
    theirs, mine = (
        package.ShellPolicy(**keywords).evaluate(package.ShellRequest(command)) for package in PAIR
    )
    if "|" in command:  # the adapter wants each command named
        assert (theirs.decision, mine.decision) == ("allow", "deny")
    else:
        assert (mine.decision, mine.reason) == (theirs.decision, theirs.reason)


def test_texts_and_words_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    from agent_framework_tools.shell import _docker as their_docker
    from agent_framework_tools.shell import _resolve as their_resolve
    from agent_framework_tools.shell import _tool as their_tool
    from agent_framework_tools.shell import _truncate as their_truncate

    for mode in ("persistent", "stateless"):
        assert _tool._default_description(mode) == their_tool._default_description(mode)  # type: ignore[arg-type]
        assert _docker._default_description(mode) == their_docker._default_description(mode)  # type: ignore[arg-type]
    for shell in (None, "/bin/zsh -l", ["a", "-c"], "pwsh", "x -Command"):
        for interactive in (True, False):
            assert _resolve.resolve_shell(shell, interactive=interactive) == (
                their_resolve.resolve_shell(shell, interactive=interactive)
            )
    for data in (b"", b"abc", b"x" * 101, "ü".encode() * 60):
        for cap in (1, 2, 7, 100, 101):
            assert _truncate.truncate_head_tail(data, cap) == (
                their_truncate.truncate_head_tail(data, cap)
            )
    snapshots = [
        (family, "os", version, cwd, tools)
        for family in ours.ShellFamily
        for version in (None, "5")
        for cwd in ("", "/w")
        for tools in ({}, {"a": None}, {"a": "1", "b": "2", "c": None})
    ]
    for family, *rest in snapshots:
        assert ours.default_instructions_formatter(
            ours.ShellEnvironmentSnapshot(family, *rest)  # type: ignore[arg-type]
        ) == original.default_instructions_formatter(
            original.ShellEnvironmentSnapshot(original.ShellFamily(family.value), *rest)
        )


def test_errors_say_the_same() -> None:
    for keywords in ({"mode": "x"}, {"shell": ""}):
        errors = []
        for package in PAIR:
            with pytest.raises((ValueError, RuntimeError)) as caught:
                package.LocalShellTool(**keywords)
            errors.append((caught.type.__name__, str(caught.value)))
        assert errors[0] == errors[1]


def test_the_function_tools_are_alike() -> None:
    for name in ("LocalShellTool", "DockerShellTool"):
        theirs, mine = (getattr(package, name)().as_function() for package in PAIR)
        assert type(mine) is type(theirs)
        for key in ("name", "description", "kind", "approval_mode"):
            assert getattr(mine, key) == getattr(theirs, key)
        assert mine.parameters() == theirs.parameters()


def test_the_originals_provider_takes_the_adapters_executor(tmp_path: Path) -> None:
    async def go() -> Any:
        policy = ours.ShellPolicy(denylist=[r"--version"])
        async with ours.LocalShellTool(workdir=tmp_path, policy=policy) as tool:
            options = original.ShellEnvironmentProviderOptions(probe_tools=("git",))
            return await original.ShellEnvironmentProvider(tool, options).refresh()

    snapshot = asyncio.run(go())
    assert snapshot.working_directory == str(tmp_path)
    assert snapshot.tool_versions == {"git": None}
    assert issubclass(ours.ShellExecutionError, original.ShellExecutionError)
    assert isinstance(ours.LocalShellTool(), original.ShellExecutor)


def test_the_originals_tool_takes_the_adapters_policy(tmp_path: Path) -> None:
    policy = ours.ShellPolicy(allowlist=[r"^ls\b"])
    with pytest.raises(original.ShellCommandError, match="does not match allowlist"):
        asyncio.run(original.LocalShellTool(workdir=tmp_path, policy=policy).run("ls; id"))
