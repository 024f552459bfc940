"""`LocalShellTool` of the adapter for Microsoft's agent framework: behaviour, and the rows M1 to M22
of what its original loses, in `local` and in `sandbox`."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import os
import re
import resource
import signal
import threading
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar
from unittest import mock

import pytest
from environments import environment, sandbox  # noqa: F401

from shieling.adapters.agent_framework import (
    LocalShellTool,
    ShellCommandError,
    ShellExecutionError,
    ShellExecutor,
    ShellPolicy,
    ShellRequest,
    ShellResult,
    ShellTimeoutError,
)
from shieling.adapters.agent_framework import _killtree, _session, _tool, _types
from shieling.adapters.agent_framework._killtree import kill_process_tree

T = TypeVar("T")


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(coroutine)


def processes_with(mark: str) -> list[str]:
    """The processes whose environment or command line holds `mark`."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            text = (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes()
        except OSError:
            continue
        if mark.encode() in text:
            found.append(entry.name)
    return found


def assert_gone(mark: str) -> None:
    deadline = time.monotonic() + 10
    while processes_with(mark):
        assert time.monotonic() < deadline, f"still there: {processes_with(mark)}"
        time.sleep(0.02)


@pytest.fixture
def mark(request: pytest.FixtureRequest) -> str:
    """A variable that the commands of one test carry, so that what they leave behind is found."""
    return f"AF_TEST={os.urandom(8).hex()}"


def commands(
    tool: LocalShellTool, *texts: str, timeout: float | None = None
) -> list[ShellResult]:
    async def go() -> list[ShellResult]:
        async with tool:
            return [await tool.run(text, timeout=timeout) for text in texts]

    return run(go())


def tool(environment: str, workdir: Path, **keywords: Any) -> LocalShellTool:
    return LocalShellTool(environment=environment, workdir=workdir, **keywords)


# Behaviour.


def test_state_stays_from_command_to_command(environment: str, tmp_path: Path) -> None:
    tool_ = tool(environment, tmp_path, confine_workdir=False)
    results = commands(tool_, "cd /tmp; export X=1; f() { echo f; }; V=2", 'pwd; echo "$X$V"; f')
    assert results[1].stdout == "/tmp\n12\nf"
    assert results[1].exit_code == 0


def test_a_stateless_tool_keeps_nothing(environment: str, tmp_path: Path) -> None:
    results = commands(
        tool(environment, tmp_path, mode="stateless"), "cd /; export X=1", 'pwd; echo "[$X]"'
    )
    assert results[1].stdout == f"{tmp_path}\n[]\n"


def test_streams_and_exit_code_are_apart(environment: str, tmp_path: Path) -> None:
    for mode in ("persistent", "stateless"):
        (result,) = commands(
            tool(environment, tmp_path, mode=mode), "echo out; echo err >&2; (exit 3)"
        )
        assert (result.stdout.strip(), result.stderr.strip(), result.exit_code) == ("out", "err", 3)
        assert not result.timed_out and not result.truncated and not result.session_restarted


@pytest.mark.parametrize("mode", ["persistent", "stateless"])
def test_variables_and_directories_that_no_process_can_have_raise(tmp_path: Path, mode: str) -> None:
    for options, error in (
        ({"env": {"A": 1}}, TypeError),
        ({"env": {"A": None}}, TypeError),
        ({"env": {"A=": "x"}}, ValueError),
        ({"env": {"A": "x\0"}}, ValueError),
        ({"workdir": "/etc/hostname"}, NotADirectoryError),
        ({"workdir": "/nosuch"}, FileNotFoundError),
    ):
        with pytest.raises(error):
            commands(LocalShellTool(mode=mode, **{"workdir": tmp_path, **options}), "true")


def test_that_a_shell_was_restarted_is_no_field_of_a_result(tmp_path: Path) -> None:
    ended, again = commands(tool("local", tmp_path, mode="persistent"), "exit 7", "true")
    assert ended.session_restarted and not again.session_restarted
    assert ended == ShellResult("", "", 7, ended.duration_ms)
    assert "session_restarted" not in dataclasses.asdict(ended) and "restarted" not in repr(ended)
    assert len(dataclasses.astuple(ended)) == 6


@pytest.mark.parametrize("by_psutil", [True, False])
def test_a_process_is_killed_with_what_it_has_started(
    by_psutil: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if by_psutil:
        pytest.importorskip("psutil")
    monkeypatch.setattr(_killtree, "_has_psutil", by_psutil)

    async def work() -> None:
        mark = f"SHIELING_KILLTREE_{time.monotonic_ns()}"
        stubborn = "trap '' TERM; sleep 60 & wait; sleep 60"
        process = await asyncio.create_subprocess_exec(
            "bash", "-c", f"bash -c \"{stubborn}\" & setsid sleep 60", env={**os.environ, mark: "1"}
        )
        while len(processes_with(mark)) < 4:
            await asyncio.sleep(0.02)
        await kill_process_tree(process, grace=0.5)
        assert_gone(mark)
        assert process.returncode is not None
        await kill_process_tree(process)

    run(work())


def test_a_child_that_has_started_nothing_new_is_killed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    child, parent = mock.MagicMock(), mock.MagicMock()
    parent.children.return_value = [child]
    psutil = mock.MagicMock(NoSuchProcess=LookupError, AccessDenied=PermissionError)
    psutil.Process.return_value = parent
    monkeypatch.setattr(_killtree, "psutil", psutil)
    process = mock.MagicMock(pid=999_999_999, wait=mock.AsyncMock(return_value=0))
    run(_killtree._kill_via_psutil(process, grace=0.1))
    for one in (child, parent):
        one.terminate.assert_called_once_with()
        one.kill.assert_called_once_with()
    monkeypatch.setattr(_killtree, "psutil", None)
    with pytest.raises(RuntimeError, match="without psutil"):
        run(_killtree._kill_via_psutil(process, grace=0.1))


@pytest.mark.parametrize("ended", [True, False])
def test_a_process_group_is_signalled_and_no_process_beside_it(ended: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A group that is told by a test's substitute, of a number that is a process which is none of ours."""
    signalled: list[Any] = []
    group = 999_999_998
    monkeypatch.setattr(_killtree.os, "getpgid", lambda pid: group)
    monkeypatch.setattr(_killtree.os, "killpg", lambda *call: signalled.append(call))
    monkeypatch.setattr(_killtree.os, "kill", lambda *call: pytest.fail(f"kill{call}"))

    async def wait() -> None:
        if not ended:
            await asyncio.Event().wait()

    async def work() -> None:
        for other in (os.getppid(), os.getpid()):
            process = mock.MagicMock(pid=other, returncode=None, wait=wait)
            await _killtree._kill_via_stdlib(process, grace=0.05)

    monkeypatch.setattr(_killtree.signal, "pidfd_send_signal", lambda *call: pytest.fail(f"pidfd{call}"))
    run(work())
    once = [(group, signal.SIGTERM)] if ended else [(group, signal.SIGTERM), (group, signal.SIGKILL)]
    assert signalled == once * 2


def test_the_own_process_group_and_that_of_strangers_are_not_signalled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_killtree.os, "killpg", lambda *call: pytest.fail(f"killpg{call}"))

    async def work() -> None:
        process = await asyncio.create_subprocess_exec("sleep", "60")
        stranger = await asyncio.create_subprocess_exec("sleep", "60", start_new_session=True)
        await _killtree._kill_via_stdlib(process, grace=5)
        assert process.returncode == -signal.SIGTERM
        # Its number is another one's by now, so to say.
        monkeypatch.setattr(_killtree.os, "getpgid", lambda pid: stranger.pid)
        await _killtree._kill_via_stdlib(mock.MagicMock(pid=process.pid, wait=mock.AsyncMock()), grace=0.1)
        assert stranger.returncode is None
        stranger.kill()
        await stranger.wait()

    run(work())


def test_only_the_group_of_the_process_that_was_told_of_is_interrupted() -> None:
    def told(pid: int) -> _killtree.ProcessEntry:
        found = _killtree.parse_entry(Path(f"/proc/{pid}/stat").read_text())
        assert found is not None
        return found

    async def work() -> None:
        leader = await asyncio.create_subprocess_exec(
            "sh", "-c", "echo $$; sleep 60; true", stdout=asyncio.subprocess.PIPE, start_new_session=True
        )
        entry = told(leader.pid)
        while len(tree := _killtree._tree(_killtree._table(), [leader.pid])) < 2:
            await asyncio.sleep(0.01)
        (member,) = tree.keys() - {leader.pid}
        for other in (told(member), entry._replace(start="1"), entry._replace(parent=0), told(os.getpid())._replace(start="1")):
            assert not _killtree.interrupt_group(other)
        assert _killtree.interrupt_group(entry)
        assert await leader.wait() == -signal.SIGINT
        assert leader.stdout is not None and await leader.stdout.read() == b"%d\n" % leader.pid
        assert not _killtree.interrupt_group(entry)

    run(work())
    for text in ("", "12", "x (a) b", "12 (a) S 1"):
        assert _killtree.parse_entry(text) is None


def test_taskkill_is_the_systems_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_killtree, "_taskkill_path", None)
    monkeypatch.setenv("SystemRoot", str(tmp_path))
    assert _killtree._resolve_taskkill() == "taskkill"
    (tmp_path / "System32").mkdir()
    (tmp_path / "System32" / "taskkill.exe").touch()
    monkeypatch.setattr(_killtree, "_taskkill_path", None)
    assert _killtree._resolve_taskkill() == str(tmp_path / "System32" / "taskkill.exe")


def test_results_have_their_texts_under_the_originals_names() -> None:
    result = ShellResult("out", "", 0, 1)
    assert _types._shell_result_to_text(result) == "out\nexit_code: 0"
    assert _types._parse_shell_result("text") == "text"


def test_a_persistent_shell_returns_to_its_directory(environment: str, tmp_path: Path) -> None:
    assert commands(tool(environment, tmp_path), "cd /tmp", "pwd")[1].stdout == str(tmp_path)
    wandering = tool(environment, tmp_path, confine_workdir=False)
    assert commands(wandering, "cd /tmp", "pwd")[1].stdout == "/tmp"


def test_a_directory_with_quotes_is_returned_to(tmp_path: Path) -> None:
    workdir = tmp_path / "it's $HOME; a \"b\""
    workdir.mkdir()
    assert commands(LocalShellTool(workdir=workdir), "cd /", "pwd")[1].stdout == str(workdir)


def test_the_timeout_of_a_call_goes_before_the_tools(environment: str, tmp_path: Path) -> None:
    for mode in ("persistent", "stateless"):
        (result,) = commands(
            tool(environment, tmp_path, mode=mode, timeout=None),
            "echo partial; sleep 30",
            timeout=0.5,
        )
        assert result.timed_out and result.exit_code == 124
        assert result.stdout == "partial\n"


@pytest.mark.parametrize("shell", [None, "/bin/sh"])
def test_a_timeout_keeps_the_ends_of_lines(
    environment: str, tmp_path: Path, shell: str | None
) -> None:
    for mode in ("persistent", "stateless"):
        given = tool(environment, tmp_path, mode=mode, shell=shell, max_output_bytes=20)
        (whole,) = commands(given, "printf 'a\\n\\n'; printf 'b\\n' >&2; sleep 30", timeout=0.5)
        assert (whole.stdout, whole.stderr, whole.truncated) == ("a\n\n", "b\n", False)
        (cut,) = commands(given, "printf '%050d\\n' 7; sleep 30", timeout=0.5)
        head, tail = "0" * 10, "0" * 8 + "7\n"
        assert cut.stdout == f"{head}\n[... truncated 31 bytes ...]\n{tail}"
        (ended,) = commands(given, "echo a")
        assert ended.stdout == ("a" if mode == "persistent" else "a\n")


def test_a_clean_environment_has_a_short_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAGER", "less")
    monkeypatch.setenv("AF_HOST", "host")
    monkeypatch.setenv("PIP_CERT", "/home/me/ca.pem")
    monkeypatch.setenv("SSL_CERT_FILE", "/etc/ssl/certs/ca-certificates.crt")
    usual = "PATH HOME LANG LANGUAGE TERM USER LOGNAME TZ SHELL PAGER GIT_PAGER PWD OLDPWD SHLVL _".split()
    certificates = (
        "SSL_CERT_FILE SSL_CERT_DIR CURL_CA_BUNDLE REQUESTS_CA_BUNDLE PIP_CERT "
        "NODE_EXTRA_CA_CERTS GIT_SSL_CAINFO CARGO_HTTP_CAINFO"
    ).split()
    for mode in ("persistent", "stateless"):
        clean = tool("local", tmp_path, mode=mode, clean_env=True)
        (result,) = commands(clean, "env")
        found = dict(line.split("=", 1) for line in result.stdout.splitlines())
        assert {name for name in found if not name.startswith("LC_")} <= {*usual, *certificates}
        assert (found["PAGER"], found["GIT_PAGER"], found["TERM"]) == ("cat", "cat", "dumb")
        assert found["SSL_CERT_FILE"] == "/etc/ssl/certs/ca-certificates.crt"
        assert found.get("PIP_CERT") != "/home/me/ca.pem"
        own = tool("local", tmp_path, mode=mode, clean_env=True, env={"PAGER": "more"})
        assert commands(own, "echo $PAGER")[0].stdout.strip() == "more"


def test_options_of_the_shell_stay(environment: str, tmp_path: Path) -> None:
    results = commands(tool(environment, tmp_path), "set -e", "set -o | grep errexit")
    assert "on" in results[1].stdout


def test_the_policy_is_asked_first_and_the_hook_told_after_it(tmp_path: Path) -> None:
    told: list[str] = []
    tool_ = LocalShellTool(
        workdir=tmp_path, policy=ShellPolicy(denylist=[r"\bforbidden\b"]), on_command=told.append
    )

    async def go() -> ShellResult:
        async with tool_:
            with pytest.raises(ShellCommandError, match="Command rejected by policy: matches "):
                await tool_.run("forbidden")
            return await tool_.run("echo fine")

    assert run(go()).stdout == "fine"
    assert told == ["echo fine"]


def test_a_policy_of_another_class_is_asked(tmp_path: Path) -> None:
    class Policy:
        seen: list[ShellRequest] = []

        def evaluate(self, request: ShellRequest) -> Any:
            self.seen.append(request)
            return type("Decision", (), {"decision": "deny", "reason": "no"})()

    policy: Any = Policy()
    with pytest.raises(ShellCommandError, match="Command rejected by policy: no"):
        run(LocalShellTool(workdir=tmp_path, policy=policy).run("ls"))
    assert policy.seen == [ShellRequest("ls", str(tmp_path))]


def test_a_hook_that_raises_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def hook(_command: str) -> None:
        raise RuntimeError("hook")

    with caplog.at_level(logging.ERROR):
        (result,) = commands(LocalShellTool(workdir=tmp_path, on_command=hook), "echo fine")
    assert result.stdout == "fine"
    assert "on_command hook raised" in caplog.text


def test_variables(
    environment: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AF_HOST", "host")
    show = 'echo "$AF_HOST/$AF_OWN/${PATH:+path}"'
    own = {"AF_OWN": "own"}
    inherited = "host" if environment == "local" else ""
    for mode in ("persistent", "stateless"):
        given = tool(environment, tmp_path, mode=mode, env=own)
        assert commands(given, show)[0].stdout.strip() == f"{inherited}/own/path"
        clean = tool(environment, tmp_path, mode=mode, env=own, clean_env=True)
        assert commands(clean, show)[0].stdout.strip() == "/own/path"
        plain = tool(environment, tmp_path, mode=mode)
        assert commands(plain, show)[0].stdout.strip() == f"{inherited}//path"


def test_a_stateless_tool_sees_variables_that_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool_ = LocalShellTool(mode="stateless", workdir=tmp_path)
    monkeypatch.setenv("AF_A", "1")

    async def go() -> tuple[str, str]:
        async with tool_:
            first = await tool_.run('echo "$AF_A$AF_B"')
            monkeypatch.setenv("AF_B", "2")
            monkeypatch.delenv("AF_A")
            return first.stdout, (await tool_.run('echo "$AF_A$AF_B"')).stdout

    assert run(go()) == ("1\n", "2\n")


def test_output_is_cut_to_head_and_tail(environment: str, tmp_path: Path) -> None:
    for mode in ("persistent", "stateless"):
        (result,) = commands(
            tool(environment, tmp_path, mode=mode, max_output_bytes=101),
            "printf 'H%.0s' {1..100}; printf 'T%.0s' {1..200}",
        )
        assert result.truncated
        assert result.stdout == f"{'H' * 50}\n[... truncated 199 bytes ...]\n{'T' * 51}"


def test_a_bound_that_bounds_nothing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="cap must be positive; got 0"):
        commands(LocalShellTool(workdir=tmp_path, max_output_bytes=0), "true")


def test_bad_arguments_of_the_constructor() -> None:
    with pytest.raises(ValueError, match="mode must be 'persistent' or 'stateless', got 'x'"):
        LocalShellTool(mode="x")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="acknowledge_unsafe=True"):
        LocalShellTool(approval_mode="never_require")
    LocalShellTool(approval_mode="never_require", acknowledge_unsafe=True)
    with pytest.raises(ShellExecutionError, match="shell override must not be empty"):
        LocalShellTool(shell="")


def test_a_directory_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    for mode in ("persistent", "stateless"):
        with pytest.raises(FileNotFoundError):
            commands(LocalShellTool(mode=mode, workdir=tmp_path / "none"), "true")  # type: ignore[arg-type]


def test_the_tool_is_a_shell_executor() -> None:
    assert isinstance(LocalShellTool(), ShellExecutor)


def test_errors_are_of_one_family() -> None:
    assert issubclass(ShellExecutionError, RuntimeError)
    assert issubclass(ShellCommandError, ShellExecutionError)
    assert issubclass(ShellTimeoutError, ShellExecutionError)


def test_first_calls_at_once_share_one_shell(environment: str, tmp_path: Path) -> None:
    tool_ = tool(environment, tmp_path)

    async def go() -> set[str]:
        results = await asyncio.gather(*(tool_.run("echo $$") for _ in range(8)))
        await tool_.close()
        return {result.stdout for result in results}

    assert len(run(go())) == 1


def test_a_closed_tool_starts_anew(environment: str, tmp_path: Path) -> None:
    tool_ = tool(environment, tmp_path)

    async def go() -> str:
        await tool_.run("X=1")
        await tool_.close()
        await tool_.close()
        result = await tool_.run('echo "[$X]"')
        await tool_.close()
        return result.stdout

    assert run(go()) == "[]"


def test_closing_ends_the_calls_that_wait(tmp_path: Path) -> None:
    tool_ = LocalShellTool(workdir=tmp_path)

    async def go() -> list[Any]:
        await tool_.start()
        first = asyncio.ensure_future(tool_.run("touch started; sleep 30"))
        while not (tmp_path / "started").exists():
            await asyncio.sleep(0.01)
        second = asyncio.ensure_future(tool_.run("touch second"))
        await asyncio.sleep(0)
        await tool_.close()
        return await asyncio.gather(first, second, return_exceptions=True)

    _, second = run(go())
    assert isinstance(second, RuntimeError)
    assert not (tmp_path / "second").exists()


# Shells.


def test_the_shell_can_be_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for mode in ("persistent", "stateless"):
        (result,) = commands(
            LocalShellTool(mode=mode, shell="/bin/sh", workdir=tmp_path), "echo $0"  # type: ignore[arg-type]
        )
        assert result.stdout.strip() == "/bin/sh"
    monkeypatch.setenv("AGENT_FRAMEWORK_SHELL", "/bin/sh")
    assert LocalShellTool()._stateless_argv == ["/bin/sh", "-c"]
    assert commands(LocalShellTool(workdir=tmp_path), "echo $0")[0].stdout == "/bin/sh"


@pytest.mark.parametrize(
    ("shell", "interactive", "stateless"),
    [
        ("/bin/zsh -f", ["/bin/zsh", "-f"], ["/bin/zsh", "-f", "-c"]),
        (["/bin/dash"], ["/bin/dash"], ["/bin/dash", "-c"]),
        ("/bin/sh -c", ["/bin/sh", "-c"], ["/bin/sh", "-c"]),
        ("pwsh", ["pwsh"], ["pwsh", "-Command"]),
        ("pwsh -NoProfile -Command", ["pwsh", "-NoProfile", "-Command"], ["pwsh", "-NoProfile", "-Command"]),
    ],
)
def test_the_words_of_a_shell(shell: Any, interactive: list[str], stateless: list[str]) -> None:
    tool_ = LocalShellTool(shell=shell)
    assert tool_._interactive_argv == interactive
    assert tool_._stateless_argv == stateless


def test_a_piped_shell_keeps_its_state_and_reads_no_command(tmp_path: Path) -> None:
    tool_ = LocalShellTool(shell="/bin/sh", workdir=tmp_path, confine_workdir=False)
    results = commands(
        tool_,
        "X=1; cd /tmp",
        'echo "$X"; pwd; echo err >&2; cat; head -c 3',
        "# only a comment",
        "set -e; false",
        "echo 'still here'; set +e",
        "exec >/dev/null; true",
        "echo lost",
        "exec >&8; printf 'a\\n\\n\\n'",
        "exit 7",
        'echo "[$X]"',
    )
    assert results[1].stdout == "1\n/tmp" and results[1].stderr.strip() == "err"
    assert results[2].exit_code == 0
    assert results[3].exit_code == 1
    assert results[4].stdout == "still here"
    assert results[7].stdout == "a"
    assert results[8].exit_code == 7 and results[8].session_restarted
    assert results[9].stdout == "[]"


def test_a_piped_shell_that_takes_too_long_is_replaced(
    environment: str, tmp_path: Path, mark: str
) -> None:
    tool_ = tool(environment, tmp_path, shell="/bin/sh")

    async def go() -> list[ShellResult]:
        async with tool_:
            first = await tool_.run(f"echo part; env {mark} sleep 60", timeout=1.0)
            return [first, await tool_.run("echo next")]

    first, second = run(go())
    assert first.timed_out and first.session_restarted and first.exit_code == 124
    assert first.stdout == "part\n"
    assert second.stdout == "next"
    assert_gone(mark)


def test_a_piped_shell_keeps_bounded_output(tmp_path: Path) -> None:
    tool_ = LocalShellTool(shell="/bin/sh", workdir=tmp_path, max_output_bytes=1000)
    result, after = commands(
        tool_, "echo begin; head -c 3000000 /dev/zero | tr '\\0' x; echo end", "echo next"
    )
    assert result.truncated and result.exit_code == 0
    assert result.stdout.startswith("begin\n") and result.stdout.endswith("xend")
    assert "[... truncated 2999009 bytes ...]" in result.stdout
    assert after.stdout == "next"


def test_powershell_is_refused_where_it_cannot_stay(tmp_path: Path) -> None:
    with pytest.raises(ShellExecutionError, match="PowerShell has no persistent mode"):
        commands(LocalShellTool(shell="pwsh", workdir=tmp_path), "ls")


@pytest.mark.parametrize("mode", ["persistent", "stateless"])
@pytest.mark.parametrize("timeout", [0, -1])
def test_no_time_to_run_is_a_timeout(
    environment: str, tmp_path: Path, mode: str, timeout: float
) -> None:
    [result] = commands(tool(environment, tmp_path, mode=mode), "echo hi", timeout=timeout)
    assert (result.exit_code, result.timed_out) == (124, True)


@pytest.mark.parametrize("mode", ["persistent", "stateless"])
@pytest.mark.parametrize("shell", ["/nonexistent/bash", "/nonexistent/sh", "no-such-shell"])
def test_a_shell_that_does_not_exist_is_an_error(tmp_path: Path, mode: str, shell: str) -> None:
    with pytest.raises(FileNotFoundError, match=f"No such file or directory: '{shell}'"):
        commands(LocalShellTool(mode=mode, shell=shell, workdir=tmp_path), "echo hi")


def test_powershell_is_told_to_print_utf8(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = tmp_path / "pwsh"
    fake.write_text('#!/bin/sh\nprintf "%s|" "$@"\n')
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    [result] = commands(LocalShellTool(mode="stateless", shell="pwsh -NoProfile"), "Get-Date")
    assert result.stdout == (
        "-NoProfile|-Command|$OutputEncoding = [Console]::OutputEncoding = "
        "[System.Text.UTF8Encoding]::new($false); Get-Date|"
    )


@pytest.mark.parametrize("text", ["echo (", "echo 'open", "sh -c 'echo ('"])
@pytest.mark.parametrize("shell", ["/bin/sh", "/bin/bash"])
def test_a_syntax_error_is_told_by_the_shell(
    environment: str, tmp_path: Path, shell: str, text: str
) -> None:
    stateless = tool(environment, tmp_path, mode="stateless", shell=shell)
    [result] = commands(stateless, text)
    assert result.exit_code == 2
    assert "yntax error" in result.stderr or "unexpected EOF" in result.stderr
    ruled = tool(environment, tmp_path, mode="stateless", shell="/bin/sh", shieling={"deny": ["rm"]})
    with pytest.raises(ShellCommandError, match="it does not parse as bash"):
        commands(ruled, "sh -c 'echo ('")


def test_quotes_and_the_change_of_directory(tmp_path: Path) -> None:
    assert _tool._quote_posix("a'b") == "'a'\\''b'"
    assert _tool._quote_powershell("a'b") == "'a''b'"
    assert LocalShellTool(workdir="/a b")._maybe_reanchor("ls") == "cd -- '/a b'\nls"
    assert LocalShellTool(workdir="/a", confine_workdir=False)._maybe_reanchor("ls") == "ls"
    assert LocalShellTool()._maybe_reanchor("ls") == "ls"


@pytest.mark.parametrize(
    ("text", "code"),
    [(b"_0\n", 0), (b"_12\n", 12), (b"_7\r\n", 7), (b"", -1), (b"0\n", -1), (b"_\n", -1), (b"_x\n", -1)],
)
def test_the_number_after_a_sentinel(text: bytes, code: int) -> None:
    assert _session._parse_rc(text) == code


# What the original loses. The numbers are those of the table in docs/adapters/agent_framework.md.


@pytest.mark.parametrize("text", ["sleep 60 & echo started", "(setsid sleep 60 &); echo started"])
def test_m01_a_child_with_the_pipe_does_not_hold_a_stateless_call(
    environment: str, tmp_path: Path, text: str, mark: str
) -> None:
    tool_ = tool(environment, tmp_path, mode="stateless", timeout=20.0)
    (result,) = commands(tool_, text.replace("sleep", f"env {mark} sleep"))
    assert result.stdout == "started\n"
    assert not result.timed_out
    assert_gone(mark)


@pytest.mark.parametrize("start", ["nohup sleep 60 >/dev/null 2>&1 &", "setsid sleep 60 &"])
def test_m02_nothing_survives_the_close(
    environment: str, tmp_path: Path, start: str, mark: str
) -> None:
    tool_ = tool(environment, tmp_path, env=dict([mark.split("=")]))
    results = commands(tool_, start, "sleep 30", "echo after", timeout=1.0)
    assert results[1].timed_out and results[2].stdout == "after"
    assert_gone(mark)


def test_m03_a_timeout_keeps_the_state(environment: str, tmp_path: Path) -> None:
    tool_ = tool(environment, tmp_path, confine_workdir=False)
    results = commands(tool_, "X=1; cd /tmp", "sleep 30", 'echo "$X"; pwd', timeout=1.0)
    assert results[1].timed_out and results[1].exit_code == 124
    assert not results[1].session_restarted
    assert results[2].stdout == "1\n/tmp"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("echo out; exit 3", 3),
        ("echo out; exec true", 0),
        ("echo out; kill -9 $$", None),
        ("echo out; set -e; false", 1),
        ("echo out; set -u; echo $NOPE_NOT_SET", None),
    ],
)
def test_m04_a_command_that_ends_the_shell_keeps_its_result(
    environment: str, tmp_path: Path, text: str, code: int | None
) -> None:
    result, after = commands(tool(environment, tmp_path), text, "echo next")
    assert result.stdout == "out"
    assert code is None and result.exit_code != 0 or result.exit_code == code
    assert after.stdout == "next" and after.exit_code == 0
    if result.session_restarted:
        assert "[shell restarted; the next command starts afresh]" in result.format_for_model()


def test_m05_a_comment_is_a_command(environment: str, tmp_path: Path) -> None:
    results = commands(tool(environment, tmp_path), "X=1", "# just a comment", 'echo "$X"')
    assert results[1] == ShellResult("", "", 0, results[1].duration_ms)
    assert results[2].stdout == "1"


@pytest.mark.parametrize(
    "text", ["(echo abc", "if true; then echo", "echo a; }; echo INJ", "echo 'abc", "cat <<E\na", 'echo "$(']
)
def test_m06_m07_a_syntax_error_says_so_and_ends_nothing(
    environment: str, tmp_path: Path, text: str
) -> None:
    results = commands(tool(environment, tmp_path), "X=1", text, 'echo "$X"', timeout=20.0)
    assert not results[1].timed_out
    if not text.startswith("cat"):  # bash takes an open here-document and warns
        assert results[1].exit_code != 0 and results[1].stderr
        assert "INJ" not in results[1].stdout
    assert results[2].stdout == "1"


@pytest.mark.parametrize("text", ["cat", "read a; echo [$a]", "head -c 5", "python3 -", "echo a \\"])
def test_m07_m08_what_reads_finds_the_end(environment: str, tmp_path: Path, text: str) -> None:
    results = commands(tool(environment, tmp_path), "X=1", text, 'echo "$X"', timeout=20.0)
    assert not results[1].timed_out
    assert results[2].stdout == "1"


@pytest.mark.parametrize("text", ["exec >file", "exec 1>&-", "exec 2>&1 >/dev/null"])
def test_m09_redirected_streams_of_the_shell_lose_no_result(
    environment: str, tmp_path: Path, text: str
) -> None:
    results = commands(tool(environment, tmp_path), text, "(exit 4)", timeout=20.0)
    assert results[1].exit_code == 4
    assert not results[1].timed_out


@pytest.mark.parametrize(
    "text", ["printf() { echo HIJACK; }", "alias printf='echo HIJACK'", "shopt -s expand_aliases; alias echo=:"]
)
def test_m10_functions_and_aliases_are_the_commands_own(
    environment: str, tmp_path: Path, text: str
) -> None:
    results = commands(tool(environment, tmp_path), text, "(exit 4)", timeout=20.0)
    assert results[1].exit_code == 4
    assert results[1].stdout == ""


def test_m11_a_trap_forges_no_exit_code(environment: str, tmp_path: Path) -> None:
    trap = "trap 'case \"$BASH_COMMAND\" in printf*) __af_rc=0;; esac' DEBUG"
    results = commands(tool(environment, tmp_path), trap, "false", "(exit 9)")
    assert [result.exit_code for result in results[1:]] == [1, 9]


@pytest.mark.parametrize("option", ["-x", "-v"])
def test_m12_tracing_shows_the_command_alone(
    environment: str, tmp_path: Path, option: str
) -> None:
    results = commands(tool(environment, tmp_path), f"set {option}", "echo traced")
    assert results[1].stdout == "traced"
    assert re.fullmatch(r"(\+ )?echo traced\n?", results[1].stderr), results[1].stderr


def test_m13_a_cancelled_call_ends_and_leaves_nothing_to_the_next(
    environment: str, tmp_path: Path, mark: str
) -> None:
    for mode in ("persistent", "stateless"):
        tool_ = tool(environment, tmp_path, mode=mode)
        (tmp_path / "started").unlink(missing_ok=True)

        async def go() -> str:
            async with tool_:
                task = asyncio.ensure_future(
                    tool_.run(f"echo old; touch started; env {mark} sleep 60; echo old")
                )
                while not (tmp_path / "started").exists():
                    await asyncio.sleep(0.01)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                result = await tool_.run("echo new")
                assert_gone(mark)
                return result.stdout.strip()

        assert run(go()) == "new"


def test_m14_a_background_job_does_not_print_into_the_next_call(
    environment: str, tmp_path: Path
) -> None:
    tool_ = tool(environment, tmp_path)
    results = commands(
        tool_,
        "(while [ ! -e go ]; do sleep 0.02; done; echo LATE; touch done_) & true",
        "touch go; while [ ! -e done_ ]; do sleep 0.02; done; echo mine",
    )
    assert results[1].stdout == "mine"


def test_m15_a_job_that_nobody_reads_takes_no_memory(environment: str, tmp_path: Path) -> None:
    tool_ = tool(environment, tmp_path)

    async def go() -> int:
        async with tool_:
            await tool_.run("true")
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            await tool_.run("(head -c 300M /dev/zero; touch wrote) & true")
            for _ in range(200):
                if (tmp_path / "wrote").exists():
                    break
                await asyncio.sleep(0.05)
            return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before

    assert run(go()) < 60_000


@pytest.mark.parametrize("mode", ["persistent", "stateless"])
def test_m16_output_is_bounded_while_it_is_read(
    environment: str, tmp_path: Path, mode: str
) -> None:
    tool_ = tool(environment, tmp_path, mode=mode)

    async def go() -> tuple[int, ShellResult]:
        async with tool_:
            await tool_.run("true")
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            result = await tool_.run("head -c 100M /dev/zero >&2; head -c 100M /dev/zero; echo END")
            return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, result

    grown, result = run(go())
    assert result.exit_code == 0 and result.truncated
    assert result.stdout.rstrip("\n").endswith("END")
    assert grown < 40_000


def test_m17_much_output_keeps_the_shell_and_the_real_tail(
    environment: str, tmp_path: Path
) -> None:
    results = commands(tool(environment, tmp_path), "X=1; seq 1 100000", 'echo "$X"')
    assert results[0].exit_code == 0 and results[0].truncated
    assert results[0].stdout.startswith("1\n2\n") and results[0].stdout.endswith("\n99999\n100000")
    assert results[1].stdout == "1"


@pytest.mark.parametrize("mode", ["persistent", "stateless"])
def test_m18_a_long_command_runs(environment: str, tmp_path: Path, mode: str) -> None:
    text = ": " + "x" * 200_000 + "; echo ran"
    (result,) = commands(tool(environment, tmp_path, mode=mode), text)
    assert result.stdout.strip() == "ran"


@pytest.mark.parametrize("mode", ["persistent", "stateless"])
def test_m19_a_directory_that_has_gone_is_an_error(tmp_path: Path, mode: str) -> None:
    workdir = tmp_path / "gone"
    workdir.mkdir()
    tool_ = LocalShellTool(mode=mode, workdir=workdir)  # type: ignore[arg-type]

    async def go() -> None:
        async with tool_:
            await tool_.run("true")
            workdir.rmdir()
            with pytest.raises(
                (ShellExecutionError, FileNotFoundError), match="the command did not run|No such file"
            ):
                await tool_.run("touch ../canary")

    run(go())
    assert not (tmp_path / "canary").exists()


@pytest.mark.parametrize("mode", ["persistent", "stateless"])
def test_m21_a_nul_is_refused(environment: str, tmp_path: Path, mode: str) -> None:
    async def go() -> None:
        async with tool(environment, tmp_path, mode=mode) as tool_:
            with pytest.raises((ShellExecutionError, ShellCommandError)):
                await tool_.run("echo a\0b")
            assert (await tool_.run("echo fine")).stdout.strip() == "fine"

    run(go())


def test_m22_a_child_that_ignores_signals_ends(
    environment: str, tmp_path: Path, mark: str
) -> None:
    tool_ = tool(environment, tmp_path, mode="stateless", env=dict([mark.split("=")]))
    (result,) = commands(tool_, "trap '' INT TERM; sleep 60; sleep 60", timeout=1.0)
    assert result.timed_out
    assert_gone(mark)


def test_binary_output_is_replaced(environment: str, tmp_path: Path) -> None:
    for mode in ("persistent", "stateless"):
        (result,) = commands(tool(environment, tmp_path, mode=mode), r"printf 'a\377b'")
        assert result.stdout == "a\ufffdb"


def test_the_sandbox_writes_nowhere_else(sandbox: str, tmp_path: Path) -> None:
    workdir = tmp_path / "work"
    workdir.mkdir()
    canary = tmp_path / "canary"
    (result,) = commands(
        tool(sandbox, workdir), f"touch {canary}; touch inside; ls"
    )
    assert not canary.exists()
    assert (workdir / "inside").exists()
    assert "inside" in result.stdout


def test_in_memory() -> None:
    tool_ = LocalShellTool(environment="memory", workdir="/work")
    results = commands(tool_, "X=1; echo text > file; cd /", 'cat file; echo "$X"; pwd; (exit 3)')
    assert (results[1].stdout, results[1].exit_code) == ("text\n1\n/work", 3)
    stateless = LocalShellTool(environment="memory", mode="stateless", workdir="/work")
    assert commands(stateless, "pwd")[0].stdout == "/work\n"


def test_further_keywords_reach_the_environment(tmp_path: Path) -> None:
    tool_ = LocalShellTool(workdir=tmp_path, shieling={"deny": ["id"]})

    async def go() -> None:
        async with tool_:
            with pytest.raises(ShellCommandError, match="Command rejected by policy: .*`id` is denied"):
                await tool_.run("true && id")

    run(go())


@pytest.mark.parametrize("mode", ["persistent", "stateless"])
def test_one_tool_serves_several_event_loops(mode: Any, environment: str, tmp_path: Path) -> None:
    tool = LocalShellTool(
        mode=mode, workdir=str(tmp_path), environment=environment, acknowledge_unsafe=True, approval_mode="never_require"
    )
    found: list[str] = []
    threads = [
        threading.Thread(target=lambda number=number: found.append(run(tool.run(f"sleep 0.1; echo {number}")).stdout))
        for number in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    run(tool.close())
    assert sorted(text.strip() for text in found) == ["0", "1", "2", "3"]
