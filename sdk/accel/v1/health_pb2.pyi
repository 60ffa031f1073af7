from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class HealthState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    HEALTH_STATE_UNSPECIFIED: _ClassVar[HealthState]
    HEALTH_STATE_HEALTHY: _ClassVar[HealthState]
    HEALTH_STATE_TRAINING: _ClassVar[HealthState]
    HEALTH_STATE_WARNING: _ClassVar[HealthState]
    HEALTH_STATE_CRITICAL: _ClassVar[HealthState]
    HEALTH_STATE_ABSENT: _ClassVar[HealthState]

class ObjectKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    OBJECT_KIND_UNSPECIFIED: _ClassVar[ObjectKind]
    OBJECT_KIND_HOST: _ClassVar[ObjectKind]
    OBJECT_KIND_DAEMON: _ClassVar[ObjectKind]
    OBJECT_KIND_WORKER: _ClassVar[ObjectKind]
    OBJECT_KIND_CARD: _ClassVar[ObjectKind]
    OBJECT_KIND_OE: _ClassVar[ObjectKind]
    OBJECT_KIND_LINK: _ClassVar[ObjectKind]
    OBJECT_KIND_LANE: _ClassVar[ObjectKind]
HEALTH_STATE_UNSPECIFIED: HealthState
HEALTH_STATE_HEALTHY: HealthState
HEALTH_STATE_TRAINING: HealthState
HEALTH_STATE_WARNING: HealthState
HEALTH_STATE_CRITICAL: HealthState
HEALTH_STATE_ABSENT: HealthState
OBJECT_KIND_UNSPECIFIED: ObjectKind
OBJECT_KIND_HOST: ObjectKind
OBJECT_KIND_DAEMON: ObjectKind
OBJECT_KIND_WORKER: ObjectKind
OBJECT_KIND_CARD: ObjectKind
OBJECT_KIND_OE: ObjectKind
OBJECT_KIND_LINK: ObjectKind
OBJECT_KIND_LANE: ObjectKind

class HealthReason(_message.Message):
    __slots__ = ("code", "state", "object", "text", "next_action")
    CODE_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    OBJECT_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    NEXT_ACTION_FIELD_NUMBER: _ClassVar[int]
    code: str
    state: HealthState
    object: str
    text: str
    next_action: str
    def __init__(self, code: _Optional[str] = ..., state: _Optional[_Union[HealthState, str]] = ..., object: _Optional[str] = ..., text: _Optional[str] = ..., next_action: _Optional[str] = ...) -> None: ...

class HealthCapability(_message.Message):
    __slots__ = ("lanes_fitted", "lanes_data", "lanes_spare", "modes", "capacity_gbit_per_s", "fibre")
    LANES_FITTED_FIELD_NUMBER: _ClassVar[int]
    LANES_DATA_FIELD_NUMBER: _ClassVar[int]
    LANES_SPARE_FIELD_NUMBER: _ClassVar[int]
    MODES_FIELD_NUMBER: _ClassVar[int]
    CAPACITY_GBIT_PER_S_FIELD_NUMBER: _ClassVar[int]
    FIBRE_FIELD_NUMBER: _ClassVar[int]
    lanes_fitted: int
    lanes_data: int
    lanes_spare: int
    modes: _containers.RepeatedScalarFieldContainer[str]
    capacity_gbit_per_s: float
    fibre: bool
    def __init__(self, lanes_fitted: _Optional[int] = ..., lanes_data: _Optional[int] = ..., lanes_spare: _Optional[int] = ..., modes: _Optional[_Iterable[str]] = ..., capacity_gbit_per_s: _Optional[float] = ..., fibre: _Optional[bool] = ...) -> None: ...

class HealthStanding(_message.Message):
    __slots__ = ("lanes_used", "mode", "capacity_gbit_per_s")
    LANES_USED_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    CAPACITY_GBIT_PER_S_FIELD_NUMBER: _ClassVar[int]
    lanes_used: int
    mode: str
    capacity_gbit_per_s: float
    def __init__(self, lanes_used: _Optional[int] = ..., mode: _Optional[str] = ..., capacity_gbit_per_s: _Optional[float] = ...) -> None: ...

class Health(_message.Message):
    __slots__ = ("name", "kind", "state", "reasons", "cause", "capability", "standing", "causes", "parts")
    NAME_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    REASONS_FIELD_NUMBER: _ClassVar[int]
    CAUSE_FIELD_NUMBER: _ClassVar[int]
    CAPABILITY_FIELD_NUMBER: _ClassVar[int]
    STANDING_FIELD_NUMBER: _ClassVar[int]
    CAUSES_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    name: str
    kind: ObjectKind
    state: HealthState
    reasons: _containers.RepeatedCompositeFieldContainer[HealthReason]
    cause: str
    capability: HealthCapability
    standing: HealthStanding
    causes: _containers.RepeatedCompositeFieldContainer[HealthReason]
    parts: _containers.RepeatedCompositeFieldContainer[Health]
    def __init__(self, name: _Optional[str] = ..., kind: _Optional[_Union[ObjectKind, str]] = ..., state: _Optional[_Union[HealthState, str]] = ..., reasons: _Optional[_Iterable[_Union[HealthReason, _Mapping]]] = ..., cause: _Optional[str] = ..., capability: _Optional[_Union[HealthCapability, _Mapping]] = ..., standing: _Optional[_Union[HealthStanding, _Mapping]] = ..., causes: _Optional[_Iterable[_Union[HealthReason, _Mapping]]] = ..., parts: _Optional[_Iterable[_Union[Health, _Mapping]]] = ...) -> None: ...

class GetHealthRequest(_message.Message):
    __slots__ = ("name", "with_parts")
    NAME_FIELD_NUMBER: _ClassVar[int]
    WITH_PARTS_FIELD_NUMBER: _ClassVar[int]
    name: str
    with_parts: bool
    def __init__(self, name: _Optional[str] = ..., with_parts: _Optional[bool] = ...) -> None: ...

class WatchHealthRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...
