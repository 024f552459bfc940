"""What is answered: immutable typed objects with the fields of the JSON that the command line prints.

Each has ``to_dict()``, compares by value, can be pickled, and ignores fields that a newer version may add.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from . import _errors
from ._errors import CommandFailedError, CommandTimeoutError, DeniedError, NotStartedError
from ._typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

__all__ = [
    "Accepted",
    "ChangeTotals",
    "Changes",
    "CommandSeen",
    "Confinement",
    "Conflict",
    "Denial",
    "Description",
    "Edited",
    "Effect",
    "FileInfo",
    "FileRead",
    "Found",
    "Grepped",
    "HeldBack",
    "Hint",
    "Hit",
    "JobInfo",
    "KilledProcess",
    "LimitHit",
    "Listed",
    "No",
    "Outcome",
    "OutputPage",
    "Patched",
    "PatchedFile",
    "Question",
    "Reason",
    "Renamed",
    "Screen",
    "SessionInfo",
    "Span",
    "Verdict",
    "View",
    "Written",
    "Yes",
]

Status: TypeAlias = """Literal[
    "exited",
    "signalled",
    "timed_out",
    "out_of_memory",
    "output_limit",
    "denied",
    "needs_approval",
    "rate_limited",
    "running",
    "lost",
    "failed",
]"""
Decision: TypeAlias = 'Literal["allow", "ask", "deny"]'

if TYPE_CHECKING:
    from typing import TypeVar

    from typing_extensions import Self, dataclass_transform

    T = TypeVar("T")

    class _Record:
        def __init__(self, *values: Any, **named: Any) -> None: ...
        def to_dict(self) -> dict[str, Any]: ...
        @classmethod
        def from_dict(cls, data: Mapping[str, Any]) -> Self: ...

    @dataclass_transform(frozen_default=True)
    def _record(cls: type[T]) -> type[T]: ...

else:

    class _PydanticSerializer:
        """How pydantic has a record where it is told no type, as what an agent's tool returns."""

        def __get__(self, instance, owner):
            try:
                from pydantic_core import SchemaSerializer
            except ImportError:
                raise AttributeError("__pydantic_serializer__") from None
            return SchemaSerializer(owner.__get_pydantic_core_schema__(owner, None))

    _MISSING = object()

    # `dataclasses` would be right here and takes 10 ms to import, since it brings `inspect`.
    class _Record:
        __slots__ = ()
        _fields: ClassVar[tuple[str, ...]] = ()
        _defaults: ClassVar[dict[str, Any]] = {}
        _nested: ClassVar[dict[str, Callable[[Any], Any]]] = {}
        _slots: ClassVar[tuple[tuple[str, Callable[[Any, Any], None], Callable[[Any], Any] | None, Any], ...]] = ()
        __pydantic_serializer__ = _PydanticSerializer()

        def __init__(self, *values, **named):
            cls = type(self)
            if len(values) > len(cls._fields):
                raise TypeError(f"{cls.__name__} takes {len(cls._fields)} arguments, and {len(values)} were given")
            for name, value in zip(cls._fields, values):
                if name in named:
                    raise TypeError(f"{cls.__name__} got two values for `{name}`")
                object.__setattr__(self, name, value)
            for name in cls._fields[len(values) :]:
                if name in named:
                    object.__setattr__(self, name, named.pop(name))
                elif name in cls._defaults:
                    object.__setattr__(self, name, cls._defaults[name])
                else:
                    raise TypeError(f"{cls.__name__} misses `{name}`")
            if named:
                raise TypeError(f"{cls.__name__} has no `{next(iter(named))}`")

        def __setattr__(self, name, value):
            raise AttributeError(f"{type(self).__name__} cannot be changed")

        def __delattr__(self, name):
            raise AttributeError(f"{type(self).__name__} cannot be changed")

        def __repr__(self):
            shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in self._fields)
            return f"{type(self).__name__}({shown})"

        def __eq__(self, other):
            if type(other) is not type(self):
                return NotImplemented
            return all(getattr(self, name) == getattr(other, name) for name in self._fields)

        def __hash__(self):
            return hash((type(self), repr(self)))

        def __reduce__(self):
            return type(self), tuple(getattr(self, name) for name in self._fields)

        @classmethod
        def __get_pydantic_core_schema__(cls, _source, _handler):
            from pydantic_core import core_schema

            return core_schema.json_or_python_schema(
                json_schema=core_schema.no_info_plain_validator_function(cls.from_dict),
                python_schema=core_schema.is_instance_schema(cls),
                serialization=core_schema.plain_serializer_function_ser_schema(cls.to_dict),
            )

        @classmethod
        def __get_pydantic_json_schema__(cls, _schema, _handler):
            return {"type": "object", "title": cls.__name__}

        def to_dict(self):
            return {name: _plain(getattr(self, name)) for name in self._fields}

        @classmethod
        def from_dict(cls, data):
            self = object.__new__(cls)
            get = data.get
            for name, put, nested, default in cls._slots:
                value = get(name, _MISSING)
                if value is _MISSING:
                    if default is _MISSING:
                        raise KeyError(name)
                    value = default
                elif nested is not None and value is not None:
                    value = nested(value)
                put(self, value)
            return self

    def _plain(value):
        if isinstance(value, _Record):
            return value.to_dict()
        if isinstance(value, (tuple, list)):
            return [_plain(one) for one in value]
        if isinstance(value, Mapping):
            return {name: _plain(one) for name, one in value.items()}
        return value

    def _record(cls):
        fields = tuple(name for name, kind in cls.__annotations__.items() if not kind.startswith("ClassVar"))
        body = dict(cls.__dict__)
        defaults = {name: body.pop(name) for name in fields if name in body}
        for name in ("__dict__", "__weakref__"):
            body.pop(name, None)
        # The fields become slots; a class cell is not needed, since no method uses `super()`.
        body.update(__slots__=fields, _fields=fields, _defaults=defaults, __match_args__=fields)
        made = type(cls)(cls.__name__, cls.__bases__, body)
        # Looked up once: every answer goes through them.
        made._slots = tuple(
            (name, made.__dict__[name].__set__, made._nested.get(name), defaults.get(name, _MISSING)) for name in fields
        )
        return made


def _many(kind: Callable[[Any], T]) -> Callable[[Any], tuple[T, ...]]:
    return lambda values: tuple(kind(value) for value in values)


@_record
class Span(_Record):
    """A part of a command text.

    Attributes:
        start: Its first byte, as an offset into the UTF-8 text.
        end: The byte after its last one.
    """

    start: int
    end: int


@_record
class Reason(_Record):
    """Why a command is not simply allowed.

    Attributes:
        decision: What this reason asks for.
        rule: The rule that says so, such as ``readonly`` or ``policy.toml:14 no-force-push``.
        object: The part of the command that the rule is about.
        span: Where that part stands in the text, if it does.
        because: Why, as a fact.
        instead: What would be allowed instead, where the rule knows.
    """

    decision: Decision
    rule: str
    object: str
    span: Span | None
    because: str
    instead: str | None

    _nested: ClassVar[dict[str, Callable[[Any], Any]]] = {"span": Span.from_dict}


@_record
class Denial(_Record):
    """A refusal, with all that a caller needs to do better.

    Attributes:
        layer: Which stage refused: ``policy``, ``rate``, ``approval`` or ``environment``.
        decision: ``deny``, or ``ask`` where a yes would help.
        reasons: Why.
        retry_after_ms: Milliseconds after which a retry can help, for a rate limit.
    """

    layer: Literal["policy", "rate", "approval", "environment"]
    decision: Decision
    reasons: tuple[Reason, ...]
    retry_after_ms: int | None = None

    _nested: ClassVar[dict[str, Callable[[Any], Any]]] = {"reasons": _many(Reason.from_dict)}

    def message(self) -> str:
        """The refusal in words, for a model or a person: one block of lines for each reason."""
        lines: list[str] = []
        for reason in self.reasons:
            lines.append(f"{'needs approval' if reason.decision == 'ask' else 'denied'}: `{reason.object}`: {reason.because}")
            lines.append(f"rule     {reason.rule}")
            if reason.instead:
                lines.append(f"instead  {reason.instead}")
        if self.retry_after_ms is not None:
            lines.append(f"retry    after {self.retry_after_ms / 1000:.1f} s")
        return "\n".join(lines)


@_record
class Confinement(_Record):
    """What the environment really enforced, read back.

    Attributes:
        enforced: The layers in force, such as ``user``, ``mount``, ``landlock``, ``seccomp``.
        missing: The layers that were asked for and are not in force.
    """

    enforced: tuple[str, ...]
    missing: tuple[str, ...]

    _nested: ClassVar[dict[str, Callable[[Any], Any]]] = {"enforced": tuple, "missing": tuple}


@_record
class HeldBack(_Record):
    """Something that a command made and that was not left where the user's tools would run code from it.

    Attributes:
        path: Where it was made; relative to the workspace if it lies there.
        because: Why it was held back.
        instead: Where it is now, and how it can be had.
        id: The id of the change set that it waits in, if it does.
        answer: ``refused``, ``unanswered``, ``changed`` or ``failed``, if a person was asked about it.
    """

    path: str
    because: str
    instead: str
    id: str | None
    answer: str | None


@_record
class Accepted(_Record):
    """Something that was held back until a person let it into the workspace.

    Attributes:
        path: Its path; relative to the workspace if it lies there.
        id: The id of the committed change set, for ``shieling undo``.
    """

    path: str
    id: str


@_record
class ChangeTotals(_Record):
    """Exact numbers of changed paths, where the lists are cut.

    Attributes:
        added: Number of added paths.
        modified: Number of modified paths.
        deleted: Number of deleted paths.
        renamed: Number of renames, each of a deleted and an added path.
        held_back: Number of paths that were held back.
        conflicts: Number of conflicts.
    """

    added: int
    modified: int
    deleted: int
    renamed: int
    held_back: int
    conflicts: int


@_record
class Conflict(_Record):
    """A path that both a command and somebody else changed.

    Attributes:
        path: The path, relative to the workspace.
        because: What both sides did.
        instead: What to do about it.
    """

    path: str
    because: str
    instead: str


@_record
class Renamed(_Record):
    """A file, a link or a directory that got another name, with the same content.

    Attributes:
        old_path: Its name before, relative to the workspace.
        new_path: Its name now, relative to the workspace.
    """

    old_path: str
    new_path: str


@_record
class Changes(_Record):
    """A command's changes to the workspace.

    Attributes:
        id: The id of the stored changes, for ``shieling changes`` and ``shieling undo``; ``None`` if nothing is stored.
        mode: ``direct``, ``commit``, ``review`` or ``discard``.
        state: ``committed``, ``waiting``, ``discarded`` or ``conflict``.
        added: Added paths, if known; at most 200.
        modified: Modified paths, if known; at most 200.
        deleted: Deleted paths, if known; at most 200.
        renamed: Which of the deleted and added paths are the same thing under another name, if known; at most 200.
        totals: The exact numbers, if known.
        held_back: What was not let into the workspace.
        accepted: What was held back until a person let it into the workspace.
        conflicts: What was changed by others as well.
        answer: What a person answered who was asked about changes that wait, if it was no yes: ``refused`` or
            ``unanswered``.
    """

    id: str | None
    mode: str
    state: str
    added: tuple[str, ...] | None
    modified: tuple[str, ...] | None
    deleted: tuple[str, ...] | None
    renamed: tuple[Renamed, ...] | None
    totals: ChangeTotals | None
    held_back: tuple[HeldBack, ...]
    accepted: tuple[Accepted, ...]
    conflicts: tuple[Conflict, ...]
    answer: str | None = None

    _nested: ClassVar[dict[str, Callable[[Any], Any]]] = {
        "added": tuple,
        "modified": tuple,
        "deleted": tuple,
        "renamed": _many(Renamed.from_dict),
        "totals": ChangeTotals.from_dict,
        "held_back": _many(HeldBack.from_dict),
        "accepted": _many(Accepted.from_dict),
        "conflicts": _many(Conflict.from_dict),
    }


@_record
class NetworkConnection(_Record):
    """A host that commands connected to, with all connections to it.

    Attributes:
        host: The name, or the address if a rule names one.
        port: The port.
        bytes_in: Bytes that came from the host.
        bytes_out: Bytes that went to it.
        count: How many connections there were.
        error: Why the last one that failed did.
    """

    host: str
    port: int
    bytes_in: int
    bytes_out: int
    count: int = 1
    error: str | None = None


@_record
class NetworkDenied(_Record):
    """A host that commands tried to reach and were refused.

    Attributes:
        host: The name or the address.
        port: The port; ``None`` if the name was only looked up.
        because: Why it was refused.
        instead: What to do instead, if that is known.
        count: How often it was tried.
    """

    host: str
    port: int | None
    because: str
    instead: str | None
    count: int = 1


@_record
class Network(_Record):
    """The use of a network that is opened by name.

    Attributes:
        connections: The hosts that were connected to.
        denied: The hosts that were refused.
        always: The hosts that a person has allowed for always, as ``allow_hosts`` takes them.
        omitted: How many connections and refusals are not listed.
    """

    connections: tuple[NetworkConnection, ...]
    denied: tuple[NetworkDenied, ...]
    always: tuple[str, ...] = ()
    omitted: int = 0

    _nested: ClassVar[dict[str, Callable[[Any], Any]]] = {
        "connections": _many(NetworkConnection.from_dict),
        "denied": _many(NetworkDenied.from_dict),
        "always": tuple,
    }


@_record
class Hint(_Record):
    """A failure that the environment can explain.

    Attributes:
        kind: ``protected``, ``permissions``, ``read_only``, ``not_shown``, ``network`` or ``no_space``.
        path: The path that it is about, if it is about one.
        because: Why.
        instead: What to do instead.
    """

    kind: str
    path: str | None
    because: str
    instead: str


@_record
class KilledProcess(_Record):
    """A process that was killed at a limit.

    Attributes:
        pid: Its number, as commands see it.
        name: The name of its program, cut to 15 bytes.
        bytes: The memory that it was last seen to have, in bytes.
    """

    pid: int
    name: str
    bytes: int


@_record
class LimitHit(_Record):
    """A limit that was reached while a command ran.

    Attributes:
        limit: ``memory``, ``pids`` or ``file_size``.
        bound: The limit: bytes, or processes and threads.
        peak: The most that all processes had together, where it is known.
        times: How often it was reached; ``None`` if nobody counts.
        killed: Who was killed, the last 8 of them.
        instead: The option that allows more.
    """

    limit: str
    bound: int
    peak: int | None
    times: int | None
    killed: tuple[KilledProcess, ...]
    instead: str

    _nested: ClassVar[dict[str, Callable[[Any], Any]]] = {"killed": _many(KilledProcess.from_dict)}


@_record
class Outcome(_Record):
    """What really happened to one command. The same object as ``shieling exec --json`` prints.

    Attributes:
        status: How it ended, or ``running``.
        exit_code: The exit code; 124 for ``timed_out``, 128+N for ``signalled``; otherwise ``None`` unless ``exited``.
        signal: The number of the signal that ended it.
        stdout: Standard output as text, invalid UTF-8 replaced, head and tail kept up to ``max_output`` bytes.
        stderr: Standard error, likewise.
        stdout_bytes: How many bytes it wrote to standard output in all.
        stderr_bytes: How many bytes it wrote to standard error in all.
        truncated: Whether any byte was left out of ``stdout`` or ``stderr``.
        output_id: The key for :meth:`Shieling.output`, where more than what is here was kept.
        duration_ms: How long it ran, in milliseconds.
        cwd: Where the session stands afterwards.
        environment: The environment's name.
        confinement: What that environment enforced.
        survivors: Processes that were still alive after everything was done to end them.
        ended_processes: Processes that the command left behind and that were ended.
        session: The session that it ran in.
        session_restarted: Whether the session's shell had to be started anew.
        job: The job, if it goes on.
        recording: Its recording, if it is recorded.
        changes: What became of its changes of the workspace, where there is something to tell.
        network: What it reached and was refused on the network, where there is something to tell.
        hints: What explains its failure.
        limits_hit: Limits that were reached while it ran.
        denial: Why it was refused, if it was.
        error: What went wrong, for ``failed`` and ``lost``.

    >>> from shieling import Shieling
    >>> with Shieling("memory") as shieling:
    ...     outcome = shieling.run("echo hello; exit 3")
    >>> outcome.status, outcome.exit_code, outcome.stdout
    ('exited', 3, 'hello\\n')
    """

    status: Status
    exit_code: int | None
    signal: int | None
    stdout: str
    stderr: str
    stdout_bytes: int
    stderr_bytes: int
    truncated: bool
    output_id: str | None
    duration_ms: float
    cwd: str
    environment: str
    confinement: Confinement
    survivors: int = 0
    ended_processes: int = 0
    session: str | None = None
    session_restarted: bool = False
    job: str | None = None
    recording: str | None = None
    changes: Changes | None = None
    network: Network | None = None
    hints: tuple[Hint, ...] = ()
    limits_hit: tuple[LimitHit, ...] = ()
    denial: Denial | None = None
    error: str | None = None

    _nested: ClassVar[dict[str, Callable[[Any], Any]]] = {
        "confinement": Confinement.from_dict,
        "changes": Changes.from_dict,
        "network": Network.from_dict,
        "hints": _many(Hint.from_dict),
        "limits_hit": _many(LimitHit.from_dict),
        "denial": Denial.from_dict,
    }

    @property
    def ok(self) -> bool:
        """Whether it exited with 0."""
        return self.status == "exited" and self.exit_code == 0

    @property
    def output(self) -> str:
        """Standard output, and standard error after it."""
        if not self.stdout or not self.stderr:
            return self.stdout or self.stderr
        return f"{self.stdout}{'' if self.stdout.endswith(chr(10)) else chr(10)}{self.stderr}"

    def check(self) -> Outcome:
        """Return this outcome if it exited with 0, and raise otherwise.

        Raises:
            DeniedError: It was refused, or came too soon.
            CommandTimeoutError: It ran out of its time.
            NotStartedError: It could not be started, or contact to it was lost.
            CommandFailedError: It failed in another way, or is still running.

        >>> from shieling import Shieling, CommandFailedError
        >>> with Shieling("memory") as shieling:
        ...     try:
        ...         shieling.run("exit 3").check()
        ...     except CommandFailedError as error:
        ...         print(error)
        the command exited with 3
        """
        if self.ok:
            return self
        if self.denial is not None:
            raise DeniedError(self.denial.message(), self.denial, self)
        if self.status == "timed_out":
            raise CommandTimeoutError(f"the command ran out of its time after {self.duration_ms / 1000:.1f} s", self)
        if self.status in ("failed", "lost"):
            raise NotStartedError(self.error or f"the command ended as `{self.status}`", self)
        if self.status == "exited":
            message = f"the command exited with {self.exit_code}"
        elif self.status == "signalled":
            message = f"signal {self.signal} ended the command"
        else:
            message = f"the command ended as `{self.status}`"
        last = self.stderr.rstrip().rpartition("\n")[2]
        raise CommandFailedError(f"{message}: {last}" if last else message, self)


@_record
class CommandSeen(_Record):
    """A command that a text can launch.

    Attributes:
        argv: Its words after quote removal.
        span: Where it stands.
    """

    argv: tuple[str, ...]
    span: Span

    _nested: ClassVar[dict[str, Callable[[Any], Any]]] = {"argv": tuple, "span": Span.from_dict}


@_record
class Effect(_Record):
    """One thing that a command is known to do.

    Attributes:
        kind: ``reads``, ``writes``, ``runs``, ``network`` or ``unknown``.
        object: To what.
        span: Where the text says so.
    """

    kind: Literal["reads", "writes", "runs", "network", "unknown"]
    object: str
    span: Span

    _nested: ClassVar[dict[str, Callable[[Any], Any]]] = {"span": Span.from_dict}


@_record
class Verdict(_Record):
    """What the policy says of a command, without running it.

    Attributes:
        decision: The strictest of the reasons; ``allow`` where there is none.
        reasons: Why it is not simply allowed.
        commands: Every command that the text can launch.
        effects: Everything that those are known to do.
    """

    decision: Decision
    reasons: tuple[Reason, ...]
    commands: tuple[CommandSeen, ...]
    effects: tuple[Effect, ...]

    _nested: ClassVar[dict[str, Callable[[Any], Any]]] = {
        "reasons": _many(Reason.from_dict),
        "commands": _many(CommandSeen.from_dict),
        "effects": _many(Effect.from_dict),
    }


@_record
class Question(_Record):
    """What an approver is asked.

    Attributes:
        kind: ``command``, ``files`` or ``network``.
        text: The command's text, or how the operation on files reads.
        change: What an operation on files would change, as a diff.
        cwd: Where it is to run.
        variables: The names of the variables that it gets.
        verdict: What the policy says, with reasons, commands and effects.
        environment: The name of the environment.
        session: The session that it belongs to.
        files: The workspace files that the text runs.
        changed: Those of them that changed since the same question was answered with yes; empty the first time.
    """

    kind: Literal["command", "files", "network"]
    text: str
    change: str | None
    cwd: str
    variables: tuple[str, ...]
    verdict: Verdict
    environment: str
    session: str | None
    files: tuple[str, ...]
    changed: tuple[str, ...]

    _nested: ClassVar[dict[str, Callable[[Any], Any]]] = {
        "variables": tuple,
        "verdict": Verdict.from_dict,
        "files": tuple,
        "changed": tuple,
    }


@_record
class Yes(_Record):
    """An approver's yes.

    Attributes:
        scope: ``once``: this start. ``exact``: this very command again, too. ``prefix``: commands of which every
            part begins with the words of ``prefix``. ``session``: in the session of this command, others that launch
            only the same programs for the same reasons.
        prefix: The words, for ``prefix``.
        uses: How many starts it covers, this one included. Default: 100. Not for ``once``.
        seconds: How long it holds. Default: an hour. Not for ``once``.

    >>> Yes("prefix", prefix=("git", "push"), seconds=600)
    Yes(scope='prefix', prefix=('git', 'push'), uses=None, seconds=600)
    """

    scope: Literal["once", "exact", "prefix", "session", "always"] = "once"
    prefix: tuple[str, ...] = ()
    uses: int | None = None
    seconds: float | None = None


@_record
class No(_Record):
    """An approver's no.

    Attributes:
        because: Words for whoever asked; they stand in the denial.
    """

    because: str = ""


@_record
class Screen(_Record):
    """What a person would see on a job's terminal.

    Attributes:
        rows: Its lines.
        columns: Characters in a line.
        text: Its lines, without the blanks at their ends.
        cursor: Where the cursor is, line and column from 0; ``None`` if it is hidden.
        alternate: Whether a full-screen program has it.
        title: The title that the program gave it.
    """

    rows: int
    columns: int
    text: str
    cursor: tuple[int, int] | None
    alternate: bool
    title: str

    _nested: ClassVar[dict[str, Callable[[Any], Any]]] = {"cursor": tuple}


@_record
class View(_Record):
    """A job as it is now.

    Attributes:
        outcome: Its outcome so far; ``stdout`` and ``stderr`` hold what is new.
        cursor: Where the next view goes on.
        missed_bytes: Bytes after the cursor asked from that are no longer kept; the whole output is in ``output_id``, if that is given.
        command: The command's text.
        screen: What a person would see, if that was asked for.
    """

    outcome: Outcome
    cursor: int
    missed_bytes: int
    command: str
    screen: Screen | None

    _nested: ClassVar[dict[str, Callable[[Any], Any]]] = {"outcome": Outcome.from_dict, "screen": Screen.from_dict}


@_record
class JobInfo(_Record):
    """A job in a list.

    Attributes:
        job: Its name.
        session: The session that it belongs to.
        command: The first 200 bytes of its text.
        status: How it is.
        exit_code: How it ended.
        duration_ms: How long it has run, in milliseconds.
        output_bytes: How much it has written.
        unseen_bytes: How much of that no view has shown.
        terminal: Whether it has a terminal.
        person: Whether a person has its keyboard.
        recording: Its recording.
    """

    job: str
    session: str | None
    command: str
    status: Status
    exit_code: int | None
    duration_ms: float
    output_bytes: int
    unseen_bytes: int
    terminal: bool
    person: bool
    recording: str | None = None


@_record
class SessionInfo(_Record):
    """A session in a list.

    Attributes:
        session: Its name.
        cwd: Where it stands.
        job: The job that keeps it busy.
        restarts: How often its shell had to be started anew.
        commands: How many commands it has run.
        recording: Its recording.
    """

    session: str
    cwd: str
    job: str | None
    restarts: int
    commands: int
    recording: str | None = None


@_record
class OutputPage(_Record):
    """A part of a command's whole output.

    Attributes:
        data: The bytes.
        next: The cursor of the next part; ``None`` at the end of what is kept.
    """

    data: bytes
    next: int | None


@_record
class Description(_Record):
    """The environment as a model should be told of it.

    Attributes:
        text: The description, for a model.
        data: The same, for a program.
    """

    text: str
    data: dict[str, Any]


@_record
class FileRead(_Record):
    """What was read of a file.

    Attributes:
        path: The file's own path, with no link in it.
        size: Its size in bytes.
        hash: Its state, for ``expect=`` of a later write or edit.
        kind: ``text``, ``image`` or ``binary``.
        text: The lines asked for (``kind == "text"``).
        offset: The first of them, counted from 0.
        lines: How many they are.
        total_lines: How many the file has; ``None`` if it was not read to its end.
        next_offset: Where to read on, if there is more.
        encoding: How the file is encoded, such as ``utf-8`` or ``utf-16le``.
        cut_bytes: Bytes of the last line that were left out, since it is too long.
        mime: The image's type, such as ``image/png`` (``kind == "image"``).
        data: The image's bytes.
        format: What a binary file may be, by its first bytes.
        why: Why an image is not given as one.
    """

    path: str
    size: int
    hash: str
    kind: Literal["text", "image", "binary"]
    text: str = ""
    offset: int = 0
    lines: int = 0
    total_lines: int | None = None
    next_offset: int | None = None
    encoding: str | None = None
    cut_bytes: int = 0
    mime: str | None = None
    data: bytes = b""
    format: str | None = None
    why: str | None = None


@_record
class Written(_Record):
    """A file that was written.

    Attributes:
        path: Its own path.
        created: Whether it is new.
        size: Its size now, in bytes.
        hash: Its state now.
        diff: What changed, as a unified diff; ``None`` if it is new or not text.
        note: What there is to know of where it is, such as that it does not last.
    """

    path: str
    created: bool
    size: int
    hash: str
    diff: str | None = None
    note: str | None = None


@_record
class Edited(_Record):
    """A file that was edited.

    Attributes:
        path: Its own path.
        replacements: How many occurrences were replaced.
        diff: What changed, as a unified diff.
        size: Its size now, in bytes.
        hash: Its state now.
        note: What there is to know of where it is.
    """

    path: str
    replacements: int
    diff: str
    size: int
    hash: str
    note: str | None = None


@_record
class PatchedFile(_Record):
    """A file that a patch has changed.

    Attributes:
        path: Its path now, or the one that it had if it was removed.
        change: ``added``, ``changed``, ``removed`` or ``moved``.
        added: Lines added.
        removed: Lines removed.
        hash: Its state now, if it is there.
        moved_from: Where it was, if it was moved.
    """

    path: str
    change: Literal["added", "changed", "removed", "moved"]
    added: int
    removed: int
    hash: str | None = None
    moved_from: str | None = None


@_record
class Patched(_Record):
    """What a patch has changed.

    Attributes:
        files: The files, as they stand in the patch.
        note: What there is to know of where they are.
    """

    files: tuple[PatchedFile, ...]
    note: str | None = None


@_record
class FileInfo(_Record):
    """What is known of a file without opening it.

    Attributes:
        path: Its path; in a list, its name.
        kind: ``file``, ``directory``, ``link``, ``fifo``, ``socket`` or ``device``.
        size: Its size in bytes, if it is a file.
        mode: Its permission bits, in octal.
        modified: When its content last changed, in RFC 3339.
        target: Where it leads, if it is a link. From :meth:`Shieling.stat`, the rest then describes what it leads to.
        dangling: Whether it is a link that leads nowhere.
        hash: Its state, from :meth:`Shieling.stat` of a file.
        note: After a removal or a move, what is worth knowing of it, such as that it was held back.
    """

    path: str
    kind: Literal["file", "directory", "link", "fifo", "socket", "device"]
    size: int | None
    mode: str
    modified: str
    target: str | None = None
    dangling: bool = False
    hash: str | None = None
    note: str | None = None


@_record
class Listed(_Record):
    """A directory that was listed.

    Attributes:
        path: Its own path.
        entries: Its entries, sorted by name.
        next: The name to go on after, if there is more.
    """

    path: str
    entries: tuple[FileInfo, ...]
    next: str | None = None

    _nested: ClassVar[dict[str, Callable[[Any], Any]]] = {"entries": _many(FileInfo.from_dict)}


@_record
class Found(_Record):
    """Files that were found by name, sorted by path.

    Attributes:
        root: The directory that was looked at.
        paths: Their paths, relative to the root.
        next: The path to go on after, if there is more.
        unreadable: How many directories or files could not be looked at.
    """

    root: str
    paths: tuple[str, ...]
    next: str | None = None
    unreadable: int = 0

    _nested: ClassVar[dict[str, Callable[[Any], Any]]] = {"paths": tuple}


@_record
class Hit(_Record):
    """A line or a file that a search found.

    Attributes:
        path: The file, relative to the root.
        line: The line's number, counted from 1; ``None`` for a file.
        text: The line without its end, at most 1,000 characters of it.
        matched: Whether it matches, or only stands beside a line that does.
        count: How many lines match, for ``mode="count"``.
    """

    path: str
    line: int | None
    text: str | None
    matched: bool
    count: int | None = None


@_record
class Grepped(_Record):
    """What a search found, sorted by path.

    Attributes:
        root: The directory that was searched.
        hits: Lines for ``mode="content"``; files otherwise.
        next: Where to go on, if there is more.
        searched: How many files were searched.
        binary: How many were left out since they are binary.
        unreadable: How many could not be looked at.
    """

    root: str
    hits: tuple[Hit, ...]
    next: str | None = None
    searched: int = 0
    binary: int = 0
    unreadable: int = 0

    _nested: ClassVar[dict[str, Callable[[Any], Any]]] = {"hits": _many(Hit.from_dict)}

# The annotations of the exceptions name these.
setattr(_errors, "Denial", Denial)
setattr(_errors, "Outcome", Outcome)
