"""What there is of AG2: the classes of ``ag2`` (1.x) or ``autogen.beta`` (0.12), or stand-ins without either."""

# AG2 reads the annotations of the functions in here, so they are no strings.

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from inspect import Parameter, isawaitable, signature
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

__all__ = [
    "CallableFactory",
    "CodeEnvironment",
    "CodeLanguage",
    "CodeRunResult",
    "ExecResult",
    "IS_1X",
    "Sandbox",
    "SandboxBase",
    "SandboxFactory",
    "ShellToolBase",
    "SingletonFactory",
    "Tool",
    "WorkdirAware",
    "code_tool",
    "context_tool",
    "function_tool",
]

_tool: Any = None
Context = Any
IS_1X = False
"""Whether the AG2 that is installed is 1.x."""


class Tool:
    """Stands for AG2's class where AG2 is not installed."""

    name: str


@dataclass(slots=True)
class ExecResult:
    """What became of one command.

    Attributes:
        output: Trimmed standard output and error.
        exit_code: 124 for a timeout, 127 for a program that is not there.
    """

    output: str
    exit_code: int


CodeLanguage = Literal["python", "bash", "javascript", "typescript"]
"""The languages that AG2 knows."""


@dataclass(slots=True)
class CodeRunResult:
    """What became of one piece of code.

    Attributes:
        output: Trimmed standard output and error.
        exit_code: 2 for a language that is not accepted.
    """

    output: str
    exit_code: int


@runtime_checkable
class CodeEnvironment(Protocol):
    """Where code runs."""

    @property
    def supported_languages(self) -> tuple[CodeLanguage, ...]: ...

    async def run(self, code: str, language: CodeLanguage, *, context: Any = None) -> CodeRunResult: ...


@runtime_checkable
class Sandbox(Protocol):
    """A place that runs an argv in a working directory."""

    @property
    def workdir(self) -> PurePosixPath: ...

    @property
    def host_workdir(self) -> Path | None: ...

    async def __aenter__(self) -> "Sandbox": ...

    async def __aexit__(self, *exc: object) -> None: ...

    async def exec(
        self, argv: list[str], *, env: dict[str, str] | None = None, timeout: float | None = None
    ) -> ExecResult: ...

    async def put_file(self, path: PurePosixPath, content: bytes) -> None: ...

    async def remove_file(self, path: PurePosixPath) -> None: ...

    async def aclose(self) -> None: ...


class SandboxBase(ABC):
    """A `Sandbox` whose optional methods are there already."""

    @property
    @abstractmethod
    def workdir(self) -> PurePosixPath: ...

    @property
    @abstractmethod
    def host_workdir(self) -> Path | None: ...

    @abstractmethod
    async def exec(
        self, argv: list[str], *, env: dict[str, str] | None = None, timeout: float | None = None
    ) -> ExecResult: ...

    async def put_file(self, path: PurePosixPath, content: bytes) -> None:
        raise NotImplementedError(
            f"{type(self).__name__} does not support put_file. Override the method on the subclass."
        )

    async def remove_file(self, path: PurePosixPath) -> None:
        if path.is_absolute():
            raise ValueError(f"Absolute paths are not allowed in remove_file: {path}")
        await self.exec(["rm", "-f", str(self.workdir / path)])

    async def aclose(self) -> None:
        return None

    async def __aenter__(self) -> "SandboxBase":
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()


@runtime_checkable
class SandboxFactory(Protocol):
    """Makes a sandbox for each call."""

    def open(self, context: Any = None) -> AbstractAsyncContextManager[Sandbox]: ...


@runtime_checkable
class WorkdirAware(Protocol):
    """A factory that knows its working directory before there is a sandbox."""

    @property
    def workdir(self) -> PurePosixPath: ...


class SingletonFactory:
    """A factory of one sandbox, which its caller closes."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox

    @property
    def sandbox(self) -> Sandbox:
        """The sandbox."""
        return self._sandbox

    @asynccontextmanager
    async def open(self, context: Any = None) -> AsyncGenerator[Sandbox, None]:
        """The same sandbox at each call."""
        yield self._sandbox


class CallableFactory:
    """A factory that calls a function for each sandbox, and closes that sandbox afterwards. AG2 0.13 and 0.14 have it.

    Args:
        builder: Returns a sandbox. It may be ``async``, and may take the context of the agent's run.
    """

    def __init__(self, builder: Callable[..., Any]) -> None:
        self._builder = builder
        self._takes_context = _takes_an_argument(builder)

    @asynccontextmanager
    async def open(self, context: Any = None) -> AsyncGenerator[Sandbox, None]:
        """A new sandbox, which is closed at the end."""
        made = self._builder(context) if self._takes_context else self._builder()
        sandbox: Any = await made if isawaitable(made) else made
        async with sandbox:
            yield sandbox


def _takes_an_argument(function: Callable[..., Any]) -> bool:
    try:
        parameters = signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    return any(one.kind in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD) for one in parameters)


if not TYPE_CHECKING:
    # AG2's own classes take the place of these where there is AG2, so that `isinstance` holds for both.
    try:
        from ag2.annotations import Context
        from ag2.tools.final import tool as _tool
        from ag2.tools.tool import Tool
    except ImportError:
        try:
            from autogen.beta.annotations import Context
            from autogen.beta.tools.final import tool as _tool
            from autogen.beta.tools.tool import Tool
        except ImportError:
            pass
    try:
        from ag2.tools.code.environment.base import CodeEnvironment, CodeRunResult
        from ag2.tools.sandbox.base import ExecResult, Sandbox, SandboxBase
        from ag2.tools.sandbox.factory import SandboxFactory, SingletonFactory, WorkdirAware

        IS_1X = True
    except ImportError:
        pass


class _Unavailable:
    """Stands for the function tool of AG2 where AG2 is not installed: it knows its name and its function."""

    def __init__(self, function: Callable[..., Any], name: str, description: str) -> None:
        self.function = function
        self.name = name
        self.description = description

    async def schemas(self, context: Any) -> list[Any]:
        raise ModuleNotFoundError("AG2 is not installed; give the tool to an agent after `pip install ag2`")

    def register(self, stack: Any, context: Any, *, middleware: Iterable[Any] = ()) -> None:
        raise ModuleNotFoundError("AG2 is not installed; give the tool to an agent after `pip install ag2`")


def function_tool(function: Callable[..., Any], name: str, description: str, middleware: Iterable[Any]) -> Any:
    """A tool of AG2 that calls `function`."""
    if _tool is None:
        return _Unavailable(function, name, description)
    return _tool(function, name=name, description=description, middleware=middleware)


class ShellToolBase(Tool):
    """A tool of an agent that is one function tool."""

    _tool: Any

    async def schemas(self, context: Any) -> list[Any]:
        """What AG2 tells the model of the tool."""
        found: list[Any] = await self._tool.schemas(context)
        return found

    def register(self, stack: Any, context: Any, *, middleware: Iterable[Any] = ()) -> None:
        """Connect the tool to an agent's run."""
        self._tool.register(stack, context, middleware=middleware)


def context_tool(
    run: Callable[[str, Any], Awaitable[str]], name: str, description: str, middleware: Iterable[Any]
) -> Any:
    """A tool of AG2 that calls `run` with a command and the context of the agent's run."""

    async def run_shell_command(command: str, ctx: Context) -> str:
        return await run(command, ctx)

    return function_tool(run_shell_command, name, description, middleware)


def code_tool(
    run: Callable[[str, str, Any], Awaitable[str]], name: str, description: str, middleware: Iterable[Any]
) -> Any:
    """A tool of AG2 that calls `run` with code, its language and the context of the agent's run."""

    async def run_code(code: str, language: CodeLanguage, ctx: Context) -> str:
        return await run(code, language, ctx)

    return function_tool(run_code, name, description, middleware)
