"""`TerminalToolkit` of the adapter for CAMEL: behaviour, and the rows C2 to C25 of what its original
loses, in `local` and in `sandbox`."""

from __future__ import annotations

import builtins
import os
import re
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import Empty
from typing import Any
from unittest.mock import MagicMock

import pytest
from environments import environment, sandbox  # noqa: F401

from shieling import JobError, View
from shieling.adapters import camel
from shieling.adapters.camel import TerminalToolkit, _output, _process, terminal_toolkit, utils

Make = Callable[..., TerminalToolkit]


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CAMEL_RUNTIME", "CAMEL_WORKDIR"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def make(environment: str, tmp_path: Path) -> Iterator[Make]:
    """Makes toolkits in `tmp_path / "work"` that are cleaned up."""
    made: list[TerminalToolkit] = []

    def make(**keywords: Any) -> TerminalToolkit:
        keywords.setdefault("working_directory", str(tmp_path / "work"))
        keywords.setdefault("environment", environment)
        toolkit = TerminalToolkit(**keywords)
        made.append(toolkit)
        return toolkit

    yield make
    for toolkit in made:
        toolkit.cleanup()


@pytest.fixture
def toolkit(make: Make) -> TerminalToolkit:
    return make()


def until(what: Callable[[], Any], seconds: float = 20.0) -> Any:
    """Waits until `what` answers with something true, and returns it."""
    deadline = time.monotonic() + seconds
    while True:
        answer = what()
        if answer:
            return answer
        assert time.monotonic() < deadline, "it did not come to that"
        time.sleep(0.02)


def ended(toolkit: TerminalToolkit, id: str) -> str:
    """Waits for the end of a session and returns all of its new output."""
    until(lambda: not toolkit.shell_sessions[id]["running"])
    return toolkit.shell_view(id)


def processes_with(mark: str) -> list[str]:
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            try:
                if mark.encode() in Path(f"/proc/{name}/environ").read_bytes():
                    found.append(name)
            except OSError:
                pass
    return found


@pytest.fixture
def mark() -> str:
    return f"CAMEL_TEST={os.urandom(8).hex()}"


# Behaviour.


def test_a_blocking_command_returns_its_output(toolkit: TerminalToolkit) -> None:
    assert toolkit.shell_exec("a", "echo out; echo err >&2").splitlines() == ["out", "err"]
    assert toolkit.shell_exec("a", "true") == "Command executed successfully (no output)."


def test_errors_name_the_line_of_the_command(toolkit: TerminalToolkit) -> None:
    assert "line 1: no-such-program" in toolkit.shell_exec("a", "no-such-program")
    assert "line 2: no-such-program" in toolkit.shell_exec("a", "true\nno-such-program")


def test_commands_run_in_the_working_directory(toolkit: TerminalToolkit, tmp_path: Path) -> None:
    assert toolkit.working_dir == str(tmp_path / "work")
    assert toolkit.shell_exec("a", "pwd").strip() == toolkit.working_dir
    toolkit.shell_exec("a", "mkdir sub && cd sub && touch here")
    assert (tmp_path / "work/sub/here").exists()
    assert toolkit.shell_exec("a", "pwd").strip() == toolkit.working_dir


def test_attributes(toolkit: TerminalToolkit, tmp_path: Path) -> None:
    assert toolkit.timeout == 20.0
    assert toolkit.os_type == "Linux"
    assert toolkit.shell_sessions == {}
    assert toolkit.safe_mode is True and toolkit.use_docker_backend is False
    assert toolkit.log_dir == str(tmp_path / "work/terminal_logs")
    assert toolkit.initial_env_path == str(tmp_path / "work/.initial_env")
    assert toolkit.cloned_env_path is None and toolkit._get_venv_path() is None


def test_the_working_directory_by_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert TerminalToolkit().working_dir == str(tmp_path / "workspace")
    monkeypatch.setenv("CAMEL_WORKDIR", str(tmp_path / "other"))
    assert TerminalToolkit().working_dir == str(tmp_path / "other")
    given = TerminalToolkit(working_directory=str(tmp_path / "given"))
    assert given.working_dir == str(tmp_path / "given") and os.path.isdir(given.working_dir)


def test_a_session_goes_on_in_the_background(toolkit: TerminalToolkit) -> None:
    answer = toolkit.shell_exec("s", "echo one; read x; echo got $x", block=False)
    assert answer.startswith("Session 's' started.\n\nYou could use:\n  - shell_view('s') - get output")
    assert "output_stream" in toolkit.shell_sessions["s"]
    assert toolkit.shell_sessions["s"]["running"] is True
    assert until(lambda: not toolkit.shell_sessions["s"]["output_stream"].empty())
    assert toolkit.shell_view("s") == "one\n"
    assert toolkit.shell_view("s").startswith(
        "[No new output]\nSession is running but idle. Actions could take:"
    )
    assert "got two" in toolkit.shell_write_to_process("s", "two")
    assert ended(toolkit, "s") == "--- SESSION TERMINATED (no new output) ---"


def test_what_an_ended_session_has_printed_is_shown_once(toolkit: TerminalToolkit) -> None:
    toolkit.shell_exec("s", "echo out", block=False)
    assert ended(toolkit, "s") == "out\n\n\n--- SESSION TERMINATED ---"
    assert toolkit.shell_view("s") == "--- SESSION TERMINATED (no new output) ---"


def test_sessions_are_apart(toolkit: TerminalToolkit) -> None:
    for name in ("a", "b"):
        toolkit.shell_exec(name, f"echo {name}; read x; echo {name}$x", block=False)
    assert "b2" in toolkit.shell_write_to_process("b", "2")
    assert "a1" in toolkit.shell_write_to_process("a", "1")


def test_what_another_view_has_taken_is_still_the_sessions(
    toolkit: TerminalToolkit, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[str] = []
    monkeypatch.setattr(toolkit, "_start_output_reader_thread", started.append)
    toolkit.shell_exec("s", "echo out", block=False)
    assert started == ["s"]
    # As an answer to input does, whose own view takes what came with it.
    taken = toolkit.shell_sessions["s"]["process"].job.view(wait_for="exit", wait=20)
    assert taken.outcome.output == "out\n"
    monkeypatch.undo()
    toolkit._start_output_reader_thread("s")
    assert ended(toolkit, "s") == "out\n\n\n--- SESSION TERMINATED ---"


def test_writing_to_a_directory_is_the_systems_error(toolkit: TerminalToolkit, tmp_path: Path) -> None:
    (tmp_path / "work" / "dir").mkdir()
    path = tmp_path / "work" / "dir"
    assert toolkit.shell_write_content_to_file("x", "dir") == (
        f"Error writing to file '{path}': [Errno 21] Is a directory: '{path}'"
    )


@pytest.mark.parametrize("safe_mode", [True, False])
@pytest.mark.parametrize(
    ("content", "message"), [(None, "write() argument must be str, not None"), (b"x", "write() argument must be str, not bytes")]
)
def test_content_that_is_no_text_is_an_error(make: Make, content: Any, message: str, safe_mode: bool, tmp_path: Path) -> None:
    path = tmp_path / "work" / "f"
    toolkit = make(safe_mode=safe_mode)
    assert toolkit.shell_write_content_to_file(content, "f") == f"Error writing to file '{path}': {message}"
    assert not path.exists()


def test_a_nul_in_a_command_is_an_error(make: Make) -> None:
    assert make(safe_mode=False).shell_exec("x", "echo a\0b") == "Error executing command: embedded null byte"
    assert make(safe_mode=False).shell_exec("x", "echo a\0b", block=False) == "Error starting non-blocking command: embedded null byte"


def test_answers_about_sessions_that_are_not_there(toolkit: TerminalToolkit) -> None:
    assert toolkit.shell_view("x") == "Error: No session found with ID 'x'."
    assert toolkit.shell_kill_process("x") == "Error: No active session found with ID 'x'."
    assert (
        toolkit.shell_write_to_process("x", "y")
        == "Error: No active non-blocking session found with ID 'x'."
    )
    assert toolkit._collect_output_until_idle("x") == "Error: No session found with ID 'x'."


def test_an_id_that_is_taken_is_refused_until_it_is_free(toolkit: TerminalToolkit) -> None:
    toolkit.shell_exec("s", "sleep 60", block=False)
    assert toolkit.shell_exec("s", "echo x", block=False) == (
        "Error: Session 's' already exists and is running. Use a different ID or kill the existing "
        "session first."
    )
    assert toolkit.shell_kill_process("s") == "Process in session 's' has been terminated."
    assert toolkit.shell_exec("s", "echo x", block=False).startswith("Session 's' started.")


def test_a_blocking_command_that_takes_long_becomes_a_session(toolkit: TerminalToolkit) -> None:
    answer = toolkit.shell_exec("s", "echo early; read x; sleep 0.1; echo late; sleep 60", timeout=1)
    assert answer == (
        "Command did not complete within 1 seconds. Process continues in background as session 's'."
        "\n\nYou can use:\n  - shell_view('s') - get output\n  - shell_kill_process('s') - terminate"
    )
    assert toolkit.shell_sessions["s"]["timeout_converted"] is True
    seen = []
    until(lambda: "late" in "".join(seen) or seen.append(toolkit.shell_view("s")))
    assert "early\n" in "".join(seen)
    assert toolkit.shell_kill_process("s") == "Process in session 's' has been terminated."


@pytest.mark.parametrize("timeout", [0, -1, 0.0])
def test_without_time_a_command_is_a_session_at_once(toolkit: TerminalToolkit, timeout: float) -> None:
    answer = toolkit.shell_exec("s", "cat; sleep 1; echo end", timeout=timeout)
    assert answer == (
        f"Command did not complete within {timeout} seconds. Process continues in background as session 's'.\n\n"
        "You can use:\n  - shell_view('s') - get output\n  - shell_kill_process('s') - terminate"
    )
    assert toolkit.shell_sessions["s"]["timeout_converted"]
    assert ended(toolkit, "s") == "end\n\n\n--- SESSION TERMINATED ---"
    denied = toolkit.shell_exec("s", "sudo ls", timeout=timeout)
    assert "rejected by TerminalToolkit safe mode" in denied


def test_what_the_rules_refuse_is_no_session(make: Make) -> None:
    toolkit = make(shieling={"deny": ["id"]})
    assert toolkit.shell_exec("s", "id", timeout=0) == toolkit.shell_exec("s", "id")
    assert toolkit.shell_sessions == {}


def test_a_killed_session_has_no_signal(toolkit: TerminalToolkit) -> None:
    toolkit.shell_exec("s", "sleep 60", block=False)
    toolkit.shell_kill_process("s")
    until(lambda: toolkit.shell_sessions["s"].get("exit"))
    assert toolkit.shell_view("s") == "--- SESSION TERMINATED (no new output) ---"


def test_an_interpreter_is_talked_to_in_safe_mode(toolkit: TerminalToolkit) -> None:
    toolkit.shell_exec("s", "python3 -i", block=False)
    assert "42" in toolkit.shell_write_to_process("s", "print(6 * 7)")
    refused = toolkit.shell_write_to_process("s", "import os; os.system('rm x')")
    assert refused.startswith("Error: Input rejected by TerminalToolkit safe mode. Command ")
    assert "1764" in toolkit.shell_write_to_process("s", "print(42 * 42)")


def test_safe_mode_can_be_switched_off(make: Make, tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work/file").touch()
    refused = make().shell_exec("a", "rm file")
    assert refused == (
        "Error: Command rejected by TerminalToolkit safe mode. Command 'rm' is blocked for safety."
    )
    assert make(safe_mode=False).shell_exec("a", "rm file; echo gone") == "gone\n"
    assert not (tmp_path / "work/file").exists()


def test_allowed_commands(make: Make) -> None:
    toolkit = make(allowed_commands=["echo", "ls"])
    assert toolkit.shell_exec("a", "echo a") == "a\n"
    assert "not in the allowed commands list" in toolkit.shell_exec("a", "id")
    assert "not in the allowed commands list" in toolkit.shell_exec("a", "id", block=False)


def test_approval(make: Make) -> None:
    asked: list[str] = []

    def approve(text: str) -> bool:
        asked.append(text)
        return "no" not in text

    toolkit = make(require_approval=approve)
    assert toolkit.shell_exec("a", "echo yes") == "yes\n"
    assert "rejected by approval policy" in toolkit.shell_exec("a", "echo no")
    assert toolkit.shell_exec("a", "rm no").startswith("Error: Command rejected by TerminalToolkit")
    toolkit.shell_exec("s", "read a; echo got $a", block=False)
    assert "rejected by approval policy" in toolkit.shell_write_to_process("s", "no")
    assert toolkit.shell_sessions["s"]["running"]
    assert "got it" in toolkit.shell_write_to_process("s", "it")
    assert asked == ["echo yes", "echo no", "read a; echo got $a", "no", "it"]


def test_an_approver_that_raises_stops_the_command(make: Make, tmp_path: Path) -> None:
    def approve(_text: str) -> bool:
        raise KeyError("bug")

    with pytest.raises(KeyError):
        make(require_approval=approve).shell_exec("a", "touch canary")
    assert not (tmp_path / "work/canary").exists()


def test_the_console_says_no_where_nobody_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", open(os.devnull))
    assert terminal_toolkit._default_console_approval("ls") is False


def test_the_tools(toolkit: TerminalToolkit) -> None:
    assert [tool.get_function_name() for tool in toolkit.get_tools()] == [
        *("shell_exec", "shell_view", "shell_write_content_to_file", "shell_write_to_process"),
        *("shell_kill_process", "shell_ask_user_for_help"),
    ]


def test_null_means_the_default(toolkit: TerminalToolkit) -> None:
    assert toolkit.shell_exec("a", "echo a", block=None, timeout=None) == "a\n"  # type: ignore[arg-type]


def test_a_toolkit_is_a_context_manager(make: Make, mark: str) -> None:
    with make() as toolkit:
        toolkit.shell_exec("s", f"export {mark}; sleep 60 & sleep 60", block=False)
        until(lambda: processes_with(mark))
    until(lambda: not processes_with(mark))
    assert toolkit.shell_sessions["s"]["running"] is False


def test_a_toolkit_that_was_never_set_up_can_be_dropped() -> None:
    TerminalToolkit.__new__(TerminalToolkit).__del__()


# Files.


def test_writing_files(toolkit: TerminalToolkit, tmp_path: Path) -> None:
    work = tmp_path / "work"
    answer = toolkit.shell_write_content_to_file("text\r\nä", "new/deep/file.txt")
    assert answer == f"Content successfully written to '{work}/new/deep/file.txt'."
    assert (work / "new/deep/file.txt").read_bytes() == "text\r\nä".encode()
    answer = toolkit.shell_write_content_to_file("2", str(work / "abs"))
    assert answer == f"Content successfully written to '{work}/abs'."


@pytest.mark.parametrize("path", ["../out", "/etc/x-canary", "sub/../../out", "link/out", "dangling"])
def test_c18_no_path_leads_out_of_the_working_directory(
    toolkit: TerminalToolkit, tmp_path: Path, path: str
) -> None:
    work = tmp_path / "work"
    (work / "link").symlink_to(tmp_path)
    (work / "dangling").symlink_to(tmp_path / "out")
    assert toolkit.shell_write_content_to_file("x", path) == (
        "Error: Cannot write to a file outside of the working directory in safe mode."
    )
    assert not (tmp_path / "out").exists()


def test_without_safe_mode_a_file_can_be_anywhere(tmp_path: Path) -> None:
    toolkit = TerminalToolkit(working_directory=str(tmp_path / "work"), safe_mode=False)
    answer = toolkit.shell_write_content_to_file("x", str(tmp_path / "out"))
    assert answer == f"Content successfully written to '{tmp_path}/out'."
    answer = toolkit.shell_write_content_to_file("x", str(tmp_path))
    assert answer.startswith(f"Error writing to file '{tmp_path}': ")


# Help.


def test_help_without_a_session_runs_the_answer(
    toolkit: TerminalToolkit, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(builtins, "input", lambda _prompt="": " echo helped ")
    answer = toolkit.shell_ask_user_for_help("h", "what now?")
    assert answer == "Session 'h' created and executed command:\nhelped\n"
    printed = capsys.readouterr().out
    assert "LLM Agent needs your help!" in printed and "PROMPT: what now?" in printed
    monkeypatch.setattr(builtins, "input", lambda _prompt="": "")
    assert toolkit.shell_ask_user_for_help("h", "?") == "No user response."


def test_help_with_a_session_sends_the_answer(
    toolkit: TerminalToolkit, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    toolkit.shell_exec("s", "printf 'name? '; read n; echo hello $n", block=False)
    monkeypatch.setattr(builtins, "input", lambda _prompt="": "you")
    assert "hello you" in toolkit.shell_ask_user_for_help("s", "who?")
    assert "\nname?\n" in capsys.readouterr().out


def test_help_that_nobody_gives(toolkit: TerminalToolkit, monkeypatch: pytest.MonkeyPatch) -> None:
    def end(_prompt: str = "") -> str:
        raise EOFError

    monkeypatch.setattr(builtins, "input", end)
    assert toolkit.shell_ask_user_for_help("h", "?") == (
        "User input interrupted for session 'h' creation."
    )
    toolkit.shell_exec("s", "sleep 60", block=False)
    assert toolkit.shell_ask_user_for_help("s", "?") == "User input interrupted for session 's'."
    monkeypatch.setattr(builtins, "input", lambda _prompt="": " ")
    assert toolkit.shell_ask_user_for_help("s", "?") == "User provided no input for session 's'."


# Logs.


def test_logs(toolkit: TerminalToolkit) -> None:
    toolkit.shell_exec("a", r"printf '\033[31mred\033[0m\n'")
    toolkit.shell_exec("s", "echo in session", block=False)
    ended(toolkit, "s")
    blocking = Path(toolkit.blocking_log_file).read_text()
    assert re.search(r"--- Executing blocking command at .* ---\n> printf", blocking)
    assert "--- Output ---\nred\n" in blocking
    session = Path(toolkit.log_dir, "session_s.log").read_text()
    assert "--- Starting non-blocking session at " in session and "\nin session\n" in session
    toolkit.shell_write_content_to_file("x", "sub/../f")
    assert f"\n> {toolkit.working_dir}/f\n" in Path(toolkit.blocking_log_file).read_text()


def test_c16_logs_of_others_stay(make: Make, tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "app.log").write_text("foreign")
    first = make(session_logs_dir=str(logs))
    first.shell_exec("a", "echo first")
    second = make(session_logs_dir=str(logs))
    second.shell_exec("a", "echo second")
    assert (logs / "app.log").read_text() == "foreign"
    text = Path(first.blocking_log_file).read_text()
    assert "first" in text and "second" in text


@pytest.mark.parametrize("id", ["../../evil", "a/b", "", "." * 300, "nul\0"])
def test_c17_an_id_is_no_path(toolkit: TerminalToolkit, tmp_path: Path, id: str) -> None:
    assert toolkit.shell_exec(id, "echo out", block=False).startswith(f"Session '{id}' started.")
    assert "out" in ended(toolkit, id)
    logs = [path for path in tmp_path.rglob("*.log")]
    assert logs and all(path.parent == Path(toolkit.log_dir) for path in logs)


# What the original loses. The numbers are those of the table in docs/adapters/camel.md.


@pytest.mark.parametrize(
    "command", ["sleep 60; echo x", "sleep 60 & sleep 61", "setsid sleep 60 & sleep 61", "(trap '' TERM; sleep 60; sleep 60)"]
)
def test_c02_a_kill_ends_all_that_was_started(
    toolkit: TerminalToolkit, mark: str, command: str
) -> None:
    toolkit.shell_exec("s", f"export {mark}; {command}", block=False)
    until(lambda: processes_with(mark))
    assert toolkit.shell_kill_process("s") == "Process in session 's' has been terminated."
    until(lambda: not processes_with(mark))
    assert toolkit.shell_view("s").startswith("--- SESSION TERMINATED (no new output) ---")


def test_c03_a_converted_command_takes_no_session_away(toolkit: TerminalToolkit) -> None:
    toolkit.shell_exec("s", "read x; echo first $x", block=False)
    answer = toolkit.shell_exec("s", "sleep 60", timeout=0.5)
    assert "as session 's-2'" in answer
    assert "first 1" in toolkit.shell_write_to_process("s", "1")
    assert toolkit.shell_sessions["s-2"]["running"]
    assert toolkit.shell_kill_process("s-2").endswith("has been terminated.")


def test_c04_a_daemon_ends_with_the_toolkit(toolkit: TerminalToolkit, mark: str) -> None:
    toolkit.shell_exec("a", f"export {mark}; setsid sleep 60 >/dev/null 2>&1 &")
    toolkit.cleanup()
    until(lambda: not processes_with(mark))


@pytest.mark.parametrize(
    ("command", "answer"),
    [
        ("false", "Command failed with exit code 1 (no output)."),
        ("exit 7", "Command failed with exit code 7 (no output)."),
        ("kill -9 $$", "Command failed with signal 9 (no output)."),
        ("echo out; exit 7", "out\n[exit code 7]"),
    ],
)
def test_c05_a_failure_says_so(toolkit: TerminalToolkit, command: str, answer: str) -> None:
    assert toolkit.shell_exec("a", command) == answer


def test_c06_c07_binary_output_is_replaced(toolkit: TerminalToolkit) -> None:
    assert toolkit.shell_exec("a", r"printf 'a\n\377b\n'") == "a\n\ufffdb\n"
    toolkit.shell_exec("s", r"printf 'a\n\377\n'; sleep 60", block=False)
    until(lambda: not toolkit.shell_sessions["s"]["output_stream"].empty())
    assert toolkit.shell_view("s").startswith("a\n")
    assert toolkit.shell_sessions["s"]["running"]


def test_c08_much_output_of_a_session_is_not_slowed(toolkit: TerminalToolkit) -> None:
    toolkit.shell_exec("s", "seq 1 200000", block=False)
    text = ended(toolkit, "s")
    assert text.startswith("1\n2\n")


def test_c09_the_newest_output_is_kept(toolkit: TerminalToolkit) -> None:
    toolkit.shell_exec("s", "seq 1 300000", block=False)
    text = ended(toolkit, "s")
    assert text.startswith("1\n2\n")
    assert text.endswith("299999\n300000\n\n\n--- SESSION TERMINATED ---")
    assert re.search(r"\[\.\.\. \d+ (characters|bytes) left out", text)


def test_output_that_comes_faster_than_it_is_read_is_in_the_log(
    toolkit: TerminalToolkit, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    read = TerminalToolkit._read_session

    def late(self: TerminalToolkit, session: dict[str, Any]) -> None:
        until((tmp_path / "work/done").exists)
        read(self, session)

    monkeypatch.setattr(TerminalToolkit, "_read_session", late)
    toolkit.shell_exec("s", "seq 1 200000; touch done; sleep 60", block=False)
    log = Path(toolkit.log_dir, "session_s.log")
    until(lambda: log.read_text().endswith("\n200000\n"))
    assert log.read_text().endswith("".join(f"{number}\n" for number in range(1, 200_001)))


def test_output_is_found_in_the_moment_in_which_a_session_ends(
    toolkit: TerminalToolkit, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    read, read_missed = TerminalToolkit._read_session, TerminalToolkit._read_missed
    missed: list[int] = []

    def late(self: TerminalToolkit, session: dict[str, Any]) -> None:
        session["process"].wait(60)
        read(self, session)

    def unnamed(self: TerminalToolkit, session: dict[str, Any], view: View, cursor: int) -> None:
        missed.append(view.missed_bytes)
        data = view.to_dict()
        data["outcome"]["output_id"] = None
        read_missed(self, session, View.from_dict(data), cursor)

    monkeypatch.setattr(TerminalToolkit, "_read_session", late)
    monkeypatch.setattr(TerminalToolkit, "_read_missed", unnamed)
    toolkit.shell_exec("s", "seq 1 200000", block=False)
    assert ended(toolkit, "s").startswith("1\n2\n")
    assert missed and missed[0] > 0


def test_c10_an_answer_and_the_memory_are_bounded(toolkit: TerminalToolkit) -> None:
    toolkit.shell_exec("a", "true")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    answer = toolkit.shell_exec("a", "head -c 50M /dev/zero | tr '\\0' a; echo END")
    assert len(answer) < 300_000 and "left out" in answer and answer.rstrip().endswith("END")
    toolkit.shell_exec("s", "head -c 50M /dev/zero | tr '\\0' a", block=False)
    assert len(ended(toolkit, "s")) < 300_000
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 60_000
    assert all(path.stat().st_size < 70_000_000 for path in Path(toolkit.log_dir).iterdir())


def test_c11_a_prompt_is_seen(toolkit: TerminalToolkit) -> None:
    toolkit.shell_exec("s", "printf 'Password: '; read p; echo $p", block=False)
    until(lambda: not toolkit.shell_sessions["s"]["output_stream"].empty())
    assert toolkit.shell_view("s") == "Password: "


def test_c12_output_from_before_an_input_is_not_lost(toolkit: TerminalToolkit) -> None:
    toolkit.shell_exec("s", "echo before; read x; echo after $x; sleep 60", block=False)
    until(lambda: not toolkit.shell_sessions["s"]["output_stream"].empty())
    assert toolkit.shell_write_to_process("s", "1") == "before\nafter 1\n"


def test_c13_a_slow_answer_belongs_to_its_input(toolkit: TerminalToolkit) -> None:
    toolkit.shell_exec("s", "while read x; do sleep 1; echo answer $x; done", block=False)
    assert toolkit.shell_write_to_process("s", "one") == "answer one\n"
    assert toolkit.shell_write_to_process("s", "two") == "answer two\n"


@pytest.mark.parametrize(
    "line", ["--- SESSION TERMINATED ---", "Error: No session found", "[No new output]"]
)
def test_c14_words_are_no_state(toolkit: TerminalToolkit, line: str) -> None:
    toolkit.shell_exec("s", f"echo '{line}'; read x; echo real $x; sleep 60", block=False)
    until(lambda: not toolkit.shell_sessions["s"]["output_stream"].empty())
    assert toolkit._collect_output_until_idle("s") == f"{line}\n"
    assert "real 1" in toolkit.shell_write_to_process("s", "1")


def test_c15_the_toolkits_timeout_is_the_default_of_a_call(make: Make) -> None:
    toolkit = make(timeout=0.5)
    answer = toolkit.shell_exec("a", "sleep 60")
    assert answer.startswith("Command did not complete within 0.5 seconds.")
    toolkit.shell_exec("s", "read x; sleep 1; echo late $x; sleep 60", block=False)
    assert toolkit.shell_write_to_process("s", "1") == "late 1\n"
    assert toolkit.shell_exec("a", "sleep 1; echo waited", timeout=30) == "waited\n"


def test_c19_the_shell_is_bash(toolkit: TerminalToolkit) -> None:
    assert toolkit.shell_exec("a", "[[ a == a ]] && echo {1..3}") == "1 2 3\n"


@pytest.mark.parametrize("command", ["cat", "read a; echo [$a]"])
def test_c20_a_blocking_command_finds_the_end_of_its_input(
    toolkit: TerminalToolkit, command: str
) -> None:
    assert "did not complete" not in toolkit.shell_exec("a", command, timeout=10)


def test_c21_a_toolkit_is_ready_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(*_args: Any, **_keywords: Any) -> Any:
        raise AssertionError("a process was started")

    monkeypatch.setattr(subprocess, "Popen", start)
    toolkit = TerminalToolkit(working_directory=str(tmp_path), clone_current_env=True)
    assert os.listdir(tmp_path) == ["terminal_logs"]
    assert not toolkit._opened


def test_c22_the_sandbox_gets_no_secrets_of_this_process(
    sandbox: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_SECRET_KEY", "secret")
    with TerminalToolkit(working_directory=str(tmp_path), environment=sandbox) as toolkit:
        assert "secret" not in toolkit.shell_exec("a", "echo [$MY_SECRET_KEY]; env")
    with TerminalToolkit(
        working_directory=str(tmp_path), shieling={"inherit_env": False}
    ) as toolkit:
        assert "secret" not in toolkit.shell_exec("a", "echo [$MY_SECRET_KEY]; env")


def test_c23_terminal_escapes_are_taken_out(toolkit: TerminalToolkit) -> None:
    command = r"printf '\033[1;31mred\033[0m \033]0;title\007plain\n'"
    assert toolkit.shell_exec("a", command) == "red plain\n"
    assert terminal_toolkit._to_plain("\033[31mred") == "red"
    toolkit.shell_exec("s", command, block=False)
    assert ended(toolkit, "s").startswith("red plain\n")


def test_the_sandbox_writes_nowhere_else(sandbox: str, tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    with TerminalToolkit(
        working_directory=str(tmp_path / "work"), environment=sandbox, safe_mode=False
    ) as toolkit:
        toolkit.shell_exec("a", f"touch {canary}; touch inside")
    assert not canary.exists()
    assert (tmp_path / "work/inside").exists()


def test_in_memory(tmp_path: Path) -> None:
    with TerminalToolkit(working_directory=str(tmp_path), environment="memory") as toolkit:
        assert toolkit.shell_write_content_to_file("text", "a/b").startswith("Content successfully")
        assert toolkit.shell_exec("a", "cat a/b; (exit 3)") == "text\n[exit code 3]"
        toolkit.shell_exec("s", "echo ready; sleep 60", block=False)
        answer = toolkit.shell_write_to_process("s", "1")
        assert "Error writing to session 's': " in answer and "reads from nowhere" in answer
        assert toolkit.shell_kill_process("s") == "Process in session 's' has been terminated."
    assert not (tmp_path / "a").exists()


def test_further_keywords_reach_the_environment(make: Make) -> None:
    toolkit = make(safe_mode=False, shieling={"deny": ["id"]})
    answer = toolkit.shell_exec("a", "true && id")
    assert answer.startswith("Error: Command rejected.") and "`id` is denied" in answer
    assert "Error starting non-blocking command" in toolkit.shell_exec("a", "id", block=False)


# Environments of Python.


def test_an_environment_is_made_when_a_command_needs_python(make: Make, tmp_path: Path) -> None:
    toolkit = make()
    toolkit.shell_exec("a", "echo no python")
    assert not (tmp_path / "work/.initial_env").exists()
    answer = toolkit.shell_exec(
        "a", "python -c 'import sys; print(sys.prefix)'; echo $VIRTUAL_ENV", timeout=60
    )
    environment = str(tmp_path / "work/.initial_env")
    assert answer.splitlines() == [environment, environment]
    assert toolkit.python_executable == f"{environment}/bin/python"
    assert toolkit._get_venv_path() == environment
    toolkit.shell_exec("s", "python -c 'import sys; print(sys.prefix)'", block=False)
    assert ended(toolkit, "s").startswith(environment)


def test_inside_of_a_runtime_no_environment_is_made(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CAMEL_RUNTIME", "true")
    toolkit = make(use_docker_backend=True, docker_container_name="x")
    assert toolkit.use_docker_backend is False
    assert toolkit.shell_exec("a", "python3 -c 'print(1)'", timeout=60) == "1\n"
    assert not (tmp_path / "work/.initial_env").exists()


def test_an_environment_that_cannot_be_made_is_told_and_not_fatal(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(argv: Any, **_keywords: Any) -> Any:
        raise subprocess.CalledProcessError(1, argv, stderr=b"no space")

    told: list[str] = []
    monkeypatch.setattr(subprocess, "run", fail)
    toolkit = make()
    assert utils.setup_initial_env_with_venv("/nope/env", "/", told.append) is False
    assert told == ["Venv setup failed: no space\n"]
    assert "1" in toolkit.shell_exec("a", "python3 -c 'print(1)'", timeout=60)
    assert toolkit._get_venv_path() is None


def test_packages_that_cannot_be_installed_are_an_error(
    make: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    calls: list[list[str]] = []

    def run(argv: list[str], **_keywords: Any) -> Any:
        calls.append(argv)
        if "pip" in argv:
            raise subprocess.CalledProcessError(1, argv, stderr="no such package")
        return subprocess.CompletedProcess(argv, 0, b"", b"")

    monkeypatch.setattr(subprocess, "run", run)
    toolkit = make(install_dependencies=["no-such-package"])
    assert calls == []
    answer = toolkit.shell_exec("a", "touch canary")
    assert answer == "Error: Failed to install dependencies: no such package"
    assert not (tmp_path / "work/canary").exists()
    assert calls[-1][-4:] == ["pip", "install", "--upgrade", "no-such-package"]
    with pytest.raises(RuntimeError, match="Failed to install dependencies"):
        toolkit._install_dependencies()


def test_a_clone_has_the_packages_of_this_python(
    make: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    calls: list[list[str]] = []

    def run(argv: list[str], **_keywords: Any) -> Any:
        calls.append(argv)
        out = b"one==1\n-e /x\n# c\ntwo==2\n" if "freeze" in argv else b""
        return subprocess.CompletedProcess(argv, 0, out, b"")

    monkeypatch.setattr(subprocess, "run", run)
    toolkit = make(clone_current_env=True)
    toolkit.shell_exec("a", "true")
    assert calls[-1][-2:] == ["one==1", "two==2"]
    assert toolkit.python_executable == str(tmp_path / "work/.venv/bin/python")


def test_uv_is_used_if_it_is_there_and_never_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(utils.shutil, "which", lambda _name, path=None: None)
    monkeypatch.setattr(subprocess, "run", lambda *_a, **_k: pytest.fail("a program was started"))
    assert utils.ensure_uv_available() == (False, None)
    monkeypatch.setattr(utils.shutil, "which", lambda name, path=None: f"/bin/{name}")
    assert utils.ensure_uv_available() == (True, "/bin/uv")


def test_other_runtimes_are_found_and_never_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(utils.shutil, "which", lambda name, path=None: f"/opt/{name}/bin/{name}")
    found = utils.runtime_variables([camel.Runtime.GO, camel.Runtime.JAVA], None)
    assert found["JAVA_HOME"] == "/opt/java"
    assert found["PATH"].startswith("/opt/java/bin:/opt/go/bin:")
    monkeypatch.setattr(utils.shutil, "which", lambda _name, path=None: None)
    told: list[str] = []
    assert utils.runtime_variables([camel.Runtime.GO], told.append) == {}
    assert "go not found" in told[0]


# Docker.


class Daemon:
    """A daemon that remembers what is run in its one container."""

    def __init__(self) -> None:
        self.commands: list[str] = []
        self.output, self.exit_code = b"out", 0
        self.id = self.name = "box"
        self.containers = self

    def get(self, name: str) -> Daemon:
        if name != "box":
            raise NotFound(name)
        return self

    def exec_create(self, _container: str, cmd: str, **_keywords: Any) -> dict[str, str]:
        self.commands.append(cmd)
        return {"Id": "1"}

    def exec_start(self, _id: str) -> bytes:
        return self.output

    def exec_inspect(self, _id: str) -> dict[str, int]:
        return {"ExitCode": self.exit_code}


class NotFound(Exception):
    pass


class APIError(Exception):
    pass


@pytest.fixture
def daemon(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Daemon:
    """A daemon, and a client on PATH that runs the commands of `docker exec` on this host."""
    daemon = Daemon()

    class Docker:
        @staticmethod
        def APIClient(base_url: str) -> Daemon:
            return daemon

        @staticmethod
        def from_env() -> Daemon:
            return daemon

    monkeypatch.setattr(terminal_toolkit, "docker", Docker)
    monkeypatch.setattr(terminal_toolkit, "NotFound", NotFound)
    monkeypatch.setattr(terminal_toolkit, "APIError", APIError)
    client = tmp_path / "bin/docker"
    client.parent.mkdir()
    client.write_text(
        "#!/bin/bash\n"
        'if [ "$1" = cp ]; then cp "$2" "${3#*:}"; exit; fi\n'
        "shift; while [[ $1 == -* ]]; do case $1 in -e) export \"$2\"; shift 2;; -w) shift 2;; *) shift;; esac; done\n"
        'shift; exec setsid -w "$@"\n'
    )
    client.chmod(0o755)
    monkeypatch.setenv("PATH", f"{client.parent}:{os.environ['PATH']}")
    return daemon


@pytest.fixture
def boxed(daemon: Daemon, tmp_path: Path) -> Iterator[TerminalToolkit]:
    with TerminalToolkit(
        session_logs_dir=str(tmp_path / "logs"),
        use_docker_backend=True,
        docker_container_name="box",
    ) as toolkit:
        yield toolkit


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


def test_the_container_has_to_be_there(daemon: Daemon, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RuntimeError, match="Container 'none' not found."):
        TerminalToolkit(use_docker_backend=True, docker_container_name="none")
    with pytest.raises(ValueError, match="docker_container_name must be provided"):
        TerminalToolkit(use_docker_backend=True)
    monkeypatch.setattr(terminal_toolkit, "docker", None)
    with pytest.raises(ImportError, match="pip install docker"):
        TerminalToolkit(use_docker_backend=True, docker_container_name="box")


def test_commands_run_in_the_container(boxed: TerminalToolkit) -> None:
    assert boxed.docker_workdir == "/workspace"
    assert boxed.shell_exec("a", "echo out; echo err >&2; [ -n \"$SHIELING_COMMAND\" ]") == "out\nerr\n"
    assert "rejected by TerminalToolkit safe mode" in boxed.shell_exec("a", "rm x")
    assert boxed.shell_exec("a", "cd / && pwd") == "/\n"
    boxed.shell_exec("s", "read x; echo got $x", block=False)
    assert "got 1" in boxed.shell_write_to_process("s", "1")


def test_the_helper_for_the_daemon(boxed: TerminalToolkit, daemon: Daemon) -> None:
    assert boxed._docker_exec("ls") == (0, b"out")
    assert boxed._docker_exec("ls", check_exit_code=False) == (None, b"out")
    daemon.exit_code = 2
    with pytest.raises(RuntimeError, match="Docker command exited with code 2: out"):
        boxed._docker_exec("ls")
    with pytest.raises(RuntimeError, match="Docker backend is not enabled"):
        TerminalToolkit()._docker_exec("ls")


def test_files_go_into_the_container(boxed: TerminalToolkit, tmp_path: Path) -> None:
    target = tmp_path / "in-container"
    answer = boxed.shell_write_content_to_file("text", str(target))
    assert answer == f"Content successfully written to '{target}' in Docker container."
    assert target.read_text() == "text"
    assert not list(Path(boxed.log_dir).glob("temp_*"))


def test_c24_a_kill_goes_by_a_mark_and_not_by_a_number_of_the_host(
    boxed: TerminalToolkit, daemon: Daemon
) -> None:
    boxed.shell_exec("s", "sleep 60", timeout=0.5)
    mark = boxed.shell_sessions["s"]["mark"]
    until(lambda: processes_with(mark))
    real_start = daemon.exec_start

    def start(_id: str) -> bytes:
        subprocess.run(daemon.commands[-1], shell=True, check=False)
        return real_start(_id)

    daemon.exec_start = start  # type: ignore[method-assign]
    assert boxed.shell_kill_process("s") == "Process in session 's' has been terminated."
    assert mark in daemon.commands[-1]
    until(lambda: not processes_with(mark))


def test_c25_a_failing_environment_runs_no_half_of_a_command(toolkit: TerminalToolkit) -> None:
    # Nothing is put in front of a command that could fail on its own: the path is a variable.
    assert toolkit.shell_exec("a", "false && echo a; echo b") == "b\n"
    assert "activate" not in str(toolkit._words("false && a; b", "mark"))


# Parts.


def test_the_stream_keeps_beginning_and_end() -> None:
    stream = _output.OutputStream("the log")
    assert stream.empty() and stream.qsize() == 0
    with pytest.raises(Empty):
        stream.get_nowait()
    half = _output.VIEW_BYTES // 2
    stream.put("a" * half)
    for _ in range(10):
        stream.put("b" * half)
    stream.put("END")
    text = stream.get_nowait()
    assert text.startswith("a" * half) and text.endswith("bEND")
    assert f"[... {half * 9 + 3} characters left out; see the log ...]" in text
    assert stream.empty()
    stream.put("x")
    assert stream.get() == "x"


def test_toolkits_may_be_used_from_threads(toolkit: TerminalToolkit) -> None:
    answers: dict[int, str] = {}

    def work(number: int) -> None:
        answers[number] = toolkit.shell_exec(str(number), f"echo {number}")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == {number: f"{number}\n" for number in range(4)}


def test_threads_of_sessions_end(toolkit: TerminalToolkit) -> None:
    before = threading.active_count()
    for number in range(3):
        toolkit.shell_exec(str(number), "echo x", block=False)
        ended(toolkit, str(number))
    until(lambda: threading.active_count() <= before)


def test_rules_and_approvers_see_the_command_as_it_is(make: Make) -> None:
    allowed = make(shieling={"allow": ["ls"]})
    assert allowed.shell_exec("a", "ls -d .").strip() == "."
    assert "rejected" in allowed.shell_exec("a", "id")
    asked: list[str] = []
    options = {"approval": "always", "approver": lambda question: asked.append(question.text) or True}
    assert make(shieling=options).shell_exec("a", "echo hi").strip() == "hi" and asked == ["echo hi"]


@pytest.mark.parametrize("id", [7, None, ("a", 1), 1.5])
def test_an_id_may_be_no_text(toolkit: TerminalToolkit, monkeypatch: pytest.MonkeyPatch, id: Any) -> None:
    assert toolkit.shell_exec(id, "echo a") == "a\n"
    assert toolkit.shell_exec(id, "cat", block=False).startswith(f"Session '{id}' started.")
    assert toolkit.shell_write_to_process(id, "b") == "b\n"
    assert toolkit.shell_view(id).startswith("[No new output]")
    monkeypatch.setattr(builtins, "input", lambda _: "c")
    assert toolkit.shell_ask_user_for_help(id, "?") == "c\n"
    assert toolkit.shell_kill_process(id) == f"Process in session '{id}' has been terminated."
    assert toolkit.shell_view(id).startswith("--- SESSION TERMINATED")
    assert toolkit.shell_exec(id, "sleep 20", timeout=0.1).startswith("Command did not complete within 0.1")
    assert toolkit.shell_kill_process(id) == f"Process in session '{id}' has been terminated."


@pytest.mark.parametrize("timeout", ["20", 20, 20.5])
def test_a_timeout_is_a_number_or_a_text_of_one(toolkit: TerminalToolkit, timeout: Any) -> None:
    assert toolkit.shell_exec("a", "echo a", timeout=timeout) == "a\n"
    toolkit.timeout = timeout
    assert toolkit.shell_exec("a", "echo a") == "a\n"


@pytest.mark.parametrize("timeout", ["x", [], True, float("nan")])
def test_a_timeout_that_is_no_number_is_an_error(toolkit: TerminalToolkit, timeout: Any) -> None:
    assert toolkit.shell_exec("a", "echo a", timeout=timeout).startswith("Error executing command: ")


def printed_variables(toolkit: TerminalToolkit) -> dict[str, str]:
    pairs = toolkit.shell_exec("a", "env -0 | tr '\\n\\0' ' \\n'").splitlines()
    return dict(pair.split("=", 1) for pair in pairs)


def test_the_variables_are_those_that_commands_get(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FIRST", "1")
    monkeypatch.setenv("my.var", "1")
    monkeypatch.setenv("REMOVED", "1")
    with TerminalToolkit(working_directory=str(tmp_path)) as toolkit:
        toolkit.shell_exec("a", "true")
        # As in the original, what changes in this process later counts too.
        monkeypatch.setenv("FIRST", "2")
        monkeypatch.setenv("SECOND", "x")
        monkeypatch.delenv("REMOVED")
        variables = toolkit._get_env_vars()
        # A function of a shell is passed to no command.
        host = {name: value for name, value in os.environ.items() if not name.startswith("BASH_FUNC_")}
        assert {**host, "PYTHONUNBUFFERED": "1"} == variables
        found = printed_variables(toolkit)
        names = {"FIRST", "SECOND", "my.var", "PYTHONUNBUFFERED", "HOME", "PATH"} & set(variables)
        assert {name: found.get(name) for name in names} == {name: variables[name] for name in names}
        assert "REMOVED" not in found


def test_the_sandbox_gets_the_toolkits_variables_alone(
    sandbox: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_SECRET_KEY", "secret")
    with TerminalToolkit(working_directory=str(tmp_path), environment=sandbox) as toolkit:
        assert toolkit._get_env_vars() == {"PYTHONUNBUFFERED": "1"}
        assert "MY_SECRET_KEY" not in printed_variables(toolkit)
    options = {"env": {"MINE": "1"}, "pass_env": ["MY_SECRET_KEY"]}
    with TerminalToolkit(working_directory=str(tmp_path), environment=sandbox, shieling=options) as toolkit:
        wanted = {"PYTHONUNBUFFERED": "1", "MINE": "1", "MY_SECRET_KEY": "secret"}
        assert toolkit._get_env_vars() == wanted
        assert wanted.items() <= printed_variables(toolkit).items()


def test_a_subclass_may_give_other_variables(tmp_path: Path) -> None:
    class Mine(TerminalToolkit):
        def _get_env_vars(self) -> dict[str, str]:
            return {**super()._get_env_vars(), "MINE": "1"}

    with Mine(working_directory=str(tmp_path)) as toolkit:
        assert toolkit.shell_exec("a", "echo $MINE") == "1\n"


def test_the_process_of_a_session_is_used_like_one_of_subprocess(toolkit: TerminalToolkit) -> None:
    toolkit.shell_exec("s", "cat; exit 3", block=False)
    process = toolkit.shell_sessions["s"]["process"]
    assert (process.poll(), process.returncode, process.args) == (None, None, "cat; exit 3")
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(timeout=0.1)
    assert process.stdin.write("a\n") == 2
    process.stdin.flush()
    until(lambda: not toolkit.shell_sessions["s"]["output_stream"].empty())
    process.stdin.close()
    assert process.wait(timeout=20) == 3
    assert (process.poll(), process.returncode) == (3, 3)
    with pytest.raises(ValueError, match="closed file"):
        process.stdin.write("b")
    process.terminate()
    process.kill()
    toolkit.shell_exec("t", "sleep 600", block=False)
    other = toolkit.shell_sessions["t"]["process"]
    with pytest.raises(BrokenPipeError):
        other.kill()
        other.stdin.write("x")
    assert other.returncode == other.wait() == -15


def test_how_a_session_ended_is_not_forgotten(toolkit: TerminalToolkit, tmp_path: Path) -> None:
    toolkit.shell_exec("old", "exit 3", block=False)
    process = toolkit.shell_sessions["old"]["process"]
    ended(toolkit, "old")
    other = _process.SessionProcess(process.job, "exit 3")
    for _ in range(80):
        job = toolkit._open().background("true", cwd=toolkit.working_dir)
        job.wait(20)
    with pytest.raises(JobError, match="there is no job"):
        process.job.outcome()
    assert (process.poll(), process.wait(1), process.returncode) == (3, 3, 3)
    process.terminate()
    process.send_signal(signal.SIGINT)
    assert process.communicate("x") == (None, None)
    # One that nothing has read.
    with pytest.raises(BrokenPipeError):
        other.stdin.write("x")
    other.stdin.close()
    other.terminate()
    assert (other.poll(), other.wait(1)) == (255, 255)


def test_how_a_session_ended_is_known_after_the_toolkits_end(make: Make) -> None:
    toolkit = make()
    for id, command in (("read", "exit 3"), ("late", "exit 4"), ("runs", "sleep 600")):
        if id == "late":
            # Its reader has not come to its end yet.
            toolkit._read_session = lambda session: None  # type: ignore[method-assign]
        toolkit.shell_exec(id, command, block=False)
    processes = {id: session["process"] for id, session in toolkit.shell_sessions.items()}
    ended(toolkit, "read")
    until(lambda: processes["late"].job.outcome().status != "running")
    assert processes["late"].returncode is None
    toolkit.cleanup()
    codes = {id: process.poll() for id, process in processes.items()}
    assert codes["read"] == 3 and codes["late"] == 4 and codes["runs"] < 0
    for process in processes.values():
        process.terminate()
        with pytest.raises(BrokenPipeError):
            process.stdin.write("x")


@pytest.mark.parametrize("text", ["x" * (2**21 + 1), "\u20ac" * 2**20], ids=["ascii", "wide"])
def test_a_long_input_is_sent_in_parts(toolkit: TerminalToolkit, text: str) -> None:
    toolkit.shell_exec("s", "wc -c", block=False)
    process = toolkit.shell_sessions["s"]["process"]
    assert process.stdin.write(text) == len(text)
    process.stdin.close()
    assert process.wait(20) == 0
    assert ended(toolkit, "s").startswith(f"{len(text.encode())}\n")


def test_a_long_input_that_cannot_be_sent_is_not_begun(toolkit: TerminalToolkit) -> None:
    toolkit.shell_exec("s", "wc -c", block=False)
    process = toolkit.shell_sessions["s"]["process"]
    with pytest.raises(ValueError, match="`text` has a wrong value"):
        process.stdin.write("x" * 2**21 + "\ud800")
    assert process.communicate() == (None, None)
    assert ended(toolkit, "s").startswith("0\n")


def test_an_input_that_is_not_read_is_an_error(toolkit: TerminalToolkit) -> None:
    toolkit.shell_exec("s", "sleep 60", block=False)
    process = toolkit.shell_sessions["s"]["process"]
    with pytest.raises(JobError, match="does not read its input: .* nor the 1835008 characters after them") as raised:
        process.stdin.write("x" * 2**21)
    assert raised.value.code == "full"


def test_a_process_is_talked_to_and_signalled(toolkit: TerminalToolkit) -> None:
    toolkit.shell_exec("s", "cat; exit 3", block=False)
    process = toolkit.shell_sessions["s"]["process"]
    assert process.communicate("hello\n", timeout=20) == (None, None)
    assert process.returncode == 3 and ended(toolkit, "s").startswith("hello\n")
    toolkit.shell_exec("t", "sleep 600", block=False)
    other = toolkit.shell_sessions["t"]["process"]
    with pytest.raises(subprocess.TimeoutExpired):
        other.communicate(timeout=0.1)
    with pytest.raises(ValueError, match="only SIGTERM and SIGKILL"):
        other.send_signal(signal.SIGINT)
    other.send_signal(signal.SIGTERM)
    assert other.wait() == -15


def test_a_number_and_its_text_have_a_log_each(toolkit: TerminalToolkit) -> None:
    ids: list[Any] = [5, "5", 5.5, "5.5", None, "None", ("a", 1), "('a', 1)"]
    for id in ids:
        toolkit.shell_exec(id, f"echo {len(toolkit.shell_sessions)}", block=False)
        ended(toolkit, id)
    logs = [toolkit.shell_sessions[id]["log_file"] for id in ids]
    assert len(set(logs)) == len(ids)
    assert logs[1] == os.path.join(toolkit.log_dir, "session_5.log")
    assert [Path(log).read_text().splitlines()[-1] for log in logs] == [str(number) for number in range(len(ids))]


def test_a_process_that_a_caller_puts_there_is_used_as_one(toolkit: TerminalToolkit) -> None:
    def put(**attributes: Any) -> MagicMock:
        process = MagicMock(**attributes)
        toolkit.shell_sessions["m"] = {
            **{"id": "m", "process": process, "output_stream": _output.OutputStream()},
            **{"command_history": ["x"], "running": True, "log_file": toolkit.blocking_log_file, "backend": "local"},
        }
        return process

    process = put()
    assert toolkit.shell_write_to_process("m", "hello") == "Input sent to session 'm' successfully (no output)."
    process.stdin.write.assert_called_once_with("hello\n")
    process.stdin.flush.assert_called_once_with()
    assert toolkit.shell_kill_process("m") == "Process in session 'm' has been terminated."
    process.terminate.assert_called_once_with()
    process.kill.assert_not_called()
    assert toolkit.shell_sessions["m"]["running"] is False

    process = put(**{"poll.return_value": None})
    toolkit.shell_kill_process("m")
    process.kill.assert_called_once_with()
    process = put(**{"terminate.side_effect": OSError("no")})
    assert toolkit.shell_kill_process("m") == "Error killing process in session 'm': no"
    process = put(**{"stdin.write.side_effect": BrokenPipeError("broken")})
    assert toolkit.shell_write_to_process("m", "x") == "Error writing to session 'm': broken"
    process = put(**{"stdout.readline.side_effect": ["one\n", "two\n", ""]})
    toolkit._start_output_reader_thread("m")
    assert ended(toolkit, "m").startswith("one\ntwo\n")
    process = put()
    toolkit.cleanup()
    process.terminate.assert_called_once_with()


def test_names_of_the_original_are_there() -> None:
    for name in ("manual_timeout", "check_nodejs_availability", "ensure_go_available", "ensure_java_available"):
        assert callable(getattr(terminal_toolkit, name)), name
    assert TerminalToolkit.shell_kill_process._manual_timeout  # type: ignore[attr-defined]


def test_variables_of_the_options_may_be_pairs(make: Make) -> None:
    toolkit = make(shieling={"env": iter([("MINE", "1")])})
    for number in range(2):
        assert "mine is 1" in toolkit.shell_exec(str(number), "echo mine is $MINE")
