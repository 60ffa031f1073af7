"""Each room reads only from the rooms at its right; acceld knows the hardware by its border."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCE_ROOTS = (ROOT / "daemon", ROOT / "cli", ROOT / "sdk")

COMMON = ("acceld.errors", "acceld.records", "acceld.sockets")

# A room is the longest prefix that fits a module; it may always read from itself.
ROOMS: dict[str, tuple[str, ...]] = {
    # The emulated hardware: pure rooms first, the world last.
    "accelhw.model": (),
    "accelhw.optics": ("accelhw.model",),
    "accelhw.wire": ("accelhw.model",),
    "accelhw.interface": ("accelhw.model",),
    "accelhw.link": ("accelhw.model", "accelhw.wire"),
    "accelhw.transport": ("accelhw.model", "accelhw.wire"),
    "accelhw.device": (
        "accelhw.model",
        "accelhw.optics",
        "accelhw.wire",
        "accelhw.link",
        "accelhw.fault",  # what befalls its parts
        "accelhw.transport.base",  # the protocol that a data port is handed, not a transport
        "accelhw.transport.direct",  # and the bare half of it
        "accelhw.interface.hugepages",  # what HBM stands on
        "accelhw.interface.tables",  # the rows that a part shows itself in
        "accelhw.interface.messages",  # transfers are posted and reported in its values
    ),
    "accelhw.fault": ("accelhw.model",),
    "accelhw.chassis": (
        "accelhw.model",
        "accelhw.optics",
        "accelhw.wire",
        "accelhw.link",
        "accelhw.device",
        "accelhw.fault",
        "accelhw.transport",
        "accelhw.interface",
    ),
    "accelhw.sim": ("accelhw",),
    # The daemon.
    "acceld.errors": ("accelhw.model",),
    "acceld.records": ("accelhw.model",),
    "acceld.paths": ("accelhw.interface",),
    "acceld.sockets": ("acceld.errors",),
    "acceld.config": ("acceld.errors", "acceld.paths", "accelhw.model"),
    "acceld.store": (*COMMON, "accelhw.model"),
    "acceld.host.snapshot": ("acceld.host.frameloss", "accelhw.model", "accelhw.interface"),
    "acceld.health": ("acceld.host.snapshot", "accelhw.model"),
    "acceld.host": (*COMMON, "acceld.store", "acceld.health", "accelhw.model", "accelhw.interface"),
    "acceld.fields": ("acceld.host", "accelhw.model"),
    "acceld.service": (
        *COMMON,
        "acceld.fields",
        "acceld.health",
        "acceld.host",
        "accelhw.model",
        "accel.v1",
    ),
    "acceld.telemetry": (*COMMON, "acceld.fields", "acceld.host", "accelhw.model"),
    "acceld": ("acceld", "accelhw.model", "accelhw.interface", "accel"),  # app.py, demo.py, ...
    # What talks to it.
    "accel": (),
    "accelctl": ("accel",),
}

# Rooms that meet no clock, socket, thread or chance that was not handed to them.
PURE = (
    "accelhw.model", "accelhw.optics", "accelhw.wire", "accelhw.link", "accelhw.fault",
    "acceld.health",
)  # fmt: skip
WORLD = {
    "asyncio", "fcntl", "grpc", "multiprocessing", "pyroute2", "random", "secrets", "select",
    "selectors", "signal", "socket", "sqlite3", "subprocess", "threading", "time",
}  # fmt: skip


def module_name(path: Path) -> str:
    base = next(root for root in SOURCE_ROOTS if path.is_relative_to(root))
    parts = path.relative_to(base).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def room_of(module: str) -> str:
    fits = [room for room in ROOMS if module == room or module.startswith(room + ".")]
    return max(fits, key=len, default="")


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """Line and full module name of every import, wherever in the file it stands."""
    package = module_name(path).split(".")
    if path.name != "__init__.py":
        package.pop()
    for node in ast.walk(ast.parse(path.read_text(), str(path))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            # `from accelhw import device` reads the room accelhw.device.
            yield from ((node.lineno, f"{module}.{alias.name}") for alias in node.names)


def allowed(room: str, target: str) -> bool:
    return any(target == reads or target.startswith(reads + ".") for reads in (room, *ROOMS[room]))


FILES = sorted(path for root in SOURCE_ROOTS for path in root.rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=module_name)
def test_a_room_reads_only_from_its_right(path: Path) -> None:
    room = room_of(module_name(path))
    own = ("accelhw", "acceld", "accel", "accelctl")
    for line, target in imports(path):
        if target.split(".")[0] in own and room:
            assert allowed(room, target), f"{path}:{line}: {room} reads {target}"


@pytest.mark.parametrize("path", FILES, ids=module_name)
def test_every_module_lives_in_a_room(path: Path) -> None:
    assert room_of(module_name(path)) or module_name(path) == "accelhw"


@pytest.mark.parametrize(
    "path", [p for p in FILES if room_of(module_name(p)) in PURE], ids=module_name
)
def test_a_pure_room_meets_no_world(path: Path) -> None:
    for line, target in imports(path):
        assert target.split(".")[0] not in WORLD, f"{path}:{line}: {target} in a pure room"


def test_the_folders_around_the_packages_are_plain() -> None:
    for folder in ("daemon", "cli", "sdk", "proto", "systemd", "monitoring"):
        assert not (ROOT / folder / "__init__.py").exists()
