"""GAIA's adapter with GAIA: its agent, with a scripted model, calls the tool; and both validators side by side."""

from __future__ import annotations

import importlib.util
import json
import random
import shlex
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from confined import need, run_example

from shieling.adapters.gaia import ShellToolsMixin

if importlib.util.find_spec("gaia") is None:
    pytest.skip("GAIA is not installed: `pip install amd-gaia`", allow_module_level=True)

from gaia.agents.base.agent import Agent
from gaia.agents.base.console import SilentConsole


class Console(SilentConsole):  # type: ignore[misc]
    """Somebody who says yes."""

    def confirm_tool_execution(self, tool_name: str, tool_args: dict[str, Any]) -> bool:
        return True


class ShellAgent(ShellToolsMixin, Agent):  # type: ignore[misc]
    def _register_tools(self) -> None:
        self.register_shell_tools()

    def _get_system_prompt(self) -> str:
        return "You run commands."

    def _create_console(self) -> Any:
        return Console()


@pytest.fixture(params=["local", "sandbox"])
def agent(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> ShellAgent:
    (tmp_path / "a.txt").write_text("beta\nalpha\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
    return ShellAgent(skip_lemonade=True, silent_mode=True, shell_environment=need(request.param))


def test_the_agent_runs_the_tool(agent: ShellAgent) -> None:
    result = agent._execute_tool("run_shell_command", {"command": "cat a.txt | sort | head -1"})
    assert (result["stdout"], result["return_code"]) == ("alpha\n", 0)


def test_the_agent_refuses_before_it_asks(agent: ShellAgent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Console, "confirm_tool_execution", lambda *_: pytest.fail("a person was asked"))
    result = agent._execute_tool("run_shell_command", {"command": "rm a.txt"})
    assert result["error"] == "Command 'rm' is not in the allowed list for security reasons"


def test_a_scripted_model_calls_the_tool(agent: ShellAgent) -> None:
    script = [
        json.dumps({"tool": "run_shell_command", "tool_args": {"command": "cat a.txt | sort"}}),
        json.dumps({"answer": "It holds alpha and beta."}),
    ]
    asked: list[Any] = []

    def send_messages(*_: Any, messages: Any, **__: Any) -> Any:
        asked.append(json.dumps(messages, default=str))
        text = script[min(len(asked), len(script)) - 1]
        return SimpleNamespace(text=text, stats={}, finish_reason="stop", reasoning=None, tool_calls=None)

    agent.streaming = False
    agent.chat = SimpleNamespace(send_messages=send_messages, get_stats=dict, llm_client=None)
    result = agent.process_query("What is in a.txt?", max_steps=3)
    assert any("alpha" in text and "return_code" in text for text in asked[1:]), result


def test_the_validator_allows_nothing_that_gaias_refuses(tmp_path: Path) -> None:
    from gaia.agents.tools.shell_tools import ShellToolsMixin as Theirs

    words = ["ls", ".", "-exec", "-EXEC", "-delete", "-name", "*.py", "-printf", "-o", "-ro/x", "--o", "--out=x", "-k2"]
    words += [
        "in",
        "out",
        "-f",
        "2",
        "-c",
        "status",
        "push",
        "-C",
        "/tmp",
        "--git-dir=/x",
        "log",
        "commit",
        "-i",
        "-",
        "-u",
    ]
    heads = ["ls", "find", "sort", "uniq", "git", "rm", "sed", "tee", "cat", "systeminfo", "awk", "grep", "bash"]
    dice = random.Random(7)
    for _ in range(400):
        argv = [dice.choice(heads), *(dice.choice(words) for _ in range(dice.randint(0, 4)))]
        command = shlex.join(argv)
        theirs = Theirs._validate_command(argv[0], argv, command)
        if theirs is not None:
            assert ShellToolsMixin._validate_command(argv[0], argv, command) is not None, command


def test_the_example_of_an_agent_runs(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    run_example("gaia")
    told = capsys.readouterr().out
    assert "alpha" in told.replace("The first line is alpha.", "")
    assert told.rstrip().endswith("The first line is alpha.")
