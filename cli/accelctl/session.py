"""What one run of accelctl knows: where the daemon is, how to print, and its client."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from accel import Client

FORMATS = ("table", "wide", "json", "jsonl", "yaml", "csv", "name")
TIMEOUT_S = 10.0


@dataclass(slots=True)
class Session:
    socket: str | None = None
    timeout_s: float = TIMEOUT_S
    output: str = "table"
    watch_s: float | None = None
    color: str = "auto"
    _client: Client | None = None

    @property
    def client(self) -> Client:
        """Made at the first use: help and mistakes need none."""
        if self._client is None:
            os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # Its log lines are not for users.
            from accel import Client

            self._client = Client(self.socket, timeout_s=self.timeout_s)
        return self._client

    def close(self) -> None:
        if self._client is not None:
            self._client.close()

    @property
    def human(self) -> bool:
        return self.output in ("table", "wide")

    @property
    def json(self) -> bool:
        return self.output in ("json", "jsonl")

    @property
    def colored(self) -> bool:
        if self.color != "auto":
            return self.color == "always"
        return (
            sys.stdout.isatty()
            and not os.environ.get("NO_COLOR")
            and os.environ.get("TERM") != "dumb"
        )

    @property
    def live(self) -> bool:
        """Whether to draw progress: a person looks at stderr and wants words, not data."""
        return self.human and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
