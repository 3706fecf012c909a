"""PostgreSQL's administration: checks, tables, status, drop, comparison."""
