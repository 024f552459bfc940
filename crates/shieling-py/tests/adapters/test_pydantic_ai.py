"""pydantic-ai's adapter without pydantic-ai: environments, processes, files, and the weaknesses of the original."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from confined import need

from shieling.adapters.pydantic_ai import (
    DockerEnvironment,
    ExecutionEnvironment,
    ExecutionResult,
    FileInfo,
    LocalEnvironment,
    MemoryEnvironment,
    apply_edit,
    format_lines,
    build_glob_cmd,
    build_grep_cmd,
    build_read_file_cmd,
    filter_grep_count_output,
    glob_match,
    parse_glob_output,
    shell_escape,
)
from shieling.adapters.pydantic_ai import docker, local

TOOLS = frozenset({"ls", "shell", "read_file", "write_file", "edit_file", "glob", "grep"})
Kind = Callable[[Path], ExecutionEnvironment]


def run(work: Awaitable[Any]) -> Any:
    async def call() -> Any:
        return await work

    return asyncio.run(call())


def gone(word: str) -> bool:
    until = time.monotonic() + 10
    while subprocess.run(["pgrep", "-f", word], capture_output=True, check=False).returncode == 0:
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True


@pytest.fixture(params=["local", "sandbox"])
def env(request: pytest.FixtureRequest, tmp_path: Path) -> LocalEnvironment:
    return LocalEnvironment(tmp_path, environment=need(request.param))


@pytest.fixture(params=["local", "sandbox", "memory"])
def files(request: pytest.FixtureRequest, tmp_path: Path) -> ExecutionEnvironment:
    """An environment for files."""
    if request.param == "memory":
        return MemoryEnvironment()
    return LocalEnvironment(tmp_path, environment=need(request.param))


# Results and functions


def test_results_have_the_originals_fields() -> None:
    assert ExecutionResult("x", 0) == ExecutionResult(output="x", exit_code=0, truncated=False)
    assert FileInfo("a", "d/a", False) == FileInfo(name="a", path="d/a", is_dir=False, size=None)


def test_what_an_environment_does_not_support_it_says() -> None:
    class Nothing(ExecutionEnvironment):
        @property
        def capabilities(self) -> frozenset[str]:
            return frozenset()

    nothing = Nothing()
    for call, what in (
        (nothing.shell("x"), "shell"),
        (nothing.ls(), "ls"),
        (nothing.read_file("x"), "read_file"),
        (nothing.write_file("x", ""), "write_file"),
        (nothing.replace_str("x", "a", "b"), "replace_str"),
        (nothing.glob("*"), "glob"),
        (nothing.grep("x"), "grep"),
        (nothing.create_process("x"), "interactive processes"),
    ):
        with pytest.raises(NotImplementedError, match=f"Nothing does not support {what}"):
            run(call)


def test_lines_are_numbered_as_by_cat() -> None:
    assert format_lines("a\nb\n", 0, 2000) == "     1\ta\n     2\tb\n"
    assert format_lines("a\nb", 0, 2000) == "     1\ta\n     2\tb\n"
    assert format_lines("a\nb\nc\n", 1, 1) == ("     2\tb\n... (1 more lines. Use offset=2 to continue reading.)\n")
    with pytest.raises(ValueError, match=r"Offset 5 exceeds file length \(1 lines\)\."):
        format_lines("a\n", 5, 1)


def test_only_newlines_end_lines() -> None:
    assert format_lines("a\x0cb\u2028c\x1dd\r\ne\n", 0, 9).count("\t") == 2


@pytest.mark.parametrize(("offset", "limit"), [(-1, 10), (0, 0), (0, -5)])
def test_an_impossible_part_of_a_file_is_refused(offset: int, limit: int) -> None:
    with pytest.raises(ValueError, match="offset must not be negative|limit must be positive"):
        format_lines("a\nb\n", offset, limit)


@pytest.mark.parametrize(
    ("path", "pattern", "answer"),
    [
        ("a.py", "*.py", True),
        ("d/a.py", "*.py", False),
        ("d/a.py", "**/*.py", True),
        ("a.py", "**/*.py", True),
        ("src/x/y/a.py", "src/**/*.py", True),
        ("src/a.py", "src/**/*.py", True),
        ("a.py", "?.py", True),
        ("ab.py", "?.py", False),
        ("a+b", "a+b", True),
        ("a.py", "[abc].py", True),
        ("d.py", "[abc].py", False),
        ("d.py", "[!a-c].py", True),
        ("a/b", "a[!x]b", False),
        ("x/].py", "**/[]].py", True),
        ("[.py", "[.py", True),
        ("\\.py", "[\\].py", True),
    ],
)
def test_globs_match_as_the_originals(path: str, pattern: str, answer: bool) -> None:
    assert glob_match(path, pattern) is answer


@pytest.mark.parametrize("environment", ["local", "sandbox"])
def test_globs_and_errors_are_the_same_where_an_environment_shows_the_files(
    environment: str, tmp_path: Path
) -> None:
    need(environment)
    (tmp_path / "sub" / "empty").mkdir(parents=True)
    (tmp_path / "hidden").mkdir()
    for name in ("a.txt", "[.txt", ".dotted", "sub/b.py", "hidden/key"):
        (tmp_path / name).touch()
    (tmp_path / "to-sub").symlink_to("sub")
    (tmp_path / "to-nowhere").symlink_to("nowhere")
    (tmp_path / "outside").symlink_to("/etc")
    patterns = (
        "* ** **/* */ **/ */* [a].txt [[].txt [!a]* sub su? sub/* sub/*.py to-sub/* outside/* **/*.py */*.py nothing "
        ". ./* sub/./* .* **/b.py sub/** [ab] a.tx[a-z] {a,b}.txt sub/../* to-sub/../*"
    ).split()

    async def answers(files: LocalEnvironment) -> list[Any]:
        found: list[Any] = []
        for path in (".", "sub", "to-sub", "nowhere", "a.txt", str(tmp_path)):
            for pattern in ("", *patterns):
                try:
                    found.append((path, pattern, sorted(await files.glob(pattern, path=path))))
                except (OSError, ValueError, IndexError) as error:
                    found.append((path, pattern, repr(error)))
        for path in ("sub", "to-sub", "."):
            with pytest.raises(IsADirectoryError) as caught:
                await files.write_file(path, "x")
            found.append(str(caught.value))
        with pytest.raises(FileNotFoundError) as caught_too:
            await files.replace_str("sub", "a", "b")
        found.append(str(caught_too.value))
        return found

    plain = run(answers(LocalEnvironment(tmp_path)))
    ruled = {"deny": ["nothing-of-these"]}
    for keywords in ({}, {"shieling": ruled}):
        mine = run(answers(LocalEnvironment(tmp_path, environment=environment, **keywords)))
        for one, other in zip(mine, plain):
            assert one == other
    assert (".", "**", [".", "hidden", "sub", "sub/empty"]) in plain
    assert ("sub", "**", ["sub", "sub/empty"]) in plain
    beside = sorted(f"sub/../{name}" for name in os.listdir(tmp_path))
    assert (".", "sub/../*", beside) in plain and run(LocalEnvironment(tmp_path).glob("../*", path="sub")) == beside
    guarded = LocalEnvironment(tmp_path, environment=environment, shieling={"ignore": ["hidden"]})
    shown = run(guarded.glob("**/*"))
    assert "sub/empty" in shown and not any(name.startswith("hidden") for name in shown)


def test_a_time_without_end_is_no_limit_and_a_variable_is_text(env: LocalEnvironment) -> None:
    assert run(env.shell("echo a", timeout=float("inf"))).output == "a\n"
    with pytest.raises(ValueError, match="timeout must be positive"):
        run(env.shell("true", timeout=float("nan")))
    with pytest.raises(TypeError):
        run(env.shell("true", env={"A": 1}))  # type: ignore[dict-item]


def test_edits_are_exact() -> None:
    assert apply_edit("one two", "two", "2", "f", replace_all=False) == ("one 2", 1)
    assert apply_edit("a a", "a", "b", "f", replace_all=True) == ("b b", 2)
    with pytest.raises(ValueError, match=r"old_string not found in f\."):
        apply_edit("x", "y", "z", "f", replace_all=False)
    with pytest.raises(
        ValueError, match=r"old_string found 2 times in f\. Use replace_all=True or provide more context\."
    ):
        apply_edit("a a", "a", "b", "f", replace_all=False)
    with pytest.raises(ValueError, match="empty"):
        apply_edit("some text", "", "z", "f", replace_all=False)


# Commands


def test_a_local_environment_has_all_tools(tmp_path: Path) -> None:
    assert LocalEnvironment(tmp_path).capabilities == TOOLS


def test_entering_makes_the_directory(tmp_path: Path) -> None:
    async def work() -> None:
        async with LocalEnvironment(tmp_path / "a" / "b") as env:
            assert (await env.shell("pwd")).output == f"{tmp_path}/a/b\n"

    run(work())


@pytest.mark.parametrize(
    ("command", "result"),
    [
        ("echo hello", ExecutionResult("hello\n", 0)),
        ("exit 3", ExecutionResult("", 3)),
        ("echo 1; echo 2 >&2; echo 3", ExecutionResult("1\n2\n3\n", 0)),
        ("printf '\\377'", ExecutionResult("\ufffd", 0)),
        ("echo hi > f; cat f", ExecutionResult("hi\n", 0)),
    ],
)
def test_shell_gives_output_and_exit_code(env: LocalEnvironment, command: str, result: ExecutionResult) -> None:
    assert run(env.shell(command)) == result


def test_a_signal_is_a_negative_exit_code(tmp_path: Path) -> None:
    assert run(LocalEnvironment(tmp_path).shell("kill -9 $$")).exit_code == -9


def test_variables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHIELING_A", "host")
    monkeypatch.setenv("SERVICE_API_KEY", "hunter2")
    command = "echo $SHIELING_A $SHIELING_B $SERVICE_API_KEY"
    env = LocalEnvironment(tmp_path, env_vars={"SHIELING_B": "env"})
    assert run(env.shell(command)).output == "host env\n"
    assert run(env.shell(command, env={"SHIELING_B": "call"})).output == "host call\n"
    alone = LocalEnvironment(tmp_path, env_vars={"SHIELING_B": "env"}, inherit_env=False)
    assert run(alone.shell(command)).output.strip() == "env"
    assert "hunter2" in run(LocalEnvironment(tmp_path, host_env="all").shell(command)).output


def test_without_inheriting_only_the_given_variables_are_there(tmp_path: Path) -> None:
    set_by_bash = {"PWD", "SHLVL", "_", ""}
    env = LocalEnvironment(tmp_path, env_vars={"Z": "1"}, inherit_env=False)
    assert set(run(env.shell("compgen -e", env={"Y": "2"})).output.split("\n")) - set_by_bash == {"Z", "Y"}
    assert run(env.shell("ls -d / && echo $LANG", env={"LANG": "C"})).output == "/\nC\n"
    ruled = LocalEnvironment(tmp_path, inherit_env=False, shieling={"allow": ["env"], "env": {"HOME": "/h"}})
    told = run(ruled.shell("env")).output
    assert "HOME=/h\n" in told and "PATH=" not in told

    async def talked_to() -> bytes:
        async with await env.create_process("echo ${HOME-none} $Z") as process:
            return await process.recv()

    assert run(talked_to()) == b"none 1\n"


def test_variables_of_the_options_may_be_pairs(tmp_path: Path) -> None:
    env = LocalEnvironment(tmp_path, inherit_env=False, shieling={"env": iter([("HOME", "/h"), ("MINE", "1")])})
    for _ in range(2):
        assert run(env.shell("echo $HOME $MINE")).output.strip() == "/h 1"


def test_output_is_cut_at_exactly_100000_characters(tmp_path: Path) -> None:
    env = LocalEnvironment(tmp_path)
    for size, cut in ((100_000, False), (100_001, True), (5_000_000, True)):
        result = run(env.shell(f"head -c {size} /dev/zero | tr '\\0' x"))
        assert (len(result.output), result.truncated, result.exit_code) == (100_000, cut, 0)


@pytest.mark.parametrize("timeout", [0, -1, float("nan")])
def test_a_timeout_has_to_be_positive(tmp_path: Path, timeout: float) -> None:
    with pytest.raises(ValueError, match="timeout must be positive or None, got"):
        run(LocalEnvironment(tmp_path).shell("echo", timeout=timeout))


def test_a_timeout_is_exit_code_minus_one(env: LocalEnvironment) -> None:
    assert run(env.shell("sleep 20", timeout=1)) == ExecutionResult("[Command timed out]", -1)


# Weaknesses of the original: processes


@pytest.mark.parametrize(
    "command",
    ["sleep 7651 & wait", "sh -c 'sleep 7651; echo z'", "echo partial; sleep 7651", "setsid sleep 7651 & wait"],
)
def test_a_timeout_ends_everything_and_keeps_the_output(env: LocalEnvironment, command: str) -> None:
    result = run(env.shell(command, timeout=1))
    assert result.exit_code == -1
    assert result.output == ("partial\n[Command timed out]" if "partial" in command else "[Command timed out]")
    assert gone("sleep 7651")


@pytest.mark.parametrize("timeout", [30, None])
def test_a_background_child_does_not_hold_the_command(env: LocalEnvironment, timeout: float | None) -> None:
    start = time.monotonic()
    assert run(env.shell("sleep 7652 & echo started", timeout=timeout)) == ExecutionResult("started\n", 0)
    assert time.monotonic() - start < 25
    assert gone("sleep 7652")


def test_commands_do_not_read_the_hosts_input(env: LocalEnvironment) -> None:
    assert run(env.shell("cat; echo done", timeout=20)).output == "done\n"


def test_much_output_takes_little_memory(tmp_path: Path) -> None:
    code = """
        import asyncio, resource
        from shieling.adapters.pydantic_ai import LocalEnvironment
        env = LocalEnvironment()
        async def work():
            await env.shell("true")
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            result = await env.shell("yes | head -c 300M")
            assert result.truncated and len(result.output) == 100_000
            print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
        asyncio.run(work())
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) <= 40


def test_many_commands_at_once_keep_their_outputs_apart(env: LocalEnvironment) -> None:
    async def work() -> list[ExecutionResult]:
        return await asyncio.gather(*(env.shell(f"echo {number}") for number in range(8)))

    assert [result.output for result in run(work())] == [f"{number}\n" for number in range(8)]


def test_cancelling_ends_the_command(tmp_path: Path) -> None:
    async def work() -> None:
        task = asyncio.ensure_future(LocalEnvironment(tmp_path).shell("touch up; sleep 7653"))
        while not (tmp_path / "up").exists():
            await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run(work())
    assert gone("sleep 7653")


def test_a_missing_directory_is_an_error_as_in_the_original(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        run(LocalEnvironment(tmp_path / "no").shell("true"))


def test_a_command_that_cannot_start_is_a_result(tmp_path: Path) -> None:
    result = run(LocalEnvironment(tmp_path).shell("echo a\0b"))
    assert result.exit_code == 126 and result.output.startswith("Command not")
    assert "at byte 6" in result.output


@pytest.mark.parametrize("command", ["echo (", "))", "case x in (", "true; for"])
def test_a_message_of_the_shell_shows_the_command_alone(env: LocalEnvironment, command: str) -> None:
    result = run(env.shell(command))
    assert result.exit_code == 2 and "syntax error" in result.output and "exec" not in result.output


def test_a_policy_is_an_option_away(tmp_path: Path) -> None:
    env = LocalEnvironment(tmp_path, shieling={"deny": ["rm"]})
    result = run(env.shell("env rm f"))
    assert result.exit_code == 126 and "rm" in result.output


def test_the_sandbox_confines_commands(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "outside").write_text("hunter2")
    env = LocalEnvironment(tmp_path / "root", environment=need("sandbox"))
    assert "hunter2" not in run(env.shell(f"cat {tmp_path}/outside ../outside")).output


# Processes that are talked to


def test_a_process_is_talked_to(env: LocalEnvironment) -> None:
    async def work() -> None:
        async with await env.create_process("while read x; do echo got $x; echo err $x >&2; done") as process:
            assert process.returncode is None
            await process.send(b"one\n")
            assert await process.recv(timeout=20) == b"got one\n"
            assert await process.recv_stderr(timeout=20) == b"err one\n"
            with pytest.raises(TimeoutError):
                await process.recv(timeout=0.05)
            for timeout in (0, -1):
                with pytest.raises(TimeoutError):
                    await process.recv(timeout=timeout)
                with pytest.raises(TimeoutError):
                    await process.recv_stderr(timeout=timeout)
                with pytest.raises(TimeoutError):
                    await process.wait(timeout=timeout)
            with pytest.raises(TimeoutError):
                await process.wait(timeout=0.05)
            await process.send(b"two\n")
            assert await process.recv(timeout=20) == b"got two\n"
        assert process.returncode is not None

    run(work())


@pytest.mark.parametrize(
    ("command", "code"), [("kill -9 $$", -9), ("kill -15 $$", -15), ("exit 137", 137), ("sh -c 'kill -9 $$'; exit $?", 137)]
)
def test_a_signal_is_no_exit_code_above_128(env: LocalEnvironment, command: str, code: int) -> None:
    async def work() -> None:
        async with await env.create_process(command) as process:
            assert await process.wait(timeout=20) == code
            assert process.returncode == code

    run(work())


def test_an_empty_command_of_a_process_does_nothing(env: LocalEnvironment) -> None:
    async def work() -> None:
        async with await env.create_process("") as process:
            assert await process.wait(timeout=20) == 0 and await process.recv() == b""

    run(work())


def test_writing_to_a_process_that_has_ended_is_an_error(env: LocalEnvironment) -> None:
    async def work() -> None:
        async with await env.create_process("exit 3") as process:
            assert await process.wait(timeout=20) == 3
            with pytest.raises(BrokenPipeError):
                await process.send(b"x")
        async with await env.create_process("cat") as process:
            await process.kill()
            with pytest.raises(BrokenPipeError):
                await process.send(b"x")
            assert await process.recv() == b""

    run(work())


def test_output_can_be_read_after_the_end(env: LocalEnvironment) -> None:
    async def work() -> None:
        process = await env.create_process("echo out; echo err >&2; exit 3")
        assert await process.wait(timeout=20) == 3
        assert process.returncode == 3
        assert await process.recv() == b"out\n"
        assert await process.recv() == b""
        assert await process.recv_stderr() == b"err\n"
        assert await process.recv_stderr() == b""

    run(work())


def test_output_comes_in_parts_of_8192_bytes(tmp_path: Path) -> None:
    async def work() -> int:
        total = 0
        async with await LocalEnvironment(tmp_path).create_process("head -c 50000 /dev/zero") as process:
            while part := await process.recv(timeout=20):
                assert len(part) <= 8192
                total += len(part)
        return total

    assert run(work()) == 50_000


def test_killing_a_process_ends_its_children(env: LocalEnvironment) -> None:
    async def work() -> None:
        process = await env.create_process("sleep 7654 & echo up; wait")
        assert await process.recv(timeout=20) == b"up\n"
        await process.kill()
        assert process.returncode == -9
        await process.kill()

    run(work())
    assert gone("sleep 7654")


def test_a_process_gets_variables(env: LocalEnvironment) -> None:
    async def work() -> bytes:
        async with await env.create_process("echo $A", env={"A": "1"}) as process:
            return await process.recv(timeout=20)

    assert run(work()) == b"1\n"


# Files


def test_files_are_written_and_read(files: ExecutionEnvironment) -> None:
    run(files.write_file("d/e/a.txt", "one\ntwo\n"))
    assert run(files.read_file("d/e/a.txt")) == "     1\tone\n     2\ttwo\n"
    assert run(files.read_file("d/e/a.txt", offset=1, limit=1)) == "     2\ttwo\n"
    run(files.write_file("b", b"\xff\xfe"))
    assert run(files.read_file("b")) == b"\xff\xfe"


def test_images_are_bytes_by_their_suffix(files: ExecutionEnvironment) -> None:
    for suffix in ("png", "JPG", "jpeg", "gif", "webp", "bmp", "svg"):
        run(files.write_file(f"i.{suffix}", "text"))
        assert run(files.read_file(f"i.{suffix}")) == b"text"


def test_what_is_not_there_is_named(files: ExecutionEnvironment) -> None:
    run(files.write_file("d/f", "x\n"))
    with pytest.raises(FileNotFoundError, match="^File not found: nope$"):
        run(files.read_file("nope"))
    with pytest.raises(FileNotFoundError, match="^'d' is a directory, not a file.$"):
        run(files.read_file("d"))
    with pytest.raises(FileNotFoundError, match="^File not found: nope$"):
        run(files.replace_str("nope", "a", "b"))
    with pytest.raises(NotADirectoryError, match="Not a directory: "):
        run(files.ls("d/f"))
    with pytest.raises(ValueError, match="Offset 9 exceeds file length"):
        run(files.read_file("d/f", offset=9))


def test_text_is_replaced(files: ExecutionEnvironment) -> None:
    run(files.write_file("a", "one two two\n"))
    assert run(files.replace_str("a", "one", "1")) == 1
    with pytest.raises(ValueError, match="old_string found 2 times in a"):
        run(files.replace_str("a", "two", "2"))
    assert run(files.replace_str("a", "two", "2", replace_all=True)) == 2
    assert run(files.read_file("a")) == "     1\t1 2 2\n"
    with pytest.raises(ValueError, match="old_string not found in a"):
        run(files.replace_str("a", "nope", "x"))


@pytest.mark.parametrize("environment", ["local", "sandbox"])
def test_a_file_with_crlf_keeps_it(tmp_path: Path, environment: str) -> None:
    (tmp_path / "a").write_bytes(b"a\r\nb\r\nc\r\n")
    env = LocalEnvironment(tmp_path, environment=need(environment))
    assert run(env.replace_str("a", "b", "B")) == 1
    assert run(env.replace_str("a", "a\nB", "A\nB")) == 1
    assert (tmp_path / "a").read_bytes() == b"A\r\nB\r\nc\r\n"


def test_a_binary_file_has_no_text_to_replace(files: ExecutionEnvironment) -> None:
    run(files.write_file("b", b"\xff\xfe"))
    with pytest.raises(ValueError, match="^b is not a text file"):
        run(files.replace_str("b", "x", "y"))


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", "link/passwd"])
def test_paths_outside_the_root_are_refused(env: LocalEnvironment, tmp_path: Path, path: str) -> None:
    (tmp_path / "link").symlink_to("/etc")
    for call in (
        env.read_file(path),
        env.write_file(path, "x"),
        env.replace_str(path, "a", "b"),
        env.ls(path),
        env.grep("x", path=path),
    ):
        with pytest.raises((PermissionError, FileNotFoundError)):
            run(call)
    local = LocalEnvironment(tmp_path)
    with pytest.raises(PermissionError, match=f"Path '{path}' resolves outside the environment root."):
        run(local.read_file(path))


def test_a_directory_is_listed(env: LocalEnvironment, tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "a.txt").write_text("12345")
    (tmp_path / "dangling").symlink_to("nowhere")
    (tmp_path / "loop").symlink_to("loop")
    assert run(env.ls()) == [
        FileInfo("a.txt", "a.txt", False, 5),
        FileInfo("d", "d", True, None),
        FileInfo("dangling", "dangling", False, None),
        FileInfo("loop", "loop", False, None),
    ]
    for call in (env.read_file("loop"), env.replace_str("loop", "a", "b"), env.ls("loop"), env.write_file("loop", "x")):
        with pytest.raises(OSError):
            run(call)
    assert run(env.grep("x", path="loop")) == "" and run(env.glob("*", path="loop")) == []
    (tmp_path / "d" / "x").write_text("")
    assert run(env.ls("d")) == [FileInfo("x", "d/x", False, 0)]


def test_files_are_found(files: ExecutionEnvironment) -> None:
    for path in ("a.py", "d/b.py", "d/e/c.py", "d/x.txt"):
        run(files.write_file(path, "import os\n"))
    assert run(files.glob("*.py")) == ["a.py"]
    assert run(files.glob("**/*.py")) == ["a.py", "d/b.py", "d/e/c.py"]
    assert run(files.glob("*.py", path="d")) == ["d/b.py"]
    assert run(files.glob("*.rs")) == []


@pytest.mark.parametrize("pattern", ["../*", "/etc/*", "d/../../*", "*/../../*"])
def test_a_glob_does_not_leave_the_root(env: LocalEnvironment, pattern: str) -> None:
    with pytest.raises(PermissionError, match="outside the environment root"):
        run(env.glob(pattern))


def test_contents_are_searched(files: ExecutionEnvironment) -> None:
    run(files.write_file("a.py", "import os\nx = 1\nimport re\n"))
    run(files.write_file("d/b.txt", "import\n"))
    run(files.write_file(".hidden/c.py", "import\n"))
    run(files.write_file("binary", b"import\0"))
    assert run(files.grep("import")) == "a.py:1:import os\na.py:3:import re\nd/b.txt:1:import"
    assert run(files.grep("import", output_mode="files_with_matches")) == "a.py\nd/b.txt"
    assert run(files.grep("import", output_mode="count")) == "a.py:2\nd/b.txt:1"
    assert run(files.grep("import", glob_pattern="*.py", output_mode="count")) == "a.py:2"
    assert run(files.grep("import", path="d")) == "d/b.txt:1:import"
    # What is hidden is searched where a file is named, not where its directory is.
    assert run(files.grep("import", path=".hidden")) == ""
    assert run(files.grep("import", path=".hidden/c.py")) == ".hidden/c.py:1:import"
    assert run(files.grep("import", path="./.hidden/c.py", output_mode="count")) == ".hidden/c.py:1"
    assert run(files.grep("import", path="binary")) == ""
    assert run(files.grep(r"(?<=import )\w+", output_mode="count")) == "a.py:2"
    assert run(files.grep("nothing")) == ""


def test_a_named_file_is_searched_only_if_the_glob_matches_it() -> None:
    files = MemoryEnvironment({"a.py": "x"})
    assert run(files.grep("x", path="a.py", glob_pattern="*.py")) == "a.py:1:x"
    assert run(files.grep("x", path="a.py", glob_pattern="*.txt")) == ""


def test_commands_stand_in_for_the_methods_for_files(tmp_path: Path) -> None:
    env = LocalEnvironment(tmp_path)

    def output(command: str) -> str:
        return run(env.shell(command)).output

    for name, text in (("it's.py", "a\nb\nc\n"), ("d/x=1.txt", "aa\n"), ("-e", "")):
        run(env.write_file(name, text))
    assert output(f"echo {shell_escape('$HOME it`s')}") == "$HOME it`s\n"
    for name, offset, limit in (("it's.py", 0, 9), ("it's.py", 1, 1), ("d/x=1.txt", 0, 9)):
        told = output(build_read_file_cmd(name, offset=offset, limit=limit))
        assert told == run(env.read_file(name, offset=offset, limit=limit))
    assert output(build_grep_cmd("a+", glob_pattern="*.txt")) == "./d/x=1.txt:1:aa\n"
    assert output(build_grep_cmd("-e|b", path="it's.py", output_mode="files_with_matches")) == "it's.py\n"
    assert filter_grep_count_output(output(build_grep_cmd("aa", output_mode="count"))) == "./d/x=1.txt:1"
    assert parse_glob_output(output(build_glob_cmd("*.py"))) == ["./it's.py"]
    assert parse_glob_output(output(build_glob_cmd("d/*.txt"))) == ["./d/x=1.txt"]
    assert parse_glob_output(output(build_glob_cmd("*", path="-e"))) == ["./-e"]
    assert parse_glob_output(output(build_glob_cmd("*.rs"))) == []


def test_a_search_stops_after_many_matches(files: ExecutionEnvironment) -> None:
    run(files.write_file("a", "x\n" * 1_500))
    run(files.write_file("b", "x\n" * 1_500))
    lines = run(files.grep("x")).split("\n")
    assert lines[-1] == "[... truncated at 1000 matches]" and len(lines) == 1_501


def test_an_expensive_pattern_neither_stops_the_loop_nor_lasts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from shieling.adapters.pydantic_ai import _matching

    monkeypatch.setattr(_matching, "SEARCH_SECONDS", 1.0)
    (tmp_path / "a").write_text("a" * 40 + "b")

    async def work() -> int:
        ticks = 0
        task = asyncio.ensure_future(LocalEnvironment(tmp_path).grep("(a+)+$"))
        while not task.done():
            await asyncio.sleep(0.01)
            ticks += 1
        with pytest.raises(TimeoutError, match="took more than"):
            await task
        return ticks

    assert run(work()) > 5


def test_links_out_of_the_root_are_not_searched(env: LocalEnvironment, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/etc/passwd")
    (tmp_path / "a").write_text("root\n")
    assert run(env.grep("root")) == "a:1:root"


# Memory


def test_memory_puts_paths_in_order() -> None:
    env = MemoryEnvironment({"/a": "1", "./b": "2", "c/../d": "3"})
    assert dict(env.files) == {"a": "1", "b": "2", "d": "3"}
    with pytest.raises(TypeError):
        env.files["a"] = "x"  # type: ignore[index]
    assert run(MemoryEnvironment({"": "x"}).grep("x")) == ".:1:x"


def test_memory_has_a_shell_only_with_a_handler() -> None:
    assert MemoryEnvironment().capabilities == TOOLS - {"shell"}
    with pytest.raises(RuntimeError, match="MemoryEnvironment has no command_handler configured"):
        run(MemoryEnvironment().shell("x"))
    env = MemoryEnvironment(command_handler=lambda command: ExecutionResult(f"ran {command}", 1))
    assert env.capabilities == TOOLS
    assert run(env.shell("x", timeout=1, env={"A": "1"})) == ExecutionResult("ran x", 1)


def test_memory_takes_an_async_handler() -> None:
    async def handle(command: str) -> ExecutionResult:
        return ExecutionResult(command, 0)

    assert run(MemoryEnvironment(command_handler=handle).shell("x")).output == "x"


def test_in_memory_a_file_may_stand_beside_a_directory_of_its_name() -> None:
    env = MemoryEnvironment({"file": "1\n", "file/child": "2\n"})
    assert run(env.read_file("file")) == "     1\t1\n"
    assert run(env.read_file("file/child")) == "     1\t2\n"
    with pytest.raises(FileNotFoundError, match="is a directory"):
        run(MemoryEnvironment({"d/child": "2"}).read_file("d"))


def test_memory_lists_directories() -> None:
    env = MemoryEnvironment({"d/a": b"123", "b": "ä"})
    assert run(env.ls()) == [FileInfo("b", "b", False, 2), FileInfo("d", "d", True, None)]
    assert run(env.ls("d")) == [FileInfo("a", "d/a", False, 3)]
    with pytest.raises(NotADirectoryError, match="Not a directory: nope"):
        run(env.ls("nope"))


# Docker


def test_a_hardened_container_is_described() -> None:
    env = DockerEnvironment.hardened(image="x:1")
    assert (env._image, env._user, env._network_disabled, env._cap_drop) == ("x:1", "nobody", True, ["ALL"])
    assert env._tmpfs == {"/tmp": "noexec,nosuid,size=64m", "/workspace": "size=128m"}
    assert run(env.is_alive()) is False


@pytest.mark.parametrize("kind", ["sandbox", "memory"])
def test_nothing_is_lost_of_more_files_than_one_answer_holds(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from shieling.adapters.pydantic_ai import local

    monkeypatch.setattr(local, "_PAGE", 3)
    env = LocalEnvironment(tmp_path, environment=need(kind) if kind == "sandbox" else kind)
    names = [f"{number}.txt" for number in range(10)]
    for name in names:
        run(env.write_file(f"many/{name}", "hay"))
    run(env.write_file("zz.txt", "needle\n"))
    assert [entry.name for entry in run(env.ls("many"))] == names
    assert run(env.glob("zz*")) == ["zz.txt"] and len(run(env.glob("many/*.txt"))) == 10
    assert run(env.grep("needle")) == "zz.txt:1:needle"


def test_errors_of_files_in_a_sandbox_are_those_of_the_host(env: LocalEnvironment, tmp_path: Path) -> None:
    with pytest.raises(NotADirectoryError, match="Not a directory: no"):
        run(env.ls("no"))
    assert run(env.glob("*", path="no")) == [] and run(env.grep("x", path="no")) == ""
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a").write_text("x")
    assert [entry.path for entry in run(env.ls(str(tmp_path / "sub")))] == ["sub/a"]


@pytest.mark.parametrize("environment", ["local", "sandbox"])
def test_files_are_named_alike_where_an_environment_shows_them(environment: str, tmp_path: Path) -> None:
    ruled: dict[str, Any] = {"environment": need(environment), "shieling": {"deny": ["nothing"], "ignore": ["nothing"]}}
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/a").write_text("x\n")
    (tmp_path / "b").write_text("x\n")
    (tmp_path / "to-sub").symlink_to("sub")
    (tmp_path / "sub/up").symlink_to("..")

    async def answers(env: LocalEnvironment) -> list[Any]:
        return [
            *[await env.ls(path) for path in (".", "to-sub", "sub/up", str(tmp_path / "sub"))],
            *[await env.grep("x", path=path) for path in ("to-sub", "sub/up", "to-sub/a", str(tmp_path / "b"))],
            await env.glob("../*", path="sub"),
            await env.glob("**/up/*", path="sub"),
        ]

    assert run(answers(LocalEnvironment(tmp_path, **ruled))) == run(answers(LocalEnvironment(tmp_path)))
    for call in (LocalEnvironment(tmp_path).read_file, LocalEnvironment(tmp_path, **ruled).read_file):
        with pytest.raises(FileNotFoundError, match="^File not found: b/x$"):
            run(call("b/x"))


def test_a_root_that_is_not_there_has_no_files_and_is_made_by_writing(tmp_path: Path) -> None:
    for kind in ("local", "sandbox"):
        env = LocalEnvironment(tmp_path / kind, environment=need(kind))
        with pytest.raises(FileNotFoundError, match="^File not found: a$"):
            run(env.read_file("a"))
        with pytest.raises(NotADirectoryError, match="^Not a directory: [.]$"):
            run(env.ls())
        assert run(env.glob("*")) == [] and run(env.grep("x")) == ""
        run(env.write_file("a", "x\n"))
        assert (tmp_path / kind / "a").read_text() == "x\n"


def test_what_a_sandbox_takes_back_is_told(tmp_path: Path) -> None:
    (tmp_path / ".git" / "hooks").mkdir(parents=True)
    env = LocalEnvironment(tmp_path, environment=need("sandbox"))
    result = run(env.shell("printf done; echo x > .git/hooks/pre-commit; echo y > kept"))
    assert result.exit_code == 0 and result.output.startswith("done\n[held back: `.git/hooks/pre-commit` is a hook")
    with pytest.raises(PermissionError, match="^held back: `.git/hooks/pre-push` is a hook"):
        run(env.write_file(".git/hooks/pre-push", "x"))
    assert os.listdir(tmp_path / ".git/hooks") == [] and (tmp_path / "kept").exists()


def test_rules_and_approvers_see_the_command_as_it_is(env: LocalEnvironment, tmp_path: Path) -> None:
    asked: list[str] = []
    kind = env._environment
    options = {"approval": "always", "approver": lambda question: asked.append(question.text) or True}
    strict = LocalEnvironment(tmp_path, environment=kind, shieling=options)
    assert run(strict.shell("echo hi")).output == "hi\n" and asked == ["echo hi"]


def test_a_named_file_that_a_rule_hides_is_not_searched(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("SECRET=1\n")
    env = LocalEnvironment(tmp_path, shieling={"ignore": [".env"]})
    assert run(env.grep("SECRET", path=".env")) == ""
    assert run(LocalEnvironment(tmp_path).grep("SECRET", path=".env")) == ".env:1:SECRET=1"


def test_a_process_without_a_stream_says_so() -> None:
    calls: dict[str, Any] = {
        "stdin": lambda process: process.send(b"x"),
        "stdout": lambda process: process.recv(),
        "stderr": lambda process: process.recv_stderr(timeout=1),
    }
    for name, call in calls.items():
        inner = mock.MagicMock(**{name: None})
        with pytest.raises(RuntimeError, match=f"^Process {name} is not available[.]$"):
            run(call(local._LocalEnvironmentProcess(inner)))


def test_processes_have_the_original_names(tmp_path: Path) -> None:
    async def work() -> None:
        async with await LocalEnvironment(tmp_path).create_process("cat") as process:
            assert type(process) is local._LocalEnvironmentProcess
            await process.send(b"x")
            assert await process.recv() == b"x"

    run(work())
    assert issubclass(docker._DockerEnvironmentProcess, local._LocalEnvironmentProcess)
