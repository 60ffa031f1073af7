"""How long anything may be told to last, in one place; `accel.span` says the same to clients."""

from __future__ import annotations

DAY_S = 86_400
LONGEST_S = 100 * 365 * DAY_S  # a century; beyond it a counter of ns overflows
LONGEST = "36500d"  # as people write it
