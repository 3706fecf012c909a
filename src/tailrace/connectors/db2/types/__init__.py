"""Db2's types: converts the driver's values to event values."""
