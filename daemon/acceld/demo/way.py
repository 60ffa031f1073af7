"""How the demo reaches the network: a namespace of its own, this one, or not at all.

Whatever it makes inside a namespace of its own vanishes with it and never meets the host's
interfaces, so that is tried first. Each way is tried out before it is chosen.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass

INSIDE = "ACCELD_DEMO_INSIDE"

# Run inside the namespace: what the fibre needs, made and gone again.
PROBE = """
import fcntl, os, socket, struct
with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0): pass
from pyroute2 import IPRoute
name = f"acl{os.getpid() % 1000000}"
with IPRoute() as ip:
    ip.link("add", ifname=name + "a", kind="veth", peer={"ifname": name + "b"})
    ip.link("del", index=ip.link_lookup(ifname=name + "a")[0])
"""


@dataclass(frozen=True, slots=True)
class Way:
    flags: tuple[str, ...]  # of unshare(1); empty: no new namespace
    transport: str
    told: str


OWN_NETWORK = Way(
    ("--net",),
    "veth",
    "as root, over a veth pair in a network namespace of the demo's own",
)
OWN_USER = Way(
    ("--user", "--map-root-user", "--net"),
    "veth",
    "rootless, over a veth pair in a user and network namespace of the demo's own",
)
HERE = Way((), "veth", "over a veth pair in this network namespace")


def no_interface(why: str) -> Way:
    return Way(
        (),
        "memory",
        "over the memory transport: NO Linux interface is crossed, because neither this user "
        f"nor a user namespace may make one here ({why})",
    )


def find_way(*, host_net: bool) -> Way:
    """The first way that works; inside a namespace that was entered, the one that led there."""
    by_name = {"net": OWN_NETWORK, "user": OWN_USER}
    if inside := by_name.get(os.environ.get(INSIDE, "")):
        return inside
    if host_net:
        ways: tuple[Way, ...] = (HERE,)
    elif os.geteuid() == 0:
        ways = (OWN_NETWORK, OWN_USER, HERE)
    else:
        ways = (OWN_USER, HERE)
    why = ""
    for way in ways:
        failure = _try(way)
        if not failure:
            return way
        why = why or failure
    return no_interface(why)


def enter(way: Way, args: list[str]) -> None:
    """Start this program anew inside the way's namespaces; return where there is nothing to do."""
    if not way.flags or os.environ.get(INSIDE):
        return
    sys.stdout.flush()
    environment = dict(os.environ, **{INSIDE: "user" if "--user" in way.flags else "net"})
    again = "import sys; from acceld.demo import main; sys.exit(main(sys.argv[1:]))"
    command = ["unshare", *way.flags, sys.executable, "-c", again, *args]
    os.execvpe(command[0], command, environment)


def _try(way: Way) -> str:
    """Why it does not work; empty when it does."""
    prefix = ["unshare", *way.flags] if way.flags else []
    try:
        done = subprocess.run(
            [*prefix, sys.executable, "-c", PROBE],
            capture_output=True, text=True, timeout=20, check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if done.returncode == 0:
        return ""
    lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
    return lines[-1]
