"""How fast do bytes go from HBM to HBM over one veth pair, beside one iperf3 TCP stream?

Two processes, one per network namespace, each with one card's data path and a minimal loop; the
link is forced up. iperf3 runs over a veth pair of the same kind, between the same namespaces, in
turn with ours, so that both meet the same machine. Needs root (or a user namespace) and iperf3.

    python benchmarks/hbm_copy.py [--mib 512] [--repeats 5] [--mtu 65535] [--json]
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import select
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

CLONE_NEWNET = 0x40000000
REGION, KEY = 1, 7
CARDS = ("card0", "card1")


# ---- one card: runs in a process of its own ------------------------------------------------------


def run_card(side: int, hbm_fd: int, size_bytes: int, mtu: int, buffer_bytes: int) -> None:
    """Serve the card; each line on stdin starts one WRITE of everything, its report is a line."""
    from accelhw.device.dataport import DataPort
    from accelhw.device.dma import TransferEngine
    from accelhw.device.hbm import Hbm
    from accelhw.interface.messages import StartTransfer
    from accelhw.model.link import PeerId
    from accelhw.model.region import MemoryWindow
    from accelhw.model.transfer import TransferKind
    from accelhw.transport.packet import PacketTransport, open_packet

    clock = time.monotonic_ns
    engine = TransferEngine(CARDS[side], Hbm(hbm_fd, size_bytes))
    engine.register_window(MemoryWindow(REGION, KEY, 0, size_bytes))
    transport = PacketTransport(open_packet(f"accelb{side}", buffer_bytes), mtu)
    port = DataPort(f"{CARDS[side]}/oe0", transport, engine)
    port.link_up(1, PeerId("0" * 16, CARDS[1 - side], 0), port.credit_frames, clock())
    poll = select.epoll()
    poll.register(transport.fileno(), select.EPOLLIN)
    poll.register(0, select.EPOLLIN)
    print(json.dumps({"credit_frames": port.credit_frames}), flush=True)
    started, count, more = 0, 0, False
    while True:
        deadlines = [d for d in (port.next_deadline_ns(), engine.next_deadline_ns()) if d]
        wait_s = max(0.0, (min(deadlines) - clock()) / 1e9) if deadlines else None
        for fd, _ in poll.poll(0 if more else wait_s):
            if fd == 0:
                if not os.read(0, 100):
                    return
                count += 1
                started = clock()
                engine.start(
                    StartTransfer(
                        count, str(count), TransferKind.WRITE, CARDS[side], REGION, 0, size_bytes,
                        CARDS[1 - side], REGION, KEY, 0,
                    ),
                    started,
                )  # fmt: skip
        now_ns = clock()
        port.receive(now_ns)
        port.on_deadline(now_ns)
        more = port.pump(now_ns)
        more |= engine.pump(now_ns)
        for event in engine.take_events():
            if event.transfer.ended_ns or event.kind in ("TRANSFER_DONE", "TRANSFER_FAILED"):
                report = {
                    "seconds": (clock() - started) / 1e9,
                    "kind": event.kind,
                    "crc32c": event.transfer.crc32c,
                    "replayed": event.transfer.replayed_frames,
                }
                engine.acknowledge(event.transfer.transfer_id)
                print(json.dumps(report), flush=True)


# ---- the whole: namespaces, both contestants, the table ------------------------------------------


def sh(command: str) -> str:
    return subprocess.run(
        command, shell=True, check=True, capture_output=True, text=True
    ).stdout.strip()


class Bench:
    def __init__(self, size_bytes: int, mtu: int, buffer_bytes: int) -> None:
        self.size_bytes = size_bytes
        # The far namespace lives as long as this process does, and takes its interfaces along.
        self.far = subprocess.Popen(["unshare", "-n", "cat"], stdin=subprocess.PIPE)
        while os.readlink(f"/proc/{self.far.pid}/ns/net") == os.readlink("/proc/self/ns/net"):
            time.sleep(0.01)
        self.enter = ["nsenter", "-t", str(self.far.pid), "-n"]
        for near, distant in (("accelb0", "accelb1"), ("accelt0", "accelt1")):
            sh(
                f"ip link add {near} mtu {mtu} type veth peer name {distant} mtu {mtu}"
                f" netns {self.far.pid}"
            )
            sh(f"ip link set {near} up")
            sh(f"{' '.join(self.enter)} ip link set {distant} up")
        sh("ip addr add 10.9.0.1/24 dev accelt0")
        sh(f"{' '.join(self.enter)} ip addr add 10.9.0.2/24 dev accelt1")
        self.server = subprocess.Popen(
            [*self.enter, "iperf3", "-s"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self.hbm = [os.memfd_create(card) for card in CARDS]
        block = os.urandom(1 << 20)
        for fd in self.hbm:
            os.ftruncate(fd, size_bytes)
        for offset in range(0, size_bytes, len(block)):
            os.pwrite(self.hbm[0], block, offset)
            os.pwrite(self.hbm[1], bytes(len(block)), offset)
        self.cards = []
        for side, fd in enumerate(self.hbm):
            arguments = [str(n) for n in (side, fd, size_bytes, mtu, buffer_bytes)]
            command = [sys.executable, __file__, "--card", *arguments]
            self.cards.append(
                subprocess.Popen(
                    (self.enter if side else []) + command,
                    pass_fds=[fd],
                    text=True,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                )
            )
        self.credit_frames = [self._line(card)["credit_frames"] for card in self.cards]

    @staticmethod
    def _line(card: subprocess.Popen[str]) -> dict[str, Any]:
        assert card.stdout is not None
        return json.loads(card.stdout.readline())  # type: ignore[no-any-return]

    def copy(self) -> dict[str, Any]:
        card = self.cards[0]
        assert card.stdin is not None
        card.stdin.write("go\n")
        card.stdin.flush()
        return self._line(card)

    def cpu_ns(self) -> list[int]:
        """CPU time that sender and receiver have used."""
        return [
            int(Path(f"/proc/{card.pid}/schedstat").read_text().split()[0]) for card in self.cards
        ]

    def iperf(self, seconds: float) -> tuple[float, list[float]]:
        """Bytes a second of one TCP stream; CPU seconds per gigabyte of sender and receiver."""
        end = json.loads(sh(f"iperf3 -c 10.9.0.2 -J -t {seconds:g}"))["end"]
        speed = float(end["sum_received"]["bits_per_second"]) / 8
        shares = end["cpu_utilization_percent"]
        return speed, [shares[f"{who}_total"] / 100 / speed * 1e9 for who in ("host", "remote")]

    def same(self) -> bool:
        return all(
            os.pread(self.hbm[0], 1 << 20, offset) == os.pread(self.hbm[1], 1 << 20, offset)
            for offset in range(0, self.size_bytes, 1 << 20)
        )

    def close(self) -> None:
        for card in self.cards:
            assert card.stdin is not None
            card.stdin.close()
            card.wait()
        self.server.terminate()
        self.server.wait()
        assert self.far.stdin is not None
        self.far.stdin.close()
        self.far.wait()


def medians(samples: list[list[float]]) -> list[float]:
    """Of the sender's and of the receiver's."""
    return [round(statistics.median(column), 3) for column in zip(*samples, strict=True)]


def measure(
    mib: int, repeats: int, mtu: int, buffer_mib: int, with_iperf: bool
) -> dict[str, object]:
    if ctypes.CDLL(None).unshare(CLONE_NEWNET) != 0:
        raise SystemExit(
            "needs root, or a user namespace: unshare -Ur python benchmarks/hbm_copy.py"
        )
    bench = Bench(mib << 20, mtu, buffer_mib << 20)
    try:
        bench.copy()  # the first one also maps the pages
        ours: list[float] = []
        theirs: list[float] = []
        cpu: list[list[float]] = []
        their_cpu: list[list[float]] = []
        for _ in range(repeats):
            if with_iperf:
                speed, shares = bench.iperf(1.0)
                theirs.append(speed / 1e9)
                their_cpu.append(shares)
            before = bench.cpu_ns()
            report = bench.copy()
            if report["kind"] != "TRANSFER_DONE":
                raise SystemExit(f"the copy failed: {report}")
            ours.append((mib << 20) / report["seconds"] / 1e9)
            used = [after - was for after, was in zip(bench.cpu_ns(), before, strict=True)]
            cpu.append([ns / (mib << 20) for ns in used])
        same = bench.same()
    finally:
        bench.close()
    result: dict[str, object] = {
        "what": "HBM to HBM over one veth pair, checksum and retry on",
        "mib": mib, "mtu": mtu, "repeats": repeats, "credit_frames": bench.credit_frames[1],
        "gbyte_per_s": [round(v, 2) for v in ours],
        "median_gbyte_per_s": round(statistics.median(ours), 2),
        "cpu_s_per_gbyte": medians(cpu),
        "bytes_equal": same,
    }  # fmt: skip
    if theirs:
        result |= {
            "iperf3_gbyte_per_s": [round(v, 2) for v in theirs],
            "median_iperf3_gbyte_per_s": round(statistics.median(theirs), 2),
            "iperf3_cpu_s_per_gbyte": medians(their_cpu),
            "ratio": round(statistics.median(ours) / statistics.median(theirs), 2),
        }
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--mib", type=int, default=512, help="size of the copy")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--mtu", type=int, default=65535)
    parser.add_argument("--buffer-mib", type=int, default=8, help="receive buffer of a port")
    parser.add_argument("--no-iperf", action="store_true")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--card", nargs=5, type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.card:
        run_card(*options.card)
        return
    result = measure(
        options.mib, options.repeats, options.mtu, options.buffer_mib, not options.no_iperf
    )
    if options.json:
        print(json.dumps(result))
        return
    for key, value in result.items():
        print(f"{key:28} {value}")


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "daemon"))
    main()
