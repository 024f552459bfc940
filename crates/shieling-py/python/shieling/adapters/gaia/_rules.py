"""Which commands GAIA's shell tool may run: its list, and what Shieling knows of the commands in it.

The list names programs that read. Whether a call of one of them reads, Shieling's policy `readonly` tells: it knows the
options of these programs, and which of them write, delete, or run another program.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from .._quoting import unescaped

Refusal = dict[str, Any]

ALLOWED_COMMANDS = set(
    [
        "ls",
        "dir",
        "pwd",
        "cd",
        "cat",
        "head",
        "tail",
        "more",
        "less",
        "grep",
        "find",
        "wc",
        "sort",
        "uniq",
        "diff",
        "findstr",
        "file",
        "stat",
        "du",
        "df",
        "whoami",
        "hostname",
        "uname",
        "date",
        "uptime",
        "lscpu",
        "lspci",
        "lsblk",
        "lsusb",
        "free",
        "nproc",
        "arch",
        "sysctl",
        "sw_vers",
        "system_profiler",
        "systeminfo",
        "wmic",
        "powershell",
        "powershell.exe",
        "tasklist",
        "ipconfig",
        "driverquery",
        "ver",
        "which",
        "whereis",
        "basename",
        "dirname",
        "echo",
        "printf",
        "ps",
        "top",
        "jobs",
        "git",
    ]
)
"""The programs that may run."""

DEVELOPER_COMMANDS = frozenset(
    "python python3 pytest node npm make cmake go cargo gh git sed awk curl sleep timeout export cp mv".split()
)
"""What GAIA runs besides under full access, which this adapter does not have: here it is refused, but for what ``git``
reads and what a skill of the agent grants."""

SAFE_GIT_COMMANDS = set(
    ["status", "log", "show", "diff", "branch", "remote", "ls-files", "ls-tree", "describe", "rev-parse", "help"]
)
"""The subcommands of git that may run, as far as they change nothing."""

DANGEROUS_FIND_ACTIONS = set(
    ["-exec", "-execdir", "-ok", "-okdir", "-delete", "-fprint", "-fprint0", "-fprintf", "-fls"]
)
"""What ``find`` can do besides finding."""

SAFE_PS_CMDLET_PREFIXES = tuple(
    [
        "get-",
        "select-object",
        "format-list",
        "format-table",
        "format-wide",
        "where-object",
        "sort-object",
        "measure-object",
        "group-object",
        "convertto-",
        "convertfrom-",
        "out-string",
        "out-null",
        "write-output",
        "test-path",
        "join-path",
        "split-path",
        "resolve-path",
    ]
)
"""How the cmdlets of PowerShell begin that may run."""

DANGEROUS_PS_PATTERNS = (
    *[
        "set-",
        "remove-",
        "new-",
        "stop-",
        "start-",
        "restart-",
        "invoke-",
        "clear-",
        "disable-",
        "enable-",
        "uninstall-",
        "install-",
        "register-",
        "unregister-",
        "add-",
        "move-",
        "copy-",
        "rename-",
        "update-",
        "send-",
        "import-",
        "export-",
        "iex",
        "invoke-expression",
        "invoke-command",
        "invoke-webrequest",
        "start-process",
    ],
    *("net ", "cmd ", "& {", "& '", '& "'),
)
"""What a text for PowerShell may not hold."""

DANGEROUS_SHELL_OPERATORS = re.compile(r"&&|&(?=\s|$)|>>|>(?:[^&>]|$)|<(?:[^<]|$)|\|\||;|`|\$\(")
"""Chains, redirections and substitutions; a pipe is none of them. The tool looks for them outside quotes only."""

_OPERATORS = "Shell operators (&, >, >>, <, &&, ||, ;, `, $()) are not allowed for security reasons."
_PS_FLAGS = frozenset(
    [
        "-encodedcommand",
        "-enc",
        "-file",
        "-f",
        "-executionpolicy",
        "-ex",
        "-ep",
        "-noprofile",
        "-nop",
        "-windowstyle",
        "-w",
        "-noninteractive",
        "-noni",
    ]
)
# PowerShell takes any beginning of their names.
_PS_PARAMETERS = ("encodedcommand", "encodedarguments", "file", "executionpolicy")
_PS_ALIASES = frozenset(["-ec", "-ea"])
_PS_SWITCHES = frozenset(["nologo", "sta", "mta"])
_PS_COMMAND = r"(?:^|\|)\s*"
# How a text for PowerShell runs what is no cmdlet of the list.
_PS_ESCAPES = (
    (re.compile(r"::"), "static .NET member access ([Type]::Member)"),
    (re.compile(r"\.\s*[a-z_]\w*\s*\("), "method invocation (.Method(...))"),
    (re.compile(_PS_COMMAND + r"\.\s"), "dot-sourcing (. script.ps1)"),
    (re.compile(_PS_COMMAND + r"(?:[.\\/]|[a-z]:)"), "running a file by path instead of a cmdlet"),
    (
        re.compile(_PS_COMMAND + r"\S*\.(?:ps1|psm1|exe|bat|cmd|vbs|js)\b"),
        "running a script or executable instead of a cmdlet",
    ),
    (re.compile(r"&"), "the call operator (& command)"),
    (re.compile(r"\$"), "variables and subexpressions ($var, $(...))"),
    (re.compile(r"[<>]"), "redirection (>, >>, <)"),
    (re.compile(r"[;\r\n]"), "statement separators (; or newline)"),
)
_PS_EXAMPLE = 'powershell -Command "Get-WmiObject Win32_Processor | Select-Object Name"'
_UNIQ_VALUES = frozenset(["-f", "--skip-fields", "-s", "--skip-chars", "-w", "--check-chars"])
_GIT_VALUES = frozenset(("-C", "--git-dir", "--work-tree", "--namespace"))
_GIT_DIRECTORIES = frozenset(("-C", "--git-dir", "--work-tree"))
_GIT_PLAIN = frozenset(
    [
        "-P",
        "--no-pager",
        "--bare",
        "--no-replace-objects",
        "--literal-pathspecs",
        "--glob-pathspecs",
        "--noglob-pathspecs",
        "--icase-pathspecs",
        "--no-optional-locks",
    ]
)
_GIT_ALONE = frozenset(["--version", "--help", "-h", "--html-path", "--man-path", "--info-path"])
_GIT_FORBIDDEN = {
    "-c": "it sets arbitrary git config for the run (e.g. core.pager, alias.*), which can execute a command",
    "--config-env": "it sets arbitrary git config from the environment, which can execute a command",
    "--exec-path": "it changes where git looks for its subcommands, which can execute an arbitrary binary",
}
_RUNS_CODE = "which is arbitrary command execution"
# git takes any beginning of a long option that no other one has.
_GIT_READ_FORBIDDEN = {
    "--ext-diff": f"it runs the program named by the repository's own diff.external setting, {_RUNS_CODE}",
    "--textconv": f"it runs the program named by the repository's own textconv filter, {_RUNS_CODE}",
    "--filters": f"it runs the repository's configured filter, {_RUNS_CODE}",
    "--open-files-in-pager": f"it launches the program you name as a pager, {_RUNS_CODE}",
    "--no-index": "it compares two paths anywhere on the filesystem rather than anything in this repository",
    "--upload-pack": f"it names the program that git runs on the other end of a transfer, {_RUNS_CODE}",
    "--receive-pack": f"it names the program that git runs on the other end of a transfer, {_RUNS_CODE}",
    "--exec": f"it names the program that git runs on the other end of a transfer, {_RUNS_CODE}",
}
_GIT_HELP_FORBIDDEN = {
    "--web": "it opens a browser instead of returning the text, so the answer never reaches you",
}
# They begin as a forbidden one does, and are options of their own.
_GIT_NAMESAKES = frozenset(["--text", "--filter"])
_WRITING_NAMES = ("output", "append")
_REWRITE = frozenset(["sed", "awk", "perl", "tee", "patch", "dd", "truncate", "ex", "ed"])
_ALWAYS_REWRITE = frozenset(["tee", "patch", "dd", "truncate", "ed"])
_REDIRECTED_ERRORS = re.compile(r"(?<![^ \t|])2>(?:&1|/dev/null)(?![^ \t|])")
_SYSTEM = re.compile(r"(?:/usr)?(?:/local)?/s?bin/([^/]+)\Z")


def refusal(error: str, **more: Any) -> Refusal:
    """A result that says that nothing was started, and why."""
    return {"status": "error", "error": error, "has_errors": True, **more, "executed": False}


def program(word: str) -> str:
    """The program's name as the list has it: in lower case, and without the directory of the system's programs."""
    found = _SYSTEM.match(word)
    return (found.group(1) if found else word).lower()


def is_lone_granted(segments: Sequence[Sequence[str]], granted: Collection[str]) -> bool:
    """Tell whether the commands of a pipeline are one of a program that a skill of the agent grants."""
    return len(segments) == 1 and program("".join(segments[0][:1])) in granted


def without_redirected_errors(command: str) -> str:
    """The text without each ``2>&1`` and ``2>/dev/null`` that stands on its own outside quotes: they write nothing.

    >>> without_redirected_errors("ls x 2>&1 | cat 2>/dev/null '2>&1' a2>&1")
    "ls x  | cat  '2>&1' a2>&1"
    """
    bare = {position for position, _, quote in unescaped(command) if not quote}

    def kept(found: re.Match[str]) -> str:
        return "" if bare.issuperset(range(max(found.start() - 1, 0), found.end())) else found.group()

    return _REDIRECTED_ERRORS.sub(kept, command)


def has_operator(command: str) -> bool:
    """Tell whether there is a chain, a redirection, a substitution or a line end outside quotes."""
    bare: list[str] = []
    for position, char, quote in unescaped(command):
        if quote == '"' and (char == "`" or command.startswith("$(", position)):
            return True
        if not quote:
            bare.append(char)
    text = "".join(bare).strip()
    return any(char in text for char in "&<>;`\n\r") or "$(" in text or "||" in text


def operator_refusal() -> Refusal:
    """The refusal of a text with an operator."""
    return refusal(_OPERATORS, hint="Pipe (|) is allowed. Use individual commands for other operations.")


def split_pipes(command: str) -> list[str]:
    """The commands of a pipeline, cut at each bar outside quotes."""
    found: list[str] = []
    start = 0
    for position, char, quote in unescaped(command):
        if char == "|" and not quote:
            found.append(command[start:position])
            start = position + 1
    return [*found, command[start:]]


def without_comments(command: str) -> str:
    """The text with each ``#`` that would begin a comment as one that does not: it is a character like any other.

    >>> without_comments("grep #include f.c | cat '#x' a#b")
    "grep \\\\#include f.c | cat '#x' a#b"
    """
    found: list[str] = []
    start, last = 0, -1
    for position, char, quote in unescaped(command):
        begins = position == 0 or (position - 1 == last and command[last] in " \t|")
        if char == "#" and not quote and begins:
            found.append(command[start:position] + "\\")
            start = position
        last = position if not quote else last
    return "".join([*found, command[start:]])


def _git_words(words: Sequence[str]) -> tuple[list[str], str | None]:
    """The words from git's subcommand on, or why they cannot be found."""
    index = 1
    while index < len(words) and words[index].startswith("-"):
        name, given, _ = words[index].partition("=")
        if name in _GIT_ALONE:
            return [], None
        if name in _GIT_FORBIDDEN or name[:2] == "-c":
            name = name if name in _GIT_FORBIDDEN else "-c"
            return [], f"Git global option '{name}' is not allowed: {_GIT_FORBIDDEN[name]}."
        if name in _GIT_VALUES:
            index += 1 if given else 2
        elif name in _GIT_PLAIN:
            index += 1
        elif name[:2] == "-C":
            return [], (
                f"Git global option '-C' needs its value as a separate word: write '-C {name[2:]}', not '{name}'."
            )
        else:
            return [], (
                f"Git global option '{name}' is not recognized, so the subcommand behind it cannot be identified."
            )
    return list(words[index:]), None


def git_directories(words: Sequence[str]) -> list[tuple[str, str]]:
    """The directories that git's global options name, with their options, in order."""
    found: list[tuple[str, str]] = []
    index = 1
    while index < len(words) and words[index].startswith("-"):
        name, given, value = words[index].partition("=")
        if name in _GIT_VALUES and not given:
            index += 1
            value = words[index] if index < len(words) else ""
        if name in _GIT_DIRECTORIES:
            found.append((name, value))
        index += 1
    return found


def validate_command(cmd_base: str, cmd_parts: Sequence[str], command: str) -> Refusal | None:
    """Return why GAIA's list refuses a command, or ``None``."""
    base = program(cmd_base)
    if base == "git":
        return _git_refusal(cmd_parts)
    if base == "wmic":
        found = next((word for word in cmd_parts[1:] if _names_a_file_to_write(word)), None)
        if found is not None:
            return refusal(f"wmic '{found}' writes to a file, which GAIA's read-only checks do not cover.")
        if {"call", "create", "delete", "set"} & set(command.lower().split()):
            return refusal(
                "Only read-only wmic queries are allowed (get, list). Modifying operations (call, create, delete, set) "
                "are blocked.",
                hint="Use 'wmic <alias> get <properties>' for safe queries",
                examples="wmic cpu get name, wmic os get caption, wmic path win32_videocontroller get name",
            )
        return None
    if base in ("powershell", "powershell.exe"):
        return _powershell_refusal(cmd_parts)
    if base == "find":
        for word in cmd_parts[1:]:
            if word.lower() in DANGEROUS_FIND_ACTIONS:
                return refusal(
                    f"find action '{word}' is not allowed: it can run arbitrary commands, delete, or write files, "
                    "bypassing the read-only command whitelist.",
                    hint="Use read-only find predicates only: -name, -type, -path, -print, -ls.",
                )
        return None
    if base == "sort":
        if any(_sort_writes(word) for word in cmd_parts[1:]):
            return refusal(
                "sort -o/--output (or /o) writes to a file, which is not allowed under the read-only command policy.",
                hint="Drop -o/--output and read sort's result from stdout (e.g. 'sort file' or 'sort file | head').",
            )
        return None
    if base == "uniq":
        if _uniq_operands(cmd_parts) >= 2:
            return refusal(
                "uniq with an output file is not allowed: it writes to disk, violating the read-only command policy.",
                hint="Use a single input (or stdin) and read stdout, e.g. 'uniq file' or 'sort file | uniq'.",
            )
        return None
    if base in ALLOWED_COMMANDS:
        return None
    if base in _REWRITE and (base in _ALWAYS_REWRITE or any(_in_place(word) for word in cmd_parts[1:])):
        return refusal(
            f"'{base}' rewrites files and is not available. Use the edit tools instead — they are not blocked.",
            hint="Call edit_file with the exact existing text as old_content, or edit_python_file for .py to have the "
            "edit syntax-checked. Use write_file to create a file that does not exist yet.",
            examples="edit_file(file_path=..., old_content=..., new_content=...)",
        )
    return refusal(
        f"Command '{cmd_base}' is not in the allowed list for security reasons",
        hint="Only read-only, informational commands are allowed",
        examples="ls, cat, grep, find, git status, systeminfo, powershell -Command 'Get-WmiObject ...'",
    )


def _git_refusal(words: Sequence[str]) -> Refusal | None:
    rest, problem = _git_words(words)
    if problem is not None:
        return refusal(problem, allowed_git_commands=list(SAFE_GIT_COMMANDS))
    if rest and rest[0].lower() not in SAFE_GIT_COMMANDS:
        return refusal(
            f"Git command '{rest[0].lower()}' is not allowed. Only read-only git operations are permitted.",
            allowed_git_commands=list(SAFE_GIT_COMMANDS),
        )
    for word in rest[1:]:
        found = _git_option_refusal(rest[0].lower(), word)
        if found is not None:
            return found
    return None


def _git_option_refusal(subcommand: str, word: str) -> Refusal | None:
    if _names_a_file_to_write(word) and (subcommand, word) != ("ls-files", "-o"):
        return refusal(f"git '{word}' writes to a file, which GAIA's read-only checks do not cover.")
    name = "--web" if subcommand == "help" and re.match(r"-[a-z]*w", word) else word.partition("=")[0]
    forbidden = {**_GIT_READ_FORBIDDEN, **(_GIT_HELP_FORBIDDEN if subcommand == "help" else {})}
    for option, because in forbidden.items():
        if len(name) > 4 and option.startswith(name) and name not in _GIT_NAMESAKES:
            return refusal(f"'git {subcommand} {option}' is not allowed: {because}.")
    return None


def _names_a_file_to_write(word: str) -> bool:
    """Tell whether a word is an option such as ``--output``, in any of its spellings."""
    name = re.split("[=:]", word.lower(), maxsplit=1)[0]
    if name.startswith(("--", "/")):
        name = name.lstrip("-/")
        return bool(name) and any(one.startswith(name) for one in _WRITING_NAMES)
    return name[:2] == "-o"


def _sort_writes(word: str) -> bool:
    name = word.lower().partition("=")[0]
    if len(name) > 1 and "/output".startswith(name):
        return True
    if name.startswith("--"):
        return len(name) > 2 and "--output".startswith(name)
    letters = re.match(r"-([a-z]+)", name)
    return letters is not None and "o" in letters.group(1)


def _uniq_operands(words: Sequence[str]) -> int:
    count, skip = 0, False
    for word in words[1:]:
        if skip:
            skip = False
        elif word in _UNIQ_VALUES:
            skip = True
        elif word == "-" or not word.startswith("-"):
            count += 1
    return count


def _in_place(word: str) -> bool:
    return word == "--in-place" or word.startswith(("--in-place=", "-i"))


def _powershell_refusal(words: Sequence[str]) -> Refusal | None:
    lower = [word.lower() for word in words]
    if any(_is_powershell_flag(word) for word in lower[1:]):
        return refusal(
            "PowerShell execution flags like -EncodedCommand, -File, and -ExecutionPolicy are not allowed.",
            hint="Use -Command to pass a readable cmdlet string",
            examples=_PS_EXAMPLE,
        )
    start = 1
    while start < len(lower) and lower[start].startswith(("-", "/")):
        name = lower[start][1:]
        start += 1
        if name and "command".startswith(name):
            break
        if name not in _PS_SWITCHES:
            return refusal(f"PowerShell switch '{words[start - 1]}' is outside GAIA's read-only checks.")
    text = " ".join(lower[start:])
    if not text:
        return refusal("PowerShell requires an explicit read-only command.", examples=_PS_EXAMPLE)
    escape = next((words for pattern, words in _PS_ESCAPES if pattern.search(text)), None)
    if escape is not None:
        return refusal(f"PowerShell {escape} runs code the read-only cmdlet allowlist cannot inspect.")
    if any(pattern in text for pattern in DANGEROUS_PS_PATTERNS):
        return refusal(
            "Only read-only PowerShell cmdlets are allowed (Get-*, Select-Object, Format-*, Where-Object, etc.).",
            hint="Use Get-* cmdlets for safe queries",
            examples=f'{_PS_EXAMPLE}, powershell -Command "Get-CimInstance Win32_VideoController | '
            'Format-List Name,DriverVersion"',
        )
    if not all(re.match(r"\s*[a-z]+-[a-z]", piece) for piece in text.split("|")):
        return refusal("Each PowerShell pipeline command must be a read-only cmdlet.", examples=_PS_EXAMPLE)
    for cmdlet in re.findall(r"[a-z]+-[a-z]+", text):
        if not cmdlet.startswith(SAFE_PS_CMDLET_PREFIXES):
            return refusal(
                f"PowerShell cmdlet '{cmdlet}' is not allowed. Only read-only cmdlets are permitted.",
                hint="Allowed: Get-*, Select-Object, Format-List, Format-Table, Where-Object, Sort-Object",
            )
    return None


def _is_powershell_flag(word: str) -> bool:
    if not word.startswith(("-", "/")):
        return False
    name = re.split("[:=]", word[1:], maxsplit=1)[0]
    if not name:
        return False
    return f"-{name}" in _PS_FLAGS | _PS_ALIASES or any(one.startswith(name) for one in _PS_PARAMETERS)


def described(reasons: Sequence[Any]) -> Mapping[str, str]:
    """The error and the hint of a refusal by the policy."""
    first = reasons[0]
    found = {"error": f"'{first.object}' is not allowed: {first.because}"}
    instead = next((reason.instead for reason in reasons if reason.instead), None)
    found["hint"] = instead or "Only read-only, informational commands are allowed"
    return found
