"""What one end of a link is and can do."""

from __future__ import annotations

from dataclasses import dataclass, field

from accelhw.link.equaliser import Taps, best_taps
from accelhw.model.link import LinkMode, PeerId
from accelhw.model.profile import Profile


@dataclass(frozen=True, slots=True)
class TrainerConfig:
    me: PeerId
    lanes: int
    spare_lanes: int  # of these; full width is without them
    line_rate_mbit_per_s: int  # of one lane, at its own symbol rate
    modulation: str
    modes: tuple[LinkMode, ...]  # the lanes' own first
    credit_frames: int
    trace_loss_db: float
    best_taps: tuple[Taps, ...]  # per lane: what its trace would need; only its light tells
    mode_set: int = field(init=False)  # a mask of mode numbers

    def __post_init__(self) -> None:
        modes = sum(1 << mode.number for mode in self.modes)
        object.__setattr__(self, "mode_set", modes)

    @classmethod
    def of(cls, me: PeerId, profile: Profile, credit_frames: int) -> TrainerConfig:
        lane, lanes = profile.lane, profile.lanes_per_oe
        return cls(
            me=me,
            lanes=lanes,
            spare_lanes=profile.spare_lanes,
            line_rate_mbit_per_s=round(lane.line_rate_gbit_per_s * 1000),
            modulation=lane.modulation,
            modes=lane.modes,
            credit_frames=credit_frames,
            trace_loss_db=profile.trace_loss_db,
            best_taps=tuple(
                best_taps(profile.trace_loss_db, f"{me}/lane{i}") for i in range(lanes)
            ),
        )

    @property
    def all_lanes(self) -> int:
        return (1 << self.lanes) - 1

    @property
    def data_lanes(self) -> int:
        return self.lanes - self.spare_lanes
