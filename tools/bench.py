"""Runs each script of benchmarks/ and prints its answer as a table; all in build/bench.json too."""

from __future__ import annotations

import json
import platform
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULT = ROOT / "build/bench.json"


def main() -> int:
    options = list(sys.argv[1:])
    if shutil.which("iperf3") is None:
        print("iperf3 is not installed, so there is nothing to compare with (apt install iperf3)")
        options.append("--no-iperf")
    answers: dict[str, object] = {"machine": platform.platform()}
    failed = 0
    for script in sorted((ROOT / "benchmarks").glob("*.py")):
        command = [sys.executable, str(script), "--json", *options]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode != 0:
            failed += 1
            continue
        answer = json.loads(done.stdout)
        answers[script.stem] = answer
        print(f"\n{script.stem}")
        for key, value in answer.items():
            print(f"  {key:<28} {value}")
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps(answers, indent=2) + "\n")
    print(f"\nalso in {RESULT.relative_to(ROOT)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
