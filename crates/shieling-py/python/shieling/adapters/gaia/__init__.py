"""GAIA's shell tool over Shieling: `ShellToolsMixin`, with the lists and limits of AMD GAIA.

Put it in place of ``gaia.agents.tools.shell_tools.ShellToolsMixin`` among the bases of an agent. Without GAIA the method
`ShellToolsMixin.run_shell_command` does the same.

>>> from shieling.adapters.gaia import ShellToolsMixin
>>> class Agent(ShellToolsMixin):
...     pass
>>> result = Agent().run_shell_command("echo hello | tr a-z A-Z")
>>> result["error"]
"Command 'tr' is not in the allowed list for security reasons"
"""

from ._mixin import MAX_OUTPUT_CHARS, ShellToolsMixin
from ._rules import (
    ALLOWED_COMMANDS,
    DANGEROUS_FIND_ACTIONS,
    DANGEROUS_PS_PATTERNS,
    DANGEROUS_SHELL_OPERATORS,
    DEVELOPER_COMMANDS,
    SAFE_GIT_COMMANDS,
    SAFE_PS_CMDLET_PREFIXES,
    is_lone_granted,
)

# Under GAIA's name.
_is_lone_granted_segment = is_lone_granted

__all__ = [
    "ALLOWED_COMMANDS",
    "DANGEROUS_FIND_ACTIONS",
    "DANGEROUS_PS_PATTERNS",
    "DANGEROUS_SHELL_OPERATORS",
    "DEVELOPER_COMMANDS",
    "MAX_OUTPUT_CHARS",
    "SAFE_GIT_COMMANDS",
    "SAFE_PS_CMDLET_PREFIXES",
    "ShellToolsMixin",
]
