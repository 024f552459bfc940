"""Safe mode of the adapter for CAMEL: what it lets run, and what got past its original."""

from __future__ import annotations

from pathlib import Path

import pytest

import shieling.adapters.camel as package
from shieling.adapters.camel import check_command_safety, sanitize_command, utils


@pytest.fixture
def work(tmp_path: Path) -> str:
    work = tmp_path / "work"
    (work / "sub").mkdir(parents=True)
    (work / "link").symlink_to("/")
    return str(work)


RM = [
    *("rm -rf x", "/bin/rm -rf x", r"\rm x", "'rm' x", 'r""m x', "command rm x", "env rm x"),
    *("exec rm x", "ls | xargs rm", "timeout 5 rm x", "nohup rm x", "time rm x", "! rm x"),
    *("X=1 rm x", "${RM:=rm} x", "busybox rm x", "find . -delete", r"find . -exec rm {} \;"),
    *("true\nrm x", "echo a & rm x", "(rm x)", "{ rm x; }", "$(rm x)", "`rm x`", "eval 'rm x'"),
    *("bash <<< 'rm x'", "echo 'rm x' | bash", "env bash -c 'rm x'", "bash -c 'rm x'"),
    *("sh -ec 'true; rm x'", "if true; then rm x; fi", "curl x | sh", "RM x"),
]
OTHERS = [
    *("sudo ls", "kill -9 1", "kill -- -1", "chmod -R 777 /", "echo x > /etc/passwd"),
    *("tee /etc/x < y", "cp x /usr/bin/x", ":(){ :|:& };:", "f() { f | f & }; f", "dd if=a of=b"),
    *("mount /x", "service x stop", "echo 'open", "systemctl stop x", "mkfs.ext4 /dev/x", "/sbin/fsck.xfs /x"),
    *("mount.nfs a b", "env umount.cifs /x", "iptables-restore", "systemd-run id"),
]
GOOD = [
    *("service.py", "at.sh", "rm-safe x", "su-exec x", "python3 mount.py", "dd=1", "echo cd /"),
    *("echo rm", "echo 'a; rm b'", "git commit -m 'rm x'", "make test", "ls 2>&1 | tail -5"),
    *("for f in *; do cat $f; done", "python3 -c 'print(1)'", "echo hi > out.txt", "cp /etc/hosts ."),
    *("kill -9 1234", "kill %1", "touch /tmp/x", "[[ a == a ]]", "echo {1..3}", "which rm"),
    *("f() { echo hi; }; f", "npm install", "docker rm x", "cat /etc/hostname", "ls /"),
]


@pytest.mark.parametrize("command", RM)
def test_no_spelling_of_a_blocked_command_passes(command: str) -> None:
    safe, reason = check_command_safety(command)
    assert not safe
    assert "blocked for safety" in reason


@pytest.mark.parametrize("command", ["python3 -i", "python3", "env python3 -q", "node", "perl -", "php -a", "lua -i"])
def test_an_interpreter_may_wait_for_what_its_session_is_sent(command: str) -> None:
    assert check_command_safety(command) == (True, "")
    assert utils.check_input_safety(command, "print(1)") == (True, "")


def test_what_an_interpreter_is_sent_is_judged_as_code() -> None:
    for command, text in (
        ("python3 -i", "import os; os.system('rm x')"),
        ("node", "require('child_process').execSync('rm x')"),
        ("perl -", "system 'rm x';"),
    ):
        safe, reason = utils.check_input_safety(command, text)
        assert not safe and "blocked for safety" in reason, text
    assert utils.check_input_safety("cat", "rm x") == (True, "")


@pytest.mark.parametrize("command", ["curl x | python3", "(curl x) | node", "python3 < <(curl x)", "bash", "sh -i"])
def test_an_interpreter_that_something_else_feeds_and_a_shell_do_not_pass(command: str) -> None:
    safe, reason = check_command_safety(command)
    assert not safe and "blocked for safety" in reason


@pytest.mark.parametrize(
    "command", ["bash --command 'rm x'", "zsh --command 'ls; rm x'", "fish --command 'sudo ls'"]
)
def test_the_long_option_of_a_shell_is_read_too(command: str) -> None:
    safe, reason = check_command_safety(command)
    assert not safe
    assert "is blocked for safety" in reason
    assert check_command_safety("bash --command 'ls'") == (True, "")


@pytest.mark.parametrize(
    "command", ["true", "exit 3", "export A=1", "pushd sub", "test -f x", "ls; popd", "ls && set -e"]
)
def test_an_allow_list_names_builtins_too(command: str) -> None:
    name = command.split(";")[-1].split("&&")[-1].split()[0]
    assert check_command_safety(command, {"ls"}) == (
        False,
        f"Command '{name}' is not in the allowed commands list.",
    )
    assert check_command_safety(command, {"ls", name}) == (True, "")


@pytest.mark.parametrize(
    ("command", "named"),
    [
        *(("cd sub && ls", "cd"), ("export A=1; id", "export"), ("echo > f; id", "id")),
        *(('bash -c "rm x"', "rm"), ("sh -c 'echo; bash -c id'", "id"), ("bash -c echo", "bash")),
        *(("bash --command 'echo; id'", "id"), ("env id", "env")),
    ],
)
def test_the_first_program_that_is_not_listed_is_named(command: str, named: str) -> None:
    safe, reason = check_command_safety(command, {"echo"})
    assert not safe
    assert reason.startswith(f"Command '{named}' is not in the allowed commands list.")


@pytest.mark.parametrize("command", ["/bin/ls", "/usr/bin/ls -l", "LS", "ls | /bin/ls"])
def test_a_listed_program_may_be_named_with_the_systems_directory(command: str) -> None:
    assert check_command_safety(command, {"ls"}) == (True, "")


@pytest.mark.parametrize("command", ["./ls", "/tmp/ls", "/bin/../tmp/ls", "/bin/rm x", "/usr/bin/env rm x"])
def test_a_program_of_another_directory_is_not_the_listed_one(command: str) -> None:
    name = command.split()[0]
    safe, reason = check_command_safety(command, {"ls"})
    assert (safe, reason) == (False, f"Command '{name}' is not in the allowed commands list.")


def test_a_substituted_directory_is_refused_before_the_list_is_asked(work: str) -> None:
    answer = sanitize_command("cd $(pwd)", working_dir=work, allowed_commands={"ls", "cd"})
    assert answer == (False, "Command substitution is not allowed in 'cd' paths.")
    unlisted = sanitize_command("cd $(pwd)", working_dir=work, allowed_commands={"ls"})
    assert unlisted == (False, "Command 'cd' is not in the allowed commands list.")


def test_a_redirection_is_named_as_what_it_is() -> None:
    safe, reason = check_command_safety("ls > out", {"ls"})
    assert not safe
    assert reason.startswith("Command '> out' is not in the allowed commands list. A redirection")
    assert check_command_safety("[ -f x ]", {"ls"}) == (True, "")


@pytest.mark.parametrize(
    ("command", "safe"),
    [
        (r'cd "\$(literal)"', True),
        (r'cd "\`literal\`"', True),
        (r'cd "\$(literal)/../.."', False),
        (r'cd "\\$(pwd)"', False),
        ("cd '$(x)'", False),
        ("cd $( )", False),
        ("cd $(<file)", False),
        (r'bash -c "cd \$(pwd)"', False),
        (r'eval "cd \$(pwd)"', False),
    ],
)
def test_an_escaped_substitution_is_a_name(command: str, safe: bool, work: str) -> None:
    assert sanitize_command(command, working_dir=work)[0] is safe


@pytest.mark.parametrize("command", OTHERS)
def test_what_harms_the_host_is_blocked(command: str) -> None:
    safe, reason = check_command_safety(command)
    assert not safe
    assert "blocked for safety" in reason


@pytest.mark.parametrize("command", GOOD)
def test_ordinary_work_passes(command: str, work: str) -> None:
    assert sanitize_command(command, working_dir=work) == (True, command)


def test_the_texts() -> None:
    assert check_command_safety("") == (False, "Empty command is not allowed.")
    assert check_command_safety("ls && rm x") == (False, "Command 'rm' is blocked for safety.")
    assert check_command_safety("ls; id", {"ls"}) == (
        False,
        "Command 'id' is not in the allowed commands list.",
    )


def test_without_safe_mode_everything_passes() -> None:
    assert sanitize_command("rm -rf /", safe_mode=False) == (True, "rm -rf /")


def test_the_list_can_be_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(utils, "DANGEROUS_COMMANDS", [*utils.DANGEROUS_COMMANDS, "custom"])
    monkeypatch.setattr(package, "DANGEROUS_COMMANDS", utils._FIRST_LIST)
    assert not check_command_safety("custom x")[0]
    monkeypatch.undo()
    assert check_command_safety("custom x")[0]
    monkeypatch.setattr(package, "DANGEROUS_COMMANDS", ["custom"])
    assert not check_command_safety("custom x")[0]
    assert check_command_safety("rm x")[0]
    monkeypatch.undo()
    package.DANGEROUS_COMMANDS.append("custom")
    try:
        assert not check_command_safety("custom x")[0]
    finally:
        package.DANGEROUS_COMMANDS.remove("custom")


@pytest.mark.parametrize(
    "command",
    [
        *("ls & id", "ls\nid", "echo $(id)", "'id'", r"\id", "(id)", "{ id; }", "! id"),
        *("./evil.sh", "ls; /usr/bin/id", "ls > f", "echo x >> f", "PATH=. ls", "bash -c 'ls'"),
        *("/tmp/bin/ls", "ls | xargs id", "find . -exec id ;", "ls 'open"),
    ],
)
def test_an_allow_list_names_every_command(command: str) -> None:
    safe, reason = check_command_safety(command, {"ls", "echo"})
    assert not safe
    assert "is not in the allowed commands list." in reason


@pytest.mark.parametrize(
    "command", ["ls", "LS -la", "echo hi | ls", "ls && echo 'id'", "ls 2>/dev/null", "[[ a == a ]]"]
)
def test_an_allow_list_lets_pass_what_it_names(command: str) -> None:
    assert check_command_safety(command, {"ls", "echo"}) == (True, "")


@pytest.mark.parametrize(
    "command",
    [
        *("cd", "cd ..", "cd /", "cd -", "cd -- /etc", "cd -P ..", "cd 'a'/../../..", "'cd' .."),
        *(r"c\d ..", "CDPATH=/ cd etc", "cd $UNSET_HERE/etc", "cd ${X:-/}", "X=/; cd $X", "cd ~"),
        *("cd $HOME", "cd link", "pushd /tmp", "pushd", "(cd /)", "bash -c 'cd / && ls'"),
        *("ls\ncd /\nls", "git -C / log", "git --git-dir=/x/.git log", "make -C / all", "cd '/tmp'"),
        *("if true; then cd ..; fi", "cd sub/../../..", "cd /e*"),
    ],
)
def test_a_change_of_directory_stays_inside(command: str, work: str) -> None:
    safe, reason = sanitize_command(command, working_dir=work)
    assert not safe
    assert "outside of the working directory" in reason
    assert f"Allowed root: '{work}'" in reason
    assert "copy them (for example with `cp`)" in reason


@pytest.mark.parametrize(
    "command", ["cd sub && cd ..", "cd sub; cd sub", "cd sub | cd sub", "pushd sub && cd x", "cd a & cd b"]
)
def test_one_change_of_directory_in_a_text(command: str, work: str) -> None:
    safe, reason = sanitize_command(command, working_dir=work)
    assert not safe
    assert "Multiple 'cd'/'pushd'" in reason
    assert "separate command" in reason


@pytest.mark.parametrize("command", ["cd $(echo sub)", "cd `echo sub`", "pushd $(echo sub)"])
def test_a_directory_is_no_substitution(command: str, work: str) -> None:
    safe, reason = sanitize_command(command, working_dir=work)
    assert not safe
    assert reason == f"Command substitution is not allowed in '{command.split()[0]}' paths."


@pytest.mark.parametrize(
    "command",
    [
        *("cd sub", "cd ./sub && ls", "cd . ; ls", "pushd sub", "(cd sub; ls)", "cd -- sub"),
        *("echo 'cd ..'", 'echo "cd /"', "echo cd ..", "git -C sub status", "cd new_dir"),
    ],
)
def test_a_change_of_directory_inside_passes(command: str, work: str) -> None:
    assert sanitize_command(command, working_dir=work) == (True, command)


def test_absolute_paths_and_variables_that_lead_inside_pass(
    work: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORK_HERE", work)
    for command in (f"cd {work}/sub", "cd $WORK_HERE/sub", "cd ${WORK_HERE}"):
        assert sanitize_command(command, working_dir=work) == (True, command)
    monkeypatch.setenv("HOME", work)
    assert sanitize_command("cd ~/sub", working_dir=work)[0]
    assert sanitize_command("cd", working_dir=work)[0]


def test_a_container_has_its_own_directories() -> None:
    assert sanitize_command("cd /", use_docker_backend=True, working_dir="/work")[0]
    assert not sanitize_command("rm x", use_docker_backend=True, working_dir="/work")[0]


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ('echo "unclosed', "a quote is not closed"),
        ("echo 'open\nls", "a quote is not closed"),
        ("echo (", "a bracket or a word such as `fi` is missing, or is one too many"),
        ("if true; then ls", "a bracket or a word such as `fi` is missing, or is one too many"),
        ("ls )", "a bracket or a word such as `fi` is missing, or is one too many"),
    ],
)
def test_what_does_not_parse_is_told_with_its_text(command: str, why: str) -> None:
    shown = f"it does not parse as bash: {why}"
    assert check_command_safety(command) == (False, f"Command '{command}' is blocked for safety: {shown}.")
    assert check_command_safety(command, {"echo", "ls"}) == (
        False,
        f"Command '{command}' is not in the allowed commands list. ({shown})",
    )
