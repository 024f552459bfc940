"""Makes `_async.py` out of `_sync.py`, so that the two cannot come apart. `--check` only compares.

What waits in `_sync.py` calls `wait(...)` of `_call.py`; here that becomes `await wait_async(...)`, the method becomes
a coroutine, and so does everything that calls such a method. Examples become coroutines, too.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

HERE = Path(__file__).parent / "python" / "shieling"
CLASSES = ["Shieling", "Session", "Process", "Stream", "Job"]
OBJECTS = r"(?:shieling|session|job|process|process\.stdout|process\.stderr|self)"


def blocks(lines: list[str]) -> list[list[str]]:
    """The file in pieces, each beginning with a `def`."""
    pieces: list[list[str]] = [[]]
    for line in lines:
        if re.match(r"    def |class |    @", line) and not (pieces[-1] and pieces[-1][-1].startswith("    @")):
            pieces.append([])
        pieces[-1].append(line)
    return pieces


def name_of(piece: list[str]) -> str | None:
    for line in piece:
        found = re.match(r"    def (\w+)", line)
        if found:
            return found.group(1)
    return None


def code_of(piece: list[str]) -> str:
    return re.sub(r'"""(?s:.*?)"""', "", "".join(piece))


def is_waiting(piece: list[str]) -> bool:
    return "wait_call(" in code_of(piece)


def example(lines: list[str], waiting: set[str]) -> list[str]:
    """An example that begins with `with Shieling`, as a coroutine that is run."""
    indent = lines[0][: len(lines[0]) - len(lines[0].lstrip())]
    body = []
    for line in lines:
        text = line.strip()
        text = text[4:] if text[:4] in (">>> ", "... ") else ""
        text = re.sub(r"^with ", "async with ", text)
        text = re.sub(r"Shieling\(", "AsyncShieling(", text)
        names = "|".join(sorted(waiting, key=len, reverse=True))
        text = re.sub(rf"(?<![\w.])({OBJECTS}\.(?:{names})\()", r"await \1", text)
        text = re.sub(r"await (shieling\.start\()", r"await \1", text)
        text = text.replace("for line in process", "async for line in process")
        body.append(f"{indent}...     {text}\n")
    return [
        f"{indent}>>> async def example():\n",
        *body,
        f"{indent}>>> asyncio.run(example())\n",
    ]


def convert(source: str) -> str:
    pieces = blocks(source.splitlines(keepends=True))
    waiting = {name for piece in pieces if (name := name_of(piece)) and is_waiting(piece)}
    waiting -= {"__exit__", "__iter__"}
    # What calls those waits as well.
    grown = True
    while grown:
        found = {
            name
            for piece in pieces
            if (name := name_of(piece)) and re.search(rf"self\.(?:{'|'.join(waiting)})\(", code_of(piece))
        } - {"__exit__", "__iter__"}
        grown = not found <= waiting
        waiting |= found
    out: list[str] = []
    current = ""
    for piece in pieces:
        name = name_of(piece)
        first = next((line for line in piece if line.startswith("class ")), "")
        current = re.match(r"class (\w+)", first).group(1) if first else current  # type: ignore[union-attr]
        waits = name in waiting and (is_waiting(piece) or re.search(rf"self\.(?:{'|'.join(waiting)})\(", code_of(piece)))
        lines: list[str] = []
        in_doc = False
        gathered: list[str] = []
        for line in piece:
            quotes = line.count('"""')
            if quotes == 1:
                in_doc = not in_doc
            is_doc = in_doc or quotes > 0
            text = line.strip()
            if is_doc and not gathered and re.match(r">>> with Shieling", text):
                gathered = [line]
                continue
            if gathered and text.startswith("..."):
                gathered.append(line)
                continue
            if gathered:
                lines += example(gathered, waiting)
                gathered = []
            if not is_doc:
                line = re.sub(r"\bwait_call\(", "await wait_async(", line)
                line = re.sub(rf"(?<!def )(self\.(?:{'|'.join(waiting)})\()", r"await \1", line)
                if waits:
                    line = re.sub(r"^    def ", "    async def ", line)
            lines.append(line)
        text = "".join(lines)
        if name == "__enter__":
            text = text.replace("def __enter__", "async def __aenter__")
        if name == "__exit__":
            text = text.replace("def __exit__", "async def __aexit__")
        if name == "__iter__":
            text = text.replace("def __iter__(self) -> Iterator", "async def __aiter__(self) -> AsyncIterator")
        out.append(text)
    text = "".join(out)
    for name in CLASSES:
        text = re.sub(rf"(?<![\w`.])(?<!Async){name}(?=[\]\",:(. |)\n`])(?!s\b)", f"Async{name}", text)
        text = re.sub(rf":meth:`{name}\.", f":meth:`Async{name}.", text)
    text = re.sub(r"-> AsyncAsync", "-> Async", text)
    text = text.replace("AsyncAsync", "Async")
    text = re.sub(r'""".*?"""', '"""The environment for `asyncio`. Made from `_sync.py` by `generate_async.py`."""', text, count=1)
    text = text.replace("from ._call import Asker, wait_call", "from ._call import Asker\nfrom ._call_async import wait_async")
    text = text.replace("import Iterable, Iterator, ", "import AsyncIterator, Iterable, ")
    text = text.replace("await (await ", "(await ")
    text = text.replace("from __future__ import annotations\n", "from __future__ import annotations\n", 1)
    text = text.replace(">>> async def example():", ">>> import asyncio\n@@>>> async def example():")
    text = re.sub(r"^( *)>>> import asyncio\n@@", r"\1>>> import asyncio\n\1", text, flags=re.M)
    return text


def main() -> int:
    made = convert((HERE / "_sync.py").read_text())
    target = HERE / "_async.py"
    if "--check" in sys.argv:
        same = target.exists() and target.read_text() == made
        if not same:
            print("`_async.py` is not what `_sync.py` gives: run `python generate_async.py`", file=sys.stderr)
        return not same
    target.write_text(made)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
