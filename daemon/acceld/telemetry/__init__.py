"""Metrics: a collector per noun, over snapshots."""
