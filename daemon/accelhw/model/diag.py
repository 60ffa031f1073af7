"""Words for tests of a link: kinds, states, verdicts, patterns."""

from __future__ import annotations

from enum import IntEnum


class DiagKind(IntEnum):
    PRBS = 1  # a known pattern in place of data, checked bit by bit
    BER = 2  # in service, from the receiver's counters
    MARGIN = 3  # attenuate the light until errors come
    EYE = 4  # in service: levels, noise and jitter, as a picture
    LOOPBACK_NEAR = 5  # a pattern over the own light, which returns before the connector
    LOOPBACK_FAR = 6  # a pattern over the own light, which the far port returns
    REFLECT = 7  # return to the far port what comes from it
    FEC = 8  # in service: how many symbols each codeword needed corrected

    @property
    def takes_link_down(self) -> bool:
        return self not in IN_SERVICE


IN_SERVICE = frozenset({DiagKind.BER, DiagKind.EYE, DiagKind.FEC})
PATTERNED = frozenset(
    {DiagKind.PRBS, DiagKind.MARGIN, DiagKind.LOOPBACK_NEAR, DiagKind.LOOPBACK_FAR}
)


class DiagState(IntEnum):
    RUNNING = 1
    DONE = 2
    FAILED = 3  # it could not be carried out; what it measured so far is kept
    CANCELLED = 4

    @property
    def ended(self) -> bool:
        return self is not DiagState.RUNNING


class Verdict(IntEnum):
    """What the measured says of the wanted."""

    NONE = 0  # nothing was wanted
    PASSED = 1  # proven, at the confidence asked for
    FAILED = 2  # refuted
    OPEN = 3  # too few bits for either


PATTERN_NAMES = (
    "prbs7", "prbs9", "prbs11", "prbs13", "prbs13_lane1", "prbs13_lane2", "prbs13_lane3",
    "prbs15", "prbs23", "prbs31", "prbs13q", "prbs31q",
)  # fmt: skip
CHECKERS = ("seeded", "self-sync")

DURATION_S_MAX = 86_400.0
CONFIDENCE = 0.95

# What a lane must keep to be good, by its FEC: the limits of IEEE 802.3 PMDs; 1e-12 without one.
TARGET_BER = {"none": 1e-12, "kr4": 5e-5, "kp4": 2.4e-4}
