"""The virtual channels of a link beside channel 0: when there is much to send, both ends open them.

Channel 0 always works, and carries what is small. The end that is given a bulk transfer opens
sockets for more channels, listens, and asks the far end for as many; from the answer on, bulk goes
over them. They end with the link's epoch; sockets stay for the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from accelhw.device.channelport import ChannelPort
from accelhw.device.dataport import DataPort
from accelhw.optics.strikes import Aim
from accelhw.wire.message import Widen

FIRST_CREDIT_FRAMES = 16  # until the far end's first acknowledgement says how much it takes


class ChannelHost(Protocol):
    """Who has CPUs and sockets for a port's channels."""

    @property
    def channels_max(self) -> int:
        """0: this port has none but channel 0."""

    def open_channels(self) -> None:
        """Begin to open them; `Channels.opened` follows."""


class NoChannels:
    channels_max = 0

    def open_channels(self) -> None:
        pass


class Channels:
    def __init__(self, data: DataPort, host: ChannelHost) -> None:
        self.ports: Sequence[ChannelPort] = ()
        self._data = data
        self._host = host
        self._opening = self._opened = False
        self._asking = False  # in this epoch
        self._asked_for = 0  # by the far end, likewise
        data.on_burden = self.ask
        data.on_widen = self.hear

    @property
    def exhausted(self) -> bool:
        return any(port.exhausted for port in self.ports)

    def gauge(self, name: str) -> int:
        return sum(port.gauges[name] for port in self.ports)

    def aim(self, at: Aim) -> None:
        for port in self.ports:
            port.aim(at)

    # ---- the link ----

    def link_down(self, now_ns: int) -> None:
        self._asking, self._asked_for = False, 0
        self._data.relieved = False
        for port in self.ports:
            port.link_down(now_ns)

    def hold(self) -> None:
        for port in self.ports:
            port.hold()

    def release(self) -> None:
        for port in self.ports:
            port.release()

    # ---- opening ----

    def ask(self) -> None:
        """There is much to send."""
        if not self._asking and self._host.channels_max:
            self._asking = True
            if self._open() and self.ports:
                self._say(self._listen(len(self.ports)), answer=False)

    def opened(self, ports: Sequence[ChannelPort], now_ns: int) -> None:
        """None of them: it cannot be."""
        self.ports = ports
        self._opened = True
        if not self._data.up:
            return
        if self._asked_for:
            self._answer(now_ns)
        elif self._asking and ports:
            self._say(self._listen(len(ports)), answer=False)

    def hear(self, message: Widen, now_ns: int) -> None:
        """The far end asks or answers."""
        if message.answer:
            self._widen(message.channels, now_ns)
        else:
            self._asked_for = message.channels
            if not self._host.channels_max or self._open():
                self._answer(now_ns)

    def _open(self) -> bool:
        """Whether it is known how many there are; if not yet, `opened` goes on."""
        if not self._opening:
            self._opening = True
            self._host.open_channels()
        return self._opened

    def _answer(self, now_ns: int) -> None:
        channels = self._listen(self._asked_for)
        self._say(channels, answer=True)
        self._widen(channels, now_ns)

    def _listen(self, channels: int) -> int:
        """So many, or as many as there are."""
        peer = self._data.peer
        assert peer is not None
        listening = self.ports[:channels]
        for port in listening:
            port.listen(self._data.epoch, peer, FIRST_CREDIT_FRAMES)
            if self._data.held:
                port.hold()
        return len(listening)

    def _say(self, channels: int, *, answer: bool) -> None:
        self._data.say(Widen(channels, answer))

    def _widen(self, channels: int, now_ns: int) -> None:
        for port in self.ports[:channels]:
            port.link_up(now_ns)
        for port in self.ports[channels:]:
            port.link_down(now_ns)
        self._data.relieved = any(port.up for port in self.ports)
