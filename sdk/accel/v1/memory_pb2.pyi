import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Region(_message.Message):
    __slots__ = ("name", "card", "region_id", "key", "address", "size_bytes", "create_time", "transfers_running_count")
    NAME_FIELD_NUMBER: _ClassVar[int]
    CARD_FIELD_NUMBER: _ClassVar[int]
    REGION_ID_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    TRANSFERS_RUNNING_COUNT_FIELD_NUMBER: _ClassVar[int]
    name: str
    card: str
    region_id: int
    key: int
    address: int
    size_bytes: int
    create_time: _timestamp_pb2.Timestamp
    transfers_running_count: int
    def __init__(self, name: _Optional[str] = ..., card: _Optional[str] = ..., region_id: _Optional[int] = ..., key: _Optional[int] = ..., address: _Optional[int] = ..., size_bytes: _Optional[int] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., transfers_running_count: _Optional[int] = ...) -> None: ...

class ListRegionsRequest(_message.Message):
    __slots__ = ("parent", "page_size", "page_token")
    PARENT_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    parent: str
    page_size: int
    page_token: str
    def __init__(self, parent: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListRegionsResponse(_message.Message):
    __slots__ = ("regions", "next_page_token")
    REGIONS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    regions: _containers.RepeatedCompositeFieldContainer[Region]
    next_page_token: str
    def __init__(self, regions: _Optional[_Iterable[_Union[Region, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class GetRegionRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class CreateRegionRequest(_message.Message):
    __slots__ = ("parent", "region_id", "size_bytes", "alignment_bytes", "address")
    PARENT_FIELD_NUMBER: _ClassVar[int]
    REGION_ID_FIELD_NUMBER: _ClassVar[int]
    SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    ALIGNMENT_BYTES_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    parent: str
    region_id: str
    size_bytes: int
    alignment_bytes: int
    address: int
    def __init__(self, parent: _Optional[str] = ..., region_id: _Optional[str] = ..., size_bytes: _Optional[int] = ..., alignment_bytes: _Optional[int] = ..., address: _Optional[int] = ...) -> None: ...

class DeleteRegionRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class DeleteRegionResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class FillRegionRequest(_message.Message):
    __slots__ = ("name", "offset", "length", "byte", "random_seed")
    NAME_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    LENGTH_FIELD_NUMBER: _ClassVar[int]
    BYTE_FIELD_NUMBER: _ClassVar[int]
    RANDOM_SEED_FIELD_NUMBER: _ClassVar[int]
    name: str
    offset: int
    length: int
    byte: int
    random_seed: int
    def __init__(self, name: _Optional[str] = ..., offset: _Optional[int] = ..., length: _Optional[int] = ..., byte: _Optional[int] = ..., random_seed: _Optional[int] = ...) -> None: ...

class ChecksumRegionRequest(_message.Message):
    __slots__ = ("name", "offset", "length")
    NAME_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    LENGTH_FIELD_NUMBER: _ClassVar[int]
    name: str
    offset: int
    length: int
    def __init__(self, name: _Optional[str] = ..., offset: _Optional[int] = ..., length: _Optional[int] = ...) -> None: ...

class MemoryProgress(_message.Message):
    __slots__ = ("done_bytes", "total_bytes", "done", "sha256", "crc32c")
    DONE_BYTES_FIELD_NUMBER: _ClassVar[int]
    TOTAL_BYTES_FIELD_NUMBER: _ClassVar[int]
    DONE_FIELD_NUMBER: _ClassVar[int]
    SHA256_FIELD_NUMBER: _ClassVar[int]
    CRC32C_FIELD_NUMBER: _ClassVar[int]
    done_bytes: int
    total_bytes: int
    done: bool
    sha256: str
    crc32c: int
    def __init__(self, done_bytes: _Optional[int] = ..., total_bytes: _Optional[int] = ..., done: _Optional[bool] = ..., sha256: _Optional[str] = ..., crc32c: _Optional[int] = ...) -> None: ...

class WriteRegionRequest(_message.Message):
    __slots__ = ("header", "data")
    class Header(_message.Message):
        __slots__ = ("name", "offset", "length")
        NAME_FIELD_NUMBER: _ClassVar[int]
        OFFSET_FIELD_NUMBER: _ClassVar[int]
        LENGTH_FIELD_NUMBER: _ClassVar[int]
        name: str
        offset: int
        length: int
        def __init__(self, name: _Optional[str] = ..., offset: _Optional[int] = ..., length: _Optional[int] = ...) -> None: ...
    HEADER_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    header: WriteRegionRequest.Header
    data: bytes
    def __init__(self, header: _Optional[_Union[WriteRegionRequest.Header, _Mapping]] = ..., data: _Optional[bytes] = ...) -> None: ...

class WriteRegionResponse(_message.Message):
    __slots__ = ("written_bytes", "crc32c")
    WRITTEN_BYTES_FIELD_NUMBER: _ClassVar[int]
    CRC32C_FIELD_NUMBER: _ClassVar[int]
    written_bytes: int
    crc32c: int
    def __init__(self, written_bytes: _Optional[int] = ..., crc32c: _Optional[int] = ...) -> None: ...

class ReadRegionRequest(_message.Message):
    __slots__ = ("name", "offset", "length")
    NAME_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    LENGTH_FIELD_NUMBER: _ClassVar[int]
    name: str
    offset: int
    length: int
    def __init__(self, name: _Optional[str] = ..., offset: _Optional[int] = ..., length: _Optional[int] = ...) -> None: ...

class ReadRegionResponse(_message.Message):
    __slots__ = ("data",)
    DATA_FIELD_NUMBER: _ClassVar[int]
    data: bytes
    def __init__(self, data: _Optional[bytes] = ...) -> None: ...

class MapRegionRequest(_message.Message):
    __slots__ = ("name", "writable")
    NAME_FIELD_NUMBER: _ClassVar[int]
    WRITABLE_FIELD_NUMBER: _ClassVar[int]
    name: str
    writable: bool
    def __init__(self, name: _Optional[str] = ..., writable: _Optional[bool] = ...) -> None: ...

class MapRegionResponse(_message.Message):
    __slots__ = ("socket_path", "token", "address", "size_bytes")
    SOCKET_PATH_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    socket_path: str
    token: str
    address: int
    size_bytes: int
    def __init__(self, socket_path: _Optional[str] = ..., token: _Optional[str] = ..., address: _Optional[int] = ..., size_bytes: _Optional[int] = ...) -> None: ...
