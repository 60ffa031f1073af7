"""Rules for a link, as seen from one end; and which of its two ends names a common cause."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import numpy as np

from acceld.health import lane
from acceld.health.history import S
from acceld.health.reasons import (
    ABSENT,
    BLAMES_PEER,
    CRITICAL,
    REASONS,
    TESTED,
    TRAINING,
    WARNING,
    reason,
)
from acceld.health.report import Capability, Health, Kind, Place, Reason, Standing, whole
from acceld.health.scene import LOST, RECENT_TEXT, Scene
from acceld.host.snapshot import PortSnapshot, down_reason
from accelhw.model import link as words
from accelhw.model.flag import LANE_FLAGS
from accelhw.model.link import DownReason
from accelhw.model.profile import load_profile

UNSTABLE_FALLS = 3  # lately
# Reasons that are one end's alone, whatever the far end says.
OWN = frozenset({"FEC_UNCORRECTABLE", "FEC_TAIL_GROWING"})
TX_FAULT = LANE_FLAGS.index("tx_fault")
TAIL_SHARE = 2 / 3  # of what the FEC can correct: codewords that need more are its tail


def place(port: PortSnapshot) -> Place:
    return Place(Kind.LINK, str(port.id))


def health(port: PortSnapshot, scene: Scene) -> Health:
    """A cause that both ends see is named at one of them."""
    found = reasons(port, scene)
    cause = named_elsewhere(port, found, scene)
    made = whole(place(port), tuple(found), (), cause, capability(port), standing(port))
    if cause is None:
        return made
    return replace(made, reasons=tuple(one for one in made.reasons if one.code in OWN))


def reasons(port: PortSnapshot, scene: Scene) -> list[Reason]:
    """Of this end by itself, whoever names them."""
    if port.info.fibre is None:
        return [reason("NO_FIBRE", ABSENT, place(port), "no fibre is plugged in")]
    if not port.state.carries_data:
        return [_down(port, scene)]
    found = [*_width(port, scene), *_mode(port, scene), *_wiring(port, scene)]
    return [*found, *_unstable(port, scene), *_fec(port, scene)]


# ---- which end -----------------------------------------------------------------------------------


def named_elsewhere(port: PortSnapshot, found: list[Reason], scene: Scene) -> Place | None:
    """Who names the trouble of this end, if it is not this end: a lost card, or the far end."""
    here = {one.code for one in found} - OWN
    far = scene.far(port.id) if here else None
    if far is None:
        return None
    if not port.state.carries_data and _is_wanted(port) and _is_lost(far, scene):
        return Place(Kind.CARD, far.id.card)
    there = {one.code for one in reasons(far, scene)} - OWN
    if not there:
        return None
    both_down = not port.state.carries_data and not far.state.carries_data
    if not both_down and here != there:
        return None
    return place(far) if _speaks(far) < _speaks(port) else None


def _speaks(port: PortSnapshot) -> tuple[int, str, int]:
    """Whose word comes first: an end with a broken laser or its own reason, before one that
    blames its peer; then the order of names, so that both ends agree on it."""
    code = port.reason.code
    if code is DownReason.ADMIN_DOWN or code is DownReason.CARD_RESET:
        rank = 0
    elif code is DownReason.TX_FAULT or _has_tx_fault(port):
        rank = 1
    elif code in BLAMES_PEER or code is DownReason.PEER_DOWN or code is DownReason.PEER_TEST:
        rank = 3
    else:
        rank = 2
    return rank, port.id.card, port.id.oe


def _has_tx_fault(port: PortSnapshot) -> bool:
    return bool(port.flags["active"].T[TX_FAULT].any())


def _is_lost(port: PortSnapshot, scene: Scene) -> bool:
    return scene.cards[port.id.card].state == LOST


def _is_wanted(port: PortSnapshot) -> bool:
    return bool(port.row["admin_up"])


# ---- down ----------------------------------------------------------------------------------------


def _down(port: PortSnapshot, scene: Scene) -> Reason:
    at, told = place(port), port.reason
    if not told.code:
        told = words.Reason(down_reason(scene.past(port.id).reason))
    far = scene.far(port.id)
    if not _is_wanted(port):
        told = words.Reason(DownReason.ADMIN_DOWN)
    elif far is not None and not _is_wanted(far):
        told = words.Reason(DownReason.PEER_DOWN)
    code, text, state = told.code, _why(port, told), CRITICAL
    past = scene.past(port.id)
    if code is DownReason.ADMIN_DOWN or (code is DownReason.PEER_DOWN and _is_switched_off(far)):
        state = ABSENT
    elif code in TESTED:
        state = TRAINING
    elif past.in_grace(scene.now.mono_ns):
        state = TRAINING
        text += f"; {past.grace_left_s(scene.now.mono_ns):.0f} s left to come up"
    else:
        text += f"; not up for {(scene.now.mono_ns - past.since_ns) / S:.0f} s"
    name = code.name if code else "LINK_DOWN"
    interface = port.info.fibre.interface if port.info.fibre else None
    action = told.next_action(str(port.id), interface or "") if code else ""
    return reason(name, state, at, text, action)


def _is_switched_off(far: PortSnapshot | None) -> bool:
    """A card that is reset says the same for a moment; of another host's, we know no better."""
    return far is None or not _is_wanted(far)


def _why(port: PortSnapshot, told: words.Reason) -> str:
    code = told.code
    meaning = REASONS[code.name].meaning.rstrip(".") if code else "it says no reason"
    text = f"{port.state.name}: {meaning[0].lower()}{meaning[1:]}"
    return f"{text}, {told.where}" if told.blamed else text


# ---- up, but ------------------------------------------------------------------------------------


def _in_grace(port: PortSnapshot, scene: Scene) -> bool:
    return scene.past(port.id).in_grace(scene.now.mono_ns)


def _width(port: PortSnapshot, scene: Scene) -> Iterator[Reason]:
    width, full = int(port.row["width"]), port.profile.data_lanes
    if width >= full:
        return
    out = [index for index in range(port.info.lanes) if not port.lanes[index]["used"]]
    known = {index: found for index in out if (found := lane.reasons(port, index))}
    text, action = f"carries data on {width} of {full} lanes", ""
    if known:
        told = (f"lane{index} {' '.join(r.code for r in its)}" for index, its in known.items())
        text += f": {', '.join(told)}"
        action = next(iter(known.values()))[0].next_action
    else:
        text += f"; left out: {_lane_list(out)}"
    state = TRAINING if _in_grace(port, scene) else WARNING
    yield reason("DEGRADED_WIDTH", state, place(port), text, action)


def _lane_list(lanes: list[int]) -> str:
    return ", ".join(f"lane{index}" for index in lanes[:8]) + (", ..." if len(lanes) > 8 else "")


def _mode(port: PortSnapshot, scene: Scene) -> Iterator[Reason]:
    mode, best = port.mode, port.profile.lane.modes[0]
    if mode is None or mode == best:
        return
    text = (
        f"runs with {mode.words} instead of {best.words}:"
        f" {port.capacity_gbit_per_s:g} of {port.profile.port_gbit_per_s():g} Gb/s"
    )
    state = TRAINING if _in_grace(port, scene) else WARNING
    yield reason("SLOWER_MODE", state, place(port), text)


def _wiring(port: PortSnapshot, scene: Scene) -> Iterator[Reason]:
    wired, peer = scene.wired_to(port.id), port.peer
    is_here = port.peer_chassis == scene.snapshot.boot_id
    if wired is None or peer is None or (peer == wired and is_here):
        return
    text = f"{peer} answers, not {wired}"
    yield reason("MISWIRED", WARNING, place(port), text)


def _unstable(port: PortSnapshot, scene: Scene) -> Iterator[Reason]:
    falls = sum(count for _, count in scene.past(port.id).flapped)
    if falls >= UNSTABLE_FALLS:
        text = f"failed {falls} times in {RECENT_TEXT}"
        yield reason("LINK_UNSTABLE", WARNING, place(port), text)


def _fec(port: PortSnapshot, scene: Scene) -> Iterator[Reason]:
    before = scene.history.before
    if before is None or port.id not in before.bins:
        return
    lost = int(port.row["fec_uncorrectable"]) - before.uncorrectable[port.id]
    if lost > 0:
        text = f"{lost} codewords beyond correction in {RECENT_TEXT}"
        yield reason("FEC_UNCORRECTABLE", WARNING, place(port), text)
        return
    limit = int(port.row["fec_t"])
    grown = port.row["fec_bins"].astype(np.int64) - before.bins[port.id].astype(np.int64)
    first = int(np.ceil(limit * TAIL_SHARE))
    tail = grown[first : limit + 1]
    if limit and tail.sum() > 0:
        most = first + int(np.flatnonzero(tail > 0)[-1])
        text = (
            f"{int(tail.sum())} codewords needed {first} or more of {limit} symbols corrected in"
            f" {RECENT_TEXT}, at worst {most}"
        )
        if lost_ratio := port.predicted_frame_loss:
            text += f"; {lost_ratio:.0e} of large frames are to be lost"
        yield reason("FEC_TAIL_GROWING", WARNING, place(port), text)


# ---- capability and standing ---------------------------------------------------------------------


def capability(port: PortSnapshot) -> Capability:
    return _capability(port.profile.name, port.info.lanes, port.info.fibre is not None)


@cache
def _capability(profile_name: str, lanes: int, fibre: bool) -> Capability:
    profile = load_profile(profile_name)
    return Capability(
        lanes,
        profile.data_lanes,
        profile.spare_lanes,
        tuple(str(mode) for mode in profile.lane.modes),
        profile.port_gbit_per_s(),
        fibre,
    )


def standing(port: PortSnapshot) -> Standing:
    mode = str(port.mode) if port.mode is not None and port.state.carries_data else ""
    return Standing(int(port.row["width"]), mode, port.capacity_gbit_per_s)
