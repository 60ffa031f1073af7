"""Refusals to gRPC statuses with google.rpc.ErrorInfo, in one interceptor for all methods."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

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


class RefusalInterceptor(grpc.aio.ServerInterceptor):  # type: ignore[misc, unused-ignore]
    async def intercept_service(
        self,
        continuation: Callable[[Any], Awaitable[Any]],
        handler_call_details: Any,
    ) -> Any:
        handler = await continuation(handler_call_details)
        if handler is None:
            return None
        method = handler_call_details.method
        if handler.response_streaming:
            inner = handler.stream_stream if handler.request_streaming else handler.unary_stream
            wrap = _streaming(inner, method)
            make = (
                grpc.stream_stream_rpc_method_handler
                if handler.request_streaming
                else grpc.unary_stream_rpc_method_handler
            )
        else:
            inner = handler.stream_unary if handler.request_streaming else handler.unary_unary
            if not asyncio.iscoroutinefunction(inner):
                return handler  # Health and reflection come with servicers of their own making.
            wrap = _single(inner, method)
            make = (
                grpc.stream_unary_rpc_method_handler
                if handler.request_streaming
                else grpc.unary_unary_rpc_method_handler
            )
        return make(wrap, handler.request_deserializer, handler.response_serializer)


def _single(inner: Any, method: str) -> Any:
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


def _streaming(inner: Any, method: str) -> Any:
    async def call(request: Any, context: Any) -> AsyncIterator[Any]:
        try:
            answer = inner(request, context)
            if not hasattr(answer, "__aiter__"):  # Writes by itself (health's Watch).
                await answer
                return
            async for message in answer:
                yield message
        except Refusal as refusal:
            await _refuse(context, refusal)
        except (grpc.aio.AbortError, asyncio.CancelledError, GeneratorExit):
            raise
        except Exception:
            await _fail(context, method)

    return call
