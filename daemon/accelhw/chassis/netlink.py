"""The few things we ask of the kernel's network interfaces, in any namespace.

Each call runs on a loop and a netlink socket of its own, which it leaves nothing of: most run
inside another namespace, in a thread that ends with them.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from accelhw.chassis import namespace

ADDRESSES_NONE = 1  # IN6_ADDR_GEN_MODE_NONE, linux/if_link.h
IFF_UP = 0x1

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Interface:
    name: str
    alias: str
    mtu: int
    up: bool


def with_netlink(netns: str | None, work: Callable[[Any], Awaitable[T]]) -> T:
    """Run `work(ip)`, with an AsyncIPRoute of that namespace. Blocks for some milliseconds.

    Raises NamespaceError, OSError (NetlinkError is none, so it is made one).
    """
    from pyroute2.iproute.linux import AsyncIPRoute
    from pyroute2.netlink.exceptions import NetlinkError

    async def connected() -> T:
        # A refusal is raised to us. What the library leaves of it besides, an answer that nobody
        # fetched, would be told on stderr by this loop's end, depending on who is collected first.
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
        async with AsyncIPRoute() as ip:
            return await work(ip)

    def run() -> T:
        try:
            return asyncio.run(connected())
        except NetlinkError as error:
            raise OSError(error.code, str(error.args[1])) from error

    if netns is None:
        return _off_loop(run)
    return namespace.run_inside(netns, run)


def _off_loop(work: Callable[[], T]) -> T:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return work()
    return namespace.in_thread(work)


def interfaces(netns: str | None) -> list[Interface]:
    async def work(ip: Any) -> list[Interface]:
        return [
            Interface(
                link.get("ifname"),
                link.get("ifalias") or "",
                link.get("mtu"),
                bool(link["flags"] & IFF_UP),
            )
            async for link in await ip.get_links()
        ]

    return with_netlink(netns, work)


def exists(netns: str | None, name: str) -> bool:
    return namespace.run_inside(netns, lambda: _index(name) is not None)


def add_veth(name_a: str, netns_a: str | None, name_b: str, netns_b: str | None) -> None:
    """A pair, each end in its namespace; both down yet."""

    async def work(ip: Any) -> None:
        peer: dict[str, Any] = {"ifname": name_b}
        with contextlib.ExitStack() as held:
            if netns_b != netns_a:
                # A name means one in the kernel's list of this thread, so hand the descriptor.
                peer["net_ns_fd"] = held.enter_context(namespace.opened(netns_b))
            await ip.link("add", ifname=name_a, kind="veth", peer=peer)

    with_netlink(netns_a, work)


def add_bridge(name: str, netns: str | None) -> None:
    """A bridge that says nothing of its own: no spanning tree, no multicast queries."""

    async def work(ip: Any) -> None:
        await ip.link("add", ifname=name, kind="bridge", br_stp_state=0, br_mcast_snooping=0)

    with_netlink(netns, work)


def put_in_bridge(name: str, bridge: str, netns: str | None) -> None:
    async def work(ip: Any) -> None:
        await ip.link("set", index=_index(name), master=_index(bridge))

    with_netlink(netns, work)


def tag_and_raise(name: str, netns: str | None, alias: str, mtu: int) -> None:
    """Mark an interface as ours, first of all; then quiet, MTU, up."""

    async def work(ip: Any) -> None:
        index = _index(name)
        await ip.link("set", index=index, ifalias=alias)
        await _hush(ip, index, name)
        await ip.link("set", index=index, mtu=mtu)
        await ip.link("set", index=index, state="up")

    with_netlink(netns, work)


def tag_loopback(netns: str, alias: str) -> None:
    """Mark a whole namespace as ours, by its `lo`."""

    async def work(ip: Any) -> None:
        index = _index("lo")
        await ip.link("set", index=index, ifalias=alias)
        await ip.link("set", index=index, state="up")

    with_netlink(netns, work)


def delete(names: list[str], netns: str | None) -> None:
    """Remove interfaces; those that are gone already are fine."""

    async def work(ip: Any) -> None:
        for name in names:
            index = _index(name)  # The first end of a veth pair takes the other along.
            if index is not None:
                try:
                    await ip.link("del", index=index)
                except _netlink_error() as error:
                    if error.code != errno.ENODEV:
                        raise

    with_netlink(netns, work)


async def _hush(ip: Any, index: int | None, name: str) -> None:
    """No IPv6 of the kernel's own on this interface: a fibre carries our frames only."""
    with contextlib.suppress(_netlink_error()):  # A kernel without IPv6 is quiet already.
        mode = {"attrs": [("IFLA_INET6_ADDR_GEN_MODE", ADDRESSES_NONE)]}
        await ip.link("set", index=index, af_spec={"attrs": [("AF_INET6", mode)]})
    with contextlib.suppress(OSError):  # Read-only for a sandboxed service; then the mode must do.
        Path(f"/proc/sys/net/ipv6/conf/{name}/disable_ipv6").write_text("1")


def _index(name: str) -> int | None:
    try:
        return socket.if_nametoindex(name)
    except OSError:
        return None


def _netlink_error() -> Any:
    from pyroute2.netlink.exceptions import NetlinkError

    return NetlinkError
