"""Two hosts, each with its own daemon and namespace, and one card each: the far card is known by
what its owner tells, a card's name, a region's id and its key."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import grpc
import pytest

from accel.plain import word
from accel.v1 import transfer_pb2, transfer_pb2_grpc
from accelhw.chassis import namespace, netlink

from .conftest import MakeRack
from .rack import Rack

pytestmark = pytest.mark.network

MIB = 1 << 20
MTU = 9000


def host_config(card: str, fibre: str) -> str:
    return (
        f'[[card]]\nname = "{card}"\nprofile = "single"\n'
        f'[[fibre]]\na = "{card}/oe0"\n{fibre}\nlength_m = 30\n'
    )


@pytest.fixture
def hosts() -> Iterator[tuple[str, str]]:
    """Two namespaces, a network cable between their interfaces `nic`, and a bridge in the first."""
    near, far = (f"host-{os.getpid()}-{end}" for end in "ab")
    for name in (near, far):
        namespace.create(name)
    netlink.add_veth("nic", near, "nic", far)
    for name in (near, far):
        raise_up("nic", name)
    add_bridge(near)
    yield near, far
    for name in (near, far):
        namespace.remove(name)


def raise_up(interface: str, netns: str) -> None:
    async def work(ip: Any) -> None:
        (index,) = await ip.link_lookup(ifname=interface)
        await ip.link("set", index=index, state="up", mtu=MTU)

    netlink.with_netlink(netns, work)


def add_bridge(netns: str) -> None:
    async def work(ip: Any) -> None:
        await ip.link("add", ifname="br0", kind="bridge")

    netlink.with_netlink(netns, work)
    raise_up("br0", netns)


def into_bridge(netns: str, *members: str) -> None:
    for member in members:
        netlink.put_in_bridge(member, "br0", netns)


def moved(rack: Rack, **ends: transfer_pb2.RegionSlice) -> transfer_pb2.Transfer:
    """A transfer that names its far end by card, id and key, at its end."""
    with grpc.insecure_channel(f"unix:{rack.socket}") as channel:
        stub = transfer_pb2_grpc.TransferServiceStub(channel)
        name = stub.CreateTransfer(transfer_pb2.CreateTransferRequest(**ends)).name
    return rack.ended(name)


@pytest.mark.parametrize("near_end", ["netdev", "tap"])
def test_cards_of_two_hosts_write_and_read_each_others_hbm(
    hosts: tuple[str, str], make_rack: MakeRack, near_end: str
) -> None:
    nic = f'transport = "netdev"\ninterface = "nic"\nmtu = {MTU}'
    out = f'transport = "tap"\ninterface = "out"\nmtu = {MTU}'
    near = make_rack(host_config("anna", nic if near_end == "netdev" else out), hosts[0], up=False)
    if near_end == "tap":
        into_bridge(hosts[0], "out", "nic")
    far = make_rack(host_config("otto", nic), hosts[1])
    near.wait_up()
    assert near.link("anna/oe0").peer == "cards/otto/links/oe0"
    assert near.link("anna/oe0").peer_chassis == far.client.host().chassis_boot_id

    sha = near.fill("anna:model", 12 * MIB + 1)
    region = far.client.regions.create("otto", "model", 12 * MIB + 1)
    own = transfer_pb2.RegionSlice(region="cards/anna/regions/model")
    theirs = {"card": "cards/otto", "region_id": region.region_id, "key": region.key}
    done = moved(near, source=own, target=transfer_pb2.RegionSlice(**theirs))
    assert word(done, "state") == "DONE"
    assert far.sha256("otto:model") == sha

    back = near.client.regions.create("anna", "back", 12 * MIB + 1)
    done = moved(
        near,
        source=transfer_pb2.RegionSlice(**theirs),
        target=transfer_pb2.RegionSlice(region=back.name),
    )
    assert word(done, "state") == "DONE"
    assert near.sha256("anna:back") == sha

    # The key is all that stands between a stranger and this memory.
    for wrong, error in (
        ({"key": region.key ^ 1}, "REMOTE_BAD_KEY"),
        ({"region_id": region.region_id + 1}, "REMOTE_NO_REGION"),
        ({"offset": MIB}, "REMOTE_OUT_OF_RANGE"),
    ):
        target = transfer_pb2.RegionSlice(**{**theirs, **wrong})
        failed = moved(near, source=own, target=target)
        assert (word(failed, "state"), failed.error) == ("FAILED", error)
        assert failed.good_bytes == 0
        assert far.sha256("otto:model") == sha
