"""The status tables: one row per worker, card, port, lane and flag in shared memory.

Each row has a single writer, the worker that owns the card (the chassis for WORKER rows, and for
cards whose worker is gone). A writer makes `seq` of the CARD row odd while it writes any row of
that card, and even again when done; a reader copies and tries again if `seq` was odd or moved
(a sequence lock). Counters never step back: a restarted worker goes on from the row's values.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from accelhw.model.flag import CARD_FLAGS, LANE_FLAGS

MAGIC = 0xACCE1D04
HEADER_BYTES = 64

WORKER = np.dtype(
    [
        ("pid", "u4"),
        ("alive", "u1"),
        ("_pad", "u1", 3),
        ("restarts", "u8"),
        ("beat_ns", "u8"),  # monotonic clock of the last loop turn, at least once a second
        ("tick_overruns", "u8"),
    ]
)
ECC_ROWS = 512  # of HBM, that can be remapped
CARD = np.dtype(
    [
        ("seq", "u8"),
        ("state", "u1"),  # CardState
        ("_pad", "u1", 3),
        ("worker", "u4"),
        ("resets", "u8"),
        ("ready_since_ns", "u8"),  # wall clock; 0 when not ready
        ("bus_read_bytes", "u8"),  # HBM to network module or to the host copy engine
        ("bus_written_bytes", "u8"),
        ("case_temp_c", "f8"),  # of the network module and its engines
        ("hbm_temp_c", "f8"),
        ("supply_v", "f8"),  # of the optics
        ("power_w", "f8"),  # optics and HBM
        ("ecc_sbe", "u8"),  # HBM: single-bit errors, corrected
        ("ecc_dbe", "u8"),  # double-bit errors, detected
        ("rows_remapped", "u8"),  # rows that a spare one stands in for
        ("rows_pending", "u4"),  # to be remapped at the next reset
        ("remap_failed", "u1"),  # a bank had no spare row left
        ("hbm_refresh_ratio", "u1"),  # 1, and 2 above 85 degC
        ("hbm_throttled", "u1"),  # slowed down above 95 degC
        ("_pad1", "u1"),
        ("ecc_rows", "u4", ECC_ROWS),  # rows of HBM that had an uncorrectable error
        ("ecc_row_states", "u1", ECC_ROWS),  # what became of each; 0: no such row
    ]
)
FEC_BINS = 16
PORT = np.dtype(
    [
        ("state", "u1"),  # LinkState
        ("phase", "u1"),  # TrainingPhase
        ("admin_up", "u1"),
        ("reason", "u1"),  # DownReason
        ("reason_lane", "i2"),  # -1: none
        ("peer_reason", "u1"),
        ("_pad0", "u1"),
        ("peer_reason_lane", "i2"),
        ("width", "u2"),  # lanes that carry data
        ("peer_oe", "i2"),  # -1: unknown
        ("_pad1", "u2"),
        ("epoch", "u4"),
        ("peer_chassis", "S16"),
        ("peer_card", "S32"),
        ("up_since_ns", "u8"),  # wall clock; 0 when not up
        ("training_ns", "u8"),  # how long the last successful training took
        ("rtt_ns", "u8"),  # measured in training, on this host
        ("trainings", "u8"),  # successful
        ("training_failures", "u8"),
        ("downs", "u8"),  # times it left UP or DEGRADED
        ("tx_frames", "u8"),
        ("tx_bytes", "u8"),  # octets on the interface, all frames
        ("rx_frames", "u8"),
        ("rx_bytes", "u8"),
        ("tx_payload_bytes", "u8"),  # HBM bytes sent the first time
        ("rx_payload_bytes", "u8"),  # HBM bytes accepted
        ("replayed_frames", "u8"),
        ("acks_sent", "u8"),
        ("acks_received", "u8"),
        ("nacks_sent", "u8"),
        ("nacks_received", "u8"),
        ("crc_errors", "u8"),  # header or payload checksum differed
        ("malformed_frames", "u8"),  # ours by EtherType, but no frame of ours
        ("foreign_frames", "u8"),  # another EtherType
        ("stale_frames", "u8"),  # of another epoch
        ("duplicate_frames", "u8"),
        ("missing_frames", "u8"),  # gaps seen in the sequence
        ("replay_timeouts", "u8"),
        ("tx_stalls", "u8"),  # times the interface or the credits held data back
        ("in_flight_frames", "u4"),
        ("credit_frames", "u4"),
        ("fec_codewords", "u8"),  # received while the link was up, at the emulated line rate
        ("fec_corrected_bits", "u8"),
        ("fec_corrected_symbols", "u8"),
        ("fec_uncorrectable", "u8"),
        ("fec_bins", "u8", FEC_BINS),  # codewords with so many corrected symbols
        ("fec_lock_losses", "u8"),  # three uncorrectable codewords in a row
        ("fec_t", "u1"),  # symbols that it corrects: bins 0 to fec_t count; 0: no FEC at all
        ("mode", "u1"),  # place among accelhw.model.link.MODES, from 1 on; 0: not known yet
        ("_pad2", "u1", 6),
        ("recoveries", "u8"),  # troubles that a link came through without going down
        ("recovery_failures", "u8"),  # those that took it down
        ("flaps", "u8"),  # times that light or errors failed it, recovered from, damped or not
        ("flaps_damped", "u8"),  # those after which it was held down until it was quiet
        ("fallbacks", "u8"),  # trainings that failed and were repeated in a slower mode
        ("equaliser_requests", "u8"),  # to the far transmitters, over all lanes and trainings
        ("reason_lanes", "u8"),  # a mask: every lane that the reason is about
    ]
)
LANE = np.dtype(
    [
        ("tx_power_dbm", "f8"),
        ("rx_power_dbm", "f8"),  # -40.0 is the register's floor: dark
        ("tx_bias_ma", "f8"),
        ("margin_db", "f8"),
        ("q", "f8"),
        ("pre_fec_ber", "f8"),
        ("rx_bits", "f8"),  # bits that passed the receiver, idle or not
        ("pre_fec_errors", "u8"),  # bit errors drawn for those bits
        ("fec_corrected_symbols", "u8"),  # symbols of this lane that FEC corrected
        ("los_count", "u8"),
        ("lol_count", "u8"),
        ("peer_lane", "i2"),  # far Tx lane that arrives here; -1: unknown
        ("inverted", "u1"),
        ("tx_on", "u1"),
        ("los", "u1"),
        ("lol", "u1"),
        ("used", "u1"),  # carries data now
        (
            "fitted_margin",
            "u1",
        ),  # 1 when margin_db, q, snr_db and pre_fec_ber have light behind them
        ("snr_db", "f8"),
        ("laser_temp_c", "f8"),
        ("laser_wear_ratio", "f8"),  # how much of the way to its bias limit the laser has gone
        ("tec_current_ratio", "f8"),  # of the cooler's limit; nan: a laser without a cooler
        ("heater_mw", "f8"),  # of the ring modulator; nan: another kind of modulator
    ]
)

# A flag: a watched quantity at a level, or a condition; accelhw.model.flag names them.
FLAG = np.dtype(
    [
        ("active", "u1"),  # as it is now
        ("latched", "u1"),  # was active since it was last cleared by command
        ("_pad", "u1", 6),
        ("count", "u8"),  # changes, on and off alike
        ("first_set_ns", "u8"),  # wall clock; 0: never
        ("last_set_ns", "u8"),
        ("last_clear_ns", "u8"),
    ]
)
CARD_STATES = ("UNKNOWN", "READY", "RESETTING", "FELL_OFF_BUS")
CARD_UNKNOWN, CARD_READY, CARD_RESETTING, CARD_FELL_OFF_BUS = range(4)


def _layout(rows: tuple[int, int, int, int]) -> tuple[tuple[np.dtype[np.void], int], ...]:
    """Row type and number of rows of each table, in their order."""
    workers, cards, ports, lanes = rows
    return (
        (WORKER, workers),
        (CARD, cards),
        (PORT, ports),
        (LANE, lanes),
        (FLAG, lanes * len(LANE_FLAGS)),
        (FLAG, cards * len(CARD_FLAGS)),
    )


def table_bytes(rows: tuple[int, int, int, int]) -> int:
    """Size of the shared memory for so many worker, card, port and lane rows."""
    return HEADER_BYTES + sum(dtype.itemsize * count for dtype, count in _layout(rows))


@dataclass(slots=True)
class Tables:
    """The tables over one mapping. Rows are numpy records; writers write them in place."""

    worker: NDArray[np.void]
    card: NDArray[np.void]
    port: NDArray[np.void]
    lane: NDArray[np.void]
    lane_flag: NDArray[np.void]  # a row per lane, a column per name of LANE_FLAGS
    card_flag: NDArray[np.void]  # a row per card, a column per name of CARD_FLAGS
    _memory: mmap.mmap

    @classmethod
    def attach(cls, fd: int, rows: tuple[int, int, int, int], writable: bool) -> Tables:
        """Map the tables behind `fd`. Raises ValueError if it holds something else."""
        size = table_bytes(rows)
        access = mmap.ACCESS_WRITE if writable else mmap.ACCESS_READ
        memory = mmap.mmap(fd, size, access=access)
        magic = np.frombuffer(memory, "u4", 1)
        if writable and magic[0] == 0:
            magic[0] = MAGIC
        if magic[0] != MAGIC:
            raise ValueError("the shared memory holds no status tables of this version")
        arrays = []
        offset = HEADER_BYTES
        for dtype, count in _layout(rows):
            arrays.append(np.frombuffer(memory, dtype, count, offset))
            offset += count * dtype.itemsize
        worker, card, port, lane, lane_flag, card_flag = arrays
        lane_flag = lane_flag.reshape(len(lane), len(LANE_FLAGS))
        card_flag = card_flag.reshape(len(card), len(CARD_FLAGS))
        return cls(worker, card, port, lane, lane_flag, card_flag, memory)

    @contextmanager
    def writing(self, card_row: int) -> Iterator[None]:
        """Hold the card's sequence lock. A writer that died inside left it odd; that is mended."""
        seq = self.card["seq"]
        seq[card_row] += 1 + (int(seq[card_row]) & 1)
        try:
            yield
        finally:
            seq[card_row] += 1

    def copy_card(
        self, card_row: int, ports: slice, lanes: slice, attempts: int = 1000
    ) -> tuple[NDArray[np.void], NDArray[np.void], NDArray[np.void]]:
        """A consistent copy of a card's row, its port rows and its lane rows.

        A writer killed while it held the lock leaves it odd; after `attempts` the copy is returned
        as it stands, since nobody will change it until the worker is back.
        """
        for _ in range(attempts):
            before = int(self.card["seq"][card_row])
            card = self.card[card_row : card_row + 1].copy()
            port = self.port[ports].copy()
            lane = self.lane[lanes].copy()
            if not before & 1 and int(self.card["seq"][card_row]) == before:
                break
        return card, port, lane

    def copy_flags(
        self, card_row: int, lanes: slice, attempts: int = 1000
    ) -> tuple[NDArray[np.void], NDArray[np.void]]:
        """A consistent copy of the flags of a card, one-dimensional, and of some of its lanes."""
        for _ in range(attempts):
            before = int(self.card["seq"][card_row])
            card = self.card_flag[card_row].copy()
            lane = self.lane_flag[lanes].copy()
            if not before & 1 and int(self.card["seq"][card_row]) == before:
                break
        return card, lane
