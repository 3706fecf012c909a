"""The Spark side of the source: data sources, offsets and splits, row shapes. Imports no database driver."""
