"""The environment for ordinary, blocking code. `_async.py` is made from this file by `generate_async.py`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from os import PathLike
from types import TracebackType

from . import _convert as convert
from ._call import Asker, wait_call
from ._errors import ArgumentError
from ._options import Approver, EnvironmentName, open_core
from ._records import (
    Changes,
    Description,
    Edited,
    FileInfo,
    FileRead,
    Found,
    Grepped,
    JobInfo,
    Listed,
    Outcome,
    OutputPage,
    Patched,
    SessionInfo,
    Verdict,
    View,
    Written,
)
from ._typing import Any, Literal

__all__ = ["Job", "Process", "Session", "Shieling", "Stream"]

Path = str | PathLike[str]
Duration = float | timedelta | str
Size = int | str


class Shieling:
    """One environment in which commands run, with its policy, approvals, bounds and log.

    Methods may be called from several threads at once. Leaving the ``with`` block, or :meth:`close`, ends every
    session, job and process of it. Nothing starts before the first command.

    Args:
        environment: ``sandbox``: confined by the kernel, on this host. ``local``: an ordinary process of this host,
            unconfined. ``memory``: a bash and files of its own in memory, no process at all. A command there takes its
            input whole, as ``stdin`` of :meth:`run`; nobody writes to it while it runs.
            ``ssh://[USER@]HOST[:PORT][/DIR]``: another machine, over your own ``ssh``, which is connected at once: in a
            sandbox there where that machine can have one, otherwise unconfined there.
        workspace: The working directory and only writable place. Default: the current directory. In ``memory`` it
            is only a name. Over ``ssh`` it is a directory there, and can stand in the URL instead.
        policy: Names of presets or paths of TOML files; the strictest verdict wins. Default: everything is allowed.
        allow: Only commands that start with one of these prefixes may run. Default: all.
        deny: Commands that start with one of these may not run.
        ignore: Patterns as in ``.gitignore``; these paths are hidden.
        readonly: Whether nothing may change.
        approval: When the approver is asked: ``always``, only where the ``policy`` wants it, or ``never`` (what wants
            a yes is then refused). Default: ``always`` in ``local``, ``policy`` elsewhere.
        approver: A function that is asked, with a :class:`Question`. It answers ``True``, ``False``, a :class:`Yes`,
            a :class:`No`, or ``None`` where nobody can answer; it may be ``async``. It runs in a thread of its own
            (``async`` ones of :class:`AsyncShieling` in the caller's event loop). What it raises is raised by the
            call that asked, and nothing starts. No call asks about a connection (``allow_hosts``): what is raised there
            refuses it, and goes to ``threading.excepthook`` or the loop's exception handler. Default: nobody is there, so what wants a yes is refused.
        approval_timeout: Seconds after which nobody has answered. Default: 600.
        acknowledge_unsafe: Must be set for ``local`` with ``approval="never"``, and for what undoes a container's isolation.
        require_shell_approval: Whether every command is asked about, whatever the policy says.
        require_write_approval: Whether every change made by the file methods is asked about.
        network: ``none``, ``loopback`` (the sandbox's own) or ``host``. Default: ``loopback`` in ``sandbox``, ``host``
            in ``local``, ``none`` in ``memory``.
        allow_hosts: Hosts that are opened by name (``sandbox``), each ``"NAME"`` or ``"NAME:PORT"``, as ``--allow-host``
            takes them: ``"pypi.org"``, ``"*.example.org"``, ``"host.internal:5432"``, or a set such as ``"@python"``.
            An approver is asked about the first connection to another host.
        secrets: Secrets that commands use and never see, each ``"VAR@HOST"`` or ``"VAR@HOST=SOURCE"``, as ``--secret``
            takes them.
        changes: Where writes to the workspace go: ``direct``, or staged: ``commit`` (judged, after each command),
            ``review`` (once the approver has agreed to the diff), ``discard``. ``sandbox`` alone.
        read: More paths that may be read (``sandbox``).
        write: More paths that may be written (``sandbox``).
        home: ``private`` (gone with the sandbox) or ``persistent`` (kept per workspace). Default: ``private``.
        env: Variables that commands get, besides a short list of harmless ones: a mapping, or pairs.
        pass_env: Names of variables of this process that commands get.
        inherit_env: Whether commands get every variable of this process. ``env`` is laid over them.
        isolation: ``full``, or ``landlock`` for hosts without user namespaces. Default: ``full``.
        shell: The bash that reads commands. Default: the system's.
        open_protected: Whether commands can change ``.git/hooks`` and the like.
        allow_home: Whether the workspace may be a home directory.
        image: The image of the container (``container``), closed by default: see ``shieling exec --help``.
        engine: The container engine. Default: Docker if it answers, and otherwise Podman.
        pull: When the image is pulled. Default: ``auto``, if the engine does not have it.
        container: A container that runs already, in place of ``image``.
        volumes: More of this host in the container, each ``"SRC:DST"`` or ``"SRC:DST:ro"``.
        user: Who commands of the container run as: ``"UID:GID"``, or ``"keep"`` for the owner of the workspace. Default:
            65534:65534.
        writable: Whether commands of the container can write the workspace.
        runtime: The OCI runtime, by the name that the engine has for it.
        preset: ``hardened``, or ``plain`` for what the engine does by itself. Default: ``hardened``.
        unlimited: Whether the default limits on memory and processes of a container are left out.
        engine_network: A network of the engine's. Default: none.
        workdir: The directory of the container that is worked in. Default: ``/workspace``.
        workspace_copy: How the workspace is copied into memory of the container instead of being mounted: ``in`` (what
            commands change there goes with the container) or ``both`` (at the close it is judged and moved into the
            workspace, all of it or nothing: see ``changes_at_close``). Default: it is mounted.
        per_command: Whether each command gets a container of its own, which is removed after it. There are no sessions
            then, and files are reached where the workspace is mounted.
        no_mount: Whether the container works in an empty directory in memory, without a workspace of this host.
        privileged: Whether the container is privileged; needs ``acknowledge_unsafe``.
        devices: Devices of this host; needs ``acknowledge_unsafe``.
        cap_add: More capabilities; needs ``acknowledge_unsafe``.
        timeout: Time of one command: seconds, a timedelta, or ``"2m"``. Default: 60 seconds. 0 is refused.
        max_output: Bytes of each stream that an outcome keeps, head and tail: a number or ``"64KiB"``. Default: 64 KiB.
            A number that is given explicitly never ends the command.
        memory: Memory of all processes together: bytes or ``"1GiB"``. Default: 4 GiB in ``sandbox``, 256 MiB of files
            in ``memory``, no limit in ``local`` (where setting one is refused).
        pids: Processes and threads that may exist at once. Default: 512 in ``sandbox``.
        cpus: Processors' worth of time, such as 1.5. Default: no limit.
        file_size: The largest file that a command may write. Default: no limit.
        rate: How many commands may start, as ``"3/10,10/60"``: 3 in 10 seconds and 10 in 60. Default: no limit.
        audit: A file to which a hash-chained record is appended. Default: none.
        record: Whether what commands print is recorded for ``shieling log replay``.
        output_limit: Bytes that a command may print, both streams together. One that prints more is ended, and its
            status is ``output_limit``. Default: no limit.
        store_output: Whether output beyond ``max_output`` is kept for :meth:`output`, 16 MiB for each command.

    Raises:
        ConfigurationError: An option is wrong, or cannot be enforced here.

    >>> with Shieling("memory", readonly=True) as shieling:
    ...     outcome = shieling.run("rm -rf /")
    ...     print(outcome.status)
    denied
    """

    def __init__(
        self,
        environment: EnvironmentName = "sandbox",
        *,
        workspace: Path | None = None,
        policy: Path | Sequence[Path] = (),
        allow: Sequence[str] = (),
        deny: Sequence[str] = (),
        ignore: Sequence[str] = (),
        readonly: bool = False,
        approval: Literal["always", "policy", "never"] | None = None,
        approver: Approver | None = None,
        approval_timeout: Duration = 600.0,
        acknowledge_unsafe: bool = False,
        require_shell_approval: bool = False,
        require_write_approval: bool = False,
        network: Literal["none", "loopback", "host"] | None = None,
        allow_hosts: Sequence[str] = (),
        secrets: Sequence[str] = (),
        changes: Literal["direct", "commit", "review", "discard"] = "direct",
        read: Sequence[Path] = (),
        write: Sequence[Path] = (),
        home: Literal["private", "persistent"] | None = None,
        env: Mapping[str, str] | Iterable[tuple[str, str]] | None = None,
        pass_env: Sequence[str] = (),
        inherit_env: bool = False,
        isolation: Literal["full", "landlock"] | None = None,
        shell: Path | None = None,
        open_protected: bool = False,
        allow_home: bool = False,
        image: str | None = None,
        engine: Literal["auto", "docker", "podman"] | None = None,
        pull: Literal["auto", "never", "always"] | None = None,
        container: str | None = None,
        volumes: Sequence[str] = (),
        user: str | None = None,
        writable: bool = False,
        runtime: str | None = None,
        preset: Literal["hardened", "plain"] | None = None,
        unlimited: bool = False,
        engine_network: str | None = None,
        workdir: Path | None = None,
        workspace_copy: Literal["in", "both"] | None = None,
        per_command: bool = False,
        no_mount: bool = False,
        privileged: bool = False,
        devices: Sequence[str] = (),
        cap_add: Sequence[str] = (),
        timeout: Duration = 60.0,
        max_output: Size = 65_536,
        memory: Size | None = None,
        pids: int | None = None,
        cpus: float | None = None,
        file_size: Size | None = None,
        rate: str | None = None,
        audit: Path | None = None,
        record: bool = False,
        output_limit: Size | None = None,
        store_output: bool = True,
    ) -> None:
        options = dict(locals())
        del options["self"]
        self._core = open_core(options)
        self._approver = None if approver is None else Asker(approver, self._core)
        self._changes_at_close: Changes | None = None
        self._close_error: str | None = None

    @property
    def environment(self) -> str:
        """The name of the environment.

        >>> with Shieling("memory") as shieling:
        ...     print(shieling.environment)
        memory
        """
        return self._core.environment

    @property
    def workspace(self) -> str:
        """The workspace's absolute path, as commands see it.

        >>> with Shieling("memory", workspace="/work") as shieling:
        ...     print(shieling.workspace)
        /work
        """
        return str(self._core.workspace)

    @property
    def closed(self) -> bool:
        """Whether it was closed.

        >>> with Shieling("memory") as shieling:
        ...     print(shieling.closed)
        False
        """
        return self._core.closed

    @property
    def changes_at_close(self) -> Changes | None:
        """What became of changes that come into the workspace when this is closed (``workspace_copy="both"``).

        ``None`` before that, and where nothing had changed.

        >>> with Shieling("memory") as shieling:
        ...     print(shieling.changes_at_close)
        None
        """
        return self._changes_at_close

    @property
    def close_error(self) -> str | None:
        """What went wrong when this was closed: why changes did not come back, or what may be left of a container.

        >>> with Shieling("memory") as shieling:
        ...     print(shieling.close_error)
        None
        """
        return self._close_error

    def __repr__(self) -> str:
        state = ", closed" if self.closed else ""
        return f"<{type(self).__name__} {self.environment} {self.workspace!r}{state}>"

    def __enter__(self) -> Shieling:
        convert.check_open(self._core)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End every session, job and process, and give back what the environment holds. May be called again.

        >>> with Shieling("memory") as shieling:
        ...     shieling.close()
        ...     print(shieling.closed)
        True
        """
        wait_call(self._core.close(), self._approver)
        changes, error = self._core.take_settled()
        if changes is not None:
            self._changes_at_close = Changes.from_dict(changes)
        if error is not None:
            self._close_error = error

    def run(
        self,
        command: str | Sequence[Path],
        *,
        timeout: Duration | None = None,
        cwd: Path | None = None,
        env: Mapping[str, str | None] | None = None,
        stdin: str | bytes | None = None,
        on_timeout: Literal["kill", "background"] = "kill",
        max_output: Size | None = None,
    ) -> Outcome:
        """Run one command in a process of its own, and wait for its end.

        A refusal, a failure and a timeout are ordinary outcomes; :meth:`Outcome.check` raises for them.
        ``KeyboardInterrupt`` during the call ends all of the command's processes.

        Args:
            command: Shell text, read by bash; or a sequence of words or paths, which are quoted and joined.
            timeout: Its time: seconds, a timedelta or ``"2m"``. Default: that of the `Shieling`.
            cwd: Its directory, absolute or relative to the workspace. Default: the workspace.
            env: Variables laid over its own; ``None`` as a value removes one.
            stdin: What it reads from standard input. Default: nothing.
            on_timeout: ``kill`` ends its processes when its time is over (``timed_out``); ``background`` lets it go on
                as a job, and the outcome is ``running``, with ``job``. Not together with ``stdin``.
            max_output: Bytes of each stream that are kept. Default: that of the `Shieling`.

        Raises:
            ArgumentError: The command is empty or too long, or another argument is wrong.
            ClosedError: The `Shieling` was closed.

        >>> with Shieling("memory") as shieling:
        ...     outcome = shieling.run("tr a-z A-Z", stdin="hello")
        ...     print(outcome.stdout, outcome.exit_code)
        HELLO 0
        """
        call = convert.run(self._core, command, timeout, cwd, env, stdin, on_timeout, max_output)
        return convert.outcome(wait_call(call, self._approver))

    def start(
        self,
        command: str | Sequence[Path],
        *,
        timeout: Duration | None = None,
        cwd: Path | None = None,
        env: Mapping[str, str | None] | None = None,
        max_output: Size | None = None,
    ) -> Process:
        """Start a program that is talked to over pipes. In ``memory`` this is refused.

        For a program on a terminal use :meth:`background` with ``tty``.

        Args:
            command: Shell text, or a sequence of words.
            timeout: Its time. Default: that of the `Shieling`.
            cwd: Its directory. Default: the workspace.
            env: Variables laid over its own.
            max_output: Bytes of each stream that its outcome keeps.

        Raises:
            DeniedError: It was refused.
            NotStartedError: It could not be started.

        >>> with Shieling("sandbox") as shieling, shieling.start("cat") as process:
        ...     process.write("hello")
        ...     process.close_stdin()
        ...     data = process.stdout.read_all()
        ...     print(data)
        b'hello'
        """
        call = convert.start(self._core, command, timeout, cwd, env, max_output)
        return Process(convert.started(wait_call(call, self._approver)), self)

    def background(
        self,
        command: str | Sequence[Path],
        *,
        session: str | None = None,
        tty: tuple[int, int] | bool = False,
        timeout: Duration | None = None,
        cwd: Path | None = None,
        env: Mapping[str, str | None] | None = None,
        max_output: Size | None = None,
        id: str | None = None,
    ) -> Job:
        """Start a command as a job, and return at once. In ``memory`` its input is at its end.

        Args:
            command: Shell text, or a sequence of words.
            session: Start where this session stands, with its exported variables. Default: in the workspace.
            tty: Whether it gets a terminal: ``True`` for 24 lines of 80, or lines and columns.
            timeout: Ignored by jobs in the background but for their first output. Default: that of the `Shieling`.
            cwd: Its directory; not with ``session``.
            env: Variables laid over its own; not with ``session``.
            max_output: Bytes of each stream that its outcome keeps.
            id: Its name. Default: ``j1``, ``j2`` and so on. With the name of a job that exists nothing starts, and
                that job is returned.

        Raises:
            DeniedError: It was refused.
            NotStartedError: It could not be started.

        >>> with Shieling("memory") as shieling:
        ...     job = shieling.background("echo one; echo two")
        ...     outcome = job.wait()
        ...     print(outcome.stdout.split())
        ['one', 'two']
        """
        call = convert.background(self._core, command, session, tty, timeout, cwd, env, max_output, id)
        return Job(self, convert.job_of(wait_call(call, self._approver)))

    def session(
        self, name: str = "main", *, cwd: Path | None = None, env: Mapping[str, str | None] | None = None
    ) -> Session:
        """A persistent shell: directory, variables, functions and options stay from command to command.

        It starts with its first command. Two objects of one name are one session.

        Args:
            name: Its name.
            cwd: Where it starts. Default: the workspace.
            env: Variables laid over those that it starts with.

        >>> with Shieling("memory") as shieling:
        ...     session = shieling.session()
        ...     _ = session.run("cd /tmp; x=1")
        ...     outcome = session.run("echo $x; pwd")
        ...     print(outcome.stdout.split())
        ['1', '/tmp']
        """
        return Session(self, name, cwd, env)

    def sessions(self) -> tuple[SessionInfo, ...]:
        """The sessions, by name.

        >>> with Shieling("memory") as shieling:
        ...     print(shieling.sessions())
        ()
        """
        return convert.sessions(self._core)

    def jobs(self) -> tuple[JobInfo, ...]:
        """The jobs, oldest first, also those that have ended.

        >>> with Shieling("memory") as shieling:
        ...     print(shieling.jobs())
        ()
        """
        return convert.jobs(self._core)

    def job(self, id: str) -> Job:
        """A job by its name, such as ``Outcome.job``.

        Raises:
            JobError: There is none (``unknown``).

        >>> with Shieling("memory") as shieling:
        ...     job = shieling.background("true", id="build")
        ...     print(shieling.job("build").id)
        build
        """
        return Job(self, convert.known_job(self._core, id))

    def output(
        self, output_id: str, *, stream: Literal["stdout", "stderr"] = "stdout", cursor: int = 0, limit: int = 65_536
    ) -> OutputPage:
        """A part of a command's whole output, where its outcome is truncated.

        Args:
            output_id: That of the outcome.
            stream: Which stream.
            cursor: The first byte.
            limit: At most so many bytes.

        Raises:
            ArgumentError: There is no such output.

        >>> with Shieling("local", acknowledge_unsafe=True, approval="never", max_output=10) as shieling:
        ...     outcome = shieling.run("seq 1000")
        ...     page = shieling.output(outcome.output_id)
        ...     print(len(page.data), page.next)
        3893 None
        """
        return convert.output_page(wait_call(convert.output(self._core, output_id, stream, cursor, limit), None))

    def why(self, command: str | Sequence[Path], *, cwd: Path | None = None) -> Verdict:
        """Judge a command, and run nothing.

        Args:
            command: Shell text, or a sequence of words.
            cwd: Where it would run. Default: the workspace.

        >>> with Shieling("memory", deny=["git push"]) as shieling:
        ...     verdict = shieling.why("git -C sub push --force")
        ...     print(verdict.decision)
        deny
        """
        return convert.verdict(wait_call(convert.why(self._core, command, cwd), None))

    def describe(self, *, tools: Sequence[str] | None = None) -> Description:
        """The environment as a model should be told of it, for its system prompt. Starts the environment.

        Args:
            tools: Programs whose versions are looked up. Default: a list of usual ones.

        >>> with Shieling("memory") as shieling:
        ...     description = shieling.describe()
        ...     print(description.data["environment"])
        memory
        """
        return convert.description(wait_call(convert.describe(self._core, tools), self._approver))

    def revoke_approvals(self) -> None:
        """Take back every yes that goes further than one start.

        >>> with Shieling("memory") as shieling:
        ...     shieling.revoke_approvals()
        """
        self._core.revoke_all()

    def read_file(
        self, path: Path, *, offset: int = 0, limit: int = 2_000, max_bytes: int = 65_536, max_image: int = 10_485_760
    ) -> FileRead:
        """Read lines of a text file, or an image.

        Args:
            path: Absolute, or relative to the workspace.
            offset: The first line, counted from 0.
            limit: At most so many lines.
            max_bytes: At most so many bytes of text.
            max_image: Images up to this size in bytes are given with their bytes.

        Raises:
            FileError: It is not there, is hidden, or cannot be read.
            DeniedError: A rule of the policy refuses it.

        >>> with Shieling("memory") as shieling:
        ...     _ = shieling.write_file("notes.txt", "one\\ntwo\\n")
        ...     read = shieling.read_file("notes.txt", offset=1)
        ...     print(read.text, read.total_lines)
        two
         2
        """
        return convert.file_read(wait_call(self._core.read_file(convert.path(path), offset, limit, max_bytes, max_image), self._approver))

    def read_bytes(self, path: Path, *, max_bytes: int = 67_108_864) -> bytes:
        """Read a whole file, whatever is in it.

        Args:
            path: Absolute, or relative to the workspace.
            max_bytes: The largest file that is read, at most 64 MiB.

        Raises:
            FileError: It is not there, is hidden, cannot be read, or is larger (``too_large``).

        >>> with Shieling("memory") as shieling:
        ...     _ = shieling.write_file("data", b"\\x00\\xff")
        ...     data = shieling.read_bytes("data")
        ...     print(data)
        b'\\x00\\xff'
        """
        return convert.file_bytes(wait_call(self._core.read_bytes(convert.path(path), max_bytes), self._approver))

    def write_file(
        self, path: Path, content: str | bytes, *, expect: str | None = None, create_only: bool = False
    ) -> Written:
        """Write a whole file. Directories that are missing are made.

        Args:
            path: Absolute, or relative to the workspace.
            content: What it is to hold; text is written as UTF-8, as it is.
            expect: Refuse unless the file is in this state (``hash`` of an earlier answer).
            create_only: Refuse if there is something already.

        Raises:
            FileError: It cannot be written, or is in another state (``stale``).
            DeniedError: It was refused, or nobody said yes.

        >>> with Shieling("memory") as shieling:
        ...     written = shieling.write_file("a/b.txt", "text")
        ...     print(written.created, written.size)
        True 4
        """
        return convert.written(wait_call(self._core.write_file(convert.path(path), convert.content(content), expect, create_only), self._approver))

    def edit_file(
        self, path: Path, old: str, new: str, *, replace_all: bool = False, expect: str | None = None
    ) -> Edited:
        """Replace text in a file.

        Args:
            path: Absolute, or relative to the workspace.
            old: What is there, exactly. It must occur exactly once, unless ``replace_all``.
            new: What is to be there instead.
            replace_all: Replace each occurrence.
            expect: Refuse unless the file is in this state.

        Raises:
            FileError: ``no_match`` (with ``details["nearest"]``), ``ambiguous`` (with ``details["lines"]``), and others.
            DeniedError: It was refused, or nobody said yes.

        >>> with Shieling("memory") as shieling:
        ...     _ = shieling.write_file("a.txt", "one two")
        ...     edited = shieling.edit_file("a.txt", "two", "three")
        ...     print(edited.replacements)
        1
        """
        return convert.edited(wait_call(self._core.edit_file(convert.path(path), old, new, replace_all, expect), self._approver))

    def patch(self, patch: str, *, reverse: bool = False) -> Patched:
        """Change several files at once, or none.

        Args:
            patch: A unified diff, or a patch that begins with ``*** Begin Patch``.
            reverse: Apply it backwards (unified diffs only).

        Raises:
            FileError: ``bad_patch``, ``misfit``, and others.
            DeniedError: It was refused, or nobody said yes.

        >>> with Shieling("memory") as shieling:
        ...     patched = shieling.patch("*** Begin Patch\\n*** Add File: a.txt\\n+one\\n*** End Patch\\n")
        ...     print(patched.files[0].change)
        added
        """
        return convert.patched(wait_call(self._core.patch(patch, reverse), self._approver))

    def ls(self, path: Path = ".", *, limit: int = 1_000, after: str | None = None) -> Listed:
        """List a directory, sorted by name.

        Args:
            path: Absolute, or relative to the workspace.
            limit: At most so many entries.
            after: Go on after this name (``next`` of the last answer).

        Raises:
            FileError: It is not there, or no directory.

        >>> with Shieling("memory") as shieling:
        ...     _ = shieling.write_file("a.txt", "")
        ...     listed = shieling.ls()
        ...     print([entry.path for entry in listed.entries])
        ['a.txt']
        """
        return convert.listed(wait_call(self._core.ls(convert.path(path), limit, after), self._approver))

    def glob(
        self,
        pattern: str,
        *,
        path: Path = ".",
        ignored: bool = False,
        dotted: bool = False,
        limit: int = 1_000,
        after: str | None = None,
    ) -> Found:
        """Find files by their names, sorted by path.

        Args:
            pattern: Such as ``**/*.py``, relative to ``path``; without a slash it is looked for in every directory.
            path: Where to look.
            ignored: Also what ``.gitignore`` leaves out.
            dotted: Also names that begin with a dot.
            limit: At most so many paths.
            after: Go on after this path (``next`` of the last answer).

        Raises:
            FileError: The directory is not there, or the pattern is wrong (``argument``).

        >>> with Shieling("memory") as shieling:
        ...     _ = shieling.write_file("src/a.py", "")
        ...     found = shieling.glob("*.py")
        ...     print(found.paths)
        ('src/a.py',)
        """
        return convert.found(wait_call(self._core.glob(pattern, convert.path(path), ignored, dotted, limit, after), self._approver))

    def grep(
        self,
        pattern: str,
        *,
        path: Path = ".",
        literal: bool = False,
        ignore_case: bool = False,
        multiline: bool = False,
        globs: Sequence[str] = (),
        ignored: bool = False,
        dotted: bool = False,
        before: int = 0,
        after: int = 0,
        mode: Literal["content", "files", "count"] = "content",
        limit: int = 200,
        cursor: str | None = None,
    ) -> Grepped:
        """Search in files, sorted by path. The time of every search is in proportion to the text.

        Args:
            pattern: A regular expression.
            path: A file or a directory.
            literal: Take the pattern as it stands.
            ignore_case: Whatever the case of letters.
            multiline: A match may go over several lines.
            globs: Only in files that match one of these; one that begins with ``!`` leaves out.
            ignored: Also what ``.gitignore`` leaves out.
            dotted: Also names that begin with a dot.
            before: So many lines before each match.
            after: So many lines after each match.
            mode: The lines that match, the files that have one, or how many lines match in each.
            limit: At most so many lines with a match, or files.
            cursor: Go on where ``next`` of the last answer says.

        Raises:
            FileError: The path is not there, or the pattern is wrong (``argument``).

        >>> with Shieling("memory") as shieling:
        ...     _ = shieling.write_file("a.txt", "one\\ntwo\\n")
        ...     grepped = shieling.grep("^t")
        ...     print(grepped.hits[0].line, grepped.hits[0].text)
        2 two
        """
        call = convert.grep(
            self._core,
            pattern,
            path,
            (literal, ignore_case, multiline, ignored, dotted),
            globs,
            before,
            after,
            mode,
            limit,
            cursor,
        )
        return convert.grepped(wait_call(call, self._approver))

    def stat(self, path: Path) -> FileInfo:
        """What a path is. A link is followed if it leads somewhere.

        Raises:
            FileError: It is not there.

        >>> with Shieling("memory") as shieling:
        ...     _ = shieling.write_file("a.txt", "one")
        ...     info = shieling.stat("a.txt")
        ...     print(info.kind, info.size)
        file 3
        """
        return convert.file_info(wait_call(self._core.stat(convert.path(path)), self._approver))

    def exists(self, path: Path) -> bool:
        """Whether something is there that may be seen.

        >>> with Shieling("memory") as shieling:
        ...     there = shieling.exists("a.txt")
        ...     print(there)
        False
        """
        return convert.flag(wait_call(self._core.exists(convert.path(path)), self._approver))

    def delete(self, path: Path, *, recursive: bool = False) -> FileInfo:
        """Remove a file, a link (not what it leads to) or a directory.

        Args:
            path: Absolute, or relative to the workspace.
            recursive: Also a directory with all that is in it.

        Raises:
            FileError: It is not there, is protected, or is not empty.
            DeniedError: It was refused, or nobody said yes.

        >>> with Shieling("memory") as shieling:
        ...     _ = shieling.write_file("a.txt", "one")
        ...     removed = shieling.delete("a.txt")
        ...     print(removed.kind)
        file
        """
        return convert.file_info(wait_call(self._core.delete(convert.path(path), recursive), self._approver))

    def move(self, source: Path, target: Path, *, replace: bool = False) -> FileInfo:
        """Move something within the environment. A directory that is there gets it inside.

        Args:
            source: What is moved.
            target: Where to.
            replace: Replace a file that is there.

        Raises:
            FileError: ``exists``, ``not_found`` and others.
            DeniedError: It was refused, or nobody said yes.

        >>> with Shieling("memory") as shieling:
        ...     _ = shieling.write_file("a.txt", "one")
        ...     info = shieling.move("a.txt", "b.txt")
        ...     print(info.path.rpartition("/")[2])
        b.txt
        """
        return convert.file_info(wait_call(self._core.move(convert.path(source), convert.path(target), replace), self._approver))


class Session:
    """A persistent shell, from :meth:`Shieling.session`. Leaving a ``with`` block closes it.

    >>> with Shieling("memory") as shieling, shieling.session("build") as session:
    ...     outcome = session.run("cd /tmp && pwd")
    ...     print(outcome.session, outcome.cwd)
    build /tmp
    """

    def __init__(
        self, shieling: Shieling, name: str, cwd: Path | None = None, env: Mapping[str, str | None] | None = None
    ) -> None:
        self._shieling = shieling
        self._core = shieling._core
        self._approver = shieling._approver
        self._cwd = cwd
        self._env = dict(env) if env else None
        self._name = convert.session_name(self._core, name)

    @property
    def name(self) -> str:
        """Its name.

        >>> with Shieling("memory") as shieling:
        ...     print(shieling.session("build").name)
        build
        """
        return self._name

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._name}>"

    @property
    def cwd(self) -> str:
        """Where it stands.

        >>> with Shieling("memory", workspace="/work") as shieling:
        ...     print(shieling.session().cwd)
        /work
        """
        return convert.session_cwd(self._core, self._name, self._cwd)

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def run(
        self,
        command: str | Sequence[Path],
        *,
        timeout: Duration | None = None,
        on_timeout: Literal["kill", "background"] = "kill",
        max_output: Size | None = None,
    ) -> Outcome:
        """Run a command in this shell, and wait for its end.

        A timeout never loses the session's state. When the command ends the shell (``exit 3``), the outcome has
        ``session_restarted``, and the next command runs in a fresh shell at the same place with the same exported
        variables. A command waits for its turn while another one runs.

        Args:
            command: Shell text, or a sequence of words.
            timeout: Its time. Default: that of the `Shieling`.
            on_timeout: ``kill`` ends what it started; ``background`` lets it go on as a job, and the session is busy.
            max_output: Bytes of each stream that are kept.

        Raises:
            ArgumentError: The command is empty or too long.
            ClosedError: The `Shieling` was closed.

        >>> with Shieling("memory") as shieling:
        ...     session = shieling.session()
        ...     outcome = session.run("x=1; exit 3")
        ...     print(outcome.exit_code, outcome.session_restarted)
        3 True
        """
        call = convert.session_run(
            self._core, self._name, command, timeout, self._cwd, self._env, on_timeout, max_output
        )
        return convert.outcome(wait_call(call, self._approver))

    def background(
        self,
        command: str | Sequence[Path],
        *,
        tty: tuple[int, int] | bool = False,
        max_output: Size | None = None,
        id: str | None = None,
    ) -> Job:
        """Start a job where this session stands, with its exported variables. See :meth:`Shieling.background`.

        >>> with Shieling("memory") as shieling:
        ...     session = shieling.session()
        ...     _ = session.run("cd /tmp")
        ...     job = session.background("pwd")
        ...     outcome = job.wait()
        ...     print(outcome.stdout.strip())
        /tmp
        """
        call = convert.background(
            self._core, command, self._name, tty, None, self._cwd, self._env, max_output, id
        )
        return Job(self._shieling, convert.job_of(wait_call(call, self._approver)))

    def jobs(self) -> tuple[JobInfo, ...]:
        """The jobs that belong to it, oldest first.

        >>> with Shieling("memory") as shieling:
        ...     print(shieling.session().jobs())
        ()
        """
        return tuple(job for job in convert.jobs(self._core) if job.session == self._name)

    def restart(self) -> None:
        """Begin anew: the shell ends, with what it runs; the next command gets a fresh one where sessions start.

        >>> with Shieling("memory", workspace="/work") as shieling:
        ...     session = shieling.session()
        ...     _ = session.run("cd /tmp")
        ...     session.restart()
        ...     print(session.cwd)
        /work
        """
        wait_call(self._core.stop_session(self._name), None)

    def close(self) -> bool:
        """End the shell, at once or with the command that it runs. Whether there was one.

        >>> with Shieling("memory") as shieling:
        ...     session = shieling.session()
        ...     _ = session.run("true")
        ...     there = session.close()
        ...     print(there)
        True
        """
        return convert.flag(wait_call(self._core.end_session(self._name), None))


class Job:
    """A command that outlives its call, from :meth:`Shieling.background` or a timeout with ``background``.

    >>> with Shieling("memory") as shieling:
    ...     job = shieling.background("echo ready; sleep 60")
    ...     view = job.view(wait=5)
    ...     print(view.outcome.stdout.strip())
    ready
    """

    def __init__(self, shieling: Shieling, id: str) -> None:
        self._core = shieling._core
        self._approver = shieling._approver
        self._id = id

    @property
    def id(self) -> str:
        """Its name, such as ``j1``.

        >>> with Shieling("memory") as shieling:
        ...     job = shieling.background("true", id="build")
        ...     print(job.id)
        build
        """
        return self._id

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._id}>"

    def view(
        self,
        *,
        cursor: int | None = None,
        wait_for: Literal["output", "quiet", "exit"] = "output",
        wait: Duration = 0.0,
        screen: bool = False,
        keep_unseen: bool = False,
    ) -> View:
        """What is new of it, or what follows a cursor.

        Args:
            cursor: Output from this byte on; default: what no view has shown yet.
            wait_for: What is waited for: any output, output and then 200 ms of silence, or the end.
            wait: How long, in seconds; at most 600. Default: not at all.
            screen: Whether to show the terminal's screen.
            keep_unseen: Whether what is shown still counts as new for the next view.

        Raises:
            JobError: ``unknown``, or ``no_terminal`` for a screen that is not there.

        >>> with Shieling("memory") as shieling:
        ...     job = shieling.background("echo hello")
        ...     view = job.view(wait_for="exit", wait=5)
        ...     print(view.outcome.stdout, view.cursor)
        hello
         6
        """
        call = convert.view(self._core, self._id, cursor, wait_for, wait, screen, keep_unseen)
        return convert.viewed(wait_call(call, self._approver))

    def write(
        self, text: str = "", *, keys: Sequence[str] = (), enter: bool = False, wait: Duration = 0.0
    ) -> View:
        """Type into it, and give the output that followed.

        Args:
            text: Typed as it is.
            keys: Then these keys, such as ``C-c``, ``Up``, ``F1``.
            enter: Then the Enter key.
            wait: How long to wait for output, in seconds: for some, and then none for 200 ms.

        Raises:
            JobError: ``ended``, ``no_input`` (as in ``memory``), ``full``, ``unknown_key``, ``person_holds`` and others.
            DeniedError: Nobody said yes to it.

        >>> with Shieling("sandbox") as shieling:
        ...     job = shieling.background("cat")
        ...     view = job.write("hello", enter=True, wait=5)
        ...     print(view.outcome.stdout.strip())
        hello
        """
        call = convert.job_write(self._core, self._id, text, keys, enter, wait)
        return convert.viewed(wait_call(call, self._approver))

    def wait(self, timeout: Duration | None = None) -> Outcome:
        """Wait for its end, and return its outcome, with the head and tail of all of its output.

        Args:
            timeout: Seconds to wait. Default: as long as it takes. When they are over the outcome is ``running``.

        Raises:
            JobError: ``unknown``.

        >>> with Shieling("memory") as shieling:
        ...     job = shieling.background("exit 3")
        ...     outcome = job.wait()
        ...     print(outcome.exit_code)
        3
        """
        return convert.outcome(wait_call(convert.job_wait(self._core, self._id, timeout), self._approver))

    def wait_for(
        self, *, pattern: str | None = None, port: int | None = None, timeout: Duration = 60.0
    ) -> tuple[bool, View]:
        """Wait until its output matches, or a TCP port of its loopback takes connections.

        Args:
            pattern: A regular expression, looked for from the first byte that is kept.
            port: A port. Give one of the two.
            timeout: Seconds to wait at most.

        Returns:
            Whether it came to that, and what is new of the job.

        Raises:
            JobError: ``unknown``, ``pattern``, or ``own_network`` for a port in a sandbox's own network.

        >>> with Shieling("memory") as shieling:
        ...     job = shieling.background("echo ready; sleep 60")
        ...     matched, view = job.wait_for(pattern="read.", timeout=5)
        ...     print(matched)
        True
        """
        if (pattern is None) == (port is None):
            raise ArgumentError("give either `pattern` or `port`")
        call = convert.job_wait_for(self._core, self._id, pattern, port, timeout)
        return convert.waited_for(wait_call(call, self._approver))

    def outcome(self) -> Outcome:
        """Its outcome, or how it is now (``running``).

        >>> with Shieling("memory") as shieling:
        ...     job = shieling.background("sleep 60")
        ...     outcome = job.outcome()
        ...     print(outcome.status)
        running
        """
        return convert.outcome(wait_call(convert.job_wait(self._core, self._id, 0), self._approver))

    def resize(self, rows: int, columns: int) -> None:
        """Change the size of its terminal: 1 to 500 lines of 1 to 1,000 characters.

        Raises:
            JobError: ``unknown``, ``ended``, ``no_terminal`` or ``size``.

        >>> from shieling import JobError
        >>> with Shieling("memory") as shieling:
        ...     job = shieling.background("sleep 60")
        ...     try:
        ...         job.resize(24, 80)
        ...     except JobError as error:
        ...         print(error.code)
        no_terminal
        """
        convert.job_resize(self._core, self._id, rows, columns)

    def kill(self) -> Outcome:
        """End it with all its processes: SIGTERM, half a second, SIGKILL. The end of one that has ended is given again.

        >>> with Shieling("memory") as shieling:
        ...     job = shieling.background("sleep 60")
        ...     outcome = job.kill()
        ...     print(outcome.survivors)
        0
        """
        return convert.outcome(wait_call(self._core.job_kill(self._id), self._approver))


class Stream:
    """One output of a program that is talked to: ``process.stdout`` and ``process.stderr``.

    What nobody reads waits in the pipe, and the program with it. Iterating gives its lines. It is for one reader at a
    time: of several at once, one may find the end before another has got the last bytes.

    >>> with Shieling("sandbox") as shieling, shieling.start("printf 'one\\ntwo'") as process:
    ...     lines = [line for line in process.stdout]
    ...     print(lines)
    [b'one\\n', b'two']
    """

    def __init__(self, native: Any, is_stderr: bool) -> None:
        self._native = native
        self._is_stderr = is_stderr
        self._rest = bytearray()
        self._lines = 0
        self._ended = False

    def read(self, timeout: Duration | None = None) -> bytes:
        """The next bytes, as they arrive; ``b""`` at the end.

        Args:
            timeout: Seconds to wait for some. Default: as long as it takes.

        Raises:
            TimeoutError: None came in time.

        >>> with Shieling("sandbox") as shieling, shieling.start("printf hello") as process:
        ...     data = process.stdout.read(timeout=5)
        ...     print(data)
        b'hello'
        """
        if self._rest:
            data, self._rest = bytes(self._rest), bytearray()
            self._lines += 1
            return data
        if self._ended:
            return b""
        data = convert.received(wait_call(convert.receive(self._native, self._is_stderr, timeout), None))
        self._ended = not data
        return data

    def readline(self, timeout: Duration | None = None) -> bytes:
        """The next line with its end; the rest without one at the end of the stream; ``b""`` after that.

        Args:
            timeout: Seconds to wait for each part of it. Default: as long as it takes. What came stays for the next read.

        Raises:
            TimeoutError: It did not come in time.

        >>> with Shieling("sandbox") as shieling, shieling.start("printf 'one\\ntwo'") as process:
        ...     first = process.stdout.readline()
        ...     second = process.stdout.readline()
        ...     print(first, second)
        b'one\\n' b'two'
        """
        searched = 0
        while True:
            end = self._rest.find(b"\n", searched) + 1
            if end or self._ended:
                end = end or len(self._rest)
                line = bytes(self._rest[:end])
                del self._rest[:end]
                self._lines += 1
                return line
            searched, lines = len(self._rest), self._lines
            data = convert.received(wait_call(convert.receive(self._native, self._is_stderr, timeout), None))
            self._ended = not data
            self._rest += data
            if self._lines != lines:
                # Another reader has taken from the front.
                searched = 0

    def read_all(self, timeout: Duration | None = None) -> bytes:
        """Everything up to the end. Of a program that never ends, this never returns without ``timeout``.

        Args:
            timeout: Seconds to wait for each part of it. What came stays for the next read.

        Raises:
            TimeoutError: It did not come in time.

        >>> with Shieling("sandbox") as shieling, shieling.start("printf 'one\\ntwo'") as process:
        ...     data = process.stdout.read_all()
        ...     print(data)
        b'one\\ntwo'
        """
        while not self._ended:
            data = convert.received(wait_call(convert.receive(self._native, self._is_stderr, timeout), None))
            self._ended = not data
            self._rest += data
        data, self._rest = bytes(self._rest), bytearray()
        return data

    def __iter__(self) -> Iterator[bytes]:
        while True:
            line = self.readline()
            if not line:
                return
            yield line


class Process:
    """A program that is talked to, from :meth:`Shieling.start`. Leaving a ``with`` block ends it.

    Attributes:
        stdout: Its standard output.
        stderr: Its standard error.

    >>> with Shieling("sandbox") as shieling, shieling.start("cat") as process:
    ...     process.write("hello\\n")
    ...     line = process.stdout.readline()
    ...     print(line)
    b'hello\\n'
    """

    stdout: Stream
    stderr: Stream

    def __init__(self, native: Any, owner: Shieling) -> None:
        self._native = native
        # It ends what it runs when nothing holds it any more.
        self._owner = owner
        self.stdout = Stream(native, False)
        self.stderr = Stream(native, True)

    def __repr__(self) -> str:
        code = self.returncode
        return f"<{type(self).__name__} {'running' if code is None else f'ended with {code}'}>"

    def __enter__(self) -> Process:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.kill()

    @property
    def returncode(self) -> int | None:
        """The exit code of its main process, 128+N for signal N; ``None`` while it runs.

        >>> with Shieling("sandbox") as shieling, shieling.start("exit 3") as process:
        ...     outcome = process.wait()
        ...     print(process.returncode)
        3
        """
        return convert.returncode(self._native)

    @property
    def signal(self) -> int | None:
        """The signal that ended its main process; ``None`` while it runs, and where none did.

        >>> with Shieling("sandbox") as shieling, shieling.start("kill -9 $$") as process:
        ...     outcome = process.wait()
        ...     print(process.signal)
        9
        """
        return convert.signal(self._native)

    def write(self, data: str | bytes) -> None:
        """Write to its standard input, and wait until all of it is in the pipe.

        Args:
            data: Bytes, or text as UTF-8.

        Raises:
            InputClosedError: It reads no more.

        >>> with Shieling("sandbox") as shieling, shieling.start("cat") as process:
        ...     process.write(b"hello")
        """
        wait_call(self._native.write(convert.content(data)), None)

    def close_stdin(self) -> None:
        """Close its standard input: it reads an end of file. May be called again.

        >>> with Shieling("sandbox") as shieling, shieling.start("cat") as process:
        ...     process.close_stdin()
        ...     outcome = process.wait()
        ...     print(outcome.exit_code)
        0
        """
        wait_call(self._native.close_stdin(), None)

    def wait(self) -> Outcome:
        """Wait for its end. The outcome's output is what was not read before.

        >>> with Shieling("sandbox") as shieling, shieling.start("echo hello") as process:
        ...     outcome = process.wait()
        ...     print(outcome.stdout)
        hello
        <BLANKLINE>
        """
        return convert.outcome(wait_call(self._native.wait(), None))

    def kill(self) -> Outcome:
        """End it with all its processes: SIGTERM, half a second, SIGKILL. One that has ended stays as it is.

        >>> with Shieling("sandbox") as shieling, shieling.start("cat") as process:
        ...     outcome = process.kill()
        ...     print(outcome.survivors)
        0
        """
        return convert.outcome(wait_call(self._native.kill(), None))
