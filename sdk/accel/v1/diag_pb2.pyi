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

class DiagKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DIAG_KIND_UNSPECIFIED: _ClassVar[DiagKind]
    DIAG_KIND_PRBS: _ClassVar[DiagKind]
    DIAG_KIND_BER: _ClassVar[DiagKind]
    DIAG_KIND_MARGIN: _ClassVar[DiagKind]
    DIAG_KIND_EYE: _ClassVar[DiagKind]
    DIAG_KIND_LOOPBACK_NEAR: _ClassVar[DiagKind]
    DIAG_KIND_LOOPBACK_FAR: _ClassVar[DiagKind]
    DIAG_KIND_REFLECT: _ClassVar[DiagKind]
    DIAG_KIND_FEC: _ClassVar[DiagKind]

class DiagState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DIAG_STATE_UNSPECIFIED: _ClassVar[DiagState]
    DIAG_STATE_RUNNING: _ClassVar[DiagState]
    DIAG_STATE_DONE: _ClassVar[DiagState]
    DIAG_STATE_FAILED: _ClassVar[DiagState]
    DIAG_STATE_CANCELLED: _ClassVar[DiagState]

class DiagVerdict(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DIAG_VERDICT_UNSPECIFIED: _ClassVar[DiagVerdict]
    DIAG_VERDICT_PASSED: _ClassVar[DiagVerdict]
    DIAG_VERDICT_FAILED: _ClassVar[DiagVerdict]
    DIAG_VERDICT_OPEN: _ClassVar[DiagVerdict]
DIAG_KIND_UNSPECIFIED: DiagKind
DIAG_KIND_PRBS: DiagKind
DIAG_KIND_BER: DiagKind
DIAG_KIND_MARGIN: DiagKind
DIAG_KIND_EYE: DiagKind
DIAG_KIND_LOOPBACK_NEAR: DiagKind
DIAG_KIND_LOOPBACK_FAR: DiagKind
DIAG_KIND_REFLECT: DiagKind
DIAG_KIND_FEC: DiagKind
DIAG_STATE_UNSPECIFIED: DiagState
DIAG_STATE_RUNNING: DiagState
DIAG_STATE_DONE: DiagState
DIAG_STATE_FAILED: DiagState
DIAG_STATE_CANCELLED: DiagState
DIAG_VERDICT_UNSPECIFIED: DiagVerdict
DIAG_VERDICT_PASSED: DiagVerdict
DIAG_VERDICT_FAILED: DiagVerdict
DIAG_VERDICT_OPEN: DiagVerdict

class LaneErrors(_message.Message):
    __slots__ = ("lane", "far_lane", "locked", "inverted", "bits", "errors", "ber", "ber_low", "ber_high", "sampled_bits", "sampled_errors", "lock_losses", "verdict")
    LANE_FIELD_NUMBER: _ClassVar[int]
    FAR_LANE_FIELD_NUMBER: _ClassVar[int]
    LOCKED_FIELD_NUMBER: _ClassVar[int]
    INVERTED_FIELD_NUMBER: _ClassVar[int]
    BITS_FIELD_NUMBER: _ClassVar[int]
    ERRORS_FIELD_NUMBER: _ClassVar[int]
    BER_FIELD_NUMBER: _ClassVar[int]
    BER_LOW_FIELD_NUMBER: _ClassVar[int]
    BER_HIGH_FIELD_NUMBER: _ClassVar[int]
    SAMPLED_BITS_FIELD_NUMBER: _ClassVar[int]
    SAMPLED_ERRORS_FIELD_NUMBER: _ClassVar[int]
    LOCK_LOSSES_FIELD_NUMBER: _ClassVar[int]
    VERDICT_FIELD_NUMBER: _ClassVar[int]
    lane: int
    far_lane: int
    locked: bool
    inverted: bool
    bits: float
    errors: int
    ber: float
    ber_low: float
    ber_high: float
    sampled_bits: int
    sampled_errors: int
    lock_losses: int
    verdict: DiagVerdict
    def __init__(self, lane: _Optional[int] = ..., far_lane: _Optional[int] = ..., locked: _Optional[bool] = ..., inverted: _Optional[bool] = ..., bits: _Optional[float] = ..., errors: _Optional[int] = ..., ber: _Optional[float] = ..., ber_low: _Optional[float] = ..., ber_high: _Optional[float] = ..., sampled_bits: _Optional[int] = ..., sampled_errors: _Optional[int] = ..., lock_losses: _Optional[int] = ..., verdict: _Optional[_Union[DiagVerdict, str]] = ...) -> None: ...

class MarginPoint(_message.Message):
    __slots__ = ("attenuation_db", "bits", "errors")
    ATTENUATION_DB_FIELD_NUMBER: _ClassVar[int]
    BITS_FIELD_NUMBER: _ClassVar[int]
    ERRORS_FIELD_NUMBER: _ClassVar[int]
    attenuation_db: float
    bits: float
    errors: int
    def __init__(self, attenuation_db: _Optional[float] = ..., bits: _Optional[float] = ..., errors: _Optional[int] = ...) -> None: ...

class CurvePoint(_message.Message):
    __slots__ = ("x", "log10_ber")
    X_FIELD_NUMBER: _ClassVar[int]
    LOG10_BER_FIELD_NUMBER: _ClassVar[int]
    x: float
    log10_ber: float
    def __init__(self, x: _Optional[float] = ..., log10_ber: _Optional[float] = ...) -> None: ...

class LaneMargin(_message.Message):
    __slots__ = ("lane", "margin_db", "end_db", "ber", "points", "curve", "verdict")
    LANE_FIELD_NUMBER: _ClassVar[int]
    MARGIN_DB_FIELD_NUMBER: _ClassVar[int]
    END_DB_FIELD_NUMBER: _ClassVar[int]
    BER_FIELD_NUMBER: _ClassVar[int]
    POINTS_FIELD_NUMBER: _ClassVar[int]
    CURVE_FIELD_NUMBER: _ClassVar[int]
    VERDICT_FIELD_NUMBER: _ClassVar[int]
    lane: int
    margin_db: float
    end_db: float
    ber: float
    points: _containers.RepeatedCompositeFieldContainer[MarginPoint]
    curve: _containers.RepeatedCompositeFieldContainer[CurvePoint]
    verdict: DiagVerdict
    def __init__(self, lane: _Optional[int] = ..., margin_db: _Optional[float] = ..., end_db: _Optional[float] = ..., ber: _Optional[float] = ..., points: _Optional[_Iterable[_Union[MarginPoint, _Mapping]]] = ..., curve: _Optional[_Iterable[_Union[CurvePoint, _Mapping]]] = ..., verdict: _Optional[_Union[DiagVerdict, str]] = ...) -> None: ...

class EyeOpening(_message.Message):
    __slots__ = ("threshold_uw", "ber", "heights", "widths_ui")
    THRESHOLD_UW_FIELD_NUMBER: _ClassVar[int]
    BER_FIELD_NUMBER: _ClassVar[int]
    HEIGHTS_FIELD_NUMBER: _ClassVar[int]
    WIDTHS_UI_FIELD_NUMBER: _ClassVar[int]
    threshold_uw: float
    ber: float
    heights: _containers.RepeatedScalarFieldContainer[float]
    widths_ui: _containers.RepeatedScalarFieldContainer[float]
    def __init__(self, threshold_uw: _Optional[float] = ..., ber: _Optional[float] = ..., heights: _Optional[_Iterable[float]] = ..., widths_ui: _Optional[_Iterable[float]] = ...) -> None: ...

class LaneEye(_message.Message):
    __slots__ = ("lane", "lit", "q", "ber", "symbol_ps", "levels_uw", "sigma_uw", "ber_levels", "openings", "density", "density_rows", "density_columns", "low_uw", "high_uw", "time_bathtub", "threshold_bathtub")
    LANE_FIELD_NUMBER: _ClassVar[int]
    LIT_FIELD_NUMBER: _ClassVar[int]
    Q_FIELD_NUMBER: _ClassVar[int]
    BER_FIELD_NUMBER: _ClassVar[int]
    SYMBOL_PS_FIELD_NUMBER: _ClassVar[int]
    LEVELS_UW_FIELD_NUMBER: _ClassVar[int]
    SIGMA_UW_FIELD_NUMBER: _ClassVar[int]
    BER_LEVELS_FIELD_NUMBER: _ClassVar[int]
    OPENINGS_FIELD_NUMBER: _ClassVar[int]
    DENSITY_FIELD_NUMBER: _ClassVar[int]
    DENSITY_ROWS_FIELD_NUMBER: _ClassVar[int]
    DENSITY_COLUMNS_FIELD_NUMBER: _ClassVar[int]
    LOW_UW_FIELD_NUMBER: _ClassVar[int]
    HIGH_UW_FIELD_NUMBER: _ClassVar[int]
    TIME_BATHTUB_FIELD_NUMBER: _ClassVar[int]
    THRESHOLD_BATHTUB_FIELD_NUMBER: _ClassVar[int]
    lane: int
    lit: bool
    q: float
    ber: float
    symbol_ps: float
    levels_uw: _containers.RepeatedScalarFieldContainer[float]
    sigma_uw: float
    ber_levels: _containers.RepeatedScalarFieldContainer[float]
    openings: _containers.RepeatedCompositeFieldContainer[EyeOpening]
    density: bytes
    density_rows: int
    density_columns: int
    low_uw: float
    high_uw: float
    time_bathtub: _containers.RepeatedCompositeFieldContainer[CurvePoint]
    threshold_bathtub: _containers.RepeatedCompositeFieldContainer[CurvePoint]
    def __init__(self, lane: _Optional[int] = ..., lit: _Optional[bool] = ..., q: _Optional[float] = ..., ber: _Optional[float] = ..., symbol_ps: _Optional[float] = ..., levels_uw: _Optional[_Iterable[float]] = ..., sigma_uw: _Optional[float] = ..., ber_levels: _Optional[_Iterable[float]] = ..., openings: _Optional[_Iterable[_Union[EyeOpening, _Mapping]]] = ..., density: _Optional[bytes] = ..., density_rows: _Optional[int] = ..., density_columns: _Optional[int] = ..., low_uw: _Optional[float] = ..., high_uw: _Optional[float] = ..., time_bathtub: _Optional[_Iterable[_Union[CurvePoint, _Mapping]]] = ..., threshold_bathtub: _Optional[_Iterable[_Union[CurvePoint, _Mapping]]] = ...) -> None: ...

class FecHistogram(_message.Message):
    __slots__ = ("code", "codewords", "bins", "uncorrectable", "corrected_bits")
    CODE_FIELD_NUMBER: _ClassVar[int]
    CODEWORDS_FIELD_NUMBER: _ClassVar[int]
    BINS_FIELD_NUMBER: _ClassVar[int]
    UNCORRECTABLE_FIELD_NUMBER: _ClassVar[int]
    CORRECTED_BITS_FIELD_NUMBER: _ClassVar[int]
    code: str
    codewords: int
    bins: _containers.RepeatedScalarFieldContainer[int]
    uncorrectable: int
    corrected_bits: int
    def __init__(self, code: _Optional[str] = ..., codewords: _Optional[int] = ..., bins: _Optional[_Iterable[int]] = ..., uncorrectable: _Optional[int] = ..., corrected_bits: _Optional[int] = ...) -> None: ...

class Diag(_message.Message):
    __slots__ = ("name", "kind", "state", "verdict", "link", "lanes", "pattern", "checker", "duration_s", "target_ber", "confidence_ratio", "done_ratio", "text", "start_time", "end_time", "error", "error_detail", "errors", "margins", "eyes", "fec")
    NAME_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    VERDICT_FIELD_NUMBER: _ClassVar[int]
    LINK_FIELD_NUMBER: _ClassVar[int]
    LANES_FIELD_NUMBER: _ClassVar[int]
    PATTERN_FIELD_NUMBER: _ClassVar[int]
    CHECKER_FIELD_NUMBER: _ClassVar[int]
    DURATION_S_FIELD_NUMBER: _ClassVar[int]
    TARGET_BER_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_RATIO_FIELD_NUMBER: _ClassVar[int]
    DONE_RATIO_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    END_TIME_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    ERROR_DETAIL_FIELD_NUMBER: _ClassVar[int]
    ERRORS_FIELD_NUMBER: _ClassVar[int]
    MARGINS_FIELD_NUMBER: _ClassVar[int]
    EYES_FIELD_NUMBER: _ClassVar[int]
    FEC_FIELD_NUMBER: _ClassVar[int]
    name: str
    kind: DiagKind
    state: DiagState
    verdict: DiagVerdict
    link: str
    lanes: _containers.RepeatedScalarFieldContainer[int]
    pattern: str
    checker: str
    duration_s: float
    target_ber: float
    confidence_ratio: float
    done_ratio: float
    text: str
    start_time: _timestamp_pb2.Timestamp
    end_time: _timestamp_pb2.Timestamp
    error: str
    error_detail: str
    errors: _containers.RepeatedCompositeFieldContainer[LaneErrors]
    margins: _containers.RepeatedCompositeFieldContainer[LaneMargin]
    eyes: _containers.RepeatedCompositeFieldContainer[LaneEye]
    fec: FecHistogram
    def __init__(self, name: _Optional[str] = ..., kind: _Optional[_Union[DiagKind, str]] = ..., state: _Optional[_Union[DiagState, str]] = ..., verdict: _Optional[_Union[DiagVerdict, str]] = ..., link: _Optional[str] = ..., lanes: _Optional[_Iterable[int]] = ..., pattern: _Optional[str] = ..., checker: _Optional[str] = ..., duration_s: _Optional[float] = ..., target_ber: _Optional[float] = ..., confidence_ratio: _Optional[float] = ..., done_ratio: _Optional[float] = ..., text: _Optional[str] = ..., start_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., end_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., error: _Optional[str] = ..., error_detail: _Optional[str] = ..., errors: _Optional[_Iterable[_Union[LaneErrors, _Mapping]]] = ..., margins: _Optional[_Iterable[_Union[LaneMargin, _Mapping]]] = ..., eyes: _Optional[_Iterable[_Union[LaneEye, _Mapping]]] = ..., fec: _Optional[_Union[FecHistogram, _Mapping]] = ...) -> None: ...

class StartDiagRequest(_message.Message):
    __slots__ = ("link", "kind", "lanes", "pattern", "checker", "duration", "target_ber", "confidence_ratio", "stop_early", "force")
    LINK_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    LANES_FIELD_NUMBER: _ClassVar[int]
    PATTERN_FIELD_NUMBER: _ClassVar[int]
    CHECKER_FIELD_NUMBER: _ClassVar[int]
    DURATION_FIELD_NUMBER: _ClassVar[int]
    TARGET_BER_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_RATIO_FIELD_NUMBER: _ClassVar[int]
    STOP_EARLY_FIELD_NUMBER: _ClassVar[int]
    FORCE_FIELD_NUMBER: _ClassVar[int]
    link: str
    kind: DiagKind
    lanes: _containers.RepeatedScalarFieldContainer[int]
    pattern: str
    checker: str
    duration: _duration_pb2.Duration
    target_ber: float
    confidence_ratio: float
    stop_early: bool
    force: bool
    def __init__(self, link: _Optional[str] = ..., kind: _Optional[_Union[DiagKind, str]] = ..., lanes: _Optional[_Iterable[int]] = ..., pattern: _Optional[str] = ..., checker: _Optional[str] = ..., duration: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., target_ber: _Optional[float] = ..., confidence_ratio: _Optional[float] = ..., stop_early: _Optional[bool] = ..., force: _Optional[bool] = ...) -> None: ...

class GetDiagRequest(_message.Message):
    __slots__ = ("name", "brief")
    NAME_FIELD_NUMBER: _ClassVar[int]
    BRIEF_FIELD_NUMBER: _ClassVar[int]
    name: str
    brief: bool
    def __init__(self, name: _Optional[str] = ..., brief: _Optional[bool] = ...) -> None: ...

class ListDiagsRequest(_message.Message):
    __slots__ = ("link", "page_size", "page_token")
    LINK_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    link: str
    page_size: int
    page_token: str
    def __init__(self, link: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListDiagsResponse(_message.Message):
    __slots__ = ("diags", "next_page_token")
    DIAGS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    diags: _containers.RepeatedCompositeFieldContainer[Diag]
    next_page_token: str
    def __init__(self, diags: _Optional[_Iterable[_Union[Diag, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class WatchDiagRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class CancelDiagRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...
