"""What a dead chassis left on the network, and how to tell dead from alive.

Everything a chassis makes carries the alias `acceld:<chassis id>:<fibre>`: interfaces, bridges and,
on its `lo`, a namespace. In each network namespace where it made something it binds the abstract
Unix socket `\\0acceld/<chassis id>`; the kernel drops that with the process. So a tag whose socket
is unbound in the same namespace belongs to the dead. Nothing untagged is ever touched.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from accelhw.chassis import namespace, netlink

_TAG = re.compile(r"acceld:([0-9a-f]{16}):(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Leftover:
    """Something removed: an interface, or a namespace as a whole (`interface` is "lo")."""

    interface: str
    netns: str | None
    chassis_id: str
    fibre: str

    @property
    def is_namespace(self) -> bool:
        return self.interface == "lo"

    def __str__(self) -> str:
        if self.is_namespace:
            return f"namespace {self.netns}"
        return f"{self.interface} in namespace {self.netns}" if self.netns else self.interface


def tag(chassis_id: str, what: str) -> str:
    return f"acceld:{chassis_id}:{what}"


def sign_of_life(chassis_id: str, netns: str | None = None) -> socket.socket:
    """Bind the chassis's socket in a namespace; it lives until closed, or until we die.

    Raises OSError, NamespaceError.
    """

    def bind() -> socket.socket:
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
        sock.bind(_address(chassis_id))
        return sock

    return namespace.run_inside(netns, bind)


def lives(chassis_id: str) -> bool:
    """Whether that chassis lives, as seen from the namespace of the calling thread."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as probe:
        try:
            probe.connect(_address(chassis_id))
        except ConnectionRefusedError:
            return False
    return True


def _address(chassis_id: str) -> str:
    return f"\0acceld/{chassis_id}"


def reap() -> list[Leftover]:
    """Remove what dead chassis left, here and in every named namespace that we may enter."""
    return sweep([None, *namespace.names()], lambda chassis_id: not lives(chassis_id))


def remove_own(chassis_id: str, namespaces: Iterable[str | None]) -> list[Leftover]:
    """Remove everything that this chassis made."""
    return sweep(namespaces, lambda found: found == chassis_id)


def sweep(namespaces: Iterable[str | None], condemned: Callable[[str], bool]) -> list[Leftover]:
    """Remove what is tagged with a chassis id that is `condemned`, asked inside the namespace."""
    removed: list[Leftover] = []
    for netns in namespaces:
        try:
            found = _found(netns)
            doomed = [
                left
                for left in found
                if namespace.run_inside(netns, partial(condemned, left.chassis_id))
            ]
            if doomed:
                netlink.delete([left.interface for left in doomed if not left.is_namespace], netns)
        except (namespace.NamespaceError, OSError):
            continue  # Not ours to enter, so nothing of ours is in it.
        if netns is not None and any(left.is_namespace for left in doomed):
            namespace.remove(netns)
        removed += doomed
    return removed


def _found(netns: str | None) -> list[Leftover]:
    return [
        Leftover(interface.name, netns, match.group(1), match.group(2))
        for interface in netlink.interfaces(netns)
        if (match := _TAG.fullmatch(interface.alias))
        # An alias on the `lo` of our own namespace says nothing: we would not have made that one.
        and (interface.name != "lo" or netns is not None)
    ]
