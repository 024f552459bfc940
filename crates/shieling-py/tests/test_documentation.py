"""Every example in the documentation runs, every public name has one, and all of it is typed."""

from __future__ import annotations

import doctest
import importlib
import importlib.util
import inspect
import os
import runpy
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pytest

import shieling

HERE = Path(__file__).parent
MODULES = ["shieling", "shieling._records", "shieling._errors", "shieling._sync", "shieling._async"]


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_the_documentation_run(name: str) -> None:
    module = importlib.import_module(name)
    if 'Shieling("sandbox")' in inspect.getsource(module):
        from conftest import need_sandbox

        need_sandbox()
    names = {each: getattr(shieling, each) for each in shieling.__all__}
    failed, tried = doctest.testmod(module, extraglobs=names, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert failed == 0
    assert tried > 0 or name == "shieling._errors"


def public() -> list[tuple[str, Any]]:
    found = []
    for name in shieling.__all__:
        one = getattr(shieling, name)
        # For Python 3.10 the alias of a type is a class.
        if inspect.isclass(one) and not isinstance(one, types.GenericAlias):
            found.append((name, one))
            for member, value in vars(one).items():
                if not member.startswith("_") and (inspect.isfunction(value) or isinstance(value, property)):
                    found.append((f"{name}.{member}", value))
    return found


def test_every_public_name_is_documented() -> None:
    assert [name for name, one in public() if not inspect.getdoc(one)] == []


def test_every_method_has_an_example() -> None:
    classes = ("Shieling", "Session", "Job", "Process", "Stream")
    calls = [(name, one) for name, one in public() if name.partition(".")[0].removeprefix("Async") in classes]
    assert [name for name, one in calls if ">>>" not in (inspect.getdoc(one) or "")] == []


def test_the_asynchronous_classes_are_made_from_the_others() -> None:
    done = subprocess.run([sys.executable, HERE.parent / "generate_async.py", "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_annotations_can_be_evaluated() -> None:
    import typing

    for name in ["Shieling", "AsyncShieling", "Session", "Job", "Process"]:
        for member, value in vars(getattr(shieling, name)).items():
            if inspect.isfunction(value):
                typing.get_type_hints(value)
    assert "sandbox" in str(shieling.EnvironmentName | None)
    for name in ["DeniedError", "CommandFailedError", "Outcome", "Verdict"]:
        assert typing.get_type_hints(getattr(shieling, name))
    assert typing.get_type_hints(shieling.Outcome)["exit_code"] == int | None


@pytest.mark.parametrize("example", sorted((HERE.parent / "examples").glob("*.py")), ids=lambda path: path.stem)
def test_examples_run(example: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if "sandbox" in example.read_text():
        from conftest import need_sandbox

        need_sandbox()
    runpy.run_path(str(example), run_name="__main__")
    assert capsys.readouterr().out


@pytest.mark.parametrize("checker", [["mypy"], ["pyright"]])
def test_types_are_strict(checker: list[str]) -> None:
    if importlib.util.find_spec(checker[0]) is None:
        if os.environ.get("CI") == "true":
            pytest.fail(f"{checker[0]} is not installed")
        pytest.skip(f"{checker[0]} is not installed")
    project = HERE.parent
    words = {
        "mypy": ["--strict", "--python-version", "3.10", "-p", "shieling"],
        "pyright": ["--pythonpath", sys.executable, "--project", str(project)],
    }[checker[0]]
    environment = {**os.environ, "MYPYPATH": str(project / "python")}
    done = subprocess.run(
        [sys.executable, "-m", checker[0], *words], capture_output=True, text=True, cwd=project, env=environment
    )
    assert done.returncode == 0, done.stdout[-5_000:] + done.stderr[-2_000:]


def test_types_of_the_examples_of_agents_are_strict() -> None:
    # The frameworks are not installed here: what is theirs is anything, what is ours is checked.
    pytest.importorskip("mypy")
    project = HERE.parent
    words = ["--strict", "--ignore-missing-imports", "--allow-subclassing-any", "--python-version", "3.10"]
    examples = sorted((project / "examples/agents").glob("*.py"))
    assert len(examples) == 5
    done = subprocess.run([sys.executable, "-m", "mypy", *words, *examples], capture_output=True, text=True, cwd=project)
    assert done.returncode == 0, done.stdout[-5_000:] + done.stderr[-2_000:]
