"""PostgreSQL types: converts what the server sends to Connect values, a column at a time."""
