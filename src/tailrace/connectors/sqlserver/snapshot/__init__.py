"""Snapshots: whole tables, chunks, signals in a table."""
