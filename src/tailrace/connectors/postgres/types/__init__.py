"""PostgreSQL types: from what the server sends to Connect values, a column at a time."""
