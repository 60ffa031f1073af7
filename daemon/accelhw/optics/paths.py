"""Ways from one card's HBM to another's, compared: time, energy and errors before correction.

The claim behind optical I/O without FEC, in figures. Each part of each way has its number and the
source of it; nothing here depends on a running card, so `python -m accelhw.optics.paths` prints
the comparison by itself.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from accelhw.model.latency import (
    PCIE5_X16_GBYTE_PER_S,
    PCIE_ENDPOINT_NS,
    PCIE_SWITCH_NS,
)
from accelhw.model.profile import Profile, load_profile
from accelhw.optics import ber, budget, fec

FIBRE_DB_PER_KM = 0.35
CONNECTORS = 2
CONNECTOR_DB = 0.25
FRAME_BYTES = 4096
PCIE_REACH_M = 0.4  # of board, with its budget of 36 dB at 16 GHz
DR_REACH_M = 500.0  # IEEE 802.3 DR4 and DR8
OIO_REACH_M = 100.0  # by choice; loss alone would allow more
LENGTH_M_MAX = 100_000.0
BYTES_MAX = 1 << 60

HOST_SERDES_EXTRA_NS = 24.0
MODULE_DSP_NS = 60.0
PLUGGABLE_PJ_PER_BIT = 18.8
PLUGGABLE_GBIT_PER_S = 400.0
PCIE_PJ_PER_BIT = 6.0
PCIE_LINKS = 2
PCIE_BER = 1e-12


@dataclass(frozen=True, slots=True)
class Part:
    """A share of a way's time or energy, and where its figure comes from."""

    name: str
    value: float  # ns, or pJ/bit
    source: str


@dataclass(frozen=True, slots=True)
class Way:
    """One way, for given bytes and length."""

    name: str
    description: str
    fec: str
    latency: tuple[Part, ...]  # ns; the last part is the time on the wire
    energy: tuple[Part, ...]  # pJ/bit
    rate_gbyte_per_s: float
    rate_source: str
    time_ns: float
    energy_j: float
    pre_fec_ber: float
    ber_source: str
    frame_loss_ratio: float  # of FRAME_BYTES, after FEC and before any retry
    reach_m: float
    within_reach: bool

    @property
    def latency_ns(self) -> float:
        """Without the time on the wire."""
        return sum(part.value for part in self.latency[:-1])


def compare(nbytes: int, length_m: float) -> tuple[Way, ...]:
    """All ways for the same bytes and length. Raises ValueError on what cannot be."""
    if not 1 <= nbytes <= BYTES_MAX:
        raise ValueError(f"{nbytes} bytes; use 1 to {BYTES_MAX}")
    if not (math.isfinite(length_m) and 0.0 <= length_m <= LENGTH_M_MAX):
        raise ValueError(f"{length_m} m; use 0 to {LENGTH_M_MAX:g}")
    return (
        _pcie(nbytes, length_m),
        _optical(
            "pluggable",
            "pluggable PAM4 + KP4, module with DSP, 400 Gb/s",
            load_profile("dr8"),
            nbytes,
            length_m,
            module=True,
        ),
        _optical("cpo", "co-packaged PAM4 + KP4, 400 Gb/s", load_profile("dr8"), nbytes, length_m),
        _optical(
            "oio",
            "optical I/O, NRZ without FEC, 512 Gb/s",
            load_profile("oio"),
            nbytes,
            length_m,
        ),
    )


def _pcie(nbytes: int, length_m: float) -> Way:
    endpoint = "published 60 to 150 ns (pcie-bench, SIGCOMM 2018; vendor data)"
    latency = (
        Part("endpoint", PCIE_ENDPOINT_NS, endpoint),
        Part("switch", PCIE_SWITCH_NS, "published 100 to 250 ns a hop (the same)"),
        Part("endpoint", PCIE_ENDPOINT_NS, endpoint),
    )
    energy = tuple(
        Part(
            "PHY of a link",
            PCIE_PJ_PER_BIT,
            "published 5 to 8 pJ/bit; the switch's core is left out",
        )
        for _ in range(PCIE_LINKS)
    )
    return _way(
        "pcie",
        "PCIe 5.0 x16 through one switch",
        "none",
        latency,
        energy,
        PCIE5_X16_GBYTE_PER_S,
        "32 GT/s x 16 lanes, 128b/130b, 256 B payload with 24 B overhead a packet",
        nbytes,
        PCIE_BER,
        "PCI Express 5.0: at most 1e-12 at the receiver; LCRC and replay mend the rest",
        float(fec.frame_loss_without_fec(PCIE_BER, FRAME_BYTES)),
        PCIE_REACH_M,
        length_m,
    )


def _optical(
    name: str,
    description: str,
    profile: Profile,
    nbytes: int,
    length_m: float,
    *,
    module: bool = False,
) -> Way:
    times, lane = profile.latency, profile.lane
    mac = "design choice of this emulator; 20 to 80 ns are built"
    serdes = "extra-short reach, published 3 to 12 ns"
    host = Part("SerDes", times.serdes_ns, serdes)
    if module:
        total_ns = times.serdes_ns + HOST_SERDES_EXTRA_NS
        host = Part("SerDes, long reach", total_ns, "published 15 to 50 ns at 112 Gb/s")
    dsp = [Part("module DSP", MODULE_DSP_NS, "published 30 to 100 ns")] if module else []
    there = [Part("MAC", times.mac_ns, mac), host, *dsp]
    code = fec.CODES[lane.fec]
    decoder = "none needed"
    if code is not None:
        decoder = "25.6 ns to gather two codewords, about 37 ns to decode (802.3dj estimate)"
    latency = (
        *there,
        Part("E/O", times.eo_ns, "analogue, published 0.5 to 5 ns for both ends"),
        Part("fibre", length_m * times.fibre_ns_per_m, "group index 1.4676 at 1310 nm"),
        Part("O/E", times.oe_ns, "analogue, as E/O"),
        *reversed(there[1:]),
        Part("FEC", times.fec_ns, decoder),
        Part("MAC", times.mac_ns, mac),
    )
    energy = Part("optics", profile.energy.optical_pj_per_bit, profile.energy.source)
    if module:
        energy = Part("module", PLUGGABLE_PJ_PER_BIT, "14 to 16 W for 800 Gb/s (Broadcom, Axiom)")
    gbit_per_s = PLUGGABLE_GBIT_PER_S if code is not None else profile.port_gbit_per_s()
    rate_source = (
        f"{gbit_per_s / lane.mac_rate_gbit_per_s:g} lanes of {lane.mac_rate_gbit_per_s:g} Gb/s"
    )
    loss_db = budget.loss_db(length_m, FIBRE_DB_PER_KM, CONNECTORS, CONNECTOR_DB)
    margin_db, errors = lane_ber(profile, loss_db)
    lost = (
        float(fec.frame_loss_without_fec(errors, FRAME_BYTES))
        if code is None
        else float(
            fec.frame_loss(fec.log_uncorrectable(errors, code), FRAME_BYTES, lane.fec_interleave)
        )
    )
    return _way(
        name,
        description,
        lane.fec,
        latency,
        (energy,),
        gbit_per_s / 8.0,
        rate_source,
        nbytes,
        errors,
        f"typical lane behind {loss_db:.2f} dB: {margin_db:.2f} dB of margin, Q from thermal, shot"
        " and laser noise",
        lost,
        DR_REACH_M if code is not None else OIO_REACH_M,
        length_m,
    )


def lane_ber(profile: Profile, loss_db: float) -> tuple[float, float]:
    """Margin and BER of a typical lane behind so much loss."""
    lane = profile.lane
    received_dbm = lane.tx_power_dbm - loss_db
    margin_db = float(
        budget.margin_db(
            received_dbm, lane.extinction_ratio_db, lane.tdecq_db, lane.sensitivity_oma_dbm
        )
        - budget.overload_penalty_db(received_dbm, lane.rx_overload_dbm)
    )
    reference = ber.q_of_ber(lane.ber_at_sensitivity, lane.modulation)
    q = ber.q_of_margin(margin_db, reference, lane.shot_over_thermal, lane.rin_over_thermal)
    return margin_db, min(float(ber.ber_of_q(q, lane.modulation)) + lane.ber_floor, ber.DARK_BER)


def _way(
    name: str,
    description: str,
    code: str,
    latency: tuple[Part, ...],
    energy: tuple[Part, ...],
    rate_gbyte_per_s: float,
    rate_source: str,
    nbytes: int,
    errors: float,
    ber_source: str,
    frame_loss: float,
    reach_m: float,
    length_m: float,
) -> Way:
    wire = Part("bytes over rate", nbytes / rate_gbyte_per_s, rate_source)
    latency = (*latency, wire)
    return Way(
        name=name,
        description=description,
        fec=code,
        latency=latency,
        energy=energy,
        rate_gbyte_per_s=rate_gbyte_per_s,
        rate_source=rate_source,
        time_ns=sum(part.value for part in latency),
        energy_j=nbytes * 8e-12 * sum(part.value for part in energy),
        pre_fec_ber=errors,
        ber_source=ber_source,
        frame_loss_ratio=frame_loss,
        reach_m=reach_m,
        within_reach=length_m <= reach_m,
    )


def main(arguments: Sequence[str]) -> int:
    """Prints the comparison as JSON; status 2 on what cannot be."""
    parser = argparse.ArgumentParser(prog="python -m accelhw.optics.paths")
    parser.add_argument("--bytes", type=int, required=True, dest="nbytes")
    parser.add_argument("--length", type=float, required=True, metavar="METRES")
    chosen = parser.parse_args(arguments)
    try:
        ways = compare(chosen.nbytes, chosen.length)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    print(json.dumps([asdict(way) | {"latency_ns": way.latency_ns} for way in ways]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
