"""The list of the originals' weaknesses names tests and cases that are there."""

from __future__ import annotations

import functools
import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent
LIST = HERE.parents[3] / "docs/adapters/weaknesses.md"
ROW = re.compile(r"\| (?P<system>.+?) \| (?P<does>.+?) \| (?:`(?P<case>.+)`|–) \| `(?P<file>\w+\.py)`: `(?P<test>\w+)` \|")


@functools.cache
def text(file: str) -> str:
    return (HERE / file).read_text()


@pytest.mark.skipif(not LIST.exists(), reason="the list is in the repository alone")
def test_each_row_has_its_test() -> None:
    lines = [line for line in LIST.read_text().splitlines() if line.startswith("| ") and "`: `test_" in line]
    assert len(lines) >= 90
    for line in lines:
        row = ROW.fullmatch(line)
        assert row is not None, line
        assert f"def {row['test']}(" in text(row["file"]), line
        case = (row["case"] or "").replace("\\|", "|")
        assert case in text(row["file"]), line
    assert len(set(lines)) == len(lines)
