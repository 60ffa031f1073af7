import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Threshold(_message.Message):
    __slots__ = ("quantity", "high_alarm", "high_warning", "low_warning", "low_alarm")
    QUANTITY_FIELD_NUMBER: _ClassVar[int]
    HIGH_ALARM_FIELD_NUMBER: _ClassVar[int]
    HIGH_WARNING_FIELD_NUMBER: _ClassVar[int]
    LOW_WARNING_FIELD_NUMBER: _ClassVar[int]
    LOW_ALARM_FIELD_NUMBER: _ClassVar[int]
    quantity: str
    high_alarm: float
    high_warning: float
    low_warning: float
    low_alarm: float
    def __init__(self, quantity: _Optional[str] = ..., high_alarm: _Optional[float] = ..., high_warning: _Optional[float] = ..., low_warning: _Optional[float] = ..., low_alarm: _Optional[float] = ...) -> None: ...

class Flag(_message.Message):
    __slots__ = ("name", "active", "latched", "changes_total", "first_set_time", "last_set_time", "last_clear_time")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ACTIVE_FIELD_NUMBER: _ClassVar[int]
    LATCHED_FIELD_NUMBER: _ClassVar[int]
    CHANGES_TOTAL_FIELD_NUMBER: _ClassVar[int]
    FIRST_SET_TIME_FIELD_NUMBER: _ClassVar[int]
    LAST_SET_TIME_FIELD_NUMBER: _ClassVar[int]
    LAST_CLEAR_TIME_FIELD_NUMBER: _ClassVar[int]
    name: str
    active: bool
    latched: bool
    changes_total: int
    first_set_time: _timestamp_pb2.Timestamp
    last_set_time: _timestamp_pb2.Timestamp
    last_clear_time: _timestamp_pb2.Timestamp
    def __init__(self, name: _Optional[str] = ..., active: _Optional[bool] = ..., latched: _Optional[bool] = ..., changes_total: _Optional[int] = ..., first_set_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., last_set_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., last_clear_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...
