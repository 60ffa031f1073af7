"""The fibres on this host: makes what carries them, opens a port's socket, removes all again."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import socket
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from zlib import crc32

from accelhw.chassis import namespace, netlink, reaper
from accelhw.model.config import MTU_MIN, Fibre, FibreEnd, TransportKind
from accelhw.model.ids import PortId

INTERFACE_NAME_MAX = 15  # IFNAMSIZ of Linux, without its closing zero
TUNSETPERSIST = 0x400454CB  # linux/if_tun.h
FRAME_BYTES_MAX = 1 << 17

_RIGHTS = (
    "run as root, by the systemd unit, or under `unshare -Urn`; or use transport memory,"
    " which crosses no interface"
)


class FabricError(Exception):
    """A fibre cannot be made; one line that says what would work."""

    denied = False


class FabricDenied(FabricError):
    """We lack the rights."""

    denied = True


@dataclass(frozen=True, slots=True)
class Socketed:
    """Where one end of a fibre is plugged on this host."""

    fibre: Fibre  # with the MTU that is really in use
    end: str  # "a" or "b"
    port: PortId
    peer: PortId | None
    interface: str | None
    netns: str | None


class Fabric:
    """All fibres of one chassis. Its methods block, for milliseconds."""

    def __init__(self, chassis_id: str, fibres: Iterable[Fibre]) -> None:
        self._id = chassis_id
        self._fibres = tuple(fibres)
        self._sockets: dict[PortId, Socketed] = {}
        self._memory: dict[PortId, int] = {}
        self._signs: dict[str | None, socket.socket] = {}

    def build(self) -> None:
        """Make everything. Raises FabricError; then nothing of it is left."""
        try:
            for fibre in self._fibres:
                with _explained(fibre):
                    self._build(fibre)
        except BaseException:
            self.remove()
            raise

    def at(self, port: PortId) -> Socketed | None:
        """What is plugged into a port; None when it is empty."""
        return self._sockets.get(port)

    def open(self, port: PortId) -> int:
        """A fresh socket at a port's end of its fibre, for one life of a worker; the caller's.

        Raises FabricError.
        """
        at = self._sockets[port]
        with _explained(at.fibre):
            match at.fibre.transport:
                case TransportKind.MEMORY:
                    return _emptied(os.dup(self._memory[port]))
                case TransportKind.TAP:
                    return namespace.run_inside(at.netns, partial(_open_tap, str(at.interface)))
                case TransportKind.VETH | TransportKind.NETDEV:
                    return namespace.run_inside(at.netns, partial(_open_packet, str(at.interface)))

    def open_channels(self, port: PortId, channels: int) -> list[int]:
        """Fresh sockets for the virtual channels of a port, 1 and up; the caller's.

        None for a fibre that is no interface with readers as many as one likes. Raises FabricError.
        """
        at = self._sockets[port]
        if at.fibre.transport not in (TransportKind.VETH, TransportKind.NETDEV):
            return []
        fds: list[int] = []
        try:
            with _explained(at.fibre):
                for number in range(1, channels + 1):
                    opener = partial(_open_packet, str(at.interface), number)
                    fds.append(namespace.run_inside(at.netns, opener))
        except BaseException:
            for fd in fds:
                os.close(fd)
            raise
        return fds

    def remove(self) -> None:
        """Remove what we made, and nothing else."""
        for fd in self._memory.values():
            os.close(fd)
        self._memory.clear()
        self._sockets.clear()
        if self._signs:
            reaper.remove_own(self._id, list(self._signs))
        for sign in self._signs.values():
            sign.close()
        self._signs.clear()

    # ---- making one fibre

    def _build(self, fibre: Fibre) -> None:
        match fibre.transport:
            case TransportKind.MEMORY:
                self._build_memory(fibre)
            case TransportKind.VETH:
                fibre = self._build_veth(fibre)
            case TransportKind.TAP:
                fibre = self._build_tap(fibre)
            case TransportKind.NETDEV:
                fibre = self._check_netdev(fibre)
        ends = [("a", fibre.a)] + ([("b", fibre.b)] if fibre.b else [])
        for letter, end in ends:
            far = fibre.b if letter == "a" else fibre.a
            self._sockets[end.port] = Socketed(
                fibre, letter, end.port, far.port if far else None, end.interface, end.netns
            )

    def _build_memory(self, fibre: Fibre) -> None:
        from accelhw.transport.memory import open_memory_pair

        assert fibre.b is not None
        near, far = open_memory_pair()
        # Both stay open here, so that an end whose worker died is silent to the other, not gone.
        self._memory[fibre.a.port] = near
        self._memory[fibre.b.port] = far

    def _build_veth(self, fibre: Fibre) -> Fibre:
        assert fibre.b is not None
        fibre = replace(fibre, a=self._placed(fibre, fibre.a), b=self._placed(fibre, fibre.b))
        a, b = fibre.a, fibre.b
        assert b is not None
        netlink.add_veth(str(a.interface), a.netns, str(b.interface), b.netns)
        for end in (a, b):
            netlink.tag_and_raise(str(end.interface), end.netns, self._tag(fibre), fibre.mtu)
        return fibre

    def _build_tap(self, fibre: Fibre) -> Fibre:
        ends = [self._placed(fibre, end) for end in (fibre.a, fibre.b) if end is not None]
        netns = ends[0].netns
        for end in ends:
            namespace.run_inside(netns, partial(_make_tap, str(end.interface)))
            netlink.tag_and_raise(str(end.interface), netns, self._tag(fibre), fibre.mtu)
        if len(ends) == 2:
            bridge = self._free_name(f"{fibre.name[:12]}-br", netns)
            netlink.add_bridge(bridge, netns)
            netlink.tag_and_raise(bridge, netns, self._tag(fibre), fibre.mtu)
            for end in ends:
                netlink.put_in_bridge(str(end.interface), bridge, netns)
        return replace(fibre, a=ends[0], b=ends[1] if len(ends) == 2 else None)

    def _check_netdev(self, fibre: Fibre) -> Fibre:
        mtus = []
        for end in (fibre.a, fibre.b):
            if end is None:
                continue
            here = {i.name: i for i in netlink.interfaces(end.netns)}
            found = here.get(str(end.interface))
            where = f" in namespace {end.netns}" if end.netns else ""
            if found is None:
                others = ", ".join(name for name in sorted(here) if name != "lo") or "none but lo"
                raise FabricError(
                    f"fibre {fibre.name}: there is no interface {end.interface!r}{where};"
                    f" there is {others}"
                )
            if not found.up:
                raise FabricError(
                    f"fibre {fibre.name}: interface {found.name!r}{where} is down;"
                    f" ip link set {found.name} up"
                )
            if found.mtu < (fibre.mtu or MTU_MIN):
                raise FabricError(
                    f"fibre {fibre.name}: interface {found.name!r}{where} has an MTU of"
                    f" {found.mtu}, and {fibre.mtu or MTU_MIN} is needed;"
                    f" ip link set {found.name} mtu {fibre.mtu or MTU_MIN}"
                    + (f", or say mtu = {found.mtu}" if found.mtu >= MTU_MIN else "")
                )
            mtus.append(found.mtu)
        return replace(fibre, mtu=fibre.mtu or min(mtus))

    # ---- names and places

    def _tag(self, fibre: Fibre) -> str:
        return reaper.tag(self._id, fibre.name)

    def _placed(self, fibre: Fibre, end: FibreEnd) -> FibreEnd:
        """The end with its namespace made and its interface named; both claimed for us."""
        self._claim(end.netns)
        if end.interface is None:
            return replace(end, interface=self._free_name(interface_name(end.port), end.netns))
        if netlink.exists(end.netns, end.interface):
            raise FabricError(
                f"fibre {fibre.name}: there is an interface {end.interface!r} already;"
                " choose another name, or use transport netdev to take that one"
            )
        return end

    def _claim(self, netns: str | None) -> None:
        """Make the namespace if it is absent, and show there that we live."""
        if netns in self._signs:
            return
        made = netns is not None and not namespace.exists(netns)
        if netns is not None and made:
            namespace.create(netns)
        try:
            self._signs[netns] = reaper.sign_of_life(self._id, netns)
            if netns is not None and made:
                netlink.tag_loopback(netns, reaper.tag(self._id, "namespace"))
        except BaseException:
            if netns is not None and made:
                namespace.remove(netns)
            raise

    def _free_name(self, wish: str, netns: str | None) -> str:
        """The name wished for; if another rack has it, one with a piece of our id."""
        if not netlink.exists(netns, wish):
            return wish
        return f"{self._id[:4]}-{wish}"[:INTERFACE_NAME_MAX]


def interface_name(port: PortId) -> str:
    """`card0-oe1`, shortened where a card's name leaves no room."""
    end = f"-oe{port.oe}"
    name = f"{port.card}{end}"
    if len(name) <= INTERFACE_NAME_MAX:
        return name
    # Distinct for cards that only differ at the end of long names.
    digest = f"{crc32(port.card.encode()) & 0xFFF:03x}"
    return f"{port.card[: INTERFACE_NAME_MAX - len(end) - 3]}{digest}{end}"


def _open_packet(interface: str, channel: int = 0) -> int:
    from accelhw.transport.packet import open_packet

    return open_packet(interface, channel)


def _open_tap(interface: str) -> int:
    from accelhw.transport.tap import open_tap

    return open_tap(interface)


def _make_tap(interface: str) -> None:
    """A TAP device that stays while nobody holds it, as between two lives of a worker."""
    fd = _open_tap(interface)
    try:
        fcntl.ioctl(fd, TUNSETPERSIST, 1)
    finally:
        os.close(fd)


def _emptied(fd: int) -> int:
    """Frames that waited for a worker that died are of no use to the next one."""
    with contextlib.suppress(BlockingIOError), socket.socket(fileno=os.dup(fd)) as sock:
        while sock.recv(FRAME_BYTES_MAX, socket.MSG_DONTWAIT):
            pass
    return fd


@contextlib.contextmanager
def _explained(fibre: Fibre) -> Iterator[None]:
    """The system's errors as one line each that says what would work."""
    try:
        yield
    except namespace.NamespaceError as error:
        raise FabricDenied(f"fibre {fibre.name}: {error}") from error
    except OSError as error:
        what = os.strerror(error.errno or 0)
        if error.errno in (errno.EPERM, errno.EACCES):
            right = "sockets on interfaces take CAP_NET_RAW, making interfaces takes CAP_NET_ADMIN"
            raise FabricDenied(f"fibre {fibre.name}: {what}: {right}; {_RIGHTS}") from error
        if error.filename == "/dev/net/tun":
            raise FabricError(
                f"fibre {fibre.name}: no TAP devices here (/dev/net/tun: {what});"
                " modprobe tun, or give the container that device, or use transport veth"
            ) from error
        if error.errno == errno.EOPNOTSUPP:
            raise FabricError(
                f"fibre {fibre.name}: this kernel makes no {fibre.transport} interfaces ({what});"
                " load its module, or use transport memory"
            ) from error
        raise FabricError(f"fibre {fibre.name}: {error}") from error
