"""Simulated metrics have the exporter's names, kinds, labels, words and units."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from acceld.fields.field import Column, Field
from acceld.fields.table import FIELDS
from accelhw.fault.scenario import Level, Scenario
from accelhw.fault.scenariofigures import BY_NAME, FIGURES, Figure
from accelhw.fault.scenariofile import load
from accelhw.model.flag import LEVELS
from accelhw.model.profile import load_profile
from accelhw.sim.metricfamilies import MARKED
from accelhw.sim.run import Options, Run
from accelhw.sim.scenario import KNOWN

REAL = {field.metric: field for field in FIELDS}
SECOND_NS = 1_000_000_000
STORY = """
[topology]
cards = {cards}
profile = "{profile}"
[telemetry]
every = "1m"
[[do]]
fault = "laser_fail"
on = "card0/oe0/lane0"
at = "1m30s"
[[do]]
fault = "fibre_cut"
on = "card1/oe0"
at = "3m30s"
"""
# What a rule or a dashboard reads of links, lanes, FEC, heat and wear.
NEEDED = {
    "accel_card_case_temperature_celsius", "accel_card_case_temperature_threshold_celsius",
    "accel_card_flag_active", "accel_card_info", "accel_card_state", "accel_fault_active",
    "accel_hbm_temperature_celsius", "accel_lane_flag_active", "accel_lane_info",
    "accel_lane_laser_wear_ratio", "accel_lane_margin_db", "accel_lane_pre_fec_error_ratio",
    "accel_lane_rx_power_dbm", "accel_lane_tx_bias_amperes", "accel_lane_tx_power_dbm",
    "accel_link_admin_up", "accel_link_down_reason", "accel_link_downs_total",
    "accel_link_fec_bin_codewords_total", "accel_link_fec_uncorrectable_codewords_total",
    "accel_link_flaps_total", "accel_link_full_width_lanes", "accel_link_info",
    "accel_link_mode_info", "accel_link_state", "accel_link_up", "accel_link_width_lanes",
    "accel_oe_info", "accel_oe_rx_power_threshold_dbm",
}  # fmt: skip


def families(folder: Path, profile: str, cards: int = 2) -> dict[str, Metric]:
    """Those of a story with some trouble, by the names of their samples."""
    scenario = load(STORY.format(profile=profile, cards=cards), KNOWN, lambda path: "")
    assert isinstance(scenario, Scenario)
    run = Run(scenario, Options(1, 5 * 60 * SECOND_NS, out=folder))
    run.go()
    run.finish()
    text = (folder / "metrics.om").read_text()
    suffix = {"counter": "_total", "info": "_info"}
    return {
        family.name + suffix.get(family.type, ""): family
        for family in text_string_to_metric_families(text)
    }


@pytest.fixture(scope="module", params=["dr8", "oio", "single"])
def simulated(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory):
    return families(tmp_path_factory.mktemp(request.param), request.param)


def test_each_family_is_the_exporters(simulated: dict[str, Metric]) -> None:
    for name, family in simulated.items():
        field = REAL[name]
        assert (family.type, family.documentation) == (field.kind, field.text), name
        for sample in family.samples:
            labels = tuple(sample.labels)
            if name == "accel_fault_active":  # of a lane, a port or a card
                assert set(labels) <= set(field.labels)
            else:
                assert labels == field.labels, name
            assert sample.timestamp is not None


def test_it_has_what_rules_are_made_of(simulated: dict[str, Metric]) -> None:
    assert set(simulated) >= NEEDED
    assert {name for name in NEEDED if not simulated[name].samples} <= {
        "accel_link_fec_bin_codewords_total"  # without FEC
    }


def matched() -> Iterator[tuple[Figure, Field]]:
    for figure in FIGURES:
        field = REAL[figure.family]
        if isinstance(field.source, Column):
            yield figure, field


@pytest.mark.parametrize(
    ("figure", "field"), [pytest.param(*pair, id=pair[0].name) for pair in matched()]
)
def test_a_figure_has_the_exporters_column_and_unit(figure: Figure, field: Field) -> None:
    source = field.source
    assert isinstance(source, Column)
    assert (figure.column, figure.present) == (source.name, source.when)
    assert figure.factor == pytest.approx(1 / field.divisor)
    level = {"card": Level.CARD, "lane": Level.LANE}.get(field.noun.value, Level.PORT)
    assert figure.level is level


@pytest.mark.parametrize("figure", BY_NAME.values(), ids=lambda figure: figure.name)
def test_what_is_judged_live_is_read_under_its_key_of_the_api(figure: Figure) -> None:
    field = REAL[figure.family]
    assert figure.key == field.key.rpartition(".")[2]
    assert field.message == {"lane": "Lane", "port": "Link", "card": "Card"}[figure.level.value]


def test_thresholds_are_the_profiles_in_the_exporters_unit(simulated: dict[str, Metric]) -> None:
    lane_type = simulated["accel_oe_info"].samples[0].labels["lane_type"]
    names = ("dr8", "oio", "single")
    profile = next(p for p in map(load_profile, names) if p.lane.name == lane_type)
    for quantity, family in {
        "tx_bias_ma": "accel_oe_tx_bias_threshold_amperes",
        "rx_power_dbm": "accel_oe_rx_power_threshold_dbm",
        "supply_v": "accel_card_supply_threshold_volts",
    }.items():
        found = {s.labels["level"]: s.value for s in simulated[family].samples}
        for level, value in zip(LEVELS, profile.thresholds[quantity], strict=True):
            assert found[level] == pytest.approx(value / REAL[family].divisor), (family, level)


def test_marks_are_told_as_they_are_and_no_longer(simulated: dict[str, Metric]) -> None:
    def minute(sample: Sample) -> float:
        return (float(sample.timestamp) - 1_767_225_600) / 60

    flags = {
        (sample.labels["flag"], minute(sample))
        for sample in simulated["accel_lane_flag_active"].samples
        if (sample.labels["card"], sample.labels["oe"], sample.labels["lane"])
        == ("card0", "oe0", "lane0")
    }
    assert {at for flag, at in flags if flag == "tx_fault"} == {2, 3, 4, 5}
    reasons = simulated["accel_link_down_reason"].samples
    lanes = len({sample.labels["lane"] for sample in simulated["accel_lane_info"].samples})
    told = {minute(sample) for sample in reasons}
    assert told == ({4, 5} if lanes > 1 else {2, 3, 4, 5})  # a dead laser takes a lone lane down


def test_every_mark_is_known_to_the_exporter() -> None:
    assert {family.name for family in MARKED} <= set(REAL)
