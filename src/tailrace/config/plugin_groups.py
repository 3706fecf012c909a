"""The groups of entry points, by which installed packages offer what properties name."""

SNAPSHOTTERS = "tailrace.snapshotters"
LOCKS = "tailrace.snapshot_locks"
QUERIES = "tailrace.snapshot_queries"
CONVERTERS = "tailrace.converters"
