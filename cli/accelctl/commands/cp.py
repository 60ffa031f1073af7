"""accelctl cp: bytes from file to HBM, from HBM to HBM by light, from HBM to file."""

from __future__ import annotations

import os
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import rich_click as click

from accel.address import BadAddress, CardAddress, RegionAddress, short
from accel.errors import AccelError, InvalidRequest, NotFound, Unreachable, WrongState
from accelctl import exits, render
from accelctl.commands.transfer import BRIEF
from accelctl.interrupt import held
from accelctl.options import examples, lone, printed
from accelctl.params import DURATION, SIZE
from accelctl.progress import bar
from accelctl.session import Session
from accelctl.view import View

if TYPE_CHECKING:
    from accel.hostcopy import HostCopy

POLL_S = 0.02
STOP_S = 5.0  # longest wait for a cancelled transfer to let go of its regions
SPOOL_CHUNK_BYTES = 1024 * 1024
PIPE = "-"


@examples(
    "accelctl cp ./file card0:weights",
    "accelctl cp card0:weights card1:weights",
    "accelctl cp card1:weights ./copy",
    "accelctl cp card0:weights card1:pages+4096 --length 4K -o json",
)
@click.argument("source")
@click.argument("target")
@click.option("--length", type=SIZE, help="Bytes to copy; as much as the source holds unless told.")
@click.option(
    "--pull", is_flag=True, help="Let the target's card read, instead of the source's card write."
)
@click.option(
    "--link-deadline",
    type=DURATION,
    metavar="SECONDS",
    help="Longest time without a usable link before a transfer fails; 30 unless told.",
)
@printed
def _cp(
    session: Session,
    view: View,
    source: str,
    target: str,
    length: int | None,
    pull: bool,
    link_deadline: float | None,
) -> None:
    """Copy between files of this host and regions of HBM, and between regions by light.

    SOURCE and TARGET are a region (card0:weights, card0:weights+4096), a file, or - for stdin
    and stdout. A target region that does not exist is allocated, and freed again when the copy
    does not succeed. A file appears whole or not at all. Ctrl-C cancels.
    """
    if length == 0:
        raise click.UsageError("--length 0 copies nothing; leave it out to copy all")
    source_region, target_region = _region(source), _region(target)
    if source_region and target_region:
        _by_light(session, view, source_region, target_region, length or 0, pull, link_deadline)
    elif pull or link_deadline:
        raise click.UsageError("--pull and --link-deadline are for copies between two regions")
    elif target_region:
        _upload(session, view, source, target_region, length)
    elif source_region:
        _refuse_card(session, target, source_region)
        _download(session, view, source_region, target, length or 0)
    else:
        raise click.UsageError(
            "neither side is a region; write one as card0:weights (for two files there is cp)"
        )


cli = lone("cp", _cp)


def _region(text: str) -> RegionAddress | None:
    """The region a text means, or None for a file; `./card0:weights` is a file."""
    if not RegionAddress.looks_like(text):
        return None
    try:
        return RegionAddress.parse(text)
    except BadAddress as error:
        raise click.UsageError(f"{error}; a file of this name is ./{text}") from None


def _refuse_card(session: Session, target: str, source: RegionAddress) -> None:
    """A card's bare name is no file to make: its region was as likely meant."""
    try:
        card = str(CardAddress.parse(target))
    except BadAddress:
        return
    if card in (short(known.name) for known in session.client.cards.list()):
        raise click.UsageError(
            f"{target!r} is a card; write {card}:{source.region} for a region of it, "
            f"or ./{target} for a file"
        )


# ---- the target region ---------------------------------------------------------------------------


@dataclass(slots=True)
class Target:
    """A region to copy into; `touched` once bytes of an older content may be gone."""

    place: RegionAddress
    allocated: bool
    touched: bool = False
    cancelled: str = ""  # what became of the transfer after Ctrl-C
    keep: bool = False  # a transfer that nobody can reach may still write to it


@contextmanager
def _target_region(session: Session, place: RegionAddress, length: int) -> Iterator[Target]:
    """Finds or allocates it; takes back what it allocated when the copy does not succeed."""
    target = Target(place, allocated=False)
    try:
        with held():
            _find_or_allocate(session, target, length)
        yield target
    except BaseException as error:
        fate = ""
        if target.allocated and not target.keep:
            freed = _free(session, place)
            fate = f"; {place.card}:{place.region} is {'freed again' if freed else 'left over'}"
        elif target.touched:
            fate = f"; {place.card}:{place.region} is partly overwritten"
        if isinstance(error, KeyboardInterrupt):
            raise exits.Interrupted(f"interrupted{target.cancelled}{fate}") from None
        overwritten = target.touched and not (target.allocated or target.keep)
        if overwritten and isinstance(error, AccelError):
            raise exits.Partly(
                f"{_said(error)}; {place.card}:{place.region} is partly overwritten",
                error.reason or "PARTLY_DONE",
            ) from error
        raise


def _free(session: Session, place: RegionAddress) -> bool:
    """Frees it as soon as nobody uses it any more; whether that came in time."""
    deadline = time.monotonic() + STOP_S
    while time.monotonic() < deadline:
        try:
            session.client.regions.delete(str(place))
            return True
        except WrongState:
            time.sleep(POLL_S)  # A cancelled transfer lets go of it in a moment.
        except AccelError:
            return False
    return False


def _find_or_allocate(session: Session, target: Target, length: int) -> None:
    regions, place = session.client.regions, target.place
    try:
        size = regions.get(str(place)).size_bytes
    except NotFound:
        regions.create(place.card, place.region, place.offset + length)
        target.allocated = True
        return
    left = max(size - place.offset, 0)
    if length > left:
        raise InvalidRequest(
            f"{render.byte_count(length)} do not fit into {place}: {render.byte_count(left)} "
            f"left in {place.card}:{place.region}; free it first, or copy less with --length",
            reason="OUT_OF_RANGE",
        )


def _said(error: AccelError) -> str:
    return error.message.rstrip(".")


# ---- host to HBM ---------------------------------------------------------------------------------


def _upload(
    session: Session, view: View, source: str, place: RegionAddress, length: int | None
) -> None:
    with (
        _open_source(source, length) as (descriptor, size),
        _target_region(session, place, size) as target,
        bar(session, f"{source} -> {place}") as advance,
    ):

        def progress(done: int, total: int) -> None:
            target.touched = True
            advance(done, total)

        done = session.client.regions.upload_from(
            descriptor, str(place), size, progress=progress, label=_label(source)
        )
    _host_result(view, source, str(place), done, target.allocated)


@contextmanager
def _open_source(source: str, length: int | None) -> Iterator[tuple[int, int]]:
    """A descriptor to read from, and how many bytes of it to take."""
    from accel.hostcopy import open_source

    if source != PIPE:
        try:
            opened = open_source(source)
        except AccelError as error:
            if "/" not in source and ":" not in source and exits.code_of(error) == exits.NOT_FOUND:
                error.message += f"; for a region write card0:{source}"
            raise
        with opened:
            if length is not None and length > opened.size:
                raise InvalidRequest(
                    f"{source} holds {opened.size} bytes, not {length}", reason="OUT_OF_RANGE"
                )
            yield opened.fileno(), length or opened.size
        return
    descriptor = sys.stdin.fileno()
    if length is not None:
        yield descriptor, length
        return
    status = os.fstat(descriptor)
    if stat.S_ISREG(status.st_mode):
        size = status.st_size - os.lseek(descriptor, 0, os.SEEK_CUR)
        yield descriptor, _not_empty(size)
        return
    # A region needs its size before the first byte: the pipe goes through an unnamed file.
    with tempfile.TemporaryFile() as spool:
        while chunk := os.read(descriptor, SPOOL_CHUNK_BYTES):
            _spool(spool, chunk)
        spool.flush()
        size = spool.tell()
        spool.seek(0)
        yield spool.fileno(), _not_empty(size)


def _spool(spool: Any, chunk: bytes) -> None:
    try:
        spool.write(chunk)
    except OSError as error:
        from accel.hostcopy import local_error

        folder = tempfile.gettempdir()
        raise local_error(
            error, f"stdin to {folder} (TMPDIR names another folder)", "spool"
        ) from None


def _not_empty(size: int) -> int:
    if size <= 0:
        raise InvalidRequest(
            "stdin is empty; a region holds at least one byte", reason="EMPTY_SOURCE"
        )
    return size


def _label(source: str) -> str:
    return "stdin" if source == PIPE else source


# ---- HBM to host ---------------------------------------------------------------------------------


def _download(session: Session, view: View, place: RegionAddress, target: str, length: int) -> None:
    from accel.hostcopy import open_target

    regions = session.client.regions
    size = regions.get(str(place)).size_bytes - place.offset
    if size <= 0 or length > size:
        raise InvalidRequest(
            f"{place.card}:{place.region} holds {max(size, 0)} bytes from offset {place.offset} on",
            reason="OUT_OF_RANGE",
        )
    if target == PIPE and sys.stdout.isatty():
        raise click.UsageError("stdout is a terminal; send the bytes to a file or a pipe")
    if os.path.isdir(target):
        target = os.path.join(target, place.region)
    with bar(session, f"{place} -> {target}") as advance:
        if target == PIPE:
            sys.stdout.flush()
            descriptor = sys.stdout.fileno()
            done = regions.download_to(
                str(place), descriptor, length=length or size, progress=advance, label="stdout"
            )
        else:
            with open_target(target) as opened:
                done = regions.download_to(
                    str(place),
                    opened.fileno(),
                    length=length or size,
                    progress=advance,
                    label=target,
                )
    _host_result(view, str(place), target, done)


def _host_result(
    view: View, source: str, target: str, done: HostCopy, allocated: bool | None = None
) -> None:
    region = source if allocated is None else target
    row: dict[str, Any] = {
        "name": RegionAddress.parse(region).name,
        "source": source,
        "target": target,
        "total_bytes": done.total_bytes,
        "wall_ms": round(done.wall_s * 1e3, 3),
        "wall_gbyte_per_s": round(done.wall_gbyte_per_s, 6),
        "crc32c": done.crc32c,
        "mapped": done.mapped,
    }
    if allocated is not None:
        row["allocated"] = allocated
    text = view.single(
        row,
        lambda _: view.detail(
            f"{source} -> {target}",
            [
                ("size", render.exact(done.total_bytes)),
                ("wall time here", _wall(done)),
                ("way", "HBM mapped, in place" if done.mapped else "streamed through the daemon"),
                ("region", "allocated" if allocated else ""),
                ("CRC-32C", render.crc(done.crc32c)),
            ],
        ),
    )
    if target == PIPE:
        sys.stderr.write(text)  # stdout carries the bytes.
    else:
        view.write(text)


def _wall(done: HostCopy) -> str:
    return f"{render.time_us(done.wall_s * 1e6)}, {render.rate(done.wall_gbyte_per_s)} GB/s"


# ---- HBM to HBM ----------------------------------------------------------------------------------


def _by_light(
    session: Session,
    view: View,
    source: RegionAddress,
    place: RegionAddress,
    length: int,
    pull: bool,
    link_deadline_s: float | None,
) -> None:
    from accel.transfer import check
    from accelctl.commands.transfer import describe

    size = session.client.regions.get(str(source)).size_bytes - source.offset
    if size <= 0 or length > size:
        raise InvalidRequest(
            f"{source.card}:{source.region} holds {max(size, 0)} bytes from offset "
            f"{source.offset} on",
            reason="OUT_OF_RANGE",
        )
    length = length or size
    with _target_region(session, place, length) as target:
        start = partial(
            session.client.transfers.create,
            str(source),
            str(place),
            length=length,
            pull=pull,
            link_deadline_s=link_deadline_s,
        )
        last = _follow(session, start, target, f"{source} -> {place}")
        check(last)
    view.result(last, "\n".join(view.detail(*describe(last))))


def _follow(session: Session, start: Callable[[], Any], target: Target, what: str) -> Any:
    """From its start to its end, whatever happens to the daemon. Ctrl-C cancels the transfer."""
    from accel.plain import word

    last: Any = None
    try:
        with held():
            last = start()
        with bar(session, what) as advance:
            for state in session.client.transfers.follow(last.name):
                last = state
                target.touched = target.touched or last.good_bytes > 0
                advance(last.good_bytes, last.total_bytes)
                waiting = word(last, "state") == "WAITING"
                advance.note(f"{what}: no link, waiting" if waiting else what)
    except BaseException as error:
        if last is None:
            raise
        name = short(last.name)[:BRIEF]
        if isinstance(error, Unreachable):
            target.keep = True
            raise Unreachable(
                f"{_said(error)}; transfer {name} may go on in the hardware: "
                f"'accelctl transfer watch {name}' when the daemon is back",
                reason=error.reason,
                metadata={**error.metadata, "transfer": last.name},
            ) from None
        stopped = _stop(session, last.name)
        target.keep = not stopped
        target.cancelled = (
            f"; transfer {name} is cancelled"
            if stopped
            else f"; transfer {name} may go on: 'accelctl transfer cancel {name}'"
        )
        raise
    return last


def _stop(session: Session, name: str) -> bool:
    """Cancels a transfer and waits until it lets go of its regions; whether it did."""
    from accel.transfer import ended

    transfers = session.client.transfers
    deadline = time.monotonic() + STOP_S
    with suppress(AccelError):
        state = transfers.cancel(name)
        while not ended(state) and time.monotonic() < deadline:
            time.sleep(POLL_S)
            state = transfers.get(name)
        return ended(state)
    return False
