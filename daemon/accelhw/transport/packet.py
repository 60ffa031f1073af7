"""Frames over a network interface (one end of a veth pair, or any other) by a packet socket."""

from __future__ import annotations

import ctypes
import socket
import struct

from accelhw.transport.sockets import SocketTransport
from accelhw.wire.frame import (
    CHANNEL_SHIFT,
    CHANNELS_MAX,
    ETHERNET_BYTES,
    ETHERTYPE,
    FLAGS_AT,
    MAGIC,
)

RECEIVE_BUFFER_BYTES = 16 << 20  # asked for; what the kernel granted decides the credits
# Of a virtual channel: what is in flight should fit in a CPU's cache with room for the rest.
CHANNEL_BUFFER_BYTES = 8 << 20
_SOL_PACKET = 263
_PACKET_IGNORE_OUTGOING = 23
_SO_SNDBUFFORCE = 32
_SO_RCVBUFFORCE = 33
_SO_ATTACH_FILTER = 26
_SKB_BYTES = 1024  # socket buffer and shared info, with some to spare
_PIECE_BYTES = 32768  # the kernel builds large frames from pieces of this size


def open_packet(interface: str, channel: int = 0) -> int:
    """A socket bound to the interface, for PacketTransport. Needs CAP_NET_RAW; raises OSError.

    It hears the frames of one virtual channel; that of channel 0 also what is no frame of ours.
    """
    receive_buffer_bytes = CHANNEL_BUFFER_BYTES if channel else RECEIVE_BUFFER_BYTES
    # Protocol 0 hears nothing until bind() names the interface and the EtherType together.
    opened = socket.socket(socket.AF_PACKET, socket.SOCK_RAW | socket.SOCK_NONBLOCK, 0)
    try:
        opened.setsockopt(_SOL_PACKET, _PACKET_IGNORE_OUTGOING, 1)
        _hear_only(opened, channel)
        for force, plain in (
            (_SO_RCVBUFFORCE, socket.SO_RCVBUF),
            (_SO_SNDBUFFORCE, socket.SO_SNDBUF),
        ):
            try:
                opened.setsockopt(socket.SOL_SOCKET, force, receive_buffer_bytes // 2)
            except PermissionError:
                opened.setsockopt(socket.SOL_SOCKET, plain, receive_buffer_bytes // 2)
        opened.bind((interface, ETHERTYPE))
    except OSError:
        opened.close()
        raise
    return opened.detach()


def _hear_only(opened: socket.socket, channel: int) -> None:
    """A filter of classic BPF (linux/filter.h) in the kernel: each channel has its own reader."""
    others = _others_program() if channel == 0 else _one_program(channel)
    code = b"".join(struct.pack("=HBBI", *step) for step in others)
    kept = ctypes.create_string_buffer(code, len(code))  # read while the option is set
    program = struct.pack("@HP", len(others), ctypes.addressof(kept))
    opened.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, program)


# Opcode, jump if true, jump if false, operand.
_Step = tuple[int, int, int, int]
_LOAD_LENGTH, _LOAD_HALF, _LOAD_BYTE, _SHIFT_RIGHT = 0x80, 0x28, 0x30, 0x74
_IF_EQUAL, _IF_GREATER, _RETURN = 0x15, 0x25, 0x06
_ALL, _NONE = (_RETURN, 0, 0, 0xFFFFFFFF), (_RETURN, 0, 0, 0)


def _one_program(channel: int) -> list[_Step]:
    return [
        (_LOAD_HALF, 0, 0, ETHERNET_BYTES),
        (_IF_EQUAL, 0, 4, MAGIC),
        (_LOAD_BYTE, 0, 0, FLAGS_AT),
        (_SHIFT_RIGHT, 0, 0, CHANNEL_SHIFT),
        (_IF_EQUAL, 0, 1, channel),
        _ALL,
        _NONE,
    ]


def _others_program() -> list[_Step]:
    """All but frames of the channels 1 to CHANNELS_MAX; also noise too short to have flags."""
    return [
        (_LOAD_LENGTH, 0, 0, 0),
        (_IF_GREATER, 0, 6, FLAGS_AT),
        (_LOAD_HALF, 0, 0, ETHERNET_BYTES),
        (_IF_EQUAL, 0, 4, MAGIC),
        (_LOAD_BYTE, 0, 0, FLAGS_AT),
        (_SHIFT_RIGHT, 0, 0, CHANNEL_SHIFT),
        (_IF_EQUAL, 1, 0, 0),
        (_IF_GREATER, 0, 1, CHANNELS_MAX),
        _ALL,
        _NONE,
    ]


def frames_that_fit(buffer_bytes: int, mtu: int) -> int:
    """How many frames of full size a receive buffer holds, by what the kernel charges for one."""
    frame_bytes = mtu + ETHERNET_BYTES
    pieces = -(-frame_bytes // _PIECE_BYTES) if frame_bytes > 4096 else 0
    charged = _SKB_BYTES + (pieces * _PIECE_BYTES if pieces else 2 * frame_bytes)
    # A quarter stays free for acknowledgements, light and training, which no credit covers.
    return max(1, buffer_bytes * 3 // 4 // charged)


class PacketTransport(SocketTransport):
    """One end of a fibre on an interface. Takes over `fd` from open_packet."""

    __slots__ = ()

    def __init__(self, fd: int, mtu: int) -> None:
        opened = socket.socket(fileno=fd)
        granted_bytes = opened.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)
        super().__init__(opened, mtu, frames_that_fit(granted_bytes, mtu))
