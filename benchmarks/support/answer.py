"""How a benchmark answers: figures with their spread, beside a peer's of the same run.

A ratio is one of medians; its spread is the smallest and largest ratio of the rounds in which both
were measured one after the other.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Better = Literal["more", "less"]


@dataclass(frozen=True, slots=True)
class Figures:
    """One quantity, measured again and again."""

    values: Sequence[float]
    unit: str

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    def plain(self) -> dict[str, Any]:
        return {
            "median": _short(self.median),
            "min": _short(min(self.values)),
            "max": _short(max(self.values)),
            "unit": self.unit,
            "values": [_short(value) for value in self.values],
        }


@dataclass(frozen=True, slots=True)
class Line:
    """A line of an answer: ours alone, or beside a peer.

    `goal` is for the ratio where there is a peer, and for the figure otherwise.
    """

    what: str
    ours: Figures
    peer: Figures | None = None
    peer_name: str = ""
    goal: float | None = None
    better: Better = "more"
    note: str = ""

    @property
    def ratio(self) -> float | None:
        return self.ours.median / self.peer.median if self.peer else None

    @property
    def ratio_spread(self) -> tuple[float, float] | None:
        if self.peer is None:
            return None
        pairs = zip(self.ours.values, self.peer.values, strict=False)
        ratios = [ours / theirs for ours, theirs in pairs]
        return min(ratios), max(ratios)

    @property
    def judged(self) -> float:
        """The figure that a goal is held against."""
        ratio = self.ratio
        return self.ours.median if ratio is None else ratio

    @property
    def met(self) -> bool | None:
        if self.goal is None:
            return None
        return self.judged >= self.goal if self.better == "more" else self.judged <= self.goal

    def plain(self) -> dict[str, Any]:
        row: dict[str, Any] = {"what": self.what, "ours": self.ours.plain()}
        if self.peer is not None and self.ratio is not None and self.ratio_spread is not None:
            row |= {
                "peer_name": self.peer_name,
                "peer": self.peer.plain(),
                "ratio": _short(self.ratio),
                "ratio_min": _short(self.ratio_spread[0]),
                "ratio_max": _short(self.ratio_spread[1]),
            }
        if self.goal is not None:
            row |= {"goal": self.goal, "better": self.better, "met": self.met}
        if self.note:
            row["note"] = self.note
        return row


@dataclass(slots=True)
class Answer:
    question: str
    lines: list[Line] = field(default_factory=list)
    absent: list[str] = field(default_factory=list)  # peers that this machine does not have
    points: list[dict[str, Any]] = field(default_factory=list)  # of a plot; units in the keys

    def add(self, line: Line) -> None:
        self.lines.append(line)

    def plain(self) -> dict[str, Any]:
        return {
            "question": self.question,
            "lines": [line.plain() for line in self.lines],
            **({"absent": self.absent} if self.absent else {}),
            **({"points": self.points} if self.points else {}),
        }


def in_turn(
    repeats: int, *measures: Callable[[], float], warm: bool = True
) -> tuple[list[float], ...]:
    """So many rounds, in each of them every contestant once: what slows one meets the others.

    `warm`: a round before them does not count.
    """
    rounds = [[measure() for measure in measures] for _ in range(repeats + warm)]
    return tuple(list(column) for column in zip(*rounds[int(warm) :], strict=True))


def run(
    doc: str | None,
    measure: Callable[[argparse.Namespace, Answer], None],
    arguments: Callable[[argparse.ArgumentParser], None] = lambda parser: None,
    repeats: int = 5,
) -> None:
    """A benchmark's main: reads the options, measures, prints a table or JSON."""
    question = (doc or "").partition("\n\n")[0].replace("\n", " ")
    parser = argparse.ArgumentParser(description=question)
    parser.add_argument("--repeats", type=int, default=repeats, help="rounds that count")
    parser.add_argument("--full", action="store_true", help="sizes for a quiet machine and time")
    parser.add_argument("--json", action="store_true")
    arguments(parser)
    options = parser.parse_args()
    answer = Answer(question)
    measure(options, answer)
    if options.json:
        json.dump(answer.plain(), sys.stdout)
    else:
        print("\n".join(table(answer.plain())))


def table(answer: dict[str, Any]) -> list[str]:
    """An answer for people, from its plain form."""
    rows = [("", "OURS", "PEER", "RATIO", "SPREAD", "GOAL", "")]
    rows += [_row(line) for line in answer["lines"]]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [answer["question"]]
    for row in rows:
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(row[1:6], widths[1:6], strict=True)]
        lines.append(f"  {'  '.join([*cells, row[6]]).rstrip()}")
    lines += [f"  without {absent}" for absent in answer.get("absent", ())]
    return lines


def _row(line: dict[str, Any]) -> tuple[str, str, str, str, str, str, str]:
    ours = line["ours"]
    peer = line.get("peer")
    goal = ""
    if "goal" in line:
        sign = ">=" if line["better"] == "more" else "<="
        goal = f"{sign} {line['goal']:g}{'' if line['met'] else ' MISSED'}"
    spread = (
        f"{line['ratio_min']:.2f}..{line['ratio_max']:.2f}"
        if peer
        else f"{ours['min']:.4g}..{ours['max']:.4g}" if len(ours["values"]) > 1 else ""
    )  # fmt: skip
    return (
        line["what"],
        f"{ours['median']:.4g} {ours['unit']}",
        f"{peer['median']:.4g} {peer['unit']} {line['peer_name']}" if peer else "",
        f"{line['ratio']:.2f}" if peer else "",
        spread,
        goal,
        line.get("note", ""),
    )


def _short(value: float) -> float:
    """Four digits: a machine's noise is in the third."""
    return float(f"{value:.4g}")
