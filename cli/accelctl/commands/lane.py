"""accelctl lane: optical lanes, each as its own end sees it."""

from __future__ import annotations

from typing import Any

import rich_click as click

from accel.address import short
from accelctl import figures, render
from accelctl.figures import FLAG_COLUMNS
from accelctl.options import Noun, command, examples, viewed
from accelctl.params import CARD_OR_PORT, LANE
from accelctl.render import Cell, Column
from accelctl.session import Session
from accelctl.view import View

THIN_MARGIN_DB = 1.0


def margin(lane: Any) -> Cell:
    if not lane.HasField("margin_db"):
        return Cell("")
    value = lane.margin_db
    style = "bad" if value < 0 else "warn" if value < THIN_MARGIN_DB else ""
    return Cell(f"{value:.2f}", style)


def flags(lane: Any) -> Cell:
    """LOS: no light. LOL: light, but the receiver's clock does not lock."""
    words = [word for word, on in (("LOS", lane.los), ("LOL", lane.lol)) if on]
    return Cell(" ".join(words), "bad")


def latched(lane: Any) -> Cell:
    """How many of its flags were on since they were last cleared."""
    count = sum(flag.latched for flag in lane.flags)
    return Cell(str(count), "warn" if count else "dim")


def peer(lane: Any) -> str:
    if not lane.HasField("peer_lane"):
        return ""
    return f"{lane.peer_lane}{' inv' if lane.inverted else ''}"


def bias(lane: Any) -> str:
    return f"{lane.tx_bias_ma:.1f}" if lane.tx_on else "off"


COLUMNS = (
    Column("LANE", lambda n: short(n.name)),
    Column("PEER", peer, right=True),
    Column("nm", lambda n: f"{n.wavelength_nm:.2f}", right=True),
    Column("BIAS mA", bias, right=True, droppable=True),
    Column("Tx dBm", lambda n: f"{n.tx_power_dbm:.2f}" if n.tx_on else "", right=True),
    Column("Rx dBm", lambda n: f"{n.rx_power_dbm:.2f}", right=True),
    Column("MARGIN dB", margin, right=True),
    Column("BER", lambda n: render.optional(n, "pre_fec_ber", render.ber), right=True),
    Column("FLAGS", flags, spare=True),
    Column("LINE", lambda n: str(n.signal_line), right=True, wide=True),
    Column("CHANNEL", lambda n: str(n.channel), right=True, wide=True),
    Column("DATA", lambda n: "yes" if n.carries_data else "no", wide=True),
    Column("Q", lambda n: render.optional(n, "q", lambda v: f"{v:.2f}"), right=True, wide=True),
    Column("BITS", lambda n: f"{n.rx_bits_total:.3g}", right=True, wide=True),
    Column("ERRORS", lambda n: str(n.pre_fec_errors_total), right=True, wide=True),
    Column(
        "SNR dB",
        lambda n: render.optional(n, "snr_db", lambda v: f"{v:.1f}"),
        right=True,
        wide=True,
    ),
    Column("LASER C", lambda n: f"{n.laser_temp_c:.1f}", right=True, wide=True),
    Column("WEAR %", lambda n: f"{n.laser_wear_ratio * 100:.0f}", right=True, wide=True),
    Column("LATCHED", latched, right=True, wide=True),
    Column("LOS N", lambda n: str(n.los_total), right=True, wide=True),
    Column("LOL N", lambda n: str(n.lol_total), right=True, wide=True),
)


@click.group("lane", cls=Noun)
def cli() -> None:
    """Optical lanes: light, margin and bit errors."""


@command(cli, "list")
@examples(
    "accelctl lane list",
    "accelctl lane list card0/oe0",
    "accelctl lane list card0 -o csv",
)
@click.argument("owner", type=CARD_OR_PORT, required=False, metavar="[CARD|PORT]")
@viewed
def list_(session: Session, view: View, owner: str | None) -> None:
    """List the lanes of a port, of a card, or of all."""
    view.rows(lambda: session.client.lanes.list(owner), COLUMNS, empty="no lanes", kind=_kind)


@command(cli, "show")
@examples("accelctl lane show card0/oe0/lane1")
@click.argument("lane", type=LANE)
@viewed
def show(session: Session, view: View, lane: str) -> None:
    """Show one lane in full."""

    def describe(found: Any) -> list[str]:
        lines = [
            *view.detail(short(found.name), _place(found)),
            "",
            *view.detail("transmitter", _transmitter(found)),
            "",
            *view.detail("receiver", _receiver(found)),
        ]
        if flags := figures.changed(found.flags):
            lines += ["", *view.table(flags, FLAG_COLUMNS)]
        return lines

    view.one(lambda: session.client.lanes.get(lane), describe)


def _place(lane: Any) -> list[render.Field]:
    return [
        ("wavelength", f"{lane.wavelength_nm:.2f} nm"),
        ("signal line", str(lane.signal_line)),
        ("channel", str(lane.channel)),
        ("carries data", "yes" if lane.carries_data else "no"),
    ]


def _transmitter(lane: Any) -> list[render.Field]:
    if not lane.tx_on:
        light: list[render.Field] = [("laser", Cell("off", "dim"))]
    else:
        light = [
            ("laser", Cell("on", "good")),
            figures.figure(lane, "tx_power_dbm", "power"),
            figures.figure(lane, "tx_bias_ma", "bias"),
        ]
    return [
        *light,
        figures.figure(lane, "laser_temp_c", "temperature"),
        figures.figure(lane, "laser_wear_ratio", "worn"),
        figures.figure(lane, "tec_current_ratio", "cooler's current"),
        figures.figure(lane, "heater_mw", "ring heater"),
    ]


def _receiver(lane: Any) -> list[render.Field]:
    return [
        figures.figure(lane, "rx_power_dbm", "power"),
        ("signal", flags(lane)),
        figures.figure(lane, "margin_db", "margin"),
        ("Q", render.optional(lane, "q", lambda v: f"{v:.2f}")),
        figures.figure(lane, "snr_db", "SNR"),
        figures.figure(lane, "pre_fec_ber", "pre-FEC BER"),
        ("hears far lane", render.optional(lane, "peer_lane", str)),
        ("polarity", "inverted" if lane.inverted else ""),
        ("bits received", f"{lane.rx_bits_total:.4g}"),
        ("errors before FEC", render.count(lane.pre_fec_errors_total)),
        ("symbols corrected", render.count(lane.fec_corrected_symbols_total)),
        ("times LOS", render.count(lane.los_total)),
        ("times LOL", render.count(lane.lol_total)),
    ]


def _kind() -> Any:
    from accel.v1 import optics_pb2

    return optics_pb2.Lane.DESCRIPTOR
