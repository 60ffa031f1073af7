"""Link training: one end's machine. Both ends run the same one, over frames that may get lost.

Each message carries all that its sender knows, so the machine needs no particular message, only a
recent one. Two rules keep old frames out. A session number, newer at each attempt, names an
attempt; and nothing counts as evidence unless it echoes our own session back. An end moves on when
its own check has passed and the far end has come as far, so the two are never more than a phase
apart, and what the far end says of a finished phase is final.

A link that is up and gets into trouble recovers under the same sessions. Recoveries are numbered,
and an end that hears of a newer one joins it, so both mean the same one when they say it is done.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from accelhw.link import patience
from accelhw.link.config import TrainerConfig
from accelhw.link.damping import Damping, HoldOff
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
    LinkHeld,
    LinkResumed,
    LinkUp,
    PeerCarrier,
    Report,
    RetrainAsked,
    RetryExhausted,
    SendTraining,
    SetMode,
    SetTransmit,
    ShapeLight,
    TransmitterChanged,
    WakeAt,
    Woke,
)
from accelhw.link.farend import FarEnd
from accelhw.link.lanemap import NO_LANES, LaneSet, LaneView, agree, far_lanes, lanes_of, mask_of
from accelhw.link.lanes import Lanes
from accelhw.link.moves import (
    CARRYING,
    HOPELESS,
    MOVES,
    PHASE_TEXT,
    PHYSICAL,
    RANK,
    STATE,
    TOO_NOISY,
    TRAINING,
    WAITING,
    Phase,
    Step,
)
from accelhw.link.negotiate import best_mode, chosen_mode, difference, has_other_mode
from accelhw.model.link import DownReason, LinkMode, LinkState, PeerId, Reason
from accelhw.wire.training import TrainingMessage

RECOVERIES_MAX = (1 << 16) - 1  # of one epoch; they travel as 16 bits


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
    # while up
    _recovery: int = 0  # number of the last one
    _recovering_since: int = 0
    _in_trouble: bool = False  # or else lanes are tried again
    _ready: bool = False
    _widen_at: int | None = None
    _widen_wait: int = patience.WIDEN_NS
    _whole_since: int | None = None  # at full width
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
            case TransmitterChanged(ready, broken):
                self._on_transmitter(ready, broken)
            case LightChanged(lit, locked):
                self._on_light(lit, locked)
            case LaneQuality():
                self._on_quality(event)
            case DataHeard(epoch):
                if self.phase is Phase.RETRY_START and epoch == self._common_epoch():
                    self._move(Step.PASSED)
            case Enabled():
                self._start_afresh()
                self._move(Step.ENABLED)
            case Disabled(reason):
                self._move(Step.DISABLED, Reason(reason))
            case RetrainAsked():
                self._start_afresh()
                self._move(Step.LOST, Reason(DownReason.RETRAIN_COMMANDED))
            case RetryExhausted():
                if self.active:
                    self._fall(Reason(DownReason.REPLAY_EXHAUSTED))
            case InterfaceDown():
                was_down, self._interface_down = self._interface_down, True
                if not was_down and self.phase is not Phase.HOLD_OFF:
                    self._fall(Reason(DownReason.INTERFACE_DOWN))
            case InterfaceUp():
                self._interface_down = False
                if self.phase is Phase.SEEK:
                    self._beat()
        self._arm()
        return self._out

    def _start_afresh(self) -> None:
        """An operator's word: what failed before may not fail again."""
        self._hold_off.forgive()
        self._damping.forgive()
        self._tried = 0
        self._noise = None
        self._widen_wait = patience.WIDEN_NS
        self.lanes.forgive()

    def _move(self, step: Step, reason: Reason | None = None) -> None:
        target = MOVES.get((self.phase, step))
        if target is None:
            return
        was_active = self.active
        self.phase = target
        if not (was_active and self.active):
            self.state = STATE[target]
        self._since = self._now
        self._beats = 0
        if reason is not None:
            self.reason = reason
        if was_active and not self.active:
            self.epoch, self.used = 0, NO_LANES
            self._widen_at = None
            self._out.append(LinkDown(self.reason))
        match target:
            case Phase.OFF:
                self._far.forget()
                self._out.append(SetTransmit(False))
            case Phase.LASER_ON:
                if step is Step.ENABLED:
                    self.reason = Reason()
                    self._out.append(SetTransmit(True))
                    self._out.append(ShapeLight(self.lanes.equaliser.penalties_db))
                self._say(PHASE_TEXT[target])
                self._settle()
            case Phase.SEEK:
                self._enter_seek(new_session=step is not Step.PEER_CHANGED)
            case Phase.ACTIVE:
                if was_active:
                    self._resume()
                else:
                    self._enter_active()
            case Phase.RECOVERY:
                self._out.append(LinkHeld(self.reason))
            case Phase.HOLD_OFF:
                self._enter_hold_off()
            case _:
                if target is Phase.LOCK:
                    self._enter_lock()
                elif target is Phase.EQ_TRAIN:
                    self.lanes.equaliser.begin()
                self._say(PHASE_TEXT[target])
                self._beat()

    # ---- entering a phase ------------------------------------------------------------------------

    def _enter_seek(self, new_session: bool) -> None:
        if new_session:
            self.session = max(self._now, self.session + 1)
            self._sequence = 0
            self._far.forget()
        self._seek_since = self._now
        self._far.begin()
        self.lanes.begin()
        self._say(PHASE_TEXT[Phase.SEEK])
        self._beat()

    def _enter_lock(self) -> None:
        self._heard_first = self._now
        self._interface_down = False
        if self.reason.code in WAITING:
            self.reason = Reason()
        peer = self._far.message
        assert peer is not None
        self._adopt(chosen_mode(self.config, self._tried, peer))

    def _adopt(self, mode: LinkMode | None) -> None:
        if mode is not None and mode != self.mode:
            self.mode = mode
            self.lanes.set_mode(mode)
            self._say(f"signals with {mode}")
            self._out.append(SetMode(mode))

    def _enter_active(self) -> None:
        peer = self._far.message
        assert peer is not None
        self.peer = peer.sender
        self.epoch = self._common_epoch()
        self.rtt_ns = self._far.rtt_min
        self.training_ns = self._now - self._heard_first
        self.trainings += 1
        self._hold_off.forgive()
        self._recovery = 0
        self._ready = False
        link = self._take_lanes(peer)
        self._out.append(link)
        self._beat()  # the far end may still wait for this
        self._say(f"up with {self.width} of {self.config.data_lanes} lanes")

    def _take_lanes(self, peer: TrainingMessage) -> LinkUp:
        """Settle on the lanes that both ends found good."""
        config = self.config
        self.used = self._agreed(peer)
        self.lanes.receiver.forgive()
        self.lanes.on_trial = 0
        narrow = self.width < config.data_lanes
        degraded = narrow or self.mode != best_mode(config, peer)
        self.state = LinkState.DEGRADED if degraded else LinkState.UP
        self.reason = self._why_not_whole(narrow)
        self._note_width(narrow)
        assert self.peer is not None
        return LinkUp(
            self.epoch, self.peer, self.width, self.rx_lanes, self.tx_lanes, self.lane_map,
            self.inverted, peer.credit_frames, self.rtt_ns, degraded,
        )  # fmt: skip

    def _note_width(self, narrow: bool) -> None:
        """After a long time at full width, lanes that are lost get their first short wait again."""
        whole_since = self._whole_since
        if not narrow:
            self._whole_since = self._now if whole_since is None else whole_since
        elif whole_since is not None:
            self._whole_since = None
            if self._now - whole_since > patience.WIDEN_FORGET_NS:
                self._widen_wait = patience.WIDEN_NS
        self._consider_widening()

    def _agreed(self, peer: TrainingMessage) -> LaneSet:
        config = self.config
        return agree(
            config.data_lanes,
            self.lanes.view,
            LaneView(peer.good, peer.lane_map),
            near_first=_order(config.me) < _order(peer.sender),
        )

    def _why_not_whole(self, narrow: bool) -> Reason:
        if self.dropped:
            return self.dropped[min(self.dropped)]
        if narrow and self.lanes.lasers_out:
            return self.lanes.laser_fault()
        return self._noise or Reason()

    def _enter_hold_off(self) -> None:
        if self._damped:
            self._hold_until = self._now + self._damping.wait_ns(self._now)
            what = "held down"
        else:
            self.failures += 1
            self._hold_until = self._now + self._hold_off.next_ns()
            what = "failed"
        self._held_lanes = self.lanes.receiver.usable
        wait_s = (self._hold_until - self._now) / 1e9
        reason = self.reason
        self._say(f"{what}: {reason.code.name}; tries again in {wait_s:.3g} s", reason.lane)
        self._beat()  # so that the far end knows why

    # ---- lasers ----------------------------------------------------------------------------------

    def _on_transmitter(self, ready: int, broken: int) -> None:
        lanes = self.lanes
        fresh = broken & ~lanes.lasers_broken
        lanes.lasers_ready, lanes.lasers_broken = ready, broken
        for lane in lanes_of(fresh & self.config.all_lanes):
            self._say("TX_FAULT: its laser is broken", lane)
        if self.phase is Phase.HOLD_OFF and self.reason.code is DownReason.TX_FAULT and ready:
            self._hold_until = min(self._hold_until, self._now + patience.HOLD_OFF_CUT_NS)
        self._settle()

    def _settle(self) -> None:
        """Leave LASER_ON once every laser is on, or will not be; most of them are enough."""
        if self.phase is not Phase.LASER_ON:
            return
        lanes = self.lanes
        pending = lanes.lasers_out & ~lanes.lasers_broken
        if pending and self._now - self._since < patience.LASER_NS:
            return
        if not lanes.lasers_ready & self.config.all_lanes:
            self._move(Step.FAILED, lanes.laser_fault())
            return
        if lanes.lasers_out:
            fault = lanes.laser_fault()
            self._say(f"{fault.code.name}: {fault.detail}; goes on without", fault.lane)
        self._move(Step.PASSED)

    # ---- frames ----------------------------------------------------------------------------------

    def _on_frame(self, event: FrameHeard) -> None:
        phase, far = self.phase, self._far
        if phase in (Phase.OFF, Phase.LASER_ON, Phase.HOLD_OFF):
            return
        lane = event.arrival_lane
        message = event.training.message
        if lane < self.config.lanes and not self.lanes.receiver.hears & 1 << lane:
            return  # No frame passes a receiver that sees no light or has no clock.
        if message is far.message:  # another lane of a beat that was read already
            self._on_evidence(lane, event, message)
            return
        if message.sender == self.config.me:
            if phase is Phase.SEEK:
                self._move(Step.FAILED, Reason(DownReason.LOOPED_TO_SELF, min(lane, 63)))
            return
        fresh = far.is_fresh(message, self._now)
        if fresh is None:
            return
        if fresh:
            far.last_heard = self._now
            self.peer = message.sender
            self.peer_reason = Reason(message.reason, message.reason_lane)
            far.echo = (message.sent_ns, self._now)
            if not self.active and (reason := difference(self.config, message)):
                self._move(Step.FAILED, reason)
                return
            if phase is Phase.SEEK:
                self._on_seek_frame(message)
            elif self.active:
                self._on_active_frame(message)
            else:
                self._on_training_frame(message)
        self._on_evidence(lane, event, message)

    def _on_seek_frame(self, message: TrainingMessage) -> None:
        far = self._far
        if not far.is_bound_to(message):
            far.bound = (message.sender, message.session)
            self._next_beat = min(self._next_beat, self._last_beat + patience.BEAT_NS // 2)
        hears_us = message.echo_session == self.session
        if hears_us and message.phase in RANK:
            far.message = message
            far.measure(message, self._now)
            self._move(Step.PEER_HEARD)

    def _on_training_frame(self, message: TrainingMessage) -> None:
        far = self._far
        if not far.is_bound_to(message):
            self._move(Step.PEER_CHANGED)
            self._on_seek_frame(message)
        elif message.echo_session == self.session:
            far.message = message
            if message.phase is Phase.HOLD_OFF:
                self._move(Step.LOST, Reason(DownReason.PEER_SILENT, None, "the peer gave up"))
                return
            if self.phase is Phase.LOCK:
                self._adopt(chosen_mode(self.config, self._tried, message))
            self._equalise(message)
            if RANK.get(message.phase, 0) < RANK[self.phase] and self._beats > 1:
                # It repeats itself, so it missed that we went on.
                self._next_beat = min(self._next_beat, self._last_beat + patience.REPLY_NS)

    def _equalise(self, message: TrainingMessage) -> None:
        """Carry out what the far receivers ask of our taps, and judge what became of theirs."""
        if not message.shapes or self.phase not in TRAINING:
            return
        lanes = self.lanes
        moved, news = lanes.equaliser.hear(message, lanes.map.far, lanes.good)
        if moved:
            self._out.append(ShapeLight(lanes.equaliser.penalties_db))
        if news:
            self._beats = min(self._beats, 1)
            self._next_beat = min(self._next_beat, self._now + patience.EQ_REPLY_NS)

    def _on_active_frame(self, message: TrainingMessage) -> None:
        far = self._far
        if not far.is_bound_to(message):
            self._move(Step.LOST, Reason(DownReason.PEER_RESTARTED))
            self._on_seek_frame(message)
        elif message.echo_session == self.session:
            far.message = message
            if message.phase is Phase.HOLD_OFF:
                self._move(Step.LOST, Reason(DownReason.PEER_RESTARTED))
            elif message.phase is Phase.RECOVERY and message.recovery > self._recovery:
                self._in_trouble |= message.reason in PHYSICAL
                self._recover(message.recovery, self.peer_reason)
            elif self.phase is Phase.ACTIVE and (
                message.phase is Phase.RETRY_START or message.phase is Phase.RECOVERY
            ):
                self._beat()  # It missed that we are active.

    def _on_evidence(self, lane: int, event: FrameHeard, message: TrainingMessage) -> None:
        """What a frame proves about its lane; only frames of this very pair of sessions count."""
        if (
            message.echo_session != self.session
            or not self._far.is_bound_to(message)
            or lane >= self.config.lanes
        ):
            return
        if self.phase is Phase.RECOVERY:
            if RANK.get(message.phase, 0) < RANK[Phase.ACTIVE]:
                return
            if message.recovery != self._recovery:
                return
        elif self.phase not in TRAINING or RANK.get(message.phase, 0) == 0:
            return
        lane_map, training = self.lanes.map, event.training
        before = lane_map.count[lane]
        same = lane_map.record(lane, training.tx_lane, training.inverted)
        if not same and self.phase is not Phase.LOCK and lane not in self.dropped:
            detail = f"far lane {training.tx_lane} arrives there now"
            self._fall(Reason(DownReason.ALIGN_FAILED, lane, detail))
            return
        if before == patience.LOCK_FRAMES - 1 and self.phase is Phase.LOCK:
            self._say("locked", lane)
        if RANK.get(message.phase, 0) >= RANK[Phase.ALIGN]:
            lane_map.aligned |= 1 << lane
        self._far.measure(message, self._now)
        self._try_pass()

    # ---- moving on -------------------------------------------------------------------------------

    def _missing(self) -> int:
        """Lanes that hold this phase up."""
        in_phase_ns = self._now - self._since
        return self.lanes.missing(self.phase, in_phase_ns, bool(self._far.rtt_min))

    def _peer_follows(self) -> bool:
        peer = self._far.message
        return peer is not None and RANK.get(peer.phase, 0) >= RANK[self.phase]

    def _try_pass(self) -> None:
        """Leave the phase if all is there. The next one needs the far end's word for it at least,
        so a single call moves a single phase."""
        if self.phase is Phase.RECOVERY:
            self._try_resume()
            return
        if self.phase not in TRAINING or not self._peer_follows():
            return
        if self.phase is not Phase.RETRY_START and self._now < self._since + patience.DWELL_NS:
            return
        if self._missing():
            return
        lanes = self.lanes
        match self.phase:
            case Phase.EQ_TRAIN:
                for lane in lanes_of(lanes.good):
                    climb = lanes.equaliser.climbs[lane]
                    left_db = (climb.penalty_mdb or 0) / 1000
                    self._say(f"settled after {climb.requests} requests, {left_db:.2f} dB", lane)
            case Phase.MAP:
                if fault := lanes.map.fault(lanes.good):
                    self._move(Step.FAILED, fault)
                    return
                for lane in lanes_of(lanes.good):
                    how = ", inverted" if self.inverted >> lane & 1 else ""
                    self._say(f"hears far lane {lanes.map.far[lane]}{how}", lane)
            case Phase.BER_CHECK:
                for lane in lanes_of(lanes.good):
                    sure = lanes.receiver.confidence(lane, self._now - self._since)
                    self._say(f"{lanes.receiver.text(lane)}, {sure:.1%} sure", lane)
            case Phase.ALIGN:
                peer = self._far.message
                assert peer is not None
                if not self._agreed(peer).width:
                    self._move(Step.FAILED, Reason(DownReason.ALIGN_FAILED, None, "no lane"))
                    return
            case _:
                pass
        self._move(Step.PASSED)

    # ---- recovery --------------------------------------------------------------------------------

    def _trouble(self, bad: int, reason: Reason) -> None:
        """Lanes in use went bad. Without any, the link is down; else data waits a moment."""
        if self.phase is Phase.ACTIVE:
            self.flaps += 1
        for lane in self.lanes.troubled(bad, reason.code, self._now):
            again = self.dropped[lane]
            self._say(f"{again.code.name} {again.detail}: goes on without it", lane)
        if not self.lanes.good or self._recovery >= RECOVERIES_MAX:
            self._fall(reason, counted=True)
            return
        self._in_trouble = True
        self._recover(self._recovery + 1, reason)

    def _recover(self, number: int, reason: Reason) -> None:
        """Begin a recovery, or start the present one over: what was said of it is not true now."""
        self._recovery = number
        self._ready = False
        self.lanes.map.aligned = 0
        if self.phase is Phase.ACTIVE:
            self._recovering_since = self._now
            self._move(Step.TROUBLED, reason)
            self._say(f"recovers: {reason.code.name}", reason.lane)
        self._since = self._now
        self._beats = 0
        self._beat()

    def _try_resume(self) -> None:
        if self._missing():
            if self._ready:  # It was, and the far end may count on it.
                self._again()
            return
        if not self._ready:
            self._ready = True
            self._beat()
        peer = self._far.message
        if peer is None or not peer.ready or peer.recovery != self._recovery:
            return
        if self._agreed(peer).width:
            self._move(Step.PASSED)
        else:
            self._fall(Reason(DownReason.RECOVERY_TIMEOUT, self.reason.lane, "no common lane"))

    def _again(self) -> None:
        if self._recovery < RECOVERIES_MAX:
            self._recover(self._recovery + 1, self.reason)

    def _resume(self) -> None:
        peer = self._far.message
        assert peer is not None
        before = self.width
        link = self._take_lanes(peer)
        held_ns = self._now - self._recovering_since
        self.recoveries += self._in_trouble
        self._in_trouble = False
        self._out.append(LinkResumed(link, held_ns))
        self._beat()  # the far end may still wait for this
        change = "" if self.width == before else f", {before} before"
        whole = self.config.data_lanes
        self._say(f"recovered in {held_ns / 1e6:.0f} ms: {self.width} of {whole} lanes{change}")

    def _check_recovery(self) -> None:
        in_all = self._now - self._recovering_since
        in_this = self._now - self._since
        slack = self._far.slack_ns
        gave_up = 0
        for lane in lanes_of(self._missing()):
            if reason := self.lanes.fault(self.phase, lane, in_this, slack):
                self.lanes.drop(lane, reason)
                gave_up |= 1 << lane
                self._say(f"{reason.code.name}: {reason.detail}: goes on without it", lane)
        if not self.lanes.good:
            self._fall(self.dropped[next(lanes_of(gave_up))])
        elif gave_up:
            self._try_resume()
        if self.phase is Phase.RECOVERY and in_all >= patience.RECOVERY_NS + slack:
            missing = self._missing()
            lane_or_none = next(lanes_of(missing), self.reason.lane)
            waits = "lanes" if missing else "the far end"
            detail = f"waited {in_all / 1e6:.0f} ms for {waits} after {self.reason.code.name}"
            self._fall(Reason(DownReason.RECOVERY_TIMEOUT, lane_or_none, detail))

    def _fall(self, reason: Reason, counted: bool = False) -> None:
        """What was reached is lost. A link that falls too often is held down for a while."""
        if not self.active:
            self._move(Step.LOST, reason)
            return
        if self.phase is Phase.RECOVERY:
            self.recovery_failures += self._in_trouble
            self._in_trouble = False
        elif not counted and reason.code in PHYSICAL:
            self.flaps += 1
        wait_ns = self._damping.fall(self._now) if reason.code in PHYSICAL else None
        if wait_ns is None:
            self._move(Step.LOST, reason)
            return
        self.flaps_damped += 1
        self._damped = True
        self._move(Step.DAMPED, reason)
        self._show_damping()

    def _show_damping(self) -> None:
        """The reason of the fall was told with it; what holds the link from now on is another."""
        first = self.reason
        detail = f"down {self._damping.falls} times of late, last for {first.code.name}"
        self.reason = Reason(DownReason.FLAPPING, first.lane, detail)

    # ---- time ------------------------------------------------------------------------------------

    def _on_woke(self) -> None:
        now = self._now
        if self.phase in TRAINING:
            self._try_pass()
            if self.phase in TRAINING:
                self._check_patience()
        elif self.phase is Phase.RECOVERY:
            self._try_resume()
            if self.phase is Phase.RECOVERY:
                self._check_recovery()
        elif self.phase is Phase.LASER_ON:
            self._settle()
        elif self.phase is Phase.HOLD_OFF and now >= self._hold_until:
            self._damped = False
            self._move(Step.HELD_OFF)
        elif self.phase is Phase.SEEK:
            self._explain_seeking()
        elif self.phase is Phase.ACTIVE and self._widen_at is not None and now >= self._widen_at:
            self._widen()
        if self._talks() and now >= self._next_beat:
            self._beat()

    def _check_patience(self) -> None:
        waited, far = self._now - self._since, self._far
        if self._now - far.last_heard >= patience.PEER_SILENCE_NS + far.slack_ns:
            detail = "it stopped in the middle of training"
            self._move(Step.LOST, Reason(DownReason.PEER_SILENT, None, detail))
            return
        missing = self._missing()
        for lane in lanes_of(missing):
            if reason := self.lanes.fault(self.phase, lane, waited, far.slack_ns):
                self.dropped[lane] = reason
                self._say(f"{reason.code.name}: {reason.detail}", lane)
        if missing and not missing & self.lanes.good:
            self._after_dropping()
        elif not missing:
            self._check_peer_follows(waited - far.slack_ns)

    def _check_peer_follows(self, waited: int) -> None:
        match self.phase:
            case Phase.EQ_TRAIN:
                limit_ns, code = patience.EQ_FOLLOWS_NS, DownReason.EQ_PARTNER_NOT_READY
            case Phase.RETRY_START:
                limit_ns, code = patience.PEER_FOLLOWS_NS, DownReason.RETRY_START_TIMEOUT
            case _:
                limit_ns, code = patience.PEER_FOLLOWS_NS, DownReason.ALIGN_FAILED
        if waited >= limit_ns:
            self._move(Step.FAILED, Reason(code, None, "the peer does not follow"))

    def _after_dropping(self) -> None:
        """Go on with fewer lanes where that is safe: light and errors, never a crossed cable."""
        first = self.dropped[min(self.dropped)]
        self.reason = first
        hard = [reason for reason in self.dropped.values() if reason.code in HOPELESS]
        if hard:
            self._move(Step.FAILED, hard[0])
        elif not self.lanes.good:
            self._no_lane_left(first)
        else:
            self._try_pass()

    def _no_lane_left(self, reason: Reason) -> None:
        """Another mode may bear what this one does not; else it failed, and all are tried again."""
        peer = self._far.message
        if reason.code in TOO_NOISY and peer is not None:
            self._tried |= 1 << self.mode.number
            if has_other_mode(self.config, self._tried, peer):
                self.fallbacks += 1
                self._noise = self._noise or reason
                self._say(f"{reason.code.name} with {self.mode}: falls back", reason.lane)
                self._move(Step.FELL_BACK, reason)
                return
        self._tried = 0
        self._noise = None
        self._move(Step.FAILED, reason)

    def _explain_seeking(self) -> None:
        if self._now - self._seek_since < patience.SEEK_PATIENCE_NS:
            return
        receiver, far = self.lanes.receiver, self._far
        if self._interface_down:
            reason = Reason(DownReason.INTERFACE_DOWN)
        elif far.is_down(self._now):
            reason = Reason(DownReason.PEER_DOWN)
        elif not receiver.lit:
            reason = Reason(DownReason.NO_SIGNAL)
        elif not receiver.hears:
            lane = next(lanes_of(receiver.lit))
            reason = Reason(DownReason.CDR_NO_LOCK, lane, "no lane locks")
        elif far.talks(self._now):
            reason = Reason(DownReason.PEER_SILENT, None, "the peer does not hear this port")
        else:
            reason = Reason(DownReason.PEER_SILENT)
        if reason.code != self.reason.code:
            self._say(f"still seeking: {reason.code.name}", reason.lane)
        self.reason = reason

    def _talks(self) -> bool:
        return self.phase in (Phase.SEEK, Phase.RECOVERY) or self.phase in TRAINING

    def _arm(self) -> None:
        """Ask to be woken when the next thing is due, unless that is asked already."""
        deadlines = []
        if self._talks():
            deadlines.append(self._next_beat)
        match self.phase:
            case Phase.LASER_ON:
                deadlines.append(self._now + patience.LASER_LOOK_NS)
            case Phase.HOLD_OFF:
                deadlines.append(self._hold_until)
            case Phase.ACTIVE if self._widen_at is not None:
                deadlines.append(self._widen_at)
            case Phase.BER_CHECK if self._now >= self._since + patience.DWELL_NS:
                deadlines.append(self._now + patience.PROOF_LOOK_NS)
            case phase if phase in TRAINING and self._now < self._since + patience.DWELL_NS:
                deadlines.append(self._since + patience.DWELL_NS)
        if deadlines and (deadline := max(min(deadlines), self._now)) != self._alarm:
            self._alarm = deadline
            self._out.append(WakeAt(deadline))

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
        interval = max(interval, 2 * self._far.rtt_last)
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

    def _say(self, text: str, lane: int | None = None) -> None:
        self._out.append(Report(text, lane))

    def _common_epoch(self) -> int:
        assert self._far.bound is not None
        return link_epoch((self.config.me, self.session), self._far.bound)

    # ---- light, quality, the peer's carrier ------------------------------------------------------

    def _on_light(self, lit: int, locked: int) -> None:
        receiver = self.lanes.receiver
        brighter = lit & ~receiver.lit
        was_usable = receiver.usable
        receiver.lit, receiver.locked = lit, locked
        if self.active:
            self._on_light_while_up(lit, locked)
        elif self.phase in TRAINING and not lit:
            self._move(Step.LOST, Reason(DownReason.SIGNAL_LOST, 0))
        elif (
            self.phase in (Phase.ALIGN, Phase.RETRY_START)
            and (gone := self.lanes.good & ~(lit & locked))
        ):  # fmt: skip
            self._move(Step.LOST, Reason(DownReason.SIGNAL_LOST, next(lanes_of(gone))))
        elif self.phase is Phase.SEEK and brighter:
            self._interface_down = False
            self._beat()
        elif self.phase is Phase.HOLD_OFF and self._damped and was_usable and not receiver.usable:
            self.flaps += 1
            if (wait_ns := self._damping.fall(self._now)) is not None:
                self._hold_until = self._now + wait_ns
        self._improved()

    def _on_light_while_up(self, lit: int, locked: int) -> None:
        gone = self.rx_lanes & ~(lit & locked)
        lane = next(lanes_of(gone), None)
        if lane is None:
            self._try_pass()
            return
        code = DownReason.CDR_NO_LOCK if lit >> lane & 1 else DownReason.SIGNAL_LOST
        if not self.rx_lanes & lit:
            self._fall(Reason(code, lane))
        elif self.phase is Phase.ACTIVE:
            self._trouble(gone, Reason(code, lane))
        else:
            self.lanes.troubled(gone & ~self.lanes.on_trial & self.lanes.good, code, self._now)
            if self.lanes.good:
                self._try_pass()
            else:
                self._fall(Reason(code, lane))

    def _on_quality(self, quality: LaneQuality) -> None:
        receiver = self.lanes.receiver
        receiver.measure(quality)
        if self.phase is Phase.ACTIVE and (bad := receiver.worn_out(self.rx_lanes, self._now)):
            reason = Reason(DownReason.BER_TOO_HIGH, bad[0], receiver.text(bad[0]))
            self._trouble(mask_of(bad), reason)
        self._improved()
        self._try_pass()

    def _improved(self) -> None:
        """Better light ends a wait early, unless it is the coming and going that is waited for."""
        usable = self.lanes.receiver.usable
        if self.phase is Phase.HOLD_OFF and not self._damped and usable & ~self._held_lanes:
            self._hold_until = min(self._hold_until, self._now + patience.HOLD_OFF_CUT_NS)
        elif self.phase is Phase.ACTIVE:
            self._consider_widening()

    def _consider_widening(self) -> None:
        every = self.config.all_lanes
        if not self.dropped or self.lanes.receiver.usable != every:
            self._widen_at = None
        elif self._widen_at is None:
            self._widen_at = max(self._now + self._widen_wait, self.lanes.usable_from_ns())

    def _widen(self) -> None:
        """Dropped lanes are good again: take them back, at the price of a moment's wait."""
        self._widen_at = None
        self._widen_wait = min(self._widen_wait * 2, patience.WIDEN_MAX_NS)
        reason = Reason(DownReason.RETRAIN_COMMANDED, None, "its dropped lanes are good again")
        if self.lanes.knows_dropped and self._recovery < RECOVERIES_MAX:
            self.lanes.take_back()
            self._recover(self._recovery + 1, reason)
        else:
            self._move(Step.LOST, reason)

    def _on_carrier(self, event: PeerCarrier) -> None:
        message, far = event.message, self._far
        sender = message.sender
        if sender == self.config.me or not far.is_fresh_carrier(sender, message.sent_ns):
            return
        bound = far.bound
        if self.active and bound is not None and sender != bound[0]:
            return  # Its training frames will tell, once the known peer is silent.
        if self.phase not in TRAINING or sender == self.peer:
            self.peer = sender
            self.peer_reason = Reason(message.reason, message.reason_lane)
        far.said_down = self._now if message.state is LinkState.DOWN else None
        if not self.active or bound is None:
            return
        far.last_heard = self._now
        if far.said_down is not None:
            self._move(Step.LOST, Reason(DownReason.PEER_DOWN))
        elif message.session > bound[1] or message.state is LinkState.FAILED:
            self._move(Step.LOST, Reason(DownReason.PEER_RESTARTED))
        elif (lane := self._moved_lane(event)) is not None:
            detail = f"far lane {message.lanes[lane].tx_lane} arrives there now"
            self._fall(Reason(DownReason.ALIGN_LOST, lane, detail))

    def _moved_lane(self, event: PeerCarrier) -> int | None:
        """A lane in use whose marker is no longer the one that was learned."""
        lights = event.message.lanes
        for lane in lanes_of(self.rx_lanes):
            if lane < len(lights) and (light := lights[lane]).on:
                learned = (self.lanes.map.far[lane], bool(self.inverted >> lane & 1))
                if (light.tx_lane, light.inverted) != learned:
                    return lane
        return None


def _order(peer: PeerId) -> tuple[str, str, int]:
    """Some order of ports, so that two ends can choose alike."""
    return peer.chassis, peer.card, peer.oe
