"""Values to messages of accel.v1. Absent is absent: a figure without meaning is not set."""

from __future__ import annotations

from typing import Any

from google.protobuf.struct_pb2 import Struct

from accel.v1 import (
    card_pb2,
    event_pb2,
    host_pb2,
    link_pb2,
    memory_pb2,
    optics_pb2,
    transfer_pb2,
)
from acceld.errors import InvalidRequest
from acceld.host.eventkinds import action_of
from acceld.host.operations import Progress
from acceld.host.snapshot import (
    CardSnapshot,
    HostSnapshot,
    LaserSnapshot,
    PortSnapshot,
    WorkerSnapshot,
)
from acceld.records import Region, Slice, StoredEvent, Transfer
from acceld.service import names
from acceld.service.convert_flag import flags, thresholds
from acceld.service.fill import fill
from acceld.service.times import seconds as seconds
from acceld.service.times import timestamp as timestamp
from accelhw.model.flag import CARD_FLAGS, CARD_QUANTITIES, LANE_FLAGS, LANE_QUANTITIES
from accelhw.model.ids import BadAddress, LaneId, PortId
from accelhw.model.link import Reason, TrainingPhase
from accelhw.model.transfer import TransferError


def enum(value: int) -> Any:
    """Our enums count as those of the API do; the stubs of protobuf want it said."""
    return int(value)


def card(snapshot: CardSnapshot) -> card_pb2.Card:
    row, info, profile = snapshot.row, snapshot.facts.info, snapshot.facts.profile
    message = card_pb2.Card(
        name=names.card(snapshot.name),
        uid=info.uid,
        state=enum(row["state"]),
        profile=info.profile,
        description=profile.description,
        emulated=True,
        hbm_type=profile.hbm_type,
        hbm_bandwidth_gbyte_per_s=profile.hbm_gbyte_per_s,
        bus_bandwidth_gbyte_per_s=profile.bus_gbyte_per_s,
        oe_count=len(info.ports),
        capacity_gbit_per_s=sum(port.capacity_gbit_per_s for port in snapshot.ports),
        worker=info.worker,
        thresholds=thresholds(profile, CARD_QUANTITIES),
        flags=flags(CARD_FLAGS, snapshot.flags, all_of_them=True),
    )
    fill(message, snapshot, row)
    return message


def host(snapshot: HostSnapshot) -> host_pb2.Host:
    message = host_pb2.Host(
        version=snapshot.version,
        daemon_pid=snapshot.daemon_pid,
        chassis_boot_id=snapshot.boot_id,
        chassis_pid=snapshot.chassis_pid,
        hbm_allocated_bytes=snapshot.hbm_allocated_bytes,
        workers=[worker(one) for one in snapshot.workers],
        card_count=snapshot.counts.cards,
        link_count=snapshot.counts.links,
        links_up_count=snapshot.counts.links_up,
        metrics_address=snapshot.metrics_address,
    )
    fill(message, snapshot)
    return message


def worker(snapshot: WorkerSnapshot) -> host_pb2.Worker:
    message = host_pb2.Worker(index=snapshot.index, pid=snapshot.pid, cards=snapshot.cards)
    fill(message, snapshot)
    return message


def region(value: Region, transfers_running: int) -> memory_pb2.Region:
    return memory_pb2.Region(
        name=names.region(value.card, value.name),
        card=names.card(value.card),
        region_id=value.region_id,
        key=value.key,
        address=value.address,
        size_bytes=value.size,
        create_time=timestamp(value.created_ns),
        transfers_running_count=transfers_running,
    )


def progress(value: Progress) -> memory_pb2.MemoryProgress:
    return memory_pb2.MemoryProgress(
        done_bytes=value.done_bytes,
        total_bytes=value.total_bytes,
        done=value.is_done,
        sha256=value.sha256,
        crc32c=value.crc32c,
    )


def reason(value: Reason, port: PortSnapshot) -> link_pb2.LinkReason:
    interface = port.info.fibre.interface if port.info.fibre else None
    return link_pb2.LinkReason(
        code=value.code.name,
        lane=value.lane,
        lanes=[lane for lane in range(port.info.lanes) if value.blamed >> lane & 1],
        next_action=value.next_action(str(port.id), interface or ""),
    )


def link(port: PortSnapshot) -> link_pb2.Link:
    row, lane_type, fibre = port.row, port.profile.lane, port.info.fibre
    message = link_pb2.Link(
        name=names.link(port.id),
        state=enum(port.state),
        phase=TrainingPhase(int(row["phase"])).name,
        peer=names.link(port.peer) if port.peer else "",
        peer_chassis=port.peer_chassis,
        fitted_lanes=port.info.lanes,
        modulation=lane_type.modulation,
        fec=lane_type.fec,
        mode=str(port.mode or ""),
        reason=reason(port.reason, port),
        peer_reason=reason(port.peer_reason, port),
        epoch=int(row["epoch"]),
        fec_counters=link_pb2.LinkFec(bins=port.fec_bins),
    )
    if fibre is not None:
        message.fibre.CopyFrom(
            link_pb2.Fibre(
                name=fibre.name,
                transport=fibre.transport,
                length_m=fibre.length_m,
                mtu_bytes=fibre.mtu,
                interface=fibre.interface or "",
                netns=fibre.netns or "",
            )
        )
    fill(message, port, row)
    return message


def channel_map(snapshot: CardSnapshot) -> link_pb2.ChannelMap:
    channels = []
    for port in snapshot.ports:
        for index, row in enumerate(port.lanes):
            peer = int(row["peer_lane"])
            channels.append(
                link_pb2.Channel(
                    channel=port.channels[index],
                    signal_line=port.signal_lines[index],
                    oe=port.id.oe,
                    lane=index,
                    peer_lane=peer if peer >= 0 else None,
                    inverted=bool(row["inverted"]),
                    carries_data=bool(row["used"]),
                )
            )
    channels.sort(key=lambda channel: int(channel.channel))
    return link_pb2.ChannelMap(name=names.channel_map(snapshot.name), channels=channels)


def engine(port: PortSnapshot) -> optics_pb2.Engine:
    profile, lane_type, lanes = port.profile, port.profile.lane, port.lanes
    message = optics_pb2.Engine(
        name=names.engine(port.id),
        lane_type=lane_type.name,
        modulation=lane_type.modulation,
        fec=lane_type.fec,
        connector=profile.connector,
        symbol_rate_gbd=lane_type.symbol_rate_gbd,
        line_rate_gbit_per_s=lane_type.line_rate_gbit_per_s,
        energy_pj_per_bit=profile.energy.optical_pj_per_bit,
        trace_loss_db=profile.trace_loss_db,
        lanes_los_count=int((lanes["los"] != 0).sum()),
        lanes_lol_count=int((lanes["lol"] != 0).sum()),
        margin_min_db=port.margin_db_min,
        thresholds=thresholds(profile, LANE_QUANTITIES),
        external_lasers=[external_laser(laser) for laser in port.external_lasers],
    )
    fill(message, port, port.row)
    return message


def external_laser(laser: LaserSnapshot) -> optics_pb2.ExternalLaser:
    message = optics_pb2.ExternalLaser(index=laser.index, lanes=laser.lanes)
    fill(message, laser)
    return message


def lane(port: PortSnapshot, index: int) -> optics_pb2.Lane:
    row: Any = port.lanes[index]
    lane_type = port.profile.lane
    peer = int(row["peer_lane"])
    message = optics_pb2.Lane(
        name=names.lane(LaneId(port.id, index)),
        signal_line=port.signal_lines[index],
        channel=port.channels[index],
        wavelength_nm=lane_type.wavelength_nm + index * lane_type.wavelength_step_nm,
        peer_lane=peer if peer >= 0 else None,
        inverted=bool(row["inverted"]),
        flags=flags(LANE_FLAGS, port.flags[index]),
    )
    fill(message, port, row)
    return message


def event(value: StoredEvent) -> event_pb2.Event:
    detail = Struct()
    detail.update(value.detail)
    return event_pb2.Event(
        revision=value.revision,
        time=timestamp(value.time_ns),
        severity=enum(value.severity),
        kind=value.kind,
        subject=value.subject,
        message=value.message,
        detail=detail,
        reason=value.reason,
        cause=value.cause,
        peer=value.peer,
        count=value.count,
        first_time=timestamp(value.first_time_ns) if value.count > 1 else None,
        next_action=action_of(value),
    )


def region_slice(value: Slice) -> transfer_pb2.RegionSlice:
    return transfer_pb2.RegionSlice(
        region=names.region(value.card, value.region) if value.region else "",
        offset=value.offset,
        card=names.card(value.card),
        region_id=value.region_id,
    )  # The key stays here: whoever may see a transfer need not be one who may write.


def link_name(port: str) -> str:
    try:
        return names.link(PortId.parse(port))
    except BadAddress:
        return port


def slice_of(message: transfer_pb2.RegionSlice, field: str) -> Slice:
    """Raises InvalidRequest."""
    if message.region:
        if message.card or message.region_id or message.key:
            raise InvalidRequest(
                "SLICE_INVALID",
                f"{field}: give a region, or card, region_id and key, not both",
                field=field,
            )
        card_name, name = names.parse_region(message.region)
        return Slice(card_name, name, offset=message.offset)
    if not message.card:
        raise InvalidRequest(
            "SLICE_INVALID",
            f"{field} is missing; give its region, as cards/card0/regions/weights",
            field=field,
        )
    return Slice(
        names.parse_card(message.card),
        region_id=message.region_id,
        key=message.key,
        offset=message.offset,
    )


def transfer(value: Transfer) -> transfer_pb2.Transfer:
    status = value.status
    is_timed = status.wall_ns > 0
    return transfer_pb2.Transfer(
        name=names.transfer(value.id),
        kind=enum(status.kind),
        state=enum(status.state),
        source=region_slice(value.source),
        target=region_slice(value.target),
        total_bytes=status.total_bytes,
        good_bytes=status.good_bytes,
        first_gap_offset=status.first_gap_offset,
        links=[link_name(port) for port in status.links],
        start_time=timestamp(status.started_ns or value.created_ns),
        end_time=timestamp(status.ended_ns),
        wall_ms=status.wall_ns / 1e6 if is_timed else None,
        wall_gbyte_per_s=status.good_bytes / status.wall_ns if is_timed else None,
        modelled_us=status.modelled_ns / 1e3 if status.modelled_ns else None,
        modelled_pcie_us=status.modelled_pcie_ns / 1e3 if status.modelled_pcie_ns else None,
        crc32c=status.crc32c,
        replayed_frames_total=status.replayed_frames,
        error=status.error.name if status.error is not TransferError.NONE else "",
        error_detail=status.error_detail,
    )
