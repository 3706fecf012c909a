"""The vocabulary of Tailrace: tables, columns, Connect schemas and batches of changes. It knows no database and no Spark."""
