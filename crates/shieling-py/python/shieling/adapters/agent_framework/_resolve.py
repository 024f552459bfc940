"""Resolution of the shell that commands run in."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Sequence

from ._types import ShellExecutionError

_ENV_OVERRIDE = "AGENT_FRAMEWORK_SHELL"
_POSIX_SHELLS = ("/bin/bash", "/usr/bin/bash", "/bin/sh", "/usr/bin/sh")
_POWERSHELL_FLAGS = ("-NoLogo", "-NoProfile", "-NonInteractive", "-Command")


def resolve_shell(shell: str | Sequence[str] | None, *, interactive: bool) -> list[str]:
    """Returns the argument vector of the shell.

    The order is: `shell`, the variable `AGENT_FRAMEWORK_SHELL`, the platform's default. A text is
    split like a shell word list. Without `interactive` the vector ends with `-c` (`-Command` for
    PowerShell), so that a command can be appended. Raises `ShellExecutionError` when `shell` is
    empty or no shell exists.
    """
    if shell is not None:
        argv = shlex.split(shell) if isinstance(shell, str) else list(shell)
        if not argv:
            raise ShellExecutionError("shell override must not be empty")
        return argv if interactive else _ensure_command_flag(argv)
    argv = shlex.split(os.environ.get(_ENV_OVERRIDE) or "")
    if argv:
        return argv if interactive else _ensure_command_flag(argv)
    if sys.platform == "win32":
        binary = shutil.which("pwsh") or shutil.which("powershell")
        if binary is None:
            raise ShellExecutionError(
                "Neither 'pwsh' nor 'powershell' was found on PATH. "
                f"Install PowerShell 7+ or set {_ENV_OVERRIDE}."
            )
        return [binary, *_POWERSHELL_FLAGS, *(["-"] if interactive else [])]
    for candidate in _POSIX_SHELLS:
        if os.path.exists(candidate):
            if not interactive:
                return [candidate, "-c"]
            return [candidate, *(["--noprofile", "--norc"] if is_bash([candidate]) else [])]
    found = shutil.which("sh")
    if found is None:
        raise ShellExecutionError(
            f"No POSIX shell found on PATH. Set {_ENV_OVERRIDE} to override."
        )
    return [found] if interactive else [found, "-c"]


def is_powershell(argv: Sequence[str]) -> bool:
    """Returns whether `argv` starts PowerShell."""
    if not argv:
        return False
    name = os.path.basename(argv[0]).lower()
    return name.removesuffix(".exe") in ("pwsh", "powershell")


def is_bash(argv: Sequence[str]) -> bool:
    """Returns whether `argv` starts bash."""
    return bool(argv) and os.path.basename(argv[0]) == "bash"


def _ensure_command_flag(argv: list[str]) -> list[str]:
    """Returns `argv` with the flag after which a shell takes a command."""
    if not argv:
        return argv
    last = argv[-1].lower()
    if is_powershell(argv):
        return argv if last in ("-command", "-c") else [*argv, "-Command"]
    return argv if last == "-c" else [*argv, "-c"]
