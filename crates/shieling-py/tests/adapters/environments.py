"""Fixtures: the environments in which the adapters of CAMEL and of Microsoft's agent framework run."""

from __future__ import annotations

import functools
import os
import tempfile

import pytest

from shieling import Shieling, ShielingError


@functools.lru_cache(maxsize=1)
def sandbox_missing() -> str | None:
    """Why there is no sandbox here, or `None`."""
    try:
        with tempfile.TemporaryDirectory() as place, Shieling("sandbox", workspace=place) as one:
            outcome = one.run("true")
    except ShielingError as error:
        return str(error)
    return None if outcome.ok else str(outcome.error or outcome.stderr or outcome.status)


@pytest.fixture
def sandbox() -> str:
    missing = sandbox_missing()
    if missing is not None:
        if os.environ.get("CI") == "true":
            pytest.fail(f"no sandbox can be made here: {missing}")
        pytest.skip(f"no sandbox can be made here: {missing}")
    return "sandbox"


@pytest.fixture(params=["local", "sandbox"])
def environment(request: pytest.FixtureRequest) -> str:
    if request.param == "sandbox":
        request.getfixturevalue("sandbox")
    return str(request.param)
