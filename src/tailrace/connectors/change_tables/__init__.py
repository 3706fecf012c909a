"""Logs that a database keeps as tables of changes, filled by a capture program of its own."""
