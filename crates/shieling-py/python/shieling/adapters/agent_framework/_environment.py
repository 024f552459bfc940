"""A context provider that tells the model in which shell and with which programs it works.

The provider asks the shell once through any executor and adds one block of instructions to each
run. It registers no tools. A program that is missing or a probe that is refused leaves a gap in the
text and never fails the agent.
"""

from __future__ import annotations

import asyncio
import platform
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, ClassVar

from . import _framework
from ._executor_base import ShellExecutor
from ._types import ShellExecutionError, ShellResult

# A probed name becomes part of a command: nothing but a plain program name may reach it.
_TOOL_NAME_PATTERN = re.compile(r"[A-Za-z0-9._-]+")

_POSIX_PROBE = 'echo "VERSION=${BASH_VERSION:-${ZSH_VERSION:-unknown}}"; echo "CWD=$(pwd)"'
_POWERSHELL_PROBE = (
    'Write-Output ("VERSION=" + $PSVersionTable.PSVersion.ToString()); '
    'Write-Output ("CWD=" + (Get-Location).Path)'
)


class ShellFamily(str, Enum):
    """The families of shells that the provider knows."""

    POSIX = "posix"
    POWERSHELL = "powershell"


@dataclass(frozen=True)
class ShellEnvironmentSnapshot:
    """What the probes found.

    `shell_version` is `None` and `working_directory` empty where the shell did not say.
    `tool_versions` maps each probed program to its version line, or to `None` if it is missing.
    """

    family: ShellFamily
    os_description: str
    shell_version: str | None
    working_directory: str
    tool_versions: Mapping[str, str | None]


@dataclass(frozen=True)
class ShellEnvironmentProviderOptions:
    """Options of the provider.

    `probe_tools` names the programs to ask for `--version`. `override_family` replaces the family
    guessed from this platform. `probe_timeout` bounds each probe, in seconds; default 5.
    `instructions_formatter` renders the snapshot in place of `default_instructions_formatter`.
    """

    probe_tools: Sequence[str] = field(default_factory=lambda: ("git", "node", "python", "docker"))
    override_family: ShellFamily | None = None
    probe_timeout: float = 5.0
    instructions_formatter: Callable[[ShellEnvironmentSnapshot], str] | None = None


def _detect_family() -> ShellFamily:
    return ShellFamily.POWERSHELL if sys.platform == "win32" else ShellFamily.POSIX


def _first_non_empty_line(text: str) -> str | None:
    return next((line.strip() for line in text.splitlines() if line.strip()), None)


class ShellEnvironmentProvider(_framework.ContextProvider):
    """Adds a description of the shell to each run of an agent.

    The first use probes through `executor` and keeps the snapshot; `refresh` probes again.
    Simultaneous first uses wait for one probe. A probe that raises leaves no snapshot behind, so
    the next run tries again.
    """

    DEFAULT_SOURCE_ID: ClassVar[str] = "shell_environment"

    def __init__(
        self,
        executor: ShellExecutor,
        options: ShellEnvironmentProviderOptions | None = None,
        *,
        source_id: str | None = None,
    ) -> None:
        super().__init__(source_id or self.DEFAULT_SOURCE_ID)
        self._executor = executor
        self._options = options or ShellEnvironmentProviderOptions()
        self._snapshot: ShellEnvironmentSnapshot | None = None
        self._lock = asyncio.Lock()

    @property
    def current_snapshot(self) -> ShellEnvironmentSnapshot | None:
        """The last snapshot; `None` before the first probe."""
        return self._snapshot

    async def refresh(self) -> ShellEnvironmentSnapshot:
        """Probes again and returns the new snapshot."""
        async with self._lock:
            self._snapshot = await self._probe()
            return self._snapshot

    async def before_run(self, *, agent: Any, session: Any, context: Any, state: Any) -> None:
        """Adds the block of instructions to `context`."""
        snapshot = await self._get_or_probe()
        render = self._options.instructions_formatter or default_instructions_formatter
        context.extend_instructions(self.source_id, render(snapshot))

    async def _get_or_probe(self) -> ShellEnvironmentSnapshot:
        if self._snapshot is None:
            async with self._lock:
                if self._snapshot is None:
                    self._snapshot = await self._probe()
        return self._snapshot

    async def _probe(self) -> ShellEnvironmentSnapshot:
        family = self._options.override_family or _detect_family()
        await self._executor.start()
        version, cwd = await self._probe_shell_and_cwd(family)
        tools: dict[str, str | None] = {}
        seen: set[str] = set()
        for tool in self._options.probe_tools:
            if tool.lower() in seen:
                continue
            seen.add(tool.lower())
            tools[tool] = await self._probe_tool_version(tool)
        return ShellEnvironmentSnapshot(family, platform.platform(), version, cwd, tools)

    async def _probe_shell_and_cwd(self, family: ShellFamily) -> tuple[str | None, str]:
        powershell = family is ShellFamily.POWERSHELL
        result = await self._run_probe(_POWERSHELL_PROBE if powershell else _POSIX_PROBE)
        version: str | None = None
        cwd = ""
        for line in result.stdout.splitlines() if result is not None else ():
            key, _, value = line.strip().partition("=")
            if key == "VERSION":
                version = None if value.strip() in ("", "unknown") else value.strip()
            elif key == "CWD":
                cwd = value.strip()
        return version, cwd

    async def _probe_tool_version(self, tool: str) -> str | None:
        if not _TOOL_NAME_PATTERN.fullmatch(tool):
            return None
        result = await self._run_probe(f"{tool} --version")
        if result is None or result.exit_code != 0:
            return None
        return _first_non_empty_line(result.stdout) or _first_non_empty_line(result.stderr)

    async def _run_probe(self, command: str) -> ShellResult | None:
        try:
            return await self._executor.run(command, timeout=self._options.probe_timeout)
        except (asyncio.TimeoutError, ShellExecutionError):
            return None


def default_instructions_formatter(snapshot: ShellEnvironmentSnapshot) -> str:
    """Returns the default block of instructions for `snapshot`."""
    version = f" {snapshot.shell_version}" if snapshot.shell_version else ""
    if snapshot.family is ShellFamily.POWERSHELL:
        lines = [
            f"You are operating a PowerShell{version} session on {snapshot.os_description}.",
            "Use PowerShell idioms, NOT bash:",
            "- Set environment variables with `$env:NAME = 'value'` (NOT `NAME=value`).",
            "- Change directory with `Set-Location` or `cd`. Paths use `\\` separators.",
            "- Reference environment variables as `$env:NAME` (NOT `$NAME`).",
            "- The system temp directory is `[System.IO.Path]::GetTempPath()` (NOT `/tmp`).",
            "- Pipe to `Out-Null` to suppress output (NOT `> /dev/null`).",
        ]
    else:
        lines = [
            f"You are operating a POSIX shell{version} session on {snapshot.os_description}.",
            "Use POSIX shell idioms (bash/sh).",
            "- Set environment variables for the next command with `export NAME=value`.",
            "- Reference environment variables as `$NAME` or `${NAME}`.",
            "- Paths use `/` separators.",
        ]
    lines.insert(0, "## Shell environment")
    if snapshot.working_directory:
        lines.append(f"Working directory: {snapshot.working_directory}")
    tools = snapshot.tool_versions.items()
    installed = ", ".join(f"{name} ({version})" for name, version in tools if version)
    missing = ", ".join(name for name, version in tools if version is None)
    if installed:
        lines.append(f"Available CLIs: {installed}")
    if missing:
        lines.append(f"Not installed: {missing}")
    return "\n".join(lines)
