"""One end's lanes in one attempt: which are good so far, which are missing, and what is wrong.

Sets are masks over own lanes: arrival lanes, but for those of the transmitters.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from accelhw.link import patience
from accelhw.link.config import TrainerConfig
from accelhw.link.equaliser import Equaliser
from accelhw.link.lanemap import LaneMap, LaneView, lanes_of, mask_of
from accelhw.link.moves import Phase
from accelhw.link.receiver import Receiver
from accelhw.model.link import DownReason, LinkMode, Reason


@dataclass(slots=True)
class Lanes:
    config: TrainerConfig
    map: LaneMap = field(init=False)
    receiver: Receiver = field(init=False)
    equaliser: Equaliser = field(init=False)
    dropped: dict[int, Reason] = field(default_factory=dict)  # that the link does without
    on_trial: int = 0  # in a recovery: were bad, and must be as good as to come up
    mapped: int = 0  # dropped from a link that was up: all but their light is known
    lasers_ready: int = 0
    lasers_broken: int = 0
    _troubled: dict[int, int] = field(default_factory=dict)  # when a lane was last in trouble
    _quarantine: dict[int, int] = field(default_factory=dict)  # until when it is not used

    def __post_init__(self) -> None:
        config = self.config
        self.map = LaneMap(config.lanes)
        self.equaliser = Equaliser(config.best_taps, config.trace_loss_db)
        self.receiver = Receiver("", 0.0)
        self.set_mode(config.modes[0])

    def set_mode(self, mode: LinkMode) -> None:
        self.receiver.fec = mode.fec
        self.receiver.bits_per_ns = self.config.line_rate_mbit_per_s / 1000 / mode.slowdown

    def begin(self) -> None:
        """A new attempt tries all lanes."""
        self.dropped = {}
        self.on_trial = self.mapped = 0
        self.map.clear()
        self.equaliser.forget()

    # ---- sets ------------------------------------------------------------------------------------

    @property
    def good(self) -> int:
        """Lanes that passed, or have yet to pass, every check of this attempt."""
        return self.config.all_lanes & ~sum(1 << lane for lane in self.dropped)

    @property
    def view(self) -> LaneView:
        return LaneView(self.good, self.map.far)

    def missing(self, phase: Phase, in_phase_ns: int, has_rtt: bool) -> int:
        """Lanes that hold this phase up."""
        match phase:
            case Phase.LOCK:
                ready = self.map.heard(patience.LOCK_FRAMES) & self.receiver.hears
            case Phase.EQ_TRAIN:
                ready = self.equaliser.settled
            case Phase.BER_CHECK:
                ready = self.receiver.proved(in_phase_ns)
            case Phase.ALIGN:
                ready = self.map.aligned if has_rtt else 0
            case Phase.RECOVERY:
                fair = self.receiver.fair(self.on_trial)
                ready = self.map.aligned & self.receiver.hears & fair
            case _:
                return 0
        return self.good & ~ready

    # ---- what is wrong ---------------------------------------------------------------------------

    def fault(self, phase: Phase, lane: int, in_phase_ns: int, slack_ns: int) -> Reason | None:
        """Why this missing lane should be given up now, or None to wait on."""
        hopeless = phase is Phase.EQ_TRAIN and self.equaliser.climbs[lane].failed
        if in_phase_ns < patience.SHORTEST_NS and not hopeless:
            return None
        limit_ns, reason = self._fault(phase, lane, in_phase_ns)
        if phase is Phase.EQ_TRAIN and not hopeless:
            slack_ns *= patience.EQ_SLACKS
        return reason if in_phase_ns >= limit_ns + slack_ns else None

    def _fault(self, phase: Phase, lane: int, in_phase_ns: int) -> tuple[int, Reason]:
        """How long to wait for a lane, and what it is given up for."""
        receiver, bit = self.receiver, 1 << lane
        grace_ns = patience.LIGHT_GRACE_NS
        if phase is Phase.RECOVERY:
            grace_ns = patience.RECOVERY_LANE_NS
        if not receiver.lit & bit:
            return grace_ns, Reason(DownReason.PARTIAL_LIGHT, lane, "dark")
        if not receiver.locked & bit:
            return grace_ns, Reason(DownReason.CDR_NO_LOCK, lane, "no lock")
        match phase:
            case Phase.LOCK if self.map.clashes:
                lane, (first, second) = min(self.map.clashes.items())
                detail = f"far lanes {first} and {second} both arrive there"
                return patience.PHASE_NS, Reason(DownReason.LANE_DUPLICATE, lane, detail)
            case Phase.LOCK:
                detail = "lit, but no far lane's frames arrive"
                return patience.PHASE_NS, Reason(DownReason.LANE_MISSING, lane, detail)
            case Phase.EQ_TRAIN:
                return self._equaliser_fault(lane)
            case Phase.BER_CHECK if receiver.passing & bit:
                sure = receiver.confidence(lane, in_phase_ns)
                detail = f"{receiver.text(lane)}: {sure:.0%} sure of the limit"
                return patience.PROOF_NS, Reason(DownReason.BER_TOO_HIGH, lane, detail)
            case Phase.RECOVERY if receiver.fair(self.on_trial) & bit:
                detail = "no frame arrives"
                return patience.RECOVERY_FRAMES_NS, Reason(DownReason.ALIGN_FAILED, lane, detail)
            case Phase.BER_CHECK | Phase.RECOVERY:
                return grace_ns, Reason(DownReason.BER_TOO_HIGH, lane, receiver.text(lane))
            case _:
                return patience.PHASE_NS, Reason(DownReason.ALIGN_FAILED, lane, "no marker")

    def _equaliser_fault(self, lane: int) -> tuple[int, Reason]:
        climb = self.equaliser.climbs[lane]
        if not climb.answers:
            detail = "the far transmitter does not answer requests"
            return patience.EQ_NS, Reason(DownReason.EQ_PARTNER_NOT_READY, lane, detail)
        penalty_db = (climb.penalty_mdb or 0) / 1000
        detail = f"{penalty_db:.2f} dB are left after {climb.requests} requests"
        limit_ns = 0 if climb.failed else patience.EQ_NS
        return limit_ns, Reason(DownReason.EQ_NOT_CONVERGED, lane, detail)

    def verdict(self) -> Reason:
        """Of the dropped lanes: what is wrong with the first, and with which others too. Dark ones
        are told whether they would be needed or not."""
        first, reason = min(self.dropped.items())
        alike = {lane: other for lane, other in self.dropped.items() if other.code is reason.code}
        detail = reason.detail
        if len({other.detail for other in alike.values()}) > 1:
            detail = f"lane {first}: {detail}"
        every, lanes = self.config.all_lanes, mask_of(list(alike))
        if reason.code is DownReason.PARTIAL_LIGHT:
            lanes |= every & ~self.receiver.lit
        return Reason.on(reason.code, lanes, every, detail, first)

    def lost(self, gone: int) -> Reason:
        """Why these lanes bring nothing more: darkness where there is some, else no lock."""
        every, lit = self.config.all_lanes, self.receiver.lit
        if not lit & every:
            return Reason.on(DownReason.SIGNAL_LOST, every, every)
        if dark := gone & ~lit:
            return Reason.on(DownReason.SIGNAL_LOST, dark, every)
        return Reason.on(DownReason.CDR_NO_LOCK, gone, every)

    # ---- of a link that is up --------------------------------------------------------------------

    def troubled(self, lanes: int, code: DownReason, now_ns: int) -> list[int]:
        """Note trouble. Lanes that had some a short while ago are dropped; returns those."""
        again = []
        for lane in lanes_of(lanes):
            before = self._troubled.get(lane)
            self._troubled[lane] = now_ns
            if before is not None and now_ns - before < patience.TROUBLE_AGAIN_NS:
                since_s = (now_ns - before) / 1e9
                self.drop(lane, Reason(code, lane, f"again after {since_s:.0f} s"))
                self._quarantine[lane] = now_ns + patience.TROUBLE_AGAIN_NS
                again.append(lane)
        self.on_trial |= lanes
        return again

    def drop(self, lane: int, reason: Reason) -> None:
        """From a link that is up; its place in the map stays known."""
        self.dropped[lane] = reason
        self.mapped |= 1 << lane

    @property
    def regained(self) -> int:
        """Dropped lanes that are good again."""
        return self.receiver.usable & ~self.good

    def knows(self, lanes: int) -> bool:
        """They were in use before, so they can come back without a whole training."""
        return not lanes & ~self.mapped

    def take_back(self, lanes: int) -> None:
        """These dropped lanes are tried again."""
        for lane in lanes_of(lanes):
            del self.dropped[lane]
        self.on_trial |= lanes

    def usable_from_ns(self, lanes: int) -> int:
        """When the last of these may be tried again."""
        return max((self._quarantine.get(lane, 0) for lane in lanes_of(lanes)), default=0)

    def forgive(self) -> None:
        """An operator looked at it."""
        self._troubled.clear()
        self._quarantine.clear()

    # ---- lasers ----------------------------------------------------------------------------------

    @property
    def lasers_out(self) -> int:
        return self.config.all_lanes & ~self.lasers_ready

    def laser_fault(self) -> Reason:
        """Names the lanes whose lasers do not come on."""
        out, every = self.lasers_out, self.config.all_lanes
        what = "broken" if self.lasers_broken >> next(lanes_of(out)) & 1 else "not settled"
        detail = f"{'laser' if out.bit_count() == 1 else 'lasers'} {what}"
        return Reason.on(DownReason.TX_FAULT, out, every, detail)
