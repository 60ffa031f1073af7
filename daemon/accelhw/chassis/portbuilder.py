"""Makes a worker's ports from what it was told of them."""

from __future__ import annotations

from accelhw.chassis.control import NO_FD, WorkerCard, WorkerPort
from accelhw.chassis.movers import PortChannels
from accelhw.chassis.shared import Shared
from accelhw.device.dma import TransferEngine
from accelhw.device.port import Port
from accelhw.device.surroundings import Surroundings
from accelhw.model.config import TransportKind
from accelhw.model.ids import PortId
from accelhw.transport.base import Transport
from accelhw.transport.cable import Cable, CableMap
from accelhw.transport.memory import MemoryTransport
from accelhw.transport.packet import PacketTransport
from accelhw.transport.tap import TapTransport
from accelhw.transport.unplugged import Unplugged

PACKETS = (TransportKind.VETH, TransportKind.NETDEV)


def build_port(
    card: WorkerCard, oe: int, memory: TransferEngine, around: Surroundings, shared: Shared
) -> Port:
    """Engine `oe` of the card."""
    plugged = card.ports[oe]
    port = Port(
        PortId(card.name, oe),
        chassis=shared.chassis_id,
        profile=card.profile,
        fibre=plugged.fibre,
        interface=plugged.interface or "",
        transport=make_transport(plugged),
        memory=memory,
        around=around,
        seed=shared.seed,
        bank=shared.banks.of(card.profile),
    )
    port.admin_up = plugged.admin_up
    if plugged.fibre is not None and plugged.fibre.transport in PACKETS:
        port.use_channels(PortChannels(shared.movers, port))
    return port


def make_transport(port: WorkerPort) -> Transport:
    """The transport behind an inherited descriptor, through its cable."""
    if port.fibre is None or port.fd == NO_FD:
        return Unplugged()
    transport: Transport
    match port.fibre.transport:
        case TransportKind.VETH | TransportKind.NETDEV:
            transport = PacketTransport(port.fd, port.mtu)
        case TransportKind.TAP:
            transport = TapTransport(port.fd, port.mtu)
        case TransportKind.MEMORY:
            transport = MemoryTransport(port.fd, port.mtu)
    return Cable(transport, CableMap.of(port.fibre, port.end, port.lanes))
