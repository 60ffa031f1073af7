"""A link that is up: trouble and recovery, width, and when it falls after all.

Trouble on a lane holds data back while both ends check their lanes once more, under the same
sessions and epoch. Lanes that do not come back are left out, lanes that are good again are taken
in, and the link goes on. Recoveries are numbered, and an end that hears of a newer one joins it, so
both mean the same one when they say what they found. A better mode takes a whole training, which
both ends agree on first.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from accelhw.link import patience
from accelhw.link.core import RECOVERIES_MAX, Core
from accelhw.link.events import (
    LinkResumed,
    LinkUp,
    PeerCarrier,
)
from accelhw.link.lanemap import arrival, lanes_of, mask_of, widest
from accelhw.link.moves import (
    PHYSICAL,
    TRAINING,
    Phase,
    Step,
)
from accelhw.link.negotiate import best_mode
from accelhw.link.wayback import bears, better_modes
from accelhw.model.link import MODES, DownReason, LinkState, Reason
from accelhw.wire.training import TrainingMessage

WIDENS = "its dropped lanes are good again"
NO_COMMON = "no common lane"


@dataclass(slots=True)
class Upkeep(Core):
    """The half of a link's machine that works while data may flow."""

    # ---- lanes in use ----------------------------------------------------------------------------

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

    def _why_not_whole(self, narrow: bool) -> Reason:
        if self.dropped:
            return self.lanes.verdict()
        if narrow and self.lanes.lasers_out:
            return self.lanes.laser_fault()
        return self._noise or Reason()

    def _regained(self) -> int:
        """Dropped lanes that are good again, if they would do any good: all of them, or enough
        for the next width."""
        lanes, whole = self.lanes, self.config.data_lanes
        regained = lanes.regained
        if lanes.good | regained == self.config.all_lanes:
            return regained
        good = lanes.good.bit_count()
        wider = widest(whole, good + regained.bit_count()) > widest(whole, good)
        return regained if wider else 0

    def _consider_widening(self) -> None:
        regained = self._regained()
        if not regained:
            self._widen_at = None
        elif self._widen_at is None:
            self._widen_at = max(self._now + self._widen_wait, self.lanes.usable_from_ns(regained))

    # ---- the way back ----------------------------------------------------------------------------

    def _consider_mode(self) -> None:
        """After a fallback: which better modes would this receiver bear by now?"""
        peer, quality = self._far.message, self.lanes.receiver.quality
        if peer is None or quality is None:
            return
        better = better_modes(self.config.mode_set & peer.modes, self.mode)
        borne = [mode for mode in better if bears(quality, self.rx_lanes, self.mode, mode)]
        self._way_back.look(borne, self._now)

    @property
    def offers(self) -> int:
        """Better modes that this end would bear, as a mask, for the far end to know."""
        return self._way_back.offers(self._now) if self.phase is Phase.ACTIVE else 0

    def _agreed_modes(self) -> int:
        return self.offers & self._far.offers

    def _improve(self) -> None:
        """Take back lanes or a mode, if it is time to."""
        if self.phase is not Phase.ACTIVE:
            return
        self._tried &= ~self.offers
        widens = self._widen_at is not None and self._now >= self._widen_at
        if not widens and not self._agreed_modes():
            self._retrain_since = None
        elif widens and self.lanes.knows(self._regained()) and self._recovery < RECOVERIES_MAX:
            self._widen()
        elif self._may_retrain():
            self._move(Step.LOST, self._why_better())

    def _widen(self) -> None:
        """Dropped lanes are good again: take them back, at the price of a moment's wait."""
        self._widen_at = None
        self._widen_wait = min(self._widen_wait * 2, patience.WIDEN_MAX_NS)
        self.lanes.take_back(self._regained())
        self._recover(self._recovery + 1, Reason(DownReason.RETRAIN_COMMANDED, None, WIDENS))

    def _may_retrain(self) -> bool:
        """A whole training takes the link down for a moment: best while no data flows."""
        if self._retrain_since is None:
            self._retrain_since = self._now
        return not self._data_flows or self._now - self._retrain_since >= patience.QUIET_NS

    def _why_better(self) -> Reason:
        detail = WIDENS
        if agreed := self._agreed_modes():
            best = next(mode for mode in MODES if agreed >> mode.number & 1)
            detail = f"its light is good enough for {best.words} again"
            self._way_back.tries()
        else:
            self._widen_wait = min(self._widen_wait * 2, patience.WIDEN_MAX_NS)
        return Reason(DownReason.RETRAIN_COMMANDED, None, detail)

    def _why_restarted(self) -> Reason:
        """A peer that begins anew may only have been first to do what both wanted."""
        return self._why_better() if self._agreed_modes() else Reason(DownReason.PEER_RESTARTED)

    def _improves_at(self) -> list[int]:
        """When to look again, while up."""
        if self._retrain_since is not None:
            return [self._retrain_since + patience.QUIET_NS]
        times = (self._widen_at, self._way_back.next_offer_ns(self._now))
        return [time for time in times if time is not None]

    # ---- trouble ---------------------------------------------------------------------------------

    def _trouble(self, bad: int, reason: Reason) -> None:
        """Lanes in use went bad. Without any, the link is down; else data waits a moment."""
        self.flaps += 1
        self._way_back.give_up()
        for lane in self.lanes.troubled(bad, reason.code, self._now):
            again = self.dropped[lane]
            self._say(f"{again.code.name} {again.detail}: goes on without it", lane)
        if not self.lanes.good or self._recovery >= RECOVERIES_MAX:
            self._fall(reason, counted=True)
            return
        self._in_trouble = True
        self._recover(self._recovery + 1, reason)

    def _on_exhausted(self) -> None:
        """The far end takes no data. Light that is well gets one more chance: a check of all lanes,
        and then as many replays again."""
        if self.phase is not Phase.ACTIVE:
            return
        reason = Reason(DownReason.REPLAY_EXHAUSTED)
        before, self._exhausted_at = self._exhausted_at, self._now
        again = before is not None and self._now - before < patience.TROUBLE_AGAIN_NS
        if again or self.rx_lanes & ~self.lanes.receiver.hears:
            self._fall(reason)
        else:
            self._trouble(0, reason)

    def _on_light_while_up(self, lit: int, locked: int) -> None:
        gone = self.rx_lanes & ~(lit & locked)
        if not gone:
            if self.phase is Phase.ACTIVE and self.width < self.config.data_lanes:
                self.reason = self._why_not_whole(narrow=True)
            self._try_resume()
            return
        reason = self.lanes.lost(gone)
        if not self.lanes.good & lit:
            self._fall(reason)
        elif self.phase is Phase.ACTIVE:
            self._trouble(gone, reason)
        else:
            fresh = gone & ~self.lanes.on_trial & self.lanes.good
            self.lanes.troubled(fresh, reason.code, self._now)
            if self.lanes.good:
                self._try_resume()
            else:
                self._fall(reason)

    def _recover(self, number: int, reason: Reason) -> None:
        """Begin a recovery, or start the present one over: what was said of it is not true now."""
        self._recovery = number
        self._ready = False
        self.lanes.map.aligned = 0
        if self.phase is Phase.ACTIVE:
            self._recovering_since = self._now
            self._move(Step.TROUBLED, reason)
            self._say_why("recovers", reason)
        self._since = self._now
        self._beats = 0
        self._beat()

    def _try_resume(self) -> None:
        if self.phase is not Phase.RECOVERY:
            return
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
            self._fall(replace(self.reason, code=DownReason.RECOVERY_TIMEOUT, detail=NO_COMMON))

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

    @property
    def _give_up_at(self) -> int:
        """The end in trouble comes first: it knows the lane."""
        wait_ns = patience.RECOVERY_NS + self._far.slack_ns
        if not self.lanes.on_trial:
            wait_ns += patience.RECOVERY_JOINED_NS
        return self._recovering_since + wait_ns

    def _check_recovery(self) -> None:
        if self.phase is not Phase.RECOVERY:
            return
        in_all = self._now - self._recovering_since
        in_this = self._now - self._since
        slack = self._far.slack_ns
        missing = self._missing()
        faults = {
            lane: reason
            for lane in lanes_of(missing)
            if (reason := self.lanes.fault(self.phase, lane, in_this, slack))
        }
        if self.lanes.good & ~mask_of(list(faults)):  # else wait for any of them to the end
            for lane, reason in faults.items():
                self.lanes.drop(lane, reason)
                self._say(f"{reason.code.name}: {reason.detail}: goes on without it", lane)
            if faults:
                self._try_resume()
        if self.phase is Phase.RECOVERY and self._now >= self._give_up_at:
            lanes = self._missing() or self.reason.blamed
            detail = f"it waited {in_all / 1e6:.0f} ms after {self.reason.code.name}"
            if fault := faults.get(next(lanes_of(lanes), -1)):
                detail += f"; {fault.detail}"
            every = self.config.all_lanes
            self._fall(Reason.on(DownReason.RECOVERY_TIMEOUT, lanes, every, detail))

    # ---- falling ---------------------------------------------------------------------------------

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
        self.reason = replace(first, code=DownReason.FLAPPING, detail=detail)

    # ---- what the far end says -------------------------------------------------------------------

    def _on_active_frame(self, message: TrainingMessage) -> None:
        far = self._far
        if not far.is_bound_to(message):
            self._move(Step.LOST, self._why_restarted())
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
            self._move(Step.LOST, Reason(self._why_peer_is_down()))
        elif message.session > bound[1]:
            self._move(Step.LOST, self._why_restarted())
        elif message.state is LinkState.FAILED:
            self._move(Step.LOST, Reason(DownReason.PEER_RESTARTED))
        elif (lane := self._moved_lane(event)) is not None:
            light = message.lanes[lane]
            detail = arrival(light.tx_lane, light.inverted)
            self._fall(Reason(DownReason.ALIGN_LOST, lane, detail))
        elif message.session == bound[1]:
            far.offers = message.offers
            self._improve()

    def _why_peer_is_down(self) -> DownReason:
        is_tested = self.peer_reason.code is DownReason.TEST
        return DownReason.PEER_TEST if is_tested else DownReason.PEER_DOWN

    def _moved_lane(self, event: PeerCarrier) -> int | None:
        """A lane in use whose marker is no longer the one that was learned."""
        lights = event.message.lanes
        for lane in lanes_of(self.rx_lanes):
            if lane < len(lights) and (light := lights[lane]).on:
                learned = (self.lanes.map.far[lane], bool(self.inverted >> lane & 1))
                if (light.tx_lane, light.inverted) != learned:
                    return lane
        return None
