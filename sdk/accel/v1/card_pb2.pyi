import datetime

from accel.v1 import flag_pb2 as _flag_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class CardState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CARD_STATE_UNSPECIFIED: _ClassVar[CardState]
    CARD_STATE_READY: _ClassVar[CardState]
    CARD_STATE_RESETTING: _ClassVar[CardState]
    CARD_STATE_FELL_OFF_BUS: _ClassVar[CardState]
CARD_STATE_UNSPECIFIED: CardState
CARD_STATE_READY: CardState
CARD_STATE_RESETTING: CardState
CARD_STATE_FELL_OFF_BUS: CardState

class HbmHealth(_message.Message):
    __slots__ = ("corrected_errors_total", "uncorrectable_errors_total", "rows_remapped", "rows_pending", "remap_failed", "refresh_ratio", "throttled")
    CORRECTED_ERRORS_TOTAL_FIELD_NUMBER: _ClassVar[int]
    UNCORRECTABLE_ERRORS_TOTAL_FIELD_NUMBER: _ClassVar[int]
    ROWS_REMAPPED_FIELD_NUMBER: _ClassVar[int]
    ROWS_PENDING_FIELD_NUMBER: _ClassVar[int]
    REMAP_FAILED_FIELD_NUMBER: _ClassVar[int]
    REFRESH_RATIO_FIELD_NUMBER: _ClassVar[int]
    THROTTLED_FIELD_NUMBER: _ClassVar[int]
    corrected_errors_total: int
    uncorrectable_errors_total: int
    rows_remapped: int
    rows_pending: int
    remap_failed: bool
    refresh_ratio: int
    throttled: bool
    def __init__(self, corrected_errors_total: _Optional[int] = ..., uncorrectable_errors_total: _Optional[int] = ..., rows_remapped: _Optional[int] = ..., rows_pending: _Optional[int] = ..., remap_failed: _Optional[bool] = ..., refresh_ratio: _Optional[int] = ..., throttled: _Optional[bool] = ...) -> None: ...

class Card(_message.Message):
    __slots__ = ("name", "uid", "state", "profile", "description", "emulated", "hbm_total_bytes", "hbm_allocated_bytes", "hbm_resident_bytes", "hbm_type", "hbm_bandwidth_gbyte_per_s", "bus_bandwidth_gbyte_per_s", "oe_count", "signal_line_count", "links_up_count", "capacity_gbit_per_s", "bus_read_bytes_total", "bus_written_bytes_total", "resets_total", "transfers_done_total", "transfers_failed_total", "worker", "ready_time", "hbm_health", "case_temp_c", "hbm_temp_c", "supply_v", "power_w", "signal_lines_used_count", "region_count", "thresholds", "flags", "transfers_cancelled_total")
    NAME_FIELD_NUMBER: _ClassVar[int]
    UID_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    PROFILE_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    EMULATED_FIELD_NUMBER: _ClassVar[int]
    HBM_TOTAL_BYTES_FIELD_NUMBER: _ClassVar[int]
    HBM_ALLOCATED_BYTES_FIELD_NUMBER: _ClassVar[int]
    HBM_RESIDENT_BYTES_FIELD_NUMBER: _ClassVar[int]
    HBM_TYPE_FIELD_NUMBER: _ClassVar[int]
    HBM_BANDWIDTH_GBYTE_PER_S_FIELD_NUMBER: _ClassVar[int]
    BUS_BANDWIDTH_GBYTE_PER_S_FIELD_NUMBER: _ClassVar[int]
    OE_COUNT_FIELD_NUMBER: _ClassVar[int]
    SIGNAL_LINE_COUNT_FIELD_NUMBER: _ClassVar[int]
    LINKS_UP_COUNT_FIELD_NUMBER: _ClassVar[int]
    CAPACITY_GBIT_PER_S_FIELD_NUMBER: _ClassVar[int]
    BUS_READ_BYTES_TOTAL_FIELD_NUMBER: _ClassVar[int]
    BUS_WRITTEN_BYTES_TOTAL_FIELD_NUMBER: _ClassVar[int]
    RESETS_TOTAL_FIELD_NUMBER: _ClassVar[int]
    TRANSFERS_DONE_TOTAL_FIELD_NUMBER: _ClassVar[int]
    TRANSFERS_FAILED_TOTAL_FIELD_NUMBER: _ClassVar[int]
    WORKER_FIELD_NUMBER: _ClassVar[int]
    READY_TIME_FIELD_NUMBER: _ClassVar[int]
    HBM_HEALTH_FIELD_NUMBER: _ClassVar[int]
    CASE_TEMP_C_FIELD_NUMBER: _ClassVar[int]
    HBM_TEMP_C_FIELD_NUMBER: _ClassVar[int]
    SUPPLY_V_FIELD_NUMBER: _ClassVar[int]
    POWER_W_FIELD_NUMBER: _ClassVar[int]
    SIGNAL_LINES_USED_COUNT_FIELD_NUMBER: _ClassVar[int]
    REGION_COUNT_FIELD_NUMBER: _ClassVar[int]
    THRESHOLDS_FIELD_NUMBER: _ClassVar[int]
    FLAGS_FIELD_NUMBER: _ClassVar[int]
    TRANSFERS_CANCELLED_TOTAL_FIELD_NUMBER: _ClassVar[int]
    name: str
    uid: str
    state: CardState
    profile: str
    description: str
    emulated: bool
    hbm_total_bytes: int
    hbm_allocated_bytes: int
    hbm_resident_bytes: int
    hbm_type: str
    hbm_bandwidth_gbyte_per_s: float
    bus_bandwidth_gbyte_per_s: float
    oe_count: int
    signal_line_count: int
    links_up_count: int
    capacity_gbit_per_s: float
    bus_read_bytes_total: int
    bus_written_bytes_total: int
    resets_total: int
    transfers_done_total: int
    transfers_failed_total: int
    worker: int
    ready_time: _timestamp_pb2.Timestamp
    hbm_health: HbmHealth
    case_temp_c: float
    hbm_temp_c: float
    supply_v: float
    power_w: float
    signal_lines_used_count: int
    region_count: int
    thresholds: _containers.RepeatedCompositeFieldContainer[_flag_pb2.Threshold]
    flags: _containers.RepeatedCompositeFieldContainer[_flag_pb2.Flag]
    transfers_cancelled_total: int
    def __init__(self, name: _Optional[str] = ..., uid: _Optional[str] = ..., state: _Optional[_Union[CardState, str]] = ..., profile: _Optional[str] = ..., description: _Optional[str] = ..., emulated: _Optional[bool] = ..., hbm_total_bytes: _Optional[int] = ..., hbm_allocated_bytes: _Optional[int] = ..., hbm_resident_bytes: _Optional[int] = ..., hbm_type: _Optional[str] = ..., hbm_bandwidth_gbyte_per_s: _Optional[float] = ..., bus_bandwidth_gbyte_per_s: _Optional[float] = ..., oe_count: _Optional[int] = ..., signal_line_count: _Optional[int] = ..., links_up_count: _Optional[int] = ..., capacity_gbit_per_s: _Optional[float] = ..., bus_read_bytes_total: _Optional[int] = ..., bus_written_bytes_total: _Optional[int] = ..., resets_total: _Optional[int] = ..., transfers_done_total: _Optional[int] = ..., transfers_failed_total: _Optional[int] = ..., worker: _Optional[int] = ..., ready_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., hbm_health: _Optional[_Union[HbmHealth, _Mapping]] = ..., case_temp_c: _Optional[float] = ..., hbm_temp_c: _Optional[float] = ..., supply_v: _Optional[float] = ..., power_w: _Optional[float] = ..., signal_lines_used_count: _Optional[int] = ..., region_count: _Optional[int] = ..., thresholds: _Optional[_Iterable[_Union[_flag_pb2.Threshold, _Mapping]]] = ..., flags: _Optional[_Iterable[_Union[_flag_pb2.Flag, _Mapping]]] = ..., transfers_cancelled_total: _Optional[int] = ...) -> None: ...

class ListCardsRequest(_message.Message):
    __slots__ = ("page_size", "page_token")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListCardsResponse(_message.Message):
    __slots__ = ("cards", "next_page_token")
    CARDS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    cards: _containers.RepeatedCompositeFieldContainer[Card]
    next_page_token: str
    def __init__(self, cards: _Optional[_Iterable[_Union[Card, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class GetCardRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class ResetCardRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class ClearCardFlagsRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...
