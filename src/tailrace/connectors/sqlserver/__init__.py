"""SQL Server: reads the change tables that its capture job fills."""
