"""The fake daemon's services for what a rack is made of: cards, links, optics, events, the host."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from accel.v1 import (
    card_pb2,
    card_pb2_grpc,
    event_pb2,
    event_pb2_grpc,
    flag_pb2,
    host_pb2,
    host_pb2_grpc,
    link_pb2,
    link_pb2_grpc,
    optics_pb2,
    optics_pb2_grpc,
)

from .fake_canned import MIB, stamp
from .fake_servicer import Servicer, refuse


def clear(flags: Iterable[flag_pb2.Flag]) -> None:
    for one in flags:
        one.latched = one.active


class CardServicer(Servicer, card_pb2_grpc.CardServiceServicer):
    def ListCards(self, request: Any, context: Any) -> Any:
        self.state.on_answer.get("ListCards", int)()
        cards, token = self.page(self.state.cards, request)
        return card_pb2.ListCardsResponse(cards=cards, next_page_token=token)

    def GetCard(self, request: Any, context: Any) -> Any:
        return self.find(self.state.cards, request.name, "card", context)

    def ResetCard(self, request: Any, context: Any) -> Any:
        card = self.find(self.state.cards, request.name, "card", context)
        card.state = card_pb2.CARD_STATE_RESETTING
        card.resets_total += 1
        return card

    def ClearCardFlags(self, request: Any, context: Any) -> Any:
        card = self.find(self.state.cards, request.name, "card", context)
        clear(card.flags)
        return card


class LinkServicer(Servicer, link_pb2_grpc.LinkServiceServicer):
    def ListLinks(self, request: Any, context: Any) -> Any:
        links = self.of(request.parent, context)
        links, token = self.page(links, request)
        return link_pb2.ListLinksResponse(links=links, next_page_token=token)

    def of(self, parent: str, context: Any) -> list[Any]:
        if parent in ("", "cards/-"):
            return self.state.links
        self.find(self.state.cards, parent, "card", context)
        return [link for link in self.state.links if link.name.startswith(parent + "/")]

    def GetLink(self, request: Any, context: Any) -> Any:
        return self.find(self.state.links, request.name, "link", context)

    def SetLinkAdmin(self, request: Any, context: Any) -> Any:
        link = self.find(self.state.links, request.name, "link", context)
        link.admin_up = request.up
        link.state = link_pb2.LINK_STATE_SEEKING if request.up else link_pb2.LINK_STATE_DOWN
        return link

    def TrainLink(self, request: Any, context: Any) -> Any:
        link = self.find(self.state.links, request.name, "link", context)
        for state, phase, lane, text in (
            ("SEEKING", "SEEK", None, "light out, waiting for the peer"),
            ("TRAINING", "LOCK", 0, "locked"),
            ("TRAINING", "LOCK", 1, "locked"),
            ("TRAINING", "LOCK", 3, "locked"),
            ("TRAINING", "LOCK", 2, "locked"),
            ("TRAINING", "MAP", 2, "arrives from far lane 1, inverted"),
        ):
            yield link_pb2.TrainLinkProgress(
                state=f"LINK_STATE_{state}", phase=phase, lane=lane, text=text
            )
        link.state = link_pb2.LinkState.Value(f"LINK_STATE_{self.state.training_end}")
        yield link_pb2.TrainLinkProgress(state=link.state, phase="ACTIVE", text="done", link=link)

    def GetChannelMap(self, request: Any, context: Any) -> Any:
        card = request.name.removesuffix("/channelMap")
        self.find(self.state.cards, card, "card", context)
        return link_pb2.ChannelMap(name=request.name, channels=self.state.channels)

    def UpdateChannelMap(self, request: Any, context: Any) -> Any:
        by_channel = {c.channel: c for c in self.state.channels}
        for wanted in request.channels:
            mine = by_channel.get(wanted.channel)
            other = next(
                (c for c in self.state.channels if c.signal_line == wanted.signal_line), None
            )
            if mine is None or other is None:
                refuse(context, "INVALID_ARGUMENT", "CHANNEL_MAP_INVALID", "lines are 0 to 7")
            for name in ("signal_line", "oe", "lane"):
                was = getattr(mine, name)
                setattr(mine, name, getattr(other, name))
                setattr(other, name, was)
        return link_pb2.ChannelMap(name=request.name, channels=self.state.channels)


class OpticsServicer(Servicer, optics_pb2_grpc.OpticsServiceServicer):
    def ListEngines(self, request: Any, context: Any) -> Any:
        parent = "" if request.parent == "cards/-" else request.parent + "/"
        found = [e for e in self.state.engines if e.name.startswith(parent)]
        engines, token = self.page(found, request)
        return optics_pb2.ListEnginesResponse(engines=engines, next_page_token=token)

    def GetEngine(self, request: Any, context: Any) -> Any:
        return self.find(self.state.engines, request.name, "engine", context)

    def ListLanes(self, request: Any, context: Any) -> Any:
        parts = request.parent.split("/")
        found = [
            lane
            for lane in self.state.lanes
            if all(
                want in ("-", have) for want, have in zip(parts, lane.name.split("/"), strict=False)
            )
        ]
        lanes, token = self.page(found, request)
        return optics_pb2.ListLanesResponse(lanes=lanes, next_page_token=token)

    def GetLane(self, request: Any, context: Any) -> Any:
        return self.find(self.state.lanes, request.name, "lane", context)

    def ClearFlags(self, request: Any, context: Any) -> Any:
        engine = self.find(self.state.engines, request.name, "engine", context)
        lanes = [lane for lane in self.state.lanes if lane.name.startswith(f"{request.name}/")]
        for lane in lanes:
            clear(lane.flags)
        engine.flags_latched_count = sum(f.latched for lane in lanes for f in lane.flags)
        return engine


class EventServicer(Servicer, event_pb2_grpc.EventServiceServicer):
    def ListEvents(self, request: Any, context: Any) -> Any:
        found = [
            e
            for e in self.state.events
            if e.severity >= request.min_severity
            and e.subject.startswith(request.subject)
            and (not request.kinds or e.kind in request.kinds)
            and e.time.ToNanoseconds() >= request.since_time.ToNanoseconds()
        ]
        events, token = self.page(found[::-1] if request.descending else found, request)
        return event_pb2.ListEventsResponse(
            events=events,
            next_page_token=token,
            newest_revision=self.state.events[-1].revision,
        )

    def WatchEvents(self, request: Any, context: Any) -> Any:
        if request.after_revision == 999:
            refuse(
                context, "OUT_OF_RANGE", "REVISION_TOO_OLD", "revision 999 is gone; begin at 1000"
            )
        after = (
            request.after_revision if request.HasField("after_revision") else len(self.state.events)
        )
        yield from (e for e in self.state.events if e.revision > after)
        refuse(context, "FAILED_PRECONDITION", "SCRIPT_ENDED", "the fake has no more events")


class HostServicer(Servicer, host_pb2_grpc.HostServiceServicer):
    def GetHost(self, request: Any, context: Any) -> Any:
        return host_pb2.Host(
            version="0.1.0",
            emulated=True,
            daemon_pid=4711,
            daemon_start_time=stamp(3),
            chassis_boot_id="9c3e55d1a7f00b42",
            chassis_pid=4700,
            chassis_start_time=stamp(0),
            chassis_attached=self.state.attached,
            hbm_budget_bytes=16 << 30,
            hbm_allocated_bytes=MIB + 8192,
            workers=[
                host_pb2.Worker(index=i, pid=4701 + i, alive=True, cards=[f"cards/card{i}"])
                for i in (0, 1)
            ],
            card_count=2,
            link_count=4,
            links_up_count=2,
            transfers_running_count=1,
            metrics_address=self.state.metrics_address,
            newest_event_revision=5,
        )
