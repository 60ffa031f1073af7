"""Types of arguments: addresses, sizes, durations; each says what would have worked."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import rich_click as click
from click.shell_completion import CompletionItem

from accel.address import (
    BadAddress,
    CardAddress,
    LaneAddress,
    PortAddress,
    RegionAddress,
    short,
    transfer_name,
)
from accel.span import LONGEST, LONGEST_S
from accelctl import render

if TYPE_CHECKING:
    _ParamType = click.ParamType[Any]  # generic since click 8.4, for the type checker alone
else:
    _ParamType = click.ParamType

_SIZE = re.compile(r"([0-9]+|0x[0-9a-f]+)\s*([kmgt]?)(i?b)?", re.IGNORECASE)
_SHIFT = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}
_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h|d|)")
_SECONDS = {"": 1.0, "s": 1.0, "ms": 0.001, "m": 60.0, "h": 3600.0, "d": 86400.0}
_LINE = re.compile(r"[0-9]{1,5}")
_COUNT = re.compile(r"[0-9]+|0x[0-9a-f]+", re.IGNORECASE)
NUMBER_MAX = 2**63 - 1  # what the API's fields and this machine's counters hold
SEED_MAX = 2**64 - 1
DIGITS_MAX = 100  # beyond, a number is larger than any that is taken here
TOO_MUCH = 2**256
LANE_MAX = 999  # as in an address: no engine has more
COMPLETION_TIMEOUT_S = 0.5


class Address(_ParamType):
    """An address, normalized to its short form."""

    def __init__(
        self,
        name: str,
        *parsers: Any,
        known: Callable[[Any], Iterable[str]],
        examples: str = "",
    ) -> None:
        self.name = name
        self._parsers = parsers
        self._known = known
        self._examples = examples  # where more than one parser may take it

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        failures: list[str] = []
        for parser in self._parsers:
            try:
                return str(parser.parse(value))
            except BadAddress as error:
                failures.append(str(error))
        if len(failures) > 1:
            *first, last = self.name.split("|")
            kinds = f"{', a '.join(first)} or a {last}"
            failures = [f"{value!r} is not a {kinds}; try {self._examples}"]
        self.fail(failures[0], param, ctx)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        return completions(ctx, self._known, incomplete)


def completions(
    ctx: click.Context, known: Callable[[Any], Iterable[str]], incomplete: str
) -> list[CompletionItem]:
    """What the daemon has; nothing when it does not answer at once."""
    from accel import AccelError, Client

    root = ctx.find_root()
    try:
        with Client(root.params.get("socket"), timeout_s=COMPLETION_TIMEOUT_S) as client:
            names = list(known(client))
    except AccelError:
        return []
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


class Word(_ParamType):
    """Whatever the daemon makes of it; a shell completes what the daemon knows."""

    def __init__(self, name: str, known: Callable[[Any], Iterable[str]]) -> None:
        self.name = name
        self._known = known

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return str(value)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        return completions(ctx, self._known, incomplete)


class OneOf(_ParamType):
    """Whatever is said; a shell completes the words that are known, however they are typed."""

    def __init__(self, name: str, words: Iterable[str]) -> None:
        self.name = name
        self._words = tuple(words)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return str(value)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        begun = _plain(incomplete)
        return [CompletionItem(word) for word in self._words if _plain(word).startswith(begun)]


def _plain(word: str) -> str:
    return word.upper().replace("-", "_")


def _short_names(items: Iterable[Any]) -> list[str]:
    return [short(item.name) for item in items]


CARD = Address("card", CardAddress, known=lambda client: _short_names(client.cards.list()))
PORT = Address("port", PortAddress, known=lambda client: _short_names(client.links.list()))
ENGINE = Address("port", PortAddress, known=lambda client: _short_names(client.engines.list()))
LANE = Address("lane", LaneAddress, known=lambda client: _short_names(client.lanes.list()))
REGION = Address("region", RegionAddress, known=lambda client: _short_names(client.regions.list()))
CARD_OR_PORT = Address(
    "card|port",
    CardAddress,
    PortAddress,
    known=lambda client: [
        *_short_names(client.cards.list()),
        *_short_names(client.engines.list()),
    ],
    examples="card0 or card0/oe1",
)
SUBJECT = Word(
    "subject",
    lambda client: [*_short_names(client.cards.list()), *_short_names(client.engines.list())],
)


def _with_health(client: Any) -> list[str]:
    from accel.health import walk

    objects = walk(client.health.get("host", with_parts=True))
    return list(dict.fromkeys(short(one.name) for one in objects))


HEALTH_OBJECT = Word("object", _with_health)


class CardOrRegion(_ParamType):
    """`card0:weights`, or `card0` alone where a name can be made up."""

    name = "region"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        parser: Any = RegionAddress if ":" in value or "/regions/" in value else CardAddress
        try:
            return str(parser.parse(value))
        except BadAddress as error:
            self.fail(str(error), param, ctx)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        return CARD.shell_complete(ctx, param, incomplete)


class TransferName(_ParamType):
    """`3f2a...`, as a resource name."""

    name = "transfer"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            return short(transfer_name(value))
        except BadAddress as error:
            self.fail(str(error), param, ctx)


def _whole(digits: str) -> int:
    """Decimal or 0x; unlike int(..., 0) it takes leading zeros, and any number of digits."""
    if len(digits) > DIGITS_MAX:
        return TOO_MUCH
    return int(digits, 16 if digits[:2].lower() == "0x" else 10)


class Size(_ParamType):
    """Bytes: 4096, 64K, 1MiB, 2G; the letters count in steps of 1024."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        match = _SIZE.fullmatch(value.strip())
        if match is None:
            self.fail(f"{value!r} is not a size; use 4096, 64K, 1MiB or 2G", param, ctx)
        size = _whole(match[1]) << _SHIFT[match[2].lower()]
        if size > NUMBER_MAX:
            self.fail(f"{value!r} is more than any card can hold", param, ctx)
        return size


class Count(_ParamType):
    """A whole number: 5, 0xa5. `what` it is goes into the sentence of a refusal."""

    def __init__(self, name: str = "count", what: str = "number", most: int = NUMBER_MAX) -> None:
        self.name = name
        self._what = what
        self._most = most

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        number = _whole(value.strip()) if _COUNT.fullmatch(value.strip()) else -1
        if not 0 <= number <= self._most:
            self.fail(f"{value!r} is not a {self._what} from 0 to {self._most}", param, ctx)
        return number


class Listed(_ParamType):
    """Values of another type with commas between them: 4K,64K,1M."""

    def __init__(self, one: _ParamType) -> None:
        self.name = f"{one.name},..."
        self._one = one

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[Any, ...]:
        if isinstance(value, tuple):
            return value
        return tuple(self._one.convert(part.strip(), param, ctx) for part in value.split(","))

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        before, comma, last = incomplete.rpartition(",")
        found = self._one.shell_complete(ctx, param, last)
        return [CompletionItem(f"{before}{comma}{item.value}") for item in found]


class Duration(_ParamType):
    """Seconds: 5, 0.5, 500ms, 2m."""

    name = "seconds"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        if isinstance(value, float):
            return value
        match = _DURATION.fullmatch(str(value))
        seconds = float(match[1]) * _SECONDS[match[2]] if match else 0.0
        if seconds <= 0:
            hint = (
                "; --watch takes the next word for its seconds: write --watch=2, or put it last"
                if self._is_watch(param)
                else ""
            )
            self.fail(f"{value!r} is not a time; use 2, 0.5, 500ms or 1m{hint}", param, ctx)
        if seconds > LONGEST_S:
            self.fail(f"{value!r} is too long; use at most {LONGEST}", param, ctx)
        return seconds

    @staticmethod
    def _is_watch(param: click.Parameter | None) -> bool:
        return param is not None and param.name == "watch"


class Swap(_ParamType):
    """A move of a channel onto a signal line: 3=12."""

    name = "channel=line"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, int]:
        if isinstance(value, tuple):
            return value
        channel, equals, line = value.partition("=")
        if not (equals and _LINE.fullmatch(channel) and _LINE.fullmatch(line)):
            self.fail(f"{value!r} is not CHANNEL=LINE; use 3=12", param, ctx)
        return int(channel), int(line)


class Moment(_ParamType):
    """A time: so long ago (10m, 2h), or a date in RFC 3339 (2026-09-21T14:13:20Z)."""

    name = "time"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> datetime:
        if isinstance(value, datetime):
            return value
        if match := _DURATION.fullmatch(str(value)):
            seconds = float(match[1]) * _SECONDS[match[2]]
            return datetime.fromtimestamp(max(render.now_s() - seconds, 0.0), UTC)
        try:
            moment = datetime.fromisoformat(str(value))
            return moment.astimezone(UTC)  # Without an offset it is this host's.
        except (ValueError, OverflowError):
            self.fail(
                f"{value!r} is not a time; use 10m, 2h, 3d or 2026-09-21T14:13:20Z", param, ctx
            )


SIZE = Size()
SIZES = Listed(SIZE)
CARDS = Listed(CARD)
COUNT = Count()
LANE_NUMBER = Count("number", "lane number", LANE_MAX)
SEED = Count("number", "seed", SEED_MAX)
TRANSFER = TransferName()
DURATION = Duration()
SWAP = Swap()
MOMENT = Moment()
