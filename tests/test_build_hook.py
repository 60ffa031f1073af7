"""The hook that compiles the loops in C: whatever the compiler does, the package installs.

hatchling is there only while a package is built; a module without content stands in for it.
"""

from __future__ import annotations

import ctypes
import importlib.util
import platform
import re
import shutil
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
HOOK = "hatchling.builders.hooks.plugin.interface"
SOURCE = "unsigned answer(void) { return 42; }\n"
COMPILER = next((name for name in ("cc", "gcc", "clang") if shutil.which(name)), None)

pytestmark = pytest.mark.skipif(platform.system() != "Linux", reason="it compiles on Linux alone")


@pytest.fixture
def hook(monkeypatch) -> Any:
    """tools/hatch_build.py as a module."""
    parts = HOOK.split(".")
    for count in range(1, len(parts) + 1):
        name = ".".join(parts[:count])
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    sys.modules[HOOK].BuildHookInterface = object  # type: ignore[attr-defined]
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "tools" / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def folder(tmp_path, hook) -> Path:
    """A tree with the source in its place."""
    made: Path = tmp_path / hook.FOLDER
    made.mkdir(parents=True)
    (made / "native.c").write_text(SOURCE)
    return made


def build(hook: Any, root: Path, target: str = "wheel") -> tuple[dict[str, Any], list[str]]:
    """What the hook adds to a build, and what it warned of."""
    warnings: list[str] = []
    loops = hook.NativeLoops()
    loops.root, loops.target_name = str(root), target
    loops.app = SimpleNamespace(display_warning=warnings.append)
    data: dict[str, Any] = {"artifacts": []}
    loops.initialize("standard", data)
    return data, warnings


@pytest.mark.parametrize(
    ("compiler", "told"),
    [
        ("false", r"^the data path stays in Python: false -O2 .*native\.c: status 1$"),
        ("true", r"^the data path stays in Python: true .*No such file"),
        ("/nowhere/cc -m64", r"^the data path stays in Python: /nowhere/cc -m64 .*No such file"),
        ("cc '", r"^the data path stays in Python: CC: No closing quotation$"),
    ],
)
def test_a_compiler_that_fails_costs_speed_alone(
    hook, tmp_path, folder, monkeypatch, compiler, told
) -> None:
    (folder / "_native.so").write_text("of an older source")
    monkeypatch.setenv("CC", compiler)
    data, (warning,) = build(hook, tmp_path)
    assert data == {"artifacts": []}  # a wheel for every machine
    assert re.search(told, warning)
    assert [path.name for path in folder.iterdir()] == ["native.c"]


def test_without_a_compiler_nothing_is_asked_for(hook, tmp_path, folder, monkeypatch) -> None:
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    _, warnings = build(hook, tmp_path)
    assert warnings == ["the data path stays in Python: no C compiler"]


def test_a_compiler_that_gives_up_half_way_leaves_nothing(
    hook, tmp_path, folder, monkeypatch
) -> None:
    script = tmp_path / "half"
    script.write_text('#!/bin/sh\nwhile [ "$1" != -o ]; do shift; done\n'
                      'echo half > "$2"; echo "no space" >&2; exit 1\n')  # fmt: skip
    script.chmod(0o755)
    monkeypatch.setenv("CC", str(script))
    _, (warning,) = build(hook, tmp_path)
    assert warning.endswith(": no space")
    assert [path.name for path in folder.iterdir()] == ["native.c"]


if COMPILER:

    def test_what_the_compiler_says_is_told(hook, tmp_path, folder, monkeypatch) -> None:
        monkeypatch.setenv("CC", COMPILER)
        (folder / "native.c").write_text("no C at all")
        _, (warning,) = build(hook, tmp_path)
        assert re.search(r"native\.c:1:.*error", warning)
        assert [path.name for path in folder.iterdir()] == ["native.c"]

    @pytest.mark.parametrize("words", ["", " -O1", " -O1 -DNAME='two words'"])
    @pytest.mark.parametrize(("target", "added"), [("wheel", True), ("sdist", False)])
    def test_a_compiler_makes_a_wheel_for_this_machine(
        hook, tmp_path, folder, monkeypatch, words, target, added
    ) -> None:
        (folder / "_native.so").write_text("of an older source")
        monkeypatch.setenv("CC", COMPILER + words)
        data, warnings = build(hook, tmp_path, target)
        assert warnings == []
        assert ctypes.CDLL(str(folder / "_native.so")).answer() == 42
        assert sorted(path.name for path in folder.iterdir()) == ["_native.so", "native.c"]
        assert data["artifacts"] == ([f"{hook.FOLDER}/_native.so"] if added else [])
        if added:
            assert data["pure_python"] is False
            assert re.fullmatch(r"py3-none-linux_\w+", data["tag"])
