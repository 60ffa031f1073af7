"""Reading scenarios in tests."""

from __future__ import annotations

from accelhw.fault.catalogue import CATALOGUE
from accelhw.fault.scenario import Scenario
from accelhw.fault.scenariofigures import LEVELS
from accelhw.fault.scenariofile import Known, load
from accelhw.fault.shapes import ShapeKind
from accelhw.model.event import EVENT_KINDS

KNOWN = Known(
    CATALOGUE,
    tuple(shape.value for shape in ShapeKind),
    tuple(EVENT_KINDS),
    LEVELS,
)
FLEET = '[topology]\ncards = 4\nprofile = "dr8"\nshape = "ring"\n'


def no_file(path: str) -> str:
    raise FileNotFoundError(2, "No such file or directory")


def read(text: str, **options: object) -> Scenario:
    found = load(text, KNOWN, no_file, **options)  # type: ignore[arg-type]
    assert isinstance(found, Scenario), [f"{m.line}: {m}" for m in found]
    return found


def mistakes(text: str, **options: object) -> list[str]:
    found = load(text, KNOWN, no_file, **options)  # type: ignore[arg-type]
    assert isinstance(found, list), "it was read without a complaint"
    return [f"{mistake.line}: {mistake}" for mistake in found]


def do(*lines: str) -> str:
    return FLEET + "[[do]]\n" + "\n".join(lines) + "\n"


def expect(*lines: str) -> str:
    return FLEET + "[[expect]]\n" + "\n".join(lines) + "\n"
