"""Snapshots: exported snapshots, ranges and rows of tables."""
