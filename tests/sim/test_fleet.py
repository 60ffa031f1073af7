"""A whole fleet in one process: the real machines, and no work while nothing happens."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from accelhw.fault.scenario import Level
from accelhw.interface.messages import InjectFault
from accelhw.model.fleet import make_fleet
from accelhw.model.ids import PortId
from accelhw.model.link import LinkState
from accelhw.model.profile import load_profile
from accelhw.sim.fleet import SECOND_NS, Fleet, Told

UP, DEGRADED = LinkState.UP, LinkState.DEGRADED
PORT, PEER, OTHER = PortId("card0", 0), PortId("card1", 0), PortId("card0", 1)


class World:
    """A fleet that is up, and what it told."""

    def __init__(
        self, profile: str = "dr8", cards: int = 2, seed: int = 7, cold: bool = False
    ) -> None:
        self.told: list[Told] = []
        config = make_fleet(cards, load_profile(profile), "pairs", 10.0)
        self.fleet = Fleet(config, seed, self.told.append)
        self.fleet.power_on(cold)
        self.run(10)

    def run(self, seconds: float) -> None:
        end_ns = self.fleet.now_ns + round(seconds * SECOND_NS)
        while self.fleet.now_ns < end_ns:
            self.fleet.run_until(min(self.fleet.now_ns + 60 * SECOND_NS, end_ns))
            self.fleet.step()

    def inject(self, kind: str, subject: str = "card0/oe0", **how: object) -> None:
        command = InjectFault(1, f"f{len(self.told)}", kind, subject, **how)  # type: ignore[arg-type]
        self.fleet.inject(command)

    def state(self, port: PortId) -> LinkState:
        return self.fleet.seats[port].port.trainer.state

    def kinds(self, port: PortId) -> list[str]:
        return [each.kind for each in self.told if each.subject == str(port)]


@pytest.fixture
def world() -> Iterator[World]:
    made = World()
    yield made
    made.fleet.close()


@pytest.mark.parametrize("profile", ["dr8", "oio", "single"])
def test_all_links_train(profile: str) -> None:
    world = World(profile, cards=4)
    assert {seat.state for seat in world.fleet.seats.values()} == {UP}
    world.fleet.close()


@pytest.mark.parametrize("profile", ["dr8", "oio", "single"])
def test_a_fleet_found_running_has_the_light_of_one_that_trained_from_nothing(profile: str) -> None:
    warm, cold = World(profile), World(profile, cold=True)
    requests = []
    for world in (warm, cold):
        equalisers = [s.port.trainer.lanes.equaliser for s in world.fleet.seats.values()]
        requests.append(sum(equaliser.requests for equaliser in equalisers))
        assert {seat.state for seat in world.fleet.seats.values()} == {UP}
    assert requests[0] == 0 < requests[1]
    for port, seat in warm.fleet.seats.items():
        other = cold.fleet.seats[port].port
        margin_db = seat.port.optics.margin_db
        assert margin_db == pytest.approx(other.optics.margin_db, abs=0.02)
        left_db = seat.port.trainer.lanes.equaliser.penalties_db
        assert max(left_db) < 0.02  # half a step of a tap
        assert left_db == pytest.approx(other.trainer.lanes.equaliser.penalties_db, abs=0.02)
    warm.fleet.close()
    cold.fleet.close()


def test_a_quiet_fleet_has_nothing_to_do(world: World) -> None:
    world.run(3600)
    assert world.fleet.is_quiet


def test_counters_go_on_while_ports_sleep(world: World) -> None:
    columns = world.fleet.columns
    before = columns.column(Level.LANE, "rx_bits").copy()
    world.run(3600)
    grown = columns.column(Level.LANE, "rx_bits") - before
    assert grown == pytest.approx(106.25e9 * 3600)


def test_a_cut_fibre_is_dark_at_both_ends_at_once_and_comes_back(world: World) -> None:
    cut_ns = world.fleet.now_ns
    world.inject("fibre_cut", duration_s=7200.0)
    world.run(3600)
    downs = {each.subject: each.time_ns for each in world.told if each.kind == "LINK_DOWN"}
    assert set(downs) == {str(PORT), str(PEER)}
    assert max(downs.values()) - cut_ns < 1_000_000
    assert not {UP, DEGRADED} & {world.state(PORT), world.state(PEER)}
    assert world.state(OTHER) is UP
    world.run(3610)
    assert {world.state(PORT), world.state(PEER)} == {UP}


def test_a_dark_link_is_left_alone_until_something_happens(world: World) -> None:
    world.inject("fibre_cut")
    world.run(60)
    told = len(world.told)
    world.fleet.run_until(world.fleet.now_ns + SECOND_NS // 1000)  # what is still in the fibre
    assert world.fleet.is_quiet
    world.run(86_400)
    assert len(world.told) == told


def test_a_dead_laser_costs_lanes_and_no_link(world: World) -> None:
    world.inject("laser_fail", lanes=(2,), duration_s=600.0)
    world.run(60)
    assert {world.state(PORT), world.state(PEER)} == {DEGRADED}
    assert "LINK_DOWN" not in world.kinds(PORT) + world.kinds(PEER)
    world.run(1200)
    assert {world.state(PORT), world.state(PEER)} == {UP}


def test_a_port_that_is_switched_off_and_on(world: World) -> None:
    world.fleet.set_admin(PORT, False)
    world.run(10)
    assert world.state(PORT) is LinkState.DOWN
    assert world.state(PEER) is LinkState.SEEKING
    world.run(3600)
    world.fleet.set_admin(PORT, True)
    world.run(10)
    assert {world.state(PORT), world.state(PEER)} == {UP}


def test_a_card_that_is_reset_comes_back_by_itself(world: World) -> None:
    world.fleet.reset("card0")
    world.run(20)
    assert [each.kind for each in world.told if each.subject == "card0"] == [
        "CARD_RESET",
        "CARD_READY",
    ]
    assert {world.state(port) for port in (PORT, PEER, OTHER)} == {UP}


def test_heat_moves_in_small_steps_and_rests_again(world: World) -> None:
    world.run(3600)
    assert not world.fleet.restless
    world.inject("thermal_runaway_airflow", "card0")
    assert world.fleet.restless
    cold, hot = (f"card{number}" for number in (1, 0))
    world.run(3600)
    temperature = world.fleet.columns.column(Level.CARD, "case_temp_c")
    at = world.fleet.columns.places
    assert temperature[at[hot]] > temperature[at[cold]] + 30
    assert not world.fleet.restless


def test_light_falls_with_wear_though_the_port_sleeps(world: World) -> None:
    world.inject("laser_ageing", shape="ramp", ramp_s=100 * 86_400.0)
    bias = world.fleet.columns.column(Level.LANE, "tx_bias_ma").copy()
    for _ in range(40):
        world.fleet.run_until(world.fleet.now_ns + 86_400 * SECOND_NS)
        world.fleet.step()
    place = world.fleet.columns.places[PORT] * 8
    grown = world.fleet.columns.column(Level.LANE, "tx_bias_ma")[place : place + 8]
    assert (grown > bias[place : place + 8] * 1.1).all()
