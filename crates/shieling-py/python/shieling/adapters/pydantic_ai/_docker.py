"""The configuration of a Docker container as an execution environment. This version cannot run one yet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._base import EnvToolName, ExecutionEnvironment

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["DockerEnvironment"]


class DockerEnvironment(ExecutionEnvironment):
    """Describes a container. Entering it raises `NotImplementedError`: Shieling has no containers yet.

    Args:
        image: The image.
        env_vars: Variables of every command.
        work_dir: The working directory in the container.
        volumes: Mounts, as the `docker` package takes them.
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
        self._client: Any = None
        self._container: Any = None

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

    async def __aenter__(self) -> Self:
        raise NotImplementedError(
            f"the container `{self._image}` was not started: this version of Shieling has no environment `container`; "
            'use LocalEnvironment(environment="sandbox"), which confines commands without Docker'
        )

    async def is_alive(self) -> bool:
        """Whether the container runs."""
        return False
