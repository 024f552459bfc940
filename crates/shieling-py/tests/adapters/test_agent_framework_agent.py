"""Agents of Microsoft's framework, with a scripted chat client, that call the adapter's tools."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from confined import run_example
from environments import environment, sandbox  # noqa: F401

from shieling.adapters.agent_framework import (
    DockerShellTool,
    LocalShellTool,
    ShellEnvironmentProvider,
    ShellEnvironmentProviderOptions,
    ShellPolicy,
    ShellResult,
)

af = pytest.importorskip("agent_framework", reason="agent-framework-core is not installed")


class ScriptedClient(af.FunctionInvocationLayer, af.BaseChatClient):  # type: ignore[misc, name-defined]
    """Answers with messages of a script, and keeps what it was sent."""

    def __init__(self, *script: Any) -> None:
        super().__init__()
        self.script = list(script)
        self.sent: list[Sequence[Any]] = []
        self.options: list[Any] = []

    def _inner_get_response(self, *, messages: Any, stream: bool, options: Any, **_: Any) -> Any:
        async def respond() -> Any:
            self.sent.append(list(messages))
            self.options.append(options)
            return af.ChatResponse(messages=[self.script.pop(0)])

        return respond()


def call(command: str, number: int = 1) -> Any:
    content = af.Content.from_function_call(
        call_id=str(number), name="run_shell", arguments={"command": command}
    )
    return af.Message(role="assistant", contents=[content])


def say(text: str) -> Any:
    return af.Message(role="assistant", contents=[text])


def results(response: Any) -> list[Any]:
    return [
        content
        for message in response.messages
        for content in message.contents
        if content.type == "function_result"
    ]


def unasked(environment: str, workdir: Path, **keywords: Any) -> LocalShellTool:
    return LocalShellTool(
        environment=environment,
        workdir=workdir,
        approval_mode="never_require",
        acknowledge_unsafe=True,
        **keywords,
    )


def test_an_agent_works_in_a_shell_that_stays(environment: str, tmp_path: Path) -> None:
    client = ScriptedClient(
        call("echo text > file; X=1", 1), call('cat file; echo "$X" >&2; (exit 3)', 2), say("done")
    )

    async def go() -> Any:
        async with unasked(environment, tmp_path) as shell:
            return await af.Agent(client=client, tools=[shell.as_function()]).run("go")

    response = asyncio.run(go())
    assert response.text == "done"
    assert (tmp_path / "file").read_text() == "text\n"
    assert [result.result for result in results(response)] == [
        "exit_code: 0",
        "text\nstderr: 1\n\nexit_code: 3",
    ]


def test_the_fields_of_a_result_go_with_its_text(tmp_path: Path) -> None:
    client = ScriptedClient(call("echo out; echo err >&2; exit_code=1; (exit 2)"), say("done"))

    async def go() -> Any:
        async with unasked("local", tmp_path) as shell:
            return await af.Agent(client=client, tools=[shell.as_function()]).run("go")

    (result,) = results(asyncio.run(go()))
    assert result.items[0].additional_properties == {
        **{"stdout": "out", "stderr": "err\n", "exit_code": 2},
        **{"truncated": False, "timed_out": False},
    }


def test_a_person_is_asked_unless_that_was_given_up(tmp_path: Path) -> None:
    client = ScriptedClient(call("touch canary"), say("done"))
    shell = LocalShellTool(workdir=tmp_path)
    response = asyncio.run(af.Agent(client=client, tools=[shell.as_function()]).run("go"))
    (request,) = response.user_input_requests
    assert request.function_call.name == "run_shell"
    assert not (tmp_path / "canary").exists()


def test_an_approved_call_runs(tmp_path: Path) -> None:
    client = ScriptedClient(call("touch approved"), say("done"))

    async def go() -> Any:
        async with LocalShellTool(workdir=tmp_path) as shell:
            agent = af.Agent(client=client, tools=[shell.as_function()])
            session = agent.create_session()
            first = await agent.run("go", session=session)
            (request,) = first.user_input_requests
            answer = request.to_function_approval_response(True)
            return await agent.run(af.Message(role="user", contents=[answer]), session=session)

    assert asyncio.run(go()).text == "done"
    assert (tmp_path / "approved").exists()


def test_a_rejection_reaches_the_model_as_text(tmp_path: Path) -> None:
    client = ScriptedClient(call("rm -rf x"), say("done"))
    shell = unasked("local", tmp_path, policy=ShellPolicy(denylist=[r"\brm\b"]))
    response = asyncio.run(af.Agent(client=client, tools=[shell.as_function()]).run("go"))
    (result,) = results(response)
    assert result.result == r"Command rejected by policy: matches denylist pattern: \brm\b"


def test_the_tool_is_a_function_tool_of_kind_shell() -> None:
    for shell in (LocalShellTool(), DockerShellTool()):
        function = shell.as_function()
        assert isinstance(function, af.FunctionTool)
        assert function.kind == "shell"
        assert function.name == "run_shell"
        assert function.approval_mode == "always_require"
        assert list(function.parameters()["properties"]) == ["command"]
        assert "persistent session" in function.description
        other = shell.as_function(name="other", description="mine")
        assert (other.name, other.description) == ("other", "mine")
    stateless = LocalShellTool(mode="stateless").as_function()
    assert "fresh subprocess" in stateless.description


def test_the_function_calls_the_instances_run() -> None:
    shell = LocalShellTool()
    seen: list[str] = []

    async def run(command: str, *, timeout: float | None = None) -> ShellResult:
        seen.append(command)
        return ShellResult("mine", "", 0, 1)

    shell.run = run  # type: ignore[method-assign]
    assert asyncio.run(shell.as_function().func("ls")) == "mine\nexit_code: 0"
    assert seen == ["ls"]


def test_the_provider_tells_the_model_of_its_shell(environment: str, tmp_path: Path) -> None:
    client = ScriptedClient(say("done"))

    async def go() -> None:
        async with unasked(environment, tmp_path) as shell:
            provider = ShellEnvironmentProvider(
                shell, ShellEnvironmentProviderOptions(probe_tools=("bash",))
            )
            assert isinstance(provider, af.ContextProvider)
            await af.Agent(client=client, context_providers=[provider]).run("go")

    asyncio.run(go())
    told = str(client.options[0].get("instructions")) + str(
        [message.text for message in client.sent[0]]
    )
    assert "## Shell environment" in told
    assert str(tmp_path) in told


def test_the_harness_takes_the_tool_as_its_shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    pytest.importorskip("agent_framework_tools", reason="agent-framework-tools is not installed")

    class Client(ScriptedClient):
        @staticmethod
        def get_shell_tool(*, func: Any, **_: Any) -> Any:
            return func

    client = Client(call("echo from the harness"), say("done"))

    async def go() -> Any:
        async with unasked("local", tmp_path) as shell:
            agent = af.create_harness_agent(client, shell_executor=shell)
            return await agent.run("go", session=agent.create_session())

    response = asyncio.run(go())
    assert response.text == "done"
    assert "from the harness" in results(response)[0].result


def test_the_example_of_an_agent_runs(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    run_example("agent_framework")
    told = capsys.readouterr().out
    assert "alpha" in told.replace("The first line is alpha.", "")
    assert told.rstrip().endswith("The first line is alpha.")
