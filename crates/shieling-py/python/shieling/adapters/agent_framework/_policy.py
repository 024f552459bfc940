"""Allow and deny rules for shell commands, given as regular expressions.

The rules see the command as written and, besides, each command that the text launches: behind
operators, in substitutions, in wrappers such as `env` and in shells that it starts. Text that
cannot be read is not allowed by an allow list. Rules on text remain a filter that explains itself;
they are no boundary against a program that does something else than its name says.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import logging
import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Union

from ... import CommandSeen, Effect, Shieling, ShielingError, Verdict

# The framework's tools bring `regex`. Without it, a child process bounds a match.
regex: Any = None
with contextlib.suppress(ImportError):
    regex = importlib.import_module("regex")

logger = logging.getLogger(__name__)

PatternLike = Union[str, "re.Pattern[str]", Any]
"""A text, a pattern of `re`, or a pattern of `regex`."""

_PATTERN_MATCH_TIMEOUT_SECONDS = 1.0
"""The time of one match. A command comes from a model and can drive a careless pattern into
exponential backtracking, which would stall the caller's thread."""

# File systems of these have names without case, and so has PowerShell for its cmdlets everywhere.
_CASELESS = sys.platform in ("win32", "darwin")
_CMDLET = re.compile(r"[A-Za-z]+-[A-Za-z]+")

# Redirections to these leave nothing behind.
_HARMLESS_TARGETS = re.compile(r"/dev/(null|stdout|stderr|tty|fd/\d+)")

_MATCH_PROGRAM = """
import json, re, sys
pattern, flags, text, full = json.load(sys.stdin)
compiled = re.compile(pattern, flags)
print(int(bool(compiled.fullmatch(text) if full else compiled.search(text))))
"""


class _PatternTimeout(Exception):
    """A match took longer than its bound."""


@dataclass(frozen=True)
class ShellRequest:
    """A command to decide upon, and the directory where it would run."""

    command: str
    workdir: str | None = None


@dataclass(frozen=True)
class ShellDecision:
    """The decision, with its reason."""

    decision: Literal["allow", "deny"]
    reason: str = ""


def _is_regex(pattern: Any) -> bool:
    return regex is not None and isinstance(pattern, regex.Pattern)


def _compile_patterns(patterns: Sequence[PatternLike]) -> tuple[Any, ...]:
    """Compiles texts without regard to case; keeps compiled patterns as they are."""
    compiled: list[Any] = []
    for pattern in patterns:
        if isinstance(pattern, re.Pattern) or _is_regex(pattern):
            compiled.append(pattern)
        elif regex is not None:
            # The version is a global of `regex` that any library may have changed.
            compiled.append(regex.compile(pattern, flags=regex.IGNORECASE | regex.VERSION1))
        else:
            compiled.append(_TextPattern(pattern))
    return tuple(compiled)


class _TextPattern:
    """A pattern of `re` that is matched in a child process, since `re` cannot be interrupted."""

    def __init__(self, pattern: str, flags: int = re.IGNORECASE) -> None:
        self.pattern = pattern
        self._flags = re.compile(pattern, flags).flags

    def match(self, text: str, full: bool) -> bool:
        request = json.dumps([self.pattern, self._flags, text, full])
        try:
            answer = subprocess.run(
                [sys.executable, "-I", "-S", "-c", _MATCH_PROGRAM],
                input=request,
                capture_output=True,
                text=True,
                timeout=_PATTERN_MATCH_TIMEOUT_SECONDS,
                check=True,
            )
        except subprocess.TimeoutExpired as error:
            raise _PatternTimeout from error
        return answer.stdout.strip() == "1"


def _search(pattern: Any, command: str, *, full: bool = False) -> bool:
    """Returns whether `pattern` occurs in `command`, or with `full` matches all of it.

    Raises `_PatternTimeout` when the match exceeds its bound. A pattern that the caller compiled
    with `re` has no bound.
    """
    if isinstance(pattern, _TextPattern):
        return pattern.match(command, full)
    match = pattern.fullmatch if full else pattern.search
    if isinstance(pattern, re.Pattern):
        return match(command) is not None
    try:
        return match(command, timeout=_PATTERN_MATCH_TIMEOUT_SECONDS) is not None
    except TimeoutError as error:
        raise _PatternTimeout from error


def _case_sensitive(pattern: Any) -> Any:
    """Returns a text pattern compiled with regard to case; others as they are."""
    if isinstance(pattern, _TextPattern):
        return _TextPattern(pattern.pattern, 0)
    if _is_regex(pattern) and pattern.flags & regex.IGNORECASE:
        return regex.compile(pattern.pattern, flags=pattern.flags & ~regex.IGNORECASE)
    return pattern


class _Reader:
    """Reads the commands of a text with the package's own parser; runs nothing."""

    def __init__(self) -> None:
        self._process = -1
        self._shieling: Shieling | None = None

    def read(self, command: str) -> Verdict | None:
        """Returns what `command` launches, or `None` if the text cannot be read."""
        if self._shieling is None or self._process != os.getpid():
            # An empty deny list would say nothing; this one makes what cannot be read a reason.
            self._shieling = Shieling(
                "local",
                workspace="/",
                deny=["shieling-no-such-program"],
                approval="never",
                acknowledge_unsafe=True,
                allow_home=True,
            )
            self._process = os.getpid()
        try:
            return self._shieling.why(command)
        except ShielingError:
            return None


_reader = _Reader()


@dataclass
class ShellPolicy:
    """Decides upon commands by a deny list, then an allow list, then a function.

    1. A blank command is denied.
    2. A command that a pattern of `denylist` hits is denied, and so is one that launches such a
       command.
    3. With an `allowlist`, a command is denied unless a pattern hits it and every command that it
       launches, and it writes no file by redirection. A pattern that matches the whole text allows
       it as it stands.
    4. `custom` may return a decision that stands; `None` leaves it to allow.

    Texts are compiled without regard to case; the name of a program that an allow list lets pass
    has to agree in case too, unless it is one of PowerShell's, such as `Get-ChildItem`. A match is
    bounded to one second; one that takes longer denies. A pattern compiled with `re` has no bound,
    since `re` cannot be interrupted. The default allows everything.
    """

    denylist: Sequence[PatternLike] = field(default_factory=tuple)
    allowlist: Sequence[PatternLike] | None = None
    custom: Callable[[ShellRequest], ShellDecision | None] | None = None

    _denies: tuple[Any, ...] = field(init=False, repr=False, compare=False)
    _allows: tuple[Any, ...] | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._denies = _compile_patterns(self.denylist)
        self._allows = None if self.allowlist is None else _compile_patterns(self.allowlist)

    def evaluate(self, request: ShellRequest) -> ShellDecision:
        """Returns the decision on `request`."""
        command = request.command.strip()
        if not command:
            return ShellDecision("deny", "command is empty")
        verdict = _reader.read(command) if self._denies or self._allows is not None else None
        denied = self._denied_by_list(command, verdict)
        if denied is not None:
            return denied
        if self._allows is not None and not self._matches_allowlist(command, verdict):
            return ShellDecision("deny", "command does not match allowlist")
        if self.custom is not None:
            decision = self.custom(request)
            if decision is not None:
                return decision
        return ShellDecision("allow")

    def evaluate_command(self, command: str) -> ShellDecision:
        """Returns the decision on a command without a directory."""
        return self.evaluate(ShellRequest(command=command))

    def _denied_by_list(self, command: str, verdict: Verdict | None) -> ShellDecision | None:
        texts = [command, *(_spellings(verdict) if verdict is not None else ())]
        for pattern in self._denies:
            try:
                hit = any(_search(pattern, text) for text in texts)
            except _PatternTimeout:
                logger.warning("Denylist pattern timed out; denying command: %s", pattern.pattern)
                reason = f"denylist pattern could not be evaluated in time: {pattern.pattern}"
                return ShellDecision("deny", reason)
            if hit:
                return ShellDecision("deny", f"matches denylist pattern: {pattern.pattern}")
        return None

    def _matches_allowlist(self, command: str, verdict: Verdict | None = None) -> bool:
        verdict = verdict or _reader.read(command)
        if any(self._allows_text(pattern, command, full=True) for pattern in self._allows or ()):
            return True
        if not self._allowed(command) or verdict is None or _unreadable(verdict):
            return False
        if any(_is_redirection(verdict, effect) for effect in verdict.effects):
            return False
        return all(
            any(self._allowed(text) for text in _allowable(command, seen))
            for seen in verdict.commands
        )

    def _allowed(self, command: str) -> bool:
        return any(self._allows_text(pattern, command) for pattern in self._allows or ())

    def _allows_text(self, pattern: Any, command: str, *, full: bool = False) -> bool:
        try:
            if not _search(pattern, command, full=full):
                return False
            # `ECHO` is another program than `echo`, except where names have no case.
            program = command.split(None, 1)[0]
            if program == program.lower() or _CASELESS or _CMDLET.fullmatch(program):
                return True
            return _search(_case_sensitive(pattern), command, full=full)
        except _PatternTimeout:
            logger.warning(
                "Allowlist pattern timed out; not counting it as a match: %s", pattern.pattern
            )
            return False


def _spellings(verdict: Verdict) -> list[str]:
    """Returns each launched command after quote removal, also with its program's bare name."""
    texts: list[str] = []
    for seen in verdict.commands:
        texts.append(" ".join(seen.argv))
        if seen.argv and "/" in seen.argv[0]:
            texts.append(" ".join([os.path.basename(seen.argv[0]), *seen.argv[1:]]))
    return texts


def _allowable(command: str, seen: CommandSeen) -> list[str]:
    """Returns the texts of a launched command by which a pattern may allow it.

    As it is written it counts only if its program is written plainly: `ls""x` is not `ls`.
    """
    texts = [" ".join(seen.argv)]
    written = command.encode()[seen.span.start : seen.span.end].decode(errors="replace")
    if seen.argv and written.split(None, 1)[:1] == [seen.argv[0]]:
        texts.append(written)
    return texts


def _unreadable(verdict: Verdict) -> bool:
    """Returns whether the text cannot be read as bash."""
    return any(reason.rule == "unreadable" for reason in verdict.reasons)


def _is_redirection(verdict: Verdict, effect: Effect) -> bool:
    """Returns whether `effect` is a write by redirection: it stands outside of every command."""
    if effect.kind != "writes" or _HARMLESS_TARGETS.fullmatch(effect.object):
        return False
    return not any(
        seen.span.start <= effect.span.start and effect.span.end <= seen.span.end
        for seen in verdict.commands
    )
