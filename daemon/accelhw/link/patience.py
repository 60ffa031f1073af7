"""How long a link's machine waits for what, and how many errors it accepts."""

from __future__ import annotations

MS = 1_000_000

# Sending. Waits between beats of one phase double: many ports that train at once on a busy machine
# must not talk more the slower they are heard.
BEAT_NS = 40 * MS
BEAT_DOUBLINGS = 3
BEAT_MAX_NS = 1000 * MS  # however slow the machine is
SEEK_LIT_NS = 400 * MS  # between beacons into a lit fibre
SEEK_DARK_NS = 1000 * MS  # a starting peer is noticed anyway, by its carrier
REPLY_NS = 20 * MS  # between answers to a peer that is behind
EQ_BEAT_NS = 10 * MS  # first repetition while equalisers train
EQ_REPLY_NS = 2 * MS  # what firmware takes to carry out a request, or to judge its result

# Phases
DWELL_NS = 40 * MS  # the shortest stay in a phase, so that a watcher sees it
SEEK_PATIENCE_NS = 2000 * MS  # then a port says what it misses; it goes on seeking
LIGHT_GRACE_NS = 1000 * MS  # for dark or unlocked lanes, before the link does without them
LASER_NS = 2000 * MS  # for lasers and ring heaters to settle
LASER_LOOK_NS = 40 * MS
PHASE_NS = 3000 * MS  # for all else that holds a phase up
PROOF_NS = 2000 * MS  # for errors few enough, but not yet surely so
PROOF_LOOK_NS = 50 * MS
EQ_NS = 5000 * MS  # for a lane whose equaliser does not settle
EQ_SLACKS = 10  # on a slow machine: forty round trips, for as many requests
EQ_FOLLOWS_NS = 12_000 * MS  # for a peer whose equalisers do not (IEEE 802.3: max_wait_timer)
PEER_FOLLOWS_NS = 5000 * MS
PEER_SILENCE_NS = 2000 * MS
PEER_REPLACED_NS = 1000 * MS  # silence of the known peer before another one is believed

# After a failure: a hold-off that doubles, cut short when light or quality got better
HOLD_OFF_NS = 1000 * MS
HOLD_OFF_MAX_NS = 60_000 * MS
HOLD_OFF_CUT_NS = 250 * MS

# A link that falls again and again. Penalties are in falls; the longest wait is 26 s.
FLAP_HALF_LIFE_NS = 10_000 * MS
FLAP_SUPPRESS = 3.0  # above it, the link is held down
FLAP_REUSE = 1.0  # until the penalty has decayed to this
FLAP_CEILING = 6.0

# Up, but in trouble: lanes are locked and checked again while data waits
RECOVERY_NS = 950 * MS  # then the link is down (PCS lost, in optical modules' terms)
RECOVERY_JOINED_NS = 100 * MS  # longer where the trouble is at the far end
RECOVERY_LANE_NS = 300 * MS  # for a lane to come back, before the link goes on without it
RECOVERY_BEAT_NS = 20 * MS
SHORTEST_NS = min(LIGHT_GRACE_NS, RECOVERY_LANE_NS)  # no lane is given up earlier
RECOVERY_FRAMES_NS = 700 * MS  # the same where only frames are missing: they may get lost
RECOVERY_DOUBLINGS = 1
TROUBLE_AGAIN_NS = 60_000 * MS  # a lane in trouble twice within this is not used for as long

# Active
WIDEN_NS = 5000 * MS  # all lanes good for so long: a degraded link tries them again
WIDEN_MAX_NS = 320_000 * MS  # the wait doubles with each attempt
WIDEN_FORGET_NS = 60_000 * MS  # so long at full width: the next wait is short again
BETTER_NS = 30_000 * MS  # a better mode would be borne for so long: it is offered to the far end
BETTER_MAX_NS = 3600_000 * MS  # the wait doubles with each try that ends in a lesser mode
BETTER_FORGET_NS = 600_000 * MS  # so long in the best mode: the next wait is short again
QUIET_NS = 60_000 * MS  # how long a training that would do good waits for data to pause
QUALITY_PERIOD_NS = 500 * MS
QUALITY_STRIKES = 3  # bad periods in a row that end an active link

LOCK_FRAMES = 1  # sound frames that lock a lane; ALIGN hears each lane once more
STATUS_LANES = 4  # enough to talk on, once lanes have proved themselves
EQ_LANES = 2  # the same while many short messages go to and fro

BER_LIMIT = {"none": 1e-8, "kr4": 1e-6, "kp4": 1e-5}  # to come up
BER_LIMIT_ACTIVE = {"none": 1e-9, "kr4": 5e-5, "kp4": 2.4e-4}  # to stay up: the FEC's own limit
MARGIN_MIN_DB = {"none": 1.0}  # no waiting time could prove 1e-12; with FEC, errors tell enough
