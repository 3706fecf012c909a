"""The shared data types: tables, columns, Connect schemas and batches of changes; no database, no Spark."""
