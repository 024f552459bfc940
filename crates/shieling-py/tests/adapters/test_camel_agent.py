"""CAMEL agents, with a scripted model, that call the adapter's tools."""

from __future__ import annotations

import itertools
import json
import time
from pathlib import Path
from typing import Any

import pytest
from confined import run_example
from environments import environment, sandbox  # noqa: F401

from shieling.adapters.camel import TerminalToolkit

pytest.importorskip("camel", reason="camel-ai is not installed")

from camel.agents import ChatAgent  # noqa: E402
from camel.models.stub_model import StubModel  # noqa: E402
from camel.toolkits import BaseToolkit, FunctionTool  # noqa: E402
from camel.types import ChatCompletion, ModelType  # noqa: E402


_numbers = itertools.count()


class ScriptedModel(StubModel):
    """Answers with the messages of a script, and keeps what it was sent."""

    def __init__(self, *script: dict[str, Any]) -> None:
        super().__init__(ModelType.STUB)
        self.script = list(script)
        self.sent: list[Any] = []

    def _run(self, messages: Any, response_format: Any = None, tools: Any = None) -> Any:
        self.sent.append(messages)
        message = self.script.pop(0)
        choice = {
            "index": 0,
            "finish_reason": "tool_calls" if message.get("tool_calls") else "stop",
            "message": {"role": "assistant", "content": "", **message},
        }
        return ChatCompletion.model_validate(
            {
                "id": "1",
                "model": "scripted",
                "object": "chat.completion",
                "created": int(time.time()),
                "choices": [choice],
                "usage": {"completion_tokens": 1, "prompt_tokens": 1, "total_tokens": 2},
            }
        )


def call(name: str, **arguments: Any) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"tool_calls": [{"id": f"call_{next(_numbers)}", "type": "function", "function": function}]}


def answers(model: ScriptedModel) -> list[str]:
    return [message["content"] for message in model.sent[-1] if message["role"] == "tool"]


def test_the_toolkit_and_its_tools_are_the_frameworks() -> None:
    toolkit = TerminalToolkit()
    assert isinstance(toolkit, BaseToolkit)
    tools = toolkit.get_tools()
    assert all(isinstance(tool, FunctionTool) for tool in tools)
    schema = tools[0].get_openai_tool_schema()["function"]
    assert schema["name"] == "shell_exec"
    assert list(schema["parameters"]["properties"]) == ["id", "command", "block", "timeout"]
    assert all(
        field["description"] for field in schema["parameters"]["properties"].values()
    )
    assert hasattr(toolkit, "run_mcp_server") and toolkit.mcp is not None


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


def test_an_agent_works_with_commands_sessions_and_files(
    environment: str, tmp_path: Path
) -> None:
    work = tmp_path / "work"
    with TerminalToolkit(working_directory=str(work), environment=environment) as toolkit:
        model = ScriptedModel(
            call("shell_write_content_to_file", content="text", file_path="file.txt"),
            call("shell_exec", id="a", command="cat file.txt; pwd", block=True, timeout=20.0),
            call("shell_exec", id="s", command="read x; echo got $x", block=False, timeout=None),
            call("shell_write_to_process", id="s", command="it"),
            call("shell_exec", id="a", command="rm file.txt", block=True, timeout=None),
            call("shell_view", id="none"),
            call("shell_kill_process", id="none"),
            {"content": "done"},
        )
        agent = ChatAgent("You work in a shell.", model=model, tools=list(toolkit.get_tools()))
        response = agent.step("go")
    assert response.msg.content == "done"
    told = [content for content in answers(model)]
    assert "Content successfully written to" in told[0]
    assert f"text{work}" in told[1]
    assert "Session 's' started." in told[2]
    assert "got it" in told[3]
    assert "rejected by TerminalToolkit safe mode" in told[4]
    assert "No session found" in told[5]
    assert "No active session found" in told[6]
    assert (work / "file.txt").read_text() == "text"


def test_a_toolkit_of_a_long_timeout_is_not_cut_by_the_framework(tmp_path: Path) -> None:
    with TerminalToolkit(working_directory=str(tmp_path / "work"), timeout=1.0) as toolkit:
        toolkit.shell_exec("s", "read x; sleep 1.5; echo late; sleep 60", block=False)
        assert toolkit.shell_write_to_process("s", "x") == "late\n"


def test_the_example_of_an_agent_runs(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    run_example("camel")
    told = capsys.readouterr().out
    assert "alpha" in told.replace("The first line is alpha.", "")
    assert told.rstrip().endswith("The first line is alpha.")
