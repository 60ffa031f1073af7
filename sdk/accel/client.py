"""The client: finds the daemon's socket and hands out one object per noun."""

from __future__ import annotations

import os
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from accel.place import default_socket
from accel.wire import Wire

if TYPE_CHECKING:
    from accel.card import Cards
    from accel.diag import Diags
    from accel.event import Events
    from accel.fault import Faults
    from accel.health import HealthOf
    from accel.link import Links
    from accel.memory import Regions
    from accel.optics import Engines, Lanes
    from accel.transfer import Transfers

TIMEOUT_S = 10.0


class Client:
    """A synchronous client of one daemon. Use it in a `with`, or close it.

    Methods take addresses in the short form (`card0/oe1`) or as resource names
    (`cards/card0/links/oe1`), and return the messages of `accel.v1`. They raise `AccelError`s.
    It connects at the first call; a daemon that restarts is found again at the next one.
    """

    def __init__(
        self, socket: str | os.PathLike[str] | None = None, *, timeout_s: float = TIMEOUT_S
    ) -> None:
        path = default_socket() if socket is None else os.fspath(socket).removeprefix("unix:")
        self._wire = Wire(os.path.abspath(path), timeout_s)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def socket(self) -> str:
        """The path of the daemon's socket."""
        return self._wire.path

    def close(self) -> None:
        self._wire.close()

    # Each noun is imported when it is first used: a command that lists links loads no other.

    @cached_property
    def cards(self) -> Cards:
        from accel.card import Cards

        return Cards(self._wire)

    @cached_property
    def regions(self) -> Regions:
        from accel.memory import Regions

        return Regions(self._wire)

    @cached_property
    def links(self) -> Links:
        from accel.link import Links

        return Links(self._wire)

    @cached_property
    def engines(self) -> Engines:
        from accel.optics import Engines

        return Engines(self._wire)

    @cached_property
    def lanes(self) -> Lanes:
        from accel.optics import Lanes

        return Lanes(self._wire)

    @cached_property
    def transfers(self) -> Transfers:
        from accel.transfer import Transfers

        return Transfers(self._wire)

    @cached_property
    def diags(self) -> Diags:
        from accel.diag import Diags

        return Diags(self._wire)

    @cached_property
    def events(self) -> Events:
        from accel.event import Events

        return Events(self._wire)

    @cached_property
    def faults(self) -> Faults:
        from accel.fault import Faults

        return Faults(self._wire)

    @cached_property
    def health(self) -> HealthOf:
        from accel.health import HealthOf

        return HealthOf(self._wire)

    def host(self) -> Any:
        """The host as a whole (`accel.v1.Host`): daemon, chassis, workers, budget."""
        from accel.v1 import host_pb2, host_pb2_grpc

        stub = host_pb2_grpc.HostServiceStub(self._wire.channel)
        return self._wire.call(stub.GetHost, host_pb2.GetHostRequest())
