"""The configuration as values. Reading TOML and naming its mistakes: configfile.py."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from accelhw.model.ids import PortId
from accelhw.model.profile import Profile


class TransportKind(StrEnum):
    VETH = "veth"  # a pair of virtual Ethernet interfaces
    TAP = "tap"  # frames go to a TAP device (two, joined by a bridge, if both ends are ours)
    NETDEV = "netdev"  # an interface that exists already
    MEMORY = "memory"  # a socket pair: no Linux interface is crossed


MTU_MIN = 1500
MTU_MAX = 65535


@dataclass(frozen=True, slots=True)
class FibreEnd:
    """Where one end of a fibre meets this host."""

    port: PortId
    interface: str | None = None  # netdev: required; veth, tap: a name of one's own choice
    netns: str | None = None  # a named network namespace; made when absent


@dataclass(frozen=True, slots=True)
class Fibre:
    """A fibre between two ports, or from one port to the outside (`b` absent)."""

    name: str
    a: FibreEnd
    b: FibreEnd | None
    transport: TransportKind
    mtu: int  # 0 in a configuration: a netdev's own, known once it is opened
    length_m: float = 10.0
    attenuation_db_per_km: float = 0.35
    connectors: int = 2
    connector_loss_db: float = 0.25
    extra_loss_db: float = 0.0
    lane_map: tuple[int, ...] | None = None  # lane i of a is lane_map[i] at b; None: straight
    inverted_lanes: frozenset[int] = frozenset()  # lanes of a whose polarity is swapped

    @property
    def loss_db(self) -> float:
        """End to end: attenuation, mated connectors, anything extra (IEEE 802.3 link budget)."""
        return (
            self.length_m / 1000 * self.attenuation_db_per_km
            + self.connectors * self.connector_loss_db
            + self.extra_loss_db
        )


@dataclass(frozen=True, slots=True)
class Card:
    name: str
    profile: Profile
    hbm_bytes: int


@dataclass(frozen=True, slots=True)
class Hardware:
    workers: int | None = None  # None: one per CPU, never more than cards
    hbm_budget_bytes: int | None = None  # None: half of the memory available at start
    seed: int = 1


@dataclass(frozen=True, slots=True)
class Daemon:
    socket: str | None = None
    state_dir: str | None = None
    metrics: str | None = None  # "HOST:PORT"; "off" switches it off


@dataclass(frozen=True, slots=True)
class Config:
    cards: tuple[Card, ...]
    fibres: tuple[Fibre, ...]
    hardware: Hardware = field(default_factory=Hardware)
    daemon: Daemon = field(default_factory=Daemon)
