"""What a worker and a mover say to each other of a virtual channel, of which each has one half.

The mover runs the channel's `DataPort` on a CPU of its own; the transfer engine stays with the
worker. The mover asks (`Asks...`) where a chunk lands and how a message is taken, and waits for
the answer; the worker asks (`Drop`, `Void`, `Down`) that something stops, and waits until it has.
All else is told, and both sides hear it in order.
"""

from __future__ import annotations

from typing import Protocol

import msgspec

from accelhw.optics.strikes import Aim


class Word(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """`way` numbers the channel among all that the worker and the mover share."""

    way: int


# ---- to the mover ----


class Plug(Word, frozen=True):
    """A channel begins; its socket comes beside this word."""

    name: str  # of the port
    card: str  # whose HBM it moves
    number: int  # of the channel in its link
    mtu: int
    seed: int
    oe: int
    near: bool  # the far end is on the same CPU


class Up(Word, frozen=True):
    epoch: int  # of the link
    credit_frames: int


class Down(Word, frozen=True):
    """Answered with Gone, behind the last word of this epoch."""


class Hold(Word, frozen=True):
    pass


class Release(Word, frozen=True):
    pass


class Say(Word, frozen=True):
    payload: bytes  # of a MESSAGE frame


class Aims(Word, frozen=True):
    """How often errors reach a frame from now on."""

    at: Aim


class Give(Word, frozen=True):
    """A chunk to send."""

    cut: int
    push: int  # chunks of one transfer have the same
    stream: int
    base: int  # of the transfer in HBM
    start: int  # of the chunk in the transfer
    end: int
    total_bytes: int  # of the transfer


class Drop(Word, frozen=True):
    """Send no more of a chunk. Answered with Gone."""

    cut: int


class Void(Word, frozen=True):
    """Land no more of a chunk. Answered with Gone."""

    landing: int


class Lands(Word, frozen=True):
    """Answer to AsksLanding: a chunk lands there, from its `start` on."""

    landing: int
    base: int  # of the transfer in HBM
    start: int
    end: int
    total_bytes: int  # of the transfer


class Nowhere(Word, frozen=True):
    """Answer to AsksLanding: nobody waits for it."""

    here: bool  # for that chunk is complete


class Taken(Word, frozen=True):
    """Answer to AsksHearing."""


# ---- to the worker ----


class AsksHearing(Word, frozen=True):
    """A message came."""

    epoch: int  # of the link, then
    payload: bytes


class AsksLanding(Word, frozen=True):
    """A frame came that goes on with nothing that lands here now."""

    stream: int
    offset: int
    length: int


class Wants(Word, frozen=True):
    """A chunk was dropped before it left; another could be used."""

    cut: int


class Left(Word, frozen=True):
    """The last frame of a chunk was sent; another chunk could be used."""

    cut: int
    crc: int


class Arrived(Word, frozen=True):
    cut: int
    proved: bool
    replayed_frames: int


class Landed(Word, frozen=True):
    landing: int
    crc: int


class NoPage(Word, frozen=True):
    """HBM had no page for a chunk, and the machine gave none."""

    landing: int


class Changed(Word, frozen=True):
    """The source of a chunk is not what it was."""

    cut: int


class Spent(Word, frozen=True):
    """The replay limit was reached."""


class Count(Word, frozen=True):
    """What happened since the last one."""

    moved: tuple[int, ...]  # by the fields of PortCounters; gauges as they stand
    rtt_ns: int
    exposure: float  # as `Strikes.take` gives them
    lost_words: int
    flips: dict[int, int]


class Gone(Word, frozen=True):
    """Answer to Down, Drop and Void; `lost`: messages that may not have arrived."""

    lost: tuple[bytes, ...] = ()


ToMover = (
    Plug | Up | Down | Hold | Release | Say | Aims | Give | Drop | Void | Lands | Nowhere | Taken
)  # fmt: skip
FromMover = (
    AsksHearing | AsksLanding | Wants | Left | Arrived | Landed | NoPage | Changed | Spent | Count
    | Gone
)  # fmt: skip


class MoverLine(Protocol):
    """The worker's end towards one mover."""

    def tell(self, word: Word) -> None: ...

    def ask(self, word: Word) -> Gone:
        """Tell it, and wait for its answer; words that come before it are heard later."""

    def plug(self, word: Plug, fd: int) -> None:
        """Hand over the channel's socket, which is the mover's from then on."""


class WorkerLine(Protocol):
    """The mover's end towards its worker."""

    def tell(self, word: Word, *, later: bool = False) -> None:
        """`later`: it may wait for the next word, or the next count."""

    def answer(self, word: Word) -> None:
        """Tell it, and all that was told before, at once: before anything leaves by the link."""

    def ask(self, word: Word) -> Lands | Nowhere | Taken:
        """Tell it, and wait for its answer; other words that come meanwhile are obeyed."""
