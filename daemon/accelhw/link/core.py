"""What a link's machine is made of: its state, its side of the conversation, its lanes.

The machine itself is in two halves above this: `upkeep` for a link that is up, `training` for the
way there.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from accelhw.link import patience
from accelhw.link.config import TrainerConfig
from accelhw.link.damping import Damping, HoldOff
from accelhw.link.epoch import link_epoch
from accelhw.link.events import (
    Action,
    Report,
    SendTraining,
)
from accelhw.link.farend import FarEnd
from accelhw.link.lanemap import NO_LANES, LaneSet, LaneView, agree, far_lanes, lanes_of, mask_of
from accelhw.link.lanes import Lanes
from accelhw.link.moves import (
    CARRYING,
    RANK,
    TRAINING,
    Phase,
    Step,
)
from accelhw.link.wayback import WayBack
from accelhw.model.link import DownReason, LinkMode, LinkState, PeerId, Reason
from accelhw.wire.training import TrainingMessage

RECOVERIES_MAX = (1 << 16) - 1  # of one epoch; they travel as 16 bits


@dataclass(slots=True)
class Core:
    """Times are nanoseconds of one monotonic clock, which also numbers the sessions: a later life
    of the same port must see a later clock.
    """

    config: TrainerConfig
    phase: Phase = Phase.OFF
    state: LinkState = LinkState.DOWN
    reason: Reason = field(default_factory=lambda: Reason(DownReason.ADMIN_DOWN))
    peer_reason: Reason = field(default_factory=Reason)
    peer: PeerId | None = None
    session: int = 0
    epoch: int = 0
    mode: LinkMode = field(init=False)
    used: LaneSet = NO_LANES  # while up
    training_ns: int = 0  # how long the last successful training took
    rtt_ns: int = 0
    # counts
    trainings: int = 0
    failures: int = 0
    fallbacks: int = 0
    recoveries: int = 0  # troubles that the link came through
    recovery_failures: int = 0  # and those that took it down
    flaps: int = 0  # times that light or errors failed the link, before recovery and damping
    flaps_damped: int = 0  # times that it was held down for that

    lanes: Lanes = field(init=False)
    _far: FarEnd = field(default_factory=FarEnd)
    _now: int = 0
    _out: list[Action] = field(default_factory=list)
    # own side of this attempt
    _sequence: int = 0
    _since: int = 0  # entered this phase, or this recovery
    _seek_since: int = 0
    _heard_first: int = 0  # the attempt heard its peer
    _next_beat: int = 0
    _last_beat: int = 0
    _beats: int = 0  # in this phase
    _alarm: int | None = None
    _interface_down: bool = False
    _tried: int = 0  # modes in which training failed
    _noise: Reason | None = None  # why it fell back
    _taps_moved: bool = False  # since the light was told
    # while up
    _recovery: int = 0  # number of the last one
    _recovering_since: int = 0
    _exhausted_at: int | None = None  # when replays ended without success, last
    _in_trouble: bool = False  # or else lanes are tried again
    _ready: bool = False
    _widen_at: int | None = None
    _widen_wait: int = patience.WIDEN_NS
    _whole_since: int | None = None  # at full width
    _way_back: WayBack = field(default_factory=WayBack)
    _data_flows: bool = False
    _retrain_since: int | None = None  # a training that would do good waits for data to pause
    # hold-off
    _hold_off: HoldOff = field(default_factory=HoldOff)
    _damping: Damping = field(default_factory=Damping)
    _damped: bool = False
    _hold_until: int = 0
    _held_lanes: int = 0

    def __post_init__(self) -> None:
        self.lanes = Lanes(self.config)
        self.mode = self.config.modes[0]

    # ---- views -----------------------------------------------------------------------------------

    @property
    def lane_map(self) -> tuple[int | None, ...]:
        """For each arrival lane, the far Tx lane heard on it in this attempt."""
        return tuple(self.lanes.map.far)

    @property
    def inverted(self) -> int:
        return self.lanes.map.inverted

    @property
    def dropped(self) -> dict[int, Reason]:
        return self.lanes.dropped

    @property
    def width(self) -> int:
        return self.used.width

    @property
    def rx_lanes(self) -> int:
        return self.used.rx

    @property
    def tx_lanes(self) -> int:
        return self.used.tx

    @property
    def active(self) -> bool:
        """Up, if perhaps in trouble."""
        return self.phase in CARRYING

    # ---- what both halves use --------------------------------------------------------------------

    def _move(self, step: Step, reason: Reason | None = None) -> None:
        """Follow the diagram, and do what the new phase begins with."""
        raise NotImplementedError

    def _on_seek_frame(self, message: TrainingMessage) -> None:
        """The first word of a peer."""
        raise NotImplementedError

    def _say(self, text: str, lane: int | None = None) -> None:
        self._out.append(Report(text, lane, self.phase))

    def _say_why(self, what: str, reason: Reason, more: str = "") -> None:
        """The same with a reason: a single lane is named by the report itself."""
        single = reason.lane if reason.blamed.bit_count() == 1 else None
        why = str(reason) if single is None else reason.code.name
        self._say(f"{what}: {why}{more}" if what else f"{why}{more}", single)

    def _missing(self) -> int:
        """Lanes that hold this phase up."""
        in_phase_ns = self._now - self._since
        return self.lanes.missing(self.phase, in_phase_ns, bool(self._far.rtt_min))

    def _agreed(self, peer: TrainingMessage) -> LaneSet:
        config = self.config
        return agree(
            config.data_lanes,
            self.lanes.view,
            LaneView(peer.good, peer.lane_map),
            near_first=_order(config.me) < _order(peer.sender),
        )

    def _common_epoch(self) -> int:
        assert self._far.bound is not None
        return link_epoch((self.config.me, self.session), self._far.bound)

    # ---- sending ---------------------------------------------------------------------------------

    def _beat(self) -> None:
        match self.phase:
            case Phase.SEEK if not self._far.talks(self._now):
                lit = self.lanes.receiver.lit
                interval = patience.SEEK_LIT_NS if lit else patience.SEEK_DARK_NS
            case Phase.RECOVERY:
                doublings = min(self._beats, patience.RECOVERY_DOUBLINGS)
                interval = patience.RECOVERY_BEAT_NS << doublings
            case Phase.EQ_TRAIN:
                interval = patience.EQ_BEAT_NS << min(self._beats, patience.BEAT_DOUBLINGS)
            case _:
                interval = patience.BEAT_NS << min(self._beats, patience.BEAT_DOUBLINGS)
        # Where answers take long, many ports talk at once: then this one talks less.
        interval = max(interval, min(2 * self._far.rtt_last, patience.BEAT_MAX_NS))
        self._last_beat = self._now
        self._next_beat = self._now + interval
        self._beats += 1
        self._sequence += 1
        self._out.append(SendTraining(self._beat_lanes(), self._message()))

    def _beat_lanes(self) -> tuple[int, ...]:
        """Each lane that is to be proved, here or at a peer that is behind; else a few, in turn."""
        every = self.config.all_lanes
        peer = self._far.message
        heard = every if peer is None else far_lanes(peer.good, peer.lane_map) & every
        rank = RANK.get(self.phase, 0)
        behind = rank
        if peer is not None and self._beats > 1:  # it had time to say what it lacks
            behind = min(rank, RANK.get(peer.phase, 0))
        if behind == RANK[Phase.ALIGN] or self._recovers_at(peer):
            return tuple(lanes_of(every))
        missing = every & ~heard if rank > 0 and behind <= RANK[Phase.LOCK] else 0
        lanes = tuple(lanes_of(heard or every))
        few = patience.EQ_LANES if behind == RANK[Phase.EQ_TRAIN] else patience.STATUS_LANES
        if len(lanes) > few:
            first = self._sequence * few % len(lanes)
            lanes = (lanes + lanes)[first : first + few]
        return tuple(lanes_of(missing | mask_of(lanes)))

    def _recovers_at(self, peer: TrainingMessage | None) -> bool:
        """The far end may still need a frame on each lane for a recovery."""
        if not self.active or not self._recovery:
            return False
        return peer is None or not peer.ready or peer.recovery != self._recovery

    def _message(self) -> TrainingMessage:
        config, far, lanes = self.config, self._far, self.lanes
        echo_session = far.bound[1] if far.bound else 0
        echo_sent, echo_came = far.echo
        peer = far.message
        equalises = self.phase is Phase.EQ_TRAIN or (
            peer is not None and peer.phase is Phase.EQ_TRAIN
        )
        return TrainingMessage(
            sender=config.me,
            session=self.session,
            echo_session=echo_session,
            sequence=self._sequence,
            phase=self.phase,
            reason=self.reason.code,
            reason_lane=self.reason.lane,
            lanes=config.lanes,
            spare_lanes=config.spare_lanes,
            line_rate_mbit_per_s=config.line_rate_mbit_per_s,
            modulation=config.modulation,
            modes=config.mode_set,
            tried=self._tried,
            mode=self.mode,
            credit_frames=config.credit_frames,
            sent_ns=self._now,
            echo_sent_ns=echo_sent,
            echo_held_ns=self._now - echo_came if echo_sent else 0,
            lit=lanes.receiver.lit,
            locked=lanes.receiver.locked,
            good=lanes.good,
            inverted=self.inverted,
            lane_map=self.lane_map,
            recovery=self._recovery if self.active else 0,
            ready=self._ready and self.active,
            shapes=lanes.equaliser.shapes() if equalises and self.phase in TRAINING else (),
        )


def _order(peer: PeerId) -> tuple[str, str, int]:
    """Some order of ports, so that two ends can choose alike."""
    return peer.chassis, peer.card, peer.oe
