"""The log: change tables of capture instances."""
