import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Host(_message.Message):
    __slots__ = ("version", "emulated", "daemon_pid", "daemon_start_time", "chassis_boot_id", "chassis_pid", "chassis_start_time", "chassis_attached", "hbm_budget_bytes", "hbm_allocated_bytes", "workers", "card_count", "link_count", "links_up_count", "transfers_running_count", "metrics_address", "newest_event_revision", "store_durable", "store_bytes", "scrapes_total", "scrape_s", "scrape_samples")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    EMULATED_FIELD_NUMBER: _ClassVar[int]
    DAEMON_PID_FIELD_NUMBER: _ClassVar[int]
    DAEMON_START_TIME_FIELD_NUMBER: _ClassVar[int]
    CHASSIS_BOOT_ID_FIELD_NUMBER: _ClassVar[int]
    CHASSIS_PID_FIELD_NUMBER: _ClassVar[int]
    CHASSIS_START_TIME_FIELD_NUMBER: _ClassVar[int]
    CHASSIS_ATTACHED_FIELD_NUMBER: _ClassVar[int]
    HBM_BUDGET_BYTES_FIELD_NUMBER: _ClassVar[int]
    HBM_ALLOCATED_BYTES_FIELD_NUMBER: _ClassVar[int]
    WORKERS_FIELD_NUMBER: _ClassVar[int]
    CARD_COUNT_FIELD_NUMBER: _ClassVar[int]
    LINK_COUNT_FIELD_NUMBER: _ClassVar[int]
    LINKS_UP_COUNT_FIELD_NUMBER: _ClassVar[int]
    TRANSFERS_RUNNING_COUNT_FIELD_NUMBER: _ClassVar[int]
    METRICS_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    NEWEST_EVENT_REVISION_FIELD_NUMBER: _ClassVar[int]
    STORE_DURABLE_FIELD_NUMBER: _ClassVar[int]
    STORE_BYTES_FIELD_NUMBER: _ClassVar[int]
    SCRAPES_TOTAL_FIELD_NUMBER: _ClassVar[int]
    SCRAPE_S_FIELD_NUMBER: _ClassVar[int]
    SCRAPE_SAMPLES_FIELD_NUMBER: _ClassVar[int]
    version: str
    emulated: bool
    daemon_pid: int
    daemon_start_time: _timestamp_pb2.Timestamp
    chassis_boot_id: str
    chassis_pid: int
    chassis_start_time: _timestamp_pb2.Timestamp
    chassis_attached: bool
    hbm_budget_bytes: int
    hbm_allocated_bytes: int
    workers: _containers.RepeatedCompositeFieldContainer[Worker]
    card_count: int
    link_count: int
    links_up_count: int
    transfers_running_count: int
    metrics_address: str
    newest_event_revision: int
    store_durable: bool
    store_bytes: int
    scrapes_total: int
    scrape_s: float
    scrape_samples: int
    def __init__(self, version: _Optional[str] = ..., emulated: _Optional[bool] = ..., daemon_pid: _Optional[int] = ..., daemon_start_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., chassis_boot_id: _Optional[str] = ..., chassis_pid: _Optional[int] = ..., chassis_start_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., chassis_attached: _Optional[bool] = ..., hbm_budget_bytes: _Optional[int] = ..., hbm_allocated_bytes: _Optional[int] = ..., workers: _Optional[_Iterable[_Union[Worker, _Mapping]]] = ..., card_count: _Optional[int] = ..., link_count: _Optional[int] = ..., links_up_count: _Optional[int] = ..., transfers_running_count: _Optional[int] = ..., metrics_address: _Optional[str] = ..., newest_event_revision: _Optional[int] = ..., store_durable: _Optional[bool] = ..., store_bytes: _Optional[int] = ..., scrapes_total: _Optional[int] = ..., scrape_s: _Optional[float] = ..., scrape_samples: _Optional[int] = ...) -> None: ...

class Worker(_message.Message):
    __slots__ = ("index", "pid", "alive", "restarts_total", "cards", "tick_overruns_total", "beat_age_s")
    INDEX_FIELD_NUMBER: _ClassVar[int]
    PID_FIELD_NUMBER: _ClassVar[int]
    ALIVE_FIELD_NUMBER: _ClassVar[int]
    RESTARTS_TOTAL_FIELD_NUMBER: _ClassVar[int]
    CARDS_FIELD_NUMBER: _ClassVar[int]
    TICK_OVERRUNS_TOTAL_FIELD_NUMBER: _ClassVar[int]
    BEAT_AGE_S_FIELD_NUMBER: _ClassVar[int]
    index: int
    pid: int
    alive: bool
    restarts_total: int
    cards: _containers.RepeatedScalarFieldContainer[str]
    tick_overruns_total: int
    beat_age_s: float
    def __init__(self, index: _Optional[int] = ..., pid: _Optional[int] = ..., alive: _Optional[bool] = ..., restarts_total: _Optional[int] = ..., cards: _Optional[_Iterable[str]] = ..., tick_overruns_total: _Optional[int] = ..., beat_age_s: _Optional[float] = ...) -> None: ...

class GetHostRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
