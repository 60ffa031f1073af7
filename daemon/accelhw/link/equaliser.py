"""Equaliser training: a receiver asks the far transmitter for better taps, step by step.

The electrical trace between network module and engine smears the signal; the taps of the network
module's transmitter can undo that, and how well they do is seen only where the light arrives. So
each receiver climbs: one tap one step, keep it if it helped, else take it back. The model of the
trace (design choices of this emulator): the best taps grow with the trace's loss, and away from
them each costs the square of its distance, more behind a longer trace.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from accelhw.link.lanemap import lanes_of
from accelhw.wire.checksum import crc32c
from accelhw.wire.shape import PENALTY_MAX_MDB, SHAPES_REMEMBERED, LaneShape, TapRequest, TapResult
from accelhw.wire.training import TrainingMessage

STEP = 2  # hundredths; as all taps here
TAP_MIN, TAP_MAX = -30, 10
BEST_MIN = -0.25
SPREAD = 0.01  # between lanes, either way
PENALTY_DB = 40.0  # per square of a tap's distance
RESIDUAL_MAX_MDB = 300  # what a receiver accepts
REQUESTS_MAX = 120  # of one lane in one training
SERIALS = 255  # 1 to 255, then 1 again

PRESETS = {
    TapRequest.PRESET_1: (0, 0),
    TapRequest.PRESET_2: (0, -25),
    TapRequest.PRESET_3: (-25, 0),
}
MOVES = {
    TapRequest.PRE_UP: (STEP, 0),
    TapRequest.PRE_DOWN: (-STEP, 0),
    TapRequest.POST_UP: (0, STEP),
    TapRequest.POST_DOWN: (0, -STEP),
}
_UNDO = {
    TapRequest.PRE_UP: TapRequest.PRE_DOWN,
    TapRequest.PRE_DOWN: TapRequest.PRE_UP,
    TapRequest.POST_UP: TapRequest.POST_DOWN,
    TapRequest.POST_DOWN: TapRequest.POST_UP,
}
# Which way to try first and second, for each tap: traces are undone by negative taps.
_TRIES = (
    (TapRequest.PRE_DOWN, TapRequest.PRE_UP),
    (TapRequest.POST_DOWN, TapRequest.POST_UP),
)

Taps = tuple[float, float]  # c(-1), c(1); c(0) is what their magnitudes leave of one


def best_taps(trace_loss_db: float, lane: str) -> Taps:
    """What this lane's trace needs. `lane` names it: no two traces are quite alike."""
    dice = crc32c(lane.encode())
    pre, post = (
        SPREAD * (2 * (dice >> shift & 0xFFFF) / 0xFFFF - 1) + at - slope * trace_loss_db
        for shift, at, slope in ((0, -0.02, 0.006), (16, -0.01, 0.004))
    )
    return max(pre, BEST_MIN), max(post, BEST_MIN)


_shape = lru_cache(SHAPES_REMEMBERED)(LaneShape)


def penalty_db(taps: Taps, best: Taps, trace_loss_db: float) -> float:
    """What these taps cost a receiver, in optical dB."""
    squares = sum((tap - aim) ** 2 for tap, aim in zip(taps, best, strict=True))
    return PENALTY_DB * squares * (1 + trace_loss_db / 20)


class Transmitter:
    """One own lane's taps, as its receiver at the far end wants them."""

    __slots__ = ("_best", "_loss_db", "done", "penalty_db", "penalty_mdb", "post", "pre", "result")

    def __init__(self, best: Taps, trace_loss_db: float) -> None:
        self._best = best
        self._loss_db = trace_loss_db
        self._set(0, 0)
        self.begin()

    def _set(self, pre: int, post: int) -> None:
        self.pre, self.post = pre, post
        self.penalty_db = penalty_db((pre / 100, post / 100), self._best, self._loss_db)
        self.penalty_mdb = min(round(self.penalty_db * 1000), PENALTY_MAX_MDB)

    def begin(self) -> None:
        """Another training: requests count from one again. Taps stay until asked for."""
        self.done = 0
        self.result = TapResult.NOT_UPDATED

    def recall(self) -> None:
        """The taps next to what the trace needs."""
        pre, post = (max(round(tap * 100 / STEP) * STEP, TAP_MIN) for tap in self._best)
        self._set(pre, post)

    def carry_out(self, serial: int, ask: TapRequest) -> bool:
        """A request. True: it is a new one."""
        if not serial or serial == self.done:
            return False
        self.done = serial
        pre, post = PRESETS.get(ask, (self.pre, self.post))
        move_pre, move_post = MOVES.get(ask, (0, 0))
        pre, post = pre + move_pre, post + move_post
        if not (TAP_MIN <= pre <= TAP_MAX and TAP_MIN <= post <= TAP_MAX):
            self.result = TapResult.AT_LIMIT
            return True
        moved = (pre, post) != (self.pre, self.post)
        self.result = TapResult.UPDATED if moved or ask in PRESETS else TapResult.NOT_UPDATED
        if moved:
            self._set(pre, post)
        return True


class Climb:
    """One own lane's receiver: what it asks next, and when it is content."""

    __slots__ = (
        "_gained", "_preset", "_second", "_tap", "_undoing", "answers", "ask", "failed",
        "penalty_mdb", "requests", "serial", "settled",
    )  # fmt: skip

    def __init__(self) -> None:
        self.serial = 0
        self.ask = TapRequest.HOLD
        self.penalty_mdb: int | None = None
        self.requests = self.answers = 0
        self.settled = self.failed = False
        self._preset = 0
        self._tap = 0  # being moved: c(-1), c(1)
        self._second = False  # the other direction
        self._gained = False  # in this direction
        self._undoing = False

    def begin(self) -> None:
        """Start to ask, from the first preset on."""
        if not self.serial:
            self._start_from_next_preset()

    def observe(self, far: LaneShape) -> bool:
        """The far lane's state and its light. True: there is something else to ask."""
        if not self.serial or far.done_serial != self.serial or self.settled or self.failed:
            return False
        self.answers += 1
        before, self.penalty_mdb = self.penalty_mdb, far.penalty_mdb
        if self.ask in PRESETS:
            self._tap = 0
            self._try(second=False)
        elif self._undoing:
            self._undoing = False
            self._turn()
        elif far.result is TapResult.AT_LIMIT:
            self._turn()
        elif before is None or far.penalty_mdb < before:
            self._gained = True
            self._say(self.ask)
        else:
            self._undoing = True
            self._say(_UNDO[self.ask])
        return True

    def _turn(self) -> None:
        """This direction is used up: the other one, the other tap, or enough."""
        if not self._gained and not self._second:
            self._try(second=True)
        elif self._tap == 0:
            self._tap = 1
            self._try(second=False)
        elif self.penalty_mdb is not None and self.penalty_mdb <= RESIDUAL_MAX_MDB:
            self.settled = True
            self._say(TapRequest.HOLD)
        else:
            self._start_from_next_preset()

    def _try(self, second: bool) -> None:
        self._second = second
        self._gained = False
        self._say(_TRIES[self._tap][second])

    def _start_from_next_preset(self) -> None:
        self._preset += 1
        if self._preset > len(PRESETS):
            self.failed = True
            return
        self._undoing = False
        self._say(TapRequest(self._preset))

    def _say(self, ask: TapRequest) -> None:
        if ask is TapRequest.HOLD:
            self.ask = ask
            return
        if self.requests >= REQUESTS_MAX:
            self.failed = True
            return
        self.ask = ask
        self.serial = self.serial % SERIALS + 1
        self.requests += 1


class Equaliser:
    """Both halves of all lanes of one end."""

    __slots__ = ("climbs", "requests", "settled", "transmitters")

    def __init__(self, best: Sequence[Taps], trace_loss_db: float) -> None:
        self.transmitters = [Transmitter(taps, trace_loss_db) for taps in best]
        self.requests = 0  # of all trainings
        self.climbs = [Climb() for _ in best]
        self.settled = 0  # lanes whose receivers are content

    def forget(self) -> None:
        """A new training. Taps stay as they are until the far end asks."""
        self.climbs = [Climb() for _ in self.climbs]
        self.settled = 0
        for transmitter in self.transmitters:
            transmitter.begin()

    # A fleet that is found running has had its trainings: nobody need climb again.

    def recall_taps(self) -> None:
        """Taps stand where training would leave them."""
        for transmitter in self.transmitters:
            transmitter.recall()

    def recall_climbs(self) -> None:
        """Receivers are content, and transmitters have done all that was asked of them."""
        for transmitter in self.transmitters:
            transmitter.done = 1
        for climb in self.climbs:
            climb.serial, climb.settled, climb.penalty_mdb = 1, True, 0
        self.settled = (1 << len(self.climbs)) - 1

    def begin(self) -> None:
        """Receivers start to ask."""
        for climb in self.climbs:
            before = climb.requests
            climb.begin()
            self.requests += climb.requests - before

    def hear(
        self, message: TrainingMessage, lane_map: Sequence[int | None], good: int
    ) -> tuple[bool, bool]:
        """Whether own taps moved, and whether there is something new to say."""
        shapes, transmitters = message.shapes, self.transmitters
        moved = False
        for ours, theirs in zip(message.lane_map, shapes, strict=False):
            if ours is None or ours >= len(transmitters):
                continue
            if (own := transmitters[ours]).done != theirs.ask_serial:
                moved |= own.carry_out(theirs.ask_serial, theirs.ask)
        news = moved
        for lane in lanes_of(good & ~self.settled):
            far = lane_map[lane]
            if far is not None and far < len(shapes):
                climb = self.climbs[lane]
                before = climb.requests
                news |= climb.observe(shapes[far])
                self.requests += climb.requests - before
                self.settled |= climb.settled << lane
        return moved, news

    @property
    def penalties_db(self) -> tuple[float, ...]:
        """What the taps of own lanes leave in their light."""
        return tuple(transmitter.penalty_db for transmitter in self.transmitters)

    def shapes(self) -> tuple[LaneShape, ...]:
        return tuple(
            _shape(
                climb.serial, climb.ask, lane.done, lane.result, lane.pre, lane.post,
                lane.penalty_mdb,
            )
            for climb, lane in zip(self.climbs, self.transmitters, strict=True)
        )  # fmt: skip
