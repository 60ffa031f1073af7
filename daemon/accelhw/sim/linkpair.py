"""Two ports and the fibre between them on a hand-turned clock; what the fibre does follows a seed.

Everything but the fibre is the real thing: engines, trainers, frames with their checksums, cables.
"""

from __future__ import annotations

import heapq
import random
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from accelhw.device.engine import CARRIER_BEAT_NS, OpticalEngine
from accelhw.link.config import TrainerConfig
from accelhw.link.events import (
    Disabled,
    Enabled,
    Event,
    FrameHeard,
    LightChanged,
    LinkDown,
    LinkHeld,
    LinkResumed,
    LinkUp,
    PeerCarrier,
    Report,
    RetrainAsked,
    SendTraining,
    SetMode,
    SetTransmit,
    ShapeLight,
    TransmitterChanged,
    WakeAt,
    Woke,
)
from accelhw.link.lanemap import far_lanes
from accelhw.link.moves import Phase
from accelhw.link.training import LinkTrainer
from accelhw.model.config import Fibre, FibreEnd, TransportKind
from accelhw.model.ids import PortId
from accelhw.model.link import DownReason, LinkState, PeerId
from accelhw.model.profile import Profile, load_profile
from accelhw.transport.cable import Cable, CableMap
from accelhw.wire.carrier import CarrierMessage
from accelhw.wire.frame import (
    HEADER_BYTES,
    MAX_MTU,
    FrameType,
    MalformedFrame,
    decode_frame,
    encode_frame,
)
from accelhw.wire.training import TrainingDecoder

if TYPE_CHECKING:
    from typing_extensions import Buffer

SECOND_NS = 1_000_000_000
FLIGHT_NS = 20_000
LATE_NS = 60_000_000  # a reordered frame comes up to so much later


def straight_fibre(length_m: float = 10.0, **changes: object) -> Fibre:
    a, b = FibreEnd(PortId("card0", 0)), FibreEnd(PortId("card1", 0))
    fibre = Fibre("f0", a, b, TransportKind.MEMORY, MAX_MTU, length_m)
    return replace(fibre, **changes)  # type: ignore[arg-type]


@dataclass(slots=True)
class Weather:
    """What the fibre does to frames: chances per frame."""

    loss_ratio: float = 0.0
    duplicate_ratio: float = 0.0
    late_ratio: float = 0.0
    corrupt_ratio: float = 0.0


class Inbox:
    """Frames that arrived at an end; the receiving half of a transport."""

    mtu = MAX_MTU
    receive_frames = 1 << 30

    def __init__(self) -> None:
        self.frames: deque[bytes] = deque()

    @property
    def peeked_bytes(self) -> int:
        return len(self.frames[0])

    def fileno(self) -> int:
        return -1

    def send(self, parts: Sequence[Buffer]) -> bool:
        raise NotImplementedError("sending goes through the pair")

    def peek(self) -> memoryview | None:
        return memoryview(self.frames[0])[:HEADER_BYTES] if self.frames else None

    def receive_into(self, parts: Sequence[memoryview]) -> int:
        frame, at = self.frames.popleft(), 0
        for part in parts:
            piece = frame[at : at + len(part)]
            part[: len(piece)] = piece
            at += len(piece)
        return len(frame)

    def discard(self) -> None:
        self.frames.popleft()

    def close(self) -> None:
        self.frames.clear()


@dataclass(slots=True)
class End:
    """One port: what a worker would hold, without its data port."""

    name: str
    me: PeerId
    engine: OpticalEngine
    trainer: LinkTrainer
    inbox: Inbox
    cable: Cable
    decoder: TrainingDecoder = field(default_factory=TrainingDecoder)
    life: int = 0
    up: LinkUp | None = None
    held: bool = False
    ups: int = 0
    resumed: list[LinkResumed] = field(default_factory=list)
    downs: list[DownReason] = field(default_factory=list)
    reports: list[str] = field(default_factory=list)
    bad_frames: int = 0
    training_frames: int = 0
    alarm_ns: int | None = None
    lasers: tuple[int, int] = (0, 0)
    offered: int = 0


class LinkPair:
    """`run` turns the clock. Ends are "a" and "b"."""

    def __init__(
        self,
        seed: int = 1,
        profile: Profile | None = None,
        far_profile: Profile | None = None,
        fibre: Fibre | None = None,
        looped: bool = False,
        watch: Callable[[str], None] = lambda text: None,
        **weather: float,
    ) -> None:
        self.seed = seed
        self.now_ns = SECOND_NS
        self.weather = Weather(**weather)
        self.fibre = fibre or straight_fibre()
        self.looped = looped
        self.cut = {"a": False, "b": False}  # light towards that end
        self._chance = random.Random(seed)
        self._due: list[tuple[int, int, Callable[[], None]]] = []
        self._order = 0
        self._watch = watch
        near = profile or load_profile("oio")
        self.profiles = {"a": near, "b": far_profile or near}
        self.ends = {name: self._new_end(name) for name in "ab"}
        for name in "ab":
            self._carrier_beat(name)

    # ---- what a test does ------------------------------------------------------------------------

    @property
    def a(self) -> End:
        return self.ends["a"]

    @property
    def b(self) -> End:
        return self.ends["b"]

    @property
    def states(self) -> set[LinkState]:
        return {end.trainer.state for end in self.ends.values()}

    def enable(self, *names: str) -> None:
        for name in names or "ab":
            self.feed(name, Enabled())

    def disable(self, name: str) -> None:
        self.feed(name, Disabled())

    def retrain(self, name: str) -> None:
        self.feed(name, RetrainAsked())

    def restart(self, name: str, power_cycle: bool = False) -> None:
        """The end's worker dies and a new one takes over, of the same or another chassis life."""
        old = self.ends[name]
        self.ends[name] = self._new_end(name, old.life + power_cycle)
        self.feed(name, Enabled())

    def plug(self, fibre: Fibre) -> None:
        """Another fibre: length, losses, crossing."""
        self.fibre = fibre
        for name, end in self.ends.items():
            end.cable.map = CableMap.of(fibre, name, end.engine.lanes)
            end.engine.path_loss_db = fibre.loss_db
            self._light_moved(name)

    def break_laser(self, name: str, *lanes: int, broken: bool = True) -> None:
        """Lasers of this end go out, or are replaced."""
        self.ends[name].engine.laser_fault[list(lanes)] = broken
        self._light_moved(name)
        self._look_at_lasers(self.ends[name])
        self._send_carrier(name)

    def unlock(self, name: str, *lanes: int, unlocked: bool = True) -> None:
        """Clock recovery of these lanes of this end is lost, or may lock again."""
        self.ends[name].engine.causes.array("cdr_unlocked")[list(lanes)] = unlocked
        self._light_moved(name)

    def darken(self, name: str, lane: int, loss_db: float) -> None:
        """Loss on one lane on its way to this end."""
        self.ends[name].engine.path_extra_db[lane] = loss_db
        self._light_moved(name)

    def run(self, seconds: float) -> None:
        self.run_until(lambda: False, seconds)

    def run_until(self, done: Callable[[], bool], seconds: float) -> bool:
        """Turn the clock until `done`, at most so far. Returns whether it was."""
        end_ns = self.now_ns + round(seconds * SECOND_NS)
        while not done():
            if not self._due or self._due[0][0] > end_ns:
                self.now_ns = end_ns
                return done()
            due_ns, _, act = heapq.heappop(self._due)
            self.now_ns = max(self.now_ns, due_ns)
            act()
        return True

    def both_up(self) -> bool:
        return self.a.up is not None and self.b.up is not None

    def both_agree(self) -> bool:
        """Both are up and tell the same story about one link."""
        a, b = self.a.up, self.b.up
        if a is None or b is None or a.epoch != b.epoch or self.a.held or self.b.held:
            return False  # One of them has yet to notice.
        ends = ((a, b), (b, a))
        return (
            a.width == b.width
            and (a.degraded, self.a.trainer.mode) == (b.degraded, self.b.trainer.mode)
            and (a.peer, b.peer) == (self.b.me, self.a.me)
            and all(far_lanes(near.rx_lanes, near.lane_map) == far.tx_lanes for near, far in ends)
        )

    def at(self, seconds: float, act: Callable[[], None]) -> None:
        self._at(self.now_ns + round(seconds * SECOND_NS), act)

    def feed(self, name: str, event: Event) -> None:
        end = self.ends[name]
        before = end.trainer.state
        relight = False
        for action in end.trainer.handle(event, self.now_ns):
            match action:
                case SendTraining():
                    end.training_frames += len(action.lanes)
                    for lane, payload in action.payloads():
                        self._send(name, encode_frame(FrameType.TRAINING, payload, lane=lane))
                case WakeAt(deadline_ns):
                    end.alarm_ns = deadline_ns
                    self._at(deadline_ns, lambda end=end: self._wake(end))  # type: ignore[misc]
                case SetTransmit(on):
                    end.engine.set_transmit(on, self.now_ns)
                    self._send_carrier(name)
                case ShapeLight(penalty_db):
                    end.engine.shape(penalty_db)
                    self._send_carrier(name)
                case SetMode(mode):
                    end.engine.set_mode(mode, self.now_ns)
                    relight = True
                case LinkUp():
                    end.up, end.ups = action, end.ups + 1
                    end.engine.set_lanes(action.rx_lanes, action.lane_map, action.inverted)
                case LinkHeld():
                    end.held = True
                    end.engine.set_lanes(0, end.trainer.lane_map, end.trainer.inverted)
                case LinkResumed(link):
                    end.held, end.up = False, link
                    end.resumed.append(action)
                    end.engine.set_lanes(link.rx_lanes, link.lane_map, link.inverted)
                case LinkDown(reason):
                    end.up, end.held = None, False
                    end.downs.append(reason.code)
                    end.engine.set_lanes(0, end.trainer.lane_map, end.trainer.inverted)
                case Report(text, lane):
                    where = "" if lane is None else f"/lane{lane}"
                    end.reports.append(f"{where[1:]} {text}".strip())
                    self._watch(f"{self.now_ns / 1e6 - 1000:9.3f} ms  {end.me}{where}: {text}")
        told = (end.trainer.state, end.trainer.offers) == (before, end.offered)
        if not told and self.ends[name] is end:
            self._send_carrier(name)
        if relight:
            self._tell_light(name)

    # ---- the rest of the world -------------------------------------------------------------------

    def _new_end(self, name: str, life: int = 0) -> End:
        profile = self.profiles[name]
        chassis = f"{self.seed & 0xFFFFFF:06x}{ord(name):02x}{life:08x}"
        me = PeerId(chassis, "card0" if name == "a" else "card1", 0)
        engine = OpticalEngine(profile, self.fibre, me, self.seed)
        trainer = LinkTrainer(TrainerConfig.of(me, profile, credit_frames=100 + ord(name)))
        inbox = Inbox()
        cable = Cable(inbox, CableMap.of(self.fibre, name, profile.lanes_per_oe))
        return End(name, me, engine, trainer, inbox, cable, life=life)

    def _at(self, time_ns: int, act: Callable[[], None]) -> None:
        self._order += 1
        heapq.heappush(self._due, (time_ns, self._order, act))

    def _wake(self, end: End) -> None:
        due_ns = end.alarm_ns
        if self.ends[end.name] is end and due_ns is not None and due_ns <= self.now_ns:
            end.alarm_ns = None
            if end.trainer.phase is Phase.LASER_ON:
                self._look_at_lasers(end)
            self.feed(end.name, Woke())

    def _look_at_lasers(self, end: End) -> None:
        lasers = end.engine.transmitter(self.now_ns)
        if lasers != end.lasers:
            end.lasers = lasers
            self.feed(end.name, TransmitterChanged(*lasers))

    def _light_moved(self, name: str) -> None:
        self.ends[name].engine.light_moved(self.now_ns)
        self._tell_light(name)

    def _tell_light(self, name: str) -> None:
        engine = self.ends[name].engine
        self.feed(name, LightChanged(*engine.light(self.now_ns)))
        self.feed(name, engine.quality())

    def _carrier_beat(self, name: str) -> None:
        end = self.ends[name]
        end.engine.advance(self.now_ns)
        self._look_at_lasers(end)
        self._tell_light(name)
        self._send_carrier(name)
        self._at(self.now_ns + CARRIER_BEAT_NS, lambda: self._carrier_beat(name))

    def _send_carrier(self, name: str) -> None:
        end = self.ends[name]
        trainer = end.trainer
        end.offered = trainer.offers
        message = end.engine.carrier(
            self.now_ns, trainer.session, trainer.state, trainer.reason, trainer.offers
        )
        self._send(name, encode_frame(FrameType.CARRIER, message.encode()))

    def _send(self, name: str, frame: bytes) -> None:
        chance, weather = self._chance.random, self.weather
        target = name if self.looped else "ba"[name == "b"]
        if self.cut[target] or chance() < weather.loss_ratio:
            return
        if chance() < weather.corrupt_ratio:
            spoilt = bytearray(frame)
            bit = self._chance.randrange(len(frame) * 8)
            spoilt[bit >> 3] ^= 1 << (bit & 7)
            frame = bytes(spoilt)
        for _ in range(2 if chance() < weather.duplicate_ratio else 1):
            late_ns = self._chance.randrange(LATE_NS) if chance() < weather.late_ratio else 0
            arrival_ns = self.now_ns + FLIGHT_NS + late_ns
            self._at(arrival_ns, lambda: self._deliver(target, frame))

    def _deliver(self, name: str, frame: bytes) -> None:
        end = self.ends[name]
        end.inbox.frames.append(frame)
        if end.cable.peek() is None:
            return
        received = bytearray(end.cable.peeked_bytes)
        end.cable.receive_into([memoryview(received)])
        try:
            header, payload = decode_frame(received)
            if header.type == FrameType.TRAINING:
                self.feed(name, FrameHeard(header.lane, end.decoder.decode(payload)))
            else:
                message = CarrierMessage.decode(payload)
                moved = end.engine.hear_carrier(message, self.now_ns)
                self.feed(name, PeerCarrier(message))
                if moved:
                    self._tell_light(name)
        except MalformedFrame:
            end.bad_frames += 1
