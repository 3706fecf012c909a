"""PostgreSQL's wire formats: converts bytes to columns, without any input or output."""
