"""What all tests share: a network namespace of their own, golden files."""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# No time is asserted, not even that of making an example: machines are busy.
settings.register_profile(
    "any-machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any-machine")

# A fork by whatever library would have gRPC wake up in the child and write to its stderr.
os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"
# Its log lines come from threads of its own, into whatever test reads stderr just then.
os.environ["GRPC_VERBOSITY"] = "NONE"

GOLDEN = Path(__file__).parent / "golden"
CLONE_NEWNET = 0x40000000
CAP_NET_ADMIN = 12


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--golden", action="store_true", help="rewrite tests/golden/")


def pytest_configure(config: pytest.Config) -> None:
    """Each test process gets interfaces of its own: two workers may both make `card0-oe0`."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in what a shell starts with `&`
        signal.signal(signal.SIGINT, signal.default_int_handler)  # children inherit it
    config.stash[NETWORK] = _own_network()


NETWORK = pytest.StashKey[str]()  # why tests cannot make interfaces; empty when they can


def _own_network() -> str:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET) != 0:
        error = os.strerror(ctypes.get_errno())
        return f"no network namespace of its own ({error}); `make test` makes one where it can"
    capabilities = next(
        line for line in Path("/proc/self/status").read_text().splitlines() if "CapEff" in line
    )
    if not int(capabilities.split()[1], 16) >> CAP_NET_ADMIN & 1:
        return "CAP_NET_ADMIN is missing; `make test` gets it where it can"
    _loopback_up()
    return ""


def _loopback_up() -> None:
    import fcntl
    import socket
    import struct

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        request = struct.pack("16sh", b"lo", 0x1 | 0x40)  # IFF_UP, IFF_RUNNING
        fcntl.ioctl(probe, 0x8914, request)  # SIOCSIFFLAGS


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip what this machine cannot do, and say why; `tap` as a parameter means the same."""
    reasons = {
        "network": config.stash[NETWORK],
        "tap": _no_tap(),
        "other_users": _no_other_users(),
    }
    for item in items:
        marks = {mark.name for mark in item.iter_markers()}
        parameters = getattr(getattr(item, "callspec", None), "params", {}).values()
        if any(str(value) == "tap" for value in parameters):
            marks.add("tap")
        for mark, why in reasons.items():
            if why and mark in marks:
                item.add_marker(pytest.mark.skip(reason=why))


def _no_tap() -> str:
    try:
        os.close(os.open("/dev/net/tun", os.O_RDWR | os.O_CLOEXEC))
    except OSError as error:
        return f"no TAP device for this user: {error}"
    return ""


def _no_other_users() -> str:
    lines = Path("/proc/self/uid_map").read_text().split()
    return "" if int(lines[2]) > 65534 else "nobody but root lives in this user namespace"


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """`golden(name, text)`: text equals tests/golden/name; `make golden` rewrites it."""

    def compare(name: str, text: str) -> None:
        path = GOLDEN / name
        if request.config.getoption("--golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        assert text == path.read_text(), f"{path} differs; see `make golden`"

    return compare
