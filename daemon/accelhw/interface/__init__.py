"""The border between hardware and driver: commands, completions, events, shared tables.

The daemon knows the hardware through this package and `accelhw.model` alone. Messages travel over
a Unix stream socket as a 4-byte big-endian length and a MessagePack body (`channel.py`); HBM and
the status tables are shared memory whose descriptors come with the welcome (`tables.py`).
"""
