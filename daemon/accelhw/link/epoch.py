"""The number that marks the frames of one life of a link."""

from __future__ import annotations

from accelhw.model.link import PeerId
from accelhw.wire.checksum import crc32c
from accelhw.wire.identity import pack_peer

End = tuple[PeerId, int]  # who, and the session of its training


def link_epoch(one: End, other: End) -> int:
    """The same number at both ends, another one for each pair of sessions, and never 0."""
    ends = sorted(pack_peer(who) + session.to_bytes(8, "big") for who, session in (one, other))
    return crc32c(b"".join(ends)) or 1
