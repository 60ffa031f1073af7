"""Fills messages of accel.v1 from the field table: a figure and its unit stand there once."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from acceld.fields.field import Column, Field, Labelled, Value, scaled
from acceld.fields.table import FIELDS

WHOLE = {
    FieldDescriptor.CPPTYPE_INT32, FieldDescriptor.CPPTYPE_INT64, FieldDescriptor.CPPTYPE_UINT32,
    FieldDescriptor.CPPTYPE_UINT64,
}  # fmt: skip


def fill(message: Message, subject: Any, row: Any = None) -> None:
    """Set every plain figure that the table has for this kind of message. `subject` is what derived
    figures follow from, `row` its row of the status tables. What is absent stays unset; what has
    several samples is for the caller."""
    # The whole row at once: numpy takes longer over one element than over all of them.
    columns = {} if row is None else dict(zip(row.dtype.names, row.item(), strict=True))
    parts: dict[tuple[str, ...], Any] = {(): message}
    for step in _steps(message.DESCRIPTOR):
        value = step.value(columns, subject)
        if value is None:
            continue
        part = parts.get(step.way)
        if part is None:
            part = parts[step.way] = _inside(message, step.way)
        step.put(part, step.name, value)


@dataclass(frozen=True, slots=True)
class _Step:
    """How one figure gets into one kind of message; found out once."""

    value: Callable[[dict[str, Any], Any], Value]
    way: tuple[str, ...]  # of a key `counters.tx_frames_total`: counters
    name: str
    put: Callable[[Any, str, Any], None]


@cache
def _steps(descriptor: Descriptor) -> tuple[_Step, ...]:
    return tuple(_step(descriptor, field) for field in _plain(descriptor.name))


def _step(descriptor: Descriptor, field: Field) -> _Step:
    *way, name = field.key.split(".")
    for part in way:
        inner = descriptor.fields_by_name[part].message_type
        assert inner is not None, field.key
        descriptor = inner
    kind = descriptor.fields_by_name[name]
    return _Step(_value(field), tuple(way), name, _setter(kind, field.key_divisor))


def _value(field: Field) -> Callable[[dict[str, Any], Any], Value]:
    source = field.source
    if not isinstance(source, Column):
        of = source.of
        return lambda columns, subject: of(subject)  # type: ignore[return-value]
    column, when = source.name, source.when

    def value(columns: dict[str, Any], subject: Any) -> Value:
        if when and not columns[when]:
            return None
        found: int | float = columns[column]
        return None if isinstance(found, float) and not math.isfinite(found) else found

    return value


def _setter(kind: FieldDescriptor, divisor: float) -> Callable[[Any, str, Any], None]:
    if kind.message_type is not None:
        return _set_time
    if kind.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
        return lambda message, name, value: setattr(message, name, bool(value))
    if kind.cpp_type in WHOLE:
        return lambda message, name, value: setattr(message, name, int(value))
    return lambda message, name, value: setattr(message, name, float(scaled(value, divisor) or 0.0))


def _set_time(message: Any, name: str, time_ns: Any) -> None:
    stamp = getattr(message, name)
    stamp.seconds, stamp.nanos = divmod(int(time_ns), 10**9)


def _inside(message: Any, way: Iterable[str]) -> Any:
    for step in way:
        message = getattr(message, step)
    return message


def _plain(message: str) -> Iterable[Field]:
    return (
        field
        for field in FIELDS
        if field.message == message and not isinstance(field.source, Labelled)
    )
