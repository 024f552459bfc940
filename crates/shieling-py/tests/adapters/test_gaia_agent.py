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
from shieling.adapters.gaia import _mixin as mixin

if importlib.util.find_spec("gaia") is None:
    pytest.skip("GAIA is not installed: `pip install amd-gaia`", allow_module_level=True)

import gaia.agents.base.tools as agent_tools
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

    def refused(argv: list[str]) -> None:
        command = shlex.join(argv)
        theirs = Theirs._validate_command(argv[0], argv, command)
        mine = ShellToolsMixin._validate_command(argv[0], argv, command)
        assert theirs is None or mine is not None, (command, theirs)

    words = ["ls", ".", "-exec", "-EXEC", "-delete", "-name", "*.py", "-printf", "-o", "-ro/x", "--o", "--out=x", "-k2"]
    words += ["in", "out", "-f", "2", "-c", "status", "push", "-C", "/tmp", "--git-dir=/x", "log", "commit", "-i", "-"]
    words += ["-u", "/o", "/out", "/output", "/append:f", "--a", "-O", "-Ox", "-w", "--web", "help", "diff", "branch", "-D"]
    words += ["remote", "update", "set-url", "--ext-diff", "--textconv", "--filters", "--no-index", "--exec=x", "-oo"]
    words += ["--upload-pack=x", "--receive-pack", "--open-files-in-pager", "show", "ls-files", "cpu", "get", "call"]
    words += ["rev-parse", "describe", "--list", "--contains", "x", "-m", "--merged", "-v", "-vv", "--set-upstream-to=x"]
    heads = ["ls", "find", "sort", "uniq", "git", "rm", "sed", "tee", "cat", "systeminfo", "awk", "grep", "bash"]
    heads += ["git", "git", "git", "wmic", "pwsh"]
    dice = random.Random(7)
    for _ in range(3000):
        refused([dice.choice(heads), *(dice.choice(words) for _ in range(dice.randint(0, 4)))])


POWERSHELL_WORDS = [
    *("-enc", "-e", "-encod", "-EncodedArguments", "-ec", "-ea", "/enc", "-fi", "-f", "-exec", "-executionp", "-ep", "-nop"),
    *("-w", "-Version", "-PSConsoleFile", "-WorkingDirectory", "-NoLogo", "-Sta", "/mta", "-Command", "-c", "-Com", "/c"),
    *("-CommandWithArgs", "-InputFormat", "-x:y", "-enc:x", "", "x", "2"),
]
POWERSHELL_TEXTS = [
    *("Get-Process", "Get-Date | Select-Object Year", "Get-Process; calc", "(Get-Item x).Delete()", "(Get-Date)"),
    *("[System.IO.File]::WriteAllText('a','b')", "Get-Content x > y", "$x=1", "calc.exe", "Get-Process | calc", ". x.ps1"),
    *("&x", "& 'x'", "get-x\nrm y", "del x", "ls", "Get-Process && rm x", "Get-Content \"$(rm x)\"", "Get-Item `x", ".\\x"),
    *("Get-Process | Out-File x", "Get-Process | Tee-Object x", "Get-Content C:/log.txt", "C:\\x.exe", "Get-X | /bin/rm"),
    *("Get-Content @(rm x)", "cmd /c del x", "Get-X | ForEach-Object {rm $_}", "1", "'Get-X'", "get-", "x get-date", "|"),
    *("Get-Date|", "iex x", "Get-X.ToString ()", "Set-X", "Get-X -Y set-z"),
]


def test_no_text_for_powershell_is_allowed_that_gaias_refuses(tmp_path: Path) -> None:
    from gaia.agents.tools.shell_tools import ShellToolsMixin as Theirs

    dice = random.Random(8)
    calls = [["powershell"], *(["powershell", "-Command", text] for text in POWERSHELL_TEXTS)]
    for _ in range(3000):
        options = [dice.choice(POWERSHELL_WORDS) for _ in range(dice.randint(0, 3))]
        texts = [dice.choice(POWERSHELL_TEXTS) for _ in range(dice.randint(0, 2))]
        calls.append([dice.choice(["powershell", "powershell.exe"]), *options, *texts])
    allowed = 0
    for argv in calls:
        command = " ".join(argv)
        theirs = Theirs._validate_command(argv[0], argv, command)
        mine = ShellToolsMixin._validate_command(argv[0], argv, command)
        assert theirs is None or mine is not None, (argv, theirs)
        allowed += mine is None
    assert allowed > 20


def test_the_example_of_an_agent_runs(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    run_example("gaia")
    told = capsys.readouterr().out
    assert "alpha" in told.replace("The first line is alpha.", "")
    assert told.rstrip().endswith("The first line is alpha.")


def test_a_command_without_a_timeout_gets_gaias(agent: ShellAgent) -> None:
    assert agent._execute_tool("run_shell_command", {"command": "cat a.txt"})["timeout"] == 30
    assert agent._execute_tool("run_shell_command", {"command": "cat a.txt", "timeout": None})["timeout"] == 30
    assert agent._execute_tool("run_shell_command", {"command": "cat a.txt", "timeout": 7})["timeout"] == 7
    timeouts = pytest.importorskip("gaia.agents.tools.command_timeouts", reason="GAIA before 0.25")
    agent._granted_binaries = SimpleNamespace(binaries=lambda: {"make"})
    for command in ("make --version", "cat a.txt | sort"):
        agent.shell_command_times.clear()
        expected = timeouts.resolve_timeout(command, None)[0]
        assert agent.run_shell_command(command)["timeout"] == expected, command
    assert mixin._default_seconds("make x") == timeouts.BUILD.seconds == 1800


def test_the_agent_waits_for_the_longest_command(agent: ShellAgent) -> None:
    entry = agent_tools._TOOL_REGISTRY["run_shell_command"]
    if "timeout" not in entry:
        pytest.skip("GAIA before 0.25")
    assert entry["timeout"] == 3660
    assert entry["parameters"]["timeout"]["type"] in ("integer", "number")
