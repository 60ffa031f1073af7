"""Card profiles: the figures of a kind of card, read from `profiles/*.toml`."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import msgspec


class LaneType(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Optics and rate of one lane, both directions alike."""

    name: str
    modulation: str  # "nrz" or "pam4"
    symbol_rate_gbd: float
    line_rate_gbit_per_s: float
    mac_rate_gbit_per_s: float
    wavelength_nm: float
    wavelength_step_nm: float  # to the next lane's; 0 where each lane has a fibre of its own
    fec: str  # "none", "kr4" or "kp4"
    fec_interleave: int
    tx_power_dbm: float  # average launch power, typical
    tx_power_sigma_db: float  # spread between lanes
    tx_bias_ma: float
    extinction_ratio_db: float
    tdecq_db: float
    sensitivity_oma_dbm: float  # S0, for a perfect transmitter, at `ber_at_sensitivity`
    ber_at_sensitivity: float
    shot_over_thermal: float
    rin_over_thermal: float
    ber_floor: float
    rx_overload_dbm: float
    rx_damage_dbm: float
    los_assert_dbm: float
    los_deassert_dbm: float


class Latency(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One-way contributions of one end, and of the fibre."""

    mac_ns: float
    serdes_ns: float
    eo_ns: float
    oe_ns: float
    fec_ns: float
    fibre_ns_per_m: float
    hbm_ns: float


class Energy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    optical_pj_per_bit: float
    source: str


class Profile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Everything that cards of one kind share. Sources of the figures stand in the TOML."""

    name: str
    description: str
    hbm_gib: int
    hbm_type: str
    hbm_stacks: int
    hbm_gbyte_per_s: float
    bus_gbyte_per_s: float
    oes: int  # optical engines, each with one fibre port
    lanes_per_oe: int  # signal lines of the network module = oes * lanes_per_oe
    connector: str
    trace_loss_db: float  # network module to engine, at Nyquist
    lane: LaneType
    latency: Latency
    energy: Energy

    @property
    def signal_lines(self) -> int:
        return self.oes * self.lanes_per_oe

    @property
    def hbm_bytes(self) -> int:
        return self.hbm_gib << 30

    def port_gbit_per_s(self, lanes: int | None = None) -> float:
        width = self.lanes_per_oe if lanes is None else lanes
        return width * self.lane.mac_rate_gbit_per_s


@dataclass(frozen=True, slots=True)
class UnknownProfile(Exception):
    name: str
    known: tuple[str, ...]


def profile_names() -> tuple[str, ...]:
    folder = files(__package__) / "profiles"
    names = (file.name for file in folder.iterdir())
    return tuple(sorted(name.removesuffix(".toml") for name in names if name.endswith(".toml")))


@cache
def load_profile(name: str) -> Profile:
    """The shipped profile of that name. Raises UnknownProfile."""
    if name not in profile_names():
        raise UnknownProfile(name, profile_names())
    text = (files(__package__) / "profiles" / f"{name}.toml").read_text()
    return msgspec.convert(tomllib.loads(text), Profile)
