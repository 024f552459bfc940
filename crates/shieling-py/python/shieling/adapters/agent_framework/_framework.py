"""Access to the package `agent_framework`, which may be absent.

The adapter imports without the framework. What needs it asks here and fails with an error that
names the missing package.
"""

from __future__ import annotations

import functools
import importlib
from enum import IntEnum
from typing import TYPE_CHECKING, Any

SHELL_KIND = "shell"
"""The tool kind by which the framework's clients recognise a local shell."""


class FeatureIndex(IntEnum):
    """The indexes under which the framework counts the use of its parts."""

    TOOLS_SHELL = 79


def require(what: str) -> Any:
    """Returns the module `agent_framework`.

    Raises `ImportError` that names `what` when the framework is not installed.
    """
    try:
        return importlib.import_module("agent_framework")
    except ImportError as error:
        raise ImportError(
            f"{what} needs the package 'agent-framework-core', which is not installed; "
            "install it with 'pip install agent-framework-core'"
        ) from error


def mark_feature_used(feature: FeatureIndex) -> None:
    """Tells the framework's own feature count that a part was used, where it keeps one."""
    mark = getattr(_telemetry(), "mark_feature_used", None)
    if mark is not None:
        mark(feature)


@functools.cache
def _telemetry() -> Any:
    """Returns the framework's module of that name, or `None`; looked for once, since this is asked at each command."""
    try:
        return importlib.import_module("agent_framework._telemetry")
    except ImportError:
        return None


class ContextProvider:
    """The part of the framework's class of this name that a provider relies on."""

    after_run_once_per_turn = False

    def __init__(self, source_id: str) -> None:
        self.source_id = source_id

    async def before_run(self, *, agent: Any, session: Any, context: Any, state: Any) -> None:
        """Called before each run of an agent."""

    async def after_run(self, *, agent: Any, session: Any, context: Any, state: Any) -> None:
        """Called after each run of an agent."""


if not TYPE_CHECKING:
    try:
        from agent_framework import ContextProvider
    except ImportError:
        pass
