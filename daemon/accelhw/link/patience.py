"""How long a link's machine waits for what, and how many errors it accepts."""

from __future__ import annotations

MS = 1_000_000

# Sending. Waits between beats of one phase double: many ports that train at once on a busy machine
# must not talk more the slower they are heard.
BEAT_NS = 40 * MS
BEAT_DOUBLINGS = 3
SEEK_LIT_NS = 400 * MS  # between beacons into a lit fibre
SEEK_DARK_NS = 1000 * MS  # a starting peer is noticed anyway, by its carrier
REPLY_NS = 20 * MS  # between answers to a peer that is behind

# Phases
DWELL_NS = 40 * MS  # the shortest stay in a phase, so that a watcher sees it
SEEK_PATIENCE_NS = 2000 * MS  # then a port says what it misses; it goes on seeking
LIGHT_GRACE_NS = 1000 * MS  # for dark or unlocked lanes, before the link does without them
PHASE_NS = 3000 * MS  # for all else that holds a phase up
PEER_FOLLOWS_NS = 5000 * MS
PEER_SILENCE_NS = 2000 * MS
PEER_REPLACED_NS = 1000 * MS  # silence of the known peer before another one is believed

# After a failure: a hold-off that doubles, cut short when light or quality got better
HOLD_OFF_NS = 1000 * MS
HOLD_OFF_MAX_NS = 16_000 * MS
HOLD_OFF_CUT_NS = 250 * MS

# Active
WIDEN_NS = 5000 * MS  # all lanes good for so long: a degraded link tries them again
WIDEN_MAX_NS = 320_000 * MS  # the wait doubles with each vain attempt
QUALITY_PERIOD_NS = 500 * MS
QUALITY_STRIKES = 3  # bad periods in a row that end an active link

LOCK_FRAMES = 1  # sound frames that lock a lane; ALIGN hears each lane once more
STATUS_LANES = 4  # enough to talk on, once lanes have proved themselves

BER_LIMIT = {"none": 1e-8, "kr4": 1e-6, "kp4": 1e-5}  # to come up
BER_LIMIT_ACTIVE = {"none": 1e-9, "kr4": 5e-5, "kp4": 2.4e-4}  # to stay up: the FEC's own limit
MARGIN_MIN_DB = {"none": 1.0, "kr4": 0.0, "kp4": 0.0}  # no waiting time could prove 1e-12
