"""Refusals to gRPC statuses with google.rpc.ErrorInfo, in one place for all methods."""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeVar

import grpc
import structlog
from google.protobuf import any_pb2
from google.rpc import error_details_pb2, status_pb2
from grpc import StatusCode

from acceld.errors import (
    AlreadyExists,
    Denied,
    Exhausted,
    Incomplete,
    InvalidRequest,
    NotFound,
    OutOfRange,
    Refusal,
    Unavailable,
    WrongState,
)

log = structlog.get_logger()

DOMAIN = "acceld"
DETAILS_KEY = "grpc-status-details-bin"

# A status goes out in the trailers, which hold 8 KiB in all: the sentence twice, once with three
# bytes for each that is not ASCII. What a caller sent comes back in it, and may be longer.
WORD_CHARS_MAX = 160  # the longest names there are, one in the other
WORD_CHARS_KEPT = 60
WORD_CHARS_TAIL = 3  # a quote, and what divides it from the rest of the sentence
SENTENCE_BYTES_MAX = 1000
SENTENCE_BYTES_TAIL = 300  # what would have worked stands at the end
VALUE_BYTES_MAX = 200
CUT = "…"

_LONG_WORD = re.compile(rf"\S{{{WORD_CHARS_MAX + 1},}}")

T = TypeVar("T")

STATUS: dict[type[Refusal], StatusCode] = {
    NotFound: StatusCode.NOT_FOUND,
    InvalidRequest: StatusCode.INVALID_ARGUMENT,
    OutOfRange: StatusCode.OUT_OF_RANGE,
    WrongState: StatusCode.FAILED_PRECONDITION,
    AlreadyExists: StatusCode.ALREADY_EXISTS,
    Exhausted: StatusCode.RESOURCE_EXHAUSTED,
    Denied: StatusCode.PERMISSION_DENIED,
    Unavailable: StatusCode.UNAVAILABLE,
    Incomplete: StatusCode.ABORTED,
}


def short_enough(text: str, bytes_max: int, bytes_tail: int = 0) -> str:
    """The text with its endless words cut, and then its middle, until it fits."""
    text = _LONG_WORD.sub(_short_word, text)
    data = text.encode(errors="replace")
    if len(data) <= bytes_max:
        return data.decode()
    head, tail = data[: bytes_max - bytes_tail], data[len(data) - bytes_tail :]
    return head.decode(errors="ignore") + CUT + tail.decode(errors="ignore")


def _short_word(match: re.Match[str]) -> str:
    word = match[0]
    return word[:WORD_CHARS_KEPT] + CUT + word[-WORD_CHARS_TAIL:]


def details_of(code: StatusCode, refusal: Refusal, message: str) -> bytes:
    """A serialised google.rpc.Status with the refusal as ErrorInfo."""
    info = error_details_pb2.ErrorInfo(
        reason=refusal.reason,
        domain=DOMAIN,
        metadata={
            key: short_enough(value, VALUE_BYTES_MAX) for key, value in refusal.metadata.items()
        },
    )
    detail = any_pb2.Any()
    detail.Pack(info)
    status = status_pb2.Status(code=code.value[0], message=message, details=[detail])
    return bytes(status.SerializeToString())


async def _refuse(context: Any, refusal: Refusal) -> None:
    code = STATUS[type(refusal)]
    message = short_enough(refusal.message, SENTENCE_BYTES_MAX, SENTENCE_BYTES_TAIL)
    await context.abort(code, message, ((DETAILS_KEY, details_of(code, refusal, message)),))


async def _fail(context: Any, method: str) -> None:
    log.exception("rpc_failed", method=method)
    await context.abort(
        StatusCode.INTERNAL,
        "the daemon failed in an unforeseen way; its log has the details",
    )


def guarded(servicer: T) -> T:
    """The servicer with every method of its API answering refusals as statuses.

    Done once, when the server is built: an interceptor of grpc.aio would do the same at each call,
    for 150 us.
    """
    methods: list[tuple[str, Any]] = inspect.getmembers(servicer, callable)
    for name, method in methods:
        if not name[0].isupper():
            continue
        wrap = _streaming if inspect.isasyncgenfunction(method) else _single
        setattr(servicer, name, wrap(method, f"{type(servicer).__name__}.{name}"))
    return servicer


def _single(inner: Callable[..., Awaitable[Any]], method: str) -> Any:
    async def call(request: Any, context: Any) -> Any:
        try:
            return await inner(request, context)
        except Refusal as refusal:
            await _refuse(context, refusal)
        except (grpc.aio.AbortError, asyncio.CancelledError):
            raise
        except Exception:
            await _fail(context, method)

    return call


def _streaming(inner: Callable[..., AsyncIterator[Any]], method: str) -> Any:
    async def call(request: Any, context: Any) -> AsyncIterator[Any]:
        try:
            async for message in inner(request, context):
                yield message
        except Refusal as refusal:
            await _refuse(context, refusal)
        except (grpc.aio.AbortError, asyncio.CancelledError):
            raise
        except Exception:
            await _fail(context, method)

    return call
