"""Result types, abstract classes and text functions of the execution environments."""

from __future__ import annotations

import fnmatch
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from ._matching import collect_grep_matches

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = [
    "IMAGE_EXTENSIONS",
    "IMAGE_MEDIA_TYPES",
    "MAX_OUTPUT_CHARS",
    "Capability",
    "EnvToolName",
    "ExecutionEnvironment",
    "ExecutionProcess",
    "ExecutionResult",
    "FileInfo",
    "GrepMode",
    "apply_edit",
    "build_glob_cmd",
    "build_grep_cmd",
    "build_read_file_cmd",
    "collect_grep_matches",
    "filter_grep_count_output",
    "format_lines",
    "glob_match",
    "parse_glob_output",
    "shell_escape",
]

EnvToolName = Literal["ls", "shell", "read_file", "write_file", "edit_file", "glob", "grep"]
"""The name of a tool, and of the capability of an environment that the tool needs."""

Capability = Literal[
    "ls", "shell", "read_file", "write_file", "edit_file", "replace_str", "glob", "grep", "create_process"
]
"""What an environment can declare. ``replace_str`` means the same as ``edit_file``."""

GrepMode = Literal["content", "files_with_matches", "count"]

IMAGE_MEDIA_TYPES: dict[str, str] = {
    ".bmp": "image/bmp",
    ".gif": "image/gif",
    ".jpeg": "image/jpeg",
    ".jpg": "image/jpeg",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".webp": "image/webp",
}
"""The media type of each file suffix that is read as an image."""

IMAGE_EXTENSIONS = frozenset(IMAGE_MEDIA_TYPES)
"""The suffixes of files that are read as images, in lower case."""

MAX_OUTPUT_CHARS = 100_000
"""How many characters of a command's output a result holds."""


@dataclass
class ExecutionResult:
    """The result of a command that has ended.

    Attributes:
        output: Standard output and standard error, in the order in which they were written.
        exit_code: The exit code; minus the signal's number if a signal ended the command, and -1 after a timeout.
        truncated: Whether the output was longer than `MAX_OUTPUT_CHARS` and was cut.
    """

    output: str
    exit_code: int
    truncated: bool = False


@dataclass
class FileInfo:
    """An entry of a directory.

    Attributes:
        name: The entry's name.
        path: Its path, relative to the environment's root.
        is_dir: Whether it is a directory, or a link to one.
        size: Its size in bytes; ``None`` for a directory and for a link that leads nowhere.
    """

    name: str
    path: str
    is_dir: bool
    size: int | None = None


class ExecutionProcess(ABC):
    """A running process that is talked to. As an async context manager it is killed at the end."""

    @abstractmethod
    async def send(self, data: bytes) -> None:
        """Write `data` to standard input."""

    @abstractmethod
    async def recv(self, timeout: float | None = None) -> bytes:
        """Return what is next on standard output, at most 8,192 bytes, and ``b''`` at its end.

        Raises:
            TimeoutError: Nothing came within `timeout` seconds.
        """

    @abstractmethod
    async def recv_stderr(self, timeout: float | None = None) -> bytes:
        """Return what is next on standard error, at most 8,192 bytes, and ``b''`` at its end.

        Raises:
            TimeoutError: Nothing came within `timeout` seconds.
        """

    @property
    @abstractmethod
    def returncode(self) -> int | None:
        """The exit code, or ``None`` while the process runs."""

    @abstractmethod
    async def wait(self, timeout: float | None = None) -> int:
        """Wait for the process to end, and return its exit code.

        Raises:
            TimeoutError: It still runs after `timeout` seconds.
        """

    @abstractmethod
    async def kill(self) -> None:
        """End the process and everything that it started."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *args: Any) -> None:
        if self.returncode is None:
            await self.kill()


class ExecutionEnvironment(ABC):
    """A place where an agent runs commands and works with files.

    Subclasses implement the methods that their `capabilities` name; the others raise `NotImplementedError`.
    """

    @property
    @abstractmethod
    def capabilities(self) -> frozenset[Any]:
        """The tools that this environment supports."""

    def _unsupported(self, what: str) -> NotImplementedError:
        return NotImplementedError(f"{type(self).__name__} does not support {what}.")

    async def ls(self, path: str = ".") -> list[FileInfo]:
        """List a directory."""
        raise self._unsupported("ls")

    async def shell(
        self, command: str, *, timeout: float | None = 120, env: dict[str, str] | None = None
    ) -> ExecutionResult:
        """Run a shell command, for at most `timeout` seconds (``None``: no limit)."""
        raise self._unsupported("shell")

    async def read_file(self, path: str, *, offset: int = 0, limit: int = 2000) -> str | bytes:
        """Return the numbered lines of a text file, or the bytes of an image or binary file."""
        raise self._unsupported("read_file")

    async def write_file(self, path: str, content: str | bytes) -> None:
        """Create or overwrite a file, and its parent directories."""
        raise self._unsupported("write_file")

    async def replace_str(self, path: str, old: str, new: str, *, replace_all: bool = False) -> int:
        """Replace `old`, which must occur exactly once unless `replace_all` is set; return the number of times."""
        raise self._unsupported("replace_str")

    async def glob(self, pattern: str, *, path: str = ".") -> list[str]:
        """Return the paths below `path` that match a glob pattern."""
        raise self._unsupported("glob")

    async def grep(
        self,
        pattern: str,
        *,
        path: str | None = None,
        glob_pattern: str | None = None,
        output_mode: GrepMode = "content",
    ) -> str:
        """Search the contents of files with a regular expression."""
        raise self._unsupported("grep")

    async def create_process(self, command: str, *, env: dict[str, str] | None = None) -> ExecutionProcess:
        """Start a process that is talked to."""
        raise self._unsupported("interactive processes")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *args: Any) -> None:
        return None


def format_lines(text: str, offset: int, limit: int) -> str:
    r"""Return lines of a text with their numbers, and a note on how to read on.

    A line ends at a newline and nowhere else, as for editors and ``grep -n``: a form feed or U+2028 within a line
    ends none.

    Raises:
        ValueError: `offset` is negative or beyond the last line, or `limit` is not positive.

    >>> format_lines("a\nb\nc\n", 0, 2)
    '     1\ta\n     2\tb\n... (1 more lines. Use offset=2 to continue reading.)\n'
    """
    if offset < 0:
        raise ValueError(f"offset must not be negative, got {offset}.")
    if limit <= 0:
        raise ValueError(f"limit must be positive, got {limit}.")
    lines = [f"{line}\n" for line in text.split("\n")]
    lines[-1] = lines[-1][:-1]
    if not lines[-1]:
        lines.pop()
    total = len(lines)
    if offset >= total and total:
        raise ValueError(f"Offset {offset} exceeds file length ({total} lines).")
    shown = lines[offset : offset + limit]
    answer = "".join(f"{number:>6}\t{line}" for number, line in enumerate(shown, offset + 1))
    if not answer.endswith("\n"):
        answer += "\n"
    following = offset + len(shown)
    if following < total:
        answer += f"... ({total - following} more lines. Use offset={following} to continue reading.)\n"
    return answer


def glob_match(path: str, pattern: str) -> bool:
    """Tell whether `path` matches `pattern`: ``*``, ``?`` and ``[…]`` within a name, ``**`` across any number of them.

    >>> glob_match("src/a/b.py", "src/**/*.py"), glob_match("src/b.py", "src/**/*.py"), glob_match("src/b.py", "*.py")
    (True, True, False)
    """
    tokens = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    parts = re.split(r"(\*\*/|\*\*|\*|\?|\[!?\]?[^\]/]*\])", pattern)
    expression = "".join(tokens.get(part) or _class_of(part) or re.escape(part) for part in parts)
    return re.fullmatch(expression, path, re.DOTALL) is not None


def _class_of(part: str) -> str | None:
    """The expression for a part of a pattern such as ``[!a-c]``; ``None`` for another part."""
    if len(part) < 3 or part[0] != "[":
        return None
    # What stands around it is not the same in all versions of Python.
    translated = re.fullmatch(r"\(\?s:(.*)\)\\[Zz]", fnmatch.translate(part), re.DOTALL)
    return f"(?!/){translated.group(1)}" if translated else None


def apply_edit(text: str, old_string: str, new_string: str, path: str, *, replace_all: bool) -> tuple[str, int]:
    """Return the text after a replacement, and how many there were.

    Raises:
        ValueError: `old_string` is empty, does not occur, or occurs more than once without `replace_all`.
    """
    if not old_string:
        raise ValueError(f"old_string is empty; give the exact text to replace in {path}.")
    count = text.count(old_string)
    if count == 0:
        raise ValueError(f"old_string not found in {path}.")
    if count > 1 and not replace_all:
        raise ValueError(f"old_string found {count} times in {path}. Use replace_all=True or provide more context.")
    return text.replace(old_string, new_string), count


# Commands for an environment that has a shell and no methods for files


def shell_escape(s: str) -> str:
    """Return `s` in single quotes, as one word of a shell.

    >>> print(shell_escape("it's"))
    'it'\\''s'
    """
    return "'{}'".format("'\\''".join(s.split("'")))


def build_read_file_cmd(path: str, *, offset: int = 0, limit: int = 2000) -> str:
    """Return a command that prints lines of a file in the form of `format_lines`."""
    last = offset + limit
    program = (
        f'NR>={offset + 1} && NR<={last} {{ printf "%6d\\t%s\\n", NR, $0 }} '
        f'END {{ if (NR > {last}) '
        f'printf "... (%d more lines. Use offset={last} to continue reading.)\\n", NR - {last} }}'
    )
    # By standard input: awk takes a name with `=` in it for an assignment.
    return f"awk {shell_escape(program)} < {shell_escape(path)}"


def build_grep_cmd(
    pattern: str, *, path: str | None = None, glob_pattern: str | None = None, output_mode: GrepMode = "content"
) -> str:
    """Return a command that searches text files with an extended regular expression.

    In the mode ``count`` it prints files without a match as well; `filter_grep_count_output` leaves them out.
    """
    words = ["grep -rI", {"content": "-n", "files_with_matches": "-l", "count": "-c"}[output_mode], "-E"]
    if glob_pattern:
        words.append(f"--include {shell_escape(glob_pattern)}")
    return " ".join([*words, f"-e {shell_escape(pattern)}", "--", shell_escape(path or ".")])


def filter_grep_count_output(text: str) -> str:
    """Return the lines ``FILE:COUNT`` whose count is not 0."""
    return "\n".join(line for line in text.splitlines() if line.rpartition(":")[2] != "0")


def build_glob_cmd(pattern: str, *, path: str = ".") -> str:
    """Return a command that prints the first 100 paths below `path` whose name or path matches `pattern`."""
    if path.startswith("-"):
        # `find` would take it for an option.
        path = f"./{path}"
    whole = f"{path.rstrip('/')}/{pattern}"
    tests = [f"-name {shell_escape(pattern)}", *(f"-path {shell_escape(one)}" for one in (pattern, whole))]
    return f"find {shell_escape(path)} \\( {' -o '.join(tests)} \\) -print 2>/dev/null | head -n 100"


def parse_glob_output(text: str) -> list[str]:
    """Return the paths that the command of `build_glob_cmd` has printed."""
    return [line for line in text.strip().splitlines() if line]
