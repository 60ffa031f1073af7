"""Commands to the worker of their card, completions back; what must outlive a worker is kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count

import msgspec

from accelhw.chassis.plan import CardPlace, Plan, map_mistake
from accelhw.chassis.registers import Registers
from accelhw.device.faults import request_of
from accelhw.fault.request import FaultRefused, check_address
from accelhw.interface.messages import (
    AcknowledgeTransfer,
    CancelDiag,
    CancelTransfer,
    ClearFault,
    ClearFlags,
    Command,
    Completion,
    FaultInfo,
    InjectFault,
    Message,
    RegisterWindow,
    ResetCard,
    SetChannelMap,
    SetPortAdmin,
    StartDiag,
    StartTransfer,
    TrainPort,
    TransferInfo,
    UnregisterWindow,
)
from accelhw.model.ids import nearest
from accelhw.model.transfer import TransferState

Reply = Callable[[Completion], None]
U32_MAX = 0xFFFF_FFFF


class Refusal(Exception):
    """The chassis itself says no, with an error of COMPLETION_ERRORS."""

    def __init__(self, error: str, detail: str) -> None:
        super().__init__(detail)
        self.error = error
        self.detail = detail


@dataclass(frozen=True, slots=True)
class _Waiting:
    worker: int
    command: Command  # with the driver's id
    reply: Reply


class Router:
    """Holds the commands that workers have not completed, under ids of its own: a driver's ids
    mean nothing to the next driver."""

    def __init__(
        self, plan: Plan, registers: Registers, send: Callable[[int, Message], bool]
    ) -> None:
        """`send(worker, message)` is False when the worker is gone."""
        self._plan = plan
        self._registers = registers
        self._send = send
        self._ids = count(1)
        self._waiting: dict[int, _Waiting] = {}

    def command(self, command: Command, reply: Reply) -> None:
        """Carry a driver's command out, or pass it on; `reply` is called once, now or later."""
        try:
            place = self._checked(command)
        except Refusal as refusal:
            reply(Completion(command.id, refusal.error, refusal.detail))
            return
        if isinstance(command, AcknowledgeTransfer):
            self._registers.forget(command.transfer_id)
            # Its worker may forget it, too; a new life of it never knew it.
            self._send(place.worker, msgspec.structs.replace(command, id=next(self._ids)))
            reply(Completion(command.id))
            return
        number = next(self._ids)
        if isinstance(command, StartTransfer):
            self._registers.begin(command)
        self._waiting[number] = _Waiting(place.worker, command, reply)
        if not self._send(place.worker, msgspec.structs.replace(command, id=number)):
            self._fail(number)

    def completed(self, completion: Completion) -> Command | None:
        """A worker's answer; returns the command if it was carried out."""
        waiting = self._waiting.pop(completion.id, None)
        if waiting is None:
            return None
        command = waiting.command
        if not completion.error:
            self._registers.keep(command)
        elif isinstance(command, StartTransfer):
            self._registers.forget(command.transfer_id)
        waiting.reply(msgspec.structs.replace(completion, id=command.id))
        return None if completion.error else command

    def worker_gone(self, worker: int) -> list[TransferInfo]:
        """Its commands end here; its transfers wait for its next life: their new states."""
        for number in [n for n, waiting in self._waiting.items() if waiting.worker == worker]:
            self._fail(number)
        cards = [place.card.name for place in self._plan.of_worker(worker)]
        running = self._registers.running_on(cards)
        for known in running:
            known.interrupt()
        return [known.info for known in running]

    def _fail(self, number: int) -> None:
        waiting = self._waiting.pop(number)
        if isinstance(waiting.command, StartTransfer):
            self._registers.forget(waiting.command.transfer_id)
        waiting.reply(
            Completion(
                waiting.command.id,
                "CARD_LOST",
                "the card does not answer: its worker is gone and is being started again",
            )
        )

    # ---- what the chassis knows to be wrong before a worker is asked

    def _checked(self, command: Command) -> CardPlace:
        match command:
            case ResetCard() | CancelDiag():
                return self._card(command.card)
            case SetPortAdmin() | TrainPort() | StartDiag():
                return self._port(command.card, command.oe)
            case ClearFlags(card=card, oe=oe):
                return self._card(card) if oe is None else self._port(card, oe)
            case SetChannelMap():
                place = self._card(command.card)
                if mistake := map_mistake(place.card.profile, command.entries):
                    raise Refusal("BAD_MAP", mistake)
                return place
            case RegisterWindow():
                return self._checked_window(command)
            case UnregisterWindow():
                place = self._card(command.card)
                self._window(command.card, command.region_id)
                return place
            case StartTransfer():
                return self._checked_transfer(command)
            case CancelTransfer() | AcknowledgeTransfer():
                return self._checked_end(command)
            case InjectFault():
                return self._checked_fault(command)
            case ClearFault():
                return self._card(self._fault(command.fault_id).card)
            case _:
                raise Refusal("BAD_STATE", f"{type(command).__name__} is not for a card")

    def _card(self, name: str) -> CardPlace:
        place = self._plan.find(name)
        if place is None:
            names = [place.card.name for place in self._plan.cards]
            guess = nearest(name, names)
            remedy = f"did you mean {guess}?" if guess else f"there are {', '.join(names)}"
            raise Refusal("UNKNOWN_CARD", f"there is no card {name!r}; {remedy}")
        return place

    def _port(self, card: str, oe: int) -> CardPlace:
        place = self._card(card)
        if not 0 <= oe < place.card.profile.oes:
            raise Refusal(
                "UNKNOWN_PORT",
                f"{card} has no oe{oe}; it has oe0 to oe{place.card.profile.oes - 1}",
            )
        return place

    def _window(self, card: str, region_id: int) -> int:
        window = self._registers.windows[card].get(region_id)
        if window is None:
            raise Refusal("UNKNOWN_REGION", f"{card} has no window with the id {region_id}")
        return window.length

    def _checked_window(self, command: RegisterWindow) -> CardPlace:
        place = self._card(command.card)
        if not (0 <= command.region_id <= U32_MAX and 0 <= command.key <= U32_MAX):
            raise Refusal("OUT_OF_RANGE", "region ids and keys have 32 bits")
        end = command.base + command.length
        if command.base < 0 or command.length <= 0 or end > place.card.hbm_bytes:
            raise Refusal(
                "OUT_OF_RANGE",
                f"bytes {command.base} to {end} are not inside the {place.card.hbm_bytes} bytes of"
                f" {command.card}",
            )
        if command.region_id in self._registers.windows[command.card]:
            raise Refusal("EXISTS", f"{command.card} has a window {command.region_id} already")
        return place

    def _checked_transfer(self, command: StartTransfer) -> CardPlace:
        place = self._card(command.local_card)
        if command.transfer_id in self._registers.transfers:
            raise Refusal("EXISTS", f"there is a transfer {command.transfer_id!r} already")
        length = self._window(command.local_card, command.local_region_id)
        end = command.local_offset + command.length
        if command.local_offset < 0 or command.length < 0 or end > length:
            raise Refusal(
                "OUT_OF_RANGE",
                f"bytes {command.local_offset} to {end} are not inside the {length} bytes of the"
                " local region",
            )
        return place

    def _checked_end(self, command: CancelTransfer | AcknowledgeTransfer) -> CardPlace:
        known = self._registers.transfers.get(command.transfer_id)
        if known is None:
            raise Refusal("UNKNOWN_TRANSFER", f"there is no transfer {command.transfer_id!r}")
        wants_end = isinstance(command, AcknowledgeTransfer)
        if known.ended != wants_end:
            state = TransferState(known.info.state).name
            raise Refusal("BAD_STATE", f"transfer {command.transfer_id!r} is {state}")
        return self._card(known.command.local_card)

    def _checked_fault(self, command: InjectFault) -> CardPlace:
        place = self._card(command.card)
        if not command.fault_id or command.fault_id in self._registers.faults:
            raise Refusal("EXISTS", f"there is a fault {command.fault_id!r} already")
        try:
            fault = request_of(command).fault(place.card.profile, command.begun_ns)
            check_address(fault.kind, command.address)
        except FaultRefused as refused:
            raise Refusal(refused.code, refused.detail) from refused
        if command.address is not None and not 0 <= command.address < place.card.hbm_bytes:
            raise Refusal(
                "OUT_OF_RANGE",
                f"0x{command.address:x} is not inside the {place.card.hbm_bytes} bytes of HBM of"
                f" {command.card}",
            )
        return place

    def _fault(self, fault_id: str) -> FaultInfo:
        faults = self._registers.faults
        if fault_id not in faults:
            guess = nearest(fault_id, faults)
            remedy = f"did you mean {guess}?" if guess else "accelctl fault list shows them"
            raise Refusal("UNKNOWN_FAULT", f"there is no fault {fault_id!r}; {remedy}")
        return faults[fault_id]
