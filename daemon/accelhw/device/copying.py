"""Copies inside a card, over its internal bus: begun by a command, moved in turns."""

from __future__ import annotations

from collections.abc import Callable

from accelhw.device.hbm import Hbm
from accelhw.device.localcopy import LocalCopy
from accelhw.device.readable import Readable, UnreadableError
from accelhw.device.refusal import EngineRefusal
from accelhw.device.transfers import Transfers
from accelhw.interface.messages import StartTransfer
from accelhw.model.transfer import TransferError

LOCAL_SLICES = 4  # copied in one turn


class Copying:
    """Of one card."""

    def __init__(
        self, transfers: Transfers, hbm: Hbm, readable: Readable, wall_ns: Callable[[], int]
    ) -> None:
        self._transfers = transfers
        self._hbm = hbm
        self._readable = readable
        self._wall_ns = wall_ns

    def start(self, command: StartTransfer, base: int) -> LocalCopy:
        """From `base` in HBM. Raises EngineRefusal."""
        windows = self._transfers.windows
        fault = windows.remote_fault(
            command.remote_region_id, command.remote_key, command.remote_offset, command.length
        )
        if fault is not None:
            code = {
                TransferError.REMOTE_NO_REGION: "UNKNOWN_REGION",
                TransferError.REMOTE_OUT_OF_RANGE: "OUT_OF_RANGE",
            }.get(fault[0], "BAD_STATE")
            raise EngineRefusal(code, fault[1])
        target = windows[command.remote_region_id].base + command.remote_offset
        local = LocalCopy(base, target, command.length)
        self._transfers.locals[command.transfer_id] = local
        windows.hold(command.transfer_id, command.remote_region_id)
        return local

    def pump(self, now_ns: int) -> None:
        """One bounded turn; copies take turns, slice by slice."""
        transfers, began_ns = self._transfers, self._wall_ns()
        for _ in range(LOCAL_SLICES):
            if not transfers.locals:
                break
            name, local = next(iter(transfers.locals.items()))
            transfers.locals.move_to_end(name)
            try:
                start, length = local.next_slice
                self._readable.check(local.source + start, length)
                self._count_bus(local.step(self._hbm))
            except UnreadableError as error:
                transfers.fail(name, TransferError.HBM_ERROR, str(error), now_ns, False)
                continue
            except OSError as error:
                transfers.fail(name, TransferError.MEMORY_FAULT, str(error), now_ns, False)
                continue
            if local.done:
                # The turn's own time counts: a small copy begins and ends in it.
                transfers.done(name, local.crc, now_ns + self._wall_ns() - began_ns)

    def _count_bus(self, copied_bytes: int) -> None:
        self._transfers.counters.bus_read_bytes += copied_bytes
        self._transfers.counters.bus_written_bytes += copied_bytes
