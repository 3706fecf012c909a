"""Tables of Iceberg, written by pyiceberg with position deletes."""
