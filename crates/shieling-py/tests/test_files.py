"""The file methods: what they answer, and why not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from shieling import DeniedError, FileError, Shieling

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c489"
    "0000000b4944415478da63f80f040009fb03fd68fa1ccc0000000049454e44ae426082"
)


@pytest.fixture(params=["memory", "local", "sandbox"])
def files(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    from conftest import LOCAL, need_sandbox

    if request.param == "sandbox":
        need_sandbox()
    options: dict[str, Any] = LOCAL if request.param == "local" else {}
    with Shieling(request.param, workspace=tmp_path, **options) as shieling:
        yield shieling


def test_a_file_s_life(files: Shieling) -> None:
    written = files.write_file("a/b.txt", "one\ntwo\nthree\n")
    assert written.created and written.size == 14
    read = files.read_file("a/b.txt", offset=1, limit=1)
    assert (read.kind, read.text, read.total_lines, read.next_offset) == ("text", "two\n", 3, 2)
    edited = files.edit_file("a/b.txt", "two", "2", expect=read.hash)
    assert edited.replacements == 1 and "+2" in edited.diff
    with pytest.raises(FileError) as raised:
        files.edit_file("a/b.txt", "one", "1", expect=read.hash)
    assert raised.value.code == "stale" and "diff" in raised.value.details
    assert files.grep("^2").hits[0].line == 2 and files.glob("*.txt").paths == ("a/b.txt",)
    assert [entry.path for entry in files.ls("a").entries] == ["b.txt"]
    assert files.run("cat a/b.txt").stdout == "one\n2\nthree\n"
    assert files.move("a/b.txt", "c.txt").path.endswith("/c.txt")
    assert files.exists("c.txt") and not files.exists("a/b.txt")
    assert files.stat("c.txt").kind == "file"
    assert files.delete("c.txt").kind == "file" and not files.exists("c.txt")
    with pytest.raises(FileError) as raised:
        files.read_file("c.txt")
    assert raised.value.code == "not_found" and isinstance(raised.value, OSError) and "c.txt" in str(raised.value)


def test_bytes_come_back_as_they_went(files: Shieling) -> None:
    for data in [b"", b"\0\xff\r\n", bytes(range(256)) * 9_000, PNG, "é\n".encode("utf-16")]:
        files.write_file("data.bin", data)
        assert files.read_bytes("data.bin") == data
    with pytest.raises(FileError) as raised:
        files.read_bytes("data.bin", max_bytes=3)
    assert raised.value.code == "too_large"
    with pytest.raises(FileError) as raised:
        files.read_bytes(".")
    assert raised.value.code == "is_directory"


def test_images_and_binary_files(files: Shieling) -> None:
    files.write_file("image.png", PNG)
    read = files.read_file("image.png")
    assert (read.kind, read.mime, read.data) == ("image", "image/png", PNG)
    files.write_file("data", b"\0\1\2")
    assert files.read_file("data").kind == "binary"


def test_errors_say_what_is_near(files: Shieling) -> None:
    files.write_file("a.txt", "    value = 1\nx\nx\n")
    with pytest.raises(FileError) as raised:
        files.edit_file("a.txt", "\tvalue = 1", "y")
    assert raised.value.code == "no_match" and raised.value.details["nearest"][0]["line"] == 1
    with pytest.raises(FileError) as raised:
        files.edit_file("a.txt", "x", "y")
    assert raised.value.code == "ambiguous" and raised.value.details["lines"] == [2, 3]
    assert files.edit_file("a.txt", "x", "y", replace_all=True).replacements == 2
    with pytest.raises(FileError) as raised:
        files.patch("nonsense")
    assert raised.value.code == "bad_patch"
    with pytest.raises(FileError) as raised:
        files.grep("(")
    assert raised.value.code == "argument"
    with pytest.raises(FileError) as raised:
        files.write_file("a.txt", "", create_only=True)
    assert raised.value.code == "exists"


def test_a_patch_changes_all_or_nothing(files: Shieling) -> None:
    files.write_file("a.txt", "one\n")
    patch = "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+1\n--- a/none\n+++ b/none\n@@ -1 +1 @@\n-x\n+y\n"
    with pytest.raises(FileError):
        files.patch(patch)
    assert files.read_file("a.txt").text == "one\n"
    patched = files.patch(patch[: patch.index("--- a/none")])
    assert [(file.change, file.added, file.removed) for file in patched.files] == [("changed", 1, 1)]


def test_long_answers_come_in_pages(files: Shieling) -> None:
    for number in range(7):
        files.write_file(f"{number}.txt", "x\n")
    names: list[str] = []
    after = None
    while True:
        page = files.ls(limit=3, after=after)
        names += [entry.path for entry in page.entries]
        after = page.next
        if after is None:
            break
    assert names == [f"{number}.txt" for number in range(7)]
    first = files.grep("x", limit=4)
    assert len(first.hits) == 4 and first.next and len(files.grep("x", limit=4, cursor=first.next).hits) == 3


@pytest.mark.parametrize("environment", ["memory", "local", "sandbox"])
def test_what_the_policy_says_holds_for_files(environment: str, tmp_path: Path) -> None:
    from conftest import LOCAL, need_sandbox

    if environment == "sandbox":
        need_sandbox()
    (tmp_path / ".env").write_text("SECRET=1\n")
    options: dict[str, Any] = LOCAL if environment == "local" else {}
    with Shieling(environment, workspace=tmp_path, ignore=[".env"], **options) as shieling:  # type: ignore[arg-type]
        assert not shieling.exists(".env")
        with pytest.raises(FileError) as raised:
            shieling.read_bytes(".env")
        assert raised.value.code == "not_found"
    with Shieling(environment, workspace=tmp_path, readonly=True, **options) as shieling:  # type: ignore[arg-type]
        with pytest.raises((DeniedError, FileError)):
            shieling.write_file("a.txt", "x")
        assert not (tmp_path / "a.txt").exists()


def test_a_path_outside_is_not_reached(files: Shieling) -> None:
    if files.environment == "memory":
        pytest.skip("nothing is outside of a memory")
    for path in ["../x", "/etc/passwd-canary", "a/../../x"]:
        with pytest.raises((FileError, DeniedError)):
            files.write_file(path, "x")
    with pytest.raises((FileError, ValueError)):
        files.read_file("a\0b")
