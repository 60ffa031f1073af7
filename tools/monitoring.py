"""Makes what a Prometheus and an Alertmanager are installed with, for one site:
`monitoring.py --runbooks URL FOLDER`.

Rules in `monitoring/alerts/` name their page under PLACEHOLDER, a host that cannot exist. Here the
site says where it keeps `docs/runbooks/`; the rest is copied as it is.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path
from urllib.parse import urlsplit

MONITORING = Path(__file__).resolve().parent.parent / "monitoring"
PLACEHOLDER = "https://acceld.example/docs/runbooks"
CONFIGURATIONS = ("prometheus.yml", "alertmanager.yml")
SCHEMES = ("https", "http", "file")


class BadUrl(ValueError):
    """No place for pages; the message says what is."""


def base_url(text: str) -> str:
    """Without the slash at its end. Raises BadUrl."""
    parts = urlsplit(text)
    placed = parts.netloc if parts.scheme != "file" else parts.path
    if parts.scheme not in SCHEMES or not placed or parts.query or set(text) & set("\"'\\ \n"):
        raise BadUrl(
            f"{text!r} is no address for pages; use RUNBOOKS=https://wiki.example.com/acceld,"
            " so that AccelLinkDown is at https://wiki.example.com/acceld/AccelLinkDown.md"
        )
    return text.rstrip("/")


def install(folder: Path, runbooks: str) -> int:
    """Gives the number of links that were set. Raises BadUrl, OSError."""
    base = base_url(runbooks)
    alerts = folder / "alerts"
    alerts.mkdir(parents=True, exist_ok=True)
    for name in CONFIGURATIONS:
        shutil.copyfile(MONITORING / name, folder / name)
    links = 0
    for rules in sorted((MONITORING / "alerts").glob("*.rules.yml")):
        text = rules.read_text("utf-8")
        links += text.count(f"{PLACEHOLDER}/")
        (alerts / rules.name).write_text(text.replace(f"{PLACEHOLDER}/", f"{base}/"), "utf-8")
    return links


def main() -> int:
    parser = argparse.ArgumentParser(prog="monitoring.py", description=__doc__.partition("\n")[0])
    parser.add_argument("--runbooks", required=True, metavar="URL")
    parser.add_argument("folder", type=Path)
    chosen = parser.parse_args()
    try:
        links = install(chosen.folder, chosen.runbooks)
    except BadUrl as error:
        print(f"monitoring.py: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"monitoring.py: {error.filename}: {error.strerror}", file=sys.stderr)
        return 1
    print(f"{chosen.folder}: {links} alerts lead to {base_url(chosen.runbooks)}/")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
