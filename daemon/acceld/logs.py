"""Logs as facts with fields: readable on a terminal, a JSON object a line otherwise."""

from __future__ import annotations

import sys
from typing import TextIO

import structlog

LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}


def configure(log_format: str = "auto", level: str = "info", stream: TextIO | None = None) -> None:
    """`log_format` is auto, json or console; auto looks whether the stream is a terminal."""
    out = stream if stream is not None else sys.stderr
    is_console = log_format == "console" or (log_format == "auto" and out.isatty())
    tail: list[structlog.typing.Processor]
    if is_console:
        stamp = structlog.processors.TimeStamper(fmt="%H:%M:%S.%f", utc=False)
        tail = [stamp, structlog.dev.ConsoleRenderer(colors=out.isatty())]
    else:
        stamp = structlog.processors.TimeStamper(fmt="iso", utc=True)
        tail = [
            stamp,
            structlog.processors.dict_tracebacks,
            structlog.processors.JSONRenderer(default=str),
        ]
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            *tail,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(LEVELS[level]),
        logger_factory=structlog.PrintLoggerFactory(out),
        cache_logger_on_first_use=True,
    )
