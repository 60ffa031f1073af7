"""Logs as facts with fields: readable on a terminal, JSON otherwise, on stderr."""

from __future__ import annotations

import logging
import sys

import structlog

FORMATS = ("auto", "json", "console")


def chosen(log_format: str) -> str:
    """`auto` resolved by what stderr is."""
    if log_format != "auto":
        return log_format
    return "console" if sys.stderr.isatty() else "json"


def configure(log_format: str) -> None:
    """For this process; `log_format` is "console" or "json"."""
    renderer: structlog.typing.Processor
    if log_format == "console":
        # Rich tracebacks would load a library that a chassis has no other use for.
        renderer = structlog.dev.ConsoleRenderer(
            colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
        )
        times = structlog.processors.TimeStamper(fmt="%H:%M:%S.%f", utc=False)
        errors: list[structlog.typing.Processor] = []
    else:
        renderer = structlog.processors.JSONRenderer()
        times = structlog.processors.TimeStamper(fmt="iso", utc=True)
        errors = [structlog.processors.dict_tracebacks]
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            times,
            *errors,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.WriteLoggerFactory(file=sys.stderr),
        cache_logger_on_first_use=True,
    )
