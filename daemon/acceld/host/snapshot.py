"""What is, at one moment: frozen values over copied table rows, for the API and for a scrape.

Rows stay in numpy records as the tables define them (`accelhw.interface.tables`), since a host
may have a hundred thousand lanes; whoever shows a row turns it into plain numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acceld.host.frameloss import frame_loss
from accelhw.interface.messages import CardInfo, FaultInfo, PortInfo
from accelhw.interface.tables import CARD_STATES
from accelhw.model.ids import PortId
from accelhw.model.link import MODES, DownReason, LinkMode, LinkState, Reason
from accelhw.model.profile import Profile
from accelhw.model.transfer import NO_ENDS, TransferEnds

__all__ = [
    "CARD_STATES",
    "CardFacts",
    "CardSnapshot",
    "HealthSample",
    "HostSnapshot",
    "LaserSnapshot",
    "PortSnapshot",
    "Scrapes",
    "WorkerSnapshot",
    "down_reason",
]


@dataclass(frozen=True)
class CardFacts:
    """What of a card does not change while the chassis is powered."""

    info: CardInfo
    profile: Profile

    @property
    def name(self) -> str:
        return self.info.name

    @property
    def kept_as(self) -> str:
        """Where its counters are stored; a card of another profile begins anew."""
        return f"{self.info.name} {self.info.profile}"

    @cached_property
    def port_rows(self) -> slice:
        first = min((port.port_row for port in self.info.ports), default=0)
        return slice(first, first + len(self.info.ports))

    @cached_property
    def lane_rows(self) -> slice:
        first = min((port.first_lane_row for port in self.info.ports), default=0)
        return slice(first, first + sum(port.lanes for port in self.info.ports))

    def port(self, oe: int) -> PortInfo | None:
        return next((port for port in self.info.ports if port.oe == oe), None)

    @cached_property
    def port_ids(self) -> dict[int, PortId]:
        return {port.oe: PortId(self.name, port.oe) for port in self.info.ports}

    @cached_property
    def port_labels(self) -> dict[int, str]:
        """Of each engine, as a scrape writes them: made once, used at every sample."""
        return {port.oe: f'card="{self.name}",oe="oe{port.oe}"' for port in self.info.ports}

    @cached_property
    def lane_labels(self) -> dict[int, tuple[str, ...]]:
        return {
            port.oe: tuple(
                f'{self.port_labels[port.oe]},lane="lane{lane}"' for lane in range(port.lanes)
            )
            for port in self.info.ports
        }


@dataclass(frozen=True)
class PortSnapshot:
    """One engine with its fibre port: `row` of tables.PORT, `lanes` of tables.LANE."""

    id: PortId
    info: PortInfo
    facts: CardFacts
    row: Any
    lanes: NDArray[np.void]
    channels: tuple[int, ...]  # logical channel of each lane
    signal_lines: tuple[int, ...]  # signal line of each lane
    flags: NDArray[np.void]  # of tables.FLAG: a row per lane, a column per name of LANE_FLAGS

    @property
    def profile(self) -> Profile:
        return self.facts.profile

    @property
    def labels(self) -> str:
        return self.facts.port_labels[self.info.oe]

    @property
    def lane_labels(self) -> tuple[str, ...]:
        return self.facts.lane_labels[self.info.oe]

    @property
    def state(self) -> LinkState:
        return _link_state(int(self.row["state"]))

    @property
    def lit(self) -> NDArray[np.void]:
        """The lanes with light behind their margin, Q and BER."""
        lit: NDArray[np.void] = self.lanes[self.lanes["fitted_margin"] == 1]
        return lit

    @property
    def margin_db_min(self) -> float | None:
        lit = self.lit
        return float(lit["margin_db"].min()) if len(lit) else None

    @property
    def pre_fec_ber_max(self) -> float | None:
        lit = self.lit
        return float(lit["pre_fec_ber"].max()) if len(lit) else None

    @property
    def lanes_lit(self) -> int:
        return int((self.lanes["los"] == 0).sum())

    @property
    def mode(self) -> LinkMode | None:
        """In which it trained; None before it did."""
        number = int(self.row["mode"])
        return MODES[number - 1] if 0 < number <= len(MODES) else None

    @property
    def capacity_gbit_per_s(self) -> float:
        """Of the lanes that carry data; 0 when the link is not up."""
        if not self.state.carries_data:
            return 0.0
        return self.profile.port_gbit_per_s(int(self.row["width"]), self.mode)

    @property
    def up_since_ns(self) -> int | None:
        """Wall clock; None while it is not up."""
        return (int(self.row["up_since_ns"]) or None) if self.state.carries_data else None

    @property
    def fec_bins(self) -> list[int]:
        """Codewords with 0, 1, ... corrected symbols, up to as many as FEC corrects."""
        t = int(self.row["fec_t"])
        bins: list[int] = self.row["fec_bins"][: t + 1].tolist() if t else []
        return bins

    @property
    def predicted_frame_loss(self) -> float | None:
        """Of the largest frames that its fibre takes, before replay; None while it is not up."""
        if not self.state.carries_data or self.info.fibre is None:
            return None
        used = self.lanes["pre_fec_ber"][self.lanes["used"] == 1]
        if not len(used):
            return None
        interleave = self.profile.lane.fec_interleave
        return frame_loss(used.tolist(), int(self.row["fec_t"]), self.info.fibre.mtu, interleave)

    @property
    def external_lasers(self) -> tuple[LaserSnapshot, ...]:
        """That feed several lanes each; none where every lane has its own."""
        size = self.profile.laser.lanes_per_laser
        if size == 1:
            return ()
        starts = range(0, len(self.lanes), size)
        return tuple(
            LaserSnapshot(index, range(start, min(start + size, len(self.lanes))), self.lanes)
            for index, start in enumerate(starts)
        )

    @property
    def flags_active(self) -> int:
        return int(np.count_nonzero(self.flags["active"]))

    @property
    def flags_latched(self) -> int:
        return int(np.count_nonzero(self.flags["latched"]))

    @property
    def flag_changes(self) -> int:
        return int(self.flags["count"].sum())

    @property
    def reason(self) -> Reason:
        """Why it is not up, or not whole, with all lanes that are to blame."""
        lane, every = int(self.row["reason_lane"]), (1 << self.info.lanes) - 1
        first = lane if lane >= 0 else None
        lanes = int(self.row["reason_lanes"]) or (0 if first is None else 1 << first)
        return Reason.on(down_reason(self.row["reason"]), lanes, every, first=first)

    @property
    def peer_reason(self) -> Reason:
        """What the far end says; it names one lane at most."""
        lane = int(self.row["peer_reason_lane"])
        return Reason(down_reason(self.row["peer_reason"]), lane if lane >= 0 else None)

    @property
    def peer(self) -> PortId | None:
        card = bytes(self.row["peer_card"]).decode("ascii", "replace")
        oe = int(self.row["peer_oe"])
        return PortId(card, oe) if card and oe >= 0 else None

    @property
    def peer_chassis(self) -> str:
        return bytes(self.row["peer_chassis"]).decode("ascii", "replace")


def down_reason(number: int) -> DownReason:
    """A number of the tables; one that is not known says nothing."""
    known = int(number) in DownReason._value2member_map_
    return DownReason(int(number)) if known else DownReason.NONE


@dataclass(frozen=True, slots=True)
class LaserSnapshot:
    """An external laser, by what the lanes show that it feeds."""

    index: int
    lanes: range
    rows: NDArray[np.void]  # of tables.LANE: all of its engine

    def worst(self, column: str) -> float | None:
        """The highest that its lanes show; None where none shows one."""
        values = self.rows[column][self.lanes.start : self.lanes.stop]
        values = values[np.isfinite(values)]
        return float(values.max()) if len(values) else None


@dataclass(frozen=True)
class CardSnapshot:
    facts: CardFacts
    row: Any  # of tables.CARD
    ports: tuple[PortSnapshot, ...]
    hbm_allocated_bytes: int
    hbm_resident_bytes: int
    flags: NDArray[np.void]  # of tables.FLAG, one per name of CARD_FLAGS
    regions: int = 0
    transfer_ends: TransferEnds = NO_ENDS

    @property
    def name(self) -> str:
        return self.facts.name

    @property
    def profile(self) -> Profile:
        return self.facts.profile

    @property
    def state(self) -> str:
        """One of CARD_STATES."""
        code = int(self.row["state"])
        return CARD_STATES[code] if code < len(CARD_STATES) else CARD_STATES[0]

    @property
    def links_up(self) -> int:
        return sum(port.state.carries_data for port in self.ports)

    @property
    def signal_lines(self) -> int:
        return sum(port.lanes for port in self.facts.info.ports)

    @property
    def signal_lines_used(self) -> int:
        """Whose lane carries data."""
        return sum(int(np.count_nonzero(port.lanes["used"])) for port in self.ports)


@dataclass(frozen=True)
class WorkerSnapshot:
    index: int
    pid: int
    alive: bool
    restarts: int
    tick_overruns: int
    cards: tuple[str, ...]
    beat_ns: int = 0  # monotonic clock of its last sign of life; 0: none yet
    seen_ns: int = 0  # monotonic clock when this was read

    @property
    def beat_age_s(self) -> float | None:
        """Since its last sign of life; None: none yet."""
        return max(self.seen_ns - self.beat_ns, 0) / 1e9 if self.beat_ns else None


@dataclass(frozen=True, slots=True)
class HealthSample:
    """Health of one object, as a scrape shows it."""

    kind: str  # "lane", "oe", "link", "card", "host", "daemon"
    subject: str  # card0/oe1/lane3; empty for the host and the daemon
    value: int  # 0 ok, 1 in training or grace, 2 warning, 3 critical
    reasons: tuple[str, ...] = ()  # UPPER_SNAKE


@dataclass(frozen=True, slots=True)
class Scrapes:
    """What the daemon's scrapes have cost."""

    count: int = 0
    last_s: float = 0.0
    last_samples: int = 0


@dataclass(frozen=True, slots=True)
class Counts:
    """How much hardware there is, and how much of it is up."""

    cards: int = 0
    links: int = 0  # ports with a fibre
    links_up: int = 0  # that carry data


@dataclass(frozen=True)
class HostSnapshot:
    """The whole. Without a chassis there are no cards and no workers."""

    version: str
    daemon_pid: int
    daemon_started_ns: int
    attached: bool
    boot_id: str
    chassis_pid: int
    chassis_started_ns: int
    hbm_budget_bytes: int
    hbm_allocated_bytes: int
    cards: tuple[CardSnapshot, ...]
    workers: tuple[WorkerSnapshot, ...]
    regions: dict[str, int]  # regions on each card
    transfers_running: int
    newest_revision: int
    store_durable: bool
    metrics_address: str = ""
    faults: tuple[FaultInfo, ...] = ()  # injected
    store_bytes: int | None = None  # None: in memory only
    scrapes: Scrapes = Scrapes()
    health: tuple[HealthSample, ...] = ()
    counts: Counts = Counts()


def _link_state(value: int) -> LinkState:
    # A row that nobody has written yet is all zeros.
    return LinkState(value) if value else LinkState.DOWN
