"""Makes docs/path-comparison.md from the model of paths: `path_comparison.py FILE`."""

from __future__ import annotations

import sys
from pathlib import Path

from accelhw.optics.paths import FRAME_BYTES, Way, compare

SIZES = ((64, "64 bytes"), (4096, "4 KiB"), (1 << 20, "1 MiB"), (1 << 30, "1 GiB"))
LENGTHS = (1.0, 10.0, 100.0)
LENGTH_M = 10.0

HEAD = f"""# From card to card: four ways compared

Made from `daemon/accelhw/optics/paths.py` by `make reference`; do not edit. `accelctl bench path
--compare pcie --bytes 1G --length 10` gives the same for any size and length; no daemon is needed.

The claim behind cards that talk by light without FEC is a trade: many slow NRZ lanes over short
traces keep enough margin to do without correction, and so save its time, its power and its silicon.
PAM4 at 100 Gb/s a lane cannot: its receivers are specified at a BER of 2.4e-4, where one frame of
64 bytes in eight would be lost without KP4, and of 64 KiB every one. This page puts figures to it,
and says of each where it is from.

Time is from the first byte leaving one network module (or PCIe endpoint) to the last byte in the
other; HBM is left out, since it is the same on all ways. Energy is that of the links alone. Frames
are of {FRAME_BYTES} bytes; lost is after FEC, before any retry. Loss is that of the fibre at
0.35 dB/km and two connectors of 0.25 dB.
"""

TAIL = """
## What to make of it

- For small messages latency decides. At 10 m of fibre light without FEC needs less than half of the
  time of PCIe through one switch, though PCIe is counted over a fraction of a metre, which is as
  far as it goes; 49 of the 144 ns are the flight through the glass.
- KP4 alone costs 63 ns on every message: it must gather codewords before it can decode. The DSPs of
  pluggable modules and the long traces to them cost more than twice that again.
- For large messages only the rate counts, and rates are choices: 512 Gb/s are 16 lanes of 32 Gb/s,
  400 Gb/s four lanes of 100. More engines make the optical ways wider; PCIe ends at 16 lanes.
- Energy follows the same order: what is not corrected, equalised and retimed needs no power.
- Without FEC the link layer must mend what noise spoils: at 1e-12 and 512 Gb/s that is one frame
  in two seconds, which replay hides. At the 1e-18 of healthy lanes it is one in three weeks.

## What this is not

Latencies marked as choices, and those of E/O parts and SerDes, are mid-range figures of published
ranges, not measurements of a product. PCIe through host memory, which most systems without
peer-to-peer use, adds at least 700 ns and is not shown. PCIe 6 corrects in about 2 ns what its PAM4
loses, at twice the rate. Dispersion is not modelled; a way beyond its reach is marked.
"""


def page() -> str:
    out = [HEAD]
    for nbytes, words in SIZES:
        out += [f"\n## {words}, {LENGTH_M:g} m\n", *_table(compare(nbytes, LENGTH_M))]
    out += ["\n## 64 bytes over other lengths\n", *_lengths()]
    out += ["\n## Every figure\n", f"For 64 bytes over {LENGTH_M:g} m."]
    for way in compare(64, LENGTH_M):
        out += [f"\n### {way.description}\n", *_parts(way)]
    return "\n".join(out) + "\n" + TAIL


def _table(ways: tuple[Way, ...]) -> list[str]:
    lines = [
        "| way | time | GB/s | energy | FEC | BER before FEC | frames lost |",
        "| --- | ---: | ---: | ---: | --- | ---: | ---: |",
    ]
    for way in ways:
        beyond = "" if way.within_reach else f" (reaches {way.reach_m:g} m)"
        lines.append(
            f"| {way.description}{beyond} | {time(way.time_ns)} | {way.rate_gbyte_per_s:.1f}"
            f" | {energy(way.energy_j)} | {way.fec} | {way.pre_fec_ber:.1e}"
            f" | {way.frame_loss_ratio:.1e} |"
        )
    return lines


def _lengths() -> list[str]:
    by_length = [compare(64, length) for length in LENGTHS]
    lines = [
        "| way | " + " | ".join(f"{length:g} m" for length in LENGTHS) + " |",
        "| --- |" + " ---: |" * len(LENGTHS),
    ]
    for row in zip(*by_length, strict=True):
        cells = [time(way.time_ns) if way.within_reach else "out of reach" for way in row]
        lines.append(f"| {row[0].description} | " + " | ".join(cells) + " |")
    return lines


def _parts(way: Way) -> list[str]:
    lines = ["| part | figure | source |", "| --- | ---: | --- |"]
    lines += [f"| {p.name} | {p.value:.1f} ns | {p.source} |" for p in way.latency]
    lines.append(f"| **sum** | **{way.time_ns:.0f} ns** | |")
    lines += [f"| energy, {p.name} | {p.value:g} pJ/bit | {p.source} |" for p in way.energy]
    lines.append(f"| BER before FEC | {way.pre_fec_ber:.1e} | {way.ber_source} |")
    return lines


def time(ns: float) -> str:
    for unit, factor in (("ns", 1.0), ("us", 1e-3), ("ms", 1e-6)):
        if ns * factor < 1000.0 or unit == "ms":
            break
    return f"{ns * factor:.3g} {unit}"


def energy(joules: float) -> str:
    for unit, factor in (("nJ", 1e9), ("uJ", 1e6), ("mJ", 1e3)):
        if joules * factor < 1000.0 or unit == "mJ":
            break
    return f"{joules * factor:.3g} {unit}"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page())
