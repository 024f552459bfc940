"""Files in a dictionary and commands in a function: for the tests of an agent."""

from __future__ import annotations

import asyncio
import fnmatch
import inspect
import posixpath
from collections.abc import Awaitable, Callable, Iterator, Mapping
from types import MappingProxyType

from ._base import (
    IMAGE_EXTENSIONS,
    EnvToolName,
    ExecutionEnvironment,
    ExecutionResult,
    FileInfo,
    GrepMode,
    apply_edit,
    format_lines,
    glob_match,
)
from ._matching import search

__all__ = ["MemoryEnvironment"]


class MemoryEnvironment(ExecutionEnvironment):
    """Keeps files in memory, and gives commands to a function.

    The methods for tools have no docstrings of their own: the toolset would show those to the model.

    Paths are put in order: ``/a``, ``./a`` and ``x/../a`` are one file.

    Args:
        files: The files at the start: path and content.
        command_handler: Answers the commands. It may be ``async``. Without it there is no shell.

    >>> import asyncio
    >>> env = MemoryEnvironment({"a.txt": "one"}, command_handler=lambda command: ExecutionResult(command, 0))
    >>> asyncio.run(env.shell("echo")).output
    'echo'
    """

    def __init__(
        self,
        files: Mapping[str, str | bytes] | None = None,
        *,
        command_handler: Callable[[str], ExecutionResult | Awaitable[ExecutionResult]] | None = None,
    ) -> None:
        self._files: dict[str, str | bytes] = {
            self._normalize(path): content for path, content in (files or {}).items()
        }
        self._command_handler = command_handler

    @property
    def capabilities(self) -> frozenset[EnvToolName]:
        """The tools for files, and the shell where there is a `command_handler`."""
        tools: list[EnvToolName] = ["ls", "read_file", "write_file", "edit_file", "glob", "grep"]
        if self._command_handler is not None:
            tools.append("shell")
        return frozenset(tools)

    @property
    def files(self) -> Mapping[str, str | bytes]:
        """The files as they are now; a view that cannot be written through."""
        return MappingProxyType(self._files)

    @staticmethod
    def _normalize(path: str) -> str:
        return posixpath.normpath(path).lstrip("/") or "."

    async def shell(
        self, command: str, *, timeout: float | None = 120, env: dict[str, str] | None = None
    ) -> ExecutionResult:
        if self._command_handler is None:
            raise RuntimeError(
                "MemoryEnvironment has no command_handler configured. "
                "Pass command_handler= to the constructor to handle shell() calls."
            )
        result = self._command_handler(command)
        return await result if inspect.isawaitable(result) else result

    def _content(self, path: str) -> str | bytes:
        name = self._normalize(path)
        if name in self._files:
            return self._files[name]
        if any(True for _ in self._below(name)):
            raise FileNotFoundError(f"'{path}' is a directory, not a file.")
        raise FileNotFoundError(f"File not found: {path}")

    def _below(self, directory: str) -> Iterator[tuple[str, str]]:
        """Each file below a directory: its path from there, and its own path."""
        start = "" if directory == "." else f"{directory}/"
        for name in sorted(self._files):
            if name.startswith(start):
                yield name[len(start) :], name

    async def read_file(self, path: str, *, offset: int = 0, limit: int = 2000) -> str | bytes:
        content = self._content(path)
        if posixpath.splitext(self._normalize(path))[1].lower() in IMAGE_EXTENSIONS:
            return content.encode() if isinstance(content, str) else content
        if isinstance(content, bytes):
            try:
                content = content.decode()
            except UnicodeDecodeError:
                return content
        return format_lines(content, offset, limit)

    async def write_file(self, path: str, content: str | bytes) -> None:
        self._files[self._normalize(path)] = content

    async def replace_str(self, path: str, old: str, new: str, *, replace_all: bool = False) -> int:
        name = self._normalize(path)
        if name not in self._files:
            raise FileNotFoundError(f"File not found: {path}")
        content = self._files[name]
        if isinstance(content, bytes):
            try:
                content = content.decode()
            except UnicodeDecodeError:
                raise ValueError(f"{path} is not a text file in UTF-8, so there is no text to replace in it.") from None
        text, count = apply_edit(content, old, new, path, replace_all=replace_all)
        self._files[name] = text
        return count

    async def ls(self, path: str = ".") -> list[FileInfo]:
        directory = self._normalize(path)
        entries: dict[str, FileInfo] = {}
        for relative, name in self._below(directory):
            first, slash, _ = relative.partition("/")
            if first in entries:
                continue
            content = self._files[name]
            size = len(content.encode() if isinstance(content, str) else content)
            shown = first if directory == "." else f"{directory}/{first}"
            entries[first] = FileInfo(first, shown, bool(slash), None if slash else size)
        if not entries and directory != ".":
            raise NotADirectoryError(f"Not a directory: {path}")
        return list(entries.values())

    async def glob(self, pattern: str, *, path: str = ".") -> list[str]:
        return [name for relative, name in self._below(self._normalize(path)) if glob_match(relative, pattern)]

    async def grep(
        self,
        pattern: str,
        *,
        path: str | None = None,
        glob_pattern: str | None = None,
        output_mode: GrepMode = "content",
    ) -> str:
        """Search file contents using a regex pattern (Python `re` module syntax)."""
        where = self._normalize(path or ".")
        named = [where] if where in self._files and where != "." else []
        names = [
            name
            for name in [*named, *(name for _, name in self._below(where))]
            if (not glob_pattern or fnmatch.fnmatch(posixpath.basename(name), glob_pattern))
            and (name == where or not any(part.startswith(".") for part in name.split("/")))
        ]
        texts: list[tuple[str, str | None, str | None]] = []
        for name in names:
            content = self._files[name]
            if isinstance(content, bytes):
                if b"\0" in content[:8192]:
                    continue
                content = content.decode("utf-8", errors="replace")
            texts.append((name, None, content))
        return await asyncio.to_thread(search, pattern, output_mode, texts)
