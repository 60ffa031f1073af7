"""What is called unwell, once, with its reason; and what never is."""

from __future__ import annotations

import pytest

from acceld.health.history import CHASSIS_NS, RETRAIN_NS, START_NS
from acceld.health.reasons import REASONS
from acceld.health.report import Health, HealthState, Kind
from acceld.health.values import health_samples
from accelhw.interface import tables
from accelhw.model.flag import CARD_FLAGS, CONDITIONS, LANE_FLAGS, LEVELS
from accelhw.model.link import NEXT_ACTION, DownReason, LinkState

from .conftest import EPOCH_NS, LANES, Rack, at, named, of_link

RETRAIN_S, START_S, CHASSIS_S = (ns // 10**9 for ns in (RETRAIN_NS, START_NS, CHASSIS_NS))


def test_a_host_in_order_is_healthy_and_an_empty_port_is_absent(rack: Rack) -> None:
    report = rack.settled()
    assert (report.state, named(report)) == (HealthState.HEALTHY, [])
    assert of_link(report, "card0/oe1").state is HealthState.ABSENT
    assert [one.code for one in of_link(report, "card0/oe1").reasons] == ["NO_FIBRE"]


def test_capability_stands_beside_what_is_in_use(rack: Rack) -> None:
    rack.settled()
    rack.up("card0/oe0", width=6)
    link = of_link(rack.pass_s(1))
    assert link.capability is not None
    assert link.standing is not None
    assert (link.capability.lanes_fitted, link.standing.lanes_used) == (LANES, 6)
    assert (link.capability.gbit_per_s, link.standing.gbit_per_s) == (800.0, 600.0)
    assert link.capability.modes == ("kp4", "kp4/2")


# ---- one cause, once -----------------------------------------------------------------------------


def test_a_cut_fibre_is_one_reason_of_one_link_and_both_ends_are_critical(rack: Rack) -> None:
    rack.settled()
    rack.cut()
    report = rack.pass_s(RETRAIN_S + 1)
    assert named(report) == [("CRITICAL", "SIGNAL_LOST", "card0/oe0")]
    far = of_link(report, "card1/oe0")
    assert (far.state, far.reasons, str(far.cause)) == (HealthState.CRITICAL, (), "card0/oe0")
    lane = at(report, Kind.LANE, "card1/oe0/lane5")
    assert (lane.state, lane.reasons, str(lane.cause)) == (HealthState.CRITICAL, (), "card0/oe0")
    assert report.state is HealthState.CRITICAL
    card = at(report, Kind.CARD, "card1")  # Nothing is wrong with it but that link.
    assert (card.state, str(card.cause)) == (HealthState.CRITICAL, "card0/oe0")


def test_the_end_that_blames_its_peer_leaves_the_word_to_it(rack: Rack) -> None:
    rack.settled()
    rack.down("card0/oe0", DownReason.PEER_SILENT)
    rack.down("card1/oe0", DownReason.CDR_NO_LOCK, LinkState.FAILED, lane=3)
    report = rack.pass_s(RETRAIN_S + 1)
    assert named(report) == [("CRITICAL", "CDR_NO_LOCK", "card1/oe0")]
    assert ", lane 3;" in of_link(report, "card1/oe0").reasons[0].text


def test_a_lost_card_hides_its_links_and_those_that_end_on_it(rack: Rack) -> None:
    rack.settled()
    rack.card("card0", state=tables.CARD_FELL_OFF_BUS, ready_since_ns=0)
    rack.down("card0/oe0", DownReason.CARD_RESET, LinkState.DOWN)
    rack.down("card1/oe0", DownReason.SIGNAL_LOST)
    report = rack.pass_s(RETRAIN_S + 1)
    assert named(report) == [("CRITICAL", "CARD_LOST", "card0")]
    assert str(of_link(report, "card1/oe0").cause) == "card0"
    assert at(report, Kind.LANE, "card0/oe0/lane1").state is HealthState.CRITICAL


def test_a_failed_laser_is_named_where_it_is_not_where_its_light_is_missed(rack: Rack) -> None:
    rack.settled()
    rack.up("card0/oe0", width=6)
    rack.up("card1/oe0", width=6)
    rack.flag("card1/oe0", "tx_fault", 7)
    rack.flag("card1/oe0", "tx_power_low_alarm", 7)
    rack.dark("card0/oe0", 7)
    report = rack.pass_s(1)
    assert named(report) == [("WARNING", "DEGRADED_WIDTH", "card1/oe0")]
    (one,) = of_link(report, "card1/oe0").reasons
    assert "6 of 8 lanes: lane7 TX_FAULT" in one.text
    assert one.next_action == "a laser of this port failed; replace the engine"


def test_a_lane_in_trouble_on_a_working_link_is_named_itself(rack: Rack) -> None:
    rack.settled()
    rack.lanes["card0/oe0"]["rx_power_dbm"][2] = -7.1
    rack.flag("card0/oe0", "rx_power_low_warning", 2)
    rack.flag("card0/oe0", "pre_fec_ber_high_warning", 2)
    report = rack.pass_s(1)
    assert named(report) == [("WARNING", "RX_POWER_LOW", "card0/oe0/lane2")]
    (one,) = report.all_reasons()[:1]
    assert one.text == "receives -7.10 dBm, below the warning level of -6.40 dBm"
    assert (report.state, of_link(report).state) == (HealthState.WARNING, HealthState.HEALTHY)


def test_trouble_of_most_lanes_is_the_engines(rack: Rack) -> None:
    rack.settled()
    rack.flag("card0/oe0", "rx_power_low_warning", *range(6))
    report = rack.pass_s(1)
    assert named(report) == [("WARNING", "RX_POWER_LOW", "card0/oe0")]
    engine = at(report, Kind.OE, "card0/oe0")
    assert "on 6 of 8 lanes; lane0: receives" in engine.reasons[0].text
    lane = at(report, Kind.LANE, "card0/oe0/lane4")
    assert (lane.state, lane.cause) == (HealthState.WARNING, engine.place)
    assert at(report, Kind.LANE, "card0/oe0/lane7").state is HealthState.HEALTHY


def test_a_hot_card_explains_its_hot_lasers(rack: Rack) -> None:
    rack.settled()
    rack.card("card0", case_temp_c=72.0)
    rack.card_flag("card0", "case_temp_high_warning")
    rack.flag("card0/oe0", "laser_temp_high_warning")
    report = rack.pass_s(1)
    assert named(report) == [("WARNING", "CASE_TEMP_HIGH", "card0")]
    assert "72.0 degC, above the warning level of 70.0" in report.all_reasons()[0].text


# ---- what was wanted never alarms ----------------------------------------------------------------


def never_unwell(rack: Rack, seconds: int) -> Health:
    for _ in range(seconds):
        report = rack.pass_s(1)
        assert named(report) == []
    return report


def test_a_boot_trains_in_peace_and_then_must_be_up(rack: Rack) -> None:
    rack.mono_ns = 5 * 10**9  # the cards came up five seconds ago
    rack.cut()
    report = never_unwell(rack, START_S - 6)
    assert of_link(report).state is HealthState.TRAINING
    assert named(rack.pass_s(2)) == [("CRITICAL", "SIGNAL_LOST", "card0/oe0")]


def test_a_boot_that_succeeded_leaves_no_grace_for_what_comes_later(rack: Rack) -> None:
    rack.mono_ns = 2 * 10**9
    never_unwell(rack, RETRAIN_S + 1)
    rack.cut()
    assert named(rack.pass_s(RETRAIN_S + 1)) == [("CRITICAL", "SIGNAL_LOST", "card0/oe0")]


def test_a_far_card_in_reset_is_no_end_that_was_switched_off(rack: Rack) -> None:
    rack.settled()
    rack.card("card0", state=tables.CARD_RESETTING, ready_since_ns=0)
    rack.down("card0/oe0", DownReason.CARD_RESET, LinkState.DOWN)
    rack.down("card1/oe0", DownReason.PEER_DOWN)
    assert of_link(never_unwell(rack, 5), "card1/oe0").state is HealthState.TRAINING


def test_a_hundred_restarts_of_a_card_raise_nothing(rack: Rack) -> None:
    rack.settled()
    for _ in range(100):
        # The far end may see the light go before anybody knows why.
        rack.down("card1/oe0", DownReason.SIGNAL_LOST)
        rack.rows["card1/oe0"]["flaps"] += 1
        never_unwell(rack, 1)
        rack.card("card0", state=tables.CARD_RESETTING, ready_since_ns=0)
        rack.down("card0/oe0", DownReason.CARD_RESET, LinkState.DOWN)
        never_unwell(rack, 2)
        rack.card("card0", state=tables.CARD_READY, ready_since_ns=EPOCH_NS + rack.mono_ns)
        rack.down("card0/oe0", DownReason.NO_SIGNAL)
        never_unwell(rack, 8)
        rack.up("card0/oe0")
        rack.up("card1/oe0")
        never_unwell(rack, 1)
    assert rack.look().state is HealthState.HEALTHY


def test_a_commanded_training_has_its_time(rack: Rack) -> None:
    rack.settled()
    rack.down("card0/oe0", DownReason.RETRAIN_COMMANDED, LinkState.TRAINING)
    rack.down("card1/oe0", DownReason.SIGNAL_LOST, LinkState.TRAINING)
    never_unwell(rack, START_S - 2)
    rack.down("card0/oe0", DownReason.BER_TOO_HIGH, LinkState.FAILED, lane=1)
    report = rack.pass_s(4)
    assert named(report) == [("CRITICAL", "BER_TOO_HIGH", "card0/oe0")]


def test_a_link_switched_off_is_absent_at_both_ends_for_ever_and_has_time_when_on_again(
    rack: Rack,
) -> None:
    rack.settled()
    rack.rows["card0/oe0"]["admin_up"] = 0
    rack.down("card0/oe0", DownReason.ADMIN_DOWN, LinkState.DOWN)
    rack.down("card1/oe0", DownReason.SIGNAL_LOST)
    report = never_unwell(rack, START_S + 10)
    assert report.state is HealthState.HEALTHY
    assert of_link(report).state is of_link(report, "card1/oe0").state is HealthState.ABSENT
    assert of_link(report).reasons[0].code == "ADMIN_DOWN"
    assert at(report, Kind.LANE, "card1/oe0/lane0").state is HealthState.ABSENT
    rack.rows["card0/oe0"]["admin_up"] = 1
    rack.down("card0/oe0", DownReason.NO_SIGNAL)
    assert of_link(never_unwell(rack, START_S - 2)).state is HealthState.TRAINING


def test_a_test_of_a_link_may_last(rack: Rack) -> None:
    rack.settled()
    rack.down("card0/oe0", DownReason.TEST)
    rack.down("card1/oe0", DownReason.PEER_TEST)
    assert of_link(never_unwell(rack, 100)).state is HealthState.TRAINING


def test_a_blip_that_trains_again_by_itself_is_no_alarm(rack: Rack) -> None:
    rack.settled()
    rack.cut()
    never_unwell(rack, RETRAIN_S - 2)
    rack.up("card0/oe0")
    rack.up("card1/oe0")
    assert never_unwell(rack, 1).state is HealthState.HEALTHY


def test_blips_again_and_again_are(rack: Rack) -> None:
    rack.settled()
    for _ in range(3):
        rack.rows["card0/oe0"]["flaps"] += 1
        rack.rows["card1/oe0"]["flaps"] += 1
        rack.pass_s(20)
    report = rack.look()
    assert named(report) == [("WARNING", "LINK_UNSTABLE", "card0/oe0")]
    assert rack.pass_s(300).state is HealthState.HEALTHY


def test_a_restarted_daemon_gives_no_new_grace_to_a_link_that_was_long_down(rack: Rack) -> None:
    rack.cut()  # The first look ever, and the cards came up long ago.
    assert named(rack.pass_s(RETRAIN_S + 1)) == [("CRITICAL", "SIGNAL_LOST", "card0/oe0")]


def test_a_chassis_has_a_moment_to_restart(rack: Rack) -> None:
    rack.settled()
    rack.attached = False
    assert never_unwell(rack, CHASSIS_S - 1).state is HealthState.TRAINING
    assert named(rack.pass_s(2)) == [("CRITICAL", "CHASSIS_GONE", "host")]


# ---- the rest of the inputs ----------------------------------------------------------------------


def test_codewords_beyond_correction_and_near_it(rack: Rack) -> None:
    rack.settled()
    rack.rows["card0/oe0"]["fec_bins"][0][12] += 7
    report = rack.pass_s(1)
    assert named(report) == [("WARNING", "FEC_TAIL_GROWING", "card0/oe0")]
    assert "7 codewords needed 10 or more of 15" in report.all_reasons()[0].text
    rack.rows["card0/oe0"]["fec_uncorrectable"] += 2
    assert named(rack.pass_s(1)) == [("WARNING", "FEC_UNCORRECTABLE", "card0/oe0")]
    assert rack.pass_s(340).state is HealthState.HEALTHY


def test_old_counts_are_not_news(rack: Rack) -> None:
    rack.rows["card0/oe0"]["fec_uncorrectable"] = 9
    rack.card("card0", ecc_sbe=5000)
    rack.restarts = 4
    assert named(rack.settled()) == []


def test_a_slower_mode_and_another_peer(rack: Rack) -> None:
    rack.settled()
    for port in ("card0/oe0", "card1/oe0"):
        rack.rows[port]["mode"] = 6  # kp4/2
    assert named(rack.pass_s(1)) == [("WARNING", "SLOWER_MODE", "card0/oe0")]
    rack.up("card0/oe0")
    rack.up("card1/oe0")
    rack.rows["card0/oe0"]["peer_oe"] = 1
    assert named(rack.pass_s(1)) == [("WARNING", "MISWIRED", "card0/oe0")]


def test_memory_with_bad_rows(rack: Rack) -> None:
    rack.settled()
    rack.card("card0", rows_pending=2, ecc_sbe=150)
    rack.card("card1", remap_failed=1, ecc_dbe=9)
    assert sorted(named(rack.pass_s(1))) == [
        ("CRITICAL", "HBM_REMAP_FAILED", "card1"),
        ("WARNING", "HBM_ERRORS_RISING", "card0"),
        ("WARNING", "HBM_ROWS_PENDING", "card0"),
    ]


def test_one_row_is_told_as_one(rack: Rack) -> None:
    rack.settled()
    rack.card("card0", rows_pending=1)
    (one,) = rack.pass_s(1).all_reasons()[:1]
    assert one.text == "1 row of HBM waits for a reset to be remapped"


def test_slowed_memory_is_told_once(rack: Rack) -> None:
    rack.settled()
    rack.card("card0", hbm_throttled=1, hbm_temp_c=96.0)
    assert named(rack.pass_s(1)) == [("WARNING", "HBM_THROTTLED", "card0")]
    rack.card_flag("card0", "hbm_temp_high_alarm")
    rack.card_flag("card0", "hbm_temp_high_warning")
    assert named(rack.pass_s(1)) == [("CRITICAL", "HBM_TEMP_HIGH", "card0")]


def test_a_worn_laser_goes_before_its_bias(rack: Rack) -> None:
    rack.settled()
    rack.lanes["card0/oe0"]["laser_wear_ratio"][3] = 0.85
    rack.flag("card0/oe0", "tx_bias_high_warning", 3)
    assert named(rack.pass_s(1)) == [("WARNING", "LASER_WORN", "card0/oe0/lane3")]
    rack.lanes["card0/oe0"]["laser_wear_ratio"][3] = 0.97
    assert named(rack.pass_s(1)) == [("CRITICAL", "LASER_WORN", "card0/oe0/lane3")]


def test_silent_workers_make_their_cards_unsure(rack: Rack) -> None:
    rack.settled()
    rack.silent = True
    report = rack.pass_s(12)
    assert named(report) == [("WARNING", "TELEMETRY_STALE", "worker0")]
    assert at(report, Kind.CARD, "card1").cause == at(report, Kind.WORKER, "worker0").place
    assert named(rack.pass_s(60)) == [("CRITICAL", "TELEMETRY_STALE", "worker0")]


def test_a_restarted_worker_and_a_store_without_a_disk(rack: Rack) -> None:
    rack.settled()
    rack.restarts = 1
    rack.durable = False
    assert sorted(named(rack.pass_s(1))) == [
        ("WARNING", "STORE_NOT_DURABLE", "daemon"),
        ("WARNING", "WORKER_RESTARTED", "worker0"),
    ]


def test_what_is_injected_is_not_looked_at(rack: Rack) -> None:
    import ast
    import inspect

    from acceld.health import card, engine, history, judge, lane, link, scene

    for module in (card, engine, history, judge, lane, link, scene):
        tree = ast.parse(inspect.getsource(module))
        names = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        assert "faults" not in names


# ---- the table -----------------------------------------------------------------------------------


def test_every_reason_of_a_link_and_every_flag_is_in_the_table() -> None:
    for reason in DownReason:
        assert reason is DownReason.NONE or reason.name in REASONS
    for flag in (*LANE_FLAGS, *CARD_FLAGS):
        level = next((level for level in LEVELS if flag.endswith(level)), "")
        side = level.partition("_")[0]
        code = flag if flag in CONDITIONS else f"{flag.removesuffix(f'_{level}')}_{side}"
        if code != "pre_fec_ber_low":  # Too few errors trouble nobody; no profile has a level.
            assert code.upper() in REASONS


def test_next_actions_agree_with_those_of_the_link(rack: Rack) -> None:
    rack.settled()
    for reason in DownReason:
        if reason is DownReason.NONE:
            continue
        rack.down("card0/oe0", reason, LinkState.FAILED)
        rack.rows["card0/oe0"]["admin_up"] = reason is not DownReason.ADMIN_DOWN
        (one,) = of_link(rack.look()).reasons or of_link(rack.look(), "card1/oe0").reasons
        wanted = NEXT_ACTION[reason].format(port="card0/oe0", interface="card0-oe0")
        assert (one.code, one.next_action) == (reason.name, wanted)


def test_every_reason_has_a_state_that_the_table_allows(rack: Rack) -> None:
    rack.settled()
    rack.cut()
    rack.card("card0", rows_pending=2)
    for report in (rack.look(), rack.pass_s(10)):
        for one in report.all_reasons():
            assert one.state in REASONS[one.code].states
            assert one.place.kind in REASONS[one.code].kinds
            assert one.next_action


# ---- numbers for a scrape ------------------------------------------------------------------------


def test_samples_are_of_each_object_but_lanes_only_where_they_are_the_cause(rack: Rack) -> None:
    rack.settled()
    rack.flag("card0/oe0", "rx_power_low_warning", 2)
    samples = {(s.kind, s.subject): s for s in health_samples(rack.pass_s(1))}
    lane = samples["lane", "card0/oe0/lane2"]
    assert (lane.value, lane.reasons) == (2, ("RX_POWER_LOW",))
    assert samples["host", ""].value == 2
    assert samples["link", "card0/oe0"].value == 0
    assert ("link", "card0/oe1") not in samples  # absent
    assert sum(kind == "lane" for kind, _ in samples) == 1
    rack.cut()
    cut = {(s.kind, s.subject): s for s in health_samples(rack.pass_s(10))}
    assert not any(kind == "lane" for kind, _ in cut)
    assert (cut["link", "card1/oe0"].value, cut["link", "card1/oe0"].reasons) == (3, ())
    rack.restarts += 1
    assert "WORKER_RESTARTED" in health_samples(rack.pass_s(1))[0].reasons


@pytest.mark.parametrize("state", list(HealthState))
def test_what_is_absent_never_counts_for_the_whole(state: HealthState) -> None:
    from acceld.health.report import worst

    wanted = HealthState.HEALTHY if state is HealthState.ABSENT else state
    assert worst((state, HealthState.ABSENT)) is wanted
