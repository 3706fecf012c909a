"""Db2: change tables that the capture program of SQL Replication fills."""
