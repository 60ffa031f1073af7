"""Tests of links for the fake daemon: canned results that follow simple formulas."""

from __future__ import annotations

import math
from typing import Any

from accel.v1 import diag_pb2, diag_pb2_grpc

ROWS, COLUMNS = 32, 48
KINDS = diag_pb2.DiagKind


def density() -> bytes:
    """Two rails and a crossing."""
    cells = bytearray()
    for row in range(ROWS):
        for column in range(COLUMNS):
            t = 2 * math.pi * column / (COLUMNS / 2)
            waves = (0.75, 0.25, 0.5 + 0.25 * math.cos(t / 2), 0.5 - 0.25 * math.cos(t / 2))
            near = min(abs((row + 0.5) / ROWS - wave) for wave in waves)
            cells.append(max(0, round(255 - 900 * near)))
    return bytes(cells)


def errors(lane: int, bits: float = 6.4e10) -> diag_pb2.LaneErrors:
    count = 0 if lane != 3 else 12
    return diag_pb2.LaneErrors(
        lane=lane,
        far_lane=3 - lane,
        locked=True,
        inverted=lane == 2,
        bits=bits,
        errors=count,
        ber=count / bits,
        ber_low=count * 0.58 / bits,
        ber_high=(count * 1.62 + 3.0) / bits,
        sampled_bits=327_680,
        sampled_errors=0,
        verdict=diag_pb2.DIAG_VERDICT_PASSED,
    )


def margin(lane: int) -> diag_pb2.LaneMargin:
    margin_db = 4.5 - 0.75 * lane
    return diag_pb2.LaneMargin(
        lane=lane,
        margin_db=margin_db,
        end_db=margin_db + 3.25,
        ber=10.0 ** (-9 + lane),
        points=[
            diag_pb2.MarginPoint(attenuation_db=i / 2, bits=1.6e9, errors=2**i if i > 2 else 0)
            for i in range(12)
        ],
        curve=[diag_pb2.CurvePoint(x=i / 2, log10_ber=-12 + i) for i in range(12)],
        verdict=diag_pb2.DIAG_VERDICT_PASSED,
    )


def eye(lane: int) -> diag_pb2.LaneEye:
    return diag_pb2.LaneEye(
        lane=lane,
        lit=True,
        q=7.5 + lane / 4,
        ber=3.2e-14,
        symbol_ps=31.25,
        levels_uw=[150.0, 650.0],
        sigma_uw=30.5,
        ber_levels=[1e-6, 1e-12],
        openings=[
            diag_pb2.EyeOpening(
                threshold_uw=400, ber=3e-14, heights=[0.4, 0.1], widths_ui=[0.6, 0.3]
            )
        ],
        density=density(),
        density_rows=ROWS,
        density_columns=COLUMNS,
        low_uw=0.0,
        high_uw=800.0,
        time_bathtub=[
            diag_pb2.CurvePoint(x=i / 16 - 0.5, log10_ber=-14 + abs(i - 8) * 1.7) for i in range(17)
        ],
        threshold_bathtub=[
            diag_pb2.CurvePoint(x=150 + 31.25 * i, log10_ber=-14 + abs(i - 8) * 1.7)
            for i in range(17)
        ],
    )


def result(kind: int, link: str, lanes: list[int], stamp: Any) -> diag_pb2.Diag:
    """A test that ended well."""
    lanes = lanes or list(range(4))
    diag = diag_pb2.Diag(
        name="diags/3f2a91c04d77",
        kind=kind,
        state=diag_pb2.DIAG_STATE_DONE,
        verdict=diag_pb2.DIAG_VERDICT_PASSED,
        link=link,
        lanes=lanes,
        duration_s=0.05 if kind == KINDS.Value("DIAG_KIND_MARGIN") else 2.0,
        target_ber=2.4e-4,
        confidence_ratio=0.95,
        done_ratio=1.0,
        start_time=stamp(100),
        end_time=stamp(102.5),
    )
    match KINDS.Name(kind).removeprefix("DIAG_KIND_"):
        case "MARGIN":
            diag.margins.extend(margin(lane) for lane in lanes)
            diag.text = "the least margin is 2.25 dB"
        case "EYE":
            diag.eyes.extend(eye(lane) for lane in lanes)
            diag.verdict = diag_pb2.DIAG_VERDICT_UNSPECIFIED
            diag.text = f"{len(lanes)} of {len(lanes)} eyes"
        case "FEC":
            diag.fec.code = "kp4"
            diag.fec.codewords = 156_250_000
            diag.fec.bins.extend([156_000_000, 249_000, 990, 10] + [0] * 12)
            diag.fec.corrected_bits = 251_100
            diag.text = "0 of 1.562e+08 codewords lost"
        case name:
            diag.errors.extend(errors(lane) for lane in lanes)
            diag.text = "12 errors in 2.56e+11 bits"
            if name == "BER":
                for lane in diag.errors:
                    lane.sampled_bits = 0
            else:
                diag.pattern, diag.checker = "prbs31q", "seeded"
    return diag


class DiagServicer(diag_pb2_grpc.DiagServiceServicer):  # type: ignore[misc, unused-ignore]
    """`on_diag` of the state may change a result before it is given."""

    def __init__(self, state: Any, stamp: Any, refuse: Any) -> None:
        self._state, self._stamp, self._refuse = state, stamp, refuse
        state.diags = [result(KINDS.Value("DIAG_KIND_MARGIN"), "cards/card0/links/oe0", [], stamp)]

    def _find(self, name: str, context: Any) -> Any:
        for diag in self._state.diags:
            if diag.name == name:
                return diag
        self._refuse(context, "NOT_FOUND", "DIAG_NOT_FOUND", f"there is no test {name!r}")
        return None

    def StartDiag(self, request: Any, context: Any) -> Any:
        self._state.calls.append(f"StartDiag {request.link}")
        self._state.started = request
        made = result(request.kind, request.link, list(request.lanes), self._stamp)
        if request.pattern:
            made.pattern = request.pattern
        if self._state.on_diag is not None:
            self._state.on_diag(made)
        self._state.diags = [made]
        running = diag_pb2.Diag(name=made.name, kind=made.kind, link=made.link)
        running.state = diag_pb2.DIAG_STATE_RUNNING
        return running

    def GetDiag(self, request: Any, context: Any) -> Any:
        return self._find(request.name, context)

    def ListDiags(self, request: Any, context: Any) -> Any:
        return diag_pb2.ListDiagsResponse(diags=self._state.diags)

    def WatchDiag(self, request: Any, context: Any) -> Any:
        made = self._find(request.name, context)
        half = diag_pb2.Diag(name=made.name, kind=made.kind, link=made.link, done_ratio=0.5)
        half.state = diag_pb2.DIAG_STATE_RUNNING
        yield half
        yield made

    def CancelDiag(self, request: Any, context: Any) -> Any:
        self._state.calls.append(f"CancelDiag {request.name}")
        diag = self._find(request.name, context)
        diag.state = diag_pb2.DIAG_STATE_CANCELLED
        return diag
