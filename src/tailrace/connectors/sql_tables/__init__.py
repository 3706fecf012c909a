"""Reads relational tables by SQL, over the SqlDialect of a database: snapshots, chunks, signal tables, current rows."""
