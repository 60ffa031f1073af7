"""Link training: one end's machine. Both ends run the same one, over frames that may get lost.

Each message carries all that its sender knows, so the machine needs no particular message, only a
recent one. Two rules keep old frames out. A session number, newer at each attempt, names an
attempt; and nothing counts as evidence unless it echoes our own session back. An end moves on when
its own check has passed and the far end has come as far, so the two are never more than a phase
apart, and what the far end says of a finished phase is final.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from accelhw.link import patience
from accelhw.link.epoch import link_epoch
from accelhw.link.events import (
    Action,
    DataHeard,
    Disabled,
    Enabled,
    Event,
    FrameHeard,
    InterfaceDown,
    InterfaceUp,
    LaneQuality,
    LightChanged,
    LinkDown,
    LinkUp,
    PeerCarrier,
    Report,
    RetrainAsked,
    RetryExhausted,
    SendTraining,
    SetTransmit,
    WakeAt,
    Woke,
)
from accelhw.link.lanemap import LaneMap, chosen_lanes, common_width, far_lanes, lanes_of, mask_of
from accelhw.link.moves import (
    MISWIRED,
    MOVES,
    PHASE_TEXT,
    RANK,
    STATE,
    TRAINING,
    WAITING,
    Phase,
    Step,
)
from accelhw.link.newest import Newest
from accelhw.link.receiver import Receiver
from accelhw.model.link import DownReason, LinkState, PeerId, Reason
from accelhw.model.profile import Profile
from accelhw.wire.training import TrainingMessage


@dataclass(frozen=True, slots=True)
class TrainerConfig:
    """What this end is and can do."""

    me: PeerId
    lanes: int
    line_rate_mbit_per_s: int
    modulation: str
    fec: str
    credit_frames: int

    @classmethod
    def of(cls, me: PeerId, profile: Profile, credit_frames: int) -> TrainerConfig:
        lane = profile.lane
        rate = round(lane.line_rate_gbit_per_s * 1000)
        return cls(me, profile.lanes_per_oe, rate, lane.modulation, lane.fec, credit_frames)

    @property
    def all_lanes(self) -> int:
        return (1 << self.lanes) - 1


@dataclass(slots=True)
class LinkTrainer:
    """One end of a link. Feed it events; carry out what it returns, in order.

    Times are nanoseconds of one monotonic clock, which also numbers the sessions: a later life of
    the same port must see a later clock.
    """

    config: TrainerConfig
    phase: Phase = Phase.OFF
    state: LinkState = LinkState.DOWN
    reason: Reason = field(default_factory=lambda: Reason(DownReason.ADMIN_DOWN))
    peer_reason: Reason = field(default_factory=Reason)
    peer: PeerId | None = None
    session: int = 0
    epoch: int = 0
    width: int = 0
    rx_lanes: int = 0  # masks of the lanes that carry data
    tx_lanes: int = 0
    training_ns: int = 0  # how long the last successful training took
    rtt_ns: int = 0
    trainings: int = 0
    failures: int = 0
    dropped: dict[int, Reason] = field(default_factory=dict)  # lanes that a link does without

    _map: LaneMap = field(init=False)
    _receiver: Receiver = field(init=False)
    _now: int = 0
    _out: list[Action] = field(default_factory=list)
    # own side of this attempt
    _sequence: int = 0
    _since: int = 0  # entered this phase
    _seek_since: int = 0
    _heard_first: int = 0  # the attempt heard its peer
    _next_beat: int = 0
    _last_beat: int = 0
    _beats: int = 0  # in this phase
    _alarm: int | None = None
    _interface_down: bool = False
    # the far side
    _newest: Newest = field(default_factory=Newest)
    _newest_carrier: Newest = field(default_factory=Newest)
    _bound: tuple[PeerId, int] | None = None  # the peer and its session
    _peer_message: TrainingMessage | None = None  # newest of this pair of sessions
    _echo: tuple[int, int] = (0, 0)  # its sent_ns, and when it came
    _last_heard: int = 0
    _peer_down_ns: int | None = None  # when it said last that it is switched off
    _rtt_min: int = 0  # in this attempt
    _rtt_last: int = 0
    # hold-off
    _fails: int = 0
    _hold_until: int = 0
    _held_lanes: int = 0
    _widen_at: int | None = None
    _widen_wait: int = patience.WIDEN_NS

    def __post_init__(self) -> None:
        self._map = LaneMap(self.config.lanes)
        self._receiver = Receiver(self.config.fec)

    # ---- views -----------------------------------------------------------------------------------

    @property
    def lane_map(self) -> tuple[int | None, ...]:
        """For each arrival lane, the far Tx lane heard on it in this attempt."""
        return tuple(self._map.far)

    @property
    def inverted(self) -> int:
        return self._map.inverted

    @property
    def active(self) -> bool:
        return self.phase is Phase.ACTIVE

    # ---- the machine -----------------------------------------------------------------------------

    def handle(self, event: Event, now_ns: int) -> list[Action]:
        self._now = now_ns
        self._out = []
        match event:
            case FrameHeard():
                self._on_frame(event)
            case Woke():
                self._alarm = None
                self._on_woke()
            case PeerCarrier():
                self._on_carrier(event)
            case LightChanged(lit, locked):
                self._on_light(lit, locked)
            case LaneQuality():
                self._on_quality(event)
            case DataHeard(epoch):
                if self.phase is Phase.RETRY_START and epoch == self._common_epoch():
                    self._move(Step.PASSED)
            case Enabled():
                self._fails = 0
                self._move(Step.ENABLED)
            case Disabled(reason):
                self._move(Step.DISABLED, Reason(reason))
            case RetrainAsked():
                self._fails = 0
                self._widen_wait = patience.WIDEN_NS
                self._move(Step.LOST, Reason(DownReason.RETRAIN_COMMANDED))
            case RetryExhausted():
                if self.active:
                    self._move(Step.LOST, Reason(DownReason.REPLAY_EXHAUSTED))
            case InterfaceDown():
                was_down, self._interface_down = self._interface_down, True
                if not was_down and self.phase is not Phase.HOLD_OFF:
                    self._move(Step.LOST, Reason(DownReason.INTERFACE_DOWN))
            case InterfaceUp():
                self._interface_down = False
                if self.phase is Phase.SEEK:
                    self._beat()
        self._arm()
        return self._out

    def _move(self, step: Step, reason: Reason | None = None) -> None:
        target = MOVES.get((self.phase, step))
        if target is None:
            return
        was_active = self.active
        self.phase = target
        self.state = STATE[target]
        self._since = self._now
        self._beats = 0
        if reason is not None:
            self.reason = reason
        if was_active:
            self.epoch = self.width = self.rx_lanes = self.tx_lanes = 0
            self._out.append(LinkDown(self.reason))
        match target:
            case Phase.OFF:
                self._forget_peer()
                self._out.append(SetTransmit(False))
            case Phase.SEEK:
                self._enter_seek(new_session=step is not Step.PEER_CHANGED)
                if step is Step.ENABLED:
                    self.reason = Reason()
                    self._out.append(SetTransmit(True))
                self._beat()
            case Phase.ACTIVE:
                self._enter_active()
            case Phase.HOLD_OFF:
                self._enter_hold_off()
            case _:
                if target is Phase.LOCK:
                    self._heard_first = self._now
                    self._interface_down = False
                    if self.reason.code in WAITING:
                        self.reason = Reason()
                self._say(PHASE_TEXT[target])
                self._beat()

    # ---- entering a phase ------------------------------------------------------------------------

    def _enter_seek(self, new_session: bool) -> None:
        if new_session:
            self.session = max(self._now, self.session + 1)
            self._sequence = 0
            self._forget_peer()
        self._seek_since = self._now
        self._peer_message = None
        self._rtt_min = 0
        self.dropped = {}
        self._map.clear()
        self._widen_at = None
        self._say(PHASE_TEXT[Phase.SEEK])

    def _forget_peer(self) -> None:
        self._bound = None
        self._peer_message = None
        self._echo = (0, 0)

    def _enter_active(self) -> None:
        peer = self._peer_message
        assert peer is not None
        config = self.config
        self.peer = peer.sender
        good = self._good()
        self.width = common_width(config.lanes, good, peer.good)
        self.rx_lanes = chosen_lanes(good, self._map.far, self.width)
        theirs = chosen_lanes(peer.good, peer.lane_map, self.width)
        self.tx_lanes = far_lanes(theirs, peer.lane_map) & config.all_lanes
        self.epoch = self._common_epoch()
        self.rtt_ns = self._rtt_min
        self.training_ns = self._now - self._heard_first
        self.trainings += 1
        self._fails = 0
        self._receiver.forgive()
        degraded = self.width < config.lanes
        self.state = LinkState.DEGRADED if degraded else LinkState.UP
        self.reason = self.dropped[min(self.dropped)] if self.dropped else Reason()
        if not degraded:
            self._widen_wait = patience.WIDEN_NS
        self._out.append(
            LinkUp(
                self.epoch, self.peer, self.width, self.rx_lanes, self.tx_lanes, self.lane_map,
                self.inverted, peer.credit_frames, self.rtt_ns, degraded,
            )
        )  # fmt: skip
        self._beat()  # the far end may still wait for this
        self._say(f"up with {self.width} of {config.lanes} lanes")
        self._consider_widening()

    def _enter_hold_off(self) -> None:
        self.failures += 1
        wait = min(patience.HOLD_OFF_NS << min(self._fails, 20), patience.HOLD_OFF_MAX_NS)
        self._fails += 1
        self._hold_until = self._now + wait
        self._held_lanes = self._receiver.usable
        self._say(
            f"failed: {self.reason.code.name}; tries again in {wait / 1e9:g} s", self.reason.lane
        )
        self._beat()  # so that the far end knows why

    # ---- frames ----------------------------------------------------------------------------------

    def _on_frame(self, event: FrameHeard) -> None:
        phase = self.phase
        if phase is Phase.OFF or phase is Phase.HOLD_OFF:
            return
        lane = event.arrival_lane
        training = event.training
        message = training.message
        if lane < self.config.lanes and not self._receiver.hears & 1 << lane:
            return  # No frame passes a receiver that sees no light or has no clock.
        if message is self._peer_message:  # another lane of a beat that was read already
            self._on_evidence(lane, event, message)
            return
        if message.sender == self.config.me:
            if phase is Phase.SEEK:
                self._move(Step.FAILED, Reason(DownReason.LOOPED_TO_SELF, min(lane, 63)))
            return
        fresh = self._freshness(message)
        if fresh is None:
            return
        if fresh:
            self._last_heard = self._now
            self.peer = message.sender
            self.peer_reason = Reason(message.reason, message.reason_lane)
            self._echo = (message.sent_ns, self._now)
            if phase is not Phase.ACTIVE and (detail := self._difference(message)):
                self._move(Step.FAILED, Reason(DownReason.INCOMPATIBLE_PEER, None, detail))
                return
        match self.phase:
            case Phase.SEEK:
                self._on_seek_frame(message, fresh)
            case Phase.ACTIVE:
                self._on_active_frame(message, fresh)
                return
            case _:
                self._on_training_frame(message, fresh)
        self._on_evidence(lane, event, message)

    def _freshness(self, message: TrainingMessage) -> bool | None:
        """True: newer than all before. False: of the newest session, but late. None: stale."""
        sender = message.sender
        known = self._bound is None or self._bound[0] == sender
        if not known and self._now - self._last_heard < patience.PEER_REPLACED_NS:
            return None  # A second port on this fibre, or an earlier life of the peer.
        if self._newest.advance(sender, (message.session, message.sequence)):
            return True
        newest = self._newest.of(sender)
        return False if newest is not None and newest[0] == message.session else None

    def _difference(self, message: TrainingMessage) -> str:
        ours, theirs = (
            (each.lanes, each.line_rate_mbit_per_s, each.modulation, each.fec)
            for each in (self.config, message)
        )
        if ours == theirs:
            return ""
        here, there = (
            f"{lanes} x {rate / 1000:g} Gb/s {modulation} with fec {fec}"
            for lanes, rate, modulation, fec in (ours, theirs)
        )
        return f"here {here}, {message.sender} has {there}"

    def _on_seek_frame(self, message: TrainingMessage, fresh: bool) -> None:
        if not fresh:
            return
        if self._bound != (message.sender, message.session):
            self._bound = (message.sender, message.session)
            self._next_beat = min(self._next_beat, self._last_beat + patience.BEAT_NS // 2)
        hears_us = message.echo_session == self.session
        if hears_us and message.phase in RANK:
            self._peer_message = message
            self._measure(message)
            self._move(Step.PEER_HEARD)

    def _on_training_frame(self, message: TrainingMessage, fresh: bool) -> None:
        if not fresh:
            return
        if self._bound != (message.sender, message.session):
            self._move(Step.PEER_CHANGED)
            self._on_seek_frame(message, fresh)
        elif message.echo_session == self.session:
            self._peer_message = message
            if message.phase is Phase.HOLD_OFF:
                self._move(Step.LOST, Reason(DownReason.PEER_SILENT, None, "the peer gave up"))
            elif RANK.get(message.phase, 0) < RANK[self.phase] and self._beats > 1:
                # It repeats itself, so it missed that we went on.
                self._next_beat = min(self._next_beat, self._last_beat + patience.REPLY_NS)

    def _on_active_frame(self, message: TrainingMessage, fresh: bool) -> None:
        if not fresh:
            return
        if self._bound != (message.sender, message.session):
            self._move(Step.LOST, Reason(DownReason.PEER_RESTARTED))
            self._on_seek_frame(message, fresh)
        elif message.echo_session == self.session:
            if message.phase is Phase.RETRY_START:
                self._beat()  # It missed that we are active.
            elif message.phase is Phase.HOLD_OFF:
                self._move(Step.LOST, Reason(DownReason.PEER_RESTARTED))

    def _on_evidence(self, lane: int, event: FrameHeard, message: TrainingMessage) -> None:
        """What a frame proves about its lane; only frames of this very pair of sessions count."""
        if (
            self.phase not in RANK
            or self.phase is Phase.SEEK
            or message.echo_session != self.session
            or self._bound != (message.sender, message.session)
            or message.phase is Phase.SEEK
            or lane >= self.config.lanes
        ):
            return
        training = event.training
        before = self._map.count[lane]
        same = self._map.record(lane, training.tx_lane, training.inverted)
        if not same and self.phase is not Phase.LOCK and lane not in self.dropped:
            detail = f"far lane {training.tx_lane} arrives there now"
            self._move(Step.LOST, Reason(DownReason.ALIGN_FAILED, lane, detail))
            return
        if before == patience.LOCK_FRAMES - 1 and self.phase is Phase.LOCK:
            self._say("locked", lane)
        if message.phase not in _BEFORE_ALIGN:
            self._map.aligned |= 1 << lane
        self._measure(message)
        self._try_pass()

    def _measure(self, message: TrainingMessage) -> None:
        if message.echo_sent_ns:
            rtt = self._now - message.echo_sent_ns - message.echo_held_ns
            if rtt > 0:
                self._rtt_last = rtt
                self._rtt_min = min(self._rtt_min or rtt, rtt)

    # ---- moving on -------------------------------------------------------------------------------

    def _good(self) -> int:
        """Lanes that passed, or have yet to pass, every check of this attempt."""
        return self.config.all_lanes & ~sum(1 << lane for lane in self.dropped)

    def _missing(self) -> int:
        """Lanes that hold this phase up."""
        match self.phase:
            case Phase.LOCK:
                ready = self._map.heard(patience.LOCK_FRAMES) & self._receiver.hears
            case Phase.BER_CHECK:
                ready = self._receiver.passing
            case Phase.ALIGN:
                ready = self._map.aligned if self._rtt_min else 0
            case _:
                return 0
        return self._good() & ~ready

    def _peer_follows(self) -> bool:
        peer = self._peer_message
        return peer is not None and RANK.get(peer.phase, 0) >= RANK[self.phase]

    def _try_pass(self) -> None:
        """Leave the phase if all is there. The next one needs the far end's word for it at least,
        so a single call moves a single phase."""
        if self.phase not in TRAINING or not self._peer_follows():
            return
        if self.phase is not Phase.RETRY_START and self._now < self._since + patience.DWELL_NS:
            return
        if self._missing():
            return
        match self.phase:
            case Phase.MAP:
                if fault := self._map.fault(self._good()):
                    self._move(Step.FAILED, fault)
                    return
                for lane in lanes_of(self._good()):
                    how = ", inverted" if self.inverted >> lane & 1 else ""
                    self._say(f"hears far lane {self._map.far[lane]}{how}", lane)
            case Phase.BER_CHECK:
                for lane in lanes_of(self._good()):
                    self._say(self._receiver.text(lane), lane)
            case Phase.ALIGN:
                peer = self._peer_message
                assert peer is not None
                if not common_width(self.config.lanes, self._good(), peer.good):
                    self._move(Step.FAILED, Reason(DownReason.ALIGN_FAILED, None, "no lane"))
                    return
            case _:
                pass
        self._move(Step.PASSED)

    # ---- time ------------------------------------------------------------------------------------

    def _on_woke(self) -> None:
        now = self._now
        if self.phase in TRAINING:
            self._try_pass()
            if self.phase in TRAINING:
                self._check_patience()
        elif self.phase is Phase.HOLD_OFF and now >= self._hold_until:
            self._move(Step.HELD_OFF)
        elif self.phase is Phase.SEEK:
            self._explain_seeking()
        elif self.active and self._widen_at is not None and now >= self._widen_at:
            self._widen_wait = min(self._widen_wait * 2, patience.WIDEN_MAX_NS)
            detail = "its dropped lanes are good again"
            self._move(Step.LOST, Reason(DownReason.RETRAIN_COMMANDED, None, detail))
        if self._talks() and now >= self._next_beat:
            self._beat()

    def _check_patience(self) -> None:
        waited = self._now - self._since
        if self._now - self._last_heard >= patience.PEER_SILENCE_NS + self._slack():
            detail = "it stopped in the middle of training"
            self._move(Step.LOST, Reason(DownReason.PEER_SILENT, None, detail))
            return
        missing = self._missing()
        for lane in lanes_of(missing):
            if reason := self._lane_fault(lane, waited):
                self.dropped[lane] = reason
                self._say(f"{reason.code.name}: {reason.detail}", lane)
        if missing and not missing & self._good():
            self._after_dropping()
        elif not missing and waited >= patience.PEER_FOLLOWS_NS + self._slack():
            code = (
                DownReason.RETRY_START_TIMEOUT
                if self.phase is Phase.RETRY_START
                else DownReason.ALIGN_FAILED
            )
            self._move(Step.FAILED, Reason(code, None, "the peer does not follow"))

    def _slack(self) -> int:
        """More patience on a busy machine, where a round trip takes long."""
        return 4 * self._rtt_last

    def _lane_fault(self, lane: int, waited: int) -> Reason | None:
        """Why this lane should be given up now, or None to wait on."""
        bit = 1 << lane
        if not self._receiver.lit & bit:
            limit_ns, code, detail = patience.LIGHT_GRACE_NS, DownReason.PARTIAL_LIGHT, "dark"
        elif not self._receiver.locked & bit:
            limit_ns, code, detail = patience.LIGHT_GRACE_NS, DownReason.CDR_NO_LOCK, "no lock"
        elif self.phase is Phase.LOCK and self._map.clashes:
            lane, (first, second) = min(self._map.clashes.items())
            detail = f"far lanes {first} and {second} both arrive there"
            limit_ns, code = patience.PHASE_NS, DownReason.LANE_DUPLICATE
        elif self.phase is Phase.LOCK:
            detail = "lit, but no far lane's frames arrive"
            limit_ns, code = patience.PHASE_NS, DownReason.LANE_MISSING
        elif self.phase is Phase.BER_CHECK:
            detail = self._receiver.text(lane)
            limit_ns, code = patience.LIGHT_GRACE_NS, DownReason.BER_TOO_HIGH
        else:
            limit_ns, code, detail = patience.PHASE_NS, DownReason.ALIGN_FAILED, "no marker"
        return Reason(code, lane, detail) if waited >= limit_ns + self._slack() else None

    def _after_dropping(self) -> None:
        """Go on with fewer lanes where that is safe: light and errors, never a crossed cable."""
        first = self.dropped[min(self.dropped)]
        self.reason = first
        hard = [reason for reason in self.dropped.values() if reason.code in MISWIRED]
        if hard:
            self._move(Step.FAILED, hard[0])
        elif not self._good():
            self._move(Step.FAILED, first)
        else:
            self._try_pass()

    def _explain_seeking(self) -> None:
        if self._now - self._seek_since < patience.SEEK_PATIENCE_NS:
            return
        if self._interface_down:
            reason = Reason(DownReason.INTERFACE_DOWN)
        elif self._peer_is_down():
            reason = Reason(DownReason.PEER_DOWN)
        elif not self._receiver.lit:
            reason = Reason(DownReason.NO_SIGNAL)
        elif not self._receiver.hears:
            lane = next(lanes_of(self._receiver.lit))
            reason = Reason(DownReason.CDR_NO_LOCK, lane, "no lane locks")
        elif self._hears_peer():
            reason = Reason(DownReason.PEER_SILENT, None, "the peer does not hear this port")
        else:
            reason = Reason(DownReason.PEER_SILENT)
        if reason.code != self.reason.code:
            self._say(f"still seeking: {reason.code.name}", reason.lane)
        self.reason = reason

    def _peer_is_down(self) -> bool:
        said = self._peer_down_ns
        return said is not None and self._now - said < patience.PEER_SILENCE_NS

    def _talks(self) -> bool:
        return self.phase is Phase.SEEK or self.phase in TRAINING

    def _arm(self) -> None:
        """Ask to be woken when the next thing is due, unless that is asked already."""
        deadlines = []
        if self._talks():
            deadlines.append(self._next_beat)
        if self.phase in TRAINING and self._now < self._since + patience.DWELL_NS:
            deadlines.append(self._since + patience.DWELL_NS)
        if self.phase is Phase.HOLD_OFF:
            deadlines.append(self._hold_until)
        if self.active and self._widen_at is not None:
            deadlines.append(self._widen_at)
        if deadlines and (deadline := max(min(deadlines), self._now)) != self._alarm:
            self._alarm = deadline
            self._out.append(WakeAt(deadline))

    # ---- sending ---------------------------------------------------------------------------------

    def _beat(self) -> None:
        if self.phase is not Phase.SEEK or self._hears_peer():
            interval = patience.BEAT_NS << min(self._beats, patience.BEAT_DOUBLINGS)
        else:
            interval = patience.SEEK_LIT_NS if self._receiver.lit else patience.SEEK_DARK_NS
        # Where answers take long, many ports talk at once: then this one talks less.
        interval = max(interval, 2 * self._rtt_last)
        self._last_beat = self._now
        self._next_beat = self._now + interval
        self._beats += 1
        self._sequence += 1
        self._out.append(SendTraining(self._beat_lanes(), self._message()))

    def _hears_peer(self) -> bool:
        return self._bound is not None and self._now - self._last_heard < patience.PEER_SILENCE_NS

    def _beat_lanes(self) -> tuple[int, ...]:
        """Each lane that is to be proved, here or at a peer that is behind; else a few, in turn."""
        every = self.config.all_lanes
        peer = self._peer_message
        heard = every if peer is None else far_lanes(peer.good, peer.lane_map) & every
        repeats = self._beats > 1  # the peer had time to say what it lacks
        behind = min(self.phase, peer.phase) if peer is not None and repeats else self.phase
        if behind is Phase.ALIGN:
            return tuple(lanes_of(every))
        missing = every & ~heard if self.phase > Phase.SEEK and behind <= Phase.LOCK else 0
        lanes = tuple(lanes_of(heard or every))
        if len(lanes) > patience.STATUS_LANES:
            first = self._sequence * patience.STATUS_LANES % len(lanes)
            lanes = (lanes + lanes)[first : first + patience.STATUS_LANES]
        return tuple(lanes_of(missing | mask_of(lanes)))

    def _message(self) -> TrainingMessage:
        config = self.config
        echo_session = self._bound[1] if self._bound else 0
        echo_sent, echo_came = self._echo
        return TrainingMessage(
            config.me, self.session, echo_session, self._sequence, self.phase,
            self.reason.code, self.reason.lane, config.lanes, config.line_rate_mbit_per_s,
            config.modulation, config.fec, config.credit_frames, self._now, echo_sent,
            self._now - echo_came if echo_sent else 0, self._receiver.lit, self._receiver.locked,
            self._good(),
            self._map.inverted, tuple(self._map.far),
        )  # fmt: skip

    def _say(self, text: str, lane: int | None = None) -> None:
        self._out.append(Report(text, lane, self.phase))

    def _common_epoch(self) -> int:
        assert self._bound is not None
        return link_epoch((self.config.me, self.session), self._bound)

    # ---- light, quality, the peer's carrier ------------------------------------------------------

    def _on_light(self, lit: int, locked: int) -> None:
        brighter = lit & ~self._receiver.lit
        self._receiver.lit, self._receiver.locked = lit, locked
        if self.active and (gone := self.rx_lanes & ~(lit & locked)):
            lane = next(lanes_of(gone))
            code = DownReason.CDR_NO_LOCK if lit >> lane & 1 else DownReason.SIGNAL_LOST
            self._move(Step.LOST, Reason(code, lane))
        elif self.phase in TRAINING and not lit:
            self._move(Step.LOST, Reason(DownReason.SIGNAL_LOST, 0))
        elif (
            self.phase in (Phase.ALIGN, Phase.RETRY_START)
            and (gone := self._good() & ~(lit & locked))
        ):  # fmt: skip
            self._move(Step.LOST, Reason(DownReason.SIGNAL_LOST, next(lanes_of(gone))))
        elif self.phase is Phase.SEEK and brighter:
            self._interface_down = False
            self._beat()
        self._improved()

    def _on_quality(self, quality: LaneQuality) -> None:
        self._receiver.measure(quality)
        if self.active and (worst := self._receiver.worn_out(self.rx_lanes, self._now)) is not None:
            detail = self._receiver.text(worst)
            self._move(Step.LOST, Reason(DownReason.BER_TOO_HIGH, worst, detail))
        self._improved()
        self._try_pass()

    def _improved(self) -> None:
        """Better light ends a wait early."""
        if self.phase is Phase.HOLD_OFF and self._receiver.usable & ~self._held_lanes:
            self._hold_until = min(self._hold_until, self._now + patience.HOLD_OFF_CUT_NS)
        elif self.active:
            self._consider_widening()

    def _consider_widening(self) -> None:
        if not self.dropped or self._receiver.usable != self.config.all_lanes:
            self._widen_at = None
        elif self._widen_at is None:
            self._widen_at = self._now + self._widen_wait

    def _on_carrier(self, event: PeerCarrier) -> None:
        message = event.message
        sender = message.sender
        if sender == self.config.me or not self._newest_carrier.advance(sender, (message.sent_ns,)):
            return
        bound = self._bound
        if self.active and bound is not None and sender != bound[0]:
            return  # Its training frames will tell, once the known peer is silent.
        if self.phase not in TRAINING or sender == self.peer:
            self.peer = sender
            self.peer_reason = Reason(message.reason, message.reason_lane)
        self._peer_down_ns = self._now if message.state is LinkState.DOWN else None
        if not self.active or bound is None:
            return
        self._last_heard = self._now
        if self._peer_down_ns is not None:
            self._move(Step.LOST, Reason(DownReason.PEER_DOWN))
        elif message.session > bound[1] or message.state is LinkState.FAILED:
            self._move(Step.LOST, Reason(DownReason.PEER_RESTARTED))
        elif (lane := self._moved_lane(event)) is not None:
            detail = f"far lane {message.lanes[lane].tx_lane} arrives there now"
            self._move(Step.LOST, Reason(DownReason.ALIGN_LOST, lane, detail))

    def _moved_lane(self, event: PeerCarrier) -> int | None:
        """A lane in use whose marker is no longer the one that was learned."""
        lights = event.message.lanes
        for lane in lanes_of(self.rx_lanes):
            if lane < len(lights) and (light := lights[lane]).on:
                learned = (self._map.far[lane], bool(self.inverted >> lane & 1))
                if (light.tx_lane, light.inverted) != learned:
                    return lane
        return None


_BEFORE_ALIGN = frozenset({Phase.SEEK, Phase.LOCK, Phase.MAP, Phase.BER_CHECK, Phase.HOLD_OFF})
