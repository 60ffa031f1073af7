"""Health: what is well, what is not, why, and what to do; judged from snapshots. Pure."""
