"""pydantic-ai's adapter with pydantic-ai: an agent with a test model calls the tools, and the conformance suite."""

from __future__ import annotations

import asyncio
import copy
import importlib.util
import os
import pickle
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from confined import need, run_example

from shieling import Outcome, Question, Shieling
from shieling.adapters.pydantic_ai import (
    ExecutionEnvironment,
    ExecutionEnvironmentToolset,
    ExecutionResult,
    LocalEnvironment,
    MemoryEnvironment,
    ShielingWorkspaceBackend,
)

if importlib.util.find_spec("pydantic_ai") is None:
    with pytest.raises(ModuleNotFoundError, match="pydantic-ai is not installed"):
        ExecutionEnvironmentToolset()
    pytest.skip("pydantic-ai is not installed: `pip install pydantic-ai-slim`", allow_module_level=True)

from anyio import BrokenResourceError
from pydantic import TypeAdapter
from pydantic_ai import Agent, BinaryContent, DeferredToolRequests, ModelRetry, RunContext
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.toolsets import FunctionToolset, PrefixedToolset
from pydantic_ai.usage import RunUsage
from pydantic_ai.workspaces import LocalWorkspaceBackend, Workspace, WorkspaceOutputLimitError, WorkspaceRef, WorkspaceTimeoutError, WorkspaceUnavailableError
from pydantic_ai.workspaces.conformance import WorkspaceBackendSuite

TOOLS = {"ls", "shell", "read_file", "write_file", "edit_file", "glob", "grep"}


def run(work: Awaitable[Any]) -> Any:
    async def call() -> Any:
        return await work

    return asyncio.run(call())


def context() -> RunContext[None]:
    return RunContext(deps=None, model=TestModel(), usage=RunUsage())


async def call(toolset: ExecutionEnvironmentToolset, name: str, **arguments: Any) -> Any:
    tools = await toolset.get_tools(context())
    return await toolset.call_tool(name, arguments, context(), tools[name])


def tools_of(toolset: ExecutionEnvironmentToolset) -> dict[str, Any]:
    return run(toolset.get_tools(context()))


def handler(command: str) -> ExecutionResult:
    return ExecutionResult(output=f"ran {command}\n", exit_code=0)


# Agents


@pytest.mark.parametrize("environment", ["local", "sandbox"])
def test_an_agent_calls_the_tools(tmp_path: Path, environment: str) -> None:
    calls = [
        ToolCallPart("shell", {"command": "echo hello"}),
        ToolCallPart("write_file", {"path": "d/a.txt", "content": "one\n"}),
        ToolCallPart("edit_file", {"path": "d/a.txt", "old": "one", "new": "two"}),
        ToolCallPart("read_file", {"path": "d/a.txt"}),
        ToolCallPart("shell", {"command": "cat d/a.txt; exit 3"}),
        ToolCallPart("ls", {}),
    ]
    script = iter(calls)

    def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        following = next(script, None)
        return ModelResponse(parts=[TextPart("done") if following is None else following])

    toolset = ExecutionEnvironmentToolset(LocalEnvironment(tmp_path, environment=need(environment)))
    agent = Agent(FunctionModel(model), toolsets=[toolset])

    async def work() -> list[Any]:
        async with agent:
            result = await agent.run("go")
        parts = [
            part for message in result.all_messages() if isinstance(message, ModelRequest) for part in message.parts
        ]
        return [part.content for part in parts if isinstance(part, ToolReturnPart)]

    assert run(work()) == [
        "hello\n\nExit code: 0",
        "File written: d/a.txt",
        "Replaced 1 occurrence in d/a.txt.",
        "     1\ttwo\n",
        "two\n\nExit code: 3",
        "d/",
    ]


def test_a_test_model_calls_tools_of_memory() -> None:
    toolset = ExecutionEnvironmentToolset(MemoryEnvironment({"a": "1\n"}, command_handler=handler))
    agent = Agent(TestModel(call_tools=["shell", "write_file", "ls", "glob"]), toolsets=[toolset])
    assert "ran a" in str(run(agent.run("go")).output)


def test_approval_defers_the_call(tmp_path: Path) -> None:
    toolset = ExecutionEnvironmentToolset(
        LocalEnvironment(tmp_path), require_shell_approval=True, require_write_approval=True
    )
    kinds = {name: tool.tool_def.kind for name, tool in tools_of(toolset).items()}
    assert {name for name, kind in kinds.items() if kind == "unapproved"} == {"shell", "write_file", "edit_file"}
    agent = Agent(TestModel(call_tools=["shell"]), toolsets=[toolset], output_type=[str, DeferredToolRequests])
    result = run(agent.run("go"))
    assert [one.tool_name for one in result.output.approvals] == ["shell"]


# The toolset


def test_the_tools_are_those_of_the_environment() -> None:
    memory = MemoryEnvironment()
    assert set(tools_of(ExecutionEnvironmentToolset(memory))) == TOOLS - {"shell"}
    assert set(tools_of(ExecutionEnvironmentToolset(LocalEnvironment()))) == TOOLS
    assert set(tools_of(ExecutionEnvironmentToolset(LocalEnvironment(), include=["ls", "shell", "nope"]))) == {
        "ls",
        "shell",
    }
    assert set(tools_of(ExecutionEnvironmentToolset(LocalEnvironment(), include=["ls", "shell"], exclude=["ls"]))) == {
        "shell"
    }
    toolset = ExecutionEnvironmentToolset(memory)
    with toolset.use_environment(LocalEnvironment()):
        assert set(tools_of(toolset)) == TOOLS
    assert "shell" not in tools_of(toolset)


def test_an_environment_may_name_its_capability_replace_str() -> None:
    class Own(ExecutionEnvironment):
        @property
        def capabilities(self) -> frozenset[str]:
            return frozenset({"replace_str", "create_process"})

        async def replace_str(self, path: str, old: str, new: str, *, replace_all: bool = False) -> int:
            """Own words."""
            return 2

    toolset = ExecutionEnvironmentToolset(Own())
    tools = tools_of(toolset)
    assert set(tools) == {"edit_file"} and tools["edit_file"].tool_def.description == "Own words."
    assert run(call(toolset, "edit_file", path="f", old="a", new="b")) == "Replaced 2 occurrences in f."


def test_texts_of_the_tools(tmp_path: Path) -> None:
    toolset = ExecutionEnvironmentToolset(LocalEnvironment(tmp_path))

    async def work() -> None:
        assert await call(toolset, "ls") == "Empty directory."
        assert await call(toolset, "glob", pattern="*") == "No files found."
        assert await call(toolset, "grep", pattern="x") == "No matches found."
        assert await call(toolset, "read_file", path="nope") == "Error: File not found: nope"
        assert (
            await call(toolset, "read_file", path="../x") == "Error: Path '../x' resolves outside the environment root."
        )
        assert (
            await call(toolset, "write_file", path="../x", content="")
            == "Error: Path '../x' resolves outside the environment root."
        )
        assert (await call(toolset, "grep", pattern="(")).startswith("Error: ")
        assert await call(toolset, "ls", path="nope") == "Error: Not a directory: nope"
        assert await call(toolset, "write_file", path="a", content="x x") == "File written: a"
        assert (
            await call(toolset, "edit_file", path="a", old="x", new="y", replace_all=True)
            == "Replaced 2 occurrences in a."
        )
        with pytest.raises(ModelRetry, match="old_string not found in a"):
            await call(toolset, "edit_file", path="a", old="nope", new="y")
        assert await call(toolset, "ls") == "a (3 bytes)"
        (tmp_path / "b.bin").write_bytes(b"\xff\xfe")
        assert await call(toolset, "read_file", path="b.bin") == "[Binary file: b.bin — cannot display as text]"
        for number in range(101):
            (tmp_path / f"{number:03}.g").write_text("")
        found = await call(toolset, "glob", pattern="*.g")
        assert found.endswith("100 matches]") and found.count("\n") == 100
        long = await call(toolset, "shell", command="head -c 100001 /dev/zero | tr '\\0' x")
        assert long == f"{'x' * 100_000}\n[output truncated]\nExit code: 0"
        assert await call(toolset, "shell", command="sleep 9", timeout=1) == "[Command timed out]\nExit code: -1"
        assert await call(toolset, "shell", command="true") == "Exit code: 0"
        # The original raises here, which ends the agent's run.
        assert (
            await call(toolset, "shell", command="true", timeout=0) == "Error: timeout must be positive or None, got 0"
        )
        assert (await call(toolset, "glob", pattern="/etc/*")).startswith("Error: ")
        # As it does here.
        for name, arguments in (
            ("ls", {"path": "a\0b"}),
            ("write_file", {"path": "a\0b", "content": ""}),
            ("write_file", {"path": "s", "content": "\udc80"}),
            ("glob", {"pattern": ""}),
            ("glob", {"pattern": "**.py"}),
            ("grep", {"pattern": "x", "path": "a\0b"}),
        ):
            assert (await call(toolset, name, **arguments)).startswith("Error: ")

    run(work())


def test_a_long_file_is_cut_to_what_the_toolset_shows(tmp_path: Path) -> None:
    (tmp_path / "long").write_text("y" * 300_000)
    told = run(call(ExecutionEnvironmentToolset(LocalEnvironment(tmp_path)), "read_file", path="long"))
    assert len(told) == 200_000 + len("\n... (truncated)") and told.endswith("y\n... (truncated)")
    short = ExecutionEnvironmentToolset(LocalEnvironment(tmp_path), max_output_chars=10)
    assert run(call(short, "read_file", path="long")) == "     1\tyyy\n... (truncated)"


def test_the_tools_are_described_to_the_model_in_the_same_words_everywhere() -> None:
    local, memory = (
        {name: tool.tool_def for name, tool in tools_of(ExecutionEnvironmentToolset(one)).items()}
        for one in (LocalEnvironment(), MemoryEnvironment(command_handler=handler))
    )
    assert local == memory
    assert local["shell"].description.startswith("Execute a shell command and return its output.")
    assert "Python `re` module syntax" in local["grep"].description
    assert {name: sorted(one.parameters_json_schema["properties"]) for name, one in local.items()} == {
        "ls": ["path"],
        "shell": ["command", "timeout"],
        "read_file": ["limit", "offset", "path"],
        "write_file": ["content", "path"],
        "edit_file": ["new", "old", "path", "replace_all"],
        "glob": ["path", "pattern"],
        "grep": ["glob", "output_mode", "path", "pattern"],
    }


def test_writing_to_a_process_that_has_ended_raises_what_anyio_does(tmp_path: Path) -> None:
    async def work() -> None:
        async with await LocalEnvironment(tmp_path).create_process("exit 3") as process:
            await process.wait(timeout=20)
            with pytest.raises(BrokenResourceError) as caught:
                await process.send(b"x")
            assert isinstance(caught.value, BrokenPipeError)

    run(work())


def test_images(tmp_path: Path) -> None:
    env = MemoryEnvironment({"i.png": b"12345", "j.svg": "<svg/>"})

    async def work() -> None:
        image = await call(ExecutionEnvironmentToolset(env), "read_file", path="i.png")
        assert isinstance(image, BinaryContent) and (image.data, image.media_type) == (b"12345", "image/png")
        assert (await call(ExecutionEnvironmentToolset(env), "read_file", path="j.svg")).media_type == "image/svg+xml"
        off = ExecutionEnvironmentToolset(env, image_support=False)
        assert (
            await call(off, "read_file", path="i.png")
            == "[Image file: i.png — image_support is disabled on this toolset]"
        )
        small = ExecutionEnvironmentToolset(env, max_image_bytes=3)
        assert await call(small, "read_file", path="i.png") == "Error: Image too large (5 bytes, max 3 bytes)."

    run(work())


def test_the_toolset_is_one_of_pydantic_ais() -> None:
    toolset = ExecutionEnvironmentToolset(MemoryEnvironment(), max_retries=3, id="env")
    assert isinstance(toolset, FunctionToolset)
    assert (toolset.id, toolset.max_retries) == ("env", 3)
    assert "PrefixedToolset" in toolset.tool_name_conflict_hint
    assert set(run(PrefixedToolset(toolset, "p").get_tools(context()))) == {f"p_{name}" for name in TOOLS - {"shell"}}


class Counted(MemoryEnvironment):
    entered = 0
    left = 0

    async def __aenter__(self) -> Any:
        self.entered += 1
        return await super().__aenter__()

    async def __aexit__(self, *args: Any) -> None:
        self.left += 1
        await super().__aexit__(*args)


def test_a_shared_environment_is_entered_once() -> None:
    env = Counted()
    toolset = ExecutionEnvironmentToolset(env)

    async def work() -> None:
        async with toolset, toolset:
            assert (env.entered, env.left) == (1, 0)
            assert toolset.environment is toolset.required_environment is env
        assert (env.entered, env.left) == (1, 1)
        async with toolset:
            assert env.entered == 2

    run(work())


@pytest.mark.parametrize("by_position", [False, True])
def test_a_factory_makes_an_environment_for_each_run(by_position: bool) -> None:
    made: list[Counted] = []

    def make() -> Counted:
        made.append(Counted())
        return made[-1]

    toolset = (
        ExecutionEnvironmentToolset(make) if by_position else ExecutionEnvironmentToolset(environment_factory=make)
    )
    assert toolset.environment is None

    async def one() -> Any:
        async with toolset:
            await asyncio.sleep(0)
            return toolset.environment

    async def work() -> None:
        first, second = await asyncio.gather(one(), one())
        assert first is not second and {first, second} == set(made)
        assert [env.left for env in made] == [1, 1]
        assert toolset.environment is None

    run(work())


def test_both_ways_to_give_an_environment_exclude_each_other() -> None:
    with pytest.raises(ValueError, match="Cannot provide both shared_environment and environment_factory"):
        ExecutionEnvironmentToolset(MemoryEnvironment(), environment_factory=MemoryEnvironment)


def test_without_an_environment_it_says_so() -> None:
    toolset = ExecutionEnvironmentToolset()
    assert toolset.environment is None
    with pytest.raises(RuntimeError, match="No execution environment configured"):
        _ = toolset.required_environment
    with pytest.raises(RuntimeError, match="No execution environment configured"):
        run(toolset.__aenter__())

    async def work() -> None:
        env = MemoryEnvironment()
        with toolset.use_environment(env):
            async with toolset:
                assert toolset.environment is env

    run(work())


def test_a_name_of_an_environment_is_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    toolset = ExecutionEnvironmentToolset(need("sandbox"))
    assert run(call(toolset, "shell", command="echo hello")) == "hello\n\nExit code: 0"


# Workspaces


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(params=["local", "sandbox"])
def kind(request: pytest.FixtureRequest) -> str:
    return need(str(request.param))


class TestConformance(WorkspaceBackendSuite):
    @pytest.fixture
    def backend(self, tmp_path: Path, kind: str) -> ShielingWorkspaceBackend:
        return ShielingWorkspaceBackend(tmp_path, environment=kind)

    @pytest.fixture
    def attach_backend(self, kind: str) -> Callable[[WorkspaceRef], ShielingWorkspaceBackend]:
        return lambda ref: ShielingWorkspaceBackend(ref.id, environment=kind)

    @pytest.fixture
    def destructive_backend(self, tmp_path: Path, kind: str) -> Callable[[], ShielingWorkspaceBackend]:
        def make() -> ShielingWorkspaceBackend:
            (tmp_path / "other").mkdir()
            return ShielingWorkspaceBackend(tmp_path / "other", environment=kind)

        return make

    @pytest.fixture
    def destroy_environment(self, kind: str) -> Callable[[ShielingWorkspaceBackend], Awaitable[None]]:
        if kind == "sandbox":
            pytest.skip("the sandbox keeps the directory that it shows, so commands in it see it until they end")

        async def destroy(backend: ShielingWorkspaceBackend) -> None:
            shutil.rmtree(backend.ref.id)

        return destroy


def test_a_workspace_command_that_times_out_leaves_nothing(tmp_path: Path, kind: str) -> None:
    from test_pydantic_ai import gone

    async def work() -> None:
        backend = ShielingWorkspaceBackend(tmp_path, environment=kind)
        with pytest.raises(WorkspaceTimeoutError) as caught:
            await backend.run("echo partial; setsid sh -c 'sleep 7671'; echo x", shell=True, timeout=1)
        assert caught.value.stdout == "partial\n"
        assert (await backend.run(["echo", "again"])).stdout == "again\n"
        await backend.aclose()

    run(work())
    assert gone("sleep 7671")


def test_what_a_workspace_command_detaches_ends_with_the_backend(tmp_path: Path) -> None:
    from test_pydantic_ai import gone

    async def work() -> None:
        async with ShielingWorkspaceBackend(tmp_path) as backend:
            result = await backend.run("setsid sleep 7672 & echo started", shell=True)
            assert (result.stdout, result.exit_code) == ("started\n", 0)

    run(work())
    assert gone("sleep 7672")


def test_too_much_output_of_a_workspace_command_keeps_a_preview(tmp_path: Path, kind: str) -> None:
    with pytest.raises(WorkspaceOutputLimitError) as caught:
        run(ShielingWorkspaceBackend(tmp_path, environment=kind).run("echo begin; yes", shell=True))
    assert caught.value.stdout.startswith("begin\ny\n") and len(caught.value.stdout) == 64 * 1024


def test_the_output_limit_of_a_workspace_command_is_over_both_streams(tmp_path: Path) -> None:
    half = 5 * 1024 * 1024
    command = "head -c {} /dev/zero; head -c {} /dev/zero >&2"

    async def work() -> None:
        backend = ShielingWorkspaceBackend(tmp_path)
        # One after the other in the same place: what earlier ones have printed does not count.
        for _ in range(2):
            result = await backend.run(command.format(half, half), shell=True)
            assert (len(result.stdout), len(result.stderr)) == (half, half)
        with pytest.raises(WorkspaceOutputLimitError):
            await backend.run(command.format(half, half + 1), shell=True)
        assert (await backend.run(["echo", "on"])).stdout == "on\n"
        await backend.aclose()

    run(work())


_ANSWERED: list[tuple[Any, dict[str, Any]]] = [
    # Names that a shell has as builtins or words of its grammar are programs here, or nothing.
    *((words, {}) for words in (["exit", "3"], ["cd", "/"], ["export", "A=1"], ["type", "ls"], ["if"], ["{"], ["eval", "x"])),
    *((words, {}) for words in (["echo", "-n", "x"], ["printf", "%b", "a\\nb"], ["[", "1", "=", "1", "]"], ["true"])),
    # What is not there, is no program, or cannot be run.
    *((words, {}) for words in (["nosuch"], ["./nosuch"], ["no such"], ["it's"], ["a\\b"], ["größe"], [""], ["", "x"])),
    *((words, {}) for words in (["./plain"], ["/"], ["."], ["./bad"], ["./by-env"], ["a=b"], ["./a=b"], ["-x"], ["--"])),
    *((words, {}) for words in (["./plain/x"], ["x" * 300], ["./loop"], ["-"], ["-", "ls"])),
    *((["sh", "-c", 'echo ${#1}', "sh", "x" * (128 * 1024 - less)], {}) for less in (0, 1)),
    (["echo"], {"env": {"A": "x" * (128 * 1024)}}),
    # What a command itself says is its own.
    (["sh", "-c", "echo 'env: x' >&2; exit 127"], {}),
    (["env", "nosuch"], {"env": {"LC_ALL": "C"}}),
    # Bytes and paths are words.
    ([b"echo", "a", b"b"], {}),
    ([Path("/bin/echo"), Path("x")], {}),
    ([], {}),
    (["echo", 5], {}),
    (["a\0b"], {}),
    ("echo hi", {}),
    (["echo", "hi"], {"shell": True}),
    *((text, {"shell": True}) for text in ("", "   ", "exit 3", "kill -9 $$", "kill -TERM $$", "kill -9 0")),
    *((text, {"shell": True}) for text in ("echo 'a\\nb'", "echo a; echo b >&2", "cat", "echo $0 $#", "a\0b", "echo (")),
    *((text, {"shell": True}) for text in ("cat <<E\n$HOME\nE\n", "echo x # y", "env | sort", "pwd", "sleep 0 & wait; echo $?")),
    ("ps -o pgid= -p $$ | tr -d ' ' | grep -qx $$ && echo own", {"shell": True}),
    # Variables.
    (["env"], {"env": {"A": "1"}}),
    *((["printenv", name], {"env": {name: "value; echo x"}}) for name in ("A", "A.B", "A B", "-i", "--", "$(touch f)", "a'b")),
    *((["printenv", "A"], {"env": {name: value}}) for name, value in (("A=", "x"), ("=", "x"), ("A", "\0"), ("A", None), ("A", 1), ("A", ""))),
    *((words, {"env": {"PATH": path}}) for words in (["ls", "-d", "."], ["/bin/ls", "-d", "."]) for path in ("/nowhere", "", "bin"))
    ,
    *((["echo", "x"], {"env": {name: "./start"}}) for name in ("BASH_ENV", "ENV", "SHELLOPTS", "LD_AUDIT")),
    *(("echo x", {"shell": True, "env": {name: "./start"}}) for name in ("BASH_ENV", "ENV")),
    *((["true"], {"timeout": value}) for value in (0, -1, float("nan"), float("inf"), "1", True)),
    (["sleep", "5"], {"timeout": True}),
]


@pytest.mark.parametrize(("command", "options"), _ANSWERED, ids=lambda value: repr(value)[:60])
def test_a_workspace_command_is_answered_as_by_the_original(
    tmp_path: Path, command: Any, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SERVICE_API_KEY", "hunter2")
    for name, text, mode in (
        ("plain", "#!/bin/sh\necho plain\n", 0o644),
        ("bad", "#!/nowhere/sh\n", 0o755),
        ("by-env", "#!/usr/bin/env nosuch\n", 0o755),
        ("a=b", "#!/bin/sh\necho named\n", 0o755),
        ("start", "touch started\n", 0o755),
    ):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(mode)
    (tmp_path / "loop").symlink_to("loop")

    async def answer(backend: Any) -> Any:
        try:
            result = await backend.run(command, **options)
        except Exception as error:
            return type(error), str(error), type(error.__cause__)
        return result.exit_code, result.stdout, result.stderr

    async def work() -> None:
        expected = await answer(LocalWorkspaceBackend(tmp_path))
        async with ShielingWorkspaceBackend(tmp_path) as backend:
            found = await answer(backend)
        if isinstance(expected[0], type) and not issubclass(expected[0], (WorkspaceTimeoutError, type(None))):
            # Of mistakes in the call, the kind counts.
            assert isinstance(found[0], type) and issubclass(found[0], expected[0])
        else:
            assert found == expected
        assert not (tmp_path / "started").exists() and not (tmp_path / "f").exists()

    run(work())


def test_in_the_sandbox_a_workspace_command_has_the_sandboxs_own_places(tmp_path: Path) -> None:
    backend = ShielingWorkspaceBackend(tmp_path, environment=need("sandbox"), env={"A B": "1"})
    assert run(backend.run(["printenv", "A B"])).stdout == "1\n"
    result = run(backend.run('command -v ls; test -n "$HOME" && echo home', shell=True))
    assert "/ls" in result.stdout and "home" in result.stdout
    assert run(backend.run(["exit", "3"])).stderr == "exit: command not found\n"


def test_a_workspace_keeps_nothing_of_commands_that_were_given_up(tmp_path: Path) -> None:
    async def work() -> None:
        async with ShielingWorkspaceBackend(tmp_path) as backend:
            await backend.run(["true"])
            before = len(os.listdir("/proc/self/fd"))
            for _ in range(30):
                task = asyncio.create_task(backend.run(["sleep", "50"]))
                await asyncio.sleep(0.01)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                with pytest.raises(WorkspaceTimeoutError):
                    await backend.run(["sleep", "50"], timeout=0.02)
            assert (await backend.run(["echo", "on"])).stdout == "on\n"
            assert len(os.listdir("/proc/self/fd")) < before + 20

    run(work())


def test_a_workspace_stays_usable_when_it_is_closed_while_commands_run(tmp_path: Path) -> None:
    async def work() -> None:
        backend = ShielingWorkspaceBackend(tmp_path)
        tasks = [asyncio.create_task(backend.run(["sleep", "50"])) for _ in range(3)]
        await asyncio.sleep(0.1)
        await backend.aclose()
        await asyncio.gather(*tasks, return_exceptions=True)
        for _ in range(4):
            assert (await backend.run(["echo", "on"])).stdout == "on\n"
        await backend.aclose()

    run(work())


def test_a_copy_of_a_workspace_and_a_forked_process_run_commands_of_their_own(tmp_path: Path) -> None:
    backend = ShielingWorkspaceBackend(tmp_path)
    assert run(backend.run(["echo", "on"])).stdout == "on\n"
    for other in (copy.copy(backend), copy.deepcopy(backend), pickle.loads(pickle.dumps(backend))):
        assert run(other.run(["pwd"])).stdout == f"{tmp_path}\n"
        run(other.aclose())
        assert run(backend.run(["echo", "on"])).stdout == "on\n"
    child = os.fork()
    if child == 0:
        try:
            os._exit(run(backend.run(["sh", "-c", "exit 7"])).exit_code)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    run(backend.aclose())


@pytest.mark.parametrize("text", ["echo a\r", "echo \u202e", "echo (", "true " + "x" * 300_000])
def test_a_workspace_without_rules_runs_what_cannot_be_read(tmp_path: Path, kind: str, text: str) -> None:
    result = run(ShielingWorkspaceBackend(tmp_path, environment=kind).run(text, shell=True))
    assert "not allowed" not in result.stderr


@pytest.mark.parametrize("entry", ["env", "setsid", "exec", "cd", "sh", "nice"])
def test_a_deny_list_of_a_workspace_denies_no_more_than_it_says(tmp_path: Path, entry: str) -> None:
    backend = ShielingWorkspaceBackend(tmp_path, shieling={"deny": [entry]})
    assert run(backend.run(["echo", "a"])).stdout == "a\n"
    assert run(backend.run("echo a", shell=True)).stdout == "a\n"
    assert run(backend.run([entry, "x"])).exit_code == 126


def test_methods_for_files_of_a_workspace_obey_its_rules(tmp_path: Path, kind: str) -> None:
    (tmp_path / ".env").write_text("hunter2")
    (tmp_path / "link").symlink_to(".env")
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "f").write_text("kept")

    async def refused(call: Awaitable[Any]) -> None:
        with pytest.raises((PermissionError, FileNotFoundError)):
            await call

    async def work() -> None:
        ignoring = ShielingWorkspaceBackend(tmp_path, environment=kind, shieling={"ignore": [".env"]})
        for name in (".env", "link"):
            await refused(ignoring.read_bytes(str(tmp_path / name)))
            await refused(ignoring.write_bytes(str(tmp_path / name), b"x"))
        await refused(ignoring.remove(str(tmp_path / ".env")))
        assert await ignoring.read_bytes(str(tmp_path / "d/f")) == b"kept"
        names = [entry.name for entry in await ignoring.list_dir(str(tmp_path))]
        assert "d" in names and ".env" not in names
        await ignoring.make_dir(str(tmp_path / "new/deep"))
        await refused(ignoring.make_dir(str(tmp_path.parent / f"{tmp_path.name}-outside")))
        with pytest.raises(NotADirectoryError):
            await ignoring.make_dir(str(tmp_path / "d/f/g"))
        with pytest.raises(FileExistsError):
            await ignoring.make_dir(str(tmp_path / "d/f"))
        await ignoring.write_bytes(str(tmp_path / "new/deep/g"), b"1")
        assert (await ignoring.stat(str(tmp_path / "new/deep/g"))).size == 1
        assert (await ignoring.stat(str(tmp_path / "new"))).is_dir and await ignoring.exists(str(tmp_path / "d"))
        await ignoring.remove(str(tmp_path / "new"))
        for rules in (
            {"readonly": True},
            {"allow": ["ls"]},
            {"require_write_approval": True},
            {"approval": "always", "approver": lambda question: False},
        ):
            backend = ShielingWorkspaceBackend(tmp_path, environment=kind, shieling=rules)
            if "allow" not in rules:
                await refused(backend.write_bytes(str(tmp_path / "d/f"), b"x"))
                await refused(backend.remove(str(tmp_path / "d")))
            if "require_write_approval" not in rules:
                await refused(backend.make_dir(str(tmp_path / "made")))
            await backend.aclose()
        await ignoring.aclose()

    run(work())
    assert (tmp_path / "d/f").read_text() == "kept" and (tmp_path / ".env").read_text() == "hunter2"
    assert not (tmp_path / "made").exists() and not (tmp_path / "new").exists()


def test_where_somebody_decides_a_workspace_command_is_shown_as_it_was_given(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("kept")

    async def work() -> None:
        asked: list[str] = []

        def yes(question: Question) -> bool:
            asked.append(question.text)
            return True

        listed = ShielingWorkspaceBackend(tmp_path, shieling={"allow": ["ls", "sleep"]}, env={"A": "1"})
        assert (await listed.run(["ls"])).stdout == "f\n"
        assert (await listed.run(["ls"], env={"B": "2"})).exit_code == 0
        assert (await listed.run("ls | rm f", shell=True)).exit_code == 126
        reading = ShielingWorkspaceBackend(tmp_path, shieling={"readonly": True})
        assert (await reading.run(["cat", "f"])).stdout == "kept"
        assert (await reading.run(["rm", "f"])).exit_code == 126
        with_approver = ShielingWorkspaceBackend(tmp_path, shieling={"approver": yes, "approval": "always"})
        assert (await with_approver.run(["echo", "a b"])).stdout == "a b\n"
        assert asked == ["echo 'a b'"]
        for backend in (listed, reading, with_approver):
            await backend.aclose()

    run(work())


@pytest.mark.parametrize("command", ["/bin/rm f", "echo; rm f", "env rm f", "sh -c 'rm f'", "X=1 rm f"])
def test_a_workspaces_policy_sees_through_a_command(tmp_path: Path, command: str) -> None:
    (tmp_path / "f").write_text("kept")
    result = run(ShielingWorkspaceBackend(tmp_path, shieling={"deny": ["rm"]}).run(command, shell=True))
    assert result.exit_code == 126 and (tmp_path / "f").exists()


@pytest.mark.parametrize(
    ("command", "code"), [("ls '|'", 2), ("true " + "x" * 200_000, 0), ("cat nope", 1), ("kill -9 $$", 137)]
)
def test_workspace_commands_end_as_in_a_shell(tmp_path: Path, command: str, code: int) -> None:
    assert run(ShielingWorkspaceBackend(tmp_path).run(command, shell=True)).exit_code == code


@pytest.mark.parametrize("path", ["/etc/passwd", "link"])
def test_a_sandboxed_workspaces_files_stay_below_it(tmp_path: Path, path: str) -> None:
    backend = ShielingWorkspaceBackend(tmp_path, environment=need("sandbox"))
    (tmp_path / "link").symlink_to("/etc/passwd")
    where = path if path.startswith("/") else str(tmp_path / path)
    for call in (backend.read_bytes(where), backend.write_bytes(where, b"x"), backend.stat(where)):
        with pytest.raises(PermissionError, match="outside the workspace"):
            run(call)
    run(backend.remove(str(tmp_path / "link")))
    assert not (tmp_path / "link").is_symlink()


def test_what_a_sandboxed_workspace_takes_back_is_told(tmp_path: Path) -> None:
    (tmp_path / ".git" / "hooks").mkdir(parents=True)
    backend = ShielingWorkspaceBackend(tmp_path, environment=need("sandbox"))
    result = run(backend.run("echo x > .git/hooks/pre-commit", shell=True))
    assert result.exit_code == 0 and "held back: `.git/hooks/pre-commit` is a hook" in result.stderr
    with pytest.raises(PermissionError, match="held back: `.git/hooks/pre-push` is a hook"):
        run(backend.write_bytes(str(tmp_path / ".git/hooks/pre-push"), b"x"))
    assert os.listdir(tmp_path / ".git/hooks") == []


def test_a_workspace_whose_directory_is_gone_says_so_for_every_method(tmp_path: Path, kind: str) -> None:
    backend = ShielingWorkspaceBackend(tmp_path / "gone", environment=kind)
    where = str(tmp_path / "x")
    for call in (
        *(backend.working_dir(), backend.read_bytes(where), backend.write_bytes(where, b""), backend.stat(where)),
        *(backend.list_dir(where), backend.make_dir(where), backend.remove(where), backend.exists(where)),
        *(backend.realpath(where), backend.run(["true"])),
    ):
        with pytest.raises(WorkspaceUnavailableError, match="gone does not exist"):
            run(call)


def test_pydantic_ais_workspace_takes_the_backend(tmp_path: Path) -> None:
    async def work() -> None:
        workspace = Workspace(ShielingWorkspaceBackend(tmp_path))
        await workspace.write_text("a.txt", "one\n")
        assert (await workspace.run(["cat", "a.txt"])).stdout == "one\n"

    run(work())


def test_the_example_of_an_agent_runs(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    run_example("pydantic_ai")
    told = capsys.readouterr().out
    assert "alpha" in told.replace("The first line is alpha.", "")
    assert told.rstrip().endswith("The first line is alpha.")


def test_a_tool_can_return_an_outcome_which_is_told_as_its_dictionary() -> None:
    with Shieling("memory") as shieling:
        agent = Agent(TestModel(), tools=[shieling.run])
        messages = agent.run_sync("run something").all_messages()
        returned = [part for message in messages for part in message.parts if isinstance(part, ToolReturnPart)]
        assert '"status":"exited"' in returned[0].model_response_str()

        adapter = TypeAdapter(Outcome)
        outcome = shieling.run("echo hi")
        assert adapter.dump_python(outcome) == outcome.to_dict()
        assert adapter.validate_json(adapter.dump_json(outcome)) == outcome
        assert adapter.json_schema(mode="serialization") == {"type": "object", "title": "Outcome"}
