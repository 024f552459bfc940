"""Fixtures: the environments in which the adapters of CAMEL and of Microsoft's agent framework run."""

from __future__ import annotations

import pytest
from confined import need


@pytest.fixture
def sandbox() -> str:
    return need("sandbox")


@pytest.fixture(params=["local", "sandbox"])
def environment(request: pytest.FixtureRequest) -> str:
    return need(str(request.param))
