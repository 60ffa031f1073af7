"""The daemon: is it well, does it reach its hardware and its store, and what does a scrape cost?"""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard

from boards.blocks import (
    Column,
    figure,
    lines,
    states,
    worst_first,
)
from boards.page import DAEMON_STARTS, HOSTS, POWER_CYCLES, Shelf, board, counted_up
from boards.words import (
    ANY_IS_BAD,
    ANY_IS_ODD,
    EACH_HOST,
    HEALTH,
    HOST,
    PER_HOST,
    RATE,
    YES_NO,
    Names,
    how_many,
)

UID = "accel-daemon"
WORKER = "{{instance}} worker {{worker}}"
WORKER_RESTARTS = counted_up(
    "Worker restarts", f"accel_worker_restarts_total{{{HOST}}}", "red"
)  # fmt: skip


def build() -> dashboard.Dashboard:
    return board(
        UID,
        "daemon",
        "Is acceld well, does it reach the emulated hardware and its store, and what does a"
        " scrape cost?",
        HOSTS,
        (DAEMON_STARTS, POWER_CYCLES, WORKER_RESTARTS),
        (
            Shelf(4, _figures()),
            Shelf(7, (_daemons(), _workers()), "Worst first"),
            Shelf(6, (_health(), _attached())),
            Shelf(8, _scrapes(), "Scrapes and store"),
            Shelf(8, _work(), "Workers: the processes that carry the cards"),
        ),
    )


def _figures() -> list[object]:
    return [
        figure(
            "Silent",
            "Daemons that Prometheus cannot scrape now: `systemctl status acceld` there.",
            how_many(f"up{{{HOST}}} == 0", f"up{{{HOST}}}"),
            "short",
            ANY_IS_BAD,
        ),
        figure(
            "Without hardware",
            "Daemons that run and wait for the chassis: `systemctl status accel-chassis` there.",
            how_many(
                f"accel_daemon_chassis_attached{{{HOST}}} == 0",
                f"accel_daemon_chassis_attached{{{HOST}}}",
            ),
            "short",
            ANY_IS_BAD,
        ),
        figure(
            "Store not durable",
            "Daemons whose store does not reach the disk: regions and events would be lost at a"
            " restart. Look at the disk of the state directory.",
            how_many(
                f"accel_daemon_store_durable{{{HOST}}} == 0",
                f"accel_daemon_store_durable{{{HOST}}}",
            ),
            "short",
            ANY_IS_ODD,
        ),
        figure(
            "Workers not alive",
            "Their cards fell off the bus; the chassis starts them again.",
            how_many(f"accel_worker_alive{{{HOST}}} == 0", f"accel_worker_alive{{{HOST}}}"),
            "short",
            ANY_IS_BAD,
        ),
        figure(
            "Slowest scrape",
            "How long a daemon took to write a scrape. It should stay far below the interval.",
            f"max(accel_daemon_scrape_duration_seconds{{{HOST}}})",
            "s",
        ),
        figure(
            "Oldest figures",
            "Time since a worker's last tick, which comes every second: how old its cards'"
            " figures are.",
            f"max(accel_worker_beat_age_seconds{{{HOST}}})",
            "s",
            ((None, "green"), (5, "orange"), (15, "red")),
        ),
    ]


def _daemons() -> object:
    def of(metric: str, where: str = HOST) -> str:
        return f"max by ({PER_HOST}) ({metric}{{{where}}})"

    def column(name: str, expr: str, unit: str = "short", names: Names | None = None) -> Column:
        """With the version as one more label."""
        build = f"accel_daemon_build_info{{{HOST}}}"
        return Column(name, f"{build} * on ({PER_HOST}) group_left () ({expr})", unit, names=names)

    host = f'{HOST},kind="daemon"'
    started = of("accel_daemon_start_time_seconds")
    powered = of("accel_chassis_start_time_seconds")
    return worst_first(
        "Daemons",
        "A line for each, the worst health first. 'Powered for' starts again with a power cycle of"
        " the emulated hardware, 'runs for' with each restart of the daemon.",
        ("instance", "version"),
        [
            column("health", of("accel_health_state", host), "none", HEALTH),
            column("attached", of("accel_daemon_chassis_attached"), "none", YES_NO),
            column("durable", of("accel_daemon_store_durable"), "none", YES_NO),
            column("runs for", f"time() - {started}", "s"),
            column("powered for", f"time() - {powered}", "s"),
            column("samples", of("accel_daemon_scrape_samples")),
        ],
    )


def _workers() -> object:
    def of(metric: str) -> str:
        return f"max by ({PER_HOST}, worker) ({metric}{{{HOST}}})"

    return worst_first(
        "Workers",
        "Most restarts first: each was a fall off the bus for its cards. Overruns: the machine is"
        " too busy for the model's tick. Who ended one: `journalctl -u accel-chassis`.",
        ("instance", "worker"),
        [
            Column("restarts", of("accel_worker_restarts_total"), steps=ANY_IS_ODD),
            Column("alive", of("accel_worker_alive"), "none", names=YES_NO),
            Column("cards", of("accel_worker_cards")),
            Column("last tick", of("accel_worker_beat_age_seconds"), "s"),
            Column("overruns", of("accel_worker_tick_overruns_total")),
        ],
    )


def _health() -> object:
    return states(
        "Health",
        "Of each daemon, and of its host with all cards. The reasons: `accelctl health show`.",
        f'accel_health_state{{{HOST},kind=~"host|daemon"}}',
        "{{instance}} {{kind}}",
        HEALTH,
    )


def _attached() -> object:
    return states(
        "Hardware",
        "Does the daemon reach the emulated hardware? A gap is a daemon that was not scraped.",
        f"accel_daemon_chassis_attached{{{HOST}}}",
        EACH_HOST,
        YES_NO,
    )


def _scrapes() -> list[object]:
    return [
        lines(
            "Duration of a scrape",
            "How long the daemon took to write one. It grows with lanes and with a busy machine.",
            "s",
            (f"accel_daemon_scrape_duration_seconds{{{HOST}}}", EACH_HOST),
        ),
        lines(
            "Time per sample",
            "A step up with the same number of samples is a busy machine.",
            "s",
            (f"accel_daemon_scrape_duration_seconds{{{HOST}}}"
             f" / accel_daemon_scrape_samples{{{HOST}}}", EACH_HOST),
        ),
        lines(
            "Samples of a scrape",
            "It grows with what is the matter: flags, faults and reasons have samples only while"
            " they are there. `accelctl metrics budget` tells which group has how many.",
            "short",
            (f"accel_daemon_scrape_samples{{{HOST}}}", EACH_HOST),
        ),
        lines(
            "Events and scrapes",
            "Per second. Many events are a link that flaps: see the board of training.",
            "cps",
            (f"rate(accel_daemon_events_total{{{HOST}}}[{RATE}])", EACH_HOST + " events"),
            (f"rate(accel_daemon_scrapes_total{{{HOST}}}[{RATE}])", EACH_HOST + " scrapes"),
        ),
        lines(
            "Size of the store",
            "With its log of writes. It is bounded: old events are let go.",
            "bytes",
            (f"accel_daemon_store_size_bytes{{{HOST}}}", EACH_HOST),
        ),
    ]  # fmt: skip


def _work() -> list[object]:
    return [
        lines(
            "Age of figures",
            "Time since each worker's last tick. Sawteeth up to a second are well; a ramp is a"
            " worker that hangs.",
            "s",
            (f"accel_worker_beat_age_seconds{{{HOST}}}", WORKER),
        ),
        lines(
            "Late ticks",
            "Ticks of the optics that came more than a tick too late, per second: too little CPU.",
            "cps",
            (f"rate(accel_worker_tick_overruns_total{{{HOST}}}[{RATE}])", WORKER),
        ),
        lines(
            "Restarts",
            "Times each worker was started again since the chassis exists.",
            "short",
            (f"accel_worker_restarts_total{{{HOST}}}", WORKER),
        ),
    ]
