"""A rack of rows without hardware behind it: two cards, one fibre, time turned by hand."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from acceld.health.history import History, Now, advance
from acceld.health.judge import judge
from acceld.health.report import Health, HealthState, Kind, Place, Reason
from acceld.host.snapshot import (
    CARD_STATES,
    CardFacts,
    CardSnapshot,
    HostSnapshot,
    PortSnapshot,
    WorkerSnapshot,
)
from accelhw.interface import tables
from accelhw.interface.messages import CardInfo, FibreInfo, PortInfo
from accelhw.model.flag import CARD_FLAGS, LANE_FLAGS
from accelhw.model.ids import PortId
from accelhw.model.link import DownReason, LinkState
from accelhw.model.profile import load_profile

LANES = 8
EPOCH_NS = 1_700_000_000 * 10**9
BOOT = "00000000000000aa"


@dataclass
class Rack:
    """`look` is one look of health; `pass_s` lets time go by, looking once a second."""

    profile: str = "dr8"
    cards: int = 2
    attached: bool = True
    durable: bool = True
    mono_ns: int = 1000 * 10**9
    history: History = field(default_factory=History)
    silent: bool = False  # the workers give no sign of life

    def __post_init__(self) -> None:
        self.names = [f"card{n}" for n in range(self.cards)]
        self.card_rows = {name: np.zeros(1, tables.CARD) for name in self.names}
        self.card_flags = {name: np.zeros(len(CARD_FLAGS), tables.FLAG) for name in self.names}
        self.rows: dict[str, Any] = {}
        self.lanes: dict[str, Any] = {}
        self.flags: dict[str, Any] = {}
        self.beat_ns = self.mono_ns
        self.restarts = 0
        for name in self.names:
            self.card_rows[name]["state"] = tables.CARD_READY
            self.card_rows[name]["ready_since_ns"] = EPOCH_NS
            for oe in (0, 1):
                at = f"{name}/oe{oe}"
                self.rows[at] = np.zeros(1, tables.PORT)
                self.lanes[at] = np.zeros(LANES, tables.LANE)
                self.lanes[at]["tx_on"] = 1
                self.lanes[at]["rx_power_dbm"] = -40.0
                self.lanes[at]["tec_current_ratio"] = np.nan
                self.flags[at] = np.zeros((LANES, len(LANE_FLAGS)), tables.FLAG)
                self.rows[at]["admin_up"] = 1
                self.rows[at]["reason_lane"] = -1
                self.rows[at]["peer_oe"] = -1
                self.rows[at]["state"] = LinkState.SEEKING
        for at in ("card0/oe0", "card1/oe0"):
            self.up(at)

    # ---- what happens ----

    def up(self, at: str, width: int = LANES) -> None:
        row, lanes = self.rows[at], self.lanes[at]
        far = "card1" if at.startswith("card0") else "card0"
        row["state"] = LinkState.UP if width == LANES else LinkState.DEGRADED
        row["reason"] = DownReason.NONE
        row["width"], row["mode"], row["fec_t"] = width, 3, 15
        row["peer_card"], row["peer_oe"], row["peer_chassis"] = far.encode(), 0, BOOT.encode()
        lanes["used"] = np.arange(LANES) < width
        lanes["rx_power_dbm"] = 1.5
        self.flags[at]["active"] = 0

    def down(
        self, at: str, reason: DownReason, state: LinkState = LinkState.SEEKING, lane: int = -1
    ) -> None:
        row = self.rows[at]
        row["state"], row["reason"], row["reason_lane"] = state, reason, lane
        dark = reason in (DownReason.SIGNAL_LOST, DownReason.NO_SIGNAL)
        row["reason_lanes"] = (1 << LANES) - 1 if dark else 0
        row["width"] = 0
        self.lanes[at]["used"] = 0
        if dark:
            self.dark(at)

    def dark(self, at: str, *lanes: int) -> None:
        for lane in lanes or range(LANES):
            self.lanes[at]["rx_power_dbm"][lane] = -40.0
            for name in ("los", "lol", "rx_power_low_alarm", "rx_power_low_warning"):
                self.flag(at, name, lane)

    def flag(self, at: str, name: str, *lanes: int) -> None:
        for lane in lanes or range(LANES):
            self.flags[at][lane, LANE_FLAGS.index(name)]["active"] = 1

    def cut(self) -> None:
        for at in ("card0/oe0", "card1/oe0"):
            self.down(at, DownReason.SIGNAL_LOST)

    def card(self, name: str, **columns: Any) -> None:
        for column, value in columns.items():
            self.card_rows[name][column] = value

    def card_flag(self, card: str, name: str) -> None:
        self.card_flags[card][CARD_FLAGS.index(name)]["active"] = 1

    # ---- looking ----

    def look(self) -> Health:
        if not self.silent:
            self.beat_ns = self.mono_ns
        snapshot = self.snapshot()
        now = Now(EPOCH_NS + self.mono_ns, self.mono_ns)
        self.history = advance(self.history, snapshot, now)
        return judge(snapshot, self.history, now)

    def pass_s(self, seconds: float) -> Health:
        report = self.look()
        for _ in range(round(seconds)):
            self.mono_ns += 10**9
            report = self.look()
        return report

    def settled(self) -> Health:
        """Long after power-on: no grace is left."""
        return self.pass_s(1)

    def snapshot(self) -> HostSnapshot:
        cards = tuple(self._card(n, name) for n, name in enumerate(self.names))
        worker = WorkerSnapshot(0, 4242, True, self.restarts, 0, tuple(self.names), self.beat_ns)
        return HostSnapshot(
            "0.1.0", 1, EPOCH_NS, self.attached, BOOT if self.attached else "", 2, EPOCH_NS, 0, 0,
            cards if self.attached else (), (worker,) if self.attached else (), {}, 0, 1,
            self.durable,
        )  # fmt: skip

    def _card(self, n: int, name: str) -> CardSnapshot:
        fibre = FibreInfo("fibre0", "veth", 10.0, 0.5, 65535, f"{name}-oe0")
        infos = tuple(PortInfo(oe, 0, 0, LANES, None if oe else fibre) for oe in (0, 1))
        facts = CardFacts(
            CardInfo(name, self.profile, f"{n:016x}", 1 << 30, n, 0, infos),
            load_profile(self.profile),
        )
        ports = tuple(
            PortSnapshot(
                PortId(name, info.oe), info, facts,
                self.rows[at][0].copy(), self.lanes[at].copy(), tuple(range(LANES)),
                tuple(range(LANES)), self.flags[at].copy(),
            )
            for info in infos
            for at in [f"{name}/oe{info.oe}"]
        )  # fmt: skip
        return CardSnapshot(
            facts, self.card_rows[name][0].copy(), ports, 0, 0, self.card_flags[name].copy()
        )


def named(report: Health) -> list[tuple[str, str, str]]:
    """Each cause of what is unwell: state, code, object."""
    return [
        (one.state.name, one.code, one.place.address)
        for one in report.all_reasons()
        if one.state.is_unwell
    ]


def at(report: Health, kind: Kind, address: str) -> Health:
    found = report.find(Place(kind, address))
    assert found is not None, address
    return found


def of_link(report: Health, address: str = "card0/oe0") -> Health:
    return at(report, Kind.LINK, address)


@pytest.fixture
def rack() -> Rack:
    return Rack()


__all__ = [
    "CARD_STATES", "EPOCH_NS", "LANES", "HealthState", "Rack", "Reason", "at", "named", "of_link",
    "replace",
]  # fmt: skip
