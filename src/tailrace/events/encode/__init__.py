"""Encoders: Arrow columns to the text or bytes of a record."""
