"""A card with faults: what is injected becomes causes in its optics, its cables and its HBM.

Nothing is set but causes, and all of them at once: each time, everything that is wrong now is
written over everything that was wrong before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec
import numpy as np

from accelhw.device.aim import loss_to_ber_db
from accelhw.device.ecc import ROW_BYTES, Ecc, RowState
from accelhw.device.port import Port
from accelhw.device.refusal import EngineRefusal
from accelhw.fault.catalogue import CATALOGUE
from accelhw.fault.injector import ActiveFault, Injector
from accelhw.fault.kinds import ROW_CAUSES
from accelhw.fault.request import (
    FaultRefused,
    FaultRequest,
    check_amounts,
    check_fibre,
    incoming_db,
)
from accelhw.fault.shapes import shaped
from accelhw.interface.messages import FaultInfo, InjectFault
from accelhw.model.event import Severity
from accelhw.model.profile import Profile
from accelhw.model.region import MemoryWindow
from accelhw.optics.causes import CARD_CAUSES, LANE_CAUSES


class Teller(Protocol):
    """Who hears of a fault's begin and end, and of what becomes of a card."""

    def fault_changed(self, info: FaultInfo) -> None: ...

    def report(
        self, kind: str, severity: Severity, subject: str, message: str, **detail: str | int | float
    ) -> None:
        """An event for the journal."""


class Silence:
    """Nobody listens."""

    def fault_changed(self, info: FaultInfo) -> None: ...

    def report(
        self, kind: str, severity: Severity, subject: str, message: str, **detail: str | int | float
    ) -> None: ...


class CardFaults:
    """The faults of one card, from the command to the causes. Times are monotonic."""

    def __init__(
        self,
        card: str,
        profile: Profile,
        ports: Sequence[Port],
        ecc: Ecc,
        windows: Callable[[], Sequence[MemoryWindow]],
        teller: Teller,
    ) -> None:
        self._card = card
        self._profile = profile
        self._ports = ports
        self._ecc = ecc
        self._windows = windows
        self._teller = teller
        self._injector = Injector()
        self._infos: dict[str, FaultInfo] = {}
        self._due_ns: int | None = None
        self.card_causes: dict[str, float] = {}

    def __contains__(self, fault_id: object) -> bool:
        return fault_id in self._infos

    # ---- commands ----

    def inject(self, command: InjectFault, now_ns: int) -> None:
        """Begin a fault. Raises EngineRefusal."""
        try:
            fault = request_of(command).fault(self._profile, command.begun_ns)
            if fault.oe is not None:
                plugged = [port.id for port in self._ports if port.fibre is not None]
                check_fibre(fault.kind, self._port(fault).id, plugged, self._profile)
            scales = self._solved(command, fault)
            for scale in scales:
                check_amounts(fault.effects, scale)
        except FaultRefused as refused:
            raise EngineRefusal(refused.code, refused.detail) from refused
        if fault.kind.crossing is not None and not self._port(fault).has_plug:
            raise EngineRefusal("BAD_STATE", f"no fibre is plugged into {command.subject}")
        info = info_of(command, fault, scales)
        self._begin(info)
        self._teller.fault_changed(info)
        self._report(info, "FAULT_INJECTED", "injected")
        self._strike_rows(fault, command.address)
        self._apply(now_ns)

    def resume(self, info: FaultInfo) -> None:
        """Go on with a fault of an earlier life. `advance` must follow."""
        self._begin(info)
        self._due_ns = 0

    def clear(self, fault_id: str, now_ns: int) -> None:
        """Its causes go; what it has done stays done. Raises EngineRefusal."""
        if self._injector.clear(fault_id) is None:
            raise EngineRefusal("UNKNOWN_FAULT", f"no fault {fault_id} on {self._card}")
        self._end(fault_id, "CLEARED")
        self._apply(now_ns)

    # ---- time ----

    def next_deadline_ns(self) -> int | None:
        return self._due_ns

    def advance(self, now_ns: int) -> bool:
        """Follow the shapes. True: causes may have changed."""
        if self._due_ns is None or now_ns < self._due_ns:
            return False
        for fault in self._injector.expire(now_ns):
            self._end(fault.id, "ENDED")
        self._apply(now_ns)
        return True

    # ---- inside ----

    def _begin(self, info: FaultInfo) -> None:
        self._infos[info.fault_id] = info
        self._injector.start(fault_of(info, self._profile))

    def _end(self, fault_id: str, state: str) -> None:
        info = msgspec.structs.replace(self._infos.pop(fault_id), state=state)
        self._teller.fault_changed(info)
        what = "cleared" if state == "CLEARED" else "its time is over"
        self._report(info, f"FAULT_{state}", what)

    def _report(self, info: FaultInfo, kind: str, what: str) -> None:
        severity = Severity.WARNING if info.state == "ACTIVE" else Severity.INFO
        detail = {"fault": info.fault_id, "fault_kind": info.kind}
        where = info.subject
        if info.lanes and len(info.lanes) < self._profile.lanes_per_oe:
            detail["lanes"] = " ".join(map(str, info.lanes))
            where += f" lane{'s' if len(info.lanes) > 1 else ''} {detail['lanes']}"
        text = f"{info.kind} on {where}: {what}"
        self._teller.report(kind, severity, info.subject, text, **detail)

    def _port(self, fault: ActiveFault) -> Port:
        assert fault.oe is not None
        return self._ports[fault.oe]

    def _apply(self, now_ns: int) -> None:
        """All that is wrong now, written over all that was."""
        lanes = self._profile.lanes_per_oe
        self.card_causes = self._injector.card_causes(now_ns)
        on_card = {name: self.card_causes.get(name, 0.0) for name in CARD_CAUSES}
        for oe, port in enumerate(self._ports):
            causes = self._injector.lane_causes(oe, lanes, now_ns)
            none = [0.0] * lanes
            on_lanes = {name: causes.get(name, none) for name in LANE_CAUSES}
            port.afflict(on_lanes, on_card, now_ns)
            port.cross(*self._injector.arrival(oe, lanes, now_ns), now_ns)
        self._due_ns = self._injector.next_change_ns(now_ns)

    def _solved(self, command: InjectFault, fault: ActiveFault) -> tuple[float, ...]:
        """The scale on each lane that gives the BER that was asked for. Raises FaultRefused."""
        if not command.target_ber:
            return ()
        losses = loss_to_ber_db(self._port(fault).optics, command.target_ber)
        scales = []
        for lane in fault.lanes:
            loss_db, why = losses[lane]
            if why:
                code = "BAD_STATE" if loss_db is None else "BAD_FAULT"
                raise FaultRefused(code, f"{command.subject}/lane{lane}: {why}")
            assert loss_db is not None
            scales.append(loss_db / incoming_db(fault.kind))
        return tuple(scales)

    def _strike_rows(self, fault: ActiveFault, address: int | None) -> None:
        """Rows of HBM go bad at once; that is no cause that could be taken back."""
        ecc = self._ecc
        dice = np.random.Generator(np.random.PCG64(np.random.SeedSequence(fault.seed)))
        wanted = {effect.cause: effect.amount for effect in fault.effects}
        for cause in ROW_CAUSES:
            count = round(wanted.get(cause, 0.0) * fault.scale)
            if not count:
                continue
            if address is not None:
                rows = [ecc.row_of(address)]
            else:
                rows = ecc.draw_rows(1, self._windows(), dice)
            if cause == "hbm_bad_bank_rows":
                rows = ecc.bank_rows(rows[0], count) if rows else []
            elif count > 1:
                rows += ecc.draw_rows(count - 1, self._windows(), dice)
            for row in rows:
                self.strike_row(row)

    def strike_row(self, row: int) -> None:
        """An uncorrectable error in a row of HBM."""
        state = self._ecc.strike(row)
        address = row * ROW_BYTES
        what = (
            "a spare row takes its place at the next reset of the card"
            if state is RowState.PENDING
            else "no spare row is left in its bank: replace the card"
        )
        self._teller.report(
            "HBM_ROW_BAD",
            Severity.ERROR,
            self._card,
            f"an uncorrectable error in the row of HBM at 0x{address:x}; {what}",
            address=f"0x{address:x}",
            remap=state.name,
        )


def request_of(command: InjectFault) -> FaultRequest:
    return FaultRequest(
        id=command.fault_id,
        kind=command.kind,
        subject=command.subject,
        lanes=command.lanes,
        shape=command.shape,
        duration_s=command.duration_s,
        ramp_s=command.ramp_s,
        scale=command.scale,
        target_ber=command.target_ber,
        seed=command.seed,
    )


def info_of(command: InjectFault, fault: ActiveFault, scales: tuple[float, ...]) -> FaultInfo:
    return FaultInfo(
        fault_id=fault.id,
        kind=fault.kind.id,
        subject=command.card if fault.oe is None else f"{command.card}/oe{fault.oe}",
        lanes=fault.lanes,
        shape=fault.shape.kind.value,
        begun_ns=fault.begun_ns,
        started_ns=command.started_ns,
        seed=fault.seed,
        duration_s=fault.duration_s or 0.0,
        ramp_s=command.ramp_s,
        scale=fault.scale,
        lane_scales=scales,
        target_ber=command.target_ber,
        address=command.address,
    )


def fault_of(info: FaultInfo, profile: Profile) -> ActiveFault:
    """The fault that an info tells of: the same as on the day it was injected."""
    kind = CATALOGUE[info.kind]
    _, _, oe = info.subject.partition("/oe")
    return ActiveFault(
        id=info.fault_id,
        kind=kind,
        effects=kind.effects_on(profile),
        oe=int(oe) if oe else None,
        lanes=info.lanes,
        shape=shaped(kind.shape, info.shape, info.ramp_s),
        begun_ns=info.begun_ns,
        duration_s=info.duration_s or None,
        scale=info.scale,
        lane_scales=info.lane_scales,
        seed=info.seed,
    )
