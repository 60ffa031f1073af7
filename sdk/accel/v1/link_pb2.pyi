import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class LinkState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    LINK_STATE_UNSPECIFIED: _ClassVar[LinkState]
    LINK_STATE_DOWN: _ClassVar[LinkState]
    LINK_STATE_SEEKING: _ClassVar[LinkState]
    LINK_STATE_TRAINING: _ClassVar[LinkState]
    LINK_STATE_UP: _ClassVar[LinkState]
    LINK_STATE_DEGRADED: _ClassVar[LinkState]
    LINK_STATE_FAILED: _ClassVar[LinkState]
LINK_STATE_UNSPECIFIED: LinkState
LINK_STATE_DOWN: LinkState
LINK_STATE_SEEKING: LinkState
LINK_STATE_TRAINING: LinkState
LINK_STATE_UP: LinkState
LINK_STATE_DEGRADED: LinkState
LINK_STATE_FAILED: LinkState

class LinkReason(_message.Message):
    __slots__ = ("code", "lane", "next_action", "lanes")
    CODE_FIELD_NUMBER: _ClassVar[int]
    LANE_FIELD_NUMBER: _ClassVar[int]
    NEXT_ACTION_FIELD_NUMBER: _ClassVar[int]
    LANES_FIELD_NUMBER: _ClassVar[int]
    code: str
    lane: int
    next_action: str
    lanes: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, code: _Optional[str] = ..., lane: _Optional[int] = ..., next_action: _Optional[str] = ..., lanes: _Optional[_Iterable[int]] = ...) -> None: ...

class Fibre(_message.Message):
    __slots__ = ("name", "transport", "length_m", "loss_db", "mtu_bytes", "interface", "netns")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TRANSPORT_FIELD_NUMBER: _ClassVar[int]
    LENGTH_M_FIELD_NUMBER: _ClassVar[int]
    LOSS_DB_FIELD_NUMBER: _ClassVar[int]
    MTU_BYTES_FIELD_NUMBER: _ClassVar[int]
    INTERFACE_FIELD_NUMBER: _ClassVar[int]
    NETNS_FIELD_NUMBER: _ClassVar[int]
    name: str
    transport: str
    length_m: float
    loss_db: float
    mtu_bytes: int
    interface: str
    netns: str
    def __init__(self, name: _Optional[str] = ..., transport: _Optional[str] = ..., length_m: _Optional[float] = ..., loss_db: _Optional[float] = ..., mtu_bytes: _Optional[int] = ..., interface: _Optional[str] = ..., netns: _Optional[str] = ...) -> None: ...

class LinkCounters(_message.Message):
    __slots__ = ("tx_frames_total", "tx_bytes_total", "rx_frames_total", "rx_bytes_total", "tx_payload_bytes_total", "rx_payload_bytes_total", "replayed_frames_total", "acks_sent_total", "acks_received_total", "nacks_sent_total", "nacks_received_total", "crc_errors_total", "malformed_frames_total", "foreign_frames_total", "stale_frames_total", "duplicate_frames_total", "missing_frames_total", "replay_timeouts_total", "tx_stalls_total", "in_flight_frames", "credit_frames")
    TX_FRAMES_TOTAL_FIELD_NUMBER: _ClassVar[int]
    TX_BYTES_TOTAL_FIELD_NUMBER: _ClassVar[int]
    RX_FRAMES_TOTAL_FIELD_NUMBER: _ClassVar[int]
    RX_BYTES_TOTAL_FIELD_NUMBER: _ClassVar[int]
    TX_PAYLOAD_BYTES_TOTAL_FIELD_NUMBER: _ClassVar[int]
    RX_PAYLOAD_BYTES_TOTAL_FIELD_NUMBER: _ClassVar[int]
    REPLAYED_FRAMES_TOTAL_FIELD_NUMBER: _ClassVar[int]
    ACKS_SENT_TOTAL_FIELD_NUMBER: _ClassVar[int]
    ACKS_RECEIVED_TOTAL_FIELD_NUMBER: _ClassVar[int]
    NACKS_SENT_TOTAL_FIELD_NUMBER: _ClassVar[int]
    NACKS_RECEIVED_TOTAL_FIELD_NUMBER: _ClassVar[int]
    CRC_ERRORS_TOTAL_FIELD_NUMBER: _ClassVar[int]
    MALFORMED_FRAMES_TOTAL_FIELD_NUMBER: _ClassVar[int]
    FOREIGN_FRAMES_TOTAL_FIELD_NUMBER: _ClassVar[int]
    STALE_FRAMES_TOTAL_FIELD_NUMBER: _ClassVar[int]
    DUPLICATE_FRAMES_TOTAL_FIELD_NUMBER: _ClassVar[int]
    MISSING_FRAMES_TOTAL_FIELD_NUMBER: _ClassVar[int]
    REPLAY_TIMEOUTS_TOTAL_FIELD_NUMBER: _ClassVar[int]
    TX_STALLS_TOTAL_FIELD_NUMBER: _ClassVar[int]
    IN_FLIGHT_FRAMES_FIELD_NUMBER: _ClassVar[int]
    CREDIT_FRAMES_FIELD_NUMBER: _ClassVar[int]
    tx_frames_total: int
    tx_bytes_total: int
    rx_frames_total: int
    rx_bytes_total: int
    tx_payload_bytes_total: int
    rx_payload_bytes_total: int
    replayed_frames_total: int
    acks_sent_total: int
    acks_received_total: int
    nacks_sent_total: int
    nacks_received_total: int
    crc_errors_total: int
    malformed_frames_total: int
    foreign_frames_total: int
    stale_frames_total: int
    duplicate_frames_total: int
    missing_frames_total: int
    replay_timeouts_total: int
    tx_stalls_total: int
    in_flight_frames: int
    credit_frames: int
    def __init__(self, tx_frames_total: _Optional[int] = ..., tx_bytes_total: _Optional[int] = ..., rx_frames_total: _Optional[int] = ..., rx_bytes_total: _Optional[int] = ..., tx_payload_bytes_total: _Optional[int] = ..., rx_payload_bytes_total: _Optional[int] = ..., replayed_frames_total: _Optional[int] = ..., acks_sent_total: _Optional[int] = ..., acks_received_total: _Optional[int] = ..., nacks_sent_total: _Optional[int] = ..., nacks_received_total: _Optional[int] = ..., crc_errors_total: _Optional[int] = ..., malformed_frames_total: _Optional[int] = ..., foreign_frames_total: _Optional[int] = ..., stale_frames_total: _Optional[int] = ..., duplicate_frames_total: _Optional[int] = ..., missing_frames_total: _Optional[int] = ..., replay_timeouts_total: _Optional[int] = ..., tx_stalls_total: _Optional[int] = ..., in_flight_frames: _Optional[int] = ..., credit_frames: _Optional[int] = ...) -> None: ...

class LinkFec(_message.Message):
    __slots__ = ("codewords_total", "corrected_bits_total", "corrected_symbols_total", "uncorrectable_codewords_total", "lock_losses_total", "correctable_symbols", "bins", "predicted_frame_loss_ratio")
    CODEWORDS_TOTAL_FIELD_NUMBER: _ClassVar[int]
    CORRECTED_BITS_TOTAL_FIELD_NUMBER: _ClassVar[int]
    CORRECTED_SYMBOLS_TOTAL_FIELD_NUMBER: _ClassVar[int]
    UNCORRECTABLE_CODEWORDS_TOTAL_FIELD_NUMBER: _ClassVar[int]
    LOCK_LOSSES_TOTAL_FIELD_NUMBER: _ClassVar[int]
    CORRECTABLE_SYMBOLS_FIELD_NUMBER: _ClassVar[int]
    BINS_FIELD_NUMBER: _ClassVar[int]
    PREDICTED_FRAME_LOSS_RATIO_FIELD_NUMBER: _ClassVar[int]
    codewords_total: int
    corrected_bits_total: int
    corrected_symbols_total: int
    uncorrectable_codewords_total: int
    lock_losses_total: int
    correctable_symbols: int
    bins: _containers.RepeatedScalarFieldContainer[int]
    predicted_frame_loss_ratio: float
    def __init__(self, codewords_total: _Optional[int] = ..., corrected_bits_total: _Optional[int] = ..., corrected_symbols_total: _Optional[int] = ..., uncorrectable_codewords_total: _Optional[int] = ..., lock_losses_total: _Optional[int] = ..., correctable_symbols: _Optional[int] = ..., bins: _Optional[_Iterable[int]] = ..., predicted_frame_loss_ratio: _Optional[float] = ...) -> None: ...

class Link(_message.Message):
    __slots__ = ("name", "state", "phase", "admin_up", "peer", "peer_chassis", "width_lanes", "fitted_lanes", "capacity_gbit_per_s", "modulation", "fec", "reason", "peer_reason", "fibre", "epoch", "up_time", "training_ms", "rtt_us", "trainings_total", "training_failures_total", "downs_total", "counters", "margin_min_db", "pre_fec_ber_max", "mode", "recoveries_total", "recovery_failures_total", "flaps_total", "flaps_damped_total", "fallbacks_total", "equaliser_requests_total", "full_width_lanes", "fec_counters")
    NAME_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    PHASE_FIELD_NUMBER: _ClassVar[int]
    ADMIN_UP_FIELD_NUMBER: _ClassVar[int]
    PEER_FIELD_NUMBER: _ClassVar[int]
    PEER_CHASSIS_FIELD_NUMBER: _ClassVar[int]
    WIDTH_LANES_FIELD_NUMBER: _ClassVar[int]
    FITTED_LANES_FIELD_NUMBER: _ClassVar[int]
    CAPACITY_GBIT_PER_S_FIELD_NUMBER: _ClassVar[int]
    MODULATION_FIELD_NUMBER: _ClassVar[int]
    FEC_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    PEER_REASON_FIELD_NUMBER: _ClassVar[int]
    FIBRE_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    UP_TIME_FIELD_NUMBER: _ClassVar[int]
    TRAINING_MS_FIELD_NUMBER: _ClassVar[int]
    RTT_US_FIELD_NUMBER: _ClassVar[int]
    TRAININGS_TOTAL_FIELD_NUMBER: _ClassVar[int]
    TRAINING_FAILURES_TOTAL_FIELD_NUMBER: _ClassVar[int]
    DOWNS_TOTAL_FIELD_NUMBER: _ClassVar[int]
    COUNTERS_FIELD_NUMBER: _ClassVar[int]
    MARGIN_MIN_DB_FIELD_NUMBER: _ClassVar[int]
    PRE_FEC_BER_MAX_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    RECOVERIES_TOTAL_FIELD_NUMBER: _ClassVar[int]
    RECOVERY_FAILURES_TOTAL_FIELD_NUMBER: _ClassVar[int]
    FLAPS_TOTAL_FIELD_NUMBER: _ClassVar[int]
    FLAPS_DAMPED_TOTAL_FIELD_NUMBER: _ClassVar[int]
    FALLBACKS_TOTAL_FIELD_NUMBER: _ClassVar[int]
    EQUALISER_REQUESTS_TOTAL_FIELD_NUMBER: _ClassVar[int]
    FULL_WIDTH_LANES_FIELD_NUMBER: _ClassVar[int]
    FEC_COUNTERS_FIELD_NUMBER: _ClassVar[int]
    name: str
    state: LinkState
    phase: str
    admin_up: bool
    peer: str
    peer_chassis: str
    width_lanes: int
    fitted_lanes: int
    capacity_gbit_per_s: float
    modulation: str
    fec: str
    reason: LinkReason
    peer_reason: LinkReason
    fibre: Fibre
    epoch: int
    up_time: _timestamp_pb2.Timestamp
    training_ms: float
    rtt_us: float
    trainings_total: int
    training_failures_total: int
    downs_total: int
    counters: LinkCounters
    margin_min_db: float
    pre_fec_ber_max: float
    mode: str
    recoveries_total: int
    recovery_failures_total: int
    flaps_total: int
    flaps_damped_total: int
    fallbacks_total: int
    equaliser_requests_total: int
    full_width_lanes: int
    fec_counters: LinkFec
    def __init__(self, name: _Optional[str] = ..., state: _Optional[_Union[LinkState, str]] = ..., phase: _Optional[str] = ..., admin_up: _Optional[bool] = ..., peer: _Optional[str] = ..., peer_chassis: _Optional[str] = ..., width_lanes: _Optional[int] = ..., fitted_lanes: _Optional[int] = ..., capacity_gbit_per_s: _Optional[float] = ..., modulation: _Optional[str] = ..., fec: _Optional[str] = ..., reason: _Optional[_Union[LinkReason, _Mapping]] = ..., peer_reason: _Optional[_Union[LinkReason, _Mapping]] = ..., fibre: _Optional[_Union[Fibre, _Mapping]] = ..., epoch: _Optional[int] = ..., up_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., training_ms: _Optional[float] = ..., rtt_us: _Optional[float] = ..., trainings_total: _Optional[int] = ..., training_failures_total: _Optional[int] = ..., downs_total: _Optional[int] = ..., counters: _Optional[_Union[LinkCounters, _Mapping]] = ..., margin_min_db: _Optional[float] = ..., pre_fec_ber_max: _Optional[float] = ..., mode: _Optional[str] = ..., recoveries_total: _Optional[int] = ..., recovery_failures_total: _Optional[int] = ..., flaps_total: _Optional[int] = ..., flaps_damped_total: _Optional[int] = ..., fallbacks_total: _Optional[int] = ..., equaliser_requests_total: _Optional[int] = ..., full_width_lanes: _Optional[int] = ..., fec_counters: _Optional[_Union[LinkFec, _Mapping]] = ...) -> None: ...

class ListLinksRequest(_message.Message):
    __slots__ = ("parent", "page_size", "page_token")
    PARENT_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    parent: str
    page_size: int
    page_token: str
    def __init__(self, parent: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListLinksResponse(_message.Message):
    __slots__ = ("links", "next_page_token")
    LINKS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    links: _containers.RepeatedCompositeFieldContainer[Link]
    next_page_token: str
    def __init__(self, links: _Optional[_Iterable[_Union[Link, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class GetLinkRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class SetLinkAdminRequest(_message.Message):
    __slots__ = ("name", "up")
    NAME_FIELD_NUMBER: _ClassVar[int]
    UP_FIELD_NUMBER: _ClassVar[int]
    name: str
    up: bool
    def __init__(self, name: _Optional[str] = ..., up: _Optional[bool] = ...) -> None: ...

class TrainLinkRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class TrainLinkProgress(_message.Message):
    __slots__ = ("state", "phase", "lane", "text", "link")
    STATE_FIELD_NUMBER: _ClassVar[int]
    PHASE_FIELD_NUMBER: _ClassVar[int]
    LANE_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    LINK_FIELD_NUMBER: _ClassVar[int]
    state: LinkState
    phase: str
    lane: int
    text: str
    link: Link
    def __init__(self, state: _Optional[_Union[LinkState, str]] = ..., phase: _Optional[str] = ..., lane: _Optional[int] = ..., text: _Optional[str] = ..., link: _Optional[_Union[Link, _Mapping]] = ...) -> None: ...

class WatchLinksRequest(_message.Message):
    __slots__ = ("parent",)
    PARENT_FIELD_NUMBER: _ClassVar[int]
    parent: str
    def __init__(self, parent: _Optional[str] = ...) -> None: ...

class Channel(_message.Message):
    __slots__ = ("channel", "signal_line", "oe", "lane", "peer_lane", "inverted", "carries_data")
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    SIGNAL_LINE_FIELD_NUMBER: _ClassVar[int]
    OE_FIELD_NUMBER: _ClassVar[int]
    LANE_FIELD_NUMBER: _ClassVar[int]
    PEER_LANE_FIELD_NUMBER: _ClassVar[int]
    INVERTED_FIELD_NUMBER: _ClassVar[int]
    CARRIES_DATA_FIELD_NUMBER: _ClassVar[int]
    channel: int
    signal_line: int
    oe: int
    lane: int
    peer_lane: int
    inverted: bool
    carries_data: bool
    def __init__(self, channel: _Optional[int] = ..., signal_line: _Optional[int] = ..., oe: _Optional[int] = ..., lane: _Optional[int] = ..., peer_lane: _Optional[int] = ..., inverted: _Optional[bool] = ..., carries_data: _Optional[bool] = ...) -> None: ...

class ChannelMap(_message.Message):
    __slots__ = ("name", "channels")
    NAME_FIELD_NUMBER: _ClassVar[int]
    CHANNELS_FIELD_NUMBER: _ClassVar[int]
    name: str
    channels: _containers.RepeatedCompositeFieldContainer[Channel]
    def __init__(self, name: _Optional[str] = ..., channels: _Optional[_Iterable[_Union[Channel, _Mapping]]] = ...) -> None: ...

class GetChannelMapRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class UpdateChannelMapRequest(_message.Message):
    __slots__ = ("name", "channels")
    NAME_FIELD_NUMBER: _ClassVar[int]
    CHANNELS_FIELD_NUMBER: _ClassVar[int]
    name: str
    channels: _containers.RepeatedCompositeFieldContainer[Channel]
    def __init__(self, name: _Optional[str] = ..., channels: _Optional[_Iterable[_Union[Channel, _Mapping]]] = ...) -> None: ...
