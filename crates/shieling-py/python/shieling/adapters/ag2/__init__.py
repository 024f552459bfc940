"""AG2's shell tools over Shieling, under AG2's names.

For AG2 0.12 (``autogen.beta``): `LocalShellEnvironment` and `LocalShellTool`. For AG2 1.x (``ag2``): `LocalEnvironment`,
`LocalSandbox`, `ShellAdapter`, `SandboxShellTool`, `CodeAdapter` and `SandboxCodeTool`. AG2 itself is needed only to give a
tool to an agent.

>>> from shieling.adapters.ag2 import LocalShellEnvironment
>>> env = LocalShellEnvironment(blocked=["rm"])
>>> env.run("echo hello")
'hello'
>>> env.run("env rm -rf x").partition("\\n")[0]
"Command not allowed: 'env rm -rf x'"
"""

from ._code import DEFAULT_RUNNERS, CodeAdapter, LanguageRunner, SandboxCodeTool
from ._filter import (
    READONLY_COMMANDS,
    SANDBOX_READONLY_COMMANDS,
    SHELL_READONLY_COMMANDS,
    check_ignore,
    contains_shell_operator,
    matches,
    matches_argv,
    split_command,
)
from ._framework import (
    CallableFactory,
    CodeEnvironment,
    CodeLanguage,
    CodeRunResult,
    ExecResult,
    Sandbox,
    SandboxBase,
    SandboxFactory,
    SingletonFactory,
    WorkdirAware,
)
from ._sandbox import LocalEnvironment, LocalSandbox, SandboxShellTool, ShellAdapter
from ._shell import LocalShellEnvironment, LocalShellTool, ShellEnvironment

__all__ = [
    "DEFAULT_RUNNERS",
    "READONLY_COMMANDS",
    "SANDBOX_READONLY_COMMANDS",
    "SHELL_READONLY_COMMANDS",
    "CallableFactory",
    "CodeAdapter",
    "CodeEnvironment",
    "CodeLanguage",
    "CodeRunResult",
    "ExecResult",
    "LanguageRunner",
    "LocalEnvironment",
    "LocalSandbox",
    "LocalShellEnvironment",
    "LocalShellTool",
    "Sandbox",
    "SandboxBase",
    "SandboxCodeTool",
    "SandboxFactory",
    "SandboxShellTool",
    "ShellAdapter",
    "ShellEnvironment",
    "SingletonFactory",
    "WorkdirAware",
    "check_ignore",
    "contains_shell_operator",
    "matches",
    "matches_argv",
    "split_command",
]
