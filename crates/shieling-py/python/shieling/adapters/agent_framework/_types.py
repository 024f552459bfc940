"""Result, mode and error types of the shell tools."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from . import _framework

# The framework's own providers pass over errors of the original's class and let others through.
_ErrorBase = RuntimeError
if not TYPE_CHECKING:
    try:
        from agent_framework_tools.shell import ShellExecutionError as _ErrorBase
    except ImportError:
        pass

ShellMode = Literal["persistent", "stateless"]


@dataclass(frozen=True)
class ShellResult:
    """The outcome of one command.

    `exit_code` is 124 after a timeout; of a stateless command in a container it is the one of the
    runtime's client, mostly 137. `duration_ms` is in milliseconds. `truncated` tells that the
    middle of a stream was left out. The attribute `session_restarted`, which is no field, tells that
    the shell has ended and the next command runs in a fresh one.
    """

    session_restarted: ClassVar[bool] = False

    stdout: str
    stderr: str
    exit_code: int
    duration_ms: int
    truncated: bool = False
    timed_out: bool = False

    def format_for_model(self) -> str:
        """Returns the result as one block of text: streams, marks, exit code, in this order."""
        lines: list[str] = []
        if self.stdout:
            lines.append(self.stdout)
        if self.stderr:
            lines.append("stderr: " + self.stderr)
        if self.truncated:
            lines.append("[output truncated]")
        if self.timed_out:
            lines.append("[command timed out]")
        if self.session_restarted:
            lines.append("[shell restarted; the next command starts afresh]")
        lines.append(f"exit_code: {self.exit_code}")
        return "\n".join(lines)


def result_of_streams(
    stdout: tuple[str, bool],
    stderr: tuple[str, bool],
    *,
    exit_code: int,
    duration_ms: float,
    timed_out: bool,
    restarted: bool = False,
) -> ShellResult:
    """Returns the result of a command: of each stream its text, and whether a part of it was left out.

    `restarted` sets `session_restarted`.
    """
    result = ShellResult(
        stdout=stdout[0],
        stderr=stderr[0],
        exit_code=exit_code,
        duration_ms=int(duration_ms),
        truncated=stdout[1] or stderr[1],
        timed_out=timed_out,
    )
    if restarted:
        object.__setattr__(result, "session_restarted", True)
    return result


class ShellExecutionError(_ErrorBase):
    """A command could not be run."""


class ShellTimeoutError(ShellExecutionError):
    """A command ran longer than allowed."""


class ShellCommandError(ShellExecutionError):
    """A command was rejected by the policy."""


class _ShellResultText(str):
    """The text of a result that still carries the result, for the framework's result parser."""

    shell_result: ShellResult

    def __new__(cls, result: ShellResult) -> _ShellResultText:
        text = super().__new__(cls, result.format_for_model())
        text.shell_result = result
        return text


def shell_result_to_text(result: ShellResult) -> str:
    """Returns the text of `result` for the model, with `result` attached."""
    return _ShellResultText(result)


def parse_shell_result(result: Any) -> Any:
    """Returns the content of a tool's return value: text, with the fields of a shell result."""
    if not isinstance(result, _ShellResultText):
        return str(result)
    framework = _framework.require("the result of a shell tool")
    fields = result.shell_result
    return [
        framework.Content.from_text(
            result,
            additional_properties={
                "stdout": fields.stdout,
                "stderr": fields.stderr,
                "exit_code": fields.exit_code,
                "truncated": fields.truncated,
                "timed_out": fields.timed_out,
            },
        )
    ]


# Under the original's names.
_shell_result_to_text = shell_result_to_text
_parse_shell_result = parse_shell_result
