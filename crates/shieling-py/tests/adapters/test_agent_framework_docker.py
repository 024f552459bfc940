"""`DockerShellTool` of the adapter for Microsoft's agent framework.

The container runtime is a program of the test that keeps its containers as files and runs their
commands on this host; where a Docker daemon answers, the last tests use it.
"""

from __future__ import annotations

import asyncio
import os
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from conftest import until
from docker_engine import containers, engine  # noqa: F401
from environments import sandbox  # noqa: F401

from shieling.adapters.agent_framework import (
    DOCKER_DEFAULT_IMAGE,
    DockerNotAvailableError,
    DockerShellTool,
    ShellCommandError,
    ShellExecutionError,
    ShellExecutor,
    ShellPolicy,
    ShellResult,
    build_exec_argv,
    build_run_argv,
    is_docker_available,
)
from shieling.adapters.agent_framework import _docker

RUNTIME = """#!{python}
import json, os, signal, subprocess, sys, time
state = {state!r}
args = sys.argv[1:]
with open(os.path.join(state, "calls"), "a") as calls:
    calls.write(json.dumps(args) + "\\n")
verb, rest = args[0], args[1:]
def path(name): return os.path.join(state, "container-" + name)
def options(words, known):
    found, env = {{}}, {{}}
    while words and words[0].startswith("-"):
        word = words.pop(0)
        if word in ("-d", "--rm", "-i", "--read-only", "-f"): continue
        value = words.pop(0)
        if word == "-e":
            name, _, text = value.partition("=")
            env[name] = text
        found[word] = value
    return found, env, words
if verb == "version":
    print("1.0")
elif verb == "run":
    found, env, words = options(rest, ())
    if words[0] == "no-such-image":
        sys.exit("no such image")
    name = found["--name"]
    if os.path.exists(path(name)): sys.exit("Conflict. The name is in use")
    if "-d" in rest or "-d" in args:
        open(path(name), "w").close()
        print("0123456789abcdef")
    else:
        with open(path(name), "w") as file: file.write(str(os.getpid()))
        os.setsid()
        os.execvpe(words[1], words[1:], {{**os.environ, **env}})
elif verb == "inspect":
    if os.path.exists(os.path.join(state, "busy")): sys.exit("Cannot connect to the daemon")
    print("true" if os.path.exists(path(rest[-1])) else "false")
elif verb == "exec":
    found, env, words = options(rest, ())
    if not os.path.exists(path(words[0])):
        sys.exit("no such container")
    # The client passes no signal on: the shell is a child in a session of its own.
    child = subprocess.Popen(words[1:], env={{**os.environ, **env}}, start_new_session=True)
    sys.exit(child.wait())
elif verb == "kill":
    with open(path(rest[-1])) as file: os.killpg(int(file.read()), signal.SIGKILL)
elif verb == "rm":
    try: os.remove(path(rest[-1]))
    except FileNotFoundError: sys.exit("no such container")
"""


class Runtime:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.binary = str(directory / "runtime")
        Path(self.binary).write_text(RUNTIME.format(python=sys.executable, state=str(directory)))
        os.chmod(self.binary, os.stat(self.binary).st_mode | stat.S_IXUSR)

    def calls(self) -> list[list[str]]:
        import json

        file = self.directory / "calls"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def containers(self) -> list[str]:
        return [path.name for path in self.directory.glob("container-*")]


@pytest.fixture
def runtime(tmp_path: Path) -> Runtime:
    directory = tmp_path / "runtime"
    directory.mkdir()
    return Runtime(directory)


def commands(
    tool: DockerShellTool, *texts: str, timeout: float | None = None
) -> list[ShellResult]:
    async def go() -> list[ShellResult]:
        async with tool:
            return [await tool.run(text, timeout=timeout) for text in texts]

    return asyncio.run(go())


ARGUMENTS: dict[str, Any] = {
    "binary": "docker",
    "image": "image",
    "container_name": "name",
    "user": "1:2",
    "network": "none",
    "memory": "512m",
    "pids_limit": 256,
    "workdir": "/workspace",
    "host_workdir": None,
    "mount_readonly": True,
    "read_only_root": True,
    "extra_env": None,
    "extra_args": None,
}


def test_a_container_starts_isolated() -> None:
    argv = build_run_argv(**ARGUMENTS)
    assert argv[:6] == ["docker", "run", "-d", "--rm", "--name", "name"]
    assert argv[-3:] == ["image", "sleep", "infinity"]
    text = " ".join(argv)
    for option in (
        "--user 1:2",
        "--network none",
        "--memory 512m",
        "--pids-limit 256",
        "--cap-drop ALL",
        "--security-opt no-new-privileges",
        "--tmpfs /tmp:rw,nosuid,nodev,size=64m",
        "--workdir /workspace",
        "--read-only",
    ):
        assert option in text
    assert "-v" not in argv


def test_mounts_variables_and_words_of_the_caller() -> None:
    argv = build_run_argv(
        **{
            **ARGUMENTS,
            "host_workdir": "/host",
            "read_only_root": False,
            "extra_env": {"A": "b c"},
            "extra_args": ["--label", "x=y"],
        }
    )
    assert argv[argv.index("-v") + 1] == "/host:/workspace:ro"
    assert argv[argv.index("-e") + 1] == "A=b c"
    assert argv[-5:-3] == ["--label", "x=y"]
    assert "--read-only" not in argv
    writable = build_run_argv(**{**ARGUMENTS, "host_workdir": "/host", "mount_readonly": False})
    assert "/host:/workspace:rw" in writable


def test_the_shell_in_a_container() -> None:
    names = {"binary": "podman", "container_name": "name"}
    bash = ["podman", "exec", "-i", "name", "bash"]
    assert build_exec_argv(**names, interactive=True) == [*bash, "--noprofile", "--norc"]
    assert build_exec_argv(**names, interactive=False) == [*bash, "-c"]
    assert build_exec_argv(**names, interactive=True, shell="sh")[-1] == "sh"


@pytest.mark.parametrize(
    "words",
    [
        ["--privileged"],
        ["--network=host"],
        ["--network", "host"],
        ["-v", "/:/host:rw"],
        ["-v/:/host"],
        ["-itv", "/:/host"],
        ["-u0:0"],
        ["--cap-add", "SYS_ADMIN"],
        ["--label", "x", "--pid=host"],
        ["--", "--privileged"],
        ["-m0"],
        ["--read-only=false"],
    ],
)
def test_words_that_break_the_isolation_are_refused(words: list[str]) -> None:
    with pytest.raises(ValueError, match="isolation defaults"):
        DockerShellTool(extra_run_args=words)


@pytest.mark.parametrize(
    "words", [["--label", "x=y"], ["--env-file", "-vars.env"], ["--init"], ["-e", "A=-v"], []]
)
def test_other_words_are_taken(words: list[str]) -> None:
    assert DockerShellTool(extra_run_args=words)._extra_run_args == tuple(words)


def test_unsafe_words_are_taken_as_they_are() -> None:
    tool = DockerShellTool(unsafe_extra_run_args=["--privileged"])
    assert tool._unsafe_extra_run_args == ("--privileged",)
    with pytest.raises(ValueError, match="non-string token at index 1: 2"):
        DockerShellTool(unsafe_extra_run_args=["--init", 2])  # type: ignore[list-item]


def test_defaults_of_the_constructor() -> None:
    tool = DockerShellTool()
    assert tool._image == DOCKER_DEFAULT_IMAGE
    assert tool._container_name.startswith("af-shell-") and len(tool._container_name) == 21
    assert (tool._network, tool._memory, tool._pids_limit) == ("none", "512m", 256)
    assert (tool._user, tool._workdir, tool._read_only_root) == ("65534:65534", "/workspace", True)
    assert isinstance(tool, ShellExecutor)
    with pytest.raises(ValueError, match="mode must be 'persistent' or 'stateless'"):
        DockerShellTool(mode="x")  # type: ignore[arg-type]
    DockerShellTool(approval_mode="never_require")


def test_a_runtime_that_is_not_there() -> None:
    assert is_docker_available("no-such-runtime-here") is False
    tool = DockerShellTool(docker_binary="no-such-runtime-here")
    with pytest.raises(DockerNotAvailableError, match="Failed to start container"):
        asyncio.run(tool.start())
    stateless = DockerShellTool(docker_binary="no-such-runtime-here", mode="stateless")
    with pytest.raises(DockerNotAvailableError, match="Failed to start container: .*No such file"):
        asyncio.run(stateless.run("echo x"))


def test_a_container_that_does_not_start(runtime: Runtime) -> None:
    assert is_docker_available(runtime.binary)
    tool = DockerShellTool(docker_binary=runtime.binary, image="no-such-image")
    with pytest.raises(DockerNotAvailableError, match=r"\(1\): no such image"):
        asyncio.run(tool.start())


def test_a_persistent_container_keeps_its_shell_and_is_removed(runtime: Runtime) -> None:
    tool = DockerShellTool(docker_binary=runtime.binary)
    results = commands(tool, "X=1; cd /tmp", 'echo "$X"; pwd; echo err >&2; (exit 4)')
    assert results[1].stdout == "1\n/tmp"
    assert results[1].stderr.strip() == "err"
    assert results[1].exit_code == 4
    assert runtime.containers() == []
    assert [call[0] for call in runtime.calls()].count("run") == 1


def test_a_stateless_tool_takes_a_container_for_each_command(runtime: Runtime) -> None:
    tool = DockerShellTool(docker_binary=runtime.binary, mode="stateless", env={"A": "b"})
    results = commands(tool, "X=1; echo $A; exit 3", 'echo "[$X]"')
    assert (results[0].stdout, results[0].exit_code) == ("b\n", 3)
    assert results[1].stdout == "[]\n"
    runs = [call for call in runtime.calls() if call[0] == "run"]
    assert len(runs) == 2
    assert all("--cap-drop" in call and "--rm" in call and "-i" in call for call in runs)


def test_a_stateless_timeout_ends_the_container(runtime: Runtime) -> None:
    tool = DockerShellTool(docker_binary=runtime.binary, mode="stateless")
    (result,) = commands(tool, "echo part; sleep 60", timeout=1.0)
    assert result.timed_out and result.stdout == "part\n"
    assert any(call[0] in ("kill", "rm") for call in runtime.calls())


def test_the_policy_goes_first(runtime: Runtime) -> None:
    tool = DockerShellTool(docker_binary=runtime.binary, policy=ShellPolicy(denylist=["id"]))
    with pytest.raises(ShellCommandError, match="Command rejected by policy"):
        asyncio.run(tool.run("id"))
    assert runtime.calls() == []


def test_m23_a_timeout_ends_the_command_inside(runtime: Runtime) -> None:
    mark = f"AF_TEST={os.urandom(8).hex()}"
    tool = DockerShellTool(docker_binary=runtime.binary)

    async def go() -> list[ShellResult]:
        async with tool:
            first = await tool.run(f"export {mark}; setsid sleep 61 & sleep 60", timeout=1.0)
            deadline = time.monotonic() + 10
            while any(mark.encode() in environ(pid) for pid in pids()):
                assert time.monotonic() < deadline
                await asyncio.sleep(0.02)
            return [first, await tool.run("echo next")]

    first, second = asyncio.run(go())
    assert first.timed_out and first.session_restarted and first.exit_code == 124
    assert second.stdout == "next"


def pids() -> list[str]:
    return [name for name in os.listdir("/proc") if name.isdigit()]


def environ(pid: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""


def test_m24_an_exit_keeps_its_result_and_a_dead_container_is_started_anew(
    runtime: Runtime,
) -> None:
    tool = DockerShellTool(docker_binary=runtime.binary)

    async def go() -> list[ShellResult]:
        async with tool:
            first = await tool.run("echo out; exit 3")
            for container in runtime.directory.glob("container-*"):
                container.unlink()
            return [first, await tool.run("echo next")]

    first, second = asyncio.run(go())
    assert (first.stdout, first.exit_code, first.session_restarted) == ("out", 3, True)
    assert second.stdout == "next"
    assert [call[0] for call in runtime.calls()].count("run") == 2


def test_a_runtime_that_does_not_answer_takes_no_shell_away(runtime: Runtime) -> None:
    tool = DockerShellTool(docker_binary=runtime.binary)

    async def go() -> list[str]:
        async with tool:
            await tool.run("X=1")
            (runtime.directory / "busy").touch()
            await tool.start()
            found = [(await tool.run('echo "[$X]"')).stdout]
            # The shell has ended, and whether the container has is not known: it is still there.
            await tool.run("exit 3")
            found.append((await tool.run("echo next")).stdout)
            return found

    assert asyncio.run(go()) == ["[1]", "next"]
    assert [call[0] for call in runtime.calls()].count("run") == 1
    assert runtime.containers() == []


def test_first_calls_at_once_start_one_container(runtime: Runtime) -> None:
    async def go() -> list[str]:
        async with DockerShellTool(docker_binary=runtime.binary) as tool:
            await tool.close()
            results = await asyncio.gather(*(tool.run(f"echo {number}") for number in range(3)))
            return [result.stdout for result in results]

    assert asyncio.run(go()) == ["0", "1", "2"]
    assert [call[0] for call in runtime.calls()].count("run") == 2


def test_a_container_that_has_stopped_is_removed_before_the_next_has_its_name(tmp_path: Path) -> None:
    runtime = Runtime(tmp_path)
    # Its containers stay after their end, as those of a busy daemon do.
    script = Path(runtime.binary).read_text().replace(
        'print("true" if os.path.exists(path(rest[-1])) else "false")', 'print("false")'
    )
    Path(runtime.binary).write_text(script)

    async def go() -> str:
        async with DockerShellTool(docker_binary=runtime.binary) as tool:
            await tool.run("exit 3")
            return (await tool.run("echo next")).stdout

    assert asyncio.run(go()) == "next"
    assert runtime.containers() == []


def test_a_stateless_command_keeps_no_more_than_is_shown(runtime: Runtime) -> None:
    tool = DockerShellTool(docker_binary=runtime.binary, mode="stateless", max_output_bytes=100)
    (result,) = commands(tool, "seq 1 1000000; echo END")
    assert result.truncated and result.exit_code == 0
    assert result.stdout.startswith("1\n2\n") and result.stdout.endswith("\nEND\n")
    assert f"[... truncated {6888896 + 4 - 100} bytes ...]" in result.stdout


def test_keywords_of_the_package_mean_nothing_in_a_container() -> None:
    with pytest.raises(ValueError, match="`shieling` means nothing"):
        DockerShellTool(shieling={"deny": ["rm"]})


@pytest.mark.parametrize("mode", ["persistent", "stateless"])
def test_m25_a_mount_that_cannot_be_written_is_an_error(
    runtime: Runtime, tmp_path: Path, mode: str
) -> None:
    host = tmp_path / "host"
    host.mkdir(mode=0o755)
    owner = os.stat(host)
    tool = DockerShellTool(
        docker_binary=runtime.binary,
        mode=mode,  # type: ignore[arg-type]
        host_workdir=host,
        mount_readonly=False,
        user="54321:54321",
    )
    with pytest.raises(ShellExecutionError, match="pass user='"):
        commands(tool, "true")
    fitting = DockerShellTool(
        docker_binary=runtime.binary,
        mode=mode,  # type: ignore[arg-type]
        host_workdir=host,
        mount_readonly=False,
        user=f"{owner.st_uid}:{owner.st_gid}",
    )
    assert commands(fitting, "echo fine")[0].stdout.strip() == "fine"


def test_a_cancelled_call_ends_what_it_started(runtime: Runtime) -> None:
    mark = f"AF_TEST={os.urandom(8).hex()}"
    started = runtime.directory / "started"

    async def go(mode: Any) -> None:
        started.unlink(missing_ok=True)
        async with DockerShellTool(docker_binary=runtime.binary, mode=mode) as tool:
            task = asyncio.ensure_future(tool.run(f"export {mark}; touch {started}; sleep 60; true"))
            while not started.exists():
                await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            deadline = time.monotonic() + 10
            while any(mark.encode() in environ(pid) for pid in pids()):
                assert time.monotonic() < deadline
                await asyncio.sleep(0.02)

    asyncio.run(go("persistent"))
    asyncio.run(go("stateless"))


# In the sandbox, without a runtime.


def test_in_the_sandbox(sandbox: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("text")
    reading = DockerShellTool(environment=sandbox, host_workdir=tmp_path)
    results = commands(reading, "cat file; X=1", 'python3 -c "open(\'file2\', \'w\')"; echo "$X"')
    assert results[0].stdout == "text" and results[1].stdout == "1"
    with pytest.raises(ShellCommandError, match="nothing may change here"):
        commands(reading, "touch file2")
    assert not (tmp_path / "file2").exists()
    writing = DockerShellTool(environment=sandbox, host_workdir=tmp_path, mount_readonly=False)
    commands(writing, "touch file3")
    assert (tmp_path / "file3").exists()
    scratch = DockerShellTool(environment=sandbox, mode="stateless")
    assert commands(scratch, "touch a && ls")[0].stdout == "a\n"


def test_words_for_a_runtime_mean_nothing_in_the_sandbox() -> None:
    with pytest.raises(ValueError, match="mean nothing with environment='sandbox'"):
        DockerShellTool(environment="sandbox", extra_run_args=["--init"])
    with pytest.raises(ValueError, match="network='bridge'"):
        DockerShellTool(environment="sandbox", network="bridge")
    with pytest.raises(ValueError, match="environment must be"):
        DockerShellTool(environment="local")


# With a daemon.


@pytest.mark.parametrize("mode", ["persistent", "stateless"])
def test_with_a_daemon(engine: str, mode: Any, tmp_path: Path) -> None:  # noqa: F811
    (tmp_path / "given").write_text("text")
    tmp_path.chmod(0o755)  # for the container's user
    assert is_docker_available()
    tool = DockerShellTool(image=engine, mode=mode, host_workdir=tmp_path)
    first, second, third = commands(
        tool,
        "id -u; pwd; cat given; export A=1; cd /tmp",
        "echo $A; pwd; touch /workspace/x || touch /x || exit 3",
        "echo late; sleep 7100 & sleep 7101",
        timeout=4.0,
    )
    assert first.stdout == "65534\n/workspace\ntext" and first.exit_code == 0
    assert second.exit_code == 3 and "ead-only" in second.stderr
    assert second.stdout.split() == (["1", "/tmp"] if mode == "persistent" else ["/workspace"])
    # A stateless command has the exit code of the client.
    code = 124 if mode == "persistent" else 137
    assert third.timed_out and third.exit_code == code and third.stdout.strip() == "late"
    until(lambda: containers() == [], "the containers to be gone")


def test_m23_m24_with_a_daemon(engine: str) -> None:  # noqa: F811
    async def go() -> None:
        async with DockerShellTool(image=engine, timeout=60) as tool:
            await tool.run("true")
            result = await tool.run("echo partial; sleep 7102", timeout=1.5)
            assert result.timed_out
            assert "7102" not in (await tool.run("ps -o args | grep '[s]leep'")).stdout
            ended = await tool.run("echo bye; exit 3")
            assert (ended.exit_code, ended.stdout.strip(), ended.session_restarted) == (3, "bye", True)
            subprocess.run(["docker", "rm", "-f", *containers()], check=True, capture_output=True)
            assert (await tool.run("echo again")).stdout.strip() == "again"

    asyncio.run(go())
    assert containers() == []


def test_m26_the_client_is_not_started_for_each_command(runtime: Runtime) -> None:
    commands(DockerShellTool(docker_binary=runtime.binary), *["true"] * 5)
    assert [call[0] for call in runtime.calls()].count("exec") == 2  # the shell, and its end


def test_helpers_of_the_original_are_there() -> None:
    assert _docker._blocked_flags_in_token("--network=host") == ["--network"]
    assert _docker._consumes_next_token("--init") is False
    assert _docker._BOOLEAN_SHORT_FLAGS.isdisjoint(_docker._VALUE_SHORT_FLAGS)
    assert "--rm" in _docker._VALUELESS_LONG_FLAGS and "--env" not in _docker._VALUELESS_LONG_FLAGS
