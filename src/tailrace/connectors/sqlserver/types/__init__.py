"""SQL Server's types: converts what a SELECT returns to event values."""
