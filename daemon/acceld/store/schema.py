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
    # Repeated events move to a new revision, so the oldest revision in the table no longer says
    # up to where events were forgotten.
    """
    ALTER TABLE events ADD COLUMN reason TEXT NOT NULL DEFAULT '';
    ALTER TABLE events ADD COLUMN cause TEXT NOT NULL DEFAULT '';
    ALTER TABLE events ADD COLUMN peer TEXT NOT NULL DEFAULT '';
    ALTER TABLE events ADD COLUMN count INTEGER NOT NULL DEFAULT 1;
    ALTER TABLE events ADD COLUMN first_time_ns INTEGER NOT NULL DEFAULT 0;
    UPDATE events SET first_time_ns = time_ns;
    CREATE INDEX events_alike ON events (subject, kind, reason, severity, revision);
    CREATE TABLE event_log (
        one INTEGER PRIMARY KEY CHECK (one = 1),
        newest INTEGER NOT NULL,
        forgotten INTEGER NOT NULL
    ) STRICT;
    INSERT INTO event_log SELECT 1, coalesce(max(revision), 0), coalesce(min(revision), 1) - 1
        FROM events;
    """,
    # base 1: what earlier lives of the hardware have counted; 0: with the present one's.
    """
    CREATE TABLE totals (
        base INTEGER NOT NULL,
        card TEXT NOT NULL,
        part TEXT NOT NULL,
        name TEXT NOT NULL,
        figures BLOB NOT NULL,
        PRIMARY KEY (base, card, part, name)
    ) STRICT, WITHOUT ROWID;
    """,
    """
    CREATE TABLE diags (
        id TEXT PRIMARY KEY,
        ended_ns INTEGER NOT NULL,
        body BLOB NOT NULL
    ) STRICT, WITHOUT ROWID;
    """,
    # Ends of transfers are counted with the record of each; until then the hardware counted them.
    """
    CREATE TABLE transfer_ends (
        card TEXT PRIMARY KEY,
        done INTEGER NOT NULL,
        failed INTEGER NOT NULL,
        cancelled INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    INSERT INTO transfer_ends
        SELECT substr(card, 1, instr(card, ' ') - 1),
            sum(CASE name WHEN 'transfers_done' THEN first_figure(figures) ELSE 0 END),
            sum(CASE name WHEN 'transfers_failed' THEN first_figure(figures) ELSE 0 END), 0
        FROM totals
        WHERE base = 0 AND part = 'card' AND name IN ('transfers_done', 'transfers_failed')
        GROUP BY 1;
    DELETE FROM totals WHERE part = 'card' AND name IN ('transfers_done', 'transfers_failed');
    """,
)
SCHEMA_VERSION = len(STEPS)
