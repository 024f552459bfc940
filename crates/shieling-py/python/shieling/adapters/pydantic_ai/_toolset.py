"""The tools of an execution environment, for an agent of pydantic-ai."""

from __future__ import annotations

import asyncio
import inspect
import posixpath
import re
from collections.abc import Callable, Generator, Sequence
from contextlib import AsyncExitStack, contextmanager
from contextvars import ContextVar, Token
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from ._base import IMAGE_EXTENSIONS, IMAGE_MEDIA_TYPES, ExecutionEnvironment
from .local import LocalEnvironment

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["ExecutionEnvironmentToolset"]

ModelRetry: Any = None
BinaryContent: Any = None


class _Base:
    """Stands for pydantic-ai's `FunctionToolset` where pydantic-ai is not installed."""

    def __init__(self, *, max_retries: int, id: str | None) -> None:
        raise ModuleNotFoundError("pydantic-ai is not installed; `pip install pydantic-ai-slim` brings its toolsets")

    def tool_plain(self, function: Callable[..., Any], *, name: str, requires_approval: bool) -> Any:
        raise NotImplementedError

    async def get_tools(self, ctx: Any) -> dict[str, Any]:
        raise NotImplementedError


if not TYPE_CHECKING:
    try:
        from pydantic_ai.exceptions import ModelRetry
        from pydantic_ai.messages import BinaryContent
        from pydantic_ai.toolsets.function import FunctionToolset as _Base
    except ImportError:
        pass

ToolName = Literal["ls", "shell", "read_file", "write_file", "edit_file", "glob", "grep"]
# The names of capabilities and of methods, where they are not the tool's.
_TOOL_OF_CAPABILITY = {"replace_str": "edit_file"}
_METHOD_OF_TOOL = {"edit_file": "replace_str"}
_MOST_PATHS = 100
_NO_ENVIRONMENT = "No execution environment configured. Pass one to ExecutionEnvironmentToolset() or use "


class ExecutionEnvironmentToolset(_Base):
    """Gives an agent the tools that an execution environment is capable of.

    Which tools there are is looked up at each request, in the environment that is in use then.

    Args:
        shared_environment: The environment of all runs; or a function that makes one for each run; or ``"local"`` or
            ``"sandbox"`` for a `LocalEnvironment` in the current directory. ``None``: given later, by
            `use_environment`.
        environment_factory: Makes an environment for each ``async with``. Not together with `shared_environment`.
        include: The names of the tools. Default: all.
        exclude: The names of tools that are left out, even if `include` names them.
        require_shell_approval: Whether ``shell`` needs a person's yes.
        require_write_approval: Whether ``write_file`` and ``edit_file`` need a person's yes.
        image_support: Whether ``read_file`` gives the model images.
        max_image_bytes: The largest image that it is given.
        max_output_chars: How many characters of a file or a command's output the model is given.
        max_retries: How often a tool may be called again after an error.
        id: The toolset's id, which durable execution needs.

    >>> toolset = ExecutionEnvironmentToolset(LocalEnvironment(), exclude=["grep"])
    """

    def __init__(
        self,
        shared_environment: ExecutionEnvironment | Callable[[], ExecutionEnvironment] | str | None = None,
        *,
        environment_factory: Callable[[], ExecutionEnvironment] | None = None,
        include: Sequence[str] | None = None,
        exclude: Sequence[str] | None = None,
        require_shell_approval: bool = False,
        require_write_approval: bool = False,
        image_support: bool = True,
        max_image_bytes: int = 50 * 1024 * 1024,
        max_output_chars: int = 200_000,
        max_retries: int = 1,
        id: str | None = None,
    ) -> None:
        if shared_environment is not None and environment_factory is not None:
            raise ValueError("Cannot provide both shared_environment and environment_factory.")
        super().__init__(max_retries=max_retries, id=id)
        if isinstance(shared_environment, str):
            shared_environment = LocalEnvironment(environment=shared_environment)
        if callable(shared_environment) and not isinstance(shared_environment, ExecutionEnvironment):
            shared_environment, environment_factory = None, shared_environment
        name = id or "environment"
        self._shared_environment: ExecutionEnvironment | None = shared_environment
        self._environment_factory = environment_factory
        self._environment_override: ContextVar[ExecutionEnvironment | None] = ContextVar(
            f"_environment_override_{name}", default=None
        )
        self._per_run_state: ContextVar[tuple[AsyncExitStack, Token[Any], Any] | None] = ContextVar(
            f"_per_run_state_{name}", default=None
        )
        self._include = None if include is None else frozenset(_TOOL_OF_CAPABILITY.get(one, one) for one in include)
        self._exclude = frozenset(_TOOL_OF_CAPABILITY.get(one, one) for one in exclude or ())
        self._require_shell_approval = require_shell_approval
        self._require_write_approval = require_write_approval
        self._image_support = image_support
        self._max_image_bytes = max_image_bytes
        self._max_output_chars = max_output_chars
        self._enter_lock = asyncio.Lock()
        self._running_count = 0
        self._exit_stack: AsyncExitStack | None = None
        self._register_tools()

    def _register_tools(self) -> None:
        asks_shell, asks_write = self._require_shell_approval, self._require_write_approval
        for method, name, asks in (
            (self._ls, "ls", False),
            (self._shell, "shell", asks_shell),
            (self._read_file, "read_file", False),
            (self._write_file, "write_file", asks_write),
            (self._edit_file, "edit_file", asks_write),
            (self._glob, "glob", False),
            (self._grep, "grep", False),
        ):
            self.tool_plain(method, name=name, requires_approval=asks)

    def _shown(self, text: str) -> str:
        if len(text) <= self._max_output_chars:
            return text
        return f"{text[: self._max_output_chars]}\n... (truncated)"

    async def _ls(self, path: str = ".") -> str:
        """List directory contents.

        Args:
            path: The directory path to list. Defaults to the working directory.
        """
        try:
            entries = await self.required_environment.ls(path)
        except (OSError, ValueError) as error:
            return f"Error: {error}"
        lines: list[str] = []
        for entry in entries:
            if entry.is_dir:
                lines.append(f"{entry.name}/")
            else:
                lines.append(entry.name if entry.size is None else f"{entry.name} ({entry.size} bytes)")
        return self._shown("\n".join(lines)) or "Empty directory."

    async def _shell(self, command: str, timeout: int = 120) -> str:
        """Execute a shell command and return its output.

        Use this for running scripts, installing packages, and other terminal operations.

        Args:
            command: The shell command to execute.
            timeout: Maximum seconds to wait for the command to complete.
        """
        try:
            result = await self.required_environment.shell(command, timeout=timeout)
        except (OSError, ValueError) as error:
            # Such as a timeout of 0: the model can do better, and the run must not end.
            return f"Error: {error}"
        lines = [self._shown(result.output)] if result.output else []
        if result.truncated:
            lines.append("[output truncated]")
        return "\n".join([*lines, f"Exit code: {result.exit_code}"])

    async def _read_file(self, path: str, offset: int = 0, limit: int = 2000) -> Any:
        """Read a file from the filesystem.

        Returns text files with line numbers, or renders image files for visual inspection.
        Use offset and limit to read specific sections of large files.

        Args:
            path: The file path to read.
            offset: The line number to start reading from (0-indexed).
            limit: Maximum number of lines to read.
        """
        try:
            content = await self.required_environment.read_file(path, offset=offset, limit=limit)
        except (OSError, ValueError) as error:
            return f"Error: {error}"
        if isinstance(content, str):
            return self._shown(content)
        suffix = posixpath.splitext(path)[1].lower()
        if suffix not in IMAGE_EXTENSIONS:
            return f"[Binary file: {path} — cannot display as text]"
        if not self._image_support:
            return f"[Image file: {path} — image_support is disabled on this toolset]"
        if len(content) > self._max_image_bytes:
            return f"Error: Image too large ({len(content)} bytes, max {self._max_image_bytes} bytes)."
        return BinaryContent(data=content, media_type=IMAGE_MEDIA_TYPES[suffix])

    async def _write_file(self, path: str, content: str) -> str:
        """Create or overwrite a file.

        The file and any parent directories will be created if they do not exist.

        Args:
            path: The file path to write.
            content: The content to write to the file.
        """
        try:
            await self.required_environment.write_file(path, content)
        except (OSError, ValueError) as error:
            return f"Error: {error}"
        return f"File written: {path}"

    async def _edit_file(self, path: str, old: str, new: str, replace_all: bool = False) -> str:
        """Edit a file by exact string replacement.

        The old string must match exactly (including whitespace and indentation).
        For uniqueness, include surrounding context lines.
        Only use this after reading the file first.

        Args:
            path: The file path to edit.
            old: The exact text to find and replace.
            new: The replacement text.
            replace_all: Replace all occurrences. Defaults to false (old must be unique).
        """
        try:
            count = await self.required_environment.replace_str(path, old, new, replace_all=replace_all)
        except (OSError, ValueError) as error:
            raise ModelRetry(str(error)) from error
        return f"Replaced {count} occurrence{'' if count == 1 else 's'} in {path}."

    async def _glob(self, pattern: str, path: str = ".") -> str:
        """Find files matching a glob pattern.

        Supports patterns like `**/*.py`, `src/**/*.ts`.
        Returns up to 100 matching file paths.

        Args:
            pattern: The glob pattern to match files against.
            path: The directory to search in. Defaults to the working directory.
        """
        try:
            matches = await self.required_environment.glob(pattern, path=path)
        except (OSError, ValueError, NotImplementedError) as error:
            return f"Error: {error}"
        if not matches:
            return "No files found."
        text = "\n".join(matches[:_MOST_PATHS])
        return text if len(matches) <= _MOST_PATHS else f"{text}\n[... truncated, showing first {_MOST_PATHS} matches]"

    async def _grep(
        self,
        pattern: str,
        path: str | None = None,
        glob: str | None = None,
        output_mode: Literal["content", "files_with_matches", "count"] = "content",
    ) -> str:
        """Search file contents with a regex pattern.

        Args:
            pattern: The regex pattern to search for.
            path: The file or directory to search in.
            glob: Glob pattern to filter which files are searched (e.g. `*.py`).
            output_mode: Controls output format:
                `content` (default) shows matching lines with file paths and line numbers,
                `files_with_matches` shows only file paths,
                `count` shows match counts per file.
        """
        try:
            found = await self.required_environment.grep(pattern, path=path, glob_pattern=glob, output_mode=output_mode)
        except (OSError, ValueError, re.error) as error:
            return f"Error: {error}"
        return self._shown(found) if found.strip() else "No matches found."

    def _resolve_tool_names(self, env: ExecutionEnvironment) -> frozenset[str]:
        capabilities: frozenset[str] = env.capabilities
        names = frozenset(_TOOL_OF_CAPABILITY.get(one, one) for one in capabilities)
        return (names if self._include is None else names & self._include) - self._exclude

    async def get_tools(self, ctx: Any) -> dict[str, Any]:
        """The tools that the environment in use is capable of, as far as they are included.

        A method of the environment that has a docstring of its own describes its tool to the model.
        """
        env = self.required_environment
        names = self._resolve_tool_names(env)
        tools = {name: tool for name, tool in (await super().get_tools(ctx)).items() if name in names}
        for name, tool in tools.items():
            method = getattr(type(env), _METHOD_OF_TOOL.get(name, name), None)
            base = getattr(ExecutionEnvironment, _METHOD_OF_TOOL.get(name, name), None)
            if method is not None and method is not base and method.__doc__:
                described = replace(tool.tool_def, description=inspect.cleandoc(method.__doc__))
                tools[name] = replace(tool, tool_def=described)
        return tools

    @property
    def tool_name_conflict_hint(self) -> str:
        """What to do where another toolset has a tool of the same name."""
        return "Wrap the ExecutionEnvironmentToolset in a PrefixedToolset to avoid name conflicts."

    @property
    def environment(self) -> ExecutionEnvironment | None:
        """The environment in use: that of `use_environment`, that of this run, or the shared one."""
        override = self._environment_override.get()
        return self._shared_environment if override is None else override

    @property
    def required_environment(self) -> ExecutionEnvironment:
        """The environment in use.

        Raises:
            RuntimeError: There is none.
        """
        env = self.environment
        if env is None:
            raise RuntimeError(f"{_NO_ENVIRONMENT}.use_environment().")
        return env

    @contextmanager
    def use_environment(self, environment: ExecutionEnvironment) -> Generator[None, None, None]:
        """Use another environment within a ``with`` block. The caller enters and leaves it."""
        token = self._environment_override.set(environment)
        try:
            yield
        finally:
            self._environment_override.reset(token)

    async def __aenter__(self) -> Self:
        if self._environment_factory is not None:
            env = self._environment_factory()
            stack = AsyncExitStack()
            await stack.enter_async_context(env)
            token = self._environment_override.set(env)
            self._per_run_state.set((stack, token, self._per_run_state.get()))
            return self
        async with self._enter_lock:
            if self._running_count == 0 and self._shared_environment is not None:
                stack = AsyncExitStack()
                await stack.enter_async_context(self._shared_environment)
                self._exit_stack = stack
            elif self._running_count == 0 and self._environment_override.get() is None:
                raise RuntimeError(f"{_NO_ENVIRONMENT}environment_factory.")
            self._running_count += 1
        return self

    async def __aexit__(self, *args: Any) -> bool | None:
        if self._environment_factory is not None:
            state = self._per_run_state.get()
            if state is not None:
                stack, token, before = state
                try:
                    await stack.aclose()
                finally:
                    self._environment_override.reset(token)
                    self._per_run_state.set(before)
            return None
        async with self._enter_lock:
            self._running_count -= 1
            if self._running_count == 0 and self._exit_stack is not None:
                stack, self._exit_stack = self._exit_stack, None
                await stack.aclose()
        return None
