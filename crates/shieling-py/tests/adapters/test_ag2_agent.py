"""AG2's adapter with AG2: an agent with a scripted model calls the tools; and both, side by side."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import random
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from confined import need, run_example

from shieling.adapters import ag2 as ours

if importlib.util.find_spec("ag2") is None and importlib.util.find_spec("autogen") is None:
    pytest.skip("AG2 is not installed: `pip install ag2`", allow_module_level=True)
NEW = importlib.util.find_spec("ag2") is not None
AG2 = "ag2" if NEW else "autogen.beta"
Agent = importlib.import_module(AG2).Agent
testing = importlib.import_module(f"{AG2}.testing")
ToolCallEvent = importlib.import_module(f"{AG2}.events").ToolCallEvent
Tool = importlib.import_module(f"{AG2}.tools.tool").Tool

IGNORE = [["**/.env", "*.key", "secrets/**"], [".env"], ["secrets"], ["*.txt"], ["a"]]


def answer(tool: Any, command: str) -> str:
    """What an agent's model is told when it calls the tool."""
    return told(tool, command=command)


def told(tool: Any, **arguments: str) -> str:
    async def work() -> str:
        call = ToolCallEvent(name=tool.name, arguments=json.dumps(arguments))
        config = testing.TrackingConfig(testing.TestConfig(call, "done"))
        await Agent("agent", config=config, tools=[tool]).ask("go")
        results = config.mock.call_args_list[-1].args[0].results
        return "".join(part.content for part in results[0].result.parts)

    return asyncio.run(work())


@pytest.mark.parametrize("environment", ["local", "sandbox"])
def test_an_agent_calls_the_shell_tool(tmp_path: Path, environment: str) -> None:
    env = ours.LocalShellEnvironment(tmp_path, blocked=["rm"], environment=need(environment))
    tool = ours.LocalShellTool(env)
    assert isinstance(tool, Tool)
    assert answer(tool, "echo hello > f; cat f; exit 3") == "hello\n[exit code: 3]"
    assert answer(tool, "env rm f").startswith("Command not allowed: 'env rm f'")
    assert (tmp_path / "f").read_text() == "hello\n"


def test_the_model_is_told_the_working_directory(tmp_path: Path) -> None:
    tool = ours.LocalShellTool(tmp_path)
    schema = asyncio.run(tool.schemas(None))[0]
    assert schema.function.name == "run_shell_command"
    assert schema.function.description == f"Execute a shell command in the working directory: {tmp_path}"
    assert schema.function.parameters["required"] == ["command"]


@pytest.mark.skipif(not NEW, reason="AG2 1.x is not installed")
@pytest.mark.parametrize("environment", ["local", "sandbox"])
def test_an_agent_of_1x_calls_the_sandbox_tool(tmp_path: Path, environment: str) -> None:
    env = ours.LocalEnvironment(tmp_path, environment=need(environment))
    assert answer(ours.SandboxShellTool(env), "echo hello | tr a-z A-Z") == "HELLO"
    assert answer(ours.SandboxShellTool(env, allowed=["git"]), "git -c alias.x='!echo pwn' x").startswith("Command not")


@pytest.mark.skipif(not NEW, reason="AG2 1.x is not installed")
@pytest.mark.parametrize("environment", ["local", "sandbox"])
def test_an_agent_of_1x_runs_code(tmp_path: Path, environment: str) -> None:
    from ag2.tools import SandboxCodeTool

    env = ours.LocalEnvironment(tmp_path, environment=need(environment))
    tool = ours.SandboxCodeTool(env)
    assert told(tool, code="echo $((6 * 7)); exit 3", language="bash") == "42\n[exit code: 3]"
    assert asyncio.run(tool.schemas(None)) == asyncio.run(SandboxCodeTool(env).schemas(None))


@pytest.mark.skipif(not NEW, reason="AG2 1.x is not installed")
def test_ag2s_own_tools_take_the_adapters_environment(tmp_path: Path) -> None:
    from ag2.tools import SandboxCodeTool, SandboxShellTool
    from ag2.tools.sandbox.adapter import CodeAdapter

    env = ours.LocalEnvironment(tmp_path)
    assert answer(SandboxShellTool(env), "pwd") == str(tmp_path)
    assert SandboxShellTool(env).workdir == tmp_path
    assert SandboxCodeTool(env) is not None
    found = asyncio.run(CodeAdapter(env).run("echo $((6 * 7))", "bash"))
    assert (found.output, found.exit_code) == ("42", 0)


# Side by side


@pytest.mark.parametrize("seed", range(4))
def test_the_filters_answer_as_ag2s(tmp_path: Path, seed: int) -> None:
    theirs = importlib.import_module(f"{AG2}.tools.sandbox.filter" if NEW else f"{AG2}.tools.shell.environment.base")
    (tmp_path / "secrets").mkdir()
    for name in (".env", "a.key", "a.txt", "secrets/k"):
        (tmp_path / name).write_text("x")
    (tmp_path / "link").symlink_to("/etc/passwd")
    tokens = [
        "cat",
        "ls",
        ".env",
        "a.txt",
        "*.key",
        "-o.env",
        "of=.env",
        "../x",
        "/etc/passwd",
        "secrets/k",
        '"a b"',
        "'",
    ]
    tokens += ['"', ">", ">>", "$(x)", "`", "\\;", ";", "&&", "| ", "\n", "\\", "link", "a", "$X", "git", "log"]
    dice = random.Random(seed)
    for _ in range(150):
        command = " ".join(dice.choice(tokens) for _ in range(dice.randint(0, 5)))
        for prefix in ("cat", "git log", "ls"):
            assert theirs.matches(prefix, command) == ours.matches(prefix, command)
        if NEW:
            words = theirs.split_command(command)
            assert words == ours.split_command(command)
            assert theirs.contains_shell_operator(command) == ours.contains_shell_operator(command)
            for prefix in ("cat", "git log"):
                assert theirs.matches_argv(prefix, words or []) == ours.matches_argv(prefix, words or [])
        for patterns in IGNORE:
            for workdir in (tmp_path, PurePosixPath("/work")) if NEW else (tmp_path,):
                found = theirs.check_ignore(command, workdir, patterns)
                if found is not None:
                    assert ours.check_ignore(command, workdir, patterns) is not None
                elif NEW:
                    assert ours.check_ignore(command, workdir, patterns) is None
    listed = ours.SANDBOX_READONLY_COMMANDS if NEW else ours.SHELL_READONLY_COMMANDS
    assert theirs.READONLY_COMMANDS == ours.READONLY_COMMANDS == listed


SAME = [
    "echo hello",
    "echo out; echo err >&2; exit 3",
    "false",
    "printf 'a\\r\\nb\\rc\\n\\n'",
    "printf '  x  '",
    "kill -9 $$",
    "seq 100",
    "cat nope",
    "shieling-no-such-program",
    "pwd",
    "echo $GIVEN",
    "cd /; pwd",
    "exit 300",
    "true",
]


def test_the_same_commands_give_the_same_texts(tmp_path: Path) -> None:
    options: dict[str, Any] = {"timeout": 20, "max_output": 80}
    for command in SAME:
        if NEW:
            from ag2.tools import LocalEnvironment
            from ag2.tools.sandbox.adapter import ShellAdapter

            async def both(command: str = command) -> tuple[str, str]:
                theirs = ShellAdapter(LocalEnvironment(tmp_path, env_vars={"GIVEN": "1"}, **options))
                mine = ours.ShellAdapter(ours.LocalEnvironment(tmp_path, env_vars={"GIVEN": "1"}, **options))
                return await theirs.run(command), await mine.run(command)

            their_text, my_text = asyncio.run(both())
        else:
            from autogen.beta.tools.shell import LocalShellEnvironment

            their_text = LocalShellEnvironment(tmp_path, env={"GIVEN": "1"}, **options).run(command)
            my_text = ours.LocalShellEnvironment(tmp_path, env={"GIVEN": "1"}, **options).run(command)
        # The words of the shell itself differ: theirs is `sh`, ours bash.
        for shell in ("/bin/sh: 1: ", "sh: 1: ", "bash: line 1: "):
            their_text, my_text = their_text.replace(shell, ""), my_text.replace(shell, "")
        my_text = my_text.replace("command not found", "not found")
        assert my_text == their_text, command


@pytest.mark.skipif(NEW, reason="AG2 0.12 is not installed")
@pytest.mark.parametrize(
    ("filters", "command"),
    [
        ({"allowed": ["git"]}, "rm f"),
        ({"allowed": ["git"]}, "gitk"),
        ({"allowed": ["git", "ls"]}, "ls"),
        ({"allowed": []}, "ls"),
        ({"allowed": ["git", "ls"]}, "ls;"),
        ({"allowed": ["git", "ls"]}, "ls\ta.txt"),
        ({"allowed": ["git", "ls"]}, "  ls  "),
        ({"allowed": ["echo"]}, "[[ a == a ]] && echo y"),
        ({"allowed": ["echo"]}, "{ echo g; }"),
        ({"allowed": ["echo"]}, "(echo g)"),
        ({"allowed": ["echo"]}, "! echo g"),
        ({"allowed": ["echo"]}, "if echo g; then echo h; fi"),
        ({"allowed": ["echo"]}, "'echo' g"),
        ({"allowed": ["git log"]}, "git  log"),
        ({"blocked": ["rm"]}, "rm f"),
        ({"blocked": ["rm"]}, "ls"),
        ({"readonly": True}, "touch x"),
        ({"readonly": True}, "cat a.txt"),
        ({"readonly": True, "allowed": ["touch"]}, "cat a.txt"),
        ({"ignore": IGNORE[0]}, "cat .env"),
        ({"ignore": IGNORE[0]}, "cat secrets/k"),
        ({"ignore": IGNORE[0]}, "cat /etc/passwd"),
        ({"ignore": IGNORE[0]}, "cat a.txt"),
        ({"ignore": []}, "cat secrets/k"),
        ({"ignore": []}, "cat $(echo a.txt)"),
        ({"ignore": []}, "cat /etc/passwd"),
        ({"timeout": None}, "cat a.txt"),
    ],
)
def test_refusals_are_the_same_texts(tmp_path: Path, filters: dict[str, Any], command: str) -> None:
    from autogen.beta.tools.shell import LocalShellEnvironment

    (tmp_path / "secrets").mkdir()
    for name in (".env", "a.txt", "secrets/k"):
        (tmp_path / name).write_text("x")
    theirs = LocalShellEnvironment(tmp_path, **filters).run(command)
    assert ours.LocalShellEnvironment(tmp_path, **filters).run(command) == theirs


@pytest.mark.skipif(NEW, reason="AG2 0.12 is not installed")
@pytest.mark.parametrize("command", ["ll", "la -x"])
@pytest.mark.parametrize("filters", [{"readonly": True}, {"readonly": True, "ignore": [".env"]}])
def test_a_listed_program_that_is_not_there_is_told_by_the_shell(
    tmp_path: Path, filters: dict[str, Any], command: str
) -> None:
    from autogen.beta.tools.shell import LocalShellEnvironment

    theirs = LocalShellEnvironment(tmp_path, **filters).run(command)
    mine = ours.LocalShellEnvironment(tmp_path, **filters).run(command)
    assert theirs.endswith("not found\n[exit code: 127]") and mine.endswith("not found\n[exit code: 127]")
    refused = ours.LocalShellEnvironment(tmp_path, blocked=["ll", "la"], **filters).run(command)
    assert refused == f"Command not allowed: {command!r}"


@pytest.mark.skipif(not NEW, reason="AG2 1.x is not installed")
def test_the_example_of_an_agent_runs(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    run_example("ag2")
    told = capsys.readouterr().out
    assert "alpha" in told.replace("The first line is alpha.", "")
    assert told.rstrip().endswith("The first line is alpha.")
