"""Encodes Arrow columns as the text or bytes of a record."""
