from accel.v1 import flag_pb2 as _flag_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Engine(_message.Message):
    __slots__ = ("name", "fitted_lanes", "lane_type", "modulation", "fec", "connector", "symbol_rate_gbd", "line_rate_gbit_per_s", "energy_pj_per_bit", "trace_loss_db", "lanes_lit_count", "lanes_los_count", "lanes_lol_count", "margin_min_db", "thresholds", "flags_active_count", "flags_latched_count", "flag_changes_total", "external_lasers")
    NAME_FIELD_NUMBER: _ClassVar[int]
    FITTED_LANES_FIELD_NUMBER: _ClassVar[int]
    LANE_TYPE_FIELD_NUMBER: _ClassVar[int]
    MODULATION_FIELD_NUMBER: _ClassVar[int]
    FEC_FIELD_NUMBER: _ClassVar[int]
    CONNECTOR_FIELD_NUMBER: _ClassVar[int]
    SYMBOL_RATE_GBD_FIELD_NUMBER: _ClassVar[int]
    LINE_RATE_GBIT_PER_S_FIELD_NUMBER: _ClassVar[int]
    ENERGY_PJ_PER_BIT_FIELD_NUMBER: _ClassVar[int]
    TRACE_LOSS_DB_FIELD_NUMBER: _ClassVar[int]
    LANES_LIT_COUNT_FIELD_NUMBER: _ClassVar[int]
    LANES_LOS_COUNT_FIELD_NUMBER: _ClassVar[int]
    LANES_LOL_COUNT_FIELD_NUMBER: _ClassVar[int]
    MARGIN_MIN_DB_FIELD_NUMBER: _ClassVar[int]
    THRESHOLDS_FIELD_NUMBER: _ClassVar[int]
    FLAGS_ACTIVE_COUNT_FIELD_NUMBER: _ClassVar[int]
    FLAGS_LATCHED_COUNT_FIELD_NUMBER: _ClassVar[int]
    FLAG_CHANGES_TOTAL_FIELD_NUMBER: _ClassVar[int]
    EXTERNAL_LASERS_FIELD_NUMBER: _ClassVar[int]
    name: str
    fitted_lanes: int
    lane_type: str
    modulation: str
    fec: str
    connector: str
    symbol_rate_gbd: float
    line_rate_gbit_per_s: float
    energy_pj_per_bit: float
    trace_loss_db: float
    lanes_lit_count: int
    lanes_los_count: int
    lanes_lol_count: int
    margin_min_db: float
    thresholds: _containers.RepeatedCompositeFieldContainer[_flag_pb2.Threshold]
    flags_active_count: int
    flags_latched_count: int
    flag_changes_total: int
    external_lasers: _containers.RepeatedCompositeFieldContainer[ExternalLaser]
    def __init__(self, name: _Optional[str] = ..., fitted_lanes: _Optional[int] = ..., lane_type: _Optional[str] = ..., modulation: _Optional[str] = ..., fec: _Optional[str] = ..., connector: _Optional[str] = ..., symbol_rate_gbd: _Optional[float] = ..., line_rate_gbit_per_s: _Optional[float] = ..., energy_pj_per_bit: _Optional[float] = ..., trace_loss_db: _Optional[float] = ..., lanes_lit_count: _Optional[int] = ..., lanes_los_count: _Optional[int] = ..., lanes_lol_count: _Optional[int] = ..., margin_min_db: _Optional[float] = ..., thresholds: _Optional[_Iterable[_Union[_flag_pb2.Threshold, _Mapping]]] = ..., flags_active_count: _Optional[int] = ..., flags_latched_count: _Optional[int] = ..., flag_changes_total: _Optional[int] = ..., external_lasers: _Optional[_Iterable[_Union[ExternalLaser, _Mapping]]] = ...) -> None: ...

class ExternalLaser(_message.Message):
    __slots__ = ("index", "lanes", "laser_temp_c", "tx_bias_ma", "laser_wear_ratio", "tec_current_ratio")
    INDEX_FIELD_NUMBER: _ClassVar[int]
    LANES_FIELD_NUMBER: _ClassVar[int]
    LASER_TEMP_C_FIELD_NUMBER: _ClassVar[int]
    TX_BIAS_MA_FIELD_NUMBER: _ClassVar[int]
    LASER_WEAR_RATIO_FIELD_NUMBER: _ClassVar[int]
    TEC_CURRENT_RATIO_FIELD_NUMBER: _ClassVar[int]
    index: int
    lanes: _containers.RepeatedScalarFieldContainer[int]
    laser_temp_c: float
    tx_bias_ma: float
    laser_wear_ratio: float
    tec_current_ratio: float
    def __init__(self, index: _Optional[int] = ..., lanes: _Optional[_Iterable[int]] = ..., laser_temp_c: _Optional[float] = ..., tx_bias_ma: _Optional[float] = ..., laser_wear_ratio: _Optional[float] = ..., tec_current_ratio: _Optional[float] = ...) -> None: ...

class Lane(_message.Message):
    __slots__ = ("name", "signal_line", "channel", "wavelength_nm", "tx_on", "tx_power_dbm", "tx_bias_ma", "rx_power_dbm", "los", "lol", "margin_db", "q", "pre_fec_ber", "carries_data", "peer_lane", "inverted", "rx_bits_total", "pre_fec_errors_total", "los_total", "lol_total", "snr_db", "laser_temp_c", "laser_wear_ratio", "tec_current_ratio", "heater_mw", "flags", "fec_corrected_symbols_total")
    NAME_FIELD_NUMBER: _ClassVar[int]
    SIGNAL_LINE_FIELD_NUMBER: _ClassVar[int]
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    WAVELENGTH_NM_FIELD_NUMBER: _ClassVar[int]
    TX_ON_FIELD_NUMBER: _ClassVar[int]
    TX_POWER_DBM_FIELD_NUMBER: _ClassVar[int]
    TX_BIAS_MA_FIELD_NUMBER: _ClassVar[int]
    RX_POWER_DBM_FIELD_NUMBER: _ClassVar[int]
    LOS_FIELD_NUMBER: _ClassVar[int]
    LOL_FIELD_NUMBER: _ClassVar[int]
    MARGIN_DB_FIELD_NUMBER: _ClassVar[int]
    Q_FIELD_NUMBER: _ClassVar[int]
    PRE_FEC_BER_FIELD_NUMBER: _ClassVar[int]
    CARRIES_DATA_FIELD_NUMBER: _ClassVar[int]
    PEER_LANE_FIELD_NUMBER: _ClassVar[int]
    INVERTED_FIELD_NUMBER: _ClassVar[int]
    RX_BITS_TOTAL_FIELD_NUMBER: _ClassVar[int]
    PRE_FEC_ERRORS_TOTAL_FIELD_NUMBER: _ClassVar[int]
    LOS_TOTAL_FIELD_NUMBER: _ClassVar[int]
    LOL_TOTAL_FIELD_NUMBER: _ClassVar[int]
    SNR_DB_FIELD_NUMBER: _ClassVar[int]
    LASER_TEMP_C_FIELD_NUMBER: _ClassVar[int]
    LASER_WEAR_RATIO_FIELD_NUMBER: _ClassVar[int]
    TEC_CURRENT_RATIO_FIELD_NUMBER: _ClassVar[int]
    HEATER_MW_FIELD_NUMBER: _ClassVar[int]
    FLAGS_FIELD_NUMBER: _ClassVar[int]
    FEC_CORRECTED_SYMBOLS_TOTAL_FIELD_NUMBER: _ClassVar[int]
    name: str
    signal_line: int
    channel: int
    wavelength_nm: float
    tx_on: bool
    tx_power_dbm: float
    tx_bias_ma: float
    rx_power_dbm: float
    los: bool
    lol: bool
    margin_db: float
    q: float
    pre_fec_ber: float
    carries_data: bool
    peer_lane: int
    inverted: bool
    rx_bits_total: float
    pre_fec_errors_total: int
    los_total: int
    lol_total: int
    snr_db: float
    laser_temp_c: float
    laser_wear_ratio: float
    tec_current_ratio: float
    heater_mw: float
    flags: _containers.RepeatedCompositeFieldContainer[_flag_pb2.Flag]
    fec_corrected_symbols_total: int
    def __init__(self, name: _Optional[str] = ..., signal_line: _Optional[int] = ..., channel: _Optional[int] = ..., wavelength_nm: _Optional[float] = ..., tx_on: _Optional[bool] = ..., tx_power_dbm: _Optional[float] = ..., tx_bias_ma: _Optional[float] = ..., rx_power_dbm: _Optional[float] = ..., los: _Optional[bool] = ..., lol: _Optional[bool] = ..., margin_db: _Optional[float] = ..., q: _Optional[float] = ..., pre_fec_ber: _Optional[float] = ..., carries_data: _Optional[bool] = ..., peer_lane: _Optional[int] = ..., inverted: _Optional[bool] = ..., rx_bits_total: _Optional[float] = ..., pre_fec_errors_total: _Optional[int] = ..., los_total: _Optional[int] = ..., lol_total: _Optional[int] = ..., snr_db: _Optional[float] = ..., laser_temp_c: _Optional[float] = ..., laser_wear_ratio: _Optional[float] = ..., tec_current_ratio: _Optional[float] = ..., heater_mw: _Optional[float] = ..., flags: _Optional[_Iterable[_Union[_flag_pb2.Flag, _Mapping]]] = ..., fec_corrected_symbols_total: _Optional[int] = ...) -> None: ...

class ListEnginesRequest(_message.Message):
    __slots__ = ("parent", "page_size", "page_token")
    PARENT_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    parent: str
    page_size: int
    page_token: str
    def __init__(self, parent: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListEnginesResponse(_message.Message):
    __slots__ = ("engines", "next_page_token")
    ENGINES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    engines: _containers.RepeatedCompositeFieldContainer[Engine]
    next_page_token: str
    def __init__(self, engines: _Optional[_Iterable[_Union[Engine, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class GetEngineRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class ListLanesRequest(_message.Message):
    __slots__ = ("parent", "page_size", "page_token")
    PARENT_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    parent: str
    page_size: int
    page_token: str
    def __init__(self, parent: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListLanesResponse(_message.Message):
    __slots__ = ("lanes", "next_page_token")
    LANES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    lanes: _containers.RepeatedCompositeFieldContainer[Lane]
    next_page_token: str
    def __init__(self, lanes: _Optional[_Iterable[_Union[Lane, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class GetLaneRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class ClearFlagsRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...
