"""Where the demo works: a temporary folder that vanishes, and a daemon that ends with it."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

PREFIX = "acceld-demo-"
STOP_S = 15.0  # longer than the daemon gives its chassis
SOCKET_FOLDER_MAX = 85  # of the 107 bytes of a socket's path


class DemoFailed(Exception):
    """The demo cannot go on; the message says why."""


@contextmanager
def workplace(parent: Path | None = None) -> Iterator[Path]:
    """A temporary folder that vanishes; those of demos that were killed vanish first."""
    parent = parent or Path(tempfile.gettempdir())
    for stale in parent.glob(f"{PREFIX}*"):
        with _locked(stale / "lock") as free:
            if free:
                shutil.rmtree(stale, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
    try:
        (folder / "lock").touch()
        with _locked(folder / "lock"):
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def short_place(folder: Path) -> Iterator[Path]:
    """The folder, or one in /tmp where its path is too long for a Unix socket in it."""
    if len(os.fsencode(folder)) <= SOCKET_FOLDER_MAX:
        yield folder
    else:
        with workplace(Path("/tmp")) as short:
            yield short


@contextmanager
def _locked(path: Path) -> Iterator[bool]:
    """Hold the file's lock meanwhile; False when somebody else does, or it is not there."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        yield False
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        free = False
    else:
        free = True
    try:
        yield free
    finally:
        os.close(descriptor)


def example(name: str) -> str:
    """A rack of examples/: inside an installed package, or beside a checkout's packages."""
    package = files("acceld")
    for place in (package / "examples" / name, Path(str(package)).parents[1] / "examples" / name):
        if place.is_file():
            return place.read_text()
    raise DemoFailed(f"examples/{name} was not installed")


def with_transport(config: str, transport: str) -> str:
    """The same rack with every fibre over another transport."""
    kept = re.sub(r"(?m)^transport\s*=.*\n", "", config)
    return re.sub(r"(?m)^\[\[fibre\]\]\n", f'[[fibre]]\ntransport = "{transport}"\n', kept)


@dataclass(slots=True)
class OwnDaemon:
    """`acceld serve` as a child, with its sockets and its state in the demo's folder."""

    folder: Path
    process: subprocess.Popen[bytes]

    @property
    def socket(self) -> str:
        return str(self.folder / "acceld.sock")

    def said(self) -> str:
        """The end of its log."""
        return (self.folder / "acceld.log").read_text(errors="replace")[-2000:]


@contextmanager
def daemon(config: Path, folder: Path) -> Iterator[OwnDaemon]:
    with short_place(folder) as place, _daemon(config, place) as running:
        yield running


@contextmanager
def _daemon(config: Path, folder: Path) -> Iterator[OwnDaemon]:
    command = [
        sys.executable, "-m", "acceld.demo.child", str(os.getpid()), "serve",
        "--config", str(config),
        "--chassis", "own",
        "--state-dir", str(folder / "state"),
        "--socket", str(folder / "acceld.sock"),
        "--hardware-socket", str(folder / "hardware.sock"),
        "--metrics", "off",
    ]  # fmt: skip
    with (folder / "acceld.log").open("wb") as log:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C reaches the demo alone, which ends it in order.
        )
    try:
        yield OwnDaemon(folder, process)
    finally:
        process.terminate()
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
