"""Reads Db2's log: the change tables of registered tables."""
