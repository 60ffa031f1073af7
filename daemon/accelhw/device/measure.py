"""What a test of a link measures, step by step: errors, margin, eyes, codewords.

Each has `begin`, then `step` at the deadline that it asked for, until there is none.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
import numpy as np

from accelhw.device.linesample import LineSample
from accelhw.interface.messages import (
    EyeOpening,
    FecCounts,
    LaneErrors,
    LaneEye,
    LaneMargin,
    MarginPoint,
    StartDiag,
)
from accelhw.model.diag import Verdict
from accelhw.optics import ber, confidence, eye, waterfall

if TYPE_CHECKING:
    from accelhw.device.port import Port

STEP_NS = 200_000_000
SAMPLE_BITS = 32_768  # of each lane, checked one by one at each step
EYE_GAP_NS = 2_000_000  # between two lanes' eyes, so that the port's work goes on
ATTENUATION_STEP_DB = 0.5
FINE_STEP_DB = 0.25  # once errors show
ATTENUATION_DB_MAX = 20.0
LOST_BER = 1e-2  # nothing is learnt beyond
CURVE_POINTS = 49


class Results(msgspec.Struct, frozen=True):
    """What there is so far, in the fields of a DiagInfo."""

    verdict: Verdict = Verdict.NONE
    text: str = ""
    errors: tuple[LaneErrors, ...] = ()
    margins: tuple[LaneMargin, ...] = ()
    eyes: tuple[LaneEye, ...] = ()
    fec: FecCounts | None = None


class Measurement(Protocol):
    def begin(self, now_ns: int) -> int:
        """Returns when to take the first step."""

    def step(self, now_ns: int) -> int | None:
        """Returns when to take the next; None: done."""

    def undo(self, now_ns: int) -> None:
        """Leave the port as it was, wherever this stands."""

    def done_ratio(self, now_ns: int) -> float: ...

    def results(self) -> Results: ...


def worst(verdicts: list[Verdict]) -> Verdict:
    """One lane that fails is a link that fails; one that is open leaves it open."""
    for verdict in (Verdict.FAILED, Verdict.OPEN, Verdict.PASSED):
        if verdict in verdicts:
            return verdict
    return Verdict.NONE


class Timed:
    """Runs for the test's duration; nothing to measure, nothing to undo."""

    def __init__(self, port: Port, command: StartDiag) -> None:
        self.port = port
        self.command = command
        self.began_ns = 0
        self.end_ns = 0

    def begin(self, now_ns: int) -> int:
        self.began_ns = now_ns
        self.end_ns = now_ns + round(self.command.duration_s * 1e9)
        return min(now_ns + STEP_NS, self.end_ns)

    def step(self, now_ns: int) -> int | None:
        return min(now_ns + STEP_NS, self.end_ns) if now_ns < self.end_ns else None

    def undo(self, now_ns: int) -> None: ...

    def done_ratio(self, now_ns: int) -> float:
        return min((now_ns - self.began_ns) / max(self.end_ns - self.began_ns, 1), 1.0)

    def results(self) -> Results:
        return Results()


class ErrorCount(Timed):
    """Bits and bit errors of the lanes' receivers, which move at the emulated line rate; with a
    pattern on the line, windows of it are also made, spoilt and checked bit by bit."""

    def __init__(
        self,
        port: Port,
        command: StartDiag,
        dice: Callable[[int], np.random.Generator],
        keep_light: Callable[[int], None],
    ) -> None:
        super().__init__(port, command)
        self._keep_light = keep_light
        modulation = port.optics.profile.lane.modulation
        self._samples = {
            lane: LineSample(lane, command.pattern, modulation, command.checker, dice(lane))
            for lane in (command.lanes if command.pattern else ())
        }
        self._first: tuple[Any, Any] = (None, None)
        self._locked = dict.fromkeys(command.lanes, True)

    def begin(self, now_ns: int) -> int:
        self.port.optics.advance(now_ns)
        self._first = self._counters()
        return super().begin(now_ns)

    def _counters(self) -> tuple[Any, Any]:
        optics = self.port.optics
        return np.array(optics.rx_bits, float), np.array(optics.errors, np.uint64)

    def step(self, now_ns: int) -> int | None:
        self._keep_light(now_ns)
        optics = self.port.optics
        optics.advance(now_ns)
        for lane in self.command.lanes:
            self._locked[lane] = self._locked[lane] and bool(optics.locked[lane])
        for lane, sample in self._samples.items():
            if optics.locked[lane]:
                swapped = (light := self.port.light_of(lane)) is not None and light.inverted
                sample.take(SAMPLE_BITS, float(optics.ber[lane]), swapped)
            else:
                sample.locked = False
        if self.command.stop_early and self.results().verdict in (Verdict.PASSED, Verdict.FAILED):
            return None
        return super().step(now_ns)

    def _lane(self, lane: int) -> LaneErrors:
        command = self.command
        bits, errors = self._counters()
        count = int(errors[lane] - self._first[1][lane])
        checked = float(bits[lane] - self._first[0][lane])
        sample = self._samples.get(lane)
        locked = self._locked[lane] and (sample is None or sample.locked)
        light = self.port.light_of(lane)
        return LaneErrors(
            lane=lane,
            bits=checked,
            errors=count,
            sampled_bits=sample.bits if sample else 0,
            sampled_errors=sample.errors if sample else 0,
            ber_low=confidence.lower_bound(count, checked, command.confidence),
            ber_high=confidence.upper_bound(count, checked, command.confidence),
            verdict=confidence.judge(count, checked, command.target_ber, command.confidence)
            if locked
            else Verdict.FAILED,
            locked=locked,
            inverted=sample.inverted if sample else light is not None and light.inverted,
            far_lane=None if light is None or not light.on else light.tx_lane,
            lock_losses=sample.losses if sample else 0,
        )

    def results(self) -> Results:
        lanes = tuple(self._lane(lane) for lane in self.command.lanes)
        verdict = worst([Verdict(lane.verdict) for lane in lanes])
        errors, bits = sum(lane.errors for lane in lanes), sum(lane.bits for lane in lanes)
        plural = "" if errors == 1 else "s"
        return Results(verdict, f"{errors} error{plural} in {bits:.3g} bits", errors=lanes)


class MarginScan:
    """Attenuates the received light step by step until no lane holds its clock, counts errors at
    each step, and extrapolates to where they would reach the wanted BER."""

    def __init__(
        self, port: Port, command: StartDiag, dice: Callable[[int], np.random.Generator]
    ) -> None:
        self.port = port
        self.command = command
        self._dice = {lane: dice(lane) for lane in command.lanes}
        self._points: dict[int, list[waterfall.Point]] = {lane: [] for lane in command.lanes}
        self._ends: dict[int, float] = {}
        self._attenuation_db = 0.0

    def begin(self, now_ns: int) -> int:
        return now_ns + self._dwell_ns

    @property
    def _dwell_ns(self) -> int:
        return round(self.command.duration_s * 1e9)

    def _attenuate(self, attenuation_db: float, now_ns: int) -> None:
        optics = self.port.optics
        optics.path_extra_db[list(self.command.lanes)] += attenuation_db - self._attenuation_db
        self._attenuation_db = attenuation_db
        optics.light_moved(now_ns)

    def step(self, now_ns: int) -> int | None:
        optics = self.port.optics
        bits = optics.profile.lane.line_rate_gbit_per_s * self._dwell_ns
        finer = False
        for lane, points in self._points.items():
            if lane in self._ends:
                continue
            if not optics.locked[lane]:
                self._ends[lane] = self._attenuation_db
                continue
            lane_ber = float(optics.ber[lane])
            errors = int(self._dice[lane].poisson(bits * lane_ber))
            points.append(waterfall.Point(self._attenuation_db, bits, errors))
            finer |= errors > 0
            if lane_ber > LOST_BER:
                self._ends[lane] = self._attenuation_db
        if len(self._ends) == len(self._points) or self._attenuation_db >= ATTENUATION_DB_MAX:
            return None
        step_db = FINE_STEP_DB if finer else ATTENUATION_STEP_DB
        self._attenuate(self._attenuation_db + step_db, now_ns)
        return now_ns + self._dwell_ns

    def undo(self, now_ns: int) -> None:
        self._attenuate(0.0, now_ns)

    def done_ratio(self, now_ns: int) -> float:
        margins = [m for m in self.port.optics.margin_db.tolist() if math.isfinite(m)]
        left_db = max(margins, default=0.0) + 2.0
        return min(self._attenuation_db / max(self._attenuation_db + left_db, 1.0), 1.0)

    def _lane(self, lane: int) -> LaneMargin:
        lane_type = self.port.optics.profile.lane
        points = self._points[lane]
        shown = tuple(MarginPoint(p.attenuation_db, p.bits, p.errors) for p in points)
        end_db = self._ends.get(lane)
        fitted = waterfall.fit(points, lane_type.modulation)
        if fitted is None:
            verdict = Verdict.OPEN if points else Verdict.FAILED
            return LaneMargin(lane, shown, end_db=end_db, verdict=verdict)
        wanted_q = ber.q_of_ber(self.command.target_ber, lane_type.modulation)
        margin_db = fitted.attenuation_db(wanted_q)
        last_db = points[-1].attenuation_db
        curve = tuple(
            (db, math.log10(self._ber(fitted.q(db))))
            for db in np.linspace(0.0, last_db, CURVE_POINTS).tolist()
        )
        return LaneMargin(
            lane,
            shown,
            margin_db=margin_db if math.isfinite(margin_db) else None,
            end_db=end_db,
            ber=self._ber(fitted.q(0.0)),
            thermal=fitted.thermal,
            laser=fitted.laser,
            curve=curve,
            verdict=Verdict.PASSED if margin_db >= 0.0 else Verdict.FAILED,
        )

    def _ber(self, q: float) -> float:
        lane_type = self.port.optics.profile.lane
        return max(float(ber.ber_of_q(q, lane_type.modulation)), 1e-300)

    def results(self) -> Results:
        lanes = tuple(self._lane(lane) for lane in self.command.lanes)
        verdict = worst([Verdict(lane.verdict) for lane in lanes])
        found = [lane.margin_db for lane in lanes if lane.margin_db is not None]
        text = f"{self._attenuation_db:g} dB attenuated"
        if found:
            text = f"the least margin is {min(found):.2f} dB"
        return Results(verdict, text, margins=lanes)


class EyeScan:
    """The statistical eye of each lane, one after the other."""

    def __init__(self, port: Port, command: StartDiag) -> None:
        self.port = port
        self.command = command
        self._eyes: list[LaneEye] = []

    def begin(self, now_ns: int) -> int:
        return now_ns

    def step(self, now_ns: int) -> int | None:
        self._eyes.append(self._lane(self.command.lanes[len(self._eyes)]))
        return now_ns + EYE_GAP_NS if len(self._eyes) < len(self.command.lanes) else None

    def undo(self, now_ns: int) -> None: ...

    def done_ratio(self, now_ns: int) -> float:
        return len(self._eyes) / len(self.command.lanes)

    def _lane(self, lane: int) -> LaneEye:
        optics = self.port.optics
        lane_type, light = optics.profile.lane, self.port.light_of(lane)
        q = float(optics.q[lane])
        symbol_ps = 1000.0 / lane_type.symbol_rate_gbd
        if not optics.lit[lane] or light is None or q <= 0.0:
            return LaneEye(lane, symbol_ps=symbol_ps)
        seen = eye.statistical_eye(q, lane_type.modulation)
        ratio = 10.0 ** (max(light.extinction_cdb, 1) / 1000.0)
        average_uw = 1000.0 * 10.0 ** (float(optics.rx_dbm[lane]) / 10.0)
        bottom = 2.0 * average_uw / (ratio + 1.0)
        swing = bottom * (ratio - 1.0)
        power = [bottom + swing * level for level in seen.levels]
        rows, columns = seen.density.shape
        return LaneEye(
            lane,
            lit=True,
            q=q,
            ber=float(optics.ber[lane]),
            symbol_ps=symbol_ps,
            levels_uw=tuple(power),
            sigma_uw=swing * seen.sigma,
            ber_levels=eye.BER_LEVELS,
            openings=tuple(
                EyeOpening(bottom + swing * o.threshold, o.ber, o.heights, o.widths_ui)
                for o in seen.openings
            ),
            low_uw=bottom + swing * eye.LOW,
            high_uw=bottom + swing * eye.HIGH,
            columns=columns,
            rows=rows,
            density=seen.density.tobytes(),
            time_ui=seen.time_ui,
            bathtub_log10=seen.bathtub_log10,
            amplitude_uw=tuple(bottom + swing * a for a in seen.amplitude),
            vertical_log10=seen.vertical_log10,
        )

    def results(self) -> Results:
        text = f"{len(self._eyes)} of {len(self.command.lanes)} eyes"
        return Results(text=text, eyes=tuple(self._eyes))


class FecCount(Timed):
    """The decoder's histogram over some time."""

    def __init__(self, port: Port, command: StartDiag, read_row: Callable[[], np.void]) -> None:
        super().__init__(port, command)
        self._read_row = read_row
        self._first = self._last = self._read()

    def _read(self) -> tuple[int, list[int], int, int]:
        row = self._read_row()
        return (
            int(row["fec_codewords"]),
            [int(count) for count in row["fec_bins"]],
            int(row["fec_uncorrectable"]),
            int(row["fec_corrected_bits"]),
        )

    def step(self, now_ns: int) -> int | None:
        self._last = self._read()
        return super().step(now_ns)

    def results(self) -> Results:
        words, bins, lost, bits = self._last
        words0, bins0, lost0, bits0 = self._first
        used = int(self._read_row()["fec_t"]) + 1
        counts = FecCounts(
            self.port.optics.profile.lane.fec,
            words - words0,
            tuple(a - b for a, b in zip(bins[:used], bins0[:used], strict=True)),
            lost - lost0,
            bits - bits0,
        )
        verdict = Verdict.FAILED if counts.uncorrectable else Verdict.PASSED
        if not counts.codewords:
            verdict = Verdict.OPEN
        text = f"{counts.uncorrectable} of {counts.codewords:.4g} codewords lost"
        return Results(verdict, text, fec=counts)
