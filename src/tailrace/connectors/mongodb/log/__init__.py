"""The change stream: its events in columns."""
