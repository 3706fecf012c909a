"""Snapshots of collections: whole ones at a cluster time, and chunks by `_id`."""
