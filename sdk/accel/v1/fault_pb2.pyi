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

class FaultPlace(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    FAULT_PLACE_UNSPECIFIED: _ClassVar[FaultPlace]
    FAULT_PLACE_LANE: _ClassVar[FaultPlace]
    FAULT_PLACE_PORT: _ClassVar[FaultPlace]
    FAULT_PLACE_CARD: _ClassVar[FaultPlace]

class FaultShape(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    FAULT_SHAPE_UNSPECIFIED: _ClassVar[FaultShape]
    FAULT_SHAPE_STEP: _ClassVar[FaultShape]
    FAULT_SHAPE_RAMP: _ClassVar[FaultShape]
    FAULT_SHAPE_EXP: _ClassVar[FaultShape]
    FAULT_SHAPE_PULSE: _ClassVar[FaultShape]
    FAULT_SHAPE_ON_OFF: _ClassVar[FaultShape]
    FAULT_SHAPE_BURST: _ClassVar[FaultShape]
    FAULT_SHAPE_POISSON: _ClassVar[FaultShape]
FAULT_PLACE_UNSPECIFIED: FaultPlace
FAULT_PLACE_LANE: FaultPlace
FAULT_PLACE_PORT: FaultPlace
FAULT_PLACE_CARD: FaultPlace
FAULT_SHAPE_UNSPECIFIED: FaultShape
FAULT_SHAPE_STEP: FaultShape
FAULT_SHAPE_RAMP: FaultShape
FAULT_SHAPE_EXP: FaultShape
FAULT_SHAPE_PULSE: FaultShape
FAULT_SHAPE_ON_OFF: FaultShape
FAULT_SHAPE_BURST: FaultShape
FAULT_SHAPE_POISSON: FaultShape

class FaultCause(_message.Message):
    __slots__ = ("cause", "amount")
    CAUSE_FIELD_NUMBER: _ClassVar[int]
    AMOUNT_FIELD_NUMBER: _ClassVar[int]
    cause: str
    amount: float
    def __init__(self, cause: _Optional[str] = ..., amount: _Optional[float] = ...) -> None: ...

class FaultKind(_message.Message):
    __slots__ = ("name", "place", "summary", "near_signature", "far_signature", "repair", "source", "shape", "rise_s", "on_s", "off_s", "causes", "crossing", "takes_target_ber")
    NAME_FIELD_NUMBER: _ClassVar[int]
    PLACE_FIELD_NUMBER: _ClassVar[int]
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    NEAR_SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    FAR_SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    REPAIR_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    SHAPE_FIELD_NUMBER: _ClassVar[int]
    RISE_S_FIELD_NUMBER: _ClassVar[int]
    ON_S_FIELD_NUMBER: _ClassVar[int]
    OFF_S_FIELD_NUMBER: _ClassVar[int]
    CAUSES_FIELD_NUMBER: _ClassVar[int]
    CROSSING_FIELD_NUMBER: _ClassVar[int]
    TAKES_TARGET_BER_FIELD_NUMBER: _ClassVar[int]
    name: str
    place: FaultPlace
    summary: str
    near_signature: str
    far_signature: str
    repair: str
    source: str
    shape: FaultShape
    rise_s: float
    on_s: float
    off_s: float
    causes: _containers.RepeatedCompositeFieldContainer[FaultCause]
    crossing: str
    takes_target_ber: bool
    def __init__(self, name: _Optional[str] = ..., place: _Optional[_Union[FaultPlace, str]] = ..., summary: _Optional[str] = ..., near_signature: _Optional[str] = ..., far_signature: _Optional[str] = ..., repair: _Optional[str] = ..., source: _Optional[str] = ..., shape: _Optional[_Union[FaultShape, str]] = ..., rise_s: _Optional[float] = ..., on_s: _Optional[float] = ..., off_s: _Optional[float] = ..., causes: _Optional[_Iterable[_Union[FaultCause, _Mapping]]] = ..., crossing: _Optional[str] = ..., takes_target_ber: _Optional[bool] = ...) -> None: ...

class Fault(_message.Message):
    __slots__ = ("name", "kind", "subject", "lanes", "shape", "start_time", "end_time", "ramp_s", "scale", "lane_scales", "target_ber", "seed", "hbm_address")
    NAME_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    LANES_FIELD_NUMBER: _ClassVar[int]
    SHAPE_FIELD_NUMBER: _ClassVar[int]
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    END_TIME_FIELD_NUMBER: _ClassVar[int]
    RAMP_S_FIELD_NUMBER: _ClassVar[int]
    SCALE_FIELD_NUMBER: _ClassVar[int]
    LANE_SCALES_FIELD_NUMBER: _ClassVar[int]
    TARGET_BER_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    HBM_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    name: str
    kind: str
    subject: str
    lanes: _containers.RepeatedScalarFieldContainer[int]
    shape: FaultShape
    start_time: _timestamp_pb2.Timestamp
    end_time: _timestamp_pb2.Timestamp
    ramp_s: float
    scale: float
    lane_scales: _containers.RepeatedScalarFieldContainer[float]
    target_ber: float
    seed: int
    hbm_address: int
    def __init__(self, name: _Optional[str] = ..., kind: _Optional[str] = ..., subject: _Optional[str] = ..., lanes: _Optional[_Iterable[int]] = ..., shape: _Optional[_Union[FaultShape, str]] = ..., start_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., end_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., ramp_s: _Optional[float] = ..., scale: _Optional[float] = ..., lane_scales: _Optional[_Iterable[float]] = ..., target_ber: _Optional[float] = ..., seed: _Optional[int] = ..., hbm_address: _Optional[int] = ...) -> None: ...

class ListFaultKindsRequest(_message.Message):
    __slots__ = ("page_size", "page_token")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListFaultKindsResponse(_message.Message):
    __slots__ = ("fault_kinds", "next_page_token")
    FAULT_KINDS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    fault_kinds: _containers.RepeatedCompositeFieldContainer[FaultKind]
    next_page_token: str
    def __init__(self, fault_kinds: _Optional[_Iterable[_Union[FaultKind, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class ListFaultsRequest(_message.Message):
    __slots__ = ("parent", "page_size", "page_token")
    PARENT_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    parent: str
    page_size: int
    page_token: str
    def __init__(self, parent: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListFaultsResponse(_message.Message):
    __slots__ = ("faults", "next_page_token")
    FAULTS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    faults: _containers.RepeatedCompositeFieldContainer[Fault]
    next_page_token: str
    def __init__(self, faults: _Optional[_Iterable[_Union[Fault, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class GetFaultRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class InjectFaultRequest(_message.Message):
    __slots__ = ("kind", "subject", "lanes", "shape", "duration", "ramp", "scale", "target_ber", "seed", "hbm_address", "fault_id")
    KIND_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    LANES_FIELD_NUMBER: _ClassVar[int]
    SHAPE_FIELD_NUMBER: _ClassVar[int]
    DURATION_FIELD_NUMBER: _ClassVar[int]
    RAMP_FIELD_NUMBER: _ClassVar[int]
    SCALE_FIELD_NUMBER: _ClassVar[int]
    TARGET_BER_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    HBM_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    FAULT_ID_FIELD_NUMBER: _ClassVar[int]
    kind: str
    subject: str
    lanes: _containers.RepeatedScalarFieldContainer[int]
    shape: FaultShape
    duration: _duration_pb2.Duration
    ramp: _duration_pb2.Duration
    scale: float
    target_ber: float
    seed: int
    hbm_address: int
    fault_id: str
    def __init__(self, kind: _Optional[str] = ..., subject: _Optional[str] = ..., lanes: _Optional[_Iterable[int]] = ..., shape: _Optional[_Union[FaultShape, str]] = ..., duration: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., ramp: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., scale: _Optional[float] = ..., target_ber: _Optional[float] = ..., seed: _Optional[int] = ..., hbm_address: _Optional[int] = ..., fault_id: _Optional[str] = ...) -> None: ...

class ClearFaultRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class ClearFaultResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
