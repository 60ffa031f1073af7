"""Card profiles: the figures of a kind of card, read from `profiles/*.toml`."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import msgspec

from accelhw.model.link import LinkMode

# Line rate over payload rate, with 256b/257b transcoding: IEEE 802.3 clauses 91 and 119.
FEC_OVERHEAD = {"none": 1.0, "kr4": 1.03125, "kp4": 1.0625}


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
    fallbacks: tuple[str, ...] = ()  # further modes that a link may train in: "kr4", "kr4/2"

    @property
    def modes(self) -> tuple[LinkMode, ...]:
        """What such a lane can do, its own mode first."""
        return (LinkMode(self.fec), *(LinkMode.parse(text) for text in self.fallbacks))

    def gbit_per_s(self, mode: LinkMode) -> float:
        """What a lane carries in this mode, without the code's own symbols."""
        return self.line_rate_gbit_per_s / FEC_OVERHEAD[mode.fec] / mode.slowdown


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


class Laser(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where the light comes from, one laser a lane or one for a group of lanes."""

    cooled: bool  # held at `temp_c`; else so much warmer than the case
    temp_c: float
    tau_s: float  # how fast it takes on another temperature
    cooler_reach_k: float  # below the case
    bias_limit_ma: float  # of the driver; power control raises bias up to it
    lanes_per_laser: int
    power_db_per_k: float  # what power control misses as the laser leaves its temperature
    wavelength_nm_per_k: float


class Ring(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A microring modulator with its heater, one a lane."""

    ghz_per_k: float
    fwhm_ghz: float
    reach_k: float  # change of case temperature that the heater can answer, either way
    heater_mw: float  # at `case_temp_c`
    heater_mw_per_k: float
    heater_mw_max: float
    case_temp_c: float


class Thermal(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Heat of the network module and of HBM: a resistance to the air and a time constant each."""

    inlet_c: float
    case_k_per_w: float
    case_tau_s: float
    case_idle_w: float  # lasers off; lit lanes add their rate times `energy.optical_pj_per_bit`
    hbm_k_per_w: float
    hbm_tau_s: float
    hbm_idle_w: float
    hbm_pj_per_bit: float
    full_load_gbyte_per_s: float  # moved on this host, counts as HBM at its full rate
    supply_v: float  # of the optics


Thresholds = tuple[float, float, float, float]  # high alarm, high warning, low warning, low alarm


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
    laser: Laser
    thermal: Thermal
    thresholds: dict[str, Thresholds]  # by the watched columns of the status tables
    ring: Ring | None = None  # None: another kind of modulator
    spare_lanes: int = 0  # of lanes_per_oe: lit, and used only in place of a lane that fails

    @property
    def data_lanes(self) -> int:
        """Lanes that carry data on a port at full width."""
        return self.lanes_per_oe - self.spare_lanes

    @property
    def signal_lines(self) -> int:
        return self.oes * self.lanes_per_oe

    @property
    def hbm_bytes(self) -> int:
        return self.hbm_gib << 30

    def port_gbit_per_s(self, lanes: int | None = None, mode: LinkMode | None = None) -> float:
        """Of so many lanes, or at full width; in this mode, or the lanes' own."""
        width = self.data_lanes if lanes is None else lanes
        rate = self.lane.mac_rate_gbit_per_s if mode is None else self.lane.gbit_per_s(mode)
        return width * rate


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
