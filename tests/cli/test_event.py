"""accelctl event: which of them."""

from __future__ import annotations

import pytest

from .conftest import Accelctl
from .fake_server import FakeDaemon


@pytest.mark.parametrize(
    ("arguments", "revisions"),
    [
        ("--kind link-up", "4"),
        ("--kind LINK_UP --kind CARD_READY", "2 3 4"),
        ("--severity warning", "5"),
        # The fake's clock stands two hours and five minutes after its start.
        ("--since 2026-09-21T14:13:23Z", "4 5"),
        ("--since 2026-09-21T16:13:23+02:00", "4 5"),
        ("--since 7497s", "4 5"),
        ("--since 3d", "1 2 3 4 5"),
        ("--since 1m", ""),
        ("card0/oe1 --since 3h -n 0", "5"),
    ],
)
def test_events_are_chosen(
    accelctl: Accelctl, daemon: FakeDaemon, arguments: str, revisions: str
) -> None:
    outcome = accelctl("event", "list", *arguments.split(), "-o", "name")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.split() == revisions.split()
