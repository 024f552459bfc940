"""Which commands safe mode lets run, and the Python environments that commands get.

Safe mode judges what a text launches, with the package's own parser: behind operators, quotes,
wrappers, substitutions and shells that it starts. It is a guard against mistakes; a program may
still do anything that its user may. `environment="sandbox"` is the boundary.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, NamedTuple

from ... import CommandSeen, Reason, Shieling, ShielingError, Verdict
from ._framework import Runtime, get_logger

logger = get_logger()

DANGEROUS_COMMANDS: list[str] = [
    *("sudo", "su", "reboot", "shutdown", "halt", "poweroff", "init"),
    *("rm", "chown", "chgrp", "umount", "mount"),
    *("dd", "mkfs", "fdisk", "parted", "fsck", "mkswap", "swapon", "swapoff"),
    *("service", "systemctl", "systemd"),
    *("iptables", "ip6tables", "ifconfig", "route", "iptables-save"),
    *("crontab", "at", "batch"),
    *("useradd", "userdel", "usermod", "passwd", "chpasswd", "newgrp"),
    *("modprobe", "rmmod", "insmod", "lsmod"),
]
"""The programs that safe mode blocks. Change the list to change what is blocked."""

_CD_OUTSIDE_WORKDIR_MESSAGE_TEMPLATE = (
    "Cannot 'cd' outside of the working directory in safe mode. "
    "Allowed root: '{working_dir}'. "
    "To modify files there, copy them (for example with `cp`) into '{working_dir}' first."
)
_MULTIPLE_CD_IN_CHAIN_MESSAGE = (
    "Multiple 'cd'/'pushd' commands chained with shell operators (;, &&, ||, |, &) are not allowed "
    "in safe mode, because the runtime execution flow cannot be determined statically. Please run "
    "each directory change as a separate command. For example, instead of 'cd subdir && cd ..', run "
    "'cd subdir' first, then run subsequent commands separately."
)

# Directories that belong to the system: nothing in a working directory needs to write there.
_SYSTEM_DIRECTORIES = (
    *("/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/proc", "/sbin", "/sys", "/usr"),
)
# Programs that do one part of what such a one does: `mkfs.ext4`, `iptables-restore`, `systemd-run`.
_FAMILIES = {
    ".": frozenset({"fsck", "mkfs", "mount", "umount"}),
    "-": frozenset({"ip6tables", "iptables", "systemd"}),
}
_SCRIPT = re.compile(r"\.(?:bash|c|cc|cpp|go|h|java|js|lua|php|pl|ps1|py|rb|rs|sh|ts|zsh)\Z")
_HARMLESS_TARGETS = re.compile(
    r"/dev/(null|zero|stdout|stderr|tty|fd/\d+|shm/.*)|/usr/src(/.*)?"
)
# Programs that write each path that they are given, and those that write the last one.
_WRITERS = frozenset(
    "chmod chattr mv setfacl shred tee touch truncate unlink".split()
)
_COPIERS = frozenset("cp install ln rsync".split())
_SHELLS = frozenset("ash bash dash fish ksh sh zsh".split())
# Interpreters that may read what a session is sent, with the option behind which each takes the same as an argument.
_CODE_OPTIONS = (
    (re.compile(r"(python|pypy)[\d.]*"), "-c"),
    (re.compile(r"node|nodejs|perl|ruby|lua[\d.]*"), "-e"),
    (re.compile(r"php[\d.]*"), "-r"),
)
_FED = re.compile(r"`([^`]+)` runs whatever it is fed, which cannot be read here")
_PROGRAM_DIRECTORIES = frozenset("/bin /sbin /usr/bin /usr/sbin /usr/local/bin /usr/local/sbin".split())
# Options by which a program works in another directory.
_DIRECTORY_OPTIONS = {
    "env": ("-C", "--chdir"),
    "git": ("-C", "--git-dir", "--work-tree"),
    "make": ("-C", "--directory"),
}
_FUNCTION = re.compile(r"(?:^|[;&|\s])(?:function\s+)?([^\s;&|(){}]+)\s*\(\s*\)\s*\{([^}]*)\}")
_VARIABLE = re.compile(r"\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)\})")
# With an odd number of backslashes in front it is no substitution.
_SUBSTITUTION = re.compile(r"(?<!\\)(?:\\\\)*(?:\$\(|`)")
_HOME_SHOWN = ("/\\u{1}home", "/\x01home")
_TEXT_OF_UNREADABLE = "the text cannot be read as a command"

_Callback = Callable[[str], None] | None


@lru_cache(maxsize=16)
def _judge(process: int, denied: tuple[str, ...], allowed: tuple[str, ...]) -> Shieling:
    # One for each process, since an environment does not survive a fork; nothing is started by it.
    return Shieling(
        "local",
        workspace="/",
        deny=denied,
        allow=allowed,
        approval="never",
        acknowledge_unsafe=True,
        allow_home=True,
    )


def _read(
    command: str, denied: Iterable[str] = (), allowed: Iterable[str] = ()
) -> Verdict | None:
    """Returns what the package says of `command`, or `None` if it takes no such text."""
    try:
        return _judge(os.getpid(), tuple(denied), tuple(allowed)).why(command)
    except ShielingError:
        return None


def launches(command: str) -> tuple[list[str], bool]:
    """Returns the names of the programs that `command` launches, and whether one may be hidden."""
    verdict = _read(command)
    if verdict is None:
        return [], True
    names = [os.path.basename(seen.argv[0]) for seen in verdict.commands if seen.argv]
    hidden = any(effect.kind in ("runs", "unknown") for effect in verdict.effects)
    return names, hidden or any(reason.rule == "unreadable" for reason in verdict.reasons)


def _dangerous_commands() -> list[str]:
    # A caller may have replaced the list in the package as well as in this module.
    package = sys.modules.get(__package__ or "")
    there = getattr(package, "DANGEROUS_COMMANDS", _FIRST_LIST)
    return DANGEROUS_COMMANDS if there is _FIRST_LIST else there


_FIRST_LIST = DANGEROUS_COMMANDS


def check_command_safety(
    command: str, allowed_commands: set[str] | None = None
) -> tuple[bool, str]:
    """Returns whether everything that `command` launches may run, and otherwise why not.

    With `allowed_commands` every program has to be named there, without regard to case; otherwise
    none may be of `DANGEROUS_COMMANDS`.
    """
    if not command.strip():
        return False, "Empty command is not allowed."
    if allowed_commands is not None:
        return _check_allowed(command, allowed_commands)
    listed = list(_dangerous_commands())
    verdict = _read(command, denied=[name for name in listed if name.strip()])
    if verdict is None:
        return False, f"Command '{command[:80]}' is blocked for safety: {_TEXT_OF_UNREADABLE}."
    reasons = sorted(verdict.reasons, key=lambda reason: reason.decision != "deny")
    if reasons and _interpreter(command, verdict) is None:
        return False, _blocked(command, reasons[0], listed)
    lower = {name.lower(): name for name in listed}
    for seen in verdict.commands:
        # The package goes by exact names; the list has no case.
        name = _family(os.path.basename(_program(seen)).lower())
        if name in lower:
            return False, f"Command '{lower[name]}' is blocked for safety."
    payload = _long_option_payload(verdict)
    if payload is not None:
        safe, reason = check_command_safety(payload)
        if not safe:
            return False, reason
    return _check_harm(command, verdict, "rm" in listed)


def check_input_safety(command: str, text: str) -> tuple[bool, str]:
    """Returns whether `text` may be sent to the session that runs `command`, and otherwise why not.

    What an interpreter of a language is sent is judged as code in its arguments is. Shells do not start in safe mode
    without a text.
    """
    verdict = _read(command, denied=[name for name in _dangerous_commands() if name.strip()])
    program = None if verdict is None else _interpreter(command, verdict)
    if program is None:
        return True, ""
    option = next(option for names, option in _CODE_OPTIONS if names.fullmatch(program))
    return check_command_safety(f"{program} {option} {shlex.quote(text)}")


def _interpreter(command: str, verdict: Verdict) -> str | None:
    """Returns the interpreter that `command` consists of, if all that is unknown is what its session will be sent."""
    if len(verdict.reasons) != 1 or "<" in command:
        return None
    reason = verdict.reasons[0]
    fed = _FED.fullmatch(reason.because)
    span = reason.span
    if fed is None or span is None or reason.decision != "ask":
        return None
    # A command beside it may be what feeds it; around it stand wrappers.
    if not all(seen.span.start <= span.start and span.end <= seen.span.end for seen in verdict.commands):
        return None
    known = any(names.fullmatch(fed[1]) for names, _ in _CODE_OPTIONS)
    return fed[1] if known else None


def _family(name: str) -> str:
    """Returns the program of which the one with this name does a part, or the name itself."""
    for separator, families in _FAMILIES.items():
        first, found, _ = name.partition(separator)
        if found and first in families and not _SCRIPT.search(name):
            return first
    return name


def _long_option_payload(verdict: Verdict) -> str | None:
    """Returns what a shell is given behind `--command`: some shells run it, bash does not."""
    for seen in verdict.commands:
        words = list(seen.argv)
        if os.path.basename(_program(seen)) in _SHELLS and "--command" in words[:-1]:
            return words[words.index("--command") + 1]
    return None


def _shown(command: str) -> str:
    return command.strip()[:80]


def _why_unreadable(command: str, reason: Reason) -> str:
    """Returns why a text cannot be read, in more words where it does not parse."""
    if "does not parse" not in reason.because:
        return reason.because
    try:
        shlex.split(command)
    except ValueError:
        return f"{reason.because}: a quote is not closed"
    return f"{reason.because}: a bracket or a word such as `fi` is missing, or is one too many"


def _blocked(command: str, reason: Reason, listed: list[str]) -> str:
    if reason.decision == "deny":
        words = [os.path.basename(word) for word in reason.object.split()]
        named = re.match(r"`([^`]+)` is denied", reason.because)
        name = named.group(1) if named else next((w for w in words if w in listed), words[0])
        return f"Command '{name}' is blocked for safety."
    if reason.rule == "unreadable":
        why = _why_unreadable(command, reason)
        return f"Command '{_shown(command)}' is blocked for safety: {why}."
    shown = reason.object or _shown(command)
    return f"Command '{shown}' is blocked for safety: {reason.because}."


def _check_allowed(command: str, allowed_commands: set[str]) -> tuple[bool, str]:
    names = {name.lower() for name in allowed_commands}
    verdict = _read(command)
    spelled = [
        seen.argv[0] for seen in (verdict.commands if verdict is not None else ()) if seen.argv
    ]
    # The package goes by exact names; a name in other letters that the list means is added, and one
    # that is written with the directory where the system has its programs.
    entries = {*allowed_commands}
    for spelling in spelled:
        directory, name = os.path.split(spelling)
        if spelling.lower() in names or (directory in _PROGRAM_DIRECTORIES and name.lower() in names):
            entries.add(spelling)
    verdict = _read(command, allowed=sorted(entry for entry in entries if entry.strip()))
    if verdict is None:
        return False, f"Command '{command[:80]}' is not in the allowed commands list."
    payload = _long_option_payload(verdict)
    offence = _first_offence(command, verdict, names)
    if offence is not None and offence.program not in _SHELLS:
        return False, offence.message
    if payload is not None:
        safe, reason = _check_allowed(payload, allowed_commands)
        if not safe:
            return False, reason
    return (True, "") if offence is None else (False, offence.message)


class _Offence(NamedTuple):
    """What a list of commands does not name: where it stands, its program, and the refusal."""

    start: int
    end: int
    program: str
    message: str


def _first_offence(command: str, verdict: Verdict, names: set[str]) -> _Offence | None:
    """Returns the first thing in `command` that the list does not name.

    Programs go before redirections, and what a shell is given to run before the shell.
    """
    programs: list[_Offence] = []
    redirections: list[_Offence] = []
    for reason in verdict.reasons:
        if reason.because.endswith("may change what programs do"):
            # The list is one of commands: the package lets variables pass.
            continue
        start, end = (reason.span.start, reason.span.end) if reason.span is not None else (0, 0)
        readable = reason.rule != "unreadable" and reason.object.split()
        shown = reason.object.split()[0] if readable else _shown(command)
        if "redirection" in reason.because:
            message = (
                f"Command '> {shown}' is not in the allowed commands list. "
                "A redirection that writes is not granted by the list; write the file with the file tool."
            )
            redirections.append(_Offence(start, end, "", message))
            continue
        because = reason.because
        if reason.rule == "unreadable":
            because = _why_unreadable(command, reason)
        why = "" if because.startswith("no entry") else f" ({because})"
        message = f"Command '{shown}' is not in the allowed commands list.{why}"
        programs.append(_Offence(start, end, os.path.basename(shown), message))
    for seen in verdict.commands:
        # The package lets builtins that change nothing, such as `export` and `pushd`, pass any list.
        name = os.path.basename(_program(seen))
        # A `[` is no program's name to the original.
        listed = name.lower() in names or _program(seen).lower() in names
        if re.match(r"[A-Za-z_/]", name) and not listed:
            message = f"Command '{name}' is not in the allowed commands list."
            programs.append(_Offence(seen.span.start, seen.span.end, name, message))
    # The outer one first of those that begin together.
    programs.sort(key=lambda offence: (offence.start, -offence.end))
    for offence in programs:
        within = any(
            offence.start < other.start and other.end <= offence.end for other in programs
        )
        if offence.program not in _SHELLS or not within:
            return offence
    return min(redirections, key=lambda offence: offence.start, default=None)


def _check_harm(command: str, verdict: Verdict, rm_blocked: bool) -> tuple[bool, str]:
    """Returns whether `command` is none of the known ways to do what the blocked programs do."""
    for seen in verdict.commands:
        name, *words = seen.argv or ("",)
        name = os.path.basename(name)
        if name == "find" and "-delete" in words and rm_blocked:
            return False, "Command 'find -delete' is blocked for safety: it removes files like 'rm'."
        if name == "kill" and any(word in ("1", "-1") for word in _operands(words)):
            return False, "Command 'kill' is blocked for safety: it would end the whole system."
        if name in _WRITERS or name in _COPIERS:
            for word in words if name in _WRITERS else words[-1:]:
                if _of_system(word):
                    return False, (
                        f"Command '{name}' is blocked for safety: '{word}' belongs to the system."
                    )
    for effect in verdict.effects:
        inside = any(
            seen.span.start <= effect.span.start and effect.span.end <= seen.span.end
            for seen in verdict.commands
        )
        if effect.kind == "writes" and not inside and _of_system(effect.object):
            return False, (
                f"Command '> {effect.object}' is blocked for safety: the file belongs to the system."
            )
    for match in _FUNCTION.finditer(command):
        calls = re.split(r"[\s;&|]+", match.group(2))
        if calls.count(match.group(1)) > 1:
            return False, (
                f"Command '{match.group(1)}' is blocked for safety: it starts itself without end."
            )
    return True, ""


def _operands(words: Iterable[str]) -> list[str]:
    """Returns what `kill` is to end: every word but the signal in front."""
    rest = list(words)
    if rest and re.fullmatch(r"-(s|n|-signal)", rest[0]):
        return rest[2:]
    if rest and rest[0].startswith("-"):
        rest = rest[1:]
    return [word for word in rest if word != "--"]


def _of_system(path: str) -> bool:
    if not path.startswith("/"):
        return False
    path = os.path.normpath("/" + path.lstrip("/"))
    if _HARMLESS_TARGETS.fullmatch(path):
        return False
    return path == "/" or any(
        path == one or path.startswith(one + "/") for one in _SYSTEM_DIRECTORIES
    )


def sanitize_command(
    command: str,
    use_docker_backend: bool = False,
    safe_mode: bool = True,
    working_dir: str | None = None,
    allowed_commands: set[str] | None = None,
) -> tuple[bool, str]:
    """Returns whether `command` may run, with the command, or with the reason against it.

    Without `safe_mode` everything may. On the host, a change of the directory has to stay below
    `working_dir`, and a text may hold one of them.
    """
    if not safe_mode:
        return True, command
    refusal = None
    if not use_docker_backend and working_dir:
        refusal = _check_directories(command, os.path.normpath(os.path.abspath(working_dir)))
    listed = {name.lower() for name in allowed_commands or ()}
    if refusal is not None and any(refusal == _substitution_in(name) for name in listed):
        # Before the list names what is substituted: that is not what has to change.
        return False, refusal
    safe, reason = check_command_safety(command, allowed_commands)
    if not safe:
        return False, reason
    if refusal is not None:
        return False, refusal
    return True, command


def _substitution_in(name: str) -> str:
    return f"Command substitution is not allowed in '{name}' paths."


def _check_directories(command: str, working_dir: str) -> str | None:
    """Returns why a change of the directory in `command` is refused, or `None`."""
    verdict = _read(command)
    if verdict is None:
        return f"The directory changes of the command cannot be checked: {_TEXT_OF_UNREADABLE}."
    outside = _CD_OUTSIDE_WORKDIR_MESSAGE_TEMPLATE.format(working_dir=working_dir)
    changes = [seen for seen in verdict.commands if _program(seen) in ("cd", "pushd")]
    if len(changes) > 1:
        return _MULTIPLE_CD_IN_CHAIN_MESSAGE
    if changes and "CDPATH" in command:
        return outside
    for seen in changes:
        target = _target(seen)
        if "$(" in target or "`" in target:
            if len(verdict.commands) == 1 and not _SUBSTITUTION.search(command):
                # Escaped, so that it is part of a name.
                if not contains(working_dir, os.path.normpath(os.path.join(working_dir, target))):
                    return outside
                continue
            return _substitution_in(seen.argv[0])
        if not _inside(target, working_dir):
            return outside
    for seen in verdict.commands:
        for target in _option_values(seen):
            if not _inside(target, working_dir):
                return outside
    return None


def _program(seen: CommandSeen) -> str:
    # `command cd x` is seen as two commands, of which the second is `cd`.
    return seen.argv[0] if seen.argv else ""


def _target(seen: CommandSeen) -> str:
    """Returns the directory that `cd` is given; its default is the home directory."""
    words = list(seen.argv[1:])
    while words and re.fullmatch(r"-[LPe@n]+", words[0]):
        words.pop(0)
    if words and words[0] == "--":
        words.pop(0)
    if not words:
        # `pushd` without a word goes back to where the shell was, as `cd -` does.
        return "~" if seen.argv[0] == "cd" else "-"
    return words[0]


def _option_values(seen: CommandSeen) -> list[str]:
    """Returns the directories that options tell a program to work in."""
    program = os.path.basename(_program(seen))
    options = _DIRECTORY_OPTIONS.get(program, ())
    values: list[str] = []
    words = iter(seen.argv[1:] if options else ())
    for word in words:
        if word in options:
            values.append(next(words, ""))
        elif word.startswith("-"):
            for option in options:
                start = option + "=" if option.startswith("--") else option
                if word.startswith(start):
                    values.append(word[len(start) :])
        elif program != "make":
            # What follows belongs to the subcommand, or to the program that `env` starts.
            break
    return values


def _inside(target: str, working_dir: str) -> bool:
    """Returns whether `target`, as a shell in `working_dir` takes it, lies in there."""
    if target == "-" or target.startswith("+"):
        return False
    for shown in _HOME_SHOWN:
        target = target.replace(shown, os.path.expanduser("~"))
    target = _VARIABLE.sub(
        lambda found: os.environ.get(found.group(1) or found.group(2), ""), target
    )
    if "$" in target or not target:
        return False
    path = os.path.join(working_dir, os.path.expanduser(target))
    return contains(working_dir, os.path.normpath(path)) and contains(
        os.path.realpath(working_dir), os.path.realpath(path)
    )


def contains(directory: str, path: str) -> bool:
    """Returns whether `path` is `directory` or lies in it, by their names."""
    try:
        return os.path.commonpath([directory, path]) == directory
    except ValueError:
        return False


# Python environments. Nothing is downloaded or installed on the host to make them.


def is_uv_environment() -> bool:
    """Returns whether this Python is managed by uv, or uv is there."""
    return (
        "UV_CACHE_DIR" in os.environ or "uv" in sys.executable or shutil.which("uv") is not None
    )


def _tell(update_callback: _Callback, text: str) -> None:
    if update_callback is not None:
        update_callback(text)


def ensure_uv_available(update_callback: _Callback = None) -> tuple[bool, str | None]:
    """Returns whether uv is there, and where. It is not installed: no script is fetched and run."""
    found = shutil.which("uv")
    if found is None:
        _tell(update_callback, "uv not found; using venv\n")
        return False, None
    _tell(update_callback, f"uv is already available at: {found}\n")
    return True, found


def python_of(env_path: str) -> str:
    """Returns the path of the Python in an environment."""
    if sys.platform == "win32":
        return os.path.join(env_path, "Scripts", "python.exe")
    return os.path.join(env_path, "bin", "python")


def _run(argv: list[str], working_dir: str, seconds: float) -> None:
    subprocess.run(
        argv,
        check=True,
        capture_output=True,
        stdin=subprocess.DEVNULL,
        cwd=working_dir,
        timeout=seconds,
    )


def _guarded(what: str, update_callback: _Callback, make: Callable[[], None]) -> bool:
    """Returns whether `make` worked; tells the callback and the log why it did not."""
    try:
        make()
        return True
    except subprocess.CalledProcessError as error:
        shown = error.stderr.decode(errors="replace") if error.stderr else str(error)
        message = f"{what} failed: {shown}"
    except subprocess.TimeoutExpired as error:
        message = f"{what} timed out after {error.timeout:g} seconds"
    except OSError as error:
        message = f"{what} failed: {error}"
    _tell(update_callback, message + "\n")
    logger.error(message)
    return False


def setup_initial_env_with_uv(
    env_path: str, uv_path: str, working_dir: str, update_callback: _Callback = None
) -> bool:
    """Makes an environment with uv and this Python, with pip in it. Returns whether it is there."""
    if os.path.exists(python_of(env_path)):
        _tell(update_callback, "[UV] Environment already exists, skipping creation\n")
        return True
    command = [uv_path, "venv", "--seed", "--python", sys.executable, env_path]
    made = _guarded("UV setup", update_callback, lambda: _run(command, working_dir, 300))
    if made:
        _tell(update_callback, "[UV] Initial environment created")
    return made


def setup_initial_env_with_venv(
    env_path: str, working_dir: str, update_callback: _Callback = None
) -> bool:
    """Makes an environment with `venv` and this Python. Returns whether it is there."""
    if os.path.exists(python_of(env_path)):
        _tell(update_callback, "Environment already exists, skipping creation\n")
        return True
    command = [sys.executable, "-m", "venv", env_path]
    made = _guarded("Venv setup", update_callback, lambda: _run(command, working_dir, 300))
    if made:
        _tell(update_callback, "Initial environment created with system Python")
    else:
        shutil.rmtree(env_path, ignore_errors=True)
    return made


def clone_current_environment(
    env_path: str, working_dir: str, update_callback: _Callback = None
) -> bool:
    """Makes an environment with this Python's packages. Returns whether it is there, complete."""
    if os.path.exists(python_of(env_path)):
        _tell(update_callback, f"Using existing environment: {env_path}\n")
        return True
    _tell(update_callback, f"Cloning current Python environment to: {env_path}\n")
    success, uv_path = ensure_uv_available(update_callback)
    made = (
        setup_initial_env_with_uv(env_path, uv_path, working_dir, update_callback)
        if success and uv_path
        else setup_initial_env_with_venv(env_path, working_dir, update_callback)
    )
    if not made:
        return False

    def install() -> None:
        frozen = subprocess.run(
            [sys.executable, "-m", "pip", "freeze"],
            check=True,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=60,
        )
        packages = [
            line
            for line in frozen.stdout.decode(errors="replace").splitlines()
            if line.strip() and not line.startswith(("#", "-e"))
        ]
        if packages:
            pip = [python_of(env_path), "-m", "pip", "install", "--quiet", *packages]
            _run(pip, working_dir, 600)

    cloned = _guarded("Environment cloning", update_callback, install)
    if cloned:
        _tell(update_callback, "Environment cloned successfully!\n")
    return cloned


def check_nodejs_availability(update_callback: _Callback = None) -> tuple[bool, str]:
    """Returns whether Node.js and npm are there, and a sentence that says so."""
    versions: list[str] = []
    for program in ("node", "npm"):
        try:
            found = subprocess.run(
                [program, "--version"], capture_output=True, text=True, timeout=10, check=True
            )
        except (OSError, subprocess.SubprocessError):
            info = "Node.js not found. If needed, please install it manually."
            _tell(update_callback, f"Note: {info}\n")
            return False, info
        versions.append(found.stdout.strip())
    info = f"Node.js {versions[0]} and npm {versions[1]} are available"
    _tell(update_callback, f"{info}\n")
    return True, info


def ensure_go_available(update_callback: _Callback = None) -> str | None:
    """Returns the directory of the program `go`, if it is on this host."""
    return _directory_of("go", os.path.expanduser("~/.camel/runtimes/go/bin"), update_callback)


def ensure_java_available(update_callback: _Callback = None) -> str | None:
    """Returns the home of Java, if it is on this host."""
    home = os.environ.get("JAVA_HOME", "")
    directory = _directory_of("java", os.path.join(home, "bin") if home else "", update_callback)
    return os.path.dirname(directory) if directory is not None else None


def _directory_of(program: str, other: str, update_callback: _Callback) -> str | None:
    found = shutil.which(program) or (shutil.which(program, path=other) if other else None)
    if found is None:
        _tell(
            update_callback,
            f"{program} not found; it is not downloaded: install it and put it on PATH\n",
        )
        return None
    return os.path.dirname(os.path.realpath(found))


def runtime_variables(runtimes: Iterable[Any], update_callback: _Callback) -> dict[str, str]:
    """Returns the variables by which commands find the language runtimes that are there."""
    variables: dict[str, str] = {}
    directories: list[str] = []
    wanted = set(runtimes)
    if Runtime.GO in wanted:
        go = ensure_go_available(update_callback)
        directories += [go] if go else []
    if Runtime.JAVA in wanted:
        java = ensure_java_available(update_callback)
        if java:
            variables["JAVA_HOME"] = java
            directories.insert(0, os.path.join(java, "bin"))
    if directories:
        variables["PATH"] = os.pathsep.join([*directories, os.environ.get("PATH", "")])
    return variables
