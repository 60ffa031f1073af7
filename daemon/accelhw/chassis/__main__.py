"""`python -m accelhw.chassis --config FILE`: the emulated hardware as a process of its own."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from accelhw.chassis.notify import notify
from accelhw.chassis.process import allow_many_files, die_with_parent, keep_rights_to_ourselves
from accelhw.interface import place
from accelhw.model.config import Config
from accelhw.model.configfile import load, render

EXIT_OK = 0
EXIT_USAGE = 2
EXIT_NOT_FOUND = 3
EXIT_DENIED = 4
EXIT_PRECONDITION = 6
EXIT_INTERNAL = 70
EXIT_INTERRUPTED = 130


class Failure(Exception):
    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def main(
    arguments: Sequence[str] | None = None, worker_command: Sequence[str] | None = None
) -> int:
    options = _parse(arguments)
    if options.die_with_parent:
        # SIGTERM and not SIGKILL: there are interfaces to remove.
        die_with_parent(os.getppid(), signal.SIGTERM)
    keep_rights_to_ourselves()
    allow_many_files()
    try:
        config = _read(options.config)
        return asyncio.run(_run(config, options.socket, options.log_format, worker_command))
    except Failure as failure:
        print(failure, file=sys.stderr)
        return failure.status
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="acceld chassis", description="Run the emulated hardware of a configuration."
    )
    parser.add_argument("--config", metavar="FILE", type=Path, required=True)
    parser.add_argument(
        "--socket",
        metavar="PATH",
        type=Path,
        default=default_socket(),
        help="where a driver attaches (default: %(default)s; ACCEL_HARDWARE_SOCKET overrides)",
    )
    parser.add_argument(
        "--die-with-parent", action="store_true", help="power off when the starting process ends"
    )
    parser.add_argument("--log-format", choices=("auto", "json", "console"), default="auto")
    return parser.parse_args(arguments)


def default_socket() -> Path:
    """The hardware socket where nobody says otherwise."""
    if chosen := os.environ.get("ACCEL_HARDWARE_SOCKET"):
        return Path(chosen)
    folder = place.SYSTEM_FOLDER if place.is_system() else place.user_folder()
    return folder / "hardware.sock"


def _read(path: Path) -> Config:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise Failure(EXIT_NOT_FOUND, f"there is no file {path}; try examples/pair.toml") from None
    except PermissionError:
        raise Failure(EXIT_DENIED, f"{path} cannot be read: permission denied") from None
    except (OSError, UnicodeDecodeError) as error:
        raise Failure(EXIT_USAGE, f"{path} cannot be read: {error}") from None
    config = load(text)
    if not isinstance(config, Config):
        raise Failure(EXIT_USAGE, render(config, str(path)))
    return config


async def _run(
    config: Config, socket: Path, log_format: str, worker_command: Sequence[str] | None
) -> int:
    import structlog

    from accelhw.chassis import logs  # Late, so that a mistake in the file is told at once.
    from accelhw.chassis.app import Chassis
    from accelhw.chassis.device_server import SocketInUse
    from accelhw.chassis.fabric import FabricDenied, FabricError
    from accelhw.chassis.memory import NotEnoughMemory
    from accelhw.chassis.supervisor import WORKER_COMMAND
    from accelhw.device import native

    log_format = logs.chosen(log_format)
    logs.configure(log_format)
    loop = asyncio.get_running_loop()
    asked: asyncio.Future[int] = loop.create_future()

    def ask(status: int) -> None:
        if not asked.done():
            asked.set_result(status)

    loop.add_signal_handler(signal.SIGTERM, ask, EXIT_OK)
    loop.add_signal_handler(signal.SIGHUP, ask, EXIT_OK)  # The terminal went: clean up, too.
    loop.add_signal_handler(signal.SIGINT, ask, EXIT_INTERRUPTED)

    chassis = Chassis(
        config,
        socket,
        worker_command=worker_command or WORKER_COMMAND,
        log_format=log_format,
    )
    try:
        await chassis.start()
    except SocketInUse as error:
        raise Failure(EXIT_PRECONDITION, str(error)) from error
    except (NotEnoughMemory, FabricError) as error:
        denied = isinstance(error, FabricDenied)
        raise Failure(EXIT_DENIED if denied else EXIT_PRECONDITION, str(error)) from error
    except PermissionError as error:
        raise Failure(EXIT_DENIED, f"{error.filename or socket}: {error.strerror}") from error
    except OSError as error:
        raise Failure(EXIT_PRECONDITION, f"the chassis cannot start: {error}") from error
    structlog.get_logger().info("data_path", loops=native.told())
    notify(f"READY=1\nSTATUS={len(config.cards)} cards, {len(config.fibres)} fibres")
    running = asyncio.create_task(chassis.run())
    ends: list[asyncio.Future[Any]] = [asked, running]
    await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    if running.done() and not asked.done():
        structlog.get_logger().error("chassis_broke", exc_info=running.exception())
        ask(EXIT_INTERNAL)
    notify("STOPPING=1")
    await chassis.stop()
    await asyncio.gather(running, return_exceptions=True)
    return asked.result()


if __name__ == "__main__":
    sys.exit(main())
