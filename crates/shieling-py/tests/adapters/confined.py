"""What the tests of the adapters share: whether there is a sandbox here, and the examples of agents."""

from __future__ import annotations

import functools
import os
import runpy
import tempfile
from pathlib import Path

import pytest

from shieling import Shieling, ShielingError


@functools.cache
def _missing() -> str | None:
    with tempfile.TemporaryDirectory() as place:
        try:
            with Shieling("sandbox", workspace=place) as shieling:
                outcome = shieling.run("true")
        except ShielingError as error:
            return str(error)
    return None if outcome.ok else str(outcome.error or outcome.status)


def need(environment: str) -> str:
    """`environment`, where that is there; otherwise the test is skipped, or fails where ``CI`` is set."""
    if environment == "sandbox" and (missing := _missing()) is not None:
        if os.environ.get("CI") == "true":
            pytest.fail(f"no sandbox can be made here: {missing}")
        pytest.skip(f"no sandbox can be made here: {missing}")
    return environment


def run_example(framework: str) -> None:
    """Runs the example of an agent of the framework, in the sandbox."""
    need("sandbox")
    examples = Path(__file__).resolve().parents[2] / "examples/agents"
    runpy.run_path(str(examples / f"with_{framework}.py"), run_name="__main__")
