"""What a card says to a command that it cannot carry out."""

from __future__ import annotations


class EngineRefusal(Exception):
    """A command that cannot be done; `code` is one of COMPLETION_ERRORS."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(f"{code}: {detail}")
        self.code = code
        self.detail = detail
