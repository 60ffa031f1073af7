"""Habits that ruff has no rule for."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
OURS = sorted(
    path
    for folder in ("daemon", "cli", "sdk/accel", "tools", "monitoring", "benchmarks", "tests")
    for path in (ROOT / folder).rglob("*.py")
    if "sdk/accel/v1" not in str(path) and path.stat().st_size
)


@pytest.mark.parametrize("path", OURS, ids=lambda p: str(p.relative_to(ROOT)))
def test_a_file_opens_with_what_it_is_for(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text())), f"{path} needs a docstring"


@pytest.mark.parametrize("path", OURS, ids=lambda p: str(p.relative_to(ROOT)))
def test_nobody_runs_code_between_fork_and_exec(path: Path) -> None:
    """There the threads of gRPC are missing; without, Python starts programs by vfork."""
    calls = (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call))
    assert not [call.lineno for call in calls for word in call.keywords if word.arg == "preexec_fn"]


def test_the_changelog_names_the_version() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert re.search(rf"^## {re.escape(version)}\b", (ROOT / "CHANGELOG.md").read_text(), re.M)


@pytest.mark.parametrize("page", sorted(ROOT.glob("docs/**/*.md")) + sorted(ROOT.glob("*.md")),
                         ids=lambda p: p.name)  # fmt: skip
def test_links_inside_the_docs_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
        assert (page.parent / target).exists(), f"{page}: {target}"
