"""One command: its outcome, its arguments, its bounds, and what is refused."""

from __future__ import annotations

import asyncio
import datetime
import inspect
import pickle
import threading
import time
from decimal import Decimal
from fractions import Fraction
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from conftest import LOCAL, Mark

from shieling import (
    ArgumentError,
    AsyncShieling,
    ClosedError,
    CommandFailedError,
    CommandTimeoutError,
    ConfigurationError,
    DeniedError,
    Outcome,
    Shieling,
    ShielingError,
    _options,
)


def test_an_outcome_has_every_field_of_the_contract(here: Shieling) -> None:
    outcome = here.run("echo out; echo err >&2; exit 3")
    assert (outcome.status, outcome.exit_code, outcome.signal) == ("exited", 3, None)
    assert (outcome.stdout, outcome.stderr) == ("out\n", "err\n")
    assert (outcome.stdout_bytes, outcome.stderr_bytes, outcome.truncated) == (4, 4, False)
    assert outcome.environment == here.environment
    assert outcome.survivors == 0 and outcome.session is None and outcome.job is None and outcome.denial is None
    contract = {
        "status exit_code signal stdout stderr stdout_bytes stderr_bytes truncated output_id duration_ms cwd environment",
        "confinement survivors session session_restarted job changes network denial",
    }
    assert set(" ".join(contract).split()) <= set(outcome.to_dict())


def test_an_outcome_is_a_value(memory: Shieling) -> None:
    outcome = memory.run("echo hello")
    assert pickle.loads(pickle.dumps(outcome)) == outcome
    assert Outcome.from_dict(outcome.to_dict()) == outcome
    assert {outcome: 1}[outcome] == 1
    with pytest.raises(AttributeError):
        outcome.stdout = "x"  # type: ignore[misc]
    with pytest.raises(AttributeError):
        del outcome.stdout


def test_exceptions_survive_pickling(memory: Shieling) -> None:
    with Shieling("memory", readonly=True) as readonly, pytest.raises(DeniedError) as raised:
        readonly.run("rm x").check()
    again = pickle.loads(pickle.dumps(raised.value))
    assert again.denial == raised.value.denial and again.outcome == raised.value.outcome
    with pytest.raises(CommandFailedError) as failed:
        memory.run("exit 3").check()
    assert pickle.loads(pickle.dumps(failed.value)).outcome == failed.value.outcome


def test_objects_say_what_they_are(tmp_path: Path) -> None:
    with Shieling("local", workspace=tmp_path, **LOCAL) as shieling:
        assert repr(shieling) == f"<Shieling local {str(tmp_path)!r}>"
        assert isinstance(shieling.workspace, str)
        assert repr(shieling.session("build")) == "<Session build>"
        assert repr(shieling.background("true", id="job")) == "<Job job>"
        with shieling.start("cat") as process:
            assert repr(process) == "<Process running>"
            process.close_stdin()
            process.wait()
            assert repr(process) == "<Process ended with 0>"
    assert repr(shieling) == f"<Shieling local {str(tmp_path)!r}, closed>"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"approval": "sometimes"}, "`approval` is 'sometimes', and can be `always`, `policy` or `never`"),
        ({"network": "wifi"}, "`network` is 'wifi', and can be `none`, `loopback` or `host`"),
        ({"home": 3}, "`home` is 3, and can be `private` or `persistent`"),
        ({"deny": [5]}, "`deny` holds 5, and has to be a list of strings"),
        ({"policy": [5]}, "`policy` holds 5, and has to be a list of strings"),
        ({"read": [b"x"]}, "`read` holds b'x', and has to be a list of strings"),
        ({"workspace": 5}, "`workspace` is 5, and has to be a path: a string or an `os.PathLike`"),
        ({"workspace": b"x"}, "`workspace` is b'x', and has to be a path: a string or an `os.PathLike`"),
        ({"audit": 5}, "`audit` is 5, and has to be a path: a string or an `os.PathLike`"),
        ({"readonly": "yes"}, "`readonly` is 'yes', and has to be `True` or `False`"),
        ({"inherit_env": 5}, "`inherit_env` is 5, and has to be `True` or `False`"),
        ({"store_output": None}, "`store_output` is None, and has to be `True` or `False`"),
        ({"image": 5}, "`image` is 5, and has to be a string"),
        ({"rate": 5}, "`rate` is 5, and has to be a string"),
        ({"pids": 1.5}, "`pids` is 1.5, and has to be a whole number or a string"),
        ({"pids": True}, "`pids` is True, and has to be a whole number or a string"),
        ({"pids": float("inf")}, "`pids` is inf, and has to be a whole number or a string"),
        ({"user": 1.5}, "`user` is 1.5, and has to be a whole number or a string"),
        ({"cpus": 1j}, "`cpus` is 1j, and has to be a number or a string"),
        ({"env": "x"}, "`env` is 'x', and has to be a mapping of names to values, or pairs of them"),
        ({"env": ["A=secret"]}, "`env` holds what is no pair, and has to be a mapping of names to values, or pairs of them"),
        ({"env": [("A", 1)]}, "`env` holds 'A': 1, and names and values have to be strings"),
        ({"env": {"A": "\ud800"}}, "`env` holds 'A', and no variable can have this name or value"),
        ({"workdir": 5}, "`workdir` is 5, and has to be a path: a string or an `os.PathLike`"),
        ({"shell": "/bin/\0"}, "`shell` is '/bin/\\x00', and cannot have a NUL character in it"),
        ({"shell": "/bin/\ud800"}, "`shell` is '/bin/\\ud800', and has to be UTF-8, which a lone surrogate is not"),
        ({"workspace": "/\ud800"}, "`workspace` is '/\\ud800', and has to be UTF-8, which a lone surrogate is not"),
        ({"workspace": "/\0"}, "`workspace` is '/\\x00', and cannot have a NUL character in it"),
        ({"audit": "/\ud800"}, "`audit` is '/\\ud800', and has to be UTF-8, which a lone surrogate is not"),
        ({"deny": ["\ud800"]}, "`deny` holds '\\ud800', and has to be UTF-8, which a lone surrogate is not"),
        ({"read": ["/x\0"]}, "`read` holds '/x\\x00', and cannot have a NUL character in it"),
        ({"pids": "5\ud800"}, "`pids` is '5\\ud800', and has to be UTF-8, which a lone surrogate is not"),
        ({"allow_hosts": ["\ud800"]}, "`allow_hosts` holds '\\ud800', and has to be UTF-8, which a lone surrogate is not"),
        ({"approver": 5}, "`approver` is 5, and has to be a function that is called with a `Question`"),
        ({"pids": "x"}, "`x` is not a number of processes from 1 to 4000000, such as `512`"),
    ],
)
def test_a_wrong_option_is_told_in_the_callers_words(options: dict[str, Any], words: str) -> None:
    for kind in (Shieling, AsyncShieling):
        with pytest.raises(ConfigurationError) as raised:
            kind("memory", **options)
        assert str(raised.value) == words


class Whole:
    """A whole number as numpy has them."""

    def __init__(self, number: int) -> None:
        self._number = number

    def __index__(self) -> int:
        return self._number


def test_a_number_may_be_of_any_type(tmp_path: Path) -> None:
    def settings(**options: Any) -> dict[str, Any]:
        given = {name: one.default for name, one in inspect.signature(Shieling.__init__).parameters.items()}
        found: dict[str, Any] = _options._settings({**given, "environment": "sandbox", **options})
        return found

    for fifty in (50, 50.0, Decimal(50), Fraction(50), Whole(50), "50"):
        for name in ("pids", "user", "memory", "file_size"):
            assert settings(**{name: fifty})[name.replace("_", "-")] == "50", fifty
        Shieling("sandbox", workspace=tmp_path, pids=fifty)  # type: ignore[arg-type]
    for half in (1.5, Decimal("1.5"), Fraction(3, 2), "1.5"):
        assert settings(cpus=half)["cpus"] == "1.5"
        Shieling("sandbox", workspace=tmp_path, cpus=half)  # type: ignore[arg-type]
    assert settings(cpus=2)["cpus"] == settings(cpus=Whole(2))["cpus"] == "2"


def test_a_workdir_may_be_a_path() -> None:
    with pytest.raises(ConfigurationError, match="`workdir` cannot be enforced in `sandbox`"):
        Shieling("sandbox", workdir=PurePosixPath("/app"))


@pytest.mark.parametrize("env", [{"A": "b"}, [("A", "b")], [["A", "b"]], {"A": "b"}.items(), iter([("A", "b")])])
def test_variables_may_be_pairs(tmp_path: Path, env: Any) -> None:
    with Shieling("memory", workspace=tmp_path, env=env) as shieling:
        assert shieling.run("echo $A").stdout == "b\n"


def test_the_url_of_another_machine_is_text() -> None:
    with pytest.raises(ConfigurationError, match="^`environment` is 'ssh:.*lone surrogate"):
        Shieling("ssh://\ud800")


def test_every_option_of_a_wrong_type_is_named() -> None:
    for name in list(inspect.signature(Shieling.__init__).parameters)[2:]:
        # What is callable may be asked.
        wrong = 5 if name == "approver" else object
        with pytest.raises(ConfigurationError, match=f"^`{name}` "):
            Shieling("memory", **{name: wrong})


def test_a_wrong_argument_is_named_as_the_caller_knows_it(memory: Shieling) -> None:
    job = memory.background("true")
    calls: dict[str, Any] = {
        "limit": lambda: memory.ls(limit="x"),  # type: ignore[arg-type]
        "session": lambda: memory.background("true", session=5),  # type: ignore[arg-type]
        "tty": lambda: memory.background("true", tty="x"),  # type: ignore[arg-type]
        "wait_for": lambda: job.view(wait_for=5),  # type: ignore[arg-type]
        "text": lambda: job.write(5),  # type: ignore[arg-type]
        "command": lambda: memory.run("echo \ud800"),
        "id": lambda: memory.output(5),  # type: ignore[arg-type]
    }
    for name, call in calls.items():
        with pytest.raises(ArgumentError, match=f"^`{name}` has a wrong value: "):
            call()


@pytest.mark.parametrize("env", [{"A": 1}, {1: "a"}, {"A": b"x"}, [("A", "1")]])
def test_variables_have_to_be_texts(memory: Shieling, env: Any) -> None:
    with pytest.raises(ArgumentError, match="^`env` "):
        memory.run("echo x", env=env)


def test_a_content_is_text_or_bytes(memory: Shieling) -> None:
    memory.write_file("a", bytearray(b"one"))  # type: ignore[arg-type]
    assert memory.read_bytes("a") == b"one"
    for content in (3, None, ["x"]):
        with pytest.raises(ArgumentError, match="^a content is a string or bytes"):
            memory.write_file("b", content)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="^a content is a string or bytes"):
        memory.run("cat", stdin=3)  # type: ignore[arg-type]
    assert not memory.exists("b")


@pytest.mark.parametrize("name", ["docker", "", "ssh:/host", None, 3])
def test_an_environment_that_does_not_exist_is_named(name: Any) -> None:
    with pytest.raises(ConfigurationError) as raised:
        Shieling(name)
    assert str(raised.value) == (
        f"there is no environment {name!r}; there are `sandbox`, `local`, `memory`, `container`, "
        "and `ssh://[USER@]HOST[:PORT][/DIR]`"
    )


@pytest.mark.parametrize("first", ["x=1", "if", "!", "{", "[[", "coproc", "for", "x+=1", "a[0]=1", "~", "*"])
def test_the_first_of_several_words_is_the_name_of_a_command(here: Shieling, first: str) -> None:
    outcome = here.run([first, "printenv", "x"])
    assert (outcome.status, outcome.exit_code, outcome.stdout) == ("exited", 127, ""), outcome
    assert f"{first}: command not found" in outcome.stderr


@pytest.mark.parametrize("arguments", [{"command": ["echo", 1]}, {"command": "pwd", "cwd": 1}, {"command": "pwd", "cwd": b"/"}])
def test_what_is_no_string_is_an_error_of_the_argument(here: Shieling, arguments: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError, match="is a string"):
        here.run(**arguments)


def test_a_word_may_be_a_path(memory: Shieling, tmp_path: Path) -> None:
    words: list[str | Path] = ["echo", tmp_path / "a b"]
    assert memory.run(words).stdout == f"{tmp_path}/a b\n"


def test_words_are_quoted(here: Shieling) -> None:
    words = ["printf", "%s|", "a b", "$HOME", "'", '"', "*", "", "é\n", "-n"]
    assert here.run(words).stdout == "a b|$HOME|'|\"|*||é\n|-n|"


@pytest.mark.parametrize(
    "command", ["", "   ", [], "a\0b", b"ls", 3, None, "x" * 10_000_000], ids=lambda command: repr(command)[:20]
)
def test_what_is_no_command_is_refused_before_anything_starts(memory: Shieling, command: Any) -> None:
    with pytest.raises((ArgumentError, TypeError)):
        memory.run(command)


@pytest.mark.parametrize("timeout", [0, -1, "nonsense", "5 parsecs", float("nan"), True, object()])
def test_what_is_no_timeout_is_refused(memory: Shieling, timeout: Any) -> None:
    with pytest.raises(ArgumentError):
        memory.run("true", timeout=timeout)
    with pytest.raises(ConfigurationError):
        Shieling("memory", timeout=timeout)


@pytest.mark.parametrize("timeout", [5, 5.5, "5s", "500ms", "2m", "1h", datetime.timedelta(seconds=5), float("inf")])
def test_every_form_of_a_timeout_is_taken(memory: Shieling, timeout: Any) -> None:
    assert memory.run("true", timeout=timeout).ok


@pytest.mark.parametrize(
    "options",
    [
        {"environment": "moon"},
        {"environment": "container"},
        {"environment": "sandbox", "workspace": "/no/such/directory"},
        {"environment": "local", "approval": "never"},
        {"environment": "local", "memory": "1GiB"},
        {"environment": "local", "network": "none"},
        {"environment": "memory", "network": "host"},
        {"environment": "memory", "allow": "ls"},
        {"environment": "memory", "policy": "no-such-preset"},
        {"environment": "memory", "policy": "/no/such/policy.toml"},
        {"environment": "memory", "rate": "often"},
        {"environment": "memory", "memory": "much"},
        {"environment": "memory", "env": {"A=B": "c"}},
        {"environment": "memory", "env": {"A": 3}},
        {"environment": "memory", "allow_hosts": ["example.org"]},
        {"environment": "sandbox", "allow_hosts": ["https://example.org/"]},
        {"environment": "sandbox", "secrets": ["NOT A SECRET"]},
        {"environment": "memory", "changes": "commit"},
        {"environment": "memory", "max_output": 0},
        {"environment": "memory", "output_limit": 0},
        {"environment": "memory", "output_limit": "much"},
        {"environment": "memory", "workspace": 3},
    ],
    ids=repr,
)
def test_a_wrong_option_is_refused_with_its_name(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError) as raised:
        Shieling(**options)
    assert "--" not in str(raised.value), "the command line's options are no keywords"


def test_a_refusal_says_which_keyword_helps() -> None:
    with pytest.raises(ConfigurationError, match="acknowledge_unsafe=True"):
        Shieling("local", approval="never")
    with pytest.raises(ConfigurationError, match="instead  give an existing directory with `workspace=DIR`"):
        Shieling("sandbox", workspace="/nowhere/at/all")
    with pytest.raises(ConfigurationError, match="name one with `image='debian:12'`, or .* with `container=NAME`"):
        Shieling("container")


def test_that_it_is_an_error_is_not_said_twice(memory: Shieling) -> None:
    with pytest.raises(ArgumentError, match=r"\Athe command is empty"):
        memory.run(" ")
    with pytest.raises(ConfigurationError, match=r"\Ano preset is called `nothing`"):
        Shieling("memory", policy="nothing")
    with pytest.raises(ConfigurationError, match=r"\Athe workspace `/nowhere` cannot be used"):
        Shieling("local", workspace="/nowhere")


@pytest.mark.parametrize("limit", ["1MiB", 2**20])
def test_a_command_that_prints_more_than_its_limit_is_ended(place: dict[str, Any], limit: int | str) -> None:
    with Shieling(**place, output_limit=limit) as shieling:
        for run in (shieling.run, shieling.session().run):
            assert run("yes").status == "output_limit"
            # Both streams count, and each command for itself.
            assert run("head -c 524288 /dev/zero; head -c 524288 /dev/zero >&2").exit_code == 0
            assert run("head -c 524288 /dev/zero; head -c 524289 /dev/zero >&2; sleep 50").status == "output_limit"


def test_output_is_bounded_and_the_whole_of_it_is_kept(place: dict[str, Any]) -> None:
    with Shieling(**place, max_output="1KiB") as shieling:
        outcome = shieling.run("seq 100000")
        assert outcome.truncated and outcome.stdout.startswith("1\n2\n") and outcome.stdout.endswith("100000\n")
        assert len(outcome.stdout) < 2_000 and outcome.output_id
        whole, cursor = b"", 0
        while True:
            page = shieling.output(outcome.output_id, cursor=cursor, limit=100_000)
            whole += page.data
            if page.next is None:
                break
            cursor = page.next
        assert whole == b"".join(b"%d\n" % number for number in range(1, 100_001))
        with pytest.raises(ArgumentError):
            shieling.output("../../etc/passwd")


def test_stdin_is_given_byte_for_byte(here: Shieling) -> None:
    data = bytes(range(256)) * 4_000
    outcome = here.run("sha256sum", stdin=data)
    import hashlib

    assert outcome.stdout.split()[0] == hashlib.sha256(data).hexdigest()
    # One that reads none of it ends all the same.
    assert here.run("head -c 1 | wc -c", stdin=data * 10).stdout.strip() == "1"
    assert here.run("true", stdin=data * 10).ok
    assert here.run("cat", stdin="").stdout == ""


def test_a_timeout_is_an_outcome_that_keeps_the_work(here: Shieling, mark: Mark) -> None:
    outcome = here.run(f"echo before; {mark.sleep} & {mark.sleep}", timeout=0.5)
    assert (outcome.status, outcome.exit_code, outcome.stdout) == ("timed_out", 124, "before\n")
    assert outcome.survivors == 0 and mark.count() == 0
    with pytest.raises(CommandTimeoutError) as raised:
        outcome.check()
    assert isinstance(raised.value, TimeoutError) and raised.value.outcome is outcome


def test_a_timeout_can_leave_a_job(here: Shieling, mark: Mark) -> None:
    outcome = here.run(f"echo before; {mark.sleep}", timeout=0.5, on_timeout="background")
    assert outcome.status == "running" and outcome.job
    job = here.job(outcome.job)
    assert mark.count() == 1
    killed = job.kill()
    assert killed.stdout == "before\n" and killed.survivors == 0 and mark.count() == 0


def test_directory_and_variables_of_one_command(here: Shieling, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    outcome = here.run("pwd; echo $ONE; echo ${HOME-none}", cwd="sub", env={"ONE": "a b", "HOME": None})
    assert outcome.stdout.split("\n")[:2] == [str(tmp_path / "sub"), "a b"]
    with pytest.raises(ArgumentError):
        here.run("true", env={"A=B": "c"})


def test_the_host_s_variables_are_given_only_where_that_is_asked(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("CANARY", "a secret")
    monkeypatch.setenv("BASH_FUNC_f%%", "() { echo no; }")
    with Shieling("local", workspace=tmp_path, **LOCAL) as shieling:
        assert shieling.run("echo ${CANARY-none}").stdout == "none\n"
    with Shieling("local", workspace=tmp_path, pass_env=["CANARY"], **LOCAL) as shieling:
        assert shieling.run("echo ${CANARY-none}").stdout == "a secret\n"
    with Shieling("local", workspace=tmp_path, inherit_env=True, env={"TWO": "2"}, **LOCAL) as shieling:
        assert shieling.run("echo ${CANARY-none} $TWO").stdout == "a secret 2\n"


def test_a_denial_is_data(place: dict[str, Any]) -> None:
    with Shieling(**place, deny=["git push"]) as shieling:
        outcome = shieling.run("git -C sub push --force")
        assert outcome.status == "denied" and outcome.denial is not None and outcome.exit_code is None
        reason = outcome.denial.reasons[0]
        assert outcome.denial.layer == "policy" and reason.decision == "deny" and reason.span is not None
        with pytest.raises(DeniedError, match="git") as raised:
            outcome.check()
        assert isinstance(raised.value, ShielingError) and isinstance(raised.value, PermissionError)
        assert shieling.why("git push").decision == "deny"


def test_a_rate_limit_says_when_to_come_again() -> None:
    with Shieling("memory", rate="2/60,2/60") as shieling:
        assert shieling.run("true").ok and shieling.run("true").ok
        outcome = shieling.run("true")
        assert outcome.status == "rate_limited" and outcome.denial and outcome.denial.retry_after_ms


def test_nothing_starts_after_close(place: dict[str, Any], mark: Mark) -> None:
    shieling = Shieling(**place)
    job = shieling.background(mark.sleep)
    mark.started()
    shieling.close()
    assert mark.count() == 0 and shieling.closed
    shieling.close()
    with pytest.raises(ClosedError):
        shieling.run("true")
    with pytest.raises(ClosedError):
        shieling.read_file("x")
    for late in (job.view, job.wait, job.kill, lambda: shieling.job("j1")):
        with pytest.raises(ClosedError):
            late()
    assert job.id == "j1"


def test_closing_ends_a_command_that_another_thread_waits_for(place: dict[str, Any]) -> None:
    shieling = Shieling(**place)
    found: list[Outcome] = []
    thread = threading.Thread(target=lambda: found.append(shieling.run("touch begun; sleep 30; echo late")))
    thread.start()
    while not shieling.exists("begun"):
        time.sleep(0.01)
    shieling.close()
    thread.join(timeout=15)
    assert not thread.is_alive() and found[0].status == "signalled" and found[0].stdout == ""


def test_an_argument_that_nothing_can_take_is_an_error_of_this_package(here: Shieling) -> None:
    for wrong in (
        lambda: here.run("echo \ud800"),
        lambda: here.ls(limit=-1),
        lambda: here.ls(limit=2**70),
        lambda: here.read_file("x", offset=-1),
        lambda: here.edit_file("x", 5, "y"),  # type: ignore[arg-type]
        lambda: here.grep(None),  # type: ignore[arg-type]
        lambda: here.grep("x", globs="*.py"),
        lambda: here.write_file("x", "\ud800"),
    ):
        with pytest.raises(ArgumentError):
            wrong()


def test_an_environment_that_nobody_holds_ends_what_it_runs(place: dict[str, Any], mark: Mark) -> None:
    shieling = Shieling(**place)
    shieling.background(mark.sleep)
    mark.started()
    del shieling
    mark.gone()


def test_many_threads_run_at_once(here: Shieling) -> None:
    found: list[str] = []

    def run(number: int) -> None:
        for _ in range(5):
            found.append(here.run(f"echo {number}").stdout.strip())

    threads = [threading.Thread(target=run, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == sorted(str(number) for number in range(8) for _ in range(5))


def test_other_threads_run_while_one_waits(here: Shieling) -> None:
    ended = threading.Event()
    thread = threading.Thread(target=lambda: (here.run("sleep 600", timeout=1.0), ended.set()))
    thread.start()
    count = 0
    while not ended.is_set():
        count += 1
    thread.join()
    assert count > 1_000


def test_what_is_asked_of_the_environment(here: Shieling) -> None:
    description = here.describe(tools=["bash"])
    assert description.data["environment"] == here.environment
    assert str(here.workspace) in description.text


def test_what_was_closed_cannot_be_entered(memory: Shieling) -> None:
    memory.close()
    with pytest.raises(ClosedError, match="make a new one"), memory:
        pass

    async def enter() -> None:
        other = AsyncShieling("memory")
        await other.close()
        async with other:
            pass

    with pytest.raises(ClosedError, match="make a new one"):
        asyncio.run(enter())
