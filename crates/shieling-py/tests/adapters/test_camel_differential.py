"""The adapter beside its original, where that is installed: the same calls give the same answers."""

from __future__ import annotations

import inspect
import time
from pathlib import Path
from typing import Any

import pytest

from shieling.adapters import camel as ours

original = pytest.importorskip(
    "camel.toolkits.terminal_toolkit", reason="camel-ai (with mcp<2) is not installed"
)

import camel.toolkits.terminal_toolkit.utils as original_utils  # noqa: E402

PAIR = (original.TerminalToolkit, ours.TerminalToolkit)


@pytest.fixture(autouse=True)
def in_a_runtime(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Keeps the original from making an environment and fetching uv."""
    monkeypatch.setenv("CAMEL_RUNTIME", "true")
    monkeypatch.chdir(tmp_path)


def both(tmp_path: Path, **keywords: Any) -> list[Any]:
    return [
        cls(working_directory=str(tmp_path / "work"), **keywords) for cls in PAIR
    ]


def test_the_methods_take_the_same() -> None:
    for name, member in vars(original.TerminalToolkit).items():
        if name.startswith("__") and name != "__init__" or not callable(member):
            continue
        mine = getattr(ours.TerminalToolkit, name, None)
        assert mine is not None, name
        if name == "FastMCP":
            continue
        theirs = inspect.signature(inspect.unwrap(member)).parameters
        for parameter in theirs.values():
            assert parameter.name in inspect.signature(inspect.unwrap(mine)).parameters, name
            if parameter.default is not inspect.Parameter.empty:
                assert (
                    inspect.signature(inspect.unwrap(mine)).parameters[parameter.name].default
                    == parameter.default
                )


def test_the_instances_have_the_same_attributes(tmp_path: Path) -> None:
    theirs, mine = (vars(toolkit) for toolkit in both(tmp_path))
    assert set(theirs) <= set(mine)
    for key, value in theirs.items():
        if isinstance(value, (str, int, float, bool, type(None))):
            assert mine[key] == value, key


def test_the_blocked_commands_are_the_same() -> None:
    assert ours.DANGEROUS_COMMANDS == original.DANGEROUS_COMMANDS


@pytest.mark.parametrize(
    ("command", "allowed"),
    [
        *((command, None) for command in ("ls", "rm x", "ls; sudo x", "echo rm", "", " ", "bash -c 'rm x'", "make test")),
        *((command, {"ls", "echo"}) for command in ("ls", "echo a | ls", "id", "ls && id", "LS")),
    ],
)
def test_commands_are_judged_the_same(command: str, allowed: Any) -> None:
    assert ours.check_command_safety(command, allowed) == original_utils.check_command_safety(
        command, allowed
    )


@pytest.mark.parametrize(
    "command",
    [
        *("cd sub", "cd ..", "cd /etc", "cd -", "cd -- /etc", "cd $HOME", "cd ~", "cd $(pwd)", "cd `pwd`"),
        *("pushd ..", "cd a && cd b", "cd a; cd ..", "pushd a && pushd b", "cd sub && ls", "echo 'cd ..'"),
        *('cd "../x"', "cd sub/..", "cd a | cd b", "cd\t..", "pushd $(pwd)", "cd ./a/b"),
    ],
)
def test_changes_of_directory_are_judged_the_same(command: str, tmp_path: Path) -> None:
    theirs, mine = (
        sanitize(command, working_dir=str(tmp_path))
        for sanitize in (original_utils.sanitize_command, ours.sanitize_command)
    )
    assert mine == theirs


BLOCKING = [
    *("echo hi", "true", "echo out; echo err >&2", "printf 'no newline'", "printf 'a\\r\\nb\\rc\\n'"),
    *("pwd", "echo $PYTHONUNBUFFERED", "cat", "rm x", "cd ..", "printf ' \\n'", "echo ü"),
]


def test_blocking_commands_have_the_same_answers(tmp_path: Path) -> None:
    theirs, mine = both(tmp_path)
    for command in BLOCKING:
        assert mine.shell_exec("a", command) == theirs.shell_exec("a", command), command


def test_sessions_have_the_same_answers(tmp_path: Path) -> None:
    found = []
    for toolkit in both(tmp_path):
        seen = [
            toolkit.shell_exec("s", "echo one; read x; echo got $x; read y", block=False),
            toolkit.shell_exec("s", "echo", block=False),
        ]
        time.sleep(0.5)  # the original offers nothing to wait for
        seen += [
            toolkit.shell_view("s"),
            toolkit.shell_view("s"),
            toolkit.shell_write_to_process("s", "two"),
            toolkit.shell_write_to_process("s", "three"),
            toolkit.shell_view("s"),
            toolkit.shell_write_to_process("s", "four"),
            toolkit.shell_kill_process("s"),
            toolkit.shell_exec("c", "echo early; sleep 2", timeout=0.5),
            toolkit.shell_view("none"),
            toolkit.shell_kill_process("c"),
            sorted(key for key in toolkit.shell_sessions["c"]),
        ]
        found.append(seen)
        toolkit.cleanup()
    theirs, mine = found
    # The original goes on collecting the end of a session for 5 s.
    assert mine.pop(5) == "\n--- SESSION TERMINATED ---"
    assert "SESSION TERMINATED" in theirs.pop(5)
    assert mine[:-1] == theirs[:-1]
    assert set(theirs[-1]) <= set(mine[-1])


def test_files_have_the_same_answers(tmp_path: Path) -> None:
    for content, path in (("x", "a/b"), ("x", "../out"), ("x", str(tmp_path / "work" / "abs")), ("x", "/etc/nope")):
        theirs, mine = (
            toolkit.shell_write_content_to_file(content, path) for toolkit in both(tmp_path)
        )
        assert mine == theirs


def test_the_tools_take_the_same(tmp_path: Path) -> None:
    schemas = []
    for toolkit in both(tmp_path):
        found = {}
        for tool in toolkit.get_tools():
            function = tool.get_openai_tool_schema()["function"]
            fields = function["parameters"]["properties"]
            found[function["name"]] = {name: fields[name]["type"] for name in fields}
        schemas.append(found)
    assert schemas[0] == schemas[1]
