"""Tables of a replica in a PostgreSQL database, for those whose lake is a reporting database."""
