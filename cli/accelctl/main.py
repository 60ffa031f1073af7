"""The accelctl program: signals and streams around one command line. It starts small, so that
Ctrl-C is answered well from the first moment on, while the rest still loads."""

from __future__ import annotations

import io
import os
import signal
import sys
from types import FrameType

STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def main() -> None:
    # Who started us may want a signal ignored (nohup, a job in the background): leave those.
    stops = [number for number in STOPS if signal.getsignal(number) is not signal.SIG_IGN]
    _answer(stops, signal.SIG_DFL)  # Nothing is begun yet: end at once, without a traceback.
    from accelctl.root import run

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # A terminal without … gets a ? instead.
    _answer(stops, _interrupt)  # All end as Ctrl-C does: nothing half done stays.
    code = run(sys.argv[1:])
    _answer(stops, signal.SIG_DFL)
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code)


def _answer(stops: list[signal.Signals], handler: signal._HANDLER) -> None:
    for number in stops:
        signal.signal(number, handler)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    main()
