"""A fibre port: optics, training and data path of one engine, joined.

Light decides whether frames pass, frames train the link, the trained link moves data, and what the
data path meets (replays without end) or the light does (darkness) takes the link down again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from time import time_ns

from accelhw.device.channels import ChannelHost, Channels, NoChannels
from accelhw.device.dataport import DataPort, Engine
from accelhw.device.engine import OpticalEngine
from accelhw.device.linknews import LinkNews
from accelhw.device.portcounters import PortCounters
from accelhw.device.portrows import PortRows
from accelhw.device.surroundings import Surroundings
from accelhw.link.config import TrainerConfig
from accelhw.link.events import (
    Disabled,
    Enabled,
    Event,
    FecLockLost,
    FrameHeard,
    InterfaceUp,
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
    Traffic,
    TransmitterChanged,
    WakeAt,
    Woke,
)
from accelhw.link.events import InterfaceDown as InterfaceWentDown
from accelhw.link.moves import Phase
from accelhw.link.training import LinkTrainer
from accelhw.model.config import Fibre
from accelhw.model.ids import PortId
from accelhw.model.link import DownReason, LinkState, PeerId
from accelhw.model.profile import Profile
from accelhw.optics.bank import LaneBank
from accelhw.transport.base import InterfaceDown, Pluggable, Transport
from accelhw.wire.carrier import CarrierMessage, LaneLight
from accelhw.wire.checksum import crc32c
from accelhw.wire.frame import (
    HEADER_BYTES,
    FrameType,
    Header,
    MalformedFrame,
    encode_frame,
    source_address,
)
from accelhw.wire.training import TrainingDecoder

BATCHES_PER_TURN = 4  # of received frames, before other ports get their turn
CONTROL_BYTES_MAX = 4096  # the longest CARRIER or TRAINING payload


class Port:
    """One port. The loop calls `on_readable`, `on_deadline`, `pump` and, at a slow beat, `beat`."""

    def __init__(
        self,
        port_id: PortId,
        *,
        chassis: str,
        profile: Profile,
        fibre: Fibre | None,
        interface: str,
        transport: Transport,
        memory: Engine,
        around: Surroundings,
        seed: int,
        bank: LaneBank | None = None,
    ) -> None:
        """`bank`: the lanes of many ports, whose time its owner lets pass; None: one of its own."""
        self.id = port_id
        self.interface = interface
        self.transport = transport
        self.fibre = fibre
        me = PeerId(chassis, port_id.card, port_id.oe)
        self.optics = OpticalEngine(profile, fibre, me, seed, bank)
        self.counters = PortCounters()
        self.memory = memory
        self.data = DataPort(str(port_id), transport, memory, self.optics.frames, self.counters)
        self.channels = Channels(self.data, NoChannels())
        self.trainer = LinkTrainer(TrainerConfig.of(me, profile, self.data.credit_frames))
        self.admin_up = True
        self.downs = 0
        self.up_since_ns = 0  # wall clock
        self.rows = PortRows(self)
        self._around = around
        self._news = LinkNews(self, around)
        self._source = source_address(str(port_id))
        self._decoder = TrainingDecoder()
        self._scratch = memoryview(bytearray(HEADER_BYTES + CONTROL_BYTES_MAX))
        self._wake_ns: int | None = None
        self._light = (0, 0)
        self._lasers = (0, 0)
        self._offered = 0  # better modes, in the last carrier
        self._moved_bytes, self._data_flows = 0, False  # at the last beat
        self._interface_down = False
        self._carrier_due = False
        self._events: deque[Event] = deque()  # the first is being handled
        self._crossing = tuple(range(profile.lanes_per_oe)), frozenset[int]()
        # A test of the link: the trainer rests, the lasers stay on.
        self.testing = False
        self.heard: CarrierMessage | None = None  # the light that was told of last
        self._reflecting = False  # what comes from the fibre goes back into it
        self._looped = False  # the receiver hears the own transmitter, nothing of the fibre

    def use_channels(self, host: ChannelHost) -> None:
        """Others may move what is large; before the link is up."""
        self.channels = Channels(self.data, host)
        self.optics.on_aim.append(self.channels.aim)

    # ---- commands ----

    def set_admin(self, up: bool, now_ns: int) -> None:
        """Switch the port on or off, as an operator does."""
        self.admin_up = up
        if up:
            self.enable(now_ns)
        else:
            self._feed(Disabled(DownReason.ADMIN_DOWN), now_ns)
        self._around.changed(self)

    def enable(self, now_ns: int) -> None:
        """Begin to work, if it is switched on: after power-on or a reset of the card."""
        if self.admin_up:
            self._feed(Enabled(), now_ns)

    def halt(self, now_ns: int) -> None:
        """Lasers off for a reset of the card; `enable` begins again."""
        self._feed(
            Disabled(DownReason.CARD_RESET if self.admin_up else DownReason.ADMIN_DOWN), now_ns
        )

    def retrain(self, now_ns: int) -> None:
        self._feed(RetrainAsked(), now_ns)

    # ---- tests ----

    def begin_test(self, now_ns: int, *, reflecting: bool = False, looped: bool = False) -> None:
        """Out of data mode, with light on all lanes; the far end hears why."""
        self.testing = True
        self._reflecting, self._looped = reflecting, looped
        self._feed(Disabled(DownReason.TEST), now_ns)
        if looped:
            self.optics.loop(True, now_ns)
        self.optics.set_transmit(True, now_ns)
        self._send_carrier(now_ns)
        self._around.changed(self)

    def end_test(self, now_ns: int) -> None:
        """Back to what the port was set to: it trains if it is switched on."""
        if not self.testing:
            return
        self.testing = False
        if self._looped:
            self.optics.loop(False, now_ns)
        self._reflecting = self._looped = False
        if self.admin_up:
            self._feed(Enabled(), now_ns)
        else:
            self.optics.set_transmit(False, now_ns)
            self._send_carrier(now_ns)
        self._look_at_light(now_ns)
        self._around.changed(self)

    def hear_light(self, message: CarrierMessage, now_ns: int) -> None:
        """Take in light as the cable, or a loop inside the engine, delivered it."""
        self.heard = message
        if self.optics.hear_carrier(message, now_ns):
            self._look_at_light(now_ns)

    def light_of(self, lane: int) -> LaneLight | None:
        """What is known of the transmitter behind a receiving lane."""
        if self.heard is None or lane >= len(self.heard.lanes):
            return None
        return self.heard.lanes[lane]

    def _reflect(self, message: CarrierMessage) -> CarrierMessage:
        """The far port's light, as it leaves here again: what the way took is gone."""
        rx_dbm, lit = self.optics.rx_dbm, self.optics.lit
        lanes = tuple(
            replace(light, on=bool(lit[i]), power_cdbm=round(100.0 * float(rx_dbm[i])))
            for i, light in enumerate(message.lanes[: self.optics.lanes])
        )
        return replace(message, lanes=lanes)

    # ---- faults ----

    @property
    def has_plug(self) -> bool:
        return self.fibre is not None and isinstance(self.transport, Pluggable)

    def afflict(
        self,
        on_lanes: Mapping[str, Sequence[float]],
        on_card: Mapping[str, float],
        now_ns: int,
    ) -> None:
        """All that is wrong here from now on, by the names of optics.causes."""
        if self.optics.afflict(on_lanes, on_card, now_ns):
            self._carrier_due = True
            self._look_at_lasers(now_ns)
            self._look_at_light(now_ns)
            self._feed(self.optics.quality(), now_ns)
            if self._carrier_due:
                self._send_carrier(now_ns)
            self._around.changed(self)

    def cross(self, arrival: tuple[int, ...], inverted: frozenset[int], now_ns: int) -> None:
        """How the plug crosses lanes from now on. The markers will tell both ends."""
        if isinstance(self.transport, Pluggable) and (arrival, inverted) != self._crossing:
            self._crossing = arrival, inverted
            self.transport.cross(arrival, inverted)
            self._send_carrier(now_ns)

    # ---- frames ----

    def on_readable(self, now_ns: int) -> None:
        """Take what has come, a bounded number; more stays readable."""
        counters = self.counters
        before = counters.rx_frames
        noise = counters.foreign_frames + counters.malformed_frames + counters.crc_errors
        try:
            for _ in range(BATCHES_PER_TURN):
                header = self.data.receive(now_ns)
                if header is None:
                    break
                self._on_control(header, now_ns)
        except InterfaceDown:
            self._on_interface_down(now_ns)
            return
        heard = counters.rx_frames - before
        if (
            heard
            > counters.foreign_frames + counters.malformed_frames + counters.crc_errors - noise
        ):
            self.optics.heard(now_ns)
        self.after_data(now_ns)

    def _on_control(self, header: Header, now_ns: int) -> None:
        """A CARRIER or TRAINING frame: light and what it says."""
        if header.length > CONTROL_BYTES_MAX:
            self.counters.malformed_frames += 1
            self.transport.discard()
            return
        frame = self._scratch[: HEADER_BYTES + header.length]
        self.transport.receive_into((frame,))
        payload = frame[HEADER_BYTES:]
        if crc32c(payload) != header.payload_crc:
            self.counters.crc_errors += 1
            return
        try:
            if header.type == FrameType.CARRIER:
                self._on_carrier(CarrierMessage.decode(payload), now_ns)
            elif self._reflecting:
                self._send(FrameType.TRAINING, bytes(payload), now_ns, header.lane)
            else:
                training = self._decoder.decode(payload)
                self._feed(FrameHeard(header.lane, training), now_ns)
        except MalformedFrame:
            self.counters.malformed_frames += 1

    def _on_carrier(self, message: CarrierMessage, now_ns: int) -> None:
        if self._looped:
            return
        self.heard = message
        moved = self.optics.hear_carrier(message, now_ns)
        self._feed(PeerCarrier(message), now_ns)  # first: it may say why the light goes
        if moved:
            self._look_at_light(now_ns)
        if self._reflecting:
            self._send(FrameType.CARRIER, self._reflect(message).encode(), now_ns)

    def pump(self, now_ns: int) -> bool:
        """Send data that may leave now. True: call again in the next turn."""
        try:
            more = self.data.pump(now_ns)
        except InterfaceDown:
            self._on_interface_down(now_ns)
            return False
        if self.data.exhausted:
            self._feed(RetryExhausted(), now_ns)
        return more

    def after_data(self, now_ns: int) -> None:
        """Frames were sent or taken; whether the link can go on so."""
        if self.data.exhausted or self.channels.exhausted:
            self._feed(RetryExhausted(), now_ns)

    # ---- time ----

    def next_deadline_ns(self) -> int | None:
        wake_ns, data_ns = self._wake_ns, self.data.next_deadline_ns()
        lock_ns = self.optics.lock_deadline_ns()
        if wake_ns is None or (data_ns is not None and data_ns < wake_ns):
            wake_ns = data_ns
        if wake_ns is None or (lock_ns is not None and lock_ns < wake_ns):
            wake_ns = lock_ns
        return wake_ns

    def on_deadline(self, now_ns: int) -> None:
        if self._wake_ns is not None and self._wake_ns <= now_ns:
            self._wake_ns = None
            if self.trainer.phase is Phase.LASER_ON:
                self._look_at_lasers(now_ns)
            self._feed(Woke(), now_ns)
        self._look_at_lock(now_ns)
        data_ns = self.data.next_deadline_ns()
        if data_ns is not None and data_ns <= now_ns:
            try:
                self.data.on_deadline(now_ns)
            except InterfaceDown:
                self._on_interface_down(now_ns)
                return
            self.after_data(now_ns)

    def beat(self, now_ns: int) -> None:
        """Every half second: counters move on, light is looked at, the carrier is sent."""
        self.optics.tick(now_ns)
        self._look_at_lock(now_ns)
        self._look_at_lasers(now_ns)
        self._look_at_light(now_ns)
        self._look_at_traffic(now_ns)
        self._feed(self.optics.quality(), now_ns)
        self._send_carrier(now_ns)

    def _look_at_traffic(self, now_ns: int) -> None:
        counters = self.counters
        before, self._moved_bytes = (
            self._moved_bytes, counters.tx_payload_bytes + counters.rx_payload_bytes
        )  # fmt: skip
        flows = self._moved_bytes != before or self.in_flight_frames > 0
        if flows != self._data_flows:
            self._data_flows = flows
            self._feed(Traffic(flows), now_ns)

    @property
    def in_flight_frames(self) -> int:
        """Over all channels."""
        return self.counters.in_flight_frames + self.channels.gauge("in_flight_frames")

    # ---- light ----

    def _look_at_lasers(self, now_ns: int) -> None:
        lasers = self.optics.transmitter(now_ns)
        if lasers != self._lasers:
            self._lasers = lasers
            self._feed(TransmitterChanged(*lasers), now_ns)

    def _look_at_light(self, now_ns: int) -> None:
        light = self.optics.light(now_ns)
        if light != self._light:
            self._light = light
            self._feed(self.optics.quality(), now_ns)
            self._feed(LightChanged(*light), now_ns)
            self._around.changed(self)

    def _look_at_lock(self, now_ns: int) -> None:
        """FEC that met three lost codewords in a row has no lock; its worst lane is to blame."""
        if self.optics.lost_lock(now_ns):
            self._feed(self.optics.quality(), now_ns)
            self._feed(FecLockLost(self.optics.worst_lane()), now_ns)
            self._around.changed(self)

    def _send_carrier(self, now_ns: int) -> None:
        self._carrier_due = False
        if self._reflecting and self.heard is not None:
            return  # No light of its own.
        trainer = self.trainer
        self._offered = trainer.offers
        message = self.optics.carrier(
            now_ns, trainer.session, trainer.state, trainer.reason, trainer.offers
        )
        self._send(FrameType.CARRIER, message.encode(), now_ns)

    def _send(self, frame_type: FrameType, payload: bytes, now_ns: int, lane: int = 0xFF) -> None:
        """An unsequenced frame. One that finds no room is lost, as any frame may be."""
        frame = encode_frame(frame_type, payload, lane=lane, source=self._source)
        try:
            sent = self.transport.send((frame,))
        except InterfaceDown:
            self._on_interface_down(now_ns)
            return
        if sent:
            self.counters.tx_frames += 1
            self.counters.tx_bytes += len(frame)
        else:
            self.counters.tx_stalls += 1
        if self._interface_down:
            self._interface_down = False
            self._feed(InterfaceUp(), now_ns)

    def _on_interface_down(self, now_ns: int) -> None:
        if self._interface_down:
            return
        self._interface_down = True
        self.optics.go_dark(now_ns)
        self._feed(InterfaceWentDown(), now_ns)
        self._look_at_light(now_ns)

    # ---- the link machine ----

    def _feed(self, event: Event, now_ns: int) -> None:
        """Tell the machine, event by event: what an action brings about waits its turn."""
        self._events.append(event)
        if len(self._events) > 1:
            return
        while self._events:
            self._handle(self._events[0], now_ns)
            self._events.popleft()

    def _handle(self, event: Event, now_ns: int) -> None:
        trainer = self.trainer
        before, failures, damped = trainer.state, trainer.failures, trainer.flaps_damped
        mode_moved = False
        for action in trainer.handle(event, now_ns):
            match action:
                case SendTraining():
                    for lane, payload in action.payloads():
                        if self.optics.laser_on[lane]:
                            self._send(FrameType.TRAINING, payload, now_ns, lane)
                case WakeAt(deadline_ns):
                    self._wake_ns = deadline_ns
                case SetTransmit(on):
                    self.optics.set_transmit(on, now_ns)
                    self._carrier_due = True
                case ShapeLight(penalty_db):
                    self.optics.shape(penalty_db)
                    self._carrier_due = True
                case SetMode(mode):
                    self.optics.set_mode(mode, now_ns)
                    mode_moved = True
                case LinkUp():
                    self._on_link_up(action, now_ns)
                case LinkHeld():
                    self.data.hold()
                    self.channels.hold()
                    # Out of data mode: no codewords, and no lock of theirs to lose.
                    self.optics.set_lanes(0, trainer.lane_map, trainer.inverted, now_ns)
                    self._around.changed(self)
                case LinkResumed():
                    self._on_link_resumed(action, now_ns)
                case LinkDown():
                    self._on_link_down(action, now_ns)
                case Report():
                    self._around.show_step(self, action)
        state = trainer.state
        if state is not before:
            self._carrier_due = True
            self._around.changed(self)
            if state is LinkState.TRAINING:
                self._news.training()
        if trainer.failures != failures:
            self._news.failed()
        if trainer.flaps_damped != damped:
            self._news.damped()
        if trainer.offers != self._offered:
            self._carrier_due = True
        if self._carrier_due:
            self._send_carrier(now_ns)
        if mode_moved:
            self._feed(self.optics.quality(), now_ns)
            self._look_at_light(now_ns)

    def _on_link_up(self, action: LinkUp, now_ns: int) -> None:
        self.optics.set_lanes(action.rx_lanes, action.lane_map, action.inverted, now_ns)
        self.up_since_ns = time_ns()
        self.channels.link_down(now_ns)  # of an epoch that ended without a word
        self.data.link_up(action.epoch, action.peer, action.credit_frames, now_ns)
        self._around.changed(self)
        self._news.up(action)

    def _on_link_resumed(self, action: LinkResumed, now_ns: int) -> None:
        """Same epoch: the data path goes on with all that was in flight."""
        link = action.link
        self.optics.set_lanes(link.rx_lanes, link.lane_map, link.inverted, now_ns)
        self.data.release(now_ns)
        self.channels.release()
        self._around.changed(self)
        self._news.resumed(action)

    def _on_link_down(self, action: LinkDown, now_ns: int) -> None:
        self.channels.link_down(now_ns)
        self.data.link_down(now_ns)
        self.optics.set_lanes(0, (), 0, now_ns)
        self.up_since_ns = 0
        self.downs += 1
        self._news.down(action)

    def close(self) -> None:
        self.transport.close()
