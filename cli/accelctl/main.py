"""The accelctl program: signals and streams around one command line. It starts small, so that
Ctrl-C is answered well from the first moment on, while the rest still loads."""

from __future__ import annotations

import signal
import sys

STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def main() -> None:
    # Who started us may want a signal ignored (nohup, a job in the background): leave those.
    stops = [number for number in STOPS if signal.getsignal(number) is not signal.SIG_IGN]
    for number in stops:
        signal.signal(number, signal.SIG_DFL)  # Nothing is begun yet: end without a traceback.
    from accelctl import root

    root.let_print_anywhere()
    for number in stops:
        signal.signal(number, root.interrupt)  # All end as Ctrl-C does: nothing half done stays.
    sys.unraisablehook = root.interrupt_again
    code = root.run(sys.argv[1:])
    signal.setitimer(signal.ITIMER_REAL, 0)
    for number in stops:
        signal.signal(number, signal.SIG_DFL)
    root.flush()
    sys.exit(code)


if __name__ == "__main__":
    main()
