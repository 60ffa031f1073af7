"""What the driver has set, and the transfers it started: remembered over a worker's death. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import msgspec

from accelhw.chassis.control import ResumedTransfer
from accelhw.chassis.plan import CardPlace, straight_map
from accelhw.interface.messages import (
    ChannelMapEntry,
    Command,
    FaultInfo,
    RegisterWindow,
    SetChannelMap,
    SetPortAdmin,
    StartTransfer,
    TransferInfo,
    UnregisterWindow,
    WindowInfo,
)
from accelhw.model.ids import PortId
from accelhw.model.transfer import TransferState

ENDED_KEPT_MAX = 10_000  # of a driver that never acknowledges


@dataclass(slots=True)
class KnownTransfer:
    command: StartTransfer
    info: TransferInfo  # as a worker told it last

    def interrupt(self) -> None:
        """Its worker died; it waits for the next life, which is told how far it was."""
        self.info = msgspec.structs.replace(self.info, state=int(TransferState.WAITING))

    @property
    def ended(self) -> bool:
        return TransferState(self.info.state).ended


@dataclass(slots=True)
class Registers:
    ports_up: dict[PortId, bool] = field(default_factory=dict)
    channel_maps: dict[str, tuple[ChannelMapEntry, ...]] = field(default_factory=dict)
    windows: dict[str, dict[int, WindowInfo]] = field(default_factory=dict)
    transfers: dict[str, KnownTransfer] = field(default_factory=dict)
    faults: dict[str, FaultInfo] = field(default_factory=dict)  # active

    @classmethod
    def at_power_on(cls, places: Iterable[CardPlace]) -> Registers:
        """Lasers on, channels straight, no window."""
        registers = cls()
        for place in places:
            registers.ports_up.update(dict.fromkeys(place.ports, True))
            registers.channel_maps[place.card.name] = straight_map(place.card.profile)
            registers.windows[place.card.name] = {}
        return registers

    def keep(self, command: Command) -> None:
        """A worker has carried the command out."""
        match command:
            case SetPortAdmin(card=card, oe=oe, up=up):
                self.ports_up[PortId(card, oe)] = up
            case SetChannelMap(card=card, entries=entries):
                self.channel_maps[card] = entries
            case RegisterWindow(card=card, region_id=region):
                self.windows[card][region] = WindowInfo(
                    card, region, command.key, command.base, command.length
                )
            case UnregisterWindow(card=card, region_id=region):
                self.windows[card].pop(region, None)

    def begin(self, command: StartTransfer) -> None:
        """Known from the moment it is posted: its worker may report on it before it completes."""
        self.transfers[command.transfer_id] = KnownTransfer(
            command,
            TransferInfo(
                command.transfer_id,
                command.kind,
                int(TransferState.QUEUED),
                command.local_card,
                command.remote_card,
                command.length,
            ),
        )

    def progress(self, info: TransferInfo) -> bool:
        """A worker's word on a transfer; False if that is not known, or its end was told."""
        known = self.transfers.get(info.transfer_id)
        if known is None or known.ended:
            return False
        known.info = info
        if known.ended:
            ended = [name for name, one in self.transfers.items() if one.ended]
            for name in ended[: max(0, len(ended) - ENDED_KEPT_MAX)]:
                del self.transfers[name]
        return True

    def forget(self, transfer_id: str) -> None:
        self.transfers.pop(transfer_id, None)

    def fault_changed(self, info: FaultInfo) -> None:
        """A worker's word on a fault."""
        if info.state == "ACTIVE":
            self.faults[info.fault_id] = info
        else:
            self.faults.pop(info.fault_id, None)

    def faults_on(self, card: str) -> tuple[FaultInfo, ...]:
        return tuple(info for info in self.faults.values() if info.card == card)

    def running_on(self, cards: Iterable[str]) -> list[KnownTransfer]:
        wanted = set(cards)
        return [
            known
            for known in self.transfers.values()
            if not known.ended and known.command.local_card in wanted
        ]

    def resumed_on(self, cards: Iterable[str]) -> tuple[ResumedTransfer, ...]:
        return tuple(ResumedTransfer(known.command, known.info) for known in self.running_on(cards))
