"""Reads SQL Server's log: the change tables of capture instances."""
