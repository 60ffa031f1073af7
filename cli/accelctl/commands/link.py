"""accelctl link: links between ports, seen from each end."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import rich_click as click

from accel.address import short
from accelctl import exits, figures, render
from accelctl.commands import diag
from accelctl.options import Noun, command, examples, printed, viewed
from accelctl.params import CARD, DURATION, PORT, SWAP
from accelctl.pictures import blocks
from accelctl.render import Cell, Column
from accelctl.session import Session
from accelctl.several import each
from accelctl.view import View

CARRIES_DATA = ("UP", "DEGRADED")


def state_word(link: Any) -> str:
    from accel.plain import word

    return word(link, "state")


def why(reason: Any) -> str:
    """A reason with the lanes it blames; nothing when all is well."""
    if reason.code in ("", "NONE"):
        return ""
    lanes, where = list(reason.lanes), ""
    if len(lanes) > 1:
        named = reason.HasField("lane")
        where = f" lanes {figures.ranges(lanes)}" if named else f" all {len(lanes)} lanes"
    elif reason.HasField("lane"):
        where = f" lane{reason.lane}"
    return f"{reason.code}{where}"


def _reason(link: Any) -> str:
    """Its own, else what the far end says."""
    own, far = why(link.reason), why(link.peer_reason)
    return own or (f"peer: {far}" if far else "")


COLUMNS = (
    Column("LINK", lambda k: short(k.name)),
    Column("STATE", lambda k: render.state(state_word(k))),
    Column("PEER", lambda k: short(k.peer)),
    Column("LANES", lambda k: f"{k.width_lanes}/{k.fitted_lanes}", right=True),
    Column("Gb/s", lambda k: render.number(k.capacity_gbit_per_s), right=True),
    Column(
        "MARGIN dB", lambda k: render.optional(k, "margin_min_db", lambda v: f"{v:.2f}"), right=True
    ),
    Column(
        "BER",
        lambda k: render.optional(k, "pre_fec_ber_max", render.ber),
        right=True,
        droppable=True,
    ),
    Column("REASON", lambda k: _reason(k), flexible=True, spare=True),
    Column("PHASE", lambda k: k.phase, wide=True),
    Column("PEER REASON", lambda k: why(k.peer_reason), wide=True, spare=True),
    Column("MODULATION", lambda k: k.modulation.upper(), wide=True),
    Column("FEC", lambda k: k.fec, wide=True),
    Column("TRANSPORT", lambda k: k.fibre.transport, wide=True),
    Column(
        "LENGTH m",
        lambda k: render.number(k.fibre.length_m) if k.HasField("fibre") else "",
        right=True,
        wide=True,
    ),
    Column("INTERFACE", lambda k: k.fibre.interface, wide=True, spare=True),
    Column(
        "RTT us",
        lambda k: render.optional(k, "rtt_us", lambda v: f"{v:.1f}"),
        right=True,
        wide=True,
    ),
    Column("MODE", lambda k: k.mode, wide=True, spare=True),
    Column("FLAPS", lambda k: str(k.flaps_total), right=True, wide=True),
    Column(
        "LOST CW",
        lambda k: str(k.fec_counters.uncorrectable_codewords_total),
        right=True,
        wide=True,
    ),
    Column("REPLAYS", lambda k: str(k.counters.replayed_frames_total), right=True, wide=True),
    Column("CRC ERR", lambda k: str(k.counters.crc_errors_total), right=True, wide=True),
)
MAP_COLUMNS = (
    Column("CHANNEL", lambda c: str(c.channel), right=True),
    Column("", lambda c: "->"),
    Column("SIGNAL LINE", lambda c: str(c.signal_line), right=True),
    Column("", lambda c: "->"),
    Column("OE", lambda c: f"oe{c.oe}"),
    Column("", lambda c: "->"),
    Column("LANE", lambda c: f"lane{c.lane}"),
    Column("", lambda c: "->" if c.HasField("peer_lane") else ""),
    Column("PEER LANE", lambda c: render.optional(c, "peer_lane", lambda v: f"lane{v}")),
    Column("POLARITY", lambda c: "inverted" if c.inverted else "", spare=True),
    Column("DATA", lambda c: Cell("yes", "good") if c.carries_data else Cell("no", "dim")),
)


@click.group("link", cls=Noun)
def cli() -> None:
    """Links: a port, its fibre, and the peer that answers."""


@command(cli, "list")
@examples("accelctl link list", "accelctl link list card0 -o wide", "accelctl link list -o name")
@click.argument("card", type=CARD, required=False)
@viewed
def list_(session: Session, view: View, card: str | None) -> None:
    """List the links of one card, or of all."""
    view.rows(lambda: session.client.links.list(card), COLUMNS, empty="no links", kind=_kind)


@command(cli, "show")
@examples("accelctl link show card0/oe0", "accelctl link show card0/oe0 -o json")
@click.argument("port", type=PORT)
@viewed
def show(session: Session, view: View, port: str) -> None:
    """Show one link in full, with its counters."""

    def describe(link: Any) -> list[str]:
        return [
            *view.detail(*_describe(link)),
            "",
            *view.detail("recovery", _recovery(link)),
            "",
            *view.detail("FEC", _fec(link.fec_counters)),
            *(
                ["", *view.table(_bins(link.fec_counters), BIN_COLUMNS)]
                if link.fec_counters.bins
                else []
            ),
            "",
            *view.detail("frames", _counters(link.counters)),
        ]

    view.one(lambda: session.client.links.get(port), describe)


@command(cli, "train")
@examples("accelctl link train card0/oe0", "accelctl link train card0/oe0 -o jsonl")
@click.argument("port", type=PORT)
@printed
def train(session: Session, view: View, port: str) -> None:
    """Train a link again and follow each phase, lane by lane.

    Exit code 0 when it is up, 1 when training failed, 7 when nothing came of it in time.
    """
    from accelctl.training import follow

    link = follow(session, view, port)
    state = state_word(link)
    if session.output != "jsonl":
        view.result(link, _outcome(link))
    if state in CARRIES_DATA:
        return
    code = exits.FALSE if state in ("FAILED", "DOWN") else exits.TIMED_OUT
    raise exits.Failed(f"{port} is {state}: {_reasons(link)}", code, link.reason.code)


@command(cli, "prbs")
@examples(
    "accelctl link prbs card0/oe0",
    "accelctl link prbs card0/oe0 --pattern prbs31 --for 2s --lanes 0-3",
)
@click.argument("port", type=PORT)
@diag.pattern_option
@diag.for_option
@click.option("--lanes", type=diag.LANES, metavar="LANES", help="0,3 or 4-7; all unless told.")
@diag.checker_option
@diag.ber_option
@diag.confidence_option
@diag.force_option
@diag.svg_option
@printed
def prbs(
    session: Session,
    view: View,
    port: str,
    pattern: str | None,
    duration: float | None,
    lanes: tuple[int, ...] | None,
    checker: str,
    target_ber: float | None,
    confidence: float | None,
    force: bool,
    svg: str | None,
) -> None:
    """Send a pattern over a link in place of data and check it bit by bit.

    The far end sends, this end checks. The link is down meanwhile, and trains again after.
    """
    diag.run_and_show(
        session, view, port, "PRBS", svg, None, lanes=lanes or (), duration_s=duration,
        pattern=pattern or "", checker=checker, target_ber=target_ber or 0.0,
        confidence=confidence or 0.0, stop_early=target_ber is not None, force=force,
    )  # fmt: skip


@command(cli, "up")
@examples("accelctl link up card0/oe0", "accelctl link up card0/oe0 --wait 10")
@click.argument("ports", type=PORT, nargs=-1, required=True, metavar="PORT...")
@click.option("--wait", type=DURATION, metavar="SECONDS", help="Wait until they carry data.")
@printed
def up(session: Session, view: View, ports: tuple[str, ...], wait: float | None) -> None:
    """Switch ports on; they train by themselves."""
    with each(ports) as work:
        done = work(lambda port: session.client.links.set_admin(port, True))
        if wait is not None:
            done[:] = _wait_up(session, done, wait)
        view.results(done, lambda k: f"{short(k.name)} is on, {state_word(k)}")
    late = [k for k in done if wait is not None and state_word(k) not in CARRIES_DATA]
    if late:
        text = "; ".join(f"{short(k.name)} is {state_word(k)}: {_reasons(k)}" for k in late)
        raise exits.Failed(f"not up in {render.number(wait or 0)} s: {text}", exits.TIMED_OUT)


@command(cli, "down")
@examples("accelctl link down card0/oe0")
@click.argument("ports", type=PORT, nargs=-1, required=True, metavar="PORT...")
@printed
def down(session: Session, view: View, ports: tuple[str, ...]) -> None:
    """Switch ports off: lasers go dark, the far ends see it."""
    with each(ports) as work:
        done = work(lambda port: session.client.links.set_admin(port, False))
        view.results(done, lambda k: f"{short(k.name)} is off, {state_word(k)}")


@command(cli, "map")
@examples("accelctl link map card0", "accelctl link map card0 --set 0=1")
@click.argument("card", type=CARD)
@click.option(
    "--set",
    "swaps",
    type=SWAP,
    multiple=True,
    metavar="CHANNEL=LINE",
    help="Put a channel onto a signal line; the channel that was there takes the old line.",
)
@viewed
def map_(session: Session, view: View, card: str, swaps: tuple[tuple[int, int], ...]) -> None:
    """Show or change which lane carries which channel.

    Each channel goes over a signal line of the network module to one lane of an optical engine,
    and from there over the fibre to a lane of the peer.
    """
    links = session.client.links
    lines = dict(swaps)
    if len(lines) != len(swaps):
        raise click.UsageError("--set names a channel twice")
    if lines:
        links.set_channels(card, lines)
    if session.output in ("csv", "jsonl"):
        view.rows(lambda: links.channel_map(card).channels, MAP_COLUMNS)
        return
    view.one(lambda: links.channel_map(card), lambda found: view.table(found.channels, MAP_COLUMNS))


def _wait_up(session: Session, links: list[Any], wait_s: float) -> list[Any]:
    """Looks until each carries data or the time is over; gives the links as they are then."""
    import time

    deadline = time.monotonic() + wait_s
    while True:
        links = [session.client.links.get(k.name) for k in links]
        if all(state_word(k) in CARRIES_DATA for k in links) or time.monotonic() >= deadline:
            return links
        time.sleep(min(0.1, wait_s))


def _outcome(link: Any) -> str:
    state = state_word(link)
    if state not in CARRIES_DATA:
        return f"{short(link.name)} is {state}"
    took = render.optional(link, "training_ms", lambda v: f" after {v:.0f} ms")
    return (
        f"{short(link.name)} is {state}{took}: {link.width_lanes} of {link.fitted_lanes} lanes "
        f"to {short(link.peer)}, {render.number(link.capacity_gbit_per_s)} Gb/s"
    )


def _reasons(link: Any) -> str:
    parts = [why(link.reason) or "no reason known"]
    if why(link.peer_reason):
        parts.append(f"the peer says {why(link.peer_reason)}")
    if link.reason.next_action:
        parts.append(link.reason.next_action)
    return "; ".join(parts)


def _mode(mode: str) -> str:
    """`kr4/2` in words: FEC kr4 at half the rate."""
    fec, _, slowdown = mode.partition("/")
    code = "no FEC" if fec == "none" else f"FEC {fec}" if fec else ""
    return f"{code} at half the rate" if slowdown == "2" else code


def _describe(link: Any) -> tuple[str, list[render.Field]]:
    fibre = link.fibre
    plugged = link.HasField("fibre")
    modulation = link.modulation.upper()
    mode = _mode(link.mode or link.fec)
    rate = f", {modulation}, {mode}" if mode else f", {modulation}"
    return short(link.name), [
        ("state", render.state(state_word(link))),
        ("phase", link.phase),
        ("reason", Cell(why(link.reason), "warn")),
        ("next action", link.reason.next_action),
        ("peer's reason", Cell(why(link.peer_reason), "warn")),
        ("switched", "on" if link.admin_up else "off"),
        ("peer", short(link.peer)),
        ("peer's chassis", link.peer_chassis),
        ("lanes", _lanes(link)),
        ("capacity", f"{render.number(link.capacity_gbit_per_s)} Gb/s{rate}"),
        ("worst margin", render.optional(link, "margin_min_db", lambda v: f"{v:.2f} dB")),
        ("worst pre-FEC BER", render.optional(link, "pre_fec_ber_max", render.ber)),
        (
            "fibre",
            f"{fibre.name}, {render.number(fibre.length_m)} m, {render.number(fibre.loss_db)} dB"
            if plugged
            else "none plugged in",
        ),
        ("transport", f"{fibre.transport}, MTU {fibre.mtu_bytes} bytes" if plugged else ""),
        ("interface", fibre.interface + (f" in {fibre.netns}" if fibre.netns else "")),
        ("up since", render.local_time(link.up_time) if link.HasField("up_time") else ""),
        ("training took", render.optional(link, "training_ms", lambda v: f"{v:.1f} ms")),
        ("round trip", render.optional(link, "rtt_us", render.time_us)),
        ("epoch", str(link.epoch or "")),
        ("trainings", f"{link.trainings_total}, {link.training_failures_total} failed"),
        ("times down", str(link.downs_total)),
    ]


def _lanes(link: Any) -> str:
    spare = link.fitted_lanes - link.full_width_lanes if link.full_width_lanes else 0
    text = f"{link.width_lanes} of {link.fitted_lanes}"
    return f"{text}, {spare} spare" if spare else text


def _recovery(link: Any) -> list[render.Field]:
    return [
        figures.figure(link, key, figures.counter_label(key))
        for key in (
            "recoveries_total", "recovery_failures_total", "flaps_total", "flaps_damped_total",
            "fallbacks_total", "equaliser_requests_total",
        )
    ]  # fmt: skip


def _fec(fec: Any) -> list[render.Field]:
    lost = fec.uncorrectable_codewords_total
    return [
        (
            "corrects",
            render.optional(fec, "correctable_symbols", lambda v: f"{v} symbols a codeword"),
        ),
        figures.figure(fec, "codewords_total", "codewords"),
        figures.figure(fec, "corrected_bits_total", "bits corrected"),
        figures.figure(fec, "corrected_symbols_total", "symbols corrected"),
        ("codewords lost", Cell(render.count(lost), "bad" if lost else "")),
        figures.figure(fec, "lock_losses_total", "times lock lost"),
        (
            "predicted frame loss",
            render.optional(fec, "predicted_frame_loss_ratio", lambda v: f"{v:.1e}" if v else "0"),
        ),
    ]


def _bins(fec: Any) -> list[Bin]:
    """Of the histogram, up to the last that has a codeword, and one more."""
    last = max((n for n, count in enumerate(fec.bins) if count), default=0)
    top = math.log10(max(fec.bins) + 1) or 1.0
    return [
        Bin(n, count, math.log10(count + 1) / top) for n, count in enumerate(fec.bins[: last + 2])
    ]


@dataclass(frozen=True)
class Bin:
    symbols: int
    codewords: int
    share: float  # of the fullest, on a scale of decades


BIN_COLUMNS = (
    Column("SYMBOLS CORRECTED", lambda b: str(b.symbols), right=True),
    Column("CODEWORDS", lambda b: render.count(b.codewords), right=True),
    Column("", lambda b: blocks.bar(b.share, 30)),
)


def _counters(counters: Any) -> list[render.Field]:
    return [
        (
            figures.counter_label(field.name),
            render.count(getattr(counters, field.name)),
        )
        for field in counters.DESCRIPTOR.fields
    ]


def _kind() -> Any:
    from accel.v1 import link_pb2

    return link_pb2.Link.DESCRIPTOR
