"""The tables of the store. A change adds a step to STEPS; a store is brought up step by step."""

from __future__ import annotations

STEPS: tuple[str, ...] = (
    """
    CREATE TABLE boot (
        one INTEGER PRIMARY KEY CHECK (one = 1),
        boot_id TEXT NOT NULL,
        last_event INTEGER NOT NULL
    ) STRICT;
    INSERT INTO boot VALUES (1, '', 0);
    CREATE TABLE regions (
        card TEXT NOT NULL,
        name TEXT NOT NULL,
        region_id INTEGER NOT NULL,
        key INTEGER NOT NULL,
        address INTEGER NOT NULL,
        size INTEGER NOT NULL,
        created_ns INTEGER NOT NULL,
        PRIMARY KEY (card, name)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE link_admin (
        card TEXT NOT NULL,
        oe INTEGER NOT NULL,
        up INTEGER NOT NULL,
        PRIMARY KEY (card, oe)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE channel_maps (
        card TEXT NOT NULL,
        channel INTEGER NOT NULL,
        signal_line INTEGER NOT NULL,
        PRIMARY KEY (card, channel)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE events (
        revision INTEGER PRIMARY KEY,
        time_ns INTEGER NOT NULL,
        severity INTEGER NOT NULL,
        kind TEXT NOT NULL,
        subject TEXT NOT NULL,
        message TEXT NOT NULL,
        detail TEXT NOT NULL
    ) STRICT;
    CREATE TABLE transfers (
        id TEXT PRIMARY KEY,
        created_ns INTEGER NOT NULL,
        ended INTEGER NOT NULL,
        body TEXT NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX transfers_by_age ON transfers (ended, created_ns);
    """,
)
SCHEMA_VERSION = len(STEPS)
