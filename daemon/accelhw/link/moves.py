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
    TROUBLED = auto()  # a lane in use is bad, here or at the far end
    LOST = auto()  # what was reached is gone: a new attempt
    FELL_BACK = auto()  # no lane is good enough in this mode: a new attempt in another
    FAILED = auto()
    DAMPED = auto()  # lost too often
    HELD_OFF = auto()


TRAINING = (
    Phase.LOCK, Phase.EQ_TRAIN, Phase.MAP, Phase.BER_CHECK, Phase.ALIGN, Phase.RETRY_START
)  # fmt: skip
CARRYING = (Phase.ACTIVE, Phase.RECOVERY)

MOVES: dict[tuple[Phase, Step], Phase] = {
    (Phase.OFF, Step.ENABLED): Phase.LASER_ON,
    (Phase.LASER_ON, Step.PASSED): Phase.SEEK,
    (Phase.LASER_ON, Step.FAILED): Phase.HOLD_OFF,
    (Phase.SEEK, Step.PEER_HEARD): Phase.LOCK,
    (Phase.LOCK, Step.PASSED): Phase.EQ_TRAIN,
    (Phase.EQ_TRAIN, Step.PASSED): Phase.MAP,
    (Phase.MAP, Step.PASSED): Phase.BER_CHECK,
    (Phase.BER_CHECK, Step.PASSED): Phase.ALIGN,
    (Phase.ALIGN, Step.PASSED): Phase.RETRY_START,
    (Phase.RETRY_START, Step.PASSED): Phase.ACTIVE,
    (Phase.ACTIVE, Step.TROUBLED): Phase.RECOVERY,
    (Phase.RECOVERY, Step.PASSED): Phase.ACTIVE,
    (Phase.SEEK, Step.LOST): Phase.SEEK,
    (Phase.SEEK, Step.FAILED): Phase.HOLD_OFF,
    (Phase.HOLD_OFF, Step.HELD_OFF): Phase.LASER_ON,
    (Phase.HOLD_OFF, Step.LOST): Phase.SEEK,
    **{(phase, Step.LOST): Phase.SEEK for phase in CARRYING},
    **{(phase, Step.DAMPED): Phase.HOLD_OFF for phase in CARRYING},
    **{(phase, Step.PEER_CHANGED): Phase.SEEK for phase in TRAINING},
    **{(phase, Step.LOST): Phase.SEEK for phase in TRAINING},
    **{(phase, Step.FELL_BACK): Phase.SEEK for phase in TRAINING},
    **{(phase, Step.FAILED): Phase.HOLD_OFF for phase in TRAINING},
    **{(phase, Step.DISABLED): Phase.OFF for phase in Phase},
}

STATE = {
    Phase.OFF: LinkState.DOWN,
    Phase.LASER_ON: LinkState.SEEKING,
    Phase.SEEK: LinkState.SEEKING,
    **dict.fromkeys(TRAINING, LinkState.TRAINING),
    **dict.fromkeys(CARRYING, LinkState.UP),  # or DEGRADED
    Phase.HOLD_OFF: LinkState.FAILED,
}

PHASE_TEXT = {
    Phase.LASER_ON: "lasers settle",
    Phase.SEEK: "seeks its peer",
    Phase.LOCK: "hears its peer; lanes lock",
    Phase.EQ_TRAIN: "trains the equalisers",
    Phase.MAP: "learns the lane map",
    Phase.BER_CHECK: "checks errors per lane",
    Phase.ALIGN: "aligns lanes, measures the round trip",
    Phase.RETRY_START: "starts the retry layer",
}

# How far a peer is that says it is in this phase. The others are no progress.
RANK = {phase: rank for rank, phase in enumerate((Phase.SEEK, *TRAINING, Phase.ACTIVE))}
RANK[Phase.RECOVERY] = RANK[Phase.ACTIVE]

# Reasons that only say what a seeking port waits for; hearing a peer answers them.
WAITING = frozenset(
    {
        DownReason.NO_SIGNAL,
        DownReason.PEER_SILENT,
        DownReason.PARTIAL_LIGHT,
        DownReason.CDR_NO_LOCK,
        DownReason.PEER_DOWN,
        DownReason.PEER_TEST,
        DownReason.INTERFACE_DOWN,
    }
)

# A link never does without a lane for one of these: what else is wrong with that cable, or peer?
HOPELESS = frozenset(
    {
        DownReason.LANE_MISSING,
        DownReason.LANE_DUPLICATE,
        DownReason.ALIGN_FAILED,
        DownReason.EQ_PARTNER_NOT_READY,
    }
)

# Reasons for which another mode may help: a stronger FEC or a lower rate bears more errors.
TOO_NOISY = frozenset(
    {DownReason.CDR_NO_LOCK, DownReason.BER_TOO_HIGH, DownReason.EQ_NOT_CONVERGED}
)

# What the light or the wire did, and no one commanded: a link that falls for these often is held.
PHYSICAL = frozenset(
    {
        DownReason.SIGNAL_LOST,
        DownReason.CDR_NO_LOCK,
        DownReason.BER_TOO_HIGH,
        DownReason.FEC_LOCK_LOST,
        DownReason.PARTIAL_LIGHT,
        DownReason.ALIGN_LOST,
        DownReason.ALIGN_FAILED,
        DownReason.REPLAY_EXHAUSTED,
        DownReason.RECOVERY_TIMEOUT,
        DownReason.INTERFACE_DOWN,
    }
)
