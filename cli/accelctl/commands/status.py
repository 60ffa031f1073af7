"""accelctl alone: the host on one screen of 80 columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import rich_click as click

from accel.address import short
from accel.plain import to_plain, word
from accelctl import render
from accelctl.commands import health as health_line
from accelctl.commands.card import state_word as card_state
from accelctl.commands.link import CARRIES_DATA, why
from accelctl.commands.link import state_word as link_state
from accelctl.commands.transfer import brief, end_text, percent
from accelctl.commands.transfer import state_word as transfer_state
from accelctl.render import Cell, Column
from accelctl.session import Session
from accelctl.view import View

EVENTS = 5
LINKS = 16  # more are summed up, the healthy ones first

CARD_COLUMNS = (
    Column("CARD", lambda c: short(c.name)),
    Column("STATE", lambda c: render.state(card_state(c))),
    Column("PROFILE", lambda c: c.profile),
    Column(
        "HBM USED / TOTAL",
        lambda c: f"{render.size(c.hbm_allocated_bytes)} / {render.size(c.hbm_total_bytes)}",
        right=True,
    ),
    Column("LINKS UP / PORTS", lambda c: f"{c.links_up_count} / {c.oe_count}", right=True),
    Column("CAPACITY Gb/s", lambda c: render.number(c.capacity_gbit_per_s), right=True),
)
LINK_COLUMNS = (
    Column("LINK", lambda k: short(k.name)),
    Column("STATE", lambda k: render.state(link_state(k))),
    Column("PEER", lambda k: short(k.peer)),
    Column("LANES", lambda k: f"{k.width_lanes}/{k.fitted_lanes}", right=True),
    Column("Gb/s", lambda k: render.number(k.capacity_gbit_per_s), right=True),
    Column(
        "MARGIN dB", lambda k: render.optional(k, "margin_min_db", lambda v: f"{v:.2f}"), right=True
    ),
    Column("REASON", lambda k: Cell(why(k.reason), "warn"), flexible=True, spare=True),
)
TRANSFER_COLUMNS = (
    Column("TRANSFER", brief),
    Column("STATE", lambda t: render.state(transfer_state(t))),
    Column("SOURCE", lambda t: end_text(t.source), flexible=True),
    Column("TARGET", lambda t: end_text(t.target), flexible=True),
    Column("SIZE", lambda t: render.size(t.total_bytes), right=True),
    Column("GOOD", percent, right=True),
)
EVENT_COLUMNS = (
    Column("TIME", lambda e: render.near_time(e.time)),
    Column("SUBJECT", lambda e: e.subject),
    Column("EVENT", lambda e: Cell(e.kind, render.STATE_STYLES.get(word(e, "severity"), ""))),
    Column("MESSAGE", lambda e: e.message, flexible=True),
)


@dataclass(frozen=True, slots=True)
class Status:
    host: Any
    health: Any
    cards: Sequence[Any]
    links: Sequence[Any]
    transfers: Sequence[Any]
    events: Sequence[Any]

    def plain(self) -> dict[str, Any]:
        return {
            "host": to_plain(self.host),
            "health": health_line.verdict(self.health),
            "cards": [to_plain(card) for card in self.cards],
            "links": [to_plain(link) for link in self.links],
            "transfers": [to_plain(transfer) for transfer in self.transfers],
            "events": [to_plain(event) for event in self.events],
        }


def show(session: Session) -> None:
    if session.output in ("csv", "name"):
        raise click.UsageError(
            f"the status screen is many things and has no -o {session.output}; "
            "use json, jsonl or yaml, or ask for one noun"
        )
    view = View(session)
    view.one(lambda: fetch(session), lambda status: lines(view, status))


def fetch(session: Session) -> Status:
    client = session.client
    host = client.host()
    on = host.chassis_attached  # Without hardware there is still the daemon to look at.
    return Status(
        host,
        client.health.get(),
        tuple(client.cards.list()) if on else (),
        tuple(client.links.list()) if on else (),
        tuple(client.transfers.list(active_only=True)),
        client.events.latest(EVENTS),
    )


def lines(view: View, status: Status) -> list[str]:
    out = head(status.host, view.session.colored)
    out.append(_health(status.health, view.session.colored))
    if status.cards:
        out += ["", *view.fitted(status.cards, CARD_COLUMNS)]
    if status.links:
        shown = _worst_first(status.links)[:LINKS]
        kept = [link for link in status.links if link in shown]
        out += ["", *view.fitted(kept, LINK_COLUMNS)]
        if len(kept) < len(status.links):
            out.append(f"and {len(status.links) - len(kept)} more: accelctl link list")
    if status.transfers:
        out += ["", *view.fitted(status.transfers, TRANSFER_COLUMNS)]
    if status.events:
        out += ["", *view.fitted(status.events, EVENT_COLUMNS)]
    return out


def head(host: Any, colored: bool) -> list[str]:
    name = render.paint(f"acceld {render.clean(host.version)}", "head", colored)
    first = [name, "emulated hardware" if host.emulated else ""]
    if host.chassis_attached:
        first.append(f"chassis {render.clean(host.chassis_boot_id)[:16]}")
        first.append(f"on for {render.since(host.chassis_start_time)}")
    else:
        first.append(render.paint("no chassis attached: the hardware is off", "bad", colored))
    second = []
    if host.chassis_attached:
        alive = sum(worker.alive for worker in host.workers)
        second = [
            f"workers {alive}/{len(host.workers)}",
            f"links up {host.links_up_count}/{host.link_count}",
            f"HBM {_hbm(host)}",
        ]
    if host.metrics_address:
        second.append(f"metrics {render.clean(host.metrics_address)}")
    width = render.terminal_width()
    return [*render.flow(filter(None, first), width), *render.flow(second, width)]


def _health(health: Any, colored: bool) -> str:
    line = f"health {health_line.sentence(health)}"
    state = health_line.state_word(health)
    painted = render.paint(state, render.state(state).style, colored)
    return render.cut(line, render.terminal_width()).replace(state, painted, 1)


def _hbm(host: Any) -> str:
    used, budget = host.hbm_allocated_bytes, host.hbm_budget_bytes
    return f"{render.size(used)} of {render.size(budget)} budget"


def _worst_first(links: Sequence[Any]) -> list[Any]:
    return sorted(links, key=lambda link: link_state(link) in CARRIES_DATA)
