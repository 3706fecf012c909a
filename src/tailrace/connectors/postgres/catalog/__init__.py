"""The catalog: captured tables, their columns, keys and defaults."""
