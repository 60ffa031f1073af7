"""The matrices of `accelctl bench p2p`: the bytes go from the card of the row to the column's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median
from typing import TYPE_CHECKING, Any

from accelctl import render
from accelctl.render import Cell, Column
from accelctl.view import View

if TYPE_CHECKING:
    from accel.p2p import Measured, Pair

Found = Sequence["Measured"]
Take = Callable[["Measured"], Cell | str]

ROW_COLUMNS = (
    Column("FROM", lambda m: m.pair.source),
    Column("TO", lambda m: m.pair.target),
    Column("SIZE", lambda m: render.size(m.size_bytes), right=True),
    Column("GB/s", lambda m: render.rate(m.wall_gbyte_per_s), right=True),
    Column("MODELLED", lambda m: _modelled(m), right=True),
    Column("p50", lambda m: render.time_us(m.latency_us(50)), right=True),
    Column("p99", lambda m: render.time_us(m.latency_us(99)), right=True),
    Column("CALL p50", lambda m: render.time_us(m.call_us(50)), right=True),
    Column("CALL p99", lambda m: render.time_us(m.call_us(99)), right=True),
    Column("ROUNDS", lambda m: str(len(m.rounds)), right=True),
    Column("LINKS", lambda m: str(m.pair.links_up), right=True),
)


def describe(view: View, cards: Sequence[str], wanted: Sequence[Pair], found: Found) -> list[str]:
    """Bandwidth at the largest size, latency at the smallest, and all sizes in short."""
    largest = max(one.size_bytes for one in found)
    smallest = min(one.size_bytes for one in found)
    both = found[0].bidirectional
    way = "both ways at once, their sum" if both else "one way"

    def matrix(title: str, size: int, take: Take) -> list[str]:
        return [title, *_matrix(view, cards, wanted, _by_pair(found, size), take), ""]

    big, little = render.size(largest), render.size(smallest)
    lines = ["from the card of the row to that of the column; - no link is up between them", ""]
    lines += matrix(f"GB/s here, {big}, {way}", largest, lambda m: render.rate(m.wall_gbyte_per_s))
    lines += matrix(f"GB/s modelled, in the emulated card, {big}, {way}", largest, _modelled)
    lines += matrix(
        f"latency here, {little}, to its proof, p50", smallest,
        lambda m: render.time_us(m.latency_us(50)),
    )  # fmt: skip
    lines += matrix(
        f"latency here, {little}, to its proof, p99", smallest,
        lambda m: render.time_us(m.latency_us(99)),
    )  # fmt: skip
    lines += ["by size, medians over the pairs", *view.table(_by_size(found), SIZE_COLUMNS)]
    if view.session.output == "wide":
        lines += ["", *view.table(found, ROW_COLUMNS)]
    return lines


def _matrix(
    view: View,
    cards: Sequence[str],
    wanted: Sequence[Pair],
    at: dict[tuple[str, str], Measured],
    take: Take,
) -> list[str]:
    joined = {(pair.source, pair.target) for pair in wanted if pair.links_up}

    def cell(a: str, b: str) -> Cell | str:
        if a == b:
            return Cell(".", "dim")
        if (a, b) not in joined:
            return Cell("-", "dim")
        one = at.get((a, b))
        return take(one) if one else ""

    columns = [Column("", lambda a: a)]
    columns += [Column(b, lambda a, b=b: cell(a, b), right=True) for b in cards]  # type: ignore[misc]
    return view.table(cards, columns)


def _by_pair(found: Found, size: int) -> dict[tuple[str, str], Measured]:
    at: dict[tuple[str, str], Measured] = {}
    for one in found:
        if one.size_bytes == size:
            at[one.pair.source, one.pair.target] = one
            if one.bidirectional:
                at[one.pair.target, one.pair.source] = one
    return at


# ---- all pairs in short --------------------------------------------------------------------------

SIZE_COLUMNS = (
    Column("SIZE", lambda s: render.size(s[0].size_bytes), right=True),
    Column("GB/s", lambda s: render.rate(median(m.wall_gbyte_per_s for m in s)), right=True),
    Column("SLOWEST", lambda s: render.rate(min(m.wall_gbyte_per_s for m in s)), right=True),
    Column("FASTEST", lambda s: render.rate(max(m.wall_gbyte_per_s for m in s)), right=True),
    Column("MODELLED", lambda s: _modelled(sorted(s, key=_modelled_or_0)[len(s) // 2]), right=True),
    Column("p50", lambda s: _time(s, lambda m: m.latency_us(50)), right=True),
    Column("p99", lambda s: _time(s, lambda m: m.latency_us(99)), right=True),
    Column("CALL p50", lambda s: _time(s, lambda m: m.call_us(50)), right=True),
    Column("ROUNDS", lambda s: str(len(s[0].rounds)), right=True),
    Column("REPLAYED", lambda s: _replayed(s), right=True, spare=True),
)


def _by_size(found: Found) -> list[Found]:
    sizes = sorted({one.size_bytes for one in found})
    return [[one for one in found if one.size_bytes == size] for size in sizes]


def _time(found: Found, take: Callable[[Measured], float]) -> str:
    return render.time_us(median(map(take, found)))


def _replayed(found: Found) -> str:
    count = sum(round_.replayed_frames for one in found for round_ in one.rounds)
    return render.count(count) if count else ""


def _modelled_or_0(one: Measured) -> float:
    return one.modelled_gbyte_per_s or 0.0


def _modelled(one: Measured) -> str:
    return render.number(one.modelled_gbyte_per_s, 1) if one.modelled_gbyte_per_s else ""


def plain(wanted: Sequence[Pair], found: Found) -> list[dict[str, Any]]:
    """Every pair and size; a pair without a link once, without figures."""
    from accel.p2p import absent

    lone = [absent(pair) for pair in wanted if not pair.links_up]
    return [*(one.plain() for one in found), *lone]
