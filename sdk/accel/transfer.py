"""Transfers between regions: started in the hardware, followed from here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from accel import span
from accel.address import RegionAddress, short, transfer_name
from accel.errors import AccelError, Cancelled, NotFound, TransferFailed, Unreachable
from accel.plain import word
from accel.v1 import host_pb2, host_pb2_grpc, transfer_pb2, transfer_pb2_grpc
from accel.wire import Patience, Wire

RECONNECT_S = 30.0
SOON_S = 0.05  # a transfer that ends within it needs no watching
ENDED = frozenset({"DONE", "FAILED", "CANCELLED"})


def ended(transfer: Any) -> bool:
    return word(transfer, "state") in ENDED


class Transfers:
    """Transfers; each method gives `accel.v1.Transfer`s."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._stub = transfer_pb2_grpc.TransferServiceStub(wire.channel)

    def list(self, *, active_only: bool = False) -> Iterator[transfer_pb2.Transfer]:
        request = transfer_pb2.ListTransfersRequest(active_only=active_only)
        return self._wire.pages(self._stub.ListTransfers, request, "transfers")

    def get(self, transfer: str) -> transfer_pb2.Transfer:
        request = transfer_pb2.GetTransferRequest(name=transfer_name(transfer))
        answer: transfer_pb2.Transfer = self._wire.call(self._stub.GetTransfer, request)
        return answer

    def create(
        self,
        source: str,
        target: str,
        *,
        length: int = 0,
        pull: bool = False,
        link_deadline_s: float | None = None,
        request_id: str = "",
        wait_s: float = 0.0,
    ) -> transfer_pb2.Transfer:
        """Starts a transfer and returns at once, or at its end if that comes within `wait_s`.

        `length` 0 takes as much as both regions hold from their offsets; they must agree.
        `pull` lets the target's card read instead of the source's card write.
        `link_deadline_s` is the longest time without a usable link before it fails.
        `request_id`, a UUID, makes it safe to call again after an answer that was lost: no second
        transfer starts.
        """
        request = transfer_pb2.CreateTransferRequest(
            source=_slice(source), target=_slice(target), length=length
        )
        if pull:
            request.kind = transfer_pb2.TRANSFER_KIND_READ
        if link_deadline_s is not None:
            span.put(request.link_deadline, link_deadline_s)
        if wait_s > 0:
            span.put(request.wait, wait_s)
        request.request_id = request_id
        answer: transfer_pb2.Transfer = self._wire.call(self._stub.CreateTransfer, request)
        return answer

    def watch(self, transfer: str) -> Iterator[transfer_pb2.Transfer]:
        """The transfer now, at each step of progress, and at its end."""
        request = transfer_pb2.WatchTransferRequest(name=transfer_name(transfer))
        return self._wire.stream(self._stub.WatchTransfer, request)

    def cancel(self, transfer: str) -> transfer_pb2.Transfer:
        request = transfer_pb2.CancelTransferRequest(name=transfer_name(transfer))
        answer: transfer_pb2.Transfer = self._wire.call(self._stub.CancelTransfer, request)
        return answer

    def follow(
        self, transfer: str, *, reconnect_s: float = RECONNECT_S
    ) -> Iterator[transfer_pb2.Transfer]:
        """As `watch`, through restarts of the daemon: the hardware goes on meanwhile.

        The last one given has ended. Raises Unreachable when no daemon is back in time.
        """
        patience = Patience(self._wire, reconnect_s)
        while True:
            try:
                for state in self.watch(transfer):
                    patience.restart()
                    yield state
                    if ended(state):
                        return
                failure: AccelError = Unreachable("the daemon closed the stream of progress")
            except (Unreachable, Cancelled) as error:
                failure = error
            except NotFound:
                # A daemon that has not attached to its hardware yet knows no transfers.
                if not patience.waiting or self._hardware_attached():
                    raise
                failure = Unreachable("the daemon is back, but its hardware is not")
            if not patience.wait():
                raise failure

    def copy(
        self,
        source: str,
        target: str,
        *,
        length: int = 0,
        create: bool = False,
        link_deadline_s: float | None = None,
        reconnect_s: float = RECONNECT_S,
        progress: Callable[[Any], None] | None = None,
    ) -> transfer_pb2.Transfer:
        """Copies region to region and returns when every byte is proved good.

        With `create` the target region is allocated when it is absent.
        `progress` is called with the transfer at each step. Raises TransferFailed if it ends
        otherwise. An exception out of `progress`, or Ctrl-C, leaves the transfer running:
        cancel it by its name.
        """
        if create:
            self._make_room(RegionAddress.parse(source), RegionAddress.parse(target), length)
        last = self.create(
            source, target, length=length, link_deadline_s=link_deadline_s, wait_s=SOON_S
        )
        if ended(last):
            if progress is not None:
                progress(last)
            return check(last)
        for state in self.follow(last.name, reconnect_s=reconnect_s):
            last = state
            if progress is not None:
                progress(state)
        return check(last)

    def _make_room(self, source: RegionAddress, target: RegionAddress, length: int) -> None:
        from accel.memory import Regions

        regions = Regions(self._wire)
        if not length:
            length = regions.get(str(source)).size_bytes - source.offset
        regions.ensure(target, target.offset + length)

    def _hardware_attached(self) -> bool:
        stub = host_pb2_grpc.HostServiceStub(self._wire.channel)
        try:
            return bool(self._wire.call(stub.GetHost, host_pb2.GetHostRequest()).chassis_attached)
        except AccelError:
            return False


def check(transfer: transfer_pb2.Transfer) -> transfer_pb2.Transfer:
    """The same transfer if it is done; otherwise raises TransferFailed with the whole story."""
    state = word(transfer, "state")
    if state == "DONE":
        return transfer
    text = f"transfer {short(transfer.name)} "
    text += "was cancelled" if state == "CANCELLED" else f"failed: {transfer.error or state}"
    if transfer.error_detail:
        text += f": {transfer.error_detail}"
    if "bytes are good" not in transfer.error_detail:  # Some causes tell it themselves.
        text += (
            f"; {transfer.good_bytes} of {transfer.total_bytes} bytes are good, "
            f"the first gap is at offset {transfer.first_gap_offset}"
        )
    raise TransferFailed(text, transfer)


def _slice(text: str) -> transfer_pb2.RegionSlice:
    address = RegionAddress.parse(text)
    return transfer_pb2.RegionSlice(region=address.name, offset=address.offset)
