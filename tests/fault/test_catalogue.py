"""The catalogue: it names causes that exist, and the page is made from it."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from accelhw.chassis.faultkinds import fault_kinds
from accelhw.fault.catalogue import CATALOGUE
from accelhw.fault.injector import CONDITIONS
from accelhw.fault.kinds import FaultKind
from accelhw.fault.request import LIMITS, check_amounts
from accelhw.interface import messages
from accelhw.model.profile import load_profile, profile_names
from accelhw.optics.causes import CAUSES, SWITCHES

ROOT = Path(__file__).resolve().parents[2]
KINDS = list(CATALOGUE.values())

# optics of the field, as published reports list them
EXPECTED = [
    *("dirty_connector_mild", "dirty_connector_bad", "bent_fibre", "laser_ageing", "laser_fail"),
    *("tec_fail", "ring_drift", "fibre_cut", "unplug_replug", "esd_rx", "cdr_unlock"),
    *("polarity_swap", "lane_swap_reversal", "tx_tx_miscable", "flapping", "ber_creep"),
    *("burst_errors", "crosstalk", "els_fail_shared", "thermal_runaway_airflow"),
]


@pytest.mark.parametrize("name", EXPECTED)
def test_the_faults_of_the_field_are_there(name: str) -> None:
    assert name in CATALOGUE


@pytest.mark.parametrize("kind", KINDS, ids=lambda k: k.id)
def test_a_fault_changes_causes_that_exist_where_it_acts(kind: FaultKind) -> None:
    assert kind.effects or kind.crossing
    for effect in kind.effects:
        assert CAUSES[effect.cause] == ("card" if kind.is_on_card else "lane")


@pytest.mark.parametrize("kind", KINDS, ids=lambda k: k.id)
def test_a_fault_is_told_in_words(kind: FaultKind) -> None:
    for text in (kind.summary, kind.near, kind.far, kind.repair, kind.source):
        assert text.strip()
    assert kind.summary.endswith(".")
    assert len(kind.summary) <= 90


@pytest.mark.parametrize("kind", KINDS, ids=lambda k: k.id)
def test_a_fault_stays_within_what_there_is(kind: FaultKind) -> None:
    for name in profile_names():
        check_amounts(kind.effects_on(load_profile(name)), 1.0)


def test_limits_are_for_causes_that_exist() -> None:
    assert set(LIMITS) <= set(CAUSES)


def test_the_injector_knows_which_causes_are_conditions() -> None:
    assert CONDITIONS == SWITCHES


def test_the_catalogue_crosses_the_border() -> None:
    kinds = fault_kinds()
    assert [kind.id for kind in kinds] == list(CATALOGUE)
    welcome = messages.Welcome(1, "0" * 16, 1, 1, 1, (), (), (), {}, 0, 0, (0, 0, 0, 0), kinds)
    assert messages.decode(messages.encode(welcome)) == welcome


def test_the_page_is_made_from_the_catalogue() -> None:
    path = ROOT / "tools" / "fault_reference.py"
    spec = importlib.util.spec_from_file_location("fault_reference", path)
    assert spec is not None
    assert spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    page = (ROOT / "docs" / "reference" / "faults.md").read_text()
    assert page == module.page(), "make reference"
