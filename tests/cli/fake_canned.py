"""What the fake daemon's hardware is at the start: a canned message for each thing."""

from __future__ import annotations

from typing import Any

from accel.v1 import (
    card_pb2,
    event_pb2,
    flag_pb2,
    link_pb2,
    optics_pb2,
    transfer_pb2,
)

EPOCH_S = 1_790_000_000  # 2026-09-21T14:13:20Z, when this chassis was switched on
MIB = 1 << 20


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
            transfers_cancelled_total=2 - 2 * index,
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
