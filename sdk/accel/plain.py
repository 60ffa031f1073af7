"""A message of the API as plain dicts and lists, ready for JSON.

Keys are the proto field names. Integers of every width are numbers, enums their short word
(`UP`), times RFC 3339. What is not there has no key: an unset optional, an empty text, an
unspecified enum. A zero that was measured stays.
"""

from __future__ import annotations

import base64
import re
from datetime import UTC, datetime
from functools import cache
from typing import Any

_TIMESTAMP = "google.protobuf.Timestamp"
_DURATION = "google.protobuf.Duration"
_STRUCT = "google.protobuf.Struct"
_REGION_SLICE = "accel.v1.RegionSlice"


@cache
def _prefix(enum: Any) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", enum.name).upper() + "_"


def _word(enum: Any, number: int) -> str:
    value = enum.values_by_number.get(number)
    if value is None:
        return str(number)
    word = str(value.name).removeprefix(_prefix(enum))
    return "" if word == "UNSPECIFIED" else word


def word(message: Any, field: str) -> str:
    """An enum field as its short word: `word(link, "state") == "UP"`; empty when unspecified."""
    return _word(message.DESCRIPTOR.fields_by_name[field].enum_type, getattr(message, field))


def rfc3339(timestamp: Any) -> str:
    """A Timestamp in UTC, with as many of 3, 6 or no fraction digits as it needs."""
    moment = datetime.fromtimestamp(timestamp.seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    micros = timestamp.nanos // 1000
    if micros == 0:
        return moment + "Z"
    return f"{moment}.{micros // 1000:03d}Z" if micros % 1000 == 0 else f"{moment}.{micros:06d}Z"


def to_plain(message: Any) -> dict[str, Any]:
    """The whole message, nested messages too."""
    out: dict[str, Any] = {}
    named_region = message.DESCRIPTOR.full_name == _REGION_SLICE and message.region
    for field in message.DESCRIPTOR.fields:
        if named_region and field.name in ("region_id", "key"):
            continue  # The other way to name a region; zeros here would be a sentinel.
        value = getattr(message, field.name)
        if field.is_repeated:
            out[field.name] = [_value(field, item) for item in value]
        elif field.has_presence:
            if message.HasField(field.name):
                out[field.name] = _value(field, value)
        elif field.enum_type is not None:
            if value:
                out[field.name] = _value(field, value)
        elif isinstance(value, bytes):
            if value:
                out[field.name] = _text(value)
        elif value != "":
            out[field.name] = value
    return out


def _text(value: bytes) -> str:
    """Base64, as proto3 writes bytes in JSON."""
    return base64.b64encode(value).decode()


def _value(field: Any, value: Any) -> Any:
    if field.enum_type is not None:
        return _word(field.enum_type, value)
    if field.message_type is None:
        return _text(value) if isinstance(value, bytes) else value
    match field.message_type.full_name:
        case "google.protobuf.Timestamp":
            return rfc3339(value)
        case "google.protobuf.Duration":
            return value.seconds + value.nanos / 1e9
        case "google.protobuf.Struct":
            return {key: _struct_value(item) for key, item in sorted(value.fields.items())}
    return to_plain(value)


def _struct_value(value: Any) -> Any:
    kind = value.WhichOneof("kind")
    if kind == "struct_value":
        return {key: _struct_value(item) for key, item in sorted(value.struct_value.fields.items())}
    if kind == "list_value":
        return [_struct_value(item) for item in value.list_value.values]
    if kind == "number_value":
        number = value.number_value
        return int(number) if number.is_integer() and abs(number) < 2**53 else number
    return None if kind in (None, "null_value") else getattr(value, kind)


def columns(descriptor: Any, prefix: str = "") -> list[str]:
    """Every key a message can have, nested ones dotted: the header of a CSV."""
    names: list[str] = []
    for field in descriptor.fields:
        nested = field.message_type
        if (
            nested is not None
            and not field.is_repeated
            and nested.full_name not in (_TIMESTAMP, _DURATION, _STRUCT)
        ):
            names += columns(nested, f"{prefix}{field.name}.")
        else:
            names.append(prefix + field.name)
    return names
