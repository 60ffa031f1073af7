"""Every figure of a message is on its screen, with the unit of its key."""

from __future__ import annotations

from typing import Any

import pytest

from accel.v1 import link_pb2, optics_pb2
from accelctl import figures

from .conftest import Accelctl
from .fake_server import FakeDaemon


@pytest.mark.parametrize(
    ("key", "value", "shown"),
    [
        ("rx_power_dbm", -40.0, "-40.00 dBm"),
        ("margin_db", 1.255, "1.25 dB"),
        ("tx_bias_ma", 61.54, "61.5 mA"),
        ("heater_mw", 14.02, "14.0 mW"),
        ("case_temp_c", 52.26, "52.3 degC"),
        ("supply_v", 3.3, "3.300 V"),
        ("power_w", 38.44, "38.4 W"),
        ("laser_wear_ratio", 0.126, "12.6 %"),
        ("pre_fec_ber", 2.44e-9, "2.4e-09"),
        ("flaps_total", 12345, "12 345"),
        ("inverted", True, "yes"),
        ("q", 7.25, "7.25"),
    ],
)
def test_a_key_tells_unit_and_digits(key: str, value: float, shown: str) -> None:
    assert figures.value(key, value) == shown


def test_what_is_absent_has_no_text() -> None:
    assert figures.figure(optics_pb2.Lane(), "heater_mw", "ring heater") == ("ring heater", "")


def mark(message: Any, start: int) -> dict[str, str]:
    """Give every plain figure a value of its own; what must be read on the screen, by key."""
    wanted = {}
    for place, field in enumerate(message.DESCRIPTOR.fields):
        if field.is_repeated or field.message_type or field.enum_type:
            continue
        if field.cpp_type in (field.CPPTYPE_STRING, field.CPPTYPE_BOOL):
            continue
        number = start + place
        setattr(message, field.name, number)
        wanted[field.name] = str(number)
    return wanted


def missing(screen: str, wanted: dict[str, str]) -> set[str]:
    plain = screen.replace(" ", "")
    return {key for key, text in wanted.items() if text not in plain}


def test_every_figure_of_a_lane_is_on_its_screen(daemon: FakeDaemon, accelctl: Accelctl) -> None:
    lane = daemon.state.lanes[0]
    wanted = mark(lane, 1001)
    lane.pre_fec_ber, lane.rx_bits_total = 1.5e-7, 1.25e13
    lane.laser_wear_ratio, lane.tec_current_ratio = 0.231, 0.462
    wanted |= {
        "pre_fec_ber": "1.5e-07", "rx_bits_total": "1.25e+13", "laser_wear_ratio": "23.1%",
        "tec_current_ratio": "46.2%",
    }  # fmt: skip
    assert missing(accelctl("lane", "show", "card0/oe0/lane0").out, wanted) == set()


def test_every_figure_of_a_link_is_on_its_screen(daemon: FakeDaemon, accelctl: Accelctl) -> None:
    link = daemon.state.links[0]
    wanted = mark(link, 1001) | mark(link.fec_counters, 2001) | mark(link.counters, 3001)
    link.fec_counters.bins[:] = range(4001, 4017)
    wanted |= {f"bin {n}": str(4001 + n) for n in range(16)}
    link.pre_fec_ber_max, link.fec_counters.predicted_frame_loss_ratio = 1.5e-7, 2.5e-9
    link.fitted_lanes, link.full_width_lanes, link.rtt_us = 1006, 1001, 8911.07
    wanted |= {
        "pre_fec_ber_max": "1.5e-07", "predicted_frame_loss_ratio": "2.5e-09",
        "fitted_lanes": "1006,5spare", "full_width_lanes": "5spare",
        "rtt_us": "8.91ms",
    }  # fmt: skip
    assert link.DESCRIPTOR is link_pb2.Link.DESCRIPTOR
    assert missing(accelctl("link", "show", "card0/oe0").out, wanted) == set()


def test_every_figure_of_an_engine_is_on_its_screen(daemon: FakeDaemon, accelctl: Accelctl) -> None:
    engine = daemon.state.engines[0]
    wanted = mark(engine, 1001)
    laser = engine.external_lasers.add(
        index=3, lanes=[4, 5, 6, 7], laser_temp_c=50.5, tx_bias_ma=300.5, laser_wear_ratio=0.125
    )
    wanted |= {"lanes": "4-7", "temp": "50.5degC", "bias": "300.5mA", "wear": "12.5%"}
    assert not laser.HasField("tec_current_ratio")
    assert missing(accelctl("oe", "show", "card0/oe0").out, wanted) == set()


def test_every_figure_of_a_card_is_on_its_screen(daemon: FakeDaemon, accelctl: Accelctl) -> None:
    card = daemon.state.cards[0]
    wanted = mark(card, 1001) | mark(card.hbm_health, 2001)
    for key, gib in (("hbm_total", 96), ("hbm_allocated", 3), ("hbm_resident", 2)):
        setattr(card, f"{key}_bytes", gib << 30)
        wanted[f"{key}_bytes"] = f"{gib}GiB"
    assert missing(accelctl("card", "show", "card0").out, wanted) == set()
