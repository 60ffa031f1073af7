"""What queries and colours are made of: selectors, labels, states, and what is good or bad."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

RATE = "$__rate_interval"

# ---- selectors: what the variables of a board choose --------------------------------------------

HOST = 'job=~"$job",instance=~"$instance"'
CARD = f'{HOST},card=~"$card"'
PORT = f'{CARD},oe=~"$oe"'
LANE = f'{PORT},lane=~"$lane"'
PER_HOST, PER_CARD = "job, instance", "job, instance, card"
PER_PORT, PER_LANE = "job, instance, card, oe", "job, instance, card, oe, lane"

EACH_HOST = "{{instance}}"
EACH_CARD = "{{instance}} {{card}}"
EACH_PORT = "{{instance}} {{card}}/{{oe}}"
EACH_LANE = "{{card}}/{{oe}}/{{lane}}"

# ---- colours ------------------------------------------------------------------------------------

Steps = Sequence[tuple[float | None, str]]  # colours from each level upward; the first has None

PLAIN: Steps = ((None, "text"),)
ANY_IS_BAD: Steps = ((None, "green"), (1, "red"))
ANY_IS_ODD: Steps = ((None, "green"), (1, "orange"))
ALL_IS_GOOD: Steps = ((None, "red"), (1.0, "green"))
MARGIN_DB: Steps = ((None, "red"), (1.0, "orange"), (2.0, "green"))  # the alert is at 1 dB
FRAME_LOSS: Steps = ((None, "green"), (1e-9, "orange"), (1e-6, "red"))
WEAR: Steps = ((None, "green"), (0.5, "orange"), (0.8, "red"))

Names = Mapping[float, tuple[str, str]]  # of a state's number: its name and colour

LINK_STATES: Names = {
    1: ("DOWN", "text"),
    2: ("SEEKING", "purple"),
    3: ("TRAINING", "blue"),
    4: ("UP", "green"),
    5: ("DEGRADED", "orange"),
    6: ("FAILED", "red"),
}
CARD_STATES: Names = {1: ("READY", "green"), 2: ("RESETTING", "blue"), 3: ("FELL_OFF_BUS", "red")}
HEALTH: Names = {
    0: ("ok", "green"),
    1: ("grace", "blue"),
    2: ("warning", "orange"),
    3: ("critical", "red"),
}
RECEIVER: Names = {0: ("locked", "green"), 1: ("no lock", "orange"), 2: ("dark", "red")}
THERE: Names = {1: ("there", "red")}
YES_NO: Names = {0: ("no", "red"), 1: ("yes", "green")}
LEVELS = {"alarm": "red", "warning": "orange"}


def state_number(metric: str, where: str, names: Names, by: str) -> str:
    """The one state of each thing as its number: the metric has a series for each state."""
    each = (f'{metric}{{{where},state="{name}"}} * {n}' for n, (name, _) in names.items())
    return f"sum by ({by}) ({' or '.join(each)})"


def counted(counter: str, where: str) -> str:
    """How much the counter grew in the time shown, as a whole number."""
    return f"round(increase({counter}{{{where}}}[$__range]))"


def how_many(found: str, of: str) -> str:
    """How many are found, 0 if none; without an answer where there is nothing to look among, so
    that a board without data does not look well."""
    return f"count({found}) or 0 * count({of})"
