"""Reads change tables: logs that a capture program of the database writes into tables."""
