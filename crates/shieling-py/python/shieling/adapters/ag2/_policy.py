"""Judges a command by AG2's four filters with Shieling's reading of the text.

AG2 compares the beginning of the text, or the words of a command that it runs without a shell. Here every command that
the text can launch is judged, at any depth: behind ``;`` and ``|``, in substitutions, under ``env`` and ``xargs``, in
the code given to ``sh -c`` and in aliases of git.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._execution import Execution, paths_in, reached_paths
from ._filter import (
    DEVICES,
    check_ignore,
    contains_shell_operator,
    hidden,
    matches,
    matches_argv,
    split_command,
)

if TYPE_CHECKING:
    from shieling import Reason, Verdict

__all__ = ["Filtered", "Filters", "search_path"]

_MOST_LINKS = 200_000
_MOST_BASES = 32
# As the last of several words of an entry, these name what runs whatever follows: `uv run`, `sh -c`.
_RUNNERS = frozenset({"run", "exec", "x", "dlx", "--", "-c"})
# No glob and no variable: these may name a program that is there.
_PLAIN_PROGRAM = re.compile(r"[A-Za-z0-9_./+-]+")
_GIT_DIRECTORIES = ("-C", "--git-dir", "--work-tree")


class Filters:
    """The filters of one tool or environment.

    Args:
        allowed: Only commands that start with one of these may run.
        blocked: Commands that start with one of these may not run.
        ignore: Paths that are hidden. With patterns, nothing outside the working directory is reached either; with an
            empty list, no path outside of it may be named.
        readonly: Whether nothing may change and nothing outside the working directory is read. `allowed` goes first.
        commands: What `readonly` allows.
    """

    def __init__(
        self,
        allowed: Sequence[str] | None,
        blocked: Sequence[str] | None,
        ignore: Sequence[str] | None,
        readonly: bool,
        commands: Sequence[str],
    ) -> None:
        self.readonly = readonly and allowed is None
        self.allowed = list(commands) if self.readonly else allowed
        self.blocked = blocked
        self.ignore = ignore

    @property
    def restricted(self) -> bool:
        """Whether there is any filter."""
        return self.allowed is not None or self.blocked is not None or self.ignore is not None

    @property
    def confined(self) -> bool:
        """Whether paths outside the working directory are refused."""
        return self.ignore is not None or self.readonly

    def options(self) -> dict[str, Any]:
        """The filters as options of `Shieling`."""
        # An entry without a word names no command.
        denied = [entry for entry in self.blocked or () if entry.strip()]
        options: dict[str, Any] = {"deny": denied, "ignore": list(self.ignore or ())}
        if self.allowed is not None:
            # An empty list allows nothing, and to `Shieling` it would mean no list at all.
            options["allow"] = [entry for entry in self.allowed if entry.strip()] or ["no-command-is-allowed"]
        if self.readonly:
            options["readonly"] = True
        return options

    def denial(
        self,
        execution: Execution,
        command: str,
        workdir: Path,
        argv: Sequence[str] | None = None,
        *,
        elsewhere: bool = False,
        path: str | None = None,
    ) -> str | None:
        """The text of a refusal, or ``None`` if the command may run.

        Args:
            execution: Where it would run, with `options`.
            command: The text, for the refusal.
            workdir: The working directory.
            argv: The words, where it runs without a shell.
            elsewhere: Whether it runs where this host's files say nothing about which paths there are.
            path: The directories of programs, as in ``PATH``, if a program that is in none of them cannot run.
        """
        from shieling import ShielingError

        try:
            verdict = execution.blocking().why(command if argv is None else argv)
        except ShielingError as error:
            return f"Command not allowed: {command!r}\n{error}"
        if argv is None and not self._names_first(command, verdict):
            return f"Command not allowed: {command!r}"
        blocking = [reason for reason in verdict.reasons if not self._granted(reason, verdict)]
        if execution.options.get("approver") is not None:
            blocking = [reason for reason in blocking if reason.decision == "deny"]
        paths = [reason for reason in blocking if reason.rule in ("ignore", "environment local")]
        if elsewhere:
            blocking = [reason for reason in blocking if reason not in paths or reason.decision == "deny"]
            paths = [reason for reason in paths if reason.decision == "deny"]
        if path is not None and not elsewhere and execution.environment == "local":
            # What `readonly` does not know about a program that is not there, the shell tells: there is none.
            missing = _missing_program(verdict, command, workdir, argv, path)
            found = [reason for reason in blocking if reason in paths or reason.rule == "readonly"]
            blocking = [reason for reason in blocking if reason not in found or reason.object != missing]
            paths = [reason for reason in paths if reason.object != missing]
        if len(paths) < len(blocking):
            return refusal(f"Command not allowed: {command!r}", blocking)
        if paths:
            # AG2's own words, where it would refuse as well; callers compare them.
            plain = check_ignore(command, workdir, list(self.ignore or ()))
            programs = {seen.argv[0] for seen in verdict.commands if seen.argv}
            files = [one for one in paths if one.object not in programs or (workdir / one.object).is_file()]
            first = f"Access denied: {_shown(files[0], workdir)}" if files else f"Command not allowed: {command!r}"
            return plain or refusal(first, paths)
        if self.confined and execution.environment == "local" and not elsewhere:
            # Where no shell reads them, words are what they say.
            literal = argv is not None and [list(seen.argv) for seen in verdict.commands] == [list(argv)]
            for one in _reached(verdict, command, workdir, literal):
                if isinstance(one, str):
                    if not self.ignore and not self.readonly:
                        # An empty list hides nothing; as in AG2, only a path that the text names is held to the directory.
                        continue
                    return (
                        f"Access denied: {one}\n{one}: what this names cannot be read from the text\n"
                        "instead: write the path itself"
                    )
                if str(one) in DEVICES:
                    continue
                if hidden(one, workdir, self.ignore or ()) or self._is_other_name(one, workdir):
                    return f"Access denied: {one}"
        return None

    def _names_first(self, command: str, verdict: Verdict) -> bool:
        """Whether the list names the first command of a text.

        `Shieling` lets builtins that change nothing, such as ``true`` and ``exit``, pass every list, and AG2 does not.
        """
        if self.allowed is None or any(matches(entry, command) for entry in self.allowed):
            return True
        first = min(verdict.commands, key=lambda seen: seen.span.start, default=None)
        return first is not None and any(matches_argv(entry, first.argv) for entry in self.allowed)

    def _is_other_name(self, path: Path, workdir: Path) -> bool:
        """Whether a path is a hard link to a hidden file of the working directory."""
        try:
            found = path.lstat()
        except (OSError, ValueError):
            return False
        if found.st_nlink < 2 or not stat.S_ISREG(found.st_mode) or not self.ignore:
            return False
        looked_at = 0
        for directory, _, files in os.walk(workdir):
            looked_at += len(files)
            if looked_at > _MOST_LINKS:
                # Not to be told apart with reasonable effort, so taken for one.
                return True
            for name in files:
                other = Path(directory, name)
                if hidden(other, workdir, self.ignore):
                    status = other.lstat()
                    if (status.st_dev, status.st_ino) == (found.st_dev, found.st_ino):
                        return True
        return False

    def _granted(self, reason: Reason, verdict: Verdict) -> bool:
        """Whether an entry such as ``uv run`` names a runner, and the reason is about what that is given to run."""
        if reason.rule != "allow" or reason.span is None:
            return False
        for seen in verdict.commands:
            inside = seen.span.start <= reason.span.start and reason.span.end <= seen.span.end
            if not inside or seen.span == reason.span:
                continue
            for entry in self.allowed or ():
                words = entry.split()
                # `git -c` gives git a setting, which may be an alias that runs something.
                runs = len(words) > 1 and words[-1] in _RUNNERS and words[0] != "git"
                if runs and matches_argv(entry, seen.argv):
                    return True
        return False


class Filtered:
    """The attributes through which AG2's users read and change the filters of an object."""

    _filters: Filters

    @property
    def _allowed(self) -> Sequence[str] | None:
        return self._filters.allowed

    @_allowed.setter
    def _allowed(self, value: Sequence[str] | None) -> None:
        self._filters.allowed = value
        self._filters.readonly = False

    @property
    def _blocked(self) -> Sequence[str] | None:
        return self._filters.blocked

    @_blocked.setter
    def _blocked(self, value: Sequence[str] | None) -> None:
        self._filters.blocked = value

    @property
    def _ignore(self) -> Sequence[str] | None:
        return self._filters.ignore

    @_ignore.setter
    def _ignore(self, value: Sequence[str] | None) -> None:
        self._filters.ignore = value


def search_path(*variables: Mapping[str, str] | None) -> str:
    """The ``PATH`` of this process, and behind it that of each of these."""
    return os.pathsep.join([os.environ.get("PATH", os.defpath), *((given or {}).get("PATH", "") for given in variables)])


def refusal(first: str, reasons: Sequence[Reason]) -> str:
    """AG2's line, and below it why and what instead, where the reason is not plain from the line itself."""
    lines = [first]
    for reason in reasons[:3]:
        lines.append(f"{reason.object}: {reason.because}" if reason.object else reason.because)
        if reason.instead:
            lines.append(f"instead: {reason.instead}")
    return "\n".join(lines)


def _missing_program(
    verdict: Verdict, command: str, workdir: Path, argv: Sequence[str] | None, path: str
) -> str | None:
    """The program of a text that is one plain command, if there is no such program."""
    words = split_command(command) if argv is None else list(argv)
    if len(verdict.commands) != 1 or not words or list(verdict.commands[0].argv) != words:
        return None
    if not _PLAIN_PROGRAM.fullmatch(words[0]) or (argv is None and contains_shell_operator(command)):
        return None
    # By its bare name it may be found in the working directory too, where `PATH` has it.
    directories = path.split(os.pathsep) if "/" not in words[0] else []
    found = any(os.path.lexists(os.path.join(workdir, one, words[0])) for one in ["", *directories])
    return None if found else words[0]


def _shown(reason: Reason, workdir: Path) -> str:
    path = _resolved(reason.object, workdir) if " " not in reason.object else None
    return str(path) if path is not None else reason.object


def _resolved(text: str, base: Path) -> Path | None:
    found = reached_paths(text, str(base)) if text and not text.startswith("-") else None
    return Path(found[0]) if found else None


def _reached(verdict: Verdict, command: str, workdir: Path, literal: bool) -> list[Path | str]:
    """The paths that a command reads, writes and runs; as text, what cannot be told and may be anything.

    With `literal` a ``$`` is a character like any other.
    """
    moves: list[tuple[int, str]] = []
    texts: list[tuple[int, str]] = []
    for seen in verdict.commands:
        if seen.argv[:1] in (("cd",), ("pushd",)):
            home = "~" if seen.argv == ("cd",) else "."
            target = next((word for word in seen.argv[1:] if not word.startswith("-")), home)
            moves.append((seen.span.end, target))
        if seen.argv[:1] == ("git",):
            words = iter(seen.argv[1:])
            for word in words:
                name, given, value = word.partition("=")
                if name in _GIT_DIRECTORIES:
                    texts.append((seen.span.start, value if given else next(words, ".")))
    for effect in verdict.effects:
        if effect.kind in ("reads", "writes", "runs"):
            texts.append((effect.span.start, effect.object))
            if "=" in effect.object:
                texts.append((effect.span.start, effect.object.partition("=")[2]))
    moved = _moved_for_certain(verdict, command, workdir, len(moves))
    reached: list[Path | str] = []
    for start, text in texts:
        if not text or text.startswith(("-", "/dev/fd/")):
            continue
        before = [target for end, target in moves if end <= start]
        bases = [moved] if moved is not None and before else _bases(before, workdir)
        if bases is None:
            reached.append(text)
            continue
        found = [reached_paths(text, str(base)) for base in bases]
        if all(paths is not None for paths in found):
            reached.extend(Path(path) for paths in found for path in paths or ())
        elif literal:
            reached.extend(Path(os.path.realpath(base / text)) for base in bases)
        elif "(" in text or "`" in text:
            reached.append(text)
        else:
            # A variable, or what `xargs` is fed: it can hold what stands in the text, or names that are found below.
            for word in paths_in(command):
                reached.extend(Path(path) for path in reached_paths(word, str(workdir)) or ())
    return reached


def _bases(targets: Sequence[str], workdir: Path) -> list[Path] | None:
    """Every directory in which a command can stand behind these changes of directory, or ``None`` if they are too many.

    Whether a ``cd`` is carried out, and in the shell itself or in one of its own, cannot be told: each may be or not.
    """
    bases = [workdir]
    for target in targets:
        for base in tuple(bases):
            moved = _resolved(target, base)
            if moved is not None and moved not in bases:
                bases.append(moved)
        if len(bases) > _MOST_BASES:
            return None
    return bases


def _moved_for_certain(verdict: Verdict, command: str, workdir: Path, moves: int) -> Path | None:
    """Where all that follows stands in ``cd DIRECTORY && …``, if that is how the text begins and there it is."""
    first = min(verdict.commands, key=lambda seen: seen.span.start, default=None)
    if moves != 1 or first is None or first.argv[:1] != ("cd",) or len(first.argv) != 2:
        return None
    text = command.encode()
    behind = text[first.span.end :].decode(errors="replace").lstrip(" \t")
    # In the background all of it would run beside the shell, which stays where it is.
    in_background = "&" in re.sub(r"&&|>&|&>", "", behind)
    if text[: first.span.start].strip() or in_background or not behind.startswith(("&&", ";", "\n")):
        return None
    moved = _resolved(first.argv[1], workdir)
    return moved if moved is not None and moved.is_dir() and "CDPATH" not in command else None
