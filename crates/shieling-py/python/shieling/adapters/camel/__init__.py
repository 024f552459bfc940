"""Drop-in for CAMEL's `TerminalToolkit`, `camel.toolkits.terminal_toolkit`.

The names, parameters, defaults and texts are those of the original; commands run with this
package's processes, jobs and bounds. `docs/adapters/camel.md` compares the two.
"""

from __future__ import annotations

from ._framework import Runtime, manual_timeout
from ._framework import to_plain as _to_plain
from .terminal_toolkit import (
    TerminalToolkit,
    _default_console_approval,  # pyright: ignore[reportPrivateUsage]
)
from .utils import (
    DANGEROUS_COMMANDS,
    check_command_safety,
    check_nodejs_availability,
    clone_current_environment,
    ensure_go_available,
    ensure_java_available,
    ensure_uv_available,
    is_uv_environment,
    sanitize_command,
    setup_initial_env_with_uv,
    setup_initial_env_with_venv,
)

__all__ = [
    "DANGEROUS_COMMANDS",
    "Runtime",
    "TerminalToolkit",
    "_default_console_approval",
    "_to_plain",
    "check_command_safety",
    "check_nodejs_availability",
    "clone_current_environment",
    "ensure_go_available",
    "ensure_java_available",
    "ensure_uv_available",
    "is_uv_environment",
    "manual_timeout",
    "sanitize_command",
    "setup_initial_env_with_uv",
    "setup_initial_env_with_venv",
]
