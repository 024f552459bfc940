"""The tool that runs shell commands in a container of Docker or Podman.

The container has no network, no capabilities, a read-only root, bounded memory and processes, and an
unprivileged user, unless the caller says otherwise. The runtime is reached through its command line.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import secrets
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ... import AsyncShieling
from .._containers import kill_script
from ._executor import run_stateless
from ._framework import FeatureIndex, mark_feature_used
from ._policy import ShellPolicy
from ._session import Kept, PipedSession, check_cap, communicate, open_shieling
from ._session import ShellSession as HostSession
from ._tool import ApprovalMode, ShellToolBase, check_mode
from ._types import ShellExecutionError, ShellMode, ShellResult, result_of_streams

logger = logging.getLogger(__name__)

DEFAULT_IMAGE = "mcr.microsoft.com/azurelinux/base/core:3.0"
DEFAULT_CONTAINER_USER = "65534:65534"
DEFAULT_NETWORK = "none"
DEFAULT_MEMORY = "512m"
DEFAULT_PIDS_LIMIT = 256
DEFAULT_WORKDIR = "/workspace"

_TMPFS = "/tmp:rw,nosuid,nodev,size=64m"
_SECONDS_TO_KILL = 5.0
_SECONDS_TO_REMOVE = (10.0, 5.0)

_BLOCKED_EXTRA_RUN_FLAGS: tuple[str, ...] = (
    "--privileged",
    "--cap-add",
    "--security-opt",
    "--network",
    "--net",
    "--volume",
    "-v",
    "--volumes-from",
    "--mount",
    "--device",
    "--device-cgroup-rule",
    "--pid",
    "--ipc",
    "--uts",
    "--userns",
    "--user",
    "-u",
    "--cgroupns",
    "--cgroup-parent",
    "--add-host",
    "--gpus",
    "--runtime",
    "--read-only",
    "--tmpfs",
    "--memory",
    "-m",
    "--memory-swap",
    "--pids-limit",
    "--oom-kill-disable",
    "--use-api-socket",
)
"""Options of `docker run` that would take back one of the tool's own."""

_VALUELESS_LONG_FLAGS = frozenset(
    "--detach --disable-content-trust --help --init --interactive --no-healthcheck "
    "--oom-kill-disable --privileged --publish-all --quiet --read-only --rm --sig-proxy --tty "
    "--use-api-socket".split()
)
_BOOLEAN_SHORT_FLAGS = frozenset("diPqt")
_VALUE_SHORT_FLAGS = frozenset("acehlmpuvw")

_PERSISTENT_DESCRIPTION = (
    "Execute a single shell command inside an isolated Docker container and return its stdout, "
    "stderr, and exit code. Commands run in a persistent session so `cd` and environment variables "
    "from previous calls are preserved within the container."
)
_STATELESS_DESCRIPTION = (
    "Execute a single shell command inside an isolated Docker container and return its stdout, "
    "stderr, and exit code. Each command runs in a fresh container, so `cd` and environment "
    "variables do not persist between calls."
)


def _default_description(mode: ShellMode) -> str:
    return _PERSISTENT_DESCRIPTION if mode == "persistent" else _STATELESS_DESCRIPTION


class DockerNotAvailableError(RuntimeError):
    """The container runtime cannot be reached, or does not start the container."""


def is_docker_available(binary: str = "docker") -> bool:
    """Returns whether `binary` is on the path and its daemon answers within 5 seconds."""
    if shutil.which(binary) is None:
        return False
    try:
        answer = subprocess.run(
            [binary, "version", "--format", "{{.Server.Version}}"],
            capture_output=True,
            timeout=5.0,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return answer.returncode == 0 and bool(answer.stdout.strip())


def _short_flags_in_token(token: str) -> list[str]:
    """Returns the short options that a token such as `-itv/:/host` sets."""
    flags: list[str] = []
    for letter in token[1:]:
        if letter in _BOOLEAN_SHORT_FLAGS:
            flags.append(f"-{letter}")
            continue
        if letter in _VALUE_SHORT_FLAGS:
            flags.append(f"-{letter}")
        break
    return flags


def _blocked_flags_in_token(raw: str) -> list[str]:
    """Returns the options in one token that would break the isolation."""
    flag = raw.partition("=")[0]
    flags = [flag] if flag.startswith("--") else _short_flags_in_token(flag)
    return [flag for flag in flags if flag in _BLOCKED_EXTRA_RUN_FLAGS]


def _consumes_next_token(raw: str) -> bool:
    """Returns whether the value of an option is the next token."""
    name, equals, _ = raw.partition("=")
    if equals:
        return False
    if name.startswith("--"):
        return name not in _VALUELESS_LONG_FLAGS
    flags = _short_flags_in_token(name)
    return bool(flags) and len(name) - 1 == len(flags) and flags[-1][1] in _VALUE_SHORT_FLAGS


def _validate_extra_run_args(args: Sequence[str]) -> None:
    """Raises `ValueError` if `args` hold an option that would take back the tool's isolation."""
    blocked: list[str] = []
    tokens = iter(args)
    for token in tokens:
        if token in ("-", "--") or not token.startswith("-"):
            continue
        if _blocked_flags_in_token(token):
            blocked.append(token)
        if _consumes_next_token(token):
            next(tokens, None)
    if blocked:
        raise ValueError(
            "extra_run_args contains flags that would dismantle DockerShellTool's isolation "
            f"defaults: {blocked}. Override these via dedicated constructor arguments (network, "
            "host_workdir, mount_readonly, read_only_root, memory, pids_limit, user) or subclass "
            "the tool if you really need to relax the sandbox."
        )


def _validate_unsafe_extra_run_args(args: Sequence[object]) -> None:
    """Raises `ValueError` if `args` hold something other than texts."""
    for index, token in enumerate(args):
        if not isinstance(token, str):
            raise ValueError(
                f"unsafe_extra_run_args contains a non-string token at index {index}: {token!r}"
            )


def _isolation_argv(
    *,
    user: str,
    network: str,
    memory: str,
    pids_limit: int,
    workdir: str,
    host_workdir: str | None,
    mount_readonly: bool,
    read_only_root: bool,
    extra_env: Mapping[str, str] | None,
    extra_args: Sequence[str] | None,
) -> list[str]:
    """Returns the options of `docker run` that stand between the name and the image."""
    argv = ["--user", user, "--network", network, "--memory", memory]
    argv += ["--pids-limit", str(pids_limit), "--cap-drop", "ALL"]
    argv += ["--security-opt", "no-new-privileges", "--tmpfs", _TMPFS, "--workdir", workdir]
    if read_only_root:
        argv.append("--read-only")
    if host_workdir is not None:
        argv += ["-v", f"{host_workdir}:{workdir}:{'ro' if mount_readonly else 'rw'}"]
    for name, value in (extra_env or {}).items():
        argv += ["-e", f"{name}={value}"]
    return [*argv, *(extra_args or ())]


def build_run_argv(
    *,
    binary: str,
    image: str,
    container_name: str,
    user: str,
    network: str,
    memory: str,
    pids_limit: int,
    workdir: str,
    host_workdir: str | None,
    mount_readonly: bool,
    read_only_root: bool,
    extra_env: Mapping[str, str] | None,
    extra_args: Sequence[str] | None,
) -> list[str]:
    """Returns the command that starts a container which stays until it is removed."""
    isolation = _isolation_argv(
        user=user,
        network=network,
        memory=memory,
        pids_limit=pids_limit,
        workdir=workdir,
        host_workdir=host_workdir,
        mount_readonly=mount_readonly,
        read_only_root=read_only_root,
        extra_env=extra_env,
        extra_args=extra_args,
    )
    start = [binary, "run", "-d", "--rm", "--name", container_name]
    return [*start, *isolation, image, "sleep", "infinity"]


def build_exec_argv(
    *, binary: str, container_name: str, interactive: bool, shell: str = "bash"
) -> list[str]:
    """Returns the command that runs a shell in a container; a command follows `-c`."""
    argv = [binary, "exec", "-i", container_name, shell]
    if not interactive:
        return [*argv, "-c"]
    return [*argv, "--noprofile", "--norc"] if shell == "bash" else argv


class ShellSession(PipedSession):
    """A shell in a container. Stopping it ends there what it has started.

    Args:
        argv: The words of `build_exec_argv`.
        workdir: As `env`: the container has its own.
        env: Nothing; see `workdir`.
        max_output_bytes: Bytes kept of each stream.
    """

    _is_here = False

    def __init__(
        self,
        argv: Sequence[str],
        *,
        workdir: str | None = None,
        env: Mapping[str, str] | None = None,
        max_output_bytes: int = 64 * 1024,
    ) -> None:
        binary, verb, interactive, container, shell, *options = argv
        # A variable marks the shell and its children.
        self._mark = f"SHIELING_SHELL={secrets.token_hex(16)}"
        super().__init__(
            [binary, verb, interactive, "-e", self._mark, container, shell, *options],
            workdir=workdir,
            env=env,
            max_output_bytes=max_output_bytes,
        )
        self._kill_argv = [binary, verb, container, shell, "-c"]

    async def _stop(self) -> None:
        if self._proc is not None:
            # The runtime's client passes no signal on.
            await _finish([*self._kill_argv, kill_script(self._mark)], _SECONDS_TO_KILL)
        await super()._stop()


async def _kill(process: asyncio.subprocess.Process) -> None:
    """Ends a command of the runtime that is given up."""
    with contextlib.suppress(ProcessLookupError):
        process.kill()
    with contextlib.suppress(Exception):
        await process.wait()


async def _finish(argv: Sequence[str], timeout: float) -> tuple[int | None, bytes, str]:
    """Runs one command of the runtime; returns its exit code (`None` for none), stdout and stderr."""
    try:
        process = await asyncio.create_subprocess_exec(
            *argv,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
    except OSError as error:
        return None, b"", str(error)
    try:
        out, err = await asyncio.wait_for(process.communicate(), timeout=timeout)
    except BaseException as error:
        await _kill(process)
        if isinstance(error, asyncio.TimeoutError):
            return None, b"", f"no answer within {timeout:g} s"
        raise
    return process.returncode, out, err.decode("utf-8", errors="replace").strip()


async def _succeeds(argv: Sequence[str], timeout: float) -> bool:
    """Runs one command of the runtime whose output nobody needs; returns whether its exit code is 0."""
    try:
        process = await asyncio.create_subprocess_exec(
            *argv,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
    except OSError:
        return False
    try:
        return await asyncio.wait_for(process.wait(), timeout) == 0
    except BaseException as error:
        await _kill(process)
        if isinstance(error, asyncio.TimeoutError):
            return False
        raise


async def _end_client(client: asyncio.subprocess.Process, stdout: Kept, stderr: Kept) -> None:
    """Reads what is left when the container has ended, and ends a client that does not end with it."""
    try:
        await asyncio.wait_for(communicate(client, stdout, stderr), _SECONDS_TO_KILL)
    except Exception as error:
        logger.warning("the client of the container runtime did not end: %s", error or type(error).__name__)
        with contextlib.suppress(ProcessLookupError):
            client.kill()


class DockerShellTool(ShellToolBase):
    """Runs shell commands in a container; an async context manager.

    Args:
        image: The image; it needs the shell and, for a persistent tool, `sleep`.
        container_name: The container's name. Default: `af-shell-` and twelve digits.
        mode: `persistent` keeps one container and one shell; `stateless` takes a container for each
            command.
        host_workdir: A directory of this host that is mounted at `workdir`.
        workdir: The directory of the commands in the container.
        mount_readonly: Whether `host_workdir` cannot be written. If it can, `user` has to be one
            who may.
        network: The network of the container.
        memory: Its memory.
        pids_limit: Its processes.
        user: `UID:GID` of the commands.
        read_only_root: Whether its root cannot be written.
        unsafe_extra_run_args: Words added to `docker run` as they are. They can take back any of
            the isolation: never take them from a model or a user.
        env: Variables of the commands.
        policy: What `evaluate` is called on before each command.
        timeout: Seconds of one command; `None` for no limit.
        max_output_bytes: Bytes kept of each stream.
        approval_mode: Whether the framework asks a person before each call.
        on_command: Called with each command that may run, before it does.
        docker_binary: The runtime's program, such as `podman`.
        shell: The shell in the container.
        extra_run_args: Words added to `docker run`. What would break the isolation is refused.
        environment: `container`; or `sandbox`, which runs the same commands in a sandbox of this
            host without any runtime, with the same limits on network, memory and processes.
        shieling: Further keywords of `shieling.Shieling`, for `sandbox`.
    """

    def __init__(
        self,
        *,
        image: str = DEFAULT_IMAGE,
        container_name: str | None = None,
        mode: ShellMode = "persistent",
        host_workdir: str | os.PathLike[str] | None = None,
        workdir: str = DEFAULT_WORKDIR,
        mount_readonly: bool = True,
        network: str = DEFAULT_NETWORK,
        memory: str = DEFAULT_MEMORY,
        pids_limit: int = DEFAULT_PIDS_LIMIT,
        user: str = DEFAULT_CONTAINER_USER,
        read_only_root: bool = True,
        unsafe_extra_run_args: Sequence[str] | None = None,
        env: Mapping[str, str] | None = None,
        policy: ShellPolicy | None = None,
        timeout: float | None = 30.0,
        max_output_bytes: int = 64 * 1024,
        approval_mode: ApprovalMode = "always_require",
        on_command: Callable[[str], None] | None = None,
        docker_binary: str = "docker",
        shell: str = "bash",
        extra_run_args: Sequence[str] | None = None,
        environment: str = "container",
        shieling: Mapping[str, Any] | None = None,
    ) -> None:
        check_mode(mode)
        if environment not in ("container", "sandbox"):
            raise ValueError(f"environment must be 'container' or 'sandbox', got {environment!r}")
        _validate_extra_run_args(tuple(extra_run_args or ()))
        _validate_unsafe_extra_run_args(tuple(unsafe_extra_run_args or ()))
        self._image = image
        self._container_name = container_name or f"af-shell-{secrets.token_hex(6)}"
        self._mode: ShellMode = mode
        self._host_workdir = os.fspath(host_workdir) if host_workdir is not None else None
        self._workdir = workdir
        self._mount_readonly = mount_readonly
        self._network = network
        self._memory = memory
        self._pids_limit = pids_limit
        self._user = user
        self._read_only_root = read_only_root
        self._extra_run_args = tuple(extra_run_args or ())
        self._unsafe_extra_run_args = tuple(unsafe_extra_run_args or ())
        self._env = dict(env or {})
        self._policy = policy or ShellPolicy()
        self._timeout = timeout
        self._max_output_bytes = max_output_bytes
        self._approval_mode: ApprovalMode = approval_mode
        self._on_command = on_command
        self._binary = docker_binary
        self._shell = shell
        self._environment = environment
        self._options = dict(shieling or {})
        if environment == "sandbox":
            self._options = {**self._sandbox_options(), **self._options}
        elif self._options:
            raise ValueError(
                "the keyword `shieling` means nothing with environment='container'; "
                "use environment='sandbox', or the tool's own keywords"
            )

        self._session: HostSession | None = None
        self._container_started = False
        self._shieling: AsyncShieling | None = None
        self._scratch: tempfile.TemporaryDirectory[str] | None = None
        self._lifecycle_lock: asyncio.Lock | None = None

    def _get_lifecycle_lock(self) -> asyncio.Lock:
        if self._lifecycle_lock is None:
            self._lifecycle_lock = asyncio.Lock()
        return self._lifecycle_lock

    # The lifecycle.

    async def start(self) -> None:
        """Starts the container and its shell; does nothing in `stateless` mode.

        Raises `DockerNotAvailableError` if the container does not start.
        """
        if self._mode == "stateless":
            return
        async with self._get_lifecycle_lock():
            if self._environment == "sandbox":
                if self._session is None:
                    self._session = HostSession(
                        ["bash"],
                        workdir=self._sandbox_workdir(),
                        env=self._env,
                        max_output_bytes=self._max_output_bytes,
                        environment="sandbox",
                        options=self._options,
                    )
                await self._session.start()
                return
            if self._container_started and self._session_ended() and await self._container_ended():
                # It took its shell with it. A new one has the same name, which this one may still hold.
                logger.warning("container %s has ended; starting it anew", self._container_name)
                await self._drop_session()
                await _finish([self._binary, "rm", "-f", self._container_name], _SECONDS_TO_REMOVE[0])
                await self._start_container()
            elif not self._container_started:
                await self._start_container()
                self._container_started = True
            if self._session is None:
                self._session = ShellSession(
                    build_exec_argv(
                        binary=self._binary,
                        container_name=self._container_name,
                        interactive=True,
                        shell=self._shell,
                    ),
                    workdir=None,
                    env=None,
                    max_output_bytes=self._max_output_bytes,
                )
            await self._session.start()

    async def close(self) -> None:
        """Ends the shell and removes the container. May be called again."""
        async with self._get_lifecycle_lock():
            shieling, self._shieling = self._shieling, None
            if shieling is not None:
                await shieling.close()
            try:
                if self._session is not None:
                    await self._session.close()
            finally:
                # As in `LocalShellTool.close`.
                self._session = None
                if self._container_started:
                    self._container_started = False
                    await self._stop_container()
                scratch, self._scratch = self._scratch, None
                if scratch is not None:
                    scratch.cleanup()

    async def _drop_session(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    # Commands.

    def _mark_used(self) -> None:
        mark_feature_used(FeatureIndex.TOOLS_SHELL)

    def _session_ended(self) -> bool:
        if isinstance(self._session, PipedSession):
            return self._session.ended
        return self._session is None

    async def _run_stateless(self, command: str, *, timeout: float | None) -> ShellResult:
        """Runs `command` in a container of its own, which is gone afterwards."""
        check_cap(self._max_output_bytes)
        if self._environment == "sandbox":
            return await run_stateless(
                ["bash", "-c"],
                command,
                workdir=self._sandbox_workdir(),
                env=self._env,
                timeout=timeout,
                max_output_bytes=self._max_output_bytes,
                shieling=await self._open(),
            )
        self._check_mount()
        name = f"af-shell-{secrets.token_hex(6)}"
        argv = [self._binary, "run", "--rm", "-i", "--name", name]
        argv += _isolation_argv(**self._isolation_options())
        argv += [self._image, self._shell, "-c", command]
        started = time.monotonic()
        try:
            client = await asyncio.create_subprocess_exec(
                *argv,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
        except OSError as error:
            raise DockerNotAvailableError(f"Failed to start container: {error}") from error
        kept = max(self._max_output_bytes, 64 * 1024)
        stdout, stderr = Kept(kept), Kept(kept)
        timed_out = False
        try:
            await asyncio.wait_for(communicate(client, stdout, stderr), timeout)
        except asyncio.TimeoutError:
            timed_out = True
            await self._end_container(name)
            await _end_client(client, stdout, stderr)
        except BaseException:
            await asyncio.shield(self._end_container(name))
            await asyncio.shield(_end_client(client, stdout, stderr))
            raise
        return result_of_streams(
            stdout.cut(self._max_output_bytes),
            stderr.cut(self._max_output_bytes),
            exit_code=-1 if client.returncode is None else client.returncode,
            duration_ms=(time.monotonic() - started) * 1000,
            timed_out=timed_out,
        )

    async def _open(self) -> AsyncShieling:
        """Returns the sandbox, which the first call opens."""
        async with self._get_lifecycle_lock():
            if self._shieling is None:
                self._shieling = open_shieling(
                    "sandbox", workdir=self._sandbox_workdir(), options=self._options
                )
            return self._shieling

    async def _end_container(self, name: str) -> None:
        """Kills the container of one command, and removes it if that fails."""
        if await _succeeds([self._binary, "kill", "--signal", "KILL", name], _SECONDS_TO_KILL):
            return
        code, _, error = await _finish([self._binary, "rm", "-f", name], _SECONDS_TO_KILL)
        if code != 0:
            logger.error("container %s could not be removed: %s; it may still run", name, error)

    # The container.

    def _isolation_options(self) -> dict[str, Any]:
        return {
            "user": self._user,
            "network": self._network,
            "memory": self._memory,
            "pids_limit": self._pids_limit,
            "workdir": self._workdir,
            "host_workdir": self._host_workdir,
            "mount_readonly": self._mount_readonly,
            "read_only_root": self._read_only_root,
            "extra_env": self._env,
            "extra_args": (*self._extra_run_args, *self._unsafe_extra_run_args),
        }

    def _check_mount(self) -> None:
        """Raises `ShellExecutionError` if a writable mount is none for the container's user."""
        if self._host_workdir is None or self._mount_readonly:
            return
        user, _, group = self._user.partition(":")
        if not user.isdigit() or user == "0":
            return
        try:
            found = os.stat(self._host_workdir)
        except OSError:
            return
        writable = (
            (found.st_uid == int(user) and found.st_mode & 0o200)
            or (group.isdigit() and found.st_gid == int(group) and found.st_mode & 0o020)
            or found.st_mode & 0o002
        )
        if not writable:
            raise ShellExecutionError(
                f"host_workdir {self._host_workdir!r} cannot be written by the container's user "
                f"{self._user}; pass user='{found.st_uid}:{found.st_gid}', give that user the "
                "right to write it, or use mount_readonly=True"
            )

    async def _start_container(self) -> None:
        self._check_mount()
        argv = build_run_argv(
            binary=self._binary,
            image=self._image,
            container_name=self._container_name,
            **self._isolation_options(),
        )
        # No bound: the runtime may have to fetch the image first.
        code, out, error = await _finish(argv, timeout=24 * 3600.0)
        if code != 0:
            raise DockerNotAvailableError(f"Failed to start container ({code}): {error}")
        logger.info(
            "started docker container %s (id=%s)",
            self._container_name,
            out.decode("utf-8", errors="replace").strip()[:12],
        )

    async def _container_ended(self) -> bool:
        """Returns whether the runtime says that the container has ended. No answer is no such word."""
        code, out, error = await _finish(
            [self._binary, "inspect", "--format", "{{.State.Running}}", self._container_name],
            _SECONDS_TO_KILL,
        )
        if code == 0:
            return out.strip() == b"false"
        # A daemon that is away is "no such file or directory".
        return code is not None and any(f"no such {what}" in error.lower() for what in ("object", "container"))

    async def _stop_container(self) -> None:
        first, second = _SECONDS_TO_REMOVE
        argv = [self._binary, "rm", "-f", self._container_name]
        code, _, error = await _finish(argv, first)
        if code == 0:
            return
        logger.warning(
            "docker rm -f %s did not succeed on first attempt (rc=%s, err=%s); retrying",
            self._container_name,
            code,
            error,
        )
        code, _, error = await _finish(argv, second)
        if code != 0:
            logger.error(
                "docker rm -f %s failed after retry (rc=%s, err=%s); "
                "container may be running and require manual cleanup",
                self._container_name,
                code,
                error,
            )

    # The sandbox.

    def _sandbox_options(self) -> dict[str, Any]:
        if self._extra_run_args or self._unsafe_extra_run_args:
            raise ValueError(
                "extra_run_args and unsafe_extra_run_args are words for a container runtime and "
                "mean nothing with environment='sandbox'; use the keyword `shieling`"
            )
        if self._network not in ("none", "host"):
            raise ValueError(
                f"network={self._network!r} does not exist with environment='sandbox'; "
                "use 'none' or 'host'"
            )
        number = self._memory.rstrip("bkmgBKMG")
        unit = self._memory[len(number) :].lower().rstrip("b")
        return {
            "network": self._network,
            "memory": number + {"": "", "k": "KiB", "m": "MiB", "g": "GiB"}[unit],
            "pids": self._pids_limit,
            "readonly": self._host_workdir is not None and self._mount_readonly,
        }

    def _sandbox_workdir(self) -> str:
        if self._host_workdir is not None:
            return self._host_workdir
        if self._scratch is None:
            self._scratch = tempfile.TemporaryDirectory(prefix="af-shell-")
        return self._scratch.name

    # The framework.

    def _description(self) -> str:
        return _default_description(self._mode)
