"""Metrics: the field table over one snapshot, as text, over HTTP."""
