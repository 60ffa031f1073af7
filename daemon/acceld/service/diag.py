"""DiagService: tests of links."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from accel.v1 import diag_pb2, diag_pb2_grpc
from acceld.errors import InvalidRequest
from acceld.host.diag import DiagInfo, FecCounts, LaneErrors, LaneEye, LaneMargin
from acceld.host.host import Host
from acceld.service import convert, names
from acceld.service.pages import page
from accelhw.model.diag import CONFIDENCE, DiagKind
from accelhw.model.ids import PortId


class DiagServicer(diag_pb2_grpc.DiagServiceServicer):  # type: ignore[misc]
    def __init__(self, host: Host) -> None:
        self._host = host

    async def StartDiag(self, request: Any, context: Any) -> diag_pb2.Diag:
        info = await self._host.diags.start(
            names.parse_link(request.link),
            _kind(request.kind),
            frozenset(request.lanes),
            pattern=request.pattern,
            checker=request.checker or "seeded",
            duration_s=convert.seconds(request.duration) if request.HasField("duration") else None,
            target_ber=request.target_ber,
            confidence=request.confidence_ratio or CONFIDENCE,
            stop_early=request.stop_early,
            force=request.force,
        )
        return diag(info)

    async def GetDiag(self, request: Any, context: Any) -> diag_pb2.Diag:
        info = self._host.diags.get(names.parse_diag(request.name))
        return diag(info, pictures=not request.brief)

    async def ListDiags(self, request: Any, context: Any) -> diag_pb2.ListDiagsResponse:
        port = names.parse_link(request.link) if request.link else None
        chosen, token = page(
            list(enumerate(self._host.diags.list(port))),
            lambda item: (item[0],),
            f"diags/{port or names.ANY}",
            request.page_size,
            request.page_token,
        )
        return diag_pb2.ListDiagsResponse(
            diags=[diag(info, pictures=False) for _, info in chosen], next_page_token=token
        )

    async def WatchDiag(self, request: Any, context: Any) -> AsyncIterator[diag_pb2.Diag]:
        async for info in self._host.diags.watch(names.parse_diag(request.name)):
            yield diag(info)

    async def CancelDiag(self, request: Any, context: Any) -> diag_pb2.Diag:
        return diag(await self._host.diags.cancel(names.parse_diag(request.name)))


def _kind(value: int) -> DiagKind:
    try:
        return DiagKind(value)
    except ValueError as error:
        kinds = ", ".join(kind.name for kind in DiagKind)
        raise InvalidRequest(
            "TEST_INVALID", f"{value} is no kind of test; use one of {kinds}", kind=value
        ) from error


# ---- values to messages --------------------------------------------------------------------------


def diag(info: DiagInfo, pictures: bool = True) -> diag_pb2.Diag:
    return diag_pb2.Diag(
        name=names.diag(info.diag_id),
        kind=convert.enum(info.kind),
        state=convert.enum(info.state),
        verdict=convert.enum(info.verdict),
        link=names.link(PortId(info.card, info.oe)),
        lanes=info.lanes,
        pattern=info.pattern,
        checker=info.checker,
        duration_s=info.duration_s,
        target_ber=info.target_ber,
        confidence_ratio=info.confidence,
        done_ratio=info.done_ratio,
        text=info.text,
        start_time=convert.timestamp(info.started_ns),
        end_time=convert.timestamp(info.ended_ns),
        error=info.error,
        error_detail=info.error_detail,
        errors=[_errors(lane) for lane in info.errors],
        margins=[_margin(lane) for lane in info.margins],
        eyes=[_eye(lane) for lane in info.eyes] if pictures else [],
        fec=_fec(info.fec) if info.fec is not None else None,
    )


def _errors(lane: LaneErrors) -> diag_pb2.LaneErrors:
    return diag_pb2.LaneErrors(
        lane=lane.lane,
        far_lane=lane.far_lane,
        locked=lane.locked,
        inverted=lane.inverted,
        bits=lane.bits,
        errors=lane.errors,
        ber=lane.errors / lane.bits if lane.bits else None,
        ber_low=lane.ber_low,
        ber_high=lane.ber_high,
        sampled_bits=lane.sampled_bits,
        sampled_errors=lane.sampled_errors,
        lock_losses=lane.lock_losses,
        verdict=convert.enum(lane.verdict),
    )


def _curve(points: Any) -> list[diag_pb2.CurvePoint]:
    return [diag_pb2.CurvePoint(x=x, log10_ber=y) for x, y in points]


def _margin(lane: LaneMargin) -> diag_pb2.LaneMargin:
    return diag_pb2.LaneMargin(
        lane=lane.lane,
        margin_db=lane.margin_db,
        end_db=lane.end_db,
        ber=lane.ber,
        points=[
            diag_pb2.MarginPoint(attenuation_db=p.attenuation_db, bits=p.bits, errors=p.errors)
            for p in lane.points
        ],
        curve=_curve(lane.curve),
        verdict=convert.enum(lane.verdict),
    )


def _eye(lane: LaneEye) -> diag_pb2.LaneEye:
    return diag_pb2.LaneEye(
        lane=lane.lane,
        lit=lane.lit,
        q=lane.q,
        ber=lane.ber,
        symbol_ps=lane.symbol_ps,
        levels_uw=lane.levels_uw,
        sigma_uw=lane.sigma_uw,
        ber_levels=lane.ber_levels,
        openings=[
            diag_pb2.EyeOpening(
                threshold_uw=o.threshold, ber=o.ber, heights=o.heights, widths_ui=o.widths_ui
            )
            for o in lane.openings
        ],
        density=lane.density,
        density_rows=lane.rows,
        density_columns=lane.columns,
        low_uw=lane.low_uw,
        high_uw=lane.high_uw,
        time_bathtub=_curve(zip(lane.time_ui, lane.bathtub_log10, strict=True)),
        threshold_bathtub=_curve(zip(lane.amplitude_uw, lane.vertical_log10, strict=True)),
    )


def _fec(counts: FecCounts) -> diag_pb2.FecHistogram:
    return diag_pb2.FecHistogram(
        code=counts.code,
        codewords=counts.codewords,
        bins=counts.bins,
        uncorrectable=counts.uncorrectable,
        corrected_bits=counts.corrected_bits,
    )
