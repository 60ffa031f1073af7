"""Every reason that health can give: what it means and what to do. docs/reference/health.md is
made from this table. Reasons of a link that is down are those of its training."""

from __future__ import annotations

from dataclasses import dataclass

from acceld.health.report import HealthState, Kind, Place, Reason
from accelhw.model.link import LANE_ACTION, NEXT_ACTION, DownReason

WARNING, CRITICAL = HealthState.WARNING, HealthState.CRITICAL
TRAINING, ABSENT = HealthState.TRAINING, HealthState.ABSENT

# Somebody wanted it so: a link that is down for such a reason is given its time anew.
PLANNED = frozenset(
    {
        DownReason.ADMIN_DOWN, DownReason.CARD_RESET, DownReason.RETRAIN_COMMANDED,
        DownReason.TEST, DownReason.PEER_TEST,
    }
)  # fmt: skip
# Perhaps somebody wanted it so at a far end of which no more is known.
PLANNED_ELSEWHERE = PLANNED | {DownReason.PEER_DOWN, DownReason.PEER_RESTARTED}
TESTED = frozenset({DownReason.TEST, DownReason.PEER_TEST})
# The far end is to blame, and says more about it.
BLAMES_PEER = frozenset(
    {DownReason.PEER_SILENT, DownReason.PEER_RESTARTED, DownReason.EQ_PARTNER_NOT_READY}
)


@dataclass(frozen=True, slots=True)
class ReasonKind:
    code: str
    kinds: tuple[Kind, ...]  # of objects that can have it
    states: tuple[HealthState, ...]  # that it can put them into
    meaning: str
    next_action: str  # {object}, {card}, {port} and {worker} stand for the object's names


def _level(code: str, kind: Kind, what: str, action: str) -> ReasonKind:
    """A watched figure beyond its threshold: warning level, or alarm level."""
    side = "above" if code.endswith("_HIGH") else "below"
    return ReasonKind(
        code, (kind,), (WARNING, CRITICAL), f"{what} is {side} its threshold.", action
    )


def _down(reason: DownReason) -> ReasonKind:
    """Of a link that does not carry data."""
    if reason is DownReason.ADMIN_DOWN:
        states: tuple[HealthState, ...] = (ABSENT,)
    elif reason is DownReason.PEER_DOWN:
        states = (ABSENT, TRAINING, CRITICAL)
    elif reason in TESTED:
        states = (TRAINING,)
    else:
        states = (TRAINING, CRITICAL)
    action = NEXT_ACTION[reason].replace("{interface}", "IFACE")
    if reason in LANE_ACTION:
        action += f"; of some lanes only: {LANE_ACTION[reason].replace('{lanes}', 'them')}"
    return ReasonKind(reason.name, (Kind.LINK,), states, DOWN_MEANINGS[reason], action)


DOWN_MEANINGS: dict[DownReason, str] = {
    DownReason.ADMIN_DOWN: "The link was switched off by command.",
    DownReason.NO_SIGNAL: "No light arrives at this port.",
    DownReason.PEER_SILENT: "Light arrives, and no training frame.",
    DownReason.PARTIAL_LIGHT: "Light arrives on some lanes only.",
    DownReason.CDR_NO_LOCK: "A receiver does not lock to its lane.",
    DownReason.LANE_MISSING: "A lane of the far end arrives nowhere.",
    DownReason.LANE_DUPLICATE: "A lane of the far end arrives twice.",
    DownReason.BER_TOO_HIGH: "There are more bit errors than this mode of the link bears.",
    DownReason.ALIGN_FAILED: "The lanes could not be lined up.",
    DownReason.RETRY_START_TIMEOUT: "The ends could not agree on where to begin; frames are lost.",
    DownReason.INCOMPATIBLE_PEER: "The far end is of a kind that cannot talk to this one.",
    DownReason.LOOPED_TO_SELF: "The port hears itself.",
    DownReason.PEER_RESTARTED: "The far end began anew.",
    DownReason.PEER_DOWN: "The far end is switched off, or its card is reset.",
    DownReason.SIGNAL_LOST: "The light of a link that was up went away, of all lanes or of some.",
    DownReason.ALIGN_LOST: "The lanes of a link that was up got out of line.",
    DownReason.REPLAY_EXHAUSTED: "Frames were sent again and again, and not acknowledged.",
    DownReason.INTERFACE_DOWN: "The interface that carries the link is down.",
    DownReason.CARD_RESET: "The card was reset.",
    DownReason.RETRAIN_COMMANDED: "Training was asked for, or brings a better mode or more lanes.",
    DownReason.TX_FAULT: "A laser of this port failed.",
    DownReason.EQ_NOT_CONVERGED: "A receiver's equaliser finds no good setting.",
    DownReason.EQ_PARTNER_NOT_READY: "The far end's equalisers do not settle.",
    DownReason.RECOVERY_TIMEOUT: "A link in trouble did not recover in time.",
    DownReason.NO_COMMON_MODE: "The ends have no FEC and rate in common.",
    DownReason.FLAPPING: "The link went down too often and is held down until it is quiet.",
    DownReason.FEC_LOCK_LOST: "Codewords in a row could not be corrected.",
    DownReason.TEST: "A test of the link runs here.",
    DownReason.PEER_TEST: "A test of the link runs at the far end.",
}
_LINK, _LANE, _OE, _CARD = Kind.LINK, Kind.LANE, Kind.OE, Kind.CARD
_LANES = (_LANE, _OE)  # of the engine, where most of its lanes have the same
_SEE_LANES = "look at its lanes: accelctl lane list {port}"

_KINDS = (
    ReasonKind(
        "CHASSIS_GONE", (Kind.HOST,), (TRAINING, CRITICAL),
        "The emulated hardware does not answer the daemon.",
        "look at the chassis: systemctl status accel-chassis; the daemon attaches by itself",
    ),
    ReasonKind(
        "STORE_NOT_DURABLE", (Kind.DAEMON,), (WARNING,),
        "What the daemon keeps is in memory only and ends with it.",
        "make room or rights in the state folder, then restart acceld",
    ),
    ReasonKind(
        "TELEMETRY_STALE", (Kind.WORKER,), (WARNING, CRITICAL),
        "A worker gave no sign of life; the figures of its cards are old.",
        "see whether the host is overloaded, or kill the worker: the chassis starts another",
    ),
    ReasonKind(
        "WORKER_RESTARTED", (Kind.WORKER,), (WARNING,),
        "A worker died lately and was started again.",
        "read why: accelctl event list --kind WORKER_DIED",
    ),
    ReasonKind(
        "CARD_LOST", (_CARD,), (CRITICAL,),
        "The card fell off the bus: its worker died.",
        "none: it is being started again; if it stays so, read accelctl event list {card}",
    ),
    ReasonKind(
        "CARD_STARTING", (_CARD,), (TRAINING, CRITICAL),
        "The card has not come up yet since the power came on.",
        "wait; if it stays so, reset it: accelctl card reset {card}",
    ),
    ReasonKind(
        "CARD_RESETTING", (_CARD,), (TRAINING, CRITICAL),
        "The card is being reset.",
        "wait; if it stays so, read accelctl event list {card}",
    ),
    ReasonKind(
        "HBM_ROWS_PENDING", (_CARD,), (WARNING,),
        "Rows of HBM had uncorrectable errors and are out of use until spare ones stand in.",
        "drain the card and reset it: accelctl card reset {card}",
    ),
    ReasonKind(
        "HBM_REMAP_FAILED", (_CARD,), (CRITICAL,),
        "A bank of HBM has no spare row left for a bad one.",
        "replace the card",
    ),
    ReasonKind(
        "HBM_ERRORS_RISING", (_CARD,), (WARNING,),
        "HBM corrects far more errors than a healthy one.",
        "watch it; replace the card when uncorrectable errors follow",
    ),
    ReasonKind(
        "HBM_THROTTLED", (_CARD,), (WARNING,),
        "HBM is so hot that it was slowed down.",
        "look at the cooling of the card",
    ),
    _level("CASE_TEMP_HIGH", _CARD, "The case temperature", "look at the cooling of the card"),
    _level("CASE_TEMP_LOW", _CARD, "The case temperature", "look at the inlet air"),
    _level("HBM_TEMP_HIGH", _CARD, "The HBM temperature", "look at the cooling of the card"),
    _level("HBM_TEMP_LOW", _CARD, "The HBM temperature", "look at the inlet air"),
    _level("SUPPLY_HIGH", _CARD, "The supply voltage of the optics", "replace the card"),
    _level("SUPPLY_LOW", _CARD, "The supply voltage of the optics", "replace the card"),
    ReasonKind(
        "NO_FIBRE", (_LINK,), (ABSENT,), "No fibre is plugged in.", "none: nothing is expected here"
    ),
    ReasonKind(
        "LINK_DOWN", (_LINK,), (TRAINING, CRITICAL),
        "The link does not carry data, and says no reason.",
        "train it again: accelctl link train {port}",
    ),
    ReasonKind(
        "DEGRADED_WIDTH", (_LINK,), (TRAINING, WARNING),
        "The link goes on with fewer lanes than full width.", _SEE_LANES,
    ),
    ReasonKind(
        "SLOWER_MODE", (_LINK,), (TRAINING, WARNING),
        "The link trained in a stronger FEC or a lower rate than its lanes' own.",
        "clean the connectors; in good light it comes back by itself within minutes, and at once by"
        " accelctl link train {port}",
    ),
    ReasonKind(
        "MISWIRED", (_LINK,), (WARNING,),
        "Another port answers than the one that the fibre was configured to.",
        "plug the fibre as configured, or correct the configuration",
    ),
    ReasonKind(
        "LINK_UNSTABLE", (_LINK,), (WARNING,),
        "Light or errors failed the link again and again.",
        "find what is loose: accelctl lane list {port}; accelctl event list {port}",
    ),
    ReasonKind(
        "FEC_UNCORRECTABLE", (_LINK,), (WARNING,),
        "The FEC met codewords that it could not correct; data was sent again.", _SEE_LANES,
    ),
    ReasonKind(
        "FEC_TAIL_GROWING", (_LINK,), (WARNING,),
        "Codewords need nearly all that the FEC can correct: frame loss is near.", _SEE_LANES,
    ),
    ReasonKind(
        "TX_FAULT", (_LANE, _OE, _LINK), (TRAINING, WARNING, CRITICAL),
        "A laser of this port failed.", NEXT_ACTION[DownReason.TX_FAULT],
    ),
    ReasonKind(
        "LOS", _LANES, (WARNING, CRITICAL), "No light arrives on the lane.",
        NEXT_ACTION[DownReason.PARTIAL_LIGHT],
    ),
    ReasonKind(
        "LOL", _LANES, (WARNING, CRITICAL), "Light arrives, and the receiver has no lock.",
        NEXT_ACTION[DownReason.CDR_NO_LOCK],
    ),
    ReasonKind(
        "LASER_WORN", _LANES, (WARNING, CRITICAL),
        "Wear has taken most of the way to the laser's bias limit.",
        "plan the replacement of the engine before its light falls",
    ),
    ReasonKind(
        "COOLER_AT_LIMIT", _LANES, (WARNING,),
        "The laser's cooler is near its limit.", "look at the cooling of the card",
    ),
    _level(
        "RX_POWER_HIGH", _LANE, "Light received", "put an attenuator in; too much light destroys"
    ),
    _level("RX_POWER_LOW", _LANE, "Light received", "clean the connector; look for a bend"),
    _level("TX_POWER_HIGH", _LANE, "Light launched", "replace the engine"),
    _level("TX_POWER_LOW", _LANE, "Light launched", "replace the engine"),
    _level(
        "TX_BIAS_HIGH", _LANE, "The laser's bias",
        "plan the replacement of the engine before its light falls",
    ),
    _level("TX_BIAS_LOW", _LANE, "The laser's bias", "replace the engine"),
    _level("LASER_TEMP_HIGH", _LANE, "The laser's temperature", "look at the cooling of the card"),
    _level("LASER_TEMP_LOW", _LANE, "The laser's temperature", "look at the inlet air"),
    _level("HEATER_HIGH", _LANE, "The ring heater's power", "look at the case temperature"),
    _level("HEATER_LOW", _LANE, "The ring heater's power", "look at the case temperature"),
    _level(
        "PRE_FEC_BER_HIGH", _LANE, "The bit error ratio before FEC",
        NEXT_ACTION[DownReason.BER_TOO_HIGH],
    ),
)  # fmt: skip
REASONS: dict[str, ReasonKind] = {
    **{
        reason.name: _down(reason)
        for reason in DownReason
        if reason not in (DownReason.NONE, DownReason.TX_FAULT)
    },
    **{kind.code: kind for kind in _KINDS},
}


def reason(code: str, state: HealthState, place: Place, text: str, next_action: str = "") -> Reason:
    """A reason of the table, about an object; `next_action` where it can be told better."""
    return Reason(code, state, place, text, next_action or action(code, place))


def action(code: str, place: Place) -> str:
    card, _, rest = place.address.partition("/")
    port = f"{card}/{rest.partition('/')[0]}" if rest else card
    kind = REASONS[code]
    return kind.next_action.format(object=place, card=card, port=port, worker=place)
