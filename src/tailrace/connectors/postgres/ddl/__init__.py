"""The DDL triggers and the schema changes that they report."""
