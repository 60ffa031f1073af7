"""accelctl hbm: regions of HBM."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import rich_click as click

from accel.address import CardAddress, RegionAddress, short
from accelctl import exits, render
from accelctl.options import Noun, command, examples, printed, viewed
from accelctl.params import CARD, COUNT, REGION, SIZE, CardOrRegion
from accelctl.progress import bar
from accelctl.render import Column
from accelctl.session import Session
from accelctl.several import each
from accelctl.view import View

COLUMNS = (
    Column("REGION", lambda r: short(r.name)),
    Column("SIZE", lambda r: render.size(r.size_bytes), right=True),
    Column("BYTES", lambda r: str(r.size_bytes), right=True),
    Column("HBM ADDRESS", lambda r: f"0x{r.address:010x}", right=True),
    Column("IN USE", lambda r: str(r.transfers_running_count or ""), right=True, spare=True),
    Column("ID", lambda r: str(r.region_id), right=True, wide=True),
    Column("KEY", lambda r: f"0x{r.key:08x}", right=True, wide=True),
    Column("CREATED", lambda r: render.local_time(r.create_time), wide=True),
)
_SHA256 = re.compile(r"[0-9a-fA-F]{64}")


@click.group("hbm", cls=Noun)
def cli() -> None:
    """Regions of HBM: allocate, fill, checksum, free."""


@command(cli, "list")
@examples("accelctl hbm list", "accelctl hbm list card0 -o wide")
@click.argument("card", type=CARD, required=False)
@viewed
def list_(session: Session, view: View, card: str | None) -> None:
    """List the regions of one card, or of all."""
    view.rows(
        lambda: session.client.regions.list(card),
        COLUMNS,
        empty="no regions; accelctl hbm alloc card0:NAME SIZE makes one",
        kind=_kind,
    )


@command(cli, "alloc")
@examples(
    "accelctl hbm alloc card0:scratch 64MiB",
    "accelctl hbm alloc card0 4K",
    "accelctl hbm alloc card0:pages 2G --align 2M",
)
@click.argument("region", type=CardOrRegion())
@click.argument("size", type=SIZE)
@click.option(
    "--align", type=SIZE, default=0, help="A power of two, at least 4096; 4096 unless told."
)
@click.option("--address", type=SIZE, help="A fixed HBM address instead of the allocator's choice.")
@printed
def alloc(
    session: Session, view: View, region: str, size: int, align: int, address: int | None
) -> None:
    """Allocate a region. With a card alone its name is made up."""
    place = RegionAddress.parse(region) if ":" in region else None
    if place is not None and place.offset:
        raise click.UsageError(f"{region!r}: a new region has no offset; leave out +{place.offset}")
    card = place.card if place else str(CardAddress.parse(region))
    made = session.client.regions.create(
        card,
        place.region if place else "",
        size,
        alignment_bytes=align,
        address=address,
    )
    view.result(
        made,
        f"{short(made.name)} allocated: {render.size(made.size_bytes)} at 0x{made.address:010x}",
    )


@command(cli, "free")
@examples("accelctl hbm free card0:weights")
@click.argument("regions", type=REGION, nargs=-1, required=True, metavar="REGION...")
@printed
def free(session: Session, view: View, regions: tuple[str, ...]) -> None:
    """Free regions. Refused while a transfer uses them."""

    def release(region: str) -> dict[str, str]:
        session.client.regions.delete(region)
        return {"name": RegionAddress.parse(region).name}

    with each(regions) as work:
        view.results(work(release), lambda row: f"{short(row['name'])} freed")


@command(cli, "fill")
@examples(
    "accelctl hbm fill card0:weights --byte 0xa5",
    "accelctl hbm fill card0:weights --random 7",
    "accelctl hbm fill card0:weights+4096 --byte 0 --length 4K",
)
@click.argument("region", type=REGION)
@click.option("--byte", type=COUNT, metavar="0..255", help="The byte to repeat; 0 unless told.")
@click.option("--random", "seed", type=COUNT, metavar="SEED", help="Pseudo-random bytes of a seed.")
@click.option("--length", type=SIZE, default=0, help="How much; to the end unless told.")
@printed
def fill(
    session: Session, view: View, region: str, byte: int | None, seed: int | None, length: int
) -> None:
    """Fill a region from its offset on."""
    if byte is not None and seed is not None:
        raise click.UsageError("--byte and --random exclude each other; choose one")
    if byte is not None and byte > 255:
        raise click.UsageError(f"{byte} is not a byte; use 0 to 255, or 0x00 to 0xff")
    steps = session.client.regions.fill(region, byte=byte or 0, seed=seed, length=length)
    last = _run(session, steps, f"fill {region}")
    what = f"0x{byte or 0:02x}" if seed is None else f"random bytes of seed {seed}"
    row: dict[str, Any] = {
        "name": RegionAddress.parse(region).name,
        "filled_bytes": last.done_bytes,
    }
    view.result(row, f"{region}: {render.size(last.done_bytes)} filled with {what}")


@command(cli, "sha256")
@examples(
    "accelctl hbm sha256 card0:weights",
    "accelctl hbm sha256 card0:weights card1:weights -o json",
)
@click.argument("regions", type=REGION, nargs=-1, required=True, metavar="REGION...")
@click.option(
    "--length", type=SIZE, default=0, help="How much from each offset; to the end unless told."
)
@click.option("--expect", metavar="SHA256", help="Exit 1 when a region's sum is another.")
@printed
def sha256(
    session: Session, view: View, regions: tuple[str, ...], length: int, expect: str | None
) -> None:
    """Print the SHA-256 of regions, as sha256sum does for files."""
    if expect is not None and not _SHA256.fullmatch(expect):
        raise click.UsageError(f"{expect!r} is not a SHA-256; use 64 hex digits")

    def add_up(region: str) -> dict[str, Any]:
        last = _run(session, session.client.regions.checksum(region, length=length), region)
        place = RegionAddress.parse(region)
        row: dict[str, Any] = {"name": place.name, "region": region}
        if place.offset:
            row["offset"] = place.offset
        row |= {"length": last.done_bytes, "sha256": last.sha256}
        return row | ({"crc32c": last.crc32c} if last.HasField("crc32c") else {})

    with each(regions) as work:
        rows = work(add_up)
        view.results(rows, lambda row: f"{row['sha256']}  {row['region']}")
    differing = [row["region"] for row in rows if expect and row["sha256"] != expect.lower()]
    if differing:
        raise exits.Failed(
            f"{', '.join(differing)}: not the expected SHA-256", exits.FALSE, "DIFFERS"
        )


def _run(session: Session, steps: Iterator[Any], what: str) -> Any:
    """Draws the progress of a stream; gives its last message."""
    last: Any = None
    with bar(session, what) as advance:
        for last in steps:
            advance(last.done_bytes, last.total_bytes)
    if last is None or not last.done:
        raise exits.Failed(f"{what}: the daemon ended it early", exits.INTERNAL, "INCOMPLETE")
    return last


def _kind() -> Any:
    from accel.v1 import memory_pb2

    return memory_pb2.Region.DESCRIPTOR
