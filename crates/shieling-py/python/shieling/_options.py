"""From the keywords of `Shieling` to the settings of the native module, whose names and forms the command line has."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from operator import index

from . import _native
from ._errors import ArgumentError, ConfigurationError
from ._records import No, Question, Yes
from ._typing import Any, Literal, NoReturn, TypeAlias, cast

__all__ = [
    "Answer",
    "Approver",
    "EnvironmentName",
    "duration_ms",
    "is_utf8",
    "open_core",
    "size_bytes",
    "text_list",
    "with_plain_errors",
]

EnvironmentName: TypeAlias = 'Literal["sandbox", "local", "memory", "container"] | str'
"""Where commands run: one of these names, or ``ssh://[USER@]HOST[:PORT][/DIR]``."""

_ENVIRONMENTS = ("sandbox", "local", "memory", "container")

Answer = bool | Yes | No | None
"""What an approver answers; ``None``: nobody can."""

Approver = Callable[[Question], Answer | Awaitable[Answer]]
"""Who is asked, where a command or a change of files needs a yes."""

# Keyword -> key of the settings, where it is not the keyword with dashes.
_KEYS = {
    "environment": "env",
    "pass_env": "pass-env",
    "allow_hosts": "allow-host",
    "secrets": "secret",
    "volumes": "volume",
    "devices": "device",
}
_PLAIN = (
    "environment",
    "allow",
    "deny",
    "ignore",
    "readonly",
    "approval",
    "acknowledge_unsafe",
    "require_shell_approval",
    "require_write_approval",
    "network",
    "allow_hosts",
    "secrets",
    "home",
    "changes",
    "pass_env",
    "isolation",
    "open_protected",
    "allow_home",
    "rate",
    "record",
    "image",
    "engine",
    "pull",
    "container",
    "volumes",
    "writable",
    "runtime",
    "preset",
    "unlimited",
    "engine_network",
    "workspace_copy",
    "per_command",
    "no_mount",
    "privileged",
    "devices",
    "cap_add",
)
# Each of these is a list of texts.
_LISTS = {"allow", "allow_hosts", "secrets", "deny", "ignore", "pass_env", "volumes", "devices", "cap_add"}
_FLAG_OPTIONS = (
    "readonly",
    "acknowledge_unsafe",
    "require_shell_approval",
    "require_write_approval",
    "inherit_env",
    "open_protected",
    "allow_home",
    "writable",
    "unlimited",
    "per_command",
    "no_mount",
    "privileged",
    "record",
)
_TEXT_OPTIONS = ("image", "container", "runtime", "engine_network", "rate")
_PATH_OPTIONS = ("workspace", "shell", "audit", "workdir")
# A number, or a text of the form that the command line takes.
_WHOLE_OPTIONS = ("pids", "user")
_UNITS = {"": 1.0, "ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_SIZES = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
_LONGEST_MS = 2**53
# What an environment sets itself: the host's would say where things are on the host.
_OWN = {
    "sandbox": {"HOME", "TMPDIR", "GIT_CONFIG_SYSTEM"},
    "container": {"HOME", "PATH", "SHELL", "USER", "LOGNAME", "TZ", "PWD", "OLDPWD", "TMPDIR"},
    "memory": {"HOME", "PATH", "SHELL", "USER", "LOGNAME", "TZ", "PWD", "OLDPWD", "TMPDIR"},
    "ssh": {"HOME", "PATH", "SHELL", "USER", "LOGNAME", "TZ", "PWD", "OLDPWD", "TMPDIR", "GIT_CONFIG_SYSTEM"},
}


def _is_far(options: Mapping[str, Any]) -> bool:
    """Whether commands run on another machine, so that paths of theirs are not of this one."""
    return isinstance(options["environment"], str) and options["environment"].startswith("ssh:")


def duration_ms(value: float | timedelta | str, name: str = "timeout") -> int:
    """Milliseconds of a duration, at least 1 of what is more than 0."""
    if isinstance(value, str):
        import re

        found = re.match(r"\s*([0-9]+(?:\.[0-9]+)?)\s*(ms|s|m|h|)\s*\Z", value)
        if not found:
            raise ArgumentError(f"`{name}` is no duration: {value!r}; write `30s`, `500ms`, `2m`, or a number of seconds")
        seconds = float(found.group(1)) * _UNITS[found.group(2)]
    elif isinstance(value, timedelta):
        seconds = value.total_seconds()
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        seconds = float(value)
    else:
        raise ArgumentError(f"`{name}` is no duration: {value!r}")
    if not seconds >= 0:
        raise ArgumentError(f"`{name}` is {value!r}, and a duration is not negative")
    if seconds * 1000 > _LONGEST_MS:
        return _LONGEST_MS
    return max(round(seconds * 1000), 1 if seconds > 0 else 0)


def size_bytes(value: int | str, name: str) -> int:
    """Bytes of a size."""
    if not isinstance(value, str):
        number = _whole(value)
        if number is None:
            raise ArgumentError(f"`{name}` is no size: {value!r}")
        if number < 0:
            raise ArgumentError(f"`{name}` is {number}, and a size is not negative")
        return number
    import re

    found = re.match(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([KMG]i?B|B|)\s*\Z", value)
    if not found:
        raise ArgumentError(f"`{name}` is no size: {value!r}; write `64KiB`, `10MB`, `4GiB`, or a number of bytes")
    return int(float(found.group(1)) * _SIZES[found.group(2)])


def text_list(value: Any, name: str) -> list[str]:
    """A list of texts. One text is none: it would be taken for a list of characters."""
    if isinstance(value, (str, bytes)) or not isinstance(value, Sequence):
        raise ArgumentError(f"`{name}` is {value!r}, and has to be a list of strings")
    return list(cast("Sequence[str]", value))


def is_utf8(text: str) -> bool:
    """Whether a text can be given to a program: half of a surrogate pair cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _texts(name: str, value: Any) -> list[str]:
    texts: list[str] = []
    for one in text_list(value, name):
        text = _path_text(one)
        if text is None:
            raise ConfigurationError(f"`{name}` holds {one!r}, and has to be a list of strings")
        texts.append(text)
    return texts


def _path_text(value: Any) -> str | None:
    """The text of a string or path; ``None`` for anything else."""
    try:
        text = cast(object, os.fspath(value))
    except TypeError:
        return None
    return text if isinstance(text, str) else None


def _whole(value: Any) -> int | None:
    """A whole number of any type: ``50``, ``50.0``, ``Decimal(50)``; ``None`` for anything else."""
    number = _real(value)
    if number is None or isinstance(number, int):
        return number
    try:
        whole = int(value)
        return whole if whole == value else None
    except (OverflowError, TypeError, ValueError):
        return None


def _real(value: Any) -> int | float | None:
    """A number of any type; ``None`` for anything else."""
    if isinstance(value, bool):
        return None
    try:
        return index(value)
    except TypeError:
        pass
    try:
        return float(value) if hasattr(value, "__float__") else None
    except (OverflowError, TypeError, ValueError):
        return None


def _check_texts(settings: Mapping[str, Any]) -> None:
    """Refuse texts that no program or file can be given.

    Raises:
        ConfigurationError: There is one.
    """
    for key, value in settings.items():
        is_list = isinstance(value, list)
        for text in cast("list[Any]", value) if is_list else [value]:
            if isinstance(text, str):
                name = _KEYWORDS.get(key, key.replace("-", "_"))
                _check_text(f"`{name}` {'holds' if is_list else 'is'} {text!r}", text)


def _check_text(what: str, text: str) -> None:
    if "\0" in text:
        raise ConfigurationError(f"{what}, and cannot have a NUL character in it")
    if not is_utf8(text):
        raise ConfigurationError(f"{what}, and has to be UTF-8, which a lone surrogate is not")


def _check_types(options: Mapping[str, Any]) -> None:
    """Refuse options of a wrong type, each by its name.

    Raises:
        ConfigurationError: There is one.
    """

    def refuse(name: str, wanted: str) -> NoReturn:
        raise ConfigurationError(f"`{name}` is {options[name]!r}, and has to be {wanted}")

    for name in _FLAG_OPTIONS:
        if options[name] is not None and not isinstance(options[name], bool):
            refuse(name, "`True` or `False`")
    if not isinstance(options["store_output"], bool):
        refuse("store_output", "`True` or `False`")
    for name in _TEXT_OPTIONS:
        if options[name] is not None and not isinstance(options[name], str):
            refuse(name, "a string")
    for name in _PATH_OPTIONS:
        if options[name] is not None and _path_text(options[name]) is None:
            refuse(name, "a path: a string or an `os.PathLike`")
    for name in _WHOLE_OPTIONS:
        if options[name] is not None and not isinstance(options[name], str) and _whole(options[name]) is None:
            refuse(name, "a whole number or a string")
    if options["cpus"] is not None and not isinstance(options["cpus"], str) and _real(options["cpus"]) is None:
        refuse("cpus", "a number or a string")
    env = options["env"]
    if env is not None and (isinstance(env, (str, bytes)) or not isinstance(env, Iterable)):
        refuse("env", "a mapping of names to values, or pairs of them")
    if options["approver"] is not None and not callable(options["approver"]):
        refuse("approver", "a function that is called with a `Question`")


def _variables(options: Mapping[str, Any]) -> list[str]:
    found: dict[str, str] = {}
    if options["inherit_env"]:
        for name, value in os.environ.items():
            own = _OWN.get("ssh" if _is_far(options) else options["environment"], ())
            # What no shell variable can be named stays behind.
            if name.isascii() and name.isidentifier() and name not in own and is_utf8(value):
                found[name] = value
    given: Any = options["env"] or ()
    pairs: Iterable[Any] = cast(Any, given).items() if isinstance(given, Mapping) else given
    for pair in pairs:
        if not isinstance(pair, (tuple, list)) or len(cast("Sequence[Any]", pair)) != 2:
            # Not shown: it may be a secret, as in `NAME=value`.
            raise ConfigurationError("`env` holds what is no pair, and has to be a mapping of names to values, or pairs of them")
        name, value = cast("Sequence[Any]", pair)
        if not isinstance(name, str) or not isinstance(value, str):
            raise ConfigurationError(f"`env` holds {name!r}: {value!r}, and names and values have to be strings")
        if not name or "=" in name or "\0" in name + value or not is_utf8(name + value):
            raise ConfigurationError(f"`env` holds {name!r}, and no variable can have this name or value")
        found[name] = value
    return [f"{name}={value}" for name, value in found.items()]


def _settings(options: Mapping[str, Any]) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    for name, choices in _CHOICES.items():
        if options[name] is not None and options[name] not in choices:
            listed = ", ".join(f"`{choice}`" for choice in choices[:-1])
            raise ConfigurationError(f"`{name}` is {options[name]!r}, and can be {listed} or `{choices[-1]}`")
    for name in _PLAIN:
        value = options[name]
        if name in _LISTS:
            value = _texts(name, value)
        if value is None or value is False or value == []:
            continue
        settings[_KEYS.get(name, name.replace("_", "-"))] = value
    policy = options["policy"]
    policies = _texts("policy", [policy] if isinstance(policy, (str, os.PathLike)) else policy)
    for name, paths in (("policy", policies), ("read", options["read"]), ("write", options["write"])):
        found = _texts(name, paths)
        if found:
            # A preset has no `/` and no `.`; whatever else is relative is relative to here.
            elsewhere = name != "policy" and _is_far(options)
            settings[name] = [
                one if elsewhere or name == "policy" and not ("/" in one or "." in one) else os.path.abspath(one)
                for one in found
            ]
    for name in ("shell", "audit"):
        if options[name] is not None:
            given_path: str | os.PathLike[str] = options[name]
            text = os.fspath(given_path)
            as_it_is = name == "shell" and ("/" not in text or _is_far(options))
            settings[name] = text if as_it_is else os.path.abspath(text)
    if options["workdir"] is not None:
        settings["workdir"] = os.fspath(options["workdir"])
    for name in ("memory", "file_size"):
        if options[name] is not None:
            settings[name.replace("_", "-")] = str(size_bytes(options[name], name))
    for name in _WHOLE_OPTIONS:
        if options[name] is not None:
            settings[name] = options[name] if isinstance(options[name], str) else str(_whole(options[name]))
    if options["cpus"] is not None:
        settings["cpus"] = options["cpus"] if isinstance(options["cpus"], str) else str(_real(options["cpus"]))
    settings["timeout"] = f"{duration_ms(options['timeout'])}ms"
    variables = _variables(options)
    if variables:
        settings["set-env"] = variables
    _check_texts(settings)
    return settings


def _in_keywords(words: str) -> str:
    """A message of the command line's, with its options as keywords: ``--env local`` is ``environment='local'``."""
    import re

    def keyword(found: re.Match[str]) -> str:
        name = _KEYWORDS.get(found.group(1), found.group(1).replace("-", "_"))
        value = found.group(2) or ""
        if name in _FLAGS:
            return f"{name}=True{value}"
        value = value.strip()
        if not value:
            return name
        # `NAME` stands for a value of the caller's.
        shown = value if value.isupper() else repr(value)
        return f"{name}=[{shown}]" if name in _LISTS else f"{name}={shown}"

    # The place is one in a text that the caller never sees, and that it is an error the exception says.
    words = re.sub(r" at line \d+ column \d+\Z", "", words.removeprefix("error: "))
    return re.sub(r"--([a-z][a-z-]*)( [^`\s]+(?=`)| [a-z]+(?=[` ]))?", keyword, words)


_CHOICES = {
    "approval": ("always", "policy", "never"),
    "network": ("none", "loopback", "host"),
    "changes": ("direct", "commit", "review", "discard"),
    "home": ("private", "persistent"),
    "isolation": ("full", "landlock"),
    "engine": ("auto", "docker", "podman"),
    "pull": ("auto", "never", "always"),
    "preset": ("hardened", "plain"),
    "workspace_copy": ("in", "both"),
}
_KEYWORDS = {
    "env": "environment",
    "set-env": "env",
    "allow-host": "allow_hosts",
    "secret": "secrets",
    "volume": "volumes",
    "device": "devices",
}
_FLAGS = {
    "readonly",
    "acknowledge_unsafe",
    "open_protected",
    "allow_home",
    "record",
    "writable",
    "unlimited",
    "per_command",
    "no_mount",
    "privileged",
}


def open_core(options: Mapping[str, Any]) -> _native.Core:
    """The native environment of these keywords. Nothing starts.

    Raises:
        ConfigurationError: One of them is wrong, or cannot be enforced here.
    """
    environment = options["environment"]
    if not isinstance(environment, str) or not (environment in _ENVIRONMENTS or environment.startswith("ssh://")):
        names = ", ".join(f"`{name}`" for name in _ENVIRONMENTS)
        raise ConfigurationError(
            f"there is no environment {environment!r}; there are {names}, and `ssh://[USER@]HOST[:PORT][/DIR]`"
        )
    _check_types(options)
    try:
        settings = _settings(options)
        given: str | os.PathLike[str] | None = options["workspace"]
        workspace: str
        if _is_far(options) or options["container"] is not None:
            # Of the other machine; its URL or its home says where if nobody does. A container that runs has none of ours.
            workspace = os.fspath(given) if given is not None else ""
        else:
            workspace = os.path.abspath(given if given is not None else os.getcwd())
        _check_text(f"`workspace` is {workspace!r}", workspace)
        approval_ms = duration_ms(options["approval_timeout"], "approval_timeout")
        max_output = size_bytes(options["max_output"], "max_output")
        output_limit = options["output_limit"]
        output_limit = None if output_limit is None else size_bytes(output_limit, "output_limit")
        if output_limit == 0:
            raise ArgumentError("`output_limit` is 0, and with that no command could print anything")
    except ArgumentError as error:
        raise ConfigurationError(str(error)) from None
    settings["max-output"] = str(max_output)
    import json  # of use here alone, and slow to import

    try:
        core = _native.open(
            json.dumps(settings),
            workspace,
            approval_ms,
            options["approver"] is not None,
            options["store_output"],
            output_limit,
        )
    except ValueError as error:
        raise ConfigurationError(_in_keywords(str(error))) from None
    return cast(_native.Core, _Checked(core))


class _Checked:
    """A native environment whose methods say what is wrong with an argument as every other function here does."""

    def __init__(self, core: _native.Core) -> None:
        self._core = core

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        found = getattr(self._core, name)
        if not callable(found):
            return found

        checked = with_plain_errors(found)
        # Found at once from now on. What may change is no method.
        self.__dict__[name] = checked
        return checked


# What arguments of the native module are to callers, where they have another name there.
_PUBLIC_NAMES = {"terminal": "tty", "until": "wait_for", "wait_ms": "wait", "budget_ms": "timeout"}


def with_plain_errors(function: Any) -> Any:
    """A native function that names the argument that it cannot take."""

    def checked(*arguments: Any) -> Any:
        try:
            return function(*arguments)
        except (OverflowError, TypeError, UnicodeEncodeError) as error:
            typed = function.__name__ == "job_write"
            raise ArgumentError(_wrong_argument(error, "text" if typed else "command")) from None

    return checked


def _wrong_argument(error: Exception, text: str) -> str:
    import re

    # A note tells the name; Python 3.10 has none, and there the message begins with it.
    told = [*getattr(error, "__notes__", ()), str(error)]
    name = next((found.group(1) for one in told if (found := re.search(r"(?:processing|argument) '(\w+)'", one))), None)
    words = re.sub(r"\Aargument '\w+': ", "", str(error))
    if name is None:
        return f"an argument has a wrong value: {words}"
    public = text if name == "text" else _PUBLIC_NAMES.get(name, name)
    return f"`{public}` has a wrong value: {words}"
