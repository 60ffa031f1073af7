"""What two ends have in common: whether they can train at all, and in which mode."""

from __future__ import annotations

from accelhw.link.config import TrainerConfig
from accelhw.model.link import MODES, DownReason, LinkMode, Reason
from accelhw.wire.training import TrainingMessage


def difference(config: TrainerConfig, message: TrainingMessage) -> Reason | None:
    """Why these two cannot train, or None."""
    ours, theirs = (
        (each.lanes, each.spare_lanes, each.line_rate_mbit_per_s, each.modulation)
        for each in (config, message)
    )
    if ours != theirs:
        code = DownReason.INCOMPATIBLE_PEER
    elif not config.mode_set & message.modes:
        code = DownReason.NO_COMMON_MODE
    else:
        return None
    here = _text(*ours, config.mode_set)
    there = _text(*theirs, message.modes)
    return Reason(code, None, f"here {here}, {message.sender} has {there}")


def chosen_mode(config: TrainerConfig, tried: int, message: TrainingMessage) -> LinkMode | None:
    """The best mode that both can do and neither has failed in; after all failed, the best."""
    common = config.mode_set & message.modes
    untried = common & ~(tried | message.tried)
    return next((mode for mode in MODES if (untried or common) >> mode.number & 1), None)


def best_mode(config: TrainerConfig, message: TrainingMessage) -> LinkMode | None:
    """What they would use if nothing ever failed."""
    common = config.mode_set & message.modes
    return next((mode for mode in MODES if common >> mode.number & 1), None)


def has_other_mode(config: TrainerConfig, tried: int, message: TrainingMessage) -> bool:
    return bool(config.mode_set & message.modes & ~(tried | message.tried))


def _text(lanes: int, spare: int, rate: int, modulation: str, modes: int) -> str:
    named = ", ".join(str(mode) for mode in MODES if modes >> mode.number & 1)
    spares = f" ({spare} spare)" if spare else ""
    return f"{lanes}{spares} x {rate / 1000:g} Gb/s {modulation} with fec {named}"
