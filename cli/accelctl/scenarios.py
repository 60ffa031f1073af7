"""Carries scenarios out: the emulator's own code plans and judges, in a child; we act and look."""

from __future__ import annotations

import queue
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from accel.address import short
from accel.errors import AccelError, NotFound
from accel.plain import to_plain, word
from accelctl import exits, render
from accelctl.emulator import Conversation
from accelctl.exits import Interrupted
from accelctl.interrupt import held
from accelctl.session import Session
from accelctl.view import View

MODULE = "accelhw.sim.scenario"
LOOK_S = 1.0  # between two looks at figures
TURN_S = 0.2
NAME_CHARS = 26  # of a fault's id, before what makes it our own

Found = dict[str, Any]


def check(file: Path, rack: Found | None) -> Found:
    arguments = ["--rack"] if rack is not None else []
    with Conversation(MODULE, "check", str(file), *arguments) as child:
        if rack is not None:
            child.say(**rack)
        return _last(child.hear())


def simulate(
    file: Path,
    options: Mapping[str, object],
    tell_size: Callable[[Found], None],
    show: Callable[[Any], None],
) -> Found:
    """`tell_size` is told about how much will be written, before anything is."""
    with Conversation(MODULE, "run", str(file), *_words(options)) as child:
        for said in child.hear():
            if "progress" in said:
                show(said["progress"])
            elif "size" in said:
                tell_size(said["size"])
            else:
                return _known(said)
    raise AssertionError("hear() ends with a last word")


def _words(options: Mapping[str, object]) -> Iterator[str]:
    for name, value in options.items():
        for each in value if isinstance(value, tuple) else (value,):
            if each is True:
                yield f"--{name}"
            elif each is not None and each is not False:
                yield f"--{name}={each}"


def _last(said: Iterator[Found]) -> Found:
    for each in said:
        return _known(each)
    raise AssertionError("hear() ends with a last word")


def _known(said: Found) -> Found:
    if "error" in said:
        reason = said.get("reason", "USAGE")
        code = exits.USAGE if reason == "USAGE" else exits.CONFLICT
        raise exits.Failed(said["error"], code, reason)
    return said


# ---- for real ------------------------------------------------------------------------------------


def rack(session: Session) -> Found:
    """What the daemon has: the profile of each card, and the ports with a fibre."""
    client = session.client
    cards = {short(card.name): card.profile for card in client.cards.list()}
    plugged = [short(link.name) for link in client.links.list() if link.HasField("fibre")]
    return {"cards": cards, "plugged": plugged}


def run_live(
    session: Session,
    view: View,
    file: Path,
    options: Mapping[str, object],
    speed: float,
    keep: bool,
) -> Found:
    told = rack(session)
    words = [*_words(options), f"--speed={speed}"]
    with Conversation(MODULE, "live", str(file), *words) as child:
        child.say(**told)
        said = child.hear()
        first = _last(said)
        if "plan" not in first:
            return first
        hands = Hands(session, view)
        try:
            _carry_out(session, child, first["plan"], hands, speed)
        except KeyboardInterrupt:
            raise Interrupted("interrupted; what was injected is taken away") from None
        finally:
            if not keep:
                with held():
                    hands.undo()
        return _last(said)


def _carry_out(
    session: Session, child: Conversation, plan: Found, hands: Hands, speed: float
) -> None:
    started = time.monotonic()
    moments, edges = list(plan["moments"]), list(plan["look_at_s"])
    looked = -LOOK_S
    with _watching(session) as heard:
        while (now := time.monotonic() - started) < plan["duration_s"]:
            while moments and moments[0]["at_s"] <= now:
                refused = hands.do(moments.pop(0))
                if refused:
                    child.say(refused=refused)
            # Where a window begins or ends, what is seen next stands for that very time.
            at_edge = edges.pop(0) if edges and edges[0] <= now else None
            if plan["look_at"] and (at_edge is not None or now - looked >= LOOK_S):
                looked = now
                figures = _figures(session, plan["look_at"])
                child.say(at_s=now if at_edge is None else at_edge, figures=figures)
            due = [now + TURN_S, plan["duration_s"], *edges[:1], *(m["at_s"] for m in moments[:1])]
            news = _take(heard, max(min(due) - now, 0.0))
            if news:
                child.say(at_s=time.monotonic() - started, **news)
        child.say(end_s=plan["duration_s"])


@contextmanager
def _watching(session: Session) -> Iterator[queue.Queue[tuple[str, Any]]]:
    """States of links and events, as they come."""
    from accel import Client

    heard: queue.Queue[tuple[str, Any]] = queue.Queue()
    after = session.client.events.newest_revision()
    with Client(session.client.socket, timeout_s=session.timeout_s) as client:

        def links() -> None:
            for link in client.links.watch():
                heard.put(("state", (short(link.name), word(link, "state"))))

        def events() -> None:
            for event in client.events.follow(after):
                heard.put(("event", to_plain(event)))

        for watch in (links, events):
            threading.Thread(target=_until_closed, args=(watch,), daemon=True).start()
        yield heard


def _until_closed(watch: Callable[[], None]) -> None:
    # The client was closed; or the daemon is gone, which the next command tells.
    with suppress(AccelError, ValueError):
        watch()


def _take(heard: queue.Queue[tuple[str, Any]], wait_s: float) -> Found:
    """What was heard meanwhile; waits for the first of it."""
    states: dict[str, str] = {}
    events: list[Found] = []
    deadline = time.monotonic() + wait_s
    while True:
        try:
            kind, what = heard.get(timeout=max(deadline - time.monotonic(), 0.001))
        except queue.Empty:
            break
        if kind == "state":
            port, state = what
            if states.get(port, state) != state:
                heard.put((kind, what))  # Each state is told, also a short one: next time.
                break
            states[port] = state
        else:
            events.append({key: what.get(key, {}) for key in ("kind", "subject", "detail")})
        if time.monotonic() >= deadline:
            break
    news: Found = {}
    if states:
        news["states"] = states
    if events:
        news["events"] = events
    return news


def _figures(session: Session, levels: list[str]) -> Found:
    """The figures of all lanes, ports or cards, by address."""
    client = session.client
    lists: dict[str, Callable[[], Iterator[Any]]] = {
        "lane": client.lanes.list,
        "port": client.links.list,
        "card": client.cards.list,
    }
    found: Found = {}
    for level in levels:
        for item in lists[level]():
            found.setdefault(short(item.name), {}).update(_flat(to_plain(item)))
    return found


def _flat(plain: Found) -> Found:
    flat: Found = {}
    for key, value in plain.items():
        if isinstance(value, dict):
            flat |= _flat(value)
        elif isinstance(value, int | float):
            flat[key] = value
    return flat


class Hands:
    """Does what a plan says, knows what it has done, and can take it back."""

    def __init__(self, session: Session, view: View) -> None:
        self._session = session
        self._view = view
        self._own = secrets.token_hex(2)  # two runs of one scenario are two
        self._injected: dict[str, str] = {}  # fault, line
        self._switched: dict[str, bool] = {}  # port, as it was

    def do(self, step: Found) -> str:
        """Nothing, or why it could not be done."""
        what = f"{step['what']}{' on ' + _place(step) if step['subject'] else ''}"
        self._view.say(f"{step['at_s']:9.1f} s  {render.clean(what)}")
        try:
            getattr(self, f"_{step['do']}")(step)
        except AccelError as error:
            return f"line {step['line']}: {what}: {error.message}"
        return ""

    def undo(self) -> None:
        """Takes away what is still there, and switches ports back."""
        client = self._session.client
        for fault in list(self._injected):
            self._forget(fault)
        for port, was_up in self._switched.items():
            client.links.set_admin(port, was_up)
        self._switched.clear()

    def _inject(self, step: Found) -> None:
        fault = f"{step['fault_id'][:NAME_CHARS]}-{self._own}"
        self._injected[fault] = step["name"]  # known before it is there: it is never left
        optional = {
            key: step[key]
            for key in ("duration_s", "ramp_s", "scale", "target_ber")
            if step.get(key) is not None
        }
        self._session.client.faults.inject(
            step["kind"],
            step["subject"],
            lanes=step["lanes"],
            shape=step.get("shape") or "",
            seed=step["seed"],
            fault_id=fault,
            **optional,
        )

    def _replug(self, step: Found) -> None:
        self._take_away(step | {"kinds": [step["kind"]]})
        self._inject(step)

    def _clear(self, step: Found) -> None:
        for fault, line in list(self._injected.items()):
            if line == step["of"]:
                self._forget(fault)

    def _take_away(self, step: Found) -> None:
        subject, kinds = step["subject"], step["kinds"]
        for fault in list(self._session.client.faults.list()):
            where = short(fault.subject)
            inside = where == subject or ("/" not in subject and where.startswith(f"{subject}/"))
            hit = not step["lanes"] or set(step["lanes"]) & set(fault.lanes)
            if inside and hit and (kinds is None or fault.kind in kinds):
                self._forget(short(fault.name))

    def _forget(self, fault: str) -> None:
        with suppress(NotFound):  # Its time may be over.
            self._session.client.faults.clear(fault)
        self._injected.pop(fault, None)

    def _link_down(self, step: Found) -> None:
        self._switch(step["subject"], False)

    def _link_up(self, step: Found) -> None:
        self._switch(step["subject"], True)

    def _switch(self, port: str, up: bool) -> None:
        links = self._session.client.links
        self._switched.setdefault(port, links.get(port).admin_up)
        links.set_admin(port, up)

    def _retrain(self, step: Found) -> None:
        for _ in self._session.client.links.train(step["subject"]):
            return  # It trains by itself; the states of links tell how it goes.

    def _reset(self, step: Found) -> None:
        self._session.client.cards.reset(step["subject"])


def _place(step: Found) -> str:
    lanes = ",".join(map(str, step["lanes"]))
    return f"{step['subject']}/lane{lanes}" if lanes else str(step["subject"])
