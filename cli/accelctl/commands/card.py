"""accelctl card: the accelerator cards of this host."""

from __future__ import annotations

from typing import Any

import rich_click as click

from accel.address import short
from accelctl import figures, render
from accelctl.commands.oe import cleared
from accelctl.options import Noun, command, examples, printed, viewed
from accelctl.params import CARD
from accelctl.render import Column
from accelctl.session import Session
from accelctl.several import each
from accelctl.view import View


def state_word(card: Any) -> str:
    from accel.plain import word

    return word(card, "state")


def hbm_use(card: Any) -> str:
    return f"{render.size(card.hbm_allocated_bytes)} / {render.size(card.hbm_total_bytes)}"


COLUMNS = (
    Column("CARD", lambda c: short(c.name)),
    Column("STATE", lambda c: render.state(state_word(c))),
    Column("PROFILE", lambda c: c.profile),
    Column("HBM USED / TOTAL", hbm_use, right=True),
    Column("OE", lambda c: str(c.oe_count), right=True),
    Column("LINKS UP", lambda c: str(c.links_up_count), right=True),
    Column("CAPACITY Gb/s", lambda c: render.number(c.capacity_gbit_per_s), right=True),
    Column("LINES", lambda c: str(c.signal_line_count), right=True, wide=True),
    Column("CASE C", lambda c: f"{c.case_temp_c:.1f}", right=True, wide=True),
    Column("HBM C", lambda c: f"{c.hbm_temp_c:.1f}", right=True, wide=True),
    Column("SUPPLY V", lambda c: f"{c.supply_v:.3f}", right=True, wide=True),
    Column("POWER W", lambda c: f"{c.power_w:.1f}", right=True, wide=True),
    Column("RESIDENT", lambda c: render.size(c.hbm_resident_bytes), right=True, wide=True),
    Column("TRANSFERS", lambda c: str(c.transfers_done_total), right=True, wide=True),
    Column("FAILED", lambda c: str(c.transfers_failed_total), right=True, wide=True),
    Column("CANCELLED", lambda c: str(c.transfers_cancelled_total), right=True, wide=True),
    Column("RESETS", lambda c: str(c.resets_total), right=True, wide=True),
    Column("WORKER", lambda c: str(c.worker), right=True, wide=True),
    Column("UID", lambda c: c.uid, wide=True),
)


@click.group("card", cls=Noun)
def cli() -> None:
    """Accelerator cards: their state, HBM and links."""


@command(cli, "list")
@examples("accelctl card list", "accelctl card list -o json")
@viewed
def list_(session: Session, view: View) -> None:
    """List the cards."""
    view.rows(session.client.cards.list, COLUMNS, empty="no cards", kind=_kind)


@command(cli, "show")
@examples("accelctl card show card0", "accelctl card show card0 -o yaml")
@click.argument("card", type=CARD)
@viewed
def show(session: Session, view: View, card: str) -> None:
    """Show one card in full."""

    def describe(found: Any) -> list[str]:
        lines = view.detail(*_describe(found))
        if found.thresholds:
            lines += ["", *view.table(found.thresholds, figures.THRESHOLD_COLUMNS)]
        if flags := figures.changed(found.flags):
            lines += ["", *view.table(flags, figures.FLAG_COLUMNS)]
        return lines

    view.one(lambda: session.client.cards.get(card), describe)


@command(cli, "reset")
@examples("accelctl card reset card0")
@click.argument("cards", type=CARD, nargs=-1, required=True, metavar="CARD...")
@printed
def reset(session: Session, view: View, cards: tuple[str, ...]) -> None:
    """Reset cards: links train again, their transfers fail, HBM content stays."""
    with each(cards) as work:
        done = work(session.client.cards.reset)
        view.results(done, lambda c: f"{short(c.name)} was reset and is {state_word(c)}")


@command(cli, "clear-flags")
@examples("accelctl card clear-flags card0")
@click.argument("cards", type=CARD, nargs=-1, required=True, metavar="CARD...")
@printed
def clear_flags(session: Session, view: View, cards: tuple[str, ...]) -> None:
    """Clear the latched flags of cards: their heat and supply.

    What is on now stays latched, and counts and times go on. The flags of lanes are cleared with
    'accelctl oe clear-flags'.
    """
    with each(cards) as work:
        done = work(session.client.cards.clear_flags)
        view.results(done, lambda c: f"{short(c.name)}: {cleared(_latched(c))}")


def _latched(card: Any) -> int:
    return sum(flag.latched for flag in card.flags)


def _describe(card: Any) -> tuple[str, list[render.Field]]:
    title = f"{short(card.name)}  {card.description}".rstrip()
    return title, [
        ("state", render.state(state_word(card))),
        ("ready since", render.local_time(card.ready_time) if card.HasField("ready_time") else ""),
        ("emulated", "yes: this card is software" if card.emulated else ""),
        ("profile", card.profile),
        ("uid", card.uid),
        figures.figure(card, "case_temp_c", "case"),
        figures.figure(card, "supply_v", "supply of the optics"),
        figures.figure(card, "power_w", "power"),
        ("HBM", f"{render.size(card.hbm_total_bytes)} {card.hbm_type}"),
        ("HBM allocated", f"{render.size(card.hbm_allocated_bytes)} in {_regions(card)}"),
        ("HBM resident here", render.size(card.hbm_resident_bytes)),
        *_hbm_health(card),
        ("HBM bandwidth", f"{render.number(card.hbm_bandwidth_gbyte_per_s)} GB/s"),
        ("bus bandwidth", f"{render.number(card.bus_bandwidth_gbyte_per_s)} GB/s"),
        ("bus read", f"{render.count(card.bus_read_bytes_total)} bytes"),
        ("bus written", f"{render.count(card.bus_written_bytes_total)} bytes"),
        ("signal lines", f"{card.signal_line_count}, {card.signal_lines_used_count} carry data"),
        ("optical engines", str(card.oe_count)),
        ("links up", f"{card.links_up_count}, of {card.oe_count} ports"),
        ("capacity", f"{render.number(card.capacity_gbit_per_s)} Gb/s"),
        ("transfers done", render.count(card.transfers_done_total)),
        ("transfers failed", render.count(card.transfers_failed_total)),
        ("transfers cancelled", render.count(card.transfers_cancelled_total)),
        ("resets", render.count(card.resets_total)),
        ("worker", str(card.worker)),
    ]


def _regions(card: Any) -> str:
    return f"{card.region_count} region{'' if card.region_count == 1 else 's'}"


def _hbm_health(card: Any) -> list[render.Field]:
    if not card.HasField("hbm_health"):
        return []
    health = card.hbm_health
    lost, pending = health.uncorrectable_errors_total, health.rows_pending
    rows = [
        (f"{health.rows_remapped} remapped", health.rows_remapped),
        (f"{pending} out of use until the next reset", pending),
        ("no spare row left in a bank: replace the card", health.remap_failed),
    ]
    hot = [
        (f"refreshed {health.refresh_ratio} times as often", health.refresh_ratio > 1),
        ("throttled", health.throttled),
    ]
    heat = ", ".join(text for text, is_so in hot if is_so)
    temperature = figures.value("hbm_temp_c", card.hbm_temp_c)
    return [
        (
            "HBM temperature",
            render.Cell(f"{temperature}{', ' * bool(heat)}{heat}", "warn" * bool(heat)),
        ),
        (
            "HBM errors",
            render.Cell(
                f"{render.count(health.corrected_errors_total)} corrected,"
                f" {render.count(lost)} uncorrectable",
                "bad" if lost else "",
            ),
        ),
        ("HBM rows", render.Cell(", ".join(text for text, is_so in rows if is_so), "warn")),
    ]


def _kind() -> Any:
    from accel.v1 import card_pb2

    return card_pb2.Card.DESCRIPTOR
