"""Drop-in for the shell tools of Microsoft's agent framework, `agent_framework_tools.shell`.

The names, parameters, defaults and texts are those of the original; commands run with this
package's processes, sessions and bounds. `docs/adapters/agent_framework.md` compares the two.
"""

from __future__ import annotations

from typing import Any

from ._docker import (
    DEFAULT_IMAGE as DOCKER_DEFAULT_IMAGE,
)
from ._docker import (
    DockerNotAvailableError,
    DockerShellTool,
    build_exec_argv,
    build_run_argv,
    is_docker_available,
)
from ._environment import (
    ShellEnvironmentProvider,
    ShellEnvironmentProviderOptions,
    ShellEnvironmentSnapshot,
    ShellFamily,
    default_instructions_formatter,
)
from ._executor_base import ShellExecutor
from ._policy import ShellDecision, ShellPolicy, ShellRequest
from ._resolve import resolve_shell
from ._session import ShellSession
from ._tool import LocalShellTool
from ._truncate import truncate_head_tail, truncate_text_head_tail
from ._types import (
    ShellCommandError,
    ShellExecutionError,
    ShellMode,
    ShellResult,
    ShellTimeoutError,
)

_CODE_TIER = ("HyperlightCodeActProvider", "HyperlightExecuteCodeTool")


def __getattr__(name: str) -> Any:
    if name in _CODE_TIER:
        raise NotImplementedError(
            f"`{name}` is not there yet: this version has no tier that runs code apart from a "
            "shell; use LocalShellTool(environment='sandbox') and run `python3 -c` in it"
        )
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "DOCKER_DEFAULT_IMAGE",
    "DockerNotAvailableError",
    "DockerShellTool",
    "LocalShellTool",
    "ShellCommandError",
    "ShellDecision",
    "ShellEnvironmentProvider",
    "ShellEnvironmentProviderOptions",
    "ShellEnvironmentSnapshot",
    "ShellExecutionError",
    "ShellExecutor",
    "ShellFamily",
    "ShellMode",
    "ShellPolicy",
    "ShellRequest",
    "ShellResult",
    "ShellSession",
    "ShellTimeoutError",
    "build_exec_argv",
    "build_run_argv",
    "default_instructions_formatter",
    "is_docker_available",
    "resolve_shell",
    "truncate_head_tail",
    "truncate_text_head_tail",
]
