"""What the fake daemon's services have in common: refusals, look-ups and pages."""

from __future__ import annotations

from typing import Any

import grpc
from google.protobuf import any_pb2
from google.rpc import error_details_pb2, status_pb2

from .fake_state import State


def refuse(context: Any, status: str, reason: str, message: str, **metadata: str) -> None:
    """Aborts as the daemon does: a status with ErrorInfo inside."""
    code = getattr(grpc.StatusCode, status)
    detail = any_pb2.Any()
    detail.Pack(error_details_pb2.ErrorInfo(reason=reason, domain="acceld", metadata=metadata))
    body = status_pb2.Status(code=code.value[0], message=message, details=[detail])
    context.set_trailing_metadata((("grpc-status-details-bin", body.SerializeToString()),))
    context.abort(code, message)


class Servicer:
    def __init__(self, state: State) -> None:
        self.state = state

    def find(self, items: Any, name: str, what: str, context: Any) -> Any:
        found = next((item for item in items if item.name == name), None)
        if found is None:
            refuse(
                context,
                "NOT_FOUND",
                f"{what.upper()}_NOT_FOUND",
                f"no {what} {name.removeprefix('cards/')}",
                name=name,
            )
        return found

    def page(self, items: list[Any], request: Any) -> tuple[list[Any], str]:
        start = int(request.page_token or 0)
        end = start + min(request.page_size or 50, self.state.page_size_max)
        return items[start:end], str(end) if end < len(items) else ""
