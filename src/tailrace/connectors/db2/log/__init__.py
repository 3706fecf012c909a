"""The log: change tables of registered tables."""
