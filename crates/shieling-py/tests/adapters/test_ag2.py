"""AG2's adapter: what AG2's users rely on, and AG2's weaknesses, none of which the adapter has."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from confined import need

from shieling import DeniedError
from shieling.adapters.ag2 import (
    CallableFactory,
    CodeAdapter,
    CodeEnvironment,
    CodeRunResult,
    ExecResult,
    LanguageRunner,
    LocalEnvironment,
    LocalSandbox,
    LocalShellEnvironment,
    LocalShellTool,
    Sandbox,
    SandboxBase,
    SandboxCodeTool,
    SandboxFactory,
    SandboxShellTool,
    ShellAdapter,
    ShellEnvironment,
    check_ignore,
    matches,
    matches_argv,
)

IGNORE = ["**/.env", "*.key", "secrets/**"]
SECRET = "hunter2"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A directory with a repository, a few files, and secrets."""
    root = tmp_path / "place"
    (root / "secrets").mkdir(parents=True)
    (root / "a.txt").write_text("alpha\n")
    (root / "f").write_text("kept\n")
    (root / ".env").write_text(f"{SECRET}\n")
    (root / "k.key").write_text(f"{SECRET}\n")
    (root / "secrets" / "k").write_text(f"{SECRET}\n")
    os.link(root / ".env", root / "hard")
    (root / "plink").symlink_to("/etc/passwd")
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "init.defaultBranch=main"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "first"]):
        subprocess.run([*git, *words], cwd=root, check=True)
    return root


def names(root: Path) -> set[str]:
    return {entry.name for entry in root.iterdir()}


def alive(word: str) -> bool:
    return subprocess.run(["pgrep", "-f", word], capture_output=True, check=False).returncode == 0


def gone(word: str) -> bool:
    """Whether no process has `word` in its command line, within the time that the kernel may take to reap one."""
    until = time.monotonic() + 10
    while alive(word):
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True


# What AG2 0.12 documents


def test_without_a_path_there_is_a_temporary_directory() -> None:
    env = LocalShellEnvironment()
    assert env.workdir.is_dir() and env.workdir.name.startswith("ag2_shell_")


def test_a_path_is_created_and_is_the_working_directory(tmp_path: Path) -> None:
    env = LocalShellEnvironment(tmp_path / "a" / "b")
    assert env.workdir == tmp_path / "a" / "b" and env.workdir.is_dir()
    assert env.run("pwd") == str(env.workdir)
    with pytest.raises(AttributeError):
        env.workdir = tmp_path  # type: ignore[misc]


@pytest.mark.parametrize(
    ("options", "kept"), [("", False), ("cleanup=False", True), ("path=P", True), ("path=P, cleanup=True", False)]
)
def test_cleanup_is_for_the_end_of_the_process(tmp_path: Path, options: str, kept: bool) -> None:
    code = f"""
        from shieling.adapters.ag2 import LocalShellEnvironment
        P = {str(tmp_path / "given")!r}
        env = LocalShellEnvironment({options})
        print(env.workdir, end="")
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True)
    assert Path(done.stdout).exists() is kept


@pytest.mark.parametrize(
    ("command", "answer"),
    [
        ("echo hello", "hello"),
        ("echo '  out  '", "out"),
        ("echo out; echo err >&2", "out\nerr"),
        ("false", "[exit code: 1]"),
        ("echo out; exit 3", "out\n[exit code: 3]"),
        ("kill -9 $$", "[exit code: -9]"),
        ("printf 'a\\r\\nb\\rc'", "a\nb\nc"),
        ("true", ""),
    ],
)
def test_output_and_exit_code_have_ag2s_form(tmp_path: Path, command: str, answer: str) -> None:
    assert LocalShellEnvironment(tmp_path).run(command) == answer


def test_files_stay_between_commands_and_variables_do_not(tmp_path: Path) -> None:
    env = LocalShellEnvironment(tmp_path)
    assert env.run("echo 1 > f; cd /; export X=1") == ""
    assert env.run("cat f; pwd; echo $X") == f"1\n{tmp_path}"


def test_variables_are_laid_over_those_of_the_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    env = LocalShellEnvironment(tmp_path, env={"SHIELING_A": "given"})
    monkeypatch.setenv("SHIELING_A", "host")
    monkeypatch.setenv("SHIELING_B", "host")
    assert env.run("echo $SHIELING_A $SHIELING_B") == "given host"


def test_a_timeout_has_ag2s_words(tmp_path: Path) -> None:
    assert LocalShellEnvironment(tmp_path, timeout=1).run("sleep 20") == "Command timed out after 1s\n[exit code: 124]"


@pytest.mark.parametrize("timeout", [0, 0.0, -0.5])
def test_without_time_a_command_is_timed_out(tmp_path: Path, timeout: float) -> None:
    answer = LocalShellEnvironment(tmp_path, timeout=timeout).run("touch f")
    assert answer == f"Command timed out after {timeout}s\n[exit code: 124]"


@pytest.mark.parametrize("timeout", ["1", "1.0", Decimal(1), True])
def test_a_timeout_is_what_float_takes(tmp_path: Path, timeout: Any) -> None:
    assert LocalShellEnvironment(tmp_path, timeout=timeout).run("echo a") == "a"
    assert LocalShellEnvironment(tmp_path, timeout=timeout).run("sleep 20") == "Command timed out after 1s\n[exit code: 124]"
    sandbox = LocalSandbox(tmp_path, timeout=timeout)
    assert asyncio.run(sandbox.exec(["sleep", "20"])) == ExecResult("Command timed out after 1s", 124)
    other = LocalSandbox(tmp_path)
    assert asyncio.run(other.exec(["sleep", "20"], timeout=timeout)) == ExecResult("Command timed out after 1s", 124)


@pytest.mark.parametrize("timeout", ["x", "", [], float("nan"), 10**400])
def test_a_timeout_that_is_no_number_is_refused_at_once(tmp_path: Path, timeout: Any) -> None:
    for kind in (LocalShellEnvironment, LocalSandbox):
        with pytest.raises(ValueError, match="^`timeout` is .*, and has to be a number of seconds$"):
            kind(tmp_path / "new", timeout=timeout)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("timeout", [None, 20, 20.5, 10.0**12, float("inf")])
def test_a_timeout_is_a_number_or_no_limit(tmp_path: Path, timeout: float | None) -> None:
    assert LocalShellEnvironment(tmp_path, timeout=timeout).run("echo a") == "a"
    assert LocalShellEnvironment(tmp_path, timeout=timeout, blocked=["rm"], environment=need("sandbox")).run("echo a") == "a"
    sandbox = LocalSandbox(tmp_path, timeout=20)
    assert asyncio.run(sandbox.exec(["echo", "a"], timeout=timeout)) == ExecResult("a", 0)
    assert asyncio.run(ShellAdapter(sandbox, timeout=timeout).run("echo a")) == "a"
    assert asyncio.run(CodeAdapter(sandbox, timeout=timeout).run("echo a", "bash")).output == "a"


def test_an_empty_list_of_hidden_paths_hides_nothing(place: Path) -> None:
    env = LocalShellEnvironment(place, ignore=[])
    assert env.run("cat $(echo a.txt)") == "alpha"
    assert env.run("x=a.txt; cat `echo $x`") == "alpha"
    assert env.run("cat .env") == env.run("cat $(echo .env)") == SECRET
    # What the text names is held to the directory, as by AG2.
    assert env.run("cat /etc/hostname") == "Access denied: /etc/hostname"
    assert asyncio.run(ShellAdapter(LocalSandbox(place), ignore=[], shell=True).run("cat $(echo a.txt)")) == "alpha"
    assert LocalShellEnvironment(place, ignore=[".env"]).run("cat $(echo a.txt)").startswith("Access denied")


@pytest.mark.parametrize(
    ("variables", "error"),
    [({"A": 1}, TypeError), ({1: "a"}, TypeError), ({"A=": "x"}, ValueError), ({"A": "x\0"}, ValueError)],
)
def test_variables_that_no_process_can_have_raise(tmp_path: Path, variables: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        LocalShellEnvironment(tmp_path, env=variables).run("true")
    with pytest.raises(error):
        asyncio.run(LocalSandbox(tmp_path, env_vars=variables).exec(["true"]))
    with pytest.raises(error):
        asyncio.run(LocalSandbox(tmp_path).exec(["true"], env=variables))


def test_variables_of_the_process_have_any_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("my.var", "a-b", "1x", "é"):
        monkeypatch.setenv(name, "host")
    monkeypatch.setenv("my.token", "hunter2")
    monkeypatch.setenv("BASH_FUNC_ls%%", "() { echo function; }")
    shown = LocalShellEnvironment(tmp_path).run("ls; env")
    assert {"my.var=host", "a-b=host", "1x=host", "é=host"} <= set(shown.splitlines())
    assert "function" not in shown and "hunter2" not in shown
    assert asyncio.run(LocalSandbox(tmp_path).exec(["printenv", "my.var"])) == ExecResult("host", 0)


def test_filters_can_be_changed_afterwards(place: Path) -> None:
    env = LocalShellEnvironment(place, allowed=["ls"], ignore=IGNORE)
    assert env.run("echo 1") == "Command not allowed: 'echo 1'"
    env._allowed.append("echo")  # type: ignore[union-attr]
    assert env.run("echo 1") == "1"
    env._allowed, env._blocked = None, ["echo"]
    assert env.run("cat a.txt") == "alpha" and env.run("echo 1") == "Command not allowed: 'echo 1'"
    env._ignore = ["a.txt"]
    assert env.run("cat a.txt") == f"Access denied: {place}/a.txt" and env._blocked == ["echo"]
    env._blocked = env._ignore = None
    assert env.run("echo 1; cat .env") == f"1\n{SECRET}"
    adapter = ShellAdapter(LocalSandbox(place), readonly=True)
    assert asyncio.run(adapter.run("touch new")) == "Command not allowed: 'touch new'"
    adapter._allowed = ["touch"]
    assert asyncio.run(adapter.run("touch new")) == "" and (place / "new").exists()


def test_truncation_keeps_exactly_the_characters_that_were_asked_for(tmp_path: Path) -> None:
    env = LocalShellEnvironment(tmp_path, max_output=10)
    assert env.run("printf '%s' abcdefghijklmn") == "abcdefghij\n[truncated: showing first 10 of 14 chars]"
    assert env.run("printf '%s' ääääääääääää") == "ääääääääää\n[truncated: showing first 10 of 12 chars]"
    assert env.run("printf '%s' abcdefghij") == "abcdefghij"


@pytest.mark.parametrize("command", ["git status", "git", "  git status  "])
def test_an_allowed_command_runs(place: Path, command: str) -> None:
    assert "not allowed" not in LocalShellEnvironment(place, allowed=["git"]).run(command)


@pytest.mark.parametrize("command", ["rm f", "gitk", "ls"])
def test_a_command_that_is_not_allowed_is_refused_in_ag2s_words(place: Path, command: str) -> None:
    assert LocalShellEnvironment(place, allowed=["git"]).run(command) == f"Command not allowed: {command!r}"
    assert LocalShellEnvironment(place, allowed=[]).run(command) == f"Command not allowed: {command!r}"


def test_a_blocked_command_is_refused_in_ag2s_words_and_others_run(place: Path) -> None:
    env = LocalShellEnvironment(place, blocked=["rm"])
    assert env.run("rm f") == "Command not allowed: 'rm f'"
    assert env.run("echo rm") == "rm"
    assert (place / "f").exists()


def test_blocked_goes_before_allowed(place: Path) -> None:
    env = LocalShellEnvironment(place, allowed=["git"], blocked=["git status"])
    assert env.run("git status") == "Command not allowed: 'git status'"
    assert "not allowed" not in env.run("git log")


def test_an_explicit_allow_list_goes_before_readonly(place: Path) -> None:
    env = LocalShellEnvironment(place, allowed=["touch"], readonly=True)
    assert env.run("touch new") == ""
    assert (place / "new").exists()
    assert env.run("cat a.txt") == "Command not allowed: 'cat a.txt'"


@pytest.mark.parametrize(
    "command",
    [
        "cat a.txt",
        "ls",
        "grep alpha a.txt",
        "git log",
        "cat a.txt | sort | head -1",
        "find . -name a.txt",
        "for f in *.txt; do cat $f; done",
        "cat *.txt",
        "ls $PWD",
    ],
)
def test_readonly_lets_commands_read(place: Path, command: str) -> None:
    answer = LocalShellEnvironment(place, readonly=True).run(command)
    assert "not allowed" not in answer and "denied" not in answer


def test_a_hidden_path_and_one_outside_are_refused_in_ag2s_words(place: Path) -> None:
    env = LocalShellEnvironment(place, ignore=IGNORE)
    assert env.run("cat .env") == f"Access denied: {place}/.env"
    assert env.run("cat ./secrets/k") == f"Access denied: {place}/secrets/k"
    assert env.run("cat /etc/passwd") == "Access denied: /etc/passwd"
    assert env.run("cat a.txt") == "alpha"


def test_a_runner_that_is_allowed_by_name_may_run_what_it_is_given(tmp_path: Path) -> None:
    program = tmp_path / "uv"
    program.write_text('#!/bin/sh\nshift; exec "$@"\n')
    program.chmod(0o755)
    env = LocalShellEnvironment(tmp_path, allowed=["uv run"], env={"PATH": f"{tmp_path}:{os.environ['PATH']}"})
    assert env.run("uv run echo hello") == "hello"
    assert env.run("uv add x") == "Command not allowed: 'uv add x'"
    assert "not allowed" in env.run("uv run echo hello; touch x")


def test_a_shell_that_is_allowed_with_its_option_may_run_what_it_is_given(place: Path) -> None:
    for run in (
        LocalShellEnvironment(place, allowed=["sh -c"], blocked=["rm"], ignore=IGNORE).run,
        lambda command: asyncio.run(
            ShellAdapter(LocalSandbox(place), allowed=["sh -c"], blocked=["rm"], ignore=IGNORE).run(command)
        ),
    ):
        assert run('sh -c "echo 1; cat a.txt"') == "1\nalpha"
        assert "`rm` is denied" in run('sh -c "rm f"') and (place / "f").exists()
        assert run('sh -c "cat .env"').startswith(f"Access denied: {place}/.env")
        assert "not allowed" in run('sh -c "echo 1"; touch x')
    assert "not allowed" in LocalShellEnvironment(place, allowed=["sh"]).run('sh -c "echo 1"')
    assert "not allowed" in LocalShellEnvironment(place, allowed=["git -c"]).run("git -c alias.x='!touch pwn' x")


def test_the_tool_has_ag2s_name_description_and_working_directory(tmp_path: Path) -> None:
    tool = LocalShellTool(tmp_path / "made")
    assert tool.name == "run_shell_command" and tool.workdir == tmp_path / "made" and tool.workdir.is_dir()
    with pytest.raises(AttributeError):
        tool.workdir = tmp_path  # type: ignore[misc]
    assert LocalShellTool(LocalShellEnvironment(tmp_path), "other").name == "other"
    assert LocalShellTool().workdir.name.startswith("ag2_shell_")


def test_any_object_with_workdir_and_run_is_a_shell_environment(tmp_path: Path) -> None:
    class Own:
        workdir = tmp_path

        def run(self, command: str) -> str:
            return command

    own = Own()
    assert isinstance(own, ShellEnvironment) and isinstance(LocalShellEnvironment(tmp_path), ShellEnvironment)
    assert LocalShellEnvironment.ensure_env(own) is own
    assert LocalShellEnvironment.ensure_env(None).workdir.name.startswith("ag2_shell_")
    with pytest.raises(TypeError):
        LocalShellEnvironment.ensure_env(123)  # type: ignore[arg-type]
    assert LocalShellTool(own).workdir == tmp_path


def test_the_functions_compare_as_ag2s_do(place: Path) -> None:
    assert matches("git", "git status") and matches("git", " git ") and not matches("git", "gitk")
    assert not matches("git", "git\tstatus")
    assert matches_argv("git log", ["git", "log"]) and not matches_argv("git log", ["git", "-c", "x", "log"])
    assert check_ignore("cat a.txt", place, IGNORE) is None
    assert check_ignore("dd of=.env", place, IGNORE) == f"Access denied: {place}/.env"
    assert check_ignore("cat -n.env", place, IGNORE) == f"Access denied: {place}/.env"
    assert check_ignore("cat ../x", PurePosixPath("/work"), IGNORE) == "Access denied: /x"


# AG2 0.12's weaknesses


@pytest.mark.parametrize(
    "command",
    [
        "ls && touch A1; ls A1",
        "ls | sh -c 'echo x'",
        "ls $(echo /etc/hostname)",
        "git -c alias.x='!echo pwn' x",
        "ls > A1",
        "ls\ntouch A1",
        "ls\rtouch A1",
        "ls & touch A1",
        "ls <(touch A1)",
    ],
)
def test_an_allowed_head_grants_nothing_but_itself(place: Path, command: str) -> None:
    answer = LocalShellEnvironment(place, allowed=["git", "ls"]).run(command)
    assert answer.startswith(f"Command not allowed: {command!r}") and "pwn" not in answer.partition("\n")[0].replace(
        repr(command), ""
    )
    assert "A1" not in names(place)


@pytest.mark.parametrize(
    "command", ["true", "false", "exit 4", "export A=1", "cd sub && ls", "x=1", "[[ a ]]", "test -f a.txt && ls", "/bin/ls"]
)
@pytest.mark.parametrize("filters", [{"allowed": ["git", "ls"]}, {"readonly": True}, {"allowed": []}])
def test_the_list_names_the_first_command(place: Path, command: str, filters: dict[str, Any]) -> None:
    assert LocalShellEnvironment(place, **filters).run(command) == f"Command not allowed: {command!r}"


@pytest.mark.parametrize("filters", [{"blocked": ["rm"]}, {"ignore": [".env"]}, {"blocked": []}])
@pytest.mark.parametrize("command", ["", "  "])
def test_an_empty_text_is_refused_by_a_list_alone(place: Path, command: str, filters: dict[str, Any]) -> None:
    assert LocalShellEnvironment(place, **filters).run(command) == ""
    assert LocalShellEnvironment(place, allowed=["ls"]).run(command) == f"Command not allowed: {command!r}"


@pytest.mark.parametrize(
    "command",
    [
        "/bin/rm f",
        "echo x; rm f",
        "\\rm f",
        "env rm f",
        "r''m f",
        "rm\tf",
        "X=1 rm f",
        "command rm f",
        "true && rm f",
        "rm f;",
        "echo f | xargs rm",
        "sh -c 'rm f'",
        "busybox rm f",
        "nice rm f",
        "timeout 5 rm f",
        "find . -name f -exec rm {} +",
    ],
)
def test_a_blocked_program_is_refused_however_it_is_called(place: Path, command: str) -> None:
    assert LocalShellEnvironment(place, blocked=["rm"]).run(command).startswith("Command not allowed")
    assert (place / "f").exists()


@pytest.mark.parametrize(
    "command",
    [
        "echo x > F",
        "find . -exec touch F \\;",
        "env touch F",
        "sort -o F a.txt",
        "uniq a.txt F",
        "git branch newb",
        "git diff --output=F",
        "cat a.txt; touch F",
    ],
)
def test_readonly_changes_nothing(place: Path, command: str) -> None:
    assert LocalShellEnvironment(place, readonly=True).run(command).startswith("Command not allowed")
    assert "F" not in names(place)
    branches = subprocess.run(["git", "branch"], cwd=place, capture_output=True, text=True, check=True)
    assert "newb" not in branches.stdout


@pytest.mark.parametrize(
    "command",
    [
        "cat /etc/hostname",
        "cat /proc/self/environ",
        "cat ../x",
        "ls /",
        "cat ~/.bashrc",
        "cat ~root/.bashrc",
        "cat $(echo /etc/passwd)",
        "cat `echo /etc/passwd`",
        "for f in /etc/passwd; do cat $f; done",
        'echo /etc/passwd | while read p; do cat "$p"; done',
        'cat "${X:-/etc/passwd}"',
        "echo /etc/passwd | xargs cat",
        "cat /e*/passwd",
        "cat pli*",
        "cd ..; cat outside",
        "cat <(cat /etc/passwd)",
        "cut -d: -f1 /etc/passwd",
        "git -C /etc log",
    ],
)
def test_readonly_reads_nothing_outside_the_directory(place: Path, command: str) -> None:
    answer = LocalShellEnvironment(place, readonly=True).run(command)
    assert answer.startswith(("Access denied: ", "Command not allowed: ")) and "root:" not in answer


LEAKS = [
    "cat .e*",
    "cat .en?",
    "cat .env;",
    "cat<.env",
    "F=.env; cat $F",
    "cat $(echo .e)nv",
    "cd secrets && cat k",
    "grep -r hunter .",
    "git show HEAD:.env",
    "git log -p",
    "bash -c 'cat .env'",
    "find . -name '*env' -exec cat {} +",
    "python3 -c \"print(open('.env').read())\"",
    "ls secrets",
    "cat ~/.bashrc",
    "cp -r . /tmp/shieling-test-copy",
    "cat hard",
]


def test_a_hidden_file_may_not_even_be_named(place: Path) -> None:
    env = LocalShellEnvironment(place, ignore=IGNORE)
    assert env.run("echo .env") == f"Access denied: {place}/.env"
    assert env.run("echo /etc") == "/etc"


@pytest.mark.parametrize("command", ["nosuch", "nosuch x", "./nosuch", "sub/nosuch"])
def test_a_program_that_is_not_there_reads_no_hidden_file(place: Path, command: str) -> None:
    assert LocalShellEnvironment(place, ignore=IGNORE).run(command).endswith("[exit code: 127]")
    answer = asyncio.run(ShellAdapter(LocalSandbox(place), ignore=IGNORE).run(command))
    name = command.split()[0]
    assert answer == f"Command not found: [Errno 2] No such file or directory: {name!r}\n[exit code: 127]"


@pytest.mark.parametrize(
    "command",
    [
        *("mytool x", "./bin/mytool", "cd bin; ./mytool", "PATH=bin mytool", "nosuch | mytool", "cd bin && mytool"),
        *("bin/m?tool", "b*/mytool", "$T x", "'bin/mytool'", "command mytool", "hash -p bin/mytool nosuch; nosuch"),
    ],
)
@pytest.mark.parametrize("directory", ["bin", "{place}/bin"])
def test_a_program_that_is_not_known_is_refused_and_is_no_file(place: Path, command: str, directory: str) -> None:
    (place / "bin").mkdir()
    (place / "bin/mytool").write_text("#!/bin/sh\ncat .env ../.env\n")
    (place / "bin/mytool").chmod(0o755)
    variables = {"PATH": f"{directory.format(place=place)}:{os.environ['PATH']}", "T": "bin/mytool"}
    told = [LocalShellEnvironment(place, ignore=IGNORE, env=variables).run(command)]
    for adapter in (
        ShellAdapter(LocalSandbox(place, env_vars=variables), ignore=IGNORE),
        ShellAdapter(LocalSandbox(place), ignore=IGNORE, env=variables),
    ):
        told.append(asyncio.run(adapter.run(command)))
    for answer in told:
        refused = answer.startswith(("Access denied: ", "Command not allowed"))
        assert (refused or answer.startswith("Command not found: ")) and SECRET not in answer
        assert f"Access denied: {place}/mytool" not in answer


@pytest.mark.parametrize(
    "command",
    [
        "(cd sub); cat ../outside.txt",
        "cd sub | cat ../outside.txt",
        "cd nosuch; cat ../outside.txt",
        "false && cd sub; cat ../outside.txt",
        "f() { cd sub; }; cat ../outside.txt",
        "cd sub && sleep 0 & cat ../outside.txt",
        "cd; cat .profile",
    ],
)
def test_a_change_of_directory_that_may_not_happen_opens_no_way_out(place: Path, command: str) -> None:
    (place / "sub").mkdir()
    (place.parent / "outside.txt").write_text(f"{SECRET}\n")
    answer = LocalShellEnvironment(place, ignore=IGNORE).run(command)
    assert answer.startswith("Access denied: ") and SECRET not in answer
    assert LocalShellEnvironment(place, ignore=IGNORE).run("cd sub && cat ../a.txt") == "alpha"
    adapter = ShellAdapter(LocalSandbox(place), ignore=IGNORE, shell=True)
    assert asyncio.run(adapter.run(command)).startswith("Access denied: ")
    assert asyncio.run(adapter.run("cd sub && cat ../a.txt")) == "alpha"


@pytest.mark.parametrize("command", LEAKS)
def test_ignored_files_do_not_leak(place: Path, command: str) -> None:
    answer = LocalShellEnvironment(place, ignore=IGNORE).run(command)
    assert "denied" in answer.lower() or "not allowed" in answer
    assert SECRET not in answer


@pytest.mark.parametrize(
    "command",
    [
        "diff a.txt /dev/null",
        "grep -e /x a.txt",
        "echo a/../../b",
        "mkdir -p s; cd s; ls",
        "ls",
        "git status",
    ],
)
def test_ignore_lets_ordinary_commands_pass(place: Path, command: str) -> None:
    answer = LocalShellEnvironment(place, ignore=IGNORE).run(command)
    assert "denied" not in answer.lower() and "not allowed" not in answer


@pytest.mark.parametrize("command", ["ls *.txt", "cat a.txt | wc -l", "ls $HOME", "find . -name a.txt -exec cat {} ;"])
def test_filters_leave_the_shell_in_place(place: Path, command: str) -> None:
    command = command.replace("{} ;", "{} \\;")
    env = LocalShellEnvironment(place, allowed=["ls", "cat", "wc", "find"])
    assert "not allowed" not in env.run(command)


# Weaknesses of both versions: processes, output, errors


@pytest.mark.parametrize(
    "command",
    ["sh -c 'sleep 7641; echo z'", "sleep 7641 & wait", "echo partial; sleep 7641", "setsid sleep 7641 & wait"],
)
def test_a_timeout_ends_everything_and_keeps_the_output(tmp_path: Path, command: str) -> None:
    answer = LocalShellEnvironment(tmp_path, timeout=1).run(command)
    assert answer.endswith("Command timed out after 1s\n[exit code: 124]")
    assert answer.startswith("partial\n") is ("partial" in command)
    assert gone("sleep 7641")


def test_a_background_child_does_not_hold_the_command(tmp_path: Path) -> None:
    start = time.monotonic()
    assert LocalShellEnvironment(tmp_path, timeout=30).run("sleep 7642 & echo started") == "started"
    assert time.monotonic() - start < 25
    assert gone("sleep 7642")


def test_commands_do_not_read_the_hosts_input(tmp_path: Path) -> None:
    env = LocalShellEnvironment(tmp_path)
    reader, writer = os.pipe()
    kept = os.dup(0)
    os.dup2(reader, 0)
    try:
        os.write(writer, b"the host's\n")
        assert env.run("cat; read x; echo done") == "done"
        assert os.read(0, 100) == b"the host's\n"
    finally:
        os.dup2(kept, 0)
        for one in (reader, writer, kept):
            os.close(one)


@pytest.mark.parametrize("command", ["printf 'a\\377b'", "tar cf - .", "head -c 100 /dev/urandom"])
def test_output_that_is_no_utf8_is_given_with_replacements(tmp_path: Path, command: str) -> None:
    answer = LocalShellEnvironment(tmp_path).run(command)
    assert "exit code" not in answer
    if command.startswith("printf"):
        assert answer == "a\ufffdb"


def test_a_nul_in_a_command_is_answered(tmp_path: Path) -> None:
    answer = LocalShellEnvironment(tmp_path).run("echo a\0b")
    assert answer.endswith("[exit code: 126]") and answer.startswith("Command not")


def test_a_long_command_runs(tmp_path: Path) -> None:
    assert LocalShellEnvironment(tmp_path).run(f"true {'x' * 200_000}; echo done") == "done"


def test_a_program_that_cannot_be_executed_is_answered(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("x")
    assert LocalShellEnvironment(tmp_path).run("./data").endswith("[exit code: 126]")


def test_a_directory_that_is_gone_is_named(tmp_path: Path) -> None:
    env = LocalShellEnvironment(tmp_path / "gone")
    env.workdir.rmdir()
    assert env.run("echo x") == f"Working directory not found: {tmp_path}/gone\n[exit code: 126]"


def test_much_output_takes_little_memory(tmp_path: Path) -> None:
    code = """
        import resource
        from shieling.adapters.ag2 import LocalShellEnvironment
        env = LocalShellEnvironment()
        env.run("true")
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        answer = env.run("yes | head -c 200M")
        assert answer.endswith("[truncated: showing first 100000 of 209715199 chars]"), answer[-100:]
        print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) <= 40


def test_truncation_keeps_the_end_of_standard_error(tmp_path: Path) -> None:
    answer = LocalShellEnvironment(tmp_path, max_output=100).run("seq 1000; echo the reason >&2; exit 7")
    assert answer.endswith("the reason\n[exit code: 7]")
    assert "[truncated: showing first 100 of " in answer


def test_credentials_of_the_host_are_not_passed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "DB_PASSWORD"):
        monkeypatch.setenv(name, SECRET)
    monkeypatch.setenv("DATABASE_URL", f"postgres://me:{SECRET}@db/x")
    assert SECRET not in LocalShellEnvironment(tmp_path).run("env; cat /proc/self/environ")
    assert SECRET in LocalShellEnvironment(tmp_path, host_env="all").run("env")
    assert SECRET in LocalShellEnvironment(tmp_path, env={"OPENAI_API_KEY": SECRET}).run("env")


# AG2 1.x


def run(call: Any) -> Any:
    return asyncio.run(call)


def sandboxed(work: Callable[[LocalEnvironment], Any], *args: Any, **options: Any) -> Any:
    async def all_of_it() -> Any:
        env = LocalEnvironment(*args, **options)
        try:
            return await work(env)
        finally:
            await env.aclose()

    return run(all_of_it())


def exec_in(path: Path, argv: list[str], **options: Any) -> ExecResult:
    return sandboxed(lambda env: env.sandbox.exec(argv, **options), path)


@pytest.mark.parametrize(
    ("argv", "result"),
    [
        (["echo", " hello "], ("hello", 0)),
        (["echo", "a  b;", "$HOME"], ("a  b; $HOME", 0)),
        ([], ("", 2)),
        (["sh", "-c", "echo out; echo err >&2; exit 3"], ("out\nerr", 3)),
        (["sh", "-c", "kill -9 $$"], ("", -9)),
    ],
)
def test_exec_gives_output_and_exit_code(tmp_path: Path, argv: list[str], result: tuple[str, int]) -> None:
    found = exec_in(tmp_path, argv)
    assert (found.output, found.exit_code) == result


@pytest.mark.parametrize("words", [["exit", "3"], ["cd", "/"], ["export", "A=1"], ["eval", "exit 0"], ["if"], ["A=1"]])
def test_exec_runs_programs_and_no_builtins_of_a_shell(tmp_path: Path, words: list[str]) -> None:
    found = exec_in(tmp_path, words)
    assert found == ExecResult(f"Command not found: [Errno 2] No such file or directory: {words[0]!r}", 127)


@pytest.mark.parametrize("words", [["echo", b"a b"], [Path("/bin/echo"), Path("a b")], (PurePosixPath("echo"), "a b")])
def test_exec_takes_words_as_subprocess_does(tmp_path: Path, words: Any) -> None:
    assert exec_in(tmp_path, words) == ExecResult("a b", 0)


def test_exec_takes_a_text_for_the_name_of_a_program(tmp_path: Path) -> None:
    text: Any = "true"
    assert exec_in(tmp_path, text) == ExecResult("", 0)
    text = "echo hi"
    told = "Command not found: [Errno 2] No such file or directory: 'echo hi'"
    assert exec_in(tmp_path, text) == ExecResult(told, 127)


def test_exec_refuses_a_word_that_is_none(tmp_path: Path) -> None:
    words: Any = ["echo", 1]
    with pytest.raises(TypeError, match="expected str, bytes or os.PathLike object, not int"):
        exec_in(tmp_path, words)


def test_exec_of_the_name_of_a_directory_finds_no_program(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    assert exec_in(tmp_path, ["sub"]).exit_code == 127
    assert exec_in(tmp_path, ["./sub"]).exit_code == 126


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["bash", "-c", "./missing.sh"], "./missing.sh"),
        (["/usr/bin/env", "python9"], "python9"),
        (["sh", "-c", "exec nosuch"], "nosuch"),
    ],
)
def test_what_a_program_says_of_another_one_stays_its_own(tmp_path: Path, words: list[str], told: str) -> None:
    found = exec_in(tmp_path, words)
    assert found.exit_code == 127 and told in found.output and not found.output.startswith("Command not found")


@pytest.mark.parametrize("name", ["BASH_FUNC_exec%%", "BASH_FUNC_printenv%%"])
def test_exec_runs_no_function_that_a_variable_defines(tmp_path: Path, name: str) -> None:
    found = exec_in(tmp_path, ["printenv", "A"], env={"A": "1", name: "() { touch started; }"})
    assert found == ExecResult("1", 0) and not (tmp_path / "started").exists()


@pytest.mark.parametrize("name", ["BASH_ENV", "ENV", "SHELLOPTS", "BASHOPTS", "IFS", "PPID", "OLDPWD", "BASH_COMPAT"])
def test_exec_hands_variables_of_shells_over_without_obeying_them(tmp_path: Path, name: str) -> None:
    (tmp_path / "start").write_text("touch started\n")
    assert exec_in(tmp_path, ["printenv", name], env={name: "./start"}).output == "./start"
    assert not (tmp_path / "started").exists()


def test_exec_hands_words_over_as_they_are_where_somebody_decides(tmp_path: Path) -> None:
    sandbox = LocalSandbox(tmp_path, shieling={"allow": ["ls"]})
    assert asyncio.run(sandbox.exec(["ls", "-d", "."])) == ExecResult(".", 0)
    assert asyncio.run(sandbox.exec(["env"])).exit_code == 126


@pytest.mark.parametrize("rules", [{"readonly": True}, {"ignore": ["a.txt"]}, {"approver": lambda question: False}])
def test_files_are_put_and_removed_within_the_rules(place: Path, rules: dict[str, Any]) -> None:
    sandbox = LocalSandbox(place, shieling={"require_write_approval": "approver" in rules, **rules})
    for call in (sandbox.put_file(PurePosixPath("a.txt"), b"x"), sandbox.remove_file(PurePosixPath("a.txt"))):
        with pytest.raises(DeniedError):
            asyncio.run(call)
    assert (place / "a.txt").read_text() == "alpha\n"


@pytest.mark.parametrize("entry", ["", "  "])
def test_an_entry_without_a_word_names_no_command(place: Path, entry: str) -> None:
    assert LocalShellEnvironment(place, blocked=[entry]).run("cat a.txt") == "alpha"
    assert LocalShellEnvironment(place, allowed=[entry]).run("cat a.txt").startswith("Command not allowed")
    listed = ShellAdapter(LocalSandbox(place), allowed=[entry])
    assert asyncio.run(listed.run("cat a.txt")).startswith("Command not allowed")


def test_exec_of_a_missing_program_gives_127(tmp_path: Path) -> None:
    found = exec_in(tmp_path, ["shieling-no-such-program"])
    assert found.exit_code == 127 and found.output.startswith("Command not found: ")


def test_a_syntax_error_is_told_by_the_shell(tmp_path: Path) -> None:
    for env in (LocalShellEnvironment(tmp_path), LocalShellEnvironment(tmp_path, blocked=[])):
        answer = env.run("sh -c 'echo ('")
        assert "yntax error" in answer and answer.endswith("[exit code: 2]")
    assert exec_in(tmp_path, ["sh", "-c", "echo 'open"]).exit_code == 2
    answer = LocalShellEnvironment(tmp_path, blocked=["rm"]).run("sh -c 'echo ('")
    assert answer.startswith("Command not allowed") and "does not parse" in answer


@pytest.mark.parametrize("program", ["no-such-program", "/nonexistent/x"])
def test_what_is_not_found_is_told_whatever_the_bound(tmp_path: Path, program: str) -> None:
    found = asyncio.run(LocalEnvironment(tmp_path, max_output=4).sandbox.exec([program]))
    assert found.output == f"Command not found: [Errno 2] No such file or directory: {program!r}"
    assert found.exit_code == 127


def test_exec_gives_124_at_a_timeout(tmp_path: Path) -> None:
    found = exec_in(tmp_path, ["sh", "-c", "echo partial; sleep 7643"], timeout=1)
    assert (found.output, found.exit_code) == ("partial\nCommand timed out after 1s", 124)
    assert gone("sleep 7643")


def test_exec_merges_variables(tmp_path: Path) -> None:
    async def work(env: LocalEnvironment) -> ExecResult:
        return await env.sandbox.exec(["sh", "-c", "echo $A $B"], env={"B": "call"})

    assert sandboxed(work, tmp_path, env_vars={"A": "sandbox", "B": "sandbox"}).output == "sandbox call"


def test_a_timeout_of_zero_is_refused() -> None:
    with pytest.raises(ValueError, match="timeout"):
        LocalEnvironment(timeout=0)


def test_the_directory_is_made_at_the_first_use(tmp_path: Path) -> None:
    env = LocalEnvironment(tmp_path / "later")
    assert not (tmp_path / "later").exists()
    assert env.sandbox.workdir == PurePosixPath(tmp_path / "later")
    assert type(env.sandbox.workdir) is PurePosixPath and env.sandbox.host_workdir == tmp_path / "later"
    assert (tmp_path / "later").is_dir()


def test_a_temporary_directory_goes_with_aclose_and_nothing_runs_after_it() -> None:
    async def work() -> None:
        env = LocalEnvironment()
        path = env.sandbox.host_workdir
        assert path.name.startswith("ag2_sandbox_") and path.is_dir()
        await env.aclose()
        await env.aclose()
        assert not path.exists()
        for call in (
            env.sandbox.exec(["true"]),
            env.sandbox.put_file(PurePosixPath("f"), b""),
            env.sandbox.remove_file(PurePosixPath("f")),
        ):
            with pytest.raises(RuntimeError, match="closed"):
                await call

    run(work())


@pytest.mark.parametrize(("path", "words"), [("/etc/x", "Absolute"), ("../x", "escapes"), ("link/x", "escapes")])
def test_files_are_put_below_the_directory_only(tmp_path: Path, path: str, words: str) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "link").symlink_to("/tmp")
    with pytest.raises(ValueError, match=words):
        sandboxed(lambda env: env.sandbox.put_file(PurePosixPath(path), b"x"), tmp_path / "work")


def test_files_are_put_and_removed(tmp_path: Path) -> None:
    async def work(env: LocalEnvironment) -> None:
        await env.sandbox.put_file(PurePosixPath("a/b.txt"), b"data")
        assert (tmp_path / "a" / "b.txt").read_bytes() == b"data"
        await env.sandbox.remove_file(PurePosixPath("a/b.txt"))
        await env.sandbox.remove_file(PurePosixPath("a/b.txt"))
        assert not (tmp_path / "a" / "b.txt").exists()

    sandboxed(work, tmp_path)


def test_the_environment_is_a_factory_and_its_sandbox_a_sandbox(tmp_path: Path) -> None:
    async def work(env: LocalEnvironment) -> None:
        assert isinstance(env, SandboxFactory) and isinstance(env.sandbox, Sandbox)
        async with env.open() as first, env.open(None) as second:
            assert first is second is env.sandbox

    sandboxed(work, tmp_path)


class Recorder:
    """A sandbox of somebody else's that only remembers what it was given."""

    workdir = PurePosixPath("/workspace")
    host_workdir = None

    def __init__(self) -> None:
        self.calls: list[tuple[list[str], dict[str, str] | None, float | None]] = []

    async def exec(
        self, argv: list[str], *, env: dict[str, str] | None = None, timeout: float | None = None
    ) -> ExecResult:
        self.calls.append((argv, env, timeout))
        return ExecResult(output="ran", exit_code=0)

    async def __aenter__(self) -> Recorder:
        return self

    async def __aexit__(self, *_: object) -> None: ...

    async def put_file(self, path: PurePosixPath, content: bytes) -> None: ...

    async def remove_file(self, path: PurePosixPath) -> None: ...

    async def aclose(self) -> None: ...


@pytest.mark.parametrize(
    ("filters", "command", "argv"),
    [
        ({}, "ls | wc", ["sh", "-c", "ls | wc"]),
        ({"allowed": ["git"]}, "git log -5", ["git", "log", "-5"]),
        ({"allowed": ["echo"]}, "echo {a,b} $X *", ["echo", "{a,b}", "$X", "*"]),
        ({"allowed": ["echo"]}, "echo 'a; b' \"c > d\"", ["echo", "a; b", "c > d"]),
        ({"blocked": ["rm"]}, "ls -l", ["ls", "-l"]),
        ({"ignore": IGNORE}, "cat a.txt", ["cat", "a.txt"]),
        ({"readonly": True}, "cat a.txt", ["cat", "a.txt"]),
    ],
)
def test_the_adapter_hands_over_the_words_that_it_judged(
    filters: dict[str, Any], command: str, argv: list[str]
) -> None:
    recorder = Recorder()
    assert run(ShellAdapter(recorder, env={"A": "1"}, timeout=5, **filters).run(command)) == "ran"
    assert recorder.calls == [(argv, {"A": "1"}, 5)]


@pytest.mark.parametrize("filters", [{"readonly": True}, {"ignore": [".env"]}])
def test_words_that_no_shell_reads_are_what_they_say(tmp_path: Path, filters: dict[str, Any]) -> None:
    names_of_files = ("$(id)", "`id`", "$HOME", "a(b", "$x")
    for name in (*names_of_files, ".env"):
        (tmp_path / name).write_text(f"text of {name}")
    adapter = ShellAdapter(LocalSandbox(tmp_path), **filters)
    for name in names_of_files:
        assert run(adapter.run(f"cat '{name}'")) == f"text of {name}"
    assert run(adapter.run("cat '/etc/$x'")).startswith("Access denied")
    assert run(adapter.run("""sh -c 'cat "$(echo .env)"'""")) != "text of .env"
    if "ignore" in filters:
        assert run(adapter.run("cat '$(x)/../.env'")).startswith("Access denied")


@pytest.mark.parametrize(
    ("filters", "command", "words"),
    [
        ({"allowed": ["ls"]}, "ls\ntouch x", "shell syntax is not available in restricted mode"),
        ({"allowed": ["ls"]}, "ls\rtouch x", "shell syntax is not available in restricted mode"),
        ({"allowed": ["ls"]}, "ls & touch x", "shell syntax is not available in restricted mode"),
        ({"allowed": ["ls"]}, "ls <(touch x)", "shell syntax is not available in restricted mode"),
        ({"allowed": ["ls"]}, "rm x", "Command not allowed: 'rm x'"),
        ({"allowed": ["ls"]}, "ls 'x", "unbalanced quotes"),
        ({"blocked": ["rm"]}, "echo x; rm f", "shell syntax is not available in restricted mode"),
        ({"blocked": ["rm"]}, "/bin/rm f", "Command not allowed: '/bin/rm f'"),
        ({"ignore": IGNORE}, "cat .env", "Access denied: /workspace/.env"),
        ({"readonly": True}, "find . -delete", "Command not allowed: 'find . -delete'"),
        # Weaknesses of 1.2.1: all of these reached the backend.
        ({"allowed": ["git"]}, "git -c alias.x='!echo pwn' x", "Command not allowed"),
        ({"allowed": ["git"]}, "git diff --output=G1", "Command not allowed"),
        ({"blocked": ["rm"]}, "env rm f", "Command not allowed"),
        ({"blocked": ["rm"]}, "sh -c 'rm f'", "Command not allowed"),
        ({"blocked": ["rm"]}, "xargs rm", "Command not allowed"),
        ({"blocked": ["rm"]}, "busybox rm f", "Command not allowed"),
        ({"blocked": ["rm"]}, "nice rm f", "Command not allowed"),
        ({"blocked": ["rm"]}, "timeout 5 rm f", "Command not allowed"),
        ({"ignore": IGNORE}, "sh -c 'cat .env'", "Access denied"),
    ],
)
def test_the_adapter_refuses(filters: dict[str, Any], command: str, words: str) -> None:
    recorder = Recorder()
    assert words in run(ShellAdapter(recorder, **filters).run(command))
    assert recorder.calls == []


@pytest.mark.parametrize("command", ["cat /etc/hostname", "cat /proc/self/environ"])
def test_the_adapters_readonly_reads_nothing_outside(place: Path, command: str) -> None:
    answer = sandboxed(lambda env: ShellAdapter(env, readonly=True).run(command), place)
    assert answer.startswith("Access denied: ")


@pytest.mark.parametrize(
    "command",
    [
        "grep -r hunter .",
        "git show HEAD:.env",
        "git log -p",
        "sh -c 'cat .env'",
        "cat .e*",
        "ls secrets",
        "python3 -c \"open('.env')\"",
    ],
)
def test_the_adapters_ignored_files_do_not_leak(place: Path, command: str) -> None:
    answer = sandboxed(lambda env: ShellAdapter(env, ignore=IGNORE).run(command), place)
    assert answer.startswith("Access denied: ") and SECRET not in answer


@pytest.mark.parametrize("command", ["diff a.txt /dev/null", "grep -e /x a.txt", "echo a/../../b"])
def test_the_adapters_ignore_lets_ordinary_commands_pass(place: Path, command: str) -> None:
    assert "denied" not in sandboxed(lambda env: ShellAdapter(env, ignore=IGNORE).run(command), place)


def test_the_adapter_can_give_the_shell_back(place: Path) -> None:
    async def work(env: LocalEnvironment) -> None:
        adapter = ShellAdapter(env, allowed=["ls", "wc"], shell=True)
        assert await adapter.run("ls *.txt | wc -l") == "1"
        assert (await adapter.run("ls; rm f")).startswith("Command not allowed")

    sandboxed(work, place)


def test_the_adapter_shows_the_working_directory(tmp_path: Path) -> None:
    assert ShellAdapter(LocalEnvironment(tmp_path)).workdir == tmp_path
    assert ShellAdapter(Recorder()).workdir == PurePosixPath("/workspace")
    tool = SandboxShellTool(LocalEnvironment(tmp_path), readonly=True)
    assert tool.name == "run_shell_command" and tool.workdir == tmp_path


def test_a_command_can_be_run_without_a_coroutine(tmp_path: Path) -> None:
    adapter = ShellAdapter(LocalEnvironment(tmp_path), blocked=["rm"])
    assert adapter.run_sync("echo a") == "a"
    assert adapter.run_sync("rm f", context=None) == "Command not allowed: 'rm f'"
    assert LocalSandbox(tmp_path).exec_sync(["sh", "-c", "echo $A; exit 3"], env={"A": "b"}).exit_code == 3
    assert ShellAdapter(Recorder()).run_sync("ls") == "ran"

    async def in_a_loop() -> None:
        assert adapter.run_sync("echo a") == "a"
        assert await adapter.run("echo b") == "b"
        for sandbox in (Recorder(), CallableFactory(Recorder)):
            with pytest.raises(RuntimeError, match="cannot be invoked from inside an active event loop"):
                ShellAdapter(sandbox).run_sync("ls")

    asyncio.run(in_a_loop())


def test_a_tool_takes_an_adapter_with_its_filters(tmp_path: Path) -> None:
    adapter = ShellAdapter(LocalEnvironment(tmp_path), allowed=["echo"])
    tool = SandboxShellTool(adapter, name="sh")
    assert (tool._adapter, tool.workdir, tool.name) == (adapter, tmp_path, "sh")
    assert SandboxShellTool(LocalSandbox(tmp_path)).workdir == tmp_path
    for filters in ({"allowed": ["ls"]}, {"blocked": []}, {"ignore": ["x"]}, {"readonly": True}, {"shell": True}):
        with pytest.raises(ValueError, match="not allowed when passing a pre-built ShellAdapter"):
            SandboxShellTool(adapter, **filters)


def test_a_factory_calls_its_function_for_each_sandbox() -> None:
    opened: list[Any] = []
    ended: list[Any] = []

    class Closing(Recorder):
        async def __aexit__(self, *_: object) -> None:
            ended.append(self)

    def plain() -> Recorder:
        opened.append(None)
        return Closing()

    async def with_context(context: Any) -> Recorder:
        opened.append(context)
        return Closing()

    async def work() -> None:
        for builder in (plain, with_context):
            adapter = ShellAdapter(CallableFactory(builder))
            assert await adapter.run("ls", context="context") == "ran"
            assert adapter.workdir == PurePosixPath("/workspace")

    asyncio.run(work())
    assert opened == [None, "context"] and len(set(map(id, ended))) == 2
    assert isinstance(CallableFactory(plain), SandboxFactory)


def test_commands_at_once_do_not_wait_for_each_other(tmp_path: Path) -> None:
    async def work(env: LocalEnvironment) -> list[ExecResult]:
        return await asyncio.gather(
            env.sandbox.exec(["sh", "-c", "until [ -e go ]; do sleep 0.02; done; echo first"]),
            env.sandbox.exec(["sh", "-c", "touch go; echo second"]),
        )

    assert [result.output for result in sandboxed(work, tmp_path)] == ["first", "second"]


def test_cancelling_ends_the_command(tmp_path: Path) -> None:
    async def work(env: LocalEnvironment) -> None:
        task = asyncio.ensure_future(env.sandbox.exec(["sh", "-c", "touch up; sleep 7644"]))
        while not (tmp_path / "up").exists():
            await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    sandboxed(work, tmp_path)
    assert gone("sleep 7644")


# In the sandbox


def test_in_the_sandbox_ignored_files_cannot_be_read(place: Path) -> None:
    env = LocalShellEnvironment(place, ignore=IGNORE, environment=need("sandbox"))
    for command in (
        "grep -r hunter . --exclude-dir=.git",
        "cat .env k.key secrets/*",
        "python3 -c \"print(open('a.txt').read())\"",
    ):
        assert SECRET not in env.run(command)
    assert env.run("cat a.txt") == "alpha"


def test_in_the_sandbox_the_host_is_out_of_reach(place: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").write_text(SECRET)
    env = LocalShellEnvironment(place, environment=need("sandbox"))
    assert SECRET not in env.run(f"cat {tmp_path}/outside; cat ../outside")
    assert env.run("echo x > made; cat made") == "x"
    assert (place / "made").read_text() == "x\n"
    assert exec_in(place, ["echo", "hello"]).output == "hello"


def test_in_the_sandbox_the_new_api_works(place: Path) -> None:
    async def work(env: LocalEnvironment) -> None:
        await env.sandbox.put_file(PurePosixPath("d/x.txt"), b"data")
        found = await env.sandbox.exec(["cat", "d/x.txt"])
        assert (found.output, found.exit_code) == ("data", 0)
        await env.sandbox.remove_file(PurePosixPath("d/x.txt"))
        assert (await env.sandbox.exec(["ls", "d"])).output == ""

    sandboxed(work, place, environment=need("sandbox"))


# Code, for AG2 1.x


def test_code_is_the_last_word_of_its_command() -> None:
    sandbox = Recorder()
    adapter = CodeAdapter(sandbox, timeout=3)
    assert isinstance(adapter, CodeEnvironment) and adapter.supported_languages == ("python", "bash")
    assert asyncio.run(adapter.run("print(1)", "python")) == CodeRunResult(output="ran", exit_code=0)
    asyncio.run(adapter.run("echo 1", "bash"))
    assert sandbox.calls == [(["python", "-c", "print(1)"], None, 3), (["bash", "-c", "echo 1"], None, 3)]
    refused = asyncio.run(adapter.run("1", "javascript"))
    assert refused.exit_code == 2
    assert refused.output == "Language 'javascript' is not enabled. Available: ['python', 'bash']"


@pytest.mark.parametrize("environment", ["local", "sandbox"])
def test_code_in_a_file_leaves_no_file(tmp_path: Path, environment: str) -> None:
    runner = LanguageRunner(file_extension="js", file_runner_argv=("cat",))
    env = LocalEnvironment(tmp_path, environment=need(environment))
    adapter = CodeAdapter(env, languages=("javascript",), runners={"javascript": runner})
    result = asyncio.run(adapter.run("let a;\n", "javascript"))
    assert (result.output, result.exit_code) == ("let a;", 0)
    assert names(tmp_path) == set()


@pytest.mark.parametrize(
    "words",
    [{}, {"inline_argv": ("x",), "file_extension": "y"}, {"file_extension": "y"}, {"file_runner_argv": ("x",)}],
)
def test_a_runner_has_exactly_one_way(words: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="LanguageRunner"):
        LanguageRunner(**words)


def test_a_language_without_a_runner_is_an_error() -> None:
    with pytest.raises(ValueError, match="No LanguageRunner registered for language 'ruby'"):
        CodeAdapter(Recorder(), languages=("ruby",))  # type: ignore[arg-type]
    ready = CodeAdapter(Recorder())
    assert SandboxCodeTool(ready).environment is ready
    with pytest.raises(ValueError, match="`runners` only applies"):
        SandboxCodeTool(ready, runners={})


def test_a_sandbox_has_to_say_where_it_works() -> None:
    with pytest.raises(TypeError, match="abstract"):
        SandboxBase()  # type: ignore[abstract]
