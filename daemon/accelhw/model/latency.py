"""How long a card would need for a copy, by light and over PCIe. Constants: docs/fidelity.md."""

from __future__ import annotations

from accelhw.model.link import LinkMode
from accelhw.model.profile import Profile

PCIE5_X16_GBYTE_PER_S = 57.614  # 64 raw, 128b/130b, 256 B payload with 24 B overhead a packet
PCIE_ENDPOINT_NS = 100.0  # each end; published 60 to 150
PCIE_SWITCH_NS = 130.0  # one switch between the cards; published 100 to 250
HBM_NS = 120.0  # as in the profiles, so that both ways start and end in HBM


CODEWORD_BITS = {"none": 0, "kr4": 5280, "kp4": 5440}
FEC_DECODE_NS = 37.0  # once a codeword is there


def fec_ns(profile: Profile, lanes: int, mode: LinkMode) -> float:
    """To gather and decode a codeword. In a mode that is not the profile's own, worked out."""
    if mode.fec == profile.lane.fec:
        return profile.latency.fec_ns * mode.slowdown
    if mode.fec == "none":
        return 0.0
    gbit_per_s = lanes * profile.lane.line_rate_gbit_per_s / mode.slowdown
    return CODEWORD_BITS[mode.fec] / gbit_per_s + FEC_DECODE_NS


def one_way_ns(
    profile: Profile, length_m: float, lanes: int = 0, mode: LinkMode | None = None
) -> float:
    """Network module to network module, without serialisation. Sum of optics and fibre."""
    latency = profile.latency
    return (
        2 * latency.mac_ns
        + 2 * latency.serdes_ns
        + latency.eo_ns
        + length_m * latency.fibre_ns_per_m
        + latency.oe_ns
        + (latency.fec_ns if mode is None else fec_ns(profile, lanes, mode))
    )


def modelled_ns(
    profile: Profile, nbytes: int, lanes: int, length_m: float, mode: LinkMode | None = None
) -> int:
    """HBM to HBM by light over so many lanes (of one or more links together), all in one mode.

    The slowest of lanes, bus and HBM sets the pace. Raises ValueError without a lane.
    """
    if lanes < 1 or nbytes < 0:
        raise ValueError(f"{lanes=} {nbytes=}")
    gbyte_per_s = min(
        profile.port_gbit_per_s(lanes, mode) / 8,
        profile.bus_gbyte_per_s,
        profile.hbm_gbyte_per_s,
    )
    fixed_ns = 2 * profile.latency.hbm_ns + one_way_ns(profile, length_m, lanes, mode)
    return round(fixed_ns + nbytes / gbyte_per_s)


def modelled_pcie_ns(nbytes: int) -> int:
    """HBM to HBM over PCIe 5.0 x16 through one switch, peer to peer."""
    if nbytes < 0:
        raise ValueError(f"{nbytes=}")
    fixed = 2 * HBM_NS + 2 * PCIE_ENDPOINT_NS + PCIE_SWITCH_NS
    return round(fixed + nbytes / PCIE5_X16_GBYTE_PER_S)
