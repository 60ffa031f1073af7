"""What health makes of every fault of the catalogue, on cards with a hand-turned clock."""

from __future__ import annotations

import time

import pytest

from acceld.health.history import History, Now, advance
from acceld.health.judge import judge
from acceld.health.report import Health, HealthState
from acceld.host.snapshot import CardFacts, CardSnapshot, HostSnapshot, PortSnapshot, WorkerSnapshot
from accelhw.fault.catalogue import CATALOGUE
from accelhw.fault.kinds import Where
from accelhw.interface.messages import CardInfo, FibreInfo, PortInfo
from accelhw.model.ids import PortId
from accelhw.model.profile import load_profile
from accelhw.sim.cardworld import CHASSIS, CardWorld

from .conftest import named

SLOWEST_S = 200.0  # ramps that take longer are made short here


class Bench:
    """A healthy pair, looked at once a second as the daemon would."""

    def __init__(self, profile: str) -> None:
        self.world = CardWorld(profile)
        self.history = History()
        self.facts = [self._facts(index) for index in (0, 1)]
        self.world.power_on()
        self.wall_ns = time.time_ns() - self.world.now_ns  # the cards date themselves by it

    def _facts(self, index: int) -> CardFacts:
        world, lanes = self.world, self.world.profile.lanes_per_oe
        fibre = FibreInfo("fibre0", "memory", 10.0, 0.5, 9000)
        ports = tuple(
            PortInfo(
                oe,
                index * world.profile.oes + oe,
                index * world.profile.signal_lines + oe * lanes,
                lanes,
                None if oe else fibre,
            )
            for oe in range(world.profile.oes)
        )
        name = f"card{index}"
        info = CardInfo(name, world.profile.name, "0" * 16, 1 << 30, index, 0, ports)
        return CardFacts(info, world.profile)

    def snapshot(self) -> HostSnapshot:
        world = self.world
        for card in world.cards:
            card.write_rows()
        worker = WorkerSnapshot(0, 1, True, 0, 0, ("card0", "card1"), world.now_ns)
        cards = tuple(self._card(facts) for facts in self.facts)
        return HostSnapshot(
            "0", 1, 0, True, CHASSIS, 1, 0, 0, 0, cards, (worker,), {}, 0, 0, True
        )  # fmt: skip

    def _card(self, facts: CardFacts) -> CardSnapshot:
        tables, lanes = self.world.tables, self.world.profile.lanes_per_oe
        row, ports, rows = tables.copy_card(facts.info.card_row, facts.port_rows, facts.lane_rows)
        card_flags, flags = tables.copy_flags(facts.info.card_row, facts.lane_rows)
        found = []
        for port in facts.info.ports:
            its = slice(port.oe * lanes, (port.oe + 1) * lanes)
            line = tuple(range(lanes))
            found.append(
                PortSnapshot(
                    PortId(facts.name, port.oe), port, facts, ports[port.oe], rows[its],
                    line, line, flags[its],
                )
            )  # fmt: skip
        return CardSnapshot(facts, row[0], tuple(found), 0, 0, card_flags)

    def look(self) -> Health:
        snapshot = self.snapshot()
        now = Now(self.wall_ns + self.world.now_ns, self.world.now_ns)
        self.history = advance(self.history, snapshot, now)
        return judge(snapshot, self.history, now)

    def run(self, seconds: int) -> list[Health]:
        reports = []
        for _ in range(seconds):
            self.world.run(1)
            reports.append(self.look())
        return reports


LINK, CARD = "card0/oe0", "card0"
# What each fault is known by: the reasons that it comes to have, and of what. Those that no
# threshold and no link minds have none.
KNOWN_BY: dict[str, dict[str, str]] = {
    "dirty_connector_mild": {},
    "dirty_connector_bad": {"PRE_FEC_BER_HIGH": LINK, "BER_TOO_HIGH": LINK},
    "bent_fibre": {"PRE_FEC_BER_HIGH": LINK},
    "fibre_cut": {"NO_SIGNAL": LINK},
    "unplug_replug": {"NO_SIGNAL": LINK},
    "flapping": {},
    "ber_creep": {"PRE_FEC_BER_HIGH": LINK, "BER_TOO_HIGH": LINK},
    "polarity_swap": {},
    "lane_swap_reversal": {},
    "tx_tx_miscable": {"NO_SIGNAL": LINK},
    "laser_ageing": {"TX_BIAS_HIGH": f"{LINK}/lane0", "LASER_WORN": LINK},
    "laser_fail": {"DEGRADED_WIDTH": LINK},
    "els_fail_shared": {"DEGRADED_WIDTH": LINK},
    "els_connector_dirty": {},
    "tec_fail": {"COOLER_AT_LIMIT": LINK},
    "ring_drift": {"HEATER_HIGH": f"{LINK}/lane0"},
    "crosstalk": {},
    "esd_rx": {},
    "cdr_unlock": {},
    "burst_errors": {"FEC_UNCORRECTABLE": LINK},
    "thermal_runaway_airflow": {"CASE_TEMP_HIGH": CARD},
    "supply_droop": {"SUPPLY_LOW": CARD},
    "hbm_sbe_rate": {},
    "hbm_dbe": {"HBM_ROWS_PENDING": CARD},
    "hbm_remap_exhausted": {"HBM_ROWS_PENDING": CARD},
    "hbm_overheat": {},  # 30 K more than at rest
}
# Lanes go bad one after the other, each a cause until most have it, or the link left them out.
ONE_BY_ONE = {"ber_creep", "laser_ageing"}
STAYS = {
    "FEC_UNCORRECTABLE", "FEC_TAIL_GROWING",  # lately
    "HBM_ROWS_PENDING",  # until a reset
    "SLOWER_MODE",  # until it trains again in the better one
}  # fmt: skip
SLOW_S = {"thermal_runaway_airflow": 150, "tec_fail": 30}  # heat takes its time
HEALING_S = {"thermal_runaway_airflow": 90}
RAMP_S = 10.0  # instead of months


def unwell(reports: list[Health]) -> list[list[tuple[str, str]]]:
    """Code and object of each cause, at each look."""
    return [[(code, at) for _, code, at in named(report)] for report in reports]


@pytest.mark.parametrize("kind", CATALOGUE)
def test_a_fault_is_named_once_where_it_is_and_nothing_before_or_after(kind: str) -> None:
    what = CATALOGUE[kind]
    bench = Bench("oio" if what.needs and not what.needs.is_in(load_profile("dr8")) else "dr8")
    assert not any(unwell(bench.run(8)))
    how = {"ramp_s": RAMP_S} if what.shape.rise_s > SLOWEST_S else {}
    bench.world.inject(kind, CARD if what.where is Where.CARD else LINK, **how)
    looks = unwell(bench.run(SLOW_S.get(kind, 20)))
    seen = {one for look in looks for one in look}
    assert set(KNOWN_BY[kind].items()) <= seen
    assert {at.partition("/")[0] for _, at in seen} <= {CARD}  # never of the far card
    if kind not in ONE_BY_ONE:
        assert seen == set(KNOWN_BY[kind].items())
        assert max(map(len, looks)) <= 1
    bench.world.clear()
    after = bench.run(HEALING_S.get(kind, 8))[-1]
    assert {code for _, code, _ in named(after)} <= STAYS
    assert all(one.state is HealthState.HEALTHY for one in after.walk() if one.place.kind == "lane"
               and one.place.address.startswith(LINK))  # fmt: skip
    bench.world.close()


def test_the_table_above_knows_every_fault() -> None:
    assert set(KNOWN_BY) == set(CATALOGUE)
