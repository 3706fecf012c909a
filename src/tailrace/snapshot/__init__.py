"""Snapshots beyond the first one, whatever the database: signals, and how far what they asked for has come."""
