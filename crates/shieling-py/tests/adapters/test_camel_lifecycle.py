"""`TerminalToolkit` of the adapter for CAMEL: its working directory when that changes, and its end."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from environments import environment, sandbox  # noqa: F401
from test_camel_toolkit import ended, processes_with, until

from shieling.adapters.camel import TerminalToolkit

Make = Callable[..., Any]


@pytest.fixture
def make(environment: str, tmp_path: Path) -> Iterator[Make]:  # noqa: F811
    """Makes toolkits in `tmp_path / "work"` that are cleaned up."""
    made: list[TerminalToolkit] = []

    def make(kind: type[TerminalToolkit] = TerminalToolkit, **keywords: Any) -> TerminalToolkit:
        made.append(kind(**{"working_directory": str(tmp_path / "work"), "environment": environment, **keywords}))
        return made[-1]

    yield make
    for toolkit in made:
        toolkit.cleanup()


# The working directory


def test_a_working_directory_that_is_changed_is_that_of_all_that_follows(make: Make, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    toolkit = make()
    assert toolkit.shell_exec("a", "pwd") == f"{tmp_path}/work\n"
    toolkit.shell_exec("s", "read x; echo $x > late; pwd", block=False)
    toolkit.working_dir = str(tmp_path / "other")
    assert toolkit.shell_exec("a", "pwd; echo 1 > f") == f"{tmp_path}/other\n"
    assert toolkit.shell_write_content_to_file("2", "g") == f"Content successfully written to '{tmp_path}/other/g'."
    assert toolkit.shell_exec("a", "cat f g") == "1\n2"
    assert toolkit.shell_exec("b", "cat g", block=False).startswith("Session 'b' started.")
    assert "2" in ended(toolkit, "b")
    assert "outside of the working directory" in toolkit.shell_exec("a", f"cd {tmp_path}/work")
    outside = toolkit.shell_write_content_to_file("2", f"{tmp_path}/work/g")
    assert outside == "Error: Cannot write to a file outside of the working directory in safe mode."
    # What was started before goes on where it is.
    toolkit.shell_write_to_process("s", "on")
    ended(toolkit, "s")
    assert (tmp_path / "work" / "late").read_text() == "on\n"
    toolkit.working_dir = str(tmp_path / "work")
    assert toolkit.shell_exec("a", "ls late") == "late\n"


def test_variables_are_those_of_now_in_each_directory(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "other").mkdir()
    toolkit = make(shieling={"inherit_env": True})
    for value, directory in (("1", "work"), ("2", "other"), ("2", "work"), ("1", "other"), ("1", "work")):
        monkeypatch.setenv("CAMEL_TEST_VALUE", value)
        toolkit.working_dir = str(tmp_path / directory)
        assert toolkit.shell_exec("a", "echo $CAMEL_TEST_VALUE") == f"{value}\n"


def test_the_working_directory_may_be_relative(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "other").mkdir()
    toolkit = make()
    monkeypatch.chdir(tmp_path)
    toolkit.working_dir = "other"
    assert toolkit.shell_exec("a", "pwd") == f"{tmp_path}/other\n"
    assert toolkit.shell_write_content_to_file("2", "g") == f"Content successfully written to '{tmp_path}/other/g'."


def test_a_working_directory_that_is_not_there_is_named(make: Make, tmp_path: Path) -> None:
    toolkit = make()
    toolkit.shell_exec("a", "true")
    # A sandbox that is open keeps the directory that it shows.
    for gone in (str(tmp_path / "no"), *([toolkit.working_dir] if toolkit._environment == "local" else [])):
        toolkit.working_dir = gone
        if os.path.isdir(gone):
            os.rename(gone, tmp_path / "moved")
        answer = toolkit.shell_exec("a", "pwd")
        assert answer.startswith("Error executing command: ") and gone in answer
        answer = toolkit.shell_exec("b", "pwd", block=False)
        assert answer.startswith("Error starting non-blocking command: ") and gone in answer


def test_output_of_a_session_in_an_earlier_directory_is_complete(make: Make, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    toolkit = make()
    toolkit.shell_exec("s", "read x; seq 200000; echo last", block=False)
    toolkit.working_dir = str(tmp_path / "other")
    toolkit.shell_exec("a", "true")
    toolkit.shell_write_to_process("s", "go")
    until(lambda: not toolkit.shell_sessions["s"]["running"])
    log = Path(toolkit.shell_sessions["s"]["log_file"]).read_text()
    assert "\nlast" in log and "bytes left out" not in log and "\n123456\n" in log


# The end


class Counting(TerminalToolkit):
    """Says which sessions it ends."""

    killed: list[str]

    def shell_kill_process(self, id: str) -> str:
        """Ends a session.

        Args:
            id (str): The session's id.

        Returns:
            str: A confirmation.
        """
        self.killed.append(id)
        return super().shell_kill_process(id)


def test_the_end_goes_through_a_subclasss_way_to_end_a_session(make: Make) -> None:
    toolkit = make(Counting)
    toolkit.killed = []
    toolkit.shell_exec("over", "true", block=False)
    until(lambda: not toolkit.shell_sessions["over"]["running"])
    for id in ("a", "b"):
        toolkit.shell_exec(id, "sleep 8101", block=False)
    toolkit.cleanup()
    assert toolkit.killed == ["a", "b"]
    assert not any(session["running"] for session in toolkit.shell_sessions.values())


def test_a_way_to_end_a_session_that_fails_leaves_nothing_running(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    toolkit = make()
    for id in ("a", "b"):
        toolkit.shell_exec(id, "SHIELING_MARK=8102 sleep 8102", block=False)
    until(lambda: len(processes_with("SHIELING_MARK=8102")) >= 2)
    with mock.patch.object(toolkit, "shell_kill_process", side_effect=OSError("no")) as kill:
        with caplog.at_level(logging.WARNING):
            toolkit.cleanup()
    assert [call.args for call in kill.mock_calls] == [("a",), ("b",)]
    assert "Failed to kill session 'a' during cleanup: no" in caplog.text
    until(lambda: not processes_with("SHIELING_MARK=8102"))
    assert not any(session["running"] for session in toolkit.shell_sessions.values())


def test_everything_ends_in_every_directory_that_was_used(make: Make, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    toolkit = make()
    toolkit.shell_exec("a", "SHIELING_MARK=8103 sleep 8103", block=False)
    toolkit.working_dir = str(tmp_path / "other")
    toolkit.shell_exec("b", "SHIELING_MARK=8103 sleep 8103", block=False)
    until(lambda: len(processes_with("SHIELING_MARK=8103")) >= 2)
    toolkit.cleanup()
    until(lambda: not processes_with("SHIELING_MARK=8103"))
