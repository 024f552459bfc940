"""A container of Docker or Podman as an execution environment, through the runtime's command line."""

from __future__ import annotations

import asyncio
import contextlib
import posixpath
import re
import secrets
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from typing import IO, TYPE_CHECKING, Any

from .._containers import kill_script
from .._execution import NO_LIMIT_SECONDS, Execution, kept_bytes, printed, time_limit
from ._base import (
    IMAGE_EXTENSIONS,
    MAX_OUTPUT_CHARS,
    EnvToolName,
    ExecutionEnvironment,
    ExecutionResult,
    FileInfo,
    GrepMode,
    apply_edit,
    format_lines,
    glob_match,
)
from ._matching import MAX_MATCHES
from .local import LocalEnvironmentProcess

if TYPE_CHECKING:
    from typing_extensions import Self

    from shieling import AsyncProcess, Outcome

__all__ = ["DockerEnvironment", "DockerEnvironmentProcess"]

_LARGEST_FILE = 64 * 1024 * 1024
# The kernel takes no single word of an argv that is longer than 128 KiB.
_LONGEST_WORD = 100_000
_FILE_SECONDS = 120.0
# The number of the user `nobody` in the images of Debian, Alpine, Fedora and BusyBox.
_NOBODY = 65534
_ASK_SECONDS = 20.0
# The first process of the container ends with its input, and that ends with the runtime's client. It stays a shell, which
# reaps what commands leave behind.
_INIT = 'mkdir -p -- "$1" 2>/dev/null; echo ready; cat >/dev/null; exit 0'
_READ = '[ -f "$1" ] || exit 3; head -c "$2" <"$1"'
_WRITE = 'mkdir -p -- "$(dirname -- "$1")" && cat >"$1"'
_LIST = """cd -- "$1" || exit 3
for f in * .[!.]* ..?*; do
  if [ -d "$f" ]; then printf 'd - %s\\0' "$f"
  elif [ -L "$f" ] && [ ! -e "$f" ]; then printf 'l - %s\\0' "$f"
  elif [ -e "$f" ]; then printf 'f %s %s\\0' "$(stat -L -c %s -- "$f")" "$f"
  fi
done"""
_FIND = 'cd -- "$1" || exit 3; shift; find . -mindepth 1 "$@" -print0'
_GREP = """[ -e "$1" ] || exit 3; at=$1 name=$2 pattern=$3 form=$4; [ -f "$at" ] && name='*'
case $at in /*|./*|.) ;; *) at=./$at;; esac
find "$at" -type f -name "$name" -exec grep -HIE "$form" -e "$pattern" -- {} + 2>/dev/null | head -n "$5"
grep -E -e "$pattern" /dev/null; [ $? -lt 2 ]"""


class DockerEnvironmentProcess(LocalEnvironmentProcess):
    """A process in a container. Killing it ends everything that it has started there."""

    def __init__(self, process: AsyncProcess, owner: DockerEnvironment, mark: str) -> None:
        super().__init__(process, owner)
        self._environment = owner
        self._mark = mark

    async def kill(self) -> None:
        """End the process and everything that it has started in the container."""
        if self._killed is None:
            await self._environment._kill(self._mark)
        await super().kill()


# Under the original's name.
_DockerEnvironmentProcess = DockerEnvironmentProcess


class DockerEnvironment(ExecutionEnvironment):
    """Runs commands in a container, which is made on entering and removed on leaving.

    The container also ends when this process does, however that happens. Commands and files of the environment reach
    all of the container.

    Args:
        image: The image. It needs a shell, and for the methods of files also `cat`, `find`, `grep`, `head` and `stat`.
        env_vars: Variables of every command.
        work_dir: The working directory in the container.
        volumes: Mounts: ``{host path: {"bind": path, "mode": "ro"}}``.
        memory_limit: Such as ``512m``.
        cpu_limit: How many processors.
        pids_limit: How many processes.
        network_disabled: Whether there is no network.
        read_only: Whether the root file system cannot be written.
        cap_drop: Capabilities that are dropped.
        security_opt: Docker's security options.
        user: The user that commands run as.
        tmpfs: Paths and options of file systems in memory.
        init: Whether an init process reaps orphans.
        docker_binary: The runtime's program, such as ``podman``.

    Raises:
        RuntimeError: On entering: the runtime did not start the container. The error has the runtime's words.
    """

    def __init__(
        self,
        *,
        image: str = "python:3.12-slim",
        env_vars: dict[str, str] | None = None,
        work_dir: str = "/workspace",
        volumes: dict[str, dict[str, str]] | None = None,
        memory_limit: str | None = None,
        cpu_limit: float | None = None,
        pids_limit: int | None = None,
        network_disabled: bool = False,
        read_only: bool = False,
        cap_drop: list[str] | None = None,
        security_opt: list[str] | None = None,
        user: str | None = None,
        tmpfs: dict[str, str] | None = None,
        init: bool = False,
        docker_binary: str = "docker",
    ) -> None:
        self._image = image
        self._env_vars = env_vars or {}
        self._work_dir = work_dir
        self._volumes = volumes
        self._memory_limit = memory_limit
        self._cpu_limit = cpu_limit
        self._pids_limit = pids_limit
        self._network_disabled = network_disabled
        self._read_only = read_only
        self._cap_drop = cap_drop
        self._security_opt = security_opt
        self._user = user
        self._tmpfs = tmpfs
        self._init = init
        self._binary = docker_binary
        # The name of the container while it is there.
        self._container: str | None = None
        self._client: subprocess.Popen[bytes] | None = None
        self._execution = Execution("local", {"workspace": "/", "inherit_env": True}, None)

    @classmethod
    def hardened(
        cls,
        *,
        image: str = "python:3.12-slim",
        env_vars: dict[str, str] | None = None,
        work_dir: str = "/workspace",
        memory_limit: str = "512m",
        cpu_limit: float = 1.0,
        pids_limit: int = 256,
    ) -> DockerEnvironment:
        """A container without network, capabilities and a writable root, whose commands run as ``nobody``."""
        return cls(
            image=image,
            env_vars=env_vars,
            work_dir=work_dir,
            memory_limit=memory_limit,
            cpu_limit=cpu_limit,
            pids_limit=pids_limit,
            network_disabled=True,
            read_only=True,
            cap_drop=["ALL"],
            security_opt=["no-new-privileges"],
            user="nobody",
            tmpfs={"/tmp": "noexec,nosuid,size=64m", work_dir: "size=128m"},
            init=True,
        )

    @property
    def capabilities(self) -> frozenset[EnvToolName]:
        """All seven tools."""
        return frozenset(("ls", "shell", "read_file", "write_file", "edit_file", "glob", "grep"))

    # The container.

    def _run_argv(self, name: str) -> list[str]:
        argv = [self._binary, "run", "-i", "--rm", "--name", name, "--workdir", self._work_dir]
        for variable, value in self._env_vars.items():
            argv += ["-e", f"{variable}={value}"]
        for source, mount in (self._volumes or {}).items():
            argv += ["-v", f"{source}:{mount['bind']}:{mount.get('mode', 'rw')}"]
        if self._memory_limit:
            argv += ["--memory", str(self._memory_limit)]
        if self._cpu_limit:
            argv += ["--cpus", str(self._cpu_limit)]
        if self._pids_limit is not None:
            argv += ["--pids-limit", str(self._pids_limit)]
        if self._network_disabled:
            argv += ["--network", "none"]
        if self._read_only:
            argv.append("--read-only")
        for capability in self._cap_drop or ():
            argv += ["--cap-drop", capability]
        for option in self._security_opt or ():
            argv += ["--security-opt", option]
        if self._user:
            argv += ["--user", self._user]
        for path, options in (self._tmpfs or {}).items():
            if path == self._work_dir and self._user == "nobody" and "uid=" not in options:
                # The runtime gives it to root otherwise, and the commands could write nowhere but in `/tmp`.
                options = ",".join(filter(None, [options, f"uid={_NOBODY},gid={_NOBODY}"]))
            argv += ["--tmpfs", f"{path}:{options}" if options else path]
        if self._init:
            argv.append("--init")
        return [*argv, self._image, "sh", "-c", _INIT, "sh", self._work_dir]

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(self._setup)
        return self

    def _setup(self) -> None:
        if self._container is not None:
            return
        name = f"shieling-{secrets.token_hex(6)}"
        with tempfile.TemporaryFile() as errors:
            try:
                client = subprocess.Popen(
                    self._run_argv(name), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors
                )
            except OSError as error:
                raise RuntimeError(f"the container `{self._image}` was not started: {error}") from None
            assert client.stdout is not None
            # The runtime may have to fetch the image first, so that there is no bound on this.
            if client.stdout.readline() != b"ready\n":
                _end(client)
                errors.seek(0)
                words = errors.read()[-2_000:].decode(errors="replace").strip()
                raise RuntimeError(f"the container `{self._image}` was not started: {words}")
        self._client, self._container = client, name

    async def __aexit__(self, *_args: Any) -> None:
        await self._execution.aclose()
        if self._container is not None:
            await asyncio.to_thread(self._teardown)

    def _teardown(self) -> None:
        name, client = self._container, self._client
        self._container = self._client = None
        try:
            with contextlib.suppress(OSError, subprocess.TimeoutExpired):
                subprocess.run([self._binary, "rm", "-f", str(name)], capture_output=True, timeout=30, check=False)
        finally:
            if client is not None:
                _end(client)

    @property
    def _required_container(self) -> str:
        if self._container is None:
            raise RuntimeError("DockerEnvironment not started. Use `async with DockerEnvironment(...) as env:`")
        return self._container

    async def is_alive(self) -> bool:
        """Whether the container runs."""
        name = self._container
        if name is None:
            return False
        argv = [self._binary, "inspect", "--format", "{{.State.Running}}", name]
        outcome = await self._execution.asynchronous().run(argv, timeout=_ASK_SECONDS)
        return outcome.ok and outcome.stdout.strip() == "true"

    # Commands.

    def _exec_argv(self, words: Sequence[str], env: Mapping[str, str]) -> list[str]:
        variables = [word for name, value in env.items() for word in ("-e", f"{name}={value}")]
        where = ["-w", self._work_dir, *variables, self._required_container]
        return [self._binary, "exec", "-i", *where, *words]

    async def _kill(self, mark: str) -> None:
        """End what has the variable `mark` in the container: the runtime's client passes no signal on."""
        argv = [self._binary, "exec", self._required_container, "sh", "-c", kill_script(mark)]
        await self._execution.asynchronous().run(argv, timeout=_ASK_SECONDS)

    async def _exec(
        self,
        words: Sequence[str],
        *,
        timeout: float | None,
        env: Mapping[str, str] | None,
        kept: int,
        stdin: str | None,
    ) -> Outcome:
        mark = secrets.token_hex(16)
        argv = self._exec_argv(words, {**(env or {}), "SHIELING_COMMAND": mark})
        call = self._execution.asynchronous().run(
            argv, timeout=time_limit(timeout), max_output=kept, stdin=stdin
        )
        try:
            outcome = await call
        except asyncio.CancelledError:
            await asyncio.shield(self._kill(f"SHIELING_COMMAND={mark}"))
            raise
        if outcome.status != "exited":
            await self._kill(f"SHIELING_COMMAND={mark}")
        return outcome

    async def shell(
        self, command: str, *, timeout: float | None = 120, env: dict[str, str] | None = None
    ) -> ExecutionResult:
        if timeout is not None and not timeout > 0:
            raise ValueError(f"timeout must be positive or None, got {timeout}")
        # One pipe for both streams, so that their order is that in which they were written.
        if len(command) < _LONGEST_WORD:
            words, stdin = ["sh", "-c", f"exec 2>&1; {command}"], None
        else:
            words, stdin = ["sh", "-c", 'text=$(cat); exec 2>&1; eval "$text"'], command
        kept = kept_bytes(MAX_OUTPUT_CHARS)
        outcome = await self._exec(words, timeout=timeout, env=env, kept=kept, stdin=stdin)
        streams = [(outcome.stdout, outcome.stdout_bytes), (outcome.stderr, outcome.stderr_bytes)]
        text = printed(streams, MAX_OUTPUT_CHARS, truncated=outcome.truncated)
        if outcome.status == "timed_out":
            return ExecutionResult(f"{text.text}\n[Command timed out]", 124, text.cut)
        if outcome.exit_code is None:
            return ExecutionResult(f"Command not started: {outcome.error or outcome.status}", 126)
        return ExecutionResult(text.text, outcome.exit_code, text.cut)

    async def create_process(self, command: str, *, env: dict[str, str] | None = None) -> DockerEnvironmentProcess:
        """Start a process that is talked to."""
        mark = secrets.token_hex(16)
        argv = self._exec_argv(["sh", "-c", command], {**(env or {}), "SHIELING_COMMAND": mark})
        process = await self._execution.asynchronous().start(argv, timeout=NO_LIMIT_SECONDS)
        return DockerEnvironmentProcess(process, self, f"SHIELING_COMMAND={mark}")

    # Files.

    async def _script(self, script: str, *words: str, data: bytes = b"") -> tuple[int, bytes, str]:
        """Run a script of this module; return its exit code, standard output and the end of standard error."""
        mark = secrets.token_hex(16)
        argv = self._exec_argv(["sh", "-c", script, "sh", *words], {"SHIELING_COMMAND": mark})

        def call() -> tuple[int, bytes, str]:
            done = subprocess.run(argv, input=data, capture_output=True, timeout=_FILE_SECONDS, check=False)
            return done.returncode, done.stdout, done.stderr[-2_000:].decode(errors="replace").strip()

        try:
            return await asyncio.to_thread(call)
        except (asyncio.CancelledError, subprocess.TimeoutExpired) as error:
            await asyncio.shield(self._kill(f"SHIELING_COMMAND={mark}"))
            if isinstance(error, asyncio.CancelledError):
                raise
            raise TimeoutError(f"the container gave no answer within {_FILE_SECONDS:g} s") from None

    def _resolve_path(self, path: str) -> str:
        return posixpath.join(self._work_dir, path)

    async def _bytes(self, path: str, missing: str) -> bytes:
        code, data, error = await self._script(_READ, self._resolve_path(path), str(_LARGEST_FILE + 1))
        if code != 0:
            raise FileNotFoundError(missing) if code == 3 else OSError(f"{path}: {error}")
        if len(data) > _LARGEST_FILE:
            raise ValueError(f"{path} is larger than {_LARGEST_FILE} bytes; use a command for a part of it.")
        return data

    async def read_file(self, path: str, *, offset: int = 0, limit: int = 2000) -> str | bytes:
        if posixpath.splitext(path)[1].lower() in IMAGE_EXTENSIONS:
            return await self._bytes(path, f"File not found: {path}")
        data = await self._bytes(path, f"File not found or not readable: {path}")
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError:
            return data
        return format_lines(text, offset, limit)

    async def write_file(self, path: str, content: str | bytes) -> None:
        data = content.encode("utf-8") if isinstance(content, str) else content
        code, _, error = await self._script(_WRITE, self._resolve_path(path), data=data)
        if code != 0:
            raise OSError(f"{path} cannot be written: {error}")

    async def replace_str(self, path: str, old: str, new: str, *, replace_all: bool = False) -> int:
        data = await self._bytes(path, f"File not found: {path}")
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError:
            raise ValueError(f"{path} is not a text file in UTF-8, so there is no text to replace in it.") from None
        text, count = apply_edit(text, old, new, path, replace_all=replace_all)
        await self.write_file(path, text)
        return count

    async def ls(self, path: str = ".") -> list[FileInfo]:
        code, data, _ = await self._script(_LIST, self._resolve_path(path))
        if code != 0:
            raise NotADirectoryError(f"Not a directory or not found: {path}")
        entries: list[FileInfo] = []
        for entry in data.decode(errors="replace").split("\0")[:-1]:
            kind, size, name = entry.split(" ", 2)
            shown = name if path == "." else f"{path}/{name}"
            entries.append(FileInfo(name, shown, kind == "d", int(size) if size.isdigit() else None))
        return sorted(entries, key=lambda entry: entry.name)

    async def glob(self, pattern: str, *, path: str = ".") -> list[str]:
        # As deep as the pattern is, where it is not for any depth.
        depth = [] if "**" in pattern else ["-maxdepth", str(pattern.count("/") + 1)]
        code, data, _ = await self._script(_FIND, self._resolve_path(path), *depth)
        if code == 3:
            return []
        names = (name.removeprefix("./") for name in data.decode(errors="replace").split("\0")[:-1])
        prefix = "" if path == "." else f"{path.rstrip('/')}/"
        return sorted(f"{prefix}{name}" for name in names if glob_match(name, pattern))

    async def grep(
        self,
        pattern: str,
        *,
        path: str | None = None,
        glob_pattern: str | None = None,
        output_mode: GrepMode = "content",
    ) -> str:
        r"""Search file contents using a regex pattern.

        Patterns are POSIX extended regular expressions, as `grep -E` reads them: `|`, `+`, `?`, `()`, `{}` and classes
        such as `[[:digit:]]`. There are no lookaheads, no `\d` and no non-greedy quantifiers.
        """
        form = {"files_with_matches": "-l", "count": "-c"}.get(output_mode, "-n")
        most = str(10_000_000 if output_mode == "count" else MAX_MATCHES + 1)
        code, data, error = await self._script(_GREP, path or ".", glob_pattern or "*", pattern, form, most)
        if code == 3:
            raise FileNotFoundError(f"File not found: {path}")
        if code != 0:
            raise re.error(f"{pattern!r} is no extended regular expression: {error}")
        lines = [line.removeprefix("./") for line in data.decode(errors="replace").split("\n")[:-1]]
        if output_mode == "count":
            lines = [line for line in lines if not line.endswith(":0")]
        if len(lines) > MAX_MATCHES:
            lines[MAX_MATCHES:] = [f"[... truncated at {MAX_MATCHES} matches]"]
        return "\n".join(lines)


def _end(client: subprocess.Popen[bytes]) -> None:
    """Close the pipes of the runtime's client, whose container ends by that, and wait for it."""
    pipes: tuple[IO[bytes] | None, ...] = (client.stdin, client.stdout)
    for pipe in pipes:
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()
    try:
        client.wait(timeout=20)
    except subprocess.TimeoutExpired:
        client.kill()
        client.wait()
