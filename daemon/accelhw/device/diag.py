"""A test of a link as a machine on a port: it takes the link down if it must, measures, and puts
everything back, however it ends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from accelhw.device.engine import generator
from accelhw.device.measure import (
    ErrorCount,
    EyeScan,
    FecCount,
    MarginScan,
    Measurement,
    Results,
    Timed,
)
from accelhw.device.port import Port
from accelhw.device.refusal import EngineRefusal
from accelhw.interface.messages import DiagInfo, StartDiag
from accelhw.model.diag import (
    CHECKERS,
    DURATION_S_MAX,
    PATTERN_NAMES,
    PATTERNED,
    TARGET_BER,
    DiagKind,
    DiagState,
    Verdict,
)
from accelhw.optics import prbs

SETTLE_NS = 50_000_000  # between the link's going down and the first bit that counts
LOOK_NS = 20_000_000
LIGHT_PATIENCE_NS = 2_500_000_000  # for light to come, and the right one

LOOPS = (DiagKind.LOOPBACK_NEAR, DiagKind.LOOPBACK_FAR)


class LinkTest:
    """Call `on_deadline` at `next_deadline_ns` until `ended`; `info` tells of it at any time."""

    def __init__(
        self,
        port: Port,
        command: StartDiag,
        *,
        seed: int,
        wall_ns: Callable[[], int],
        read_row: Callable[[], np.void],
    ) -> None:
        """Raises EngineRefusal if the port cannot be tested like this."""
        self.port = port
        self.kind, self.command = _checked(port, command)
        self.state = DiagState.RUNNING
        self.error = self.error_detail = ""
        self._seed = seed
        self._wall_ns = wall_ns
        self._read_row = read_row
        self._measurement: Measurement | None = None
        self._results = Results()
        self._text = ""
        self._started_ns = wall_ns()
        self._ended_ns = 0
        self._begun_ns = 0
        self._done_ratio = 0.0
        self._deadline_ns: int | None = None

    @property
    def id(self) -> str:
        return self.command.diag_id

    @property
    def ended(self) -> bool:
        return self.state.ended

    def next_deadline_ns(self) -> int | None:
        return self._deadline_ns

    # ---- its life ----

    def start(self, now_ns: int) -> None:
        port = self.port
        self._begun_ns = now_ns
        if self.kind.takes_link_down:
            port.begin_test(
                now_ns,
                reflecting=self.kind is DiagKind.REFLECT,
                looped=self.kind is DiagKind.LOOPBACK_NEAR,
            )
            self._text = "waits for light"
            self._keep_light(now_ns)
            self._deadline_ns = now_ns + SETTLE_NS
        else:
            self._begin(now_ns)

    def on_deadline(self, now_ns: int) -> None:
        if self._deadline_ns is None or now_ns < self._deadline_ns:
            return
        if self._measurement is None:
            self._prepare(now_ns)
            return
        self._deadline_ns = self._measurement.step(now_ns)
        self._done_ratio = self._measurement.done_ratio(now_ns)
        if self._deadline_ns is None:
            self._end(DiagState.DONE, now_ns)

    def cancel(self, now_ns: int) -> None:
        self._end(DiagState.CANCELLED, now_ns)

    def fail(self, error: str, detail: str, now_ns: int) -> None:
        if not self.ended:
            self.error, self.error_detail = error, detail
            self._end(DiagState.FAILED, now_ns)

    def _prepare(self, now_ns: int) -> None:
        """Wait until there is light to measure. Without any, measure all the same: darkness is a
        result, too; but a loop that does not close is none."""
        self._keep_light(now_ns)
        heard = self.port.heard
        ready = bool(self.port.optics.locked.any())
        closed = heard is not None and heard.sender == self.port.optics.me
        if self.kind in LOOPS:
            ready = ready and closed
        if not ready and now_ns - self._begun_ns < LIGHT_PATIENCE_NS:
            self._deadline_ns = now_ns + LOOK_NS
            return
        if self.kind is DiagKind.LOOPBACK_FAR and not closed:
            text = "the own light does not return; the far port must reflect it"
            self.fail("NO_LOOP", text, now_ns)
            return
        self._begin(now_ns)

    def _begin(self, now_ns: int) -> None:
        measurement = self._measurement = self._new_measurement()
        self._text = ""
        self._deadline_ns = measurement.begin(now_ns)

    def _new_measurement(self) -> Measurement:
        match self.kind:
            case DiagKind.MARGIN:
                return MarginScan(self.port, self.command, self._dice)
            case DiagKind.EYE:
                return EyeScan(self.port, self.command)
            case DiagKind.FEC:
                return FecCount(self.port, self.command, self._read_row)
            case DiagKind.REFLECT:
                return Timed(self.port, self.command)
            case _:
                return ErrorCount(self.port, self.command, self._dice, self._keep_light)

    def _dice(self, lane: int) -> np.random.Generator:
        return generator(self._seed, self.port.optics.me, lane, f"diag {self.id}")

    def _end(self, state: DiagState, now_ns: int) -> None:
        if self.ended:
            return
        if self._measurement is not None:
            self._results = self._measurement.results()
            self._measurement.undo(now_ns)
            self._measurement = None
        self.state = state
        self._deadline_ns = None
        self._ended_ns = self._wall_ns()
        if state is DiagState.DONE:
            self._done_ratio = 1.0
        if self.kind.takes_link_down:
            self.port.end_test(now_ns)

    def _keep_light(self, now_ns: int) -> None:
        """The near loop: the receiver hears this port's own transmitter, before the connector."""
        if self.kind is not DiagKind.LOOPBACK_NEAR:
            return
        port, optics = self.port, self.port.optics
        own = optics.carrier(now_ns, 0, port.trainer.state, port.trainer.reason)
        lights = tuple(
            replace(light, power_cdbm=round(100.0 * float(optics.tx_dbm[i])))
            for i, light in enumerate(own.lanes)
        )
        port.hear_light(replace(own, reason_lane=None, lanes=lights), now_ns)

    # ---- showing itself ----

    def info(self) -> DiagInfo:
        results = self._measurement.results() if self._measurement else self._results
        if not self.ended:  # Pictures go out once.
            results = Results(
                results.verdict, results.text, results.errors, results.margins, (), results.fec
            )
        command = self.command
        return DiagInfo(
            diag_id=self.id,
            kind=int(self.kind),
            state=int(self.state),
            card=command.card,
            oe=command.oe,
            lanes=command.lanes,
            pattern=command.pattern,
            checker=command.checker if command.pattern and self.kind in PATTERNED else "",
            duration_s=command.duration_s,
            target_ber=command.target_ber,
            confidence=command.confidence,
            started_ns=self._started_ns,
            ended_ns=self._ended_ns,
            done_ratio=self._done_ratio,
            text=self._text or results.text,
            verdict=int(results.verdict) if self.ended else int(Verdict.NONE),
            error=self.error,
            error_detail=self.error_detail,
            errors=results.errors,
            margins=results.margins,
            eyes=results.eyes,
            fec=results.fec,
        )


def _checked(port: Port, command: StartDiag) -> tuple[DiagKind, StartDiag]:
    """The command with its blanks filled in. Raises EngineRefusal."""
    try:
        kind = DiagKind(command.kind)
    except ValueError:
        raise EngineRefusal("BAD_STATE", f"{command.kind} is no kind of test") from None
    lane_type, count = port.optics.profile.lane, port.optics.lanes
    lanes = tuple(sorted(set(command.lanes))) or tuple(range(count))
    if lanes[0] < 0 or lanes[-1] >= count:
        raise EngineRefusal(
            "BAD_TEST", f"{port.id} has lane0 to lane{count - 1}, not lane{lanes[-1]}"
        )
    if port.fibre is None and kind not in (DiagKind.LOOPBACK_NEAR, DiagKind.EYE):
        raise EngineRefusal("BAD_STATE", f"no fibre is plugged into {port.id}")
    if kind.takes_link_down and not port.admin_up:
        raise EngineRefusal("BAD_STATE", f"{port.id} is switched off: no light to test with")
    if kind is DiagKind.FEC and lane_type.fec == "none":
        raise EngineRefusal("BAD_STATE", f"{port.id} has no FEC; try a ber test")
    if not 0.0 < command.duration_s <= DURATION_S_MAX:
        raise EngineRefusal("BAD_TEST", f"{command.duration_s} s is no time for a test")
    if not 0.0 <= command.target_ber < 0.5 or not 0.0 < command.confidence < 1.0:
        raise EngineRefusal("BAD_TEST", "BER is between 0 and 0.5, confidence 0 and 1")
    return kind, StartDiag(
        id=command.id,
        diag_id=command.diag_id,
        kind=int(kind),
        card=command.card,
        oe=command.oe,
        lanes=lanes,
        pattern=_pattern(kind, command, lane_type.modulation),
        checker=command.checker,
        duration_s=command.duration_s,
        target_ber=command.target_ber or TARGET_BER[lane_type.fec],
        confidence=command.confidence,
        stop_early=command.stop_early,
        force=command.force,
    )


def _pattern(kind: DiagKind, command: StartDiag, modulation: str) -> str:
    """The pattern by its full name; empty for a test without one. Raises EngineRefusal."""
    if kind not in PATTERNED:
        return ""
    name = command.pattern or prbs.usual_pattern(modulation)
    if name not in PATTERN_NAMES:
        raise EngineRefusal("BAD_TEST", f"{name!r} is no pattern; try {PATTERN_NAMES[-3]}")
    if command.checker not in CHECKERS:
        raise EngineRefusal("BAD_TEST", f"{command.checker!r} is no checker; try seeded")
    if modulation == "pam4":
        return f"{name}q" if f"{name}q" in PATTERN_NAMES else name
    if prbs.PATTERNS[name].pam4:
        raise EngineRefusal(
            "BAD_TEST", f"{name} is for PAM4 lanes; these are NRZ, try {name.rstrip('q')}"
        )
    return name
