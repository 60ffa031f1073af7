"""Fibres are made as asked, carry frames, and nothing of them stays; others' things do."""

import ctypes
import os
import select
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from accelhw.chassis import namespace, netlink, reaper
from accelhw.chassis.fabric import Fabric, FabricError, interface_name
from accelhw.model.config import Fibre, FibreEnd, TransportKind
from accelhw.model.ids import PortId

A, B = PortId("card0", 0), PortId("card1", 0)
ID = "00000000000000aa"
OTHER_ID = "00000000000000bb"
ETHERTYPE = b"\x88\xb5"
FRAME = b"\x02" * 6 + b"\x06" * 6 + ETHERTYPE + bytes(1400)


def fibre(transport, a=None, b=None, mtu=9000, name="fibre0"):
    return Fibre(name, a or FibreEnd(A), b or FibreEnd(B), TransportKind(transport), mtu)


def names(netns=None):
    return {i.name for i in netlink.interfaces(netns)}


def carries(fd_from, fd_to):
    """Whether a frame arrives; a bridge drops some until it has noticed that its ports are on."""
    for _ in range(600):
        os.write(fd_from, FRAME)
        while select.select([fd_to], [], [], 0.1)[0]:
            if os.read(fd_to, 1 << 17) == FRAME:
                return True
    return False


@pytest.fixture
def fabric():
    made = []

    def make(*fibres, chassis_id=ID):
        made.append(Fabric(chassis_id, fibres))
        made[-1].build()
        return made[-1]

    before = names()
    yield make
    for one in made:
        one.remove()
    assert names() == before


@pytest.fixture
def netns_folder(tmp_path, monkeypatch):
    """Namespaces with names of our own, where this user may mount."""
    folder = tmp_path / "netns"
    monkeypatch.setattr(namespace, "NETNS_FOLDER", folder)
    try:
        namespace.create("probe")
    except namespace.NamespaceError as error:
        pytest.skip(str(error))
    namespace.remove("probe")
    yield folder
    left = namespace.names()
    ctypes.CDLL(None).umount2(os.fsencode(folder), namespace.MNT_DETACH)
    assert left == []


def test_memory_needs_no_rights_and_crosses_no_interface(fabric):
    made = fabric(fibre("memory"))
    a, b = made.open(A), made.open(B)
    assert carries(a, b)
    assert carries(b, a)
    assert made.at(A).interface is None
    assert made.at(A).peer == B
    os.close(a)
    os.close(b)


def test_a_new_life_finds_no_frame_of_the_old_one(fabric):
    made = fabric(fibre("memory"))
    a, b = made.open(A), made.open(B)
    os.write(a, FRAME)
    os.close(b)
    again = made.open(B)
    with pytest.raises(BlockingIOError):
        socket.socket(fileno=os.dup(again)).recv(1, socket.MSG_DONTWAIT)
    assert carries(a, again)  # And the far end never heard of it.
    os.close(a)
    os.close(again)


@pytest.mark.network
def test_a_veth_pair_is_tagged_quiet_up_and_of_the_right_size(fabric):
    made = fabric(fibre("veth", mtu=65535))
    found = {i.name: i for i in netlink.interfaces(None) if i.name != "lo"}
    assert set(found) == {"card0-oe0", "card1-oe0"}
    for interface in found.values():
        assert interface.alias == f"acceld:{ID}:fibre0"
        assert interface.mtu == 65535
        assert interface.up
    addresses = Path("/proc/thread-self/net/if_inet6")
    assert not addresses.exists() or "card" not in addresses.read_text()
    a, b = made.open(A), made.open(B)
    assert carries(a, b)
    assert carries(b, a)
    os.close(a)
    os.close(b)
    made.remove()
    assert names() == {"lo"}


@pytest.mark.network
@pytest.mark.tap
def test_taps_of_both_ends_meet_in_a_bridge(fabric):
    made = fabric(fibre("tap"))
    assert names() == {"lo", "card0-oe0", "card1-oe0", "fibre0-br"}
    for _ in range(2):  # Twice: each life of a worker opens them anew.
        a, b = made.open(A), made.open(B)
        assert carries(a, b)
        assert carries(b, a)
        os.close(a)
        os.close(b)


@pytest.mark.network
@pytest.mark.tap
def test_a_tap_to_the_outside_is_there_for_others(fabric):
    outward = Fibre("out", FibreEnd(A, interface="fibre-out"), None, TransportKind.TAP, 1500)
    made = fabric(outward)
    tap = made.open(A)
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0x88B5) as other:
        other.bind(("fibre-out", 0x88B5))
        assert carries(tap, other.fileno())
        assert carries(other.fileno(), tap)
    assert made.at(A).peer is None
    os.close(tap)


@pytest.mark.network
def test_an_existing_interface_is_used_and_left_alone(fabric):
    theirs = fabric(fibre("veth", mtu=3000), chassis_id=OTHER_ID)
    ends = FibreEnd(A, "card0-oe0"), FibreEnd(B, "card1-oe0")
    made = fabric(fibre("netdev", *ends, mtu=0))
    assert made.at(A).fibre.mtu == 3000
    a, b = made.open(A), made.open(B)
    assert carries(a, b)
    os.close(a)
    os.close(b)
    made.remove()
    assert {"card0-oe0", "card1-oe0"} <= names()
    theirs.remove()


@pytest.mark.network
@pytest.mark.parametrize(
    ("ends", "mtu", "message"),
    [
        (("eth7", "eth8"), 0, "there is no interface 'eth7'; there is card0-oe0, card1-oe0"),
        (("card0-oe0", "card1-oe0"), 9000, "has an MTU of 3000, and 9000 is needed; ip link set"),
    ],
)
def test_an_interface_that_does_not_do_is_explained(fabric, ends, mtu, message):
    fabric(fibre("veth", mtu=3000), chassis_id=OTHER_ID)
    with pytest.raises(FabricError, match=message):
        fabric(fibre("netdev", FibreEnd(A, ends[0]), FibreEnd(B, ends[1]), mtu=mtu))


@pytest.mark.network
def test_a_chosen_name_that_is_taken_is_refused_and_a_default_one_gives_way(fabric):
    fabric(fibre("veth"), chassis_id=OTHER_ID)
    with pytest.raises(FabricError, match="there is an interface 'card0-oe0' already; choose"):
        fabric(fibre("veth", FibreEnd(A, "card0-oe0")))
    fabric(fibre("veth"))
    assert {"0000-card0-oe0", "0000-card1-oe0"} <= names()


@pytest.mark.network
def test_a_fibre_that_fails_takes_the_others_back(fabric):
    lost = Fibre(
        "lost",
        FibreEnd(PortId("card0", 1), "nowhere"),
        FibreEnd(PortId("card1", 1), "nowhere2"),
        TransportKind.NETDEV,
        0,
    )
    with pytest.raises(FabricError, match="fibre lost: there is no interface 'nowhere'"):
        fabric(fibre("veth"), lost)
    assert names() == {"lo"}


@pytest.mark.network
def test_each_end_may_live_in_a_namespace_of_its_own(fabric, netns_folder):
    namespace.create("rack2")
    made = fabric(fibre("veth", FibreEnd(A, netns="rack1"), FibreEnd(B, netns="rack2")))
    assert names() == {"lo"}
    assert names("rack1") == {"lo", "card0-oe0"}
    assert names("rack2") == {"lo", "card1-oe0"}
    a, b = made.open(A), made.open(B)
    assert carries(a, b)
    os.close(a)
    os.close(b)
    made.remove()
    assert namespace.names() == ["rack2"], "what was there stays, what we made goes"
    assert names("rack2") == {"lo"}
    namespace.remove("rack2")


@pytest.mark.network
def test_one_end_may_stay_here(fabric, netns_folder):
    made = fabric(fibre("veth", b=FibreEnd(B, netns="rack2")))
    assert names() == {"lo", "card0-oe0"}
    assert names("rack2") == {"lo", "card1-oe0"}
    made.remove()
    assert namespace.names() == []


def on_interface(fd):
    return socket.socket(fileno=os.dup(fd)).getsockname()[0]


@pytest.mark.network
def test_an_interface_gives_a_socket_for_each_channel_also_in_a_namespace(fabric, netns_folder):
    made = fabric(fibre("veth", FibreEnd(A, netns="rack1")))
    for port, name in ((A, "card0-oe0"), (B, "card1-oe0")):
        fds = made.open_channels(port, 3)
        assert [on_interface(fd) for fd in fds] == [name] * 3
        for fd in fds:
            os.close(fd)
    made.remove()


@pytest.mark.parametrize(
    "transport",
    ["memory", pytest.param("tap", marks=[pytest.mark.network, pytest.mark.tap])],
)
def test_other_fibres_have_no_sockets_for_channels(fabric, transport):
    made = fabric(fibre(transport, mtu=1500))
    assert made.open_channels(A, 2) == []


@pytest.mark.network
def test_channels_that_cannot_all_be_had_leave_none_open(fabric, monkeypatch):
    made = fabric(fibre("veth"))
    opened = []

    def open_two(interface, channel):
        if channel > 2:
            raise OSError(24, "Too many open files")
        opened.append(os.dup(0))
        return opened[-1]

    monkeypatch.setattr("accelhw.chassis.fabric._open_packet", open_two)
    with pytest.raises(FabricError, match="Too many open files"):
        made.open_channels(A, 3)
    assert len(opened) == 2
    for fd in opened:
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(fd)


DIES = """
import os, signal
from pathlib import Path
from accelhw.chassis import namespace
from accelhw.chassis.fabric import Fabric
from accelhw.model.config import *
from accelhw.model.ids import PortId
namespace.NETNS_FOLDER = Path({folder!r})
end = FibreEnd(PortId("card0", 0), None, {netns!r}), FibreEnd(PortId("card1", 0))
Fabric({id!r}, [Fibre("fibre0", *end, TransportKind.VETH, 9000)]).build()
os.kill(os.getpid(), signal.SIGKILL)
"""


def build_and_die(folder="/nowhere", netns=None):
    program = DIES.format(id=OTHER_ID, folder=str(folder), netns=netns)
    done = subprocess.run([sys.executable, "-c", program], check=False)
    assert done.returncode == -9


@pytest.mark.network
def test_the_dead_are_reaped_the_living_and_the_foreign_are_not(fabric):
    build_and_die()
    assert names() == {"lo", "card0-oe0", "card1-oe0"}
    fabric(fibre("veth", FibreEnd(A, "mine0"), FibreEnd(B, "mine1")))
    netlink.add_veth("foreign0", None, "foreign1", None)
    netlink.tag_and_raise("foreign0", None, "acceld: is not the whole of a tag of ours", 1500)

    reaped = reaper.reap()
    assert {str(left) for left in reaped} == {"card0-oe0", "card1-oe0"}
    assert {left.chassis_id for left in reaped} == {OTHER_ID}
    assert names() == {"lo", "mine0", "mine1", "foreign0", "foreign1"}
    assert reaper.reap() == []
    netlink.delete(["foreign0"], None)


@pytest.mark.network
def test_a_dead_chassis_s_namespace_is_reaped_as_a_whole(netns_folder):
    build_and_die(netns_folder, "rack9")
    assert namespace.names() == ["rack9"]
    reaped = {str(left) for left in reaper.reap()}
    assert reaped == {"card1-oe0", "namespace rack9"}  # The end in rack9 went with the one here.
    assert namespace.names() == []
    assert names() == {"lo"}


def test_names_fit_linux_and_stay_apart():
    assert interface_name(PortId("card0", 12)) == "card0-oe12"
    long = [PortId(f"a-very-long-card-name-{n}", 3) for n in range(20)]
    short = [interface_name(port) for port in long]
    assert all(len(name) <= 15 and name.endswith("-oe3") for name in short)
    assert len(set(short)) == len(short)
