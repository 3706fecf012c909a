"""The Spark side of the source: data sources, readers, row shapes. Imports no database driver."""
