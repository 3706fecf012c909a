"""The SQL Server connector."""
