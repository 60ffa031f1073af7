"""A gRPC status with ErrorInfo becomes one exception."""

from __future__ import annotations

from typing import Any

import grpc
import pytest
from google.protobuf import any_pb2
from google.rpc import error_details_pb2, status_pb2

from accel import errors


class Refused:
    """As grpc.RpcError shows itself to a client."""

    def __init__(self, code: str, details: str, trailing: Any = ()) -> None:
        self._code, self._details, self._trailing = code, details, trailing

    def code(self) -> Any:
        return getattr(grpc.StatusCode, self._code)

    def details(self) -> str:
        return self._details

    def trailing_metadata(self) -> Any:
        return self._trailing


def with_info(reason: str, **metadata: str) -> Any:
    detail = any_pb2.Any()
    detail.Pack(error_details_pb2.ErrorInfo(reason=reason, domain="acceld", metadata=metadata))
    return ((errors.DETAILS_KEY, status_pb2.Status(details=[detail]).SerializeToString()),)


def test_reason_domain_and_metadata_come_along() -> None:
    error = errors.from_rpc(
        Refused("NOT_FOUND", "no region card0:x", with_info("REGION_NOT_FOUND", region="card0:x"))
    )
    assert type(error) is errors.NotFound
    assert (error.message, str(error)) == ("no region card0:x", "no region card0:x")
    assert (error.reason, error.domain) == ("REGION_NOT_FOUND", "acceld")
    assert error.metadata == {"region": "card0:x"}


def test_a_reason_is_finer_than_a_status() -> None:
    refused = Refused("OUT_OF_RANGE", "gone", with_info("REVISION_TOO_OLD"))
    assert type(errors.from_rpc(refused)) is errors.TooOld
    assert type(errors.from_rpc(Refused("OUT_OF_RANGE", "far"))) is errors.InvalidRequest


@pytest.mark.parametrize("trailing", [None, (), ((errors.DETAILS_KEY, b"\xff\xff"),)])
def test_a_status_without_readable_details_still_speaks(trailing: Any) -> None:
    error = errors.from_rpc(Refused("INTERNAL", "", trailing))
    assert type(error) is errors.Internal
    assert "INTERNAL" in error.message


@pytest.mark.parametrize("status", [code.name for code in grpc.StatusCode if code.name != "OK"])
def test_every_status_has_an_exception(status: str) -> None:
    assert isinstance(errors.from_rpc(Refused(status, "x")), errors.AccelError)
