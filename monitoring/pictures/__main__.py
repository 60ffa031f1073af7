"""`python -m pictures FOLDER`: a picture of each board there, as PNG.

Without more words it runs a rack and a story of its own; with `--prometheus URL` it asks one that
runs, about its last minutes.
"""

from __future__ import annotations

import argparse
import io
import json
import sys
import tempfile
import time
import urllib.error
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from PIL import Image

from boards import daemon
from boards.__main__ import BOARDS
from boards.grafana import Span
from pictures.answers import NothingThere, answer
from pictures.draw import draw
from pictures.prometheus import Prometheus, Refused
from pictures.rack import watched

BOARDS_FOLDER = Path(__file__).resolve().parent.parent / "dashboards"
MOST_BYTES = 145_000  # of a picture
COLOURS = (192, 128, 96, 64, 48)
STEPS = 180  # of the time shown
OF_STORY: dict[str, dict[str, Any]] = {  # what the story is about, where a board shows one thing
    "accel-link": {"card": "card1", "oe": "oe1"},
    "accel-lanes": {"card": ["card0", "card2", "card5"]},
}


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="pictures", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--prometheus", metavar="URL", help="one that scrapes acceld")
    parser.add_argument("--minutes", type=float, default=60, help="so far back; default 60")
    parser.add_argument("--scrape", type=float, default=15, help="its interval, s; default 15")
    asked = parser.parse_args(words)
    asked.folder.mkdir(parents=True, exist_ok=True)
    if asked.prometheus:
        end_s = time.time()
        span_s = asked.minutes * 60
        span = Span(end_s - span_s, end_s, max(span_s / STEPS, asked.scrape), asked.scrape)
        try:
            paint(asked.folder, Prometheus(asked.prometheus), span, {})
        except (NothingThere, Refused, urllib.error.URLError) as error:
            print(f"pictures: {asked.prometheus}: {error}", file=sys.stderr)
            return 1
        return 0
    with tempfile.TemporaryDirectory() as folder, watched(Path(folder)) as rack:
        told = rack.tell()
        paint(asked.folder, rack.prometheus, told.faults, OF_STORY)
        paint(asked.folder, rack.prometheus, told.all_until_the_peak, OF_STORY, (daemon,))
    return 0


def paint(
    folder: Path,
    prometheus: Prometheus,
    span: Span,
    wanted: Mapping[str, Mapping[str, Any]],
    boards: Sequence[Any] = BOARDS,
) -> None:
    for module in boards:
        board = json.loads((BOARDS_FOLDER / f"{module.UID}.json").read_text())
        answered = answer(board, prometheus, span, wanted.get(module.UID, {}))
        raw = io.BytesIO()
        draw(answered).savefig(raw, format="png")
        (folder / f"{module.UID}.png").write_bytes(_small(Image.open(raw).convert("RGB")))


def _small(image: Image.Image) -> bytes:
    """As PNG with as many colours as leave it small."""
    for colours in COLOURS:
        png = io.BytesIO()
        image.quantize(colours, dither=Image.Dither.NONE).save(png, "PNG", optimize=True)
        if png.tell() < MOST_BYTES:
            break
    return png.getvalue()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
