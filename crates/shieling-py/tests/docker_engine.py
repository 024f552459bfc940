"""A Docker daemon of the tests' own, with one small image, for the adapters that run commands in containers."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

IMAGE = "shieling-test:1"
"""BusyBox and bash; the user `nobody`; no network is needed for it."""

_FLAGS = (
    "--storage-driver=vfs --bridge=none --iptables=false --ip6tables=false --ip-forward=false --ip-masq=false "
    "--userland-proxy=false --exec-opt=native.cgroupdriver=cgroupfs --log-level=error"
).split()


def _missing() -> str | None:
    if os.geteuid() != 0:
        return "a Docker daemon needs root"
    for program in ("dockerd", "docker", "busybox", "bash", "ldd"):
        if shutil.which(program) is None:
            return f"{program} is not installed"
    return None


def _root(at: Path) -> None:
    """Put the image's files together."""
    (at / "bin").mkdir(parents=True)
    for name, mode in (("tmp", 0o1777), ("etc", 0o755), ("lib64", 0o755)):
        (at / name).mkdir()
        (at / name).chmod(mode)
    (at / "etc/passwd").write_text("root:x:0:0::/:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n")
    (at / "etc/group").write_text("root:x:0:\nnogroup:x:65534:\n")
    busybox = shutil.which("busybox")
    assert busybox is not None
    shutil.copy(os.path.realpath(busybox), at / "bin/busybox")
    for applet in subprocess.run([busybox, "--list"], capture_output=True, text=True, check=True).stdout.split():
        if applet not in ("busybox", "bash"):
            (at / "bin" / applet).symlink_to("busybox")
    shutil.copy("/bin/bash", at / "bin/bash")
    for word in subprocess.run(["ldd", "/bin/bash"], capture_output=True, text=True, check=True).stdout.split():
        if word.startswith("/"):
            target = at / word.lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(word, target)


@pytest.fixture(scope="session")
def engine() -> Iterator[str]:
    """The name of an image, in a daemon that the variable ``DOCKER_HOST`` names meanwhile."""
    missing = _missing()
    if missing is not None:
        if os.environ.get("CI") == "true":
            pytest.fail(missing)
        pytest.skip(missing)
    # A socket's path has to be short.
    place = Path(tempfile.mkdtemp(prefix="shieling-docker-", dir="/tmp"))
    socket = f"unix://{place}/socket"
    before = os.environ.get("DOCKER_HOST")
    paths = [f"--data-root={place}/data", f"--exec-root={place}/exec", f"--pidfile={place}/pid", f"--host={socket}"]
    with open(place / "log", "wb") as log:
        daemon = subprocess.Popen(
            ["dockerd", *paths, *_FLAGS], stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
    os.environ["DOCKER_HOST"] = socket
    try:
        end = time.monotonic() + 60
        while subprocess.run(["docker", "version"], capture_output=True, timeout=30, check=False).returncode != 0:
            assert daemon.poll() is None and time.monotonic() < end, (place / "log").read_text()
            time.sleep(0.1)
        _root(place / "root")
        tar = subprocess.run(["tar", "-C", str(place / "root"), "-c", "."], capture_output=True, check=True).stdout
        words = ["docker", "import", "--change", "ENV PATH=/bin", "-", IMAGE]
        subprocess.run(words, input=tar, capture_output=True, check=True, timeout=60)
        yield IMAGE
    finally:
        os.environ.pop("DOCKER_HOST")
        if before is not None:
            os.environ["DOCKER_HOST"] = before
        daemon.terminate()
        daemon.wait(60)
        shutil.rmtree(place, ignore_errors=True)


def containers() -> list[str]:
    """The containers of the daemon, running or not."""
    return subprocess.run(["docker", "ps", "-aq"], capture_output=True, text=True, check=True).stdout.split()
