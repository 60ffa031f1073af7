"""`python -m accelhw.chassis`, with workers that only pretend."""

import sys
from pathlib import Path

from accelhw.chassis.__main__ import main

FAKE = (sys.executable, str(Path(__file__).with_name("fake_worker.py")))

if __name__ == "__main__":
    sys.exit(main(worker_command=FAKE))
