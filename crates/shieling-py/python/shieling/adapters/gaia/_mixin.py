"""The mixin that gives an agent of AMD GAIA its shell tool."""

# GAIA reads the annotations of the tool to describe its parameters, so they are no strings.

import importlib
import inspect
import logging
import os
import shlex
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Optional

from .._execution import (
    RULES,
    Execution,
    HostVariables,
    exit_status,
    host_variables,
    kept_bytes,
    named_path,
    reached_paths,
)
from ..._options import is_utf8
from ._rules import (
    Refusal,
    described,
    git_directories,
    has_operator,
    operator_refusal,
    program,
    refusal,
    split_pipes,
    validate_command,
    without_comments,
    without_redirected_errors,
)

__all__ = ["MAX_OUTPUT_CHARS", "ShellToolsMixin"]

logger = logging.getLogger(__name__)

MAX_OUTPUT_CHARS = 10_000
"""How many characters a result holds of each stream of a command."""

_REMEMBERED = 100
_MOST_SECONDS = 3_600
_DEFAULT_SECONDS = 30
_DEVICES = frozenset({"/dev/null", "/dev/zero", "/dev/stdin", "/dev/stdout", "/dev/stderr"})
_ADDRESSES = ("http://", "https://", "git://", "ssh://")
# Ends a pipeline as its rightmost command that failed. One that was cut off by `head` has not failed.
_PIPE_STATUS = (
    '\n__codes=("${PIPESTATUS[@]}"); __code=0; __last=$((${#__codes[@]} - 1))\n'
    'for __i in "${!__codes[@]}"; do __c=${__codes[__i]}; '
    "if ((__c != 0 && ! (__i < __last && __c == 141))); then __code=$__c; fi; done\n"
    "exit $__code"
)
# The clock of the rate limit: it begins as the time of day, and does not follow when that is set.
_CLOCK_START = time.time() - time.monotonic()

_REGISTRY: dict[str, dict[str, Any]] = {}


def _now() -> float:
    return _CLOCK_START + time.monotonic()


def _registered(function: Callable[..., Any]) -> None:
    """Enter a tool into GAIA's registry, or into a like one in here where GAIA is not installed."""
    try:
        tool: Any = importlib.import_module("gaia.agents.base.tools").tool
    except ImportError:
        parameters = {
            name: {"required": parameter.default is inspect.Parameter.empty}
            for name, parameter in inspect.signature(function).parameters.items()
        }
        _REGISTRY[function.__name__] = {
            "name": function.__name__,
            "description": inspect.cleandoc(function.__doc__ or ""),
            "parameters": parameters,
            "function": function,
            "atomic": True,
        }
        return
    options: dict[str, Any] = {"atomic": True}
    if "timeout" in inspect.signature(tool).parameters:
        # Since 0.25 the agent abandons a tool after its own time, which is shorter than a command may take.
        options["timeout"] = _MOST_SECONDS + 60
    tool(**options)(function)


def _default_seconds(command: str) -> float:
    """The time of a command that is given none: since 0.25 GAIA's goes by the kind of command, before it was 30 s."""
    try:
        classify: Any = importlib.import_module("gaia.agents.tools.command_timeouts").classify_command
        return int(classify(command).seconds)
    except (ImportError, AttributeError):
        return _DEFAULT_SECONDS


class ShellToolsMixin:
    """Gives an agent the tool ``run_shell_command``: programs that read, alone or in pipelines, at a limited rate.

    The agent's ``path_validator.is_path_allowed(path)``, or its method ``_is_path_allowed``, is asked about each
    directory and file that a command names.

    Attributes:
        shell_command_times: When the last commands started, in seconds.
        max_commands_per_minute: How many commands may start in 60 seconds. Default: 10.
        max_commands_per_10_seconds: How many commands may start in 10 seconds. Default: 3.
        shell_environment: Where commands run: ``local`` (this host, as in GAIA) or ``sandbox``.
        shell_ignore: Patterns of files that are not read. Default: those that hold credentials.
        shell_options: More options of :class:`shieling.Shieling`: ``memory``, ``pids``, ``audit``.

    >>> agent = ShellToolsMixin()
    >>> agent.run_shell_command("ls | rm -r x")["error"]
    "Command 'rm' is not in the allowed list for security reasons"
    """

    shell_environment: str = "local"
    shell_ignore: Sequence[str] = (
        ".env",
        ".env.local",
        ".env.*.local",
        ".env.production",
        "*.pem",
        "id_rsa",
        "id_ecdsa",
        "id_ed25519",
        ".netrc",
        ".pgpass",
        ".git-credentials",
        ".ssh/",
        ".aws/",
        ".gnupg/",
    )
    shell_options: Optional[Mapping[str, Any]] = None

    def __init__(
        self,
        *args: Any,
        shell_environment: Optional[str] = None,
        shieling: Optional[Mapping[str, Any]] = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        if shell_environment is not None:
            self.shell_environment = shell_environment
        if shieling is not None:
            self.shell_options = shieling
        self.shell_command_times: deque[float] = deque(maxlen=_REMEMBERED)
        self.max_commands_per_minute = 10
        self.max_commands_per_10_seconds = 3

    # The rate

    def _check_rate_limit(self) -> tuple[bool, str, float]:
        """Whether a command may start now; if not, why, and after how many seconds one may."""
        if not hasattr(self, "shell_command_times"):
            # An agent whose own constructor does not call this one's.
            self.shell_command_times = deque(maxlen=_REMEMBERED)
            self.max_commands_per_minute = 10
            self.max_commands_per_10_seconds = 3
        now = _now()
        for seconds, most, words in (
            (10, self.max_commands_per_10_seconds, "10 seconds"),
            (60, self.max_commands_per_minute, "minute"),
        ):
            recent = [then for then in self.shell_command_times if then > now - seconds]
            if len(recent) >= most:
                wait = seconds - (now - min(recent)) if recent else float(seconds)
                return False, f"Rate limit: max {most} commands per {words}. Wait {wait:.1f}s", wait
        return True, "", 0.0

    def _record_command_execution(self) -> None:
        self.shell_command_times.append(_now())

    # What may run

    @staticmethod
    def _validate_command(
        cmd_base: str, cmd_parts: list[str], command: str, granted_binaries: frozenset[str] = frozenset()
    ) -> Optional[Refusal]:
        """Return why a command of a pipeline is refused, or ``None``.

        Args:
            cmd_base: The program's name, in lower case.
            cmd_parts: The command's words.
            command: The command's text.
            granted_binaries: Programs besides those of the list that a skill of the agent grants.
        """
        if program(cmd_base) in granted_binaries:
            return None
        found = validate_command(cmd_base, cmd_parts, command)
        return found or _writes(cmd_base, cmd_parts)

    def full_access_active(self) -> bool:
        """Tell whether commands pass without their checks. They never do: this adapter has no full access."""
        return False

    def bypass_gates_active(self) -> bool:
        """As `full_access_active`, under its older name."""
        return self.full_access_active()

    def _granted(self) -> frozenset[str]:
        grants = getattr(self, "_granted_binaries", None)
        return frozenset(grants.binaries()) if grants is not None else frozenset()

    def _shell_command_refusal(self, command: str) -> tuple[Optional[Refusal], list[list[str]]]:
        """Why a text is refused, and the commands in it."""
        if not command.strip():
            return refusal("Empty command"), []
        plain = without_redirected_errors(command)
        if has_operator(plain) and not command.lower().lstrip().startswith(("powershell ", "powershell.exe ")):
            return operator_refusal(), []
        try:
            shlex.split(plain)
            segments = [shlex.split(piece) for piece in split_pipes(plain)]
        except ValueError as error:
            return refusal(f"Invalid command syntax: {error}"), []
        if not any(segments):
            return refusal("Empty command"), []
        if not all(segments):
            return refusal("Empty command in a pipeline: each '|' needs a command on both sides."), []
        for segment in segments:
            text = command if len(segments) == 1 else " ".join(segment)
            found = self._validate_command(segment[0].lower(), segment, text, granted_binaries=self._granted())
            if found is not None:
                return found, segments
        return None, segments

    def _validate_shell_command(self, command: str) -> tuple[Optional[Refusal], list[list[str]]]:
        return self._shell_command_refusal(command)

    def policy_refusal_for_call(self, tool_name: str, tool_args: Optional[Mapping[str, Any]]) -> Optional[Refusal]:
        """Why a call of the tool would be refused, before a person is asked about it."""
        command = (tool_args or {}).get("command")
        if tool_name != "run_shell_command" or not isinstance(command, str):
            return None
        return self._shell_command_refusal(command)[0]

    def _path_check(self) -> Optional[Callable[[str], bool]]:
        validator = getattr(self, "path_validator", None)
        if validator is not None:
            return lambda path: bool(validator.is_path_allowed(path))
        check = getattr(self, "_is_path_allowed", None)
        return (lambda path: bool(check(path))) if check is not None else None

    def _directory(self, working_directory: Optional[str]) -> tuple[str, Optional[Refusal]]:
        if not working_directory:
            return str(Path.cwd()), None
        working_directory = os.path.expanduser(working_directory)
        if not os.path.exists(working_directory):
            return "", refusal(f"Working directory not found: {working_directory}")
        if not os.path.isdir(working_directory):
            return "", refusal(f"Path is not a directory: {working_directory}")
        check = self._path_check()
        if check is not None and not check(working_directory):
            return "", refusal(f"Access denied: {working_directory} is not in allowed paths")
        return str(Path(working_directory).resolve()), None

    def _path_refusal(self, segments: list[list[str]], reads: Sequence[str], cwd: str) -> Optional[Refusal]:
        """Why a path in the commands is refused: one that they read, or a word that looks like one."""
        check = self._path_check()
        if check is None:
            return None
        named: list[tuple[str, str, str]] = []
        allowed: set[str] = set()
        for segment in segments:
            base = cwd
            if program(segment[0]) == "git":
                for option, value in git_directories(segment):
                    path = os.path.realpath(os.path.join(base, value))
                    if not check(path):
                        return refusal(f"Access denied: git {option} {path} is not in allowed paths")
                    base = path if option == "-C" else base
            for word in segment[1:]:
                candidate = word.partition("=")[2] if word.startswith("-") and "=" in word else word
                if ("/" in candidate or ".." in candidate) and not candidate.startswith(_ADDRESSES):
                    named.append((word, candidate, base))
        for word, candidate, base in [*named, *((read, read, cwd) for read in reads)]:
            paths = reached_paths(candidate, base)
            if paths is None:
                return refusal(f"Access denied: Argument '{word}' cannot be resolved; write the path itself")
            for resolved in paths:
                if resolved in allowed or resolved in _DEVICES or candidate in _DEVICES:
                    continue
                if not check(resolved):
                    return refusal(f"Access denied: Argument '{word}' resolves to forbidden path '{resolved}'")
                # GAIA's own validator asks a person, who need not be asked twice.
                allowed.add(resolved)
        return None

    # Running

    def _shell_execution(self, cwd: str) -> Execution:
        opened: dict[Any, Execution] = self.__dict__.setdefault("_shell_executions", {})
        key = (cwd, self.shell_environment, tuple(self.shell_ignore))
        if key not in opened:
            options: dict[str, Any] = {"workspace": cwd, "readonly": True, "ignore": list(self.shell_ignore)}
            options["max_output"] = kept_bytes(MAX_OUTPUT_CHARS)
            if self.shell_environment == "local":
                options["network"] = "host"
            opened[key] = Execution(self.shell_environment, options, self.shell_options)
        return opened[key]

    def run_shell_command(
        self, command: str, working_directory: Optional[str] = None, timeout: Optional[float] = None
    ) -> dict[str, Any]:
        """Run a command; see the tool of the same name. Without `timeout` it gets GAIA's time for it, or 30 s."""
        try:
            return self._run_shell_command(command, working_directory, timeout)
        except Exception as error:
            logger.error("Error executing shell command: %s", error)
            return {"status": "error", "error": str(error), "has_errors": True}

    def _run_shell_command(
        self, command: str, working_directory: Optional[str], timeout: Optional[float]
    ) -> dict[str, Any]:
        if not isinstance(command, str):
            return refusal(f"Invalid command: {command!r} is no text")
        allowed, reason, wait = self._check_rate_limit()
        if not allowed:
            return refusal(
                f"{reason}. Please wait {wait:.1f} seconds.",
                rate_limited=True,
                wait_time_seconds=wait,
                hint="Rate limiting prevents excessive command execution",
            )
        cwd, found = self._directory(working_directory)
        if found is not None:
            return found
        if timeout is None:
            timeout = _default_seconds(command)
        seconds = _seconds(timeout)
        if seconds is None or not 0 < seconds <= _MOST_SECONDS:
            return refusal(
                f"Invalid timeout: {timeout!r}; give a number of seconds, {_MOST_SECONDS} at most", command=command
            )
        if "\0" in command or not is_utf8(command):
            return refusal("Invalid command syntax: the command holds a NUL byte or half of a character")
        found, segments = self._shell_command_refusal(command)
        if found is not None:
            return found
        execution = self._shell_execution(cwd)
        blocking = execution.blocking()
        text = without_comments(_lower_case(command, segments))
        verdict = blocking.why(text)
        for seen in verdict.commands:
            # What bash makes of the text, should it ever differ from the words above.
            found = self._validate_command(
                seen.argv[0].lower(), list(seen.argv), shlex.join(seen.argv), granted_binaries=self._granted()
            )
            if found is not None:
                return found
        denied = [
            one for one in verdict.reasons if one.decision == "deny" or one.rule in ("ignore", "environment local")
        ]
        hidden = [one for one in denied if one.rule in ("ignore", "environment local")]
        if hidden:
            return refusal(
                f"Access denied: '{hidden[0].object}': {hidden[0].because}",
                hint=hidden[0].instead or "Files that hold credentials are not read; name other files",
            )
        reads = [named_path(effect.object) for effect in verdict.effects if effect.kind == "reads"]
        found = self._path_refusal(segments, [read for read in reads if not read.startswith("-")], cwd)
        if found is not None:
            return found
        unread = [one for one in verdict.reasons if one.rule == "unreadable"]
        if unread:
            return refusal(f"Invalid command syntax: {unread[0].because}")
        if denied:
            return refusal(**dict(described(denied)))
        if getattr(self, "debug", False):
            logger.info("Executing command: %s in %s", command, cwd)
        # An approver is asked about the text as it is.
        options = self.shell_options or {}
        as_written = bool(options.get("approver") or options.get("approval")) or verdict.decision != "allow"
        return self._executed(execution, command, text, len(segments), cwd, seconds, as_written)

    def _executed(
        self,
        execution: Execution,
        command: str,
        text: str,
        stages: int,
        cwd: str,
        timeout: float,
        as_written: bool,
    ) -> dict[str, Any]:
        runner = execution
        if not as_written:
            if stages > 1:
                text += _PIPE_STATUS
            # What was judged runs without being judged again: the lines that read the pipeline's end are not the
            # agent's.
            runner = self._runner(execution)
        start = time.monotonic()
        host: HostVariables = "filtered" if self.shell_environment == "local" else "none"
        self._record_command_execution()
        outcome = runner.blocking().run(text, timeout=timeout, env=host_variables(host))
        duration = time.monotonic() - start
        if outcome.denial is not None:
            reasons = outcome.denial.reasons
            return refusal(**dict(described(reasons))) if reasons else refusal(outcome.denial.message())
        if outcome.status in ("failed", "lost"):
            return {"status": "error", "error": outcome.error or outcome.status, "has_errors": True}
        stdout, stdout_cut = _cut(outcome.stdout, outcome.stdout_bytes, "stdout")
        stderr, stderr_cut = _cut(outcome.stderr, outcome.stderr_bytes, "stderr")
        if outcome.status == "timed_out":
            return {
                "status": "error",
                "error": f"Command timed out after {timeout} seconds",
                "command": command,
                "stdout": stdout,
                "stderr": stderr,
                "has_errors": True,
                "timed_out": True,
                "timeout": timeout,
                "duration_seconds": duration,
                "cwd": cwd,
            }
        code = exit_status(outcome)
        return {
            "status": "success",
            "command": command,
            "stdout": stdout,
            "stderr": stderr,
            "return_code": code,
            "has_errors": code != 0,
            "duration_seconds": duration,
            "timeout": timeout,
            "cwd": cwd,
            "output_truncated": stdout_cut or stderr_cut,
        }

    def _runner(self, execution: Execution) -> Execution:
        if self.shell_environment != "local":
            return execution
        opened: dict[Any, Execution] = self.__dict__.setdefault("_shell_runners", {})
        key = execution.options["workspace"]
        if key not in opened:
            options = {name: value for name, value in execution.options.items() if name not in RULES}
            options.pop("environment")
            opened[key] = Execution("local", options, None)
        return opened[key]

    def register_shell_tools(self) -> None:
        """Enter the tool ``run_shell_command`` into GAIA's registry."""

        def run_shell_command(
            command: str,
            working_directory: Optional[str] = None,
            # Not optional: GAIA would describe it to the model as a text.
            timeout: int = None,  # type: ignore[assignment] # pyright: ignore[reportArgumentType]
        ) -> dict[str, Any]:
            """Execute a shell/terminal command that reads. Useful for listing directories (ls/dir), checking files
            (cat, stat), finding files (find), text processing (grep, head, tail), navigation (pwd), git history, and
            system information (lscpu, free -h). Pipes (|), globs, quotes, 2>&1 and 2>/dev/null work; other redirections
            and chains do not.

            Args:
                command: The shell command to execute (e.g., 'ls -la', 'pwd', 'cat file.txt')
                working_directory: Directory to run the command in (defaults to current directory)
                timeout: Timeout in seconds (default: 30, more for tests, builds and scripts that are granted)
            """
            return self.run_shell_command(command, working_directory, timeout)

        _registered(run_shell_command)


_judge: Optional[Execution] = None


def _writes(cmd_base: str, cmd_parts: Sequence[str]) -> Optional[Refusal]:
    """Why a call of a listed program changes something, as Shieling's policy knows the program's options."""
    global _judge
    if program(cmd_base) in ("powershell", "powershell.exe", "wmic"):
        return None
    if _judge is None:
        _judge = Execution("local", {"readonly": True}, None)
    verdict = _judge.blocking().why([program(cmd_parts[0]), *cmd_parts[1:]])
    denied = [reason for reason in verdict.reasons if reason.decision == "deny"]
    return refusal(**dict(described(denied))) if denied else None


def _cut(text: str, size: int, stream: str) -> tuple[str, bool]:
    if len(text) <= MAX_OUTPUT_CHARS:
        return text, False
    return f"{text[:MAX_OUTPUT_CHARS]}\n...output truncated ({stream})...", True


def _seconds(timeout: Any) -> Optional[float]:
    """A timeout as a number; models write one as a text, too."""
    if isinstance(timeout, str):
        try:
            timeout = int(timeout)
        except ValueError:
            return None
    return timeout if isinstance(timeout, (int, float)) and not isinstance(timeout, bool) else None


def _lower_case(command: str, segments: list[list[str]]) -> str:
    """The text with the first program's name as the list has it: `LS` was looked up as `ls`, so that is what runs."""
    word = segments[0][0]
    stripped = command.lstrip()
    if word != word.lower() and stripped.startswith(word) and not os.path.sep in word:
        return word.lower() + stripped[len(word) :]
    return command
