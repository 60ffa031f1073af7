"""Every kind of event that there is: what it means and what to do. From this table come the
journal's catalogue (systemd/accel.catalog) and docs/reference/events.md."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID, uuid5

from acceld.records import StoredEvent
from accelhw.model.event import EVENT_KINDS

# A kind's MESSAGE_ID in the journal follows from its name below this one, and never changes.
NAMESPACE = UUID("6f1b7a52-0d5e-4c39-9a41-7f2f0c4de9b8")

OWN_KINDS: dict[str, str] = {
    "DAEMON_STARTED": "The daemon started.",
    "DAEMON_STOPPED": "The daemon stopped, as it was asked to.",
    "CHASSIS_ATTACHED": "The daemon found the emulated hardware and drives it.",
    "CHASSIS_GONE": "The emulated hardware does not answer any more.",
    "CHASSIS_DIED": "The daemon's own chassis ended; it is powered on again.",
    "CHASSIS_POWER_CYCLED": "The emulated hardware was off and on again; HBM content is gone.",
    "REGION_LOST": "A region's content did not outlive a power-off.",
    "STORE_DEGRADED": "The store left the disk; what it keeps ends with the daemon.",
    "HEALTH_CHANGED": "The health of the host, a card or a link changed.",
}
# One that is repeated says no more than the first did: repeats are one event with a count.
COLLAPSING = frozenset(
    {
        "LINK_TRAINING", "LINK_UP", "LINK_DOWN", "LINK_RECOVERED", "LINK_WIDTH_CHANGED",
        "LINK_MODE_CHANGED", "LINK_DAMPED", "LINK_FAILED", "HEALTH_CHANGED",
    }
)  # fmt: skip
# Where the event itself does not say better. {object} is what it happened to.
ACTIONS: dict[str, str] = {
    "WORKER_DIED": "none: it is started again; if it returns, look into the chassis's log",
    "FELL_OFF_BUS": "none: it is started again; accelctl health show {object}",
    "LINK_DOWN": "see why: accelctl health show {object}",
    "LINK_DAMPED": "find what is loose: accelctl lane list {object}",
    "LINK_FAILED": "see why: accelctl health show {object}",
    "LINK_WIDTH_CHANGED": "look at its lanes: accelctl lane list {object}",
    "LINK_MODE_CHANGED": "clean the connectors; in good light it comes back by itself",
    "LINK_RECOVERED": "none; if it returns, clean the connector of the lane",
    "TRANSFER_WAITING": "see which link is missing: accelctl link list",
    "TRANSFER_FAILED": "see how far it came: accelctl transfer list",
    "HBM_ROW_BAD": "drain the card and reset it: accelctl card reset {object}",
    "EVENTS_LOST": "read states afresh: accelctl health show",
    "CHASSIS_GONE": "look at the chassis: systemctl status accel-chassis",
    "CHASSIS_DIED": "read its last lines in the log",
    "CHASSIS_POWER_CYCLED": "write anew what HBM held",
    "REGION_LOST": "write its content anew",
    "STORE_DEGRADED": "make room or rights in the state folder, then restart acceld",
    "FAULT_INJECTED": "take it away: accelctl fault clear",
    "HEALTH_CHANGED": "see all of it: accelctl health show",
}


@dataclass(frozen=True, slots=True)
class EventKind:
    kind: str
    meaning: str
    action: str  # empty: nothing is to be done
    collapses: bool

    @property
    def message_id(self) -> str:
        """32 hex digits, as the journal has it."""
        return uuid5(NAMESPACE, self.kind).hex


KINDS: dict[str, EventKind] = {
    kind: EventKind(kind, meaning, ACTIONS.get(kind, ""), kind in COLLAPSING)
    for kind, meaning in {**EVENT_KINDS, **OWN_KINDS}.items()
}


def action_of(event: StoredEvent) -> str:
    """What to do about an event; empty where nothing is."""
    told = event.detail.get("next_action")
    if isinstance(told, str) and told:
        return told
    kind = KINDS.get(event.kind)
    return kind.action.format(object=event.subject) if kind is not None else ""
