"""A site says once where it keeps its runbooks, and every alert leads there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent.parent
TOOL = ROOT / "tools/monitoring.py"
PAGES = {page.stem for page in (ROOT / "docs/runbooks").glob("*.md")}


def install(runbooks: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, TOOL, "--runbooks", runbooks, folder],
        capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.mark.parametrize(
    "runbooks",
    ["https://wiki.example.com/acceld/", "http://runbooks", "file:///usr/share/doc/acceld"],
)
def test_every_alert_leads_to_where_the_site_keeps_its_pages(runbooks: str, tmp_path: Path) -> None:
    folder = tmp_path / "monitoring"
    done = install(runbooks, folder)
    base = runbooks.rstrip("/")
    alerts = [
        rule
        for file in sorted((folder / "alerts").glob("*.rules.yml"))
        for group in yaml.safe_load(file.read_text())["groups"]
        for rule in group["rules"]
        if "alert" in rule
    ]
    assert done.stdout == f"{folder}: {len(alerts)} alerts lead to {base}/\n"
    assert {rule["annotations"]["runbook_url"] for rule in alerts} == {
        f"{base}/{rule['alert']}.md" for rule in alerts
    }
    assert {rule["alert"] for rule in alerts} <= PAGES


def test_all_else_is_as_it_is_here(tmp_path: Path) -> None:
    assert install("https://acceld.example/docs/runbooks", tmp_path).returncode == 0
    made = sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*.yml"))
    assert [str(path) for path in made] == [
        "alertmanager.yml", "alerts/cards.rules.yml", "alerts/causes.rules.yml",
        "alerts/host.rules.yml", "alerts/lanes.rules.yml", "alerts/links.rules.yml",
        "alerts/records.rules.yml", "prometheus.yml",
    ]  # fmt: skip
    for path in made:
        assert (tmp_path / path).read_text() == (ROOT / "monitoring" / path).read_text()


@pytest.mark.parametrize(
    "text", ["", "wiki/acceld", "ftp://wiki/acceld", "https://", 'http://a/"b']
)
def test_what_is_no_address_is_refused_before_anything_is_written(
    text: str, tmp_path: Path
) -> None:
    done = install(text, tmp_path / "monitoring")
    assert done.returncode == 2
    assert "use RUNBOOKS=https://wiki.example.com/acceld" in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "monitoring").exists()
