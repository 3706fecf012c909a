"""Snapshots of collections: first ones at a cluster time, and chunks by `_id`."""
