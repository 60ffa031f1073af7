import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class TransferKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TRANSFER_KIND_UNSPECIFIED: _ClassVar[TransferKind]
    TRANSFER_KIND_WRITE: _ClassVar[TransferKind]
    TRANSFER_KIND_READ: _ClassVar[TransferKind]
    TRANSFER_KIND_LOCAL: _ClassVar[TransferKind]

class TransferState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TRANSFER_STATE_UNSPECIFIED: _ClassVar[TransferState]
    TRANSFER_STATE_QUEUED: _ClassVar[TransferState]
    TRANSFER_STATE_RUNNING: _ClassVar[TransferState]
    TRANSFER_STATE_WAITING: _ClassVar[TransferState]
    TRANSFER_STATE_DONE: _ClassVar[TransferState]
    TRANSFER_STATE_FAILED: _ClassVar[TransferState]
    TRANSFER_STATE_CANCELLED: _ClassVar[TransferState]
TRANSFER_KIND_UNSPECIFIED: TransferKind
TRANSFER_KIND_WRITE: TransferKind
TRANSFER_KIND_READ: TransferKind
TRANSFER_KIND_LOCAL: TransferKind
TRANSFER_STATE_UNSPECIFIED: TransferState
TRANSFER_STATE_QUEUED: TransferState
TRANSFER_STATE_RUNNING: TransferState
TRANSFER_STATE_WAITING: TransferState
TRANSFER_STATE_DONE: TransferState
TRANSFER_STATE_FAILED: TransferState
TRANSFER_STATE_CANCELLED: TransferState

class RegionSlice(_message.Message):
    __slots__ = ("region", "offset", "card", "region_id", "key")
    REGION_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    CARD_FIELD_NUMBER: _ClassVar[int]
    REGION_ID_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    region: str
    offset: int
    card: str
    region_id: int
    key: int
    def __init__(self, region: _Optional[str] = ..., offset: _Optional[int] = ..., card: _Optional[str] = ..., region_id: _Optional[int] = ..., key: _Optional[int] = ...) -> None: ...

class Transfer(_message.Message):
    __slots__ = ("name", "kind", "state", "source", "target", "total_bytes", "good_bytes", "first_gap_offset", "links", "start_time", "end_time", "wall_ms", "wall_gbyte_per_s", "modelled_us", "modelled_pcie_us", "crc32c", "replayed_frames_total", "error", "error_detail")
    NAME_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    TOTAL_BYTES_FIELD_NUMBER: _ClassVar[int]
    GOOD_BYTES_FIELD_NUMBER: _ClassVar[int]
    FIRST_GAP_OFFSET_FIELD_NUMBER: _ClassVar[int]
    LINKS_FIELD_NUMBER: _ClassVar[int]
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    END_TIME_FIELD_NUMBER: _ClassVar[int]
    WALL_MS_FIELD_NUMBER: _ClassVar[int]
    WALL_GBYTE_PER_S_FIELD_NUMBER: _ClassVar[int]
    MODELLED_US_FIELD_NUMBER: _ClassVar[int]
    MODELLED_PCIE_US_FIELD_NUMBER: _ClassVar[int]
    CRC32C_FIELD_NUMBER: _ClassVar[int]
    REPLAYED_FRAMES_TOTAL_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    ERROR_DETAIL_FIELD_NUMBER: _ClassVar[int]
    name: str
    kind: TransferKind
    state: TransferState
    source: RegionSlice
    target: RegionSlice
    total_bytes: int
    good_bytes: int
    first_gap_offset: int
    links: _containers.RepeatedScalarFieldContainer[str]
    start_time: _timestamp_pb2.Timestamp
    end_time: _timestamp_pb2.Timestamp
    wall_ms: float
    wall_gbyte_per_s: float
    modelled_us: float
    modelled_pcie_us: float
    crc32c: int
    replayed_frames_total: int
    error: str
    error_detail: str
    def __init__(self, name: _Optional[str] = ..., kind: _Optional[_Union[TransferKind, str]] = ..., state: _Optional[_Union[TransferState, str]] = ..., source: _Optional[_Union[RegionSlice, _Mapping]] = ..., target: _Optional[_Union[RegionSlice, _Mapping]] = ..., total_bytes: _Optional[int] = ..., good_bytes: _Optional[int] = ..., first_gap_offset: _Optional[int] = ..., links: _Optional[_Iterable[str]] = ..., start_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., end_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., wall_ms: _Optional[float] = ..., wall_gbyte_per_s: _Optional[float] = ..., modelled_us: _Optional[float] = ..., modelled_pcie_us: _Optional[float] = ..., crc32c: _Optional[int] = ..., replayed_frames_total: _Optional[int] = ..., error: _Optional[str] = ..., error_detail: _Optional[str] = ...) -> None: ...

class CreateTransferRequest(_message.Message):
    __slots__ = ("source", "target", "length", "kind", "link_deadline", "request_id", "wait")
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    LENGTH_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    LINK_DEADLINE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    WAIT_FIELD_NUMBER: _ClassVar[int]
    source: RegionSlice
    target: RegionSlice
    length: int
    kind: TransferKind
    link_deadline: _duration_pb2.Duration
    request_id: str
    wait: _duration_pb2.Duration
    def __init__(self, source: _Optional[_Union[RegionSlice, _Mapping]] = ..., target: _Optional[_Union[RegionSlice, _Mapping]] = ..., length: _Optional[int] = ..., kind: _Optional[_Union[TransferKind, str]] = ..., link_deadline: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., request_id: _Optional[str] = ..., wait: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class GetTransferRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class ListTransfersRequest(_message.Message):
    __slots__ = ("page_size", "page_token", "active_only")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    ACTIVE_ONLY_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    active_only: bool
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., active_only: _Optional[bool] = ...) -> None: ...

class ListTransfersResponse(_message.Message):
    __slots__ = ("transfers", "next_page_token")
    TRANSFERS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    transfers: _containers.RepeatedCompositeFieldContainer[Transfer]
    next_page_token: str
    def __init__(self, transfers: _Optional[_Iterable[_Union[Transfer, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class WatchTransferRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class CancelTransferRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...
