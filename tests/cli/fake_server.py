"""A daemon without hardware: the services of accel.v1 over canned messages and real bytes.

State outlives a restart, as the hardware's does. Knobs on `State` make it refuse or fail.
"""

from __future__ import annotations

import hashlib
import os
import socket
import threading
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
from crc32c import crc32c
from google.protobuf import any_pb2
from google.rpc import error_details_pb2, status_pb2

from accel.v1 import (
    card_pb2,
    card_pb2_grpc,
    diag_pb2_grpc,
    event_pb2,
    event_pb2_grpc,
    fault_pb2_grpc,
    flag_pb2,
    health_pb2,
    health_pb2_grpc,
    host_pb2,
    host_pb2_grpc,
    link_pb2,
    link_pb2_grpc,
    memory_pb2,
    memory_pb2_grpc,
    optics_pb2,
    optics_pb2_grpc,
    transfer_pb2,
    transfer_pb2_grpc,
)

from .fake_diag import DiagServicer
from .fake_faults import FaultServicer, canned_faults
from .fake_health import HealthServicer, canned_health

EPOCH_S = 1_790_000_000  # 2026-09-21T14:13:20Z, when this chassis was switched on
MIB = 1 << 20
PATTERN = bytes(range(256))


def stamp(seconds: float) -> Any:
    from google.protobuf.timestamp_pb2 import Timestamp

    moment = Timestamp()
    moment.FromMilliseconds(int((EPOCH_S + seconds) * 1000))
    return moment


def flag(name: str, changes: int, *, active: bool) -> flag_pb2.Flag:
    """One that was set some seconds ago, and is still latched."""
    return flag_pb2.Flag(
        name=name,
        active=active,
        latched=True,
        changes_total=changes,
        first_set_time=stamp(3),
        last_set_time=stamp(4),
        last_clear_time=None if changes == 1 else stamp(5),
    )


def clear(flags: Iterable[flag_pb2.Flag]) -> None:
    for one in flags:
        one.latched = one.active


def canned_cards() -> list[card_pb2.Card]:
    return [
        card_pb2.Card(
            name=f"cards/card{index}",
            uid=f"00e04c000000000{index}",
            state=card_pb2.CARD_STATE_READY,
            profile="dr8",
            description="Accelerator card with 800G-DR8 optical engines",
            emulated=True,
            hbm_total_bytes=96 << 30,
            hbm_allocated_bytes=[MIB + 8192, 0][index],
            hbm_resident_bytes=[MIB, 0][index],
            hbm_type="HBM3",
            hbm_bandwidth_gbyte_per_s=3350,
            bus_bandwidth_gbyte_per_s=1024.5,
            oe_count=2,
            signal_line_count=8,
            links_up_count=1,
            capacity_gbit_per_s=425,
            bus_read_bytes_total=1234567,
            bus_written_bytes_total=89,
            resets_total=0,
            transfers_done_total=[1, 0][index],
            transfers_failed_total=0,
            worker=index,
            ready_time=stamp(1),
            hbm_health=card_pb2.HbmHealth(
                corrected_errors_total=[3, 1204][index],
                uncorrectable_errors_total=index,
                rows_pending=index,
                refresh_ratio=1 + index,
            ),
            case_temp_c=[52.25, 71.5][index],
            hbm_temp_c=[61.0, 86.25][index],
            supply_v=3.3,
            power_w=[38.5, 64.0][index],
            signal_lines_used_count=4,
            region_count=[2, 0][index],
            thresholds=[
                flag_pb2.Threshold(
                    quantity="case_temp_c",
                    high_alarm=75,
                    high_warning=70,
                    low_warning=0,
                    low_alarm=-5,
                ),
                flag_pb2.Threshold(
                    quantity="supply_v",
                    high_alarm=3.63,
                    high_warning=3.465,
                    low_warning=3.135,
                    low_alarm=2.97,
                ),
            ],
            flags=[
                flag("case_temp_high_warning", 1, active=True)
                if index
                else flag_pb2.Flag(name="case_temp_high_warning"),
                flag_pb2.Flag(name="supply_low_alarm"),
            ],
        )
        for index in (0, 1)
    ]


def canned_links() -> list[link_pb2.Link]:
    links = []
    for card in (0, 1):
        up = link_pb2.Link(
            name=f"cards/card{card}/links/oe0",
            state=link_pb2.LINK_STATE_UP,
            phase="ACTIVE",
            admin_up=True,
            peer=f"cards/card{1 - card}/links/oe0",
            peer_chassis="9c3e55d1a7f00b42",
            width_lanes=4,
            fitted_lanes=4,
            capacity_gbit_per_s=425,
            modulation="PAM4",
            fec="RS(544,514)",
            reason=link_pb2.LinkReason(code="NONE"),
            peer_reason=link_pb2.LinkReason(code="NONE"),
            fibre=link_pb2.Fibre(
                name="fibre0",
                transport="veth",
                length_m=10,
                loss_db=1.5,
                mtu_bytes=65535,
                interface=f"card{card}-oe0",
            ),
            epoch=3,
            up_time=stamp(2.5),
            training_ms=183.25,
            rtt_us=41.5,
            trainings_total=1,
            counters=link_pb2.LinkCounters(
                tx_frames_total=17, tx_bytes_total=1_050_000, rx_frames_total=20, credit_frames=64
            ),
            margin_min_db=[4.31, 3.87][card],
            pre_fec_ber_max=[2.4e-9, 1.1e-8][card],
            mode="kp4",
            recoveries_total=1,
            flaps_total=1,
            equaliser_requests_total=12,
            full_width_lanes=4,
            fec_counters=link_pb2.LinkFec(
                codewords_total=7_812_500,
                corrected_bits_total=1020,
                corrected_symbols_total=1017,
                correctable_symbols=15,
                bins=[7_811_484, 1015, 1, *[0] * 13],
                predicted_frame_loss_ratio=3.2e-41,
            ),
        )
        failed = link_pb2.Link(
            name=f"cards/card{card}/links/oe1",
            state=link_pb2.LINK_STATE_FAILED,
            phase="HOLD_OFF",
            admin_up=True,
            fitted_lanes=4,
            modulation="PAM4",
            fec="RS(544,514)",
            reason=link_pb2.LinkReason(
                code="BER_TOO_HIGH",
                lanes=[0 if card else 3],
                lane=0 if card else 3,
                next_action="look at the lane's margin and Rx power; clean the connector",
            ),
            peer_reason=link_pb2.LinkReason(code="PEER_SILENT"),
            fibre=link_pb2.Fibre(
                name="fibre1",
                transport="veth",
                length_m=10,
                loss_db=6.5,
                mtu_bytes=9000,
                interface=f"card{card}-oe1",
            ),
            epoch=7,
            trainings_total=4,
            training_failures_total=4,
            counters=link_pb2.LinkCounters(),
            margin_min_db=-0.75,
            pre_fec_ber_max=6.2e-4,
            flaps_total=3,
            flaps_damped_total=1,
            fallbacks_total=2,
            full_width_lanes=4,
            fec_counters=link_pb2.LinkFec(
                codewords_total=4000,
                uncorrectable_codewords_total=12,
                lock_losses_total=2,
                correctable_symbols=15,
                bins=[1500, 1200, 800, 300, 120, 40, 20, 8, *[0] * 8],
            ),
        )
        links += [up, failed]
    return links


def canned_engines() -> list[optics_pb2.Engine]:
    return [
        optics_pb2.Engine(
            name=f"cards/card{card}/engines/oe{oe}",
            fitted_lanes=4,
            lane_type="DR",
            modulation="PAM4",
            fec="RS(544,514)",
            connector="MPO-16",
            symbol_rate_gbd=53.125,
            line_rate_gbit_per_s=106.25,
            energy_pj_per_bit=15,
            trace_loss_db=0.8,
            lanes_lit_count=4 - oe,
            lanes_los_count=oe,
            lanes_lol_count=oe,
            margin_min_db=4.31 if oe == 0 else -0.75,
            thresholds=[
                flag_pb2.Threshold(
                    quantity="rx_power_dbm",
                    high_alarm=7.5,
                    high_warning=4.5,
                    low_warning=-6.4,
                    low_alarm=-10.4,
                ),
                flag_pb2.Threshold(quantity="pre_fec_ber", high_alarm=2.4e-4, high_warning=2e-5),
            ],
            flags_active_count=oe,
            flags_latched_count=2 * oe,
            flag_changes_total=3 * oe,
        )
        for card in (0, 1)
        for oe in (0, 1)
    ]


def canned_lanes() -> list[optics_pb2.Lane]:
    lanes = []
    for card in (0, 1):
        for oe in (0, 1):
            for lane in range(4):
                dark = oe == 1 and lane == 3
                one = optics_pb2.Lane(
                    name=f"cards/card{card}/engines/oe{oe}/lanes/lane{lane}",
                    signal_line=4 * oe + lane,
                    channel=4 * oe + lane,
                    wavelength_nm=1311,
                    tx_on=not dark,
                    tx_power_dbm=1.25,
                    tx_bias_ma=61.5,
                    rx_power_dbm=-40 if dark else -1.5 - lane / 8,
                    los=dark,
                    lol=dark,
                    carries_data=oe == 0,
                    inverted=oe == 0 and lane == 2,
                    rx_bits_total=1.0625e13,
                    pre_fec_errors_total=25600,
                    fec_corrected_symbols_total=25400,
                    laser_temp_c=50.25,
                    laser_wear_ratio=0.04,
                    tec_current_ratio=0.15,
                )
                if not dark:
                    one.margin_db = 4.31 - 0.125 * lane if oe == 0 else 0.5 - lane
                    one.q = 7.25
                    one.snr_db = 17.2
                    one.pre_fec_ber = 2.4e-9
                if oe == 0:
                    one.peer_lane = 3 - lane
                if dark:
                    one.flags.append(flag("los", 1, active=True))
                    one.flags.append(flag("rx_power_low_alarm", 2, active=False))
                lanes.append(one)
    return lanes


def canned_channels() -> list[link_pb2.Channel]:
    channels = []
    for line in range(8):
        channel = link_pb2.Channel(
            channel=line, signal_line=line, oe=line // 4, lane=line % 4, carries_data=line < 4
        )
        if line < 4:
            channel.peer_lane = 3 - line
            channel.inverted = line == 2
        channels.append(channel)
    return channels


def canned_transfers() -> list[transfer_pb2.Transfer]:
    source = transfer_pb2.RegionSlice(region="cards/card0/regions/weights")
    target = transfer_pb2.RegionSlice(region="cards/card1/regions/cache", offset=4096)
    return [
        transfer_pb2.Transfer(
            name="transfers/7f3a02",
            kind=transfer_pb2.TRANSFER_KIND_READ,
            state=transfer_pb2.TRANSFER_STATE_RUNNING,
            source=source,
            target=target,
            total_bytes=1 << 30,
            good_bytes=1 << 28,
            first_gap_offset=1 << 28,
            links=["cards/card0/links/oe0"],
            start_time=stamp(20),
        ),
        transfer_pb2.Transfer(
            name="transfers/7f3a01",
            kind=transfer_pb2.TRANSFER_KIND_WRITE,
            state=transfer_pb2.TRANSFER_STATE_DONE,
            source=source,
            target=target,
            total_bytes=MIB,
            good_bytes=MIB,
            first_gap_offset=MIB,
            links=["cards/card0/links/oe0"],
            start_time=stamp(10),
            end_time=stamp(10.001),
            wall_ms=0.5,
            wall_gbyte_per_s=2.097152,
            modelled_us=21.4,
            modelled_pcie_us=18.9,
            crc32c=0xDEADBEEF,
            replayed_frames_total=2,
        ),
    ]


def canned_events() -> list[event_pb2.Event]:
    facts = [
        (
            "INFO",
            "CHASSIS_STARTED",
            "chassis",
            "The chassis is on: 2 cards, 2 fibres.",
            {"cards": 2},
        ),
        ("INFO", "CARD_READY", "card0", "card0 is ready.", {}),
        ("INFO", "CARD_READY", "card1", "card1 is ready.", {}),
        ("INFO", "LINK_UP", "card0/oe0", "Up with 4 of 4 lanes to card1/oe0.", {"took_ms": 183.25}),
        (
            "WARNING",
            "LINK_FAILED",
            "card0/oe1",
            "Training failed: the bit error ratio of lane 3 is 6.2e-04, beyond 2.4e-04.",
            {"reason": "BER_TOO_HIGH", "lane": 3},
        ),
    ]
    events = []
    for index, (severity, kind, subject, message, detail) in enumerate(facts):
        event = event_pb2.Event(
            revision=index + 1,
            time=stamp(index + 0.125),
            severity=f"SEVERITY_{severity}",
            kind=kind,
            subject=subject,
            message=message,
            count=1,
        )
        if kind == "LINK_FAILED":
            event.reason, event.cause, event.peer = "BER_TOO_HIGH", "card0/oe1/lane3", "card1/oe1"
            event.count = 3
            event.first_time.CopyFrom(stamp(1.5))
            event.next_action = "look at the lane's margin and Rx power; clean the connector"
        if detail:
            event.detail.update(detail)
        events.append(event)
    return events


@dataclass
class State:
    """What the hardware keeps, and how this fake should misbehave."""

    cards: list[Any] = field(default_factory=canned_cards)
    links: list[Any] = field(default_factory=canned_links)
    engines: list[Any] = field(default_factory=canned_engines)
    lanes: list[Any] = field(default_factory=canned_lanes)
    channels: list[Any] = field(default_factory=canned_channels)
    transfers: list[Any] = field(default_factory=canned_transfers)
    events: list[Any] = field(default_factory=canned_events)
    health: health_pb2.Health = field(default_factory=canned_health)
    faults: list[Any] = field(default_factory=lambda: canned_faults(stamp(60), stamp(90)))
    regions: dict[str, Any] = field(default_factory=dict)
    metrics_address: str = "127.0.0.1:9437"
    memory: dict[str, bytearray] = field(default_factory=dict)

    refuse: dict[str, tuple[str, str, str]] = field(default_factory=dict)  # method: status, ...
    mappable: bool = False
    transfer_end: str = "DONE"  # DONE, FAILED, HANG
    transfer_error: str = "LINK_DEADLINE"
    training_end: str = "UP"
    attached: bool = True
    diags: list[Any] = field(default_factory=list)
    started: Any = None  # the newest StartDiagRequest
    on_diag: Any = None  # called with a test's result before it is given
    on_watch: Any = None  # called in the middle of WatchTransfer
    busy_answers: int = 0  # so many refusals to free a region
    on_answer: dict[str, Any] = field(default_factory=dict)  # method: called before it answers
    calls: list[str] = field(default_factory=list)
    page_size_max: int = 3  # small, so that every list has pages

    def __post_init__(self) -> None:
        self.add_region("card0", "weights", PATTERN * (MIB // 256), 0x100000)
        self.add_region("card0", "scratchpad", bytes(8192), 0x200000)

    def add_region(self, card: str, name: str, content: bytes, address: int) -> Any:
        full = f"cards/{card}/regions/{name}"
        self.memory[full] = bytearray(content)
        self.regions[full] = memory_pb2.Region(
            name=full,
            card=f"cards/{card}",
            region_id=len(self.regions) + 1,
            key=0x5EED0001 + len(self.regions),
            address=address,
            size_bytes=len(content),
            create_time=stamp(5),
        )
        return self.regions[full]

    def transfer(self, name: str) -> Any:
        return next((t for t in self.transfers if t.name == name), None)


def refuse(context: Any, status: str, reason: str, message: str, **metadata: str) -> None:
    """Aborts as the daemon does: a status with ErrorInfo inside."""
    code = getattr(grpc.StatusCode, status)
    detail = any_pb2.Any()
    detail.Pack(error_details_pb2.ErrorInfo(reason=reason, domain="acceld", metadata=metadata))
    body = status_pb2.Status(code=code.value[0], message=message, details=[detail])
    context.set_trailing_metadata((("grpc-status-details-bin", body.SerializeToString()),))
    context.abort(code, message)


class Servicer:
    def __init__(self, state: State) -> None:
        self.state = state

    def find(self, items: Any, name: str, what: str, context: Any) -> Any:
        found = next((item for item in items if item.name == name), None)
        if found is None:
            refuse(
                context,
                "NOT_FOUND",
                f"{what.upper()}_NOT_FOUND",
                f"no {what} {name.removeprefix('cards/')}",
                name=name,
            )
        return found

    def page(self, items: list[Any], request: Any) -> tuple[list[Any], str]:
        start = int(request.page_token or 0)
        end = start + min(request.page_size or 50, self.state.page_size_max)
        return items[start:end], str(end) if end < len(items) else ""


class CardServicer(Servicer, card_pb2_grpc.CardServiceServicer):
    def ListCards(self, request: Any, context: Any) -> Any:
        self.state.on_answer.get("ListCards", int)()
        cards, token = self.page(self.state.cards, request)
        return card_pb2.ListCardsResponse(cards=cards, next_page_token=token)

    def GetCard(self, request: Any, context: Any) -> Any:
        return self.find(self.state.cards, request.name, "card", context)

    def ResetCard(self, request: Any, context: Any) -> Any:
        card = self.find(self.state.cards, request.name, "card", context)
        card.state = card_pb2.CARD_STATE_RESETTING
        card.resets_total += 1
        return card

    def ClearCardFlags(self, request: Any, context: Any) -> Any:
        card = self.find(self.state.cards, request.name, "card", context)
        clear(card.flags)
        return card


class LinkServicer(Servicer, link_pb2_grpc.LinkServiceServicer):
    def ListLinks(self, request: Any, context: Any) -> Any:
        links = self.of(request.parent, context)
        links, token = self.page(links, request)
        return link_pb2.ListLinksResponse(links=links, next_page_token=token)

    def of(self, parent: str, context: Any) -> list[Any]:
        if parent in ("", "cards/-"):
            return self.state.links
        self.find(self.state.cards, parent, "card", context)
        return [link for link in self.state.links if link.name.startswith(parent + "/")]

    def GetLink(self, request: Any, context: Any) -> Any:
        return self.find(self.state.links, request.name, "link", context)

    def SetLinkAdmin(self, request: Any, context: Any) -> Any:
        link = self.find(self.state.links, request.name, "link", context)
        link.admin_up = request.up
        link.state = link_pb2.LINK_STATE_SEEKING if request.up else link_pb2.LINK_STATE_DOWN
        return link

    def TrainLink(self, request: Any, context: Any) -> Any:
        link = self.find(self.state.links, request.name, "link", context)
        for state, phase, lane, text in (
            ("SEEKING", "SEEK", None, "light out, waiting for the peer"),
            ("TRAINING", "LOCK", 0, "locked"),
            ("TRAINING", "LOCK", 1, "locked"),
            ("TRAINING", "LOCK", 3, "locked"),
            ("TRAINING", "LOCK", 2, "locked"),
            ("TRAINING", "MAP", 2, "arrives from far lane 1, inverted"),
        ):
            yield link_pb2.TrainLinkProgress(
                state=f"LINK_STATE_{state}", phase=phase, lane=lane, text=text
            )
        link.state = link_pb2.LinkState.Value(f"LINK_STATE_{self.state.training_end}")
        yield link_pb2.TrainLinkProgress(state=link.state, phase="ACTIVE", text="done", link=link)

    def GetChannelMap(self, request: Any, context: Any) -> Any:
        card = request.name.removesuffix("/channelMap")
        self.find(self.state.cards, card, "card", context)
        return link_pb2.ChannelMap(name=request.name, channels=self.state.channels)

    def UpdateChannelMap(self, request: Any, context: Any) -> Any:
        by_channel = {c.channel: c for c in self.state.channels}
        for wanted in request.channels:
            mine = by_channel.get(wanted.channel)
            other = next(
                (c for c in self.state.channels if c.signal_line == wanted.signal_line), None
            )
            if mine is None or other is None:
                refuse(context, "INVALID_ARGUMENT", "CHANNEL_MAP_INVALID", "lines are 0 to 7")
            for name in ("signal_line", "oe", "lane"):
                was = getattr(mine, name)
                setattr(mine, name, getattr(other, name))
                setattr(other, name, was)
        return link_pb2.ChannelMap(name=request.name, channels=self.state.channels)


class OpticsServicer(Servicer, optics_pb2_grpc.OpticsServiceServicer):
    def ListEngines(self, request: Any, context: Any) -> Any:
        parent = "" if request.parent == "cards/-" else request.parent + "/"
        found = [e for e in self.state.engines if e.name.startswith(parent)]
        engines, token = self.page(found, request)
        return optics_pb2.ListEnginesResponse(engines=engines, next_page_token=token)

    def GetEngine(self, request: Any, context: Any) -> Any:
        return self.find(self.state.engines, request.name, "engine", context)

    def ListLanes(self, request: Any, context: Any) -> Any:
        parts = request.parent.split("/")
        found = [
            lane
            for lane in self.state.lanes
            if all(
                want in ("-", have) for want, have in zip(parts, lane.name.split("/"), strict=False)
            )
        ]
        lanes, token = self.page(found, request)
        return optics_pb2.ListLanesResponse(lanes=lanes, next_page_token=token)

    def GetLane(self, request: Any, context: Any) -> Any:
        return self.find(self.state.lanes, request.name, "lane", context)

    def ClearFlags(self, request: Any, context: Any) -> Any:
        engine = self.find(self.state.engines, request.name, "engine", context)
        lanes = [lane for lane in self.state.lanes if lane.name.startswith(f"{request.name}/")]
        for lane in lanes:
            clear(lane.flags)
        engine.flags_latched_count = sum(f.latched for lane in lanes for f in lane.flags)
        return engine


class MemoryServicer(Servicer, memory_pb2_grpc.MemoryServiceServicer):
    broker_path = ""

    def region(self, name: str, context: Any) -> Any:
        if name not in self.state.regions:
            short = name.removeprefix("cards/").replace("/regions/", ":")
            refuse(context, "NOT_FOUND", "REGION_NOT_FOUND", f"no region {short}", name=name)
        return self.state.regions[name]

    def ListRegions(self, request: Any, context: Any) -> Any:
        parent = "" if request.parent == "cards/-" else request.parent + "/"
        found = [r for name, r in self.state.regions.items() if name.startswith(parent)]
        regions, token = self.page(found, request)
        return memory_pb2.ListRegionsResponse(regions=regions, next_page_token=token)

    def GetRegion(self, request: Any, context: Any) -> Any:
        return self.region(request.name, context)

    def CreateRegion(self, request: Any, context: Any) -> Any:
        card = request.parent.removeprefix("cards/")
        self.find(self.state.cards, request.parent, "card", context)
        name = request.region_id or "region-1"
        if f"{request.parent}/regions/{name}" in self.state.regions:
            refuse(context, "ALREADY_EXISTS", "REGION_EXISTS", f"{card}:{name} exists already")
        if request.size_bytes > 1 << 32:
            refuse(context, "RESOURCE_EXHAUSTED", "BUDGET_EXCEEDED", "beyond the host's budget")
        address = request.address if request.HasField("address") else 0x300000
        content = bytes(min(request.size_bytes, 16 * MIB))  # A fake has little memory.
        region = self.state.add_region(card, name, content, address)
        region.size_bytes = request.size_bytes
        self.state.on_answer.get("CreateRegion", int)()
        return region

    def DeleteRegion(self, request: Any, context: Any) -> Any:
        region = self.region(request.name, context)
        if region.transfers_running_count or self.state.busy_answers:
            self.state.busy_answers = max(self.state.busy_answers - 1, 0)
            refuse(context, "FAILED_PRECONDITION", "REGION_BUSY", "a transfer uses it")
        del self.state.regions[request.name], self.state.memory[request.name]
        return memory_pb2.DeleteRegionResponse()

    def FillRegion(self, request: Any, context: Any) -> Any:
        region = self.region(request.name, context)
        length = request.length or region.size_bytes - request.offset
        byte = request.byte if request.WhichOneof("pattern") == "byte" else request.random_seed
        memory = self.state.memory[request.name]
        held = len(memory[request.offset : request.offset + length])  # A fake has little.
        memory[request.offset : request.offset + held] = bytes([byte % 256]) * held
        for done in (length // 2, length):
            yield memory_pb2.MemoryProgress(
                done_bytes=done, total_bytes=length, done=done == length
            )

    def ChecksumRegion(self, request: Any, context: Any) -> Any:
        region = self.region(request.name, context)
        length = request.length or region.size_bytes - request.offset
        data = bytes(self.state.memory[request.name][request.offset : request.offset + length])
        yield memory_pb2.MemoryProgress(done_bytes=length // 2, total_bytes=length)
        yield memory_pb2.MemoryProgress(
            done_bytes=length,
            total_bytes=length,
            done=True,
            sha256=hashlib.sha256(data).hexdigest(),
            crc32c=crc32c(data),
        )

    def WriteRegion(self, requests: Any, context: Any) -> Any:
        header = next(requests).header
        self.region(header.name, context)
        memory, position, crc = self.state.memory[header.name], header.offset, 0
        for request in requests:
            memory[position : position + len(request.data)] = request.data
            crc = crc32c(request.data, crc)
            position += len(request.data)
        written = position - header.offset
        if written != header.length:
            refuse(context, "ABORTED", "STREAM_SHORT", "the stream ended short")
        return memory_pb2.WriteRegionResponse(written_bytes=written, crc32c=crc)

    def ReadRegion(self, request: Any, context: Any) -> Any:
        data = self.state.memory[request.name][request.offset : request.offset + request.length]
        for start in range(0, len(data), 65536):
            yield memory_pb2.ReadRegionResponse(data=bytes(data[start : start + 65536]))

    def MapRegion(self, request: Any, context: Any) -> Any:
        region = self.region(request.name, context)
        if not self.state.mappable:
            context.abort(grpc.StatusCode.UNIMPLEMENTED, "no mapping here")
        return memory_pb2.MapRegionResponse(
            socket_path=self.broker_path,
            token=request.name,
            address=region.address,
            size_bytes=region.size_bytes,
        )


class TransferServicer(Servicer, transfer_pb2_grpc.TransferServiceServicer):
    def CreateTransfer(self, request: Any, context: Any) -> Any:
        memory = self.state.memory.get(request.source.region, b"")
        transfer = transfer_pb2.Transfer(
            name=f"transfers/7f3a{len(self.state.transfers) + 1:02x}",
            kind=request.kind or transfer_pb2.TRANSFER_KIND_WRITE,
            state=transfer_pb2.TRANSFER_STATE_QUEUED,
            source=request.source,
            target=request.target,
            total_bytes=request.length or len(memory) - request.source.offset,
            start_time=stamp(30),
        )
        self.state.transfers.insert(0, transfer)
        if self.state.transfer_end == "HANG":
            self.state.regions[request.target.region].transfers_running_count = 1
        self.state.on_answer.get("CreateTransfer", int)()
        return transfer

    def GetTransfer(self, request: Any, context: Any) -> Any:
        return self.find(self.state.transfers, request.name, "transfer", context)

    def ListTransfers(self, request: Any, context: Any) -> Any:
        found = [t for t in self.state.transfers if not request.active_only or t.state <= 3]
        transfers, token = self.page(found, request)
        return transfer_pb2.ListTransfersResponse(transfers=transfers, next_page_token=token)

    def WatchTransfer(self, request: Any, context: Any) -> Any:
        transfer = self.find(self.state.transfers, request.name, "transfer", context)
        if transfer.state >= transfer_pb2.TRANSFER_STATE_DONE:
            yield transfer
            return
        transfer.state = transfer_pb2.TRANSFER_STATE_RUNNING
        yield transfer
        if self.state.on_watch is not None:
            action, self.state.on_watch = self.state.on_watch, None
            action()
            while context.is_active():  # The daemon is going away; the hardware goes on.
                time.sleep(0.01)
        if self.state.transfer_end == "HANG":
            while context.is_active() and transfer.state < transfer_pb2.TRANSFER_STATE_DONE:
                time.sleep(0.01)
            yield transfer
            return
        self.finish(transfer)
        yield transfer

    def finish(self, transfer: Any) -> None:
        total = transfer.total_bytes
        transfer.links.append("cards/card0/links/oe0")
        transfer.end_time.CopyFrom(stamp(31))
        if self.state.transfer_end == "FAILED":
            transfer.state = transfer_pb2.TRANSFER_STATE_FAILED
            transfer.good_bytes = transfer.first_gap_offset = total // 2
            transfer.error = self.state.transfer_error
            transfer.error_detail = "no usable link for 30 s"
            return
        source = self.state.memory.get(transfer.source.region, bytearray())
        target = self.state.memory.get(transfer.target.region)
        data = source[transfer.source.offset : transfer.source.offset + total]
        if target is not None:
            target[transfer.target.offset : transfer.target.offset + len(data)] = data
        transfer.state = transfer_pb2.TRANSFER_STATE_DONE
        transfer.good_bytes = transfer.first_gap_offset = total
        transfer.wall_ms, transfer.wall_gbyte_per_s = 0.5, 2.097152
        transfer.modelled_us, transfer.modelled_pcie_us = 21.4, 18.9
        transfer.crc32c = crc32c(bytes(data))

    def CancelTransfer(self, request: Any, context: Any) -> Any:
        transfer = self.find(self.state.transfers, request.name, "transfer", context)
        transfer.state = transfer_pb2.TRANSFER_STATE_CANCELLED
        transfer.error = "CANCELLED"
        for region in self.state.regions.values():
            region.transfers_running_count = 0
        return transfer


class EventServicer(Servicer, event_pb2_grpc.EventServiceServicer):
    def ListEvents(self, request: Any, context: Any) -> Any:
        found = [
            e
            for e in self.state.events
            if e.severity >= request.min_severity
            and e.subject.startswith(request.subject)
            and (not request.kinds or e.kind in request.kinds)
            and e.time.ToNanoseconds() >= request.since_time.ToNanoseconds()
        ]
        events, token = self.page(found[::-1] if request.descending else found, request)
        return event_pb2.ListEventsResponse(
            events=events,
            next_page_token=token,
            newest_revision=self.state.events[-1].revision,
        )

    def WatchEvents(self, request: Any, context: Any) -> Any:
        if request.after_revision == 999:
            refuse(
                context, "OUT_OF_RANGE", "REVISION_TOO_OLD", "revision 999 is gone; begin at 1000"
            )
        after = (
            request.after_revision if request.HasField("after_revision") else len(self.state.events)
        )
        yield from (e for e in self.state.events if e.revision > after)
        refuse(context, "FAILED_PRECONDITION", "SCRIPT_ENDED", "the fake has no more events")


class HostServicer(Servicer, host_pb2_grpc.HostServiceServicer):
    def GetHost(self, request: Any, context: Any) -> Any:
        return host_pb2.Host(
            version="0.1.0",
            emulated=True,
            daemon_pid=4711,
            daemon_start_time=stamp(3),
            chassis_boot_id="9c3e55d1a7f00b42",
            chassis_pid=4700,
            chassis_start_time=stamp(0),
            chassis_attached=self.state.attached,
            hbm_budget_bytes=16 << 30,
            hbm_allocated_bytes=MIB + 8192,
            workers=[
                host_pb2.Worker(index=i, pid=4701 + i, alive=True, cards=[f"cards/card{i}"])
                for i in (0, 1)
            ],
            card_count=2,
            link_count=4,
            links_up_count=2,
            transfers_running_count=1,
            metrics_address=self.state.metrics_address,
            newest_event_revision=5,
        )


class Refusals(grpc.ServerInterceptor):  # type: ignore[misc, unused-ignore]
    """Refuses the methods that a test named, and notes every call."""

    def __init__(self, state: State) -> None:
        self.state = state

    def intercept_service(self, continuation: Any, details: Any) -> Any:
        method = details.method.rpartition("/")[2]
        self.state.calls.append(method)
        handler = continuation(details)
        if method not in self.state.refuse or handler is None:
            return handler
        status, reason, message = self.state.refuse[method]

        def no(request: Any, context: Any) -> Any:
            refuse(context, status, reason, message)

        if handler.response_streaming:
            make = grpc.unary_stream_rpc_method_handler
        elif handler.request_streaming:
            make = grpc.stream_unary_rpc_method_handler
        else:
            make = grpc.unary_unary_rpc_method_handler
        return make(no, handler.request_deserializer, handler.response_serializer)


class FakeDaemon:
    """Serves a State on a socket; may be stopped and followed by another on the same one."""

    def __init__(self, folder: Path, state: State) -> None:
        self.state = state
        self.socket = folder / "acceld.sock"
        self._broker: socket.socket | None = None
        self._memory_fd = -1

    def start(self) -> FakeDaemon:
        self._server: Any = grpc.server(ThreadPoolExecutor(8), interceptors=(Refusals(self.state),))
        memory = MemoryServicer(self.state)
        memory.broker_path = str(self.socket.parent / "memory.sock")
        for add, servicer in (
            (card_pb2_grpc.add_CardServiceServicer_to_server, CardServicer(self.state)),
            (link_pb2_grpc.add_LinkServiceServicer_to_server, LinkServicer(self.state)),
            (optics_pb2_grpc.add_OpticsServiceServicer_to_server, OpticsServicer(self.state)),
            (memory_pb2_grpc.add_MemoryServiceServicer_to_server, memory),
            (transfer_pb2_grpc.add_TransferServiceServicer_to_server, TransferServicer(self.state)),
            (event_pb2_grpc.add_EventServiceServicer_to_server, EventServicer(self.state)),
            (host_pb2_grpc.add_HostServiceServicer_to_server, HostServicer(self.state)),
            (
                fault_pb2_grpc.add_FaultServiceServicer_to_server,
                FaultServicer(self.state.faults, stamp(120), refuse),
            ),
            (
                health_pb2_grpc.add_HealthServiceServicer_to_server,
                HealthServicer(self.state.health, refuse),
            ),
            (
                diag_pb2_grpc.add_DiagServiceServicer_to_server,
                DiagServicer(self.state, stamp, refuse),
            ),
        ):
            add(servicer, self._server)
        self._server.add_insecure_port(f"unix:{self.socket}")
        self._server.start()
        if self.state.mappable:
            self._start_broker(memory.broker_path)
        return self

    def stop(self, grace_s: float | None = None) -> None:
        self._server.stop(grace_s).wait()
        if self._broker is not None:
            self._broker.close()
            os.close(self._memory_fd)
            self._broker = None

    def hbm(self, address: int, length: int) -> bytes:
        """What lies in the mapped HBM."""
        return os.pread(self._memory_fd, length, address)

    def _start_broker(self, path: str) -> None:
        """One memfd for all cards: regions of a fake may overlap, tests use one at a time."""
        self._memory_fd = os.memfd_create("hbm")
        os.ftruncate(self._memory_fd, 1 << 40)
        for name, content in self.state.memory.items():
            os.pwrite(self._memory_fd, content, self.state.regions[name].address)
        broker = self._broker = socket.socket(socket.AF_UNIX)
        Path(path).unlink(missing_ok=True)
        broker.bind(path)
        broker.listen()
        threading.Thread(target=self._hand_out, args=(broker,), daemon=True).start()

    def _hand_out(self, broker: socket.socket) -> None:
        while True:
            try:
                client, _ = broker.accept()
            except OSError:
                return
            with client:
                token = client.makefile().readline().strip()
                if token in self.state.regions:
                    socket.send_fds(client, [b"+"], [self._memory_fd])
                else:
                    client.sendall(b"-no such token")
