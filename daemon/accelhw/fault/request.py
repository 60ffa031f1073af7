"""From what somebody asks for to a fault that can be: every mistake is named before it starts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from zlib import crc32

from accelhw.fault.catalogue import CATALOGUE
from accelhw.fault.injector import ActiveFault
from accelhw.fault.kinds import Effect, FaultKind
from accelhw.fault.shapes import BadShape, Shape, shaped
from accelhw.model.ids import NAME, BadAddress, LaneId, PortId, nearest
from accelhw.model.profile import Profile, load_profile, profile_names
from accelhw.model.span import LONGEST, LONGEST_S

# Causes that take margin from the light that this port receives: their sum can be solved for.
INCOMING_DB = frozenset({"rx_path_loss_db", "mpi_penalty_db", "rx_penalty_db"})
# How far a cause may go; beyond, there is no such thing.
LIMITS: dict[str, tuple[float, float]] = {
    "rx_path_loss_db": (0.0, 100.0),
    "tx_path_loss_db": (0.0, 100.0),
    "els_loss_db": (0.0, 100.0),
    "mpi_penalty_db": (0.0, 20.0),
    "rx_penalty_db": (0.0, 40.0),
    "crosstalk_penalty_db": (0.0, 20.0),
    "rx_monitor_error_db": (-10.0, 10.0),
    "laser_wear_ratio": (0.0, 0.95),
    "tec_rise_c": (0.0, 80.0),
    "ring_error_k": (0.0, 30.0),
    "ambient_rise_c": (0.0, 80.0),
    "supply_error_v": (-0.5, 0.5),
    "hbm_sbe_per_s": (0.0, 1e6),
    "hbm_bad_rows": (0.0, 512.0),
    "hbm_bad_bank_rows": (0.0, 512.0),
    "hbm_heat_c": (0.0, 100.0),
}


class FaultRefused(Exception):
    """It cannot be. `code` is one of the border's COMPLETION_ERRORS."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail


@dataclass(frozen=True, slots=True)
class Place:
    """Where a fault is asked for: a card, a port, or a lane."""

    card: str
    oe: int | None = None
    lane: int | None = None

    @classmethod
    def parse(cls, text: str) -> Place:
        """`card0`, `card0/oe1` or `card0/oe1/lane3`. Raises FaultRefused."""
        try:
            if text.count("/") == 2:
                lane = LaneId.parse(text)
                return cls(lane.port.card, lane.port.oe, lane.index)
            if "/" in text:
                port = PortId.parse(text)
                return cls(port.card, port.oe)
        except BadAddress as error:
            raise FaultRefused("UNKNOWN_PORT", str(error)) from error
        if not NAME.fullmatch(text):
            raise FaultRefused(
                "UNKNOWN_CARD", f"{text!r} is not a card or a port; try card0 or card0/oe1"
            )
        return cls(text)


@dataclass(frozen=True, slots=True)
class FaultRequest:
    """Zero and empty stand for: as the kind of fault has it."""

    id: str
    kind: str
    subject: str
    lanes: tuple[int, ...] = ()
    shape: str = ""
    duration_s: float = 0.0
    ramp_s: float = 0.0
    scale: float = 1.0
    target_ber: float = 0.0
    seed: int | None = None  # None: drawn from its id

    def fault(self, profile: Profile, begun_ns: int) -> ActiveFault:
        """The fault, on a card of this profile. Raises FaultRefused."""
        kind = kind_of(self.kind)
        check_parts(kind, profile)
        place = Place.parse(self.subject)
        lanes = self._lanes(kind, place, profile)
        shape = self._shape(kind)
        _check_span("duration", self.duration_s)
        self._check_scale(kind.effects_on(profile))
        self._check_target(kind)
        return ActiveFault(
            id=self.id,
            kind=kind,
            effects=kind.effects_on(profile),
            oe=None if kind.is_on_card else place.oe,
            lanes=lanes,
            shape=shape,
            begun_ns=begun_ns,
            duration_s=self.duration_s or None,
            scale=self.scale,
            seed=crc32(self.id.encode()) if self.seed is None else self.seed & (1 << 64) - 1,
        )

    def _lanes(self, kind: FaultKind, place: Place, profile: Profile) -> tuple[int, ...]:
        named = self.lanes if place.lane is None else (*self.lanes, place.lane)
        if kind.is_on_card:
            if place.oe is not None or named:
                raise FaultRefused(
                    "BAD_FAULT",
                    f"{kind.id} acts on a whole card; leave the port out: {place.card}",
                )
            return ()
        if place.oe is None:
            raise FaultRefused(
                "BAD_FAULT", f"{kind.id} acts on a port; name one, as {place.card}/oe0"
            )
        if not 0 <= place.oe < profile.oes:
            raise FaultRefused(
                "UNKNOWN_PORT",
                f"{place.card} has no oe{place.oe}; it has {_range('oe', profile.oes)}",
            )
        for lane in named:
            if not 0 <= lane < profile.lanes_per_oe:
                raise FaultRefused(
                    "UNKNOWN_LANE",
                    f"{place.card}/oe{place.oe} has no lane{lane};"
                    f" it has {_range('lane', profile.lanes_per_oe)}",
                )
        return kind.lanes(named, profile)

    def _shape(self, kind: FaultKind) -> Shape:
        _check_span("ramp", self.ramp_s)
        try:
            return shaped(kind.shape, self.shape, self.ramp_s)
        except BadShape as error:
            raise FaultRefused("BAD_FAULT", str(error)) from error

    def _check_scale(self, effects: Sequence[Effect]) -> None:
        if not (math.isfinite(self.scale) and self.scale > 0.0):
            raise FaultRefused(
                "BAD_FAULT",
                f"a scale of {self.scale:g}: loss cannot be negative; use a factor above 0",
            )
        check_amounts(effects, self.scale)

    def _check_target(self, kind: FaultKind) -> None:
        if self.target_ber == 0.0:
            return
        if not 0.0 < self.target_ber < 0.5:
            raise FaultRefused(
                "BAD_FAULT", f"a BER of {self.target_ber:g}; use one between 0 and 0.5, as 1e-5"
            )
        if self.scale != 1.0:
            raise FaultRefused("BAD_FAULT", "a target BER sets the scale: give one of them")
        if not incoming_db(kind):
            solvable = ", ".join(sorted(k.id for k in CATALOGUE.values() if incoming_db(k)))
            raise FaultRefused(
                "BAD_FAULT",
                f"{kind.id} takes no light from what this port receives, so no BER can be aimed"
                f" at; these do: {solvable}",
            )


def kind_of(name: str) -> FaultKind:
    """Raises FaultRefused."""
    kind = CATALOGUE.get(name)
    if kind is None:
        near = nearest(name, CATALOGUE)
        remedy = f"did you mean {near}?" if near else "accelctl fault catalogue shows them"
        raise FaultRefused("UNKNOWN_FAULT", f"there is no fault {name!r}; {remedy}")
    return kind


def check_fibre(kind: FaultKind, port: PortId, plugged: Sequence[PortId], profile: Profile) -> None:
    """Raises FaultRefused where a fault of the fibre is asked for and none is plugged in. `plugged`
    are the ports of the card that have one."""
    if not kind.needs_fibre or port in plugged:
        return
    near = (
        f"plugged are {', '.join(map(str, plugged))}" if plugged else f"{port.card} has none at all"
    )
    others = [other.id for other in CATALOGUE.values() if _is_of_engine(other, profile)]
    raise FaultRefused(
        "BAD_STATE",
        f"{kind.id} befalls a fibre, and none is plugged into {port}; {near};"
        f" faults of the engine itself can be there: {', '.join(others)}",
    )


def _is_of_engine(kind: FaultKind, profile: Profile) -> bool:
    has_part = kind.needs is None or kind.needs.is_in(profile)
    return has_part and not kind.is_on_card and not kind.needs_fibre


def check_address(kind: FaultKind, address: int | None) -> None:
    """Raises FaultRefused where an address in HBM is given to what does not befall a row of it."""
    if address is None or kind.strikes_rows:
        return
    others = ", ".join(other.id for other in CATALOGUE.values() if other.strikes_rows)
    raise FaultRefused(
        "BAD_FAULT", f"{kind.id} strikes no row of HBM, so it has no address; these do: {others}"
    )


def check_parts(kind: FaultKind, profile: Profile) -> None:
    """Raises FaultRefused when such cards have nothing that could fail so."""
    if kind.needs is None or kind.needs.is_in(profile):
        return
    others = [name for name in profile_names() if kind.needs.is_in(load_profile(name))]
    raise FaultRefused(
        "BAD_FAULT",
        f"{kind.id} needs {kind.needs}, which cards of profile {profile.name} do not have;"
        f" those of {', '.join(others)} do",
    )


def incoming_db(kind: FaultKind) -> float:
    """Margin that the fault takes from the light this port receives, at a scale of 1."""
    return sum(effect.amount for effect in kind.effects if effect.cause in INCOMING_DB)


def check_amounts(effects: Sequence[Effect], scale: float) -> None:
    """Raises FaultRefused when a cause would go where there is no such thing."""
    for effect in effects:
        low, high = LIMITS.get(effect.cause, (-math.inf, math.inf))
        amount = effect.amount * scale
        if not low <= amount <= high:
            raise FaultRefused(
                "BAD_FAULT",
                f"{effect.cause} would be {amount:.3g}; it goes from {low:g} to {high:g},"
                f" which a scale of {(high if amount > high else low) / effect.amount:.3g} reaches",
            )


def _check_span(what: str, seconds: float) -> None:
    if not 0.0 <= seconds <= LONGEST_S:
        raise FaultRefused(
            "BAD_FAULT", f"a {what} of {seconds:g} s; use a time above 0 and at most {LONGEST}"
        )


def _range(what: str, count: int) -> str:
    return f"{what}0 only" if count == 1 else f"{what}0 to {what}{count - 1}"
