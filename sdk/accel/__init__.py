"""The Python SDK of acceld: `Client` speaks to the daemon, errors say what went wrong.

from accel import Client

with Client() as client:
    client.regions.upload("weights.bin", "card0:weights", create=True)
    client.transfers.copy("card0:weights", "card1:weights", create=True)
"""

from accel.client import Client
from accel.errors import (
    AccelError,
    Cancelled,
    Conflict,
    DataLoss,
    Denied,
    Internal,
    InvalidRequest,
    LocalError,
    NoRoom,
    NotFound,
    SourceShrank,
    TimedOut,
    TooOld,
    TransferFailed,
    Unreachable,
    Unsupported,
    WrongState,
)
from accel.place import default_socket

__all__ = [
    "AccelError",
    "Cancelled",
    "Client",
    "Conflict",
    "DataLoss",
    "Denied",
    "Internal",
    "InvalidRequest",
    "LocalError",
    "NoRoom",
    "NotFound",
    "SourceShrank",
    "TimedOut",
    "TooOld",
    "TransferFailed",
    "Unreachable",
    "Unsupported",
    "WrongState",
    "default_socket",
]
