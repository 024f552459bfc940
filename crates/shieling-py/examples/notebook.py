"""A loop as in a notebook: cells run one after another in one Python, which keeps its variables."""

import json
import tempfile

from shieling import Process, Shieling

KERNEL = r"""
import contextlib, io, json, sys, traceback
names = {}
for line in sys.stdin:
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        try:
            exec(json.loads(line), names)
        except BaseException:
            traceback.print_exc(limit=0)
    print(json.dumps(out.getvalue()), flush=True)
"""


def cell(kernel: Process, code: str) -> str:
    kernel.write(json.dumps(code) + "\n")
    return str(json.loads(kernel.stdout.readline(timeout=30)))


def main() -> None:
    with tempfile.TemporaryDirectory() as workspace:
        with Shieling("sandbox", workspace=workspace, network="none", timeout="10m") as shieling:
            with shieling.start(["python3", "-u", "-c", KERNEL]) as kernel:
                cell(kernel, "numbers = [n * n for n in range(5)]")
                print(cell(kernel, "print(sum(numbers))").strip())
                print(cell(kernel, "1 / 0").strip())
                print(cell(kernel, "print(len(numbers))").strip())


if __name__ == "__main__":
    main()
