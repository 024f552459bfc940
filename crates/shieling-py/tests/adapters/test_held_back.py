"""What a sandbox takes back of what an agent has made is told by each adapter, and not passed off as done."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path, PurePosixPath

import pytest
from confined import need

from shieling.adapters import ag2, agent_framework, camel

COMMAND = "printf done; echo x > .git/hooks/pre-commit; echo y > kept"
TOLD = "[held back: `.git/hooks/pre-commit` is a hook"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A directory with a repository's hooks."""
    need("sandbox")
    (tmp_path / ".git" / "hooks").mkdir(parents=True)
    return tmp_path


def test_ag2_tells_what_is_held_back(root: Path) -> None:
    told = ag2.LocalShellEnvironment(root, environment="sandbox").run(COMMAND)
    assert told.startswith(f"done\n{TOLD}") and "[exit code" not in told

    async def work() -> None:
        sandbox = ag2.LocalEnvironment(root, environment="sandbox").sandbox
        result = await sandbox.exec(["sh", "-c", COMMAND])
        assert result.exit_code == 0 and result.output.startswith(f"done\n{TOLD}")
        with pytest.raises(PermissionError, match="^held back: `.git/hooks/pre-push` is a hook"):
            await sandbox.put_file(PurePosixPath(".git/hooks/pre-push"), b"x")
        await sandbox.aclose()

    asyncio.run(work())
    assert os.listdir(root / ".git/hooks") == [] and (root / "kept").exists()


def test_camel_tells_what_is_held_back(root: Path) -> None:
    with camel.TerminalToolkit(working_directory=str(root), environment="sandbox") as toolkit:
        assert toolkit.shell_exec("a", COMMAND).startswith(f"done\n{TOLD}")
        assert toolkit.shell_exec("a", "echo x > .git/hooks/pre-commit").startswith(TOLD)
        toolkit.shell_exec("b", f"sleep 0.1; {COMMAND}", block=False)
        told = ""
        while "TERMINATED" not in told:
            told += toolkit.shell_view("b")
        assert TOLD in told
        answer = toolkit.shell_write_content_to_file("x", ".git/hooks/pre-push")
        assert answer.startswith("Error writing to file ") and "held back: `.git/hooks/pre-push` is a hook" in answer
    assert os.listdir(root / ".git/hooks") == [] and (root / "kept").exists()


@pytest.mark.parametrize("mode", ["persistent", "stateless"])
def test_the_agent_framework_tells_what_is_held_back(root: Path, mode: str) -> None:
    async def work() -> None:
        tool = agent_framework.LocalShellTool(mode=mode, workdir=str(root), environment="sandbox")
        async with tool:
            result = await tool.run(COMMAND)
        assert (result.stdout, result.exit_code) == ("done", 0) and result.stderr.startswith(TOLD)

    asyncio.run(work())
    assert os.listdir(root / ".git/hooks") == [] and (root / "kept").exists()
