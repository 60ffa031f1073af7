"""accelctl transfer: copies between regions that run in the hardware."""

from __future__ import annotations

from typing import Any

import rich_click as click

from accel.address import short
from accelctl import exits, render
from accelctl.options import Noun, command, examples, printed, viewed
from accelctl.params import TRANSFER
from accelctl.progress import bar
from accelctl.render import Column
from accelctl.session import Session
from accelctl.several import each
from accelctl.view import View

ID_LENGTH = 32  # hex digits
BRIEF = 12


def state_word(transfer: Any) -> str:
    from accel.plain import word

    return word(transfer, "state")


def end_text(place: Any) -> str:
    """`card0:weights+4096`, or the far card's own numbers for a region we do not know."""
    text = short(place.region) if place.region else f"{short(place.card)}#{place.region_id}"
    return f"{text}+{place.offset}" if place.offset else text


def percent(transfer: Any) -> str:
    if not transfer.total_bytes:
        return ""
    return f"{100 * transfer.good_bytes // transfer.total_bytes} %"


def speed(transfer: Any) -> str:
    return render.optional(transfer, "wall_gbyte_per_s", render.rate)


def brief(transfer: Any) -> str:
    """The beginning of its id, which every command takes as long as it is the only such one."""
    return short(transfer.name)[:BRIEF]


def find(session: Session, text: str) -> str:
    """The whole id that begins like this; the text itself when none or no single one does."""
    if len(text) >= ID_LENGTH:
        return text
    names = [short(transfer.name) for transfer in session.client.transfers.list()]
    fits = [name for name in names if name.startswith(text)]
    if text in names or not fits:
        return text
    if len(fits) > 1:
        few = ", ".join(name[:ID_LENGTH] for name in fits[:3])
        raise exits.Failed(
            f"{text!r} is the beginning of {len(fits)} transfers ({few}); write more of it",
            exits.USAGE,
            "AMBIGUOUS",
        )
    return fits[0]


COLUMNS = (
    Column("TRANSFER", brief),
    Column("STATE", lambda t: render.state(state_word(t))),
    Column("SOURCE", lambda t: end_text(t.source), flexible=True),
    Column("TARGET", lambda t: end_text(t.target), flexible=True),
    Column("SIZE", lambda t: render.size(t.total_bytes), right=True),
    Column("GOOD", percent, right=True),
    Column("GB/s", speed, right=True),
    Column("ERROR", lambda t: t.error, flexible=True, spare=True),
    Column("KIND", lambda t: _kind_word(t), wide=True),
    Column("ID", lambda t: short(t.name), wide=True),
    Column("LINKS", lambda t: " ".join(map(short, t.links)), wide=True),
    Column(
        "MODELLED",
        lambda t: render.optional(t, "modelled_us", render.time_us),
        right=True,
        wide=True,
    ),
    Column(
        "PCIe 5.0",
        lambda t: render.optional(t, "modelled_pcie_us", render.time_us),
        right=True,
        wide=True,
    ),
    Column("CRC-32C", lambda t: render.optional(t, "crc32c", render.crc), wide=True),
    Column(
        "STARTED",
        lambda t: render.local_time(t.start_time) if t.HasField("start_time") else "",
        wide=True,
    ),
)


@click.group("transfer", cls=Noun)
def cli() -> None:
    """Transfers: copies between regions, by light or inside a card."""


@command(cli, "list")
@examples("accelctl transfer list", "accelctl transfer list --active -o name")
@click.option("--active", is_flag=True, help="Only those that have not ended.")
@viewed
def list_(session: Session, view: View, active: bool) -> None:
    """List the transfers, running and ended."""
    view.rows(
        lambda: session.client.transfers.list(active_only=active),
        COLUMNS,
        empty="no transfers; accelctl cp card0:NAME card1:NAME starts one",
        kind=_kind,
    )


@command(cli, "show")
@examples("accelctl transfer show 7f3a01", "accelctl transfer show 7f3a01 -o json")
@click.argument("transfer", type=TRANSFER)
@viewed
def show(session: Session, view: View, transfer: str) -> None:
    """Show one transfer in full. The beginning of its id is enough, here and elsewhere."""
    transfer = find(session, transfer)
    view.one(lambda: session.client.transfers.get(transfer), lambda t: view.detail(*describe(t)))


@command(cli, "cancel")
@examples("accelctl transfer cancel 7f3a02")
@click.argument("transfers", type=TRANSFER, nargs=-1, required=True, metavar="TRANSFER...")
@printed
def cancel(session: Session, view: View, transfers: tuple[str, ...]) -> None:
    """Cancel transfers. The target keeps what had arrived."""
    with each(transfers) as work:
        done = work(lambda text: session.client.transfers.cancel(find(session, text)))
        view.results(done, lambda t: f"{short(t.name)} is {state_word(t)}, {percent(t)} good")


@command(cli, "watch")
@examples("accelctl transfer watch 7f3a01")
@click.argument("transfer", type=TRANSFER)
@printed
def watch(session: Session, view: View, transfer: str) -> None:
    """Follow a transfer to its end, through restarts of the daemon.

    Ctrl-C stops watching; the transfer goes on. With -o jsonl each step is a line.
    """
    from accel.plain import to_plain
    from accel.transfer import check
    from accelctl import formats

    transfer = find(session, transfer)
    last: Any = None
    with bar(session, transfer) as advance:
        for last in session.client.transfers.follow(transfer):
            advance(last.good_bytes, last.total_bytes)
            if session.output == "jsonl":
                view.write(formats.to_jsonl([to_plain(last)]))
    if session.output != "jsonl":
        view.write(view.single(last, lambda t: view.detail(*describe(t))))
    check(last)


def describe(transfer: Any) -> tuple[str, list[render.Field]]:
    """Also what `cp` says at its end."""
    ended = transfer.HasField("end_time")
    local = _kind_word(transfer) == "LOCAL"
    return f"transfer {short(transfer.name)}", [
        ("state", render.state(state_word(transfer))),
        ("error", render.Cell(transfer.error, "bad")),
        ("what happened", transfer.error_detail),
        ("from", end_text(transfer.source)),
        ("to", end_text(transfer.target)),
        ("kind", _kind_word(transfer)),
        ("size", render.exact(transfer.total_bytes)),
        ("good", f"{percent(transfer)} ({render.byte_count(transfer.good_bytes)})"),
        (
            "first gap at",
            str(transfer.first_gap_offset)
            if state_word(transfer) in ("FAILED", "CANCELLED")
            else "",
        ),
        ("wall time here", _wall(transfer)),
        (
            "modelled, in the card" if local else "modelled, by light",
            render.optional(transfer, "modelled_us", render.time_us),
        ),
        (
            "modelled, PCIe 5.0 x16",  # which bytes that stay in a card would never cross
            "" if local else render.optional(transfer, "modelled_pcie_us", render.time_us),
        ),
        ("CRC-32C, both ends", render.optional(transfer, "crc32c", render.crc)),
        ("links", " ".join(map(short, transfer.links))),
        ("replayed frames", str(transfer.replayed_frames_total or "")),
        (
            "started",
            render.local_time(transfer.start_time) if transfer.HasField("start_time") else "",
        ),
        ("ended", render.local_time(transfer.end_time) if ended else ""),
    ]


def _wall(transfer: Any) -> str:
    wall = render.optional(transfer, "wall_ms", lambda v: render.time_us(v * 1e3))
    rate = render.optional(transfer, "wall_gbyte_per_s", lambda v: f"{render.rate(v)} GB/s")
    return ", ".join(part for part in (wall, rate) if part)


def _kind_word(transfer: Any) -> str:
    from accel.plain import word

    return word(transfer, "kind")


def _kind() -> Any:
    from accel.v1 import transfer_pb2

    return transfer_pb2.Transfer.DESCRIPTOR
