"""GAIA's adapter: what its users rely on, and GAIA's weaknesses, none of which the adapter has."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import re
import time
from pathlib import Path
from typing import Any

import pytest
from confined import need

from shieling.adapters import gaia
from shieling.adapters.gaia import DANGEROUS_SHELL_OPERATORS, ShellToolsMixin
from shieling.adapters.gaia import _mixin as mixin

SECRET = "hunter2"
NEVER = 100_000


class Validator:
    """Allows what is below one directory; takes one argument, as GAIA's."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.asked: list[str] = []

    def is_path_allowed(self, path: str) -> bool:
        self.asked.append(path)
        return Path(path).resolve().is_relative_to(self.root)


class Base:
    def __init__(self, name: str = "base") -> None:
        self.name = name


class Agent(ShellToolsMixin, Base):
    pass


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory: a repository with a few files and a secret."""
    place = tmp_path / "root"
    (place / "sub").mkdir(parents=True)
    (place / "a.txt").write_text("beta\nalpha\n")
    (place / "sub" / "x.py").write_text("x = 1\n")
    (place / ".env").write_text(f"{SECRET}\n")
    (place / "plink").symlink_to("/etc/passwd")
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "init.defaultBranch=main"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "first"]):
        subprocess.run([*git, *words], cwd=place, check=True)
    monkeypatch.chdir(place)
    return place


@pytest.fixture
def agent(root: Path) -> Agent:
    """An agent without a rate limit, that may work in the root."""
    found = Agent()
    found.max_commands_per_10_seconds = found.max_commands_per_minute = NEVER
    found.path_validator = Validator(root)  # type: ignore[attr-defined]
    return found


def gone(word: str) -> bool:
    until = time.monotonic() + 10
    while subprocess.run(["pgrep", "-f", word], capture_output=True, check=False).returncode == 0:
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True


# Results


def test_a_success_has_every_key(agent: Agent, root: Path) -> None:
    result = agent.run_shell_command("cat a.txt")
    assert isinstance(result.pop("duration_seconds"), float)
    assert result == {
        "status": "success",
        "command": "cat a.txt",
        "stdout": "beta\nalpha\n",
        "stderr": "",
        "return_code": 0,
        "has_errors": False,
        "timeout": 30,
        "cwd": str(root),
        "output_truncated": False,
    }


def test_a_failure_of_the_command_is_a_success_with_errors(agent: Agent) -> None:
    result = agent.run_shell_command("cat nope")
    assert (result["status"], result["return_code"], result["has_errors"]) == ("success", 1, True)
    assert "No such file" in result["stderr"]


def test_a_timeout_has_its_keys_and_the_output_until_then(agent: Agent, root: Path) -> None:
    result = agent.run_shell_command("tail -f a.txt", timeout=1)
    assert isinstance(result.pop("duration_seconds"), float)
    assert result == {
        "status": "error",
        "error": "Command timed out after 1 seconds",
        "command": "tail -f a.txt",
        "stdout": "beta\nalpha\n",
        "stderr": "",
        "has_errors": True,
        "timed_out": True,
        "timeout": 1,
        "cwd": str(root),
    }


@pytest.mark.parametrize(
    ("command", "error", "keys"),
    [
        ("rm x", "Command 'rm' is not in the allowed list for security reasons", {"hint", "examples"}),
        (
            "git push",
            "Git command 'push' is not allowed. Only read-only git operations are permitted.",
            {"allowed_git_commands"},
        ),
        ("", "Empty command", set()),
        ("   ", "Empty command", set()),
        ("|", "Empty command", set()),
        ("ls |", "Empty command in a pipeline: each '|' needs a command on both sides.", set()),
        ("| ls", "Empty command in a pipeline: each '|' needs a command on both sides.", set()),
        ("ls | | wc", "Empty command in a pipeline: each '|' needs a command on both sides.", set()),
        ("echo 'x", "Invalid command syntax: No closing quotation", set()),
        ("ls > f", "Shell operators (&, >, >>, <, &&, ||, ;, `, $()) are not allowed for security reasons.", {"hint"}),
    ],
)
def test_a_refusal_has_gaias_words_and_keys(agent: Agent, command: str, error: str, keys: set[str]) -> None:
    result = agent.run_shell_command(command)
    assert result["error"] == error
    assert set(result) == {"status", "error", "has_errors", "executed"} | keys
    assert (result["status"], result["has_errors"], result["executed"]) == ("error", True, False)


def test_the_working_directory_is_checked_in_gaias_words(agent: Agent, root: Path) -> None:
    def error(directory: str) -> str:
        return agent.run_shell_command("pwd", working_directory=directory)["error"]

    assert error("nope") == "Working directory not found: nope"
    assert error("a.txt") == "Path is not a directory: a.txt"
    assert error("/tmp") == "Access denied: /tmp is not in allowed paths"
    assert agent.run_shell_command("pwd", "sub")["stdout"] == f"{root}/sub\n"


def test_an_own_path_check_is_honoured(root: Path) -> None:
    class Own(ShellToolsMixin):
        def _is_path_allowed(self, path: str) -> bool:
            return Path(path).resolve().is_relative_to(root)

    own = Own()
    assert own.run_shell_command("pwd", "/tmp")["error"] == "Access denied: /tmp is not in allowed paths"
    assert own.run_shell_command("cat /etc/passwd")["error"].startswith("Access denied: Argument '/etc/passwd'")
    assert own.run_shell_command("cat a.txt")["return_code"] == 0


def test_paths_are_checked_in_gaias_words(agent: Agent) -> None:
    error = agent.run_shell_command("cat ../x")["error"]
    assert error.startswith("Access denied: Argument '../x' resolves to forbidden path '/")
    assert agent.run_shell_command("cat sub/../a.txt")["return_code"] == 0
    assert agent.run_shell_command("echo https://example.org/x")["stdout"] == "https://example.org/x\n"


def test_the_mixin_passes_arguments_on() -> None:
    agent = Agent("named")
    assert agent.name == "named"
    assert (agent.max_commands_per_minute, agent.max_commands_per_10_seconds) == (10, 3)
    assert agent.shell_command_times.maxlen == 100


# The rate


def test_the_fourth_command_in_quick_succession_has_to_wait(root: Path) -> None:
    agent = Agent()
    assert [agent.run_shell_command("pwd")["status"] for _ in range(3)] == ["success"] * 3
    result = agent.run_shell_command("pwd")
    assert result["rate_limited"] is True and 0 < result["wait_time_seconds"] <= 10
    assert result["error"].startswith("Rate limit: max 3 commands per 10 seconds. Wait ")
    assert result["error"].endswith(f"Please wait {result['wait_time_seconds']:.1f} seconds.")
    assert result["hint"] == "Rate limiting prevents excessive command execution"


def test_the_eleventh_command_in_a_minute_has_to_wait(root: Path) -> None:
    agent = Agent()
    agent.shell_command_times.extend([mixin._now() - 30] * 10)
    allowed, reason, wait = agent._check_rate_limit()
    assert not allowed and reason.startswith("Rate limit: max 10 commands per minute. Wait ") and 29 < wait <= 30
    agent.shell_command_times.clear()
    agent.shell_command_times.extend([mixin._now() - 61] * 10)
    assert agent._check_rate_limit() == (True, "", 0.0)


def test_an_agent_that_does_not_call_the_constructor_is_limited_too(root: Path) -> None:
    class Careless(ShellToolsMixin):
        def __init__(self) -> None:
            pass

    agent = Careless()
    assert [agent.run_shell_command("pwd").get("rate_limited", False) for _ in range(4)] == [False] * 3 + [True]


def test_refusals_cost_nothing_and_timeouts_count(root: Path) -> None:
    agent = Agent()
    for _ in range(20):
        assert "not in the allowed list" in agent.run_shell_command("rm x")["error"]
    agent.run_shell_command("tail -f a.txt", timeout=0.2)
    assert len(agent.shell_command_times) == 1


def test_the_limit_does_not_follow_the_time_of_day(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = Agent()
    assert agent.run_shell_command("pwd")["duration_seconds"] >= 0
    monkeypatch.setattr(time, "time", lambda: 0.0)
    result = [agent.run_shell_command("pwd") for _ in range(3)]
    assert result[-1]["rate_limited"] is True and result[0]["duration_seconds"] >= 0


# What may run


@pytest.mark.parametrize(
    "words",
    [
        ["find", ".", "-printf", "%f"],
        ["find", ".", "-name", "*.py"],
        ["uniq", "-f", "2", "file"],
        ["sort", "-k2", "-t,", "file"],
        ["git", "-C", "sub", "log"],
        ["git", "--no-pager", "log"],
        ["git", "branch"],
        ["powershell", "-Command", "Get-Process"],
        ["wmic", "cpu", "get", "name"],
        ["systeminfo"],
    ],
)
def test_the_validator_allows(words: list[str]) -> None:
    assert ShellToolsMixin._validate_command(words[0], words, " ".join(words)) is None


@pytest.mark.parametrize(
    "words",
    [
        ["rm", "x"],
        ["python3", "-c", "1"],
        ["find", ".", "-EXEC", "rm", "{}", "+"],
        ["find", ".", "-delete"],
        ["find", ".", "-fprint", "x"],
        ["sort", "-ro/x", "a"],
        ["sort", "--o", "x", "a"],
        ["sort", "-o", "x", "a"],
        ["uniq", "in", "out"],
        ["git", "-c", "x=y", "log"],
        ["git", "--exec-path=/x", "log"],
        ["git", "commit"],
        ["sed", "-i", "s/a/b/", "f"],
        ["powershell", "-enc", "x"],
        ["powershell", "-Command", "Remove-Item x"],
        ["powershell", "-Command", "Foo-Bar"],
        ["wmic", "process", "call", "create", "x"],
        ["date", "-s", "2020-01-01"],
        ["sysctl", "-w", "kernel.hostname=x"],
        ["hostname", "x"],
        ["sort", "--compress-program=touch", "a"],
        ["git", "branch", "evil"],
        ["git", "remote", "add", "z", "u"],
        ["git", "diff", "--output=F"],
        ["git", "log", "--ext-d"],
        ["git", "diff", "--no-ind", "a", "b"],
        ["git", "help", "-aw", "log"],
        ["git", "log", "-Ofile"],
        ["powershell", "-E", "x"],
        ["powershell", "Get-Date", "|", "calc"],
        ["pwsh", "-Command", "Get-Date"],
    ],
)
def test_the_validator_refuses(words: list[str]) -> None:
    found = ShellToolsMixin._validate_command(words[0], words, " ".join(words))
    assert found is not None and found["status"] == "error" and found["has_errors"] is True


@pytest.mark.parametrize("words", [["git", "log", "--text"], ["git", "ls-files", "-o"], ["powershell", "-NoLogo", "-c", "Get-X"]])
def test_the_validator_knows_what_only_looks_alike(words: list[str]) -> None:
    assert ShellToolsMixin._validate_command(words[0], words, " ".join(words)) is None


@pytest.mark.parametrize("command", ["ls -Z9", "wc -Q"])
def test_what_is_not_known_to_read_is_refused_in_one_line_with_a_hint(agent: Agent, command: str) -> None:
    found = agent.run_shell_command(command)
    assert found["executed"] is False and found["hint"]
    assert re.fullmatch(r"'.+' is not allowed: .+", found["error"])


@pytest.mark.parametrize("text", ["a && b", "a & ", "a > f", "a >> f", "a < f", "a || b", "a; b", "`a`", "$(a)"])
def test_operators_are_found(agent: Agent, text: str) -> None:
    assert DANGEROUS_SHELL_OPERATORS.search(text)
    assert agent.run_shell_command(f"ls {text}")["error"].startswith("Shell operators")


@pytest.mark.parametrize("text", ["ls\nrm x", "ls\rrm x", 'echo "$(id)"', 'echo "`id`"', "ls <(id)", "ls &"])
def test_no_operator_is_hidden(agent: Agent, text: str) -> None:
    assert agent.run_shell_command(text)["error"].startswith("Shell operators")


@pytest.mark.parametrize(
    ("command", "stdout"),
    [
        ("echo 'a;b'", "a;b\n"),
        ('echo "a>b"', "a>b\n"),
        ("echo a\\;b", "a;b\n"),
        ("grep -c 'a|b' a.txt", "0\n"),
        ("echo '$(x)'", "$(x)\n"),
        ("echo #c", "#c\n"),
        ("echo 'a b' #c '#d' \\#e f#g \"\"#h", "a b #c #d #e f#g #h\n"),
        ("echo \\ #c", " #c\n"),
    ],
)
def test_quoted_operators_are_data(agent: Agent, command: str, stdout: str) -> None:
    assert agent.run_shell_command(command)["stdout"] == stdout


@pytest.mark.parametrize(
    ("command", "stdout", "stderr", "code"),
    [
        ("ls nosuch 2>/dev/null", "", "", 2),
        ("ls nosuch 2>&1", "ls: cannot access 'nosuch': No such file or directory\n", "", 2),
        ("2>&1 ls nosuch", "ls: cannot access 'nosuch': No such file or directory\n", "", 2),
        ("ls nosuch 2>&1 | wc -l", "1\n", "", 2),
        ("ls nosuch 2>/dev/null|wc -l", "0\n", "", 2),
        ("ls a.txt 2>&1 sub", "a.txt\n\nsub:\nx.py\n", "", 0),
        ("find . -name x.py 2>/dev/null | sort 2>&1", "./sub/x.py\n", "", 0),
        ("git log --format=%s 2>/dev/null", "first\n", "", 0),
        ("echo '2>&1' \"2>/dev/null\"", "2>&1 2>/dev/null\n", "", 0),
    ],
)
def test_standard_error_may_be_kept_or_dropped(
    agent: Agent, command: str, stdout: str, stderr: str, code: int
) -> None:
    result = agent.run_shell_command(command)
    assert (result.get("stdout"), result.get("stderr"), result.get("return_code")) == (stdout, stderr, code)
    assert result["command"] == command


@pytest.mark.parametrize(
    "command",
    [
        *("ls > /dev/null", "ls >/dev/null", "ls 1>/dev/null", "ls &>/dev/null", "ls 2>>/dev/null", "ls 2> /dev/null"),
        *("ls 2>err", "ls 2>/dev/nullx", "ls 2>/dev/null/x", "ls 2>/dev/../a", "ls 2>&1>x", "ls 2>&12", "ls 2>&-"),
        *("echo a2>&1", "echo ''2>&1", "echo \\ 2>&1", "ls 2>&1; rm a.txt", "ls 2>/dev/null & ls", "ls 2>&1\nls"),
        *("ls 2>'/dev/null'", "ls 2>/dev/zero", "ls 3>&1", "ls 1>&2", "echo $2>&1"),
    ],
)
def test_other_redirections_are_refused(agent: Agent, root: Path, command: str) -> None:
    before = sorted(os.listdir(root))
    assert agent.run_shell_command(command)["error"].startswith("Shell operators")
    assert sorted(os.listdir(root)) == before


@pytest.mark.parametrize("command", ["rm a.txt 2>&1", "2>/dev/null rm a.txt", "ls 2>&1 | rm a.txt 2>/dev/null"])
def test_what_drops_its_errors_is_judged_as_ever(agent: Agent, root: Path, command: str) -> None:
    assert "'rm' is not in the allowed list" in agent.run_shell_command(command)["error"]
    assert (root / "a.txt").exists()


@pytest.mark.parametrize("command", ["2>&1", " 2>/dev/null ", "ls | 2>&1"])
def test_a_redirection_is_no_command(agent: Agent, command: str) -> None:
    assert agent.run_shell_command(command)["error"].startswith("Empty command")


@pytest.mark.parametrize("command", [None, 5, ["ls"], b"ls"])
def test_what_is_no_text_is_no_command(agent: Agent, command: Any) -> None:
    result = agent.run_shell_command(command)
    assert (result["status"], result["executed"]) == ("error", False)
    assert result["error"] == f"Invalid command: {command!r} is no text"


def test_a_path_is_checked_once_and_named_as_it_was_written(agent: Agent, root: Path) -> None:
    agent.run_shell_command("cat ./a.txt sub/../a.txt")
    assert agent.path_validator.asked == [str(root / "a.txt")]  # type: ignore[attr-defined]
    error = agent.run_shell_command("grep --file=/etc/hostname a.txt")["error"]
    assert error == "Access denied: Argument '--file=/etc/hostname' resolves to forbidden path '/etc/hostname'"


# Pipelines


@pytest.mark.parametrize(
    ("command", "stdout", "code"),
    [
        ("cat a.txt | sort", "alpha\nbeta\n", 0),
        ("cat a.txt | sort | head -1", "alpha\n", 0),
        ("ls sub|wc -l", "1\n", 0),
        ("cat nope | cat a.txt", "beta\nalpha\n", 1),
        ("cat a.txt | grep nope", "", 1),
        ("ls nope | cat nope2 | cat", "", 1),
        ("cat /dev/zero | head -c 3", "\0\0\0", 0),
    ],
)
def test_pipelines_run_and_the_rightmost_failure_counts(agent: Agent, command: str, stdout: str, code: int) -> None:
    result = agent.run_shell_command(command)
    assert (result["stdout"], result["return_code"], result["has_errors"]) == (stdout, code, code != 0)


def test_each_stages_errors_are_kept(agent: Agent) -> None:
    stderr = agent.run_shell_command("cat nope1 | cat nope2 | cat nope3")["stderr"]
    assert all(name in stderr for name in ("nope1", "nope2", "nope3"))


def test_every_stage_is_judged(agent: Agent, root: Path) -> None:
    assert "'rm'" in agent.run_shell_command("ls | rm a.txt")["error"]
    assert "'sh'" in agent.run_shell_command("echo 'touch x' | sh")["error"]
    assert "forbidden path" in agent.run_shell_command("ls | cat /etc/passwd")["error"]
    assert (root / "a.txt").exists() and not (root / "x").exists()


def test_a_pipelines_directory_is_the_working_directory(agent: Agent, root: Path) -> None:
    assert agent.run_shell_command("pwd | cat", "sub")["stdout"] == f"{root}/sub\n"


def test_a_timeout_ends_the_whole_pipeline(agent: Agent, root: Path) -> None:
    (root / "long-name-7661").write_text("x\n")
    result = agent.run_shell_command("tail -f long-name-7661 | cat | cat", timeout=1)
    assert result["timed_out"] is True and result["stdout"] == "x\n"
    assert gone("long-name-7661")


# Weaknesses


@pytest.mark.parametrize(
    "command",
    [
        "cat plink",
        "grep -f plink a.txt",
        "wc --files0-from=plink",
        "grep -f/etc/passwd a.txt",
        "cat ../outside",
        "cat ~/.bashrc",
        "cat $HOME/.bashrc",
        "git -C /tmp log",
        "git --git-dir=/tmp/x log",
        "head -5 pli*",
        'cat "${X:-/etc/passwd}"',
        "cat $UNKNOWN",
    ],
)
def test_forbidden_files_are_not_read(agent: Agent, command: str) -> None:
    agent.shell_ignore = ()
    result = agent.run_shell_command(command)
    assert result["status"] == "error" and result["error"].startswith("Access denied")
    assert "root:" not in str(result)


@pytest.mark.parametrize(
    "command",
    [
        "find . -exec touch F {} +",
        "find . -delete",
        "sort -o F a.txt",
        "uniq a.txt F",
        "git branch evil",
        "git remote add z u",
        "git diff --output=F",
        "sort --compress-program=touch a.txt",
        "date -s 2020-01-01",
        "sysctl -w kernel.hostname=x",
        "echo hi > F",
    ],
)
def test_nothing_is_changed(agent: Agent, root: Path, command: str) -> None:
    before = sorted(root.iterdir())
    result = agent.run_shell_command(command)
    assert result["status"] == "error" and result["executed"] is False
    assert sorted(root.iterdir()) == before
    git = subprocess.run(["git", "branch", "-a"], cwd=root, capture_output=True, text=True, check=True)
    assert "evil" not in git.stdout


@pytest.mark.parametrize(
    "command", ["cat .env", "git show HEAD:.env", "grep -r hunter .", "cat .e*", "git log -p", "sort .env"]
)
def test_secrets_in_the_root_are_not_read(agent: Agent, command: str) -> None:
    result = agent.run_shell_command(command)
    assert result["status"] == "error" and SECRET not in str(result)


def test_which_files_are_secret_can_be_changed(agent: Agent) -> None:
    agent.shell_ignore = ()
    assert agent.run_shell_command("cat .env")["stdout"] == f"{SECRET}\n"


@pytest.mark.parametrize(
    ("command", "stdout"),
    [
        ("ls *.txt", "a.txt\n"),
        ("ls | wc -l", "3\n"),
        ("/bin/ls sub", "x.py\n"),
        ("LS sub", "x.py\n"),
        ("printf '\\377'", "\ufffd"),
        ("printf 'a\\r\\n'", "a\r\n"),
        ("cat /dev/null", ""),
        ("grep x /dev/null a.txt", ""),
    ],
)
def test_ordinary_commands_work(agent: Agent, command: str, stdout: str) -> None:
    assert agent.run_shell_command(command)["stdout"] == stdout


def test_the_home_directory_is_named_by_a_tilde_and_a_variable(root: Path) -> None:
    agent = Agent()
    assert agent.run_shell_command("echo ~ $HOME")["stdout"] == f"{os.environ['HOME']} {os.environ['HOME']}\n"


def test_no_timeout_is_the_default_one(agent: Agent) -> None:
    assert agent.run_shell_command("pwd", timeout=None)["timeout"] == agent.run_shell_command("pwd")["timeout"] == 30


@pytest.mark.parametrize("timeout", [0, -1, "-1", "x", True, float("nan"), 100_000])
def test_an_impossible_timeout_is_refused(agent: Agent, timeout: Any) -> None:
    result = agent.run_shell_command("pwd", timeout=timeout)
    assert result["error"].startswith("Invalid timeout") and result["executed"] is False
    assert result["command"] == "pwd"


def test_a_timeout_may_be_a_text_and_a_directory_of_the_home(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(root))
    result = Agent().run_shell_command("pwd", working_directory="~", timeout="5")
    assert result["stdout"] == f"{root}\n"


def test_a_quoted_bar_is_no_pipe(agent: Agent) -> None:
    assert agent.run_shell_command("echo '|' \\|")["stdout"] == "| |\n"
    assert agent.run_shell_command('echo "a|b"|cat')["stdout"] == "a|b\n"


def test_credentials_of_the_host_are_not_passed_on(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVICE_API_KEY", SECRET)
    assert agent.run_shell_command("echo $SERVICE_API_KEY.")["stdout"] == ".\n"


def test_output_is_cut_and_says_so(agent: Agent) -> None:
    result = agent.run_shell_command("head -c 20000 /dev/zero")
    assert result["output_truncated"] is True
    assert result["stdout"] == "\0" * 10_000 + "\n...output truncated (stdout)..."


def test_much_output_takes_little_memory(root: Path) -> None:
    code = """
        import resource
        from shieling.adapters.gaia import ShellToolsMixin
        agent = ShellToolsMixin()
        agent.run_shell_command("pwd")
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        result = agent.run_shell_command("head -c 200M /dev/zero")
        assert result["output_truncated"] and len(result["stdout"]) > 10_000
        print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) <= 40


# The tool and the sandbox


def test_the_tool_is_registered(agent: Agent) -> None:
    agent.register_shell_tools()
    try:
        from gaia.agents.base.tools import _TOOL_REGISTRY as registry
    except ImportError:
        registry = mixin._REGISTRY
    tool = registry["run_shell_command"]
    assert set(tool["parameters"]) == {"command", "working_directory", "timeout"}
    assert tool["parameters"]["command"]["required"] is True and tool["parameters"]["timeout"]["required"] is False
    assert tool["atomic"] is True
    assert tool["function"]("cat a.txt")["stdout"] == "beta\nalpha\n"
    assert tool["function"]("cat a.txt", timeout=5)["timeout"] == 5


def test_a_call_can_be_judged_before_a_person_is_asked(agent: Agent) -> None:
    assert agent.policy_refusal_for_call("run_shell_command", {"command": "ls"}) is None
    refusal = agent.policy_refusal_for_call("run_shell_command", {"command": "rm x"})
    assert refusal is not None and refusal["executed"] is False
    assert agent.policy_refusal_for_call("other_tool", {"command": "rm x"}) is None


def test_in_the_sandbox_the_same_commands_run(root: Path) -> None:
    agent = Agent(shell_environment=need("sandbox"))
    agent.max_commands_per_10_seconds = NEVER
    result = agent.run_shell_command("cat a.txt | sort | head -1")
    assert (result["stdout"], result["return_code"]) == ("alpha\n", 0)
    assert agent.run_shell_command("cat nope | cat a.txt")["return_code"] == 1
    assert SECRET not in str(agent.run_shell_command("grep -r hunter . --exclude-dir=.git"))


@pytest.mark.parametrize("environment", ["local", "sandbox"])
def test_pipelines_run_under_rules_of_ones_own(root: Path, environment: str) -> None:
    for options in ({"allow": ["ls", "wc"]}, {"policy": "readonly"}):
        agent = Agent(shell_environment=need(environment), shieling=options)
        found = agent.run_shell_command("ls sub | wc -l")
        assert (found["status"], found.get("stdout", "").strip()) == ("success", "1"), found
        assert agent.run_shell_command("ls nowhere | wc -l")["return_code"] == 2


def test_a_text_that_cannot_be_given_to_a_program_was_not_executed(root: Path) -> None:
    for text in ("cat a\0b", "cat \udcff"):
        found = Agent().run_shell_command(text)
        assert found["executed"] is False and found["error"].startswith("Invalid command syntax"), found


def test_nothing_passes_without_its_checks() -> None:
    tools = Agent()
    assert tools.full_access_active() is tools.bypass_gates_active() is False
    for command in gaia.DEVELOPER_COMMANDS - {"git"}:
        assert tools.run_shell_command(f"{command} x")["executed"] is False


def test_a_granted_program_may_be_alone() -> None:
    granted = frozenset({"make"})
    assert gaia._is_lone_granted_segment([["/usr/bin/make", "-n"]], granted)
    for segments, grants in (
        ([["make"], ["head"]], granted),
        ([["ls"]], granted),
        ([["make"]], frozenset()),
        ([], granted),
    ):
        assert not gaia._is_lone_granted_segment(segments, grants)
