"""Reads change tables: logs that a database's capture program writes into tables (SQL Server, Db2)."""
