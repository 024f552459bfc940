"""Code in a sandbox of AG2 1.x: which command runs which language, and the tool for an agent."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from ._framework import (
    CodeEnvironment,
    CodeLanguage,
    CodeRunResult,
    Sandbox,
    SandboxFactory,
    ShellToolBase,
    SingletonFactory,
    code_tool,
)

__all__ = ["DEFAULT_RUNNERS", "CodeAdapter", "LanguageRunner", "SandboxCodeTool"]


@dataclass(slots=True, frozen=True)
class LanguageRunner:
    """How a language is run: as the last word of a command, or in a file that is the last word.

    Attributes:
        inline_argv: The words before the code. Not together with the others.
        file_extension: The suffix of the file, without a dot.
        file_runner_argv: The words before the file's path.

    Raises:
        ValueError: Both ways are given, or neither, or half of the second.
    """

    inline_argv: tuple[str, ...] | None = None
    file_extension: str | None = None
    file_runner_argv: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        of_file = (self.file_extension is not None, self.file_runner_argv is not None)
        if (self.inline_argv is not None) is any(of_file):
            raise ValueError(
                "LanguageRunner must be either inline (inline_argv) or file-based "
                "(file_extension + file_runner_argv), not both or neither."
            )
        if any(of_file) and not all(of_file):
            raise ValueError("File-mode LanguageRunner requires both file_extension and file_runner_argv.")


DEFAULT_RUNNERS: dict[Any, LanguageRunner] = {
    "python": LanguageRunner(inline_argv=("python", "-c")),
    "bash": LanguageRunner(inline_argv=("bash", "-c")),
    "javascript": LanguageRunner(file_extension="js", file_runner_argv=("node",)),
    "typescript": LanguageRunner(file_extension="ts", file_runner_argv=("ts-node",)),
}
"""The runners of the languages that AG2 knows."""


class CodeAdapter:
    """Runs code on any sandbox.

    Args:
        sandbox: The sandbox, or what makes one for each run.
        languages: The languages that are accepted.
        runners: Runners laid over `DEFAULT_RUNNERS`.
        timeout: Seconds for each run. Default: those of the sandbox.

    Raises:
        ValueError: There is no runner for one of the languages.
    """

    def __init__(
        self,
        sandbox: Sandbox | SandboxFactory,
        *,
        languages: tuple[CodeLanguage, ...] = ("python", "bash"),
        runners: Mapping[Any, LanguageRunner] | None = None,
        timeout: float | None = None,
    ) -> None:
        self._runners = {**DEFAULT_RUNNERS, **(runners or {})}
        for language in languages:
            if language not in self._runners:
                raise ValueError(f"No LanguageRunner registered for language {language!r}.")
        self._factory: Any = sandbox if isinstance(sandbox, SandboxFactory) else SingletonFactory(sandbox)
        self._languages: tuple[CodeLanguage, ...] = tuple(languages)
        self._timeout = timeout

    @property
    def supported_languages(self) -> tuple[CodeLanguage, ...]:
        """The languages that are accepted."""
        return self._languages

    async def run(self, code: str, language: CodeLanguage, *, context: Any = None) -> CodeRunResult:
        """Run code, and return its output and exit code; 2 for a language that is not accepted."""
        if language not in self._languages:
            return CodeRunResult(
                output=f"Language {language!r} is not enabled. Available: {list(self._languages)}", exit_code=2
            )
        runner = self._runners[language]
        async with self._factory.open(context) as sandbox:
            if runner.inline_argv is not None:
                result = await sandbox.exec([*runner.inline_argv, code], timeout=self._timeout)
            else:
                path = PurePosixPath(f"ag2_{uuid.uuid4().hex}.{runner.file_extension}")
                await sandbox.put_file(path, code.encode())
                try:
                    words = [*(runner.file_runner_argv or ()), str(sandbox.workdir / path)]
                    result = await sandbox.exec(words, timeout=self._timeout)
                finally:
                    # A file that stays is no failure of the code.
                    with contextlib.suppress(Exception):
                        await sandbox.remove_file(path)
        return CodeRunResult(output=result.output, exit_code=result.exit_code)


class SandboxCodeTool(ShellToolBase):
    """Gives an agent of AG2 1.x one tool that runs code.

    Args:
        environment: Where code runs; or a `CodeAdapter`, or another thing with its methods.
        languages: See `CodeAdapter`; not for a thing that has its own.
        runners: See `CodeAdapter`; not for a thing that has its own.
        name: The tool's name.
        description: The tool's description; ``{languages}`` stands for the languages.
        middleware: AG2's middleware for the tool.
    """

    def __init__(
        self,
        environment: SandboxFactory | CodeEnvironment,
        *,
        languages: tuple[CodeLanguage, ...] = ("python", "bash"),
        runners: Mapping[Any, LanguageRunner] | None = None,
        name: str = "run_code",
        description: str = "Execute code in a sandboxed environment. Supported languages: {languages}.",
        middleware: Iterable[Any] = (),
    ) -> None:
        if isinstance(environment, SandboxFactory):
            self._env: CodeEnvironment = CodeAdapter(environment, languages=languages, runners=runners)
        elif runners is not None:
            raise ValueError(
                "`runners` only applies when `environment` is a backend (SandboxFactory); configure runners on your "
                "CodeAdapter / CodeEnvironment instead."
            )
        else:
            self._env = environment
        env = self._env

        async def run(code: str, language: Any, context: Any) -> str:
            result = await env.run(code, language, context=context)
            if result.exit_code == 0:
                return str(result.output)
            code_line = f"[exit code: {result.exit_code}]"
            return f"{result.output}\n{code_line}" if result.output else code_line

        described = description.format(languages=", ".join(env.supported_languages))
        self._tool = code_tool(run, name, described, middleware)
        self.name = name

    @property
    def environment(self) -> CodeEnvironment:
        """What runs the code."""
        return self._env
