"""Runs a test of a link to its end: progress on the terminal, cancelled by Ctrl-C."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from accel.address import short
from accel.errors import AccelError, Internal, LocalError
from accel.plain import to_plain, word
from accelctl import exits, formats, render
from accelctl.exits import Interrupted
from accelctl.interrupt import held
from accelctl.pictures import blocks
from accelctl.render import Cell, Column
from accelctl.session import Session
from accelctl.view import View

ERASE = "\r\x1b[K"
EYE_WIDTH, EYE_HEIGHT = 64, 22
EYES_DRAWN = 1  # in a terminal; more are rows of the table
BAR_WIDTH = 40
VERDICT_STYLES = {"PASSED": "good", "FAILED": "bad", "OPEN": "warn"}


def run(session: Session, view: View, port: str, kind: str, **how: Any) -> Any:
    """Starts the test and follows it; gives it as it is at its end."""
    with held():
        diag = session.client.diags.start(port, kind, **how)
    try:
        with _progress(session) as show:
            last = diag
            for state in session.client.diags.watch(diag.name):
                last = state
                if session.output == "jsonl":
                    view.write(formats.to_jsonl([to_plain(state)]))
                show(state)
    except KeyboardInterrupt:
        with held():
            session.client.diags.cancel(diag.name)
        raise Interrupted(f"the test of {port} is cancelled; its link trains again") from None
    if word(last, "state") == "RUNNING":
        raise Internal(f"{port}: the daemon ended the stream before the test's end")
    return last


@contextmanager
def _progress(session: Session) -> Iterator[Any]:
    """A line that is written over, on a terminal only."""
    if not session.live:
        yield lambda diag: None
        return

    def show(diag: Any) -> None:
        done = blocks.bar(diag.done_ratio, 20).ljust(20)
        text = render.clean(f"{done} {diag.done_ratio:4.0%}  {diag.text}")
        sys.stderr.write(ERASE + render.cut(text, render.terminal_width() - 1))
        sys.stderr.flush()

    try:
        yield show
    finally:
        sys.stderr.write(ERASE)
        sys.stderr.flush()


def finish(diag: Any) -> None:
    """Ends the command as the test ended. Raises Failed unless it passed or stays open."""
    port = short(diag.link)
    state = word(diag, "state")
    if state == "FAILED":
        raise exits.Failed(f"{port}: {diag.error_detail}", exits.CONFLICT, diag.error)
    if state == "CANCELLED":
        raise exits.Failed(f"{port}: somebody cancelled the test", exits.CONFLICT, "CANCELLED")
    if word(diag, "verdict") == "FAILED":
        bad = [f"lane{lane.lane}" for lane in _lanes(diag) if word(lane, "verdict") == "FAILED"]
        named = f" on {', '.join(bad)}" if bad else ""
        raise exits.Failed(f"{port} failed the test{named}: {diag.text}", exits.FALSE, "FAILED")


def _lanes(diag: Any) -> list[Any]:
    return [*diag.errors, *diag.margins]


# ---- pictures in files ---------------------------------------------------------------------------


def save(diag: Any, svg: str | None, png: str | None) -> None:
    """Writes the pictures that were asked for. Raises Failed where there is nothing to draw."""
    if svg is not None:
        _write(svg, svg_of(diag).encode())
    if png is not None:
        from accelctl.pictures import eye

        if not any(lane.lit for lane in diag.eyes):
            raise exits.Failed("only an eye of a lit lane makes a PNG; try --svg", exits.USAGE)
        _write(png, eye.to_png(diag.eyes))


def svg_of(diag: Any) -> str:
    from accelctl.pictures import errors, eye, fec, margin

    port = short(diag.link)
    if any(lane.lit for lane in diag.eyes):
        return eye.to_svg(diag.eyes, port)
    if diag.margins:
        return margin.to_svg(diag, port)
    if diag.errors:
        return errors.to_svg(diag, port, title(diag))
    if diag.HasField("fec"):
        return fec.to_svg(diag, port)
    raise exits.Failed(f"{short(diag.name)} measured nothing to draw", exits.CONFLICT)


def _write(path: str, body: bytes) -> None:
    try:
        if path == "-":
            sys.stdout.buffer.write(body)
        else:
            Path(path).write_bytes(body)
    except OSError as error:
        raise LocalError(f"cannot write {path}: {error.strerror}", error.errno or 0) from error


def check_files(svg: str | None, png: str | None) -> None:
    """Before anything starts: a test must not run for nothing. Raises AccelError."""
    for path in (svg, png):
        if path not in (None, "-") and not Path(str(path)).absolute().parent.is_dir():
            raise LocalError(f"cannot write {path}: no such folder", 2)


# ---- words and tables ----------------------------------------------------------------------------


def title(diag: Any) -> str:
    kind = word(diag, "kind")
    return diag.pattern.upper() if kind == "PRBS" else kind.replace("_", " ").capitalize()


def verdict(message: Any) -> Cell:
    text = word(message, "verdict")
    return Cell(text, VERDICT_STYLES.get(text, ""))


def _bound(lane: Any) -> str:
    return f"{lane.ber_high:.1e}" if lane.bits else ""


def _far(lane: Any) -> str:
    text = render.optional(lane, "far_lane", str)
    return f"{text} inv" if lane.inverted else text


ERROR_COLUMNS = (
    Column("LANE", lambda n: f"lane{n.lane}"),
    Column("FAR", _far, right=True),
    Column("LOCK", lambda n: Cell("yes", "good") if n.locked else Cell("no", "bad")),
    Column("BITS", lambda n: f"{n.bits:.3g}", right=True),
    Column("ERRORS", lambda n: render.count(n.errors), right=True),
    Column("BER", lambda n: render.optional(n, "ber", render.ber), right=True),
    Column("BELOW", _bound, right=True),
    Column("SAMPLED", lambda n: render.count(n.sampled_bits) if n.sampled_bits else "",
           right=True, droppable=True, spare=True),
    Column("WRONG", lambda n: render.count(n.sampled_errors) if n.sampled_bits else "",
           right=True, droppable=True, spare=True),
    Column("VERDICT", verdict),
    Column("ABOVE", lambda n: f"{n.ber_low:.1e}" if n.ber_low else "", right=True, wide=True),
    Column("LOSSES", lambda n: str(n.lock_losses), right=True, wide=True),
)  # fmt: skip


def describe(view: View, diag: Any) -> list[str]:
    """The result for people."""
    lines = view.detail(short(diag.link), _head(diag))
    if diag.errors:
        lines += ["", *view.table(diag.errors, ERROR_COLUMNS)]
    if diag.margins:
        lines += ["", *_margins(view, diag)]
    if diag.eyes:
        lines += ["", *_eyes(view, diag)]
    if diag.HasField("fec"):
        lines += ["", *_fec(diag.fec)]
    return lines


def _head(diag: Any) -> list[render.Field]:
    seconds = f"{render.number(diag.duration_s, 3)} s"
    kind = word(diag, "kind")
    patterned = bool(diag.pattern)
    sampled = sum(lane.sampled_bits for lane in diag.errors)
    return [
        ("test", f"{short(diag.name)}, {kind.replace('_', ' ').lower()}"),
        ("state", render.state(word(diag, "state"))),
        ("pattern", f"{diag.pattern}, {diag.checker} checker" if patterned else ""),
        ("time", f"{seconds} at each attenuation" if kind == "MARGIN" else seconds)
        if kind != "EYE"
        else ("time", ""),
        (
            "wanted",
            f"BER {diag.target_ber:.2g} at {100 * diag.confidence_ratio:g} % confidence"
            if diag.errors or diag.margins
            else "",
        ),
        (
            "checked",
            f"{render.count(sampled)} bits one by one; the errors of the rest are drawn at each"
            " lane's BER"
            if sampled
            else "",
        ),
        ("result", diag.text),
        ("verdict", _verdict_text(diag)),
        ("error", Cell(f"{diag.error}: {diag.error_detail}" if diag.error else "", "bad")),
    ]


def _verdict_text(diag: Any) -> Cell:
    cell = verdict(diag)
    if cell.text == "OPEN" and diag.errors:
        needed = -math.log1p(-diag.confidence_ratio) / diag.target_ber
        most = max((lane.bits for lane in diag.errors), default=0.0)
        if most and diag.duration_s:
            wanted_s = diag.duration_s * needed / most
            text = f"OPEN: without errors, {wanted_s:.3g} s would prove it"
            return Cell(text, cell.style)
    return cell


def _margins(view: View, diag: Any) -> list[str]:
    top = max((n.margin_db for n in diag.margins if n.HasField("margin_db")), default=1.0)
    lines = []
    for lane in diag.margins:
        name = f"lane{lane.lane}".ljust(7)
        if not lane.HasField("margin_db"):
            reason = "no errors to fit" if lane.points else "no light"
            lines.append(f"{name}{reason}")
            continue
        style = VERDICT_STYLES.get(word(lane, "verdict"), "")
        drawn = blocks.bar(lane.margin_db / max(top, 0.1), BAR_WIDTH)
        painted = render.paint(drawn, style, view.session.colored)
        ends = render.optional(lane, "end_db", lambda v: f", clock lost at {v:.2f} dB")
        lines.append(f"{name}{painted} {lane.margin_db:.2f} dB{ends}")
    return lines


EYE_COLUMNS = (
    Column("LANE", lambda n: f"lane{n.lane}"),
    Column("Q", lambda n: f"{n.q:.2f}" if n.lit else Cell("no light", "bad"), right=True),
    Column("BER", lambda n: render.ber(n.ber) if n.lit else "", right=True),
    Column("AMPLITUDE uW", lambda n: f"{_swing(n):.0f}" if n.lit else "", right=True),
    Column("HEIGHT 1e-6", lambda n: _height(n, 0), right=True),
    Column("HEIGHT 1e-12", lambda n: _height(n, 1), right=True),
    Column("WIDTH 1e-6", lambda n: _width(n, 0), right=True),
    Column("WIDTH 1e-12", lambda n: _width(n, 1), right=True),
)


def _swing(eye: Any) -> float:
    return float(eye.levels_uw[-1] - eye.levels_uw[0])


def _height(eye: Any, level: int) -> str:
    """Of the smallest eye."""
    if not eye.lit:
        return ""
    height = min(opening.heights[level] for opening in eye.openings) * _swing(eye)
    return f"{height:.0f} uW" if height > 0 else "closed"


def _width(eye: Any, level: int) -> str:
    if not eye.lit:
        return ""
    width = min(opening.widths_ui[level] for opening in eye.openings)
    return f"{width:.2f} UI" if width > 0 else "closed"


def _eyes(view: View, diag: Any) -> list[str]:
    lines = view.table(diag.eyes, EYE_COLUMNS)
    lit = [eye for eye in diag.eyes if eye.lit and eye.density]
    if len(lit) != EYES_DRAWN:
        return lines
    eye = lit[0]
    drawn = blocks.eye(eye, EYE_WIDTH, EYE_HEIGHT)
    labels = {}
    for level in eye.levels_uw:
        share = (eye.high_uw - level) / (eye.high_uw - eye.low_uw)
        labels[min(int(share * EYE_HEIGHT), EYE_HEIGHT - 1)] = f"{level:.0f} uW"
    below = f"two symbols, {2 * eye.symbol_ps:.1f} ps"
    return [*lines, "", *blocks.framed(drawn, labels, below)]


def _fec(fec: Any) -> list[str]:
    counts = [*fec.bins, fec.uncorrectable]
    top = math.log10(max([*counts, 10]))
    lines = [f"{fec.code.upper()}: {fec.codewords:.4g} codewords by symbols corrected"]
    for index, count in enumerate(counts):
        name = "lost" if index == len(counts) - 1 else str(index)
        share = (math.log10(count) + 0.3) / (top + 0.3) if count else 0.0
        lines.append(
            f"{name:>4}  {blocks.bar(share, BAR_WIDTH).ljust(BAR_WIDTH)} {render.count(count)}"
        )
    return lines


__all__ = ["AccelError", "check_files", "describe", "finish", "run", "save", "svg_of", "title"]
