"""The algorithms of snapshots, for every database: first, incremental and blocking ones, signals, progress."""
