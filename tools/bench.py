"""Runs the scripts of benchmarks/, prints each answer as a table, and keeps all of them.

build/bench.json has every figure of every round; build/bench.svg draws the ratios, and
build/bench-scale.svg how the cost of a rack grows.

    python tools/bench.py [--only hbm_copy,rpc] [--repeats N] [--full] [--list]
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SCRIPTS = ROOT / "benchmarks"
RESULT = ROOT / "build/bench.json"
PICTURE = ROOT / "build/bench.svg"
SCALE = ROOT / "build/bench-scale.svg"
sys.path.append(str(SCRIPTS))

from support import picture  # noqa: E402
from support.answer import table  # noqa: E402

from accelhw.device import native  # noqa: E402


def main() -> int:
    known = sorted(path.stem for path in SCRIPTS.glob("*.py"))
    options = _options(known)
    chosen = [name for name in known if name in options.only] if options.only else known
    if options.list:
        for name in known:
            print(f"{name:<16} {_question(name)}")
        return 0
    result: dict[str, Any] = {"machine": machine(), "answers": {}}
    failed = []
    for name in chosen:
        began_s = time.monotonic()
        answer = ask(name, options)
        if answer is None:
            failed.append(name)
            continue
        result["answers"][name] = answer
        print(
            "\n".join(table(answer)), f"  ({name}, {time.monotonic() - began_s:.0f} s)\n", sep="\n"
        )
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps(result, indent=2) + "\n")
    PICTURE.write_text(picture.draw(result))
    if "scale" in result["answers"]:
        SCALE.write_text(picture.draw_scale(result["answers"]["scale"], result["machine"]))
    print(f"all figures: {RESULT.relative_to(ROOT)}; drawn: {PICTURE.relative_to(ROOT)}")
    missed = [
        f"{name}: {line['what']}"
        for name, answer in result["answers"].items()
        for line in answer["lines"]
        if line.get("met") is False
    ]
    for one in missed:
        print(f"goal missed: {one}")
    for name in failed:
        print(f"failed: {name}", file=sys.stderr)
    return 1 if failed else 0


def _options(known: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--only", default="", help="names, with commas")
    parser.add_argument("--repeats", type=int, help="rounds that count, of each script")
    parser.add_argument("--full", action="store_true", help="sizes for a quiet machine and time")
    parser.add_argument("--list", action="store_true", help="the questions")
    options = parser.parse_args()
    options.only = [name for name in options.only.replace(" ", ",").split(",") if name]
    for name in options.only:
        if name not in known:
            parser.error(f"no benchmark {name!r}; there is {', '.join(known)}")
    if options.repeats is not None and options.repeats < 1:
        parser.error("--repeats: at least one round")
    return options


def ask(name: str, options: argparse.Namespace) -> dict[str, Any] | None:
    """A script's answer; None when it failed, which it has told on stderr."""
    command = [sys.executable, str(SCRIPTS / f"{name}.py"), "--json"]
    command += [f"--repeats={options.repeats}"] if options.repeats else []
    command += ["--full"] if options.full else []
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        return None
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def machine() -> dict[str, Any]:
    """What the figures depend on."""
    cpu = next(
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        platform.machine(),
    )
    return {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "cpu": cpu,
        "cpus": len(os.sched_getaffinity(0)),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "data_path": native.told(),
        "load_before": round(os.getloadavg()[0], 2),
    }


def _question(name: str) -> str:
    head = (SCRIPTS / f"{name}.py").read_text().partition('"""')[2]
    return head.partition("\n\n")[0].partition('"""')[0].replace("\n", " ")


if __name__ == "__main__":
    sys.exit(main())
