"""The toolkit: shell commands, background sessions and files for an agent.

Each command is a process of its own in the working directory; a session is one that goes on in the
background. State comes from the process, never from words that it prints.
"""

from __future__ import annotations

import contextlib
import errno
import importlib
import os
import posixpath
import platform
import shlex
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from queue import Empty
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from ... import DeniedError, EnvironmentName, FileError, Job, Outcome, Shieling, ShielingError, View
from .._containers import kill_script
from .._execution import (
    approval_options,
    held_back,
    held_back_write,
    host_variables,
    is_judged_as_written,
    read_once,
)
from . import utils
from ._framework import (
    BaseToolkit,
    FunctionTool,
    MCPServer,
    Runtime,
    to_plain,
    get_logger,
    manual_timeout,
)
from ._output import OutputStream, clip, log_name, universal_lines, write_log
from ._process import SessionProcess
from .utils import (
    check_input_safety,
    check_nodejs_availability,
    clone_current_environment,
    ensure_go_available,
    ensure_java_available,
    ensure_uv_available,
    sanitize_command,
    setup_initial_env_with_uv,
    setup_initial_env_with_venv,
)

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = [
    "TerminalToolkit",
    "check_nodejs_availability",
    "clone_current_environment",
    "default_console_approval",
    "ensure_go_available",
    "ensure_java_available",
    "ensure_uv_available",
    "manual_timeout",
    "sanitize_command",
    "setup_initial_env_with_uv",
    "setup_initial_env_with_venv",
]

logger = get_logger()

T = TypeVar("T")

_to_plain = to_plain

# Looked up here when they are used: without the library they are absent.
docker: Any = None
APIError: Any = None
NotFound: Any = None
with contextlib.suppress(ImportError):
    docker = importlib.import_module("docker")
    APIError = importlib.import_module("docker.errors").APIError
    NotFound = importlib.import_module("docker.errors").NotFound

_DEFAULT_TIMEOUT = 20.0
_SECONDS_TO_INSTALL = 300
_PAGE_BYTES = 256 * 1024
_JOB_SECONDS = 30 * 24 * 3600.0
# A session's input is followed by its answer. A slow program gets this long to begin it.
_SECONDS_TO_ANSWER = 2.0
_SECONDS_TO_END = 0.5
_PYTHON_PROGRAMS = ("python", "pip", "pytest", "ipython", "uv")
_REFUSED = ("denied", "needs_approval", "rate_limited")


def default_console_approval(command: str) -> bool:
    """Asks on the console whether `command` may run; no where there is no terminal to ask on."""
    if sys.stdin is None or not sys.stdin.isatty():
        return False
    print(f"The agent wants to run:\n{command}")
    try:
        return input("Allow it? [y/N] ").strip().lower() in ("y", "yes")
    except EOFError:
        return False


_default_console_approval = default_console_approval


class _Terminal:
    """The toolkit's methods, apart from the base class of toolkits.

    That class wraps each method of a subclass in a timeout, in a thread of its own, whose answer
    replaces the method's output. Here every method bounds its time itself.
    """

    def __init__(
        self,
        timeout: float | None = _DEFAULT_TIMEOUT,
        working_directory: str | None = None,
        use_docker_backend: bool = False,
        docker_container_name: str | None = None,
        session_logs_dir: str | None = None,
        safe_mode: bool = True,
        allowed_commands: list[str] | None = None,
        clone_current_env: bool = False,
        install_dependencies: list[str] | None = None,
        enable_other_runtimes: list[Runtime] | None = None,
        require_approval: Callable[[str], bool] | None = None,
        environment: EnvironmentName = "local",
        shieling: Mapping[str, Any] | None = None,
    ):
        self._in_runtime = os.environ.get("CAMEL_RUNTIME", "").lower() == "true"
        if self._in_runtime and use_docker_backend:
            logger.info("inside of a CAMEL runtime: commands run here and not in Docker")
            use_docker_backend = False
            docker_container_name = None

        self.use_docker_backend = use_docker_backend
        self.timeout = timeout
        self.shell_sessions: dict[str, dict[str, Any]] = {}
        self._session_lock = threading.RLock()
        self._output_condition = threading.Condition(self._session_lock)
        self._environment: EnvironmentName = environment
        self._options = read_once(shieling)
        # One for each working directory that was used, by its path; and its variables, by its identity.
        self._opened: dict[str, Shieling] = {}
        self._known_variables: dict[int, dict[str, str]] = {}
        self._prepare_lock = threading.Lock()
        self._prepared = False
        self._installed = False

        here = os.environ.get("CAMEL_WORKDIR") or "./workspace"
        self.docker_workdir: str | None = None
        if use_docker_backend:
            self.docker_workdir = working_directory or "/workspace"
            self.working_dir = os.path.abspath(here)
        else:
            self.working_dir = os.path.abspath(working_directory or here)
        os.makedirs(self.working_dir, exist_ok=True)

        self.safe_mode = safe_mode
        self.require_approval = require_approval
        self.allowed_commands = set(allowed_commands) if allowed_commands else None
        self.clone_current_env = clone_current_env
        self.cloned_env_path: str | None = None
        self.initial_env_path: str | None = None
        self.python_executable = sys.executable
        self.install_dependencies = install_dependencies or []
        self.enable_other_runtimes: set[Runtime] = set(enable_other_runtimes or [])
        self._runtime_env_vars: dict[str, str] = {}
        self.os_type = platform.system()

        self.log_dir = os.path.abspath(
            session_logs_dir or os.path.join(self.working_dir, "terminal_logs")
        )
        self.blocking_log_file = os.path.join(self.log_dir, "blocking_commands.log")
        os.makedirs(self.log_dir, exist_ok=True)

        if use_docker_backend:
            self._attach_container(docker_container_name)
        elif not self._in_runtime:
            if clone_current_env:
                self.cloned_env_path = os.path.join(self.working_dir, ".venv")
            else:
                self.initial_env_path = os.path.join(self.working_dir, ".initial_env")

    # The environment of the commands.

    def _attach_container(self, name: str | None) -> None:
        if docker is None:
            raise ImportError(
                "The 'docker' library is required to use the Docker backend. "
                "Please install it with 'pip install docker'."
            )
        if not name:
            raise ValueError("docker_container_name must be provided when using Docker backend.")
        try:
            # As the client and the program `docker` do; the original knows only the usual socket.
            url = os.environ.get("DOCKER_HOST") or "unix://var/run/docker.sock"
            self.docker_api_client: Any = docker.APIClient(base_url=url)
            self.docker_client: Any = docker.from_env()
            try:
                self.container: Any = self.docker_client.containers.get(name)
            except NotFound:
                raise RuntimeError(f"Container '{name}' not found.") from None
        except APIError as error:
            raise RuntimeError(f"Failed to connect to Docker daemon: {error}") from error
        logger.info("attached to the container '%s'", name)
        self._container_name = name
        try:
            directory = shlex.quote(self.docker_workdir or "/workspace")
            self._docker_exec(f'sh -lc "mkdir -p -- {directory}"', check_exit_code=False)
        except Exception as error:
            logger.warning("[Docker] Failed to ensure workdir '%s': %s", self.docker_workdir, error)

    def _docker_exec(
        self, command: str, *, check_exit_code: bool = True
    ) -> tuple[int | None, bytes]:
        """Runs `command` in the container and returns its exit code and output.

        Without `check_exit_code` the exit code is `None`. Raises `RuntimeError` if the daemon fails
        or, with `check_exit_code`, if the command does.
        """
        if not self.use_docker_backend:
            raise RuntimeError("_docker_exec called but Docker backend is not enabled.")
        try:
            exec_id: Any = self.docker_api_client.exec_create(self.container.id, cmd=command)["Id"]
            output: Any = self.docker_api_client.exec_start(exec_id)
            if not check_exit_code:
                return None, output
            exit_code = self.docker_api_client.exec_inspect(exec_id)["ExitCode"]
        except _docker_errors() as error:
            raise RuntimeError(f"Docker API error: {error}") from error
        if exit_code != 0:
            shown = str(output, "utf-8", "replace") if isinstance(output, bytes) else str(output)
            logger.error("Docker command failed with exit code %s. Output:\n%s", exit_code, shown)
            raise RuntimeError(f"Docker command exited with code {exit_code}: {shown}")
        return exit_code, output

    def _directory(self) -> str:
        """Returns the working directory, which may have been set to another one."""
        return os.path.abspath(self.working_dir or ".")

    def _open(self) -> Shieling:
        """Returns the environment of the commands; nothing starts."""
        workspace = self._directory()
        # What is in memory is one for all directories.
        key = "" if self._environment == "memory" else workspace
        with self._prepare_lock:
            opened = self._opened.get(key)
            if opened is None or opened.closed:
                environment: EnvironmentName = (
                    "local" if self.use_docker_backend else self._environment
                )
                keywords: dict[str, Any] = {
                    "workspace": workspace,
                    "inherit_env": self._inherits_variables(),
                    **approval_options(self._options),
                    "max_output": 256 * 1024,
                    "timeout": _JOB_SECONDS,
                }
                if environment == "local":
                    keywords["allow_home"] = True
                elif environment == "sandbox" and not sys.base_prefix.startswith("/usr"):
                    # The environments of Python point to the Python that made them.
                    keywords["read"] = [sys.base_prefix]
                # Others reach a command by its call alone.
                known = {
                    name: value for name, value in self._first_variables().items() if name.isidentifier() and name.isascii()
                }
                opened = self._opened[key] = Shieling(environment, **{**keywords, **self._options})
                self._known_variables[id(opened)] = known
            return opened

    def _prepare(self, command: str) -> None:
        """Makes what `command` needs of Python and installs what it is to find.

        Raises `RuntimeError` if packages cannot be installed.
        """
        nothing_wanted = self._in_runtime and not self.install_dependencies
        if nothing_wanted or self._environment == "memory":
            # There is no Python in memory, and nothing there to install.
            return
        with self._prepare_lock:
            names, hidden = utils.launches(command)
            needs_python = hidden or any(name.startswith(_PYTHON_PROGRAMS) for name in names)
            wanted = needs_python or self.clone_current_env or bool(self.install_dependencies)
            if wanted and not self._prepared and not self.use_docker_backend:
                if not self._in_runtime:
                    if self.clone_current_env:
                        self._setup_cloned_environment()
                    else:
                        self._setup_initial_environment()
                self._prepared = True
            if self.enable_other_runtimes and not self._runtime_env_vars:
                self._setup_optional_runtimes(_log_status)
            if self.install_dependencies and not self._installed:
                self._install_dependencies()
                self._installed = True

    def _setup_initial_environment(self) -> None:
        """Makes the environment `.initial_env` in the working directory."""
        self.initial_env_path = os.path.join(self._directory(), ".initial_env")
        success, uv_path = ensure_uv_available(_log_status)
        made = (
            setup_initial_env_with_uv(
                self.initial_env_path, uv_path, self._directory(), _log_status
            )
            if success and uv_path
            else setup_initial_env_with_venv(self.initial_env_path, self._directory(), _log_status)
        )
        if made:
            self.python_executable = utils.python_of(self.initial_env_path)
        else:
            logger.warning("commands use the system's Python: no environment could be made")

    def _setup_cloned_environment(self) -> None:
        """Makes the environment `.venv` in the working directory, with this Python's packages."""
        self.cloned_env_path = os.path.join(self._directory(), ".venv")
        if clone_current_environment(self.cloned_env_path, self._directory(), _log_status):
            self.python_executable = utils.python_of(self.cloned_env_path)
        else:
            logger.warning("commands use the system's Python: the environment was not cloned")

    def _setup_optional_runtimes(self, update_callback: Callable[[str], None]) -> None:
        """Finds the language runtimes that commands are to have."""
        self._runtime_env_vars.update(
            utils.runtime_variables(self.enable_other_runtimes, update_callback)
        )

    def _install_dependencies(self) -> None:
        """Installs the packages of `install_dependencies`. Raises `RuntimeError` if that fails."""
        if not self.install_dependencies:
            return
        if self.use_docker_backend:
            packages = " ".join(shlex.quote(package) for package in self.install_dependencies)
            try:
                self._docker_exec(f'sh -lc "pip install {packages}"', check_exit_code=True)
            except RuntimeError as error:
                raise RuntimeError(f"Failed to install dependencies in Docker: {error}") from error
            except Exception as error:
                raise RuntimeError(f"Docker dependency installation error: {error}") from error
            return
        pip = [self.python_executable, "-m", "pip", "install", "--upgrade"]
        try:
            subprocess.run(
                [*pip, *self.install_dependencies],
                check=True,
                cwd=self._directory(),
                capture_output=True,
                text=True,
                errors="replace",
                stdin=subprocess.DEVNULL,
                timeout=_SECONDS_TO_INSTALL,
            )
        except subprocess.CalledProcessError as error:
            logger.error("Failed to install dependencies: %s", error.stderr)
            raise RuntimeError(f"Failed to install dependencies: {error.stderr}") from error
        except subprocess.TimeoutExpired as error:
            raise RuntimeError("Dependency installation timed out after 5 minutes") from error

    def _get_venv_path(self) -> str | None:
        """Returns the environment of Python that commands use, if it is there."""
        for path in (self.cloned_env_path, self.initial_env_path):
            if path and os.path.exists(path):
                return path
        return None

    def _get_env_vars(self) -> dict[str, str]:
        """Returns the variables that commands get. A subclass may return others.

        Where they do not get this process's variables, a few of the environment's own come to them.
        """
        return {**self._first_variables(), **self._own_variables()}

    def _inherits_variables(self) -> bool:
        in_local = self.use_docker_backend or self._environment == "local"
        return bool(self._options.get("inherit_env", in_local))

    def _first_variables(self) -> dict[str, str]:
        """Returns the variables of this process and of the options that commands get."""
        if self.use_docker_backend:
            return {}
        variables = host_variables("all" if self._inherits_variables() else "none")
        for name in self._options.get("pass_env") or ():
            if name in os.environ:
                variables[name] = os.environ[name]
        return {**variables, **dict(self._options.get("env") or {})}

    def _own_variables(self) -> dict[str, str]:
        """Returns the variables that the toolkit lays over the others."""
        variables = {**self._runtime_env_vars, "PYTHONUNBUFFERED": "1"}
        venv = self._get_venv_path()
        if venv is not None:
            programs = os.path.dirname(utils.python_of(venv))
            path = variables.get("PATH") or os.environ.get("PATH", os.defpath)
            variables["PATH"] = os.pathsep.join([programs, path])
            variables["VIRTUAL_ENV"] = venv
        return variables

    def _sanitize_command(self, command: str) -> tuple[bool, str]:
        """Returns whether safe mode lets `command` run, with the command or the reason."""
        return sanitize_command(
            command=command,
            use_docker_backend=self.use_docker_backend,
            safe_mode=self.safe_mode,
            working_dir=self._directory(),
            allowed_commands=self.allowed_commands,
        )

    def _approved(self, text: str) -> bool:
        return self.require_approval is None or bool(self.require_approval(text))

    # Logs and output.

    def _write_to_log(self, log_file: str, content: str, end: str = "\n") -> None:
        """Appends `content` and `end` to a log, as plain text."""
        try:
            write_log(log_file, content, end)
        except OSError as error:
            logger.warning("the log %s cannot be written: %s", log_file, error)

    def _session_log(self, session_id: str) -> str:
        return os.path.join(self.log_dir, log_name(session_id))

    def _start_output_reader_thread(self, session_id: str) -> None:
        """Starts the thread that takes the output of a session until it ends."""
        with self._session_lock:
            session = self.shell_sessions[session_id]
        threading.Thread(target=self._read_session, args=(session,), daemon=True).start()

    def _read_session(self, session: dict[str, Any]) -> None:
        process = session["process"]
        cursor: int = session.get("cursor", 0)
        try:
            if not isinstance(process, SessionProcess):
                for line in iter(process.stdout.readline, ""):
                    self._add_output(session, line)
                return
            job = process.job
            while True:
                # By its own cursor: an answer to input has a view of its own, which takes output too.
                view = job.view(cursor=cursor, wait_for="output", wait=600.0)
                if view.missed_bytes:
                    self._read_missed(session, view, cursor)
                cursor = view.cursor
                if view.outcome.output:
                    self._add_output(session, view.outcome.output)
                elif view.outcome.status != "running":
                    process.take(view.outcome)
                    session["exit"] = view.outcome
                    return
        except ShielingError as error:
            session["error"] = str(error)
        finally:
            with self._output_condition:
                session["running"] = False
                self._output_condition.notify_all()

    def _read_missed(self, session: dict[str, Any], view: View, cursor: int) -> None:
        """Reads from the store what was printed faster than the views came."""
        end = cursor + view.missed_bytes
        whole = view.outcome.output_id
        if whole is None:
            # It has none for the moment in which the job ends.
            job: Job = session["process"].job
            whole = job.view(cursor=view.cursor, wait_for="exit", wait=1.0).outcome.output_id
        while cursor < end and whole is not None:
            page = session["shieling"].output(whole, cursor=cursor, limit=min(end - cursor, _PAGE_BYTES))
            if not page.data:
                break
            cursor += len(page.data)
            self._add_output(session, page.data.decode("utf-8", errors="replace"))
        if cursor < end:
            self._add_output(session, f"\n[... {end - cursor} bytes left out ...]\n")

    def _add_output(self, session: dict[str, Any], output: str) -> None:
        text = universal_lines(output)
        self._write_to_log(session["log_file"], text, end="")
        with self._output_condition:
            session["printed"] = True
            session["output_stream"].put(text)
            self._output_condition.notify_all()

    def _take(self, session: dict[str, Any]) -> str:
        """Returns the output of a session that no answer has shown."""
        parts: list[str] = []
        try:
            while True:
                parts.append(session["output_stream"].get_nowait())
        except Empty:
            return to_plain("".join(parts))

    def _collect_output_until_idle(
        self, id: str, idle_duration: float = 0.5, max_wait: float = 5.0
    ) -> str:
        """Returns the output of a session once it is quiet.

        Args:
            id: The session.
            idle_duration: Seconds without output that count as quiet.
            max_wait: Seconds after which what is there is returned, with a warning.
        """
        with self._session_lock:
            session = self.shell_sessions.get(id)
        if session is None:
            return f"Error: No session found with ID '{id}'."
        parts: list[str] = []
        begun = last = time.monotonic()
        with self._output_condition:
            while True:
                running = session["running"]
                text = self._take(session)
                now = time.monotonic()
                if text:
                    parts.append(text)
                    last = now
                if not running:
                    return "".join(parts).strip() + "\n--- SESSION TERMINATED ---"
                if now - last >= idle_duration:
                    return "".join(parts)
                if now - begun >= max_wait:
                    break
                self._output_condition.wait(
                    min(idle_duration - (now - last), max_wait - (now - begun))
                )
        return "".join(parts) + (
            "\n--- WARNING: Process is still actively outputting after max wait time. "
            "Consider waiting before sending the next command. ---"
        )

    # Commands.

    def shell_exec(
        self, id: str, command: str, block: bool = True, timeout: float = _DEFAULT_TIMEOUT
    ) -> str:
        r"""Executes a shell command in blocking or non-blocking mode.

        Args:
            id (str): A name for the command's session, by which the other
                tools find it.
            command (str): The shell command, read by bash.
            block (bool): If True, waits for the command and returns its
                output: right for most commands. If False, starts it in the
                background: for interactive programs, long tasks and servers.
                (default: :obj:`True`)
            timeout (float): Seconds to wait in blocking mode. A command that
                takes longer goes on in the background as a session; see it
                with `shell_view(id)` and end it with
                `shell_kill_process(id)`. (default: :obj:`20`)

        Returns:
            str: In blocking mode the output, standard error included, and the
                exit code if it is not 0. In non-blocking mode a confirmation
                with the session's id.
        """
        # A strict tool schema has models fill in every parameter, with null for the default.
        block, timeout = _or_default(block, True), _or_default(timeout, _DEFAULT_TIMEOUT)
        if self.safe_mode:
            is_safe, message = self._sanitize_command(command)
            if not is_safe:
                return f"Error: Command rejected by TerminalToolkit safe mode. {message}"
            command = message
        if not self._approved(command):
            return "Error: Command rejected by approval policy."
        try:
            self._prepare(command)
        except RuntimeError as error:
            return f"Error: {error}"
        if block:
            limit: Any = self.timeout if timeout == _DEFAULT_TIMEOUT else timeout
            if isinstance(limit, str):
                # Models write a number as a text, too.
                try:
                    limit = float(limit)
                except ValueError:
                    return f"Error executing command: the timeout {limit!r} is no number of seconds"
            return self._run_blocking(id, command, _DEFAULT_TIMEOUT if limit is None else limit)
        return self._start_session(id, command)

    def _words(self, command: str, mark: str, *, no_input: bool = False) -> str | list[str]:
        """Returns what the environment runs for `command`; with `no_input` it finds the end of its input."""
        if "\0" in command:
            raise ValueError("embedded null byte")
        # One stream for both outputs, so that they stay in order.
        streams = "exec 2>&1 </dev/null" if no_input else "exec 2>&1"
        if not self.use_docker_backend:
            return command if is_judged_as_written(self._options) else f"{streams}; {command}"
        return [
            *("docker", "exec", "-i", "-w", self.docker_workdir or "/workspace"),
            *("-e", "PYTHONUNBUFFERED=1", "-e", f"SHIELING_COMMAND={mark}"),
            *(self._container_name, "bash", "-c", f"{streams}; {command}"),
        ]

    def _variables(self, shieling: Shieling) -> dict[str, str | None]:
        """Returns how the variables of a command differ from those of its environment."""
        if self.use_docker_backend:
            return {}
        wanted, known = self._get_env_vars(), self._known_variables.get(id(shieling), {})
        changed: dict[str, str | None] = {
            name: value for name, value in wanted.items() if known.get(name) != value
        }
        changed.update((name, None) for name in known if name not in wanted)
        return changed

    def _run_blocking(self, id: str, command: str, timeout: float) -> str:
        entry = f"--- Executing blocking command at {time.ctime()} ---\n> {command}\n"
        mark = uuid.uuid4().hex
        try:
            shieling = self._open()
            if timeout <= 0:
                # It starts, and is not waited for.
                job = shieling.background(
                    self._words(command, mark, no_input=True),
                    timeout=_JOB_SECONDS,
                    cwd=self._directory(),
                    env=self._variables(shieling),
                )
                self._write_to_log(self.blocking_log_file, entry)
                return self._convert(id, command, shieling, job, None, timeout, mark)
            outcome = shieling.run(
                self._words(command, mark),
                timeout=timeout,
                cwd=self._directory(),
                env=self._variables(shieling),
                on_timeout="background",
            )
            if outcome.status == "running" and outcome.job is not None:
                self._write_to_log(self.blocking_log_file, entry)
                job = shieling.job(outcome.job)
                return self._convert(id, command, shieling, job, outcome, timeout, mark)
            answer = self._answer(outcome)
        except DeniedError as error:
            answer = f"Error: Command rejected. {error.denial.message()}"
            entry += f"--- Output ---\n{answer}\n"
        except (ShielingError, OSError, TypeError, ValueError) as error:
            answer = f"Error executing command: {error}"
            entry += f"--- Error ---\n{answer}\n"
        else:
            entry += f"--- Output ---\n{answer}\n"
        self._write_to_log(self.blocking_log_file, entry)
        return answer

    def _answer(self, outcome: Outcome) -> str:
        if outcome.status == "failed" and outcome.error:
            return f"Error executing command: {outcome.error}"
        if outcome.status in _REFUSED:
            reason = outcome.denial.message() if outcome.denial is not None else outcome.status
            return f"Error: Command rejected. {reason}"
        text = to_plain(universal_lines(outcome.output))
        if taken_back := held_back(outcome):
            text = f"{text.rstrip()}\n{taken_back}".lstrip("\n")
        end = _how_it_ended(outcome)
        if not text.strip():
            return f"Command failed with {end} (no output)." if end else (
                "Command executed successfully (no output)."
            )
        text = clip(text, "a narrower command, or redirect it to a file")
        return f"{text.rstrip()}\n[{end}]" if end else text

    def _convert(
        self, id: str, command: str, shieling: Shieling, job: Job, so_far: Outcome | None, timeout: float, mark: str
    ) -> str:
        """Makes a session of a command whose time is over, and returns what to say."""
        output = universal_lines(so_far.output) if so_far is not None else ""
        with self._session_lock:
            session_id = id
            number = 2
            # A session of this id that still runs stays reachable: the command gets another one.
            while self.shell_sessions.get(session_id, {}).get("running", False):
                session_id = f"{id}-{number}"
                number += 1
            self._add_session(session_id, command, mark, timeout_converted=True)
            session = self.shell_sessions[session_id]
            session["process"] = SessionProcess(job, command)
            session["shieling"] = shieling
            session["cursor"] = so_far.stdout_bytes if so_far is not None else 0
            if output:
                session["printed"] = True
                session["output_stream"].put(output)
        self._write_to_log(
            session["log_file"],
            f"--- Blocking command timed out, converted to session at {time.ctime()} ---\n"
            f"> {command}\n{output}",
        )
        self._start_output_reader_thread(session_id)
        return (
            f"Command did not complete within {timeout} seconds. Process continues in background "
            f"as session '{session_id}'.\n\n"
            "You can use:\n"
            f"  - shell_view('{session_id}') - get output\n"
            f"  - shell_kill_process('{session_id}') - terminate"
        )

    def _add_session(
        self, session_id: str, command: str, mark: str, *, timeout_converted: bool = False
    ) -> None:
        log_file = self._session_log(session_id)
        session: dict[str, Any] = {
            "id": session_id,
            "process": None,
            "shieling": None,
            "output_stream": OutputStream(log_file),
            "command_history": [command],
            "running": True,
            "log_file": log_file,
            "backend": "docker" if self.use_docker_backend else "local",
            "mark": mark,
            "cursor": 0,
        }
        if timeout_converted:
            session["timeout_converted"] = True
        self.shell_sessions[session_id] = session

    def _start_session(self, id: str, command: str) -> str:
        mark = uuid.uuid4().hex
        with self._session_lock:
            if self.shell_sessions.get(id, {}).get("running", False):
                return (
                    f"Error: Session '{id}' already exists and is running. "
                    "Use a different ID or kill the existing session first."
                )
            self._add_session(id, command, mark)
        log_file = self._session_log(id)
        self._write_to_log(
            log_file, f"--- Starting non-blocking session at {time.ctime()} ---\n> {command}\n"
        )
        try:
            shieling = self._open()
            job = shieling.background(
                self._words(command, mark),
                timeout=_JOB_SECONDS,
                cwd=self._directory(),
                env=self._variables(shieling),
            )
        except (ShielingError, OSError, ValueError) as error:
            with self._session_lock:
                self.shell_sessions[id]["running"] = False
            message = f"Error starting non-blocking command: {error}"
            self._write_to_log(log_file, f"--- Error ---\n{message}\n")
            return message
        with self._session_lock:
            self.shell_sessions[id].update(process=SessionProcess(job, command), shieling=shieling)
        self._start_output_reader_thread(id)
        return (
            f"Session '{id}' started.\n\n"
            "You could use:\n"
            f"  - shell_view('{id}') - get output\n"
            f"  - shell_write_to_process('{id}', '<input>') - send input\n"
            f"  - shell_kill_process('{id}') - terminate"
        )

    def shell_write_to_process(self, id: str, command: str) -> str:
        r"""Sends a line of input to a session and returns what it prints
        then. A newline is added to the input.

        Args:
            id (str): The session's id.
            command (str): The text to send to its standard input.

        Returns:
            str: The output that was new, up to the answer to this input.
        """
        with self._session_lock:
            session = self.shell_sessions.get(id)
            if session is None or not session["running"]:
                return f"Error: No active non-blocking session found with ID '{id}'."
        if self.safe_mode and self.allowed_commands is None:
            is_safe, message = check_input_safety(session["command_history"][0], command)
            if not is_safe:
                return f"Error: Input rejected by TerminalToolkit safe mode. {message}"
        if not self._approved(command):
            return "Error: Input rejected by approval policy."
        with self._session_lock:
            pending = self._take(session)
            session["command_history"].append(command)
        self._write_to_log(session["log_file"], f"> {command}\n")
        try:
            session["process"].stdin.write(command + "\n")
            session["process"].stdin.flush()
        except Exception as error:
            # A caller may have put a process of another kind there.
            return f"{pending}Error writing to session '{id}': {error}"
        self._await_output(session)
        output = pending + self._collect_output_until_idle(id)
        if output.strip():
            return output
        return f"Input sent to session '{id}' successfully (no output)."

    def _await_output(self, session: dict[str, Any]) -> None:
        """Waits until a session has printed something or has ended, for a bounded time."""
        with self._output_condition:
            self._output_condition.wait_for(
                lambda: not session["running"] or not session["output_stream"].empty(),
                timeout=_SECONDS_TO_ANSWER,
            )

    def shell_view(self, id: str) -> str:
        r"""Returns the output of a session that is new since the last call.
        It does not wait.

        Args:
            id (str): The session's id.

        Returns:
            str: The new output, or how the session is.
        """
        with self._session_lock:
            session = self.shell_sessions.get(id)
            if session is None:
                return f"Error: No session found with ID '{id}'."
            running = session["running"]
            output = self._take(session)
        if not running:
            told = session.get("exit") is not None and not session.get("killed")
            end = _how_it_ended(session["exit"]) if told else ""
            taken_back = held_back(session["exit"]).rstrip() if told else ""
            suffix = "".join(f"\n{one}" for one in (f"[{end}]" if end else "", taken_back) if one)
            if output:
                return f"{output}\n\n--- SESSION TERMINATED ---{suffix}"
            return f"--- SESSION TERMINATED (no new output) ---{suffix}"
        if output:
            return output
        return (
            "[No new output]\n"
            "Session is running but idle. Actions could take:\n"
            "  - For interactive sessions: Send input with shell_write_to_process()\n"
            "  - For long tasks: Check again later (don't poll too frequently)"
        )

    @manual_timeout
    def shell_kill_process(self, id: str) -> str:
        r"""Ends a session with everything that it started.

        Args:
            id (str): The session's id.

        Returns:
            str: A confirmation.
        """
        with self._session_lock:
            session = self.shell_sessions.get(id)
            if session is None or not session["running"]:
                return f"Error: No active session found with ID '{id}'."
        process = session["process"]
        try:
            # How it ended is known: the reader may find it out before or after this.
            session["killed"] = True
            if session["backend"] == "docker" and "mark" in session:
                self._kill_in_container(session["mark"])
            if process is not None:
                _end(process)
        except Exception as error:
            return f"Error killing process in session '{id}': {error}"
        with self._output_condition:
            session["running"] = False
            self._output_condition.notify_all()
        if isinstance(process, SessionProcess) and process.survivors:
            return (
                f"Error killing process in session '{id}': "
                f"{process.survivors} processes could not be ended"
            )
        return f"Process in session '{id}' has been terminated."

    def _kill_in_container(self, mark: str) -> None:
        # The client's end leaves the processes in the container alone. They are known by a variable.
        script = kill_script(f"SHIELING_COMMAND={mark}")
        self._docker_exec(f"sh -c {shlex.quote(script)}", check_exit_code=False)

    def shell_ask_user_for_help(self, id: str, prompt: str) -> str:
        r"""Pauses and asks a person for help with a session. The person's
        answer is sent to the session, or run as a command if there is none
        with this id.

        Args:
            id (str): The session's id; may be empty.
            prompt (str): The question or instruction for the person.

        Returns:
            str: The output after the person's answer.
        """
        print("\n" + "=" * 60)
        print("LLM Agent needs your help!")
        print(f"PROMPT: {prompt}")
        if id not in self.shell_sessions:
            try:
                answer = input("Your response: ").strip()
            except EOFError:
                return f"User input interrupted for session '{id}' creation."
            if not answer:
                return "No user response."
            print(f"Creating session '{id}' and executing command...")
            result = self.shell_exec(id, answer, block=True)
            return f"Session '{id}' created and executed command:\n{result}"
        session = self.shell_sessions[id]
        if not session.get("printed"):
            # A program that has just started gets the time to ask its question.
            self._await_output(session)
        shown = self._collect_output_until_idle(id).strip() or "(no output)"
        print(f"SESSION: '{id}' (active)")
        print("=" * 60)
        print("--- LAST OUTPUT ---")
        print(shown)
        print("-------------------")
        try:
            answer = input("Your input: ").strip()
        except EOFError:
            return f"User input interrupted for session '{id}'."
        if not answer:
            return f"User provided no input for session '{id}'."
        return self.shell_write_to_process(id, answer)

    # Files.

    def shell_write_content_to_file(self, content: str, file_path: str) -> str:
        r"""Writes text to a file. Directories that are missing are made.

        Args:
            content (str): What the file is to hold.
            file_path (str): The file; a relative path is below the working
                directory.

        Returns:
            str: A confirmation, or what went wrong.
        """
        if self.use_docker_backend:
            answer = self._write_in_container(content, file_path)
        else:
            file_path = os.path.normpath(os.path.join(self._directory(), file_path))
            answer = self._write_here(content, file_path)
        shown = content if answer.startswith("Content") else "(not written)"
        self._write_to_log(
            self.blocking_log_file,
            f"--- Writing content to file at {time.ctime()} ---\n> {file_path}\n"
            f"{answer}\n--------\n{shown}\n--------\n",
        )
        return answer

    def _write_here(self, content: str, path: str) -> str:
        if "\0" in path:
            return f"Error writing to file '{path}': embedded null byte"
        given: Any = content
        if not isinstance(given, str):
            kind = "None" if given is None else type(given).__name__
            return f"Error writing to file '{path}': write() argument must be str, not {kind}"
        outside = "Error: Cannot write to a file outside of the working directory in safe mode."
        if self.safe_mode and not (
            utils.contains(self._directory(), path)
            and utils.contains(os.path.realpath(self._directory()), os.path.realpath(path))
        ):
            return outside
        try:
            if self.safe_mode or self._environment != "local":
                # These methods follow no link out of the working directory, whenever it was made.
                written = self._open().write_file(path, content)
                if (taken_back := held_back_write(written.note)) is not None:
                    raise PermissionError(taken_back)
            else:
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "w", encoding="utf-8", newline="") as file:
                    file.write(content)
        except FileError as error:
            if error.code == "outside":
                return outside
            code = {"is_directory": errno.EISDIR, "not_a_directory": errno.ENOTDIR}.get(error.code)
            shown = error if code is None else OSError(code, os.strerror(code), path)
            return f"Error writing to file '{path}': {shown}"
        except (ShielingError, OSError, ValueError) as error:
            return f"Error writing to file '{path}': {error}"
        return f"Content successfully written to '{path}'."

    def _write_in_container(self, content: str, path: str) -> str:
        target = posixpath.join(self.docker_workdir or "/workspace", path)
        temporary = os.path.join(self.log_dir, f"temp_{uuid.uuid4().hex}.txt")
        try:
            parent = shlex.quote(posixpath.dirname(target))
            self._docker_exec(f'sh -lc "mkdir -p {parent}"', check_exit_code=False)
            with open(temporary, "w", encoding="utf-8", newline="") as file:
                file.write(content)
            subprocess.run(
                ["docker", "cp", temporary, f"{self.container.name}:{target}"],
                check=True,
                capture_output=True,
                text=True,
                stdin=subprocess.DEVNULL,
            )
        except subprocess.CalledProcessError as error:
            return f"Error writing to file '{path}' in Docker container: {error.stderr}"
        except (RuntimeError, OSError, ValueError) as error:
            return f"Error writing to file '{path}' in Docker container: {error}"
        finally:
            if os.path.exists(temporary):
                os.remove(temporary)
        return f"Content successfully written to '{path}' in Docker container."

    # The end.

    def __enter__(self) -> Self:
        return self

    def __exit__(self, exc_type: Any, exc_val: Any, exc_tb: Any) -> Literal[False]:
        self.cleanup()
        return False

    @manual_timeout
    def cleanup(self) -> None:
        """Ends every session and all that commands have left running."""
        with self._session_lock:
            running = [id for id, session in self.shell_sessions.items() if session["running"]]
        own = type(self).shell_kill_process is not _KILL or "shell_kill_process" in vars(self)
        for session_id in running:
            # The toolkit's own processes on this host all end at once below.
            process = self.shell_sessions[session_id]["process"]
            foreign = process is not None and not isinstance(process, SessionProcess)
            if self.use_docker_backend or foreign or own:
                try:
                    self.shell_kill_process(session_id)
                except Exception as error:
                    logger.warning("Failed to kill session '%s' during cleanup: %s", session_id, error)
            elif process is not None:
                # One that has ended keeps its exit code; the reader may not have seen it yet.
                with contextlib.suppress(ShielingError):
                    process.poll()
        with self._prepare_lock:
            opened = list(self._opened.values())
            self._opened.clear()
        for shieling in opened:
            shieling.close()
        with self._output_condition:
            for session_id in running:
                self.shell_sessions[session_id]["running"] = False
            self._output_condition.notify_all()

    def __del__(self) -> None:
        try:
            self.cleanup()
        except Exception:
            # An object that was never set up, or an interpreter that ends, has nothing to end.
            pass

    def get_tools(self) -> list[FunctionTool]:
        """Returns the six tools."""
        return [
            FunctionTool(self.shell_exec),
            FunctionTool(self.shell_view),
            FunctionTool(self.shell_write_content_to_file),
            FunctionTool(self.shell_write_to_process),
            FunctionTool(self.shell_kill_process),
            FunctionTool(self.shell_ask_user_for_help),
        ]


@MCPServer()
class TerminalToolkit(_Terminal, BaseToolkit):
    """Tools by which an agent runs shell commands, here or in a container.

    Args:
        timeout: Seconds that a blocking command may take before it goes on in the background, where
            the call gives no other.
        working_directory: The directory of the commands. Default: `$CAMEL_WORKDIR`, or `workspace`
            below the current directory; in a container `/workspace`.
        use_docker_backend: Whether commands run in a container.
        docker_container_name: The name of a container that runs.
        session_logs_dir: The directory of the logs. Default: `terminal_logs` in the working
            directory.
        safe_mode: Whether commands are checked before they run.
        allowed_commands: The only programs that may run, in safe mode.
        clone_current_env: Whether commands get a copy of this Python's environment.
        install_dependencies: Packages that commands find installed.
        enable_other_runtimes: `Runtime.GO` and `Runtime.JAVA`, if they are on this host.
        require_approval: Called with each command that safe mode lets pass, and with each input of
            a session. What it answers with false does not run.
        environment: `local` runs commands on this host; `sandbox` in a sandbox of this host whose
            only writable directory is the working directory; `memory` in a bash with files of its
            own, without any process, where a session reads no input.
        shieling: Further keywords of `shieling.Shieling`: `deny`, `ignore`, `network`, `memory`,
            `pids` and others.

    Environments of Python are made and packages installed with the first command that needs them.
    """


def _end(process: Any) -> None:
    """Ends a process that has the methods of `subprocess.Popen`."""
    process.terminate()
    if process.poll() is None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=_SECONDS_TO_END)
        if process.poll() is None:
            process.kill()
    for stream in (getattr(process, "stdin", None), getattr(process, "stdout", None)):
        if stream is not None:
            with contextlib.suppress(Exception):
                stream.close()


def _docker_errors() -> tuple[type[BaseException], ...]:
    return tuple(error for error in (APIError, NotFound) if isinstance(error, type))


def _or_default(value: T | None, default: T) -> T:
    return default if value is None else value


def _log_status(text: str) -> None:
    logger.info("%s", text.strip())


# How the toolkit itself ends a session; a subclass may have a way of its own.
_KILL = TerminalToolkit.shell_kill_process


def _how_it_ended(outcome: Outcome) -> str:
    """Returns how a command failed, or nothing if it did not."""
    if outcome.status == "signalled":
        return f"signal {outcome.signal}"
    if outcome.status == "exited":
        return f"exit code {outcome.exit_code}" if outcome.exit_code else ""
    if outcome.status == "running":
        return ""
    return f"{outcome.status.replace('_', ' ')}{': ' + outcome.error if outcome.error else ''}"
