"""The adapter beside its original, where that is installed: the same calls give the same answers."""

from __future__ import annotations

import asyncio
import dataclasses
import importlib
import inspect
import os
import re
import subprocess
import time
from pathlib import Path
from typing import Any
from unittest import mock

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


LONG_OUTPUT = [
    "echo hello; head -c 3000 /dev/zero | tr '\\0' '\\n'",
    "echo hello; head -c 100 /dev/zero | tr '\\0' b; head -c 150 /dev/zero | tr '\\0' '\\n'",
    "seq 1 40; seq 1 70 >&2",
    "head -c 90 /dev/zero | tr '\\0' '\\377'",
    "head -c 60 /dev/zero | tr '\\0' '\\377'; head -c 55 /dev/zero | tr '\\0' '\\377' >&2",
    "for i in $(seq 60); do printf é; done; printf '\\r\\n\\r\\n'",
    "printf 'a\\n\\n'",
    "head -c 300 /dev/zero | tr '\\0' '\\n'",
    "for i in $(seq 110); do printf 'x\\n'; done; printf '\\n\\n\\n' >&2",
    "seq 1 3000",
]


@pytest.mark.parametrize("cap", [1, 51, 102, 1000])
@pytest.mark.parametrize(("mode", "shell"), [("persistent", None), ("persistent", "sh"), ("stateless", None)])
def test_output_is_cut_at_the_same_bytes(mode: Any, shell: str | None, cap: int, tmp_path: Path) -> None:
    async def go(package: Any) -> list[Any]:
        keywords = {"mode": mode, "shell": shell, "workdir": tmp_path, "max_output_bytes": cap}
        async with package.LocalShellTool(**keywords) as tool:
            found = []
            for command in LONG_OUTPUT:
                result = await tool.run(command)
                found.append((result.stdout, result.stderr, result.truncated))
            return found

    theirs, mine = (asyncio.run(go(package)) for package in PAIR)
    for command, their, my in zip(LONG_OUTPUT, theirs, mine):
        # The original's shell is lost if it has seen more than four times the bound before the end
        # of the command, which depends on how the bytes arrive.
        stdout = subprocess.run(["/bin/sh", "-c", command], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
        assert mode == "persistent" and len(stdout) > 4 * cap or my == their, command


@pytest.mark.parametrize("mode", ["persistent", "stateless"])
@pytest.mark.parametrize("keywords", [{}, {"env": {"A": "1"}}, {"env": [("A", "1")]}, {"env": {"a.b": "c", "A": "1"}}])
def test_variables_of_any_name_reach_a_command(
    mode: Any, keywords: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("my.var", "a-b", "1x", "é"):
        monkeypatch.setenv(name, "host")
    monkeypatch.setenv("BASH_FUNC_af_function%%", "() { echo function; }")
    monkeypatch.setitem(os.environ, "AF_NO_TEXT", "\udcff")
    show = "af_function; env | grep -E '^(my.var|a-b|1x|é|A|a.b)=' | sort"

    async def go(package: Any) -> str:
        async with package.LocalShellTool(mode=mode, workdir=tmp_path, **keywords) as tool:
            return str((await tool.run(show)).stdout)

    theirs, mine = (asyncio.run(go(package)) for package in PAIR)
    assert mine == theirs
    assert mine.startswith("function\n1x=host\n")


def test_a_stateless_tool_runs_where_the_process_is_and_with_what_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def go(package: Any) -> list[str]:
        monkeypatch.chdir("/tmp")
        tool = package.LocalShellTool(mode="stateless", env={"A": "1"})
        found = [(await tool.run("pwd; echo $A")).stdout]
        monkeypatch.chdir(tmp_path)
        tool._env = {**tool._env, "A": "2"}
        found.append((await tool.run("pwd; echo $A")).stdout)
        return found

    theirs, mine = (asyncio.run(go(package)) for package in PAIR)
    assert mine == theirs == ["/tmp\n1\n", f"{tmp_path}\n2\n"]


def test_closing_lets_a_short_command_end_and_fails_a_long_one(tmp_path: Path) -> None:
    async def go(package: Any, seconds: int) -> Any:
        tool = package.LocalShellTool(workdir=tmp_path)
        await tool.start()
        calls = [asyncio.ensure_future(tool.run(text)) for text in (f"echo a; sleep {seconds}", "echo queued")]
        await asyncio.sleep(0.3)
        await tool.close()
        ended = await asyncio.gather(*calls, return_exceptions=True)
        return [isinstance(one, RuntimeError) or (one.stdout, one.exit_code) for one in ended]

    for seconds, expected in ((1, [("a", 0), True]), (30, [True, True])):
        theirs, mine = (asyncio.run(go(package, seconds)) for package in PAIR)
        assert mine == theirs == expected


class FakeSession:
    """A session with the signatures of the original's, as tests of a caller put in its place."""

    made: list[Any] = []

    def __init__(self, argv: Any, *, workdir: Any = None, env: Any = None, max_output_bytes: int = 65536) -> None:
        self.argv, self.workdir, self.runs, self.starts = list(argv), workdir, [], 0
        self.made.append(self)

    async def start(self) -> None:
        self.starts += 1

    async def close(self) -> None:
        pass

    async def run(self, command: str, *, timeout: float | None) -> Any:
        self.runs.append((command, timeout))
        return "result"


@pytest.mark.parametrize("shell", [None, "/bin/sh"])
def test_a_session_can_be_replaced(shell: str | None) -> None:
    async def go(package: Any) -> Any:
        FakeSession.made = []
        module = importlib.import_module(f"{package.__name__}._tool")
        with mock.patch.object(module, "ShellSession", FakeSession):
            tool = package.LocalShellTool(workdir="/tmp", shell=shell)
            await tool.run("x", timeout=4)
            await tool.close()
        other = package.LocalShellTool(workdir="/tmp")
        other._session = FakeSession(["own"])
        await other.run("y", timeout=5)
        return [(fake.argv, fake.workdir, fake.runs, fake.starts) for fake in FakeSession.made]

    theirs, mine = (asyncio.run(go(package)) for package in PAIR)
    assert mine == theirs and mine[0][2] == [("cd -- '/tmp'\nx", 4)]


def test_the_session_of_a_container_can_be_replaced_and_it_starts_once() -> None:
    async def go(package: Any) -> Any:
        FakeSession.made = []
        module = importlib.import_module(f"{package.__name__}._docker")
        with mock.patch.object(module, "ShellSession", FakeSession):
            tool = package.DockerShellTool(container_name="name")
            tool._start_container, tool._stop_container = mock.AsyncMock(), mock.AsyncMock()
            await tool.start()
            await tool.start()
            await tool.run("x", timeout=3)
            await tool.close()
        counts = (tool._start_container.await_count, tool._stop_container.await_count)
        return counts, [(fake.argv, fake.runs, fake.starts) for fake in FakeSession.made]

    theirs, mine = (asyncio.run(go(package)) for package in PAIR)
    assert mine == theirs
    assert mine[0] == (1, 1)


def test_a_stateless_run_can_be_replaced() -> None:
    async def go(package: Any) -> Any:
        module = importlib.import_module(f"{package.__name__}._tool")
        with mock.patch.object(module, "run_stateless", mock.AsyncMock(return_value="result")) as run:
            tool = package.LocalShellTool(mode="stateless", workdir="/tmp", env={"A": "b"})
            return await tool.run("x"), run.await_args

    theirs, mine = (asyncio.run(go(package)) for package in PAIR)
    assert mine == theirs


class FakeProcess:
    """A process of which a caller's test knows `communicate` and its code."""

    pid = 999_999_999

    def __init__(self, replies: list[Any], returncode: int | None = 0, *, hangs: bool = False) -> None:
        self.replies, self.returncode, self.hangs = replies, returncode, hangs
        self.killed = False

    async def communicate(self) -> tuple[bytes, bytes]:
        reply = self.replies.pop(0)
        if isinstance(reply, BaseException):
            raise reply
        return reply  # type: ignore[no-any-return]

    async def wait(self) -> int | None:
        if self.hangs and not self.killed:
            raise asyncio.TimeoutError
        return self.returncode

    def kill(self) -> None:
        self.killed = True


def test_a_stateless_container_is_a_process_of_asyncio() -> None:
    async def go(package: Any, replies: list[Any], killed: int) -> Any:
        module = importlib.import_module(f"{package.__name__}._docker")
        calls: list[list[str]] = []

        async def create(*argv: str, **_keywords: Any) -> FakeProcess:
            calls.append([re.sub(r"af-shell-\w+", "NAME", word) for word in argv])
            ended = FakeProcess([(b"", b"")], killed)
            return FakeProcess(list(replies), 0) if argv[1] == "run" else ended

        with mock.patch.object(module.asyncio, "create_subprocess_exec", create):
            result = await package.DockerShellTool(mode="stateless").run("echo x", timeout=3)
        return calls, result.stdout, result.stderr, result.timed_out

    for replies, killed in (
        ([(b"out\n", b"err")], 0),
        ([asyncio.TimeoutError(), (b"part", b"")], 0),
        ([asyncio.TimeoutError(), (b"part", b"")], 1),
    ):
        theirs, mine = (asyncio.run(go(package, replies, killed)) for package in PAIR)
        assert mine == theirs


def test_a_stateless_container_ends_with_the_code_of_its_client() -> None:
    async def go(package: Any, client: FakeProcess, *others: FakeProcess) -> Any:
        module = importlib.import_module(f"{package.__name__}._docker")
        created = mock.AsyncMock(side_effect=[client, *others])
        with mock.patch.object(module.asyncio, "create_subprocess_exec", created):
            result = await package.DockerShellTool(mode="stateless")._run_stateless("sleep 5", timeout=0.01)
        ends = [other.killed for other in others]
        return result.stdout, result.stderr, result.exit_code, result.timed_out, ends, created.await_count

    late = asyncio.TimeoutError
    for make, expected in (
        # The container is killed; it is removed; nothing answers.
        (lambda: [FakeProcess([late(), (b"part", b"err")], 137), FakeProcess([])], (137, 1)),
        (lambda: [FakeProcess([late(), (b"", b"")], 137), FakeProcess([], 1), FakeProcess([(b"", b"")])], (137, 2)),
        (
            lambda: [
                FakeProcess([late(), RuntimeError("drain")], None),
                FakeProcess([], None, hangs=True),
                FakeProcess([late()], None),
            ],
            (-1, 2),
        ),
    ):
        theirs, mine = (asyncio.run(go(package, *make())) for package in PAIR)
        assert mine == theirs and (mine[2], len(mine[4])) == expected
    assert mine[4] == [True, True]


def test_a_stateless_command_is_a_process_of_what_replaces_asyncios() -> None:
    async def go(package: Any, argv: list[str], process: FakeProcess) -> Any:
        module = importlib.import_module(f"{package.__name__}._executor")
        created = mock.AsyncMock(return_value=process)
        keywords: Any = {"workdir": "/tmp", "env": {"A": "b"}, "timeout": 0.01, "max_output_bytes": 1024}
        with (
            mock.patch.object(module.asyncio, "create_subprocess_exec", created),
            mock.patch.object(module, "kill_process_tree", mock.AsyncMock()) as kill,
        ):
            result = await module.run_stateless(argv, "echo x", **keywords)
        shown = result.stdout, result.stderr, result.exit_code, result.timed_out, result.truncated
        return shown, created.await_args, kill.await_count

    late = asyncio.TimeoutError
    for argv, replies, code in (
        (["/bin/sh", "-c"], [(b"out\n", b"err")], 3),
        (["pwsh", "-Command"], [(b"x" * 2000, None)], 0),
        (["/bin/sh", "-c"], [late(), (b"part", b"")], -15),
        (["/bin/sh", "-c"], [late(), RuntimeError("drain")], None),
    ):
        theirs, mine = (asyncio.run(go(package, argv, FakeProcess(list(replies), code))) for package in PAIR)
        assert mine == theirs


def test_what_replaces_asyncios_may_hand_on_to_it(tmp_path: Path) -> None:
    create = asyncio.create_subprocess_exec

    async def traced(*argv: Any, **keywords: Any) -> Any:
        return await create(*argv, **keywords)

    async def go(package: Any) -> Any:
        tool = package.LocalShellTool(mode="stateless", workdir=tmp_path)
        first = await tool.run("echo out; echo err >&2; exit 3")
        # What has left the tree holds the streams.
        second = await tool.run("setsid sleep 1 & echo part; sleep 30", timeout=0.3)
        return (first.stdout, first.stderr, first.exit_code), second.timed_out, second.exit_code

    with mock.patch("asyncio.create_subprocess_exec", traced):
        theirs, mine = (asyncio.run(go(package)) for package in PAIR)
        assert mine == theirs == (("out\n", "err\n", 3), True, -15)

        async def cancelled() -> None:
            call = asyncio.ensure_future(ours.LocalShellTool(mode="stateless").run("sleep 7345"))
            await asyncio.sleep(0.3)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call

        asyncio.run(cancelled())
    lines = [one.read_bytes() for one in Path("/proc").glob("[0-9]*/cmdline") if one.exists()]
    assert b"sleep\x007345\0" not in lines


def test_the_use_of_a_tool_is_counted_by_a_name_in_its_module() -> None:
    async def go(package: Any, module: str, tool: str) -> Any:
        made = getattr(package, tool)(mode="stateless")
        made._run_stateless = mock.AsyncMock(return_value="result")
        with mock.patch(f"{package.__name__}.{module}.mark_feature_used") as mark:
            await made.run("x")
        return mark.mock_calls

    for module, tool in (("_tool", "LocalShellTool"), ("_docker", "DockerShellTool")):
        theirs, mine = (asyncio.run(go(package, module, tool)) for package in PAIR)
        assert mine == theirs and len(mine) == 1


@pytest.mark.parametrize("name", ["LocalShellTool", "DockerShellTool"])
def test_a_start_that_leaves_no_session_is_told_the_same(name: str) -> None:
    for package in PAIR:
        tool = getattr(package, name)()
        tool.start = mock.AsyncMock()
        with pytest.raises(RuntimeError, match=f"^{name} session failed to start$"):
            asyncio.run(tool.run("true"))


def test_a_call_that_comes_while_the_tool_closes_fails(tmp_path: Path) -> None:
    async def go(package: Any) -> Any:
        tool = package.LocalShellTool(workdir=tmp_path)
        await tool.start()
        running = asyncio.ensure_future(tool.run("sleep 30"))
        await asyncio.sleep(0.3)
        closing = asyncio.ensure_future(tool.close())
        await asyncio.sleep(0)
        locked = tool._get_session_lock().locked()
        late = asyncio.ensure_future(tool.run("echo late"))
        await closing
        ended = await asyncio.gather(running, late, return_exceptions=True)
        return locked, tool._session, tool._get_session_lock().locked(), [isinstance(one, RuntimeError) for one in ended]

    theirs, mine = (asyncio.run(go(package)) for package in PAIR)
    assert mine == theirs == (True, None, False, [True, True])


@pytest.mark.parametrize(
    ("prepared", "command", "expected"),
    [
        ("trap : INT", "printf 'part\\n'; sleep 30", (130, "1/tmp")),
        ("trap : INT", "printf 'part\\n'; trap '' INT; sleep 30", (124, "")),
        ("true", "printf 'part\\n'; sleep 30", (124, "")),
    ],
)
def test_another_shell_keeps_its_state_at_a_timeout_if_it_survives_the_interrupt(
    prepared: str, command: str, expected: Any, tmp_path: Path
) -> None:
    async def go(package: Any) -> Any:
        async with package.LocalShellTool(shell="/bin/sh", workdir=tmp_path, confine_workdir=False) as tool:
            await tool.run(f"{prepared}; X=1; cd /tmp")
            late = await tool.run(command, timeout=0.5)
            after = await tool.run('printf %s "$X"; [ -z "$X" ] || pwd', timeout=10)
            return (late.exit_code, after.stdout), late.stdout, late.timed_out, getattr(late, "session_restarted", None)

    theirs, mine = (asyncio.run(go(package)) for package in PAIR)
    assert mine[:3] == theirs[:3] and mine[0] == expected
    assert mine[3] is (expected[0] == 124)


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


def test_the_names_of_powershell_have_no_case_in_an_allow_list() -> None:
    for command in ("Get-ChildItem", "get-childitem -Force", "GET-CHILDITEM ."):
        theirs, mine = (package.ShellPolicy(allowlist=["^get-childitem"]) for package in PAIR)
        assert theirs.evaluate_command(command).decision == "allow"
        assert mine.evaluate_command(command).decision == "allow"
    for text in ("ls", "id"):
        theirs, mine = (package.ShellPolicy(allowlist=["^ls"]) for package in PAIR)
        assert mine._matches_allowlist(text) is theirs._matches_allowlist(text)


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
