"""Links: a port, its fibre, and the peer that answers; seen from each end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from accel.address import CardAddress, PortAddress
from accel.v1 import link_pb2, link_pb2_grpc
from accel.wire import Wire


class Links:
    """Links; most methods give `accel.v1.Link`s."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._stub = link_pb2_grpc.LinkServiceStub(wire.channel)

    def list(self, card: str | None = None) -> Iterator[link_pb2.Link]:
        """Of one card, or of all."""
        request = link_pb2.ListLinksRequest(parent=_parent(card))
        return self._wire.pages(self._stub.ListLinks, request, "links")

    def get(self, port: str) -> link_pb2.Link:
        request = link_pb2.GetLinkRequest(name=PortAddress.parse(port).link_name)
        answer: link_pb2.Link = self._wire.call(self._stub.GetLink, request)
        return answer

    def set_admin(self, port: str, up: bool) -> link_pb2.Link:
        """Switches the port's lasers on or off; gives the link as it is right after."""
        request = link_pb2.SetLinkAdminRequest(name=PortAddress.parse(port).link_name, up=up)
        answer: link_pb2.Link = self._wire.call(self._stub.SetLinkAdmin, request)
        return answer

    def train(self, port: str) -> Iterator[link_pb2.TrainLinkProgress]:
        """Trains again; each step as it happens, the link itself in the last one."""
        request = link_pb2.TrainLinkRequest(name=PortAddress.parse(port).link_name)
        return self._wire.stream(self._stub.TrainLink, request)

    def watch(self, card: str | None = None) -> Iterator[link_pb2.Link]:
        """All links once, then each link that changed, without end."""
        request = link_pb2.WatchLinksRequest(parent=_parent(card))
        return self._wire.stream(self._stub.WatchLinks, request)

    def channel_map(self, card: str) -> link_pb2.ChannelMap:
        request = link_pb2.GetChannelMapRequest(name=CardAddress.parse(card).channel_map_name)
        answer: link_pb2.ChannelMap = self._wire.call(self._stub.GetChannelMap, request)
        return answer

    def set_channels(self, card: str, lines: Mapping[int, int]) -> link_pb2.ChannelMap:
        """Moves channels onto signal lines (`{3: 12}`); whoever was there takes the old line."""
        channels = [
            link_pb2.Channel(channel=channel, signal_line=line)
            for channel, line in sorted(lines.items())
        ]
        request = link_pb2.UpdateChannelMapRequest(
            name=CardAddress.parse(card).channel_map_name, channels=channels
        )
        answer: link_pb2.ChannelMap = self._wire.call(self._stub.UpdateChannelMap, request)
        return answer


def _parent(card: str | None) -> str:
    return CardAddress.parse(card).name if card else "cards/-"
