"""Compiles the loops of accelhw.device.bursts when the package is built or installed.

Only where a C compiler is: without one, or where it fails, the package is as whole and slower, and
`accelhw.device.native` tells why. The library knows nothing of Python, so one fits every version.
"""

import os
import platform
import shlex
import shutil
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FOLDER = "daemon/accelhw/device"
FLAGS = ("-O2", "-std=gnu11", "-shared", "-fPIC")


class NativeLoops(BuildHookInterface):  # type: ignore[misc]
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        source = Path(self.root, FOLDER, "native.c")
        library, fresh = source.with_name("_native.so"), source.with_name("_native.new.so")
        told = _compiled(source, fresh)
        if told:
            self.app.display_warning(f"the data path stays in Python: {told}")
            library.unlink(missing_ok=True)
            return
        fresh.replace(library)  # a daemon that runs keeps the one it has
        if self.target_name == "wheel":
            build_data["artifacts"].append(f"{FOLDER}/_native.so")
            build_data["pure_python"] = False
            tag = sysconfig.get_platform().replace("-", "_").replace(".", "_")
            build_data["tag"] = f"py3-none-{tag}"


def _compiled(source: Path, library: Path) -> str:
    """Why not; empty when it is."""
    try:
        compiler = shlex.split(os.environ.get("CC", "")) or _found()
    except ValueError as error:
        return f"CC: {error}"
    if platform.system() != "Linux" or not compiler:
        return "no C compiler"
    command = [*compiler, *FLAGS, "-o", str(library), str(source)]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True)
        library.stat()
    except subprocess.CalledProcessError as error:
        return _failed(command, library, error.stderr.strip() or f"status {error.returncode}")
    except OSError as error:
        return _failed(command, library, str(error))
    return ""


def _failed(command: list[str], library: Path, why: str) -> str:
    library.unlink(missing_ok=True)
    return f"{shlex.join(command)}: {why}"


def _found() -> list[str]:
    return [name for name in ("cc", "gcc", "clang") if shutil.which(name)][:1]
