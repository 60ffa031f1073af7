"""Refusals to gRPC statuses with google.rpc.ErrorInfo, in one place for all methods."""

from __future__ import annotations

import asyncio
import inspect
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


def details_of(code: StatusCode, refusal: Refusal) -> bytes:
    """A serialised google.rpc.Status with the refusal as ErrorInfo."""
    info = error_details_pb2.ErrorInfo(
        reason=refusal.reason, domain=DOMAIN, metadata=refusal.metadata
    )
    detail = any_pb2.Any()
    detail.Pack(info)
    status = status_pb2.Status(code=code.value[0], message=refusal.message, details=[detail])
    return bytes(status.SerializeToString())


async def _refuse(context: Any, refusal: Refusal) -> None:
    code = STATUS[type(refusal)]
    await context.abort(code, refusal.message, ((DETAILS_KEY, details_of(code, refusal)),))


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
