"""The tests of links that run on a card: begun by command, driven by the loop, told of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import time_ns

from accelhw.chassis.control import WorkerEvent
from accelhw.chassis.shared import Shared
from accelhw.device.diag import LinkTest
from accelhw.device.dma import TransferEngine
from accelhw.device.port import Port
from accelhw.device.refusal import EngineRefusal
from accelhw.interface.messages import DiagProgress, StartDiag
from accelhw.model.diag import DiagState, Verdict
from accelhw.model.event import Severity


class LinkTests:
    """Of one card. `running` has them by id."""

    def __init__(
        self,
        shared: Shared,
        memory: TransferEngine,
        port_rows: Sequence[int],
        *,
        changed: Callable[[], None],
        settle: Callable[[int], None],
    ) -> None:
        """`changed`: status rows are out of date; `settle` follows what a test does by itself."""
        self.running: dict[str, LinkTest] = {}
        self._shared = shared
        self._memory = memory
        self._rows = port_rows
        self._changed = changed
        self._settle = settle

    def send_progress(self) -> None:
        for test in self.running.values():
            self._shared.voice.send_if_room(DiagProgress(test.info()))

    def start(self, port: Port, command: StartDiag, now_ns: int) -> None:
        if any(test.port is port for test in self.running.values()):
            raise EngineRefusal("LINK_BUSY", f"{port.id} is being tested already")
        test = LinkTest(
            port,
            command,
            seed=self._shared.seed,
            wall_ns=time_ns,
            read_row=lambda: self._shared.tables.port[self._rows[command.oe]],
        )
        peer = port.data.peer
        if test.kind.takes_link_down and not command.force and peer is not None:
            running = self._memory.transfers.moving_with(peer.card)
            if running:
                transfers = f"{running} transfer{'s' if running > 1 else ''}"
                raise EngineRefusal(
                    "LINK_BUSY",
                    f"{transfers} between {self._memory.card} and {peer.card} would have to wait;"
                    " wait for their end, or force the test",
                )
        self.running[test.id] = test
        test.start(now_ns)
        self._tell_test("DIAG_STARTED", test, f"a {test.kind.name} test began")
        self._arm_test(test, now_ns)

    def cancel(self, diag_id: str, now_ns: int) -> None:
        test = self.running.get(diag_id)
        if test is None:
            raise EngineRefusal("UNKNOWN_DIAG", f"no test {diag_id} runs on {self._memory.card}")
        test.cancel(now_ns)
        self._after_test(test)

    def end_all(self, port: Port | None, why: str, now_ns: int) -> None:
        """Of one port, or all: something stronger takes it away."""
        for test in list(self.running.values()):
            if port is None or test.port is port:
                test.fail("INTERRUPTED", why, now_ns)
                self._after_test(test)

    def _arm_test(self, test: LinkTest, now_ns: int) -> None:
        deadline_ns = test.next_deadline_ns()
        if deadline_ns is not None:
            self._shared.loop.call_at(deadline_ns, lambda now_ns: self._on_test(test, now_ns))

    def _on_test(self, test: LinkTest, now_ns: int) -> None:
        if test.ended:
            return
        test.on_deadline(now_ns)
        if test.ended:
            self._after_test(test)
        self._arm_test(test, now_ns)
        self._settle(now_ns)

    def _after_test(self, test: LinkTest) -> None:
        self.running.pop(test.id, None)
        info = test.info()
        self._shared.voice.send(DiagProgress(info))
        result = Verdict(info.verdict).name if info.verdict else test.state.name
        text = f"the {test.kind.name} test ended: {result}"
        self._tell_test("DIAG_ENDED", test, f"{text}, {info.text}" if info.text else text)
        self._changed()

    def _tell_test(self, kind: str, test: LinkTest, text: str) -> None:
        detail: dict[str, str | int | float | bool] = {"diag": test.id, "kind": test.kind.name}
        failed = test.state is DiagState.FAILED
        severity = Severity.WARNING if failed else Severity.INFO
        self._shared.voice.send(WorkerEvent(kind, severity, str(test.port.id), text, detail))
