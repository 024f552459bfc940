"""The execution environments proposed for pydantic-ai, and a backend for its workspaces, over Shieling.

Names, parameters and texts are those of ``pydantic_ai.environments`` (pull request 4393) and of
``pydantic_ai.workspaces``. Environments work without pydantic-ai; `ExecutionEnvironmentToolset` and
`ShielingWorkspaceBackend` need it.

>>> import asyncio
>>> from shieling.adapters.pydantic_ai import LocalEnvironment
>>> async def example():
...     async with LocalEnvironment() as env:
...         result = await env.shell("echo hello; exit 3")
...         print(repr(result.output), result.exit_code)
>>> asyncio.run(example())
'hello\\n' 3
"""

from ._base import (
    IMAGE_EXTENSIONS,
    IMAGE_MEDIA_TYPES,
    MAX_OUTPUT_CHARS,
    Capability,
    EnvToolName,
    ExecutionEnvironment,
    ExecutionProcess,
    ExecutionResult,
    FileInfo,
    apply_edit,
    build_glob_cmd,
    build_grep_cmd,
    build_read_file_cmd,
    collect_grep_matches,
    filter_grep_count_output,
    format_lines,
    glob_match,
    parse_glob_output,
    shell_escape,
)
from .docker import DockerEnvironment
from .local import LocalEnvironment, LocalEnvironmentProcess
from .memory import MemoryEnvironment
from ._toolset import ExecutionEnvironmentToolset
from ._workspace import ShielingWorkspaceBackend

__all__ = [
    "IMAGE_EXTENSIONS",
    "IMAGE_MEDIA_TYPES",
    "MAX_OUTPUT_CHARS",
    "Capability",
    "DockerEnvironment",
    "EnvToolName",
    "ExecutionEnvironment",
    "ExecutionEnvironmentToolset",
    "ExecutionProcess",
    "ExecutionResult",
    "FileInfo",
    "LocalEnvironment",
    "LocalEnvironmentProcess",
    "MemoryEnvironment",
    "ShielingWorkspaceBackend",
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
