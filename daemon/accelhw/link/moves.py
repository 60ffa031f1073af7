"""The diagram of link training: phases, and what leads from one to the next."""

from __future__ import annotations

from enum import Enum, auto

from accelhw.model.link import DownReason, LinkState, TrainingPhase

Phase = TrainingPhase


class Step(Enum):
    """What happened, as the diagram sees it."""

    ENABLED = auto()
    DISABLED = auto()
    PEER_HEARD = auto()  # and it hears us
    PASSED = auto()  # our check, and the far end has come as far
    PEER_CHANGED = auto()  # it began a new attempt: so do we, under our session
    LOST = auto()  # what was reached is gone: a new attempt
    FAILED = auto()
    HELD_OFF = auto()


TRAINING = (Phase.LOCK, Phase.MAP, Phase.BER_CHECK, Phase.ALIGN, Phase.RETRY_START)

MOVES: dict[tuple[Phase, Step], Phase] = {
    (Phase.OFF, Step.ENABLED): Phase.SEEK,
    (Phase.SEEK, Step.PEER_HEARD): Phase.LOCK,
    (Phase.LOCK, Step.PASSED): Phase.MAP,
    (Phase.MAP, Step.PASSED): Phase.BER_CHECK,
    (Phase.BER_CHECK, Step.PASSED): Phase.ALIGN,
    (Phase.ALIGN, Step.PASSED): Phase.RETRY_START,
    (Phase.RETRY_START, Step.PASSED): Phase.ACTIVE,
    (Phase.ACTIVE, Step.LOST): Phase.SEEK,
    (Phase.SEEK, Step.LOST): Phase.SEEK,
    (Phase.SEEK, Step.FAILED): Phase.HOLD_OFF,
    (Phase.HOLD_OFF, Step.HELD_OFF): Phase.SEEK,
    (Phase.HOLD_OFF, Step.LOST): Phase.SEEK,
    **{(phase, Step.PEER_CHANGED): Phase.SEEK for phase in TRAINING},
    **{(phase, Step.LOST): Phase.SEEK for phase in TRAINING},
    **{(phase, Step.FAILED): Phase.HOLD_OFF for phase in TRAINING},
    **{(phase, Step.DISABLED): Phase.OFF for phase in Phase},
}

STATE = {
    Phase.OFF: LinkState.DOWN,
    Phase.SEEK: LinkState.SEEKING,
    **dict.fromkeys(TRAINING, LinkState.TRAINING),
    Phase.ACTIVE: LinkState.UP,  # or DEGRADED
    Phase.HOLD_OFF: LinkState.FAILED,
}

PHASE_TEXT = {
    Phase.SEEK: "seeks its peer",
    Phase.LOCK: "hears its peer; lanes lock",
    Phase.MAP: "learns the lane map",
    Phase.BER_CHECK: "checks errors per lane",
    Phase.ALIGN: "aligns lanes, measures the round trip",
    Phase.RETRY_START: "starts the retry layer",
}

# How far a peer is that says it is in this phase. The others are no progress.
RANK = {phase: rank for rank, phase in enumerate((Phase.SEEK, *TRAINING, Phase.ACTIVE))}

# Reasons that only say what a seeking port waits for; hearing a peer answers them.
WAITING = frozenset(
    {
        DownReason.NO_SIGNAL,
        DownReason.PEER_SILENT,
        DownReason.PARTIAL_LIGHT,
        DownReason.CDR_NO_LOCK,
        DownReason.PEER_DOWN,
        DownReason.INTERFACE_DOWN,
    }
)

# A link never does without a lane for one of these: what else is wrong with that cable?
MISWIRED = frozenset({DownReason.LANE_MISSING, DownReason.LANE_DUPLICATE, DownReason.ALIGN_FAILED})
