"""`python -m boards FOLDER` writes each board as JSON there, and removes those that are no more."""

from __future__ import annotations

import sys
from pathlib import Path

from boards import card, daemon, fleet, hbm, lanes, link, page, training, transfers

BOARDS = (fleet, card, lanes, link, training, hbm, transfers, daemon)


def texts() -> dict[str, str]:
    """The JSON of each board by its file's name."""
    return {f"{module.UID}.json": page.text(module.build()) for module in BOARDS}


def main(folder: Path) -> int:
    made = texts()
    for name, text in made.items():
        (folder / name).write_text(text)
    for old in set(folder.glob("*.json")) - {folder / name for name in made}:
        old.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
