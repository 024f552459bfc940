"""Access to the package `camel`, which may be absent.

With it, the toolkit is one of its toolkits and its tools are its function tools. Without it, the
classes here take their places.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeVar

T = TypeVar("T")

__all__ = [
    "BaseToolkit",
    "FunctionTool",
    "MCPServer",
    "Runtime",
    "get_logger",
    "manual_timeout",
    "to_plain",
]


class BaseToolkit:
    """The base of toolkits."""

    timeout: float | None = None


class FunctionTool:
    """A function that an agent can call."""

    def __init__(self, func: Callable[..., Any]) -> None:
        self.func = func

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.func(*args, **kwargs)

    def get_function_name(self) -> str:
        """Returns the function's name."""
        return self.func.__name__

    def get_function_description(self) -> str:
        """Returns the function's description."""
        return (self.func.__doc__ or "").strip()


class Runtime(str, Enum):
    """Language runtimes besides Python."""

    GO = "go"
    JAVA = "java"


def MCPServer() -> Callable[[T], T]:
    """Leaves a class as it is: serving it over MCP needs the framework."""
    return lambda cls: cls


F = TypeVar("F", bound=Callable[..., Any])


def manual_timeout(func: F) -> F:
    """Marks a toolkit's method as one that bounds its time itself, so that the base class does not."""
    func._manual_timeout = True  # type: ignore[attr-defined] # pyright: ignore[reportFunctionMemberAccess]
    return func


if not TYPE_CHECKING:
    try:
        from camel.toolkits.base import BaseToolkit
        from camel.toolkits.function_tool import FunctionTool
        from camel.utils import MCPServer
    except ImportError:
        pass
    try:
        from camel.toolkits.terminal_toolkit.runtime_utils import Runtime
    except ImportError:
        pass


def get_logger() -> logging.Logger:
    """Returns the adapter's logger."""
    return logging.getLogger("shieling.adapters.camel")


_ESCAPE = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[PX^_][^\x1b]*(?:\x1b\\)?|[ -/]*[0-~])"
)


def to_plain(text: str) -> str:
    """Returns `text` without terminal escapes."""
    if "\x1b" not in text:
        return text
    return _ESCAPE.sub("", text)
