"""Link training: one end's machine. Both ends run the same one, over frames that may get lost.

Each message carries all that its sender knows, so the machine needs no particular message, only a
recent one. Two rules keep old frames out. A session number, newer at each attempt, names an
attempt; and nothing counts as evidence unless it echoes our own session back. An end moves on when
its own check has passed and the far end has come as far, so the two are never more than a phase
apart, and what the far end says of a finished phase is final.
"""

from __future__ import annotations

from dataclasses import dataclass

from accelhw.link import patience
from accelhw.link.events import (
    Action,
    DataHeard,
    Disabled,
    Enabled,
    Event,
    FecLockLost,
    FrameHeard,
    InterfaceDown,
    InterfaceUp,
    LaneQuality,
    LightChanged,
    LinkDown,
    LinkHeld,
    PeerCarrier,
    RetrainAsked,
    RetryExhausted,
    SetMode,
    SetTransmit,
    ShapeLight,
    Traffic,
    TransmitterChanged,
    WakeAt,
    Woke,
)
from accelhw.link.lanemap import NO_LANES, arrival, lanes_of, mask_of
from accelhw.link.moves import (
    HOPELESS,
    MOVES,
    PHASE_TEXT,
    RANK,
    STATE,
    TOO_NOISY,
    TRAINING,
    WAITING,
    Phase,
    Step,
)
from accelhw.link.negotiate import best_mode, chosen_mode, difference, has_other_mode
from accelhw.link.upkeep import Upkeep
from accelhw.model.link import DownReason, LinkMode, Reason
from accelhw.wire.training import TrainingMessage


@dataclass(slots=True)
class LinkTrainer(Upkeep):
    """One end of a link. Feed it events; carry out what it returns, in order."""

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
            case FecLockLost(lane):
                if self.phase is Phase.ACTIVE:
                    detail = "three lost codewords in a row"
                    reason = Reason(DownReason.FEC_LOCK_LOST, lane, detail)
                    self._trouble(1 << lane & self.rx_lanes, reason)
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
            case Traffic(flows):
                self._data_flows = flows
                self._improve()
            case RetryExhausted():
                self._on_exhausted()
            case InterfaceDown():
                was_down, self._interface_down = self._interface_down, True
                if not was_down and self.phase is not Phase.HOLD_OFF:
                    self._fall(Reason(DownReason.INTERFACE_DOWN))
            case InterfaceUp():
                self._interface_down = False
                if self.phase is Phase.SEEK:
                    # In the next turn: it may be down again before all lanes were sent.
                    self._next_beat = self._now
        self._arm()
        return self._out

    def _start_afresh(self) -> None:
        """An operator's word: what failed before may not fail again."""
        self._hold_off.forgive()
        self._damping.forgive()
        self._tried = 0
        self._noise = None
        self._widen_wait = patience.WIDEN_NS
        self._way_back.forgive()
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
            self._widen_at = self._retrain_since = None
            self._way_back.give_up()
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
                elif target is Phase.MAP:
                    self._show_taps()
                self._say(PHASE_TEXT[target])
                self._beat()

    # ---- entering a phase ------------------------------------------------------------------------

    def _enter_seek(self, new_session: bool) -> None:
        if new_session:
            self.session = max(self._now, self.session + 1)
            self._sequence = 0
            self._far.forget()
        self._seek_since = self._now
        self._show_taps()
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
            self._say(f"signals with {mode.words}")
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
        is_best = self.mode == best_mode(self.config, peer)
        self._way_back.came_up(is_best, self._now)
        if is_best:
            self._noise = None
        link = self._take_lanes(peer)
        self._out.append(link)
        self._beat()  # the far end may still wait for this
        self._say(f"up with {self.width} of {self.config.data_lanes} lanes")

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
        self._say_why(what, self.reason, f"; tries again in {wait_s:.3g} s")
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
        elif self.phase is Phase.ACTIVE and self.width < self.config.data_lanes:
            self.reason = self._why_not_whole(narrow=True)
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
            self._say_why("", fault, f": {fault.detail}; goes on without")
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
        if message.phase is not Phase.EQ_TRAIN:
            self._show_taps()
        if not message.shapes or self.phase not in TRAINING:
            return
        lanes = self.lanes
        moved, news = lanes.equaliser.hear(message, lanes.map.far, lanes.good)
        self._taps_moved |= moved
        if news:
            self._beats = min(self._beats, 1)
            self._next_beat = min(self._next_beat, self._now + patience.EQ_REPLY_NS)

    def _show_taps(self) -> None:
        """Both ends see the light of taps that have settled; on the way there, frames tell."""
        if self._taps_moved:
            self._taps_moved = False
            self._out.append(ShapeLight(self.lanes.equaliser.penalties_db))

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
            detail = arrival(training.tx_lane, training.inverted)
            self._fall(Reason(DownReason.ALIGN_FAILED, lane, detail))
            return
        if before == patience.LOCK_FRAMES - 1 and self.phase is Phase.LOCK:
            self._say("locked", lane)
        if RANK.get(message.phase, 0) >= RANK[Phase.ALIGN]:
            lane_map.aligned |= 1 << lane
        self._far.measure(message, self._now)
        self._try_pass()

    # ---- moving on -------------------------------------------------------------------------------

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

    # ---- time ------------------------------------------------------------------------------------

    def _on_woke(self) -> None:
        now = self._now
        if self.phase in TRAINING:
            self._try_pass()
            if self.phase in TRAINING:
                self._check_patience()
        elif self.phase is Phase.RECOVERY:
            self._try_resume()
            self._check_recovery()
        elif self.phase is Phase.LASER_ON:
            self._settle()
        elif self.phase is Phase.HOLD_OFF and now >= self._hold_until:
            self._damped = False
            self._move(Step.HELD_OFF)
        elif self.phase is Phase.SEEK:
            self._explain_seeking()
        elif self.phase is Phase.ACTIVE:
            self._improve()
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
            self._check_peer_follows(waited)

    def _check_peer_follows(self, waited: int) -> None:
        """It cannot be further behind than one phase, which names what it is stuck in."""
        limit_ns, code = patience.PEER_FOLLOWS_NS, DownReason.ALIGN_FAILED
        peer, slack_ns = self._far.message, self._far.slack_ns
        if peer is not None and peer.phase is Phase.EQ_TRAIN:
            limit_ns, code = patience.EQ_FOLLOWS_NS, DownReason.EQ_PARTNER_NOT_READY
            slack_ns *= patience.EQ_SLACKS
        elif self.phase is Phase.RETRY_START:
            code = DownReason.RETRY_START_TIMEOUT
        if waited >= limit_ns + slack_ns:
            self._move(Step.FAILED, Reason(code, None, "the peer does not follow"))

    def _after_dropping(self) -> None:
        """Go on with fewer lanes where that is safe: light and errors, never a crossed cable."""
        first = self.reason = self.lanes.verdict()
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
                self._say_why("", reason, f" with {self.mode.words}: falls back")
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
            reason = Reason(self._why_peer_is_down())
        elif not receiver.lit:
            reason = Reason(DownReason.NO_SIGNAL)
        elif not receiver.hears:
            every = self.config.all_lanes
            reason = Reason.on(DownReason.CDR_NO_LOCK, receiver.lit & every, every, "no lane locks")
        elif far.talks(self._now):
            reason = Reason(DownReason.PEER_SILENT, None, "the peer does not hear this port")
        else:
            reason = Reason(DownReason.PEER_SILENT)
        if reason.code != self.reason.code:
            self._say_why("still seeking", reason)
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
            case Phase.ACTIVE:
                deadlines.extend(self._improves_at())
            case Phase.RECOVERY:
                deadlines.append(self._give_up_at)
            case Phase.BER_CHECK if self._now >= self._since + patience.DWELL_NS:
                deadlines.append(self._now + patience.PROOF_LOOK_NS)
            case phase if phase in TRAINING and self._now < self._since + patience.DWELL_NS:
                deadlines.append(self._since + patience.DWELL_NS)
        if deadlines and (deadline := max(min(deadlines), self._now)) != self._alarm:
            self._alarm = deadline
            self._out.append(WakeAt(deadline))

    # ---- light and quality -----------------------------------------------------------------------

    def _on_light(self, lit: int, locked: int) -> None:
        receiver = self.lanes.receiver
        brighter = lit & ~receiver.lit
        was_usable = receiver.usable
        receiver.lit, receiver.locked = lit, locked
        if self.active:
            self._on_light_while_up(lit, locked)
        elif self.phase in TRAINING and not lit:
            self._move(Step.LOST, self.lanes.lost(self.config.all_lanes))
        elif (
            self.phase in (Phase.ALIGN, Phase.RETRY_START)
            and (gone := self.lanes.good & ~(lit & locked))
        ):  # fmt: skip
            self._move(Step.LOST, self.lanes.lost(gone))
        elif self.phase is Phase.SEEK and brighter:
            self._interface_down = False
            self._beat()
        elif self.phase is Phase.HOLD_OFF and self._damped and was_usable and not receiver.usable:
            self.flaps += 1
            if (wait_ns := self._damping.fall(self._now)) is not None:
                self._hold_until = self._now + wait_ns
        self._improved()

    def _on_quality(self, quality: LaneQuality) -> None:
        receiver = self.lanes.receiver
        receiver.measure(quality)
        if self.phase is Phase.ACTIVE and (bad := receiver.worn_out(self.rx_lanes, self._now)):
            worst, lanes = bad[0], mask_of(bad)
            detail = receiver.text(worst)
            if len(bad) > 1:
                detail = f"lane {worst}: {detail}"
            every = self.config.all_lanes
            reason = Reason.on(DownReason.BER_TOO_HIGH, lanes, every, detail, worst)
            self._trouble(lanes, reason)
        self._improved()
        self._try_pass()

    def _improved(self) -> None:
        """Better light ends a wait early, unless it is the coming and going that is waited for."""
        usable = self.lanes.receiver.usable
        if self.phase is Phase.HOLD_OFF and not self._damped and usable & ~self._held_lanes:
            self._hold_until = min(self._hold_until, self._now + patience.HOLD_OFF_CUT_NS)
        elif self.phase is Phase.ACTIVE:
            self._consider_widening()
            self._consider_mode()
            self._improve()
