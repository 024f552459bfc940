"""`DockerEnvironment` of the adapter for pydantic-ai, in containers of a Docker daemon."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import until
from docker_engine import containers, engine  # noqa: F401

from shieling.adapters.pydantic_ai import DockerEnvironment, ExecutionResult
from shieling.adapters.pydantic_ai.docker import DockerEnvironmentProcess

Check = Callable[[DockerEnvironment], Awaitable[None]]


def plain(image: str, **options: Any) -> DockerEnvironment:
    return DockerEnvironment(image=image, network_disabled=True, **options)


@pytest.fixture(params=["plain", "hardened"])
def within(request: pytest.FixtureRequest, engine: str) -> Callable[[Check], None]:  # noqa: F811
    """Runs a check in a container, of either kind."""

    def run(check: Check) -> None:
        async def go() -> None:
            make = plain if request.param == "plain" else lambda image: DockerEnvironment.hardened(image=image)
            async with make(engine) as env:
                await check(env)
                assert await env.is_alive()
            assert not await env.is_alive()

        asyncio.run(go())
        assert containers() == []

    return run


async def running(env: DockerEnvironment, words: str) -> int:
    """How many processes of the container have these words."""
    result = await env.shell("ps -o args")
    return sum(line.strip() == words for line in result.output.splitlines())


def test_commands_run_in_the_container(within: Callable[[Check], None]) -> None:
    async def check(env: DockerEnvironment) -> None:
        command = 'echo out; echo err >&2; echo "$A"; pwd; exit 3'
        assert await env.shell(command, env={"A": "a b"}) == ExecutionResult("out\nerr\na b\n/workspace\n", 3)
        assert (await env.shell("cat")).output == ""
        assert (await env.shell("no-such-program")).exit_code == 127
        assert (await env.shell("echo " + "x" * 300_000)).truncated
        assert (await env.shell("", timeout=None)).exit_code == 0
        with pytest.raises(ValueError, match="timeout must be positive or None, got 0"):
            await env.shell("true", timeout=0)

    within(check)


def test_a_timeout_ends_everything_and_keeps_the_output(within: Callable[[Check], None]) -> None:
    async def check(env: DockerEnvironment) -> None:
        result = await env.shell("echo partial; (sleep 7001; true) & sleep 7002", timeout=1.0)
        assert result == ExecutionResult("partial\n\n[Command timed out]", 124)
        assert await running(env, "sleep 7001") == await running(env, "sleep 7002") == 0
        # A command's own 124 is no timeout.
        assert await env.shell("echo done; exit 124") == ExecutionResult("done\n", 124)

    within(check)


def test_a_cancelled_command_ends_in_the_container(within: Callable[[Check], None]) -> None:
    async def check(env: DockerEnvironment) -> None:
        task = asyncio.create_task(env.shell("sleep 7003"))
        while not await running(env, "sleep 7003"):
            await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await running(env, "sleep 7003") == 0

    within(check)


def test_much_output_is_bounded(within: Callable[[Check], None]) -> None:
    async def check(env: DockerEnvironment) -> None:
        result = await env.shell("yes | head -c 50000000")
        assert len(result.output) == 100_000 and result.truncated and result.exit_code == 0

    within(check)


def test_files(within: Callable[[Check], None]) -> None:
    async def check(env: DockerEnvironment) -> None:
        await env.write_file("d/a b.txt", "one\ntwo\n")
        await env.write_file("picture.PNG", b"\x89\x00")
        await env.write_file("data", b"\xff\xfe")
        await env.write_file("-x", "x")
        await env.shell("ln -s nowhere link; touch .hidden")
        assert await env.read_file("d/a b.txt") == "     1\tone\n     2\ttwo\n"
        assert await env.read_file("/workspace/d/a b.txt", offset=1) == "     2\ttwo\n"
        assert await env.read_file("picture.PNG") == b"\x89\x00"
        assert await env.read_file("data") == b"\xff\xfe"
        with pytest.raises(FileNotFoundError, match="File not found or not readable: x"):
            await env.read_file("x")
        with pytest.raises(FileNotFoundError, match="File not found: x.png"):
            await env.read_file("x.png")
        with pytest.raises(ValueError, match=r"Offset 9 exceeds file length \(2 lines\)"):
            await env.read_file("d/a b.txt", offset=9)
        assert [(one.name, one.is_dir, one.size) for one in await env.ls()] == [
            ("-x", False, 1),
            (".hidden", False, 0),
            ("d", True, None),
            ("data", False, 2),
            ("link", False, None),
            ("picture.PNG", False, 2),
        ]
        assert [one.path for one in await env.ls("d")] == ["d/a b.txt"]
        with pytest.raises(NotADirectoryError):
            await env.ls("data")
        assert await env.replace_str("d/a b.txt", "two", "2") == 1
        with pytest.raises(ValueError, match=r"old_string not found in d/a b.txt\."):
            await env.replace_str("d/a b.txt", "two", "2")

    within(check)


def test_searches(within: Callable[[Check], None]) -> None:
    async def check(env: DockerEnvironment) -> None:
        await env.write_file("a.py", "import os\nx = 1\n")
        await env.write_file("src/b.py", "import re\n")
        await env.write_file("src/c.txt", "import nothing\n")
        await env.write_file("binary", b"import \x00")
        assert await env.glob("*.py") == ["a.py"]
        assert await env.glob("**/*.py") == ["a.py", "src/b.py"]
        assert await env.glob("*", path="src") == ["src/b.py", "src/c.txt"]
        assert await env.glob("*", path="none") == []
        found = await env.grep("import (os|re)")
        assert sorted(found.splitlines()) == ["a.py:1:import os", "src/b.py:1:import re"]
        assert await env.grep("import", glob_pattern="*.txt", output_mode="files_with_matches") == "src/c.txt"
        assert await env.grep("m|x", path="a.py", output_mode="count") == "a.py:2"
        assert await env.grep("[[:digit:]]", path="src") == ""
        await env.write_file("many", "y\n" * 3_000)
        lines = (await env.grep("y", path="many")).splitlines()
        assert len(lines) == 1_001 and lines[-1] == "[... truncated at 1000 matches]"

    within(check)


def test_a_process_is_talked_to_and_killed(within: Callable[[Check], None]) -> None:
    async def check(env: DockerEnvironment) -> None:
        async with await env.create_process("cat -; sleep 7004", env={"A": "1"}) as process:
            assert isinstance(process, DockerEnvironmentProcess)
            await process.send(b"hello\n")
            assert await process.recv(20) == b"hello\n"
            assert process.returncode is None
        assert process.returncode is not None
        assert await running(env, "sleep 7004") == await running(env, "cat -") == 0
        ending = await env.create_process("echo err >&2; exit 5")
        assert await ending.wait(20) == 5
        assert await ending.recv_stderr(5) == b"err\n"

    within(check)


def test_the_hardened_container_is_confined(engine: str) -> None:  # noqa: F811
    async def go() -> None:
        async with DockerEnvironment.hardened(image=engine, memory_limit="64m", pids_limit=40) as env:
            assert (await env.shell("id -u")).output == "65534\n"
            assert (await env.shell("touch /x")).exit_code != 0
            assert "0000000000000000" in (await env.shell("grep CapEff /proc/self/status")).output
            assert "1" in (await env.shell("grep NoNewPrivs /proc/self/status")).output
            assert (await env.shell("ls /sys/class/net")).output == "lo\n"
            assert (await env.shell("echo x >/workspace/x && echo x >/tmp/x; cat /workspace/x")).output == "x\n"

    asyncio.run(go())


def test_options_reach_the_container(engine: str, tmp_path: Path) -> None:  # noqa: F811
    (tmp_path / "given").write_text("text")

    async def go() -> None:
        mounts = {str(tmp_path): {"bind": "/data", "mode": "ro"}}
        async with plain(engine, env_vars={"A": "1"}, work_dir="/some where", volumes=mounts) as env:
            assert (await env.shell('echo "$A"; pwd; cat /data/given')).output == "1\n/some where\ntext"
            assert (await env.shell("touch /data/new")).exit_code != 0

    asyncio.run(go())


def test_what_cannot_be_started_says_why(engine: str) -> None:  # noqa: F811
    async def go() -> None:
        with pytest.raises(RuntimeError, match="was not started: .*no-such-image"):
            async with plain("no-such-image:1"):
                pass
        with pytest.raises(RuntimeError, match="was not started: .*no-such-runtime"):
            async with plain(engine, docker_binary="no-such-runtime"):
                pass
        with pytest.raises(RuntimeError, match="DockerEnvironment not started. Use `async with"):
            await plain(engine).shell("true")

    asyncio.run(go())
    assert containers() == []


def test_the_container_ends_with_its_host_process(engine: str) -> None:  # noqa: F811
    program = """
        import asyncio, sys
        from shieling.adapters.pydantic_ai import DockerEnvironment
        async def main():
            async with DockerEnvironment(image=sys.argv[1], network_disabled=True) as env:
                await env.shell("echo up")
                print("up", flush=True)
                await asyncio.sleep(600)
        asyncio.run(main())
        """
    host = subprocess.Popen([sys.executable, "-c", textwrap.dedent(program), engine], stdout=subprocess.PIPE)
    assert host.stdout is not None and host.stdout.readline() == b"up\n"
    assert len(containers()) == 1
    os.kill(host.pid, signal.SIGKILL)
    host.wait(30)
    host.stdout.close()
    until(lambda: containers() == [], "the container to be gone")


def test_several_commands_at_once(within: Callable[[Check], None]) -> None:
    async def check(env: DockerEnvironment) -> None:
        results = await asyncio.gather(*(env.shell(f"echo {number}") for number in range(8)))
        assert [result.output for result in results] == [f"{number}\n" for number in range(8)]

    within(check)
