"""What the adapters share: one `Shieling` for each configuration, opened at its first command, and its outcomes as text.

The adapters' originals run commands as ordinary processes with all variables of the host process. Here the default
environment is the same (``local``), and variables that look like credentials are left out.
"""

from __future__ import annotations

import glob
import math
import os
import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from .._options import is_utf8

if TYPE_CHECKING:
    from shieling import AsyncShieling, Outcome, Question, Shieling

__all__ = [
    "NO_LIMIT_SECONDS",
    "RULES",
    "Execution",
    "HostVariables",
    "Printed",
    "approval_options",
    "exit_status",
    "given_variables",
    "has_rules",
    "held_back",
    "held_back_write",
    "host_variables",
    "is_judged_as_written",
    "kept_bytes",
    "named_path",
    "paths_in",
    "printed",
    "reached_paths",
    "read_once",
    "seconds_of",
    "through_env",
    "time_limit",
]

HostVariables = Literal["filtered", "all", "none"]
"""Which variables of the host process commands get: those that do not look like credentials, all, or none."""

NO_LIMIT_SECONDS = 30 * 24 * 3600.0
"""What stands for "no time limit": a bound all the same, so that nothing is left for ever."""

# What the policy puts for the home directory, as its answers show it.
_HOME = re.compile(r"\A/(?:\x01|\\u\{1\})home(?=/|\Z)")
_PATH_LIKE = re.compile(r"""(?<![\w./*?\]])(?:/|~|\.\.(?![\w.]))[^\s"'`;|&(){}<>$=,]*""")
_MOST_MATCHES = 10_000
# Options that say what may run.
RULES = ("policy", "allow", "deny", "ignore", "readonly", "require_shell_approval", "require_write_approval")
_CREDENTIAL_NAME = re.compile(
    r"(?i)(?:^|[\W_])(?:api_?keys?|access_?keys?|secret_?keys?|private_?keys?|keys?|tokens?|secrets?|pass|passwd|passwords?|"
    r"passphrases?|pat|pwd_?hash|credentials?|creds|auth|bearer|cookies?|sessionid|dsn|connection_?strings?|webhooks?)(?:[\W_]|\d|$)"
    r"|apikey|passw(?:or)?d|secret|credential|(?:access|auth|refresh|id|bot)token"
)
# Sockets and files of the user's session: names for things, no credentials themselves.
_NO_CREDENTIAL = frozenset({"SSH_AUTH_SOCK", "XAUTHORITY", "KEYBOARD", "XKB_DEFAULT_LAYOUT"})
_CREDENTIAL_VALUE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/\s:@]*:[^/\s@]+@")


def host_variables(which: HostVariables) -> dict[str, str]:
    """The variables of this process that commands get.

    ``filtered`` leaves out names such as ``OPENAI_API_KEY`` and ``GITHUB_TOKEN``, and values that are addresses with a
    password in them. Functions that a shell has exported stay behind: each would run in the place of the program of its
    name, which is what was judged.
    """
    if which == "none":
        return {}
    found: dict[str, str] = {}
    for name, value in os.environ.items():
        if name.startswith("BASH_FUNC_") or not is_utf8(name + value):
            continue
        if (
            which == "filtered"
            and name not in _NO_CREDENTIAL
            and (_CREDENTIAL_NAME.search(name) or _CREDENTIAL_VALUE.search(value))
        ):
            continue
        found[name] = value
    return found


def given_variables(variables: Mapping[str, str] | None) -> dict[str, str]:
    """Variables as `subprocess` takes them.

    Raises:
        TypeError: A name or value is no string.
        ValueError: A name holds ``=``, or a name or value a NUL.
    """
    given = {os.fsdecode(name): os.fsdecode(value) for name, value in (variables or {}).items()}
    for name, value in given.items():
        if "=" in name:
            raise ValueError("illegal environment variable name")
        if "\0" in name or "\0" in value:
            raise ValueError("embedded null byte")
    return given


def through_env(argv: Sequence[str], variables: Mapping[str, str], *options: str) -> list[str]:
    """The words by which ``env`` starts a program, with these variables besides those that are there.

    Args:
        argv: The program and its arguments.
        variables: Names and values, as they are.
        options: Options of ``env``, such as ``-i`` for no other variables.
    """
    # What `env` would take for a variable or an option as well is run by another program, which takes it for neither.
    runner = ["/usr/bin/nice", "-n", "0", "--"] if "=" in argv[0] or argv[0] == "-" else []
    assigned = [f"{name}={value}" for name, value in variables.items()]
    return ["/usr/bin/env", *options, "--", *assigned, *runner, *argv]


def seconds_of(timeout: Any) -> float:
    """A number of seconds: a number as it is, and for anything else what `float` makes of it.

    Raises:
        ValueError: It is no number.
    """
    try:
        seconds = float(timeout)
    except (TypeError, ValueError, OverflowError):
        seconds = math.nan
    if math.isnan(seconds):
        raise ValueError(f"`timeout` is {timeout!r}, and has to be a number of seconds")
    if isinstance(timeout, (int, float)) and not isinstance(timeout, bool):
        return timeout
    return int(seconds) if seconds.is_integer() else seconds


def time_limit(timeout: float | None) -> float:
    """The time of a command for the package, where ``None`` and infinity mean no limit."""
    return NO_LIMIT_SECONDS if timeout is None or timeout == math.inf else timeout


def approval_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options about approval for an adapter whose original asks nobody.

    Where there are rules, what they cannot decide is refused. Without any, a text that cannot be read runs.

    Args:
        options: The other options of `Shieling`; what they say about approval goes first.
    """
    if options.get("approver") is not None:
        return {"approval": options.get("approval") or "policy"}
    if options.get("approval") is not None or any(options.get(name) for name in RULES):
        return {"acknowledge_unsafe": True, "approval": options.get("approval") or "never"}
    return {"approval": "policy", "approver": let_unreadable_run}


def read_once(options: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return a copy of the options of a `Shieling`, in which what can be read only once is a list."""
    copy = dict(options or {})
    env = copy.get("env")
    if env is not None and not isinstance(env, (Mapping, str)):
        copy["env"] = list(env)
    return copy


def has_rules(options: Mapping[str, Any]) -> bool:
    """Whether anything decides on what is asked for: a list, a policy, or somebody."""
    return is_judged_as_written(options) or any(options.get(name) for name in RULES)


def is_judged_as_written(options: Mapping[str, Any]) -> bool:
    """Whether a command has to be given as it was asked for, without anything that an adapter puts before it.

    An allow list would have to name that as well, and an approver would be shown it.
    """
    return any(options.get(name) for name in ("allow", "policy", "approver", "approval"))


def let_unreadable_run(question: Question) -> bool | None:
    """Says yes to a command about which there is no other question than that it cannot be read as bash.

    Where there are no rules, it gets past none of them. What PowerShell is given is no bash, and the error in
    ``sh -c 'echo ('`` is the shell's to tell.
    """
    reasons = question.verdict.reasons
    unreadable = question.kind == "command" and all(reason.rule == "unreadable" for reason in reasons)
    return True if unreadable and reasons else None


class Execution:
    """Opens a `Shieling` when it is first needed, and another one in a process that was forked.

    Args:
        environment: Where commands run: ``local``, ``sandbox`` or ``memory``.
        options: Options of `Shieling` that the adapter sets.
        further: Options of `Shieling` that the adapter's caller has given; they win.
    """

    def __init__(self, environment: str, options: Mapping[str, Any], further: Mapping[str, Any] | None) -> None:
        merged: dict[str, Any] = read_once({**options, **(further or {})})
        merged["environment"] = environment
        free = environment == "sandbox" and not has_rules(merged)
        if merged.get("approver") is not None or environment == "local" or free:
            merged = {**merged, **approval_options(merged)}
        self.environment = environment
        self.options = merged
        self._lock = threading.Lock()
        self._opened: dict[str, tuple[int, Any]] = {}

    def __deepcopy__(self, memo: dict[int, Any]) -> Execution:
        # Frameworks copy the tools that they are given; a copy works in the same place.
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopened, (self.environment, self.options)

    def _open(self, kind: str) -> Any:
        with self._lock:
            pid, opened = self._opened.get(kind, (0, None))
            if opened is None or pid != os.getpid() or opened.closed:
                import shieling

                opened = getattr(shieling, kind)(**self.options)
                self._opened[kind] = (os.getpid(), opened)
            return opened

    def blocking(self) -> Shieling:
        """The object for blocking calls."""
        opened: Shieling = self._open("Shieling")
        return opened

    def asynchronous(self) -> AsyncShieling:
        """The object for `asyncio`."""
        opened: AsyncShieling = self._open("AsyncShieling")
        return opened

    async def aclose(self) -> None:
        """Close both objects, and end what still runs in them."""
        with self._lock:
            opened = list(self._opened.items())
            self._opened.clear()
        for kind, (pid, one) in opened:
            if pid != os.getpid():
                continue
            if kind == "AsyncShieling":
                await one.close()
            else:
                one.close()

    def close(self) -> None:
        """Close the object for blocking calls, and end what still runs in it."""
        with self._lock:
            pid, opened = self._opened.pop("Shieling", (0, None))
        if opened is not None and pid == os.getpid():
            opened.close()


def _reopened(environment: str, options: dict[str, Any]) -> Execution:
    return Execution(environment, options, None)


@dataclass
class Printed:
    """What a command has printed, in the form that the originals give.

    Attributes:
        text: The first characters of it, within the limit.
        total: How many characters it has; bytes where so much was printed that the middle is not kept.
        cut: Whether some is left out of `text`.
    """

    text: str
    total: int
    cut: bool


def kept_bytes(characters: int) -> int:
    """How many bytes of a stream have to be kept, so that the first `characters` of it are among them.

    A character has at most 4 bytes, and half of what is kept is the stream's head.
    """
    return 8 * max(characters, 1) + 8192


def printed(
    streams: Sequence[tuple[str, int]], limit: int, *, truncated: bool, strip: bool = False, newlines: bool = False
) -> Printed:
    """The first `limit` characters of what was printed.

    Args:
        streams: Text and number of bytes of each stream, in the order in which they are joined.
        limit: How many characters are kept.
        truncated: Whether the middle of a stream is not kept.
        strip: Whether white space at both ends is left out.
        newlines: Whether CR LF and CR become LF.
    """
    text = "".join(one for one, _ in streams)
    if newlines:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    stripped = 0
    if strip:
        whole = len(text)
        text = text.strip()
        stripped = whole - len(text)
    total = sum(size for _, size in streams) - stripped if truncated else len(text)
    return Printed(text[:limit], total, total > limit)


def named_path(text: str) -> str:
    """A path as the policy's answers show it, with the home directory in it put in."""
    return _HOME.sub(lambda _: os.path.expanduser("~"), text)


def reached_paths(text: str, base: str) -> list[str] | None:
    """The paths that a word of a command reaches, with links followed; ``None`` if the text does not tell.

    Args:
        text: The word, as the policy's answers show it. A glob is looked up.
        base: The absolute directory in which the command runs.
    """
    text = named_path(text)
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        text = text[1:-1]
    if any(char in text for char in "$`\n\0\u2026") or "(" in text:
        return None
    path = os.path.join(base, os.path.expanduser(text))
    try:
        found = [os.path.realpath(path)]
        if any(char in text for char in "*?["):
            found = [os.path.realpath(os.path.dirname(path.partition("*")[0].partition("?")[0].partition("[")[0]))]
            for number, match in enumerate(glob.iglob(path)):
                if number >= _MOST_MATCHES:
                    return None
                found.append(os.path.realpath(match))
    except (OSError, RuntimeError, ValueError):
        return None
    return found


def paths_in(text: str) -> list[str]:
    """What in a text looks like a path out of a directory: absolute, of a home, or with ``..``."""
    return _PATH_LIKE.findall(text)


def held_back(outcome: Any) -> str:
    """What a sandbox has taken back of a command's changes, in lines for the model; nothing if it has kept everything.

    Args:
        outcome: The command's `Outcome`. Some adapters import that class by another name, which type checkers tell apart.
    """
    found: tuple[Any, ...] = outcome.changes.held_back if outcome.changes is not None else ()
    return "".join(f"[held back: {'; '.join(filter(None, (one.because, one.instead)))}]\n" for one in found)


def held_back_write(note: str | None) -> str | None:
    """Why a sandbox has taken back a file that was written, from the note of `Written`; ``None`` if it was kept."""
    return note if note is not None and note.startswith("held back: ") else None


def exit_status(outcome: Outcome) -> int:
    """The exit code as `subprocess` gives it: minus the signal's number where a signal ended the command."""
    if outcome.status == "signalled" and outcome.signal is not None:
        return -outcome.signal
    if outcome.exit_code is not None:
        return outcome.exit_code
    return 124 if outcome.status == "timed_out" else 1
