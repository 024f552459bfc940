"""``Shieling("container")`` with a Docker daemon of the tests' own."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from docker_engine import containers, engine  # noqa: F401
from shieling import AsyncShieling, ConfigurationError, Shieling


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def work(tmp_path: Path) -> Path:
    work = tmp_path / "work"
    work.mkdir()
    (work / "note").write_text("one\n")
    return work


def test_what_changes_in_a_copied_workspace_goes_with_the_container_or_comes_back(engine: str, work: Path) -> None:
    options: dict[str, Any] = {"image": engine, "pull": "never", "workspace": work}
    with Shieling("container", workspace_copy="in", **options) as shieling:
        assert shieling.run("cat note; echo two >note; echo new >new; cat note").stdout == "one\ntwo\n"
    assert (work / "note").read_text() == "one\n" and not (work / "new").exists()
    assert shieling.changes_at_close is None and shieling.close_error is None

    with Shieling("container", workspace_copy="both", **options) as shieling:
        outcome = shieling.run("echo two >note; echo new >new")
        assert outcome.ok and outcome.changes is None
        assert (work / "note").read_text() == "one\n"
    assert (work / "note").read_text() == "two\n" and (work / "new").read_text() == "new\n"
    changes = shieling.changes_at_close
    assert changes is not None and changes.state == "committed" and shieling.close_error is None
    assert changes.added == ("new",) and changes.modified == ("note",)

    # Where both changed the same file nothing is moved, and that is told.
    with Shieling("container", workspace_copy="both", **options) as shieling:
        assert shieling.run("echo theirs >note; echo more >more").ok
        (work / "note").write_text("mine\n")
    changes = shieling.changes_at_close
    assert changes is not None and changes.state == "conflict" and changes.id is not None
    assert [str(conflict.path) for conflict in changes.conflicts] == ["note"]
    assert (work / "note").read_text() == "mine\n" and not (work / "more").exists()
    assert containers() == []


def test_a_copied_workspace_can_be_had_in_coroutines(engine: str, work: Path) -> None:
    async def works() -> AsyncShieling:
        async with AsyncShieling(
            "container", image=engine, pull="never", workspace=work, workspace_copy="both"
        ) as shieling:
            assert (await shieling.run("echo two >note")).ok
        return shieling

    shieling = asyncio.run(works())
    assert (work / "note").read_text() == "two\n"
    assert shieling.changes_at_close is not None and shieling.changes_at_close.modified == ("note",)


def test_each_command_can_have_a_container_of_its_own(engine: str, work: Path) -> None:
    with Shieling("container", image=engine, pull="never", workspace=work, per_command=True) as shieling:
        outcomes = [shieling.run("cat /proc/sys/kernel/hostname note; ls /tmp; echo x >/tmp/x") for _ in range(2)]
        assert [outcome.exit_code for outcome in outcomes] == [0, 0]
        names = {outcome.stdout.removesuffix("\none\n") for outcome in outcomes}
        assert len(names) == 2, names
        outcome = shieling.run("sleep 60", timeout=0.5)
        assert outcome.status == "timed_out" and outcome.survivors == 0
        refused = shieling.session("one").run("true")
        assert refused.error is not None and "each command has a container of its own" in refused.error
    assert containers() == []


def test_what_does_not_go_together_is_refused_in_keywords(work: Path) -> None:
    options: dict[str, Any] = {"image": "x", "workspace": work}
    for wrong, told in [
        ({"workspace_copy": "out"}, "`workspace_copy` is 'out', and can be `in` or `both`"),
        ({"workspace_copy": "in", "writable": True}, "`writable=True` does not go with `workspace_copy`"),
        ({"workspace_copy": "both", "per_command": True}, "`per_command=True` does not go with `workspace_copy`"),
        ({"workspace_copy": "both", "readonly": True}, "workspace_copy"),
        ({"per_command": 1}, "per_command"),
    ]:
        with pytest.raises(ConfigurationError) as raised:
            Shieling("container", **options, **wrong)
        assert told in str(raised.value), (wrong, raised.value)
    with pytest.raises(ConfigurationError, match="it is about containers"):
        Shieling("local", workspace=work, workspace_copy="in", acknowledge_unsafe=True, approval="never")
