"""Makes the Python modules of accel.v1 from proto/ into a folder: `proto.py FOLDER`."""

from __future__ import annotations

import sys
from pathlib import Path

import grpc_tools
from grpc_tools import protoc

PROTO = Path(__file__).resolve().parent.parent / "proto"
WELL_KNOWN = Path(grpc_tools.__file__).parent / "_proto"


def generate(target: Path) -> None:
    """Write the modules below `target`. Raises SystemExit on bad proto files."""
    outs = [f"--{kind}_out={target}" for kind in ("python", "pyi", "grpc_python")]
    sources = sorted(str(path) for path in PROTO.rglob("*.proto"))
    if protoc.main(["protoc", f"-I{PROTO}", f"-I{WELL_KNOWN}", *outs, *sources]):
        raise SystemExit("protoc refused the proto files")


if __name__ == "__main__":
    generate(Path(sys.argv[1]))
