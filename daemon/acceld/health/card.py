"""Rules for a card: whether it answers, its HBM, its temperatures and supply."""

from __future__ import annotations

from collections.abc import Iterator

from acceld.health import engine, lane, link
from acceld.health.history import RESET_NS, START_NS, S
from acceld.health.reasons import CRITICAL, TRAINING, WARNING, reason
from acceld.health.report import Capability, Health, HealthState, Kind, Place, Reason, whole
from acceld.health.scene import LOST, RECENT_TEXT, Scene
from acceld.host.snapshot import CardSnapshot
from accelhw.model.flag import CARD_FLAGS, CARD_QUANTITIES, LEVELS

CORRECTED_MANY = 100  # errors of HBM lately; a healthy card has a few a day
FIGURES = {"case_temp": ("degC", ".1f"), "hbm_temp": ("degC", ".1f"), "supply": ("V", ".3f")}
NAMES = {"case_temp": "the case has", "hbm_temp": "HBM has", "supply": "the optics get"}
COLUMN = {stem: column for column, stem in CARD_QUANTITIES.items()}
TAKES_NS = {"UNKNOWN": START_NS, "RESETTING": RESET_NS}
HOT = "CASE_TEMP_HIGH"


def place(card: CardSnapshot) -> Place:
    return Place(Kind.CARD, card.name)


def health(card: CardSnapshot, scene: Scene) -> Health:
    at = place(card)
    away = [*_away(card, scene)]
    if away:
        return _hidden(card, away[0].state, at, tuple(away))
    number = card.facts.info.worker
    if (stale := scene.stale(number)) is not None:
        return _hidden(card, stale, Place(Kind.WORKER, f"worker{number}"), ())
    found = [*_hbm(card, scene), *_levels(card)]
    heat_at = at if any(one.code == HOT for one in found) else None
    parts = tuple(engine.health(port, scene, heat_at) for port in card.ports)
    return whole(at, tuple(found), parts, None, capability(card))


def capability(card: CardSnapshot) -> Capability:
    profile, ports = card.facts.profile, len(card.ports)
    return Capability(
        sum(port.info.lanes for port in card.ports),
        ports * profile.data_lanes,
        ports * profile.spare_lanes,
        tuple(str(mode) for mode in profile.lane.modes),
        ports * profile.port_gbit_per_s(),
        any(port.info.fibre is not None for port in card.ports),
    )


def _hidden(
    card: CardSnapshot, state: HealthState, cause: Place, reasons: tuple[Reason, ...]
) -> Health:
    """Of a card whose rows tell nothing now: all inside it is as the card, for one cause."""
    parts = []
    for port in card.ports:
        is_expected = port.info.fibre is not None and bool(port.row["admin_up"])
        its = state if is_expected else HealthState.ABSENT
        its_link = Health(link.place(port), its, (), cause, (), link.capability(port))
        lanes = (Health(lane.place(port, n), its, (), cause) for n in range(port.info.lanes))
        inside = (its_link, *lanes)
        parts.append(Health(engine.place(port), state, (), cause, inside, link.capability(port)))
    own_cause = None if cause == place(card) else cause
    return Health(place(card), state, reasons, own_cause, tuple(parts), capability(card))


def _away(card: CardSnapshot, scene: Scene) -> Iterator[Reason]:
    at = place(card)
    if card.state == LOST:
        worker = card.facts.info.worker
        yield reason("CARD_LOST", CRITICAL, at, f"worker {worker}, which carries it, died")
    elif card.state in TAKES_NS:
        code = "CARD_RESETTING" if card.state == "RESETTING" else "CARD_STARTING"
        for_ns = scene.now.mono_ns - scene.history.cards[card.name].since_ns
        state = TRAINING if for_ns < TAKES_NS[card.state] else CRITICAL
        yield reason(code, state, at, f"{card.state} for {for_ns / S:.0f} s")


def _hbm(card: CardSnapshot, scene: Scene) -> Iterator[Reason]:
    at, row = place(card), card.row
    if row["remap_failed"]:
        bad = int(row["ecc_dbe"])
        yield reason(
            "HBM_REMAP_FAILED", CRITICAL, at, f"no spare row left; {bad} uncorrectable errors"
        )
    if pending := int(row["rows_pending"]):
        rows = "1 row of HBM waits" if pending == 1 else f"{pending} rows of HBM wait"
        text = f"{rows} for a reset to be remapped"
        yield reason("HBM_ROWS_PENDING", WARNING, at, text)
    before = scene.history.before
    risen = int(row["ecc_sbe"]) - before.corrected.get(card.name, 0) if before else 0
    if risen >= CORRECTED_MANY:
        text = f"HBM corrected {risen} errors in {RECENT_TEXT}"
        yield reason("HBM_ERRORS_RISING", WARNING, at, text)


def _levels(card: CardSnapshot) -> Iterator[Reason]:
    """Figures beyond their thresholds; an alarm goes before its warning."""
    found: dict[str, Reason] = {}
    for name, active in zip(CARD_FLAGS, card.flags["active"].tolist(), strict=True):
        if not active:
            continue
        level = next(level for level in LEVELS if name.endswith(level))
        stem = name.removesuffix(f"_{level}")
        side, degree = level.split("_")
        column, (unit, form) = COLUMN[stem], FIGURES[stem]
        threshold = card.facts.profile.thresholds[column][LEVELS.index(level)]
        than = "above" if side == "high" else "below"
        text = (
            f"{NAMES[stem]} {float(card.row[column]):{form}} {unit}, {than} the {degree} level of"
            f" {threshold:{form}} {unit}"
        )
        state = CRITICAL if degree == "alarm" else WARNING
        one = reason(f"{stem}_{side}".upper(), state, place(card), text)
        if one.code not in found or state is CRITICAL:
            found[one.code] = one
    if card.row["hbm_throttled"] and "HBM_TEMP_HIGH" not in found:  # Else that says it already.
        text = f"HBM is slowed down at {card.row['hbm_temp_c']:.1f} degC"
        yield reason("HBM_THROTTLED", WARNING, place(card), text)
    yield from found.values()
