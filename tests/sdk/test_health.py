"""Health in the SDK: names as people write them, and what needs somebody."""

from __future__ import annotations

import pytest

from accel.address import BadAddress
from accel.health import is_unwell, object_name
from accel.v1 import health_pb2


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("", "host"),
        ("host", "host"),
        ("daemon", "daemon"),
        ("worker0", "workers/worker0"),
        ("card0", "cards/card0"),
        ("card0/oe1", "cards/card0/engines/oe1"),
        ("cards/card0/links/oe1", "cards/card0/links/oe1"),
        ("cards/card0/engines/oe1", "cards/card0/engines/oe1"),
        ("card0/oe1/lane3", "cards/card0/engines/oe1/lanes/lane3"),
    ],
)
def test_each_object_has_a_short_form_and_a_name(text: str, name: str) -> None:
    assert object_name(text) == name
    assert object_name(name) == name


@pytest.mark.parametrize("text", ["card0:weights", "card0/oe1/", "Card0", "cards/card0/links/x"])
def test_what_has_no_health_is_refused(text: str) -> None:
    with pytest.raises(BadAddress):
        object_name(text)


def test_training_and_absent_need_nobody() -> None:
    unwell = {
        name
        for name, number in health_pb2.HealthState.items()
        if is_unwell(health_pb2.Health(state=number))
    }
    assert unwell == {"HEALTH_STATE_WARNING", "HEALTH_STATE_CRITICAL"}
