"""The vocabulary of Tailrace: tables, columns, Connect schemas and batches of changes; no database, no Spark."""
