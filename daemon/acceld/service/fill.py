"""Fills messages of accel.v1 from the field table: a figure and its unit stand there once."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
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
    for field in _fields(message.DESCRIPTOR.name):
        source = field.source
        if isinstance(source, Column):
            value = source.of(row)
        else:
            assert not isinstance(source, Labelled)
            value = source.of(subject)
        if value is not None:
            put(message, field.key, value, field.key_divisor)


def put(message: Any, key: str, value: Value, divisor: float = 1.0) -> None:
    """Set one figure; a key has its way: `counters.tx_frames_total`. Times are in ns."""
    *way, name = key.split(".")
    for step in way:
        message = getattr(message, step)
    kind = message.DESCRIPTOR.fields_by_name[name]
    if value is None:
        return
    if kind.message_type is not None:
        time_ns = int(value)
        getattr(message, name).seconds, getattr(message, name).nanos = divmod(time_ns, 10**9)
    elif kind.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
        setattr(message, name, bool(value))
    elif kind.cpp_type in WHOLE:
        setattr(message, name, int(value))
    else:
        setattr(message, name, float(scaled(value, divisor) or 0.0))


@cache
def _fields(message: str) -> tuple[Field, ...]:
    return tuple(_plain(field for field in FIELDS if field.message == message))


def _plain(fields: Iterable[Field]) -> Iterable[Field]:
    return (field for field in fields if not isinstance(field.source, Labelled))
