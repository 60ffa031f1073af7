"""The story itself: power on, train, carry a file, look at the light, go on."""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from accel import Client
from accel.errors import AccelError
from accel.plain import word
from acceld.demo.place import DemoFailed, OwnDaemon, daemon, example, with_transport
from acceld.demo.screen import Columns, Screen, duration, rate, size
from acceld.demo.way import HERE, OWN_NETWORK, Way

START_S = 30.0
TRAIN_S = 30.0
LANES_SHOWN = 16
CHUNK_BYTES = 8 << 20
UP = ("UP", "DEGRADED")


@dataclass(slots=True)
class Demo:
    options: argparse.Namespace
    way: Way
    folder: Path
    screen: Screen

    def run(self) -> int:
        """Raises DemoFailed, OSError, KeyboardInterrupt."""
        began = time.monotonic()
        say = self.screen.line
        say("acceld: accelerator cards that talk by light, emulated in software.")
        say(
            "  No such card is in this machine: light, lanes and the card's own times are modelled."
        )
        say("  The bytes, the frames, the checksums and the network interface are real.")
        say(f"  This run: {self.way.told}.")
        source, kind = self._source()
        config = self._config()
        with daemon(config, self.folder) as running, Client(running.socket) as client:
            try:
                self._power_on(client, running)
                port = self._train(client)
                same = self._carry(client, source, kind, port)
                self._look(client, port)
                self._go_on(running, time.monotonic() - began)
            except AccelError as error:
                raise DemoFailed(f"{error}\n{running.said()}") from error
            if self.options.stay:
                with suppress(KeyboardInterrupt):  # Here that is how one leaves.
                    running.process.wait()
        say("  Cleaned up: daemon and cards are off; no process, interface or file is left.")
        return 0 if same else 1

    # ---- before anything runs

    def _source(self) -> tuple[Path, str]:
        given: Path | None = self.options.file
        if given and not given.exists():
            raise DemoFailed(f"{given}: there is no such file")
        total = given.stat().st_size if given else self.options.size << 20
        if total <= 0:
            raise DemoFailed(f"{given or '--size'}: nothing to carry; it is empty")
        if given and not given.is_file():
            raise DemoFailed(f"{given} is not a file")
        free = shutil.disk_usage(self.folder).free
        needed = total if given else 2 * total
        if free < needed:
            raise DemoFailed(
                f"{self.folder.parent} has {size(free)} free and the copies need {size(needed)}; "
                "set TMPDIR to a larger place"
            )
        if given:
            return given, "your file"
        path = self.folder / "random.bin"
        with path.open("wb") as out:
            for start in range(0, total, CHUNK_BYTES):
                out.write(os.urandom(min(CHUNK_BYTES, total - start)))
        return path, "random bytes"

    def _config(self) -> Path:
        given: Path | None = self.options.config
        text = given.read_text() if given else example("pair.toml")
        if self.way.transport == "memory":
            text = with_transport(text, "memory")
        path = self.folder / "pair.toml"
        path.write_text(text)
        return path

    # ---- 1

    def _power_on(self, client: Client, running: OwnDaemon) -> None:
        self.screen.head("1  Power on")
        host = self._until(running, START_S, "the cards are ready", lambda: self._ready(client))
        say = self.screen.line
        say(f"  daemon  acceld serve, pid {host.daemon_pid}: API, regions, operations; no payload")
        pids = ", ".join(str(worker.pid) for worker in host.workers)
        say(f"  chassis pid {host.chassis_pid}, workers {pids}: the emulated hardware")
        for card in client.cards.list():
            say(
                f"  {card.name.removeprefix('cards/')}   {card.description}, "
                f"{size(card.hbm_total_bytes)} {card.hbm_type} (sparse)"
            )

    @staticmethod
    def _ready(client: Client) -> Any:
        ready = all(word(card, "state") == "READY" for card in client.cards.list())
        host = client.host()
        return host if host.chassis_attached and ready else None

    def _until(
        self, running: OwnDaemon, patience_s: float, what: str, found: Callable[[], Any]
    ) -> Any:
        deadline = time.monotonic() + patience_s
        while True:
            try:
                if answer := found():
                    return answer
            except AccelError:
                pass  # It is still starting.
            if running.process.poll() is not None:
                raise DemoFailed(f"the daemon ended by itself:\n{running.said()}")
            if time.monotonic() > deadline:
                raise DemoFailed(f"not within {patience_s:.0f} s: {what}\n{running.said()}")
            time.sleep(0.05)

    # ---- 2

    def _train(self, client: Client) -> str:
        link = next((link for link in client.links.list("card0") if link.HasField("fibre")), None)
        if link is None:
            raise DemoFailed("no fibre is plugged into card0")
        port = link.name.removeprefix("cards/").replace("/links", "")
        fibre = link.fibre
        self.screen.head(f"2  Train the link at {port}: {fibre.length_m:g} m of fibre")
        if fibre.interface:
            self.screen.line(
                f"  frames of EtherType 0x88B5 cross {fibre.transport} {fibre.interface}, "
                f"MTU {fibre.mtu_bytes}"
            )
        last: Any = None
        deadline = time.monotonic() + TRAIN_S
        columns = Columns(self.screen)
        for step in client.links.train(port):
            if step.HasField("lane"):
                columns.add(f"lane {step.lane:>2}: {step.text}")
            elif step.text:
                columns.finish()
                self.screen.line(f"  {step.phase.lower().replace('_', ' '):<11}  {step.text}")
            if step.HasField("link"):
                last = step.link
            if time.monotonic() > deadline:
                raise DemoFailed(f"{port} did not train within {TRAIN_S:.0f} s")
        columns.finish()
        link = last or client.links.get(port)
        state = word(link, "state")
        if state not in UP:
            raise DemoFailed(f"{port} is {state}: {link.reason.code}; {link.reason.next_action}")
        peer = link.peer.removeprefix("cards/").replace("/links", "")
        took = f" in {link.training_ms:.0f} ms" if link.HasField("training_ms") else ""
        self.screen.line(
            f"  {state}{took}: {port} <-> {peer}, {link.width_lanes} of {link.fitted_lanes} lanes, "
            f"{link.capacity_gbit_per_s:g} Gb/s, {link.modulation.upper()}, FEC {link.fec}"
        )
        return port

    # ---- 3

    def _carry(self, client: Client, source: Path, kind: str, port: str) -> bool:
        total = source.stat().st_size
        self.screen.head(f"3  Carry {kind}: {source.name}, {size(total)}")
        interface = client.links.get(port).fibre.interface
        before = _sha256(source)
        counted = _interface_bytes(interface)

        upload = client.regions.upload(
            source, "card0:demo", create=True, progress=self._bar("host file -> card0")
        )
        self._done("host file -> card0 HBM", total, upload.wall_s)
        client.regions.create("card1", "demo", total)
        started = time.monotonic()
        bar = self._bar("card0 -> card1, by light")
        transfer = client.transfers.copy(
            "card0:demo", "card1:demo", progress=lambda now: bar(now.good_bytes, now.total_bytes)
        )
        seconds = (
            transfer.wall_ms / 1e3 if transfer.HasField("wall_ms") else time.monotonic() - started
        )
        self._done("card0 HBM -> card1 HBM, by light", total, seconds)
        out = self.folder / "arrived"
        download = client.regions.download(
            "card1:demo", out, progress=self._bar("card1 -> host file")
        )
        self._done("card1 HBM -> host file", total, download.wall_s)

        after = _sha256(out)
        out.unlink()
        say = self.screen.line
        say(f"  sha256 before  {before}")
        say(f"  sha256 after   {after}   {'EQUAL' if before == after else 'DIFFERENT'}")
        crossed = _interface_bytes(interface)
        if counted is not None and crossed is not None:
            say(f"  the kernel counted {size(crossed - counted)} sent on {interface} meanwhile")
        if transfer.replayed_frames_total:
            say(f"  {transfer.replayed_frames_total} frames were damaged or lost and sent again")
        if transfer.HasField("modelled_us") and transfer.HasField("modelled_pcie_us"):
            light, pcie = transfer.modelled_us / 1e6, transfer.modelled_pcie_us / 1e6
            say(
                f"  modelled: the card would need {duration(light)} ({rate(total, light)}); "
                f"PCIe 5.0 x16 {duration(pcie)} ({rate(total, pcie)}): {pcie / light:.1f} x as long"
            )
        return before == after

    def _bar(self, what: str) -> Callable[[int, int], None]:
        started = time.monotonic()
        return lambda done, total: self.screen.progress(
            what, done, total, time.monotonic() - started
        )

    def _done(self, what: str, total: int, seconds: float) -> None:
        self.screen.line(
            f"  {what:<34} {size(total):>10} in {duration(seconds):>8}  {rate(total, seconds)}"
        )

    # ---- 4

    def _look(self, client: Client, port: str) -> None:
        self.screen.head(f"4  The light as {port} receives it")
        say = self.screen.line
        say("  lane  far lane  Tx dBm  Rx dBm  margin dB      Q  pre-FEC BER  errors/bits received")
        lanes = list(client.lanes.list(port))
        for index, lane in enumerate(lanes[:LANES_SHOWN]):
            far = (
                f"{lane.peer_lane}{' inv' if lane.inverted else ''}"
                if lane.HasField("peer_lane")
                else "-"
            )
            margin = f"{lane.margin_db:9.2f}" if lane.HasField("margin_db") else "     dark"
            q = f"{lane.q:5.2f}" if lane.HasField("q") else "    -"
            ber = f"{lane.pre_fec_ber:.1e}" if lane.HasField("pre_fec_ber") else "-"
            say(
                f"  {index:>4}  {far:>8}  {lane.tx_power_dbm:6.2f}  {lane.rx_power_dbm:6.2f}  "
                f"{margin}  {q:>5}  {ber:>11}  {lane.pre_fec_errors_total}/{lane.rx_bits_total:.2e}"
            )
        if len(lanes) > LANES_SHOWN:
            say(f"  ... and {len(lanes) - LANES_SHOWN} more")
        self._causes(client, port)

    def _causes(self, client: Client, port: str) -> None:
        fibre = client.links.get(port).fibre
        engine = client.engines.get(port)
        say = self.screen.line
        say("  Why these figures:")
        say("    Tx       each laser's launch power: the profile's, scattered by the rack's seed")
        say(
            f"    Rx       the far lane's Tx, told over the fibre, minus {fibre.loss_db:.2f} dB of "
            f"fibre and connectors ({fibre.length_m:g} m)"
        )
        say("    margin   Rx above what this receiver needs; below zero it cannot lock")
        say(f"    Q, BER   signal over noise at that Rx, {engine.modulation.upper()}")
        say(
            f"    errors   drawn from that BER, at {engine.line_rate_gbit_per_s:g} Gb/s "
            "a lane; a frame they hit fails its CRC and is replayed"
        )
        say("    GB/s     this machine's kernel and CPU; the modelled time is the card's")

    # ---- 5

    def _go_on(self, running: OwnDaemon, seconds: float) -> None:
        self.screen.head(f"Done in {seconds:.1f} s. Go on:")
        say = self.screen.line
        if self.options.stay:
            say("  It keeps running until Ctrl-C. In another terminal:")
            say(f"    export ACCEL_SOCKET={running.socket}")
            self._path()
        else:
            self._path()
            if self.way in (OWN_NETWORK, HERE):
                say("  acceld serve --config examples/pair.toml    a daemon that stays; elsewhere:")
            else:  # It would need the same namespaces, or no interface.
                say("  acceld demo --stay    the same, and it stays; in another terminal:")
        say("    accelctl                                  the status screen")
        say("    accelctl lane list card0/oe0              each lane's light")
        say("    accelctl cp FILE card0:weights            into HBM")
        say("    accelctl cp card0:weights card1:weights   across by light")
        say("    accelctl event follow                     what happens, as it happens")

    def _path(self) -> None:
        """How to call the commands below, where the shell does not find them."""
        folder = Path(sys.executable).parent
        found = shutil.which("acceld")
        if found is None or Path(found).parent != folder:
            self.screen.line(f"    export PATH={folder}:$PATH")


def _sha256(path: Path) -> str:
    with path.open("rb") as data:
        return hashlib.file_digest(data, "sha256").hexdigest()


def _interface_bytes(interface: str) -> int | None:
    """Octets that the kernel sent on an interface of this namespace; None when it is elsewhere."""
    for line in Path("/proc/self/net/dev").read_text().splitlines():
        name, colon, counters = line.partition(":")
        if colon and name.strip() == interface:
            return int(counters.split()[8])
    return None
