"""The things of one snapshot by noun: their labels, written once, and their rows in one piece."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acceld.fields.field import Column, Derived, Field, Labels, Noun, joined, label, scaled
from acceld.host.snapshot import HostSnapshot, PortSnapshot


@dataclass(frozen=True)
class Subjects:
    """All of one noun. `rows` has one per label; nouns without a table have none."""

    labels: Sequence[Labels]
    items: Sequence[Any]
    rows: NDArray[np.void] | None = None


class World:
    """One snapshot, asked noun by noun."""

    def __init__(self, snapshot: HostSnapshot) -> None:
        self._snapshot = snapshot

    def samples(self, field: Field) -> Iterator[tuple[Labels, int | float]]:
        """Of one family, in the order of the snapshot; what is absent has none."""
        subjects = self._of[field.noun]
        source, divisor = field.source, field.divisor
        if isinstance(source, Column):
            if subjects.rows is None or not len(subjects.rows):
                return
            for at, value in zip(subjects.labels, source.all_of(subjects.rows), strict=True):
                if value is not None:
                    yield at, value if divisor == 1.0 else scaled(value, divisor)  # type: ignore[misc]
        elif isinstance(source, Derived):
            for at, item in zip(subjects.labels, subjects.items, strict=True):
                value = scaled(source.of(item), divisor)
                if value is not None:
                    yield at, int(value) if isinstance(value, bool) else value
        else:
            for at, item in zip(subjects.labels, subjects.items, strict=True):
                for more, value in source.of(item):
                    yield joined(at, more), value

    @cached_property
    def _ports(self) -> list[PortSnapshot]:
        return [port for card in self._snapshot.cards for port in card.ports]

    @cached_property
    def _of(self) -> dict[Noun, Subjects]:
        snapshot, ports = self._snapshot, self._ports
        links = [port for port in ports if port.info.fibre is not None]
        lasers = [(port, laser) for port in ports for laser in port.external_lasers]
        return {
            Noun.HOST: Subjects([""], [snapshot]),
            Noun.WORKER: Subjects(
                [label("worker", worker.index) for worker in snapshot.workers], snapshot.workers
            ),
            Noun.CARD: Subjects(
                [label("card", card.name) for card in snapshot.cards],
                snapshot.cards,
                _stacked([card.row for card in snapshot.cards]),
            ),
            Noun.ENGINE: Subjects([port.labels for port in ports], ports),
            Noun.LASER: Subjects(
                [joined(p.labels, label("laser", f"laser{one.index}")) for p, one in lasers],
                [laser for _, laser in lasers],
            ),
            Noun.LINK: Subjects(
                [port.labels for port in links], links, _stacked([port.row for port in links])
            ),
            Noun.LANE: Subjects(
                [at for port in ports for at in port.lane_labels],
                ports,
                np.concatenate([port.lanes for port in ports]) if ports else None,
            ),
        }


def _stacked(rows: list[Any]) -> NDArray[np.void] | None:
    return np.array(rows) if rows else None
