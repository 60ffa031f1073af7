"""How many series a host makes, by arithmetic: `python -m acceld.fields.budget --cards 8 ...`.

Prints JSON: accelctl asks it as a process, since a plan needs no daemon.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

from acceld.fields.engine import EXTERNAL
from acceld.fields.table import DEFAULT, FIELDS, Shape, series
from accelhw.model.profile import Profile, UnknownProfile, load_profile


def fitted(profile: Profile) -> frozenset[str]:
    """The parts of such a card that have figures of their own."""
    parts = {
        "cooled laser": profile.laser.cooled,
        "ring modulator": profile.ring is not None,
        EXTERNAL: profile.laser.lanes_per_laser > 1,
    }
    return frozenset(name for name, is_fitted in parts.items() if is_fitted)


def budget(shape: Shape) -> list[dict[str, Any]]:
    """Each family that such a host has, or may have, in the order of a scrape."""
    return [
        {
            "metric": field.metric,
            "group": field.group,
            "opt_in": field.group not in DEFAULT,
            "series": series(field, shape),
        }
        for field in FIELDS
        if not field.fitted or field.fitted in shape.fitted
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--profile", default="dr8")
    for name in ("cards", "engines", "lanes", "workers"):
        parser.add_argument(f"--{name}", type=int)
    options = parser.parse_args()
    try:
        profile = load_profile(options.profile)
    except UnknownProfile as error:
        parser.error(f"no profile {error.name!r}; there is {', '.join(error.known)}")
    cards = options.cards or 1
    shape = Shape(
        cards,
        options.engines or profile.oes,
        options.lanes or profile.lanes_per_oe,
        options.workers or min(cards, 2),
        fitted(profile),
    )
    print(json.dumps(budget(shape)))


if __name__ == "__main__":
    main()
