"""The log: its connection, and messages decoded into change batches."""
